// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/snippets.hpp>
#include <ptspec/suite/checks/legality.hpp>

/// WRMSR of IA32_RTIT_CTL that sets, keeps and clears TraceEn, and IA32_RTIT_STATUS then.
namespace ptspec::suite::checks {

namespace detail {

/// Values of IA32_RTIT_STATUS.
inline constexpr status stopped = status{}.with(status::Stopped{true});
inline constexpr status error = status{}.with(status::Error{true});

/// True for IA32_RTIT_CR3_MATCH and the MSRs of address ranges, which only software changes.
constexpr auto is_of_filters(msr_index index) noexcept -> bool {
    return index.value >= access::ia32_rtit_cr3_match::address;
}
/// A legal value for such an MSR that no other one has.
constexpr auto own_value(msr_index index) noexcept -> uint64_t {
    return uint64_t{index.value} << 12;
}
/// Calls `take` with each of these MSRs that the processor has.
constexpr void for_each_of_filters(cpu::capabilities const& caps, auto take) noexcept {
    for (access::pt_msr const& msr : access::pt_msrs) {
        if (is_of_filters(msr.index) && access::exists(caps, msr.index)) { take(msr); }
    }
}
/// Sets each of them to its own value. False if that failed.
template <target T>
constexpr auto set_own_values(armed<T>& on) noexcept -> bool {
    bool is_set = true;
    for_each_of_filters(on.caps(), [&](access::pt_msr const& msr) {
        is_set = is_set && on.set(msr.index, own_value(msr.index));
    });
    return is_set;
}

constexpr auto with_trace_en(ctl value) noexcept -> ctl { return value.with(ctl::TraceEn{true}); }
constexpr auto without_trace_en(ctl value) noexcept -> ctl {
    return value.with(ctl::TraceEn{false});
}

/// Sets TraceEn with the usual output. False if that failed.
template <target T>
constexpr auto enable(armed<T>& on, ctl value) noexcept -> bool {
    return on.set_usual_output() && on.set(ctl::address, with_trace_en(value).raw);
}
/// TraceEn as RDMSR returns it.
template <target T>
constexpr auto is_trace_en(armed<T>& on) noexcept -> bool {
    return ctl{on.read(ctl::address).value}.get<ctl::TraceEn>();
}
template <target T>
constexpr auto status_of(armed<T>& on) noexcept -> status {
    auto const got = on.read(status::address);
    on.require(got.is_done, "REG-011"_rule, "RDMSR while TraceEn is 1", 0, got.vector,
               status::address);
    return status{got.value};
}
template <class Field, target T>
constexpr void require_status(armed<T>& on, rule which, text detail, bool value) noexcept {
    bool const seen = status_of(on).template get<Field>();
    on.require(seen == value, which, detail, value, seen, status::address);
}

}  // namespace detail

/// While TraceEn is 1 a WRMSR of each other MSR raises #GP, of its own value, too.
struct locked_while_tracing {
    static constexpr text name = "locked-while-tracing";
    static constexpr rule_list rules{"REG-004", "REG-009", "PRG-020"};
    static constexpr needs need = needs::enabling();

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!detail::enable(on, on.usual_ctl())) { return on.result(); }
        for (access::pt_msr const& msr : access::pt_msrs) {
            if (msr.index == ctl::address || !access::exists(on.caps(), msr.index)) { continue; }
            on.refuses("REG-004"_rule, msr.index, access::value_of(on.state(), msr.index));
            if (msr.index == status::address) {
                on.refuses("REG-004"_rule, msr.index, 0);
                on.refuses("REG-004"_rule, msr.index, status::write_ignored_mask());
            } else if (msr.index == ia32_rtit_output_base::address) {
                on.refuses("REG-004"_rule, msr.index, on.page(armed<T>::second_table));
            } else if (msr.index != ia32_rtit_output_mask_ptrs::address) {
                on.refuses("REG-004"_rule, msr.index, 0x1000);
            }
        }
        return on.result();
    }
};

