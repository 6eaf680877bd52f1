// SPDX-License-Identifier: BSL-1.0
#pragma once

// Prints what executes while it is recorded, from the rounds of a growing perf.data file.

#include "../common/reports/covered.hpp"
#include "../common/reports/recorder.hpp"
#include "../common/trace_file.hpp"
#include "../common/traced/processes.hpp"
#include "../common/traced/record_order.hpp"
#include "../common/walk_limits.hpp"

#include <ptspec/file/perf_data/decoder_config.hpp>
#include <ptspec/file/perf_data/read_as.hpp>
#include <ptspec/file/perf_data/reader.hpp>
#include <ptspec/flow.hpp>
#include <ptspec/trace/clock.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pt_trace {

using namespace ptspec;

/// What a thread executed on one processor, up to a switch, or up to where tracing was off.
struct thread_part {
    std::uint64_t begin = 0;  ///< TSC
    bool continues = false;   ///< the last part of the stream: it is of the same thread
    reports::records all;
};

/// The bytes of one trace, and the walk through them.
class walked_stream {
public:
    /// `to` is the report of all streams.
    walked_stream(trace_file::stream of, traced::processes& in, flow::block_cache& blocks,
                  reports::report& to)
        : of_{std::move(of)},
          code_{in, of_},
          blocks_{blocks},
          to_{to},
          wants_{to.wants()},
          clock_{trace_file::clock_of(of_, {}, {})} {
        options_.quirks = of_.how.clock.quirks;
        options_ = trace_file::with_limits(options_, {}, &of_);
        wants_.times = wants_.window = true;
        if (code_.constant_thread() != nullptr) { thread_ = *code_.constant_thread(); }
        if (wants_.functions) {
            code_.ends.symbols_of = [&to](traced::thread_id thread) {
                return to.symbols_of(thread);
            };
        }
    }
    walked_stream(walked_stream const&) = delete;
    auto operator=(walked_stream const&) -> walked_stream& = delete;

    /// Walks the next bytes. `latest` is the upper bound of their times, in ns of perf.
    void add(byte_view bytes, std::uint64_t latest) {
        begin();
        code_.set_horizon(latest);
        (void)walk_->feed(borrowed_bytes{bytes.data(), bytes.size()});
        run();
        offset_ += bytes.size();
    }
    /// Looks for a PSB in bytes that are added later, maybe in parts.
    void find_psb(byte_view bytes) {
        has_psb_ = has_psb_ || bytes.empty() || trace::find_psb(bytes) != trace::npos;
    }
    /// Trace is missing after the bytes that were added.
    void add_gap() {
        end();
        begin();
        reports_->gap({.why = flow::gap_reason::missing_trace});
        take(reports_->all());
    }
    /// Ends the walk, at a gap or at the end.
    void end() {
        if (!walk_) { return; }
        walk_->finish();
        run();
        clock_ = walk_->clock();
        clock_.lose();
        walk_.reset();
        reports_.reset();
    }
    void update_names() {
        if (reports_) { reports_->update_names(); }
    }
    [[nodiscard]] auto parts() -> std::deque<thread_part>& { return parts_; }
    /// The last TSC of the walk.
    [[nodiscard]] auto last_time() const -> std::uint64_t { return last_time_; }
    [[nodiscard]] auto has_psb() const -> bool { return has_psb_; }

private:
    using walker = flow::walker<traced::traced_code, trace::clock>;

    void begin() {
        if (walk_) { return; }
        walk_.emplace(code_, blocks_, options_, clock_);
        reports_.emplace(wants_, to_, offset_, code_,
                         [this](reports::records& from) { take(from); });
    }
    void run() {
        using namespace reports;
        if (auto* const blocks = dynamic_cast<covered_blocks*>(&to_)) {
            walk_counts counts;
            blocks->own().begin(code_);
            auto sink = blocks->own().sink_for(counts, nullptr);
            (void)walk_->run(sink);
            to_.found.add(counts.found);
            return;
        }
        if (wants_.instructions) {
            divided<instruction_recorder> sink{{{*reports_}}, *this};
            (void)walk_->run(sink);
        } else {
            divided<block_recorder> sink{{{*reports_}}, *this};
            (void)walk_->run(sink);
        }
        take(reports_->all());
    }
    /// Begins a part where tracing begins: before, the thread may have been on another processor.
    template <class Sink>
    struct divided : reports::timed<Sink> {
        walked_stream& of;

