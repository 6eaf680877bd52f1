// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/events.hpp>

#include <support/check_twice.hpp>
#include <support/chunks.hpp>
#include <support/event_text.hpp>
#include <support/random_numbers.hpp>

#include <iterator>
#include <string>
#include <string_view>
#include <vector>

using namespace ptspec;
using test::events_in;
using test::events_of;
using test::made_stream;

// `ON` is PSB, CBR, MODE.Exec, FUP 1000H, PSBEND; its events are `on`. `OFF` has only CBR.
namespace {

/// The events of a stream that is given in chunks of `size` bytes.
constexpr auto events_in_chunks(made_stream const& whole, size_t size, cpu::quirk_set quirks = {})
    -> test::short_text {
    test::short_text got;
    trace::event_reader<> from{{}, quirks};
    test::chunks rest{whole.view()};
    while (true) {
        auto const& e = from.next();
        if (e.what == trace::event_type::end) { return got; }
        if (e.what == trace::event_type::need_input) {
            if (!rest.feed(from, size)) { return {}; }
            continue;
        }
        if (got.size != 0) { got.add(" "); }
        test::add_event(got, e);
    }
}

auto text_of(trace::event const& e) -> std::string {
    test::short_text out;
    test::add_event(out, e);
    return {out.letters, out.size};
}

/// Packets that are complete where PacketEn is 1.
constexpr std::string_view sentences[] = {
    "06",
    "2d0020",
    "01 310030",
    "01 9902 310030",
    "01 0283 5901 ON 310030",
    "9902 2d0020",
    "9901 2d0020",
    "9921 3d1010",
    "9920 3d1010",
    "9922 3d1010 2d0020",
    "3d1010 2d0020",
    "3d1010 01 310030",
    "3d1010 0243001000000000 9901 2d0020",
    "3d1010 0243012000000000 9902 01 310030",
    "0243003000000000",
    "02c8010203040a",
    "021201000000",
    "029201000000 3d1010",
    "02c20100000000000000 02220010 02e2 3d1010 02a21001000000",
    "02f3 3d1010",
    "0213810e 3d1010",
    "02130200",
    "02032000",
    "5901",
    "ON"};

}  // namespace

#define EVENTS(stream, ...)                                                                        \
    INFO(std::string{events_of(stream).letters});                                                  \
    CHECK_TWICE([](auto value) {                                                                   \
        return events_in(value(made_stream{stream, engine::model_kind::manual})) == (__VA_ARGS__); \
    })
#define EVENTS_WITH(which, stream, ...)                                                            \
    CHECK_TWICE([](auto value) {                                                                   \
        auto const whole = value(made_stream{stream, engine::model_kind::manual});                 \
        auto const quirks = cpu::quirks(cpu::quirk::which);                                        \
        return events_in(whole, quirks) == (__VA_ARGS__) &&                                        \
               events_in_chunks(whole, 1, quirks) == (__VA_ARGS__);                                \
    })
#define ON "cbr@1000' exec_mode@1000' psb@1000 "
#define OFF "cbr' psb"

using packet::kind;
static_assert(packet::unbound_kinds == packet::kinds_of(kind::pad, kind::tsc, kind::tma, kind::mtc,
                                                        kind::cyc, kind::cbr, kind::mnt),
              "add_without_owner must add the event of each of these that has one");

TEST_CASE("event_reader{bytes} computes no times; a clock is the second argument") {
    using trace::event_reader;
    static std::vector<uint8_t> const owner;
    static constexpr uint8_t array[] = {0};
    byte_view const view = array;
    trace::clock const clock{trace::clock_options{}};
    static_assert(same_as<decltype(event_reader{owner}), event_reader<>>);
    static_assert(same_as<decltype(event_reader{view}), event_reader<>>);
    static_assert(same_as<decltype(event_reader{array}), event_reader<>>);
    static_assert(same_as<decltype(event_reader{view, clock}), event_reader<trace::clock>>);
    static_assert(same_as<decltype(event_reader{clock}), event_reader<trace::clock>>);
    CHECK(event_reader{owner}.next().what == trace::event_type::end);
}

TEST_CASE("times are absent without a clock, also with TSCs, and at the end of a trace") {
    CHECK_TWICE([](auto value) {
        auto const whole = value(made_stream{"PSB 1900100000000000 0223 310030 06 02b201000000 06",
                                             engine::model_kind::manual});
        bool right = true;
        trace::event_reader<> from{whole.view()};
        trace::event_reader timed{whole.view(), trace::clock{}};
        for (auto one = from.next(); one; one = from.next()) {
            right = right && one.when.is_absent() && !one.when.is_absolute();
            right = right && timed.next().when.tsc == 0x1000;
        }
        return right && from.next().when.is_absent() && timed.next().when.is_absent() &&
               trace::event{}.when.is_absent();
    });
}

TEST_CASE("branches and targets, with PADs and timing packets between (PKT-166,277)") {
    EVENTS("ON 0c 0000 5907 2d0020 0e 2d",
           ON "branches:TN indirect>2000 branches:TT damage!PKT255");
    EVENTS("ON 02a3060000000000 0d", ON "branches:TN indirect");
}

