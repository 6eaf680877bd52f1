// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/record.hpp>

namespace ptspec::file::perf_data {

namespace detail {

/// Finds the records of a file one by one, also after damage.
///
/// A record is certain if its size is possible, and a record or the end of the data follows it.
/// Otherwise reading resumes at the next place where records follow each other:
/// - at least three, or fewer up to the end of the data, with types that are in use, and sizes that
///   are multiples of 8 and more than a header;
/// - if the size of the uncertain record is possible: within it, and on past its end, or 64 of
///   them. So bytes of a trace are not taken for records because the record after it is damaged. If
///   there is no such place, the record is intact, and damage follows it.
///
/// Records of an odd size, as compressed ones have, are found after the first of them.
///
/// The work is proportional to the size of the data: a place is examined once, in at most 64 steps.
class frame_reader {
public:
    /// `data` is the file up to the end of its records.
    constexpr frame_reader(byte_view data, size_t begin) noexcept
        : data_{data}, at_{begin}, begin_{begin} {}

    /// The next record; `found` is empty at the end.
    [[nodiscard]] constexpr auto next() noexcept -> framed {
        while (at_ < data_.size()) {
            auto const made = frame(at_);
            if (is_certain(made)) {
                if ((made.next - begin_) % 8 != 0) { is_aligned_ = false; }
                return take(made);
            }
            size_t const other = made.result ? find(made.next, made.next) : find(data_.size(), 0);
            if (made.result && other == made.next) { return take(made); }
            fail(made.result ? read_status{read_error::bad_record_size, at_} : made.result);
            skip_to(other);
        }
        return {};
    }
    /// Counts the record that `next` returned last as damaged: its content cannot be read.
    constexpr void refuse(read_status why) noexcept {
        fail(why);
        at_ = last_;
        skip_to(next_);
        skipped_.to_end = false;
    }
    /// The first error.
    [[nodiscard]] constexpr auto result() const noexcept -> read_status { return result_; }
    [[nodiscard]] constexpr auto skipped() const noexcept -> skipped_bytes { return skipped_; }
    /// Where the next record is searched.
    [[nodiscard]] constexpr auto offset() const noexcept -> size_t { return at_; }

private:
    static constexpr unsigned min_chain = 3;
    static constexpr unsigned max_chain = 64;

    /// Types from here on have never been used; there is room for new ones below.
    static constexpr uint32_t end_of_types = 128;

    [[nodiscard]] static constexpr auto has_likely_type(record const& one) noexcept -> bool {
        auto const type = underlying(one.type);
        return type != 0 && type < end_of_types;
    }
    /// The record at a position, if it can be one. A record of an unlikely type is one if a likely
    /// one follows it, or the end.
    [[nodiscard]] constexpr auto frame(size_t at) const noexcept -> framed {
        auto made = frame_at(data_, at);
        bool const is_record = !made.result || has_likely_type(made.found) ||
                               data_.size() - made.next < sizeof(record_header) ||
                               is_likely(made.next) || is_cut(made.next);
        if (!is_record) { made.result = {read_error::bad_record_type, at}; }
        return made;
    }
    [[nodiscard]] constexpr auto is_likely(size_t at) const noexcept -> bool {
        auto const made = frame_at(data_, at);
        return made.result && has_likely_type(made.found);
    }
    /// Whether a record of a likely type begins here, and ends after the end of the data.
    [[nodiscard]] constexpr auto is_cut(size_t at) const noexcept -> bool {
        record begin;
        begin.type = load<record_header>(data_.from(at)).type;
        return has_likely_type(begin) && frame_at(data_, at).result.error == read_error::truncated;
    }
    [[nodiscard]] constexpr auto is_certain(framed const& made) const noexcept -> bool {
        if (!made.result) { return false; }
        if (!has_likely_type(made.found)) { return is_likely(made.next); }
        return made.next == data_.size() || bool{frame(made.next).result};
    }
    /// Whether records follow each other from a position on, past `end`. At the end of the data one
    /// is enough where all records before it have multiples of 8 bytes, otherwise two.
    [[nodiscard]] constexpr auto is_chain(size_t at, size_t end) const noexcept -> bool {
        for (unsigned i = 0; i < max_chain; ++i) {
            if (i >= min_chain && at > end) { return true; }
            if (at == data_.size()) { return i >= (is_aligned_ ? 1U : 2U); }
            auto const made = frame(at);
            if (!made.result || (i < min_chain && !has_known_form(made.found))) { return false; }
            at = made.next;
        }
        return true;
    }
    /// Whether the type is in use, or soon may be, and the size is usual for it.
    [[nodiscard]] static constexpr auto has_known_form(record const& one) noexcept -> bool {
        constexpr uint32_t end_of_kernel = 32;
        constexpr uint32_t end_of_perf = 96;
        auto const type = underlying(one.type);
        bool const is_known = type < end_of_kernel ||
                              (type >= first_type_of_perf && type < end_of_perf);
        bool const may_be_empty = one.type == record_type::context_switch ||
                                  one.type == record_type::finished_round ||
                                  one.type == record_type::finished_init;
        bool const has_size = may_be_empty || one.bytes.size() > sizeof(record_header);
        return is_known && has_size && (one.bytes.size() % 8 == 0 || is_compressed(one.type));
    }
    /// The next position after `at_` and before `limit` from which records follow each other past
    /// `end`; `limit`: none.
    [[nodiscard]] constexpr auto find(size_t limit, size_t end) const noexcept -> size_t {
        size_t const step = is_aligned_ ? 8 : 1;
        size_t at = at_ + step - (at_ - begin_) % step;
        while (at < limit && !is_chain(at, end)) { at += step; }
        return at < limit ? at : limit;
    }
    constexpr auto take(framed const& made) noexcept -> framed {
        last_ = at_;
        next_ = at_ = made.next;
        return made;
    }
    constexpr void fail(read_status why) noexcept {
        if (result_) { result_ = why; }
    }
    constexpr void skip_to(size_t at) noexcept {
        if (!skipped_) { skipped_.offset = at_; }
        skipped_.bytes += at - at_;
        at_ = at;
        skipped_.to_end = at == data_.size();
    }

    byte_view data_;
    size_t at_;
    size_t begin_;
    size_t last_ = 0;  ///< where the last record began
    size_t next_ = 0;
    bool is_aligned_ = true;  ///< all records so far have a multiple of 8 bytes
    read_status result_{};
    skipped_bytes skipped_{};
};

}  // namespace detail

}  // namespace ptspec::file::perf_data
