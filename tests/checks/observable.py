#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes tests/spec/observable.csv again: which checks of the suite ask about each rule.

    observable.py PT_SUITE

The columns `checks` and `presets` come from `pt_suite`: the checks of a rule, and the processors
whose model can be asked, `all` being those with Intel PT. `why not` stays as it is; it is empty for
a rule that has a check. tests/tools/pt_suite.py compares the file.
"""

import csv
import json
import pathlib
import re
import subprocess
import sys

SPEC = pathlib.Path(__file__).resolve().parents[1] / "spec"
PATH = SPEC / "observable.csv"
COLUMNS = ("rule", "checks", "presets", "why not")
RULE = re.compile(r"^(?:- |\*\*)((?:REG|OUT|PKT|GEN|PRG)-\d\d\d)\b", re.M)


def catalogue():
    return sorted({rule for page in SPEC.glob("*.md") for rule in RULE.findall(page.read_text())})


def presets():
    with open(SPEC / "presets.csv", newline="") as file:
        return [row["name"] for row in csv.DictReader(file)]


def lines_of(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"{arguments}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def rows(program, reasons):
    checks = {}
    for one in lines_of(program, "--list", "--json"):
        for rule in one["rules"].split():
            checks.setdefault(rule, []).append(one["check"])
    names = presets()
    asked = {}  # by check
    for name in names:
        for one in lines_of(program, "--json", "--runs", "1", "--as-preset", name, "--as-kind",
                            "manual", "--dangerous", "topa-beyond-maxphyaddr")[1:]:
            if one["outcome"] != "skipped":
                asked.setdefault(one["check"], set()).add(name)
    with_pt = asked["ctl-reserved-bits"]
    for rule in catalogue():
        mine = checks.get(rule, [])
        who = set().union(*(asked.get(check, set()) for check in mine)) if mine else set()
        missing = [name for name in names if name in with_pt - who]
        found = [name for name in names if name in who]
        text = ("" if not mine else "none" if not found else "all" if not missing else
                "all but " + ";".join(missing) if len(missing) < len(found) else ";".join(found))
        yield (rule, " ".join(mine), text, "" if mine else reasons.get(rule, ""))


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    reasons = {}
    if PATH.exists():
        with open(PATH, newline="") as file:
            reasons = {row["rule"]: row["why not"] for row in csv.DictReader(file)}
    made = list(rows(sys.argv[1], reasons))
    with open(PATH, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *made])
    print(f"{sum(bool(row[1]) for row in made)} of {len(made)} rules have a check")
    return 0


if __name__ == "__main__":
    sys.exit(main())
