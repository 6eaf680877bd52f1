#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_count_mpi as a program: the counts of 1, 2 and 4 processes are those of pt_dump
--summary for every recorded trace. A process that cannot read a file ends all of them.

    pt_count_mpi.py PT_DUMP [PT_COUNT_MPI MPIEXEC]
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
import traces  # noqa: E402
from folder import Folder  # noqa: E402

if len(sys.argv) < 4:
    skips.end("MPI", "all")
PT_DUMP, PT_COUNT_MPI, MPIEXEC = map(os.path.abspath, sys.argv[1:4])

# Permissions for Open MPI. Other implementations need none.
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl": "self,vader",
               "OMPI_MCA_hwloc_base_binding_policy": "none"}
PSB = bytes.fromhex("0282" * 8)
COUNTS = ("file", "bytes", "packets", "errors", "resyncs", "by_type")


def started(command, **how):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60,
                          env=ENVIRONMENT, **how)


def run(ranks, *arguments, **how):
    return started([MPIEXEC, "-n", ranks, PT_COUNT_MPI, *arguments], **how)


class Counts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.files = []
        for number, (_, data, _, _) in enumerate(traces.all_traces()):
            if PSB in data:
                cls.files.append(pathlib.Path(cls.scratch.name, f"{number}.pt"))
                cls.files[-1].write_bytes(data)
        done = started([PT_DUMP, "--summary", "--json", *cls.files])
        cls.wanted = [json.loads(line) for line in done.stdout.splitlines()]

    def test_a_trace_without_a_psb_is_named(self):
        path = pathlib.Path(self.scratch.name, "noise")
        path.write_bytes(bytes(range(1, 100)))
        for ranks in (1, 3):
            done = run(ranks, path, self.files[0])
            self.assertEqual(done.returncode, 3)
            self.assertIn(f"pt_count_mpi: {path}: no PSB to begin at\n", done.stderr)

    def test_any_number_of_processes_counts_the_same(self):
        self.assertGreater(len(self.wanted), 30 if traces.are_there() else 10)
        wanted = [{name: one[name] for name in COUNTS} for one in self.wanted]
        text = None
        for ranks in (1, 2, 4):
            done = run(ranks, "--json", *self.files)
            self.assertEqual((done.returncode, done.stderr), (0, ""), ranks)
            *got, total = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual(got, wanted, ranks)
            self.assertEqual(total["files"], len(wanted))
            for name in ("bytes", "packets", "errors", "resyncs"):
                self.assertEqual(total[name], sum(one[name] for one in wanted))
            for kind, counts in total["by_type"].items():
                for name in ("packets", "bytes"):
                    self.assertEqual(counts[name], sum(one["by_type"].get(kind, {}).get(name, 0)
                                                       for one in wanted), kind)
            done = run(ranks, *self.files)
            self.assertEqual((done.returncode, done.stderr), (0, ""), ranks)
            self.assertIn(text, (None, done.stdout))
            text = done.stdout

    def test_the_text_has_the_lines_of_pt_dump(self):
        largest = max(self.files, key=lambda path: path.stat().st_size)
        summary = started([PT_DUMP, "--summary", largest]).stdout
        others = r"skipped  |  \w|psb spacing |ip  "
        self.assertEqual(run(2, largest).stdout,
                         "".join(line for line in summary.splitlines(True)
                                 if not re.match(others, line)))

    def test_each_process_reads_its_part_only(self):
        if not os.access("/proc/self/io", os.R_OK):
            self.skipTest("/proc/self/io")
        path = pathlib.Path(self.scratch.name, "large")
        path.write_bytes((PSB + bytes((1 << 16) - 16)) * 512)
        for ranks in (1, 4):
            done = started([MPIEXEC, "-n", ranks, "sh", "-c",
                            '"$@" | tail -1 && grep rchar: /proc/$$/io', "sh", PT_COUNT_MPI, path])
            self.assertRegex(done.stdout, r"(?m)^psb +512 +8192$")
            read = [int(line.split()[1]) for line in done.stdout.splitlines() if "rchar" in line]
            self.assertEqual(len(read), ranks)
            for one in read:  # besides the part, libraries and settings
                self.assertGreaterEqual(one, (32 << 20) // ranks)
                self.assertLess(one, (32 << 20) // ranks + (8 << 20))


class Errors(Folder):
    def setUp(self):
        super().setUp()
        self.one, self.two = self.folder / "1", self.folder / "2"
        self.one.mkdir()
        self.two.mkdir()

    def assert_fails(self, done, message):
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        said = [line for line in done.stderr.splitlines() if line.startswith("pt_count_mpi: ")]
        self.assertEqual(said, [f"pt_count_mpi: {message}"])

    def test_wrong_usage_is_reported_once(self):
        self.assert_fails(run(2), "nothing to read: give files")
        self.assert_fails(started([PT_COUNT_MPI, "--nothing"]),
                          "--nothing: no such option; --help lists them")

    def test_a_file_that_no_process_can_read(self):
        empty = self.one / "empty"
        empty.write_bytes(b"")
        self.assert_fails(run(2, "/nothing/here"), "/nothing/here: No such file or directory")
        self.assert_fails(started([PT_COUNT_MPI, "/"]), "/: Is a directory")
        self.assert_fails(started([PT_COUNT_MPI, empty]),
                          f"{empty}: is empty, or is not a regular file")

    def in_two_folders(self, *arguments):
        """Two processes, each of which finds the files in its own folder."""
        each = [PT_COUNT_MPI, *arguments]
        return started([MPIEXEC, "-n", 1, "-wdir", self.one, *each, ":",
                        "-n", 1, "-wdir", self.two, *each])

    def test_a_file_that_one_process_cannot_read_ends_all(self):
        (self.one / "t.pt").write_bytes(PSB * 9)
        self.assert_fails(self.in_two_folders("t.pt"), "rank 1: t.pt: No such file or directory")
        (self.two / "t.pt").write_bytes(PSB * 8)
        self.assert_fails(self.in_two_folders("t.pt"),
                          "rank 1: t.pt: its size is not that at rank 0")
        (self.two / "t.pt").write_bytes(PSB * 9)
        done = self.in_two_folders("--json", "t.pt")
        self.assertEqual((done.returncode, json.loads(done.stdout)["bytes"]), (0, 144))

    def test_processes_with_other_arguments(self):
        path = self.one / "t.pt"
        path.write_bytes(PSB)
        for other in ([path, path], ["--help"]):
            self.assert_fails(started([MPIEXEC, "-n", 1, PT_COUNT_MPI, path, ":", "-n", 1,
                                       PT_COUNT_MPI, *other]),
                              "rank 1: has other files than rank 0")

    def test_output_that_cannot_be_written(self):
        path = self.one / "t.pt"
        path.write_bytes(PSB)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PT_COUNT_MPI, path], stdout=full, stderr=subprocess.PIPE,
                                  env=ENVIRONMENT, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"standard output: No space left on device", done.stderr)

    def test_the_help_is_printed_once(self):
        done = run(2, "--help")
        self.assertEqual((done.returncode, done.stdout.count("usage: pt_count_mpi ")), (0, 1))
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)

    def test_the_example_in_the_help_prints_the_given_output(self):
        text = run(1, "--help").stdout
        block = re.search(r"\nExample:\n  \$ (.*)\n((?:  .*\n)+)\nExit status:", text)
        path = ":".join([str(pathlib.Path(PT_DUMP).parent), os.environ["PATH"]])
        done = subprocess.run(["sh", "-c", block[1]], capture_output=True, text=True, cwd=self.one,
                              env={**ENVIRONMENT, "PATH": path}, timeout=60)
        self.assertEqual((done.stdout, done.stderr), (re.sub("(?m)^  ", "", block[2]), ""))


if __name__ == "__main__":
    skips.main(sys.argv[:1])
