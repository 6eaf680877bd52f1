// SPDX-License-Identifier: BSL-1.0
#pragma once

// What happened in a trace, and when.

#include <ptspec/cpu/quirks.hpp>
#include <ptspec/cpu/code_segment.hpp>
#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/clock_options_of.hpp>
#include <ptspec/trace/event_name.hpp>
#include <ptspec/trace/events.hpp>
#include <ptspec/trace/time_conversion.hpp>
