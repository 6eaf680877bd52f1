// SPDX-License-Identifier: BSL-1.0
#include <ptspec/edit/replace_addresses.hpp>

#include <support/check_twice.hpp>
#include <support/made_trace.hpp>

#include <string_view>

using namespace ptspec;
using namespace std::string_view_literals;
using test::made_trace;

namespace {

/// Shadow paging: the tables of the guest's CR3 are at CR3 + 70000H in the host, for three of them.
constexpr auto cr3_of_guest(std::uint64_t real) -> edit::guest_address {
    std::uint64_t const guest = real - 0x7'0000;
    return {guest == 0x1000 || guest == 0x2000 || guest == 0xF'FFFF'FFF0'1020, guest};
}

/// The PIPs of a trace after `replace_cr3` as the trace that is wanted.
constexpr auto replaced(std::string_view text, std::string_view wanted, std::uint64_t count,
                        std::uint64_t removed = 0, std::uint64_t skipped = 0) -> bool {
    made_trace trace{text};
    byte_window const all[] = {{trace.bytes, trace.size / 2},
                               {trace.bytes + trace.size / 2, trace.size - trace.size / 2}};
    auto const got = edit::replace_cr3(all, cr3_of_guest);
    return trace.view() == made_trace{wanted}.view() && got.count == count &&
           got.removed == removed && got.skipped == skipped &&
           static_cast<bool>(got) == (removed == 0 && skipped == 0);
}

}  // namespace

TEST_CASE("with shadow paging each PIP gets the CR3 of the guest (PRG-175, PKT-080)") {
    CHECK_TWICE([](auto value) {
        return replaced(value("psb cbr pip0:71000 m64 fup6:401000 end t pip0:72000 tip6:401100"sv),
                        "psb cbr pip0:1000 m64 fup6:401000 end t pip0:2000 tip6:401100", 2) &&
               replaced(value("psb pip1:ffffffff71020 end"sv), "psb pip1:ffffffff01020 end", 1) &&
               replaced(value("psb tsc:1000 end t"sv), "psb tsc:1000 end t", 0);
    });
    CHECK_TWICE([](auto value) {  // an address of the host is not shown
        return replaced(value("psb pip0:71000 end t pip0:9000 tip6:401100"sv),
                        "psb pip0:1000 end t x:0000000000000000 tip6:401100", 1, 1);
    });
    CHECK_TWICE([](auto value) {  // bytes before the first PSB, and damage
        return replaced(value("pip0:71000 psb pip0:71000 end x:c9 pip0:71000 psb pip0:72000"sv),
                        "pip0:71000 psb pip0:1000 end x:c9 pip0:71000 psb pip0:2000", 2, 0,
                        8 + 9) &&
               // A packet that the trace ends in.
               replaced(value("psb pip0:71000 end t x:010000024302"sv),
                        "psb pip0:1000 end t x:010000024302", 1, 0, 6);
    });
    CHECK_TWICE([](auto value) {  // a PIP that was cut ends in the bytes of a PSB
        return replaced(value("psb pip0:71000 end x:4302 psb pip0:72000 end"sv),
                        "psb pip0:1000 end x:0000 psb pip0:2000 end", 2, 1);
    });
}

TEST_CASE("each VMCS packet gets the address of the guest's VMCS (PKT-162, GEN-278)") {
    CHECK_TWICE([](auto value) {
        made_trace trace{value("psb cbr pip1:1000 vmcs:7000 end t vmcs:8000 pip0:1000"sv)};
        byte_window const all[] = {{trace.bytes, trace.size}};
        auto const got = edit::replace_vmcs(
            all, [](std::uint64_t real) { return edit::guest_address{real == 0x7000, 0x12'3000}; });
        return got.count == 1 && got.removed == 1 &&
               trace.view() ==
                   made_trace{"psb cbr pip1:1000 vmcs:123000 end t x:00000000000000 pip0:1000"}
                       .view();
    });
}
