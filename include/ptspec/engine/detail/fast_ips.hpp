// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/enables.hpp>

namespace ptspec::engine {

/// IPs from `first` to `last`, both included. The default is empty.
struct ip_span {
    uint64_t first = 1;
    uint64_t last = 0;

    /// The number of IPs; for the whole address space one less.
    [[nodiscard]] constexpr auto size() const noexcept -> uint64_t {
        if (first > last) { return 0; }
        uint64_t const after_first = last - first;
        return after_first == ~uint64_t{0} ? after_first : after_first + 1;
    }
    friend constexpr auto operator==(ip_span const&, ip_span const&) -> bool = default;
};

/// A span of IPs around `ip`: a branch to any of them keeps FilterEn at 1 and enters no TraceStop
/// range. It extends to the nearest TraceStop ranges, within one filter range.
///
/// Source: GEN-080..085.
[[nodiscard]] constexpr auto fast_ips_around(access::msr_state const& state, uint64_t ip) noexcept
    -> ip_span {
    using access::any_range_of_kind;
    ip_span found{0, ~uint64_t{0}};
    if (access::has_filter(state)) {
        found = {};
        (void)any_range_of_kind(state, reg::addr_cfg::filter,
                                [&](access::address_range const& range) {
                                    bool const inside = range.contains(ip);
                                    if (inside) { found = {range.a.raw, range.b.raw}; }
                                    return inside;
                                });
    }
    (void)any_range_of_kind(
        state, reg::addr_cfg::trace_stop, [&](access::address_range const& range) {
            if (range.contains(ip)) {
                found = {};
            } else if (ip < range.a.raw) {
                found.last = range.a.raw - 1 < found.last ? range.a.raw - 1 : found.last;
            } else {
                found.first = range.b.raw + 1 > found.first ? range.b.raw + 1 : found.first;
            }
            return false;
        });
    return found;
}

}  // namespace ptspec::engine
