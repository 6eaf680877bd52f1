// SPDX-License-Identifier: BSL-1.0
#pragma once

// Registers and legality: every hardware word, real processors, and whether an access faults.

#include <ptspec/reg/list.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/access/check.hpp>
