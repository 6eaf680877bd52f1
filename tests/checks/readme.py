#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks README.md and the pages of folders, which are also called README.md.

    readme.py [ROOT]
    readme.py --self-test

tests/fail/README.md, which is generated, is checked by errors_page.py. Of the others:

A link to a file and a colon, `[FILE](FILE):`, stand before each C++ block. Each paragraph of the
block must occur in FILE, in this order; paragraphs between them may be left out, and so may
includes. What stands in the block must compile when it is pasted: with its includes, and with
`using namespace ptspec;` after them. FILE of a block after `g++ says of [FILE](FILE):` must not
compile, and every line of the block must be part of a line that g++ prints; `...` stands for
omitted text. After `$ g++ FLAGS FILE -o NAME && ./NAME` stand the lines that the program prints.
Every relative link must lead to a file.

README.md has at most 250 lines. Its table of headers has the limits of include_time.py.

The page of a folder, include/ptspec/FOLDER/README.md, has at most 50 lines, as have those of
examples/. After `Builds on:` and `Used by:` it names the folders whose headers its headers include,
and those that include them. A folder without a page, such as detail/, belongs to the folder above
it. These pages and README.md must quote code; those of examples/ and tests/ need not.

include/ptspec/README.md is the reading guide, of headers that must exist, and the glossary, in at
most 115 lines. The glossary is a table of words, one line each. Its last column names what the word
is in the code, and the header that declares that.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

import include_time

FILE = r"\[(?P<file>\S+)\]\((?:\.\./)*(?P=file)\):\n\n"
BLOCK = re.compile(rf"(?:{FILE})?```cpp\n(?P<code>.*?)```", re.DOTALL)
SAID = re.compile(rf"g\+\+ says of\s{FILE}```\n(?P<lines>.*?)```", re.DOTALL)
USING = "using namespace ptspec;\n"
RUN = re.compile(r"^    \$ g\+\+ (?P<flags>.*) -o (?P<name>\w+) && \./(?P=name)\n"
                 r"(?P<lines>(?:    .*\n)*)", re.MULTILINE)
LINK = re.compile(r"\]\((?!\w+:)([^)#]+)")
INCLUDE = re.compile(r"^#include <ptspec/([^>]+)>", re.MULTILINE)
LIMIT = re.compile(r"^\| `ptspec/(\w+)\.hpp` \|.*\| (\d+\.\d+) \|$", re.MULTILINE)
GENERATED = "tests/fail/README.md"
LONGEST_README = 250
LONGEST_PAGE = 50
LONGEST_GLOSSARY = 115
COMMENT = re.compile(r"//[^\n]*")
HEADER = re.compile(r"`([\w/]+\.hpp)`")
ENTRY = re.compile(r"\| [\w ]+ \| [^|]+ \| `(?P<name>\w+)`, `(?P<header>[^`|]+)` \|")


def what_the_compiler_says(root, source, text=None):
    """The lines of its message, or None when the file, or the text in its place, compiles."""
    command = ["g++", "-std=c++20", f"-I{root / 'include'}", f"-I{source.parent}",
               "-fsyntax-only", *(["-x", "c++", "-"] if text is not None else [str(source)])]
    done = subprocess.run(command, capture_output=True, text=True, input=text,
                          env={**os.environ, "LC_ALL": "C"})
    return done.stderr.splitlines() if done.returncode else None


def is_quoted(code, source):
    """Whether the lines of includes and the paragraphs of a block occur in a file, in order."""
    lines = source.splitlines()
    place = 0
    for paragraph in code.strip("\n").split("\n\n"):
        included = paragraph.splitlines()
        if all(line.startswith("#include") for line in included):
            if any(line not in lines for line in included):
                return False
            continue
        place = source.find("\n" + paragraph + "\n", place)
        if place < 0:
            return False
        place += len(paragraph)
    return True


def pasted(code):
    """A block as a reader pastes it."""
    if USING in code:
        return code
    lines = code.splitlines(keepends=True)
    after = max((i + 1 for i, line in enumerate(lines) if line.startswith("#include")), default=0)
    return "".join(lines[:after]) + USING + "".join(lines[after:])


def wrong_messages(root, name, text):
    for block in SAID.finditer(text):
        where = f"{name}:{text.count(chr(10), 0, block.start()) + 1}"
        if shutil.which("g++") is None:
            yield f"{where}: there is no g++ to ask"
            continue
        said = what_the_compiler_says(root, root / block["file"])
        if said is None:
            yield f"{where}: {block['file']} compiles"
            continue
        for line in block["lines"].splitlines():
            pattern = ".*".join(re.escape(piece.strip()) for piece in line.split("..."))
            if not any(re.search(pattern, one) for one in said):
                yield f"{where}: g++ does not say {line.strip()!r} of {block['file']}"


