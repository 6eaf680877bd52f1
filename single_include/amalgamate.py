#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Generates the core library as one header, single_include/ptspec/ptspec.hpp.

    single_include/amalgamate.py                 writes it
    single_include/amalgamate.py --output FILE   writes it to another file
    single_include/amalgamate.py --check         compares it with the existing file
    single_include/amalgamate.py --self-test     tests the output and the rejected inputs

The first `#include <ptspec/...>` of a file is replaced by its contents; nothing else is changed. In
ptspec/base/one_copy.hpp, the check against the single header is replaced by one against separate
headers. The macro of ptspec/base/attribute.hpp is defined and undefined once.

Exit status: 0 success, 1 rejected or (with --check) stale, 2 wrong usage.
"""

import argparse
import contextlib
import difflib
import io
import itertools
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
START = "ptspec/ptspec.hpp"
SYSTEM_HEADERS = ("<stddef.h>", "<stdint.h>")
ONE_COPY = "ptspec/base/one_copy.hpp"
UNDEFINE = "#undef PTSPEC_ATTRIBUTE"

SPDX = "// SPDX-License-Identifier: BSL-1.0"
HEAD = """\
{spdx}
//
// ptspec {version}: Intel Processor Trace, written down as C++20. The whole library in one header.
//
// Generated from include/ptspec/ptspec.hpp by single_include/amalgamate.py. Do not edit.
#pragma once

#if (defined(_MSVC_LANG) && _MSVC_LANG < 202002L) || \\
    (!defined(_MSVC_LANG) && __cplusplus < 202002L)
#error "ptspec needs C++20: -std=c++20 or /std:c++20"
#include <ptspec/needs_cxx20>  // ends compilation before other errors follow
#endif

#if defined(PTSPEC_SEPARATE_HEADERS)
#error "headers of ptspec are included already: include either those or the single header"
#include <ptspec/either_the_single_header_or_those>  // ends compilation before redefinitions follow
#endif
#define PTSPEC_SINGLE_HEADER

{system}
"""

INCLUDE = re.compile(r"\s*#\s*include\s+(\S.*?)\s*(?://.*)?$")
CONDITION = re.compile(r"\s*#\s*(if|endif)")
VERSION = re.compile(r"^#define PTSPEC_VERSION_(MAJOR|MINOR|PATCH) (\d+)$", re.M)


class Refused(Exception):
    """The input cannot be merged into one header. The message is `path:line: what is wrong`."""


class Amalgam:
    """The files in the order in which a compiler reads them."""

    def __init__(self, include):
        self.include = include
        self.parts = []    # the text of each file, under its banner
        self.done = set()
        self.system = set()
        self.add(START, (), "ptspec.hpp:1")

    def add(self, name, includers, place):
        """Adds a file after all files that it includes."""
        if name in includers:
            raise Refused(f"{place}: {' -> '.join((*includers, name))} is a circle of includes")
        if name in self.done:
            return
        try:
            lines = (self.include / name).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            raise Refused(f"{place}: there is no include/{name}") from None
        body, depth = [], 0
        for number, line in enumerate(lines, 1):
            here = f"include/{name}:{number}"
            if condition := CONDITION.match(line):
                depth += 1 if condition[1] == "if" else -1
            if match := INCLUDE.match(line):
                self.follow(match[1], depth, (*includers, name), here)
            elif line not in ("#pragma once", SPDX, UNDEFINE):
                body.append(line)
        self.done.add(name)
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(body).strip("\n"))
        if re.sub(r"//.*|\s", "", text):
            self.parts.append(f"\n// ---- {name} ----\n\n{text}\n")

    def follow(self, included, depth, includers, here):
        if depth:
            raise Refused(f"{here}: an #include inside #if would be unconditional in one header")
        if included == f"<{ONE_COPY}>":
            return
        if included.startswith("<ptspec/"):
            self.add(included[1:-1], includers, here)
        elif included in SYSTEM_HEADERS:
            self.system.add(included)
        else:
            raise Refused(f"{here}: {included} is none of {', '.join(SYSTEM_HEADERS)}")

    def version(self):
        path = self.include / "ptspec" / "base" / "version.hpp"
        found = dict(VERSION.findall(path.read_text(encoding="utf-8") if path.exists() else ""))
        try:
            return ".".join(found[part] for part in ("MAJOR", "MINOR", "PATCH"))
        except KeyError as error:
            part = error.args[0]
            raise Refused(f"include/ptspec/base/version.hpp:1: no PTSPEC_VERSION_{part}") from None

    def text(self):
        system = "\n".join(f"#include {name}" for name in sorted(self.system))
        head = HEAD.format(spdx=SPDX, version=self.version(), system=system)
        return head + "".join(self.parts) + f"\n{UNDEFINE}\n"


def run(root, output, check):
    """Writes or compares; returns the exit status."""
    try:
        wanted = Amalgam(root / "include").text()
    except Refused as refusal:
        print(refusal)
        return 1
    if not check:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(wanted, encoding="utf-8", newline="\n")
        return 0
    there = output.read_text(encoding="utf-8") if output.exists() else ""
    if there == wanted:
        return 0
    name = output.relative_to(root) if output.is_relative_to(root) else output
    print(f"{name}:1: stale, run single_include/amalgamate.py")
    diff = difflib.unified_diff(there.splitlines(), wanted.splitlines(), "there", "wanted",
                                lineterm="")
    print("\n".join(itertools.islice(diff, 30)))
    return 1


# ------------------------------------------------------------------------------------- self-test

SMALL = {
    "ptspec": "/// All of it.\n\n#include <ptspec/base/version.hpp>\n#include <ptspec/b.hpp>\n"
              "#include <ptspec/a.hpp>\n",
    "base/one_copy": "int one_copy;\n",
    "base/version": "#include <ptspec/base/one_copy.hpp>\n"
               "#define PTSPEC_VERSION_MAJOR 1\n#define PTSPEC_VERSION_MINOR 2\n"
               "#define PTSPEC_VERSION_PATCH 3\n",
    "a": "#include <stdint.h>\n#include <stddef.h>\n\nint a;\n\n\n",
    "b": "#include <ptspec/a.hpp>\n\n#include <stdint.h>  // uint64_t\n\n#if 1\nint b;\n#endif\n"
         "#undef PTSPEC_ATTRIBUTE\n",
}

EXPECTED = HEAD.format(spdx=SPDX, version="1.2.3",
                       system="#include <stddef.h>\n#include <stdint.h>") + """
