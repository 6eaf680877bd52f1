// SPDX-License-Identifier: BSL-1.0
#pragma once

// Registers and legality: every hardware word, real processors, what an access to an MSR does, and
// configurations.

#include <ptspec/reg/list.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/cpu/compare.hpp>
#include <ptspec/access/trigger.hpp>
#include <ptspec/access/paths.hpp>
#include <ptspec/access/lbr.hpp>
#include <ptspec/access/resets.hpp>
#include <ptspec/access/xsave.hpp>
#include <ptspec/access/pmi.hpp>
#include <ptspec/access/image.hpp>
#include <ptspec/config/check_config.hpp>
#include <ptspec/config/perf_config.hpp>
