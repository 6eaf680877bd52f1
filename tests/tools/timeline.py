#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of timeline as a program: the data of its page against the golden listings, hostile names
and bytes, limits, options and exit status.

    timeline.py TIMELINE

timeline_browser.py tests the page in a browser.
"""

import collections
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import timeline_page  # noqa: E402
import skips  # noqa: E402
import traces  # noqa: E402
from tool_checks import ToolChecks  # noqa: E402

TIMELINE = sys.argv[1]

PSB = bytes.fromhex("0282" * 8)
# PSB, CBR 24, PSBEND, MODE.Exec, TIP.PGE to 0x1000, TNT of three branches
SMALL = PSB + bytes.fromhex("02031800" "0223" "9901" "71001000000000" "0e")
BAD = bytes.fromhex("02ff")
MOST_LISTED = 6000

SCRATCH = tempfile.TemporaryDirectory()
TRACE = pathlib.Path(SCRATCH.name, "small.pt")
TRACE.write_bytes(SMALL)


def run(*arguments, data=b""):
    done = subprocess.run([TIMELINE, *map(os.fspath, arguments)], input=data, capture_output=True,
                          timeout=300)
    return done.returncode, done.stdout, done.stderr.decode()


def data_of(*arguments, data=b"", status=0):
    """The data of the page that a command line writes to standard output."""
    got, page, said = run("-o", "-", *arguments, data=data)
    assert got == status, (got, said)
    return timeline_page.data_of(page.decode())


def tracing_of(packets):
    """The changes of tracing in a trace without overflow: (offset, 1 for on). An asynchronous
    event begins with its FUP."""
    now, fup, in_psb, psb_ip = None, None, False, False
    for offset, packet, fields in packets:
        new, at = now, offset
        if packet == "psb":
            in_psb, psb_ip = True, False
        elif packet == "psbend":
            in_psb, new = False, int(psb_ip)
        elif packet == "fup":
            psb_ip = psb_ip or (in_psb and fields["ip"] != "-")
            fup = None if in_psb else offset
        elif packet == "tip.pgd":
            new, at, fup = 0, offset if fup is None else fup, None
        elif packet in ("tip", "tip.pge", "tnt.8", "tnt.64"):
            new, fup = 1, None
        if new != now:
            yield at, new
        now = new


def timed_group(tsc, odd):
    """160 bytes: PSB, TSC, CBR, FUP, PSBEND, and TNTs up to the end."""
    return (PSB + b"\x19" + tsc.to_bytes(7, "little") + bytes((2, 3, 24 + odd, 0))
            + bytes.fromhex("7d001000000000" "0223") + b"\x0e" * 123)


class EveryTool(ToolChecks, unittest.TestCase):
    TOOL = TIMELINE
    PRINTS = [(["-o", "-", "-"], SMALL), (["-o", "-", str(TRACE)], b"")]
    WRITES = [[str(TRACE), "-o"]]
    READS = [["-o", "-"]]
    READS_STDIN = [["-o", "-", "-"]]


class Golden(unittest.TestCase):
    """The totals and the slices of recorded traces."""

    # event type -> the packet that it has in a trace without damage and overflow
    PACKETS = {"enabled": "tip.pge", "paging": "pip", "vmcs": "vmcs", "psb": "psbend",
               "ptwrite": "ptw", "frequency": "cbr", "overflow": "ovf", "maintenance": "mnt",
               "trace_stop": "stop"}

    def test_traces_without_damage(self):
        tested = 0
        for name, data, listing, sync in traces.all_traces():
            lines = timeline_page.packets_of(listing)
            if not sync or name.startswith(("bad-", "libipt-", "memgaze")) or len(data) < 200:
                continue
            if name == "lldb-core51":  # its last byte is a TNT after TIP.PGD, which is damage
                continue
            stream = data_of("-", data=data)["streams"][0]
            counts = collections.Counter(packet for _, packet, _ in lines)
            with self.subTest(name):
                self.assertEqual(stream["packets"], dict(counts))
                self.assertEqual(stream["counts"].get("damage", 0), 0)
                for event, packet in self.PACKETS.items():
                    self.assertEqual(stream["counts"].get(event, 0), counts[packet], event)
                ends = sum(stream["counts"].get(e, 0) for e in ("disabled", "async_disabled"))
                self.assertEqual(ends, counts["tip.pgd"])
                branches = sum(int(fields["n"]) for _, packet, fields in lines
                               if packet.startswith("tnt"))
                if not counts["ovf"]:
                    self.assertEqual(stream["conditional"], branches)
                    self.assertEqual(stream["counts"].get("indirect_branch", 0)
                                     + stream["counts"].get("async_branch", 0)
                                     + stream["counts"].get("resumed", 0), counts["tip"])
                    self.compare_slices(stream, lines)
            tested += 1
        self.assertGreater(tested, 12 if traces.are_there() else 4)

    def compare_slices(self, stream, lines):
        """The slice of each packet follows from its offset."""
        wanted = {name: [0] * stream["slices"] for name in ("conditional", "psb", "frequency")}
        packets = {"psbend": "psb", "cbr": "frequency"}
        for offset, packet, fields in lines:
            place = offset // stream["slice_bytes"]
            if packet.startswith("tnt"):
                wanted["conditional"][place] += int(fields["n"])
            elif packet in packets:
                wanted[packets[packet]][place] += 1
        for name, values in wanted.items():
            found = timeline_page.decode(stream["columns"].get(name, [-stream["slices"]]))
            self.assertTrue(found == values, name)  # a message of the difference takes minutes
        for name, packed in stream["columns"].items():
            self.assertEqual(len(timeline_page.decode(packed)), stream["slices"], name)
        self.assertEqual(stream["slices"], -(-stream["bytes"] // stream["slice_bytes"]))

    def test_listed_events(self):
        data, listing = timeline_page.recorded("google-m7-piped-idx0")
        lines = timeline_page.packets_of(listing)
        page = data_of("-", data=data)
        events = timeline_page.events_of(page, 0)
        pips = [(offset, fields) for offset, packet, fields in lines if packet == "pip"]
        found = [event for event in events if event["type"] == "paging"]
        self.assertEqual([event["offset"] for event in found], [offset for offset, _ in pips])
        for event, (_, fields) in zip(found, pips):
            self.assertIn(f"cr3={fields['cr3']}", event["text"])
        enabled = next(event for event in events if event["type"] == "enabled")
        first = next(fields for _, packet, fields in lines if packet == "tip.pge")
        if first["ip"] != "-":
            self.assertEqual(f"0x{enabled['ip']}", first["ip"])
        values = [int(fields["cr3"], 16) | int(fields["nr"]) for _, fields in pips]
        listed = list(dict.fromkeys(values))
        self.assertEqual([int(value, 16) for value in page["streams"][0]["contexts"]], listed)
        changes = [value for n, value in enumerate(values) if n == 0 or values[n - 1] != value]
        context = page["streams"][0]["states"]["context"]
        self.assertEqual([listed[n - 1] for n in timeline_page.decode(context["value"])], changes)

    def test_the_context_of_slices(self):
        """A slice has the context after its last PIP."""
        data, listing = timeline_page.recorded("google-m7-piped-idx0")
        pips = [(offset, int(fields["cr3"], 16) | int(fields["nr"])) for offset, packet, fields
                in timeline_page.packets_of(listing) if packet == "pip"]
        for times in (1, 12, 40):  # with more bytes, slices are merged
            stream = data_of("-", data=data * times)["streams"][0]
            values = [0] * stream["slices"]
            for repetition in range(times):
                for offset, value in pips:
                    values[(repetition * len(data) + offset) // stream["slice_bytes"]] = value
            for n in range(1, len(values)):
                values[n] = values[n] or values[n - 1]
            pairs = iter(stream["slice_contexts"])
            listed = [0, *(int(value, 16) for value in stream["contexts"])]
            found = [listed[number] for number, count in zip(pairs, pairs) for _ in range(count)]
            self.assertTrue(found == values, times)

    def test_times_without_constants_are_those_of_the_TSCs(self):
        data, listing = timeline_page.recorded("google-m7-piped-idx0")
        tsc, wanted = 0, []
        for _, packet, fields in timeline_page.packets_of(listing):
            if packet == "tsc":
                tsc = int(fields["tsc"], 16)
            elif packet == "psbend":
                wanted.append(tsc)
        page = data_of("-", data=data)
        stream = page["streams"][0]
        first = int(stream["first_time"])
        self.assertEqual((stream["timed"], first), (1, wanted[0]))
        self.assertEqual(first + stream["ticks"], tsc)
        found = [first + event["time"] for event in timeline_page.events_of(page, 0)
                 if event["type"] == "psb"]
        self.assertEqual(found, wanted)

    def test_times_from_MTCs(self):
        data, _ = timeline_page.recorded("google-m7-piped-idx0")
        options = ["--mtc-freq", "3", "--tsc-ratio", "168/2"]
        once, again = data_of("-", data=data), data_of(*options, "-", data=data)
        self.assertEqual(again["tsc_ratio"], 1)
        few, many = (len(set(timeline_page.undiff(page["streams"][0]["columns"]["time"])))
                     for page in (once, again))
        self.assertGreater(many, 10 * few)

    def test_cycles(self):
        data, listing = timeline_page.recorded("dr-hello-dyn")
        cycles = sum(int(fields["value"], 16) for _, packet, fields
                     in timeline_page.packets_of(listing) if packet == "cyc")
        stream = data_of("-", data=data)["streams"][0]
        self.assertEqual(stream["cycles"], cycles)
        self.assertEqual(sum(timeline_page.decode(stream["columns"]["cycles"])), cycles)

    def test_tracing(self):
        """The changes of tracing, from the packets of the listing, and the traced bytes."""
        for name in ("dr-hello-dyn", "keeper-traced", "xdc-unzip", "google-m7-cpu0"):
            data, listing = timeline_page.recorded(name)
            wanted = [change for change in tracing_of(timeline_page.packets_of(listing))]
            stream = data_of("-", data=data)["streams"][0]
            state = stream["states"]["tracing"]
            found = list(zip(timeline_page.undiff(state["offset"]),
                             timeline_page.decode(state["value"])))
            self.assertEqual(state["count"], len(wanted), name)
            self.assertEqual(found, wanted[:MOST_LISTED], name)
            ends = [offset for offset, _ in wanted[1:]] + [len(data)]
            traced = sum(end - begin for (begin, on), end in zip(wanted, ends) if on)
            self.assertEqual(sum(timeline_page.decode(stream["columns"]["on_bytes"])), traced)
            if "time" in state:
                times = timeline_page.undiff(state["time"])
                ticks = sum(end - begin for begin, end, (_, on)
                            in zip(times, [*times[1:], stream["ticks"]], wanted) if on)
                found = sum(timeline_page.decode(stream["columns"]["on_ticks"]))
                self.assertAlmostEqual(found, ticks, delta=stream["ticks"] // 100)

    def test_damaged_traces(self):
        tested = 0
        for name, data, listing, _ in traces.all_traces():
            if not name.startswith("bad-"):
                continue
            errors = int(re.search(r" errors=(\d+) ", listing.rstrip("\n").rsplit("\n", 1)[1])[1])
            skipped = sum(map(int, re.findall(r"(?:sync|resync|nosync) skipped=(\d+)", listing)))
            status, page, said = run("-o", "-", "-", data=data)
            with self.subTest(name):
                if "!nosync\n" in listing:
                    self.assertEqual(status, 3, said)
                    continue
                stream = timeline_page.data_of(page.decode())["streams"][0]
                damage = stream["counts"].get("damage", 0)
                self.assertEqual(status, 1 if damage else 0, said)
                self.assertGreaterEqual(damage, errors)
                self.assertEqual(stream["skipped"], skipped)
                counts = collections.Counter(p for _, p, _ in timeline_page.packets_of(listing))
                self.assertEqual(stream["packets"], dict(counts))
            tested += 1
        self.assertGreater(tested, 5)

    def test_several_traces(self):
        names = ["dr-hello-dyn", "xdc-unzip", "google-m7-cpu0"]
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in names]
            for path in paths:
                path.write_bytes(timeline_page.recorded(path.name)[0])
            page = data_of(*paths, "--title", "three")
            self.assertEqual(page["title"], "three")
            self.assertEqual([s["name"] for s in page["streams"]], list(map(str, paths)))
            for path, together in zip(paths, page["streams"]):
                alone = data_of(path)["streams"][0]
                self.assertEqual(alone["counts"], together["counts"])


class Hostile(unittest.TestCase):
    def test_names_and_titles(self):
        name = "</script><script>alert(1)</script><!--\"'&\\\t\u2028\x7f.pt"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name.replace("/", "\u2215"))
            path.write_bytes(SMALL)
            for options in ([], ["--title", name]):
                status, page, said = run("-o", "-", *options, path)
                self.assertEqual((status, said), (0, ""))
                found = timeline_page.Elements(page.decode())
                self.assertEqual(found.names.count("script"), 2)
                self.assertEqual(found.names.count("title"), 1)
                data = timeline_page.data_of(page.decode())
                self.assertEqual(data["streams"][0]["name"], str(path))
                self.assertEqual(data["title"], name if options else f"Trace {path.name}")
            raw = os.fsencode(folder) + b"/\xff\xfe<b>.pt"
            pathlib.Path(os.fsdecode(raw)).write_bytes(SMALL)
            done = subprocess.run([TIMELINE, "-o", "-", raw], capture_output=True)
            data = timeline_page.data_of(done.stdout.decode())
            self.assertTrue(data["streams"][0]["name"].endswith("/\ufffd\ufffd<b>.pt"))

    def test_the_page_loads_nothing(self):
        page = run("-o", "-", TRACE)[1].decode()
        for attribute, value in timeline_page.Elements(page).attributes:
            self.assertNotIn(attribute, ("src", "action", "data", "srcset"))
            if attribute == "href":
                self.assertEqual(value, "data:,")
        for text in ("http:", "https:", "url(", "@import", "fetch(", "XMLHttpRequest", "eval(",
                     "innerHTML", "import(", "WebSocket"):
            self.assertNotIn(text, page)
        self.assertIn("default-src 'none'", page)

    def test_random_bytes(self):
        random.seed(7)
        for _ in range(20):
            pieces = [PSB + random.randbytes(random.randrange(400)) for _ in range(40)]
            status, page, _ = run("-o", "-", "--mtc-freq", "3", "--tsc-ratio", "168/2", "-",
                                  data=b"".join(pieces))
            self.assertIn(status, (0, 1))
            page_data = timeline_page.data_of(page.decode())
            stream = page_data["streams"][0]
            for name in ("conditional", "indirect", "on_bytes"):
                values = timeline_page.decode(stream["columns"][name])
                self.assertEqual(len(values), stream["slices"])
                if name == "on_bytes":
                    self.assertLessEqual(max(values), stream["slice_bytes"])
            if stream["timed"]:
                self.assertLessEqual(sum(timeline_page.decode(stream["columns"]["time"])),
                                     stream["ticks"])
                self.assertLessEqual(sum(timeline_page.decode(stream["columns"]["on_ticks"])),
                                     stream["ticks"])
            for event in timeline_page.events_of(page_data, 0):
                self.assertLessEqual(event["offset"], stream["bytes"])

    def test_a_wrong_TSC_does_not_stretch_the_time(self):
        """Each group of packets is ten slices long, and has the time of its TSC. Slices of a wrong
        time have that of the next group."""
        first, step = 1 << 40, 50
        times = [first + step * (n // 2) for n in range(40)]
        for wrong in (None, 1 << 54, 3):
            some, wanted = list(times), list(times)
            if wrong:
                some[20], wanted[20] = wrong, times[21]
            data = b"".join(timed_group(tsc, n % 2) for n, tsc in enumerate(some))
            stream = data_of("-", data=data)["streams"][0]
            self.assertEqual((int(stream["first_time"]), stream["ticks"]), (first, 19 * step))
            self.assertEqual((stream["slice_bytes"], stream["times_back"]), (16, int(bool(wrong))))
            found = [first + time for time in timeline_page.undiff(stream["columns"]["time"])]
            self.assertEqual(found, [time for time in wanted for _ in range(10)])
            traced = timeline_page.decode(stream["columns"]["on_ticks"])
            for n, time in enumerate(traced):
                self.assertLessEqual(time, [*found, times[-1]][n + 1] - found[n])
            for state in stream["states"].values():
                for time in timeline_page.undiff(state["time"]):
                    self.assertLessEqual(time, stream["ticks"])

    def test_merged_slices_begin_with_their_first_event(self):
        times = [(1 << 40) + 50 * n for n in range(8000)]
        stream = data_of("-", data=b"".join(timed_group(tsc, 0) for tsc in times))["streams"][0]
        self.assertEqual(stream["slice_bytes"], 64)
        found = timeline_page.undiff(stream["columns"]["time"])
        wanted = [50 * (64 * n // 160) for n in range(stream["slices"])]
        self.assertTrue(found == wanted)

    def test_events_are_listed_up_to_a_limit(self):
        groups = {"ptwrite": "021200000000", "transactions": "9920",
                  "power": "02a20000000000", "other": "02c388" + "00" * 8,
                  "frequency": "02031900"}
        count = MOST_LISTED + 1000
        data = SMALL
        for text in groups.values():
            data += bytes.fromhex(text) * count
        status, page, said = run("-o", "-", "-", data=data)
        self.assertIn(status, (0, 1), said)
        self.assertLess(len(page), 5 << 20)
        page_data = timeline_page.data_of(page.decode())
        listed = collections.Counter(event["lane"] for event
                                     in timeline_page.events_of(page_data, 0))
        self.assertLessEqual(max(listed.values()), MOST_LISTED)
        self.assertEqual(listed["ptwrite"], MOST_LISTED)
        stream = page_data["streams"][0]
        self.assertEqual(stream["counts"]["ptwrite"], count)
        self.assertEqual(sum(timeline_page.decode(stream["columns"]["ptwrite"])), count)
        path = pathlib.Path(SCRATCH.name, "many.pt")
        path.write_bytes(data)
        page_data = data_of(*[path] * 3, status=status)
        listed = collections.Counter(event["lane"] for event
                                     in timeline_page.events_of(page_data, 2))
        self.assertEqual(listed["ptwrite"], MOST_LISTED // 3)

    def test_a_large_trace_makes_a_small_page(self):
        data, listing = timeline_page.recorded("xdc-mruby")
        times = 14  # 10 MB
        status, page, said = run("-o", "-", "-", data=data * times)
        self.assertEqual((status, said), (0, ""))
        self.assertLess(len(page), 5 << 20)
        stream = timeline_page.data_of(page.decode())["streams"][0]
        self.assertEqual(stream["counts"]["enabled"], times * listing.count(" tip.pge "))
        for column, count in (("indirect", stream["counts"]["indirect_branch"]),
                              ("conditional", stream["conditional"]),
                              ("tracing", stream["counts"]["enabled"]
                               + stream["counts"]["disabled"])):
            self.assertEqual(sum(timeline_page.decode(stream["columns"][column])), count, column)


class States(unittest.TestCase):
    """States of streams that are written here."""

    def state(self, name, text):
        data = SMALL + bytes.fromhex(text)
        stream = data_of("-", data=data)["streams"][0]
        state = stream["states"][name]
        return list(zip([offset - len(SMALL) for offset in timeline_page.undiff(state["offset"])],
                        timeline_page.decode(state["value"])))

    def test_the_core_ratio_changes(self):
        self.assertEqual(self.state("ratio", "02031800" "02032000" "02032000" "02030800"),
                         [(16 - len(SMALL), 24), (4, 32), (12, 8)])

    def test_C_states(self):
        # MWAIT, PWRE of C-state 3, EXSTOP, FUP; PWRX; EXSTOP, FUP; PWRX
        mwait, pwre, exstop = "02c2" "20" "000000" "01" "000000", "02220030", "02e2"
        fup, pwrx = "3d0010", "02a2" "33" "01" "000000"
        self.assertEqual(self.state("power", mwait + pwre + exstop + fup + pwrx + exstop + fup
                                    + pwrx),
                         [(10, 5), (19, 0), (26, 1), (31, 0)])

    def test_CR3_with_the_mode(self):
        data = SMALL + bytes.fromhex("0243" "000001000000" "0243" "010001000000"
                                     "0243" "000001000000")
        stream = data_of("-", data=data)["streams"][0]
        self.assertEqual(stream["contexts"], ["100000", "100001"])
        self.assertEqual(timeline_page.decode(stream["states"]["context"]["value"]), [1, 2, 1])

    def test_an_overflow_and_damage_make_tracing_unknown(self):
        # OVF, FUP; a FUP and a PSB+ with an IP follow the damage
        data = SMALL + bytes.fromhex("02f3" "3d0010") + BAD + PSB + bytes.fromhex(
            "7d001000000000" "0223")
        stream = data_of("-", data=data, status=1)["streams"][0]
        self.assertEqual(timeline_page.decode(stream["states"]["tracing"]["value"]),
                         [0, 1, 2, 1, 2, 1])
        self.assertEqual({name: stream["counts"].get(name) for name in
                          ("overflow", "resumed", "damage", "resynced", "psb")},
                         {"overflow": 1, "resumed": 1, "damage": 1, "resynced": 1, "psb": 2})


class CommandLine(unittest.TestCase):
    def test_the_exit_status(self):
        no_psb = b"\x00" * 64
        for data, wanted in ((SMALL, 0), (SMALL + BAD, 1), (no_psb, 3)):
            self.assertEqual(run("-o", "-", "-", data=data)[0], wanted)
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ("clean", "damaged", "no_psb", "empty")]
            for path, data in zip(paths, (SMALL, SMALL + BAD, no_psb, b"")):
                path.write_bytes(data)
            out = pathlib.Path(folder, "out.html")
            self.assertEqual(run("-o", out, *paths[:2])[0], 1)
            self.assertEqual(run("-o", out, *paths[:3])[0], 3)
            out.unlink()
            status, _, said = run("-o", out, *paths)
            self.assertEqual((status, out.exists()), (2, False))
            self.assertIn("empty: no Intel PT in this file: it is empty", said)

    def test_a_trace_is_not_overwritten(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "trace")
            path.write_bytes(SMALL)
            status, _, said = run("-o", path, path)
            self.assertEqual((status, path.read_bytes()), (2, SMALL))
            self.assertIn("the page would overwrite this trace", said)

    def test_wrong_options(self):
        for arguments, about in (
                ([TRACE], "nowhere to write"), (["-o", "-"], "nothing to read"),
                (["-o"], "-o needs an argument"),
                (["--mtc-freq", "16"], "--mtc-freq takes MTCFreq, a number from 0 to 15"),
                (["--cyc-thresh", "-1"], "--cyc-thresh takes CycThresh, a number from 0 to 15"),
                (["--non-turbo", "0"], "--non-turbo takes a ratio from 1 to 255"),
                (["--non-turbo", "256"], "--non-turbo takes a ratio from 1 to 255"),
                (["--tsc-hz", "2.1e9"], "--tsc-hz takes a number from 1"),
                (["--tsc-hz", ""], "--tsc-hz takes a number from 1"),
                *((["--tsc-ratio", text], "--tsc-ratio takes EBX/EAX of CPUID.15H") for text in
                  ("168", "168/0", "0/2", "/", "168/2/", "4294967296/2", "x/y")),
                (["-o", "-", *["-"] * 257], "at most 256 traces")):
            status, out, said = run(*arguments)
            self.assertEqual((status, out), (2, b""), arguments)
            self.assertIn(about, said)

    def test_options_reach_the_page(self):
        page = data_of("--tsc-hz", "2100000000", "--non-turbo", "21", TRACE)
        self.assertEqual((page["tsc_hz"], page["non_turbo"], page["tsc_ratio"]),
                         (2100000000, 21, 0))
        self.assertEqual(page["streams"][0]["counts"], {"enabled": 1, "exec_mode": 1, "psb": 1,
                                                        "frequency": 1, "branches": 1})


if __name__ == "__main__":
    skips.main(sys.argv[:1])
