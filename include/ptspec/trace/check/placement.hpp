// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/check/options.hpp>
#include <ptspec/trace/write/batch.hpp>

namespace ptspec::trace {

namespace detail {

struct packet_at {
    packet::any_packet packet{};
    uint64_t offset = 0;
};

}  // namespace detail

/// Compares the places of packets with those at which `packet_batch` places them.
///
/// The place of some packets depends on the next one, so a misplaced packet may be found when a
/// later one is added.
///
/// Source: GEN-008, GEN-010.
template <class Packets = packet::all>
class placement {
public:
    constexpr placement() noexcept = default;
    constexpr placement(writer_options const& options, unsigned end_alignment) noexcept
        : options_{options}, end_alignment_{end_alignment} {
        options_.cyc = true;
        options_.cyc_threshold = 0;
    }

    /// Drops the held packets. Places are unknown until the next PSB, which shows where words
    /// begin.
    constexpr void forget() noexcept {
        is_known_ = false;
        held_ = 0;
    }

    /// The state that a checker has before a packet.
    struct context {
        packet::block items = packet::block::none;
        bool in_psb = false;
        bool may_end = false;  ///< tracing may have been disabled: PADs may precede the packet
    };

    /// Adds a packet that is no PAD. Returns a misplaced packet; its rule is `none` if there is
    /// none. After a misplaced packet the places are unknown up to the next PSB.
    [[nodiscard]] constexpr auto add(packet::any_packet const& packet, uint64_t offset,
                                     context const& around) noexcept -> violation {
        using packet::kind;
        kind const packet_kind = packet.kind();
        violation found{};
        if (!is_known_) {
            if (packet_kind == kind::psb) { begin(offset + packet.length()); }
            return found;
        }
        bool const begins = packet_kind == kind::psb || packet_kind == kind::tsc;
        unsigned const alone = held_without(packet_kind);
        if (alone != 0) {
            found = compare(alone);
            if (!is_known_) {
                if (packet_kind == kind::psb) { begin(offset + packet.length()); }
                return found;
            }
        }
        if (held_ == 0) {
            may_end_ = false;
            items_ = around.items;
            in_psb_ = around.in_psb;
        }
        may_end_ |= around.may_end || begins;
        all_[held_] = {packet, offset};
        ++held_;
        if (!decides_later(packet_kind, around.in_psb) || held_ == max_held) {
            found = compare(held_);
        }
        return found;
    }

private:
    struct attempt {
        unsigned wrong = max_held;  ///< the index of the first misplaced packet
        bool ends_in_payload = false;
    };

    /// The maximum number of held packets. The place of the first depends on later ones.
    static constexpr unsigned max_held = 16;

    [[nodiscard]] constexpr auto decides_later(packet::kind packet_kind, bool in_psb) const noexcept
        -> bool {
        using packet::kind;
        bool const is_mode = packet_kind == kind::mode_tsx || packet_kind == kind::mode_exec;
        return packet_kind == kind::cyc || (is_mode && options_.pads == pad_policy::skylake) ||
               ((is_mode || packet_kind == kind::cbr) && options_.pads == pad_policy::broadwell &&
                in_psb);
    }
    /// The number of held packets that do not share a word with the packet `next`. A MODE.TSX
    /// shares a word only with a MODE.Exec or a packet with an IP. A CYC directly before `next`
    /// belongs to `next`.
    [[nodiscard]] constexpr auto held_without(packet::kind next) const noexcept -> unsigned {
        using packet::kind;
        unsigned count = held_;
        while (count != 0 && all_[count - 1].packet.is<packet::cyc>()) { --count; }
        if (count == 0) { return 0; }
        bool const is_tsx = all_[count - 1].packet.is<packet::mode_tsx>();
        bool const joins = next == kind::mode_exec || next == kind::cyc || next == kind::fup ||
                           next == kind::tip || next == kind::tip_pge || next == kind::tip_pgd;
        bool const begins = next == kind::psb || next == kind::tsc;
        return begins || (options_.pads == pad_policy::skylake && is_tsx && !joins) ? count : 0;
    }
    constexpr void begin(uint64_t end) noexcept {
        is_known_ = true;
        held_ = 0;
        end_ = end;
        phase_ = end % 8;
        ends_in_payload_ = ends_in_tnt_ = false;
    }

