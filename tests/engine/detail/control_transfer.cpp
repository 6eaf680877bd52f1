// SPDX-License-Identifier: BSL-1.0
// Also tests/engine/scenarios.cpp.
#include <ptspec/engine/detail/control_transfer.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstdint>
#include <string>

using namespace ptspec;
using test::traced;
namespace action = engine::action;

namespace {

/// Inside the filter range, outside it, in the TraceStop range.
constexpr char const* ranges = "ADDR0=[1000,1FFF] filter, ADDR1=[4000,4FFF] stop";
constexpr std::uint64_t inside = 0x1100;
constexpr std::uint64_t outside = 0x3000;
constexpr std::uint64_t stopping = 0x4000;

/// The packets of an event, as text.
template <class Does>
auto goes(std::string setup, Does const& does) -> std::string {
    traced on{setup};
    does(on);
    auto const all = on.packets();
    return {all.characters, all.length};
}
auto from(std::uint64_t place) -> std::string {
    return std::string{ranges} + (place == inside ? ", IP=1100" : ", IP=3000, FilterEn=0");
}

auto conditional(std::uint64_t at, std::uint64_t to, std::string more = "") -> std::string {
    return goes(from(at) + more, [=](traced& on) { on.does(action::conditional{to, true}); });
}
auto direct(std::uint64_t at, std::uint64_t to, std::string more = "") -> std::string {
    return goes(from(at) + more, [=](traced& on) { on.does(action::direct_jump{to}); });
}
auto indirect(std::uint64_t at, std::uint64_t to, std::string more = "") -> std::string {
    return goes(from(at) + more, [=](traced& on) { on.does(action::indirect_jump{to}); });
}
auto far_away(std::uint64_t at, std::uint64_t to, std::string more = "") -> std::string {
    return goes(from(at) + more, [=](traced& on) {
        on.does(action::far_transfer{.at = at, .to = to, .after = on.state().code});
    });
}
auto interrupted(std::uint64_t at, std::uint64_t to, std::string more = "") -> std::string {
    return goes(from(at) + more, [=](traced& on) {
        on.does(action::interrupt{.next = at, .to = to, .after = on.state().code});
    });
}

}  // namespace

TEST_CASE("each class of operations writes the packets of its row") {  // GEN-340, GEN-101..105
    // PacketEn stays 0: only a TraceStop is written
    CHECK(conditional(outside, outside) == "none");
    CHECK(direct(outside, outside) == "none");
    CHECK(indirect(outside, outside) == "none");
    CHECK(far_away(outside, outside) == "none");
    CHECK(interrupted(outside, outside) == "none");
    CHECK(conditional(outside, stopping) == "TraceStop");  // GEN-341
    CHECK(direct(outside, stopping) == "TraceStop");
    CHECK(indirect(outside, stopping) == "TraceStop");
    CHECK(far_away(outside, stopping) == "TraceStop");
    CHECK(interrupted(outside, stopping) == "TraceStop");  // GEN-342
    // PacketEn rises
    CHECK(conditional(outside, inside) == "TIP.PGE(1100)");
    CHECK(direct(outside, inside) == "TIP.PGE(1100)");
    CHECK(indirect(outside, inside) == "TIP.PGE(1100)");
    CHECK(far_away(outside, inside) == "TIP.PGE(1100)");
    CHECK(interrupted(outside, inside) == "TIP.PGE(1100)");
    // PacketEn falls with FilterEn
    CHECK(conditional(inside, outside) == "TIP.PGD()");
    CHECK(direct(inside, outside) == "TIP.PGD(3000)");
    CHECK(indirect(inside, outside) == "TIP.PGD(3000)");
    CHECK(far_away(inside, outside) == "TIP.PGD(3000)");
    CHECK(interrupted(inside, outside) == "FUP(1100), TIP.PGD(3000)");
    CHECK(conditional(inside, stopping) == "TIP.PGD(), TraceStop");
    CHECK(direct(inside, stopping) == "TIP.PGD(4000), TraceStop");
    CHECK(indirect(inside, stopping) == "TIP.PGD(4000), TraceStop");
    CHECK(far_away(inside, stopping) == "TIP.PGD(4000), TraceStop");
    CHECK(interrupted(inside, stopping) == "FUP(1100), TIP.PGD(4000), TraceStop");
    // PacketEn stays 1
    CHECK(conditional(inside, inside) == "none");  // a buffered TNT bit
    CHECK(direct(inside, inside) == "none");
    CHECK(indirect(inside, inside) == "TIP(1100)");
    CHECK(far_away(inside, inside) == "TIP(1100)");
    CHECK(interrupted(inside, inside) == "FUP(1100), TIP(1100)");
}

TEST_CASE("CFE comes first, and has an IP if no other packet gives it") {
    // GEN-301, GEN-303, GEN-304, GEN-306
    CHECK(interrupted(inside, inside, ", EventEn=1") == "CFE(INTR:0,IP=0), FUP(1100), TIP(1100)");
    CHECK(interrupted(inside, inside, ", EventEn=1, BranchEn=0") == "CFE(INTR:0,IP=1), FUP(1100)");
    CHECK(interrupted(outside, inside, ", EventEn=1") ==
          "CFE(INTR:0,IP=1), FUP(3000), TIP.PGE(1100)");
    CHECK(interrupted(inside, inside, ", EventEn=1, OS=User=0") == "none");
    CHECK(far_away(inside, inside, ", EventEn=1") == "TIP(1100)");
    // A transfer into the context also writes a CFE, without the IP.
    CHECK(goes("EventEn=1, OS=0, CPL=0", [](traced& on) {
              auto code = on.state().code;
              code.cpl = 3;
              on.does(action::far_transfer{
                  .at = 0x9000, .to = 0x1000, .after = code, .kind = action::far_kind::iret});
          }) == "CFE(IRET,IP=0), TIP.PGE(1000)");
    CHECK(goes("EventEn=1", [](traced& on) {
              on.does(action::exception{.at = 0x1000,
                                        .to = 0x2000,
                                        .after = on.state().code,
                                        .vector = action::exception::page_fault,
                                        .cr2 = 0xBEEF000});
          }) == "EVD(PFA:BEEF000), CFE(INTR:E,IP=0), FUP(1000), TIP(2000)");  // GEN-302
}

TEST_CASE("a suppressed IP does not change the last IP") {  // GEN-107
    traced on{"OS=0"};
    auto kernel = on.state().code;
    kernel.cpl = 0;
    auto const user = on.state().code;
    on.does(action::indirect_jump{0x7000});
    on.does(action::far_transfer{.at = 0x7000, .to = 0x9000, .after = kernel});
    on.does(action::far_transfer{.at = 0x9000, .to = 0x7002, .after = user});
    CHECK(on.packets() == text{"TIP(7000), TIP.PGD(), TIP.PGE(7002)"});
    CHECK(on.bytes.size() == 7 + 1 + 3);
}

TEST_CASE("the vector of an event without a vector is 0") {  // GEN-301, PKT-220
    CHECK_TWICE([](auto value) {
        traced on{"CPL=0, EventEn=1"};
        on.does(action::far_transfer{.at = value(std::uint64_t{0x1000}),
                                     .to = 0x2000,
                                     .after = on.state().code,
                                     .kind = action::far_kind::iret});
        byte_view const all = on.bytes.written();
        return all.size() > 4 && all[0] == 0x02 && all[1] == 0x13 && all[3] == 0;
    });
}
