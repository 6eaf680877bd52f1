// SPDX-License-Identifier: BSL-1.0
#pragma once

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

/// A record that is being made: the members of `Layout`, then at most `Room` bytes. `Before` bytes
/// precede it.
template <class Layout, size_t Room = 0, size_t Before = 0>
class record_bytes {
public:
    constexpr explicit record_bytes(record_type type, uint16_t misc = 0) noexcept {
        set<layout::record_header::type>(underlying(type));
        set<layout::record_header::misc>(misc);
    }

    template <class Member>
    constexpr void set(typename Member::value_type value) noexcept {
        store<Member>(bytes_.data() + Before, value);
    }
    /// Copies the bytes before the record.
    constexpr void set_before(byte_array<Before> const& bytes) noexcept {
        copy_bytes(bytes_.data(), bytes.data(), Before);
    }
    /// Adds a string with a NUL, padded to 8 bytes.
    constexpr void add(text name) noexcept {
        uint8_t* const to = bytes_.data() + size_;
        for (size_t i = 0; i < name.size(); ++i) { to[i] = static_cast<uint8_t>(name.data()[i]); }
        size_ += name.size() / 8 * 8 + 8;
    }
    constexpr void add(uint64_t quadword) noexcept {
        store_le64(bytes_.data() + size_, quadword);
        size_ += 8;
    }
    /// Adds the end that `sample_id_all` requires.
    constexpr void add_sample_id(thread_id of, bool timed, uint64_t time) noexcept {
        auto const put = [&]<class Id>(Id*) {
            uint8_t* const to = bytes_.data() + size_;
            store<typename Id::pid>(to, of.pid);
            store<typename Id::tid>(to, of.tid);
            store<typename Id::id>(to, event_id);
            if constexpr (requires { typename Id::time; }) { store<typename Id::time>(to, time); }
            size_ += Id::bytes::size;
        };
        if (timed) {
            put(static_cast<layout::timed_sample_id*>(nullptr));
        } else {
            put(static_cast<layout::sample_id*>(nullptr));
        }
    }
    /// Stores the size, and returns the record with the bytes before it.
    [[nodiscard]] constexpr auto finish() noexcept -> byte_view {
        set<layout::record_header::size>(static_cast<uint16_t>(size_ - Before));
        return byte_view{bytes_}.first(size_);
    }

private:
    byte_array<Before + Layout::bytes::size + Room> bytes_{};
    size_t size_ = Before + Layout::bytes::size;

    static_assert(Layout::bytes::size + Room <= 0xFFFF, "the size of a record has 16 bits");
};

inline constexpr size_t sample_id_room = layout::timed_sample_id::bytes::size;

}  // namespace detail

/// Writes a perf.data file that perf 6.1 reads: `begin`, records and traces, `finish`. After that
/// the program writes `head(session, data_size())` over the first bytes of the file.
///
/// Each call writes its record with one `append`, or returns an error and writes nothing of it.
///
/// In a timed file perf sorts records and branches by time. In another file it decodes the traces
/// of a thread at its EXIT record, or at the end, with the names and mappings of that moment.
///
/// Errors: those of `error`.
/// Source: Linux, tools/perf/Documentation/perf.data-file-format.txt; tools/perf/util/intel-pt.c.
template <trace::packet_sink Sink>
class writer {
public:
    /// The writer borrows the sink, which must outlive it, and the filter until `begin`.
    constexpr writer(session const& of, Sink& to) noexcept
        : of_{of}, to_{to}, timed_{is_timed(of)} {}

    /// Writes the head for a size of 0, and AUXTRACE_INFO.
    ///
    /// Errors: those of `check`; not_begun at a second call.
    constexpr auto begin() noexcept -> write_result {
        if (has_begun_) { return {error::not_begun}; }
        auto const wrong = check(of_);
        if (wrong != error::none) { return {wrong}; }
        auto made = make_info();
        made.set_before(head(of_, 0));
        auto const bytes = made.finish();
        if (!to_.append(bytes)) { return {error::sink_refused}; }
        has_begun_ = true;
        data_size_ = bytes.size() - head_size;
        return {};
    }

