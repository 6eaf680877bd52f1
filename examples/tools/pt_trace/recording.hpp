// SPDX-License-Identifier: BSL-1.0
#pragma once

// Records running threads into a perf.data file.

#include "../common/perf_data_file.hpp"
#include "../common/tool.hpp"

#include <ptspec/ports/perf_event.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

namespace pt_trace {

using namespace ptspec;
namespace perf_event = ports::perf_event;
namespace perf_data = file::perf_data;

/// Throws what failed, and what to do.
inline void require(perf_event::trace_result const& done) {
    if (done) { return; }
    auto const why = describe(done.what);
    auto message = std::string{why.data(), why.size()};
    if (done.what == perf_event::failure::unsupported) {
        auto const member = config::info_of(done.member).name;
        message = std::string{member.data(), member.size()} + ": " + message;
    }
    bool const has_reason = done.what == perf_event::failure::other ||
                            done.what == perf_event::failure::no_program;
    if (has_reason) { message += std::string{": "} + std::strerror(done.error); }
    throw tool::failure{message};
}

/// What is traced.
struct targets {
    std::vector<int> threads{};  ///< each on any processor; empty: `program` or all, by processors
    int program = perf_event::trace_target::any;  ///< and what it starts
    bool is_system_wide = false;
    std::vector<int> cpus{};  ///< empty: all
};

/// How much was recorded, and what was lost.
struct totals {
    std::uint64_t bytes = 0;
    std::array<std::uint64_t, 4> gaps{};  ///< by `perf_event::loss`
    std::uint64_t lost_records = 0;
    std::uint64_t bad_records = 0;
    std::uint64_t skipped = 0;      ///< bytes in which no record is
    std::uint64_t not_enabled = 0;  ///< times that an event stayed disabled after a loss

    [[nodiscard]] auto is_complete() const -> bool {
        return gaps == decltype(gaps){} && lost_records == 0 && bad_records == 0 && skipped == 0 &&
               not_enabled == 0;
    }
};

/// The events of a recording, and the file.
class recording {
public:
    /// `is_live`: what executes is printed while it executes, so trace is read earlier.
    recording(perf_event::trace_options wanted, perf_event::pmu const& pmu, targets const& of,
              perf_event::area_sizes const& sizes, std::string const& filters, bool is_live)
        : is_per_cpu_{of.threads.empty()}, is_system_wide_{of.is_system_wide} {
        wanted.inherits = is_per_cpu_ && !is_system_wide_;
        wanted.records_processes = false;
        // As perf: by default Linux wakes a reader when half of the area is full.
        wanted.wakeup_bytes = static_cast<std::uint32_t>(
            std::min<std::size_t>(sizes.aux / (is_live ? 16 : 4), std::size_t{1} << 30));
        auto const made = attributes_of(wanted, pmu);
        require(made.result);
        auto side_band = wanted;
        side_band.records_switches = is_per_cpu_;
        side_band_ = side_band_of(side_band);
        attr_ = made.attr;
        // The file has one event, with the records of both.
        using flags = perf_data::attr_flags;
        attr_.flags = side_band_.flags.value().with(flags::exclude_user{!wanted.config.user},
                                                    flags::exclude_kernel{!wanted.config.os});
        for (int const thread : of.threads) { open(wanted, pmu, {.thread = thread}); }
        if (is_per_cpu_) { open_cpus(wanted, pmu, of); }
        if (events_.empty()) {
            require({is_per_cpu_ ? perf_event::failure::no_such_cpu
                                 : perf_event::failure::no_such_thread});
        }
        for (auto& one : events_) {
            require(one->event.map({.aux = sizes.aux, .is_snapshot = sizes.is_snapshot}));
            require(one->side_band.map({.data = sizes.data, .aux = 0}));
            one->processes.emplace(one->side_band.areas());
            if (!filters.empty()) { require(one->event.set_filters(filters.c_str())); }
            if (sizes.is_snapshot) {
                one->records.emplace(one->event.areas());
            } else {
                one->areas.emplace(one->event.areas());
            }
        }
        auto const& page = *events_.front()->event.areas().page;
        session_ = {.ctl = config::ctl_of(wanted.config),
                    .caps = pmu.caps,
                    .clock = perf_event::time_conversion_of(page),
                    .filter = {filters.data(), filters.size()},
                    .pmu_type = pmu.type,
                    .attr = attr_,
                    .is_per_cpu = is_per_cpu_,
                    .is_system_wide = is_system_wide_};
    }

