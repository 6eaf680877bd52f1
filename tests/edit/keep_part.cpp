// SPDX-License-Identifier: BSL-1.0
#include <ptspec/edit/keep_part.hpp>

#include <ptspec/vmx/world_switch.hpp>
#include <ptspec/simulate/ports.hpp>

#include <support/check_twice.hpp>
#include <support/facts.hpp>
#include <support/how_many.hpp>
#include <support/made_trace.hpp>
#include <support/streams.hpp>
#include <support/traced.hpp>
#include <support/unit_memory.hpp>
#include <support/vm_runs.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

using namespace ptspec;
using namespace std::string_view_literals;
using test::made_trace;
using edit::side;
using edit::traced_in;

namespace {

/// The packets of a trace in the notation of the catalogue, without PADs.
constexpr auto listed(byte_view bytes) -> test::packets_text {
    test::packets_text out;
    trace_script::packet_printer<test::packets_text> printer{out, false};
    trace::reader from{bytes, {.sync = false}};
    bool first = true;
    for (auto it = from.next(); it; it = from.next()) {
        if (it.what == trace::item_type::packet && it.packet.is<packet::pad>()) { continue; }
        if (!first) { out(text{", "}); }
        first = false;
        if (it.what != trace::item_type::packet) {
            out(text{"DAMAGE"});
            continue;
        }
        packet::visit([&](auto const& which) { printer(which, it.place()); }, it.packet);
    }
    return out;
}

constexpr auto is(test::packets_text const& got, std::string_view wanted) -> bool {
    return std::string_view{got.characters, got.length} == wanted;
}

/// What is kept of a trace.
struct part {
    made_trace bytes;
    edit::kept_part got{};

    constexpr part(std::string_view text, edit::part_options const& how) : bytes{text} {
        byte_window const all[] = {{bytes.bytes, bytes.size}};
        got = edit::keep_part(all, how);
    }
    [[nodiscard]] constexpr auto is(std::string_view wanted) const -> bool {
        return ::is(listed(bytes.view()), wanted);
    }
};

/// A trace, and the part of it that is kept.
constexpr auto keeps(std::string_view text, edit::part_options const& how, std::string_view wanted)
    -> bool {
    part const one{text, how};
    return one.got && one.is(wanted);
}

/// The same for a guest's part that begins with HOST and ENTRY; `wanted` are the packets after it.
constexpr auto guest_sees(std::string_view text, std::string_view wanted,
                          edit::part_options const& how = {}) -> bool {
    constexpr std::string_view begin =
        "PSB, CBR, PSBEND, PIP(1000,NR=0), MODE.Exec(64), TIP.PGE(401000)";
    part const one{text, how};
    auto const got = listed(one.bytes.view());
    std::string_view const all{got.characters, got.length};
    return one.got && all.starts_with(begin) &&
           all.substr(begin.size() + (wanted.empty() ? 0 : 2)) == wanted;
}

/// The bytes of the packets of a trace, without PADs.
constexpr auto bytes_of_packets(byte_view bytes) -> std::uint64_t {
    std::uint64_t count = 0;
    trace::reader from{bytes, {.sync = false}};
    for (auto it = from.next(); it; it = from.next()) {
        count += it.packet.is<packet::pad>() ? 0 : it.length;
    }
    return count;
}

constexpr edit::part_options seen{.hides_exits = false};
constexpr edit::part_options host{.keep = side::host};

}  // namespace

TEST_CASE("a guest's part is what it executed, with tracing off around VM exits (GEN-271..273, "
          "GEN-275, PRG-164)") {
    CHECK_TWICE([](auto value) {
        return guest_sees(
            value("HOST t tip6:ffff800000100100 ENTRY t EXIT t pip1:1000 tip6:401103 t EXIT"sv),
            "TNT(1), FUP(401100), TIP.PGD(), TIP.PGE(401103), TNT(1), FUP(401100), "
            "TIP.PGD()",
            seen);
    });
    CHECK_TWICE([](auto value) {  // PacketEn changes with the transition
        return guest_sees(
                   value("HOST pgd pip1:1000 pge6:401000 EXIT pgd pip1:1000 pge6:401103 t"sv),
                   "FUP(401100), TIP.PGD(), TIP.PGE(401103), TNT(1)", seen) &&
               guest_sees(value("HOST ENTRY fup6:401100 pip0:9000 pgd6:ffff800000300000 stop"sv),
                          "FUP(401100), TIP.PGD()", seen) &&
               guest_sees(value("HOST ENTRY EXIT pip1:1000 pgd6:400000 x:2199 pge6:401000"sv),
                          "FUP(401100), TIP.PGD(), MODE.TSX(InTX=1,TXAbort=0), TIP.PGE(401000)",
                          seen) &&
               keeps(value("HOST pgd pip1:1000 x:2199 pge6:401000"sv), {},
                     "PSB, CBR, PSBEND, PIP(1000,NR=0), MODE.TSX(InTX=1,TXAbort=0), "
                     "MODE.Exec(64), TIP.PGE(401000)") &&
               guest_sees(value("HOST ENTRY pgd pip0:9000 pge6:ffff800000100000 pip1:1000 pgd "
                                "pge6:401000"sv),
                          "TIP.PGD(), TIP.PGE(401000)", seen);
    });
}

