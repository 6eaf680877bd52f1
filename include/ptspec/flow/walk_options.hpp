// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirk_set.hpp>
#include <ptspec/flow/block.hpp>
#include <ptspec/trace/return_stack.hpp>

namespace ptspec::flow {

/// What a walker does where code is absent.
enum class on_missing_code : uint8_t {
    gap,   ///< reports a gap, and resumes at the next IP of a packet
    stop,  ///< returns; the caller supplies the code and calls again
};

/// IPs from `first` to `last`, inclusive, as IA32_RTIT_ADDRn_A and B have them.
struct ip_range {
    uint64_t first = 0;
    uint64_t last = 0;

    [[nodiscard]] constexpr auto contains(uint64_t ip) const noexcept -> bool {
        return ip - first <= last - first;
    }
};

/// How to walk code.
struct walk_options {
    on_missing_code missing = on_missing_code::gap;
    ip_form ips{};  ///< of packets
    cpu::quirk_set quirks{};
    /// The effect on the return stack of a RET whose target differs from the top entry: GEN-134.
    /// All recorded traces give the same result with each value.
    trace::ret_mismatch on_ret_mismatch = trace::ret_mismatch::pop;
    // What the trace can have: fields of IA32_RTIT_CTL, which `with_ctl` in with_ctl.hpp sets.
    /// BranchEn. Without it the whole trace is one gap, `gap_reason::no_branches`.
    bool has_branches = true;
    /// Not DisTNT. Without it, a gap `gap_reason::no_tnt` begins at each branch whose outcome is
    /// not certain: GEN-325.
    bool has_tnt = true;
    /// Not DisRETC. Matters only without TNT: all RETs have a TIP.
    bool has_compressed_rets = true;
    /// The address ranges that are traced, for processors with SKL014: a TIP.PGD may lack its IP
    /// where a direct branch leaves them.
    ip_range filters[4] = {};
    unsigned filter_count = 0;
    /// The walk ends at the IP of the PSB+ at this offset, which the next part reports: `parts`.
    uint64_t until = no_end;
    static constexpr uint64_t no_end = ~uint64_t{0};
    /// The trace is a later part of another trace: its first PSB+ is not a start of tracing.
    bool continues = false;
};

namespace detail {

/// True if a processor with SKL014 may send a TIP.PGD without IP for a direct branch to `ip`.
constexpr auto is_outside_filters(walk_options const& options, uint64_t ip) noexcept -> bool {
    if (!options.quirks.has(cpu::quirk::skl014) || options.filter_count == 0) { return false; }
    for (unsigned i = 0; i < options.filter_count; ++i) {
        if (options.filters[i].contains(ip)) { return false; }
    }
    return true;
}

}  // namespace detail

}  // namespace ptspec::flow
