#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that includes follow the reading order, that no wing uses another's `detail`, and that no
header is longer than one concept.

    tests/checks/order.py [ROOT]        a line `path:line: what is wrong` for each finding
    tests/checks/order.py --figures     prints figures about the whole of include/
    tests/checks/order.py --self-test   breaks each rule in a small tree; each must be found

The order is reading_order.txt. A wing is a folder of include/ptspec/, and the namespace of its
name.

Exit status: 0 no finding, 1 findings, 2 wrong usage.
"""

import argparse
import collections
import pathlib
import re
import sys

import sources
from sources import ORDER, Headers, matches

LONGEST_HEADER = 650

# Every rule, by its name in the self-test.
RULES = {
    "order": "{what} is below this file in the reading order and must not be included here",
    "detail": "{what} belongs to another wing",
    "door": "{what} is above what ptspec.hpp includes before it",
    "long": "{what} lines: more than one concept",
}

DETAIL = re.compile(r"(?<![\w:])(?:::)?(?:ptspec::)?(?P<wing>\w+)(?:::\w+)*?::detail\b")
DETAIL_HEADER = re.compile(r"<ptspec/(?P<wing>\w+)/(?:\w+/)*detail/")
BASE_DETAIL = re.compile(r"(?<![\w:])ptspec::detail\b(?!\s*\{)")


class Finding(collections.namedtuple("Finding", "rule path line what")):
    def __str__(self):
        return f"{self.path}:{self.line}: {RULES[self.rule].format(what=self.what)}"


def wing_of(header):
    """The folder of a header; empty for a header directly in include/ptspec/."""
    return header.split("/")[1] if header.count("/") > 1 else ""


# -------------------------------------------------------------------------------------- the rules

def upward_includes(headers):
    for header in headers.text:
        rank = ORDER.rank(header)
        for line, other in headers.own(header):
            if rank is not None and other in headers.text and (ORDER.rank(other) or 0) > rank:
                yield Finding("order", f"include/{header}", line, other)


def uses_of_detail(headers):
    wings = {wing_of(header) for header in headers.text} - {""}
    for header, text in headers.text.items():
        text = sources.without_comments(text)
        for pattern in (DETAIL, DETAIL_HEADER):
            for line, match in matches(pattern, text):
                if match["wing"] in wings - {wing_of(header)}:
                    what = f"{match['wing']}::detail"
                    yield Finding("detail", f"include/{header}", line, what)


def order_of_door(headers):
    door, highest = "ptspec/ptspec.hpp", 0
    for line, header in headers.own(door) if door in headers.text else ():
        rank = ORDER.rank(header) or 0
        if rank < highest:
            yield Finding("door", f"include/{door}", line, header)
        highest = max(highest, rank)


def long_headers(headers):
    for header, text in headers.text.items():
        if text.count("\n") > LONGEST_HEADER:
            yield Finding("long", f"include/{header}", 1, text.count("\n"))


def check(root):
    headers = Headers(sources.read_tree(root))
    findings = [*upward_includes(headers), *uses_of_detail(headers), *order_of_door(headers),
                *long_headers(headers)]
    return sorted(findings, key=lambda finding: (finding.path, finding.line))


# ------------------------------------------------------------------------------------ the figures

def floors(headers):
    """The number of headers in the longest chain of includes."""
    height = {}

    def climb(header):
        if header not in height:
            height[header] = 0  # ends a circle
            height[header] = 1 + max((climb(other) for _, other in headers.own(header)
                                      if other in headers.text), default=0)
        return height[header]

    return max(map(climb, headers.text), default=0)


def data_members(headers):
    """The data members of types as (name, type)."""
    for text in headers.text.values():
        for scopes, head in sources.declarations(text):
            tokens = sources.without_attributes(head)
            if "=" in tokens:
                tokens = tokens[:tokens.index("=")]
            is_data = len(tokens) > 1 and not {"(", "using", "operator", "static"} & {*tokens}
            if "struct" in scopes and is_data and sources.IDENTIFIER.fullmatch(tokens[-1]):
                kind = [token for token in tokens[:-1] if token not in ("const", "mutable")]
                yield tokens[-1], "".join(kind)


def counted(names):
    return ", ".join(f"{name} {count}" for name, count in
                     sorted(collections.Counter(names).items(), key=lambda one: (-one[1], one[0])))


def figures(headers):
    """The figures as lines."""
    lines, folders = collections.Counter(), set()
    for header, text in headers.text.items():
        folder = header.rpartition("/")[0]
        folders.add(folder)
        lines[wing_of(header) or "ptspec"] += text.count("\n")
    upward, used = list(upward_includes(headers)), list(uses_of_detail(headers))
    members = list(data_members(headers))
    broken = [name for name, kind in members if kind.rsplit("::", 1)[-1] == "rule"]
    why = [kind for name, kind in members if name in ("why", "why_")]
    base = sum(len(BASE_DETAIL.findall(sources.without_comments(text)))
               - text.count("namespace ptspec::detail")
               for header, text in headers.text.items() if wing_of(header) not in ("", "base"))
    yield f"folders: {len(folders)}"
    yield f"headers: {len(headers.text)}"
    yield f"floors (headers in the longest chain of includes): {floors(headers)}"
    yield f"includes that lead up: {len(upward)}"
    yield from (f"    {finding.path} -> {finding.what}" for finding in upward)
    pairs = [f"{wing_of(finding.path.removeprefix('include/')) or 'ptspec'} -> {finding.what}"
             for finding in used]
    yield f"uses of another wing's detail: {len(used)}"
    yield from (f"    {count:3} {pair}" for pair, count in collections.Counter(pairs).most_common())
    yield f"uses of ptspec::detail, that of the foundations, by folders: {base}"
    yield f"names of members of type rule: {len(set(broken))} ({counted(broken)})"
    yield f"types of members named why: {len(set(why))} ({counted(why)})"
    yield f"lines: {sum(lines.values())}"
    yield from (f"    {count:6} {folder}" for folder, count in lines.most_common())
    longest = max(headers.text, key=lambda header: headers.text[header].count("\n"))
    yield f"longest header: {longest}, {headers.text[longest].count(chr(10))} lines"


# -------------------------------------------------------------------------------------- self-test

SMALL = {
    "include/ptspec/base/bits.hpp": "#pragma once\n",
    "include/ptspec/reg/ctl.hpp": "#include <ptspec/base/bits.hpp>\n// vmx::detail::x\n"
                                  "namespace ptspec::reg {\nnamespace detail {}\n"
                                  "struct refused {\n    rule why{};\n    rule broken;\n"
                                  "    auto f() { rule local; }\n"
                                  "private:\n    fault why = {};\n};\n}\n",
    "include/ptspec/vmx/guest.hpp": "#include <ptspec/reg/ctl.hpp>\n"
                                    "using ptspec::detail::mask;\nint x = vmx::detail::y;\n",
    "include/ptspec/ptspec.hpp": "#include <ptspec/base/bits.hpp>\n#include <ptspec/reg/ctl.hpp>\n"
                                 "#include <ptspec/vmx/guest.hpp>\n",
}


def tampered():
    """The cases: path, old text, new text, and the expected findings."""
    reg, vmx, door = (f"include/ptspec/{name}.hpp" for name in ("reg/ctl", "vmx/guest", "ptspec"))
    yield reg, "", "", []
    yield reg, "<ptspec/base/bits", "<ptspec/vmx/guest", [f"order {reg}:1"]
    yield vmx, "int x", "int w = reg::detail::w;\nint x", [f"detail {vmx}:3"]
    yield vmx, "vmx::detail::y", "ptspec::reg::inner::detail::y", [f"detail {vmx}:3"]
    yield vmx, "vmx::detail::y", "::ptspec::reg::detail::y", [f"detail {vmx}:3"]
    for new in ("using namespace reg::detail;", "namespace d = reg::detail;",
                "namespace ptspec::reg::detail {}"):
        yield vmx, "int x", f"{new}\nint x", [f"detail {vmx}:3"]
    yield vmx, "<ptspec/reg/ctl", "<ptspec/reg/detail/ctl", [f"detail {vmx}:1"]
    yield reg, "// vmx", "vmx", [f"detail {reg}:2"]
    yield door, "#include <ptspec/reg/ctl.hpp>\n", "", []
    yield door, "vmx/guest.hpp>\n", "vmx/guest.hpp>\n#include <ptspec/reg/more.hpp>\n", [
        f"door {door}:4"]
    yield reg, "#include", "\n" * (LONGEST_HEADER - 12) + "#include", []
    yield reg, "#include", "\n" * (LONGEST_HEADER - 11) + "#include", [f"long {reg}:1"]


def self_test():
    failures = sources.self_test_cases(
        SMALL, tampered(), lambda folder: [f"{f.rule} {f.path}:{f.line}" for f in check(folder)],
        RULES)

    text = "\n".join(figures(Headers(SMALL)))
    for wanted in ("folders: 4", "longest chain of includes): 4", "lead up: 0",
                   "another wing's detail: 0", "by folders: 1", "rule: 2 (broken 1, why 1)",
                   "named why: 2 (fault 1, rule 1)", "lines: 19"):
        if wanted not in text:
            failures.append(f"no {wanted!r} in the figures:\n{text}")
    print("\n".join(failures) if failures else f"self-test: all {len(RULES)} rules fire")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description="Check the order of the folders of include/.")
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parents[2],
                        type=pathlib.Path)
    parser.add_argument("--figures", action="store_true", help="print figures about include/")
    parser.add_argument("--self-test", action="store_true", help="show that every rule can fail")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not (options.root / "include" / "ptspec").is_dir():
        parser.error(f"{options.root} has no include/ptspec")
    if options.figures:
        print("\n".join(figures(Headers(sources.read_tree(options.root)))))
        return 0
    findings = check(options.root)
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