TEST_CASE("a VM exit is hidden if the guest continues at most 15 bytes after it (PRG-164)") {
    CHECK_TWICE([](auto value) {
        auto const with = [&](std::string_view entry, std::string_view wanted) {
            char text[128] = {};
            std::size_t size = 0;
            for (auto const part : {std::string_view{"HOST ENTRY t EXIT t pip1:1000 "}, entry}) {
                for (char const one : part) { text[size++] = value(one); }
            }
            return guest_sees({text, size}, wanted);
        };
        return with("tip6:401100 t", "TNT(1), TNT(1)") && with("tip6:40110f t", "TNT(1), TNT(1)") &&
               with("tip6:401110 t", "TNT(1), FUP(401100), TIP.PGD(), TIP.PGE(401110), TNT(1)") &&
               with("tip6:4010ff t", "TNT(1), FUP(401100), TIP.PGD(), TIP.PGE(4010FF), TNT(1)") &&
               with("m32 tip6:401103 t",
                    "TNT(1), FUP(401100), TIP.PGD(), MODE.Exec(32), TIP.PGE(401103), TNT(1)");
    });
    CHECK_TWICE([](auto value) {  // the bytes of both TIP and FUP are gone
        part const one{value("HOST ENTRY t EXIT t pip1:1000 tip6:401100 t"sv), {}};
        return one.got.hidden == 1 && one.got.kept == bytes_of_packets(one.bytes.view());
    });
    CHECK_TWICE([](auto value) {  // of the host nothing is traced
        return guest_sees(value("HOST pgd pip1:1000 pge6:401000 t fup6:401100 pip0:9000 pgd "
                                "pip1:1000 pge6:401103 t"sv),
                          "TNT(1), TNT(1)") &&
               guest_sees(value("HOST pgd pip1:1000 pge6:401000 pgd pip0:9000 pip1:1000 "
                                "pge6:401103 t"sv),
                          "TIP.PGD(), TIP.PGE(401103), TNT(1)");
    });
    CHECK_TWICE([](auto value) {  // packets that no processor sends there
        return guest_sees(value("HOST ENTRY fup6:401100 t pip0:9000 tip6:ffff800000200000 "
                                "pip1:1000 tip6:401100"sv),
                          "FUP(401100), TNT(1), TIP.PGD(), TIP.PGE(401100)") &&
               guest_sees(value("HOST pip1:1000 t tip6:401000 t"sv), "TNT(1)") &&
               guest_sees(value("HOST pip1:1000 x:0d t tip6:401000 t"sv), "TNT(1)") &&
               keeps(value("HOST pip1:1000 fup6:401000 tip6:402000"sv), {},
                     "PSB, CBR, PSBEND, PIP(1000,NR=0), MODE.Exec(64), TIP.PGE(402000)") &&
               keeps(value("psb cbr m64 fup6:401000 psb cbr pip1:1000 end"sv),
                     {.where = traced_in::non_root},
                     "PSB, CBR, MODE.Exec(64), FUP(401000), PSB, CBR, PIP(1000,NR=0), PSBEND") &&
               guest_sees(value("HOST ENTRY pip0:9000 psb cbr pip1:1000 m64 fup6:402000 end t"sv),
                          "PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(402000), "
                          "TNT(1)") &&
               guest_sees(value("HOST ENTRY EXIT pgd psb cbr end pip1:1000 pge6:401100"sv),
                          "FUP(401100), TIP.PGD(), PSB, CBR, PSBEND, TIP.PGE(401100)") &&
               // A FUP that does not begin the last exit.
               guest_sees(value("HOST ENTRY EXIT pip1:1000 tip6:401200 pip0:9000 "
                                "tip6:ffff800000200000 pip1:1000 tip6:401100"sv),
                          "FUP(401100), TIP.PGD(), TIP.PGE(401200), TIP.PGD(), "
                          "TIP.PGE(401100)") &&
               guest_sees(value("HOST ENTRY fup6:401100 tip6:402000 pip0:9000 "
                                "tip6:ffff800000200000 pip1:1000 tip6:401100"sv),
                          "FUP(401100), TIP(402000), TIP.PGD(), TIP.PGE(401100)") &&
               guest_sees(value("HOST ENTRY pgd fup6:401100 pge6:401100 pip0:9000 "
                                "tip6:ffff800000200000 pip1:1000 tip6:401100 tip2:2222"sv),
                          "TIP.PGD(), FUP(401100), TIP.PGE(401100), TIP.PGD(), TIP.PGE(401100), "
                          "TIP(402222)") &&
               guest_sees(value("HOST ENTRY fup6:401100 x:000000051202 pip0:9000 "
                                "tip6:ffff800000200000 pip1:1000 tip6:401100"sv),
                          "FUP(401100), PTW(IP=0,4B,5), TIP.PGD(), TIP.PGE(401100)") &&
               guest_sees(value("HOST ENTRY fup6:401100 ptw:5 fup6:401104 pip0:9000 "
                                "tip6:ffff800000200000 pip1:1000 tip6:401100"sv),
                          "FUP(401100), PTW(IP=1,4B,5), FUP(401104), TIP.PGD(), "
                          "TIP.PGE(401100)");
    });
    CHECK_TWICE([](auto value) {  // a transaction that the exit aborts; a PSB+ of the host
        return guest_sees(value("HOST ENTRY abort EXIT pip1:1000 tip6:401100"sv),
                          "MODE.TSX(InTX=0,TXAbort=1), FUP(401100), TIP.PGD(), TIP.PGE(401100)") &&
               guest_sees(value("HOST ENTRY EXIT psb cbr pip0:9000 m64 fup6:ffff800000200000 end "
                                "pip1:1000 tip6:401100"sv),
                          "FUP(401100), TIP.PGD(), PSB, CBR, PSBEND, MODE.Exec(64), "
                          "TIP.PGE(401100)");
    });
}

