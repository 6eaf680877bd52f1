// SPDX-License-Identifier: BSL-1.0
#include <ptspec/edit/rewrite.hpp>

#include <support/check_twice.hpp>
#include <support/facts.hpp>
#include <support/made_trace.hpp>

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

using namespace ptspec;
using namespace std::string_view_literals;
using test::made_trace;

// ------------------------------------------------------------------------------- rebase_tsc

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

// ------------------------------------------------------------------------------- replace_cr3

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

// ------------------------------------------------------------------------------- parts

namespace {

using bytes_t = std::vector<std::uint8_t>;

/// What a rewriting did to the parts of a trace.
struct totals {
    std::uint64_t count = 0;
    std::uint64_t removed = 0;
    std::uint64_t skipped = 0;
    std::size_t kept_back = 0;  ///< of the last part
};

/// Calls `rewrite(pieces)` for parts of a trace that end at these offsets. A part begins with what
/// was kept back, as in a ring whose tail does not move past it. Between two calls the bytes that
/// were not kept back are taken away: they must be final.
template <class Rewrite>
auto in_parts(bytes_t& trace, std::vector<std::size_t> const& ends, Rewrite const& rewrite)
    -> totals {
    totals sum;
    bytes_t taken;
    std::size_t begin = 0;
    for (std::size_t const end : ends) {
        std::size_t const middle = begin + (end - begin) / 2;
        byte_window const pieces[] = {{trace.data() + begin, middle - begin},
                                      {trace.data() + middle, end - middle}};
        auto const got = rewrite(pieces);
        sum.count += got.count;
        if constexpr (requires { got.removed; }) { sum.removed += got.removed; }
        sum.skipped += got.skipped;
        sum.kept_back = got.kept_back;
        auto const at = [&](std::size_t offset) {
            return trace.begin() + static_cast<std::ptrdiff_t>(offset);
        };
        taken.insert(taken.end(), at(begin), at(end - got.kept_back));
        std::fill(at(begin), at(end - got.kept_back), std::uint8_t{0xC9});
        begin = end - got.kept_back;
    }
    taken.insert(taken.end(), trace.begin() + static_cast<std::ptrdiff_t>(begin), trace.end());
    trace = taken;
    return sum;
}

auto bytes_of(std::string_view text) -> bytes_t {
    made_trace const made{text};
    return {made.bytes, made.bytes + made.size};
}

/// Any parts of a trace.
auto any_ends(std::size_t size, std::size_t longest, std::mt19937_64& random)
    -> std::vector<std::size_t> {
    std::vector<std::size_t> ends;
    for (std::size_t end = 0; end < size;) {
        end = std::min(size, end + random() % (longest + 1));
        ends.push_back(end);
    }
    return ends;
}

}  // namespace

TEST_CASE(
    "a trace that comes in parts is changed as in one, wherever it is cut (PRG-175, PKT-080)") {
    constexpr auto text =
        "psb tsc:1000 tma:3 cbr pip0:71000 vmcs:7000 m64 fup6:401000 end t pip0:72000 tip6:401100 "
        "ptw:1 fup2:1103 tsc:1001 x:0000000000 pip1:9000 psb tsc:2000 pip0:71000 end t "
        "pip0:72000"sv;
    auto const whole = bytes_of(text);
    auto wanted = whole;
    trace::tsc_change const change{.offset = 0x234};
    {
        byte_window const all[] = {{wanted.data(), wanted.size()}};
        CHECK(edit::replace_cr3(all, cr3_of_guest).count == 4);
        CHECK(edit::replace_vmcs(all, [](std::uint64_t real) {
                  return edit::guest_address{true, real + 0x1000};
              }).count == 1);
        CHECK(edit::rebase_tsc(all, change).count == 3);
    }
    for (std::size_t one = 16; one <= whole.size(); ++one) {
        for (std::size_t const two : {one, one + 1, one + 9, whole.size()}) {
            auto trace = whole;
            std::vector<std::size_t> const ends = {one, std::min(two, whole.size()), whole.size()};
            edit::trace_parts<packet::pip> cr3;
            edit::trace_parts<packet::vmcs> vmcs;
            edit::trace_parts<packet::tsc> tsc;
            auto const sum = in_parts(trace, ends, [&](edit::trace_pieces part) {
                auto const addresses = replace_vmcs(vmcs, part, [](std::uint64_t real) {
                    return edit::guest_address{true, real + 0x1000};
                });
                auto const times = rebase_tsc(tsc, part, change);
                auto got = replace_cr3(cr3, part, cr3_of_guest);
                if (got.kept_back != addresses.kept_back || got.kept_back != times.kept_back) {
                    got.skipped = 1;
                }
                return got;
            });
            CAPTURE(one);
            CAPTURE(two);
            REQUIRE(trace == wanted);
            REQUIRE(sum.count == 4);
            REQUIRE(sum.removed == 1);
            REQUIRE(sum.skipped == 0);
        }
    }
}

