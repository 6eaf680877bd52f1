#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of the events, times and timelines of pt_dump.

    pt_dump_events.py PT_DUMP

Expected events are derived from the golden listings of packets, by the rules of section 16 of
tests/spec/packets.md, or are those that the authors of libipt expect of their tool ptxed. Expected
times are those that they expect of ptdump. Cites PKT-136, PKT-140, PKT-161, PKT-172, PKT-270,
PKT-271, PKT-273, PKT-278, PKT-302, PKT-304, PKT-311, PKT-312, PKT-316.
"""

import collections
import functools
import json
import pathlib
import random
import re
import resource
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
import traces  # noqa: E402
from folder import Folder  # noqa: E402

PT_DUMP = sys.argv[1] if len(sys.argv) > 1 else ""

PSB = bytes.fromhex("0282" * 8)
PSBEND = bytes.fromhex("0223")
ENABLED = PSB + PSBEND + bytes.fromhex("71001000000000")  # TIP.PGE to 0x1000


def run(*arguments, data=None):
    done = subprocess.run([PT_DUMP, *map(str, arguments)], input=data, capture_output=True)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def events_of(*options, data):
    """The lines of --events, except the last."""
    return run("--events", *options, "-", data=data)[1].splitlines()[:-1]


def fields_of(line):
    """Offset, name and fields of a line."""
    offset, name, *fields = line.split(" ")
    return int(offset, 16), name, dict(field.split("=", 1) for field in fields)


# ------------------------------------------------------------------------- events of a listing

TIMING = ("pad", "tsc", "tma", "mtc", "cyc")
STATUS = ("fup", "pip", "vmcs", "mode.exec", "mode.tsx", "cbr", "mnt")
# Packets that may stand within an event.
BETWEEN = ("pad", "tsc", "tma", "mtc", "cyc", "cbr", "mnt")
# Events of which several share a FUP.
GROUPS = ({"mwait", "pwre", "exstop"}, {"event_data", "control_flow"})


class Packet:
    def __init__(self, line):
        self.offset, self.name, self.fields = fields_of(line)

    def __getitem__(self, field):
        return self.fields[field]


class Binder:
    """The events of packets. Each event is [offset, name, fields]; fields may be set later."""

    def __init__(self, packets):
        self.packets = [one for one in packets if one.name not in TIMING]
        self.events = []
        self.waiting = []   # events that get the IP of the next FUP
        self.on = None      # PacketEn
        self.lost = True    # the next TIP is the first known IP
        self.in_overflow = False
        self.last_disabled = self.stopped = "-"
        self.mode = None    # the event of a MODE.Exec
        at = 0
        while at < len(self.packets):
            at = self.take(at)

    def add(self, of, name, /, **fields):
        self.events.append([of.offset, name, fields])
        return self.events[-1]

    def state_event(self, packet, status=False):
        """The event of a packet that PSB+ and compound events may have."""
        p = packet
        last = {"status": "1"} if status else {}
        if p.name == "pip":
            return self.add(p, "paging", cr3=p["cr3"], nr=p["nr"], ip="-", **last)
        if p.name == "vmcs":
            return self.add(p, "vmcs", base=p["base"], ip="-", **last)
        if p.name == "mode.exec":
            bits = {("1", "0"): "64", ("0", "1"): "32", ("0", "0"): "16"}.get(
                (p["csl"], p["csd"]), "0")
            return self.add(p, "exec_mode", mode=bits, **{"if": p["if"]}, ip="-", **last)
        if p.name == "mode.tsx":
            state = ("abort" if p["abrt"] == "1" else
                     ("inside" if status else "begin") if p["intx"] == "1" else
                     ("outside" if status else "commit"))
            return self.add(p, "transaction", state=state, ip="-", **last)
        if p.name == "cbr":
            return self.add(p, "frequency", ratio=p["ratio"], **last)
        return self.add(p, "maintenance", payload=p["payload"], **last)

    def take(self, at):
        p = self.packets[at]
        kind = p.name
        if kind == "psb":
            return self.take_psb_plus(at)
        if kind in ("cbr", "mnt"):
            self.state_event(p)
        elif kind in ("tnt.8", "tnt.64"):
            if self.on is False and not self.lost:
                self.add(p, "!damage", packet=kind, rule="GEN-105")
                self.on, self.lost = None, True
            self.add(p, "branches", n=p["n"], bits=p["bits"])
        elif kind == "tip":
            resumed = self.lost or self.on is not True
            self.add(p, "resumed" if resumed else "indirect_branch",
                     **{"ip" if resumed else "to": p["ip"]})
            self.enable(p["ip"])
        elif kind == "tip.pge":
            self.add(p, "enabled", ip=p["ip"])
            self.enable(p["ip"])
        elif kind == "tip.pgd":
            self.add(p, "disabled", to=p["ip"])
            self.disable(p["ip"])
        elif kind == "fup":
            return self.take_fup(at)
        elif kind == "mode.exec":
            self.end_overflow()
            self.mode = self.state_event(p)
        elif kind == "mode.tsx":
            event = self.state_event(p)
            self.end_overflow()
            if p["abrt"] == "1" and self.on is not False:
                return self.take_compound(at + 1, [event])
            if self.on is not False:
                self.waiting.append(event)
        elif kind in ("pip", "vmcs"):
            self.end_overflow()
            self.state_event(p)
        elif kind == "ovf":
            self.waiting, self.on, self.in_overflow = [], None, True
            self.add(p, "overflow")
        else:
            self.end_overflow()
            self.take_value(p)
        return at + 1

    def take_psb_plus(self, at):
        """PKT-136: the packets of a PSB+ report the state at the IP of its FUP."""
        events, ip = [], "-"
        for here in range(at + 1, len(self.packets)):
            p = self.packets[here]
            if p.name == "psbend":
                for event in events:
                    if "ip" in event[2]:
                        event[2]["ip"] = ip
                self.add(p, "psb", ip=ip)
                if ip == "-":
                    self.on, self.lost, self.in_overflow = False, False, False
                elif not self.in_overflow and self.on is not True:
                    self.on, self.lost = True, False
                return here + 1
            if p.name not in STATUS:
                return here
            if p.name == "fup":
                ip = p["ip"]
            else:
                events.append(self.state_event(p, status=True))
        return len(self.packets)

    def take_fup(self, at):
        """PKT-273: what waits takes the FUP, then an overflow; otherwise it opens an event."""
        p = self.packets[at]
        if self.waiting:
            for event in self.waiting:
                event[2]["ip"] = p["ip"]
                if event[1] == "exstop":
                    self.stopped = p["ip"]
            self.waiting = []
        elif self.in_overflow:
            self.add(p, "resumed", ip=p["ip"])
            self.enable(p["ip"])
        elif self.mode is not None:
            self.mode[2]["ip"] = p["ip"]
            self.mode = None
        else:
            return self.take_compound(at, self.events_before(at))
        return at + 1

    def events_before(self, at):
        """PKT-222: a CFE without an IP, and its EVDs, belong to the event that follows."""
        here = at - 1
        while self.packets[here].name in BETWEEN:
            here -= 1
        return self.announced if self.packets[here].name == "cfe" else []

    def take_compound(self, at, events):
        """PKT-270: FUP, any of PIP, VMCS, MODE.Exec, and TIP or TIP.PGD, at whose IP they apply."""
        fup = self.packets[at]
        for event in events:
            event[2]["ip"] = fup["ip"]
        branch = self.add(fup, "async_branch", ip=fup["ip"], to="-")
        middle = []
        for here in range(at + 1, len(self.packets)):
            p = self.packets[here]
            if p.name in ("tip", "tip.pgd"):
                branch[2]["to"] = p["ip"]
                for event in middle:
                    event[2]["ip"] = p["ip"]
                if p.name == "tip":
                    self.enable(p["ip"])
                else:
                    branch[1] = "async_disabled"
                    self.disable(p["ip"])
                return here + 1
            if p.name in ("cbr", "mnt"):
                self.state_event(p)
            elif p.name in ("pip", "vmcs", "mode.exec"):
                middle.append(self.state_event(p))
            else:
                return here
        return len(self.packets)

    def take_value(self, p):
        if p.name == "ptw":
            event = self.add(p, "ptwrite", size=p["size"], payload=p["payload"], ip="-")
        elif p.name == "mwait":
            event = self.add(p, "mwait", hints=p["hints"], ext=p["ext"], ip="-")
        elif p.name == "pwre":
            event = self.add(p, "pwre", state=p["state"], sub_state=p["sub_state"], hw=p["hw"],
                             ip="-")
        elif p.name == "pwrx":
            wake = ("interrupt" if p["interrupt"] == "1" else "store" if p["store"] == "1" else
                    "hardware" if p["autonomous"] == "1" else "other")
            self.add(p, "pwrx", last=p["last"], deepest=p["deepest"], wake=wake, ip=self.stopped)
            self.stopped = "-"
            return
        elif p.name == "exstop":
            event = self.add(p, "exstop", ip="-")
        elif p.name == "stop":
            self.add(p, "trace_stop", ip=self.last_disabled)
            return
        elif p.name == "bbp":
            groups = {1: "general", 4: "basic", 5: "memory", 8: "lbr", 9: "lbr", 10: "lbr",
                      16: "xmm"}
            event = self.add(p, "pebs_group", group=groups.get(int(p["type"]), p["type"]),
                             size=p["sz"], ip="-")
        elif p.name == "bip":
            event = self.add(p, "pebs_item", id=p["id"], payload=p["payload"], ip="-")
        elif p.name == "bep":
            event = self.add(p, "pebs_end", ip="-")
        elif p.name == "evd":
            names = {0: "pfa", 1: "vmxq", 2: "vmxr"}
            event = self.add(p, "event_data", type=names.get(int(p["type"]), p["type"]),
                             payload=p["payload"], ip="-")
        elif p.name == "cfe":
            names = {1: "intr", 2: "iret", 3: "smi", 4: "rsm", 5: "sipi", 6: "init", 7: "vmentry",
                     8: "vmexit", 9: "vmexit_intr", 10: "shutdown", 12: "uintr", 13: "uiret",
                     14: "swintr", 15: "syscall"}
            event = self.add(p, "control_flow", type=names.get(int(p["type"]), p["type"]),
                             vector=p["vector"], ip="-")
        else:
            event = self.add(p, "trigger", trbv=p["trbv"], mult=p["mult"], icnt=p["icnt"], ip="-")
        # Of a group that shares a FUP, the last one announces it.
        group = next((one for one in GROUPS if event[1] in one), {event[1]})
        opens = p.name in ("mwait", "pwre", "evd")
        self.waiting = [one for one in self.waiting if one[1] in group]
        if opens or p["ip"] == "1":
            self.waiting.append(event)
        else:
            self.announced = [*self.waiting, event] if self.on is not False else []
            self.waiting = []

    def enable(self, ip):
        self.end_mode(ip)
        self.waiting, self.on, self.lost, self.in_overflow = [], True, False, False

    def disable(self, ip):
        self.mode, self.waiting = None, []
        self.on, self.lost, self.in_overflow = False, False, False
        self.last_disabled = ip

    def end_mode(self, ip):
        """MODE.Exec applies at the IP of the packet after it; its event follows that one's."""
        if self.mode is not None:
            self.mode[2]["ip"] = ip
            self.events.remove(self.mode)
            self.events.append(self.mode)
            self.mode = None

    def end_overflow(self):
        """PKT-153: a packet that does not need PacketEn."""
        if self.in_overflow:
            self.in_overflow, self.on = False, False

    def lines(self):
        return [" ".join([f"{offset:08x}", name, *(f"{k}={v}" for k, v in fields.items())])
                for offset, name, fields in self.events]


