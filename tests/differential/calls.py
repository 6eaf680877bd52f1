#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compares the calls that the tools find with those that the emulator's log of each instruction
shows.

    calls.py FOLDER [--tools PATH...] [--few] [--seeds N] [--only REGEX] [--jobs N] [--keep]
             [--verbose]
    calls.py --self-test

FOLDER gets the programs of programs/calls, N of random_calls.py (20), and their recordings. PATH is
the directory of pt_record, its plugin, pt_flow, pt_dump and timeline, or one of them; `tests/run
--build pt_record pt_flow pt_dump timeline` puts them into build/bin. `--few` checks one program of
each kind, `--only` those whose name and flags match. `--self-test` compares what executed_log.py
knows of instructions with objdump.

pt_record runs each program in QEMU, which logs in the same run RIP and RSP of each instruction.
From these and from symbols executed_calls.py makes the truth. No code of ptspec has a part in it.

For each thread is compared:
  leaf    pt_flow --folded: how many instructions each function has executed; the sum is that of the
          log
  caller  pt_flow --folded: the instructions of each function and its caller
  stack   pt_flow --folded: the instructions of each stack of functions. Of a program with several
          stacks in a thread, those of the functions on the same stack, whatever stands before them;
          outer functions may be missing there, because they were not seen
  depth   the deepest stack, which has at most the functions of two stacks, or those of stacks that
          were entered from each other
  calls   pt_flow --calls: the functions in the order of their calls, their depth, the instructions
          of each call, what is a tail call; up to where the log is not certain, as at a switch
  bars    pt_dump --chrome-trace --calls: function and instructions of each call
  page    the same of timeline --calls; not where a page has no room for each call
The numbers in the table are those of wrong instructions, lines or bars; `-` is not compared. `~`
marks what is no failure.

Exit status: 0 all equal, 1 a difference, 77 something is not installed.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "differential"), str(ROOT / "tests" / "support")]
import executed_calls  # noqa: E402
import executed_log  # noqa: E402
import random_calls  # noqa: E402
import timeline_page  # noqa: E402
from executed_log import plain  # noqa: E402

PROGRAMS = ROOT / "tests" / "differential" / "programs" / "calls"
OPTIONS = [[], ["--ctl", "noretcomp"], ["--ctl", "tsc,mtc=3,cyc"], ["--ctl", "psb=2K"]]
CLANG = next((name for name in ("clang-19", "clang") if shutil.which(name)), None)
SECONDS = 240  # of one command

