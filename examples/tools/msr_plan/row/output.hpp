// SPDX-License-Identifier: BSL-1.0
#pragma once

// The output of a row: trace that is stored, and where it is.

#include "state.hpp"

#include <ptspec/driver/drain.hpp>
#include <ptspec/driver/triage.hpp>

namespace msr_plan {

/// Counts stores of trace in runs of addresses, in the order in which they were stored.
struct stored_runs {
    using ignores_pmis = stored_runs;

    msr_script::physical_memory& memory;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> runs{};

    auto load(std::uint64_t address) const -> port_value { return memory.load(address); }
    auto send(byte_view bytes) -> std::size_t { return memory.send(bytes); }
    auto store(std::uint64_t address, byte_view bytes) -> std::size_t {
        if (!runs.empty() && runs.back().first + runs.back().second == address) {
            runs.back().second += bytes.size();
        } else if (!bytes.empty()) {
            runs.emplace_back(address, bytes.size());
        }
        return memory.store(address, bytes);
    }
};

inline void write_bytes(row_state& row, std::uint64_t count) {
    constexpr std::uint64_t most = std::uint64_t{1} << 32;
    if (count > most) { throw refusal{"at most 4 GB are written at once"}; }
    if (!row.on.now.ctl.get<reg::ia32_rtit_ctl::TraceEn>()) {
        throw refusal{"TraceEn is 0, and nothing is traced: the setup needs `tracing`"};
    }
    engine::write_result total;
    std::vector<std::string> runs;
    auto pads = std::make_unique<byte_array<0x1'0000>>();
    stored_runs memory{row.on.memory};
    while (count != 0) {
        auto const some = static_cast<std::size_t>(std::min<std::uint64_t>(count, 0x1'0000));
        auto const done = row.on.output.write(row.on.now, memory, byte_view{*pads}.first(some));
        total += done;
        count -= some;
    }
    row.on.output.write_back(row.on.now);
    for (auto const& one : memory.runs) { runs.push_back(interval(one.first, one.second)); }
    say(row, "stored=" + hex(total.stored));
    say(row, "lost=" + hex(total.lost));
    say(row, "PMI=" + hex(total.pmis));
    say(row, "data=" + (runs.empty() ? "none" : join(runs, ",")));
}

/// `fill R1`, `fill R0..R2`, `fill all`: regions of the setup, from the position on.
inline void fill(row_state& row, words& in) {
    if (row.from.regions.empty()) { throw refusal{"fill needs regions"}; }
    std::uint64_t bytes = 0;
    auto const which = in.next("regions, or all");
    if (which == "all") {
        for (auto const& one : row.from.regions) { bytes += topa::bytes_in(one.size); }
    } else {
        for (auto const n : pc_notation::regions_in(which)) {
            if (n >= row.from.regions.size()) {
                throw refusal{"there is no R" + std::to_string(n)};
            }
            bytes += topa::bytes_in(row.from.regions[n].size);
        }
    }
    write_bytes(row, bytes);
}
/// `write 20h bytes` in hexadecimal, or `write 64 KB`.
inline auto number_of_bytes(words& in) -> std::uint64_t {
    words peek = in;
    std::string_view const digits = peek.next("a number of bytes");
    if (digits.back() != 'h') { return pc_notation::bytes_in(in); }
    (void)in.next("");
    in.expect("bytes");
    return pc_notation::number_in(digits.substr(0, digits.size() - 1), "a size");
}

/// The ring of a driver, and its parts.
struct placed_ring {
    std::vector<topa::region> regions{};
    std::vector<std::vector<topa::entry>> entries{};
    std::vector<driver::table_page> pages{};
    driver::ring ring{};
};

/// The regions as the ring of a driver.
inline auto ring_of(row_state const& row) -> placed_ring {
    auto const& from = row.from;
    bool const is_plain = from.tables.size() * pc_notation::entries_per_table >=
                              from.regions.size() &&
                          from.edits.empty() && !from.has_tables;
    if (!is_plain) { throw refusal{"a position needs regions without a table of their own"}; }
    placed_ring placed;
    for (auto const& one : from.regions) { placed.regions.push_back({one.base, one.size}); }
    placed.entries.assign(from.tables.size(), std::vector<topa::entry>(512));
    for (auto const& [n, one] : from.tables) {
        placed.pages.push_back({one.address, placed.entries[n].data()});
    }
    auto const how = from.regions.back().stop ? driver::buffer_recipe::stop_on_full
                                              : driver::buffer_recipe::circular;
    auto const made = driver::build_ring(how, placed.regions.data(), placed.regions.size(),
                                         placed.pages.data(), placed.pages.size(), {{52}, true});
    if (!made) { throw refusal{"the regions are no ring: " + string_of(describe(made.broken))}; }
    placed.ring = made.ring;
    return placed;
}

inline auto position(row_state const& row) -> std::uint64_t {
    driver::output_registers const at = row.on.now.output;
    if (row.from.is_range) { return at.mask_ptrs.raw >> 32; }
    auto const placed = ring_of(row);
    auto const found = driver::offset_of(placed.ring, at);
    if (!found) { throw refusal{"the position is in no region"}; }
    return found.offset;
}
inline void read_out(row_state& row) {
    driver::output_registers const at = row.on.now.output;
    if (row.from.is_range) {
        auto const part = driver::snapshot_of_single_range(at, row.from.wrapped);
        std::string const newer = interval(part.second_base.value, part.second_bytes);
        return say(row,
                   "data=" + (part.first_bytes != 0
                                  ? interval(part.first_base.value, part.first_bytes) + "," + newer
                                  : newer));
    }
    auto const placed = ring_of(row);
    auto const& in = placed.ring;
    auto const part = driver::snapshot(in, driver::stopped_at(row.on.now), row.from.wrapped);
    if (!part) { throw refusal{"the position is in no region"}; }
    std::uint64_t const first = in.bytes - part.part.from;
    say(row, "data=" + (part.part.count <= first ? interval(part.part.from, part.part.count)
                                                 : interval(part.part.from, first) + "," +
                                                       interval(0, part.part.count - first)));
}

}  // namespace msr_plan
