// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/xsave.hpp>
#include <ptspec/driver/enable.hpp>
#include <ptspec/base/attribute.hpp>

/// Context switches: the state of a trace saved and restored, by MSR accesses or by XSAVES.
namespace ptspec::driver {

// ------------------------------------------------------------------------------------ by MSRs

/// The saved state of a trace. `state.ctl` has the value before TraceEn was cleared: its TraceEn is
/// 1 if tracing was on.
struct [[nodiscard]] saved_context : procedure_result {
    access::msr_state state{};
};

/// Converts a saved state to the form that `triage`, `update` and `drain` read.
[[nodiscard]] constexpr auto stopped_at(access::msr_state const& saved) noexcept -> stopped_trace {
    stopped_trace result;
    result.trace = trace_state::disabled;
    result.ctl = saved.ctl;
    result.status = saved.status;
    result.output = saved.output;
    return result;
}

namespace detail {

/// Reads the chosen MSRs into `state`. `state.ctl` must be set before: it says which are used.
///
/// noinline: for the reason given at `program`.
template <class Sequence>
PTSPEC_ATTRIBUTE(noinline)
constexpr void read_chosen(Sequence& sequence, access::msr_state& state,
                           msr_choice choice) noexcept {
    for (access::pt_msr const& msr : access::pt_msrs) {
        if (is_chosen(choice, state.ctl, msr)) {
            access::set_raw(state, msr.index, sequence.read(msr.index));
        }
    }
}

/// Clears TraceEn, and reads the MSRs other than IA32_RTIT_CTL into `result.state`. The caller sets
/// `result.state.ctl` before.
template <class Sequence>
constexpr void save(Sequence& sequence, saved_context& result) noexcept {
    auto& state = result.state;
    if (sequence) { result.trace = clear_trace_en(sequence, state.ctl); }
    sequence.fence();
    read_chosen(sequence, state, msr_choice::all);
    result.fault = sequence.fault();
}

}  // namespace detail

/// Saves the state of a trace: reads IA32_RTIT_CTL, clears TraceEn, executes a store fence, and
/// reads the other MSRs that the trace uses. Their values are exact only after TraceEn was cleared.
/// The fence orders the trace before later stores: the context may continue on another processor.
///
/// Errors: the access that faulted; the context is then incomplete. `trace` is `unknown` if
///         IA32_RTIT_CTL could not be read, `still_tracing` if TraceEn could not be cleared, and
///         `enabled` if a later access faulted: TraceEn gets its old value back, as by XSAVES.
///         Then call `save` again. It is `disabled` if that write faulted, too, or tracing was off:
///         pass `state.ctl` of the result to the overload below.
/// Source: SDM vol. 3, "Context Switch Consideration"; PRG-062, PRG-100, PRG-103, PRG-111.
template <fenced_msr_port Msrs>
constexpr auto save(Msrs& msrs) noexcept -> saved_context {
    msr_sequence sequence{msrs};
    saved_context result;
    result.state.ctl = sequence.template read<ia32_rtit_ctl>();
    detail::save(sequence, result);
    bool const cleared = result.trace == trace_state::disabled &&
                         result.state.ctl.template get<ia32_rtit_ctl::TraceEn>();
    if (!result && cleared && write(msrs, result.state.ctl)) {
        result.trace = trace_state::enabled;
    }
    return result;
}
/// The same without a read of IA32_RTIT_CTL. `written` is its value before TraceEn is cleared: the
/// value that the owner wrote, or `state.ctl` of a `save` that faulted after it read IA32_RTIT_CTL.
/// After a fault TraceEn stays 0: repeat the call.
template <fenced_msr_port Msrs>
constexpr auto save(Msrs& msrs, ia32_rtit_ctl written) noexcept -> saved_context {
    msr_sequence sequence{msrs};
    saved_context result;
    result.state.ctl = written;
    detail::save(sequence, result);
    return result;
}

/// Restores the state of a trace, IA32_RTIT_CTL last. TraceEn must be 0. PacketByteCnt is restored,
/// too, so that the trace continues without a PSB.
///
/// Errors: the access that faulted; TraceEn is then 0, and the saved state can be restored again.
/// Source: SDM vol. 3, "Context Switch Consideration"; PRG-101, PRG-102.
template <msr_port Msrs>
constexpr auto restore(Msrs& msrs, access::msr_state const& saved) noexcept -> procedure_result {
    msr_sequence sequence{msrs};
    detail::program(sequence, saved);
    bool const done = sequence.write(saved.ctl);
    return {sequence.fault(), done ? trace_state_of(saved.ctl) : trace_state::disabled};
}

// ------------------------------------------------------------------------------------ by XSAVES

/// Component 8 in an XSAVE area that contains no other component beyond the legacy region.
///
/// Shape:  704 bytes: the legacy region of 512 bytes, the header of 64, PT state of 128. The area
///         must be at a multiple of 64 bytes.
/// Source: SDM vol. 1, "XSAVE Area"; PRG-110, REG-141.
struct xsaves_area {
    static constexpr size_t component_offset = 576;
    static constexpr size_t size = component_offset + sizeof(access::xsave_pt_state);

