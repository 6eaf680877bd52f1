// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/entry.hpp>

/// INT and STOP for a ring that is read while it is written.
namespace ptspec::topa {

/// Where a reader of a ring is, in numbers of regions.
struct int_and_stop {
    size_t unread = 0;   ///< the region at which bytes begin that nobody has read yet
    size_t wake_up = 0;  ///< the region that interrupts when it is full, so that they are read
};

/// Marks the regions of a ring, `count` entries in the order in which they are filled: STOP and INT
/// on the region before the unread bytes, so that none of them is overwritten, INT on the one that
/// wakes the reader up, and neither on any other. For use while TraceEn is 0, before every start.
/// Where a table holds one region only, that has both: its interrupt comes early.
///
/// Errors: false where a number is none of a region; nothing is then changed.
/// Source: OUT-093, OUT-094.
[[nodiscard]] constexpr auto set_int_and_stop(entry* regions, size_t count,
                                              int_and_stop where) noexcept -> bool {
    if (where.unread >= count || where.wake_up >= count) { return false; }
    size_t const last_free = (where.unread == 0 ? count : where.unread) - 1;
    for (size_t i = 0; i < count; ++i) {
        bool const stops = i == last_free;
        regions[i] = regions[i].with(entry::STOP{stops}, entry::INT{stops || i == where.wake_up});
    }
    return true;
}

}  // namespace ptspec::topa
