// SPDX-License-Identifier: BSL-1.0
#pragma once

// The page: its data as JSON, and the HTML around it.

#include "stream.hpp"
#include "page/calls.hpp"
#include "page/markup.hpp"
#include "page/script.hpp"
#include "page/style.hpp"
#include "../common/json.hpp"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace timeline {

/// Appends the numbers of a column as JSON: `[3,-2,5]` is 3, two zeros, 5.
class column {
public:
    column(json::json_fields& fields, std::string& out, std::string_view name) : out_{out} {
        fields.begin(name);
        out_ += '[';
    }
    column(column const&) = delete;
    auto operator=(column const&) -> column& = delete;
    ~column() {
        end_zeros();
        out_ += ']';
    }

    void add(std::uint64_t value) {
        if (value == 0) {
            zeros_ += 1;
        } else {
            end_zeros();
            append(value);
        }
    }

private:
    void end_zeros() {
        if (zeros_ == 0) { return; }
        auto const zeros = static_cast<std::int64_t>(zeros_);
        append(zeros == 1 ? 0 : -zeros);
        zeros_ = 0;
    }
    template <class Number>
    void append(Number value) {
        char digits[24];
        if (out_.back() != '[') { out_ += ','; }
        out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    }

    std::string& out_;
    std::uint64_t zeros_ = 0;
};

/// The differences of consecutive values, which are wanted in order. A value that is lower than the
/// one before counts as equal to it.
class ascending {
public:
    explicit ascending(std::uint64_t first) : last_{first} {}

    auto step(std::uint64_t value) -> std::uint64_t {
        std::uint64_t const by = value > last_ ? value - last_ : 0;
        last_ += by;
        return by;
    }

private:
    std::uint64_t last_;
};

/// Appends the data of the page.
class page_data {
public:
    page_data(std::string& out, std::string_view title, trace::clock_options const& clock,
              std::uint64_t tsc_hz)
        : out_{out}, fields_{out} {
        out_ += '{';
        fields_.string("title", title);
        fields_.number("tsc_hz", tsc_hz);
        fields_.number("tsc_ratio", clock.tsc_numerator != 0 ? 1 : 0);
        fields_.number("non_turbo", clock.max_non_turbo_ratio);
        list("lanes", lane_names, [](std::string_view name) { return name; });
        list("types", event_types, events::name_of);
        list("type_lanes", event_types, [](trace::event_type which) {
            auto const place = lane_of(which);
            return place == lane::none ? "" : lane_names[static_cast<std::size_t>(place)];
        });
        fields_.begin("streams");
        out_ += '[';
    }
    /// Adds a trace. `calls` is the text that `call_lanes` appends for it; empty: without calls.
    void add(stream const& one, std::string_view calls) {
        if (out_.back() != '[') { out_ += ','; }
        out_ += '{';
        fields_.string("name", one.name());
        fields_.string("label", one.label);
        fields_.number("bytes", one.bytes());
        fields_.number("timed", one.is_timed() ? 1 : 0);
        fields_.number("ordered", one.is_only_ordered() ? 1 : 0);
        fields_.number("read", one.is_read() ? 1 : 0);
        fields_.string("first_time", std::to_string(one.first_time()));  // above 2^53
        fields_.number("ticks", one.last_time() - one.first_time());
        fields_.number("cycles", one.cycles());
        fields_.number("unused_cycs", one.unused_cycs());
        fields_.number("skipped", one.skipped());
        fields_.number("times_back", one.times_back());
        fields_.number("gaps", one.gaps());
        fields_.number("told_gaps", one.told_gaps());
        fields_.number("partials", one.partials());
        fields_.number("conditional", one.conditional_branches());
        add_counts(one);
        add_slices(one);
        add_states(one);
        add_events(one);
        if (!calls.empty()) {
            fields_.begin("calls");
            out_ += calls;
        }
        out_ += '}';
    }
    void end() { out_ += "]}"; }

private:
    template <class Rows, class Text>
    void list(std::string_view name, Rows const& rows, Text const& text) {
        fields_.begin(name);
        out_ += '[';
        for (auto const& row : rows) {
            if (out_.back() != '[') { out_ += ','; }
            json::append_json_string(out_, text(row));
        }
        out_ += ']';
    }

    void add_counts(stream const& one) {
        fields_.open("packets");
        for (unsigned i = 0; i < packet::kind_count; ++i) {
            auto const which = static_cast<packet::kind>(i);
            auto const count = one.packets().of(which);
            if (count != 0) { fields_.number(listing::name(which), count); }
        }
        out_ += '}';
        fields_.open("counts");
        for (std::size_t i = 0; i < event_type_count; ++i) {
            auto const count = one.count(static_cast<trace::event_type>(i));
            if (count != 0) {
                fields_.number(events::name_of(static_cast<trace::event_type>(i)), count);
            }
        }
        out_ += '}';
    }

