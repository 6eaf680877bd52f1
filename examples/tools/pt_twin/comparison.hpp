// SPDX-License-Identifier: BSL-1.0
#pragma once

// A recorded trace and its twin, compared from PSB to PSB.

#include "derivation.hpp"

#include <cstdio>
#include <utility>

namespace pt_twin {

/// The offsets of the PSBs in a trace, and its end.
inline auto segments_of(byte_view bytes) -> std::vector<std::size_t> {
    std::vector<std::size_t> starts;
    trace::reader reader{borrowed_bytes{bytes.data(), bytes.size()}};
    for (auto item = reader.next(); item; item = reader.next()) {
        if (item.what == trace::item_type::packet && item.packet.kind() == kind::psb) {
            starts.push_back(item.offset);
        }
    }
    starts.push_back(bytes.size());
    return starts;
}

struct comparison {
    std::size_t segments = 0;
    std::size_t equal = 0;
    std::uint64_t bytes = 0;
    std::uint64_t equal_bytes = 0;
    std::size_t damaged = 0;
    unsigned shown = 0;
    std::string differences{};

    [[nodiscard]] auto score() const -> std::pair<std::size_t, std::uint64_t> {
        return {equal, equal_bytes};
    }
};

inline auto line_at(byte_view bytes, std::size_t at) -> std::string {
    std::string line;
    char text[4];
    for (std::size_t i = at; i < at + 16 && i < bytes.size(); ++i) {
        std::snprintf(text, sizeof text, " %02x", bytes[i]);
        line += text;
    }
    return line;
}

/// Adds the comparison of a part of the trace. `is_whole`: its end is equal.
inline void compare(byte_view real, byte_view made, recording const& from, bool is_whole,
                    unsigned shown, comparison& result) {
    auto const one = segments_of(real);
    auto const two = segments_of(made);
    std::size_t const damaged = from.ends_in_damage ? 1 : 0;
    result.damaged += damaged;
    for (std::size_t i = 0; i + 1 + damaged < one.size(); ++i) {
        byte_view const a = real.from(one[i]).first(one[i + 1] - one[i]);
        byte_view const b = i + 1 < two.size() ? made.from(two[i]).first(two[i + 1] - two[i])
                                               : byte_view{};
        ++result.segments;
        result.bytes += a.size();
        std::size_t same = 0;
        while (same < a.size() && same < b.size() && a[same] == b[same]) { ++same; }
        bool const is_last = i + 2 == one.size();
        bool const is_equal = (same == a.size() && same == b.size()) || (is_last && is_whole);
        result.equal += is_equal;
        result.equal_bytes += same;
        if (is_equal || result.shown == shown) { continue; }
        ++result.shown;
        std::size_t const shown_from = same < 8 ? 0 : same - 8;
        char text[96];
        std::snprintf(text, sizeof text, "segment %zu at %llx differs at %llx\n",
                      result.segments - 1, static_cast<unsigned long long>(from.begin + one[i]),
                      static_cast<unsigned long long>(from.begin + one[i] + same));
        result.differences += text + std::string{"  real"} + line_at(a, shown_from) + "\n  twin" +
                              line_at(b, shown_from) + "\n";
    }
}

/// The packets of a part from a PSB on.
inline auto rest_of(recording const& from, std::size_t psb) -> recording {
    auto made = from;
    made.all = made.all.subspan(psb);
    made.begin = made.all.front().offset;
    made.alignment = static_cast<unsigned>((from.alignment + made.begin - from.begin) % 16);
    return made;
}

/// Runs the twin of a part. After a difference another one begins at the next PSB. `visit` gets
/// each, the packets and bytes up to where it ends, and whether it ends as the part does.
template <class Visit>
void run_twins(byte_view whole, recording from, configuration const& with, std::string_view kind,
               machine& on, std::string* script, derivation::options const& how, Visit&& visit) {
    for (;;) {
        auto const real = whole.from(static_cast<std::size_t>(from.begin))
                              .first(static_cast<std::size_t>(from.end - from.begin));
        derivation made{from, real, with, kind, on, script, how};
        std::size_t const at = made.run();
        std::size_t next = std::max(at, std::size_t{1});
        while (next < from.all.size() && !from.all[next].is(packet::kind::psb)) { ++next; }
        if (next == from.all.size()) { return visit(made, from, real, at == next); }
        auto until = from;
        until.end = from.all[next].offset;
        until.ends_in_damage = false;
        visit(made, until, real.first(static_cast<std::size_t>(until.end - from.begin)), false);
        from = rest_of(from, next);
    }
}

/// Compares the twins of all parts.
inline auto compare_all(byte_view whole, std::vector<recording> const& parts,
                        configuration const& with, std::string_view kind, unsigned shown,
                        machine& on, derivation::options const& how = {}) -> comparison {
    comparison result;
    for (auto const& part : parts) {
        run_twins(
            whole, part, with, kind, on, nullptr, how,
            [&](derivation const& made, recording const& from, byte_view real, bool is_whole) {
                compare(real, made.bytes(), from, is_whole, shown, result);
            });
    }
    return result;
}

/// The scripts of the twins of a part, each after a line with its setup.
inline auto scripts_of(byte_view whole, recording const& part, configuration const& with,
                       std::string_view kind, machine& on) -> std::string {
    std::string all;
    std::string script;
    run_twins(whole, part, with, kind, on, &script, {},
              [&](derivation const& made, recording const&, byte_view, bool) {
                  all += "setup " + made.result().setup() + "\n" + script;
                  script.clear();
              });
    return all;
}

/// How a trace was configured: the configuration by its packets, or another with which more
/// segments are equal.
inline auto best_configuration(byte_view whole, std::vector<recording> const& parts,
                               std::string_view kind, machine& on,
                               derivation::options const& how = {}) -> configuration {
    auto best = configuration_of(parts, kind);
    auto of_best = compare_all(whole, parts, best, kind, 0, on, how);
    for (auto const& other : alternatives_to(best)) {
        if (of_best.equal == of_best.segments) { break; }
        auto const found = compare_all(whole, parts, other, kind, 0, on, how);
        if (found.score() <= of_best.score()) { continue; }
        of_best = found;
        best = other;
    }
    return best;
}

/// The kind with most equal segments at the beginning of each part.
inline auto best_kind(byte_view whole, std::vector<recording> const& parts, machine& on)
    -> std::string_view {
    constexpr std::size_t most = 20'000;
    auto beginnings = parts;
    for (auto& from : beginnings) {
        if (from.all.size() <= most) { continue; }
        // Up to the last PSB of the beginning, or all of a part without another PSB.
        std::size_t end = most;
        while (end > 0 && !from.all[end].is(kind::psb)) { --end; }
        if (end == 0) { continue; }
        from.all = from.all.first(end);
        from.end = from.all.back().end;
        from.ends_in_pads = from.ends_in_damage = false;
    }
    std::string_view best;
    comparison of_best;
    for (auto const& one : engine::model_kinds) {
        std::string_view const name{one.name.data(), one.name.size()};
        auto const with = configuration_of(parts, name);
        auto const result = compare_all(whole, beginnings, with, name, 0, on, {.revises = false});
        // What a processor does goes before what the manual says.
        bool const is_better = best.empty() || result.score() > of_best.score() ||
                               (result.score() == of_best.score() && best == "manual");
        if (is_better) {
            best = name;
            of_best = result;
        }
    }
    return best;
}

}  // namespace pt_twin
