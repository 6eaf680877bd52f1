#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that a mistake does not compile, and that the compiler's message explains it.

    compile_fail.py FILE -- COMPILER FLAGS...             with -DSHOULD_FAIL: must fail as expected
    compile_fail.py --twins FILE... -- COMPILER FLAGS...  without it: all must compile
    compile_fail.py --self-test

Twins that include the same headers are compiled as one unit, each in a namespace.

The first lines of FILE list the texts that the messages must contain: `// expect: TEXT`. Where
compilers write the same differently, one of several must occur: `// expect: TEXT | TEXT`. With a
line `// one error` the compiler must report one error, and with `// at most N lines` no more lines.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MARK = "// expect:"
ONE_ERROR = re.compile(r"^// one error$", re.M)
MOST_LINES = re.compile(r"^// at most (\d+) lines$", re.M)
INCLUDE = re.compile(r"^#include <.*\n", re.M)
OWN_UNIT = re.compile(r'^#(define|undef|include ")', re.M)
ERROR = re.compile(r"^.*\berror\b(?: \w+)?: .*", re.M)  # `error: ..`, and of MSVC `error C2338: ..`


def expected_texts(source):
    texts = [line[len(MARK):].strip() for line in source.splitlines() if line.startswith(MARK)]
    return [text for text in texts if text]


def compile_file(path, compiler):
    """Returns whether `path` compiled, and all messages of the compiler."""
    plain = dict(os.environ, LC_ALL="C")  # no translated messages, no curly quotes
    done = subprocess.run([*compiler, str(path)], env=plain, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode == 0, done.stdout


def check(path, compiler):
    """Returns what is wrong with a mistake, or None."""
    source = path.read_text(encoding="utf-8")
    texts = expected_texts(source)
    if not texts:
        return f"{path}: no line `{MARK} TEXT`; say what the compiler must answer"
    built, said = compile_file(path, [*compiler, "-DSHOULD_FAIL"])
    if built:
        return f"{path}: the mistake compiles"
    missing = [text for text in texts if not any(one in said for one in text.split(" | "))]
    if missing:
        return f"{path}: it does not compile, but the compiler does not say: {missing}\n{said}"
    errors = len(ERROR.findall(said))
    if ONE_ERROR.search(source) and errors != 1:
        return f"{path}: {errors} errors, not one\n{said}"
    lines = len(said.splitlines())
    if (most := MOST_LINES.search(source)) and lines > int(most[1]):
        return f"{path}: {lines} lines of messages, not {most[1]}\n{said}"
    return None


def twin_units(paths):
    """The sources of the units. A twin with directives that concern others is a separate unit."""
    groups = collections.defaultdict(list)
    for path in paths:
        source = path.read_text(encoding="utf-8")
        alone = OWN_UNIT.search(source) is not None
        groups[str(path) if alone else "".join(INCLUDE.findall(source))].append(path.resolve())
    for includes, twins in groups.items():
        if len(twins) == 1:
            yield f'#include "{twins[0].as_posix()}"\n'
        else:
            yield includes + "".join(f'namespace twin_{i} {{\n#include "{twin.as_posix()}"\n}}\n'
                                     for i, twin in enumerate(twins))


def check_twins(paths, compiler):
    """Returns what is wrong with the twins, or None."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder, "twins.cpp")
        for source in twin_units(paths):
            unit.write_text(source, encoding="utf-8")
            built, said = compile_file(unit, compiler)
            if not built:
                wrong.append(said)
    return "\n".join(["a twin does not compile", *wrong]) if wrong else None


def self_test():
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ["g++", "clang++"]), None)
    if compiler is None:
        print("skipped: a C++ compiler: all")
        return 77
    command = [*compiler.split(), "-std=c++20", "-fsyntax-only"]
    pair = '#ifdef SHOULD_FAIL\nstatic_assert(false, "deliberate");\n#endif\n'
    late = ("// expect: deliberate\n"
            "template <int N> int f() { static_assert(N == 0, \"deliberate\"); return N; }\n"
            "#ifdef SHOULD_FAIL\nint g() { return f<1>(); }\n#endif\n")
    cases = [  # source, part of the expected complaint (None: no complaint)
        ("// expect: deliberate\n" + pair, None),
        (late, None),
        ("// expect: deliberate\n// expect: another\n" + pair, "['another']"),
        ("// expect: another | deliberate\n" + pair, None),
        ("// expect: another | third\n" + pair, "['another | third']"),
        ("// expect: deliberate\n", "the mistake compiles"),
        (pair, "no line"),
        ("// expect:\n" + pair, "no line"),
        ("// expect: deliberate\n// one error\n// at most 9 lines\n" + pair, None),
        ("// expect: deliberate\n// one error\n" + pair + pair, "2 errors"),
        ("// expect: deliberate\n// at most 1 lines\n" + pair, "lines of messages"),
    ]
    two, std = "int two = 2;\n", "#include <cstddef>\nstd::size_t n = 1;\n"
    twins = [  # sources, number of units, part of the expected complaint
        ([pair], 1, None),
        ([late, late, two, two], 1, None),
        ([std, two, std, "#include <cstddef>\n" + two], 2, None),
        ([std, "#define NAME 1\n" + two, "#undef NAME\n" + two], 3, None),
        (["#define two 3\nint x = two;\n", two, two], 2, None),
        ([two, std, "std::size_t n = 1;\n"], 2, "case_2.cpp"),
        ([two, "int x = y;\n", two], 1, "case_1.cpp"),
        ([std, std, std + "static_assert(n);\n"], 1, "case_2.cpp"),
        ([std, "#define NAME 1\nint x = y;\n"], 2, "case_1.cpp"),
    ]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder, f"case_{i}.cpp") for i in range(4)]
        for number, (source, part) in enumerate(cases):
            paths[0].write_text(source, encoding="utf-8")
            wrong = check(paths[0], command)
            if (wrong is None) != (part is None) or (part and part not in wrong):
                print(f"case {number}: expected {part!r}, got {wrong!r}")
                failures += 1
        for number, (sources, units, part) in enumerate(twins):
            for path, source in zip(paths, sources):
                path.write_text(source, encoding="utf-8")
            used = paths[:len(sources)]
            wrong = check_twins(used, command)
            if (wrong is None) != (part is None) or (part and part not in wrong):
                print(f"twins {number}: expected {part!r}, got {wrong!r}")
                failures += 1
            if len(list(twin_units(used))) != units:
                print(f"twins {number}: not {units} units")
                failures += 1
    print(f"{len(cases) + len(twins)} cases, {failures} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    twins = arguments[:1] == ["--twins"]
    files, compiler = arguments[twins:], []
    if "--" in files:
        at = files.index("--")
        files, compiler = files[:at], files[at + 1:]
    if not files or not compiler or (len(files) > 1 and not twins):
        print(__doc__, file=sys.stderr)
        return 2
    paths = [pathlib.Path(name) for name in files]
    wrong = check_twins(paths, compiler) if twins else check(paths[0], compiler)
    if wrong:
        print(wrong)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
