#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Whether the suite of checks finds published faults of Intel PT.

    tests/held/faults.py                   all faults of tests/held/faults/
    tests/held/faults.py skl014 linux-     those whose names begin so
    tests/held/faults.py --sample 3        a few, spread over the list

A fault is a bug that a processor, hypervisor, emulator, driver or decoder had, expressed as a
change of a header: the model has what a target would have. It is compiled with the change, and the
checks with the headers as they are (mutants.py). One of the checks must find a broken rule that the
fault names.

A file has these lines, and after `file` the changes: lines that begin with ` `, `-` or `+`. Each
run of them is a change, and the text of its ` ` and `-` lines occurs once in the header.

    source: the erratum, or project and commit
    what:   what was wrong
    rule:   ids of rules that it breaks
    file:   the header, below include/ptspec/

For each fault a line is printed: its name, whether it was found, the check and the rule, and other
rules that were found. Exit status: 0 all are found by a named rule, 1 not, 2 wrong usage.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutants  # noqa: E402

FOLDER = mutants.HERE / "faults"
KEYS = ("source", "what", "rule", "file")

Fault = collections.namedtuple("Fault", "name source what rules path changes")


class Malformed(Exception):
    pass


def read_fault(path):
    values, changes, change = {}, [], []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if line.startswith("# "):
            continue
        if line[:1] in (" ", "-", "+") and "file" in values:
            change.append(line)
            continue
        if change:
            changes.append(change)
            change = []
        if not line:
            continue
        key, separator, value = line.partition(": ")
        if not separator or key not in KEYS or key in values:
            raise Malformed(f"{path.name}:{number}: neither a key nor a change")
        values[key] = value.strip()
    if tuple(values) != KEYS or not changes:
        raise Malformed(f"{path.name}: needs {', '.join(KEYS)} and a change")
    rules = values["rule"].split()
    for rule in rules:
        if not re.fullmatch(r"[A-Z]{3}-\d{3}", rule):
            raise Malformed(f"{path.name}: {rule} is no rule")
    return Fault(path.stem, values["source"], values["what"], rules, values["file"], changes)


def changed_text(fault):
    text = (mutants.ROOT / "include/ptspec" / fault.path).read_text()
    for change in fault.changes:
        old = "".join(line[1:] + "\n" for line in change if line[0] != "+")
        new = "".join(line[1:] + "\n" for line in change if line[0] != "-")
        count = text.count(old)
        if old == new or count != 1:
            raise Malformed(f"{fault.name}: a change occurs {count} times in {fault.path}")
        text = text.replace(old, new)
    return text


def judge(fault, scratch, number):
    """The line about a fault, and whether a named rule was found broken."""
    try:
        run = mutants.run_with(fault.path, changed_text(fault), scratch, number)
    except Malformed as problem:
        return str(problem), False
    if run.outcome != "found":
        first = next((line for line in run.message.splitlines() if "error" in line), "")
        return f"{fault.name}: {run.outcome} {first}".rstrip(), False
    broken = list(dict.fromkeys((one[1], one[2]) for one in run.findings if one[0] == "broken"))
    named = [one for one in broken if one[1] in fault.rules]
    other = sorted({rule for _, rule in broken} - set(fault.rules))
    rest = f"; also {' '.join(other[:6])}" if other else ""
    if len(other) > 6:
        rest += f" and {len(other) - 6} more"
    if run.stray:
        rest += f"; stray {run.stray}"
    if not named:
        return f"{fault.name}: other rule{rest}", False
    check, rule = named[0]
    return f"{fault.name}: found by {check} {rule}{rest}", True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="the beginnings of names")
    parser.add_argument("--sample", type=int, help="so many, spread over the list")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    paths = sorted(FOLDER.glob("*.txt"))
    if options.names:
        paths = [one for one in paths if one.name.startswith(tuple(options.names))]
    if options.sample and options.sample < len(paths):
        paths = [paths[i * len(paths) // options.sample] for i in range(options.sample)]
    if not paths:
        print("no fault has such a name", file=sys.stderr)
        return 2
    try:
        faults = [read_fault(one) for one in paths]
    except Malformed as problem:
        print(problem, file=sys.stderr)
        return 1
    found = 0
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        built = mutants.compile_object("oracle.cpp", mutants.ROOT / "include",
                                       scratch / "oracle.o")
        if built.returncode:
            sys.exit(built.stderr)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            pending = [pool.submit(judge, one, scratch, i) for i, one in enumerate(faults)]
            for one in pending:
                line, is_found = one.result()
                found += is_found
                print(line, flush=True)
    print(f"{found} of {len(faults)} faults found by a named rule")
    return 0 if found == len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
