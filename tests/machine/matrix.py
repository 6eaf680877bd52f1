#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Boots the machine of examples/tools/machine with each capability hidden in turn, with each preset
and with each kind, and holds what Linux offers there against CPUID.14H.

    matrix.py [--only TEXT] [--jobs N] [--keep FOLDER]

  --only TEXT    the cases whose name has this text, such as `hide` or `kind icelake`
  --jobs N       boots at the same time (2)
  --keep FOLDER  keep the files of each case here

For each case:
- the driver of Linux registers its PMU if there is Intel PT with ToPA output, and else does not;
- its files `caps` have the fields of CPUID.14H, whose words a program of ours prints;
- it refuses what is not there, and records with what is there: see ASKS;
- `intel_pt//u` of /bin/true is recorded; perf and pt_flow decode it without errors. Without MTC
  and CYC the time is that of the last PSB, so that perf decodes what follows an EXEC before it
  sees the maps: its errors are no failures then, those of pt_flow are;
- dmesg has no warning, and the bytes that the units stored are those of the files.

Needs what `machine run` needs, and pt_flow (`tests/run --build pt_flow`). Eight minutes.
Exit status: 0, 1 (a difference), 2 (wrong usage).
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MACHINE = ROOT / "examples/tools/machine/machine"
BUILD = pathlib.Path(os.environ.get("PTSPEC_BUILD_DIR", ROOT / "build")).resolve()
BASE = "AlderLake-N"  # it has the most capabilities

# Prints the words of CPUID that each preset has, as the arguments of machine.so make them.
WORDS = """#include "settings.hpp"
#include <cstdio>
int main(int argc, char** argv) {
    if (argc == 1) {
        for (auto const one : ptspec::cpu::preset::all) {
            std::printf("%.*s\\n", static_cast<int>(one.name.size()), one.name.data());
        }
        return 0;
    }
    auto const of = machine::settings_of(argc - 1, argv + 1);
    if (!of.error.empty()) { return 2; }
    auto const& caps = of.caps;
    std::printf("%u %u %u %u %u\\n", caps.leaf_07_0_ebx.raw, caps.leaf_14_0_ebx.raw,
                caps.leaf_14_0_ecx.raw, caps.leaf_14_1_eax.raw, caps.leaf_14_1_ebx.raw);
}
"""

# Names of Linux: word of CPUID.14H (0 to 3: 0:EBX, 0:ECX, 1:EAX, 1:EBX), mask.
CAPS = {
    "cr3_filtering": (0, 1 << 0), "psb_cyc": (0, 1 << 1), "ip_filtering": (0, 1 << 2),
    "mtc": (0, 1 << 3), "ptwrite": (0, 1 << 4), "power_event_trace": (0, 1 << 5),
    "event_trace": (0, 1 << 7), "tnt_disable": (0, 1 << 8),
    "topa_output": (1, 1 << 0), "topa_multiple_entries": (1, 1 << 1),
    "single_range_output": (1, 1 << 2), "output_subsys": (1, 1 << 3),
    "payloads_lip": (1, 1 << 31),
    "num_address_ranges": (2, 7), "mtc_periods": (2, 0xFFFF << 16),
    "cycle_thresholds": (3, 0xFFFF), "psb_periods": (3, 0xFFFF << 16)}

# Words of perf, and the files of caps that must not be 0 for them. Linux 6.1 has no name for the
# bit that disables TNT in all versions: it is given by number.
ASKS = {
    "cyc": ("intel_pt/cyc/u", ["psb_cyc"]),
    "psb_period": ("intel_pt/psb_period=PSB/u", ["psb_cyc", "psb_periods"]),
    "mtc": ("intel_pt/mtc/u", ["mtc"]),
    "mtc_period": ("intel_pt/mtc,mtc_period=MTC/u", ["mtc", "mtc_periods"]),
    "ptw": ("intel_pt/ptw/u", ["ptwrite"]),
    "pwr_evt": ("intel_pt/pwr_evt/u", ["power_event_trace"]),
    "event": ("intel_pt/event/u", ["event_trace"]),
    "notnt": ("intel_pt/notnt/u", ["tnt_disable"]),
    "filter": ("intel_pt//u --filter FILTER", ["ip_filtering", "num_address_ranges"])}

