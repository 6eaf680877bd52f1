// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/detail/value.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace ptspec;
using test::packets;
using test::traced;
namespace action = engine::action;

TEST_CASE("PTWRITE needs PTWEn, ContextEn and FilterEn, but not BranchEn") {  // GEN-300, GEN-028
    auto const written = [](std::string_view setup, action::ptwrite const& e) {
        return packets(traced{setup}.does(e));
    };
    action::ptwrite const wide{0x700, 0x705, 0x1122'3345'D566'7788, true};
    action::ptwrite const narrow{0x700, 0x705, 0x1122'3345'D566'7788, false};
    CHECK(written("PTWEn=1", wide) == "PTW(IP=0,8B,11223345D5667788)");
    CHECK(written("PTWEn=1", narrow) == "PTW(IP=0,4B,D5667788)");
    CHECK(written("PTWEn=1, FUPonPTW=1", wide) == "PTW(IP=1,8B,11223345D5667788), FUP(700)");
    CHECK(written("PTWEn=1, FUPonPTW=1, BranchEn=0", narrow) == "PTW(IP=1,4B,D5667788), FUP(700)");
    CHECK(written("", wide) == "none");
    CHECK(written("PTWEn=1, User=0", wide) == "none");
    CHECK(written("PTWEn=1, ADDR0=[1,2] filter, FilterEn=0", wide) == "none");
    CHECK(written("PTWEn=1, TraceEn=0", wide) == "none");
    CHECK(traced{"PTWEn=1"}.does(wide).ip() == 0x705);
}

TEST_CASE("a PEBS record is BBP and BIPs per group, then BEP") {  // GEN-320..322
    traced on{};
    action::pebs_item const registers[] = {{0, 0x1111}, {1, 0xFFFF'FFFF'FFFF'FFFF}};
    action::pebs_item const basics[] = {{4, 0x1'A345'6789}};
    action::pebs_group const groups[] = {{1, false, registers, 2}, {4, true, basics, 1}};
    on.does(action::conditional{0x1000, true}).does(action::pebs_record{0x1234, groups, 2});
    CHECK(packets(on) == "TNT(1), BBP(0,1), BIP(0:1111), BIP(1:FFFFFFFFFFFFFFFF), BBP(1,4), "
                         "BIP(4:A3456789), BEP(IP=1), FUP(1234)");
    traced hidden{"User=0"};
    hidden.does(action::pebs_record{0x1234, groups, 2});
    CHECK(packets(hidden) == "BBP(0,1), BIP(0:1111), BIP(1:FFFFFFFFFFFFFFFF), BBP(1,4), "
                             "BIP(4:A3456789), BEP(IP=0)");
    CHECK(packets(traced{"TraceEn=0"}.does(action::pebs_record{0x1234, groups, 2})) == "none");
    CHECK(packets(traced{}.does(action::pebs_record{0x1234, nullptr, 0})) == "none");
    // A PSB+ does not split a record: GEN-006.
    std::vector<action::pebs_item> many(96);
    for (std::size_t i = 0; i < many.size(); ++i) {
        many[i] = {static_cast<std::uint8_t>(i % 32), i};
    }
    action::pebs_group const one{8, false, many.data(), 90};
    traced more{"PacketByteCnt=7FF, OS=0"};
    more.does(action::pebs_record{0x1234, &one, 1});
    auto const all = packets(more);
    std::size_t items = 0;
    for (auto at = all.find("BIP"); at != std::string::npos; at = all.find("BIP", at + 1)) {
        ++items;
    }
    CHECK(items == 90);
    CHECK(all.find("PSB") > all.find("BEP"));
    CHECK(all.find("PSB") != std::string::npos);
}
