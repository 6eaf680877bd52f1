// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/plan.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using driver::plan_change;
using driver::plan_request;
namespace preset = cpu::preset;

namespace {

constexpr uint64_t table = 0x1000'0000;

constexpr auto ring_request() -> plan_request {
    return {.config = {.user = true, .tsc = true}, .output = driver::in_topa({.table = table})};
}

}  // namespace

TEST_CASE("a supported request is planned as it is, with TraceEn (PRG-128)") {
    CHECK_TWICE([](auto value) {
        auto wanted = ring_request();
        wanted.config.os = value(true);
        auto const got = driver::plan(preset::skylake_x, wanted);
        // TraceEn, OS, User, ToPA, TSCEn, BranchEn: the base configuration of programming.md.
        return got && got.changes.empty() && got.plan.ctl.raw == 0x250D &&
               got.plan.status.raw == 0 && got.plan.output.base.raw == table &&
               got.plan.output.mask_ptrs.raw == 0x7F && got.plan.cr3_match.raw == 0;
    });
}

TEST_CASE("a refused member is listed, and the nearest one is planned (PRG-022,134,135)") {
    CHECK_TWICE([](auto value) {
        auto wanted = ring_request();
        wanted.config.mtc = value(true);
        wanted.config.mtc_every = cpu::mtc_period::of_crystal_cycles(16);  // encoding 4
        wanted.config.ptwrite = true;                                      // not on Skylake-X
        auto const got = driver::plan(preset::skylake_x, wanted);
        return !got && got.config.violation_count == 2 &&
               got.config.broken_by(config::config_member::mtc_every) == rule::REG_028 &&
               got.config.broken_by(config::config_member::ptwrite) == rule::REG_032 &&
               got.plan.ctl.get<reg::ia32_rtit_ctl::MTCFreq>() == 3 &&
               !got.plan.ctl.get<reg::ia32_rtit_ctl::PTWEn>() &&
               access::is_legal(preset::skylake_x, got.plan.ctl);
    });
}

TEST_CASE("PacketByteCnt is planned where it exists (PRG-042)") {
    CHECK_TWICE([](auto value) {
        auto wanted = ring_request();
        wanted.packet_byte_cnt = value(uint64_t{0x300});
        auto const here = driver::plan(preset::skylake_x, wanted);
        auto const broadwell = driver::plan(preset::broadwell, wanted);
        return here.plan.status.raw == 0x300'0000'0000 &&
               !here.changes.has(plan_change::byte_count_reset) && broadwell.plan.status.raw == 0 &&
               broadwell.changes.has(plan_change::byte_count_reset);
    });
}

