// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/decode.hpp>

namespace ptspec::trace {

/// What a reader came to.
enum class item_type : uint8_t {
    packet,      ///< a packet
    unknown,     ///< bytes that the caller's hook knows: `length` of them
    synced,      ///< the first PSB: `skipped` bytes before it were not read
    damage,      ///< the bytes at `offset` are no packet, or a broken one: `why`, `broken`
    resynced,    ///< reading goes on at the PSB at `offset`
    lost,        ///< no PSB follows: the last `skipped` bytes are lost
    need_input,  ///< the piece is used up: `feed()` the next, or `finish()`
    end,         ///< the end of the trace
};

/// One thing that a reader came to, and where.
struct item {
    item_type what = item_type::end;
    packet::error why = packet::error::none;  ///< of damage; truncated: the trace ends in a packet
    uint8_t length = 0;                       ///< bytes that a packet or unknown bytes take
    uint8_t need = 0;  ///< of more, and of truncated damage: bytes that are missing at least
    rule broken = rule::none;  ///< of damage
    uint64_t offset = 0;       ///< in bytes from the begin of the trace
    uint64_t ip = 0;           ///< the last IP behind it
    int64_t skipped = 0;  ///< of synced, resynced and lost: bytes from the last place to this one.
        ///< A PSB can begin up to 15 bytes before the damage: then it is negative.
    packet::any_packet packet{};

    /// True for everything but the end of what there is to read.
    constexpr explicit operator bool() const noexcept {
        return what != item_type::need_input && what != item_type::end;
    }
};

/// Where a packet stands, the last IP behind it, and how many bytes it takes.
struct at {
    uint64_t offset;
    uint64_t ip;
    unsigned length;
};

/// How to read a trace.
struct options {
    bool sync = true;     ///< begin at the first PSB; otherwise at the first byte
    bool strict = false;  ///< a reserved bit of TMA that is set is damage (PKT-104)
};

/// The hook of a caller who knows no more opcodes than ptspec.
///
/// A hook is called with the bytes at an unknown opcode (up to 16 of them) and returns how many
/// bytes it takes: 1 to 16, or 0 when it does not know it either.
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
