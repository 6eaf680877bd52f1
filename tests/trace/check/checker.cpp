// SPDX-License-Identifier: BSL-1.0
// Each made violation stands beside a twin without it.
#include <ptspec/trace/check/checker.hpp>

#include <support/check_twice.hpp>
#include <support/made_stream.hpp>
#include <support/streams.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace ptspec;
using engine::model_kind;
using test::findings;
using test::findings_in;
using test::made_stream;

namespace {

/// True if the first stream violates this rule at its mark and no other, and the twin none.
constexpr auto violates(made_stream const& bad, rule broken, made_stream const& twin,
                        trace::check_options const& rules) -> bool {
    auto const got = findings_in(bad.view(), rules);
    return got.count == 1 && got.last.broken == broken && got.last.offset == bad.mark &&
           findings_in(twin.view(), rules).count == 0;
}

constexpr auto with_clock(uint8_t mtc_freq, uint32_t period) -> trace::check_options {
    trace::check_options rules{};
    rules.mtc_freq = mtc_freq;
    rules.tsc_per_crystal = period;
    return rules;
}

auto all_findings(byte_view stream, trace::check_options const& rules)
    -> std::vector<trace::violation> {
    std::vector<trace::violation> all;
    trace::check(stream, rules, [&](trace::violation const& one) { all.push_back(one); });
    return all;
}

}  // namespace

// As a macro, so that each row is a constant expression of its own.
#define VIOLATES(of, broken, bad, twin)                                                            \
    CHECK_TWICE([](auto value) {                                                                   \
        return violates(value(made_stream{bad, model_kind::of}), rule::broken,                     \
                        value(made_stream{twin, model_kind::of}),                                  \
                        engine::check_options_of(model_kind::of));                                 \
    })
#define VIOLATES_WITH(rules, broken, bad, twin)                                                    \
    CHECK_TWICE([](auto value) {                                                                   \
        return violates(value(made_stream{bad, model_kind::manual}), rule::broken,                 \
                        value(made_stream{twin, model_kind::manual}), rules);                      \
    })

TEST_CASE("a stream without a violation has no finding") {
    CHECK_TWICE([](auto value) {
        bool none = true;
        for (auto const& one : engine::model_kinds) {
            auto const rules = engine::check_options_of(one.which);
            none = none &&
                   findings_in(value(made_stream{"ON", one.which}).view(), rules).count == 0;
            none = none &&
                   findings_in(value(made_stream{"OFF", one.which}).view(), rules).count == 0;
        }
        return none && findings_in({}, {}).count == 0;
    });
}

TEST_CASE("damage is reported with its rule, and a trace may end within a packet (PKT-255)") {
    VIOLATES(manual, PKT_015, "ON !05 ON", "ON");
    VIOLATES(manual, PKT_052, "ON !ad", "ON 6d00");
    VIOLATES(manual, PKT_037, "ON !02a3010000000000", "ON 02a3");
    // The end within a packet is a note.
    for (char const* const text : {"ON !6d00", "ON !02a3", "ON !02"}) {
        made_stream const cut{text, model_kind::manual};
        auto const found = all_findings(cut.view(), engine::check_options_of(model_kind::manual));
        REQUIRE(found.size() == 1);
        CHECK(found[0] == trace::violation{cut.mark, rule::PKT_255, packet::kind::none, true});
    }
}

