// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

namespace ptspec::reg {

/// Encodings of ADDR0_CFG to ADDR3_CFG: the use of an address range. 3 to 15 are reserved.
enum class addr_cfg : uint8_t {
    off = 0,
    filter = 1,      ///< trace only inside: FilterEn is 1 there
    trace_stop = 2,  ///< a branch or event into the range stops tracing
};

/// IA32_RTIT_CTL, the enable bit and the configuration of the trace.
///
/// Shape:  64-bit MSR 570H.
/// Units:  an MTC every 2^MTCFreq crystal cycles; a CYC at most every 2^(CycThresh-1) core cycles
///         where CycThresh is not 0; a PSB every 2^(PSBFreq+11) bytes of trace.
/// Errors: WRMSR raises #GP(0) for a reserved bit, for a field or an encoding that the processor
///         does not enumerate, and for any change while TraceEn stays 1.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR"; REG-020..048.
struct ia32_rtit_ctl : bit_word<ia32_rtit_ctl, uint64_t> {
    static constexpr uint32_t address = 0x570;

    struct TraceEn : flag<0> {};
    struct CYCEn : flag<1> {};
    struct OS : flag<2> {};    ///< trace at CPL 0
    struct User : flag<3> {};  ///< trace at CPL 1 to 3
    struct PwrEvtEn : flag<4> {};
    struct FUPonPTW : flag<5> {};
    /// output to the trace transport subsystem; ToPA is then ignored
    struct FabricEn : flag<6> {};
    struct CR3Filter : flag<7> {};
    struct ToPA : flag<8> {};  ///< 0: single-range output
    struct MTCEn : flag<9> {};
    struct TSCEn : flag<10> {};
    struct DisRETC : flag<11> {};
    struct PTWEn : flag<12> {};
    struct BranchEn : flag<13> {};
    struct MTCFreq : field<17, 14> {
        [[nodiscard]] static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
            return {uint64_t{1} << encoding, "crystal cycles"};
        }
    };
    struct CycThresh : field<22, 19> {
        [[nodiscard]] static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
            return encoding == 0 ? quantity{} : quantity{uint64_t{1} << (encoding - 1), "cycles"};
        }
    };
    struct PSBFreq : field<27, 24> {
        [[nodiscard]] static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
            return {uint64_t{2048} << encoding, "bytes"};
        }
    };
    struct EventEn : flag<31> {};
    struct ADDR0_CFG : enumerated<35, 32, addr_cfg> {};
    struct ADDR1_CFG : enumerated<39, 36, addr_cfg> {};
    struct ADDR2_CFG : enumerated<43, 40, addr_cfg> {};
    struct ADDR3_CFG : enumerated<47, 44, addr_cfg> {};
    struct DisTNT : flag<55> {};
    struct InjectPsbPmiOnEnable : flag<56> {};

    // clang-format off
    struct layout : bit_layout<64,
        TraceEn, CYCEn, OS, User, PwrEvtEn, FUPonPTW, FabricEn, CR3Filter,
        ToPA, MTCEn, TSCEn, DisRETC, PTWEn, BranchEn, MTCFreq, reserved<18>,
        CycThresh, reserved<23>, PSBFreq, reserved<30, 28>, EventEn,
        ADDR0_CFG, ADDR1_CFG, ADDR2_CFG, ADDR3_CFG, reserved<54, 48>,
        DisTNT, InjectPsbPmiOnEnable, reserved<63, 57>> {};
    // clang-format on
};

}  // namespace ptspec::reg
