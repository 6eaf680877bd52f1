// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

namespace ptspec::reg {

/// IA32_RTIT_STATUS, the state of the trace unit and the reason why it stopped.
///
/// Shape:  64-bit MSR 571H. Only the processor changes FilterEn, ContextEn and TriggerEn.
/// Units:  PacketByteCnt counts bytes of trace since the last PSB.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1, and when a reserved bit is 1.
/// Source: SDM vol. 3, "IA32_RTIT_STATUS MSR"; REG-050..067.
struct ia32_rtit_status : bit_word<ia32_rtit_status, uint64_t> {
    static constexpr uint32_t address = 0x571;

    struct FilterEn : write_ignored<flag<0>> {};
    struct ContextEn : write_ignored<flag<1>> {};
    struct TriggerEn : write_ignored<flag<2>> {};
    struct Error : flag<4> {};        ///< an operational error ended tracing
    struct Stopped : flag<5> {};      ///< a TraceStop range or a ToPA STOP bit ended tracing
    struct PendPSB : flag<6> {};      ///< a PSB+ is pending until tracing is enabled again
    struct PendToPAPMI : flag<7> {};  ///< a ToPA PMI is pending until tracing is enabled again
    struct PacketByteCnt : field<48, 32> {};

    // clang-format off
    struct layout : bit_layout<64,
        FilterEn, ContextEn, TriggerEn, reserved<3>, Error, Stopped, PendPSB, PendToPAPMI,
        reserved<31, 8>, PacketByteCnt, reserved<63, 49>> {};
    // clang-format on
};

}  // namespace ptspec::reg
