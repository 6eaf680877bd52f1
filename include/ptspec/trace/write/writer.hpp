// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/write/batch.hpp>
#include <ptspec/trace/write/encode_table.hpp>

/// A trace from what happened: branches, IPs, status, and time.
namespace ptspec::trace {

/// How many packets were put, and why not the one behind them: nothing but `none` where all were.
struct [[nodiscard]] put_many {
    size_t count = 0;
    rule broken = rule::none;
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
            takes_care_ = true;
            return rule::none;
        }
        return together([&](packet_batch<Packets>& all) { all.branch(taken); });
    }
    /// The target of an indirect branch, which may be deferred.
    [[nodiscard]] constexpr auto indirect(uint64_t ip) noexcept -> rule {
        return together([&](packet_batch<Packets>& all) { all.defer(ip); });
    }
    /// A packet with an IP, in the form that the options tell. It is never deferred.
    template <class Packet>
        requires derived_from<Packet, packet::ip_packet<Packet>>
    [[nodiscard]] constexpr auto put_ip(uint64_t ip) noexcept -> rule {
        if (is_calm()) { return put(Packet::of(now_.form_of(ip, how_.ips), ip)); }
        return together([&](packet_batch<Packets>& all) { all.template add_ip<Packet>(ip); });
    }
    /// A packet as it is.
    template <packet::packet_type Packet>
    [[nodiscard]] constexpr auto put(Packet const& which) noexcept -> rule {
        bool const eligible = Packet::about.cyc_eligible == packet::cyc_rule::yes;
        if (!is_calm() || (eligible && now_.cyc_is_due(how_))) {
            return together([&](packet_batch<Packets>& all) { all.add(which); });
        }
        auto const code = packet::detail::code_of<Packets>(which, now_.items);
        if (code.broken != rule::none) { return code.broken; }
        if (!append(code.bytes, code.length)) { return rule::PKT_347; }
        now_.step_over(which, code.length);
        return done();
    }
    [[nodiscard, gnu::always_inline]]  // so that it costs no call
    constexpr auto
    put(packet::any_packet const& which) noexcept -> rule {
        packet::kind const kind = which.kind();
        unsigned const length = which.length();
        uint64_t const low = hide_from_optimizer(which.raw().low);
        uint64_t const high = hide_from_optimizer(which.raw().high);
        if (takes_care_ || !plain.has(kind, length, low, high)) { return with_care(which); }
        if (!append({low, high}, length)) { return rule::PKT_347; }
        follow_ip(kind, low, high);
        now_.bytes += length;
        return rule::none;
    }
    /// Packets as they are, one behind the other, until one breaks a rule.
    ///
    /// The same as `put` of each, and twice as fast.
    [[nodiscard]] constexpr auto put(packet::any_packet const* first, size_t count) noexcept
        -> put_many {
        for (size_t done = 0;;) {
            if (!takes_care_) { done += put_by_table(first + done, count - done); }
            if (done == count) { return {done, rule::none}; }
            rule const broken = put(first[done]);
            if (broken != rule::none) { return {done, broken}; }
            ++done;
        }
    }
    /// A PSB+: PSB, the status in the order in which it is listed, PSBEND.
    [[nodiscard]] constexpr auto put(psb_status const& status) noexcept -> rule {
        return together([&](packet_batch<Packets>& all) { all.add(status); });
    }
    /// Ends the TNT that is being filled, and lets go of the TIPs that wait for it.
    [[nodiscard]] constexpr auto flush() noexcept -> rule {
        return together([](packet_batch<Packets>& all) { all.flush(); });
    }

    /// Core clocks pass.
    constexpr void advance(uint64_t cycles) noexcept { now_.cycles += cycles; }

    [[nodiscard]] constexpr auto state() const noexcept -> writer_state const& { return now_; }

