#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Coverage: --drcov and --bitmap are what the instructions, blocks and edges of the listings say.

    pt_flow_coverage.py PT_FLOW

Programs and traces are random. Without a selection, blocks and edges are computed here, from the
lines of --instructions and the instructions of the program.
"""

import pathlib
import random
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
from elf_files import made_elf  # noqa: E402
from folder import Folder  # noqa: E402

PT_FLOW = sys.argv.pop(1)
BASE = 0x401000
MAX_INSTRUCTIONS = 32  # of a block: flow::block::max_instructions
NAMES = {b"\x90": "other", b"\x0f\x85": "jcc", b"\xe9": "jmp", b"\xe8": "call", b"\xc3": "ret",
         b"\xff\xe0": "jmp_rax", b"\xff\xd0": "call_rax", b"\x0f\x05": "syscall"}
OPCODES = {name: code for code, name in NAMES.items()}


def tip(target, kind=0x0D):
    return bytes([kind | 3 << 5]) + (target & (1 << 48) - 1).to_bytes(6, "little")


def pip(nr):
    return b"\x02\x43" + (0x1000 >> 4 | nr).to_bytes(6, "little")


class Program:
    """NOPs, each time before a branch."""

    def __init__(self, chance):
        starts, lengths, at = [], [], BASE
        for _ in range(chance.randrange(4, 40)):
            nops = chance.choice((1, 2, 3, 5, chance.randrange(1, 80)))
            kind = chance.choice(("jcc", "jcc", "jcc", "jmp", "call", "ret", "jmp_rax", "call_rax",
                                  "syscall"))
            starts.append(at)
            lengths.append((nops, kind))
            at += nops + len(OPCODES[kind]) + 4 * (kind in ("jcc", "jmp", "call"))
        self.starts = starts
        self.all = {}  # address: (kind, address after it, target)
        self.code = b""
        for start, (nops, kind) in zip(starts, lengths):
            for i in range(nops):
                self.all[start + i] = ("other", start + i + 1, None)
            at, target = start + nops, None
            branch = OPCODES[kind]
            after = at + len(branch)
            if kind in ("jcc", "jmp", "call"):
                after, target = after + 4, chance.choice(starts)
                # A loop without a TNT has no end.
                if kind != "jcc" and target <= start:
                    target = starts[-1] if start != starts[-1] else after
                branch += (target - after & 0xFFFFFFFF).to_bytes(4, "little")
            self.all[at] = (kind, after, target)
            self.code += b"\x90" * nops + branch
        self.end = BASE + len(self.code)
        self.code += b"\xff\xe0"  # after the last block
        self.all[self.end] = ("jmp_rax", self.end + 2, None)


class Walk:
    """A random execution, and its trace."""

    def __init__(self, chance, program, has_places=False, filler=0):
        self.chance, self.program, self.filler = chance, program, filler
        self.has_places, self.nr = has_places, 0
        self.out, self.bits, self.calls, self.tsc = b"", [], [], 1000

    def put(self, *packets):
        if self.bits:
            bits = "1" + "".join(map(str, self.bits))
            self.out += bytes([int(bits, 2) << 1])
            self.bits = []
        self.out += b"".join(packets) + bytes(self.filler)

    def branch(self, taken):
        self.bits.append(taken)
        if len(self.bits) == 6:
            self.put()

    def psb(self, ip):
        self.tsc += self.chance.randrange(1, 500)
        self.put(made.PSB, b"\x19" + self.tsc.to_bytes(7, "little"),
                 pip(self.nr) if self.has_places else b"",
                 tip(ip, 0x1D) + b"\x99\x01" if ip else b"", made.PSBEND)
        self.calls = []

    def step(self, ip):
        """Executes the code to a branch. Returns where it leads."""
        chance, program = self.chance, self.program
        anywhere = chance.choice(program.starts)
        has_executed = False
        if chance.randrange(20) == 0:
            self.put(b"\xd9" * (chance.randrange(8) == 0))  # no packet
            self.psb(ip)
        while program.all[ip][0] == "other":
            dice = chance.randrange(150)
            if dice == 0 and has_executed:
                if self.has_places:
                    self.nr = chance.randrange(2)
                self.put(tip(ip, 0x1D), pip(self.nr) if self.has_places else b"", tip(anywhere))
                return anywhere
            if dice == 2 and chance.randrange(3) == 0:
                self.put(b"\x02\xf3", tip(anywhere, 0x1D))  # OVF
                self.calls = []
                return anywhere
            has_executed = True
            ip = program.all[ip][1]
        kind, after, target = program.all[ip]
        if kind == "jcc":
            taken = chance.randrange(4) != 0
            self.branch(int(taken))
            return target if taken else after
        if kind == "call_rax" or (kind == "call" and target != after):  # GEN-132
            self.calls = [*self.calls, after][-60:]
        if kind in ("jmp", "call"):
            return target
        if kind == "ret" and self.calls and chance.randrange(2):
            self.branch(1)
            return self.calls.pop()
        if kind == "syscall":
            self.put(b"\x01", tip(anywhere, 0x11))  # TIP.PGD, TIP.PGE
            return anywhere
        if kind == "ret":  # GEN-134: with another target, whether it pops is a choice
            if self.calls:
                anywhere = self.calls.pop()
        self.put(tip(anywhere))
        return anywhere

    def run(self, steps):
        ip = self.program.starts[0]
        self.psb(None)
        self.put(b"\x99\x01", tip(ip, 0x11))
        for _ in range(steps):
            ip = self.step(ip)
        self.put(b"\x01")
        return self.out


def index_of(start, to, size):
    def upper(value):
        return (value * 0x9E3779B97F4A7C15 >> 32) & 0xFFFFFFFF
    return (upper(start) ^ upper(to) >> 1) & size - 1


def bitmap_of(edges, size):
    counts = bytearray(size)
    for edge in edges:
        at = index_of(*edge, size)
        counts[at] = counts[at] + 1 & 0xFF
    return bytes(counts)


def blocks_and_edges(lines, program):
    """Of the lines of --instructions: {address: size}, and (from, to) of each edge."""
    blocks, edges = {}, []
    start = last = None
    resumed = None  # where a gap ended, with nothing executed since
    count = 0

    def end():
        if start is not None:
            blocks[start] = max(blocks.get(start, 0), program.all[last][1] - start)

    def go(ip):
        """Adds the edge to an address. Returns whether it is next in memory, without a branch."""
        if last is None:
            if resumed not in (None, ip):  # an event
                edges.append((resumed, ip))
            return False
        kind, after, _ = program.all[last]
        if kind == "other" and ip != after:  # an event
            edges.append((after, ip))
        elif kind not in ("other", "syscall"):
            edges.append((last, ip))
        return kind == "other" and ip == after

    for line in lines:
        if not line.startswith("0x"):  # a gap, or the label of a stream
            fields = dict(re.findall(r" (from|to)=(0x\w+)", line))
            if "from" in fields:
                go(int(fields["from"], 16))
            end()
            start = last = None
            resumed = int(fields["to"], 16) if "to" in fields else None
            continue
        ip = int(line, 16)
        if not go(ip) or count == MAX_INSTRUCTIONS:
            end()
            start, count = ip, 0
        last, resumed = ip, None
        count += 1
    end()
    return blocks, edges


class Coverage(Folder):
    def run_tool(self, *arguments, text=False):
        done = subprocess.run([PT_FLOW, "--quiet", *map(str, arguments)], capture_output=True,
                              timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        # Where a form prints nothing, it says of what.
        said = re.sub(rb"pt_flow: no (instructions|blocks|edges|blocks of files):", b"pt_flow: no:",
                      done.stderr)
        if text:
            return done.returncode, done.stdout.decode(), said.decode()
        return done.returncode, done.stdout, said

    def drcov(self, *arguments):
        """The status, {(path, address in it): size}, and what is said."""
        status, out, error = self.run_tool("--drcov", *arguments)
        text, _, table = out.partition(b" bbs\n")
        lines = text.decode().splitlines()
        paths = [line.split(", ")[4] for line in lines[4:-1]]
        entries = [table[i:i + 8] for i in range(0, len(table), 8)]
        self.assertEqual(int(lines[-1].split()[-1]), len(entries))
        return status, {(paths[int.from_bytes(one[6:], "little")],
                         int.from_bytes(one[:4], "little")):
                        int.from_bytes(one[4:6], "little") for one in entries}, error

    def listed(self, *arguments):
        """What --blocks and --edges say, and the status, and what they say on stderr."""
        status, out, error = self.run_tool("--blocks", *arguments, text=True)
        blocks = {}
        for line in out.splitlines():
            if line.startswith("block"):
                start, last = (int(word, 16) for word in line.split()[1:3])
                blocks[start] = max(blocks.get(start, 0), last - start)
        of_edges, out, error_of_edges = self.run_tool("--edges", *arguments, text=True)
        edges = [tuple(int(word, 16) for word in line.split()[1:3])
                 for line in out.splitlines() if line.startswith("edge")]
        return (status, blocks, error), (of_edges, edges, error_of_edges)

    def check(self, seen, options, program, image, trace):
        status, out, error = self.run_tool("--instructions", *options, *image, trace, text=True)
        blocks, edges = blocks_and_edges(out.splitlines(), program)
        seen["blocks"] += len(blocks)
        seen["edges"] += len(edges)
        seen["gaps"] += out.count("gap ")
        seen["other --ret"] += "fits the code" in error
        want = {(image[1].rsplit("@", 1)[0], at - BASE): size for at, size in blocks.items()}
        found = self.drcov(*options, *image, trace)
        self.assertEqual(found, (status, want, error.encode()))
        for size in (64, 1 << 16):
            found = self.run_tool("--bitmap", size, *options, *image, trace)
            self.assertEqual(found, (status, bitmap_of(edges, size), error.encode()))

    def test_blocks_and_edges_are_those_of_the_instructions(self):
        seen = dict.fromkeys(("blocks", "edges", "gaps"), 0) | {"other --ret": 0}
        for seed in range(40):
            chance = random.Random(seed)
            program = Program(chance)
            image = ["--image", f"{self.file('code', program.code)}@{BASE:x}"]
            data = Walk(chance, program).run(chance.choice((5, 100, 2000)))
            trace = self.file("trace", data)
            options = ["--jobs", chance.randrange(1, 5)]
            if chance.randrange(4) == 0:
                options += ["--ret", chance.choice(("pop", "keep"))]
            with self.subTest(seed=seed):
                self.check(seen, options, program, image, trace)
        self.assertGreater(min(seen["blocks"], seen["edges"]), 500, seen)
        self.assertGreater(seen["gaps"], 20, seen)

    def test_a_trace_of_several_parts(self):
        program = Program(random.Random(7))
        image = ["--image", f"{self.file('code', program.code)}@{BASE:x}"]
        parts = Walk(random.Random(1), program, filler=220).run(8000)
        trace = self.file("trace", parts)
        self.assertGreater(len(parts), 3 << 18)
        seen = dict.fromkeys(("blocks", "edges", "gaps", "other --ret"), 0)
        for jobs in (1, 3):
            self.check(seen, ["--jobs", jobs], program, image, trace)

    def test_parts_that_need_another_ret(self):
        # 1000: CALL 1008; 5: JMP RAX; 8: CALL 1010; D: JMP RAX; 10: RET.
        code = bytes.fromhex("e803000000 ffe0 90 e803000000 ffe0 90 c3")
        program = Program(random.Random(1))
        program.code = code
        program.all = {0x401000: ("call", 0x401005, 0x401008),
                       0x401005: ("jmp_rax", 0x401007, None),
                       0x401008: ("call", 0x40100D, 0x401010),
                       0x40100D: ("jmp_rax", 0x40100F, None), 0x401010: ("ret", 0x401011, None)}
        # The RET of 1010 leads to 1010, and keeps 40100D; then a RET pops it, and one 401005.
        turn = tip(0x401000) + tip(0x401010) + b"\x06" + tip(0x401010) + b"\x06"
        start = made.PSB + tip(0x40100D, 0x1D) + b"\x99\x01" + made.PSBEND
        one = start + turn[:14] + b"\x06" + tip(0x401010) + b"\x06" + tip(0x40100D)
        parts = one.replace(b"\x06", b"\x06" + bytes(500)) * 500 + b"\x01"
        image = ["--image", f"{self.file('code', code)}@401000"]
        trace = self.file("trace", parts)
        seen = dict.fromkeys(("blocks", "edges", "gaps", "other --ret"), 0)
        for jobs in range(1, 5):
            self.check(seen, ["--jobs", jobs], program, image, trace)
        self.assertEqual(seen["other --ret"], 4, seen)

    def test_what_is_selected(self):
        counts = {"blocks": 0, "edges": 0, "left out": 0, "runs": 0}
        for seed in range(40):
            chance = random.Random(1000 + seed)
            program = Program(chance)
            image = ["--image", f"{self.file('code', program.code)}@{BASE:x}"]
            walk = Walk(chance, program, has_places=seed % 3 != 0)
            data = bytearray(walk.run(chance.choice((20, 500, 3000))))
            if seed % 2 == 0:  # damage
                for _ in range(chance.randrange(1, 20)):
                    data[chance.randrange(16, len(data))] = chance.randrange(256)
            trace = self.file("trace", data)
            options = ["--jobs", chance.randrange(1, 5)]
            if seed % 3 != 1:
                first = chance.randrange(walk.tsc)
                options += ["--time", f"{first}-{chance.randrange(first, 2 * walk.tsc)}"]
            if seed % 3 != 0:
                options += chance.choice((["--only", "root"], ["--only", "guest"],
                                          ["--cr3", "1000"], ["--vmcs", "5000"]))
            if chance.randrange(3) == 0:
                first = chance.randrange(len(data))
                options += ["--from", first, "--to", chance.randrange(first, len(data))]
            with self.subTest(seed=seed, options=options):
                (status, blocks, said), of_edges = self.listed(*options, *image, trace)
                edges = of_edges[1]
                path = image[1].rsplit("@", 1)[0]
                found, sizes, error = self.drcov(*options, *image, trace)
                self.assertEqual((found, error), (status, said.encode()))
                self.assertEqual(sorted(sizes), sorted((path, at - BASE) for at in blocks))
                for at, size in blocks.items():
                    last = at + size
                    if last in program.all:  # damage also leads into an instruction
                        self.assertEqual(sizes[path, at - BASE], program.all[last][1] - at)
                found = self.run_tool("--bitmap", 256, *options, *image, trace)
                self.assertEqual(found, (of_edges[0], bitmap_of(edges, 256), of_edges[2].encode()))
            counts["blocks"] += len(blocks)
            counts["edges"] += len(edges)
            counts["left out"] += "left out: 0 " not in said and "left out" in said
            counts["runs"] += 1
        self.assertGreater(min(counts["blocks"], counts["edges"]), 300, counts)
        self.assertGreater(counts["left out"], 15, counts)

    def test_several_threads_of_several_processes(self):
        event = made.Event(config=0x600 | 3 << 14, ids=[1],
                           sample_type=made.TID | made.TIME | made.CPU)
        for seed in range(8):
            chance = random.Random(seed)
            records, edges, want, status = [made.info_of()], [], {}, 0
            threads = [(100, 100), (100, 101), (200, 200), (200, 201)][:chance.randrange(1, 5)]
            programs = {pid: Program(chance) for pid in (100, 200)}
            paths = {}
            for pid, program in programs.items():
                data = made_elf(program.code, BASE)
                paths[pid] = self.file(f"program{pid}", data)
                offset = data.index(program.code)
                body = (made.u32(pid, pid) + made.u64(BASE, len(program.code), offset) +
                        made.u32(0, 0) + made.u64(0, 0) + made.u32(5, 2) +
                        made.c_string(str(paths[pid]).encode()))
                records.append(made.Record(10, body, "", misc=2,
                                           end=(made.id_end(event, pid, 0, 0), "")))
            for pid, tid in threads:
                body = made.u32(pid, tid) + made.c_string(b"name")
                records.append(made.Record(3, body, "", end=(made.id_end(event, tid, 0, 0), "")))
            for number, (pid, tid) in enumerate(threads):
                trace = Walk(chance, programs[pid]).run(chance.randrange(500))
                records.append(made.auxtrace(made.padded(trace), idx=number, tid=tid))
            path = self.file("perf.data", made.file_of([event], records)[0])
            for pid, tid in threads:
                found, out, error = self.run_tool("--instructions", "--tid", tid, path, text=True)
                status |= found
                blocks, more = blocks_and_edges(out.splitlines(), programs[pid])
                edges += more
                for at, size in blocks.items():
                    key = (str(paths[pid]), at - BASE)
                    want[key] = max(want.get(key, 0), size)
            with self.subTest(seed=seed):
                for jobs in range(1, 5):
                    self.assertEqual(self.drcov("--jobs", jobs, path), (status, want, b""))
                    self.assertEqual(self.run_tool("--bitmap", 1024, "--jobs", jobs, path),
                                     (status, bitmap_of(edges, 1024), b""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
