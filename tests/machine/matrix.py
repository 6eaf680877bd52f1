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
- perf_event_open refuses what is not there, and traces with what is there: see ASKS;
- `intel_pt//u` of /bin/true is recorded; perf and pt_flow decode it without errors. Without MTC
  the time is that of the last PSB, so that perf decodes what follows an EXEC before it
  sees the maps: its errors are no failures then, those of pt_flow are;
- dmesg has no warning, and the bytes that the units stored are those of the files.

Needs what `machine run` needs, and pt_flow (`tests/run --build pt_flow`). Eight minutes.
Exit status: 0, 1 (a difference), 2 (wrong usage).
"""

import argparse
import concurrent.futures
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

import perf_files
from common import BUILD, HERE, MACHINE, ROOT, parse, perf_errors

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

# Bits of IA32_RTIT_CTL that are asked for, and the files of caps that must not be 0
# for them. PSB and MTC are the lowest period that caps has.
ASKS = {
    "cyc": ("2", ["psb_cyc"]),
    "cyc_thresh": ("2 | 1 << 19", ["psb_cyc", "cycle_thresholds"]),
    "psb_period": ("PSB << 24", ["psb_cyc", "psb_periods"]),
    "mtc": ("1 << 9", ["mtc", "mtc_periods"]),
    "mtc_period": ("1 << 9 | MTC << 14", ["mtc", "mtc_periods"]),
    "noretcomp": ("1 << 11", []),
    "ptw": ("1 << 12", ["ptwrite"]),
    "pwr_evt": ("1 << 4", ["power_event_trace"]),
    "event": ("1 << 31", ["event_trace"]),
    "notnt": ("1 << 55", ["tnt_disable"]),
    "filter": ("0", ["ip_filtering", "num_address_ranges"])}

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
ask() {
    name=$1 config=$(printf %x $(($2)))
    shift 2
    ./matrix_asks $name $config "$@" >>asked.txt
}
perf record -N -B --no-bpf-event -o plain.data -e intel_pt//u /bin/true >plain.txt 2>&1
echo $? >status.txt
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
    for name, (bits, _) in ASKS.items():
        more = ' "filter 0x1000/0x100000@/files/matrix_asks"' if name == "filter" else ""
        lines.append(f"ask {name} '{bits}'{more}\n")
    return "".join(lines) + "dmesg >dmesg.txt\n"


def make_words(folder):
    (folder / "words.cpp").write_text(WORDS, encoding="utf-8")
    subprocess.run(["g++", "-std=c++20", "-O0", f"-I{ROOT}/include", f"-I{MACHINE.parent}",
                    folder / "words.cpp", "-o", folder / "words"], check=True)
    subprocess.run(["gcc", "-O1", "-static", HERE / "matrix_asks.c", "-o",
                    folder / "matrix_asks"], check=True)
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


def make_symfs(folder):
    (folder / "bin").mkdir(parents=True)
    (folder / "usr/bin").mkdir(parents=True)
    (folder / "bin/busybox").symlink_to("/bin/busybox")
    perf = sorted(pathlib.Path("/usr/bin").glob("perf_[0-9]*"))
    (folder / "usr/bin/perf").symlink_to(perf[-1] if perf else "/usr/bin/perf")
    for name in ("lib", "lib64", "usr/lib"):
        (folder / name).symlink_to(f"/{name}")


def decode(one, folder, symfs, has_mtc):
    """Returns the number of lines that pt_flow prints."""
    file = folder / "plain.data"
    listed, errors = perf_errors(file, symfs)
    one.holds(listed.returncode == 0 and not (errors and has_mtc), f"perf: {len(errors)} errors "
              f"{errors[:1]} {listed.stderr.strip()[-200:] if listed.returncode else ''}")
    walked = subprocess.run([BUILD / "bin/pt_flow", "--symfs", symfs, file], capture_output=True,
                            text=True, check=False, errors="replace", timeout=300)
    one.holds(walked.returncode == 0, f"pt_flow: status {walked.returncode} "
              f"{walked.stderr.strip()[-300:]}")
    lines = len(walked.stdout.splitlines())
    one.holds(lines > 10, f"only {lines} runs")
    return lines


def check_asks(one, folder, caps):
    """Returns the number of bytes, and what was taken."""
    total, taken = 0, []
    for line in (folder / "asked.txt").read_text(encoding="utf-8").splitlines():
        name, error, size = line.split()
        expected = all(caps[need] for need in ASKS[name][1])
        one.holds((error == "0") == expected, f"{name}: errno {error}, and " + ", ".join(
            f"{need}={caps[need]:x}" for need in ASKS[name][1]))
        one.holds(error != "0" or int(size) > 16, f"{name}: {size} bytes")
        total += int(size)
        taken += [name] if error == "0" else []
    return total, taken


def check(one, folder, words, output):
    has_pt, of_14 = words
    offers = bool(has_pt and of_14[1] & 1)
    offered = dict(line.split(" ", 1) for line in
                   (folder / "offered.txt").read_text(encoding="utf-8").splitlines())
    status = (folder / "status.txt").read_text(encoding="utf-8").strip()
    one.holds(bool(offered) == offers, f"a PMU is {'' if offered else 'not '}offered")
    one.holds((status == "0") == offers, f"perf record: status {status}")
    text = (folder / "dmesg.txt").read_text(encoding="utf-8")
    warnings = re.findall(r".*(?:WARNING: CPU|BUG:|unchecked MSR|general protection|Dazed|stall|"
                          r"lockup|Oops).*", text)
    one.holds(not warnings, f"dmesg: {warnings[:3]}")
    if not offers or not offered:
        one.note = "no PMU"
        return
    caps = {}
    for name, (word, mask) in CAPS.items():
        caps[name] = (of_14[word] & mask) // (mask & -mask)
        seen = int(offered.get(f"caps/{name}", "-1"), 16)
        one.holds(seen == caps[name], f"caps/{name} is {seen:x}, CPUID has {caps[name]:x}")
    symfs = folder / "symfs"
    make_symfs(symfs)
    lines = decode(one, folder, symfs,
                   caps["mtc"] and caps["mtc_periods"])
    total, taken = check_asks(one, folder, caps)
    total += perf_files.read(folder / "plain.data").size
    stored = sum(map(int, re.findall(r"processor \d+: (\d+) bytes stored", output)))
    one.holds(stored == total, f"{stored} bytes stored, {total} in the files")
    one.note = f"{lines} runs, {total} bytes, takes {' '.join(taken)}"


def run_case(one, folder, program):
    folder.mkdir(parents=True)
    (folder / "inside.sh").write_text(inside_script(), encoding="utf-8")
    try:
        done = subprocess.run([MACHINE, "run", "--seconds", "300", *one.arguments, "--file",
                               program.with_name("matrix_asks"), "--script", "inside.sh"],
                              cwd=folder, capture_output=True, text=True,
                              errors="replace", check=False, stdin=subprocess.DEVNULL)
        output = done.stdout + done.stderr
        (folder / "console.txt").write_text(output, encoding="utf-8")
        one.holds(done.returncode == 0, f"status {done.returncode}")
        check(one, folder, words_of(program, one.arguments), output)
    except (OSError, subprocess.SubprocessError, KeyError) as error:
        one.problems.append(f"{type(error).__name__}: {error}")
    return one


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    options = parse(parser, arguments)
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