    /// Begins the file, whose name must not change.
    void begin(std::string const& path) {
        file_.emplace(session_, path);
        file_->finish_round();
        round_begin_ = file_->size();
    }
    /// Calls `take(size, tsc)` after each round: the size of the file, and the TSC when the reading
    /// of the round began.
    void watch(std::function<void(std::uint64_t, std::uint64_t)> take) {
        watcher_ = std::move(take);
    }
    void enable() {
        is_enabled_ = true;
        for (auto& one : events_) { require(one->event.enable()); }
    }
    void disable() {
        is_enabled_ = false;
        for (auto& one : events_) { require(one->event.disable()); }
    }
    /// Writes what there is. Waits for it, or for another descriptor, up to `ms` milliseconds.
    /// Returns false when all threads have ended.
    auto read(int ms, int other) -> bool {
        std::vector<pollfd> waits;
        for (auto const& one : events_) {
            waits.push_back({one->has_ended ? -1 : one->event.descriptor(), POLLIN, 0});
        }
        waits.push_back({other, POLLIN, 0});
        (void)::poll(waits.data(), waits.size(), poll_time_.next(is_stopped_, ms));
        is_stopped_ = false;
        if (round_tsc_ == 0) { round_tsc_ = __builtin_ia32_rdtsc(); }
        bool is_any = false;
        for (std::size_t i = 0; i < events_.size(); ++i) {
            read(*events_[i]);
            bool const has_ended = (waits[i].revents & (POLLHUP | POLLERR)) != 0;
            events_[i]->has_ended = events_[i]->has_ended || has_ended;
            is_any = is_any || !events_[i]->has_ended;
        }
        finish_round(false);
        return is_any;
    }
    /// Ends the recording, and completes the file.
    auto finish() -> totals const& {
        is_enabled_ = false;
        for (auto& one : events_) { (void)one->event.disable(); }
        for (auto& one : events_) {
            read(*one);
            if (one->records) { write_trace(*one, snapshot_of(one->event.areas())); }
            all_.skipped += one->processes->skipped();
            if (one->records) { all_.skipped += one->records->skipped(); }
            if (one->areas) {
                all_.lost_records += one->areas->lost_records();
                all_.bad_records += one->areas->bad_records();
                all_.skipped += one->areas->skipped();
            }
        }
        finish_round(true);
        watcher_ = {};
        file_->finish();
        return all_;
    }
    [[nodiscard]] auto so_far() const -> totals const& { return all_; }
    /// The file, for records of what was there before.
    [[nodiscard]] auto file() -> tool::perf_data_file& { return *file_; }

private:
    struct traced_event {
        perf_event::perf_trace event{};
        perf_event::perf_trace side_band{};
        std::optional<perf_event::record_ring> processes{};  ///< of `side_band`
        std::optional<perf_event::area_reader> areas{};      ///< not of a snapshot
        std::optional<perf_event::record_ring> records{};    ///< of a snapshot
        int thread = 0;
        int cpu = 0;
        std::uint32_t index = 0;
        bool has_ended = false;
        std::vector<std::uint8_t> last_aux{};  ///< the last AUX record
    };

    /// Takes what a reader of areas passes on.
    struct sink {
        recording& to;
        traced_event& of;

        void trace(perf_event::aux_bytes const& bytes) { to.write_trace(of, bytes); }
        void record(perf_data::record const& one) {
            to.write_record({one.bytes.begin(), one.bytes.end()});
            if (one.type == perf_data::record_type::aux) { of.last_aux = to.record_; }
        }
        void gap(std::uint64_t offset, perf_event::loss why) {
            ++to.all_.gaps.at(static_cast<std::size_t>(why));
            if (why == perf_event::loss::records_lost) { to.mark_gap(of, offset); }
        }
    };

