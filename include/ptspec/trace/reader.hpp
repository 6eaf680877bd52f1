// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/fast/decode_loop.hpp>
#include <ptspec/trace/reader_state.hpp>
#include <ptspec/trace/fast/count_lanes.hpp>
#include <ptspec/trace/packet_counts.hpp>
#include <ptspec/trace/visitor.hpp>

namespace ptspec::trace {

/// Reads the packets of a trace, one after the other, and finds its way through damage.
///
/// A reader is a value: a copy goes on by itself from where the original stands. It borrows the
/// bytes: the whole trace, or one piece after the other. Of a piece that is used up it keeps what
/// it still needs, so that the caller can let go of it.
///
/// Errors: damage is an item like any other. The next item is the PSB at which reading goes on, or
///         `lost`. Behind a trace that ends in a packet nothing is searched.
/// Source: PKT-250..256; the last IP PKT-059..061; the block context PKT-205.
template <opcode_hook Hook = no_hook, class Packets = packet::all>
class reader : public reader_state {
public:
    /// Reads a whole trace.
    constexpr explicit reader(kept_bytes whole, options how = {}, Hook hook = {}) noexcept
        : reader_state{fresh(whole.view(), true, how)}, hook_{hook} {}

    /// Reads a trace that comes in pieces.
    constexpr explicit reader(options how = {}, Hook hook = {}) noexcept
        : reader_state{fresh({}, false, how)}, hook_{hook} {}

    /// Gives the next piece. Only when the reader asked for it with `item_type::need_input`, and at
    /// the beginning; at other times nothing happens and the answer is false.
    [[nodiscard]] constexpr auto feed(kept_bytes piece) noexcept -> bool {
        return bytes_.feed(piece.view());
    }

    /// Says that there are no more pieces.
    constexpr void finish() noexcept { bytes_.finish(); }

    /// The next thing in the trace.
    [[gnu::always_inline]]  // so that the state stays in registers between two calls
    [[nodiscard]] constexpr auto
    next() noexcept -> item {
        if (bytes_.at() < calm_until_) [[likely]] {
            using packet::kind;
            // Each kind has a return of its own: what the caller does for others is left out there.
            uint64_t const offset = bytes_.offset_in_piece();
            uint8_t const* const here = bytes_.piece().data() + bytes_.at();
            unsigned const first = *here;
            if (first == detail::opcode_bits<packet::pad>) {
                return take({{{0, 0}, 1, kind::pad}, last_ip_}, offset);
            }
            if (detail::is_tnt(first)) {
                return take({{{first, 0}, 1, kind::tnt_short}, last_ip_}, offset);
            }
            if (detail::is_cyc(first)) {
                auto const found = detail::quick_decode_cyc(load_le64(here), last_ip_);
                if (found.packet.length != 0) { return take(found, offset); }
            }
            // Here a long CYC has no length either.
            auto const found = detail::quick_decode<Packets>(here, last_ip_, strict_);
            if (found.packet.length != 0) [[likely]] { return take(found, offset); }
        }
        return next_by_value();
    }

    /// Reads on until the end, the end of the piece, or until the visitor returns false, and says
    /// which of the three it was: `end`, `more`, or `packet`.
    template <class Visitor>
    constexpr auto for_each(Visitor&& visitor) -> item_type {
        static_assert(
            packet_visitor<Visitor, Packets>,
            "a visitor is called with (packet, trace::at) and takes one packet type at least");
        while (true) {
            if (reads_in_the_piece() && !visit_in_the_piece(visitor)) { return item_type::packet; }
            auto const got = next_slow_path();
            if (got.what == item_type::packet) {
                bool const go_on = packet::visit<Packets>(
                    [&](auto const& packet) {
                        return detail::call(visitor, packet, at{got.offset, got.ip, got.length});
                    },
                    got.packet);
                if (!go_on) { return item_type::packet; }
            } else {
                if constexpr (callable<Visitor&, item const&>) { visitor(got); }
                if (!got) { return got.what; }
            }
        }
    }

