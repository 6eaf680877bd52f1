#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of file/perf_data/ and file/winipt: perf_data_list lists files as they were made.

    perf_data_list.py PERF_DATA_LIST PERF_DATA_FILE PT_RECORD

Recorded files are read from ../shared/perfdata beside the source tree, or PTSPEC_PERF_DATA; without
them the tests that need them are skipped.
"""

import collections
import lzma
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
import skips  # noqa: E402
import traces  # noqa: E402
from folder import Folder  # noqa: E402

PERF_DATA_LIST, PERF_DATA_FILE, PT_RECORD = sys.argv[1:4]

RECORDED = pathlib.Path(os.environ.get("PTSPEC_PERF_DATA") or
                        traces.ROOT.parent / "shared" / "perfdata")
NONE, TRUNCATED, SHORT = 0, 4, 9
ERRORS = dict(not_perf_data=1, big_endian=2, old_format=3, truncated=4, bad_header=5, unfinished=6,
              directory=7, bad_record_size=8, record_too_short=9, unknown_id=11, too_many_ids=12,
              no_auxtrace_info=14, not_intel_pt=15, no_intel_pt_event=16, bad_auxtrace_info=18)


def recorded(name):
    path = RECORDED / f"{name}.xz"
    if not path.is_file():
        raise unittest.SkipTest("recorded perf.data")
    return lzma.decompress(path.read_bytes())


# ------------------------------------------------------------------------------- protobuf text

TOKEN = re.compile(r'\s*(?:(?P<close>\})|(?P<name>\w+)\s*(?:(?P<open>\{)|:\s*'
                   r'(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<word>[\w.-]+))))')
ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.S)
LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}


def unescaped(text):
    return ESCAPE.sub(lambda found: bytes([int(found[1], 8)]) if found[1].isdigit()
                      else LETTERS.get(found[1], found[1]), text.encode())


def read_golden(text):
    """Blocks as lists of (name, value); a value is a block, bytes, or a word."""
    stack, at = [[]], 0
    while match := TOKEN.match(text, at):
        at = match.end()
        if match["close"]:
            stack.pop()
        elif match["open"]:
            block = []
            stack[-1].append((match["name"], block))
            stack.append(block)
        else:
            value = match["word"] if match["text"] is None else unescaped(match["text"])
            stack[-1].append((match["name"], value))
    assert text[at:].strip() == "" and len(stack) == 1, text[at:at + 80]
    return stack[0]


def first(block, name, default=None):
    return next((value for key, value in block if key == name), default)


def fields_of(line):
    return dict(part.split("=", 1) for part in line.split() if "=" in part)


def pair(block, one, two):
    return f"{first(block, one)}/{first(block, two)}"


def number_of(word):
    return {"true": "1", "false": "0"}.get(word, word)


FLAGS = ("disabled inherit pinned exclusive exclude_user exclude_kernel exclude_hv exclude_idle "
         "mmap comm freq inherit_stat enable_on_exec task watermark precise_ip:2 mmap_data "
         "sample_id_all exclude_host exclude_guest exclude_callchain_kernel "
         "exclude_callchain_user mmap2 comm_exec use_clockid context_switch write_backward "
         "namespaces ksymbol - - cgroup").split()


class Golden:
    """Compares listed lines with a golden text, and counts the numbers that it compared."""

    def __init__(self, test):
        self.test, self.count = test, 0

    def same(self, listed, name, golden):
        self.test.assertIn(name, listed, listed)
        self.test.assertEqual(listed[name], str(number_of(golden)), (name, listed))
        self.count += 1

    def text(self, listed, name, golden):
        self.same(listed, name, golden.hex())

    def attr(self, listed, block):
        attr = first(block, "attr")
        at, bits = 0, {}
        for name in FLAGS:
            name, _, width = name.partition(":")
            width = int(width or 1)
            bits[name] = int(listed["flags"]) >> at & (1 << width) - 1
            at += width
        for name, value in attr:
            if name == "size":
                continue  # the golden text has the size of its own structure, not the file's
            if name in bits:
                self.test.assertEqual(str(bits[name]), number_of(value), name)
                self.count += 1
            else:
                names = {"wakeup_events": "wakeup", "bp_addr": "config1", "bp_len": "config2"}
                self.same(listed, names.get(name, name), value)
        self.same(listed, "ids", ",".join(value for name, value in block if name == "ids"))

    def sample_info(self, listed, block):
        info = first(block, "sample_info", block)
        names = {"sample_time_ns": "time", "id": "id", "cpu": "id_cpu"}
        for name, value in info:
            if name in names:
                self.same(listed, names[name], value)
        self.same(listed, "id_thread", pair(info, "pid", "tid"))

    def mmap_event(self, listed, block):
        self.same(listed, "thread", pair(block, "pid", "tid"))
        self.same(listed, "addr", first(block, "start"))
        self.text(listed, "filename", first(block, "filename"))
        for name in ("len", "pgoff", "maj", "min", "ino", "ino_generation", "prot", "flags"):
            if first(block, name) is not None:
                self.same(listed, name, first(block, name))
        self.sample_info(listed, block)

    def comm_event(self, listed, block):
        self.same(listed, "thread", pair(block, "pid", "tid"))
        self.text(listed, "name", first(block, "comm"))
        self.sample_info(listed, block)

    def exit_event(self, listed, block):
        self.same(listed, "thread", pair(block, "pid", "tid"))
        self.same(listed, "parent", pair(block, "ppid", "ptid"))
        self.same(listed, "own_time", first(block, "fork_time_ns"))
        self.sample_info(listed, block)

    def sample_event(self, listed, block):
        self.same(listed, "ip", first(block, "ip"))
        self.same(listed, "period", first(block, "period"))
        self.sample_info(listed, block)

    def context_switch_event(self, listed, block):
        self.same(listed, "out", first(block, "is_out"))
        self.same(listed, "other", pair(block, "next_prev_pid", "next_prev_tid"))
        self.sample_info(listed, block)

    def itrace_start_event(self, listed, block):
        self.same(listed, "thread", pair(block, "pid", "tid"))
        self.sample_info(listed, block)

    def aux_event(self, listed, block):
        self.same(listed, "aux_offset", first(block, "aux_offset"))
        self.same(listed, "aux_size", first(block, "aux_size"))
        flags = int(listed["flags"])
        for bit, name in enumerate(("is_truncated", "is_overwrite", "is_partial")):
            self.test.assertEqual(str(flags >> bit & 1), number_of(first(block, name)))
            self.count += 1
        self.sample_info(listed, block)

    def time_conv_event(self, listed, block):
        for name in ("shift", "mult", "zero"):
            self.same(listed, name, first(block, f"time_{name}"))

    def auxtrace_info_event(self, listed, block):
        self.same(listed, "kind", first(block, "type"))
        words = [value for name, value in block if name == "unparsed_binary_blob_priv_data"]
        self.same(listed, "words", str(len(words)))
        self.test.assertEqual(words[16:], ["0"], "no filter, and no word after it")
        self.same(listed, "priv", "".join(f"{word}," for word in words[:16]) + "0,")
        self.count += len(words)

    def auxtrace_event(self, listed, block):
        names = {"size": "trace_size", "offset": "trace_offset"}
        for name in ("size", "offset", "reference", "idx", "tid", "cpu"):
            self.same(listed, names.get(name, name), first(block, name))
        self.same(listed, "after", str(len(first(block, "trace_data"))))

    def event(self, listed, block):
        header = first(block, "header")
        for name in ("type", "misc", "size"):
            self.same(listed, name, first(header, name))
        self.same({"time": listed.get("time", "0")}, "time", first(block, "timestamp", "0"))
        for name, value in block:
            if name.endswith("_event"):
                getattr(self, name)(listed, value)


class PerfDataList(Folder):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "perf.data"

    def run_list(self, *arguments):
        done = subprocess.run([PERF_DATA_LIST, *map(str, arguments)], capture_output=True,
                              timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""), arguments)
        return done.stdout

    def lines(self, data, *arguments):
        self.path.write_bytes(data)
        return self.run_list(*arguments, self.path).decode().splitlines()

    def error(self, data):
        """Why and where reading ended."""
        found = [line for line in self.lines(data) if line.startswith("error")]
        self.assertLessEqual(len(found), 1, found)
        if not found:
            return NONE, 0
        fields = fields_of(found[0])
        return int(fields["why"]), int(fields["offset"])

    def assert_error(self, data, name, offset):
        self.assertEqual(self.error(data), (ERRORS[name], offset), name)

    # --------------------------------------------------------------------------- recorded files

    def test_the_golden_text_of_a_recorded_file(self):
        data = recorded("perf.data.intel_pt-4.14")
        golden = read_golden(recorded("perf.data.intel_pt-4.14.pb_text").decode())
        lines = self.lines(data)
        compared = Golden(self)
        attrs = [fields_of(line) for line in lines if line.startswith("attr ")]
        blocks = [block for name, block in golden if name == "file_attrs"]
        self.assertEqual(len(attrs), len(blocks))
        for listed, block in zip(attrs, blocks):
            compared.attr(listed, block)

        listed = [fields_of(line) for line in lines if line.startswith("record ")]
        events = [block for name, block in golden if name == "events"]
        # The golden text has the records in the order of their times.
        listed.sort(key=lambda one: int(one.get("time", 0)))
        self.assertEqual([one["type"] for one in listed],
                         [first(first(block, "header"), "type") for block in events])
        for one, block in zip(listed, events):
            compared.event(one, block)
        traced = [one for one in listed if one["type"] == "71"]
        for one in traced:
            block = next(first(block, "auxtrace_event") for block in events
                         if first(first(block, "auxtrace_event", []), "idx") == one["idx"])
            self.assertEqual(self.run_list("--stream", one["idx"], self.path),
                             first(block, "trace_data"))

        ids = [fields_of(line) for line in lines if line.startswith("build_id ")]
        blocks = [block for name, block in golden if name == "build_ids"]
        self.assertEqual([(one["pid"], one["id"], one["filename"]) for one in ids],
                         [(first(block, "pid"), first(block, "build_id_hash").hex(),
                           first(block, "filename").hex()) for block in blocks])
        self.assertEqual(len(ids), 66)
        strings = first(golden, "string_metadata")
        self.assertIn("cpuid string=" + first(first(strings, "cpu_id"), "value").hex(), lines)
        mask = int(first(golden, "metadata_mask"))
        features = [int(fields_of(line)["which"]) for line in lines if line.startswith("feature")]
        self.assertEqual(sum(1 << bit for bit in features), mask)
        self.assertEqual((len(events), compared.count), (257, 3003))

    def test_the_decoder_configuration_of_the_recorded_files(self):
        for name in ("perf.data.intel_pt-4.14", "perf.data.piped.intel_pt-4.14"):
            config = fields_of(next(line for line in self.lines(recorded(name))
                                    if line.startswith("config")))
            # TSC, MTC with period 3, PSB period 3, User, OS and ToPA; BranchEn from bit 13.
            self.assertEqual(int(config["ctl"]), 0x0300E600 | 0b1100 | 0x100)
            self.assertEqual((config["n"], config["d"], config["ratio"]), ("100", "2", "12"))
            self.assertEqual((config["shift"], config["mult"], config["zero"]),
                             ("31", "1789569706", "18446744041015200657"))
            self.assertEqual((config["model"], config["unknown"]), ("6,78,3", "0"))

    def test_the_streams_of_the_recorded_files_are_the_known_traces(self):
        for name, trace in (("perf.data.intel_pt-4.14", "google-m7-cpu0"),
                            ("perf.data.piped.intel_pt-4.14", "google-m7-piped-idx0")):
            self.path.write_bytes(recorded(name))
            expected = traces.read(traces.folder() / f"{trace}.pt")
            if expected is None:
                self.skipTest(traces.NEED)
            self.assertEqual(self.run_list("--stream", 0, self.path), expected)

    def test_the_samples_of_a_recorded_file_are_the_known_trace(self):
        self.path.write_bytes(recorded("perf.data.aux_samples-5.5"))
        lines = self.run_list(self.path).decode().splitlines()
        pieces = [fields_of(line) for line in lines if line.startswith("piece")]
        self.assertEqual((len(pieces), {one["recorded"] for one in pieces}), (252, {"8192"}))
        expected = traces.read(traces.folder() / "memgaze-ubench.pt")
        if expected is None:
            self.skipTest(traces.NEED)
        self.assertEqual(self.run_list("--recorded", self.path), expected)

    # --------------------------------------------------------------------------- made files

    def check(self, events, records, features=None, **how):
        """Both layouts list these records."""
        data, lines, begin = made.file_of(events, records, features, **how)
        lines += made.record_lines(records, begin)
        listed = [line for line in self.lines(data)
                  if line.split()[0] in ("layout", "attr", "feature", "record", "error")]
        self.assertEqual(listed, lines)

        data, lines, begin, records = made.pipe_of(events, records, features)
        lines += made.record_lines(records, begin)
        listed = [line for line in self.lines(data)
                  if line.split()[0] in ("layout", "attr", "feature", "record", "error")]
        self.assertEqual(listed, lines)

    def test_every_record_with_every_end(self):
        chance = random.Random(1)
        bits = (made.TID, made.TIME, made.ID, made.CPU, made.STREAM_ID, made.IDENTIFIER)
        for choice in range(64):
            kind = sum(bit for i, bit in enumerate(bits) if choice >> i & 1)
            kind |= chance.randrange(16) * made.ADDR & (made.ADDR | made.PERIOD) | made.IP
            for flags in (0, made.SAMPLE_ID_ALL):
                event = made.Event(sample_type=kind, flags=flags,
                                   ids=[chance.randrange(1, 1 << 64) for _ in range(3)])
                self.check([event], list(made.all_records(event, chance)))

    def test_attributes_of_every_size(self):
        chance = random.Random(2)
        for size in (0, *range(64, 176, 4)):
            events = [made.Event(sample_type=made.TID | made.IDENTIFIER, ids=range(1, count + 1),
                                 size=size, chance=chance) for count in (1, 0, 5)]
            self.check(events, list(made.all_records(events[0], chance)))

    def test_events_whose_records_have_different_ends(self):
        chance = random.Random(3)
        kinds = (made.TID | made.TIME, made.TID | made.TIME | made.CPU, made.TIME | made.STREAM_ID,
                 made.TID | made.TIME | made.PERIOD | made.IP | made.RAW)
        events = [made.Event(sample_type=kind | made.IDENTIFIER,
                             ids=[1000 * i + 64 * j + 1 for j in range(9)])
                  for i, kind in enumerate(kinds)]
        records = []
        for _ in range(6):
            for event in events:
                records += [one for one in made.all_records(event, chance)
                            if " id=0" not in one.line]
        # A record that perf made has the id 0, and the end of the first event.
        records.append(made.Record(3, made.u32(1, 2) + made.c_string(b"x"),
                                   "thread=1/2 name=78 exec=0",
                                   end=made.end_of(events[0], chance, zeros=True)))
        self.check(events, records)

    def test_features_and_a_header_without_them(self):
        chance = random.Random(4)
        event = made.Event(sample_type=made.TID, ids=[1])
        records = list(made.all_records(event, chance))
        features = {bit: chance.randbytes(chance.randrange(1, 40))
                    for bit in (2, 63, 64, 65, 127, 128, 200, 255)}
        features[9] = made.text_feature(b"GenuineIntel,6,151,2")
        self.check([event], records, features)
        self.check([event], records, header=72)
        self.check([event], records, gap=24)
        self.check([], [one for one in records if one.type >= 64])

    def test_the_model_of_the_processor(self):
        event = made.Event(ids=[1])
        cases = {b"GenuineIntel,6,78,3": "6,78,3", b"GenuineIntel,19,1,0": "19,1,0",
                 b"AuthenticAMD,25,97,2": None, b"GenuineIntel,6,78": None, b"": None,
                 b"GenuineIntel,6,78,": None, b"GenuineIntel,6,78,3,1": None,
                 b"GenuineIntel,6,,3": None, b"GenuineIntel,6,78,12345": None,
                 b"GenuineIntel,6,78,3x": None, b"GenuineIntel;6,78,3": None}
        for cpuid, model in cases.items():
            for data in (made.file_of([event], [made.info_of()],
                                      {9: made.text_feature(cpuid)})[0],
                         made.pipe_of([event], [made.info_of()],
                                      {9: made.text_feature(cpuid)})[0]):
                config = next(line for line in self.lines(data) if line.startswith("config"))
                self.assertEqual(fields_of(config).get("model"), model, cpuid)

    def test_auxtrace_info_of_every_length(self):
        event = made.Event(ids=[1], config=0xFFFF_FFFF_FFFF_FFFF)
        for words in range(19):
            record = made.info_of(min(words, 18))
            self.check([event], [record])
        for filter in (b"x", b"filter 0x1000/0x22@/a", b"1234567", b"12345678"):
            length = 18 + len(made.c_string(filter)) // 8
            self.check([event], [made.info_of(length, filter)])
        # A filter that is longer than its record.
        for words in (17, 18):
            broken = made.info_of(words, b"12345678")
            broken.line = broken.line.split(" kind=")[0] + " wrong=9"
            self.check([event], [broken])

    def test_the_decoder_configuration(self):
        def config(event_config, numbers=None, flags=made.SAMPLE_ID_ALL, **how):
            event = made.Event(ids=[1], config=event_config, flags=flags)
            data = made.file_of([made.Event(type=1), event], [made.info_of(numbers=numbers, **how)])
            return fields_of(next(line for line in self.lines(data[0])
                                  if line.startswith("config")))
        base = 0x100 | 0b1100  # ToPA, User, OS
        branch = 0x2000
        for bits, ctl in ((0, branch), (1, 0), (0x2001, branch), (0x400, 0x400 | branch),
                          (0x200 | 0x3C000, 0x200 | 0x3C000 | branch), (0x2, 0x2 | branch),
                          (0x10 | 0x20 | 0x1000, 0x1030 | branch), (0x800, 0x800 | branch),
                          (0xF780000, 0xF780000 | branch),
                          (1 << 31 | 1 << 55, 1 << 31 | 1 << 55 | branch)):
            self.assertEqual(int(config(bits)["ctl"]), base | ctl, hex(bits))
        self.assertEqual(int(config(1, flags=1 << 5)["ctl"]), 0x108)
        self.assertEqual(int(config(1, flags=1 << 4)["ctl"]), 0x104)
        self.assertEqual(int(config(1 << 40 | 0x100)["unknown"]), 1 << 40 | 0x100)
        # Masks in other places: TSC in 40, no compression in 41, MTC in 42, its period in 51:48,
        # CYC in 43.
        numbers = [8, 31, 1 << 30, 77, 1, 1 << 40, 1 << 41, 2, 0, 1, 1 << 42, 0xF << 48, 168, 2,
                   1 << 43, 24]
        found = config(1 | 1 << 40 | 1 << 41 | 1 << 42 | 0x5 << 48 | 1 << 43, numbers)
        self.assertEqual(int(found["ctl"]), base | 0x400 | 0x800 | 0x200 | 5 << 14 | 2)
        self.assertEqual(found["unknown"], "0")
        self.assertEqual(int(config(0xE03 | 0x3C000, [8] + [0] * 15)["ctl"]), base)
        self.assertEqual([found[name] for name in ("shift", "mult", "zero", "n", "d", "ratio",
                                                   "event_trace")],
                         ["31", str(1 << 30), "77", "168", "2", "24", "1"])
        for place, value in ((1, 64), (2, 1 << 32), (4, 0)):
            bad = numbers[:place] + [value] + numbers[place + 1:]
            self.assertEqual(config(0, bad)["mult"], "0")
        for place, value in ((12, 0), (12, 1 << 32), (13, 0), (13, 1 << 32)):
            bad = numbers[:place] + [value] + numbers[place + 1:]
            self.assertEqual((config(0, bad)["n"], config(0, bad)["d"]), ("0", "0"))
        self.assertEqual(config(0, numbers[:15] + [1 << 32])["ratio"], "0")

    # --------------------------------------------------------------------------- streams

    def pieces(self, records, **how):
        data = made.file_of([made.Event(ids=[1])], [made.info_of(**how), *records])[0]
        return [{name: int(value) for name, value in fields_of(line).items()}
                for line in self.lines(data) if line.startswith("piece")]

    def test_pieces_of_one_idx_are_joined_by_offset(self):
        chance = random.Random(5)
        for _ in range(20):
            wanted, records = {}, []
            for idx in chance.sample(range(1 << 32), chance.randrange(1, 6)):
                sizes = [8 * chance.randrange(1, 40) for _ in range(chance.randrange(1, 12))]
                at, begin = 0, []
                for size in sizes:
                    begin.append(at)
                    records.append(made.auxtrace(chance.randbytes(size - 1) + b"\x99", at, at * 3,
                                                 idx, idx // 2, idx // 3))
                    at += size
                wanted[idx] = list(zip(begin, sizes))
            chance.shuffle(records)
            found = self.pieces(records)
            self.assertEqual([(one["idx"], one["offset"], one["size"], one["reference"], one["tid"],
                               one["cpu"], one["gap"]) for one in found],
                             [(idx, at, size, at * 3, idx // 2, idx // 3, 0)
                              for idx, parts in sorted(wanted.items()) for at, size in parts])

    def test_gaps_and_padding_between_pieces(self):
        def joined(size, end, offset, first_offset=0):
            found = self.pieces([made.auxtrace(b"\x99" * (size - len(end)) + end, first_offset),
                                 made.auxtrace(b"\x99" * 8, offset)])
            return [(one["size"], one["gap"]) for one in found]
        self.assertEqual(joined(16, b"", 16), [(16, 0), (8, 0)])
        self.assertEqual(joined(16, b"", 17), [(16, 0), (8, 1)])
        self.assertEqual(joined(16, bytes(7), 9), [(9, 0), (8, 0)])
        self.assertEqual(joined(16, bytes(3), 13), [(13, 0), (8, 0)])
        self.assertEqual(joined(16, bytes(8), 8), [(16, 0), (8, 1)])  # more than padding
        self.assertEqual(joined(16, bytes(2), 13), [(16, 0), (8, 1)])  # no padding
        self.assertEqual(joined(16, b"", 32, 16), [(16, 1), (8, 0)])  # the begin is missing
        self.assertEqual(joined(16, bytes(16), 0), [(16, 0), (8, 1)])
        far = (1 << 64) - 8
        self.assertEqual(joined(16, bytes(7), far), [(16, 0), (8, 1)])

    def test_overlapping_snapshots(self):
        chance, counts = random.Random(6), collections.Counter()
        for with_tsc in (True, False):
            for _ in range(60):
                ring, tsc = b"", chance.randrange(1 << 56)
                for _ in range(30):
                    tsc += chance.randrange(1, 1 << 20)
                    ring += made.pt_segment(chance, tsc if with_tsc else None,
                                            chance.randrange(40, 400))
                # Each snapshot ends later than the one before it, and goes back a fixed distance.
                end, records, wanted = 0, [], []
                for _ in range(6):
                    new = chance.randrange(1, 1500)
                    last, end = end, min(end + new, len(ring))
                    begin = max(0, end - 2000)
                    data = ring[begin:end]
                    records.append(made.auxtrace(made.padded(data), idx=3))
                    wanted.append((begin, end, last))
                before = None  # where the part before it ends in the ring
                for found, (begin, end, last), record in zip(
                        self.pieces(records, snapshot=1), wanted, records):
                    start = begin + found["begin"]
                    if found["size"] == 0:
                        continue
                    if before is None:
                        self.assertEqual((found["begin"], found["gap"]), (0, 0))
                    else:
                        # Two windows have a PSB in common, so no byte is missing. Zeros after the
                        # last byte of the part before it may be PADs or new bytes.
                        self.assertEqual((before, found["gap"]), (start, 0))
                        self.assertEqual(ring[last:start], bytes(start - last))
                    self.assertIn(start + found["size"] - end, range(-7, 8))
                    before = start + found["size"]
                    counts[with_tsc] += 1
        self.assertGreater(min(counts[True], counts[False]), 150, counts)

    def test_snapshots_of_two_streams_do_not_mix(self):
        chance = random.Random(7)
        one = made.pt_segment(chance, 100, 64) + made.pt_segment(chance, 200, 60)
        two = made.pt_segment(chance, 100, 64) + made.pt_segment(chance, 300, 60)
        found = self.pieces([made.auxtrace(made.padded(one), idx=1),
                             made.auxtrace(made.padded(two), idx=2),
                             made.auxtrace(made.padded(one), idx=1)], snapshot=1)
        self.assertEqual([(part["idx"], part["begin"], part["gap"]) for part in found],
                         [(1, 0, 0), (1, len(made.padded(one)), 0), (2, 0, 0)])

    def test_compressed_records_are_reported(self):
        event = made.Event(ids=[1])
        for record in (made.Record(81, bytes(8), ""), made.Record(83, made.u64(3) + bytes(8), "")):
            data = made.file_of([event], [made.info_of(), record])[0]
            line = next(line for line in self.lines(data) if line.startswith("streams"))
            self.assertEqual(fields_of(line)["compressed"], "1")

    # --------------------------------------------------------------------------- errors

    def test_each_prefix_of_a_file_has_an_error_at_its_place(self):
        chance = random.Random(8)
        event = made.Event(sample_type=made.TID | made.TIME | made.IDENTIFIER, ids=[1, 2, 3])
        records = [made.info_of(), *made.all_records(event, chance)]
        data, _, begin = made.file_of([event], records,
                                      {9: made.text_feature(b"GenuineIntel,6,1,1")})
        places = [begin]
        for one in records:
            places.append(places[-1] + len(one.data))
        for size, line in enumerate(self.lines(data, "--prefixes")):
            found = {name: int(value) for name, value in fields_of(line).items()}
            self.assertEqual(found["size"], size)
            if size < 8:
                wanted = ERRORS["not_perf_data"], 0, 0
            elif size < 104:
                wanted = TRUNCATED, 0, 0
            elif size < begin:
                # The ids come first, then the attributes, then the records.
                place = 24 if size < begin else 40
                wanted = TRUNCATED, place, 0
            else:
                whole = sum(place <= size for place in places) - 1
                at = max(place for place in places if place <= size)
                wanted = (TRUNCATED if size < places[-1] else NONE,
                          at if size < places[-1] else 0, whole)
            self.assertEqual((found["why"], found["offset"], found["records"]), wanted, size)

    def test_each_prefix_of_a_pipe_ends_at_its_last_record(self):
        chance = random.Random(9)
        event = made.Event(sample_type=made.TID | made.TIME | made.IDENTIFIER, ids=[1, 2, 3])
        data, _, _, records = made.pipe_of([event], [made.info_of(),
                                                     *made.all_records(event, chance)],
                                           {9: made.text_feature(b"GenuineIntel,6,1,1")})
        places = [16]
        for one in records:
            places.append(places[-1] + len(one.data))
        for size, line in enumerate(self.lines(data, "--prefixes")):
            found = {name: int(value) for name, value in fields_of(line).items()}
            if size < 16:
                wanted = (ERRORS["not_perf_data"] if size < 8 else TRUNCATED), 0, 0
            else:
                at = max(place for place in places if place <= size)
                wanted = (NONE, 0) if size == at else (TRUNCATED, at)
                wanted += (places.index(at),)
            self.assertEqual((found["why"], found["offset"], found["records"]), wanted, size)

    def test_other_files(self):
        data = made.file_of([made.Event(ids=[1])], [made.info_of()])[0]
        self.assert_error(b"", "not_perf_data", 0)
        self.assert_error(b"PERFILE3" + data[8:], "not_perf_data", 0)
        self.assert_error(b"2ELIFREP" + data[8:], "big_endian", 0)
        self.assert_error(b"PERFFILE" + data[8:], "old_format", 0)
        for size in (0, 15, 17, 64, 73, 103, 105, 1 << 63):
            self.assert_error(data[:8] + made.u64(size) + data[16:], "bad_header", 8)

    def changed(self, place, *values):
        data = made.file_of([made.Event(ids=[1])], [made.info_of(), made.auxtrace(bytes(8))])[0]
        return data[:place] + made.u64(*values) + data[place + 8 * len(values):]

    def test_sections_that_cannot_be(self):
        huge = (1 << 64) - 1
        for step in (0, 1, 79):
            self.assert_error(self.changed(16, step), "bad_header", 16)
        self.assert_error(self.changed(32, 143), "bad_header", 32)
        for offset, size in ((huge, 144), (10_000, 144), (24, huge - 143), (24, 144_000)):
            self.assert_error(self.changed(24, offset, size), "truncated", 24)
        self.assert_error(self.changed(48, 0), "unfinished", 48)
        for offset, size in ((huge, 1), (huge, 2), (10_000, 8), (8, huge)):
            why, place = self.error(self.changed(40, offset, size))
            self.assertIn((why, place), ((TRUNCATED, 40), (8, 8), (TRUNCATED, 8)))
        # The attribute is larger than its entry, and its ids are after the file.
        for size in (1, 63, 129, 0xFFFFFFFF):
            data = bytearray(self.changed(0, 0x32454C4946524550))
            data[116:120] = made.u32(size)
            self.assert_error(bytes(data), "bad_header", 112)
        for offset, size in ((huge, 8), (10_000, 8), (104, huge), (104, 10_000)):
            self.assert_error(self.changed(112 + 128, offset, size), "truncated", 240)
        # Sections that overlap or contain each other are read as they are.
        self.assertEqual(self.error(self.changed(112 + 128, 0, 400)), (NONE, 0))

    def test_a_file_of_a_directory(self):
        event = made.Event(ids=[1])
        for version, wanted in ((0, (NONE, 0)), (1, (ERRORS["directory"], 72))):
            data = made.file_of([event], [made.info_of()], {24: made.u64(version)})[0]
            self.assertEqual(self.error(data), wanted)

    def test_features_after_the_end(self):
        event = made.Event(ids=[1])
        data = made.file_of([event], [made.info_of()], {9: b"1234"})[0]
        table = len(data) - 4 - 16
        for offset, size in (((1 << 64) - 1, 8), (10_000, 0), (0, 10_000), (8, (1 << 64) - 1)):
            changed = data[:table] + made.u64(offset, size) + data[table + 16:]
            line = next(line for line in self.lines(changed) if line.startswith("feature"))
            self.assertEqual((fields_of(line)["which"], fields_of(line)["wrong"]), ("9", "4"))
        all_bits = data[:72] + b"\xff" * 7 + data[79:]  # not the bit of directories
        all_bits = all_bits[:75] + b"\xfe" + all_bits[76:]
        self.assertTrue(self.lines(all_bits))
        for length in (65, 1 << 31):
            data = made.file_of([event], [made.info_of()], {9: made.u32(length) + bytes(64)})[0]
            self.assertFalse([line for line in self.lines(data) if line.startswith("cpuid")])

    def test_sizes_of_records_that_cannot_be(self):
        event = made.Event(sample_type=made.TID | made.TIME | made.IDENTIFIER, ids=[1])
        start = made.file_of([event], [made.info_of()])[0]

        def with_last(record):
            data, _, begin = made.file_of([event], [made.info_of(), record])
            return data, begin + made.info_of().size

        def record(data):
            one = made.Record(68, b"", "")
            one.data = data
            return one
        for size in range(8):
            data, at = with_last(record(made.u32(68) + made.u16(0, size)))
            self.assert_error(data, "bad_record_size", at)
        data, at = with_last(record(made.u32(68) + made.u16(0, 16)))
        self.assert_error(data, "truncated", at)
        for size in (1 << 63, (1 << 64) - 1, 9):
            data, at = with_last(made.auxtrace(bytes(8), size=size))
            self.assert_error(data, "truncated", at)
        for size in range(8, 48, 8):
            data, at = with_last(record(made.u32(71) + made.u16(0, size) + bytes(size - 8)))
            self.assert_error(data, "record_too_short", at)
        data, at = with_last(record(made.u32(66) + made.u16(0, 8)))
        self.assert_error(data, "record_too_short", at)
        data, at = with_last(record(made.u32(66) + made.u16(0, 12) + made.u32(0xFFFFFFFF)))
        self.assert_error(data, "truncated", at)
        # A record of the kernel is too short for its end, or for its type.
        for size in range(8, 32):
            data, at = with_last(record(made.u32(3) + made.u16(0, size) + bytes(size - 8)))
            self.assert_error(data, "record_too_short", at)
        self.assertEqual(self.error(start), (NONE, 0))
        least = {1: 32, 2: 16, 3: 8, 4: 24, 5: 24, 6: 24, 7: 24, 10: 64, 11: 24, 12: 8, 13: 8,
                 15: 8, 64: 64, 69: 8, 70: 8, 72: 32, 79: 24, 80: 8, 83: 8}
        for kind, size in least.items():
            for length in range(0, size + 8, 4):
                end = made.end_of(event, random.Random(1)) if kind < 64 else None
                one = made.Record(kind, bytes(length), "", end=end)
                line = next(line for line in self.lines(with_last(one)[0])
                            if line.startswith("record") and f" type={kind} " in line
                            and " kind=1 " not in line)
                self.assertEqual(" wrong=9" in line, length < size, line)

    def test_counts_in_records_that_are_too_large(self):
        event = made.Event(ids=[1])
        for kind, body in ((69, made.u64(1) + bytes(24)), (69, made.u64(1 << 60) + bytes(32)),
                           (69, made.u64((1 << 64) - 1) + bytes(32)), (83, made.u64(9) + bytes(8)),
                           (64, made.u32(1, 200) + bytes(100)), (64, made.u32(1, 8) + bytes(100))):
            data = made.file_of([event], [made.Record(kind, body, "")])[0]
            self.assertTrue([line for line in self.lines(data) if " wrong=9" in line], (kind, body))

    def test_ids_that_no_event_has(self):
        kinds = (made.TID, made.TID | made.TIME)
        events = [made.Event(sample_type=kind | made.IDENTIFIER, ids=[i + 1])
                  for i, kind in enumerate(kinds)]
        record = made.Record(3, made.u32(1, 2) + bytes(8) + made.u64(99), "")
        data, _, begin = made.file_of(events, [record])
        self.assert_error(data, "unknown_id", begin)
        events = [made.Event(sample_type=kind, ids=[i + 1]) for i, kind in enumerate(kinds)]
        self.assert_error(made.file_of(events, [record])[0], "unknown_id", begin)

    def test_a_file_with_ids_for_endless_searches_ends(self):
        events = [made.Event(sample_type=made.TID | made.IDENTIFIER, ids=range(1, 200_001)),
                  made.Event(sample_type=made.TIME | made.IDENTIFIER, ids=[300_000])]
        # All of them share a place in the memory of the reader.
        records = [made.Record(3, made.u32(1, 2) + bytes(16) + made.u64(200_000 - 64 * (i % 3000)),
                               "") for i in range(20_000)]
        self.assertEqual(self.error(made.file_of(events, records)[0])[0], ERRORS["too_many_ids"])

    def test_files_without_what_a_decoder_needs(self):
        def last(records, events=None):
            data = made.file_of([made.Event(ids=[1])] if events is None else events, records)[0]
            line = next(line for line in self.lines(data) if line.startswith("no config"))
            return int(fields_of(line)["why"])
        self.assertEqual(last([made.Record(68, b"", "")]), ERRORS["no_auxtrace_info"])
        self.assertEqual(last([made.info_of(kind=2)]), ERRORS["not_intel_pt"])
        self.assertEqual(last([made.info_of()], [made.Event(type=4)]), ERRORS["no_intel_pt_event"])
        self.assertEqual(last([made.info_of()], []), ERRORS["no_intel_pt_event"])

    # --------------------------------------------------------------------------- written files

    def test_files_that_ptspec_writes(self):
        for kind in ("untimed", "tsc", "mtc", "cyc", "filter"):
            subprocess.run([PERF_DATA_FILE, kind, "/bin/program", self.path], check=True)
            lines = self.run_list(self.path).decode().splitlines()
            types = [int(fields_of(line)["type"]) for line in lines if line.startswith("record")]
            self.assertEqual(types, [70, 3, 10, 68, 7, 3, 71, 71, 71, 71, 4, 4, 68])
            comms = [bytes.fromhex(fields_of(line)["name"]) for line in lines if " name=" in line]
            self.assertEqual(sorted(comms), [b"first", b"second-thread-o"])
            pieces = [fields_of(line) for line in lines if line.startswith("piece")]
            self.assertEqual([(one["idx"], one["tid"], one["gap"]) for one in pieces],
                             [("0", "100", "0"), ("0", "100", "0"), ("1", "101", "0"),
                              ("1", "101", "0")])
            config = fields_of(next(line for line in lines if line.startswith("config")))
            ctl = {"untimed": 0, "tsc": 0x400 | 0x800, "mtc": 0x600, "cyc": 0x402,
                   "filter": 0x400}[kind]
            self.assertEqual(int(config["ctl"]), 0x2108 | 3 << 14 | ctl, kind)
            timed = kind != "untimed"
            self.assertEqual((config["shift"], config["mult"], config["zero"]),
                             ("31", str(1 << 30), "1000000000") if timed else ("0", "0", "0"))
            self.assertEqual((config["n"], config["d"], config["ratio"]), ("160", "2", "20"))
            self.assertEqual(config["event_trace"], str(int(kind == "mtc")))
            self.assertFalse([line for line in lines if line.startswith("error")])

    def test_a_file_that_pt_record_writes(self):
        raw = self.folder / "raw"
        engine = "qemu" if shutil.which("qemu-x86_64") else "step"
        done = subprocess.run(
            [PT_RECORD, "--engine", engine, "--raw", raw, "-o", self.path, "true"],
            capture_output=True, text=True, timeout=300, check=False)
        if done.returncode == 2:
            self.skipTest("qemu-x86_64, or ptrace")
        lines = self.run_list(self.path).decode().splitlines()
        self.assertFalse([line for line in lines if line.startswith(("error", "no config"))])
        kept = sorted(raw.glob("*.pt"))
        self.assertEqual(len(kept), 1)
        self.assertEqual(self.run_list("--stream", 0, self.path),
                         made.padded(kept[0].read_bytes()))
        piece = fields_of(next(line for line in lines if line.startswith("piece")))
        self.assertEqual(piece["tid"], kept[0].name.split(".")[1])
        self.assertIn(b"true", [bytes.fromhex(fields_of(line)["name"]) for line in lines
                                if " name=" in line])
        executable = [fields_of(line) for line in lines if " prot=" in line]
        self.assertTrue(all(int(one["prot"]) & 4 for one in executable) and executable)

    # --------------------------------------------------------------------------- WinIPT

    def test_winipt(self):
        chance = random.Random(10)
        for count in range(5):
            data, lines = b"", []
            for _ in range(count):
                size = chance.choice((0, 1, 100, 4096))
                ring, at = chance.randbytes(size), chance.randrange(size + 1)
                thread, timing, mtc, ratio = (chance.randrange(1 << 64), chance.randrange(3),
                                              chance.randrange(16), chance.randrange(1000))
                lines.append(f"trace at={8 + len(data)} thread={thread} timing={timing} mtc={mtc} "
                             f"ratio={ratio} older={ring[at:].hex()} newer={ring[:at].hex()}")
                data += struct.pack("<QIIIII", thread, timing, mtc, ratio, at, size) + ring
            whole = struct.pack("<HHI", 1, 1, len(data)) + data
            self.assertEqual(self.lines(whole, "--winipt"), lines)
            self.assertEqual(self.lines(whole + b"after", "--winipt"), lines)
            zeros = struct.pack("<HHI", 1, 1, len(data) + 20) + data + bytes(20)
            self.assertEqual(self.lines(zeros, "--winipt"), lines)

    def test_broken_winipt(self):
        def error(data):
            last = self.lines(data, "--winipt")[-1]
            return int(fields_of(last)["why"]), int(fields_of(last)["offset"])
        head = struct.pack("<QIIIII", 7, 1, 3, 80, 4, 8)
        whole = struct.pack("<HHI", 1, 1, 36) + head + bytes(8)
        self.assertEqual(error(whole[:7]), (1, 0))
        self.assertEqual(error(b""), (1, 0))
        self.assertEqual(error(b"\2" + whole[1:]), (2, 0))
        self.assertEqual(error(whole[:2] + b"\0" + whole[3:]), (3, 2))
        for size in range(8, len(whole)):
            self.assertEqual(error(whole[:size]), (1, 8))
        for offset in (9, 1 << 31):
            broken = struct.pack("<HHIQIIIII", 1, 1, 36, 7, 1, 3, 80, offset, 8) + bytes(8)
            self.assertEqual(error(broken), (4, 8))
        for size in (9, 0xFFFFFFFF):
            broken = struct.pack("<HHIQIIIII", 1, 1, 36, 7, 1, 3, 80, 0, size) + bytes(8)
            self.assertEqual(error(broken), (1, 8))
        self.assertEqual(error(struct.pack("<HHI", 1, 1, 37) + whole[8:] + b"\1"), (5, 44))
        self.assertEqual(error(struct.pack("<HHI", 1, 1, 37) + whole[8:]), (1, 44))


if __name__ == "__main__":
    skips.main(sys.argv[:1])