    /// Compares the places of the first held packets with their places in a batch, and continues
    /// after them.
    [[nodiscard]] constexpr auto compare(unsigned count) noexcept -> violation {
        auto got = write_after(end_, ends_in_payload_, 0, count);
        if (got.wrong != max_held && may_end_ && end_alignment_ != 0) {
            // Where words do not begin at multiples of 8, the multiples of 16 are unknown, too.
            uint64_t const step = phase_ == 0 ? end_alignment_ : 8;
            uint64_t aligned = aligned_up(step);
            for (uint64_t i = 0; i < end_alignment_; i += step, aligned += step) {
                auto const again = write_after(aligned, false, 0, count);
                if (again.wrong == max_held) { got = again; }
            }
        }
        if (got.wrong != max_held && !in_psb_) {
            auto const again = write_separately(count);
            if (again.wrong == max_held) { got = again; }
        }
        if (got.wrong != max_held && crosses_after_tnt()) { got = {}; }
        auto const& last = all_[count - 1];
        violation found{};
        if (got.wrong != max_held) {
            auto const& wrong = all_[got.wrong];
            found = {wrong.offset, rule::GEN_010, wrong.packet.kind()};
        }
        uint64_t const end = last.offset + last.packet.length();
        bool const is_psb = last.packet.is<packet::psb>();
        ends_in_payload_ = got.ends_in_payload;
        ends_in_tnt_ = is_full_tnt(last.packet);
        end_ = end;
        held_ -= count;
        for (unsigned i = 0; i < held_; ++i) { all_[i] = all_[count + i]; }
        if (got.wrong != max_held) { forget(); }
        if (is_psb) { begin(end); }
        return found;
    }
    [[nodiscard]] constexpr auto aligned_up(uint64_t alignment) const noexcept -> uint64_t {
        uint64_t const over = (end_ - phase_) % alignment;
        return over == 0 ? end_ : end_ + alignment - over;
    }
    /// Writes a MODE.TSX alone, then the packets after it, which belong to another event.
    [[nodiscard]] constexpr auto write_separately(unsigned count) const noexcept -> attempt {
        unsigned const first = all_[0].packet.is<packet::cyc>() ? 1 : 0;
        bool const is_tsx = first < count && all_[first].packet.is<packet::mode_tsx>();
        if (!is_tsx || first + 1 >= count) { return {.wrong = 0}; }
        auto const alone = write_after(end_, ends_in_payload_, 0, first + 1);
        if (alone.wrong != max_held) { return alone; }
        auto const& tsx = all_[first];
        return write_after(tsx.offset + tsx.packet.length(), false, first + 1, count);
    }
    /// Writes the held packets with the indices [from, end), after `begin`. Packets that a batch
    /// rejects, and CYCs for which there is no evidence, count as correctly placed.
    [[nodiscard]] constexpr auto write_after(uint64_t begin, bool in_payload, unsigned from,
                                             unsigned end) const noexcept -> attempt {
        writer_state before{};
        before.bytes = begin - phase_;
        before.ends_in_payload = in_payload;
        before.items = items_;
        packet_batch<Packets> made{before, options_};
        bool is_timed = false;
        for (unsigned i = from; i < end; ++i) {
            auto const& one = all_[i].packet;
            if (one.is<packet::cyc>()) {
                uint64_t const cycles = one.as<packet::cyc>().value();
                bool const is_odd = is_timed || cycles == 0 ||
                                    options_.pads == pad_policy::broadwell ||
                                    packet::cyc::of(cycles).length() != one.length();
                if (is_odd) { return {}; }
                made.advance(cycles);
                is_timed = true;
                continue;
            }
            if (is_timed && !takes_cyc(one)) { return {}; }
            // The CYC may belong to a TNT that was lost.
            if (is_timed && one.is<packet::ovf>()) { return {}; }
            is_timed = false;
            made.add(one);
        }
        made.finish();
        if (is_timed || made.broken() != rule::none) { return {}; }
        attempt got{};
        got.ends_in_payload = made.state().ends_in_payload;
        byte_view const bytes = made.bytes();
        size_t at = 0;
        for (unsigned i = from; i < end; ++i) {
            while (at < bytes.size() && bytes[at] == 0) { ++at; }  // PADs
            if (begin + at != all_[i].offset && got.wrong == max_held) { got.wrong = i; }
            at += all_[i].packet.length();
        }
        return got;
    }
    [[nodiscard]] static constexpr auto takes_cyc(packet::any_packet const& packet) noexcept
        -> bool {
        return packet::facts_of<Packets>(packet.kind()).cyc_eligible == packet::cyc_rule::yes;
    }
    [[nodiscard]] constexpr auto has_cyc_with_tnt() const noexcept -> bool {
        return all_[0].packet.is<packet::cyc>() && all_[1].packet.is<packet::tnt_short>();
    }
    [[nodiscard]] constexpr auto is_full_tnt(packet::any_packet const& one) const noexcept -> bool {
        return one.is<packet::tnt_short>() &&
               one.as<packet::tnt_short>().taken().count == options_.max_branches();
    }
    /// True for a CYC and its TNT directly after a full TNT. They may cross a multiple of 8: the
    /// last branch of the full TNT may have retired in the same cycle as the first branch of this
    /// TNT.
    [[nodiscard]] constexpr auto crosses_after_tnt() const noexcept -> bool {
        return ends_in_tnt_ && held_ == 2 && has_cyc_with_tnt() && all_[0].offset == end_ &&
               all_[1].offset == end_ + all_[0].packet.length();
    }

    writer_options options_{};
    unsigned end_alignment_ = 0;
    bool is_known_ = false;
    bool may_end_ = false;
    bool in_psb_ = false;
    bool ends_in_payload_ = false;
    bool ends_in_tnt_ = false;  ///< a full one
    packet::block items_ = packet::block::none;
    unsigned held_ = 0;
    uint64_t end_ = 0;
    uint64_t phase_ = 0;
    detail::packet_at all_[max_held] = {};
};

}  // namespace ptspec::trace
