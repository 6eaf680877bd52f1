// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirks.hpp>
#include <ptspec/file/perf_data/detail/frame_reader.hpp>
#include <ptspec/file/perf_data/sample.hpp>

/// Opens perf.data files: their header, their events and their features.
namespace ptspec::file::perf_data {

enum class file_layout : uint8_t {
    file,  ///< attributes, data and features in sections
    pipe,  ///< written to a pipe: attributes and features are records
};

/// An opened file. It borrows the bytes.
struct input {
    read_status result{};  ///< why the file could not be opened
    file_layout layout = file_layout::file;
    byte_view bytes{};  ///< the whole file
    /// Where the records are. `data_end` is the end of the file if the file is cut.
    size_t data_begin = 0;
    size_t data_end = 0;
    bool is_cut = false;  ///< the header announces more records
    /// File layout: the section of attributes. Pipe layout: from the first to the last HEADER_ATTR
    /// record.
    size_t attrs_begin = 0;
    size_t attrs_end = 0;
    size_t attrs_step = 0;  ///< of one entry of the section
    /// File layout: the bits of `adds_features`, and where the table of their sections begins.
    uint64_t features[4] = {};
    uint64_t features_begin = 0;
    /// `sample_type` of the first event, and whether other events differ in it.
    sample_type first_type{};
    bool has_sample_ids = false;       ///< `sample_id_all` of the first event
    bool id_types_differ = false;      ///< in bits that determine the trailer
    bool sample_types_differ = false;  ///< in any bit
    bool all_have_identifier = false;
    /// The format of SAMPLE records of the first event, and whether other events differ in it.
    sample_format first_format{};
    bool sample_formats_differ = false;
    bool has_aux_samples = false;  ///< SAMPLE records contain traces

    constexpr explicit operator bool() const noexcept { return bool{result}; }
};

namespace detail {

constexpr auto is_inside(section const& one, byte_view file) noexcept -> bool {
    return one.offset <= file.size() && one.size <= file.size() - one.offset;
}
/// The bytes of a section; those after the end of the file are missing.
constexpr auto bytes_of(section const& one, byte_view file) noexcept -> byte_view {
    return file.from(static_cast<size_t>(one.offset)).first(static_cast<size_t>(one.size));
}

}  // namespace detail

// ------------------------------------------------------------------------------------ events

/// Reads the events of a file, one by one.
///
/// Units:  `steps` counts entries, or records in pipe layout: the work of one call of `next`.
class attr_reader {
public:
    constexpr explicit attr_reader(input const& file) noexcept
        : file_{&file}, at_{file.attrs_begin} {}
    explicit attr_reader(input const&& file) = delete;

    /// The next event, or none: at the end, or after an error.
    [[nodiscard]] constexpr auto next() noexcept -> event_attr {
        steps_ = 0;
        return file_->layout == file_layout::file ? next_entry() : next_record();
    }
    [[nodiscard]] constexpr auto result() const noexcept -> read_status { return result_; }
    /// Where the next event is searched, in bytes from the start of the file.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t { return at_; }
    [[nodiscard]] constexpr auto steps() const noexcept -> size_t { return steps_; }

private:
    constexpr auto fail(read_error error, uint64_t offset) noexcept -> event_attr {
        result_ = {error, offset};
        at_ = file_->attrs_end;
        return {};
    }

    /// Errors: bad_header, truncated.
    constexpr auto next_entry() noexcept -> event_attr {
        if (file_->attrs_end - at_ < file_->attrs_step) { return {}; }
        size_t const begin = at_;
        auto const entry = file_->bytes.from(begin).first(file_->attrs_step);
        size_t const size = detail::attr_size(entry);
        if (size < perf_event_attr::first_size || size > file_->attrs_step - sizeof(section)) {
            return fail(read_error::bad_header, begin);
        }
        auto made = detail::attr_of(entry, begin);
        auto const ids = load<section>(entry.from(size));
        if (ids.size != 0 && !detail::is_inside(ids, file_->bytes)) {
            return fail(read_error::truncated, begin + size);
        }
        made.id_bytes = detail::bytes_of(ids, file_->bytes);
        at_ += file_->attrs_step;
        steps_ = 1;
        return made;
    }
    constexpr auto next_record() noexcept -> event_attr {
        detail::frame_reader frames{file_->bytes.first(file_->attrs_end), at_};
        while (auto const framed = frames.next()) {
            ++steps_;
            at_ = frames.offset();
            if (framed.found.type != record_type::header_attr) { continue; }
            auto const made = read_attr(framed.found);
            if (made) { return made.value; }  // `record_reader` reports one that is damaged
        }
        return {};
    }

    input const* file_;
    size_t at_;
    size_t steps_ = 0;
    read_status result_{};
};

/// A reader at the first event of a file. The file must outlive the reader.
[[nodiscard]] constexpr auto attrs_of(input const& file) noexcept -> attr_reader {
    return attr_reader{file};
}
[[nodiscard]] auto attrs_of(input const&& file) -> attr_reader = delete;

// ------------------------------------------------------------------------------------ features

/// The data of a feature, and its offset in the file.
struct [[nodiscard]] feature_data {
    read_status result{};
    uint64_t offset = 0;
    byte_view bytes{};

