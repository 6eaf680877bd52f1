// SPDX-License-Identifier: BSL-1.0
#pragma once

// pt_dump --chrome-trace: a timeline in the trace event format, which Perfetto and chrome://tracing
// open. Every input is a process with a track of traced intervals and one of address spaces, and
// with a track of the calls of each thread.

#include "calls.hpp"
#include "events.hpp"

#include <ptspec/ptspec.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pt_dump {

/// The text before and after the events of all inputs.
inline void begin_chrome_trace(output& out) {
    out.text() += R"({"displayTimeUnit":"ns","traceEvents":[)";
}
inline void end_chrome_trace(output& out, timeline_state const& of) {
    out.text() += "\n],\"otherData\":{\"producer\":\"ptspec pt_dump\",\"ts\":\"";
    out.text() += !of.has_ns     ? "TSC ticks / 1000: --tsc-hz or --perf-clock gives microseconds"
                  : of.has_ticks ? "microseconds of the given clock, or TSC ticks / 1000"
                                 : "microseconds of the given clock";
    out.text() += "\"}}\n";
}

/// Says what has no slice of its own.
inline void report_slices(timeline_state const& of) {
    auto const say = [](std::string const& text) { tool::print_error(text); };
    auto const number = [](std::uint64_t value) { return std::to_string(value); };
    if (of.calls != of.slices) {
        say(number(of.calls) + " calls and gaps are merged into " + number(of.slices) +
            " slices: by --max-slices");
    }
    if (of.calls_left_out != 0) {
        say("left out: " + number(of.calls_left_out) +
            " calls at levels above those that have slices");
    }
    if (of.threads_left_out != 0) {
        say("left out: the calls of " + number(of.threads_left_out) +
            " threads: too many in a stream");
    }
}

/// Writes the events of one input.
class chrome_tracer {
public:
    static constexpr std::size_t piece_bytes = std::size_t{1} << 17;
    static constexpr bool is_splittable = false;

    chrome_tracer(settings const& how, output& out) : how_{how}, out_{out} {
        if (how.calls == nullptr) { return; }
        calls_.emplace(how);
        auto const is_same = [this](calls::moment const& one, calls::moment const& two) {
            return place_of(one) == place_of(two);
        };
        calls_->pass_on_to({[this] { return has_scale_; }, is_same,
                            [this](calls::bar const& one) { write_call(one); }});
    }
    chrome_tracer(chrome_tracer const&) = delete;
    auto operator=(chrome_tracer const&) -> chrome_tracer& = delete;

    void begin(std::string_view name) {
        (how_.to_ns.is_known() ? how_.shared->has_ns : how_.shared->has_ticks) = true;
        name_process("process_name", name);
        name_thread(flow_track, "control flow");
        name_thread(space_track, "address space");
    }
    [[nodiscard]] auto reader() const { return event_reader_for<trace::clock>(how_); }
    [[nodiscard]] auto reader_after(trace::event_reader<trace::clock> const& before,
                                    trace_file::gap const& which) {
        begin_ = which.offset;
        if (calls_) { calls_->skip_gap(); }
        if (has_scale_) {
            write_gap(which);
        } else {
            early_.push_back({{}, false, which, {}});
        }
        return event_reader_after_gap(before, how_);
    }
    void tell(trace_file::partial const& which) {
        if (has_scale_) {
            write_partial(which);
        } else {
            early_.push_back({{}, false, {}, which});
        }
    }

    /// The bytes that `read` reads next.
    void walk(byte_view bytes) {
        if (calls_) { calls_->feed(bytes); }
    }
    template <class Reader>
    void read(Reader& reader) {
        for (auto one = reader.next(); one; one = reader.next()) {
            one.offset += begin_;
            totals_.count(one.what);
            auto const state = reader.state().enabled;
            bool const is_on = state == trace::tracing::on || state == trace::tracing::entering;
            add(one, is_on, one.when.is_absolute() && !one.when.is_guest);
        }
    }

