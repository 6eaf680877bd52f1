// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/packet_group.hpp>
#include <ptspec/trace/plain.hpp>

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
            takes_care_ = 1;
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
        auto const code = packet::detail::code_of<Packets>(which, now_.items);
        if (code.broken != rule::none) { return code.broken; }
        if (!append(code.bytes, code.length)) { return rule::PKT_347; }
        now_.step_over(which, code.length);
        return done();
    }
    [[nodiscard, gnu::always_inline]]  // so that it costs no call
    constexpr auto
    put(packet::any_packet const& which) noexcept -> rule {
        uint64_t const low = as_if_new(which.raw().low);
        uint64_t const high = which.raw().high;
        unsigned const length = which.length();
        unsigned const kind_and_length = detail::kind_and_length(which.kind(), length);
        // Most packets are PAD and TNT: they are worth a branch.
        if ((detail::wrong_byte<Packets>(kind_and_length, low, high) | takes_care_) == 0) {
            if (!append_byte(static_cast<uint8_t>(low))) { return rule::PKT_347; }
            now_.bytes += 1;
            return rule::none;
        }
        // Which of the others comes next nobody can foresee: it decides about no branch, if it is
        // plain.
        auto const& row = detail::plain_row<Packets>(low);
        uint64_t const wrong = takes_care_ | detail::wrong_bits(row, kind_and_length, low, high);
        if (wrong != 0 && (takes_care_ != 0 || !detail::is_plain_cyc(which))) {
            return with_care(which);
        }
        uint64_t const ip = detail::updated_ip(detail::ip_update_of(row.form),
                                               low >> 8 | high << 56, now_.last_ip);
        if (!append({low, high}, length)) { return rule::PKT_347; }
        now_.has_last_ip = row.has_ip_behind(now_.has_last_ip) != 0;
        now_.last_ip = ip;
        now_.bytes += length;
        return rule::none;
    }
    /// Packets as they are, one behind the other, until one breaks a rule.
    ///
    /// The same as `put` of each, and a third faster.
    [[nodiscard]] constexpr auto put(packet::any_packet const* first, size_t count) noexcept
        -> put_many {
        for (size_t done = 0;;) {
            if (takes_care_ == 0) { done += put_plain(first + done, count - done); }
            if (done == count) { return {done, rule::none}; }
            rule const broken = put(first[done]);
            if (broken != rule::none) { return {done, broken}; }
            ++done;
        }
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
    /// Something was written: sees whether a plain packet can be written now as it stands.
    constexpr auto done() noexcept -> rule {
        bool const takes_plain = is_calm() && !how_.cyc && now_.items == packet::block::none;
        takes_care_ = takes_plain ? 0 : 1;
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
    [[nodiscard]] constexpr auto append_byte(uint8_t byte) noexcept -> bool {
        if constexpr (requires { to_.append_byte(byte); }) {
            return to_.append_byte(byte);
        } else {
            return to_.append(byte_view{&byte, 1});
        }
    }
    /// Puts plain packets, and returns how many they were: up to the first that is not, or for which
    /// there might be no room.
    [[gnu::noinline]]  // so that everything it needs is in registers
    constexpr auto
    put_plain(packet::any_packet const* first, size_t count) noexcept -> size_t {
        if constexpr (requires { to_.grow(to_.room()), to_.end(); }) {
            if (to_.room() < detail::looked_at) { return 0; }
            uint8_t* const begin = to_.end();
            uint8_t* const last = begin + (to_.room() - detail::looked_at);
            uint8_t* place = begin;
            size_t done = 0;
            // The last IP is followed from here on, behind the loop: the last packet that tells all of
            // it, or else the first.
            size_t whole_ip = 0;
            for (; done < count && place <= last; ++done) {
                packet::any_packet const& which = first[done];
                unsigned const kind_and_length = as_if_new(
                    detail::kind_and_length(which.kind(), which.length()));
                if (kind_and_length >> 8 == 1 &&
                    detail::wrong_byte<Packets>(kind_and_length, which.raw().low,
                                                which.raw().high) == 0) {
                    *place = static_cast<uint8_t>(which.raw().low);
                    place += 1;
                    continue;
                }
                // Read once more: else it is made ready for a store of sixteen bytes before the
                // branch, and for nothing where there is one byte.
                packet::any_packet const& again = *as_if_new(&which);
                uint64_t const low = as_if_new(again.raw().low);
                uint64_t const high = as_if_new(again.raw().high);
                auto const& row = detail::plain_row<Packets>(low);
                if (detail::wrong_bits(row, kind_and_length, low, high) != 0 &&
                    !detail::is_plain_cyc(*as_if_new(&again))) {
                    break;
                }
                whole_ip = row.tells_whole_ip != 0 ? done : whole_ip;
                store_le64(place, low);
                store_le64(place + 8, high);
                place += kind_and_length >> 8;
            }
            follow_ip(first + whole_ip, done - whole_ip);
            now_.bytes += static_cast<size_t>(place - begin);
            to_.grow(static_cast<size_t>(place - begin));
            return done;
        } else {
            return 0;
        }
    }
    /// Follows the last IP over plain packets that were put.
    constexpr void follow_ip(packet::any_packet const* first, size_t count) noexcept {
        for (size_t i = 0; i < count; ++i) {
            if (first[i].length() == 1) { continue; }  // it has no IP, and is no OVF
            wide_bits const bits = first[i].raw();
            auto const& row = detail::plain_row<Packets>(bits.low);
            now_.last_ip = detail::updated_ip(detail::ip_update_of(row.form),
                                              bits.low >> 8 | bits.high << 56, now_.last_ip);
            now_.has_last_ip = row.has_ip_behind(now_.has_last_ip) != 0;
        }
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
        packet_group<Packets> all{now_, how_};
        add(all);
        if (all.broken() != rule::none) { return all.broken(); }
        if (!all.bytes().empty() && !to_.append(all.bytes())) { return rule::PKT_347; }
        now_ = all.state();
        return done();
    }

    Sink& to_;
    writer_options how_;
    writer_state now_{};
    // Not 0: also plain packets need care. A word, because it is no branch of its own.
    uint64_t takes_care_ = 1;
};

}  // namespace ptspec::trace
