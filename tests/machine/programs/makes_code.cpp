// SPDX-License-Identifier: BSL-1.0

// Writes code to files, maps and executes it: each at the address of the one before.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

auto main() -> int {
    constexpr std::size_t page = 4096;
    auto* const place = reinterpret_cast<void*>(std::uintptr_t{0x7000'0000});
    for (unsigned version = 0; version < 4; ++version) {
        std::vector<unsigned char> code;
        for (unsigned i = 0; i <= version; ++i) { code.insert(code.end(), {0xFF, 0xC7}); }
        // lea eax, [rdi + version]; loop of 10; ret
        code.insert(code.end(), {0x8D, 0x47, static_cast<unsigned char>(version), 0xB9, 10, 0, 0, 0,
                                 0xFF, 0xC9, 0x75, 0xFC, 0xC3});
        code.resize(page, 0xCC);
        std::string const name = "out/code-" + std::to_string(version);
        int const file = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0755);
        if (file < 0 || write(file, code.data(), page) != page) { return 1; }
        void* const at = mmap(place, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
        close(file);
        if (at != place) { return 1; }
        int (*run)(int) = nullptr;
        std::memcpy(&run, &at, sizeof run);
        for (int i = 0; i < 5; ++i) {
            if (run(i) != i + 1 + 2 * static_cast<int>(version)) { return 1; }
        }
    }
}