    [[nodiscard]] auto end(std::uint64_t bytes) -> status {
        if (!has_scale_) { choose_scale(false); }
        count_until(now_ / ticks_per_bin + 1);
        if (is_open_) { end_slice(flow_track); }
        if (has_space_) { end_slice(space_track); }
        if (calls_) {
            write_calls();
            how_.found->add(calls_->found().summary(bytes));
        }
        return totals_.result();
    }

private:
    static constexpr unsigned flow_track = 1;
    static constexpr unsigned space_track = 2;
    static constexpr unsigned first_call_track = 3;
    /// Branches are counted in bins of 10 units of `ts`.
    static constexpr std::uint64_t ticks_per_bin = 10'000;
    /// The maximum number of events that wait for the first TSC, and then have its time.
    static constexpr std::size_t max_early = 4096;

    struct moment {
        trace::event event;
        bool is_on;                            ///< after the event, tracing is on
        std::optional<trace_file::gap> gap{};  ///< this, and no event
        std::optional<trace_file::partial> partial{};
    };

    // ------------------------------------------------------------------------------ time

    /// Writes an event, or keeps it until the first TSC: times before it are relative.
    void add(trace::event const& one, bool is_on, bool is_absolute) {
        if (!has_scale_) [[unlikely]] {
            if (!is_absolute && early_.size() < max_early) {
                early_.push_back({one, is_on, {}, {}});
                return;
            }
            if (is_absolute) { now_ = first_ = ticks_of(one); }
            choose_scale(is_absolute);
        }
        move_to(one);
        write(one, is_on);
    }
    void choose_scale(bool is_absolute) {
        has_scale_ = true;
        has_tsc_ = is_absolute;
        if (!has_tsc_) {
            name_process("process_labels", "without TSC packets: ts is the offset in bytes / 1000");
        }
        for (auto const& one : early_) {
            if (one.gap) {
                write_gap(*one.gap);
                continue;
            }
            if (one.partial) {
                write_partial(*one.partial);
                continue;
            }
            if (!has_tsc_) { move_to(one.event); }
            write(one.event, one.is_on);
        }
        early_ = {};
    }
    [[nodiscard]] auto ticks_of(trace::event const& one) const -> std::uint64_t {
        return how_.to_ns.is_known() ? how_.to_ns.ns(one.when.tsc) : one.when.tsc;
    }
    /// Moves the time to that of an event, but not back.
    void move_to(trace::event const& one) {
        if (has_tsc_ && one.when.is_guest) { return; }  // it is no time of the host
        std::uint64_t const here = has_tsc_ ? ticks_of(one) : one.offset;
        if (here > now_) { now_ = here; }
    }

    // ------------------------------------------------------------------------------ events

    void write(trace::event const& event, bool is_on) {
        using enum trace::event_type;
        bool const ends = is_open_ && !is_on;
        // A damage has no IP. The event of its packet does.
        if (!is_open_ && is_on && event.what != damage) {
            begin_slice(flow_track, "traced");
            auto fields = args();
            fields.number("offset", event.offset);
            if (event.has_ip || event.has_to) {
                fields.hex("ip", event.has_ip ? event.ip : event.to);
            }
            finish_args();
            is_open_ = true;
        }
        switch (event.what) {
            case branches: count(event.branches().count); break;
            case indirect_branch: count(1); break;
            case paging: change_space(event.packet.as<packet::pip>()); break;
            case frequency: change_frequency(event.packet.as<packet::cbr>()); break;
            case enabled:
            case disabled:
            case vmcs:
            case exec_mode:
            case transaction:
            case resumed:
            case pebs_group:
            case pebs_item:
            case maintenance:
            case synced:
            case unknown:
            case need_input:
            case end: break;
            default: mark(event);
        }
        if (ends) {
            end_slice(flow_track);
            is_open_ = false;
        }
        out_.line_done();
    }
    /// Writes a gap, which ends the traced interval.
    void write_gap(trace_file::gap const& which) {
        if (!has_tsc_ && which.offset > now_) { now_ = which.offset; }
        if (is_open_) { end_slice(flow_track); }
        is_open_ = false;
        begin_event("i", flow_track, "gap");
        out_.text() += R"(,"s":"t")";
        auto fields = args();
        fields.number("offset", which.offset);
        if (which.missing) { fields.number("missing", *which.missing); }
        if (!which.reason.empty()) { fields.string("aux", which.reason); }
        finish_args();
    }
    void write_partial(trace_file::partial const& which) {
        if (!has_tsc_ && which.offset > now_) { now_ = which.offset; }
        begin_event("i", flow_track, "partial");
        out_.text() += R"(,"s":"t")";
        auto fields = args();
        fields.number("offset", which.offset);
        fields.number("size", which.size);
        finish_args();
    }
    void mark(trace::event const& event) {
        begin_event("i", flow_track, name(event.what));
        out_.text() += R"(,"s":"t")";
        auto fields = args();
        fields.number("offset", event.offset);
        add_fields(fields, event);
        if (event.broken != rule::none) { fields.string("text", text_of(event.broken)); }
        finish_args();
    }
    void change_space(packet::pip which) {
        if (has_space_ && space_ == which) { return; }
        if (has_space_) { end_slice(space_track); }
        has_space_ = true;
        space_ = which;
        std::string title = which.get<packet::pip::NR>() ? "guest cr3 0x" : "cr3 0x";
        detail::append_digits(title, which.get<packet::pip::CR3>(), 16);
        begin_slice(space_track, title);
        auto fields = args();
        fields.hex("cr3", which.get<packet::pip::CR3>());
        fields.number("nr", which.get<packet::pip::NR>());
        finish_args();
    }
    void change_frequency(packet::cbr which) {
        auto const ratio = which.get<packet::cbr::CoreBusRatio>();
        if (has_ratio_ && ratio_ == ratio) { return; }
        has_ratio_ = true;
        ratio_ = ratio;
        counter("core:bus ratio", "ratio", now_, ratio);
    }

