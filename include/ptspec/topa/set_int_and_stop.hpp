// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/entry.hpp>

/// Places INT and STOP in a ring that is read while it is written.
namespace ptspec::topa {

/// The state of a ring's reader, as numbers of regions.
struct int_and_stop {
    size_t unread = 0;   ///< the region that holds the oldest unread byte
    size_t wake_up = 0;  ///< the region whose INT wakes the reader
};

/// Sets INT and STOP in the regions of a ring, `count` entries in the order in which they are
/// filled: STOP and INT on the region before the unread bytes, so that no unread byte is
/// overwritten; INT on the region that wakes the reader; neither on the others. Call it while
/// TraceEn is 0, before each enable. A ring of one region gets both, and its interrupt is raised
/// early.
///
/// Errors: false when a number is out of range; nothing is then changed.
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
