// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

/// The local APIC, which delivers the PMI of a full ToPA region.
namespace ptspec::reg {

/// IA32_APIC_BASE, the address of the local APIC's registers. Trace output must not go there.
///
/// Shape:  64-bit MSR 1BH.
/// Units:  ApicBase is the physical address of a page of 4096 bytes.
/// Errors: WRMSR raises #GP(0) for a reserved bit and for bits at or above MAXPHYADDR.
/// Source: SDM vol. 3, "Local APIC Status and Location"; OUT-113.
struct ia32_apic_base : bit_word<ia32_apic_base, uint64_t> {
    static constexpr uint32_t address = 0x1B;

    struct BSP : flag<8> {};    ///< this is the bootstrap processor
    struct EXTD : flag<10> {};  ///< x2APIC mode
    struct EN : flag<11> {};    ///< the APIC is enabled
    struct ApicBase : address_field<63, 12> {};

    struct layout : bit_layout<64, reserved<7, 0>, BSP, reserved<9>, EXTD, EN, ApicBase> {};
};

/// Encodings of DeliveryMode: how the interrupt is delivered.
enum class delivery_mode : uint8_t {
    fixed = 0,  ///< by vector, as the ToPA PMI requires
    nmi = 4,
};

/// The common part of the two forms of the LVT performance-monitoring entry.
///
/// Shape:  32 or 64 bits; the low 17 are in use.
/// Source: SDM vol. 3, "Local Vector Table"; OUT-082, OUT-084.
template <class Derived, class Raw>
struct lvt_pmi_word : bit_word<Derived, Raw> {
    using base = bit_word<Derived, Raw>;
    using base::base;

    struct Vector : field<7, 0> {};
    struct DeliveryMode : enumerated<10, 8, delivery_mode> {};
    struct DeliveryStatus : read_only<flag<12>> {};  ///< sent, but not yet accepted
    struct Mask : flag<16> {};                       ///< the processor sets it on delivery

    // clang-format off
    struct layout : bit_layout<8 * sizeof(Raw),
        Vector, DeliveryMode, reserved<11>, DeliveryStatus, reserved<15, 13>, Mask,
        reserved<8 * sizeof(Raw) - 1, 17>> {};
    // clang-format on
};

/// The LVT performance-monitoring entry in x2APIC mode.
///
/// Shape:  64-bit MSR 834H.
/// Errors: WRMSR raises #GP(0) for a reserved bit.
/// Source: SDM vol. 3, "x2APIC Register Address Space"; OUT-082, OUT-143.
struct ia32_x2apic_lvt_pmi : lvt_pmi_word<ia32_x2apic_lvt_pmi, uint64_t> {
    static constexpr uint32_t address = 0x834;
};

/// The LVT performance-monitoring entry in xAPIC mode.
///
/// Shape:  32 bits, 340H bytes into the APIC's page.
/// Source: SDM vol. 3, "Local Vector Table"; OUT-082, OUT-143.
struct apic_mmio_lvt_pmi : lvt_pmi_word<apic_mmio_lvt_pmi, uint32_t> {
    static constexpr uint32_t offset = 0x340;  ///< in bytes from ApicBase
};

}  // namespace ptspec::reg
