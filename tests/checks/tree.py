#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks the rules for this source tree that no compiler checks.

    tests/checks/tree.py [ROOT]        prints a line `path:line: what is wrong` for each finding
    tests/checks/tree.py --self-test   breaks each rule in a small tree; each must be found

The order of the folders is checked by order.py.

Exit status: 0 no finding, 1 findings, 2 wrong usage. Checked are the files that git tracks and, in
the four source directories, those that it does not ignore; without git, all files outside build
directories.
"""

import argparse
import graphlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from sources import INCLUDE, ORDER, TOP_DIRECTORIES, Headers, matches, read_tree, write_tree

TOP_FILES = ("CMakeLists.txt", "README.md", "LICENSE", "CHANGELOG.md")

# The umbrella headers, which contain only includes.
UMBRELLAS = ("core", "registers", "topa", "trace", "events", "edit", "flow", "model", "driver",
             "hypervisor", "ptspec", "conformance", "suite")
# Stops the build when the single header and separate headers meet in one translation unit. It
# defines a macro for that.
ONE_COPY = "base/one_copy"
# Defines a macro for the headers that include it, which undefine it.
ATTRIBUTE_HEADER = "base/attribute"

LIBRARY_MAY_INCLUDE = ("<stdint.h>", "<stddef.h>")

COMMON = "examples/tools/common/"  # what the programs share

LONGEST_LINE = 100
DOCUMENTS = ("README.md", "CHANGELOG.md", "examples/README.md", "examples/tools/README.md",
             "examples/tools/pt_flow/README.md", "examples/tools/pt_record/README.md",
             "tests/README.md", "tests/bench/README.md", "tests/firmware/README.md")

# Every rule, by its name in the self-test.
RULES = {
    "top": "the top level holds only {allowed} and dot-files",
    "place": "this file has no place in tests/checks/reading_order.txt",
    "cycle": "these headers include each other: {circle}",
    "missing": "there is no include/{header}",
    "program": "{name} belongs to another program; programs share examples/tools/common/",
    "system": "the library includes <stdint.h>, <stddef.h> and <ptspec/...>, not {name}",
    "umbrella-missing": "ptspec.hpp does not include {header}",
    "umbrella-twice": "ptspec.hpp includes {header} a second time",
    "umbrella-order": "{header} must come after {earlier}",
    "umbrella-own": "an umbrella header contains only includes",
    "pragma-once": "a header has `#pragma once` once, on a line of its own, but for "
                   f"{ATTRIBUTE_HEADER}.hpp",
    "spdx": "the first line (after `#!`) must be `{mark} SPDX-License-Identifier: BSL-1.0`",
    "macro": "no macros in include/: {name}",
    "attribute": "an attribute of a compiler is PTSPEC_ATTRIBUTE(name), or stands on a line of its "
                 "own, between `#if {compilers}` and `#endif`",
    "attribute-scope": "a header with PTSPEC_ATTRIBUTE includes <ptspec/base/attribute.hpp> last, "
                       "and its last line undefines the macro",
    "torn": "a line must not end between the return type and the name of a function",
    "mirror": "its test {test} is missing",
    "machine-path": "a path that exists on one machine only: {name}",
    "long": "{columns} columns: no line may be longer",
    "leftover": "unfinished: {name}",
    "doc": "the comment above {name} has no line `{wanted}`",
    "dropped": "{name}() and its result type are not [[nodiscard]] (MAY_BE_DROPPED in this check)",
}

# Functions called for their effect on an argument, or whose result is that of a callable.
MAY_BE_DROPPED = frozenset(("for_each", "for_kind", "visit"))

DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
MACHINE_PATH = re.compile(r"/(?:work|root|home)[/]\S*|/tmp/[a-z]\S*")
LEFTOVER = re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X])\b|^(?:<{7}|>{7}) .*", re.M)

# Attributes of one vendor; other compilers warn about them. A comment after one would let
# clang-format break the declaration below it. PTSPEC_ATTRIBUTE is for those of GNU.
ATTRIBUTE = re.compile(r"\[\[(?:[^\]\n/]*[\s,])?(?P<vendor>gnu|clang|msvc)::")
VENDORS = {"clang": "defined(__clang__)", "msvc": "defined(_MSC_VER)"}
ATTRIBUTE_USE = re.compile(r"^[^/\n]*\bPTSPEC_ATTRIBUTE\(", re.M)
LAST_INCLUDE = re.compile(r"^#include (<[^>]*>)(?![\s\S]*^#include)", re.M)
TORN = re.compile(r"^[^/\n]*\b(?:constexpr|consteval|inline|static)[ \t]+(?:auto|void)$", re.M)

# A register or a packet: `struct x : bit_word<x, ...>`, or with a base, `struct y : some<y>`.
HARDWARE_WORD = re.compile(
    r"^[ \t]*(?:template[ \t]*<.*>[ \t]*)?struct[ \t]+(?P<name>[^:;{}]+?)\s*:(?!:)"
    r"[^;{}]*(?:\b(?:bit_word|packet_word)\s*<|<\s*(?P=name)\b)", re.M)

# The beginning of a function declaration: attributes, with comments after them, and the name.
# Operators and functions that are defined outside their class do not match.
FUNCTION = re.compile(
    r"^[ \t]*(?P<attributes>(?:(?:\[\[.*?\]\]|PTSPEC_ATTRIBUTE\(\w+\))\s*(?://[^\n]*\s*)?)*)"
    r"(?:(?:friend|static|inline|constexpr|consteval)\s+)*auto\s+"
    r"(?P<name>(?!operator\b)\w+)\(", re.M)
NODISCARD_TYPE = re.compile(r"\b(?:struct|class) \[\[[^\]]*\bnodiscard\b[^\]]*\]\] (\w+)")
RESULT_TYPE = re.compile(r"[^{;]*?->\s*(?:\w+::)*(\w+)")
# The matches before a function determine its namespace, and its access level in a class.
NAMESPACE = re.compile(r"^(?:namespace (?P<opened>\S+) \{|\}  // namespace .*)$", re.M)
ACCESS = re.compile(r"^(?:(?P<access>public|protected|private):|(?P<class>class )[^;]*$|\};)", re.M)


class Finding:
    def __init__(self, rule, path, line=1, **details):
        self.rule, self.path, self.line = rule, path, line
        self.text = f"{path}:{line}: {RULES[rule].format(**details)}"


# ------------------------------------------------------------------------------------- headers

def comment_mark(path):
    """The comment mark of a source file; None for other files."""
    name = path.rsplit("/", 1)[-1].removesuffix(".in")
    if name.endswith((".hpp", ".h", ".cpp", ".c")):
        return "//"
    if name.endswith((".py", ".sh", ".cmake")) or name in ("CMakeLists.txt", "run"):
        return "#"
    return None


def is_header(path):
    return path.endswith((".hpp", ".h"))


def check_includes(headers):
    for path in headers.others:
        if not path.endswith("/README.md"):
            yield Finding("place", path)
    for header, includes in headers.includes.items():
        path = f"include/{header}"
        if ORDER.rank(header) is None:
            yield Finding("place", path)
        for line, name in includes:
            if not name.startswith("<ptspec/"):
                if ORDER.is_in("library", header) and name not in LIBRARY_MAY_INCLUDE:
                    yield Finding("system", path, line, name=name)
            elif header == f"ptspec/{ONE_COPY}.hpp":
                pass  # it includes a missing file on purpose, to end compilation
            elif name[1:-1] not in headers.text:
                yield Finding("missing", path, line, header=name[1:-1])


def check_cycles(headers):
    graph = {header: [other for _, other in headers.own(header)] for header in headers.text}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        circle = error.args[1]
        first = min(circle)
        yield Finding("cycle", f"include/{first}", circle=", ".join(sorted(set(circle))))


def check_umbrella(headers):
    umbrella = "ptspec/ptspec.hpp"
    path, seen = f"include/{umbrella}", []
    if umbrella not in headers.text:
        yield Finding("missing", path, header=umbrella)
        return
    for line, header in headers.own(umbrella):
        if header in seen:
            yield Finding("umbrella-twice", path, line, header=header)
        elif header in headers.text:
            later = [other for other in seen
                     if header in [name for _, name in headers.own(other)]]
            if later:
                yield Finding("umbrella-order", path, line, header=later[0], earlier=header)
            seen.append(header)
    one_copy = f"ptspec/{ONE_COPY}.hpp"
    umbrellas = [f"ptspec/{name}.hpp" for name in UMBRELLAS]
    for header in headers.text:
        placed = (ORDER.rank(header) is not None and ORDER.is_in("library", header) and
                  "/detail/" not in header)
        if placed and header not in (one_copy, f"ptspec/{ATTRIBUTE_HEADER}.hpp", *umbrellas, *seen):
            yield Finding("umbrella-missing", path, header=header)
    own = re.compile(r"^(?!\s*(?://|#[ \t]*include\b|#pragma once$))[ \t]*\S", re.M)
    for header in umbrellas:
        for line, _ in matches(own, headers.text.get(header, "")):
            yield Finding("umbrella-own", f"include/{header}", line)


def check_attributes(path, text, lines):
    for line, match in matches(ATTRIBUTE, text):
        compilers = VENDORS.get(match["vendor"])
        fenced = (lines[line - 2] == f"#if {compilers}" and lines[line:line + 1] == ["#endif"])
        if not fenced or not re.fullmatch(r"\s*\[\[[\w:, ]+\]\]", lines[line - 1]):
            yield Finding("attribute", path, line, compilers=compilers or "..")
    last = LAST_INCLUDE.search(text)
    includes_last = last is not None and last[1] == f"<ptspec/{ATTRIBUTE_HEADER}.hpp>"
    uses = [line for line, _ in matches(ATTRIBUTE_USE, text)]
    is_undefined = lines[-1:] == ["#undef PTSPEC_ATTRIBUTE"]
    if not bool(uses) == includes_last == is_undefined:
        yield Finding("attribute-scope", path, *uses[:1])


def check_one_header(header, text):
    path = f"include/{header}"
    for line, match in matches(DEFINE, text):
        allowed = {"ptspec/base/version.hpp": "PTSPEC_VERSION",
                   f"ptspec/{ONE_COPY}.hpp": "PTSPEC_SEPARATE_HEADERS",
                   f"ptspec/{ATTRIBUTE_HEADER}.hpp": "PTSPEC_ATTRIBUTE"}.get(header)
        if allowed is None or not match[1].startswith(allowed):
            yield Finding("macro", path, line, name=match[1])
    lines = text.splitlines()
    if header != f"ptspec/{ATTRIBUTE_HEADER}.hpp":
        yield from check_attributes(path, text, lines)
    for line, _ in matches(TORN, text):
        yield Finding("torn", path, line)
    for line, match in matches(HARDWARE_WORD, text):
        if match["name"] in ("bit_word", "packet_word"):
            continue
        above = line - 2
        while above >= 0 and re.match(r"\s*(template|requires)\b", lines[above]):
            above -= 1
        comment = []
        while above >= 0 and lines[above].lstrip().startswith("///"):
            comment.append(lines[above].lstrip())
            above -= 1
        for wanted in ("Shape:", "Source:"):
            if not any(re.match(rf"///\s*{wanted}", c) for c in comment):
                yield Finding("doc", path, line, name=match["name"], wanted=wanted)


def is_public(text, place):
    """True when a function declared at `place` is public: not in a namespace `detail`, and, as a
    member, in the public part of its class."""
    namespaces = []
    for match in NAMESPACE.finditer(text, 0, place):
        if match["opened"]:
            namespaces.append(match["opened"])
        elif namespaces:
            namespaces.pop()
    access = "public"
    for match in ACCESS.finditer(text, 0, place):
        access = match["access"] or ("private" if match["class"] else "public")
    return access == "public" and not any("detail" in name.split("::") for name in namespaces)


def after_parameters(text, place):
    """The text after the parameter list whose parenthesis is open at `place`."""
    depth = 1
    while depth and place < len(text):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        place += 1
    return text[place:]


def check_results(headers):
    nodiscard_types = {name for text in headers.text.values()
                       for name in NODISCARD_TYPE.findall(text)}
    for header, text in headers.text.items():
        for line, match in matches(FUNCTION, text):
            if "nodiscard" in match["attributes"] or match["name"] in MAY_BE_DROPPED:
                continue
            result = RESULT_TYPE.match(after_parameters(text, match.end()))
            if is_public(text, match.start()) and not (result and result[1] in nodiscard_types):
                yield Finding("dropped", f"include/{header}", line, name=match["name"])


# ------------------------------------------------------------------------------------- the tree

def check_files(files):
    for path, text in files.items():
        top, slash, _ = path.partition("/")
        allowed = TOP_DIRECTORIES if slash else TOP_FILES
        if top not in allowed and not top.startswith("."):
            yield Finding("top", path, allowed=", ".join(TOP_DIRECTORIES + TOP_FILES))
        for line, match in matches(MACHINE_PATH, text):
            yield Finding("machine-path", path, line, name=match[0])
        mark = comment_mark(path)
        if mark:
            lines = text.split("\n", 2)
            first = 1 if lines[0].startswith("#!") else 0
            allowed = [f"{mark} SPDX-License-Identifier: BSL-1.0"]
            if path.endswith((".c", ".h")):  # C89 has no other comments
                allowed.append("/* SPDX-License-Identifier: BSL-1.0 */")
            if lines[first] not in allowed:
                yield Finding("spdx", path, first + 1, mark=mark)
            for line, match in matches(LEFTOVER, text):
                yield Finding("leftover", path, line, name=match[0])
        is_document = path in DOCUMENTS or path.startswith("include/")
        if (mark or is_document) and not path.startswith("single_include/ptspec/"):
            for number, line in enumerate(text.split("\n"), 1):
                if len(line) > LONGEST_LINE:
                    yield Finding("long", path, number, columns=len(line))
        once = 0 if path == f"include/ptspec/{ATTRIBUTE_HEADER}.hpp" else 1
        if is_header(path) and text.splitlines().count("#pragma once") != once:
            yield Finding("pragma-once", path)


def check_mirrors(files):
    """What `detail/` has is tested by the tests of its users."""
    for path in files:
        header = path.removeprefix("include/ptspec/")
        if "/detail/" in header:
            continue
        name = header.rsplit(".", 1)[0]
        if header != path and name not in (*UMBRELLAS, ONE_COPY) and is_header(header):
            test = f"tests/{name}.cpp"
            if test not in files:
                yield Finding("mirror", path, test=test)


def program_of(path):
    """The folder of a program, or that of what they share; empty for a small example."""
    return re.match(r"(examples/tools/[^/]+/)?", path)[0]


def check_programs(files):
    """A program of examples/tools/ includes its own folder, common/ and ptspec; a small example may
    include common/."""
    for path, text in files.items():
        if not path.startswith("examples/") or comment_mark(path) != "//":
            continue
        for line, match in matches(INCLUDE, text):
            name = match[1][1:-1]
            for target in {os.path.normpath(f"{path}/../{name}"), f"examples/{name}"}:
                if target in files and program_of(target) not in (program_of(path), COMMON):
                    yield Finding("program", path, line, name=target)


def check(root):
    files = read_tree(pathlib.Path(root))
    headers = Headers(files)
    findings = [*check_files(files), *check_mirrors(files), *check_programs(files),
                *check_includes(headers), *check_cycles(headers), *check_umbrella(headers),
                *check_results(headers)]
    for header, text in headers.text.items():
        findings += check_one_header(header, text)
    return sorted(findings, key=lambda finding: (finding.path, finding.line)), len(files)


# ------------------------------------------------------------------------------------- self-test

def small_tree():
    """A tree without findings."""
    word = ("/// A word.\n///\n/// Shape:  64 bits.\n/// Source: the manual.\n"
            "struct {name} : bit_word<{name}, int> {{}};\n")
    functions = (
        "struct [[nodiscard]] fault {};\n"
        "[[nodiscard]] constexpr auto one(int a = f(1)) -> int { return a; }\n"
        "#if defined(__clang__)\n[[clang::cold]]\n#endif\n"
        "PTSPEC_ATTRIBUTE(flatten) [[nodiscard]]\nconstexpr auto two() -> int { return 2; }\n"
        "constexpr auto three(int a = int{3}) -> ns::fault { return {}; }\n"
        "constexpr void four();\n"
        "constexpr auto operator+(x, x) -> x;\n"
        "constexpr auto some::five() -> int { auto six = 6; return six; }\n"
        "constexpr auto visit(auto v) { return v(); }\n"
        "namespace detail {\nconstexpr auto seven() -> int { return 7; }\n}  // namespace detail\n"
        "class eight {\npublic:\n    constexpr eight() = default;\n"
        "private:\n    constexpr auto nine() -> int { return 9; }\n};\n")
    headers = {
        ATTRIBUTE_HEADER: "#define PTSPEC_ATTRIBUTE(name)\n",
        "base/version": "#define PTSPEC_VERSION_MAJOR 1\n",
        "base/bits": "#include <stdint.h>\ntemplate <class W, class R> struct bit_word {};\n",
        "reg/base": "#include <ptspec/base/bits.hpp>\n" + word.format(name="base"),
        "reg/also": "#include <ptspec/reg/base.hpp>\n" + word.format(name="also"),
        "packet/pad": "#include <ptspec/reg/also.hpp>\n",
        "ports/x86": "#include <ptspec/ptspec.hpp>\n#include <sys/io.h>\n",
        "std": "#include <span>\n#include <ptspec/base/attribute.hpp>\n" + functions +
               "\n#undef PTSPEC_ATTRIBUTE\n",
    }
    tree = {f"tests/{name}.cpp": "" for name in headers}
    headers["ptspec"] = "/// All.\n" + "".join(
        f"#include <ptspec/{name}.hpp>\n"
        for name in ("base/version", "base/bits", "reg/base", "reg/also", "packet/pad"))
    tree |= {f"include/ptspec/{name}.hpp":
             ("" if name == ATTRIBUTE_HEADER else "#pragma once\n") + body
             for name, body in headers.items()}
    tree |= {"CMakeLists.txt": "", "tests/checks/run": "", "tests/checks/one.py": "",
             "examples/small.cpp": '#include "tools/common/text.hpp"\n#include "small.hpp"\n',
             "examples/small.hpp": "#pragma once\n",
             "examples/tools/common/text.hpp": "#pragma once\n#include <ptspec/ptspec.hpp>\n",
             "examples/tools/one/one.hpp": "#pragma once\n",
             "examples/tools/one/one.cpp": '#include "../common/text.hpp"\n#include "one.hpp"\n',
             "examples/tools/two/two.cpp": "#include <cstdio>\n"}
    spdx = " SPDX-License-Identifier: BSL-1.0\n"
    tree = {path: comment_mark(path) + spdx + body for path, body in tree.items()}
    tree["tests/checks/run"] = "#!/bin/sh\n" + tree["tests/checks/run"]
    return tree | {"README.md": "# TOD" "O list\n", "LICENSE": "", "CHANGELOG.md": "",
                   ".gitignore": "", "tests/spec/table.csv": "id\n"}


def tampered():
    """The cases: path to change, old text (None: the whole file is deleted), new text, and the
    expected findings."""
    inc = "include/ptspec/"
    yield "notes.txt", "", "hello\n", ["top notes.txt:1"]
    yield "docs/a.md", "", "hello\n", ["top docs/a.md:1"]
    yield inc + "odd/a.txt", "", "\n", [f"place {inc}odd/a.txt:1"]
    yield inc + "odd/README.md", "", "\n", []
    yield inc + "odd/README.md", "", "x" * (LONGEST_LINE + 1), [f"long {inc}odd/README.md:1"]
    yield "examples/README.md", "", "x" * (LONGEST_LINE + 1), ["long examples/README.md:1"]
    yield inc + "odd.hpp", "", "// SPDX-License-Identifier: BSL-1.0\n#pragma once\n", [
        f"mirror {inc}odd.hpp:1", f"place {inc}odd.hpp:1"]
    yield inc + "base/bits.hpp", "<stdint.h>", "<ptspec/reg/base.hpp>", [
        f"cycle {inc}base/bits.hpp:1", f"umbrella-order {inc}ptspec.hpp:6"]
    yield inc + "base/version.hpp", "once", "once\n#include <ptspec/base/bits.hpp>", [
        f"umbrella-order {inc}ptspec.hpp:5"]
    yield inc + "reg/base.hpp", "<ptspec/base/bits.hpp>", "<ptspec/reg/also.hpp>", [
        f"umbrella-order {inc}ptspec.hpp:7", f"cycle {inc}reg/also.hpp:1"]
    yield inc + "reg/also.hpp", "reg/base", "reg/none", [f"missing {inc}reg/also.hpp:3"]
    yield inc + "ptspec.hpp", None, None, [
        f"missing {inc}ports/x86.hpp:3", f"missing {inc}ptspec.hpp:1"]
    yield inc + "base/bits.hpp", "<stdint.h>", "<limits>", [f"system {inc}base/bits.hpp:3"]
    yield inc + "base/bits.hpp", "<stdint.h>", '"lang.hpp"', [f"system {inc}base/bits.hpp:3"]
    yield inc + "ptspec.hpp", "#include <ptspec/base/bits.hpp>\n", "", [
        f"umbrella-missing {inc}ptspec.hpp:1"]
    yield inc + "ptspec.hpp", "pad.hpp>", "pad.hpp>\n#include <ptspec/base/bits.hpp>", [
        f"umbrella-twice {inc}ptspec.hpp:9"]
    yield inc + "ptspec.hpp", "pad.hpp>", "pad.hpp>\n#include <stdint.h>\nint x;", [
        f"umbrella-own {inc}ptspec.hpp:10"]
    for path, old, new in (("tools/two/two.cpp", "<cstdio>", '"../one/one.hpp"'),
                           ("tools/two/two.cpp", "<cstdio>", "<tools/one/one.hpp>"),
                           ("tools/two/two.cpp", "<cstdio>", '"../../small.hpp"'),
                           ("small.cpp", "common/text.hpp", "one/one.hpp")):
        yield "examples/" + path, old, new, [f"program examples/{path}:2"]
    yield COMMON + "text.hpp", "<ptspec/ptspec.hpp>", '"../one/one.hpp"', [
        f"program {COMMON}text.hpp:3"]
    yield inc + "base/bits.hpp", "#pragma once\n", "", [f"pragma-once {inc}base/bits.hpp:1"]
    yield inc + "base/bits.hpp", "// SPDX", "// Copyright\n// SPDX", [f"spdx {inc}base/bits.hpp:1"]
    yield "tests/checks/run", "# SPDX", "\n# SPDX", ["spdx tests/checks/run:2"]
    yield "tests/c89.c", "", "/* SPDX-License-Identifier: BSL-1.0 */\n", []
    yield "tests/c89.c", "", "/* SPDX-License-Identifier */\n", ["spdx tests/c89.c:1"]
    yield "tests/new.cmake", "", "set(x 1)\n", ["spdx tests/new.cmake:1"]
    yield inc + "base/version.hpp", "PTSPEC_V", "V", [f"macro {inc}base/version.hpp:3"]
    yield inc + "base/bits.hpp", "<stdint.h>", "<stdint.h>\n#  define PTSPEC_VERSION_X", [
        f"macro {inc}base/bits.hpp:4"]
    std = inc + "std.hpp"
    attribute = "[[clang::cold]]"
    fence = f"#if defined(__clang__)\n{attribute}\n#endif"
    for line, new in ((7, attribute), (8, fence.replace("(__clang__)", "(_MSC_VER)")),
                      (8, fence.replace("]]", "]]  // why")), (8, fence.replace("#endif", "#else")),
                      (8, fence.replace("]]\n", "]] static\n")), (7, "[[noreturn, clang::cold]]"),
                      (8, fence.replace("clang::", "gnu::"))):
        yield std, fence, new, [f"attribute {std}:{line}"]
    yield std, fence, fence.replace("]]", ", clang::hot]]"), []
    yield std, fence, fence.replace("clang", "msvc").replace("__msvc__", "_MSC_VER"), []
    yield std, "\n#undef PTSPEC_ATTRIBUTE", "", [f"attribute-scope {std}:10"]
    yield std, "PTSPEC_ATTRIBUTE(flatten)", "", [f"attribute-scope {std}:1"]
    include = "#include <ptspec/base/attribute.hpp>\n"
    yield std, include, "", [f"attribute-scope {std}:9"]
    yield std, include, include + "#include <ptspec/base/bits.hpp>\n", [
        f"attribute-scope {std}:11"]
    yield std, "constexpr auto two", "constexpr auto\ntwo", [f"torn {std}:11"]
    yield "tests/reg/also.cpp", None, None, [f"mirror {inc}reg/also.hpp:1"]
    yield "tests/base/version.cpp", None, None, [f"mirror {inc}base/version.hpp:1"]
    for place in ("/wo" "rk/x", "/ro" "ot/x", "/ho" "me/x", "/tm" "p/x"):
        yield "README.md", "list", place, ["machine-path README.md:1"]
    yield inc + "std.hpp", "<span>", "<span>  // " + "x" * LONGEST_LINE, [f"long {inc}std.hpp:3"]
    yield "README.md", "list", "x" * LONGEST_LINE, ["long README.md:1"]
    for word in ("TOD" "O", "FIXM" "E", "XX" "X"):
        yield "tests/base/bits.cpp", "\n", f"\n// {word}: later\n", [
            "leftover tests/base/bits.cpp:2"]
    yield "tests/base/bits.cpp", "\n", "\n" + "<" * 7 + " HEAD\n", [
        "leftover tests/base/bits.cpp:2"]
    for line in ("/// Shape:  64 bits.\n", "/// Source: the manual.\n"):
        yield inc + "reg/base.hpp", line, "///\n", [f"doc {inc}reg/base.hpp:8"]
    yield inc + "reg/base.hpp", "struct base :", "\nstruct base\n    : public ptspec::", [
        f"doc {inc}reg/base.hpp:9"] * 2
    yield inc + "reg/also.hpp", "/// A word.", "struct y : some<y> {};\n/// A word.", [
        f"doc {inc}reg/also.hpp:4"] * 2
    for old, new, line in (("struct [[nodiscard]]", "struct", 12),
                           ("[[nodiscard]] constexpr auto one", "constexpr auto one", 6),
                           ("[[nodiscard]]\nconstexpr auto two", "constexpr auto two", 10),
                           ("ns::fault", "ns::other", 12), ("some::five", "five", 15),
                           ("visit", "visit_all", 16),
                           ("namespace detail {", "namespace other {", 18),
                           ("private:", "public:", 24)):
        yield inc + "std.hpp", old, new, [f"dropped {inc}std.hpp:{line}"]


def found_in(tree, tracked=None):
    """The findings in a tree of these files. `tracked`: files that git tracks, if any."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        write_tree(root, tree)
        if tracked:
            environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
            for command in (["init", "-q"], ["add", "--", *tracked]):
                subprocess.run(["git", "-C", folder, *command], env=environment, check=True)
        return [f"{f.rule} {f.path}:{f.line}" for f in check(root)[0]]


