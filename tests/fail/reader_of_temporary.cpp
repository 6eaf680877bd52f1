// SPDX-License-Identifier: BSL-1.0
// expect: the bytes of this temporary are gone before they are read: give it a name
#include <ptspec/trace/reader.hpp>

#include <vector>

auto read_file() -> std::vector<unsigned char>;

auto first_packet() {
#ifndef SHOULD_FAIL
    auto const bytes = read_file();
    ptspec::trace::reader from{bytes};
#else
    ptspec::trace::reader from{read_file()};
#endif
    return from.next();
}
