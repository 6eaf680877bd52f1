#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of what_if as a program: the examples of its page what_if.md, each statement, and invalid
statements. access/cases.cpp and engine/cases.cpp evaluate the worked cases of the catalogue.

    what_if.py WHAT_IF
"""

import csv
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
from tool_checks import ScriptChecks  # noqa: E402

WHAT_IF = sys.argv[1]
SPEC = pathlib.Path(__file__).resolve().parents[1] / "spec"


def run(script, *arguments):
    done = subprocess.run([WHAT_IF, *arguments], input=script, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class EveryTool(ScriptChecks, unittest.TestCase):
    TOOL = WHAT_IF
    FIRST, SECOND = "set CTL=2109", "R570"
    PRINTS = [([], b"R570"), (["-e", "R570; R571"], b""), (["--explain"], b"W570=40000\n" * 5000)]
    READS = [[], ["--explain"]]
    READS_STDIN = [[], ["-"]]
    REFUSES = {(): 2}


class WhatIf(unittest.TestCase):
    def says(self, script, *lines):
        status, out, err = run(script)
        self.assertEqual((status, out.splitlines(), err), (0, list(lines), ""), script)

    def refuses(self, script, number_of_it, *lines):
        status, out, err = run(script)
        self.assertEqual((status, out.splitlines()), (2, list(lines)), script)
        self.assertRegex(err, rf"\b{number_of_it}\b", script)

    def test_every_processor_of_the_catalogue_has_a_name(self):
        help_text = run("", "--help")[1].split()
        with open(SPEC / "presets.csv", newline="") as file:
            for row in csv.DictReader(file):
                with self.subTest(row["name"]):
                    self.assertIn(row["name"], help_text)
                    self.says(f"cpu {row['name']}")
                    self.says(f"cpu {row['name'].lower()}")

    # the page

    def examples(self):
        """Script and lines of each example on the page."""
        page = (SPEC / "what_if.md").read_text(encoding="utf-8")
        block = re.search(r"\nExamples .*?\n```\n(.*?)\n```\n", page, re.S)[1]
        whole = re.sub(r"\n +->", " ->", block).splitlines()
        for line in whole:
            script, arrow, lines = line.partition("->")
            self.assertTrue(arrow, line)
            yield script.strip(), [text.strip() for text in lines.split(" / ")]

    def test_the_examples_of_the_page(self):
        examples = list(self.examples())
        self.assertEqual(len(examples), 8)
        for script, lines in examples:
            with self.subTest(script):
                self.says(script, *lines)

    # statements

    def test_separators_of_statements(self):
        self.says("")
        self.says(" ; ;\n\n # nothing\n")
        self.says("cpu P-SKL;W570=2109 # ; R571\n\n R570;R571", "ok", "2109", "5")
        self.says(" cpu\tP-SKL ;\tW570 = 2109\r\n R570 ", "ok", "2109")

    def test_numbers_are_accepted_in_either_case_and_printed_in_upper_case(self):
        self.says("set CTL=210d; R570; set BASE=abC000; R560; set MASK_PTRS=A000000ff; R561",
                  "210D", "ABC000", "0000000A000000FF")
        self.says("set CTL=000000000000000000002109; R570", "2109")

    def test_the_default_processor_is_p_fut(self):
        self.says("W570=1800000000C2109; W580=800000000000; R584", "GP REG-044", "ok", "0")
        self.says("cpu P-FUT; W587=100000000000000", "GP REG-076")

    def test_a_cpu_statement_is_a_cold_reset(self):
        self.says("cpu P-SKL; W570=2109; VMXON; cpu P-SKL; state",
                  "ok", "ok", "Error=0 Stopped=0; BASE=0 MASK_PTRS=000000000000007F; "
                              "CTL=0 STATUS=0 GLOBAL_STATUS=0;")

    def test_maxphyaddr(self):
        self.says("cpu P-SKL; W560=8000000000; maxphyaddr 40; W560=8000000000; R560",
                  "GP REG-070", "ok", "8000000000")

    def test_vmx(self):
        self.says("cpu P-SKL; set VMX_MISC14=0; W570=2109; VMXON; R570; W570=2109; VMXOFF; "
                  "W570=2109", "ok", "ok", "2108", "GP REG-121", "ok", "ok")
        self.says("cpu P-BDW; set VMX_MISC14=1; VMXON; W570=2109", "ok", "ok")

    def test_state(self):
        start = "Error=0 Stopped=0; BASE=0 MASK_PTRS=000000000000007F; "
        self.says("cpu P-SKL; state; set STATUS=30; set BASE=1000; set GLOBAL_STATUS=1; state",
                  start + "CTL=0 STATUS=0 GLOBAL_STATUS=0;",
                  "Error=1 Stopped=1; BASE=1000 MASK_PTRS=000000000000007F; CTL=0 STATUS=30 "
                  "GLOBAL_STATUS=1;")
        on = start + "CTL={} STATUS={} GLOBAL_STATUS={};"
        self.says("cpu P-SKL; W570=2109; state", "ok", on.format("2109", "5", "0") + " PSB+ due")
        both = "cpu P-ATM; set STATUS=500000080; W570=100000000002109; state"
        pending = on.format("100000000002109", "500000085", "80000000000000") + " PMI pending"
        self.says(both, "ok", pending)
        self.says(both.replace("080", "0C0"), "ok", pending.replace("; PMI", "; PSB+ due, PMI"))
        self.says(both + "; W390=80000000000000; state", "ok", pending, "ok",
                  on.format("100000000002109", "500000085", "0"))

    def test_enable_and_disable(self):
        self.says("cpu P-SKL; enable; R570; enable; disable; R570",
                  "ok", "210D", "ok", "ok", "210C")
        self.says("cpu P-SKL; set CTL=408; enable; R570", "ok", "509")
        self.says("cpu P-SKL; scheme single; enable; R570", "ok", "200D")
        self.says("cpu P-SKL; scheme fabric; enable; R570", "GP REG-026", "0")
        self.says("cpu P-FAB; scheme fabric; enable; disable; enable; R570",
                  "ok", "ok", "ok", "204D")
        self.says("cpu P-FAB; enable; scheme single; enable", "GP REG-024", "GP REG-025")

    def test_a_scheme_applies_to_all_following_enables(self):
        self.says("cpu P-SKL; scheme single; enable; disable; enable; R570; disable; scheme topa; "
                  "enable; disable; set CTL=0; enable; R570",
                  "ok", "ok", "ok", "200D", "ok", "ok", "ok", "ok", "210D")
        for event in ("cpu P-SKL", "COLD", "WARM", "INIT", "W570=0"):
            lines = run(f"cpu P-SKL; scheme single; enable; {event}; disable; enable; R570")[1]
            self.assertEqual(int(lines.splitlines()[-1], 16) & 0x100, 0, event)
        self.says("scheme single; cpu P-FAB; enable; scheme fabric; cpu P-SKL; enable",
                  "GP REG-025", "GP REG-026")

    def test_events(self):
        self.says("cpu P-SKL; W570=2109; INIT; R570; WARM; R570; COLD; R570; VMXON; VMXOFF",
                  "ok", "ok", "2109", "ok", "2108", "ok", "0", "ok", "ok")
        self.says("cpu P-SKL; W570=2109; SMI; R570; RSM; R570; state",
                  "ok", "ok", "2108", "ok", "2109",
                  "Error=0 Stopped=0; BASE=0 MASK_PTRS=000000000000007F; CTL=2109 STATUS=5 "
                  "GLOBAL_STATUS=0; PSB+ due")

    def test_questions_and_a_shutdown(self):  # RC-74, RC-83..85
        self.says("cpu P-SKL; SMI; W570=2109; RSM", "ok", "ok", "shutdown REG-102")
        self.says("cpu P-SKL; set CTL=4; context cr3 0 cpl 0; context cr3 0 cpl 3; "
                  "context cr3 0 cpl 0 enclave", "1", "0", "0")
        self.says("cpu P-SKL; set CTL=88; set CR3_MATCH=12345000; context cr3 12345FFF cpl 3; "
                  "context cr3 12345FE0 cpl 3 pae", "1", "0")
        self.says("cpu P-SKL; set ADDR0_A=1000; set ADDR0_B=1FFF; set ADDR1_A=3000; "
                  "set ADDR1_B=3FFF; set CTL=2100000000; branch 2000; branch 1FFF; branch 3000",
                  "FilterEn=0", "FilterEn=1", "FilterEn=0, TraceStop")

    def test_words_and_tables(self):
        self.says("decode TOPA_ENTRY 7FFE000254", "END=0 INT=1 STOP=1 Size=9 Base=7FFE000000")
        self.says("cpu P-SKL; decode TOPA_ENTRY 8000001442",
                  "END=0 INT=0 STOP=0 Size=1 Base=8000001000; reserved set 8000000402; "
                  "violates OUT-060,OUT-062,OUT-063")
        self.says("cpu P-SKL; decode BASE 8000001080",
                  "BasePhysAddr=8000001080; reserved set 8000000000; violates REG-070")
        self.says("cpu P-SKL; decode STATUS 1000000B1",
                  "FilterEn=1 ContextEn=0 TriggerEn=0 Error=1 Stopped=1 PendPSB=0 PendToPAPMI=1 "
                  "PacketByteCnt=1; violates REG-054")
        self.says("cpu P-SKL; encode TOPA_ENTRY END=1 Base=5F000; encode TOPA_ENTRY Size=1 "
                  "Base=1000; encode TOPA_ENTRY END=1 INT=1 Base=8000000000",
                  "5F001", "violates OUT-062", "violates OUT-063,OUT-065")
        self.says("build 80 80 7F; build 180000 100000 0; build 100000 1800 0; build 0 1000 1000",
                  "BASE=80 MASK_PTRS=0000007F0000007F", "violates OUT-023", "violates OUT-022",
                  "violates OUT-024")
        self.says("cpu P-SKL; [1000]=1000002; [1008]=1001440; [1010]=2005; validate 1000",
                  "0: OUT-060 | 1: OUT-060,OUT-062 | 2: OUT-065")
        self.says("[1000]=2001; validate 1000", "0: OUT-066")

    def test_the_most_specific_rule_comes_first(self):
        self.says("cpu P-SKL; W570=40000", "GP REG-044")
        self.says("cpu P-SKL; set CTL=2109; W570=4210D", "GP REG-044,REG-021")
        self.says("cpu P-SKL; set CTL=2109; W570=10009", "GP REG-028,REG-021")
        self.says("cpu P-BDW; W570=2149", "GP REG-026")
        lines = run("cpu P-BDW; set CTL=2109; W570=9")[1].splitlines()
        self.assertEqual(lines[0][:10], "GP REG-021")
        self.assertEqual(sorted(lines[0][3:].split(",")), ["REG-021", "REG-025", "REG-040"])

    def test_explain_adds_the_text_of_each_rule(self):
        script = "cpu P-SKL; set CTL=2109; W570=4210D; state; set STATUS=10; state"
        status, out, err = run(script, "--explain")
        self.assertEqual((status, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual(lines[0], "GP REG-044,REG-021")
        self.assertRegex(lines[1], r"^ +.*REG-044")
        self.assertRegex(lines[2], r"^ +.*REG-021")
        self.assertTrue(lines[3].startswith("Error=0 Stopped=0;"))
        self.assertTrue(lines[4].startswith("Error=1 Stopped=0;"))
        self.assertRegex(lines[5], r"^ +\S")
        for line in (*lines[1:3], *lines[5:]):
            self.assertGreater(len(line.split()), 4, line)
        self.assertEqual([line for line in lines if not line.startswith(" ")],
                         run(script)[1].splitlines())

    # output

    RING = "cpu P-SKL; [10000]=400000; [10008]=401004; [10010]=10001; set BASE=10000; "
    STORED = "stored {} lost 0 PMI 0 first 400000 last 4000{}"

    def test_output_begins_when_TraceEn_rises(self):
        stored = self.STORED.format("10", "0F")
        self.says(self.RING + "enable; write 10", "ok", stored)
        self.says(self.RING + "W570=2109; write 10", "ok", stored)
        self.says(self.RING + "W570=2109; SMI; write 10; RSM; write 10",
                  "ok", "ok", "stored 0 lost 10 PMI 0", "ok", stored)
        self.says(self.RING + "XRSTORS 2109 10000; write 10; locate", "ok", stored,
                  "idx=0 entry=10000 off=10")
        # Raw writes to registers do not start output, nor does a WRMSR that leaves TraceEn
        # unchanged.
        self.says(self.RING + "set CTL=2109; write 10", "stored 0 lost 10 PMI 0")
        self.says(self.RING + "set CTL=2109; W570=2109; write 10", "ok", "stored 0 lost 10 PMI 0")
        self.says(self.RING + "W570=2108; write 10", "ok", "stored 0 lost 10 PMI 0")
        self.says(self.RING + "W570=40000; write 10", "GP REG-044", "stored 0 lost 10 PMI 0")

    def test_output_ends_when_TraceEn_is_cleared_and_the_pointers_are_kept(self):
        for statement in ("disable", "W570=210C", "SMI", "WARM", "XSAVES", "set CTL=210C",
                          "XSAVES; XRSTORS init"):
            script = f"enable; write 10; {statement}; write 10; R570"
            lines = run(self.RING + script)[1].splitlines()
            self.assertEqual(lines[:2], ["ok", self.STORED.format("10", "0F")], statement)
            self.assertEqual(lines[-2], "stored 0 lost 10 PMI 0", statement)
            self.assertEqual(int(lines[-1], 16) & 1, 0, statement)
        for statement in ("disable", "SMI", "WARM"):
            self.says(self.RING + f"enable; write 1010; {statement}; locate", "ok",
                      "stored 1010 lost 0 PMI 0 first 400000 last 40100F", "ok",
                      "idx=1 entry=10008 off=10")
        self.says(self.RING + "enable; write 10; XSAVES; locate", "ok",
                  self.STORED.format("10", "0F"),
                  "210D 10000 000000100000007F 3 0 0 0 0 0", "idx=0 entry=10000 off=10")
        self.says(self.RING + "enable; write 10; COLD; write 1; total; R561", "ok",
                  self.STORED.format("10", "0F"), "ok", "stored 0 lost 1 PMI 0",
                  "stored 0 lost 1 PMI 0", "000000000000007F")
        bdw = "cpu P-BDW; [10000]=400000; [10008]=10001; set BASE=10000; enable; write 10; "
        self.says(bdw + "VMXON; write 10; locate", "ok", self.STORED.format("10", "0F"), "ok",
                  "stored 0 lost 10 PMI 0", "idx=0 entry=10000 off=10")
        self.says(self.RING + "enable; VMXON; INIT; write 10", "ok", "ok", "ok",
                  self.STORED.format("10", "0F"))

    def test_a_TraceStop_ends_output_and_keeps_TraceEn(self):
        into_a_range = self.RING + "set ADDR0_A=0; set ADDR0_B=FFFFFFFF; set CTL=200002108; "
        self.says(into_a_range + "W570=20000210D; write 10; explain; R571", "ok",
                  "stored 0 lost 10 PMI 0",
                  "REG-068: a branch into a TraceStop range must stop tracing", "22")
        self.says(into_a_range + "set ADDR0_A=1; W570=20000210D; write 10; INIT; write 10; R570; "
                  "locate", "ok", self.STORED.format("10", "0F"), "ok", "stored 0 lost 10 PMI 0",
                  "20000210D", "idx=0 entry=10000 off=10")

    def test_output_continues_at_the_pointers(self):
        self.says(self.RING + "enable; write 800; disable; enable; write 800; locate", "ok",
                  "stored 800 lost 0 PMI 0 first 400000 last 4007FF", "ok", "ok",
                  "stored 800 lost 0 PMI 0 first 400800 last 400FFF", "idx=1 entry=10008 off=0")
        self.says(self.RING + "enable; disable; set MASK_PTRS=400000000FF; enable; write 1", "ok",
                  "ok", "ok", "stored 1 lost 0 PMI 0 first 401400 last 401400")
        # An END entry is followed when TraceEn rises, before the first byte.
        self.says(self.RING + "set MASK_PTRS=50000017F; enable; R561; locate", "ok",
                  "000000000000007F", "idx=0 entry=10000 off=0")

    def test_RDMSR_of_the_pointers_is_stale_while_TraceEn_is_1(self):  # REG-011, PRG-034
        late = "000000000000007F"
        self.says(self.RING + "enable; write 1010; R560; R561; locate; disable; R561", "ok",
                  "stored 1010 lost 0 PMI 0 first 400000 last 40100F", "10000", late,
                  "idx=1 entry=10008 off=10", "ok", "00000010000000FF")
        self.says(self.RING + "enable; write 10; W570=210C; enable; write 10; R561; XSAVES; R561",
                  "ok", self.STORED.format("10", "0F"), "ok", "ok",
                  "stored 10 lost 0 PMI 0 first 400010 last 40001F", "000000100000007F",
                  "210D 10000 000000200000007F 3 0 0 0 0 0", "000000200000007F")
        # After output has ended, the position is known; so is one that `set` has written.
        self.says("cpu P-SKL; [10000]=400010; set BASE=10000; enable; write 1000; R561", "ok",
                  "stored 1000 lost 0 PMI 0 first 400000 last 400FFF", "000010000000007F")
        self.says(self.RING + "enable; set MASK_PTRS=FF; R561", "ok", "00000000000000FF")

    def test_total_begins_with_each_rise_of_TraceEn(self):
        self.says(self.RING + "write 5; total; enable; total; write 3; write 2; total; disable; "
                  "write 4; total; enable; total",
                  "stored 0 lost 5 PMI 0", "stored 0 lost 5 PMI 0", "ok", "stored 0 lost 0 PMI 0",
                  "stored 3 lost 0 PMI 0 first 400000 last 400002",
                  "stored 2 lost 0 PMI 0 first 400003 last 400004",
                  "stored 5 lost 0 PMI 0 first 400000 last 400004", "ok", "stored 0 lost 4 PMI 0",
                  "stored 5 lost 4 PMI 0 first 400000 last 400004", "ok", "stored 0 lost 0 PMI 0")

    def test_a_PSB_plus_is_due_until_the_first_byte(self):
        ready = ("Error=0 Stopped=0; BASE=10000 MASK_PTRS={}; CTL=210D STATUS=7 "
                 "GLOBAL_STATUS={};{}")
        self.says(self.RING + "enable; write 0; state; write 1; state", "ok",
                  "stored 0 lost 0 PMI 0", ready.format("000000000000007F", "0", " PSB+ due"),
                  "stored 1 lost 0 PMI 0 first 400000 last 400000",
                  ready.format("000000010000007F", "0", ""))

    def test_a_PMI_is_pending_until_its_bit_is_cleared(self):
        self.says(self.RING + "enable; write 2000; state; W390=80000000000000; state", "ok",
                  "stored 2000 lost 0 PMI 1 first 400000 last 401FFF",
                  "Error=0 Stopped=0; BASE=10000 MASK_PTRS=000000000000007F; CTL=210D STATUS=7 "
                  "GLOBAL_STATUS=80000000000000; PMI pending", "ok",
                  "Error=0 Stopped=0; BASE=10000 MASK_PTRS=000000000000007F; CTL=210D STATUS=7 "
                  "GLOBAL_STATUS=0;")

    def test_the_fabric_stores_without_addresses(self):
        self.says("cpu P-FAB; scheme fabric; enable; write 10; total; write 5; total; explain",
                  "ok", "stored 10 lost 0 PMI 0", "stored 10 lost 0 PMI 0", "stored 5 lost 0 PMI 0",
                  "stored 15 lost 0 PMI 0", "nothing stopped it")

    def test_trace_overwrites_words_of_the_script(self):
        single = ("cpu P-SKL; [10000]=FFFFFFFFFFFFFFFF; [10008]=FFFFFFFF00000000; scheme single; "
                  "set BASE=10000; ")
        before = "0: OUT-060,OUT-063,OUT-065,OUT-066"
        self.says(single + "enable; validate 10000; write 7; validate 10000; write 1; "
                  "validate 10000; write 6; validate 10000; write 2; validate 10000", "ok", before,
                  "stored 7 lost 0 PMI 0 first 10000 last 10006",
                  "0: OUT-063 | 1: OUT-063 | 2: OUT-056",
                  "stored 1 lost 0 PMI 0 first 10007 last 10007", "1: OUT-063 | 2: OUT-056",
                  "stored 6 lost 0 PMI 0 first 10008 last 1000D", "1: OUT-063 | 2: OUT-056",
                  "stored 2 lost 0 PMI 0 first 1000E last 1000F", "2: OUT-056")
        self.says(single + "set MASK_PTRS=40000007F; enable; write 4; validate 10000", "ok",
                  "stored 4 lost 0 PMI 0 first 10004 last 10007", "0: OUT-060,OUT-065,OUT-066")
        self.says(single + "[10000]=0; [10008]=2; enable; write 8; validate 10000; write 1; "
                  "validate 10000", "ok", "stored 8 lost 0 PMI 0 first 10000 last 10007",
                  "1: OUT-060 | 2: OUT-056", "stored 1 lost 0 PMI 0 first 10008 last 10008",
                  "2: OUT-056")
        # OUT-070: a table inside its own region is overwritten, and continues with zeros.
        self.says("cpu P-SKL; [10000]=10000; [10008]=400002; set BASE=10000; enable; write 1001",
                  "ok", "stored 1001 lost 0 PMI 0 first 10000 last 0")

    def test_a_write_may_be_large(self):
        whole = "set BASE=0; scheme single; set MASK_PTRS=FFFFFFFF; enable; "
        self.says(whole + "[FFFFFF8]=1; write 100000000; write FFFFFFFF; locate", "ok",
                  "stored 100000000 lost 0 PMI 0 first 0 last FFFFFFFF",
                  "stored FFFFFFFF lost 0 PMI 0 first 0 last FFFFFFFE",
                  "idx=1FFFFFF entry=FFFFFF8 off=FFFFFFFF")
        for count in ("100000001", "FFFFFFFFFFFFFFFF"):
            status, out, err = run(whole + f"write {count}")
            self.assertEqual((status, out), (2, "ok\n"))
            self.assertIn("statement 5: at most 100000000 bytes", err)

    # the parameters of the model

    SMM = "cpu P-SKL; [10000]=7FFFF000; [10008]=80000000; [10010]=10001; set BASE=10000; "

    def test_no_trace_is_stored_to_restricted_memory(self):
        self.says(self.SMM + "smrr 80000000 FF800800; enable; write 1800; locate", "ok",
                  "stored 1000 lost 800 PMI 0 first 7FFFF000 last 800007FF",
                  "idx=1 entry=10008 off=800")
        # OUT-111 with the other policy: an error as soon as the next byte has such an address.
        self.says(self.SMM + "smrr 80000000 FF800800; restricted error; enable; write 1800; "
                  "explain", "ok", "stored 1000 lost 800 PMI 0 first 7FFFF000 last 7FFFFFFF",
                  "OUT-111 table 10000 entry 1: trace must not be stored into restricted memory")
        self.says(self.SMM + "smrr 80000000 FF800800; restricted error; restricted drop; enable; "
                  "write 1800", "ok", "stored 1000 lost 800 PMI 0 first 7FFFF000 last 800007FF")
        # Bit 11 of the mask enables the range.
        self.says(self.SMM + "smrr 80000000 FF800000; enable; write 1800", "ok",
                  "stored 1800 lost 0 PMI 0 first 7FFFF000 last 800007FF")

    def test_the_parameters_take_effect_when_TraceEn_rises_and_are_kept(self):
        self.says(self.SMM + "enable; smrr 80000000 FF800800; write 1800; disable; "
                  "set MASK_PTRS=FF; enable; write 1; write FFF; write 1; total; COLD", "ok",
                  "stored 1800 lost 0 PMI 0 first 7FFFF000 last 800007FF", "ok", "ok",
                  "stored 0 lost 1 PMI 0", "stored 0 lost FFF PMI 0",
                  "stored 1 lost 0 PMI 0 first 7FFFF000 last 7FFFF000",
                  "stored 1 lost 1000 PMI 0 first 80000000 last 7FFFF000", "ok")
        self.says("smrr 80000000 FF800800; " + self.SMM + "COLD; set BASE=10000; enable; "
                  "write 1800", "ok", "ok",
                  "stored 1000 lost 800 PMI 0 first 7FFFF000 last 800007FF")

    def test_the_PMI_of_a_single_region_is_pmi_lead_bytes_early(self):
        single = "cpu P-BDW; [10000]=400004; [10008]=10001; set BASE=10000; "
        self.says(single + "enable; write DFF; write 1", "ok",
                  "stored DFF lost 0 PMI 0 first 400000 last 400DFE",
                  "stored 1 lost 0 PMI 1 first 400DFF last 400DFF")
        self.says(single + "pmi_lead 10; enable; write FEF; write 1; write 10", "ok",
                  "stored FEF lost 0 PMI 0 first 400000 last 400FEE",
                  "stored 1 lost 0 PMI 1 first 400FEF last 400FEF",
                  "stored 10 lost 0 PMI 0 first 400FF0 last 400FFF")

    # why it stopped

    def test_explain(self):
        self.says("explain; state; set STATUS=30; explain", "nothing stopped it",
                  "Error=0 Stopped=0; BASE=0 MASK_PTRS=000000000000007F; CTL=0 STATUS=0 "
                  "GLOBAL_STATUS=0;",
                  "REG-053: software must set Error and Stopped only to restore a saved state")
        self.says("cpu P-SKL; scheme single; set BASE=80; set MASK_PTRS=FF; enable; explain", "ok",
                  "OUT-023: the base of a single-range output must be aligned to its size")
        self.says(self.RING.replace("401004", "401014") + "enable; write 3000; explain", "ok",
                  "stored 2000 lost 1000 PMI 1 first 400000 last 401FFF",
                  "OUT-080 table 10000 entry 1: a full region with STOP must stop tracing")
        many = "".join(f"[{0x10000 + 8 * n:X}]=400000; " for n in range(26))
        self.says(f"cpu P-SKL; {many}[100D0]=400020; set BASE=10000; enable; write 20000; explain",
                  "ok", "stored 1A000 lost 6000 PMI 0 first 400000 last 400FFF",
                  "OUT-060 table 10000 entry 1A: bits 1, 3, 5, 10 and 11 of a ToPA entry must be "
                  "0")

    def test_explain_after_a_state_matches_the_statement_explain(self):
        script = "cpu P-SKL; [10000]=401040; set BASE=10000; enable; state; explain"
        lines = run(script, "--explain")[1].splitlines()
        self.assertEqual(lines[2], "  OUT-062: the base of an output region must be aligned to "
                                   "the region's size")
        self.assertEqual(lines[3], "OUT-062 table 10000 entry 0" + lines[2].strip()[7:])
        script = self.SMM + "smrr 80000000 FF800800; restricted error; enable; write 1000; state"
        self.assertEqual(run(script, "--explain")[1].splitlines()[-1],
                         "  OUT-111: trace must not be stored into restricted memory")
        self.assertEqual(run("enable; state", "--explain")[1].count("\n"), 2)

    # tables

    def test_a_table_without_an_end_is_reported_after_its_last_word(self):
        self.says("[1000]=400000; [1008]=401000; validate 1000", "2: OUT-056")
        self.says("validate 1000; [2000]=400010; validate 2000; validate 3000", "1: OUT-056", "ok",
                  "1: OUT-056")
        self.says("[1000]=400000; [1020]=400400; validate 1000", "4: OUT-060 | 5: OUT-056")
        # The largest table: 2^25 entries of 8 bytes.
        self.says("cpu P-SKL; [100000]=400000; [10100000]=1; [FF000]=1; validate 100000",
                  "1: OUT-056")
        self.says("cpu P-BDW; validate 1000; [1000]=400000; validate 1000; [1010]=400000; "
                  "validate 1000; [1008]=1001; validate 1000; [1008]=2001; validate 1000",
                  "1: OUT-067", "1: OUT-067", "1: OUT-067 | 2: OUT-067", "ok", "1: OUT-068")
        self.says("cpu P-SKL; [1080]=400010; validate 1080", "0: OUT-061")
        self.says("cpu P-SKL; [8000000000]=8000000010; validate 8000000000", "0: OUT-063")
        self.says("cpu P-SKL; [7FFFFFFFF8]=400000; [8000000000]=400010; validate 7FFFFFF000",
                  "200: OUT-071")

    def test_findings_are_bounded(self):
        table = "smrr 0 FFFFF800; {}; validate 100000"
        line, = run(table.format("[17FFF8]=10"))[1].splitlines()
        self.assertEqual(line.count(":"), 0x10000)
        self.assertTrue(line.startswith("0: OUT-111 | ") and line.endswith(" | FFFF: OUT-111"))
        self.says(table.format("[180000]=10"), "more than 10000 findings")

    def test_regions_in_restricted_memory_and_in_the_apic_page_are_reported(self):
        table = ("cpu P-SKL; [1000]=0; [1008]=7FFFF000; [1010]=80000002; [1018]=FEE00000; "
                 "[1020]=FE8002D0; ")
        self.says(table + "validate 1000", "2: OUT-060")
        self.says(table + "smrr 80000000 FF800800; validate 1000", "2: OUT-060,OUT-111")
        self.says("smrr 80000000 FF800800; [1000]=80000000; [1008]=400412; validate 1000",
                  "0: OUT-111 | 1: OUT-060")
        self.says(table + "apic FEE00000; validate 1000",
                  "2: OUT-060 | 3: OUT-113 | 4: OUT-113")
        self.says(table + "smrr FEE00000 FFFFF800; apic FEE00900; validate 1000",
                  "2: OUT-060 | 3: OUT-111,OUT-113 | 4: OUT-111,OUT-113")

    def test_memory_is_bounded(self):
        words = "".join(f"[{8 * n:X}]=1\n" for n in range(1 << 20))
        self.says(words + "[0]=2; R570", "0")
        self.refuses(words + "[800000]=1", (1 << 20) + 1)

    # statements that cannot be read

    def test_invalid_statements(self):
        for statement in (
                "frob", "cpu", "cpu P-XXL", "cpu P-SKL P-BDW", "maxphyaddr", "maxphyaddr x", "set",
                "set CTL", "set CTL=", "set CTL 1", "set CTL=0x1", "set CTL=1 2", "set =1",
                "set FOO=1", "set ADDR4_A=1", "set ADDR0_C=1", "set CTL=10000000000000000",
                "set CTL=-1", "set VMX_MISC14=2", "[1000]", "[1000=1", "1000]=1", "[]=1", "[x]=1",
                "W570", "W570=", "W570=g", "W=1", "W570=1 2", "Wxyz=1", "w570=1", "R", "R570=1",
                "Rxyz", "R 570", "W12345=0", "R12345", "R588", "W588=0", "scheme", "scheme foo",
                "scheme topa fabric", "enable 1", "disable 1", "write", "write x", "state 1",
                "validate", "validate x", "encode", "encode FOO Base=1", "encode TOPA_ENTRY Foo=1",
                "encode TOPA_ENTRY Base", "decode", "decode CTL", "decode FOO 1", "decode CTL x",
                "build", "build 1000", "build 1000 2000", "build 1 2 3 4", "locate 1", "context",
                "context cr3 0", "context cr3 0 cpl", "context cr3 0 cpl 4",
                "context cr3 0 cpl 0 x", "context cpl 0 cr3 0", "branch", "branch x", "branch 1 2",
                "WARM 1", "warm", "RESET", "SMI 1", "RSM 1", "VMXON 1", "INIT x", "XSAVES 1",
                "XRSTORS x", "XRSTORS init 0", "XRSTORS " + "0 " * 17, "write 1 2", "write -1",
                "write 100000001", "write FFFFFFFFFFFFFFFF", "write 10000000000000000", "total 1",
                "explain 1", "smrr", "smrr 1", "smrr 1 x", "smrr 1 2 3", "apic", "apic x",
                "apic 1 2", "pmi_lead", "pmi_lead x", "pmi_lead 1 2", "pmi_lead 100000000",
                "restricted", "restricted maybe", "restricted drop error", "restricted Drop"):
            with self.subTest(statement):
                self.refuses(f"cpu P-SKL; R570; {statement}; R571", 3, "0")
                self.refuses(f"cpu P-SKL\nR570\n\n# 9\n{statement} # 8\nR571", 3, "0")
                self.refuses(statement, 1)


if __name__ == "__main__":
    skips.main([sys.argv[0]])
