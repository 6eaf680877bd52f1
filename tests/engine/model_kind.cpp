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
using packet::kind;
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

constexpr auto one_mtc = action::due_mtc::next;
constexpr auto same_mtc = action::due_mtc::reported;

TEST_CASE("time passes within an action: MTCs between FUP and TIP (GEN-006, GEN-203)") {
    // google-m7-cpu0 @2769: FUP, MTC, TIP.
    traced now{"CPL=0, MTCEn=1, MTCFreq=3"};
    now.set_clocks({.art = 0x100});
    action::moment const takes[] = {{kind::tip, 0, one_mtc}, {kind::tip, 0, one_mtc}};
    action::interrupt const e{.next = 0x1000, .to = 0x2000, .after = now.state().code};
    now.does(e, takes);
    CHECK(test::packets(now) == "FUP(1000), MTC(21), MTC(22), TIP(2000)");
    CHECK(now.state().clocks.art == 0x110);
    traced none{"CPL=0, MTCEn=1, MTCFreq=3"};
    none.does(e);
    CHECK(test::packets(none) == "FUP(1000), TIP(2000)");
    traced off_now{"CPL=0, MTCFreq=3"};
    off_now.does(e, takes);
    CHECK(test::packets(off_now) == "FUP(1000), TIP(2000)");
    CHECK(off_now.state().clocks.art == 0x10);
}

TEST_CASE("an MTC falls due in any place of a PSB+, and CYCs time its packets (GEN-171,172,218)") {
    struct row {
        action::moment takes[3];
        std::size_t count;
        std::uint64_t art;
        char const* packets;
    };
    row const rows[] = {
        {{}, 0, 0x100, "PSB, TSC, TMA, CBR, PSBEND"},
        {{{kind::tsc, 0, same_mtc}, {kind::tsc, 5}},
         2,
         0x100,
         "PSB, MTC(20), CYC(5), TSC, TMA, CBR, PSBEND"},
        {{{kind::tsc, 0, one_mtc}, {kind::tsc, 5}},
         2,
         0x108,
         "PSB, MTC(21), CYC(5), TSC, TMA, CBR, PSBEND"},
        // dr-hello-static-c @43b8: each CYC belongs to the packet after it.
        {{{kind::tsc, 3, one_mtc}, {kind::tsc, 5}},
         2,
         0x108,
         "PSB, CYC(3), MTC(21), CYC(5), TSC, TMA, CBR, PSBEND"},
        {{{kind::tsc, 5}, {kind::tma, 0, one_mtc}},
         2,
         0x108,
         "PSB, CYC(5), TSC, MTC(21), TMA, CBR, PSBEND"},
        {{{kind::tsc, 5}, {kind::cbr, 6, one_mtc}},
         2,
         0x108,
         "PSB, CYC(5), TSC, TMA, CYC(6), MTC(21), CBR, PSBEND"},
        {{{kind::psbend, 7, one_mtc}}, 1, 0x108, "PSB, TSC, TMA, CBR, CYC(7), MTC(21), PSBEND"},
        {{{kind::tsc, 0, one_mtc}, {kind::tma, 0, one_mtc}, {kind::psbend, 0, one_mtc}},
         3,
         0x118,
         "PSB, MTC(21), TSC, MTC(22), TMA, CBR, MTC(23), PSBEND"},
        // No packet waits for the time: it passes at the end.
        {{{kind::pip, 2, one_mtc}}, 1, 0x108, "PSB, TSC, TMA, CBR, PSBEND, CYC(2), MTC(21)"},
    };
    for (auto const& one : rows) {
        traced now{"OS=0, CPL=0, TSCEn=MTCEn=1, MTCFreq=3, CYCEn=1"};
        now.set_clocks({.art = 0x100});
        now.does(action::psb_due{}, {one.takes, one.count});
        CHECK(test::packets(now) == one.packets);
        CHECK(now.state().clocks.art == one.art);
    }
    // Before the status packets of code that is traced, in the order of the kind: case C of a
    // recorded trace has an MTC directly after the PSB.
    traced code{on(model_kind::skylake, "MTCEn=1, MTCFreq=3, CPL=0")};
    action::moment const first[] = {{kind::mode_tsx, 0, one_mtc}, {kind::pip, 0, one_mtc}};
    code.does(action::psb_due{}, first);
    CHECK(test::packets(code).find("PSB, MTC(1), PAD, MODE.TSX") == 0);
    CHECK(test::packets(code).find("MTC(2)") < test::packets(code).find("PIP"));
    // The moments are those of one action.
    traced now{"OS=0, CPL=0, MTCEn=TSCEn=1"};
    action::moment const once[] = {{kind::cbr, 0, one_mtc}};
    now.does(action::psb_due{}, once).does(action::psb_due{});
    CHECK(test::packets(now) == "PSB, TSC, TMA, MTC(1), CBR, PSBEND, PSB, TSC, TMA, CBR, PSBEND");
}

