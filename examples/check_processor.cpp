// SPDX-License-Identifier: BSL-1.0

// Runs the suite of checks on the model of a processor, and on one with a defect.

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/model_kind.hpp>
#include <ptspec/suite.hpp>

using namespace ptspec;

/// Runs all checks on a target, and returns the number of those that find a broken rule.
template <suite::target Target>
auto count_broken(Target& target) -> unsigned {
    auto const caps = suite::capabilities_of(target);
    unsigned broken = 0;
    suite::for_each_check([&]<class Check>(text) {
        broken += suite::run_check<Check>(target, caps, {.runs = 2}).is_broken();
    });
    return broken;
}

auto main() -> int {
    static uint8_t pages[8 * 4096];
    constexpr auto const& caps = cpu::preset::skylake_x;
    suite::model_target right{caps, engine::options_of(caps), pages, 8};
    suite::model_target wrong{caps, engine::options_of(caps), pages, 8,
                              suite::defect::no_interrupt};
    return count_broken(right) == 0 && count_broken(wrong) != 0 ? 0 : 1;
}
