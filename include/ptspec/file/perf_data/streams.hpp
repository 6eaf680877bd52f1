// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/clock.hpp>
#include <ptspec/file/perf_data/overlap.hpp>
#include <ptspec/file/perf_data/reader.hpp>

/// The traces of a perf.data file: the pieces of each stream in order.
namespace ptspec::file::perf_data {

/// `tid` of a trace that belongs to a processor or to several threads.
inline constexpr uint32_t no_tid = 0xFFFF'FFFF;

/// A piece of a stream: the bytes of an AUXTRACE record or of an AUX area sample, or a part of
/// them.
///
/// A part begins where an AUX record says that trace is missing or that tracing was off; `flags`
/// has the flags of that record. TRUNCATED, COLLISION: bytes are missing before the part. PARTIAL:
/// tracing was off for a while in the `aux_size` bytes from the start of the part, which may reach
/// into the next pieces; no byte is missing. A part may be empty.
///
/// Units:  `offset` counts bytes of the stream, `reference` TSC ticks: about the time when the
///         piece was stored. `time` is in nanoseconds.
struct piece {
    byte_view trace{};    ///< the new bytes; may be empty
    uint64_t offset = 0;  ///< as in the AUXTRACE record; 0 in a sample
    uint64_t reference = 0;
    uint64_t time = 0;            ///< of a sample
    uint64_t file_offset = 0;     ///< of the record in the file
    uint32_t idx = 0;             ///< of the stream
    uint32_t tid = no_tid;        ///< FFFFFFFFH in a stream of a processor
    uint32_t cpu = no_cpu;        ///< FFFFFFFFH in a stream of a thread
    bool is_sample = false;       ///< an AUX area sample
    bool has_gap_before = false;  ///< trace is missing before it: a decoder starts at its first PSB
    byte_view recorded{};         ///< all bytes of the record
    aux_flags flags{};            ///< not 0 only in a piece that an AUX record begins
    uint64_t aux_size = 0;        ///< the bytes that the AUX record is about
};

namespace detail {

inline constexpr aux_flags lossy_flags = aux_flags{}.with(aux_flags::TRUNCATED{true},
                                                          aux_flags::COLLISION{true});

/// True if an AUX record begins the piece, not an AUXTRACE record or a sample.
constexpr auto is_mark(piece const& one) noexcept -> bool { return one.flags.raw != 0; }
constexpr auto is_lossy(piece const& one) noexcept -> bool {
    return (one.flags.raw & lossy_flags.raw) != 0;
}
/// True if both belong to one stream.
constexpr auto share_stream(piece const& one, piece const& two) noexcept -> bool {
    return one.idx == two.idx && one.is_sample == two.is_sample &&
           (!one.is_sample || (one.cpu == no_cpu) == (two.cpu == no_cpu));
}

}  // namespace detail

/// The pieces of one stream, in order. A piece without `has_gap_before` continues the piece before
/// it.
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
    /// The number of the stream in perf. A stream of samples has the number of its processor or
    /// thread.
    [[nodiscard]] constexpr auto idx() const noexcept -> uint32_t { return first->idx; }
    /// The thread of all pieces; FFFFFFFFH if they belong to several threads.
    [[nodiscard]] constexpr auto tid() const noexcept -> uint32_t {
        for (auto const& one : *this) {
            if (one.tid != first->tid) { return no_tid; }
        }
        return first->tid;
    }
    [[nodiscard]] constexpr auto cpu() const noexcept -> uint32_t { return first->cpu; }
};

/// Goes through sorted pieces, stream by stream.
class stream_iterator {
public:
    constexpr stream_iterator(piece const* at, piece const* end) noexcept : end_{end} { find(at); }

    [[nodiscard]] constexpr auto operator*() const noexcept -> stream { return stream_; }
    constexpr auto operator++() noexcept -> stream_iterator& {
        find(stream_.end());
        return *this;
    }
    friend constexpr auto operator==(stream_iterator const& one,
                                     stream_iterator const& two) noexcept -> bool {
        return one.stream_.first == two.stream_.first;
    }

private:
    constexpr void find(piece const* at) noexcept {
        stream_ = {at, 0};
        while (at != end_ && detail::share_stream(*at, *stream_.first)) {
            ++at;
            ++stream_.count;
        }
    }

    piece const* end_;
    stream stream_{};
};

