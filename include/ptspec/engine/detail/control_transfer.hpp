// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/transfer.hpp>
#include <ptspec/engine/detail/psb.hpp>

/// The packets of a control transfer, in the order of the manual's scenarios.
///
/// Source: SDM vol. 3, "Packet Generation Scenarios"; GEN-005, GEN-020..032, GEN-080..107,
///         GEN-236..245, GEN-255..257, GEN-301..306, GEN-340..342.
namespace ptspec::engine::detail {

/// How a transfer is encoded while PacketEn stays 1.
///
/// Source: GEN-110, GEN-340.
enum class branch_encoding : uint8_t {
    tnt,   ///< a TNT bit: a taken branch, or a compressed RET
    none,  ///< no packet: the decoder gets the target from the code
    tip,
    tip_undeferred,  ///< a TIP that no option defers
};
/// Whether a CFE is followed by its own FUP. Source: GEN-303, GEN-304.
enum class fup_policy : uint8_t { if_no_other, always, never };

/// An EVD packet, or none.
struct event_data {
    bool has_value = false;
    packet::evd_type type = packet::evd_type::PFA;
    uint64_t value = 0;
};
/// The packets of Event Trace for a transfer. Source: GEN-301, GEN-302.
struct traced_event {
    packet::cfe_type type{};  ///< 0: no packet
    uint8_t vector = 0;
    fup_policy fup = fup_policy::if_no_other;
    event_data first{};
    event_data second{};
};

/// A transfer of control, or a write of CR3.
struct control_transfer {
    branch_encoding encoding = branch_encoding::tip;
    cs_offset to{};
    packet_ip from{};
    bool has_fup = false;
    bool aborts_transaction = false;
    packet::pip pip{0};    ///< 0: CR3 is not written
    packet::vmcs vmcs{0};  ///< 0: the current VMCS stays
    traced_event cfe{};
};

/// True if Event Trace records a transfer. Source: GEN-306.
[[nodiscard]] constexpr auto records_events(generator_state const& s, access::enables const& before,
                                            access::enables const& after) noexcept -> bool {
    return s.ctl<ctl::EventEn>() && before.trigger && (before.context || after.context);
}
/// Source: GEN-301..304.
constexpr void add_cfe(auto& batch, traced_event const& event, packet_ip from,
                       access::enables const& before) noexcept {
    using packet::cfe;
    using packet::evd;
    if (event.type == packet::cfe_type{}) { return; }
    auto const add_evd = [&](event_data const& data) {
        if (!data.has_value) { return; }
        batch.add(evd{}.with(evd::type{data.type}, evd::payload{wrapped{data.value}}));
    };
    add_evd(event.first);
    add_evd(event.second);
    bool const has_ip = before.context &&
                        (event.fup == fup_policy::always ||
                         (event.fup == fup_policy::if_no_other && !before.packet()));
    batch.add(cfe{}.with(cfe::type{event.type}, cfe::IP{has_ip},
                         cfe::vector{wrapped{uint64_t{event.vector}}}));
    if (has_ip) { batch.template add_ip<packet::fup>(from); }
}

/// Adds the last packets of a transfer, which report its target. Source: GEN-101..103.
constexpr void add_target(generator_state& s, auto& batch, control_transfer const& transfer,
                          access::enables const& before, access::enables const& after) noexcept {
    packet_ip const target = s.in_packets(transfer.to);
    bool const is_tnt = transfer.encoding == branch_encoding::tnt;
    auto const add_ip = [&]<class Packet>(Packet) {
        add_moments_before(s, batch, Packet::about.id);
        batch.template add_ip<Packet>(target);
    };
    if (before.packet() && after.packet()) {
        if (transfer.encoding == branch_encoding::none) { return; }
        if (is_tnt) {
            if (!s.ctl<ctl::DisTNT>()) { batch.branch(true); }
            return;
        }
        add_changed_mode_exec(s, batch);
        if (transfer.encoding == branch_encoding::tip) {
            add_moments_before(s, batch, packet::kind::tip);
            batch.defer(target);
        } else {
            add_ip(packet::tip{});
        }
    } else if (before.packet()) {
        if (after.context && !is_tnt) {
            add_ip(packet::tip_pgd{});
        } else {
            add_in_time(s, batch, packet::tip_pgd{});
        }
    } else if (after.packet()) {
        if (s.options.psb_before_pge) { add_psb(s, batch, after, target); }
        add_changed_mode_exec(s, batch);
        add_ip(packet::tip_pge{});
    }
}

/// Generates the packets of a transfer to `s.ip`, after which `s.code` executes. `stop_ip` is
/// compared with the TraceStop ranges.
///
/// Source: GEN-005, GEN-100..105, GEN-245, GEN-255..257, GEN-340..342.
template <class Sink>
constexpr void emit_transfer(generator_state& s, Sink& sink, control_transfer const& transfer,
                             packet_ip stop_ip) noexcept {
    auto const before = s.enables();
    if (!before.trigger) { return; }
    auto const result = access::evaluate(s.caps, s.msrs, s.context_at(transfer.to), stop_ip.value);
    s.msrs.status = result.status;
    if (result.trace_stop && s.in_overflow) {  // Source: GEN-230
        s.deferred_ovf = s.options.trace_stop_in_overflow == stop_in_overflow::after_ovf
                             ? deferred_ovf::ovf_and_trace_stop
                             : deferred_ovf::none;
    }
    bool const stays_on = before.packet() && result.after.packet();
    bool const has_packet = transfer.encoding != branch_encoding::none || transfer.pip.raw != 0;
    if (has_packet || !stays_on) {
        put_packets(s, sink, [&](auto& batch) {
            if (records_events(s, before, result.after)) {
                add_cfe(batch, transfer.cfe, transfer.from, before);
            }
            if (transfer.aborts_transaction && result.after.context && result.after.branch) {
                add_mode_tsx(s, batch, true);
            }
            if (before.packet() && transfer.has_fup) {
                batch.template add_ip<packet::fup>(transfer.from);
            }
            bool const has_vmcs = transfer.vmcs.raw != 0 && result.after.context;
            if (has_vmcs && s.options.vmcs_before_pip) { add_in_time(s, batch, transfer.vmcs); }
            if (transfer.pip.raw != 0 && result.after.context && s.ctl<ctl::OS>()) {
                add_pip(s, batch, transfer.pip);
            }
            if (has_vmcs && !s.options.vmcs_before_pip) { add_in_time(s, batch, transfer.vmcs); }
            add_target(s, batch, transfer, before, result.after);
            if (result.trace_stop) { batch.add(packet::tracestop{}); }
        });
    }
    if (result.trace_stop || before.packet() != result.after.packet() || s.has_ranges) {
        refresh_cache(s);
    }
}
/// The same for a transfer whose target is compared with the TraceStop ranges: all except MOV CR3.
template <class Sink>
constexpr void emit_transfer(generator_state& s, Sink& sink, control_transfer const& transfer,
                             execution_context const& after) noexcept {
    s.code = after;
    s.ip = transfer.to.value;
    emit_transfer(s, sink, transfer, s.in_packets(transfer.to));
}

}  // namespace ptspec::engine::detail
