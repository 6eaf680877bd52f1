// SPDX-License-Identifier: BSL-1.0
// expect: the_length_differs
#include <ptspec/conformance.hpp>
#include <ptspec/packet/list.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
static_assert(conforms_length<packet::tip>(1, 9));
#else
static_assert(conforms_length<packet::tip>(1, 7));
#endif