    byte_array<size> bytes{};
};

/// The PT state in an XSAVE area, or the rule by which XRSTORS rejects the area.
struct [[nodiscard]] parsed_area {
    rule broken = rule::none;  ///< REG-148: the header; REG-144: a reserved quadword
    bool is_initial = false;   ///< XSTATE_BV[8] is 0: XRSTORS loads the initial configuration
    access::xsave_pt_state state{};

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

/// The offset in bytes of component 8 in a compacted area with the components in `format`.
///
/// Source: SDM vol. 1, "Compacted Format of an XSAVE Area"; REG-141.
template <cpuid_port Cpuid>
[[nodiscard]] constexpr auto component_offset(Cpuid& cpuid,
                                              reg::xsave_header_xcomp_bv format) noexcept
    -> size_t {
    size_t at = xsaves_area::component_offset;
    for (unsigned i = 2; i <= 8; ++i) {
        if ((format.raw >> i & 1) == 0) { continue; }
        auto const component = cpuid.query(0x0D, i);
        if ((component.ecx & 2) != 0) { at = (at + 63) / 64 * 64; }
        if (i == 8) { break; }
        at += component.eax;
    }
    return at;
}

/// Makes an area from which XRSTORS with RFBM[8] = 1 loads a trace state on this processor.
///
/// Address ranges 2 and 3 are not in it: write them with `write_uncovered`.
/// Source: PRG-110, PRG-112.
[[nodiscard]] constexpr auto make_xsaves_area(cpu::capabilities const& caps,
                                              access::msr_state const& state) noexcept
    -> xsaves_area {
    auto const image = access::xsaves(caps, state).image;
    xsaves_area made;
    uint64_t const bit = uint64_t{1} << reg::xsave_header_xcomp_bv::PT::lsb;
    uint8_t* const bytes = made.bytes.bytes;
    store_le64(bytes + reg::xsave_header_xstate_bv::offset, bit);
    store_le64(bytes + reg::xsave_header_xcomp_bv::offset,
               bit | reg::xsave_header_xcomp_bv::forced_1_mask());
    for (unsigned i = 0; i < 16; ++i) {
        store_le64(bytes + xsaves_area::component_offset + 8 * i, image.quadwords[i]);
    }
    return made;
}

/// Reads component 8 from an XSAVE area. If the area has other components beyond the legacy region,
/// `offset` is the result of `component_offset`. The bytes are untrusted.
///
/// Errors: REG-148 an area that is too short, not compacted, or without the component; REG-144 a
///         reserved quadword that is not 0.
/// Source: SDM vol. 1, "Operation of XRSTORS"; REG-144, REG-146, REG-148.
[[nodiscard]] constexpr auto parse_xsaves_area(
    byte_view area, size_t offset = xsaves_area::component_offset) noexcept -> parsed_area {
    using xcomp = reg::xsave_header_xcomp_bv;
    constexpr size_t bytes = sizeof(access::xsave_pt_state);
    if (offset < xsaves_area::component_offset || area.size() < bytes ||
        area.size() - bytes < offset) {
        return {.broken = rule::REG_148};
    }
    reg::xsave_header_xstate_bv const present{
        load_le64(area.data() + reg::xsave_header_xstate_bv::offset)};
    xcomp const format{load_le64(area.data() + xcomp::offset)};
    auto const header = access::check_header(present, format,
                                             reg::ia32_xss{}.with(reg::ia32_xss::PT_STATE{true}));
    if (!header || !format.get<xcomp::PT>()) { return {.broken = rule::REG_148}; }
    parsed_area result;
    result.is_initial = !present.get<reg::xsave_header_xstate_bv::PT>();
    if (result.is_initial) { return result; }
    for (unsigned i = 0; i < 16; ++i) {
        result.state.quadwords[i] = load_le64(area.data() + offset + 8 * i);
    }
    if (!result.state.reserved_quadwords_are_zero()) { return {.broken = rule::REG_144}; }
    return result;
}

/// Reads the MSRs of address ranges 2 and 3, which XSAVES does not save. Call it after XSAVES.
///
/// Source: PRG-110.
template <msr_port Msrs>
constexpr auto read_uncovered(Msrs& msrs, access::msr_state& state) noexcept -> procedure_result {
    msr_sequence sequence{msrs};
    detail::read_chosen(sequence, state, detail::msr_choice::not_in_xsave_area);
    return {sequence.fault(), trace_state::disabled};
}
/// Writes the MSRs of address ranges 2 and 3, which XRSTORS does not restore. Call it before
/// XRSTORS.
///
/// Source: PRG-110, PRG-112.
template <msr_port Msrs>
constexpr auto write_uncovered(Msrs& msrs, access::msr_state const& state) noexcept
    -> procedure_result {
    msr_sequence sequence{msrs};
    detail::program(sequence, state, detail::msr_choice::not_in_xsave_area);
    return {sequence.fault(), trace_state::disabled};
}

}  // namespace ptspec::driver

#undef PTSPEC_ATTRIBUTE
