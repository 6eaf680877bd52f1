// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/count_lanes.hpp>
#include <ptspec/trace/detail/decode_loop.hpp>
#include <ptspec/trace/input.hpp>
#include <ptspec/trace/packet_counts.hpp>
#include <ptspec/trace/visitor.hpp>
#include <ptspec/base/attribute.hpp>

namespace ptspec::trace {

/// Reads the packets of a trace in order, and resynchronises after damage.
///
/// A reader is a value: a copy continues independently from the same position. It borrows the
/// bytes: the whole trace, or one chunk at a time. It copies what it still needs of a consumed
/// chunk, so that the caller can reuse the memory.
///
/// Errors: damage is an item. The next item is the PSB at which decoding resumes, or `lost`. When
///         the trace ends inside a packet, there is no search.
/// Source: PKT-250..256; the last IP PKT-059..061; the block context PKT-205.
template <opcode_hook Hook = no_hook, class Packets = packet::all>
class reader : public read_by_next<item> {
public:
    /// Reads a whole trace.
    constexpr explicit reader(borrowed_bytes whole, reader_options options = {},
                              Hook hook = {}) noexcept
        : state_{copy_of(initial_state(whole.view(), true, options))}, hook_{hook} {}

    /// Reads a trace that arrives in chunks.
    constexpr explicit reader(reader_options options = {}, Hook hook = {}) noexcept
        : state_{copy_of(initial_state({}, false, options))}, hook_{hook} {}

    /// Gives the next chunk: at the start, and when the reader returned `item_type::need_input`. At
    /// other times it returns false and changes nothing.
    [[nodiscard]] constexpr auto feed(borrowed_bytes chunk) noexcept -> bool {
        return state_.in.feed(chunk.view());
    }

    /// Ends the trace: no more chunks follow.
    constexpr void finish() noexcept { state_.in.finish(); }

    /// Where the next packet begins, in bytes from the start of the trace.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t {
        return state_.in.offset() - found_psb_bytes();
    }
    [[nodiscard]] constexpr auto last_ip() const noexcept -> uint64_t { return state_.last_ip; }
    [[nodiscard]] constexpr auto block() const noexcept -> packet::block { return state_.items; }

    /// The next item of the trace.
    ///
    /// always_inline: keeps the state in registers between two calls. Without it next() takes 1.5 %
    /// more instructions (g++ 12), or 2.9 times as many (clang 19).
    PTSPEC_ATTRIBUTE(always_inline) [[nodiscard]]
    constexpr auto next() noexcept -> item {
        if (state_.in.position() < state_.fast_limit) [[likely]] {
            using packet::kind;
            // One return for each kind: the compiler drops what the caller does for other kinds.
            uint64_t const offset = state_.in.offset_in_chunk();
            uint8_t const* const here = state_.in.chunk().data() + state_.in.position();
            unsigned const first = *here;
            if (first == detail::pad_opcode) {
                return consume({{0, 0}, 1, kind::pad, state_.last_ip}, offset);
            }
            if (detail::is_tnt(first)) {
                return consume({{first, 0}, 1, kind::tnt_short, state_.last_ip}, offset);
            }
            if (detail::is_cyc(first)) {
                auto const found = detail::quick_decode_cyc(load_le64(here), state_.last_ip);
                if (found.length != 0) { return consume(found, offset); }
            }
            // A CYC of eight bytes or more has length 0 here, too.
            auto const found = detail::quick_decode<Packets>(here, state_.last_ip, state_.strict);
            if (found.length != 0) [[likely]] { return consume(found, offset); }
        }
        return next_by_value();
    }

    /// Decodes until the end of the trace, the end of the chunk, or until the visitor returns
    /// false. Returns `end`, `need_input` or `packet`, respectively.
    ///
    /// The visitor takes all packets and items, or `for_each<packet::tip, item>(visitor)` names the
    /// packets that it takes, with `item` if it takes items. `packet::all` names all packets.
    template <class... Taken, class Visitor>
    constexpr auto for_each(Visitor&& visitor) -> item_type {
        check_visitor<Visitor, Packets, Taken...>();
        while (true) {
            if (decodes_in_chunk() && !visit_chunk(visitor)) { return item_type::packet; }
            auto const got = next_slow_path();
            if (got.what == item_type::packet) {
                if (!detail::call_any<Packets>(visitor, got.packet, got.place())) {
                    return item_type::packet;
                }
            } else {
                if (!detail::call(visitor, got)) { return item_type::packet; }
                if (!got) { return got.what; }
            }
        }
    }