    template <class Value>
    void add_column(std::string_view name, std::vector<slice> const& all, Value const& value) {
        column to{fields_, out_, name};
        for (auto const& one : all) { to.add(value(one)); }
    }
    void add_slices(stream const& one) {
        auto const& all = one.parts().all();
        fields_.number("slice_bytes", one.parts().bytes_of_slice());
        fields_.number("slices", all.size());
        fields_.open("columns");
        if (one.is_timed()) {
            ascending times{one.first_time()};
            add_column("time", all, [&](slice const& s) { return times.step(s.time); });
            add_column("on_ticks", all, [](slice const& s) { return s.on_ticks; });
        }
        add_column("on_bytes", all, [](slice const& s) { return s.on_bytes; });
        add_column("conditional", all, [](slice const& s) { return s.conditional; });
        add_column("indirect", all, [](slice const& s) { return s.indirect; });
        if (one.cycles() != 0) {
            add_column("cycles", all, [](slice const& s) { return s.cycles; });
        }
        for (std::size_t i = 0; i < lanes; ++i) {
            if (one.lane_count(i) == 0) { continue; }
            add_column(lane_names[i], all, [i](slice const& s) { return s.events[i]; });
        }
        out_ += '}';
        // Pairs of a value and the number of slices that have it.
        fields_.begin("slice_contexts");
        out_ += '[';
        for (std::size_t i = 0; i < all.size();) {
            std::size_t end = i + 1;
            while (end < all.size() && all[end].context == all[i].context) { ++end; }
            append_number(all[i].context);
            append_number(end - i);
            i = end;
        }
        out_ += ']';
        fields_.begin("contexts");
        out_ += '[';
        for (std::uint64_t const value : one.contexts()) {
            if (out_.back() != '[') { out_ += ','; }
            out_ += '"';
            char digits[16];
            out_.append(digits, std::to_chars(digits, digits + sizeof digits, value, 16).ptr);
            out_ += '"';
        }
        out_ += ']';
    }
    void append_number(std::uint64_t value) {
        if (out_.back() != '[') { out_ += ','; }
        out_ += std::to_string(value);
    }

    void add_states(stream const& one) {
        fields_.open("states");
        add_changes("tracing", one.tracing(), one);
        add_changes("context", one.context(), one);
        add_changes("ratio", one.ratio(), one);
        add_changes("power", one.power(), one);
        out_ += '}';
    }
    void add_changes(std::string_view name, changes const& of, stream const& from) {
        fields_.open(name);
        fields_.number("count", of.count);
        add_places(of.first, from);
        {
            column values{fields_, out_, "value"};
            for (auto const& one : of.first) { values.add(one.value); }
        }
        out_ += '}';
    }
    template <class Row>
    void add_places(std::vector<Row> const& rows, stream const& from) {
        {
            // Events that wait for their IP can be listed after events that begin later.
            ascending offsets{0};
            column to{fields_, out_, "offset"};
            for (auto const& one : rows) { to.add(offsets.step(one.offset)); }
        }
        if (!from.is_timed()) { return; }
        ascending times{from.first_time()};
        column to{fields_, out_, "time"};
        for (auto const& one : rows) { to.add(times.step(one.time)); }
    }

    void add_events(stream const& one) {
        fields_.open("events");
        add_places(one.events(), one);
        {
            column to{fields_, out_, "type"};
            for (auto const& each : one.events()) { to.add(static_cast<std::uint64_t>(each.what)); }
        }
        add_texts("ip", one, &listed_event::ip);
        add_texts("to", one, &listed_event::to);
        add_texts("text", one, &listed_event::text);
        out_ += '}';
    }
    /// Writes a text of each event; 0 for an empty one.
    void add_texts(std::string_view name, stream const& from, std::string listed_event::* text) {
        fields_.begin(name);
        out_ += '[';
        for (auto const& one : from.events()) {
            if (out_.back() != '[') { out_ += ','; }
            if ((one.*text).empty()) {
                out_ += '0';
            } else {
                json::append_json_string(out_, one.*text);
            }
        }
        out_ += ']';
    }

    std::string& out_;
    json::json_fields fields_;
};

/// A text as the content of an HTML element.
inline auto escaped_html(std::string_view text) -> std::string {
    std::string out;
    for (char const letter : text) {
        auto const byte = static_cast<unsigned char>(letter);
        if (letter == '<') {
            out += "&lt;";
        } else if (letter == '&') {
            out += "&amp;";
        } else {
            out += byte < ' ' || byte > '~' ? '?' : letter;  // the script sets the exact title
        }
    }
    return out;
}

/// JSON within a script element: `<` cannot begin a tag or a comment.
inline auto escaped_json(std::string_view text) -> std::string {
    std::string out;
    out.reserve(text.size() + text.size() / 64);
    for (char const letter : text) {
        if (letter == '<') {
            out += "\\u003c";
        } else {
            out += letter;
        }
    }
    return out;
}

/// Writes the page.
template <class Output>
void write_page(Output& to, std::string_view title, std::string_view data) {
    to.write(markup::before_title);
    to.write(escaped_html(title));
    to.write(markup::before_style);
    to.write(style);
    to.write(markup::before_data);
    to.write(escaped_json(data));
    to.write(markup::before_script);
    to.write(script_of_data);
    to.write(script_of_view);
    to.write(script_of_calls);
    to.write(script_of_input);
    to.write(markup::end);
}

}  // namespace timeline