TEST_CASE("a part of a trace as a trace of its own: what is not changed is counted (PKT-255)") {
    auto whole = bytes_of("psb pip0:71000 end t pip0:72000 t pip0:72000");
    byte_window const later[] = {{whole.data() + 26, whole.size() - 26}};
    auto const before = whole;
    auto const got = edit::replace_cr3(later, cr3_of_guest);
    CHECK(!got);
    CHECK(got.skipped == whole.size() - 26);
    CHECK(got.count == 0);
    CHECK(whole == before);
    // In parts no packet is left at the end, and none is cut.
    edit::trace_parts<packet::pip> parts;
    byte_window const first[] = {{whole.data(), 30}};
    auto const of_first = replace_cr3(parts, first, cr3_of_guest);
    CHECK(of_first);
    CHECK(of_first.count == 1);
    CHECK(of_first.kept_back == 3);
    // A part without all that was kept back: the trace was interrupted.
    byte_window const wrong[] = {{whole.data() + 30, 2}};
    auto const interrupted = replace_cr3(parts, wrong, cr3_of_guest);
    CHECK(!interrupted);
    CHECK(interrupted.skipped == 2);
    // From its next PSB on it is changed.
    auto next = bytes_of("t psb pip0:71000 end");
    byte_window const again[] = {{next.data(), next.size()}};
    auto const resumed = replace_cr3(parts, again, cr3_of_guest);
    CHECK(resumed.count == 1);
    CHECK(resumed.skipped == 1);
    CHECK(next == bytes_of("t psb pip0:1000 end"));
}

TEST_CASE("a TMA that cannot be changed changes nothing of its part (PKT-303, PKT-340)") {
    auto trace = bytes_of("psb tsc:1000 end tsc:1001 tma:3 tsc:1001 tma:cd");
    auto const before = trace;
    edit::trace_parts<packet::tsc> parts;
    trace::tsc_change const how{std::uint64_t{5} << 47, 0, 0};
    byte_window const one[] = {{trace.data(), 26}};
    byte_window const two[] = {{trace.data() + 26, trace.size() - 26}};
    CHECK(rebase_tsc(parts, one, {}));
    auto const failed = rebase_tsc(parts, two, how);
    CHECK(failed.broken == rule::PKT_340);
    CHECK(failed.offset == 26 + 8 + 7 + 8);
    CHECK(trace == before);
    auto const done = rebase_tsc(parts, two, {.offset = 1});
    CHECK(done);
    CHECK(done.count == 2);
    CHECK(trace == bytes_of("psb tsc:1000 end tsc:1002 tma:3 tsc:1002 tma:cd"));
}

TEST_CASE(
    "recorded traces in parts of any size lose every address of the host (PRG-175, PKT-082)") {
    std::mt19937_64 random{1};
    auto const other = [](std::uint64_t real) {
        return edit::guest_address{(real >> 12 & 3) != 0, real ^ 0x1234'5000};
    };
    for (auto const* name : {"google-m7-cpu0.pt", "xdc-foo.pt", "xdc-icelake.pt"}) {
        auto const found = test::recorded_trace(name);
        if (!found) { continue; }
        auto const& whole = *found;
        auto wanted = whole;
        byte_window const all[] = {{wanted.data(), wanted.size()}};
        auto const expected = edit::replace_cr3(all, other);
        CHECK(expected.count + expected.removed > 0);
        for (std::size_t const longest : {40U, 500U, 4096U, 100'000U}) {
            auto trace = whole;
            edit::trace_parts<packet::pip> parts;
            auto const sum = in_parts(
                trace, any_ends(whole.size(), longest, random),
                [&](edit::trace_pieces part) { return replace_cr3(parts, part, other); });
            CAPTURE(name);
            CAPTURE(longest);
            CHECK(sum.count == expected.count);
            CHECK(sum.removed == expected.removed);
            CHECK(sum.skipped + sum.kept_back == expected.skipped);
            CHECK((trace == wanted));
        }
    }
}
