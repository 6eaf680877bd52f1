// SPDX-License-Identifier: BSL-1.0
#pragma once

// pt_dump --events: what happened, one event a line.

#include "report.hpp"
#include "../common/event_fields.hpp"

#include <ptspec/ptspec.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace pt_dump {

/// The name of an event in a listing. Events that are not of the processor begin with `!` there,
/// and have the names of the packet listing.
inline auto name(trace::event_type what) -> std::string_view {
    switch (what) {
        case trace::event_type::synced: return "sync";
        case trace::event_type::resynced: return "resync";
        case trace::event_type::lost: return "nosync";
        default: return events::name_of(what);
    }
}

using events::add_fields;
using listing::text_of;

/// Counts the events of a trace.
struct event_totals {
    std::uint64_t events = 0;
    std::uint64_t errors = 0;
    std::uint64_t resyncs = 0;
    bool is_lost = false;  ///< no PSB, or none after damage

    void count(trace::event_type what) {
        using enum trace::event_type;
        is_lost = is_lost || what == lost;
        errors += what == damage;
        resyncs += what == resynced;
        events += what != damage && what != note && what != synced && what != resynced &&
                  what != lost;
    }
    [[nodiscard]] auto result() const -> status {
        return errors != 0 ? damaged : is_lost ? no_psb : clean;
    }
};

/// A reader of events. `Clock` is `trace::clock`, or `trace::no_clock` for events without time.
template <class Clock>
auto event_reader_for(settings const& how) -> trace::event_reader<Clock> {
    if constexpr (std::is_same_v<Clock, trace::clock>) {
        return trace::event_reader<Clock>{Clock{how.clock}, how.quirks, {}, how.how};
    } else {
        return trace::event_reader<Clock>{Clock{}, how.quirks, {}, how.how};
    }
}

/// A reader that continues after a gap, at the next PSB.
template <class Clock>
auto event_reader_after_gap(trace::event_reader<Clock> const& before, settings const& how)
    -> trace::event_reader<Clock> {
    auto clock = before.clock();
    clock.lose();
    return trace::event_reader<Clock>{clock, how.quirks};
}

/// Prints every event as a line.
template <class Clock>
class event_lister {
public:
    static constexpr std::size_t piece_bytes = std::size_t{1} << 17;
    /// The state of the processor continues across PSBs.
    static constexpr bool is_splittable = false;

    event_lister(settings const& how, output& out) : how_{how}, out_{out}, places_{how.places} {}

    void begin(std::string_view name) { append_file(out_, how_, name); }
    [[nodiscard]] auto reader() const { return event_reader_for<Clock>(how_); }
    [[nodiscard]] auto reader_after(trace::event_reader<Clock> const& before,
                                    trace_file::gap const& which) {
        append_gap(out_, how_, which);
        places_.lose();
        begin_ = which.offset;
        return event_reader_after_gap(before, how_);
    }
    void tell(trace_file::partial const& which) { append_partial(out_, how_, which); }

    template <class Reader>
    void read(Reader& reader) {
        for (auto one = reader.next(); one; one = reader.next()) {
            one.offset += begin_;
            auto const before = places_.state();
            if (loses_packets(one.what)) { places_.lose(); }
            places_.take(one);
            if (!is_mark(one.what) && !places_.takes()) { continue; }
            totals_.count(one.what);
            how_.json ? print_json(one, before) : print_text(one, before);
        }
    }

    [[nodiscard]] auto end(std::uint64_t bytes) -> status {
        how_.found->bytes += bytes;
        how_.found->printed += totals_.events;
        how_.found->elsewhere += places_.left_out();
        auto& out = out_.text();
        if (how_.json) {
            out += '{';
            json_fields fields{out};
            fields.number("offset", bytes);
            fields.string("event", "end");
            add_totals(fields);
            out += "}\n";
        } else {
            listing::append_offset(out, bytes);
            out += " !end";
            listing::text_fields fields{out};
            add_totals(fields);
            out += '\n';
        }
        return totals_.result();
    }

private:
    static constexpr bool is_timed = std::is_same_v<Clock, trace::clock>;

    static auto is_mark(trace::event_type what) -> bool {
        using enum trace::event_type;
        return what == damage || what == note || what == synced || what == resynced || what == lost;
    }
    static auto loses_packets(trace::event_type what) -> bool {
        using enum trace::event_type;
        return what == damage || what == resynced || what == lost || what == overflow;
    }
    /// Adds the name of a transition between host and guest, which changes NR.
    template <class Fields>
    void add_transition(Fields& fields, trace::event const& one,
                        trace::execution_state const& before) const {
        bool const is_guest = places_.state().non_root;
        if (one.what != trace::event_type::paging || one.is_status || !before.has_cr3) { return; }
        if (before.non_root != is_guest) { fields.string("vm", is_guest ? "entry" : "exit"); }
    }
    static auto has_rule(trace::event_type what) -> bool {
        return what == trace::event_type::damage || what == trace::event_type::note;
    }
    template <class Fields>
    void add_totals(Fields fields) const {
        fields.number("events", totals_.events);
        fields.number("errors", totals_.errors);
        fields.number("resyncs", totals_.resyncs);
        if (!how_.places.is_on()) { return; }
        fields.number("left_out", places_.left_out());
        fields.number("unknown", places_.unknown());
    }
    void print_text(trace::event const& one, trace::execution_state const& before) {
        auto& out = out_.text();
        listing::append_offset(out, one.offset);
        out += is_mark(one.what) ? " !" : " ";
        out += name(one.what);
        listing::text_fields fields{out};
        add_fields(fields, one);
        add_transition(fields, one, before);
        if (one.is_status) { fields.number("status", 1); }
        if constexpr (is_timed) { append_text_time(out, one.when, how_.to_ns); }
        if (has_rule(one.what)) { (out += ": ") += text_of(one.broken); }
        out += '\n';
        out_.line_done();
    }
    void print_json(trace::event const& one, trace::execution_state const& before) {
        auto& out = out_.text();
        out += '{';
        json_fields fields{out};
        fields.number("offset", one.offset);
        fields.string("event", name(one.what));
        add_fields(fields, one);
        add_transition(fields, one, before);
        if (one.is_status) { fields.number("status", 1); }
        if constexpr (is_timed) { append_json_time(fields, one.when, how_.to_ns); }
        if (has_rule(one.what)) { fields.string("text", text_of(one.broken)); }
        out += "}\n";
        out_.line_done();
    }

    settings const& how_;
    output& out_;
    std::uint64_t begin_ = 0;  ///< offset of the reader's first byte in the trace
    event_totals totals_{};
    tool::place_counter places_;
};

}  // namespace pt_dump
