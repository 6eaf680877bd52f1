// SPDX-License-Identifier: BSL-1.0
// The expected bytes are those of recorded traces: their names and offsets stand beside them.
#include <ptspec/engine/model_kind.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/engine/unit_image.hpp>

#include <support/check_twice.hpp>
#include <support/csv.hpp>
#include <support/unit_memory.hpp>

#include <cstdio>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace ptspec;
using engine::model_kind;
using test::traced;
namespace action = engine::action;
using status = reg::ia32_rtit_status;

namespace {

/// A processor of this kind, with TraceEn 0.
auto off(model_kind of, std::string_view setup) -> trace_script::start {
    auto from = traced::started(setup);
    from.how = engine::options_of(of);
    from.msrs.ctl = from.msrs.ctl.with(reg::ia32_rtit_ctl::TraceEn{false});
    from.msrs.status = {};
    return from;
}
auto on(model_kind of, std::string_view setup) -> trace_script::start {
    auto from = traced::started(setup);
    from.how = engine::options_of(of);
    return from;
}
void enable(traced& now, std::uint64_t at, std::uint64_t next) {
    auto const ctl = now.msrs().ctl.with(reg::ia32_rtit_ctl::TraceEn{true});
    now.writes(reg::ia32_rtit_ctl::address, ctl.raw, at, next);
}
void set_tsc(traced& now, std::uint64_t tsc, std::uint64_t art = 0, std::uint64_t fc = 0,
             std::uint8_t ratio = 32) {
    now.set_clocks({.art = art, .tsc = tsc, .tsc_at_edge = tsc - fc, .core_to_bus = ratio});
}

/// The bytes so far in hexadecimal.
auto text_of(traced const& now) -> std::string {
    std::string all;
    byte_view const bytes = now.bytes.written();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        char text[3];
        std::snprintf(text, sizeof text, "%02x", bytes[i]);
        all += text;
    }
    return all;
}

std::string const psb = "02820282028202820282028202820282";

}  // namespace

