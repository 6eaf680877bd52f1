// SPDX-License-Identifier: BSL-1.0
#pragma once

// The rows of programming.md, section 17, in the notation of notation.md, section 4: the processor,
// cells as items, and what a setup says.

#include "capability_words.hpp"
#include "msr_script/script.hpp"
#include "tool.hpp"

#include <ptspec/access/pt_msrs.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/print/word.hpp>
#include <ptspec/topa/single_range.hpp>
#include <ptspec/topa/table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pc_notation {

using namespace ptspec;

/// Profile CAP-A of programming.md, section 17.
inline auto cap_a() -> cpu::capabilities {
    cpu::capabilities caps;
    caps.leaf_01_eax = {0x000B'06E0};
    caps.leaf_07_0_ebx = {1U << 25};
    caps.leaf_0d_1_eax = {1U << 3};
    caps.leaf_0d_1_ecx = {1U << 8};
    caps.leaf_0d_8_eax = {128};
    caps.leaf_0d_8_ecx = {1};
    caps.leaf_14_0_eax = {1};
    caps.leaf_14_0_ebx = {0x1FF};
    caps.leaf_14_0_ecx = {0x8000'0007};
    caps.leaf_14_1_eax = {0x0249'0002};
    caps.leaf_14_1_ebx = {0x003F'1FFF};
    caps.leaf_15_eax = {2};
    caps.leaf_15_ebx = {0xB0};
    caps.leaf_80000008_eax = {39 | 48 << 8};
    caps.vmx_misc = {1U << 14};
    return caps;
}

inline auto starts_with(std::string_view text, std::string_view with) -> bool {
    return text.substr(0, with.size()) == with;
}

/// A cell without comments, which are groups in parentheses after a blank.
inline auto without_comments(std::string_view cell) -> std::string {
    std::string out;
    for (std::size_t i = 0; i < cell.size();) {
        if (cell.substr(i, 2) != " (") {
            out += cell[i++];
            continue;
        }
        int depth = 0;
        for (++i; i < cell.size(); ++i) {
            depth += cell[i] == '(' ? 1 : cell[i] == ')' ? -1 : 0;
            if (depth == 0) { break; }
        }
        if (depth != 0) { throw std::runtime_error{"a comment without )"}; }
        ++i;
    }
    return out;
}

/// Items that are separated by any of some texts, trimmed.
inline auto split(std::string_view text, std::string_view separator) -> std::vector<std::string> {
    std::vector<std::string> items;
    for (std::size_t at = 0; at <= text.size();) {
        std::size_t const end = text.find(separator, at);
        std::string item{text.substr(at, end == std::string_view::npos ? end : end - at)};
        while (!item.empty() && item.front() == ' ') { item.erase(0, 1); }
        while (!item.empty() && item.back() == ' ') { item.pop_back(); }
        if (!item.empty()) { items.push_back(item); }
        if (end == std::string_view::npos) { break; }
        at = end + separator.size();
    }
    return items;
}

/// Items of a cell, without comments: separated by `;`, or by a comma and a blank, outside of
/// brackets. Several blanks count as one.
inline auto items_of(std::string_view cell) -> std::vector<std::string> {
    std::string const text = without_comments(cell);
    std::vector<std::string> items(1);
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        char const letter = text[i];
        depth += std::string_view{"([{"}.find(letter) != std::string_view::npos ? 1 : 0;
        depth -= std::string_view{")]}"}.find(letter) != std::string_view::npos ? 1 : 0;
        bool const is_end = letter == ';' || (letter == ',' && text.substr(i + 1, 1) == " ");
        if (depth == 0 && is_end) {
            items.emplace_back();
        } else if (letter != ' ' || (!items.back().empty() && items.back().back() != ' ')) {
            items.back() += letter;
        }
    }
    for (auto& item : items) {
        while (!item.empty() && item.back() == ' ') { item.pop_back(); }
    }
    std::erase(items, "");
    return items;
}

// ------------------------------------------------------------------------------------ a setup

using msr_script::refusal;
using msr_script::words;

inline constexpr std::uint64_t table_address = 0x1000'0000;
inline constexpr std::uint64_t region_address = 0x2000'0000;
inline constexpr std::size_t max_regions = 4096;
inline constexpr std::size_t entries_per_table = 511;  // and END

/// A region of a setup, at `base` if `has_base`.
struct region {
    std::uint64_t base = 0;
    bool has_base = false;
    topa::region_size size = topa::region_size::size_64K;
    bool interrupt = false;
    bool stop = false;
};
/// A table of a setup: its entries in words.
struct table {
    std::uint64_t address = 0;
    std::vector<std::string> entries{};
};
/// A word of memory.
struct memory_word {
    std::uint64_t address = 0;
    std::uint64_t value = 0;
};

/// What a setup says.
struct setup {
    std::string condition{};  ///< of alternatives: this one
    cpu::capabilities caps = cap_a();
    access::msr_state msrs{};
    bool is_range = false;
    bool has_base = false;  ///< the setup gives OUTPUT_BASE
    bool tracing = false;
    bool wrapped = false;

    /// The base configuration.
    [[nodiscard]] auto base_ctl() const -> reg::ia32_rtit_ctl {
        return {is_range ? 0x240DU : 0x250DU};
    }
    std::vector<region> regions{};
    std::map<std::size_t, table> tables{};
    bool has_tables = false;                     ///< the setup lists entries
    std::map<std::size_t, std::string> edits{};  ///< entries of T0 that differ
    std::optional<std::uint64_t> tsc{}, ctc{}, fc{};
    std::vector<memory_word> memory{};  ///< the tables
};

inline auto number_in(std::string_view digits, char const* what, int base = 16) -> std::uint64_t {
    if (auto const value = msr_script::number_in(digits, base)) { return *value; }
    throw refusal{std::string{what} + " is not " + tool::quoted(digits)};
}

inline auto region_at(setup& in, std::size_t n) -> region& {
    if (n >= max_regions) { throw refusal{"a setup has at most 4096 regions"}; }
    if (in.regions.size() <= n) { in.regions.resize(n + 1); }
    return in.regions[n];
}

/// `R0`, `R0,R2`, `R0..R3`.
inline auto is_region_list(std::string_view text) -> bool {
    return text.size() > 1 && text[0] == 'R' && text[1] >= '0' && text[1] <= '9';
}
inline auto regions_in(std::string_view list) -> std::vector<std::size_t> {
    std::vector<std::size_t> numbers;
    auto const number_of = [](std::string_view name) {
        if (!is_region_list(name)) { throw refusal{tool::quoted(name) + " is not a region"}; }
        return static_cast<std::size_t>(number_in(name.substr(1), "the number of a region", 10));
    };
    for (auto const& part : split(list, ",")) {
        std::size_t const dots = part.find("..");
        std::size_t const first = number_of(part.substr(0, dots));
        std::size_t const last = dots == std::string::npos ? first
                                                           : number_of(part.substr(dots + 2));
        if (last < first || last >= max_regions) { throw refusal{tool::quoted(part)}; }
        for (std::size_t n = first; n <= last; ++n) { numbers.push_back(n); }
    }
    return numbers;
}

/// Consumes one of some words, and returns its number. `what` lists them for the message.
inline auto expect_one_of(words& in, std::string_view what,
                          std::initializer_list<std::string_view> all) -> std::size_t {
    std::size_t n = 0;
    for (auto const& one : all) {
        if (in.accept(one)) { return n; }
        ++n;
    }
    auto const word = in.next(what);
    throw refusal{tool::quoted(word) + " is not " + std::string{what}};
}

/// A size in decimal, with its unit: `64 KB`, `4 MB`, `1 GB`, `128 bytes`.
inline auto bytes_in(words& in) -> std::uint64_t {
    auto const value = in.number("a size", 10);
    if (value > 0xFFFF'FFFF) { throw refusal{"a size is at most 4 GB"}; }
    if (in.accept("KB")) { return value << 10; }
    if (in.accept("MB")) { return value << 20; }
    if (in.accept("GB")) { return value << 30; }
    expect_one_of(in, "a unit: bytes, KB, MB or GB", {"bytes"});
    return value;
}
inline auto region_size_of(std::uint64_t bytes) -> topa::region_size {
    for (unsigned encoding = 0; encoding < 16; ++encoding) {
        auto const size = static_cast<topa::region_size>(encoding);
        if (topa::bytes_in(size) == bytes) { return size; }
    }
    throw refusal{"a region has 4 KB, 8 KB .. 128 MB"};
}
inline auto has_size(words const& in) -> bool {
    words rest = in;
    if (rest.at_end()) { return false; }
    auto const word = rest.next("");
    return word[0] >= '0' && word[0] <= '9';
}

/// `R0,R1 16 KB at 30000000 INT STOP`: regions, their size, the address of the first, their marks.
inline void read_regions(setup& to, std::string_view list, words& in) {
    auto const numbers = regions_in(list);
    for (std::size_t const n : numbers) { (void)region_at(to, n); }
    if (has_size(in)) {
        auto const size = region_size_of(bytes_in(in));
        for (std::size_t const n : numbers) { to.regions[n].size = size; }
    }
    if (in.accept("at")) {
        auto at = in.number("an address");
        for (std::size_t const n : numbers) {
            to.regions[n].base = at;
            to.regions[n].has_base = true;
            at += topa::bytes_in(to.regions[n].size);
        }
    }
    while (!in.at_end()) {
        bool const is_int = expect_one_of(in, "a mark: INT or STOP", {"INT", "STOP"}) == 0;
        for (std::size_t const n : numbers) {
            (is_int ? to.regions[n].interrupt : to.regions[n].stop) = true;
        }
    }
}

inline auto table_number(std::string_view name) -> std::size_t {
    if (name.size() < 2 || name[0] != 'T') {
        throw refusal{tool::quoted(name) + " is not a table: T0, T1 .."};
    }
    auto const number = number_in(name.substr(1), "the number of a table", 10);
    if (number > 255) { throw refusal{"a setup has the tables T0 to T255"}; }
    return static_cast<std::size_t>(number);
}
inline auto table_at(setup& in, std::size_t n) -> table& {
    auto const [place, is_new] = in.tables.try_emplace(n);
    if (is_new) { place->second.address = table_address + 0x1000 * n; }
    return place->second;
}
/// `table T1 at 30000000 = [R0, R1, ->T0]`.
inline void read_table(setup& to, std::string_view item) {
    std::size_t const open = item.find('[');
    words in{item.substr(0, open)};
    in.expect("table");
    bool const is_named = !in.at_end() && words{in}.next("")[0] == 'T';
    std::size_t const n = is_named ? table_number(in.next("a table")) : 0;
    auto& made = table_at(to, n);
    if (in.accept("at")) {
        made.address = in.number("an address");
        if (n == 0 && !to.has_base) { to.msrs.output.base = {made.address}; }
    }
    if (open == std::string_view::npos) { return in.end(); }
    in.expect("=");
    in.end();
    if (item.back() != ']') { throw refusal{"a table ends with ]"}; }
    to.has_tables = true;
    made.entries = split(item.substr(open + 1, item.size() - open - 2), ",");
    if (made.entries.size() > 512) { throw refusal{"a table has at most 512 entries"}; }
}

// ------------------------------------------------------------------------------------ registers

/// Calls `change(raw, width)` with the value of a word, and stores what it returns.
template <class Word, class Change>
void change_word(Word& word, Change const& change) {
    using raw = bare_t<decltype(word.raw)>;
    word = Word{static_cast<raw>(change(std::uint64_t{word.raw}))};
}

/// The same for a word of CPUID: `CPUID.14H.0:EBX`, `EBX` and `ECX` of leaf 14H.0.
template <class Change>
auto change_leaf(cpu::capabilities& caps, std::string_view name, Change const& change) -> bool {
    bool is_found = false;
    std::string wanted{name == "EBX" || name == "ECX" ? "14H.0:" : ""};
    wanted += starts_with(name, "CPUID.") ? name.substr(6) : name;
    auto const look = [&]<class Word>(Word& word) {
        if constexpr (requires { Word::leaf; }) {
            char text[24];
            char const letters[] = {'A', 'B', 'C', 'D'};
            auto const part = static_cast<unsigned>(Word::output);
            (void)std::snprintf(text, sizeof text, "%02XH.%X:E%cX",
                                static_cast<unsigned>(Word::leaf),
                                static_cast<unsigned>(Word::subleaf), letters[part]);
            std::string shorter{text};  // without a sub-leaf of 0
            if (std::size_t const zero = shorter.find(".0:"); zero != std::string::npos) {
                shorter.erase(zero, 2);
            }
            if (wanted != text && wanted != shorter) { return; }
            is_found = true;
            change_word(word, change);
        }
    };
    capability_words::for_each(caps, capability_words::members{}, look);
    return is_found;
}

/// The index of an MSR by a short name of notation.md; 0: none.
inline auto index_of(std::string_view name) -> std::uint32_t {
    struct named {
        std::string_view name;
        std::uint32_t index;
    };
    constexpr named all[] = {{"CTL", reg::ia32_rtit_ctl::address},
                             {"STATUS", reg::ia32_rtit_status::address},
                             {"BASE", reg::ia32_rtit_output_base::address},
                             {"MASK_PTRS", reg::ia32_rtit_output_mask_ptrs::address},
                             {"MP", reg::ia32_rtit_output_mask_ptrs::address},
                             {"CR3_MATCH", reg::ia32_rtit_cr3_match::address},
                             {"GLOBAL_STATUS", reg::ia32_perf_global_status::address},
                             {"XSS", reg::ia32_xss::address},
                             {"DEBUGCTL", reg::ia32_debugctl::address},
                             {"VMX_MISC", reg::ia32_vmx_misc::address}};
    for (auto const& one : all) {
        if (one.name == name) { return one.index; }
    }
    if (name.size() == 7 && starts_with(name, "ADDR") && name[4] >= '0' && name[4] <= '3' &&
        name[5] == '_' && (name[6] == 'A' || name[6] == 'B')) {
        return reg::ia32_rtit_addr::address(static_cast<unsigned>(name[4] - '0'),
                                            name[6] == 'A' ? reg::range_end::a : reg::range_end::b);
    }
    auto const digits = msr_script::number_in(name);
    return digits && *digits <= 0xFFFF'FFFF ? static_cast<std::uint32_t>(*digits) : 0;
}

/// Changes an MSR: of Intel PT, or one that enumerates capabilities.
template <class Change>
auto change_msr(setup& to, std::uint32_t index, Change const& change) -> bool {
    bool is_found = false;
    auto const look = [&]<class Word>(Word& word) {
        if constexpr (requires { Word::address; }) {
            if (index != Word::address) { return; }
            is_found = true;
            change_word(word, change);
        }
    };
    capability_words::for_each(to.caps, capability_words::members{}, look);
    if (is_found) { return true; }
    bool const is_stored = access::is_covered_msr(index) &&
                           index != reg::ia32_perf_global_status_reset::address &&
                           index != reg::ia32_perf_global_status_set::address;
    if (!is_stored) { return false; }
    access::set_raw(to.msrs, index, change(access::value_of(to.msrs, index)));
    to.has_base = to.has_base || index == reg::ia32_rtit_output_base::address;
    return true;
}

/// Changes a field of IA32_RTIT_CTL or IA32_RTIT_STATUS by its name.
template <class Word>
auto set_field(Word& word, std::string_view name, std::uint64_t value) -> bool {
    auto const* const field = print::row_list_of<Word>().field({name.data(), name.size()});
    if (field == nullptr) { return false; }
    auto const& row = field->row;
    std::uint64_t const mask = low_bits(row.msb - row.lsb + 1);
    if (value > mask) { throw refusal{tool::quoted(name) + " has no room for this value"}; }
    word = Word{(word.raw & ~(mask << row.lsb)) | value << row.lsb};
    return true;
}

/// `ADDR0=[1000,1FFF] filter`.
inline auto set_range(setup& to, std::string_view name, std::string_view item) -> bool {
    std::size_t const open = item.find('[');
    if (name.size() != 5 || !starts_with(name, "ADDR") || open == std::string_view::npos) {
        return false;
    }
    if (name[4] < '0' || name[4] > '3') { throw refusal{"there are ADDR0 to ADDR3"}; }
    std::size_t const close = item.find(']');
    if (close == std::string_view::npos) { throw refusal{"a range ends with ]"}; }
    auto const ends = split(item.substr(open + 1, close - open - 1), ",");
    if (ends.size() != 2) { throw refusal{"a range has two ends: ADDR0=[1000,1FFF]"}; }
    auto const n = static_cast<unsigned>(name[4] - '0');
    to.msrs.addr[n] = {{number_in(ends[0], "an end of a range")},
                       {number_in(ends[1], "an end of a range")}};
    words in{item.substr(close + 1)};
    std::string const cfg = "ADDR" + std::to_string(n) + "_CFG";
    if (in.accept("filter")) {
        (void)set_field(to.msrs.ctl, cfg, 1);
    } else if (in.accept("stop")) {
        (void)set_field(to.msrs.ctl, cfg, 2);
    }
    in.end();
    return true;
}

/// `NAME=v`, `NAME[n]=b`, `NAME[m:n]=v`.
inline void assign(setup& to, std::string_view name, std::string_view item) {
    if (set_range(to, name, item)) { return; }
    words in{item};
    (void)in.next("a name");
    unsigned lsb = 0;
    unsigned msb = 63;
    if (in.accept("[")) {
        auto const bits = split(in.next("a bit"), ":");
        msb = static_cast<unsigned>(number_in(bits[0], "a bit", 10));
        lsb = bits.size() > 1 ? static_cast<unsigned>(number_in(bits[1], "a bit", 10)) : msb;
        if (bits.size() > 2 || msb > 63 || lsb > msb) { throw refusal{"bits are [n] or [m:n]"}; }
        in.expect("]");
    }
    bool const is_whole = lsb == 0 && msb == 63;
    if (in.at_end()) { throw refusal{tool::quoted(item) + " is not understood"}; }
    in.expect("=");
    bool const is_width = name == "M";
    std::uint64_t const value = in.number("the value", is_width ? 10 : 16);
    in.end();
    std::uint64_t const mask = low_bits(msb - lsb + 1);
    if (value > mask) { throw refusal{tool::quoted(item) + ": the value has too many bits"}; }
    auto const change = [&](std::uint64_t raw) { return (raw & ~(mask << lsb)) | value << lsb; };
    if (is_width) {
        auto& leaf = to.caps.leaf_80000008_eax;
        leaf = {static_cast<std::uint32_t>((leaf.raw & ~0xFFU) | (value & 0xFF))};
    } else if (name == "RANGECNT") {
        auto& leaf = to.caps.leaf_14_1_eax;
        leaf = {static_cast<std::uint32_t>((leaf.raw & ~7U) | (value & 7))};
    } else if (name == "TSC") {
        to.tsc = value;
    } else if (is_whole &&
               (set_field(to.msrs.ctl, name, value) || set_field(to.msrs.status, name, value))) {
    } else if (!change_leaf(to.caps, name, change) && !change_msr(to, index_of(name), change)) {
        throw refusal{tool::quoted(name) + " is not understood"};
    }
}

inline void read_item(setup& to, std::string_view item) {
    words in{item};
    auto const first = in.next("an item");
    if (is_region_list(first)) {
        read_regions(to, first, in);
    } else if (first == "table") {
        read_table(to, item);
    } else if (first == "entry") {
        auto const n = in.number("the number of an entry", 10);
        if (n > 511) { throw refusal{"a table has the entries 0 to 511"}; }
        in.expect("=");
        to.edits[static_cast<std::size_t>(n)] = in.next("an entry");
        in.end();
    } else if (first == "single") {
        in.expect("range");
        to.is_range = true;
        if (in.at_end()) { return; }
        single_range::region wanted{.base = region_address, .bytes = bytes_in(in)};
        if (in.accept("at")) { wanted.base = in.number("an address"); }
        in.end();
        auto const made = single_range::build(wanted);
        if (!made) { throw refusal{tool::quoted(item) + " is no range"}; }
        to.msrs.output.base = made.base;
        to.msrs.output.mask_ptrs = made.pointers;
        to.has_base = true;
    } else if (first == "wrapped") {
        in.end();
        to.wrapped = true;
    } else if (first == "tracing") {
        in.end();  // `setups_of` begins with the base configuration
    } else if (first == "in") {
        if (in.accept("SMM")) {
            to.msrs.in_smm = true;
            return in.end();
        }
        in.expect("VMX");
        in.expect("operation");
        in.end();
        to.msrs.in_vmx_operation = true;
    } else if (first == "TMA") {
        in.expect("CTC");
        in.expect("=");
        to.ctc = in.number("CTC");
        in.expect("FC");
        in.expect("=");
        to.fc = in.number("FC");
        in.end();
    } else {
        assign(to, first, item);
    }
}

// ------------------------------------------------------------------------------------ tables

/// Regions without an address follow each other from 20000000 on, each at a multiple of its size.
inline void place_regions(setup& in) {
    std::uint64_t next = region_address;
    for (auto& one : in.regions) {
        std::uint64_t const bytes = topa::bytes_in(one.size);
        if (one.has_base) { continue; }
        one.base = (next + bytes - 1) / bytes * bytes;
        next = one.base + bytes;
    }
}

inline auto word_of(setup& in, std::size_t of_table, std::string_view entry) -> std::uint64_t {
    if (is_region_list(entry)) {
        auto const numbers = regions_in(entry);
        if (numbers.size() != 1 || numbers[0] >= in.regions.size()) {
            throw refusal{tool::quoted(entry) + " is no region of the setup"};
        }
        auto const& one = in.regions[numbers[0]];
        return one.base | std::uint64_t{underlying(one.size)} << topa::entry::Size::lsb |
               (one.stop ? std::uint64_t{1} << topa::entry::STOP::lsb : 0) |
               (one.interrupt ? std::uint64_t{1} << topa::entry::INT::lsb : 0);
    }
    auto const link_to = [](std::uint64_t address) { return topa::link_to(address).raw; };
    if (entry == "END") { return link_to(table_at(in, of_table).address); }
    if (starts_with(entry, "->T")) {
        std::size_t const n = table_number(entry.substr(2));
        if (in.tables.count(n) == 0) {
            throw refusal{tool::quoted(entry) + " is no table of the setup"};
        }
        return link_to(in.tables[n].address);
    }
    if (starts_with(entry, "->")) { return link_to(number_in(entry.substr(2), "an address")); }
    return number_in(entry, "an entry: R0, END, ->T0, ->ADDRESS or a word");
}

/// The tables in memory. Without a table in the setup all regions are entries of T0, T1 .., in
/// order, and END leads from each to the next and from the last to T0.
inline void place_tables(setup& in) {
    if (in.is_range) { return; }
    if (!in.has_tables) {
        if (in.regions.empty()) { in.regions.resize(1); }
        place_regions(in);
        std::uint64_t first = table_at(in, 0).address;
        if (in.has_base) { first = in.msrs.output.base.raw; }
        std::size_t const count = (in.regions.size() - 1) / entries_per_table + 1;
        for (std::size_t n = 0; n < count; ++n) {
            in.tables[n] = {first + 0x1000 * n, {}};
            std::size_t const end = std::min(in.regions.size(), (n + 1) * entries_per_table);
            for (std::size_t i = n * entries_per_table; i < end; ++i) {
                in.tables[n].entries.push_back("R" + std::to_string(i));
            }
            in.tables[n].entries.push_back("->T" + std::to_string(n + 1 < count ? n + 1 : 0));
        }
    } else {
        place_regions(in);
    }
    if (!in.has_base) { in.msrs.output.base = {table_at(in, 0).address}; }
    for (auto const& [n, text] : in.edits) {
        auto& entries = table_at(in, 0).entries;
        if (entries.size() <= n) { entries.resize(n + 1, "0"); }
        entries[n] = text;
    }
    auto const tables = in.tables;
    for (auto const& [n, made] : tables) {
        for (std::size_t i = 0; i < made.entries.size(); ++i) {
            in.memory.push_back({made.address + 8 * i, word_of(in, n, made.entries[i])});
        }
    }
}

/// Reads a setup: one for each alternative, `A / B`, of an item that has them.
inline auto setups_of(std::string_view cell) -> std::vector<setup> {
    std::vector<setup> all(1);
    auto const items = items_of(cell);
    for (auto const& item : items) {  // other items change the base configuration
        all[0].is_range = all[0].is_range || starts_with(item, "single range");
        all[0].tracing = all[0].tracing || item == "tracing";
    }
    if (all[0].tracing) { all[0].msrs.ctl = all[0].base_ctl(); }
    for (auto const& item : items) {
        auto const choices = split(item, " / ");
        if (choices.size() > 1) {
            if (all.size() > 1) { throw refusal{"a setup has alternatives in one item"}; }
            all.resize(choices.size(), all.front());
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            auto const& choice = choices.size() > 1 ? choices[i] : item;
            if (choices.size() > 1) { all[i].condition = choice; }
            try {
                read_item(all[i], choice);
            } catch (refusal const& why) {
                throw refusal{"setup: " + tool::quoted(choice) + ": " + why.what()};
            }
        }
    }
    for (auto& one : all) {
        using ctl = reg::ia32_rtit_ctl;
        if (one.tracing) { one.msrs.ctl = one.msrs.ctl.with(ctl::TraceEn{true}); }
        place_tables(one);
    }
    return all;
}

}  // namespace pc_notation
