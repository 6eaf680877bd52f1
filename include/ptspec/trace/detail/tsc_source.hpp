// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/time_conversion.hpp>
#include <ptspec/trace/tsc_change.hpp>

namespace ptspec::trace::detail {

/// The last time of a trace, if a TSC was read.
struct last_tsc {
    bool is_known = false;
    bool is_guest = false;  ///< it is a TSC of a guest
    uint64_t tsc = 0;
};

/// Whose TSC a TSC packet has: the host's, or that of a guest, which may be known.
///
/// Source: GEN-200, PKT-315, PKT-317.
struct tsc_source {
    uint64_t raw = 0;  ///< of the last TSC packet
    bool in_guest = false;
    bool has_guest_tsc = false;
    bool has_reference = false;
    uint64_t reference = 0;  ///< a TSC near the trace
    tsc_change guest_tsc{};

    /// True if the times are those of a guest.
    [[nodiscard]] constexpr auto is_guest_time() const noexcept -> bool {
        return in_guest && !has_guest_tsc;
    }
    /// True if the TSC of the guest becomes that of the host.
    [[nodiscard]] constexpr auto converts() const noexcept -> bool {
        return in_guest && has_guest_tsc;
    }
    /// True if this multiplies.
    [[nodiscard]] constexpr auto scales() const noexcept -> bool {
        return converts() && guest_tsc.scales();
    }
    /// The TSC of the last TSC packet: the host's, if it is known.
    [[nodiscard]] constexpr auto host_tsc(last_tsc last) const noexcept -> tsc_range {
        if (!scales()) {
            uint64_t const offset = converts() ? guest_tsc.offset : 0;
            uint64_t const tsc = extended((raw - offset) & low_bits(56), last);
            return {tsc, tsc};
        }
        uint64_t const near_by = last.is_known && !last.is_guest ? last.tsc : guest_tsc.near_by;
        return guest_tsc.host_of(tsc_near(raw, guest_tsc.of(near_by)));
    }

private:
    /// The 64-bit value nearest to the last one.
    [[nodiscard]] constexpr auto extended(uint64_t low_56, last_tsc last) const noexcept
        -> uint64_t {
        if (!last.is_known && !has_reference) { return low_56; }
        return tsc_near(low_56, last.is_known ? last.tsc : reference);
    }
};

}  // namespace ptspec::trace::detail
