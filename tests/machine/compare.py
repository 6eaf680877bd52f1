#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Records in examples/tools/machine with perf, and compares the instructions that pt_flow and perf
find in the traces with those that the emulator logged itself.

    compare.py [--list] [--only NAME].. [--quick] [--folder FOLDER [--again]] [--no-perf]
    compare.py --random N [--seed S]

  --list           print the names of the recordings
  --only NAME      only this one; repeatable
  --quick          twelve of them
  --random N       N recordings with options, programs and processors that the seed draws
  --folder FOLDER  keep all files here
  --again          boot nothing: compare the files in FOLDER
  --no-perf        without the decoder of perf, which is slow

`tests/run --build pt_flow pt_twin pt_trace` must have built these. The boot has full speed:
when a recording begins, the monitor of the emulator starts its log, one line an instruction. In a
line, bit 30 of the flags is set while TraceEn is 1, and bits 0 and 1 are the CPL.

A line of the log is not an executed instruction, and is left out and counted, if
- the emulator says that it stopped before it;
- the emulator says that an exception or interrupt began at its address: also INT3 and INT n, whose
  FUP has their own address, so that decoders do not list them;
- it repeats the address of the line before: an iteration of REP, or an access to a device that
  the emulator executes a second time. Repetitions are left out of the decoded instructions, too.

The WRMSR that clears TraceEn is executed and in the log, but the trace ends with FUP at it and
TIP.PGD (GEN-183), so that decoders do not list it. As many of them must be missing as the trace has
such pairs of packets, each at the IP of a FUP.

The code of a module that is loaded later than perf copied the kernel is not known: there is a gap
up to the next packet with an IP, and one at each return to it. What is missing is counted as
`later`; what is found must follow each other in the log. Where a program changes the kernel's code,
the names of all functions must be those of kallsyms, which it copies meanwhile.

Exit status: 0 all equal, 1 a difference.
"""

import argparse
import array
import bisect
import collections
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import perf_files
from common import BUILD, MACHINE, ROOT, need
from recordings import QUICK, RECORDINGS, drawn

PROGRAMS = ROOT / "tests/machine/programs"
TRACED = re.compile(
    r"^Trace (\d+): \S+ \[[0-9a-f]+/([0-9a-f]+)/([4-7c-f][0-9a-f]{7})/[0-9a-f]+\]|"
    r"^Stopped execution .* \[([0-9a-f]+)\]|^ *\d+: v=.* cpl=\d IP=\S+ pc=([0-9a-f]+)")

GUEST = """#!/bin/sh
mkdir -p out
mkfifo ctl ack
{steps}
dmesg > out/dmesg
echo "@over@"
"""
STEP = """{{ {command}
}} > out/{name}.text 2>&1
"""


def modules_of(recordings):
    """The files of modules, of the kernel that the machine boots."""
    releases = sorted(pathlib.Path("/lib/modules").glob("*-cloud-amd64"))
    return [releases[-1] / "kernel" / name for one in recordings for name in one.files]


class guest:
    """A machine that runs recordings; the log of its emulator is on during each one."""

    def __init__(self, folder, recordings, programs):
        self.folder = folder
        first = recordings[0]
        script = folder / "script"
        script.write_text(GUEST.format(steps="".join(
            STEP.format(name=one.name, command=one.in_guest)
            for one in recordings)), encoding="utf-8")
        words = [sys.executable, "-B", MACHINE, "run", "--script", script, "--seconds", "900",
                 "--preset", first.preset, "--cpus", first.cpus]
        if first.kind:
            words += ["--kind", first.kind]
        for one in [*programs, BUILD / "bin/pt_trace", *modules_of(recordings)]:
            words += ["--file", one]
        self.filter = None
        self.console = []
        self.errors = open(folder / "errors", "wb")
        self.process = subprocess.Popen([str(word) for word in words], cwd=folder,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors)

    def run(self):
        """Follows the machine to its end; returns its exit status."""
        for line in self.process.stdout:
            self.console.append(line)
            found = re.search(rb"@(begin|end):([\w-]+)@", line)
            if found:
                name = found[2].decode()
                self.start(name) if found[1] == b"begin" else self.stop()
        status = self.process.wait()
        self.errors.close()
        (self.folder / "console").write_bytes(b"".join(self.console))
        return status

    def monitor(self, *commands):
        """Executes commands of the emulator's monitor, and answers the script."""
        text = "\x01c" + "".join(f"{one}\n" for one in commands) + "\x01cgo\n"
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def start(self, name):
        fifo = self.folder / "log.fifo"
        if fifo.exists():
            fifo.unlink()
        os.mkfifo(fifo)
        command = ("LC_ALL=C grep -aE "
                   r"'^Trace [0-9]+: 0x[0-9a-f]+ \[[0-9a-f]+/[0-9a-f]+/[4-7c-f]|^Stopped|"
                   r"^ *[0-9]+: v=' "
                   f"< {fifo} >> {self.folder}/{name}.log")
        self.filter = subprocess.Popen(["sh", "-c", command])
        self.monitor(f"logfile {fifo}", "log exec,int")

    def stop(self):
        self.monitor("log none", f"logfile {self.folder}/rest")
        if self.filter.wait() > 1:
            raise OSError("the log was not filtered")


