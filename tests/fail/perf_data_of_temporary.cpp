// SPDX-License-Identifier: BSL-1.0
// expect: the bytes of this temporary are gone before they are read: give it a name
#include <ptspec/file/perf_data/input.hpp>

#include <vector>

auto read_file() -> std::vector<unsigned char>;

auto first() {
#ifndef SHOULD_FAIL
    auto const bytes = read_file();
    auto const file = ptspec::file::perf_data::open(bytes);
#else
    auto const file = ptspec::file::perf_data::open(read_file());
#endif
    return file.result;
}
