#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that a public name which stands in several namespaces has a row in words.csv.

    tests/checks/words.py [ROOT]        a line `path:line: what is wrong` for each finding
    tests/checks/words.py --self-test   breaks each rule in a small tree; each must be found

Names are types, aliases, enums, concepts and functions at namespace scope in include/ptspec, also
in nested namespaces, but not in `detail`. A row has the word, its one meaning, and the namespaces.
If a word has two meanings, rename one of them.

Exit status: 0 no finding, 1 findings, 2 wrong usage.
"""

import argparse
import collections
import csv
import io
import pathlib
import sys

import sources

TABLE = "tests/checks/words.csv"
COLUMNS = ["word", "meaning", "where"]

RULES = {
    "missing": "{word} stands in {where}: give it a row in words.csv, or another name",
    "not-needed": "{word} stands in {where}: it needs no row",
    "where": "{word} stands in {where}",
    "meaning": "the row of {word} does not say what it means",
    "form": "a row is {where}, sorted by the word",
}


class Finding(collections.namedtuple("Finding", "rule line word where")):
    def __str__(self):
        what = RULES[self.rule].format(word=self.word, where=self.where)
        return f"{TABLE}:{self.line}: {what}"


def namespaces_of_names(files):
    """{name: its namespaces, sorted}"""
    headers = sources.Headers(files)
    names = sources.public_names(headers.text.values())
    return {name: sorted(namespaces) for name, namespaces in names.items()}


def check(files):
    names = namespaces_of_names(files)
    rows = list(csv.reader(io.StringIO(files.get(TABLE, ""))))
    findings, previous, known = [], "", set()
    for line, row in enumerate(rows, 1):
        if len(row) != len(COLUMNS) or line == 1 and row != COLUMNS or row[0] <= previous:
            findings.append(Finding("form", line, row[0] if row else "", ", ".join(COLUMNS)))
        if line == 1 or len(row) != len(COLUMNS):
            continue
        word, meaning, where = row
        previous = word
        known.add(word)
        now = names.get(word, [])
        if len(now) < 2:
            findings.append(Finding("not-needed", line, word, ", ".join(now) or "no namespace"))
        elif where.split() != now:
            findings.append(Finding("where", line, word, " ".join(now)))
        if not meaning.strip():
            findings.append(Finding("meaning", line, word, ""))
    for word, now in sorted(names.items()):
        if len(now) > 1 and word not in known:
            findings.append(Finding("missing", len(rows), word, ", ".join(now)))
    return findings, rows[1:], len(names)


# -------------------------------------------------------------------------------------- self-test

HEADER = """
namespace ptspec {
template <class T>
concept any = requires(T a) { a.one(); };
namespace detail { struct reader {}; }
}
namespace ptspec::reg {
struct [[nodiscard]] reader : some<reader> { struct text {}; void put() {} int x = f(1); };
enum class kind : uint8_t { none, one };
template <class T, class U = list<list<T>>>
    requires(sizeof(T) > 1) && any<T>
[[nodiscard]] constexpr auto load(T it) -> int { if (it) { put(it); } return 0; }
using all = list<reader>;
inline constexpr auto size = make(1);
}
"""
SMALL = {
    "include/ptspec/reg/one.hpp": HEADER,
    "include/ptspec/vmx/two.hpp": "namespace ptspec::vmx {\n// struct kind {};\n"
                                  "#define X struct all {\nclass reader {};\n"
                                  "template <> struct text<int> {};\n"
                                  "constexpr void load(int) {}\n"
                                  "constexpr auto put::all() -> int { return 0; }\n"
                                  "inline constexpr int kind = {};\nusing reg::all;\n}\n",
    TABLE: "word,meaning,where\nload,reads bytes,reg vmx\n"
           "reader,reads one by one,reg vmx\n",
}


def tampered():
    """The cases: path, old text, new text, and the expected findings."""
    one, two = "include/ptspec/reg/one.hpp", "include/ptspec/vmx/two.hpp"
    yield one, "", "", []
    for new in ("struct all {};", "enum kind : int {};", "using kind = int;", "concept any = true;",
                "template <any T> requires(a<T>) struct all : b {};",
                "constexpr void all(int a = f(1));", "namespace inner { class all; }",
                "template <auto X>\n[[gnu::flat]] constexpr auto kind(int) noexcept -> int;"):
        word = next(word for word in ("all", "kind", "any") if f" {word}" in new)
        yield two, "inline constexpr", new + "\ninline constexpr", [f"missing 3 {word}"]
    yield two, "class reader {};\n", "", ["not-needed 3 reader"]
    yield two, "class reader", "namespace sub { class reader {}; }\nclass reader", [
        "where 3 reader"]
    yield two, "ptspec::vmx", "ptspec::detail", ["not-needed 2 load", "not-needed 3 reader"]
    yield TABLE, "load,reads bytes", "load, ", ["meaning 2 load"]
    yield TABLE, "reg vmx\nreader", "vmx\nreader", ["where 2 load"]
    yield TABLE, "reader,reads one by one,reg vmx\n", "", ["missing 2 reader"]
    yield TABLE, "word,", "name,", ["form 1 name"]
    yield TABLE, "where\n", "where\nput,x,\n", ["form 3 load", "not-needed 2 put"]
    yield TABLE, "where\n", "where\nload\n", ["form 2 load"]


def self_test():
    failures = sources.self_test_cases(
        SMALL, tampered(), lambda folder: [f"{f.rule} {f.line} {f.word}"
                                           for f in check(sources.read_tree(folder))[0]],
        RULES)
    print("\n".join(failures) if failures else f"self-test: all {len(RULES)} rules fire")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description="Check names that stand in several namespaces.")
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parents[2],
                        type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true", help="show that every rule can fail")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not (options.root / "include" / "ptspec").is_dir():
        parser.error(f"{options.root} has no include/ptspec")
    findings, rows, count = check(sources.read_tree(options.root))
    for finding in findings:
        print(finding)
    print(f"{count} names, {len(rows)} in several namespaces, {len(findings)} findings",
          file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