# ------------------------------------------------------------------------------------ truth

@dataclasses.dataclass
class truth:
    """The executed instructions of a processor, by the log."""
    ips: array.array
    stopped: int = 0
    faults: int = 0
    repeated: int = 0
    after: array.array | None = None  # those after TraceStop


def read_log(file, has_user, has_kernel):
    """The truth of each processor."""
    all_of = {}
    last = {}  # processor -> the pending line: address and CPL
    where = 0

    def put(cpu):
        line = last.pop(cpu, None)
        if line is None:
            return
        ip, cpl = line
        if not (has_user if cpl else has_kernel):
            return
        of = all_of[cpu]
        if of.ips and of.ips[-1] == ip:
            of.repeated += 1
        else:
            of.ips.append(ip)

    with open(file, encoding="latin-1") as lines:
        for line in lines:
            found = TRACED.match(line)
            if not found:
                continue
            if found[5] is not None:  # an exception or interrupt, with its IP
                ip = int(found[5], 16)
                for cpu in [where, *last]:
                    if cpu in last and last[cpu][0] == ip:
                        all_of[cpu].faults += last[cpu][1] != 0 or has_kernel
                        del last[cpu]
                        if all_of[cpu].ips and all_of[cpu].ips[-1] == ip:
                            all_of[cpu].ips.pop()  # REP, interrupted: it ends later
                        break
                continue
            if found[1] is None:
                if where in last and last[where][0] == int(found[4], 16):
                    del last[where]
                    all_of[where].stopped += 1
                continue
            where = int(found[1])
            ip, cpl = int(found[2], 16), int(found[3], 16) & 3
            of = all_of.setdefault(where, truth(array.array("Q")))
            put(where)
            last[where] = (ip, cpl)
    for cpu in list(last):
        put(cpu)
    return all_of


def limit(log, ranges, until):
    """Leaves the instructions in the ranges, or those before the first in them."""
    for of in log.values():
        is_in = [any(first <= ip < end for first, end in ranges) for ip in of.ips]
        if not until:
            of.ips = collapsed(ip for ip, holds in zip(of.ips, is_in) if holds)
        elif True in is_in:
            of.after = of.ips[is_in.index(True):]
            del of.ips[is_in.index(True):]


# ------------------------------------------------------------------------------------ decoders

def collapsed(numbers):
    made = array.array("Q")
    previous = None
    for one in numbers:
        if one != previous:
            made.append(one)
        previous = one
    return made


def of_pt_flow(folder, one, data, symfs):
    """The instructions of each stream, and the lines of gaps."""
    words = [BUILD / "bin/pt_flow", "--instructions", "--jobs", "1", "--symfs", symfs]
    if (folder / "out/vdso").exists():
        words += ["--vdso", folder / "out/vdso"]
    streams, gaps, current = [], [], None
    done = subprocess.Popen([str(word) for word in [*words, data]], stdout=subprocess.PIPE,
                            stderr=open(folder / f"{one.name}.flow.errors", "wb"), text=True)
    for line in done.stdout:
        if re.match(r"(0x)?[0-9a-f]{3,16}\b", line):
            if current is None:
                current = array.array("Q")
                streams.append(current)
            current.append(int(line.split()[0], 16))
        elif line.startswith("gap"):
            gaps.append(line.strip())
        else:
            current = array.array("Q")
            streams.append(current)
    done.wait()
    return [collapsed(stream) for stream in streams if stream], gaps


