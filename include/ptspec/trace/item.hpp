// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/decode.hpp>

namespace ptspec::trace {

/// The type of an item of a trace.
enum class item_type : uint8_t {
    packet,      ///< a packet
    unknown,     ///< `length` bytes that only the caller's hook can decode
    synced,      ///< the first PSB: the `skipped` bytes before it were not decoded
    damage,      ///< the bytes at `offset` are no packet or an invalid one: `error`, `broken`
    resynced,    ///< decoding resumes at the PSB at `offset`
    lost,        ///< no PSB follows: the last `skipped` bytes are not decoded
    need_input,  ///< the chunk is consumed: call `feed()` with the next, or `finish()`
    end,         ///< the end of the trace
};

/// Where a packet begins, the last IP after it, and its length in bytes.
struct packet_place {
    uint64_t offset;
    uint64_t ip;
    unsigned length;
};

/// One item of a trace: a packet, or something else that a reader reports, and its offset.
struct item {
    item_type what = item_type::end;
    packet::error error =
        packet::error::none;  ///< of damage; truncated: the trace ends in a packet
    uint8_t length = 0;       ///< size of the packet or unknown bytes, in bytes
    uint8_t need = 0;  ///< for need_input and truncated damage: the minimum number of missing bytes
    rule broken = rule::none;  ///< of damage
    uint64_t offset = 0;       ///< in bytes from the start of the trace
    uint64_t ip = 0;           ///< the last IP after it
    int64_t skipped = 0;       ///< of synced, resynced and lost: bytes since the last position.
        ///< Negative when a PSB begins before the damage, by up to 15 bytes.
    packet::any_packet packet{};

    /// False at the end of the trace and at the end of a chunk.
    constexpr explicit operator bool() const noexcept {
        return what != item_type::need_input && what != item_type::end;
    }
    /// The place of the packet.
    [[nodiscard]] constexpr auto place() const noexcept -> packet_place {
        return {offset, ip, length};
    }
};

/// The item of a packet.
[[nodiscard]] constexpr auto item_of(packet::any_packet const& packet, packet_place place) noexcept
    -> item {
    return {.what = item_type::packet,
            .length = static_cast<uint8_t>(place.length),
            .offset = place.offset,
            .ip = place.ip,
            .packet = packet};
}

/// How to read a trace.
struct reader_options {
    bool sync = true;     ///< start at the first PSB; otherwise at the first byte
    bool strict = false;  ///< a set reserved bit of TMA is damage (PKT-104)
};

/// The default hook, which decodes no opcode.
///
/// A hook decodes opcodes that are unknown to ptspec. It is called with the bytes at such an opcode
/// (up to 16) and returns the length of the packet: 1 to 16, or 0 when the opcode is unknown to the
/// hook, too.
///
/// Source: PKT-253.
struct no_hook {
    constexpr auto operator()(byte_view) const noexcept -> unsigned { return 0; }
};

template <class Hook>
concept opcode_hook = requires(Hook& hook, byte_view bytes) {
    { hook(bytes) } -> convertible_to<unsigned>;
};

}  // namespace ptspec::trace