private:
    static constexpr detail::encode_table const& plain = detail::encode_tables<Packets>::table;

    /// True when no packet waits for the next, and none needs PADs.
    [[nodiscard]] constexpr auto is_calm() const noexcept -> bool {
        return now_.tnt.count == 0 && !how_.pads;
    }
    /// Something was written: sees whether a plain packet can be written now as it stands.
    constexpr auto done() noexcept -> rule {
        takes_care_ = !is_calm() || how_.cyc || now_.items != packet::block::none;
        return rule::none;
    }
    [[nodiscard, gnu::always_inline]]  // as above
    constexpr auto
    append(wide_bits bytes, unsigned count) noexcept -> bool {
        if constexpr (requires { to_.append(bytes, size_t{count}); }) {
            return to_.append(bytes, size_t{count});
        } else {
            return to_.append(byte_view{to_le(bytes)}.first(count));
        }
    }
    /// Puts plain packets, and returns how many they were: up to the first that is not, or for which
    /// there might be no room.
    ///
    /// Which packet comes next nobody can foresee: it decides about no branch.
    [[gnu::noinline]]  // so that everything it needs is in registers
    constexpr auto
    put_by_table(packet::any_packet const* first, size_t count) noexcept -> size_t {
        if constexpr (requires { to_.grow(to_.room()), to_.end(); }) {
            size_t const most = to_.room() / detail::lookahead_bytes;
            if (count > most) { count = most; }
            uint8_t* place = to_.end();
            size_t done = 0;
            for (; done < count; ++done) {
                packet::any_packet const& which = first[done];
                uint64_t const low = hide_from_optimizer(
                    which.raw().low);  // each in a register, not both
                uint64_t const high = hide_from_optimizer(which.raw().high);
                unsigned const length = which.length();
                if (!plain.has(which.kind(), length, low, high)) { break; }
                store_le64(place, low);
                store_le64(place + 8, high);
                place += length;
            }
            follow_ips(first, done);
            auto const bytes = static_cast<size_t>(place - to_.end());
            now_.bytes += bytes;
            to_.grow(bytes);
            return done;
        } else {
            return 0;
        }
    }
    /// Follows the last IP over plain packets that were put: from the last that tells all of it.
    constexpr void follow_ips(packet::any_packet const* first, size_t count) noexcept {
        auto const tells_all = [](packet::any_packet const& which) {
            return detail::ip_updates.kept[form_of(which.kind(), which.raw().low)] == 0;
        };
        size_t at = count;
        while (at > 0 && !tells_all(first[at - 1])) { --at; }
        for (at = at > 0 ? at - 1 : 0; at < count; ++at) {
            follow_ip(first[at].kind(), first[at].raw().low, first[at].raw().high);
        }
    }
    /// Follows the last IP over one, without a branch.
    constexpr void follow_ip(packet::kind which, uint64_t low, uint64_t high) noexcept {
        unsigned const form = form_of(which, low);
        // One byte is loaded, as one was stored: the next packet does not wait for memory.
        unsigned const had = hide_from_optimizer(unsigned{now_.has_last_ip});
        unsigned const has = form - 1 < detail::clears_ip - 1U ? 1 : 0;
        unsigned const keeps = which == packet::kind::psb || which == packet::kind::ovf ? 0 : 1;
        now_.has_last_ip = (has | (had & keeps)) != 0;
        now_.last_ip = detail::updated_ip(detail::ip_update_of(form), low >> 8 | high << 56,
                                          now_.last_ip);
    }
    /// What a plain packet does to the last IP, as in an outline.
    [[nodiscard]] static constexpr auto form_of(packet::kind which, uint64_t low) noexcept
        -> unsigned {
        return which == packet::kind::psb ? detail::clears_ip
                                          : detail::opcode_infos<Packets>.form[low & 0xFF];
    }
    [[gnu::noinline]]  // so that it is not in the way of plain packets
    constexpr auto
    with_care(packet::any_packet const& which) noexcept -> rule {
        return packet::visit<Packets>([this](auto const& one) { return this->put(one); }, which);
    }
    /// Writes what `add` adds to a group.
    template <class Add>
    [[gnu::noinline]]  // so that it is not in the way of single packets
    constexpr auto
    together(Add const& add) noexcept -> rule {
        packet_batch<Packets> all{now_, how_};
        add(all);
        if (all.broken() != rule::none) { return all.broken(); }
        if (!all.bytes().empty() && !to_.append(all.bytes())) { return rule::PKT_347; }
        now_ = all.state();
        return done();
    }

    Sink& to_;
    writer_options how_;
    writer_state now_{};
    bool takes_care_ = true;  // also of plain packets
};

}  // namespace ptspec::trace