TEST_CASE("a block of PEBS items whose end was removed is ended (PKT-203, PKT-205)") {
    CHECK_TWICE([](auto value) {
        // 04H is a TNT outside a block.
        return keeps(value("HOST pip1:1000 x:006302 pgd x:04"sv), {},
                     "PSB, CBR, PSBEND, PIP(1000,NR=0), BBP(0,0), BEP(IP=0), TNT(0)") &&
               keeps(value("HOST pip1:1000 x:006302 x:ac x:1122334455667788 pgd x:06"sv), {},
                     "PSB, CBR, PSBEND, PIP(1000,NR=0), BBP(0,0), BIP(15:1122334455667788), "
                     "BEP(IP=0), TNT(1)") &&
               guest_sees(value("HOST ENTRY ovf pip1:3000 x:006302 pgd x:04"sv),
                          "OVF, PIP(3000,NR=0), BBP(0,0), BEP(IP=0)") &&
               guest_sees(value("HOST ENTRY x:006302 EXIT pip1:1000 tip6:401100 x:04"sv),
                          "BBP(0,0), FUP(401100), TIP.PGD(), TIP.PGE(401100), TNT(0)");
    });
}

TEST_CASE("a CR3 write that exits is a PIP at the VM entry, as for insert_pip (PRG-175, PKT-081)") {
    CHECK_TWICE([](auto value) {
        return guest_sees(value("HOST ENTRY pip1:2000 EXIT pip1:2000 tip6:401103 EXIT pip1:3000 "
                                "tip6:401103 t"sv),
                          "PIP(2000,NR=0), PIP(3000,NR=0), TNT(1)") &&
               guest_sees(value("HOST ENTRY pip1:1000 EXIT pip1:3000 tip6:401200"sv),
                          "PIP(1000,NR=0), FUP(401100), TIP.PGD(), PIP(3000,NR=0), "
                          "TIP.PGE(401200)");
    });
}

TEST_CASE("VMCS packets and the events of VM transitions are not the guest's (GEN-278, GEN-301, "
          "GEN-302)") {
    CHECK_TWICE([](auto value) {
        // CFE 07H is VMENTRY, 08H VMEXIT, 09H VMEXIT_INTR; with 80H a FUP follows. EVD 1 and 2 are
        // the qualification and the reason.
        return guest_sees(
                   value(
                       "HOST cfe:87 fup6:ffff800000100010 ENTRY evd:1 evd:2 cfe:08 EXIT vmcs:8000 "
                       "cfe:87 fup6:ffff800000100010 pip1:1000 tip6:401103 t evd:2 cfe:09 EXIT"sv),
                   "TNT(1), FUP(401100), TIP.PGD()") &&
               guest_sees(
                   value(
                       "HOST ENTRY pgd evd:2 cfe:88 fup6:401000 pip0:9000 pip1:1000 pge6:401000"sv),
                   "TIP.PGD(), TIP.PGE(401000)") &&
               // The FUP of a CFE that was removed is missing.
               guest_sees(value("HOST ENTRY cfe:88 tip6:402000 fup6:402100 tip6:403000 cfe:81 "
                                "fup6:403100"sv),
                          "TIP(402000), FUP(402100), TIP(403000), CFE(INTR:0,IP=1), "
                          "FUP(403100)") &&
               guest_sees(value("HOST ENTRY evd:0 cfe:01 fup6:401000 tip6:402000 vmcs:8000"sv),
                          "EVD(PFA:11223344), CFE(INTR:0,IP=0), FUP(401000), TIP(402000)");
    });
}

TEST_CASE("a PSB+ of the guest keeps its place: NR becomes 0, VMCS PADs (PRG-164, GEN-170)") {
    CHECK_TWICE([](auto value) {
        // The order of Skylake, with its PADs (GEN-171).
        part const one{value("x:0000 psb x:000000 x:2099 m64 fup6:401000 pip1:1000 x:00 vmcs:7000 "
                             "tsc:55 tma:3 cbr x:00 end t x:000000 m32 tip2:2000"sv),
                       {}};
        auto const wanted = made_trace{
            "x:0000 psb x:000000 x:2099 m64 fup6:401000 pip0:1000 x:00 x:00000000000000 "
            "tsc:55 tma:3 cbr x:00 end t x:000000 m32 tip2:2000"};
        return one.got && one.bytes.view() == wanted.view();
    });
    CHECK_TWICE([](auto value) {  // without PSBEND; with two PIPs, of which the last counts
        return keeps(value("psb cbr pip1:1000 m64 fup6:401000 t EXIT t"sv), {},
                     "PSB, CBR, PIP(1000,NR=0), MODE.Exec(64), FUP(401000), TNT(1), FUP(401100), "
                     "TIP.PGD()") &&
               keeps(value("psb pip0:9000 pip1:1000 m64 fup6:401000 end t"sv), {},
                     "PSB, PIP(1000,NR=0), MODE.Exec(64), FUP(401000), PSBEND, TNT(1)");
    });
    CHECK_TWICE([](auto value) {  // also with tracing off, and with MTC and CYC inside
        return guest_sees(
            value("HOST ENTRY pgd psb tsc:5 mtc:7 tma:3 cyc:3 cbr pip1:1000 vmcs:7000 "
                  "end m64 pge6:401000"sv),
            "TIP.PGD(), PSB, TSC, MTC(7), TMA, CYC(3), CBR, PIP(1000,NR=0), PSBEND, "
            "MODE.Exec(64), TIP.PGE(401000)");
    });
}