# How programs are built: compiler and flags. A word that begins with `lib:` also builds the library
# of the program, with the rest as flags.
USUAL = ["gcc -O0 -static", "gcc -O2 -static", "clang -O1 -static", "gcc -O3"]
RANDOM_BUILDS = ["gcc -O0 -static", "gcc -O2 -static", "clang -O1 -static", "gcc -O3 -static"]
LOW = ["gcc -O0 -static", "gcc -O1 -static", "clang -O2 -static"]
# With the index of the unwinder, which a static program that is no PIE does not have.
UNWOUND = ["gcc -O0 -static-pie", "gcc -O2 -static-pie", "clang -O1 -static-pie"]
MOST = [*UNWOUND, "clang -O3 -static"]
BUILDS = {
    "deep_recursion": LOW[1:2],
    "plain_calls": [*USUAL, "gcc -O2 -static -fcf-protection=full"],
    "tail_by_pointer": [*USUAL, "gcc -O2 -fcf-protection=full -Wl,-z,ibtplt"],
    "mutual_tail_recursion": [*USUAL, "clang -O3 -static -fno-omit-frame-pointer"],
    "cold_parts": [*USUAL, "gcc -Os -static", "gcc -O2 -static -ffunction-sections"],
    "part_functions": [*USUAL, "gcc -O3 -static"],
    "plt_calls": ["gcc -O0 -Wl,-z,lazy", "gcc -O2 -Wl,-z,lazy", "gcc -O2 -Wl,-z,now",
                  "gcc -O2 -fno-plt", "gcc -O2 -fcf-protection=full -Wl,-z,lazy",
                  "gcc -O1 -no-pie -Wl,-z,lazy", "clang -O2 -Wl,-z,lazy"],
    "indirect_function": ["gcc -O0 -static", "gcc -O2 -static", "gcc -O2 -Wl,-z,lazy",
                          "gcc -O2 -no-pie"],
    "indirect_thunks": ["gcc -O2 -static -mindirect-branch=thunk",
                        "gcc -O0 -static -mindirect-branch=thunk -fcf-protection=none",
                        "gcc -O2 -static -mfunction-return=thunk",
                        "gcc -O2 -static -mindirect-branch=thunk -mfunction-return=thunk",
                        "gcc -O2 -static -mindirect-branch=thunk-inline",
                        "clang -O2 -static -mretpoline", "gcc -O2 -static"],
    "nested_functions": ["gcc -O0 -static", "gcc -O2 -static"],
    "split_stacks": ["gcc -O0 -static -fsplit-stack", "gcc -O2 -static -fsplit-stack"],
    "threads": ["gcc -O0", "gcc -O2"],
    "threads_cancelled": ["gcc -O2"],
    "goroutines": ["go"],
    **{name: MOST for name in ("coroutines", "virtual_calls", "closures")},
    **{name: UNWOUND for name in ("exceptions_near", "exceptions_deep", "exceptions_rethrown",
                                  "exceptions_destructors", "generators")},
    "child_exec": LOW[1:2],
    "child_fork": LOW[1:2],
}
# One of each kind, for --few: (program, which of its builds).
FEW = [("plain_calls", 1), ("sibling_calls", 1), ("tail_conditional", 0), ("jump_into_middle", 1),
       ("fall_through", 1), ("cold_parts", 1), ("indirect_thunks", 0), ("longjmp_deep", 1),
       ("exceptions_deep", 1), ("signals_alternate_stack", 1), ("fibers_ucontext", 1),
       ("fibers_jump", 1), ("generators_setjmp", 1), ("coroutines", 1)]
RANDOM = "random_"  # and a seed
# What a log of two processes in one file shows: leaves alone.
FORKS = ("child_fork", "child_exec")
# The runtime interrupts threads by signals; there are no faults.
PREEMPTED = ("goroutines",)


def run(command, **how):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          errors="replace", timeout=SECONDS, check=False, **how)


def built(source, flags, folder):
    """Builds a program. Returns its path, or why it was not built."""
    compiler, *words = flags.split()
    program = folder / source.stem
    if source.suffix == ".go":
        if shutil.which("go") is None:
            return None, "go is not installed"
        cache = folder.parent / "gocache"
        command = ["go", "build", "-o", program, source]
        done = run(command, env=os.environ | {"GOCACHE": str(cache), "GO111MODULE": "off"})
        return (program, "") if done.returncode == 0 else (None, done.stderr)
    is_cpp = source.suffix == ".cpp"
    if compiler == "clang":
        if CLANG is None:
            return None, "clang is not installed"
        compiler = CLANG.replace("clang", "clang++") if is_cpp else CLANG
    elif is_cpp:
        compiler = "g++"
    words += ["-std=c++20"] if is_cpp else []
    words += ["-pthread", "-w", f"-I{PROGRAMS}"]
    libraries = []
    library = source.with_name(source.stem.replace("_calls", "_library") + ".c")
    if source.stem == "plt_calls":
        made = folder / "libcalled.so"
        shared = [word for word in words if word not in ("-no-pie", "-static")]
        done = run([compiler, *shared, "-fPIC", "-shared", library, "-o", made])
        if done.returncode != 0:
            return None, done.stderr
        libraries = [made, f"-Wl,-rpath,{folder}"]
    if source.stem == "threads_cancelled" or source.stem == "threads":
        libraries = ["-Wl,--no-as-needed", "-lgcc_s"]  # else it is loaded at the end of a thread
    done = run([compiler, *words, source, *libraries, "-o", program])
    return (program, "") if done.returncode == 0 else (None, done.stderr)