TEST_CASE("a PSB+ repeats the state of the packets before it (GEN-242,250,344)") {
    // The mode, after a PSB+, a branch and a TIP.PGE.
    VIOLATES(manual, GEN_344, "ON 06 PSB CBR !9902 7d001000000000 0223", "ON 06 ON");
    VIOLATES(manual, GEN_344, "ON 9902 2d0020 PSB CBR !99017d001000000000 0223",
             "ON 9902 2d0020 PSB CBR 99027d001000000000 0223");
    VIOLATES(manual, GEN_344, "ON 310030 06 PSB CBR !99027d001000000000 0223", "ON 310030 06 ON");
    VIOLATES(manual, GEN_344, "OFF 9902 71003000000000 06 PSB CBR !99017d001000000000 0223",
             "OFF 9902 71003000000000 06 PSB CBR 99027d001000000000 0223");
    // InTX.
    VIOLATES(manual, GEN_344, "ON 9921 3d0510 PSB CBR !9920 99017d001000000000 0223",
             "ON 9921 3d0510 PSB CBR 9921 99017d001000000000 0223");
    VIOLATES(manual, GEN_344,
             "ON 9921 3d0510 9922 3d0510 2d0020 PSB CBR !9921 99017d001000000000 "
             "0223",
             "ON 9921 3d0510 9922 3d0510 2d0020 PSB CBR 9920 99017d001000000000 0223");
    // Not after OVF, while and after PacketEn was 0, after damage, and at RFLAGS.IF.
    auto const count = [](char const* text) {
        made_stream const stream{text, model_kind::manual};
        return findings_in(stream.view(), engine::check_options_of(model_kind::manual));
    };
    for (char const* const before : {"ON 06 02f3 3d0510", "ON 01 71003000000000", "ON 01", "OFF",
                                     "ON 01 9901 71003000000000 01 71003000000000", "ON 2d0020 01",
                                     "ON 210040 0283", "ON 3d0510 01 9920"}) {
        std::string const text = std::string{before} + " PSB CBR 9902 7d001000000000 0223";
        CAPTURE(text);
        CHECK(count(text.c_str()).count == 0);
    }
    CHECK(count("ON 06 05 PSB CBR 9902 7d001000000000 0223").count == 1);  // the damage
    CHECK(count("ON 9905 3d0510 ON").count == 0);
    // CR3 is a note, unless an SMI, a VM exit or entry comes between.
    constexpr auto psb_with_cr3 = [](char const* cr3) {
        return std::string{" PSB CBR 0243"} + cr3 + "0000000000 99017d001000000000 0223";
    };
    auto const notes = [&](std::string const& text) {
        CAPTURE(text);
        auto const found = count(text.c_str());
        CHECK(found.count == 0);
        return found.notes;
    };
    CHECK(notes("ON 0243001000000000" + psb_with_cr3("0020")) == 1);
    CHECK(notes("ON 0243001000000000" + psb_with_cr3("0010")) == 0);
    CHECK(notes("ON 0243001000000000" + psb_with_cr3("0120")) == 0);  // NR
    CHECK(notes("ON 0243001000000000 02138800 3d0510 2d0020" + psb_with_cr3("0020")) == 0);
    CHECK(notes("ON 0243001000000000 02138300 3d0510" + psb_with_cr3("0020")) == 0);
    CHECK(notes("ON 0243001000000000 02138100 3d0510" + psb_with_cr3("0020")) == 1);
    CHECK(notes("ON 0243001000000000 02c80500000000" + psb_with_cr3("0020")) == 0);
}

TEST_CASE("the contents of a PSB+ (PKT-134,142, GEN-125,170,172)") {
    VIOLATES(manual, PKT_134, "OFF !0223", "OFF");
    VIOLATES(manual, PKT_142, "PSB CBR !PSB CBR 0223", "PSB CBR 0223 PSB CBR 0223");
    VIOLATES(manual, GEN_125, "PSB CBR !06 OFF", "PSB CBR 5906 0b00 0223");
    VIOLATES(manual, GEN_172, "PSB CBR !2d0020 ON", "PSB CBR 02c3880000000000000000 0223");
    VIOLATES(manual, GEN_172, "PSB CBR !0283 OFF", "PSB CBR 02c80000000000 0223");
    VIOLATES(manual, GEN_170, "!PSB 0223", "PSB CBR 0223");
    VIOLATES(manual, GEN_170, "PSB CBR !CBR 0223", "PSB CBR 0223 CBR");
    VIOLATES(manual, GEN_170, "!PSB CBR 7d001000000000 0223", "ON");
    VIOLATES(manual, GEN_170, "!PSB CBR 9901 0223", "ON");
    VIOLATES(manual, GEN_170, "ON 06 !OFF", "ON 06 ON");
    VIOLATES(atom, GEN_170, "!PSB CBR 9920 0223", "PSB CBR 0223");
    VIOLATES(skylake, GEN_170, "!PSB 0000000000 9901 7d001000000000 0000 CBR 0223", "ON");
    VIOLATES(manual, GEN_202, "PSB !02030000 0223", "PSB CBR 0223");
}

