// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/record.hpp>
#include <ptspec/file/perf_data/session.hpp>
#include <ptspec/trace/write/batch.hpp>

/// Writes perf.data files with traces of Intel PT.
namespace ptspec::file::perf_data {

/// Why nothing was written, or `none`.
struct [[nodiscard]] write_result {
    perf_data::error error = perf_data::error::none;

    constexpr explicit operator bool() const noexcept { return error == error::none; }
};

namespace detail {

inline constexpr uint64_t largest_file = ~uint64_t{0} >> 1;

/// A record that is being made: `Before` bytes, its structure, and at most `Room` bytes after it.
template <class Record, size_t Room = 0, size_t Before = 0>
class record_bytes {
public:
    /// `size` is the number of bytes of `record` to copy.
    constexpr explicit record_bytes(Record const& record, size_t size = sizeof(Record)) noexcept
        : header_{type_of<Record>, record.header.misc}, size_{Before + size} {
        copy_bytes(bytes_.data() + Before, to_bytes(record).data(), size);
    }

    /// Copies the bytes before the record.
    constexpr void set_before(byte_array<Before> const& bytes) noexcept {
        copy_bytes(bytes_.data(), bytes.data(), Before);
    }
    /// Adds a string with a NUL, padded to 8 bytes.
    constexpr void add(text name) noexcept {
        uint8_t* const place = bytes_.data() + size_;
        for (size_t i = 0; i < name.size(); ++i) {
            place[i] = static_cast<uint8_t>(name.data()[i]);
        }
        size_ += name.size() / 8 * 8 + 8;
    }
    constexpr void add(uint64_t quadword) noexcept {
        store_le64(bytes_.data() + size_, quadword);
        size_ += 8;
    }
    /// Adds the trailer that `sample_id_all` requires.
    constexpr void add_sample_id(sample_type members, thread_id thread, uint64_t time) noexcept {
        sample_id id{.has = members, .thread = thread, .time = time, .id = event_id};
        id.for_each([&](auto member) {
            if constexpr (same_as<decltype(member), thread_id>) {
                add(member.pid | uint64_t{member.tid} << 32);
            } else {
                add(uint64_t{member});
            }
        });
    }
    /// Stores the header, and returns the record with the bytes before it.
    [[nodiscard]] constexpr auto finish() noexcept -> byte_view {
        header_.size = static_cast<uint16_t>(size_ - Before);
        copy_bytes(bytes_.data() + Before, to_bytes(header_).data(), sizeof header_);
        return byte_view{bytes_}.first(size_);
    }

private:
    record_header header_;
    size_t size_;
    byte_array<Before + sizeof(Record) + Room> bytes_{};

    static_assert(sizeof(Record) + Room <= 0xFFFF, "the size of a record has 16 bits");
};

inline constexpr size_t sample_id_room = sizeof(uint64_t) * popcount(id_bits);

}  // namespace detail

/// Writes a perf.data file that perf 6.1 reads: `begin`, records and traces, `finish`. After that
/// the program writes `head(session, data_size())` over the first bytes of the file.
///
/// Each call writes its record with one `append`, or returns an error and writes nothing of it.
///
/// In a timed file perf sorts records and branches by time. In a file without times perf decodes
/// the traces of a thread at its EXIT record, or at the end of the file, with the names and
/// mappings that it knows at this point.
///
/// Errors: those of `error`.
/// Source: Linux, tools/perf/Documentation/perf.data-file-format.txt; tools/perf/util/intel-pt.c.
template <trace::packet_sink Sink>
class writer {
public:
    /// The writer borrows the sink, which must outlive it, and the filter until `begin`.
    constexpr writer(session const& session, Sink& sink) noexcept
        : session_{session},
          sink_{sink},
          timed_{is_timed(session)},
          members_{detail::id_format(session)} {}

    /// Writes the head for a size of 0, and AUXTRACE_INFO.
    ///
    /// Errors: those of `check`; not_begun at a second call.
    constexpr auto begin() noexcept -> write_result {
        if (has_begun_) { return {error::not_begun}; }
        auto const wrong = check(session_);
        if (wrong != error::none) { return {wrong}; }
        auto made = make_info();
        made.set_before(head(session_, 0));
        auto const bytes = made.finish();
        if (!sink_.append(bytes)) { return {error::sink_refused}; }
        has_begun_ = true;
        data_size_ = bytes.size() - head_size;
        return {};
    }

