// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/enables.hpp>

/// What an operation of the processor makes of the enables, on which depends what is traced.
namespace ptspec::engine {

/// The enables at one point.
///
/// Source: SDM vol. 3, "Packet Generation Enable Controls"; GEN-020..027.
struct enables {
    bool trigger = false;
    bool context = false;
    bool filter = false;
    bool branch = false;

    /// PacketEn: control flow is traced.
    [[nodiscard]] constexpr auto packet() const noexcept -> bool {
        return trigger && context && filter && branch;
    }
    friend constexpr auto operator==(enables const&, enables const&) -> bool = default;
};

/// Source: GEN-020..027.
[[nodiscard]] constexpr auto enables_of(cpu::capabilities const& of,
                                        access::msr_state const& now) noexcept -> enables {
    using status = access::ia32_rtit_status;
    return {now.status.get<status::TriggerEn>(), now.status.get<status::ContextEn>(),
            access::filter_en(of, now.status), now.ctl.get<access::ia32_rtit_ctl::BranchEn>()};
}

/// Which addresses an operation is judged by: most by the one where execution goes.
///
/// Source: GEN-083, GEN-087.
struct tested_ips {
    bool any = false;  ///< false: it is no point at which FilterEn and TraceStop are evaluated
    uint64_t filter = 0;
    uint64_t trace_stop = 0;
};

/// IPs from one to another, both inside. As it begins it has none.
struct ip_span {
    uint64_t first = 1;
    uint64_t last = 0;

    /// How many they are; of all the last one is not counted.
    [[nodiscard]] constexpr auto size() const noexcept -> uint64_t {
        if (first > last) { return 0; }
        uint64_t const behind_first = last - first;
        return behind_first == ~uint64_t{0} ? behind_first : behind_first + 1;
    }
    friend constexpr auto operator==(ip_span const&, ip_span const&) -> bool = default;
};

/// IPs, with the one that is given among them, to which a branch leaves FilterEn at 1 and meets no
/// TraceStop. There may be more of them.
///
/// Source: GEN-080..085.
[[nodiscard]] constexpr auto traced_around(access::msr_state const& state, uint64_t ip) noexcept
    -> ip_span {
    using access::detail::any_range_of_kind;
    ip_span found{0, ~uint64_t{0}};
    if (access::has_filter(state)) {
        found = {};
        any_range_of_kind(state, reg::addr_cfg::filter, [&](access::address_range const& range) {
            bool const inside = range.contains(ip);
            if (inside) { found = {range.a.raw, range.b.raw}; }
            return inside;
        });
    }
    any_range_of_kind(state, reg::addr_cfg::trace_stop, [&](access::address_range const& range) {
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

/// IA32_RTIT_STATUS and the enables behind an operation.
struct evaluated {
    access::ia32_rtit_status status{};
    enables after{};  ///< as if there were no TraceStop, but for FilterEn
    bool trace_stop = false;
};

/// What an operation does to the enables, TraceEn staying as it is. `now` is what it leads to. A
/// TraceStop shows in `status` as Stopped.
///
/// Source: GEN-005, GEN-024..027, GEN-080..090.
[[nodiscard]] constexpr auto evaluate(cpu::capabilities const& of, access::msr_state const& state,
                                      access::context const& now, tested_ips const& ips) noexcept
    -> evaluated {
    using status = access::ia32_rtit_status;
    evaluated done{state.status, enables_of(of, state), false};
    if (!done.after.trigger) { return done; }
    done.after.context = access::context_en(state.ctl, state.cr3_match, now);
    done.status = done.status.with(status::ContextEn{done.after.context});
    if (ips.any && done.after.context && of.has_ip_filtering()) {
        done.trace_stop = access::in_trace_stop(state, ips.trace_stop);
        done.after.filter = !done.trace_stop && access::in_filter(state, ips.filter);
        done.status = done.status.with(status::FilterEn{done.after.filter});
        if (done.trace_stop) {
            done.status = done.status.with(status::Stopped{true}, status::TriggerEn{false});
        }
    }
    return done;
}

}  // namespace ptspec::engine