def wrong_output(root, name, text):
    for block in RUN.finditer(text):
        where = f"{name}:{text.count(chr(10), 0, block.start()) + 1}"
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, block["name"])
            built = subprocess.run(["g++", *block["flags"].split(), "-o", program], cwd=root,
                                   capture_output=True, text=True)
            if built.returncode != 0:
                yield f"{where}: this does not compile: {built.stderr.partition(chr(10))[0]}"
                continue
            printed = subprocess.run([program], capture_output=True, text=True).stdout
        if textwrap.indent(printed, "    ") != block["lines"]:
            yield f"{where}: {block['name']} prints {printed!r}"


def wrong_quotations(root, name, must_quote=True):
    text = (root / name).read_text()
    blocks = 0
    for block in BLOCK.finditer(text):
        blocks += 1
        where = f"{name}:{text.count(chr(10), 0, block.start()) + 1}"
        if not block["file"]:
            yield f"{where}: the block does not say which file it is from"
        elif not (root / block["file"]).is_file():
            yield f"{where}: there is no {block['file']}"
        elif not is_quoted(block["code"], (root / block["file"]).read_text()):
            yield f"{where}: this does not stand in {block['file']}"
        elif shutil.which("g++") is None:
            yield f"{where}: there is no g++ to compile it"
        elif said := what_the_compiler_says(root, root / block["file"], pasted(block["code"])):
            first = next((line for line in said if "error" in line), said[0])
            yield f"{where}: this does not compile when it is pasted: {first}"
    yield from wrong_messages(root, name, text)
    yield from wrong_output(root, name, text)
    if blocks == 0 and must_quote:
        yield f"{name}: quotes no code"
    for link in LINK.findall(re.sub(r"(?ms)^```.*?^```$", "", text)):
        if not ((root / name).parent / link).exists():
            yield f"{name}: the link {link} leads nowhere"


def neighbours(library, pages):
    """{page: (folders that it builds on, folders that use it)}"""
    folders = {page.parent.relative_to(library).as_posix(): page for page in pages}

    def folder_of(header):
        return next((one.as_posix() for one in header.parents if one.as_posix() in folders), None)

    found = {page: (set(), set()) for page in pages}
    for path in library.rglob("*.hpp"):
        user = folder_of(path.relative_to(library))
        for header in INCLUDE.findall(path.read_text()):
            used = folder_of(pathlib.PurePosixPath(header))
            if user != used and user and used:
                found[folders[user]][0].add(used)
                found[folders[used]][1].add(user)
    return found


def wrong_limits(text, limits):
    """`limits`: {name of the header: limit}"""
    stated = {name: float(limit) for name, limit in LIMIT.findall(text)}
    for name in sorted(stated.keys() | limits.keys()):
        if stated.get(name) != limits.get(name):
            yield (f"README.md: limit of ptspec/{name}.hpp: {stated.get(name)}; "
                   f"in include_time.py: {limits.get(name)}")


def declares(code, name):
    """Whether a header declares a type, concept, namespace, function or member of this name."""
    kinds = (r"(?:struct|class|union|concept|using)\s+(?:alignas\(\d+\)\s+|\[\[\w+\]\]\s+)*"
             rf"{name}\b(?!;)",
             rf"namespace\s+(?:\w+::)*{name}\s*\{{",
             rf"auto\s+{name}\(",
             r"(?!(?:return|struct|class|union|using|enum)\b)"
             rf"\w+>?\s+{name}\s*[={{;]")
    return any(re.search(rf"\b(?:{kind})", COMMENT.sub("", code)) for kind in kinds)


def wrong_glossary(root):
    library = root / "include" / "ptspec"
    page = library / "README.md"
    if not page.exists():
        return
    name, lines = page.relative_to(root).as_posix(), page.read_text().splitlines()
    if len(lines) > LONGEST_GLOSSARY:
        yield f"{name}: has more than {LONGEST_GLOSSARY} lines"
    for number, line in enumerate(lines, 1):
        for header in HEADER.findall(line) if not line.startswith("|") else ():
            if not (library / header).is_file():
                yield f"{name}:{number}: there is no {header}"
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.startswith("|")][2:]
    for number, line in rows:
        entry = ENTRY.fullmatch(line)
        header = library / entry["header"] if entry else None
        if entry is None:
            yield f"{name}:{number}: a row is | word | what it is | `name`, `header` |"
        elif not header.is_file() or not declares(header.read_text(), entry["name"]):
            yield f"{name}:{number}: {entry['header']} does not declare {entry['name']}"