class Names:
    """The class of each printed name: names of the same function share one."""

    def __init__(self, image):
        self.image = image

    def __call__(self, name):
        name = re.sub(r" \[tail of .*\]$", "", name)
        name = plain(name)
        place = re.fullmatch(r"(.*)\+0x[0-9a-f]+", name)
        if place and place[1] in self.image.classes:
            name = place[1]
        if name in self.image.classes:
            return self.image.name_class(name)
        base = executed_log.COLD.sub("", name)
        if base != name and base in self.image.classes:
            return self.image.name_class(base)
        if re.fullmatch(r"0x[0-9a-f]+|.*\+0x[0-9a-f]+|\[.*\]", name):
            return "?"
        return name


def folded_of(text, names):
    """{thread: {stack: instructions}} of pt_flow --folded."""
    found, thread = {}, None
    for line in text.splitlines():
        title = re.fullmatch(r"thread (\d+)/(\d+)", line)
        if title:
            thread = found.setdefault(int(title[2]), collections.Counter())
            continue
        if thread is None or re.fullmatch(r"tid \d+", line):
            continue
        stack, count = line.rsplit(" ", 1)
        thread[tuple(map(names, stack.split(";")))] += int(count)
    return found


LINE = re.compile(r"^ *(\d*) \| ( *)(.*)$")
CALL = re.compile(r"^(.*?)\(\)( \{|;)(?: /\* ?(.*?) ?\*/)?$")


def calls_of(text, names):
    """{thread: [[depth, function, instructions or None, is tail]]} of pt_flow --calls."""
    found, lines, is_open = {}, None, []
    for line in text.splitlines():
        title = re.fullmatch(r"thread (\d+)/(\d+)", line)
        if title:
            lines = found.setdefault(int(title[2]), [])
            is_open = []
            continue
        parts = LINE.match(line)
        if parts is None:
            continue
        depth, count, what = len(parts[2]) // 2, parts[1], parts[3]
        call = CALL.match(what)
        if call:
            is_tail = "tail of" in what
            made = [depth, names(call[1]), int(count) if count else None, is_tail]
            lines.append(made)
            is_open = [one for one in is_open if one[0] < depth] if depth < 60 else is_open
            if call[2] != ";":
                is_open.append(made)
        elif what.startswith("}") and is_open:
            while depth < 60 and is_open and is_open[-1][0] > depth:
                is_open.pop()
            if is_open and is_open[-1][0] == depth:
                is_open.pop()[2] = int(count) if count else None
    return found


def suffixes(stacks):
    """{end of a stack: instructions of all stacks that have it}."""
    found = collections.Counter()
    for stack, count in stacks.items():
        for i in range(len(stack)):
            found[stack[i:]] += count
    return found


def shown(stack, most=9):
    stack = list(stack)
    return ";".join(["..."] * (len(stack) > most) + stack[-most:])


def line_text(depth, name, count, is_tail):
    return (name + ("" if count is None else f" {count}") + f" depth {depth}" +
            (" tail" if is_tail else ""))