    /// Counts packets until the end of the trace or of the chunk, and adds them to `sofar`. Where
    /// there are PSBs it counts several segments at once, which takes about 6 KB of stack. It does
    /// not track the last IP, which counts as 0 until the next PSB.
    [[nodiscard]] constexpr auto scan(packet_counts sofar = {}) -> packet_counts {
        detail::speculation lanes;
        while (true) {
            if (decodes_in_chunk() && state_.items == packet::block::none) {
                size_t place = state_.in.position();
                if (place >= lanes.retry_from) {
                    place = detail::count_lanes<Packets>(state_.in.chunk(), place, state_.strict,
                                                         sofar, lanes);
                }
                byte_view const up_to_lanes = state_.in.chunk().first(lanes.retry_from);
                state_.in.seek(
                    detail::count_loop<Packets>(up_to_lanes, place, state_.strict, sofar));
            }
            auto const got = next_slow_path();
            state_.last_ip = 0;
            if (!got) { return sofar; }
            sofar.add(got);
        }
    }
    /// The same, and calls `boundary(kind, offset, length)` for each packet.
    template <callable<packet::kind, uint64_t, unsigned> Boundary>
    [[nodiscard]] constexpr auto scan(packet_counts sofar, Boundary&& boundary) -> packet_counts {
        (void)for_each(detail::counter<Boundary>{sofar, boundary});
        return sofar;
    }

    /// Skips one byte, which is not decoded. Returns false, and does not move, at the end of the
    /// chunk.
    [[nodiscard]] constexpr auto skip_byte() noexcept -> bool {
        bool const is_here = state_.next == mode::decoding &&
                             (state_.in.straddles() || !state_.in.rest().empty());
        if (is_here) { state_.in.advance(1); }
        refresh_fast_limit();
        return is_here;
    }

    /// Moves to the first PSB of the chunk. Returns false, and does not move, when there is none.
    [[nodiscard]] constexpr auto sync_first() noexcept -> bool {
        return go_to_psb(find_psb(state_.in.chunk()));
    }
    /// Moves to the next PSB of the chunk, after the current position.
    [[nodiscard]] constexpr auto sync_next() noexcept -> bool {
        size_t const here = is_before_chunk() || state_.next == mode::searching ? 0 : 1;
        return go_to_psb(find_psb(state_.in.chunk(), position_in_chunk() + here));
    }
    /// Moves back to the last PSB of the chunk before the current position.
    [[nodiscard]] constexpr auto sync_previous() noexcept -> bool {
        return go_to_psb(find_psb_before(state_.in.chunk(), position_in_chunk()));
    }

private:
    /// What the next call of `next` does first.
    enum class mode : uint8_t {
        decoding,
        searching,  // for the PSB at which decoding resumes
        at_psb,     // the position is after a PSB that was found and is the next packet
    };
    /// All state except the hook.
    struct state {
        chunked_input in{};
        size_t fast_limit = 0;  // packets before this position of the chunk take the fast path
        uint64_t last_ip = 0;
        packet::block items = packet::block::none;
        mode next = mode::decoding;
        bool strict = false;
        bool synced = false;   // decoding has begun: a PSB that is found is not the first
        uint64_t lost_at = 0;  // where the bytes that a search skips begin
        psb_search search{};
    };
    struct step {
        state reached;
        item got;
    };

    /// The state at the start of a trace.
    ///
    /// noinline: keeps the cold members out of registers. Without it next() takes 15 % more
    /// instructions on packets of all kinds (clang 19).
    PTSPEC_ATTRIBUTE(noinline)
    static constexpr auto initial_state(byte_view bytes, bool is_whole,
                                        reader_options options) noexcept -> state {
        return {.in = is_whole ? chunked_input{bytes} : chunked_input{},
                .next = options.sync ? mode::searching : mode::decoding,
                .strict = options.strict,
                .synced = !options.sync};
    }

