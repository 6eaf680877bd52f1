// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/compare.hpp>

#include <ptspec/access/legal.hpp>
#include <ptspec/cpu/presets.hpp>
#include <support/check_twice.hpp>

#include <random>
#include <vector>

using namespace ptspec::cpu;
using namespace ptspec::access;
using namespace ptspec::reg;

namespace {

/// The presets, and processors that differ from them in every capability.
auto processors() -> std::vector<capabilities> {
    std::vector<capabilities> all;
    for (auto const& one : preset::all) { all.push_back(one.value); }
    std::mt19937_64 random{3};
    for (unsigned i = 0; i < 24; ++i) {
        auto const next = [&] { return static_cast<uint32_t>(random()); };
        capabilities made = preset::P_FUT;
        made.leaf_01_eax = {next()};
        made.leaf_01_ecx = {next()};
        made.leaf_07_0_ebx = {next()};
        made.leaf_07_1_eax = {next()};
        made.leaf_0a_eax = {next()};
        made.leaf_0d_1_eax = {next()};
        made.leaf_0d_1_ecx = {next()};
        made.leaf_0d_8_eax = {next() % 3 == 0 ? 0x80U : 0U};
        made.leaf_0d_8_ecx = {next() & 3};
        made.leaf_14_0_eax = {next() % 3};
        made.leaf_14_0_ebx = {next()};
        made.leaf_14_0_ecx = {next()};
        made.leaf_14_1_eax = {next()};
        made.leaf_14_1_ebx = {next()};
        made.leaf_14_1_ecx = {next()};
        made.leaf_15_ebx = {next() % 2};
        made.leaf_80000008_eax = {(next() % 70) << 8 | (next() % 3 == 0 ? 0 : 30 + next() % 26)};
        made.platform_info = {random() % 2 << 8};
        made.perf_capabilities = {random()};
        made.vmx_misc = {random()};
        made.vmx_procbased_ctls2 = {random()};
        made.vmx_exit_ctls = {random()};
        made.vmx_entry_ctls = {random()};
        all.push_back(made);
    }
    return all;
}

/// Clears what `common` takes only from the first processor.
auto without_words_of_first(capabilities of) -> capabilities {
    of.leaf_01_eax = {};
    of.leaf_14_0_ecx = {of.leaf_14_0_ecx.raw & 0x7FFF'FFFF};
    of.vmx_misc = {of.vmx_misc.raw & 0x4000};
    of.perf_capabilities = {of.perf_capabilities.raw & 0x1'0000};
    return of;
}

auto ctl_values() -> std::vector<uint64_t> {
    std::vector<uint64_t> values = {0, ~uint64_t{0}, 0x1, 0x41, 0x101, 0x2001, 0x2041, 0x2101};
    for (unsigned n = 0; n < 64; ++n) {
        values.push_back(uint64_t{1} << n);
        values.push_back(uint64_t{1} << n | 0x2109);
    }
    for (unsigned encoding = 0; encoding < 16; ++encoding) {
        for (unsigned const lsb : {14U, 19U, 24U, 32U, 36U, 40U, 44U}) {
            values.push_back(uint64_t{encoding} << lsb);
        }
    }
    return values;
}

/// The bits of `aspect` that P_FUT lacks of itself with `change` applied.
template <class Change>
constexpr auto lacking(Change change) -> uint32_t {
    auto whole = preset::P_FUT;
    change(whole);
    return is_superset(whole, preset::P_FUT).lacking.bits;
}

}  // namespace

// ------------------------------------------------------------------------------------ includes

TEST_CASE("is_superset() orders the real processors (REG-165)") {
    CHECK_TWICE([](auto value) {
        return is_superset(value(preset::skylake_x), preset::broadwell) &&
               !is_superset(value(preset::broadwell), preset::skylake_x) &&
               is_superset(value(preset::P_FUT), preset::P_ATM) &&
               is_superset(value(preset::P_FUT), preset::P_FAB) &&
               !is_superset(value(preset::P_ATM), preset::P_SRO);
    });
    CHECK_TWICE([](auto value) {
        // Fewer CYC thresholds, more features: neither includes the other.
        auto const one = is_superset(value(preset::skylake_x), preset::arrow_lake_p);
        auto const other = is_superset(value(preset::arrow_lake_p), preset::skylake_x);
        return one.lacking.bits == (2U | 1024U) && other.lacking.bits == 32U &&
               other.lacking.has(aspect::cyc_thresholds) && !other.lacking.has(aspect::features) &&
               one.lacking.has(aspect::features) && one.lacking.has(aspect::vmx);
    });
    CHECK_TWICE([](auto value) {
        auto const narrow = is_superset(value(preset::tiger_lake), preset::skylake_x);
        return narrow.lacking.bits == (32U | 256U) && narrow.lacking.has(aspect::max_phys_addr);
    });
}

TEST_CASE("LIP does not affect is_superset() but is reported (REG-079, REG-166)") {
    CHECK_TWICE([](auto value) {
        auto const one = is_superset(value(preset::arrow_lake_p), preset::arrow_lake_e);
        auto const other = is_superset(value(preset::arrow_lake_e), preset::arrow_lake_p);
        auto const same = is_superset(value(preset::arrow_lake_e), preset::arrow_lake_e);
        return one && !one.same_ip_payload && other && !other.same_ip_payload && same &&
               same.same_ip_payload && same == superset_result{} && !(one == superset_result{});
    });
}

TEST_CASE("is_superset() names the aspect of a lacking word (REG-164)") {
    CHECK_TWICE([](auto value) {
        return lacking([&](auto& of) { of.leaf_07_0_ebx = {value(~(1U << 25))}; }) == 1 &&
               lacking([&](auto& of) { of.leaf_14_0_ebx = {value(0x3FEU)}; }) == 2 &&
               lacking([&](auto& of) { of.leaf_14_0_ecx = {value(0x8000'0007U)}; }) == 4 &&
               lacking([&](auto& of) { of.leaf_14_1_eax = {value(0xFFFF'0203U)}; }) == 8 &&
               lacking([&](auto& of) { of.leaf_14_1_eax = {value(0xBFFF'0204U)}; }) == 16 &&
               lacking([&](auto& of) { of.leaf_14_1_ebx = {value(0xFFFF'FFFDU)}; }) == 32 &&
               lacking([&](auto& of) { of.leaf_14_1_ebx = {value(0x7FFF'FFFFU)}; }) == 64;
    });
    CHECK_TWICE([](auto value) {
        return lacking([&](auto& of) { of.leaf_14_1_eax = {value(0xFFFF'0104U)}; }) == 128 &&
               lacking([&](auto& of) { of.leaf_14_1_ecx = {value(0x8002U)}; }) == 128 &&
               lacking([&](auto& of) { of.leaf_80000008_eax = {value(0x3933U)}; }) == 256 &&
               lacking([&](auto& of) { of.leaf_80000008_eax = {value(0x3834U)}; }) == 512 &&
               lacking([&](auto& of) { of.vmx_misc = {value(uint64_t{0})}; }) == 1024 &&
               lacking([&](auto& of) { of.vmx_exit_ctls = {value(uint64_t{0})}; }) == 1024 &&
               lacking([&](auto& of) { of.leaf_0d_1_ecx = {value(0U)}; }) == 2048 &&
               lacking([&](auto& of) { of.perf_capabilities = {value(uint64_t{0})}; }) == 4096;
    });
    CHECK_TWICE([](auto value) {
        // More than the other has, and bits that do not concern Intel PT.
        return lacking([&](auto& of) { of.leaf_14_0_ebx = {value(0x7FFU)}; }) == 0 &&
               lacking([&](auto& of) { of.leaf_14_1_eax = {value(0xFFFF'0307U)}; }) == 0 &&
               lacking([&](auto& of) { of.leaf_15_ebx = {value(0x7FFU)}; }) == 0 &&
               lacking([&](auto& of) { of.leaf_01_eax = {value(0x7FFU)}; }) == 0 &&
               lacking([&](auto& of) { of.leaf_14_0_ecx = {value(0x0000'000FU)}; }) == 0 &&
               lacking([&](auto& of) { of.leaf_14_0_ecx = {value(0x8000'0010U)}; }) == 4;
    });
}

TEST_CASE("every aspect is a distinct bit, and all of them can be lacking") {
    CHECK_TWICE([](auto value) {
        capabilities const nothing{};
        auto const found = is_superset(nothing, value(preset::P_FUT));
        return found.lacking.bits == 0x1FFF && !found && found.lacking.has(aspect::pt) &&
               found.lacking.has(aspect::features) && found.lacking.has(aspect::outputs) &&
               found.lacking.has(aspect::address_ranges) &&
               found.lacking.has(aspect::mtc_periods) &&
               found.lacking.has(aspect::cyc_thresholds) &&
               found.lacking.has(aspect::psb_periods) && found.lacking.has(aspect::triggers) &&
               found.lacking.has(aspect::max_phys_addr) &&
               found.lacking.has(aspect::linear_address_bits) && found.lacking.has(aspect::vmx) &&
               found.lacking.has(aspect::xsaves) && found.lacking.has(aspect::pebs_output);
    });
}

TEST_CASE("a capability that `part` does not have is never lacking") {
    CHECK_TWICE([](auto value) {
        capabilities const nothing{};
        return static_cast<bool>(is_superset(value(preset::P_FUT), nothing)) &&
               static_cast<bool>(is_superset(nothing, nothing)) &&
               is_superset(value(preset::P_FUT), nothing).same_ip_payload == false;
    });
}

TEST_CASE("is_superset() is reflexive and transitive") {
    auto const all = processors();
    unsigned wrong = 0;
    unsigned chains = 0;
    for (auto const& a : all) {
        if (!(is_superset(a, a) && is_superset(a, a).same_ip_payload)) { ++wrong; }
        for (auto const& b : all) {
            if (!is_superset(a, b)) { continue; }
            for (auto const& c : all) {
                if (!is_superset(b, c)) { continue; }
                ++chains;
                if (!is_superset(a, c)) { ++wrong; }
            }
        }
    }
    CHECK(wrong == 0);
    CHECK(chains > 100);
}

TEST_CASE("a value that is legal on `part` is legal on every `whole` that includes it") {
    auto const all = processors();
    auto const values = ctl_values();
    unsigned wrong = 0;
    for (auto const& whole : all) {
        for (auto const& part : all) {
            if (!is_superset(whole, part)) { continue; }
            for (uint64_t const value : values) {
                if (is_legal(part, ia32_rtit_ctl{value}) &&
                    !is_legal(whole, ia32_rtit_ctl{value})) {
                    ++wrong;
                }
            }
        }
    }
    CHECK(wrong == 0);
}

// ------------------------------------------------------------------------------------ common

TEST_CASE("common() of Skylake-X and Arrow Lake (REG-164)") {
    CHECK_TWICE([](auto value) {
        auto const both = common(value(preset::skylake_x), preset::arrow_lake_e);
        auto const& of = both.value;
        return !both.same_ip_payload && of.ip_payload() == ip_payload::effective &&
               of.leaf_01_eax.raw == 0x50654 && of.leaf_14_0_eax.raw == 1 &&
               of.leaf_14_0_ebx.raw == 0x0F && of.leaf_14_0_ecx.raw == 7 &&
               of.leaf_14_1_eax.raw == 0x02490002 && of.leaf_14_1_ebx.raw == 0x003F003F &&
               of.max_phys_addr().bits == 46 && of.vmx() == vmx_support::conceal &&
               of.has_xsaves_state() && of.leaf_15_eax.raw == 2 && of.leaf_15_ebx.raw == 0 &&
               of.leaf_15_ecx.raw == 0 && of.platform_info.raw == 0;
    });
    CHECK_TWICE([](auto value) {
        auto const both = common(value(preset::arrow_lake_e), preset::skylake_x);
        return !both.same_ip_payload && both.value.ip_payload() == ip_payload::linear &&
               both.value.leaf_01_eax.raw == 0xC0662 && both.value.leaf_14_0_ecx.raw == 0x8000'0007;
    });
}

TEST_CASE("the core types of one processor differ only in LIP (REG-079)") {
    CHECK_TWICE([](auto value) {
        auto const both = common(value(preset::arrow_lake_p), preset::arrow_lake_e);
        auto const swapped = common(value(preset::arrow_lake_e), preset::arrow_lake_p);
        return both.value == preset::arrow_lake_p && !both.same_ip_payload &&
               swapped.value == preset::arrow_lake_e && !swapped.same_ip_payload;
    });
}

TEST_CASE("common() combines each word by its own rule") {
    CHECK_TWICE([](auto value) {
        auto one = value(preset::P_FUT);
        auto two = value(preset::P_FUT);
        one.leaf_0a_eax = {0x0720'0605};
        two.leaf_0a_eax = {0x0830'0406};
        one.leaf_14_0_eax = {3};
        two.leaf_14_0_eax = {2};
        one.leaf_14_1_eax = {0xF0F0'0207};
        two.leaf_14_1_eax = {0xFF00'0103};
        one.leaf_14_1_ecx = {0x8001};
        two.leaf_14_1_ecx = {0x8002};
        one.leaf_0d_8_ecx = {3};
        two.leaf_0d_8_ecx = {1};
        auto const of = common(one, two).value;
        return of.leaf_0a_eax.raw == 0x0720'0405 && of.leaf_14_0_eax.raw == 2 &&
               of.leaf_14_1_eax.raw == 0xF000'0103 && of.leaf_14_1_ecx.raw == 0x8000 &&
               of.leaf_0d_8_ecx.raw == 1 && of.leaf_0d_8_eax.raw == 0x80;
    });
    CHECK_TWICE([](auto value) {
        auto one = value(preset::P_FUT);
        auto two = value(preset::P_FUT);
        one.vmx_misc = {0x7004'C1E7};
        two.vmx_misc = {0x3004'81E5};
        one.vmx_exit_ctls = {0x0000'00F0'0000'0001};
        two.vmx_exit_ctls = {0x0000'003C'0000'0002};
        one.vmx_entry_ctls = {0x0000'0003'0000'0003};
        one.vmx_procbased_ctls2 = {0x8000'0000'8000'0000};
        two.vmx_procbased_ctls2 = {0xC000'0000'4000'0000};
        one.perf_capabilities = {0x1'0035};
        two.perf_capabilities = {0x0'0036};
        auto const of = common(one, two).value;
        return of.vmx_misc.raw == 0x7004'81E7 && of.vmx_exit_ctls.raw == 0x0000'0030'0000'0003 &&
               of.vmx_entry_ctls.raw == 0x0000'0000'0000'0003 &&
               of.vmx_procbased_ctls2.raw == 0x8000'0000'C000'0000 &&
               of.perf_capabilities.raw == 0x35;
    });
    CHECK_TWICE([](auto value) {
        auto one = value(preset::P_FUT);
        auto two = value(preset::P_FUT);
        one.leaf_01_ecx = {0x0F0F'0020};
        two.leaf_01_ecx = {0x00FF'0060};
        one.leaf_07_0_ebx = {0x0200'0814};
        two.leaf_07_0_ebx = {0x0200'0804};
        one.leaf_07_1_eax = {0x080E'0001};
        two.leaf_07_1_eax = {0x0806'0003};
        one.leaf_15_ebx = {0x7E};
        two.leaf_15_ebx = {0x7F};
        one.leaf_15_ecx = {38'400'000};
        two.leaf_15_ecx = {38'400'000};
        one.platform_info = {0x1800};
        two.platform_info = {0x1900};
        auto const of = common(one, two).value;
        return of.leaf_01_ecx.raw == 0x000F'0020 && of.leaf_07_0_ebx.raw == 0x0200'0804 &&
               of.leaf_07_1_eax.raw == 0x0806'0001 && of.leaf_15_ebx.raw == 0 &&
               of.leaf_15_ecx.raw == 38'400'000 && of.platform_info.raw == 0;
    });
}

TEST_CASE("the narrower address width is common, default widths included (REG-070)") {
    auto const widths = [](uint32_t one, uint32_t two) {
        capabilities a;
        capabilities b;
        a.leaf_80000008_eax = {one};
        b.leaf_80000008_eax = {two};
        return common(a, b).value.leaf_80000008_eax.raw;
    };
    CHECK_TWICE([=](auto value) {
        return widths(value(0x392EU), 0x3027) == 0x3027 &&
               widths(value(0x3027U), 0x392E) == 0x3027 &&
               widths(value(0x302EU), 0x3927) == 0x3027 && widths(value(0U), 0) == 0 &&
               widths(value(0U), 0x392E) == 0 && widths(value(0x392EU), 0) == 0 &&
               widths(value(0x3920U), 0) == 0x0020 && widths(value(0U), 0x3024) == 0x3024 &&
               widths(value(0x3024U), 0) == 0x3024 &&
               widths(value(0x3024'3024U), 0x0124'2024) == 0x0024'2024;
    });
}

TEST_CASE("common() is the greatest set that both include") {
    auto const all = processors();
    unsigned wrong = 0;
    unsigned lower_bounds = 0;
    for (auto const& a : all) {
        for (auto const& b : all) {
            auto const both = common(a, b);
            if (!is_superset(a, both.value) || !is_superset(b, both.value)) { ++wrong; }
            if (!is_superset(a, both.value).same_ip_payload) { ++wrong; }
            if (both.same_ip_payload != (a.ip_payload() == b.ip_payload())) { ++wrong; }
            for (auto const& c : all) {
                if (!is_superset(a, c) || !is_superset(b, c)) { continue; }
                ++lower_bounds;
                if (!is_superset(both.value, c)) { ++wrong; }
            }
        }
    }
    CHECK(wrong == 0);
    CHECK(lower_bounds > 100);
}

TEST_CASE("a default inclusion and default common_capabilities have no difference") {
    CHECK_TWICE([](auto value) {
        return value(common_capabilities{}).same_ip_payload && superset_result{}.same_ip_payload &&
               static_cast<bool>(superset_result{});
    });
}

TEST_CASE("common() is idempotent and commutative") {
    auto const all = processors();
    unsigned wrong = 0;
    for (auto const& a : all) {
        if (!(common(a, a).value == a) || !common(a, a).same_ip_payload) { ++wrong; }
        for (auto const& b : all) {
            if (!(without_words_of_first(common(a, b).value) ==
                  without_words_of_first(common(b, a).value))) {
                ++wrong;
            }
            for (auto const& c : all) {
                if (!(common(common(a, b).value, c).value == common(a, common(b, c).value).value)) {
                    ++wrong;
                }
            }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("a value is legal on common() exactly when it is legal on both "
          "(REG-025, REG-028, REG-037, REG-040)") {
    auto const all = processors();
    auto const values = ctl_values();
    unsigned wrong = 0;
    auto const agree = [&](auto const& both, auto const& a, auto const& b, auto value) {
        if (is_legal(both, value) != (is_legal(a, value) && is_legal(b, value))) { ++wrong; }
    };
    for (auto const& a : all) {
        for (auto const& b : all) {
            auto const both = common(a, b).value;
            for (uint64_t const value : values) {
                agree(both, a, b, ia32_rtit_ctl{value});
                agree(both, a, b, ia32_rtit_status{value});
                agree(both, a, b, ia32_rtit_output_base{value});
                agree(both, a, b, ia32_rtit_cr3_match{value});
                agree(both, a, b, ia32_rtit_addr{value});
            }
            if (writable_ctl_mask(both) != (writable_ctl_mask(a) & writable_ctl_mask(b))) {
                ++wrong;
            }
        }
    }
    CHECK(wrong == 0);
}