    /// The name of a thread, cut after 15 bytes as in the kernel. In timed files, `time` is that of
    /// the record, in nanoseconds.
    ///
    /// Errors: nul_in_name.
    constexpr auto write(comm_record const& record, text name, uint64_t time = 0) noexcept
        -> write_result {
        constexpr size_t longest = task_comm_len - 1;
        return write_named<task_comm_len>(
            record, {name.data(), name.size() < longest ? name.size() : longest}, time);
    }
    constexpr auto write(fork_record const& record) noexcept -> write_result {
        return write_task(record, record.parent());
    }
    constexpr auto write(exit_record const& record) noexcept -> write_result {
        return write_task(record, thread_of(record));
    }
    /// Code of user space that is mapped from a file.
    ///
    /// Errors: nul_in_name, name_too_long.
    constexpr auto write(mmap2_record const& record, text filename, uint64_t time = 0) noexcept
        -> write_result {
        return write_named<path_max>(record, filename, time);
    }
    /// A record of the kernel, as the data area of the event `session::attr` has it, but with the
    /// id `event_id`, its last eight bytes.
    ///
    /// Errors: bad_record, also with another id; bad_attr, if the session has no such event.
    constexpr auto write_record(byte_view record) noexcept -> write_result {
        if (session_.attr.size == 0) { return {error::bad_attr}; }
        auto const found = kernel_record(record, members_);
        bool const is_good = found && found.bytes.size() == record.size() &&
                             found.id.id == event_id;
        return is_good ? put(record) : write_result{error::bad_record};
    }
    /// Begins a piece of a trace. `append_trace` writes its bytes. The writer adds PADs up to a
    /// multiple of 8 bytes, so a piece whose size is no multiple of 8 must end with a whole packet.
    ///
    /// Errors: too_large; no_reference, in a timed file.
    constexpr auto write(auxtrace_record const& record) noexcept -> write_result {
        uint64_t const size = record.size;
        if (has_begun_ && timed_ && record.reference == 0) { return {error::no_reference}; }
        constexpr uint64_t max_size = detail::largest_file - head_size - sizeof record - 7;
        if (size > max_size || data_size_ + pads_ > max_size - size) { return {error::too_large}; }
        auto const pads = static_cast<unsigned>(0 - size) % 8;
        auto padded = record;
        padded.size = size + pads;
        auto const done = put(detail::record_bytes{padded}.finish());
        if (done) {
            trace_left_ = size;
            pads_ = pads;
        }
        return done;
    }
    /// Writes bytes of the piece that the last AUXTRACE record began, in one or several calls.
    ///
    /// Errors: too_many_bytes.
    constexpr auto append_trace(byte_view bytes) noexcept -> write_result {
        if (!has_begun_) { return {error::not_begun}; }
        if (bytes.size() > trace_left_) { return {error::too_many_bytes}; }
        if (!sink_.append(bytes)) { return {error::sink_refused}; }
        trace_left_ -= bytes.size();
        data_size_ += bytes.size();
        return {};
    }
    /// FINISHED_ROUND ends a round of records. perf then processes the records up to the latest
    /// time of the previous round, and later records must not be older. Without rounds it keeps
    /// the records in memory up to the end of the file.
    constexpr auto finished_round() noexcept -> write_result {
        constexpr record_header round{record_type::finished_round, 0, sizeof(record_header)};
        return put(to_bytes(round));
    }

