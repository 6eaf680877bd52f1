#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Output that cannot be written, for every program of examples/ and every form of its output; and
input without a packet.

    output.py PROGRAM...

A program whose output is closed early ends without a message, one whose output is full with one; a
file that is not complete does not get its name.
"""

import concurrent.futures
import functools
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
import perf_data_files as made  # noqa: E402
import raw_output  # noqa: E402
import skips  # noqa: E402
import traces  # noqa: E402

PROGRAMS = {pathlib.Path(path).name: path for path in sys.argv[1:]}
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRATCH = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(SCRATCH.name)

# What is traced: a CALL, and a JMP back to it; the function is a RET, which has a TNT bit.
CODE = bytes.fromhex("e802000000 ebf9 c3")
STEPS = 3000  # TNTs, each of six branches


def trace_of(steps, ticks=840_000):
    """PSB+ at 401000H with a TSC, an enable, and these TNTs; at its end, tracing ends."""
    start = (made.PSB + b"\x19" + ticks.to_bytes(7, "little") + b"\x02\x73" +
             (ticks // 84 & 0xFFFF).to_bytes(2, "little") + bytes(3) + bytes.fromhex("02030200") +
             made.PSBEND)
    return start + bytes.fromhex("9901 71001040000000") + b"\xfe" * steps + b"\x01"


TRACE = trace_of(STEPS)
NOISE = bytes(byte for byte in random.Random(1).randbytes(70_000) if byte != 0x82)


def file(name, data):
    path = FOLDER / name
    path.write_bytes(data)
    return str(path)


def perf_data(name, trace):
    event = made.Event(config=0x600 | 3 << 14, sample_type=made.TID | made.TIME | made.CPU, ids=[1])
    end = made.id_end(event, 100, 0, 0), ""
    mmap2, switch = 10, 14
    body = (made.u32(100, 100) + made.u64(0x401000, 0x1000, 0) + made.u32(0, 0) + made.u64(0, 0) +
            made.u32(5, 2) + made.c_string(CODE_FILE.encode()))
    records = [made.info_of(), made.Record(mmap2, body, "", misc=2, end=end),
               made.Record(switch, b"", "", end=(made.id_end(event, 100, 1, 0), "")),
               made.auxtrace(made.padded(trace), tid=0xFFFFFFFF, cpu=0)]
    return file(name, made.file_of([event], records)[0])


CODE_FILE = file("code", CODE)
RAW = file("trace.pt", TRACE)
RECORDED = file("recorded.pt", traces.shipped("bare-icelake"))
PERF = perf_data("perf.data", TRACE)
DIRECTORY = raw_output.write(FOLDER / "raw", [TRACE], CODE, 0x401000)
THREADS = raw_output.write(FOLDER / "threads", [TRACE, TRACE], CODE, 0x401000)
IMAGE = ("--image", f"{CODE_FILE}@0x401000")
LISTING = file("listing", b"psb\npsbend\n" + b"tnt.8 bits=TTTTTT\n" * 80_000)
EVENTS = "; ".join(["JMP RAX->2000", "Jcc T"] * 5000)
RING = "cpu P-SKL; [10000]=400000; [10008]=402044; [10010]=10001; set BASE=10000"
FLOW = ("--instructions", "--runs", "--blocks", "--edges", "--calls", "--folded", "--drcov",
        "--bitmap 128K")

# The forms of output of each program: arguments. `BIG` forms print more than a buffer holds.
SMALL, BIG = False, True
FORMS = {
    "after_reset": [(SMALL, [])], "driver_skeleton": [(SMALL, [])], "first_trace": [(SMALL, [])],
    "folders": [], "fuzz_loop": [(SMALL, [])], "fuzz_process": [(SMALL, [])],
    "gp_check": [(SMALL, [])], "trace_program": [(SMALL, [])],
    "guest_coverage": [(SMALL, [])], "guest_output": [(SMALL, [])], "guest_part": [(SMALL, [])],
    "hypervisor_exit": [(SMALL, [])],
    "nested_guest": [(SMALL, [])], "pt_definitions": [(SMALL, [])], "round_trip": [(SMALL, [])],
    "start": [(SMALL, [])], "td_host": [(SMALL, [])],
    "perf_events": [(SMALL, []), (BIG, [PERF])],
    "tour": [(SMALL, []), (SMALL, ["--help"]), (BIG, [RAW])],
    "what_happened": [(SMALL, ["--help"]), (SMALL, [RAW])],
    "pt_asm": [(SMALL, ["--help"]), (BIG, [LISTING]), (BIG, ["--sparse", LISTING])],
    "pt_dump": [(SMALL, ["--help"]),
                *((size, [*form, *options, path])
                  for size, form in ((BIG, []), (SMALL, ["--summary"]), (SMALL, ["--check"]),
                                     (SMALL, ["--events"]))
                  for options in ([], ["--json"], ["--jobs", "3"])
                  for path in (RAW, PERF)
                  if not (options[:1] == ["--jobs"] and form in (["--check"], ["--events"]))),
                (BIG, ["--hex", TRACE.hex()]), (SMALL, ["--time", RAW]),
                (SMALL, ["--chrome-trace", RAW]), (SMALL, ["--chrome-trace", PERF]),
                (SMALL, ["--streams", PERF])],
    "pt_flow": [(SMALL, ["--help"]),
                *((form not in ("--folded", "--drcov"), [*form.split(), *options])
                  for form in FLOW
                  for options in ([*IMAGE, "--jobs", "1", RAW], [*IMAGE, "--jobs", "3", RAW],
                                  [*IMAGE, "--time", "0-", RAW], [PERF], [DIRECTORY], [THREADS])),
                (BIG, ["--calls", "--times", *IMAGE, RAW]), (BIG, ["--calls", "--times", PERF])],
    "pt_cut": [(SMALL, ["--help"]), (SMALL, ["--list", RAW]), (SMALL, [RAW, "-o", "-"])],
    "check_processor": [],
    "pt_suite": [(SMALL, ["--help"]), (SMALL, ["--list"]), (SMALL, ["--runs", "1"]),
                 (SMALL, ["--json", "--runs", "1"])],
    "pt_model": [(SMALL, ["--help"]), (BIG, ["-e", EVENTS]), (BIG, ["--explain", "-e", EVENTS]),
                 (BIG, ["--memory", "-e", EVENTS]), (SMALL, ["-o", "-", "-e", EVENTS])],
    "pt_record": [(SMALL, ["--help"])],
    "pt_trace": [(SMALL, ["--help"])],
    "pt_twin": [(SMALL, ["--help"]), (SMALL, [RECORDED]), (BIG, ["--events", RECORDED])],
    "pt_count_mpi": [(SMALL, ["--help"]), (SMALL, [RAW]), (SMALL, ["--json", RAW])],
    "timeline": [(SMALL, ["--help"]), (BIG, ["-o", "-", RAW]),
                 (BIG, ["-o", "-", "--calls", *IMAGE, RAW]), (BIG, ["-o", "-", PERF])],
    "topa_view": [(SMALL, ["--help"]), (SMALL, ["-e", RING]), (SMALL, ["--all", "-e", RING]),
                  (SMALL, ["-e", RING, "--svg", "-"])],
    "what_if": [(SMALL, ["--help"]), (SMALL, ["-e", "R570"]),
                (SMALL, ["--explain", "-e", "W570=40000"])],
    "msr_plan": [(SMALL, ["--help"]), (SMALL, ["enable", "user"]),
                 (SMALL, ["--run", "enable", "user tsc", "ring=4x1M"])],
    "regmap": [(SMALL, ["--help"]), (SMALL, ["--list"]), (SMALL, ["IA32_RTIT_CTL"]),
               (SMALL, ["--svg", "PTW"]),
               *((BIG, [form, "-"]) for form in ("--html", "--c", "--rust", "--json",
                                                 "--cases"))],
}
# Arguments that are followed by the name of a file that is written, of more than 1000 bytes.
FILES = {
    "pt_asm": [[LISTING, "-o"]],
    "pt_cut": [[RAW, "-o"], [RAW, "-o", "/dev/null", "--private", "--save-map"]],
    "pt_model": [["-e", EVENTS, "-o"]],
    "pt_record": [["--from", DIRECTORY, "-o"]],
    "regmap": [["--html"], ["--c"], ["--rust"], ["--json"], ["--cases"]],
    "timeline": [[RAW, "-o"], [PERF, "-o"]],
    "topa_view": [["-e", RING, "--svg"]],
}
MAX_BYTES = 30  # of a file, in the tests of files
# For pt_count_mpi without mpirun.
ENVIRONMENT = {**os.environ, "OMPI_MCA_btl": "self,vader",
               "OMPI_MCA_hwloc_base_binding_policy": "none"}


def run(name, arguments, **how):
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "cwd": FOLDER,
           "env": ENVIRONMENT, **how}
    return subprocess.run([PROGRAMS[name], *map(str, arguments)], stderr=subprocess.PIPE,
                          timeout=120, **how)


def all_of(table):
    return [(name, arguments) for name, rows in table.items() if name in PROGRAMS
            for arguments in rows]


class Output(unittest.TestCase):
    def each(self, check, cases):
        """Calls `check(program, arguments, ...)` for all cases in parallel."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for case, done in [(case, pool.submit(check, *case)) for case in cases]:
                with self.subTest(case[0], arguments=" ".join(map(str, case[1]))[:80]):
                    done.result()

    def test_the_table_has_every_program_and_every_form(self):
        excluded = ("mistakes", "kernel_module", "check_machine", "linux")
        every = {path.stem for path in ROOT.glob("examples/**/*.cpp")
                 if path.parent.name not in excluded and not path.stem.endswith("_plugin")}
        self.assertEqual(set(FORMS), every)
        self.assertLessEqual(set(PROGRAMS), every)
        text = run("pt_flow", ["--help"]).stdout.decode()
        forms = re.findall(r"^  (--\w+)", text[:text.index("What is walked")], re.M)
        self.assertEqual([form.split()[0] for form in FLOW], forms)

    def test_the_forms_print_what_they_should(self):
        def check(name, arguments, is_big):
            done = run(name, arguments)
            error = done.stderr
            # The code of a recording is in no file.
            is_empty = "--drcov" in arguments and b"BB Table: 0 bbs\n" in done.stdout
            if is_empty:
                self.assertRegex(error, rb"\Apt_flow: no blocks of files: none in \d+ instr\w+\n\Z")
                error = b""
            self.assertEqual((error, done.returncode), (b"", int(is_empty)))
            self.assertGreater(len(done.stdout), 70_000 if is_big else 0)

        self.each(check, [(name, arguments, is_big) for name, rows in FORMS.items()
                          if name in PROGRAMS for is_big, arguments in rows])

    def test_output_that_is_closed_ends_the_program_quietly(self):
        def check(name, arguments, _):
            ours, theirs = os.pipe()
            os.close(ours)
            done = run(name, arguments, stdout=theirs)
            os.close(theirs)
            # By SIGPIPE, or with the status of output that cannot be written.
            self.assertIn(done.returncode, (-13, 2))
            self.assertEqual(done.stderr, b"")

        self.each(check, [(name, row[1], 0) for name, row in all_of(FORMS)])

    def test_output_that_is_full_is_an_error(self):
        def check(name, arguments, _):
            with open("/dev/full", "wb") as full:
                done = run(name, arguments, stdout=full)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, rb"\A[^\n]*standard output: No space left[^\n]*\n\Z")

        self.each(check, [(name, row[1], 0) for name, row in all_of(FORMS)])

    def test_a_file_that_is_not_complete_does_not_get_its_name(self):
        def check(name, arguments, existing):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "output")
                if existing:
                    path.write_bytes(existing)
                done = run(name, [*arguments, path], preexec_fn=functools.partial(
                    resource.setrlimit, resource.RLIMIT_FSIZE, (MAX_BYTES, MAX_BYTES)))
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, rb"\A\w+: [^\n]*/output: File too large\n\Z")
                left = {one.name: one.read_bytes() for one in pathlib.Path(folder).iterdir()}
                self.assertEqual(left, {"output": existing} if existing else {})

        self.each(check, [(*one, old) for one in all_of(FILES) for old in (b"", b"the old one")])

    def test_a_complete_file_has_its_name_its_mode_and_its_link(self):
        def check(name, arguments, _):
            with tempfile.TemporaryDirectory() as folder:
                target, path = pathlib.Path(folder, "target"), pathlib.Path(folder, "output")
                target.write_bytes(b"the old one")
                target.chmod(0o640)
                path.symlink_to(target)
                done = run(name, [*arguments, path])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual({one.name for one in pathlib.Path(folder).iterdir()},
                                 {"target", "output"})
                self.assertGreater(target.stat().st_size, MAX_BYTES)
                self.assertTrue(path.is_symlink())
                self.assertEqual(target.stat().st_mode & 0o777, 0o640)

        self.each(check, [(*one, 0) for one in all_of(FILES)])


