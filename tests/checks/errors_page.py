#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The page of errors, tests/fail/README.md: each mistake with the compiler's own message.

    errors_page.py              compares the page with the mistakes of tests/fail/
    errors_page.py --self-test

compile_fail.py compares the messages on the page with those of the compiler, and writes the page.
"""

import itertools
import pathlib
import re
import sys
import tempfile

import mistake_tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "fail"
PAGE = FOLDER / "README.md"
VERSIONS = {"g++": 12, "clang": 19}  # whose messages the page has
LONGEST = 120

PLACE = re.compile(r"^.+?:\d+:\d+:\s+|^\S+?:\s+")  # file, line and column, or file
GUTTER = re.compile(r"^\s*\d* \| ?\s*")        # of a line of source code in a message
ERROR = re.compile(r"^(?:fatal )?error: ")
# What g++ says in addition to the error that explains it.
NOT_TELLING = re.compile(r"^error: non-constant condition for static assertion$")
BUILD_ERROR = re.compile(r"'(?:void )?(?:\w+::)*build_error::(?=\w)")
CASTS = re.compile(r"\({4}.*")  # an argument as g++ writes it

HEAD = """\
<!-- SPDX-License-Identifier: BSL-1.0 -->
<!-- Written by tests/checks/compile_fail.py --write-page. -->
# Mistakes, and what the compiler says

{count} mistakes, each with the message of g++ {g++}, some also with that of clang {clang}, and with
what to write instead. Of a message the error is shown, and the lines that name what is wrong; `...`
stands for omitted text. A wrong value calls a function that does not exist, and whose name is the
message. g++ calls it a "call to non-'constexpr' function", clang a "non-constexpr function".

The files named here are tests: each mistake must not compile, its message must have the expected
text, and the code without the mistake must compile. A few are only warnings, as is said there; the
tests make these errors.