class Comparison:
    """The differences of a thread: counts, and the first of each kind."""

    def __init__(self):
        self.wrong = {"leaf": 0, "caller": 0, "stack": 0, "depth": 0, "calls": None, "bars": None,
                      "page": None}
        self.first = {}
        self.has_switches = False

    def fails(self, kind):
        return bool(self.wrong[kind]) and not (kind == "stack" and self.has_switches)

    def cell(self, kind):
        count = self.wrong[kind]
        return "-" if count is None else f"{count}{'~' if count and not self.fails(kind) else ''}"

    def note(self, kind, count, text):
        if count:
            self.wrong[kind] = (self.wrong[kind] or 0) + count
            self.first.setdefault(kind, text)

    def leaves(self, truth, stacks):
        """`truth` and the sums of stacks: {leaf: instructions}."""
        got = collections.Counter()
        for stack, count in stacks.items():
            got[stack[-1]] += count
        names = sorted(set(truth) | set(got), key=lambda name: -abs(truth[name] - got[name]))
        wrong = sum(abs(truth[name] - got[name]) for name in names)
        total = abs(sum(truth.values()) - sum(got.values()))
        if wrong:
            text = ", ".join(f"{name} {got[name]} not {truth[name]}" for name in names[:4]
                             if truth[name] != got[name])
            self.note("leaf", (wrong + total) // 2, text)

    def stacks(self, exact, doubt, got, is_one):
        """Compares stacks, with the instructions whose callers are not certain for each leaf."""
        if not is_one:
            got, exact = suffixes(got), {key: count for key, count in suffixes(exact).items()
                                         if key in exact}
        wrong, worst, text = 0, 0, ""
        for stack, count in exact.items():
            off = max(count - got[stack], got[stack] - count - doubt[stack[-1]], 0)
            wrong += off
            if off > worst:
                worst, text = off, f"{shown(stack)} {got[stack]} not {count}"
        if is_one:
            for stack, count in got.items():
                if stack not in exact and count > doubt[stack[-1]]:
                    wrong += count
                    if count > worst:
                        worst, text = count, f"{shown(stack)} {count} not 0"
        self.note("stack", wrong, text)

    def callers(self, exact, doubt, got):
        """Compares the last two functions of stacks. What calls the first function of a stack is
        not compared."""
        wanted, found, first = (collections.Counter() for _ in range(3))
        for stack, count in exact.items():
            if len(stack) > 1:
                wanted[stack[-2:]] += count
            else:
                first[stack] += count
        for stack, count in got.items():
            found[stack[-2:]] += count
        wrong, worst, text = 0, 0, ""
        for pair in set(wanted) | set(found):
            if len(pair) == 1:
                continue
            slack = doubt[pair[-1]]
            lost = wanted[pair] - found[pair] - slack
            extra = found[pair] - wanted[pair] - slack - first[pair[-1:]]
            off = max(lost, extra, 0)
            wrong += off
            if off > worst:
                worst, text = off, f"{shown(pair)} {found[pair]} not {wanted[pair]}"
        self.note("caller", wrong, text)

    def depths(self, deepest, nested, got, is_one):
        most = max(map(len, got), default=0)
        limit = deepest + 2 if is_one else max(2 * deepest + 8, nested + 2)
        if most > limit:
            self.note("depth", most, f"{most} frames, not {deepest}")

    def tree(self, truth, got):
        """Lines of calls: the first that differs, and how many follow it."""
        self.wrong["calls"] = 0
        if truth and got and truth[0][1] != got[0][1]:
            truth = [(line[0] - 1, *line[1:]) for line in truth[1:]]
        if got and truth:
            base = got[0][0] - truth[0][0]
        for i, line in enumerate(truth):
            depth, name, count, is_tail = line
            if i >= len(got):
                return self.note("calls", len(truth) - i, f"no line {i + 1}: {name}")
            one = got[i]
            is_same = (min(depth + base, 60) == one[0] and name == one[1] and
                       is_tail in (None, one[3]) and (None in (count, one[2]) or count == one[2]))
            if not is_same:
                wanted = (depth + base, *line[1:])
                return self.note("calls", len(truth) - i, f"line {i + 1}: {line_text(*one)}, "
                                 f"not {line_text(*wanted)}")

    def bars(self, kind, truth, got):
        self.wrong[kind] = self.wrong[kind] or 0
        missing = truth - got
        self.note(kind, sum(missing.values()),
                  ", ".join(f"{name} {count}: {got[name, count]} not {truth[name, count]}"
                            for name, count in list(missing)[:3]))


def bars_of(text, names):
    """{thread: {(function, instructions): number}} of the trace event format."""
    events = json.loads(text)
    events = events["traceEvents"] if isinstance(events, dict) else events
    threads, found = {}, {}
    for one in events:
        if one["ph"] == "M" and one["name"] == "process_name":
            thread = re.search(r"tid (\d+)", one["args"]["name"])
            if thread:
                threads[one["pid"]] = int(thread[1])
        if one["ph"] == "X" and "instructions" in one.get("args", {}):
            of = found.setdefault(threads.get(one["pid"], one["pid"]), collections.Counter())
            of[names(one["name"]), one["args"]["instructions"]] += one["args"].get("calls", 1)
    return found


def page_bars_of(text, names):
    """The same of a page of timeline; None: calls are merged."""
    page = timeline_page.data_of(text)
    found = {}
    for i, stream in enumerate(page["streams"]):
        if stream["calls"]["resolution"] != 0 or stream["calls"]["left_out"] != 0:
            return None
        for label, bars in timeline_page.calls_of(page, i).items():
            found.setdefault(int(label.split("/")[1]), collections.Counter()).update(
                (names(one["name"]), one["instructions"]) for one in bars)
    return found


def mapped_files(raw):
    """{process: {path: address of the first byte of the file}}, and which process forked which."""
    found = {}
    parents = {}
    for path in raw.glob("*.events"):
        for line in path.read_text().splitlines():
            words = line.split(None, 8)
            if words[1] == "map":
                of = found.setdefault(int(words[2]), {})
                if not os.path.isfile(words[8]):
                    continue  # memory
                base = int(words[3], 16) - int(words[5], 16)
                of[words[8]] = min(base, of.get(words[8], base))
            elif words[1] == "fork" and words[2] != words[3]:
                parents[int(words[3])] = int(words[2])
    return found, parents


def check(job):
    """Records a program and compares. Returns (title, lines of differences, figures)."""
    name, flags, options, folder, tools, keep = job
    started = time.monotonic()
    title = " ".join([name, flags.replace(" -static", "").replace("-fcf-protection", "-fcf"),
                      *options[1:]])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if name.startswith(RANDOM):
        source = folder / f"{name}.c"
        source.write_text(random_calls.program(int(name.removeprefix(RANDOM))))
    else:
        source = next(path for path in sorted(PROGRAMS.glob(f"{name}.*")) if path.suffix != ".h")
    program, why = built(source, flags, folder)
    if program is None:
        return title, None, why.strip()[-300:], 0
    raw, data = folder / "raw", folder / "perf.data"
    try:
        done = run([tools / "pt_record", "-o", data, "--raw", raw, *options, program],
                   env=os.environ | executed_log.environment(folder / "log") |
                   {"GOMAXPROCS": "1"})  # else threads of Go that wait fill the log
        if done.returncode != 0:
            return title, None, f"status {done.returncode}: {done.stderr.strip()[-300:]}", 0
        result = compare(name, folder, raw, data, tools)
    except subprocess.TimeoutExpired:
        return title, None, f"more than {SECONDS} s", 0
    except Exception:  # of one recording; the others are compared
        return title, None, traceback.format_exc().strip()[-300:], 0
    finally:
        for log in folder.glob("log.*"):
            if not keep:
                log.unlink()
    if not keep:
        shutil.rmtree(folder)
    return title, *result, time.monotonic() - started


def ended(image, executed, count):
    """Of a thread that another one ended while it executed, the trace lacks what it executed while
    the process ended."""
    single = sum(1 for i, (rip, _) in enumerate(executed[:-1])
                 if executed[i + 1][0] != rip or image.kind(rip).what != "repeated") + 1
    if executed and 0 < single - count < 5000 and image.kind(executed[-1][0]).what != "system":
        return executed[:len(executed) - (single - count)]
    return executed


def compare(name, folder, raw, data, tools):
    """Returns the comparison, and the number of instructions, of stacks and of doubts."""
    mapped, _ = mapped_files(raw)
    main = min(mapped)
    image = executed_log.Image(mapped[main])
    names = Names(image)

    def classed(counts):
        made = collections.Counter()
        for key, count in counts.items():
            made[tuple(map(image.name, key)) if isinstance(key, tuple)
                 else image.name(key)] += count
        return made

    folded = folded_of(run([tools / "pt_flow", "--folded", raw]).stdout, names)
    logs = sorted(folder.glob("log.*"), key=lambda path: int(path.suffix[1:]))
    found = Comparison()
    total, doubts, switches = 0, 0, 0
    if name in FORKS:
        leaves = collections.Counter()
        for log in logs:
            last = None
            for rip, _ in executed_log.executed(log):
                leaves[image.function(rip)] += rip != last or image.kind(rip).what != "repeated"
                last = rip
        stacks = collections.Counter()
        for one in folded.values():
            stacks.update(one)
        found.leaves(classed(leaves), stacks)
        found.wrong |= {"caller": None, "stack": None, "depth": None}
        return found, f"{sum(leaves.values())}"
    lines = calls_of(run([tools / "pt_flow", "--calls", raw]).stdout, names)
    bars = bars_of(run([tools / "pt_dump", "--chrome-trace", "--calls", data]).stdout, names)
    page_bars = page_bars_of(run([tools / "timeline", "--calls", "-o", "-", data]).stdout, names)
    stacks = []
    for log in logs[1:] + logs[:1]:  # what threads have left, main() may continue
        thread = int(log.suffix[1:])
        got = folded.get(thread, collections.Counter())
        executed = ended(image, executed_log.executed(log), sum(got.values()))
        truth = executed_calls.Calls(image, stacks, name not in PREEMPTED).run(executed)
        if truth.count == 0:
            continue
        total += truth.count
        doubts += sum(truth.doubt.values())
        switches += truth.switches
        found.leaves(classed(truth.leaves), got)
        is_one = truth.switches == 0
        found.has_switches = found.has_switches or not is_one
        exact, doubt = classed(truth.exact), classed(truth.doubt)
        found.callers(exact, doubt, got)
        found.stacks(exact, doubt, got, is_one)
        found.depths(truth.deepest, truth.deepest_nested, got, is_one)
        certain = truth.lines if truth.certain is None else truth.certain
        certain = [(line[0], image.name(line[1]), line[2], line[4])
                   for line in certain]
        if len(certain) > 1:
            found.tree(certain, lines.get(thread, []))
        # A lane of bars has up to 255 levels.
        closed = collections.Counter((one[1], one[2]) for one in certain
                                     if one[2] is not None and one[0] < 250)
        if name != "nested_functions":  # perf.data has no code of the stack
            found.bars("bars", closed, bars.get(thread, collections.Counter()))
            if page_bars is not None:
                found.bars("page", closed, page_bars.get(thread, collections.Counter()))
    return found, f"{total}" + (f", {switches} switches" if switches else "") + (
        f", {doubts} in doubt" if doubts else "")


def self_test():
    """The kinds of instructions and the lengths of branches, against objdump."""
    if shutil.which("objdump") is None:
        print("skipped: objdump (Debian: binutils) is missing")
        return 77
    kinds = {"call": "call", "jmp": "jump", "ret": "return", "syscall": "system"}
    line = re.compile(r"^ +([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(.*)$")
    prefixes = {"bnd", "notrack", "repz", "repnz", "rep", "data16", "cs", "ds", "addr32", "rex.W"}
    seen, wrong = collections.Counter(), 0
    library = run([os.environ.get("CXX", "g++").split()[0],
                   "-print-file-name=libc.so.6"]).stdout.strip()
    for row in run(["objdump", "-d", "-w", "--insn-width=16", library]).stdout.splitlines():
        parts = line.match(row)
        words = parts[3].split() if parts else []
        text = [word for word in words if word not in prefixes]
        if not text or "(bad)" in row:
            continue
        code = bytes.fromhex(parts[2])
        kind = executed_log.kind_of(code)
        name = text[0].removesuffix(",pt").removesuffix(",pn")
        wanted = kinds.get(name, "conditional" if name[0] == "j" or name.startswith("loop")
                           else "other")
        operands = text[1] if len(text) > 1 else ""
        if wanted == "other" and words[0] in ("rep", "repz", "repnz") and re.match(
                r"(movs|stos|cmps|scas|lods)[bwlq]?$", name):
            wanted = "repeated"
        to_rsp = operands.endswith("%rsp") and "," in operands
        if name in ("mov", "xchg") and (to_rsp or name == "xchg" and "%rsp" == operands.split(
                ",")[0]) or name == "pop" and operands == "%rsp" or (
                    name == "lea" and to_rsp and "(%rsp" not in operands):
            wanted = "loads"
        good = kind.what == wanted
        if good and wanted in ("call", "jump", "conditional", "return", "system"):
            good = kind.length == len(code)
            target = re.fullmatch(r"[0-9a-f]+", operands)
            if target and kind.target is not None:
                good = good and int(parts[1], 16) + len(code) + kind.target == int(operands, 16)
        seen[wanted] += 1
        if not good and wrong < 10:
            print(f"{row.strip()}: {kind}, not {wanted}")
        wrong += not good
    print(", ".join(f"{count} {name}" for name, count in sorted(seen.items())) +
          f": {wrong} wrong")
    return 1 if wrong or len(seen) < 7 else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--tools", type=pathlib.Path, nargs="+",
                        default=[pathlib.Path(os.environ.get("PTSPEC_BUILD_DIR", ROOT / "build"),
                                              "bin")])
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--seeds", type=int, help="random programs")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", action="store_true", help="keep recordings and logs")
    parser.add_argument("--verbose", action="store_true", help="print the first differences")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.folder is None:
        parser.error("FOLDER is missing")
    tools = options.tools[0].resolve()
    tools = tools if tools.is_dir() else tools.parent
    if shutil.which("qemu-x86_64") is None or not (tools / "pt_record_qemu.so").exists():
        print("skipped: qemu-x86_64 (Debian: qemu-user), or the plugin of pt_record, is missing")
        return 77
    names = sorted({path.stem for path in PROGRAMS.iterdir() if path.suffix != ".h"} -
                   {"plt_library"})
    wanted = [(name, flags) for name in names for flags in BUILDS.get(name, USUAL)]
    if options.few:
        wanted = [(name, BUILDS.get(name, USUAL)[which]) for name, which in FEW]
    seeds = options.seeds if options.seeds is not None else 1 if options.few else 20
    wanted += [(f"{RANDOM}{seed}", RANDOM_BUILDS[seed % len(RANDOM_BUILDS)])
               for seed in range(1, seeds + 1)]
    wanted = [one for one in wanted if re.search(options.only, " ".join(one))]
    folder = options.folder.resolve()
    jobs = [(name, flags, OPTIONS[i % len(OPTIONS)], folder / f"{i}_{name}", tools, options.keep)
            for i, (name, flags) in enumerate(wanted)]
    kinds = ("leaf", "caller", "stack", "depth", "calls", "bars", "page")
    print(f"{'program':62}" + "".join(f"{kind:>8}" for kind in kinds) + "  instructions")
    failed = skipped = 0
    sums = collections.Counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for title, found, about, took in pool.map(check, jobs):
            if found is None:
                missing = about.endswith("is not installed")
                skipped += missing
                failed += not missing
                print(f"{title:62} {about}", flush=True)
                continue
            is_wrong = any(found.fails(kind) for kind in kinds)
            failed += is_wrong
            for kind in kinds:
                sums[kind] += found.fails(kind)
            cells = "".join(f"{found.cell(kind):>8}" for kind in kinds)
            print(f"{title:62}{cells}  {about}; {took:.1f} s", flush=True)
            if options.verbose or is_wrong and options.few:
                for kind, text in found.first.items():
                    print(f"    {kind}: {text}")
    print(f"{len(jobs)} recordings, {failed} differ" + f", {skipped} skipped" * bool(skipped) +
          ": " + ", ".join(f"{kind} {sums[kind]}" for kind in kinds))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
