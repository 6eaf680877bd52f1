#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of msr_plan as a program: the cases PC of programming.md, its procedures, and wrong usage.

    msr_plan.py MSR_PLAN
"""

import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
MSR_PLAN = sys.argv[1]

# The kinds of rows are those of notation.md, section 4; the others are prose.
KINDS = {}


def run(*arguments):
    done = subprocess.run([MSR_PLAN, *arguments], capture_output=True, text=True, timeout=20)
    return done.returncode, done.stdout, done.stderr


def numbers_of(text):
    """`PC-05..11, 20, 28..30` as numbers."""
    found = []
    for item in text.replace("PC-", "").split(","):
        first, _, last = item.strip().partition("..")
        found += range(int(first), int(last or first) + 1)
    return found


def read_rows():
    notation = (ROOT / "tests/spec/notation.md").read_text(encoding="utf-8")
    for kind, rows in re.findall(r"^\| (probe|log|state) \| (PC-[^|]*) \|", notation, re.M):
        for number in numbers_of(rows):
            KINDS[f"PC-{number:02}"] = kind
    page = (ROOT / "tests/spec/programming.md").read_text(encoding="utf-8")
    rows = {}
    for line in page.splitlines():
        if line.startswith("| PC-"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            rows[cells[0]] = cells
    return rows


def without_comments(cell):
    out, depth = "", 0
    for at, letter in enumerate(cell):
        if letter == "(" and (depth or out.endswith(" ")):
            depth += 1
        elif letter == ")" and depth:
            depth -= 1
        elif not depth:
            out += letter
    return out.strip()


def items_of(cell):
    return [re.sub(" +", " ", item).strip() for item in without_comments(cell).split(";")]


def same_number(one, other):
    hexadecimal = re.compile("[0-9A-F]+")
    if hexadecimal.fullmatch(one) and hexadecimal.fullmatch(other):
        return int(one, 16) == int(other, 16)
    return one == other


def same_item(wanted, got):
    """`..` matches any value; numbers match with and without leading zeros."""
    pieces = re.compile(r"[0-9A-F]+|\.\.|[^0-9A-F.]+|\.")
    wanted = wanted.replace("->Stopped=1", "->20") if "RDMSR(571)" in got else wanted
    if "RDMSR" in wanted and "->" not in wanted:
        got = got.partition("->")[0]
    wanted, got = pieces.findall(wanted), pieces.findall(got)
    return len(wanted) == len(got) and all(
        one == ".." or same_number(one, other) for one, other in zip(wanted, got))


class Rows(unittest.TestCase):
    def run_row(self, row):
        status, out, error = run("--setup", row[1], "--operation", row[2])
        self.assertEqual((status, error), (0, ""), row[0])
        return out.strip()

    def test_every_row_that_is_not_prose_prints_what_it_expects(self):
        rows = read_rows()
        self.assertEqual(len(KINDS), 28)
        for name, kind in KINDS.items():
            with self.subTest(name):
                row = rows[name]
                line = self.run_row(row)
                expected = row[3]
                if " / " in expected:
                    self.check_halves(expected, line)
                    continue
                got = line.split("; ")
                wanted = items_of(expected)
                if kind == "state":
                    for item in wanted:
                        self.assertTrue(any(same_item(item, one) for one in got), (item, line))
                else:
                    self.assertEqual(len(wanted), len(got), (wanted, line))
                    for one, other in zip(wanted, got):
                        self.assertTrue(same_item(one, other), (one, other))

    def check_halves(self, expected, line):
        for half, printed in zip(expected.split(" / "), line.split(" / ")):
            condition, _, claims = half.partition(": ")
            self.assertEqual(condition, printed.partition(": ")[0])
            got = printed.partition(": ")[2].split(", ")
            for claim in claims.split(", "):
                self.assertTrue(any(same_item(claim, one) for one in got), (claim, printed))

    def test_values_of_a_row_count(self):
        other = run("--setup", "table at 30000000", "--operation", "enable ToPA, config 2509")
        self.assertEqual(other[1], "WRMSR(571,0); WRMSR(560,30000000); WRMSR(561,7F); "
                                   "WRMSR(570,2509)\n")
        probe = run("--setup", "ECX=80000003", "--operation", "WRMSR(570,240C); WRMSR(570,240D)")
        self.assertEqual(probe[1], "ok; #GP\n")
        read = run("--setup", "570=250C", "--operation", "RDMSR(570); RDMSR(584)")
        self.assertEqual(read[1], "250C; #GP\n")

    def test_what_is_not_understood_is_refused(self):
        for setup, operation in (("a table", "enable"), ("", "dance"), ("R600 has INT", "enable"),
                                 ("571=XYZ", "enable"), ("", "WRMSR(570"), ("", ""),
                                 ("", "WRMSR(570)"), ("", "fill Rx"), ("", "enable (")):
            status, out, error = run("--setup", setup, "--operation", operation)
            self.assertEqual((status, out), (2, ""), (setup, operation))
            self.assertEqual(len(error.splitlines()), 1)


class Procedures(unittest.TestCase):
    def bare(self, *arguments):
        status, out, error = run("--bare", *arguments)
        self.assertEqual((status, error), (0, ""), arguments)
        return out.splitlines()

    def test_the_example_of_the_help(self):
        text = run("--help")[1]
        command = re.search(r"^  \$ msr_plan (.*)$", text, re.M)[1]
        arguments = [a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', command)]
        wanted = [line.strip() for line in text[text.index(command):].splitlines()[1:5]]
        self.assertEqual(self.bare(*arguments), ["WRMSR(571,0)"] + wanted[1:])
        self.assertEqual(run(*arguments)[1].splitlines(), wanted)

    def test_each_procedure_runs_dry_and_on_the_model(self):
        lines = {"detect": 7, "enable": 4, "disable": 6, "flush": 6, "pause": 1, "resume": 2,
                 "save": 5, "restore": 4, "switch": 10, "restart": 6, "recover": 4, "pmi": 10}
        for name, count in lines.items():
            with self.subTest(name):
                dry = self.bare(name)
                real = self.bare("--run", name)
                self.assertEqual(len(dry), count)
                self.assertEqual([line.partition("->")[0] for line in dry],
                                 [re.sub(r",\w+\)", lambda m: m[0], line).partition("->")[0]
                                  for line in dry])
                self.assertEqual([line[:9] for line in dry], [line[:9] for line in real])
                self.assertFalse(any("#GP" in line for line in real))
                for line in real:
                    self.assertEqual("->" in line, line.startswith("RDMSR"))

    def test_refusals_are_told_with_their_rule(self):
        out = run("--cpu", "Broadwell", "enable", "user cyc mtc=3 filter=1000-1FFF")[1]
        for member in ("cyc is refused, REG-027", "mtc is refused", "addr[0] is refused"):
            self.assertIn(member, out)
        self.assertTrue(out.splitlines()[-1].startswith("WRMSR(570,2109)"))

    def test_a_trace_of_no_code_is_told(self):
        note = "(neither os nor user: no code is traced)"
        self.assertEqual(run("enable", "tsc")[1].splitlines()[0], note)
        for words in ("os", "user tsc"):
            self.assertNotIn(note, run("enable", words)[1])

    def test_buffers(self):
        self.assertIn("WRMSR(561,FFFF)", self.bare("enable", "user", "range=64K"))
        self.assertEqual(self.bare("enable", "user", "fabric")[-1][:6], "WRMSR(")
        for word in ("circular=4x4K", "stop=4x1M", "interrupt=2x128M", "ring=64K"):
            self.assertIn("WRMSR(561,7F)", self.bare("--run", "enable", "user", word))

    def test_wrong_usage(self):
        for arguments in ((), ("dance",), ("enable", "user", "ring=3"), ("enable", "user", "ring"),
                          ("enable", "foo"), ("--cpu", "Z80", "enable"), ("--cpu",), ("-x",),
                          ("enable", "user", "ring=0x4K"), ("enable", "mtc=99"),
                          ("enable", "psb=3K"), ("enable", "filter=1"), ("a", "b", "c", "d"),
                          ("enable", "user", "range=100"), ("--setup", "x"),
                          ("enable", "user", "ring=99999999999999999999x4K"),
                          ("enable", "filter=1-2 " * 5)):
            status, out, error = run(*arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertEqual(len(error.splitlines()), 1, arguments)


if __name__ == "__main__":
    skips.main(sys.argv[:1])
