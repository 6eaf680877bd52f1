// SPDX-License-Identifier: BSL-1.0
// expect: deleted
// expect: clock, quirks
// one error
// at most 12 lines
#include <ptspec/trace/events.hpp>

auto reader_of(ptspec::byte_view bytes, ptspec::cpu::quirk_set quirks) {
#ifndef SHOULD_FAIL
    return ptspec::trace::event_reader{bytes, ptspec::trace::no_clock{}, quirks};
#else
    return ptspec::trace::event_reader{bytes, quirks};
#endif
}
