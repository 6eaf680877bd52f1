// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/flag_set.hpp>

namespace ptspec::cpu {

/// A deviation of a processor from the architecture. The lower ones matter to drivers. Those from
/// `bdm70` on are named after errata and matter to decoders.
enum class quirk : uint32_t {
    /// A write of IA32_RTIT_CTL that sets TraceEn without BranchEn faults. Source: REG-040.
    branch_en_always_on = 1U << 0,
    /// No tracing in VMX operation. Source: REG-110, REG-121.
    no_vmx = 1U << 1,
    /// Single-range output of more than 4 KB is not reliable.
    single_range_one_page = 1U << 2,
    /// A ToPA table has one region and a link to itself. Source: REG-163.
    single_entry_topa = 1U << 3,
    /// Intel PT and LBR, BTS, BTM and LER are mutually exclusive. Source: REG-180.
    lbr_exclusive = 1U << 4,
    /// The MSRs belong to a core, not to a logical processor: write them on the core's first
    /// thread.
    core_scoped_msrs = 1U << 5,
    /// XSAVES does not manage the state of Intel PT.
    no_xsaves = 1U << 6,
    /// P-cores and E-cores enumerate different capabilities: execute CPUID on each logical
    /// processor.
    per_core_type_caps = 1U << 7,
    /// Fewer CYC thresholds than the first processors with CYC packets.
    short_cyc_bitmap = 1U << 8,

    bdm70 = 1U << 9,    ///< a spurious PSB+ may precede TIP.PGE
    bdm64 = 1U << 10,   ///< the branch before a TSX abort may have a wrong target
    skd007 = 1U << 11,  ///< an OVF may replace the second byte of a CYC
    skd022 = 1U << 12,  ///< a VM entry that clears TraceEn adds a FUP before TIP.PGD
    skd010 = 1U << 13,  ///< the FUP after an OVF may be missing
    skl014 = 1U << 14,  ///< TIP.PGD lacks its IP when a direct branch leaves the filter range
    apl12 = 1U << 15,   ///< with IP filters, a spurious FUP after an OVF
    apl11 = 1U << 16,   ///< TIP.PGD in place of the FUP after an OVF
    skl168 = 1U << 17,  ///< a CYC or MTC may be missing before a PSB
    skz84 = 1U << 18,   ///< with TSC scaling or offset, TMA is corrupt and one byte longer
};

using quirk_set = flag_set<quirk>;

template <same_as<quirk>... Quirks>
[[nodiscard]] constexpr auto quirks(Quirks... all) noexcept -> quirk_set {
    return {(0U | ... | underlying(all))};
}

}  // namespace ptspec::cpu
