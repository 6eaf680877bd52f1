// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/record.hpp>

/// Reads the members of a record.
namespace ptspec::file::perf_data {

namespace detail {

/// The bytes before the first NUL.
constexpr auto until_nul(byte_view all) noexcept -> byte_view {
    size_t size = 0;
    while (size < all.size() && all[size] != 0) { ++size; }
    return all.first(size);
}

}  // namespace detail

/// The members of a record and the bytes after them, or why they could not be read.
template <class Value>
struct [[nodiscard]] parsed {
    read_status result{};
    Value value{};
    byte_view rest{};

    constexpr explicit operator bool() const noexcept { return bool{result}; }
    [[nodiscard]] constexpr auto operator->() const noexcept -> Value const* { return &value; }
    /// The string after the members, without its NUL.
    [[nodiscard]] constexpr auto string() const noexcept -> byte_view {
        return detail::until_nul(rest);
    }
};

namespace detail {

/// The size of the members that every record of a type has; 0 if `Record` is not for this type.
template <class Record>
constexpr auto members_size(record_type type) noexcept -> size_t {
    for (auto const& form : forms_of<Record>) {
        if (form.type == type) { return form.size; }
    }
    return 0;
}

/// Reads the members that exist only for some values of other members. Returns false if the record
/// is too short for them. This overload is for records without such members.
template <class Record>
constexpr auto read_variants(record const&, parsed<Record>&) noexcept -> bool {
    return true;
}

/// Reads the members of fixed size of a SAMPLE. The members of `sample_id` are stored in `id`.
constexpr auto read_sample(record const& from, parsed<sample_record>& result,
                           sample_id& id) noexcept -> bool {
    using is = sample_type;
    auto const has = from.event;
    quadwords in{from.body()};
    if (in.rest().size() < size_t{8} * popcount(from.event.raw & sample_bits)) { return false; }
    id.has = {from.event.raw & id_bits};
    if (has.get<is::IDENTIFIER>()) { in(id.id); }
    if (has.get<is::IP>()) { result.value.ip = in.next(); }
    if (has.get<is::TID>()) { in(id.thread); }
    if (has.get<is::TIME>()) { in(id.time); }
    if (has.get<is::ADDR>()) { result.value.addr = in.next(); }
    if (has.get<is::ID>()) {
        uint64_t const own = in.next();
        if (!has.get<is::IDENTIFIER>()) { id.id = own; }
    }
    if (has.get<is::STREAM_ID>()) { in(id.stream_id); }
    if (has.get<is::CPU>()) { in(id.cpu); }
    if (has.get<is::PERIOD>()) { result.value.period = in.next(); }
    result.rest = in.rest();
    return true;
}
constexpr auto read_variants(record const& from, parsed<sample_record>& result) noexcept -> bool {
    sample_id ignored;
    return read_sample(from, result, ignored);
}
/// `rest` gets the old bytes, then the new.
constexpr auto read_variants(record const&, parsed<text_poke_record>& result) noexcept -> bool {
    size_t const size = size_t{result->old_len} + result->new_len;
    if (size > result.rest.size()) { return false; }
    result.rest = result.rest.first(size);
    return true;
}
/// `rest` gets the entries.
constexpr auto read_variants(record const&, parsed<id_index_record>& result) noexcept -> bool {
    return result->nr <= result.rest.size() / sizeof(id_index_entry);
}
constexpr auto read_variants(record const& from, parsed<time_conv_record>& result) noexcept
    -> bool {
    if (result->has_cycles()) { result.value = load<time_conv_record>(from.content); }
    return true;
}
/// `rest` gets the message.
constexpr auto read_variants(record const& from, parsed<auxtrace_error_record>& result) noexcept
    -> bool {
    auto& made = result.value;
    made = load<auxtrace_error_record>(from.content);
    result.rest = from.content.from(made.fmt == 0 ? offsetof(auxtrace_error_record, time)
                                                  : offsetof(auxtrace_error_record, msg));
    result.rest = result.rest.first(sizeof made.msg);
    if (made.fmt == 0) {
        made.time = 0;
        copy_bytes(made.msg, result.rest.data(), result.rest.size());
    }
    if (made.fmt < 2) { made.machine_pid = made.vcpu = 0; }
    return true;
}
/// `rest` gets the data without padding.
constexpr auto read_variants(record const& from, parsed<compressed_record>& result) noexcept
    -> bool {
    if (from.type == record_type::compressed) { return true; }
    if (result->data_size > result.rest.size()) { return false; }
    result.rest = result.rest.first(static_cast<size_t>(result->data_size));
    return true;
}
/// `rest` gets the filter.
constexpr auto read_variants(record const& from, parsed<auxtrace_info_record>& result) noexcept
    -> bool {
    using info = auxtrace_info_record;
    result.rest = {};
    if (result->type != auxtrace_intel_pt) { return true; }
    // A member that is only partly in the record counts as absent.
    auto const known = from.content.first(offsetof(info, PMU_TYPE) + size_t{8} * result->words());
    result.value = load<info>(known);
    uint64_t const length = result->FILTER_STR_LEN;
    if (length == 0) { return true; }
    auto const after = known.from(offsetof(info, CAP_EVENT_TRACE));
    // The filter ends with a NUL, and is padded to 8 bytes.
    if (length >= after.size()) { return false; }
    result.rest = after.first(static_cast<size_t>(length));
    result.value.CAP_EVENT_TRACE = load_le(after.from(result.rest.size() / 8 * 8 + 8).first(8));
    return true;
}

/// Reads a record of a type that `Record` declares.
template <class Record>
constexpr auto read_members(record const& from) noexcept -> parsed<Record> {
    size_t const size = members_size<Record>(from.type);
    if (from.content.size() >= size) {
        parsed<Record> made{{}, load<Record>(from.content.first(size)), from.content.from(size)};
        if (read_variants(from, made)) { return made; }
    }
    return {{read_error::record_too_short, from.offset}, {}, {}};
}

}  // namespace detail

template <class Record>
concept record_structure = same_as<decltype(Record::header), record_header>;

/// True for a record that `read_as<Record>` reads.
template <record_structure Record>
[[nodiscard]] constexpr auto holds(record const& found) noexcept -> bool {
    return found && detail::members_size<Record>(found.type) != 0;
}

/// Reads the members of a record: `read_as<comm_record>(record)`. `rest` of AUXTRACE_INFO is the
/// filter, of AUXTRACE_ERROR the message, and of TEXT_POKE the old bytes, then the new.
///
/// Errors: other_record_type; record_too_short, also if a count in the record is too large for it.
template <record_structure Record>
[[nodiscard]] constexpr auto read_as(record const& from) noexcept -> parsed<Record> {
    if (holds<Record>(from)) { return detail::read_members<Record>(from); }
    return {{read_error::other_record_type, from.offset}, {}, {}};
}

/// The code before a TEXT_POKE; empty: none.
[[nodiscard]] constexpr auto code_before(parsed<text_poke_record> const& from) noexcept
    -> byte_view {
    return from.rest.first(from->old_len);
}
/// The code after a TEXT_POKE; empty: none.
[[nodiscard]] constexpr auto code_after(parsed<text_poke_record> const& from) noexcept
    -> byte_view {
    return from.rest.from(from->old_len);
}

// ------------------------------------------------------------------------------------ events

namespace detail {

/// The size of the `perf_event_attr` at the front of `in`.
constexpr auto attr_size(byte_view in) noexcept -> size_t {
    size_t const size = load<perf_event_attr>(in).size;
    return size == 0 ? perf_event_attr::first_size : size;
}

/// Reads a `perf_event_attr`, without its ids. `in` has `attr_size(in)` bytes or more.
constexpr auto attr_of(byte_view in, uint64_t offset) noexcept -> event_attr {
    auto const bytes = in.first(attr_size(in));
    return {load<perf_event_attr>(bytes), offset, bytes, {}};
}

}  // namespace detail

/// Reads PERF_RECORD_HEADER_ATTR: a `perf_event_attr`, then the ids up to the end.
///
/// Errors: other_record_type; record_too_short.
[[nodiscard]] constexpr auto read_attr(record const& from) noexcept -> parsed<event_attr> {
    if (!from || from.type != record_type::header_attr) {
        return {{read_error::other_record_type, from.offset}, {}, {}};
    }
    auto const in = from.body();
    size_t const size = detail::attr_size(in);
    if (in.size() < size || size < perf_event_attr::first_size) {
        return {{read_error::record_too_short, from.offset}, {}, {}};
    }
    parsed<event_attr> made{{}, detail::attr_of(in, from.offset + sizeof(record_header)), {}};
    made.value.id_bytes = in.from(size);
    return made;
}

}  // namespace ptspec::file::perf_data
