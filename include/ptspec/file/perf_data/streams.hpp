// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/clock.hpp>
#include <ptspec/file/perf_data/detail/join_pieces.hpp>
#include <ptspec/file/perf_data/detail/place_marks.hpp>
#include <ptspec/file/perf_data/reader.hpp>
#include <ptspec/file/perf_data/stream.hpp>

/// Finds the streams of a perf.data file.
namespace ptspec::file::perf_data {

namespace detail {

/// Collects pieces from the start of the slots on, and marks from their end on. Counts those for
/// which there is no slot, too.
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
    /// Moves the marks from the end of the slots to directly after the pieces.
    constexpr void finish() noexcept {
        for (size_t i = 0; i < marks_; ++i) { slots_[pieces_ + i] = slots_[room_ - marks_ + i]; }
    }
    [[nodiscard]] constexpr auto is_final(read_error wrong) const noexcept -> bool {
        return events_.is_final(wrong);
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
    /// Adds an AUX record. If its thread and processor cannot be read, it can still belong to the
    /// only stream.
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

/// What `collect_pieces` finds besides the pieces.
struct collected {
    read_status result{};
    skipped_bytes skipped{};
    bool has_info = false;
    bool has_traces = false;
    bool has_compressed = false;
    auxtrace_info_record info{};
};
/// Passes the records of a file to the collector.
constexpr auto collect_pieces(input const& file, piece_collector& collector) noexcept -> collected {
    collected made{.result = file.result};
    frame_reader frames{file.bytes.first(file.data_end), file.data_begin};
    while (auto const framed = made.result ? frames.next() : detail::framed{}) {
        auto const& found = framed.found;
        made.has_compressed = made.has_compressed || is_compressed(found.type);
        read_status wrong;
        if (found.type == record_type::auxtrace_info) {
            auto const info = read_as<auxtrace_info_record>(found);
            if (!info) { wrong = {read_error::bad_auxtrace_info, found.offset}; }
            made.has_info = info && info->type == auxtrace_intel_pt;
            made.info = info.value;
            if (info && !made.has_info) { made.result = {read_error::not_intel_pt, found.offset}; }
        } else {
            wrong = collector.add(found);
        }
        if (!wrong) { frames.refuse(wrong); }
        if (collector.is_final(wrong.error)) { made.result = wrong; }
    }
    made.skipped = frames.skipped();
    // Without damage, a file without AUXTRACE_INFO has no traces.
    made.has_traces = made.has_info || (made.result && made.skipped);
    if (made.result) { made.result = frames.result(); }
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
/// Errors: no_auxtrace_info; not_intel_pt; too_few_slots, with no stream. The first error of
///         damaged records, which are skipped: of the framing (truncated, bad_record_size,
///         bad_record_type, record_too_short), bad_auxtrace_info, and of a sample
///         (record_too_short, unknown_id). too_many_ids: the streams have the pieces before it.
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
    made.skipped = found.skipped;
    if (!found.has_traces) { return made; }
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
