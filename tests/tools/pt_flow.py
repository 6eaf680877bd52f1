#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_flow as a program: what libipt says was executed, and wrong usage.

    pt_flow.py PT_FLOW EDGE_HASH
"""

import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
import traces  # noqa: E402

PT_FLOW = sys.argv.pop(1)
EDGE_HASH = sys.argv.pop(1)
# PSB, FUP 1000H, PSBEND, a TNT with one branch that is taken, and its loop: NOP; JNZ 1000H.
TRACE = bytes.fromhex("0282" * 8 + "9901 7d001000000000 0223 06")
LOOP = bytes.fromhex("90 75fd")

# Where ptxed differs: the addresses that we print.
OTHER = {
    # ptxed ends at a PSB+ with another mode; we continue with the state that it reports.
    "ptxed-resync-psb-bad_status-psb": ["100000", "100003", "100004", "100005", "100004"],
}


def run(*arguments, data=None):
    done = subprocess.run([PT_FLOW, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, input=data)
    return done.returncode, done.stdout, done.stderr


class Folder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path


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

    def test_a_gap_is_printed_and_gives_status_1(self):
        trace = self.file("trace", TRACE)
        self.assertEqual(run(trace), (1, "gap missing-code offset=0x1b from=0x1000 "
                                         "missing=0x1000\n", ""))

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
                ([trace, trace], "no such option"),
                (["--image", "x", trace], "--image takes FILE@ADDRESS"),
                (["--image", f"{loop}@", trace], "--image takes FILE@ADDRESS"),
                (["--image", self.folder / "none@0x1000", trace], "No such file"),
                (["--image", f"{loop}@0x1000", "--image", f"{loop}@0x1002", trace], "overlap"),
                (["--cpu", "six", trace], "--cpu takes"),
                (["--filter", "1", trace], "--filter takes"),
                (["--filter", "1,2"] * 5 + [trace], "at most four filters"),
                ([self.folder / "none"], "No such file")):
            with self.subTest(arguments):
                status, out, error = run(*arguments)
                self.assertEqual((status, out), (2, ""))
                self.assertIn(message, error)
                self.assertTrue(error.startswith("pt_flow: "))

    def test_a_perf_data_file_is_refused(self):
        file = self.file("perf.data", b"PERFILE2" + TRACE)
        status, out, error = run(file)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("is a perf.data file", error)

    def test_help(self):
        status, out, error = run("--help")
        self.assertEqual((status, error), (0, ""))
        self.assertTrue(out.startswith("usage: pt_flow "))


if __name__ == "__main__":
    skips.main(sys.argv[:1])
