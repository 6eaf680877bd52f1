// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

namespace ptspec::reg {

/// Encodings of PEBS_OUTPUT: where PEBS records go. 2 and 3 are reserved.
enum class pebs_output : uint8_t {
    ds_area = 0,
    intel_pt = 1,  ///< into the trace
};

/// IA32_PEBS_ENABLE, the counters that make PEBS records, and the output of the records.
///
/// Shape:  64-bit MSR 3F1H. One PEBS_OUTPUT for all counters.
/// Errors: PMI_AFTER_EACH_RECORD and PEBS_OUTPUT exist where PEBS_OUTPUT_PT_AVAIL is 1. The records
///         of architectural PEBS, PEBS_FMT FH, have a buffer of their own.
/// Source: SDM vol. 3, "PEBS Output to Intel Processor Trace"; REG-200, REG-201.
struct ia32_pebs_enable : bit_word<ia32_pebs_enable, uint64_t> {
    static constexpr uint32_t address = 0x3F1;

    struct EnPMC : field<31, 0> {};  ///< one bit per general-purpose counter
    struct EnFixed : field<59, 32> {};
    struct PMI_AFTER_EACH_RECORD : flag<60> {};
    struct PEBS_OUTPUT : enumerated<62, 61, pebs_output> {};

    // clang-format off
    struct layout : bit_layout<64,
        EnPMC, EnFixed, PMI_AFTER_EACH_RECORD, PEBS_OUTPUT, other<63>> {};
    // clang-format on
};

/// MSR_RELOAD_PMCx, the reload value of a general-purpose counter after its record was written to
/// the trace.
///
/// Shape:  64-bit MSRs from 14C1H on, one for each general counter.
/// Source: SDM vol. 3, "PEBS Output to Intel Processor Trace"; REG-200.
struct msr_reload_pmcx : bit_word<msr_reload_pmcx, uint64_t> {
    /// The MSR index of general-purpose counter `n`.
    [[nodiscard]] static constexpr auto address(unsigned n) noexcept -> uint32_t {
        return 0x14C1 + n;
    }

    struct Reload : field<63, 0> {};

    struct layout : bit_layout<64, Reload> {};
};

/// MSR_RELOAD_FIXED_CTRx, the reload value of a fixed-function counter after its record was written
/// to the trace.
///
/// Shape:  64-bit MSRs from 1309H on, one for each fixed counter.
/// Source: SDM vol. 3, "PEBS Output to Intel Processor Trace"; REG-200.
struct msr_reload_fixed_ctrx : bit_word<msr_reload_fixed_ctrx, uint64_t> {
    /// The MSR index of fixed-function counter `n`.
    [[nodiscard]] static constexpr auto address(unsigned n) noexcept -> uint32_t {
        return 0x1309 + n;
    }

    struct Reload : field<63, 0> {};

    struct layout : bit_layout<64, Reload> {};
};

}  // namespace ptspec::reg
