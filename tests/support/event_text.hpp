// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/made_stream.hpp>

#include <ptspec/trace/events.hpp>

#include <cstddef>
#include <iterator>
#include <string_view>

// Events as text, for tests.

namespace ptspec::test {

/// Text of bounded size that can be built and compared in constants.
struct short_text {
    char letters[1024] = {};
    std::size_t size = 0;

    constexpr auto add(std::string_view more) -> short_text& {
        for (char const one : more) { letters[size++] = one; }
        return *this;
    }
    constexpr auto add_hex(std::uint64_t value) -> short_text& {
        char digits[16] = {};
        unsigned count = 0;
        do {
            digits[count++] = "0123456789abcdef"[value % 16];
            value /= 16;
        } while (value != 0);
        while (count != 0) { letters[size++] = digits[--count]; }
        return *this;
    }
    friend constexpr auto operator==(short_text const& one, std::string_view two) -> bool {
        return std::string_view{one.letters, one.size} == two;
    }
};

constexpr auto name_of(trace::event_type which) -> std::string_view {
    constexpr std::string_view names[] = {
        "branches",   "indirect",  "enabled",   "disabled",   "async",    "async_disabled",
        "paging",     "vmcs",      "exec_mode", "tsx",        "overflow", "resumed",
        "stop",       "ptwrite",   "exstop",    "mwait",      "pwre",     "pwrx",
        "pebs_group", "pebs_item", "pebs_end",  "evd",        "cfe",      "trigger",
        "cbr",        "mnt",       "psb",       "damage",     "note",     "synced",
        "resynced",   "lost",      "unknown",   "need_input", "end"};
    static_assert(std::size(names) == underlying(trace::event_type::end) + 1);
    return names[underlying(which)];
}

/// One event: its name, `:` and its branches, `@` and its IP, `>` and its target, `'` if a PSB+
/// reports it, `!` and the broken rule.
constexpr void add_event(short_text& out, trace::event const& e) {
    out.add(test::name_of(e.what));
    if (e.what == trace::event_type::branches) {
        auto const all = e.branches();
        out.add(":");
        for (unsigned i = 0; i < all.count; ++i) { out.add(all.taken(i) ? "T" : "N"); }
    }
    if (e.has_ip) { out.add("@").add_hex(e.ip); }
    if (e.has_to) { out.add(">").add_hex(e.to); }
    if (e.is_status) { out.add("'"); }
    if (e.broken != rule::none) {
        unsigned const number = underlying(e.broken) % 1000U;
        out.add(underlying(e.broken) / 1000 == 4 ? "!GEN" : "!PKT");
        char const digits[] = {static_cast<char>('0' + number / 100),
                               static_cast<char>('0' + number / 10 % 10),
                               static_cast<char>('0' + number % 10)};
        out.add({digits, 3});
    }
}

/// The events of a stream in the notation of `made_stream`, without the last.
constexpr auto events_in(made_stream const& stream, cpu::quirk_set quirks = {}) -> short_text {
    short_text out;
    trace::event_reader<> from{stream.view(), {}, quirks};
    while (true) {
        auto const& e = from.next();
        if (e.what == trace::event_type::end) { return out; }
        if (out.size != 0) { out.add(" "); }
        add_event(out, e);
    }
}
constexpr auto events_of(std::string_view stream, cpu::quirk_set quirks = {}) -> short_text {
    return events_in({stream, engine::model_kind::manual}, quirks);
}

}  // namespace ptspec::test