TEST_CASE("the order of a PSB+ is that of the kind (GEN-171, PKT-135)") {
    VIOLATES(atom, GEN_171, "PSB CBR !1900000000000000 0223", "PSB 1900000000000000 CBR 0223");
    VIOLATES(atom, GEN_171, "PSB CBR 9901 !7d001000000000 0223", "ON");
    VIOLATES(skylake, GEN_171, "PSB CBR 0000 !0243000000000000 0000 0223",
             "PSB 000000000000 0243000000000000 0000 CBR 0223");
    VIOLATES(broadwell, GEN_171, "PSB 9920 !CBR 0000 0223", "PSB CBR 9920 0000 0223");
    // Without a kind any order is right, except that TMA follows its TSC.
    VIOLATES(manual, PKT_135, "PSB 1900000000000000 CBR !02730000000000 0223",
             "PSB CBR 1900000000000000 5900 02730000000000 0223");
    VIOLATES(manual, PKT_135, "OFF !02730000000000", "OFF 1900000000000000 02730000000000");
    VIOLATES(manual, PKT_135, "OFF 1900000000000000 02730000000000 !02730000000000",
             "OFF 1900000000000000 0b 02730000000000");
}

TEST_CASE("the order of a PSB+ is that of a writer (GEN-171)") {
    using trace::psb_order;
    for (auto const order : {psb_order::manual, psb_order::skylake, psb_order::atom}) {
        trace::psb_status all{};
        all.tsc = packet::tsc{};
        all.tma = packet::tma{};
        all.cbr = packet::cbr{};
        all.pip = packet::pip{};
        all.vmcs = packet::vmcs{};
        all.mode_tsx = packet::mode_tsx{};
        all.mode_exec = packet::mode_exec{};
        all.fup = 0x1000;
        trace::writer_options how{};
        how.in_psb = order;
        trace::packet_batch<> made{{}, how};
        made.add(all);
        made.finish();
        trace::reader items{made.bytes()};
        unsigned rank = 0;
        for (auto item = items.next(); item; item = items.next()) {
            auto const next = trace::rank_in_psb(item.packet.kind(), order);
            bool const is_status = item.packet.kind() != packet::kind::psb &&
                                   item.packet.kind() != packet::kind::psbend;
            CHECK((next != 0) == is_status);
            if (is_status) { CHECK(next == ++rank); }
        }
        CHECK(rank == 8);
    }
}

TEST_CASE("every FUP is bound, and every packet that needs a FUP has one (PKT-077,078,270..273)") {
    VIOLATES(manual, PKT_077, "ON !3d0510 06", "ON 3d0510 2d0020 06");
    VIOLATES(manual, PKT_077, "ON !3d0510 3d0610 2d0020", "ON 3d0510 0243000000000000 2d0020");
    VIOLATES(manual, PKT_078, "ON 029200000000 !1d", "ON 029200000000 3d0510");
    VIOLATES(manual, PKT_273, "ON !029200000000 06", "ON 029200000000 3d0510 06");
    VIOLATES(manual, PKT_273, "ON !02e2 06", "ON 02e2 02220000 3d0510 06");
    VIOLATES(manual, PKT_273, "ON 026384 !02b3 06", "ON 026384 02b3 3d0510 06");
    VIOLATES(manual, PKT_273, "ON !02138200 06", "ON 02138200 3d0510 06");
    VIOLATES(manual, PKT_273, "ON !d98001 06", "ON d98001 3d0510 06");
    VIOLATES(manual, PKT_273, "ON !9921 06", "ON 9921 3d0510 06");
    VIOLATES(manual, PKT_273, "ON !029200000000 021200000000 06", "ON 02e2 9921 3d0510 06");
    VIOLATES(manual, PKT_077, "ON 9922 !3d0510 06", "ON 9922 3d0510 2d0020 06");
    VIOLATES(manual, PKT_077, "ON 9921 3d0510 !3d0510 06",
             "ON 9922 3d0510 01 9901 "
             "71001000000000 9921 3d0510 06");
    // Packets that share a FUP.
    VIOLATES(manual, PKT_273, "ON 02138200 !02138200 06",
             "ON 02138200 0253000000000000000000 02138200 3d0510 06");
    VIOLATES(manual, PKT_273, "ON !02e2 026384 0233", "ON 02e2 02c200000000000000000000 3d0510 06");
    VIOLATES(manual, GEN_342, "OFF !7d001000000000 2d0020", "OFF 029200000000 7d001000000000");
}

TEST_CASE("no PSB splits an event (GEN-006)") {
    VIOLATES(manual, PKT_077, "ON !3d0510 ON 06", "ON 3d0510 2d0020");  // of no INIT: GEN-290
    VIOLATES(manual, GEN_006, "ON 029200000000 !ON", "ON 029200000000 3d0510 ON");
    VIOLATES(manual, GEN_006, "ON 9901 !ON", "ON 9901 2d0020 ON");
    VIOLATES(manual, GEN_006, "ON 02220000 !ON", "ON 02220000 02a20000000000 ON");
    VIOLATES(manual, GEN_006, "ON 026384 !ON", "ON 026384 0233 ON");
    VIOLATES(manual, GEN_006, "ON 0253000000000000000000 !ON",
             "ON 0253000000000000000000 02130200 ON");
}

