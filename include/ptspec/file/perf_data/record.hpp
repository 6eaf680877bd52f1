// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/read_result.hpp>
#include <ptspec/file/perf_data/records.hpp>

/// One record of a perf.data file, and the values that it holds.
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

    friend constexpr auto operator==(sample_id const&, sample_id const&) -> bool = default;
};

/// A record, as views of the file. Without bytes: there is none.
struct record {
    record_type type{};
    uint16_t misc = 0;
    uint64_t offset = 0;  ///< of the record in the file
    byte_view bytes{};    ///< the record with its header and its end
    byte_view content{};  ///< the same without the end, which `id` has
    /// The bytes that follow an AUXTRACE record, with PADs at their end, or a HEADER_TRACING_DATA.
    byte_view trace{};
    sample_type event{};  ///< the `sample_type` of the event, where the record depends on it
    sample_id id{};       ///< of records of the kernel

    constexpr explicit operator bool() const noexcept { return !bytes.empty(); }
    /// The bytes after the header, without the end.
    [[nodiscard]] constexpr auto body() const noexcept -> byte_view {
        return content.from(layout::record_header::bytes::size);
    }
};

/// True for records with compressed records inside.
[[nodiscard]] constexpr auto is_compressed(record_type which) noexcept -> bool {
    return which == record_type::compressed || which == record_type::compressed2;
}

namespace detail {

/// Finds the record at byte `at` of `data`, and the bytes that follow it. The end of the record is
/// still part of `content`.
///
/// Errors: truncated, bad_record_size, record_too_short.
struct framed {
    read_status result{};
    record found{};
    size_t next = 0;  ///< where the record after it begins
};
constexpr auto frame_at(byte_view data, size_t at) noexcept -> framed {
    using header = layout::record_header;
    auto const fails = [&](read_error error) { return framed{{error, at}, {}, at}; };
    auto const rest = data.from(at);
    if (rest.size() < header::bytes::size) { return fails(read_error::truncated); }
    record found;
    found.type = static_cast<record_type>(load<header::type>(rest));
    found.misc = load<header::misc>(rest);
    found.offset = at;
    size_t const size = load<header::size>(rest);
    if (size < header::bytes::size) { return fails(read_error::bad_record_size); }
    if (size > rest.size()) { return fails(read_error::truncated); }
    found.bytes = rest.first(size);
    found.content = found.bytes;

    uint64_t after = 0;
    if (found.type == record_type::auxtrace) {
        if (size < layout::auxtrace::bytes::size) { return fails(read_error::record_too_short); }
        after = load<layout::auxtrace::trace_size>(found.bytes);
    } else if (found.type == record_type::header_tracing_data) {
        if (size < layout::header_tracing_data::bytes::size) {
            return fails(read_error::record_too_short);
        }
        after = load<layout::header_tracing_data::data_size>(found.bytes);
    }
    uint64_t const trace_size = after;
    if (trace_size > rest.size() - size) { return fails(read_error::truncated); }
    found.trace = rest.from(size).first(static_cast<size_t>(trace_size));
    return {{}, found, at + size + found.trace.size()};
}

/// Reads numbers of eight bytes in order.
class quadwords {
public:
    constexpr explicit quadwords(byte_view from) noexcept : rest_{from} {}

