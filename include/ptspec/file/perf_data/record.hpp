// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/read_result.hpp>
#include <ptspec/file/perf_data/records.hpp>

/// One record of a perf.data file.
namespace ptspec::file::perf_data {

// ------------------------------------------------------------------------------------ a record

/// Which thread, processor and event a record belongs to, and when. Each member is valid only if
/// `has` has its bit.
///
/// Units:  `time` is in nanoseconds of the clock of perf.
/// Source: Linux, include/uapi/linux/perf_event.h, `struct sample_id`.
struct sample_id {
    sample_type has{};  ///< TID, TIME, CPU, STREAM_ID, and ID or IDENTIFIER
    thread_id thread{};
    uint64_t time = 0;
    uint64_t id = 0;  ///< of the event: IDENTIFIER, or ID
    uint64_t stream_id = 0;
    uint32_t cpu = no_cpu;

    /// Calls `visit` for each member that `has` names, in the order of the record's trailer. Each
    /// member has 8 bytes there.
    template <class Visit>
    constexpr void for_each(Visit visit) noexcept {
        if (has.get<sample_type::TID>()) { visit(thread); }
        if (has.get<sample_type::TIME>()) { visit(time); }
        if (has.get<sample_type::ID>()) { visit(id); }
        if (has.get<sample_type::STREAM_ID>()) { visit(stream_id); }
        if (has.get<sample_type::CPU>()) { visit(cpu); }
        if (has.get<sample_type::IDENTIFIER>()) { visit(id); }
    }

    friend constexpr auto operator==(sample_id const&, sample_id const&) -> bool = default;
};

/// A record, as views of the file. If there is no record, `bytes` is empty.
///
/// If the event has `sample_id_all`, a record of the kernel other than SAMPLE ends with a trailer:
/// the members of `sample_id` that `sample_type` names.
struct record {
    record_type type{};
    uint16_t misc = 0;
    uint64_t offset = 0;  ///< of the record in the file
    byte_view bytes{};    ///< the record with its header and its trailer
    byte_view content{};  ///< the record without the trailer, which `id` has
    /// The bytes after an AUXTRACE or HEADER_TRACING_DATA record. After AUXTRACE, they include the
    /// PADs that perf adds.
    byte_view trace{};
    sample_type event{};  ///< the `sample_type` of the event, if it determines the layout
    sample_id id{};       ///< `has` is 0 in records that perf writes itself

    constexpr explicit operator bool() const noexcept { return !bytes.empty(); }
    /// The bytes after the header, without the trailer.
    [[nodiscard]] constexpr auto body() const noexcept -> byte_view {
        return content.from(sizeof(record_header));
    }
};

/// True for records with compressed records inside.
[[nodiscard]] constexpr auto is_compressed(record_type type) noexcept -> bool {
    return type == record_type::compressed || type == record_type::compressed2;
}

namespace detail {

/// A record with its bounds. `content` still includes the trailer.
struct framed {
    read_status result{};
    record found{};
    size_t next = 0;  ///< where the record after it begins

    constexpr explicit operator bool() const noexcept { return bool{found}; }
};
/// Finds the record at byte `at` of `data`, and the bytes of trace or data that follow it.
///
/// Errors: truncated, bad_record_size, record_too_short.
constexpr auto frame_at(byte_view data, size_t at) noexcept -> framed {
    auto const fails = [&](read_error error) { return framed{{error, at}, {}, at}; };
    auto const rest = data.from(at);
    if (rest.size() < sizeof(record_header)) { return fails(read_error::truncated); }
    auto const header = load<record_header>(rest);
    record found;
    found.type = header.type;
    found.misc = header.misc;
    found.offset = at;
    size_t const size = header.size;
    if (size < sizeof header) { return fails(read_error::bad_record_size); }
    if (size > rest.size()) { return fails(read_error::truncated); }
    found.bytes = rest.first(size);
    found.content = found.bytes;

    bool const is_trace = found.type == record_type::auxtrace;
    bool const is_data = found.type == record_type::header_tracing_data;
    size_t const min_size = is_trace  ? sizeof(auxtrace_record)
                            : is_data ? sizeof(tracing_data_record)
                                      : sizeof header;
    if (size < min_size) { return fails(read_error::record_too_short); }
    uint64_t const trace_size = is_trace  ? uint64_t{load<auxtrace_record>(found.bytes).size}
                                : is_data ? uint64_t{load<tracing_data_record>(found.bytes).size}
                                          : 0;
    if (trace_size > rest.size() - size) { return fails(read_error::truncated); }
    found.trace = rest.from(size).first(static_cast<size_t>(trace_size));
    return {{}, found, at + size + found.trace.size()};
}

/// Reads members of eight bytes in order; missing bytes are 0.
class quadwords {
public:
    constexpr explicit quadwords(byte_view from) noexcept : rest_{from} {}

