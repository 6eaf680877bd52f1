// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/xsave.hpp>
#include <ptspec/ports.hpp>

/// What becomes of an access to the MSRs of a trace unit, whose ports may fail.
namespace ptspec::engine {

enum class access_outcome : uint8_t {
    done,
    done_but_port_failed,  ///< it took effect, and bytes of trace wait for the port
    not_done_port_failed,  ///< earlier bytes wait for the port: it can be made again
    general_protection,    ///< #GP(0), nothing changed
    not_covered,           ///< not an MSR of Intel PT: somebody else has to answer
};

/// What an access did. It converts to no bool: one that took effect must not be made again, also
/// where a port failed.
///
/// Errors: `why` is the rule of a #GP, and of nothing else. `fault` is that of the port, as
///         `trace_unit::on` returns it; a #GP may have one, too.
struct [[nodiscard]] access_result {
    access_outcome what = access_outcome::done;
    rule why = rule::none;
    port_fault fault{};

    /// True where the registers are as the access makes them.
    [[nodiscard]] constexpr auto took_effect() const noexcept -> bool {
        return what == access_outcome::done || what == access_outcome::done_but_port_failed;
    }
};

/// What XSAVES did: `done` or `not_done_port_failed`.
struct [[nodiscard]] xsaves_result : access_result {
    access::xsave_pt_state image{};  ///< what it stored where it took effect
};

/// What XRSTORS did.
struct [[nodiscard]] xrstors_result : access_result {
    uint32_t refused_msr = 0;       ///< of a #GP: the MSR whose quadword was refused, or 0
    rule why_refused = rule::none;  ///< the rule that a WRMSR of that quadword breaks
};

namespace detail {

using namespace ptspec::detail;

/// An access that the processor has judged, after which a port may have failed.
constexpr auto judged(access::verdict const& outcome, port_fault fault) noexcept -> access_result {
    switch (outcome.what) {
        case access::outcome::general_protection:
            return {access_outcome::general_protection, outcome.why, fault};
        case access::outcome::not_covered: return {access_outcome::not_covered, rule::none, fault};
        case access::outcome::allowed: break;
    }
    return {fault ? access_outcome::done_but_port_failed : access_outcome::done, rule::none, fault};
}
/// An access that a port did not let begin.
constexpr auto not_begun(port_fault fault) noexcept -> access_result {
    return {access_outcome::not_done_port_failed, rule::none, fault};
}

}  // namespace detail

}  // namespace ptspec::engine
