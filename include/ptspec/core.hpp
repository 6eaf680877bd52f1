// SPDX-License-Identifier: BSL-1.0
#pragma once

// The core: every register, capability leaf and packet, ToPA tables, legality and effects of
// accesses, and where each byte of trace goes.

#include <ptspec/reg/list.hpp>
#include <ptspec/packet/decode.hpp>
#include <ptspec/packet/encode.hpp>
#include <ptspec/cpu/compare.hpp>
#include <ptspec/cpu/periods.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/cpu/quirks.hpp>
#include <ptspec/topa/builders.hpp>
#include <ptspec/topa/regions_for_pages.hpp>
#include <ptspec/topa/restricted.hpp>
#include <ptspec/topa/validate.hpp>
#include <ptspec/access/check.hpp>
#include <ptspec/access/effect.hpp>
#include <ptspec/access/image.hpp>
#include <ptspec/access/lbr.hpp>
#include <ptspec/access/msr_write_sources.hpp>
#include <ptspec/access/pmi.hpp>
#include <ptspec/access/resets.hpp>
#include <ptspec/access/xsave.hpp>
#include <ptspec/engine/output/explain.hpp>
#include <ptspec/engine/output/output.hpp>
#include <ptspec/base/host_memory.hpp>