TEST_CASE("PacketEn (GEN-020,090,100,101,105,176,300)") {
    VIOLATES(manual, GEN_020, "ON 01 0283 !9901 71001000000000",
             "ON 01 0283 CBR 9901 "
             "71001000000000");
    VIOLATES(manual, GEN_090, "ON !0283", "ON 01 0283");
    VIOLATES(manual, GEN_100, "ON 06 !71002000000000", "ON 06 01 71002000000000");
    VIOLATES(manual, GEN_101, "OFF !01", "ON 01");
    VIOLATES(manual, GEN_105, "OFF !06", "ON 06");
    VIOLATES(manual, GEN_105, "ON 01 !2d0020", "ON 01 310020 2d0020");
    VIOLATES(manual, GEN_105, "ON 01 CBR !02a3ffffffffff7f", "ON 02a3ffffffffff7f");
    VIOLATES(manual, GEN_176, "ON 01 !ON 06", "ON 01 ON 71001000000000 06");
    VIOLATES(manual, GEN_300, "ON 01 !021200000000", "OFF 021200000000");
    // A CBR may belong to tracing that begins again, with BranchEn 0.
    VIOLATES(manual, GEN_300, "ON 01 5901 !021200000000", "ON 01 CBR 021200000000");
}

TEST_CASE("MODE.Exec (GEN-235..237,245)") {
    VIOLATES(manual, GEN_235, "ON !9901 06", "ON 9901 2d0020 06");
    VIOLATES(manual, GEN_235, "ON 3d0510 !9901 9901 2d0020", "ON 3d0510 9901 5901 2d0020");
    VIOLATES(manual, GEN_236, "OFF !71001000000000", "OFF 9901 71001000000000");
    VIOLATES(manual, GEN_237, "ON 3d0510 !9901 01", "ON 3d0510 01");
    VIOLATES(manual, GEN_245, "ON !9901 0243000000000000 2d0020",
             "ON 0243000000000000 9901 2d0020");
    // With event trace, a change of IF.
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{"ON 9905 3d0510 06", model_kind::manual});
        return findings_in(stream.view(), {}).count == 0;
    });
}

TEST_CASE("TNT (GEN-120,122)") {
    VIOLATES(manual, GEN_122, "ON !06 06", "ON 80 06");
    VIOLATES(manual, GEN_122, "ON !06 0b 06", "ON 06 5901 06");
    VIOLATES(atom, GEN_120, "ON !02a3ffffffffff7f", "ON fe");
    VIOLATES(broadwell, GEN_120, "ON 000000000000 !02a3ffffffffff7f",
             "ON 000000000000 02a3ffffffffff1f 02a3ffffffffff0f");
    VIOLATES(broadwell, GEN_120, "ON 000000000000 !02a3030000000000", "ON 000000000000 06");
    VIOLATES(broadwell, GEN_122, "ON 000000000000 !02a3ffffffffff0f 06",
             "ON 000000000000 02a3ffffffffff1f 06");
}

TEST_CASE("IPs (PKT-070,076, GEN-011,174)") {
    VIOLATES(manual, PKT_070, "ON !0d", "ON 2d0020");
    VIOLATES(manual, PKT_076, "OFF 9901 !11", "OFF 9901 310010");
    VIOLATES(atom, GEN_174, "OFF 9901 !310010", "OFF 9901 71001000000000");
    VIOLATES(atom, GEN_011, "ON !6d002000000000", "ON 2d0020");
    VIOLATES(atom, GEN_011, "ON !4d00200000", "ON 4d00200100");
    // skylake: FUP always has 6 bytes; others where the context has no IP.
    VIOLATES(skylake, GEN_011, "ON 0000 !3d0510 2d0020", "ON 00 7d051000000000 0000 2d0020");
    VIOLATES(skylake, GEN_011, "ON 0243000000000000 0000 !2d0020",
             "ON 0243000000000000 0000 00000000000000 6d002000000000");
    VIOLATES(icelake, GEN_011, "ON 00 !7d002000000000", "ON 00 dd0020000000000000");
    // icelake: the PIP of a PSB+ does not reset the form.
    VIOLATES(icelake, GEN_011,
             "PSB 000000 9920 9901 dd0010000000000000 000000000000 0243000000000000 0000 CBR 0223 "
             "00 !cd0020000000000000",
             "PSB 000000 9920 9901 dd0010000000000000 000000000000 0243000000000000 0000 CBR 0223 "
             "0000 2d0020");
    VIOLATES(broadwell, GEN_011, "ON 000000000000 !2d0020", "ON 000000000000 6d002000000000");
}

