// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/check_twice.hpp>

#include <ptspec/suite/proof.hpp>

#include <string>
#include <vector>

namespace ptspec::test {

#if defined(PTSPEC_ONLY_AT_RUN_TIME)
template <class Check>
inline constexpr bool is_proven = true;
#else
template <class Check>
inline constexpr bool is_proven = suite::proof_of<Check>::is_given;
#endif

/// A model with its memory: 64 pages, or 8.
struct modelled {
    std::vector<uint8_t> bytes;
    suite::model_target target;

    modelled(cpu::capabilities const& caps, engine::model_options const& options,
             suite::defect wrong = suite::defect::none, uint32_t pages = 64)
        : bytes(pages * suite::given_memory::page_bytes),
          target{caps, options, bytes.data(), pages, wrong} {}
};

/// The processors of the sweep: all presets, and one with TSX, which no preset has.
inline auto swept_processors() -> std::vector<cpu::preset::named> {
    std::vector<cpu::preset::named> all;
    for (auto const& one : cpu::preset::all) { all.push_back(one); }
    auto with_tsx = cpu::preset::skylake_x;
    with_tsx.leaf_07_0_ebx = with_tsx.leaf_07_0_ebx.with(reg::cpuid_07h_0_ebx::RTM{true});
    all.push_back({"Skylake-X with TSX", with_tsx});
    return all;
}

/// Runs a check on the models of all presets, each with all kinds: it holds, observes or is
/// skipped. Then with each defect: no byte is stored outside the given pages.
template <class Check>
void sweep() {
    CAPTURE(std::string{text{Check::name}.data()});
    static_assert(is_proven<Check>);
    CHECK(suite::holds_on_model<Check>());
    CHECK(suite::has_teeth<Check>());
    for (auto const& processor : swept_processors()) {
        for (auto const& kind : engine::model_kinds) {
            modelled model{processor.value, kind.options};
            auto const found = suite::run_once<Check>(
                model.target, suite::capabilities_of(model.target), &kind.options);
            bool const is_right = found.what == suite::outcome::holds ||
                                  found.what == suite::outcome::observed ||
                                  found.what == suite::outcome::skipped;
            INFO(std::string{processor.name.data()}, " ", std::string{kind.name.data()}, " ",
                 std::string{suite::name_of(found.what).data()}, " ",
                 std::string{found.detail.data()});
            CHECK(is_right);
            CHECK(found.detail != text{"unsafe"});
            CHECK(model.target.stray_bytes() == 0);
        }
        if (Check::need.is_dangerous) { continue; }
        for (unsigned i = 1; i < suite::defect_count; ++i) {
            modelled model{processor.value, engine::options_of(processor.value),
                           static_cast<suite::defect>(i), i % 4 == 0 ? 64U : 8U};
            (void)suite::run_once<Check>(model.target, processor.value);
            CHECK(model.target.stray_bytes() == 0);
        }
    }
}
template <class... Checks>
void sweep(type_list<Checks...>) {
    (..., sweep<Checks>());
}

}  // namespace ptspec::test