    /// Ends a round, if it has lasted 10 ms or is the last. Readers of the file sort the records of
    /// two rounds, so a record must not be written later than two rounds after its time. A virtual
    /// processor that is stopped between both was seen to need 44 us.
    void finish_round(bool is_last) {
        using clock = std::chrono::steady_clock;
        auto const now = clock::now();
        if (!is_last && now - round_end_ < std::chrono::milliseconds{10}) { return; }
        round_end_ = now;
        if (file_->size() != round_begin_) { file_->finish_round(); }
        round_begin_ = file_->size();
        if (watcher_) { watcher_(round_begin_, round_tsc_); }
        round_tsc_ = 0;
    }
    /// The file has one event.
    void write_record(std::vector<std::uint8_t> record) {
        record_ = std::move(record);
        store_le64(record_.data() + record_.size() - 8, perf_data::event_id);
        file_->write_record({record_.data(), record_.size()});
    }
    void open(perf_event::trace_options const& wanted, perf_event::pmu const& pmu,
              perf_event::trace_target const& target) {
        auto made = std::make_unique<traced_event>();
        auto const done = made->event.open(wanted, pmu, target);
        // A processor that is offline, or a thread that has ended meanwhile.
        bool const is_absent = done.what == (is_per_cpu_ ? perf_event::failure::no_such_cpu
                                                         : perf_event::failure::no_such_thread);
        if (is_absent) { return; }
        require(done);
        auto const other = made->side_band.open(side_band_, target);
        if (other.what == perf_event::failure::no_such_thread && !is_per_cpu_) { return; }
        require(other);
        made->thread = target.thread;
        made->cpu = target.cpu;
        made->index = static_cast<std::uint32_t>(events_.size());
        events_.push_back(std::move(made));
    }
    void open_cpus(perf_event::trace_options const& wanted, perf_event::pmu const& pmu,
                   targets const& of) {
        auto cpus = of.cpus;
        auto const count = ::sysconf(_SC_NPROCESSORS_CONF);
        for (int cpu = 0; of.cpus.empty() && cpu < count; ++cpu) { cpus.push_back(cpu); }
        for (int const cpu : cpus) { open(wanted, pmu, {.thread = of.program, .cpu = cpu}); }
    }
    void read(traced_event& of) {
        sink to{*this, of};
        write_records(*of.processes, to);
        if (of.records) { write_records(*of.records, to); }
        if (of.areas && of.areas->read(to).is_stopped && is_enabled_) {
            is_stopped_ = true;
            all_.not_enabled += of.event.enable() ? 0U : 1U;
        }
    }
    void write_records(perf_event::record_ring& from, sink& to) {
        while (true) {
            auto const bytes = from.next();
            if (bytes.empty()) { break; }
            auto const one = perf_data::kernel_record(bytes, perf_event::record_members);
            auto const lost = read_as<perf_data::lost_record>(one);
            if (lost) { all_.lost_records += lost->lost; }
            if (one) {
                to.record(one);
            } else {
                ++all_.bad_records;
            }
            from.release();
        }
        from.release();
    }
    /// A piece of trace.
    void write_trace(traced_event const& of, perf_event::aux_bytes const& bytes) {
        if (bytes.size() == 0) { return; }
        file_->write(perf_data::auxtrace_record{
            .size = bytes.size(),
            .offset = bytes.offset,
            .reference = uint64_t{__builtin_ia32_rdtsc()},
            .idx = of.index,
            .tid = static_cast<std::uint32_t>(is_per_cpu_ ? -1 : of.thread),
            .cpu = static_cast<std::uint32_t>(of.cpu)});
        for (auto const part : bytes.parts) { file_->append_trace(part); }
        all_.bytes += bytes.size();
    }
    /// An AUX record is lost that may have said that trace is missing: writes one, from the last.
    void mark_gap(traced_event& of, std::uint64_t offset) {
        using flags = perf_data::aux_flags;
        if (of.last_aux.empty()) { return; }
        auto made = file::load<perf_data::aux_record>(
            byte_view{of.last_aux.data(), of.last_aux.size()});
        made.aux_offset = offset;
        made.aux_size = uint64_t{0};
        made.flags = flags{}.with(flags::TRUNCATED{true});
        auto const bytes = file::to_bytes(made);
        auto record = of.last_aux;  // with its trailer
        copy_bytes(record.data(), bytes.data(), sizeof made);
        write_record(std::move(record));
    }

    bool is_per_cpu_;
    bool is_system_wide_;
    bool is_enabled_ = true;   ///< also at the exec
    bool is_stopped_ = false;  ///< an event, as `areas_read::is_stopped`
    perf_event::poll_time poll_time_{};
    perf_data::perf_event_attr attr_{};
    perf_data::perf_event_attr side_band_{};
    std::vector<std::unique_ptr<traced_event>> events_{};
    perf_data::session session_{};
    std::optional<tool::perf_data_file> file_{};
    std::uint64_t round_begin_ = 0;                      ///< in the file
    std::chrono::steady_clock::time_point round_end_{};  ///< of the round before
    std::uint64_t round_tsc_ = 0;                        ///< when the round began; 0: none has
    std::function<void(std::uint64_t, std::uint64_t)> watcher_{};
    totals all_{};
    std::vector<std::uint8_t> record_{};  ///< the last
};

}  // namespace pt_trace