    /// The next eight bytes; missing ones are 0.
    constexpr auto next() noexcept -> byte_view {
        auto const eight = rest_.first(8);
        rest_ = rest_.from(8);
        return eight;
    }
    constexpr auto number() noexcept -> uint64_t { return load_le(next()); }
    [[nodiscard]] constexpr auto rest() const noexcept -> byte_view { return rest_; }

private:
    byte_view rest_;
};

/// The bits of `sample_type` that the end of a record depends on.
inline constexpr uint64_t id_bits = sample_type{}
                                        .with(sample_type::TID{true}, sample_type::TIME{true},
                                              sample_type::ID{true}, sample_type::STREAM_ID{true},
                                              sample_type::CPU{true}, sample_type::IDENTIFIER{true})
                                        .raw;

/// The bits of a SAMPLE's members of fixed size, which precede the others.
inline constexpr uint64_t sample_bits = sample_type{id_bits}
                                            .with(sample_type::IP{true}, sample_type::ADDR{true},
                                                  sample_type::PERIOD{true})
                                            .raw;

constexpr auto thread_in(byte_view eight) noexcept -> thread_id {
    using pair = layout::sample_id;
    return {load<pair::pid>(eight), load<pair::tid>(eight)};
}

/// Separates the end of a record of the kernel from its content.
///
/// Errors: record_too_short.
constexpr auto split_id(record& whole) noexcept -> read_error {
    using is = sample_type;
    auto const has = whole.event;
    size_t const size = size_t{8} * popcount(whole.event.raw & id_bits);
    size_t const room = whole.bytes.size() - layout::record_header::bytes::size;
    if (size > room) { return read_error::record_too_short; }
    whole.content = whole.bytes.first(whole.bytes.size() - size);
    quadwords end{whole.bytes.from(whole.content.size())};
    auto& id = whole.id;
    id.has = {whole.event.raw & id_bits};
    if (has.get<is::TID>()) { id.thread = thread_in(end.next()); }
    if (has.get<is::TIME>()) { id.time = end.number(); }
    if (has.get<is::ID>()) { id.id = end.number(); }
    if (has.get<is::STREAM_ID>()) { id.stream_id = end.number(); }
    if (has.get<is::CPU>()) { id.cpu = static_cast<uint32_t>(end.number()); }
    if (has.get<is::IDENTIFIER>()) { id.id = end.number(); }
    return read_error::none;
}

}  // namespace detail

// ------------------------------------------------------------------------------------ values

/// PERF_RECORD_COMM.
struct thread_name {
    thread_id thread{};
    byte_view name{};   ///< without the NUL
    bool exec = false;  ///< execve gave the name
};

/// PERF_RECORD_MMAP and PERF_RECORD_MMAP2.
///
/// Units:  `len` and `pgoff` are in bytes.
struct mapping {
    thread_id thread{};  ///< pid FFFFFFFFH: the kernel
    uint64_t addr = 0;
    uint64_t len = 0;
    uint64_t pgoff = 0;
    byte_view filename{};   ///< without the NUL
    bool is_data = false;   ///< MMAP: not executable
    bool is_mmap2 = false;  ///< the members below are valid
    uint32_t prot = 0;
    uint32_t flags = 0;
    byte_view build_id{};  ///< if it is not empty, the four members below are not known
    uint32_t dev_major = 0;
    uint32_t dev_minor = 0;
    uint64_t ino = 0;
    uint64_t ino_generation = 0;
};

/// PERF_RECORD_LOST and PERF_RECORD_LOST_SAMPLES.
struct lost_record {
    uint64_t count = 0;
    uint64_t id = 0;  ///< 0 in LOST_SAMPLES
};

/// PERF_RECORD_THROTTLE and PERF_RECORD_UNTHROTTLE.
struct throttle_record {
    bool throttled = false;
    uint64_t time = 0;
    uint64_t id = 0;
    uint64_t stream_id = 0;
};

/// PERF_RECORD_AUX: new bytes in a buffer of traces.
///
/// Units:  `offset` and `size` are in bytes.
struct aux_record {
    uint64_t offset = 0;
    uint64_t size = 0;
    aux_flags flags{};
};

/// PERF_RECORD_ITRACE_START: the thread whose trace begins.
struct itrace_start_record {
    thread_id thread{};
};

/// PERF_RECORD_SWITCH and PERF_RECORD_SWITCH_CPU_WIDE: `record.id` has the thread that runs or ran.
struct switch_record {
    bool out = false;
    bool preempted = false;  ///< out, and still runnable
    bool has_other = false;  ///< SWITCH_CPU_WIDE
    thread_id other{};       ///< the thread that runs next, or ran before
};

/// PERF_RECORD_SAMPLE: the members of fixed size. `record.id` has the others of them.
struct sample_record {
    uint64_t ip = 0;
    uint64_t addr = 0;
    uint64_t period = 0;
    byte_view rest{};  ///< the members after them, as `record.event` says
};

