// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

/// The registers of trigger tracing.
namespace ptspec::reg {

/// IA32_RTIT_TRIGGERx_CFG, the triggers and their actions. One type for all of them.
///
/// Shape:  64-bit MSRs of four slots with 16 bits each. UNCONFIRMED: their indices, so they have no
///         address here; and that bits 11:7 of a slot are reserved.
/// Units:  Input 0 to 7 and 20H to 27H select a general-purpose counter by its low three bits, 40H
///         to 43H a match of DR0 to DR3. UNCONFIRMED: how 0 to 7 differ from 20H to 27H.
/// Errors: UNCONFIRMED. The processor may accept encodings without a meaning.
/// Source: REG-016, REG-215..219.
struct ia32_rtit_triggerx_cfg : bit_word<ia32_rtit_triggerx_cfg, uint64_t> {
    struct Input0 : field<6, 0> {};
    struct Action12_0 : flag<12> {};  ///< UNCONFIRMED: TRACE_PAUSE or TRACE_RESUME
    /// UNCONFIRMED: the other one of TRACE_PAUSE and TRACE_RESUME
    struct Action13_0 : flag<13> {};
    struct EnIcnt0 : flag<14> {};  ///< the TRIG packet carries an instruction count
    struct En0 : flag<15> {};      ///< this slot is armed
    struct Input1 : field<22, 16> {};
    struct Action12_1 : flag<28> {};  ///< UNCONFIRMED: like Action12_0
    struct Action13_1 : flag<29> {};  ///< UNCONFIRMED: like Action13_0
    struct EnIcnt1 : flag<30> {};
    struct En1 : flag<31> {};
    struct Input2 : field<38, 32> {};
    struct Action12_2 : flag<44> {};  ///< UNCONFIRMED: like Action12_0
    struct Action13_2 : flag<45> {};  ///< UNCONFIRMED: like Action13_0
    struct EnIcnt2 : flag<46> {};
    struct En2 : flag<47> {};
    struct Input3 : field<54, 48> {};
    struct Action12_3 : flag<60> {};  ///< UNCONFIRMED: like Action12_0
    struct Action13_3 : flag<61> {};  ///< UNCONFIRMED: like Action13_0
    struct EnIcnt3 : flag<62> {};
    struct En3 : flag<63> {};

    // clang-format off
    struct layout : bit_layout<64,
        Input0, reserved<11, 7>, Action12_0, Action13_0, EnIcnt0, En0,
        Input1, reserved<27, 23>, Action12_1, Action13_1, EnIcnt1, En1,
        Input2, reserved<43, 39>, Action12_2, Action13_2, EnIcnt2, En2,
        Input3, reserved<59, 55>, Action12_3, Action13_3, EnIcnt3, En3> {};
    // clang-format on
};

/// DR7: the debug registers whose matches fire triggers.
///
/// Shape:  64-bit debug register.
/// Source: SDM vol. 3, "Debug Control Register (DR7)"; REG-219.
struct dr7 : bit_word<dr7, uint64_t> {
    struct DR0_PT_LOG : flag<32> {};
    struct DR1_PT_LOG : flag<33> {};
    struct DR2_PT_LOG : flag<34> {};
    struct DR3_PT_LOG : flag<35> {};

    // clang-format off
    struct layout : bit_layout<64,
        other<31, 0>, DR0_PT_LOG, DR1_PT_LOG, DR2_PT_LOG, DR3_PT_LOG, other<63, 36>> {};
    // clang-format on
};

}  // namespace ptspec::reg
