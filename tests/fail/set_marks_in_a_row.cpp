// SPDX-License-Identifier: BSL-1.0
// The unread bytes and the head of a ring, swapped: they have names.
// expect: set_marks
#include <ptspec/driver/ring.hpp>

using namespace ptspec;

auto move_marks(driver::ring const& ring, uint64_t head, uint64_t unread) -> bool {
#ifndef SHOULD_FAIL
    return driver::set_marks(ring, {.head = head, .unread = unread, .wake_up_bytes = 0x1000});
#else
    return driver::set_marks(ring, unread, head, 0x1000);
#endif
}