/// The streams of a file, in the order of their idx. The streams of samples are last. The list
/// borrows the caller's slots.
struct [[nodiscard]] stream_list {
    read_status result{};
    size_t needed = 0;            ///< the number of slots for all pieces
    size_t unplaced = 0;          ///< AUX records with flags that belong to no stream
    bool is_snapshot = false;     ///< SNAPSHOT_MODE of AUXTRACE_INFO
    bool has_compressed = false;  ///< records are compressed: names, mappings, AUX records
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

/// The order of pieces.
struct is_earlier {
    bool is_snapshot;

    constexpr auto operator()(piece const& one, piece const& two) const noexcept -> bool {
        if (one.is_sample != two.is_sample) { return two.is_sample; }
        bool const has_cpu = one.cpu != no_cpu;
        if (one.is_sample && has_cpu != (two.cpu != no_cpu)) { return has_cpu; }
        if (one.idx != two.idx) { return one.idx < two.idx; }
        // In a snapshot the offset is a place in the ring.
        if (one.is_sample && one.time != two.time) { return one.time < two.time; }
        if (!one.is_sample && !is_snapshot) {
            if (one.offset != two.offset) { return one.offset < two.offset; }
            if (is_mark(one) != is_mark(two)) { return is_mark(one); }
            // A lossy mark is at the end of its AUX record, another mark at the start.
            if (is_lossy(one) != is_lossy(two)) { return is_lossy(one); }
        }
        return one.file_offset != two.file_offset ? one.file_offset < two.file_offset
                                                  : is_lossy(one) && !is_lossy(two);
    }
};
/// The order by processor and thread, for `find_owner`.
struct has_lower_owner {
    constexpr auto operator()(piece const& one, piece const& two) const noexcept -> bool {
        if (one.cpu != two.cpu) { return one.cpu < two.cpu; }
        if (one.cpu == no_cpu && one.tid != two.tid) { return one.tid < two.tid; }
        if (one.idx != two.idx) { return one.idx < two.idx; }
        return one.file_offset < two.file_offset;
    }
};

template <class Less>
constexpr void sift_down(piece* all, size_t at, size_t count, Less const& less) noexcept {
    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && less(all[child], all[child + 1])) { ++child; }
        if (!less(all[at], all[child])) { return; }
        auto const moved = all[at];
        all[at] = all[child];
        all[child] = moved;
        at = child;
    }
}

/// Heapsort: in place, and n log n in the worst case. No two pieces are equal.
template <class Less>
constexpr void sort_pieces(piece* all, size_t count, Less const& less) noexcept {
    bool is_sorted = true;
    for (size_t i = 1; i < count && is_sorted; ++i) { is_sorted = less(all[i - 1], all[i]); }
    if (is_sorted) { return; }
    for (size_t i = count / 2; i != 0; --i) { sift_down(all, i - 1, count, less); }
    for (size_t end = count - 1; end != 0; --end) {
        auto const last = all[0];
        all[0] = all[end];
        all[end] = last;
        sift_down(all, 0, end, less);
    }
}

// ------------------------------------------------------------------------------------ marks

