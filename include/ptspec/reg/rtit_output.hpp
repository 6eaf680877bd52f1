// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/word.hpp>

namespace ptspec::reg {

/// IA32_RTIT_OUTPUT_BASE, where the output region or the ToPA table begins.
///
/// Shape:  64-bit MSR 560H.
/// Units:  BasePhysAddr is a physical address in bytes, a multiple of 128; a ToPA table begins at a
///         multiple of 4096, a single range at a multiple of its size.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1, and for bits 6:0 or bits at or above MAXPHYADDR.
/// Source: SDM vol. 3, "IA32_RTIT_OUTPUT_BASE MSR"; REG-070.
struct ia32_rtit_output_base : bit_word<ia32_rtit_output_base, uint64_t> {
    static constexpr uint32_t address = 0x560;

    struct BasePhysAddr : address_field<63, 7> {};

    struct layout : bit_layout<64, reserved<6, 0>, BasePhysAddr> {};
};

/// IA32_RTIT_OUTPUT_MASK_PTRS, where in the region or the table the next byte goes.
///
/// Shape:  64-bit MSR 561H. Its low seven bits read as ones, so a single range's mask can be taken
///         from bits 31:0 as they are.
/// Units:  MaskOrTableOffset is the mask's bits 31:7 of a single range, or the number of the
///         current ToPA entry (8 bytes each). OutputOffset is in bytes from the region's begin.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1. What it holds is checked when TraceEn rises.
/// Source: SDM vol. 3, "IA32_RTIT_OUTPUT_MASK_PTRS MSR"; REG-071, OUT-020, OUT-050.
struct ia32_rtit_output_mask_ptrs : bit_word<ia32_rtit_output_mask_ptrs, uint64_t> {
    static constexpr uint32_t address = 0x561;

    struct LowerMask : forced_1<field<6, 0>> {};
    struct MaskOrTableOffset : field<31, 7> {};
    struct OutputOffset : field<63, 32> {};

    struct layout : bit_layout<64, LowerMask, MaskOrTableOffset, OutputOffset> {};
};

}  // namespace ptspec::reg
