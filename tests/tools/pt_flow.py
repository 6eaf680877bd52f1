#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_flow as a program: what libipt says was executed, and wrong usage.

    pt_flow.py PT_FLOW EDGE_HASH PT_RECORD
"""

import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
import skips  # noqa: E402
import traces  # noqa: E402
from elf_files import CORE, SHARED, made_elf  # noqa: E402
from folder import Folder  # noqa: E402
from tool_checks import ToolChecks  # noqa: E402

PT_FLOW = sys.argv.pop(1)
EDGE_HASH = sys.argv.pop(1)
PT_RECORD = pathlib.Path(sys.argv.pop(1)).resolve()
CAN_RECORD = (shutil.which("qemu-x86_64") is not None and
              PT_RECORD.with_name("pt_record_qemu.so").exists())
PERF = shutil.which("perf")
# PSB, FUP 1000H, PSBEND, a TNT with one branch that is taken, and its loop: NOP; JNZ 1000H.
TRACE = bytes.fromhex("0282" * 8 + "9901 7d001000000000 0223 06")
LOOP = bytes.fromhex("90 75fd")

# Where ptxed differs: the addresses that we print.
OTHER = {
    # ptxed ends at a PSB+ with another mode; we continue with the state that it reports.
    "ptxed-resync-psb-bad_status-psb": ["100000", "100003", "100004", "100005", "100004"],
}


def run(*arguments, data=None):
    """Without counts of gaps, which tests/tools/nothing.py has."""
    done = subprocess.run([PT_FLOW, "--quiet", *map(str, arguments)], capture_output=True,
                          text=True, errors="surrogateescape", timeout=120, input=data)
    return done.returncode, done.stdout, done.stderr


class Recorded(Folder):
    def setUp(self):
        super().setUp()
        if not traces.are_there():
            skips.say(traces.NEED, "pt_flow")
            self.skipTest(traces.NEED)

    def test_the_runs_of_recorded_traces_are_those_of_libipt(self):
        found = 0
        for golden in sorted(traces.folder().glob("*.flow.xz")):
            name = golden.name.removesuffix(".flow.xz")
            where = traces.folder()
            expected = [line for line in traces.read(where / f"{name}.flow").decode().splitlines()
                        if line.startswith("run ")]
            about = json.loads((where / f"{name}.summary.json").read_text())
            trace = self.file("trace.pt", traces.recorded(name))
            memory = self.file("code.mem", traces.read(where / f"{name}.mem"))
            with self.subTest(name):
                status, out, error = run("--runs", "--pages", memory, where / f"{name}.addr",
                                         "--cpu", about["flow"]["cpu_option"], trace)
                lines = out.splitlines()
                self.assertEqual([line for line in lines if line.startswith("run ")], expected)
                # xdc-mruby has one OVF; nothing else is lost.
                gaps = [line.split()[1] for line in lines if line.startswith("gap ")]
                self.assertEqual(gaps, ["overflow"] if name == "xdc-mruby" else [])
                self.assertEqual((status, error), (1 if gaps else 0, ""))
            found += 1
        self.assertEqual(found, 12)

    def test_the_output_does_not_depend_on_the_number_of_threads(self):
        where = traces.folder()
        trace = self.file("trace.pt", traces.recorded("xdc-mruby"))  # of three parts
        memory = self.file("code.mem", traces.read(where / "xdc-mruby.mem"))
        for form in ("--instructions", "--runs", "--blocks", "--edges", "--calls", "--folded",
                     "--drcov", "--bitmap=64K"):
            found = set()
            for jobs in (1, 2, 7):
                done = subprocess.run(
                    [PT_FLOW, *form.split("="), "--jobs", str(jobs), "--pages", memory,
                     where / "xdc-mruby.addr", trace], capture_output=True, timeout=120)
                found.add((done.returncode, hashlib.sha256(done.stdout).digest(), done.stderr))
            with self.subTest(form):
                self.assertEqual(len(found), 1)

    def test_the_edges_of_recorded_traces_are_those_of_libxdc(self):
        found = 0
        for summary in sorted(traces.folder().glob("*.summary.json")):
            name = summary.name.removesuffix(".summary.json")
            expected = json.loads(summary.read_text()).get("libxdc_hash")
            if expected is None or not (traces.folder() / f"{name}.addr").exists():
                continue
            trace = self.file("trace.pt", traces.recorded(name))
            memory = self.file("code.mem", traces.read(traces.folder() / f"{name}.mem"))
            done = subprocess.run([EDGE_HASH, trace, memory, traces.folder() / f"{name}.addr"],
                                  capture_output=True, text=True, timeout=120)
            with self.subTest(name):
                self.assertEqual(done.stdout, f"{int(expected, 16):016x}\n" * 3, done.stderr)
            found += 1
        self.assertEqual(found, 5)

    def test_the_instructions_of_libipts_tests_are_those_that_ptxed_prints(self):
        found = 0
        with tarfile.open(traces.folder() / "libipt-tests.tar.xz") as tests:
            content = {one.name: tests.extractfile(one).read()
                       for one in tests.getmembers() if one.isfile()}
        for path in sorted(one for one in content if one.endswith(".ptxed.exp")):
            base = path.removesuffix(".ptxed.exp")
            name = base.rsplit("/", 1)[1]
            info = content[base.rsplit("/", 1)[0] + "/info.txt"].decode()
            fields = dict(line.split(": ", 1) for line in info.splitlines() if ": " in line)
            expected = [f"{int(address, 16):x}" for address in re.findall(
                r"^(?:\? )?([0-9a-f]{16})\s*$", content[path].decode(), re.M)]
            options = []
            if fields["cpus"] != "-":
                options += ["--cpu", fields["cpus"].split()[0]]
            filters = re.search(r"addr0_a (\w+) --filter:addr0_b (\w+)", fields["ptxed-options"])
            if filters:
                options += ["--filter", f"{filters[1]},{filters[2]}"]
            if "--stat" in fields["ptxed-options"]:  # only numbers
                count = re.search(r"^insn: +(\d+)", content[path].decode(), re.M)
                expected = int(count[1]) if count else None
            image = self.file("image.bin", content[base + ".bin"])
            trace = self.file("trace.pt", content[base + ".pt"])
            with self.subTest(name):
                status, out, _ = run("--instructions", *options, "--image",
                                     f"{image}@{fields['org']}", trace)
                got = [line[2:] for line in out.splitlines() if line.startswith("0x")]
                self.assertLess(status, 2)
                if isinstance(expected, int):
                    self.assertEqual(len(got), expected)
                elif expected is not None:
                    self.assertEqual(got, OTHER.get(name, expected))
            found += 1
        self.assertEqual(found, 97)


# At 1000H main: CALL leaf, RET; at 1006H leaf: NOP, RET.
CALLING = bytes.fromhex("e801000000 c3 90 c3")
# PSB, FUP 1000H, PSBEND; the RET of leaf is compressed; that of main leads to 2000H.
CALLS = bytes.fromhex("0282" * 8 + "9901 7d001000000000 0223 06 2d0020")


SCRATCH = tempfile.TemporaryDirectory()
CODE = pathlib.Path(SCRATCH.name, "code")
CODE.write_bytes(LOOP)
SMALL = pathlib.Path(SCRATCH.name, "small")
SMALL.write_bytes(TRACE)


class EveryTool(ToolChecks, unittest.TestCase):
    TOOL = PT_FLOW
    FORMS = ("--instructions", "--runs", "--blocks", "--edges", "--folded", "--drcov")
    PRINTS = [*(([form, "--image", f"{CODE}@0x1000", str(SMALL)], b"") for form in FORMS),
              (["--bitmap", "1K", "--image", f"{CODE}@0x1000", "-"], TRACE)]
    READS = [[], ["--calls"]]
    READS_STDIN = [["-"], ["--calls", "-"]]


class Calls(Folder):
    FUNCTIONS = [("main", 0x1000, 6), ("leaf", 0x1006, 2)]

    def setUp(self):
        super().setUp()
        self.binary = self.file("binary", made_elf(CALLING, 0x1000, self.FUNCTIONS))
        self.trace = self.file("trace", CALLS)

    def test_a_tree_of_calls(self):
        expected = ("             | main() { /* call not traced */\n"
                    "           2 |   leaf();\n"
                    "           4 | } /* main */\n")
        self.assertEqual(run("--calls", "--binary", self.binary, self.trace), (0, expected, ""))

    def test_the_stacks_of_a_flame_graph(self):
        self.assertEqual(run("--folded", "--binary", self.binary, self.trace),
                         (0, "main 2\nmain;leaf 2\n", ""))

    def test_a_shared_object_has_an_address(self):
        moved = [(name, at - 0x1000, size) for name, at, size in self.FUNCTIONS]
        binary = self.file("shared", made_elf(CALLING, 0, moved, SHARED))
        self.assertEqual(run("--folded", "--binary", f"{binary}@0x1000", self.trace),
                         (0, "main 2\nmain;leaf 2\n", ""))

    def test_without_symbols_functions_are_addresses(self):
        image = f"{self.file('code', CALLING)}@0x1000"
        self.assertEqual(run("--folded", "--image", image, self.trace),
                         (0, "0x1000 2\n0x1000;0x1006 2\n", ""))

    def test_a_gap_is_in_the_tree(self):
        trace = self.file("lost", CALLS + bytes.fromhex("02f3 7d001000000000 06"))
        status, out, _ = run("--calls", "--binary", self.binary, trace)
        self.assertEqual(status, 1)
        self.assertIn("/* not known: overflow from 0x2000 to main */", out)

    def test_times_and_cycles(self):
        # At 1000H main: CALL RAX, RET; at 1003H leaf: NOP, RET.
        binary = self.file("indirect", made_elf(bytes.fromhex("ffd0 c3 90 c3"), 0x1000,
                                                [("main", 0x1000, 3), ("leaf", 0x1003, 2)]))
        # PSB, TSC 1000000, FUP 1000H, PSBEND; CYC 5, TIP 1003H; CYC 7, TNT: the RET of leaf.
        trace = self.file("trace", bytes.fromhex(
            "0282" * 8 + "19 40420f00000000 7d001000000000 0223 2b 2d0310 3b 06"))
        def tree(at):
            return (f"{at}{'':38} | main() {{ /* call not traced */\n"
                    f"{at}{0:13}{7:13}{2:12} |   leaf();\n"
                    f"{at}{0:13}{12:13}{3:12} | }} /* main, not returned */\n")

        self.assertEqual(run("--calls", "--times", "--binary", binary, trace),
                         (0, tree(f"{1000000:22}"), ""))
        self.assertEqual(run("--calls", "--times", "--tsc-hz", 1000000, "--binary", binary, trace),
                         (0, tree(f"{1:12}.000000000"), ""))
        for times, expected in (("1000000-", "leaf();"), ("-999999", ""), ("1000001-", ""),
                                ("1000000-1000000", "leaf();")):
            status, out, _ = run("--calls", "--time", times, "--binary", binary, trace)
            lines = [line.split("| ")[1].strip() for line in out.splitlines()]
            self.assertEqual((status, [line for line in lines if line.startswith("leaf")]),
                             (0, [expected]) if expected else (1, []))

    def test_a_part_of_the_bytes_from_a_psb_to_another(self):
        image = f"{self.file('loop', LOOP)}@0x1000"
        # The second part goes on where the first one ends; each has one more branch.
        parts = [TRACE[:-1] + bytes([taken]) for taken in (0x06, 0x0E, 0x1E)]
        begin = [0, len(parts[0]), len(parts[0] + parts[1])]
        trace = self.file("trace", b"".join(parts))

        def branches(*options):
            status, out, error = run("--edges", *options, "--image", image, trace)
            said = "" if out else "pt_flow: no edges: no bytes in the range of --from and --to\n"
            self.assertEqual((status, error), (int(not out), said))
            return len(out.splitlines())

        self.assertEqual(branches(), 6)
        for start, end, expected in ((0, 1, 1), (begin[1], begin[2], 2),
                                     (begin[1] + 1, begin[2], 2),
                                     (begin[2], 1000, 3), (begin[0], begin[1] + 1, 3),
                                     (1000, 2000, 3), (0, 0, 0)):
            with self.subTest(start=start, end=end):
                self.assertEqual(branches("--from", start, "--to", end), expected)

    def test_the_blocks_of_drcov(self):
        done = subprocess.run([PT_FLOW, "--drcov", "--binary", self.binary, self.trace],
                              capture_output=True)
        text, _, table = done.stdout.partition(b" bbs\n")
        self.assertEqual(text.decode().splitlines(), [
            "DRCOV VERSION: 2", "DRCOV FLAVOR: drcov", "Module Table: version 2, count 1",
            "Columns: id, base, end, entry, path", f"0, 0x1000, 0x1008, 0x0, {self.binary}",
            "BB Table: 3"])
        self.assertEqual(list(struct.iter_unpack("<IHH", table)), [(0, 5, 0), (5, 1, 0), (6, 2, 0)])

    def test_the_bitmap_has_a_count_for_each_edge(self):
        done = subprocess.run([PT_FLOW, "--bitmap", "1K", "--binary", self.binary, self.trace],
                              capture_output=True)

        def index(start, to):
            def upper(value):
                return (value * 0x9E3779B97F4A7C15 >> 32) & 0xFFFFFFFF
            return (upper(start) ^ upper(to) >> 1) & 1023

        expected = bytearray(1024)
        for edge in ((0x1000, 0x1006), (0x1007, 0x1005), (0x1005, 0x2000)):
            expected[index(*edge)] += 1
        self.assertEqual((done.returncode, done.stdout), (0, bytes(expected)))

    def test_what_follows_lost_packets_needs_no_pip(self):
        lost = bytes.fromhex("02f3 7d001000000000")  # OVF, FUP 1000H; a TNT before and after it
        trace = self.file("lost", TRACE[:-1] + b"\x0e" + lost + b"\x1e")  # TT; TTT
        image = ["--image", f"{self.file('loop', LOOP)}@0x1000"]
        edge, gap = "edge 0x1001 0x1000\n", "gap overflow offset=0x1c from=0x1000 to=0x1000\n"
        self.assertEqual(run("--edges", *image, trace), (1, edge * 2 + gap + edge * 3, ""))
        done = subprocess.run([PT_FLOW, "--bitmap", "1K", *image, trace], capture_output=True)
        self.assertEqual((done.returncode, sorted(done.stdout)[-2:]), (1, [0, 5]))

    def test_damaged_binaries_are_refused_or_read(self):
        numbers = random.Random(1)
        good = self.binary.read_bytes()
        statuses = set()
        for _ in range(150):
            data = bytearray(good)
            for _ in range(numbers.randrange(1, 6)):
                place = numbers.randrange(len(data))
                data[place] = numbers.choice((0, 0xFF, numbers.randrange(256)))
            if numbers.randrange(4) == 0:
                del data[numbers.randrange(len(data)):]
            status, _, error = run("--calls", "--binary", self.file("bad", data), self.trace)
            self.assertIn(status, (0, 1, 2), error)
            statuses.add(status)
        self.assertEqual(statuses, {0, 1, 2})


def log_of(listing):
    """The line that the emulator writes for a thread."""
    digest = 0xcbf29ce484222325
    lines = listing.splitlines()
    for line in lines:
        digest = (digest ^ int(line, 16)) * 0x100000001b3 & (1 << 64) - 1
    return f"instructions {len(lines)} hash {digest:016x}\n"


class PerfData(Folder):
    """Recordings of pt_record: the emulator's logs say what executed."""

    def setUp(self):
        super().setUp()
        if not CAN_RECORD:
            self.skipTest("qemu-x86_64")
        self.data = self.folder / "perf.data"

    def record(self, *program):
        raw = self.folder / "raw"
        shutil.rmtree(raw, ignore_errors=True)
        done = subprocess.run([PT_RECORD, "-o", self.data, "--check", "--raw", raw, *program],
                              capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {path.name.split(".")[1]: path.read_text() for path in raw.glob("*.log")}

    def log_of(self, tid):
        status, out, error = run("--instructions", "--tid", tid, self.data)
        self.assertEqual((status, error), (0, ""))
        return log_of(out)

    def test_the_instructions_of_a_program_and_its_libraries(self):
        for tid, expected in self.record("ls", "/").items():
            self.assertEqual(self.log_of(tid), expected)

    def test_the_instructions_of_processes_that_fork(self):
        logs = self.record("sh", "-c", "(exit 3); (exit 4); true")
        self.assertEqual(len(logs), 3)
        for tid, expected in logs.items():
            self.assertEqual(self.log_of(tid), expected)

    def test_the_stacks_have_all_instructions(self):
        (expected,) = self.record("true").values()
        status, out, error = run("--folded", self.data)
        self.assertEqual((status, error), (0, ""))
        lines = out.splitlines()
        self.assertRegex(lines[0], r"^thread \d+/\d+$")
        counted = sum(int(line.rsplit(" ", 1)[1]) for line in lines[1:])
        self.assertEqual(f"instructions {counted}", " ".join(expected.split()[:2]))

    def test_the_calls_are_those_of_perf(self):
        if PERF is None:
            self.skipTest("qemu-x86_64 and perf")
        self.record("true")
        done = subprocess.run([PERF, "script", "-i", self.data, "--itrace=cr", "-F", "+flags"],
                              capture_output=True, text=True, cwd=self.folder)
        theirs = re.findall(r"branches:u: +(call|return) +([0-9a-f]+) .* => +([0-9a-f]+) ",
                            done.stdout)
        self.assertGreater(len(theirs), 500)
        edges = iter(re.findall(r"^edge 0x(\w+) 0x(\w+)$", run("--edges", self.data)[1], re.M))
        for _, start, to in theirs:  # in this order, among other branches
            self.assertIn((start, to), edges)
        tree = run("--calls", self.data)[1]
        calls = len(re.findall(r"\(\);$|\(\) \{$", tree, re.M))
        ends = len(re.findall(r"\(\);|\} /\* [^[]", tree))
        tail_calls = tree.count("[tail of ")
        returns = ends - tail_calls - len(
            re.findall(r"^(?!.*\[syscall).*not returned", tree, re.M))
        self.assertEqual(calls, sum(kind == "call" for kind, _, _ in theirs))
        self.assertEqual(returns, sum(kind == "return" for kind, _, _ in theirs))

    def test_the_names_are_those_of_perf_and_objdump(self):
        if PERF is None:
            self.skipTest("qemu-x86_64 and perf")
        self.record("ls", "/")

        def said(*command):
            return subprocess.run([*map(str, command)], capture_output=True, text=True,
                                  cwd=self.folder, check=True).stdout

        theirs = re.findall(r"\t\s+(\S+)\s*$", said(PERF, "script", "--call-trace"), re.M)
        addresses = [int(address, 16) for address in re.findall(
            r"branches:u: +call .* => +([0-9a-f]+) ",
            said(PERF, "script", "--itrace=c", "-F", "+flags"))]
        mapped = [(int(start, 16), int(size, 16), int(offset, 16), path)
                  for start, size, offset, path in re.findall(
                      r"MMAP2 .*\[0x(\w+)\(0x(\w+)\) @ (?:0x)?(\w+) .*r-xp (\S+)",
                      said(PERF, "script", "--show-mmap-events"))]
        tables = {}

        def names_of(address):
            """The name of a PLT entry by objdump, or the place in the file.

            perf counts relocations: in libc, where some have no symbol, its names are of others.
            """
            start, _, offset, path = next(one for one in mapped if 0 <= address - one[0] < one[1])
            place = address - start + offset
            if path not in tables:
                code = said("objdump", "-d", "-j", ".plt", "-j", ".plt.got", "-j", ".plt.sec", path)
                tables[path] = {int(at, 16): name for at, name in
                                re.findall(r"^([0-9a-f]+) <(\S+)@plt>:", code, re.M)}
            name = tables[path].get(place)
            if name is None:
                return {f"{pathlib.Path(path).name}+0x{place:x}"}
            if not name.startswith("*ABS*+0x"):
                return {f"{name}@plt"}
            function = name.removeprefix("*ABS*+0x").rjust(16, "0")
            return {f"{one}@plt" for one in re.findall(
                rf"^{function} \w (\w+)", said("nm", "-D", path), re.M)}

        tree = run("--calls", self.data)[1]
        ours = re.findall(r"\| +(\S+?)\(\)(?:;| \{)$", tree, re.M)
        self.assertGreater(len(theirs), 3000)
        self.assertEqual((len(ours), len(addresses)), (len(theirs), len(theirs)))
        others = set()
        for our, their, address in zip(ours, theirs, addresses):
            if their.endswith("@plt") or their == f"{address:x}":
                others.add((our, address))
            else:
                self.assertEqual(our, their)
        for our, address in others:
            self.assertIn(our, names_of(address))
        self.assertGreater(sum(our.endswith("@plt") for our, _ in others), 20)

    def test_the_calls_of_one_file(self):
        program = self.folder / "program"
        source = self.file("program.c", b"""
            #include <stdlib.h>
            static int order(const void* a, const void* b) { return *(int*)a - *(int*)b; }
            __attribute__((noinline)) int leaf(int x) { return x * 3; }
            __attribute__((noinline)) int middle(int x) { return leaf(x) + leaf(x + 1); }
            int main(void) { int v[2] = {2, 1}; qsort(v, 2, 4, order); return middle(v[0]) - 9; }
        """)
        subprocess.run([os.environ.get("CC", "gcc"), "-O1", "-o", program, source], check=True)
        self.record(program)
        found = []
        for file in (program, "program"):
            out = run("--calls", "--dso", file, self.data)[1]
            found.append([line.split("| ")[1] for line in out.splitlines()[1:]])
        self.assertEqual(found[0], found[1])
        (begin,) = [i for i, line in enumerate(found[0]) if line.strip() == "main() {"]
        in_main = [line.strip() for line in found[0][begin:]]
        self.assertEqual([line for line in in_main[:in_main.index("} /* main */")]
                          if "tail of" not in line], [
            "main() {", "qsort@plt();", "order();", "middle() {", "leaf();", "leaf();",
            "} /* middle */"])
        self.assertEqual(run("--calls", "--dso", "rogram", self.data),
                         (2, "", "pt_flow: rogram: no process executes this file\n"))
        symbols = subprocess.run(["nm", program], capture_output=True, text=True).stdout
        functions = {name: int(address, 16) for address, name in
                     re.findall(r"^(\w+) [tT] (main|order|leaf|middle)$", symbols, re.M)}
        self.assertEqual(len(functions), 4)
        for traced in (self.data, self.folder / "raw"):
            done = subprocess.run([PT_FLOW, "--drcov", traced], capture_output=True)
            text, _, table = done.stdout.partition(b" bbs\n")
            module = re.search(rf"^(\d+), 0x(\w+), .*, {program}$", text.decode(), re.M)
            blocks = {offset for offset, _, number in struct.iter_unpack("<IHH", table)
                      if number == int(module[1])}
            self.assertLessEqual(set(functions.values()), blocks)

    def test_the_calls_of_handlers_and_of_what_catches_exceptions(self):
        program = self.folder / "program"
        source = self.file("program.cpp", b"""
            #include <csignal>
            volatile int count;
            void handler(int) { count = count + 1; }
            __attribute__((noinline)) void thrower(int i) { throw i; }
            __attribute__((noinline)) void after() { count = count + 2; }
            int main() {
                std::signal(SIGUSR1, handler);
                std::raise(SIGUSR1);
                for (int i = 0; i < 3; ++i) { try { thrower(i); } catch (int) { after(); } }
                return 0;
            }
        """)
        subprocess.run([os.environ.get("CXX", "g++"), "-O1", "-o", program, source], check=True)
        self.record(program)
        out = run("--calls", "--dso", program, self.data)[1]
        lines = [re.sub(r"\((?:int|)\)|^_Z\d+|i?\(\)", "", line.split("| ")[1])
                 for line in out.splitlines()[1:]]
        (main,) = [re.match(" *", line)[0] for line in lines if line.strip() == "main {"]
        self.assertEqual(sum(line.startswith(main + "  _Z5afterv") for line in lines), 3)
        self.assertEqual(sum(line.startswith(main + "  _Z7thrower") for line in lines), 3)
        self.assertEqual(sum(line.startswith(main + "  raise@plt") for line in lines), 1)
        self.assertEqual(sum(re.match(" +_Z7handler.* /\\* event \\*/$", line) is not None
                             for line in lines), 1)
        self.assertIn(main + "} /* main */", lines)

    def test_a_directory_of_raw_output_has_the_code(self):
        jit = self.folder / "jit"
        subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-pthread",
                        traces.ROOT / "tests/differential/programs/jit.cpp", "-o", jit], check=True)
        raw = self.folder / "raw"
        for program in (["sh", "-c", "(exit 3); true"], [jit]):
            logs = self.record(*program)
            for options in ((), ("--jobs", 1)):
                for tid, expected in logs.items():
                    status, out, error = run("--instructions", "--tid", tid, *options, raw)
                    self.assertEqual((status, error), (0, ""))
                    self.assertEqual(log_of(out), expected)
        self.record("ls", "/")
        self.assertEqual(run("--folded", raw), run("--folded", self.data))

        def tree(*options):
            return [re.sub(r"^ *[\d.]+", "", line)
                    for line in run("--calls", *options)[1].splitlines()]

        self.assertEqual(tree(raw), tree(self.data))
        timed = run("--calls", "--times", raw)[1].splitlines()[1:]
        self.assertEqual([line[48:] for line in timed],
                         run("--calls", raw)[1].splitlines()[1:])
        times = [float(line[:22]) for line in timed]
        self.assertEqual(times, sorted(times))
        for arguments, message in ((["--image", f"{self.data}@0", raw], "has its code"),
                                   (["--tid", "1", raw], "no trace of this thread"),
                                   (["--stream", "0", raw], "takes a perf.data file")):
            status, _, error = run(*arguments)
            self.assertEqual(status, 2)
            self.assertIn(message, error)
        (raw / "settings").write_text("nothing")
        self.assertIn("'nothing'", run(raw)[2])

    def test_files_that_are_not_there_are_named_once_and_are_gaps(self):
        self.record("true")
        status, out, error = run("--calls", "--symfs", self.folder / "none", self.data)
        self.assertEqual(status, 1)
        self.assertRegex(out, r"not known: missing-code")
        self.assertEqual(len(error.splitlines()), len(set(error.splitlines())))
        self.assertIn("cannot be read: its code is missing", error)

    def test_wrong_usage(self):
        self.record("true")
        for arguments, message in ((["--tid", "1", self.data], "no trace of this thread"),
                                   (["--image", f"{self.data}@0", self.data], "names the files")):
            status, _, error = run(*arguments)
            self.assertEqual(status, 2)
            self.assertIn(message, error)


