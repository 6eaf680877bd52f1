// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/overlap.hpp>
#include <ptspec/file/perf_data/reader.hpp>

/// The traces of a perf.data file: the pieces of each stream in order.
namespace ptspec::file::perf_data {

/// A piece of a stream.
///
/// Units:  `offset` counts bytes of the stream, `reference` TSC ticks: about the time when the
///         piece was stored.
struct piece {
    byte_view trace{};    ///< the new bytes; may be empty
    uint64_t offset = 0;  ///< of the AUXTRACE record
    uint64_t reference = 0;
    uint64_t file_offset = 0;     ///< of the record in the file
    uint32_t idx = 0;             ///< of the stream
    uint32_t tid = 0;             ///< FFFFFFFFH in a stream of a processor
    uint32_t cpu = no_cpu;        ///< FFFFFFFFH in a stream of a thread
    bool has_gap_before = false;  ///< trace is missing before it: a decoder starts at its first PSB
    byte_view recorded{};         ///< all bytes of the record
};

/// The pieces of one stream, in their order. A decoder can read those without `has_gap_before` as
/// one.
struct stream {
    piece const* first = nullptr;
    size_t count = 0;

    [[nodiscard]] constexpr auto begin() const noexcept -> piece const* { return first; }
    [[nodiscard]] constexpr auto end() const noexcept -> piece const* { return first + count; }
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return count; }
    /// The piece at `i`, which must be below `size()`.
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> piece const& {
        return first[i];
    }
    [[nodiscard]] constexpr auto idx() const noexcept -> uint32_t { return first->idx; }
    [[nodiscard]] constexpr auto tid() const noexcept -> uint32_t { return first->tid; }
    [[nodiscard]] constexpr auto cpu() const noexcept -> uint32_t { return first->cpu; }
};

/// Goes through sorted pieces, stream by stream.
class stream_iterator {
public:
    constexpr stream_iterator(piece const* at, piece const* end) noexcept : end_{end} { find(at); }

    [[nodiscard]] constexpr auto operator*() const noexcept -> stream { return now_; }
    constexpr auto operator++() noexcept -> stream_iterator& {
        find(now_.end());
        return *this;
    }
    friend constexpr auto operator==(stream_iterator const& one,
                                     stream_iterator const& two) noexcept -> bool {
        return one.now_.first == two.now_.first;
    }

private:
    constexpr void find(piece const* at) noexcept {
        now_ = {at, 0};
        while (at != end_ && at->idx == now_.first->idx) {
            ++at;
            ++now_.count;
        }
    }

    piece const* end_;
    stream now_{};
};

/// The streams of a file, in the order of their idx. It borrows the caller's slots.
struct [[nodiscard]] stream_list {
    read_result result{};
    size_t needed = 0;            ///< the number of pieces in the file
    bool is_snapshot = false;     ///< SNAPSHOT_MODE of AUXTRACE_INFO
    bool has_compressed = false;  ///< records are compressed: names and mappings may be missing
    piece const* first = nullptr;
    size_t piece_count = 0;

    constexpr explicit operator bool() const noexcept { return bool{result}; }
    [[nodiscard]] constexpr auto begin() const noexcept -> stream_iterator {
        return {first, first + piece_count};
    }
    [[nodiscard]] constexpr auto end() const noexcept -> stream_iterator {
        return {first + piece_count, first + piece_count};
    }
    /// The number of streams.
    [[nodiscard]] constexpr auto size() const noexcept -> size_t {
        size_t found = 0;
        for (auto at = begin(); !(at == end()); ++at) { ++found; }
        return found;
    }
};

namespace detail {

constexpr auto is_earlier(piece const& one, piece const& two, bool is_snapshot) noexcept -> bool {
    if (one.idx != two.idx) { return one.idx < two.idx; }
    // In a snapshot the offset is one in the ring.
    if (!is_snapshot && one.offset != two.offset) { return one.offset < two.offset; }
    return one.file_offset < two.file_offset;
}

constexpr void sift_down(piece* all, size_t at, size_t count, bool is_snapshot) noexcept {
    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_earlier(all[child], all[child + 1], is_snapshot)) { ++child; }
        if (!is_earlier(all[at], all[child], is_snapshot)) { return; }
        auto const moved = all[at];
        all[at] = all[child];
        all[child] = moved;
        at = child;
    }
}

/// Heapsort: in place, and n log n in the worst case. No two pieces are equal.
constexpr void sort_pieces(piece* all, size_t count, bool is_snapshot) noexcept {
    bool is_sorted = true;
    for (size_t i = 1; i < count && is_sorted; ++i) {
        is_sorted = is_earlier(all[i - 1], all[i], is_snapshot);
    }
    if (is_sorted) { return; }
    for (size_t i = count / 2; i != 0; --i) { sift_down(all, i - 1, count, is_snapshot); }
    for (size_t end = count - 1; end != 0; --end) {
        auto const last = all[0];
        all[0] = all[end];
        all[end] = last;
        sift_down(all, 0, end, is_snapshot);
    }
}

