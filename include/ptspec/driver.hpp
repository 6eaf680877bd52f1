// SPDX-License-Identifier: BSL-1.0
#pragma once

// For drivers: registers and legality, configurations, tables and output, and the procedures of a
// driver over ports.

#include <ptspec/registers.hpp>
#include <ptspec/topa.hpp>
#include <ptspec/access/pmi.hpp>
#include <ptspec/config/perf_config.hpp>
#include <ptspec/driver/detect.hpp>
#include <ptspec/driver/pause.hpp>
#include <ptspec/driver/switch_context.hpp>
#include <ptspec/driver/topa_pmi.hpp>
#include <ptspec/driver/drain.hpp>
#include <ptspec/driver/reset.hpp>