def self_test():
    failures, fired = [], set()

    def expect(what, found, wanted):
        fired.update(item.split()[0] for item in wanted if item in found)
        if sorted(found) != sorted(wanted):
            failures.append(f"{what}\n  wanted {sorted(wanted)}\n  found  {sorted(found)}")

    expect("the clean tree", found_in(small_tree()), [])
    for path, old, new, wanted in tampered():
        tree = small_tree()
        if old is None:
            del tree[path]
        else:
            assert old in tree.get(path, ""), f"{path} has no {old!r} to replace"
            tree[path] = tree.get(path, "").replace(old, new, 1) if old else new
        expect(f"{path}: {old!r} -> {new!r}", found_in(tree), wanted)
    if shutil.which("git"):
        # Of untracked files, only those in the source directories are checked.
        tree, known = small_tree() | {"notes.txt": ""}, list(small_tree())
        expect("an untracked note", found_in(tree, known), [])
        expect("a tracked note", found_in(tree, list(tree)), ["top notes.txt:1"])
        tree |= {"tests/new.py": ""}
        expect("an untracked source", found_in(tree, known), ["spdx tests/new.py:1"])
    expect("the rules that no case breaks", sorted(set(RULES) - fired), [])
    print("\n".join(failures) if failures else f"self-test: all {len(RULES)} rules fire")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description="Check the house rules of the source tree.")
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--self-test", action="store_true", help="show that every rule can fail")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not pathlib.Path(options.root, "include", "ptspec").is_dir():
        parser.error(f"{options.root} has no include/ptspec")
    findings, count = check(options.root)
    for finding in findings:
        print(finding.text)
    print(f"{count} files, {len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