INSIDE = r"""
pt=/sys/bus/event_source/devices/intel_pt
for one in $pt/caps/* $pt/format/*; do
    [ ! -f $one ] || echo "${one#$pt/} $(cat $one)" >>offered.txt
done
touch offered.txt
first() {  # the lowest bit of a mask in hexadecimal, but not bit 0
    mask=$((0x$1 & ~1)) bit=0
    [ $mask != 0 ] || { echo 1; return; }
    while [ $((mask >> bit & 1)) = 0 ]; do bit=$((bit + 1)); done
    echo $bit
}
PSB=$(first $(cat $pt/caps/psb_periods 2>/dev/null || echo 0))
MTC=$(first $(cat $pt/caps/mtc_periods 2>/dev/null || echo 0))
record() {
    name=$1
    shift
    perf record -N -B --no-bpf-event -o $name.data "$@" >$name.txt 2>&1
    echo "$name $?" >>status.txt
}
record plain -e intel_pt//u /bin/true
[ -d $pt ] || exit 0
"""


@dataclasses.dataclass
class case:
    name: str
    arguments: list
    problems: list = dataclasses.field(default_factory=list)
    note: str = ""

    def holds(self, condition, text):
        if not condition:
            self.problems.append(text)


def inside_script():
    lines = [INSIDE]
    for name, (event, _) in ASKS.items():
        words = event.replace("PSB", "$PSB").replace("MTC", "$MTC")
        words = words.replace("FILTER", "'filter 0x400000/0x1000@/bin/busybox'")
        lines.append(f"record {name} -e {words} /bin/true\n")
    return "".join(lines) + "dmesg >dmesg.txt\n"


def make_words(folder):
    (folder / "words.cpp").write_text(WORDS, encoding="utf-8")
    subprocess.run(["g++", "-std=c++20", "-O0", f"-I{ROOT}/include", f"-I{MACHINE.parent}",
                    folder / "words.cpp", "-o", folder / "words"], check=True)
    return folder / "words"


def cases_of(words):
    presets = subprocess.run([words], capture_output=True, text=True, check=True).stdout.split()
    header = (ROOT / "include/ptspec/reg/cpuid_14h.hpp").read_text(encoding="utf-8")
    fields = []
    for word in ("0_ebx", "0_ecx", "1_eax", "1_ebx"):
        body = re.search(rf"^struct cpuid_14h_{word} :([\s\S]*?)^\}};", header, re.M)[1]
        fields += re.findall(r"struct (\w+) : (?:flag|field)<", body)
    header = (ROOT / "include/ptspec/engine/model_kind.hpp").read_text(encoding="utf-8")
    kinds = re.findall(r'model_kind::\w+,\s+"(\w+)"', header)
    made = [case(f"hide {one}", ["--preset", BASE, "--hide", one])
            for one in ["INTEL_PT", *fields]]
    made += [case(f"preset {one}", ["--preset", one]) for one in presets]
    made += [case(f"kind {one}", ["--kind", one]) for one in kinds]
    return made


def words_of(program, arguments):
    """INTEL_PT, and four words of CPUID.14H."""
    given = []
    for option, value in zip(arguments[::2], arguments[1::2]):
        given.append(f"{option.lstrip('-')}={value}")
    printed = subprocess.run([program, *(given or ["preset=Skylake-X"])], capture_output=True,
                             text=True, check=True).stdout
    leaf_7, *words = map(int, printed.split())
    return leaf_7 >> 25 & 1, words


def aux_bytes(file):
    """The size of the trace that the AUX records of a perf.data file announce."""
    content = file.read_bytes()
    at, size = struct.unpack_from("<QQ", content, 40)
    end, total = min(at + size, len(content)), 0
    while at + 8 <= end:
        kind, _, length = struct.unpack_from("<IHH", content, at)
        if kind == 11:  # AUX
            total += struct.unpack_from("<Q", content, at + 16)[0]
        if kind == 71:  # AUXTRACE: the trace follows
            length += struct.unpack_from("<Q", content, at + 8)[0]
        at += max(length, 8)
    return total


def make_symfs(folder):
    (folder / "bin").mkdir(parents=True)
    (folder / "usr/bin").mkdir(parents=True)
    (folder / "bin/busybox").symlink_to("/bin/busybox")
    perf = sorted(pathlib.Path("/usr/bin").glob("perf_[0-9]*"))
    (folder / "usr/bin/perf").symlink_to(perf[-1] if perf else "/usr/bin/perf")
    for name in ("lib", "lib64", "usr/lib"):
        (folder / name).symlink_to(f"/{name}")


def decode(one, folder, name, symfs, is_timed):
    file = folder / f"{name}.data"
    listed = subprocess.run(["perf", "script", "--symfs", symfs, "-i", file, "--itrace=e", "-F",
                             "ip,event"], capture_output=True, text=True, check=False,
                            errors="replace", timeout=200)
    errors = re.findall(r"instruction trace error.*", listed.stdout + listed.stderr)
    one.holds(listed.returncode == 0 and not (errors and is_timed), f"{name}: perf: {len(errors)} errors "
              f"{errors[:1]} {listed.stderr.strip()[-200:] if listed.returncode else ''}")
    walked = subprocess.run([BUILD / "bin/pt_flow", "--symfs", symfs, file], capture_output=True,
                            text=True, check=False, errors="replace", timeout=200)
    # A trace without TNT packets cannot be followed.
    if name != "notnt":
        one.holds(walked.returncode == 0 and (walked.stdout or name == "filter"),
                  f"{name}: pt_flow: status {walked.returncode} "
                  f"{walked.stderr.strip()[-300:]}")
    return len(walked.stdout.splitlines())


