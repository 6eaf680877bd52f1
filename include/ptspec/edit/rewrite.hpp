// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/time_conversion.hpp>
#include <ptspec/trace/tsc_change.hpp>
#include <ptspec/edit/trace_pieces.hpp>

/// What a VMM changes in the packets of a guest's trace, in place: `replace_cr3` puts the guest's
/// CR3 in place of that of shadow paging, `replace_vmcs` the address of a guest hypervisor's VMCS
/// in place of the VMM's, and `rebase_tsc` changes the TSC where the VMCS did not.
///
/// A trace that is read part by part, as from a ring, is changed from the first PSB of the first
/// part on, and its packets may continue in the next part: `trace_parts` keeps what is needed
/// between two calls. Without it each part counts as a trace of its own, and what precedes its
/// first PSB stays as it is: `skipped`.
namespace ptspec::edit {

namespace detail {

/// Changes TSC packets and their TMAs.
class tsc_changer {
public:
    constexpr tsc_changer() noexcept = default;
    constexpr explicit tsc_changer(trace::tsc_change how) noexcept { set(how); }
    /// Sets another change from here on. `near_by` is used only the first time.
    constexpr void set(trace::tsc_change how) noexcept {
        if (!is_set_) { last_ = how.near_by; }
        how_ = how;
        is_set_ = true;
    }

    /// Source: GEN-200, PKT-315.
    constexpr auto changed(packet::tsc which) noexcept -> packet::tsc {
        using tsc = packet::tsc;
        last_ = trace::tsc_near(which.get<tsc::TSC>(), last_);
        has_tsc_ = true;
        return which.with(tsc::TSC{wrapped{how_.of(last_)}});
    }
    /// Changes the FC of a TMA: TSC - FC, the TSC at the edge of the crystal clock, is changed as
    /// the TSC is. The offset cancels, and so does the CTC: the crystal clock is not scaled.
    ///
    /// Errors: PKT-303 a TMA without a TSC; PKT-340 FC does not fit.
    /// Source: PKT-300, PKT-303.
    constexpr auto change(packet::tma& which) noexcept -> rule {
        using FC = packet::tma::FC;
        if (!how_.scales()) { return rule::none; }
        if (!has_tsc_) { return rule::PKT_303; }
        has_tsc_ = false;
        uint64_t const fast = how_.of(last_) - how_.of(last_ - which.get<FC>());
        if (fast > low_bits(FC::width)) { return rule::PKT_340; }
        which = which.with(FC{wrapped{fast}});
        return rule::none;
    }

private:
    trace::tsc_change how_{};
    uint64_t last_ = 0;
    bool has_tsc_ = false;  ///< since the last TMA
    bool is_set_ = false;
};

}  // namespace detail

// ------------------------------------------------------------------------------------ parts

/// What a rewriting of `Packet` (pip, vmcs or tsc) keeps between the parts of a trace. A value; one
/// for each function and trace, so that several functions can change the same parts.
///
/// Each part begins where the one before ended, less the bytes that were kept back. After an
/// interruption of the trace, as when a ring was overwritten, begin with a new value.
template <packet::packet_type Packet, class Packets = packet::all>
struct trace_parts {
    detail::part_reader<Packets> from{};
    detail::tsc_changer tsc{};
};

// ------------------------------------------------------------------------ addresses of the host

/// The guest's address for one of the host: a CR3, or that of a VMCS.
struct [[nodiscard]] guest_address {
    bool is_known = false;
    uint64_t value = 0;
};

/// The result of `replace_cr3` and `replace_vmcs`.
struct [[nodiscard]] replaced_addresses {
    uint64_t count = 0;    ///< packets that remain
    uint64_t removed = 0;  ///< packets with an address that is not one of the guest: now PADs
    /// Bytes that stay as they are, with the addresses that they may have: before the first PSB,
    /// damaged, or of a packet that is incomplete at the end of the trace.
    uint64_t skipped = 0;
    /// Between parts: the last bytes of the part are the beginning of a packet. They are unchanged:
    /// give them to the guest later, and here again, at the beginning of the next part.
    size_t kept_back = 0;