    constexpr explicit operator bool() const noexcept { return bool{result}; }
};

namespace detail {

constexpr auto feature_in_table(input const& file, unsigned bit) noexcept -> feature_data {
    if ((file.features[bit / 64] >> (bit % 64) & 1) == 0) {
        return {.result = {read_error::no_feature, 0}};
    }
    uint64_t index = popcount(file.features[bit / 64] & ((uint64_t{1} << (bit % 64)) - 1));
    for (unsigned i = 0; i < bit / 64; ++i) { index += popcount(file.features[i]); }
    uint64_t const whole = file.bytes.size();
    index *= sizeof(section);
    if (file.features_begin > whole || index + sizeof(section) > whole - file.features_begin) {
        return {.result = {read_error::truncated, whole}};
    }
    uint64_t const entry = file.features_begin + index;
    auto const found = load<section>(file.bytes.from(static_cast<size_t>(entry)));
    if (!is_inside(found, file.bytes)) { return {.result = {read_error::truncated, entry}}; }
    return {.offset = found.offset, .bytes = bytes_of(found, file.bytes)};
}

constexpr auto feature_in_records(input const& file, unsigned id) noexcept -> feature_data {
    frame_reader frames{file.bytes.first(file.data_end), file.data_begin};
    while (auto const framed = frames.next()) {
        if (framed.found.type != record_type::header_feature) { continue; }
        auto const made = read_as<feature_record>(framed.found);
        if (made && made->feat_id == id) {
            return {.offset = framed.found.offset + sizeof(feature_record), .bytes = made.rest};
        }
    }
    return {.result = {read_error::no_feature, 0}};
}

}  // namespace detail

/// The data of a feature. In pipe layout this searches all records.
///
/// Errors: no_feature; truncated.
[[nodiscard]] constexpr auto feature_of(input const& file, feature_id id) noexcept -> feature_data {
    return file.layout == file_layout::file ? detail::feature_in_table(file, underlying(id))
                                            : detail::feature_in_records(file, underlying(id));
}

/// The string that a feature consists of, without the NUL.
///
/// Shape:  a length of 4 bytes, with padding; the string.
/// Errors: no_feature; truncated, if the string is longer than the feature.
[[nodiscard]] constexpr auto text_feature_of(input const& file, feature_id id) noexcept
    -> feature_data {
    auto found = feature_of(file, id);
    if (!found) { return found; }
    constexpr size_t begin = sizeof(uint32_t);
    uint64_t const length = load_le(found.bytes.first(begin));
    auto const all = found.bytes.from(begin);
    if (found.bytes.size() < begin || length > all.size()) {
        return {.result = {read_error::truncated, found.offset}};
    }
    found.bytes = detail::until_nul(all.first(static_cast<size_t>(length)));
    found.offset += begin;
    return found;
}

/// A model of a processor, if it is known.
struct found_model {
    bool has_value = false;
    cpu::cpu_model model{};

