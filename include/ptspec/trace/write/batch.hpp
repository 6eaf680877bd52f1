// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/write/state.hpp>

namespace ptspec::trace {

/// A sink of bytes. `append` stores all bytes of its argument, or returns false and stores none. If
/// a sink also has `append(wide_bits, size_t)`, as `byte_buffer` has, single packets use that.
template <class Sink>
concept packet_sink = requires(Sink& to, byte_view bytes) {
    { to.append(bytes) } -> same_as<bool>;
};

/// Packets that are written all together or not at all, and the writer's state after them.
///
/// Source: as `writer`.
template <class Packets = packet::all>
class packet_batch {
    writer_state now_;
    writer_options const& how_;
    byte_array<writer_state::max_bytes> bytes_{};
    size_t size_ = 0;
    rule broken_ = rule::none;

    /// Writes a packet, after its CYC if it has one. There is no PAD between the two.
    template <class Packet>
    constexpr void write(Packet const& which, bool has_cyc = false) noexcept {
        if (broken_ != rule::none) { return; }
        using packet::cyc;
        auto const bytes = packet::encode<Packet, Packets>(which, now_.items);
        auto const time = has_cyc ? packet::encode<cyc, Packets>(cyc::of(now_.cycles), now_.items)
                                  : packet::encoded<cyc::max_bytes>{};
        broken_ = bytes.broken;
        if (!bytes) { return; }
        if (how_.pads) { align(time.length + bytes.length); }
        if (has_cyc) { now_.cycles = 0; }
        put(byte_view{time});
        put(byte_view{bytes});
        now_.record(which, bytes.length);
        now_.bytes += time.length;
    }
    /// Writes PADs up to the next multiple of 8 if `length` bytes would cross it.
    constexpr void align(unsigned length) noexcept {
        uint64_t const at = now_.bytes % 8;
        if (at == 0 || at + length <= 8) { return; }
        size_ += static_cast<size_t>(8 - at);  // the buffer is zero, and zeros are PADs
        now_.bytes += 8 - at;
    }
    constexpr void put(byte_view bytes) noexcept {
        copy_bytes(bytes_.data() + size_, bytes.data(), bytes.size());
        size_ += bytes.size();
    }

public:
    constexpr packet_batch(writer_state const& before, writer_options const& how) noexcept
        : now_{before}, how_{how} {}

    [[nodiscard]] constexpr auto bytes() const noexcept -> byte_view {
        return byte_view{bytes_}.first(size_);
    }
    [[nodiscard]] constexpr auto state() const noexcept -> writer_state const& { return now_; }
    /// The rule that a packet broke, or `none`.
    [[nodiscard]] constexpr auto broken() const noexcept -> rule { return broken_; }

    /// Adds core clock cycles that pass between two packets.
    constexpr void advance(uint64_t cycles) noexcept { now_.cycles += cycles; }

    /// Writes the TNT buffer, then the TIPs that were deferred until after it.
    constexpr void flush() noexcept {
        if (now_.tnt.count == 0) { return; }
        // In an open block a decoder could take a short TNT for a BIP.
        bool const is_short = now_.tnt.count <= packet::tnt_short::max_branches &&
                              now_.items == packet::block::none;
        if (is_short) {
            write(packet::tnt_short::of(now_.tnt));
        } else {
            write(packet::tnt_long::of(now_.tnt));
        }
        now_.tnt = {};
        for (unsigned i = 0; i < now_.deferred_count; ++i) {
            uint64_t const ip = now_.deferred[i];
            write(packet::tip::of(now_.form_of(ip, how_.ips), ip));
        }
        now_.deferred_count = 0;
    }

    template <packet::packet_type Packet>
    constexpr void add(Packet const& which) noexcept {
        flush();
        write(which, Packet::about.cyc_eligible == packet::cyc_rule::yes && now_.cyc_is_due(how_));
    }
    constexpr void add(packet::any_packet const& which) noexcept {
        packet::visit<Packets>([this](auto const& one) { this->add(one); }, which);
    }
    /// A packet with an IP, in the form that the writer selects.
    template <class Packet>
    constexpr void add_ip(uint64_t ip) noexcept {
        flush();  // may change the last IP
        add(Packet::of(now_.form_of(ip, how_.ips), ip));
    }
    /// A CYC without a packet that it times.
    constexpr void add_cycles() noexcept {
        flush();
        write(packet::cyc::of(now_.cycles));
        now_.cycles = 0;
    }
    /// A branch, which enters the TNT buffer. The CYC of a TNT is written before its first branch.
    constexpr void branch(bool taken) noexcept {
        if (now_.tnt.count == 0 && now_.cyc_is_due(how_)) {
            write(packet::cyc::of(now_.cycles));
            now_.cycles = 0;
        }
        now_.add_branch(taken);
        if (now_.tnt.count >= how_.max_branches()) { flush(); }
    }
    /// A TIP, which is deferred until after the current TNT if the options allow it.
    constexpr void defer(uint64_t ip) noexcept {
        bool const waits = how_.defers_tips && now_.tnt.count != 0 && !now_.cyc_is_due(how_) &&
                           now_.deferred_count < writer_state::max_deferred;
        if (!waits) { return add_ip<packet::tip>(ip); }
        now_.deferred[now_.deferred_count] = ip;
        ++now_.deferred_count;
    }

    /// A PSB+.
    constexpr void add(psb_status const& status) noexcept {
        if (status.tma.has_value && !status.tsc.has_value) {
            broken_ = rule::PKT_135;
            return;
        }
        auto const add_if = [this](auto const& which) {
            if (which.has_value) { this->add(which.value); }
        };
        add(packet::psb{});
        add_if(status.tsc);
        add_if(status.tma);
        add_if(status.cbr);
        add_if(status.pip);
        add_if(status.vmcs);
        add_if(status.mode_tsx);
        add_if(status.mode_exec);
        if (status.fup.has_value) { add_ip<packet::fup>(status.fup.value); }
        add(packet::psbend{});
    }
};

}  // namespace ptspec::trace
