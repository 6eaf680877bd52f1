#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Counts the instructions that bulk output costs above the copying itself, with valgrind.

    instructions.py PROGRAM [--limit N]

PROGRAM is the compiled tests/bench/output.cpp. A row is a size of writes: instructions for a write
with engine::output, with memcpy, and the difference for a region of 4 KB. Exit status: 0 no
difference is above the limit, 1 one is, 2 wrong usage.
"""

import argparse
import os
import re
import subprocess
import sys

# Valgrind counts each iteration of REP MOVSB, which some C libraries use for long copies.
PLAIN_COPIES = {"GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1000000000"}
REGION = 4096
REGIONS = 16
FEW, MANY = 100, 3_100


def count(program: str, option: str, writes: int, size: int) -> int:
    """The instructions of a whole run."""
    run = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
         program, option, str(writes), str(size), str(REGIONS)],
        capture_output=True, text=True, check=True, env=os.environ | PLAIN_COPIES)
    return int(re.search(r"I\s+refs:\s+([\d,]+)", run.stderr)[1].replace(",", ""))


def each(program: str, option: str, size: int) -> float:
    """The instructions of one write: the difference between many writes and few."""
    more = count(program, option, MANY, size) - count(program, option, FEW, size)
    return more / (MANY - FEW)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--limit", type=float, default=float("inf"))
    options = parser.parse_args()
    print("  write      ours   memcpy   more a region")
    worst = 0.0
    for size in (REGION, 16 * REGION):
        ours = each(options.program, "--writes", size)
        plain = each(options.program, "--copies", size)
        more = (ours - plain) * REGION / size
        worst = max(worst, more)
        print(f"{size:7} {ours:9.1f} {plain:8.1f} {more:15.1f}")
    if worst > options.limit:
        print(f"more than {options.limit:g}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
