// SPDX-License-Identifier: BSL-1.0
// The times that event_reader gives, against the true times of the events, in every mixture of TSC,
// MTC, CYC and thresholds, with sleep, frequency changes and overflows. Environment:
// PTSPEC_TRUE_TIMES, the number of events; PTSPEC_TRUE_TIMES_SHOW=1 prints the median error of each
// mixture.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/generator.hpp>
#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/events.hpp>

#include <doctest/doctest.h>
#include <support/how_many.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

using namespace ptspec;
namespace action = engine::action;

namespace {

using ctl = reg::ia32_rtit_ctl;

/// Collects packets.
struct collected {
    std::vector<uint8_t> bytes{};

    auto append(byte_view more) -> bool {
        bytes.insert(bytes.end(), more.begin(), more.end());
        return true;
    }
};

/// Which packets tell the time, and how often.
struct mixture {
    bool mtc = false;
    bool cyc = false;
    uint8_t mtc_freq = 3;
    uint8_t threshold = 0;
    bool sleeps = false;
    bool changes_frequency = false;
    bool overflows = false;
    uint32_t numerator = 168;  ///< TSC ticks in `denominator` ticks of the crystal clock
    uint32_t denominator = 2;
};

constexpr uint8_t non_turbo = 36;

/// A processor with a true time, which executes branches at random intervals.
class machine {
public:
    machine(mixture const& how, engine::model_kind kind, uint64_t seed)
        : how_{how}, random_{seed}, unit_{caps_of(how), {}, {}, code, options_of(kind)} {
        tsc_ = 1'000'000'000 + random_() % 1'000'000;
        unit_.set_clocks({.art = art_at(tsc_), .tsc = tsc_, .tsc_at_edge = edge_at(tsc_)});
        unit_.on(action::ratio{ratio_}, out);
        auto const wanted = ctl{}.with(
            ctl::OS{true}, ctl::User{true}, ctl::BranchEn{true}, ctl::TSCEn{true},
            ctl::MTCEn{how.mtc}, ctl::CYCEn{how.cyc}, ctl::PTWEn{true}, ctl::FabricEn{false},
            ctl::ToPA{true}, ctl::DisRETC{true}, ctl::MTCFreq{wrapped{how.mtc ? how.mtc_freq : 0U}},
            ctl::CycThresh{wrapped{how.cyc ? how.threshold : 0U}});
        REQUIRE(unit_.start(wanted, out));
    }

    /// The true time of each event, by its number. Conditional branches are marked.
    struct truth {
        uint64_t tsc = 0;
        bool is_conditional = false;
    };
    std::vector<truth> truths{};
    collected out{};

