// SPDX-License-Identifier: BSL-1.0
// The bounds of the times of events, against streams whose times are known: in every mixture of
// TSC, MTC, CYC and thresholds, with a core clock that deviates as far as it may, sleep, dropped
// MTCs, overflows, changes of frequency, and TSCs that jump. Environment: PTSPEC_TIME_BOUNDS, the
// number of events; PTSPEC_TIME_BOUNDS_SHOW=1 prints the widths of the bounds.
#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/events.hpp>

#include <doctest/doctest.h>
#include <support/how_many.hpp>
#include <support/timed_stream.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

using namespace ptspec;

namespace {

auto mixture_of(uint64_t seed) -> test::timed_mixture {
    static constexpr uint32_t ratios[][2] = {{84, 2},  {168, 2}, {216, 2}, {250, 3},  {161, 3},
                                             {312, 2}, {88, 2},  {200, 1}, {876, 10}, {1000, 7}};
    static constexpr uint8_t non_turbo[] = {36, 20, 43, 8, 30};
    std::mt19937_64 random{seed};
    auto const any = [&](uint64_t below) { return random() % below; };
    auto const small = [&](uint64_t below) { return static_cast<uint8_t>(any(below)); };
    auto const& ratio = ratios[any(10)];
    test::timed_mixture how;
    how.mtc = any(4) != 0;
    how.cyc = any(4) != 0;
    how.mtc_freq = how.mtc ? small(10) : uint8_t{0};
    how.threshold = how.cyc && any(3) != 0 ? small(16) : uint8_t{0};
    how.numerator = ratio[0];
    how.denominator = ratio[1];
    how.non_turbo = non_turbo[any(5)];
    how.tolerance = any(4) != 0 ? uint8_t{5} : static_cast<uint8_t>(1 + any(8));
    how.lost_mtcs = any(3) != 0 ? uint8_t{1} : small(4);
    how.drift = static_cast<test::core_drift>(any(underlying(test::core_drift::count)));
    how.drops_mtcs = any(2) != 0;
    how.sleeps = any(2) != 0;
    how.changes_frequency = any(2) != 0;
    how.overflows = any(3) == 0;
    how.jumps = any(3) == 0;
    how.pauses = any(3) == 0;
    how.reports = any(2) == 0;
    how.changes_cr3 = any(2) == 0;
    how.compounds = any(2) == 0;
    how.restarts_count = any(2) == 0;
    return how;
}

auto text_of(test::timed_mixture const& how) -> std::string {
    auto const number = [](uint64_t value) { return std::to_string(value); };
    return (how.mtc ? "MTC" + number(how.mtc_freq) : "") +
           (how.cyc ? " CYC" + number(how.threshold) : "") + " " + number(how.numerator) + "/" +
           number(how.denominator) + " ratio " + number(how.non_turbo) + " tolerance " +
           number(how.tolerance) + " lost " + number(how.lost_mtcs) + " drift " +
           number(underlying(how.drift)) + (how.drops_mtcs ? " drops" : "") +
           (how.sleeps ? " sleeps" : "") + (how.changes_frequency ? " frequency" : "") +
           (how.overflows ? " overflows" : "") + (how.jumps ? " jumps" : "") +
           (how.pauses ? " pauses" : "") + (how.reports ? " reports" : "") +
           (how.changes_cr3 ? " CR3" : "") + (how.compounds ? " compounds" : "") +
           (how.restarts_count ? " restarts" : "");
}

struct outcome {
    uint64_t events = 0;
    uint64_t outside = 0;
    uint64_t back = 0;  ///< the lower bound is lower than one before
    uint64_t wide = 0;  ///< wider than need be
    uint64_t unbounded = 0;
    std::vector<uint64_t> widths{};
    std::string first{};  ///< what was wrong first