TEST_CASE("an IP whose last IP was removed gets a longer form (PKT-053..062)") {
    CHECK_TWICE([](auto value) {
        return guest_sees(
                   value("HOST pip1:1000 tip6:401000 EXIT tip6:501000 pip1:1000 tip2:1103 t t "
                         "tip2:2222 tip2:3333"sv),
                   "FUP(401100), TIP.PGD(), TIP.PGE(501103), TNT(1), TNT(1), TIP(502222), "
                   "TIP(503333)") &&
               // Hidden: the first IP after it was compressed against the removed TIP.
               guest_sees(
                   value("HOST ENTRY tip6:ffff800000001000 fup6:401100 pip0:9000 tip6:402000 "
                         "pip1:1000 tip6:401103 t t tip2:2222 tip2:3333"sv),
                   "TIP(FFFF800000001000), TNT(1), TNT(1), TIP(402222), TIP(403333)") &&
               guest_sees(value("HOST ENTRY fup6:401100 pip0:9000 tip8:123456789abcdef0 pip1:1000 "
                                "tip4:401103 tip2:1"sv),
                          "FUP(401100), TIP.PGD(), TIP.PGE(1234567800401103), "
                          "TIP(1234567800400001)",
                          seen);
    });
}

TEST_CASE("after an OVF packets belong to nobody until a PIP (PKT-151..153, GEN-225)") {
    CHECK_TWICE([](auto value) {
        return guest_sees(value("HOST ENTRY t ovf fup6:402000 t tip6:ffff800000100000 t pip1:1000 "
                                "tip6:403000 t"sv),
                          "TNT(1), OVF, TIP.PGE(403000), TNT(1)") &&
               guest_sees(value("HOST ENTRY ovf psb cbr pip1:1000 m64 fup6:402000 end t"sv),
                          "OVF, PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(402000), "
                          "TNT(1)") &&
               guest_sees(value("HOST ENTRY ovf psb cbr m64 fup6:402000 pip0:9000 end t "
                                "pip1:1000 tip6:403000"sv),
                          "OVF, PSB, CBR, PSBEND, MODE.Exec(64), TIP.PGE(403000)");
    });
    CHECK_TWICE([](auto value) {
        part const one{value("HOST ENTRY t ovf fup6:402000 t"sv), {}};
        return one.got && one.got.unattributed == 8;
    });
    CHECK_TWICE([](auto value) {  // what was before it has no effect on what comes after it
        return guest_sees(value("HOST ENTRY EXIT ovf pip1:1000 tip6:401100"sv),
                          "FUP(401100), TIP.PGD(), OVF, TIP.PGE(401100)") &&
               guest_sees(value("HOST ENTRY cfe:88 ovf pip1:1000 tip6:402000 cfe:81 fup6:402100"sv),
                          "OVF, TIP.PGE(402000), CFE(INTR:0,IP=1), FUP(402100)");
    });
    CHECK_TWICE([](auto value) {  // the guest alone is traced: what follows is the guest's
        return keeps(value("psb cbr pip1:1000 m64 fup6:401000 end ovf fup6:402000 t"sv),
                     {.where = traced_in::non_root},
                     "PSB, CBR, PIP(1000,NR=0), MODE.Exec(64), FUP(401000), PSBEND, OVF, "
                     "FUP(402000), TNT(1)");
    });
}

TEST_CASE("the first IP after an OVF does not depend on an IP before it (GEN-229)") {
    CHECK_TWICE([](auto value) {
        part const one{value("HOST ENTRY ovf pip0:9000 t t t t pip1:1000 tip2:1200"sv), {}};
        auto const at = one.got.kept;
        return one.got &&
               one.is("PSB, CBR, PSBEND, PIP(1000,NR=0), MODE.Exec(64), "
                      "TIP.PGE(401000), OVF, TIP.PGE(401200)") &&
               at == 16 + 4 + 2 + 8 + 2 + 5 + 2 + 7;
    });
}

TEST_CASE("the IP of a PSB+ starts tracing where the next packet needs it (GEN-176, PKT-140)") {
    CHECK_TWICE([](auto value) {
        constexpr auto begin = "ovf psb cbr pip1:1000 m64 fup6:402000 end "sv;
        auto const with = [&](std::string_view rest, std::string_view wanted) {
            char text[200] = {};
            std::size_t size = 0;
            for (auto const piece : {"HOST ENTRY "sv, begin, rest}) {
                for (char const one : piece) { text[size++] = value(one); }
            }
            char all[300] = {};
            std::size_t length = 0;
            for (auto const piece : {"OVF, PSB, CBR, PIP(1000,NR=0), PSBEND, "sv, wanted}) {
                for (char const one : piece) { all[length++] = one; }
            }
            return guest_sees({text, size}, {all, length});
        };
        return with("mtc:7 tip6:403000", "MTC(7), MODE.Exec(64), TIP.PGE(402000), TIP(403000)") &&
               with("pge6:402000", "MODE.Exec(64), TIP.PGE(402000)") &&
               with("m32 pge6:402000", "MODE.Exec(32), TIP.PGE(402000)") &&
               with("m32 tip6:403000",
                    "MODE.Exec(64), TIP.PGE(402000), MODE.Exec(32), TIP(403000)") &&
               with("m32 fup6:402001",
                    "MODE.Exec(64), TIP.PGE(402000), MODE.Exec(32), FUP(402001)") &&
               with("pgd6:403000", "MODE.Exec(64), TIP.PGE(402000), TIP.PGD(403000)") &&
               with("fup6:403000 tip6:404000",  // the FUP of the OVF
                    "MODE.Exec(64), TIP.PGE(403000), TIP(404000)") &&
               with("pip1:2000 t", "MODE.Exec(64), TIP.PGE(402000), PIP(2000,NR=0), TNT(1)") &&
               with("ptw:5 fup6:402004",
                    "MODE.Exec(64), TIP.PGE(402000), PTW(IP=1,4B,5), FUP(402004)") &&
               with("t fup6:402002 pip0:9000 tip6:ffff800000100000",
                    "MODE.Exec(64), TIP.PGE(402000), TNT(1), FUP(402002), TIP.PGD()");
    });
}