/// Joins a piece to the one before it in its stream. perf pads pieces to 8 bytes and does not count
/// that in the next offset, so the PADs are removed.
constexpr void join_pieces(piece& before, piece& next) noexcept {
    uint64_t const size = before.trace.size();
    uint64_t const distance = next.offset - before.offset;
    next.has_gap_before = distance != size;
    if (distance >= size || size - distance > most_padding) { return; }
    auto const kept = before.trace.first(static_cast<size_t>(distance));
    for (size_t i = kept.size(); i < before.trace.size(); ++i) {
        if (before.trace[i] != 0) { return; }
    }
    before.trace = kept;
    next.has_gap_before = false;
}

/// Finds gaps and overlaps in sorted pieces.
constexpr void join_all(piece* all, size_t count, bool is_snapshot) noexcept {
    for (size_t i = 0; i < count; ++i) {
        bool const is_first = i == 0 || all[i - 1].idx != all[i].idx;
        if (is_first) {
            all[i].has_gap_before = !is_snapshot && all[i].offset != 0;
        } else if (is_snapshot) {
            auto const found = find_new_bytes(all[i - 1].recorded, all[i].recorded);
            all[i].trace = all[i].recorded.from(found.begin);
            all[i].has_gap_before = !found.continues;
            auto& before = all[i - 1].trace;
            before = before.first(before.size() < found.padding ? 0
                                                                : before.size() - found.padding);
        } else {
            join_pieces(all[i - 1], all[i]);
        }
    }
}

}  // namespace detail

/// The number of slots that `streams_of` needs: the AUXTRACE records up to the end, or up to an
/// error.
[[nodiscard]] constexpr auto count_pieces(input const& of) noexcept -> size_t {
    size_t count = 0;
    for (size_t at = of.data_begin; of && at < of.data_end;) {
        auto const framed = detail::frame_at(of.bytes.first(of.data_end), at);
        if (!framed.result) { break; }
        if (framed.found.type == record_type::auxtrace) { ++count; }
        at = framed.next;
    }
    return count;
}

/// Finds the streams of a file in one pass, and sorts their pieces in the caller's slots.
///
/// Without snapshots, the pieces of an idx are joined by their offsets. A snapshot is trimmed to
/// the bytes that the one before it in the file does not have; samples of traces, which SAMPLE
/// records contain, are not found.
///
/// Errors: no_auxtrace_info; not_intel_pt; too_few_slots, with no stream; those of the framing
///         (truncated, bad_record_size, record_too_short): the streams have the pieces up to there.
/// Source: drivers.md, 3.4 and 4.4.
[[nodiscard]] constexpr auto streams_of(input const& of, piece* slots, size_t room) noexcept
    -> stream_list {
    stream_list made;
    made.result = of.result;
    bool has_info = false;
    for (size_t at = of.data_begin; made.result && at < of.data_end;) {
        auto const framed = detail::frame_at(of.bytes.first(of.data_end), at);
        made.result = framed.result;
        if (!made.result) { break; }
        auto const& found = framed.found;
        at = framed.next;
        made.has_compressed = made.has_compressed || is_compressed(found.type);
        if (auto const info = read_as<auxtrace_info_record>(found)) {
            if (info->type != auxtrace_intel_pt) {
                made.result = {read_error::not_intel_pt, found.offset};
                return made;
            }
            made.is_snapshot = info->SNAPSHOT_MODE != 0;
            has_info = true;
        }
        auto const entry = read_as<auxtrace_record>(found);
        if (!entry) { continue; }
        if (made.needed < room) {
            slots[made.needed] = {.trace = found.trace,
                                  .offset = entry->offset,
                                  .reference = entry->reference,
                                  .file_offset = found.offset,
                                  .idx = entry->idx,
                                  .tid = entry->tid,
                                  .cpu = entry->cpu,
                                  .recorded = found.trace};
        }
        ++made.needed;
    }
    if (made.result && of.is_cut) { made.result = {read_error::truncated, of.data_end}; }
    if (made.result && !has_info) { made.result = {read_error::no_auxtrace_info, 0}; }
    if (made.needed > room) { made.result = {read_error::too_few_slots, 0}; }
    if (made.needed > room || !has_info) { return made; }
    detail::sort_pieces(slots, made.needed, made.is_snapshot);
    detail::join_all(slots, made.needed, made.is_snapshot);
    made.first = slots;
    made.piece_count = made.needed;
    return made;
}
template <size_t Room>
[[nodiscard]] constexpr auto streams_of(input const& of, piece (&slots)[Room]) noexcept
    -> stream_list {
    return streams_of(of, slots, Room);
}

}  // namespace ptspec::file::perf_data
