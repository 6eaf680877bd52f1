// SPDX-License-Identifier: BSL-1.0
#include <ptspec/edit/segment.hpp>

#include <support/check_twice.hpp>
#include <support/made_trace.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

using namespace ptspec;
using namespace std::string_view_literals;
using test::made_trace;

namespace {

struct cut_trace {
    edit::segment all[8]{};
    std::size_t count = 0;
    std::uint64_t skipped = 0;

    constexpr explicit cut_trace(byte_view trace) {
        skipped = edit::for_each_segment(trace,
                                         [this](edit::segment const& one) { all[count++] = one; });
    }
};

}  // namespace

TEST_CASE("a segment is a PSB and the packets up to the next PSB (PKT-250)") {
    CHECK_TWICE([](auto value) {
        made_trace const made{value("t psb tsc:1000 cbr end pge6:401000 t psb end tip6:402000"sv)};
        cut_trace const cut{made.view()};
        auto const& first = cut.all[0];
        auto const& second = cut.all[1];
        return cut.count == 2 && cut.skipped == 1 && first.begin == 1 && first.bytes == 38 &&
               first.packets == 6 && first.end() == 39 && first.has_tsc && first.tsc == 0x1000 &&
               first.has_ip && first.ip == 0x40'1000 && !first.is_damaged && second.begin == 39 &&
               second.bytes == 25 && second.packets == 3 && !second.has_tsc &&
               second.ip == 0x40'2000 && second.dropped == 0;
    });
    CHECK_TWICE([](auto value) {
        made_trace const made{value("t t"sv)};
        cut_trace const cut{made.view()};
        return cut.count == 0 && cut.skipped == 2;
    });
}

TEST_CASE("damaged bytes are in the segment before them, but are none of its packets (PKT-252)") {
    CHECK_TWICE([](auto value) {
        made_trace const made{value("psb end t x:c9 t t psb end t x:19"sv)};
        cut_trace const cut{made.view()};
        return cut.count == 2 && cut.all[0].bytes == 19 && cut.all[0].dropped == 3 &&
               cut.all[0].is_damaged && cut.all[1].begin == 22 && cut.all[1].bytes == 19 &&
               cut.all[1].dropped == 1 && cut.all[1].is_damaged;
    });
    CHECK_TWICE([](auto value) {  // an MTC and a TNT have the first bytes of the PSB
        made_trace const made{value("psb end x:59 psb end t"sv)};
        cut_trace const cut{made.view()};
        return cut.count == 2 && cut.all[0].bytes == 21 && cut.all[0].dropped == 0 &&
               cut.all[0].is_damaged && cut.all[1].begin == 19;
    });
}

TEST_CASE("the packets of a segment have their offsets from its PSB (PKT-250)") {
    CHECK_TWICE([](auto value) {
        made_trace const made{value("psb end t psb end tip6:402000 x:c9"sv)};
        cut_trace const cut{made.view()};
        std::uint64_t last = 0;
        unsigned count = 0;
        edit::for_each_packet(made.view(), cut.all[1], [&](trace::item const& item) {
            last = item.offset;
            ++count;
        });
        return count == 3 && last == 18;
    });
}
