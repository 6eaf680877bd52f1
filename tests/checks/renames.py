#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that the renames of the changelog are complete: with them alone, the examples of an older
commit build against include/ of the working tree. Run it manually; it needs clang.

    tests/checks/renames.py COMMIT              examples/ and tests/consumer/ of COMMIT
    tests/checks/renames.py COMMIT --diff       also prints what was renamed in them
    tests/checks/renames.py --table FILE ..     another table than CHANGELOG.md
    tests/checks/renames.py --self-test

The table is every section `### Renamed`, one rename a line, names relative to namespace ptspec:

    - `trace::context` -> `trace::binder`                     type, function, enumerator ..
    - `packet::decoded::why` -> `packet::decoded::error`      member
    - `ptspec/trace/context.hpp` -> `ptspec/trace/binder.hpp`
    - `config::nearest(caps, wanted)` -> `config::nearest(wanted, caps)`    order of arguments
    - `bool(port_fault)` -> `port_fault::happened`            conversion that a member replaces
    - `msr_model` -> `simulate::msr_model` in `ptspec/simulate/ports.hpp`
    - `access::value_of` -> `access::value_of` in `ptspec/access/pt_msrs.hpp`     needs a header

Qualified names, also those through a namespace alias, headers and orders of arguments are replaced
in the text. All other uses are found as errors of the compiler, which name the type or namespace.
Programs that need a library which is missing are left out.

