#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks the quotations in README.md.

    readme.py [ROOT]
    readme.py --self-test

A code block after `<!-- from FILE -->` must occur in FILE, line by line. Every C++ block must name
its source, and every relative link must lead to a file. FILE of a block after `<!-- said by g++ of
FILE -->` must not compile, and every line of the block must be part of a line that g++ prints;
`...` stands for omitted text.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"(?:<!-- from (?P<file>\S+) -->\n)?```cpp\n(?P<code>.*?)```", re.DOTALL)
SAID = re.compile(r"<!-- said by g\+\+ of (?P<file>\S+) -->\n```\n(?P<lines>.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#]+)")


def what_the_compiler_says(root, file):
    """The lines of its message, or None when the file compiles."""
    command = ["g++", "-std=c++20", f"-I{root / 'include'}", "-fsyntax-only", str(root / file)]
    done = subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C"})
    return done.stderr.splitlines() if done.returncode else None


def wrong_messages(root, text):
    for block in SAID.finditer(text):
        where = f"README.md:{text.count(chr(10), 0, block.start()) + 1}"
        if shutil.which("g++") is None:
            yield f"{where}: there is no g++ to ask"
            continue
        said = what_the_compiler_says(root, block["file"])
        if said is None:
            yield f"{where}: {block['file']} compiles"
            continue
        for line in block["lines"].splitlines():
            pattern = ".*".join(re.escape(piece.strip()) for piece in line.split("..."))
            if not any(re.search(pattern, one) for one in said):
                yield f"{where}: g++ does not say {line.strip()!r} of {block['file']}"


def findings(root):
    readme = root / "README.md"
    text = readme.read_text()
    blocks = 0
    for block in BLOCK.finditer(text):
        blocks += 1
        where = f"README.md:{text.count(chr(10), 0, block.start()) + 1}"
        if not block["file"]:
            yield f"{where}: the block does not say which file it is from"
        elif not (root / block["file"]).is_file():
            yield f"{where}: there is no {block['file']}"
        elif block["code"] not in (root / block["file"]).read_text():
            yield f"{where}: this does not stand in {block['file']}"
    yield from wrong_messages(root, text)
    if blocks == 0:
        yield "README.md: quotes no code"
    for link in LINK.findall(re.sub(r"(?ms)^```.*?^```$", "", text)):
        if not (root / link).exists():
            yield f"README.md: the link {link} leads nowhere"


def self_test():
    quoted = "<!-- from a.cpp -->\n```cpp\nint a;\n```\n[a](a.cpp)\n"
    said = ("<!-- said by g++ of bad.cpp -->\n```\nerror: static assertion ... not fine\n```\n")
    cases = [(quoted, 0), (quoted.replace("int a", "int b"), 1),
             (quoted.replace("a.cpp -", "b.cpp -"), 1),
             ("```cpp\nint a;\n```\n", 1), ("nothing\n", 1), (quoted + "[b](b.md)\n", 1),
             (quoted + said, 0), (quoted + said.replace("fine", "good"), 1),
             (quoted + said.replace("error", "note"), 1), (quoted + said.replace("bad", "a"), 1)]
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        (root / "a.cpp").write_text("int a;\nint c;\n")
        (root / "bad.cpp").write_text('static_assert(false, "this is not fine");\n')
        for text, expected in cases:
            (root / "README.md").write_text(text)
            found = list(findings(root))
            if len(found) != expected:
                print(f"self-test: {expected} findings expected in {text!r}, not {found}")
                return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found = list(findings(pathlib.Path(sys.argv[1]) if sys.argv[1:] else
                          pathlib.Path(__file__).resolve().parents[2]))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
