// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

/// Last-branch records and related registers, which some processors suspend while PT is enabled.
namespace ptspec::reg {

/// IA32_DEBUGCTL, branch recording and freeze-on-PMI.
///
/// Shape:  64-bit MSR 1D9H. If PT and LBR exclude each other, tracing suspends the features but
///         does not change their enable bits.
/// Errors: WRMSR raises #GP(0) for a reserved bit.
/// Source: SDM vol. 3, "IA32_DEBUGCTL MSR"; REG-181, REG-205.
struct ia32_debugctl : bit_word<ia32_debugctl, uint64_t> {
    static constexpr uint32_t address = 0x1D9;

    struct LBR : flag<0> {};                     ///< record last branches
    struct BTF : flag<1> {};                     ///< single-step on branches
    struct BLD : flag<2> {};                     ///< detect bus locks
    struct TR : flag<6> {};                      ///< send branch trace messages
    struct BTS : flag<7> {};                     ///< store branch trace messages in the BTS buffer
    struct BTINT : flag<8> {};                   ///< interrupt when the BTS buffer is full
    struct BTS_OFF_OS : flag<9> {};              ///< no BTS at CPL 0
    struct BTS_OFF_USR : flag<10> {};            ///< no BTS at CPL 1 to 3
    struct FREEZE_LBRS_ON_PMI : flag<11> {};     ///< also on a ToPA PMI
    struct FREEZE_PERFMON_ON_PMI : flag<12> {};  ///< also on a ToPA PMI
    struct ENABLE_UNCORE_PMI : flag<13> {};
    struct FREEZE_WHILE_SMM : flag<14> {};
    struct RTM_DEBUG : flag<15> {};

    // clang-format off
    struct layout : bit_layout<64,
        LBR, BTF, BLD, reserved<5, 3>, TR, BTS,
        BTINT, BTS_OFF_OS, BTS_OFF_USR, FREEZE_LBRS_ON_PMI, FREEZE_PERFMON_ON_PMI,
        ENABLE_UNCORE_PMI, FREEZE_WHILE_SMM, RTM_DEBUG, reserved<63, 16>> {};
    // clang-format on
};

/// The common part of the LBR registers. If PT and LBR exclude each other, they read 0 and ignore
/// writes while TraceEn is 1.
///
/// Shape:  64 bits with model-specific content.
/// Source: SDM vol. 3, "Last Branch, Interrupt, and Exception Recording"; REG-180..182.
template <class Derived>
struct lbr_word : bit_word<Derived, uint64_t> {
    using base = bit_word<Derived, uint64_t>;
    using base::base;

    struct Value : field<63, 0> {};

    struct layout : bit_layout<64, Value> {};
};

/// MSR_LASTBRANCH_TOS, the index of the latest record.
///
/// Shape:  64-bit MSR 1C9H.
/// Source: REG-182.
struct msr_lastbranch_tos : lbr_word<msr_lastbranch_tos> {
    static constexpr uint32_t address = 0x1C9;
};

/// MSR_LBR_SELECT, the filter of the recorded branches.
///
/// Shape:  64-bit MSR 1C8H.
/// Source: REG-182.
struct msr_lbr_select : lbr_word<msr_lbr_select> {
    static constexpr uint32_t address = 0x1C8;
};

/// MSR_LER_FROM_LIP, the source of the last branch before the latest exception or interrupt.
///
/// Shape:  64-bit MSR 1DDH.
/// Source: REG-182, REG-238.
struct msr_ler_from_lip : lbr_word<msr_ler_from_lip> {
    static constexpr uint32_t address = 0x1DD;
};

/// MSR_LER_TO_LIP, the target of the last branch before the latest exception or interrupt.
///
/// Shape:  64-bit MSR 1DEH.
/// Source: REG-182, REG-238.
struct msr_ler_to_lip : lbr_word<msr_ler_to_lip> {
    static constexpr uint32_t address = 0x1DE;
};

/// MSR_LASTBRANCH_x_FROM_IP, the source of a recorded branch.
///
/// Shape:  64-bit MSRs from 680H on, one for each record.
/// Source: REG-182.
struct msr_lastbranch_x_from_ip : lbr_word<msr_lastbranch_x_from_ip> {
    /// The MSR index of record `x`.
    [[nodiscard]] static constexpr auto address(unsigned x) noexcept -> uint32_t {
        return 0x680 + x;
    }
};

/// MSR_LASTBRANCH_x_TO_IP, the target of a recorded branch.
///
/// Shape:  64-bit MSRs from 6C0H on, one for each record.
/// Source: REG-182.
struct msr_lastbranch_x_to_ip : lbr_word<msr_lastbranch_x_to_ip> {
    /// The MSR index of record `x`.
    [[nodiscard]] static constexpr auto address(unsigned x) noexcept -> uint32_t {
        return 0x6C0 + x;
    }
};

/// MSR_LBR_INFO_x, further information about a recorded branch.
///
/// Shape:  64-bit MSRs from DC0H on, one for each record.
/// Source: REG-182.
struct msr_lbr_info_x : lbr_word<msr_lbr_info_x> {
    /// The MSR index of record `x`.
    [[nodiscard]] static constexpr auto address(unsigned x) noexcept -> uint32_t {
        return 0xDC0 + x;
    }
};

}  // namespace ptspec::reg