        void start(std::uint64_t ip, std::uint32_t space) {
            of.take(of.reports_->all());
            of.begins_ = true;
            if constexpr (requires(Sink& any) { any.start(ip, space); }) { Sink::start(ip, space); }
        }
    };
    /// Moves what was recorded to the parts, and begins a part where the thread changes.
    void take(reports::records& from) {
        for (std::size_t i = 0; i < from.size(); ++i) {
            auto const* const other = from.other_at(i);
            auto const* const thread = std::get_if<traced::thread_id>(other);
            if (thread != nullptr) { thread_ = *thread; }
            if (i == 0 || thread != nullptr) {
                parts_.push_back({last_time_, thread == nullptr && !begins_, from.sibling()});
                begins_ = false;
                if (thread == nullptr && thread_) { parts_.back().all.add(*thread_); }
                has_time_ = false;
            }
            parts_.back().all.add(from, i);
            auto const* const when = std::get_if<trace::time>(other);
            if (when == nullptr || !when->is_absolute() || when->is_guest) { continue; }
            last_time_ = std::max(last_time_, when->tsc);
            if (!has_time_) { parts_.back().begin = last_time_; }
            has_time_ = true;
        }
        from.clear();
    }

    trace_file::stream of_;
    traced::traced_code code_;
    flow::block_cache& blocks_;
    reports::report& to_;
    reports::wanted wants_;
    flow::walk_options options_{};
    trace::clock clock_;
    std::optional<walker> walk_{};
    std::optional<reports::recorder> reports_{};
    std::uint64_t offset_ = 0;
    bool has_psb_ = false;
    std::deque<thread_part> parts_{};
    std::optional<traced::thread_id> thread_{};
    std::uint64_t last_time_ = 0;
    bool has_time_ = false;  ///< of the last part
    bool begins_ = true;     ///< tracing begins: the next part does not continue the last
};

/// Prints a recording by rounds. A round has the records and the bytes of traces that were in the
/// buffers of the kernel when they were read, one after another.
///
/// The records of a later round are later than all records of the round before this one: up to
/// there they are sorted and taken, as perf does it. The bytes of a round are walked after the two
/// rounds that follow it, which have all records up to their time. The parts of a thread on several
/// processors are printed in the order of time.
class live_walk {
public:
    using report_maker = std::function<std::unique_ptr<reports::report>(
        traced::processes&, trace_file::conversion const&)>;

    /// `head` are the bytes of the file before the first round, with its AUXTRACE_INFO record. The
    /// report, of `what`, prints to `to`.
    live_walk(std::vector<std::uint8_t> head, std::string what, traced::code_files const& where,
              tool::output& to, report_maker const& make_report)
        : head_{std::move(head)}, out_{to}, files_{where}, what_{std::move(what)} {
        using file::perf_data::file_header;
        // The size of the records is not known before the end of the recording.
        auto const about = file::load<file_header>(byte_view{head_.data(), head_.size()});
        head_size_ = static_cast<std::size_t>(about.data.offset);
        store_le64(&head_.at(offsetof(file_header, data.size)), head_.size() - head_size_);
        auto const in = input_of(head_);
        how_ = trace_file::recording_of(file::perf_data::decoder_config_of(in));
        processes_ = std::make_unique<traced::processes>(in, files_);
        to_ns_.perf = how_.to_ns;
        report_ = make_report(*processes_, to_ns_);
    }
    live_walk(live_walk const&) = delete;
    auto operator=(live_walk const&) -> live_walk& = delete;

    /// Takes a round: whole records of the file. `begin` is the TSC when its reading began; 0:
    /// unknown.
    void add_round(std::vector<std::uint8_t> const& records, std::uint64_t begin = 0) {
        rounds_.emplace_back();
        auto& now = rounds_.back();
        now.begin = begin;
        now.bytes.assign(head_.begin(), head_.begin() + static_cast<std::ptrdiff_t>(head_size_));
        now.bytes.insert(now.bytes.end(), records.begin(), records.end());
        auto const limit = last_time_;
        if (!records.empty()) { read(now); }
        apply(limit);
        if (rounds_.size() <= delay) { return; }
        walk(rounds_.front());
        print(rounds_.front(), ~std::uint64_t{0});
        report_->flush();
        out_.flush();
        rounds_.pop_front();
    }
    /// Prints the rest, and on stderr what is not known. Returns whether all is known.
    auto finish() -> bool {
        for (std::size_t i = 0; i < delay; ++i) { add_round({}); }
        apply(~std::uint64_t{0});
        for (auto& [idx, one] : streams_) {
            one.walk->end();
            report_->found.has_psb = report_->found.has_psb && one.walk->has_psb();
        }
        print({.begin = ~std::uint64_t{0}}, ~std::uint64_t{0});
        report_->end();
        out_.flush();
        if (late_ != 0) {
            tool::print_error(std::to_string(late_) +
                              " records came too late: threads or code may be wrong");
        }
        tool::walk_request asked;
        asked.what = what_;
        asked.to_ns = to_ns_;
        tool::print_summary(report_->found, asked);
        return report_->found.is_complete() && late_ == 0;
    }

private:
    static constexpr std::size_t delay = 2;  // rounds

