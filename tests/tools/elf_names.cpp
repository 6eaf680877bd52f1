// SPDX-License-Identifier: BSL-1.0

// Lists the functions of an ELF file, as the tools find them: a line `START END ENTRY NAME` for
// each range of addresses with a name, in hexadecimal.
//
//   elf_names FILE

#include <tools/common/traced/symbols.hpp>

#include <cinttypes>
#include <cstdio>

auto main(int argc, char** argv) -> int {
    if (argc != 2) { return 2; }
    auto const bytes = tool::read_all(argv[1], std::size_t{1} << 30);
    auto const file = traced::elf_file::read(ptspec::byte_view{bytes});
    if (!file) { return 1; }
    traced::symbols names;
    names.add(*file, 0);
    names.sort();
    for (std::uint64_t at = 0; at != ~std::uint64_t{0};) {
        auto const found = names.function_at(at);
        if (found.symbol != nullptr) {
            std::printf("%" PRIx64 " %" PRIx64 " %" PRIx64 " %s\n", found.begin, found.end,
                        found.entry, found.symbol->name.c_str());
        }
        at = found.end;
    }
    return 0;
}
