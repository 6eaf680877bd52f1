#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_twin as a program: recorded traces, and wrong usage.

    pt_twin.py PT_TWIN PT_MODEL
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
import traces  # noqa: E402

PT_TWIN, PT_MODEL = sys.argv[1:3]
LAST = re.compile(r"twin: segments (\d+) of (\d+) equal, bytes (\d+) of (\d+) equal, kind (\w+)$")

# Each segment is equal, with this kind.
WHOLE = {"hase-cf-bdw": "broadwell", "lldb-3842849": "broadwell", "xdc-foo": "skylake",
         "xdc-unzip": "skylake", "xdc-infloop": "skylake", "xdc-mruby": "skylake",
         "xdc-icelake": "icelake", "ptcov-inline": "icelake", "keeper-traced": "atom",
         "google-m7-cpu0": "skylake", "google-m7-piped-idx0": "skylake",
         "hase-loopy-skl": "skylake", "dr-hello-tiny": "skylake", "dr-hello-dyn": "skylake",
         "dr-hello-static-a": "skylake", "dr-hello-static-b": "skylake",
         "dr-hello-static-d": "skylake", "memgaze-ubench": "atom",
         "arcus-uaf-03-poc": "skylake", "arcus-ovf-08-ben": "skylake",
         "google-m7-piped-idx3": "skylake", "dr-hello-static-c": "skylake",
         "xdc-kernel": "skylake", "xdc-avscript32": "skylake", "lldb-core51": "skylake"}
# Of the segments of damaged copies, those that are equal: all but the ones with damage in them.
DAMAGED = {"bad-xdc-foo-noise": (7, 8), "bad-xdc-mruby-flip": (328, 336),
           "bad-xdc-infloop-page00": (451, 451), "bad-xdc-infloop-wrap": (531, 531),
           "bad-xdc-unzip-wrap": (73, 73), "bad-xdc-foo-cut": (9, 9),
           "bad-keeper-traced-flip": (0, 0)}
# Those of them that belong to the project.
SHIPPED = {"bare-manual": "manual", "bare-icelake": "icelake", "bare-atom": "atom"}
# Samples that are joined. pt_twin finds their size.
SAMPLES = {"memgaze-ubench": "2000"}
# The events of a script.
EVENTS = set("Jcc JMP SYSRET SYSCALL interrupt WRMSR VM VMPTRLD MOV fall psb cycles clocks ART "
             "ratio clock overflow resolved XBEGIN XEND abort PTWRITE wrap ACM".split())


def whole():
    """(name, bytes, kind) of the traces that are there."""
    for name, kind in SHIPPED.items():
        yield name, traces.shipped(name), kind
    if not traces.are_there():
        skips.say(traces.NEED, "pt_twin")
        return
    for name, kind in WHOLE.items():
        data = traces.recorded(name)
        if data is not None:
            yield name, data, kind