def of_perf(folder, one, data, symfs):
    """The instructions of each processor, and the number of errors."""
    streams, errors = {}, []
    fields = "cpu,ip" if "--per-thread" in one.command else "cpu,ip,time"  # those have no times
    words = ["perf", "script", "-i", data, "--itrace=i0nse", "-F", fields, "--ns"]
    before = {}
    if one.user:
        words += ["--symfs", symfs]
    done = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE,
                            stderr=open(folder / f"{one.name}.perf.errors", "wb"), text=True)
    for line in done.stdout:
        found = re.match(r"\s*\[(-?\d+)\]\s+(?:(\d+\.\d+):\s+)?([0-9a-f]+)", line)
        if found:
            cpu = int(found[1])
            streams.setdefault(cpu, array.array("Q")).append(int(found[3], 16))
            now = (found[2] or "").rjust(20)
            if now < before.get(cpu, ""):
                errors.append(f"time {now} after {before[cpu]}")
            before[cpu] = now
        else:
            errors.append(line.strip())
    done.wait()
    said = (folder / f"{one.name}.perf.errors").read_text(encoding="utf-8", errors="replace")
    errors += re.findall(r"instruction trace error.*", said)
    if len(streams) > 1:
        streams.pop(-1, None)  # samples of another event, which have no CPU
    return {cpu: collapsed(stream) for cpu, stream in streams.items()}, errors


# ------------------------------------------------------------------------------------ comparison

def foreign(expected, found, widths=(6,)):
    """Stretches of `found` that do not follow each other in `expected`: (index, 0, extra). Where
    they do not continue, the next as many of one of the widths are looked for."""
    where = expected.tobytes()
    i = j = 0
    all_of = []
    while j < len(found):
        step = 1 << 16
        while step:
            if i + step <= len(expected) and j + step <= len(found) and \
                    expected[i:i + step] == found[j:j + step]:
                i, j = i + step, j + step
            else:
                step >>= 1
        if j == len(found):
            break
        at = -1
        for width in widths:
            wanted = found[j:j + width].tobytes()
            at = where.find(wanted, 8 * i) if at == -1 else at
            while at % 8 and at != -1:
                at = where.find(wanted, at + 1)
        if at != -1:
            i = at // 8
            continue
        all_of.append((i, 0, 1))
        j += 1
    return all_of


def differences(expected, found, window=4000, same=6):
    """Stretches where the sequences differ, each (index, missing, extra)."""
    i = j = 0
    all_of = []
    while i < len(expected) or j < len(found):
        step = 1 << 16
        while step:
            if expected[i:i + step] == found[j:j + step] and i + step <= len(expected) and \
                    j + step <= len(found):
                i, j = i + step, j + step
            else:
                step >>= 1
        if i == len(expected) and j == len(found):
            break
        places = {}
        for b in range(min(window, len(found) - j)):
            places.setdefault(found[j + b], []).append(b)
        best = None
        for a in range(min(window, len(expected) - i)):
            if best and a >= best[0] + best[1]:
                break
            for b in places.get(expected[i + a], ()):
                if (best is None or a + b < sum(best)) and \
                        expected[i + a:i + a + same] == found[j + b:j + b + same]:
                    best = (a, b)
                    break
        if best is None:
            all_of.append((i, len(expected) - i, len(found) - j))
            break
        all_of.append((i, *best))
        i, j = i + best[0], j + best[1]
    return all_of


def shown(expected, found_stretches, count=3):
    for at, missing, extra in found_stretches[:count]:
        near = " ".join(f"{ip:x}" for ip in expected[max(0, at - 2):at + 4])
        yield f"    at {at}: {missing} missing, {extra} extra: {near}"


# ------------------------------------------------------------------------------------ all of it

