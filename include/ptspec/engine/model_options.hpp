// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/engine/output/options.hpp>
#include <ptspec/trace/return_stack.hpp>
#include <ptspec/trace/write/state.hpp>

namespace ptspec::engine {

/// The packets for a branch into a TraceStop range during an overflow. Tracing stops at once.
///
/// Source: GEN-230.
enum class stop_in_overflow : uint8_t {
    after_ovf,       ///< OVF and TraceStop at the end of the overflow
    without_packet,  ///< none
};

/// Whether a PSB+ is generated with an OVF.
///
/// Source: GEN-228.
enum class psb_after_ovf : uint8_t {
    where_needed,  ///< if a MODE or PIP was lost and no later packet reports its state
    always,
    never,
};

/// The choices that the manual leaves to the processor, and other differences between processors.
///
/// Source: GEN-005, and the rules beside each.
struct model_options {
    trace::ip_choice ips = trace::ip_choice::as_processors;  ///< GEN-011, GEN-229
    uint8_t tnt_capacity = 6;  ///< branches in a TNT, 6 to 47: GEN-120
    bool defers_tips = false;  ///< TIPs are deferred until after the current TNT: GEN-145
    trace::pad_policy pads = trace::pad_policy::none;    ///< GEN-008, GEN-010
    trace::psb_order in_psb = trace::psb_order::manual;  ///< GEN-171
    /// When TraceEn falls, PADs follow up to a multiple of this many bytes; 0: none. GEN-010.
    uint8_t end_alignment = 0;

    bool has_tsx = false;              ///< a PSB+ has a MODE.TSX: GEN-170
    bool vmcs_needs_context = true;    ///< a PSB+ has a VMCS only if ContextEn is 1: GEN-170
    bool vmcs_before_pip = false;      ///< before a TIP, VMCS precedes PIP: GEN-245
    bool psb_after_pge = false;        ///< when tracing is enabled, TIP.PGE comes first: GEN-180
    bool psb_on_every_enable = false;  ///< a PSB+ also if PacketByteCnt is not 0: GEN-162
    bool psb_before_pge = false;       ///< a PSB+ before every TIP.PGE: GEN-162
    /// A PSB+ of an enable with PacketEn = 1 has MODE.Exec and FUP, and TIP.PGE has no MODE.Exec
    /// before it: GEN-176, GEN-180.
    bool psb_of_enable_has_fup = false;
    bool psb_keeps_remainder = false;  ///< bytes beyond the period count to the next: GEN-012
    uint16_t psb_step = 1;             ///< a PSB is considered only every `psb_step` bytes: GEN-012
    bool psb_counts_itself = true;     ///< a PSB+'s bytes count towards the next: GEN-165
    bool pip_for_same_cr3 = true;      ///< a PIP also if MOV CR3 does not change CR3: GEN-240
    /// TraceStop ranges are compared with the address after MOV CR3, not with its own: GEN-087.
    bool mov_cr3_stops_at_next = false;
    bool swintr_events = false;  ///< CFE has types for software interrupts and SYSCALL: GEN-301
    /// A CFE of IRET also for SYSRET, SYSEXIT, ERETU and ERETS: GEN-301.
    bool iret_at_all_returns = false;
    trace::ret_mismatch on_ret_mismatch = trace::ret_mismatch::pop;  ///< GEN-134
    psb_after_ovf psb_after_overflow = psb_after_ovf::where_needed;
    /// If PacketEn is 1: OVF, PSB+, FUP instead of OVF, FUP, PSB+. libipt rejects this: GEN-228.
    bool psb_before_ovf_fup = false;
    stop_in_overflow trace_stop_in_overflow = stop_in_overflow::after_ovf;

    /// The width of the cycle counter in bits, 1 to 64. A CYC is generated before it wraps:
    /// GEN-210, GEN-217.
    uint8_t cycle_counter_bits = 32;
    /// The maximum number of bytes of the internal buffer that are stored after each operation.
    size_t drained_at_once = ~size_t{0};
    /// An overflow ends when the internal buffer has at most this many bytes: GEN-225, GEN-227.
    size_t overflow_ends_at = 0;

