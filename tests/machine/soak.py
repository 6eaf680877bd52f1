#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs a random mix of recordings in the machine of examples/tools/machine, with kills of perf,
modules and processors that come and go, and checks what is left.

    soak.py [--minutes N] [--seed S] [--cpus N] [--boot K] [--steps N] [--only KIND]..
            [--root IMAGE] [--keep FOLDER]

  --minutes N    begin no boot after this time (20)
  --seed S       draws everything; without it a new one, which is printed
  --cpus N       processors (2)
  --boot K       only this boot of the seed; repeatable
  --steps N      steps of a boot (12)
  --only KIND    only steps of this kind, such as `offline`; repeatable
  --root IMAGE   on a root of `machine root`; else in memory, from where modules are loaded, too
  --keep FOLDER  keep the files of each boot here

A boot has a preset and a kind, drawn like its steps. After each step:
- it ended within its limit, in the machine's time, and the boot within that of the host;
- dmesg has no WARN, BUG, unchecked access to an MSR, #GP of the kernel, stall or lockup;
- `perf script --itrace=e` and pt_flow decode each perf.data without an error other than those that
  it explains: records LOST, a truncated trace, perf killed. Kernel code that changes while it is
  traced is listed, and is no failure, as is code that is not known without times, or with those
  of TSC packets alone (`tsc=0`, `mtc=0`);
- the units stored at least the bytes in the files, and exactly those in a boot that is `exact`:
  without steps that lose some of them.