def bound_events(listing):
    """The lines of --events for a golden listing without damage."""
    lines = listing.splitlines()[:-1]
    marks = [f"{line.split(' ')[0]} !sync {line.split(' ')[2]}" for line in lines
             if " !sync " in line]
    return marks + Binder([Packet(line) for line in lines if " !" not in line]).lines()


# ------------------------------------------------------------------------- libipt's expectations

class Libipt:
    """The streams that libipt's developers wrote, with the output of their tools."""

    def __init__(self):
        if not traces.are_there():
            raise unittest.SkipTest(traces.NEED)
        with tarfile.open(traces.folder() / "libipt-tests.tar.xz") as tests:
            self.files = {pathlib.PurePosixPath(one.name).name if not one.name.endswith("info.txt")
                          else pathlib.PurePosixPath(one.name).parent.name + "/info":
                          tests.extractfile(one).read() for one in tests.getmembers()
                          if one.isfile()}

    def names(self, suffix):
        return sorted(one.removesuffix(suffix) for one in self.files if one.endswith(suffix))

    def info(self, name):
        lines = self.files[f"{name}/info"].decode().splitlines()
        return dict(line.split(": ", 1) for line in lines if ": " in line)

    def cpu(self, name):
        """The options for a processor that the expectation is for."""
        cpus = self.info(name)["cpus"].split()
        return [] if cpus[0] == "-" else ["--cpu", cpus[-1]]


def clock_options(theirs):
    """Our options for those of ptdump and ptxed."""
    words = theirs.split()
    value = {word: words[i + 1] for i, word in enumerate(words[:-1])}
    ours = []
    for option, name in (("--mtc-freq", "--mtc-freq"), ("--nom-freq", "--non-turbo")):
        ours += [name, value[option]] if option in value else []
    if "--cpuid-0x15.eax" in value:
        ours += ["--tsc-ratio", f"{value['--cpuid-0x15.ebx']}/{value['--cpuid-0x15.eax']}"]
    return ours


def expected_times(text):
    """(offset, time) of each packet that has a time in the output of ptdump."""
    now, found = 0, []
    for line in text.splitlines():
        if match := re.match(r"([0-9a-f]{16}) .* tsc ([+-][0-9a-f]+|[0-9a-f]{16})$", line):
            offset, time = match.groups()
            now = now + int(time, 16) if time[0] in "+-" else int(time, 16)
            found.append((int(offset, 16), now))
    return found