    /// Counts what comes until the end, or the end of the piece, on top of `sofar`: in several
    /// places at once where there are PSBs, which takes some 6 KB of stack. The last IP is not
    /// followed: it counts as 0 until the next PSB.
    [[nodiscard]] constexpr auto scan(packet_counts sofar = {}) -> packet_counts {
        detail::lanes_outlook outlook;
        while (true) {
            if (reads_in_the_piece() && items_ == packet::block::none) {
                size_t place = bytes_.at();
                if (place >= outlook.again) {
                    place = detail::count_lanes<Packets>(bytes_.piece(), place, strict_, sofar,
                                                         outlook);
                }
                byte_view const up_to_lanes = bytes_.piece().first(outlook.again);
                bytes_.go_to(detail::count_loop<Packets>(up_to_lanes, place, strict_, sofar));
            }
            auto const got = next_slow_path();
            last_ip_ = 0;
            if (!got) { return sofar; }
            sofar.add(got);
        }
    }
    /// The same, and calls `boundary(kind, offset, length)` for each packet.
    template <class Boundary>
    [[nodiscard]] constexpr auto scan(packet_counts sofar, Boundary&& boundary) -> packet_counts {
        (void)for_each(detail::counter<Boundary>{sofar, boundary});
        return sofar;
    }

    /// Goes to the first PSB of what is at hand. False, and nothing happens, when there is none.
    [[nodiscard]] constexpr auto sync_first() noexcept -> bool {
        return go_to(find_psb(bytes_.piece()));
    }
    /// Goes to the next PSB of what is at hand, past the one at which the reader stands.
    [[nodiscard]] constexpr auto sync_next() noexcept -> bool {
        size_t const here = stands_before_the_piece() || state_ == state::searching ? 0 : 1;
        return go_to(find_psb(bytes_.piece(), place() + here));
    }
    /// Goes back to the last PSB of what is at hand before the place at which the reader stands.
    [[nodiscard]] constexpr auto sync_previous() noexcept -> bool {
        return go_to(find_psb_before(bytes_.piece(), place()));
    }

private:
    struct step {
        reader_state now;
        item got;
    };
    /// What is seldom. The reader goes in and out by value: the address of the caller's is taken by
    /// nobody, so that it can stay in registers.
    [[gnu::noinline]] static constexpr auto with_care(reader now) noexcept -> step {
        item const got = now.next_slow_path();
        return {static_cast<reader_state const&>(now), got};
    }
    [[gnu::always_inline]]  // apart from next, as whose variables these would live longer
    constexpr auto
    next_by_value() noexcept -> item {
        if constexpr (__is_empty(Hook)) {
            auto behind = with_care(*this);
            static_cast<reader_state&>(*this) = behind.now;
            behind.got.ip = last_ip_;  // as it is: so that one register does for both
            return behind.got;
        } else {
            return next_slow_path();
        }
    }
    [[gnu::noinline]] constexpr auto next_slow_path() noexcept -> item {
        item got = next_outside_input();
        got.ip = last_ip_;
        settle();
        return got;
    }

    /// Steps over a packet that was seen at a glance.
    [[gnu::always_inline]]  // as above
    constexpr auto
    take(detail::quick_packet found, uint64_t offset) noexcept -> item {
        bytes_.step_in_piece(found.packet.length);
        last_ip_ = found.ip;
        return {.what = item_type::packet,
                .length = static_cast<uint8_t>(found.packet.length),
                .offset = offset,
                .ip = found.ip,
                .packet = packet::any_packet{found.packet}};
    }
    /// Steps over a packet.
    constexpr auto take(packet::any_packet const& packet) noexcept -> item {
        uint64_t const offset = bytes_.offset();
        bytes_.step_over(packet.length());
        last_ip_ = packet::last_ip_after<Packets>(packet, last_ip_);
        items_ = packet::block_after<Packets>(packet, items_);
        return {.what = item_type::packet,
                .length = static_cast<uint8_t>(packet.length()),
                .offset = offset,
                .packet = packet};
    }

