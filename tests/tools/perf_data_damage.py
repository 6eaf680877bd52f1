#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of damaged perf.data files: which records perf_data_list finds in them.

    perf_data_damage.py PERF_DATA_LIST

Each file is made of records whose places are known, and then damaged. With one damage, each record
that it does not touch must be found. With several, what is found is compared with a model of the
rules of detail/frame_reader.hpp.
"""

import functools
import pathlib
import random
import re
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
import skips  # noqa: E402
from folder import Folder  # noqa: E402

PERF_DATA_LIST = sys.argv[1]

TRUNCATED, BAD_SIZE, TOO_SHORT, BAD_TYPE = 4, 8, 9, 19
HEADER_ATTR, TRACING_DATA, COMPRESSED = 64, 66, 81
MAY_BE_EMPTY = (14, 68, 82)  # context switch, finished round and init


def is_known(kind, size):
    return (kind < 32 or 64 <= kind < 96) and (size > 8 or kind in MAY_BE_EMPTY)


class Model:
    """The records of `data[:end]` from `begin` on, of events whose only sample_type is TID."""

    def __init__(self, data, begin, end):
        self.data, self.begin, self.end = data, begin, end
        self.records, self.skipped, self.why = [], [], None
        self.has_odd = False
        self.read()

    @functools.lru_cache(maxsize=None)
    def frame(self, at):
        """(type, size, where it ends) or an error."""
        if self.end - at < 8:
            return TRUNCATED
        kind, _, size = struct.unpack_from("<IHH", self.data, at)
        if size < 8:
            return BAD_SIZE
        if size > self.end - at:
            return TRUNCATED
        after = 0
        if kind in (made.AUXTRACE, TRACING_DATA):
            if size < (48 if kind == made.AUXTRACE else 12):
                return TOO_SHORT
            after = struct.unpack_from("<Q" if kind == made.AUXTRACE else "<I", self.data,
                                       at + 8)[0]
        if after > self.end - at - size:
            return TRUNCATED
        return kind, size, at + size + after

    def is_usual(self, at):
        found = self.frame(at)
        return isinstance(found, tuple) and 0 < found[0] < 128

    @functools.lru_cache(maxsize=None)
    def record(self, at):
        found = self.frame(at)
        if not isinstance(found, tuple) or self.is_usual(at):
            return found
        after = found[2]
        is_cut = (self.end - after >= 8 and self.frame(after) == TRUNCATED and
                  0 < struct.unpack_from("<I", self.data, after)[0] < 128)
        return found if self.end - after < 8 or self.is_usual(after) or is_cut else BAD_TYPE

    def follows(self, found):
        """Whether a record, or the end, follows one."""
        if not 0 < found[0] < 128:
            return self.is_usual(found[2])
        return found[2] == self.end or isinstance(self.record(found[2]), tuple)

    def begins(self, at, past):
        """Whether records begin at a place, and go on past another."""
        for count in range(64):
            if count >= 3 and at > past:
                return True
            if at == self.end:
                return count >= (2 if self.has_odd else 1)
            found = self.record(at)
            if not isinstance(found, tuple):
                return False
            kind, size, at = found
            is_odd = size % 8 and kind not in (COMPRESSED, 83)
            if count < 3 and (is_odd or not is_known(kind, size)):
                return False
        return True

    def search(self, at, limit, past):
        step = 1 if self.has_odd else 8
        first = at + 1
        while (first - self.begin) % step:
            first += 1
        return next((place for place in range(first, limit, step) if self.begins(place, past)),
                    limit)

    def is_readable(self, at, kind, size):
        if kind == HEADER_ATTR:
            of = size - 8 >= 64 and struct.unpack_from("<I", self.data, at + 12)[0]
            return of is not False and (of == 0 or 64 <= of <= size - 8)
        return kind >= 64 or size >= 16

    def lose(self, why, at, end):
        self.why = self.why or (why, at)
        self.skipped.append((at, end))

    def read(self):
        at = self.begin
        while at < self.end:
            found = self.record(at)
            if isinstance(found, tuple) and not self.follows(found):
                other = self.search(at, found[2], found[2])
                if other != found[2]:
                    self.lose(BAD_SIZE, at, other)
                    at = other
                    continue
            elif not isinstance(found, tuple):
                other = self.search(at, self.end, 0)
                self.lose(found, at, other)
                at = other
                continue
            kind, size, end = found
            self.has_odd = self.has_odd or ((end - self.begin) % 8 != 0 and self.follows(found))
            if self.is_readable(at, kind, size):
                self.records.append((at, end))
            else:
                self.lose(TOO_SHORT, at, end)
            at = end


class Damage(Folder):
    event = made.Event(sample_type=made.TID, ids=[1])

    def list_all(self, files):
        """Of each file, its records, what was skipped, and the pieces of its streams."""
        paths = [self.file(f"{i}.data", data) for i, data in enumerate(files)]
        done = subprocess.run([PERF_DATA_LIST, "--places", *map(str, paths)], capture_output=True,
                              text=True, timeout=300, check=True)
        out = []
        for part in done.stdout.split("file\n")[1:]:
            numbers = [(line.split()[0], *map(int, re.findall(r"=(\d+)", line)))
                       for line in part.splitlines()]
            out.append(([one[1:] for one in numbers if one[0] == "record"],
                        next(one[1:] for one in numbers if one[0] == "skipped"),
                        [one[1:] for one in numbers if one[0] == "piece"]))
        return out

    def make(self, chance, count=30, odd=False):
        """A file, and where its records begin."""
        pool = [one for one in made.all_records(self.event, chance)
                if is_known(one.type, one.size) and
                one.type not in (made.AUXTRACE, made.SAMPLE, COMPRESSED)]
        records = [made.info_of()]
        offset = 0
        while len(records) < count:
            pick = chance.randrange(4)
            if pick == 0:
                trace = made.padded(made.pt_segment(chance, 5, chance.randrange(600)))
                records.append(made.auxtrace(trace, offset=offset))
                offset += len(trace)
            elif odd and pick == 1:
                records.append(made.Record(COMPRESSED, chance.randbytes(chance.randrange(1, 60)),
                                           ""))
            else:
                records.append(chance.choice(pool))
        data, _, begin = made.file_of([self.event], records)
        places = [begin]
        for one in records:
            places.append(places[-1] + len(one.data))
        return data, records, places

    def test_files_without_damage(self):
        chance = random.Random(1)
        files = [self.make(chance, odd=i % 2 == 0) for i in range(40)]
        for (data, _, places), (found, skipped, _) in zip(files, self.list_all(
                [one[0] for one in files])):
            self.assertEqual(found, list(zip(places, places[1:])))
            self.assertEqual(skipped, (0, 0, 0, 0, 0))

    def hurt(self, chance, data, records, places, which):
        """Damages one record, from its begin on: returns the bytes."""
        at, end = places[which:which + 2]
        is_trace = records[which].type == made.AUXTRACE
        kind = chance.randrange(7)
        bytes_of = bytearray(data)
        if kind == 0:
            bytes_of[at:at + 8] = chance.randbytes(8)
        elif kind == 1:
            bytes_of[at + 6:at + 8] = chance.randbytes(2)
        elif kind == 2:
            bytes_of[at + chance.choice((4, 5, 6, 7))] ^= 1 << chance.randrange(8)
        elif kind == 3 and is_trace:
            bytes_of[at + 8:at + 16] = made.u64(chance.randrange(1 << chance.randrange(4, 64)))
        elif kind == 4:
            bytes_of[at:end] = bytes(end - at)
        elif kind == 5:
            bytes_of[at:end] = chance.randbytes(end - at)
        else:
            bytes_of[at:at + 8] = bytes(8)
        return bytes(bytes_of)

    def test_with_one_damage_all_other_records_are_found(self):
        chance = random.Random(2)
        files, about = [], []
        while len(files) < 1500:
            data, records, places = self.make(chance, chance.randrange(5, 40))
            which = chance.randrange(len(records))
            data = self.hurt(chance, data, records, places, which)
            now = Model(data, places[0], places[-1]).frame(places[which])
            # With such a size nothing is wrong, but that records are missing.
            if isinstance(now, tuple) and now[2] in places[which + 2:]:
                continue
            files.append(data)
            about.append((records, places, which))
        for (records, places, which), (found, skipped, pieces) in zip(about, self.list_all(files)):
            all_of_it = list(zip(places, places[1:]))
            others = [one for i, one in enumerate(all_of_it) if i != which]
            lost = [one for one in others if one not in found]
            self.assertEqual(lost, [], (all_of_it[which], found[:which + 3]))
            # What is found besides is a part of the damaged record, and all else is counted.
            more = [one for one in found if one not in others]
            first, end = all_of_it[which]
            self.assertTrue(all(first <= one[0] and one[1] <= end for one in more), more)
            self.assertEqual(skipped[0], end - first - sum(one[1] - one[0] for one in more))
            traces = [place for one, place in zip(records, places) if one.type == made.AUXTRACE]
            self.assertEqual([one for one in traces if one != places[which]
                              and one not in [piece[0] for piece in pieces]], [])

    def test_with_any_damage_the_records_are_those_of_the_model(self):
        chance = random.Random(3)
        files, models = [], []
        for i in range(1500):
            data, records, places = self.make(chance, chance.randrange(3, 50), odd=i % 3 == 0)
            end = places[-1]
            for _ in range(chance.randrange(1, 5)):
                how = chance.randrange(6)
                at = chance.randrange(places[0], end)
                size = chance.randrange(1, 200)
                if how < 3:
                    data = self.hurt(chance, data, records, places, chance.randrange(len(records)))
                elif how == 3:
                    data = data[:at] + bytes(len(data[at:at + size])) + data[at + size:]
                elif how == 4:  # bytes are missing
                    data = data[:at] + data[at + size:end] + bytes(min(size, end - at)) + data[end:]
                else:  # bytes are repeated
                    data = data[:at] + data[at - size // 8 * 8:end - size // 8 * 8] + data[end:]
            files.append(data)
            models.append(Model(data, places[0], places[-1]))
        for data, model, (found, skipped, _) in zip(files, models, self.list_all(files)):
            self.assertEqual(found, model.records)
            self.assertEqual(skipped[0], sum(last - first for first, last in model.skipped))
            if model.skipped:
                self.assertEqual(skipped[1], model.skipped[0][0])
                self.assertEqual(skipped[3:], model.why)
            else:
                self.assertEqual(skipped, (0, 0, 0, 0, 0))

    def test_records_in_a_trace_are_none(self):
        # A trace may have any bytes, also those of records.
        chance = random.Random(4)
        inside = b"".join(made.Record(3, made.u32(1, 1) + bytes(8), "").data for _ in range(40))
        trace = made.PSB + inside + made.pt_segment(chance, 5, 200)
        last = [made.Record(68, b"", "")] * 3
        records = [made.info_of(), made.auxtrace(made.padded(trace)), made.Record(68, b"", ""),
                   *last]
        data, _, begin = made.file_of([self.event], records)
        at = begin + len(records[0].data) + len(records[1].data)
        files = [data, data[:at + 6] + bytes(2) + data[at + 8:]]
        whole, hurt = self.list_all(files)
        self.assertEqual((len(whole[0]), whole[1]), (6, (0, 0, 0, 0, 0)))
        self.assertEqual(hurt[0], [one for one in whole[0] if one[0] != at])
        self.assertEqual(hurt[1], (8, at, 0, BAD_SIZE, at))

    def test_the_work_is_proportional_to_the_size(self):
        # Each eight bytes begin 63 records, and then something else.
        one = made.u32(3) + made.u16(0, 16)
        block = one * 126 + bytes(16)
        times = []
        for count in (1 << 12, 1 << 14):
            inside = block * count
            for damaged in (made.auxtrace(inside), made.auxtrace(inside, size=1 << 60)):
                data = made.file_of([self.event], [damaged, made.Record(0, bytes(3), "")])[0]
                begin = time.process_time()
                started = time.monotonic()
                self.list_all([data])
                times.append(max(time.monotonic() - started, time.process_time() - begin))
        # 16 million bytes; quadratic work takes hours.
        self.assertLess(max(times), 120, times)


if __name__ == "__main__":
    skips.main(sys.argv[:1])
