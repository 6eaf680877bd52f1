// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/sink.hpp>

namespace ptspec::flow {

/// What a walk did not find, in all, whatever its sink takes: `walker::gaps`.
///
/// Units:  bytes of trace.
struct gap_counts {
    uint64_t gaps = 0;
    /// The bytes whose branches are not known: those of the packets from the one that shows a gap
    /// to the one that ends it, inclusive, and all before the first PSB.
    uint64_t bytes = 0;
    flow::gap first{};  ///< `gap_reason::none` without gaps

    /// True if each branch in the trace was walked.
    [[nodiscard]] constexpr auto is_complete() const noexcept -> bool {
        return gaps == 0 && bytes == 0;
    }

    /// Adds a gap that ends before `end`, an offset in the trace.
    constexpr void add(flow::gap const& one, uint64_t end) noexcept {
        if (gaps == 0) { first = one; }
        ++gaps;
        add_bytes(one.offset, end);
    }
    /// Adds the bytes between two offsets in the trace, except those that were added before.
    constexpr void add_bytes(uint64_t begin, uint64_t end) noexcept {
        uint64_t const from = begin > counted_to_ ? begin : counted_to_;
        if (end <= from) { return; }
        bytes += end - from;
        counted_to_ = end;
    }

private:
    uint64_t counted_to_ = 0;
};

namespace detail {

/// The TIP or TIP.PGD that ends a gap, and whose branch is not known. Its size is computed only
/// where a gap ends: a walk of blocks takes 0.2 % fewer instructions (g++ 12).
class lost_packet {
public:
    constexpr lost_packet() noexcept = default;
    constexpr explicit lost_packet(packet::ip_bytes form) noexcept : code_{underlying(form) + 1U} {}
    /// In bytes; 0 for no packet.
    [[nodiscard]] constexpr auto size() const noexcept -> unsigned {
        return code_ == 0 ? 0 : 1 + packet::tip::payload_type::size(code_ - 1);
    }

private:
    unsigned code_ = 0;
};

}  // namespace detail

}  // namespace ptspec::flow
