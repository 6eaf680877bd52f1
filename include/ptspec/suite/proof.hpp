// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/model_kind.hpp>
#include <ptspec/suite/model_target.hpp>
#include <ptspec/suite/run.hpp>

/// Proofs about checks: each holds on the model of a processor, and fails on a model with a defect.
namespace ptspec::suite {

namespace detail {

/// The processors of the proofs: of each feature that a check needs, one has it, and of each that
/// must be absent, one lacks it.
constexpr auto proof_processors() noexcept {
    struct all {
        cpu::capabilities list[5] = {cpu::preset::skylake_x, cpu::preset::arrow_lake_p,
                                     cpu::preset::broadwell, cpu::preset::P_NONE,
                                     cpu::preset::P_FUT};
    } made;
    // No preset has TSX.
    made.list[1].leaf_07_0_ebx = made.list[1].leaf_07_0_ebx.with(reg::cpuid_07h_0_ebx::RTM{true});
    return made;
}

template <class C>
constexpr auto find_on_model(cpu::capabilities const& caps, defect wrong) noexcept -> finding {
    constexpr uint32_t pages = 8;
    uint8_t bytes[pages * given_memory::page_bytes] = {};
    auto const options = engine::options_of(caps);
    model_target model{caps, options, bytes, pages, wrong};
    return run_once<C>(model, wrong == defect::wild_cpuid ? caps : capabilities_of(model),
                       &options);
}

}  // namespace detail

/// True if a check holds on the model of the first processor of the proofs on which it runs.
template <class C>
[[nodiscard]] constexpr auto holds_on_model() noexcept -> bool {
    for (auto const& caps : detail::proof_processors().list) {
        auto const found = detail::find_on_model<C>(caps, defect::none);
        if (found.what == outcome::skipped) { continue; }
        return found.what == outcome::holds || found.what == outcome::observed;
    }
    return false;
}

/// True if a check finds one of its rules broken on a model with a defect.
template <class C>
[[nodiscard]] constexpr auto has_teeth() noexcept -> bool {
    for (auto const& caps : detail::proof_processors().list) {
        for (unsigned i = 1; i < defect_count; ++i) {
            auto const found = detail::find_on_model<C>(caps, static_cast<defect>(i));
            if (found.is_broken() && C::rules.has(found.which)) { return true; }
        }
    }
    return false;
}

/// Stops the build unless a check is proven: `static_assert(proof_of<my_check>::is_given);`
template <class C>
struct proof_of {
    static_assert(holds_on_model<C>(), "the check makes no access, or does not hold on the model");
    static_assert(has_teeth<C>(), "no model with a defect breaks the check");
    static constexpr bool is_given = true;
};

}  // namespace ptspec::suite
