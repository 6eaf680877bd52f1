// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/write/batch.hpp>
#include <ptspec/base/attribute.hpp>

/// The two packets that branches generate, appended without a batch.
///
/// A batch copies the writer's state and the bytes: with it, a unit that traces branches executes
/// 1.9 times the instructions (g++ 12, clang 19).
namespace ptspec::trace {

namespace detail {

/// Appends the gathered branches and the packet after them, `count` bytes in all.
template <class Sink>
constexpr auto append_with_tnt(Sink& sink, writer_state& state, wide_bits bytes,
                               unsigned count) noexcept -> bool {
    bool const has_room = [&] {
        if constexpr (wide_packet_sink<Sink>) {
            return sink.append(bytes, size_t{count});
        } else {
            return sink.append(byte_view{to_le(bytes)}.first(count));
        }
    }();
    if (has_room) {
        state.tnt = {};
        state.bytes += count;
    }
    return has_room;
}

/// Moves bytes by up to 16 places.
[[nodiscard]] constexpr auto moved(wide_bits bytes, unsigned places) noexcept -> wide_bits {
    unsigned const bits = 8 * (places % 8);
    wide_bits const some{bytes.low << bits,
                         bits == 0 ? bytes.high : bytes.high << bits | bytes.low >> (64 - bits)};
    return places < 8 ? some : wide_bits{0, some.low};
}

}  // namespace detail

/// Appends the gathered branches as a TNT.short, if the options are plain. Returns false, and
/// writes nothing, if they do not fit into one, or the sink has no room.
template <packet_sink Sink>
[[nodiscard]] constexpr auto append_tnt(Sink& sink, writer_state& state) noexcept -> bool {
    if (state.tnt.count > packet::tnt_short::max_branches) { return false; }
    return detail::append_with_tnt(sink, state, {packet::tnt_short::of(state.tnt).raw, 0}, 1);
}

/// Appends the gathered branches, if any, as a TNT.short, and a TIP, if the options are plain.
/// Returns false, and writes nothing, if the branches do not fit into one, or the sink has no room.
template <packet_sink Sink>
[[nodiscard]] constexpr auto append_tip(Sink& sink, writer_state& state, ip_choice choice,
                                        uint64_t ip) noexcept -> bool {
    if (state.tnt.count > packet::tnt_short::max_branches) { return false; }
    auto const packet = packet::tip::of(state.form_of_any_kind(ip, choice), ip);
    wide_bits bytes = packet.raw;
    unsigned count = packet::tip::length_of(packet.raw, packet::block::none);
    if (state.tnt.count != 0) {
        bytes = {bytes.low << 8 | packet::tnt_short::of(state.tnt).raw,
                 bytes.high << 8 | bytes.low >> 56};
        ++count;
    }
    if (!detail::append_with_tnt(sink, state, bytes, count)) { return false; }
    state.last_ip = ip;
    state.has_last_ip = state.has_context_ip = true;
    return true;
}

/// As `append_tnt`, also with `pad_policy::skylake`. Returns false with other PADs.
template <packet_sink Sink>
[[nodiscard]] constexpr auto append_aligned_tnt(Sink& sink, writer_state& state,
                                                writer_options const& options) noexcept -> bool {
    if (state.tnt.count > packet::tnt_short::max_branches) { return false; }
    wide_bits const bytes{packet::tnt_short::of(state.tnt).raw, 0};
    if (options.pads == pad_policy::none) { return detail::append_with_tnt(sink, state, bytes, 1); }
    if (options.pads != pad_policy::skylake) { return false; }
    unsigned const pads = detail::pads_before(state.bytes, state.ends_in_payload, {.whole = 1});
    if (!detail::append_with_tnt(sink, state, detail::moved(bytes, pads), pads + 1)) {
        return false;
    }
    state.cycles_at_tnt = state.cycles;
    state.ends_in_payload = false;
    return true;
}

/// As `append_tip`, also with `pad_policy::skylake` and with all IP forms. Returns false with other
/// PADs, if a CYC may be due, or if more than 16 bytes are needed.
///
/// noinline: inlined, branches take 5 % more instructions (clang 19).
template <packet_sink Sink>
PTSPEC_ATTRIBUTE(noinline) [[nodiscard]]
constexpr auto append_aligned_tip(Sink& sink, writer_state& state, writer_options const& options,
                                  uint64_t ip) noexcept -> bool {
    bool const is_padded = options.pads == pad_policy::skylake;
    if (options.cyc || state.tnt.count > packet::tnt_short::max_branches) { return false; }
    if (options.pads != pad_policy::none && !is_padded) { return false; }
    auto const packet = packet::tip::of(state.form_of(ip, options.ips), ip);
    unsigned const length = packet::tip::length_of(packet.raw, packet::block::none);
    bool const is_wide = length >= 7;
    bool const has_tnt = state.tnt.count != 0;
    bool const after = state.ends_in_payload;
    unsigned first = 0;
    unsigned second = 0;
    if (is_padded) {
        first = has_tnt ? detail::pads_before(state.bytes, after, {.whole = 1}) : 0;
        second = detail::pads_before(state.bytes + (has_tnt ? first + 1 : 0), after && !has_tnt,
                                     {.whole = length, .head = 1, .ends = is_wide});
    }
    unsigned const before = has_tnt ? first + 1 : 0;
    if (before + second + length > 16) { return false; }
    uint64_t const tnt = has_tnt ? packet::tnt_short::of(state.tnt).raw : 0;
    wide_bits const one = detail::moved({tnt, 0}, first);
    wide_bits const two = detail::moved(packet.raw, before + second);
    wide_bits const bytes{one.low | two.low, one.high | two.high};
    if (!detail::append_with_tnt(sink, state, bytes, before + second + length)) { return false; }
    state.last_ip = ip;
    state.has_last_ip = state.has_context_ip = true;
    state.ends_in_payload = is_padded && is_wide;
    return true;
}

}  // namespace ptspec::trace

#undef PTSPEC_ATTRIBUTE