    constexpr explicit operator bool() const noexcept { return removed == 0 && skipped == 0; }
};

namespace detail {

/// Replaces a field of each `Packet` of a part.
template <class Packet, class Field, class Packets>
constexpr auto replace_addresses(trace_parts<Packet, Packets>& parts, trace_pieces part,
                                 bool is_last, auto& guest_address_of) noexcept
    -> replaced_addresses {
    piece_bytes bytes{part, parts.from.begin()};
    replaced_addresses result;
    parts.from.read(bytes, is_last, [&](trace::item const& got) {
        if (got.what == trace::item_type::resynced) {
            // A packet that was replaced may have had its first bytes.
            bytes.write(got.offset, packet::encode<packet::psb, Packets>({}));
        } else if (got.packet.is<Packet>()) {
            auto const which = got.packet.as<Packet>();
            guest_address const to = guest_address_of(which.template get<Field>());
            if (to.is_known) {
                ++result.count;
                bytes.write(got.offset,
                            packet::encode<Packet, Packets>(which.with(Field{wrapped{to.value}})));
            } else {
                ++result.removed;
                bytes.pad(got.offset, got.offset + got.length);
            }
        }
    });
    result.skipped = parts.from.skipped();
    result.kept_back = parts.from.kept_back();
    return result;
}

}  // namespace detail

/// Rewrites the PIPs of a part of a guest's trace in place, for a guest with shadow paging: the
/// processor's CR3 is that of tables which the VMM made, and a PIP shows it. `guest_cr3_of(cr3)`
/// returns the guest's CR3, in bits 51:5, for one of the processor. A PIP for which it has none is
/// removed.
///
/// Call it before the guest reads the trace, and once for each part: a CR3 that was replaced is not
/// one of the processor. Bytes that are `skipped` stay as they are, so this does not hide addresses
/// of the host from a guest to whose memory the processor wrote. For CR3 filtering, set
/// `guest_pt::host_cr3_match`, too.
///
/// Source: SDM vol. 3, "Emulation of Intel PT Traced State"; PRG-175, PKT-080, PKT-082.
template <class Packets, class Map>
constexpr auto replace_cr3(trace_parts<packet::pip, Packets>& parts, trace_pieces part,
                           Map&& guest_cr3_of) noexcept -> replaced_addresses {
    return detail::replace_addresses<packet::pip, packet::pip::CR3>(parts, part, false,
                                                                    guest_cr3_of);
}
/// The same for a whole trace.
template <class Packets = packet::all, class Map>
constexpr auto replace_cr3(trace_pieces whole, Map&& guest_cr3_of) noexcept -> replaced_addresses {
    trace_parts<packet::pip, Packets> one;
    return detail::replace_addresses<packet::pip, packet::pip::CR3>(one, whole, true, guest_cr3_of);
}

/// Rewrites the VMCS packets of a part of a trace in place in the same way, for a guest hypervisor
/// that traces its guests: the processor shows the VMCS with which the VMM runs them.
/// `guest_vmcs_of(address)` returns the address of the guest's VMCS for one of the host.
///
/// Source: PKT-162, PKT-163, GEN-278.
template <class Packets, class Map>
constexpr auto replace_vmcs(trace_parts<packet::vmcs, Packets>& parts, trace_pieces part,
                            Map&& guest_vmcs_of) noexcept -> replaced_addresses {
    return detail::replace_addresses<packet::vmcs, packet::vmcs::base>(parts, part, false,
                                                                       guest_vmcs_of);
}
/// The same for a whole trace.
template <class Packets = packet::all, class Map>
constexpr auto replace_vmcs(trace_pieces whole, Map&& guest_vmcs_of) noexcept
    -> replaced_addresses {
    trace_parts<packet::vmcs, Packets> one;
    return detail::replace_addresses<packet::vmcs, packet::vmcs::base>(one, whole, true,
                                                                       guest_vmcs_of);
}

// -------------------------------------------------------------------------- the time-stamp counter

/// The result of `rebase_tsc`.
struct [[nodiscard]] rebased_tsc {
    rule broken = rule::none;  ///< the rule that a TMA breaks: nothing has changed
    uint64_t offset = 0;       ///< of that TMA, from the start of the trace
    uint64_t count = 0;        ///< TSC packets
    uint64_t skipped = 0;      ///< bytes that stay as they are, as in `replaced_addresses`
    size_t kept_back = 0;      ///< bytes at the end that are unchanged, as in `replaced_addresses`

