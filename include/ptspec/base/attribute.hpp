// SPDX-License-Identifier: BSL-1.0
// Included last, without #pragma once, by each header that uses the macro; undefined at its end.
// The underscores are added because some headers define macros such as `noinline`.
#if defined(__GNUC__)
#define PTSPEC_ATTRIBUTE(name) [[gnu::__##name##__]]
#else
#define PTSPEC_ATTRIBUTE(name)
#endif