TEST_CASE("broadwell: a PSB+ before TIP.PGE, and each packet at a multiple of 8 "
          "(GEN-009..011,120,162)") {
    // hase-cf-bdw @0: TraceEn rises in the kernel, the user code begins, and is interrupted.
    traced now{off(model_kind::broadwell, "OS=0, CPL=0, TSCEn=1")};
    set_tsc(now, 0x2712'AEEE'B722);
    enable(now, 0x1000, 0x1002);
    set_tsc(now, 0x2712'AEF0'2B1A);
    now.does(action::far_transfer{0x1002, 0x40'017D, {.cr3 = 0x1000, .cpl = 3}});
    now.does(action::interrupt{.next = 0x40'017D, .to = 0x2000, .after = {.cr3 = 0x1000}});
    CHECK(text_of(now) == "028202820282028202820282028202821922b7eeae1227000203200000000000"
                          "022300000000000002820282028202820282028202820282191a2bf0ae122700"
                          "02032000992099017d7d0140000000000223000000000000717d014000000000"
                          "7d7d01400000000001");
    // hase-cf-bdw @a8: 44 branches fill a TNT.
    traced full{on(model_kind::broadwell, "OS=0, CPL=3")};
    for (int i = 0; i < 44; ++i) { full.does(action::conditional{0x1000, i % 2 == 0}); }
    CHECK(full.packets() == text{"TNT(10101010101010101010101010101010101010101010)"});
}

TEST_CASE("skylake: MODE.Exec and FUP in the PSB+ of an enable, wide payloads aligned "
          "(GEN-010,011,171,176,180)") {
    // google-m7-cpu0 @0: WRMSR in the kernel.
    traced now{off(model_kind::skylake, "CPL=0, TSCEn=MTCEn=1, MTCFreq=3, CR3=3FD434000")};
    set_tsc(now, 0xBC'4CD2'CFE8, 0xB23C, 0x30, 29);
    enable(now, 0xFFFF'FFFF'B960'D300, 0xFFFF'FFFF'B960'D302);
    now.does(action::conditional{0xFFFF'FFFF'B960'D302, true});
    now.does(action::indirect_jump{0xFFFF'FFFF'B960'D794});
    now.does(action::indirect_jump{0xFFFF'FFFF'B974'20A2});
    CHECK(text_of(now) == "02820282028202820282028202820282000000992099017d00d360b9ffff0000"
                          "00000000000002430034d43f0000000000000000000019e8cfd24cbc00000000"
                          "00000000000002733cb200300000000002031d000223007102d360b9ffff0000"
                          "062d94d7000000004da22074b9");
}

TEST_CASE("skylake: a 6-byte IP where the context may have changed, and in each FUP (GEN-011)") {
    traced now{on(model_kind::skylake, "CPL=0, TSCEn=1")};
    now.does(action::indirect_jump{0x1010}).does(action::indirect_jump{0x1020});
    now.does(action::mov_cr3{0x1020, 0x1023, 0x5000}).does(action::indirect_jump{0x1030});
    now.does(action::indirect_jump{0x1040});
    now.does(action::interrupt{.next = 0x1040, .to = 0x1050, .after = now.state().code});
    now.does(action::clock_stop{0x1050}).does(action::clock_resume{});
    now.does(action::indirect_jump{0x1060}).does(action::ratio{20});
    now.does(action::indirect_jump{0x1070});
    std::string forms;
    trace::reader reader{now.bytes.written(), {.sync = false}};
    for (auto item = reader.next(); item; item = reader.next()) {
        packet::visit(
            [&](auto const& one) {
                using type = bare_t<decltype(one)>;
                if constexpr (requires { one.has_ip(); }) {
                    forms += std::to_string(underlying(one.template get<typename type::IPBytes>()));
                }
            },
            item.packet);
    }
    CHECK(forms == "31"
                   "3"
                   "1"
                   "31"
                   "3"
                   "1");
}

TEST_CASE("icelake: 8-byte IPs where skylake has 6, and VMCS resets the form (GEN-011,171)") {
    // xdc-icelake @0: VM entry into a guest.
    auto from = off(model_kind::icelake, "CPL=0, VMX=nonroot, conceal=all");
    from.hidden.non_root = false;
    from.code.vmx_non_root = true;
    traced now{from};
    now.does(action::vmptrld{0x1000, 0x3'6686'F000});
    set_tsc(now, 0, 0, 0, 9);
    enable(now, 0xFFFF'FFFF'C038'103C, 0xFFFF'FFFF'C038'103C);
    std::string const all = text_of(now);
    CHECK(all.find("dd3c1038c0ffffffff") != std::string::npos);
    CHECK(all.substr(all.size() - 18) == "d13c1038c0ffffffff");
}

TEST_CASE("icelake: TIP.PGE after the PSB+ of an enable has 8 bytes, also without VMCS "
          "(GEN-011,176)") {
    traced now{off(model_kind::icelake, "CPL=0, OS=1, TSCEn=1")};
    enable(now, 0xFFFF'FFFF'C038'103C, 0xFFFF'FFFF'C038'103E);
    std::string const all = text_of(now);
    CHECK(all.substr(all.size() - 18) == "d13e1038c0ffffffff");
    // Later PSB+ do not change the form.
    now.does(action::psb_due{}).does(action::indirect_jump{0xFFFF'FFFF'C038'2000});
    CHECK(text_of(now).substr(text_of(now).size() - 6) == "2d0020");
}

TEST_CASE("atom: no PADs, FUP before MODE.Exec, and the shortest forms (GEN-010,011,171)") {
    traced now{on(model_kind::atom, "OS=0, CPL=3")};
    set_tsc(now, 0, 0, 0, 32);
    now.does(action::indirect_jump{0x40'1000}).does(action::psb_due{});
    now.does(action::indirect_jump{0x40'2000});
    CHECK(text_of(now) == "6d001040000000" + psb + "020320007d001040000000990102232d0020");
}

TEST_CASE("where TraceEn falls PADs follow: up to 16 on skylake, 8 on broadwell (GEN-010)") {
    for (auto const& [of, alignment] :
         {std::pair{model_kind::skylake, 16U}, std::pair{model_kind::icelake, 16U},
          std::pair{model_kind::broadwell, 8U}}) {
        traced now{on(of, "CPL=0")};
        now.does(action::indirect_jump{0x1234});
        now.writes(reg::ia32_rtit_ctl::address,
                   now.msrs().ctl.with(reg::ia32_rtit_ctl::TraceEn{false}).raw, 0x1234, 0x1236);
        CHECK(now.bytes.size() % alignment == 0);
        CHECK(now.bytes.size() >= 16);
    }
}

TEST_CASE("the distance of PSBs is the period on average, in steps of 960 bytes (GEN-012)") {
    auto const distances = [](model_kind of) {
        auto from = on(of, "OS=0, CPL=3");
        engine::generator now{from.of, from.msrs, from.code, from.ip, from.how};
        struct {
            std::uint64_t size = 0;
            std::vector<std::uint64_t> psbs{};
            auto append(byte_view more) -> bool {
                for (std::size_t i = 0; i + 1 < more.size(); ++i) {
                    if (more.size() >= 16 && more[i] == 0x02 && more[i + 1] == 0x82) {
                        psbs.push_back(size + i);
                        break;
                    }
                }
                size += more.size();
                return true;
            }
        } out;
        for (std::uint64_t i = 0; i < 400'000; ++i) {
            now.on(action::indirect_jump{0x1000 + (i & 0xFFF)}, out);
        }
        return out.psbs;
    };
    auto const skylake = distances(model_kind::skylake);
    REQUIRE(skylake.size() > 300);
    auto const mean = [](std::vector<std::uint64_t> const& at) {
        return static_cast<double>(at.back() - at.front()) / static_cast<double>(at.size() - 1);
    };
    CHECK(mean(skylake) == doctest::Approx(2048).epsilon(0.005));
    for (std::size_t i = 1; i < skylake.size(); ++i) {
        auto const distance = skylake[i] - skylake[i - 1];
        bool const is_step = (distance >= 1888 && distance <= 1952) ||
                             (distance >= 2848 && distance <= 2912);
        CHECK(is_step);
    }
    CHECK(mean(distances(model_kind::atom)) == doctest::Approx(2048).epsilon(0.0005));
    CHECK(mean(distances(model_kind::manual)) > 2048);
}

TEST_CASE("a PSB+ follows every OVF on skylake (GEN-228)") {
    traced now{on(model_kind::skylake, "OS=0, CPL=3")};
    now.does(action::overflow{}).does(action::overflow_end{0x2000});
    CHECK(test::packets(now).find("PSB") != std::string::npos);
}

TEST_CASE("each preset has the kind of its generation (GEN-009)") {
    CHECK_TWICE([](auto value) {
        auto const kind_of = [&](uint32_t signature) {
            return engine::model_kind_of(value(reg::cpuid_01h_eax{signature}));
        };
        return kind_of(0x000306D4) == model_kind::broadwell &&
               kind_of(0x000406E3) == model_kind::skylake &&
               kind_of(0x000806EA) == model_kind::skylake &&
               kind_of(0x00060663) == model_kind::skylake &&
               kind_of(0x000706E5) == model_kind::icelake &&
               kind_of(0x000906A3) == model_kind::icelake &&
               kind_of(0x000706A8) == model_kind::atom && kind_of(0) == model_kind::skylake;
    });
    std::map<std::string, std::string> kinds = {
        {"P-BDW", "broadwell"}, {"P-SKL", "skylake"}, {"P-ATM", "atom"}};
    for (auto const& row : test::read_csv("tests/spec/presets.csv").rows) {
        kinds[row["name"]] = row["kind"];
    }
    for (auto const& one : cpu::preset::all) {
        std::string const name{one.name.data(), one.name.size()};
        INFO(name);
        auto const of = engine::model_kind_of(one.value);
        auto const wanted = kinds.find(name);
        bool const is_unknown = wanted == kinds.end();
        CHECK(is_unknown == (one.value.leaf_01_eax.raw == 0));
        auto const& info = engine::info_of(of);
        CHECK(info.which == of);
        CHECK(std::string{info.name.data(), info.name.size()} ==
              (is_unknown ? "skylake" : wanted->second));
    }
}

TEST_CASE("without options a processor with FRED has CFEs for INT n and SYSCALL (GEN-301)") {
    CHECK_TWICE([](auto value) {
        auto of = cpu::preset::find(value(text{"PantherLake-P"}))->value;
        bool const has = engine::options_of(of).swintr_events;
        of.leaf_07_1_eax = {value(0x4CCC'09D7U)};
        auto const without = engine::options_of(of);
        return has && !without.swintr_events &&
               without.pads == engine::options_of(model_kind::icelake).pads &&
               !engine::options_of(value(cpu::preset::arrow_lake_p)).swintr_events;
    });
}

TEST_CASE("without options a unit, a generator and a loaded unit are of the processor's kind") {
    auto const pads_of = [](engine::generator_state const& s) { return s.options.pads; };
    for (auto const& one : cpu::preset::all) {
        INFO(std::string_view{one.name.data(), one.name.size()});
        auto const& of = one.value;
        auto const pads = engine::options_of(engine::model_kind_of(of)).pads;
        engine::trace_unit<> const cold{of, {.cr3 = 0x1000}, 0x1000};
        engine::trace_unit<> const warm{of, access::msr_state{}, {.cr3 = 0x1000}, 0x1000};
        engine::generator const only_packets{of, access::msr_state{}, {.cr3 = 0x1000}, 0x1000};
        auto const loaded = engine::load(of, engine::store(cold).view());
        CHECK(pads_of(cold.state()) == pads);
        CHECK(pads_of(warm.state()) == pads);
        CHECK(pads_of(only_packets.state()) == pads);
        REQUIRE(loaded);
        CHECK(pads_of(loaded.unit.state()) == pads);
        test::machine_memory memory;
        simulate::no_tap tap;
        simulate::fake_processor const processor{of, memory, tap};
        CHECK(pads_of(processor.unit().state()) == pads);
        simulate::fake_processor const later{of, memory, tap, access::msr_state{}, {}, 0x1000};
        CHECK(pads_of(later.unit().state()) == pads);
        engine::trace_unit<> const chosen{
            of, {}, 0x1000, engine::options_of(model_kind::broadwell)};
        CHECK(pads_of(chosen.state()) == trace::pad_policy::broadwell);
    }
}

TEST_CASE("time passes within an event: MTCs between FUP and TIP (GEN-006, GEN-203)") {
    // google-m7-cpu0 @2769: FUP, MTC, TIP.
    traced now{"CPL=0, MTCEn=1, MTCFreq=3"};
    now.set_clocks({.art = 0x100});
    action::interrupt e{.next = 0x1000, .to = 0x2000, .after = now.state().code};
    e.takes.art = 0x110;
    now.does(e);
    CHECK(test::packets(now) == "FUP(1000), MTC(21), MTC(22), TIP(2000)");
    CHECK(now.state().clocks.art == 0x110);
    traced none{"CPL=0, MTCEn=1, MTCFreq=3"};
    none.does(action::interrupt{.next = 0x1000, .to = 0x2000, .after = none.state().code});
    CHECK(test::packets(none) == "FUP(1000), TIP(2000)");
    traced off_now{"CPL=0, MTCFreq=3"};
    off_now.does(e);
    CHECK(test::packets(off_now) == "FUP(1000), TIP(2000)");
}

TEST_CASE("an MTC falls due inside a PSB+, and CYCs time its packets (GEN-171,172,218)") {
    using place = action::mtc_place;
    auto const psb_with = [](place where, std::uint64_t until_tsc = 0,
                             std::uint64_t until_mtc = 0) {
        traced now{"OS=0, CPL=0, TSCEn=MTCEn=1, MTCFreq=3, CYCEn=1"};
        now.set_clocks({.art = 0x100});
        now.does(action::psb_due{where, until_tsc, until_mtc});
        bool const is_now = where == place::none || where == place::before_tsc;
        bool const advanced = now.state().clocks.art == (is_now ? 0x100U : 0x108U);
        return advanced ? test::packets(now) : std::string{"the clock is wrong"};
    };
    CHECK(psb_with(place::none) == "PSB, TSC, TMA, CBR, PSBEND");
    CHECK(psb_with(place::before_tsc, 5) == "PSB, MTC(20), CYC(5), TSC, TMA, CBR, PSBEND");
    CHECK(psb_with(place::before_older_tsc, 5) == "PSB, MTC(21), CYC(5), TSC, TMA, CBR, PSBEND");
    CHECK(psb_with(place::after_tsc, 5) == "PSB, CYC(5), TSC, MTC(21), TMA, CBR, PSBEND");
    CHECK(psb_with(place::after_tma, 5, 6) == "PSB, CYC(5), TSC, TMA, CYC(6), MTC(21), CBR, "
                                              "PSBEND");
    CHECK(psb_with(place::after_cbr, 0, 7) == "PSB, TSC, TMA, CBR, CYC(7), MTC(21), PSBEND");
    // The details are those of one PSB+.
    traced now{"OS=0, CPL=0, MTCEn=TSCEn=1"};
    now.does(action::psb_due{place::after_tma}).does(action::psb_due{});
    CHECK(test::packets(now) == "PSB, TSC, TMA, MTC(1), CBR, PSBEND, PSB, TSC, TMA, CBR, PSBEND");
}

TEST_CASE("an MTC falls due while the clocks resume (GEN-205)") {
    using place = action::mtc_place;
    // memgaze-ubench @23cbf: TSC, TMA, MTC, CBR.
    auto const wakes = [](auto const& resumes) {
        traced now{"OS=0, CPL=0, TSCEn=MTCEn=1, MTCFreq=3"};
        now.set_clocks({.art = 0x100});
        now.does(action::clock_stop{0x1000}).does(resumes);
        return test::packets(now);
    };
    CHECK(wakes(action::clock_resume{}) == "TSC, TMA, CBR");
    CHECK(wakes(action::clock_resume{place::before_tsc}) == "MTC(20), TSC, TMA, CBR");
    CHECK(wakes(action::clock_resume{place::before_older_tsc}) == "MTC(21), TSC, TMA, CBR");
    CHECK(wakes(action::clock_resume{place::after_tsc}) == "TSC, MTC(21), TMA, CBR");
    CHECK(wakes(action::clock_resume{place::after_tma}) == "TSC, TMA, MTC(21), CBR");
    CHECK(wakes(action::wake{.mtc = place::after_cbr}) == "TSC, TMA, CBR, MTC(21)");
}

TEST_CASE("PADs up to a multiple of 16 where the clocks stop, if the event says so (GEN-010)") {
    // hase-loopy-skl @1ae
    for (std::uint8_t const alignment : {std::uint8_t{0}, std::uint8_t{16}}) {
        traced now{on(model_kind::skylake, "OS=0, CPL=3, TSCEn=1")};
        now.does(action::conditional{0x1000, true});
        now.does(action::clock_stop{0x1000, alignment});
        CHECK(now.bytes.size() == alignment);
        now.does(action::clock_resume{});
        CHECK(now.bytes.written()[alignment == 0 ? 6 : 22] == 0x19);  // TSC at 6 modulo 8
    }
}

TEST_CASE("skylake aligns a CYC, except where a trace shows that it crosses (GEN-010)") {
    // dr-hello-static-a @d47: a CYC of two bytes and its TNT, after seven bytes.
    for (bool const crosses : {false, true}) {
        traced now{on(model_kind::skylake, "OS=0, CPL=3, CYCEn=1")};
        for (int i = 0; i < 42; ++i) { now.does(action::conditional{0x1000, false}); }
        CHECK(now.bytes.size() == 7);
        if (crosses) { now.does(action::unaligned_cyc{}); }
        now.does(action::cycles{0x21}).does(action::conditional{0x1000, false});
        CHECK(now.bytes.size() == (crosses ? 9 : 10));
        CHECK(now.bytes.written()[7] == (crosses ? 0x0F : 0));
        // It holds for one CYC.
        for (int i = 0; i < 5; ++i) { now.does(action::conditional{0x1000, false}); }
        CHECK(!now.state().writer.cyc_crosses);
    }
}

TEST_CASE("of many MTCs within an event the last eight are generated (GEN-203)") {
    traced now{"CPL=0, MTCEn=1, MTCFreq=3"};
    action::interrupt e{.next = 0x1000, .to = 0x2000, .after = now.state().code};
    e.takes.art = 0x800;
    now.does(e);
    CHECK(test::packets(now) == "FUP(1000), MTC(F9), MTC(FA), MTC(FB), MTC(FC), MTC(FD), MTC(FE), "
                                "MTC(FF), MTC(0), TIP(2000)");
}

TEST_CASE("the models of the kinds agree with their errata") {
    using cpu::quirk;
    for (auto const& row : cpu::quirk_table) {
        if (row.family != 6) { continue; }
        INFO("model ", static_cast<int>(row.model));
        using eax = reg::cpuid_01h_eax;
        auto const signature = eax{}.with(eax::Family{6}, eax::Model{wrapped{row.model & 0xFU}},
                                          eax::ExtModel{wrapped{uint64_t{row.model} >> 4}});
        auto const of = engine::model_kind_of(signature);
        CHECK((of == model_kind::broadwell) == row.has.has(quirk::branch_en_always_on));
        bool const is_server_or_cannon_lake = row.model == 0x55 || row.model == 0x66;
        CHECK((of == model_kind::skylake) ==
              (row.has.has(quirk::skl168) || is_server_or_cannon_lake));
        bool const is_hybrid = row.has.has(quirk::per_core_type_caps);
        CHECK((of == model_kind::atom) == (row.has.has(quirk::apl11) && !is_hybrid));
    }
}

TEST_CASE("broadwell: an enable with PacketEn = 1 gives two PSB+, and the second has FUP (GEN-162, "
          "GEN-180)") {
    // The first takes 32 bytes without TSC, as in a recorded trace of Broadwell-EP.
    traced now{off(model_kind::broadwell, "CPL=0, OS=1")};
    set_tsc(now, 0);
    enable(now, 0x40'1000, 0x40'1002);
    std::string all = test::packets(now);
    for (std::size_t at = 0; (at = all.find("PAD, ")) != std::string::npos;) { all.erase(at, 5); }
    CHECK(all ==
          "PSB, CBR, PIP(1000,NR=0), MODE.TSX(InTX=0,TXAbort=0), PSBEND, PSB, CBR, PIP(1000,NR=0), "
          "MODE.TSX(InTX=0,TXAbort=0), MODE.Exec(64), FUP(401002), PSBEND, TIP.PGE(401002)");
}

TEST_CASE("skylake: a CYC and a TIP.PGD without IP are aligned separately (GEN-010)") {
    traced now{on(model_kind::skylake, "OS=0, CPL=3, CYCEn=1")};
    for (int i = 0; i < 42; ++i) { now.does(action::conditional{0x1000, false}); }
    CHECK(now.bytes.size() == 7);
    now.does(action::cycles{3});
    now.does(action::far_transfer{0x1000, 0x2000, {.cr3 = 0x1000}});
    CHECK(text_of(now).substr(14) == "1b01");  // CYC at 7, TIP.PGD at 8
}
