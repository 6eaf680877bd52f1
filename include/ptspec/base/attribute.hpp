// SPDX-License-Identifier: BSL-1.0
// No #pragma once: each header that uses the macro includes this file last, and undefines the macro
// at its end.

// PTSPEC_ATTRIBUTE(noinline) is [[gnu::__noinline__]]; nothing for a compiler without it. The
// underscores are added here, because some headers define macros such as `noinline`.
#if defined(__GNUC__) || defined(__clang__)
#define PTSPEC_ATTRIBUTE(name) [[gnu::__##name##__]]
#else
#define PTSPEC_ATTRIBUTE(name)
#endif
