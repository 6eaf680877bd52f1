// SPDX-License-Identifier: BSL-1.0
// Time from TSC, TMA and MTC packets, and its conversion to nanoseconds.
#include <ptspec/trace/crystal_edge.hpp>
#include <ptspec/trace/time_conversion.hpp>

using namespace ptspec::trace;
using detail::crystal_edge;

namespace {

/// The times of two MTCs after a TSC and its TMA, where TSC / crystal = B / A.
template <uint32_t A, uint32_t B>
void times(uint8_t freq, uint64_t tsc, uint16_t ctc, uint16_t fc, uint8_t one, uint8_t two,
           uint64_t (&to)[3]) {
    crystal_edge edge{B, A, freq};
    edge.start(tsc, ctc, fc);
    to[0] = edge.base();
    edge.resolve_upper_bits(edge.ctc_of(one));
    edge.advance(edge.ctc_of(one));
    to[1] = edge.base();
    edge.advance(edge.ctc_of(two));
    to[2] = edge.base();
}

template <uint64_t Hz>
auto ns(uint64_t tsc, uint64_t zero) -> uint64_t {
    constexpr auto of_tsc = time_conversion::of_frequency(Hz);
    return time_conversion{of_tsc.shift, of_tsc.mult, zero}.time_of(tsc);
}

}  // namespace

extern "C" {

uint32_t periods(uint8_t freq, uint32_t from, uint32_t mtc, uint32_t (&to)[2]) {
    crystal_edge edge{84, 2, freq};
    edge.start_at(from);
    uint32_t const found = edge.advance(edge.ctc_of(mtc));
    to[0] = edge.ctc();
    to[1] = edge.mtc_of(from);
    return found;
}
void regular_periods(uint8_t freq, uint64_t tsc, uint16_t ctc, uint16_t fc, uint8_t mtc,
                     uint64_t (&to)[6]) {
    crystal_edge one{84, 2, freq};
    one.start(tsc, ctc, fc);
    one.resolve_upper_bits(one.ctc_of(mtc));
    one.advance(one.ctc_of(mtc));
    crystal_edge two = one;
    to[0] = one.advance(one.ctc_of(mtc + 7U & 0xFF));
    to[1] = one.base();
    to[2] = one.ctc();
    to[3] = two.advance_regular(mtc + 7U & 0xFF);
    to[4] = two.base();
    to[5] = two.ctc();
}
bool next_may_be(uint8_t freq, uint16_t ctc, uint16_t mtc) {
    crystal_edge edge{84, 2, freq};
    edge.start(0, ctc, 0);
    return edge.next_may_be(mtc);
}
void times_2_84(uint8_t freq, uint64_t tsc, uint16_t ctc, uint16_t fc, uint8_t one, uint8_t two,
                uint64_t (&to)[3]) {
    times<2, 84>(freq, tsc, ctc, fc, one, two, to);
}
void times_2_176(uint8_t freq, uint64_t tsc, uint16_t ctc, uint16_t fc, uint8_t one, uint8_t two,
                 uint64_t (&to)[3]) {
    times<2, 176>(freq, tsc, ctc, fc, one, two, to);
}
void times_2_83(uint8_t freq, uint64_t tsc, uint16_t ctc, uint16_t fc, uint8_t one, uint8_t two,
                uint64_t (&to)[3]) {
    times<2, 83>(freq, tsc, ctc, fc, one, two, to);
}
uint64_t tsc_near(uint64_t low_56, uint64_t near_by) {
    return ptspec::trace::tsc_near(low_56, near_by);
}
// The crystal of 24 MHz by 84 / 2 and 176 / 2.
uint64_t ns_at_1008_mhz(uint64_t tsc, uint64_t zero) { return ns<1'008'000'000>(tsc, zero); }
uint64_t ns_at_2112_mhz(uint64_t tsc, uint64_t zero) { return ns<2'112'000'000>(tsc, zero); }

}  // extern "C"
