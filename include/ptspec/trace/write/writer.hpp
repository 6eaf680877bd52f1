// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/write/batch.hpp>
#include <ptspec/trace/detail/encode_table.hpp>

/// Writes a trace from branches, IPs, status and time.
namespace ptspec::trace {

/// How many packets were written, and the rule that the next one breaks; `none` if all were
/// written.
struct [[nodiscard]] put_result {
    size_t count = 0;
    rule broken = rule::none;

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

/// Writes packets as a processor does: it collects branches in TNTs, compresses IPs, and writes a
/// CYC before the packet that it times.
///
/// Each call writes all of its packets, or returns a rule and writes none. In that case the state
/// is unchanged, and the call can be repeated. A packet that `decode` would reject is not written.
///
/// Errors: those of `encode`; PKT-135 a TMA without TSC; PKT-347 the sink has no room.
/// Source: SDM vol. 3, "Trace Packets and Data Types"; PKT-030..064, PKT-134, PKT-135, PKT-275,
///         PKT-340..347, GEN-120..125, GEN-145..147, GEN-170..174, GEN-210..218, GEN-229.
template <class Sink, class Packets = packet::all>
class writer {
public:
    /// The writer borrows the sink, which must outlive it.
    constexpr explicit writer(Sink& sink, writer_options options = {}) noexcept
        : sink_{detail::checked_sink(sink)}, options_{options} {}

    /// A conditional branch, or a compressed return, which counts as taken. The TNT is written when
    /// it is full, before the next packet, or by `flush`.
    [[nodiscard]] constexpr auto branch(bool taken) noexcept -> rule {
        bool const begins = state_.tnt.count == 0;
        if (state_.tnt.count + 1 < options_.max_branches() &&
            !(begins && state_.cyc_is_due(options_))) {
            state_.add_branch(taken);
            needs_slow_path_ = true;
            return rule::none;
        }
        return write_batch([&](packet_batch<Packets>& all) { all.branch(taken); });
    }
    /// A TIP for the target of an indirect branch. It may be deferred.
    [[nodiscard]] constexpr auto indirect(uint64_t ip) noexcept -> rule {
        return write_batch([&](packet_batch<Packets>& all) { all.defer(ip); });
    }
    /// A packet with an IP, in the form that the options select. It is never deferred.
    template <class Packet>
        requires derived_from<Packet, packet::ip_packet<Packet>>
    [[nodiscard]] constexpr auto put_ip(uint64_t ip) noexcept -> rule {
        if (can_write_directly()) { return put(Packet::of(state_.form_of(ip, options_.ips), ip)); }
        return write_batch([&](packet_batch<Packets>& all) { all.template add_ip<Packet>(ip); });
    }
    /// A packet, unchanged.
    template <packet::packet_type Packet>
    [[nodiscard]] constexpr auto put(Packet const& packet) noexcept -> rule {
        bool const eligible = Packet::about.cyc_eligible == packet::cyc_rule::yes;
        if (!can_write_directly() || (eligible && state_.cyc_is_due(options_))) {
            return write_batch([&](packet_batch<Packets>& all) { all.add(packet); });
        }
        auto const code = packet::encode_wide<Packet, Packets>(packet, state_.items);
        if (!code) { return code.broken; }
        if (!append(code.bytes, code.length)) { return rule::PKT_347; }
        state_.record(packet, code.length);
        return finish_write();
    }
    [[nodiscard]]
    constexpr auto put(packet::any_packet const& packet) noexcept -> rule {
        packet::kind const kind = packet.kind();
        unsigned const length = packet.length();
        uint64_t const low = hide_from_optimizer(packet.raw().low);
        uint64_t const high = hide_from_optimizer(packet.raw().high);
        if (needs_slow_path_ || !table.accepts(kind, length, low, high)) {
            return slow_path(packet);
        }
        if (!append({low, high}, length)) { return rule::PKT_347; }
        update_last_ip(kind, low, high);
        state_.bytes += length;
        return rule::none;
    }
    /// Packets, unchanged and in order, up to the first that breaks a rule.
    ///
    /// Has the effect of `put` for each packet, and is twice as fast.
    [[nodiscard]] constexpr auto put(packet::any_packet const* first, size_t count) noexcept
        -> put_result {
        for (size_t written = 0;;) {
            if (!needs_slow_path_) { written += put_by_table(first + written, count - written); }
            if (written == count) { return {written, rule::none}; }
            rule const broken = put(first[written]);
            if (broken != rule::none) { return {written, broken}; }
            ++written;
        }
    }
    /// A PSB+: PSB, the status packets in the order of `psb_status`, PSBEND.
    [[nodiscard]] constexpr auto put(psb_status const& status) noexcept -> rule {
        return write_batch([&](packet_batch<Packets>& all) { all.add(status); });
    }
    /// Writes the TNT buffer and the deferred TIPs.
    [[nodiscard]] constexpr auto flush() noexcept -> rule {
        return write_batch([](packet_batch<Packets>& all) { all.flush(); });
    }

    /// Adds core clock cycles.
    constexpr void advance(uint64_t cycles) noexcept { state_.cycles += cycles; }

