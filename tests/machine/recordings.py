# SPDX-License-Identifier: BSL-1.0
"""The recordings of compare.py."""

import dataclasses
import random
import re


@dataclasses.dataclass
class recording:
    """A command of the machine, and what its trace holds."""
    name: str
    command: str  # {data} is the perf.data file
    user: bool = True
    kernel: bool = False
    cpus: int = 1
    preset: str = "Skylake-X"
    kind: str = ""
    program: str = "work"
    compares: bool = True   # all instructions are in the trace
    part: bool = False      # the trace has pieces of them, in their order
    within: tuple = ()      # of these functions, each instruction
    until: str = ""         # each instruction before this function
    least: int = 0          # instructions that are found
    packets: str = ""       # that the trace has, or does not
    values: range = range(0)  # of PTWRITE
    decoders: tuple = ("pt_flow", "perf")
    names: bool = False     # copies of kallsyms have the names of all functions
    later: bool = False     # a module is loaded later than perf copied the kernel
    before: str = ""        # a command before perf
    files: tuple = ()       # modules that are taken along
    says: str = ""          # what the output of the command must match
    truncated: bool = False
    # pt_twin makes the trace again: not what is lost where a buffer is full, and it knows neither
    # TraceStop, whose range no packet has, nor Event Trace.
    is_made_again: bool = True

    @property
    def in_guest(self):
        """The command as the machine runs it, with perf's events disabled until `gate` begins."""
        gated = self.command.replace("{data} ", f"{{data}} ./gate {self.name} ")
        return self.before + gated.format(
            data=f"out/{self.name}.data",
            perf="perf record -N -B -D -1 --control fifo:ctl,ack",
            pt_trace="./pt_trace --control fifo:ctl,ack")

    @property
    def boot(self):
        """The recordings of one boot have these in common. Where a trace overwrites itself, the
        bytes that the unit stored are not those of the files."""
        return (self.preset, self.kind, self.cpus, self.is_overwritten)

    @property
    def is_overwritten(self):
        """The trace is not written to the file as it is."""
        return re.search(r"aux-sample| -S ", self.command) is not None


def user(name, terms, program="work", **more):
    return recording(name, f"{{perf}} -e intel_pt/{terms}/u -o {{data}} ./{program}",
                     program=program, **more)


def kernel(name, terms, privileges="k", before="", **more):
    return recording(name, f"{{perf}} --kcore {before} -e intel_pt/{terms}/{privileges} "
                     "-o {data} ./small", user=privileges != "k", kernel=True, program="small",
                     **more)


def own(name, options, program="work", **more):
    """By pt_trace instead of perf record."""
    return recording(f"own-{name}", f"{{pt_trace}} {options} -o {{data}} ./{program}",
                     program=program, **more)


def own_of(name, command):
    """A program of the system, by pt_trace."""
    command = command.replace("{", "{{").replace("}", "}}")
    return recording(f"own-{name}", f"{{pt_trace}} -o {{data}} {command} >out/{name}.txt")


def changes(name, **more):
    """A program that changes the kernel's code."""
    return recording(name, "{perf} --kcore -a -m,4096 -e intel_pt//k -o {data} ./" + name,
                     user=False, kernel=True, program=name, names=True, **more)


