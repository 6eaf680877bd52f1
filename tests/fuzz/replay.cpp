// SPDX-License-Identifier: BSL-1.0
// Runs a fuzz target on files, without a fuzzer: links with one tests/fuzz/NAME.cpp.
//
//   fuzz.NAME FOLDER...   runs every file of the folders; there must be at least one

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <fuzz/check.hpp>

namespace {

/// Runs the target on the file's bytes, in an allocation of exactly their size, as a fuzzer does.
void run_on(std::filesystem::path const& path) {
    std::ifstream file{path, std::ios::binary};
    std::vector<char> const text{std::istreambuf_iterator<char>{file}, {}};
    std::vector<uint8_t> bytes(text.size());
    std::transform(text.begin(), text.end(), bytes.begin(),
                   [](char one) { return static_cast<uint8_t>(one); });
    fuzz::copy const exact{ptspec::byte_view{bytes}};
    (void)LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

auto main(int count, char** arguments) -> int {
    std::size_t files = 0;
    for (int i = 1; i < count; ++i) {
        std::filesystem::path const folder{arguments[i]};
        if (!std::filesystem::is_directory(folder)) {
            std::fprintf(stderr, "%s is not a folder\n", arguments[i]);
            return 1;
        }
        for (auto const& entry : std::filesystem::directory_iterator{folder}) {
            if (!entry.is_regular_file()) { continue; }
            // Shows the name of the input that aborts the program.
            std::fprintf(stderr, "\r%s", entry.path().filename().string().c_str());
            run_on(entry.path());
            ++files;
        }
    }
    std::fprintf(stderr, "\r%zu inputs\n", files);
    return files != 0 ? 0 : 1;
}