TEST_CASE("CYC (PKT-109, GEN-211,214,217)") {
    VIOLATES(manual, GEN_211, "ON !03 2d0020", "ON 0b 2d0020");
    VIOLATES(atom, PKT_109, "ON !0f00 2d0020", "ON 0f02 2d0020");
    VIOLATES(atom, GEN_214, "ON !0b 3d0510 2d0020", "ON 3d0510 0b 2d0020");
    VIOLATES(atom, GEN_214, "ON !0b CBR", "ON CBR 0b 5901");
    VIOLATES(atom, GEN_217, "ON !0b 0b 2d0020", "ON 0b 2d0020 0b 06");
    // Without a kind, a CYC may stand alone before the counter wraps.
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{"ON 0b 0f00 3d0510 0b 2d0020", model_kind::manual});
        return findings_in(stream.view(), {}).count == 0;
    });
}

TEST_CASE("the clocks of a stream (PKT-103,104,278, GEN-203,206)") {
    VIOLATES(manual, PKT_278, "OFF 1901000000000000 !1900000000000000",
             "OFF 1900000000000000 1901000000000000");
    VIOLATES(manual, PKT_104, "OFF 1900000000000000 !02730000010000",
             "OFF 1900000000000000 02730000000000");
    VIOLATES(manual, GEN_203, "OFF 5901 !5901", "OFF 5901 5902");
    VIOLATES(manual, GEN_203, "ON 1900000000000000 5901 !5905 06",
             "ON 1900000000000000 5901 5905 1901000000000000 06");
    VIOLATES_WITH(with_clock(3, 0), GEN_206, "OFF 1900000000000000 02731000000000 !5905",
                  "OFF 1900000000000000 02731000000000 5904");
    VIOLATES_WITH(with_clock(3, 50), PKT_103, "OFF 1900010000000000 !02731000003200",
                  "OFF 1900010000000000 02731000003100");
}

TEST_CASE("overflow (GEN-227)") {
    VIOLATES(manual, GEN_227, "ON 02f3 !06", "ON 02f3 7d001000000000 06");
    VIOLATES(manual, GEN_227, "ON 02f3 !2d0020", "ON 02f3 9901 71001000000000 2d0020");
    VIOLATES(manual, GEN_227, "ON 02f3 !01", "ON 02f3 OFF");
}

TEST_CASE("event data and blocks (GEN-302,320,321)") {
    VIOLATES(manual, GEN_302, "ON !0253000000000000000000 06",
             "ON 0253000000000000000000 02130200 06");
    VIOLATES(manual, GEN_320, "ON !0233", "ON 026384 0233");
    VIOLATES(manual, GEN_321, "ON 026384 !06", "ON 026384 5901 0233 06");
}

TEST_CASE("PADs (GEN-010)") {
    VIOLATES(atom, GEN_010, "ON 00 !06", "ON 06");
    VIOLATES(skylake, GEN_010, "ON !2d0020", "ON 0000 2d0020");
    VIOLATES(icelake, GEN_010, "ON !2d0020", "ON 0000 2d0020");
    VIOLATES(broadwell, GEN_010, "ON !06", "ON 000000000000 06");
    VIOLATES(skylake, GEN_010, "ON 00000000 !PSB", "ON 0000 ON");
}

TEST_CASE("after damage, OVF, and memory that was not written there is no further finding") {
    // The PSB+ is incomplete, and the TNT, which was on, has no TIP.PGE.
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{"PSB CBR !05 06 06 ON 06", model_kind::manual});
        auto const got = findings_in(stream.view(), {});
        return got == findings{1, {stream.mark, rule::PKT_015, packet::kind::none}};
    });
    // The event, the FUP and the clocks may be lost.
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{
            "ON 1905000000000000 5901 3d0510 02f3 5977 71001000000000 5979 06", model_kind::atom});
        return findings_in(stream.view(), engine::check_options_of(model_kind::atom)).count == 0;
    });
    // The block and the clocks.
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{
            "OFF 1905000000000000 026384 !05 OFF 1901000000000000", model_kind::manual});
        return findings_in(stream.view(), {}).count == 1;
    });
    // In a PSB+.
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{"PSB 02f3 7d001000000000 06", model_kind::manual});
        return findings_in(stream.view(), {}).count == 0;
    });
}