    constexpr explicit operator bool() const noexcept {
        return broken == rule::none && skipped == 0;
    }
};

namespace detail {

template <class Packets>
constexpr auto rebase_tsc(trace_parts<packet::tsc, Packets>& parts, trace_pieces part, bool is_last,
                          trace::tsc_change how) noexcept -> rebased_tsc {
    piece_bytes bytes{part, parts.from.begin()};
    rebased_tsc result;
    auto const pass = [&](trace_parts<packet::tsc, Packets>& with, auto const& put) {
        with.tsc.set(how);
        with.from.read(bytes, is_last, [&](trace::item const& got) {
            auto const write = [&]<class Packet>(Packet const& which) {
                put(got.offset, byte_view{packet::encode<Packet, Packets>(which)});
            };
            if (got.what == trace::item_type::resynced) {
                write(packet::psb{});  // a TSC may have had its first bytes
            } else if (got.packet.is<packet::tsc>()) {
                write(with.tsc.changed(got.packet.as<packet::tsc>()));
            } else if (got.packet.is<packet::tma>() && how.scales()) {
                auto tma = got.packet.as<packet::tma>();
                rule const broken = with.tsc.change(tma);
                if (broken != rule::none && result.broken == rule::none) {
                    result.broken = broken;
                    result.offset = got.offset;
                }
                write(tma);
            }
        });
    };
    auto trial = parts;
    pass(trial, [](uint64_t, byte_view) {});
    if (result.broken != rule::none) { return result; }
    pass(parts, [&](uint64_t offset, byte_view packet) {
        bytes.write(offset, packet);
        result.count += packet[0] == packet::tsc{}.raw ? 1U : 0U;
    });
    result.skipped = parts.from.skipped();
    result.kept_back = parts.from.kept_back();
    return result;
}

}  // namespace detail

/// Rewrites the TSC packets of a part of a trace in place, for a guest whose RDTSC the VMM
/// emulates, or that moved to another processor: then `how` is another one from a part on.
///
/// MTC, CYC and CBR do not change. With an offset alone, all relations of the clocks stay. With a
/// multiplier FC changes, too, and MTC and CYC have the guest's time only if its CPUID leaf 15H and
/// MSR_PLATFORM_INFO are scaled in the same way (PRG-176).
///
/// Errors: with a multiplier: PKT-303 a TMA without a TSC; PKT-340 an FC that has more than 9 bits
///         after the change. Then nothing has changed, and the call can be repeated with another
///         `how`.
/// Source: REG-133, GEN-200, GEN-209, PRG-175, PRG-176, PKT-100, PKT-300, PKT-315, PKT-317.
template <class Packets>
constexpr auto rebase_tsc(trace_parts<packet::tsc, Packets>& parts, trace_pieces part,
                          trace::tsc_change how) noexcept -> rebased_tsc {
    return detail::rebase_tsc(parts, part, false, how);
}
/// The same for a whole trace.
template <class Packets = packet::all>
constexpr auto rebase_tsc(trace_pieces whole, trace::tsc_change how) noexcept -> rebased_tsc {
    trace_parts<packet::tsc, Packets> one;
    return detail::rebase_tsc(one, whole, true, how);
}

// ------------------------------------------------------------------------------ packets of VMX

namespace detail {

/// A packet of VMX: PIP with NR, VMCS, and the events of VM entries and exits.
[[nodiscard]] constexpr auto is_vmx_event(packet::any_packet const& which) noexcept -> bool {
    using packet::cfe;
    using packet::cfe_type;
    using packet::evd;
    using packet::evd_type;
    if (which.is<cfe>()) {
        auto const type = which.as<cfe>().get<cfe::type>();
        return type == cfe_type::VMENTRY || type == cfe_type::VMEXIT ||
               type == cfe_type::VMEXIT_INTR;
    }
    auto const type = which.is<evd>() ? which.as<evd>().get<evd::type>() : evd_type::PFA;
    return type == evd_type::VMXQ || type == evd_type::VMXR;
}

}  // namespace detail

/// The number of packets that show VMX operation: PIP with NR = 1, VMCS, and the events of VM
/// transitions. 0 for a guest that runs with the three "conceal VMX from PT" controls.
///
/// Source: GEN-278, GEN-306, PKT-081, PKT-274.
template <class Packets = packet::all>
[[nodiscard]] constexpr auto count_vmx_packets(trace_pieces in) noexcept -> uint64_t {
    using packet::pip;
    detail::piece_bytes bytes{in};
    uint64_t count = 0;
    detail::for_each_item<Packets>(bytes, [&](trace::item const& got) {
        auto const& which = got.packet;
        bool const has_nr = which.is<pip>() && which.as<pip>().get<pip::NR>();
        count += has_nr || which.is<packet::vmcs>() || detail::is_vmx_event(which) ? 1U : 0U;
    });
    return count;
}

}  // namespace ptspec::edit