    /// What to do about bytes that are no packet.
    constexpr auto handle_bad_bytes(packet::decoded const& got, byte_view here) noexcept -> item {
        if (got.why == packet::error::truncated) { return out_of_bytes(got.need, here.size()); }
        uint64_t const offset = bytes_.offset();
        if (got.why == packet::error::bad_opcode) {
            unsigned const known = hook_(here.first(psb_bytes));
            if (known != 0 && known <= psb_bytes) {
                if (known > here.size()) { return out_of_bytes(known, here.size()); }
                bytes_.step_over(known);
                return {.what = item_type::unknown,
                        .length = static_cast<uint8_t>(known),
                        .offset = offset};
            }
        }
        state_ = state::searching;
        lost_at_ = offset;
        search_ = {};
        bytes_.go_back(offset < pieces::look_back ? static_cast<unsigned>(offset)
                                                  : pieces::look_back);
        return {.what = item_type::damage, .why = got.why, .broken = got.broken, .offset = offset};
    }

    /// A packet needs more bytes than there are: the next piece has them, or the trace ends here.
    constexpr auto out_of_bytes(unsigned need, size_t have) noexcept -> item {
        uint64_t const offset = bytes_.offset();
        auto const missing = static_cast<uint8_t>(need - have);
        if (!bytes_.is_last()) {
            bytes_.release(static_cast<unsigned>(have));
            return {.what = item_type::need_input, .need = missing, .offset = offset};
        }
        if (have == 0) { return {.what = item_type::end, .offset = offset}; }
        bytes_.step_over(have);
        return {.what = item_type::damage,
                .why = packet::error::truncated,
                .need = missing,
                .broken = rule::PKT_255,
                .offset = offset,
                .skipped = static_cast<int64_t>(have)};
    }

    // What is seldom: between two pieces, and behind damage.

    constexpr auto next_outside_input() noexcept -> item {
        switch (state_) {
            case state::searching: return search();
            case state::resuming: return resume();
            case state::reading: break;
        }
        byte_array<size_t{2} * psb_bytes> room{};
        auto const here = bytes_.straddles() ? bytes_.stitched(room.bytes) : bytes_.rest();
        auto const got = packet::decode<Packets>(here, context());
        return got ? take(got.packet) : handle_bad_bytes(got, here);
    }

    constexpr auto search() noexcept -> item {
        bool const found = bytes_.search(search_);
        uint64_t const offset = bytes_.offset();
        if (!found && !bytes_.is_last()) {
            return {.what = item_type::need_input, .need = 1, .offset = offset};
        }
        if (!found) {
            state_ = state::reading;
            if (offset == lost_at_) { return {.what = item_type::end, .offset = offset}; }
            return {.what = item_type::lost,
                    .offset = offset,
                    .skipped = static_cast<int64_t>(offset - lost_at_)};
        }
        state_ = state::resuming;
        bool const first = !synced_;
        synced_ = true;
        uint64_t const psb = offset - psb_bytes;
        if (first && psb == 0) { return resume(); }
        return {.what = first ? item_type::synced : item_type::resynced,
                .offset = psb,
                .skipped = static_cast<int64_t>(psb - lost_at_)};
    }

    /// The PSB that was found. Its bytes may be gone, but they are known.
    constexpr auto resume() noexcept -> item {
        state_ = state::reading;
        last_ip_ = 0;
        items_ = packet::block::none;
        return {.what = item_type::packet,
                .length = psb_bytes,
                .offset = bytes_.offset() - psb_bytes,
                .packet = packet::any_packet{packet::psb{}}};
    }

    /// Hands out packets until one needs more care. False when the visitor wants no more.
    template <class Visitor>
    constexpr auto visit_in_the_piece(Visitor& visitor) -> bool {
        size_t const place = bytes_.at();
        auto const behind = detail::decode_loop<Packets>(bytes_.piece(), bytes_.offset() - place,
                                                         strict_, {place, last_ip_, items_, true},
                                                         visitor);
        bytes_.go_to(behind.place);
        last_ip_ = behind.last_ip;
        items_ = behind.items;
        settle();
        return behind.go_on;
    }

    Hook hook_{};
};

}  // namespace ptspec::trace
