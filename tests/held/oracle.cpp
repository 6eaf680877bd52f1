// SPDX-License-Identifier: BSL-1.0

// Runs the suite on the target of target.cpp, on several processors. A line for each check that
// finds a broken rule on one of them:
//
//     broken CHECK RULE PRESET KIND DETAIL
//
// and at the end `stray N`, the bytes that checks other than the dangerous ones stored outside the
// given pages. Exit status: 0 nothing is broken, 1 something is.

#include "held.h"

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/model_kind.hpp>
#include <ptspec/suite/checks.hpp>
#include <ptspec/suite/run.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace ptspec;

auto result_of(held_result const& one) -> suite::msr_result {
    return {one.is_done, one.vector, one.is_asked, one.value};
}

class held_target {
public:
    explicit held_target(std::vector<uint8_t>& bytes) : bytes_{bytes} {}

    auto read(uint32_t index) -> suite::msr_result { return result_of(held_read(index)); }
    auto write(uint32_t index, uint64_t value) -> suite::msr_result {
        return result_of(held_write(index, value));
    }
    auto query(uint32_t leaf, uint32_t subleaf) -> cpuid_registers {
        uint32_t all[4] = {};
        held_query(leaf, subleaf, all);
        return {all[0], all[1], all[2], all[3]};
    }
    auto memory() -> suite::given_memory {
        return {{held_memory_base()}, bytes_.data(), static_cast<uint32_t>(bytes_.size() / 4096)};
    }
    auto abilities() -> suite::ability_set { return {held_abilities()}; }
    auto address_of(suite::snippet const& code) -> uint64_t { return held_address_of(&code); }
    auto execute(suite::snippet const& code, uint64_t on, uint64_t off) -> suite::snippet_run {
        auto const got = held_execute(&code, on, off);
        return {.enabled = result_of(got.enabled),
                .disabled = result_of(got.disabled),
                .tsc_before = got.tsc_before,
                .tsc_after = got.tsc_after};
    }
    auto cr3() -> uint64_t { return held_cr3(); }
    auto pmi() -> bool { return held_pmi(); }
    auto xsaves(reg::xsave_pt_state& image) -> suite::msr_result {
        return result_of(held_xsaves(image.quadwords));
    }
    auto xrstors(reg::xsave_pt_state const& image) -> suite::msr_result {
        return result_of(held_xrstors(image.quadwords));
    }
    auto reset(suite::reset_kind kind) -> bool {
        return held_reset(kind == suite::reset_kind::cold);
    }
    void note(text, access::msr_state const&) {}

private:
    std::vector<uint8_t>& bytes_;
};
static_assert(suite::target<held_target>);

/// Where snippets are. Those that lie across a multiple of 64 KB or of 4 GB have IPs of all forms,
/// and addresses of 57 bits do not extend from 48.
constexpr uint64_t usual_code = suite::model_target::code_address;
constexpr uint64_t across_64k = 0xFFFF'D5A5'C33F'FFD0;
constexpr uint64_t across_4g = 0xFFFF'D5A5'FFFF'FFD0;
constexpr uint64_t of_57_bits = 0xFF11'D5A5'FFFF'FFD0;

/// A processor of the run: a preset, with TSX or without, of its own kind or of another.
struct processor {
    char const* preset;
    bool has_tsx;
    int kind;
    uint64_t code = usual_code;
};
constexpr processor processors[] = {
    {"Skylake-X", true, -1},
    {"Skylake-X", true, 0, across_64k},
    {"Broadwell-ULT", false, -1},
    {"P-BDW", false, 0},
    {"ArrowLake-P", true, -1},
    {"IceLake-U", false, -1, across_64k},
    {"GoldmontPlus", false, -1, across_4g},
    {"P-ATM", false, 0},
    {"P-SRO", false, 0, across_4g},
    {"P-FUT", true, 0, of_57_bits},
    {"P-FAB", false, 0},
    {"P-NONE", false, 0},
};

}  // namespace

auto main(int count, char**) -> int {
    std::vector<uint8_t> bytes(32 * 4096);
    bool is_broken = false;
    uint64_t stray = 0;
    for (auto const& one : processors) {
        unsigned number = 0;
        for (auto const& preset : cpu::preset::all) {
            if (std::string{preset.name.data()} == one.preset) { break; }
            ++number;
        }
        suite::for_each_check([&]<class Check>(text) {
            for (auto& byte : bytes) { byte = 0; }
            held_start(number, one.has_tsx, one.kind, one.code, bytes.data(),
                       static_cast<uint32_t>(bytes.size() / 4096));
            held_target target{bytes};
            auto caps = suite::capabilities_of(target);
            auto const options = one.kind < 0 ? engine::options_of(caps)
                                              : engine::model_kinds[one.kind].options;
            auto const found = suite::run_once<Check>(target, caps, &options);
            if (!Check::need.is_dangerous) { stray += held_stray_bytes(); }
            bool const is_wrong = found.is_broken() || found.what == suite::outcome::error ||
                                  found.what == suite::outcome::unsteady;
            is_broken |= is_wrong;
            if (is_wrong || count > 1) {
                std::printf("%s %s %s %s %d %s\n", suite::name_of(found.what).data(),
                            text{Check::name}.data(), rule_id{found.which}.view().data(),
                            one.preset, one.kind, found.detail.data());
            }
        });
    }
    std::printf("stray %llu\n", static_cast<unsigned long long>(stray));
    return is_broken ? 1 : 0;
}
