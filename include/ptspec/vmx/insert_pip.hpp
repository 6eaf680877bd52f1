// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/enables.hpp>
#include <ptspec/engine/output/output.hpp>
#include <ptspec/packet/encode.hpp>
#include <ptspec/vmx/guest_pt.hpp>
#include <ptspec/vmx/shadow.hpp>

/// The PIP of a guest's CR3 write that exits, which the VMM adds to the guest's trace.
namespace ptspec::vmx {

/// The result of `insert_pip`.
struct [[nodiscard]] inserted_pip {
    bool is_owed = false;  ///< the processor would have generated a PIP
    engine::write_result written{};

    /// False if the memory port failed: nothing has changed, and the call can be repeated.
    constexpr explicit operator bool() const noexcept { return static_cast<bool>(written); }
};

namespace detail {

/// The memory of a guest. Interrupts are counted, not raised: the VMM injects them.
template <memory_port Memory>
struct guest_memory {
    using ignores_pmis = guest_memory;

    Memory& memory;

    constexpr auto load(uint64_t address) noexcept -> port_value { return memory.load(address); }
    constexpr auto store(uint64_t address, byte_view bytes) noexcept -> size_t {
        return memory.store(address, bytes);
    }
    /// Sends bytes to the fabric of the guest; without one, 0 of them.
    constexpr auto send([[maybe_unused]] byte_view bytes) noexcept -> size_t {
        if constexpr (fabric_port<Memory>) { return memory.send(bytes); }
        return 0;
    }
};

}  // namespace detail

/// Appends the PIP of a CR3 write that the VMM executed to the guest's output, as the processor
/// does for one that does not exit. `guest` has the MSRs of the guest: TraceEn as the guest wrote
/// it, output pointers as the VM exit left them. `after` is the context after the write, with the
/// guest's CR3; `pip` is the packet: with shadow paging its CR3 is the processor's, as in the
/// other PIPs of the trace, and `edit::replace_cr3` changes it later.
///
/// A PIP is owed if TriggerEn, ContextEn after the write, and OS are 1; FilterEn and BranchEn have
/// no effect on it. It counts in PacketByteCnt, except where that is 0: then the next
/// enable sends a PSB+. A CYC cannot be added: the PIP is bounded by the CYCs around it. If the
/// write changes PacketEn, the processor reports it at the VM entry.
///
/// Output ends as it does for the processor: STOP, or an operational error, sets STATUS of `guest`;
/// INT sets Trace_ToPA_PMI, and `written.pmis` is not 0: inject the interrupt (PRG-177).
///
/// Errors: `written.fault`, then `guest` is unchanged. FabricEn without a `fabric_port` is one.
/// Source: SDM vol. 3, "Emulation of Intel PT Traced State"; PRG-175, PRG-177, GEN-028, GEN-161,
///         GEN-240..243, REG-055, REG-057, PKT-080, PKT-115.
template <memory_port Memory>
constexpr auto insert_pip(cpu::capabilities const& caps, access::msr_state& guest,
                          access::processor_context const& after, packet::pip pip, Memory& memory,
                          engine::output_options const& options = {}) noexcept -> inserted_pip {
    using ctl = access::ia32_rtit_ctl;
    using status = access::ia32_rtit_status;
    if (!access::trigger_en(guest.ctl, guest.status) || !guest.ctl.get<ctl::OS>() ||
        !access::context_en(guest.ctl, guest.cr3_match, after)) {
        return {};
    }
    auto const bytes = packet::encode(pip);
    auto state = guest;
    state.status = state.status.with(status::TriggerEn{true});
    detail::guest_memory<Memory> port{memory};
    engine::output output;
    (void)output.start(caps, state, port, options);  // storing bytes reports the same fault again
    inserted_pip const result{true, output.write(state, port, bytes)};
    if (!result) { return result; }
    output.stop(state);
    if (output.ended_by() == rule::none) {
        state.status = state.status.with(status::TriggerEn{guest.status.get<status::TriggerEn>()});
    }
    if (auto const count = state.status.get<status::PacketByteCnt>(); count != 0) {
        state.status = state.status.with(status::PacketByteCnt{wrapped{count + bytes.size()}});
    }
    guest = state;
    return result;
}
/// The same with the guest's CR3 and NR = 0.
template <memory_port Memory>
constexpr auto insert_pip(cpu::capabilities const& caps, access::msr_state& guest,
                          access::processor_context const& after, Memory& memory,
                          engine::output_options const& options = {}) noexcept -> inserted_pip {
    using packet::pip;
    return insert_pip(caps, guest, after, pip{}.with(pip::CR3{wrapped{after.cr3}}), memory,
                      options);
}

/// The same between `leave` and `enter`: also makes a PMI pending and, with shadow tables, moves
/// the processor's position. `shadow` is the one in use. If it does not have the new position, the
/// guest needs a new shadow.
///
/// Errors: as above.
/// Source: PRG-175, PRG-177, PRG-184.
template <memory_port Memory>
constexpr auto insert_pip(guest_pt& guest, shadow const& shadow,
                          access::processor_context const& after, packet::pip pip, Memory& memory,
                          engine::output_options const& options = {}) noexcept -> inserted_pip {
    auto const result = insert_pip(guest.caps, guest.msrs, after, pip, memory, options);
    if (!result || !result.is_owed) { return result; }
    guest.pmi_pending = guest.pmi_pending || result.written.pmis != 0;
    if (guest.hidden_byte_count != 0) { guest.hidden_byte_count += packet::pip::head_bytes; }
    if (guest.current_output() == guest_output::shadow) {
        auto const moved = shadow.to_host(guest.msrs.output);
        bool const is_placed = guest.shadow == shadow_use::placed && moved;
        guest.shadow = is_placed ? shadow_use::placed : shadow_use::needed;
        if (is_placed) { guest.host_output = moved.at; }
    }
    return result;
}

}  // namespace ptspec::vmx