/// Finds the first piece of a processor, or, if `cpu` is `no_cpu`, of a thread. `all` is sorted by
/// `has_lower_owner`. Returns `count` if there is none.
constexpr auto find_owner(piece const* all, size_t count, uint32_t cpu, uint32_t tid) noexcept
    -> size_t {
    auto const is_before = [&](piece const& one) {
        return one.cpu != cpu ? one.cpu < cpu : cpu == no_cpu && one.tid < tid;
    };
    size_t low = 0;
    for (size_t high = count; low < high;) {
        size_t const middle = low + (high - low) / 2;
        if (is_before(all[middle])) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool const found = low < count && all[low].cpu == cpu &&
                       (cpu != no_cpu || (tid != no_tid && all[low].tid == tid));
    return found ? low : count;
}

/// Assigns each mark after the first `count` pieces to the stream of its processor or of its
/// thread. A mark whose record names neither is assigned to the only stream, if there is only one.
/// Removes the other marks, and returns the number of marks that are left.
constexpr auto place_marks(piece* all, size_t count, size_t marks) noexcept -> size_t {
    if (marks == 0) { return 0; }
    sort_pieces(all, count, has_lower_owner{});
    bool is_only_one = count != 0;
    for (size_t i = 1; i < count && is_only_one; ++i) {
        is_only_one = share_stream(all[0], all[i]);
    }
    size_t placed = 0;
    for (size_t i = count; i < count + marks; ++i) {
        auto mark = all[i];
        size_t owner = mark.cpu == no_cpu ? count : find_owner(all, count, mark.cpu, no_tid);
        if (owner == count) { owner = find_owner(all, count, no_cpu, mark.tid); }
        if (owner == count && is_only_one) {
            bool const names_other = all[0].cpu != no_cpu ? mark.cpu != no_cpu : mark.tid != no_tid;
            owner = names_other ? count : 0;
        }
        if (owner == count) { continue; }
        auto const& first_of_owner = all[owner];
        mark.idx = first_of_owner.idx;
        mark.cpu = first_of_owner.cpu;
        mark.tid = first_of_owner.tid;
        mark.is_sample = first_of_owner.is_sample;
        all[count + placed] = mark;
        ++placed;
    }
    return placed;
}

/// Moves the bytes of `before` at and after the offset of the mark into the mark.
constexpr void split_at(piece& before, piece& mark) noexcept {
    mark.reference = before.reference;
    uint64_t const kept = mark.offset - before.offset;
    if (kept >= before.trace.size()) { return; }
    mark.recorded = before.recorded;
    mark.trace = before.trace.from(static_cast<size_t>(kept));
    before.trace = before.trace.first(static_cast<size_t>(kept));
}

// ------------------------------------------------------------------------------------ joints

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

// ------------------------------------------------------------------------------------ collecting

/// Collects the pieces of a file, and the marks of AUX records after them.
class piece_collector {
public:
    constexpr piece_collector(input const& file, piece* storage, size_t room) noexcept
        : events_{file}, slots_{storage}, room_{room} {}

    /// Errors: for a SAMPLE, those of `event_finder::complete` and `aux_sample_of`.
    [[nodiscard]] constexpr auto add(record found) noexcept -> read_status {
        switch (found.type) {
            case record_type::auxtrace: add_auxtrace(found); return {};
            case record_type::aux: add_aux(found); return {};
            case record_type::sample:
                return events_.file().has_aux_samples ? add_sample(found) : read_status{};
            default: return {};
        }
    }
    /// Moves the marks, which are at the end of the slots, to the pieces.
    constexpr void finish() noexcept {
        for (size_t i = 0; i < marks_; ++i) { slots_[pieces_ + i] = slots_[room_ - marks_ + i]; }
    }
    [[nodiscard]] constexpr auto pieces() const noexcept -> size_t { return pieces_; }
    [[nodiscard]] constexpr auto marks() const noexcept -> size_t { return marks_; }

private:
    constexpr void add_piece(piece const& made) noexcept {
        if (pieces_ + marks_ < room_) { slots_[pieces_] = made; }
        ++pieces_;
    }
    constexpr void add_mark(piece const& made) noexcept {
        if (pieces_ + marks_ < room_) { slots_[room_ - marks_ - 1] = made; }
        ++marks_;
    }

    constexpr void add_auxtrace(record const& found) noexcept {
        auto const entry = read_as<auxtrace_record>(found);
        add_piece({.trace = found.trace,
                   .offset = entry->offset,
                   .reference = entry->reference,
                   .file_offset = found.offset,
                   .idx = entry->idx,
                   .tid = entry->tid,
                   .cpu = entry->cpu,
                   .recorded = found.trace});
    }
    /// If the thread and the processor of an AUX record cannot be read, the record can still belong
    /// to the only stream.
    constexpr void add_aux(record found) noexcept {
        sample_format ignored;
        (void)events_.complete(found, ignored);
        auto const entry = read_as<aux_record>(found);
        if (!entry) { return; }
        using is = sample_type;
        auto const& id = found.id;
        piece made{.time = id.time,
                   .file_offset = found.offset,
                   .tid = id.has.get<is::TID>() ? id.thread.tid : no_tid,
                   .cpu = id.cpu,
                   .aux_size = entry->aux_size};
        made.flags = {entry->flags.value().raw & lossy_flags.raw};
        made.offset = entry->aux_offset + entry->aux_size;
        if (is_mark(made)) { add_mark(made); }
        made.flags = aux_flags{}.with(aux_flags::PARTIAL{entry->flags.get<aux_flags::PARTIAL>()});
        made.offset = entry->aux_offset;
        if (is_mark(made)) { add_mark(made); }
    }
    [[nodiscard]] constexpr auto add_sample(record found) noexcept -> read_status {
        sample_format format;
        auto const wrong = events_.complete(found, format);
        if (wrong != read_error::none) { return {wrong, found.offset}; }
        if (!format.type.get<sample_type::AUX>()) { return {}; }
        auto const bytes = aux_sample_of(found, format);
        if (!bytes) { return bytes.result; }
        auto const& id = found.id;
        uint32_t const tid = id.has.get<sample_type::TID>() ? id.thread.tid : no_tid;
        add_piece({.trace = bytes.value,
                   .time = id.time,
                   .file_offset = found.offset,
                   .idx = id.cpu != no_cpu ? id.cpu : tid,
                   .tid = tid,
                   .cpu = id.cpu,
                   .is_sample = true,
                   .recorded = bytes.value});
        return {};
    }

    event_finder events_;
    piece* slots_;
    size_t room_;
    size_t pieces_ = 0;
    size_t marks_ = 0;
};

/// Passes the records of a file to the collector. Returns the AUXTRACE_INFO, in `info`, and whether
/// there is one.
struct collected {
    read_status result{};
    bool has_info = false;
    bool has_compressed = false;
    auxtrace_info_record info{};
};
constexpr auto collect_pieces(input const& file, piece_collector& collector) noexcept -> collected {
    collected made{.result = file.result};
    for (size_t at = file.data_begin; made.result && at < file.data_end;) {
        auto const framed = frame_at(file.bytes.first(file.data_end), at);
        made.result = framed.result;
        if (!made.result) { break; }
        auto const& found = framed.found;
        at = framed.next;
        made.has_compressed = made.has_compressed || is_compressed(found.type);
        if (found.type == record_type::auxtrace_info) {
            auto const info = read_as<auxtrace_info_record>(found);
            made.has_info = info && info->type == auxtrace_intel_pt;
            made.info = info.value;
            if (made.has_info) { continue; }
            made.result = {info ? read_error::not_intel_pt : read_error::bad_auxtrace_info,
                           found.offset};
            break;
        }
        made.result = collector.add(found);
    }
    if (made.result && file.is_cut) { made.result = {read_error::truncated, file.data_end}; }
    if (made.result && !made.has_info) { made.result = {read_error::no_auxtrace_info, 0}; }
    return made;
}

}  // namespace detail

