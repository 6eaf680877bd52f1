// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/times.hpp>
#include <ptspec/driver/reset.hpp>
#include <ptspec/driver/switch_context.hpp>

/// XSAVES and XRSTORS, resets, and the procedures of drivers.
namespace ptspec::suite::checks {

namespace detail {

inline constexpr needs xsaves_needs = needs::enabling().with(ability::xsaves);

using pt_state = reg::xsave_pt_state;

/// The reserved quadwords of the image, from the first one up.
inline constexpr unsigned first_reserved = pt_state::quadword_of<pt_state::IA32_RTIT_ADDR1_B> + 1;
inline constexpr unsigned quadword_count = sizeof(pt_state) / sizeof(uint64_t);

/// The MSRs that XSAVES saves, with values of their own, TraceEn = 0.
template <target T>
constexpr auto distinct_image(armed<T>& on) noexcept -> pt_state {
    using pointers = ia32_rtit_output_mask_ptrs;
    auto const position = pointers{pointers::forced_1_mask()}.with(
        pointers::OutputOffset{wrapped{0x10}});
    auto made = pt_state{}.with(pt_state::IA32_RTIT_CTL{on.usual_ctl()},
                                pt_state::IA32_RTIT_OUTPUT_BASE{wrapped{on.page(2)}},
                                pt_state::IA32_RTIT_OUTPUT_MASK_PTRS{position});
    for_each_of_filters(on.caps(), [&](access::pt_msr const& msr) {
        if (msr.is_saved) { made.quadwords[msr.quadword] = own_value(msr.index); }
    });
    return made;
}
/// Requires that each MSR has the value of an image.
template <target T>
constexpr void require_image(armed<T>& on, rule which, pt_state const& image) noexcept {
    for (access::pt_msr const& msr : access::pt_msrs) {
        if (!msr.is_saved || !access::exists(on.caps(), msr.index)) { continue; }
        auto const got = on.read(msr.index);
        uint64_t const want = image.quadwords[msr.quadword];
        // The processor keeps its bits of STATUS.
        if (msr.index == status::address) { continue; }
        on.require(got.is_done && got.value == want, which, "RDMSR after XRSTORS", want, got.value,
                   msr.index);
    }
}

}  // namespace detail

/// XSAVES stores CTL as it is, clears TraceEn, and stores the other MSRs as they are then.
struct xsaves_stores {
    static constexpr text name = "xsaves";
    static constexpr rule_list rules{"REG-142", "REG-141", "GEN-184", "PRG-110", "PRG-111"};
    static constexpr needs need = detail::xsaves_needs;

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!on.set_usual_output() || !detail::set_own_values(on)) { return on.result(); }
        auto const value = detail::with_trace_en(on.usual_ctl());
        if (!on.set(ctl::address, value.raw)) { return on.result(); }
        detail::pt_state saved{};
        for (uint64_t& word : saved.quadwords) { word = 0x5555'5555'5555'5555; }
        if (!on.xsaves(saved).is_done) {
            on.require(false, "REG-142"_rule, "XSAVES must not fault");
            return on.result();
        }
        uint64_t const saved_ctl = saved.template get<detail::pt_state::IA32_RTIT_CTL>().raw;
        on.require(saved_ctl == value.raw, "REG-142"_rule, "CTL in the image", value.raw,
                   saved_ctl);
        auto const now = on.read(ctl::address);
        uint64_t const off = detail::without_trace_en(value).raw;
        on.require(now.value == off, "REG-142"_rule, "CTL after XSAVES", off, now.value,
                   ctl::address);
        for (access::pt_msr const& msr : access::pt_msrs) {
            if (!msr.is_saved || msr.index == ctl::address) { continue; }
            uint64_t const seen = saved.quadwords[msr.quadword];
            if (!access::exists(on.caps(), msr.index)) { continue; }
            auto const want = on.read(msr.index);
            on.require(seen == want.value, "REG-141"_rule, "a quadword of the image", want.value,
                       seen, msr.index);
        }
        for (unsigned i = detail::first_reserved; i < detail::quadword_count; ++i) {
            on.require(saved.quadwords[i] == 0, "REG-142"_rule, "a reserved quadword", 0,
                       saved.quadwords[i]);
        }
        return on.result();
    }
};

