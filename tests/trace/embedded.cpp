// SPDX-License-Identifier: BSL-1.0
#include <doctest/doctest.h>

#include <ptspec/trace/reader.hpp>

#include <cstdint>

// A trace of 19 KB, with the sums of its listing (embed_trace.py).
#include <embedded_trace.hpp>

using namespace ptspec;

namespace {

/// A visitor that sums up packets and IPs.
struct sums {
    uint64_t packets = 0;
    uint64_t checksum = 0;
    uint64_t by_kind[packet::kind_count] = {};

    template <packet::packet_type Packet>
    constexpr void operator()(Packet const& packet, trace::packet_place where) {
        packets += 1;
        by_kind[underlying(Packet::about.id)] += 1;
        if constexpr (derived_from<Packet, packet::ip_packet<Packet>>) {
            if (packet.has_ip()) { checksum = checksum * 31 + where.ip; }
        }
    }
};

constexpr auto is_golden(sums const& found) -> bool {
    for (unsigned i = 0; i < packet::kind_count; ++i) {
        if (found.by_kind[i] != golden_by_kind[i]) { return false; }
    }
    return found.packets == golden_packets && found.checksum == golden_checksum;
}

constexpr auto read_it(byte_view trace) -> sums {
    sums found;
    (void)trace::reader{trace}.for_each<packet::all>(found);
    return found;
}

// Within the compilers' default limits: 1 048 576 steps of clang, 33 554 432 operations of g++.
static_assert(is_golden(read_it(embedded_trace)));

}  // namespace

TEST_CASE("a trace decodes to its golden sums, in a constant expression and at run time") {
    CHECK(golden_packets == 13225);
    CHECK(is_golden(read_it(embedded_trace)));
}
