#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of file/perf_data/: perf_data_list lists files as they were made.

    perf_data_list.py PERF_DATA_LIST PERF_DATA_FILE PT_RECORD

Recorded files are read from ../shared/perfdata beside the source tree, or PTSPEC_PERF_DATA; without
them the tests that need them are skipped.
"""

import pathlib
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
import skips  # noqa: E402
import traces  # noqa: E402
from folder import Folder  # noqa: E402
from traces import recorded_perf_data as recorded  # noqa: E402

PERF_DATA_LIST, PERF_DATA_FILE, PT_RECORD = sys.argv[1:4]

NONE, TRUNCATED, SHORT = 0, 4, 9
ERRORS = dict(not_perf_data=1, truncated=4, bad_record_size=8, record_too_short=9,
              too_many_ids=12)


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

    def test_bpf_programs(self):
        programs = [(7, [(0xFFFFFFFFC0001000, b"first"), (0xFFFFFFFFC0002000, b"2nd")]),
                    (9, [(0xFFFFFFFFC0003000, b"")]), (8, [])]
        for size in (208, 224, 232, 256):
            feature = made.bpf_feature(*(made.bpf_program(number, functions, size)
                                         for number, functions in programs))
            for make in (made.file_of, made.pipe_of):
                records = [made.Record(68, b"", "")]
                path = self.file("perf.data", make([made.Event()], records, {25: feature})[0])
                found = [fields_of(line) for line in self.lines(path.read_bytes())
                         if line.startswith("bpf_program")]
                self.assertEqual(
                    [(int(one["number"]), one["code"], one["functions"]) for one in found],
                    [(number, b"".join(code for _, code in functions).hex(),
                      "".join(f"{at}/{len(code)}/{len(code)}," for at, code in functions))
                     for number, functions in programs], size)

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

    # --------------------------------------------------------------------------- streams

    def pieces(self, records, **how):
        data = made.file_of([made.Event(ids=[1])], [made.info_of(**how), *records])[0]
        return [{name: int(value) for name, value in fields_of(line).items()}
                for line in self.lines(data) if line.startswith("piece")]

    def test_snapshots_of_two_streams_do_not_mix(self):
        chance = random.Random(7)
        one = made.pt_segment(chance, 100, 64) + made.pt_segment(chance, 200, 60)
        two = made.pt_segment(chance, 100, 64) + made.pt_segment(chance, 300, 60)
        found = self.pieces([made.auxtrace(made.padded(one), idx=1),
                             made.auxtrace(made.padded(two), idx=2),
                             made.auxtrace(made.padded(one), idx=1)], snapshot=1)
        self.assertEqual([(part["idx"], part["begin"], part["gap"]) for part in found],
                         [(1, 0, 0), (1, len(made.padded(one)), 0), (2, 0, 0)])

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
                data, at = with_last(one)
                if kind == 64 and length < size:  # it names the events of the others
                    self.assert_error(data, "record_too_short", at)
                    continue
                line = next(line for line in self.lines(data)
                            if line.startswith("record") and f" type={kind} " in line
                            and " kind=1 " not in line)
                self.assertEqual(" wrong=9" in line, length < size, line)

    def test_a_file_with_ids_for_endless_searches_ends(self):
        events = [made.Event(sample_type=made.TID | made.IDENTIFIER, ids=range(1, 200_001)),
                  made.Event(sample_type=made.TIME | made.IDENTIFIER, ids=[300_000])]
        # All of them share a place in the memory of the reader.
        records = [made.Record(3, made.u32(1, 2) + bytes(16) + made.u64(200_000 - 64 * (i % 3000)),
                               "") for i in range(20_000)]
        self.assertEqual(self.error(made.file_of(events, records)[0])[0], ERRORS["too_many_ids"])

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
                   "filter": 0x400 | 1 << 32}[kind]  # ADDR0_CFG: a range that is traced
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

if __name__ == "__main__":
    skips.main(sys.argv[:1])
