// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/periods.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::cpu;

// The amounts and encodings of REG-048, written out.

TEST_CASE("a PSB period of 8192 bytes is PSBFreq 2, and 8192 is no encoding (REG-048)") {
    CHECK_TWICE([](auto value) {
        return value(psb_period::of_bytes(8192)).encoding() == 2 &&
               value(psb_period::of_bytes(2048)).encoding() == 0 &&
               value(psb_period::of_bytes(0x400'0000)).encoding() == 15 &&
               value(psb_period::encoded(2)).bytes() == 8192 &&
               value(psb_period::encoded(15)).bytes() == 0x400'0000 &&
               value(psb_period{}).bytes() == 2048;
    });
}

TEST_CASE("an MTC period of 8 crystal cycles is MTCFreq 3 (REG-048)") {
    CHECK_TWICE([](auto value) {
        return value(mtc_period::of_crystal_cycles(8)).encoding() == 3 &&
               value(mtc_period::of_crystal_cycles(1)).encoding() == 0 &&
               value(mtc_period::of_crystal_cycles(32768)).encoding() == 15 &&
               value(mtc_period::encoded(3)).crystal_cycles() == 8 &&
               value(mtc_period::encoded(15)).crystal_cycles() == 32768 &&
               value(mtc_period{}).crystal_cycles() == 1;
    });
}

TEST_CASE("a CYC threshold of 16 cycles is CycThresh 5, and none is 0 (REG-048)") {
    CHECK_TWICE([](auto value) {
        return value(cyc_threshold::of_cycles(16)).encoding() == 5 &&
               value(cyc_threshold::of_cycles(1)).encoding() == 1 &&
               value(cyc_threshold::of_cycles(0)).encoding() == 0 &&
               value(cyc_threshold::of_cycles(16384)).encoding() == 15 &&
               value(cyc_threshold::encoded(5)).cycles() == 16 &&
               value(cyc_threshold::encoded(15)).cycles() == 16384 &&
               value(cyc_threshold{}).cycles() == 0;
    });
}

TEST_CASE("at run time an amount without an encoding is rejected (REG-048)") {
    CHECK_TWICE([](auto value) {
        auto const refused = [](auto const& got) { return !got && got.broken == rule::REG_048; };
        auto const bytes = psb_period::try_of_bytes(value(uint64_t{8192}));
        auto const crystal = mtc_period::try_of_crystal_cycles(value(uint64_t{64}));
        auto const cycles = cyc_threshold::try_of_cycles(value(uint64_t{64}));
        return bytes && bytes.broken == rule::none && bytes.period.encoding() == 2 && crystal &&
               crystal.period.encoding() == 6 && cycles && cycles.period.encoding() == 7 &&
               refused(psb_period::try_of_bytes(value(uint64_t{2}))) &&
               refused(psb_period::try_of_bytes(value(uint64_t{1024}))) &&
               refused(psb_period::try_of_bytes(value(uint64_t{10000}))) &&
               refused(psb_period::try_of_bytes(value(uint64_t{0x800'0000}))) &&
               refused(mtc_period::try_of_crystal_cycles(value(uint64_t{0}))) &&
               refused(mtc_period::try_of_crystal_cycles(value(uint64_t{3}))) &&
               refused(mtc_period::try_of_crystal_cycles(value(uint64_t{65536}))) &&
               refused(cyc_threshold::try_of_cycles(value(uint64_t{32768}))) &&
               refused(cyc_threshold::try_of_cycles(value(~uint64_t{0})));
    });
}

TEST_CASE("an encoding at run time is truncated to four bits, or checked") {
    CHECK_TWICE([](auto value) {
        auto const refused = [](auto const& got) { return !got && got.broken == rule::REG_028; };
        return mtc_period::encoded(wrapped{value(uint64_t{0x13})}).encoding() == 3 &&
               cyc_threshold::encoded(wrapped{value(uint64_t{0x14})}).encoding() == 4 &&
               psb_period::encoded(wrapped{value(~uint64_t{0})}).encoding() == 15 &&
               mtc_period::try_encoded(value(uint64_t{15})).period.encoding() == 15 &&
               refused(mtc_period::try_encoded(value(uint64_t{16}))) &&
               refused(cyc_threshold::try_encoded(value(uint64_t{256}))) &&
               refused(psb_period::try_encoded(value(~uint64_t{0})));
    });
}

TEST_CASE("periods are equal when their encodings are") {
    CHECK_TWICE([](auto value) {
        return value(psb_period::encoded(2)) == psb_period::of_bytes(8192) &&
               value(psb_period::encoded(2)) != psb_period::of_bytes(4096) &&
               value(mtc_period::encoded(3)) != mtc_period{} &&
               value(cyc_threshold::encoded(0)) == cyc_threshold{};
    });
}

// Numbers do not convert to periods, and periods of different kinds do not convert to each other.
static_assert(!convertible_to<int, psb_period> && !convertible_to<int, mtc_period> &&
              !convertible_to<unsigned, cyc_threshold>);
static_assert(!convertible_to<mtc_period, psb_period>);
