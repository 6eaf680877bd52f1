// SPDX-License-Identifier: BSL-1.0
#include <ptspec/conformance/fields.hpp>

#include <ptspec/packet/list.hpp>
#include <ptspec/reg/list.hpp>
#include <ptspec/topa/entry.hpp>

#include <support/check_twice.hpp>

#include <cstdint>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;
using topa::entry;

namespace {

// A difference stops the build in a constant expression (tests/fail/conformance.cpp), so here it
// is tested at run time only.
constexpr test::unknown at_run_time;

enum old_style { cyc_en = 2, mtc_shift = 14, mtc_mask = 0x3C000 };
enum class new_style : std::uint8_t { off, filter, stop };

}  // namespace

TEST_CASE("a mask conforms if it has exactly the bits of the field") {
    CHECK_TWICE([](auto value) {
        return conforms<ctl::TraceEn>(value(1)) && conforms<ctl::CYCEn>(value(1U << 1)) &&
               conforms<ctl::CYCEn>(value(cyc_en)) && conforms<ctl::MTCFreq>(value(0x3C000ULL)) &&
               conforms<ctl::EventEn>(value(1U << 31)) &&
               conforms<ctl::InjectPsbPmiOnEnable>(value(1ULL << 56)) &&
               conforms<reg::ia32_rtit_addr::Address>(value(~0ULL));
    });
    CHECK(!conforms<ctl::CYCEn>(at_run_time(1U)));
    CHECK(!conforms<ctl::CYCEn>(at_run_time(4U)));
    CHECK(!conforms<ctl::CYCEn>(at_run_time(0U)));
    CHECK(!conforms<ctl::CYCEn>(at_run_time(6U)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x7C000U)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x1C000U)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x38000U)));
}

TEST_CASE("a mask with a gap does not conform") {
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x24000U)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x34000U)));
}

TEST_CASE("a negative mask is sign-extended") {
    CHECK(!conforms<ctl::EventEn>(at_run_time(std::int32_t{-0x7FFF'FFFF - 1})));
    CHECK_TWICE([](auto value) { return conforms<reg::ia32_rtit_addr::Address>(value(-1)); });
}

TEST_CASE("a mask in its place has a shift") {
    CHECK_TWICE([](auto value) {
        return conforms<ctl::MTCFreq>(value(0x3C000), value(14)) &&
               conforms<ctl::MTCFreq>(value(mtc_mask), value(mtc_shift)) &&
               conforms<ctl::TraceEn>(value(1), value(0));
    });
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x3C000), at_run_time(13)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x3C000), at_run_time(-14)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x1E000), at_run_time(14)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0xF), at_run_time(14)));
}

TEST_CASE("an unshifted mask has the width of the field") {
    CHECK_TWICE([](auto value) {
        return conforms<ctl::MTCFreq>(unshifted{value(0xF)}, value(14)) &&
               conforms<ctl::TraceEn>(unshifted{value(1)}, value(0));
    });
    CHECK(!conforms<ctl::MTCFreq>(unshifted{at_run_time(0xF)}, at_run_time(15)));
    CHECK(!conforms<ctl::MTCFreq>(unshifted{at_run_time(0x1F)}, at_run_time(14)));
    CHECK(!conforms<ctl::MTCFreq>(unshifted{at_run_time(0x7)}, at_run_time(14)));
    CHECK(!conforms<ctl::MTCFreq>(unshifted{at_run_time(0x3C000)}, at_run_time(14)));
    CHECK(!conforms<ctl::MTCFreq>(unshifted{at_run_time(0)}, at_run_time(14)));
}

TEST_CASE("bit numbers conform if they are those of the field") {
    CHECK_TWICE([](auto value) {
        return conforms<ctl::MTCFreq>(at_bits{value(17), value(14)}) &&
               conforms<ctl::MTCFreq>(at_bits{value(17), value(mtc_shift)}) &&
               conforms<ctl::CYCEn>(at_bits{value(1)}) &&
               conforms<packet::psb::High>(at_bits{value(127), value(64)});
    });
    CHECK(!conforms<ctl::MTCFreq>(at_bits{at_run_time(18), at_run_time(14)}));
    CHECK(!conforms<ctl::MTCFreq>(at_bits{at_run_time(17), at_run_time(13)}));
    CHECK(!conforms<ctl::MTCFreq>(at_bits{at_run_time(14), at_run_time(17)}));
    CHECK(!conforms<ctl::MTCFreq>(at_bits{at_run_time(14)}));
    CHECK(!conforms<ctl::CYCEn>(at_bits{at_run_time(2)}));
    CHECK(!conforms<ctl::CYCEn>(at_bits{at_run_time(-1)}));
}

