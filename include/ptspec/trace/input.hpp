// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/psb_search.hpp>

namespace ptspec::trace {

/// The bytes of a trace that comes as one piece or in several, and a place in them.
///
/// Of a piece that is used up it keeps the last bytes by value: the begin of a packet that goes on
/// in the next piece, and as many before it as a search for a PSB may have to step back over.
class pieces {
public:
    /// How far `go_back` can go. A PSB can begin this many bytes before the place where reading
    /// failed: the packet before it may have swallowed its head (PKT-250).
    static constexpr unsigned look_back = psb_bytes - 1;

    constexpr pieces() noexcept = default;
    constexpr explicit pieces(byte_view whole) noexcept : piece_{whole}, last_{true} {}

    /// Gives the next piece, when the one before was let go.
    [[nodiscard]] constexpr auto feed(byte_view piece) noexcept -> bool {
        if (last_ || !piece_.empty()) { return false; }
        piece_ = piece;
        return true;
    }
    constexpr void finish() noexcept { last_ = true; }
    /// No more pieces come.
    [[nodiscard]] constexpr auto is_last() const noexcept -> bool { return last_; }

    /// Where the place is, in bytes from the begin of the trace.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t {
        return piece_offset_ + at_ - kept_unread_;
    }
    /// The same, when the place does not straddle.
    [[nodiscard]] constexpr auto offset_in_piece() const noexcept -> uint64_t {
        return piece_offset_ + at_;
    }
    /// The place lies before the piece, in what was kept.
    [[nodiscard]] constexpr auto straddles() const noexcept -> bool { return kept_unread_ != 0; }

    [[nodiscard]] constexpr auto piece() const noexcept -> byte_view { return piece_; }
    /// Where the place is in the piece, when it does not straddle.
    [[nodiscard]] constexpr auto at() const noexcept -> size_t { return at_; }
    /// The piece from the place on, when it does not straddle.
    [[nodiscard]] constexpr auto rest() const noexcept -> byte_view { return piece_.from(at_); }
    /// What was kept from the place on.
    [[nodiscard]] constexpr auto kept() const noexcept -> byte_view {
        return byte_view{kept_}.from(kept_room - kept_unread_);
    }
    /// The bytes from the place on, when it straddles, as many as a packet can have: written to
    /// `room`.
    [[nodiscard]] constexpr auto stitched(byte_buffer room) const noexcept -> byte_view {
        (void)room.append(kept());
        (void)room.append(piece_.first(psb_bytes));
        return room.written();
    }

    constexpr void step_over(size_t count) noexcept {
        size_t const kept = count < kept_unread_ ? count : kept_unread_;
        kept_unread_ = static_cast<uint8_t>(kept_unread_ - kept);
        at_ += count - kept;
    }
    /// The same, when the place does not straddle.
    constexpr void step_in_piece(size_t count) noexcept { at_ = hide_from_optimizer(at_ + count); }
    /// Steps back over `count` bytes, at most `look_back` and no more than there were.
    constexpr void go_back(unsigned count) noexcept {
        unsigned const here = at_ < count ? static_cast<unsigned>(at_) : count;
        at_ -= here;
        kept_unread_ = static_cast<uint8_t>(kept_unread_ + count - here);
    }
    constexpr void go_to(size_t at) noexcept {
        at_ = at;
        kept_unread_ = 0;
    }

    /// Lets go of the piece; its last `unread` bytes, which may have begun before it, are to be
    /// read yet.
    constexpr void release(unsigned unread) noexcept {
        byte_array<kept_room> all{};
        size_t const fresh = piece_.size() < kept_room ? piece_.size() : kept_room;
        for (size_t i = 0; i < kept_room; ++i) {
            all.bytes[i] = i < kept_room - fresh ? kept_.bytes[i + fresh]
                                                 : piece_[piece_.size() - kept_room + i];
        }
        kept_ = all;
        kept_unread_ = static_cast<uint8_t>(unread);
        piece_offset_ += piece_.size();
        piece_ = {};
        at_ = 0;
    }

    /// Moves the place behind the next PSB. False when there is none: the place is then at the end
    /// of the last piece, or the piece was let go and the search goes on in the next.
    [[nodiscard]] constexpr auto search(psb_search& search) noexcept -> bool {
        if (straddles()) {
            auto const before = kept();
            bool const found = search.in(before);
            step_over(found ? static_cast<size_t>(search.end()) : before.size());
            if (found) { return true; }
        }
        bool const found = search.in(rest()) || (last_ && search.at_the_end());
        if (found && search.end() < 0) {
            go_back(1);
        } else if (found) {
            at_ += static_cast<size_t>(search.end());
        } else if (last_) {
            at_ = piece_.size();
        } else {
            release(0);
        }
        return found;
    }

private:
    static constexpr size_t kept_room = size_t{2} *
                                        look_back;  // a packet without its end, and before it

    byte_view piece_{};
    size_t at_ = 0;
    uint64_t piece_offset_ = 0;
    bool last_ = false;
    uint8_t kept_unread_ = 0;
    byte_array<kept_room> kept_{};
};

}  // namespace ptspec::trace
