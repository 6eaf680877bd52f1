// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/overlap.hpp>
#include <ptspec/file/perf_data/stream.hpp>

/// Finds the gaps between the pieces of a stream, and trims what two pieces have in common.
namespace ptspec::file::perf_data::detail {

/// Moves the bytes of `before` at and after the offset of the mark into the mark.
constexpr void split_at(piece& before, piece& mark) noexcept {
    mark.reference = before.reference;
    uint64_t const kept = mark.offset - before.offset;
    if (kept >= before.trace.size()) { return; }
    mark.recorded = before.recorded;
    mark.trace = before.trace.from(static_cast<size_t>(kept));
    before.trace = before.trace.first(static_cast<size_t>(kept));
}

/// Joins a piece to the piece before it in its stream. perf pads pieces to 8 bytes and does not
/// count the PADs in the next offset, so the PADs are removed.
constexpr void join_pieces(piece& before, piece& next) noexcept {
    uint64_t const size = before.trace.size();
    uint64_t const distance = next.offset - before.offset;
    next.has_gap_before = distance != size;
    if (distance >= size) { return; }
    auto const kept = before.trace.first(static_cast<size_t>(distance));
    if (!is_padding(before.trace.from(kept.size()))) { return; }
    before.trace = kept;
    next.has_gap_before = false;
}

/// Joins the pieces of a stream by their offsets.
constexpr void join_by_offset(piece* all, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) {
        auto& one = all[i];
        if (i == 0) {
            one.has_gap_before = one.offset != 0;
        } else {
            if (is_mark(one)) { split_at(all[i - 1], one); }
            join_pieces(all[i - 1], one);
        }
        one.has_gap_before = one.has_gap_before || is_lossy(one);
    }
    // If the stream ends with a loss, the bytes after it are only PADs that perf adds.
    auto& last = all[count - 1];
    if (is_lossy(last) && is_padding(last.trace)) { last.trace = {}; }
}

/// Drops `count` bytes from the end of `last`. If it has fewer bytes, continues in the piece before
/// it, up to a gap.
constexpr void drop_end(piece* first, piece* last, size_t count) noexcept {
    for (piece* at = last;; --at) {
        size_t const size = at->trace.size();
        size_t const dropped = size < count ? size : count;
        at->trace = at->trace.first(size - dropped);
        count -= dropped;
        if (count == 0 || at == first || at->has_gap_before) { return; }
    }
}

/// Joins snapshots or samples by the bytes that they have in common. Each piece is compared with
/// the last piece before it that had new bytes. A piece without a PSB has no new bytes; if no piece
/// has a PSB, all bytes of the first piece are new. The time is proportional to the number of
/// bytes.
constexpr void join_by_content(piece* all, size_t count) noexcept {
    uint64_t work_left = 0;
    for (size_t i = 0; i < count; ++i) { work_left += steps_per_byte * all[i].recorded.size(); }
    piece* first = nullptr;
    piece* last = nullptr;    // with new bytes
    piece* unread = nullptr;  // the first without a PSB after `last`
    for (size_t i = 0; i < count; ++i) {
        auto& one = all[i];
        if (is_mark(one)) {
            one.has_gap_before = is_lossy(one);
            continue;
        }
        if (first == nullptr) { first = &one; }
        if (last == nullptr) {
            one.trace = one.recorded;
            bool const has_psb = find_usable_psb(one.trace) != trace::npos;
            if (!has_psb && &one != first) { one.trace = {}; }
            if (!has_psb) { continue; }
            if (&one != first) { first->trace = {}; }
            last = &one;
            continue;
        }
        auto const found = find_new_bytes(last->recorded, one.recorded, work_left);
        one.trace = one.recorded.from(found.begin);
        if (one.trace.empty()) {
            if (unread == nullptr && !found.continues && !one.recorded.empty()) { unread = &one; }
            continue;
        }
        one.has_gap_before = !found.continues;
        drop_end(all, last, found.dropped);
        last = &one;
        unread = nullptr;
    }
    // No later snapshot has new bytes: the bytes of `unread` are missing.
    if (unread != nullptr) { unread->has_gap_before = true; }
}

/// Finds gaps and overlaps in sorted pieces.
constexpr void join_all(piece* all, size_t count, bool is_snapshot) noexcept {
    for (size_t begin = 0, end = 0; begin < count; begin = end) {
        size_t records = 0;
        uint64_t reference = 0;
        for (; end < count && share_stream(all[begin], all[end]); ++end) {
            if (!is_mark(all[end]) && ++records == 1) { reference = all[end].reference; }
        }
        // Marks before the first piece.
        for (size_t i = begin; i < end && is_mark(all[i]); ++i) { all[i].reference = reference; }
        if (is_snapshot || all[begin].is_sample) {
            join_by_content(all + begin, end - begin);
        } else {
            join_by_offset(all + begin, end - begin);
        }
    }
}

}  // namespace ptspec::file::perf_data::detail
