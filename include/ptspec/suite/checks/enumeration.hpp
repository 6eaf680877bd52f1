// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/legality.hpp>

/// Whether the values that CPUID enumerates agree with each other.
namespace ptspec::suite::checks {

namespace detail {

/// A register of CPUID as the target has it.
template <class Word, target T>
constexpr auto read_cpuid(armed<T>& on) noexcept -> Word {
    auto const leaf = on.query(Word::leaf, Word::subleaf);
    switch (Word::output) {
        case reg::cpuid_register::eax: return Word{leaf.eax};
        case reg::cpuid_register::ebx: return Word{leaf.ebx};
        case reg::cpuid_register::ecx: return Word{leaf.ecx};
        case reg::cpuid_register::edx: return Word{leaf.edx};
    }
    return {};
}

}  // namespace detail

/// Leaf 14H exists where CPUID.07H.0:EBX says that Intel PT does, and has an output scheme.
struct cpuid_leaf {
    static constexpr text name = "cpuid-leaf-14h";
    static constexpr rule_list rules{"REG-160", "REG-162"};
    static constexpr needs need{};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const first = on.query(0, 0);
        on.require(first.eax >= ecx::leaf, "REG-160"_rule, "highest leaf", ecx::leaf, first.eax);
        auto const schemes = detail::read_cpuid<ecx>(on);
        on.require(schemes.template get<ecx::TOPAOUT>() ||
                       schemes.template get<ecx::SNGLRNGOUT>() ||
                       schemes.template get<ecx::FABRIC>(),
                   "REG-162"_rule, "an output scheme in ECX", 1, schemes.raw);
        return on.result();
    }
};

/// Reserved bits of leaf 14H are 0.
struct cpuid_reserved {
    static constexpr text name = "cpuid-leaf-14h-reserved-bits";
    static constexpr rule_list rules{"REG-161", "REG-162"};
    static constexpr needs need{};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        require_no_reserved_bit<ebx>(on, "REG-161"_rule, "EBX");
        require_no_reserved_bit<ecx>(on, "REG-162"_rule, "ECX");
        return on.result();
    }

private:
    template <class Word, target T>
    static constexpr void require_no_reserved_bit(armed<T>& on, rule which, text what) noexcept {
        auto const word = detail::read_cpuid<Word>(on);
        uint32_t const wrong = word.reserved_bits_set();
        on.require(wrong == 0, which, what, word.raw & ~wrong, word.raw);
    }
};

/// Sub-leaf 1: at most four ranges, and encoding 0 in each bitmap of a feature that exists.
struct cpuid_subleaf {
    static constexpr text name = "cpuid-leaf-14h-sub-leaf-1";
    static constexpr rule_list rules{"REG-164", "REG-046", "REG-029"};
    static constexpr needs need{};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        using one_eax = reg::cpuid_14h_1_eax;
        using one_ebx = reg::cpuid_14h_1_ebx;
        auto const last = detail::read_cpuid<reg::cpuid_14h_0_eax>(on).raw;
        auto const features = detail::read_cpuid<ebx>(on);
        bool const has_cyc = features.template get<ebx::CPSB_CAM>();
        bool const has_mtc = features.template get<ebx::MTC>();
        bool const has_ranges = features.template get<ebx::IPFILT_WRSTPRSV>();
        on.require(last >= one_eax::subleaf || !(has_cyc || has_mtc || has_ranges), "REG-046"_rule,
                   "sub-leaf 1 of a processor with CYC, MTC or address ranges", 1, last);
        if (last < one_eax::subleaf) { return on.result(); }
        auto const counts = detail::read_cpuid<one_eax>(on);
        auto const ranges = counts.template get<one_eax::RANGECNT>();
        uint64_t const most = has_ranges ? reg::ia32_rtit_addr::count : 0;
        on.require(ranges <= most, "REG-164"_rule, "RANGECNT", most, ranges);
        if (has_mtc) {
            on.require((counts.template get<one_eax::MTC_PERIODS>() & 1) != 0, "REG-029"_rule,
                       "bit 0 of the MTC periods", 1, 0);
        }
        if (has_cyc) {
            auto const cycles = detail::read_cpuid<one_ebx>(on);
            on.require((cycles.template get<one_ebx::CYC_THRESHOLDS>() & 1) != 0, "REG-029"_rule,
                       "bit 0 of the CYC thresholds", 1, 0);
            on.require((cycles.template get<one_ebx::PSB_PERIODS>() & 1) != 0, "REG-029"_rule,
                       "bit 0 of the PSB periods", 1, 0);
        }
        return on.result();
    }
};

/// MENTRY without TOPAOUT means nothing.
struct cpuid_mentry {
    static constexpr text name = "cpuid-mentry";
    static constexpr rule_list rules{"REG-163"};
    static constexpr needs need{};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const schemes = detail::read_cpuid<ecx>(on);
        on.require(schemes.template get<ecx::TOPAOUT>() || !schemes.template get<ecx::MENTRY>(),
                   "REG-163"_rule, "MENTRY without TOPAOUT", 0, 1);
        return on.result();
    }
};

/// MTC needs the ratio of leaf 15H.
struct cpuid_crystal {
    static constexpr text name = "cpuid-leaf-15h";
    static constexpr rule_list rules{"REG-167"};
    static constexpr needs need = needs{}.with(features::mtc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const denominator = detail::read_cpuid<reg::cpuid_15h_eax>(on).raw;
        auto const numerator = detail::read_cpuid<reg::cpuid_15h_ebx>(on).raw;
        auto const hz = detail::read_cpuid<reg::cpuid_15h_ecx>(on).raw;
        // A processor may not enumerate it: a reader then has no time from MTC.
        on.observe("leaf 15H with the ratio of the crystal clock",
                   denominator != 0 && numerator != 0);
        on.require((denominator == 0) == (numerator == 0) || hz == 0, "REG-167"_rule,
                   "EAX and EBX of leaf 15H", denominator, numerator);
        return on.result();
    }
};

/// XSAVES component 8, where CPUID has it: a supervisor component of 128 bytes.
struct cpuid_xsaves {
    static constexpr text name = "cpuid-xsaves-component-8";
    static constexpr rule_list rules{"REG-140", "REG-141"};
    static constexpr needs need = needs{}.with(features::xsaves);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        using management = reg::cpuid_0dh_8_ecx;
        auto const managed = detail::read_cpuid<management>(on);
        on.require(managed.template get<management::Supervisor>(), "REG-140"_rule,
                   "CPUID.0DH.8:ECX[0]", 1, managed.raw);
        auto const offset = detail::read_cpuid<reg::cpuid_0dh_8_ebx>(on).raw;
        on.require(offset == 0, "REG-140"_rule, "CPUID.0DH.8:EBX", 0, offset);
        auto const size = detail::read_cpuid<reg::cpuid_0dh_8_eax>(on).raw;
        on.require(size == sizeof(reg::xsave_pt_state), "REG-141"_rule, "CPUID.0DH.8:EAX",
                   sizeof(reg::xsave_pt_state), size);
        return on.result();
    }
};

using enumeration_checks =
    type_list<cpuid_leaf, cpuid_reserved, cpuid_subleaf, cpuid_mentry, cpuid_crystal, cpuid_xsaves>;

}  // namespace ptspec::suite::checks
