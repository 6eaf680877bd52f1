// SPDX-License-Identifier: BSL-1.0
#pragma once

// Tables and output: building, checking and walking ToPA tables, and where each byte of trace goes.

#include <ptspec/topa/builders.hpp>
#include <ptspec/topa/regions_for_pages.hpp>
#include <ptspec/topa/validate.hpp>
#include <ptspec/topa/single_range.hpp>
#include <ptspec/base/host_memory.hpp>
#include <ptspec/engine/output/explain.hpp>
