// SPDX-License-Identifier: BSL-1.0
// CPUID dumps of real processors by InstLatx64, and the values that Linux writes to IA32_RTIT_CTL.
#include <ptspec/cpu/compare.hpp>
#include <ptspec/access/legal.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/facts.hpp>
#include <support/reference_rules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace ptspec;
using cpu::capabilities;
namespace preset = cpu::preset;
namespace test = ptspec::test;

namespace {

auto hex(std::string const& cell) -> uint32_t {
    return static_cast<uint32_t>(std::stoull(cell, nullptr, 16));
}
auto decimal(std::string const& cell) -> uint32_t {
    return static_cast<uint32_t>(std::stoul(cell));
}

// ------------------------------------------------------------------------------------ a dump

/// A logical processor of a dump.
struct dump {
    std::string place;
    std::string name;
    unsigned core = 0;  ///< the core type of leaf 1AH: 20H Atom, 40H Core, 0 none
    bool pt = false;
    uint32_t signature = 0;
    uint32_t main[4] = {};  ///< 14H.0
    uint32_t more[4] = {};  ///< 14H.1
    uint32_t clock[3] = {};
    uint32_t physical = 0;
    uint32_t linear = 0;
    uint32_t size_of_state = 0;  ///< 0DH.8:EAX
    uint32_t kind_of_state = 0;  ///< 0DH.8:ECX
    bool xss_has_pt = false;     ///< 0DH.1:ECX[8]

    /// False for a dump that was made without the sub-leaf.
    [[nodiscard]] auto has_subleaf_1() const -> bool {
        return main[0] == 0 || more[0] != 0 || more[1] != 0;
    }

    /// The CPUID instruction of this processor.
    auto query(uint32_t leaf, uint32_t subleaf) -> cpuid_registers {
        switch (leaf) {
            case 0: return {0x15, 0, 0, 0};
            case 1: return {signature, 0, xss_has_pt ? 1U << 26 : 0, 0};
            case 7: return {0, subleaf == 0 && pt ? 1U << 25 : 0, 0, 0};
            case 0xD:
                return subleaf == 1   ? cpuid_registers{8, 0, xss_has_pt ? 0x100U : 0, 0}
                       : subleaf == 8 ? cpuid_registers{size_of_state, 0, kind_of_state, 0}
                                      : cpuid_registers{};
            case 0x14: {
                auto const& from = subleaf == 0 ? main : more;
                return {from[0], from[1], from[2], from[3]};
            }
            case 0x15: return {clock[0], clock[1], clock[2], 0};
            case 0x8000'0000: return {0x8000'0008, 0, 0, 0};
            case 0x8000'0008: return {linear << 8 | physical, 0, 0, 0};
            default: return {};
        }
    }
};

auto dump_of(test::csv_row const& row) -> dump {
    dump one{row.place, row["dump"]};
    one.pt = row["PT"] == "1";
    one.core = hex(row["coretype"]);
    one.signature = hex(one.name.substr(0, one.name.find('_')));
    char const* const registers[] = {"EAX", "EBX", "ECX", "EDX"};
    for (unsigned i = 0; i < 4; ++i) {
        one.main[i] = hex(row[std::string{"14.0."} + registers[i]]);
        one.more[i] = hex(row[std::string{"14.1."} + registers[i]]);
    }
    std::istringstream clock{row["15H"]};
    std::string part;
    for (unsigned i = 0; i < 3 && std::getline(clock, part, '/'); ++i) {
        one.clock[i] = i == 2 ? decimal(part) : hex(part);
    }
    one.physical = decimal(row["MAXPHYADDR"]);
    one.linear = decimal(row["LA"]);
    one.size_of_state = hex(row["0D.8.EAX"]);
    one.kind_of_state = hex(row["0D.8.ECX"]);
    one.xss_has_pt = row["XSS8"] == "1";
    return one;
}

