// SPDX-License-Identifier: BSL-1.0
// The column "Manual" of the table in section 4.2 of tests/spec/drivers.md, which lists the writes
// that each implementation refuses. Every row has a scenario here, with the row's text as its name.
#include <ptspec/access/effect.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>
#include <support/csv.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace ptspec;

namespace {

// ------------------------------------------------------------------------------------- scenarios

enum class part : std::uint8_t { BDW, SKL, ATM, FUT };

constexpr auto preset(part of) -> cpu::capabilities const& {
    switch (of) {
        case part::BDW: return cpu::preset::P_BDW;
        case part::SKL: return cpu::preset::P_SKL;
        case part::ATM: return cpu::preset::P_ATM;
        case part::FUT: break;
    }
    return cpu::preset::P_FUT;
}

/// A WRMSR, its processor, and the value of CTL before it.
struct probe {
    part of = part::FUT;
    uint64_t ctl = 0;
    uint64_t value = 0;
    uint32_t index = 0x570;
    bool in_vmx = false;
};

struct probes {
    probe list[24] = {};
    std::size_t count = 0;

    constexpr auto operator+(probe const& one) const -> probes {
        auto more = *this;
        more.list[more.count++] = one;
        return more;
    }
    /// Adds `one` once for each bit of `bits`, with that bit of the value inverted.
    constexpr auto with_each(uint64_t bits, probe one) const -> probes {
        auto more = *this;
        uint64_t const value = one.value;
        for (; bits != 0; bits &= bits - 1) {
            one.value = value ^ (bits & (~bits + 1));
            more = more + one;
        }
        return more;
    }
    /// Adds `one` with each of the encodings `bits` in the field that starts at `lsb`.
    constexpr auto with_encodings(uint64_t bits, unsigned lsb, probe one) const -> probes {
        auto more = *this;
        uint64_t const value = one.value;
        for (unsigned encoding = 0; encoding < 16; ++encoding) {
            one.value = value | uint64_t{encoding} << lsb;
            if ((bits >> encoding & 1) != 0) { more = more + one; }
        }
        return more;
    }
    /// Adds `one` for each of the MSRs from `first` to `last`.
    constexpr auto with_msrs(uint32_t first, uint32_t last, probe one) const -> probes {
        auto more = *this;
        for (one.index = first; one.index <= last; ++one.index) { more = more + one; }
        return more;
    }
};

/// A row of the table: its first cell, the writes to try, and the broken rule where the manual says
/// #GP.
struct scenario {
    text row;
    rule broken;
    probes tried;
};

constexpr uint64_t everything = 0x0180'2222'8000'2109;  // includes bits 56, 55 and 31

constexpr scenario scenarios[] = {
    {"same value rewritten with TraceEn=1", rule::none,
     probes{} + probe{part::SKL, 0x2109, 0x2109} + probe{part::BDW, 0x2109, 0x2109} +
         probe{part::FUT, everything, everything}},
    {"TraceEn 1→0 together with other changes", rule::none,
     (probes{} + probe{part::SKL, 0x2109, 0} + probe{part::BDW, 0x2109, 0} +
      probe{part::FUT, everything, 0})
         .with_each(0x2D0C, {part::SKL, 0x2109, 0x2108})},
    {"TraceEn stays 1, other bit changes", rule::REG_021,
     probes{}.with_each(0x2D0C, {part::SKL, 0x2109, 0x2109})},
    {"TraceEn=1, no ToPA, no Fabric, no single range", rule::REG_025,
     probes{} + probe{part::BDW, 0, 0x2009} + probe{part::BDW, 0x2108, 0x200D}},
    {"reserved CTL bit", rule::REG_044,
     probes{}.with_each(0xFE7F'0000'7084'0000, {part::FUT, 0, 0})},
    {"bits 31/55 with the cap", rule::none,
     probes{} + probe{part::FUT, 0, 1ULL << 31} + probe{part::FUT, 0, 1ULL << 55} +
         probe{part::FUT, 0, 1ULL << 31 | 1ULL << 55 | 0x2109}},
    {"bit 56 with the cap", rule::none,
     probes{} + probe{part::FUT, 0, 1ULL << 56} + probe{part::ATM, 0, 1ULL << 56 | 0x2109}},
    {"ADDRn_CFG = 3", rule::REG_037,
     probes{} + probe{part::FUT, 0, 3ULL << 32} + probe{part::FUT, 0, 3ULL << 36} +
         probe{part::FUT, 0, 3ULL << 40} + probe{part::FUT, 0, 3ULL << 44} +
         probe{part::SKL, 0, 3ULL << 36 | 0x2109}},
    {"ADDRn_CFG nonzero, n ≥ count", rule::REG_037,
     probes{}
         .with_encodings(0x0006, 40, {part::SKL, 0, 0})
         .with_encodings(0x0006, 44, {part::SKL, 0, 0})
         .with_encodings(0x0006, 32, {part::BDW, 0, 0})},
    {"unsupported PSBFreq or CycThresh", rule::REG_028,
     probes{}
         .with_encodings(0xFFC0, 24, {part::SKL, 0, 0})
         .with_encodings(0xC000, 19, {part::SKL, 0, 0x2109})},
    {"unsupported MTCFreq while MTCEn=0", rule::REG_028,
     probes{}.with_encodings(0xFDB6, 14, {part::SKL, 0, 0})},
    {"FUPonPTW without PTWEn", rule::none,
     probes{} + probe{part::ATM, 0, 0x20} + probe{part::FUT, 0, 0x2129}},
    {"TraceEn=1 with BranchEn=0 and EBX[3]=0 (Broadwell)", rule::REG_040,
     probes{} + probe{part::BDW, 0, 0x109} + probe{part::BDW, 0x2108, 0x10D}},
    {"any CTL write in VMX operation, VMX_MISC[14]=0", rule::REG_121,
     probes{} + probe{part::BDW, 0, 0x2109, 0x570, true} + probe{part::BDW, 0, 0, 0x570, true} +
         probe{part::BDW, 0x2108, 0x2108, 0x570, true} + probe{part::BDW, 0, 0x2108, 0x570, true}},
    {"config MSR write that begins and ends with TraceEn=1", rule::REG_004,
     probes{}
         .with_msrs(0x560, 0x561, {part::FUT, 0x2109, 0x7F})
         .with_msrs(0x571, 0x572, {part::FUT, 0x2109, 0})
         .with_msrs(0x580, 0x587, {part::FUT, 0x2109, 0})},
};

/// The outcome of one write. It is unsound when a faulting write changed the state, or an accepted
/// value does not read back.
struct outcome {
    bool sound = false;
    rule broken = rule::none;
};

constexpr auto outcome_of(probe const& one) -> outcome {
    auto const& of = preset(one.of);
    access::msr_state now;
    now.ctl = {one.ctl};
    now.status = {(one.ctl & 1) != 0 ? 4U : 0U};
    now.in_vmx_operation = one.in_vmx;
    auto const done = access::effect_of_write(of, now, one.index, one.value);
    if (done) {
        return {access::value_of(done.state, one.index) == one.value, done.verdict.broken};
    }
    return {done.state == now, done.verdict.broken};
}

/// `ok` or `#GP` where all writes of a scenario agree, by the rule that the scenario names.
constexpr auto verdict_on(scenario const& row) -> text {
    for (std::size_t i = 0; i < row.tried.count; ++i) {
        auto const result = outcome_of(row.tried.list[i]);
        if (!result.sound || result.broken != row.broken) { return "something else"; }
    }
    return row.broken == rule::none ? text{"ok"} : text{"#GP"};
}

constexpr std::size_t scenario_count = std::size(scenarios);

struct verdicts {
    text on[scenario_count];
};

constexpr auto all_verdicts() -> verdicts {
    verdicts all;
    for (std::size_t i = 0; i < scenario_count; ++i) { all.on[i] = verdict_on(scenarios[i]); }
    return all;
}

auto shown(text some) -> std::string { return {some.data(), some.size()}; }

// ------------------------------------------------------------------------------------- the table

struct table_row {
    std::string name;
    std::string manual;
};

/// The cells of a line `| a | b |`, trimmed.
auto cells_of(std::string const& line) -> std::vector<std::string> {
    std::vector<std::string> cells;
    if (!line.starts_with("| ") || !line.ends_with(" |")) {
        throw std::runtime_error{"no row of a table: " + line};
    }
    for (std::size_t at = 2; at < line.size();) {
        auto const end = line.find(" |", at);
        cells.push_back(line.substr(at, end - at));
        at = end + 3;
    }
    return cells;
}

/// The first two cells of each row of the table below the heading of section 4.2.
auto rows_of(std::string const& page) -> std::vector<table_row> {
    auto const heading = page.find("\n### 4.2 ");
    auto const begin = page.find("\n|", heading);
    auto const end = page.find("\n\n", begin);
    if (heading == std::string::npos || begin == std::string::npos) {
        throw std::runtime_error{"there is no table in section 4.2"};
    }
    std::vector<table_row> rows;
    std::istringstream lines{page.substr(begin + 1, end - begin - 1)};
    std::string line;
    std::getline(lines, line);
    if (!line.starts_with("| Case | Manual | ")) { throw std::runtime_error{"columns: " + line}; }
    auto const columns = cells_of(line).size();
    std::getline(lines, line);
    if (line.find_first_not_of("|-") != std::string::npos) {
        throw std::runtime_error{"no line below the columns: " + line};
    }
    while (std::getline(lines, line)) {
        auto const cells = cells_of(line);
        if (cells.size() != columns) { throw std::runtime_error{"cells: " + line}; }
        rows.push_back({cells[0], cells[1]});
    }
    return rows;
}

auto table() -> std::vector<table_row> { return rows_of(test::read_text("tests/spec/drivers.md")); }

/// A cell's verdict: the text without the remark in parentheses after it.
auto verdict_in(std::string const& cell) -> std::string {
    auto const remark = cell.find(" (");
    if (remark != std::string::npos && !cell.ends_with(")")) { return "no cell: " + cell; }
    return cell.substr(0, remark);
}

}  // namespace

TEST_CASE("every row of the table has one scenario, and every scenario has a row") {
    std::vector<std::string> rows;
    std::vector<std::string> known;
    for (auto const& row : table()) { rows.push_back(row.name); }
    for (auto const& one : scenarios) { known.push_back(shown(one.row)); }
    std::sort(rows.begin(), rows.end());
    std::sort(known.begin(), known.end());
    CHECK(rows == known);
    CHECK(!rows.empty());
    CHECK(std::adjacent_find(rows.begin(), rows.end()) == rows.end());
}

TEST_CASE("WRMSR gives the manual's verdict for every row, as a constant and at run time") {
    static constexpr auto known = all_verdicts();
    for (auto const& row : table()) {
        INFO(row.name, ": the manual says ", row.manual);
        for (std::size_t i = 0; i < scenario_count; ++i) {
            if (shown(scenarios[i].row) != row.name) { continue; }
            CHECK(shown(known.on[i]) == verdict_in(row.manual));
            CHECK(shown(verdict_on(test::unknown{}(scenarios[i]))) == verdict_in(row.manual));
        }
    }
}

TEST_CASE("the broken rule is the one that the manual's cell names") {
    unsigned named = 0;
    for (auto const& row : table()) {
        auto const at = row.manual.find("REG-");
        if (at == std::string::npos) { continue; }
        ++named;
        for (auto const& one : scenarios) {
            if (shown(one.row) != row.name) { continue; }
            CHECK(row.manual.substr(at, 7) == shown(rule_id{one.broken}.view()));
        }
    }
    CHECK(named == 1);
}

TEST_CASE("malformed tables are not read") {
    std::string const good =
        "\n### 4.2 x\n\n| Case | Manual | K |\n|---|---|---|\n| a | ok | b |\n\n";
    CHECK(rows_of(good).size() == 1);
    CHECK(rows_of(good)[0].name == "a");
    CHECK(rows_of(good)[0].manual == "ok");
    CHECK(verdict_in("#GP (so; REG-040)") == "#GP");
    CHECK(verdict_in("#GP (so") != "#GP");
    for (auto const& [old, now] : {std::pair{"4.2", "4.3"},
                                   {"Case", "Who"},
                                   {"| b |", "| b"},
                                   {"| b |", "|"},
                                   {"|---|", "| --"},
                                   {"| a", "a"}}) {
        auto bad = good;
        bad.replace(bad.find(old), std::string_view{old}.size(), now);
        INFO(bad);
        CHECK_THROWS_AS((void)rows_of(bad), std::runtime_error);
    }
}
