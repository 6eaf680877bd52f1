// SPDX-License-Identifier: BSL-1.0
#include <ptspec/edit/replace_values.hpp>

#include <ptspec/trace/reader.hpp>

#include <support/check_twice.hpp>
#include <support/made_trace.hpp>

#include <cstdint>
#include <string_view>

using namespace ptspec;
using namespace std::string_view_literals;
using edit::value_change;
using test::made_trace;

namespace {

/// Adds another number to each kind of value.
struct adding {
    constexpr auto ip(std::uint64_t value) -> std::uint64_t { return value + 0x10'0000; }
    constexpr auto cr3(std::uint64_t value) -> std::uint64_t { return value + 0x2000; }
    constexpr auto vmcs(std::uint64_t value) -> std::uint64_t { return value + 0x3000; }
    constexpr auto tsc(std::uint64_t value) -> std::uint64_t { return value - 0x1000; }
};

/// A trace after its values were replaced is another one.
constexpr auto replaced(std::string_view text, edit::value_changes const& changes,
                        std::string_view wanted) -> bool {
    made_trace const made{text};
    made_trace const expected{wanted};
    trace::reader original{made.view(), {.sync = false}};
    trace::reader other{expected.view(), {.sync = false}};
    adding maps;
    for (auto item = original.next(); item; item = original.next()) {
        auto const got = other.next();
        if (edit::replace_values(item, changes, maps) != got.packet) { return false; }
    }
    return !other.next();
}

constexpr edit::value_changes all_mapped{.ip = value_change::map,
                                         .cr3 = value_change::map,
                                         .vmcs = value_change::map,
                                         .tsc = value_change::map,
                                         .ptw = value_change::map,
                                         .evd = value_change::map,
                                         .bip = value_change::map,
                                         .mnt = value_change::map,
                                         .mwait = value_change::map};
constexpr edit::value_changes all_zero{.ip = value_change::zero,
                                       .cr3 = value_change::zero,
                                       .vmcs = value_change::zero,
                                       .tsc = value_change::zero,
                                       .ptw = value_change::zero,
                                       .evd = value_change::zero,
                                       .bip = value_change::zero,
                                       .mnt = value_change::zero,
                                       .mwait = value_change::zero};

constexpr auto addresses =
    "psb tsc:1234 tma:5 cbr pip1:7000 vmcs:8000 m64 fup6:401000 end t tip2:1100 pgd tip4:401234"sv;
// EVD of a page fault and of a VM exit, PTW, MNT, MWAIT, and a block with a BIP of 8 bytes.
constexpr auto data = "psb end evd:0 evd:2 ptw:1234 x:88c302 x:8877665544332211 x:c202 "
                      "x:0000000100000010 x:016302 x:04 x:0807060504030201 x:3302"sv;

}  // namespace

TEST_CASE("values are mapped, and IPs stay compressed (PKT-053, PKT-080, PKT-100, PKT-162)") {
    CHECK_TWICE([](auto value) {
        return replaced(value(addresses), {}, addresses) &&
               replaced(value(addresses), all_mapped,
                        "psb tsc:234 tma:5 cbr pip1:9000 vmcs:b000 m64 fup6:501000 end t tip2:1100 "
                        "pgd tip4:501234") &&
               replaced(value(addresses), all_zero,
                        "psb tsc:0 tma:5 cbr pip1:0 vmcs:0 m64 fup6:0 end t tip2:0 pgd tip4:0");
    });
    CHECK_TWICE([](auto value) {  // no VMCS is loaded
        constexpr auto none = "psb x:02c8ffffffffff end"sv;
        return replaced(value(none), all_mapped, none) && replaced(value(none), all_zero, none);
    });
}

TEST_CASE("data become 0, but a mapped page fault has the address of an IP (PKT-164, GEN-301)") {
    CHECK_TWICE([](auto value) {
        return replaced(value(data), {}, data) &&
               replaced(value(data), all_zero,
                        "psb end x:005302 x:0000000000000000 x:025302 x:0000000000000000 ptw:0 "
                        "x:88c302 x:0000000000000000 x:c202 x:0000000000000000 x:016302 x:04 "
                        "x:0000000000000000 x:3302") &&
               replaced(value(data), all_mapped,
                        "psb end x:005302 x:0000000011323344 x:025302 x:0000000000000000 ptw:0 "
                        "x:88c302 x:0000000000000000 x:c202 x:0000000000000000 x:016302 x:04 "
                        "x:0000000000000000 x:3302");
    });
}

TEST_CASE("an IP is replaced as in its packet (PKT-053)") {
    CHECK_TWICE([](auto value) {
        adding maps;
        auto const ip = value(std::uint64_t{0x1234});
        return edit::replaced_ip(ip, value_change::keep, maps) == 0x1234 &&
               edit::replaced_ip(ip, value_change::zero, maps) == 0 &&
               edit::replaced_ip(ip, value_change::map, maps) == 0x10'1234;
    });
}
