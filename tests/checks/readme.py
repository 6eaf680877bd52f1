#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that what README.md quotes is what it says it quotes.

    readme.py [ROOT]
    readme.py --self-test

A code block behind `<!-- from FILE -->` has to stand in FILE, line by line. Every C++ block has to say
where it is from, and every relative link has to lead to a file.
"""

import pathlib
import re
import sys
import tempfile

BLOCK = re.compile(r"(?:<!-- from (?P<file>\S+) -->\n)?```cpp\n(?P<code>.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#]+)")


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
    if blocks == 0:
        yield "README.md: quotes no code"
    for link in LINK.findall(text):
        if not (root / link).exists():
            yield f"README.md: the link {link} leads nowhere"


def self_test():
    quoted = "<!-- from a.cpp -->\n```cpp\nint a;\n```\n[a](a.cpp)\n"
    cases = [(quoted, 0), (quoted.replace("int a", "int b"), 1), (quoted.replace("a.cpp -", "b.cpp -"), 1),
             ("```cpp\nint a;\n```\n", 1), ("nothing\n", 1), (quoted + "[b](b.md)\n", 1)]
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        (root / "a.cpp").write_text("int a;\nint c;\n")
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