    void add(outcome const& other) {
        events += other.events;
        outside += other.outside;
        back += other.back;
        wide += other.wide;
        unbounded += other.unbounded;
        widths.insert(widths.end(), other.widths.begin(), other.widths.end());
        if (first.empty()) { first = other.first; }
    }
};

/// With a CYC for each cycle, no packets lost and one frequency, the bounds follow from the ticks
/// since the last TSC or MTC: the deviation to both sides, and a cycle and a tick at each end.
auto widest(test::timed_mixture const& how, test::timed_stream::truth const& one) -> uint64_t {
    double const most = 1.0 / static_cast<double>(uint64_t{1} << how.tolerance);
    double const ticks = static_cast<double>(one.tsc - one.anchor);
    double const cycle = static_cast<double>(how.non_turbo) / one.ratio;
    // What took all these ticks at one extreme could have taken this many less or more.
    double const apart = (1 / (1 - most) - (1 - most)) / (1 - most);
    return static_cast<uint64_t>((ticks + 2 * cycle) * apart + 2 * cycle / (1 - most)) + 8;
}

auto check(test::timed_mixture const& how, uint64_t seed) -> outcome {
    test::timed_stream made{how, seed};
    made.run(1500);
    trace::clock_options const options{.mtc_freq = how.mtc_freq,
                                       .cyc_thresh = how.threshold,
                                       .max_non_turbo_ratio = how.non_turbo,
                                       .tsc_numerator = how.numerator,
                                       .tsc_denominator = how.denominator,
                                       .lost_mtcs = how.lost_mtcs,
                                       .tolerance = how.tolerance};
    trace::event_reader<trace::clock> from{borrowed_bytes{made.bytes().data(), made.bytes().size()},
                                           trace::clock{options}};
    bool const is_plain = how.cyc && how.threshold == 0 && !how.overflows && !how.pauses &&
                          !how.changes_frequency && !how.sleeps && !how.jumps;
    outcome all;
    uint64_t last = 0;
    auto at = made.truths().begin();
    while (auto const& e = from.next()) {
        bool const is_damage = e.what == trace::event_type::damage;
        if (is_damage && !(how.overflows && e.broken == rule::GEN_227)) {
            FAIL("damage: ", std::string{describe(e.broken).data()}, ", seed ", seed, ", offset ",
                 e.offset);
        }
        while (at != made.truths().end() && at->offset < e.offset) { ++at; }
        if (at == made.truths().end() || at->offset != e.offset) { continue; }
        auto const& when = e.when;
        bool const is_bounded = when.latest != trace::time::unbounded;
        // A note has the time of its packet, also in a PSB+.
        bool const is_note = e.what == trace::event_type::note;
        uint64_t const truth = is_note || is_damage ? at->tsc : at->event;
        bool const is_in = when.earliest <= truth && truth <= when.latest;
        bool const may_go_back = how.jumps || e.what == trace::event_type::overflow;
        bool const is_back = when.earliest < last && !may_go_back;
        bool const has_cyc = e.what == trace::event_type::branches ||
                             e.what == trace::event_type::indirect_branch ||
                             e.what == trace::event_type::ptwrite;
        bool const is_wide = is_plain && has_cyc && when.cycles != 0 &&
                             when.latest - when.earliest > widest(how, *at);
        last = when.earliest;
        ++all.events;
        all.outside += is_in ? 0 : 1;
        all.back += is_back ? 1 : 0;
        all.wide += is_wide ? 1 : 0;
        all.unbounded += is_bounded ? 0 : 1;
        all.widths.push_back(is_bounded ? when.latest - when.earliest : trace::time::unbounded);
        if ((!is_in || is_back || is_wide) && all.first.empty()) {
            all.first = "seed " + std::to_string(seed) + ": " + text_of(how) + ", offset " +
                        std::to_string(e.offset) + ": " + std::to_string(truth) + " in " +
                        std::to_string(when.earliest) + " .. " + std::to_string(when.latest);
        }
    }
    return all;
}

void show(std::string const& name, outcome& of) {
    auto const part = [&](size_t percent) {
        auto const at = of.widths.begin() +
                        static_cast<std::ptrdiff_t>((of.widths.size() - 1) * percent / 100);
        std::nth_element(of.widths.begin(), at, of.widths.end());
        return *at == trace::time::unbounded ? "-" : std::to_string(*at);
    };
    std::printf("%-32s %10llu events %6llu outside, width: median %6s, 90 %% %7s, %5.1f %% open\n",
                name.c_str(), static_cast<unsigned long long>(of.events),
                static_cast<unsigned long long>(of.outside), part(50).c_str(), part(90).c_str(),
                100.0 * static_cast<double>(of.unbounded) / static_cast<double>(of.events));
}

}  // namespace

TEST_CASE("the true time of each event lies within its bounds, and no lower bound goes back "
          "(PKT-320)") {
    uint64_t const wanted = test::number_from("PTSPEC_TIME_BOUNDS", test::usual_count / 4);
    bool const shows = std::getenv("PTSPEC_TIME_BOUNDS_SHOW") != nullptr;
    outcome all;
    std::map<std::string, outcome> kinds;
    for (uint64_t seed = 1; all.events < wanted; ++seed) {
        auto const how = mixture_of(seed);
        auto one = check(how, seed);
        if (shows) {
            std::string const threshold = how.threshold == 0 ? " CYC" : " CYC, threshold";
            kinds[(how.mtc ? "MTC" : "TSC") + (how.cyc ? threshold : "") +
                  (how.overflows ? ", overflows" : "") +
                  (how.changes_frequency ? ", frequency" : "")]
                .add(one);
        } else {
            one.widths.clear();
        }
        all.add(one);
    }
    for (auto& [name, kind] : kinds) { show(name, kind); }
    if (shows) { show("all", all); }
    INFO(all.first);
    CHECK(all.outside == 0);
    CHECK(all.back == 0);
    CHECK(all.wide == 0);
}