TEST_CASE("an IP that a packet does not have is 0, whether branches need binding or not") {
    CHECK_TWICE([](auto value) {
        // With quirks every packet is bound. TIP.PGE, TIP, TIP.PGD, FUP and TIP.PGD without an IP.
        auto const whole = value(made_stream{"ON 0d 01 11 7100400000 0d 01 7100500000 01 "
                                             "11 0273 OFF",
                                             engine::model_kind::manual});
        unsigned absent = 0;
        for (auto const quirks : {cpu::quirk_set{}, cpu::quirks(cpu::quirk::bdm64)}) {
            trace::event_reader<> from{whole.view(), {}, quirks};
            for (auto one = from.next(); one; one = from.next()) {
                if ((!one.has_ip && one.ip != 0) || (!one.has_to && one.to != 0)) { return false; }
                absent += one.what == trace::event_type::indirect_branch && !one.has_to;
                absent += one.what == trace::event_type::disabled && !one.has_to;
                absent += one.what == trace::event_type::enabled && !one.has_ip;
            }
        }
        return absent >= 6;
    });
}

TEST_CASE("a PSB+ reports the state at the IP of its FUP (PKT-136,140, GEN-170,173)") {
    EVENTS("ON", "cbr@1000' exec_mode@1000' psb@1000");
    EVENTS("OFF", OFF);
    // TSC, TMA, PIP, VMCS, MODE.TSX in any order, after the FUP, too.
    EVENTS("PSB 7d001000000000 024300a000000000 02c80500000000 9922 0223",
           "paging@1000' vmcs@1000' tsx@1000' psb@1000");
    // A FUP without an IP: tracing is off.
    EVENTS("PSB 1d 0223 9901 310030", "damage!PKT078 psb enabled@3000 exec_mode@3000");
    EVENTS("ON 04 ON 06", ON "branches:N " ON "branches:T");
}

TEST_CASE("read from the first byte, IPs are unknown up to the first PSB (PKT-250)") {
    CHECK_TWICE([](auto value) {
        auto const in = [&](char const* text, size_t size) {
            auto const whole = value(made_stream{text, engine::model_kind::manual});
            test::short_text got;
            trace::event_reader<> from{{}, {}, {}, {.sync = false}};
            for (size_t at = 0; at < whole.view().size(); at += size) {
                (void)from.feed(whole.view().from(at).first(size));
                for (auto e = from.next(); e; e = from.next()) {
                    if (got.size != 0) { got.add(" "); }
                    test::add_event(got, e);
                }
            }
            return got;
        };
        bool right = true;
        for (size_t const size : {1U, 2U, 5U, 100U}) {
            right = right &&
                    in("0c 2d0020 0c 3d0010 2d0030 210040 710050000000000000 ON 0c 2d0020 0c",
                       size) == "branches:TN indirect branches:TN async disabled enabled " ON
                                "branches:TN indirect>2000 branches:TN" &&
                    in("710050000000000000 2d0020 0c", size) == "enabled indirect branches:TN";
        }
        return right;
    });
}

TEST_CASE(
    "branches at unknown IPs have `enabled` unknown: at the start, after damage (PKT-250,254)") {
    CHECK_TWICE([](auto value) {
        auto const whole = value(
            made_stream{"0c 2d0020 04 OFF 0c 04 2d0020 06", engine::model_kind::manual});
        trace::event_reader<> from{whole.view(), {}, {}, {}, {.sync = false}};
        trace::tracing enabled[5]{};
        unsigned count = 0;
        for (auto one = from.next(); one; one = from.next()) {
            if (one.what != trace::event_type::branches) { continue; }
            if (from.state().enabled != one.enabled) { return false; }
            enabled[count++] = one.enabled;
        }
        using enum trace::tracing;
        return count == 5 && enabled[0] == unknown && enabled[1] == on && enabled[2] == unknown &&
               enabled[3] == unknown && enabled[4] == on;
    });
    // Before the first packet with an IP nothing is lost: its TIP is a branch, but not in a PSB+.
    CHECK_TWICE([](auto value) {
        auto const first_tip = [&](char const* text) {
            auto const whole = value(made_stream{text, engine::model_kind::manual});
            trace::event_reader<> from{whole.view(), {}, {}, {}, {.sync = false}};
            for (auto one = from.next(); one; one = from.next()) {
                if (one.packet.is<packet::tip>() && one.broken == rule::none) { return one.what; }
            }
            return trace::event_type::end;
        };
        using enum trace::event_type;
        return first_tip("06 06 2d0020") == indirect_branch &&
               first_tip("5905 02032000 2d0020") == indirect_branch &&
               first_tip("021201000000 9901 2d0020") == indirect_branch &&
               first_tip("01 06 2d0020") == resumed && first_tip("02f3 06 2d0020") == resumed &&
               first_tip("PSB 06 2d0020") == resumed && first_tip("06 05 PSB 2d0020") == resumed;
    });
}

TEST_CASE("tracing is enabled and disabled (PKT-073..076,141, GEN-246)") {
    EVENTS("OFF 9901 71003000000000 06 210040",
           OFF " enabled@3000 exec_mode@3000 branches:T disabled>4000");
    EVENTS("ON 01 310050 0c", ON "disabled enabled@5000 branches:TN");
    EVENTS("ON 3d1010 01 310050", ON "async_disabled@1010 enabled@5000");
    EVENTS("ON 3d1010 210040", ON "async_disabled@1010>4000");
}

TEST_CASE("a FUP opens an event, which TIP ends; its state applies there (PKT-071,270..273)") {
    EVENTS("ON 06 3d1010 2d0020 04", ON "branches:T async@1010>2000 branches:N");
    // PIP, VMCS and MODE.Exec, and timing packets between (PKT-272).
    EVENTS("ON 3d1010 024301a000000000 1900000000000000 02c80500000000 5901 9902 2d0020",
           ON "async@1010>2000 paging@2000 vmcs@2000 exec_mode@2000");
    EVENTS("ON 3d1010 02032000 02c3880100000000000000 2d0020", ON "cbr mnt async@1010>2000");
    EVENTS("ON 02b20100000000000000 02032000 3d1010", ON "cbr ptwrite@1010");
    EVENTS("ON 9901 02032000 2d0020", ON "cbr indirect>2000 exec_mode@2000");
}