TEST_CASE("an MTC falls due among the timing packets of a wake and of a rise (GEN-181, GEN-205)") {
    // memgaze-ubench @23cbf: TSC, TMA, MTC, CBR.
    struct row {
        action::moment takes;
        char const* packets;
    };
    row const rows[] = {{{}, "TSC, TMA, CBR"},
                        {{kind::tsc, 0, same_mtc}, "MTC(20), TSC, TMA, CBR"},
                        {{kind::tsc, 0, one_mtc}, "MTC(21), TSC, TMA, CBR"},
                        {{kind::tma, 0, one_mtc}, "TSC, MTC(21), TMA, CBR"},
                        {{kind::cbr, 0, one_mtc}, "TSC, TMA, MTC(21), CBR"},
                        {{kind::psbend, 0, one_mtc}, "TSC, TMA, CBR, MTC(21)"}};
    for (auto const& one : rows) {
        for (bool const rises : {false, true}) {
            traced now{rises ? "OS=0, CPL=0, TSCEn=MTCEn=1, MTCFreq=3, TraceEn=0"
                             : "OS=0, CPL=0, TSCEn=MTCEn=1, MTCFreq=3"};
            now.set_clocks({.art = 0x100});
            using ctl = reg::ia32_rtit_ctl;
            if (rises) {
                // google-m7-piped-idx3: an MTC among the packets of a rise without PSB+.
                now.writes(status::address, uint64_t{5} << 32, 0x1000, 0x1002);
                auto const word = now.state().msrs.ctl.with(ctl::TraceEn{true}).raw;
                (void)now.wrmsr(
                    {.index = ctl::address, .value = word, .at = 0x1002, .next = 0x1004}, now.bytes,
                    {&one.takes, 1});
            } else {
                now.does(action::clock_stop{0x1000});
                now.does(action::clock_resume{}, {&one.takes, 1});
            }
            CHECK(test::packets(now) == one.packets);
        }
    }
}

TEST_CASE("MTC and CYC stand between FUP and TIP.PGD where TraceEn falls (GEN-183)") {
    // google-m7-piped-idx3 @4240: FUP, MTC, TIP.PGD of a WRMSR.
    action::moment const takes[] = {{kind::tip_pgd, 3, one_mtc}, {kind::tip_pgd, 4}};
    std::string const setup = "CPL=0, MTCEn=CYCEn=1, MTCFreq=3";
    std::string const expected = "FUP(1000), CYC(3), MTC(1), CYC(4), TIP.PGD()";
    using ctl = reg::ia32_rtit_ctl;
    traced off_now{setup};
    (void)off_now.wrmsr({.index = ctl::address, .value = 0, .at = 0x1000, .next = 0x1002},
                        off_now.bytes, takes);
    CHECK(test::packets(off_now) == expected);
    traced exits{setup + ", VMX=nonroot, conceal=exits"};
    action::ctl_load const clears{true, {}};
    exits.does(action::vm_exit{.from = 0x1000, .to = 0x2000, .loads = clears}, takes);
    CHECK(test::packets(exits) == expected);
    traced in_smm{setup};
    in_smm.does(action::smi{0x1000, 0x8000, in_smm.state().code}, takes);
    CHECK(test::packets(in_smm) == expected);
}

TEST_CASE("skylake aligns the CYC of a TNT, except in the cycle of the last TNT (GEN-010)") {
    // dr-hello-static-a @d47: a CYC of two bytes and its TNT, after seven bytes.
    struct row {
        unsigned cycles_before;  // before the branch that completes the seventh TNT
        unsigned cycles_after;
        bool jumps;  // a TIP stands between
        std::size_t size;
    };
    row const rows[] = {{0x21, 0, false, 9}, {0, 0x21, false, 10}, {0x20, 1, false, 10}};
    for (auto const& one : rows) {
        traced now{on(model_kind::skylake, "OS=0, CPL=3, CYCEn=1")};
        for (int i = 0; i < 41; ++i) { now.does(action::conditional{0x1000, false}); }
        CHECK(now.bytes.size() == 6);
        now.does(action::cycles{one.cycles_before}).does(action::conditional{0x1000, false});
        CHECK(now.bytes.size() == 7);
        now.does(action::cycles{one.cycles_after}).does(action::conditional{0x1000, false});
        CHECK(now.bytes.size() == one.size);
        CHECK(now.bytes.written()[7] == (one.size == 9 ? 0x0F : 0));
        // It holds for one CYC.
        for (int i = 0; i < 5; ++i) { now.does(action::conditional{0x1000, false}); }
        std::size_t const size = now.bytes.size();
        now.does(action::cycles{0x21}).does(action::conditional{0x1000, false});
        CHECK(now.bytes.size() % 8 >= 2);
        CHECK(now.bytes.size() > size);
    }
}

TEST_CASE("PADs align packets in memory: the output offset counts (GEN-010, REG-072)") {
    for (std::uint64_t const offset : {0U, 8U, 12U}) {
        using ctl = reg::ia32_rtit_ctl;
        auto state = traced{"OS=0, CPL=0"}.state();
        using pointers = reg::ia32_rtit_output_mask_ptrs;
        state.msrs.output.mask_ptrs = {offset << 32 | pointers::forced_1_mask()};
        engine::generator unit{state.caps, state.msrs, state.code, 0x1000,
                               engine::options_of(model_kind::skylake)};
        byte_array<256> room{};
        byte_buffer bytes{room.data(), room.size()};
        unit.on(action::psb_due{}, bytes);
        CHECK(unit.wrmsr({.index = ctl::address, .value = 0, .at = 0x1000, .next = 0x1002}, bytes)
                  .what == access::outcome::allowed);
        // PSB at a multiple of 8; CBR, PSBEND; then PADs to a multiple of 16.
        std::size_t const first = offset == 12 ? 4 : 0;
        CHECK(room[first] == 0x02);
        CHECK(room[first + 1] == 0x82);
        CHECK((bytes.written().size() + offset) % 16 == 0);
    }
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
