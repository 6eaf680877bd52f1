// SPDX-License-Identifier: BSL-1.0
// Measures the speed of a trace unit that traces events into a ring in memory.
//
//   unit [--mega N] [options of Google Benchmark]
//   unit [--mega N] --count unit/ROW ...   runs the program once, for callgrind, and prints the
//                                          number of events
//
// Of the events 80 % are conditional branches, 15 % direct and 5 % indirect branches, in random
// order, which a processor cannot predict. The rows: `branches`, only branches are traced;
// `ranges`, two address ranges filter, and all branches are in one of them; `cyc`, cycle-accurate
// mode, with cycles before each event. The processor is of the kind `manual`, or `skylake` where
// the row's name ends so.

#include <bench/paired.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/trace_unit.hpp>
#include <ptspec/base/host_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

namespace {

using namespace ptspec;
namespace action = engine::action;

struct branch {
    enum class kind : std::uint8_t { taken, not_taken, direct, indirect };
    kind what;
    std::uint64_t to;
};

/// `count` random branches in 64 KB of code.
auto make_branches(std::size_t count) -> std::vector<branch> {
    std::mt19937_64 dice{1};
    std::vector<branch> made;
    for (std::size_t i = 0; i < count; ++i) {
        auto const chance = dice() % 100;
        auto const what = chance < 40   ? branch::kind::taken
                          : chance < 80 ? branch::kind::not_taken
                          : chance < 95 ? branch::kind::direct
                                        : branch::kind::indirect;
        made.push_back({what, 0x40'0000 + dice() % 0x1'0000});
    }
    return made;
}

/// A unit that traces into a ring, and its memory.
class traced_program {
public:
    explicit traced_program(std::string_view row) : has_cycles_{row.find("/cyc") != row.npos} {
        access::msr_state now;
        now.output.base = {ring_at};
        now.output.mask_ptrs = {ring_.size() - 1};
        now.addr[0] = {{0x40'0000}, {0x40'FFFF}};
        now.addr[1] = {{0x50'0000}, {0x50'FFFF}};
        auto const of = row.find("/skylake") != row.npos ? engine::model_kind::skylake
                                                         : engine::model_kind::manual;
        unit_ = engine::trace_unit<>{
            cpu::preset::P_FUT, now, {}, 0x40'0000, engine::options_of(of)};
        using ctl = reg::ia32_rtit_ctl;
        auto word = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::User{true},
                               ctl::BranchEn{true}, ctl::CYCEn{has_cycles_});
        if (row == "unit/ranges") {
            word = word.with(ctl::ADDR0_CFG{reg::addr_cfg::filter},
                             ctl::ADDR1_CFG{reg::addr_cfg::filter});
        }
        auto const began = unit_.wrmsr(
            {.index = ctl::address, .value = word.raw, .at = 0x40'0000, .next = 0x40'0002},
            memory_);
        if (began.what != engine::access_outcome::done) { std::abort(); }
    }
    void run(std::vector<branch> const& all) {
        bool fine = true;
        for (auto const& one : all) {
            if (has_cycles_) { fine &= !unit_.on(action::cycles{7}, memory_).happened; }
            switch (one.what) {
                case branch::kind::taken:
                    fine &= !unit_.on(action::conditional{one.to, true}, memory_).happened;
                    break;
                case branch::kind::not_taken:
                    fine &= !unit_.on(action::conditional{one.to, false}, memory_).happened;
                    break;
                case branch::kind::direct:
                    fine &= !unit_.on(action::direct_jump{one.to}, memory_).happened;
                    break;
                case branch::kind::indirect:
                    fine &= !unit_.on(action::indirect_jump{one.to}, memory_).happened;
                    break;
            }
        }
        if (!fine || unit_.total().lost != 0 || unit_.total().stored == 0) { std::abort(); }
        benchmark::ClobberMemory();
    }

private:
    static constexpr std::uint64_t ring_at = 0x100'0000;

    bool has_cycles_;
    std::vector<std::uint8_t> ring_ = std::vector<std::uint8_t>(std::size_t{1} << 20);
    host_region regions_[1] = {{ring_at, ring_.data(), ring_.size()}};
    host_memory memory_{regions_};
    engine::trace_unit<> unit_{cpu::preset::P_FUT};
};

}  // namespace

int main(int argc, char** argv) {
    bench::arguments const given{argc, argv, 1};
    auto const branches = make_branches(given.size >> 4);
    for (std::string_view const row : given.counted) {
        traced_program program{row};
        program.run(branches);
        bench::count(row, branches.size(), [&] { program.run(branches); });
    }
    if (!given.counted.empty()) { return 0; }
    for (char const* name : {"unit/branches", "unit/ranges", "unit/cyc", "unit/branches/skylake",
                             "unit/cyc/skylake"}) {
        benchmark::RegisterBenchmark(name, [name, &branches](benchmark::State& state) {
            traced_program program{name};
            for (auto _ : state) { program.run(branches); }
            state.SetItemsProcessed(state.iterations() *
                                    static_cast<std::int64_t>(branches.size()));
        });
    }
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
}