# Where the time differs from libipt's: (test, offset) -> ours minus libipt's. libipt measures the
# rate of CYCs between the first two MTCs; we start at an MTC that has a CYC, because a CYC after
# another MTC also counts cycles from before it. libipt forgets the rate at an OVF. It lets CYCs
# pass the latest time of the next MTC, and takes a rate far from that of the CBR.
OTHER_TIMES = {
    ("tsc-tma-mtc-mtc-cyc_calibrate", 0x29): -0x20,  # measured from the second MTC on
    ("mtc-ovf_reset-cyc", 0x40): 0x20,               # the rate from before the OVF
    ("mtc-ovf_reset-cyc", 0x43): 0x40,               # the rate from before the OVF
    ("tsc-tma-cbr-mtc-cyc_calibrate", 0x27): -0x180,  # limited by the next MTC
    ("tsc-tma-cbr-mtc-cyc_calibrate", 0x2B): 0x40,    # a rate of 1/8 of the CBR's is rejected
}

# Where events differ from those of ptxed: ours in its notation.
OTHER_EVENTS = {
    # TIP.PGD in place of the FUP after an OVF is an event of ours. ptxed forgets the mode there.
    "apl11": ["overflow", "disabled", "enabled", "disabled"],
    "skd010-tip_pgd": ["overflow", "disabled", "enabled", "disabled"],
    # ptxed runs with --quiet.
    "linear-fup-tip_pgd": ["disabled"],
    # Ours are in the order of the packets: PWRE before EXSTOP. HW of PWRE: PKT-185.
    "mwait-pwre-exstop_ip-fup-ovf": ["mwait 5 0", "pwre c1.0", "exstop", "overflow"],
    "mwait-pwre-exstop_ip-pwrx": ["mwait 7 1", "pwre c1.0", "exstop", "pwrx int: c1 (c0)",
                                  "disabled"],
    "tip_pgd-mwait-pwre-exstop_ip-pwrx": ["disabled", "mwait 7 1", "pwre c1.0", "exstop",
                                          "pwrx int: c1 (c0)"],
    "pwre-exstop_ip-pwrx": ["pwre c1.0", "exstop", "pwrx hw: c1 (c0)", "disabled"],
    "ovf-pwre-pwrx-tip_pge": ["overflow", "pwre c1.0", "pwrx int: c1 (c1)", "enabled", "disabled"],
    # libipt reads ahead to the IP after an OVF.
    "ovf-mnt-fup": ["overflow", "mnt: a000", "disabled"],
    "ovf-timing-fup": ["overflow", "cbr: f", "disabled"],
    # ptxed finds the IP of a TRIG without FUP by ICNT and the code.
    "psb-fup-ptw-trig": ["ptwrite: 0", "trig 1a", "ptwrite: 0", "trig 1b", "disabled"],
    # libipt rejects EVDs that do not belong to the CFE (PKT-227).
    "ptet-evd_cr2-evd_vmxq": ["iret, cr2: 0000000000000f00, vmxq: 0000000000000000", "disabled"],
    "ptet-evd_vmxq-cfe_intr": ["interrupt 14, vmxq: 0000000000000000", "disabled"],
    "ptet-evd_vmxr-cfe_rsm": ["rsm, vmxr: 0000000000000000", "disabled"],
    "ptet-evd_vmxr-evd-cr2": ["vmexit, cr2: 0000000000000f00, vmxr: 0000000000000000", "disabled"],
    # ptxed reports its own end of tracing where a TIP.PGE follows without TIP.PGD.
    "ptxed-resync-nomap-tip_pge": ["enabled", "disabled"],
    # ptxed compares the state of a PSB+ with that of the code.
    "ptxed-resync-psb-bad_status-psb": ["disabled"],
}


class Notation:
    """Our events in the notation of ptxed. An event is a set of texts, because ptxed prints IPs
    only with some options."""

    def __init__(self, lines):
        self.events = []
        self.data = {}
        self.mode = self.interrupts = None
        for line in lines:
            offset, name, fields = fields_of(line.split(": ")[0])
            add = getattr(self, "add_" + name.removeprefix("!"), None)
            if add is not None:
                add(fields)

    @staticmethod
    def number(text, digits=16):
        return f"{int(text, 16):0{digits}x}"

    def add(self, text, **ips):
        """A text, and the same with those IPs that are known."""
        known = [f"{name}: {self.number(ip)}" for name, ip in ips.items() if ip != "-"]
        texts = {text}
        for count in range(1, len(known) + 1):
            texts |= {", ".join([text, *known[:count]]), ", ".join([text, *known[-count:]])}
        self.events.append(texts)

    def add_enabled(self, e):
        self.add("enabled", ip=e["ip"])
        self.events[-1].add("resumed")  # at the IP where tracing ended

    def add_disabled(self, e):
        self.add("disabled", ip=e["to"])

    def add_async_disabled(self, e):
        self.add("disabled", at=e["ip"], ip=e["to"])

    def add_async_branch(self, e):
        self.add("interrupt", **{"from": e["ip"], "to": e["to"]})

    def add_overflow(self, e):
        self.add("overflow")

    def add_trace_stop(self, e):
        self.add("stopped")

    def add_paging(self, e):
        if "status" not in e:
            self.add(f"paging, cr3: {self.number(e['cr3'])}")

    def add_exec_mode(self, e):
        """ptxed prints changes."""
        if "status" not in e:
            if self.mode != e["mode"]:
                self.add(f"exec mode: {e['mode']}-bit")
            if self.interrupts != e["if"]:
                self.add("interrupts " + ("enabled" if e["if"] == "1" else "disabled"))
        self.mode, self.interrupts = e["mode"], e["if"]

    def add_transaction(self, e):
        name = {"begin": "begin transaction", "commit": "committed", "abort": "aborted"}
        if e["state"] in name:
            self.add(name[e["state"]], ip=e["ip"])

    def add_ptwrite(self, e):
        self.add(f"ptwrite: {int(e['payload'], 16):x}", ip=e["ip"])

    def add_mwait(self, e):
        self.add(f"mwait {int(e['hints'], 16):x} {int(e['ext'], 16):x}", ip=e["ip"])

    def add_exstop(self, e):
        self.add("exstop", ip=e["ip"])

    @staticmethod
    def c_state(number):
        return (int(number) + 1) % 16

    def add_pwre(self, e):
        self.add(f"pwre c{self.c_state(e['state'])}.{self.c_state(e['sub_state'])}"
                 + (" hw" if e["hw"] == "1" else ""))

    def add_pwrx(self, e):
        wake = {"interrupt": "int", "store": "st", "hardware": "hw"}[e["wake"]]
        self.add(f"pwrx {wake}: c{self.c_state(e['last'])} (c{self.c_state(e['deepest'])})")

    def add_frequency(self, e):
        if "status" not in e:
            self.add(f"cbr: {int(e['ratio']):x}")

    def add_maintenance(self, e):
        self.add(f"mnt: {int(e['payload'], 16):x}")

    def add_trigger(self, e):
        self.add(f"trig {int(e['trbv'], 16):02x}" + (", mult" if e["mult"] == "1" else ""),
                 ip=e["ip"])

    def add_event_data(self, e):
        self.data[{"pfa": "cr2"}.get(e["type"], e["type"])] = self.number(e["payload"])

    def add_control_flow(self, e):
        names = {"intr": "interrupt {}", "vmexit_intr": "vmexit, intr: {}", "uintr": "uintr {}",
                 "swintr": "swintr {}"}
        text = names.get(e["type"], e["type"]).format(e["vector"])
        for name in ("cr2", "vmxr", "vmxq"):
            if name in self.data:
                text += f", {name}: {self.data[name]}"
        self.data = {}
        self.add(text)


