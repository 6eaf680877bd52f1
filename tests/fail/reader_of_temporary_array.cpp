// SPDX-License-Identifier: BSL-1.0
// expect: the bytes of this temporary are gone before they are read: give it a name
#include <ptspec/packet/encode.hpp>
#include <ptspec/trace/reader.hpp>

using namespace ptspec;

// An array of bytes is copied byte by byte as a view is, and holds them all the same.
auto first_packet(packet::cbr which) {
#ifndef SHOULD_FAIL
    auto const bytes = packet::encode(which);
    trace::reader from{bytes};
#else
    trace::reader from{packet::encode(which)};
#endif
    return from.next();
}
