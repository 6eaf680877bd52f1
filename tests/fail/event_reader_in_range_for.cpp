// SPDX-License-Identifier: BSL-1.0
// expect: a reader is no range: while (auto const& one = reader.next()) { .. }
// one error
#include <ptspec/trace/events.hpp>

auto last_ip(ptspec::byte_view bytes) {
    ptspec::trace::event_reader reader{bytes};
    uint64_t ip = 0;
#ifndef SHOULD_FAIL
    while (auto const& one = reader.next()) {
#else
    for (auto const& one : reader) {
#endif
        ip = one.ip;
    }
    return ip;
}