def expected_events(text):
    """The events of the output of ptxed, without those that depend on the code."""
    found = re.findall(r"^(?:\? )?\[(?:[0-9a-f]{16}  )?(.*)\]$", text, re.M)
    return [one for one in found if one not in ("block", "tick", "end of trace")
            and "error: no memory mapped" not in one]


# ------------------------------------------------------------------------- the tests

@functools.cache
def undamaged():
    """(name, bytes, listing, events) of the traces in which all bytes are packets."""
    return list(find_undamaged())


def find_undamaged():
    for name, data, golden, sync in traces.all_traces():
        last = golden.rstrip("\n").rsplit("\n", 1)[-1]
        if sync and " errors=0 " in last and not name.startswith("bad-") \
                and "!nosync" not in golden:
            listing = traces.expected(name, golden)
            yield name, data, listing, bound_events(listing)


def without_text(lines):
    """Without the names of VM entries and exits, too, which tests/tools/guests.py checks."""
    return [re.sub(" vm=(entry|exit)$", "", line.split(": ")[0]) for line in lines]


class Events(unittest.TestCase):
    maxDiff = None

    def assert_same(self, ours, wanted, name):
        if ours != wanted:
            at = next((i for i, (one, two) in enumerate(zip(ours, wanted)) if one != two),
                      min(len(ours), len(wanted)))
            self.assertEqual(ours[at:at + 3], wanted[at:at + 3], (name, at))
            self.fail(name)

    def test_events_of_recorded_traces_are_those_of_the_golden_listings(self):
        count = 0
        for name, data, _, wanted in undamaged():
            ours = without_text(events_of(data=data))
            if name.startswith("libipt"):  # streams that no processor writes
                ours = [line for line in ours if " !damage " not in line]
                wanted = [line for line in wanted if " !damage " not in line]
            self.assert_same(ours, wanted, name)
            count += 1
        self.assertGreaterEqual(count, 80 if traces.are_there() else 6)

    def test_events_of_recorded_samples_with_ptwrite(self):
        data = traces.recorded("memgaze-ubench")
        chunks = traces.read(traces.folder() / "memgaze-ubench.chunks.packets").decode()
        ptwrites = 0
        for chunk in re.split(r"^# ", chunks, flags=re.M)[1::16]:
            head, _, golden = chunk.partition("\n")
            place = int(re.search(r"offset=0x([0-9a-f]+)", head)[1], 16)
            if " errors=0 " not in golden.rstrip("\n").rsplit("\n", 1)[-1]:
                continue
            wanted = bound_events(golden)
            self.assert_same(without_text(events_of(data=data[place:place + 8192])), wanted, head)
            ptwrites += sum(" ptwrite " in line and " ip=0x" in line for line in wanted)
        self.assertGreater(ptwrites, 1000)

    def test_events_are_those_that_libipt_expects(self):
        libipt, compared = Libipt(), 0
        for name in libipt.names(".ptxed.exp"):
            with self.subTest(name):
                lines = events_of(*libipt.cpu(name), data=libipt.files[name + ".pt"])
                ours = Notation(lines).events
                wanted = expected_events(libipt.files[name + ".ptxed.exp"].decode())
                self.assertEqual(all(one in two for one, two in zip(wanted, ours)) and
                                 len(ours) == len(wanted), name not in OTHER_EVENTS,
                                 (wanted, ours))
                if name in OTHER_EVENTS:
                    self.assertEqual([min(one, key=lambda text: (len(text), text))
                                      for one in ours], OTHER_EVENTS[name])
                compared += 1
        self.assertGreater(compared, 60)

    def test_times_are_those_that_libipt_expects(self):
        libipt, other, compared = Libipt(), {}, 0
        for name in libipt.names(".ptdump.exp"):
            options = libipt.info(name)["ptdump-options"]
            if "--time " not in options + " ":
                continue
            lines = run("--time", *clock_options(options), *libipt.cpu(name), "-",
                        data=libipt.files[name + ".pt"])[1].splitlines()[:-1]
            ours = {}
            for line in lines:
                offset, _, fields = fields_of(line)
                time = fields.get("time") or fields["relative"]
                ours[offset] = int(time.split("-")[0], 16)
            for offset, wanted in expected_times(libipt.files[name + ".ptdump.exp"].decode()):
                compared += 1
                if ours[offset] != wanted:
                    other[name, offset] = ours[offset] - wanted
        self.assertEqual(other, OTHER_TIMES)
        self.assertGreater(compared, 70)

    def test_times_of_events_that_libipt_expects(self):
        libipt, name = Libipt(), "ptxed-tick"
        options = clock_options(libipt.info(name)["ptxed-options"])
        times = [int(fields_of(line)[2]["time"].split("-")[0], 16) for line in
                 events_of("--time", *options, data=libipt.files[name + ".pt"])
                 if "status" not in fields_of(line)[2] and " psb " not in line]
        wanted = re.findall(r"^\[([0-9a-f]{16})  ", libipt.files[name + ".ptxed.exp"].decode(),
                            re.M)
        self.assertEqual(times, [int(one, 16) for one in wanted])
        self.assertEqual(len(times), 4)


