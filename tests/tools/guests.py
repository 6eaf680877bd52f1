#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Hosts and guests: what is selected by --only, --vmcs and --cr3, and the code of guests.

    guests.py PT_FLOW PT_DUMP TIMELINE
"""

import json
import pathlib
import random
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
import timeline_page  # noqa: E402
from elf_files import CORE, made_elf  # noqa: E402
from folder import Folder  # noqa: E402

PT_FLOW, PT_DUMP, TIMELINE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
KERNEL, GUEST_KERNEL, GUEST_USER = 0xFFFFFFFF81000000, 0xFFFFFFFF82000000, 0x401000
CR3S, VMCSS = (0x1000, 0x2000, 0xABCDE0), (0x5000, 0x6000)
OVF = b"\x02\xf3"


def pip(cr3, nr):
    """A PIP: CR3[51:5] from bit 16 of the 8 bytes, after NR in bit 16 of it: PKT-080."""
    return b"\x02\x43" + (cr3 >> 4 | nr).to_bytes(6, "little")


def vmcs(base):
    return b"\x02\xc8" + (base >> 12).to_bytes(5, "little")


def tip(target, kind=0x0D):
    return bytes([kind | 3 << 5]) + (target & (1 << 48) - 1).to_bytes(6, "little")


def fup(ip):
    return tip(ip, 0x1D)


def run(tool, *arguments, data=None):
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, timeout=120,
                          input=data)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Place:
    """What the last PIP and VMCS in the lines said."""

    LOSSES = ("!error", "!damage", "!resync", "!nosync", "!gap", "overflow", "ovf")

    def __init__(self):
        self.nr = self.cr3 = self.base = None

    def take(self, line):
        name = line.split()[1]
        fields = dict(part.split("=", 1) for part in line.split()[2:] if "=" in part)
        if name in self.LOSSES:
            self.nr = self.cr3 = self.base = None
        if name in ("pip", "paging"):
            self.nr, self.cr3 = int(fields["nr"]), int(fields["cr3"], 16)
        if name == "vmcs":
            self.base = int(fields["base"], 16)

    def takes(self, only=None, vmcs=None, cr3=None):
        """Whether it is the wanted one, and whether that is known."""
        asked = [(only, self.nr), (vmcs, self.base), (cr3, self.cr3)]
        asked = [(one, is_there) for one, is_there in asked if one is not None]
        return (all(one == is_there for one, is_there in asked),
                all(is_there is not None for _, is_there in asked))


def filtered(lines, **wanted):
    """The lines of a place, and how many others there are, also at unknown places."""
    place, kept, others, unknown = Place(), [], 0, 0
    for line in lines:
        place.take(line)
        is_there, is_known = place.takes(**wanted)
        if line.split()[1].startswith("!") or is_there:
            kept.append(line)
        else:
            others += 1
            unknown += not is_known
    return kept, others, unknown


def options_of(only=None, vmcs=None, cr3=None):
    made_options = []
    if only is not None:
        made_options += ["--only", ("root", "guest")[only]]
    if vmcs is not None:
        made_options += ["--vmcs", hex(vmcs)]
    if cr3 is not None:
        made_options += ["--cr3", f"{cr3:x}"]
    return made_options


class Selected(Folder):
    def random_trace(self, chance):
        out = b""
        for _ in range(chance.randrange(1, 4)):
            out += made.PSB + chance.choice((b"", pip(chance.choice(CR3S), chance.randrange(2))))
            out += chance.choice((b"", vmcs(chance.choice(VMCSS)))) + made.PSBEND
            out += b"\x99\x01" + tip(0x401000, 0x11)
            for _ in range(chance.randrange(30)):
                kind = chance.randrange(8)
                cr3 = pip(chance.choice(CR3S), chance.randrange(2))
                if kind < 2:
                    out += cr3 + tip(chance.randrange(1 << 32))  # VM entry, MOV CR3
                elif kind == 2:
                    out += fup(chance.randrange(1 << 32)) + cr3 + tip(chance.randrange(1 << 32))
                elif kind == 3:
                    out += vmcs(chance.choice(VMCSS))
                elif kind == 4 and chance.randrange(4) == 0:
                    out += OVF + fup(0x401000)
                elif kind == 5 and chance.randrange(8) == 0:
                    out += b"\xd9"  # no packet
                else:
                    out += chance.choice((b"\x06", b"\x0c", tip(chance.randrange(1 << 32)),
                                          b"\x02\x03\x18\0"))
            out += b"\x01"
        return out

    def test_a_listing_of_a_place_has_the_lines_of_the_whole_one(self):
        chance = random.Random(5)
        seen = {"kept": 0, "others": 0, "unknown": 0}
        for _ in range(120):
            data = self.random_trace(chance)
            form = chance.choice(([], ["--events"]))
            wanted = {name: value for name, value in
                      (("only", chance.randrange(2)), ("cr3", chance.choice(CR3S)),
                       ("vmcs", chance.choice(VMCSS))) if chance.randrange(2)}
            if not wanted:
                continue
            status, whole, _ = run(PT_DUMP, *form, "-", data=data)
            kept, others, unknown = filtered(whole.splitlines()[:-1], **wanted)
            options = options_of(**wanted)
            got, out, error = run(PT_DUMP, *form, *options, "-", data=data)
            lines = out.splitlines()
            self.assertEqual(lines[:-1], kept, (options, data.hex()))
            self.assertTrue(lines[-1].endswith(f" left_out={others} unknown={unknown}"), lines[-1])
            is_empty = others != 0 and not any(line.split()[1][0] != "!" for line in kept)
            said = (f"pt_dump: no {'events' if form else 'packets'}: nothing where --only, --vmcs "
                    f"and --cr3 select, but {others} elsewhere\n")
            self.assertEqual((got, error), (max(status, 1), said) if is_empty else (status, ""))
            text = run(PT_DUMP, *form, *options, "--json", "-", data=data)[1].splitlines()
            self.assertEqual(len(text), len(lines))
            self.assertEqual((json.loads(text[-1])["left_out"], json.loads(text[-1])["unknown"]),
                             (others, unknown))
            for name, count in (("kept", len(kept)), ("others", others), ("unknown", unknown)):
                seen[name] += count
        self.assertGreater(min(seen.values()), 200, seen)

    def test_vm_entries_and_exits_have_names(self):
        start = made.PSB + pip(0x1000, 0) + made.PSBEND + b"\x99\x01" + tip(0x1000, 0x11)
        data = (start + pip(0x2000, 1) + tip(0x2000) + fup(0x2001) + pip(0x1000, 0) + tip(0x1004) +
                pip(0x3000, 0) + b"\x06")
        lines = run(PT_DUMP, "--events", "-", data=data)[1].splitlines()
        named = [re.search(r"cr3=(\w+).*?(?: vm=(\w+))?$", line).groups() for line in lines
                 if " paging " in line]
        self.assertEqual(named, [("0x1000", None), ("0x2000", "entry"), ("0x1000", "exit"),
                                 ("0x3000", None)])

    def test_a_page_of_a_place(self):
        start = made.PSB + pip(0x1000, 0) + made.PSBEND + b"\x99\x01" + tip(0x1000, 0x11)
        data = self.file("trace", start + b"\x06" * 5 + pip(0x2000, 1) + b"\x06" * 3 + b"\x01")
        counts = {}
        for where in ("root", "guest"):
            status, page, error = run(TIMELINE, "--only", where, "-o", "-", data)
            self.assertEqual(status, 0)
            counts[where] = timeline_page.data_of(page)["streams"][0]["conditional"]
            self.assertRegex(error, r"timeline: left out: \d+ events \(\d+ where")
        self.assertEqual(counts, {"root": 5, "guest": 3})

    def test_wrong_usage(self):
        trace = self.file("trace", made.PSB)
        for tool in (PT_DUMP, PT_FLOW, TIMELINE):
            for arguments, why in ((["--only", "host"], "--only takes root or guest"),
                                   (["--cr3", "x"], "no hexadecimal"),
                                   (["--guest"], "no such option")):
                status, _, error = run(tool, *arguments, trace)
                self.assertEqual(status, 2)
                self.assertIn(why, error)
        for form in ("--summary", "--check", "--streams", "--chrome-trace"):
            self.assertEqual(run(PT_DUMP, form, "--only", "root", trace)[0], 2, form)
        self.assertEqual(run(TIMELINE, "--calls", "--only", "root", "-o", "-", trace)[0], 2)


class Code(Folder):
    """A host that enters a guest, which calls a function in the kernel; then the guest's user
    code, which an interrupt leaves."""

    # KERNEL: NOP; VMRESUME; 4: NOP; JMP RAX
    HOST = bytes.fromhex("90 0f01c3 90 ffe0")
    # GUEST_KERNEL: CALL 8; 5: SYSRETQ; 8: NOP; RET
    GUEST = bytes.fromhex("e803000000 480f07 90 c3")
    # GUEST_USER: NOP; JMP to itself
    USER = bytes.fromhex("90 ebfd")

    def setUp(self):
        super().setUp()
        self.event = made.Event(config=0x600 | 3 << 14, ids=[1],
                                sample_type=made.TID | made.TIME | made.CPU)
        self.host = self.file("host", made_elf(self.HOST, KERNEL, [("host_loop", KERNEL, 7)],
                                               kind=CORE))
        self.guest = self.file("guest", made_elf(self.GUEST, GUEST_KERNEL, kind=CORE))
        self.names = self.file("names", b"ffffffff82000000 T guest_start\n"
                                        b"ffffffff82000008 T guest_function\n")
        (self.folder / "root" / "bin").mkdir(parents=True)
        self.file("root/bin/user", self.USER.ljust(16, b"\x90"))

    def end(self):
        return made.id_end(self.event, 100, 77, 0), ""

    def mapping(self, pid, path):
        body = (made.u32(pid, pid) + made.u64(GUEST_USER, 0x1000, 0) + made.u32(0, 0) +
                made.u64(0, 0) + made.u32(5, 2) + made.c_string(path))
        return made.Record(10, body, "", misc=5, end=self.end())

    def perf_data(self, *records):
        trace = (made.PSB + b"\x19" + (84 * 800).to_bytes(7, "little") + pip(0x1000, 0) +
                 made.PSBEND + b"\x99\x01" + tip(KERNEL, 0x11) +
                 pip(0x2000, 1) + tip(GUEST_KERNEL) +      # VMRESUME
                 b"\x06" + tip(GUEST_USER) +               # RET, SYSRET
                 fup(GUEST_USER + 1) + pip(0x1000, 0) + tip(KERNEL + 4) +  # VM exit
                 tip(KERNEL) + b"\x01")
        switch = made.Record(14, b"", "", end=self.end())
        records = [*records, switch, made.auxtrace(made.padded(trace), tid=0xFFFFFFFF, cpu=0)]
        return self.file("perf.data", made.file_of([self.event], [made.info_of(), *records])[0])

    def walk(self, *arguments, file=None, guest=True):
        of_guest = ["--guest-kernel", self.guest, "--guest-kallsyms", self.names, "--guest-symfs",
                    self.folder / "root"]
        return run(PT_FLOW, "--kernel", self.host, *(of_guest if guest else ()), *arguments,
                   file or self.perf_data(self.mapping(7, b"/bin/user")))

    IPS = {"root": [KERNEL, KERNEL + 1, KERNEL + 4, KERNEL + 5, KERNEL, KERNEL + 1],
           "guest": [GUEST_KERNEL, GUEST_KERNEL + 8, GUEST_KERNEL + 9, GUEST_KERNEL + 5,
                     GUEST_USER]}

    def test_the_instructions_of_host_and_guest(self):
        status, out, error = self.walk("--instructions")
        order = self.IPS["root"][:2] + self.IPS["guest"] + self.IPS["root"][2:]
        self.assertEqual((status, [int(one, 16) for one in out.split()], error), (0, order, ""))
        for where, unknown in (("root", 0), ("guest", 0)):
            status, out, error = self.walk("--instructions", "--only", where)
            self.assertEqual([int(one, 16) for one in out.split()], self.IPS[where])
            others = len(order) - len(self.IPS[where])
            self.assertEqual((status, error), (0, f"pt_flow: left out: {others} instructions "
                                                  f"({unknown} where the place is not known), "
                                                  "0 edges, 0 gaps\n"))
        _, out, _ = self.walk("--instructions", "--cr3", "0x2000")
        self.assertEqual([int(one, 16) for one in out.split()], self.IPS["guest"])
        _, out, error = self.walk("--instructions", "--vmcs", "5000")
        self.assertEqual(out, "")
        self.assertIn(f"{len(order)} instructions ({len(order)} where the place is not", error)

    def test_edges_are_vm_entries_and_exits(self):
        for jobs in (1, 3):
            lines = self.walk("--edges", "--jobs", jobs)[1].splitlines()
            self.assertEqual([line for line in lines if "vm-" in line],
                             [f"edge 0x{KERNEL + 1:x} 0x{GUEST_KERNEL:x} vm-entry",
                              f"edge 0x{GUEST_USER + 1:x} 0x{KERNEL + 4:x} event vm-exit"])
        guest = self.walk("--edges", "--only", "guest")[1].splitlines()
        self.assertEqual(guest, lines[1:-1])

    def test_calls_and_names_of_the_guest(self):
        folded = self.walk("--folded")[1]
        self.assertIn("thread 100/100 guest\n", folded)
        self.assertIn("guest_start;guest_function 2\n", folded)
        self.assertNotIn("guest", self.walk("--folded", guest=False)[1])
        only = self.walk("--calls", "--only", "guest")[1]
        self.assertIn("guest_function()", only)
        self.assertNotIn("host_loop", only)

    def test_without_its_code_a_guest_is_a_gap(self):
        status, out, _ = self.walk("--instructions", guest=False)
        self.assertEqual(status, 1)
        self.assertTrue(re.search(r"^gap missing-code .* from=0xffffffff82000000", out, re.M), out)
        status, out, error = self.walk("--instructions", "--only", "root", guest=False)
        self.assertEqual([int(one, 16) for one in out.split()], self.IPS["root"])
        self.assertEqual((status, "2 gaps\n" in error), (0, True), error)

    def test_files_of_two_processes_of_a_guest(self):
        self.file("root/bin/other", b"\xcc" * 16)
        both = [self.mapping(7, b"/bin/user"), self.mapping(8, b"/bin/other")]
        _, out, error = self.walk("--instructions", file=self.perf_data(*both))
        self.assertIn("gap missing-code", out)
        self.assertIn("/bin/other: another file is there in a guest", error)
        same = [self.mapping(7, b"/bin/user"), self.mapping(8, b"/bin/user")]
        status, _, error = self.walk("--instructions", file=self.perf_data(*same))
        self.assertEqual((status, error), (0, ""))

    def test_after_lost_packets_the_place_is_not_known(self):
        image = f"{self.file('code', bytes.fromhex('7400 ffe0'))}@1000"
        start = made.PSB + pip(0x1000, 1) + made.PSBEND + b"\x99\x01" + tip(0x1000, 0x11)
        trace = self.file("trace", start + b"\x06" + OVF + fup(0x1000) + b"\x06" + tip(0x1000) +
                          b"\x01")
        status, out, error = run(PT_FLOW, "--instructions", "--image", image, "--only", "guest",
                                 trace)
        self.assertEqual(out.split(), ["0x1000"])
        self.assertIn("3 instructions (3 where the place is not known)", error)


if __name__ == "__main__":
    unittest.main()
