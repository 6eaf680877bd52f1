#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Random systems of processes: pt_flow, and pt_trace while it records, give each instruction to the
thread that executed it.

    pt_flow_processes.py PT_FLOW LIVE_WALK

A system has CPUs, and processes at equal addresses with different code. They are switched, fork,
exec, map code over code, exit, and their numbers are used again. It writes its perf.data file
itself, and knows what each slice of a CPU executed.
"""

import collections
import pathlib
import random
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
from folder import Folder  # noqa: E402

PT_FLOW, LIVE_WALK = sys.argv[1:3]
del sys.argv[1:3]
# Types of records, and bits of their `misc`.
COMM, EXIT, FORK, MMAP2, SWITCH, SWITCH_CPU_WIDE, FINISHED_ROUND = 3, 4, 7, 10, 14, 15, 68
USER, GUEST_USER, COMM_EXEC, SWITCH_OUT, PREEMPTED = 2, 5, 0x2000, 0x2000, 0x4000
PLACES = (0x401000, 0x501000)
VERSIONS = 6


def code_of(version):
    """NOPs, and a JNZ to the first of them."""
    return b"\x90" * (version + 1) + bytes([0x75, 0x100 - (version + 3)])


def executed(place, version, taken):
    """The addresses of all instructions, where the JNZ is taken this often."""
    return [f"0x{place + i:x}" for i in range(version + 2)] * (taken + 1)


class System:
    STEP = 84 * 8 * 10  # TSC ticks between two events: 3360 ns, more than the bounds of a time

    def __init__(self, numbers, folder):
        self.numbers, self.folder = numbers, folder
        self.cpus = numbers.randrange(1, 4)
        self.is_wide = numbers.randrange(2) == 0
        self.event = made.Event(config=0x600 | 3 << 14, ids=[1],
                                sample_type=made.TID | made.TIME | made.CPU)
        self.ticks = self.STEP
        self.records = [[] for _ in range(self.cpus)]
        self.trace = [b""] * self.cpus
        self.expected = [[] for _ in range(self.cpus)]
        self.counts = collections.Counter()
        self.lines = collections.defaultdict(list)  # of each thread
        self.running = [None] * self.cpus      # (pid, tid)
        self.code = {}                         # pid -> {place: version}
        self.threads = collections.defaultdict(set)
        self.next_tid = 1000
        for pid in (100, 200):
            self.code[pid] = {}
            self.threads[pid] = {pid}
            for place in PLACES[:numbers.randrange(1, 3)]:
                self.map(pid, place, numbers.randrange(VERSIONS), time=0)

    # ------------------------------------------------------------------------------ records

    def now(self):
        return 77 + self.ticks // 2

    def record(self, kind, body, thread, misc=0, cpu=None, time=None):
        cpu = self.numbers.randrange(self.cpus) if cpu is None else cpu
        time = self.now() if time is None else time
        end = made.u32(*thread) + made.u64(time) + made.u32(cpu, 0)
        self.records[cpu].append(made.Record(kind, body, "", misc=misc, end=(end, "")))

    def mmap2(self, pid, place, size, path, prot, misc, time):
        body = (made.u32(pid, pid) + made.u64(place, size, 0) + made.u32(0, 0) + made.u64(0, 0) +
                made.u32(prot, 2) + made.c_string(str(path).encode()))
        self.record(MMAP2, body, (pid, pid), misc, time=time)

    def path(self, version):
        return self.folder / f"version{version}"

    def map(self, pid, place, version, time=None):
        self.code[pid][place] = version
        self.mmap2(pid, place, 0x1000, self.path(version), 5, USER, time)

    # ------------------------------------------------------------------------------ events

    def slice(self, cpu):
        """The thread of a CPU is traced for a while."""
        pid, tid = self.running[cpu]
        place, taken = self.numbers.choice(PLACES), self.numbers.randrange(1, 5)
        ticks = self.ticks
        self.trace[cpu] += (
            made.PSB + b"\x19" + ticks.to_bytes(7, "little") + b"\x02\x73" +
            (ticks // 84 & 0xFFFF).to_bytes(2, "little") + bytes(3) + made.PSBEND +
            b"\x99\x01\x71" + place.to_bytes(6, "little") + b"\x06" * taken + b"\x01")
        version = self.code[pid].get(place)
        if version is None:
            self.expected[cpu].append("gap")
            self.lines[pid, tid].append("gap")
        else:
            lines = executed(place, version, taken)
            self.expected[cpu] += lines
            self.lines[pid, tid] += lines
            self.counts[pid, tid] += len(lines)

    def switch(self, cpu):
        free = [(pid, tid) for pid, tids in self.threads.items() for tid in sorted(tids)
                if (pid, tid) not in self.running]
        before, after = self.running[cpu], None
        if free and (before is None or self.numbers.randrange(2)):
            after = self.numbers.choice(free)
        for thread, other, misc in ((before, after, SWITCH_OUT), (after, before, 0)):
            if thread is None:
                continue
            misc |= PREEMPTED * self.numbers.randrange(2) if misc else 0
            body = made.u32(*(other or (0, 0))) if self.is_wide else b""
            self.record(SWITCH_CPU_WIDE if self.is_wide else SWITCH, body, thread, misc, cpu)
        self.running[cpu] = after

    def fork(self, cpu):
        pid, tid = self.running[cpu]
        if self.numbers.randrange(3) == 0:  # a thread
            child = (pid, self.next_tid)
            self.next_tid += 1
        else:
            number = self.numbers.choice([one for one in range(300, 306) if not self.threads[one]]
                                         or [self.next_tid])
            self.next_tid += 1
            child = (number, number)
            self.code[number] = dict(self.code[pid])
        self.threads[child[0]].add(child[1])
        body = made.u32(child[0], pid, child[1], tid) + made.u64(self.now())
        self.record(FORK, body, (pid, tid), cpu=cpu)

    def exec(self, cpu):
        pid, tid = self.running[cpu]
        if len(self.threads[pid]) > 1 or tid != pid:
            return
        self.record(COMM, made.u32(pid, tid) + made.c_string(b"program"), (pid, tid), COMM_EXEC,
                    cpu)
        self.code[pid] = {}
        for place in PLACES[self.numbers.randrange(2):]:
            self.map(pid, place, self.numbers.randrange(VERSIONS), self.now() + 20)

    def exit(self, cpu):
        pid, tid = self.running[cpu]
        body = made.u32(pid, pid, tid, tid) + made.u64(self.now())
        self.record(EXIT, body, (pid, tid), cpu=cpu)
        self.threads[pid].discard(tid)
        self.running[cpu] = None

    def change(self, cpu):
        """Changes the code of a process, or says something that changes none."""
        pid, _ = self.running[cpu]
        place = self.numbers.choice(PLACES)
        what = self.numbers.randrange(6)
        if what <= 1:
            self.map(pid, place, self.numbers.randrange(VERSIONS))
        elif what == 2:
            self.code[pid].pop(place, None)
            self.mmap2(pid, place, 0x1000, self.path(0), 1, USER, None)  # not executable
        elif what == 3:
            self.mmap2(pid, place, 0x1000, self.path(0), 5, GUEST_USER, None)
        elif what == 4:
            self.mmap2(pid, place, 0, self.path(0), 5, USER, None)
        elif place in self.code[pid]:
            self.map(pid, place, self.code[pid][place])  # the same again

    def run(self, steps):
        for _ in range(steps):
            self.ticks += self.STEP
            cpu = self.numbers.randrange(self.cpus)
            if self.running[cpu] is None:
                self.switch(cpu)
                continue
            act = self.numbers.choices(
                (self.slice, self.switch, self.fork, self.exec, self.exit, self.change),
                (12, 5, 2, 2, 1, 4))[0]
            act(cpu)

    def file(self):
        records = [one for buffer in self.records for one in buffer]
        # Of a command, perf names its first thread for each CPU; its children are traced, too.
        tid = self.numbers.choice((0xFFFFFFFF, 100))
        records += [made.auxtrace(made.padded(self.trace[cpu]), idx=cpu, tid=tid, cpu=cpu)
                    for cpu in range(self.cpus) if self.trace[cpu]]
        return made.file_of([self.event], [made.info_of(), *records])[0]


class Rounds(System):
    """A tool reads the buffers repeatedly, one CPU after the other, while the system runs. Each CPU
    or each thread has a buffer of trace. A full buffer loses what follows, up to its next reading,
    and may cut its last packet."""

    def __init__(self, numbers, folder):
        super().__init__(numbers, folder)
        self.by_thread = numbers.randrange(3) == 0
        self.loses = numbers.randrange(2) == 0
        self.read, self.left = [], []
        self.sizes = [0] * self.cpus                  # of the records that were read
        self.slices = []                              # [thread, its lines]
        self.buffers = collections.defaultdict(list)  # slices and their traces, not read
        self.streams, self.ends = [], collections.defaultdict(int)
        self.losses = self.cut_packets = 0

    def slice(self, cpu):
        thread = self.running[cpu]
        before = len(self.lines[thread])
        super().slice(cpu)
        self.slices.append([thread, self.lines[thread][before:]])
        self.buffers[thread if self.by_thread else cpu].append((self.slices[-1], self.trace[cpu]))
        self.trace[cpu] = b""

    def fill(self, waiting):
        """The bytes that a full buffer keeps: some slices, and the next up to a byte of its
        TIP.PGE."""
        kept = self.numbers.randrange(len(waiting))
        begin = waiting[kept][1].rindex(b"\x99\x01\x71") + 2
        cut = begin + self.numbers.randrange(7)
        self.losses += 1
        self.cut_packets += cut > begin
        for one, _ in waiting[kept:]:
            one[1] = []
        return b"".join(trace for _, trace in waiting[:kept]) + waiting[kept][1][:cut]

    def read_buffer(self, key):
        waiting, self.buffers[key] = self.buffers[key], []
        if not waiting:
            return
        is_full = self.loses and self.numbers.randrange(4) == 0
        trace = self.fill(waiting) if is_full else b"".join(one for _, one in waiting)
        if key not in self.streams:
            self.streams.append(key)
        place = ({"tid": key[1]} if self.by_thread else {"tid": 0xFFFFFFFF, "cpu": key})
        begin, self.ends[key] = self.ends[key], self.ends[key] + len(trace)
        if trace:
            self.read.append(made.auxtrace(made.padded(trace), offset=begin,
                                           idx=self.streams.index(key), **place))
        if not is_full and self.numbers.randrange(4) == 0:
            return  # the AUX record is lost
        end = (made.u32(*(key if self.by_thread else (0, 0))) + made.u64(self.now()) +
               made.u32(self.numbers.randrange(self.cpus) if self.by_thread else key, 0))
        self.read.append(made.Record(made.AUX, made.u64(begin, len(trace), is_full), "",
                                     end=(end, "")))

    def read_cpu(self, cpu):
        self.read += self.records[cpu][self.sizes[cpu]:]
        self.sizes[cpu] = len(self.records[cpu])
        for key in list(self.buffers) if self.by_thread else [cpu]:
            if not self.by_thread or self.numbers.randrange(3):
                self.read_buffer(key)

    def run(self, steps):
        often = self.numbers.choice((2, 5, 30))
        for _ in range(steps):
            super().run(1)
            while self.numbers.randrange(often) == 0:
                self.left = self.left or self.numbers.sample(range(self.cpus), self.cpus)
                self.read_cpu(self.left.pop())
                if not self.left:
                    self.read.append(made.Record(FINISHED_ROUND, b"", "", end=(b"", "")))

    def file(self):
        for cpu in range(self.cpus):
            self.read_cpu(cpu)
        for key in list(self.buffers):
            self.read_buffer(key)
        return made.file_of([self.event], [made.info_of(), *self.read])[0]

    def executed(self):
        """The lines of each thread that were not lost."""
        lines = collections.defaultdict(list)
        for thread, some in self.slices:
            lines[thread] += some
        return {thread: some for thread, some in lines.items() if some}


class WithoutMtc(System):
    """Without MTC and CYC packets, only a TSC bounds the time of a packet. A processor writes it
    before each TIP.PGE, as Broadwell does, or where tracing is enabled at a switch: before its
    record, so that the thread is known only if all that the CPU executes until the next TSC agree.
    """
    EXCLUDE_KERNEL = 1 << 5

    def __init__(self, numbers, folder):
        super().__init__(numbers, folder)
        self.is_broadwell = numbers.randrange(2) == 0
        self.event = made.Event(config=0x400, ids=[1], sample_type=made.TID | made.TIME | made.CPU,
                                flags=made.SAMPLE_ID_ALL | self.EXCLUDE_KERNEL)
        self.seen = [collections.defaultdict(set) for _ in range(self.cpus)]  # since the last TSC
        self.pending = [[] for _ in range(self.cpus)]
        self.has_tsc = [False] * self.cpus

    def note(self):
        """Every thread that runs may execute its code since the last TSC."""
        for cpu, thread in enumerate(self.running):
            for place in PLACES if thread else ():
                self.seen[cpu][place].add(self.code[thread[0]].get(place))

    def end_of_times(self, cpu):
        """Known is what all code at its place agrees with, until the next TSC."""
        for place, lines, thread in self.pending[cpu]:
            is_known = self.is_broadwell or len(self.seen[cpu][place] - {None}) == 1
            self.expected[cpu] += lines if is_known else ["gap no-time"]
            self.counts[thread] += len(lines) if is_known else 0
        self.pending[cpu] = []

    def tsc(self, cpu):
        self.end_of_times(cpu)
        self.seen[cpu].clear()
        self.note()
        self.has_tsc[cpu] = True
        self.trace[cpu] += made.PSB + b"\x19" + self.ticks.to_bytes(7, "little") + made.PSBEND

    def slice(self, cpu):
        pid, tid = self.running[cpu]
        place, taken = self.numbers.choice(PLACES), self.numbers.randrange(1, 5)
        version = self.code[pid].get(place)
        if version is None:
            return
        if self.is_broadwell or not self.has_tsc[cpu] or self.numbers.randrange(4) == 0:
            self.tsc(cpu)
        self.trace[cpu] += (b"\x99\x01\x71" + place.to_bytes(6, "little") + b"\x06" * taken +
                            b"\x01")
        self.pending[cpu].append((place, executed(place, version, taken), (pid, tid)))

    def switch(self, cpu):
        if not self.is_broadwell and self.has_tsc[cpu]:
            self.ticks -= self.STEP // 2
            self.tsc(cpu)
            self.ticks += self.STEP // 2
        super().switch(cpu)

    def run(self, steps):
        for _ in range(steps):
            super().run(1)
            self.note()
        for cpu in range(self.cpus):
            self.end_of_times(cpu)

    def file(self):
        records = [one for buffer in self.records for one in buffer]
        tid = self.numbers.choice((0xFFFFFFFF, 100))
        records += [made.auxtrace(made.padded(self.trace[cpu]), idx=cpu, tid=tid, cpu=cpu)
                    for cpu in range(self.cpus) if self.trace[cpu]]
        model = b"GenuineIntel,6,61,4" if self.is_broadwell else b"GenuineIntel,6,94,3"
        return made.file_of([self.event], [made.info_of(numbers=[
            made.PT_TYPE, 31, 1 << 30, 77, 1, 0x400, 0x800, 2, 0, 1, 0x200, 0x3C000, 168, 2, 2, 24
        ]), *records], {9: made.text_feature(model)})[0]


class Processes(Folder):
    def setUp(self):
        super().setUp()
        for version in range(VERSIONS):
            self.file(f"version{version}", code_of(version))

    def run_tool(self, *arguments):
        done = subprocess.run([PT_FLOW, "--quiet", *map(str, arguments)], capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.stderr, "")
        self.assertIn(done.returncode, (0, 1))
        return done.stdout.splitlines()

    def assert_same(self, found, wanted):
        """Without the differences of all lines, which take minutes."""
        first = next((i for i, pair in enumerate(zip(found, wanted)) if pair[0] != pair[1]),
                     min(len(found), len(wanted)))
        self.assertEqual((first, found[first:first + 3]), (len(wanted), []),
                         f"wanted {wanted[first:first + 3]}")

    def test_each_instruction_belongs_to_the_thread_that_executed_it(self):
        slices = 0
        for seed in range(150):
            numbers = random.Random(seed)
            system = System(numbers, self.folder)
            system.run(numbers.randrange(20, 200))
            wanted = [line for lines in system.expected for line in lines]
            if not wanted:
                continue
            slices += sum(trace.count(made.PSB) for trace in system.trace)
            path = self.file("perf.data", system.file())
            jobs = numbers.randrange(1, 4)
            found = [line.split()[0] for line in self.run_tool("--instructions", "--jobs", jobs,
                                                               path)]
            with self.subTest(seed=seed):
                self.assert_same([line for line in found if line != "cpu"], wanted)
                counts = collections.Counter()
                for line in self.run_tool("--folded", "--jobs", jobs, path):
                    words = line.split()
                    if words[0] == "thread":
                        thread = words[1]
                    elif words[0] != "cpu":
                        counts[thread] += int(words[-1])
                self.assertEqual({key: count for key, count in counts.items() if count},
                                 {f"{pid}/{tid}": count
                                  for (pid, tid), count in system.counts.items()})
        self.assertGreater(slices, 4000)

    def test_of_a_recording_that_is_read_in_rounds(self):
        counts = collections.Counter()
        for seed in range(118):
            numbers = random.Random(seed)
            system = Rounds(numbers, self.folder)
            # In the last one, the only CPU has more switches than the tool keeps.
            system.run(20000 if seed == 117 else numbers.randrange(20, 300))
            path = self.file("perf.data", system.file())
            done = subprocess.run([LIVE_WALK, path], capture_output=True, text=True, timeout=120)
            found, gaps = collections.defaultdict(list), collections.Counter()
            for line in done.stdout.splitlines():
                thread, *what = line.split()
                gaps[what[-1]] += what[0] == "gap"
                if what[-1] not in ("missing-trace", "damage"):
                    found[tuple(map(int, thread.split("/")))].append(what[0])
            with self.subTest(seed=seed):
                wanted = system.executed()
                self.assertEqual(set(found), set(wanted))
                for thread, lines in found.items():
                    self.assert_same(lines, wanted[thread])
                self.assertEqual((gaps["missing-trace"], gaps["damage"]),
                                 (system.losses, system.cut_packets))
            counts["instructions"] += sum(map(len, found.values()))
            counts["rounds"] += sum(one.type == FINISHED_ROUND for one in system.read)
            counts["cut packets"] += system.cut_packets
        for what, least in (("instructions", 25000), ("rounds", 1500), ("cut packets", 100)):
            self.assertGreater(counts[what], least, what)

    def test_calls_stay_open_while_other_threads_execute(self):
        # CALL 401010; RET; 401010: SYSCALL; RET
        self.file("version0", b"\xE8\x0B\0\0\0\xC3" + bytes(10) + b"\x0F\x05\xC3")
        system = System(random.Random(1), self.folder)
        system.cpus, system.records, system.trace = 1, [[]], [b""]
        system.threads[100] = {100, 101}
        system.map(100, 0x401000, 0, time=0)
        begin = b"\x71" + (0x401000).to_bytes(6, "little") + b"\x01"
        after = (b"\x71" + (0x401012).to_bytes(6, "little") + b"\x6D" +
                 (0x401005).to_bytes(6, "little") + b"\x01")
        for thread, trace in ((100, begin), (101, begin), (100, after), (101, after)):
            system.ticks += system.STEP
            system.record(SWITCH, b"", (100, thread), 0, 0)
            system.ticks += system.STEP
            system.trace[0] += (made.PSB + b"\x19" + system.ticks.to_bytes(7, "little") +
                                b"\x02\x73" + (system.ticks // 84 & 0xFFFF).to_bytes(2, "little") +
                                bytes(3) + made.PSBEND + b"\x99\x01" + trace)
            system.ticks += system.STEP
            system.record(SWITCH, b"", (100, thread), SWITCH_OUT, 0)
        found = self.run_tool("--calls", self.file("perf.data", system.file()))
        self.assertEqual([line.split("|")[-1].strip() for line in found], [
            "thread 100/100", "version0+0x0() { /* call not traced */", "version0+0x10() {",
            "[syscall] {",
            "thread 100/101", "version0+0x0() { /* call not traced */", "version0+0x10() {",
            "[syscall] {",
            "thread 100/100", "} /* [syscall] */", "} /* version0+0x10 */", "[unknown] {",
            "thread 100/101", "} /* [syscall] */", "} /* version0+0x10 */",
            "[unknown]; /* not returned */", "} /* version0+0x0, not returned */",
            "thread 100/100", "} /* [unknown], not returned */",
            "} /* version0+0x0, not returned */"])

    def test_only_a_tsc_bounds_times(self):
        gaps = known = 0
        for seed in range(150):
            numbers = random.Random(seed)
            system = WithoutMtc(numbers, self.folder)
            system.run(numbers.randrange(20, 200))
            wanted = [line for lines in system.expected for line in lines]
            if not wanted:
                continue
            path = self.file("perf.data", system.file())
            found = [" ".join(line.split()[:1 + line.startswith("gap")])
                     for line in self.run_tool("--instructions", path)]
            with self.subTest(seed=seed, is_broadwell=system.is_broadwell):
                self.assert_same([line for line in found if not line.startswith("cpu")], wanted)
                counts, thread = collections.Counter(), None
                for line in self.run_tool("--folded", path):
                    words = line.split()
                    if words[0] == "thread":
                        thread = words[1]
                    elif words[0] != "cpu":
                        counts[thread] += int(words[-1])
                unknown = counts.pop("?/?", 0)
                self.assertEqual(sum(counts.values()) + unknown, sum(system.counts.values()))
                self.assertEqual(unknown * system.is_broadwell, 0)
                for (pid, tid), count in system.counts.items():
                    self.assertLessEqual(counts.pop(f"{pid}/{tid}", 0), count)
                self.assertEqual(sum(counts.values()), 0)
            gaps += wanted.count("gap no-time")
            known += len(wanted)
        self.assertGreater(gaps, 100)
        self.assertGreater(known, 30000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