TEST_CASE("a run of PADs is memory that was not written") {
    std::vector<std::uint8_t> bytes;
    auto const put = [&](std::string_view text) {
        made_stream const more{text, model_kind::atom};
        bytes.insert(bytes.end(), more.bytes, more.bytes + more.size);
    };
    put("ON 3d0510");
    bytes.resize(bytes.size() + 65);
    put("06 06 0223 2d0020 ON 06");
    auto const count = [&] {
        byte_view const all{bytes.data(), bytes.size()};
        return findings_in(all, engine::check_options_of(model_kind::atom)).count;
    };
    CHECK(count() == 0);
    bytes.erase(bytes.begin() + 40);  // 64 PADs
    CHECK(count() > 2);
    // Two runs.
    bytes.clear();
    put("ON 3d0510");
    bytes.resize(bytes.size() + 40);
    put("5901");
    bytes.resize(bytes.size() + 40);
    put("06");
    CHECK(count() > 0);
}

TEST_CASE("packets are checked from the first PSB on") {
    made_stream const stream{"06 06 0d 9901 01 05 ON 06", model_kind::manual};
    CHECK(findings_in(stream.view(), {}).count == 0);
    unsigned count = 0;
    trace::check(stream.view(), {},
                 [&](trace::violation const& one) { count += one.offset == 6 ? 1 : 2; },
                 {.sync = false});
    CHECK(count == 1);  // only the damage
}

TEST_CASE("items one by one, and a trace in chunks, give the same findings") {
    for (std::uint32_t seed = 0; seed < 30; ++seed) {
        auto const bytes = test::random_stream(seed, 2000);
        byte_view const stream{bytes.data(), bytes.size()};
        for (auto const& one : engine::model_kinds) {
            auto const rules = engine::check_options_of(one.which);
            auto const whole = all_findings(stream, rules);
            std::vector<trace::violation> got;
            trace::checker checks{rules, [&](trace::violation const& v) { got.push_back(v); }};
            trace::reader items{stream};
            for (auto item = items.next(); item; item = items.next()) { checks(item); }
            CHECK(got == whole);

            got.clear();
            trace::checker again{rules, [&](trace::violation const& v) { got.push_back(v); }};
            trace::reader chunks{trace::reader_options{}};
            for (size_t at = 0; at < bytes.size(); at += 7) {
                (void)chunks.feed(stream.from(at).first(7));
                (void)chunks.for_each(again);
            }
            chunks.finish();
            (void)chunks.for_each(again);
            CHECK(got == whole);
        }
    }
}

TEST_CASE("the number of findings is bounded, and the state has a fixed size") {
    auto const ignore = [](trace::violation const&) {};
    static_assert(sizeof(trace::checker<decltype(ignore)>) <= 1088);
    for (std::uint32_t seed = 100; seed < 140; ++seed) {
        auto bytes = test::random_stream(seed, 5000);
        made_stream const begin{"ON", model_kind::manual};
        bytes.insert(bytes.begin(), begin.bytes, begin.bytes + begin.size);
        for (auto const& one : engine::model_kinds) {
            auto const found = all_findings({bytes.data(), bytes.size()},
                                            engine::check_options_of(one.which));
            CHECK(found.size() <= 8 * bytes.size());
            bool right = true;
            for (auto const& each : found) {
                right = right && each.offset < bytes.size() && each.broken != rule::none;
            }
            CHECK(right);
        }
    }
    // Packets whose place the next one decides, without end.
    for (std::uint8_t const last : {std::uint8_t{0x01}, std::uint8_t{0x20}}) {
        std::vector<std::uint8_t> bytes;
        made_stream const begin{"OFF", model_kind::skylake};
        bytes.insert(bytes.end(), begin.bytes, begin.bytes + begin.size);
        for (unsigned i = 0; i < 1000; ++i) {
            bytes.push_back(0x0B);
            bytes.push_back(0x99);
            bytes.push_back(last);
        }
        CHECK(all_findings({bytes.data(), bytes.size()},
                           engine::check_options_of(model_kind::skylake))
                  .size() < bytes.size());
    }
}