    /// Ends the file: writes the last PADs.
    ///
    /// Errors: trace_unfinished, not_begun.
    constexpr auto finish() noexcept -> write_result {
        if (!has_begun_) { return {error::not_begun}; }
        if (trace_left_ != 0) { return {error::trace_unfinished}; }
        return put_pads();
    }
    /// The bytes that were written after the head.
    [[nodiscard]] constexpr auto data_size() const noexcept -> uint64_t { return data_size_; }

private:
    /// HAVE_SCHED_SWITCH: 2 for SWITCH records, 3 for those of processors.
    [[nodiscard]] constexpr auto switches() const noexcept -> uint64_t {
        bool const has = session_.attr.flags.template get<attr_flags::context_switch>();
        return !has ? 0 : session_.is_system_wide ? 3 : 2;
    }
    /// AUXTRACE_INFO. perf takes the masks of `attr.config` from it.
    constexpr auto make_info() const noexcept {
        using ctl = reg::ia32_rtit_ctl;
        using ptspec::detail::field_mask;
        using reg::cpuid_14h_0_ebx, reg::cpuid_15h_eax, reg::cpuid_15h_ebx, reg::msr_platform_info;
        auto const& caps = session_.caps;
        auto const clock = timed_ ? session_.clock : time_conversion{.mult = 1};

        auxtrace_info_record const info{
            .type = auxtrace_intel_pt,
            .PMU_TYPE = session_.pmu_type,
            .TIME_SHIFT = clock.shift,
            .TIME_MULT = clock.mult,
            .TIME_ZERO = clock.zero,
            .CAP_USER_TIME_ZERO = uint64_t{timed_},
            .TSC_BIT = field_mask<ctl::TSCEn>,
            .NORETCOMP_BIT = field_mask<ctl::DisRETC>,
            .HAVE_SCHED_SWITCH = switches(),
            .PER_CPU_MMAPS = uint64_t{session_.is_per_cpu},
            .MTC_BIT = field_mask<ctl::MTCEn>,
            .MTC_FREQ_BITS = field_mask<ctl::MTCFreq>,
            .TSC_CTC_N = caps.leaf_15_ebx.template get<cpuid_15h_ebx::Numerator>(),
            .TSC_CTC_D = caps.leaf_15_eax.template get<cpuid_15h_eax::Denominator>(),
            .CYC_BIT = field_mask<ctl::CYCEn>,
            .MAX_NONTURBO_RATIO =
                caps.platform_info.template get<msr_platform_info::MaxNonTurboRatio>(),
            .FILTER_STR_LEN = session_.filter.size(),
            .CAP_EVENT_TRACE = uint64_t{
                caps.leaf_14_0_ebx.template get<cpuid_14h_0_ebx::EVENT_TRACE>()}};
        // The filter precedes the last member.
        constexpr size_t fixed = offsetof(auxtrace_info_record, CAP_EVENT_TRACE);
        detail::record_bytes<auxtrace_info_record, path_max, head_size> made{info, fixed};
        if (session_.filter.size() != 0) { made.add(session_.filter); }
        made.add(info.CAP_EVENT_TRACE);
        return made;
    }

    template <size_t LongestName, class Record>
    constexpr auto write_named(Record const& record, text name, uint64_t time) noexcept
        -> write_result {
        auto const wrong = detail::error_of_name(name);
        if (wrong != error::none) { return {wrong}; }
        detail::record_bytes<Record, LongestName + detail::sample_id_room> made{record};
        made.add(name);
        made.add_sample_id(members_, thread_of(record), time);
        return put(made.finish());
    }
    template <class Record>
    constexpr auto write_task(Record const& record, thread_id active) noexcept -> write_result {
        detail::record_bytes<Record, detail::sample_id_room> made{record};
        made.add_sample_id(members_, active, record.time);
        return put(made.finish());
    }

    /// Writes a record, after the PADs of the trace before it.
    constexpr auto put(byte_view record) noexcept -> write_result {
        auto const before = finish();
        if (!before) { return before; }
        if (record.size() > detail::largest_file - head_size - data_size_) {
            return {error::too_large};
        }
        if (!sink_.append(record)) { return {error::sink_refused}; }
        data_size_ += record.size();
        return {};
    }
    constexpr auto put_pads() noexcept -> write_result {
        constexpr byte_array<7> pads{};
        if (pads_ != 0 && !sink_.append(byte_view{pads}.first(pads_))) {
            return {error::sink_refused};
        }
        data_size_ += pads_;
        pads_ = 0;
        return {};
    }

    session session_;
    Sink& sink_;
    bool timed_;
    sample_type members_;  ///< of the trailer of a record
    bool has_begun_ = false;
    unsigned pads_ = 0;        ///< after the bytes of the last AUXTRACE record
    uint64_t trace_left_ = 0;  ///< bytes that the last AUXTRACE record has announced
    uint64_t data_size_ = 0;
};

}  // namespace ptspec::file::perf_data