    /// A copy, so that `initial_state` does not construct `state_` in place: the address of
    /// `state_` would escape, and next() would take 17 % more instructions (clang 19).
    static constexpr auto copy_of(state const& from) noexcept -> state const& { return from; }

    [[nodiscard]] constexpr auto decodes_in_chunk() const noexcept -> bool {
        return state_.next == mode::decoding && !state_.in.straddles();
    }
    /// The length of a PSB that was found: it is the next packet, but lies before the position.
    [[nodiscard]] constexpr auto found_psb_bytes() const noexcept -> size_t {
        return state_.next == mode::at_psb ? psb_bytes : 0;
    }
    /// True if the next packet begins before the chunk.
    [[nodiscard]] constexpr auto is_before_chunk() const noexcept -> bool {
        return state_.in.straddles() || state_.in.position() < found_psb_bytes();
    }
    /// Where the next packet begins in the chunk; 0 when it begins before the chunk.
    [[nodiscard]] constexpr auto position_in_chunk() const noexcept -> size_t {
        return is_before_chunk() ? 0 : state_.in.position() - found_psb_bytes();
    }

    constexpr auto go_to_psb(size_t psb) noexcept -> bool {
        if (psb == npos) { return false; }
        state_.in.seek(psb + psb_bytes);
        state_.synced = true;
        state_.next = mode::at_psb;
        refresh_fast_limit();
        return true;
    }

    constexpr void refresh_fast_limit() noexcept {
        bool const fast = decodes_in_chunk() && state_.items == packet::block::none &&
                          state_.in.chunk().size() >= detail::lookahead_bytes;
        state_.fast_limit = fast ? state_.in.chunk().size() - (detail::lookahead_bytes - 1) : 0;
    }

    /// Takes and returns the state by value: the address of the caller's reader does not escape, so
    /// that its hot members stay in registers.
    ///
    /// noinline: keeps the cold path out of the caller's registers. Without it next() takes 44 %
    /// more instructions (g++ 12).
    PTSPEC_ATTRIBUTE(noinline)
    static constexpr auto slow_path(reader copy) noexcept -> step {
        item const got = copy.next_slow_path();
        return {copy.state_, got};
    }
    /// The next item by the slow path.
    ///
    /// always_inline: without it next() takes 17 % more instructions (clang 19). Not part of
    /// next(), where the lifetimes of its variables would be longer.
    PTSPEC_ATTRIBUTE(always_inline)
    constexpr auto next_by_value() noexcept -> item {
        if constexpr (__is_empty(Hook)) {
            auto after = slow_path(*this);
            state_ = after.reached;
            after.got.ip = state_.last_ip;  // the same value: one register serves both
            return after.got;
        } else {
            return next_slow_path();
        }
    }
    constexpr auto next_slow_path() noexcept -> item {
        item got = decode_or_search();
        got.ip = state_.last_ip;
        refresh_fast_limit();
        return got;
    }

    /// Consumes a packet of the fast path.
    constexpr auto consume(detail::quick_packet found, uint64_t offset) noexcept -> item {
        state_.in.advance_in_chunk(found.length);
        state_.last_ip = found.ip;
        return {.what = item_type::packet,
                .length = static_cast<uint8_t>(found.length),
                .offset = offset,
                .ip = found.ip,
                .packet = {found.kind, found.bits, found.length}};
    }
    /// Consumes a packet of the slow path.
    constexpr auto consume(packet::any_packet const& packet) noexcept -> item {
        uint64_t const offset = state_.in.offset();
        state_.in.advance(packet.length());
        state_.last_ip = packet::last_ip_after<Packets>(packet, state_.last_ip);
        state_.items = packet::block_after<Packets>(packet, state_.items);
        return {.what = item_type::packet,
                .length = static_cast<uint8_t>(packet.length()),
                .offset = offset,
                .packet = packet};
    }

