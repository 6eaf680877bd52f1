#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of what tools say where nothing, or only gaps, are known: no output is empty without a
reason on stderr, and an exit status other than 0.

    nothing.py PT_FLOW PT_DUMP TIMELINE
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
import skips  # noqa: E402
from folder import Folder  # noqa: E402

PT_FLOW, PT_DUMP, TIMELINE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)

KERNEL = 0xFFFFFFFF81000000
TSC = b"\x19" + (1000).to_bytes(7, "little")
LATER = b"\x19" + (3000).to_bytes(7, "little")
PIP = b"\x02\x43" + (0x1000 >> 5 << 1).to_bytes(6, "little")  # CR3 1000H, NR is 0
OVF = b"\x02\xf3"


def fup(ip):
    return b"\x7d" + (ip & (1 << 48) - 1).to_bytes(6, "little")


def tip(ip, opcode=0x0D):
    return bytes([0x60 | opcode]) + (ip & (1 << 48) - 1).to_bytes(6, "little")


def begin(ip, inside=b""):
    return made.PSB + inside + b"\x99\x01" + fup(ip) + made.PSBEND


def on(ip):
    return tip(ip, 0x11)


LOOP = bytes.fromhex("90 75fd")  # NOP; JNZ to it
LOOPS = begin(0x1000) + b"\x06"  # taken
TIMED = begin(0x1000, TSC) + b"\x06" + LATER + b"\x06"
PLACED = begin(0x1000, PIP) + b"\x06"
DISABLED = made.PSB + b"\x99\x01" + made.PSBEND + bytes(8)
OFF = b"\x01"  # TIP.PGD without an IP
NO_BRANCH = begin(0x1000) + OFF
NO_PSB = bytes(16)

# Of each form, what is missing.
FORMS = {"--instructions": "instructions", "--runs": "instructions", "--blocks": "instructions",
         "--edges": "edges", "--calls": "calls", "--folded": "stacks",
         "--drcov": "blocks of files", "--bitmap": "edges"}


def run(tool, *arguments):
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, timeout=120)
    said = done.stderr.decode().replace(f"{tool.split('/')[-1]}: ", "")
    return done.returncode, done.stdout, said


def results_of(form, out):
    """Whether the output has what was executed, and not only gaps and titles."""
    if form == "--bitmap":
        return out.strip(b"\0") != b""
    if form == "--drcov":
        return b"BB Table: 0 bbs\n" not in out
    lines = [line for line in out.decode().splitlines()
             if not line.startswith(("gap ", "thread ")) and "/* not known: " not in line]
    return lines != []


