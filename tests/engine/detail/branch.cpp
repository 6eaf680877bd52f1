// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/detail/branch.hpp>

#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>
#include <support/traced.hpp>

#include <cstdint>
#include <string>

using namespace ptspec;
using test::packets;
using test::traced;
namespace action = engine::action;

namespace {

constexpr auto deferring(std::string_view setup = "") -> trace_script::start {
    auto from = traced::started(setup);
    from.how.defers_tips = true;
    return from;
}

}  // namespace

TEST_CASE("conditional branches are buffered until a TNT is full") {  // GEN-120..122
    traced on;
    for (unsigned i = 0; i < 8; ++i) { on.does(action::conditional{0x1000, i % 3 == 0}); }
    CHECK(packets(on) == "TNT(100100)");
    CHECK(on.state().writer.tnt == packet::branches{2, 0b10});
    auto from = traced::started("");
    from.how.tnt_capacity = 47;
    traced more{from};
    for (unsigned i = 0; i < 46; ++i) { more.does(action::conditional{0x1000, true}); }
    CHECK(packets(more) == "none");
    more.does(action::conditional{0x1000, false});
    CHECK(packets(more) == "TNT(" + std::string(46, '1') + "0)");
    for (unsigned i = 0; i < 9; ++i) { more.does(action::conditional{0x1000, true}); }
    more.does(action::indirect_jump{0x2000});
    CHECK(packets(more) ==
          "TNT(" + std::string(46, '1') + "0), TNT(" + std::string(9, '1') + "), TIP(2000)");
}

TEST_CASE("the fast path of branches writes the same packets as the general path") {
    // A branch from one range to another needs the general path.
    auto const one = [](std::string_view setup) {
        traced on{setup};
        test::random_numbers random{};
        std::uint64_t stack[8] = {};
        unsigned depth = 0;
        for (unsigned i = 0; i < 900; ++i) {
            std::uint64_t const seed = random();
            std::uint64_t const to = 0x1000 +
                                     (seed >> 33) % 0x100'0000 * (i % 7 == 0 ? 0x10001 : 1);
            switch (seed >> 60) {
                case 0: on.does(action::indirect_jump{to}); break;
                case 1: on.does(action::indirect_call{to + 3, to}); break;
                case 2:
                    if (depth < 8) { stack[depth++] = to + 9; }
                    on.does(action::direct_call{to + 9, to});
                    break;
                case 3: on.does(action::near_return{depth != 0 ? stack[--depth] : to}); break;
                case 4: on.does(action::direct_jump{to}); break;
                default: on.does(action::conditional{to, (seed >> 40 & 1) != 0}); break;
            }
        }
        return packets(on);
    };
    auto const quick = one("");
    CHECK(quick.size() > 2000);
    CHECK(quick == one("ADDR0=[0,FFFFFFFFFFFFFFFF] filter"));
    CHECK(quick == one("ADDR0=[0,0] stop"));
    CHECK(quick == one("ADDR0=[0,7FFFFF] filter, ADDR1=[800000,FFFFFFFFFFFFFFFF] filter"));
    CHECK(quick == one("ADDR0=[0,4FFFFF] filter, ADDR1=[500000,8FFFFF] filter, "
                       "ADDR2=[900000,BFFFFF] filter, ADDR3=[C00000,FFFFFFFFFFFFFFFF] filter"));
    // A branch to an address below the range leaves it.
    traced on{"ADDR0=[100,FFFF] filter"};
    on.does(action::conditional{0x1000, true}).does(action::conditional{0x10, true});
    CHECK(packets(on) == "TNT(1), TIP.PGD()");
}

