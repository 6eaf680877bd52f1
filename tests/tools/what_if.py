#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of what_if as a program: the worked cases RC and OC of the catalogue, the examples of its
page what_if.md, and invalid statements.

    what_if.py WHAT_IF
"""

import csv
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import oc_cases  # noqa: E402
import rc_cases  # noqa: E402
import skips  # noqa: E402
from tool_checks import ScriptChecks  # noqa: E402

WHAT_IF = sys.argv[1]

CTL, STATUS, MASK_PTRS, GLOBAL_STATUS = 0x570, 0x571, 0x561, 0x38E
NAMES = {CTL: "CTL", STATUS: "STATUS", 0x560: "BASE", MASK_PTRS: "MASK_PTRS", 0x572: "CR3_MATCH",
         **{0x580 + n: f"ADDR{n // 2}_{'AB'[n % 2]}" for n in range(8)}}
OS, USER, CR3_FILTER = 1 << 2, 1 << 3, 1 << 7

STATE = re.compile(r"Error=(?P<error>[01]) Stopped=(?P<stopped>[01]); BASE=(?P<base>\w+) "
                   r"MASK_PTRS=(?P<mask_ptrs>\w{16}); CTL=(?P<ctl>\w+) STATUS=(?P<status>\w+) "
                   r"GLOBAL_STATUS=(?P<global_status>\w+);"
                   r"(?P<psb> PSB\+ due)?(?:(?(psb),) (?P<pmi>PMI pending))?")
WRITTEN = re.compile(r"stored (?P<stored>\w+) lost (?P<lost>\w+) PMI (?P<pmi>\w+)"
                     r"(?: first (?P<first>\w+) last (?P<last>\w+))?")
EXPLAINED = re.compile(r"(?P<rule>[A-Z]{3}-\d{3})(?: table (?P<table>\w+) entry (?P<entry>\w+))?"
                       r": (?P<sentence>.+)")
PMI_BIT, INJECT, STOPPED, PEND_TOPA_PMI = 1 << 55, 1 << 56, 1 << 5, 1 << 7


def run(script, *arguments):
    done = subprocess.run([WHAT_IF, *arguments], input=script, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class Wrong(AssertionError):
    """The output of the program contradicts a case."""


def require(truth, what):
    if not truth:
        raise Wrong(what)


def number(text, digits=1):
    """Formats a number like the program."""
    require(re.fullmatch("[0-9A-F]+", text), f"no number: {text!r}")
    value = int(text, 16)
    require(text == f"{value:0{digits}X}", f"another form of number: {text!r}")
    return value


# ------------------------------------------------------------------------------------- one trial

class Trial:
    """A case, or one of its separate trials, as a script, and the output of the program."""

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
        """Adds a statement that prints a line. Returns the number of that line."""
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
        # CR3_MATCH is checked through ContextEn, so nothing else may clear it.
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
        """The complete state that the program printed at one point."""
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
        """Checks the claims of steps (by default all steps of the case) against the printed lines.
        """
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
    """A claim about the same step that contradicts this one; None where both can be true."""
    verdicts = {"no_fault": "gp", "gp": "no_fault", "shutdown": "no_fault"}
    if claim.what in verdicts:
        return claim._replace(what=verdicts[claim.what])
    if claim.what in ("reads", "holds", "stores"):
        return claim._replace(value=claim.value ^ (claim.mask & -claim.mask))
    may = claim.what == "psb_plus" and claim.value == rc_cases.PSB_PLUS["may"]
    return None if may else claim._replace(value=claim.value ^ 1)


# ------------------------------------------------------------------------------------- one output

# In these cases no cited rule explains Stopped: it was set before, or the case is about another
# rule.
WHY_STOPPED = {"OC-10": "REG-053", "OC-19": "OUT-080", "OC-42": "OUT-080"}


class Output:
    """A case of the output engine as a script, and the output of the program."""

    def __init__(self, case, writes):
        self.case = case
        status, ctl = STOPPED if case.stopped else 0, INJECT if case.inject else 0
        self.script = [
            f"cpu {case.profile}", f"set CTL={ctl:X}", f"set STATUS={status:X}",
            f"set BASE={case.base:X}", f"set MASK_PTRS={case.mask_ptrs:X}",
            *(f"[{address:X}]={word:X}" for address, word in case.memory),
            *("smrr {:X} {:X}".format(*smrr) for smrr in [case.smrr] if smrr),
            f"scheme {case.scheme}", "enable", *(f"write {count:X}" for count in writes)]
        # The pointers can be read while the engine is stopped.
        asked = ["total", "state", "explain", "R571", "disable", "R560", "R561"]
        done, out, err = run("; ".join(self.script + asked))
        require((done, err) == (0, ""), f"exit status {done}: {err}")
        lines = out.splitlines()
        require(len(lines) == 1 + len(writes) + len(asked), f"{len(lines)} lines")
        require(lines[0] == "ok", f"enabling: {lines[0]}")
        self.writes, self.asked = lines[1:-len(asked)], lines[-len(asked):]
        self.explained = self.asked[2]

    def results(self):
        """The printed value of everything that a case can claim."""
        total, state = WRITTEN.fullmatch(self.asked[0]), STATE.fullmatch(self.asked[1])
        require(total and state, f"no total or no state: {self.asked}")
        require(self.asked[3:] == [state["status"], "ok", state["base"], state["mask_ptrs"]],
                f"the registers differ: {self.asked}")
        counts = {name: 0 for name in ("stored", "lost", "pmi")}
        for line in self.writes:
            one = WRITTEN.fullmatch(line)
            require(one, f"no result of a write: {line}")
            counts = {name: counts[name] + number(one[name]) for name in counts}
        require(counts == {name: number(total[name]) for name in counts}, "the total is no total")
        require(bool(state["pmi"]) == (counts["pmi"] != 0), "an interrupt is pending, or is not")
        reach = total["first"] and (number(total["first"]), number(total["last"]))
        return {"error": state["error"] == "1", "stopped": state["stopped"] == "1",
                "base": number(state["base"]), "mask_ptrs": number(state["mask_ptrs"], 16),
                "reach": reach, **counts,
                "global_status_55": bool(number(state["global_status"]) & PMI_BIT),
                "pend_topa_pmi": bool(number(state["status"]) & PEND_TOPA_PMI)}

    def check(self, claims):
        results = self.results()
        for name, value in claims.items():
            require(results[name] == value, f"{name} is {results[name]}, not {value}")

    def check_explanation(self):
        results = self.results()
        if not (results["error"] or results["stopped"]):
            return require(self.explained == "nothing stopped it", self.explained)
        why = EXPLAINED.fullmatch(self.explained)
        require(why, f"no explanation: {self.explained}")
        rules = [WHY_STOPPED.get(self.case.id)] if self.case.id in WHY_STOPPED else self.case.rules
        require(why["rule"] in rules, f"{why['rule']} is not why")
        at = (why["table"], why["entry"])
        if self.case.scheme == "topa":
            index = results["mask_ptrs"] >> 7 & 2**25 - 1
            require(at == (f"{results['base']:X}", f"{index:X}"), f"not at {at}")
        else:
            require(at == (None, None), f"at an entry: {at}")


def claims_of(case):
    """The claims of a case, by the names of results."""
    claims = case.wanted._asdict()
    for name in ("global_status_55", "pend_topa_pmi"):
        if not claims[name]:
            del claims[name]
    return claims


def opposites(claims):
    """The claims with one of them changed, for each claim."""
    for name, value in claims.items():
        if name == "reach":
            first, last = value or (0, 0)
            others = ((first + 1, last), (first, last + 1)) + ((None,) if value else ((0, 0),))
        else:
            others = (not value,) if isinstance(value, bool) else (value + 1, value ^ 0x80)
        for other in others:
            yield {**claims, name: other}


def line_about(case):
    """Statement and expected line of a case without a processor."""
    if isinstance(case, oc_cases.Encode):
        one = case.entry
        fields = (("END", one.end), ("INT", one.interrupt), ("STOP", one.stop), ("Size", one.size))
        named = " ".join(f"{name}={value:X}" for name, value in fields if value)
        return f"encode TOPA_ENTRY {named} Base={one.base:X}", f"{case.word:X}"
    if isinstance(case, oc_cases.Decode):
        line = "END={:X} INT={:X} STOP={:X} Size={:X} Base={:X}".format(*case.entry)
        return (f"maxphyaddr {case.max_phys_addr}; decode TOPA_ENTRY {case.word:X}",
                line + (f"; violates {case.broken}" if case.broken else ""))
    if isinstance(case, oc_cases.Build):
        return (f"build {case.start:X} {case.bytes:X} {case.offset:X}",
                f"BASE={case.base:X} MASK_PTRS={case.mask_ptrs:016X}")
    assert isinstance(case, oc_cases.Locate), case
    return (f"set BASE={case.base:X}; set MASK_PTRS={case.mask_ptrs:X}; locate",
            f"idx={case.idx:X} entry={case.entry:X} off={case.off:X}")


# ------------------------------------------------------------------------------------- the tests

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

    # worked cases

    def test_the_worked_cases(self):
        cases = rc_cases.read_cases()
        self.assertTrue(cases)
        for case in cases:
            for trial in trials_of(case):
                with self.subTest(case.id):
                    trial.run().check()

    def test_a_worked_case_with_an_inverted_claim_fails(self):
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

    def test_a_fault_by_another_rule_fails(self):
        for case in rc_cases.read_cases():
            whats = {claim.what for step in case.steps for claim in step.claims}
            if whats & {"gp", "shutdown"}:
                with self.subTest(case.id), self.assertRaises(Wrong):
                    for trial in trials_of(case._replace(rules=("REG-009",))):
                        trial.run().check()

    def engine_cases(self):
        cases = [case for case in oc_cases.read_cases() if isinstance(case, oc_cases.Engine)]
        self.assertTrue(cases)
        return cases

    def test_every_processor_of_the_catalogue_has_a_name(self):
        help_text = run("", "--help")[1].split()
        with open(rc_cases.SPEC / "presets.csv", newline="") as file:
            for row in csv.DictReader(file):
                with self.subTest(row["name"]):
                    self.assertIn(row["name"], help_text)
                    self.says(f"cpu {row['name']}")
                    self.says(f"cpu {row['name'].lower()}")

    def test_the_worked_cases_of_output(self):
        for case in self.engine_cases():
            with self.subTest(case.id):
                output = Output(case, case.writes)
                output.check(claims_of(case))
                output.check_explanation()

    def test_a_worked_case_of_output_with_an_inverted_claim_fails(self):
        count = 0
        for case in self.engine_cases():
            output = Output(case, case.writes)
            for claims in opposites(claims_of(case)):
                with self.subTest(case.id, claims=claims), self.assertRaises(Wrong):
                    output.check(claims)
                count += 1
        self.assertGreater(count, 600)

    def test_an_explanation_by_another_rule_fails(self):
        stopped = [case for case in self.engine_cases()
                   if case.id not in WHY_STOPPED and (case.wanted.error or case.wanted.stopped)]
        self.assertGreater(len(stopped), 15)
        for case in stopped:
            with self.subTest(case.id), self.assertRaises(Wrong):
                Output(case._replace(rules=("REG-009",)), case.writes).check_explanation()

    def test_writing_in_pieces_is_the_same_as_writing_at_once(self):
        """OUT-151 and OUT-152, by OC-51."""
        comparison, = (c for c in oc_cases.read_cases() if isinstance(c, oc_cases.Pieces))
        self.assertIn(0, comparison.pieces)
        for case in self.engine_cases():
            count = sum(case.writes)
            # The pieces of the case, and cuts next to the first and last byte and in the middle.
            ways = [(comparison.pieces, (comparison.whole,))]
            ways += [((cut, 0, count - cut), (count,))
                     for cut in {1, count - 1, count // 2} if 0 < cut < count]
            for pieces, whole in ways:
                with self.subTest(case.id, pieces=pieces):
                    several, once = Output(case, pieces), Output(case, whole)
                    self.assertEqual(several.asked, once.asked)
                    self.assertEqual(once.asked[0], once.writes[0])

    def test_the_worked_cases_without_a_processor(self):
        cases = [case for case in oc_cases.read_cases()
                 if not isinstance(case, (oc_cases.Engine, oc_cases.Pieces))]
        self.assertEqual(len(cases), 5)
        for case in cases:
            statement, line = line_about(case)
            with self.subTest(case.id):
                self.says(statement, line)

    # the page

    def examples(self):
        """Script and lines of each example on the page."""
        page = (rc_cases.SPEC / "what_if.md").read_text(encoding="utf-8")
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
