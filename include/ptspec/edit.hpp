// SPDX-License-Identifier: BSL-1.0
#pragma once

// Cutting and changing traces: segments, values, and of a guest or host its part.

#include <ptspec/edit/keep_part.hpp>
#include <ptspec/edit/rebase_tsc.hpp>
#include <ptspec/edit/replace_addresses.hpp>
#include <ptspec/edit/replace_values.hpp>
#include <ptspec/edit/segment.hpp>
#include <ptspec/edit/vmx_packets.hpp>