TEST_CASE("PIP, VMCS and MODE.Exec without a FUP (PKT-082,092,163,274)") {
    EVENTS("ON 024300a000000000 06", ON "paging branches:T");
    EVENTS("ON 024301a000000000 9902 2d0020", ON "paging indirect>2000 exec_mode@2000");
    EVENTS("ON 02c80500000000", ON "vmcs");
    // With event trace, MODE.Exec and FUP: RFLAGS.IF changes.
    EVENTS("ON 9905 3d1010 06", ON "exec_mode@1010 branches:T");
}

TEST_CASE("transactions (PKT-093, GEN-250..258)") {
    EVENTS("ON 9921 3d1010 06 9920 3d2010", ON "tsx@1010 branches:T tsx@1020");
    EVENTS("ON 9921 3d1010 06 9920 3d2010 04", ON "tsx@1010 branches:T tsx@1020 branches:N");
    EVENTS("ON 9922 3d1010 2d0020", ON "tsx@1010 async@1010>2000");
    EVENTS("ON 9922 3d1010 210020", ON "tsx@1010 async_disabled@1010>2000");
    // While tracing is off, MODE.TSX comes alone.
    EVENTS("OFF 9921 9922 9901 310030", OFF " tsx tsx enabled@3000 exec_mode@3000");
}

TEST_CASE("PTWRITE, with and without its FUP (PKT-172,174)") {
    EVENTS("ON 02320100000000000000 021201000000 06", ON "ptwrite ptwrite branches:T");
    EVENTS("ON 02b20100000000000000 3d1010", ON "ptwrite@1010");
    EVENTS("OFF 02b20100000000000000 5901 3d1010", OFF " ptwrite@1010");
    EVENTS("ON 02320100000000000000 02032000 06", ON "ptwrite cbr branches:T");
}

TEST_CASE("state() is that after the last event (PKT-140, GEN-100, GEN-101)") {
    CHECK_TWICE([](auto value) {
        // TIP.PGD, TIP.PGE, TNT, TIP.PGD: after each event tracing is on or off.
        auto const whole = value(made_stream{"ON 01 310030 06 01", engine::model_kind::manual});
        trace::event_reader<> from{whole.view()};
        for (auto one = from.next(); one; one = from.next()) {
            bool const is_on = from.state().enabled == trace::tracing::on;
            if (one.what == trace::event_type::disabled && is_on) { return false; }
            if (one.what == trace::event_type::enabled && !is_on) { return false; }
            if (one.what == trace::event_type::branches && !is_on) { return false; }
        }
        return true;
    });
}

/// The states after the events of a stream that is given in chunks of `size` bytes, up to the
/// first damage.
static auto states_in_chunks(made_stream const& whole, size_t size)
    -> std::vector<trace::execution_state> {
    std::vector<trace::execution_state> all;
    trace::event_reader<> from{trace::no_clock{}};
    test::chunks rest{whole.view()};
    while (true) {
        auto const& e = from.next();
        if (e.what == trace::event_type::need_input) {
            REQUIRE(rest.feed(from, size));
        } else if (e.what == trace::event_type::end || e.broken != rule::none) {
            return all;
        } else {
            all.push_back(from.state());
        }
    }
}

