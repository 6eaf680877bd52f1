#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pt_model as a program: options, and invalid scripts. engine/worked_cases.cpp runs the
worked cases TC of the catalogue on the same machine.

    pt_model.py PT_MODEL
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
from tool_checks import ScriptChecks  # noqa: E402

PT_MODEL = sys.argv[1]


def run(*arguments, script=""):
    done = subprocess.run([PT_MODEL, *arguments], input=script, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class EveryTool(ScriptChecks, unittest.TestCase):
    TOOL = PT_MODEL
    FIRST, SECOND = "Jcc T", "JMP RAX->2000"
    PRINTS = [([], b"Jcc T; JMP RAX->2000"), (["--memory", "--explain"], b"1000 x JMP RAX->2000")]
    WRITES = [["-e", "JMP RAX->2000", "-o"]]
    READS = [[], ["--explain"]]
    READS_STDIN = [[], ["-"]]
    REFUSES = {(): 2, ("--setup", "LP=A+B"): 2}


class Options(unittest.TestCase):
    def test_events_from_standard_input(self):
        self.assertEqual(run("--setup", "OS=0", script="Jcc T\nJcc N; JMP RAX->2000\n\n"),
                         (0, "TNT(10), TIP(2000)\n", ""))
        self.assertEqual(run(script="# fault #PF\nfault #PF at=1000\n"),
                         run("-e", "fault #PF at=1000"))
        self.assertEqual(run(), (0, "none\n", ""))

    def test_a_script_may_begin_with_its_setup(self):
        script = "# a comment\nsetup OS=0\nJcc T; SYSCALL->kernel\n"
        self.assertEqual(run(script=script), (0, "TNT(1), TIP.PGD()\n", ""))
        self.assertNotEqual(run("--setup", "OS=1", script=script)[1], "TNT(1), TIP.PGD()\n")
        for wrong, about in (("setup XX=0\nJcc T", "setup 'XX=0': expected"),
                             ("Jcc T\nsetup OS=0", "one setup, before its events")):
            status, out, error = run(script=wrong)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(about, error)

    def test_show_prints_fields_in_the_given_order(self):
        self.assertEqual(run("-e", "Jcc T; Jcc N", "--show", "pending,TriggerEn,PSBFreq"),
                         (0, "none; pending=10; TriggerEn=1; PSBFreq=0\n", ""))
        self.assertEqual(run("--setup", "TraceEn=0", "-e", "NOP", "--show", "pending"),
                         (0, "none; pending=none\n", ""))

    def test_the_bytes_of_the_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.pt"
            self.assertEqual(run("-e", "Jcc T; JMP RAX->2000", "-o", str(path))[0], 0)
            self.assertEqual(path.read_bytes(), bytes.fromhex("06 6d 00 20 00 00 00 00"))
            done = subprocess.run([PT_MODEL, "-e", "Jcc T; JMP RAX->2000", "-o", "-"],
                                  capture_output=True)
            self.assertEqual((done.stdout, done.stderr), (path.read_bytes(), b""))
            status, out, err = run("-e", "NOP", "-o", folder)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(f"{folder}: Is a directory", err)
            # An invalid event leaves the file unchanged.
            self.assertEqual(run("-e", "fly", "-o", str(path))[0], 2)
            self.assertEqual(path.read_bytes()[:2], b"\x06\x6d")

    def test_the_memory_and_its_layout(self):
        status, out, err = run("-e", "Jcc T; JMP RAX->2000", "--memory")
        self.assertEqual((status, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual(lines[0], "TNT(1), TIP(2000)")
        self.assertRegex(lines[1], r"^  \w+  table: entry 0 the region at 10000000, ")
        self.assertEqual(lines[2], "  10000000  06 6D 00 20 00 00 00 00")
        self.assertEqual(len(lines), 3)

    def test_explain_prints_a_line_for_each_packet(self):
        status, out, err = run("--setup", "OS=0", "-e", "Jcc T; SYSCALL->kernel", "--explain")
        self.assertEqual((status, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual(lines[0], "TNT(1), TIP.PGD()")
        self.assertRegex(lines[1], r"^  TNT\(1\)  event 2, SYSCALL->kernel: GEN-120, .*: branches")
        self.assertRegex(lines[2], r"^  TIP.PGD\(\)  event 2, SYSCALL->kernel: GEN-101, .*: Packet")
        self.assertEqual(len(lines), 3)

    def test_explain_includes_packets_of_the_setup(self):
        out = run("--setup", "pending=111111", "-e", "NOP; JMP RAX->2000", "--explain")[1]
        self.assertEqual([line.split(":")[0] for line in out.splitlines()],
                         ["TNT(111111), TIP(2000)", "  TNT(111111)  setup",
                          "  TIP(2000)  event 2, JMP RAX->2000"])

    def test_two_processors_on_separate_lines(self):
        once = run("--setup", "LP=A+B", "-e", "A: Jcc T; JMP RAX->2000 / B: JMP RAX->3000")
        self.assertEqual(once, (0, "A: TNT(1), TIP(2000) / B: TIP(3000)\n", ""))
        for script in ("A: Jcc T\nJMP RAX->2000\n/ B: JMP RAX->3000\n",
                       "A:\nJcc T\nJMP RAX->2000 / B:\nJMP RAX->3000\n"):
            self.assertEqual(run("--setup", "LP=A+B", script=script), once)
        self.assertIn("event 3 'fly'", run("--setup", "LP=A+B", "-e", "A: NOP; NOP / B: fly")[2])

    def test_memory_does_not_grow_with_the_script(self):
        command = f"yes NOP | head -n 3000000 | '{PT_MODEL}' --explain"
        with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE) as child:
            self.assertEqual(child.stdout.read(), b"none\n")
            _, _, usage = os.wait4(child.pid, 0)
            child.returncode = 0
        self.assertLess(usage.ru_maxrss, 32 << 10)


class ModelOptions(unittest.TestCase):
    def test_every_option_of_the_model_is_an_item_of_a_setup(self):
        header = pathlib.Path("include/ptspec/engine/model_options.hpp").read_text(encoding="utf-8")
        names = re.findall(r'visit\("(\w+)",\s*options\.(\w+),', header)
        self.assertGreater(len(names), 10)
        for member, name in names:
            with self.subTest(option=name):
                self.assertEqual(member, name)
                value = 6 if name == "tnt_capacity" else 1
                status, _, err = run("--setup", f"{name}={value}", "-e", "NOP")
                self.assertEqual((status, err), (0, ""))

    def test_a_kind_of_processor_is_a_set_of_options(self):
        event = ("-e", "psb due")
        wanted = {"manual": "PSB, CBR, MODE.Exec(64), FUP(1000), PSBEND",
                  "atom": "PSB, CBR, FUP(1000), MODE.Exec(64), PSBEND",
                  "skylake": "MODE.Exec(64), FUP(1000), "}
        for kind, packets in wanted.items():
            for arguments in (("--kind", kind, "--setup", "OS=0"),
                              ("--setup", f"kind={kind},OS=0")):
                status, out, err = run(*arguments, *event)
                self.assertEqual((status, err), (0, ""))
                self.assertIn(packets, out)
        status, out, err = run("--kind", "z80", *event)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("skylake", err)

    def test_an_option_of_the_model_changes_the_trace(self):
        events = "JMP RAX->2000; JMP RAX->12345678"
        self.assertEqual(run("--setup", "pads=0", "-e", events)[1].strip(),
                         "TIP(2000), TIP(12345678)")
        self.assertEqual(run("--setup", "pads=1", "-e", events)[1].strip(),
                         "TIP(2000), PAD, TIP(12345678)")

    def test_a_return_of_fred_is_an_iret_event_if_an_option_says_so(self):  # GEN-301
        events = "ERETU->5000; ERETS->6000; SYSRET->7000"
        self.assertEqual(run("--setup", "EventEn=1, CPL=0", "-e", events)[1].strip(),
                         "TIP(5000), TIP(6000), TIP(7000)")
        self.assertEqual(
            run("--setup", "EventEn=1, CPL=0, iret_at_all_returns=1", "-e", events)[1].strip(),
            ", ".join(f"CFE(IRET,IP=0), TIP({target})" for target in (5000, 6000, 7000)))

    def test_time_within_events(self):
        setup = "OS=0, TSCEn=MTCEn=1, MTCFreq=3, cycles=0"
        for script, packets in {
                "clocks ART=100 TSC=5000 edge=4FFE ratio=21; psb due takes=CBR@0+MTC":
                    "PSB, TSC, TMA, MTC(21), CBR, MODE.Exec(64), FUP(1000), PSBEND",
                "clocks ART=100; psb due takes=TSC@0+MTC.now": "PSB, MTC(20), TSC",
                "clocks ART=100; psb due takes=TSC@0+MTC": "PSB, MTC(21), TSC",
                "clocks ART=100; clock stop; clock resume takes=CBR@0+MTC":
                    "TSC, TMA, MTC(21), CBR",
                "clocks ART=100; HLT; wake store takes=TMA@0+MTC": "TSC, MTC(21), TMA, CBR",
                "clocks ART=100; interrupt takes=TIP.PGD@0+MTC": "FUP(1002), MTC(21), TIP.PGD()",
                "ratio 12": "CBR"}.items():
            self.assertIn(packets, run("--setup", setup, "-e", script)[1], script)
        setup = "OS=0, TSCEn=CYCEn=1, cycles=0"
        for script, packets in {
                "cycles 5; JMP RAX->2000": "CYC(5), TIP(2000)",
                "interrupt takes=PIP@3,TIP.PGD@4": "FUP(1002), CYC(7), TIP.PGD()",
                "VM exit TraceEn=0 takes=TIP.PGD@4": "FUP(1000), CYC(4), TIP.PGD()",
                "psb due takes=TSC@9": "PSB, CYC(9), TSC, CBR"}.items():
            self.assertIn(packets, run("--setup", setup, "-e", script)[1], script)

    def test_an_enable_that_changes_os(self):  # GEN-170
        setup = "OS=0, TraceEn=0, CPL=0, cycles=0"
        script = ("WRMSR TraceEn=1 at=1000 OS=1 next=1002; WRMSR TraceEn=0; "
                  "WRMSR PacketByteCnt=0; WRMSR TraceEn=1 OS=0")
        self.assertEqual(run("--setup", setup, "-e", script)[1].strip(),
                         "PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(1002), "
                         "FUP(1002), TIP.PGD(), PSB, CBR, PSBEND")

    def test_the_output_offset_aligns_packets(self):  # GEN-010
        setup = "kind=skylake, OS=0, CPL=0, OutputOffset=4, cycles=0"
        self.assertEqual(run("--setup", setup, "-e", "psb due")[1].strip()[:20],
                         "PAD, PAD, PAD, PAD, ")

    def test_several_branches_and_a_code_module(self):
        self.assertEqual(run("-e", "Jcc TTN; ACM begin")[1].strip(), "TNT(110)")

    def test_a_lost_call_stack(self):
        calls = "CALL rel at=1000->2000; CALL rel at=2000->3000; callstack lost; RET; JMP RAX->9000"
        self.assertEqual(run("-e", calls)[1].strip(), "TIP(2005), TIP(9000)")

    def test_enabling_without_a_psb(self):
        setup = "OS=0, TraceEn=0, CPL=0, VMX=root, conceal=exits+entries"
        script = "WRMSR PacketByteCnt=5; VM entry TraceEn=1 CPL=3 VMX=root->2000"
        self.assertEqual(run("--setup", setup, "-e", script)[1].strip(),
                         "CBR, MODE.Exec(64), TIP.PGE(2000)")

    def test_a_vm_entry_has_up_to_nine_arguments(self):
        setup = "OS=TraceEn=0, CYCEn=1, CPL=0, VMX=root, conceal=exits+entries, cycles=0"
        script = ("WRMSR PacketByteCnt=5; VM entry at=1000 TraceEn=1 OS=1 User=1 CPL=3 CR3=2000 "
                  "mode=32 VMX=root takes=TIP.PGE@5->2000")
        self.assertEqual(run("--setup", setup, "-e", script)[1].strip(),
                         "CBR, MODE.Exec(32), CYC(5), TIP.PGE(2000)")

    def test_times_within_an_event_are_of_no_later_one(self):
        script = "clocks takes=TSC@5; t=7 JMP RAX->2000"
        self.assertEqual(run("--setup", "CYCEn=1, cycles=0", "-e", script)[1].strip(),
                         "CYC(7), TIP(2000)")


class Refusals(unittest.TestCase):
    def refused(self, expected, *arguments, script=""):
        status, out, err = run(*arguments, script=script)
        self.assertEqual((status, out), (2, ""), arguments)
        self.assertTrue(err.startswith("pt_model: ") and err.count("\n") == 1, err)
        self.assertIn(expected, err)

    def test_an_invalid_event_is_reported_with_its_number(self):
        for text, expected in {
                "Jcc": "Jcc T, Jcc N", "Jcc T->20G0": "address or kernel",
                "Jcc N->2000": "target",
                "JMP": "rel or the name", "RET sometimes": "compressed", "fly": "an event",
                "MOV CR4,1": "MOV CR3", "MOV CR3,": "number", "WRMSR TraceEn=2": "TraceEn=0",
                "MWAIT 100,1": "hints,ext", "MWAIT thread=C16": "C-state", "EENTER": "production",
                "VM": "VM exit", "INT": "vector", "INT 100": "vector", "INT 3 gate": "task_gate",
                "INT 3 task_gate TIP": "PACKET@cycle", "PTWRITE 5": "register",
                "clock": "clock stop", "wake": "wake interrupt", "mtc 100": "two hexadecimal",
                "ART": "an event", "t=x NOP": "cycles", "0 x NOP": "1 to 1000000",
                "NOP at=xyz": "hexadecimal", "NOP nonsense=1": "arguments that this event has",
                "IRET mode=48": "16, 32 or 64", "JMP RAX->": "target", "INIT": "INIT BSP",
                "interrupt vector=100": "smaller", "SIPI vector=100->0": "smaller",
                "fault #PF vector=100": "smaller", "IRET CPL=4": "smaller", "IRET IF=2": "smaller",
                "any": "any branches", "fall": "fall through", "RSM TraceEn=1": "TraceEn",
                "Jcc TX": "several letters", "psb due takes=x": "PACKET@cycles",
                "psb due takes=TSC@A": "PACKET@cycles", "psb due takes=TSC@1+TMA": "+MTC",
                "psb due takes=" + ",".join(["TSC@1"] * 33): "at most 32",
                "VM exit TraceEn=0 OS=0": "arguments", "cycles": "decimal", "cycles 5 x": "decimal",
                "clocks ratio=100": "smaller", "ratio 100": "two hexadecimal",
                "WRMSR PacketByteCnt=20000": "PacketByteCnt=v", "ACM": "ACM begin",
                "callstack": "callstack lost",
                "WRMSR PacketByteCnt=1": "does not fault", "IRET VMX=some": "root or nonroot",
                "VM exit TraceEn=2": "smaller"}.items():
            with self.subTest(event=text):
                self.refused(expected, "-e", f"NOP; {text}")
                self.refused("event 2 ", "-e", f"NOP; {text}")
        self.refused("event 2 ", script="NOP\n\nfly\n")
        self.refused("not before the last", "-e", "t=5 NOP; t=4 NOP")
        for text in ("NOP", "", "A: NOP", "NOP; A: NOP / B: NOP"):
            self.refused("A: events / B: events", "--setup", "LP=A+B", "-e", text)

    def test_an_invalid_setup(self):
        for text in ("OS", "OS=2", "Nothing=1", "ADDR0=[1000,10FF]", "ADDR4=[1,2] stop", "CPL=4",
                     "ADDR0=[1000] stop", "VMX=some", "conceal=some", "cycles=A", "mode=48",
                     "pending=2", "CR3=xyz", "LP=A", "IF=2", "callstack=40", "CS=10000",
                     "TSX=2", "TNT=7",
                     "TriggerEn=1", "OS=1,,User=1", "pads=4", "tnt_capacity=5",
                     "cycle_counter_bits=0"):
            with self.subTest(setup=text):
                self.refused("setup ", "--setup", text, "-e", "NOP")

    def test_unknown_options(self):
        self.refused("--events: no such option", "--events", "NOP")
        self.refused("--setup needs an argument", "--setup")
        self.refused("--show: no such field: 'Nothing'", "-e", "NOP", "--show", "Nothing")

    def test_input_that_is_not_text(self):
        done = subprocess.run([PT_MODEL], input=b"\0\xff\x1b[2J", capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertRegex(done.stderr, rb"^pt_model: [ -~]+\n$")


if __name__ == "__main__":
    skips.main(sys.argv[:1])
