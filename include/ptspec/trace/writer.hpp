// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/packet_group.hpp>

/// A trace from what happened: branches, IPs, status, and time.
namespace ptspec::trace {

/// Something that takes bytes: all that it is given, or none of them.
template <class Sink>
concept packet_sink = requires(Sink& to, byte_view bytes) {
    { to.append(bytes) } -> same_as<bool>;
};

/// Writes packets as a processor does: it gathers branches in TNTs, compresses IPs, and puts CYCs
/// before what they time.
///
/// Every call writes all of its packets or, where it returns a rule, none. Nothing has changed then,
/// and the call can be made again. What `decode` would not read back is not written.
///
/// Errors: what `encode` refuses; PKT-135 a TMA without TSC; PKT-347 the sink takes no more.
/// Source: SDM vol. 3, "Trace Packets and Data Types"; PKT-030..064, PKT-134, PKT-135, PKT-275,
///         PKT-340..347, GEN-120..125, GEN-145..147, GEN-170..174, GEN-210..218, GEN-229.
template <packet_sink Sink, class Packets = packet::all>
class writer {
public:
    /// The sink is borrowed, and has to outlive this.
    constexpr explicit writer(Sink& to, writer_options how = {}) noexcept : to_{to}, how_{how} {}

    /// A conditional branch, or a compressed return, which counts as taken. It is in the trace once
    /// its TNT is full, or another packet comes, or `flush` is called.
    [[nodiscard]] constexpr auto branch(bool taken) noexcept -> rule {
        bool const begins = now_.tnt.count == 0;
        if (now_.tnt.count + 1 < how_.most_branches() && !(begins && now_.cyc_is_due(how_))) {
            now_.gather(taken);
            return rule::none;
        }
        return together([&](packet_group<Packets>& all) { all.branch(taken); });
    }
    /// The target of an indirect branch, which may be deferred.
    [[nodiscard]] constexpr auto indirect(uint64_t ip) noexcept -> rule {
        return together([&](packet_group<Packets>& all) { all.defer(ip); });
    }
    /// A packet with an IP, in the form that the options tell. It is never deferred.
    template <class Packet>
        requires derived_from<Packet, packet::ip_packet<Packet>>
    [[nodiscard]] constexpr auto put_ip(uint64_t ip) noexcept -> rule {
        if (is_calm()) { return put(Packet::of(now_.form_of(ip, how_.ips), ip)); }
        return together([&](packet_group<Packets>& all) { all.template add_ip<Packet>(ip); });
    }
    /// A packet as it is.
    template <packet::packet_type Packet>
    [[nodiscard]] constexpr auto put(Packet const& which) noexcept -> rule {
        bool const eligible = Packet::about.cyc_eligible == packet::answer::yes;
        if (!is_calm() || (eligible && now_.cyc_is_due(how_))) {
            return together([&](packet_group<Packets>& all) { all.add(which); });
        }
        auto const bytes = packet::encode<Packet, Packets>(which, now_.items);
        if (!bytes) { return bytes.broken; }
        if (!to_.append(bytes)) { return rule::PKT_347; }
        now_.step_over(which, bytes.length);
        return rule::none;
    }
    [[nodiscard]] constexpr auto put(packet::any_packet const& which) noexcept -> rule {
        return packet::visit<Packets>([this](auto const& one) { return this->put(one); }, which);
    }
    /// A PSB+: PSB, the status in the order in which it is listed, PSBEND.
    [[nodiscard]] constexpr auto put(psb_status const& status) noexcept -> rule {
        return together([&](packet_group<Packets>& all) { all.add(status); });
    }
    /// Ends the TNT that is being filled, and lets go of the TIPs that wait for it.
    [[nodiscard]] constexpr auto flush() noexcept -> rule {
        return together([](packet_group<Packets>& all) { all.flush(); });
    }

    /// Core clocks pass.
    constexpr void advance(uint64_t cycles) noexcept { now_.cycles += cycles; }

    [[nodiscard]] constexpr auto state() const noexcept -> writer_state const& { return now_; }

private:
    /// True when no packet waits for the next, and none needs PADs.
    [[nodiscard]] constexpr auto is_calm() const noexcept -> bool {
        return now_.tnt.count == 0 && !how_.pads;
    }
    /// Writes what `add` adds to a group.
    template <class Add>
    [[gnu::noinline]]  // so that it is not in the way of single packets
    constexpr auto
    together(Add const& add) noexcept -> rule {
        packet_group<Packets> all{now_, how_};
        add(all);
        if (all.broken() != rule::none) { return all.broken(); }
        if (!all.bytes().empty() && !to_.append(all.bytes())) { return rule::PKT_347; }
        now_ = all.state();
        return rule::none;
    }

    Sink& to_;
    writer_options how_;
    writer_state now_{};
};

}  // namespace ptspec::trace