    /// While TraceEn is 1, RDMSR of OUTPUT_BASE, OUTPUT_MASK_PTRS, and PacketByteCnt and PendPSB of
    /// STATUS returns their values of the moment when TraceEn rose, the oldest that a processor may
    /// return: REG-011, PRG-034, PRG-103.
    bool msrs_lag = false;

    access::policy policy{};
    output_options output{};
};

/// Calls `visit(name, member, min_value, max_value)` for every member of `model_options` that is a
/// number, a flag or an enumerator, in declaration order. Both limits are valid values.
template <class Options, class Visit>
constexpr void for_each_option(Options& options, Visit&& visit) noexcept {
    visit("ips", options.ips, uint64_t{0}, uint64_t{underlying(trace::ip_choice::icelake)});
    visit("tnt_capacity", options.tnt_capacity, uint64_t{6}, uint64_t{47});
    visit("defers_tips", options.defers_tips, uint64_t{0}, uint64_t{1});
    visit("pads", options.pads, uint64_t{0}, uint64_t{underlying(trace::pad_policy::skylake)});
    visit("in_psb", options.in_psb, uint64_t{0}, uint64_t{underlying(trace::psb_order::atom)});
    visit("end_alignment", options.end_alignment, uint64_t{0}, uint64_t{255});
    visit("has_tsx", options.has_tsx, uint64_t{0}, uint64_t{1});
    visit("vmcs_needs_context", options.vmcs_needs_context, uint64_t{0}, uint64_t{1});
    visit("vmcs_before_pip", options.vmcs_before_pip, uint64_t{0}, uint64_t{1});
    visit("psb_after_pge", options.psb_after_pge, uint64_t{0}, uint64_t{1});
    visit("psb_on_every_enable", options.psb_on_every_enable, uint64_t{0}, uint64_t{1});
    visit("psb_before_pge", options.psb_before_pge, uint64_t{0}, uint64_t{1});
    visit("psb_of_enable_has_fup", options.psb_of_enable_has_fup, uint64_t{0}, uint64_t{1});
    visit("psb_keeps_remainder", options.psb_keeps_remainder, uint64_t{0}, uint64_t{1});
    visit("psb_step", options.psb_step, uint64_t{1}, uint64_t{65535});
    visit("psb_counts_itself", options.psb_counts_itself, uint64_t{0}, uint64_t{1});
    visit("pip_for_same_cr3", options.pip_for_same_cr3, uint64_t{0}, uint64_t{1});
    visit("mov_cr3_stops_at_next", options.mov_cr3_stops_at_next, uint64_t{0}, uint64_t{1});
    visit("swintr_events", options.swintr_events, uint64_t{0}, uint64_t{1});
    visit("iret_at_all_returns", options.iret_at_all_returns, uint64_t{0}, uint64_t{1});
    visit("on_ret_mismatch", options.on_ret_mismatch, uint64_t{0},
          uint64_t{underlying(trace::ret_mismatch::clear)});
    visit("psb_after_overflow", options.psb_after_overflow, uint64_t{0},
          uint64_t{underlying(psb_after_ovf::never)});
    visit("psb_before_ovf_fup", options.psb_before_ovf_fup, uint64_t{0}, uint64_t{1});
    visit("trace_stop_in_overflow", options.trace_stop_in_overflow, uint64_t{0},
          uint64_t{underlying(stop_in_overflow::without_packet)});
    visit("cycle_counter_bits", options.cycle_counter_bits, uint64_t{1}, uint64_t{64});
    visit("drained_at_once", options.drained_at_once, uint64_t{0}, uint64_t{~size_t{0}});
    visit("overflow_ends_at", options.overflow_ends_at, uint64_t{0}, uint64_t{~size_t{0}});
    visit("msrs_lag", options.msrs_lag, uint64_t{0}, uint64_t{1});
}

/// Sets the option with this name. Returns false, and sets nothing, if there is none or the value
/// is out of range.
template <same_as<model_options> Options>
[[nodiscard]] constexpr auto set_option(Options& options, text name, uint64_t value) noexcept
    -> bool {
    bool is_set = false;
    for_each_option(options,
                    [&](text option, auto& member, uint64_t min_value, uint64_t max_value) {
                        if (option == name && min_value <= value && value <= max_value) {
                            member = static_cast<bare_t<decltype(member)>>(value);
                            is_set = true;
                        }
                    });
    return is_set;
}

}  // namespace ptspec::engine
