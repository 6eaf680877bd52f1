// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/binder_state.hpp>

/// Whether, and at which IP, tracing resumes after an OVF.
///
/// Source: PKT-150..154, GEN-227, GEN-228, GEN-342, GEN-343.
namespace ptspec::trace::detail {

constexpr auto bind_ovf(binder_state& s) noexcept -> binding {
    auto const found = s.has(pending::psb_resumes) ? resumption::withdrawn : resumption::none;
    s.set(pending::psb_open | pending::waiting | pending::block | pending::asleep |
              pending::stopped | pending::psb_resumes | pending::at_start | pending::lost,
          false);
    s.set(tracing::unknown);
    s.set(pending::overflow);
    return {.to = owner::overflow, .completes = false, .resumed = found};
}

/// Assigns the FUP after OVF and PSB+ to the OVF: no TIP or TIP.PGD followed.
constexpr auto settle_fup(binder_state& s) noexcept -> resumption {
    s.set(pending::event | pending::shared_fup | pending::psb_resumes, false);
    s.resume();
    return resumption::at_fup;
}

/// Handles a packet that shows that tracing is off, so that it did not resume.
constexpr auto refute(binder_state& s) noexcept -> resumption {
    if (!s.has(pending::doubts)) { return resumption::none; }
    s.drop_lone_transaction();
    s.set(pending::doubts | pending::overflow, false);
    s.set(tracing::off);
    return resumption::refuted;
}

/// Handles a packet that does not depend on PacketEn: after an OVF it shows that tracing is
/// off.
///
/// Source: PKT-153.
constexpr void end_overflow(binder_state& s) noexcept {
    s.check_stop();
    if (!s.has(pending::overflow)) { return; }
    s.set(pending::overflow, false);
    if (!s.has(pending::psb_resumes)) { s.set(tracing::off); }
}

/// For a packet that only an enabled processor sends. After an OVF its FUP is missing, unless
/// the packet `replaces_fup`.
constexpr auto confirm(binder_state& s, bool replaces_fup = false) noexcept -> resumption {
    s.confirm_enabled();
    s.check_stop();
    bool const misses_fup = s.has(pending::overflow | pending::psb_resumes) &&
                            !s.quirks.has(cpu::quirk::skd010);
    if (misses_fup && !replaces_fup) { s.violate(rule::GEN_227); }
    if (!s.has(pending::psb_resumes)) { return resumption::none; }
    return misses_fup && replaces_fup ? resumption::withdrawn : resumption::confirmed;
}

/// The first FUP after an OVF, with nothing but timing packets and PSB+s between.
constexpr auto end_overflow_at_fup(binder_state& s) noexcept -> binding {
    bool const has_other_ip = s.has(pending::psb_resumes);
    s.set(pending::overflow, false);
    if (has_other_ip && s.quirks.has(cpu::quirk::skd010)) {
        // The FUP of the OVF may be missing: then TIP or TIP.PGD follows this one.
        s.begin_event(pending::event);
        s.set(pending::shared_fup);
        return {.to = owner::asynchronous, .completes = false};
    }
    s.set(pending::psb_resumes, false);
    s.resume();
    if (s.quirks.has(cpu::quirk::apl12)) {
        // The FUP is spurious if TIP.PGE, TraceStop or a PSB+ without FUP shows that tracing
        // is off.
        s.set(pending::fup_resumes);
        s.set(tracing::entering);
    }
    return {.to = owner::overflow,
            .resumed = has_other_ip ? resumption::withdrawn : resumption::none};
}

}  // namespace ptspec::trace::detail