// ---- ptspec/base/version.hpp ----

#define PTSPEC_VERSION_MAJOR 1
#define PTSPEC_VERSION_MINOR 2
#define PTSPEC_VERSION_PATCH 3

// ---- ptspec/a.hpp ----

int a;

// ---- ptspec/b.hpp ----

#if 1
int b;
#endif

#undef PTSPEC_ATTRIBUTE
"""

# File to change, old text, new text, and the expected message.
REFUSED = [
    ("a", "<stddef.h>", "<limits>", "include/ptspec/a.hpp:4: <limits> is none of"),
    ("a", "<stddef.h>", '"b.hpp"', 'include/ptspec/a.hpp:4: "b.hpp" is none of'),
    ("b", "<ptspec/a.hpp>", "<ptspec/c.hpp>",
     "include/ptspec/b.hpp:3: there is no include/ptspec/c.hpp"),
    ("a", "<stdint.h>", "<ptspec/b.hpp>",
     "include/ptspec/a.hpp:3: ptspec/ptspec.hpp -> ptspec/b.hpp -> ptspec/a.hpp -> ptspec/b.hpp "
     "is a circle"),
    ("b", "int b;", "#  include <stdint.h>",
     "include/ptspec/b.hpp:8: an #include inside #if"),
    ("base/version", "MINOR", "MIDDLE",
     "include/ptspec/base/version.hpp:1: no PTSPEC_VERSION_MINOR"),
]


def self_test():
    failures = []

    def outcome(changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**SMALL, **changes}.items():
                path = pathlib.Path(folder, f"ptspec/{name}.hpp")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{SPDX}\n#pragma once\n{text}", encoding="utf-8")
            try:
                return Amalgam(pathlib.Path(folder)).text()
            except Refused as refusal:
                return str(refusal)

    if (text := outcome({})) != EXPECTED:
        failures.append(f"the small tree gives\n{text}")
    for name, old, new, wanted in REFUSED:
        assert old in SMALL[name], f"{name} has no {old!r} to replace"
        if not (text := outcome({name: SMALL[name].replace(old, new)})).startswith(wanted):
            failures.append(f"{name}: {old!r} -> {new!r}: wanted {wanted!r}, got {text!r}")
    failures += check_option_failures()
    print("\n".join(failures) if failures else "self-test: as expected")
    return 1 if failures else 0


def check_option_failures():
    """--check accepts only what was just written."""
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        root = pathlib.Path(folder)
        for name, text in SMALL.items():
            path = root / f"include/ptspec/{name}.hpp"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        output = root / "one/ptspec.hpp"
        steps = [("missing", 1, run(root, output, check=True)),
                 ("writing", 0, run(root, output, check=False)),
                 ("fresh", 0, run(root, output, check=True))]
        output.write_text(output.read_text(encoding="utf-8") + "int c;\n", encoding="utf-8")
        steps.append(("stale", 1, run(root, output, check=True)))
    failures = [f"{what}: wanted {wanted}, got {got}" for what, wanted, got in steps
                if wanted != got]
    if "-int c;" not in printed.getvalue().splitlines():
        failures.append(f"--check does not show the difference: {printed.getvalue()}")
    return failures


def main():
    parser = argparse.ArgumentParser(description="Write the library as one header.")
    parser.add_argument("--output", type=pathlib.Path,
                        default=ROOT / "single_include" / "ptspec" / "ptspec.hpp")
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    parser.add_argument("--self-test", action="store_true", help="show what it does and refuses")
    options = parser.parse_args()
    return self_test() if options.self_test else run(ROOT, options.output, options.check)


if __name__ == "__main__":
    sys.exit(main())
