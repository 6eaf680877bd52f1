#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""A raw trace with a ring of perf beside it gives what the perf.data file gives that it was cut
from.

    perf_ring.py PT_FLOW PT_DUMP TIMELINE
"""

import pathlib
import random
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
import timeline_page  # noqa: E402
import traces  # noqa: E402
from folder import Folder  # noqa: E402

PT_FLOW, PT_DUMP, TIMELINE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
MMAP2, SWITCH, SWITCH_CPU_WIDE, TIME_CONV = 10, 14, 15, 79
OUT = 0x2000
CODE = {100: bytes.fromhex("90 75fd"), 200: bytes.fromhex("90 90 75fc")}  # NOPs; JNZ 401000H
# What AUXTRACE_INFO has in a perf.data file.
CLOCK = ["--tsc-ratio", "168/2", "--non-turbo", "24"]
PERF_CLOCK = ["--perf-clock", "31,1073741824,77"]


def run(tool, *arguments):
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def parts_of(data):
    """The attributes, the records of the kernel, and the traces of a perf.data file."""
    _, step, attrs, _, begin, size = struct.unpack_from("<6Q", data, 8)[0:6]
    attr = data[attrs:attrs + step - 16]
    records, trace, at = b"", b"", begin
    while at < begin + size:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        record = data[at:at + length]
        at += length
        if kind == made.AUXTRACE:
            count, = struct.unpack_from("<Q", record, 8)
            trace += data[at:at + count]
            at += count
        elif kind < 64:
            records += record
    return attr, records, trace


class Ring(Folder):
    def setUp(self):
        super().setUp()
        self.event = made.Event(config=0x600 | 3 << 14, sample_type=made.TID | made.TIME | made.CPU,
                                ids=[1])
        self.paths = {one: self.file(f"code{one}", code) for one, code in CODE.items()}

    def end(self, process, time, cpu=0):
        return made.id_end(self.event, process, time, cpu), ""

    def mapping(self, process):
        body = (made.u32(process, process) + made.u64(0x401000, 0x1000, 0) + made.u32(0, 0) +
                made.u64(0, 0) + made.u32(5, 2) + made.c_string(str(self.paths[process]).encode()))
        return made.Record(MMAP2, body, "", misc=2, end=self.end(process, 0))

    def switch(self, process, other, time, is_out):
        return made.Record(SWITCH_CPU_WIDE, made.u32(other, other), "", misc=OUT * is_out,
                           end=self.end(process, time))

    @staticmethod
    def slice_of(ticks, taken):
        start = (made.PSB + b"\x19" + ticks.to_bytes(7, "little") + b"\x02\x73" +
                 (ticks // 84 & 0xFFFF).to_bytes(2, "little") + bytes(3) + made.PSBEND)
        return start + bytes.fromhex("9901 71001040000000") + b"\x06" * taken + b"\x01"

    def slices(self, chance):
        """Slices of two processes on a CPU, and their records; an AUX record for each."""
        records, trace = [self.mapping(100), self.mapping(200)], b""
        for i in range(chance.randrange(2, 8)):
            process = chance.choice((100, 200))
            ticks = 84 * 800 * (i + 1)
            new = made.padded(self.slice_of(ticks, chance.randrange(1, 5)))
            time = 77 + ticks // 2
            records += [self.switch(process, 300 - process, time - 100, False),
                        made.aux(self.event, len(trace), len(new), 0, tid=process, time=time + 500),
                        self.switch(process, 300 - process, time + 1000, True)]
            trace += new
        return records, trace

    def written(self, records, trace, *auxtraces):
        """The same as perf.data file, and as options and operand of a ring."""
        auxtraces = auxtraces or [made.auxtrace(trace, tid=0xFFFFFFFF, cpu=0)]
        data = made.file_of([self.event], [made.info_of(), *records, *auxtraces])[0]
        attr, kernel, cut = parts_of(data)
        self.assertEqual(cut, trace)
        options = ["--records", self.file("records", kernel), "--attr", self.file("attr", attr)]
        return self.file("perf.data", data), options, self.file("aux", trace)

    def same(self, tool, data, ring, trace, *form, clock=()):
        status, wanted, error = run(tool, *form, data)
        got = run(tool, *form, *ring, *clock, trace)
        names = (str(data), str(trace))
        self.assertEqual((got[0], got[1].replace(*names[::-1]), got[2].replace(*names[::-1])),
                         (status, wanted, error), (tool, form))
        return wanted

    def test_the_output_is_that_of_the_perf_data_file(self):
        chance = random.Random(3)
        for _ in range(8):
            data, ring, trace = self.written(*self.slices(chance))
            for form in ("--instructions", "--runs", "--edges", "--folded", "--calls"):
                out = self.same(PT_FLOW, data, ring, trace, form, clock=CLOCK + PERF_CLOCK)
                self.assertNotIn("gap", out)
            self.same(PT_FLOW, data, ring, trace, "--calls", "--times", clock=CLOCK + PERF_CLOCK)
            self.same(PT_DUMP, data, ring, trace)
            self.same(PT_DUMP, data, ring, trace, "--events", "--time", clock=CLOCK + PERF_CLOCK)
            self.same(PT_DUMP, data, ring, trace, "--summary")

    def test_a_record_has_the_conversion_of_times(self):
        records, trace = self.slices(random.Random(4))
        data, ring, trace = self.written(records, trace)
        wanted = run(PT_FLOW, "--instructions", data)
        without = run(PT_FLOW, "--instructions", *ring, *CLOCK, trace)
        self.assertNotEqual(without[:2], wanted[:2])
        with open(ring[1], "ab") as file:
            file.write(made.Record(TIME_CONV, made.u64(31, 1 << 30, 77), "").data)
        self.assertEqual(run(PT_FLOW, "--instructions", *ring, *CLOCK, trace), wanted)
        for tool in (PT_DUMP, TIMELINE):
            form = ["--chrome-trace", "--calls"] if tool == PT_DUMP else ["--calls", "-o", "-"]
            status, out, error = run(tool, *form, *ring, *CLOCK, trace)
            self.assertEqual((status, error), (0, ""))
            self.assertIn("100/100", out)
            self.assertIn("200/200", out)

    def test_a_truncated_part_is_a_gap(self):
        first = made.padded(self.slice_of(84 * 800, 3))[:-4]
        second = self.slice_of(84 * 1600, 2)
        records = [self.mapping(100), self.switch(100, 0, 77, False),
                   made.aux(self.event, 0, len(first), made.TRUNCATED, tid=0),
                   made.aux(self.event, len(first), len(second), 0, tid=100)]
        data, ring, trace = self.written(records, first + second)
        out = self.same(PT_DUMP, data, ring, trace)
        self.assertIn("!gap missing=- aux=truncated", out)
        self.same(PT_FLOW, data, ring, trace, "--instructions", clock=CLOCK + PERF_CLOCK)

    def test_bytes_that_were_not_written_are_a_gap(self):
        first, second = (made.padded(self.slice_of(84 * 800 * i, i)) for i in (1, 2))
        far = len(first) + 4096
        records = [self.mapping(100), self.switch(100, 0, 77, False),
                   made.aux(self.event, 0, len(first), 0, tid=0),
                   made.aux(self.event, far, len(second), 0, tid=100)]
        data, ring, trace = self.written(
            records, first + second, made.auxtrace(first, tid=0xFFFFFFFF, cpu=0),
            made.auxtrace(second, offset=far, tid=0xFFFFFFFF, cpu=0))
        self.assertIn("!gap missing=4096", self.same(PT_DUMP, data, ring, trace))
        # The file has all bytes: an AUX record was lost.
        whole = self.file("whole", first + bytes(4096) + second)
        out = run(PT_DUMP, "--no-pad", *ring, whole)[1]
        self.assertNotIn("!gap", out)
        self.assertEqual(out.count(" psb "), 2)
        # The file ends early.
        status, _, error = run(PT_DUMP, *ring, self.file("early", first))
        self.assertIn(f"the trace has {len(first)} bytes, but AUX records describe "
                      f"{far + len(second)}", error)

    def test_what_was_overwritten_is_a_gap(self):
        trace = self.slice_of(84 * 800, 3)
        records = [self.mapping(100), self.switch(100, 0, 77, False),
                   made.aux(self.event, 512, len(trace), made.OVERWRITE, tid=0)]
        _, ring, trace = self.written(records, trace)
        out = run(PT_DUMP, *ring, trace)[1]
        self.assertIn("00000000 !gap missing=- aux=overwritten\n00000000 psb", out)
        out = run(PT_FLOW, "--instructions", *ring, *CLOCK, *PERF_CLOCK, trace)[1]
        self.assertTrue(out.startswith("gap missing-trace"), out)
        self.assertEqual(out.count("0x401000\n"), 4)

    def test_the_ring_of_a_thread(self):
        trace = self.slice_of(84 * 800, 3)
        records = [self.mapping(200), made.aux(self.event, 0, len(trace), 0, tid=200, cpu=1),
                   made.aux(self.event, len(trace), 0, 0, tid=200, cpu=2)]
        data, ring, trace = self.written(records, trace,
                                         made.auxtrace(trace, tid=200, cpu=0xFFFFFFFF))
        self.assertIn("0x401002", self.same(PT_FLOW, data, ring, trace, "--instructions"))
        lines = run(PT_DUMP, "--streams", *ring, trace)[1].splitlines()
        self.assertIn("config layout=ring ", lines[0])
        self.assertIn(" cpu=- tid=200 ", lines[2])

    def test_damaged_rings(self):
        records, trace = self.slices(random.Random(6))
        _, ring, trace = self.written(records, trace)
        whole, attr = pathlib.Path(ring[1]).read_bytes(), pathlib.Path(ring[3]).read_bytes()
        for cut in (1, 7, 9, len(whole) - 3):
            pathlib.Path(ring[1]).write_bytes(whole[:cut])
            status, _, error = run(PT_DUMP, *ring, trace)
            self.assertEqual(status, 2)
            self.assertRegex(error, rf"records: byte \d+: the (record|file|record header)")
            at = int(error.split("byte ")[1].split(":")[0])
            self.assertLess(at, cut)
        pathlib.Path(ring[1]).write_bytes(b"")
        self.assertEqual(run(PT_DUMP, *ring, trace)[0], 0)
        chance = random.Random(7)
        for _ in range(60):
            bad = bytearray(whole)
            for _ in range(chance.randrange(1, 6)):
                bad[chance.randrange(len(bad))] = chance.randrange(256)
            pathlib.Path(ring[1]).write_bytes(bad)
            for tool, form in ((PT_DUMP, "--summary"), (PT_FLOW, "--runs")):
                self.assertIn(run(tool, form, *ring, trace)[0], (0, 1, 2, 3))
        for bad in (b"", attr[:63], attr[:4] + made.u32(4) + attr[8:],
                    attr[:4] + made.u32(1000) + attr[8:]):
            pathlib.Path(ring[3]).write_bytes(bad)
            status, _, error = run(PT_DUMP, *ring, trace)
            self.assertEqual(status, 2)
            self.assertIn("is no struct perf_event_attr", error)

    def test_the_rest_of_damaged_records_is_read(self):
        records, trace = self.slices(random.Random(6))
        places = [0]
        for one in records:
            places.append(places[-1] + len(one.data))
        forms = ((PT_DUMP, ["--summary"]), (PT_FLOW, ["--runs", *PERF_CLOCK]),
                 (TIMELINE, ["-o", "-"]))
        for which in range(len(records)):
            # Without a record, and with its size damaged.
            rest = records[:which] + records[which + 1:]
            _, ring, aux = self.written(rest, trace)
            wanted = [run(tool, *form, *ring, aux) for tool, form in forms]
            data, ring, aux = self.written(records, trace)
            begin = data.read_bytes().index(made.info_of().data) + len(made.info_of().data)
            for path, at in ((data, begin), (pathlib.Path(ring[1]), 0)):
                bad = bytearray(path.read_bytes())
                bad[at + places[which] + 6:at + places[which] + 8] = bytes(2)
                path.write_bytes(bad)
            lost = len(records[which].data)
            for (tool, form), (status, out, error) in zip(forms, wanted):
                def said(at):
                    return f"{lost} bytes of damaged records at 0x{at:x} were skipped\n"
                got = run(tool, *form, *ring, aux)
                is_last = which == len(records) - 1
                self.assertEqual(got[1], out, (tool, which))
                self.assertEqual(got[0], 2 if is_last else max(status, 1), (tool, got[2]))
                self.assertEqual(got[2].count(said(places[which])), 0 if is_last else 1, got[2])
                if is_last:
                    self.assertIn(f"byte {places[which]}: ", got[2])
                    continue
                status, _, error = run(tool, *form, data)
                self.assertEqual((status != 0, error.count(said(begin + places[which]))),
                                 (True, 1), (tool, error))

    def test_wrong_usage(self):
        records, trace = self.slices(random.Random(6))
        data, ring, trace = self.written(records, trace)
        for tool in (PT_DUMP, PT_FLOW, TIMELINE):
            out = ["-o", "-"] if tool == TIMELINE else []
            for arguments, why in (([*ring[:2], trace], "--records and --attr need each other"),
                                   ([*ring[2:], trace], "--records and --attr need each other"),
                                   ([*ring, data], "is a perf.data file"),
                                   ([*ring, trace, trace], "one trace")):
                status, _, error = run(tool, *out, *arguments)
                self.assertEqual(status, 2)
                self.assertIn(why, error)

    def test_a_recorded_file(self):
        data = traces.recorded_perf_data("perf.data.intel_pt-4.14")
        file = self.file("perf.data", data)
        text = run(PT_DUMP, "--streams", file)[1].splitlines()
        clock = text[0].split("perf_clock=")[1]
        _, _, whole = parts_of(data)
        size = int(text[2].split("bytes=")[1].split()[0])
        attr = data[struct.unpack_from("<Q", data, 24)[0]:][:112]
        ring = ["--records", self.file("records", b""), "--attr", self.file("attr", attr)]
        form = ["--events", "--time", "--cpu", "6/78/3", "--tsc-ratio", "100/2", "--non-turbo",
                "12", "--tsc-reference", text[2].split("reference=")[1].split()[0],
                "--perf-clock", clock]
        got = run(PT_DUMP, *form, *ring, self.file("aux", whole[:size]))
        self.assertEqual(got[:2], run(PT_DUMP, *form, "--stream", 0, file)[:2])


if __name__ == "__main__":
    unittest.main()
