// SPDX-License-Identifier: BSL-1.0
// expect: the length of this packet varies: give the least and the most
#include <ptspec/conformance.hpp>
#include <ptspec/packet/list.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
static_assert(conforms_length<packet::mtc>(2));
#else
static_assert(conforms_length<packet::tip>(1));
#endif