TEST_CASE("CR3_MATCH keeps the bits that are compared (PRG-022)") {
    CHECK_TWICE([](auto value) {
        auto wanted = ring_request();
        wanted.config.cr3_filter = true;
        wanted.cr3 = value(uint64_t{0x1234'5000});
        auto const exact = driver::plan(preset::skylake_x, wanted);
        wanted.cr3 |= 0x15;
        auto const with_pcid = driver::plan(preset::skylake_x, wanted);
        return exact.plan.cr3_match.raw == 0x1234'5000 && exact.changes.empty() &&
               with_pcid.plan.cr3_match.raw == 0x1234'5000 &&
               with_pcid.changes.has(plan_change::cr3_truncated);
    });
}

TEST_CASE("ranges are clamped to canonical addresses: starts upward, ends downward (PRG-136)") {
    CHECK_TWICE([](auto value) {
        auto wanted = ring_request();
        wanted.config.addr[0] = reg::addr_cfg::filter;
        wanted.addr[0] = {{value(uint64_t{0x1000})}, {0x1FFF}};
        auto const plain = driver::plan(preset::skylake_x, wanted);
        wanted.addr[0] = {{0x8000'0000'0000}, {0xFFFF'FFFF'FFFF'FFFF}};
        auto const up = driver::plan(preset::skylake_x, wanted);
        wanted.addr[0] = {{0x1000}, {0xFFFF'7FFF'FFFF'FFFF}};
        auto const down = driver::plan(preset::skylake_x, wanted);
        wanted.addr[0] = {{0x8000'0000'0000}, {0xFFFF'0000'0000'0000}};
        auto const none = driver::plan(preset::skylake_x, wanted);
        return plain && plain.changes.empty() && plain.plan.addr[0].b.raw == 0x1FFF &&
               up.plan.addr[0].a.raw == 0xFFFF'8000'0000'0000 &&
               up.plan.addr[0].b.raw == 0xFFFF'FFFF'FFFF'FFFF &&
               up.changes.has(plan_change::range_clamped) &&
               !up.changes.has(plan_change::range_empty) && down.plan.addr[0].a.raw == 0x1000 &&
               down.plan.addr[0].b.raw == 0x7FFF'FFFF'FFFF &&
               none.changes.has(plan_change::range_empty) &&
               access::is_legal(preset::skylake_x, none.plan.addr[0].a) &&
               access::is_legal(preset::skylake_x, none.plan.addr[0].b);
    });
}

TEST_CASE("where ranges are linear addresses, the CS base is added (PRG-005,136)") {
    CHECK_TWICE([](auto value) {
        auto wanted = ring_request();
        wanted.config.addr[0] = reg::addr_cfg::filter;
        wanted.addr[0] = {{0x1000}, {0x1FFF}};
        wanted.cs_base = value(uint64_t{0x1'0000});
        auto const effective = driver::plan(preset::arrow_lake_p, wanted);
        auto const linear = driver::plan(preset::arrow_lake_e, wanted);
        return effective.plan.addr[0].a.raw == 0x1000 && linear.plan.addr[0].a.raw == 0x1'1000 &&
               linear.plan.addr[0].b.raw == 0x1'1FFF;
    });
}

TEST_CASE("an unsuitable buffer is refused by its rule (PRG-023,082,088)") {
    CHECK_TWICE([](auto value) {
        auto wanted = ring_request();
        wanted.output.base.raw = value(table | 0x80);
        auto const table_at_80 = driver::plan(preset::skylake_x, wanted);
        wanted.output.base.raw = 0x40;
        auto const low_bits_set = driver::plan(preset::skylake_x, wanted);
        wanted.config.output = cpu::output_scheme::single_range;
        wanted.output = {{0x2000'8000}, {0xFFFF}};
        auto const misaligned = driver::plan(preset::skylake_x, wanted);
        wanted.output = {{0x2000'0000}, {0xFFFF}};
        auto const range = driver::plan(preset::skylake_x, wanted);
        return !table_at_80 && table_at_80.broken == rule::OUT_061 &&
               low_bits_set.broken == rule::REG_070 && misaligned.broken == rule::OUT_023 &&
               range && range.plan.ctl.raw == 0x2409;
    });
}

TEST_CASE("a fabric needs no output MSRs (PRG-080)") {
    CHECK_TWICE([](auto value) {
        plan_request wanted{.config = {.user = true, .output = cpu::output_scheme::fabric}};
        wanted.output.base.raw = value(uint64_t{0x47});
        return driver::plan(preset::P_FAB, wanted).broken == rule::none &&
               !driver::detail::uses_output_msrs(driver::plan(preset::P_FAB, wanted).plan.ctl);
    });
}

TEST_CASE("without Intel PT nothing can be planned") {
    CHECK_TWICE([](auto value) {
        auto const got = driver::plan(value(preset::P_NONE), ring_request());
        return !got && got.config.broken == rule::REG_001;
    });
}

TEST_CASE("each change has a bit of its own") {
    constexpr plan_change all[] = {plan_change::range_clamped, plan_change::range_empty,
                                   plan_change::cr3_truncated, plan_change::byte_count_reset};
    CHECK_TWICE([=](auto value) {
        for (unsigned i = 0; i < 4; ++i) {
            driver::plan_result one;
            one.changes.bits = value(1U << i);
            for (unsigned k = 0; k < 4; ++k) {
                if (one.changes.has(all[k]) != (i == k)) { return false; }
            }
        }
        return true;
    });
}

TEST_CASE("a table that is not at a multiple of 4 KB is refused, each low bit alone (PRG-088)") {
    CHECK_TWICE([](auto value) {
        for (unsigned bit = 7; bit < 12; ++bit) {
            auto wanted = ring_request();
            wanted.output.base.raw = table | value(uint64_t{1}) << bit;
            if (driver::plan(preset::skylake_x, wanted).broken != rule::OUT_061) { return false; }
        }
        return static_cast<bool>(driver::plan(preset::skylake_x, ring_request()));
    });
}
