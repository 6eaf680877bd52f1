#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of the calls that timeline and pt_dump --chrome-trace draw, against programs whose calls
are known.

    calls.py TIMELINE PT_DUMP PT_RECORD
"""

import collections
import decimal
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
import skips  # noqa: E402
import timeline_page  # noqa: E402
from elf_files import CODE_OFFSET, made_elf  # noqa: E402
from folder import Folder  # noqa: E402

TIMELINE, PT_DUMP = sys.argv.pop(1), sys.argv.pop(1)
PT_RECORD = pathlib.Path(sys.argv.pop(1)).resolve()
CAN_RECORD = (shutil.which("qemu-x86_64") is not None and
              PT_RECORD.with_name("pt_record_qemu.so").exists())

PSB, PSBEND = made.PSB, made.PSBEND
CALL, SYSTEM_CALL, INTERRUPT, BEFORE, GAP = range(5)
MOST_BARS = 60000
BASE = 0x401000
# The first TSC, and the ticks from one branch to the next. The TSC has 2 GHz.
FIRST, STEP = 1 << 40, 100


# MTCs and TSCs are enabled.
EVENT = made.Event(config=0x600 | 3 << 14, sample_type=made.TID | made.TIME | made.CPU, ids=[1])


def tsc(ticks):
    return b"\x19" + ticks.to_bytes(7, "little")


def tip(address):
    return b"\x6d" + address.to_bytes(6, "little")


class Program:
    """Functions that call each other: function 0 is called before the trace and returns at its end.
    A function is a list of numbers: of NOPs, or, if negative, the function that it calls."""

    def __init__(self, functions, base=BASE):
        self.functions, self.base = functions, base
        sizes = [sum(part if part >= 0 else 5 for part in one) + 1 for one in functions]
        self.at = [base + sum(sizes[:i]) for i in range(len(functions))]
        code = b""
        for one in functions:
            for part in one:
                here = base + len(code) + 5
                code += b"\x90" * part if part >= 0 else (
                    b"\xe8" + (self.at[-part] - here).to_bytes(4, "little", signed=True))
            code += b"\xc3"
        self.code = code
        self.symbols = [(f"f{i}", at, size) for i, (at, size) in enumerate(zip(self.at, sizes))]

    def elf(self):
        return made_elf(self.code, self.base, self.symbols)

    def tree(self, function=0, level=0):
        """(level, name, instructions, RETs before it, RETs up to its own) for each call."""
        mine = [level, f"f{function}", 0, self.returns, 0]
        self.calls.append(mine)
        count = 1
        for part in self.functions[function]:
            count += part if part >= 0 else 1 + self.tree(-part, level + 1)
        self.returns += 1
        mine[2], mine[4] = count, self.returns
        return count

    def run(self):
        self.calls, self.returns = [], 0
        self.tree()
        return [tuple(one) for one in self.calls]

    def trace(self, with_time=False):
        """Each RET has a TNT, and, with times, a TSC before it. The last one has a TIP."""
        returns = self.run()[0][4]
        time = tsc(FIRST) if with_time else b""
        out = [PSB + time + b"\x99\x01\x7d" + self.base.to_bytes(6, "little") + PSBEND]
        for i in range(1, returns):
            out.append((tsc(FIRST + STEP * i) if with_time else b"") + b"\x06")
        out.append((tsc(FIRST + STEP * returns) if with_time else b"") + tip(0x2000))
        return b"".join(out)


def random_program(numbers, most=12):
    """Calls go to later functions only."""
    count = numbers.randrange(2, most)
    functions = []
    for i in range(count):
        parts = []
        for _ in range(numbers.randrange(5)):
            callee = numbers.randrange(i + 1, count + 2)
            parts.append(-callee if callee < count else numbers.randrange(1, 9))
        functions.append(parts)
    return Program(functions)


def mapping(process, path, address=BASE, size=0x1000):
    """An MMAP2 record of the code of a made ELF file."""
    body = (made.u32(process, process) + made.u64(address, size, CODE_OFFSET) + made.u32(0, 0) +
            made.u64(0, 0) + made.u32(5, 2) + made.c_string(str(path).encode()))
    return made.Record(10, body, "", misc=2, end=(made.id_end(EVENT, process, 0, 0), ""))


class ToolFolder(Folder):
    def run_tool(self, tool, *arguments, data=b""):
        done = subprocess.run([tool, *map(str, arguments)], input=data, capture_output=True,
                              timeout=120)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")

    def page(self, *arguments, data=b"", status=0, error=""):
        got, out, said = self.run_tool(TIMELINE, "--quiet", "--calls", "-o", "-", *arguments,
                                       data=data)
        self.assertEqual(got, status)
        self.assertRegex(said, rf"\A{error}\Z")
        return timeline_page.data_of(out.decode())

    def bars(self, *arguments, label="", **how):
        page = self.page(*arguments, **how)
        lane = timeline_page.calls_of(page, 0)[label]
        self.check_nesting(lane)
        return lane

    def check_nesting(self, lane):
        """Callers precede what they call, and contain it; siblings follow each other."""
        for place in ("offset", "time"):
            if place not in lane[0]:
                continue
            open_bars = []
            ends = collections.defaultdict(float)
            for bar in lane:
                del open_bars[bar["level"]:]
                begin, end = bar[place]
                self.assertLessEqual(begin, end)
                self.assertEqual(len(open_bars), bar["level"])
                if open_bars:
                    self.assertLessEqual(open_bars[-1][place][0], begin)
                    self.assertLessEqual(end, open_bars[-1][place][1])
                self.assertLessEqual(ends[bar["level"]], begin)
                ends[bar["level"]] = end
                open_bars.append(bar)

    def slices(self, *arguments, data=b""):
        """The slices of pt_dump, by track; numbers in 1/1000 of ns or ticks."""
        status, out, said = self.run_tool(PT_DUMP, "--quiet", "--chrome-trace", "--calls",
                                          *arguments, data=data)
        self.assertEqual((status, said), (0, ""))
        events = json.loads(out, parse_float=decimal.Decimal)["traceEvents"]
        names = {(one["pid"], one["tid"]): one["args"]["name"] for one in events
                 if one.get("name") == "thread_name"}
        phases = collections.defaultdict(str)
        found = collections.defaultdict(list)
        for one in events:
            track = one["pid"], one["tid"]
            if one["ph"] in "BE":
                phases[track] += one["ph"]
            if one["ph"] == "X":
                begin = int(one["ts"] * 1_000_000)
                found[names[track]].append((one["name"], begin,
                                            begin + int(one["dur"] * 1_000_000),
                                            one["args"].get("instructions")))
        for text in phases.values():
            self.assertEqual(text.count("B"), text.count("E"))
        for track in found.values():
            track.sort(key=lambda one: one[1])  # stable, as those who draw it do
            open_ends = []
            for name, begin, end, _ in track:  # within each other, or one after the other
                while open_ends and open_ends[-1] <= begin:
                    open_ends.pop()
                if open_ends:
                    self.assertLessEqual(end, open_ends[-1], name)
                open_ends.append(end)
        return found


class KnownPrograms(ToolFolder):
    def compare(self, program, bars):
        wanted = [one[:3] for one in program.run()]
        self.assertEqual([(one["level"], one["name"], one["instructions"]) for one in bars], wanted)
        self.assertEqual([one["kind"] for one in bars], [BEFORE] + [CALL] * (len(wanted) - 1))
        self.assertTrue(all(one["count"] == 1 for one in bars))

    def test_the_calls_of_a_raw_trace(self):
        numbers = random.Random(1)
        for _ in range(60):
            program = random_program(numbers)
            binary = self.file("binary", program.elf())
            trace = self.file("trace", program.trace())
            bars = self.bars("--binary", binary, trace)
            self.compare(program, bars)
            # A RET is the last instruction up to its TNT, or up to the TIP.
            first = len(program.trace()) - len(tip(0)) - program.run()[0][4]
            for one, (_, _, _, before, returns) in zip(bars, program.run()):
                self.assertEqual(one["offset"][1], first + returns)
                if one["level"] != 0:
                    self.assertLess(one["offset"][0], first + before + 1)
                    if before != 0:
                        self.assertGreaterEqual(one["offset"][0], first + before)

    def test_the_times_of_calls(self):
        numbers = random.Random(2)
        for _ in range(40):
            program = random_program(numbers)
            binary = self.file("binary", program.elf())
            bars = self.bars("--binary", binary, self.file("trace", program.trace(True)))
            self.compare(program, bars)
            for one, (_, _, _, before, returns) in zip(bars, program.run()):
                self.assertEqual(one["time"][1], STEP * returns)
                self.assertLess(one["time"][0], STEP * (before + 1))
                self.assertGreaterEqual(one["time"][0], STEP * before)

    def test_calls_are_placed_by_their_instructions(self):
        # 10 NOPs, CALL, 30 NOPs, RET: the call begins after 11 of 42 instructions.
        program = Program([[10, -1, 0], [30]])
        binary = self.file("binary", program.elf())
        call = self.bars("--binary", binary, self.file("trace", program.trace(True)))[1]
        self.assertAlmostEqual(call["time"][0], STEP * 11 / 42, delta=1 / 512)

    def test_while_tracing_is_disabled_only_the_open_calls_continue(self):
        # f0: two NOPs, CALL f1, SYSCALL, RET. f1: three NOPs, RET. The kernel is not traced.
        code = bytes.fromhex("9090 e803000000 0f05 c3" "909090 c3")
        binary = self.file("binary", made_elf(code, BASE, [("f0", BASE, 10), ("f1", BASE + 10, 4)]))
        trace = (PSB + tsc(FIRST) + b"\x99\x01\x7d" + BASE.to_bytes(6, "little") + PSBEND +
                 b"\x06\x01" + tsc(FIRST + 100_000) + b"\x71" + (BASE + 9).to_bytes(6, "little") +
                 tsc(FIRST + 100_050) + tip(0x2000))
        bars = self.bars("--binary", binary, self.file("trace", trace))
        self.assertEqual([(one["name"], one["time"]) for one in bars],
                         [("f0", (0, 100_050)), ("f1", (3, 7)), ("[syscall]", (8, 100_000))])

    def test_a_pipe_and_several_pieces_of_code(self):
        program = random_program(random.Random(3))
        code = self.file("code", program.code)
        pages = self.file("mem", program.code + bytes(-len(program.code) % 4096))
        list_of = self.file("addr", f"{BASE:#x}\n".encode())
        wanted = self.page("--binary", self.file("binary", program.elf()), "-",
                           data=program.trace())
        self.compare(program, timeline_page.calls_of(wanted, 0)[""])
        for code_options in (["--image", f"{code}@{BASE:#x}"], ["--pages", pages, list_of]):
            found = timeline_page.calls_of(self.page(*code_options, "-", data=program.trace()), 0)
            for one, other in zip(found[""], timeline_page.calls_of(wanted, 0)[""], strict=True):
                address = program.at[int(other["name"][1:])]
                self.assertEqual(one, {**other, "name": f"{address:#x}"})

    def test_chrome_traces_have_the_same_calls(self):
        numbers = random.Random(4)
        for with_time in (False, True):
            for _ in range(20):
                program = random_program(numbers)
                binary = self.file("binary", program.elf())
                trace = self.file("trace", program.trace(with_time))
                bars = self.bars("--binary", binary, trace)
                slices = self.slices("--binary", binary, trace)["calls"]
                self.assertEqual([(name, count) for name, _, _, count in slices],
                                 [(one["name"], one["instructions"]) for one in bars])
                first, place = (FIRST, "time") if with_time else (0, "offset")
                for (_, begin, end, _), one in zip(slices, bars):
                    self.assertEqual((begin, end),
                                     tuple(1000 * first + int(1000 * at) for at in one[place]))

    def test_functions_that_return_to_their_callers(self):
        # The trace begins in f1; f0 called it, and after it f2.
        program = Program([[3, -1, 2, -2, 4], [5], [6]])
        start = program.at[1] + 2
        trace = (PSB + b"\x99\x01\x7d" + start.to_bytes(6, "little") + PSBEND +
                 tip(program.at[0] + 8) + b"\x06" + tip(0x2000))
        bars = self.bars("--binary", self.file("binary", program.elf()), self.file("t", trace))
        self.assertEqual([(one["level"], one["name"], one["kind"], one["instructions"])
                          for one in bars],
                         [(0, "f0", BEFORE, 4 + 2 + 1 + 7 + 5), (1, "f1", BEFORE, 4),
                          (1, "f2", CALL, 7)])

    def test_system_calls_and_interrupts(self):
        # SYSCALL to f1, which is 3 NOPs and SYSRET; then an interrupt whose handler f2 is IRETQ.
        code = bytes.fromhex("90 0f05 9090 90" "909090 480f07" "48cf" "c3")
        functions = [("f0", BASE, 6), ("f1", BASE + 6, 6), ("f2", BASE + 12, 2)]
        binary = self.file("binary", made_elf(code, BASE, functions))
        fup = b"\x7d" + (BASE + 4).to_bytes(6, "little")
        trace = (PSB + b"\x99\x01\x7d" + BASE.to_bytes(6, "little") + PSBEND + tip(BASE + 6) +
                 tip(BASE + 3) + fup + tip(BASE + 12) + tip(BASE + 4))
        bars = self.bars("--binary", binary, self.file("trace", trace))
        self.assertEqual([(one["level"], one["name"], one["kind"], one["instructions"])
                          for one in bars],
                         [(0, "f0", BEFORE, 8), (1, "f1", SYSTEM_CALL, 4), (1, "f2", INTERRUPT, 1)])


class Gaps(ToolFolder):
    def test_an_overflow(self):
        program = Program([[2, -1, 2], [3, -2, 9], [4]])
        inside = program.at[1] + 8
        begin = PSB + b"\x99\x01\x7d" + BASE.to_bytes(6, "little") + PSBEND + b"\x06"
        resume = b"\x02\xf3\x7d" + inside.to_bytes(6, "little")
        trace = begin + resume + tip(BASE + 7) + tip(0x2000)
        page = self.page("--binary", self.file("binary", program.elf()), "-", data=trace)
        self.assertEqual(page["streams"][0]["calls"]["gaps"], 1)
        bars = timeline_page.calls_of(page, 0)[""]
        self.check_nesting(bars)
        unsure = 16
        self.assertEqual([(one["level"], one["name"], one["kind"]) for one in bars],
                         [(0, "f0", BEFORE | unsure), (1, "f1", CALL | unsure), (2, "f2", CALL),
                          (2, "overflow", GAP)])
        self.assertEqual(bars[3]["offset"], (len(begin) - 1, len(begin) + 2))
        slices = self.slices("--binary", self.folder / "binary", "-", data=trace)["calls"]
        self.assertEqual([one[0] for one in slices], ["f0", "f1", "f2", "not known: overflow"])

    def test_code_that_is_missing(self):
        program = random_program(random.Random(5))
        page = self.page("-", data=program.trace(), status=1,
                         error=r"timeline: no code for .*\ntimeline: no calls: only gaps: .*\n")
        bars = timeline_page.calls_of(page, 0)[""]
        self.assertEqual({(one["name"], one["kind"] & 7) for one in bars}, {("missing-code", GAP)})

    def test_missing_bytes_of_a_file(self):
        program = Program([[1, -1, 1], [2]])
        binary = self.file("binary", program.elf())
        trace = made.padded(program.trace())
        records = [made.info_of(), mapping(7, binary),
                   made.auxtrace(trace, 0, tid=7), made.auxtrace(trace, len(trace) + 64, tid=7)]
        path = self.file("perf.data", made.file_of([EVENT], records)[0])
        page = self.page(path)
        bars = timeline_page.calls_of(page, 0)["7/7"]
        self.assertEqual([one["name"] for one in bars if one["kind"] & 7 == GAP],
                         ["missing trace"])
        self.assertEqual([one["name"] for one in bars if one["kind"] & 7 == CALL], ["f1", "f1"])


class PerfData(ToolFolder):
    def file_of(self, programs):
        """A file with a stream of each process."""
        records = [made.info_of()]
        for process, program in programs.items():
            binary = self.file(f"program{process}", program.elf())
            records.append(mapping(process, binary))
        for process, program in programs.items():
            trace = made.padded(program.trace(True))
            records.append(made.auxtrace(trace, tid=process, idx=process))
        return self.file("perf.data", made.file_of([EVENT], records)[0])

    def test_each_thread_has_the_calls_of_its_program(self):
        numbers = random.Random(6)
        for _ in range(10):
            programs = {process: random_program(numbers) for process in (100, 200, 300)}
            path = self.file_of(programs)
            page = self.page(path)
            slices = self.slices(path)
            for i, (process, program) in enumerate(programs.items()):
                lanes = timeline_page.calls_of(page, i)
                self.assertEqual(list(lanes), [f"{process}/{process}"])
                bars = lanes[f"{process}/{process}"]
                self.check_nesting(bars)
                wanted = [one[:3] for one in program.run()]
                self.assertEqual([(one["level"], one["name"], one["instructions"])
                                  for one in bars], wanted)
                self.assertEqual(
                    [(name, count) for name, _, _, count in slices[f"calls {process}/{process}"]],
                    [one[1:] for one in wanted])

    def test_the_threads_that_a_cpu_switches_between(self):
        """Each slice of a CPU executes function 0 of a process up to its RET."""
        numbers = random.Random(13)
        for _ in range(10):
            programs = {process: random_program(numbers) for process in (100, 200)}
            slices = [numbers.choice((100, 200)) for _ in range(numbers.randrange(2, 12))]
            records = [made.info_of()]
            for process, program in programs.items():
                records.append(mapping(process, self.file(f"program{process}", program.elf())))
            trace = b""
            for i, process in enumerate(slices):
                ticks = 84 * 8 * 100 * (i + 1)
                returns = programs[process].run()[0][4]
                trace += (PSB + tsc(ticks) + b"\x02\x73" + (ticks // 84).to_bytes(2, "little") +
                          bytes(3) + PSBEND + b"\x99\x01\x71" + BASE.to_bytes(6, "little") +
                          b"\x06" * (returns - 1) + b"\x01")
                for time, misc in ((77 + ticks // 2 - 100, 0), (77 + ticks // 2 + 1000, 0x2000)):
                    records.append(made.Record(14, b"", "", misc=misc, end=(
                        made.id_end(EVENT, process, time, 0), "")))
            records.append(made.auxtrace(made.padded(trace), tid=0xFFFFFFFF, cpu=0))
            page = self.page(self.file("perf.data", made.file_of([EVENT], records)[0]))
            lanes = timeline_page.calls_of(page, 0)
            self.assertEqual(set(lanes), {f"{process}/{process}" for process in slices})
            for process, program in programs.items():
                times = slices.count(process)
                if times == 0:
                    continue
                bars = lanes[f"{process}/{process}"]
                self.check_nesting(bars)
                calls = program.run()
                self.assertEqual([(one["level"], one["name"], one["instructions"])
                                  for one in bars],
                                 [(0, "f0", times * calls[0][2])] +
                                 [*(one[:3] for one in calls[1:]), (1, "[unknown]", 0)] * times)

    def test_the_files_are_below_a_directory(self):
        program = random_program(random.Random(7))
        path = self.file_of({100: program})
        below = self.folder / "root" / self.folder.relative_to("/")
        below.mkdir(parents=True)
        shutil.move(self.folder / "program100", below / "program100")
        bars = self.bars("--symfs", self.folder / "root", path, label="100/100")
        self.assertEqual([one["name"] for one in bars], [one[1] for one in program.run()])
        status, _, said = self.run_tool(TIMELINE, "--calls", "-o", "-", path)
        self.assertEqual(status, 1)
        self.assertIn("program100: cannot be read: its code is missing", said)
        self.assertIn("no calls: only gaps: missing-code", said)

    def test_code_without_symbols_has_the_name_of_its_file(self):
        program = random_program(random.Random(8))
        program.symbols = []
        bars = self.bars(self.file_of({100: program}), label="100/100")
        self.assertEqual(bars[0]["name"], f"program100+{CODE_OFFSET:#x}")

    def test_recorded_programs(self):
        if not CAN_RECORD:
            self.skipTest("qemu-x86_64")
        data = self.folder / "perf.data"
        raw = self.folder / "raw"
        subprocess.run([PT_RECORD, "-o", data, "--check", "--raw", raw, "sh", "-c",
                        "(exit 3); ls / >/dev/null"], check=True, capture_output=True,
                       cwd=self.folder)
        wanted = {path.name.split(".")[1]: int(path.read_text().split()[1])
                  for path in raw.glob("*.log")}
        page = self.page(data)
        found = {}
        for i in range(len(page["streams"])):
            for label, bars in timeline_page.calls_of(page, i).items():
                self.check_nesting(bars)
                found[label.split("/")[1]] = sum(one["instructions"] for one in bars
                                                 if one["level"] == 0)
        self.assertEqual(found, wanted)
        self.assertGreater(len(self.slices(data)), 2)


class Limits(ToolFolder):
    """f0 calls f1 1000 times, which calls f2 61 times, which calls f3."""

    @classmethod
    def setUpClass(cls):
        program = Program([[-1] * 1000, [-2, 3] * 61, [-3], [1]])
        cls.elf, cls.timed, cls.untimed = program.elf(), program.trace(True), program.trace()
        cls.calls = program.run()

    def setUp(self):
        super().setUp()
        self.binary = self.file("binary", self.elf)
        self.trace = self.file("trace", self.timed)

    def test_short_calls_are_merged(self):
        status, page, said = self.run_tool(TIMELINE, "--calls", "--binary", self.binary, "-o", "-",
                                           self.trace)
        data = timeline_page.data_of(page.decode())
        bars = timeline_page.calls_of(data, 0)[""]
        self.assertEqual((status, said), (0, f"timeline: {len(self.calls)} calls and gaps are "
                                             f"merged into {len(bars)} bars, which a page takes: "
                                             "--time draws each call of a short part\n"))
        self.assertLess(len(page), 6 << 20)
        self.check_nesting(bars)
        self.assertLessEqual(len(bars), MOST_BARS)
        self.assertGreater(len(bars), MOST_BARS / 8)
        self.assertGreater(data["streams"][0]["calls"]["resolution"], 0)
        wanted, found = collections.Counter(), collections.Counter()
        counts, sums = collections.Counter(), collections.Counter()
        for level, name, instructions, _, _ in self.calls:
            wanted[level] += 1
            sums[level] += instructions
        for one in bars:
            found[one["level"]] += one["count"]
            counts[one["level"]] += one["instructions"]
        self.assertEqual(found, wanted)
        self.assertEqual(counts, sums)
        self.assertTrue(all(one["count"] == 1 for one in bars if one["level"] == 0))
        resolution = data["streams"][0]["calls"]["resolution"]
        for one in bars:
            if one["count"] > 1:
                self.assertLess(one["time"][1] - one["time"][0], resolution + 2)

    def test_a_chrome_trace_has_all_calls(self):
        """Of more calls than are in memory at a time, and of as many as its option says."""
        many = Program([[-1] * 3000, [-2, 3] * 61, [-3], [1]])
        for with_time, program in ((True, many), (False, many)):
            trace = self.file("many", program.trace(with_time))
            found = self.slices("--binary", self.file("binary", program.elf()), trace)["calls"]
            wanted = collections.Counter((name, instructions)
                                         for _, name, instructions, _, _ in program.run())
            self.assertGreater(wanted.total(), 1 << 18)
            self.assertEqual(collections.Counter((name, instructions)
                                                 for name, _, _, instructions in found), wanted)

    def test_the_maximum_of_slices(self):
        for most in (4, 1000, 1 << 20):
            status, out, said = self.run_tool(PT_DUMP, "--chrome-trace", "--calls", "--max-slices",
                                              most, "--binary", self.binary, self.trace)
            counts = [one["args"]["calls"] for one in json.loads(out)["traceEvents"]
                      if one["ph"] == "X"]
            self.assertLessEqual(len(counts), most)
            levels = re.search(r"left out: (\d+) calls at levels", said)
            self.assertEqual(sum(counts) + (int(levels[1]) if levels else 0), len(self.calls))
            merged = (f"pt_dump: {sum(counts)} calls and gaps are merged into {len(counts)} "
                      "slices: by --max-slices\n")
            self.assertEqual((status, merged in said), (0, sum(counts) != len(counts)))
            self.assertEqual(said == "", most == 1 << 20)

    def test_a_part_has_each_call(self):
        first, last = 40_000 * STEP, 44_000 * STEP
        for options in (["--time", f"{first}-{last}"],
                        ["--tsc-hz", "2000000000", "--time", f"{first / 2000}us-{last / 2e6}ms"],
                        ["--tsc-hz", "2000000000", "--time", f"{first / 2e9:.9f}-{last}ticks"]):
            page = self.page("--binary", self.binary, *options, self.trace)
            self.assertEqual(page["streams"][0]["calls"]["resolution"], 0)
            bars = timeline_page.calls_of(page, 0)[""]
            wanted = [one for one in self.calls
                      if STEP * one[4] >= first and STEP * one[3] <= last]
            self.assertLess(abs(len(bars) - len(wanted)), 5)  # f3 begins after the RET before it
            self.assertTrue(all(one["count"] == 1 for one in bars))
            for one in bars:
                self.assertGreaterEqual(one["time"][1], first - 1)
                self.assertLessEqual(one["time"][0], last + 1)

    def test_a_part_by_offset(self):
        trace = self.file("untimed", self.untimed)
        bars = self.bars("--binary", self.binary, "--from", "0x8000", "--to", "0x8100", trace)
        self.assertLess(len(bars), 900)
        self.assertTrue(any(one["offset"][0] > 0x8000 for one in bars))
        for one in bars:
            self.assertGreaterEqual(one["offset"][1], 0x8000)
            self.assertLess(one["offset"][0], 0x8101)

    def deep(self):
        """A function that calls itself, and the begin of its trace."""
        # JZ over a RET; CALL 401000H; RET. Each taken JZ is a call.
        code = bytes.fromhex("7401 c3 e8f8ffffff c3")
        binary = self.file("deep", made_elf(code, BASE, [("deep", BASE, 9)]))
        return binary, PSB + b"\x99\x01\x7d" + BASE.to_bytes(6, "little") + PSBEND

    def test_returns_from_deep_recursion(self):
        binary, begin = self.deep()
        calls, compressed = 300, 64  # the calls that the decoder remembers
        trace = (begin + b"\x06" * calls + b"\x04" + b"\x06" * compressed +
                 tip(BASE + 8) * (calls - compressed) + tip(0x2000))
        bars = self.bars("--binary", binary, self.file("trace", trace))
        self.assertEqual([(one["level"], one["instructions"]) for one in bars],
                         [(level, 3 * (calls - level) + 2) for level in range(255)])

    def test_deep_recursion(self):
        binary, begin = self.deep()
        trace = begin + b"\xfe" * 2000
        page = self.page("--binary", binary, self.file("trace", trace))
        bars = timeline_page.calls_of(page, 0)[""]
        self.check_nesting(bars)
        levels = max(one["level"] for one in bars) + 1
        self.assertEqual((levels, page["streams"][0]["calls"]["left_out"]), (255, 11999 - 254))


class Hostile(ToolFolder):
    def test_names_are_text(self):
        name = "</script><script>alert(1)</script><!--\"'&\\\t\u2028\x7f"
        program = Program([[1, -1], [1]])
        program.symbols = [(name, *program.symbols[0][1:]), ("n" * 5000, *program.symbols[1][1:])]
        binary = self.file("binary", program.elf())
        status, page, said = self.run_tool(TIMELINE, "--calls", "--binary", binary, "-o", "-", "-",
                                           data=program.trace())
        self.assertEqual((status, said), (0, ""))
        self.assertEqual(timeline_page.Elements(page.decode()).names.count("script"), 2)
        bars = timeline_page.calls_of(timeline_page.data_of(page.decode()), 0)[""]
        name = name.replace("\t", "?").replace("\x7f", "?")
        self.assertEqual(bars[0]["name"], name)
        self.assertLess(len(bars[1]["name"]), 200)
        self.assertEqual(self.slices("--binary", binary, "-", data=program.trace())["calls"][0][0],
                         name)

    def test_damaged_traces(self):
        numbers = random.Random(9)
        program = Program([[-1, 2, -1, -2], [3, -2] * 4, [-3, 1], [2]])
        binary = self.file("binary", program.elf())
        for i in range(150):
            data = bytearray(program.trace(i % 2 == 0) * 3)
            for _ in range(numbers.randrange(1, 8)):
                data[numbers.randrange(len(data))] = numbers.randrange(256)
            trace = self.file("trace", data)
            status, page, said = self.run_tool(TIMELINE, "--calls", "--binary", binary, "-o", "-",
                                               trace)
            self.assertIn(status, (0, 1, 3), said)
            for lane in timeline_page.calls_of(timeline_page.data_of(page.decode()), 0).values():
                self.check_nesting(lane)
            status, out, said = self.run_tool(PT_DUMP, "--chrome-trace", "--calls", "--binary",
                                              binary, trace)
            self.assertIn(status, (0, 1, 3), said)
            json.loads(out)

    def test_damaged_files(self):
        numbers = random.Random(10)
        program = random_program(numbers)
        good = {"binary": program.elf(), "perf.data": PerfData.file_of(self, {100: program})
                .read_bytes()}
        for i in range(200):
            name = numbers.choice(sorted(good))
            data = bytearray(good[name])
            for _ in range(numbers.randrange(1, 6)):
                data[numbers.randrange(len(data))] = numbers.choice((0, 0xFF,
                                                                     numbers.randrange(256)))
            if numbers.randrange(4) == 0:
                del data[numbers.randrange(len(data)):]
            path = self.file(name, data)
            where = ["--binary", path, self.file("trace", program.trace())]
            if name == "perf.data":
                where = [path]
            status, out, said = self.run_tool(TIMELINE, "--calls", "-o", "-", *where)
            self.assertIn(status, (0, 1, 2, 3), said)
            if out:
                page = timeline_page.data_of(out.decode())
                for n in range(len(page["streams"])):
                    for lane in timeline_page.calls_of(page, n).values():
                        self.check_nesting(lane)
            status, _, said = self.run_tool(PT_DUMP, "--chrome-trace", "--calls", *where)
            self.assertIn(status, (0, 1, 2, 3), said)


class CommandLine(ToolFolder):
    def test_wrong_usage(self):
        program = random_program(random.Random(11))
        trace = self.file("trace", program.trace())
        binary = self.file("binary", program.elf())
        data = self.file("perf.data", made.file_of(
            [EVENT], [made.info_of(), made.auxtrace(made.padded(program.trace()), tid=7)])[0])
        for arguments, about in (
                (["--binary", binary, trace], "--binary needs --calls"),
                (["--symfs", "x", trace], "--symfs needs --calls"),
                (["--from", "1", trace], "--from needs --calls"),
                (["--time", "1-", trace], "--time needs --calls"),
                (["--calls", "--from", "x", trace], "--from takes an offset in bytes"),
                *((["--calls", "--time", text, trace], "--time takes A-B, A- or -B") for text in
                  ("", "-", "7", "1-x", "1.2.3s-", ".-", "-1m", "1-2-3")),
                (["--calls", "--time", "1ms-", trace], "needs the frequency of the TSC"),
                (["--calls", "--time", "1-", "--to", "7", trace], "give --time, or --from and"),
                (["--calls", "--binary", trace, trace], "not an ELF file"),
                (["--calls", "--image", f"{binary}@0", data], "names the files with code itself")):
            status, out, said = self.run_tool(TIMELINE, "-o", "-", *arguments)
            self.assertEqual((status, out), (2, b""), arguments)
            self.assertIn(about, said)
        for arguments, about in (
                (["--calls", trace], "--calls needs --chrome-trace"),
                (["--chrome-trace", "--binary", binary, trace], "--binary needs --calls"),
                (["--chrome-trace", "--max-slices", "5", trace], "--max-slices needs --calls"),
                (["--chrome-trace", "--calls", "--image", f"{binary}@0", data], "names the files")):
            status, _, said = self.run_tool(PT_DUMP, *arguments)
            self.assertEqual(status, 2, arguments)
            self.assertIn(about, said)

    def test_without_the_option_there_are_no_calls(self):
        trace = self.file("trace", random_program(random.Random(12)).trace())
        _, page, _ = self.run_tool(TIMELINE, "-o", "-", trace)
        self.assertNotIn("calls", timeline_page.data_of(page.decode())["streams"][0])
        _, out, _ = self.run_tool(PT_DUMP, "--chrome-trace", trace)
        self.assertNotIn('"X"', out.decode())


if __name__ == "__main__":
    skips.main(sys.argv[:1])
