// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/input.hpp>

/// Reads the records of perf.data files.
namespace ptspec::file::perf_data {

namespace detail {

/// Finds the event of a record of the kernel, and reads the `sample_id` of the record.
///
/// If the events differ in `sample_type`, the id in the record selects the event. A cache has the
/// last ids found. The search ends with an error after a number of steps proportional to the size
/// of the file.
class event_finder {
public:
    constexpr explicit event_finder(input const& file) noexcept
        : file_{file}, search_left_{uint64_t{file.bytes.size()} * steps_per_byte} {}

    /// Sets `event`, `id` and `content` of a record of the kernel. For a SAMPLE, sets `format` to
    /// that of its event.
    ///
    /// Errors: record_too_short; unknown_id, too_many_ids.
    [[nodiscard]] constexpr auto complete(record& found, sample_format& format) noexcept
        -> read_error {
        format = file_.first_format;
        return found.type == record_type::sample ? add_sample_id(found, format)
                                                 : split_id(found, format);
    }
    [[nodiscard]] constexpr auto file() const noexcept -> input const& { return file_; }
    /// Whether no other record can be read after an error: the file does not say how, or it takes
    /// too long.
    [[nodiscard]] constexpr auto is_final(read_error wrong) const noexcept -> bool {
        return wrong == read_error::too_many_ids ||
               (wrong == read_error::unknown_id && !file_.all_have_identifier);
    }

private:
    /// The maximum number of search steps per byte of the file. Only a crafted file reaches it.
    static constexpr uint64_t steps_per_byte = 64;
    static constexpr size_t kept_ids = 64;

    struct kept {
        uint64_t id = 0;
        sample_format format{};
    };

    constexpr auto split_id(record& found, sample_format& format) noexcept -> read_error {
        if (!file_.has_sample_ids) { return read_error::none; }
        if (file_.id_types_differ) {
            if (!file_.all_have_identifier) { return read_error::unknown_id; }
            if (found.bytes.size() < sizeof(record_header) + 8) {
                return read_error::record_too_short;
            }
            auto const last = found.bytes.from(found.bytes.size() - 8);
            auto const wrong = find_event(load_le64(last.data()), format);
            if (wrong != read_error::none) { return wrong; }
        }
        found.event = format.type;
        return detail::split_id(found);
    }

    constexpr auto add_sample_id(record& found, sample_format& format) noexcept -> read_error {
        bool const needs_format = file_.sample_formats_differ && file_.has_aux_samples;
        if (file_.sample_types_differ || needs_format) {
            if (!file_.all_have_identifier) { return read_error::unknown_id; }
            auto const first = found.body();
            if (first.size() < 8) { return read_error::record_too_short; }
            auto const wrong = find_event(load_le64(first.data()), format);
            if (wrong != read_error::none) { return wrong; }
        }
        found.event = format.type;
        parsed<sample_record> ignored;
        return detail::read_sample(found, ignored, found.id) ? read_error::none
                                                             : read_error::record_too_short;
    }

    /// Finds the event with an id. Records that perf synthesizes have the id 0, which means the
    /// first event. If several events have the id, the first one is used. In a file with AUX area
    /// samples the last one is used, as in perf.
    constexpr auto find_event(uint64_t id, sample_format& format) noexcept -> read_error {
        if (id == 0) { return read_error::none; }
        auto& slot = kept_[id % kept_ids];
        if (slot.id == id) {
            format = slot.format;
            return read_error::none;
        }
        auto events = attrs_of(file_);
        while (auto const event = events.next()) {
            if (!take_steps(events.steps())) { return read_error::too_many_ids; }
            for (size_t i = 0; i < event.id_count(); ++i) {
                if (!take_steps(1)) { return read_error::too_many_ids; }
                if (event.id(i) != id) { continue; }
                format = sample_format_of(event);
                slot = {id, format};
                if (!file_.has_aux_samples) { return read_error::none; }
                break;
            }
        }
        return slot.id == id ? read_error::none : read_error::unknown_id;
    }
    constexpr auto take_steps(uint64_t count) noexcept -> bool {
        if (count > search_left_) { return false; }
        search_left_ -= count;
        return true;
    }

    input file_;
    uint64_t search_left_;
    kept kept_[kept_ids] = {};
};

constexpr auto is_of_kernel(record_type type) noexcept -> bool {
    return underlying(type) < first_type_of_perf;
}

}  // namespace detail

/// Reads the records of a file in file order, not in time order. A reader is a value: a copy
/// continues independently from the same position.
///
/// It reads each record once. If the events differ in `sample_type`, the id in the record selects
/// the event. The search for ids ends with `too_many_ids` after a number of steps proportional to
/// the size of the file.
///
/// Errors: see `next`. Damaged records are skipped: `result` has the first error, `skipped` their
///         bytes. After too_many_ids, and after unknown_id if no id identifies the events, there
///         are no more records.
class record_reader {
public:
    /// The reader borrows the bytes of the file.
    constexpr explicit record_reader(input const& file) noexcept
        : events_{file},
          frames_{file.bytes.first(file.data_end), file.data_begin},
          result_{file.result} {}

    /// The next record, or none at the end.
    ///
    /// Errors: truncated; bad_record_size, bad_record_type; record_too_short; unknown_id,
    ///         too_many_ids.
    [[nodiscard]] constexpr auto next() noexcept -> record {
        while (!is_over_ && events_.file().result) {
            auto framed = frames_.next();
            if (result_) { result_ = frames_.result(); }
            if (!framed) {
                is_over_ = true;
                // The file is cut between two records.
                auto const& file = events_.file();
                if (result_ && file.is_cut) { result_ = {read_error::truncated, file.data_end}; }
                break;
            }
            auto& found = framed.found;
            sample_format ignored;
            auto const wrong = detail::is_of_kernel(found.type) ? events_.complete(found, ignored)
                               : found.type == record_type::header_attr
                                   ? read_attr(found).result.error
                                   : read_error::none;
            if (wrong == read_error::none) { return found; }
            frames_.refuse({wrong, found.offset});
            if (result_) { result_ = frames_.result(); }
            is_over_ = events_.is_final(wrong);
        }
        return {};
    }

    /// The first error, or `none`.
    [[nodiscard]] constexpr auto result() const noexcept -> read_status { return result_; }
    /// The damaged records so far.
    [[nodiscard]] constexpr auto skipped() const noexcept -> skipped_bytes {
        auto made = frames_.skipped();
        made.to_end = made.to_end || (is_over_ && frames_.offset() < events_.file().data_end);
        return made;
    }
    /// Where the next record begins, in bytes from the start of the file.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t { return frames_.offset(); }

private:
    detail::event_finder events_;
    detail::frame_reader frames_;
    read_status result_;
    bool is_over_ = false;
};

/// A reader at the first record of a file.
[[nodiscard]] constexpr auto records(input const& file) noexcept -> record_reader {
    return record_reader{file};
}

}  // namespace ptspec::file::perf_data
