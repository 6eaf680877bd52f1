#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compiles all headers in the surroundings of other code: with the macros that its headers define,
without char8_t, and with an older language.

    foreign_macros.py [COMPILER]    g++ by default
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Those that break a header that uses the name. A parameter list matters: [[likely]] is valid after
# `#define likely(x)`.
MACROS = {
    "Linux": """
        current get_current()
        likely(x) __builtin_expect(!!(x), 1)
        unlikely(x) __builtin_expect(!!(x), 0)
        barrier() do {} while (0)
        container_of(p, t, m) (p, t, m)
        swap(a, b) do {} while (0)
        abs(x) (x)
        clamp(v, l, h) (v)
        round_up(x, y) (x)
        round_down(x, y) (x)
        roundup(x, y) (x)
        BIT(n) (1UL << (n))
        GENMASK(h, l) (h)
        ARRAY_SIZE(a) (a)
        READ_ONCE(x) (x)
        WRITE_ONCE(x, v) (x)
        BUG() 0
        noinline __attribute__((__noinline__))
        fallthrough __attribute__((__fallthrough__))
        unreachable() 0
        notrace
        asmlinkage
        mb() 0
        jiffies 0
        HZ 250
        PAGE_SIZE 4096
        PAGE_MASK 0
        __must_check
        __user
        __init
        __force
        __packed
        __always_inline inline
    """,
    "Qt": """
        slots
        signals public
        emit
        foreach(a, b) for (;;)
        forever for (;;)
    """,
    "Windows": """
        min(a, b) ((a) < (b) ? (a) : (b))
        max(a, b) ((a) > (b) ? (a) : (b))
        near
        far
        small char
        interface struct
        hyper 0
        cdecl
        pascal
        CONST const
        ERROR 0
        NO_ERROR 0
        DELETE 0x10000
        STRICT 1
        INFINITE 0
        IGNORE 0
        BOOL int
        BYTE unsigned char
        DWORD unsigned
        CALLBACK
        THIS 0
        ABSOLUTE 1
        RELATIVE 2
        DIFFERENCE 11
        TRANSPARENT 1
        OPAQUE 2
    """,
    "EDK2": """
        IN
        OUT
        OPTIONAL
        VOID void
        TRUE 1
        FALSE 0
        STATIC static
        EFIAPI
        CR(a, b, c, d) (a)
        ASSERT(x) (x)
        DEBUG(x) (x)
        EMPTY 0
        STATUS 0
        MIN(a, b) (a)
        MAX(a, b) (a)
        ABS(a) (a)
        BIT0 1
        BIT63 1
        SIZE_4KB 0x1000
        SIZE_128MB 0x8000000
        CHAR8 char
        UINT64 unsigned long long
    """,
    "C and Unix": """
        unix 1
        linux 1
        i386 1
        major(x) (x)
        minor(x) (x)
        assert(x) ((void)(x))
        I 0
        complex 0
        environ 0
        round(x) (x)
        isset(a, b) (a)
        setbit(a, b) (a)
        howmany(a, b) (a)
        powerof2(x) (x)
        B0 0
        ECHO 0
        CR0 0
        CR1 1
        CR2 2
        OK 0
        ERR 1
        FAIL 0
        SUCCESS 0
        CHECK(x) (x)
        REQUIRE(x) (x)
    """,
    "X11": """
        None 0L
        Bool int
        Status int
        True 1
        False 0
        Success 0
        Always 2
        Above 0
        Below 1
        Unsorted 0
        Complex 0
    """,
}
NEEDED = "ptspec needs C++20"
# Linux and x86, beside other includes: these define names of their own.
WITH_SYSTEM_HEADERS = ("ports/", "std.hpp")


def defines():
    for lines in MACROS.values():
        for line in lines.strip().splitlines():
            yield f"#define {line.strip()}"


def headers():
    for path in sorted((ROOT / "include/ptspec").rglob("*.hpp")):
        name = path.relative_to(ROOT / "include/ptspec").as_posix()
        if not name.startswith(WITH_SYSTEM_HEADERS):
            yield f"#include <ptspec/{name}>"


def errors(compiler, lines, *options):
    """The lines of a compiler that have an error."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "source.cpp"
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        done = subprocess.run(
            [*compiler, "-fsyntax-only", "-Werror=attributes", f"-I{ROOT / 'include'}", *options,
             str(source)], capture_output=True, text=True, check=False)
    return [line for line in done.stderr.splitlines() if re.search(r"\berror\b", line)]


def main():
    compiler = sys.argv[1:] or ["g++"]
    wrong = []
    # Compilers predefine these.
    undefs = ["#undef unix", "#undef linux", "#undef i386"]
    # The headers of C define names of their own, and come first in such code, too.
    code = ["#include <stddef.h>", "#include <stdint.h>", *undefs, *defines(), *headers()]
    wrong += errors(compiler, code, "-std=c++20")
    wrong += errors(compiler, [*headers()], "-std=c++20", "-fno-char8_t")
    older = errors(compiler, ["#include <ptspec/core.hpp>"], "-std=c++17")
    named = [line for line in older if "error:" in line and "fatal" not in line]
    if len(named) != 1 or NEEDED not in named[0]:
        wrong += ["with C++17 the one error must name C++20:", *older]
    # A macro that breaks a header must be found.
    if not errors(compiler, ["#define with(x, y)", *headers()], "-std=c++20"):
        wrong += ["a macro named as a function of ptspec must be an error"]
    print("\n".join(wrong[:20] or ["no finding"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