TEST_CASE("a return to the address after a traced call is one TNT bit") {  // GEN-130, GEN-138
    CHECK_TWICE([](auto value) {
        traced on;
        on.does(action::indirect_jump{0x7000});
        on.does(action::direct_call{value(std::uint64_t{0x1005}), 0x2000});
        on.does(action::near_return{0x1005}).does(action::indirect_jump{0x7004});
        // The last IP is still 7000H: 16 bits suffice.
        return on.packets() == text{"TIP(7000), TNT(1), TIP(7004)"} && on.bytes.size() == 7 + 1 + 3;
    });
    CHECK_TWICE([](auto value) {  // DisRETC disables compression: GEN-139
        traced on{"DisRETC=1"};
        on.does(action::direct_call{value(std::uint64_t{0x1005}), 0x2000});
        on.does(action::near_return{0x1005});
        return on.packets() == text{"TIP(1005)"} && on.state().calls.size() == 0;
    });
}

TEST_CASE("a call is pushed if PacketEn is 1 before and after it") {  // GEN-132, GEN-135
    auto const called = [](std::string_view setup, auto const& e) {
        return traced{setup}.does(e).state().calls.size();
    };
    constexpr std::string_view ranges = "ADDR0=[1000,1FFF] filter";
    CHECK(called("", action::direct_call{0x1005, 0x2000}) == 1);
    CHECK(called("", action::direct_call{0x1005, 0x1005}) == 0);
    CHECK(called("", action::indirect_call{0x1002, 0x1002}) == 1);
    CHECK(called("BranchEn=0", action::direct_call{0x1005, 0x2000}) == 0);
    CHECK(called(ranges, action::direct_call{0x1005, 0x1800}) == 1);
    CHECK(called(ranges, action::direct_call{0x1005, 0x1005}) == 0);
    CHECK(called(ranges, action::indirect_call{0x1005, 0x1005}) == 1);
    CHECK(called(ranges, action::direct_call{0x1005, 0x2000}) == 0);
    CHECK(called("ADDR0=[1000,1FFF] filter, FilterEn=0, IP=3000",
                 action::direct_call{0x3005, 0x1000}) == 0);
    // Far transfers are not pushed: GEN-136.
    traced on;
    on.does(action::direct_call{0x1005, 0x2000});
    on.does(action::far_transfer{.to = 0x3000, .after = on.state().code});
    on.does(action::interrupt{.next = 0x3000, .to = 0x4000, .after = on.state().code});
    CHECK(on.state().calls.size() == 1);
}

