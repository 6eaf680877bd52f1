// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/armed.hpp>

/// Which values WRMSR accepts while TraceEn is 0.
namespace ptspec::suite::checks {

using namespace suite::literals;
using ctl = ia32_rtit_ctl;
using status = ia32_rtit_status;
using ebx = reg::cpuid_14h_0_ebx;
using ecx = reg::cpuid_14h_0_ecx;

/// Text as a template argument.
template <size_t Size>
struct name_argument {
    char letters[Size] = {};

    consteval name_argument(char const (&literal)[Size]) noexcept {
        for (size_t i = 0; i < Size; ++i) { letters[i] = literal[i]; }
    }
    [[nodiscard]] constexpr auto view() const noexcept -> text { return {letters, Size - 1}; }
};

/// Bits of a word that are no field.
template <unsigned Msb, unsigned Lsb>
struct bits {
    static constexpr unsigned msb = Msb;
    static constexpr unsigned lsb = Lsb;
};

namespace detail {

using namespace ptspec::detail;

/// Calls `take` with each bit of a mask.
constexpr void for_each_bit(uint64_t mask, auto take) noexcept {
    for (; mask != 0; mask &= mask - 1) { take(mask & (~mask + 1)); }
}
/// Calls `take` with the values of a field that a check writes: all of up to 32; of a wider field
/// each bit alone, and all.
template <class Field>
constexpr void for_each_value(auto take) noexcept {
    constexpr unsigned width = Field::msb - Field::lsb + 1;
    if constexpr (width <= 5) {
        for (uint64_t value = 0; value < uint64_t{1} << width; ++value) {
            take(value << Field::lsb);
        }
    } else {
        take(0);
        uint64_t const all = low_bits(width) << Field::lsb;
        for_each_bit(all, take);
        take(all);
    }
}

}  // namespace detail

/// Values of fields of an MSR while TraceEn is 0: each alone, and with other bits that are legal.
/// Whether WRMSR faults must be as the rules say for this processor, on both sides of each bound.
template <name_argument Name, uint32_t Index, name_argument Rule, class... Fields>
struct values {
    static constexpr text name = Name.view();
    static constexpr rule_list rules = rule_list{"REG-009"}.after(rule_of(Rule.view()));
    static constexpr needs need{};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!access::exists(on.caps(), Index)) {
            on.skip("the processor lacks the MSR");
            return on.result();
        }
        uint64_t const others = others_of(on.caps());
        (..., detail::for_each_value<Fields>([&](uint64_t value) {
             on.writes_as_ruled(rules.ids[0], Index, value);
             if (others != 0) { on.writes_as_ruled(rules.ids[0], Index, value | others); }
         }));
        return on.result();
    }

private:
    static constexpr uint64_t all_ranges = ptspec::detail::field_mask<ctl::ADDR0_CFG> |
                                           ptspec::detail::field_mask<ctl::ADDR1_CFG> |
                                           ptspec::detail::field_mask<ctl::ADDR2_CFG> |
                                           ptspec::detail::field_mask<ctl::ADDR3_CFG>;

    /// Legal bits of IA32_RTIT_CTL that need no other: those that are not in `Fields`.
    static constexpr auto others_of(cpu::capabilities const& caps) noexcept -> uint64_t {
        if (Index != ctl::address) { return 0; }
        uint64_t const mine = (... | (low_bits(Fields::msb - Fields::lsb + 1) << Fields::lsb));
        uint64_t const flags = ptspec::detail::field_mask<ctl::TraceEn> |
                               ptspec::detail::field_mask<ctl::FabricEn> |
                               ptspec::detail::field_mask<ctl::MTCFreq> |
                               ptspec::detail::field_mask<ctl::CycThresh> |
                               ptspec::detail::field_mask<ctl::PSBFreq> | all_ranges;
        return access::writable_ctl_mask(caps) & ~flags & ~mine;
    }
};

template <name_argument Name, name_argument Rule, class... Fields>
using ctl_values = values<Name, ctl::address, Rule, Fields...>;
template <name_argument Name, name_argument Rule, class... Fields>
using status_values = values<Name, status::address, Rule, Fields...>;