    // ------------------------------------------------------------------------------ branches

    void count(std::uint64_t number) {
        count_until(now_ / ticks_per_bin);
        bin_ = now_ / ticks_per_bin;
        branches_ += number;
    }
    /// Writes the counter of the last bin with branches, when it is before this one.
    void count_until(std::uint64_t bin) {
        if (branches_ == 0 || bin_ >= bin) { return; }
        counter("branches", "branches", std::max(bin_ * ticks_per_bin, first_), branches_);
        branches_ = 0;
        // The counter is 0 up to the next branches, or after the last.
        bool const is_last = bin > now_ / ticks_per_bin;
        constexpr std::uint64_t last_bin = ~std::uint64_t{0} / ticks_per_bin;
        if ((bin_ + 1 < bin || is_last) && bin_ < last_bin) {
            counter("branches", "branches", (bin_ + 1) * ticks_per_bin, 0);
        }
    }

    // ------------------------------------------------------------------------------ calls

    /// A place in the unit of `now_`, and 1/1000 of it.
    struct call_place {
        std::uint64_t whole;
        std::uint64_t fraction;

        friend auto operator==(call_place const&, call_place const&) -> bool = default;
    };
    [[nodiscard]] auto place_of(calls::moment const& at) const -> call_place {
        constexpr std::uint64_t one = std::uint64_t{1} << calls::fraction_bits;
        auto const value = has_tsc_ ? at.time : at.offset;
        auto whole = value / one;
        auto fraction = value % one * 1000 / one;
        if (!has_tsc_) { return {whole, fraction}; }
        whole += calls_->found().first_time();
        if (how_.to_ns.is_known()) {
            auto const first = how_.to_ns.ns(whole);
            fraction *= how_.to_ns.ns(whole + 1) - first;
            return {first + fraction / 1000, fraction % 1000};
        }
        return {whole, fraction};
    }
    void write_calls() {
        calls_->finish();
        auto const& found = calls_->found();
        for (std::size_t i = 0; i < found.threads().size(); ++i) {
            auto const label = calls::label_of(found.threads()[i]);
            name_thread(first_call_track + static_cast<unsigned>(i),
                        label.empty() ? "calls" : "calls " + label);
        }
        for (auto const& one : found.result().all()) { write_call(one); }
        how_.shared->calls_left_out += found.left_out();
        how_.shared->threads_left_out += found.threads_left_out();
    }
    void write_call(calls::bar const& one) {
        how_.shared->calls += one.count;
        how_.shared->slices += 1;
        auto const begin = place_of(one.begin);
        auto const end = place_of(one.end);
        auto const size = (end.whole - begin.whole) * 1000 + end.fraction - begin.fraction;
        begin_event_at("X", first_call_track + one.lane, calls_->title_of(one), begin.whole,
                       std::to_string(1000 + begin.fraction).substr(1));
        auto& out = out_.text();
        out += R"(,"dur":)";
        detail::append_digits(out, size / 1'000'000);
        out += '.';
        out += std::to_string(1'000'000 + size % 1'000'000).substr(1);
        auto fields = args();
        if (one.kind != calls::bar_kind::gap) { fields.number("instructions", one.instructions); }
        fields.number(one.kind == calls::bar_kind::gap ? "gaps" : "calls", one.count);
        if (one.kind == calls::bar_kind::system_call) { fields.string("kind", "system call"); }
        if (one.kind == calls::bar_kind::event) { fields.string("kind", "event"); }
        if (one.kind == calls::bar_kind::stopped) { fields.string("kind", "not traced"); }
        if (one.is_unsure) { fields.string("end", "uncertain: packets were lost"); }
        finish_args();
        out_.line_done();
    }

