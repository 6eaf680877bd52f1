// SPDX-License-Identifier: BSL-1.0
#pragma once

// The single header defines the same names as the headers of this directory. A translation unit
// may include only one of the two, and this check enforces it. Every header includes this file
// first.

#if defined(PTSPEC_SINGLE_HEADER)
#error "the single header of ptspec is included already: include only that one"
#include <ptspec/either_the_single_header_or_these>  // ends compilation before redefinitions follow
#endif

#define PTSPEC_SEPARATE_HEADERS
