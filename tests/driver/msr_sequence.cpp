// SPDX-License-Identifier: BSL-1.0
#include <ptspec/driver/msr_sequence.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_status.hpp>
#include <ptspec/simulate/ports.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_status;

namespace {

/// Two MSRs, and a fence that counts.
struct port : simulate::msr_model<2> {
    unsigned fences = 0;
    constexpr void fence() noexcept { ++fences; }
};
constexpr auto two_msrs(uint64_t ctl, uint64_t status) -> port {
    return {{{{ia32_rtit_ctl::address, ctl}, {ia32_rtit_status::address, status}}}};
}

static_assert(driver::fenced_msr_port<port> && !driver::fenced_msr_port<simulate::msr_model<2>>);

}  // namespace

TEST_CASE("an MSR is read and written as its register type") {
    CHECK_TWICE([](auto value) {
        auto msrs = two_msrs(value(uint64_t{0x2109}), 0x30);
        auto const got = driver::read<ia32_rtit_ctl>(msrs);
        bool const written = driver::write(msrs, ia32_rtit_status{0x10});
        return got && got.value == ia32_rtit_ctl{0x2109} && written &&
               msrs.read(0x571).value == 0x10;
    });
}

TEST_CASE("a fault of an MSR is not a value") {
    CHECK_TWICE([](auto value) {
        simulate::msr_model<1> msrs{{{value(0x571U), 5}}};
        return !driver::read<ia32_rtit_ctl>(msrs) && !driver::write(msrs, ia32_rtit_ctl{1}) &&
               driver::read<ia32_rtit_status>(msrs).value.raw == 5;
    });
}

TEST_CASE("a sequence makes no access after the first fault, and names it") {
    CHECK_TWICE([](auto value) {
        auto msrs = two_msrs(value(uint64_t{1}), 2);
        driver::msr_sequence on{msrs};
        auto const first = on.template read<ia32_rtit_ctl>();
        bool const fine = static_cast<bool>(on) && on.write(ia32_rtit_ctl{1});
        bool const lost = on.write(0x560, 0x1000);
        on.fence();
        bool const after = on.write(ia32_rtit_status{7});
        return first.raw == 1 && fine && !lost && !after && !on &&
               on.template read<ia32_rtit_ctl>().raw == 0 && msrs.read(0x571).value == 2 &&
               msrs.fences == 0 && on.fault() == driver::msr_fault{true, true, 0x560, 0x1000, 2};
    });
    CHECK_TWICE([](auto value) {
        auto msrs = two_msrs(1, value(uint64_t{2}));
        driver::msr_sequence on{msrs};
        on.fence();
        (void)on.read(0x572);
        return msrs.fences == 1 && on.fault() == driver::msr_fault{true, false, 0x572, 0, 0};
    });
}

TEST_CASE("a result without an access is no value, and names no access") {
    CHECK_TWICE([](auto value) {
        driver::word_read<reg::ia32_rtit_ctl> const none{};
        driver::msr_fault const failed{};
        driver::procedure_result const result{};
        return value(true) && !none && none.value.raw == 0 && !failed.happened &&
               !failed.is_write && failed.index == 0 && failed.number == 0 && result &&
               result.trace == driver::trace_state::unknown;
    });
}
