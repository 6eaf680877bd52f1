// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/config/perf_config.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/file/perf_data/record.hpp>
#include <ptspec/trace/time_conversion.hpp>

namespace ptspec::file::perf_data {

namespace detail {
inline constexpr uint64_t ns_per_s = 1'000'000'000;
}  // namespace detail

using trace::time_conversion;

/// How the traces of a file were recorded, with one configuration on one kind of processor.
struct session {
    /// The configuration of the traces. It selects the packets that perf expects.
    reg::ia32_rtit_ctl ctl{};
    /// The processor: the ratio of the TSC to the crystal clock, which MTC needs, and
    /// MaxNonTurboRatio, which CBR needs.
    cpu::capabilities caps{};
    /// If it is known and TSCEn is 1, the file is timed: its records have times, and perf computes
    /// the times of branches.
    time_conversion clock{};
    /// The address filters in the syntax of the kernel, as `filter 0x1000/0x200@/bin/true`, or
    /// nothing. perf refuses a file with another text.
    text filter{};
    /// The type of the PMU `intel_pt`. Linux assigns it; perf finds its traces by it.
    uint32_t pmu_type = 8;
    /// The attributes with which the event was opened. `writer::write_record` writes its records.
    /// If `size` is 0, the attributes in the file are made from `ctl`, and `write_record` fails.
    perf_event_attr attr{};
    bool is_per_cpu = false;      ///< each trace is that of a processor, not of a thread
    bool is_system_wide = false;  ///< of all threads, whose switches are in the records
};

/// Why nothing was written.
enum class error : uint8_t {
    none,
    sink_refused,      ///< the sink had no room: the call can be repeated
    bad_clock,         ///< a TSC below 50 MHz, or a shift above 32: perf cannot use them
    name_too_long,     ///< a file name or a filter has more than 4095 bytes
    nul_in_name,       ///< a name or a filter has a NUL: perf would read another name
    not_begun,         ///< `begin` must be called first, and once
    trace_unfinished,  ///< bytes of the last AUXTRACE record are missing before the next record
    too_many_bytes,    ///< the last AUXTRACE record has fewer bytes left
    too_large,         ///< the file would have more than 2^63 - 1 bytes
    no_reference,      ///< a piece of a timed file has the reference 0: perf ends with SIGSEGV
    bad_attr,          ///< records of the event lack a time in a timed file, or their id
    bad_record,        ///< these bytes are no record of the kernel, or of another event
};

/// The error as one sentence.
[[nodiscard]] constexpr auto describe(error reason) noexcept -> text {
    switch (reason) {
        case error::none: return "nothing is wrong";
        case error::sink_refused: return "the sink has no room";
        case error::bad_clock: return "perf cannot compute with this clock";
        case error::name_too_long: return "a name has more than 4095 bytes";
        case error::nul_in_name: return "a name has a NUL";
        case error::not_begun: return "begin must be called first, and only once";
        case error::trace_unfinished: return "trace bytes of the last AUXTRACE record are missing";
        case error::too_many_bytes: return "the last AUXTRACE record has fewer bytes left";
        case error::too_large: return "the file would be larger than 2^63 - 1 bytes";
        case error::no_reference: return "a piece of a timed file needs a reference";
        case error::bad_attr: return "records of the event need a time and an id";
        case error::bad_record: return "this is no record of the kernel";
    }
    return "unknown error";
}

/// True if the records of the file have times.
[[nodiscard]] constexpr auto is_timed(session const& session) noexcept -> bool {
    return session.ctl.get<reg::ia32_rtit_ctl::TSCEn>() && session.clock.mult != 0;
}

namespace detail {

/// Why a string cannot be in a record.
constexpr auto error_of_name(text name) noexcept -> error {
    if (name.size() >= path_max) { return error::name_too_long; }
    for (char const letter : name) {
        if (letter == 0) { return error::nul_in_name; }
    }
    return error::none;
}

/// The lowest frequency of a TSC, in Hz, from which perf can derive MaxNonTurboRatio.
inline constexpr uint64_t slowest_tsc = 50'000'000;

}  // namespace detail

/// Why perf could not read a file of this session.
///
/// Errors: bad_clock; bad_attr; name_too_long and nul_in_name for `filter`.
[[nodiscard]] constexpr auto check(session const& session) noexcept -> error {
    if (is_timed(session)) {
        bool const bad = session.clock.shift > 32 ||
                         (detail::ns_per_s << session.clock.shift) / session.clock.mult <
                             detail::slowest_tsc;
        if (bad) { return error::bad_clock; }
    }
    if (session.attr.size != 0) {
        auto const members = session.attr.sample_type.value();
        bool const good = session.attr.size == perf_event_attr::size_of_writer &&
                          session.attr.flags.get<attr_flags::sample_id_all>() &&
                          members.get<sample_type::TID>() &&
                          members.get<sample_type::IDENTIFIER>() &&
                          members.get<sample_type::TIME>() == is_timed(session);
        if (!good) { return error::bad_attr; }
    }
    return detail::error_of_name(session.filter);
}

namespace detail {

/// The members of the trailer of each record.
constexpr auto id_format(session const& session) noexcept -> sample_type {
    using is = sample_type;
    if (session.attr.size != 0) { return {session.attr.sample_type.value().raw & id_bits}; }
    return is{}.with(is::TID{true}, is::TIME{is_timed(session)}, is::IDENTIFIER{true});
}

}  // namespace detail

/// The id of the only event. The trailer of every record of the kernel has it.
inline constexpr uint64_t event_id = 1;

/// The bytes of an event in the head: its attributes, and the section of its ids.
inline constexpr size_t attr_entry_size = perf_event_attr::size_of_writer + sizeof(section);

/// The number of bytes before the data.
inline constexpr size_t head_size = sizeof(file_header) + sizeof event_id + attr_entry_size;

/// The bytes before the data. Their number is fixed: a program writes them with `data_size` 0, and
/// again when it knows the size. perf warns of a file whose size is still 0.
///
/// Shape:  104 bytes of header, 8 bytes of id, 144 bytes of attributes.
/// Source: Linux, tools/perf/Documentation/perf.data-file-format.txt.
[[nodiscard]] constexpr auto head(session const& session, uint64_t data_size) noexcept
    -> byte_array<head_size> {
    using flags = attr_flags;
    constexpr size_t id_offset = sizeof(file_header);
    constexpr size_t attr_offset = id_offset + sizeof event_id;
    auto const event = config::to_perf(config::config_of(session.ctl)).event;
    bool const is_opened = session.attr.size != 0;
    file_header const file{.magic = file_header::magic_value,
                           .size = sizeof(file_header),
                           .attr_size = attr_entry_size,
                           .attrs = {attr_offset, attr_entry_size},
                           .data = {head_size, data_size}};
    perf_event_attr const attr_of_ctl{
        .type = session.pmu_type,
        .size = perf_event_attr::size_of_writer,
        .config = event.config,
        .sample_period = 1,
        .sample_type = detail::id_format(session).with(sample_type::IP{true}),
        .flags = flags{}.with(
            flags::exclude_user{event.exclude_user}, flags::exclude_kernel{event.exclude_kernel},
            flags::exclude_hv{true}, flags::mmap{true}, flags::comm{true}, flags::task{true},
            flags::sample_id_all{true}, flags::mmap2{true}, flags::comm_exec{true})};

    byte_array<head_size> made;
    uint8_t* next = made.data();
    auto const put = [&](auto const& structure, size_t size = sizeof(structure)) {
        copy_bytes(next, to_bytes(structure).data(), size);
        next += size;
    };
    put(file);
    put(le64{event_id});
    put(is_opened ? session.attr : attr_of_ctl, perf_event_attr::size_of_writer);
    put(section{id_offset, sizeof event_id});
    return made;
}

}  // namespace ptspec::file::perf_data