Exit status: 0 all build, 1 some do not, 2 wrong usage.
"""

import argparse
import collections
import concurrent.futures
import difflib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import skips  # noqa: E402

COMPILERS = ("clang++-19", "clang++", "clang++-16", "clang++-14")
FLAGS = ["-std=c++20", "-fsyntax-only", "-w", "-ferror-limit=0", "-fno-spell-checking",
         "-fno-caret-diagnostics", "-fno-color-diagnostics"]
ROUNDS = 20
JOBS = 2

SECTION = re.compile(r"^### Renamed\n(.*?)(?=^##|\Z)", re.M | re.S)
ROW = re.compile(r"- `([^`]+)` -> `([^`]+)`(?: in `([^`]+)`)?")
CALL = re.compile(r"([\w:]+)\(([\w, ]*)\)$")
CONVERSION = re.compile(r"bool\(([\w:]+)\)$")
BRACKET = re.compile(r'"(?:\\.|[^"\\\n])*"|[()\[\]{},]')
ALIAS = re.compile(r"\bnamespace (\w+) = (?:::)?ptspec::([\w:]+);")
PLACE = re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: "
                   r"(?P<text>.*)$", re.M)
# What clang says about a name that does not exist, with the type or namespace, if it knows one.
UNKNOWN = (
    re.compile(r"no (?:member|type|template|type template|struct|class) named '(?P<name>\w+)' in "
               r"(?:namespace )?'(?P<scope>[^']+)'"),
    re.compile(r"field designator '(?P<name>\w+)' does not refer to any .* in type "
               r"'(?P<scope>[^']+)'"),
    re.compile(r"(?:use of undeclared identifier|unknown type name|no template named) "
               r"'(?P<name>\w+)'"),
)
# What clang says about a value that does not convert to bool.
NO_BOOL = re.compile(r"(?:value of type|invalid argument type) '(?P<type>[^']+)'")


class BadTable(Exception):
    pass


# -------------------------------------------------------------------------------------- the table

def read_table(text):
    """The renames of a changelog as [(old, new, header or None)]."""
    rows = []
    for section in SECTION.findall(text):
        for line in section.splitlines():
            row = ROW.match(line)
            if row:
                rows.append(row.groups())
            elif line.startswith("- "):
                raise BadTable(f"not a rename: {line}")
    return rows


class Table:
    def __init__(self, rows):
        self.headers, self.calls, self.names, self.conversions = {}, {}, {}, {}
        self.needed = {}  # old name -> the header that has the new one
        for old, new, header in rows:
            if header:
                self.needed[old] = header
            if conversion := CONVERSION.match(old):
                self.conversions[conversion[1]] = new
                continue
            calls = CALL.match(old), CALL.match(new)
            if old.endswith((".hpp", ".h")):
                self.headers[old] = new
                continue
            if all(calls):
                before, after = (re.findall(r"\w+", call[2]) for call in calls)
                if sorted(before) != sorted(after):
                    raise BadTable(f"other arguments: {old} -> {new}")
                self.calls[calls[0][1]] = [before.index(name) for name in after]
                old, new = calls[0][1], calls[1][1]
            if self.names.setdefault(old, new) != new:
                raise BadTable(f"{old} has two new names")
        self.used = set()
        self.by_last = collections.defaultdict(set)
        self.by_new_scope = {}  # a member of a type that has a new name, too
        for old, new in self.names.items():
            last = old.rpartition("::")[2]
            self.by_last[last].add(old)
            self.by_new_scope[f"{new.rpartition('::')[0]}::{last}"] = old

    def all(self):
        return {*self.names, *self.headers, *(f"bool({name})" for name in self.conversions)}

    def find(self, name, scope):
        """The old name that an error is about, in the table; None when it is not clear."""
        if scope is not None:
            full = f"{scope}::{name}".removeprefix("ptspec::")
            if full in self.names:
                return full
            if full in self.by_new_scope:
                return self.by_new_scope[full]
            aliased = {old for old in (*self.names, *self.by_new_scope)
                       if old.endswith(f"::{full}")}
            if len(aliased) == 1:
                old, = aliased
                return self.by_new_scope.get(old, old)
        others = self.by_last.get(name, ())
        new = {self.names[old].rpartition("::")[2] for old in others}
        return sorted(others)[0] if len(new) == 1 else None


# ------------------------------------------------------------------------------------- the text

def arguments_at(text, place):
    """The arguments after the parenthesis at `place`, and where they end."""
    parts, depth, begin = [], 0, place + 1
    for match in BRACKET.finditer(text, place):
        i = match.start()
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[i], 0)
        if depth == 0 or depth == 1 and text[i] == ",":
            parts.append(text[begin:i].strip())
            begin = i + 1
        if depth == 0:
            return parts, i
    return [], place


def reordered(text, name, order, used):
    """The text with the arguments of each call of a function in another order."""
    last = name.rpartition("::")[2]
    for match in reversed(list(re.finditer(rf"(?<![\w.>]){re.escape(last)}\(", text))):
        parts, end = arguments_at(text, match.end() - 1)
        scope = re.search(r"[\w:]*$", text[:match.start()])[0].removesuffix("::")
        if len(parts) == len(order) and ("::" + name).endswith(f"::{scope}::{last}"
                                                               if scope else f"::{last}"):
            used.add(name)
            text = text[:match.end()] + ", ".join(parts[i] for i in order) + text[end:]
    return text


def with_header(text, header):
    """The text with one more header before its first."""
    if header is None or f"#include <{header}>" in text:
        return text
    return re.sub(r"^(?=#include)", f"#include <{header}>\n", text, count=1, flags=re.M)


def rename_text(text, table):
    """The text with what needs no compiler."""
    for old, new in table.headers.items():
        target = f"<{new}>" if new.startswith("ptspec/") else f'"{new}"'
        if f"<{old}>" in text:
            table.used.add(old)
            text = text.replace(f"<{old}>", target)
    aliases = dict(ALIAS.findall(text))
    for name, order in table.calls.items():
        text = reordered(text, name, order, table.used)
    for old, new in sorted(table.names.items(), key=lambda row: -len(row[0])):
        ways = [(rf"((?:ptspec::)?){old}" if "::" in old else rf"(ptspec::){old}", rf"\g<1>{new}")]
        for alias, namespace in aliases.items():
            if old.startswith(f"{namespace}::"):
                same = new.startswith(f"{namespace}::")
                ways.append((alias + old.removeprefix(namespace),
                             alias + new.removeprefix(namespace) if same else f"ptspec::{new}"))
        for pattern, replacement in ways:
            text, count = re.subn(rf"(?<![\w.:]){pattern}\b", replacement, text)
            if count:
                table.used.add(old)
                text = with_header(text, table.needed.get(old))
    return text


# --------------------------------------------------------------------------------- the compiler

def errors_in(output):
    """The errors of clang as (path, line, column, text)."""
    for match in PLACE.finditer(output):
        yield match["path"], int(match["line"]), int(match["column"]), match["text"]


def end_of_operand(text, at):
    """The end of the operand at a place: names, calls and members, after a `!`."""
    at = re.compile(r"[!\s]*").match(text, at).end()
    while match := re.compile(r"[\w.]+|->|::|[(\[{]").match(text, at):
        at = match.end()
        if match[0] in "([{":
            depth = 1
            while depth and at < len(text):
                depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
                at += 1
    return at


def conversion_edit(error, table):
    """The edit that appends a member to a value that does not convert to bool."""
    path, line, column, text = error
    match = NO_BOOL.search(text)
    of = re.sub(r"^(const )?(ptspec::)?| &$", "", match["type"]) if match else ""
    found = [old for old in table.conversions if f"::{old}".endswith(f"::{of}") and of]
    if len(found) != 1 or not pathlib.Path(path).is_file():
        return None
    whole = pathlib.Path(path).read_bytes().decode()
    begin = sum(len(each) + 1 for each in whole.split("\n")[:line - 1])
    end = end_of_operand(whole, begin + column - 1)
    member = "." + table.conversions[found[0]].rpartition("::")[2]
    table.used.add(f"bool({found[0]})")
    before = whole[:end]
    return path, before.count("\n") + 1, end - (before.rfind("\n") + 1) + 1, "", member


def header_edit(path, header):
    """The edit that includes a header, or None where it is included."""
    text = pathlib.Path(path).read_bytes().decode() if pathlib.Path(path).is_file() else ""
    match = re.search(r"^#include", text, re.M)
    if match is None or f"#include <{header}>" in text:
        return None
    return path, text.count("\n", 0, match.start()) + 1, 1, "", f"#include <{header}>\n"


def edit_for(error, table):
    """(path, line, column, old word, new words) for an error that a rename explains, or None."""
    path, line, column, text = error
    if edit := conversion_edit(error, table):
        return edit
    for pattern in UNKNOWN:
        match = pattern.search(text)
        if not match:
            continue
        scope = match.groupdict().get("scope")
        old = table.find(match["name"], re.sub(r"<.*>", "", scope) if scope else None)
        if old is None:
            return None
        table.used.add(old)
        if old in table.needed and (edit := header_edit(path, table.needed[old])):
            return edit
        new = table.names[old]
        if scope or old.rpartition("::")[0] == new.rpartition("::")[0]:
            new = new.rpartition("::")[2]
        else:
            new = f"ptspec::{new}"
        return path, line, column, match["name"], new
    return None


def apply(edits, inside):
    """Applies edits to files inside a folder, and returns how many."""
    by_path, count = collections.defaultdict(set), 0
    for path, *edit in edits:
        if inside in pathlib.Path(path).parents:
            by_path[path].add(tuple(edit))
    for path, edits_there in by_path.items():
        lines = pathlib.Path(path).read_bytes().decode().split("\n")
        for line, column, old, new in sorted(edits_there, reverse=True):
            text = lines[line - 1].encode()
            # The column counts bytes; that of a designator may be that of its dot.
            at = text.find(old.encode(), column - 1)
            if text[at:].startswith(new.encode()):  # two errors name one place
                continue
            if column - 1 <= at <= column + 1:
                lines[line - 1] = (text[:at] + new.encode() + text[at + len(old):]).decode()
                count += 1
        pathlib.Path(path).write_bytes("\n".join(lines).encode())
    return count


def build_all(programs, include, compiler, table, copy):
    """Builds programs until no rename helps. Returns {program: output of the compiler}, of those
    that do not build."""
    def compile_one(program):
        done = subprocess.run([compiler, *FLAGS, *include, program], capture_output=True, text=True)
        return program, done.returncode, done.stderr

    left, failed = list(programs), {}
    for _ in range(ROUNDS):
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            results = list(pool.map(compile_one, left))
        failed = {program: output for program, status, output in results if status != 0}
        edits = {edit for output in failed.values() for error in errors_in(output)
                 if (edit := edit_for(error, table))}
        if not failed or not apply(edits, copy):
            break
        left = list(failed)
    return failed


def programs_in(copy):
    """The programs among the examples and consumers, without those that must not compile."""
    found = [*copy.glob("examples/**/*.cpp"), *copy.glob("tests/consumer/**/*.cpp")]
    return [str(path) for path in sorted(found) if path.parent.name != "mistakes"]


def needs_missing_library(output):
    missing = re.findall(r"fatal error: '([^']+)' file not found", output)
    return [name for name in missing if "/" not in name]


def check(copy, root, table, compiler):
    """Renames in a copy and builds it. Returns the programs, and what the compiler says of those
    that do not build."""
    for path in sorted(copy.rglob("*")):
        if path.suffix in (".hpp", ".h", ".cpp"):
            text = path.read_bytes().decode()
            path.write_bytes(rename_text(text, table).encode())
    programs = programs_in(copy)
    include = [f"-I{root / 'include'}", f"-I{copy / 'examples'}", f"-I{root / 'examples'}"]
    return programs, build_all(programs, include, compiler, table, copy)


def report(copy, programs, failed, table):
    wrong = 0
    for program, output in failed.items():
        name = pathlib.Path(program).relative_to(copy)
        missing = needs_missing_library(output)
        if missing:
            print(f"left out: {name} needs {missing[0]}")
            continue
        wrong += 1
        errors = list(errors_in(output))
        print(f"{name} does not build, {len(errors)} errors:")
        for path, line, column, text in errors[:3]:
            print(f"    {path.removeprefix(f'{copy}/')}:{line}:{column}: {text}")
    unused = sorted(table.all() - table.used)
    print(f"{len(programs)} programs, {wrong} do not build; {len(table.used)} renames used"
          + (f", not used: {', '.join(unused)}" if unused else ""))
    return wrong


def difference(before, copy):
    for path, text in before.items():
        now = (copy / path).read_text(encoding="utf-8")
        yield from difflib.unified_diff(text.splitlines(), now.splitlines(), path, path, n=0,
                                        lineterm="")


# -------------------------------------------------------------------------------------- self-test

CHANGELOG = """# Changelog

