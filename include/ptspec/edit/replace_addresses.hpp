// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/edit/chunked_trace.hpp>
#include <ptspec/packet/encode.hpp>

/// Changes addresses of the host in a guest's trace in place: `replace_cr3` puts the guest's CR3 in
/// place of that of shadow paging, and `replace_vmcs` the address of a guest hypervisor's VMCS in
/// place of the VMM's.
namespace ptspec::edit {

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
    /// The number of bytes at the end of a chunk that begin a packet of the next one. They are
    /// unchanged: give them to the guest later, and here again, at the beginning of the next chunk.
    size_t kept_back = 0;

    constexpr explicit operator bool() const noexcept { return removed == 0 && skipped == 0; }
};

namespace detail {

/// Replaces a field of each `Packet` of a chunk.
template <class Packet, class Field, class Packets>
constexpr auto replace_addresses(chunked_trace<Packet, Packets>& chunks, trace_memory memory,
                                 bool is_last, auto& guest_address_of) noexcept
    -> replaced_addresses {
    trace_bytes chunk{memory, chunks.reader.begin()};
    replaced_addresses result;
    chunks.reader.read(chunk, is_last, [&](trace::item const& item) {
        if (item.what == trace::item_type::resynced) {
            // A packet that was replaced may have had its first bytes.
            chunk.write(item.offset, packet::encode<packet::psb, Packets>({}));
        } else if (item.packet.is<Packet>()) {
            auto const original = item.packet.as<Packet>();
            guest_address const address = guest_address_of(original.template get<Field>());
            if (address.is_known) {
                auto const changed = original.with(Field{wrapped{address.value}});
                ++result.count;
                chunk.write(item.offset, packet::encode<Packet, Packets>(changed));
            } else {
                ++result.removed;
                chunk.pad(item.offset, item.offset + item.length);
            }
        }
    });
    result.skipped = chunks.reader.skipped();
    result.kept_back = chunks.reader.kept_back();
    return result;
}

}  // namespace detail

/// Rewrites the PIPs of a chunk of a guest's trace in place, for a guest with shadow paging: the
/// processor's CR3 is that of tables which the VMM made, and a PIP shows it. `guest_cr3_of(cr3)`
/// returns the guest's CR3, in bits 51:5, for one of the processor. A PIP for which it has none is
/// removed.
///
/// Call it before the guest reads the trace, and once for each chunk: a CR3 that was replaced is
/// not one of the processor. Bytes that are `skipped` stay as they are, so this does not hide
/// addresses of the host from a guest to whose memory the processor wrote. For CR3 filtering, set
/// `vmx::guest_pt::host_cr3_match`, too.
///
/// Source: SDM vol. 3, "Emulation of Intel PT Traced State"; PRG-175, PKT-080, PKT-082.
template <class Packets, class Map>
constexpr auto replace_cr3(chunked_trace<packet::pip, Packets>& chunks, trace_memory chunk,
                           Map&& guest_cr3_of) noexcept -> replaced_addresses {
    return detail::replace_addresses<packet::pip, packet::pip::CR3>(chunks, chunk, false,
                                                                    guest_cr3_of);
}
/// The same for a whole trace.
template <class Packets = packet::all, class Map>
constexpr auto replace_cr3(trace_memory whole, Map&& guest_cr3_of) noexcept -> replaced_addresses {
    chunked_trace<packet::pip, Packets> only_chunk;
    return detail::replace_addresses<packet::pip, packet::pip::CR3>(only_chunk, whole, true,
                                                                    guest_cr3_of);
}

/// Rewrites the VMCS packets of a chunk of a trace in place in the same way, for a guest hypervisor
/// that traces its guests: the processor shows the VMCS with which the VMM runs them.
/// `guest_vmcs_of(address)` returns the address of the guest's VMCS for one of the host.
///
/// Source: PKT-162, PKT-163, GEN-278.
template <class Packets, class Map>
constexpr auto replace_vmcs(chunked_trace<packet::vmcs, Packets>& chunks, trace_memory chunk,
                            Map&& guest_vmcs_of) noexcept -> replaced_addresses {
    return detail::replace_addresses<packet::vmcs, packet::vmcs::base>(chunks, chunk, false,
                                                                       guest_vmcs_of);
}
/// The same for a whole trace.
template <class Packets = packet::all, class Map>
constexpr auto replace_vmcs(trace_memory whole, Map&& guest_vmcs_of) noexcept
    -> replaced_addresses {
    chunked_trace<packet::vmcs, Packets> only_chunk;
    return detail::replace_addresses<packet::vmcs, packet::vmcs::base>(only_chunk, whole, true,
                                                                       guest_vmcs_of);
}

}  // namespace ptspec::edit
