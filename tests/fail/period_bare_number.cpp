// SPDX-License-Identifier: BSL-1.0
// expect: deleted
// expect: psb_period
// expect: of_bytes(n), or encoded(n)
#include <ptspec/config/trace_config.hpp>

using namespace ptspec::cpu;
using namespace ptspec::config;

// PSBFreq 8192 would be truncated to the bits that fit: 0.
#ifndef SHOULD_FAIL
constexpr trace_config wanted{.psb_every = psb_period::of_bytes(8192)};
#else
constexpr trace_config wanted{.psb_every = 8192};
#endif
static_assert(wanted.psb_every.bytes() == 8192);
