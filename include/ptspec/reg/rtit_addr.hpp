// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

namespace ptspec::reg {

/// The two registers of an address range.
enum class range_end : uint8_t {
    a,  ///< its first address
    b,  ///< its last address
};

/// IA32_RTIT_ADDR0_A to IA32_RTIT_ADDR3_B, the ends of the address ranges. One type for all eight.
///
/// Shape:  64-bit MSRs: 580H and 581H for range 0, and so on in pairs to 587H.
/// Units:  Address is a linear address, or an effective address if CPUID.14H.0:ECX.LIP is 0. Both
///         ends belong to the range. A range with A above B is empty.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1, and for an address that is not canonical. The
///         processor has the first RANGECNT ranges; the MSRs of the others raise #GP(0).
/// Source: SDM vol. 3, "IA32_RTIT_ADDRn_A and IA32_RTIT_ADDRn_B MSRs"; REG-014, REG-018,
///         REG-076..079.
struct ia32_rtit_addr : bit_word<ia32_rtit_addr, uint64_t> {
    static constexpr unsigned count = 4;  ///< the number of ranges that the manual defines

    /// The MSR index of one end of range `n`. `n` must be below `count`.
    [[nodiscard]] static constexpr auto address(unsigned n, range_end end) noexcept -> uint32_t {
        return 0x580 + 2 * n + underlying(end);
    }

    struct Address : field<63, 0> {};

    struct layout : bit_layout<64, Address> {};
};

}  // namespace ptspec::reg
