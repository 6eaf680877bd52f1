// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/fast/decode_loop.hpp>
#include <ptspec/trace/input.hpp>

namespace ptspec::trace {

/// What a reader knows between two packets. The base of `reader`, which moves it on.
///
/// Source: PKT-059..061, PKT-205, PKT-250.
class reader_state {
public:
    /// Where the next packet begins, in bytes from the begin of the trace.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t {
        return bytes_.offset() - ahead();
    }
    [[nodiscard]] constexpr auto last_ip() const noexcept -> uint64_t { return last_ip_; }
    [[nodiscard]] constexpr auto items() const noexcept -> packet::block { return items_; }

protected:
    enum class state : uint8_t {
        reading,
        searching,  // for the PSB at which reading goes on
        resuming,   // behind a PSB that was found and is the next packet
    };

    /// A reader that has read nothing yet.
    [[gnu::noinline]]  // so that what is seldom needed is copied as one, not kept in registers
    static constexpr auto
    fresh(byte_view bytes, bool are_all, options how) noexcept -> reader_state {
        return reader_state{are_all ? pieces{bytes} : pieces{}, how};
    }
    constexpr reader_state(pieces const& bytes, options how) noexcept
        : bytes_{bytes},
          state_{how.sync ? state::searching : state::reading},
          strict_{how.strict},
          synced_{!how.sync} {}

    [[nodiscard]] constexpr auto context() const noexcept -> packet::context {
        return {items_, strict_};
    }
    [[nodiscard]] constexpr auto reads_in_the_piece() const noexcept -> bool {
        return state_ == state::reading && !bytes_.straddles();
    }
    /// How many bytes behind the next packet's begin the place is.
    [[nodiscard]] constexpr auto ahead() const noexcept -> size_t {
        return state_ == state::resuming ? psb_bytes : 0;
    }
    /// The next packet begins before the piece.
    [[nodiscard]] constexpr auto stands_before_the_piece() const noexcept -> bool {
        return bytes_.straddles() || bytes_.at() < ahead();
    }
    /// Where the next packet begins in the piece; 0 when it begins before.
    [[nodiscard]] constexpr auto place() const noexcept -> size_t {
        return stands_before_the_piece() ? 0 : bytes_.at() - ahead();
    }

    constexpr auto go_to(size_t psb) noexcept -> bool {
        if (psb == nowhere) { return false; }
        bytes_.go_to(psb + psb_bytes);
        synced_ = true;
        state_ = state::resuming;
        settle();
        return true;
    }

    /// Up to where packets can be read at a glance.
    constexpr void settle() noexcept {
        bool const calm = reads_in_the_piece() && items_ == packet::block::none &&
                          bytes_.piece().size() >= detail::lookahead_bytes;
        calm_until_ = calm ? bytes_.piece().size() - (detail::lookahead_bytes - 1) : 0;
    }

    pieces bytes_;
    size_t calm_until_ = 0;  // before this place in the piece a packet is read at a glance
    uint64_t last_ip_ = 0;
    packet::block items_ = packet::block::none;
    state state_;
    bool strict_;
    bool synced_;           // reading has begun: a PSB that is found is not the first
    uint64_t lost_at_ = 0;  // where the bytes that a search skips begin
    psb_search search_{};
};

}  // namespace ptspec::trace