/// PERF_RECORD_AUXTRACE_INFO. The members after `type` are those of Intel PT; those that the record
/// is too short for are 0.
///
/// Shape:  TSC_BIT and the members like it are masks of the event's `config`.
struct auxtrace_info_record {
    uint32_t type = 0;   ///< `auxtrace_intel_pt`, or of another kind of trace
    unsigned words = 0;  ///< quadwords after `type`
    uint64_t PMU_TYPE = 0;
    uint64_t TIME_SHIFT = 0;
    uint64_t TIME_MULT = 0;
    uint64_t TIME_ZERO = 0;
    uint64_t CAP_USER_TIME_ZERO = 0;
    uint64_t TSC_BIT = 0;
    uint64_t NORETCOMP_BIT = 0;
    uint64_t HAVE_SCHED_SWITCH = 0;
    uint64_t SNAPSHOT_MODE = 0;
    uint64_t PER_CPU_MMAPS = 0;
    uint64_t MTC_BIT = 0;
    uint64_t MTC_FREQ_BITS = 0;
    uint64_t TSC_CTC_N = 0;
    uint64_t TSC_CTC_D = 0;
    uint64_t CYC_BIT = 0;
    uint64_t MAX_NONTURBO_RATIO = 0;
    byte_view filter{};  ///< without the NUL
    uint64_t CAP_EVENT_TRACE = 0;
};

/// PERF_RECORD_AUXTRACE_ERROR: a decoder reports an error.
struct auxtrace_error_record {
    uint32_t type = 0;
    uint32_t code = 0;
    uint32_t cpu = 0;
    thread_id thread{};
    uint32_t format = 0;  ///< 0: without time; 2: with machine_pid and vcpu
    uint64_t ip = 0;
    uint64_t time = 0;
    byte_view message{};
    uint32_t machine_pid = 0;
    uint32_t vcpu = 0;
};

/// PERF_RECORD_TIME_CONV: the conversion of the TSC to times.
struct time_conv_record {
    uint64_t shift = 0;
    uint64_t mult = 0;
    uint64_t zero = 0;
    bool has_cycles = false;  ///< the members below are valid
    uint64_t cycles = 0;
    uint64_t mask = 0;
    bool cap_user_time_zero = false;
    bool cap_user_time_short = false;
};

/// PERF_RECORD_ID_INDEX: the traces that events belong to.
struct id_index_record {
    struct entry {
        uint64_t id = 0;
        uint64_t idx = 0;
        uint64_t cpu = 0;
        uint64_t tid = 0;
    };
    uint64_t count = 0;
    byte_view entries{};  ///< `count` of them; newer files have more bytes after them

    /// The entry `i`, which must be below `count`.
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> entry {
        using member = layout::id_index_entry;
        auto const at = entries.from(i * member::bytes::size);
        return {load<member::id>(at), load<member::idx>(at), load<member::cpu>(at),
                load<member::tid>(at)};
    }
};

/// PERF_RECORD_HEADER_BUILD_ID, or an entry of the feature BUILD_ID: see `build_ids`.
struct build_id_record {
    uint32_t pid = 0;      ///< FFFFFFFFH: of the kernel
    byte_view build_id{};  ///< up to 20 bytes
    byte_view filename{};  ///< without the NUL

    constexpr explicit operator bool() const noexcept { return !filename.empty(); }
};

/// PERF_RECORD_HEADER_FEATURE.
struct feature_record {
    uint64_t feature = 0;  ///< `feature_id`
    byte_view data{};
};

/// PERF_RECORD_COMPRESSED and PERF_RECORD_COMPRESSED2.
struct compressed_record {
    byte_view data{};  ///< Zstandard
};

// ------------------------------------------------------------------------------------ an event

/// A `perf_event_attr`: what was recorded.
///
/// Source: Linux, include/uapi/linux/perf_event.h.
struct event_attr {
    uint64_t offset = 0;  ///< of the structure in the file
    byte_view bytes{};    ///< `load<layout::attr::X>(bytes)` loads X, or 0 if the file lacks it
    byte_view id_bytes{};

    uint32_t type = 0;
    uint64_t config = 0;
    uint64_t sample_period = 0;
    perf_data::sample_type sample_type{};
    uint64_t read_format = 0;
    attr_flags flags{};

    constexpr explicit operator bool() const noexcept { return !bytes.empty(); }
    /// The number of ids: of events that were opened with these attributes.
    [[nodiscard]] constexpr auto id_count() const noexcept -> size_t { return id_bytes.size() / 8; }
    [[nodiscard]] constexpr auto id(size_t i) const noexcept -> uint64_t {
        return load_le(id_bytes.from(8 * i).first(8));
    }
};

}  // namespace ptspec::file::perf_data
