#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_cut as a program: recorded traces, made packets, and wrong usage.

    pt_cut.py PT_CUT PT_DUMP PT_ASM

Of every recorded trace, the segments one by one are the bytes of the original, without its damage.
After replacement the listing has the same packets at the same offsets, and the replaced values are
a one-to-one map of the original ones. Where libipt is installed, it reads the same packets.
"""

import collections
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
import traces  # noqa: E402
from tool_checks import ToolChecks  # noqa: E402

PT_CUT, PT_DUMP, PT_ASM = sys.argv[1:4]
ROOT = pathlib.Path(__file__).resolve().parents[2]
PSB = bytes.fromhex("0282" * 8)
SEGMENT = re.compile(r"(\d+) ([0-9a-f]{8}) bytes=(\d+) packets=(\d+) dropped=(\d+) "
                     r"tsc=(0x[0-9a-f]+|-) ip=(0x[0-9a-f]+|-)$")
# The fields that each option replaces, by packet.
IPS = dict.fromkeys(("tip", "tip.pge", "tip.pgd", "fup"), ("payload", "ip"))
FEW = ["--psb", "-30"]  # of long traces

SCRATCH = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(SCRATCH.name)
SMALL = FOLDER / "small.pt"
# PSB, CBR, PSBEND, TIP to 0x401000, TIP to 0x401080; PSB, PSBEND, PTW, TIP
SMALL_BYTES = (PSB + bytes.fromhex("02031800" "0223" "4d00104000" "2d8010") +
               PSB + bytes.fromhex("0223" "0212efbeadde" "4d00105500"))
SMALL.write_bytes(SMALL_BYTES)


def run(program, *arguments, data=None):
    done = subprocess.run([program, *map(str, arguments)], input=data, capture_output=True)
    return done.returncode, done.stdout, done.stderr.decode()


def assembled(text):
    status, out, error = run(PT_ASM, data=text.encode())
    assert (status, error) == (0, ""), error
    return out


def lines_of(data):
    """The lines of the packets; only packets may occur."""
    lines = run(PT_DUMP, "--no-sync", "-", data=data)[1].decode().splitlines()[:-1]
    assert not any(" !" in line for line in lines), lines
    return lines


def parsed(line):
    offset, name, *fields = line.split()
    return int(offset, 16), name, dict(field.split("=") for field in fields)


def listed(data):
    """The packets as (offset, name, fields)."""
    return [parsed(line) for line in lines_of(data)]


def cut(data, *options):
    """What pt_cut writes for a trace that it accepts."""
    status, out, error = run(PT_CUT, *options, "-", "-o", "-", data=data)
    assert status == 0, error
    return out


def segments(data, *options):
    status, out, error = run(PT_CUT, "--list", *options, "-", data=data)
    assert (status, error) == (0, ""), error
    return [SEGMENT.fullmatch(line).groups() for line in out.decode().splitlines()]


def undamaged(data):
    """The (offset, length) of each packet that can be decoded."""
    for line in run(PT_DUMP, "-", data=data)[1].decode().splitlines():
        offset, name, *fields = line.split()
        if not name.startswith("!"):
            yield int(offset, 16), int(fields[0].removeprefix("len="))


def recorded():
    """(name, bytes) of every trace with a PSB."""
    for name, data, golden, sync in traces.all_traces():
        if sync and " psb len=16" in golden:
            yield name, data


class PtCut(ToolChecks, unittest.TestCase):
    TOOL = PT_CUT
    PRINTS = [(["--list", "-"], SMALL_BYTES * 1000), (["-", "-o", "-"], SMALL_BYTES * 3000),
              (["--private", "-", "-o", "-"], SMALL_BYTES * 1000)]
    WRITES = [[SMALL, "-o"], [SMALL, "-o", FOLDER / "out", "--private", "--save-map"]]
    READS = [["-o", FOLDER / "out"], ["--list"]]
    READS_STDIN = [["-", "-o", FOLDER / "out"], ["--list", "-"]]

    def test_wrong_usage(self):
        for arguments, about in (
                ([], "give a trace"), ([SMALL], "give -o OUT, or --list"),
                ([SMALL, SMALL, "--list"], "takes one trace"),
                (["--list", SMALL, "-o", "x"], "--list writes no trace"),
                (["--list", SMALL, "--psb", "1", "--around", "0"], "give one"),
                (["--list", SMALL, "--segments", "1"], "--segments needs --around"),
                (["--list", SMALL, "--offsets"], "--offsets needs --ip map"),
                (["--list", SMALL, "--ratio", "168/2"], "--ratio needs --tsc rebase"),
                (["--list", SMALL, "--tsc", "rebase", "--ratio", "168/0"], "like 168/2"),
                (["--list", SMALL, "--tsc", "rebase", "--ratio", "0/2"], "like 168/2"),
                (["--list", SMALL, "--tsc", "rebase", "--ratio", "4294967296/2"], "like 168/2"),
                (["--list", SMALL, "--psb", "3"], "the trace has 2 segments"),
                (["--list", SMALL, "--psb", "0"], "--psb takes"),
                (["--list", SMALL, "--psb", "0-2"], "--psb takes"),
                (["--list", SMALL, "--psb", "2-1"], "--psb takes"),
                (["--list", SMALL, "--psb", "-"], "--psb takes"),
                (["--list", SMALL, "--bytes", "7"], "--bytes takes"),
                (["--list", SMALL, "--bytes", "7-7"], "--bytes takes"),
                (["--list", SMALL, "--bytes", "1000-"], "the trace ends at 0000003b"),
                (["--list", SMALL, "--around", "3b"], "the trace ends at 0000003b"),
                (["--list", SMALL, "--around", "x"], "--around takes"),
                (["--list", SMALL, "--around", "0", "--segments", "0"], "at least 1"),
                (["--list", SMALL, "--ip", "drop"], "--ip takes map or zero"),
                (["--list", SMALL, "--ptw", "map"], "--ptw takes zero"),
                ([SMALL, "-o", "x", "--save-map", "x"], "name one file"),
                ([SMALL, "-o", SMALL], "is both the trace and an output"),
                ([SMALL, "-o", FOLDER / "out", "--save-map", SMALL], "is both the trace and")):
            done = self.run_tool(*arguments)
            self.assert_fails(done, arguments)
            self.assertIn(about, done.stderr.decode(), arguments)
            self.assertEqual(done.stdout, b"")
        self.assertEqual(SMALL.read_bytes(), SMALL_BYTES)

    def test_a_perf_data_file_is_refused(self):
        for magic in (b"PERFILE2", b"2ELIFREP"):
            self.assertEqual(run(PT_CUT, "--list", "-", data=magic + SMALL_BYTES),
                             (2, b"", "pt_cut: standard input: is a perf.data file, not a raw "
                                      "trace; pt_dump and timeline read these\n"))

    def test_a_trace_without_psb(self):
        self.assertEqual(run(PT_CUT, "--list", "-", data=b"\0" * 40),
                         (3, b"", "pt_cut: no PSB to cut at\n"))


class Selection(unittest.TestCase):
    FIVE = b"".join(PSB + bytes([0x02, 0x23]) + bytes(number) for number in range(5))
    BEGINS = (0, 18, 37, 57, 78, 100)

    def check(self, first, last, *options, said=""):
        """The options select the segments from `first` to `last`, counted from 1."""
        status, out, error = run(PT_CUT, *options, "-", "-o", "-", data=self.FIVE)
        self.assertEqual((status, error), (0, said))
        self.assertEqual(out, self.FIVE[self.BEGINS[first - 1]:self.BEGINS[last]], options)
        numbers = [int(one[0]) for one in segments(self.FIVE, *options)] if not said else None
        self.assertIn(numbers, (None, list(range(first, last + 1))), options)

    def test_by_number(self):
        for text, first, last in (("1", 1, 1), ("5", 5, 5), ("2-4", 2, 4), ("3-", 3, 5),
                                  ("-2", 1, 2), ("4-99", 4, 5)):
            self.check(first, last, "--psb", text)

    def test_by_offset_rounded_to_psbs(self):
        def rounded(asked, to):
            return f"pt_cut: bytes {asked} rounded to {to}\n"
        self.check(2, 2, "--bytes", "12-25")
        self.check(2, 2, "--bytes", "0x12-0x25")
        self.check(4, 5, "--bytes", "39-")
        self.check(2, 2, "--bytes", "24-25", said=rounded("00000024-00000025",
                                                          "00000012-00000025"))
        self.check(2, 3, "--bytes", "24-26", said=rounded("00000024-00000026",
                                                          "00000012-00000039"))
        self.check(1, 2, "--bytes=".rstrip("="), "-13",
                   said=rounded("00000000-00000013", "00000000-00000025"))

    def test_around_an_offset(self):
        for offset, count, first, last in (("39", "1", 4, 4), ("4d", "1", 4, 4), ("4e", "1", 5, 5),
                                           ("39", "3", 3, 5), ("39", "2", 4, 5), ("39", "4", 3, 5),
                                           ("0", "3", 1, 2), ("63", "3", 4, 5), ("25", "99", 1, 5)):
            self.check(first, last, "--around", offset, "--segments", count)
        self.check(2, 4, "--around", "25")

    def test_the_list(self):
        data = b"\x05" + SMALL_BYTES + b"\x05\x05" + PSB + assembled("tsc tsc=0x5\ntsc tsc=0x7\n")
        self.assertEqual([" ".join(one) for one in segments(data)],
                         ["1 00000001 30 5 0 - 0x401000", "2 0000001f 29 4 2 - 0x551000",
                          "3 0000003e 32 3 0 0x5 -"])


class Damage(unittest.TestCase):
    DATA = b"\x05" * 3 + PSB + b"\x06\x06" + b"\x05" * 4 + PSB + b"\x06" + PSB + b"\x02"

    def test_damaged_bytes_are_dropped_and_reported(self):
        self.assertEqual(run(PT_CUT, "-", "-o", "-", data=self.DATA),
                         (0, PSB + b"\x06\x06" + PSB + b"\x06" + PSB,
                          "pt_cut: 3 bytes before the first PSB: dropped\n"
                          "pt_cut: damage in 2 of 3 segments, the first at 00000015: "
                          "5 bytes dropped\n"))
        self.assertEqual(run(PT_CUT, "--psb", "2", "-", "-o", "-", data=self.DATA),
                         (0, PSB + b"\x06", ""))

    def test_damaged_segments_are_dropped(self):
        status, out, _ = run(PT_CUT, "--drop-damaged", "-", "-o", "-", data=self.DATA)
        self.assertEqual((status, out), (0, PSB + b"\x06"))
        self.assertEqual(run(PT_CUT, "--drop-damaged", "--psb", "3", "-", "-o", "-",
                             data=self.DATA)[:2], (3, b""))

    def test_a_psb_whose_beginning_another_packet_has_taken(self):
        # A TNT of 8 bytes takes 5 bytes of the PSB, and the next byte is a TNT of 1 byte.
        data = PSB + b"\x02\xa3\x06" + PSB + b"\x06" * 20
        self.assertEqual(run(PT_CUT, "-", "-o", "-", data=data), (
            0, data[:16 + 9] + PSB + b"\x06" * 20,
            "pt_cut: damage in 1 of 2 segments, the first at 00000019: 0 bytes dropped\n"))

    def test_random_bytes_are_never_written(self):
        rng = random.Random(7)
        whole = assembled("psb\n" +
                          "tip ip=0xffffffff81001000\ntnt.8 bits=TN\npip cr3=0x1000\n" * 9)
        for round_ in range(150):
            data = bytearray(whole * 8)
            for _ in range(rng.randrange(12)):
                place = rng.randrange(len(data))
                data[place:place + rng.randrange(40)] = rng.randbytes(rng.randrange(40))
            status, out, error = run(PT_CUT, "--private", "-", "-o", "-", data=bytes(data))
            self.assertIn(status, (0, 3), (round_, error))
            if status == 0:
                listed(out)  # fails where the output has damage


class Comparison(unittest.TestCase):
    def compare(self, before, after, what):
        """Packets, offsets and all fields are equal but those in `what`: packet -> fields. Returns
        the pairs of values that replace each other, by field."""
        before, after = lines_of(before), lines_of(after)
        pairs = collections.defaultdict(list)
        self.assertEqual(len(before), len(after))
        for one, other in zip(before, after):
            if one == other and one.split(" ", 2)[1] not in what:
                continue
            one, other = parsed(one), parsed(other)
            self.assertEqual(one[:2], other[:2])
            for field, value in one[2].items():
                if field in what.get(one[1], ()):
                    pairs[field].append((value, other[2][field]))
                else:
                    self.assertEqual(value, other[2][field], (one, field))
        return pairs

    def assert_one_to_one(self, pairs, shift=0):
        there = {(int(a, 16) >> shift, int(b, 16) >> shift) for a, b in pairs if a != "-"}
        self.assertEqual(len({a for a, _ in there}), len(there))
        self.assertEqual(len({b for _, b in there}), len(there))
        return there


class Replacement(Comparison):
    def test_ips_are_mapped_in_order_of_first_use(self):
        text = "psb\n" + "".join(f"tip ip={ip:#x}\n" for ip in (
            0x7F12_3456_7890, 0x7F12_3456_7000, 0x7F12_3456_F123, 0x7F12_3457_0123,
            0x7F12_4000_0000, 0x40_1000, 0xFFFF_FFFF_8100_0040, 0xFFFF_FFFF_8200_0040,
            0x7F12_3456_7891))
        mapped = [fields["ip"] for _, name, fields in listed(cut(assembled(text), "--ip", "map"))
                  if name == "tip"]
        self.assertEqual(mapped, [
            "0x100000890", "0x100000000", "0x100001123", "0x100010123", "0x100020000", "0x10000",
            "0xffff800000000040", "0xffff800000010040", "0x100000891"])
        text += "tip ip=0x7f1234567890\n"
        mapped = [fields["ip"] for _, name, fields in
                  listed(cut(assembled(text), "--ip", "map", "--offsets")) if name == "tip"]
        self.assertEqual(mapped, [
            "0x100000000", "0x100000001", "0x100001000", "0x100010000", "0x100020000", "0x10000",
            "0xffff800000000000", "0xffff800000010000", "0x100000002", "0x100000000"])

    def test_every_form_of_every_ip_stays_consistent(self):
        rng = random.Random(3)
        near = [0, 1, 0x7FFF, 0x8000, 0xFFFF, 0xFF, 0x100, 0xFF00, 0xFFFE]
        for round_ in range(60):
            some = [rng.choice(near) for _ in range(3)] + [rng.getrandbits(16)]
            lines = []
            for _ in range(300):
                ip = sum(rng.choice(some) << 16 * i for i in range(4))
                if rng.random() < 0.05:
                    lines.append("psb")
                lines.append(f"{rng.choice(list(IPS))} ipc={rng.choice((0, 1, 2, 3, 4, 6))} "
                             + f"ip={ip:#x}")
            data = assembled("psb\npad\n" + "\n".join(re.sub("ipc=0 ip=.*", "", x) for x in lines))
            before = [f for _, name, f in listed(data) if name in IPS]
            for options in (["--ip", "map"], ["--ip", "map", "--offsets"]):
                status, after, error = run(PT_CUT, *options, "-", "-o", "-", data=data)
                if status == 1:  # pages below 64 KB
                    self.assertIn("too full", error)
                    self.assertTrue(sum(f["ip"] != "-" and int(f["ip"], 16) < 1 << 16
                                        for f in before) > 8)
                    continue
                self.assertEqual((status, error), (0, ""))
                pairs = self.compare(data, after, IPS)["ip"]
                there = self.assert_one_to_one(pairs)
                for bits in (12, 16, 32, 48):
                    self.assert_one_to_one(pairs, bits)
                for old, new in there:
                    if "--offsets" not in options:
                        self.assertEqual(old & 0xFFF, new & 0xFFF)
                    self.assertEqual(old >> 47 & 1, new >> 47 & 1)
                    self.assertEqual(old >> 63, new >> 63)
                self.assertFalse({a >> 12 for a, _ in there} & {b >> 12 for _, b in there})

    def test_low_pages_of_which_too_many_are_used_are_refused(self):
        low = "psb\n" + "".join(f"tip ip={page << 12:#x}\n" for page in range(9))
        status, out, error = run(PT_CUT, "--ip", "map", "-", "-o", "-", data=assembled(low))
        self.assertEqual((status, out), (1, b""))
        self.assertRegex(error, r"^pt_cut: nothing written: [0-9a-f]{8} tip has an IP in a page "
                                r"of the original: .*--ip zero")
        zero = listed(cut(assembled(low), "--ip", "zero"))
        self.assertEqual({f["ip"] for _, name, f in zero if name == "tip"}, {"0x0"})

    def test_no_page_becomes_a_page_of_the_original(self):
        # The blocks 1, 2, ... that the map would give are used by the original.
        text = "psb\n" + "".join(f"tip ip={block << 16 | 0x123:#x}\n" for block in range(9, 0, -1))
        data = assembled(text)
        pairs = self.compare(data, cut(data, "--ip", "map"), IPS)["ip"]
        there = self.assert_one_to_one(pairs)
        self.assertEqual({b >> 16 for _, b in there}, set(range(10, 19)))

    def test_values_that_are_addresses_are_refused(self):
        for line, option in (("ptw size=8 payload=0x401fff", "ptw"),
                             ("ptw size=4 payload=0x401fff", "ptw"),
                             ("evd type=0 payload=0x401fff", "evd"),
                             ("mnt payload=0x401000", "mnt"),
                             ("bbp type=4 sz=8\nbip id=0 payload=0x401000", "bip"),
                             ("ptw plc=1 payload=0x5678000", "ptw"),
                             ("ptw plc=1 payload=0x567801f", "ptw"),
                             ("ptw plc=1 payload=0x9abc000", "ptw")):
            data = assembled("psb\npip cr3=0x5678000\nvmcs base=0x9abc000\ntip ip=0x401000\n" +
                             line)
            how = ["--ip", "map", "--cr3", "map", "--vmcs", "map"]
            status, out, error = run(PT_CUT, *how, "-", "-o", "-", data=data)
            self.assertEqual((status, out), (1, b""), line)
            self.assertRegex(error, rf"nothing written: [0-9a-f]{{8}} {option} has a .*--{option} "
                                    "zero removes it")
            self.assertEqual(run(PT_CUT, *how, f"--{option}", "zero", "-", "-o", "-",
                                 data=data)[::2], (0, ""))
            # Nothing is replaced, or the value is no address of the trace.
            self.assertEqual(cut(data), data)
            other = re.sub("0x401", "0x411", re.sub("0x5678|0x9abc", "0x1111", line))
            cut(data.replace(assembled("psb\n" + line)[16:], assembled("psb\n" + other)[16:]), *how)
        data = assembled("psb\ntip ip=0x123\nptw plc=1 payload=0x123\n")
        cut(data, "--ip", "map")  # a small number is no address

    def test_cr3_and_vmcs(self):
        text = ("psb\n" + "pip cr3=0x1234567000 nr=1\npip cr3=0x1000 nr=0\npip cr3=0x1234567060\n"
                "pip cr3=0x1234567000\nvmcs base=0x55555000\nvmcs base=0xffffffffff000\n"
                "vmcs base=0x1000\n")
        data = assembled(text)
        what = {"pip": ("cr3",), "vmcs": ("base",)}
        pairs = self.compare(data, cut(data, "--cr3", "map", "--vmcs", "map"), what)
        self.assertEqual([b for _, b in pairs["cr3"]], ["0x2000", "0x3000", "0x4000", "0x2000"])
        self.assertEqual([b for _, b in pairs["base"]], ["0x2000", "0xffffffffff000", "0x3000"])
        pairs = self.compare(data, cut(data, "--cr3", "zero", "--vmcs", "zero"), what)
        self.assertEqual([b for _, b in pairs["cr3"]], ["0x0"] * 4)
        self.assertEqual([b for _, b in pairs["base"]], ["0x0", "0xffffffffff000", "0x0"])

    def test_tsc(self):
        def times(values, *options):
            data = assembled("psb\n" + "".join(f"tsc tsc={v:#x}\ntma ctc=7 fc=3\n" for v in values))
            pairs = self.compare(data, cut(data, "--tsc", *options), {"tsc": ("tsc",)})
            return [int(b, 16) for _, b in pairs["tsc"]]
        self.assertEqual(times([5000, 5001, 7000], "rebase"), [0, 1, 2000])
        self.assertEqual(times([5000, 4990, 7000], "rebase"), [10, 0, 2010])
        self.assertEqual(times([5000, 4990, 7000], "zero"), [0, 0, 0])
        top = (1 << 56) - 1
        self.assertEqual(times([top, 4], "rebase"), [0, 5])
        for ebx, eax in ((168, 2), (250, 3), (5, 7), (8, 64), (6, 1 << 23)):
            values = [top - 99, top // 3, top // 3 + 12345]
            for some in (values[:1], values[1:]):
                got = times(some, "rebase", "--ratio", f"{ebx}/{eax}")
                base = some[0] - got[0]
                # A whole number of TSC ticks is a multiple of 2^23 crystal clock ticks.
                self.assertEqual(base * eax % (ebx << 23), 0)
                self.assertEqual(got[0], some[0] % ((ebx << 23) // math.gcd(ebx << 23, eax)))
                self.assertEqual([v - base for v in some], got)

    def test_payloads(self):
        data = assembled("psb\nptw size=4 payload=0x11111111 ip=1\nptw plc=1 payload=0x2222222222\n"
                         "evd type=0 payload=0x3333333333\nevd type=1 payload=0x4444444444\n"
                         "evd type=2 payload=0x30\nmnt payload=0x5555555555\n"
                         "mwait hints=0x20 ext=0x1\n"
                         "bbp type=4 sz=8\nbip id=3 payload=0x6666666666\n"
                         "bbp type=5 sz=4\nbip id=4 payload=0x77777777\nbep ip=1\n"
                         "cfe type=1 vector=0x20 ip=1\n")
        zero = dict.fromkeys(("ptw", "evd", "mnt", "bip"), ("payload",)) | {
            "mwait": ("hints", "ext")}
        for name, fields in zero.items():
            pairs = self.compare(data, cut(data, f"--{name}", "zero"), {name: fields})
            self.assertEqual({int(b, 16) for field in fields for _, b in pairs[field]}, {0})
        self.compare(data, cut(data, "--private"), zero)
        pairs = self.compare(data, cut(data, "--evd", "map"), {"evd": ("payload",)})["payload"]
        self.assertEqual([b for _, b in pairs], ["0x100000333", "0x0", "0x0"])
        data = assembled("psb\nevd type=0 payload=0x10123\n")  # not to the page that it is in
        self.assertIn("payload=0x20123", lines_of(cut(data, "--evd", "map"))[-1])

    def test_later_options_override_private(self):
        data = assembled("psb\npip cr3=0x5000\nptw size=4 payload=0x11111111\n")
        self.assertEqual(cut(data, "--private", "--cr3", "zero"),
                         assembled("psb\npip cr3=0\nptw size=4 payload=0\n"))

    def test_the_saved_map(self):
        data = assembled("psb\npip cr3=0x5000\nvmcs base=0x6000\ntsc tsc=0x77\ntip ip=0x401234\n")
        for options, wanted in ((["--offsets"], "ip 0x401234 0x10000"),
                                ([], "page 0x401000 0x10000")):
            path = FOLDER / "map"
            cut(data, "--ip", "map", "--cr3", "map", "--vmcs", "map", "--tsc", "rebase",
                "--save-map", path, *options)
            self.assertEqual(path.read_text(), f"{wanted}\ncr3 0x5000 0x1000\nvmcs 0x6000 0x1000\n"
                                               "tsc 0x77 0x0\n")


class Recorded(Comparison):
    """Every recorded trace; of long ones the first 30 segments."""

    def test_the_cuts_together_are_the_trace_without_its_damage(self):
        for name, data in recorded():
            with self.subTest(name):
                packets = list(undamaged(data))
                wanted = b"".join(data[at:at + size] for at, size in packets)
                path = FOLDER / "trace"
                path.write_bytes(data)
                count = len(segments(data))
                self.assertEqual(count, sum(size == 16 and data[at:at + 2] == PSB[:2]
                                            for at, size in packets))
                step = 1 if count < 80 else count // 12
                got = b"".join(run(PT_CUT, "--psb", f"{n}-{n + step - 1}", path, "-o", "-")[1]
                               for n in range(1, count + 1, step))
                self.assertEqual(got, wanted)

    def test_each_replacement_is_a_one_to_one_map(self):
        mapped = 0
        for name, data in recorded():
            with self.subTest(name):
                before = cut(data, *FEW)
                what = IPS | {"pip": ("cr3",), "vmcs": ("base",), "tsc": ("tsc",),
                              "ptw": ("payload",), "evd": ("payload",), "mnt": ("payload",),
                              "mwait": ("hints", "ext")}
                after = cut(data, "--private", *FEW)
                self.check(before, after, what, offsets=True)
                options = "--ip map --cr3 map --vmcs map --tsc rebase --ptw zero --mnt zero".split()
                after = cut(data, *options, "--evd", "map", *FEW)
                self.check(before, after, what, offsets=False)
                mapped += after != before
        self.assertGreater(mapped, 30 if traces.are_there() else 10)

    def check(self, before, after, what, offsets):
        pairs = self.compare(before, after, what)
        there = self.assert_one_to_one(pairs["ip"])
        for bits in (12, 16, 32, 48):
            self.assert_one_to_one(pairs["ip"], bits)
        if not offsets:
            self.assertEqual({(a ^ b) & 0xFFF for a, b in there} | {0}, {0})
        self.assertFalse({a >> 12 for a, _ in there} & {b >> 12 for _, b in there})
        for field in ("cr3", "base"):
            there = self.assert_one_to_one(pairs[field])
            self.assertFalse({a for a, _ in there} & {b for _, b in there} - {0xF_FFFF_FFFF_F000})
        differences = {(int(a, 16) - int(b, 16)) % (1 << 56) for a, b in pairs["tsc"]}
        self.assertLessEqual(len(differences), 1)
        if pairs["tsc"]:
            self.assertEqual(min(int(b, 16) for _, b in pairs["tsc"]), 0)


LIBIPT = r"""
#include <support/libipt.hpp>
#include <cstdio>
#include <vector>