TEST_CASE("of several guests one is kept, by its VMCS (PKT-162, PKT-163, PRG-164)") {
    CHECK_TWICE([](auto value) {
        constexpr edit::part_options one{.vmcs = 0x7000};
        constexpr edit::part_options other{.vmcs = 0x8000};
        auto const text = value(
            "HOST ENTRY t EXIT vmcs:8000 pip1:5000 tip6:601000 t t fup6:601100 "
            "pip0:9000 tip6:ffff800000200000 vmcs:7000 pip1:1000 tip6:401100 t"sv);
        return guest_sees(text, "TNT(1), TNT(1)", one) &&
               keeps(text, other,
                     "PSB, CBR, PSBEND, PIP(5000,NR=0), MODE.Exec(64), TIP.PGE(601000), TNT(1), "
                     "TNT(1), FUP(601100), TIP.PGD()") &&
               keeps(value("psb cbr pip1:1000 m64 fup6:401000 vmcs:8000 end t"sv), one,
                     "PSB, CBR, PSBEND") &&
               keeps(value("psb cbr vmcs:8000 pip1:1000 m64 fup6:401000 end t"sv), other,
                     "PSB, CBR, PIP(1000,NR=0), MODE.Exec(64), FUP(401000), PSBEND, TNT(1)") &&
               keeps(value("psb cbr pip1:1000 m64 fup6:401000 end t vmcs:7000 t"sv), one,
                     "PSB, CBR, PSBEND") &&
               // Before a VMCS packet it may be either guest.
               part{"psb cbr pip1:1000 m64 fup6:401000 end t", one}.got.unattributed == 18 &&
               part{"psb cbr pip1:1000 vmcs:8000 end t", one}.got.unattributed == 0;
    });
}

TEST_CASE(
    "a TIP.PGE directly after a CBR is one of an enable, which has no PIP (GEN-181, GEN-274)") {
    CHECK_TWICE([](auto value) {
        auto const text = value("HOST ENTRY pgd cbr mtc:1 m64 pge6:ffff800000100000 t pip1:1000 "
                                "tip6:401000 t"sv);
        return guest_sees(text, "TIP.PGD(), CBR, MTC(1), TIP.PGE(401000), TNT(1)") &&
               guest_sees(value("HOST ENTRY pgd cbr cfe:01 m64 pge6:402000 t"sv),
                          "TIP.PGD(), CBR, CFE(INTR:0,IP=0), MODE.Exec(64), TIP.PGE(402000), "
                          "TNT(1)") &&
               guest_sees(value("HOST ENTRY cbr t tip6:402000"sv), "CBR, TNT(1), TIP(402000)") &&
               guest_sees(value("HOST ENTRY cbr m32 tip6:402000"sv),
                          "CBR, MODE.Exec(32), TIP(402000)") &&
               guest_sees(value("HOST ENTRY pgd cbr psb cbr pip1:1000 end m64 pge6:402000"sv),
                          "TIP.PGD(), CBR, PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), "
                          "TIP.PGE(402000)");
    });
    CHECK_TWICE([](auto value) {  // VM entries set TraceEn, VM exits clear it: PRG-163
        return keeps(value("psb cbr pip1:1000 m64 end m64 pge6:401000 t fup6:401100 pip0:9000 pgd "
                           "cbr m64 pge6:401103 t"sv),
                     {.where = traced_in::non_root, .hides_exits = false},
                     "PSB, CBR, PIP(1000,NR=0), MODE.Exec(64), PSBEND, MODE.Exec(64), "
                     "TIP.PGE(401000), TNT(1), FUP(401100), TIP.PGD(), CBR, TIP.PGE(401103), "
                     "TNT(1)") &&
               keeps(value("psb cbr pip1:1000 end m64 pge6:401000 t fup6:401100 pip0:9000 pgd "
                           "cbr m64 pge6:401103 t"sv),
                     {.where = traced_in::non_root},
                     "PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(401000), TNT(1), "
                     "CBR, TNT(1)");
    });
}

TEST_CASE(
    "TSC and TMA of the host are removed or changed, MTC, CYC and CBR stay (GEN-200, GEN-209, "
    "PKT-302)") {
    CHECK_TWICE([](auto value) {
        constexpr auto text = "HOST ENTRY tsc:10 tma:5 EXIT tsc:1000 tma:6 cbr mtc:1 cyc:2 t "
                              "pip1:1000 tip6:401100 tsc:20 tma:7"sv;
        part const without{value(text), {}};
        part const with{value(text), {.has_other_tsc = true, .other_tsc = {.offset = 0x234}}};
        auto const tsc_at = [](part const& one, unsigned number) {
            std::uint64_t found = 0;
            trace::reader from{one.bytes.view()};
            for (auto it = from.next(); it; it = from.next()) {
                if (it.packet.is<packet::tsc>() && number-- == 0) {
                    found = it.packet.as<packet::tsc>().get<packet::tsc::TSC>();
                }
            }
            return found;
        };
        return without.is("PSB, CBR, PSBEND, PIP(1000,NR=0), MODE.Exec(64), TIP.PGE(401000), TSC, "
                          "TMA, CBR, MTC(1), CYC(2), TSC, TMA") &&
               with.is("PSB, CBR, PSBEND, PIP(1000,NR=0), MODE.Exec(64), TIP.PGE(401000), TSC, "
                       "TMA, TSC, TMA, CBR, MTC(1), CYC(2), TSC, TMA") &&
               tsc_at(without, 0) == 0x10 && tsc_at(without, 1) == 0x20 &&
               tsc_at(with, 1) == 0x1234 && tsc_at(with, 2) == 0x20;
    });
    CHECK_TWICE([](auto value) {  // a PSB+ whose PIP comes after the TSC
        return keeps(value("psb tsc:10 tma:5 cbr pip1:1000 end"sv), {},
                     "PSB, TSC, TMA, CBR, PIP(1000,NR=0), PSBEND") &&
               keeps(value("psb tsc:10 tma:5 cbr pip0:1000 end pip1:2000 tsc:10 tma:5"sv), {},
                     "PSB, CBR, PSBEND, PIP(2000,NR=0), TSC, TMA");
    });
}

