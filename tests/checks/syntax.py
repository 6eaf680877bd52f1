#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compiles the sources of the tests and examples with one compiler and -fsyntax-only. The
static_asserts in them are the constant half of the unit tests.

    tests/checks/syntax.py COMPILER [BUILD_DIRECTORY [NAMES]]

NAMES, a regular expression, selects sources by their paths in the source tree (default all).

The build directory (default build/syntax) is configured for that compiler, so that the commands are
those of CMakeLists.txt. Exit status: 0 accepted, 1 rejected (the compiler's messages are printed),
2 wrong usage.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(entry):
    """The compiler's exit status and messages for one source."""
    words = shlex.split(entry["command"])
    del words[words.index("-o"):words.index("-o") + 2]
    done = subprocess.run([*words, "-fsyntax-only"], cwd=entry["directory"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return entry["file"], done.returncode, done.stdout


def main():
    if len(sys.argv) not in (2, 3, 4) or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    build = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "build/syntax").resolve()
    names = re.compile(sys.argv[3] if len(sys.argv) > 3 else "")
    subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-Wno-dev",
                    "--log-level=WARNING", "--fresh", f"-DCMAKE_CXX_COMPILER={sys.argv[1]}",
                    "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--target", "generated_headers", "--", "--quiet"],
                   check=True)
    entries = [entry for entry in
               json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
               if not pathlib.Path(entry["file"]).is_relative_to(build)
               and names.search(pathlib.Path(entry["file"]).relative_to(ROOT).as_posix())]
    rejected = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, status, said in pool.map(check, entries):
            if status != 0 or said:
                rejected += 1
                print(f"{name}: rejected\n{said}")
    print(f"{len(entries)} sources, {rejected} rejected")
    return 1 if rejected or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