using ctl_reserved = ctl_values<"ctl-reserved-bits", "REG-044", bits<18, 18>, bits<23, 23>,
                                bits<30, 28>, bits<54, 48>, bits<63, 57>>;
using ctl_free = ctl_values<"ctl-bits-of-every-processor", "REG-039", ctl::OS, ctl::User,
                            ctl::TSCEn, ctl::DisRETC>;
using ctl_branch_en = ctl_values<"ctl-branchen-without-traceen", "REG-040", ctl::BranchEn>;
using ctl_topa = ctl_values<"ctl-topa", "REG-024", ctl::ToPA>;
using ctl_fabric = ctl_values<"ctl-fabricen", "REG-026", ctl::FabricEn>;
using ctl_cyc_psb =
    ctl_values<"ctl-cyc-and-psb", "REG-027", ctl::CYCEn, ctl::CycThresh, ctl::PSBFreq>;
using ctl_frequencies =
    ctl_values<"ctl-frequencies", "REG-028", ctl::MTCFreq, ctl::CycThresh, ctl::PSBFreq>;
using ctl_mtc = ctl_values<"ctl-mtc", "REG-030", ctl::MTCEn, ctl::MTCFreq>;
using ctl_cr3_filter = ctl_values<"ctl-cr3filter", "REG-031", ctl::CR3Filter>;
using ctl_ptwrite = ctl_values<"ctl-ptwrite", "REG-032", ctl::PTWEn, ctl::FUPonPTW>;
using ctl_power = ctl_values<"ctl-pwrevten", "REG-033", ctl::PwrEvtEn>;
using ctl_inject = ctl_values<"ctl-injectpsbpmionenable", "REG-034", ctl::InjectPsbPmiOnEnable>;
using ctl_event = ctl_values<"ctl-eventen", "REG-035", ctl::EventEn>;
using ctl_dis_tnt = ctl_values<"ctl-distnt", "REG-036", ctl::DisTNT>;
using ctl_ranges = ctl_values<"ctl-addrn-cfg", "REG-037", ctl::ADDR0_CFG, ctl::ADDR1_CFG,
                              ctl::ADDR2_CFG, ctl::ADDR3_CFG>;

using status_reserved =
    status_values<"status-reserved-bits", "REG-052", bits<3, 3>, bits<31, 8>, bits<63, 49>>;
using status_ignored = status_values<"status-write-ignored", "REG-050", status::FilterEn,
                                     status::ContextEn, status::TriggerEn>;
using status_errors =
    status_values<"status-error-and-stopped", "REG-053", status::Error, status::Stopped>;
using status_pending =
    status_values<"status-pending", "REG-054", status::PendPSB, status::PendToPAPMI>;
using status_count = status_values<"status-packetbytecnt", "REG-055", status::PacketByteCnt>;

using base_values =
    values<"output-base", ia32_rtit_output_base::address, "REG-070", bits<6, 0>, bits<63, 7>>;
using cr3_values =
    values<"cr3-match", access::ia32_rtit_cr3_match::address, "REG-074", bits<4, 0>, bits<63, 5>>;

/// A base that is a multiple of 128 and not of 4096 is legal.
struct base_of_128 {
    static constexpr text name = "output-base-of-128";
    static constexpr rule_list rules{"REG-071", "REG-080"};
    static constexpr needs need{.pages = 1, .output = wanted_output::any};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (uint64_t low = 0x80; low < 0x1000; low += 0x80) {
            on.accepts("REG-071"_rule, ia32_rtit_output_base::address, on.page(0) + low);
        }
        return on.result();
    }
};