/// RDMSR does not fault while TraceEn is 1, and CTL, CR3_MATCH and ADDRn are exact.
struct readable_while_tracing {
    static constexpr text name = "readable-while-tracing";
    static constexpr rule_list rules{"REG-011"};
    static constexpr needs need = needs::enabling();

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!on.set_usual_output() || !detail::set_own_values(on)) { return on.result(); }
        auto const value = detail::with_trace_en(on.usual_ctl());
        if (!on.set(ctl::address, value.raw)) { return on.result(); }
        for (access::pt_msr const& msr : access::pt_msrs) {
            if (!access::exists(on.caps(), msr.index)) { continue; }
            auto const got = on.read(msr.index);
            on.require(got.is_done, "REG-011"_rule, "RDMSR while TraceEn is 1", 0, got.vector,
                       msr.index);
            uint64_t const want = msr.index == ctl::address ? value.raw
                                                            : detail::own_value(msr.index);
            if (msr.index == ctl::address || detail::is_of_filters(msr.index)) {
                on.require(got.value == want, "REG-011"_rule, "RDMSR while TraceEn is 1", want,
                           got.value, msr.index);
            }
        }
        return on.result();
    }
};

/// While TraceEn stays 1, a WRMSR of another value raises #GP, and one of the same has no effect.
struct ctl_stays {
    static constexpr text name = "ctl-stays-while-tracing";
    static constexpr rule_list rules{"REG-021", "REG-020", "REG-009", "PRG-021"};
    static constexpr needs need = needs::enabling();

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const value = detail::with_trace_en(on.usual_ctl());
        if (!detail::enable(on, value)) { return on.result(); }
        on.accepts("REG-020"_rule, ctl::address, value.raw);
        for (auto const change :
             few{ctl{}.with(ctl::OS{true}), ctl{}.with(ctl::User{true}),
                 ctl{}.with(ctl::TSCEn{true}), ctl{}.with(ctl::DisRETC{true}),
                 ctl{}.with(ctl::CR3Filter{true}), ctl{}.with(ctl::MTCEn{true}),
                 ctl{}.with(ctl::BranchEn{true}), ctl{}.with(ctl::ADDR0_CFG{reg::addr_cfg::filter}),
                 ctl{}.with(ctl::ADDR0_CFG{reg::addr_cfg::trace_stop})}) {
            ctl const other{value.raw ^ change.raw};
            if (access::is_legal(on.caps(), other)) {
                on.refuses("REG-021"_rule, ctl::address, other.raw);
            }
        }
        on.accepts("REG-020"_rule, ctl::address, value.raw);
        detail::require_status<status::TriggerEn>(on, "REG-020"_rule, "TriggerEn", true);
        return on.result();
    }
};

/// A WRMSR that clears TraceEn may change every other field; a reserved bit still raises #GP.
struct ctl_clears {
    static constexpr text name = "ctl-clears-traceen";
    static constexpr rule_list rules{"REG-022", "REG-044", "REG-056", "REG-009", "REG-023",
                                     "REG-061", "PRG-021", "PRG-032", "REG-060"};
    static constexpr needs need = needs::enabling();

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const value = detail::with_trace_en(on.usual_ctl());
        if (!detail::enable(on, value)) { return on.result(); }
        auto const off = detail::without_trace_en(value);
        detail::for_each_bit(ctl::reserved_mask(), [&](uint64_t bit) {
            on.refuses("REG-044"_rule, ctl::address, off.raw | bit);
        });
        on.accepts("REG-022"_rule, ctl::address, ctl{}.with(ctl::User{true}).raw);
        detail::require_status<status::TriggerEn>(on, "REG-056"_rule, "TriggerEn", false);
        if (!detail::enable(on, value)) { return on.result(); }
        on.accepts("REG-022"_rule, ctl::address, 0);
        if (!detail::enable(on, value)) { return on.result(); }
        on.accepts("REG-022"_rule, ctl::address, off.raw);
        detail::require_status<status::TriggerEn>(on, "REG-061"_rule, "TriggerEn", false);
        if (on.set(status::address, detail::stopped.raw)) {
            status const kept = detail::status_of(on);
            on.require(kept.get<status::Stopped>(), "REG-060"_rule, "Stopped", 1, 0,
                       status::address);
        }
        return on.result();
    }
};

