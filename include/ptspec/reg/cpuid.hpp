// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

/// The CPUID leaves that tracing depends on. Leaf 14H is in cpuid_14h.hpp.
namespace ptspec::reg {

/// The four registers that CPUID writes.
enum class cpuid_register : uint8_t { eax, ebx, ecx, edx };

/// One output register of CPUID for one leaf and sub-leaf.
///
/// Shape:  32 bits, read-only.
/// Source: SDM vol. 2A, "CPUID".
template <class Derived, uint32_t Leaf, uint32_t Subleaf, cpuid_register Output>
struct cpuid_word : read_only_word<Derived, uint32_t> {
    static constexpr uint32_t leaf = Leaf;  ///< EAX before CPUID
    /// ECX before CPUID; 0 if the leaf has no sub-leaves
    static constexpr uint32_t subleaf = Subleaf;
    static constexpr cpuid_register output = Output;

    using base = read_only_word<Derived, uint32_t>;
    using base::base;
};

/// CPUID.01H:EAX, the processor's family, model and stepping.
///
/// Shape:  32 bits.
/// Units:  ExtFamily is added to Family if Family is 15. ExtModel is bits 7:4 of the model if
///         Family is 6 or 15.
/// Source: SDM vol. 2A, "CPUID".
struct cpuid_01h_eax : cpuid_word<cpuid_01h_eax, 0x01, 0, cpuid_register::eax> {
    struct Stepping : field<3, 0> {};
    struct Model : field<7, 4> {};
    struct Family : field<11, 8> {};
    struct Type : field<13, 12> {};
    struct ExtModel : field<19, 16> {};
    struct ExtFamily : field<27, 20> {};

    // clang-format off
    struct layout : bit_layout<32,
        Stepping, Model, Family, Type, reserved<15, 14>, ExtModel, ExtFamily, reserved<31, 28>> {};
    // clang-format on
};

/// CPUID.01H:ECX, feature flags.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID".
struct cpuid_01h_ecx : cpuid_word<cpuid_01h_ecx, 0x01, 0, cpuid_register::ecx> {
    struct VMX : flag<5> {};
    struct PDCM : flag<15> {};  ///< IA32_PERF_CAPABILITIES exists
    struct x2APIC : flag<21> {};
    struct XSAVE : flag<26> {};
    struct OSXSAVE : flag<27> {};  ///< CR4.OSXSAVE is 1

    // clang-format off
    struct layout : bit_layout<32,
        other<4, 0>, VMX, other<14, 6>, PDCM, other<20, 16>, x2APIC, other<25, 22>, XSAVE, OSXSAVE,
        other<31, 28>> {};
    // clang-format on
};

/// CPUID.07H.0:EBX, feature flags, including Intel PT.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID"; REG-134, REG-160.
struct cpuid_07h_0_ebx : cpuid_word<cpuid_07h_0_ebx, 0x07, 0, cpuid_register::ebx> {
    struct SGX : flag<2> {};
    struct HLE : flag<4> {};   ///< TSX: lock elision
    struct RTM : flag<11> {};  ///< TSX: transactions
    struct INTEL_PT : flag<25> {};

    // clang-format off
    struct layout : bit_layout<32,
        other<1, 0>, SGX, other<3>, HLE, other<10, 5>, RTM, other<24, 12>, INTEL_PT,
        other<31, 26>> {};
    // clang-format on
};

/// CPUID.07H.1:EAX, feature flags, among them those of instructions that write MSRs.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID"; REG-010, GEN-301.
struct cpuid_07h_1_eax : cpuid_word<cpuid_07h_1_eax, 0x07, 1, cpuid_register::eax> {
    struct FRED : flag<17> {};  ///< flexible return and event delivery: ERETU, ERETS
    struct WRMSRNS : flag<19> {};
    struct MSRLIST : flag<27> {};  ///< RDMSRLIST and WRMSRLIST

    // clang-format off
    struct layout : bit_layout<32,
        other<16, 0>, FRED, other<18>, WRMSRNS, other<26, 20>, MSRLIST, other<31, 28>> {};
    // clang-format on
};

/// CPUID.0AH:EAX, the performance counters.
///
/// Shape:  32 bits.
/// Units:  NumGP counts general-purpose counters. Width is a counter's width in bits. EbxLen counts
///         the bits of EBX that enumerate an event.
/// Source: SDM vol. 2A, "CPUID".
struct cpuid_0ah_eax : cpuid_word<cpuid_0ah_eax, 0x0A, 0, cpuid_register::eax> {
    struct VersionID : field<7, 0> {};
    struct NumGP : field<15, 8> {};
    struct Width : field<23, 16> {};
    struct EbxLen : field<31, 24> {};

    struct layout : bit_layout<32, VersionID, NumGP, Width, EbxLen> {};
};

// ------------------------------------------------------------------------------------ XSAVE

/// CPUID.0DH.1:EAX, the supported forms of XSAVE.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID"; REG-140.
struct cpuid_0dh_1_eax : cpuid_word<cpuid_0dh_1_eax, 0x0D, 1, cpuid_register::eax> {
    struct XSAVES : flag<3> {};  ///< XSAVES, XRSTORS and IA32_XSS

