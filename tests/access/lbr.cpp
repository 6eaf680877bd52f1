// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/lbr.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;
using signature = reg::cpuid_01h_eax;

namespace {

constexpr signature skylake{0x506E3};    // 06_5EH
constexpr signature skylake_x{0x50654};  // 06_55H
constexpr ctl on{0x2109};
constexpr ctl off{0x2108};

/// CPUID.01H:EAX of family 6, a model and a stepping.
constexpr auto family_6(unsigned model, unsigned stepping) -> signature {
    return {0x600 | (model & 0xF) << 4 | (model >> 4) << 16 | stepping};
}

}  // namespace

TEST_CASE("only six models exclude branch records while they trace (REG-180, 184)") {
    CHECK_TWICE([](auto value) {
        for (unsigned model = value(0U); model < 0x100; ++model) {
            bool const listed = model == 0x3D || model == 0x47 || model == 0x4E || model == 0x4F ||
                                model == 0x56 || model == 0x5E;
            if (access::excludes_lbr(family_6(model, 3)) != listed) { return false; }
        }
        return !access::excludes_lbr({value(0U)});
    });
}

TEST_CASE("on those models branch records are suspended while TraceEn is 1 (REG-181)") {
    CHECK_TWICE([](auto value) {
        return access::suspends_lbr(skylake, ctl{value(on.raw)}) &&
               !access::suspends_lbr(skylake, ctl{value(off.raw)}) &&
               !access::suspends_lbr(skylake_x, ctl{value(on.raw)});
    });
}

TEST_CASE("the suspended MSRs are the LBR stacks, TOS, LBR_SELECT and LER (REG-182)") {
    CHECK_TWICE([](auto value) {
        for (uint32_t index = value(0U); index < 0x1000; ++index) {
            bool const in_stack = (0x680 <= index && index <= 0x69F) ||
                                  (0x6C0 <= index && index <= 0x6DF) ||
                                  (0xDC0 <= index && index <= 0xDDF);
            bool const single = index == 0x1C8 || index == 0x1C9 || index == 0x1DD ||
                                index == 0x1DE;
            if (access::is_lbr_msr(index) != (in_stack || single)) { return false; }
        }
        return true;
    });
}

TEST_CASE("IA32_DEBUGCTL reads back unchanged (REG-181, REG-182)") {
    CHECK_TWICE([](auto value) { return !access::is_suspended(skylake, on, value(0x1D9U)); });
}

TEST_CASE("an MSR is suspended on those models, while TraceEn is 1 (REG-181, REG-184)") {
    CHECK_TWICE([](auto value) {
        return access::is_suspended(skylake, on, value(0x680U)) &&
               !access::is_suspended(skylake, off, value(0x680U)) &&
               !access::is_suspended(skylake_x, on, value(0x680U)) &&
               !access::is_suspended(skylake, on, value(0x570U));
    });
}

TEST_CASE("the write that clears TraceEn resets the LBR stack (REG-183)") {
    CHECK_TWICE([](auto value) {
        ctl const was{value(on.raw)};
        ctl const is{value(off.raw)};
        return access::resets_lbr(skylake, was, is) && !access::resets_lbr(skylake, is, was) &&
               !access::resets_lbr(skylake, was, was) && !access::resets_lbr(skylake, is, is) &&
               !access::resets_lbr(skylake_x, was, is);
    });
}
