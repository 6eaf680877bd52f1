#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs pt_trace, trace_program and fuzz_process in the machine of examples/tools/machine where it
is not simple: other users, a second tracer, programs that are killed, crash, fork, execute others
or have many threads, small areas. Needs what `machine run` needs, the root that `machine root`
makes, and `tests/run --build pt_trace pt_flow pt_dump trace_program fuzz_process`.

    trace_test.py [--keep FOLDER]       two minutes

Exit status: 0 all right, 1 not, 2 wrong usage.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from common import BUILD, IMAGE, MACHINE, need

THREADS = """#include <pthread.h>
#include <stdlib.h>
static void *run(void *of) { long sum = 0; for (long i = 0; i < 100; ++i) { sum += i ^ (long)of; }
    return (void *)sum; }
int main(int count, char **words) {
    int const all = atoi(words[1]);
    pthread_t *threads = calloc(all, sizeof *threads);
    for (int i = 0; i < all; ++i) {
        if (pthread_create(&threads[i], 0, run, (void *)(long)i) != 0) { return 1; }
    }
    for (int i = 0; i < all; ++i) { pthread_join(threads[i], 0); }
    return count - 2;
}
"""
CRASH = """static volatile int *nothing;
__attribute__((noinline)) static int faults(int a) { return a + *nothing; }
int main(int count, char **words) { (void)words; for (volatile int i = 0; i < 20000; ++i) {}
    return faults(count); }
"""

PROGRAMS = ("pt_trace", "trace_program", "fuzz_process")