TEST_CASE("state() is the same in chunks of any size, for any mixture of events") {
    test::random_numbers random{7};
    size_t states = 0;
    unsigned changes = 0;
    for (unsigned round = 0; round < 3000; ++round) {
        std::string text = "ON";
        size_t const few = random.one_in(2) ? 4 : std::size(sentences);
        size_t const first = random.below(std::size(sentences));
        for (unsigned i = 0; i < 12; ++i) {
            text += " ";
            text += sentences[(first + random.below(few)) % std::size(sentences)];
        }
        made_stream const whole{text, engine::model_kind::manual};
        auto const expected = states_in_chunks(whole, 1);
        INFO(text);
        REQUIRE(states_in_chunks(whole, 1024) == expected);
        REQUIRE(states_in_chunks(whole, 1 + random.below(30)) == expected);
        for (size_t i = 1; i < expected.size(); ++i) { changes += expected[i] != expected[i - 1]; }
        states += expected.size();
    }
    CHECK(states > 30'000);
    CHECK(changes > 10'000);
}

TEST_CASE("packets that need no queue have the events, times and states that the queue gives") {
    // Such a quirk changes no event, but with it all packets are bound one by one.
    auto const no_effect = cpu::quirks(cpu::quirk::core_scoped_msrs);
    std::string_view const parts[] = {"01",
                                      "310030",
                                      "210040",
                                      "2d0020",
                                      "0d",
                                      "3d1010",
                                      "1d",
                                      "02b20100000000000000",
                                      "02b20100000000000000 3d1010",
                                      "02b20100000000000000 5901 53 3d1010",
                                      "029201000000 5901 3d1010",
                                      "5905 5906 5907 5909",
                                      "07 2d0020",
                                      "53 02b20100000000000000 530c 3d1010",
                                      "53 3d1010 53 2d0020",
                                      "00",
                                      "1940420f00000000",
                                      "1940420f00000000 02732000000000",
                                      "02f3",
                                      "0283",
                                      "OFF"};
    // PSB+s, the first of which most streams repeat.
    std::string_view const reports[] = {
        "PSB 1940420f00000000 02732000000000 02030800 7d000040000000 0223",
        "PSB 1940420f00000000 02732000000000 0243011000000000 9901 02030800 7d000040000000 0223",
        "PSB 0243001000000000 9901 9920 1960420f00000000 02734000000000 7d000040000000 0223",
        "PSB 9901 02732000000000 02030800 7d000040000000 0223",
        "PSB 0243011000000000 1950420f00000000 02030800 0223",
        "PSB 1950420f00000000 02c80102030405 00 02030800 0223",
        "PSB 53 1950420f00000000 02032000 7d000040000000 0223"};
    test::random_numbers random{11};
    size_t count = 0;
    size_t exact = 0;
    for (unsigned round = 0; round < 3000U; ++round) {
        std::string_view const report = reports[random.below(std::size(reports))];
        std::string text{report};
        if (random.one_in(4)) { text = "OFF 1940420f00000000 02732000000000"; }
        // More than there is room for, with and without a FUP.
        if (random.one_in(3)) {
            std::string_view const same[] = {" 029201000000 3d1010", " 021201000000", " 06"};
            std::string_view const one = same[random.below(3)];
            for (uint64_t i = 16 + random.below(20); i != 0; --i) { text += one; }
        }
        for (unsigned i = 0; i < 10; ++i) {
            text += " ";
            switch (random.below(5)) {
                case 0: text += report; break;
                case 1: text += reports[random.below(std::size(reports))]; break;
                case 2: text += sentences[random.below(std::size(sentences) - 1)]; break;
                default: text += parts[random.below(std::size(parts))];
            }
        }
        made_stream const whole{text, engine::model_kind::manual};
        trace::clock_options how{
            .mtc_freq = 3, .max_non_turbo_ratio = 8, .tsc_numerator = 100, .tsc_denominator = 1};
        how.cyc_thresh = static_cast<uint8_t>(random.below(6));
        trace::clock const clock{how};
        trace::event_reader<trace::clock> at_once{clock};
        trace::event_reader<trace::clock> queued{whole.view(), clock, no_effect};
        trace::event_reader<> without_times{whole.view()};
        test::chunks rest{whole.view()};
        size_t const size = random.one_in(2) ? 1024 : 1 + random.below(60);
        // A TMA before the TSC is damage for a clock alone.
        bool const has_bad_time = text.find("9901 0273") != std::string::npos;
        INFO(text);
        while (true) {
            auto const* one = &at_once.next();
            while (one->what == trace::event_type::need_input) {
                REQUIRE(rest.feed(at_once, size));
                one = &at_once.next();
            }
            auto const& other = queued.next();
            REQUIRE(text_of(*one) == text_of(other));
            if (!has_bad_time) {
                REQUIRE(text_of(*one) == text_of(without_times.next()));
                REQUIRE(at_once.state() == without_times.state());
            }
            REQUIRE(one->when == other.when);
            REQUIRE(one->enabled == other.enabled);
            REQUIRE(one->offset == other.offset);
            REQUIRE(one->packet == other.packet);
            REQUIRE(at_once.state() == queued.state());
            ++count;
            exact += one->when.latest - one->when.earliest < 4;
            if (one->what == trace::event_type::end) { break; }
        }
    }
    CHECK(count > 60'000);
    CHECK(exact > 1'000);
}

TEST_CASE("C-states: one FUP for MWAIT, PWRE and EXSTOP; PWRX has their IP (PKT-181,188,189)") {
    EVENTS("ON 02c20100000000000000 0222 0010 02e2 3d1010 0203200000 02a2 1001000000",
           ON "mwait@1010 pwre@1010 exstop@1010 cbr pwrx@1010");
    EVENTS("OFF 0222 0010 0262 02a2 1001000000", OFF " pwre exstop pwrx");
    // C0.1 has no EXSTOP: a PWRE alone (PKT-188).
    EVENTS("ON 0222 0010 06", ON "pwre branches:T");
    EVENTS("ON 0222 0010 ON 06", ON "pwre damage!GEN006 " ON "branches:T");
}

TEST_CASE("a PEBS record has the IP of the FUP after BEP (PKT-204,206)") {
    EVENTS("ON 026384 0c01000000 026301 0c0100000000000000 02b3 3d1010",
           ON "pebs_group pebs_item pebs_group pebs_item pebs_end@1010");
    EVENTS("ON 026384 0c01000000 0233 06", ON "pebs_group pebs_item pebs_end branches:T");
}

TEST_CASE("event trace: CFE and its EVDs (PKT-222,223,227, GEN-301..304)") {
    EVENTS("ON 0253000100000000000000 0213810e 3d1010 06", ON "evd@1010 cfe@1010 branches:T");
    // IP=0: the CFE belongs to the event that follows.
    EVENTS("ON 0253000100000000000000 0213010e 3d1010 2d0020",
           ON "evd@1010 cfe@1010 async@1010>2000");
    EVENTS("ON 02130200 2d0020", ON "cfe indirect>2000");
    EVENTS("OFF 02130400 9901 310030", OFF " cfe enabled@3000 exec_mode@3000");
    // Unknown types, with their FUP (PKT-221).
    EVENTS("ON 02139f00 3d1010 06", ON "cfe@1010 branches:T");
    EVENTS("ON 0253000100000000000000 06", ON "evd damage!GEN302 branches:T");
}

TEST_CASE("triggers (PKT-241,243)") {
    EVENTS("ON d92001 06", ON "trigger branches:T");
    EVENTS("ON d9c0010000 3d1010 06", ON "trigger@1010 branches:T");
    // The packets of one event share a FUP (PKT-273).
    EVENTS("ON 02e2 0213810e 3d1010", ON "exstop@1010 cfe@1010");
    EVENTS("ON 02b20100000000000000 d9c0010000 3d1010", ON "ptwrite damage!PKT273 trigger@1010");
}

TEST_CASE("TraceStop belongs to the TIP.PGD before it (PKT-161)") {
    EVENTS("ON 210040 0283", ON "disabled>4000 stop@4000");
    EVENTS("ON 01 0283", ON "disabled stop");
    EVENTS("ON 06 210040 0283", ON "branches:T disabled>4000 stop@4000");
    EVENTS("ON 06 210040 310030 01 0283", ON "branches:T disabled>4000 enabled@3000 disabled stop");
}

// trace/overflows.cpp tests mixtures of OVF, PSB+, FUP, TIP, TNT, PIP and TraceStop.

TEST_CASE("an overflow ends at a FUP, or tracing is off (PKT-151..157, GEN-227,228)") {
    EVENTS("ON 06 02f3 3d1010 04", ON "branches:T overflow resumed@1010 branches:N");
    EVENTS("ON 02f3 5901 1900000000000000 02032000 00 3d1010", ON "overflow cbr resumed@1010");
    EVENTS("ON 02f3 9901 71003000000000 06", ON "overflow enabled@3000 exec_mode@3000 branches:T");
    // A PSB+ without FUP between OVF and TIP.PGE.
    EVENTS("ON 02f3 OFF 9901 310030", ON "overflow " OFF " enabled@3000 exec_mode@3000");
    // OVF ends a PSB+ and what waits (PKT-137,154).
    EVENTS("PSB 9901 02f3 3d1010", "exec_mode' overflow resumed@1010");
    EVENTS("ON 02b20100000000000000 02f3 3d1010", ON "ptwrite overflow resumed@1010");
}

TEST_CASE("a PSB+ with FUP after OVF has the IP, if no FUP follows: SKD010 (GEN-227,228,343)") {
    // Branches.
    EVENTS_WITH(skd010, "ON 06 02f3 ON 0c 06 2d0050",
                ON "branches:T overflow " ON "resumed@1000 branches:TN branches:T indirect>5000");
    EVENTS("ON 06 02f3 ON 0c 06 2d0050",
           ON "branches:T overflow " ON
              "damage!GEN227 resumed@1000 branches:TN branches:T indirect>5000");
    EVENTS_WITH(skd010, "ON 02f3 ON 9901 2d0020",
                ON "overflow " ON "resumed@1000 indirect>2000 exec_mode@2000");
    // FUP and TIP are an event of their own with the erratum; another FUP is the OVF's.
    EVENTS_WITH(skd010, "ON 02f3 ON 3d1010 9901 2d0020",
                ON "overflow " ON "resumed@1000 async@1010>2000 exec_mode@2000");
    EVENTS_WITH(skd010, "ON 02f3 ON 3d1010 9905 3d2010 06",
                ON "overflow " ON "resumed@1010 exec_mode@1020 branches:T");
    EVENTS_WITH(skd010, "ON 02f3 ON 3d1010 05",
                ON "overflow " ON "resumed@1010 damage!PKT015 lost");
    // Packets between, which do not depend on PacketEn or belong to no branch.
    EVENTS_WITH(skd010, "ON 02f3 ON 02031800 06", ON "overflow " ON "resumed@1000 cbr branches:T");
    EVENTS_WITH(skd010, "ON 02f3 ON 02b20100000000000000 3d1010 06",
                ON "overflow " ON "resumed@1000 ptwrite@1010 branches:T");
    EVENTS_WITH(skd010, "ON 02f3 ON 9921 3d1010 06",
                ON "overflow " ON "resumed@1000 tsx@1010 branches:T");
    // Tracing is off: BDM70, a PSB+ without FUP. A MODE.TSX then has no FUP.
    EVENTS_WITH(skd010, "ON 02f3 ON 9901 310030", ON "overflow " ON "enabled@3000 exec_mode@3000");
    EVENTS("ON 02f3 ON 9921 310030", ON "overflow " ON "tsx enabled@3000");
    EVENTS("ON 02f3 ON 9921 OFF 9901 310030",
           ON "overflow " ON "tsx " OFF " enabled@3000 exec_mode@3000");
    EVENTS("ON 02f3 ON OFF 9901 310030", ON "overflow " ON OFF " enabled@3000 exec_mode@3000");
}

TEST_CASE("APL12: a FUP after OVF is spurious if a later packet shows that tracing is off") {
    EVENTS_WITH(apl12, "ON 02f3 3d1010 0283", ON "overflow stop");
    EVENTS_WITH(apl12, "ON 02f3 3d1010 OFF 9901 310030",
                ON "overflow " OFF " enabled@3000 exec_mode@3000");
    EVENTS_WITH(apl12, "ON 02f3 3d1010 9901 310030", ON "overflow enabled@3000 exec_mode@3000");
    EVENTS_WITH(apl12, "ON 02f3 3d1010 9921 310030", ON "overflow tsx enabled@3000");
    // Not spurious: TNT comes first, or nothing decides.
    EVENTS_WITH(apl12, "ON 02f3 3d1010 06", ON "overflow resumed@1010 branches:T");
    EVENTS_WITH(apl12, "ON 02f3 3d1010 05", ON "overflow resumed@1010 damage!PKT015 lost");
}

TEST_CASE("APL12: any number of packets may come before the one that decides") {
    for (bool const is_spurious : {false, true}) {
        std::vector<uint8_t> bytes;
        auto const add = [&](std::string_view text) {
            made_stream const made{text, engine::model_kind::manual};
            bytes.insert(bytes.end(), made.bytes, made.bytes + made.size);
        };
        add("ON 02f3 3d1010");
        constexpr unsigned count = 1000;
        for (unsigned i = 0; i < count; ++i) { add("024300a000000000"); }
        add(is_spurious ? "310030" : "06");
        trace::event_reader<> from{byte_view{bytes}, {}, cpu::quirks(cpu::quirk::apl12)};
        unsigned pips = 0;
        unsigned resumed = 0;
        unsigned last = 0;
        while (auto const& e = from.next()) {
            pips += e.what == trace::event_type::paging;
            resumed += e.what == trace::event_type::resumed && e.ip == 0x1010;
            last += e.what ==
                    (is_spurious ? trace::event_type::enabled : trace::event_type::branches);
        }
        CHECK(pips == count);
        CHECK(resumed == (is_spurious ? 0 : 1));
        CHECK(last == 1);
    }
}

TEST_CASE("an event of an overflow has the packet and the time of its IP") {
    CHECK_TWICE([](auto value) {
        made_stream const stream = value(
            made_stream{"ON 02f3 PSB 1900100000000000 9901 7d003000000000 0223 1900200000000000 06",
                        engine::model_kind::manual});
        trace::event_reader<trace::clock> from{stream.view()};
        trace::event got = from.next();
        while (got && got.what != trace::event_type::resumed) { got = from.next(); }
        return got.ip == 0x3000 && got.packet.is<packet::fup>() && got.when.tsc == 0x1000 &&
               from.next().when.tsc == 0x2000;
    });
}

TEST_CASE("damage is an event; `resumed` has the next IP (PKT-254)") {
    EVENTS("ON 06 05 06 ON 04", ON "branches:T damage!PKT015 resynced " ON "branches:N");
    EVENTS("ON 05", ON "damage!PKT015 lost");
    CHECK_TWICE([](auto value) {
        auto const whole = value(made_stream{"ON 05 ON", engine::model_kind::manual});
        trace::event_reader<> from{whole.view()};
        bool right = true;
        unsigned without = 0;
        for (auto one = from.next(); one; one = from.next()) {
            bool const has_packet = one.what != trace::event_type::damage &&
                                    one.what != trace::event_type::resynced;
            right = right && (one.packet.kind() != packet::kind::none) == has_packet;
            without += has_packet ? 0U : 1U;
        }
        return right && without == 2 && from.next().packet.kind() == packet::kind::none;
    });
    // What waited is forgotten.
    EVENTS("ON 02b20100000000000000 05 ON 06",
           ON "ptwrite damage!PKT015 resynced " ON "branches:T");
    // A packet in the wrong order: reading continues with it.
    EVENTS("ON 02b20100000000000000 06 04 2d0020 06",
           ON "ptwrite damage!PKT273 branches:T branches:N indirect>2000 branches:T");
    EVENTS("ON 01 06 04 2d0020 06",
           ON "disabled damage!GEN105 branches:T branches:N resumed@2000 branches:T");
    EVENTS("ON 01 2d0020 06", ON "disabled damage!GEN105 resumed@2000 branches:T");
    EVENTS("ON 01 01", ON "disabled damage!GEN101 disabled");
    EVENTS("ON 06 310030", ON "branches:T damage!GEN100 enabled@3000");
    EVENTS("ON 3d1010 06 04 2d0020",
           ON "async@1010 damage!PKT077 branches:T branches:N resumed@2000");
    EVENTS("ON 0223", ON "damage!PKT134 psb");
    EVENTS("PSB CBR PSB 0223 310030", "cbr' damage!PKT142 psb enabled@3000");
    EVENTS("PSB 06 310030", "damage!GEN125 branches:T enabled@3000");
    EVENTS("ON 9901 06", ON "exec_mode damage!GEN235 branches:T");
    EVENTS("ON 9921 ON 06", ON "tsx damage!GEN006 " ON "branches:T");
}

TEST_CASE("the TIP of a SIPI ends the event of its INIT; packets between come first (GEN-290)") {
    // Before the SIPI the processor is in real mode.
#define REAL "PSB CBR 99007d001000000000 0223"
    EVENTS("ON 3d1010 0243001000000000 " REAL " 2d0020", ON ON "async@1010>2000 paging@2000");
    // Power events with their own FUP, CFE, MODE.Exec; two PSB+s.
    EVENTS("ON 3d1010 0222 0010 02e2 3d1010 02a2 1001000000 " REAL " " REAL " 0213059a 9900 2d0020 "
           "06",
           ON "pwre@1010 exstop@1010 pwrx@1010 " ON ON "cfe async@1010>2000 exec_mode@2000 "
              "branches:T");
    EVENTS("ON 3d1010 " REAL " 01", ON ON "async_disabled@1010");
    // No SIPI comes.
    EVENTS("ON 3d1010 " REAL " 06 2d0020",
           ON ON "async@1010 damage!PKT077 branches:T resumed@2000");
    EVENTS("ON 3d1010 " REAL " 02f3 3d2010", ON ON "async@1010 overflow resumed@1020");
    EVENTS("ON 3d1010 " REAL, ON ON "async@1010");
    EVENTS("ON 3d1010 " REAL " 05", ON ON "async@1010 damage!PKT015 lost");
    EVENTS("ON 3d1010 " REAL " 3d2010 2d0020", ON ON "async@1010 damage!PKT077 async@1020>2000");
    // More packets than an INIT has: the event is returned without its end.
    EVENTS("ON 3d1010 0243001000000000 0243002000000000 " REAL " 2d0020",
           ON "async@1010 paging paging " ON "async>2000");
#undef REAL
    // In 32-bit and 64-bit code a PSB+ comes after no INIT: what was pending is damage, and the
    // packets after it are read from the IP of the PSB+.
    EVENTS("ON 3d1010 ON 06", ON "async@1010 damage!PKT077 " ON "branches:T");
    EVENTS("ON 3d1010 PSB CBR 99027d001000000000 0223 2d0020",
           ON "async@1010 damage!PKT077 " ON "indirect>2000");
    EVENTS("ON 3d1010 0243001000000000 ON 06",
           ON "async@1010 paging damage!PKT077 " ON "branches:T");
}

TEST_CASE("damage inside of a compound event comes before it (GEN-237,245)") {
    EVENTS("ON 3d1010 9902 0243001000000000 2d0020",
           ON "damage!GEN245 async@1010>2000 exec_mode@2000 paging@2000");
    EVENTS("ON 3d1010 9902 01", ON "damage!GEN237 async_disabled@1010 exec_mode");
}

TEST_CASE("a PSB+ that contradicts the packets before it is damage, or a note (GEN-242,344)") {
    EVENTS("ON 06 PSB 9902 7d001000000000 0223 06",
           ON "branches:T damage!GEN344 exec_mode@1000' psb@1000 branches:T");
    EVENTS("ON 9921 3d1010 PSB CBR 9920 9901 7d001000000000 0223",
           ON "tsx@1010 damage!GEN344 cbr@1000' tsx@1000' exec_mode@1000' psb@1000");
    EVENTS("ON 0243001000000000 PSB 0243002000000000 7d001000000000 0223 06",
           ON "paging note!GEN344 paging@1000' psb@1000 branches:T");
    EVENTS("ON 0243001000000000 02c80500000000 PSB 0243002000000000 7d001000000000 0223",
           ON "paging vmcs paging@1000' psb@1000");
    EVENTS("ON 0243001000000000 02138800 3d1010 2d0020 PSB 0243002000000000 7d001000000000 0223",
           ON "paging cfe@1010 indirect>2000 paging@1000' psb@1000");
    // An enable, an OVF, damage, an INIT.
    EVENTS("ON 01 PSB 9902 7d001000000000 0223 310030 PSB 9902 7d001000000000 0223 06",
           ON "disabled exec_mode@1000' psb@1000 enabled@3000 exec_mode@1000' psb@1000 branches:T");
    EVENTS("ON 310030 PSB 9902 7d001000000000 0223",
           ON "enabled@3000 damage!GEN344 exec_mode@1000' psb@1000");
    EVENTS("ON 06 01 310030 PSB 9902 7d001000000000 0223",
           ON "branches:T disabled enabled@3000 exec_mode@1000' psb@1000");
    EVENTS("ON 01 9901 71003000000000 PSB 9902 7d001000000000 0223",
           ON "disabled enabled@3000 exec_mode@3000 damage!GEN344 exec_mode@1000' psb@1000");
    EVENTS("ON 02f3 3d1010 PSB 9902 7d001000000000 0223",
           ON "overflow resumed@1010 exec_mode@1000' psb@1000");
    EVENTS("ON 06 05 PSB 9902 7d001000000000 0223",
           ON "branches:T damage!PKT015 resynced exec_mode@1000' psb@1000");
    EVENTS("ON 06 3d1010 PSB 9900 7d001000000000 0223 2d0020",
           ON "branches:T exec_mode@1000' psb@1000 async@1010>2000");
}

TEST_CASE("more waiting events than there is room for are returned without an IP") {
    std::string stream = "ON";
    for (unsigned i = 0; i < 40; ++i) { stream += " 0253000100000000000000"; }
    made_stream const made{stream + " 0213810e 3d1010 06", engine::model_kind::manual};
    trace::event_reader<> from{made.view()};
    unsigned items = 0;
    unsigned with_ip = 0;
    while (auto const& e = from.next()) {
        if (e.what != trace::event_type::event_data) { continue; }
        ++items;
        with_ip += e.has_ip;
    }
    CHECK(items == 40);
    CHECK(with_ip == 13);
}

TEST_CASE("a trace in chunks of any size gives the same events") {
    CHECK_TWICE([](auto value) {
        auto const whole = value(made_stream{"ON 06 3d1010 2d0020 04", engine::model_kind::manual});
        return events_in_chunks(whole, 5) == ON "branches:T async@1010>2000 branches:N";
    });
    made_stream const whole{"ON 06 3d1010 024301a000000000 9902 2d0020 02b20100000000000000 3d1010 "
                            "02f3 ON 3d1010 0c 01 "
                            "OFF 310030 05 06 ON 9921 3d1010 04",
                            engine::model_kind::manual};
    auto const expected = events_in(whole);
    for (size_t size = 1; size <= whole.size; ++size) {
        CHECK(events_in_chunks(whole, size) == std::string_view{expected.letters, expected.size});
    }
}

TEST_CASE("an event has the time of its own packet, and a PSB+ that of its TSC (PKT-113,302)") {
    CHECK_TWICE([](auto value) {
        made_stream const stream = value(
            made_stream{"PSB 9901 7d001000000000 1900100000000000 02732000000000 0223 5905 "
                        "02b20100000000000000 5906 3d1010 06 3d1010 5907 2d0020",
                        engine::model_kind::manual});
        trace::clock const clock{{.mtc_freq = 3, .tsc_numerator = 100, .tsc_denominator = 1}};
        trace::event_reader<trace::clock> from{stream.view(), clock};
        uint64_t const exec = from.next().when.tsc;
        uint64_t const psb = from.next().when.tsc;
        uint64_t const ptwrite = from.next().when.tsc;
        uint64_t const branch = from.next().when.tsc;
        // An interrupt has the time of its TIP.
        uint64_t const interrupt = from.next().when.tsc;
        // CTC 20H is MTC 4.
        return exec == 0x1000 && psb == 0x1000 && ptwrite == 0x1000 + 800 &&
               branch == 0x1000 + 1600 && interrupt == 0x1000 + 2400;
    });
}

TEST_CASE("only packets that have a CYC get its upper bound: not CBR and MNT (GEN-213)") {
    CHECK_TWICE([](auto value) {
        // TSC 1000000, CBR 8; CYC 10 and a TNT; MNT and CBR; CYC 100000 and a TNT.
        auto const stream = value(made_stream{
            "PSB 1940420f00000000 02030800 7d000040000000 0223 530c 02c3880102030405060708 "
            "02030800 0735300c",
            engine::model_kind::manual});
        trace::event_reader<trace::clock> from{stream.view(),
                                               trace::clock{{.max_non_turbo_ratio = 8}}};
        bool checked[4] = {};
        while (auto const& e = from.next()) {
            auto const when = e.when;
            switch (e.what) {
                case trace::event_type::branches:
                    // Each cycle has a tick.
                    if (when.cycles == 10) {
                        checked[0] = when.earliest <= 1'000'010 && when.latest >= 1'000'010 &&
                                     when.latest < 1'000'014;
                    }
                    break;
                case trace::event_type::maintenance:
                    checked[1] = when.earliest <= 1'000'010 && when.latest >= 1'100'010;
                    break;
                case trace::event_type::frequency:
                    if (e.is_status) {
                        checked[2] = when.tsc == 1'000'000 && when.earliest == 1'000'000;
                    } else {
                        checked[3] = when.earliest <= 1'000'010 && when.latest >= 1'100'010;
                    }
                    break;
                default: break;
            }
        }
        return checked[0] && checked[1] && checked[2] && checked[3];
    });
}

TEST_CASE("errata: BDM70, APL11, APL12, SKD010, SKD007, SKZ84, BDM64") {
    // BDM70, which every reader accepts: a PSB+ with FUP before TIP.PGE (PKT-140, GEN-176).
    EVENTS("ON 01 ON 310030 06", ON "disabled " ON "enabled@3000 branches:T");
    // APL11: TIP.PGD in place of the FUP after OVF.
    EVENTS_WITH(apl11, "ON 02f3 210040 310030", ON "overflow disabled>4000 enabled@3000");
    EVENTS_WITH(skd010, "ON 02f3 210040 310030", ON "overflow disabled>4000 enabled@3000");
    EVENTS("ON 02f3 210040 310030", ON "overflow damage!GEN227 disabled>4000 enabled@3000");
    // APL12: a FUP after OVF, then TIP.PGE.
    EVENTS_WITH(apl12, "ON 02f3 3d1010 310030", ON "overflow enabled@3000");
    EVENTS("ON 02f3 3d1010 310030", ON "overflow resumed@1010 damage!GEN100 enabled@3000");
    // SKD010: no FUP after OVF.
    EVENTS_WITH(skd010, "ON 02f3 06 2d0020 04", ON "overflow branches:T resumed@2000 branches:N");
    EVENTS("ON 02f3 06 2d0020 04", ON "overflow damage!GEN227 branches:T resumed@2000 branches:N");
    EVENTS("ON 02f3 2d0020 04", ON "overflow damage!GEN227 resumed@2000 branches:N");
    EVENTS("ON 02f3 210040 310030 06",
           ON "overflow damage!GEN227 disabled>4000 enabled@3000 branches:T");
    EVENTS_WITH(skd010, "ON 02f3 2d0020 04", ON "overflow resumed@2000 branches:N");
    // SKD007: OVF after the first byte of a CYC.
    EVENTS_WITH(skd007, "ON 0702f3 3d1010 06", ON "overflow resumed@1010 branches:T");
    EVENTS_WITH(skd007, "ON 0702 06 f3 04", ON "branches:T branches:N");
    EVENTS("ON 0702f3 3d1010 01", ON "async_disabled@1010");
    // SKZ84: a TMA with set reserved bits, and a byte that is no packet.
    EVENTS_WITH(skz84, "ON 1900100000000000 0273000001f0ff 06 04", ON "branches:N");
    EVENTS_WITH(skz84, "ON 1900100000000000 02730000000000 06 04", ON "branches:T branches:N");
    // BDM64: the target before an abort may be wrong.
    EVENTS_WITH(bdm64, "ON 9921 3d1010 2d0020 03 9922 3d2010 2d0030",
                ON "tsx@1010 indirect tsx@1020 async@1020>3000");
    EVENTS_WITH(bdm64, "ON 9921 3d1010 2d0020 03 02031800 9922 3d2010 2d0030",
                ON "tsx@1010 indirect cbr tsx@1020 async@1020>3000");
    EVENTS_WITH(bdm64, "ON 2d0020 03 2d0030 9921 3d1010",
                ON "indirect>2000 indirect>3000 tsx@1010");
    EVENTS("ON 9921 3d1010 2d0020 9922 3d2010 2d0030",
           ON "tsx@1010 indirect>2000 tsx@1020 async@1020>3000");
}