/// XRSTORS loads each MSR, and TraceEn last.
struct xrstors_loads {
    static constexpr text name = "xrstors";
    static constexpr rule_list rules{"REG-144", "REG-141", "REG-143",
                                     "PRG-110", "PRG-112", "GEN-184"};
    static constexpr needs need = detail::xsaves_needs;

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!on.set_usual_output()) { return on.result(); }
        auto const image = detail::distinct_image(on);
        on.require(on.xrstors(image).is_done, "REG-144"_rule, "XRSTORS must not fault");
        detail::require_image(on, "REG-141"_rule, image);
        // TraceEn in the image: tracing begins.
        if (!on.set_usual_output()) { return on.result(); }
        using detail::pt_state;
        auto traced = image.with(pt_state::IA32_RTIT_CTL{detail::with_trace_en(on.usual_ctl())},
                                 pt_state::IA32_RTIT_OUTPUT_BASE{on.state().output.base},
                                 pt_state::IA32_RTIT_OUTPUT_MASK_PTRS{on.state().output.mask_ptrs});
        on.require(on.xrstors(traced).is_done, "REG-144"_rule, "XRSTORS must not fault");
        on.require(detail::is_trace_en(on), "PRG-112"_rule, "TraceEn after XRSTORS", 1, 0,
                   ctl::address);
        if (on.is_broken()) { return on.result(); }
        detail::require_status<status::TriggerEn>(on, "GEN-184"_rule, "TriggerEn", true);
        // While TraceEn is 1 XRSTORS faults.
        on.require(on.xrstors(image).faulted(), "REG-143"_rule, "XRSTORS must raise #GP", 1, 0);
        on.require(detail::is_trace_en(on), "REG-143"_rule, "TraceEn after XRSTORS that faults", 1,
                   0, ctl::address);
        return on.result();
    }
};

/// XRSTORS refuses the values that WRMSR refuses, and reserved quadwords; TraceEn is 0 then.
struct xrstors_refuses {
    static constexpr text name = "xrstors-refuses";
    static constexpr rule_list rules{"REG-144", "REG-145", "REG-010", "REG-141", "PRG-025"};
    static constexpr needs need = detail::xsaves_needs;

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!on.set_usual_output()) { return on.result(); }
        auto const image = detail::distinct_image(on);
        using detail::pt_state;
        auto const refuse = [&](unsigned quadword, uint64_t bits, text what) {
            detail::for_each_bit(bits, [&](uint64_t bit) {
                if (on.is_broken()) { return; }
                auto wrong = image;
                wrong.quadwords[quadword] |= bit;
                on.require(on.xrstors(wrong).faulted(), "REG-144"_rule, what, 1, 0);
                on.require(!detail::is_trace_en(on), "REG-145"_rule,
                           "TraceEn after XRSTORS that faults", 0, 1, ctl::address);
            });
        };
        refuse(pt_state::quadword_of<pt_state::IA32_RTIT_CTL>, ctl::reserved_mask(),
               "a reserved bit of CTL");
        refuse(pt_state::quadword_of<pt_state::IA32_RTIT_OUTPUT_BASE>,
               ia32_rtit_output_base::reserved_mask(on.caps().max_phys_addr().bits),
               "a reserved bit of OUTPUT_BASE");
        refuse(pt_state::quadword_of<pt_state::IA32_RTIT_STATUS>, status::reserved_mask(),
               "a reserved bit of STATUS");
        if (on.caps().has_cr3_filtering()) {
            refuse(pt_state::quadword_of<pt_state::IA32_RTIT_CR3_MATCH>,
                   access::ia32_rtit_cr3_match::reserved_mask(), "a reserved bit of CR3_MATCH");
        }
        if (on.caps().address_ranges() > 0) {
            refuse(pt_state::quadword_of<pt_state::IA32_RTIT_ADDR0_A>,
                   ~low_bits(on.caps().linear_address_bits() - 1), "ADDR0_A that is not canonical");
        }
        for (unsigned i = detail::first_reserved; i < detail::quadword_count; ++i) {
            refuse(i, uint64_t{1} << 4 * i, "a reserved quadword");
        }
        return on.result();
    }
};