Needs what `machine run` needs, gcc, and pt_flow (`tests/run --build pt_flow`).
Exit status: 0, 1 (a difference), 2 (wrong usage).
"""

import argparse
import dataclasses
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import perf_files
from common import BUILD, HERE, MACHINE, parse, perf_errors

MODULES = ["kernel/drivers/net/dummy.ko", "kernel/drivers/block/loop.ko", "kernel/lib/crc7.ko"]
PRESETS = ["Skylake-X", "AlderLake-N", "AlderLake-N", "Broadwell-ULT", "IceLake-U", "TigerLake",
           "SapphireRapids", "Goldmont", "ElkhartLake", "LunarLake-P", "LunarLake-E", "P-FUT",
           "Lakefield-E", "PantherLake-E", "QEMU"]
KINDS = ["", "", "manual", "broadwell", "skylake", "icelake", "atom"]
WORK = ["forks", "threads", "signals", "faults", "strings", "ptwrite", "all"]
BAD = re.compile(r"WARNING: CPU|WARNING: possible|BUG:|unchecked MSR|general protection fault, "
                 r"(?!ip)|Dazed and confused|stall|soft lockup|hard LOCKUP|Oops|hung_task|"
                 r"blocked for more|uncorrectable|Uhhuh")


# ------------------------------------------------------------------------------------ steps

@dataclasses.dataclass
class step:
    kind: str
    script: str
    loses: bool = False    # the file does not have all bytes that the units stored
    killed: bool = False   # perf ended without completing its file
    changes: bool = False  # code of the kernel changes
    refusal: bool = False  # perf may refuse
    busy: bool = False     # several perf: what they must do is in the script
    repeats: bool = False  # bytes may be in the file twice


def terms_of(draw):
    """A few of the words of intel_pt."""
    known = [["cyc"], ["cyc", "cyc_thresh=%d" % draw.randrange(1, 8)],
             ["mtc_period=%d" % draw.choice([0, 3, 6, 9])],
             ["psb_period=%d" % draw.choice([0, 1, 2, 3, 5])], ["noretcomp"], ["ptw", "fup_on_ptw"],
             ["ptw"], ["event"], ["pwr_evt"], ["tsc=0", "mtc=0"], ["mtc=0"]]
    made = []
    for one in draw.sample(known, draw.choice([0, 0, 1, 1, 2, 3])):
        if not {word.split("=")[0] for word in one} & {word.split("=")[0] for word in made}:
            made += one
    return ",".join(made)


def record(number, rest, options="", kcore=False):
    return (f"perf record {'--kcore ' if kcore else ''}-N --no-bpf-event -o {number}.data "
            f"{options} {rest}")


def work(draw, what=None, most=30):
    return f"./soak_work {what or draw.choice(WORK)} {draw.randrange(2, most)}"


def sleep(draw):
    return f"sleep 0.{draw.randrange(1, 60):03}"


def a_user(draw, n):
    terms = terms_of(draw)
    return step("user", record(n, f"-e intel_pt/{terms}/u {work(draw)}"), refusal=bool(terms))


def a_kernel(draw, n):
    terms = terms_of(draw)
    return step("kernel", record(n, f"-e intel_pt/{terms}/{draw.choice(['k', ''])} "
                                    f"{work(draw, most=8)}", "-m,1024", kcore=True),
                refusal=bool(terms), loses=True)


def a_system(draw, n):
    terms = terms_of(draw)
    return step("system", record(n, f"-a -e intel_pt/{terms}/u {work(draw)}"),
                refusal=bool(terms))


def a_thread(draw, n):
    return step("thread", record(n, f"--per-thread -e intel_pt//u "
                                    f"{work(draw, draw.choice(['signals', 'faults', 'strings']))}"))


def a_snapshot(draw, n):
    script = record(n, f"{draw.choice(['', '-a '])}-e intel_pt//u ./soak_work forever 5",
                    "-m,%d -S" % draw.choice([4, 16, 64])) + " & P=$!\nready $P\n"
    for _ in range(draw.randrange(1, 4)):
        script += f"{sleep(draw)}; kill -USR2 $P\n"
    return step("snapshot", script + f"{sleep(draw)}; stop $P; exit $R", loses=True,
                repeats=True)


def a_sample(draw, n):
    return step("sample", record(
        n, f"--aux-sample={draw.choice([1024, 4096, 8192])} -e '{{intel_pt//u,instructions:u}}' "
           f"-c {draw.choice([20000, 100000])} {work(draw)}"), loses=True, repeats=True)


def a_small(draw, n):
    return step("small", record(n, f"{draw.choice(['', '-a '])}-e intel_pt/cyc/u "
                                   f"{work(draw, 'all')}", f"-m,{draw.choice([1, 2, 4])}"),
                loses=True, refusal=True)


def a_filter(draw, n):
    what = draw.choice(["filter compute @ ./soak_work", "filter fault @ ./soak_work",
                        "filter main @ ./soak_work , filter compute @ ./soak_work"])
    return step("filter", record(n, f"-e intel_pt//u --filter '{what}' {work(draw, 'all')}"),
                refusal=True)


def a_kill(draw, n):
    what = draw.choice(["-a -e intel_pt//u", "-e intel_pt//", "-a -e intel_pt/cyc/",
                        "-S -e intel_pt//u"])
    return step("kill", record(n, f"{what} ./soak_work forever 5")
                + f" & P=$!\n{sleep(draw)}; kill -9 $P; wait $P; killall -9 soak_work", loses=True,
                killed=True, refusal=True)


def an_attach(draw, n):
    """If a thread exits after perf listed it, and before perf opens its event, perf warns, and ends
    at once with 255; its file is not finished. A child that is forked after perf opens the events,
    and before it enables them, is traced, and no record names it: its code is not known."""
    return step("attach", "./soak_work forever 4 & W=$!\n" + sleep(draw) + "\n"
                + record(n, "-e intel_pt//u -p $W", "-m,512")
                + f" & P=$!\nready $P; {sleep(draw)}; stop $P; kill -9 $W\n"
                "killall -9 soak_work; exit $R", loses=True)


def a_module(draw, n):
    name = pathlib.Path(draw.choice(MODULES)).name
    return step("module", record(n, "-a -e intel_pt//k", "-m,4096", kcore=True)
                + f" & P=$!\nready $P; {sleep(draw)}; insmod ./{name}; rmmod {name[:-3]}\n"
                f"insmod ./{name}\n"
                f"rmmod {name[:-3]}; stop $P; exit $R", changes=True, loses=True)


def an_offline(draw, n):
    what = draw.choice(["-a -e intel_pt//u", "-e intel_pt//u", "-a -e intel_pt//k"])
    online = "/sys/devices/system/cpu/cpu1/online"
    return step("offline", record(n, f"{what} ./soak_work forever 4", kcore=what.endswith("k"))
                + f" & P=$!\nready $P; {sleep(draw)}; echo 0 >{online}\n"
                f"{sleep(draw)}; echo 1 >{online}\n"
                f"{sleep(draw)}; [ $(cat {online}) = 1 ] || echo not online; stop $P\n"
                "killall -9 soak_work; exit 0", changes=True, loses=True)


def counters(draw, n):
    return step("counters", f"perf stat -a -e instructions,cycles,branches -o stat{n}.txt "
                            f"sleep 0.05 & S=$!\n"
                f"perf record -N -B --no-bpf-event -o other{n} -e "
                f"{draw.choice(['cycles', 'instructions'])}:u -c 50000 -a sleep 0.05 & O=$!\n"
                + record(n, f"-e intel_pt//u {work(draw)}") + f"; R=$?; wait $S $O\n"
                f"rm -f stat{n}.txt other{n}; exit $R")


def several(draw, n):
    """Per task beside per task works; system-wide beside anything is refused as busy."""
    one, other = draw.choice([("", ""), ("-a ", "-a "), ("", "-a "), ("-a ", "")])
    return step("several", record(n, f"{one}-e intel_pt//u ./soak_work forever 4")
                + f" & P=$!\nready $P; sleep 0.3\nperf record -N -B --no-bpf-event -o second{n} "
                f"{other}-e intel_pt//u ./soak_work signals 5 2>second{n}.txt; S=$?\n"
                f"stop $P; killall -9 soak_work; rm -f second{n}\n"
                f"echo second '{one}' '{other}' $S; exit $R", busy=bool(one or other), loses=True)


MAKERS = [a_user, a_user, a_kernel, a_system, a_thread, a_snapshot, a_sample, a_small, a_filter,
          a_kill, an_attach, a_module, an_offline, counters, several]
EXACT = [a_user, a_system, a_thread, a_filter, counters]  # nothing is lost
KIND_OF = {one: re.sub("^an?_", "", one.__name__) for one in MAKERS}


# ------------------------------------------------------------------------------------ a boot

@dataclasses.dataclass
class boot:
    number: int
    preset: str
    kind: str
    exact: bool
    steps: list
    problems: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
    files: int = 0
    in_files: int = 0
    stored: int = 0


def make_boot(options, number):
    draw = random.Random(f"{options.seed} {number}")
    exact = draw.randrange(4) == 0 and not options.only
    made = boot(number, draw.choice(PRESETS), draw.choice(KINDS), exact, [])
    if (made.preset, made.kind) == ("Broadwell-ULT", "atom"):
        # No such processor: without MTC, and without the PSB of other kinds at TIP.PGE, the trace
        # has no time after the MMAP of the program, and perf does not find its code.
        made.kind = ""
    makers = [one for one in (EXACT if exact else MAKERS)
              if not options.only or KIND_OF[one] in options.only]
    if options.cpus < 2:
        makers = [one for one in makers if one is not an_offline] or [a_user]
    for n in range(options.steps):
        made.steps.append(draw.choice(makers)(draw, n))
    return made


def script_of(made):
    lines = ["./soak_work vdso >vdso.so\n", "dmesg -c >dmesg-start.txt\n"]
    for n, one in enumerate(made.steps):
        lines.append(f"cat >step.sh <<'END'\n{FUNCTIONS}{one.script}\nEND\n"
                     f"echo step {n} {one.kind}\n"
                     f"timeout -s KILL 20 sh ./step.sh >out{n}.txt 2>&1\n"
                     f"echo {n} $? $(cut -d' ' -f1 /proc/uptime) >>status.txt\n"
                     "killall -9 perf soak_work 2>/dev/null; sleep 0.2\n"
                     f"dmesg -c >dmesg{n}.txt\n"
                     "echo 1 >/sys/devices/system/cpu/cpu1/online 2>/dev/null\n")
    return "".join(lines) + "rm -f step.sh\nexit 0\n"


# In each step: `ready PID` waits until a perf has its handlers of signals, `stop PID` ends it. A
# job of a shell ignores SIGINT until then.
FUNCTIONS = """ready() {
    n=0
    while [ $n -lt 50 ]; do
        caught=$(awk '/^SigCgt/ { print $2 }' /proc/$1/status 2>/dev/null)
        [ $((0x0$caught & 2)) = 0 ] || break
        sleep 0.1
        n=$((n + 1))
    done
    sleep 0.4
}
stop() {
    ready $1
    kill -INT $1
    wait $1
    R=$?
    case $R in 130 | 143) R=0 ;; esac
}
"""


def is_unnamed(trace, errors, gaps):
    """Whether perf's errors are missing code of processes that no record names, each at an address
    where it is missing for pt_flow, too, and pt_flow has no other gap."""
    unnamed = trace.started - trace.named
    missing = [re.search(r"gap missing-code .*missing=(0x[0-9a-f]+)", one) for one in gaps]
    failed = [re.search(r" pid (\d+) .* ip (0x[0-9a-f]+) code 5:", one) for one in errors]
    if not missing or not failed or None in missing or None in failed:
        return False
    addresses = {one[1] for one in missing}
    return all(int(one[1]) in unnamed and one[2] in addresses for one in failed)


def is_timeless(script, gaps):
    """Whether code is missing because the trace has no times, or only those of TSC packets, and
    processes have other code at the same address. perf walks that of the thread at the last TSC,
    at its time: also where pt_flow finds all, perf may find none."""
    reasons = {re.search(r"gap ([a-z-]+)", one)[1] for one in gaps}
    return re.search("tsc=0|mtc=0", script) and reasons <= {"no-time", "missing-call"}


class soak:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.work = folder / "soak_work"
        subprocess.run(["gcc", "-O1", "-static", "-pthread", HERE / "soak_work.c", "-o",
                        self.work], check=True)
        self.symfs = folder / "symfs"
        for name in ("bin", "usr/bin", "files"):
            (self.symfs / name).mkdir(parents=True)
        (self.symfs / "bin/busybox").symlink_to("/bin/busybox")
        (self.symfs / "files/soak_work").symlink_to(self.work)
        perf = sorted(pathlib.Path("/usr/bin").glob("perf_[0-9]*"))
        (self.symfs / "usr/bin/perf").symlink_to(perf[-1] if perf else "/usr/bin/perf")
        for name in ("lib", "lib64", "usr/lib"):
            (self.symfs / name).symlink_to(f"/{name}")
        release = sorted(pathlib.Path("/lib/modules").glob("*-cloud-amd64"))
        self.modules = [release[-1] / one for one in MODULES if release and
                        (release[-1] / one).exists()]

    def run(self, made):
        folder = self.folder / f"boot{made.number}"
        folder.mkdir()
        (folder / "inside.sh").write_text(script_of(made), encoding="utf-8")
        words = [MACHINE, "run", "--cpus", self.options.cpus, "--preset", made.preset,
                 "--memory", "3G", "--seconds", 90 + 100 * len(made.steps), "--file", self.work,
                 "--script", "inside.sh"]
        for one in self.modules:
            words += ["--file", one]
        words += ["--kind", made.kind] if made.kind else []
        words += ["--root", self.options.root] if self.options.root else []
        with open(folder / "console.txt", "w", encoding="utf-8") as to:
            done = subprocess.run([str(word) for word in words], cwd=folder, stdout=to,
                                  stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
        output = (folder / "console.txt").read_text(encoding="utf-8", errors="replace")
        steps = re.findall(r"^step (\d+ \S+)", output, re.M)
        if done.returncode != 0:
            made.problems.append(f"status {done.returncode} in step {steps[-1] if steps else '-'}: "
                                 f"{output.strip()[-300:]}")
        if BAD.search(output):
            made.problems.append(f"console: {BAD.search(output)[0]}")
        made.stored = sum(map(int, re.findall(r"processor \d+: (\d+) bytes stored", output)))
        self.check(made, folder)

    def check(self, made, folder):
        statuses = {}
        if (folder / "status.txt").exists():
            for line in (folder / "status.txt").read_text(encoding="utf-8").splitlines():
                n, status, _ = line.split()
                statuses[int(n)] = int(status)
        self.cache_vdso(folder)
        exact = made.exact
        for n, one in enumerate(made.steps):
            name = f"step {n} {one.kind}"
            if n not in statuses:
                made.problems.append(f"{name}: did not end")
                continue
            said = self.text(folder / f"out{n}.txt")
            if one.kind == "attach" and statuses[n] == 255 and "Ignored open failure for" in said:
                one.killed = True  # see an_attach
            self.check_end(made, one, name, statuses[n], said)
            for line in self.text(folder / f"dmesg{n}.txt").splitlines():
                if BAD.search(line):
                    made.problems.append(f"{name}: dmesg: {line}")
            data = folder / f"{n}.data"
            if not data.exists():
                continue
            refused = statuses[n] != 0 and one.refusal
            inside = data / "data" if data.is_dir() else data
            if refused and inside.stat().st_size == 0:
                continue
            try:
                trace = perf_files.read(data)
            except ValueError as error:
                (made.notes if one.killed else made.problems).append(f"{name}: {error}")
                continue
            made.files += 1
            made.in_files += 0 if one.repeats else trace.size
            exact = exact and not trace.truncated and not trace.lost
            if not refused:
                self.decode(made, one, name, data, trace, folder)
        if made.stored < made.in_files:
            made.problems.append(f"{made.stored} bytes stored, {made.in_files} in the files")
        elif exact and made.stored != made.in_files:
            made.problems.append(f"exact, and {made.stored} bytes stored, "
                                 f"{made.in_files} in the files")

    @staticmethod
    def text(file):
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    @staticmethod
    def check_end(made, one, name, status, said):
        if status == 137:
            made.problems.append(f"{name}: over its limit of time: {said.strip()[-200:]}")
        elif status != 0 and not one.refusal and not one.killed:
            made.problems.append(f"{name}: status {status}: {said.strip()[-300:]}")
        elif status != 0 and one.kind == "attach":
            made.notes.append(f"{name}: perf ended: a thread had exited before it was opened")
        elif status != 0 and not one.killed:
            reason = re.search(r".*(?:not supported|nvalid|failed|refused).*", said)
            made.notes.append(f"{name}: refused: {(reason[0] if reason else said)[-110:].strip()}")
        if "not online" in said:
            made.problems.append(f"{name}: CPU 1 is not online again")
        second = re.search(r"^second .* (\d+)$", said, re.M)
        if second and (int(second[1]) != 0) != one.busy:
            made.problems.append(f"{name}: {second[0]}: {'not ' if one.busy else ''}refused")

    def cache_vdso(self, folder):
        """perf takes the vDSO of the host, unless its cache has that of the file. With --symfs DIR
        the cache is DIR/.debug; --buildid-dir has no effect."""
        vdso = folder / "vdso.so"
        notes = subprocess.run(["readelf", "-n", vdso], capture_output=True, text=True,
                               check=False).stdout if vdso.exists() else ""
        found = re.search(r"Build ID: ([0-9a-f]{40})", notes)
        cache = self.symfs / ".debug"
        if found and not (cache / "[vdso]" / found[1]).exists():
            place = cache / "[vdso]" / found[1]
            place.mkdir(parents=True)
            (place / "vdso").write_bytes(vdso.read_bytes())
            link = cache / ".build-id" / found[1][:2] / found[1][2:]
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"../../[vdso]/{found[1]}")

    def decode(self, made, one, name, data, trace, folder):
        explained = bool(trace.truncated or trace.lost) or one.killed or one.repeats
        errors = []
        try:
            listed, errors = perf_errors(data, self.symfs)
            if listed.returncode < 0:
                made.problems.append(f"{name}: perf script ended by signal {-listed.returncode}")
            elif listed.returncode != 0 and not one.killed:
                made.problems.append(f"{name}: perf script: {listed.stderr.strip()[-200:]}")
        except subprocess.TimeoutExpired:
            made.notes.append(f"{name}: perf script was stopped after 300 seconds")
        words = [BUILD / "bin/pt_flow", "--symfs", self.symfs, "--jobs", "1", data]
        if (folder / "vdso.so").exists():
            words[1:1] = ["--vdso", folder / "vdso.so"]
        with open(folder / "flow.txt", "w+", encoding="utf-8", errors="replace") as to:
            walked = subprocess.run(words, stdout=to, stderr=subprocess.PIPE, text=True,
                                    errors="replace", check=False, timeout=500)
        gaps = subprocess.run(["grep", "-aE", "^ *gap", folder / "flow.txt"], capture_output=True,
                              text=True, errors="replace", check=False).stdout.splitlines()
        (folder / "flow.txt").unlink()
        has_none = "has no traces" in walked.stderr and explained
        if walked.returncode not in (0, 1) and not one.killed and not has_none:
            made.problems.append(f"{name}: pt_flow: status {walked.returncode} "
                                 f"{walked.stderr.strip()[-200:]}")
        if one.kind == "attach" and is_unnamed(trace, errors, gaps):
            explained = True
        if gaps or walked.returncode == 0:
            explained = explained or is_timeless(one.script, gaps)
        self.judge(made, one, name, "perf", errors, explained)
        if walked.returncode == 1:
            self.judge(made, one, name, "pt_flow", gaps or [walked.stderr.strip()[-200:]],
                       explained)

    @staticmethod
    def judge(made, one, name, who, errors, explained):
        if not errors:
            return
        text = f"{name}: {who}: {len(errors)} errors, such as {errors[0]}"
        is_kernel = one.changes or one.kind == "kernel"
        (made.notes if explained or is_kernel else made.problems).append(text)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--boot", type=int, action="append")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--only", action="append", default=[], choices=sorted(KIND_OF.values()))
    parser.add_argument("--root")
    options = parse(parser, arguments)
    options.root = options.root and pathlib.Path(options.root).resolve()
    print(f"seed {options.seed}", flush=True)
    end, failed, boots, steps = time.monotonic() + 60 * options.minutes, 0, 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.keep or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        run = soak(options, folder)
        numbers = iter(options.boot) if options.boot else iter(range(1 << 30))
        for number in numbers:
            if time.monotonic() >= end:
                break
            made = make_boot(options, number)
            begin = time.monotonic()
            run.run(made)
            boots += 1
            steps += len(made.steps)
            failed += bool(made.problems)
            print(f"{'FAILED' if made.problems else 'ok':7} boot {number:3} {made.preset:14} "
                  f"{made.kind or '-':9} {'exact ' if made.exact else ''}{len(made.steps)} steps, "
                  f"{made.files} files, {made.stored} bytes stored, {made.in_files} in files, "
                  f"{time.monotonic() - begin:.0f} s", flush=True)
            for text in made.problems:
                print(f"        {text}", flush=True)
            for text in made.notes:
                print(f"        note: {text}", flush=True)
            if not options.keep:
                subprocess.run(["rm", "-rf", folder / f"boot{number}"], check=True)
    print(f"{boots} boots, {steps} steps, {failed} failed; repeat with --seed {options.seed}"
          f"{f' --cpus {options.cpus}' if options.cpus != 2 else ''}"
          f"{f' --steps {options.steps}' if options.steps != 12 else ''} --boot K")
    return 1 if failed or not boots else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
