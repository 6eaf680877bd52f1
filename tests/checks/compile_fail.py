#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that a mistake does not compile, and that the compiler's message explains it.

    compile_fail.py FILE -- COMPILER FLAGS...         with -DSHOULD_FAIL: must fail as expected
    compile_fail.py --twin FILE -- COMPILER FLAGS...  without it: must compile
    compile_fail.py --self-test

The first lines of FILE list the texts that the messages must contain: `// expect: TEXT`. Where
compilers write the same differently, one of several must occur: `// expect: TEXT | TEXT`. With a
line `// one error` the compiler must report one error, and with `// at most N lines` no more lines.
"""

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


def check(path, compiler, twin):
    """Returns what is wrong, or None."""
    source = path.read_text(encoding="utf-8")
    texts = expected_texts(source)
    if not texts:
        return f"{path}: no line `{MARK} TEXT`; say what the compiler must answer"
    built, said = compile_file(path, compiler if twin else [*compiler, "-DSHOULD_FAIL"])
    if twin:
        return None if built else f"{path}: the twin does not compile\n{said}"
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
    cases = [  # source, twin, part of the expected complaint (None: no complaint)
        ("// expect: deliberate\n" + pair, False, None),
        ("// expect: deliberate\n" + pair, True, None),
        (late, False, None),
        (late, True, None),
        ("// expect: deliberate\n// expect: another\n" + pair, False, "['another']"),
        ("// expect: another | deliberate\n" + pair, False, None),
        ("// expect: another | third\n" + pair, False, "['another | third']"),
        ("// expect: deliberate\n", False, "the mistake compiles"),
        ("// expect: deliberate\nint x = y;\n", True, "the twin does not compile"),
        (pair, False, "no line"),
        (pair, True, "no line"),
        ("// expect:\n" + pair, False, "no line"),
        ("// expect: deliberate\n// one error\n// at most 9 lines\n" + pair, False, None),
        ("// expect: deliberate\n// one error\n" + pair + pair, False, "2 errors"),
        ("// expect: deliberate\n// at most 1 lines\n" + pair, False, "lines of messages"),
    ]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "case.cpp")
        for number, (source, twin, part) in enumerate(cases):
            path.write_text(source, encoding="utf-8")
            wrong = check(path, command, twin)
            if (wrong is None) != (part is None) or (part and part not in wrong):
                print(f"case {number}: expected {part!r}, got {wrong!r}")
                failures += 1
    print(f"{len(cases)} cases, {failures} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    twin = arguments[:1] == ["--twin"]
    rest = arguments[1:] if twin else arguments
    if len(rest) < 3 or rest[1] != "--":
        print(__doc__, file=sys.stderr)
        return 2
    wrong = check(pathlib.Path(rest[0]), rest[2:], twin)
    if wrong:
        print(wrong)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