    struct layout : bit_layout<32, other<2, 0>, XSAVES, other<31, 4>> {};
};

/// CPUID.0DH.1:ECX, the low bits of IA32_XSS that may be 1.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID"; REG-140.
struct cpuid_0dh_1_ecx : cpuid_word<cpuid_0dh_1_ecx, 0x0D, 1, cpuid_register::ecx> {
    struct PT_STATE : flag<8> {};

    struct layout : bit_layout<32, other<7, 0>, PT_STATE, other<31, 9>> {};
};

/// CPUID.0DH.8:EAX, the size of PT state in an XSAVE area.
///
/// Shape:  32 bits.
/// Units:  Size is in bytes; 128 on every processor seen.
/// Source: SDM vol. 2A, "CPUID"; REG-140.
struct cpuid_0dh_8_eax : cpuid_word<cpuid_0dh_8_eax, 0x0D, 8, cpuid_register::eax> {
    struct Size : field<31, 0> {
        [[nodiscard]] static constexpr auto amount(uint64_t bytes) noexcept -> quantity {
            return {bytes, "bytes"};
        }
    };

    struct layout : bit_layout<32, Size> {};
};

/// CPUID.0DH.8:EBX, the offset of PT state in the standard form of an XSAVE area. 0, since the
/// standard form does not hold PT state.
///
/// Shape:  32 bits, all 0.
/// Source: SDM vol. 2A, "CPUID"; REG-140.
struct cpuid_0dh_8_ebx : cpuid_word<cpuid_0dh_8_ebx, 0x0D, 8, cpuid_register::ebx> {
    struct Offset : field<31, 0> {};

    struct layout : bit_layout<32, Offset> {};
};

/// CPUID.0DH.8:ECX, the management and alignment of PT state.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID"; REG-140.
struct cpuid_0dh_8_ecx : cpuid_word<cpuid_0dh_8_ecx, 0x0D, 8, cpuid_register::ecx> {
    struct Supervisor : flag<0> {};  ///< managed by IA32_XSS; always 1
    struct Align64 : flag<1> {};     ///< aligned to 64 bytes in compacted form

    struct layout : bit_layout<32, Supervisor, Align64, other<31, 2>> {};
};

// ------------------------------------------------------------------------------------ clocks

/// CPUID.15H:EAX, the denominator of the ratio of the TSC to the crystal clock.
///
/// Shape:  32 bits. 0: the ratio is not enumerated.
/// Units:  TSC / crystal = Numerator / Denominator.
/// Source: SDM vol. 2A, "CPUID"; REG-167.
struct cpuid_15h_eax : cpuid_word<cpuid_15h_eax, 0x15, 0, cpuid_register::eax> {
    struct Denominator : field<31, 0> {};

    struct layout : bit_layout<32, Denominator> {};
};

/// CPUID.15H:EBX, the numerator of the ratio of the TSC to the crystal clock.
///
/// Shape:  32 bits. 0: the ratio is not enumerated.
/// Units:  TSC / crystal = Numerator / Denominator.
/// Source: SDM vol. 2A, "CPUID"; REG-167.
struct cpuid_15h_ebx : cpuid_word<cpuid_15h_ebx, 0x15, 0, cpuid_register::ebx> {
    struct Numerator : field<31, 0> {};

    struct layout : bit_layout<32, Numerator> {};
};

/// CPUID.15H:ECX, the frequency of the crystal clock.
///
/// Shape:  32 bits. 0: the frequency is not enumerated.
/// Units:  CrystalHz is in Hz.
/// Source: SDM vol. 2A, "CPUID"; REG-167.
struct cpuid_15h_ecx : cpuid_word<cpuid_15h_ecx, 0x15, 0, cpuid_register::ecx> {
    struct CrystalHz : field<31, 0> {
        [[nodiscard]] static constexpr auto amount(uint64_t hz) noexcept -> quantity {
            return hz == 0 ? quantity{} : quantity{hz, "Hz"};
        }
    };

    struct layout : bit_layout<32, CrystalHz> {};
};

/// CPUID.15H:EDX, reserved.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID".
struct cpuid_15h_edx : cpuid_word<cpuid_15h_edx, 0x15, 0, cpuid_register::edx> {
    struct layout : bit_layout<32, reserved<31, 0>> {};
};

/// CPUID.80000007H:EDX, the invariant TSC.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID"; PRG-138.
struct cpuid_80000007h_edx : cpuid_word<cpuid_80000007h_edx, 0x8000'0007, 0, cpuid_register::edx> {
    struct InvariantTSC : flag<8> {};  ///< counts at a constant rate in all C-states

    struct layout : bit_layout<32, other<7, 0>, InvariantTSC, other<31, 9>> {};
};

// ------------------------------------------------------------------------------------ addresses

/// CPUID.80000008H:EAX, the widths of addresses.
///
/// Shape:  32 bits.
/// Units:  MAXPHYADDR is the width of physical addresses in bits, 36 if this leaf is absent.
///         LinearBits is the width of linear addresses, 48 or 57.
/// Source: SDM vol. 2A, "CPUID"; REG-070, REG-076.
struct cpuid_80000008h_eax : cpuid_word<cpuid_80000008h_eax, 0x8000'0008, 0, cpuid_register::eax> {
    struct MAXPHYADDR : field<7, 0> {};
    struct LinearBits : field<15, 8> {};

    struct layout : bit_layout<32, MAXPHYADDR, LinearBits, other<31, 16>> {};
};

}  // namespace ptspec::reg