def wrong_pages(root):
    library = root / "include" / "ptspec"
    pages = sorted(page for page in library.rglob("README.md") if page.parent != library)
    for page, both in neighbours(library, pages).items():
        name, text = page.relative_to(root).as_posix(), page.read_text()
        yield from wrong_quotations(root, name)
        if text.count("\n") > LONGEST_PAGE:
            yield f"{name}: has more than {LONGEST_PAGE} lines"
        for begin, folders in zip(("Builds on:", "Used by:"), both):
            line = re.search(rf"^{begin}([^.]*)\.$", text, re.MULTILINE)
            if line is None or set(re.findall(r"`([^`]+)`", line[1])) != folders:
                expected = ", ".join(f"`{one}`" for one in sorted(folders)) or "nothing"
                yield f"{name}: it should say: {begin} {expected}."


def findings(root, limits):
    yield from wrong_quotations(root, "README.md")
    text = (root / "README.md").read_text()
    if text.count("\n") > LONGEST_README:
        yield f"README.md: has more than {LONGEST_README} lines"
    yield from wrong_limits(text, limits)
    yield from wrong_pages(root)
    yield from wrong_glossary(root)
    for folder in ("examples", "tests"):
        for page in sorted((root / folder).rglob("README.md")):
            if (name := page.relative_to(root).as_posix()) != GENERATED:
                yield from wrong_quotations(root, name, False)
            if folder == "examples" and page.read_text().count("\n") > LONGEST_PAGE:
                yield f"{name}: has more than {LONGEST_PAGE} lines"


def self_test():
    quoted = "[a.cpp](a.cpp):\n\n```cpp\n#include <one.hpp>\n\nnumber a;\n```\n[a](a.cpp)\n"
    said = ("As g++ says of\n[bad.cpp](bad.cpp):\n\n"
            "```\nerror: static assertion ... not fine\n```\n")
    ran = "\n    $ g++ -Iinclude run.cpp -o it && ./it\n    one\n    two\n\nmore\n"
    two = quoted.replace("number a;", "number a;\n\nint c;")
    cases = [(quoted, 0), (quoted.replace("number a", "number b"), 1),
             (quoted.replace("(a.cpp):", "(b.cpp):").replace("[a.cpp]", "[b.cpp]"), 2),
             (quoted.replace("[a.cpp](a.cpp):", "A file:"), 1),
             ("nothing\n", 1), (quoted + "[b](b.md)\n", 1),
             (two, 0), (two.replace("a;\n\nint c;", "a;\nint c;"), 1),
             (quoted.replace("number a;", "int c;\n\nnumber a;"), 1),
             (quoted.replace("#include <one.hpp>\n\n", ""), 1),
             (quoted.replace("one.hpp", "two.hpp"), 1),
             (quoted.replace("number a;", USING + "\nnumber a;"), 0),
             (quoted + said, 0), (quoted + said.replace("fine", "good"), 1),
             (quoted + said.replace("error", "note"), 1),
             (quoted + said.replace("bad.cpp", "a.cpp"), 1),
             (quoted + ran, 0), (quoted + ran.replace("two", "ten"), 1),
             (quoted + ran.replace("    two\n", ""), 1), (quoted + ran.replace("run", "bad"), 1)]
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        (root / "include").mkdir()
        (root / "include" / "one.hpp").write_text("namespace ptspec { using number = int; }\n")
        (root / "a.cpp").write_text(f"#include <one.hpp>\n\n{USING}\nnumber a;\n\nint b;\n\n"
                                    "int c;\n")
        (root / "run.cpp").write_text('#include <cstdio>\nint main() { std::puts("one\\ntwo"); }\n')
        (root / "bad.cpp").write_text('static_assert(false, "this is not fine");\n')
        for text, expected in cases:
            (root / "README.md").write_text(text)
            found = list(findings(root, {}))
            if len(found) != expected:
                print(f"self-test: {expected} findings expected in {text!r}, not {found}")
                return 1
        return (self_test_of_readme(root, quoted) or self_test_of_pages(root, quoted) or
                self_test_of_glossary(root))


