// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/rule.hpp>
#include <ptspec/packet/tma.hpp>
#include <ptspec/packet/tsc.hpp>
#include <ptspec/trace/time_conversion.hpp>
#include <ptspec/trace/tsc_change.hpp>

/// How a change of the TSC changes packets.
namespace ptspec::edit::detail {

/// Changes TSC packets and their TMAs.
class tsc_changer {
public:
    constexpr tsc_changer() noexcept = default;
    constexpr explicit tsc_changer(trace::tsc_change change) noexcept { set(change); }
    /// Sets another change from here on. `near_by` is used only the first time.
    constexpr void set(trace::tsc_change change) noexcept {
        if (!is_set_) { last_ = change.near_by; }
        change_ = change;
        is_set_ = true;
    }

    /// Source: GEN-200, PKT-315.
    constexpr auto changed(packet::tsc tsc) noexcept -> packet::tsc {
        using TSC = packet::tsc::TSC;
        last_ = trace::tsc_near(tsc.get<TSC>(), last_);
        has_tsc_ = true;
        return tsc.with(TSC{wrapped{change_.of(last_)}});
    }
    /// Changes the FC of a TMA: TSC - FC, the TSC at the edge of the crystal clock, is changed as
    /// the TSC is. The offset cancels, and so does the CTC: the crystal clock is not scaled.
    ///
    /// Errors: PKT-303 a TMA without a TSC; PKT-340 FC does not fit.
    /// Source: PKT-300, PKT-303.
    constexpr auto change(packet::tma& tma) noexcept -> rule {
        using FC = packet::tma::FC;
        if (!change_.scales()) { return rule::none; }
        if (!has_tsc_) { return rule::PKT_303; }
        has_tsc_ = false;
        uint64_t const fast = change_.of(last_) - change_.of(last_ - tma.get<FC>());
        if (fast > low_bits(FC::width)) { return rule::PKT_340; }
        tma = tma.with(FC{wrapped{fast}});
        return rule::none;
    }

private:
    trace::tsc_change change_{};
    uint64_t last_ = 0;     ///< the last TSC, before its change, with all 64 bits
    bool has_tsc_ = false;  ///< since the last TMA
    bool is_set_ = false;
};

}  // namespace ptspec::edit::detail