def build_programs(folder):
    made = {}
    folder.mkdir(parents=True, exist_ok=True)
    others = {
        "code32": ["-m32", "-nostdlib", "-ffreestanding", "-static", "-no-pie", "-fno-pic",
                   "-fno-stack-protector"],
        "shared": ["-pie", "-fPIE"],
    }
    static = ["-static", "-no-pie", "-pthread", "-mptwrite"]
    for source in sorted(PROGRAMS.glob("*.cpp")):
        target = folder / source.stem
        subprocess.run(["g++", "-std=c++20", "-O1", *others.get(source.stem, static), source,
                        "-o", target], check=True)
        made[source.stem] = target
    return made


def stored_of(folder):
    said = (folder / "errors").read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"processor (\d+): (\d+) bytes stored, (\d+) lost", said)
    return sum(int(one[1]) for one in found), sum(int(one[2]) for one in found)


def packets_of(data):
    """The packets of a trace, each with its operands, as perf lists them."""
    listed = subprocess.run(["perf", "script", "-D", "-i", data / "data" if data.is_dir() else data,
                             "--itrace="], capture_output=True, text=True, errors="replace",
                            check=False).stdout
    return re.findall(r"^\.  [0-9a-f]{8}: +(?:[0-9a-f]{2} )+ +(\S.*)$", listed, re.MULTILINE)


def cleared_of(data):
    """The WRMSRs that clear TraceEn while the kernel is traced: the low 16 bits of their IPs."""
    made = []
    fup = None
    for packet in packets_of(data):
        name, *words = packet.split()
        if name == "FUP":
            fup = int(words[0], 16) & 0xFFFF if words[0] != "no" else None
        elif name == "TIP.PGD" and words == ["no", "ip"] and fup is not None:
            made.append(fup)
        elif name not in ("PAD", "MTC", "CYC"):
            fup = None
    return made


def functions_of(one, program, data):
    """Address ranges of the functions that the recording names."""
    names = [*one.within, *([one.until] if one.until else [])]
    if one.kernel:
        listed = (data / "kcore_dir/kallsyms").read_text(encoding="utf-8")
        places = sorted((int(line.split()[0], 16), line.split()[2]) for line in listed.splitlines())
        starts = {name: at for at, name in places}
        return [(starts[name], min(at for at, _ in places if at > starts[name]))
                for name in names]
    listed = subprocess.run(["nm", "-S", program], capture_output=True, text=True,
                            check=True).stdout
    sizes = {line.split()[3]: (int(line.split()[0], 16), int(line.split()[1], 16))
             for line in listed.splitlines() if len(line.split()) == 4}
    return [(sizes[name][0], sum(sizes[name])) for name in names]


def copies_in(file):
    """The lines of each copy of kallsyms in a file."""
    made, first = [], None
    for line in file.read_text(encoding="utf-8").splitlines():
        first = first or line
        if line == first:
            made.append([])
        made[-1].append(line)
    return made


def names_of(kallsyms, copy):
    """The names of functions at each address."""
    names = {}
    for line in [*kallsyms.read_text(encoding="utf-8").splitlines(), *copy]:
        place, kind, name = line.split("\t")[0].split()
        if kind in "tTwW":
            names.setdefault(int(place, 16), set()).add(name)
    return names


def unloaded_at(data):
    """The times at which BPF programs were unloaded."""
    words = ["perf", "script", "-i", data, "--show-bpf-events", "--ns", "--itrace="]
    listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return re.findall(r" (\d+\.\d+): PERF_RECORD_KSYMBOL .* type 1 flags 0x1 ", listed)


def later_in(kallsyms):
    """The space of modules without the pages of those that perf copied."""
    first, end, page = 0xFFFFFFFFC0000000, 0xFFFFFFFFFF000000, 0x1000
    known = {int(line.split()[0], 16) & -page for line in
             kallsyms.read_text(encoding="utf-8").splitlines() if line.endswith("]")}
    made = []
    for place in sorted(one for one in known if first <= one < end):
        made.append((first, place))
        first = place + page
    return [*made, (first, end)]


