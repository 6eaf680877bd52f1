// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/engine/output_options.hpp>
#include <ptspec/engine/return_stack.hpp>
#include <ptspec/trace/writer_state.hpp>

namespace ptspec::engine {

/// What happens when a branch comes into a TraceStop range while packets are lost.
///
/// Source: GEN-230.
enum class stop_in_overflow : uint8_t {
    told_afterwards,  ///< OVF and TraceStop when packets come through again; tracing stops there
    not_told,         ///< tracing stops at once, without a packet
};

/// When a PSB+ comes with an OVF.
///
/// Source: GEN-228.
enum class psb_behind_ovf : uint8_t {
    where_needed,  ///< where a MODE or PIP was lost that no later packet makes up for
    always,
    never,
};

/// What the manual leaves to the processor, and what else tells one processor from another.
///
/// Source: GEN-005, and the rules beside each.
struct model_options {
    trace::ip_choice ips = trace::ip_choice::as_processors;  ///< GEN-229
    bool long_tnt = false;     ///< up to 47 branches in a TNT, not 6: GEN-120
    bool defers_tips = false;  ///< TIPs wait for the TNT that is being filled: GEN-145
    bool pads = false;         ///< PADs keep packets from crossing a multiple of 8 bytes: GEN-008

    bool has_tsx = false;                ///< a PSB+ has a MODE.TSX: GEN-170
    bool vmcs_needs_context = true;      ///< as has PIP: GEN-170
    bool vmcs_before_pip = false;        ///< in front of a TIP: GEN-245
    bool psb_behind_pge = false;         ///< enabling writes TIP.PGE first: GEN-180
    bool psb_on_every_enable = false;    ///< also where PacketByteCnt is not 0: GEN-162
    bool psb_counts_itself = true;       ///< its bytes count towards the next one: GEN-165
    bool pip_for_same_cr3 = true;        ///< also where MOV CR3 changes nothing: GEN-240
    bool mov_cr3_stops_at_next = false;  ///< the instruction behind is looked up: GEN-087
    bool swintr_events = false;  ///< CFE has types for software interrupts and SYSCALL: GEN-301
    ret_mismatch on_ret_mismatch = ret_mismatch::pops_top;  ///< GEN-134
    psb_behind_ovf psb_behind_overflow = psb_behind_ovf::where_needed;
    /// Where PacketEn is 1 it is OVF, PSB+, FUP, not OVF, FUP, PSB+. libipt refuses that: GEN-228.
    bool psb_before_ovf_fup = false;
    stop_in_overflow trace_stop_in_overflow = stop_in_overflow::told_afterwards;

    /// The cycle counter wraps at 2^this; a CYC comes before it does. 1 to 64: GEN-210, GEN-217.
    uint8_t cycle_counter_bits = 32;
    /// How many bytes leave the internal buffer after each operation.
    size_t drained_at_once = ~size_t{0};
    /// Packets that were lost come through again once no more bytes are in the internal buffer:
    /// GEN-225, GEN-227.
    size_t overflow_ends_at = 0;

    /// RDMSR of OUTPUT_BASE and OUTPUT_MASK_PTRS, and of STATUS's PacketByteCnt and PendPSB, while
    /// TraceEn is 1 reads what they were when it rose, as late as a processor may be: REG-011,
    /// PRG-034, PRG-103.
    bool msrs_lag = false;

    access::policy policy{};
    output_options output{};
};

/// A member of `model_options` as data: its name, and the values that it can have.
struct model_option {
    text name;
    uint64_t least;
    uint64_t most;
    void (*put)(model_options& how, uint64_t value) noexcept;
    uint64_t (*get)(model_options const& how) noexcept;
};

namespace detail {

template <auto Member>
constexpr auto option(text name, uint64_t most = 1, uint64_t least = 0) noexcept -> model_option {
    return {name, least, most,
            [](model_options& how, uint64_t value) noexcept {
                how.*Member = static_cast<bare_t<decltype(how.*Member)>>(value);
            },
            [](model_options const& how) noexcept { return static_cast<uint64_t>(how.*Member); }};
}

}  // namespace detail

/// Every member of `model_options` that is a number, a flag or an enumerator, in their order.
inline constexpr model_option all_model_options[] = {
    detail::option<&model_options::ips>("ips", underlying(trace::ip_choice::shortest)),
    detail::option<&model_options::long_tnt>("long_tnt"),
    detail::option<&model_options::defers_tips>("defers_tips"),
    detail::option<&model_options::pads>("pads"),
    detail::option<&model_options::has_tsx>("has_tsx"),
    detail::option<&model_options::vmcs_needs_context>("vmcs_needs_context"),
    detail::option<&model_options::vmcs_before_pip>("vmcs_before_pip"),
    detail::option<&model_options::psb_behind_pge>("psb_behind_pge"),
    detail::option<&model_options::psb_on_every_enable>("psb_on_every_enable"),
    detail::option<&model_options::psb_counts_itself>("psb_counts_itself"),
    detail::option<&model_options::pip_for_same_cr3>("pip_for_same_cr3"),
    detail::option<&model_options::mov_cr3_stops_at_next>("mov_cr3_stops_at_next"),
    detail::option<&model_options::swintr_events>("swintr_events"),
    detail::option<&model_options::on_ret_mismatch>("on_ret_mismatch",
                                                    underlying(ret_mismatch::clears_stack)),
    detail::option<&model_options::psb_behind_overflow>("psb_behind_overflow",
                                                        underlying(psb_behind_ovf::never)),
    detail::option<&model_options::psb_before_ovf_fup>("psb_before_ovf_fup"),
    detail::option<&model_options::trace_stop_in_overflow>("trace_stop_in_overflow",
                                                           underlying(stop_in_overflow::not_told)),
    detail::option<&model_options::cycle_counter_bits>("cycle_counter_bits", 64, 1),
    detail::option<&model_options::drained_at_once>("drained_at_once", ~size_t{0}),
    detail::option<&model_options::overflow_ends_at>("overflow_ends_at", ~size_t{0}),
    detail::option<&model_options::msrs_lag>("msrs_lag"),
};

/// Sets the option of a name. False, and nothing is set, where there is none or the value is not
/// one of it.
[[nodiscard]] constexpr auto set_option(model_options& how, text name, uint64_t value) noexcept
    -> bool {
    for (auto const& one : all_model_options) {
        if (one.name == name && one.least <= value && value <= one.most) {
            one.put(how, value);
            return true;
        }
    }
    return false;
}

}  // namespace ptspec::engine