| mistakes of | file | |
|---|---|---|
{contents}
"""
SECTION = "\n## {title}\n\n[{file}]({file}){prologue}\n"
# The order of a reader: the tables that are not named here follow.
FIRST = ("reg", "packet", "topa", "config", "trace", "engine", "driver", "access", "vmx", "file",
         "print", "conformance")
ENTRY = "\n### {name}\n\n{sentence}\n\n```cpp\n{code}\n```\n"
MESSAGE = "\n```\n{said}\n```\n"
CLANG = "\nclang {clang}:\n{{said}}".format(**VERSIONS)
INSTEAD = "\nInstead:\n\n```cpp\n{code}\n```\n"
BLOCKS = re.compile(r"^### (?P<name>\w+)\n\n[^\n]+(?:\n[^\n]+)*\n\n```cpp\n.*?\n```\n"
                    r"(?:\n```\n(?P<gcc>.*?)\n```\n)?"
                    r"(?:\nclang \d+:\n\n```\n(?P<clang>.*?)\n```\n)?", re.M | re.S)


# -------------------------------------------------------------------------------------- messages

def occurs(text, lines):
    return any(one in line for one in text.split(" | ") for line in lines)


def chosen_lines(texts, said):
    """The first error, and for each text that it lacks the shortest line that has it."""
    messages = [PLACE.sub("", line).strip() for line in said if not GUTTER.match(line)]
    echoes = [GUTTER.sub("", line) for line in said if GUTTER.match(line)]
    errors = [line for line in messages if ERROR.match(line)]
    chosen = [next((line for line in errors if not NOT_TELLING.match(line)),
                   next(iter(errors), ""))]
    for text in texts:
        if not occurs(text, chosen):
            chosen += sorted((line for line in messages if occurs(text, [line])), key=len)[:1] or \
                [line for line in echoes if occurs(text, [line])][:1]
    order = messages + echoes
    return sorted(chosen, key=order.index) if errors else []


def shortened(line, texts):
    """A line of at most LONGEST characters, or little more, in which the texts still occur."""
    line = CASTS.sub("...", BUILD_ERROR.sub("'... ", line))
    needed = [one for text in texts for one in text.split(" | ") if one in line]
    if len(line) > LONGEST:
        line = re.sub(r" \[with [^\]]*\]",
                      lambda found: found[0] if any(one in found[0] for one in needed) else "",
                      line)
    if len(line) <= LONGEST:
        return line
    spans = sorted((line.index(one), line.index(one) + len(one)) for one in needed)
    room = LONGEST - sum(end - begin + 4 for begin, end in spans)
    head = re.match(rf".{{0,{max(room, 30)}}}(?=[ ,<(])", line)
    pieces = [(0, head.end() if head else room), *spans]
    merged = [pieces[0]]
    for begin, end in pieces[1:]:
        if begin <= merged[-1][1] + 4:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    short = " ... ".join(line[begin:end].strip() for begin, end in merged)
    return short if merged[-1][1] == len(line) else short + " ..."


def message(mistake, said):
    """What the page has of the messages of a compiler, as lines."""
    lines = chosen_lines(mistake.texts, said.splitlines())
    return [shortened(line, mistake.texts) for line in lines]


# -------------------------------------------------------------------------------------- the page

def tables():
    def place(path):
        return FIRST.index(path.stem) if path.stem in FIRST else len(FIRST), path

    return mistake_tables.read_tables([*sorted(FOLDER.glob("*.cpp"), key=place),
                                       *sorted(FOLDER.glob("*/*.cpp"))])


def messages_of(page):
    """{name: {compiler: lines}} of a page."""
    return {block["name"]: {"g++": (block["gcc"] or "").split("\n"),
                            "clang": (block["clang"] or "").split("\n")}
            for block in BLOCKS.finditer(page)}


def wrapped(text, width=100):
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return "\n".join(lines)


def entry(mistake, said):
    def half(mistaken):
        return re.sub(r'"(?:\.\./)+', '"', mistake.half(mistaken))

    sentence = mistake.sentence + (" This is a warning." if mistake.is_warning else "")
    text = ENTRY.format(name=mistake.name, sentence=wrapped(sentence), code=half(True))
    for compiler in compilers(mistake):
        block = MESSAGE.format(said="\n".join(said.get(compiler, [])))
        text += CLANG.format(said=block) if compiler == "clang" else block
    return text + (INSTEAD.format(code=half(False)) if half(False) else "")


def compilers(mistake):
    """Those whose messages the page has."""
    return [one for one in VERSIONS if mistake.is_for(one) and
            (one == "g++" or mistake.also_clang or mistake.only_clang)]


def sections(tables):
    """(title, file or folder, tables): the files of a folder are one section."""
    for title, group in itertools.groupby(tables, key=lambda table: table.title):
        group = list(group)
        whole = group[0].path.parent.name + "/" if group[0].is_file else group[0].path.name
        yield title, whole, group


def anchor(title):
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def page(tables, said):
    """The page. `said`: {name: {compiler: lines}}."""
    parts, contents = [], []
    for title, file, group in sections(tables):
        prologue = "\n".join(group[0].lines[at] for at in group[0].prologue
                             if not group[0].lines[at].startswith("//")).strip("\n")
        prologue = re.sub(r"(?ms)^#if.*?^#endif$\n?", "", prologue).strip("\n")
        prologue = f" begins with\n\n```cpp\n{prologue}\n```" if prologue else ""
        parts.append(SECTION.format(title=title, file=file, prologue=prologue))
        mistakes = [one for table in group for one in table.mistakes]
        parts += [entry(one, said.get(one.name, {})) for one in mistakes]
        contents.append(f"| [{title}](#{anchor(title)}) | [{file}]({file}) | {len(mistakes)} |")
    count = sum(len(table.mistakes) for table in tables)
    return HEAD.format(count=count, contents="\n".join(contents), **VERSIONS) + "".join(parts)


def wrong_messages(mistake, compiler, said, page):
    """What is wrong with the messages on the page, or None. `compiler`: of VERSIONS."""
    if compiler not in compilers(mistake):
        return None
    expected, stated = message(mistake, said), messages_of(page).get(mistake.name, {})
    if stated.get(compiler) == expected:
        return None
    return (f"{mistake.where}: the page of errors has another message of {compiler}; "
            "compile_fail.py --write-page writes it:\n" + "\n".join(expected))


def findings(tables, text):
    expected = page(tables, messages_of(text))
    for number, (is_so, must_be) in enumerate(
            itertools.zip_longest(text.split("\n"), expected.split("\n")), 1):
        if is_so != must_be:
            return [f"{PAGE.relative_to(ROOT)}:{number}: {is_so!r} should be {must_be!r}"]
    said = messages_of(text)
    return [f"{PAGE.relative_to(ROOT)}: no message of {compiler} for {mistake.name}"
            for table in tables for mistake in table.mistakes
            for compiler in compilers(mistake) if said[mistake.name][compiler] == [""]]


# ------------------------------------------------------------------------------------- self-test

TABLE = """\
// SPDX-License-Identifier: BSL-1.0
/// Numbers

