#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_trace as a program: wrong usage, and what it says where there is no Intel PT. What it
traces is compared in tests/machine/compare.py.

    pt_trace.py PT_TRACE
"""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from folder import Folder  # noqa: E402

PT_TRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
HAS_PMU = os.path.isdir("/sys/bus/event_source/devices/intel_pt")


class PtTrace(Folder):
    def run_tool(self, *arguments, **how):
        return subprocess.run([PT_TRACE, *map(str, arguments)], capture_output=True, text=True,
                              timeout=60, check=False, **how)

    def refused(self, text, *arguments):
        done = self.run_tool(*arguments, cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Apt_trace: .+\n\Z")
        self.assertIn(text, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [], "no file remains")

    def test_help(self):
        done = self.run_tool("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("usage: pt_trace "))
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)

    def test_wrong_usage(self):
        self.refused("needs a program")
        self.refused("no process", "-p", "x")
        self.refused("neither a program nor -a", "-p", "1", "true")
        self.refused("neither a program nor -a", "-p", "1", "-a")
        self.refused("needs -a", "--cpu", "0", "true")
        self.refused("no processor", "-a", "--cpu", "0,x")
        self.refused("no processor", "-a", "--cpu", "1-")
        self.refused("written twice", "-o", "-", "true")
        for size in ("", "x", "4X", "K", "-1"):
            self.refused("is not a number", "--aux", size, "true")
        self.refused("more than 2^40 bytes", "--aux", "2000000000000K", "true")
        self.refused("a page or more", "--data", "0", "true")
        self.refused("--to needs what is printed", "--to", "out", "true")
        self.refused("--times needs --calls", "--folded", "--times", "true")
        self.refused("leave out -a", "-a", "--calls", "true")
        self.refused("print with pt_flow", "--bitmap", "64K", "true")

    @unittest.skipIf(HAS_PMU, "this machine has Intel PT")
    def test_without_intel_pt_the_reason_is_said_and_nothing_runs(self):
        why = self.run_tool("--why")
        self.assertEqual((why.returncode, why.stderr), (1, ""))
        self.assertRegex(why.stdout, r"\A.*: .*\n\Z")
        ran = self.folder / "ran"
        done = self.run_tool("touch", ran, cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "pt_trace: " + why.stdout)
        self.assertFalse(ran.exists())
        self.assertFalse((self.folder / "perf.data").exists())

    @unittest.skipIf(HAS_PMU or os.geteuid() != 0 or shutil.which("setpriv") is None,
                     "needs root, setpriv and a machine without Intel PT")
    def test_another_user_gets_the_same_reason(self):
        done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", PT_TRACE, "--why"],
                              capture_output=True, text=True, check=False)
        if "Permission denied" in done.stderr:
            self.skipTest("the program cannot be executed by another user")
        self.assertEqual((done.returncode, done.stdout), (1, self.run_tool("--why").stdout))


if __name__ == "__main__":
    unittest.main()
