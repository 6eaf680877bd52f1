#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of msr_plan as a program: the cases PC of programming.md, its procedures, and wrong usage.

    msr_plan.py MSR_PLAN
"""

import pathlib
import random
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
        self.assertEqual(len(KINDS), 29)
        for name, kind in KINDS.items():
            with self.subTest(name):
                row = rows[name]
                line = self.run_row(row)
                expected = row[3]
                if " / " in expected:
                    self.check_halves(without_comments(expected), line)
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
        other = run("--setup", "table at 30000000", "--operation", "enable 2509")
        self.assertEqual(other[1], "WRMSR(571,0); WRMSR(560,30000000); WRMSR(561,7F); "
                                   "WRMSR(570,2509)\n")
        probe = run("--setup", "ECX=80000003", "--operation", "WRMSR(570,240C); WRMSR(570,240D)")
        self.assertEqual(probe[1], "ok; #GP\n")
        read = run("--setup", "570=250C", "--operation", "RDMSR(570); RDMSR(584)")
        self.assertEqual(read[1], "250C; #GP\n")

    def test_unknown_words_name_themselves(self):
        for setup, operation, word in (
                ("a table", "enable", "a"), ("", "dance", "dance"), ("R4096 INT", "enable", "4096"),
                ("571=XYZ", "enable", "XYZ"), ("", "WRMSR(570", "WRMSR(570"), ("", "", "empty"),
                ("", "WRMSR(570)", "WRMSR(570)"), ("R0 4 KB", "fill Rx", "Rx"),
                ("", "enable (", "without )"), ("R0 5 KB", "enable", "region"),
                ("R0 64 kB", "enable", "kB"), ("R0 INTO", "enable", "INTO"),
                ("R0, table = [R0, R1]", "enable", "R1"), ("table = [->T7]", "enable", "->T7"),
                ("table X", "enable", "X"), ("EBX[64]=0", "enable", "bits"),
                ("EBX[2]=2", "enable", "EBX[2]"), ("CPUID.99H.0:EBX=0", "enable", "CPUID.99H.0"),
                ("588=1", "enable", "588"), ("MTCFreq=10", "enable", "MTCFreq"),
                ("ADDR0=[1000]", "enable", "ends"), ("ADDR4=[1,2]", "enable", "ADDR0"),
                ("ADDR0=[1,2] both", "enable", "both"), ("in space", "enable", "space"),
                ("EBX[2]=1 / EBX[2]=0, EBX[3]=1 / EBX[3]=0", "enable", "alternatives"),
                ("single range", "fill all", "regions"), ("R0", "fill R1", "R1"),
                ("", "write 20h apples", "apples"),
                ("", "XRSTORS RFBM[8]=2", "2"), ("", "XRSTORS {570=1", "{570=1"),
                ("", "read in", "in"), ("", "state now", "now"), ("", "588", "588"),
                ("table = [R0, ->T0], R0", "locate end", "table")):
            with self.subTest(setup=setup, operation=operation):
                status, out, error = run("--setup", setup, "--operation", operation)
                self.assertEqual((status, out), (2, ""))
                self.assertEqual(len(error.splitlines()), 1)
                self.assertIn(word, error)

    def row(self, setup, operation):
        status, out, error = run("--setup", setup, "--operation", operation)
        self.assertEqual((status, error), (0, ""), (setup, operation))
        return out.strip()

    def test_capability_bits_have_their_long_names(self):
        for name in ("EBX[2]=0", "CPUID.14H.0:EBX[2]=0", "CPUID.14H:EBX[2]=0", "EBX=1FB"):
            self.assertEqual(self.row(name, "WRMSR(580,1000)"), "#GP", name)
        self.assertEqual(self.row("", "WRMSR(580,1000)"), "ok")
        self.assertEqual(self.row("RANGECNT=4", "WRMSR(586,1)"), "ok")
        self.assertEqual(self.row("CPUID.14H.1:EAX[2:0]=3", "WRMSR(586,1); WRMSR(584,1)"),
                         "#GP; ok")
        self.assertEqual(self.row("M=32", "WRMSR(560,100000000)"), "#GP")

    def test_instructions_and_events(self):
        # PRG-111, PRG-112, REG-110, REG-121, REG-146
        self.assertEqual(self.row("tracing", "XSAVES RFBM[8]=1 faults; TraceEn"), "#PF; TraceEn=1")
        self.assertTrue(self.row("tracing", "XSAVES; TraceEn").endswith("TraceEn=0"))
        self.assertEqual(self.row("560=5000, 572=1000",
                                  "XRSTORS RFBM[8]=1 XSTATE_BV[8]=0; 560; 572"),
                         "ok; 560=0; 572=0")
        self.assertEqual(self.row("", "XRSTORS {CTL=250C,BASE=5000}; CTL; BASE; MASK_PTRS"),
                         "ok; CTL=250C; BASE=5000; MASK_PTRS=7F")
        self.assertEqual(self.row("", "XRSTORS {572=1}"), "#GP")
        self.assertEqual(self.row("560=5000", "XRSTORS RFBM[8]=0; 560"), "ok; 560=5000")
        self.assertEqual(self.row("tracing, 485[14]=0", "VMXON; TraceEn; VMX; WRMSR(570,250D); "
                                  "VMXOFF; VMX; WRMSR(570,250D)"),
                         "ok; TraceEn=0; VMX=1; #GP; ok; VMX=0; ok")
        self.assertEqual(self.row("tracing", "SMI; TraceEn; SMM; RSM; TraceEn"),
                         "ok; TraceEn=0; SMM=1; ok; TraceEn=1")
        self.assertEqual(self.row("tracing, ADDR0=[1000,1FFF] filter, ADDR1=[3000,3FFF] stop",
                                  "branch to 1000; branch to 2000; branch to 3FFF"),
                         "FilterEn=1; Stopped=0; FilterEn=0; Stopped=0; FilterEn=0; Stopped=1")
        self.assertEqual(self.row("tracing",
                                  "ACM begin; TraceEn; ACM end; TraceEn; SENTER; TraceEn"),
                         "ok; TraceEn=0; ok; TraceEn=1; ok; TraceEn=0")  # REG-111, REG-112
        self.assertEqual(self.row("ADDR1=[1000,1FFF]", "582; 583; ADDR1_CFG"),
                         "582=1000; 583=1FFF; ADDR1_CFG=0")
        self.assertEqual(self.row("tracing",
                                  "WRMSR(571,0); WRMSR(570,250C); WRMSR(571,0); 570; 571"),
                         "#GP; ok; ok; 570=250C; 571=0")

    def test_every_procedure_is_a_step(self):
        part = "RANGECNT=4, ADDR2=[1000,1FFF] filter, ADDR3=[3000,3FFF] filter, R0 64 KB"
        for step, wanted in (
                ("detect", "RDMSR(CE)->0; RDMSR(570)->"),
                ("check_enabled", "RDMSR(570)->"), ("pause", "WRMSR(570,"),
                ("resume", "RDMSR(571)->0"), ("save", "RDMSR(570)->"),
                ("restore", "WRMSR(571,0); "),
                ("flush", "WRMSR(570,"), ("check_lbr", ""), ("after_warm_reset", "RDMSR(570)->"),
                ("after_cold_reset", "RDMSR(570)->"),
                ("read_uncovered", "RDMSR(584)->1000; RDMSR(585)->1FFF; RDMSR(586)->3000; "
                                   "RDMSR(587)->3FFF"),  # PRG-110
                ("write_uncovered", "WRMSR(584,1000); WRMSR(585,1FFF); WRMSR(586,3000); "
                                    "WRMSR(587,3FFF)")):
            with self.subTest(step):
                line = self.row(part, step)
                self.assertTrue(line.startswith(wanted), line)
                self.assertEqual(line == "", wanted == "")

    def test_tables_with_links(self):
        setup = ("R0..R2 4 KB at 1000, tracing, table = [R0, ->T1], "
                 "table T1 at 30000000 = [R1, R2, ->T0]")
        # PRG-083, PRG-129
        self.assertEqual(self.row(setup, "fill R0..R1; 560; 561; fill all; 560; 561"),
                         "stored=2000; lost=0; PMI=0; data=[1000,3000); 560=30000000; 561=FF; "
                         "stored=3000; lost=0; PMI=0; data=[3000,4000),[1000,3000); 560=30000000; "
                         "561=FF")
        self.assertIn("Error=1", self.row(setup.replace("R1, R2", "2, R2"), "fill R0; state"))

    def test_order_names_and_sizes_of_our_rows_are_free(self):
        dice = random.Random(1)
        rows = read_rows()
        changed = 0
        for name in KINDS:
            base = self.run_row(rows[name])
            for _ in range(6):
                setup, operation = rename(dice, rows[name][1]), rows[name][2]
                line = self.row(setup, operation)
                self.assertEqual(line, base, (name, setup))
                changed += setup != without_comments(rows[name][1])
        self.assertGreater(changed, 80)

    def test_rows_with_other_sizes(self):
        dice = random.Random(2)
        for _ in range(40):
            count, code, offset = dice.randint(1, 6), dice.randint(1, 9), dice.randint(0, 0xFFF)
            size, last = 4096 << code, count - 1
            names = dice.choice((f"R0..R{last}", ",".join(f"R{n}" for n in range(count))))
            regions = f"{names} {4 << code} KB" if code < 8 else f"{names} {(4 << code) >> 10} MB"
            pos = last * size + offset
            pointers = f"561={offset << 32 | last << 7 | 0x7F:X}"
            # PC-12 and PC-13: PRG-129, PRG-141.
            self.assertTrue(self.row(f"{pointers}, tracing, {regions}", "disable; locate end")
                            .endswith(f"; pos={pos:X}"))
            whole = [f"[{pos:X},{count * size:X})"] + ([f"[0,{pos:X})"] if pos else [])
            self.assertEqual(self.row(f"wrapped, {regions}, {pointers}", "read out"),
                             "data=" + ",".join(whole))
            # PC-14: PRG-083, PRG-085, PRG-086.
            end = self.row(f"R{last} STOP, {regions}, tracing", "fill all; Stopped; 561; read out")
            self.assertTrue(end.endswith(f"; Stopped=1; 561={size << 32 | last << 7 | 0x7F:016X}; "
                                         f"data=[0,{count * size:X})"), end)
            # PC-25: PRG-088.
            wrong = f"R{count} {4 << code} KB at {size + 0x1000:X}" if code < 8 else ""
            if wrong:
                line = self.row(f"{wrong}, tracing, {regions}", f"fill {names}; Error; 561")
                self.assertTrue(line.endswith(f"Error=1; 561={count << 7 | 0x7F:X}"), line)


ALIASES = {"560": "BASE", "561": "MASK_PTRS", "570": "CTL", "571": "STATUS", "572": "CR3_MATCH",
           "38E": "GLOBAL_STATUS", "485": "VMX_MISC", "EBX": "CPUID.14H.0:EBX",
           "ECX": "CPUID.14H:ECX"}


def rename(dice, cell):
    """The same setup: its items in another order, with other names and separators."""
    items = re.split(r"(?:;|, )(?![^\[]*\])", without_comments(cell))
    items = [item.strip() for item in items if item.strip()]
    dice.shuffle(items)
    for at, item in enumerate(items):
        name = re.match(r"\w+(?=[=\[])", item)
        if name and name[0] in ALIASES and " / " not in item and dice.random() < 0.6:
            item = ALIASES[name[0]] + item[name.end():]
        item = re.sub(r"^R0,R1\b", lambda m: dice.choice((m[0], "R0..R1")), item)
        items[at] = item.replace(" ", dice.choice((" ", "  ")))
    return "".join(item + dice.choice((", ", "; ", " ; ")) for item in items)


class Fill(unittest.TestCase):
    def test_fill_and_write_without_tracing_are_refused(self):
        for operation in ("fill all", "write 20h bytes", "WRMSR(570,0); fill R0"):
            status, out, error = run("--setup", "R0 16 KB", "--operation", operation)
            self.assertEqual((status, out), (2, ""), operation)
            self.assertIn("TraceEn is 0", error)
            self.assertIn("`tracing`", error)
        traced = run("--setup", "R0 16 KB, tracing", "--operation", "fill all")
        self.assertEqual(traced[0], 0)


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

    def test_the_row_of_the_help(self):
        setup, operation, wanted = re.search(
            r'^  \$ msr_plan --setup "(.*)" --operation "(.*)"\n  (.*)$', run("--help")[1],
            re.M).groups()
        self.assertEqual(run("--setup", setup, "--operation", operation)[1].strip(), wanted)

    def test_each_procedure_runs_dry_and_on_the_model(self):
        lines = {"detect": 7, "enable": 4, "disable": 6, "flush": 6, "pause": 1, "resume": 4,
                 "save": 6, "restore": 4, "switch": 11, "restart": 6, "recover": 6, "pmi": 10}
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
        note = "(with neither os nor user, no code is traced)"
        self.assertEqual(run("enable", "tsc")[1].splitlines()[0], note)
        for words in ("os", "user tsc"):
            self.assertNotIn(note, run("enable", words)[1])

    def test_a_range_of_several_pages_is_not_reliable_on_some_models(self):
        note = "(on this model a single range of more than 4 KB is not reliable)"
        for cpu, size, is_told in (
                ("TigerLake", "64K", True), ("AlderLake-P", "8K", True),
                ("AlderLake-E", "4M", True), ("AlderLake-P", "4K", False),
                ("TigerLake", "128", False), ("Skylake-X", "64K", False)):
            out = run("--cpu", cpu, "enable", "user tsc", f"range={size}")[1]
            self.assertEqual(out.count(note), int(is_told), (cpu, size, out))
        self.assertNotIn(note, run("--cpu", "TigerLake", "enable", "user", "ring=4x64K")[1])

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
