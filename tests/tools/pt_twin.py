#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_twin as a program: recorded traces, and wrong usage.

    pt_twin.py PT_TWIN
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import traces  # noqa: E402

PT_TWIN = sys.argv[1]
LAST = re.compile(r"twin: segments (\d+) of (\d+) equal, bytes (\d+) of (\d+) equal, kind (\w+)$")

# Each segment is equal, with this kind.
WHOLE = {"hase-cf-bdw": "broadwell", "lldb-3842849": "broadwell", "xdc-foo": "skylake",
         "xdc-unzip": "skylake", "xdc-infloop": "skylake", "xdc-mruby": "skylake",
         "xdc-icelake": "icelake", "ptcov-inline": "icelake", "keeper-traced": "atom",
         "google-m7-cpu0": "skylake", "google-m7-piped-idx0": "skylake",
         "hase-loopy-skl": "skylake", "dr-hello-tiny": "skylake", "dr-hello-dyn": "skylake",
         "dr-hello-static-a": "skylake", "dr-hello-static-b": "skylake",
         "dr-hello-static-d": "skylake"}


def run(*arguments):
    done = subprocess.run([PT_TWIN, *arguments], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


class Twins(unittest.TestCase):
    def test_recorded_traces_are_equal_byte_for_byte(self):
        folder = traces.folder_or_skip()
        found = 0
        for name, kind in WHOLE.items():
            data = traces.read(folder / f"{name}.pt")
            if data is None:
                continue
            found += 1
            with self.subTest(name), tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                status, out, error = run(file.name)
                got = LAST.search(out.strip())
                self.assertEqual((status, error), (0, ""))
                self.assertEqual(got[1], got[2])
                self.assertEqual(got[3], got[4])
                self.assertEqual(got[5], kind)
                # Another kind is not equal: the kinds differ.
                other = "atom" if kind != "atom" else "skylake"
                self.assertEqual(run(file.name, "--kind", other)[0], 1)
        self.assertGreaterEqual(found, 5)

    def test_a_difference_is_shown(self):
        folder = traces.folder_or_skip()
        data = traces.read(folder / "hase-cf-bdw.pt")
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            out = run(file.name, "--kind", "skylake", "--differences", "1")[1]
        self.assertRegex(out, r"^segment 0 at 0 differs at [0-9a-f]+\n  real( [0-9a-f]{2})+\n"
                              r"  twin( [0-9a-f]{2})+\n")

    def test_wrong_usage(self):
        for arguments in ((), ("--kind", "z80", "x"), ("--kind",), ("-x",), ("/nonexistent",),
                          ("a", "b"), (str(pathlib.Path(__file__)),)):
            status, out, error = run(*arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertEqual(len(error.splitlines()), 1, arguments)

    def test_help(self):
        self.assertEqual(run("--help")[0], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
