#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compares the cost of including each umbrella header with that of including <string_view>.

    include_time.py [--pairs N] [--most-used] COMPILER...
    include_time.py --self-test

Each is parsed N times (default 9), alternately, and the median processor times are printed. The
limit applies to the ratio of executed instructions, counted by valgrind, because it does not depend
on the load of the machine. Each umbrella header, and the single header, has limits of its own.
--most-used measures half of them.
"""

import argparse
import concurrent.futures
import functools
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include" / "ptspec"
# Headers, and the limits relative to the instructions of <string_view>: with g++, and with clang.
PARTS = [
    ([INCLUDE / "core.hpp"], 1.80, 1.55),
    ([INCLUDE / "registers.hpp"], 1.01, 0.82),
    ([INCLUDE / "topa.hpp"], 0.98, 0.82),
    ([INCLUDE / "trace.hpp"], 0.86, 0.77),
    ([INCLUDE / "events.hpp"], 1.53, 1.40),
    ([INCLUDE / "edit.hpp"], 1.09, 1.37),
    ([INCLUDE / "flow.hpp"], 1.44, 1.40),
    ([INCLUDE / "model.hpp"], 2.27, 2.02),
    ([INCLUDE / "driver.hpp"], 1.71, 1.63),
    ([INCLUDE / "hypervisor.hpp"], 1.68, 1.59),
    ([ROOT / "single_include" / "ptspec" / "ptspec.hpp"], 4.18, 4.57),
]
MOST_USED = ["core.hpp", "trace.hpp", "events.hpp", "flow.hpp", "ptspec.hpp"]


def processor_seconds(compiler, source):
    """Parses `source` once. Returns user and system time of the compiler and its children."""
    process = subprocess.Popen([*compiler.split(), "-std=c++20", "-fsyntax-only", str(source)])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{compiler} does not compile {source}")
    return usage.ru_utime + usage.ru_stime


def medians(compiler, sources, pairs):
    """The median times of the two sources, measured alternately."""
    times = ([], [])
    for source in sources:  # warms up the page cache
        processor_seconds(compiler, source)
    for number in range(pairs):
        for which in (0, 1) if number % 2 else (1, 0):
            times[which].append(processor_seconds(compiler, sources[which]))
    return statistics.median(times[0]), statistics.median(times[1])


def instructions(compiler, source):
    """The number of instructions that the compiler proper executes to parse `source`."""
    plan = subprocess.run([*compiler.split(), "-std=c++20", "-fsyntax-only", "-###", str(source)],
                          capture_output=True, text=True, check=True).stderr
    command = next(shlex.split(line) for line in reversed(plan.splitlines())
                   if "cc1plus" in line or "-cc1" in line)
    with tempfile.TemporaryDirectory() as folder:
        counted = subprocess.run(
            ["valgrind", "--tool=cachegrind", "--cache-sim=no",
             f"--cachegrind-out-file={folder}/counts", *command],
            capture_output=True, text=True, check=True).stderr
    return int(re.search(r"I\s+refs:\s+([\d,]+)", counted)[1].replace(",", ""))


@functools.cache
def instructions_of(compiler, includes):
    """The same for the source that includes these headers."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "includes.cpp")
        path.write_text("".join(f"#include {one}\n" for one in includes), encoding="utf-8")
        return instructions(compiler, path)


def compare(compiler, includes, reference, pairs, limit):
    """Measures, prints the result, and returns whether `includes` are within the limit."""
    with tempfile.TemporaryDirectory() as folder:
        sources = []
        for name, what in (("ours.cpp", includes), ("theirs.cpp", [reference])):
            path = pathlib.Path(folder, name)
            path.write_text("".join(f"#include {one}\n" for one in what), encoding="utf-8")
            sources.append(path)
        command = f"{compiler} -I{ROOT / 'include'}"
        ours, theirs = medians(command, sources, pairs)
    ratio = instructions_of(command, tuple(includes)) / instructions_of(command, (reference,))
    names = " ".join(re.sub(r".*/ptspec/", "", one).strip('"') for one in includes)
    print(f"{compiler}: {names} {ours * 1000:.1f} ms, {reference} {theirs * 1000:.1f} ms, "
          f"ratio {ours / theirs:.2f}; of instructions {ratio:.2f}, limit {limit:.2f}", flush=True)
    return ratio <= limit


def self_test():
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ["g++", "clang++"]), None)
    if compiler is None or shutil.which("valgrind") is None:
        print("skipped: a C++ compiler and valgrind: all")
        return 77
    good = compare(compiler, ["<stddef.h>"], "<string_view>", 1, 1.0)
    bad = compare(compiler, ["<string>"], "<string_view>", 1, 1.0)
    print("a cheap header passes:", good)
    print("a dear header fails:", not bad)
    return 0 if good and not bad else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--most-used", action="store_true")
    parser.add_argument("compilers", nargs="+")
    options = parser.parse_args(arguments)
    parts = [(tuple(f'"{path}"' for path in paths), *limits) for paths, *limits in PARTS
             if not options.most_used or paths[0].name in MOST_USED]
    # The counts do not depend on the load, so they are taken in parallel, and are then cached.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda task: instructions_of(*task),
                      [(f"{compiler} -I{ROOT / 'include'}", includes)
                       for compiler in options.compilers
                       for includes in (*(part for part, *_ in parts), ("<string_view>",))]))
    within = [compare(compiler, includes, "<string_view>", options.pairs,
                      with_clang if "clang" in compiler else with_gcc)
              for compiler in options.compilers for includes, with_gcc, with_clang in parts]
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
