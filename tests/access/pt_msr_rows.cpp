// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/pt_msr_rows.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

TEST_CASE("560H to 587H and five MSRs outside Intel PT are covered, but not 588H (REG-017)") {
    CHECK_TWICE([](auto value) {
        unsigned page_regions = 0;
        for (uint32_t index = value(0U); index < 0x1000; ++index) {
            bool const expected = (0x560 <= index && index <= 0x587) || index == 0x38E ||
                                  index == 0x390 || index == 0x391 || index == 0xDA0 ||
                                  index == 0x1D9;
            if (access::is_covered_msr(index) != expected) { return false; }
            page_regions += expected;
        }
        return page_regions == 45;
    });
}

TEST_CASE("a processor has the MSRs of the features that it has (REG-001, REG-012..015, REG-017)") {
    CHECK_TWICE([](auto value) {
        auto caps = cpu::preset::P_FUT;
        bool all = true;
        for (uint32_t index = value(0x560U); index <= 0x587; ++index) {
            bool const is_listed = index == 0x560 || index == 0x561 || index == 0x570 ||
                                   index == 0x571 || index == 0x572 || index >= 0x580;
            all = all && access::exists(caps, index) == is_listed;
        }
        caps.leaf_14_0_ebx.raw &= ~uint32_t{1};  // CR3FILTER
        bool const without_filter = !access::exists(caps, 0x572) && access::exists(caps, 0x571);
        caps.leaf_14_0_ecx.raw &= ~uint32_t{1};  // TOPAOUT
        bool const range_only = access::exists(caps, 0x560);
        caps.leaf_14_0_ecx.raw &= ~uint32_t{4};  // SNGLRNGOUT
        bool const no_output = !access::exists(caps, 0x560) && !access::exists(caps, 0x561);
        caps.leaf_14_1_eax.raw = 1;  // RANGECNT
        bool const one_range = access::exists(caps, 0x581) && !access::exists(caps, 0x582);
        caps.leaf_07_0_ebx.raw = 0;
        return all && without_filter && range_only && no_output && one_range &&
               !access::exists(caps, 0x570) && !access::exists(caps, 0x571) &&
               access::exists(caps, 0x1D9);
    });
}