def check(one, folder, words, output):
    has_pt, of_14 = words
    offers = bool(has_pt and of_14[1] & 1)
    offered = dict(line.split(" ", 1) for line in
                   (folder / "offered.txt").read_text(encoding="utf-8").splitlines())
    statuses = dict(line.split() for line in
                    (folder / "status.txt").read_text(encoding="utf-8").splitlines())
    one.holds(bool(offered) == offers, f"a PMU is {'' if offered else 'not '}offered")
    if not offers:
        one.holds(statuses["plain"] != "0", "perf records without Intel PT")
        one.note = "no PMU, as it should be"
        return
    caps = {}
    for name, (word, mask) in CAPS.items():
        caps[name] = (of_14[word] & mask) // (mask & -mask)
        seen = int(offered.get(f"caps/{name}", "-1"), 16)
        one.holds(seen == caps[name], f"caps/{name} is {seen:x}, CPUID has {caps[name]:x}")
    symfs = folder / "symfs"
    make_symfs(symfs)
    lines = decode(one, folder, "plain", symfs, caps["mtc"])
    one.holds(lines > 10, f"plain: only {lines} runs")
    total = aux_bytes(folder / "plain.data")
    taken = ["plain"]
    for name, (event, needs) in ASKS.items():
        expected = all(caps[need] for need in needs)
        recorded = statuses.get(name) == "0"
        said = (folder / f"{name}.txt").read_text(encoding="utf-8", errors="replace").strip()
        one.holds(recorded == expected, f"{event}: {'recorded' if recorded else 'refused'}, and "
                  f"{', '.join(f'{need}={caps[need]:x}' for need in needs)}: {said[-150:]}")
        if recorded:
            decode(one, folder, name, symfs, caps["mtc"] or name == "cyc")
            total += aux_bytes(folder / f"{name}.data")
            taken.append(name)
    stored = sum(map(int, re.findall(r"processor \d+: (\d+) bytes stored", output)))
    one.holds(stored == total, f"{stored} bytes stored, {total} in the files")
    warnings = re.findall(r".*(?:WARNING: CPU|BUG:|unchecked MSR|general protection|Dazed|stall|"
                          r"lockup|Oops).*", (folder / "dmesg.txt").read_text(encoding="utf-8"))
    one.holds(not warnings, f"dmesg: {warnings[:3]}")
    one.note = f"{lines} runs, {total} bytes, taken: {' '.join(taken[1:])}"


def run_case(one, folder, program):
    folder.mkdir(parents=True)
    (folder / "inside.sh").write_text(inside_script(), encoding="utf-8")
    try:
        done = subprocess.run([MACHINE, "run", "--seconds", "300", *one.arguments, "--script",
                               "inside.sh"], cwd=folder, capture_output=True, text=True,
                              errors="replace", check=False, stdin=subprocess.DEVNULL)
        output = done.stdout + done.stderr
        (folder / "console.txt").write_text(output, encoding="utf-8")
        one.holds(done.returncode == 0 or not (folder / "dmesg.txt").exists(),
                  f"status {done.returncode}")
        check(one, folder, words_of(program, one.arguments), output)
    except (OSError, subprocess.SubprocessError, KeyError) as error:
        one.problems.append(f"{type(error).__name__}: {error}")
    return one


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep")
    options = parser.parse_args(arguments)
    if not (BUILD / "bin/pt_flow").exists():
        parser.error(f"{BUILD}/bin/pt_flow is absent: tests/run --build pt_flow")
    if options.keep and pathlib.Path(options.keep).exists():
        parser.error(f"{options.keep} exists")
    subprocess.run([MACHINE, "build"], check=True)
    failed = 0
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        folder = pathlib.Path(options.keep or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        program = make_words(folder)
        cases = [one for one in cases_of(program) if options.only in one.name]
        running = [pool.submit(run_case, one, folder / one.name.replace(" ", "-"), program)
                   for one in cases]
        for each in running:
            one = each.result()
            failed += bool(one.problems)
            print(f"{'FAILED' if one.problems else 'ok':7} {one.name:26} {one.note}", flush=True)
            for problem in one.problems:
                print(f"        {problem}", flush=True)
    print(f"{len(cases)} cases, {failed} failures")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