    /// Bytes of a stream; empty: trace is missing.
    struct piece {
        std::uint32_t idx = 0;  ///< of the stream
        byte_view bytes{};
        std::uint64_t offset = 0;                  ///< in the stream
        std::uint64_t latest = ~std::uint64_t{0};  ///< upper bound of the times; ns of perf
    };
    struct known_stream {
        trace_file::stream of{};
        std::unique_ptr<walked_stream> walk{};  ///< from its first bytes on
    };
    struct round {
        std::vector<std::uint8_t> bytes{};
        std::vector<piece> pieces{};
        std::uint64_t begin = 0;      ///< TSC; 0: not known
        std::uint64_t last_time = 0;  ///< of a record of the rounds before
    };

    [[nodiscard]] auto input_of(std::vector<std::uint8_t> const& bytes) const
        -> file::perf_data::input {
        auto made = file::perf_data::open({head_.data(), head_.size()});
        made.bytes = {bytes.data(), bytes.size()};
        made.data_begin = head_size_;
        made.data_end = bytes.size();
        made.is_cut = false;
        std::fill(std::begin(made.features), std::end(made.features), 0);
        return made;
    }
    void read(round& to) {
        namespace perf_data = file::perf_data;
        to.last_time = last_time_;
        auto const in = input_of(to.bytes);
        auto from = perf_data::records(in);
        while (auto const one = from.next()) {
            if (auto const trace = perf_data::read_as<perf_data::auxtrace_record>(one)) {
                add_stream(trace.value);
                to.pieces.push_back({trace->idx, one.trace, trace->offset});
                continue;
            }
            if (auto const about = perf_data::read_as<perf_data::aux_record>(one)) {
                take(about.value, one, to);
            }
            order_.add(one);
            if (one.id.has.get<perf_data::sample_type::TIME>()) {
                last_time_ = std::max(last_time_, one.id.time);
            }
        }
    }
    void add_stream(file::perf_data::auxtrace_record const& of) {
        auto const [at, is_new] = streams_.try_emplace(of.idx);
        if (!is_new) { return; }
        auto& made = at->second.of;
        made.number = made.idx = of.idx;
        if (of.cpu != file::perf_data::no_cpu) { made.cpu = of.cpu; }
        if (of.tid != file::perf_data::no_tid) { made.tid = of.tid; }
        made.reference = of.reference;
        made.how = how_;
    }
    /// The stream of an event, which is of a thread or of a processor.
    [[nodiscard]] auto stream_of(file::perf_data::sample_id const& event) const
        -> std::optional<std::uint32_t> {
        for (auto const& [idx, one] : streams_) {
            bool const is_same = one.of.cpu ? one.of.cpu == event.cpu
                                            : one.of.tid == event.thread.tid;
            if (is_same) { return idx; }
        }
        return std::nullopt;
    }
    /// Takes an AUX record, which follows the bytes that it describes.
    void take(file::perf_data::aux_record const& about, file::perf_data::record const& one,
              round& to) {
        using flags = file::perf_data::aux_flags;
        auto const idx = stream_of(one.id);
        if (!idx) { return; }
        for (auto i = to.pieces.rbegin(); i != to.pieces.rend(); ++i) {
            if (i->idx != *idx) { continue; }
            if (i->latest != ~std::uint64_t{0}) { break; }
            // The bytes after those of the AUX record are the PADs of the file.
            auto const pads = i->offset + i->bytes.size() - about.aux_offset - about.aux_size;
            if (pads < 8) { i->bytes = i->bytes.first(i->bytes.size() - pads); }
            i->latest = one.id.time;
        }
        flags const seen = about.flags;
        if (seen.get<flags::TRUNCATED>() || seen.get<flags::COLLISION>()) {
            to.pieces.push_back({.idx = *idx});
        }
    }
    void apply(std::uint64_t limit) {
        order_.take_up_to(limit, [&](file::perf_data::record const& one) {
            if (one.id.time < applied_ && one.id.time != 0) {
                ++late_;
                return;
            }
            applied_ = std::max(applied_, one.id.time);
            processes_->take(one);
        });
        if (!processes_->update_names()) { return; }
        report_->update_names();
        for (auto& [idx, one] : streams_) {
            if (one.walk) { one.walk->update_names(); }
        }
    }
    /// Walks the bytes of a round in the order of time: next, those of the stream with the lowest
    /// time. Prints after each step, so that few reports are in memory.
    void walk(round& of) {
        std::map<walked_stream*, std::deque<piece*>> left;
        for (auto& one : of.pieces) {
            auto& [about, to] = streams_.at(one.idx);
            if (to == nullptr) {
                to = std::make_unique<walked_stream>(about, *processes_, blocks_, *report_);
            }
            to->find_psb(one.bytes);
            report_->found.bytes += one.bytes.size();
            left[to.get()].push_back(&one);
        }
        constexpr std::size_t most = 4096;  // bytes of a step
        while (!left.empty()) {
            auto const next = std::min_element(left.begin(), left.end(), [&](auto& one, auto& two) {
                return one.first->last_time() < two.first->last_time();
            });
            auto& to = *next->first;
            auto& now = *next->second.front();
            if (now.bytes.empty()) {
                to.add_gap();
            } else {
                to.add(now.bytes.first(most), now.latest);
                now.bytes = now.bytes.from(std::min(most, now.bytes.size()));
            }
            if (now.bytes.empty()) { next->second.pop_front(); }
            if (next->second.empty()) { left.erase(next); }
            std::uint64_t until = ~std::uint64_t{0};
            for (auto const& [stream, pieces] : left) {
                until = std::min(until, stream->last_time());
            }
            print(of, until);
        }
        forget_before();
    }
    void forget_before() {
        std::uint64_t until = ~std::uint64_t{0};
        for (auto const& [idx, one] : streams_) {
            until = std::min(until, one.walk == nullptr ? 0 : one.walk->last_time());
        }
        if (to_ns_.is_known() && !streams_.empty()) { processes_->forget_before(to_ns_.ns(until)); }
    }
    /// Prints the parts that begin up to the TSC `until`, in the order of time. A part that begins
    /// after the round was read waits for the next round, which may have an earlier part of its
    /// thread, on another processor.
    void print(round const& of, std::uint64_t until) {
        auto const shows = [](trace::time const&) { return true; };
        for (;;) {
            walked_stream* next = nullptr;
            for (auto& [idx, one] : streams_) {
                if (one.walk == nullptr || one.walk->parts().empty()) { continue; }
                auto const& part = one.walk->parts().front();
                bool const is_first = next == nullptr || part.begin < next->parts().front().begin;
                if (is_first || part.continues) { next = one.walk.get(); }
                if (part.continues) { break; }
            }
            if (next == nullptr) { break; }
            auto const& part = next->parts().front();
            bool const is_later = part.begin > of.begin && to_ns_.is_known() &&
                                  to_ns_.ns(part.begin) > of.last_time;
            if (!part.continues && (is_later || part.begin > until)) { break; }
            part.all.replay(*report_, shows);
            next->parts().pop_front();
        }
    }

    std::vector<std::uint8_t> head_;
    std::size_t head_size_ = 0;
    tool::output& out_;
    trace_file::recording how_{};
    trace_file::conversion to_ns_{};
    traced::binaries files_;
    std::string what_;
    std::unique_ptr<traced::processes> processes_{};
    std::unique_ptr<reports::report> report_{};
    traced::record_order order_{};
    std::uint64_t last_time_ = 0;  ///< of the records so far
    std::uint64_t applied_ = 0;
    std::uint64_t late_ = 0;
    std::deque<round> rounds_{};
    std::vector<flow::block> storage_ = std::vector<flow::block>(std::size_t{1} << 16);
    flow::block_cache blocks_{storage_.data(), storage_.size()};
    std::map<std::uint32_t, known_stream> streams_{};  ///< by idx
};

}  // namespace pt_trace