def run(*arguments):
    done = subprocess.run([PT_TWIN, *arguments], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


class Twins(unittest.TestCase):
    def test_recorded_traces_are_equal_byte_for_byte(self):
        found = 0
        for name, data, kind in whole():
            found += 1
            with self.subTest(name), tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                status, out, error = run(file.name)
                samples = ["--samples", SAMPLES[name]] if name in SAMPLES else []
                if samples:
                    self.assertEqual(run(file.name, *samples), (status, out, error))
                got = LAST.search(out.strip())
                self.assertEqual((status, error), (0, ""))
                self.assertEqual(got[1], got[2])
                self.assertEqual(got[3], got[4])
                self.assertEqual(got[5], kind)
                # Another kind is not equal: the kinds differ.
                other = "atom" if kind != "atom" else "skylake"
                self.assertEqual(run(file.name, *samples, "--kind", other)[0], 1)
        self.assertGreaterEqual(found, 8 if traces.are_there() else 3)

    def test_the_script_gives_the_same_bytes_with_pt_model(self):
        for name, data, kind in whole():
            with self.subTest(name), tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                samples = ["--samples", SAMPLES[name]] if name in SAMPLES else []
                status, out, error = run(file.name, *samples, "--part", "1", "--events")
                self.assertEqual((status, error), (0, ""))
                setup, _, events = out.partition("\n")
                self.assertTrue(setup.startswith(f"setup kind={kind}, "), setup)
                # Neither the form of packets nor their grouping and order are events.
                kinds = {line.split()[0].split("->")[0] for line in events.splitlines()}
                self.assertLessEqual(kinds, EVENTS)
                made = subprocess.run([PT_MODEL, "-o", "-"], input=out.encode(),
                                      capture_output=True, timeout=120)
                self.assertEqual((made.returncode, made.stderr), (0, b""))
                self.assertGreater(len(made.stdout), 100)
                # A trace may end in part of a packet, and in memory that was not written.
                self.assertIn(made.stdout, data)
                rest = data[data.index(made.stdout) + len(made.stdout):].rstrip(b"\0")
                self.assertTrue(len(rest) < 16 or name in SAMPLES)

    def test_segments_of_damaged_traces(self):
        if not traces.are_there():
            skips.say(traces.NEED, "pt_twin: damaged traces")
            return
        for name, expected in DAMAGED.items():
            with self.subTest(name), tempfile.NamedTemporaryFile() as file:
                file.write(traces.recorded(name))
                file.flush()
                got = LAST.search(run(file.name)[1].strip())
                self.assertEqual((int(got[1]), int(got[2])), expected)

    def test_made_streams_are_equal(self):
        """Each has one mechanism that recorded traces show."""
        page = traces.facts() / "twin.md"
        if not page.exists():
            skips.say("facts about processors", "pt_twin: made streams")
            return
        found = re.findall(r"^(\w+) \[.* -> (\d+) of (\d+)\] (\S+)$", page.read_text(), re.M)
        self.assertGreaterEqual(len(found), 16)
        for name, equal, count, text in found:
            data = bytes.fromhex(text.replace("P", "0282" * 8).replace("Z", "00" * 8))
            with self.subTest(name), tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                got = LAST.search(run(file.name, "--kind", "skylake")[1].strip())
                self.assertEqual((got[1], got[2]), (equal, count))

    def test_a_trace_that_is_cut_off_is_equal_whether_zeros_follow_or_not(self):
        def stream(text):
            return bytes.fromhex(text.replace("P", "0282" * 8).replace("Z", "00" * 8))

        start = ("P000000992099017d00002081ffffZ024300001Z00000001900001Z0000000000273008f0014"
                 "0000000002031d000223007102002081ffff00001c")
        rise = start + "0000000000007d00012081ffff000001ZZ0000000000"
        tsc, tma, cbr = "1900009000000000", "00" * 8 + "0273e79f000c00", "00000002031d00"
        status = start + ("00000000000000P000000992099017d40002081ffffZ024300001Z0000000"
                          "1900001200000000")
        cases = {"TSC of a rise": rise + tsc, "TMA of a rise": rise + tsc + tma,
                 "CBR of a rise": rise + tsc + tma + cbr, "TSC of a PSB+": status,
                 "CBR after a PSB+": "P020314000223Z000002031900"}
        for last, text in cases.items():
            data = stream(text)
            for zeros in (0, 3, 8, 10, 14):
                with self.subTest(last, zeros=zeros), tempfile.NamedTemporaryFile() as file:
                    file.write(data + bytes(zeros))
                    file.flush()
                    status, out, error = run(file.name, "--kind", "skylake")
                    self.assertEqual((status, error), (0, ""), out)

    def test_a_perf_data_file_is_refused(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"PERFILE2" + b"\x02\x82" * 8)
            file.flush()
            status, out, error = run(file.name)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("is a perf.data file", error)

    def test_a_difference_is_shown(self):
        data = traces.recorded("hase-cf-bdw")
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            out = run(file.name, "--kind", "skylake", "--differences", "1")[1]
        self.assertRegex(out, r"^segment 0 at 0 differs at [0-9a-f]+\n  real( [0-9a-f]{2})+\n"
                              r"  twin( [0-9a-f]{2})+\n")

    def test_a_segment_that_ends_in_damage_is_not_compared(self):
        data = traces.recorded("xdc-foo")
        psb = data.index(b"\x02\x82" * 8, 1)
        damaged = data[:psb - 8] + b"\xff" * 8 + data[psb:]
        with tempfile.NamedTemporaryFile() as file:
            file.write(damaged)
            file.flush()
            status, out, error = run(file.name)
            self.assertEqual((status, error), (0, ""))
            self.assertEqual(out.splitlines()[0], "1 segments end in damage: not compared")
            self.assertEqual(LAST.search(out.strip())[2], "14")
            self.assertEqual(run(file.name, "--part", "2", "--events")[0], 0)
            self.assertEqual(run(file.name, "--part", "3")[0], 2)

    def test_wrong_usage(self):
        for arguments in ((), ("--kind", "z80", "x"), ("--kind",), ("-x",), ("/nonexistent",),
                          ("a", "b"), ("--part", "0", "x"),
                          ("--samples", "0", "x"), ("--samples", "x", "x")):
            status, out, error = run(*arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertEqual(len(error.splitlines()), 1, arguments)

    def test_a_file_without_a_psb(self):
        said = f"pt_twin: {__file__}: no PSB to begin at\n"
        self.assertEqual(run(__file__), (1, "", said))

    def test_help(self):
        self.assertEqual(run("--help")[0], 0)


if __name__ == "__main__":
    skips.main(sys.argv[:1])
