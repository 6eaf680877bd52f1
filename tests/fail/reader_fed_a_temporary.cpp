// SPDX-License-Identifier: BSL-1.0
// expect: the bytes of this temporary are gone before they are read: give it a name
#include <ptspec/trace/reader.hpp>

#include <array>

auto next_piece() -> std::array<unsigned char, 4096>;

auto read_on(ptspec::trace::reader<>& from) {
#ifndef SHOULD_FAIL
    auto const piece = next_piece();
    bool const taken = from.feed(piece);
#else
    bool const taken = from.feed(next_piece());
#endif
    return taken ? from.next() : ptspec::trace::item{};
}
