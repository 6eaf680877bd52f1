// SPDX-License-Identifier: BSL-1.0
// Fuzzes what happened and when: a trace as a whole and in chunks, with any constants of the clock
// and any errata. The events must be the same, have sensible bounds, and agree with the packets
// that a reader finds.
//
//   byte 0       bits 3:0 MTCFreq, bits 7:4 CycThresh
//   byte 1       MaxNonTurboRatio
//   2 x 2 bytes  numerator and denominator of the ratio of the clocks
//   byte 6       bit 0 monotonic, bits 7:4 the number of chunk sizes
//   2 bytes      errata, from `bdm70` on
//   a byte each  the sizes of the chunks; the last chunk is the rest
//   the rest     the trace

#include <algorithm>
#include <memory>
#include <vector>

#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/events.hpp>

#include <support/chunks.hpp>

#include <fuzz/check.hpp>

namespace {

using fuzz::require;
using namespace ptspec;
using trace::event;
using trace::event_type;

struct setting {
    trace::clock_options how;
    cpu::quirk_set quirks;
    std::vector<size_t> sizes;
    byte_view bytes;
};

auto setting_of(fuzz::input from) -> setting {
    setting made;
    uint8_t const periods = from.byte();
    made.how.mtc_freq = periods & 15;
    made.how.cyc_thresh = periods >> 4;
    made.how.max_non_turbo_ratio = from.byte();
    made.how.tsc_numerator = from.byte() | from.byte() << 8U;
    made.how.tsc_denominator = from.byte() | from.byte() << 8U;
    uint8_t const more = from.byte();
    made.how.monotonic = (more & 1) != 0;
    made.quirks.bits = (from.byte() | from.byte() << 8U) << 9U;
    made.how.quirks = made.quirks;
    for (unsigned i = 0; i < more >> 4U; ++i) { made.sizes.push_back(from.byte()); }
    made.bytes = from.rest();
    return made;
}

using reader = trace::event_reader<trace::clock>;

auto same(event const& one, event const& two) -> bool {
    return one.what == two.what && one.has_ip == two.has_ip && one.has_to == two.has_to &&
           one.is_status == two.is_status && one.broken == two.broken &&
           one.skipped == two.skipped && one.offset == two.offset && one.ip == two.ip &&
           one.to == two.to && one.packet == two.packet && one.when == two.when;
}

/// All events of a trace, and the end.
auto events_of(setting const& how) -> std::vector<event> {
    auto const from = std::make_unique<reader>(how.bytes, trace::clock{how.how}, how.quirks);
    std::vector<event> all;
    do { all.push_back(from->next()); } while (all.back());
    return all;
}

void check_chunks(setting const& how, std::vector<event> const& whole) {
    auto const from = std::make_unique<reader>(trace::clock{how.how}, how.quirks);
    ptspec::test::chunks rest{how.bytes};
    size_t chunk = 0;
    for (event const& expected : whole) {
        event got = from->next();
        while (got.what == event_type::need_input) {
            size_t const size = chunk < how.sizes.size() ? how.sizes[chunk] : rest.rest.size();
            ++chunk;
            require(rest.feed(*from, size), "a chunk is taken");
            got = from->next();
        }
        require(same(got, expected), "the same events in chunks");
    }
}

/// Events with the time of their own packet, in the order of their packets, have times that do not
/// decrease, if the clock is monotonic.
void check_times(setting const& how, std::vector<event> const& whole) {
    std::vector<event const*> in_order;
    event const* async = nullptr;  // the last one, if only its PIP, VMCS and MODE.Exec followed
    for (event const& one : whole) {
        require(one.when.earliest <= one.when.latest, "the bounds are in order");
        bool const is_async = one.what == event_type::async_branch ||
                              one.what == event_type::async_disabled;
        bool const may_be_part = one.what == event_type::paging || one.what == event_type::vmcs ||
                                 one.what == event_type::exec_mode;
        // A part of a compound event has the time of the TIP that ends it.
        bool const is_part = async != nullptr && may_be_part && one.when == async->when;
        async = is_async ? &one : is_part ? async : nullptr;
        bool const has_other_time = one.is_status || one.what == event_type::end || is_async ||
                                    is_part ||
                                    (one.what == event_type::damage && one.packet.length() == 0);
        if (!has_other_time) { in_order.push_back(&one); }
        if (how.how.monotonic || one.what == event_type::end) { continue; }
        require(one.when.earliest <= one.when.tsc && one.when.tsc <= one.when.latest,
                "an estimate is within its bounds");
    }
    if (!how.how.monotonic) { return; }
    std::sort(in_order.begin(), in_order.end(), [](auto const* one, auto const* two) {
        return one->offset != two->offset ? one->offset < two->offset : one < two;
    });
    for (size_t i = 1; i < in_order.size(); ++i) {
        require(in_order[i - 1]->when.tsc <= in_order[i]->when.tsc, "times do not decrease");
    }
}

/// The TNTs of the packets are those of the events, in order, and so are the TIPs of branches.
void check_packets(setting const& how, std::vector<event> const& whole) {
    if (how.quirks.bits != 0) { return; }
    trace::reader from{how.bytes, trace::reader_options{.sync = true}};
    auto next = from.next();
    for (event const& one : whole) {
        if (one.what != event_type::branches && one.what != event_type::indirect_branch) {
            continue;
        }
        bool const is_empty = one.what == event_type::branches && one.branches().count == 0;
        require(!is_empty, "a TNT has branches");
        while (next && next.offset != one.offset) {
            require(!next.packet.is<packet::tnt_short>() && !next.packet.is<packet::tnt_long>(),
                    "each TNT has an event");
            next = from.next();
        }
        require(next && next.what == trace::item_type::packet && next.packet == one.packet,
                "an event has its packet");
        if (one.has_to) { require(next.ip == one.to, "a target is the IP of its TIP"); }
        next = from.next();
    }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    auto const how = setting_of({data, size});
    auto const whole = events_of(how);
    require(whole.size() <= 3 * how.bytes.size() + 4, "the number of events is bounded");
    check_chunks(how, whole);
    check_times(how, whole);
    check_packets(how, whole);
    return 0;
}