/// Each value of OUTPUT_MASK_PTRS is legal, and LowerMask reads as ones.
struct mask_ptrs_values {
    static constexpr text name = "output-mask-ptrs";
    static constexpr rule_list rules{"REG-072", "REG-073", "PRG-024"};
    static constexpr needs need{.output = wanted_output::any};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr uint64_t ones = ia32_rtit_output_mask_ptrs::forced_1_mask();
        auto const write = [&](rule which, uint64_t value) {
            on.accepts(which, ia32_rtit_output_mask_ptrs::address, value, value | ones);
        };
        detail::for_each_bit(ones, [&](uint64_t bit) { write("REG-072"_rule, bit); });
        detail::for_each_bit(~ones, [&](uint64_t bit) { write("REG-073"_rule, bit); });
        write("REG-072"_rule, 0);
        write("REG-073"_rule, ~uint64_t{0});
        return on.result();
    }
};

/// The ends of an address range must be canonical; nothing else is checked.
struct range_values {
    static constexpr text name = "addrn-canonical";
    static constexpr rule_list rules{"REG-076", "REG-077", "REG-009"};
    static constexpr needs need = needs{}.with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        unsigned const width = on.caps().linear_address_bits();
        uint64_t const half = uint64_t{1} << (width - 1);
        for (unsigned n = 0; n < on.caps().address_ranges(); ++n) {
            for (auto const end : few{access::range_end::a, access::range_end::b}) {
                auto const index = reg::ia32_rtit_addr::address(n, end);
                on.accepts("REG-076"_rule, index, 0);
                on.accepts("REG-076"_rule, index, half - 1);
                on.accepts("REG-076"_rule, index, ~uint64_t{0} - half + 1);
                on.accepts("REG-076"_rule, index, ~uint64_t{0});
                on.refuses("REG-076"_rule, index, half);
                on.refuses("REG-076"_rule, index, ~uint64_t{0} - half);
                on.refuses("REG-076"_rule, index, uint64_t{1} << 63);
                for (unsigned bit = width - 1; bit < 64; ++bit) {
                    on.refuses("REG-076"_rule, index, uint64_t{1} << bit);
                }
            }
            auto const a = reg::ia32_rtit_addr::address(n, access::range_end::a);
            auto const b = reg::ia32_rtit_addr::address(n, access::range_end::b);
            on.accepts("REG-077"_rule, b, 0x1000);
            on.accepts("REG-077"_rule, a, 0x2000);
            on.accepts("REG-077"_rule, b, 0x1FFF);
        }
        return on.result();
    }
};

/// Each MSR keeps its value while the others are written.
struct storage {
    static constexpr text name = "msrs-are-separate";
    static constexpr rule_list rules{"REG-018", "REG-080", "REG-015"};
    static constexpr needs need{};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (access::pt_msr const& msr : access::pt_msrs) {
            if (access::exists(on.caps(), msr.index)) {
                if (!on.set(msr.index, value_for(msr.index))) { return on.result(); }
            }
        }
        for (access::pt_msr const& msr : access::pt_msrs) {
            if (!access::exists(on.caps(), msr.index)) { continue; }
            auto const got = on.read(msr.index);
            // STATUS has bits that no WRMSR changes.
            auto const want = access::value_of(on.state(), msr.index);
            on.require(got.is_done && got.value == want, "REG-018"_rule, "RDMSR of another MSR's",
                       want, got.value, msr.index, value_for(msr.index));
        }
        return on.result();
    }

private:
    /// A legal value of its own for each MSR.
    static constexpr auto value_for(msr_index index) noexcept -> uint64_t {
        uint64_t const number = index.value;
        switch (index.value) {
            case ctl::address: return ctl{}.with(ctl::User{true}, ctl::DisRETC{true}).raw;
            case status::address: return status{}.with(status::Stopped{true}).raw;
            case ia32_rtit_output_mask_ptrs::address:
                return number << 40 | ia32_rtit_output_mask_ptrs::forced_1_mask();
            default: return number << 12;
        }
    }
};

