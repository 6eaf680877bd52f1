// SPDX-License-Identifier: BSL-1.0
#pragma once

// pt_dump --streams: the streams of a file, and how they were recorded.

#include "report.hpp"
#include "../common/trace_file.hpp"

#include <ptspec/print/word.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace pt_dump {

namespace detail {

struct named_quirk {
    cpu::quirk which;
    std::string_view name;
};
/// The errata that matter to decoders.
inline constexpr named_quirk errata[] = {
    {cpu::quirk::bdm70, "bdm70"},   {cpu::quirk::bdm64, "bdm64"},   {cpu::quirk::skd007, "skd007"},
    {cpu::quirk::skd022, "skd022"}, {cpu::quirk::skd010, "skd010"}, {cpu::quirk::skl014, "skl014"},
    {cpu::quirk::apl12, "apl12"},   {cpu::quirk::apl11, "apl11"},   {cpu::quirk::skl168, "skl168"},
    {cpu::quirk::skz84, "skz84"},
};

inline auto errata_of(cpu::quirk_set all) -> std::string {
    std::string text;
    for (auto const& one : errata) {
        if (all.has(one.which)) { (text += text.empty() ? "" : ",") += one.name; }
    }
    return text;
}

/// Adds a string, or nothing when it is empty.
template <class Fields>
void add_known(Fields& fields, std::string_view name, std::string const& value) {
    if (value.empty()) {
        fields.nothing(name);
    } else {
        fields.string(name, value);
    }
}

/// Values have the form of the options that take them.
template <class Fields>
void add_config(Fields fields, trace_file::container const& file,
                trace_file::recording const& how) {
    auto const& clock = how.clock;
    fields.string("layout", file.layout);
    if (!how.is_known) { return; }
    fields.number("snapshot", how.is_snapshot);
    fields.number("tsc", how.has_tsc);
    fields.number("mtc", how.has_mtc);
    fields.number("cyc", how.has_cyc);
    fields.number("mtc_freq", clock.mtc_freq);
    fields.number("cyc_thresh", clock.cyc_thresh);
    add_known(fields, "tsc_ratio",
              clock.tsc_numerator == 0 ? ""
                                       : std::to_string(clock.tsc_numerator) + '/' +
                                             std::to_string(clock.tsc_denominator));
    if (clock.max_non_turbo_ratio != 0) {
        fields.number("non_turbo", clock.max_non_turbo_ratio);
    } else {
        fields.nothing("non_turbo");
    }
    add_known(fields, "cpu",
              !how.has_model
                  ? ""
                  : std::to_string(how.model.family) + '/' + std::to_string(how.model.model) + '/' +
                        std::to_string(how.model.stepping));
    add_known(fields, "errata", errata_of(clock.quirks));
    add_known(fields, "perf_clock",
              how.to_ns.mult == 0
                  ? ""
                  : std::to_string(how.to_ns.shift) + ',' + std::to_string(how.to_ns.mult) + ',' +
                        std::to_string(how.to_ns.zero));
}

/// IA32_RTIT_CTL, each field by its name, and what else the event says.
template <class Fields>
void add_ctl(Fields fields, trace_file::recording const& how) {
    fields.hex("value", how.ctl->raw);
    print::for_each_field(*how.ctl, [&](print::field_value const& one) {
        auto const name = one.facts->row.name;
        fields.number({name.data(), name.size()}, one.value);
    });
    if (how.unknown_config != 0) {
        fields.hex("unknown_config", how.unknown_config);
    } else {
        fields.nothing("unknown_config");
    }
    add_known(fields, "filter", tool::one_line(how.filter));
}

template <class Fields>
void add_stream(Fields fields, trace_file::stream const& one) {
    fields.number("idx", one.idx);
    if (one.cpu) {
        fields.number("cpu", *one.cpu);
    } else {
        fields.nothing("cpu");
    }
    if (one.tid) {
        fields.number("tid", *one.tid);
    } else {
        fields.nothing("tid");
    }
    fields.number("bytes", one.bytes());
    fields.number("pieces", one.records());
    fields.number("gaps", one.gaps());
    fields.number("recorded", one.recorded);
    fields.number("truncated", one.gaps_with("truncated"));
    fields.number("collision", one.gaps_with("collision"));
    fields.number("partial", one.partials());
    if (one.reference != 0) {
        fields.hex("reference", one.reference);
    } else {
        fields.nothing("reference");
    }
    add_known(fields, "comm", one.comm);
}

}  // namespace detail

/// Prints a line for each stream. The line of a configuration precedes the streams that have it.
inline void list_streams(trace_file::container const& file, settings const& how, output& out) {
    auto& text = out.text();
    trace_file::recording const* last = nullptr;
    append_file(out, how, file.name);
    for (auto const* one : file.selected(how.stream)) {
        bool const is_same = last != nullptr && *last == one->how;
        last = &one->how;
        if (how.json) {
            if (!is_same) {
                text += R"({"event":"config")";
                detail::add_config(json_fields{text}, file, one->how);
                text += "}\n";
                if (one->how.ctl) {
                    text += R"({"event":"ctl")";
                    detail::add_ctl(json_fields{text}, one->how);
                    text += "}\n";
                }
            }
            text += R"({"event":"stream")";
            json_fields{text}.number("stream", one->number);
            detail::add_stream(json_fields{text}, *one);
            text += "}\n";
        } else {
            if (!is_same) {
                text += "config";
                detail::add_config(listing::text_fields{text}, file, one->how);
                text += '\n';
                if (one->how.ctl) {
                    text += "ctl";
                    detail::add_ctl(listing::text_fields{text}, one->how);
                    text += '\n';
                }
            }
            text += "stream " + std::to_string(one->number);
            detail::add_stream(listing::text_fields{text}, *one);
            text += '\n';
        }
        out.line_done();
    }
}

}  // namespace pt_dump
