#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of file/perf_data/: perf reads the files that perf_data_file writes.

    perf_data.py PERF_DATA_FILE

Skipped when perf is not installed (Debian: linux-perf).
"""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
from folder import Folder  # noqa: E402

PERF_DATA_FILE = sys.argv[1]

MAIN = 0x401000
CODE = {
    0x00: "740e",        # main: je main+10h
    0x02: "eb1c",        # jmp main+20h
    0x10: "e81b000000",  # call leaf
    0x15: "ffe0",        # jmp rax, which is main
    0x20: "0f05",        # syscall
    0x30: "c3",          # leaf: ret
}
# The branches of one run of the program, as offsets from main; None is outside the trace.
BRANCHES = [(None, 0x00), (0x00, 0x10), (0x10, 0x30), (0x30, 0x15), (0x15, 0x00), (0x02, 0x20),
            (0x20, None)]
KINDS_OF_BRANCHES = ["tr strt", "jcc", "call", "return", "jmp", "jmp", "tr end syscall"]
# How often time had passed before each of them.
STEPS = [0, 1, 1, 1, 2, 2, 3]

# Nanoseconds of a step, and between the two runs of a thread. The TSC has 2 GHz, the crystal
# 25 MHz, the core 4 GHz. Time 1 s is TSC 0.
STEP = {"tsc": 1000, "mtc": 8 * 40, "cyc": 50, "filter": 1000}
BETWEEN_RUNS = {"tsc": 10_000, "mtc": 10_000, "cyc": 150, "filter": 10_000}
THREADS = {100: ("first", 1_001_000_000), 101: ("second-thread-o", 1_001_020_000)}

INFO = {
    "PMU Type": "8", "Time Shift": "31", "Time Muliplier": "1073741824",
    "Time Zero": "1000000000", "Cap Time Zero": "1", "TSC bit": "0x400", "NoRETComp bit": "0x800",
    "Have sched_switch": "0", "Snapshot mode": "0", "Per-cpu maps": "0", "MTC bit": "0x200",
    "MTC freq bits": "0x3c000", "TSC:CTC numerator": "160", "TSC:CTC denominator": "2",
    "CYC bit": "0x2", "Max non-turbo ratio": "20", "Filter string len.": "0", "Filter string": "",
    "Cap Event Trace": "0",
}
RECORDS = {  # name and time: the record
    ("COMM exec", 1000500000): "first:100/100",
    ("MMAP2", 1000500050): "100/100: [0x401000(0x1000) @ 0x1000 08:01 4711 12]: r-xp {program}",
    ("FORK", 1001015000): "(100:101):(100:100)",
    ("COMM", 1001015050): "second-thread-o:100/101",
    ("EXIT", 1001500000): "(100:101):(100:100)",
    ("EXIT", 1001500050): "(100:100):(1:1)",
}

BRANCH = re.compile(r" *(?P<comm>.+?) +100/(?P<tid>\d+) +(?:(?P<time>[\d.]+): +)?branches:u: +"
                    r"(?P<flags>.*?) +(?P<ip>[0-9a-f]+) (?P<from>\S+) => +"
                    r"(?P<addr>[0-9a-f]+) (?P<to>\S+)")


def program():
    """An ELF file with the functions main and leaf, mapped at MAIN from offset 1000H."""
    code = bytearray(b"\x90" * 0x40)
    for at, digits in CODE.items():
        code[at:at + len(digits) // 2] = bytes.fromhex(digits)
    names, sections = b"\0main\0leaf\0", b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, MAIN, 0x30)
    symbols += struct.pack("<IBBHQQ", 6, 0x12, 0, 1, MAIN + 0x30, 1)
    whole, table = bytearray(0x1000), bytes(64)
    for name, kind, flags, address, content, link, info, size in (
            (1, 1, 6, MAIN, code, 0, 0, 0), (7, 2, 0, 0, symbols, 3, 1, 24),
            (15, 3, 0, 0, names, 0, 0, 0), (23, 3, 0, 0, sections, 0, 0, 0)):
        table += struct.pack("<IIQQQQIIQQ", name, kind, flags, address, len(whole), len(content),
                             link, info, 8, size)
        whole += content + bytes(-len(content) % 8)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, MAIN, 64, len(whole), 0, 64, 56, 1, 64, 5, 4)
    head += struct.pack("<IIQQQQQQ", 1, 5, 0x1000, MAIN, MAIN, len(code), len(code), 0x1000)
    whole[:len(head)] = head
    return bytes(whole + table)


def expected_branches(kind, tid):
    """(thread, time, kind, from, to) for the branches of a thread."""
    comm, begin = THREADS[tid]
    found = []
    for run in range(2):
        for step, (start, end), what in zip(STEPS, BRANCHES, KINDS_OF_BRANCHES):
            time = None
            if kind != "untimed":
                time = begin + run * BETWEEN_RUNS[kind] + step * STEP[kind]
            found.append(((comm, tid), time, what, *(0 if at is None else MAIN + at
                                                     for at in (start, end))))
    return found


def symbol(address):
    return {0: "[unknown]", MAIN + 0x30: "leaf"}.get(address, "main")


def nanoseconds(text):
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0"))


class PerfData(Folder):
    def setUp(self):
        super().setUp()
        self.program = self.folder / "program"
        self.program.write_bytes(program())

    def write(self, kind, program_name=None, threads=2):
        path = self.folder / f"{kind}.data"
        subprocess.run([PERF_DATA_FILE, kind, program_name or self.program, path, str(threads)],
                       check=True)
        return path

    def perf(self, *arguments):
        """The output of perf, which must not warn."""
        done = subprocess.run(["perf", *map(str, arguments)], capture_output=True, text=True,
                              timeout=60, check=False, env=os.environ | {
                                  "HOME": str(self.folder), "PAGER": "cat", "LC_ALL": "C"})
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
        self.assertNotRegex("\n".join(lines).lower(), r"\berrors?\b|warning|\bbad\b|\blost\b")
        return done.stdout

    def test_perf_prints_each_branch_with_its_thread_and_time(self):
        for kind in ("untimed", *STEP):
            out = self.perf("script", "--ns", "--itrace=be", "-F",
                            "hw:comm,pid,tid,time,event,ip,sym,addr,flags", "-i", self.write(kind))
            found = []
            for line in out.splitlines():
                match = BRANCH.fullmatch(line)
                self.assertTrue(match, line)
                source, target = int(match["ip"], 16), int(match["addr"], 16)
                self.assertEqual((match["from"], match["to"]), (symbol(source), symbol(target)))
                flags = " ".join(match["flags"].replace("(D)", "").split())
                self.assertEqual("(D)" in match["flags"], kind == "mtc", "interrupts are disabled")
                time = match["time"] and nanoseconds(match["time"])
                found.append(((match["comm"], int(match["tid"])), time, flags, source, target))
            threads = (101, 100) if kind == "untimed" else (100, 101)  # by EXIT, or by time
            self.assertEqual(found, sum((expected_branches(kind, tid) for tid in threads), []))

    def test_perf_reads_files_of_1_2_and_400_threads(self):
        for threads in (1, 2, 400):
            for kind in ("untimed", "tsc"):
                out = self.perf("script", "--itrace=be", "-F", "tid,event,ip", "-i",
                                self.write(kind, threads=threads))
                self.assertEqual([line.split()[0] for line in out.splitlines()].count("100"), 14)
                self.assertEqual(len(set(line.split()[0] for line in out.splitlines())), threads)
                self.assertEqual(len(out.splitlines()), 14 * threads, (kind, threads))

    def test_perf_prints_each_instruction(self):
        out = self.perf("script", "--itrace=i1ie", "-F", "ip", "-i", self.write("tsc"))
        run = [0x00, 0x10, 0x30, 0x15, 0x00, 0x02, 0x20]
        self.assertEqual([int(line, 16) for line in out.split()], [MAIN + at for at in run] * 4)

    def test_perf_prints_AUXTRACE_INFO_as_written(self):
        changes = {
            "untimed": {"Time Shift": "0", "Time Muliplier": "1", "Time Zero": "0",
                        "Cap Time Zero": "0"},
            "tsc": {},
            "mtc": {"Cap Event Trace": "1"},
            "filter": {"Filter string len.": str(len(f"filter 0x1000/0x22@{self.program}")),
                       "Filter string": f"filter 0x1000/0x22@{self.program}"},
        }
        for kind, change in changes.items():
            dump = self.perf("script", "-D", "-i", self.write(kind))
            for name, value in (INFO | change).items():
                self.assertRegex(dump, rf"(?m)^  {re.escape(name)} +{re.escape(value)} *$", kind)

    def test_perf_prints_the_records_as_written(self):
        for kind in ("untimed", "tsc"):
            dump = self.perf("script", "-D", "-i", self.write(kind))
            for (name, time), text in RECORDS.items():
                when = "" if kind == "untimed" else time
                text = text.format(program=self.program)
                colon = r"" if name in ("FORK", "EXIT") else r":? ?"
                self.assertRegex(dump, rf"(?m)^{when}.*0x[0-9a-f]+ \[0x[0-9a-f]+\]: "
                                       rf"PERF_RECORD_{name}{colon}{re.escape(text)}$", kind)
            self.assertEqual(dump.count(": PERF_RECORD_FINISHED_ROUND"), 2)
            pieces = re.findall(r"PERF_RECORD_AUXTRACE size: (\S+)  offset: (\S+)  ref: (\S+)  "
                                r"idx: (\d)  tid: (\d+)  cpu: (\S+)", dump)
            size, offset = pieces[0][0], int(pieces[1][1], 16)
            self.assertEqual((int(size, 16), int(size, 16) % 8), (offset, 0))
            self.assertEqual(pieces, [(size, where, hex(2_000_000 + begin), idx, tid, "-1")
                                      for idx, tid, where, begin in (
                                          ("0", "100", "0", 0), ("0", "100", size, 20_000),
                                          ("1", "101", "0", 40_000), ("1", "101", size, 60_000))])

    def test_perf_reports_the_branches_of_each_thread(self):
        out = self.perf("report", "--stdio", "--itrace=b", "--sort", "comm,symbol", "-F",
                        "sample,comm,symbol", "-i", self.write("mtc"))
        rows = [line.split()[:4] for line in out.splitlines() if line and not line.startswith("#")]
        wanted = [[str(count), comm, "[.]", name] for comm, _ in THREADS.values()
                  for count, name in ((10, "main"), (2, "leaf"), (2, "0000000000000000"))]
        self.assertEqual(sorted(rows), sorted(wanted))

    def test_perf_reads_the_longest_file_name(self):
        name = "/" + "x" * 4094
        dump = self.perf("script", "-D", "-i", self.write("tsc", name))
        self.assertIn(f"08:01 4711 12]: r-xp {name}\n", dump)

    def test_perf_shows_the_attributes(self):
        common = ("type: 8, size: 128, config: {config}, {{ sample_period, sample_freq }}: 1, "
                  "sample_type: IP|TID|{time}IDENTIFIER, exclude_kernel: 1, exclude_hv: 1, "
                  "mmap: 1, comm: 1, task: 1, sample_id_all: 1, mmap2: 1, comm_exec: 1")
        for kind, config, time in (("untimed", "0xc000", ""), ("tsc", "0xcc00", "TIME|"),
                                   ("mtc", "0xc600", "TIME|"), ("cyc", "0xc402", "TIME|")):
            out = self.perf("evlist", "-v", "-i", self.write(kind))
            self.assertIn(common.format(config=config, time=time), out)


if __name__ == "__main__":
    if not shutil.which("perf"):
        skips.end("perf", "all")
    skips.main(sys.argv[:1])