    void step() {
        pass(random_() % (random_() % 64 == 0 ? 40'000 : 120));
        uint64_t const id = truths.size();
        switch (random_() % 64) {
            case 0: return how_.sleeps ? sleep() : void();
            case 1: return how_.changes_frequency && random_() % 8 == 0 ? change() : void();
            case 2: return how_.overflows && random_() % 8 == 0 ? overflow() : void();
            case 3:
                truths.push_back({tsc_, false});
                return unit_.on(action::ptwrite{code, code + 4, id, true}, out);
            case 4:
            case 5:
            case 6:
            case 7:
            case 8:
            case 9:
                truths.push_back({tsc_, false});
                return unit_.on(action::indirect_jump{code + 16 * id}, out);
            default:
                truths.push_back({tsc_, true});
                return unit_.on(action::conditional{code + 64, random_() % 2 == 0}, out);
        }
    }
    void stop() { unit_.stop(out); }

    static constexpr uint64_t code = 0x40'0000;

    static auto caps_of(mixture const& how) -> cpu::capabilities {
        auto caps = cpu::preset::P_FUT;
        caps.leaf_15_eax.raw = how.denominator;
        caps.leaf_15_ebx.raw = how.numerator;
        caps.platform_info.raw = uint64_t{non_turbo}
                                 << reg::msr_platform_info::MaxNonTurboRatio::lsb;
        return caps;
    }

private:
    static auto options_of(engine::model_kind kind) -> engine::model_options {
        return engine::options_of(kind);
    }

    [[nodiscard]] auto art_at(uint64_t tsc) const -> uint64_t {
        return tsc * how_.denominator / how_.numerator;
    }
    /// The TSC at the last edge of the crystal clock.
    [[nodiscard]] auto edge_at(uint64_t tsc) const -> uint64_t { return edge_of(art_at(tsc)); }
    [[nodiscard]] auto edge_of(uint64_t art) const -> uint64_t {
        return (art * how_.numerator + how_.denominator - 1) / how_.denominator;
    }

    /// Cycles since the last call. The core clock runs up to 1 % faster or slower than its ratio.
    auto cycles_until(uint64_t tsc) -> uint64_t {
        if (is_asleep_) { return 0; }
        parts_ += (tsc - tsc_) * ratio_ * speed_;
        uint64_t const whole = parts_ / (non_turbo * uint64_t{1000});
        parts_ -= whole * non_turbo * 1000;
        return whole;
    }
    void go_to(uint64_t tsc) {
        if (tsc <= tsc_) { return; }
        uint64_t const cycles = cycles_until(tsc);
        tsc_ = tsc;
        unit_.on(action::elapsed{cycles, art_at(tsc), tsc}, out);
    }
    /// Time passes, from one edge of the crystal clock at which an MTC is due to the next.
    void pass(uint64_t ticks) {
        uint64_t const end = tsc_ + ticks;
        while (true) {
            uint64_t const next = ((art_at(tsc_) >> how_.mtc_freq) + 1) << how_.mtc_freq;
            if (edge_of(next) > end) { break; }
            go_to(edge_of(next));
        }
        go_to(edge_at(end));
        go_to(end);
    }
    void sleep() {
        unit_.on(action::clock_stop{code}, out);
        is_asleep_ = true;
        pass(random_() % 400'000);
        is_asleep_ = false;
        bool const has_mtc = how_.mtc && random_() % 2 == 0;
        action::moment const due[] = {{packet::kind::tsc, 0, action::due_mtc::reported}};
        unit_.on(action::clock_resume{}, out, {due, has_mtc ? size_t{1} : size_t{0}});
    }
    void change() {
        ratio_ = static_cast<uint8_t>(8 + random_() % 40);
        speed_ = 990 + random_() % 21;
        unit_.on(action::ratio{ratio_}, out);
    }
    void overflow() {
        unit_.on(action::overflow{}, out);
        for (uint64_t i = random_() % 40; i != 0; --i) {
            pass(random_() % 400);
            truths.push_back({tsc_, true});
            unit_.on(action::conditional{code + 64, true}, out);
        }
        unit_.on(action::overflow_end{code}, out);
    }

    mixture how_;
    std::mt19937_64 random_;
    engine::generator unit_;
    uint64_t tsc_ = 0;
    uint64_t parts_ = 0;
    uint64_t speed_ = 1000;  ///< of the core clock in thousandths of its ratio
    uint8_t ratio_ = 30;
    bool is_asleep_ = false;
};

struct outcome {
    uint64_t checked = 0;
    uint64_t outside = 0;
    uint64_t bounded = 0;  ///< with a latest time
    std::string first_wrong{};
    std::vector<uint64_t> errors{};
};

/// Compares the times of all events with the true ones.
void check(machine const& made, mixture const& how, outcome& all) {
    trace::clock_options const options{.mtc_freq = how.mtc_freq,
                                       .cyc_thresh = how.threshold,
                                       .max_non_turbo_ratio = non_turbo,
                                       .tsc_numerator = how.numerator,
                                       .tsc_denominator = how.denominator};
    trace::event_reader<trace::clock> from{byte_view{made.out.bytes.data(), made.out.bytes.size()},
                                           trace::clock{options}};
    uint64_t next = 0;
    bool knows_next = true;
    auto const at = [&](uint64_t id) -> machine::truth const& {
        if (id >= made.truths.size()) { FAIL("an event that did not happen"); }
        return made.truths[static_cast<size_t>(id)];
    };
    auto const compare = [&](uint64_t id, trace::event const& e) {
        uint64_t const truth = at(id).tsc;
        ++all.checked;
        all.bounded += e.when.latest != trace::time::unbounded;
        all.errors.push_back(truth < e.when.tsc ? e.when.tsc - truth : truth - e.when.tsc);
        if (truth < e.when.earliest || truth > e.when.latest) {
            if (all.outside++ == 0) {
                all.first_wrong = "offset " + std::to_string(e.offset) + ": " +
                                  std::to_string(e.when.earliest) + " .. " +
                                  std::to_string(e.when.tsc) + " .. " +
                                  std::to_string(e.when.latest) + ", but " + std::to_string(truth);
            }
        }
    };
    while (auto const& e = from.next()) {
        switch (e.what) {
            case trace::event_type::branches: {
                if (!knows_next) { break; }
                auto const count = e.branches().count;
                for (unsigned i = 0; i < count; ++i) {
                    while (!at(next).is_conditional) { ++next; }
                    if (i == 0) { compare(next, e); }
                    ++next;
                }
                break;
            }
            case trace::event_type::indirect_branch:
                next = (e.to - machine::code) / 16;
                compare(next++, e);
                knows_next = true;
                break;
            case trace::event_type::ptwrite:
                next = e.packet.as<packet::ptw>().payload();
                compare(next++, e);
                knows_next = true;
                break;
            case trace::event_type::overflow: knows_next = false; break;
            case trace::event_type::damage: FAIL("damage: ", describe(e.broken).data()); break;
            default: break;
        }
    }
}

void check(mixture const& how, engine::model_kind kind, uint64_t events, char const* name) {
    outcome all;
    uint64_t seed = 1;
    while (all.checked < events) {
        machine made{how, kind, seed++};
        for (unsigned i = 0; i < 20'000; ++i) { made.step(); }
        made.stop();
        check(made, how, all);
    }
    if (std::getenv("PTSPEC_TRUE_TIMES_SHOW") != nullptr) {
        std::sort(all.errors.begin(), all.errors.end());
        std::printf("%-40s %9llu events, median error %5llu ticks, 99 %% %7llu, %5.1f %% bounded\n",
                    name, static_cast<unsigned long long>(all.checked),
                    static_cast<unsigned long long>(all.errors[all.errors.size() / 2]),
                    static_cast<unsigned long long>(all.errors[all.errors.size() * 99 / 100]),
                    100.0 * static_cast<double>(all.bounded) / static_cast<double>(all.checked));
    }
    INFO(std::string{name});
    INFO(all.first_wrong);
    CHECK(all.outside == 0);
}

}  // namespace

TEST_CASE("the true time of each event lies within the bounds of its time") {
    uint64_t const events = test::number_from("PTSPEC_TRUE_TIMES", test::usual_count / 2);
    std::vector<mixture> all;
    for (unsigned bits = 0; bits < 32; ++bits) {
        mixture const how{.mtc = (bits & 1) != 0,
                          .cyc = (bits & 2) != 0,
                          .sleeps = (bits & 4) != 0,
                          .changes_frequency = (bits & 8) != 0,
                          .overflows = (bits & 16) != 0};
        all.push_back(how);
        if (!how.cyc) { continue; }
        for (uint8_t threshold = 1; threshold <= 12; ++threshold) {
            all.push_back(how);
            all.back().threshold = threshold;
        }
    }
    // Other periods of MTCs, and ratios that are no integers.
    for (uint8_t const freq : {uint8_t{0}, uint8_t{6}, uint8_t{9}}) {
        for (uint32_t numerator : {250U, 161U}) {
            all.push_back({.mtc = true,
                           .cyc = freq != 6,
                           .mtc_freq = freq,
                           .sleeps = true,
                           .changes_frequency = true,
                           .numerator = numerator,
                           .denominator = 3});
        }
    }
    for (auto const& how : all) {
        std::string const name = std::string{how.mtc ? "MTC" : ""} + std::to_string(how.mtc_freq) +
                                 (how.cyc ? " CYC" + std::to_string(how.threshold) : "") +
                                 (how.sleeps ? " sleep" : "") +
                                 (how.changes_frequency ? " frequency" : "") +
                                 (how.overflows ? " overflow" : "") + " " +
                                 std::to_string(how.numerator) + "/" +
                                 std::to_string(how.denominator);
        check(how, engine::model_kind::skylake, events / all.size() + 1, name.c_str());
    }
}
