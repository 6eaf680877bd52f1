// SPDX-License-Identifier: BSL-1.0
#pragma once

// A recorded trace and its twin, compared from PSB to PSB.

#include "twin.hpp"

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

/// Adds the comparison of a part of the trace, at whose end PacketEn is 1 or not.
inline void compare(byte_view real, byte_view made, recording const& from, bool is_tracing,
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
        // Of an event at the end some packets are not stored, and of a packet only its PADs.
        bool const is_cut = is_last && same == a.size() && from.ends_in_event;
        bool const has_cut_pads = is_last && same == b.size() && a.size() - same < 16 &&
                                  std::all_of(
                                      a.data() + same, a.data() + a.size(),
                                      [](std::uint8_t byte) { return byte == 0; }) &&
                                  (is_tracing ||
                                   (from.alignment + from.end - from.begin) % 16 != 0);
        bool const is_equal = (same == a.size() && same == b.size()) || is_cut || has_cut_pads;
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

/// Runs the twins of all parts, and compares them.
inline auto compare_all(byte_view whole, std::vector<recording> const& parts,
                        configuration const& with, std::string_view kind, unsigned shown,
                        machine& on) -> comparison {
    comparison result;
    for (auto const& from : parts) {
        byte_view const real = whole.from(static_cast<std::size_t>(from.begin))
                                   .first(static_cast<std::size_t>(from.end - from.begin));
        twin made{from, with, kind, on, nullptr};
        made.run();
        compare(real, made.bytes(), from, made.is_tracing(), shown, result);
    }
    return result;
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
        from.all.resize(end);
        from.end = from.all.back().end;
        from.ends_in_pads = from.ends_in_damage = false;
    }
    std::string_view best;
    comparison of_best;
    for (auto const& one : engine::model_kinds) {
        std::string_view const name{one.name.data(), one.name.size()};
        auto const with = configuration_of(parts, name);
        auto const result = compare_all(whole, beginnings, with, name, 0, on);
        auto const score = [](comparison const& of) { return std::pair{of.equal, of.equal_bytes}; };
        // What a processor does goes before what the manual says.
        bool const is_better = best.empty() || score(result) > score(of_best) ||
                               (score(result) == score(of_best) && best == "manual");
        if (is_better) {
            best = name;
            of_best = result;
        }
    }
    return best;
}

}  // namespace pt_twin