/// The number of slots that `streams_of` needs for the pieces up to the end, or up to an error.
[[nodiscard]] constexpr auto count_pieces(input const& file) noexcept -> size_t {
    detail::piece_collector all{file, nullptr, 0};
    (void)detail::collect_pieces(file, all);
    return all.pieces() + all.marks();
}

/// Finds the streams of a file in one pass, and sorts their pieces in the caller's slots.
///
/// The pieces of an idx are joined by their offsets. AUX area samples are the pieces of a stream of
/// their processor, or of their thread if the file does not name the processor, in the order of
/// their times. A snapshot or sample is trimmed to the bytes that the earlier ones do not have. An
/// AUX record with the flag TRUNCATED, COLLISION or PARTIAL begins another piece. In a stream of
/// snapshots or samples the offset of the record is unknown; its piece is before the next snapshot
/// or sample.
///
/// Errors: no_auxtrace_info, bad_auxtrace_info; not_intel_pt; too_few_slots, with no stream; those
///         of the framing (truncated, bad_record_size, record_too_short), and of a sample
///         (record_too_short, unknown_id, too_many_ids): the streams have the pieces before the
///         error.
/// Source: drivers.md, 3.4 and 4.4.
[[nodiscard]] constexpr auto streams_of(input const& file, piece* storage, size_t room) noexcept
    -> stream_list {
    stream_list made;
    detail::piece_collector all{file, storage, room};
    auto const found = detail::collect_pieces(file, all);
    made.result = found.result;
    made.has_compressed = found.has_compressed;
    made.is_snapshot = found.has_info && found.info.SNAPSHOT_MODE != 0;
    made.needed = all.pieces() + all.marks();
    if (!found.has_info) { return made; }
    if (made.needed > room) {
        made.result = {read_error::too_few_slots, 0};
        return made;
    }
    all.finish();
    size_t const placed = detail::place_marks(storage, all.pieces(), all.marks());
    made.unplaced = all.marks() - placed;
    made.piece_count = all.pieces() + placed;
    made.first = storage;
    auto const clock = time_conversion_of(found.info);
    for (size_t i = 0; i < made.piece_count; ++i) {
        auto& one = storage[i];
        if (one.is_sample && one.time != 0) { one.reference = clock.tsc_of(one.time); }
    }
    detail::sort_pieces(storage, made.piece_count, detail::is_earlier{made.is_snapshot});
    detail::join_all(storage, made.piece_count, made.is_snapshot);
    return made;
}
template <size_t Room>
[[nodiscard]] constexpr auto streams_of(input const& file, piece (&storage)[Room]) noexcept
    -> stream_list {
    return streams_of(file, storage, Room);
}

}  // namespace ptspec::file::perf_data
