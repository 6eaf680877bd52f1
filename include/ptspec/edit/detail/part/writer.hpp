// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/edit/trace_memory.hpp>
#include <ptspec/packet/encode.hpp>

/// Writes the packets of a part over the trace that is being read.
namespace ptspec::edit::detail {

/// A packet of the original.
struct part_packet {
    packet::any_packet packet{};
    uint64_t offset = 0;
    uint64_t last_ip = 0;  ///< before it
    uint64_t ip = 0;       ///< the last IP after it
};

/// What a decoder must know to decode the next packet.
struct decoder_state {
    uint64_t last_ip = 0;
    uint64_t mode = 0;  ///< the last MODE.Exec since the last PSB; 0: none
    packet::block block = packet::block::none;

    friend constexpr auto operator==(decoder_state const&, decoder_state const&) -> bool = default;
};

/// Writes packets that remain, never after the bytes that were read.
///
/// While the result has the decoder state of the original, PADs keep each packet at its offset. A
/// PSB is always at its offset. After a removal packets follow each other directly until an IP was
/// written: it may need a longer form than in the original, because the last IP is a different one.
///
/// The packets of the result never need more bytes than those of the original. An IP needs a longer
/// form, of n bytes, only if the last IPs of result and original differ in the low n bytes: then an
/// IP packet with n bytes, or the PIP of a VM exit, was removed. A MODE.Exec that is written again
/// was removed before.
template <class Packets>
class part_writer {
public:
    decoder_state original{};  ///< before the current packet
    decoder_state result{};    ///< after the last packet that was written
    bool is_kept = false;      ///< the side that is kept executes
    bool is_cut = false;       ///< tracing is off in the result only
    bool after_ovf = false;    ///< no IP since an OVF

    constexpr explicit part_writer(trace_memory whole) noexcept : bytes_{whole} {}

    /// The bytes of the original that were not overwritten, and those of the result.
    [[nodiscard]] constexpr auto bytes() noexcept -> trace_bytes& { return bytes_; }
    /// The bytes of packets that were written.
    [[nodiscard]] constexpr auto kept() const noexcept -> uint64_t { return kept_; }
    /// The offset of the next packet.
    [[nodiscard]] constexpr auto end() const noexcept -> uint64_t { return end_; }
    /// The offset of the last packet.
    [[nodiscard]] constexpr auto last() const noexcept -> uint64_t { return last_; }
    /// True if so many bytes can be written.
    [[nodiscard]] constexpr auto fits(uint64_t count) const noexcept -> bool {
        return end_ + count <= limit_;
    }

    /// The bytes up to an offset were read.
    constexpr void set_limit(uint64_t offset) noexcept { limit_ = offset; }
    constexpr void pad_to(uint64_t offset) noexcept {
        if (end_ >= offset) { return; }
        bytes_.pad(end_, offset);
        end_ = offset;
    }
    /// Writes a packet whose place in the original is `offset`.
    template <packet::packet_type Packet>
    constexpr void put(Packet const& packet, uint64_t offset) noexcept {
        put_bytes(packet::encode<Packet, Packets>(packet), offset);
        result.block = packet::block_after(packet, result.block);
    }
    /// Writes a packet unchanged.
    constexpr void put_same(part_packet const& same) noexcept {
        result.block = packet::block_after<Packets>(same.packet, result.block);
        put_bytes(byte_view{to_le(same.packet.raw())}.first(same.packet.length()), same.offset);
    }
    /// Writes an IP packet: in the original form, if this gives the same IP.
    template <class Packet>
    constexpr void put_ip(part_packet const& same) noexcept {
        auto const packet = same.packet.as<Packet>();
        if (!packet.has_ip()) { return put_same(same); }
        if (packet.ip(result.last_ip) == same.ip) {
            put_same(same);
        } else {
            put(Packet::compressed(same.ip, result.last_ip), same.offset);
        }
        result.last_ip = same.ip;
        after_ovf = false;
    }
    /// Writes a MODE.Exec if the result has another mode. Source: GEN-236.
    constexpr void put_mode(uint64_t mode, uint64_t offset) noexcept {
        if (mode == result.mode) { return; }
        put(packet::mode_exec{mode}, offset);
        result.mode = mode;
    }
    /// Writes a MODE.Exec unchanged. It has set the mode of the original already.
    constexpr void put_same_mode(part_packet const& same) noexcept {
        uint64_t const mode = original.mode;
        original.mode = result.mode;  // in step up to this packet
        put_same(same);
        original.mode = result.mode = mode;
    }
    /// Ends an open block of the result whose end was removed: a TNT in it would be a BIP. There is
    /// room, at least that of the end and the TNT.
    ///
    /// Source: PKT-203, PKT-205.
    constexpr void end_block(uint64_t offset) noexcept {
        bool const is_open = original.block == packet::block::none &&
                             result.block != packet::block::none;
        if (is_open) { put(packet::bep{}, offset); }
    }

    /// Removes a packet that was written.
    constexpr void remove(uint64_t begin, uint64_t end) noexcept {
        bytes_.pad(begin, end);
        kept_ -= end - begin;
    }
    /// Removes what was written after an offset: the packet that has the first byte, too, because a
    /// TNT may follow it.
    constexpr void remove_after(uint64_t offset) noexcept {
        if (end_ <= offset) { return; }
        uint64_t const first = last_ < offset ? last_ : before_last_;
        uint64_t const end = first < offset ? first : offset;
        kept_ -= end_ - end;
        end_ = end;
    }
    /// Fills the rest of the bytes with PADs. Nothing is written after this.
    constexpr void finish() noexcept { bytes_.pad(end_, bytes_.size()); }

private:
    [[nodiscard]] constexpr auto is_in_step() const noexcept -> bool {
        return is_kept && !is_cut && original == result;
    }
    constexpr void put_bytes(byte_view bytes, uint64_t offset) noexcept {
        if (is_in_step()) { pad_to(offset); }
        if (!fits(bytes.size())) { return; }
        bytes_.write(end_, bytes);
        before_last_ = last_;
        last_ = end_;
        end_ += bytes.size();
        kept_ += bytes.size();
    }

    trace_bytes bytes_;
    uint64_t kept_ = 0;
    uint64_t end_ = 0;
    uint64_t last_ = 0;
    uint64_t before_last_ = 0;  ///< the offset of the packet before the last one
    uint64_t limit_ = 0;
};

}  // namespace ptspec::edit::detail
