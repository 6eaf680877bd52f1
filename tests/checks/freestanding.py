#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks the object code for firmware: every function, built without any library.

    freestanding.py [--levels -Os,-O2] COMPILER...   compile with each, and check; only -O2 unless
                                                     --levels names others
    freestanding.py --self-test

Two objects for x86-64: every inline function of ptspec.hpp that is no template, which the compiler
emits although nothing calls it, and tests/firmware/templates.cpp, which calls the templates. They
must not have undefined symbols except the four that every freestanding implementation provides,
instructions that use SSE or x87, static initialisers, or variables. With
examples/check_machine/memory.cpp, which defines the four symbols, they must link to a complete
program.

Functions of build_error are never defined. What calls one, also through other functions, must be in
a namespace `detail`: consteval functions call it.
"""

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from firmware_objects import FIRMWARE, ROOT, compile_to, output_of

HEADER = ROOT / "include" / "ptspec" / "ptspec.hpp"
TEMPLATES = FIRMWARE / "templates.cpp"
MEMORY = ROOT / "examples/check_machine/memory.cpp"
FLAGS = ["-mgeneral-regs-only"]
PROVIDED = {"memcpy", "memmove", "memset", "memcmp"}

# In AT&T syntax every register has a percent sign, and only x87 mnemonics begin with f.
FLOATING = re.compile(r"%[xyz]?mm\d|%st\b|^f[a-z]|mxcsr")
TARGET = re.compile(r"\sR_X86_64_\w+\s+([^\s+-]+)|\t(?:call|j\w+)\s+[0-9a-f]+ <([^>+]+)")
INITIALISER_SECTION = re.compile(r"\s(\.(?:preinit_array|init_array|ctors)\S*)\s")
INITIALISER_SYMBOL = re.compile(r"_GLOBAL__sub_I\S*|__cxx_global_var_init\S*")


def is_clang(compiler):
    return "clang" in output_of(*compiler.split(), "--version")


def compile_header(path, header, compiler, *flags):
    """Writes an object with all inline functions of a header that are no templates."""
    source = path.with_suffix(".inc")
    source.write_text(f'#include "{header}"\n', encoding="utf-8")
    if is_clang(compiler):  # those of a precompiled header
        precompiled = path.with_suffix(".pch")
        compile_to(precompiled, source, compiler, *flags, "-xc++-header", "-fpch-codegen")
        # It has its own flags, but not those of code generation.
        generates = [flag for flag in flags if flag.startswith(("-O", "-mgeneral"))]
        subprocess.run([*compiler.split(), *generates, "-fno-pic", "-c", str(precompiled), "-o",
                        str(path)], check=True)
    else:
        compile_to(path, source, compiler, *flags, "-xc++", "-fkeep-inline-functions")


def build_errors_of(path):
    """The symbols of build_error in an object, and the functions outside `detail` that call one."""
    callers = collections.defaultdict(set)
    function = ""
    for line in output_of("objdump", "-dr", "--no-show-raw-insn", str(path)).splitlines():
        label = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        if label:
            function = label[1]
        target = TARGET.search(line)
        if target:
            callers[target[1] or target[2]].add(function)
    errors = {name for name in callers if "11build_error" in name}
    reached, waiting = set(), list(errors)
    while waiting:
        new = callers[waiting.pop()] - reached
        reached |= new
        waiting += new
    return errors, sorted(name for name in reached if "6detail" not in name)


def problems_in(path):
    """Returns one line for each violation in the object file `path`."""
    errors, found = build_errors_of(path)
    found = [f"call of a function of build_error in {name}" for name in found]
    symbols = [line.split()[:2] for line in output_of("nm", "-P", str(path)).splitlines()]
    undefined = sorted({name for name, kind in symbols if kind in "Uwv"} - PROVIDED - errors)
    found += [f"undefined symbol {name}" for name in undefined]
    found += [f"static initialiser {name}" for name, _ in symbols
              if INITIALISER_SYMBOL.match(name)]
    found += [f"static initialiser in section {name}" for name in
              INITIALISER_SECTION.findall(output_of("objdump", "-h", str(path)))]
    found += [f"variable {name}" for name, kind in symbols if kind in "BbCDd"]
    if not any(kind in "TtWV" for _, kind in symbols):
        found.append("no function at all, so nothing was checked")

    function = "?"
    for line in output_of("objdump", "-d", "--no-show-raw-insn", str(path)).splitlines():
        label = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        if label:
            function = label[1]
        instruction = re.match(r"\s+[0-9a-f]+:\t([^<#]*)", line)
        if instruction and FLOATING.search(instruction[1]):
            found.append(f"floating point in {function}: {instruction[1].strip()}")
    return found


def program_from(path, compiler, folder):
    """Links the object file `path` with only the four functions."""
    memory, program = folder / "memory.o", folder / "program"
    # Without -fno-builtin a compiler may replace the loop in memcpy with a call of memcpy.
    compile_to(memory, MEMORY, compiler, *FLAGS, "-O2", "-fno-builtin")
    absent = [f"--defsym={name}=0" for name in build_errors_of(path)[0]]
    linked = subprocess.run(["ld", "-nostdlib", "--no-undefined", *absent, "-o", program, path,
                             memory], check=False, text=True, stderr=subprocess.PIPE)
    return linked.stderr.splitlines() if linked.returncode != 0 else []


def problems_of(compiler, level, source):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "object.o")
        try:
            compiles = compile_header if source == HEADER else compile_to
            compiles(path, source, compiler, *FLAGS, level)
            return problems_in(path) or program_from(path, compiler, pathlib.Path(folder))
        except (OSError, subprocess.CalledProcessError) as error:
            return [str(error)]


def check(compilers, levels):
    failed = False
    ways = [(compiler, level, source) for compiler in compilers for level in levels
            for source in (HEADER, TEMPLATES)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda way: problems_of(*way), ways)
        for (compiler, level, source), problems in zip(ways, found):
            for problem in problems or ["nothing found"]:
                print(f"{compiler} {level} {source.name}: {problem}")
            failed |= bool(problems)
    return 1 if failed else 0


def self_test():
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ["g++", "clang++"]), None)
    if compiler is None or "x86_64" not in output_of(*compiler.split(), "-dumpmachine"):
        print("skipped: a compiler for x86-64: all")
        return 77
    hosted = []  # with SSE and x87
    x87 = [*hosted, "-mlong-double-80"]
    cases = [  # flags, source, part of the expected problem (None: no problem)
        (FLAGS, 'extern "C" int f(int a) { return a + 1; }', None),
        (FLAGS, 'struct s { char c[999]; }; extern "C" void f(s& a, s& b) { a = b; }', None),
        (FLAGS, "int g(); int f() { return g() + 1; }", "undefined symbol _Z1gv"),
        (FLAGS, "int f() { static int* p = new int; return *p; }", "undefined symbol _Znwm"),
        (FLAGS, "int g(); int x = g(); ", "static initialiser"),
        (FLAGS, "int f() { static int calls = 0; return ++calls; }", "variable _ZZ1fvE5calls"),
        (FLAGS, "int calls = 1; int f() { return ++calls; }", "variable calls"),
        (FLAGS, "extern int const y; int const y = 1;", "nothing was checked"),
        (hosted, "double f(double a) { return a + 1; }", "floating point in _Z1fd"),
        (hosted, "struct s { long a[4]; }; void f(s* a, s* b) { *a = *b; }", "floating point"),
        (x87, "long double f(long double a) { return a + 1; }", "floating point"),
    ]
    stops = "namespace ptspec { namespace build_error { void no(); } namespace detail { "
    stops += "constexpr void f(int a) { if (a) { build_error::no(); } } } "
    headers = [  # of which nothing is called
        ("inline int f(int a) { return a + 1; }", None),
        ("struct s { constexpr auto f() { return new int; } };", "undefined symbol _Znwm"),
        (stops + "consteval int g(int a) { return detail::f(a), a; } }", None),
        (stops + "constexpr int g(int a) { return detail::f(a), a; } }", "in _ZN6ptspec1gEi"),
        (stops + "constexpr void h(int a) { if (a) { build_error::no(); } } }", "_ZN6ptspec1hEi"),
    ]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source, path = pathlib.Path(folder, "case.cpp"), pathlib.Path(folder, "case.o")
        for number, (flags, text, part) in enumerate(cases):
            source.write_text(text + "\n", encoding="utf-8")
            compile_to(path, source, compiler, *flags, "-O2")
            found = problems_in(path)
            if bool(found) != (part is not None) or (part and not any(part in f for f in found)):
                print(f"case {number}: expected {part!r}, got {found}")
                failures += 1
        header = pathlib.Path(folder, "case.hpp")
        for text, part in headers:
            header.write_text(text + "\n", encoding="utf-8")
            compile_header(path, header, compiler, *FLAGS, "-O2")
            found = problems_in(path) or program_from(path, compiler, pathlib.Path(folder))
            if bool(found) != (part is not None) or (part and not any(part in f for f in found)):
                print(f"{text}: expected {part!r}, got {found}")
                failures += 1
        source.write_text('extern "C" int f(int a) { return a; }\n', encoding="utf-8")
        compile_to(path, source, compiler, *FLAGS)
        links = program_from(path, compiler, pathlib.Path(folder))
        source.write_text('int g(int); extern "C" int f(int a) { return g(a); }\n',
                          encoding="utf-8")
        compile_to(path, source, compiler, *FLAGS)
        if links or not program_from(path, compiler, pathlib.Path(folder)):
            print(f"linking: expected a program and none, got {links}")
            failures += 1
    print(f"{len(cases) + len(headers) + 2} cases, {failures} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    levels = ["-O2"]
    if arguments[:1] == ["--levels"] and len(arguments) > 1:
        levels, arguments = arguments[1].split(","), arguments[2:]
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    return check(arguments, levels)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
