// SPDX-License-Identifier: BSL-1.0
#include <ptspec/edit/rebase_tsc.hpp>

#include <support/check_twice.hpp>
#include <support/made_trace.hpp>

#include <string_view>

using namespace ptspec;
using namespace std::string_view_literals;
using test::made_trace;

namespace {

constexpr auto rebased(std::string_view before, trace::tsc_change how, std::string_view after,
                       std::uint64_t skipped = 0) -> bool {
    made_trace trace{before};
    byte_window const all[] = {{trace.bytes, trace.size}};
    auto const got = edit::rebase_tsc(all, how);
    return got.broken == rule::none && got.skipped == skipped &&
           static_cast<bool>(got) == (skipped == 0) && trace.view() == made_trace{after}.view();
}
constexpr auto refused(std::string_view text, trace::tsc_change how) -> edit::rebased_tsc {
    made_trace trace{text};
    byte_window const all[] = {{trace.bytes, trace.size}};
    auto const got = edit::rebase_tsc(all, how);
    return !got && trace.view() == made_trace{text}.view() ? got : edit::rebased_tsc{};
}

}  // namespace

TEST_CASE("a TSC offset changes TSC packets modulo 2^56, and nothing else (PRG-175, GEN-209, "
          "PKT-100, PKT-317)") {
    CHECK_TWICE([](auto value) {
        return rebased("psb tsc:1000 tma:50 cbr mtc:47 cyc:5 end t mtc:48",
                       {.offset = value(std::uint64_t{0x234})},
                       "psb tsc:1234 tma:50 cbr mtc:47 cyc:5 end t mtc:48") &&
               rebased("psb tsc:ffffffffffffff end tsc:10", {.offset = value(std::uint64_t{0x11})},
                       "psb tsc:10 end tsc:21") &&
               rebased("psb tsc:10 end", {.offset = 0 - value(std::uint64_t{0x11})},
                       "psb tsc:ffffffffffffff end");
    });
    CHECK_TWICE([](auto value) {  // bytes before the first PSB, and damage
        return rebased("tsc:1000 psb tsc:1000 end x:c9 tsc:1000 psb tsc:2000 x:19",
                       {.offset = value(std::uint64_t{1})},
                       "tsc:1000 psb tsc:1001 end x:c9 tsc:1000 psb tsc:2001 x:19", 8 + 9 + 1);
    });
    CHECK_TWICE([](auto value) {  // a TSC that was cut ends in the bytes of a PSB
        return rebased("psb tsc:1000 end x:19000000 psb tsc:2000 end",
                       {.offset = value(std::uint64_t{0x10'0000'0000})},
                       "psb tsc:1000001000 end x:19000000 psb tsc:1000002000 end");
    });
}

TEST_CASE("rebase_tsc counts the TSC packets (PKT-100)") {
    CHECK_TWICE([](auto value) {
        made_trace trace{value("psb tsc:1000 tma:50 cbr end tsc:1001 pip0:19000 tsc:1002"sv)};
        byte_window const all[] = {{trace.bytes, trace.size}};
        return edit::rebase_tsc(all, {.offset = 5}).count == 3 &&
               edit::rebase_tsc(all, {.multiplier = std::uint64_t{1} << 47}).count == 3;
    });
}

TEST_CASE("a TSC multiplier has 48 bits of fraction and needs all 64 bits of the TSC (REG-133, "
          "PKT-315)") {
    CHECK_TWICE([](auto value) {
        auto const of = [&](std::uint64_t multiplier, std::uint64_t tsc) {
            return trace::tsc_change{value(multiplier), 0, 0}.of(value(tsc));
        };
        constexpr std::uint64_t one = std::uint64_t{1} << 48;
        return of(one, 0xFEDC'BA98'7654'3210) == 0xFEDC'BA98'7654'3210 &&
               of(3 * one / 2, 0x1000'0000'0000'0001) == 0x1800'0000'0000'0001 &&
               of(one / 2, 7) == 3 && of(one + 1, one) == one + 1 &&
               of(~0ULL, 0x1'0000) == 0xFFFF'FFFF &&
               of(0xFFFF'FFFF'0000, 0x1'0000'0000) == 0xFFFF'FFFF &&
               of(0x0001'8000'0001'0000, 0xFFFF'FFFF'FFFF'FFFF) == 0x8000'0000'FFFF'FFFE;
    });
    CHECK_TWICE([](auto value) {
        // 3 * 2^56 + 100H, doubled and a half: 2.5 * 3 * 2^56 = 7.5 * 2^56, and 280H.
        trace::tsc_change const how{value(std::uint64_t{5} << 47), 0, std::uint64_t{3} << 56};
        return rebased("psb tsc:100 end", how, "psb tsc:80000000000280 end") &&
               rebased("psb tsc:100 end", {.multiplier = std::uint64_t{5} << 47},
                       "psb tsc:280 end") &&
               // Each TSC is near the one before it: 2^56 - 1, then 2^56.
               rebased(
                   "psb tsc:ffffffffffffff tsc:0 end",
                   {.multiplier = std::uint64_t{5} << 47, .near_by = (std::uint64_t{1} << 56) - 1},
                   "psb tsc:7ffffffffffffd tsc:80000000000000 end");
    });
}

TEST_CASE("with a multiplier FC changes so that TSC - FC is scaled as a TSC (PKT-300, PKT-303)") {
    CHECK_TWICE([](auto value) {
        trace::tsc_change const how{value(std::uint64_t{5} << 47), 0x7, 0};
        // 4097 * 2.5 = 10242.5; the edge, 4094 * 2.5 = 10235, is 7 ticks before 10242. And so on.
        return rebased("psb tsc:1001 tma:3 end", how, "psb tsc:2809 tma:7 end") &&
               rebased("psb tsc:1002 mtc:5 tma:2 end", how, "psb tsc:280c mtc:5 tma:5 end") &&
               rebased("psb tsc:1000 tma:cc end", how, "psb tsc:2807 tma:1fe end");
    });
    CHECK_TWICE([](auto value) {
        trace::tsc_change const how{value(std::uint64_t{5} << 47), 0, 0};
        // 10242 - 3892 * 2.5 = 512, which is refused; so is the TMA without a TSC after it.
        auto const wide = refused("psb tsc:1000 tma:10 tsc:1001 tma:cd tma:1 end", how);
        auto const alone = refused("psb tma:10 end", how);
        auto const second = refused("psb tsc:1000 tma:10 tma:10 end tsc:1", how);
        return wide.broken == rule::PKT_340 && wide.offset == 39 && alone.broken == rule::PKT_303 &&
               alone.offset == 16 && second.broken == rule::PKT_303 && second.offset == 31;
    });
}
