#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Whether the suite of checks finds mutants of the model.

    tests/held/mutants.py                        60 mutants
    tests/held/mutants.py --count 400 --seed 3
    tests/held/mutants.py --rules                those whose line names a rule, all
    tests/held/mutants.py --files engine/output/output.hpp --list

A mutant changes an operator of a header of access/, engine/, topa/ or packet/. The model is
compiled with it, in a namespace of its own, and the checks with the headers as they are; both are
linked into one program, which runs the suite on several processors. A mutant is found if a check
finds a broken rule, or if the model crashes or hangs. If the mutated line names a rule, one of the
checks must name it, too.

Mutants are drawn from the lines that the model can execute, as gcov lists them, and from the
declarations of the packets that it writes. Left out is what no target of the suite offers
(LEFT_OUT_FILES), or can see (INVISIBLE).

Exit status: 0, 1 less than --min percent are found, 2 wrong usage.
"""

import argparse
import collections
import concurrent.futures
import csv
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/checks"))
import mutate  # noqa: E402

HERE = ROOT / "tests/held"
FOLDERS = ("access", "engine", "topa", "packet")

# What no target of the suite has, by file, or by a word of the function around it: VMX, SMM, power
# states, enclaves, events other than IRET, time that passes within an instruction, memory that is
# restricted or mapped, or that fails, a fabric, an overflow.
LEFT_OUT_FILES = (
    "access/image.hpp", "access/lbr.hpp", "access/msr_write_sources.hpp",
    "engine/unit_image.hpp", "engine/detail/vmx_smm.hpp", "engine/detail/power.hpp",
    "engine/action/", "topa/restricted.hpp", "topa/builders.hpp", "topa/validate.hpp",
    "topa/regions_for_pages.hpp", "engine/output/explain.hpp", "engine/output/regions.hpp",
    "engine/detail/overflow.hpp", "engine/detail/fast_ips.hpp", "engine/model_kind.hpp",
    "engine/output/result.hpp", "engine/access_result.hpp", "access/pmi.hpp",
)
LEFT_OUT_FUNCTIONS = re.compile(
    r"vmx|smm|smi|rsm|power|pebs|enclave|launch|acm|restrict|fabric|sipi|init\b|vm_|kernel_visit|"
    r"explain|image|overflow|find_broken|fill_regions|fast|deferred|is_simple|moment|run_within|"
    r"vectored|software_interrupt|interrupt_flag|run_pending|put_few|put_mapped|send\(|"
    r"cycle_guard|is_flushing", re.I)
PACKETS_LEFT_OUT = ("packet/decode.hpp", "packet/classify.hpp", "packet/any_packet.hpp",
                    "packet/kind_set.hpp", "packet/list.hpp", "packet/kind.hpp", "packet/power.hpp",
                    "packet/pebs.hpp", "packet/event_trace.hpp", "packet/trig.hpp",
                    "packet/mnt.hpp", "packet/vmcs.hpp", "packet/ovf.hpp", "packet/pad.hpp")

# Lines whose effect no target can see.
INVISIBLE = re.compile("|".join((
    # Caches, whose slow path does the same, and state that is set again before it is used.
    r"fast_|is_fast|write_back|refresh_cache|has_ranges|can_fill|\[\[(?:un)?likely\]\]",
    r"!s\.write_options\.cyc|append_tnt\(|Exp::lsb\) == 0|^\s*s_(?:\.options)? = |view\.mode = 0",
    # The names of rules, and the totals of results; packets that a writer never makes.
    r"found\(|count_stored|total_|\.taken\b|stored [+-]=|lost \+=|rule::PKT_\d\d\d|0, broken\}",
    # VMX, SMM, IA32_XSS, and events.
    r"debugctl|freeze|vmcs|in_vmx|vmx_non_root|vmx_is_visible|concealment|smram|in_smm|next\.xss",
    r"records_events|add_evd|evd\{|has_value|fup_policy|swintr",
    # An overflow, or a full buffer; a counter that wraps, a CYC of nine bytes, 256 MTCs at once.
    r"overflow|ovf|room\(\)|first_ = wrapped|size_ -= count|view = before|before\.count_start",
    r"guard|wraps|carries|handle\(s, cycles|raw\.high|max_count|Depth - at",
    # TIPs after TNTs, which no kind has: GEN-145. Offsets in CS, whose base is 0; IPs below 64 KB.
    r"deferred|defers|== branch_encoding::tip\)|ip_payload\(\) ==|psb> \? 0",
    # Memory that is mapped, or that fails.
    r"mapped|window|try_next_region|full\.end|is_flushing|if \(.*fault\.happened",
    r"result\.fault = (?:\{|detail::load_region)|return fault\.happened",
    # RDMSR while TraceEn is 1 may return an older position, and older PacketByteCnt and PendPSB:
    # PRG-034, PRG-103.
    r"lags?\b|= detail::status_now\(",
    # The position of the next byte is known by WRMSR of OutputOffset and by the start of output:
    # each alone is enough, but for an index of END, which no check writes, and images.
    r"begin_output|align_to_address|align_after_buffer|\(address - s\.writer\.bytes\)",
    # What happens again before it is seen: PendPSB is cleared at the PSB+, too.
    r"with\(status::PendPSB\{false\}\)|^\s*pending_ = pending_action::none")), re.I)

Verdict = collections.namedtuple("Verdict", "mutant outcome checks rules stray")
Run = collections.namedtuple("Run", "outcome findings stray message")


def compiler():
    return os.environ.get("CXX", "g++")


def compile_object(source, include, out, flags=()):
    return subprocess.run([compiler(), "-std=c++20", "-O0", "-w", f"-I{include}", *flags, "-c",
                           str(HERE / source), "-o", str(out)], capture_output=True, text=True,
                          cwd=out.parent)


def executable_lines(scratch):
    """The lines that the model can execute, by header, how often it did, and its seconds."""
    folder = scratch / "coverage"
    folder.mkdir()
    built = compile_object("target.cpp", ROOT / "include", folder / "target.o",
                           ("-Dptspec=held", "--coverage"))
    if built.returncode:
        sys.exit(built.stderr)
    subprocess.run([compiler(), str(scratch / "oracle.o"), "target.o", "--coverage", "-o", "held"],
                   cwd=folder, check=True)
    before = time.monotonic()
    subprocess.run([str(folder / "held")], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    seconds = time.monotonic() - before
    subprocess.run(["gcov", "--json-format", "target.o"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    lines = {}
    for path in folder.glob("*.gcov.json.gz"):
        with gzip.open(path) as file:
            for one in json.load(file)["files"]:
                name = one["file"].partition("include/ptspec/")[2]
                counts = lines.setdefault(name, {})
                for line in one["lines"]:
                    number = line["line_number"]
                    counts[number] = counts.get(number, 0) + line["count"]
    return lines, seconds


def is_left_out(name, lines, line):
    """True for code that no target reaches."""
    if name.startswith(LEFT_OUT_FILES):
        return True
    # The function around a line: up to the next line that begins a declaration.
    for text in reversed(lines[max(0, line - 25):line]):
        if re.search(r"\b(?:constexpr|consteval)\b.*\(", text):
            return bool(LEFT_OUT_FUNCTIONS.search(text))
    return False


def all_mutants(scratch, options):
    lines, seconds = executable_lines(scratch)
    options.timeout = max(30, 10 * seconds)
    for folder in FOLDERS:
        for path in sorted((ROOT / "include/ptspec" / folder).rglob("*.hpp")):
            name = str(path.relative_to(ROOT / "include/ptspec"))
            if options.files and not any(name.startswith(one) for one in options.files):
                continue
            text = path.read_text()
            by_line = text.split("\n")
            counts = lines.get(name, {})
            is_packet = folder == "packet" and name not in PACKETS_LEFT_OUT

            def active(line):
                is_declared = is_packet and re.search(r"fixed<|flag<|field<|forced_1",
                                                      by_line[line - 1])
                names_rule = folder == "access" and "rule::" in by_line[line - 1]
                return (not INVISIBLE.search(by_line[line - 1]) and
                        (line in counts or is_declared or names_rule)
                        and not is_left_out(name, by_line, line))

            yield from mutate.mutants_of(name, text, active)


def run_with(path, text, scratch, number, timeout=30):
    """The model with a header changed, as a target: outcome, findings, stray bytes.

    A finding is a list: outcome, check, rule, preset, kind, detail.
    """
    folder = scratch / f"changed_{number}"
    include = folder / "include"
    try:
        (include / "ptspec").mkdir(parents=True)
        target = include / "ptspec" / path
        # All other headers are links: a folder that has the changed one is made, the others are
        # linked.
        source, made = ROOT / "include/ptspec", include / "ptspec"
        for part in pathlib.Path(path).parts:
            for one in source.iterdir():
                if one.name != part:
                    (made / one.name).symlink_to(one)
            source, made = source / part, made / part
            if source.is_dir():
                made.mkdir()
        target.write_text(text)
        built = compile_object("target.cpp", include, folder / "target.o", ("-Dptspec=held",))
        if built.returncode:
            return Run("invalid", [], 0, built.stderr)
        subprocess.run([compiler(), str(scratch / "oracle.o"), "target.o", "-o", "held"],
                       cwd=folder, check=True)
        try:
            ran = subprocess.run([str(folder / "held")], capture_output=True, text=True,
                                 timeout=timeout)
        except subprocess.TimeoutExpired:
            return Run("hangs", [], 0, "")
        if ran.returncode not in (0, 1):
            return Run("crashes", [], 0, "")
        findings = [line.split(" ", 5) for line in ran.stdout.splitlines()
                    if not line.startswith("stray ")]
        stray = int(re.search(r"^stray (\d+)", ran.stdout, re.M)[1])
        return Run("found" if findings else "survived", findings, stray, "")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def judge(mutant, scratch, number, timeout):
    run = run_with(mutant.path, mutant.text, scratch, number, timeout)
    if run.outcome in ("hangs", "crashes"):
        return Verdict(mutant, "found", (run.outcome,), (), 0)
    return Verdict(mutant, run.outcome,
                   tuple(dict.fromkeys(one[1] for one in run.findings)),
                   tuple(dict.fromkeys(one[2] for one in run.findings)), run.stray)


def observable_rules():
    """The rules that a check can find broken."""
    with open(ROOT / "tests/spec/observable.csv", newline="") as file:
        return {row["rule"] for row in csv.DictReader(file) if row["checks"]}


OBSERVABLE = observable_rules()


def rules_of_line(mutant):
    """The rules that a line names, as far as a check can find them broken."""
    return OBSERVABLE & {f"{family}-{number}" for family, number in
                         re.findall(r"rule::([A-Z]{3})_(\d{3})", mutant.before)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--min", type=float, default=0, help="percent that must be found")
    parser.add_argument("--files", nargs="+", help="headers, or folders, below include/ptspec/")
    parser.add_argument("--rules", action="store_true", help="only lines that name a rule, all")
    parser.add_argument("--list", action="store_true", help="print the mutants only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        built = compile_object("oracle.cpp", ROOT / "include", scratch / "oracle.o")
        if built.returncode:
            sys.exit(built.stderr)
        mutants = list(all_mutants(scratch, options))
        total = len(mutants)
        if options.rules:
            mutants = [one for one in mutants if rules_of_line(one)]
        else:
            mutants = random.Random(options.seed).sample(mutants, min(options.count, total))
        print(f"{total} mutants, {len(mutants)} drawn")
        if options.list:
            for one in mutants:
                print(f"{one.path}:{one.line}: {one.before}  ->  {one.after}")
            return 0
        counts = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            pending = [pool.submit(judge, one, scratch, i, options.timeout)
                       for i, one in enumerate(mutants)]
            for done in concurrent.futures.as_completed(pending):
                verdict = done.result()
                counts[verdict.outcome] += 1
                mutant = verdict.mutant
                where = f"{mutant.path}:{mutant.line}: {mutant.before}  ->  {mutant.after}"
                if verdict.outcome == "survived":
                    print(f"survived  {where}", flush=True)
                if verdict.outcome == "found" and rules_of_line(mutant):
                    named = rules_of_line(mutant) & set(verdict.rules)
                    counts["named" if named else "misnamed"] += 1
                    if not named:
                        print(f"other rule {','.join(verdict.rules)}  {where}", flush=True)
                if verdict.stray:
                    counts["stray"] += 1
                    print(f"stray {verdict.stray}  {where}", flush=True)
    judged = counts["found"] + counts["survived"]
    percent = 100 * counts["found"] / judged if judged else 100
    print(f"{counts['found']} of {judged} found, {percent:.1f} %; {counts['invalid']} invalid; "
          f"rule named {counts['named']} of {counts['named'] + counts['misnamed']}; stray "
          f"{counts['stray']}")
    return 0 if percent >= options.min else 1


if __name__ == "__main__":
    sys.exit(main())