auto dumps() -> std::vector<dump> {
    std::vector<dump> all;
    auto const table = test::facts_table("leaf14_instlatx64.csv");
    if (!table) { return all; }
    for (auto const& row : table->rows) { all.push_back(dump_of(row)); }
    return all;
}

/// The dumps of processors that have Intel PT, with both of its leaves.
auto complete_dumps() -> std::vector<dump> {
    auto all = dumps();
    std::erase_if(all, [](dump const& one) { return !one.pt || !one.has_subleaf_1(); });
    return all;
}

auto detected(dump one) -> capabilities { return cpu::detect(one); }

auto plain_of(dump const& one) -> reference::processor {
    return {"",          one.main[0],  one.main[1], one.main[2], one.more[0],
            one.more[1], one.physical, one.linear,  false,       one.pt};
}

// ------------------------------------------------------------------------------------ classes

/// Leaf 14H: EAX, EBX, ECX of sub-leaf 0, EAX and EBX of sub-leaf 1.
using capability_class = std::array<uint32_t, 5>;

/// The classes of the presets that are real processors.
auto preset_classes() -> std::set<capability_class> {
    std::set<capability_class> classes;
    for (auto const& row : test::read_csv("tests/spec/presets.csv").rows) {
        auto const& name = row["name"];
        auto const one = preset::find({name.data(), name.size()});
        REQUIRE(one);
        auto const& of = one->value;
        classes.insert({of.leaf_14_0_eax.raw, of.leaf_14_0_ebx.raw, of.leaf_14_0_ecx.raw,
                        of.leaf_14_1_eax.raw, of.leaf_14_1_ebx.raw});
    }
    return classes;
}

// ------------------------------------------------------------------------------------ Linux

/// The distinct values that Linux wrote to IA32_RTIT_CTL on a processor.
auto written_by_linux(std::string const& part) -> std::set<uint64_t> {
    std::set<uint64_t> values;
    for (auto const* const name : {"13_configs.", "06_filters."}) {
        auto const path = std::string{"linux_msr_sequences/"} + name + part + ".txt";
        auto const folder = test::facts_folder();
        if (!folder || !std::filesystem::exists(*folder / path)) { continue; }
        std::istringstream log{test::facts_text(path).value_or("")};
        for (std::string line; std::getline(log, line);) {
            std::string const begin = "WRMSR(570,";
            if (line.starts_with(begin)) {
                CHECK(line.ends_with(')'));
                values.insert(std::stoull(line.substr(begin.size()), nullptr, 16));
            }
        }
    }
    return values;
}

/// The processors with such logs, and the presets with the same leaf 14H.
struct logged_part {
    char const* name;
    text preset;
};
constexpr logged_part logged[] = {{"broadwell_ult", "Broadwell-ULT"},
                                  {"skylake_x", "Skylake-X"},
                                  {"alder_lake_n_B06E0", "AlderLake-N"},
                                  {"all_features_P_FUT", "P-FUT"}};

/// True when `whole` has all of leaf 14H that `part` has.
auto includes_leaf(capabilities const& whole, capabilities const& part) -> bool {
    auto const found = cpu::is_superset(whole, part);
    using cpu::aspect;
    return !found.lacking.has(aspect::pt) && !found.lacking.has(aspect::features) &&
           !found.lacking.has(aspect::outputs) && !found.lacking.has(aspect::address_ranges) &&
           !found.lacking.has(aspect::mtc_periods) && !found.lacking.has(aspect::cyc_thresholds) &&
           !found.lacking.has(aspect::psb_periods);
}

}  // namespace

// ------------------------------------------------------------------------------------ detection

