#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Measures the speed of reading, writing and generating traces, and prints a table.

    measure.py [--quick] [--gate] [--json FOLDER] [--cxx COMPILER ...]

For each row and compiler: how many times as fast as libipt ours is (`search/none`: as reading all
bytes; `threads`: two threads as one), as the median of adjacent passes in one process, with the
minimum and the maximum; the floor that the slower compiler has to reach; and the aim. Below that:
the instructions that valgrind counts for one packet or, for a trace unit, one branch, which do not
depend on the load of the machine; the branches per second of a trace unit; the time of
engine::output for a small packet; and, without --quick, the cost of including everything.

`--gate` fails when the instructions exceed the figure reached before. Times depend on the
processor and its load. Exit status: 0 all is well, 1 a failure, 2 wrong usage.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import traces  # noqa: E402

ROOT = traces.ROOT
# With 6.3 million executed instructions the first one. xdc-unzip and xdc-avscript32 are short.
FLOW_TRACES = ["xdc-mruby", "xdc-unzip", "xdc-foo", "xdc-avscript32"]
REAL = ["xdc-mruby", "xdc-infloop", "dr-hello-dyn", "xdc-foo", "dr-hello-static-b", "xdc-unzip"]


@dataclass
class Row:
    name: str
    floor: float  # required with both compilers
    aim: float
    reached: float = 0  # of instructions: the limit of the gate


ROWS = [
    Row("next/real", 4, 6),
    Row("next/cyc", 3, 5),
    Row("next/user", 3, 4.5),
    Row("next/all", 2.3, 3),
    Row("for_each/real", 4.5, 7),
    Row("for_each/cyc", 3.5, 5),
    Row("scan/real", 12, 20),
    Row("search/none", 0.9, 0.97),
    Row("search/all_02", 1, 2),
    Row("search/near_miss", 1, 1.5),
    Row("threads/real", 1.8, 1.95),
    Row("threads/additions", 0, 0),  # the machine's speed-up for two threads without shared data
    Row("write/real", 2.2, 2.6),
    Row("write/cyc", 1.4, 1.6),
    Row("write/all", 2, 4),
]
EVENTS = [  # with recorded traces only
    Row("binder/real", 3, 8),
    Row("events/real", 4, 10),
    Row("events/cyc", 4, 10),
    Row("times/real", 4, 10),
    Row("times/cyc", 3, 8),
]
FLOW_WAYS = [  # with recorded traces only: beside libipt's instruction decoder the first one,
    # beside its block decoder the others
    Row("flow/instructions", 14, 60),
    Row("flow/blocks", 5, 10),
    Row("flow/coverage_cold", 3, 10),
    Row("flow/coverage", 12, 40),
    Row("flow/coverage_next", 7, 20),
]
FLOW = [Row(f"{row.name}/{trace}", row.floor, row.aim)
        for row in FLOW_WAYS for trace in FLOW_TRACES] + [Row("flow/threads", 1.8, 1.95)]
INSTRUCTIONS = [  # per packet, branch or executed instruction: at most the floor
    Row("next/real", 32, 24, 30),
    Row("next/cyc", 0, 0, 54),
    Row("next/user", 0, 0, 47),
    Row("next/all", 0, 0, 77),
    Row("for_each/real", 22, 16, 22),
    Row("for_each/cyc", 0, 0, 47),
    Row("scan/real", 6, 3, 6.2),
    Row("write/real", 80, 40, 31),
    Row("write/cyc", 0, 0, 31),
    Row("write/all", 0, 0, 31),
    Row("binder/real", 0, 0, 32),
    Row("events/real", 0, 0, 51),
    Row("events/cyc", 0, 0, 49),
    Row("times/real", 0, 0, 66),
    Row("times/cyc", 0, 0, 97),
    Row("flow/instructions/xdc-mruby", 0, 0, 20),
    Row("flow/blocks/xdc-mruby", 0, 0, 8.8),
    Row("flow/coverage_cold/xdc-mruby", 0, 0, 5.6),
    Row("flow/coverage/xdc-mruby", 0, 0, 1.8),
    Row("flow/coverage_next/xdc-mruby", 0, 0, 6.6),
    Row("flow/coverage_next/xdc-foo", 0, 0, 43),
    Row("unit/branches", 110, 60, 64),
    Row("unit/branches/skylake", 110, 60, 75),
    Row("unit/ranges", 110, 60, 64),
    Row("unit/cyc", 300, 150, 222),
    Row("unit/cyc/skylake", 300, 150, 250),
]
BRANCHES = [  # millions per second: at least the floor
    Row("unit/branches", 60, 150),
    Row("unit/branches/skylake", 50, 120),
    Row("unit/ranges", 60, 150),
    Row("unit/cyc", 20, 60),
    Row("unit/cyc/skylake", 17, 50),
]
SOURCES = [ROOT / "tests" / "bench" / f"{name}.cpp"
           for name in ("read", "events", "flow", "unit", "write", "output", "their_summary")]