    constexpr auto next() noexcept -> uint64_t {
        auto const eight = rest_.first(8);
        rest_ = rest_.from(8);
        return load_le(eight);
    }
    constexpr void operator()(uint64_t& number) noexcept { number = next(); }
    constexpr void operator()(uint32_t& number) noexcept { number = static_cast<uint32_t>(next()); }
    constexpr void operator()(thread_id& thread) noexcept {
        uint64_t const both = next();
        thread = {static_cast<uint32_t>(both), static_cast<uint32_t>(both >> 32)};
    }
    [[nodiscard]] constexpr auto rest() const noexcept -> byte_view { return rest_; }

private:
    byte_view rest_;
};

/// The bits of `sample_type` that determine the trailer of a record.
inline constexpr uint64_t id_bits = sample_type{}
                                        .with(sample_type::TID{true}, sample_type::TIME{true},
                                              sample_type::ID{true}, sample_type::STREAM_ID{true},
                                              sample_type::CPU{true}, sample_type::IDENTIFIER{true})
                                        .raw;

/// The bits of `sample_type` for the members of a SAMPLE that have a fixed size. These members
/// precede the others.
inline constexpr uint64_t sample_bits = sample_type{id_bits}
                                            .with(sample_type::IP{true}, sample_type::ADDR{true},
                                                  sample_type::PERIOD{true})
                                            .raw;

/// Separates the trailer of a record of the kernel from its content.
///
/// Errors: record_too_short.
constexpr auto split_id(record& whole) noexcept -> read_error {
    size_t const size = size_t{8} * popcount(whole.event.raw & id_bits);
    size_t const room = whole.bytes.size() - sizeof(record_header);
    if (size > room) { return read_error::record_too_short; }
    whole.content = whole.bytes.first(whole.bytes.size() - size);
    quadwords end{whole.bytes.from(whole.content.size())};
    whole.id.has = {whole.event.raw & id_bits};
    whole.id.for_each([&](auto& member) { end(member); });
    return read_error::none;
}

}  // namespace detail

/// A record of the kernel that no file has: the bytes of one record in the data area of an event.
/// `event` is the `sample_type` of the event, which has `sample_id_all`. Empty if the bytes are no
/// record of the kernel.
[[nodiscard]] constexpr auto kernel_record(byte_view bytes, sample_type event) noexcept -> record {
    auto made = detail::frame_at(bytes, 0).found;
    if (!made || underlying(made.type) >= first_type_of_perf) { return {}; }
    made.event = event;
    bool const has_id = made.type != record_type::sample;
    return !has_id || detail::split_id(made) == read_error::none ? made : record{};
}

// ------------------------------------------------------------------------------------ an event

/// A `perf_event_attr` and the ids of its events. Members that the file lacks are 0.
struct event_attr : perf_event_attr {
    uint64_t offset = 0;  ///< of the structure in the file
    byte_view bytes{};
    byte_view id_bytes{};

    constexpr explicit operator bool() const noexcept { return !bytes.empty(); }
    /// The number of ids. Each event that was opened with these attributes has one id.
    [[nodiscard]] constexpr auto id_count() const noexcept -> size_t { return id_bytes.size() / 8; }
    [[nodiscard]] constexpr auto id(size_t i) const noexcept -> uint64_t {
        return load_le(id_bytes.from(8 * i).first(8));
    }
};

}  // namespace ptspec::file::perf_data