# name: a command of the machine. Its output ends with `= STATUS`.
STEPS = {
    "why": "./pt_trace --why",
    "user_why": "sysctl -qw kernel.perf_event_paranoid=3; setpriv --reuid=65534 --clear-groups "
                "./pt_trace --why",
    "user_allowed": "sysctl -qw kernel.perf_event_paranoid=2; setpriv --reuid=65534 --clear-groups "
                    "./pt_trace --aux 64K -o user.data /bin/true",
    "user_kernel": "setpriv --reuid=65534 --clear-groups ./pt_trace --ctl os -o user.data "
                   "/bin/true",
    "user_memory": "setpriv --reuid=65534 --clear-groups sh -c 'ulimit -l 64; "
                   "exec ./pt_trace --aux 64M -o user.data /bin/true'",
    "program": "./trace_program /bin/true",
    "fuzz": "./fuzz_process 300",
    "busy": "perf record -q -a -e intel_pt//u -o q.data sleep 9 & "
            "while [ ! -s q.data ]; do sleep .1; done; sleep .5; ./pt_trace /bin/true; "
            "status=$?; wait; (exit $status)",
    "killed": "./pt_trace -o killed.data sh -c 'kill -9 $$'",
    "status": "./pt_trace -o status.data sh -c 'exit 7'",
    "crash": "ulimit -c 0; ./pt_trace -o crash.data ./crash",
    "snapshot": "ulimit -c 0; ./pt_trace --snapshot --aux 16K -o snapshot.data ./crash",
    "signal": "./pt_trace --snapshot --aux 64K -o signal.data "
              "sh -c 'kill -USR2 $PPID; sleep 1; ./threads 20; exit 7'",
    "threads": "./pt_trace -o threads.data ./threads 500",
    "execs": "./pt_trace -o execs.data sh -c 'exec sh -c \"exec ./threads 2\"'",
    "forks": "./pt_trace --filter ./threads:main -o forks.data sh -c './threads 1; ./threads 1'",
    "setuid": "./pt_trace -o setuid.data su nobody -s /bin/sh -c id",
    "page": "./pt_trace --aux 4K --data 4K -o page.data ./threads 30",
    "live": "./pt_trace --instructions --to live.out -o live.data ./threads 20",
    "live_calls": "ulimit -c 0; ./pt_trace --calls --to live_calls.out -o live_calls.data ./crash",
    "live_folded": "./pt_trace --folded --to live_folded.out -o live_folded.data ./threads 20",
    "live_now": "(sleep 2; echo lines $(wc -l < now.out)) & "
                "./pt_trace --calls --to now.out -o now.data sh -c './threads 1; sleep 4'; wait",
    "live_area": "./pt_trace --aux 8K --instructions --to live_area.out -o live_area.data "
                 "./threads 200",
    "live_attached": "sh -c 'sleep 1; ./crash; sleep 1' & "
                     "./pt_trace -p $! --instructions --to live_attached.out -o live_attached.data",
    # Each burst is more than the area. Between them the reader has time to enable the event.
    "live_thread": "sh -c 'for i in $(seq 50); do for j in $(seq 60); do :; done; sleep 0.05; "
                   "done' & ./pt_trace -p $! --aux 4K --instructions --to live_thread.out "
                   "-o live_thread.data",
    "live_title": "sleep 1 & p=$!; ./pt_trace -p $p --calls -o title.data | head -1 | "
                  "sed s/$p/PID/g",
    "closed_pipe": "{ ./pt_trace --calls -o closed.data ./threads 20; echo status $? >&2; } | "
                   "head -c 6 >/dev/null; ls closed.data",
    "signals": "sh -c 'grep SigIgn /proc/self/status'; "
               "./pt_trace -o signals.data sh -c 'grep SigIgn /proc/self/status' 2>&1",
    "descriptors": "sh -c 'ls -l /proc/self/fd >without'; "
                   "./pt_trace -o fd.data sh -c 'ls -l /proc/self/fd >with'; "
                   "echo $(wc -l < without) $(wc -l < with)",
    "attached": "sleep 1 & ./pt_trace -p $! -o attached.data",
    "ended": "true & p=$!; wait; ./pt_trace -p $p -o ended.data",
    "interrupted": "timeout --preserve-status -s INT 2 ./pt_trace -a -o interrupted.data",
    "no_program": "./pt_trace -o none.data ./nothing",
    "no_function": "./pt_trace --filter ./threads:nothing -o none.data ./threads 1",
    "refused": "./pt_trace --ctl ptw -o none.data /bin/true",
    "filters": "./pt_trace --filter main --filter main --filter main -o none.data ./threads 1",
    "bad_size": "./pt_trace --aux 12K -o none.data /bin/true",
    "no_cpu": "./pt_trace -a --cpu 77 -o none.data /bin/true",
}
SAYS = {
    "why": r"can be traced\n= 0",
    "user_why": r"lower /proc/sys/kernel/perf_event_paranoid, .*\n= 1",
    "user_allowed": r"[1-9]\d* bytes of trace\n= 0",
    "user_kernel": r"lower /proc/sys/kernel/perf_event_paranoid, .*\n= 2",
    "user_memory": r"exceed the limit of locked memory.*\n= 2",
    "program": r"[1-9]\d* branches, 0 gaps\n= 0",
    "fuzz": r"not found after 300 executions, .* bytes an execution\n= 1",
    "busy": r"another program traces with Intel PT.*\n= 2",
    "killed": r"bytes of trace\n= 137",
    "status": r"bytes of trace\n= 7",
    "crash": r"bytes of trace\n= 139",
    "snapshot": r"bytes of trace\n= 139",
    "signal": r"signal.data: [1-9]\d* bytes of trace\n= 7",
    "threads": r"bytes of trace\n= 0",
    "execs": r"bytes of trace\n= 0",
    "forks": r"bytes of trace\n= 0",
    "setuid": r"uid=65534.*\npt_trace: .*bytes of trace\n= 0",
    "page": r"bytes of trace\npt_trace: trace is lost .* too slow(\npt_trace: .*)*\n= 3",
    "live": r"bytes of trace\n= 0",
    "live_calls": r"bytes of trace\n= 139",
    "live_folded": r"bytes of trace\n= 0",
    "live_now": r"lines [1-9]\d*\npt_trace: now.data: [1-9]\d* bytes of trace\n= 0",
    "live_area": r"pt_trace: trace is lost .* too slow\n(.*\n)*"
                 r"pt_trace: gaps: (.*, )?missing-trace [1-9].*\n= 3",
    "live_attached": r"bytes of trace\n= 0",
    # Tracing continues after each loss.
    "live_thread": r"[1-9]\d{5,} bytes of trace\npt_trace: trace is lost .* too slow\n(.*\n)*"
                   r"pt_trace: gaps: (.*, )?missing-trace [1-9].*\n= 3",
    "live_title": r"pt_trace: title.data: [1-9]\d* bytes of trace\nthread PID/PID\n= 0",
    "closed_pipe": r"pt_trace: closed.data: [1-9]\d* bytes of trace\nstatus 0\nclosed.data\n= 0",
    "signals": r"(SigIgn:.*)\n\1\npt_trace: .*bytes of trace\n= 0",
    "descriptors": r"([1-9]\d*) \1\n= 0",
    "attached": r"bytes of trace\n= 0",
    "ended": r"there is no such process\n= 2",
    "interrupted": r"bytes of trace\n(.*\n)*= [03]",
    "no_program": r"cannot be executed: No such file or directory\n= 2",
    "no_function": r"has no function nothing\n= 2",
    "refused": r"ptwrite: .*\n= 2",
    "filters": r"this processor has 2 address filters\n= 2",
    "bad_size": r"must be a power of 2 of pages\n= 2",
    "no_cpu": r"does not exist, or is offline\n= 2",
}


def instructions(folder, name):
    """What pt_flow and perf find: their instructions, and how many errors each has."""
    symfs = folder / "symfs"
    flow = subprocess.run([BUILD / "bin/pt_flow", "--instructions", "--symfs", symfs,
                           folder / f"{name}.data"], capture_output=True, text=True, check=False)
    ips = [int(ip, 16) for ip in re.findall(r"^0x([0-9a-f]+)$", flow.stdout, re.M)]
    perf = subprocess.run(["perf", "script", "--symfs", symfs, "-i", folder / f"{name}.data",
                           "--itrace=i0nse", "-F", "ip,event"], capture_output=True, text=True,
                          check=False).stdout
    theirs = [int(ip, 16) for ip in re.findall(r"instructions.*?\s([0-9a-f]+)\s*$", perf, re.M)]
    return ips, theirs, len(re.findall(r"^gap", flow.stdout, re.M))