TEST_CASE("detect() returns the capabilities of each dump (REG-160, PRG-001)") {
    for (auto const& one : dumps()) {
        CAPTURE(one.place);
        auto const of = detected(one);
        CHECK(of.has_pt() == one.pt);
        CHECK(of.leaf_01_eax.raw == one.signature);
        CHECK(of.leaf_14_0_eax.raw == (one.pt ? one.main[0] : 0));
        CHECK(of.leaf_14_0_ebx.raw == (one.pt ? one.main[1] : 0));
        CHECK(of.leaf_14_0_ecx.raw == (one.pt ? one.main[2] : 0));
        CHECK(of.leaf_14_1_eax.raw == (one.pt ? one.more[0] : 0));
        CHECK(of.leaf_14_1_ebx.raw == (one.pt ? one.more[1] : 0));
        CHECK(of.leaf_14_1_ecx.raw == (one.pt ? one.more[2] : 0));
        CHECK(one.main[3] == 0);
        CHECK(one.more[3] == 0);
        CHECK(of.leaf_15_ebx.raw == one.clock[1]);
        CHECK(of.leaf_15_ecx.raw == one.clock[2]);
        CHECK(of.max_phys_addr().bits == one.physical);
        CHECK(of.linear_address_bits() == one.linear);
        CHECK(of.has_xsaves_state() == one.xss_has_pt);
        CHECK((one.size_of_state == 0 || (one.size_of_state == 0x80 && one.xss_has_pt)));
        CHECK((of.ip_payload() == cpu::ip_payload::linear) == (one.pt && one.main[2] >> 31 == 1));
        CHECK(of.address_ranges() == (one.pt && (one.main[1] >> 2 & 1) == 1 ? one.more[0] & 7 : 0));
    }
}

TEST_CASE("leaf 14H of each dump is that of a preset (REG-161, REG-162, REG-164)") {
    auto const classes = preset_classes();
    for (auto const& one : dumps()) {
        CAPTURE(one.place);
        if (!one.pt) { continue; }
        bool const known = std::any_of(classes.begin(), classes.end(), [&](auto const& it) {
            bool const same_main = it[0] == one.main[0] && it[1] == one.main[1] &&
                                   it[2] == one.main[2];
            bool const same_more = it[3] == one.more[0] && it[4] == one.more[1];
            return same_main && (same_more || !one.has_subleaf_1());
        });
        CHECK(known);
    }
}

TEST_CASE("each real preset equals its dump") {
    auto const all = dumps();
    for (auto const& row : test::read_csv("tests/spec/presets.csv").rows) {
        if (all.empty()) { continue; }
        CAPTURE(row.place);
        auto const same = std::find_if(all.begin(), all.end(), [&](dump const& it) {
            bool const named = it.name == row["dump"] || it.name == row["dump"] + ".txt";
            return named && it.core == hex(row["core"]);
        });
        REQUIRE(same != all.end());
        auto const found = detected(*same);
        auto const& name = row["name"];
        auto of = preset::find({name.data(), name.size()})->value;
        // Not in a CPUID dump: the MSRs; the table of dumps omits 01H:ECX and 07H.1:EAX.
        of.leaf_01_ecx = found.leaf_01_ecx;
        of.leaf_07_1_eax = {};
        of.platform_info = {};
        of.vmx_misc = {};
        of.vmx_procbased_ctls2 = {};
        of.vmx_exit_ctls = {};
        of.vmx_entry_ctls = {};
        of.leaf_0d_1_eax = found.leaf_0d_1_eax;
        CHECK(of == found);
    }
}

TEST_CASE("within one dump E-cores report LIP and P-cores do not (REG-166)") {
    auto const all = dumps();
    for (auto const& one : all) {
        for (auto const& other : all) {
            if (one.name != other.name || one.core != 0x40 || other.core != 0x20) { continue; }
            CAPTURE(one.place);
            CHECK(detected(one).ip_payload() == cpu::ip_payload::effective);
            CHECK(detected(other).ip_payload() == cpu::ip_payload::linear);
            CHECK(detected(one).leaf_14_0_ebx == detected(other).leaf_14_0_ebx);
        }
    }
}

// ------------------------------------------------------------------------------------ legality