    /// Handles bytes that `packet::decode` rejects: incomplete, decoded by the hook, or damage.
    constexpr auto handle_bad_bytes(packet::decoded const& got, byte_view here) noexcept -> item {
        if (got.error == packet::error::truncated) { return out_of_bytes(got.need, here.size()); }
        uint64_t const offset = state_.in.offset();
        if (got.error == packet::error::bad_opcode) {
            unsigned const known = hook_(here.first(psb_bytes));
            if (known != 0 && known <= psb_bytes) {
                if (known > here.size()) { return out_of_bytes(known, here.size()); }
                state_.in.advance(known);
                return {.what = item_type::unknown,
                        .length = static_cast<uint8_t>(known),
                        .offset = offset};
            }
        }
        state_.next = mode::searching;
        state_.lost_at = offset;
        state_.search = {};
        state_.in.step_back(offset < chunked_input::max_step_back ? static_cast<unsigned>(offset)
                                                                  : chunked_input::max_step_back);
        return {
            .what = item_type::damage, .error = got.error, .broken = got.broken, .offset = offset};
    }

    /// Handles an incomplete packet: it continues in the next chunk, or the trace ends inside it.
    constexpr auto out_of_bytes(unsigned need, size_t have) noexcept -> item {
        uint64_t const offset = state_.in.offset();
        auto const missing = static_cast<uint8_t>(need - have);
        if (!state_.in.is_last()) {
            state_.in.release(static_cast<unsigned>(have));
            return {.what = item_type::need_input, .need = missing, .offset = offset};
        }
        if (have == 0) { return {.what = item_type::end, .offset = offset}; }
        state_.in.advance(have);
        return {.what = item_type::damage,
                .error = packet::error::truncated,
                .need = missing,
                .broken = rule::PKT_255,
                .offset = offset,
                .skipped = static_cast<int64_t>(have)};
    }

    /// The slow path: at chunk boundaries, after damage, and for packets that the fast path
    /// rejects.
    constexpr auto decode_or_search() noexcept -> item {
        switch (state_.next) {
            case mode::searching: return search();
            case mode::at_psb: return consume_psb();
            case mode::decoding: break;
        }
        byte_array<size_t{2} * psb_bytes> room{};
        auto const here = state_.in.straddles() ? state_.in.stitched(room.bytes) : state_.in.rest();
        auto const got = packet::decode<Packets>(here, {state_.items, state_.strict});
        return got ? consume(got.packet) : handle_bad_bytes(got, here);
    }

    constexpr auto search() noexcept -> item {
        bool const found = state_.in.search(state_.search);
        uint64_t const offset = state_.in.offset();
        if (!found && !state_.in.is_last()) {
            return {.what = item_type::need_input, .need = 1, .offset = offset};
        }
        if (!found) {
            state_.next = mode::decoding;
            if (offset == state_.lost_at) { return {.what = item_type::end, .offset = offset}; }
            return {.what = item_type::lost,
                    .offset = offset,
                    .skipped = static_cast<int64_t>(offset - state_.lost_at)};
        }
        state_.next = mode::at_psb;
        bool const first = !state_.synced;
        state_.synced = true;
        uint64_t const psb = offset - psb_bytes;
        if (first && psb == 0) { return consume_psb(); }
        return {.what = first ? item_type::synced : item_type::resynced,
                .offset = psb,
                .skipped = static_cast<int64_t>(psb - state_.lost_at)};
    }

    /// Consumes a PSB that was found. Its bytes may be released; they are constant.
    constexpr auto consume_psb() noexcept -> item {
        state_.next = mode::decoding;
        state_.last_ip = 0;
        state_.items = packet::block::none;
        return {.what = item_type::packet,
                .length = psb_bytes,
                .offset = state_.in.offset() - psb_bytes,
                .packet = packet::any_packet{packet::psb{}}};
    }

    /// Calls the visitor with the packets of the chunk, up to one that needs the slow path. Returns
    /// false when the visitor stops.
    template <class Visitor>
    constexpr auto visit_chunk(Visitor& visitor) -> bool {
        size_t const place = state_.in.position();
        auto const after = detail::decode_loop<Packets>(
            state_.in.chunk(), state_.in.offset() - place, state_.strict,
            {place, state_.last_ip, state_.items, true}, visitor);
        state_.in.seek(after.place);
        state_.last_ip = after.last_ip;
        state_.items = after.items;
        refresh_fast_limit();
        return after.keep_going;
    }

    state state_;
    Hook hook_{};
};

}  // namespace ptspec::trace

#undef PTSPEC_ATTRIBUTE
