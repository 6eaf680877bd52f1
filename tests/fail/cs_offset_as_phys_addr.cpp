// SPDX-License-Identifier: BSL-1.0
// A RIP is no address of a ToPA table.
// expect: cs_offset
// expect: phys_addr
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
using address = phys_addr;
#else
using address = cs_offset;
#endif

auto ring_at(address table) { return topa::try_ring(table, topa::region{.base = 0x1000}); }