TEST_CASE("a host's part has the VMX packets, and tracing off while guests execute (GEN-275, "
          "PRG-163)") {
    CHECK_TWICE([](auto value) {
        constexpr auto begin = "PSB, CBR, PIP(9000,NR=0), VMCS(7000), MODE.Exec(64), "
                               "FUP(FFFF800000100000), PSBEND, "sv;
        auto const sees = [&](std::string_view text, std::string_view rest) {
            part const one{text, host};
            auto const got = listed(one.bytes.view());
            std::string_view const all{got.characters, got.length};
            return one.got && all.starts_with(begin) && all.substr(begin.size()) == rest;
        };
        return sees(value("HOST t ENTRY t tip2:1234 EXIT t vmcs:8000"sv),
                    "TNT(1), TIP.PGD(), TIP.PGE(FFFF800000200000), TNT(1), VMCS(8000)") &&
               sees(value("HOST pip1:1000 m32 tip6:401000 t evd:1 evd:2 cfe:08 fup6:401100 "
                          "pip0:a000 m64 tip6:ffff800000200000 t"sv),
                    "TIP.PGD(), PIP(A000,NR=0), TIP.PGE(FFFF800000200000), TNT(1)") &&
               sees(value("HOST ENTRY psb cbr pip1:1000 m32 fup6:401000 vmcs:7000 end EXIT"sv),
                    "TIP.PGD(), PSB, CBR, PSBEND, MODE.Exec(32), TIP.PGE(FFFF800000200000)") &&
               sees(value("HOST cfe:87 fup6:ffff800000100010 ENTRY"sv),
                    "CFE(VMENTRY,IP=1), FUP(FFFF800000100010), TIP.PGD()") &&
               // A VM entry that fails after the guest's state is loaded: GEN-276.
               sees(value("HOST pip1:1000 pip0:9000 tip6:ffff800000200000 t"sv),
                    "TIP(FFFF800000200000), TNT(1)");
    });
}

TEST_CASE("without OS there are no PIPs, and nobody's packets are kept (GEN-028, GEN-170)") {
    CHECK_TWICE([](auto value) {
        part const guest{value("psb cbr m64 fup6:401000 end t tip6:402000"sv), {}};
        part const other{value("psb cbr m64 fup6:401000 end t tip6:402000"sv), host};
        return guest.is("PSB, CBR, PSBEND") && guest.got.unattributed == 2 + 7 + 1 + 7 &&
               other.is("PSB, CBR, PSBEND") &&
               keeps(value("psb cbr m64 fup6:401000 end t"sv), {.where = traced_in::non_root},
                     "PSB, CBR, MODE.Exec(64), FUP(401000), PSBEND, TNT(1)") &&
               keeps(value("psb cbr m64 fup6:401000 end t"sv), {.where = traced_in::root},
                     "PSB, CBR, PSBEND");
    });
    CHECK_TWICE([](auto value) {  // a FUP alone
        return guest_sees(value("HOST ENTRY psb fup6:402000 end t"sv), "PSB, PSBEND");
    });
}

TEST_CASE("a PSB+ at the end of a trace need not be whole (PKT-256)") {
    CHECK_TWICE([](auto value) {
        return keeps(value("psb mtc:7 cyc:3 tsc:5"sv), host, "PSB, MTC(7), CYC(3)") &&
               keeps(value("psb cbr m64 fup6:401000"sv), {.where = traced_in::non_root},
                     "PSB, CBR, MODE.Exec(64), FUP(401000)");
    });
}

TEST_CASE("a PSB+ without PIP and IP changes nobody's place (GEN-170, PKT-140)") {
    CHECK_TWICE([](auto value) {
        return guest_sees(value("HOST ENTRY pgd psb cbr end m64 pge6:402000 t"sv),
                          "TIP.PGD(), PSB, CBR, PSBEND, MODE.Exec(64), TIP.PGE(402000), TNT(1)");
    });
}

TEST_CASE("damage becomes an OVF, and decoding resumes at the next PSB (PKT-250..255)") {
    CHECK_TWICE([](auto value) {
        part const one{
            value("tip6:401000 HOST ENTRY t x:c9 tip6:401000 t psb cbr pip1:1000 m64 "
                  "fup6:402000 end t fup6:402100 pip0:9000 tip6:ffff800000200000 x:025d"sv),
            {}};
        return !one.got && one.got.broken == rule::PKT_015 && one.got.incomplete == 2 &&
               one.is("PSB, CBR, PSBEND, PIP(1000,NR=0), MODE.Exec(64), TIP.PGE(401000), TNT(1), "
                      "OVF, PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(402000), "
                      "TNT(1), FUP(402100), TIP.PGD()");
    });
}