    /// The name of a thread, cut after 15 bytes as in the kernel.
    ///
    /// Errors: nul_in_name.
    constexpr auto write(comm_record const& what) noexcept -> write_result {
        using layout::comm;
        constexpr size_t longest = task_comm_len - 1;
        text const name{what.name.data(), what.name.size() < longest ? what.name.size() : longest};
        auto const wrong = detail::error_of_name(name);
        if (wrong != error::none) { return {wrong}; }
        detail::record_bytes<comm, task_comm_len + detail::sample_id_room> made{
            record_type::comm, what.exec ? misc_comm_exec : uint16_t{0}};
        made.template set<comm::pid>(what.thread.pid);
        made.template set<comm::tid>(what.thread.tid);
        made.add(name);
        made.add_sample_id(what.thread, timed_, what.time);
        return put(made.finish());
    }
    constexpr auto write(fork_record const& what) noexcept -> write_result {
        return write_task(record_type::fork, what, what.parent);
    }
    constexpr auto write(exit_record const& what) noexcept -> write_result {
        return write_task(record_type::exit, what, what.thread);
    }
    /// Errors: nul_in_name, name_too_long.
    constexpr auto write(mmap2_record const& what) noexcept -> write_result {
        using layout::mmap2;
        auto const wrong = detail::error_of_name(what.filename);
        if (wrong != error::none) { return {wrong}; }
        constexpr auto with_id = static_cast<uint16_t>(misc_user | misc_mmap_build_id);
        detail::record_bytes<mmap2, path_max + detail::sample_id_room> made{
            record_type::mmap2, what.has_build_id ? with_id : misc_user};
        made.template set<mmap2::pid>(what.thread.pid);
        made.template set<mmap2::tid>(what.thread.tid);
        made.template set<mmap2::addr>(what.addr);
        made.template set<mmap2::len>(what.len);
        made.template set<mmap2::pgoff>(what.pgoff);
        made.template set<mmap2::dev_major>(what.dev_major);
        made.template set<mmap2::dev_minor>(what.dev_minor);
        made.template set<mmap2::ino>(what.ino);
        made.template set<mmap2::ino_generation>(what.ino_generation);
        made.template set<mmap2::prot>(what.prot);
        made.template set<mmap2::flags>(what.flags);
        made.add(what.filename);
        made.add_sample_id(what.thread, timed_, what.time);
        return put(made.finish());
    }
    /// A piece of a trace. `append_trace` gives its bytes. PADs follow them up to a multiple of 8,
    /// so a piece that is no multiple of 8 must end at the end of a packet.
    ///
    /// Errors: too_large; no_reference, in a timed file.
    constexpr auto write(auxtrace_record const& what) noexcept -> write_result {
        using layout::auxtrace;
        if (has_begun_ && timed_ && what.reference == 0) { return {error::no_reference}; }
        constexpr uint64_t most = detail::largest_file - head_size - auxtrace::bytes::size - 7;
        if (what.size > most || data_size_ + pads_ > most - what.size) {
            return {error::too_large};
        }
        auto const pads = static_cast<unsigned>(0 - what.size) % 8;
        detail::record_bytes<auxtrace> made{record_type::auxtrace};
        made.template set<auxtrace::trace_size>(what.size + pads);
        made.template set<auxtrace::offset>(what.offset);
        made.template set<auxtrace::reference>(what.reference);
        made.template set<auxtrace::idx>(what.idx);
        made.template set<auxtrace::tid>(what.tid);
        made.template set<auxtrace::cpu>(what.cpu);
        auto const done = put(made.finish());
        if (done) {
            trace_left_ = what.size;
            pads_ = pads;
        }
        return done;
    }
    /// Bytes of the piece that the last AUXTRACE record began, in one or several calls.
    ///
    /// Errors: too_many_bytes.
    constexpr auto append_trace(byte_view bytes) noexcept -> write_result {
        if (!has_begun_) { return {error::not_begun}; }
        if (bytes.size() > trace_left_) { return {error::too_many_bytes}; }
        if (!to_.append(bytes)) { return {error::sink_refused}; }
        trace_left_ -= bytes.size();
        data_size_ += bytes.size();
        return {};
    }
    /// FINISHED_ROUND ends a round of records. perf then processes the records up to the latest
    /// time of the previous round, and later records must not be older. Without rounds it keeps
    /// the records in memory up to the end of the file.
    constexpr auto finished_round() noexcept -> write_result {
        detail::record_bytes<layout::record_header> made{record_type::finished_round};
        return put(made.finish());
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
    /// AUXTRACE_INFO. perf takes the masks of `attr.config` from it.
    constexpr auto make_info() const noexcept {
        using info = layout::auxtrace_info;
        using ctl = reg::ia32_rtit_ctl;
        using ptspec::detail::field_mask;
        using reg::cpuid_14h_0_ebx, reg::cpuid_15h_eax, reg::cpuid_15h_ebx, reg::msr_platform_info;
        auto const& caps = of_.caps;
        auto const clock = timed_ ? of_.clock : time_conversion{.mult = 1};

        constexpr size_t room = path_max + sizeof(uint64_t);
        detail::record_bytes<info, room, head_size> made{record_type::auxtrace_info};
        made.template set<info::type>(auxtrace_intel_pt);
        made.template set<info::PMU_TYPE>(of_.pmu_type);
        made.template set<info::TIME_SHIFT>(clock.shift);
        made.template set<info::TIME_MULT>(clock.mult);
        made.template set<info::TIME_ZERO>(clock.zero);
        made.template set<info::CAP_USER_TIME_ZERO>(timed_ ? 1 : 0);
        made.template set<info::TSC_BIT>(field_mask<ctl::TSCEn>);
        made.template set<info::NORETCOMP_BIT>(field_mask<ctl::DisRETC>);
        made.template set<info::MTC_BIT>(field_mask<ctl::MTCEn>);
        made.template set<info::MTC_FREQ_BITS>(field_mask<ctl::MTCFreq>);
        made.template set<info::TSC_CTC_N>(
            caps.leaf_15_ebx.template get<cpuid_15h_ebx::Numerator>());
        made.template set<info::TSC_CTC_D>(
            caps.leaf_15_eax.template get<cpuid_15h_eax::Denominator>());
        made.template set<info::CYC_BIT>(field_mask<ctl::CYCEn>);
        made.template set<info::MAX_NONTURBO_RATIO>(
            caps.platform_info.template get<msr_platform_info::MaxNonTurboRatio>());
        made.template set<info::FILTER_STR_LEN>(of_.filter.size());
        if (of_.filter.size() != 0) { made.add(of_.filter); }
        made.add(uint64_t{caps.leaf_14_0_ebx.template get<cpuid_14h_0_ebx::EVENT_TRACE>()});
        return made;
    }

    template <class Record>
    constexpr auto write_task(record_type type, Record const& what, thread_id current) noexcept
        -> write_result {
        using layout::task;
        detail::record_bytes<task, detail::sample_id_room> made{type};
        made.template set<task::pid>(what.thread.pid);
        made.template set<task::ppid>(what.parent.pid);
        made.template set<task::tid>(what.thread.tid);
        made.template set<task::ptid>(what.parent.tid);
        made.template set<task::time>(what.time);
        made.add_sample_id(current, timed_, what.time);
        return put(made.finish());
    }

    /// Writes a record, after the PADs of the trace before it.
    constexpr auto put(byte_view record) noexcept -> write_result {
        auto const before = finish();
        if (!before) { return before; }
        if (record.size() > detail::largest_file - head_size - data_size_) {
            return {error::too_large};
        }
        if (!to_.append(record)) { return {error::sink_refused}; }
        data_size_ += record.size();
        return {};
    }
    constexpr auto put_pads() noexcept -> write_result {
        constexpr byte_array<7> pads{};
        if (pads_ != 0 && !to_.append(byte_view{pads}.first(pads_))) {
            return {error::sink_refused};
        }
        data_size_ += pads_;
        pads_ = 0;
        return {};
    }

    session of_;
    Sink& to_;
    bool timed_;
    bool has_begun_ = false;
    unsigned pads_ = 0;        ///< after the bytes of the last AUXTRACE record
    uint64_t trace_left_ = 0;  ///< bytes that the last AUXTRACE record has announced
    uint64_t data_size_ = 0;
};

}  // namespace ptspec::file::perf_data