SOURCES.insert(0, ROOT / "examples/tools/pt_dump/pt_dump.cpp")  # the longest build first
# Normally, and with --quick. For flow the number of passes.
MEGABYTES = {"read": ["64", "4"], "write": ["1", "1"], "events": ["16", "2"], "flow": ["5", "1"]}


def real_trace():
    """The recorded traces, concatenated; None if they are missing."""
    parts = [traces.read(traces.folder() / f"{name}.pt") for name in REAL]
    return b"".join(parts) if all(parts) else None


def write_flow_traces(folder):
    """The traces of flow, and their code in the order of the addresses."""
    for name in FLOW_TRACES:
        (folder / f"{name}.pt").write_bytes(traces.read(traces.folder() / f"{name}.pt"))
        memory = traces.read(traces.folder() / f"{name}.mem")
        lines = (traces.folder() / f"{name}.addr").read_text().splitlines()
        pages = sorted((int(line, 16), page) for page, line in enumerate(lines)
                       if "unmapped" not in line)
        (folder / f"{name}.mem").write_bytes(
            b"".join(memory[page * 4096:(page + 1) * 4096] for _, page in pages))
        (folder / f"{name}.addr").write_text("".join(f"{address:#x}\n" for address, _ in pages))


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True)


def counted_rows(program):
    """The rows whose instructions a program counts."""
    ways = {"read": ("next", "for_each", "scan"),
            "events": ("binder", "events", "times")}.get(program, (program,))
    return [row.name for row in INSTRUCTIONS if row.name.partition("/")[0] in ways]


def build(pool, compilers, folder, only_counted):
    """{compiler: {source: program}}, built in parallel"""
    sources = [path for path in SOURCES if counted_rows(path.stem) or not only_counted]
    programs = {cxx: {path.stem: folder / f"{path.stem}-{cxx}" for path in sources}
                for cxx in compilers}
    for done in [pool.submit(run, [cxx, "-std=c++20", "-O2", f"-I{ROOT}/include", f"-I{ROOT}/tests",
                                   str(path), "-o", str(programs[cxx][path.stem]), "-lbenchmark",
                                   "-lipt", "-lpthread"])
                 for path in sources for cxx in compilers]:
        done.result()
    return programs


def ratios(programs, inputs, quick, kept):
    """{row: counters}, from Google Benchmark's JSON."""
    wanted = "|".join(f"^{row.name}/" for row in ROWS + EVENTS + FLOW)
    found = {}
    for name in MEGABYTES:
        if name not in inputs:
            continue  # no recorded traces
        program = programs[name]
        out = kept / f"{program.name}.json"
        run([str(program), *inputs[name], "--mega", MEGABYTES[name][int(quick)],
             f"--benchmark_min_time={0.2 if quick else 5}", f"--benchmark_filter={wanted}",
             f"--benchmark_out={out}", "--benchmark_out_format=json"])
        for row in json.loads(out.read_text())["benchmarks"]:
            if row.get("error_occurred"):
                raise SystemExit(f"{row['name']}: {row['error_message']}")
            found[re.sub("(/iterations:.*)?/manual_time$", "", row["name"])] = row
    return found


def branches(program, quick):
    """{row: millions per second}, from Google Benchmark's JSON."""
    ran = run([str(program), f"--benchmark_min_time={0.2 if quick else 2}",
               "--benchmark_format=json"])
    return {row["name"]: row["items_per_second"] / 1e6
            for row in json.loads(ran.stdout)["benchmarks"]}


def instructions(program, inputs, rows):
    """{row: instructions per packet, branch or executed instruction}, of one pass each."""
    with tempfile.TemporaryDirectory() as folder:
        ran = run(["valgrind", "--tool=callgrind", "--instr-atstart=no",
                   f"--callgrind-out-file={folder}/counts", str(program), *inputs, "--mega", "1",
                   *[word for row in rows for word in ("--count", row)]])
        packets = dict(line.split() for line in ran.stdout.splitlines())
        # One dump for each row, with its name, and one at the end of the program.
        dumps = [path.read_text() for path in pathlib.Path(folder).glob("counts.*")]
        return {row: int(re.search(r"^totals: (\d+)$", dump, re.M)[1]) / int(packets[row])
                for row in rows
                for dump in dumps if f"desc: Trigger: Client Request: {row}\n" in dump}


def once(command):
    """The output of a program, its run time in seconds, and its peak memory in megabytes."""
    with tempfile.TemporaryFile("w+") as out:
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        if status != 0:
            raise SystemExit(f"{command[0]}: exit status {os.waitstatus_to_exitcode(status)}")
        out.seek(0)
        return out.read(), seconds, usage.ru_maxrss / 1024


