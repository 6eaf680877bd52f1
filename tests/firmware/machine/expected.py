#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Prints what the program of the machines must print, from expected.txt beside this file.

    expected.py               compares it with the catalogue, and prints it without comments
    expected.py --self-test

Exit status: 0 success, 1 it contradicts the catalogue, 2 wrong usage.
"""

import csv
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
SPEC = HERE.parents[1] / "spec"

COMMENT_IN_CELL = re.compile(r" \([^)]*\)")


def catalogue():
    """Two dictionaries: the vectors (bytes, packet name), and the expected cells of the cases."""
    with open(SPEC / "packet_vectors.csv", encoding="utf-8", newline="") as file:
        vectors = {row["id"]: (row["bytes_hex"].upper(), row["expected_packet_name"])
                   for row in csv.DictReader(file)}
    cases = {}
    for page in ("programming.md", "tracing.md"):
        for line in (SPEC / page).read_text(encoding="utf-8").splitlines():
            if re.match(r"\| (PC|TC)-\d+ \|", line):
                cells = [cell.strip() for cell in line.strip("|").split("|")]
                cases[cells[0]] = COMMENT_IN_CELL.sub("", cells[3])
    return vectors, cases


def case_problems(lines, cases):
    """A line `PC-nn:` and the indented lines below it are the expected cell of the case."""
    for number, line in enumerate(lines):
        head = re.fullmatch(r"(PC-\d+):", line)
        if not head:
            continue
        below = []
        for after in lines[number + 1:]:
            if not after.startswith("  "):
                break
            below.append(after.strip())
        if "; ".join(below) != cases.get(head[1]):
            yield f"{head[1]} is {cases.get(head[1])!r}"


def packet_problems(lines, vectors, cases):
    """Every packet has a comment, and is what the vector and the case in it say."""
    for before, line in zip(lines, lines[1:]):
        packet = re.match(r"  ([0-9A-F]{2,}) ([A-Z][\w.]+)", line)
        if not packet:
            continue
        ids = re.fullmatch(r"# (PV-\d+) (TC-\d+)", before)
        if not ids:
            yield f"no vector and case above: {line}"
        elif vectors.get(ids[1]) != (packet[1], packet[2]):
            yield f"{ids[1]} is {vectors.get(ids[1])}: {line}"
        elif not re.search(rf"\b{re.escape(packet[2].removesuffix('.short'))}(?![\w.])",
                           cases.get(ids[2], "")):
            yield f"{ids[2]} is {cases.get(ids[2])!r}: {line}"


def problems_in(text):
    vectors, cases = catalogue()
    lines = text.splitlines()
    without_comments = [line for line in lines if not line.startswith("#")]
    found = [*case_problems(without_comments, cases), *packet_problems(lines, vectors, cases)]
    if sum(bool(re.fullmatch(r"# PV-\d+ TC-\d+", line)) for line in lines) == 0:
        found.append("no packet in it")
    return found, "".join(line + "\n" for line in without_comments)


def self_test(text):
    changes = [  # a change of the text, and a part of the expected problem
        ("WRMSR(561,7F)", "WRMSR(561,FF)", "PC-02 is"),
        ("  pos=21234\n", "", "PC-12 is"),
        ("PC-12:", "PC-99:", "PC-99 is None"),
        ("0C TNT", "0E TNT", "PV-007 is"),
        ("3D1234 FUP", "3D1234 TIP", "PV-062 is"),
        ("PV-007", "PV-999", "PV-999 is None"),
        ("PV-019 TC-01", "PV-019 TC-03", None),
        ("PV-019 TC-01", "PV-019 TC-20", "TC-20 is"),
        ("# PV-053 TC-40\n", "", "no vector and case above"),
    ]
    failures = 0 if not problems_in(text)[0] else 1
    for old, new, part in changes:
        found, _ = problems_in(text.replace(old, new))
        if old not in text or bool(found) != bool(part) or part and part not in found[0]:
            print(f"{old!r} as {new!r}: expected {part!r}, got {found}")
            failures += 1
    if problems_in("")[0] != ["no packet in it"]:
        print("an empty file is not found")
        failures += 1
    print(f"{len(changes) + 2} cases, {failures} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments not in ([], ["--self-test"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = (HERE / "expected.txt").read_text(encoding="utf-8")
    if arguments:
        return self_test(text)
    found, printed = problems_in(text)
    for problem in found:
        print(f"expected.txt: {problem}", file=sys.stderr)
    print(printed, end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
