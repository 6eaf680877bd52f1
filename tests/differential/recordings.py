#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Records programs with pt_record and compares the instructions that libipt finds in the traces
with those that the emulator executed.

    recordings.py FOLDER [--all] [--jobs N]

FOLDER gets the programs and the recordings. `tests/run --build pt_record` must have built
pt_record. `--all` records every program with every choice of packets and of the kind of processor,
and the larger programs that are installed: gzip, python3, perl, the compiler, node, go, java. Exit
status: 0 all equal, 1 a difference.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PTSPEC_BUILD_DIR", ROOT / "build"))
PROGRAMS = ROOT / "tests" / "differential" / "programs"
STRICT = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow",
          "-Werror", f"-I{ROOT}/include", f"-I{ROOT}/examples", f"-I{ROOT}/tests"]
KINDS = ["manual", "broadwell", "skylake", "icelake", "atom"]
PACKETS = ["", "tsc", "tsc,mtc=3", "tsc,mtc=0,cyc", "cyc=4,psb=2K", "noretcomp", "psb=64K"]
# Programs of an installation: name -> command.
LARGE = {
    "gzip": ["gzip", "-9", "-c", "{text}"],
    "python3": ["python3", "-c", "print(sum(i * i for i in range(100000)))"],
    "perl": ["perl", "-e", "my %h; $h{$_ % 997} .= $_ for 1 .. 50000; if (!fork) { exit 0 } wait;"
             "print scalar keys %h"],
    "cc1plus": ["{cc1plus}", "-O1", "-quiet", "{source}", "-o", "/dev/null"],
    "node": ["node", "-e", "let s = 0; for (let i = 0; i < 1e6; i++) s += i % 7; console.log(s)"],
    "go": ["go", "version"],
    "java": ["java", "-version"],
}


def run(command, **how):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **how)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Recorder:
    def __init__(self, folder):
        self.folder = folder
        self.tool = BUILD / "bin" / "pt_record"
        self.verifier = folder / "verifier"
        self.damage = folder / "damage"

    def build(self, pool):
        jobs = [["g++", *STRICT, ROOT / "tests/differential/recording.cpp", "-lipt", "-o",
                 self.verifier],
                ["g++", *STRICT, ROOT / "tests/differential/damage.cpp", "-lipt", "-o",
                 self.damage]]
        for source in PROGRAMS.glob("*.cpp"):
            static = ["-static"] if source.stem == "loops" else []
            jobs.append(["g++", "-std=c++20", "-O2", "-pthread", *static, source, "-o",
                         self.folder / source.stem])
        list(pool.map(run, jobs))

    def record(self, name, command, *options, prints="ok\n"):
        """Records and compares. Returns a line of the table, and whether all is equal."""
        raw = self.folder / f"raw_{name}_{zlib.crc32(' '.join(options).encode()):x}"
        shutil.rmtree(raw, ignore_errors=True)
        data = self.folder / f"{raw.name}.data"
        started = time.monotonic()
        made = subprocess.run([self.tool, "-o", data, "--raw", raw, "--check", *options, *command],
                              capture_output=True, text=True, errors="replace",
                              timeout=600)
        took = time.monotonic() - started
        said = made.stderr.strip().splitlines()
        good = made.returncode == 0 and (prints is None or made.stdout == prints)
        good = good and "incomplete" not in made.stderr and "placed at" not in made.stderr
        found = subprocess.run([self.verifier, "--first", "3", raw], capture_output=True,
                               text=True, timeout=1200)
        last = (found.stdout.strip().splitlines() or ["nothing"])[-1].split("; ")[0]
        good = good and found.returncode == 0
        line = f"{name:11}{' '.join(options):36}{took:6.1f} s  {last}"
        if good:
            shutil.rmtree(raw)
            data.unlink()
        else:
            line += f"\n  status {made.returncode}, {said[-1:]}\n{found.stdout[-1500:]}"
        return line, good


def function_range(program, name):
    """The addresses of a function, as filter=A-B."""
    for line in run(["nm", "-S", "-C", program]).splitlines():
        words = line.split(maxsplit=3)
        if len(words) == 4 and words[3].endswith(name):
            first = int(words[0], 16)
            return f"filter={first:x}-{first + int(words[1], 16) - 1:x}"
    sys.exit(f"{program} has no {name}")


def jobs_of(recorder, is_all):
    """(name, command, options, what it prints)"""
    names = sorted(path.stem for path in PROGRAMS.glob("*.cpp"))
    for i, name in enumerate(names):
        program = [recorder.folder / name]
        if is_all:
            chosen = [(kind, packets) for kind in KINDS for packets in PACKETS]
        else:
            chosen = [("manual", ""), (KINDS[1 + i % 4], PACKETS[1 + i % 6])]
        for kind, packets in chosen:
            options = ["--kind", kind] * (kind != "manual") + ["--ctl", packets] * (packets != "")
            yield name, program, options, "ok\n"
    loops = recorder.folder / "loops"
    within = function_range(loops, "sort(unsigned int*, unsigned int*)")
    for kind in KINDS if is_all else ["manual", "skylake"]:
        yield "loops", [loops], ["--kind", kind, "--ctl", within], "ok\n"
    if not is_all:
        return
    files = {"{text}": ROOT / "single_include/ptspec/ptspec.hpp",
             "{source}": PROGRAMS / "bare/bare.cpp",
             "{cc1plus}": run(["g++", "-print-prog-name=cc1plus"]).strip()}
    for name, command in LARGE.items():
        words = [str(files.get(word, word)) for word in command]
        if shutil.which(words[0]) is None:
            print(f"{name:11}is not installed")
            continue
        for packets in ("", "tsc,mtc=3,cyc", "noretcomp"):
            yield name, words, ["--ctl", packets] * (packets != ""), None


