// SPDX-License-Identifier: BSL-1.0
// expect: the bytes of this temporary are gone before they are read: give it a name
#include <ptspec/trace/split.hpp>

#include <string>

auto read_file() -> std::string;

auto count_pieces() {
    std::size_t count = 0;
#ifndef SHOULD_FAIL
    auto const bytes = read_file();
    for (ptspec::byte_view const piece : ptspec::trace::split{bytes, 4}) { count += piece.size(); }
#else
    for (ptspec::byte_view const piece : ptspec::trace::split{read_file(), 4}) {
        count += piece.size();
    }
#endif
    return count;
}