    // ------------------------------------------------------------------------------ JSON

    void next_object() {
        auto& out = out_.text();
        out += how_.shared->is_continued ? ",\n" : "\n";
        how_.shared->is_continued = true;
    }
    /// Units of 1/1000, with three digits after the point.
    void append_ts(std::uint64_t ticks) {
        auto& out = out_.text();
        detail::append_digits(out, ticks / 1000);
        auto const rest = std::to_string(1000 + ticks % 1000);
        out += '.';
        out.append(rest, 1);
    }
    void begin_event(std::string_view phase, unsigned track, std::string_view title) {
        begin_event_at(phase, track, title, now_);
    }
    /// `more` are digits of the time that follow those of `ticks`.
    void begin_event_at(std::string_view phase, unsigned track, std::string_view title,
                        std::uint64_t ticks, std::string_view more = {}) {
        next_object();
        auto& out = out_.text();
        out += R"({"ph":")";
        out += phase;
        out += R"(","pid":)";
        detail::append_digits(out, *how_.inputs);
        out += R"(,"tid":)";
        detail::append_digits(out, track);
        out += R"(,"ts":)";
        append_ts(ticks);
        out += more;
        if (title.empty()) { return; }
        out += R"(,"name":)";
        append_json_string(out, title);
    }
    auto args() -> json_fields {
        out_.text() += R"(,"args":{)";
        return json_fields{out_.text()};
    }
    void finish_args() { out_.text() += "}}"; }
    void begin_slice(unsigned track, std::string_view title) { begin_event("B", track, title); }
    void end_slice(unsigned track) {
        begin_event("E", track, "");
        out_.text() += '}';
    }
    void counter(std::string_view title, std::string_view series, std::uint64_t ticks,
                 std::uint64_t value) {
        begin_event_at("C", 0, title, ticks);
        auto fields = args();
        fields.number(series, value);
        finish_args();
    }
    void name_process(std::string_view what, std::string_view value) {
        begin_event("M", 0, what);
        auto fields = args();
        fields.string(what == "process_labels" ? "labels" : "name", value);
        finish_args();
    }
    void name_thread(unsigned track, std::string_view value) {
        begin_event("M", track, "thread_name");
        auto fields = args();
        fields.string("name", value);
        finish_args();
    }

    settings const& how_;
    output& out_;
    std::uint64_t begin_ = 0;  ///< offset of the reader's first byte in the trace
    event_totals totals_{};
    std::optional<trace_calls> calls_{};
    std::vector<moment> early_{};
    bool has_scale_ = false;
    bool has_tsc_ = false;
    std::uint64_t now_ = 0;  ///< the time of the last event, in 1/1000 of the unit of `ts`
    std::uint64_t first_ = 0;
    bool is_open_ = false;  ///< the slice of a traced interval
    bool has_space_ = false;
    packet::pip space_{};
    bool has_ratio_ = false;
    std::uint64_t ratio_ = 0;
    std::uint64_t bin_ = 0;
    std::uint64_t branches_ = 0;
};

}  // namespace pt_dump