def same_sums(one, two):
    """Whether lines are equal or, for stacks of threads that change the processor, their sums."""
    if one == two:
        return True
    counts = [[int(number) for number in re.findall(r" (\d+)$", "\n".join(lines), re.M)]
              for lines in (one, two)]
    return len(counts[0]) == len(one) and sum(counts[0]) == sum(counts[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=pathlib.Path, help="a new folder for all files")
    options = parser.parse_args()
    need(parser, "pt_flow", "pt_dump", *PROGRAMS)
    if not IMAGE.exists():
        parser.error(f"{IMAGE} is missing: machine root")
    folder = options.keep or pathlib.Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    for name, source in (("threads", THREADS), ("crash", CRASH)):
        (folder / f"{name}.c").write_text(source, encoding="utf-8")
        subprocess.run(["gcc", "-O1", "-static", "-pthread", folder / f"{name}.c", "-o",
                        folder / name], check=True)
    lines = ["chmod a+rwx . /tmp", "ls /proc/self/fd | wc -l > before"]
    for name, command in STEPS.items():
        lines.append(f"{{ {command}\necho \"= $?\"; }} > out.{name} 2>&1")
    (folder / "script").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = [sys.executable, "-B", MACHINE, "run", "--root", IMAGE, "--cpus", "2", "--seconds",
             "600", "--script", folder / "script"]
    for one in (*(BUILD / "bin" / one for one in PROGRAMS), folder / "threads", folder / "crash"):
        words += ["--file", one]
    done = subprocess.run([str(word) for word in words], cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", check=False)
    failed = []

    def hold(is_right, text):
        print(("ok   " if is_right else "FAIL ") + text, flush=True)
        if not is_right:
            failed.append(text)

    hold(done.returncode == 0, f"machine: exit status {done.returncode}")
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-2000:])
    for name, pattern in SAYS.items():
        file = folder / f"out.{name}"
        said = file.read_text(encoding="utf-8", errors="replace") if file.exists() else "nothing"
        is_right = re.search(pattern + r"\n\Z", said) is not None
        hold(is_right, f"{name}: {said.strip()[-200:]}")
    (folder / "symfs/files").mkdir(parents=True, exist_ok=True)
    for name in ("threads", "crash"):
        (folder / "symfs/files" / name).write_bytes((folder / name).read_bytes())
    for name in ("usr", "lib", "lib64"):
        (folder / "symfs" / name).symlink_to(f"/{name}")
    symbols = subprocess.run(["nm", "-S", folder / "crash"], capture_output=True, text=True,
                             check=True).stdout
    first = int(re.search(r"^(\w+) \w+ t faults$", symbols, re.M)[1], 16)
    for name in ("crash", "snapshot"):
        ips, theirs, _ = instructions(folder, name)
        hold(ips == theirs, f"{name}: {len(ips)} instructions, perf {len(theirs)}")
        # The instruction that faults has not executed: tracing ends at its address.
        events = subprocess.run([BUILD / "bin/pt_dump", "--events", folder / f"{name}.data"],
                                capture_output=True, text=True, check=False).stdout
        ends = re.findall(r"async_disabled.* ip=0x([0-9a-f]+)", events)
        place = int(ends[-1], 16) if ends else 0
        hold(place == first, f"{name}: ends at {place:#x}, the fault is at {first:#x}")
    for name in ("threads", "forks"):
        ips, theirs, gaps = instructions(folder, name)
        hold(len(ips) > 0 and len(ips) == len(theirs),
             f"{name}: {len(ips)} instructions, {gaps} gaps, perf {len(theirs)}")
    folded = subprocess.run([BUILD / "bin/pt_flow", "--folded", "--symfs", folder / "symfs",
                             folder / "signal.data"], capture_output=True, text=True,
                            check=False).stdout
    hold("dash" in folded and "start_thread" not in folded, "signal: the recording ends there")
    # What was printed while it executed, against the same file afterwards: by processor there.
    for name in ("live", "live_folded", "live_calls", "live_area", "live_attached",
                 "live_thread"):
        form = {"live_folded": "folded", "live_calls": "calls"}.get(name, "instructions")
        later = subprocess.run([BUILD / "bin/pt_flow", f"--{form}", "--symfs", folder / "symfs",
                                folder / f"{name}.data"], capture_output=True, text=True,
                               check=False).stdout
        at_once = (folder / f"{name}.out").read_text(encoding="utf-8")
        one, two = (sorted(re.findall(r"^(?!cpu |thread |tid |gap ).+$", text, re.M))
                    for text in (later, at_once))
        hold(len(one) > 0 and same_sums(one, two), f"{name}: {len(one)} lines, {len(two)} at once")
    print(f"{len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