/// TraceEn = 1 with a single range, and with ToPA, as CPUID says.
struct enabling_output {
    static constexpr text name = "enabling-by-output-scheme";
    static constexpr rule_list rules{"REG-025", "REG-024", "REG-009", "REG-022"};
    static constexpr needs need = needs::enabling();

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (bool const topa : few{false, true}) {
            auto const value = detail::with_trace_en(on.usual_ctl().with(ctl::ToPA{topa}));
            rule const which = topa ? "REG-024"_rule : "REG-025"_rule;
            if (!on.set_usual_output()) { return on.result(); }
            on.writes_as_ruled(which, ctl::address, value.raw);
            on.accepts("REG-022"_rule, ctl::address, 0);
        }
        return on.result();
    }
};

/// TraceEn = 1 with BranchEn = 0.
struct enabling_branch_en {
    static constexpr text name = "enabling-without-branchen";
    static constexpr rule_list rules{"REG-040", "REG-009", "PRG-027"};
    static constexpr needs need = needs::enabling();

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!on.set_usual_output()) { return on.result(); }
        auto const value = detail::with_trace_en(on.usual_ctl().with(ctl::BranchEn{false}));
        on.writes_as_ruled("REG-040"_rule, ctl::address, value.raw);
        return on.result();
    }
};

/// TraceEn = 1 with each optional feature, on both sides of what CPUID enumerates.
struct enabling_features {
    static constexpr text name = "enabling-features";
    static constexpr rule_list rules{"REG-007", "REG-008", "REG-044", "REG-027", "REG-028",
                                     "REG-030", "REG-031", "REG-032", "REG-033", "REG-034",
                                     "REG-035", "REG-036", "REG-037", "REG-009", "PRG-022",
                                     "PRG-002", "REG-006"};
    static constexpr needs need = needs::enabling();

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (unsigned bit = 1; bit < 64; ++bit) {
            if (bit == ctl::FabricEn::lsb || bit == ctl::ToPA::lsb || bit == ctl::BranchEn::lsb) {
                continue;
            }
            auto const value = detail::with_trace_en(ctl{on.usual_ctl().raw | uint64_t{1} << bit});
            if (!on.set_usual_output()) { return on.result(); }
            auto const verdict = access::check_write(on.caps(), on.state(), ctl::address,
                                                     value.raw);
            rule const which = verdict ? "REG-007"_rule : verdict.broken;
            on.writes_as_ruled(which, ctl::address, value.raw);
            if (!on.set(ctl::address, 0)) { return on.result(); }
        }
        return on.result();
    }
};

/// OS = User = 0 is legal: TriggerEn is 1, ContextEn 0.
struct no_context {
    static constexpr text name = "neither-os-nor-user";
    static constexpr rule_list rules{"REG-041", "REG-057", "GEN-050", "GEN-023",
                                     "REG-056", "REG-058", "GEN-025"};
    static constexpr needs need = needs::enabling();

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!on.set_usual_output()) { return on.result(); }
        auto const value = detail::with_trace_en(on.usual_ctl().with(ctl::OS{false}));
        on.accepts("REG-041"_rule, ctl::address, value.raw);
        detail::require_status<status::TriggerEn>(on, "REG-056"_rule, "TriggerEn", true);
        detail::require_status<status::ContextEn>(on, "REG-057"_rule, "ContextEn", false);
        detail::require_status<status::FilterEn>(on, "REG-058"_rule, "FilterEn without a range",
                                                 on.caps().has_ip_filtering());
        return on.result();
    }
};

