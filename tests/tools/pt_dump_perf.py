#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_dump, timeline and perf_events with perf.data files, and of the first two with those
of the driver of Windows.

    pt_dump_perf.py PT_DUMP TIMELINE PERF_DATA_FILE PERF_EVENTS

What a stream gives is compared with what the same bytes give as raw traces, which other tests
compare with golden listings. Recorded files are read from ../shared/perfdata beside the source
tree, or PTSPEC_PERF_DATA; without them the tests that need them are skipped.
"""

import json
import pathlib
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
import skips  # noqa: E402
import timeline_page  # noqa: E402
import traces  # noqa: E402
from folder import Folder  # noqa: E402
from traces import recorded_perf_data as recorded  # noqa: E402

PT_DUMP, TIMELINE, PERF_DATA_FILE, PERF_EVENTS = sys.argv[1:5]

FILES = {"perf.data.intel_pt-4.14": "google-m7-cpu0",
         "perf.data.piped.intel_pt-4.14": "google-m7-piped-idx0"}
# What the files say, as options for the raw trace.
CLOCK = {"--mtc-freq": "3", "--tsc-ratio": "100/2", "--non-turbo": "12", "--cpu": "6/78/3",
         "--perf-clock": "31,1789569706,18446744041015200657"}
NO_CPU = 0xFFFFFFFF
FORK, COMPRESSED = 7, 81
CBR = bytes.fromhex("02031800")
ENABLED = bytes.fromhex("9901" "71001000000000")  # MODE.Exec, TIP.PGE to 0x1000


def options(numbers):
    return [word for pair in numbers.items() for word in pair]


def event():
    return made.Event(config=0x600 | 3 << 14, sample_type=made.TID, ids=[1])


def end():
    return made.u32(1, 1), ""


def comm(tid, name):
    return made.Record(made.COMM, made.u32(tid, tid) + made.c_string(name), "", end=end())


def fork(child, parent):
    return made.Record(FORK, made.u32(child, parent, child, parent) + made.u64(0), "", end=end())


def file_of(*records, features=None, **info):
    return made.file_of([event()], [made.info_of(**info), *records], features)[0]


def pipe_of(*records, **info):
    return made.pipe_of([event()], [made.info_of(**info), *records])[0]


def segment(chance, tsc, size):
    """A trace without damage and violations, of at least `size` bytes: PSB, TSC, a traced part."""
    out = made.PSB + b"\x19" + tsc.to_bytes(7, "little") + CBR + made.PSBEND + ENABLED
    while len(out) < size - 1:
        out += chance.choice((b"\x8a", b"\xfc", b"\x2d" + chance.randbytes(2),
                              CBR[:2] + bytes((chance.randrange(8, 40), 0))))
    return out + b"\x01"  # TIP.PGD


def shifted(listing, by):
    """A listing of lines `OFFSET ...`, with `by` added to the offsets, without the last line."""
    lines = [line.split(" ", 1) for line in listing.splitlines()[:-1]]
    return [f"{int(offset, 16) + by:08x} {rest}" for offset, rest in lines]


class Case(Folder):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "perf.data"

    def run_tool(self, *arguments, tool=PT_DUMP, data=b""):
        done = subprocess.run([tool, *map(str, arguments)], input=data, capture_output=True,
                              timeout=300, check=False)
        self.assertIn(done.returncode, (0, 1, 2, 3), (arguments, done.stderr))
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def dump(self, *arguments, status=0, data=b"", said=""):
        got, out, error = self.run_tool(*arguments, data=data)
        self.assertEqual((got, error), (status, said), arguments)
        return out

    def raw(self, data, *arguments, status=0):
        return self.dump(*arguments, "-", data=data, status=status)

    def write(self, data):
        self.path.write_bytes(data)
        return self.path

    def streams(self, data, *arguments, **how):
        """The fields of each stream, and those of the configuration before it."""
        found, config = [], None
        text = self.dump("--streams", "--json", *arguments, self.write(data), **how)
        for one in map(json.loads, text.splitlines()):
            event = one.pop("event")
            if event == "config":
                config = one
            elif event == "ctl":
                config["ctl"] = one["value"]
            else:
                found.append((one, config))
        return found


class RecordedFiles(Case):
    def test_the_listing_of_a_recorded_program(self):
        data = traces.shipped("bare-icelake", "data")
        golden = traces.shipped("bare-icelake", "packets").decode().splitlines()[:-1]
        listing = self.dump("--strict", "--stream", 0, self.write(data)).splitlines()
        self.assertEqual(listing[:len(golden)], golden)
        # perf.data holds multiples of 8 bytes.
        self.assertEqual({line.split()[1] for line in listing[len(golden):-1]} - {"pad"}, set())
        found, = self.streams(data)
        self.assertEqual((found[0]["comm"], found[0]["pieces"], found[0]["gaps"]), ("bare", 1, 0))
        self.assertEqual((found[1]["mtc"], found[1]["mtc_freq"], found[1]["cyc"]), (1, 3, 0))

    def test_the_listing_of_a_stream_is_the_golden_listing_of_its_trace(self):
        for name, trace in FILES.items():
            golden = traces.read(traces.folder() / f"{trace}.packets")
            if golden is None:
                self.skipTest(traces.NEED)
            data = recorded(name)
            how = ("--strict", "--stream", 0)
            self.assertEqual(self.dump(*how, self.write(data)), golden.decode(), name)
            self.assertEqual(self.dump(*how, "-", data=data), golden.decode(), name)
            self.assertEqual(self.dump(*how, "--jobs", 3, self.path), golden.decode(), name)

    def test_the_streams_and_their_configuration(self):
        wanted = {"perf.data.intel_pt-4.14": [(0, 0, 3174, 12240), (3, 3, 3174, 137728)],
                  "perf.data.piped.intel_pt-4.14": [(0, 0, 3587, 76400), (3, 3, 3587, 68192)]}
        for name, rows in wanted.items():
            found = self.streams(recorded(name))
            self.assertEqual([tuple(one[field] for field in ("idx", "cpu", "tid", "bytes"))
                              for one, _ in found], rows)
            for number, (one, config) in enumerate(found):
                self.assertEqual((one["stream"], one["pieces"], one["gaps"], one["comm"]),
                                 (number, 1, 0, "echo"))
                self.assertGreater(int(one["reference"], 16), 1 << 32)
                self.assertEqual(config, {
                    "layout": "pipe" if "piped" in name else "file", "snapshot": 0, "tsc": 1,
                    "mtc": 1, "cyc": 0, "mtc_freq": 3, "cyc_thresh": 0, "tsc_ratio": "100/2",
                    "non_turbo": 12, "cpu": "6/78/3",
                    "errata": "bdm70,skd007,skd022,skd010,skl014,skl168",
                    "perf_clock": "31,1789569706,18446744041015200657", "ctl": "0x300e70d"})
        text = self.dump("--streams", self.path).splitlines()
        self.assertEqual([line.split()[0] for line in text], ["config", "ctl", "stream", "stream"])
        self.assertTrue(text[2].startswith("stream 0 idx=0 cpu=0 tid=3587 bytes=76400 pieces=1 "))
        self.assertTrue(text[2].endswith(" comm=echo"))

    def test_the_clock_is_that_of_the_file_and_options_replace_it(self):
        name, trace = next(iter(FILES.items()))
        data = traces.read(traces.folder() / f"{trace}.pt")
        if data is None:
            self.skipTest(traces.NEED)
        self.write(recorded(name))
        changes = [{}, {"--mtc-freq": "0"}, {"--tsc-ratio": "168/2"}, {"--non-turbo": "36"},
                   {"--perf-clock": "10,2000,5"}]
        seen = set()
        for what in ("--time", "--events --time", "--summary --time"):
            for change in changes:
                how = what.split()
                wanted = self.raw(data, *how, *options(CLOCK | change))
                got = self.dump(*how, *options(change), "--stream", 0, self.path)
                self.assertEqual(got, wanted, (what, change))
                seen.add(got)
        self.assertGreater(len(seen), 8)
        hz = self.dump("--time", "--tsc-hz", 1_000_000_000, "--stream", 0, self.path)
        self.assertIn(" ns=808742735", hz)
        self.assertEqual(self.dump("--time", "--cpu", "6/61/4", "--cyc-thresh", 5, "--stream", 0,
                                   self.path),
                         self.raw(data, "--time", *options(CLOCK | {"--cpu": "6/61/4"}),
                                  "--cyc-thresh", 5))

        def timeline(text):
            return [one for one in json.loads(text)["traceEvents"]
                    if one.get("name") != "process_name"]
        got = self.dump("--chrome-trace", "--stream", 0, self.path)
        self.assertEqual(timeline(got), timeline(self.raw(data, "--chrome-trace",
                                                          *options(CLOCK))))
        self.assertIn("microseconds of the given clock", got)

    def test_every_form_of_output_reads_all_streams(self):
        self.write(recorded("perf.data.piped.intel_pt-4.14"))
        headings = [f"# {self.path} stream 0: cpu 0, tid 3587 (echo)",
                    f"# {self.path} stream 1: cpu 3, tid 3587 (echo)"]
        for what in ("", "--summary", "--events", "--check", "--time", "--jobs 2"):
            text = self.dump(*what.split(), self.path)
            self.assertEqual([line for line in text.splitlines() if line.startswith("#")], headings)
            parts = [self.dump(*what.split(), "--stream", number, self.path)
                     for number in (0, 1)]
            self.assertEqual(text, "".join(f"{heading}\n{part}"
                                           for heading, part in zip(headings, parts)))
        listed = [json.loads(line) for line in self.dump("--json", self.path).splitlines()]
        self.assertEqual([f"# {one['file']}" for one in listed if one.get("event") == "file"],
                         headings)
        events = json.loads(self.dump("--chrome-trace", self.path))["traceEvents"]
        names = {one["pid"]: one["args"]["name"] for one in events
                 if one.get("name") == "process_name"}
        self.assertEqual(names, {1: headings[0][2:], 2: headings[1][2:]})


class MadeFiles(Case):
    def parts(self, seed, count):
        """Traces that begin with a PSB and a TSC, of different sizes, which are multiples of 8."""
        chance = random.Random(seed)
        return [made.padded(segment(chance, 5000 + 1000 * i, chance.randrange(60, 300)))
                for i in range(count)]

    def test_pieces_are_joined_and_gaps_begin_another_trace(self):
        one, two, three, other = self.parts(1, 4)
        begin = len(one) + len(two)
        # Two pieces whose border is within a PSB, a gap of 24 bytes, and bytes before a PSB.
        whole, cut = one + two, len(one) + 8
        late = b"\x04" * 8 + three
        records = [comm(7, b"perf"), comm(7, b"first"), fork(9, 7),
                   made.auxtrace(other, 0, 70, idx=5, tid=9),
                   made.auxtrace(late, begin + 24, 60, idx=2, tid=7),
                   made.auxtrace(whole[:cut], 0, 50, idx=2, tid=7),
                   made.auxtrace(whole[cut:], cut, 55, idx=2, tid=7)]
        for data in (file_of(*records), pipe_of(*records)):
            rows = [tuple(one[name] for name in ("stream", "idx", "cpu", "tid", "bytes", "pieces",
                                                 "gaps", "reference", "comm"))
                    for one, _ in self.streams(data)]
            self.assertEqual(rows, [(0, 2, None, 7, begin + len(late), 3, 1, "0x32", "first"),
                                    (1, 5, None, 9, len(other), 1, 0, "0x46", "first")])
            gap = f"{begin:08x} !gap missing=24"
            for how in ([], ["--jobs", 2], ["--no-sync"], ["--no-sync", "--jobs", 2], ["--events"]):
                raw_how = [word for word in how if word != "--no-sync"]
                first, last = self.raw(whole, *raw_how), self.raw(late, *raw_how)
                wanted = shifted(first, 0) + [gap] + shifted(last, begin)
                self.assertIn("!sync skipped=8", wanted[len(shifted(first, 0)) + 1])
                text = self.dump(*how, "--stream", 0, self.path).splitlines()
                self.assertEqual(text[:-1], wanted, how)
                sums = [list(map(int, re.findall(r"=(\d+)", listing.splitlines()[-1])))
                        for listing in (first, last)]
                self.assertEqual(list(map(int, re.findall(r"=(\d+)", text[-1]))),
                                 [a + b for a, b in zip(*sums)])
                self.assertEqual(text[-1].split()[0], f"{begin + len(late):08x}")
                self.assertEqual(self.dump(*how, "--stream", 1, self.path),
                                 self.raw(other, *raw_how))
        objects = [json.loads(line) for line in
                   self.dump("--json", "--stream", 0, self.path).splitlines()]
        self.assertIn({"offset": begin, "event": "gap", "missing": 24}, objects)

    def test_a_summary_does_not_count_across_gaps(self):
        one, two, three = self.parts(2, 3)
        gap = 1 << 20
        self.write(file_of(made.auxtrace(one + two),
                           made.auxtrace(three + one, len(one + two) + gap)))
        for how in ([], ["--jobs", 2], ["--time"]):
            got = json.loads(self.dump("--summary", "--json", *how, self.path))
            self.assertEqual(got["gaps"], 1)
            self.assertEqual(got["by_type"]["psb"]["packets"], 4)
            spacing = sorted((len(one), len(three)))
            self.assertEqual(got["psb_spacing"], {"min": spacing[0], "mean": sum(spacing) // 2,
                                                  "max": spacing[1]}, how)
        self.assertIn("\ngaps                    1\n", self.dump("--summary", self.path))

    def test_the_check_begins_again_after_a_gap(self):
        # Where tracing continues, a PSB+ has a FUP.
        enabled = made.padded(made.PSB + CBR + made.PSBEND + ENABLED)
        how = ("--check", "--kind", "manual")
        self.write(file_of(made.auxtrace(enabled), made.auxtrace(enabled, len(enabled))))
        self.assertEqual(self.dump(*how, self.path, status=1),
                         self.raw(enabled * 2, *how, status=1))
        self.write(file_of(made.auxtrace(enabled), made.auxtrace(enabled, 100)))
        self.assertEqual(self.dump(*how, self.path).splitlines(),
                         [f"{len(enabled):08x} !gap missing={100 - len(enabled)}",
                          f"{2 * len(enabled):08x} !end violations=0 kind=manual"])
        # Violations after the gap have their offsets in the stream, and follow the line of the gap.
        bad = made.padded(enabled + ENABLED)
        alone = self.raw(bad, *how, status=1)
        self.assertIn("GEN-100", alone)
        self.write(file_of(made.auxtrace(bad), made.auxtrace(bad, 100)))
        self.assertEqual(self.dump(*how, self.path, status=1).splitlines()[:-1],
                         [*shifted(alone, 0), f"{len(bad):08x} !gap missing={100 - len(bad)}",
                          *shifted(alone, len(bad))])

    def test_a_timeline_has_the_gap(self):
        one, two, _ = self.parts(3, 3)
        self.write(file_of(made.auxtrace(one), made.auxtrace(two, len(one) + 80)))
        events = json.loads(self.dump("--chrome-trace", self.path))["traceEvents"]
        gaps = [one for one in events if one.get("name") == "gap"]
        self.assertEqual([one["args"] for one in gaps], [{"offset": len(one), "missing": 80}])
        psbs = [event["args"]["offset"] for event in events if event.get("name") == "psb"]
        self.assertEqual(len(psbs), 2)
        self.assertGreater(psbs[1], len(one))
        # The intervals of both tracks end.
        for track in (1, 2):
            phases = "".join(one["ph"] for one in events if one["tid"] == track)
            self.assertEqual(phases.count("B"), phases.count("E"), phases)

    def test_tracing_is_unknown_after_a_gap(self):
        on = made.PSB + CBR + made.PSBEND + ENABLED + b"\xfe"
        on += bytes(-len(on) % 8)
        self.write(file_of(made.auxtrace(on), made.auxtrace(on, len(on) + 8)))
        events = json.loads(self.dump("--chrome-trace", self.path))["traceEvents"]
        self.assertEqual([one["ph"] for one in events if one["ph"] in "BEi" and one["tid"] == 1
                          and one.get("name") != "psb"], ["B", "E", "i", "B", "E"])

    def test_errata_are_those_of_the_model(self):
        # SKZ84: a TMA with a reserved bit is no time.
        one = (made.PSB + b"\x19" + (1 << 30).to_bytes(7, "little") +
               bytes.fromhex("0273" "0000" "02" "0000") + CBR + made.PSBEND + ENABLED)
        one += b"\x59\x05" * 4
        one += bytes(-len(one) % 8)
        model = {9: made.text_feature(b"GenuineIntel,6,85,4")}
        self.write(file_of(made.auxtrace(one), features=model))
        clock = ["--time", "--mtc-freq", 3, "--tsc-ratio", "168/2", "--non-turbo", 24,
                 "--perf-clock", f"31,{1 << 30},77"]
        with_it = self.raw(one, *clock, "--cpu", "6/85/4")
        without = self.raw(one, *clock, "--cpu", "6/94/3")
        self.assertNotEqual(with_it, without)
        self.assertEqual(self.dump(*clock, self.path), with_it)
        self.assertEqual(self.dump(*clock, "--cpu", "6/94/3", self.path), without)

    def test_times_after_a_gap_continue(self):
        one, two = self.parts(4, 2)
        self.write(file_of(made.auxtrace(one, 0, 77 << 56), made.auxtrace(two, len(one) + 8)))
        for how in (["--time"], ["--events", "--time"]):
            lines = self.dump(*how, self.path).splitlines()
            at = next(i for i, line in enumerate(lines) if " !gap " in line)
            times = [int(re.search(r"time=0x(\w+)", line)[1], 16)
                     for line in lines if " psb" in line and "time=" in line]
            self.assertEqual([time >> 56 for time in times][-1], 77)
            self.assertTrue(any(" time=" in line for line in lines[at + 1:]))

    def test_snapshots_are_read_without_what_they_repeat(self):
        one, two, three, four = self.parts(5, 4)
        snapshots = [one + two, two + three, four]
        records = [made.auxtrace(data, 0, idx=1) for data in snapshots]
        self.write(file_of(*records, snapshot=1))
        (stream, config), = self.streams(self.path.read_bytes())
        self.assertEqual((config["snapshot"], stream["pieces"], stream["gaps"]), (1, 3, 1))
        whole = one + two + three
        text = self.dump(self.path).splitlines()
        self.assertEqual(text[:-1], shifted(self.raw(whole), 0) +
                         [f"{len(whole):08x} !gap missing=-"] +
                         shifted(self.raw(four), len(whole)))

    def test_a_stream_whose_begin_is_missing(self):
        one, = self.parts(6, 1)
        self.write(file_of(made.auxtrace(b"\x04" * 8 + one, 4096)))
        self.assertEqual(self.dump(self.path).splitlines()[:-1],
                         ["00000000 !gap missing=4096", *shifted(self.raw(b"\x04" * 8 + one), 0)])

    def test_a_gap_without_a_psb_after_it(self):
        one, = self.parts(7, 1)
        self.write(file_of(made.auxtrace(one), made.auxtrace(b"\x04" * 16, len(one) + 8)))
        for how in ([], ["--jobs", 4]):
            self.assertEqual(self.dump(*how, self.path).splitlines()[-2],
                             f"{len(one) + 16:08x} !nosync skipped=16", how)
        self.write(file_of(made.auxtrace(b"\x04" * 8), made.auxtrace(b"\x04" * 16, 88)))
        for how in ([], ["--jobs", 4], ["--events"], ["--summary"], ["--check"]):
            self.assertEqual(self.run_tool(*how, self.path)[0], 3, how)

    def test_streams_without_bytes_are_no_error(self):
        one, = self.parts(8, 1)
        self.write(file_of(made.auxtrace(b"", idx=0), made.auxtrace(one, idx=1)))
        self.assertIn(" !end packets=0 ", self.dump(self.path))

    def test_files_that_ptspec_writes(self):
        subprocess.run([PERF_DATA_FILE, "mtc", "/bin/program", self.path], check=True, timeout=60)
        found = [one for one, _ in self.streams(self.path.read_bytes())]
        self.assertEqual([(one["tid"], one["comm"], one["pieces"], one["gaps"]) for one in found],
                         [(100, "first", 2, 0), (101, "second-thread-o", 2, 0)])

    def test_compressed_records_give_a_message(self):
        one, = self.parts(9, 1)
        data = file_of(made.Record(COMPRESSED, bytes(16), ""), made.auxtrace(one, tid=7))
        at = data.index(made.u32(COMPRESSED) + made.u16(0, 24))
        said = (f"pt_dump: {self.path}: byte {at}: compressed records are not read: names of "
                "threads, and AUX records that report a loss, may be missing\n")
        self.write(data)
        self.assertEqual(self.dump(self.path, said=said), self.raw(one))
        self.assertIn("comm=-", self.dump("--streams", self.path, said=said))


class AuxRecords(Case):
    """Flags of PERF_RECORD_AUX. Offsets of the pieces are contiguous."""

    KIND = made.TID | made.TIME | made.CPU

    def file(self, *records, kind=KIND, **info):
        event = made.Event(config=0x600 | 3 << 14, sample_type=kind, ids=[1])
        records = [one(event) if callable(one) else one for one in records]
        return made.file_of([event], [made.info_of(**info), *records])[0]

    @staticmethod
    def aux(offset, size, flags, **where):
        return lambda event: made.aux(event, offset, size, flags, **where)

    def two(self, flags, size=None, cut=0):
        """Two traces in two AUXTRACE records; the first one ends in a cut packet."""
        chance = random.Random(20)
        one, two = (made.padded(segment(chance, 5000 + i, 100)) for i in range(2))
        one = one[:len(one) - cut]
        one += b"\xcd\x45\x23\xa1\xf7"[:cut]
        size = len(one) if size is None else size
        return one, two, self.file(made.auxtrace(one, cpu=3, idx=3),
                                   self.aux(0, size, flags, cpu=3),
                                   made.auxtrace(two, len(one), cpu=3, idx=3))

    def test_a_loss_after_the_last_byte_of_a_record(self):
        for flags, reason in ((made.TRUNCATED, "truncated"), (made.COLLISION, "collision"),
                              (made.TRUNCATED | made.COLLISION, "truncated,collision"),
                              (made.TRUNCATED | made.OVERWRITE, "truncated")):
            for cut in (0, 5):
                one, two, data = self.two(flags, cut=cut)
                self.write(data)
                gap = f"{len(one):08x} !gap missing=- aux={reason}"
                for how in ([], ["--events"], ["--jobs", 2], ["--no-sync"],
                            ["--no-sync", "--events"]):
                    how_raw = [word for word in how if word != "--no-sync"]
                    status = 1 if cut else 0
                    first = self.raw(one, *how_raw, status=status)
                    self.assertEqual(" !error code=trunc left=5" in first or
                                     "PKT-255" in first, bool(cut))
                    text = self.dump(*how, self.path, status=status).splitlines()
                    self.assertEqual(text[:-1], shifted(first, 0) + [gap] +
                                     shifted(self.raw(two, *how_raw), len(one)), (flags, how))
                self.assertIn(gap, self.dump("--check", self.path).splitlines())
                (stream, _), = self.streams(data)
                self.assertEqual([stream[name] for name in ("bytes", "pieces", "gaps", "truncated",
                                                            "collision", "partial")],
                                 [len(one + two), 2, 1, int("truncated" in reason),
                                  int("collision" in reason), 0])
                objects = map(json.loads, self.dump("--json", self.path,
                                                    status=status).splitlines())
                self.assertIn({"offset": len(one), "event": "gap", "missing": None, "aux": reason},
                              list(objects))

    def test_a_loss_within_a_record_of_perf_and_one_of_size_0(self):
        chance = random.Random(21)
        one, two, three = (segment(chance, 5000 + i, 90) for i in range(3))
        whole = made.padded(one + two + three)
        at, end = len(one), len(one + two)
        self.write(self.file(self.aux(0, at, made.TRUNCATED, cpu=2),
                             self.aux(end, 0, made.COLLISION, cpu=2),
                             self.aux(len(one + two + three), 0, made.TRUNCATED, cpu=2),
                             made.auxtrace(whole, cpu=2)))
        self.assertEqual(self.dump(self.path).splitlines()[:-1],
                         [*shifted(self.raw(one), 0), f"{at:08x} !gap missing=- aux=truncated",
                          *shifted(self.raw(two), at), f"{end:08x} !gap missing=- aux=collision",
                          *shifted(self.raw(three), end),
                          f"{len(one + two + three):08x} !gap missing=- aux=truncated"])
        self.assertEqual(self.run_tool("--events", self.path)[0], 0)

    def test_a_branch_is_not_invented_where_a_packet_is_cut(self):
        # The rest of the TIP would be the begin of the PSB: a target 8202820282.
        enabled = made.padded(made.PSB + CBR + made.PSBEND + ENABLED + b"\x06")
        cut = enabled + b"\xcd" + bytes(1)
        for flags in (made.TRUNCATED, made.COLLISION):
            self.write(self.file(made.auxtrace(cut + enabled, cpu=0),
                                 self.aux(0, len(cut), flags)))
            events = self.dump("--events", self.path, status=1)
            self.assertNotIn("8202", events)
            self.assertEqual(events.count(" psb "), 2)

    def test_partial_is_told_and_the_bytes_go_on(self):
        chance = random.Random(22)
        one, two = (made.padded(segment(chance, 5000 + i, 100)) for i in range(2))
        data = self.file(made.auxtrace(one, cpu=0), made.auxtrace(two, len(one), cpu=0),
                         self.aux(len(one), len(two), made.PARTIAL))
        self.write(data)
        told = f"{len(one):08x} !partial size={len(two)}"
        for how in ([], ["--events"], ["--jobs", 2], ["--check", "--kind", "manual"]):
            text = self.dump(*how, self.path).splitlines()
            wanted = self.raw(one + two, *how).splitlines()
            self.assertIn(told, text)
            self.assertEqual([line for line in text if line != told], wanted, how)
        (stream, _), = self.streams(data)
        self.assertEqual((stream["gaps"], stream["partial"], stream["pieces"]), (0, 1, 2))
        self.assertIn({"offset": len(one), "event": "partial", "size": len(two)},
                      [json.loads(line) for line in self.dump("--json", self.path).splitlines()])
        self.assertIn("\npartial                 1\n", self.dump("--summary", self.path))
        events = json.loads(self.dump("--chrome-trace", self.path))["traceEvents"]
        self.assertEqual([one["args"] for one in events if one.get("name") == "partial"],
                         [{"offset": len(one), "size": len(two)}])

    def test_overwrite_alone_changes_nothing(self):
        one, two, data = self.two(made.OVERWRITE)
        self.assertEqual(self.dump(self.write(data)), self.raw(one + two))
        self.assertEqual(self.run_tool("--check", self.path),
                         self.run_tool("--check", "-", data=one + two))

    def test_flags_that_belong_to_no_stream_are_a_warning(self):
        chance = random.Random(23)
        one = made.padded(segment(chance, 5000, 100))
        self.write(self.file(made.auxtrace(one, cpu=0), self.aux(0, 8, made.TRUNCATED, cpu=7)))
        said = (f"pt_dump: {self.path}: 1 AUX records report missing trace, but do not "
                "name the stream\n")
        self.assertEqual(self.dump(self.path, said=said), self.raw(one))

    def test_the_truncated_file(self):
        path = traces.perf_data_folder() / "made" / "truncated.data"
        if not path.is_file():
            self.skipTest("recorded perf.data")
        lines = self.dump("--events", path, status=1).splitlines()
        at = lines.index("00000038 !gap missing=- aux=truncated")
        self.assertEqual([line.split()[0] for line in lines if "indirect_branch" in line],
                         ["0000002a", "00000062"])
        self.assertRegex(lines[at - 1], r"\A00000033 !damage packet=- rule=PKT-255")
        self.assertIn("psb ip=0x403000", "\n".join(lines[at:]))


class AuxSamples(Case):
    KIND = made.TID | made.TIME | made.AUX_SAMPLE

    def file(self, *samples, kind=KIND):
        event = made.Event(config=0x600 | 3 << 14, sample_type=kind, ids=[1])
        records = [made.aux_sample(event, data, **where) for data, where in samples]
        return made.file_of([event], [made.info_of(), *records])[0]

    def test_a_stream_of_a_thread_or_a_processor(self):
        chance = random.Random(24)
        one, two, three, four = (segment(chance, 5000 + i, 100) for i in range(4))
        samples = [(two + three, {"tid": 5, "cpu": 1, "time": 9}),
                   (one + two, {"tid": 6, "cpu": 1, "time": 8}),
                   (four, {"tid": 5, "cpu": 0, "time": 7})]
        rows = [tuple(one[name] for name in ("idx", "cpu", "tid", "bytes", "pieces", "gaps"))
                for one, _ in self.streams(self.file(*samples))]
        sizes = [len(made.padded(data)) for data, _ in samples]
        self.assertEqual(rows, [(5, None, 5, sizes[2] + sizes[0], 2, 1),
                                (6, None, 6, sizes[1], 1, 0)])
        data = self.file(*samples, kind=self.KIND | made.CPU)
        whole = one + two + three
        found = self.streams(data)
        self.assertEqual([(one["cpu"], one["tid"], one["gaps"], one["pieces"], one["recorded"])
                          for one, _ in found],
                         [(0, 5, 0, 1, sizes[2]), (1, None, 0, 2, sizes[0] + sizes[1])])
        # The reference is the TSC of the time: shift 31, mult 2^30, zero 77.
        self.assertEqual(int(found[1][0]["reference"], 16), (8 - 77) * 2 % (1 << 64))
        self.assertEqual(self.dump("--stream", 1, "--no-pad", self.path).splitlines()[:-1],
                         self.raw(whole, "--no-pad").splitlines()[:-1])

    def test_recorded_samples(self):
        data = recorded("perf.data.aux_samples-5.5")
        chunks = traces.read(traces.folder() / "memgaze-ubench.chunks.packets")
        (stream, _), = self.streams(data)
        self.assertEqual([stream[name] for name in ("pieces", "recorded", "tid", "cpu", "comm")],
                         [252, 2064384, 19568, None, "ubench-500k_O3_"])
        if chunks is None:
            self.skipTest(traces.NEED)

        def psbs(lines):
            """The TSC of each PSB, and how many packets follow up to the next."""
            found = []
            for line in lines:
                if " psb len=" in line:
                    found.append(None)
                elif found and found[-1] is None and " tsc len=" in line:
                    found[-1] = line.split("tsc=")[1]
            return found
        listed = psbs(self.dump("--no-pad", self.path).splitlines())
        whole = psbs(chunks.decode().splitlines())
        self.assertEqual(len(whole), 1009)
        # Each PSB that is in several samples is listed once.
        self.assertEqual(listed, sorted(set(whole), key=lambda one: int(one, 16)))

    def test_the_made_file(self):
        path = traces.perf_data_folder() / "made" / "aux_samples.data"
        if not path.is_file():
            self.skipTest("recorded perf.data")
        (stream, _), = self.streams(path.read_bytes())
        # The second sample repeats the first one.
        self.assertEqual((stream["pieces"], stream["recorded"], stream["bytes"]), (2, 112, 56))


class Snapshots(Case):
    def test_a_snapshot_without_a_PSB_in_between(self):
        path = traces.perf_data_folder() / "made" / "snapshots_without_psb.data"
        if not path.is_file():
            self.skipTest("recorded perf.data")
        text = self.dump(path)
        tscs = re.findall(r" psb len=16\n\w+ tsc len=8 tsc=(\w+)", text)
        self.assertEqual((len(tscs), len(set(tscs)), text.count("!gap")), (9, 9, 0))


class OtherWays(Case):
    """What else a user meets."""

    def test_a_directory_of_perf(self):
        chance = random.Random(25)
        one = made.padded(segment(chance, 5000, 100))
        folder = self.folder / "perf.data.dir"
        folder.mkdir()
        (folder / "data").write_bytes(file_of(made.auxtrace(one)))
        self.assertEqual(self.dump(folder), self.raw(one))
        status, _, said = self.run_tool(self.folder)
        self.assertEqual((status, said), (2, f"pt_dump: {self.folder}: Is a directory\n"))
        status, _, _ = self.run_tool("-o", self.folder / "page.html", folder, tool=TIMELINE)
        self.assertEqual(status, 0)
        # The page would replace the file.
        status, _, said = self.run_tool("-o", folder / "data", folder, tool=TIMELINE)
        self.assertEqual((status, "would overwrite" in said), (2, True))

    def test_a_malformed_AUXTRACE_INFO(self):
        broken = made.info_of(17, b"12345678")  # the filter is longer than the record
        data, _, begin = made.file_of([event()], [broken, made.auxtrace(bytes(8))])
        self.write(data)
        for tool in ([PT_DUMP], [TIMELINE, "-o", self.folder / "page.html"]):
            status, _, said = self.run_tool(*tool[1:], self.path, tool=tool[0])
            self.assertEqual(status, 2)
            self.assertIn(f": byte {begin}: the AUXTRACE_INFO record is malformed\n", said)

    def test_a_trace_without_a_PSB(self):
        on = ENABLED + b"\x06" + b"\x2d\x11\x22" + b"\x0e"
        raw = self.folder / "raw.pt"
        raw.write_bytes(on)
        for arguments, tool in ((["--events"], PT_DUMP), (["--chrome-trace"], PT_DUMP),
                                ([], PT_DUMP), (["-o", self.folder / "page.html"], TIMELINE)):
            status, _, said = self.run_tool(*arguments, raw, tool=tool)
            self.assertEqual(status, 3)
            self.assertIn("; --no-sync reads from the first byte\n", said)
        self.assertEqual(self.dump("--events", "--no-sync", raw).splitlines(),
                         ["00000002 enabled ip=-", "00000000 exec_mode mode=64 if=0 ip=-",
                          "00000009 branches n=1 bits=T", "0000000a indirect_branch to=-",
                          "0000000d branches n=2 bits=TT",
                          "0000000e !end events=5 errors=0 resyncs=0"])
        self.dump("--chrome-trace", "--no-sync", raw)
        page = self.folder / "page.html"
        status, _, said = self.run_tool("--no-sync", "-o", page, raw, tool=TIMELINE)
        self.assertEqual((status, said), (0, ""))
        data = timeline_page.data_of(page.read_text())
        self.assertEqual((data["streams"][0]["conditional"], data["streams"][0]["read"]), (3, 1))

    def test_a_stream_of_several_threads(self):
        chance = random.Random(26)
        one, two, _ = parts = [made.padded(segment(chance, 5000 + i, 60)) for i in range(3)]
        at = [0, len(one), len(one + two)]
        for tids, label in (((5, 5, 5), "tid 5 (five)"), ((5, 9, 5), "tids 5, 9"),
                            ((7, 5, 9), "tids 5, 7, 9")):
            self.write(file_of(comm(5, b"five"),
                               *(made.auxtrace(data, begin, tid=tid)
                                 for data, begin, tid in zip(parts, at, tids)),
                               made.auxtrace(one, idx=1)))
            self.assertIn(f"# {self.path} stream 0: {label}\n", self.dump(self.path))


class DamagedFiles(Case):
    def test_each_prefix_of_a_file_is_read_up_to_its_end(self):
        chance = random.Random(1)
        parts = [made.padded(segment(chance, 1000 + i, 40)) for i in range(3)]
        records = [comm(7, b"first"), *(made.auxtrace(data, idx=i) for i, data in
                                        enumerate(parts))]
        for data, begin in ((file_of(*records), None), (pipe_of(*records), 16)):
            places, at = [], data.index(made.info_of().data)
            first = at
            for record in (made.info_of(), *records):
                places.append(at)
                at += len(record.data)
            for size in (*range(8, len(data), 7), *places, first + 1):
                self.path.write_bytes(data[:size])
                status, out, said = self.run_tool("--json", self.path)
                whole = begin is not None and size in places and size > places[0]
                ends = [place for place in (*places[2:], at) if place <= size]
                streams = max(0, len(ends) - 1)
                self.assertEqual(out.count('"event":"end"'), streams, (size, said))
                if whole and streams:
                    self.assertEqual((status, said), (0, ""), size)
                    continue
                self.assertEqual(status, 2, size)
                offset = re.fullmatch(rf"pt_dump: {self.path}: (?:byte (\d+): .*|no Intel PT in "
                                      r"this file.*)\n", said)
                self.assertTrue(offset, said)
                if size > first and offset[1] and not whole:
                    self.assertEqual(int(offset[1]), max(place for place in places
                                                         if place <= size), (size, said))

    def test_the_rest_of_a_file_with_a_damaged_record_is_read(self):
        chance = random.Random(3)
        parts = [made.padded(segment(chance, 1000 + i, 40)) for i in range(4)]
        records = [made.info_of(), comm(7, b"first"), *(made.auxtrace(data, idx=i) for i, data in
                                                        enumerate(parts)), comm(7, b"last")]
        damages = [(6, made.u32(0)[:2]), (6, made.u32(7)[:2]), (6, made.u32(0xFFF0)[:2]),
                   (6, made.u32(40)[:2]), (8, made.u64(1 << 60))]
        for form in (made.file_of, made.pipe_of):
            data = form([event()], records)[0]
            at = data.index(records[0].data)
            for which, one in enumerate(records):
                is_trace = 2 <= which < 6
                for place, changed in damages[:4] if not is_trace else damages:
                    where = at + place
                    # A shorter AUXTRACE_INFO is possible: older versions of perf wrote it.
                    if which == 0 and changed == made.u32(40)[:2]:
                        continue
                    path = self.write(data[:where] + changed + data[where + len(changed):])
                    status, out, said = self.run_tool("--json", path)
                    # Without AUXTRACE_INFO it is not known how the traces were recorded.
                    is_last, is_info = which == len(records) - 1, which == 0
                    # Traces are known by their record even without their threads.
                    self.assertEqual((status, out.count('"event":"end"')),
                                     (2 if is_last or is_info else 1, 4 - is_trace), said)
                    size = len(one.data)
                    if not is_last:
                        self.assertIn(f"pt_dump: {path}: {size} bytes of damaged records at "
                                      f"0x{at:x} were skipped\n", said)
                    page = self.folder / "page.html"
                    status, _, said = self.run_tool("-o", page, path, tool=TIMELINE)
                    self.assertEqual((status, f"{size} bytes of damaged" in said),
                                     (2 if is_last or is_info else 1, not is_last), said)
                at += len(one.data)

    def test_files_without_intel_pt_say_so(self):
        other = made.file_of([made.Event(type=1, ids=[1], sample_type=made.TID)],
                             [comm(7, b"x")])[0]
        for tool, name in ((PT_DUMP, "pt_dump"), (TIMELINE, "timeline")):
            for data, why in ((other, "perf recorded other events; byte 0: the file has no "
                                      "AUXTRACE_INFO record"),
                              (b"", "it is empty"), (b"\x7fELF" + bytes(60), "it is an ELF file")):
                arguments = ("-o", self.folder / "page.html") if tool == TIMELINE else ()
                status, _, said = self.run_tool(*arguments, self.write(data), tool=tool)
                self.assertEqual((status, said), (2, f"{name}: {self.path}: no Intel PT in this "
                                                     f"file: {why}\n"))
            status, _, said = self.run_tool(*arguments, self.write(b"some text\n"), tool=tool)
            self.assertEqual(status, 3)
            self.assertIn("no PSB to begin at: no Intel PT", said)

    def test_every_form_of_output_of_a_cut_file(self):
        chance = random.Random(2)
        one, two = (made.padded(segment(chance, 1000, 200)) for _ in range(2))
        data = file_of(made.auxtrace(one), made.auxtrace(two, len(one)))
        self.write(data[:-20])
        at = data.index(two) - 48
        for how in ("", "--summary", "--events", "--check", "--time --tsc-hz 5000", "--jobs 3"):
            self.assertEqual(self.dump(*how.split(), self.path, status=2,
                                       said=f"pt_dump: {self.path}: byte {at}: the file ends too "
                                            "early\n"),
                             self.raw(one, *how.split()))
        got, out, said = self.run_tool("--chrome-trace", self.path)
        self.assertEqual((got, bool(json.loads(out)["traceEvents"])), (2, True))
        got, out, said = self.run_tool("--streams", self.path)
        self.assertEqual((got, out.count("\nstream ")), (2, 1))

    def test_changed_bytes_end_with_a_status(self):
        chance = random.Random(3)
        parts = [made.padded(segment(chance, 1000 + i, 60)) for i in range(2)]
        data = file_of(comm(7, b"first"), *(made.auxtrace(one, idx=i)
                                            for i, one in enumerate(parts)),
                       features={9: made.text_feature(b"GenuineIntel,6,78,3")})
        for _ in range(150):
            changed = bytearray(data)
            for _ in range(chance.randrange(1, 4)):
                changed[chance.randrange(len(data))] = chance.choice((0, 1, 255,
                                                                      chance.randrange(256)))
            how = chance.choice(("--streams", "--summary", "--events --time", "--check"))
            status, _, said = self.run_tool(*how.split(), self.write(bytes(changed)))
            if status == 2:
                self.assertRegex(said, r"\A(pt_dump: .+\n)+\Z")

    def test_other_files_and_wrong_usage(self):
        trace = made.PSB + made.PSBEND
        raw = self.folder / "raw.pt"
        raw.write_bytes(trace)
        self.write(file_of(made.auxtrace(trace + bytes(6))))
        for arguments, about in (
                (["--streams", raw], "it has no streams"),
                (["--stream", 0, raw], "a raw trace has no streams"),
                (["--stream", 1, self.path], "has no stream 1; --streams of pt_dump lists them"),
                (["--stream", "x", self.path], "--stream takes the number of a stream"),
                (["--stream", 0, "--hex", "00"], "are for files"),
                (["--streams", "--events", self.path], "print different things"),
                (["--streams", "--jobs", 2, self.path], "leave out --jobs"),
                (["--winipt", self.path], "byte 0: the version of the trace is unknown")):
            status, _, said = self.run_tool(*arguments)
            self.assertEqual(status, 2, arguments)
            self.assertIn(about, said)
        for data, about in ((b"2ELIFREP" + bytes(96), "byte 0: the file has big-endian"),
                            (b"PERFFILE" + bytes(96), "byte 0: perf wrote the file before 2011"),
                            (b"PERFILE2", "byte 0: the file ends too early"),
                            (file_of(), "no Intel PT in this file"),
                            (made.file_of([event()], [])[0], "unfinished|was not finished"),
                            (made.file_of([made.Event(type=3, ids=[1])],
                                          [made.info_of(), made.auxtrace(bytes(8))])[0],
                             "no event is of the PMU intel_pt")):
            status, _, said = self.run_tool(self.write(data))
            self.assertEqual(status, 2, about)
            self.assertRegex(said, about)
        # The others are read all the same.
        status, out, _ = self.run_tool(self.write(b"PERFILE2"), raw)
        self.assertEqual((status, out.count(" psb ")), (2, 1))


class WinIpt(Case):
    def file(self, *threads):
        data = b"".join(struct.pack("<QIIIII", tid, timing, mtc, ratio, at, len(ring)) + ring
                        for tid, timing, mtc, ratio, at, ring in threads)
        return self.write(struct.pack("<HHI", 1, 1, len(data)) + data)

    def test_rings_are_read_from_their_oldest_byte(self):
        chance = random.Random(4)
        one = b"".join(segment(chance, 1000 * i, 150) for i in range(1, 5))
        two = segment(chance, 7000, 90)
        at = 77
        full = one[-at:] + one[:-at]
        self.file((1 << 40, 1, 5, 84, at, full), (9, 2, 3, 168, len(two), two + bytes(40)),
                  (10, 0, 0, 0, 0, b""))
        text = self.dump("--winipt", "--streams", "--json", self.path)
        rows = list(map(json.loads, text.splitlines()))
        self.assertEqual([(one["tid"], one["bytes"], one["comm"]) for one in rows
                          if one["event"] == "stream"],
                         [(1 << 40, len(one), None), (9, len(two) + 40, None), (10, 0, None)])
        self.assertEqual([(one["layout"], one["mtc"], one["cyc"], one["mtc_freq"],
                           one["tsc_ratio"], one["non_turbo"]) for one in rows
                          if one["event"] == "config"],
                         [("winipt", 1, 0, 5, "84/1", None), ("winipt", 1, 1, 3, "168/1", None),
                          ("winipt", 0, 0, 0, None, None)])
        how = ("--winipt", "--stream")
        self.assertEqual(self.dump(*how, 0, self.path), self.raw(one))
        self.assertEqual(self.dump(*how, 1, self.path), self.raw(bytes(40) + two))
        self.assertEqual(self.dump("--time", *how, 0, self.path),
                         self.raw(one, "--time", "--mtc-freq", 5, "--tsc-ratio", "84/1"))

    def test_a_file_that_is_cut(self):
        chance = random.Random(5)
        one = segment(chance, 1000, 90)
        whole = self.file((1, 1, 3, 84, 0, one), (2, 1, 3, 84, 0, one)).read_bytes()
        for size in range(len(whole)):
            self.path.write_bytes(whole[:size])
            status, out, said = self.run_tool("--winipt", self.path)
            end = 8 + 28 + len(one)
            self.assertEqual((status, out.count("!end")), (2, int(size >= end)), size)
            place = 0 if size < 8 else 8 if size < end else end
            self.assertIn(f"byte {place}: the file ends too early", said)


class Events(Case):
    """examples/perf_events.cpp."""

    def check(self, data, status=0):
        self.write(data)
        got, out, said = self.run_tool(self.path, tool=PERF_EVENTS)
        self.assertEqual((got, said), (status, ""))
        lines = iter(out.splitlines())
        idx = 0
        for one in map(json.loads, self.dump("--events", "--time", "--json",
                                             self.path).splitlines()):
            if one["event"] == "file":
                number = int(re.search(r"stream (\d+):", one["file"])[1])
                idx = self.streams(data)[number][0]["idx"]
            elif one["event"] not in ("gap", "end"):
                line = next(lines)
                time = f"{one['ns']} ns " if "ns" in one else ""
                self.assertTrue(f"{line} ".startswith(f"stream {idx}: {time}{one['event']} "),
                                (line, one))
                for name in ("ip", "to"):  # pt_dump does not print all
                    if name in one:
                        shown = f" {name}={int(one[name], 16):x} " if one[name] else f" {name}="
                        self.assertEqual(shown in f"{line} ", bool(one[name]), (line, one))
        self.assertEqual(list(lines), [])

    def test_the_events_are_those_of_pt_dump(self):
        self.check(recorded("perf.data.intel_pt-4.14"))
        chance = random.Random(30)
        one, two = (made.padded(segment(chance, 5000 + i, 100)) for i in range(2))
        self.check(file_of(made.auxtrace(one, idx=0), made.auxtrace(two, 8 * len(one), idx=0),
                           made.auxtrace(two, idx=4)))

    def test_other_files(self):
        for data, about in ((b"", "this is no perf.data file"),
                            (made.file_of([event()], [made.auxtrace(bytes(8))])[0],
                             "the file has no AUXTRACE_INFO record")):
            got, out, said = self.run_tool(self.write(data), tool=PERF_EVENTS)
            self.assertEqual((got, out, said), (1, "", about + "\n"))


class Timeline(Case):
    def page(self, *arguments, status=0):
        page = self.folder / "page.html"
        got, _, said = self.run_tool("-o", page, *arguments, tool=TIMELINE)
        self.assertEqual(got, status, said)
        return timeline_page.data_of(page.read_text()), said

    def test_a_recorded_file_has_a_lane_for_each_stream(self):
        self.write(recorded("perf.data.intel_pt-4.14"))
        data, _ = self.page(self.path)
        self.assertEqual([one["name"] for one in data["streams"]],
                         [f"{self.path} cpu 0, tid 3174 (echo)",
                          f"{self.path} cpu 3, tid 3174 (echo)"])
        self.assertEqual([one["bytes"] for one in data["streams"]], [12240, 137728])
        self.assertTrue(all(one["timed"] for one in data["streams"]))
        # 2^31 / 1789569706 ticks a ns
        self.assertEqual((data["tsc_hz"], data["tsc_ratio"], data["non_turbo"]),
                         (round(2**31 * 10**9 / 1789569706), 1, 12))
        trace = traces.read(traces.folder() / "google-m7-cpu0.pt")
        if trace is None:
            self.skipTest(traces.NEED)
        raw = self.folder / "raw.pt"
        raw.write_bytes(trace)
        one, _ = self.page("--stream", 0, self.path)
        other, _ = self.page("--mtc-freq", 3, "--tsc-ratio", "100/2", "--non-turbo", 12, raw)
        for data in (one, other):
            del data["streams"][0]["name"], data["streams"][0]["label"]
        self.assertEqual(one["streams"], other["streams"])
        given, _ = self.page("--tsc-hz", 5, "--stream", 0, self.path)
        self.assertEqual(given["tsc_hz"], 5)
        changed, _ = self.page("--mtc-freq", 0, "--stream", 0, self.path)
        self.assertNotEqual(changed["streams"][0]["columns"], one["streams"][0]["columns"])

    def test_a_gap(self):
        chance = random.Random(6)
        one, two = (made.padded(segment(chance, 1000 * i, 200)) for i in (1, 2))
        self.write(file_of(comm(7, b"a/b"), made.auxtrace(one, tid=7),
                           made.auxtrace(b"\x04" * 8 + two, len(one) + 8, tid=7)))
        data, _ = self.page(self.path)
        stream, = data["streams"]
        self.assertEqual((stream["name"], stream["bytes"]),
                         (f"{self.path} tid 7 (a_b)", len(one + two) + 8))
        self.assertEqual((stream["counts"]["psb"], stream["packets"]["psb"], stream["skipped"]),
                         (2, 2, 8))
        states = stream["states"]["tracing"]
        changes = list(zip(timeline_page.undiff(states["offset"]),
                           timeline_page.decode(states["value"])))
        self.assertIn((len(one), 2), changes)
        offsets = [one["offset"] for one in timeline_page.events_of(data, 0)
                   if one["type"] == "psb"]
        self.assertGreater(offsets[-1], len(one))

    def test_the_labels_and_the_values_of_events(self):
        self.write(recorded("perf.data.intel_pt-4.14"))
        data, _ = self.page(self.path)
        self.assertEqual([one["label"] for one in data["streams"]],
                         ["cpu 0, tid 3174 (echo)", "cpu 3, tid 3174 (echo)"])
        texts = {one["text"] for one in timeline_page.events_of(data, 0)
                 if one["type"] == "exec_mode"}
        self.assertTrue(texts and all(text.startswith("mode=64 if=") for text in texts), texts)

    def test_what_AUX_records_say(self):
        chance = random.Random(10)
        one, two = (made.padded(segment(chance, 1000 * i, 200)) for i in (1, 2))
        event = made.Event(config=0x600, sample_type=made.CPU, ids=[1])
        records = [made.info_of(), made.auxtrace(one, cpu=0), made.auxtrace(two, len(one), cpu=0),
                   made.aux(event, 0, len(one), made.TRUNCATED),
                   made.aux(event, len(one), 8, made.PARTIAL)]
        self.write(made.file_of([event], records)[0])
        stream, = self.page(self.path)[0]["streams"]
        self.assertEqual((stream["gaps"], stream["told_gaps"], stream["partials"]), (1, 1, 1))

    def test_without_clock_numbers_only_the_order_is_known(self):
        chance = random.Random(11)
        one = segment(chance, 1000, 200)[:-1] + b"\x59\x07" * 9 + segment(chance, 9000, 100)
        raw = self.folder / "raw.pt"
        raw.write_bytes(one)
        for how, ordered in (([], 1), (["--mtc-freq", 3, "--tsc-ratio", "168/2"], 0)):
            stream, = self.page(*how, raw)[0]["streams"]
            self.assertEqual((stream["timed"], stream["ordered"]), (1, ordered), how)
        raw.write_bytes(segment(chance, 1000, 200) + segment(chance, 9000, 100))
        stream, = self.page(raw)[0]["streams"]
        self.assertEqual((stream["timed"], stream["ordered"]), (1, 0))

    def test_what_can_be_read_of_a_cut_file_is_drawn(self):
        chance = random.Random(7)
        one = made.padded(segment(chance, 1000, 200))
        data = file_of(made.auxtrace(one, idx=0), made.auxtrace(one, idx=1))
        page, said = self.page(self.write(data[:-8]), status=2)
        self.assertEqual(len(page["streams"]), 1)
        self.assertRegex(said, r"byte \d+: the file ends too early")

    def test_files_of_the_driver_of_windows(self):
        chance = random.Random(8)
        one = segment(chance, 1000, 200)
        rings = b"".join(struct.pack("<QIIIII", tid, 1, 3, 84, 0, len(one)) + one
                         for tid in (5, 6))
        self.write(struct.pack("<HHI", 1, 1, len(rings)) + rings)
        page, _ = self.page("--winipt", self.path)
        self.assertEqual([stream["name"] for stream in page["streams"]],
                         [f"{self.path} tid 5", f"{self.path} tid 6"])

    def test_wrong_usage(self):
        chance = random.Random(9)
        one = made.padded(segment(chance, 1000, 60))
        numbers = [8, 31, 1 << 30, 77, 1, 0x400, 0x800, 2, 0, 1, 0x200, 0x3C000, 168, 2, 2, 24]
        self.write(file_of(made.auxtrace(one)))
        other = self.folder / "other"
        other.write_bytes(file_of(made.auxtrace(one), numbers=numbers[:2] + [1 << 31] +
                                  numbers[3:]))
        raw = self.folder / "raw.pt"
        raw.write_bytes(one)
        many = self.folder / "many"
        many.write_bytes(file_of(*(made.auxtrace(one, idx=i) for i in range(257))))
        for arguments, about in (([self.path, other], "another frequency"),
                                 (["--stream", 3, self.path], "has no stream 3"),
                                 (["--stream", 0, raw], "a raw trace has no streams"),
                                 ([many], "at most 256 traces"), (["-", "-"], "can be read once")):
            status, _, said = self.run_tool("-o", self.folder / "x.html", *arguments,
                                            tool=TIMELINE)
            self.assertEqual(status, 2, arguments)
            self.assertIn(about, said)
        status, _, said = self.run_tool("-o", self.path, self.path, tool=TIMELINE)
        self.assertEqual(status, 2)
        self.assertIn("would overwrite", said)


if __name__ == "__main__":
    skips.main(sys.argv[:1])
