#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""How a test says that it lacks something, and the summary of what was skipped.

    skips.py JUNIT     reads the results of ctest (--output-junit) and prints the summary

A test program prints a line `skipped: NEED: PART` for each part that it could not run, and ends
with exit status 77 if every other part passed; tests/support/skip.hpp does so for C++. A need in
the table below has instructions.
"""

import sys
import unittest
import xml.etree.ElementTree

SKIPPED = 77

HOW = {
    "recorded traces": "not part of the project; PTSPEC_TRACES names their folder",
    "recorded perf.data": "not part of the project; PTSPEC_PERF_DATA names their folder",
    "facts about processors": "not part of the project; PTSPEC_FACTS names their folder",
    "perf": "Debian: linux-perf",
    "qemu-x86_64": "Debian: qemu-user, then build again",
    "qemu-x86_64 and perf": "Debian: qemu-user linux-perf, then build again",
    "MPI": "Debian: libopenmpi-dev openmpi-bin, then build again",
    "Chromium": "Debian: chromium chromium-driver python3-selenium",
    "clang": "Debian: clang",
    "clang-format-19": "Debian: clang-format-19",
    "libipt": "Debian: libipt-dev",
    "pkg-config": "Debian: pkg-config",
    "rustc": "Debian: rustc",
    "the symbols of the C library": "Debian: libc6-dbg",
    "objdump": "Debian: binutils",
    "lld": "Debian: lld",
    "go": "Debian: golang-go",
    "libc.a": "Debian: libc6-dev",
    "Linux headers": "Debian: linux-headers-cloud-amd64",
}


_said = {}


def say(need, part):
    """Notes that a part cannot run without `need`."""
    _said[need, part] = None


def status(failed):
    """The exit status of a test program. Prints what was skipped."""
    for need, part in _said:
        print(f"skipped: {need}: {part}", flush=True)
    return 1 if failed else SKIPPED if _said else 0


def end(need, part):
    """Ends a program of which no part can run."""
    say(need, part)
    sys.exit(status(False))


def main(argv):
    """unittest.main for programs whose tests raise SkipTest(need)."""
    result = unittest.main(argv=argv, exit=False).result
    for test, need in result.skipped:
        say(need, test.id().removeprefix("__main__."))
    sys.exit(status(not result.wasSuccessful()))


def summary(junit):
    passed, failed, skipped = 0, [], {}
    for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
        name, status = case.get("name"), case.get("status")
        if status == "run":
            passed += 1
        elif status == "fail":
            failed.append(name)
        else:
            output = case.findtext("system-out") or ""
            lines = [line.split(": ", 2) for line in output.splitlines()
                     if line.startswith("skipped: ") and line.count(": ") > 1]
            for _, need, _ in lines or [(0, "something that the test does not name", 0)]:
                of_need = skipped.setdefault(need, {})
                of_need[name] = of_need.get(name, 0) + 1
    tests = {name for names in skipped.values() for name in names}
    lines = [f"{passed} tests passed, {len(failed)} failed, {len(tests)} skipped wholly or in part"
             + (", for lack of:" if tests else "")]
    for need, names in sorted(skipped.items()):
        lines.append(f"  {need}" + (f" ({HOW[need]})" if need in HOW else ""))
        lines += [f"      {name}" + (f" ({parts} parts)" if parts > 1 else "")
                  for name, parts in sorted(names.items())]
    lines += [f"failed: {name}" for name in failed]
    return "\n".join(lines)


if __name__ == "__main__":
    print(summary(sys.argv[1]))