RECORDINGS = [
    user("user", ""),
    kernel("kernel", ""),
    kernel("both", "", "uk"),
    user("signals", "", "events"),
    user("exceptions", "", "throws"),
    user("forks", "", "forks"),
    user("threads", "", "threads"),
    user("code32", "", "code32"),
    user("shared", "", "shared"),
    user("makes_code", "", "makes_code"),
    user("vdso", "", "vdso", decoders=("pt_flow",)),  # perf takes the vDSO of the running kernel
    user("cyc", "cyc"),
    user("noretcomp", "noretcomp"),
    user("mtc", "mtc,mtc_period=0"),
    recording("thread", "{perf} --per-thread -e intel_pt//u -o {data} ./itself", least=300_000),
    recording("processor", "{perf} -C 0 -e intel_pt//u -o {data} ./work"),
    recording("all", "{perf} -a -e intel_pt//u -o {data} ./forks", program="forks"),
    kernel("all-kernel", "", "uk", before="-a"),
    *(user(f"mtc_period-{n}", f"mtc,mtc_period={n}") for n in (3, 6)),
    # A process ends and another one continues within one period: pt_flow has a gap there.
    user("mtc_period-9", "mtc,mtc_period=9", part=True, least=150_000),
    *(user(f"psb_period-{n}", f"psb_period={n}") for n in range(6)),
    *(user(f"cyc_thresh-{n}", f"cyc,cyc_thresh={n}") for n in (1, 4, 12)),
    # Without times a decoder cannot separate processes that a CPU executes.
    recording("no-tsc", "{perf} --per-thread -e intel_pt/tsc=0,mtc=0/u -o {data} ./itself",
              least=300_000),
    user("no-pt", "pt=0"),  # as without terms: it only leaves `branch` without effect
    user("no-branch", "branch=0", compares=False,
         packets="+PSBEND +TSC +MTC -TNT -TIP -TIP.PGE -TIP.PGD"),
    recording("filter", "{perf} -e intel_pt//u "
              "--filter 'filter sort_all @ ./work' -o {data} ./work", within=("sort_all",)),
    recording("stop", "{perf} -e intel_pt//u "
              "--filter 'tracestop recurse @ ./work' -o {data} ./work", until="recurse",
              is_made_again=False),
    recording("two-filters", "{perf} -e intel_pt//u --filter "
              "'filter sort_all @ ./work,filter recurse @ ./work' -o {data} ./work",
              within=("sort_all", "recurse")),
    recording("filter-kernel", "{perf} --kcore -e intel_pt//k "
              "--filter 'filter do_sys_openat2' -o {data} ./small", user=False, kernel=True,
              program="small", within=("do_sys_openat2",)),
    recording("start", "{perf} -e intel_pt//u --filter 'start sort_all @ ./work' "
              "-o {data} ./work", compares=False, says="failed to set filter"),
    # After a truncated record pt_flow continues at the next PSB, perf at the next packet.
    recording("small-buffer", "{perf} -m,2 -e intel_pt/psb_period=0/u -o {data} ./work", part=True,
              truncated=True, least=20_000, is_made_again=False),
    recording("snapshot", "{perf} -S -e intel_pt//u -o {data} ./work", part=True, least=150_000),
    recording("snapshot-small", "{perf} -S -m,2 -e intel_pt/psb_period=0/u -o {data} ./work",
              part=True, least=10_000),
    recording("samples", "{perf} --aux-sample=4096 -e "
              "'{{intel_pt//u,instructions/period=50000/u}}' -o {data} ./work", part=True,
              least=100_000),
    user("ptwrite", "ptw,fup_on_ptw", "writes", preset="AlderLake-N",
         values=range(0x1000, 0x1064)),
    user("power", "pwr_evt", preset="AlderLake-N"),
    user("events", "event", "events", preset="AlderLake-N", is_made_again=False),
    user("no-tnt", "notnt", preset="AlderLake-N", compares=False,
         packets="+PSBEND +TIP +TIP.PGE +TIP.PGD -TNT"),
    *(user(f"kind-{kind}", "cyc,mtc,noretcomp" if kind == "atom" else "cyc,mtc", "events",
           kind=kind) for kind in ("manual", "broadwell", "skylake", "icelake", "atom")),
    *(kernel(f"all-kernel-{n}", "", "uk", before="-a", cpus=n) for n in (2, 4)),
    *(recording(f"all-{n}", "{perf} -a -e intel_pt//u -o {data} ./threads",
                program="threads", cpus=n) for n in (2, 4)),
    *(own(name, "", name) for name in ("work", "events", "throws", "forks", "threads", "code32",
                                       "shared", "makes_code", "small")),
    own("vdso", "", "vdso", decoders=("pt_flow",)),
    *(own(f"ctl-{number}", f"--ctl {words}") for number, words in enumerate(
        ("cyc", "noretcomp", "mtc=0", "psb=2K", "cyc,mtc=6,psb=64K,noretcomp"))),
    own("thread-cpus-2", "", "threads", cpus=2),
    own("thread-cpus-4", "", "threads", cpus=4),
    *(own_of(command.split()[0], command) for command in (
        "gzip -c /etc/hostname", "sort -r /etc/passwd", "sed s/a/b/g /etc/group",
        "find /etc/init.d", "grep -c o /etc/passwd", "md5sum /etc/group", "od -c /etc/hostname",
        "tar c /etc/hostname",
        "sh -c 'for i in 1 2; do echo $i | wc -c; done'",
        "awk '{ n += length($0) } END { print n }' /etc/passwd")),
    own("all", "-a", "forks"),
    own("all-2", "-a", "threads", cpus=2),
    own("function", "--filter ./work:sort_all", within=("sort_all",)),
    own("until", "--stop-at ./work:sort_all", until="sort_all", is_made_again=False),
    own("small-area", "--aux 8K --ctl psb=2K", part=True, truncated=True, least=20_000,
        is_made_again=False),
    # The filter and the definitions search all names, in millions of instructions.
    changes("ftrace", before="echo 'vfs_*' >/sys/kernel/tracing/set_ftrace_filter; "),
    # At the begin of a function, where ftrace does it, within one, and at a return.
    changes("kprobe", before="for one in p:a:do_sys_openat2 p:b:vfs_read+6 p:c:vfs_read+8 "
            "p:d:vfs_read+9 p:e:vfs_read+11 p:f:vfs_read+14 r:g:vfs_open; do "
            "echo $one | sed 's/:/ /2' >>/sys/kernel/tracing/kprobe_events; done; "
            "cat /sys/kernel/tracing/kprobe_events; "),
    changes("bpf"),
    changes("module", before="insmod ./dummy.ko; ", later=True, decoders=("pt_flow",),
            files=("drivers/net/dummy.ko", "drivers/block/loop.ko")),
]
QUICK = ["user", "kernel", "both", "signals", "exceptions", "threads", "cyc", "own-ctl-1",
         "filter", "ptwrite", "own-code32", "own-threads"]


def drawn(count, seed):
    """Recordings with random options."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        terms = [one for one in ("cyc", "noretcomp", f"mtc,mtc_period={chance.choice((0, 3, 6))}",
                             f"psb_period={chance.randrange(6)}")
                 if chance.random() < 0.5]
        program = chance.choice(["work", "events", "throws", "forks", "threads"])
        how = chance.choice(["", "-a", "-C 0", "--per-thread"])
        if how == "--per-thread":
            program = "itself"
        made.append(recording(
            f"random-{number}", f"{{perf}} {how} -e intel_pt/{','.join(terms)}/u "
            f"-o {{data}} ./{program}", program=program,
            cpus=chance.choice((1, 2)) if how == "-a" else 1))
        print(f"{made[-1].name}: {made[-1].command}")
    return made