/// Warm reset: with CPUID.14H.0:EBX.IPFILT_WRSTPRSV only TraceEn is cleared, otherwise all.
struct warm_reset_state {
    static constexpr text name = "warm-reset";
    static constexpr rule_list rules{"REG-091", "REG-092", "REG-093", "PRG-070",
                                     "PRG-071", "GEN-291", "GEN-022"};
    static constexpr needs need = needs::enabling().with(ability::reset);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!detail::enable(on, on.usual_ctl())) { return on.result(); }
        auto before = on.state();
        if (!on.reset(reset_kind::warm)) {
            on.skip("the target was not reset");
            return on.result();
        }
        bool const keeps = on.caps().has_ip_filtering();
        rule const which = keeps ? "REG-091"_rule : "REG-092"_rule;
        auto const want = keeps ? access::disabled(before) : access::msr_state{};
        for (access::pt_msr const& msr : access::pt_msrs) {
            if (!access::exists(on.caps(), msr.index)) { continue; }
            auto const got = on.read(msr.index);
            // What is pending of the count and the position is not known exactly.
            if (keeps && (msr.index == status::address ||
                          msr.index == ia32_rtit_output_mask_ptrs::address)) {
                continue;
            }
            on.require(got.is_done && got.value == access::value_of(want, msr.index), which,
                       "RDMSR after a warm reset", access::value_of(want, msr.index), got.value,
                       msr.index);
        }
        detail::require_status<status::TriggerEn>(on, "REG-093"_rule, "TriggerEn", false);
        return on.result();
    }
};

/// Cold reset: all MSRs are 0, and LowerMask is ones.
struct cold_reset_state {
    static constexpr text name = "cold-reset";
    static constexpr rule_list rules{"REG-090", "PRG-070", "REG-072"};
    static constexpr needs need{.abilities = ability_set{}.with(ability::reset)};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!detail::set_own_values(on) || !on.set(ctl::address, ctl{}.with(ctl::User{true}).raw) ||
            !on.set(status::address, detail::stopped.raw)) {
            return on.result();
        }
        if (!on.reset(reset_kind::cold)) {
            on.skip("the target was not reset");
            return on.result();
        }
        for (access::pt_msr const& msr : access::pt_msrs) {
            if (!access::exists(on.caps(), msr.index)) { continue; }
            auto const got = on.read(msr.index);
            uint64_t const want = access::value_of(access::msr_state{}, msr.index);
            on.require(got.is_done && got.value == want, "REG-090"_rule, "RDMSR after a cold reset",
                       want, got.value, msr.index);
        }
        return on.result();
    }
};

/// Clearing TraceEn stores all bytes, and resets nothing else.
struct flush_at_disable {
    static constexpr text name = "flush";
    static constexpr rule_list rules{"PRG-060", "PRG-062", "PRG-043", "OUT-004",
                                     "OUT-005", "REG-192", "GEN-183", "PRG-063"};
    static constexpr needs need = needs::tracing().with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::DisRETC{true});
        if (!on.trace(snippets::branches, with).has_run) { return on.result(); }
        detail::require_branches(on, "PRG-060"_rule);
        auto const now = on.read(ctl::address);
        on.require(now.value == with.raw, "PRG-043"_rule, "CTL after TraceEn became 0", with.raw,
                   now.value, ctl::address);
        uint64_t const base = on.page(0);
        auto const kept = on.read(ia32_rtit_output_base::address);
        on.require(kept.value == base, "PRG-043"_rule, "OUTPUT_BASE", base, kept.value,
                   ia32_rtit_output_base::address);
        return on.result();
    }
};

/// Saves a context with the procedure of a driver, changes the MSRs, and restores it.
struct context_switch {
    static constexpr text name = "context-switch";
    static constexpr rule_list rules{"PRG-100", "PRG-101", "REG-193", "REG-194"};
    static constexpr needs need = needs::tracing().with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl();
        if (!detail::enable(on, with)) { return on.result(); }
        port_of<armed<T>> port{on};
        auto const saved = driver::save(port);
        on.require(!saved.fault.happened, "PRG-100"_rule, "a WRMSR or RDMSR of saving", 0, 1,
                   saved.fault.index);
        on.require(!detail::is_trace_en(on), "PRG-100"_rule, "TraceEn after saving", 0, 1,
                   ctl::address);
        if (on.is_broken()) { return on.result(); }
        // Another context.
        if (!on.set(status::address, 0) || !on.set(ctl::address, 0)) { return on.result(); }
        auto const restored = driver::restore(port, saved.state);
        on.require(!restored.fault.happened, "PRG-101"_rule, "a WRMSR of restoring", 0, 1,
                   restored.fault.index);
        auto const now = on.read(ctl::address);
        uint64_t const want = detail::with_trace_en(with).raw;
        on.require(now.value == want, "PRG-101"_rule, "CTL after restoring", want, now.value,
                   ctl::address);
        detail::require_status<status::TriggerEn>(on, "PRG-101"_rule, "TriggerEn", true);
        return on.result();
    }
};

using state_checks = type_list<xsaves_stores, xrstors_loads, xrstors_refuses, warm_reset_state,
                               cold_reset_state, flush_at_disable, context_switch>;

}  // namespace ptspec::suite::checks