    [[nodiscard]] constexpr auto state() const noexcept -> writer_state const& { return state_; }

private:
    static constexpr detail::encode_table const& table = detail::encode_tables<Packets>::table;

    /// True when no branch is pending in the TNT buffer and packets need no PADs.
    [[nodiscard]] constexpr auto can_write_directly() const noexcept -> bool {
        return state_.tnt.count == 0 && options_.pads == pad_policy::none;
    }
    /// Called after a write: updates whether the next packet can be written through the table.
    constexpr auto finish_write() noexcept -> rule {
        needs_slow_path_ = !can_write_directly() || options_.cyc ||
                           options_.ips > ip_choice::shortest ||
                           state_.items != packet::block::none;
        return rule::none;
    }
    [[nodiscard]]
    constexpr auto append(wide_bits bytes, unsigned count) noexcept -> bool {
        if constexpr (wide_packet_sink<Sink>) {
            return sink_.append(bytes, size_t{count});
        } else {
            return sink_.append(byte_view{to_le(bytes)}.first(count));
        }
    }
    /// Writes packets through the table, and returns how many: up to the first that the table does
    /// not accept, or for which there might be no room.
    ///
    /// Writes packets, and returns how many. No branch depends on the kind of a packet, which is
    /// unpredictable.
    constexpr auto put_by_table(packet::any_packet const* first, size_t count) noexcept -> size_t {
        if constexpr (derived_from<Sink, byte_buffer>) {
            size_t const max_packets = sink_.room() / detail::lookahead_bytes;
            if (count > max_packets) { count = max_packets; }
            uint8_t* place = sink_.end();
            size_t written = 0;
            for (; written < count; ++written) {
                packet::any_packet const& packet = first[written];
                // Hidden, so that the halves are two scalar registers and not one vector.
                uint64_t const low = hide_from_optimizer(packet.raw().low);
                uint64_t const high = hide_from_optimizer(packet.raw().high);
                unsigned const length = packet.length();
                if (!table.accepts(packet.kind(), length, low, high)) { break; }
                store_le64(place, low);
                store_le64(place + 8, high);
                place += length;
            }
            update_last_ips(first, written);
            auto const bytes = static_cast<size_t>(place - sink_.end());
            state_.bytes += bytes;
            sink_.grow(bytes);
            return written;
        } else {
            return 0;
        }
    }
    /// Updates the last IP after packets written through the table, beginning with the last of them
    /// that does not depend on the IP before it.
    constexpr void update_last_ips(packet::any_packet const* first, size_t count) noexcept {
        auto const sets_whole_ip = [](packet::any_packet const& packet) {
            return detail::ip_updates.kept[ip_form_of(packet.kind(), packet.raw().low)] == 0;
        };
        size_t at = count;
        while (at > 0 && !sets_whole_ip(first[at - 1])) { --at; }
        for (at = at > 0 ? at - 1 : 0; at < count; ++at) {
            update_last_ip(first[at].kind(), first[at].raw().low, first[at].raw().high);
        }
    }
    /// Updates the last IP after one packet, without a branch.
    constexpr void update_last_ip(packet::kind kind, uint64_t low, uint64_t high) noexcept {
        unsigned const form = ip_form_of(kind, low);
        // A load of one byte, as large as the store before it, so that the store forwards to it.
        unsigned const had = hide_from_optimizer(unsigned{state_.has_last_ip});
        unsigned const has = form - 1 < detail::clears_ip - 1U ? 1 : 0;
        unsigned const keeps = kind == packet::kind::psb || kind == packet::kind::ovf ? 0 : 1;
        state_.has_last_ip = (has | (had & keeps)) != 0;
        state_.last_ip = detail::updated_ip(detail::ip_update_of(form), low >> 8 | high << 56,
                                            state_.last_ip);
    }
    /// The IP form of a packet, as in `opcode_info`.
    [[nodiscard]] static constexpr auto ip_form_of(packet::kind kind, uint64_t low) noexcept
        -> unsigned {
        return kind == packet::kind::psb ? detail::clears_ip
                                         : detail::opcode_infos<Packets>.form[low & 0xFF];
    }
    constexpr auto slow_path(packet::any_packet const& packet) noexcept -> rule {
        if (packet.kind() == packet::kind::none) { return rule::PKT_015; }
        return packet::visit<Packets>([this](auto const& one) { return this->put(one); }, packet);
    }
    /// Writes the packets that `add` adds to a batch.
    template <class Add>
    constexpr auto write_batch(Add const& add) noexcept -> rule {
        packet_batch<Packets> all{state_, options_};
        add(all);
        all.finish();
        if (all.broken() != rule::none) { return all.broken(); }
        if (!all.bytes().empty() && !sink_.append(all.bytes())) { return rule::PKT_347; }
        state_ = all.state();
        return finish_write();
    }

    choose_t<packet_sink<Sink>, Sink, detail::full_sink const>& sink_;
    writer_options options_;
    writer_state state_{};
    bool needs_slow_path_ = true;  // the table cannot be used for the next packet
};

}  // namespace ptspec::trace
