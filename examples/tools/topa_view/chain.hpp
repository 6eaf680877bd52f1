// SPDX-License-Identifier: BSL-1.0
#pragma once

// A chain of ToPA tables as the library reads it: its entries, the rules they break, and the
// current position of the output.

#include "../common/msr_script/session.hpp"

#include <ptspec/engine/output/explain.hpp>
#include <ptspec/topa/validate.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace topa_view {

using namespace ptspec;

/// The words of the script as a memory port. A missing word reads as 0 when a word follows it in
/// the same page; other loads fail.
class given_memory {
public:
    explicit given_memory(msr_script::physical_memory const& all) : words_{all.put_words()} {}

    [[nodiscard]] auto load(std::uint64_t address) const -> port_value {
        auto const here = words_.lower_bound(address);
        if (here == words_.end() || here->first >> 12 != address >> 12) { return {}; }
        return {true, here->first == address ? here->second : 0};
    }
    [[nodiscard]] static auto store(std::uint64_t /*address*/, byte_view /*bytes*/) -> std::size_t {
        return 0;
    }

private:
    msr_script::physical_memory::words const& words_;
};

/// A broken rule or a warning at an entry.
struct note {
    rule which = rule::none;
    bool is_warning = false;

    friend auto operator==(note const&, note const&) -> bool = default;
};

struct table {
    phys_addr address{};
    std::vector<topa::entry> entries{};
    topa::table_walk end{};
};

/// The index of a table in the chain, and of an entry in that table.
using place = std::pair<std::size_t, std::uint32_t>;

/// The current position of the output in the chain.
struct output_position {
    bool known = false;
    topa::position encoded{};       ///< as the output MSRs encode it
    topa::loaded_entry loaded{};    ///< after a link is followed
    std::optional<place> in_chain;  ///< the place of `loaded`
    topa::distance from_start{};    ///< bytes from the start of the chain
    bool error = false;
    bool stopped = false;
    engine::explanation why{};  ///< why Error or Stopped is set

    [[nodiscard]] auto followed_an_end() const -> bool { return loaded.where != encoded; }
    /// True when the position is in a region whose size and base are known.
    [[nodiscard]] auto has_region() const -> bool {
        return !loaded.fault.happened && (loaded || loaded.broken == rule::OUT_064);
    }
    [[nodiscard]] auto size() const -> std::uint64_t {
        return topa::bytes_in(loaded.active.get<topa::entry::Size>());
    }
};

struct chain {
    std::vector<table> tables{};
    topa::chain_shape shape{};
    std::map<phys_addr, std::size_t> numbers{};  ///< index of a table by its address
    std::map<place, std::vector<note>> notes{};
    output_position now{};
    std::uint64_t regions = 0;
    std::uint64_t bytes = 0;  ///< total size of all regions
    std::size_t findings = 0;
    std::size_t warnings = 0;

    [[nodiscard]] auto find(topa::position at) const -> std::optional<place> {
        auto const found = numbers.find(at.table);
        if (found == numbers.end()) { return std::nullopt; }
        return place{found->second, at.index};
    }
    /// True when this entry was read.
    [[nodiscard]] auto has(place at) const -> bool {
        return at.second < tables[at.first].entries.size();
    }
    /// True when this entry was read, or is the first that could not be read.
    [[nodiscard]] auto is_shown(place at) const -> bool {
        auto const& end = tables[at.first].end;
        return has(at) ||
               (end.ended_by == topa::table_end::unreadable && at.second == end.last.index);
    }
    void add(place at, note what) {
        auto& here = notes[at];
        if (std::find(here.begin(), here.end(), what) != here.end()) { return; }
        here.push_back(what);
        std::sort(here.begin(), here.end(), [](note const& one, note const& two) {
            return std::pair{one.is_warning, one.which} < std::pair{two.is_warning, two.which};
        });
        ++(what.is_warning ? warnings : findings);
    }
};

/// The limits for reading a chain.
inline constexpr std::uint64_t max_tables = 1000;
inline constexpr std::uint64_t max_entries = std::uint64_t{topa::last_index} + 1;

