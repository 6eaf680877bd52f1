// SPDX-License-Identifier: BSL-1.0
#pragma once

// The phrases of a drawing. The text and the picture use the same.

#include "chain.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace topa_view {

using msr_script::hex;
using msr_script::string_of;

inline auto id_of(rule which) -> std::string { return string_of(rule_id{which}.view()); }

/// A count and a noun.
inline auto count_of(std::uint64_t count, std::string_view thing) -> std::string {
    return std::to_string(count) + ' ' + std::string{thing} + (count == 1 ? "" : "s");
}

/// A size in the largest unit that divides it.
inline auto size_text(std::uint64_t bytes) -> std::string {
    constexpr std::string_view units[] = {" bytes", " KB", " MB", " GB"};
    std::size_t unit = 0;
    while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < std::size(units)) {
        bytes /= 1024;
        ++unit;
    }
    if (unit == 0 && bytes == 1) { return "1 byte"; }
    return std::to_string(bytes) + std::string{units[unit]};
}
inline auto size_of(topa::entry region) -> std::string {
    return size_text(topa::bytes_in(region.get<topa::entry::Size>()));
}

/// The flags of an entry that are set.
inline auto flags_of(topa::entry word) -> std::vector<std::string> {
    std::vector<std::string> flags;
    if (word.get<topa::entry::INT>()) { flags.emplace_back("INT"); }
    if (word.get<topa::entry::STOP>()) { flags.emplace_back("STOP"); }
    if (word.get<topa::entry::END>()) { flags.emplace_back("END"); }
    return flags;
}
inline auto joined(std::vector<std::string> const& words) -> std::string {
    std::string out;
    for (auto const& word : words) { out += (out.empty() ? "" : " ") + word; }
    return out;
}

/// The target of a link: the next table, or one above.
inline auto link_text(chain const& of, place at, topa::entry link) -> std::string {
    auto const address = topa::follow_end(link).table;
    auto const target = of.find({address, 0});
    if (!target) { return "-> " + hex(address) + ", not looked at"; }
    return "-> " + hex(address) + (target->first <= at.first ? ", back to table " : ", table ") +
           std::to_string(target->first);
}

/// The target of an entry: the first and the last byte of its region, or a table.
inline auto target_text(chain const& of, row const& one) -> std::string {
    if (one.what == row::kind::folded) { return std::to_string(one.count) + " more like these"; }
    if (one.what == row::kind::unreadable) { return "not given"; }
    if (!one.is_region()) { return link_text(of, one.at, one.word); }
    phys_addr const base = one.word.get<topa::entry::Base>();
    std::uint64_t const size = topa::bytes_in(one.word.get<topa::entry::Size>());
    return hex(base) + ".." + hex(base + (size - 1));
}

/// The physical address of an entry.
inline auto address_of(chain const& of, place at) -> phys_addr {
    return topa::table_pointer({of.tables[at.first].address, at.second, 0});
}

inline auto note_text(note const& what) -> std::string {
    return (what.is_warning ? "warning " : "") + id_of(what.which) + ": " +
           string_of(describe(what.which));
}

/// Where and why a table cannot be read.
inline auto unreadable_text(row const& one) -> std::string {
    return one.at.second == 0 ? "no word of this table was given"
                              : "there is neither END nor STOP in what was given of this table";
}

// ------------------------------------------------------------------------------------ the chain

/// How the chain ends.
inline auto ending_of(chain const& of) -> std::string {
    auto const& last = of.tables.back();
    std::string const name = "table " + std::to_string(of.tables.size() - 1);
    if (of.shape.closes) {
        std::string const link = last.end.ended_by == topa::table_end::wraps ? " wraps" : " links";
        bool const itself = of.shape.back_to == of.tables.size() - 1;
        std::string const target = "table " + std::to_string(of.shape.back_to);
        return name + link + (itself ? " to itself" : " back to " + target);
    }
    std::string const entry = ", entry " + hex(last.end.last.index);
    switch (last.end.ended_by) {
        case topa::table_end::stop: return "ends with STOP in " + name + entry;
        case topa::table_end::unreadable: return "cannot be read from " + name + entry + " on";
        default: return "goes on: only these tables were looked at";
    }
}

inline auto chain_text(chain const& of) -> std::string {
    return count_of(of.tables.size(), "table") + ", " + count_of(of.regions, "region") + ", " +
           size_text(of.bytes) + "; " + ending_of(of);
}

inline auto findings_text(chain const& of) -> std::string {
    std::string const findings = of.findings == 0 ? "none" : std::to_string(of.findings);
    return findings + (of.warnings == 0 ? "" : ", and " + count_of(of.warnings, "warning"));
}

// ------------------------------------------------------------------------------------ the position

/// The address of the next byte of trace; empty when the region has no room for it.
inline auto next_text(output_position const& now) -> std::string {
    if (!now.has_region() || now.loaded.where.offset >= now.size()) { return ""; }
    return "the next byte goes to " +
           hex(topa::trace_store_phys_addr(now.loaded.where, now.loaded.active));
}

/// The filled part of the current region, and the address of the next byte; empty when the offset
/// is outside the region.
inline auto fill_text(output_position const& now) -> std::string {
    std::uint64_t const offset = now.loaded.where.offset;
    if (!now.has_region() || offset > now.size()) { return ""; }
    auto const next = next_text(now);
    return hex(offset) + "H of " + hex(now.size()) + "H bytes are filled, " +
           std::to_string(offset * 100 / now.size()) + "%" + (next.empty() ? "" : "; " + next);
}

inline auto place_text(chain const& of, topa::position where) -> std::string {
    auto const at = of.find({where.table, where.index});
    std::string const name = at ? "table " + std::to_string(at->first)
                                : "a table at " + hex(where.table);
    return name + ", entry " + hex(where.index) + ", offset " + hex(where.offset);
}

/// Lines about the position, without the findings at its entry.
inline auto position_lines(chain const& of) -> std::vector<std::string> {
    auto const& now = of.now;
    std::vector<std::string> lines;
    lines.push_back(place_text(of, now.encoded));
    if (now.followed_an_end()) {
        lines.back() += ": the link is followed, to " + place_text(of, now.loaded.where);
    }
    if (now.loaded.fault.happened) {
        lines.back() += ": no word was given of this entry";
    } else if (auto const next = next_text(now); !next.empty()) {
        lines.back() += ": " + next;
    }
    if (!now.in_chain) {
        if (now.loaded.broken != rule::none) { lines.push_back(note_text({now.loaded.broken})); }
        lines.emplace_back("this is not an entry of the chain");
    } else if (now.from_start) {
        lines.push_back(size_text(now.from_start.bytes) + " (" + hex(now.from_start.bytes) +
                        "H) from the start of the chain to here");
    }
    if (now.why.ended_by != rule::none) {
        std::string const which = now.error ? "Error is set: " : "Stopped is set: ";
        lines.push_back(which + id_of(now.why.ended_by) + ", " +
                        string_of(describe(now.why.ended_by)));
    }
    return lines;
}

// ------------------------------------------------------------------------------------ lines

/// Wraps a text at blanks into lines of at most `width` letters.
inline auto wrapped_text(std::string_view what, std::size_t width) -> std::vector<std::string> {
    std::vector<std::string> lines;
    while (what.size() > width) {
        auto cut = what.rfind(' ', width);
        if (cut == std::string_view::npos || cut == 0) { cut = width; }
        lines.emplace_back(what.substr(0, cut));
        what.remove_prefix(what[cut] == ' ' ? cut + 1 : cut);
    }
    lines.emplace_back(what);
    return lines;
}

}  // namespace topa_view
