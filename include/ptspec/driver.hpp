// SPDX-License-Identifier: BSL-1.0
#pragma once

// For drivers: registers and legality, configurations, tables and output.

#include <ptspec/registers.hpp>
#include <ptspec/tables.hpp>
#include <ptspec/access/pmi.hpp>
#include <ptspec/config/check_config.hpp>
#include <ptspec/config/perf_config.hpp>