class Switches(Folder):
    """One CPU executes two processes, whose code differs at the same addresses."""

    CODE = {100: bytes.fromhex("90 75fd"), 200: bytes.fromhex("90 90 75fc")}  # NOPs; JNZ 401000H
    MMAP2, SWITCH, OUT = 10, 14, 0x2000

    def setUp(self):
        super().setUp()
        self.event = made.Event(config=0x600 | 3 << 14, sample_type=made.TID | made.TIME | made.CPU,
                                ids=[1])

    def end(self, process, time):
        return made.id_end(self.event, process, time, 0), ""

    def mapping(self, process, path, time=0, address=0x401000):
        body = (made.u32(process, process) + made.u64(address, 0x1000, 0) + made.u32(0, 0) +
                made.u64(0, 0) + made.u32(5, 2) + made.c_string(str(path).encode()))
        return made.Record(self.MMAP2, body, "", misc=2, end=self.end(process, time))

    def switch(self, process, time, is_out):
        return made.Record(self.SWITCH, b"", "", misc=self.OUT * is_out,
                           end=self.end(process, time))

    @staticmethod
    def slice_of(ticks, taken):
        """A slice that begins at TSC `ticks`. The JNZ is taken `taken` times; then tracing ends."""
        tsc = (ticks & (1 << 56) - 1).to_bytes(7, "little")
        ctc = (ticks // 84 & 0xFFFF).to_bytes(2, "little")
        start = made.PSB + b"\x19" + tsc + b"\x02\x73" + ctc + bytes(3) + made.PSBEND
        branches = b"".join(b"\x06" for _ in range(taken))
        return start + bytes.fromhex("9901 71001040000000") + branches + b"\x01"

    def file_of(self, slices, records):
        """`slices`: process, TSC, and number of taken branches. A TSC tick is 0.5 ns."""
        trace = b""
        for process, ticks, taken in slices:
            trace += self.slice_of(ticks, taken)
            records += [self.switch(process, 77 + ticks // 2 - 100, False),
                        self.switch(process, 77 + ticks // 2 + 1000, True)]
        records.append(made.auxtrace(made.padded(trace), tid=0xFFFFFFFF, cpu=0))
        data = made.file_of([self.event], [made.info_of(), *records])[0]
        return self.file("perf.data", data)

    def expected(self, slices):
        lines = []
        for process, _, taken in slices:
            size = len(self.CODE[process])
            lines += [f"0x{0x401000 + i:x}" for i in range(size - 1)] * (taken + 1)
        return lines

    def test_no_instruction_goes_to_the_other_process(self):
        numbers = random.Random(1)
        paths = {process: self.file(f"code{process}", code) for process, code in self.CODE.items()}
        for _ in range(20):
            slices = [(numbers.choice((100, 200)), 84 * 8 * 100 * (i + 1), numbers.randrange(1, 9))
                      for i in range(numbers.randrange(1, 30))]
            records = [self.mapping(process, path) for process, path in paths.items()]
            file = self.file_of(slices, records)
            status, out, error = run("--instructions", file)
            self.assertEqual((status, error), (0, ""))
            self.assertEqual(out.splitlines(), self.expected(slices))
            counts = {process: sum(len(self.expected([one])) for one in slices if one[0] == process)
                      for process in self.CODE}
            folded = run("--folded", file)[1].split("thread ")[1:]
            self.assertEqual({int(one.split("/")[0]): int(one.split()[-1]) for one in folded},
                             {process: count for process, count in counts.items() if count != 0})

    def record_of(self, kind, process, time, body, misc=0):
        return made.Record(kind, body, "", misc=misc, end=self.end(process, time))

    def test_what_other_records_say_of_code_and_threads(self):
        fork, leave, start, mapping, lost = 7, 4, 12, self.MMAP2, 2
        old, new = (self.file(f"code{process}", code) for process, code in self.CODE.items())
        code = {old: self.expected([(100, 0, 1)]), new: self.expected([(200, 0, 1)])}
        gap = ["gap"]

        def ns(i):
            return 77 + 84 * 400 * (i + 1)

        def task(process, parent, time):
            return made.u32(process, parent, process, parent) + made.u64(time)

        def forked(process, parent, time, misc=0):
            return self.record_of(fork, process, time, task(process, parent, time), misc)

        def data(process, time):  # not executable
            body = (made.u32(process, process) + made.u64(0x401000, 0x1000, 0) + made.u32(0, 0) +
                    made.u64(0, 0) + made.u32(1, 2) + made.c_string(b"/data"))
            return self.record_of(mapping, process, time, body, 2)

        ends = self.record_of(leave, 100, ns(1) - 200, task(100, 100, 0))
        cases = {
            "a pid that is used again": (
                [self.mapping(100, old), ends, self.mapping(1, new),
                 forked(100, 1, ns(1) - 190)], [old, new], (100, 100)),
            "a made FORK has no code": (
                [self.mapping(100, old), forked(200, 100, 0, 1 << 13)], [old, None], (100, 200)),
            "a forked process has the code": (
                [self.mapping(100, old), forked(200, 100, 0)], [old, old], (100, 200)),
            "data over code": (
                [self.mapping(100, old), data(100, ns(1) - 200)], [old, None], (100, 100)),
            "a mapping of another machine": (
                [self.mapping(100, old), made.Record(
                    mapping, self.mapping(100, new, ns(1) - 200).data[8:-24], "", misc=5,
                    end=self.end(100, ns(1) - 200))], [old, old], (100, 100)),
        }
        for name, (records, files, processes) in cases.items():
            with self.subTest(name):
                slices = [(process, 84 * 800 * (i + 1), 1) for i, process in enumerate(processes)]
                out = run("--instructions", self.file_of(slices, list(records)))[1]
                wanted = [line for one in files for line in (code[one] if one else gap)]
                self.assertEqual([line.split()[0] for line in out.splitlines()], wanted)
        with self.subTest("ITRACE_START names the thread"):
            trace = self.slice_of(84 * 800, 1)
            records = [self.mapping(100, old),
                       self.record_of(start, 100, ns(0) - 200, made.u32(100, 100)),
                       made.auxtrace(made.padded(trace), tid=0xFFFFFFFF, cpu=0)]
            file = self.file("perf.data", made.file_of([self.event], [made.info_of(), *records])[0])
            self.assertEqual(run("--instructions", file)[1].splitlines(), code[old])
        with self.subTest("after LOST, the thread is not known up to the next switch"):
            slices = [(100, 84 * 800 * (i + 1), 1) for i in range(2)]
            records = [self.mapping(100, old)]
            file = self.file_of(slices, records)
            out = run("--instructions", file)[1]
            self.assertEqual(out.splitlines(), code[old] * 2)
            records = [one for one in records if one.type != 71]
            records = records[:2] + [self.record_of(lost, 100, ns(1), made.u64(0, 3))]
            trace = b"".join(self.slice_of(ticks, 1) for _, ticks, _ in slices)
            records.append(made.auxtrace(made.padded(trace), tid=0xFFFFFFFF, cpu=0))
            file = self.file("perf.data", made.file_of([self.event], [made.info_of(), *records])[0])
            self.assertNotEqual(run("--instructions", file)[1].splitlines(), code[old] * 2)

    def test_without_times_the_exit_of_a_process_is_no_end_of_its_code(self):
        """As `perf record --per-thread` writes it: COMM, MMAP2 and EXIT have no times."""
        self.event = made.Event(config=0x600 | 3 << 14, sample_type=made.TID, ids=[1])
        comm, leave, exec_bit = 3, 4, 0x2000
        path = self.file("code100", self.CODE[100])
        records = [
            made.Record(comm, made.u32(100, 100) + made.c_string(b"code"), "", misc=exec_bit,
                        end=self.end(100, 0)),
            self.mapping(100, path),
            made.Record(leave, made.u32(100, 100, 100, 100) + made.u64(0), "",
                        end=self.end(100, 0)),
            made.auxtrace(made.padded(self.slice_of(84 * 800, 2)), tid=100)]
        file = self.file("perf.data", made.file_of([self.event], [made.info_of(), *records])[0])
        status, out, _ = run("--instructions", file)
        lines = [line.split()[0] for line in out.splitlines() if line.startswith("0x")]
        self.assertEqual((status, lines), (0, self.expected([(100, 0, 2)])))

    def test_trace_that_is_missing_is_a_gap(self):
        path = self.file("code100", self.CODE[100])
        first = made.padded(self.slice_of(84 * 800, 1)[:-1])  # tracing goes on
        second = made.padded(self.slice_of(84 * 1600, 1))
        records = [self.mapping(100, path), self.switch(100, 1, False),
                   made.auxtrace(first, tid=0xFFFFFFFF, cpu=0),
                   made.auxtrace(second, offset=len(first) + 64, tid=0xFFFFFFFF, cpu=0)]
        file = self.file("perf.data", made.file_of([self.event], [made.info_of(), *records])[0])
        for jobs in (1, 2):
            status, out, _ = run("--instructions", "--jobs", jobs, file)
            lines = [line.split()[:2] for line in out.splitlines() if line.startswith("gap")]
            self.assertEqual((status, lines), (1, [["gap", "missing-trace"]]))

    def test_the_coverage_of_two_processes(self):
        paths = {process: self.file(f"code{process}", code) for process, code in self.CODE.items()}
        slices = [((100, 200)[i % 2], 84 * 8 * 100 * (i + 1), i + 1) for i in range(8)]
        file = self.file_of(slices, [self.mapping(process, path)
                                     for process, path in paths.items()])
        done = subprocess.run([PT_FLOW, "--drcov", file], capture_output=True)
        text, _, table = done.stdout.partition(b" bbs\n")
        self.assertIn(f"0, 0x401000, 0x402000, 0x0, {paths[100]}\n"
                      f"1, 0x401000, 0x402000, 0x0, {paths[200]}\n", text.decode())
        self.assertEqual(list(struct.iter_unpack("<IHH", table)), [(0, 3, 0), (0, 4, 1)])
        counts = subprocess.run([PT_FLOW, "--bitmap", "1K", file], capture_output=True).stdout
        self.assertEqual(sum(counts), len(run("--edges", file)[1].splitlines()))

    def test_the_instructions_of_a_time(self):
        paths = {process: self.file(f"code{process}", code) for process, code in self.CODE.items()}
        slices = [((100, 200)[i % 2], 84 * 8 * 100 * (i + 1), i + 1) for i in range(8)]
        file = self.file_of(slices, [self.mapping(process, path)
                                     for process, path in paths.items()])
        for first, last in ((0, 7), (2, 4), (5, 5), (6, 7)):
            start, end = (77 + slices[i][1] // 2 for i in (first, last))
            for times in (f"{start}-{end}", f"{start // 10**9}.{start % 10**9:09}-{end}"):
                status, out, error = run("--instructions", "--time", times, file)
                self.assertEqual((status, error), (0, ""))
                self.assertEqual(out.splitlines(), self.expected(slices[first:last + 1]))

    def test_between_the_bounds_of_time_the_process_is_not_known(self):
        paths = {process: self.file(f"code{process}", code) for process, code in self.CODE.items()}
        ticks = 84 * 8 * 100
        records = [self.mapping(process, path) for process, path in paths.items()]
        # The switch is within the ticks up to the next MTC, which is due after 84 * 8.
        records += [self.switch(200, 77 + ticks // 2 + 200, False)]
        status, out, _ = run("--instructions", self.file_of([(100, ticks, 2)], records))
        self.assertEqual(status, 1)
        self.assertTrue(out.startswith("gap missing-code"), out)

    def test_code_that_is_mapped_over_other_code_is_that_of_its_time(self):
        first = self.file("first", self.CODE[100])
        second = self.file("second", self.CODE[200])
        slices = [(100, 84 * 800 * (i + 1), 3) for i in range(6)]
        change = 77 + slices[3][1] // 2 - 50
        records = [self.mapping(100, first), self.mapping(100, second, change)]
        status, out, error = run("--instructions", self.file_of(slices, records))
        self.assertEqual((status, error), (0, ""))
        wanted = self.expected(slices[:3]) + self.expected([(200, 0, 3)] * 3)
        self.assertEqual(out.splitlines(), wanted)


class Code(Switches):
    """Where the code of a perf.data file is."""

    ID = bytes(range(20))
    LEAF = [("leaf", 0x401000, 3)]

    def setUp(self):
        super().setUp()
        self.slices = [(100, 84 * 800, 3)]
        self.executed = ["0x401000", "0x401001"] * 4

    def elf(self, name, build_id=b"", code=None, **how):
        return self.file(name, made_elf(code or self.CODE[100], 0x401000, self.LEAF,
                                        build_id=build_id, **how))

    def mapped(self, path, offset=0xB0, build_id=b"", address=0x401000, process=100, feature=b""):
        """A file with a mapping, that executes `slices`."""
        identity = (struct.pack("<B3x20s", len(build_id), build_id) if build_id
                    else made.u32(0, 0) + made.u64(0, 0))
        body = (made.u32(process, process) + made.u64(address, 0x1000, offset) + identity +
                made.u32(5, 2) + made.c_string(str(path).encode()))
        records = [made.Record(self.MMAP2, body, "", misc=2 | (1 << 14 if build_id else 0),
                               end=self.end(process, 0))]
        self.file_of(self.slices, records)
        if feature:
            data = made.file_of([self.event], [made.info_of(), *records], {2: feature})[0]
            self.file("perf.data", data)
        return self.folder / "perf.data"

    def entry(self, path, build_id):
        name = made.c_string(str(path).encode())
        return (struct.pack("<IHHI20sI", 0, 0, 36 + len(name), 100, build_id, 0) + name)

    def check_code(self, file, *options, message=None):
        status, out, error = run("--instructions", *options, file)
        if message is None:
            self.assertEqual((status, error), (0, ""))
            self.assertEqual(out.splitlines(), self.executed)
        else:
            self.assertEqual(status, 1)
            self.assertIn("gap missing-code", out)
            self.assertIn(message, error)
            self.assertEqual([line for line in error.splitlines()
                              if not re.match("pt_flow: no (code|instructions)", line)],
                             error.splitlines()[:1])

    def test_a_file_must_have_the_build_id_of_the_mapping(self):
        right = self.elf("right", self.ID)
        self.check_code(self.mapped(right, build_id=self.ID))
        other = self.mapped(self.elf("other", self.ID[::-1]), build_id=self.ID)
        self.check_code(other, message="has another build id than the recorded file, 000102")
        without = self.mapped(self.elf("without"), build_id=self.ID)
        self.check_code(without, message="has another build id")
        self.check_code(self.mapped(self.folder / "none", build_id=self.ID), message="be read")

    def test_a_file_must_have_the_build_id_of_the_table(self):
        right = self.elf("right", self.ID)
        self.check_code(self.mapped(right, feature=self.entry(right, self.ID)))
        other = self.mapped(right, feature=self.entry(right, self.ID[::-1]))
        self.check_code(other, message="has another build id than the recorded file, 131211")
        self.check_code(self.mapped(right, feature=self.entry("/other", self.ID[::-1])))

    def test_the_file_that_perf_keeps(self):
        kept = self.folder / ".debug/.build-id/00" / self.ID[1:].hex()
        kept.mkdir(parents=True)
        (kept / "elf").write_bytes(self.elf("made", self.ID).read_bytes())
        file = self.mapped(self.elf("changed", self.ID[::-1]), build_id=self.ID)
        with unittest.mock.patch.dict(os.environ, HOME=str(self.folder)):
            self.check_code(file)

    def test_the_vdso(self):
        vdso = self.elf("vdso", self.ID, kind=SHARED)
        file = self.mapped("[vdso]", build_id=self.ID)
        self.check_code(file, "--vdso", vdso)
        self.check_code(file, "--vdso", self.elf("other", self.ID[::-1]),
                        message="[vdso]: is not the recorded one")
        self.check_code(file, message="[vdso]: is not the recorded one")
        self.check_code(self.mapped("[vdso]"), message="see --vdso")

    def test_the_names_of_debugging_symbols_and_of_a_jit_compiler(self):
        code = self.file("code", made_elf(self.CODE[100], 0x401000, build_id=self.ID))
        file = self.mapped(code)
        self.assertEqual(run("--folded", file)[1], "thread 100/100\ncode+0xb0 8\n")
        symbols = self.folder / "usr/lib/debug/.build-id/00" / (self.ID[1:].hex() + ".debug")
        symbols.parent.mkdir(parents=True)
        symbols.write_bytes(self.elf("made").read_bytes())
        root = self.folder / str(self.folder)[1:]
        root.parent.mkdir(parents=True)
        root.symlink_to(self.folder)
        stacks = run("--folded", "--symfs", self.folder, file)[1]
        self.assertEqual(stacks, "thread 100/100\nleaf 8\n")
        symbols.unlink()
        (self.folder / "tmp").mkdir(exist_ok=True)
        (self.folder / "tmp/perf-100.map").write_text(
            "x\n401000 3 Lold;\n401000 3 Lmade;by a\x01compiler\n402000 3 other\n")
        stacks = run("--folded", "--symfs", self.folder, file)[1]
        self.assertEqual(stacks, "thread 100/100\nLmade:by a?compiler 8\n")

    def kernel_file(self, records):
        """The JNZ is at FFFFFFFF81000000H."""
        trace = self.slice_of(84 * 800, 3).replace(
            bytes.fromhex("71001040000000"), bytes.fromhex("d1000000 81ffffffff"))
        records += [self.switch(100, 77 + 84 * 400 - 100, False),
                    made.auxtrace(made.padded(trace), tid=0xFFFFFFFF, cpu=0)]
        self.executed = ["0xffffffff81000000", "0xffffffff81000001"] * 4
        data = made.file_of([self.event], [made.info_of(), *records])[0]
        return self.file("perf.data", data)

    def test_the_names_are_those_of_the_program_that_executes(self):
        first, second = (self.file(name, made_elf(self.CODE[process], 0x401000,
                                                  [(name, 0x401000, size)]))
                         for name, process, size in (("alpha", 100, 3), ("beta", 200, 4)))
        slices = [(100, 84 * 800, 1), (100, 84 * 1600, 1)]
        change = 77 + 84 * 800 - 200
        body = made.u32(100, 100) + made.c_string(b"beta")
        records = [self.mapping(100, first), self.record_of(3, 100, change, body, 1 << 13),
                   self.mapping(100, second, change + 10)]
        for one in records:  # the code follows the header of the file
            one.data = one.data.replace(made.u64(0x401000, 0x1000, 0),
                                        made.u64(0x401000, 0x1000, 0xB0))
        file = self.file_of(slices, records)
        self.assertEqual(run("--folded", file)[1],
                         "thread 100/100\nalpha 4\nthread 100/100\nbeta 6\n")
        modules = subprocess.run([PT_FLOW, "--drcov", file], capture_output=True).stdout
        self.assertIn(b"/alpha\n", modules)
        self.assertIn(b"/beta\n", modules)

    def test_the_code_of_the_kernel(self):
        address = 0xFFFFFFFF81000000
        names = self.file("kallsyms", b"ffffffff81000000 T _text\nffffffff81000000 t start\n"
                                      b"ffffffff81000001 D data\nffffffff82000000 t end\t[ext4]\n")
        core = self.file("kcore", made_elf(self.CODE[100], address, kind=CORE))
        self.check_code(self.kernel_file([]), "--kernel", core)
        options = ["--kernel", core, "--kallsyms", names]
        self.assertEqual(run("--folded", *options, self.folder / "perf.data")[1],
                         "thread 100/100\nstart 8\n")
        # vmlinux was linked 200000H lower.
        linked = address - 0x200000
        vmlinux = self.file("vmlinux", made_elf(self.CODE[100], linked, [("_stext", linked, 3)]))
        body = (made.u32(0xFFFFFFFF, 0) + made.u64(address, 0x1000, address) +
                made.c_string(b"[kernel.kallsyms]_stext"))
        loaded = made.Record(1, body, "", misc=1, end=self.end(0, 0))
        self.check_code(self.kernel_file([loaded]), "--kernel", vmlinux)
        self.assertEqual(run("--folded", "--kernel", vmlinux, self.folder / "perf.data")[1],
                         "thread 100/100\n_stext 8\n")
        status, _, error = run("--folded", "--kernel", vmlinux, self.kernel_file([]))
        self.assertEqual(status, 2)
        self.assertIn("its address in the recording is not known", error)
        status, out, _ = run("--instructions", self.kernel_file([]))
        self.assertEqual(status, 1)
        self.assertIn("gap missing-code", out)

    def test_a_directory_with_the_code_of_the_kernel(self):
        file = self.kernel_file([])
        directory = self.folder / "recording"
        (directory / "kcore_dir").mkdir(parents=True)
        file.rename(directory / "data")
        core = made_elf(self.CODE[100], 0xFFFFFFFF81000000, kind=CORE)
        (directory / "kcore_dir/kcore").write_bytes(core)
        self.check_code(directory)

    def test_a_guest_has_no_code_of_the_host(self):
        # A PIP with NR in the PSB+.
        trace = self.slice_of(84 * 800, 3).replace(made.PSBEND,
                                                   bytes.fromhex("0243010000000000") + made.PSBEND)
        path = self.file("code100", self.CODE[100])
        records = [self.mapping(100, path), self.switch(100, 77 + 84 * 400 - 100, False),
                   made.auxtrace(made.padded(trace), tid=0xFFFFFFFF, cpu=0)]
        file = self.file("perf.data", made.file_of([self.event], [made.info_of(), *records])[0])
        status, out, _ = run("--instructions", file)
        self.assertEqual(status, 1)
        self.assertTrue(out.startswith("gap missing-code"), out)
        self.assertNotIn("\n0x", out)


class WithoutTimes(Folder):
    """Traces without TSC packets: which code executed at which time is not known."""

    COMM, EXIT, FORK, MMAP2, SWITCH = 3, 4, 7, 10, 14
    CODE = {"one": bytes.fromhex("90 75fd"), "two": bytes.fromhex("90 90 75fc"),
            "three": bytes.fromhex("90 90 90 75fb")}  # NOPs, and a JNZ to the first of them
    AT = {"one": 0x401000, "two": 0x501000, "three": 0x501000}

    def setUp(self):
        super().setUp()
        self.times = 0
        self.paths = {name: self.file(name, code.ljust(0x1000, b"\x90"))
                      for name, code in self.CODE.items()}

    def record(self, kind, body, process, misc=2):
        self.times += 10
        return made.Record(kind, body, "", misc=misc,
                           end=(made.id_end(self.event, process, self.times, 0), ""))

    def mapping(self, process, name):
        return self.record(self.MMAP2, made.u32(process, process) +
                           made.u64(self.AT[name], 0x1000, 0) + made.u32(0, 0) + made.u64(0, 0) +
                           made.u32(5, 2) + made.c_string(str(self.paths[name]).encode()), process)

    def execs(self, process):
        return self.record(self.COMM, made.u32(process, process) + made.c_string(b"program"),
                           process, 0x2000)

    def forks(self, process, parent):
        return self.record(self.FORK, made.u32(process, parent, process, parent) + made.u64(0),
                           parent)

    def exits(self, process):
        return self.record(self.EXIT, made.u32(process, process, process, process) + made.u64(0),
                           process)

    def runs(self, process):
        return [self.record(self.SWITCH, b"", process, 0),
                self.record(self.SWITCH, b"", process, 0x2000)]

    def trace(self, names):
        """Each piece of code is executed twice."""
        return made.PSB + made.PSBEND + b"\x99\x01" + b"".join(
            b"\x71" + self.AT[name].to_bytes(6, "little") + b"\x06\x01" for name in names)

    def executed(self, name):
        count = len(self.CODE[name]) - 1
        return [f"0x{self.AT[name] + i:x}" for i in range(count)] * 2

    def check(self, names, records, gaps=(), is_known_to_perf=False, **of):
        """The instructions are known, or, of the names in `gaps`, there are gaps that say why."""
        trace = made.auxtrace(made.padded(self.trace(names)), **of)
        info = made.info_of(numbers=[made.PT_TYPE, 31, 1 << 30, 77, 1, 0x400, 0x800, 0, 0, 1, 0x200,
                                     0x3C000, 168, 2, 2, 24])
        file = self.file("perf.data", made.file_of([self.event], [info, *records, trace])[0])
        wanted = []
        for name in names:
            wanted += ["gap no-time"] if name in gaps else self.executed(name)
        for jobs in (1, 2):
            status, out, said = run("--instructions", "--jobs", jobs, file)
            found = [" ".join(line.split()[:1 + line.startswith("gap")])
                     for line in out.splitlines() if not line.startswith("cpu")]
            self.assertEqual((status, said, found), (int(bool(gaps)), "", wanted))
        if PERF and is_known_to_perf:
            said = subprocess.run([PERF, "script", "--itrace=i0ns", "-F", "ip", "-i", file],
                                  capture_output=True, text=True, cwd=self.folder).stdout
            # perf leaves out the last branch before a TIP.PGD without an IP.
            self.assertEqual([f"0x{line.strip()}" for line in said.splitlines() if line.strip()],
                             [one for name in names for one in self.executed(name)[:-1]])
        return file

    def event_with(self, sample_type):
        # Without TSC, MTC and CYC packets: `intel_pt/tsc=0,mtc=0/u`.
        sample_type |= 1 | made.IDENTIFIER  # without IP, perf prints none
        self.event = made.Event(config=0x2000, sample_type=sample_type, ids=[1])

    def test_one_process_that_executes_other_programs(self):
        for sample_type in (made.TID, made.TID | made.TIME | made.CPU):
            self.event_with(sample_type)
            first = [self.execs(100), self.mapping(100, "one")]
            for of in ({"tid": 100}, {"tid": 100, "cpu": 0}):
                with self.subTest(sample_type=sample_type, of=of):
                    self.check(["one", "two", "one"],
                               [*first, self.execs(100), self.mapping(100, "two"),
                                self.exits(100)], is_known_to_perf=True, **of)
                    # What was mapped at one address differs; what is the same is known.
                    self.check(["two", "one", "three"],
                               [*first, self.mapping(100, "two"), self.execs(100),
                                self.mapping(100, "three"), self.mapping(100, "one")],
                               gaps=("two", "three"), **of)
                    self.check(["two", "one"],
                               [*first, self.mapping(100, "two"), self.mapping(100, "three")],
                               gaps=("two",), **of)

    def test_several_processes_on_one_cpu(self):
        self.event_with(made.TID | made.TIME | made.CPU)
        # The child keeps the code of its parent, and executes another program.
        records = [self.execs(100), self.mapping(100, "one"), self.forks(200, 100),
                   self.execs(200), self.mapping(200, "two")]
        names = ["one", "two", "two", "one"]
        for tid in (100, 0xFFFFFFFF):
            for switches in ([], self.runs(100) + self.runs(200)):
                self.check(names, records + switches, tid=tid, cpu=0)
                self.check(names, [*records, self.forks(300, 200), self.execs(300),
                                   self.mapping(300, "three"), *switches,
                                   *(switches and self.runs(300))],
                           gaps=("two",), tid=tid, cpu=0)
        # A CPU executes only the processes that its records name.
        self.check(names, [*records, self.forks(300, 200), self.execs(300),
                           self.mapping(300, "three"), *self.runs(100), *self.runs(200)],
                   tid=0xFFFFFFFF, cpu=0)

    def test_the_names_of_functions_of_any_process(self):
        self.event_with(made.TID | made.TIME | made.CPU)
        for name in ("one", "two"):
            file = self.check([name], [
                self.execs(100), self.mapping(100, "one"), self.forks(200, 100), self.execs(200),
                self.mapping(200, "two")], tid=100, cpu=0)
            self.assertEqual(run("--folded", file)[1].splitlines(),
                             ["thread ?/?", f"{name}+0x0 {len(self.executed(name))}"])
            done = subprocess.run([PT_FLOW, "--drcov", file], capture_output=True)
            self.assertIn(f"0x0, {self.paths[name]}\n", done.stdout.decode())


class CommandLine(Folder):
    def test_the_forms_of_output(self):
        image = f"{self.file('loop', LOOP)}@0x1000"
        trace = self.file("trace", TRACE)
        for option, expected in (
                ("--instructions", "0x1000\n0x1001\n"),
                ("--runs", "run 0x1000 0x1001 n=2 mode=64\n"),
                ("--blocks", "block 0x1000 0x1001 n=2 mode=64\n"),
                ("--edges", "edge 0x1001 0x1000\n")):
            with self.subTest(option):
                self.assertEqual(run(option, "--image", image, trace), (0, expected, ""))
        self.assertEqual(run("--image", image, trace), run("--runs", "--image", image, trace))
        for address in ("1000", "0X1000"):
            with self.subTest(address):
                same = image.replace("0x1000", address)
                self.assertEqual(run("--image", same, trace), run("--image", image, trace))

    def test_a_ret_that_is_not_compressed_pops_or_keeps_an_entry(self):  # GEN-134
        # 1000: CALL 1010; 1005: CALL 1010; 100A: NOPs; 1010: RET. The first RET goes to 1005, the
        # second to 1010; the third is compressed, to the address that one of the CALLs pushed.
        code = bytes.fromhex("e80b000000 e806000000 909090909090 c3")
        image = f"{self.file('calls', code)}@1000"
        keeps = self.file("keeps", TRACE[:-1] + bytes.fromhex("2d0510 2d1010 06"))
        walked = run("--instructions", "--ret", "keep", "--image", image, keeps)
        self.assertEqual(walked, (0, "0x1000\n0x1010\n0x1005\n0x1010\n0x1010\n", ""))
        status, out, _ = run("--instructions", "--ret", "pop", "--image", image, keeps)
        self.assertEqual((status, "gap wrong-turn" in out), (1, True))
        status, out, error = run("--instructions", "--image", image, keeps)
        self.assertEqual((status, out), walked[:2])
        self.assertIn("--ret keep fits the code in 1 of 1 parts, the first at 0x0", error)
        self.assertEqual(run("--ret", "x", keeps)[0], 2)

    def test_a_gap_is_printed_and_gives_status_1(self):
        trace = self.file("trace", TRACE)
        self.assertEqual(run(trace), (1, "gap missing-code offset=0x1b from=0x1000 "
                                         "missing=0x1000\n",
                                      "pt_flow: no code for 1 address: 0x1000; give --binary, "
                                      "--image or --pages\n"
                                      "pt_flow: no instructions: only gaps: missing-code 1\n"))

    def test_pages(self):
        memory = self.file("mem", bytes(4096) + LOOP + bytes(4094))
        addresses = self.file("addr", b"0x9000\n0x1000\n")
        trace = self.file("trace", TRACE)
        self.assertEqual(run("--pages", memory, addresses, trace)[:2],
                         (0, "run 0x1000 0x1001 n=2 mode=64\n"))
        self.file("addr", b"0x9000\n0x1000 unmapped\n")
        self.assertEqual(run("--pages", memory, addresses, trace)[0], 1)
        for text, message in ((b"0x9000\nx\n", "line 2 is no address"),
                              (b"0x1\n0x2\n0x3\n", "line 3 has no page")):
            self.file("addr", text)
            status, out, error = run("--pages", memory, addresses, trace)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(message, error)

    def test_wrong_usage(self):
        trace = self.file("trace", TRACE)
        loop = self.file("loop", LOOP)
        for arguments, message in (
                ([], "needs a trace"),
                (["--none", trace], "no such option"),
                ([trace, trace], "there is one trace"),
                (["--image", "x", trace], "--image takes FILE@ADDRESS"),
                (["--image", f"{loop}@", trace], "--image: '' is no hexadecimal address"),
                (["--image", f"{loop}@10g0", trace], "'10g0' is no hexadecimal address"),
                (["--image", f"{loop}@10000000000000000", trace], "more than 64 bits"),
                (["--image", self.folder / "none@0x1000", trace], "No such file"),
                (["--image", f"{loop}@0x1000", "--image", f"{loop}@0x1002", trace], "overlap"),
                (["--cpu", "six", trace], "--cpu takes"),
                (["--bitmap", "60", trace], "--bitmap takes a power of two"),
                (["--bitmap", "4096M", trace], "--bitmap takes a power of two"),
                (["--binary", loop, trace], "not an ELF file"),
                (["--binary", f"{loop}@x", trace], "--binary: 'x' is no hexadecimal address"),
                (["--filter", "1,", trace], "--filter: '' is no hexadecimal address"),
                (["--filter", "1", trace], "--filter takes"),
                (["--filter", "1,2"] * 5 + [trace], "at most four filters"),
                (["--jobs", "0", trace], "--jobs takes"),
                (["--times", trace], "--times needs --calls"),
                (["--dso", "x", trace], "--dso needs --calls"),
                (["--calls", "--dso", "x", trace], "need a perf.data file"),
                (["--time", "5", trace], "--time takes"),
                (["--time", "-", trace], "--time takes"),
                (["--time", "9-5", trace], "--time takes"),
                (["--time", "1.1234567891-", trace], "--time takes"),
                (["--time", "1.x-", trace], "--time takes"),
                (["--from", "x", trace], "--from takes"),
                (["--from", "2", "--to", "1", trace], "--from is after --to"),
                (["--stream", "0", trace], "need a perf.data file"),
                (["--mtc-freq", "16", trace], "--mtc-freq takes"),
                ([self.folder / "none"], "No such file")):
            with self.subTest(arguments):
                status, out, error = run(*arguments)
                self.assertEqual((status, out), (2, ""))
                self.assertIn(message, error)
                self.assertTrue(error.startswith("pt_flow: "))

    def test_a_damaged_perf_data_file_is_an_error(self):
        file = self.file("perf.data", b"PERFILE2" + TRACE)
        status, out, error = run(file)
        self.assertEqual((status, out), (2, ""))
        self.assertTrue(error.startswith("pt_flow: "))

    def test_help(self):
        status, out, error = run("--help")
        self.assertEqual((status, error), (0, ""))
        self.assertTrue(out.startswith("usage: pt_flow "))


if __name__ == "__main__":
    skips.main(sys.argv[:1])