/// Code at CPL 0 with OS = 1: all three enables of STATUS.
struct kernel_context {
    static constexpr text name = "status-of-kernel-code";
    static constexpr rule_list rules{"REG-057", "REG-056", "REG-058", "REG-051",
                                     "GEN-024", "GEN-050", "GEN-023", "GEN-021"};
    static constexpr needs need = needs::enabling();

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!detail::enable(on, on.usual_ctl())) { return on.result(); }
        detail::require_status<status::TriggerEn>(on, "REG-056"_rule, "TriggerEn", true);
        detail::require_status<status::ContextEn>(on, "REG-057"_rule, "ContextEn", true);
        bool const filtering = on.caps().has_ip_filtering();
        detail::require_status<status::FilterEn>(on, filtering ? "REG-058"_rule : "REG-051"_rule,
                                                 "FilterEn", filtering);
        if (!on.set(ctl::address, 0)) { return on.result(); }
        if (!detail::enable(on, on.usual_ctl().with(ctl::OS{false}, ctl::User{true}))) {
            return on.result();
        }
        detail::require_status<status::ContextEn>(on, "REG-057"_rule, "ContextEn at CPL 0", false);
        return on.result();
    }
};

/// TraceEn = 1 with Stopped or Error set: no fault, and TriggerEn stays 0.
struct enabled_while_stopped {
    static constexpr text name = "enabled-while-stopped";
    static constexpr rule_list rules{"REG-043", "REG-056", "GEN-021",
                                     "GEN-020", "REG-062", "REG-004"};
    static constexpr needs need = needs::enabling();

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr uint64_t both = detail::stopped.raw | detail::error.raw;
        for (auto const bit : few{detail::stopped, detail::error}) {
            if (!on.set_usual_output() || !on.set(status::address, bit.raw)) { return on.result(); }
            on.accepts("REG-043"_rule, ctl::address, detail::with_trace_en(on.usual_ctl()).raw);
            detail::require_status<status::TriggerEn>(on, "REG-056"_rule, "TriggerEn", false);
            status const now = detail::status_of(on);
            on.require((now.raw & both) == bit.raw, "REG-043"_rule, "Error and Stopped", bit.raw,
                       now.raw & both, status::address);
            on.refuses("REG-004"_rule, status::address, 0);
            if (!on.set(ctl::address, 0)) { return on.result(); }
            // TriggerEn, ContextEn and FilterEn are the processor's.
            on.require(on.write(status::address, 0).is_done, "REG-062"_rule, "WRMSR after TraceEn",
                       0, 0, status::address);
            status const cleared = detail::status_of(on);
            on.require((cleared.raw & both) == 0, "REG-062"_rule, "Error and Stopped", 0,
                       cleared.raw & both, status::address);
            if (!detail::enable(on, on.usual_ctl())) { return on.result(); }
            detail::require_status<status::TriggerEn>(on, "REG-062"_rule, "TriggerEn", true);
            if (!on.set(ctl::address, 0)) { return on.result(); }
        }
        return on.result();
    }
};

/// While Stopped is 1 nothing is stored, and no output check is made.
struct nothing_while_stopped {
    static constexpr text name = "no-output-while-stopped";
    static constexpr rule_list rules{"OUT-007", "GEN-020", "GEN-021", "REG-060"};
    static constexpr needs need = needs::tracing().with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!on.set_usual_output()) { return on.result(); }
        // An offset that the output check would refuse.
        uint64_t const offset = on.uses_topa() ? 0x1001 : 0x2001;
        uint64_t const index = on.uses_topa() ? 0 : armed<T>::range_mask;
        if (!on.set_output(on.page(0), index, offset) ||
            !on.set(status::address, detail::stopped.raw)) {
            return on.result();
        }
        auto const got = on.run(snippets::branches, on.usual_ctl());
        if (!got.has_run) { return on.result(); }
        on.require(!got.status.template get<status::Error>(), "OUT-007"_rule, "Error", 0, 1,
                   status::address);
        on.require(got.offset() == offset, "OUT-007"_rule, "OutputOffset", offset, got.offset(),
                   ia32_rtit_output_mask_ptrs::address);
        on.require(got.status.template get<status::Stopped>(), "REG-060"_rule, "Stopped", 1, 0,
                   status::address);
        on.require(on.is_clear({3 * 4096, 8 * 4096}), "GEN-020"_rule, "bytes of trace");
        return on.result();
    }
};

using enabling_checks =
    type_list<locked_while_tracing, readable_while_tracing, ctl_stays, ctl_clears, enabling_output,
              enabling_branch_en, enabling_features, no_context, kernel_context,
              enabled_while_stopped, nothing_while_stopped>;

}  // namespace ptspec::suite::checks