class Nothing(Folder):
    def setUp(self):
        super().setUp()
        self.image = ["--image", f"{self.file('code', LOOP)}@0x1000"]

    def perf_data(self, ip, trace=None):
        event = made.Event(config=1 << 13 | 1, sample_type=made.TID, ids=[1])
        trace = trace or begin(ip) + b"\x06"
        records = [made.info_of(), made.auxtrace(made.padded(trace), tid=100)]
        return self.file("perf.data", made.file_of([event], records)[0])

    def forms(self):
        for form in FORMS:
            yield [form, "64"] if form == "--bitmap" else [form]

    def test_each_form_says_why_it_is_empty(self):
        code = self.image
        no_code = "no code for 1 address: 0x1000; give --binary, --image or --pages\n"
        elf = b"\x7fELF" + bytes(60)
        causes = (
            (LOOPS, [], 1, no_code + "no {}: only gaps: missing-code 1\n"),
            (DISABLED, code, 1, f"no {{}}: tracing is off in all {len(DISABLED)} bytes\n"),
            (DISABLED, [*code, "--time", "5-6"], 1,
             f"no {{}}: tracing is off in all {len(DISABLED)} bytes\n"),
            (TIMED, [*code, "--time", "5-6"], 1,
             "no {}: nothing in the range of --time: the times of the trace are from 1000 to "
             "3000\n"),
            (TIMED, [*code, "--tsc-hz", "1000000000", "--time", "7.0-"], 1,
             "no {}: nothing in the range of --time: the times of the trace are from 0.000001000 "
             "to 0.000003000\n"),
            (LOOPS, [*code, "--time", "5-6"], 1,
             "no {}: nothing in the range of --time: no time is known\n"),
            (PLACED, [*code, "--only", "guest"], 1,
             "left out: 2 instructions (0 where the place is not known), 0 gaps\n"
             "no {}: nothing where --only, --vmcs and --cr3 select, but 2 elsewhere\n"),
            (LOOPS, [*code, "--to", "0"], 1, "no {}: no bytes in the range of --from and --to\n"),
            (NO_PSB, code, 1, "{path}: has no PSB: no Intel PT, or its begin is missing: nothing "
                              "is known\n"),
            (b"", code, 2, "{path}: no Intel PT in this file: it is empty\n"),
            (elf, code, 2, "{path}: no Intel PT in this file: it is an ELF file\n"),
        )
        for data, options, status, said in causes:
            path = self.file("trace", data)
            for form in self.forms():
                for quiet in ([], ["--quiet"]):
                    what = FORMS[form[0]]
                    wanted = said.replace("{}", what).replace("{path}", str(path))
                    got = run(PT_FLOW, *form, *options, *quiet, path)
                    error = re.sub(r", \d edges?,", ",", got[2])  # not all forms have them
                    self.assertEqual((got[0], error), (status, wanted), (form, options))
                    if status == 1:
                        self.assertFalse(results_of(form[0], got[1]), (form, got[1]))

    def test_a_form_that_prints_something_says_nothing(self):
        path = self.file("trace", LOOPS)
        for form in self.forms():
            status, out, error = run(PT_FLOW, *form, *self.image, path)
            self.assertEqual((status, error), (0, ""), form)
            self.assertTrue(results_of(form[0], out), form)

    def test_code_without_edges(self):
        path = self.file("trace", NO_BRANCH)
        for form in self.forms():
            status, _, error = run(PT_FLOW, *form, *self.image, path)
            is_empty = FORMS[form[0]] == "edges"
            self.assertEqual((status, error),
                             (1, "no edges: none in 2 instructions\n") if is_empty else (0, ""))

    def test_gaps_are_counted_by_reason(self):
        # Known, lost, without code, known.
        path = self.file("trace", LOOPS + OVF + fup(0x5000) + OFF + on(0x6000) + OFF + on(0x1000) +
                         b"\x06")
        for form in self.forms():
            status, out, error = run(PT_FLOW, *form, *self.image, path)
            self.assertTrue(results_of(form[0], out), form)
            self.assertEqual((status, error),
                             (1, "no code for 2 addresses from 0x5000 to 0x6000; give --binary, "
                                 "--image or --pages\ngaps: missing-code 2, overflow 1\n"), form)
            self.assertEqual(run(PT_FLOW, *form, *self.image, "--quiet", path), (1, out, ""))

    def test_what_helps_with_the_code_of_a_perf_data_file(self):
        for form in self.forms():
            for options, ip, code in (
                    ([], KERNEL, f" of the kernel: {KERNEL:#x}; give --kernel\n"),
                    ([], 0x1000, ": 0x1000; see --symfs\n")):
                status, out, error = run(PT_FLOW, *form, *options, self.perf_data(ip))
                self.assertEqual(status, 1, error)
                self.assertFalse(results_of(form[0], out), form)
                self.assertTrue(error.endswith(
                    f"no code for 1 address{code}no {FORMS[form[0]]}: only gaps: missing-code 1\n"),
                    error)

    def test_calls_of_other_tools(self):
        page = self.folder / "page.html"
        for tool, form in ((TIMELINE, ["-o", page, "--calls"]),
                           (PT_DUMP, ["--chrome-trace", "--calls"])):
            for data, options, status, said in (
                    (LOOPS, self.image, 0, ""),
                    (begin(0x5000) + b"\x06", self.image, 1,
                     "no code for 1 address: 0x5000; give --binary, --image or --pages\n"
                     "no calls: only gaps: missing-code 1\n"),
                    (DISABLED, self.image, 1,
                     f"no calls: tracing is off in all {len(DISABLED)} bytes\n"),
                    (LOOPS + OFF + on(0x5000) + OFF, self.image, 0,
                     "no code for 1 address: 0x5000; give --binary, --image or --pages\n"
                     "gaps: missing-code 1\n"),
                    (LOOPS + OFF + on(0x5000) + OFF, [*self.image, "--quiet"], 0, "")):
                got = run(tool, *form, *options, self.file("trace", data))
                self.assertEqual((got[0], got[2]), (status, said), (tool, data))
            for ip, code in ((KERNEL, f" of the kernel: {KERNEL:#x}; give --kernel\n"),
                             (0x1000, ": 0x1000; see --symfs, or --binary of a raw trace\n")):
                status, _, error = run(tool, *form, self.perf_data(ip))
                self.assertEqual(status, 1, error)
                self.assertTrue(error.endswith(f"no code for 1 address{code}no calls: only gaps: "
                                               f"missing-code 1\n"), error)
        for part, said in ((["--time", "5s-"], "nothing in the range of --time: the times of the "
                                               "trace are from 0.000000000 to 0.000002000\n"),
                           (["--from", "1000"], "nothing in the range of --from and --to\n")):
            got = run(TIMELINE, "-o", page, "--calls", *self.image, "--tsc-hz", "1000000000", *part,
                      self.file("trace", TIMED))
            self.assertEqual((got[0], got[2]), (1, f"no calls: {said}"))

    def test_places_in_which_nothing_happens(self):
        path = self.file("trace", PLACED)
        page = self.folder / "page.html"
        for tool, form, what in ((PT_DUMP, [], "packets"), (PT_DUMP, ["--events"], "events"),
                                 (PT_DUMP, ["--json"], "packets"),
                                 (TIMELINE, ["-o", page], "events")):
            for options, is_there in ((["--only", "guest"], False), (["--cr3", "2000"], False),
                                      (["--only", "root"], True), (["--cr3", "1000"], True)):
                status, _, error = run(tool, *form, *options, path)
                said = re.search(rf"^no {what}: nothing where --only, --vmcs and --cr3 select, but "
                                 r"\d+ elsewhere$", error, re.M)
                self.assertEqual((status, said is not None), (int(not is_there), not is_there),
                                 (tool, form, options, error))
            status, _, error = run(tool, *form, "--only", "guest", self.file("other", NO_PSB))
            self.assertEqual((status, "elsewhere" in error), (3, False))
            self.assertIn("no PSB to begin at", error)


if __name__ == "__main__":
    skips.main(sys.argv[:1])
