#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_record as a program: wrong usage; recordings of small programs if qemu-x86_64 is in
PATH, and what perf reads of them if perf is.

    pt_record.py PT_RECORD PT_DUMP

Exit status: 77 if qemu-x86_64 or the plugin is missing, and what could be tested is right.
"""

import functools
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import raw_output  # noqa: E402
import skips  # noqa: E402
from folder import Folder  # noqa: E402

PT_RECORD, PT_DUMP = (str(pathlib.Path(name).resolve()) for name in sys.argv[1:3])
QEMU = shutil.which("qemu-x86_64")
PERF = shutil.which("perf")
CXX = shutil.which(os.environ.get("CXX") or "g++")
PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "differential" / "programs" / "bare"
PLUGIN = pathlib.Path(PT_RECORD).parent / "pt_record_qemu.so"
HAS_SYMBOLS = pathlib.Path("/usr/lib/debug/.build-id").is_dir()
IS_X86 = sys.platform == "linux" and os.uname().machine == "x86_64"
CAN_RECORD = QEMU is not None and PLUGIN.exists()
SUMMARY = re.compile(r"^pt_record: (.*): ([\d,]+) instructions, ([\d,]+) bytes of trace, "
                     r"(\d+) threads?$", re.M)


class PtRecord(Folder):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "perf.data"
        self.raw = self.folder / "raw"

    def run_tool(self, *arguments, **how):
        return subprocess.run([PT_RECORD, *map(str, arguments)], capture_output=True, text=True,
                              timeout=120, cwd=self.folder, **how)

    def refused(self, *arguments):
        done = self.run_tool(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Apt_record: .+\n\Z")
        self.assertEqual(list(self.folder.iterdir()), [], "no file remains")
        return done.stderr

    def record(self, *arguments, status=0):
        shutil.rmtree(self.raw, ignore_errors=True)
        done = self.run_tool("-o", self.data, "--raw", self.raw, *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertRegex(done.stderr, SUMMARY)
        self.assertNotIn("incomplete", done.stderr)
        return done

    def built(self, name):
        """A program without a C library, from the folder of such programs."""
        if CXX is None or not IS_X86:
            self.skipTest("a compiler for x86-64")
        program = self.folder / name
        subprocess.run([CXX, "-std=c++20", "-O2", "-nostdlib", "-static", "-mno-red-zone",
                        "-fno-stack-protector", PROGRAMS / f"{name}.cpp", "-o", program],
                       check=True, timeout=120)
        return program

    def started(self, *arguments, **how):
        """A recording that runs until the program has printed a line."""
        shutil.rmtree(self.raw, ignore_errors=True)
        tool = subprocess.Popen([PT_RECORD, "-o", self.data, "--raw", self.raw,
                                 *map(str, arguments)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, cwd=self.folder, **how)
        tool.stdout.readline()
        time.sleep(0.1)
        return tool

    def recorded(self):
        """The traces and the logs, by thread in the order of their start, which are complete."""
        self.assertEqual(list(self.raw.glob("*.state")), [])
        self.assertNotIn("\0", "".join(one.read_text() for one in self.raw.glob("*.events")))
        names = sorted((path.stem for path in self.raw.glob("*.pt")), key=lambda name:
                       [int(number) for number in name.split(".")])
        found = [((self.raw / f"{name}.pt").read_bytes(), (self.raw / f"{name}.log").read_text())
                 for name in names]
        if PERF:
            for name, (_, log) in zip(names, found):
                listed = self.perf("script", "--itrace=i1ie", "-F", "ip", "--tid",
                                   name.split(".")[1])
                self.assertEqual(f"{listed.count(chr(10))}", log.split()[1])
        return found

    def perf(self, *arguments):
        done = subprocess.run([PERF, *arguments, "-i", self.data], capture_output=True, text=True,
                              timeout=120, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    # wrong usage

    def test_help(self):
        done = self.run_tool("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("usage: pt_record "))
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)

    def test_wrong_usage(self):
        self.assertIn("needs a program", self.refused())
        self.assertIn("no such option", self.refused("--nothing", "true"))
        self.assertIn("no such program in PATH", self.refused("no-such-program"))
        self.assertIn("No such file", self.refused("./no-such-program"))
        self.assertIn("no such kind", self.refused("--kind", "pentium", "true"))
        self.assertIn("no such engine", self.refused("--engine", "gem5", "true"))
        self.assertIn("no such word", self.refused("--ctl", "everything", "true"))
        self.assertIn("is not a number", self.refused("--ctl", "filter=x-y", "true"))
        self.assertIn("kernel code", self.refused("--ctl", "os", "true"))
        self.assertIn("psb_every", self.refused("--ctl", "psb=64M", "true"))
        self.assertIn("--check needs --raw", self.refused("--check", "true"))
        self.assertIn("needs a file", self.refused("-o", "-", "true"))
        if PLUGIN.exists():
            self.assertIn("is not installed", self.refused("--qemu", "no-such-qemu", "true"))
        self.assertIn("--plugin names it", self.refused("--plugin", "nothing.so", "true"))

    def test_files_that_are_no_programs_are_named(self):
        head = b"\x7fELF%c\x01\x01" + bytes(9) + b"\x02\0%c\0"
        (self.folder / "folder").mkdir()
        for name, content, said in (("text", b"echo hi\n", "no script that begins with #!"),
                                    ("i386", head % (1, 3), "a 32-bit program"),
                                    ("x32", head % (1, 62), "an x32 program"),
                                    ("arm", head % (2, 183), "for another architecture"),
                                    ("folder", None, "Is a directory")):
            if content is not None:
                (self.folder / name).write_bytes(content)
                (self.folder / name).chmod(0o755)
            for engine in ("qemu", "step"):
                done = self.run_tool("--engine", engine, f"./{name}")
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)
                self.assertFalse(self.data.exists())

    def test_raw_output_that_is_none(self):
        self.assertIn("No such file", self.refused("--from", "nothing"))
        self.assertIn("no other option", self.refused("--from", "raw", "--kind", "atom"))
        self.assertIn("no other option", self.refused("--from", "raw", "true"))

    def test_the_directory_of_raw_output_must_be_empty(self):
        (self.folder / "full").mkdir()
        (self.folder / "full" / "file").write_text("")
        done = self.run_tool("--engine", "step", "--raw", "full", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("not empty", done.stderr)

    # recordings

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_output_that_cannot_be_written(self):
        self.data.symlink_to("/dev/full")
        done = self.run_tool("-o", self.data, "true")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Apt_record: .*perf.data: No space left on device; "
                                      r"the raw output is in .*, see --from\n\Z")
        raw = re.search("is in (.*), see", done.stderr)[1]
        self.data.unlink()
        done = self.run_tool("-o", self.data, "--from", raw)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, SUMMARY)
        if PERF:
            self.assertIn(" _exit+", self.perf("script", "--itrace=b"))

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_a_recording_obeys_the_rules_of_a_trace(self):
        for options in ([], ["--ctl", "notsc"], ["--ctl", "tsc,mtc=3"],
                        ["--ctl", "mtc=0,cyc", "--kind", "skylake"],
                        ["--ctl", "noretcomp", "--kind", "broadwell"], ["--kind", "icelake"],
                        ["--kind", "atom", "--ctl", "psb=2K"]):
            with self.subTest(options):
                self.record(*options, "/bin/true")
                kind = options[options.index("--kind") + 1] if "--kind" in options else "manual"
                traces = list(self.raw.glob("*.pt"))
                self.assertEqual(len(traces), 1)
                done = subprocess.run([PT_DUMP, "--check", "--kind", kind, traces[0]],
                                      capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
                shutil.rmtree(self.raw)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_standard_streams_and_the_status_are_those_of_the_program(self):
        done = self.record("sh", "-c", "cat; echo to stderr >&2; exit 7", status=7)
        self.assertEqual(done.stdout, "")
        self.assertIn("to stderr\n", done.stderr)
        shutil.rmtree(self.raw)
        self.record("sh", "-c", "kill -TERM $$", status=128 + signal.SIGTERM)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_a_script_is_recorded_with_its_interpreter(self):
        script = self.folder / "script"
        script.write_text("#!/bin/sh -e\necho $0 $1\n")
        script.chmod(0o755)
        self.assertEqual(self.record("./script", "word").stdout, "./script word\n")

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_forked_processes_are_recorded(self):
        done = self.record("sh", "-c", "(:); (:); :")
        self.assertEqual(SUMMARY.search(done.stderr)[4], "3")

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_where_a_process_executes_a_program_its_recording_ends(self):
        done = self.record("sh", "-c", "/bin/true; exec /bin/echo end")
        self.assertEqual(done.stdout, "end\n")
        self.assertEqual(len(re.findall(r"ends where it executes /bin/(true|echo)\n", done.stderr)),
                         2, done.stderr)

    def test_the_shared_counters_have_their_space_before_the_program_runs(self):
        emulator = self.folder / "emulator"
        emulator.write_text("#!/bin/sh\nstat -c %b raw/progress\n")
        emulator.chmod(0o755)
        done = self.run_tool("--raw", "raw", "--qemu", emulator, "--plugin", emulator, "/bin/true")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertGreater(int(done.stdout), 0)

    def test_settings_that_cannot_be_written_leave_no_file(self):
        limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (30, 30))
        done = self.run_tool("--raw", self.raw, "--qemu", PT_RECORD, "--plugin", PT_RECORD,
                             "/bin/true", preexec_fn=limit)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Apt_record: .*/settings: File too large\n\Z")
        self.assertEqual(list(self.raw.iterdir()), [])

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_a_log_that_cannot_be_written_is_reported(self):
        script = self.folder / "script"
        script.write_text(f"#!/bin/sh\nmkdir {self.raw}/$$.$$.log\n")
        script.chmod(0o755)
        done = self.run_tool("-o", self.data, "--raw", self.raw, "--check", script)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("incomplete: Is a directory", done.stderr)

    def test_programs_started_by_exec_are_said_to_be_missing(self):
        trace = bytes.fromhex("0282" * 8 + "0223")
        last = "the recording of process 100 ends where it executes /bin/bash"
        for events, expected in ((["2 exec 100 /bin/sh", "3 exec 100 /bin/bash"],
                                  [last, "programs started by exec are not recorded"]),
                                 (["2 exec 100 /bin/nothing", "3 exit 100"], [])):
            directory = raw_output.write(self.folder / f"raw{len(events[0])}", [trace], b"\x90",
                                         0x1000, events)
            done = self.run_tool("-o", self.data, "--from", directory)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stderr.splitlines()[:-1],
                             [f"pt_record: {line}" for line in expected])

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_an_existing_file_is_kept(self):
        self.data.write_text("before")
        self.record("true")
        self.assertEqual((self.folder / "perf.data.old").read_text(), "before")
        self.assertGreater(self.data.stat().st_size, 1000)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_vsyscalls_are_executed_by_the_kernel(self):
        if CXX is None or not IS_X86:
            self.skipTest("a compiler for x86-64")
        source = self.folder / "vsyscall.cpp"
        source.write_text("int main() { auto const time = reinterpret_cast<long (*)(long*)>("
                          "0xFFFF'FFFF'FF60'0400); return time(nullptr) > 0 ? 7 : 8; }\n")
        subprocess.run([CXX, "-std=c++20", source, "-o", self.folder / "vsyscall"], check=True)
        done = self.record("--check", self.folder / "vsyscall", status=7)
        self.assertNotIn("placed at", done.stderr)
        (_, log), = self.recorded()
        self.assertEqual(SUMMARY.search(done.stderr)[2].replace(",", ""), log.split()[1])

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_descriptors_of_the_program_are_its_own(self):
        done = self.record("sh", "-c", "exec 3>a 4>b 5>c 6>d; i=0; while [ $i -lt 20000 ]; do "
                           "i=$((i+1)); done; (echo hi >&3); echo end >&5")
        self.assertEqual([(self.folder / name).read_text() for name in "abcd"],
                         ["hi\n", "", "end\n", ""], done.stderr)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_an_interrupt_ends_the_program_and_what_was_recorded_is_readable(self):
        tool = subprocess.Popen([PT_RECORD, "-o", self.data, "sh", "-c", "while :; do :; done"],
                                stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                start_new_session=True)
        time.sleep(1)
        os.killpg(tool.pid, signal.SIGINT)
        _, said = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 128 + signal.SIGINT, said)
        self.assertRegex(said, SUMMARY)
        self.assertGreater(int(SUMMARY.search(said)[3].replace(",", "")), 1000)
        self.assertEqual([one.name for one in self.folder.iterdir()], ["perf.data"])

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_a_full_disk_is_an_error_and_the_beginning_is_kept(self):
        # The limit on the size of a file stands for it.
        done = self.run_tool("-o", self.data, "--raw", self.raw, "sh", "-c",
                             "trap '' XFSZ; ulimit -f 400; i=0; "
                             "while [ $i -lt 30000 ]; do i=$((i+1)); done; echo end")
        self.assertEqual(done.stdout, "end\n", done.stderr)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, "traces of 1 thread are incomplete: File too large")
        self.assertRegex(done.stderr, SUMMARY)

    @unittest.skipUnless(CAN_RECORD and PERF, "qemu-x86_64 and perf")
    def test_perf_lists_the_branches_with_symbols(self):
        for options in ([], ["--ctl", "tsc,mtc=3"], ["--ctl", "tsc,mtc=3,cyc"]):
            with self.subTest(options):
                self.record(*options, "/bin/true")
                branches = self.perf("script", "--itrace=b")
                self.assertGreater(branches.count("\n"), 5000)
                self.assertRegex(branches, r" __libc_start_main(@@\S+)?\+")
                if HAS_SYMBOLS:
                    self.assertIn(" _dl_start+", branches)
                else:
                    skips.say("the symbols of the C library", self.id().rpartition(".")[2])
                self.assertRegex(branches, r"_exit\+0x[0-9a-f]+ \(.*libc.so.6\) => +0 \[unknown\]")
                self.assertEqual(self.perf("script", "--itrace=e"), "")
                shutil.rmtree(self.raw)

    # ends

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_a_program_that_dies_is_recorded_to_its_end(self):
        # The letters of the program, and the signal. What it executes does not depend on time.
        program = self.built("deaths")
        for letter, died in (("s", signal.SIGSEGV), ("f", signal.SIGSEGV), ("i", signal.SIGILL),
                             ("d", signal.SIGFPE), ("t", signal.SIGTRAP), ("h", signal.SIGSEGV),
                             ("a", signal.SIGABRT), ("k", signal.SIGKILL), ("c", signal.SIGILL),
                             ("F", signal.SIGSEGV), ("e", 0)):
            found = {}
            for engine in ("qemu", "step"):
                with self.subTest(letter, engine=engine):
                    shutil.rmtree(self.raw, ignore_errors=True)
                    done = self.run_tool("-o", self.data, "--raw", self.raw, "--check", "--ctl",
                                         "notsc", "--engine", engine, program, letter)
                    if "ptrace is not allowed" in done.stderr:
                        continue
                    self.assertEqual(done.returncode, died and 128 + died, done.stderr)
                    found[engine] = self.recorded()
            if len(found) == 2:
                self.assertEqual(found["qemu"], found["step"], letter)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_where_the_trace_of_a_fault_ends(self):
        program = self.built("deaths")
        symbols = subprocess.run(["objdump", "-d", program], capture_output=True, text=True)
        if symbols.returncode != 0:
            self.skipTest("objdump")
        done = self.run_tool("-o", self.data, "--raw", self.raw, program, "i")
        self.assertEqual(done.returncode, 128 + signal.SIGILL, done.stderr)
        trace = next(self.raw.glob("*.pt"))
        listed = subprocess.run([PT_DUMP, trace], capture_output=True, text=True, check=True)
        packets = [line for line in listed.stdout.splitlines() if " pad " not in line]
        self.assertRegex(packets[-2], " tip.pgd .*payload=- ip=-$")
        fup = re.search(" fup .*ip=0x([0-9a-f]+)$", packets[-3])
        self.assertRegex(symbols.stdout, rf"\n +{fup[1]}:.*\tud2")

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_a_program_that_is_killed_is_recorded_to_its_last_block(self):
        program = self.built("deaths")
        for letter in "up":
            for which, ctl in ((signal.SIGKILL, "notsc"), (signal.SIGKILL, "mtc=3,cyc"),
                               (signal.SIGTERM, "tsc"), (signal.SIGSEGV, "notsc")):
                with self.subTest(letter, which=which, ctl=ctl):
                    tool = self.started("--check", "--ctl", ctl, program, letter)
                    process = next(self.raw.glob("*.code")).stem
                    os.kill(int(process), which)
                    _, said = tool.communicate(timeout=60)
                    self.assertEqual(tool.returncode, 128 + which, said)
                    (trace, log), = self.recorded()
                    self.assertNotEqual(trace[-1], 0)
                    self.assertEqual(SUMMARY.search(said)[2].replace(",", ""), log.split()[1])

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_all_threads_of_a_process_that_dies_are_recorded_to_their_end(self):
        program = self.built("deaths")
        for letter, status in (("P", 139), ("S", 139), ("X", 7)):
            with self.subTest(letter):
                self.record("--check", program, letter, status=status)
                self.assertEqual(len(self.recorded()), 2)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_far_transfers_in_user_code_are_recorded(self):
        # perf takes a far RET for a near one, so RETs are not compressed here.
        program = self.built("far")
        found = {}
        for engine in ("qemu", "step"):
            done = self.run_tool("-o", self.data, "--raw", self.raw, "--check", "--ctl",
                                 "notsc,noretcomp", "--engine", engine, program)
            if "ptrace is not allowed" in done.stderr:
                continue
            self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
            found[engine] = self.recorded()
            self.assertIn("instructions 605 ", found[engine][0][1])
            shutil.rmtree(self.raw)
        self.assertEqual(found["qemu"], found.get("step", found["qemu"]))

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_signals_to_the_recorder_are_passed_to_the_program(self):
        # A shell has too many instructions to step through.
        program = self.built("deaths")
        for which in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            script = f"trap 'echo got it; exit 5' {which.name[3:]}; echo ready; while :; do :; done"
            for engine, command in (("qemu", ["sh", "-c", script]), ("qemu", [program, "g"]),
                                    ("step", [program, "g"])):
                with self.subTest(which, engine=engine, command=command[0]):
                    tool = self.started("--engine", engine, *command)
                    tool.send_signal(which)
                    said = tool.communicate(timeout=60)
                    if "ptrace is not allowed" in said[1]:
                        continue
                    self.assertEqual((tool.returncode, said[0]), (128 + which, "got it\n"),
                                     said[1])
                    self.assertRegex(said[1], SUMMARY)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_after_a_second_signal_the_program_is_not_waited_for(self):
        tool = self.started("sh", "-c", "trap '' TERM; echo ready; while :; do :; done")
        tool.send_signal(signal.SIGTERM)
        with self.assertRaises(subprocess.TimeoutExpired):
            tool.wait(timeout=1)
        tool.send_signal(signal.SIGTERM)
        _, said = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 128 + signal.SIGTERM, said)
        self.assertRegex(said, SUMMARY)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_a_recorder_that_was_killed_leaves_output_that_can_be_read(self):
        tool = self.started("--check", self.built("deaths"), "u")
        process = next(self.raw.glob("*.code")).stem
        tool.kill()
        tool.communicate(timeout=60)
        for _ in range(100):
            if not os.path.exists(f"/proc/{process}"):
                break
            time.sleep(0.1)
        done = self.run_tool("-o", self.data, "--from", self.raw)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.recorded()), 1)

    @unittest.skipUnless(CAN_RECORD, "qemu-x86_64")
    def test_a_program_may_close_all_descriptors(self):
        done = self.record(sys.executable, "-c", "import os; os.closerange(3, 4096)\n"
                           "for i in range(200000): pass")
        self.assertGreater(int(SUMMARY.search(done.stderr)[3].replace(",", "")), 1_000_000)

    @unittest.skipUnless(CAN_RECORD and PERF, "qemu-x86_64 and perf")
    def test_perf_decodes_a_remapped_address_with_the_code_of_its_time(self):
        if CXX is None or not IS_X86:
            self.skipTest("a compiler for x86-64")
        # Functions of three to six branches, at the same address in turn.
        for i in range(4):
            code = b"\xeb\x01\x90" * (3 + i) + b"\xb8%c\0\0\0\xc3" % i
            (self.folder / f"code{i}").write_bytes(code.ljust(4096, b"\x90"))
        (self.folder / "remap.cpp").write_text("""
            #include <fcntl.h>
            #include <sys/mman.h>
            int main() {
                char name[] = "code0";
                void* at = nullptr;
                int sum = 0;
                for (int i = 0; i < 40; ++i) {
                    name[4] = static_cast<char>('0' + i % 4);
                    int const file = open(name, O_RDONLY);
                    at = mmap(at, 4096, PROT_READ | PROT_EXEC,
                              MAP_PRIVATE | (at != nullptr ? MAP_FIXED : 0), file, 0);
                    for (int j = 0; j < 50; ++j) { sum += reinterpret_cast<int (*)()>(at)(); }
                }
                return sum == 3000 ? 7 : 8;
            }""")
        subprocess.run([CXX, "-std=c++20", "-O1", "remap.cpp", "-o", "remap"], check=True,
                       cwd=self.folder)
        self.record("--check", "./remap", status=7)
        self.recorded()
        self.assertEqual(self.perf("script", "--itrace=e"), "")

    @unittest.skipUnless(CAN_RECORD and PERF and shutil.which("readelf"),
                         "qemu-x86_64, perf and readelf")
    def test_mappings_have_the_build_ids_of_their_files(self):
        self.record("true")
        listed = self.perf("script", "--show-mmap-events")
        found = re.findall(r"MMAP2 .* <([0-9a-f]{40})>\]: r-xp (/.*)", listed)
        self.assertIn(str(pathlib.Path(shutil.which("true")).resolve()),
                      [str(pathlib.Path(path).resolve()) for _, path in found])
        for number, path in found:
            notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True)
            self.assertIn(f"Build ID: {number}", notes.stdout)

    # the other engine

    @unittest.skipUnless(IS_X86, "an x86-64 processor")
    def test_stepping_ends_where_a_program_is_executed(self):
        done = self.run_tool("--engine", "step", "-o", self.data, "--raw", self.raw, "--check",
                             self.built("deaths"), "x")
        if "ptrace is not allowed" in done.stderr:
            self.skipTest("ptrace")
        self.assertEqual(done.returncode, 9, done.stderr)
        self.assertRegex(done.stderr, "ends where it executes /.*sh\n")
        self.recorded()

    @unittest.skipUnless(IS_X86, "an x86-64 processor")
    def test_stepping_records_every_instruction(self):
        done = self.run_tool("--engine", "step", "-o", self.data, "--raw", self.raw, "--check",
                             "/bin/true")
        if "ptrace is not allowed" in done.stderr:
            self.skipTest("ptrace")
        self.assertEqual(done.returncode, 0, done.stderr)
        log = next(self.raw.glob("*.log")).read_text()
        counted = int(re.fullmatch(r"instructions (\d+) hash [0-9a-f]{16}\n", log)[1])
        self.assertGreater(counted, 50000)
        if PERF:
            instructions = self.perf("script", "--itrace=i1ie", "-F", "ip")
            self.assertEqual(instructions.count("\n"), counted)


if __name__ == "__main__":
    skips.main(sys.argv[:1])