def build_bare(recorder, name):
    """Builds a program without a C library."""
    program = recorder.folder / name
    run(["g++", "-std=c++20", "-O2", "-nostdlib", "-static", "-fno-stack-protector",
         "-mno-red-zone", PROGRAMS / f"bare/{name}.cpp", "-o", program])
    return program


def engines_agree(recorder, name, *arguments):
    """Both engines execute the same instructions of a program without a C library, and write the
    same trace, also where a signal ends the program."""
    program = build_bare(recorder, name)
    title = " ".join((name, *arguments))
    found = []
    for engine in ("qemu", "step"):
        raw = recorder.folder / f"raw_{''.join((name, *arguments))}_{engine}"
        shutil.rmtree(raw, ignore_errors=True)
        done = subprocess.run([recorder.tool, "-o", f"{raw}.data", "--raw", raw, "--check",
                               "--ctl", "notsc", "--engine", engine, program, *arguments],
                              capture_output=True, text=True, timeout=600)
        if engine == "step" and "ptrace is not allowed" in done.stderr:
            return f"{title:11}ptrace is not allowed: the engines were not compared", True
        run([recorder.verifier, raw])
        found.append((done.returncode, [path.read_bytes() for kind in ("log", "pt") for path in
                                        sorted(raw.glob(f"*.{kind}"),
                                               key=lambda at: (len(at.name), at.name))]))
    count = re.search(rb"\d+", found[0][1][0])[0].decode()
    return f"{title:11}both engines: {count} instructions", found[0] == found[1]


def ends_are_exact(recorder):
    """What a program of two threads executed is recorded to its end, whenever it is killed."""
    program = build_bare(recorder, "deaths")
    raw = recorder.folder / "raw_killed"
    good = True
    kills = 24
    for i in range(kills):
        shutil.rmtree(raw, ignore_errors=True)
        packets = PACKETS[i % len(PACKETS)]
        options = ["--ctl", packets] * (packets != "") + ["--kind", KINDS[i % len(KINDS)]]
        tool = subprocess.Popen([recorder.tool, "-o", f"{raw}.data", "--raw", raw, "--check",
                                 *options, program, "SPu"[i % 3]], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
        tool.stdout.readline()
        if i % 3 == 2:
            time.sleep(0.003 * i)
            os.kill(int(next(raw.glob("*.code")).stem), (9, 15)[i % 2])
        tool.wait(timeout=600)
        found = subprocess.run([recorder.verifier, "--first", "3", raw], capture_output=True,
                               text=True, timeout=600)
        if found.returncode != 0:
            print(found.stdout)
            good = False
    return f"{'killed':11}{kills} times", good


def survives_damage(recorder, count):
    """What damaged copies of a recording have in common with the program's instructions."""
    raw = recorder.folder / "raw_damaged"
    shutil.rmtree(raw, ignore_errors=True)
    run([recorder.tool, "-o", f"{raw}.data", "--raw", raw, "--check", "--ctl", "psb=2K",
         recorder.folder / "exceptions"])
    done = subprocess.run([recorder.damage, "--count", str(count), raw], capture_output=True,
                          text=True, timeout=600)
    return done.stdout.rstrip(), done.returncode == 0


def perf_agrees(recorder, name):
    """perf finds the same instructions, names them by symbols, and has no complaint."""
    raw = recorder.folder / f"raw_perf_{name}"
    data = recorder.folder / f"perf_{name}.data"
    shutil.rmtree(raw, ignore_errors=True)
    run([recorder.tool, "-o", data, "--raw", raw, "--check", recorder.folder / name])
    log = next(raw.glob("*.log")).read_text()
    listed = run(["perf", "script", "-i", data, "--itrace=i1ie", "-F", "ip"])
    digest = 0xcbf29ce484222325
    count = 0
    for line in listed.splitlines():
        digest = (digest ^ int(line, 16)) * 0x100000001b3 & (1 << 64) - 1
        count += 1
    good = log == f"instructions {count} hash {digest:016x}\n"
    branches = run(["perf", "script", "-i", data, "--itrace=b"])
    good = good and re.search(r" main\+0x", branches) is not None
    report = subprocess.run(["perf", "report", "-i", str(data), "--stdio"], capture_output=True,
                            text=True)
    good = good and (report.returncode, report.stderr) == (0, "")
    branched = branches.count("\n")
    return f"{name:11}perf: {count} instructions, {branched} branches", good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    recorder = Recorder(options.folder.resolve())
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        recorder.build(pool)
        jobs = list(jobs_of(recorder, options.all))
        results = pool.map(lambda job: recorder.record(job[0], job[1], *job[2], prints=job[3]),
                           jobs)
        for line, good in results:
            print(line + ("" if good else "  FAILED"), flush=True)
            failed += not good
    others = [lambda: engines_agree(recorder, "bare"), lambda: engines_agree(recorder, "far"),
              lambda: ends_are_exact(recorder)]
    others.append(lambda: survives_damage(recorder, 1000 if options.all else 60))
    others += [lambda letter=letter: engines_agree(recorder, "deaths", letter)
               for letter in "esfidthakcFX"]
    if shutil.which("perf") is None:
        print("perf is not installed (Debian: linux-perf)")
    else:
        others += [lambda name=name: perf_agrees(recorder, name)
                   for name in ("faults", "loops", "returns")]
    for check in others:
        line, good = check()
        print(line + ("" if good else "  FAILED"), flush=True)
        failed += not good
    print(f"{len(jobs) + len(others)} recordings, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
