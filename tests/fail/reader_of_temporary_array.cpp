// SPDX-License-Identifier: BSL-1.0
// expect: the bytes of this temporary are gone before they are read: give it a name
#include <ptspec/packet/encode.hpp>
#include <ptspec/trace/reader.hpp>

using namespace ptspec;

// An array of bytes is trivially copyable like a view, but it owns its bytes.
auto first_packet(packet::cbr which) {
#ifndef SHOULD_FAIL
    auto const bytes = packet::encode(which);
    trace::reader from{bytes};
#else
    trace::reader from{packet::encode(which)};
#endif
    return from.next();
}
