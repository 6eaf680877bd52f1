// SPDX-License-Identifier: BSL-1.0
#pragma once

// The model: a logical processor's trace unit, its packets and its output, and a processor with
// such a unit, CPUID and MSRs for tests of drivers.

#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/engine/unit_image.hpp>
#include <ptspec/engine/output/explain.hpp>
#include <ptspec/base/host_memory.hpp>
#include <ptspec/cpu/presets.hpp>
