#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs perf's own tests of Intel PT in the machine of examples/tools/machine.

    perf_test.py [--root IMAGE] [--preset NAME].. [--cpus N] [--keep FOLDER] [CASE]..

The tests are "Intel PT packet decoder" and the cases of "Miscellaneous Intel PT testing". Beside
each case stands a check of our own, in perf_cases.sh: that a recording like that of the case holds
what the case is about, because some cases pass on an empty file. A case that a preset skips must
pass with another. With the names of our checks, such as `sample`, only these run.

AlderLake-N alone has the capabilities of all cases. A preset takes six minutes. Needs the root that
`machine root` makes (IMAGE, by default that of `machine root`), and the kernel.
Exit status: 0, 1 (a case failed, or was skipped by all presets), 2 (wrong usage).
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from common import HERE, IMAGE, MACHINE

PRESETS = ["Skylake-X", "AlderLake-N"]

# Our names, and the headings of the cases in perf's output.
CASES = {
    "side_band": "Test system-wide sideband",
    "per_thread": "Test per-thread recording",
    "per_threadk": "Test per-thread (incl. kernel) recording",
    "jitdump": "Test tracing self-modifying code that uses jitdump",
    "packet_filter": "Test with MTC and TSC disabled",
    "disable_branch": "Test with branches disabled",
    "time_cyc": "Test with/without CYC",
    "sample": "Test recording with sample mode",
    "kernel_trace": "Test with kernel trace",
    "virtual_lbr": "Test virtual LBR",
    "power_event": "Test power events",
    "no_tnt": "Test with TNT packets disabled",
    "event_trace": "Test with event_trace",
}

# The format of jitdump, which packages do not have as a header.
JITDUMP = """#include <stdint.h>
#define JITHEADER_MAGIC 0x4A695444
#define JITHEADER_VERSION 1
#define JITDUMP_FLAGS_ARCH_TIMESTAMP 1ULL
enum jit_record_type { JIT_CODE_LOAD, JIT_CODE_MOVE, JIT_CODE_DEBUG_INFO, JIT_CODE_CLOSE };
struct jitheader {
    uint32_t magic, version, total_size, elf_mach, pad1, pid;
    uint64_t timestamp, flags;
};
struct jr_prefix {
    uint32_t id, total_size;
    uint64_t timestamp;
};
struct jr_code_load {
    struct jr_prefix p;
    uint32_t pid, tid;
    uint64_t vma, code_addr, code_size, code_index;
};
"""


def outcomes_of(text):
    """The outcome of each case in the output of "Miscellaneous Intel PT testing"."""
    parts = re.split(r"^--- (.*?) *---$", text, flags=re.M)
    by_heading = dict(zip((one.strip() for one in parts[1::2]), parts[2::2]))
    found = {}
    for name, heading in CASES.items():
        output = by_heading.get(heading)
        lines = output.strip().splitlines() if output is not None else []
        if output is None:
            found[name] = "absent"
        elif re.search(r"skipping|^SKIP", output, re.M):
            found[name] = "skipped"
        else:
            found[name] = "passed" if lines and lines[-1] == "OK" else "failed"
    return found


def run_preset(options, preset, folder):
    """Returns the exit status of the machine."""
    (folder / "jitdump.h").write_text(JITDUMP, encoding="utf-8")
    command = [MACHINE, "run", "--root", options.root, "--preset", preset, "--cpus", options.cpus,
               "--seconds", options.seconds, "--file", folder / "jitdump.h",
               "--file", HERE / "perf_cases.sh", "bash", "perf_cases.sh", *options.cases]
    return subprocess.run([str(word) for word in command], cwd=folder, check=False,
                          stdin=subprocess.DEVNULL).returncode


def read(file):
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def results_of(options, preset, folder):
    """Rows of a preset: case, outcome, that of our check, details."""
    status = run_preset(options, preset, folder)
    own = {}
    for line in read(folder / "own.txt").splitlines():
        name, outcome, details = line.split("|", 2)
        own[name] = (outcome, details)
    rows = []
    if not options.cases:
        decoder = read(folder / "decoder.txt")
        passed = re.search(r"Intel PT packet decoder.*: Ok", decoder)
        rows.append(("packet_decoder", "passed" if passed else "failed", "", ""))
    outcomes = outcomes_of(read(folder / "misc.txt")) if not options.cases else {}
    for name in CASES:
        if not options.cases or name in own:
            rows.append((name, outcomes.get(name, ""), *own.get(name, ("absent", ""))))
    if status != 0:
        rows.append(("machine", f"status {status}", "failed", ""))
    return rows


def self_test():
    text = """--- start ---
--- Test system-wide sideband ---
Checking for CPU-wide recording on CPU 1
No so skipping
--- Test per-thread recording ---
Workload PIDs are 1 and 2
OK
--- Test with branches disabled ---
Failed to disable branches
--- Test with TNT packets disabled  ---
SKIP: tnt_disable is not supported
--- Cleaning up ---
"""
    expected = {"side_band": "skipped", "per_thread": "passed", "disable_branch": "failed",
                "no_tnt": "skipped", "sample": "absent"}
    found = outcomes_of(text)
    wrong = [one for one in expected if found[one] != expected[one]]
    print(f"{len(expected)} cases, {len(wrong)} failures", *wrong)
    return 1 if wrong else 0


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=IMAGE)
    parser.add_argument("--preset", action="append")
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=1800, help="at most, for each preset")
    parser.add_argument("--keep", help="a folder for the output of each preset")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args(arguments)
    if options.self_test:
        return self_test()
    options.root = pathlib.Path(options.root).resolve()
    passed, seen, failures = set(), set(), 0
    print(f"{'case':16} {'preset':16} {'perf':8} {'own':8} details")
    with tempfile.TemporaryDirectory() as scratch:
        for preset in options.preset or PRESETS:
            folder = pathlib.Path(options.keep or scratch).resolve() / preset
            folder.mkdir(parents=True, exist_ok=True)
            for name, outcome, own, details in results_of(options, preset, folder):
                print(f"{name:16} {preset:16} {outcome:8} {own:8} {details}", flush=True)
                seen.add(name)
                if outcome in ("passed", "") and own in ("ok", ""):
                    passed.add(name)
                elif not (own == "skipped" and outcome in ("skipped", "")):
                    failures += 1
    never = sorted(seen - passed)
    if never:
        print("not passed with any preset:", *never)
    print(f"{len(passed)} passed, {failures} failed")
    return 1 if failures or never else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
