// SPDX-License-Identifier: BSL-1.0
#pragma once

// Two checks before all else; every header of the single header includes this file, most through
// lang.hpp. The files that they include do not exist, which ends compilation.

// The language: that of MSVC is in _MSVC_LANG.
#if (defined(_MSVC_LANG) && _MSVC_LANG < 202002L) || (!defined(_MSVC_LANG) && __cplusplus < 202002L)
#error "ptspec needs C++20: -std=c++20 or /std:c++20"
#include <ptspec/needs_cxx20>  // ends compilation before other errors follow
#endif

// The single header defines the same names as the separate headers: a translation unit includes
// either the one or the others.
#if defined(PTSPEC_SINGLE_HEADER)
#error "the single header of ptspec is included already: include only that one"
#include <ptspec/either_the_single_header_or_these>  // ends compilation before redefinitions follow
#endif

#define PTSPEC_SEPARATE_HEADERS
