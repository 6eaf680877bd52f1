#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_dump, pt_asm and tour as programs: options, exit status, JSON, summaries, pipes,
memory.

    command_line.py PT_DUMP PT_ASM TOUR
"""

import csv
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
import terminal  # noqa: E402
import traces  # noqa: E402
from folder import Folder  # noqa: E402
from tool_checks import ToolChecks  # noqa: E402

PT_DUMP, PT_ASM, TOUR = sys.argv[1:4]

PSB = bytes.fromhex("0282" * 8)
# PSB, CBR 24, PSBEND, TNT, TIP to 0x1000, PAD, PAD
SMALL = PSB + bytes.fromhex("02031800" "0223" "16" "2d0010" "0000")
# PSB, CBR, PSBEND, MODE.Exec, TIP.PGE to 0x1000, TNT: a trace that obeys all rules
OBEYS = PSB + bytes.fromhex("02031800" "0223" "9901" "71001000000000" "06")
SMALL_LISTING = """\
00000000 psb len=16
00000010 cbr len=4 ratio=24
00000014 psbend len=2
00000016 tnt.8 len=1 n=3 bits=NTT
00000017 tip len=3 ipc=1 payload=0x1000 ip=0x1000
0000001a pad len=1
0000001b pad len=1
0000001c !end packets=7 errors=0 resyncs=0
"""

SCRATCH = tempfile.TemporaryDirectory()
LISTING = pathlib.Path(SCRATCH.name, "listing")
LISTING.write_text(SMALL_LISTING)


def run(program, *arguments, data=None):
    done = subprocess.run([program, *map(str, arguments)], input=data, capture_output=True)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class PtDump(ToolChecks, unittest.TestCase):
    TOOL = PT_DUMP
    PRINTS = [(["-"], SMALL * 3000), (["--json", "--jobs", "3", "-"], SMALL * 3000),
              (["--summary", "-"], SMALL), (["--summary", "--json", "-"], SMALL),
              (["--check", "-"], OBEYS), (["--check", "--json", "-"], OBEYS),
              (["--events", "-"], OBEYS), (["--time", "--json", "-"], OBEYS),
              (["--summary", "--time", "-"], OBEYS), (["--chrome-trace", "-"], OBEYS),
              (["--hex", SMALL.hex()], b"")]
    READS = [[], ["--summary"], ["--check"], ["--events"], ["--jobs", "2"]]
    READS_STDIN = [["-"], ["--jobs", "2", "-"]]


class PtAsm(ToolChecks, unittest.TestCase):
    TOOL = PT_ASM
    PRINTS = [([], SMALL_LISTING.encode()), ([], b"psb\n00100000 pad\n")]
    WRITES = [[LISTING, "-o"]]
    READS = [[]]
    READS_STDIN = [[], ["-"]]
    REFUSES = {(): 1}


class Tools(Folder):
    @staticmethod
    def rows(table):
        path = pathlib.Path(__file__).resolve().parents[1] / "spec" / table
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, strict=True))

    # pt_dump

    def digest(self, *options, **streams):
        """Exit status, and a digest of the output, which may be larger than memory."""
        with open(self.folder / "out", "w+b") as out:
            done = subprocess.run([PT_DUMP, *options], stdout=out, **streams)
            out.seek(0)
            return done.returncode, hashlib.file_digest(out, "sha256").hexdigest()

    def test_a_clean_trace(self):
        self.assertEqual(run(PT_DUMP, self.file("t", SMALL)), (0, SMALL_LISTING, ""))

    def test_standard_input_is_read_like_a_file(self):
        self.assertEqual(run(PT_DUMP, "-", data=SMALL), (0, SMALL_LISTING, ""))

    def test_a_pipe_that_delivers_single_bytes(self):
        writer = subprocess.Popen([sys.executable, "-c",
                                   "import sys\n"
                                   f"for b in bytes.fromhex('{SMALL.hex()}'):\n"
                                   "    sys.stdout.buffer.write(bytes([b])); sys.stdout.flush()"],
                                  stdout=subprocess.PIPE)
        done = subprocess.run([PT_DUMP, "-"], stdin=writer.stdout, capture_output=True, text=True)
        writer.stdout.close()
        writer.wait()
        self.assertEqual((done.returncode, done.stdout), (0, SMALL_LISTING))

    def test_no_pad_hides_pads_but_counts_them(self):
        status, out, _ = run(PT_DUMP, "--no-pad", self.file("t", SMALL))
        self.assertEqual(status, 0)
        self.assertEqual(out, "".join(line + "\n" for line in SMALL_LISTING.splitlines()
                                      if " pad " not in line))

    def test_no_sync_reads_from_the_first_byte(self):
        path = self.file("t", bytes.fromhex("02031800"))
        self.assertEqual(run(PT_DUMP, path)[0], 3)
        status, out, _ = run(PT_DUMP, "--no-sync", path)
        self.assertEqual((status, out.splitlines()[0]), (0, "00000000 cbr len=4 ratio=24"))

    def test_the_message_without_psb_suggests_no_sync(self):
        status, out, err = run(PT_DUMP, self.file("t", b"\0" * 40))
        self.assertEqual((status, out), (3, "00000000 !nosync\n"
                                            "00000028 !end packets=0 errors=0 resyncs=0\n"))
        self.assertIn("--no-sync", err)

    def test_hex(self):
        status, out, _ = run(PT_DUMP, "--no-sync", "--hex", "02 03 18 00")
        self.assertEqual((status, out.splitlines()[0]), (0, "00000000 cbr len=4 ratio=24"))
        self.assertEqual(run(PT_DUMP, "--hex", SMALL.hex()), (0, SMALL_LISTING, ""))
        for wrong in ("0", "0g", "020", "", "02 0", "2 03"):
            self.assertEqual(run(PT_DUMP, "--hex", wrong)[0], 2, wrong)

    def test_reading_continues_after_damage(self):
        status, out, _ = run(PT_DUMP, self.file("t", PSB + b"\x05" + SMALL))
        self.assertEqual(status, 1)
        self.assertEqual(out.splitlines()[:4],
                         ["00000000 psb len=16", "00000010 !error code=bad_opc rule=PKT-015: "
                          "the first byte must be one that begins a packet",
                          "00000011 !resync skipped=1", "00000011 psb len=16"])
        self.assertTrue(out.endswith("!end packets=8 errors=1 resyncs=1\n"))

    def test_a_trace_that_ends_within_a_packet(self):
        status, out, _ = run(PT_DUMP, self.file("t", SMALL + b"\x19\x01"))
        self.assertEqual((status, out.splitlines()[-2]), (
            1, "0000001c !error code=trunc left=2 rule=PKT-255: "
            "a packet must have all of its bytes"))

    def test_strict_reports_reserved_bits_of_tma_as_damage(self):
        path = self.file("t", PSB + bytes.fromhex("02730000010000"))
        self.assertEqual(run(PT_DUMP, path)[0], 0)
        status, out, _ = run(PT_DUMP, "--strict", path)
        self.assertEqual((status, out.splitlines()[1]), (
            1, "00000010 !error code=bad_packet rule=PKT-104: "
            "the reserved bits of a TMA must be 0"))

    def test_a_reserved_value_is_called_bad_packet(self):
        status, out, _ = run(PT_DUMP, "--no-sync", "--hex", "ad")
        self.assertEqual((status, out.splitlines()[0]), (
            1, "00000000 !error code=bad_packet rule=PKT-052: IPBytes must not be 5 or 7"))

    def test_packets_that_no_golden_listing_contains(self):
        status, out, _ = run(PT_DUMP, "--no-sync", "--hex", "026384" "0c44332211" "02b3" "026301")
        self.assertEqual(out.splitlines()[:4],
                         ["00000000 bbp len=3 sz=4 type=4",
                          "00000003 bip len=5 id=1 payload=0x11223344",
                          "00000008 bep len=2 ip=1", "0000000a bbp len=3 sz=8 type=1"])

    def test_the_output_names_each_of_several_files(self):
        one, two = self.file("one", SMALL), self.file("two", SMALL)
        status, out, _ = run(PT_DUMP, one, two)
        self.assertEqual(out, f"# {one}\n{SMALL_LISTING}# {two}\n{SMALL_LISTING}")

    def test_several_files_give_the_worst_status(self):
        clean, damaged = self.file("c", SMALL), self.file("d", SMALL + b"\x05")
        no_psb, empty = self.file("n", b"\0"), self.file("e", b"")
        self.assertEqual(run(PT_DUMP, clean, damaged)[0], 1)
        self.assertEqual(run(PT_DUMP, no_psb, damaged)[0], 3)
        self.assertEqual(run(PT_DUMP, no_psb, empty, clean)[0], 2)

    def test_wrong_usage_and_unreadable_files(self):
        for arguments in ([], ["--hex"], ["--jobs"], [self.file("e", b"")]):
            status, out, err = run(PT_DUMP, *arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertTrue(err.startswith("pt_dump: "), err)
        self.assertEqual(run(PT_DUMP, "-", data=b"")[0], 2)

    def test_check_finds_nothing_in_a_trace_that_obeys_the_rules(self):
        for kind in ("atom", "manual"):
            self.assertEqual(run(PT_DUMP, "--check", "--kind", kind, self.file("t", OBEYS)),
                             (0, f"00000020 !end violations=0 kind={kind}\n", ""))

    def test_check_prints_violations_and_their_number(self):
        breaks = self.file("t", PSB + bytes.fromhex("02031800" "0223" "06" "2d0020" "0628" "05"))
        wanted = ("00000016 tnt.8 GEN-105: TNT and TIP must not stand where PacketEn is 0\n"
                  "0000001a tnt.8 GEN-122: a TNT that is not full must not be followed by a TNT\n"
                  "0000001c !error PKT-015: the first byte must be one that begins a packet\n"
                  "0000001d !end violations=3 kind=manual\n")
        self.assertEqual(run(PT_DUMP, "--check", "--kind", "manual", breaks), (1, wanted, ""))
        self.assertEqual(run(PT_DUMP, "--check", "--kind", "manual", "--jobs", "3", breaks),
                         (1, wanted, ""))
        status, out, _ = run(PT_DUMP, "--check", "--json", "--kind", "manual", breaks)
        found = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(status, 1)
        self.assertEqual([one.get("rule") for one in found], ["GEN-105", "GEN-122", "PKT-015",
                                                              None])
        self.assertEqual([one.get("packet") for one in found], ["tnt.8", "tnt.8", None, None])
        self.assertEqual([one["offset"] for one in found], [0x16, 0x1A, 0x1C, 0x1D])
        self.assertEqual((found[-1]["violations"], found[-1]["kind"]), (3, "manual"))

    def test_check_prints_notes_which_do_not_count(self):
        text = "while PacketEn stays 1, a PSB+ must repeat MODE.Exec, MODE.TSX and CR3"
        begin = PSB + bytes.fromhex("02031800" "9901" "7d001000000000" "0223")
        # CR3 differs, and the trace ends within a packet.
        data = (begin + bytes.fromhex("0243001000000000") + PSB +
                bytes.fromhex("02031800" "0243002000000000" "9901" "7d001000000000" "0223" "6d00"))
        wanted = (f"0000003b pip note GEN-344: {text}\n"
                  "0000004e !error note PKT-255: a packet must have all of its bytes\n"
                  "00000050 !end violations=0 kind=manual\n")
        self.assertEqual(run(PT_DUMP, "--check", "--kind", "manual", self.file("t", data)),
                         (0, wanted, ""))
        out = run(PT_DUMP, "--check", "--json", "--kind", "manual", self.file("t", data))[1]
        self.assertEqual([one.get("note") for one in map(json.loads, out.splitlines())],
                         [1, 1, None])
        status, out, _ = run(PT_DUMP, "--events", self.file("t", data[:-2]))
        self.assertEqual(status, 0)
        self.assertIn(f"0000003b !note packet=pip rule=GEN-344: {text}\n", out)
        self.assertTrue(out.endswith(" !end events=8 errors=0 resyncs=0\n"), out)
        # The mode differs.
        data = begin + b"\x06" + PSB + bytes.fromhex("02031800" "9902" "7d001000000000" "0223")
        self.assertEqual(run(PT_DUMP, "--check", "--kind", "manual", self.file("t", data)),
                         (1, f"00000034 mode.exec GEN-344: {text}\n"
                             "0000003f !end violations=1 kind=manual\n", ""))
        status, out, _ = run(PT_DUMP, "--events", self.file("t", data))
        self.assertEqual(status, 1)
        self.assertIn(f"00000034 !damage packet=mode.exec rule=GEN-344: {text}\n", out)

    def test_check_selects_the_kind_with_the_fewest_violations(self):
        # A compressed IP without PADs: atom.
        data = PSB + bytes.fromhex("02031800" "7d001000000000" "9901" "0223" "2d0020" "3d0020"
                                   "2d0010")
        out = run(PT_DUMP, "--check", self.file("t", data))[1]
        self.assertEqual(out, "00000028 !end violations=0 kind=atom\n")
        status, out, _ = run(PT_DUMP, "--check", "--kind", "skylake", self.file("t", data))
        self.assertEqual(status, 1)
        self.assertIn(" fup GEN-011: ", out)

    def test_check_prints_the_first_100_violations_of_many(self):
        data = PSB + bytes.fromhex("02031800" "0223") + b"\x06" * 1000
        status, out, _ = run(PT_DUMP, "--check", "--kind", "manual", self.file("t", data))
        lines = out.splitlines()
        self.assertEqual((status, len(lines)), (1, 101))
        self.assertTrue(lines[-1].endswith(" !end violations=1000 kind=manual"))

    def test_check_of_hostile_bytes_ends(self):
        noise = random.Random(1)
        data = b"".join(PSB + noise.randbytes(200) for _ in range(2000))
        status, out, _ = run(PT_DUMP, "--check", self.file("t", data))
        self.assertEqual((status, len(out.splitlines())), (1, 101))
        self.assertEqual(run(PT_DUMP, "--check", self.file("n", b"\0" * 40))[0], 3)

    def test_check_wrong_usage(self):
        path = self.file("t", SMALL)
        for arguments in (["--check", "--kind", "z80", path], ["--check", "--kind"],
                          ["--check", "--summary", path]):
            status, out, err = run(PT_DUMP, *arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertTrue(err.startswith("pt_dump: "), err)

    def test_check_finds_nothing_in_the_traces_of_this_project(self):
        for name, kind in (("bare-manual", "manual"), ("bare-broadwell", "broadwell"),
                           ("bare-skylake", "skylake"), ("bare-icelake", "icelake"),
                           ("bare-atom", "atom"), ("system", "manual")):
            data = traces.shipped(name)
            self.assertEqual(run(PT_DUMP, "--check", "--kind", kind, self.file("t", data)),
                             (0, f"{len(data):08x} !end violations=0 kind={kind}\n", ""), name)

    def test_check_finds_nothing_in_recorded_traces(self):
        folder = traces.folder()
        kinds = {"broadwell": ("hase-cf-bdw", "lldb-3842849"), "atom": ("keeper-traced",),
                 "icelake": ("xdc-icelake", "ptcov-inline"),
                 "skylake": ("dr-hello-dyn", "dr-hello-static-a", "dr-hello-static-b",
                             "dr-hello-static-d", "dr-hello-tiny", "google-m7-cpu0",
                             "google-m7-piped-idx0", "hase-loopy-skl", "xdc-foo", "xdc-infloop",
                             "xdc-mruby", "xdc-unzip")}
        found = 0
        for kind, names in kinds.items():
            for name in names:
                data = traces.read(folder / f"{name}.pt")
                if data is None:
                    continue
                found += 1
                with self.subTest(name):
                    status, out, err = run(PT_DUMP, "--check", self.file("t", data))
                    self.assertEqual(
                        (status, out, err),
                        (0, f"{len(data):08x} !end violations=0 kind={kind}\n", ""))
        # Samples, each a stream of its own.
        samples = traces.read(folder / "memgaze-ubench.pt") or b""
        for at in range(0, len(samples), 8192):
            path = self.file("t", samples[at:at + 8192])
            self.assertEqual(run(PT_DUMP, "--check", "--kind", "atom", path)[0], 0, at)
        # Two pieces that were joined: the second begins with a TNT.
        joined = traces.read(folder / "lldb-core51.pt")
        if joined is not None:
            out = run(PT_DUMP, "--check", self.file("t", joined))[1]
            self.assertEqual(len(out.splitlines()), 2)
            self.assertTrue(out.startswith("00001669 tnt.8 GEN-105: "))
        if found == 0:
            self.skipTest(traces.NEED)

    def test_json_has_the_values_of_the_listing(self):
        path = self.file("t", b"\0" + SMALL + b"\x05\x02" + SMALL + b"\x19")
        names = {"!sync": "sync", "!error": "error", "!resync": "resync", "!end": "end"}
        listing = run(PT_DUMP, path)[1].splitlines()
        objects = [json.loads(line) for line in run(PT_DUMP, "--json", path)[1].splitlines()]
        self.assertEqual(len(objects), len(listing))
        for line, found in zip(listing, objects):
            line, _, text = line.partition(": ")
            offset, name, *fields = line.split(" ")
            self.assertEqual(found.pop("offset"), int(offset, 16))
            self.assertEqual(found.pop("event" if name in names else "packet"),
                             names.get(name, name))
            self.assertEqual(found.pop("text", ""), text)
            for field in fields:
                key, value = field.split("=")
                said = found.pop(key)
                self.assertEqual("-" if said is None else str(said), value)
            self.assertEqual(found, {})

    def test_json_escapes_special_characters_in_a_name(self):
        path = self.file('a"b\\c\nd', SMALL)
        objects = [json.loads(line) for line in run(PT_DUMP, "--json", path, path)[1].splitlines()]
        self.assertEqual(objects[0], {"event": "file", "file": str(path)})
        self.assertIn("# " + str(path).replace("\n", "?") + "\n", run(PT_DUMP, path, path)[1])

    def test_json_of_a_name_that_is_not_utf8(self):
        names = {  # The Unicode Standard, "Well-Formed UTF-8 Byte Sequences"
            b"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80": "\u00e9\u20ac\U0001f600",
            b"\xc2\x80": "\x80", b"\xe0\xa0\x80": "\u0800", b"\xed\x9f\xbf": "\ud7ff",
            b"\xee\x80\x80": "\ue000", b"\xf0\x90\x80\x80": "\U00010000",
            b"\xf4\x8f\xbf\xbf": "\U0010ffff", b"a\xffb": "a\ufffdb", b"\x80": "\ufffd",
            b"\xc3": "\ufffd", b"\xc3x": "\ufffdx", b"\xe2\x82": "\ufffd" * 2,
            b"\xe2\x82x": "\ufffd" * 2 + "x", b"\xc0\xaf": "\ufffd" * 2,
            b"\xc1\xbf": "\ufffd" * 2, b"\xe0\x9f\xbf": "\ufffd" * 3,
            b"\xed\xa0\x80": "\ufffd" * 3, b"\xf0\x8f\xbf\xbf": "\ufffd" * 4,
            b"\xf4\x90\x80\x80": "\ufffd" * 4, b"\xf5\x80\x80\x80": "\ufffd" * 4}
        for name, wanted in names.items():
            path = os.fsencode(self.folder) + b"/" + name
            with open(path, "wb") as file:
                file.write(SMALL)
            done = subprocess.run([PT_DUMP, "--json", "--summary", path], capture_output=True)
            self.assertEqual(json.loads(done.stdout.decode("utf-8"))["file"],
                             f"{self.folder}/{wanted}", name)

    def test_summary(self):
        path = self.file("t", b"\0" * 5 + SMALL + b"\x05" + SMALL + SMALL + b"\x19")
        status, out, _ = run(PT_DUMP, "--summary", "--json", path)
        found = json.loads(out)
        self.assertEqual(status, 1)
        self.assertEqual(found.pop("by_type"), {
            "pad": {"packets": 6, "bytes": 6}, "tnt.8": {"packets": 3, "bytes": 3},
            "tip": {"packets": 3, "bytes": 9}, "cbr": {"packets": 3, "bytes": 12},
            "psb": {"packets": 3, "bytes": 48}, "psbend": {"packets": 3, "bytes": 6}})
        self.assertEqual(found, {
            "file": str(path), "bytes": 5 + 3 * 28 + 2, "packets": 21, "skipped": 5 + 1 + 1,
            "errors": 2, "resyncs": 1, "errors_by_code": {"bad_opc": 1, "trunc": 1},
            "psb_spacing": {"min": 28, "mean": 28, "max": 29},
            "ip": {"lowest": "0x1000", "highest": "0x1000"}})
        text = run(PT_DUMP, "--summary", path)[1]
        for part in ("bytes                  91\n", "errors                  2\n",
                     "psb spacing  min 28, mean 28, max 29 bytes\n",
                     "ip           0x1000 to 0x1000\n",
                     "tip                     3            9\n"):
            self.assertIn(part, text)

    def test_summary_of_recorded_traces(self):
        where = traces.folder()
        if not traces.are_there():
            self.skipTest(traces.NEED)
        count = 0
        for path in sorted(where.glob("*.summary.json")):
            golden = json.loads(path.read_text())
            trace = self.file("t", traces.read(where / (path.name.split(".")[0] + ".pt")))
            found = json.loads(run(PT_DUMP, "--strict", "--summary", "--json", trace)[1])
            self.assertEqual({name: one["packets"] for name, one in found["by_type"].items()},
                             golden["packets_by_type"], path.name)
            for ours, theirs in (("bytes", "bytes"), ("packets", "packets"), ("errors", "errors"),
                                 ("resyncs", "resyncs"), ("errors_by_code", "errors_by_code")):
                self.assertEqual(found[ours], golden[theirs], path.name)
            count += 1
        self.assertGreaterEqual(count, 26)

    def test_jobs_do_not_change_the_output(self):
        part = PSB + bytes.fromhex("02031800" "0223") + bytes.fromhex("16" "2d0010" "0000") * 200
        clean = b"\x16" + part * 500
        damaged = clean + part[:100] + b"\x05" + part * 300 + PSB[:9]
        long_tip = bytes.fromhex("cd0102030405060708")
        # PTW with the head of a PSB, then a part without PSB that is longer than a segment.
        hidden = clean + bytes.fromhex("0212") + part * 300 + long_tip * 300_000 + clean
        for name, data in (("clean", clean), ("damaged", damaged), ("hidden", hidden),
                           ("small", SMALL), ("nothing to begin at", bytes(400_000))):
            path = self.file("t", data)
            for options in ([], ["--json", "--strict"], ["--summary"], ["--summary", "--json"],
                            ["--no-sync", "--no-pad"]):
                alone = self.digest(*options, path)
                for jobs in ("2", "3"):
                    self.assertEqual(self.digest("--jobs", jobs, *options, path), alone,
                                     (name, options, jobs))
        path = self.file("t", clean)
        with open(path, "rb") as piped:
            self.assertEqual(self.digest("--jobs", "2", "-", stdin=piped), self.digest(path))
        for wrong in ("0", "257", "-1", "two", "2x", ""):
            self.assertEqual(run(PT_DUMP, "--jobs", wrong, path)[0], 2, wrong)
        self.assertEqual(run(PT_DUMP, path, "--jobs")[0], 2)

    def test_jobs_when_threads_cannot_be_created(self):
        """A thread's stack has the size RLIMIT_STACK, and RLIMIT_AS bounds the sum."""
        megabyte = 1 << 20
        part = PSB + bytes.fromhex("16" "2d0010" "0000") * 2000
        path = self.file("t", part * 200)

        def in_600_mb(stack, *options):
            def limit():
                resource.setrlimit(resource.RLIMIT_STACK, (stack * megabyte,) * 2)
                resource.setrlimit(resource.RLIMIT_AS, (600 * megabyte,) * 2)
            return self.digest(*options, path, preexec_fn=limit)

        if in_600_mb(8)[0] != 0:
            self.skipTest("a build that starts in 600 MB")
        for options in ([], ["--summary"]):
            alone = self.digest(*options, path)
            for stack in (220, 700):  # two threads can be created, or none
                self.assertEqual(in_600_mb(stack, "--jobs", "6", *options), alone,
                                 (options, stack))

    def test_memory_does_not_grow_with_the_input(self):
        block = self.file("block", SMALL * 40000)
        command = f"for i in $(seq 100); do cat '{block}'; done | '{PT_DUMP}' --summary -"
        with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, text=True) as child:
            printed = child.stdout.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        self.assertIn("packets          28000000\n", printed)
        self.assertLess(usage.ru_maxrss, 64 << 10)

    def test_a_progress_bar_only_at_a_terminal(self):
        big = self.file("big", SMALL * 700000)
        self.assertEqual(run(PT_DUMP, "--summary", big)[2], "")
        for path, shown in ((big, True), (self.file("small", SMALL), False)):
            with terminal.opened(self) as (ours, theirs):
                subprocess.run([PT_DUMP, "--summary", path], stdout=subprocess.DEVNULL,
                               stderr=theirs)
                os.write(theirs, b"end")
                seen = b""
                while not seen.endswith(b"end"):
                    seen += os.read(ours, 65536)
            self.assertEqual(b"%" in seen, shown)

    # pt_asm

    def test_assembling_a_listing_restores_the_trace(self):
        done = subprocess.run([PT_ASM], input=SMALL_LISTING.encode(), capture_output=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, SMALL, b""))

    def test_assembling_every_packet_of_the_catalogue(self):
        """Values come from the table, independent of the field names in a listing."""
        names = set()
        for row in self.rows("packet_vectors.csv"):
            # A listing has no field for bit 1 of the wake reason.
            if row["canonical"] != "1" or row["expected_fields"].endswith("reason=0x2"):
                continue
            with self.subTest(row["id"]):
                # A BBP opens the block that contains the item.
                block = {"block=4": "026380", "block=8": "026300"}.get(row["ctx"], "")
                length = int(row["length"])
                data = bytes.fromhex(block) + bytes.fromhex(row["bytes_hex"])[:length]
                path = self.file("vector", data)
                status, listing, _ = run(PT_DUMP, "--no-sync", path)
                self.assertEqual(status, 0)
                line = listing.splitlines()[1 if block else 0].split(" ")
                names.add((row["expected_packet_name"], line[1]))
                self.assertEqual(line[2], f"len={length}")
                values = [int(field.split("=")[1], 0) for field in line[3:]
                          if field.split("=")[1][0].isdigit()]
                for field in filter(None, row["expected_fields"].split(";")):
                    name, _, value = field.partition("=")
                    if value[0].isdigit() and name not in ("mode", "ip", "reason"):
                        self.assertIn(int(value, 0), values, field)
                assembled = self.folder / "assembled"
                self.assertEqual(run(PT_ASM, "-o", assembled, data=listing.encode())[0], 0)
                self.assertEqual(assembled.read_bytes(), data)
        catalogue = [row["name"] for row in self.rows("packets.csv")]
        self.assertEqual({name for name, _ in names}, set(catalogue))
        self.assertEqual(len(names), len(catalogue))

    def test_assembling_manually_written_lines(self):
        text = ("# a comment\n\ntip ip=0x401000\n  fup ip=0x401010   # shorter\n"
                "cyc value=1 len=3\ntnt.8 bits=NTT\nptw size=4 payload=0x11\nbbp sz=4 type=4\n"
                "bip id=1 payload=0x11223344\nbep\n")
        done = subprocess.run([PT_ASM], input=text.encode(), capture_output=True)
        self.assertEqual(done.stdout.hex(), "4d00104000" "3d1010" "0f0100" "16" "021211000000"
                                            "026384" "0c44332211" "0233")

    def test_missing_pads_are_restored(self):
        listing = "".join(line + "\n" for line in SMALL_LISTING.splitlines() if " pad " not in line)
        done = subprocess.run([PT_ASM], input=listing.encode(), capture_output=True)
        self.assertEqual(done.stdout, SMALL)

    def test_output_to_a_file(self):
        target = self.folder / "out"
        status, out, err = run(PT_ASM, "-o", target, self.file("l", SMALL_LISTING.encode()))
        self.assertEqual((status, out, err, target.read_bytes()), (0, "", "", SMALL))

    def test_invalid_lines(self):
        for line, said in (("frob", "no such packet: frob; --help lists them"),
                           ("1234 tip", "no such packet: 1234"), ("00000000 ", "is missing"),
                           ("TIP", "no such packet: TIP"), ("tip what=1", "no such field"),
                           ("mtc ctc=256", "PKT-340"), ("tnt.8 bits=TTTTTTT", "1 to 6"),
                           ("tnt.8 bits=TX", "T and N"), ("tnt.8 n=2 bits=T", "not the number"),
                           ("00000000 !error code=bad_opc", "does not contain"),
                           ("vmcs base=0x800", "PKT-340"), ("pip cr3=0x10", "PKT-340"),
                           ("tip ipc=5", "must not be 5 or 7"),
                           ("tip ipc=1 payload=0x10000", "fit"),
                           ("mode.exec csl=1 csd=1", "must not be set"), ("bip id=1", "block"),
                           ("tsc len=7", "8 bytes"), ("tsc tsc=12x", "no number"),
                           ("tsc tsc=1 tsc=1", "twice"),
                           ("ptw plc=2", "PKT-173"), ("trig icnt=1", "icntv")):
            done = subprocess.run([PT_ASM], input=line.encode(), capture_output=True, text=False)
            self.assertEqual((done.returncode, done.stdout), (1, b""), line)
            self.assertIn(said, done.stderr.decode(), line)
            self.assertIn(f":{line.count(chr(10)) + 1}: ", done.stderr.decode(), line)

    def test_the_help_lists_all_packets_and_fields_of_pt_dump(self):
        listed = dict(re.findall(r"^  (\S+): (.*)$", run(PT_ASM, "--help")[1], re.M))
        self.assertEqual(len(listed), 32)
        self.assertEqual(listed["psb"], "no fields")
        self.assertEqual(listed["tip"], "ipc payload ip")
        self.assertEqual(listed["cfe"], "type vector ip")
        for name, fields in listed.items():
            needed = {"tnt.8": " bits=T n=1", "tnt.64": " bits=T n=1",
                      "trig": " icntv=1 icnt=1"}.get(name, "")
            line = f"{name}{needed} " + " ".join(
                f"{field}=-" for field in fields.split()
                if field not in needed and fields != "no fields") + "\n"
            if name == "bip":
                line = "bbp\n" + line
            done = subprocess.run([PT_ASM], input=line.encode(), capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, b""), line)
            dumped = run(PT_DUMP, "--no-sync", "--hex", done.stdout.hex())[1]
            written = next(one for one in dumped.splitlines() if one.split()[1] == name)
            self.assertEqual([field.split("=")[0] for field in written.split()[3:]],
                             [] if fields == "no fields" else fields.split(), name)

    def test_output_ends_before_a_rejected_line(self):
        done = subprocess.run([PT_ASM], input=b"psb\n00000008 pad\npsb\n", capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (1, PSB))
        self.assertIn(b":2: the packets before this offset reach over it", done.stderr)

    def assembled(self, listing, *arguments, **streams):
        """Exit status and messages of pt_asm in 40 MB of memory. With sanitizers it is not limited.
        """
        def run(*arguments, **streams):
            return subprocess.run([PT_ASM, *arguments], stderr=subprocess.PIPE, **streams)

        streams = {"stdout": subprocess.DEVNULL, **streams}
        if listing is not None:
            streams["input"] = listing
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (40 << 20,) * 2)}
        if run("--help", stdout=subprocess.DEVNULL, **limit).returncode != 0:
            limit = {}  # with sanitizers it needs more
        done = run(*arguments, **streams, **limit)
        return done.returncode, done.stderr.decode()

    def test_a_gap_is_filled_in_pieces(self):
        self.assertEqual(self.assembled(b"04000000 psb\n"), (0, ""))
        for offset in (b"04000001", b"efffff00", b"ffffffffffffffff"):
            status, said = self.assembled(b"\n" + offset + b" psb\n")
            self.assertEqual(status, 1)
            self.assertIn(f":2: the offset is {int(offset, 16)} bytes ahead", said)
            self.assertIn("--sparse", said)

    def test_a_long_gap_in_a_file_becomes_a_hole(self):
        target = self.folder / "out"
        listing = b"psb\n8000000000 psbend\n"
        for redirected in (False, True):
            with open(target, "wb") as file:
                arguments = ["--sparse"] if redirected else ["--sparse", "-o", target]
                streams = {"stdout": file} if redirected else {}
                self.assertEqual(self.assembled(listing, *arguments, **streams), (0, ""))
            about = os.stat(target)
            self.assertEqual(about.st_size, (1 << 39) + 2)
            self.assertLess(about.st_blocks * 512, 1 << 20)
            with open(target, "rb") as file:
                self.assertEqual(file.read(32), PSB + bytes(16))
                file.seek((1 << 39) - 16)
                self.assertEqual(file.read(), bytes(16) + b"\x02\x23")
        # A gap at the end.
        self.assertEqual(self.assembled(b"psb\n8000000000 !end packets=1\n", "--sparse", "-o",
                                        target), (0, ""))
        self.assertEqual(os.stat(target).st_size, 1 << 39)
        status, said = self.assembled(b"ffffffffffffffff psb\n", "--sparse", "-o", target)
        self.assertEqual(status, 2)
        self.assertIn("out: File too large", said)

    def test_a_gap_where_holes_are_not_possible(self):
        listing = b"psb\n00020020 psbend\n"
        wanted = PSB + bytes((1 << 17) + 16) + b"\x02\x23"
        done = subprocess.run([PT_ASM, "--sparse"], input=listing, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(done.stdout == wanted)
        target = self.file("out", b"begin")
        with open(target, "ab") as file:
            self.assertEqual(self.assembled(listing, "--sparse", stdout=file), (0, ""))
        self.assertTrue(target.read_bytes() == b"begin" + wanted)
        # Existing bytes are overwritten with PADs.
        target.write_bytes(b"\xff" * (1 << 18))
        with open(target, "r+b") as file:
            self.assertEqual(self.assembled(listing, "--sparse", stdout=file), (0, ""))
        self.assertTrue(target.read_bytes()[:len(wanted)] == wanted)
        done = subprocess.run(["sh", "-c", f"echo 10000000 psb | '{PT_ASM}' --sparse | wc -c"],
                              capture_output=True)
        self.assertEqual((int(done.stdout), done.stderr), ((1 << 28) + 16, b""))

    def test_the_listing_is_not_overwritten(self):
        path = self.file("l", SMALL_LISTING.encode())
        os.link(path, self.folder / "same")
        for name in ("l", "same"):
            status, out, err = run(PT_ASM, "-o", self.folder / name, path)
            self.assertEqual((status, out), (2, ""))
            self.assertIn("is both the listing and the output", err)
            self.assertEqual(path.read_bytes(), SMALL_LISTING.encode())

    def test_memory_does_not_grow_with_the_listing(self):
        with subprocess.Popen(["sh", "-c", "yes tsc tsc=1 | head -n 6000000"],
                              stdout=subprocess.PIPE) as listing:
            status, said = self.assembled(None, stdin=listing.stdout)
        self.assertEqual((status, said), (0, ""))

    def test_wrong_usage_of_pt_asm(self):
        for arguments in (["-o"], ["a", "b"]):
            self.assertEqual(run(PT_ASM, *arguments)[0], 2)

    def test_help_of_pt_asm_at_a_terminal(self):
        with terminal.opened(self) as (_, theirs):
            done = subprocess.run([PT_ASM], stdin=theirs, capture_output=True, text=True,
                                  timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, run(PT_ASM, "--help")[1]))

    # tour

    def test_tour_on_its_own_trace_and_on_a_file(self):
        status, out, err = run(TOUR)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("The next byte of trace goes to 100200010.\n", out)
        self.assertIn("48 bytes, 11 packets, 0 errors\n", out)
        status, out, _ = run(TOUR, self.file("t", SMALL))
        self.assertTrue(out.startswith(SMALL_LISTING))
        self.assertEqual(run(TOUR, self.folder / "absent")[0], 2)
        self.assertEqual(run(TOUR, self.folder),
                         (2, "", f"tour: {self.folder}: cannot be read, or is empty\n"))


if __name__ == "__main__":
    skips.main([sys.argv[0]])
