// SPDX-License-Identifier: BSL-1.0
// Times of a trace that a processor made: MTCs show which of the bounds before them are right.
#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/reader.hpp>

#include <support/facts.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using namespace ptspec;

namespace {

/// The MTCs that the CYCs since the last TSC, or since the last MTC, predict, and those whose edge
/// is outside of the bounds.
struct predicted_mtcs {
    uint64_t from_tsc = 0;
    uint64_t from_mtc = 0;
    uint64_t outside_from_tsc = 0;
    uint64_t outside_from_mtc = 0;
};

auto predict(byte_view bytes, trace::clock_options const& how) -> predicted_mtcs {
    predicted_mtcs all;
    trace::clock clock{how};
    bool is_after_mtc = false;
    bool has_cyc = false;  // since the last TSC or MTC
    trace::reader from{bytes};
    while (auto const one = from.next()) {
        auto const before = clock.now();
        (void)clock.add(one.packet);
        has_cyc |= one.packet.is<packet::cyc>();
        if (one.packet.is<packet::mtc>()) {
            auto const edge = clock.now().tsc;
            bool const is_outside = edge < before.earliest || edge > before.latest;
            // An MTC between the TSC and its TMA is no edge.
            if (has_cyc && edge != before.tsc && before.latest != trace::time::unbounded) {
                (is_after_mtc ? all.from_mtc : all.from_tsc) += 1;
                (is_after_mtc ? all.outside_from_mtc : all.outside_from_tsc) += is_outside ? 1 : 0;
            }
        }
        if (one.packet.is<packet::mtc>() || one.packet.is<packet::tsc>()) {
            is_after_mtc = one.packet.is<packet::mtc>();
            has_cyc = false;
        }
    }
    return all;
}

}  // namespace

TEST_CASE("the bounds that CYCs give contain the edges of the MTCs that a processor sent "
          "(GEN-201, PKT-320)") {
    auto const bytes = test::recorded_trace("dr-hello-dyn.pt");
    if (!bytes) { return; }
    byte_view const view{bytes->data(), bytes->size()};
    // The constants of the processor: TSC - FC of its two TMAs, and a bus clock of 100 MHz.
    trace::clock_options how{
        .mtc_freq = 3, .max_non_turbo_ratio = 37, .tsc_numerator = 308, .tsc_denominator = 2};
    auto const exact = predict(view, how);
    CHECK(exact.from_mtc > 1000);
    CHECK(exact.outside_from_mtc == 0);
    CHECK(exact.outside_from_tsc == exact.from_tsc);  // TSC packets are older than their CYC
    how.tsc_age = 154;
    auto const aged = predict(view, how);
    CHECK(aged.from_tsc == 2);
    CHECK(aged.outside_from_tsc == 0);
    CHECK(aged.outside_from_mtc == 0);
}