def is_within(text, ranges):
    """Whether an error is at one of these addresses, or that a call there is not known."""
    if text.startswith("gap missing-call"):
        return True
    found = re.search(r"missing=0x([0-9a-f]+)| ip 0x([0-9a-f]+)", text)
    place = int(found[1] or found[2], 16) if found else 0
    return any(first <= place < end for first, end in ranges)


class comparison:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.programs = build_programs(folder / "programs")
        self.failed = 0
        self.rows = []
        self.twins = [0, 0]  # segments, and equal bytes

    def fail(self, one, text):
        self.failed += 1
        print(f"  {one}: {text}", flush=True)

    def make_symfs(self, symfs):
        """The files of the machine's system that have code."""
        (symfs / "files").mkdir(parents=True)
        for name, file in self.programs.items():
            shutil.copy(file, symfs / "files" / name)
        shutil.copy(BUILD / "bin/pt_trace", symfs / "files")
        for place in ("lib", "lib64", "usr/lib", "bin/busybox"):  # those of perf and busybox
            (symfs / place).parent.mkdir(parents=True, exist_ok=True)
            (symfs / place).symlink_to(f"/{place}")
        (symfs / "usr/bin").mkdir()
        perf = sorted(pathlib.Path("/usr/bin").glob("perf_[0-9]*"))
        (symfs / "usr/bin/perf").symlink_to(perf[-1] if perf else "/usr/bin/perf")

    def boot(self, recordings):
        first = recordings[0]
        folder = self.folder / (f"{first.preset}-{first.kind or 'own'}-{first.cpus}"
                                f"{'-overwritten' if first.is_overwritten else ''}")
        symfs = folder / "symfs"
        status = 0
        if not self.options.again:
            shutil.rmtree(folder, ignore_errors=True)
            self.make_symfs(symfs)
            started = time.monotonic()
            status = guest(folder, recordings, self.programs.values()).run()
            print(f"{folder.name}: {len(recordings)} recordings, {time.monotonic() - started:.0f} "
                  "s", flush=True)
        if status != 0 or not (folder / "out/dmesg").exists():
            self.fail(folder.name, f"exit status {status}: "
                      f"{(folder / 'errors').read_text(encoding='utf-8', errors='replace')}")
            return
        said = (folder / "out/dmesg").read_text(encoding="utf-8", errors="replace")
        for line in re.findall(
                r".*(?:unchecked MSR|general protection|WARNING: CPU|BUG:|Oops).*", said):
            self.fail(folder.name, line)
        total = records = 0
        for one in recordings:
            sizes = self.compare(folder, one, symfs)
            total += sizes[0]
            records += sizes[1]
        stored, lost = stored_of(folder)
        if records != stored and not first.is_overwritten and not self.options.again:
            self.fail(folder.name, f"{stored} bytes stored, {records} in AUX records")
        print(f"  unit: {stored} bytes stored, {lost} lost; in files {total}, AUX {records}")

    def compare(self, folder, one, symfs):
        output = (folder / f"out/{one.name}.text").read_text(encoding="utf-8", errors="replace")
        data = folder / f"out/{one.name}.data"
        if one.says and not re.search(one.says, output):
            self.fail(one.name, f"does not say {one.says!r}: {output}")
        if not data.exists():
            if not one.says:
                self.fail(one.name, f"no file: {output}")
            return 0, 0
        trace = perf_files.read(data)
        in_file, records, truncated = trace.in_file, trace.size, trace.truncated
        if (truncated != 0) != one.truncated:
            self.fail(one.name, f"{truncated} AUX records are truncated")
        self.make_again(folder, one, trace)
        if not one.compares:
            self.rows.append((one.name, "", 0, 0, in_file, records, truncated, ""))
            self.hold_packets(one, data)
            return in_file, records
        log = read_log(folder / f"{one.name}.log", one.user, one.kernel)
        if one.within or one.until:
            limit(log, functions_of(one, self.programs[one.program], data), one.until != "")
        for version in folder.glob("out/code-*"):
            (symfs / "files/out").mkdir(exist_ok=True)
            shutil.copy(version, symfs / "files/out")
        streams, gaps = of_pt_flow(folder, one, data, symfs)
        cleared = cleared_of(data) if one.kernel else []
        later = later_in(data / "kcore_dir/kallsyms") if one.later else ()
        sizes = in_file, records, truncated
        self.hold(one, "pt_flow", log, streams, gaps, sizes, cleared, later)
        self.hold_values(one, data, symfs)
        if one.names:
            self.hold_names(folder, one, data)
        if "perf" in one.decoders and not self.options.no_perf:
            streams, errors = of_perf(folder, one, data, symfs)
            self.hold(one, "perf", log, [streams[cpu] for cpu in sorted(streams)], errors,
                      sizes, cleared, later)
        return in_file, records

    def make_again(self, folder, one, trace):
        """pt_twin makes the bytes of the trace from what they say."""
        if not one.is_made_again:
            return
        kind = one.kind or {"Skylake-X": "skylake", "AlderLake-N": "atom"}[one.preset]
        for number, raw in enumerate(trace.raw):
            file = folder / f"{one.name}.{number}.pt"
            file.write_bytes(raw)
            done = subprocess.run([BUILD / "bin/pt_twin", "--kind", kind, file],
                                  capture_output=True, text=True, check=False)
            found = re.search(r"twin: segments (\d+) of (\d+) equal, bytes (\d+)", done.stdout)
            if found:
                self.twins[0] += int(found[2])
                self.twins[1] += int(found[3])
            if done.returncode != 0:
                self.fail(one.name, f"pt_twin: {done.stdout[-600:]}{done.stderr}")

    def hold_packets(self, one, data):
        found = collections.Counter(packet.split()[0] for packet in packets_of(data))
        for term in one.packets.split():
            if (found[term[1:]] != 0) != (term[0] == "+"):
                self.fail(one.name, f"{term}: {dict(found)}")

    def hold_values(self, one, data, symfs):
        if not one.values:
            return
        listed = subprocess.run(["perf", "script", "--symfs", symfs, "-i", data, "--itrace=we",
                                 "-F", "ip,event,synth"], capture_output=True, text=True,
                                check=False).stdout
        values = [int(value, 16) for value in re.findall(r"payload: (0x[0-9a-f]+)", listed)]
        if values != list(one.values):
            self.fail(one.name, f"PTWRITE: {len(values)} values, {len(one.values)} expected")

    def hold_names(self, folder, one, data):
        """Each instruction belongs to the function that kallsyms names at its time, in the sums of
        pt_flow."""
        copies = copies_in(folder / f"out/{one.name}.kallsyms")
        times = unloaded_at(data) if len(copies) > 1 else []
        functions = wrong = total = 0
        for number, copy in enumerate(copies):
            first = f"{times[number - 1]}" if number else ""
            last = f"{times[number]}" if number + 1 < len(copies) else ""
            limits = ["--time", f"{first}-{last}"] if first or last else []
            names = names_of(data / "kcore_dir/kallsyms", copy)
            expected, found = self.sums_of(data, limits, names)
            differ = [(name, expected[name], found[name]) for name in sorted(expected | found)
                      if expected[name] != found[name]]
            if differ:
                self.fail(one.name, f"names: {len(differ)} of {len(expected)} functions differ: "
                          f"{differ[:8]}")
            functions, total = functions + len(expected), total + sum(expected.values())
            wrong += len(differ)
        self.rows.append((one.name, "names", total, wrong, 0, 0, 0, f"{functions} functions"))

    def sums_of(self, data, limits, names):
        """The number of instructions of each function: by kallsyms, and by pt_flow."""
        starts, same = sorted(names), {}
        for all_of in names.values():
            for alias in all_of:
                same[alias] = min(all_of)
        made = [collections.Counter(), collections.Counter()]
        for form, to in zip(("--instructions", "--folded"), made):
            listed = subprocess.run([BUILD / "bin/pt_flow", form, "--jobs", "1", *limits, data],
                                    capture_output=True, text=True, check=False).stdout
            for line in listed.splitlines():
                if form == "--instructions" and line.startswith("0x"):
                    at = starts[bisect.bisect(starts, int(line.split()[0], 16)) - 1]
                    to[same[min(names[at])].removesuffix(".cold")] += 1
                elif form == "--folded" and not re.match(r"(cpu|thread) [\d?]", line):
                    stack, count = line.rsplit(" ", 1)
                    name = stack.rsplit(";", 1)[-1].split(" [tail of ")[0]
                    to[same.get(name, name)] += int(count)
        return made

    def hold(self, one, decoder, log, streams, errors, sizes, cleared, later=()):
        """Compares the streams of a decoder with the log. `later`: addresses of unknown code."""
        expected = [log[cpu].ips for cpu in sorted(log) if log[cpu].ips]
        if len(expected) == 1:  # one processor: streams of threads follow each other
            joined = array.array("Q")
            for stream in streams:
                joined.extend(stream)
            streams = [collapsed(joined)]
        compared = bad = left_out = of_later = 0
        for number, ips in enumerate(expected):
            found = streams[number] if number < len(streams) else array.array("Q")
            after = log[sorted(log)[0]].after
            if after and 0 < len(found) - len(ips) < 1000:
                # Linux resumes the trace when it executes another task: the end of `gate`.
                ips = ips + after[len(ips) - len(found):]
            if later:  # the stretches between gaps can be short
                stretches = foreign(ips, found, (6, 2, 1))
            else:
                stretches = (foreign if one.part else differences)(ips, found)
            is_rule = [(missing, extra) == (1, 0) and ips[at] & 0xFFFF in cleared
                       for at, missing, extra in stretches]
            stretches = [of for of, holds in zip(stretches, is_rule) if not holds]
            left_out += sum(is_rule)
            of_later += len(ips) - len(found) if later else 0
            compared += len(found)
            bad += len(stretches)
            if stretches:
                self.fail(one.name, f"{decoder}: {len(stretches)} differences, "
                          f"{len(ips)} expected, {len(found)} found")
                print("\n".join(shown(ips, stretches)))
        if left_out != len(cleared) and not later:
            self.fail(one.name, f"{decoder}: {left_out} WRMSRs missing, {len(cleared)} end traces")
        if not expected:
            self.fail(one.name, "the log has no instruction")
        if compared < max(one.least, 1):
            self.fail(one.name, f"{decoder}: {compared} instructions, {one.least} at least")
        if later:
            errors = [text for text in errors if not is_within(text, later)]
        if errors and not one.part:
            self.fail(one.name, f"{decoder}: {len(errors)} errors, {errors[:3]}")
        rules = ", ".join(f"{sum(getattr(of, rule) for of in log.values())} {rule}"
                          for rule in ("faults", "stopped", "repeated"))
        rules += f", {left_out} of {len(cleared)} cleared" if cleared else ""
        rules += f", {of_later} later" if later else ""
        self.rows.append((one.name, decoder, compared, bad, *sizes, rules))

    def table(self):
        print(f"pt_twin: {self.twins[0]} segments, {self.twins[1]} bytes equal")
        print(f"{'recording':16} {'decoder':8} {'compared':>10} {'differ':>7} {'in file':>9} "
              f"{'AUX':>9} {'cut':>4}  left out of the log")
        for row in self.rows:
            print("{:16} {:8} {:>10} {:>7} {:>9} {:>9} {:>4}  {}".format(*row))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--no-perf", action="store_true")
    options = parser.parse_args()
    names = QUICK if options.quick else options.only
    unknown = set(names) - {one.name for one in RECORDINGS}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if not options.list:
        need(parser, "pt_flow", "pt_twin", "pt_trace")
    chosen = [one for one in RECORDINGS if not names or one.name in names]
    if options.list:
        print("\n".join(one.name for one in chosen))
        return 0
    if options.random:
        print(f"seed {options.seed}")
        chosen = drawn(options.random, options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.folder or pathlib.Path(scratch)).resolve()
        work = comparison(options, folder)
        boots = {}
        for one in chosen:
            boots.setdefault(one.boot, []).append(one)
        for recordings in boots.values():
            work.boot(recordings)
        work.table()
    print(f"{len(chosen)} recordings, {work.failed} failed")
    return 1 if work.failed else 0


if __name__ == "__main__":
    sys.exit(main())