TEST_CASE("the mask of an address may end at MAXPHYADDR") {
    CHECK_TWICE([](auto value) {
        return conforms<entry::Base>(value(0x000F'FFFF'FFFF'F000ULL), max_phys_addr{value(52U)}) &&
               conforms<entry::Base>(value(0x0000'007F'FFFF'F000ULL), max_phys_addr{value(39U)}) &&
               conforms<entry::Base>(value(0xFFFF'FFFF'FFFF'F000ULL)) &&
               conforms<reg::ia32_rtit_output_base::BasePhysAddr>(value(0x000F'FFFF'FFFF'FF80ULL),
                                                                  max_phys_addr{value(52U)});
    });
    CHECK(!conforms<entry::Base>(at_run_time(0x000F'FFFF'FFFF'F000ULL)));
    CHECK(!conforms<entry::Base>(at_run_time(0x000F'FFFF'FFFF'F000ULL),
                                 max_phys_addr{at_run_time(51U)}));
    CHECK(!conforms<entry::Base>(at_run_time(0x000F'FFFF'FFFF'E000ULL), max_phys_addr{}));
}

TEST_CASE("an address that ends at MAXPHYADDR is defined in every form that a field has") {
    CHECK_TWICE([](auto value) {
        auto const width = max_phys_addr{value(52U)};
        return conforms<entry::Base>(value(0x000F'FFFF'FFFF'F000ULL), value(12), width) &&
               conforms<entry::Base>(unshifted{value(0xFF'FFFF'FFFFULL)}, value(12), width) &&
               conforms<entry::Base>(at_bits{value(51), value(12)}, width);
    });
    constexpr max_phys_addr width{52};
    CHECK(!conforms<entry::Base>(at_run_time(0x000F'FFFF'FFFF'F000ULL), at_run_time(13), width));
    CHECK(!conforms<entry::Base>(at_run_time(0x0007'FFFF'FFFF'F000ULL), at_run_time(12), width));
    CHECK(
        !conforms<entry::Base>(unshifted{at_run_time(0xFF'FFFF'FFFFULL)}, at_run_time(13), width));
    CHECK(!conforms<entry::Base>(unshifted{at_run_time(0xF'FFFF'FFFFULL)}, at_run_time(12), width));
    CHECK(!conforms<entry::Base>(at_bits{at_run_time(50), at_run_time(12)}, width));
    CHECK(!conforms<entry::Base>(at_bits{at_run_time(51), at_run_time(11)}, width));
    CHECK(!conforms<entry::Base>(at_bits{at_run_time(63), at_run_time(12)}, width));
}

TEST_CASE("a value of a field is compared in its place, or as an encoding") {
    CHECK_TWICE([](auto value) {
        return conforms_value(ctl::PSBFreq{3}, value(0x0300'0000)) &&
               conforms_value(ctl::PSBFreq{3}, unshifted{value(3)}) &&
               conforms_value(ctl::ToPA{true}, value(0x100)) &&
               conforms_value(ctl::ADDR0_CFG{reg::addr_cfg::trace_stop}, value(2ULL << 32)) &&
               conforms_value(ctl::ADDR0_CFG{reg::addr_cfg::filter},
                              unshifted{value(new_style::filter)}) &&
               conforms_value(entry::Size{topa::region_size::size_64K}, value(0x100)) &&
               conforms_value(entry::Base{0x5000}, value(0x5000));
    });
    CHECK(!conforms_value(ctl::PSBFreq{3}, at_run_time(0x0200'0000)));
    CHECK(!conforms_value(ctl::PSBFreq{3}, at_run_time(0x0180'0000)));
    CHECK(!conforms_value(ctl::PSBFreq{3}, at_run_time(3)));
    CHECK(!conforms_value(ctl::PSBFreq{3}, unshifted{at_run_time(0x0300'0000)}));
    CHECK(!conforms_value(ctl::PSBFreq{3}, unshifted{at_run_time(19)}));
    CHECK(!conforms_value(ctl::ToPA{false}, at_run_time(0x100)));
}

TEST_CASE("an enumerator has the number of another one") {
    CHECK_TWICE([](auto value) {
        return conforms_value(reg::addr_cfg::trace_stop, value(2)) &&
               conforms_value(reg::addr_cfg::trace_stop, value(new_style::stop));
    });
    CHECK(!conforms_value(reg::addr_cfg::trace_stop, at_run_time(1)));
    CHECK(!conforms_value(reg::addr_cfg::trace_stop, at_run_time(new_style::filter)));
}
