// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/input.hpp>

/// Reads the records of perf.data files.
namespace ptspec::file::perf_data {

namespace detail {

/// Finds the event of a record of the kernel, and reads which thread, processor and event it
/// belongs to.
///
/// Where events differ in `sample_type` it finds the event by the id in the record: it keeps the
/// last ids found, and gives up after work in proportion to the file.
class event_finder {
public:
    constexpr explicit event_finder(input const& of) noexcept
        : of_{of}, search_left_{uint64_t{of.bytes.size()} * steps_per_byte} {}

    /// Completes a record of the kernel. `format` gets that of its event, of a SAMPLE.
    ///
    /// Errors: record_too_short; unknown_id, too_many_ids.
    [[nodiscard]] constexpr auto complete(record& found, sample_format& format) noexcept
        -> read_error {
        format = of_.first_format;
        return found.type == record_type::sample ? add_sample_id(found, format)
                                                 : split_id(found, format);
    }
    [[nodiscard]] constexpr auto file() const noexcept -> input const& { return of_; }

private:
    /// The search for ids ends after this many steps for each byte of the file. It is so large that
    /// only a file that is made for it gets there.
    static constexpr uint64_t steps_per_byte = 64;
    static constexpr size_t kept_ids = 64;

    struct kept {
        uint64_t id = 0;
        sample_format format{};
    };

    constexpr auto split_id(record& found, sample_format& format) noexcept -> read_error {
        if (!of_.has_sample_ids) { return read_error::none; }
        if (of_.id_types_differ) {
            if (!of_.all_have_identifier) { return read_error::unknown_id; }
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
        bool const needs_format = of_.sample_formats_differ && of_.has_aux_samples;
        if (of_.sample_types_differ || needs_format) {
            if (!of_.all_have_identifier) { return read_error::unknown_id; }
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

    /// Finds the event with an id. perf gives records that it made the id 0, which means the first
    /// event. Of several events with the id the first is taken; of those with samples of traces the
    /// last, as perf does.
    constexpr auto find_event(uint64_t id, sample_format& format) noexcept -> read_error {
        if (id == 0) { return read_error::none; }
        auto& slot = kept_[id % kept_ids];
        if (slot.id == id) {
            format = slot.format;
            return read_error::none;
        }
        auto events = attrs_of(of_);
        while (auto const event = events.next()) {
            if (!take_steps(events.steps())) { return read_error::too_many_ids; }
            for (size_t i = 0; i < event.id_count(); ++i) {
                if (!take_steps(1)) { return read_error::too_many_ids; }
                if (event.id(i) != id) { continue; }
                format = sample_format_of(event);
                slot = {id, format};
                if (!of_.has_aux_samples) { return read_error::none; }
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

    input of_;
    uint64_t search_left_;
    kept kept_[kept_ids] = {};
};

constexpr auto is_of_kernel(record_type type) noexcept -> bool {
    return underlying(type) < first_type_of_perf;
}

}  // namespace detail

/// Reads the records of a file in their order, which is not that of their times. A reader is a
/// value: a copy continues independently from the same position.
///
/// It reads each record once. Where events differ in `sample_type` it finds the event by the id in
/// the record: it keeps the last ids found, and gives up after work in proportion to the file.
///
/// Errors: see `next`. After an error there are no more records.
class record_reader {
public:
    /// The reader borrows the bytes of the file.
    constexpr explicit record_reader(input const& of) noexcept
        : events_{of}, at_{of.data_begin}, result_{of.result} {}

    /// The next record, or none: at the end, or after an error.
    ///
    /// Errors: truncated; bad_record_size; record_too_short; unknown_id, too_many_ids.
    [[nodiscard]] constexpr auto next() noexcept -> record {
        if (!result_) { return {}; }
        auto const& file = events_.file();
        if (at_ >= file.data_end) {
            // A file that is cut between two records.
            if (file.is_cut) { result_ = {read_error::truncated, at_}; }
            return {};
        }
        auto framed = detail::frame_at(file.bytes.first(file.data_end), at_);
        result_ = framed.result;
        if (!result_) { return {}; }
        auto& found = framed.found;
        if (detail::is_of_kernel(found.type)) {
            sample_format ignored;
            auto const wrong = events_.complete(found, ignored);
            if (wrong != read_error::none) {
                result_ = {wrong, found.offset};
                return {};
            }
        }
        at_ = framed.next;
        return found;
    }

    /// The error that ended reading; `none` before it, and at a normal end.
    [[nodiscard]] constexpr auto result() const noexcept -> read_status { return result_; }
    /// Where the next record begins, in bytes from the start of the file.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t { return at_; }

private:
    detail::event_finder events_;
    size_t at_;
    read_status result_;
};

/// The records of a file, from the first on.
[[nodiscard]] constexpr auto records(input const& of) noexcept -> record_reader {
    return record_reader{of};
}

}  // namespace ptspec::file::perf_data
