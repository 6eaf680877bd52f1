#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Kernels whose code changes while it is traced: pt_flow prints what a simulation executed.

    pt_flow_kernel.py PT_FLOW

A kernel has routines with sites that are poked, trampolines that are added and removed, and BPF
programs. The test simulates its memory and executes slices of it, writes the perf.data file and a
copy of the memory of some time, and compares.
"""

import pathlib
import random
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
import skips  # noqa: E402
import traces  # noqa: E402
from elf_files import CORE, made_elf  # noqa: E402
from folder import Folder  # noqa: E402

PT_FLOW = sys.argv.pop(1)
MMAP, SWITCH, KSYMBOL, BPF_EVENT, TEXT_POKE = 1, 14, 17, 18, 20
KERNEL, SWITCH_OUT = 1, 0x2000
BPF, OUT_OF_LINE = 1, 2
BASE = 0xFFFFFFFF81000000
MODULES = 0xFFFFFFFFC0000000
NOP2, NOP5 = bytes.fromhex("6690"), bytes.fromhex("0f1f440000")
PLAIN = (b"\x90", NOP2, bytes.fromhex("0f1f00"), NOP5, bytes.fromhex("48b80102030405060708"))
STEP = 84 * 8 * 10  # TSC ticks between two events: more than the bounds of a time


def near(value, size):
    return value.to_bytes(size, "little", signed=True)


def call_of(name):
    return name.split("+")[0]


class Memory(dict):
    """Bytes by address. What is absent was never known, or is no code."""

    def put(self, address, data):
        for i, byte in enumerate(data):
            self[address + i] = byte

    def take(self, address, size):
        for i in range(size):
            self.pop(address + i, None)

    def get_bytes(self, address, size):
        return bytes(self[address + i] for i in range(size))

    def execute(self, at, numbers, count):
        """The addresses of the instructions up to the branch after `count` of them, or up to absent
        code; and the branches. That at the end of a routine is always taken."""
        executed, branches = [], []
        while True:
            try:
                first = self[at]
                size = {0x90: 1, 0x66: 2, 0x48: 10, 0xE9: 5, 0xEB: 2, 0x75: 2,
                        0x0F: 5 if first == 0x0F and self[at + 2] == 0x44 else 3}[first]
                data = self.get_bytes(at, size)
            except KeyError:
                return executed + ["gap"], branches
            executed.append(f"0x{at:x}")
            if first == 0x75 and len(branches) == count:
                return executed, branches
            target = at + size
            if first == 0x75:
                branches.append(data[1] >= 0x80 or numbers.randrange(2) == 0)
            if first == 0xE9:
                target += int.from_bytes(data[1:], "little", signed=True)
            elif first == 0xEB or (first == 0x75 and branches[-1]):
                target += int.from_bytes(data[1:], "little", signed=True)
            at = target


def without_summary(found, error):
    """Without what is said where nothing but gaps is found."""
    is_known = not set(found) <= {"gap"}
    return error if is_known else re.sub(r"^pt_flow: no (code|instructions).*\n", "", error,
                                         flags=re.M)


class Kernel:
    def __init__(self, numbers):
        self.numbers = numbers
        self.event = made.Event(config=0x600 | 3 << 14, ids=[1],
                                sample_type=made.IP | made.TID | made.TIME | made.CPU)
        self.ticks = STEP
        self.memory = Memory()
        self.records, self.trace, self.expected = [], b"", []
        self.starts, self.sites = [], []
        self.programs, self.pokes = [], 0

    def now(self):
        return 77 + self.ticks // 2

    def next(self):
        self.ticks += STEP

    def record(self, kind, body, misc=KERNEL, time=None):
        end = made.id_end(self.event, 100, self.now() if time is None else time)
        self.records.append(made.Record(kind, made.padded(body), "", misc=misc, end=(end, "")))

    # ------------------------------------------------------------------------------- code

    def routine(self, address, sites=True):
        """Instructions, then a JNZ to the first. Some are sites (address, states) of pokes."""
        start, at = address, address
        for _ in range(self.numbers.randrange(1, 7)):
            what = self.numbers.randrange(6) if sites else 5
            size = 5 if what in (0, 1) else 2
            skip = self.numbers.choice(PLAIN)
            jump = near(len(skip), 4 if size == 5 else 1)
            if what <= 2:
                states = [(NOP5 if size == 5 else NOP2), (b"\xe9" if size == 5 else b"\xeb") + jump]
                self.numbers.shuffle(states)
                self.sites.append((at, states))
                self.memory.put(at, states[0] + skip)
                at += size + len(skip)
            elif what == 3:  # a site within an instruction
                self.memory.put(at, PLAIN[4])
                self.sites.append((at + 5, [PLAIN[4][5:6], b"\xAA"]))
                at += 10
            elif what == 4:  # JNZ over an instruction
                self.memory.put(at, b"\x75" + near(len(skip), 1) + skip)
                at += 2 + len(skip)
            else:
                self.memory.put(at, skip)
                at += len(skip)
        self.memory.put(at, b"\x75" + near(start - at - 2, 1))
        return at + 2 - start

    def make(self, routines):
        at = BASE
        for _ in range(routines):
            self.starts.append(at)
            at += self.routine(at) + self.numbers.randrange(3)
        self.size = at - BASE
        for i in range(self.size):
            self.memory.setdefault(BASE + i, 0xCC)
        self.first = Memory(self.memory)

    # ------------------------------------------------------------------------------ events

    def slice(self, start=None):
        start = self.numbers.choice(self.starts) if start is None else start
        executed, branches = self.memory.execute(start, self.numbers, self.numbers.randrange(1, 20))
        ticks = self.ticks
        self.trace += (
            made.PSB + b"\x19" + ticks.to_bytes(7, "little") + b"\x02\x73" +
            (ticks // 84 & 0xFFFF).to_bytes(2, "little") + bytes(3) + made.PSBEND +
            b"\x99\x01\xd1" + start.to_bytes(8, "little") +
            b"".join(b"\x06" if one else b"\x04" for one in branches) + b"\x01")
        self.expected += executed

    def text_poke(self, address, old, new, time=None):
        self.pokes += 1
        body = made.u64(address) + made.u16(len(old), len(new)) + old + new
        self.record(TEXT_POKE, body, time=time)

    def poke(self):
        if not self.sites:
            return
        address, states = self.numbers.choice(self.sites)
        old = self.memory.get_bytes(address, len(states[0]))
        new = states[states[0] == old]
        if len(old) == 5 and self.numbers.randrange(3) == 0:  # INT3, the rest, the first byte
            self.text_poke(address, old[:1], b"\xcc")
            self.text_poke(address + 1, old[1:], new[1:])
            self.text_poke(address, b"\xcc", new[:1])
        else:
            self.text_poke(address, old, new)
        self.memory.put(address, new)

    def ksymbol(self, address, size, name, kind=BPF, is_gone=False, time=None):
        body = (made.u64(address) + made.u32(size) + made.u16(kind, is_gone) +
                made.c_string(name.encode()))
        self.record(KSYMBOL, body, time=time)

    def file(self, features=None):
        self.records.append(made.Record(SWITCH, b"", "", end=(made.id_end(self.event, 100, 1), "")))
        self.records.append(made.auxtrace(made.padded(self.trace), tid=0xFFFFFFFF, cpu=0))
        features = dict(features or {})
        if self.programs:
            features[25] = made.bpf_feature(*self.programs)
        return made.file_of([self.event], [made.info_of(), *self.records], features)[0]


def elf_of(memory, kernel, kind=CORE):
    """A copy of the kernel, whose symbols are those of its routines."""
    functions = [("_text", BASE, 1)] if kind != CORE else []
    return made_elf(memory.get_bytes(BASE, kernel.size), BASE, functions, kind=kind)


class KernelCode(Folder):
    def run_tool(self, *arguments):
        done = subprocess.run([PT_FLOW, "--quiet", *map(str, arguments)], capture_output=True,
                              text=True, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout.splitlines(), done.stderr

    def instructions(self, kernel, *options, features=None):
        path = self.file("perf.data", kernel.file(features))
        lines, error = self.run_tool("--instructions", *options, path)
        return [line.split()[0] for line in lines if not line.startswith("cpu ")], error

    def assert_same(self, found, wanted):
        first = next((i for i, pair in enumerate(zip(found, wanted)) if pair[0] != pair[1]),
                     min(len(found), len(wanted)))
        self.assertEqual((first, found[first:first + 3]), (len(wanted), []),
                         f"wanted {wanted[first:first + 3]}")

    def test_pokes_with_a_copy_of_any_time(self):
        pokes, executed, said = 0, 0, set()
        for seed in range(200):
            numbers = random.Random(seed)
            kernel = Kernel(numbers)
            kernel.make(numbers.randrange(1, 6))
            steps = numbers.randrange(5, 60)
            when = {"start": 0, "end": steps, "middle": numbers.randrange(steps),
                    "vmlinux": 0, "none": 0}
            kind = numbers.choice(sorted(when))
            copy = None
            for step in range(steps + 1):
                if step == when[kind]:
                    copy = Memory(kernel.memory)
                if step == steps:
                    break
                kernel.next()
                kernel.slice() if numbers.randrange(3) else kernel.poke()
            records, options = [], []
            if kind == "vmlinux":  # its sites have the bytes of the compiler
                for address, states in kernel.sites:
                    copy.put(address, bytes(len(states[0])))
                copy = self.file("vmlinux", elf_of(copy, kernel, kind=2))
                body = (made.u32(0xFFFFFFFF, 0) + made.u64(BASE, 0x100000, BASE) +
                        made.c_string(b"[kernel.kallsyms]_text"))
                kernel.record(MMAP, body, time=0)
                poked = {int(line, 16) for line in kernel.expected if line != "gap"}
                if not all(self.is_poked(kernel, site) for site in kernel.sites):
                    continue  # the others are not known
            elif kind == "none":
                copy = None
            else:
                copy = self.file("kcore", elf_of(copy, kernel))
            with self.subTest(seed=seed, kind=kind):
                options = ["--kernel", copy] if copy else []
                found, error = self.instructions(kernel, *options)
                if copy is None:
                    wanted = {line for line in kernel.expected}
                    self.assertTrue({line for line in found if line != "gap"} <= wanted)
                    continue
                self.assert_same(found, kernel.expected)
                error = without_summary(found, error)
                if kernel.pokes == 0:
                    self.assertEqual(error, "")
                    continue
                self.assertEqual(len(error.splitlines()), 1, error)
                self.assertIn(f"(TEXT_POKE): {kernel.pokes}, places: ", error)
                if kind != "middle":
                    self.assertIn({"vmlinux": "that of the records"}.get(kind, f"of the {kind}"),
                                  error)
                pokes += kernel.pokes
                executed += len(kernel.expected)
        self.assertGreater(pokes, 1000)
        self.assertGreater(executed, 30000)

    @staticmethod
    def is_poked(kernel, site):
        for one in kernel.records:
            address = int.from_bytes(one.data[8:16], "little")
            if one.type == TEXT_POKE and address <= site[0] + len(site[1][0]) - 1 and \
                    site[0] <= address + 4:
                return True
        return False

    def loop_kernel(self, seed=1):
        kernel = Kernel(random.Random(seed))
        kernel.make(2)
        kernel.sites = []
        return kernel

    def test_code_that_is_added_and_removed(self):
        gaps = 0
        for seed in range(60):
            numbers = random.Random(seed)
            kernel = Kernel(numbers)
            kernel.make(1)
            kernel.sites = []
            places = [MODULES + 0x1000 * i + numbers.randrange(100) for i in range(3)]
            alive = {}
            for _ in range(numbers.randrange(10, 40)):
                kernel.next()
                place = numbers.choice(places)
                if numbers.randrange(2):
                    kernel.slice(numbers.choice((place, BASE)))
                elif place in alive:
                    size = alive.pop(place)
                    old = kernel.memory.get_bytes(place, size)
                    kernel.text_poke(place, old, b"")
                    kernel.memory.take(place, size)
                else:
                    alive[place] = size = kernel.routine(place, sites=False)
                    kernel.text_poke(place, b"", kernel.memory.get_bytes(place, size))
            gaps += kernel.expected.count("gap")
            copy = self.file("kcore", elf_of(kernel.memory, kernel))
            with self.subTest(seed=seed):
                found, error = self.instructions(kernel, "--kernel", copy)
                self.assert_same(found, kernel.expected)
                self.assertNotIn("missing", error)
        self.assertGreater(gaps, 100)

    def test_programs_of_several_times_at_one_address(self):
        counted = 0
        for seed in range(60):
            numbers = random.Random(seed)
            kernel = Kernel(numbers)
            kernel.make(1)
            kernel.sites = []
            # A stack continues where tracing resumes: with one place, all of it has one name.
            places = [MODULES + 0x100 * i + 8 * numbers.randrange(8) for i in range(1 + seed % 2)]
            alive, number, counts = {}, 100, {}
            for step in range(numbers.randrange(10, 50)):
                kernel.next()
                place = numbers.choice(places)
                time = 0 if step == 0 else None  # it was loaded before the recording
                if step and numbers.randrange(2):
                    before = len(kernel.expected)
                    kernel.slice(place)
                    count = len([one for one in kernel.expected[before:] if one != "gap"])
                    if place in alive:
                        counts[alive[place][1]] = counts.get(alive[place][1], 0) + count
                elif place in alive:
                    size, name = alive.pop(place)
                    kernel.ksymbol(place, size, name, is_gone=True)
                    kernel.memory.take(place, size)
                else:
                    number += 1
                    size = kernel.routine(place, sites=False)
                    name = f"bpf_prog_{number:016x}_p{number}"
                    alive[place] = size, name
                    code = kernel.memory.get_bytes(place, size)
                    tag = bytes.fromhex(f"{number:016x}")
                    kernel.programs.append(made.bpf_program(number, [(place, code)], tags=[tag]))
                    kernel.ksymbol(place, size, name, time=time)
                    kernel.record(BPF_EVENT, made.u16(1, 0) + made.u32(number) + tag, time=time)
            numbers.shuffle(kernel.programs)
            with self.subTest(seed=seed):
                found, error = self.instructions(kernel)
                self.assert_same(found, kernel.expected)
                error = without_summary(found, error)
                self.assertEqual(error.replace("pt_flow: the kernel: its code is missing; see "
                                               "--kernel\n", ""), "")
                if len(places) != 1:
                    continue
                folded = [line.split() for line in
                          self.run_tool("--folded", self.folder / "perf.data")[0]]
                found = {}
                for words in folded:
                    if words[0].startswith("bpf_prog"):
                        found[words[0]] = found.get(words[0], 0) + int(words[1])
                self.assertEqual(found, {key: count for key, count in counts.items() if count})
                counted += len(counts)
        self.assertGreater(counted, 100)

    def test_code_of_a_range_of_times_is_that_of_all_of_it(self):
        # A poke within the bounds of the time of a slice: up to the next MTC, after 84 * 8 ticks.
        kernel = Kernel(random.Random(1))
        code = b"\x90" + NOP5 + b"\x90\x75\xf7"
        kernel.memory.put(BASE, code)
        kernel.size = len(code)
        copy = self.file("kcore", elf_of(kernel.memory, kernel))
        kernel.starts = [BASE]
        kernel.next()
        kernel.slice()
        kernel.text_poke(BASE + 1, NOP5, b"\xe9" + near(1, 4), time=kernel.now() + 200)
        found, error = self.instructions(kernel, "--kernel", copy)
        self.assertEqual(found, [f"0x{BASE:x}", "gap"])
        self.assertNotIn("missing", error)
        # Not the first byte, which is the same: a later one of the same instruction.
        kernel = Kernel(random.Random(1))
        kernel.memory.put(BASE, code)
        kernel.next()
        kernel.slice(BASE)
        kernel.text_poke(BASE + 4, b"\0", b"\1", time=kernel.now() + 200)
        self.assertEqual(self.instructions(kernel, "--kernel", copy)[0], [f"0x{BASE:x}", "gap"])

    def test_a_copy_that_has_no_state_of_a_place(self):
        for change in range(6):
            kernel = Kernel(random.Random(1))
            code = b"\x90" + NOP5 + b"\x90\x75\xf7"
            kernel.memory.put(BASE, code)
            kernel.size = len(code)
            copied = Memory(kernel.memory)
            if change != 0:
                copied[BASE + change] ^= 0x40
            copy = self.file("kcore", elf_of(copied, kernel))
            for poked in (NOP5, b"\xe9" + near(1, 4)):
                kernel.next()
                kernel.slice(BASE)
                kernel.next()
                kernel.text_poke(BASE + 1, kernel.memory.get_bytes(BASE + 1, 5), poked)
                kernel.memory.put(BASE + 1, poked)
            found, error = self.instructions(kernel, "--kernel", copy)
            if change == 0:
                self.assert_same(found, kernel.expected)
                self.assertNotIn("missing", error)
                continue
            self.assertEqual(found, [f"0x{BASE:x}", "gap"] * 2)
            self.assertIn("1 places have another state in the copy: their code is missing", error)

    def test_a_lost_poke_is_a_gap_between_the_others(self):
        kernel = Kernel(random.Random(1))
        jump = b"\xe9" + near(1, 4)
        code = b"\x90" + NOP5 + b"\x90\x75\xf7"
        kernel.memory.put(BASE, code)
        kernel.size = len(code)
        copy = self.file("kcore", elf_of(kernel.memory, kernel))
        wanted = []
        for old, new in ((NOP5, jump), (NOP5, jump)):
            kernel.next()
            kernel.slice(BASE)
            kernel.next()
            kernel.text_poke(BASE + 1, old, new)
        kernel.next()
        kernel.memory.put(BASE + 1, jump)
        kernel.slice(BASE)
        found, _ = self.instructions(kernel, "--kernel", copy)
        first = found.index("gap") - 1
        self.assertEqual(found[first:first + 2], [f"0x{BASE:x}", "gap"])
        self.assertEqual(found.count("gap"), 1)
        self.assertNotIn(f"0x{BASE + 6:x}", found[first + 2:])

    def test_what_is_missing_is_said(self):
        place = MODULES + 0x40
        kernel = self.loop_kernel()
        kernel.ksymbol(place, 77, "bpf_prog_1_made", time=0)
        kernel.next()
        kernel.slice(place)
        found, error = self.instructions(kernel)
        self.assertEqual(found, ["gap"])
        self.assertIn("bpf_prog_1_made: a BPF program of 77 bytes without code", error)
        # A program that is loaded later is not in a copy, which may be of any time.
        code = bytes.fromhex("90 75fd")
        for time, seen in ((0, True), (None, False)):
            kernel = Kernel(random.Random(1))
            kernel.memory.put(BASE, code)
            kernel.size = len(code)
            copy = self.file("kcore", elf_of(kernel.memory, kernel))
            kernel.next()
            kernel.ksymbol(BASE, 3, "made", time=time)
            kernel.next()
            kernel.slice(BASE)
            found, error = self.instructions(kernel, "--kernel", copy)
            self.assertEqual(found, kernel.expected if seen else ["gap"])
            self.assertEqual("made: a BPF program of 3 bytes" in error, not seen)
        kernel = Kernel(random.Random(1))
        body = (made.u32(0xFFFFFFFF, 0) + made.u64(MODULES, 0x1000, 0) +
                made.c_string(b"/lib/modules/6.1/kernel/made.ko"))
        kernel.record(MMAP, body, time=0)
        kernel.next()
        kernel.slice(place)
        found, error = self.instructions(kernel, "--kernel", copy)
        self.assertEqual(found, ["gap"])
        self.assertIn("made.ko: a module of the kernel that is not in the copy", error)

    def test_made_files(self):
        folder = traces.perf_data_folder() / "made"
        if not (folder / "poke.data").exists():
            skips.say("recorded perf.data", "pt_flow_kernel")
            self.skipTest("recorded perf.data")
        copy = ["--kernel", folder / "poke.kcore"]
        found, error = self.run_tool("--instructions", *copy, folder / "poke.data")
        self.assertEqual(found, [f"0x{BASE + at:x}" for at in (0, 5, 6) * 3 + (0, 6) * 3])
        self.assertIn("the copy is of the end", error)
        found, error = self.run_tool("--folded", *copy, folder / "bpf.data")
        self.assertEqual((found[1:], error), (["bpf_prog_0123456789abcdef_made 12"], ""))
        found, error = self.run_tool("--folded", folder / "bpf.data")
        self.assertIn("bpf_prog_0123456789abcdef_made: a BPF program of 8 bytes without code",
                      error)

    def test_hostile_records(self):
        for seed in range(60):
            numbers = random.Random(seed)
            kernel = Kernel(numbers)
            kernel.make(2)
            addresses = [0, 1, BASE - 3, BASE, BASE + 5, BASE + 64, MODULES, 1 << 63, (1 << 63) - 1,
                         (1 << 64) - 1, (1 << 64) - 20]
            for _ in range(60):
                if numbers.randrange(3):
                    kernel.next()
                address = numbers.choice(addresses)
                time = numbers.choice((None, None, None, 0, 1, (1 << 64) - 1))
                what = numbers.randrange(5)
                if what == 0:
                    kernel.slice()
                elif what == 1:
                    kernel.text_poke(address, *(numbers.randbytes(numbers.choice((0, 1, 5, 999)))
                                                for _ in range(2)), time=time)
                elif what == 2:
                    body = made.u64(address) + made.u16(*numbers.choices((0, 7, 0xFFFF), k=2))
                    kernel.record(TEXT_POKE, body + numbers.randbytes(20), time=time)
                else:
                    kernel.ksymbol(address, numbers.choice((0, 1, 64, 9999, 1 << 20, 0xFFFFFFFF)),
                                   numbers.choice("ab"), numbers.randrange(4), numbers.randrange(2),
                                   time)
            copy = self.file("kcore", elf_of(kernel.first, kernel))
            for form in ("--instructions", "--folded"):
                kernel_file = self.file("perf.data", kernel.file()) if form == "--instructions" \
                    else self.folder / "perf.data"
                self.run_tool(form, "--kernel", copy, kernel_file)


if __name__ == "__main__":
    skips.main(sys.argv[:1])
