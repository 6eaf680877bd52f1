// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports/perf_event/follow.hpp>
#include <ptspec/ports/perf_event/program.hpp>

/// Traces running programs on Linux by perf_event_open(2), without perf.