class Noise(unittest.TestCase):
    """Bytes without a PSB, in each kind of file."""

    READERS = {
        "pt_dump": [[], ["--json"], ["--summary"], ["--check"], ["--events"], ["--jobs", "2"],
                    ["--chrome-trace"]],
        "pt_flow": [[form] for form in ("--runs", "--calls", "--folded", "--edges")],
        "pt_cut": [["--list"], ["-o", "/dev/null"]],
        "timeline": [["-o", "/dev/null"]], "pt_twin": [[]], "pt_count_mpi": [[]], "tour": [[]],
        "what_happened": [[]], "perf_events": [[]],
    }

    def test_a_trace_without_a_psb_is_an_error(self):
        files = {"raw": file("noise.pt", NOISE), "perf.data": perf_data("noise.data", NOISE),
                 "directory": raw_output.write(FOLDER / "noise", [NOISE, NOISE], CODE, 0x401000)}
        reads = {"pt_flow": ("raw", "perf.data", "directory"), "pt_dump": ("raw", "perf.data"),
                 "timeline": ("raw", "perf.data"), "perf_events": ("perf.data",)}
        for name, arguments in all_of(self.READERS):
            for kind in reads.get(name, ("raw",)):
                with self.subTest(name, arguments=arguments, kind=kind):
                    done = run(name, [*arguments, files[kind]])
                    self.assertIn(done.returncode, (1, 2, 3))
                    self.assertRegex(done.stderr, rb"\A([^\n]*no PSB[^\n]*\n)+\Z")


if __name__ == "__main__":
    skips.main(sys.argv[:1])
