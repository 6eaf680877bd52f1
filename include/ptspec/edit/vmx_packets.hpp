// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/edit/chunked_trace.hpp>

/// Packets that show VMX operation.
namespace ptspec::edit {

namespace detail {

/// A CFE or EVD packet of a VM entry or a VM exit.
[[nodiscard]] constexpr auto is_vmx_event(packet::any_packet const& packet) noexcept -> bool {
    using packet::cfe;
    using packet::cfe_type;
    using packet::evd;
    using packet::evd_type;
    if (packet.is<cfe>()) {
        auto const type = packet.as<cfe>().get<cfe::type>();
        return type == cfe_type::VMENTRY || type == cfe_type::VMEXIT ||
               type == cfe_type::VMEXIT_INTR;
    }
    auto const type = packet.is<evd>() ? packet.as<evd>().get<evd::type>() : evd_type::PFA;
    return type == evd_type::VMXQ || type == evd_type::VMXR;
}

}  // namespace detail

/// The number of packets that show VMX operation: PIP with NR = 1, VMCS, and the events of VM
/// transitions. 0 for a guest that runs with the three "conceal VMX from PT" controls.
///
/// Source: GEN-278, GEN-306, PKT-081, PKT-274.
template <class Packets = packet::all>
[[nodiscard]] constexpr auto count_vmx_packets(trace_memory whole) noexcept -> uint64_t {
    using packet::pip;
    detail::trace_bytes bytes{whole};
    uint64_t count = 0;
    detail::for_each_item<Packets>(bytes, [&](trace::item const& item) {
        auto const& packet = item.packet;
        bool const has_nr = packet.is<pip>() && packet.as<pip>().get<pip::NR>();
        count += has_nr || packet.is<packet::vmcs>() || detail::is_vmx_event(packet) ? 1U : 0U;
    });
    return count;
}

}  // namespace ptspec::edit
