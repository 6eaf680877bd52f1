#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compares the cost of including the single header with that of including <string_view>.

    include_time.py [--pairs N] COMPILER...
    include_time.py --self-test

Each is parsed N times (default 15), in turn, so that a slow moment of the machine hits both. What
is compared is the median of the processor time that the compiler took. Fails when a ratio is above
its limit: what reads traces and tables, and the whole single header, each have one.
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include" / "ptspec"
# What is included, and how many times the cost of <string_view> it may have.
PARTS = [
    ([INCLUDE / "trace" / "reader.hpp", INCLUDE / "topa" / "table.hpp"], 1.0),
    ([ROOT / "single_include" / "ptspec" / "ptspec.hpp"], 2.5),
]


def processor_seconds(compiler, source):
    """Parses `source` once; user and system time of the compiler and of what it started."""
    process = subprocess.Popen([*compiler.split(), "-std=c++20", "-fsyntax-only", str(source)])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{compiler} does not compile {source}")
    return usage.ru_utime + usage.ru_stime


def medians(compiler, sources, pairs):
    """The median times of the two sources, measured in turn and in alternating order."""
    times = ([], [])
    for source in sources:  # brings compiler and headers into memory
        processor_seconds(compiler, source)
    for number in range(pairs):
        for which in (0, 1) if number % 2 else (1, 0):
            times[which].append(processor_seconds(compiler, sources[which]))
    return statistics.median(times[0]), statistics.median(times[1])


def compare(compiler, includes, yardstick, pairs, limit):
    """Measures, says what came out, and returns whether `includes` stay within the limit."""
    with tempfile.TemporaryDirectory() as folder:
        sources = []
        for name, what in (("ours.cpp", includes), ("theirs.cpp", [yardstick])):
            path = pathlib.Path(folder, name)
            path.write_text("".join(f"#include {one}\n" for one in what), encoding="utf-8")
            sources.append(path)
        ours, theirs = medians(f"{compiler} -I{ROOT / 'include'}", sources, pairs)
    ratio = ours / theirs
    names = " ".join(re.sub(r".*/ptspec/", "", one).strip('"') for one in includes)
    print(f"{compiler}: {names} {ours * 1000:.1f} ms, {yardstick} {theirs * 1000:.1f} ms, "
          f"ratio {ratio:.2f}, limit {limit:.2f}")
    return ratio <= limit


def self_test():
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ["g++", "clang++"]), None)
    if compiler is None:
        print("skipped: no C++ compiler")
        return 77
    good = compare(compiler, ["<stddef.h>"], "<string_view>", 3, 1.0)
    bad = compare(compiler, ["<regex>"], "<string_view>", 3, 1.0)
    print("a cheap header passes:", good)
    print("a dear header fails:", not bad)
    return 0 if good and not bad else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("compilers", nargs="+")
    options = parser.parse_args(arguments)
    within = [compare(compiler, [f'"{path}"' for path in paths], "<string_view>", options.pairs,
                      limit)
              for compiler in options.compilers for paths, limit in PARTS]
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