namespace detail {

inline void read_tables(chain& into, msr_script::session const& in, given_memory& memory,
                        phys_addr first, topa::limits of) {
    topa::output_hazards const around{in.how.restricted, in.apic};
    into.shape = topa::shape_of_chain(memory, first,
                                      {.max_entries = max_entries, .max_tables = max_tables});
    for (phys_addr address = first; into.tables.size() < into.shape.tables;) {
        auto const number = into.tables.size();
        auto& one = into.tables.emplace_back(table{.address = address});
        into.numbers.emplace(address, number);
        one.end = topa::for_each_entry(
            memory, address, max_entries, [&](topa::position at, topa::entry current) {
                one.entries.push_back(current);
                if (!current.get<topa::entry::END>()) {
                    ++into.regions;
                    into.bytes += topa::bytes_in(current.get<topa::entry::Size>());
                }
                topa::find_warnings(current, at, around, [&](rule warning) {
                    into.add({number, at.index}, {warning, true});
                });
            });
        if (one.end.ended_by == topa::table_end::unreadable) { ++into.findings; }
        address = one.end.next_table;
    }
    (void)topa::validate_chain(  // the outcome is already in `shape`
        memory, first, of,
        [&](topa::violation what) {
            if (auto const at = into.find(what.at)) { into.add(*at, {what.broken}); }
        },
        {.max_entries = max_entries, .max_tables = max_tables}, in.how.restricted);
}

inline void find_position(chain& into, msr_script::session const& in, given_memory& memory,
                          phys_addr first, topa::limits of) {
    using status = reg::ia32_rtit_status;
    using ctl = reg::ia32_rtit_ctl;
    auto& now = into.now;
    now.known = true;
    now.encoded = topa::position_in(in.now.output.base, in.now.output.mask_ptrs);
    now.error = in.now.status.get<status::Error>();
    now.stopped = in.now.status.get<status::Stopped>();
    if (now.error || now.stopped) {
        // While Error or Stopped is set the entry is loaded, but not checked.
        now.loaded = topa::load_entry(memory, now.encoded, of, in.how.restricted);
        auto state = in.now;
        state.ctl = state.ctl.with(ctl::ToPA{true}, ctl::FabricEn{false});
        now.why = engine::explain(in.of, state, memory, in.how);
    } else {
        now.loaded = topa::load_first_entry(memory, now.encoded, of, in.how.restricted);
    }
    now.in_chain = into.find({now.loaded.where.table, now.loaded.where.index});
    if (now.in_chain && !into.is_shown(*now.in_chain)) { now.in_chain.reset(); }
    if (now.in_chain) {
        now.from_start = topa::bytes_between(memory, {first, 0, 0}, now.loaded.where, of,
                                             into.regions + 1);
        if (now.loaded.broken != rule::none) { into.add(*now.in_chain, {now.loaded.broken}); }
        if (now.error && now.why.has_place) { into.add(*now.in_chain, {now.why.ended_by}); }
    } else if (into.find({now.encoded.table, 0}) && !now.loaded) {
        ++into.findings;
    }
}

}  // namespace detail

/// Reads the chain that begins at `first`. `positioned`: the output MSRs hold a position.
inline auto read_chain(msr_script::session const& in, phys_addr first, bool positioned) -> chain {
    chain made;
    given_memory memory{in.memory};
    auto const of = topa::limits::of(in.of);
    detail::read_tables(made, in, memory, first, of);
    if (positioned) { detail::find_position(made, in, memory, first, of); }
    return made;
}

// ------------------------------------------------------------------------------------ rows

/// One row of a drawing.
struct row {
    enum class kind : std::uint8_t {
        entry,
        folded,      ///< `count` entries that are like the one above
        unreadable,  ///< an entry whose word is not given
    };
    kind what = kind::entry;
    place at{};
    topa::entry word{};
    std::uint64_t count = 1;
    bool current = false;
    std::vector<note> notes{};

    [[nodiscard]] auto is_region() const -> bool {
        return what != kind::unreadable && !word.get<topa::entry::END>();
    }
    /// True when the entries differ only in the base of their regions.
    [[nodiscard]] auto differs_only_in_base(row const& other) const -> bool {
        using base = topa::entry::Base;
        return !current && !other.current && notes == other.notes &&
               word.with(base{wrapped{0}}) == other.word.with(base{wrapped{0}});
    }
};

/// The rows of a table. The middle of a long run of similar entries is folded into one row unless
/// `all` is set.
inline auto rows_of(chain const& from, std::size_t number, bool all) -> std::vector<row> {
    constexpr std::size_t longest_run = 8;
    auto const& one = from.tables[number];
    auto const row_at = [&](std::size_t index) {
        row made{.at = {number, static_cast<std::uint32_t>(index)}};
        made.current = from.now.in_chain == made.at;
        if (auto const here = from.notes.find(made.at); here != from.notes.end()) {
            made.notes = here->second;
        }
        if (from.has(made.at)) {
            made.word = one.entries[index];
        } else {
            made.what = row::kind::unreadable;
        }
        return made;
    };
    std::vector<row> rows;
    for (std::size_t index = 0; index < one.entries.size();) {
        auto first = row_at(index);
        std::size_t end = index + 1;
        while (!all && end < one.entries.size() && first.differs_only_in_base(row_at(end))) {
            ++end;
        }
        std::size_t const count = end - index;
        rows.push_back(std::move(first));
        if (count > longest_run) {
            rows.push_back(row_at(index + 1));
            rows.push_back(row_at(index + 2));
            rows.back().what = row::kind::folded;
            rows.back().count = count - 3;
            index = end - 2;
        }
        while (++index < end) { rows.push_back(row_at(index)); }
    }
    if (one.end.ended_by == topa::table_end::unreadable) {
        rows.push_back(row_at(one.entries.size()));
    }
    return rows;
}

}  // namespace topa_view
