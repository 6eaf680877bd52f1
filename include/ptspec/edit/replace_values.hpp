// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/any_packet.hpp>
#include <ptspec/packet/list.hpp>
#include <ptspec/trace/item.hpp>

/// Replaces the values in packets that show what was traced: addresses, times and data. A packet
/// keeps its kind, its length and its other fields.
namespace ptspec::edit {

/// What happens with a value.
enum class value_change : uint8_t { keep, zero, map };

/// What happens with the values of each packet. Data are mapped to 0, except that the address of a
/// page fault is mapped as an IP.
struct value_changes {
    value_change ip = value_change::keep;
    value_change cr3 = value_change::keep;
    value_change vmcs = value_change::keep;
    value_change tsc = value_change::keep;
    value_change ptw = value_change::keep;
    value_change evd = value_change::keep;
    value_change bip = value_change::keep;
    value_change mnt = value_change::keep;
    value_change mwait = value_change::keep;
};

/// True if no VMCS is loaded: the address is all ones, and is never replaced.
///
/// Source: PKT-162.
[[nodiscard]] constexpr auto is_no_vmcs(packet::vmcs vmcs) noexcept -> bool {
    return vmcs.get<packet::vmcs::base>() == (low_bits(52) & ~low_bits(12));
}

/// Gives the value that replaces another. `ip` must keep compressed IPs valid: if two IPs have
/// the same high bits above the low 16, 32 or 48, their replacements have, too; high bits of 0 stay
/// 0, because the last IP after a PSB is 0; and sign-extended IPs stay sign-extended.
///
/// Source: PKT-053..060.
template <class Maps>
concept value_maps = requires(Maps& maps, uint64_t value) {
    { maps.ip(value) } -> same_as<uint64_t>;
    { maps.cr3(value) } -> same_as<uint64_t>;
    { maps.vmcs(value) } -> same_as<uint64_t>;
    { maps.tsc(value) } -> same_as<uint64_t>;
};

/// The IP that replaces an IP.
template <value_maps Maps>
[[nodiscard]] constexpr auto replaced_ip(uint64_t ip, value_change change, Maps& maps) -> uint64_t {
    return change == value_change::keep ? ip : change == value_change::zero ? 0 : maps.ip(ip);
}

namespace detail {

using namespace ptspec::detail;

/// Changes one packet.
template <class Maps>
struct value_replacer {
    value_changes const& changes;
    Maps& maps;
    trace::item const& item;

    template <class Packet>
    constexpr auto operator()(Packet const& original) const -> packet::any_packet {
        return {changed(original), item.length};
    }

private:
    template <class Packet>
    constexpr auto changed(Packet const& original) const -> Packet {
        if constexpr (derived_from<Packet, packet::ip_packet<Packet>>) {
            if (!original.has_ip() || changes.ip == value_change::keep) { return original; }
            return Packet::of(original.template get<typename Packet::IPBytes>(),
                              replaced_ip(item.ip, changes.ip, maps));
        }
        return original;
    }
    constexpr auto changed(packet::pip const& pip) const -> packet::pip {
        using CR3 = packet::pip::CR3;
        uint64_t const cr3 = pip.get<CR3>();
        if (changes.cr3 == value_change::keep) { return pip; }
        return pip.with(CR3{wrapped{changes.cr3 == value_change::zero ? 0 : maps.cr3(cr3)}});
    }
    constexpr auto changed(packet::vmcs const& vmcs) const -> packet::vmcs {
        using base = packet::vmcs::base;
        uint64_t const address = vmcs.get<base>();
        if (changes.vmcs == value_change::keep || is_no_vmcs(vmcs)) { return vmcs; }
        return vmcs.with(
            base{wrapped{changes.vmcs == value_change::zero ? 0 : maps.vmcs(address)}});
    }
    constexpr auto changed(packet::tsc const& tsc) const -> packet::tsc {
        using TSC = packet::tsc::TSC;
        uint64_t const time = tsc.get<TSC>();
        if (changes.tsc == value_change::keep) { return tsc; }
        return tsc.with(TSC{wrapped{changes.tsc == value_change::zero ? 0 : maps.tsc(time)}});
    }
    constexpr auto changed(packet::evd const& evd) const -> packet::evd {
        using payload = packet::evd::payload;
        if (changes.evd == value_change::keep) { return evd; }
        bool const is_mapped = changes.evd == value_change::map &&
                               evd.get<packet::evd::type>() == packet::evd_type::PFA;
        return evd.with(payload{wrapped{is_mapped ? maps.ip(evd.get<payload>()) : 0}});
    }
    constexpr auto changed(packet::ptw const& ptw) const -> packet::ptw {
        return changes.ptw == value_change::keep ? ptw : ptw.with_payload(0);
    }
    constexpr auto changed(packet::bip const& bip) const -> packet::bip {
        return changes.bip == value_change::keep ? bip : bip.with_payload(0);
    }
    constexpr auto changed(packet::mnt const& mnt) const -> packet::mnt {
        return changes.mnt == value_change::keep ? mnt : mnt.with(packet::mnt::payload{0});
    }
    constexpr auto changed(packet::mwait const& mwait) const -> packet::mwait {
        using word = packet::mwait;
        return changes.mwait == value_change::keep ? mwait
                                                   : mwait.with(word::hints{0}, word::ext{0});
    }
};

}  // namespace detail

/// The packet of an item, with other values.
template <class Packets = packet::all, value_maps Maps>
[[nodiscard]] constexpr auto replace_values(trace::item const& item, value_changes const& changes,
                                            Maps& maps) -> packet::any_packet {
    return packet::visit<Packets>(detail::value_replacer<Maps>{changes, maps, item}, item.packet);
}

}  // namespace ptspec::edit