TEST_CASE("after damage nothing refers to what was before it (PKT-252)") {
    CHECK_TWICE([](auto value) {
        auto const is = [&](std::string_view text, std::string_view wanted) {
            part const one{value(text), {.where = traced_in::non_root}};
            return !one.got && one.is(wanted);
        };
        return is("psb cbr pip1:1000 m64 fup6:401000 end t x:c9 x:c9 psb cbr pip1:1000 m64 "
                  "fup6:402000 end t",
                  "PSB, CBR, PIP(1000,NR=0), MODE.Exec(64), FUP(401000), PSBEND, TNT(1), OVF, PSB, "
                  "CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(402000), TNT(1)") &&
               is("psb cbr tsc:7 x:c9 psb cbr pip1:1000 end",
                  "PSB, OVF, PSB, CBR, PIP(1000,NR=0), PSBEND") &&
               is("psb cbr pip1:1000 m64 fup6:401000 end ovf x:c9 psb cbr pip1:1000 m64 "
                  "fup6:402000 end fup6:402100 tip6:403000",
                  "PSB, CBR, PIP(1000,NR=0), MODE.Exec(64), FUP(401000), PSBEND, OVF, PSB, CBR, "
                  "PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(402000), FUP(402100), "
                  "TIP(403000)");
    });
}

TEST_CASE("a PSB that begins in the packet before the damage stays whole (PKT-250..252)") {
    CHECK_TWICE([](auto value) {
        // The last TIP is cut after three bytes, and seems to have four of the PSB.
        part const kept{value("HOST ENTRY x:11226d psb cbr pip1:1000 m64 fup6:402000 end t"sv), {}};
        part const removed{value("HOST x:11226d psb cbr pip1:1000 m64 fup6:402000 end t"sv), {}};
        return !kept.got && !removed.got && kept.got.kept == 16 + 4 + 2 + 8 + 2 + 5 + 2 + 40 &&
               kept.is(
                   "PSB, CBR, PSBEND, PIP(1000,NR=0), MODE.Exec(64), TIP.PGE(401000), OVF, "
                   "PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(402000), TNT(1)") &&
               removed.is("PSB, CBR, PSBEND, OVF, PSB, CBR, PIP(1000,NR=0), PSBEND, "
                          "MODE.Exec(64), TIP.PGE(402000), TNT(1)");
    });
    CHECK_TWICE([](auto value) {  // an MTC that ends in the PSB leaves no room for an OVF
        part const one{value("HOST ENTRY x:59 psb cbr pip1:1000 m64 fup6:402000 end t"sv), {}};
        return !one.got &&
               one.is("PSB, CBR, PSBEND, PIP(1000,NR=0), MODE.Exec(64), TIP.PGE(401000), PSB, "
                      "CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(402000), TNT(1)");
    });
}

TEST_CASE("a trace of a concealed guest has nothing to take out (GEN-278, PKT-274)") {
    std::uint64_t packets = 0;
    for (unsigned seed = 1; seed <= 20; ++seed) {
        test::dice dice{seed};
        test::vm::setting with;
        with.part.where = traced_in::non_root;
        with.events = true;
        test::vm::machine on{with, dice};
        on.run(200);
        auto concealed = std::vector<std::uint8_t>(on.wanted().begin(), on.wanted().end());
        byte_window const one[] = {{concealed.data(), concealed.size()}};
        CHECK(edit::count_vmx_packets(one) == 0);
        byte_window const both[] = {{on.recorded().data(), on.recorded().size()}};
        packets += edit::count_vmx_packets(both);
        (void)edit::keep_part(both, with.part);
        CHECK(edit::count_vmx_packets(both) == 0);
    }
    CHECK(packets > 100);
}

TEST_CASE("an IP after an OVF is compressed where there is no room for a whole one (GEN-229)") {
    CHECK_TWICE([](auto value) {
        part const later{value("psb cbr pip1:1000 m64 fup6:401000 end ovf fup6:402000 fup6:402100 "
                               "pip0:9000 pgd cbr m64 pge6:402200"sv),
                         {.where = traced_in::non_root}};
        if (later.got.kept != 16 + 4 + 8 + 2 + 7 + 2 + 2 + 7 + 7 + 1 + 4 + 3) { return false; }
        part const one{value("HOST ENTRY ovf pip1:3000 tip2:1200 t"sv), {}};
        return one.got.kept == 16 + 4 + 2 + 8 + 2 + 5 + 2 + 8 + 3 + 1 &&
               one.is("PSB, CBR, PSBEND, PIP(1000,NR=0), MODE.Exec(64), TIP.PGE(401000), OVF, "
                      "PIP(3000,NR=0), TIP.PGE(401200), TNT(1)");
    });
}

// ------------------------------------------------------------------------------- windows

TEST_CASE("a trace may be in any windows, and bytes beside them do not change (PKT-255, PRG-129)") {
    constexpr auto text =
        "tip6:401000 HOST ENTRY t EXIT tsc:5 tma:6 pip1:2000 tip2:1103 t x:c9 t psb "
        "tsc:7 cbr pip1:1000 m64 fup6:402000 end t EXIT t x:025d"sv;
    part const whole{text, {}};
    for (std::size_t one = 0; one <= whole.bytes.size; ++one) {
        std::size_t const two = one + (whole.bytes.size - one) / 3;
        // The windows are far apart and in reverse order.
        std::vector<std::uint8_t> bytes(3 * 700, 0xA5);
        made_trace const made{text};
        std::size_t const ends[] = {0, one, two, made.size};
        byte_window windows[3] = {};
        for (std::size_t i = 0; i < 3; ++i) {
            auto* const to = bytes.data() + (2 - i) * 700 + 20;
            windows[i] = {to, ends[i + 1] - ends[i]};
            for (auto k = ends[i]; k < ends[i + 1]; ++k) { to[k - ends[i]] = made.bytes[k]; }
        }
        auto const got = edit::keep_part(windows);
        REQUIRE(got.broken == whole.got.broken);
        REQUIRE(got.kept == whole.got.kept);
        std::vector<std::uint8_t> all;
        std::size_t untouched = 0;
        for (auto const& piece : windows) {
            all.insert(all.end(), piece.first, piece.first + piece.size);
            for (auto const* at : {piece.first - 1, piece.first + piece.size}) {
                untouched += *at == 0xA5 ? 1U : 0U;
            }
        }
        REQUIRE(byte_view{all} == whole.bytes.view());
        REQUIRE(untouched == 6);
    }
}

