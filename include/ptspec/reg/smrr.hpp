// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

/// The SMRR, a memory range for SMM. Trace output must not go there.
namespace ptspec::reg {

/// IA32_MTRRCAP, the supported memory-type range registers.
///
/// Shape:  64-bit MSR FEH, read-only.
/// Source: SDM vol. 3, "IA32_MTRRCAP Register".
struct ia32_mtrrcap : read_only_word<ia32_mtrrcap, uint64_t> {
    static constexpr uint32_t address = 0xFE;

    struct VCNT : field<7, 0> {};  ///< the number of variable ranges
    struct FIX : flag<8> {};       ///< fixed ranges
    struct WC : flag<10> {};       ///< write combining
    struct SMRR : flag<11> {};     ///< the SMRR registers below exist

    struct layout : bit_layout<64, VCNT, FIX, reserved<9>, WC, SMRR, other<63, 12>> {};
};

/// IA32_SMRR_PHYSBASE, the base address and memory type of the SMRR.
///
/// Shape:  64-bit MSR 1F2H, where IA32_MTRRCAP.SMRR is 1.
/// Units:  PhysBase is a physical address below 4 GB, a multiple of 4096. Type is a memory type.
/// Source: SDM vol. 3, "System-Management Range Register Interface"; OUT-110.
struct ia32_smrr_physbase : bit_word<ia32_smrr_physbase, uint64_t> {
    static constexpr uint32_t address = 0x1F2;

    struct Type : field<7, 0> {};
    struct PhysBase : address_field<31, 12> {};

    struct layout : bit_layout<64, Type, reserved<11, 8>, PhysBase, reserved<63, 32>> {};
};

/// IA32_SMRR_PHYSMASK, the size and the valid bit of the SMRR.
///
/// Shape:  64-bit MSR 1F3H, where IA32_MTRRCAP.SMRR is 1.
/// Units:  PhysMask selects the address bits that are compared with PhysBase. Only addresses below
///         4 GB are inside.
/// Source: SDM vol. 3, "System-Management Range Register Interface"; OUT-110.
struct ia32_smrr_physmask : bit_word<ia32_smrr_physmask, uint64_t> {
    static constexpr uint32_t address = 0x1F3;

    struct Valid : flag<11> {};
    struct PhysMask : address_field<31, 12> {};

    struct layout : bit_layout<64, reserved<10, 0>, Valid, PhysMask, reserved<63, 32>> {};
};

}  // namespace ptspec::reg
