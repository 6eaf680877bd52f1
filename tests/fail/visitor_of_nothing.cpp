// SPDX-License-Identifier: BSL-1.0
// expect: a visitor is called with (packet, trace::at) and takes one packet type at least
#include <ptspec/trace/reader.hpp>

// A visitor that no packet can be passed to would silently receive nothing.
auto read(ptspec::byte_view bytes) {
#ifndef SHOULD_FAIL
    auto const visitor = [](ptspec::packet::tip const&, ptspec::trace::at) {};
#else
    auto const visitor = [](ptspec::packet::tip const&) {};
#endif
    return ptspec::trace::reader{bytes}.for_each(visitor);
}
