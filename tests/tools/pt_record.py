#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_record as a program: wrong usage; recordings of small programs if qemu-x86_64 is
installed, and what perf reads of them if perf is.

    pt_record.py PT_RECORD PT_DUMP
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402

PT_RECORD, PT_DUMP = (str(pathlib.Path(name).resolve()) for name in sys.argv[1:3])
QEMU = shutil.which("qemu-x86_64")
PERF = shutil.which("perf")
PLUGIN = pathlib.Path(PT_RECORD).parent / "pt_record_qemu.so"
CAN_RECORD = QEMU is not None and PLUGIN.exists()
SUMMARY = re.compile(r"^pt_record: (.*): ([\d,]+) instructions, ([\d,]+) bytes of trace, "
                     r"(\d+) threads$", re.M)


class PtRecord(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.at = pathlib.Path(scratch.name)
        self.data = self.at / "perf.data"
        self.raw = self.at / "raw"

    def run_tool(self, *arguments, **how):
        return subprocess.run([PT_RECORD, *map(str, arguments)], capture_output=True, text=True,
                              timeout=120, cwd=self.at, **how)

    def refused(self, *arguments):
        done = self.run_tool(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Apt_record: .+\n\Z")
        self.assertEqual(list(self.at.iterdir()), [], "no file remains")
        return done.stderr

    def record(self, *arguments, status=0):
        done = self.run_tool("-o", self.data, "--raw", self.raw, *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertRegex(done.stderr, SUMMARY)
        self.assertNotIn("incomplete", done.stderr)
        return done

    def perf(self, *arguments):
        done = subprocess.run([PERF, *arguments, "-i", self.data], capture_output=True, text=True,
                              timeout=120, cwd=self.at)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    # wrong usage

    def test_help(self):
        done = self.run_tool("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("usage: pt_record "))
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)

    def test_wrong_usage(self):
        self.assertIn("needs a program", self.refused())
        self.assertIn("no such option", self.refused("--nothing", "true"))
        self.assertIn("no such program in PATH", self.refused("no-such-program"))
        self.assertIn("No such file", self.refused("./no-such-program"))
        self.assertIn("no such kind", self.refused("--kind", "pentium", "true"))
        self.assertIn("no such engine", self.refused("--engine", "gem5", "true"))
        self.assertIn("no such word", self.refused("--ctl", "everything", "true"))
        self.assertIn("is not a number", self.refused("--ctl", "filter=x-y", "true"))
        self.assertIn("kernel code", self.refused("--ctl", "os", "true"))
        self.assertIn("psb_every", self.refused("--ctl", "psb=64M", "true"))
        self.assertIn("--check needs --raw", self.refused("--check", "true"))
        self.assertIn("needs --raw", self.refused("--engine", "machine", "true"))
        self.assertIn("no timing packets",
                      self.refused("--engine", "machine", "--raw", "x", "--ctl", "tsc", "true"))
        self.assertIn("needs a file", self.refused("-o", "-", "true"))
        if PLUGIN.exists():
            self.assertIn("is not installed", self.refused("--qemu", "no-such-qemu", "true"))
        self.assertIn("--plugin names it", self.refused("--plugin", "nothing.so", "true"))

    def test_the_directory_of_raw_output_must_be_empty(self):
        (self.at / "full").mkdir()
        (self.at / "full" / "file").write_text("")
        done = self.run_tool("--engine", "step", "--raw", "full", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("not empty", done.stderr)

    # recordings

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_output_that_cannot_be_written(self):
        self.data.symlink_to("/dev/full")
        done = self.run_tool("-o", self.data, "true")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Apt_record: .*perf.data: No space left on device; "
                                      r"the raw output is in .*\n\Z")

    def test_a_recording_obeys_the_rules_of_a_trace(self):
        for options in ([], ["--ctl", "tsc,mtc=3"], ["--ctl", "tsc,mtc=0,cyc", "--kind", "skylake"],
                        ["--ctl", "noretcomp", "--kind", "broadwell"], ["--kind", "icelake"],
                        ["--kind", "atom", "--ctl", "psb=2K"]):
            with self.subTest(options):
                self.record(*options, "/bin/true")
                kind = options[options.index("--kind") + 1] if "--kind" in options else "manual"
                traces = list(self.raw.glob("*.pt"))
                self.assertEqual(len(traces), 1)
                done = subprocess.run([PT_DUMP, "--check", "--kind", kind, traces[0]],
                                      capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
                shutil.rmtree(self.raw)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_standard_streams_and_the_status_are_those_of_the_program(self):
        done = self.record("sh", "-c", "cat; echo to stderr >&2; exit 7", status=7)
        self.assertEqual(done.stdout, "")
        self.assertIn("to stderr\n", done.stderr)
        shutil.rmtree(self.raw)
        self.record("sh", "-c", "kill -TERM $$", status=128 + signal.SIGTERM)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_a_script_is_recorded_with_its_interpreter(self):
        script = self.at / "script"
        script.write_text("#!/bin/sh -e\necho $0 $1\n")
        script.chmod(0o755)
        self.assertEqual(self.record("./script", "word").stdout, "./script word\n")

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_forked_processes_are_recorded(self):
        done = self.record("sh", "-c", "(:); (:); :")
        self.assertEqual(SUMMARY.search(done.stderr)[4], "3")

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_where_a_process_executes_a_program_its_recording_ends(self):
        done = self.record("sh", "-c", "/bin/true; exec /bin/echo end")
        self.assertEqual(done.stdout, "end\n")
        self.assertEqual(len(re.findall(r"ends where it executes /bin/(true|echo)\n", done.stderr)),
                         2, done.stderr)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_descriptors_of_the_program_are_its_own(self):
        done = self.record("sh", "-c", "exec 3>a 4>b 5>c 6>d; i=0; while [ $i -lt 20000 ]; do "
                           "i=$((i+1)); done; (echo hi >&3); echo end >&5")
        self.assertEqual([(self.at / name).read_text() for name in "abcd"],
                         ["hi\n", "", "end\n", ""], done.stderr)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_an_interrupt_ends_the_program_and_what_was_recorded_is_readable(self):
        tool = subprocess.Popen([PT_RECORD, "-o", self.data, "sh", "-c", "while :; do :; done"],
                                stderr=subprocess.PIPE, text=True, cwd=self.at,
                                start_new_session=True)
        time.sleep(1)
        os.killpg(tool.pid, signal.SIGINT)
        _, said = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 128 + signal.SIGINT, said)
        self.assertRegex(said, SUMMARY)
        self.assertGreater(int(SUMMARY.search(said)[3].replace(",", "")), 1000)
        self.assertEqual([one.name for one in self.at.iterdir()], ["perf.data"])

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_a_full_disk_is_an_error_and_the_beginning_is_kept(self):
        # The limit on the size of a file stands for it.
        done = self.run_tool("-o", self.data, "--raw", self.raw, "sh", "-c",
                             "trap '' XFSZ; ulimit -f 400; i=0; "
                             "while [ $i -lt 30000 ]; do i=$((i+1)); done; echo end")
        self.assertEqual(done.stdout, "end\n", done.stderr)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "traces of 1 threads are incomplete: File too large")
        self.assertRegex(done.stderr, SUMMARY)

    @unittest.skipUnless(CAN_RECORD and PERF, "qemu-x86_64 and perf")
    def test_perf_lists_the_branches_with_symbols(self):
        for options in ([], ["--ctl", "tsc,mtc=3"], ["--ctl", "tsc,mtc=3,cyc"]):
            with self.subTest(options):
                self.record(*options, "/bin/true")
                branches = self.perf("script", "--itrace=b")
                self.assertGreater(branches.count("\n"), 5000)
                self.assertIn(" _dl_start+", branches)
                self.assertRegex(branches, r"_exit\+0x[0-9a-f]+ \(.*libc.so.6\) => +0 \[unknown\]")
                self.assertEqual(self.perf("script", "--itrace=e"), "")
                shutil.rmtree(self.raw)

    # the other engine

    @unittest.skipUnless(sys.platform == "linux" and os.uname().machine == "x86_64", "no x86-64")
    def test_stepping_ends_where_a_program_is_executed(self):
        done = self.run_tool("--engine", "step", "-o", self.data, "sh", "-c", "exec sh -c 'exit 9'")
        if "ptrace is not allowed" in done.stderr:
            self.skipTest("ptrace is not allowed")
        self.assertEqual(done.returncode, 9, done.stderr)
        self.assertIn("ends where it executes a program", done.stderr)

    @unittest.skipUnless(sys.platform == "linux" and os.uname().machine == "x86_64", "no x86-64")
    def test_stepping_records_every_instruction(self):
        done = self.run_tool("--engine", "step", "-o", self.data, "--raw", self.raw, "--check",
                             "/bin/true")
        if "ptrace is not allowed" in done.stderr:
            self.skipTest("ptrace is not allowed")
        self.assertEqual(done.returncode, 0, done.stderr)
        log = next(self.raw.glob("*.log")).read_text()
        counted = int(re.fullmatch(r"instructions (\d+) hash [0-9a-f]{16}\n", log)[1])
        self.assertGreater(counted, 50000)
        if PERF:
            instructions = self.perf("script", "--itrace=i1ie", "-F", "ip")
            self.assertEqual(instructions.count("\n"), counted)


if __name__ == "__main__":
    skips.main(sys.argv[:1])
