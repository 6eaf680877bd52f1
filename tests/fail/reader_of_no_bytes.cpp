// SPDX-License-Identifier: BSL-1.0
// expect: a row of bytes has data() and size(), and elements of one byte
#include <ptspec/trace/reader.hpp>

#include <vector>

auto first_packet(std::vector<unsigned char> const& bytes, std::vector<unsigned> const& words) {
#ifndef SHOULD_FAIL
    ptspec::trace::reader from{bytes};
    (void)words;
#else
    ptspec::trace::reader from{words};
    (void)bytes;
#endif
    return from.next();
}