def summaries(compiler, programs, folder, trace, megabytes):
    """Compares `pt_dump --summary` with the same over libipt; true if it is faster and small."""
    big = folder / "big.pt"
    with open(big, "wb") as out:
        for _ in range(-(-megabytes * 1_000_000 // len(trace))):
            out.write(trace)
    ratios_seen, seconds, memory = [], [], 0
    for _ in range(3):
        our_text, our_seconds, our_memory = once([programs["pt_dump"], "--summary", big])
        their_text, their_seconds, _ = once([programs["their_summary"], big])
        if our_text != their_text:
            raise SystemExit("pt_dump --summary and the same over libipt print different things")
        ratios_seen.append(their_seconds / our_seconds)
        seconds.append(our_seconds)
        memory = max(memory, our_memory)
    big.unlink()
    ratio = statistics.median(ratios_seen)
    print(f"pt_dump --summary of {megabytes} MB, {compiler}: {statistics.median(seconds):.2f} s, "
          f"{ratio:.2f} times as fast as over libipt; {memory:.1f} MB of memory")
    return ratio > 1 and memory < 64


def print_times(programs, inputs, quick, kept, folder, real):
    """Returns what became slower."""
    found = {cxx: ratios(built, inputs, quick, kept)
             for cxx, built in programs.items()}
    print("times as fast as libipt".ljust(32) +
          "".join(f"{cxx + ' (min .. max)':>28}" for cxx in programs) + "   floor   aim")
    for row in ROWS + (EVENTS + FLOW if real else []):
        line = row.name.ljust(32)
        for cxx in programs:
            got = found[cxx][row.name]
            line += f"{got['ratio']:10.2f} ({got['min']:.2f} .. {got['max']:.2f})".rjust(28)
        print(f"{line}{row.floor:8g}{row.aim:6g}" if row.floor else line)
    print("millions a second".ljust(32) + "".join(f"{cxx:>28}" for cxx in programs))
    taken = {cxx: branches(built["unit"], quick) for cxx, built in programs.items()}
    for row in BRANCHES:
        figures = "".join(f"{taken[cxx][row.name]:28.1f}" for cxx in programs)
        print(f"{row.name:32}{figures}{row.floor:8g}{row.aim:6g}")
    print("engine::output, nanoseconds; floor 1.5, aim 0.8 for 2 bytes")
    for cxx, built in programs.items():
        for line in run([str(built["output"]), "--small"]).stdout.splitlines():
            print(f"{cxx:>12}: {line}")
    if not quick:
        print("including everything, beside <string_view>; floor 1.6, aim 1 of instructions",
              flush=True)
        subprocess.run([sys.executable, ROOT / "tests/checks/include_time.py", *programs],
                       check=True)
    return [f"pt_dump --summary with {cxx}" for cxx, built in programs.items()
            if real and not summaries(cxx, built, folder, real, 30 if quick else 1000)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller traces, fewer passes")
    parser.add_argument("--gate", action="store_true", help="fail where something became slower")
    parser.add_argument("--count", action="store_true", help="count instructions, and time nothing")
    parser.add_argument("--json", type=pathlib.Path, help="keep Google Benchmark's output here")
    parser.add_argument("--cxx", nargs="+", default=["g++", "clang++-19"], metavar="COMPILER")
    options = parser.parse_args()
    slower = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kept = options.json or folder
        kept.mkdir(parents=True, exist_ok=True)
        inputs = {"read": [], "write": []}
        real = real_trace()
        if real is None:
            print(f"no traces at {traces.folder()}: what is called real is made")
        else:
            (folder / "real.pt").write_bytes(real)
            (folder / "cyc.pt").write_bytes(traces.read(traces.folder() / "dr-hello-dyn.pt"))
            write_flow_traces(folder)
            both = ["--real", str(folder / "real.pt"), "--cyc", str(folder / "cyc.pt")]
            inputs = {"read": both, "write": both, "events": both,
                      "flow": [str(folder), *FLOW_TRACES]}
        # Builds and instruction counts run in parallel, before anything is timed.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            programs = build(pool, options.cxx, folder, options.count)
            counting = {cxx: [pool.submit(instructions, program, inputs.get(name, []),
                                          counted_rows(name))
                              for name, program in built.items()
                              if counted_rows(name) and (name in inputs or name == "unit")]
                        for cxx, built in programs.items()}
        counts = {cxx: {row: count for done in all_done for row, count in done.result().items()}
                  for cxx, all_done in counting.items()}
        print("instructions a packet".ljust(32) + "".join(f"{cxx:>28}" for cxx in programs))
        for row in INSTRUCTIONS:
            if any(row.name not in counts[cxx] for cxx in programs):
                continue  # no recorded traces
            figures = "".join(f"{counts[cxx][row.name]:28.1f}" for cxx in programs)
            print(f"{row.name:32}{figures}" +
                  (f"{row.floor:8g}{row.aim:6g}" if row.floor else ""))
            slower += [f"{row.name} with {cxx}: {counts[cxx][row.name]:.1f} instructions, more "
                       f"than {row.reached}"
                       for cxx in programs if real and counts[cxx][row.name] > row.reached]
        if not options.count:
            slower += print_times(programs, inputs, options.quick, kept, folder, real)
    if options.gate and slower:
        print("slower than before:", *slower, sep="\n  ")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
