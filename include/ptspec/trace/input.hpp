// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/psb_search.hpp>

namespace ptspec::trace {

/// The bytes of a trace, which arrives in one chunk or several, and the read position.
///
/// The chunk is borrowed. When it is released, its last bytes are copied into the carry: the
/// beginning of a packet that continues in the next chunk, and as many bytes before it as a search
/// for a PSB may have to step back.
class pieces {
public:
    /// The most bytes to step back. A PSB can begin this many bytes before the position at which
    /// decoding failed, because the packet before the PSB may have taken its first bytes (PKT-250).
    static constexpr unsigned look_back = psb_bytes - 1;

    constexpr pieces() noexcept = default;
    constexpr explicit pieces(byte_view whole) noexcept : piece_{whole}, last_{true} {}

    /// Sets the next chunk. Returns false while the last one is not released, and after `finish()`.
    [[nodiscard]] constexpr auto feed(byte_view piece) noexcept -> bool {
        if (last_ || !piece_.empty()) { return false; }
        piece_ = piece;
        return true;
    }
    constexpr void finish() noexcept { last_ = true; }
    /// No more chunks follow.
    [[nodiscard]] constexpr auto is_last() const noexcept -> bool { return last_; }

    /// The read position, in bytes from the start of the trace.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t {
        return piece_offset_ + at_ - kept_unread_;
    }
    /// The same, when no byte of the carry is unread.
    [[nodiscard]] constexpr auto offset_in_piece() const noexcept -> uint64_t {
        return piece_offset_ + at_;
    }
    /// The read position lies before the chunk, in the carry.
    [[nodiscard]] constexpr auto straddles() const noexcept -> bool { return kept_unread_ != 0; }

    [[nodiscard]] constexpr auto piece() const noexcept -> byte_view { return piece_; }
    /// The read position in the chunk, when it does not straddle.
    [[nodiscard]] constexpr auto at() const noexcept -> size_t { return at_; }
    /// The unread bytes of the chunk, when the position does not straddle.
    [[nodiscard]] constexpr auto rest() const noexcept -> byte_view { return piece_.from(at_); }
    /// The unread bytes of the carry.
    [[nodiscard]] constexpr auto kept() const noexcept -> byte_view {
        return byte_view{kept_}.from(kept_room - kept_unread_);
    }
    /// The unread bytes at a position that straddles, written to `room`: the carry, and as many
    /// bytes of the chunk as the longest packet has.
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
    /// The same, when the position does not straddle.
    constexpr void step_in_piece(size_t count) noexcept { at_ = hide_from_optimizer(at_ + count); }
    /// Steps back by `count` bytes, which is at most `look_back` and at most `offset()`.
    constexpr void go_back(unsigned count) noexcept {
        unsigned const here = at_ < count ? static_cast<unsigned>(at_) : count;
        at_ -= here;
        kept_unread_ = static_cast<uint8_t>(kept_unread_ + count - here);
    }
    constexpr void go_to(size_t at) noexcept {
        at_ = at;
        kept_unread_ = 0;
    }

    /// Releases the chunk and copies its last bytes to the carry. The last `unread` bytes, which
    /// may begin before this chunk, stay unread.
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

    /// Moves the position after the next PSB. Returns false when there is none: then the position
    /// is at the end of the last chunk, or the chunk is released and the search continues in the
    /// next.
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
    // An incomplete packet, and the bytes before it to step back.
    static constexpr size_t kept_room = size_t{2} * look_back;

    byte_view piece_{};
    size_t at_ = 0;
    uint64_t piece_offset_ = 0;
    bool last_ = false;
    uint8_t kept_unread_ = 0;
    byte_array<kept_room> kept_{};
};

}  // namespace ptspec::trace
