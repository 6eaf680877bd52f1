// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

namespace ptspec::reg {

/// IA32_RTIT_OUTPUT_BASE, the base address of the output region or the ToPA table.
///
/// Shape:  64-bit MSR 560H.
/// Units:  BasePhysAddr is a physical address in bytes, a multiple of 128. A ToPA table is aligned
///         to 4096 bytes, a single range to its size.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1, and for bits 6:0 or bits at or above MAXPHYADDR.
/// Source: SDM vol. 3, "IA32_RTIT_OUTPUT_BASE MSR"; REG-070.
struct ia32_rtit_output_base : bit_word<ia32_rtit_output_base, uint64_t> {
    static constexpr uint32_t address = 0x560;

    struct BasePhysAddr : address_field<63, 7> {};

    struct layout : bit_layout<64, reserved<6, 0>, BasePhysAddr> {};
};

/// IA32_RTIT_OUTPUT_MASK_PTRS, the position of the next output byte.
///
/// Shape:  64-bit MSR 561H. The low seven bits read as ones, so bits 31:0 are the mask of a single
///         range.
/// Units:  MaskOrTableOffset is bits 31:7 of the mask of a single range, or the index of the
///         current ToPA entry (8 bytes each). OutputOffset is in bytes from the start of the
///         region.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1. The value is checked when TraceEn is set.
/// Source: SDM vol. 3, "IA32_RTIT_OUTPUT_MASK_PTRS MSR"; REG-071, OUT-020, OUT-050.
struct ia32_rtit_output_mask_ptrs : bit_word<ia32_rtit_output_mask_ptrs, uint64_t> {
    static constexpr uint32_t address = 0x561;

    struct LowerMask : forced_1<field<6, 0>> {};
    struct MaskOrTableOffset : field<31, 7> {};
    struct OutputOffset : field<63, 32> {};

    struct layout : bit_layout<64, LowerMask, MaskOrTableOffset, OutputOffset> {};
};

}  // namespace ptspec::reg