TEST_CASE(
    "a CTL value of Linux is legal on each dump exactly when an independent formulation of the "
    "rules accepts it (REG-024..040, REG-044)") {
    auto const all = complete_dumps();
    if (all.empty()) { return; }
    std::set<uint64_t> values;
    for (auto const& part : logged) { values.merge(written_by_linux(part.name)); }
    CHECK(!values.empty());
    for (auto const& one : all) {
        auto const of = detected(one);
        for (uint64_t const value : values) {
            CAPTURE(one.place);
            CAPTURE(value);
            bool const expected = reference::broken_by_ctl(plain_of(one), {}, value,
                                                           reference::vmx_text::newer)
                                      .empty();
            CHECK(access::is_legal(of, reg::ia32_rtit_ctl{value}) == expected);
        }
    }
}

TEST_CASE("a CTL value of Linux is legal on its processor, and on each dump that includes its "
          "leaf 14H (REG-164, REG-165)") {
    auto const all = complete_dumps();
    if (all.empty()) { return; }
    for (auto const& part : logged) {
        CAPTURE(part.name);
        auto const of = preset::find(part.preset)->value;
        auto const values = written_by_linux(part.name);
        CHECK(!values.empty());
        for (uint64_t const value : values) {
            CHECK(access::is_legal(of, reg::ia32_rtit_ctl{value}));
            for (auto const& one : all) {
                auto const other = detected(one);
                if (!includes_leaf(other, of)) { continue; }
                CAPTURE(one.place);
                CHECK(access::is_legal(other, reg::ia32_rtit_ctl{value}));
            }
        }
    }
}

// ------------------------------------------------------------------------------------ supersets

namespace {

/// The aspects of `part` that `whole` lacks, computed from the numbers of the dumps.
auto lacking(dump const& whole, dump const& part) -> uint32_t {
    auto const encodings = [](dump const& of, unsigned feature, unsigned word, unsigned lsb) {
        return ((of.main[1] >> feature & 1) != 0 ? of.more[word] >> lsb & 0xFFFF : 0) | 1U;
    };
    auto const ranges = [](dump const& of) {
        return (of.main[1] >> 2 & 1) != 0 ? of.more[0] & 7 : 0;
    };
    auto const lacks = [](uint32_t of_whole, uint32_t of_part) {
        return (of_part & ~of_whole) != 0;
    };
    bool const lacking[] = {
        false,
        lacks(whole.main[1], part.main[1]),
        lacks(whole.main[2], part.main[2] & 0x7FFF'FFFF),
        ranges(part) > ranges(whole),
        lacks(encodings(whole, 3, 0, 16), encodings(part, 3, 0, 16)),
        lacks(encodings(whole, 1, 1, 0), encodings(part, 1, 1, 0)),
        lacks(encodings(whole, 1, 1, 16), encodings(part, 1, 1, 16)),
        false,
        part.physical > whole.physical,
        part.linear > whole.linear,
        false,
        part.xss_has_pt && !whole.xss_has_pt,
    };
    uint32_t bits = 0;
    for (unsigned i = 0; i < std::size(lacking); ++i) { bits |= lacking[i] ? 1U << i : 0; }
    return bits;
}

}  // namespace

TEST_CASE("for each pair of dumps is_superset() names the lacking aspects (REG-164..166)") {
    auto const all = complete_dumps();
    std::vector<capabilities> found;
    for (auto const& one : all) { found.push_back(detected(one)); }
    for (size_t i = 0; i < all.size(); ++i) {
        for (size_t j = 0; j < all.size(); ++j) {
            auto const reported = cpu::is_superset(found[i], found[j]);
            bool const same_lip = all[i].main[2] >> 31 == all[j].main[2] >> 31;
            if (reported.lacking.bits != lacking(all[i], all[j]) ||
                reported.same_ip_payload != same_lip) {
                FAIL_CHECK(all[i].place, " against ", all[j].place);
            }
        }
    }
}
