#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""what_if as a person calls it: the worked cases RC of the catalogue, the examples of its page
what_if.md, and statements that cannot be read.

    what_if.py WHAT_IF
"""

import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import rc_cases  # noqa: E402

WHAT_IF = sys.argv[1]

CTL, STATUS, MASK_PTRS, GLOBAL_STATUS = 0x570, 0x571, 0x561, 0x38E
NAMES = {CTL: "CTL", STATUS: "STATUS", 0x560: "BASE", MASK_PTRS: "MASK_PTRS", 0x572: "CR3_MATCH",
         **{0x580 + n: f"ADDR{n // 2}_{'AB'[n % 2]}" for n in range(8)}}
OS, USER, CR3_FILTER = 1 << 2, 1 << 3, 1 << 7

STATE = re.compile(r"Error=(?P<error>[01]) Stopped=(?P<stopped>[01]); BASE=(?P<base>\w+) "
                   r"MASK_PTRS=(?P<mask_ptrs>\w{16}); CTL=(?P<ctl>\w+) STATUS=(?P<status>\w+) "
                   r"GLOBAL_STATUS=(?P<global_status>\w+);"
                   r"(?P<psb> PSB\+ due)?(?:(?(psb),) (?P<pmi>PMI pending))?")
# The statements of the page that ask the output engine.
OF_THE_ENGINE = re.compile(r"(?:write|total|explain|smrr|apic|pmi_lead|restricted)\b")


def run(script, *arguments):
    done = subprocess.run([WHAT_IF, *arguments], input=script, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def has_an_output_engine():
    return run("pmi_lead 200")[0] == 0


class Wrong(AssertionError):
    """What the program printed is not what the case claims."""


def require(truth, what):
    if not truth:
        raise Wrong(what)


def number(text, digits=1):
    """A number as the program prints it."""
    require(re.fullmatch("[0-9A-F]+", text), f"no number: {text!r}")
    value = int(text, 16)
    require(text == f"{value:0{digits}X}", f"another form of number: {text!r}")
    return value


# ------------------------------------------------------------------------------------- one trial

class Trial:
    """A case, or one of its separate trials, as a script; then what the program says to it."""

    def __init__(self, case, steps):
        self.case, self.steps = case, steps
        self.statements, self.asked = [f"cpu {case.profile}"], 0
        if case.in_vmx:
            self.ask("VMXON")
        self.raw = {MASK_PTRS: 0x7F}
        for put in case.puts:
            self.raw[put.index] = self.raw.get(put.index, 0) & ~put.mask | put.value
        self.statements += [f"set {NAMES[index]}={value:X}" for index, value in self.raw.items()]
        self.places = []
        for step in steps:
            before = self.ask_for_all()
            line = self.ask(self.statement(step))
            self.places.append((before, line, self.ask_for_all()))

    def ask(self, statement):
        """A statement that prints a line. Its number among the lines."""
        self.statements.append(statement)
        self.asked += 1
        return self.asked - 1

    def ask_for_all(self):
        return self.ask("state"), {index: self.ask(f"R{index:X}") for index in NAMES}

    def statement(self, step):
        plain = {"warm_reset": "WARM", "smi": "SMI", "rsm": "RSM", "vmxon": "VMXON",
                 "xsaves": "XSAVES", "xrstors_init": "XRSTORS init",
                 "rdmsr": f"R{step.index:X}", "wrmsr": f"W{step.index:X}={step.value:X}",
                 "branch": f"branch {step.value:X}"}
        if step.operation in plain:
            return plain[step.operation]
        if step.operation == "xrstors":
            return "XRSTORS " + " ".join(f"{word:X}" for word in step.quadwords)
        if step.operation == "cpl":
            return f"context cr3 0 cpl {step.value}" + " enclave" * self.case.enclave
        assert step.operation == "cr3", step.operation
        # The comparison shows in ContextEn when nothing but it decides.
        ctl = self.raw.get(CTL, 0)
        assert ctl & CR3_FILTER and ctl & (USER | OS) and not self.case.enclave
        return f"context cr3 {step.value:X} cpl {3 if ctl & USER else 0}" + " pae" * step.pae

    def run(self):
        status, out, err = run("; ".join(self.statements))
        require((status, err) == (0, ""), f"exit status {status}: {err}")
        self.lines = out.splitlines()
        require(len(self.lines) == self.asked, f"{len(self.lines)} lines, not {self.asked}")
        require(not self.case.in_vmx or self.lines[0] == "ok", "VMXON is refused")
        return self

    def all_of(self, place):
        """What the program told about everything at one moment."""
        line, registers = self.lines[place[0]], {}
        state = STATE.fullmatch(line)
        require(state, f"no state: {line}")
        for index, at in place[1].items():
            if not self.lines[at].startswith("GP "):
                registers[index] = number(self.lines[at], 16 if index == MASK_PTRS else 1)
        for index, name in ((CTL, "ctl"), (STATUS, "status"), (0x560, "base"),
                            (MASK_PTRS, "mask_ptrs")):
            value = number(state[name], 16 if index == MASK_PTRS else 1)
            require(registers.get(index, value) == value, f"state and RDMSR differ in {name}")
        registers[GLOBAL_STATUS] = number(state["global_status"])
        require(int(state["error"]) == registers.get(STATUS, 0) >> 4 & 1, "Error is not Error")
        require(int(state["stopped"]) == registers.get(STATUS, 0) >> 5 & 1, "Stopped is another")
        return registers, state, [line, *(self.lines[at] for at in place[1].values())]

    def check(self, steps=None):
        """Holds the claims of the steps, those of the case unless told, against the lines."""
        for step, (before, line, after) in zip(steps or self.steps, self.places):
            for claim in step.claims:
                require(self.is_true(claim, step, self.all_of(before), self.lines[line],
                                     self.all_of(after)),
                        f"{claim.what} {claim.index:X} {claim.mask:X} {claim.value:X} is not what "
                        f"{step.operation} comes to: {self.lines[line]}")

    def first_rule(self, line, verdict):
        found = re.fullmatch(verdict + r" ((?:[A-Z]{3}-\d{3},)*[A-Z]{3}-\d{3})", line)
        return bool(found) and found[1].split(",")[0] in self.case.rules

    def is_true(self, claim, step, before, line, after):
        registers, state, _ = after
        question = {"context_en", "cr3_match", "filter_en"} & {claim.what}
        if claim.what == "gp":
            return self.first_rule(line, "GP") and before[2] == after[2]
        if claim.what == "shutdown":
            return self.first_rule(line, "shutdown")
        if claim.what == "no_fault":
            return line == "ok" if step.operation != "xsaves" else line.count(" ") == 8
        if claim.what == "reads" and step.operation == "rdmsr":
            value = number(line, 16 if step.index == MASK_PTRS else 1)
            return value & claim.mask == claim.value
        if claim.what in ("reads", "holds"):
            return claim.index in registers and registers[claim.index] & claim.mask == claim.value
        if claim.what == "stores":
            word = line.split(" ")[claim.index]
            return number(word, 16 if claim.index == 2 else 1) & claim.mask == claim.value
        if claim.what == "psb_plus":
            return claim.value == rc_cases.PSB_PLUS["may"] or claim.value == bool(state["psb"])
        if claim.what == "pmi":
            return claim.value == bool(state["pmi"])
        if step.operation == "branch":
            found = re.fullmatch(r"FilterEn=([01])(, TraceStop)?", line)
            return bool(found) and claim.value == (int(found[1]) if question else bool(found[2]))
        if claim.what == "trace_stop":
            return claim.value == (before[1]["stopped"] < state["stopped"])
        return bool(question) and line == str(claim.value)


def trials_of(case):
    steps = [(step,) for step in case.steps] if case.separate else [case.steps]
    return [Trial(case, some) for some in steps]


def opposite(claim):
    """A claim about the same step that is true only when this one is not; none where both may be
    true."""
    verdicts = {"no_fault": "gp", "gp": "no_fault", "shutdown": "no_fault"}
    if claim.what in verdicts:
        return claim._replace(what=verdicts[claim.what])
    if claim.what in ("reads", "holds", "stores"):
        return claim._replace(value=claim.value ^ (claim.mask & -claim.mask))
    may = claim.what == "psb_plus" and claim.value == rc_cases.PSB_PLUS["may"]
    return None if may else claim._replace(value=claim.value ^ 1)


# ------------------------------------------------------------------------------------- the tests

class WhatIf(unittest.TestCase):
    def says(self, script, *lines):
        status, out, err = run(script)
        self.assertEqual((status, out.splitlines(), err), (0, list(lines), ""), script)

    def refuses(self, script, number_of_it, *lines):
        status, out, err = run(script)
        self.assertEqual((status, out.splitlines()), (2, list(lines)), script)
        self.assertRegex(err, rf"\b{number_of_it}\b", script)

    # worked cases

    def test_the_worked_cases(self):
        cases = rc_cases.read_cases()
        self.assertEqual(len(cases), 85)
        for case in cases:
            for trial in trials_of(case):
                with self.subTest(case.id):
                    trial.run().check()

    def test_a_worked_case_with_a_claim_turned_round_is_noticed(self):
        count = 0
        for case in rc_cases.read_cases():
            for trial in trials_of(case):
                trial.run()
                for s, step in enumerate(trial.steps):
                    for c, claim in enumerate(step.claims):
                        if turned := opposite(claim):
                            claims = step.claims[:c] + (turned,) + step.claims[c + 1:]
                            steps = list(trial.steps)
                            steps[s] = step._replace(claims=claims)
                            with self.subTest(case.id, claim=claim), self.assertRaises(Wrong):
                                trial.check(steps)
                            count += 1
        self.assertGreater(count, 150)

    def test_a_fault_by_none_of_the_rules_is_noticed(self):
        for case in rc_cases.read_cases():
            whats = {claim.what for step in case.steps for claim in step.claims}
            if whats & {"gp", "shutdown"}:
                with self.subTest(case.id), self.assertRaises(Wrong):
                    for trial in trials_of(case._replace(rules=("REG-009",))):
                        trial.run().check()

    # the page

    def examples(self):
        """Script and lines of each example of the page."""
        page = (rc_cases.SPEC / "what_if.md").read_text(encoding="utf-8")
        block = re.search(r"\nExamples .*?\n```\n(.*?)\n```\n", page, re.S)[1]
        whole = re.sub(r"\n +->", " ->", block).splitlines()
        for line in whole:
            script, arrow, lines = line.partition("->")
            self.assertTrue(arrow, line)
            yield script.strip(), [text.strip() for text in lines.split(" / ")]

    def test_the_examples_of_the_page(self):
        checked, left = 0, 0
        for script, lines in self.examples():
            asks = any(OF_THE_ENGINE.match(part.strip()) for part in script.split(";"))
            if asks and not has_an_output_engine():
                left += 1
                continue
            checked += 1
            with self.subTest(script):
                self.says(script, *lines)
        self.assertEqual(checked + left, 8)
        self.assertEqual(left, 0 if has_an_output_engine() else 2)

    # statements

    def test_what_separates_statements(self):
        self.says("")
        self.says(" ; ;\n\n # nothing\n")
        self.says("cpu P-SKL;W570=2109 # ; R571\n\n R570;R571", "ok", "2109", "5")
        self.says(" cpu\tP-SKL ;\tW570 = 2109\r\n R570 ", "ok", "2109")

    def test_numbers_are_read_in_either_case_and_written_in_upper_case(self):
        self.says("set CTL=210d; R570; set BASE=abC000; R560; set MASK_PTRS=A000000ff; R561",
                  "210D", "ABC000", "0000000A000000FF")
        self.says("set CTL=000000000000000000002109; R570", "2109")

    def test_the_processor_without_a_cpu_statement_is_p_fut(self):
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

    def test_events(self):
        self.says("cpu P-SKL; W570=2109; INIT; R570; WARM; R570; COLD; R570; VMXON; VMXOFF",
                  "ok", "ok", "2109", "ok", "2108", "ok", "0", "ok", "ok")
        self.says("cpu P-SKL; W570=2109; SMI; R570; RSM; R570; state",
                  "ok", "ok", "2108", "ok", "2109",
                  "Error=0 Stopped=0; BASE=0 MASK_PTRS=000000000000007F; CTL=2109 STATUS=5 "
                  "GLOBAL_STATUS=0; PSB+ due")

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

    def test_explain_adds_the_sentence_of_each_rule(self):
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

    def test_a_script_in_a_file(self):
        self.assertEqual(run("", "/dev/null"), (0, "", ""))
        status, out, err = run("R570", __file__ + ".none")
        self.assertEqual((status, out), (2, ""))
        self.assertIn(".none", err)

    # statements that cannot be read

    def test_statements_that_cannot_be_read(self):
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
                "XRSTORS x", "XRSTORS init 0", "XRSTORS " + "0 " * 17, "total 1", "smrr 1",
                "restricted maybe", "explain 1"):
            with self.subTest(statement):
                self.refuses(f"cpu P-SKL; R570; {statement}; R571", 3, "0")
                self.refuses(f"cpu P-SKL\nR570\n\n# 9\n{statement} # 8\nR571", 3, "0")
                self.refuses(statement, 1)

    def test_wrong_usage(self):
        for arguments in (["--what"], ["a", "b"], ["--explain", "a", "b"]):
            self.assertEqual(run("R570", *arguments)[:2], (2, ""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
