// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/model_target.hpp>

#include <support/suite_sweep.hpp>

#include <ptspec/suite/snippets.hpp>

namespace {

using namespace ptspec;
using suite::defect;

constexpr auto const& caps = cpu::preset::skylake_x;

/// The model after it has traced `branches` to a single range at the first given page.
struct run_model {
    uint8_t bytes[8 * 4096] = {};
    suite::model_target target;
    suite::snippet_run code{};

    constexpr explicit run_model(defect wrong = defect::none)
        : target{caps, engine::options_of(caps), bytes, 8, wrong} {
        (void)target.write(0x560, suite::model_target::given_address);
        (void)target.write(0x561, 0xFFF);
        code = target.execute(suite::snippets::branches, 0x2005, 0x2004);
    }
};

}  // namespace

TEST_CASE("a snippet leaves the trace of its steps in the given pages") {
    CHECK_TWICE([](auto value) {
        run_model const one{value(defect::none)};
        run_model const nothing{value(defect::stores_nothing)};
        return one.code.enabled.is_done && one.code.disabled.is_done && one.bytes[1] == 0x82 &&
               nothing.bytes[1] == 0 && one.code.tsc_after > one.code.tsc_before;
    });
}

TEST_CASE("a WRMSR that faults reports the vector of #GP, and a snippet does not execute then") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[4096] = {};
        suite::model_target model{caps, engine::options_of(caps), bytes, 1};
        auto const fault = model.write(0x570, value(uint64_t{1} << 18));
        auto const run = model.execute(suite::snippets::nothing, value(uint64_t{1} << 18 | 1), 0);
        return fault.faulted() && fault.vector == 13 && run.enabled.faulted() &&
               !run.disabled.is_done;
    });
}

TEST_CASE("bytes outside the given pages are counted, and not stored") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[4096] = {};
        suite::model_target model{caps, engine::options_of(caps), bytes, 1};
        (void)model.write(0x560, value(uint64_t{0x70'0000}));
        (void)model.write(0x561, 0xFFF);
        (void)model.execute(suite::snippets::branches, 0x2005, 0x2004);
        return model.stray_bytes() > 16 && bytes[1] == 0;
    });
}
