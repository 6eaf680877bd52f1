// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirk_set.hpp>
#include <ptspec/trace/binding.hpp>
#include <ptspec/trace/write/state.hpp>

namespace ptspec::trace {

/// The rules against which a stream is checked.
///
/// The default checks the rules that every processor obeys. `engine::check_options_of` gives the
/// options of a kind of processor.
struct check_options {
    /// True to check also the choices of one kind of processor: the forms of IPs, the PADs, the
    /// contents and the order of a PSB+, the capacity of a TNT, the places of CYCs. They are in
    /// `writes`, whose `cyc` and `cyc_threshold` are ignored.
    bool has_model = false;
    writer_options writes{};
    /// Where TraceEn falls, PADs may follow up to a multiple of this number of bytes; 0: none.
    /// GEN-010.
    uint8_t end_alignment = 0;
    bool has_tsx = false;  ///< a PSB+ with a FUP has a MODE.TSX: GEN-170
    /// IA32_RTIT_CTL.MTCFreq. If it is unknown, the checker finds it from the packets.
    uint8_t mtc_freq = unknown_freq;
    /// TSC ticks in a period of the crystal clock, where that is an integer; 0: unknown.
    uint32_t tsc_per_crystal = 0;
    cpu::quirk_set quirks{};  ///< errata of the processor that excuse an order of packets

    static constexpr uint8_t unknown_freq = 0xFF;
};

}  // namespace ptspec::trace
