#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that mistakes do not compile, and that the compiler's messages explain them.

    compile_fail.py [--only NAME] [--jobs N] [FILE...] [-- COMPILER FLAGS...]
    compile_fail.py --write-page [-- COMPILER FLAGS...]
    compile_fail.py --self-test

FILE is a table of mistakes, or one mistake (mistake_tables.py has the format); without FILE, all of
tests/fail/. --only checks one mistake. --jobs: how many compilers run at a time. The default
compiler is CXX, or g++.

For each table: all valid halves, compiled as one unit, must compile. Each mistake, compiled alone,
must fail, and each expected text must occur in the messages. The page of errors, tests/fail/
README.md, must have the message that this compiler prints; --write-page writes these messages, of
g++ or clang, into the page (errors_page.py).

The includes of a table are compiled once, as a precompiled header, except by MSVC.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import errors_page
import mistake_tables

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Wrong(Exception):
    """The message says what is wrong with a mistake or its valid half."""


def run(command):
    """Returns whether a compiler succeeded, and all its messages."""
    plain = dict(os.environ, LC_ALL="C")  # no translated messages, no curly quotes
    done = subprocess.run(command, env=plain, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode == 0, done.stdout


def version(compiler):
    """("g++", 12), ("clang", 19), or None for others."""
    said = run([*compiler, "--version"])[1] if "/Zs" not in compiler else ""
    found = re.search(r"(clang) version (\d+)|^(\S*\+\+\S*) \(.*?\) (\d+)\.", said, re.M)
    if found is None:
        return None
    return ("clang", int(found[2])) if found[1] else ("g++", int(found[4]))


class Units:
    """Compiles the units of one table in a folder."""

    def __init__(self, table, compiler, folder):
        self.table, self.compiler, self.folder = table, compiler, pathlib.Path(folder)
        self.precompiled = []
        if not table.is_file and "/Zs" not in compiler:
            header = self.folder / f"{table.path.stem}.hpp"
            header.write_text("".join(line + "\n" for line in table.includes()), encoding="utf-8")
            suffix = ".pch" if (version(compiler) or [""])[0] == "clang" else ".gch"
            built, said = run([*(word for word in compiler if word != "-fsyntax-only"), "-x",
                               "c++-header", str(header), "-o", str(header) + suffix])
            if not built:
                raise Wrong(f"{table.path}: its includes do not compile\n{said}")
            self.precompiled = ["-include", str(header)]

    def compile(self, mistake=None):
        if self.table.is_file:  # it may include files that are beside it
            return run([*self.compiler, *(["-DSHOULD_FAIL"] if mistake else []),
                        str(self.table.path)])
        unit = self.folder / f"{mistake.name if mistake else 'valid halves'}.cpp"
        unit.write_text(self.table.unit(mistake, not self.precompiled), encoding="utf-8")
        return run([*self.compiler, *self.precompiled, str(unit)])

    def check_valid_halves(self):
        built, said = self.compile()
        if not built:
            raise Wrong(f"{self.table.path}: a valid half does not compile\n{said}")

    def check(self, mistake):
        """Returns the messages for a mistake."""
        built, said = self.compile(mistake)
        if built:
            raise Wrong(f"{mistake.where}: the mistake compiles")
        complaint = mistake.complaint(said)
        if complaint:
            raise Wrong(f"{mistake.where}: {complaint}\n{said}")
        return said


def check_table(table, compiler, jobs=1, only=None):
    """Returns {name of a mistake: messages}, and what is wrong."""
    said, wrong = {}, []
    with (tempfile.TemporaryDirectory() as folder,
          concurrent.futures.ThreadPoolExecutor(jobs) as pool):
        try:
            units = Units(table, compiler, folder)
        except Wrong as what:
            return {}, [str(what)]
        name = (version(compiler) or [None])[0]
        results = {one.name: pool.submit(units.check, one) for one in table.mistakes
                   if only in (None, one.name) and one.is_for(name)}
        if table.has_valid_half and only is None:
            results[None] = pool.submit(units.check_valid_halves)
        for name, result in results.items():
            try:
                said[name] = result.result()
            except Wrong as what:
                wrong.append(str(what))
    said.pop(None, None)
    return said, wrong


def check_page(tables, said, compiler):
    """What is wrong with the messages on the page of errors."""
    name, number = version(compiler) or (None, None)
    if errors_page.VERSIONS.get(name) != number or not errors_page.PAGE.is_file():
        return []
    page = errors_page.PAGE.read_text(encoding="utf-8")
    found = [errors_page.wrong_messages(mistake, name, said[mistake.name], page)
             for table in tables if errors_page.FOLDER in table.path.resolve().parents
             for mistake in table.mistakes if mistake.name in said]
    return [one for one in found if one]


def write_page(tables, said, compiler):
    name, number = version(compiler) or (None, None)
    if errors_page.VERSIONS.get(name) != number:
        return f"the page has messages of {errors_page.VERSIONS} only"
    page = errors_page.PAGE.read_text(encoding="utf-8") if errors_page.PAGE.is_file() else ""
    messages = errors_page.messages_of(page)
    for mistake in (one for table in tables for one in table.mistakes if one.name in said):
        messages.setdefault(mistake.name, {})[name] = errors_page.message(
            mistake, said[mistake.name])
    errors_page.PAGE.write_text(errors_page.page(tables, messages), encoding="utf-8")
    return None


# ------------------------------------------------------------------------------------- self-test

def fragment(body, head="// expect: assertion failed\n", name="one"):
    return f"\nnamespace {name} {{\n/// It is deliberate.\n{head}{body}}}  // namespace {name}\n"


TITLE = "// SPDX-License-Identifier: BSL-1.0\n/// Toys\n\n"
PAIR = '#ifdef SHOULD_FAIL\nstatic_assert(false, "deliberate");\n#endif\n'
LATE = ('template <int N> int f() { static_assert(N == 0, "deliberate"); return N; }\n'
        "#ifdef SHOULD_FAIL\nint g() { return f<1>(); }\n#endif\n")
STD = "#include <cstddef>\n\nusing std::size_t;\n"

CASES = [  # what is wrong, the files (a table, or one mistake), parts of the complaints
    ("nothing", [TITLE + fragment(PAIR)], []),
    ("nothing, two fragments with the same names",
     [TITLE + fragment(LATE) + fragment(LATE, name="two")], []),
    ("nothing, includes for all fragments", [TITLE + STD + fragment("size_t n = 1;\n" + PAIR)], []),
    ("the mistake compiles", [TITLE + fragment("#ifndef SHOULD_FAIL\nint x;\n#endif\n")],
     ["one: the mistake compiles"]),
    ("a text is missing",
     [TITLE + fragment(PAIR, "// expect: assertion failed\n// expect: another\n")],
     ["['another']"]),
    ("the name of the file is no message", [TITLE + fragment(PAIR, "// expect: case_0\n")],
     ["['case_0']"]),
    ("the name of the file is no message of a mistake in a file", ["// expect: case_0\n" + PAIR],
     ["['case_0']"]),
    ("every text is in the code", [TITLE + fragment(PAIR, "// expect: deliberate\n")],
     ["occurs in the code"]),
    ("a mistake for clang only",
     [TITLE + fragment('#if defined(SHOULD_FAIL) && defined(__clang__)\n#error "no"\n#endif\n'
                       "#ifdef SHOULD_FAIL\n#endif\nint x;\n",
                       "// expect: error: \n// only clang\n")], []),
    ("one of two texts", [TITLE + fragment(PAIR, "// expect: another | assertion failed\n")], []),
    ("none of two texts", [TITLE + fragment(PAIR, "// expect: another | third\n")],
     ["['another | third']"]),
    ("a valid half does not compile",
     [TITLE + fragment(PAIR + "int x = y;\n") + fragment(PAIR, name="two")],
     ["a valid half does not compile"]),
    ("a fragment uses another",
     [TITLE + fragment("int two = 2;\n" + PAIR) + fragment("int x = two;\n" + PAIR, name="two")],
     ["a valid half does not compile"]),
    ("a mistake does not use another",
     [TITLE + fragment("int two = 2;\n" + PAIR) +
      fragment("int x = one::two;\n" + PAIR, "// one error\n// expect: assertion failed\n", "two")],
     ["2 errors, not one"]),
    ("one error", [TITLE + fragment(PAIR, "// expect: assertion failed\n// one error\n")], []),
    ("two errors", [TITLE + fragment(PAIR + PAIR, "// expect: assertion failed\n// one error\n")],
     ["2 errors, not one"]),
    ("few lines",
     [TITLE + fragment(PAIR, "// expect: assertion failed\n// at most 9 lines\n")], []),
    ("too many lines",
     [TITLE + fragment(PAIR, "// expect: assertion failed\n// at most 1 lines\n")],
     ["lines of messages, not 1"]),
    ("an unknown marker",
     [TITLE + fragment(PAIR, "// expect: assertion failed\n// expects: this\n")],
     ["case_0.cpp:8: one: unknown marker `// expects: this`"]),
    ("a marker after the code", [TITLE + fragment(PAIR + "// expect: another\n")],
     ["must stand before the code"]),
    ("a marker outside", [TITLE + "// expect: assertion failed\n" + fragment(PAIR)],
     ["stands in no fragment"]),
    ("no text", [TITLE + fragment(PAIR, "")], ["no line `// expect: TEXT`"]),
    ("an empty text", [TITLE + fragment(PAIR, "// expect:\n")], ["no text after"]),
    ("no sentence", [TITLE + fragment(PAIR).replace("/// It is deliberate.\n", "")],
     ["no sentence"]),
    ("no title", [fragment(PAIR)], ["no title"]),
    ("a name twice in a file", [TITLE + fragment(PAIR) + fragment(PAIR)],
     ["the name is also in"]),
    ("a name twice in two files", [TITLE + fragment(PAIR), TITLE + fragment(PAIR)],
     ["case_0.cpp:5: one"]),
    ("an empty fragment", [TITLE + fragment("")], ["the fragment is empty"]),
    ("a fragment of comments", [TITLE + fragment("\n// nothing\n#ifdef SHOULD_FAIL\n#endif\n")],
     ["the fragment is empty"]),
    ("no mistake", [TITLE + fragment("int x;\n")], ["what is the mistake?"]),
    ("an unclosed fragment", [TITLE + fragment(PAIR).replace("}  // namespace one\n", "")],
     ["no line `}  // namespace one`"]),
    ("a fragment in a fragment", [TITLE + fragment(fragment(PAIR, name="two"))],
     ["no line `}  // namespace one`"]),
    ("code between fragments",
     [TITLE + fragment(PAIR) + "int x;\n" + fragment(PAIR, name="two")],
     ["`int x;` stands between fragments"]),
    ("includes that do not exist", [TITLE + "#include <no_such.hpp>\n" + fragment(PAIR)],
     ["its includes do not compile"]),
    ("a mistake in a file", ["// expect: assertion failed\n" + PAIR], []),
    ("a file that is always wrong", ["// expect: assertion failed\nstatic_assert(false, "
                                     '"deliberate");\n'], []),
    ("a file that compiles", ["// expect: assertion failed\nint x;\n"],
     ["case_0: the mistake compiles"]),
    ("a file whose valid half does not compile",
     ["// expect: assertion failed\nint x = y;\n" + PAIR],
     ["a valid half does not compile"]),
    ("a file without a text", [PAIR], ["no line `// expect: TEXT`"]),
    ("two mistakes of three",
     [TITLE + fragment(PAIR) + fragment("int x;\n#ifdef SHOULD_FAIL\n#endif\n", name="two") +
      fragment(PAIR, "// expect: another\n", "three")],
     ["two: the mistake compiles", "three: it does not compile, but"]),
]


def complaints(paths, command, only=None):
    try:
        tables = mistake_tables.read_tables(paths)
    except mistake_tables.TableError as wrong:
        return [str(wrong)]
    return [one for table in tables for one in check_table(table, command, 2, only)[1]]


def self_test():
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ["g++", "clang++"]), None)
    if compiler is None:
        print("skipped: a C++ compiler: all")
        return 77
    command = [*compiler.split(), "-std=c++20", "-fsyntax-only"]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder, f"case_{i}.cpp") for i in range(2)]
        for what, sources, parts in CASES:
            for path, source in zip(paths, sources):
                path.write_text(source, encoding="utf-8")
            found = complaints(paths[:len(sources)], command)
            if len(found) != len(parts) or any(part not in one for part, one in zip(parts, found)):
                print(f"{what}: expected {parts!r}, got {found!r}")
                failures += 1
        # Of the last case only one mistake.
        for only, count in (("one", 0), ("two", 1)):
            if len(found := complaints(paths[:1], command, only)) != count:
                print(f"--only {only}: got {found!r}")
                failures += 1
    print(f"{len(CASES) + 2} cases, {failures} failures")
    return 1 if failures else 0


def main(arguments):
    at = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--write-page", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args(arguments[:at])
    if options.self_test:
        return self_test()
    if options.write_page and (options.only or options.files):
        parser.error("--write-page writes the messages of all mistakes")
    compiler = arguments[at + 1:] or [*os.environ.get("CXX", "g++").split(), "-std=c++20",
                                      "-fsyntax-only", f"-I{ROOT / 'include'}",
                                      f"-I{ROOT / 'tests'}"]
    try:
        tables = (mistake_tables.read_tables(options.files) if options.files else
                  errors_page.tables())
    except mistake_tables.TableError as wrong:
        print(wrong)
        return 1
    if options.only:
        tables = [table for table in tables
                  if any(one.name == options.only for one in table.mistakes)]
        if not tables:
            parser.error(f"no mistake is named {options.only}")
    said, wrong = {}, []
    for table in tables:
        messages, complaint = check_table(table, compiler, options.jobs, options.only)
        said |= messages
        wrong += complaint
    if not wrong:
        wrong = ([write_page(tables, said, compiler)] if options.write_page else
                 check_page(tables, said, compiler))
    print("\n".join(filter(None, wrong)), end="\n" if any(wrong) else "")
    if not any(wrong):
        print(f"{len(said)} mistakes")
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
