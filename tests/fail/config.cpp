// SPDX-License-Identifier: BSL-1.0
/// Configurations and periods

#include <ptspec/config/trace_config.hpp>
#include <ptspec/cpu/periods.hpp>

using namespace ptspec;
using namespace ptspec::cpu;
using namespace ptspec::config;

namespace period_bare_number {
/// Bytes, or an encoding? As an encoding, 8192 would be truncated to the bits that fit: 0.
// expect: deleted
// expect: psb_period
// expect: of_bytes(n), or encoded(n)
#ifndef SHOULD_FAIL
constexpr trace_config wanted{.psb_every = psb_period::of_bytes(8192)};
#else
constexpr trace_config wanted{.psb_every = 8192};
#endif
static_assert(wanted.psb_every.bytes() == 8192);
}  // namespace period_bare_number

namespace period_bare_number_in_braces {
/// Crystal cycles, or an encoding?
// expect: deleted
// expect: mtc_period
// expect: of_crystal_cycles(n), or encoded(n)
#ifndef SHOULD_FAIL
constexpr trace_config wanted{.mtc_every = mtc_period::encoded(3)};
#else
constexpr trace_config wanted{.mtc_every = {3}};
#endif
static_assert(wanted.mtc_every.crystal_cycles() == 8);
}  // namespace period_bare_number_in_braces

namespace period_of_another_kind {
/// A period of PSBs is no threshold of cycles.
// expect: cyc_threshold
// expect: psb_period
#ifndef SHOULD_FAIL
constexpr trace_config wanted{.cyc_after = cyc_threshold::encoded(2)};
#else
constexpr trace_config wanted{.cyc_after = psb_period::encoded(2)};
#endif
static_assert(wanted.cyc_after.cycles() == 2);
}  // namespace period_of_another_kind

namespace period_psb_not_a_power_of_two {
/// No PSBFreq encodes 10000 bytes.
// expect: a_PSB_period_is_a_power_of_two_from_2_KB_to_64_MB
#ifndef SHOULD_FAIL
constexpr auto period = psb_period::of_bytes(8192);
#else
constexpr auto period = psb_period::of_bytes(10000);
#endif
static_assert(period.encoding() == 2);
}  // namespace period_psb_not_a_power_of_two

namespace period_psb_too_short {
/// The shortest period of PSBs is 2 KB.
// expect: a_PSB_period_is_a_power_of_two_from_2_KB_to_64_MB
#ifndef SHOULD_FAIL
constexpr auto period = psb_period::of_bytes(2048);
#else
constexpr auto period = psb_period::of_bytes(1024);
#endif
static_assert(period.encoding() == 0);
}  // namespace period_psb_too_short

namespace period_mtc_too_long {
/// The longest period of MTCs is 32768 crystal cycles.
// expect: an_MTC_period_is_a_power_of_two_up_to_32768_crystal_cycles
#ifndef SHOULD_FAIL
constexpr auto period = mtc_period::of_crystal_cycles(32768);
#else
constexpr auto period = mtc_period::of_crystal_cycles(65536);
#endif
static_assert(period.encoding() == 15);
}  // namespace period_mtc_too_long

namespace period_cyc_not_a_power_of_two {
/// No CycThresh encodes 100 cycles.
// expect: a_CYC_threshold_is_0_or_a_power_of_two_up_to_16384_cycles
#ifndef SHOULD_FAIL
constexpr auto period = cyc_threshold::of_cycles(64);
#else
constexpr auto period = cyc_threshold::of_cycles(100);
#endif
static_assert(period.encoding() == 7);
}  // namespace period_cyc_not_a_power_of_two

namespace period_encoding_too_large {
/// An encoding has 4 bits.
// expect: an_encoding_is_0_to_15
#ifndef SHOULD_FAIL
constexpr auto period = psb_period::encoded(15);
#else
constexpr auto period = psb_period::encoded(16);
#endif
static_assert(period.encoding() == 15);
}  // namespace period_encoding_too_large

namespace period_encoding_negative {
/// An encoding is not negative.
// expect: an_encoding_is_0_to_15
#ifndef SHOULD_FAIL
constexpr auto period = mtc_period::encoded(0);
#else
constexpr auto period = mtc_period::encoded(-1);
#endif
static_assert(period.encoding() == 0);
}  // namespace period_encoding_negative

namespace period_at_run_time {
/// A number of bytes known only at run time: `try_of_bytes`.
// expect: a_run_time_number_needs_a_function_that_begins_with_try
#ifndef SHOULD_FAIL
auto every(uint64_t bytes) { return cpu::psb_period::try_of_bytes(bytes).period; }
#else
auto every(uint64_t bytes) { return cpu::psb_period::of_bytes(bytes); }
#endif
}  // namespace period_at_run_time

namespace period_encoding_at_run_time {
/// An encoding known only at run time: `try_encoded`.
// expect: a_run_time_number_needs_a_function_that_begins_with_try
#ifndef SHOULD_FAIL
auto every(uint64_t n) { return cpu::psb_period::try_encoded(n).period; }
#else
auto every(uint64_t n) { return cpu::psb_period::encoded(n); }
#endif
}  // namespace period_encoding_at_run_time
