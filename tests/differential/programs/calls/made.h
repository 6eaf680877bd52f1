// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the programs share.

#if defined(__clang__)
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noinline, noclone))
#endif
/// No tail call before it, and no value known after it.
#define HIDE(value) __asm__ volatile("" : "+r"(value) : : "memory")
/// A function in assembler.
#define FUNCTION(name, code)                                                                       \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n.p2align 4\n" #name ":\n" code   \
            ".size " #name ", . - " #name "\n")

/// Ends with a status that says whether a result is right.
#define EXPECT(what) ((what) ? 0 : 1)
