// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/rtit_output.hpp>

#include <support/check_twice.hpp>

using base = ptspec::reg::ia32_rtit_output_base;
using pointers = ptspec::reg::ia32_rtit_output_mask_ptrs;
using ptspec::wrapped;

TEST_CASE("IA32_RTIT_OUTPUT_BASE is MSR 560H, IA32_RTIT_OUTPUT_MASK_PTRS is MSR 561H") {
    CHECK(base::address == 0x560);
    CHECK(pointers::address == 0x561);
}

TEST_CASE("the base is a physical address, a multiple of 128") {
    CHECK_TWICE([](auto value) {
        return base{}.with(base::BasePhysAddr{0x12'3456'7880}).raw == 0x12'3456'7880 &&
               base{}.with(base::BasePhysAddr{wrapped{value(~uint64_t{0})}}).raw ==
                   0xFFFF'FFFF'FFFF'FF80 &&
               base{value(uint64_t{0x12'3456'78FF})}.get<base::BasePhysAddr>() == 0x12'3456'7880;
    });
}

TEST_CASE("bits 6:0 of the base and those at and above MAXPHYADDR are reserved") {
    CHECK_TWICE([](auto value) {
        return base::reserved_mask(value(36U)) == 0xFFFF'FFF0'0000'007F &&
               base::reserved_mask(value(39U)) == 0xFFFF'FF80'0000'007F &&
               base::reserved_mask(value(46U)) == 0xFFFF'C000'0000'007F &&
               base::reserved_mask(value(52U)) == 0xFFF0'0000'0000'007F &&
               base::reserved_mask() == 0x7F;
    });
    CHECK_TWICE([](auto value) {
        auto const high = base{value(uint64_t{0x80'0000'0000})};  // bit 39
        return high.reserved_bits_set(39) == 0x80'0000'0000 && high.reserved_bits_set(40) == 0;
    });
}

TEST_CASE("bits 11:7 of the base are not reserved, since a range may have 128 bytes") {
    CHECK_TWICE([](auto value) {
        return base{value(uint64_t{0xF80})}.reserved_bits_set(36) == 0 &&
               base{value(uint64_t{0xF80})}.get<base::BasePhysAddr>() == 0xF80;
    });
}

TEST_CASE("the mask or index is the upper 25 bits of the lower half, the offset is the upper "
          "half") {
    CHECK_TWICE([](auto value) {
        auto const all = wrapped{value(~uint64_t{0})};
        return pointers{}.with(pointers::LowerMask{all}).raw == 0x7F &&
               pointers{}.with(pointers::MaskOrTableOffset{all}).raw == 0xFFFF'FF80 &&
               pointers{}.with(pointers::OutputOffset{all}).raw == 0xFFFF'FFFF'0000'0000;
    });
    CHECK_TWICE([](auto value) {
        auto const it = pointers{value(uint64_t{0x0000'0010'0000'03FF})};
        return it.get<pointers::LowerMask>() == 0x7F &&
               it.get<pointers::MaskOrTableOffset>() == 7 &&
               it.get<pointers::OutputOffset>() == 0x10;
    });
}

TEST_CASE("bits 6:0 of the pointers read as ones, and no bit is reserved") {
    CHECK_TWICE([](auto value) {
        return pointers::forced_1_mask() == 0x7F && pointers::write_ignored_mask() == 0 &&
               pointers::reserved_mask(value(36U)) == 0 && base::forced_1_mask() == 0 &&
               base::write_ignored_mask() == 0;
    });
}
