// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/write/state.hpp>

namespace ptspec::trace {

/// A packet that violates a rule.
struct violation {
    uint64_t offset = 0;  ///< where the packet begins, in bytes from the start of the trace
    rule broken = rule::none;
    packet::kind which = packet::kind::pad;
    /// Not an error: the trace ends inside of a packet (PKT-255), or CR3 changed in a way that may
    /// have no packet (GEN-344).
    bool is_note = false;

    friend constexpr auto operator==(violation const&, violation const&) -> bool = default;
};

/// The rules against which a stream is checked.
///
/// The default checks what every processor obeys. `engine::check_options_of` gives the options of a
/// kind of processor.
struct check_options {
    /// Checks also the choices of one kind of processor: the forms of IPs, the PADs, the contents
    /// and the order of a PSB+, the capacity of a TNT, the places of CYCs. They stand in `writes`,
    /// whose `cyc` and `cyc_threshold` are ignored.
    bool has_kind = false;
    writer_options writes{};
    /// PADs may follow up to a multiple of so many bytes where TraceEn falls; 0: none. GEN-010.
    uint8_t end_alignment = 0;
    bool has_tsx = false;  ///< a PSB+ with a FUP has a MODE.TSX: GEN-170
    /// IA32_RTIT_CTL.MTCFreq. Without it, the stream shows it.
    uint8_t mtc_freq = unknown_freq;
    /// TSC ticks in a period of the crystal clock, where that is an integer; 0: unknown.
    uint32_t tsc_per_crystal = 0;

    static constexpr uint8_t unknown_freq = 0xFF;
};

}  // namespace ptspec::trace
