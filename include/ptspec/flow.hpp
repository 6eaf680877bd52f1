// SPDX-License-Identifier: BSL-1.0
#pragma once

// The executed instructions of a trace.

#include <ptspec/flow/block_counts.hpp>
#include <ptspec/flow/call_stack.hpp>
#include <ptspec/flow/parts.hpp>
#include <ptspec/flow/walker.hpp>