/// Bits that are legal but useless together are accepted.
struct useless_together {
    static constexpr text name = "ctl-useless-together";
    static constexpr rule_list rules{"REG-047", "REG-023", "PRG-026"};
    static constexpr needs need{};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        ctl const none{};
        auto const write = [&](ctl value) {
            if (access::is_legal(on.caps(), value)) {
                on.accepts("REG-047"_rule, ctl::address, value.raw);
            }
        };
        write(none.with(ctl::CYCEn{true}));
        write(none.with(ctl::CR3Filter{true}));
        write(none.with(ctl::DisTNT{true}));
        write(none.with(ctl::FUPonPTW{true}));
        write(none.with(ctl::MTCEn{true}));
        write(none.with(ctl::ADDR0_CFG{reg::addr_cfg::filter}));
        write(none.with(ctl::ADDR0_CFG{reg::addr_cfg::trace_stop}));
        for (uint64_t value = 1; value < 16; ++value) {
            write(none.with(ctl::CycThresh{wrapped{value}}));
            write(none.with(ctl::MTCFreq{wrapped{value}}));
        }
        on.accepts("REG-023"_rule, ctl::address,
                   none.with(ctl::OS{true}, ctl::User{true}, ctl::TSCEn{true}, ctl::DisRETC{true},
                             ctl::BranchEn{true})
                       .raw);
        on.accepts("REG-023"_rule, ctl::address, 0);
        return on.result();
    }
};

/// MSRs that the processor lacks raise #GP, and those that it has do not.
template <name_argument Name, name_argument Rule, bool (*IsMine)(uint32_t),
          bool IsWithoutPt = false>
struct presence {
    static constexpr text name = Name.view();
    static constexpr rule_list rules = rule_list{"REG-009"}.after(rule_of(Rule.view()));
    static constexpr needs need{.is_without_pt = IsWithoutPt, .asks_absence = true};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr rule which = rule_of(Rule.view());
        for (uint32_t index = access::first_pt_msr; index <= access::last_pt_msr; ++index) {
            if (!IsMine(index)) { continue; }
            auto const got = on.read(index);
            bool const exists = access::exists(on.caps(), index);
            on.require(got.is_done == exists, which,
                       exists ? text{"RDMSR must not fault"} : text{"RDMSR must raise #GP"},
                       !exists, got.faulted(), index);
            if (!exists) {
                on.refuses(which, index, 0);
                on.refuses(which, index, 0x1000);
            }
        }
        return on.result();
    }
};

using control_msrs = presence<"msrs-ctl-and-status", "REG-015", [](uint32_t index) {
    return index == ctl::address || index == status::address;
}>;
using output_msrs = presence<"msrs-output", "REG-012", [](uint32_t index) {
    return index == ia32_rtit_output_base::address || index == ia32_rtit_output_mask_ptrs::address;
}>;
using cr3_msr = presence<"msr-cr3-match", "REG-013", [](uint32_t index) {
    return index == access::ia32_rtit_cr3_match::address;
}>;
using range_msrs = presence<"msrs-addrn", "REG-014", [](uint32_t index) {
    return index >= reg::ia32_rtit_addr::address(0, access::range_end::a);
}>;
using unknown_msrs = presence<"msrs-between", "REG-017", [](uint32_t index) {
    return (index > ia32_rtit_output_mask_ptrs::address && index < ctl::address) ||
           (index > access::ia32_rtit_cr3_match::address &&
            index < reg::ia32_rtit_addr::address(0, access::range_end::a));
}>;

using msrs_without_pt =
    presence<"msrs-without-intel-pt", "REG-001", [](uint32_t) { return true; }, true>;

using legality_checks = type_list<
    ctl_reserved, ctl_free, ctl_branch_en, ctl_topa, ctl_fabric, ctl_cyc_psb, ctl_frequencies,
    ctl_mtc, ctl_cr3_filter, ctl_ptwrite, ctl_power, ctl_inject, ctl_event, ctl_dis_tnt, ctl_ranges,
    status_reserved, status_ignored, status_errors, status_pending, status_count, base_values,
    cr3_values, base_of_128, mask_ptrs_values, range_values, storage, useless_together,
    control_msrs, output_msrs, cr3_msr, range_msrs, unknown_msrs, msrs_without_pt>;

}  // namespace ptspec::suite::checks