class Lines(Folder):
    """Streams written for a test."""

    def lines(self, data, *options):
        return events_of(*options, data=bytes.fromhex(data) if isinstance(data, str) else data)

    def after_enabled(self, hexadecimal, *options):
        return self.lines(ENABLED + bytes.fromhex(hexadecimal), *options)[2:]

    def test_the_first_and_last_lines(self):
        status, out, err = run("--events", "-", data=b"\0" + ENABLED + b"\x01")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.splitlines(), [
            "00000001 !sync skipped=1", "00000011 psb ip=-", "00000013 enabled ip=0x1000",
            "0000001a disabled to=-", "0000001b !end events=3 errors=0 resyncs=0"])

    def test_pebs(self):
        self.assertEqual(self.after_enabled("026384" "0c44332211" "026303" "0c8877665544332211"
                                            "02b3" "3d0520"), [
            "00000019 pebs_group group=basic size=4 ip=-",
            "0000001c pebs_item id=1 payload=0x11223344 ip=-",
            "00000021 pebs_group group=3 size=8 ip=-",
            "00000024 pebs_item id=1 payload=0x1122334455667788 ip=-",
            "0000002d pebs_end ip=0x2005"])

    def test_branches_before_the_first_ip_are_events(self):
        self.assertEqual(run("--events", "--no-sync", "--hex", "060606")[:2], (0,
            "00000000 branches n=1 bits=T\n00000001 branches n=1 bits=T\n"
            "00000002 branches n=1 bits=T\n00000003 !end events=3 errors=0 resyncs=0\n"))
        # A recorded trace that begins after a PSB+ and a TIP.PGE.
        data = traces.recorded("hase-cf-bdw")[0xA8:0xC8]
        _, out, _ = run("--events", "--no-sync", "-", data=data)
        self.assertEqual([fields_of(line)[2]["n"] for line in out.splitlines()[:-1]],
                         ["44", "44", "44", "34"])

    def test_types_of_event_trace_without_a_name_are_numbers(self):
        self.assertEqual(self.after_enabled("02530f0100000000000000" "02138b07" "3d0520"), [
            "00000019 event_data type=15 payload=0x1 ip=0x2005",
            "00000024 control_flow type=11 vector=7 ip=0x2005"])

    def test_wake_reasons(self):
        for reason, name in ((0, "other"), (1, "interrupt"), (2, "2"), (4, "store"),
                             (8, "hardware"), (5, "5")):
            self.assertEqual(self.after_enabled(f"02a221{reason:02x}000000"),
                             [f"00000019 pwrx last=2 deepest=1 wake={name} ip=-"])

    def test_damage_has_the_rule_and_its_text(self):
        status, out, _ = run("--events", "-", data=ENABLED + b"\x05" + PSB + PSBEND + b"\x06")
        self.assertEqual(status, 1)
        self.assertEqual(out.splitlines()[2:], [
            "00000019 !damage packet=- rule=PKT-015: "
            "the first byte must be one that begins a packet",
            "0000001a !resync skipped=1", "0000002a psb ip=-",
            "0000002c !damage packet=tnt.8 rule=GEN-105: "
            "TNT and TIP must not stand where PacketEn is 0",
            "0000002c branches n=1 bits=T",
            "0000002d !end events=4 errors=2 resyncs=1"])
        self.assertEqual(events_of(data=ENABLED + b"\x19\x01")[2:], [
            "00000019 !damage packet=- rule=PKT-255 left=2: a packet must have all of its bytes"])
        self.assertEqual(run("--events", "-", data=b"\0" * 40)[:2],
                         (3, "00000028 !nosync skipped=40\n"
                             "00000028 !end events=0 errors=0 resyncs=0\n"))

    def test_the_help_names_all_events(self):
        header = (traces.ROOT / "include/ptspec/trace/event.hpp").read_text()
        types = re.findall(r"^    (\w+),", header.split("enum class event_type")[1].split("};")[0],
                           re.MULTILINE)
        self.assertIn("branches", types)
        names = {"synced": "sync", "resynced": "resync", "lost": "nosync"}
        section = run("--help")[1].split("With --events a line is")[1].split("\n\n")[0]
        words = set(re.findall(r"\w+", section))
        self.assertEqual([one for one in types if names.get(one, one) not in words],
                         ["need_input"])

    def test_cpu_selects_errata(self):
        apl11 = ENABLED + bytes.fromhex("02f3" "01")  # OVF, TIP.PGD
        self.assertEqual(run("--events", "-", data=apl11)[0], 1)
        self.assertEqual(run("--events", "--cpu", "6/92", "-", data=apl11)[0], 0)
        self.assertEqual(run("--events", "--cpu", "6/92/9", "-", data=apl11)[0], 0)
        self.assertEqual(run("--events", "--cpu", "6/61", "-", data=apl11)[0], 1)

    def test_cpu_selects_errata_of_packets(self):
        # SKD007: an OVF after the first byte of a CYC. SKZ84: a byte after a TMA.
        for cpu, damaged, without, with_it in (
                ("6/94", "0702f3", ["cyc len=2", "cyc len=1"], ["ovf len=2"]),
                ("6/85", "0273000001f0ff" "06", ["tma", "tnt.8"], ["tma"])):
            data = PSB + PSBEND + bytes.fromhex(damaged + "04")
            listings = [run(*options, "-", data=data)[1].splitlines()[2:-2]
                        for options in ([], ["--cpu", cpu], ["--cpu", cpu, "--jobs", "2"])]
            names = [[line.split(" ", 1)[1] for line in lines] for lines in listings]
            for wanted, found in zip((without, with_it, with_it), names):
                self.assertEqual(len(found), len(wanted), found)
                for text, line in zip(wanted, found):
                    self.assertTrue(line.startswith(text), line)
        data = PSB + bytes.fromhex("02031800" "0223" "9901" "71001000000000" "06" "0702f3" "3d0010"
                                   "06")
        for cpu, violations, overflows in (([], 1, 0), (["--cpu", "6/94"], 0, 1)):
            out = run("--check", "--kind", "manual", *cpu, "-", data=data)[1]
            self.assertIn(f" !end violations={violations} ", out)
            found = json.loads(run("--summary", "--json", *cpu, "-", data=data)[1])
            self.assertEqual("ovf" in found["by_type"], overflows == 1)
        # PADs reach the checker either way: skylake pads.
        padded = (PSB + b"\0\0\0" + bytes.fromhex("9920" "9901" "7d001000000000" "0000" "02031800"
                                                  "0223" "0000" "2d0020"))
        for cpu in ([], ["--cpu", "6/94"]):
            out = run("--check", "--kind", "skylake", *cpu, "-", data=padded)[1]
            self.assertTrue(out.endswith(" !end violations=0 kind=skylake\n"), out)

    def test_json_has_the_values_of_the_lines(self):
        data = b"\0" + ENABLED + bytes.fromhex(
            "190010000000000000" "06" "3d0510" "0243000010000000" "2d0020" "029211223344" "0213810e"
            "1c" "05") + ENABLED
        names = {"!sync": "sync", "!damage": "damage", "!resync": "resync", "!end": "end"}
        for options in ([], ["--time", "--tsc-hz", "1000000000"]):
            lines = run("--events", *options, "-", data=data)[1].splitlines()
            objects = [json.loads(one) for one in
                       run("--events", "--json", *options, "-", data=data)[1].splitlines()]
            self.assertEqual(len(objects), len(lines))
            for line, found in zip(lines, objects):
                line, _, text = line.partition(": ")
                offset, name, fields = fields_of(line)
                self.assertEqual(found.pop("offset"), offset)
                self.assertEqual(found.pop("event"), names.get(name, name))
                self.assertEqual(found.pop("text", ""), text)
                if "relative" in fields:
                    self.assertEqual(found.pop("relative"), fields.pop("relative"))
                if "time" in fields:
                    now, early, late = re.fullmatch(r"0x([0-9a-f]+)-(\d+)\+(\d+|\?)",
                                                    fields.pop("time")).groups()
                    now = int(now, 16)
                    self.assertEqual(found.pop("time"), hex(now))
                    self.assertEqual(found.pop("earliest"), hex(now - int(early)))
                    self.assertEqual(found.pop("latest"),
                                     None if late == "?" else hex(now + int(late)))
                for key, value in fields.items():
                    said = found.pop(key)
                    self.assertEqual("-" if said is None else str(said), value)
                self.assertEqual(found, {})

    # time

    def times(self, *options, data, kinds=None):
        lines = run("--time", *options, "-", data=data)[1].splitlines()[:-1]
        return [line.split(" time=")[-1] if " time=" in line else line.split(" ", 3)[-1]
                for line in lines if kinds is None or line.split(" ")[1] in kinds]

    def test_the_time_of_a_packet(self):
        # TSC 1000H, TMA CTC 1 FC 0, then MTC 1: 16 crystal cycles, less 1, of 4 ticks each.
        data = PSB + bytes.fromhex("1900100000000000" "02730100000000" "0223" "5901")
        lines = run("--time", "--mtc-freq", "4", "--tsc-ratio", "4/1", "-", data=data)[1]
        self.assertEqual(lines.splitlines()[-2], f"{len(data) - 2:08x} mtc len=2 ctc=0x1 "
                                                 f"time={0x1000 + 15 * 4:#x}-0+128")
        self.assertEqual(lines.splitlines()[0], "00000000 psb len=16 relative=0x0")
        # One MTC may be lost: the latest time is that of the MTC after the next.
        self.assertIn("mtc len=2 ctc=0x1 time=0x1000-0+?",
                      run("--time", "--mtc-freq", "4", "-", data=data)[1])

    def test_cycles_need_a_ratio(self):
        # CBR 20, TSC 1000H, 10 cycles. At a ratio of 40 a cycle has 2 ticks.
        data = PSB + bytes.fromhex("1900100000000000" "02031400" "0223" "53")
        self.assertEqual(self.times("--non-turbo", "40", data=data)[-1].split("-")[0],
                         hex(0x1000 + 20))
        self.assertEqual(self.times(data=data)[-1], "0x1000-0+?")
        # With a threshold of 2^4 cycles, packets up to 15 cycles later have no CYC.
        data += bytes.fromhex("71001000000000" "0404")
        near = self.times("--non-turbo", "40", data=data)[-1]
        late = self.times("--non-turbo", "40", "--cyc-thresh", "5", data=data)[-1]
        more = int(late.split("+")[1]) - int(near.split("+")[1])
        self.assertTrue(30 <= more <= 33, more)  # and rounding

    def test_monotonic(self):
        data = PSB + PSBEND + bytes.fromhex("1900100000000000" "19000f0000000000")
        self.assertEqual([one.split("-")[0] for one in self.times(data=data)[-2:]],
                         ["0x1000", "0xf00"])
        self.assertEqual([one.split("-")[0] for one in self.times("--monotonic", data=data)[-2:]],
                         ["0x1000", "0x1000"])

    def test_tsc_reference(self):
        data = PSB + PSBEND + bytes.fromhex("1900100000000000")
        self.assertEqual(self.times("--tsc-reference", "0x1200000000000000", data=data)[-1],
                         "0x1200000000001000-0+?")

    def test_nanoseconds(self):
        tsc = 0x123456789ABC
        data = PSB + PSBEND + b"\x19" + tsc.to_bytes(7, "little")
        for hertz in (1, 999_999_999, 2_400_000_000, 10_000_000_000):
            wanted = tsc * 10 ** 9 // hertz % 2 ** 64
            line = run("--time", "--tsc-hz", hertz, "-", data=data)[1].splitlines()[-2]
            self.assertTrue(line.endswith(f" ns={wanted}"), (hertz, line))
        for shift, mult, zero in ((31, 0x2AAAAAAA, 12345), (0, 1, 2 ** 64 - 1),
                                  (32, 2 ** 32 - 1, 0)):
            quotient, rest = divmod(tsc, 1 << shift)
            wanted = (zero + quotient * mult + (rest * mult >> shift)) % 2 ** 64
            line = run("--time", "--perf-clock", f"{shift},{mult},{zero}", "-",
                       data=data)[1].splitlines()[-2]
            self.assertTrue(line.endswith(f" ns={wanted}"), (shift, line))

    def test_times_of_a_guest(self):
        # TSC 1000H; PIP with NR=1: VM entry; TSC 500H of the guest, which sees F500H less.
        data = PSB + PSBEND + bytes.fromhex("1900100000000000" "0243010000000000"
                                            "1900050000000000")
        host, entry, guest = run("--time", "--tsc-hz", "1000000000", "-",
                                 data=data)[1].splitlines()[-4:-1]
        self.assertTrue(host.endswith(" time=0x1000-0+? ns=4096"), host)
        self.assertTrue(entry.endswith(" time=0x1000-0+? ns=4096"), entry)
        self.assertTrue(guest.endswith(" guest=0x500-0+?"), guest)  # no nanoseconds of the host
        line = json.loads(run("--time", "--json", "--tsc-hz", "1000000000", "-",
                              data=data)[1].splitlines()[-2])
        self.assertEqual((line["guest"], "ns" in line, "time" in line), ("0x500", False, False))
        offset = 2 ** 64 - 0xF500
        for multiplier, wanted in ((1 << 48, 0xFA00), (1 << 49, 0xFA00 // 2)):
            guest = run("--time", "--tsc-hz", "1000000000", "--guest-tsc", f"{offset},{multiplier}",
                        "-", data=data)[1].splitlines()[-2]
            self.assertTrue(guest.endswith(f" time={wanted:#x}-0+? ns={wanted}"), guest)
        self.assertIn(" guest=0x1000-", run("--time", "--begins-in-guest", "-", data=data)[1])
        # A timeline and the sums of a summary have times of the host only.
        self.assertNotIn(hex(0x500), run("--summary", "--time", "-", data=data)[1])

    def test_options_that_do_not_belong_together(self):
        path = self.file("t", ENABLED)
        for arguments, about in (
                (["--events", "--summary"], "--events and --summary"),
                (["--check", "--chrome-trace"], "--check and --chrome-trace"),
                (["--check", "--time"], "--check"), (["--mtc-freq", "3"], "--mtc-freq"),
                (["--events", "--tsc-hz", "5"], "--tsc-hz"), (["--monotonic"], "--monotonic"),
                (["--streams", "--cpu", "6/94"], "--cpu"),
                (["--time", "--tsc-hz", "5", "--perf-clock", "1,1,1"], "give one"),
                (["--events", "--jobs", "2"], "--jobs"), (["--time", "--jobs", "2"], "--jobs"),
                (["--chrome-trace", "--jobs", "2"], "--jobs"),
                (["--events", "--strict"], "--strict"),
                (["--chrome-trace", "--json"], "--json"),
                (["--time", "--mtc-freq", "16"], "0 to 15"),
                (["--time", "--cyc-thresh", "x"], "0 to 15"),
                (["--time", "--non-turbo", "0"], "1 to 255"),
                (["--time", "--tsc-ratio", "168"], "168/2"),
                (["--time", "--tsc-ratio", "168/0"], "168/2"),
                (["--time", "--tsc-ratio", "1/2/3"], "168/2"),
                (["--time", "--tsc-reference", "0"], "64 bits"),
                (["--time", "--tsc-hz", "0"], "Hz"), (["--time", "--tsc-hz", "10000000001"], "Hz"),
                (["--time", "--perf-clock", "33,1,1"], "SHIFT,MULT,ZERO"),
                (["--time", "--perf-clock", "1,1"], "SHIFT,MULT,ZERO"),
                (["--time", "--guest-tsc", "1"], "OFFSET,MULTIPLIER"),
                (["--time", "--guest-tsc", "1,0"], "above 0"), (["--guest"], "--guest"),
                (["--events", "--cpu", "6"], "FAMILY/MODEL"),
                (["--events", "--cpu", "6/94/3/1"], "FAMILY/MODEL"),
                (["--events", "--cpu", "6/x"], "FAMILY/MODEL")):
            status, out, err = run(*arguments, path)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertTrue(err.startswith("pt_dump: "), err)
            self.assertIn(about, err)
        self.assertEqual(run("--time", path, "--mtc-freq")[0], 2)
        for arguments in (["--time"], ["--events", "--time", "--jobs", "1"],
                          ["--summary", "--time"], ["--chrome-trace"],
                          ["--chrome-trace", "--time", "--mtc-freq", "3"]):
            self.assertEqual(run(*arguments, path)[0], 0, arguments)

    def test_several_files_and_standard_input(self):
        one = self.file("one", ENABLED)
        lines = run("--events", one)[1]
        self.assertEqual(run("--events", "-", data=ENABLED)[1], lines)
        self.assertEqual(run("--events", "--hex", ENABLED.hex())[1], lines)
        self.assertEqual(run("--events", one, one)[1], f"# {one}\n{lines}" * 2)

    # summary

    # TSC 1000H, TMA CTC 0; CBR 20; MTCs every 16 crystal cycles of 4 ticks.
    CLOCK = ["--time", "--mtc-freq", "4", "--tsc-ratio", "4/1"]
    START = PSB + bytes.fromhex("1900100000000000" "02730000000000" "02031400" "0223")

    def summary(self, data, *options):
        return json.loads(run("--summary", "--json", *self.CLOCK, *options, "-",
                              data=data)[1])["time"]

    def test_summary_of_times(self):
        data = self.START + bytes.fromhex(
            "5901" "71001000000000" "5902" "5903" "01"  # on for 2 MTCs from the first
            "5904" "02f3" "5906"                        # off for 1, unknown for 2
            "7d001000000000" "5907")                    # on for 1
        self.assertEqual(self.summary(data), {
            "first": "0x1000", "last": hex(0x1000 + 7 * 64), "duration": 7 * 64, "traced": 3 * 64,
            "untraced": 64 + 64, "unknown": 2 * 64, "cycles": 0, "frequency": None,
            "missing_mtcs": 0, "overflows": 1})
        with_ns = self.summary(data, "--tsc-hz", "1000000000")
        self.assertEqual((with_ns["first_ns"], with_ns["last_ns"]), (0x1000, 0x1000 + 7 * 64))
        text = run("--summary", *self.CLOCK, "-", data=data)[1]
        for line in ("tsc          0x1000 to 0x11c0", "duration              448 ticks",
                     "  traced              192 ticks", "  not traced          128 ticks",
                     "  unknown             128 ticks", "overflows               1"):
            self.assertIn(line + "\n", text)

    def test_summary_of_a_trace_without_tsc(self):
        found = self.summary(PSB + PSBEND + bytes.fromhex("53"))
        self.assertEqual((found["first"], found["last"], found["cycles"]), (None, None, 10))
        self.assertNotIn("duration", found)

    def test_missing_mtcs(self):
        self.assertEqual(self.summary(self.START + bytes.fromhex("5901" "5905"))["missing_mtcs"], 3)

    def test_the_mean_frequency_does_not_count_the_time_without_clock(self):
        # 64 ticks from MTC to MTC with 32 cycles each: half of the TSC's frequency.
        cycles = "0702"
        self.assertIn(" value=0x20\n", run("--no-sync", "--hex", cycles)[1])
        data = self.START + bytes.fromhex("0702" "5901" "0702" "5902" "0702" "5903")
        self.assertEqual(self.summary(data)["frequency"], 0.5)
        # Cycles before the first TSC do not count.
        self.assertEqual(self.summary(PSB + PSBEND + bytes.fromhex(cycles) + data)["frequency"],
                         0.5)
        # A TSC that is 10000H ticks later: in between no clock ran.
        later = "1900100100000000" "02730000000000"
        self.assertEqual(self.summary(data + bytes.fromhex("43" + later + "0702" "5901"))
                         ["duration"], 0x10000 + 64)
        found = self.summary(data + bytes.fromhex(later + "0702" "5901"))
        self.assertAlmostEqual(found["frequency"], 0.5, places=3)

    def test_a_summary_ends_with_the_time_of_the_last_packet(self):
        # With a threshold, the CYC after an MTC without CYC has cycles of before it.
        data = self.START + bytes.fromhex("0702" "5901" "0702" "06" "5902" "53" "06")
        options = ["--cyc-thresh", "3", "--non-turbo", "24"]
        last = run(*self.CLOCK, *options, "-", data=data)[1].splitlines()[-2]
        self.assertEqual(self.summary(data, *options)["last"],
                         fields_of(last)[2]["time"].split("-")[0])

    def test_summary_of_recorded_traces(self):
        for name, data, golden, _ in undamaged():
            if name.startswith("libipt"):
                continue
            packets = [Packet(line) for line in golden.splitlines()[:-1] if " !" not in line]
            found = self.summary(data)
            tsc = [one["tsc"] for one in packets if one.name == "tsc"]
            cycles = sum(int(one["value"], 16) for one in packets if one.name == "cyc")
            self.assertEqual((found["first"], found["cycles"], found["overflows"]),
                             (tsc[0] if tsc else None, cycles,
                              sum(one.name == "ovf" for one in packets)), name)
            if tsc:
                self.assertEqual(found["duration"], int(found["last"], 16) - int(tsc[0], 16))
                self.assertEqual(found["duration"],
                                 found["traced"] + found["untraced"] + found["unknown"])


class Timeline(Folder):
    """--chrome-trace."""

    def timeline(self, *arguments, data=None):
        """The parsed timeline, after the checks that hold for every one."""
        done = subprocess.run([PT_DUMP, "--chrome-trace", *map(str, arguments)], input=data,
                              capture_output=True)
        document = json.loads(done.stdout)
        self.assertEqual(set(document), {"displayTimeUnit", "otherData", "traceEvents"})
        last, depth, names = {}, collections.Counter(), {}
        for one in document["traceEvents"]:
            track = (one["pid"], one["tid"], one["name"] if one["ph"] == "C" else "")
            if one["ph"] == "M":
                names[one["pid"], one["tid"], one["name"]] = one["args"]
                continue
            self.assertGreaterEqual(one["ts"], last.get(track, 0), one)
            last[track] = one["ts"]
            depth[track] += {"B": 1, "E": -1}.get(one["ph"], 0)
            self.assertIn(depth[track], (0, 1))
            self.assertIn(one["ph"], "BEiC")
        self.assertEqual(set(depth.values()) - {0}, set())
        for pid in {pid for pid, _, _ in last}:
            self.assertIn((pid, 0, "process_name"), names)
        return done.returncode, document, names

    @staticmethod
    def count(document, phase, name):
        return sum(one["ph"] == phase and one.get("name") == name
                   for one in document["traceEvents"])

    def test_a_small_timeline(self):
        # TSC 1000H, CR3, on at TSC 2000H, an interrupt, PTWRITE, off at TSC 3000H
        data = PSB + bytes.fromhex("1900100000000000" "0243000010000000" "02031400" "0223"
                                   "1900200000000000" "71001000000000" "06" "3d0510" "2d0020"
                                   "021211223344" "1900300000000000" "01")
        status, document, names = self.timeline("-", data=data)
        self.assertEqual(status, 0)
        self.assertEqual(names[1, 0, "process_name"], {"name": "-"})
        self.assertEqual(names[1, 1, "thread_name"], {"name": "control flow"})
        found = [(one["ph"], one["ts"], one.get("name"), one.get("args"))
                 for one in document["traceEvents"] if one["ph"] != "M"]
        self.assertEqual(found, [
            ("B", 4.096, "cr3 0x1000000", {"cr3": "0x1000000", "nr": 0}),
            ("C", 4.096, "core:bus ratio", {"ratio": 20}),
            ("i", 4.096, "psb", {"offset": 36, "ip": None}),
            ("B", 8.192, "traced", {"offset": 46, "ip": "0x1000"}),
            ("i", 8.192, "async_branch", {"offset": 54, "ip": "0x1005", "to": "0x2000"}),
            ("i", 8.192, "ptwrite", {"offset": 60, "size": 4, "payload": "0x44332211",
                                     "ip": None}),
            ("E", 12.288, None, None),
            ("C", 4.096, "branches", {"branches": 1}),
            ("C", 10.0, "branches", {"branches": 0}),
            ("E", 12.288, None, None)])
        self.assertEqual(document["otherData"]["ts"].split(":")[0], "TSC ticks / 1000")

    def test_counts_of_recorded_traces(self):
        for name, data, _, lines in undamaged():
            if name.startswith("libipt"):
                continue
            events = [fields_of(line) for line in lines]
            kinds = collections.Counter(kind for _, kind, _ in events)
            opened, is_open, branches, space, spaces = 0, False, 0, None, 0
            for _, kind, fields in events:
                if kind in ("enabled", "resumed") or (kind == "psb" and fields["ip"] != "-"):
                    opened, is_open = opened + (not is_open), True
                elif kind in ("disabled", "async_disabled", "overflow", "!damage", "psb"):
                    is_open = False
                elif kind == "branches":
                    branches += int(fields["n"])
                elif kind == "indirect_branch":
                    branches += 1
                elif kind == "paging" and space != (fields["cr3"], fields["nr"]):
                    space, spaces = (fields["cr3"], fields["nr"]), spaces + 1
            _, document, _ = self.timeline("--mtc-freq", "3", "--tsc-ratio", "84/1", "-", data=data)
            for kind in ("async_branch", "async_disabled", "overflow", "psb", "ptwrite"):
                self.assertEqual(self.count(document, "i", kind), kinds[kind], (name, kind))
            self.assertEqual(self.count(document, "i", "damage"), kinds["!damage"], name)
            self.assertEqual(self.count(document, "B", "traced"), opened, name)
            self.assertEqual(sum("cr3" in one.get("args", {}) for one in document["traceEvents"]),
                             spaces, name)
            self.assertEqual(sum(one["args"]["branches"] for one in document["traceEvents"]
                                 if one.get("name") == "branches"), branches, name)

    def test_times_are_those_of_the_events(self):
        data = traces.recorded("google-m7-piped-idx0")
        options = ["--mtc-freq", "3", "--tsc-ratio", "50/1", "--perf-clock", "10,700,5"]
        objects = [json.loads(line) for line in
                   run("--events", "--time", "--json", *options, "-", data=data)[1].splitlines()]
        wanted = [(one["offset"], one["ns"]) for one in objects if one["event"] == "async_branch"]
        _, document, _ = self.timeline(*options, "-", data=data)
        self.assertEqual([(one["args"]["offset"], round(one["ts"] * 1000))
                          for one in document["traceEvents"] if one.get("name") == "async_branch"],
                         wanted)
        self.assertGreater(len(wanted), 5)
        self.assertIn("given clock", document["otherData"]["ts"])

    def test_an_interval_that_begins_with_damage_has_the_ip_of_the_event(self):
        # After an OVF, TIP(1000H) without FUP or TIP.PGE; GEN-227.
        data = PSB + bytes.fromhex("0223" "02f3" "4d001000000000" "01")
        _, document, _ = self.timeline("-", data=data)
        found = [(one["ph"], one.get("name"), one.get("args", {}).get("ip"))
                 for one in document["traceEvents"] if one["ph"] in "BEi" and one["tid"] == 1]
        self.assertEqual(found[-3:], [("i", "damage", None), ("B", "traced", "0x1000"),
                                      ("E", None, None)])

    def test_a_trace_without_tsc_is_drawn_by_offset(self):
        _, document, names = self.timeline("-", data=ENABLED + b"\0" * 1000 + b"\x01")
        self.assertIn("offset", names[1, 0, "process_labels"]["labels"])
        ends = [one["ts"] for one in document["traceEvents"] if one["ph"] == "E"]
        self.assertEqual(ends, [1.025])

    def test_events_before_the_first_tsc_have_its_time(self):
        _, document, _ = self.timeline("-", data=ENABLED + bytes.fromhex("06" "1900100000000000"
                                                                         "06" "01"))
        self.assertEqual({one["ts"] for one in document["traceEvents"]
                          if one["ph"] in "BE"}, {4.096})

    def test_more_events_before_a_tsc_than_are_kept(self):
        _, document, names = self.timeline("-", data=ENABLED + b"\x06" * 5000 +
                                           bytes.fromhex("1900100000000000" "0601"))
        self.assertIn((1, 0, "process_labels"), names)
        self.assertEqual(sum(one["args"]["branches"] for one in document["traceEvents"]
                             if one.get("name") == "branches"), 5001)

    def test_hostile_file_names(self):
        for name in ('a"b\\c\nd', "\x01\x1b[2J", "</script>", "\u2028", b"\xff\xfe\"", "{}],"):
            path = pathlib.Path(str(self.folder)) / (name if isinstance(name, str)
                                                      else name.decode(errors="surrogateescape"))
            try:
                path.write_bytes(ENABLED)
            except OSError:
                continue
            _, _, names = self.timeline(path)
            wanted = str(path).encode(errors="surrogateescape").decode(errors="replace")
            self.assertEqual(names[1, 0, "process_name"]["name"], wanted)

    def test_several_files(self):
        one, two = self.file("one", ENABLED), self.file("two", ENABLED + b"\x05")
        empty = self.file("empty", b"")
        status, document, names = self.timeline(empty, one, self.folder / "none", two)
        self.assertEqual(status, 2)
        self.assertEqual([names[pid, 0, "process_name"]["name"] for pid in (2, 4)],
                         [str(one), str(two)])
        self.assertEqual({one["pid"] for one in document["traceEvents"]}, {2, 4})
        status, document, _ = self.timeline(empty)
        self.assertEqual((status, document["traceEvents"]), (2, []))

    def test_damaged_traces(self):
        noise = random.Random(3)
        damaged = [data for name, data, _, _ in traces.all_traces() if name.startswith("bad-")]
        damaged += [b"".join(PSB + noise.randbytes(noise.randrange(300)) for _ in range(300))
                    for _ in range(10)]
        for data in damaged:
            lines = events_of(data=data)
            for options in (["--non-turbo", "24", "--mtc-freq", "3", "--tsc-ratio", "84/1"],
                            ["--perf-clock", "32,4294967295,18446744073709551615"]):
                status, document, _ = self.timeline(*options, "-", data=data)
                self.assertEqual(self.count(document, "i", "damage"),
                                 sum(" !damage " in line for line in lines))
                self.assertEqual(status, run("--events", "-", data=data)[0])

    def test_memory_does_not_grow_with_the_trace(self):
        data = (ENABLED + b"\x06" * 2000 + b"\x01") * 8000
        path = self.file("large", data)

        def limit():
            resource.setrlimit(resource.RLIMIT_DATA, (12 << 20, 12 << 20))

        for options in (["--events"], ["--events", "--time", "--json"], ["--chrome-trace"],
                        ["--summary", "--time"], ["--time"]):
            done = subprocess.run([PT_DUMP, *options, path], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, preexec_fn=limit)
            self.assertEqual((done.returncode, done.stderr), (0, b""), options)


if __name__ == "__main__":
    skips.main(sys.argv[:1] + sys.argv[2:])
