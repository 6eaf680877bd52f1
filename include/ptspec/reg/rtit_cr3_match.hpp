// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

namespace ptspec::reg {

/// IA32_RTIT_CR3_MATCH, the CR3 value that is traced if CR3Filter is 1.
///
/// Shape:  64-bit MSR 572H.
/// Units:  CR3 is the register's value, a multiple of 32. It is compared from bit 12 up, in PAE
///         paging from bit 5 up.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1, and for bits 4:0. The bits at and above
///         MAXPHYADDR are not checked.
/// Source: SDM vol. 3, "IA32_RTIT_CR3_MATCH MSR"; REG-013, REG-074, REG-075.
struct ia32_rtit_cr3_match : bit_word<ia32_rtit_cr3_match, uint64_t> {
    static constexpr uint32_t address = 0x572;

    struct CR3 : unbounded<address_field<63, 5>> {};

    struct layout : bit_layout<64, reserved<4, 0>, CR3> {};
};

}  // namespace ptspec::reg
