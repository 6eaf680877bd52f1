// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/legality.hpp>

/// Whether the values that CPUID enumerates agree with each other.
namespace ptspec::suite::checks {

/// Leaf 14H exists where CPUID.07H.0:EBX says that Intel PT does, and has an output scheme.
struct cpuid_leaf {
    static constexpr text name = "cpuid-leaf-14h";
    static constexpr rule_list rules{"REG-160", "PRG-001", "REG-162"};
    static constexpr needs need{};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const first = on.query(0, 0);
        on.require(first.eax >= 0x14, "REG-160"_rule, "highest leaf", 0x14, first.eax);
        auto const leaf = on.query(0x14, 0);
        on.require((leaf.ecx & 0xD) != 0, "REG-162"_rule, "an output scheme in ECX", 1, leaf.ecx);
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
        auto const leaf = on.query(0x14, 0);
        on.require((leaf.ebx >> 10) == 0, "REG-161"_rule, "EBX", leaf.ebx & 0x3FF, leaf.ebx);
        on.require((leaf.ecx & 0x7FFF'FFF0) == 0, "REG-162"_rule, "ECX", leaf.ecx & 0x8000'000F,
                   leaf.ecx);
        return on.result();
    }
};

/// Sub-leaf 1: at most four ranges, and encoding 0 in each bitmap of a feature that exists.
struct cpuid_subleaf {
    static constexpr text name = "cpuid-leaf-14h-sub-leaf-1";
    static constexpr rule_list rules{"REG-164", "REG-046", "REG-029"};
    static constexpr needs need{};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const leaf = on.query(0x14, 0);
        auto const more = on.query(0x14, 1);
        bool const has_more = leaf.eax >= 1;
        bool const needs_more = (leaf.ebx & 0x0E) != 0;
        on.require(has_more || !needs_more, "REG-046"_rule,
                   "sub-leaf 1 of a processor with CYC, MTC or address ranges", 1, leaf.eax);
        if (!has_more) { return on.result(); }
        on.require((more.eax & 7) <= 4, "REG-164"_rule, "RANGECNT", 4, more.eax & 7);
        bool const has_ranges = (leaf.ebx & 4) != 0;
        on.require(has_ranges || (more.eax & 7) == 0, "REG-164"_rule, "RANGECNT", 0, more.eax & 7);
        if ((leaf.ebx & 8) != 0) {
            on.require((more.eax >> 16 & 1) != 0, "REG-029"_rule, "bit 0 of the MTC periods", 1, 0);
        }
        if ((leaf.ebx & 2) != 0) {
            on.require((more.ebx & 1) != 0, "REG-029"_rule, "bit 0 of the CYC thresholds", 1, 0);
            on.require((more.ebx >> 16 & 1) != 0, "REG-029"_rule, "bit 0 of the PSB periods", 1, 0);
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
        auto const leaf = on.query(0x14, 0);
        on.require((leaf.ecx & 3) != 2, "REG-163"_rule, "MENTRY without TOPAOUT", 0, leaf.ecx & 3);
        return on.result();
    }
};

/// MTC needs the ratio of leaf 15H.
struct cpuid_crystal {
    static constexpr text name = "cpuid-leaf-15h";
    static constexpr rule_list rules{"REG-167", "PKT-301"};
    static constexpr needs need = needs{}.with(features::mtc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const leaf = on.query(0x15, 0);
        // A processor may not enumerate it: a reader then has no time from MTC.
        on.observe("leaf 15H with the ratio of the crystal clock", leaf.eax != 0 && leaf.ebx != 0);
        on.require((leaf.eax == 0) == (leaf.ebx == 0) || leaf.ecx == 0, "REG-167"_rule,
                   "EAX and EBX of leaf 15H", leaf.eax, leaf.ebx);
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
        auto const leaf = on.query(0x0D, 8);
        on.require((leaf.ecx & 1) != 0, "REG-140"_rule, "CPUID.0DH.8:ECX[0]", 1, leaf.ecx);
        on.require(leaf.ebx == 0, "REG-140"_rule, "CPUID.0DH.8:EBX", 0, leaf.ebx);
        on.require(leaf.eax == 0x80, "REG-141"_rule, "CPUID.0DH.8:EAX", 0x80, leaf.eax);
        return on.result();
    }
};

using enumeration_checks =
    type_list<cpuid_leaf, cpuid_reserved, cpuid_subleaf, cpuid_mentry, cpuid_crystal, cpuid_xsaves>;

}  // namespace ptspec::suite::checks