// ------------------------------------------------------------------------------- recorded traces

namespace {

/// Sets NR to 0 and VMCS packets to PADs, byte by byte.
void conceal(std::vector<std::uint8_t>& bytes) {
    auto const original = bytes;
    trace::reader from{byte_view{original}};
    for (auto it = from.next(); it; it = from.next()) {
        auto const at = bytes.begin() + static_cast<std::ptrdiff_t>(it.offset);
        if (it.packet.is<packet::pip>()) { at[2] &= 0xFE; }
        if (it.packet.is<packet::vmcs>()) { std::fill_n(at, 7, std::uint8_t{0}); }
    }
}

}  // namespace

TEST_CASE("recorded guests that were traced alone lose NR and VMCS, and no other byte changes "
          "(PRG-163, GEN-278)") {
    for (auto const* name : {"xdc-foo.pt", "xdc-unzip.pt", "xdc-icelake.pt"}) {
        auto found = test::recorded_trace(name);
        if (!found) { continue; }
        auto& bytes = *found;
        auto wanted = bytes;
        conceal(wanted);
        byte_window const all[] = {{bytes.data(), bytes.size()}};
        CHECK(edit::count_vmx_packets(all) != 0);
        CHECK(edit::keep_part(all, {.where = traced_in::non_root}));
        CHECK(bytes == wanted);
        CHECK(edit::count_vmx_packets(all) == 0);
    }
}

TEST_CASE("recorded processors without a VM are a host alone, whose trace does not change") {
    for (auto const* name : {"google-m7-cpu0.pt", "hase-loopy-skl.pt", "dr-hello-dyn.pt"}) {
        auto found = test::recorded_trace(name);
        if (!found) { continue; }
        auto& bytes = *found;
        auto const wanted = bytes;
        byte_window const all[] = {{bytes.data(), bytes.size()}};
        auto const got = edit::keep_part(all, {.keep = side::host, .where = traced_in::root});
        CHECK(got.left == 0);
        std::size_t const psb = trace::find_psb(byte_view{wanted});
        if (psb == trace::npos) { continue; }
        CHECK(byte_view{bytes}.from(psb) == byte_view{wanted}.from(psb));
    }
}

// ------------------------------------------------------------------------------- random guests

namespace {

struct sum {
    std::uint64_t events = 0;
    std::uint64_t items = 0;
    std::uint64_t left = 0;
    std::uint64_t hidden = 0;
};

/// The first difference between the part that is kept and the trace of that side alone.
auto difference(test::vm::setting const& with, std::uint64_t seed, sum& all) -> std::string {
    test::dice dice{seed};
    test::vm::machine on{with, dice};
    on.run(400);
    auto& bytes = on.recorded();
    byte_window const windows[] = {
        {bytes.data(), bytes.size() / 3},
        {bytes.data() + bytes.size() / 3, bytes.size() - bytes.size() / 3}};
    auto const got = edit::keep_part(windows, with.part);
    auto const found = test::vm::items_of(byte_view{bytes}, with.only_hidden);
    auto const wanted = test::vm::items_of(on.wanted(), with.only_hidden);
    all.events += on.events;
    all.items += found.size();
    all.left += got.left;
    all.hidden += got.hidden;
    auto const at = "seed " + std::to_string(seed) + ": ";
    if (!got) { return at + "a loss at " + std::to_string(got.offset); }
    for (std::size_t i = 0; i < found.size() && i < wanted.size(); ++i) {
        if (found[i] != wanted[i]) {
            return at + std::to_string(i) + ": " + found[i].text() + ", not " + wanted[i].text();
        }
    }
    return found.size() == wanted.size() ? std::string{} : at + "another number of items";
}

void compare(test::vm::setting const& with, bool hides) {
    std::uint64_t const count = test::number_from("PTSPEC_VM_EVENTS", test::usual_count / 10);
    sum all;
    for (std::uint64_t seed = 1; all.events < count; ++seed) {
        auto one = with;
        one.how = test::programs::kind_of_run(seed).options;
        REQUIRE(difference(one, seed, all) == "");
    }
    CHECK(all.items > count / 2);
    CHECK(all.left > count / 20);
    CHECK((all.hidden > all.left / 3) == hides);
}

}  // namespace

TEST_CASE("a random guest's part of a trace is the trace of the guest without a VM (PRG-164)") {
    compare({.cyc = true, .mtc = true, .tsc = true, .only_hidden = true}, true);
    compare({.mtc = true, .events = true}, true);
    compare({.part = {.hides_exits = false}, .tsc = true}, false);
}

TEST_CASE("RETs stay compressed where the host does not change the stack of CALLs (GEN-130)") {
    compare({.dis_retc = false, .cyc = true, .mtc = true, .events = true, .only_hidden = true},
            true);
}

TEST_CASE("a random host's part of a trace is the trace of the host alone (GEN-275)") {
    compare({.part = host, .tsc = true}, false);
    compare({.part = {.keep = side::host, .where = traced_in::root}, .tsc = true}, false);
}

TEST_CASE("a random guest that is traced alone loses what the conceal controls hide (GEN-278)") {
    compare(
        {.part = {.where = traced_in::non_root, .hides_exits = false}, .tsc = true, .events = true},
        false);
}