### Added

- `x` -> `y` is not a row.

### Renamed

- `trace::context` -> `trace::binder`
- `trace::context::bind` -> `trace::binder::put`
- `packet::decoded::why` -> `packet::decoded::error`, since it is no rule
- `access::refused::why` -> `access::refused::broken`
- `topa::place` -> `output_place`
- `old_root` -> `new_root`
- `check(caps, wanted)` -> `check(wanted, caps)`
- `ptspec/trace/context.hpp` -> `ptspec/trace/binder.hpp`
- `ptspec/draw/text.hpp` -> `draw/text.hpp`
- `bool(access::fault)` -> `access::fault::happened`
- `far` -> `trace::far` in `ptspec/far.hpp`

### Removed

- `trace::gone` -> `nothing`
"""
LIBRARY = """#pragma once
namespace ptspec {
struct output_place { int a; };
inline int new_root = 0;
inline int check(char const*, int) { return 0; }
namespace trace { struct binder { void put(output_place) {} }; }
namespace packet { template <class T> struct decoded { int error; }; }
namespace access { struct refused { int broken; }; struct fault { bool happened; }; }
inline auto load(int) { return access::fault{}; }
}
"""
FAR = """#pragma once
namespace ptspec::trace { inline int far() { return 1; } }
"""
EXAMPLE = """#include <ptspec/draw/text.hpp>
#include <ptspec/trace/context.hpp>
namespace tr = ptspec::trace;
using namespace ptspec;
auto both(auto one) { return one.why; }
int main() {
    tr::context a; trace::context{}.bind({}); a.bind(topa::place{});
    (void)a, (void)ptspec::old_root;
    auto refused = access::refused{.why = old_root};
    if (!load((1)) && load(2)) { return far(); }
    return both(refused) + packet::decoded<int>{.why = 1}.why + check((1, 2), "a, b");
}
"""


def self_test():
    failures = []

    def expect(what, found, wanted):
        if found != wanted:
            failures.append(f"{what}\n  wanted {wanted!r}\n  found  {found!r}")

    table = Table(read_table(CHANGELOG))
    expect("rows", len(read_table(CHANGELOG)), 11)
    for wrong in ("### Renamed\n- `a` to `b`\n", "### Renamed\n- `f(a)` -> `f(b)`\n",
                  "### Renamed\n- `a` -> `b`\n- `a` -> `c`\n"):
        try:
            Table(read_table(wrong))
            failures.append(f"accepted {wrong!r}")
        except BadTable:
            pass
    expect("text", rename_text(EXAMPLE.split("auto both")[0], table),
           '#include "draw/text.hpp"\n#include <ptspec/trace/binder.hpp>\n'
           "namespace tr = ptspec::trace;\nusing namespace ptspec;\n")
    expect("qualified", rename_text("namespace t = ptspec::topa;\n t::place; trace::context_of; "
                                    "x.trace::context; ptspec::old_root; old_root", table),
           "namespace t = ptspec::topa;\n ptspec::output_place; trace::context_of; "
           "x.trace::context; ptspec::new_root; old_root")
    expect("calls", rename_text("check(f(a, b), {c, d}); x.check(a, b); check(a); pre_check(a, b)",
                                table),
           "check({c, d}, f(a, b)); x.check(a, b); check(a); pre_check(a, b)")
    for text, wanted in (
            ("no member named 'why' in 'ptspec::packet::decoded<int>'", "error"),
            ("no member named 'why' in 'ptspec::access::refused'", "broken"),
            ("no member named 'why' in 'ptspec::other'", None),
            ("field designator 'why' does not refer to any non-static data member in type "
             "'ptspec::access::refused'", "broken"),
            ("use of undeclared identifier 'old_root'", "new_root"),
            ("unknown type name 'place'", "ptspec::output_place"),
            ("expected expression", None)):
        edit = edit_for(("a.cpp", 1, 2, text), table)
        expect(text, edit and edit[-1], wanted)

    compiler = next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        skips.say("clang", "the renames of a small library")
    for left_out in (None, *range(11)) if compiler else ():
        with tempfile.TemporaryDirectory() as folder:
            root, copy = pathlib.Path(folder, "root"), pathlib.Path(folder, "copy")
            for path, text in ((root / "include/ptspec/trace/binder.hpp", LIBRARY),
                               (root / "include/ptspec/far.hpp", FAR),
                               (root / "examples/draw/text.hpp", "#pragma once\n"),
                               (copy / "examples/mistakes/no.cpp", "x"),
                               (copy / "examples/one.cpp", EXAMPLE)):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            rows = [row for i, row in enumerate(read_table(CHANGELOG)) if i != left_out]
            table = Table(rows)
            programs, failed = check(copy, root, table, compiler)
            expect(f"programs without row {left_out}", (len(programs), len(failed)),
                   (1, left_out is not None))
            if left_out is None:
                expect("errors", [*failed.values()], [])
                expect("not used", table.all() - table.used, set())
    print("\n".join(failures) if failures else "self-test: renames are applied, missing ones found")
    return skips.status(failures)


def main():
    parser = argparse.ArgumentParser(description="Build older examples with the renames.")
    parser.add_argument("commit", nargs="?")
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "CHANGELOG.md")
    parser.add_argument("--diff", action="store_true", help="print what was renamed")
    parser.add_argument("--self-test", action="store_true", help="show that renames can be missed")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    compiler = next(filter(shutil.which, COMPILERS), None)
    if options.commit is None or compiler is None:
        parser.error("needs a commit" if compiler else f"needs one of {', '.join(COMPILERS)}")
    try:
        table = Table(read_table(options.table.read_text(encoding="utf-8")))
    except BadTable as error:
        parser.error(f"{options.table}: {error}")
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", options.commit, "examples",
                              "tests/consumer"], stdout=subprocess.PIPE, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder).resolve()
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(copy)
        before = {str(path.relative_to(copy)): path.read_text(encoding="utf-8")
                  for path in sorted(copy.rglob("*")) if path.suffix in (".hpp", ".h", ".cpp")}
        programs, failed = check(copy, ROOT, table, compiler)
        if options.diff:
            print("\n".join(difference(before, copy)))
        return 1 if report(copy, programs, failed, table) else 0


if __name__ == "__main__":
    sys.exit(main())