    constexpr explicit operator bool() const noexcept { return has_value; }
};

/// The model in a string of the feature CPUID: "GenuineIntel,6,78,3". Another vendor, and a string
/// of another form, give no model.
[[nodiscard]] constexpr auto model_in(byte_view cpuid) noexcept -> found_model {
    constexpr text vendor = "GenuineIntel";
    size_t at = 0;
    for (; at < vendor.size(); ++at) {
        if (at == cpuid.size() || cpuid[at] != static_cast<uint8_t>(vendor.data()[at])) {
            return {};
        }
    }
    unsigned numbers[3] = {};
    for (unsigned& number : numbers) {
        if (at == cpuid.size() || cpuid[at] != ',') { return {}; }
        size_t const first = ++at;
        for (; at < cpuid.size() && cpuid[at] >= '0' && cpuid[at] <= '9'; ++at) {
            number = number * 10 + (cpuid[at] - unsigned{'0'});
        }
        if (at == first || at - first > 4) { return {}; }
    }
    if (at != cpuid.size()) { return {}; }
    return {true, {numbers[0], numbers[1], numbers[2]}};
}

/// The model of the processor that recorded a file, if the file names it.
[[nodiscard]] constexpr auto model_of(input const& file) noexcept -> found_model {
    auto const found = text_feature_of(file, feature_id::cpuid);
    return found ? model_in(found.bytes) : found_model{};
}

// ------------------------------------------------------------------------------------ opening

namespace detail {

/// Reads the header of file layout, and finds the sections.
constexpr auto open_sections(input& made) noexcept -> read_status {
    auto const bytes = made.bytes;
    uint64_t const whole = bytes.size();
    auto const header = load<file_header>(bytes);
    bool const has_features = header.size != file_header::featureless_size;
    if (whole < header.size) { return {read_error::truncated, 0}; }

    auto const& attrs = header.attrs;
    if (attrs.size != 0) {
        if (header.attr_size < perf_event_attr::first_size + sizeof(section)) {
            return {read_error::bad_header, offsetof(file_header, attr_size)};
        }
        if (!is_inside(attrs, bytes)) {
            return {read_error::truncated, offsetof(file_header, attrs)};
        }
        if (attrs.size % header.attr_size != 0) {
            return {read_error::bad_header, offsetof(file_header, attrs.size)};
        }
        made.attrs_begin = static_cast<size_t>(attrs.offset);
        made.attrs_end = made.attrs_begin + static_cast<size_t>(attrs.size);
        made.attrs_step = static_cast<size_t>(header.attr_size);
    }

    uint64_t const data = header.data.offset;
    uint64_t const data_size = header.data.size;
    made.features_begin = data + data_size;
    if (has_features) {
        for (size_t i = 0; i < 4; ++i) { made.features[i] = header.adds_features[i]; }
        constexpr auto dir_bit = unsigned{underlying(feature_id::dir_format)};
        auto const directory = feature_in_table(made, dir_bit);
        // Version 0 is a directory with one file of records: this one.
        if (directory.result.error == read_error::truncated) { return directory.result; }
        if (directory && load_le(directory.bytes.first(8)) != 0) {
            return {read_error::directory, offsetof(file_header, adds_features)};
        }
    }
    if (data_size == 0) { return {read_error::unfinished, offsetof(file_header, data.size)}; }
    if (data > whole || data > data + data_size) {
        return {read_error::truncated, offsetof(file_header, data)};
    }
    made.is_cut = data_size > whole - data;
    made.data_begin = static_cast<size_t>(data);
    made.data_end = made.is_cut ? bytes.size() : made.data_begin + static_cast<size_t>(data_size);
    return {};
}

/// Finds the HEADER_ATTR records in pipe layout. Skips damage; `record_reader` reports it later.
constexpr void open_pipe(input& made) noexcept {
    made.layout = file_layout::pipe;
    made.data_begin = file_header::pipe_size;
    made.data_end = made.bytes.size();
    made.attrs_begin = made.data_end;
    frame_reader frames{made.bytes, made.data_begin};
    while (auto const framed = frames.next()) {
        if (framed.found.type != record_type::header_attr) { continue; }
        if (made.attrs_end == 0) { made.attrs_begin = static_cast<size_t>(framed.found.offset); }
        made.attrs_end = framed.next;
    }
    if (made.attrs_end == 0) { made.attrs_end = made.attrs_begin; }
}

/// Compares the attributes of all events.
constexpr auto compare_attrs(input& made) noexcept -> read_status {
    auto events = attrs_of(made);
    bool is_first = true;
    while (auto const event = events.next()) {
        sample_type const type = event.sample_type;
        auto const format = sample_format_of(event);
        if (is_first) {
            made.first_format = format;
            made.first_type = type;
            made.has_sample_ids = event.flags.get<attr_flags::sample_id_all>();
            made.all_have_identifier = true;
            is_first = false;
        }
        uint64_t const differs = type.raw ^ made.first_type.raw;
        made.id_types_differ = made.id_types_differ || (differs & id_bits) != 0;
        made.sample_types_differ = made.sample_types_differ || differs != 0;
        made.all_have_identifier = made.all_have_identifier && type.get<sample_type::IDENTIFIER>();
        made.sample_formats_differ = made.sample_formats_differ || !(format == made.first_format);
        made.has_aux_samples = made.has_aux_samples || type.get<sample_type::AUX>();
    }
    return events.result();
}

}  // namespace detail

/// Opens a perf.data file of either layout, whose bytes it borrows. Its records are read by
/// `records`.
///
/// Errors: not_perf_data, big_endian, old_format; truncated, if a header, the attributes or their
///         ids end after the end of the file; bad_header; unfinished; directory. A file that ends
///         inside its records is opened.
/// Source: Linux, tools/perf/Documentation/perf.data-file-format.txt.
[[nodiscard]] constexpr auto open(borrowed_bytes whole) noexcept -> input {
    byte_view const bytes = whole.view();
    auto const header = load<file_header>(bytes);
    input made;
    made.bytes = bytes;
    uint64_t const magic = header.magic;
    made.result = magic == file_header::swapped_magic_value ? read_status{read_error::big_endian, 0}
                  : magic == file_header::old_magic_value   ? read_status{read_error::old_format, 0}
                  : magic != file_header::magic_value ? read_status{read_error::not_perf_data, 0}
                  : bytes.size() < file_header::pipe_size ? read_status{read_error::truncated, 0}
                                                          : read_status{};
    if (!made.result) { return made; }
    if (header.size == file_header::pipe_size) {
        detail::open_pipe(made);
    } else if (header.size == sizeof header || header.size == file_header::featureless_size) {
        made.result = detail::open_sections(made);
    } else {
        made.result = {read_error::bad_header, offsetof(file_header, size)};
    }
    if (made.result) { made.result = detail::compare_attrs(made); }
    return made;
}

}  // namespace ptspec::file::perf_data
