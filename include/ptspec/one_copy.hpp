// SPDX-License-Identifier: BSL-1.0
#pragma once

// The single header defines what the headers of this directory define, so a translation unit includes
// either the one or the others. Every header includes this one first.

#if defined(PTSPEC_SINGLE_HEADER)
#error "the single header of ptspec is included already: include only that one"
#include <ptspec/either_the_single_header_or_these>  // ends compilation before redefinitions follow
#endif

#define PTSPEC_SEPARATE_HEADERS
