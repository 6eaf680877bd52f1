// SPDX-License-Identifier: BSL-1.0
// expect: the bytes of this temporary are gone before they are read: give it a name
#include <ptspec/file/winipt.hpp>

#include <vector>

auto read_file() -> std::vector<unsigned char>;

auto first() {
#ifndef SHOULD_FAIL
    auto const bytes = read_file();
    ptspec::file::winipt::reader from{bytes};
#else
    ptspec::file::winipt::reader from{read_file()};
#endif
    return from.next();
}