// The packets that libipt reads, as types and sizes, and its errors.
int main() {
    std::vector<uint8_t> bytes;
    for (int one = std::getchar(); one != EOF; one = std::getchar()) {
        bytes.push_back(static_cast<uint8_t>(one));
    }
    pt_config how{};
    pt_config_init(&how);
    how.begin = bytes.data();
    how.end = bytes.data() + bytes.size();
    pt_packet_decoder* const decoder = pt_pkt_alloc_decoder(&how);
    uint64_t ip = 0;
    int error = pt_pkt_sync_forward(decoder);
    while (error >= 0) {
        pt_packet packet{};
        error = pt_pkt_next(decoder, &packet, sizeof packet);
        if (error < 0) { break; }
        if (packet.type == ppt_psb) { ip = 0; }
        bool const has_ip = packet.type == ppt_tip || packet.type == ppt_fup ||
                            packet.type == ppt_tip_pge || packet.type == ppt_tip_pgd;
        if (has_ip) { ip = ptspec::test::libipt_ip_after(packet.payload.ip, ip); }
        std::printf("%d %d %llx\n", packet.type, packet.size,
                    static_cast<unsigned long long>(has_ip ? ip : 0));
    }
    std::printf("%d\n", error == -pte_eos ? 0 : error);
    pt_pkt_free_decoder(decoder);
}
"""


class Libipt(Comparison):
    """libipt reads what pt_cut writes."""

    def test_libipt_reads_the_same_packets(self):
        compiler = shutil.which("g++") or shutil.which("clang++-19")
        program = FOLDER / "libipt"
        if not compiler or subprocess.run(
                [compiler, "-std=c++20", f"-I{ROOT / 'tests'}", "-x", "c++", "-", "-x", "none",
                 "-lipt", "-o", program], input=LIBIPT.encode(), capture_output=True).returncode:
            self.skipTest("libipt")
        read = 0
        for name, data in recorded():
            with self.subTest(name):
                status, one, _ = run(program, data=cut(data, *FEW))
                _, other, _ = run(program, data=cut(data, "--private", *FEW))
                one, other = one.decode().splitlines(), other.decode().splitlines()
                self.assertEqual((status, len(one)), (0, len(other)))
                self.assertEqual(one[-1], other[-1])  # the same error, or none
                pairs = [(a.split(), b.split()) for a, b in zip(one[:-1], other[:-1])]
                self.assertTrue(all(a[:2] == b[:2] for a, b in pairs))
                self.assert_one_to_one([(a[2], b[2]) for a, b in pairs if a[2] != "0"])
                read += one[-1] == "0"
        self.assertGreater(read, 20 if traces.are_there() else 4)


if __name__ == "__main__":
    skips.main(sys.argv[:1])
