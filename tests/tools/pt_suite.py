#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The output, the status and the errors of pt_suite.

    pt_suite.py PT_SUITE
"""

import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "checks"))
import observable

PT_SUITE = sys.argv.pop(1)


def run(*arguments, status=0, error=""):
    done = subprocess.run([PT_SUITE, *arguments], capture_output=True, text=True)
    if (done.returncode, done.stderr) != (status, error):
        raise AssertionError(f"{arguments}: status {done.returncode}: {done.stderr}")
    return done.stdout


def refuse(*arguments, error):
    run(*arguments, status=2, error=f"pt_suite: {error}\n")


class Run(unittest.TestCase):
    def test_tap_has_a_line_for_each_check_with_a_rule(self):
        lines = run("--runs", "2").splitlines()
        self.assertEqual(lines[0], "TAP version 14")
        count = int(re.fullmatch(r"1\.\.(\d+)", lines[1])[1])
        self.assertGreater(count, 130)
        for number, line in enumerate(lines[2:-1], 1):
            self.assertRegex(line, rf"\Aok {number} - [a-z0-9-]+ (REG|OUT|PKT|GEN|PRG)-\d\d\d"
                                   r"( # (SKIP|OBSERVED) .+)?\Z")
        self.assertEqual(number, count)
        self.assertRegex(lines[-1], r"\A# \d+ holds, 0 broken, \d+ observed, 0 unsteady, "
                                    r"\d+ skipped, 0 errors\Z")

    def test_nothing_is_broken_on_any_processor_of_any_kind(self):
        for preset in ("Broadwell-ULT", "GoldmontPlus", "IceLake-U", "ArrowLake-P", "P-SRO"):
            for kind in ("manual", "broadwell", "skylake", "icelake", "atom"):
                last = run("--runs", "1", "--as-preset", preset, "--as-kind", kind).splitlines()[-1]
                self.assertIn(" 0 broken, ", last)

    def test_a_defect_is_a_broken_rule(self):
        for defect in ("accepts_all", "refuses_all", "reads_zero", "stores_nothing",
                       "traces_nothing", "never_stops", "frozen_pointers", "no_interrupt",
                       "other_cpuid", "wild_cpuid", "no_time"):
            lines = run("--runs", "2", "--defect", defect, status=1)
            self.assertRegex(lines, r"(?m)^not ok \d+ - [a-z0-9-]+ [A-Z]{3}-\d\d\d # .+ "
                                    r"expected [\dA-F]+H, seen [\dA-F]+H$")

    def test_an_ignored_msr_is_a_policy_and_decides_some_checks(self):
        lines = run("--runs", "1", "--defect", "accepts_all", status=1)
        self.assertRegex(lines, r"(?m)^# policy: ignores absent MSRs; it decides 6 checks$")
        self.assertIn("# SKIP policy: ignores absent MSRs", lines)

    def test_the_example_of_the_help(self):
        text = run("--help")
        example = text[text.index("  $ pt_suite"):text.index("Exit status")].rstrip().splitlines()
        command, *expected = [line.removeprefix("  ") for line in example]
        self.assertEqual(run(*command.split()[2:], status=1).splitlines(), expected)

    def test_an_empty_run_is_not_green(self):
        run("--as-preset", "P-NONE", "--skip", "msrs-without-intel-pt", status=3)
        run("--as-preset", "P-NONE", "--only", "topa-stop", status=3)

    def test_a_dangerous_check_runs_if_it_is_named(self):
        name = "topa-beyond-maxphyaddr"
        self.assertIn("# SKIP dangerous\n", run(
            "--runs", "1", "--only", name, status=3,
            error=f"pt_suite: {name} is dangerous; it runs with --dangerous {name}\n"))
        self.assertNotIn("SKIP", run("--runs", "1", "--only", "topa-stop", "--dangerous", name))
        self.assertNotIn("SKIP", run("--runs", "1", "--only", name, "--dangerous", name))

    def test_json_has_the_findings(self):
        first, *lines = [json.loads(line) for line in run("--json", "--runs", "1").splitlines()]
        self.assertEqual(first, {"pt_suite": 1, "target": "model Skylake-X",
                                 "policy": "faults"})
        self.assertGreater(len(lines), 130)
        ignoring = run("--json", "--runs", "1", "--defect", "accepts_all", status=1)
        self.assertEqual(ignoring.splitlines()[0],
                         '{"pt_suite":1,"target":"model Skylake-X","policy":"ignores"}')
        for one in lines:
            self.assertEqual(set(one), {"check", "rule", "outcome", "detail", "msr", "wrote",
                                        "expected", "seen"})
            self.assertIn(one["outcome"], ("holds", "observed", "skipped"))


class Files(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def test_a_waiver_makes_a_broken_rule_green_and_an_idle_one_is_red(self):
        only = ("--only", "topa-int", "--runs", "1")
        path = self.file("w", "# known\ntopa-int PRG-063 no interrupts here # yet\n")
        lines = run(*only, "--defect", "no_interrupt", "--expect", path)
        self.assertIn("not ok 1 - topa-int PRG-063 # TO" "DO no interrupts here \n", lines)
        run(*only, "--expect", path, status=1,
            error="pt_suite: a waiver is not needed: topa-int PRG-063\n")
        other = self.file("x", "topa-int PRG-064 another rule\n")
        run(*only, "--defect", "no_interrupt", "--expect", other, status=1,
            error="pt_suite: a waiver is not needed: topa-int PRG-064\n")

    def test_a_waiver_is_not_judged_if_its_check_does_not_run(self):
        path = self.file("w", "topa-int PRG-063 no interrupts here\nctl-topa REG-024 wrong\n")
        said = "pt_suite: waivers whose check did not run: "
        run("--only", "topa-stop", "--runs", "1", "--expect", path, error=said + "2\n")
        run("--only", "topa-int", "--runs", "1", "--defect", "no_interrupt", "--expect", path,
            error=said + "1\n")
        lines = run("--only", "topa-int", "--as-preset", "P-NONE", "--expect", path, status=3,
                    error=said + "2\n")
        self.assertIn("# SKIP", lines)

    def test_a_wrong_waiver_is_refused(self):
        refuse("--expect", self.file("a", "no-such OUT-082 reason\n"),
               error="no check 'no-such'; --list prints them")
        short = self.file("b", "topa-int OUT-082\n")
        refuse("--expect", short, error=f"{short}: line 1: a waiver is CHECK RULE REASON")

    def test_reports_are_compared(self):
        one = self.file("one", run("--json", "--runs", "1"))
        other = self.file("other", run("--json", "--runs", "1", "--defect", "no_interrupt",
                                       status=1))
        self.assertEqual(run("--compare", one, one), "")
        lines = run("--compare", one, other, status=1)
        self.assertIn("topa-int: holds OUT-082 -> broken PRG-063\n", lines)
        self.assertNotIn("ctl-topa", lines)

    def test_another_file_is_no_report(self):
        one = self.file("one", '{"pt_suite":2,"target":"x"}\n')
        refuse("--compare", one, one,
               error=f"{one}: not a report of pt_suite --json, version 1")
        cut = self.file("cut", '{"pt_suite":1,"target":"x"}\n{"check":"a"}\n')
        refuse("--compare", cut, cut, error=f"{cut}: line 2: no finding")
        empty = self.file("empty", "")
        refuse("--compare", empty, empty, error=f"{empty}: empty")
        refuse("--compare", one, error="--compare takes two reports")


class Errors(unittest.TestCase):
    def test_what_does_not_exist_is_refused(self):
        refuse("--only", "nothing", error="no check 'nothing'; --list prints them")
        refuse("--skip", "nothing", error="no check 'nothing'; --list prints them")
        refuse("--dangerous", "nothing", error="no check 'nothing'; --list prints them")
        refuse("--dangerous", "topa-stop",
               error="the check 'topa-stop' is not dangerous; --only runs it")
        refuse("--defect", "none", error="no defect 'none'; --help lists them")
        refuse("--as-kind", "pentium", error="no kind 'pentium'; --help lists them")
        refuse("--as-kind", "pentium,pads=0", error="no kind 'pentium'; --help lists them")
        for wrong in ("pads=4", "pad=0", "pads", ""):
            refuse("--as-kind", f"atom,{wrong},ips=1",
                   error=f"no option of the model with a valid value: '{wrong}'")
        refuse("--as-preset", "Z80", error="no processor 'Z80'; what_if --help lists them")
        refuse("moon", error="no target 'moon'; there are model, and cpu N")
        for runs in ("0", "1001", "-1", "x", "99999999999999999999"):
            refuse("--runs", runs, error=f"the number of runs is 1 to 1000, not '{runs}'")


class Observe(unittest.TestCase):
    def test_the_row_of_each_kind_is_its_name(self):
        for kind in ("manual", "broadwell", "skylake", "icelake", "atom"):
            lines = run("--observe", "--as-kind", kind).splitlines()
            self.assertEqual(lines[:2], [kind, "# 24 traces; in 0 the model has other bytes"])
            self.assertEqual(len(lines), 3)
            self.assertRegex(lines[2], rf"\A# not seen in these traces, so as {kind} has them: "
                                       r".*\bpsb_after_overflow\b")

    def test_a_row_is_found_and_is_a_kind_to_hold_the_target_to(self):
        row = "skylake,tnt_capacity=33,pads=1,psb_step=1"
        found = run("--observe", "--as-preset", "ArrowLake-P", "--as-kind", row).splitlines()[0]
        self.assertEqual(found, row)
        only = ("--only", "bytes-of-branches", "--only", "bytes-of-psb-periods", "--runs", "2")
        self.assertIn("2 holds, ", run("--as-kind", found, *only))

    def test_bytes_of_no_row_are_said(self):
        lines = run("--observe", "--defect", "never_stops", status=1).splitlines()
        self.assertEqual(lines[:2], ["# no row; the most similar one is skylake",
                                     "# 24 traces; in 1 the model has other bytes"])
        self.assertRegex(lines[2], r"\A# no value has their bytes: .*\bmov_cr3_stops_at_next\b")
        self.assertEqual(run("--observe", "--as-preset", "P-NONE", status=3),
                         "# no row: no trace was made: the processor lacks Intel PT\n")

    def test_what_does_nothing_is_refused(self):
        refuse("--observe", "cpu", "0",
               error="--observe is for the target model: on a processor nothing is traced")
        for other in (("--json",), ("--runs", "2"), ("--only", "topa-stop"),
                      ("--skip", "topa-stop"), ("--expect", "F")):
            refuse("--observe", *other, error="--observe runs no checks: it takes --as-preset, "
                                              "--as-kind, --defect")


class Processor(unittest.TestCase):
    """The target cpu, which is not run here: the machine may have Intel PT, and be in use."""

    def test_what_is_no_processor_is_refused(self):
        needed = "cpu needs the number of a processor, or all"
        refuse("cpu", error=needed)
        refuse("cpu", "--json", error=needed)
        if not pathlib.Path("/sys/devices/system/cpu/online").exists():
            self.skipTest("no list of processors in /sys")
        online = pathlib.Path("/sys/devices/system/cpu/online").read_text().strip()
        for wrong in ("x", "65535", "99999999999", "0-1", ""):
            refuse("cpu", wrong, error=f"no processor '{wrong}' is online; there are {online}")

    def test_an_option_of_the_other_target_is_refused(self):
        of_model = "--as-preset and --defect are for the target model"
        refuse("cpu", "0", "--defect", "no_time", error=of_model)
        refuse("cpu", "all", "--as-preset", "Skylake-X", error=of_model)
        refuse("--journal", "x", error="--journal is for the target cpu")

    def test_the_help_says_what_it_does(self):
        text = " ".join(run("--help").split())
        for part in ("`cpu` is for test machines.", "It never sets TraceEn",
                     "A report has raw addresses."):
            self.assertIn(part, text)


class Observable(unittest.TestCase):
    """tests/spec/observable.csv: what the suite can ask of each rule."""

    def test_it_is_what_observable_py_writes(self):
        with open(observable.PATH, newline="") as file:
            head, *rows = map(tuple, csv.reader(file))
        self.assertEqual(head, observable.COLUMNS)
        made = list(observable.rows(PT_SUITE, {row[0]: row[-1] for row in rows}))
        for row, expected in zip(rows, made):
            with self.subTest(row[0]):
                self.assertEqual(row, expected)
                self.assertNotEqual(bool(row[1]), bool(row[-1]))
        self.assertEqual(len(rows), len(made))
        families = {}
        for rule, checks, *_ in rows:
            families[rule[:3]] = families.get(rule[:3], 0) + bool(checks)
        for family, least in (("GEN", 95), ("OUT", 50), ("PKT", 85), ("REG", 85),
                              ("PRG", 20)):
            self.assertGreaterEqual(families[family], least)
        asked = {rule for one in observable.lines_of(PT_SUITE, "--list", "--json")
                 for rule in one["rules"].split()}
        self.assertEqual(asked, {row[0] for row in rows if row[1]})


if __name__ == "__main__":
    unittest.main()
