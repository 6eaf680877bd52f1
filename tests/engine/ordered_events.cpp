// SPDX-License-Identifier: BSL-1.0
// Events as a processor has them, in any order, INIT and SIPI among them: neither the reader nor
// the checker finds a violation in what a unit of each kind writes. Environment:
// PTSPEC_ORDERED_EVENTS, the number of streams of each kind.
#include <ptspec/engine/check_options.hpp>
#include <ptspec/trace/check/checker.hpp>
#include <ptspec/trace/events.hpp>

#include <doctest/doctest.h>
#include <support/any_events.hpp>
#include <support/how_many.hpp>
#include <support/random_moments.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

using namespace ptspec;
namespace action = engine::action;
using trace::event_type;

namespace {

/// A memory and a fabric that record the stream of bytes.
struct recorder {
    using ignores_pmis = recorder;

    std::vector<std::uint8_t> stream{};

    auto load(std::uint64_t) const noexcept -> port_value { return {}; }
    auto store(std::uint64_t, byte_view bytes) noexcept -> std::size_t {
        stream.insert(stream.end(), bytes.begin(), bytes.end());
        return bytes.size();
    }
    auto send(byte_view bytes) noexcept -> std::size_t { return store(0, bytes); }
};

/// A processor that executes random events. What no processor does is left out: it executes
/// nothing while it sleeps or waits for a SIPI, and MTCs are not lost.
class processor {
public:
    processor(engine::model_kind_info const& of, std::uint64_t seed)
        : numbers_{seed}, unit_{cpu::preset::P_FUT, {}, 0x40'0000, of.options} {}

    void run(unsigned steps) {
        for (unsigned i = 0; i < steps; ++i) { step(); }
    }
    [[nodiscard]] auto stream() const -> byte_view {
        return {memory_.stream.data(), memory_.stream.size()};
    }
    std::uint64_t sipis = 0;  ///< after a PSB+ or a sleep

private:
    auto roll(std::uint64_t sides) -> std::uint64_t { return numbers_() % sides; }
    template <class Event>
    void on(Event const& e) {
        auto const takes = moments_.draw([this](std::uint64_t n) { return roll(n); }, true);
        CHECK(!unit_.on(e, memory_, takes).happened);
        art_ = std::max(art_, unit_.state().clocks.art);
    }
    /// A step of `any_events` that is one of these; the other numbers are random.
    void any_of(std::initializer_list<std::uint64_t> choices) {
        std::uint64_t const choice = choices.begin()[roll(choices.size())];
        bool is_first = true;
        test::dice from{[&](std::uint64_t sides) {
            bool const chooses = is_first;
            is_first = false;
            return chooses ? choice : roll(sides);
        }};
        test::programs::any_events<> one{unit_, from};
        (void)one.step(memory_);
    }
    void step() {
        switch (roll(16)) {
            case 0: return wait_for_sipi();
            case 1: return sleep();
            case 2: return stop_clock();
            case 3: return pass_time();
            case 4: return lose();
            case 5: return on(action::psb_due{});
            case 6: return any_of({34, 41, 17});  // PTWRITE, PEBS, IF
            case 7: return set_trace_en();
            case 8: return any_of({16, 25, 26});  // MOV CR3, VMPTRLD, VMCLEAR
            case 10: return on(action::cycles{roll(300)});
            case 9: return any_of({8, 13});  // far transfers, user interrupts
            case 11: return be_interrupted();
            default: return any_of({1, 2, 3, 4, 5, 6, 7, 53});
        }
    }
    void be_interrupted() {
        auto const here = unit_.ip();
        auto code = unit_.state().code;
        code.cpl = static_cast<std::uint8_t>(roll(2) * 3);
        code.cr3 = 0x1000 * roll(3);
        std::uint64_t const to = 0x40'0000 + roll(0x3000);
        auto const vector = static_cast<std::uint8_t>(roll(256));
        if (roll(2) == 0) { return on(action::interrupt{here, to, code, vector}); }
        on(action::exception{here, to, code, vector, roll(0x1000)});
    }
    void set_trace_en() {
        using ctl = reg::ia32_rtit_ctl;
        auto const now = unit_.msrs().ctl;
        auto const here = unit_.ip();
        auto code = unit_.state().code;
        if (code.cpl != 0) { return; }  // WRMSR needs CPL 0
        // TraceEn, OS, User, BranchEn; and at random CYCEn, PwrEvtEn, FUPonPTW, TSCEn, PTWEn,
        // EventEn, PSBFreq. Clocks are checked by tests of their own.
        std::uint64_t const choices = 0x0000'0000'8000'1C32 | roll(6) << 24;
        std::uint64_t const word = 0x200D | (roll(~std::uint64_t{0}) & choices);
        bool const is_on = now.get<ctl::TraceEn>();
        (void)unit_.wrmsr({.index = ctl::address,
                           .value = is_on ? now.raw & ~std::uint64_t{1} : word,
                           .at = here,
                           .next = here + 2},
                          memory_);
    }
    void pass_time() {
        art_ += roll(8);
        on(action::elapsed{roll(100), art_, 3 * art_});
    }
    void sleep() {
        auto const here = unit_.ip();
        auto const state = static_cast<std::uint8_t>(1 + roll(9));
        if (roll(2) == 0) {
            on(action::mwait{.at = here, .next = here + 3, .thread = {state, 0}});
        } else {
            on(action::halt{here, here + 1, false});
        }
        art_ += roll(3000);
        on(action::wake{state, state});
    }
    void stop_clock() {
        on(action::clock_stop{unit_.ip()});
        on(action::clock_resume{});
    }
    void lose() {
        if (roll(10) != 0) { return; }
        on(action::overflow{});
        for (auto i = roll(4); i != 0; --i) { any_of({1, 2, 4, 10, 53}); }
        on(action::overflow_end{unit_.ip()});
    }
    void wait_for_sipi() {
        auto const here = unit_.ip();
        auto after = unit_.state().code;
        after.cpl = 0;
        after.cr3 = 0;
        after.width = engine::code_width::bits_16;
        after.real_mode = true;
        on(action::init{here, here, after, true});
        auto const between = roll(4);
        for (auto i = between; i != 0; --i) {
            switch (roll(4)) {
                case 0: on(action::psb_due{}); break;
                case 1: on(action::ratio{static_cast<std::uint8_t>(1 + roll(80))}); break;
                case 2:
                    on(action::halt{here, here, false});
                    on(action::wake{1, 1});
                    break;
                default: pass_time(); break;
            }
        }
        sipis += between != 0;
        on(action::sipi{0x1000 * roll(256), after, static_cast<std::uint8_t>(roll(256))});
    }

    std::mt19937_64 numbers_;
    engine::trace_unit<> unit_;
    recorder memory_{};
    std::uint64_t art_ = 0;
    test::random_moments moments_{};
};

auto line(char const* by, std::uint64_t offset, rule broken) -> std::string {
    return std::string{by} + ' ' + std::to_string(offset) + ' ' + rule_id{broken}.letters + '\n';
}

/// The violations that the checker and the reader find.
auto findings_in(byte_view stream, engine::model_kind which) -> std::string {
    std::string found;
    trace::check(stream, engine::check_options_of(which), [&](trace::violation const& one) {
        if (!one.is_note) { found += line("check", one.offset, one.broken); }
    });
    trace::event_reader<> events{stream};
    while (auto const& one = events.next()) {
        bool const is_cut = one.error == packet::error::truncated;
        if (one.what == event_type::damage && !is_cut) {
            found += line("events", one.offset, one.broken);
        }
    }
    return found;
}

}  // namespace

TEST_CASE("events in any order, INIT and SIPI among them, break no rule of order (GEN-006,290)") {
    auto const count = test::number_from("PTSPEC_ORDERED_EVENTS", test::usual_count / 1000);
    for (auto const& one : engine::model_kinds) {
        std::string const name{one.name.data(), one.name.size()};
        std::uint64_t sipis = 0;
        std::uint64_t bytes = 0;
        for (std::uint64_t seed = 1; seed <= count; ++seed) {
            processor from{one, seed};
            from.run(300);
            CAPTURE(seed);
            CAPTURE(name);
            CHECK(findings_in(from.stream(), one.which) == "");
            sipis += from.sipis;
            bytes += from.stream().size();
        }
        CHECK(sipis > count);
        CHECK(bytes > 1'000 * count);
    }
}
