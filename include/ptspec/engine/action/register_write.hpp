// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/address.hpp>

/// Writes of registers.
namespace ptspec::engine {

/// A WRMSR, for `trace_unit::wrmsr`.
struct msr_write {
    msr_index index{};
    uint64_t value = 0;
    cs_offset at{};    ///< the address of the instruction
    cs_offset next{};  ///< the address of the one after it
};

namespace action {

/// MOV to CR3 that causes no VM exit. Source: GEN-087, GEN-240..243.
struct mov_cr3 {
    /// An operand bit that is not written to CR3. If CR4.PCIDE is 1, it keeps cached translations.
    static constexpr uint64_t keeps_translations = uint64_t{1} << 63;

    uint64_t at = 0;
    uint64_t next = 0;
    uint64_t cr3 = 0;  ///< the operand
};
/// STI, CLI, POPF. Source: GEN-305.
struct interrupt_flag {
    uint64_t next = 0;
    bool IF = false;
};

}  // namespace action

}  // namespace ptspec::engine
