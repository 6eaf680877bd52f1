// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/xsave.hpp>
#include <ptspec/base/ports.hpp>

/// The results of accesses to the MSRs of a trace unit, whose ports may fail.
namespace ptspec::engine {

enum class access_outcome : uint8_t {
    done,
    done_but_port_failed,  ///< it took effect, but not all bytes of trace were stored
    not_done_port_failed,  ///< earlier bytes could not be stored: retry the access
    general_protection,    ///< #GP(0), nothing changed
    not_covered,           ///< not an MSR of Intel PT: the caller's own code handles it
};

/// The result of an access. Does not convert to bool: an access that took effect must not be
/// retried, even if a port failed.
///
/// Errors: `broken` is the rule of a #GP, else `none`. `fault` is the fault of the port, as
///         `trace_unit::on` returns it; it may be set with a #GP, too.
struct [[nodiscard]] access_result {
    access_outcome what = access_outcome::done;
    rule broken = rule::none;
    port_fault fault{};

    /// True if the access changed the registers as specified.
    [[nodiscard]] constexpr auto took_effect() const noexcept -> bool {
        return what == access_outcome::done || what == access_outcome::done_but_port_failed;
    }
};

/// The result of XSAVES: `done` or `not_done_port_failed`.
struct [[nodiscard]] xsaves_result : access_result {
    access::xsave_pt_state image{};  ///< the stored state, if it took effect
};

/// The result of XRSTORS.
struct [[nodiscard]] xrstors_result : access_result {
    access::violation violated{};  ///< for a #GP: the quadword that was refused, if one was
};

namespace detail {

using namespace ptspec::detail;

/// The result of an access with this verdict, after which a port may have failed.
constexpr auto access_result_of(access::verdict const& outcome, port_fault fault) noexcept
    -> access_result {
    switch (outcome.what) {
        case access::outcome::general_protection:
            return {access_outcome::general_protection, outcome.broken, fault};
        case access::outcome::not_covered: return {access_outcome::not_covered, rule::none, fault};
        case access::outcome::allowed: break;
    }
    return {fault.happened ? access_outcome::done_but_port_failed : access_outcome::done,
            rule::none, fault};
}
/// The result of an access that did not begin because a port failed.
constexpr auto not_started(port_fault fault) noexcept -> access_result {
    return {access_outcome::not_done_port_failed, rule::none, fault};
}

}  // namespace detail

}  // namespace ptspec::engine
