// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/input.hpp>

/// Reads the records of perf.data files.
namespace ptspec::file::perf_data {

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
        : of_{of},
          at_{of.data_begin},
          result_{of.result},
          search_left_{uint64_t{of.bytes.size()} * steps_per_byte} {}

    /// The next record, or none: at the end, or after an error.
    ///
    /// Errors: truncated; bad_record_size; record_too_short; unknown_id, too_many_ids.
    [[nodiscard]] constexpr auto next() noexcept -> record {
        if (!result_) { return {}; }
        if (at_ >= of_.data_end) {
            // A file that is cut between two records.
            if (of_.is_cut) { result_ = {read_error::truncated, at_}; }
            return {};
        }
        auto framed = detail::frame_at(of_.bytes.first(of_.data_end), at_);
        result_ = framed.result;
        if (!result_) { return {}; }
        auto& found = framed.found;
        if (underlying(found.type) < first_type_of_perf) {
            auto const wrong = found.type == record_type::sample ? add_sample_id(found)
                                                                 : split_id(found);
            if (wrong != read_error::none) {
                result_ = {wrong, found.offset};
                return {};
            }
        }
        at_ = framed.next;
        return found;
    }

    /// Why there are no more records; at the end of the file, and before, it is no error.
    [[nodiscard]] constexpr auto result() const noexcept -> read_result { return result_; }
    /// Where the next record begins, in bytes from the start of the file.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t { return at_; }

private:
    /// The search for ids ends after this many steps for each byte of the file. It is so large that
    /// only a file that is made for it gets there.
    static constexpr uint64_t steps_per_byte = 64;
    static constexpr size_t kept_ids = 64;

    struct kept {
        uint64_t id = 0;
        sample_type type{};
    };

    constexpr auto split_id(record& found) noexcept -> read_error {
        if (!of_.has_sample_ids) { return read_error::none; }
        found.event = of_.first_type;
        if (of_.id_types_differ) {
            if (!of_.all_have_identifier) { return read_error::unknown_id; }
            if (found.bytes.size() < layout::record_header::bytes::size + 8) {
                return read_error::record_too_short;
            }
            auto const last = found.bytes.from(found.bytes.size() - 8);
            auto const wrong = find_event(load_le64(last.data()), found.event);
            if (wrong != read_error::none) { return wrong; }
        }
        return detail::split_id(found);
    }

    constexpr auto add_sample_id(record& found) noexcept -> read_error {
        found.event = of_.first_type;
        if (of_.sample_types_differ) {
            if (!of_.all_have_identifier) { return read_error::unknown_id; }
            auto const first = found.body();
            if (first.size() < 8) { return read_error::record_too_short; }
            auto const wrong = find_event(load_le64(first.data()), found.event);
            if (wrong != read_error::none) { return wrong; }
        }
        sample_record ignored;
        return detail::read_sample(found, ignored, found.id) ? read_error::none
                                                             : read_error::record_too_short;
    }

    /// Finds the event with an id. perf gives records that it made the id 0, which means the first
    /// event.
    constexpr auto find_event(uint64_t id, sample_type& type) noexcept -> read_error {
        if (id == 0) { return read_error::none; }
        auto& slot = kept_[id % kept_ids];
        if (slot.id == id) {
            type = slot.type;
            return read_error::none;
        }
        auto events = attrs_of(of_);
        while (auto const event = events.next()) {
            if (!take_steps(events.steps())) { return read_error::too_many_ids; }
            for (size_t i = 0; i < event.id_count(); ++i) {
                if (!take_steps(1)) { return read_error::too_many_ids; }
                if (event.id(i) == id) {
                    type = event.sample_type;
                    slot = {id, type};
                    return read_error::none;
                }
            }
        }
        return read_error::unknown_id;
    }
    constexpr auto take_steps(uint64_t count) noexcept -> bool {
        if (count > search_left_) { return false; }
        search_left_ -= count;
        return true;
    }

    input of_;
    size_t at_;
    read_result result_;
    uint64_t search_left_;
    kept kept_[kept_ids] = {};
};

/// The records of a file, from the first on.
[[nodiscard]] constexpr auto records(input const& of) noexcept -> record_reader {
    return record_reader{of};
}

}  // namespace ptspec::file::perf_data
