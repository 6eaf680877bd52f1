// SPDX-License-Identifier: BSL-1.0
#pragma once

// Changing traces in place: the part of a guest or a host, addresses and times.

#include <ptspec/edit/keep_part.hpp>
#include <ptspec/edit/rebase_tsc.hpp>
#include <ptspec/edit/replace_addresses.hpp>
#include <ptspec/edit/vmx_packets.hpp>