#include <stdint.h>

using number = uint8_t;

namespace too_wide {
/// 300 has 9 bits.
// expect: narrowing
// also clang
#ifndef SHOULD_FAIL
number one{30};
#else
number one{300};
#endif
}  // namespace too_wide

namespace missing {
/// There is no `two`.
// expect: 'two'
// a warning
// expect: not_declared | undeclared
#ifdef SHOULD_FAIL
number one = two;
#if 0
#error "left out"
#endif
#endif
number three = 3;
}  // namespace missing
"""
SAID = {
    "too_wide": """\
In file included from a.hpp:3,
/a path/b.cpp:14:12: error: narrowing conversion of '300' from 'int' to 'number' [-Wnarrowing]
   14 | number one{300};
""",
    "missing": """\
/x/b.cpp:1:2: error: non-constant condition for static assertion
/x/b.cpp:1:2:   in 'constexpr' expansion of 'two'
/x/b.cpp:1:3: error: call to 'void a::build_error::two_is()' [with X = 1]
    1 | number one = two;  // undeclared
""",
}
PARTS = [
    "\n2 mistakes, each", "| [Numbers](#numbers) | [numbers.cpp](numbers.cpp) | 2 |",
    "## Numbers\n\n[numbers.cpp](numbers.cpp) begins with\n\n```cpp\n#include <stdint.h>\n\n"
    "using number = uint8_t;\n```\n",
    "### too_wide\n\n300 has 9 bits.\n\n```cpp\nnumber one{300};\n```\n\n```\nerror: narrowing "
    "conversion of '300' from 'int' to 'number' [-Wnarrowing]\n```\n\nclang 19:\n\n```\nc\n```\n\n"
    "Instead:\n\n```cpp\nnumber one{30};\n```\n",
    "### missing\n\nThere is no `two`. This is a warning.\n\n```cpp\nnumber one = two;\n"
    "number three = 3;\n```\n\n"
    "```\nin 'constexpr' expansion of 'two'\nerror: call to '... two_is()' [with X = 1]\n"
    "number one = two;  // undeclared\n```\n"]
LONG = "error: no match for 'f(" + "int, " * 30 + "the_text)' [with A = B; C = D]"
SHORT = "error: no match for 'f(" + "int, " * 16 + "int, ... the_text ..."


def self_test():
    wrong = []

    def expect(what, found, wanted):
        if found != wanted:
            wrong.append(f"{what}\n  wanted {wanted!r}\n  found  {found!r}")

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "numbers.cpp")
        path.write_text(TABLE, encoding="utf-8")
        read = mistake_tables.read_tables([path])
    too_wide, missing = read[0].mistakes
    said = {one.name: {"g++": message(one, SAID[one.name])} for one in (too_wide, missing)}
    said["too_wide"]["clang"] = ["c"]
    text = page(read, said)
    for part in PARTS:
        expect(f"the page has {part!r}", part in text, True)
    expect("the valid half", missing.half(False), "number three = 3;")
    expect("what is on the page", messages_of(text)["too_wide"], said["too_wide"])
    expect("the page is right", findings(read, text), [])
    for old in ("300 has", "number one{300}", "| 2 |", "### missing", "begins with"):
        expect(f"without {old!r}", len(findings(read, text.replace(old, "", 1))), 1)
    expect("an entry too many", len(findings(read, text + entry(missing, {}))), 1)
    expect("no message of clang", len(findings(read, text.replace("\nc\n", "\n\n"))), 1)
    expect("the same message", wrong_messages(missing, "g++", SAID["missing"], text), None)
    for name, compiler, differs in (("too_wide", "g++", True), ("too_wide", "clang", True),
                                    ("missing", "clang", False), ("missing", "cl", False)):
        mistake = {"too_wide": too_wide, "missing": missing}[name]
        other = SAID[name].replace("error: ", "error: other ")
        expect(f"another message of {compiler} for {name}",
               wrong_messages(mistake, compiler, other, text) is not None, differs)
    expect("shortened", shortened(LONG, ["the_text"]), SHORT)
    expect("casts", shortened("f(1, ((((int)x))))", ["f(1"]), "f(1, ...")
    expect("not shortened", shortened("error: two", ["two"]), "error: two")
    expect("nothing said", message(missing, ""), [])
    print("\n".join(wrong) if wrong else "self-test: the page is as expected")
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    found = findings(tables(), PAGE.read_text(encoding="utf-8") if PAGE.is_file() else "")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
