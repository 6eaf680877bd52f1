// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/input.hpp>

/// The build ids of the files with code.
namespace ptspec::file::perf_data {

/// A build id and the file that has it.
struct named_build_id : build_id_record {
    byte_view filename{};  ///< without the NUL

    constexpr explicit operator bool() const noexcept { return !filename.empty(); }
};

/// Reads the build ids of a perf.data file, in order. A reader is a value.
///
/// Shape:  file layout: the entries of the feature BUILD_ID, whose type is 0; pipe layout: the
///         records PERF_RECORD_HEADER_BUILD_ID.
class build_id_reader {
public:
    /// The reader borrows the bytes of the file.
    constexpr explicit build_id_reader(input const& file) noexcept {
        if (file.layout == file_layout::pipe) {
            bytes_ = file.bytes.first(file.data_end);
            at_ = file.data_begin;
            return;
        }
        auto const found = feature_of(file, feature_id::build_id);
        if (found.result.error == read_error::no_feature) { return; }
        result_ = found.result;
        bytes_ = file.bytes.first(static_cast<size_t>(found.offset) + found.bytes.size());
        at_ = static_cast<size_t>(found.offset);
        is_feature_ = true;
    }

    /// The next build id, or none: at the end, or after an error. A build id without a file name is
    /// skipped.
    ///
    /// Errors: truncated; bad_record_size; record_too_short.
    [[nodiscard]] constexpr auto next() noexcept -> named_build_id {
        while (result_ && at_ < bytes_.size()) {
            auto framed = next_record();
            if (!framed) { break; }
            auto& found = framed.found;
            if (is_feature_) { found.type = record_type::header_build_id; }
            if (found.type != record_type::header_build_id) { continue; }
            auto const made = read_as<build_id_record>(found);
            result_ = made.result;
            if (made && !made.string().empty()) { return {made.value, made.string()}; }
        }
        return {};
    }
    /// Where the next build id is searched, in bytes from the start of the file.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t { return at_; }
    /// The error that ended reading; `none` before an error, and at a normal end.
    [[nodiscard]] constexpr auto result() const noexcept -> read_status { return result_; }

private:
    /// The next record; entries of a feature have the type 0. Damage of records is skipped.
    constexpr auto next_record() noexcept -> detail::framed {
        detail::framed made;
        if (is_feature_) {
            made = detail::frame_at(bytes_, at_);
            result_ = made.result;
            at_ = made.next;
        } else {
            detail::frame_reader frames{bytes_, at_};
            made = frames.next();
            at_ = frames.offset();
            if (!made) { result_ = frames.result(); }
        }
        return made;
    }

    byte_view bytes_{};
    size_t at_ = 0;
    bool is_feature_ = false;
    read_status result_{};
};

[[nodiscard]] constexpr auto build_ids(input const& file) noexcept -> build_id_reader {
    return build_id_reader{file};
}

}  // namespace ptspec::file::perf_data
