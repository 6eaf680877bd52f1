// SPDX-License-Identifier: BSL-1.0
#pragma once

// The single header defines the same names as the headers of this directory. A translation unit
// may include only one of the two, and this check enforces it. Every header includes this file
// first.

// MSVC has its language version in _MSVC_LANG.
#if (defined(_MSVC_LANG) && _MSVC_LANG < 202002L) || (!defined(_MSVC_LANG) && __cplusplus < 202002L)
#error "ptspec needs C++20: -std=c++20 or /std:c++20"
#include <ptspec/needs_cxx20>  // ends compilation before other errors follow
#endif

#if defined(PTSPEC_SINGLE_HEADER)
#error "the single header of ptspec is included already: include only that one"
#include <ptspec/either_the_single_header_or_these>  // ends compilation before redefinitions follow
#endif

#define PTSPEC_SEPARATE_HEADERS