def self_test_of_readme(root, quoted):
    row = "| `ptspec/all.hpp` | everyone | 1.80 |\n"
    full = quoted + "\n" * (LONGEST_README - quoted.count("\n"))
    other = quoted.replace("](a.cpp)", "](../a.cpp)")
    cases = [(quoted + row, {"all": 1.8}, "", 0), (quoted + row, {"all": 1.81}, "", 1),
             (quoted + row, {}, "", 1), (quoted, {"all": 1.8}, "", 1),
             (full, {}, "", 0), (full + "\n", {}, "", 1),
             (quoted, {}, other, 0), (quoted, {}, other.replace("number a", "number b"), 1),
             (quoted, {}, "[b](b.md)\n", 1)]
    (root / "tests").mkdir()
    for text, limits, page, expected in cases:
        (root / "README.md").write_text(text)
        (root / "tests" / "README.md").write_text(page)
        found = list(findings(root, limits))
        if len(found) != expected:
            print(f"self-test: {expected} findings expected in {text!r} and {page!r}, not {found}")
            return 1
    (root / "tests" / "README.md").unlink()
    (root / "examples").mkdir()
    for lines, expected in ((LONGEST_PAGE, 0), (LONGEST_PAGE + 1, 1)):
        (root / "examples" / "README.md").write_text("\n" * lines)
        if len(found := [*findings(root, {})]) != expected:
            print(f"self-test: {expected} findings expected of {lines} lines, not {found}")
            return 1
    (root / "examples" / "README.md").unlink()
    return 0


def self_test_of_pages(root, quoted):
    library = root / "include" / "ptspec"
    for path, text in {"low/a.hpp": "", "low/detail/b.hpp": "#include <ptspec/low/a.hpp>\n",
                       "high/c.hpp": "#include <ptspec/low/detail/b.hpp>\n",
                       "all.hpp": "#include <ptspec/high/c.hpp>\n"}.items():
        (library / path).parent.mkdir(parents=True, exist_ok=True)
        (library / path).write_text(text)
    (root / "README.md").write_text(quoted)
    block = quoted.replace("](a.cpp)", "](../../../a.cpp)")
    low = block + "Builds on: nothing.\nUsed by: `high`.\n"
    high = block + "Builds on:\n`low`.\nUsed by: nothing.\n"
    (library / "high" / "README.md").write_text(high)
    cases = [(low, 0), (low.replace("number a", "number b"), 1),
             (low.replace("(../../../a.cpp)\n", "(../../a.cpp)\n"), 1),
             (low.replace("nothing", "`high`"), 1), (low.replace("`high`", "nothing"), 1),
             (low.replace("Used by", "For"), 1), (block, 2),
             (low + "\n" * (LONGEST_PAGE - low.count("\n")), 0),
             (low + "\n" * (LONGEST_PAGE - low.count("\n") + 1), 1)]
    for text, expected in cases:
        (library / "low" / "README.md").write_text(text)
        found = list(findings(root, {}))
        if len(found) != expected:
            print(f"self-test: {expected} findings expected in {text!r}, not {found}")
            return 1
    return 0


def self_test_of_glossary(root):
    library = root / "include" / "ptspec"
    (library / "low" / "w.hpp").write_text(
        "namespace ptspec::odd {\n// struct two {};\nclass three;\nstruct alignas(8) one {\n"
        "    rule kept = rule::none;\n    constexpr auto made() -> int { return absent; }\n};\n"
        "template <class T>\nconcept fine = true;\n}\n")
    head = "# Words\n\n| word | what | where |\n|---|---|---|\n"
    for row, expected in [("| a b | c, d | `one`, `low/w.hpp` |", 0),
                          ("| a | c | `odd`, `low/w.hpp` |", 0),
                          ("| a | c | `kept`, `low/w.hpp` |", 0),
                          ("| a | c | `made`, `low/w.hpp` |", 0),
                          ("| a | c | `fine`, `low/w.hpp` |", 0),
                          ("| a | c | `two`, `low/w.hpp` |", 1),
                          ("| a | c | `three`, `low/w.hpp` |", 1),
                          ("| a | c | `absent`, `low/w.hpp` |", 1),
                          ("| a | c | `one`, `low/v.hpp` |", 1), ("| a | c | `one` |", 1),
                          ("Read `low/w.hpp`.", 0), ("Read `low/w.hpp`, `low/v.hpp`.", 1)]:
        (library / "README.md").write_text(head + row + "\n")
        found = list(wrong_glossary(root))
        if len(found) != expected:
            print(f"self-test: {expected} findings expected for {row}, not {found}")
            return 1
    (library / "README.md").write_text(head + "\n" * (LONGEST_GLOSSARY - 3))
    return 0 if len(list(wrong_glossary(root))) == 1 else 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    limits = {paths[0].stem: limit for paths, limit, _ in include_time.PARTS}
    found = list(findings(pathlib.Path(sys.argv[1]) if sys.argv[1:] else
                          pathlib.Path(__file__).resolve().parents[2], limits))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