TEST_CASE("a return in 16-bit or 32-bit code compares only the bits that it pops") {  // GEN-137
    auto const back = [](engine::code_width width, std::uint64_t to) {
        traced on{"LIP=0"};
        on.does(action::direct_call{0x1'0001'1005, 0x2000});
        auto code = on.state().code;
        code.width = width;
        on.does(action::far_transfer{.to = 0x3000, .after = code}).does(action::near_return{to});
        on.does(action::indirect_jump{0x9000});
        return packets(on);
    };
    using engine::code_width;
    CHECK(back(code_width::bits_32, 0x1'1005) == "MODE.Exec(32), TIP(3000), TNT(1), TIP(9000)");
    CHECK(back(code_width::bits_32, 0x1005) == "MODE.Exec(32), TIP(3000), TIP(1005), TIP(9000)");
    CHECK(back(code_width::bits_16, 0x1005) == "MODE.Exec(16), TIP(3000), TNT(1), TIP(9000)");
    CHECK(back(code_width::bits_64, 0x1'1005) == "TIP(3000), TIP(11005), TIP(9000)");
    // Every single bit, the highest included.
    auto const matches = [](engine::code_width width, std::uint64_t bit) {
        traced on{"LIP=0"};
        auto code = on.state().code;
        code.width = width;
        on.does(action::far_transfer{.to = 0x3000, .after = code});
        on.does(action::direct_call{0x1005, 0x2000}).does(action::near_return{0x1005 ^ bit});
        return on.state().writer.tnt.count == 1;
    };
    for (unsigned bit = 0; bit < 64; ++bit) {
        std::uint64_t const other = std::uint64_t{1} << bit;
        CHECK(matches(code_width::bits_16, other) == (bit >= 16));
        CHECK(matches(code_width::bits_32, other) == (bit >= 32));
        CHECK(!matches(code_width::bits_64, other));
    }
}

TEST_CASE("deferred TIPs follow the TNT that is being filled") {
    // GEN-145..147
    traced on{deferring()};
    on.does(action::conditional{0x1000, false}).does(action::indirect_jump{0x1308});
    on.does(action::conditional{0x1000, true}).does(action::indirect_jump{0x1100});
    CHECK(packets(on) == "none");
    on.does(action::interrupt{.next = 0x110C, .to = 0xCC00, .after = on.state().code});
    CHECK(packets(on) == "TNT(01), TIP(1308), TIP(1100), FUP(110C), TIP(CC00)");
    traced full{deferring()};
    full.does(action::conditional{0x1000, false}).does(action::indirect_jump{0x1308});
    for (unsigned i = 0; i < 5; ++i) { full.does(action::conditional{0x1000, true}); }
    CHECK(packets(full) == "TNT(011111), TIP(1308)");
    // An uncompressed return flushes them. A TIP with no TNT pending is not deferred.
    traced back{deferring()};
    back.does(action::indirect_jump{0x1200}).does(action::conditional{0x1000, true});
    back.does(action::indirect_jump{0x1300}).does(action::near_return{0x1400});
    CHECK(packets(back) == "TIP(1200), TNT(1), TIP(1300), TIP(1400)");
}

TEST_CASE("a compressed return does not touch the last IP, although control moved") {  // PKT-067
    traced on{"CPL=0"};
    on.does(action::indirect_jump{0x7F00'0000'1000}).does(action::direct_jump{0x1234'5600'0000});
    on.does(action::direct_call{0x1234'5600'0005, 0x1234'5600'0100});
    on.does(action::near_return{0x1234'5600'0005});
    on.does(action::indirect_jump{0x7F00'0000'2000});
    // Two bytes of IP replace bits 15:0 of the first TIP's.
    byte_array<3> const last{{0x2D, 0x00, 0x20}};
    auto const all = on.bytes.written();
    CHECK(packets(on) == "TIP(7F0000001000), TNT(1), TIP(7F0000002000)");
    CHECK(all.from(all.size() - 3) == byte_view{last});
}

TEST_CASE("with DisTNT conditional branches and compressed returns write no TNT") {  // GEN-325
    traced on{"DisTNT=1, ADDR0=[1000,1FFF] filter"};
    for (unsigned i = 0; i < 7; ++i) { on.does(action::conditional{0x1000, i % 2 == 0}); }
    on.does(action::direct_call{0x1005, 0x1100}).does(action::near_return{0x1005});
    on.does(action::near_return{0x1300}).does(action::conditional{0x5000, true});
    CHECK(packets(on) == "TIP(1300), TIP.PGD()");
    CHECK(on.state().writer.tnt.count == 0);
}

TEST_CASE("sequential execution does not change FilterEn") {  // GEN-083, GEN-084
    traced on{"ADDR0=[1000,10FF] filter, IP=10F0"};
    on.does(action::sequential{0x1100}).does(action::conditional{0x1102, false});
    on.does(action::conditional{0x1108, false});
    CHECK(on.ip() == 0x1108);
    CHECK(on.state().writer.tnt.count == 2);
    on.does(action::conditional{0x1110, true});
    CHECK(packets(on) == "TNT(00), TIP.PGD()");
}

TEST_CASE("with LIP=1 branch targets are filtered by linear address") {  // GEN-080, GEN-091
    CHECK_TWICE([](auto value) {
        auto from = traced::started(
            "mode=32, LIP=1, ADDR0=[21000,21010] filter, ADDR1=[11000,11FFF] filter, IP=11000");
        from.code.cs_base = value(std::uint64_t{0x1'0000});
        traced on{from};
        on.does(action::conditional{0x1'1008, true}).does(action::conditional{0x1'1800, true});
        on.does(action::indirect_jump{0x1000}).does(action::indirect_jump{0x1800});
        return on.packets() == text{"TNT(1), TIP.PGD(), TIP.PGE(11000), TIP(11800)"};
    });
}

TEST_CASE("branches within a filter range write no TIP.PGD, those that leave it do") {
    // GEN-082, GEN-101
    CHECK_TWICE([](auto value) {
        traced on{"ADDR0=[1000,1FFF] filter, ADDR1=[1800,18FF] stop, CYCEn=1"};
        on.does(action::cycles{3}).does(action::conditional{0x1100, true});
        on.does(action::cycles{4}).does(action::conditional{0x1102, false});
        on.does(action::direct_jump{0x17FF}).does(action::conditional{0x2000, value(true)});
        on.does(action::cycles{5}).does(action::indirect_jump{0x1FFF});
        on.does(action::conditional{0x1900, true}).does(action::direct_jump{0x18FF});
        return on.packets() == text{"CYC(3), TNT(10), CYC(4), TIP.PGD(), CYC(5), TIP.PGE(1FFF), "
                                    "TNT(1), TIP.PGD(18FF), TraceStop"};
    });
}

TEST_CASE("the effect of a mismatching RET on the call stack is a model option") {
    // GEN-133, GEN-134
    using trace::ret_mismatch;
    auto const returned = [](ret_mismatch how) {
        auto from = traced::started("OS=0");
        from.how.on_ret_mismatch = how;
        traced on{from};
        on.does(action::direct_call{0x1005, 0x2000}).does(action::direct_call{0x2005, 0x3000});
        on.does(action::near_return{0x4000}).does(action::near_return{0x1005});
        return on.does(action::near_return{0x2005}).does(action::indirect_jump{0x9000}).packets();
    };
    static_assert(returned(ret_mismatch::pop) == text{"TIP(4000), TNT(1), TIP(2005), TIP(9000)"});
    CHECK(returned(ret_mismatch::pop) == text{"TIP(4000), TNT(1), TIP(2005), TIP(9000)"});
    CHECK(returned(ret_mismatch::keep) == text{"TIP(4000), TIP(1005), TNT(1), TIP(9000)"});
    CHECK(returned(ret_mismatch::clear) == text{"TIP(4000), TIP(1005), TIP(2005), TIP(9000)"});
}

TEST_CASE("entries of the call stack are lost at moments that no packet shows") {  // GEN-130
    // dr-hello-static-b @11ba
    auto const returned = [](bool lost) {
        traced on{traced::started("OS=0")};
        on.does(action::direct_call{0x1005, 0x2000}).does(action::direct_call{0x2005, 0x3000});
        if (lost) { on.does(action::return_stack_lost{}); }
        on.does(action::direct_call{0x3005, 0x4000}).does(action::near_return{0x3005});
        on.does(action::near_return{0x2005}).does(action::near_return{0x1005});
        return on.does(action::indirect_jump{0x9000}).packets();
    };
    static_assert(returned(true) == text{"TNT(1), TIP(2005), TIP(1005), TIP(9000)"});
    CHECK(returned(true) == text{"TNT(1), TIP(2005), TIP(1005), TIP(9000)"});
    CHECK(returned(false) == text{"TNT(111), TIP(9000)"});
}

TEST_CASE("a TNT is followed by a complete TIP with a full 8-byte IP") {  // PKT-052
    CHECK_TWICE([](auto value) {
        traced on{};
        on.does(action::conditional{0x1010, true}).does(action::conditional{0x1020, false});
        on.does(action::indirect_jump{value(std::uint64_t{0x1234'5678'9ABC'DEF0})});
        constexpr std::uint8_t expected[] = {0x0C, 0xCD, 0xF0, 0xDE, 0xBC,
                                             0x9A, 0x78, 0x56, 0x34, 0x12};
        return on.bytes.written() == byte_view{expected};
    });
}

TEST_CASE("a TNT for which the buffer has no room is lost in an overflow") {  // GEN-225
    CHECK_TWICE([](auto value) {
        traced on{};
        on.bytes = byte_buffer{on.room, 0};
        for (unsigned i = 0; i < value(5U); ++i) { on.does(action::conditional{0x1010, true}); }
        bool const gathers = on.state().writer.tnt.count == 5 && !on.state().in_overflow;
        on.does(action::conditional{0x1010, true});
        return gathers && on.state().in_overflow && on.state().writer.tnt.count == 0;
    });
}
