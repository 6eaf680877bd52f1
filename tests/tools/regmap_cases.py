#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of the test cases of WRMSR that regmap generates, and of the runner in examples/msr_cases.

    regmap_cases.py REGMAP REGMAP_CASES

The rows are compared with registers.csv and registers.md. REGMAP_CASES executes the runner on the
model of every preset, where all rows must pass, and on models with defects, where those rows must
fail that cite the broken rules.
"""

import csv
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = ROOT / "tests" / "spec"
RUNNER = ROOT / "examples" / "msr_cases" / "run_msr_cases.c"
REGMAP, MODEL = sys.argv[1:3]
RANDOM_PROCESSORS = 60
MAX_ARRAY = 30_000
FLAGS = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]

# The functions of kvm-unit-tests that kvm_unit_tests.c calls.
KVM_UNIT_TESTS = {
    "libcflat.h": "#include <stdint.h>\n#include <stdbool.h>\nint report_summary(void);\n"
                  "bool report(bool pass, const char *format, ...);\n",
    "alloc_page.h": "void *alloc_pages(unsigned order);\n",
    "processor.h": "struct cpuid { uint32_t a, b, c, d; };\n"
                   "struct cpuid raw_cpuid(uint32_t function, uint32_t index);\n"
                   "int rdmsr_safe(uint32_t index, uint64_t *value);\n"
                   "int wrmsr_safe(uint32_t index, uint64_t value);\n",
    "vm.h": "void *setup_vm(void);\nunsigned long virt_to_phys(const void *virt);\n",
}

ROW = re.compile(r"\{(0x[0-9A-F]+), ([^,{}]+), (0x[0-9A-F]+), (\w+), (\w+), "
                 r"PTSPEC_(FAULTS|READS|ABSENT),\s+(\w+), (\w+),\s+PTSPEC_(REG_\d+),"
                 r"\s+\{([^{}]*)\}\},\n")
GP, READS = "must raise #GP", "must not fault, then read "

# Defect, processor -> the rules that the failing tests cite. tests/tools/regmap_cases.cpp
DEFECTS = {
    ("reserved", "Skylake-X"): "REG-044 REG-052 REG-070 REG-074",
    ("features", "Skylake-X"): "REG-026 REG-032 REG-033 REG-034 REG-035 REG-036 REG-054",
    ("features", "Broadwell-ULT"): "REG-026 REG-027 REG-030 REG-032 REG-033 REG-034 REG-035 "
                                   "REG-036 REG-054 REG-055",
    ("features", "P-SRO"): "REG-024 REG-026 REG-031 REG-032 REG-033 REG-034 REG-035 REG-036 "
                           "REG-054",
    ("enables", "Broadwell-ULT"): "REG-025 REG-040",
    ("encodings", "Skylake-X"): "REG-028 REG-037",
    ("unlocked", "Skylake-X"): "REG-004",
    ("unlocked", "Broadwell-ULT"): "REG-004",
    ("changes", "Skylake-X"): "REG-021",
    ("clears", "Broadwell-ULT"): "REG-022",
    ("stays", "Skylake-X"): "REG-022",
    ("canonical", "Skylake-X"): "REG-076",
    ("canonical", "SapphireRapids"): "REG-076",
    ("beyond", "Broadwell-ULT"): "REG-070",
    ("present", "Skylake-X"): "REG-014",
    ("present", "P-FAB"): "REG-012 REG-013 REG-014",
    ("present", "P-NONE"): "REG-001",
    ("faulting", "P-NONE"): "REG-001",
}


def rows_of_catalogue():
    """The rows of registers.csv about the MSRs that CPUID enumerates: (MSR, row)."""
    with open(SPEC / "registers.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if re.fullmatch("5[678][0-9A-F]", row["address_hex"]):
                yield int(row["address_hex"], 16), row


def bits_of(row):
    """The lowest bit and the number of bits. Of an address, with the least MAXPHYADDR, 32."""
    lsb = 32 if row["lsb"] == "M" else int(row["lsb"])
    msb = 31 if row["msb"] == "M-1" else int(row["msb"])
    return lsb, msb - lsb + 1


class Row:
    def __init__(self, match, macros):
        whole = [int(part, 0) for part in match.group(1, 3, 4, 5, 7, 8)]
        self.msr, self.ctl = whole[:2]
        self.value, self.reads = whole[2] << 32 | whole[3], whole[4] << 32 | whole[5]
        self.flags, self.expected = match[2], match[6]
        self.rule = match[9].replace("_", "-")
        self.conditions = [condition(one, macros)
                           for one in re.findall(r"PTSPEC_\w+(?:\([^)]*\))?", match[10])]


def condition(text, macros):
    """(number, mask, least, most) of a condition."""
    name, *arguments = re.findall(r"\w+", text)
    parameters, body = macros[name]
    for parameter, argument in zip(parameters, arguments):
        body = re.sub(rf"\({parameter}\)", argument, body)
    number, *bounds = body.strip("{}").split(", ")
    bounds = [eval(re.sub(r"(?<=[0-9A-F])U", "", bound), {}) for bound in bounds]
    return number, *bounds


def cases_of(text):
    lines = text.replace("\\\n", "")
    macros = {name: (re.findall(r"\w+", parameters or ""), body) for name, parameters, body in
              re.findall(r"^#define (PTSPEC_\w+)(\([\w, ]*\))? +(\{.*\})$", lines, re.M)}
    return [Row(match, macros) for match in ROW.finditer(text)]


def tests_in(output):
    """The tests of TAP: (passed, name). The plan must fit."""
    found = re.findall(r"^(not )?ok \d+ - (.*)$", output, re.M)
    plan = re.search(r"^1\.\.(\d+)$", output, re.M)
    assert plan and int(plan[1]) == len(found), output[-300:]
    return [(not bad, name) for bad, name in found]


def failed_rules(tests):
    return {re.search(r"; (REG-\d+): ", name)[1] for passed, name in tests
            if not passed and not name.startswith("not restored: ")}


class Cases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        done = subprocess.run([REGMAP, "--cases", str(cls.folder / "msr_cases.h")],
                              capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr
        cls.text = (cls.folder / "msr_cases.h").read_text()
        cls.rows = cases_of(cls.text)
        cls.cc = next((found for found in map(shutil.which, ("gcc", "cc", "clang")) if found), None)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def compiled(self, *command):
        if not command[0]:
            self.skipTest("a C compiler")
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)

    def library(self, text=None):
        """The runner with these test cases as a shared library."""
        folder = self.folder
        if text is not None:
            folder = self.folder / "changed"
            folder.mkdir(exist_ok=True)
            (folder / "msr_cases.h").write_text(text)
        path = folder / "cases.so"
        self.compiled(self.cc, "-std=c89", *FLAGS, "-O1", "-shared", "-fPIC", f"-I{folder}", RUNNER,
                      "-o", path)
        return path

    def run_on(self, library, *arguments, status=0):
        done = subprocess.run([MODEL, str(library), *arguments], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (status, ""),
                         (arguments, done.stdout[-500:]))
        return tests_in(done.stdout)

    # ------------------------------------------------------------------------------ the file

    def test_it_is_readable(self):
        self.assertLessEqual(max(map(len, self.text.splitlines())), 100)
        self.assertTrue(self.text.isascii())
        self.assertNotRegex(self.text, r"[ \t]\n|\n\n\n|#include|//")
        self.assertEqual(subprocess.run([REGMAP, "--cases", "-"], capture_output=True,
                                        text=True).stdout, self.text)

    def test_all_rows_are_in_arrays_of_at_most_30_KB(self):
        arrays = re.findall(r"^static const struct ptspec_case (\w+)\[\] = \{\n(.*?)^\};$",
                            self.text, re.M | re.S)
        self.assertGreater(len(arrays), 8)
        for name, body in arrays:
            self.assertLessEqual(len(body), MAX_ARRAY, name)
            self.assertIn(f'{{"{name.removeprefix("ptspec_cases_")}", {name},', self.text)
        stated = int(re.search(r"test cases of WRMSR, (\d+) rows", self.text)[1])
        self.assertEqual(stated, len(self.rows))
        self.assertEqual(stated, sum(len(ROW.findall(body)) for _, body in arrays))
        keys = [(row.msr, row.ctl, row.value, row.flags, row.expected, *row.conditions)
                for row in self.rows]
        self.assertEqual([key for key in keys if keys.count(key) > 1], [])

    def test_it_and_the_runner_compile_as_c89_c11_and_cpp(self):
        cxx = next((found for found in map(shutil.which, ("g++", "c++", "clang++")) if found), None)
        for run, language, standards in ((self.cc, "c", ("c89", "c11")),
                                         (cxx, "c++", ("c++98", "c++20"))):
            for standard in standards:
                for more in ((), ("-ffreestanding",)):
                    self.compiled(run, "-x", language, f"-std={standard}", "-pedantic", "-Wall",
                                  "-Wextra", "-Werror", *more, f"-I{self.folder}",
                                  "-fsyntax-only", RUNNER)
        self.assertLessEqual(len(RUNNER.read_text().splitlines()), 200)

    def test_it_compiles_in_kvm_unit_tests(self):
        folder = self.folder / "kvm_unit_tests"
        folder.mkdir()
        for name, text in KVM_UNIT_TESTS.items():
            (folder / name).write_text(text)
        for width in ("-m64", "-m32") if platform.machine() == "x86_64" else ("-O1",):
            for source in (RUNNER, RUNNER.with_name("kvm_unit_tests.c")):
                self.compiled(self.cc, "-std=gnu99", "-ffreestanding", "-Wall", "-Werror", width,
                              "-Wmissing-prototypes", f"-I{folder}", f"-I{self.folder}",
                              "-fsyntax-only", source)

    def test_it_compiles_as_a_module_of_linux(self):
        kernels = sorted(pathlib.Path("/lib/modules").glob("*/build"))
        if not kernels or not shutil.which("make") or platform.machine() != "x86_64":
            self.skipTest("Linux headers")
        folder = self.folder / "module"
        shutil.copytree(RUNNER.parent, folder)
        shutil.copy(self.folder / "msr_cases.h", folder)
        kbuild = re.search(r"(obj-m.*)\n \*   (pt_msr-y.*)\n",
                           (folder / "linux_module.c").read_text())
        (folder / "Kbuild").write_text("\n".join(kbuild.groups()) + "\n")
        done = subprocess.run(["make", "-C", kernels[-1], f"M={folder}", "modules"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotRegex(done.stdout + done.stderr, r"warning: (?!the compiler differs)")
        self.assertTrue((folder / "pt_msr.ko").exists())

    # ------------------------------------------------------------------------------ catalogue

    def found(self, expected, **wanted):
        return [row for row in self.rows if row.expected == expected and
                all(getattr(row, name) == value for name, value in wanted.items())]

    def test_each_reserved_bit_has_a_row(self):
        bits = {(msr, lsb + i) for msr, row in rows_of_catalogue()
                for lsb, count in [bits_of(row)] for i in range(count)
                if row["access"] == "reserved-must-be-0"}
        self.assertGreater(len(bits), 19 + 40 + 5 + 7)
        for msr, bit in bits:
            self.assertTrue(self.found("FAULTS", msr=msr, value=1 << bit, ctl=0), (hex(msr), bit))
        # A bit that faults on each processor is reserved.
        always = {(row.msr, row.value.bit_length() - 1) for row in self.rows
                  if row.expected == "FAULTS" and row.ctl == 0 and
                  row.value & row.value - 1 == 0 and
                  not self.found("READS", msr=row.msr, value=row.value, ctl=0)}
        variable = {one for one in bits if one[0] == 0x560 and one[1] >= 32}
        ranges = {one for one in always if one[0] >= 0x580}
        configurations = {one for one in always if one[0] == 0x570 and 32 <= one[1] < 48}
        self.assertEqual(always - ranges - configurations, bits - variable)

    def test_each_encoding_and_each_bit_of_a_field_has_a_row(self):
        checked = 0
        for msr, row in rows_of_catalogue():
            if row["access"] == "reserved-must-be-0" or row["field"] == "TraceEn" or msr >= 0x580:
                continue
            lsb, count = bits_of(row)
            values = list(range(1, 1 << count) if count <= 5 else [1 << i for i in range(count)])
            if count > 5 and row["msb"] != "M-1":
                values.append((1 << count) - 1)
            for number in values:
                of = {"msr": msr, "value": number << lsb, "ctl": 0}
                read = {"w-ignored": 0, "forced-1": 0x7F}.get(row["access"], of["value"])
                read |= 0x7F if msr == 0x561 else 0
                is_illegal = row["field"].endswith("_CFG") and number > 2
                self.assertEqual({one.reads for one in self.found("READS", **of)},
                                 set() if is_illegal else {read}, of)
                if is_illegal:
                    self.assertTrue(self.found("FAULTS", **of), of)
                checked += 1
        self.assertGreater(checked, 200)

    def test_the_conditions_of_a_field_are_those_of_the_catalogue(self):
        checked = 0
        for msr, row in rows_of_catalogue():
            bit = re.fullmatch(r"CPUID\.(07|14)H\.0:(EBX|ECX)\[(\d+)\]=1", row["present_if"])
            if not bit or row["access"] != "rw" or msr not in (0x570, 0x571) or (
                    row["field"] == "TraceEn"):
                continue
            mask = 1 << int(bit[3])
            number = f"PTSPEC_NUMBER_CPUID_{bit[1]}H_0_{bit[2]}"
            value = 1 << bits_of(row)[0]
            for one in self.found("READS", msr=msr, value=value, ctl=0):
                self.assertIn((number, mask, mask, mask), one.conditions, row["field"])
            lacking = [one for one in self.found("FAULTS", msr=msr, value=value, ctl=0)
                       if (number, mask, 0, 0) in one.conditions]
            self.assertEqual(len(lacking), 0 if bit[1] == "07" else 1, row["field"])
            checked += 1
        self.assertGreater(checked, 15)

    def test_the_bounds_of_addresses(self):
        low = (1 << 47) - 1
        for row in self.rows:
            if row.ctl or row.msr not in (0x560, *range(0x580, 0x588)) or row.rule == "REG-014":
                continue
            bounds = {one[0].rsplit("_", 1)[-1]: one[2:] for one in row.conditions}
            least, most = bounds.get("BITS" if row.msr >= 0x580 else "MAXPHYADDR", (0, 255))
            if row.msr == 0x560 and row.value & 0x7F == 0:
                needed = row.value.bit_length()
            elif row.msr >= 0x580:
                # With 57 bits it is open what the processor does while CR4.LA57 is 0.
                needed = min(row.value, ~row.value & (1 << 64) - 1).bit_length() + 1
                self.assertTrue(row.expected == "FAULTS" or needed <= 48, hex(row.value))
            else:
                continue
            if row.expected == "FAULTS":
                self.assertEqual((least, most), (0, needed - 1), hex(row.value))
            elif needed > 1:
                self.assertEqual((least, most), (needed, 255), hex(row.value))
        for msr in range(0x580, 0x588):
            for value in (1 << 47, ~low - 1, 1 << 56, ~(1 << 56), 1 << 63):
                self.assertTrue(self.found("FAULTS", msr=msr, value=value % (1 << 64), ctl=0))
            for value in (0, low, ~low, -1):
                self.assertTrue(self.found("READS", msr=msr, value=value % (1 << 64), ctl=0))

    def test_reserved_bits_have_rows_only_where_all_features_are_known(self):
        unknown = {"EBX": 0, "ECX": 0}
        with open(SPEC / "registers.csv", newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if re.fullmatch(r"14\.0\.E[BC]X", row["address_hex"]) and (
                        row["field"].startswith("Reserved")):
                    unknown[row["address_hex"][-3:]] |= (
                        (2 << int(row["msb"])) - (1 << int(row["lsb"])))
        self.assertTrue(all(unknown.values()))
        known = {(f"PTSPEC_NUMBER_CPUID_14H_0_{name}", mask, 0, 0)
                 for name, mask in unknown.items()}
        count = 0
        for row in self.rows:
            is_reserved = row.rule in ("REG-044", "REG-052", "REG-074") or (
                row.rule == "REG-070" and row.value & 0x7F)
            if row.expected == "FAULTS" and is_reserved:
                self.assertLessEqual(known, set(row.conditions), (hex(row.msr), hex(row.value)))
                count += 1
            elif row.rule != "REG-037":
                self.assertFalse(known & set(row.conditions), (hex(row.msr), hex(row.value)))
        self.assertGreater(count, 100)

    def test_while_trace_en_is_1_each_msr_has_rows(self):
        msrs = {msr for msr, _ in rows_of_catalogue()}
        self.assertEqual(len(msrs), 13)
        for scheme in (0x2001, 0x2101):
            self.assertEqual({row.msr for row in self.rows if row.ctl == scheme}, msrs)
        self.assertEqual({row.msr for row in self.found("ABSENT")}, msrs)
        self.assertEqual({row.ctl for row in self.rows}, {0, 0x2001, 0x2101})

    def test_no_row_lets_output_leave_the_given_memory(self):
        enabled = 0
        for row in self.rows:
            ctl = row.value if row.msr == 0x570 else 0
            sets = (row.ctl | ctl) & 1
            enabled += sets
            self.assertEqual("PTSPEC_OUTPUT" in row.flags, bool(sets))
            if ctl & 1:
                self.assertEqual(ctl & 0x40, 0, "FabricEn")
                if row.ctl & 1:
                    self.assertEqual((ctl ^ row.ctl) & 0x100, 0, "ToPA")
            if row.ctl & 1 and row.msr == 0x560:
                self.assertIn("PTSPEC_IN_PAGE", row.flags)
                self.assertLess(row.value, 0x1000)
            if row.ctl & 1 and row.msr == 0x561:
                self.assertEqual(row.value, 0x7F)
        self.assertGreater(enabled, 300)

    def test_rules_and_sentences_are_those_of_the_catalogue(self):
        page = (SPEC / "registers.md").read_text(encoding="utf-8")
        sentences = dict(re.findall(r'^- (REG-\d+) "(.*?)" ', page, re.M))
        spelled = re.sub(r'" \\\n    "', "", self.text)
        cited = dict(re.findall(r'^#define PTSPEC_REG_\d+ (?:\\\n    )?"(REG-\d+): (.*)"$', spelled,
                                re.M))
        self.assertEqual(set(cited), {row.rule for row in self.rows})
        for rule, sentence in cited.items():
            self.assertRegex(page, rf"(?m)^- {rule} ")
            if rule in sentences and rule != "REG-053":
                self.assertEqual(sentence, sentences[rule])

    def test_the_worked_cases_of_the_catalogue_agree(self):
        page = (SPEC / "registers.md").read_text(encoding="utf-8")
        library, outcomes, compared = self.library(), {}, 0
        for profile, name, value, outcome in re.findall(
                r"^\| RC-\d+ \| (P-\w+) \| cold state \| WRMSR \w+ \((\w+)\) = (\w+) \| (.*?) \|",
                page, re.M):
            if profile not in outcomes:
                outcomes[profile] = [test for _, test in self.run_on(library, profile)]
            begin = f"WRMSR IA32_RTIT_{name} = {value}H "
            for test in outcomes[profile]:
                if test.startswith(begin) and not test[len(begin):].startswith("after"):
                    read = re.search(r"reads back (\w+)", outcome)
                    want = f"{READS}{read[1]}H" if read else GP
                    self.assertEqual(outcome.startswith("#GP"), not read)
                    self.assertTrue(test[len(begin):].startswith(want), (test, outcome))
                    compared += 1
        self.assertGreater(compared, 20)

    # ------------------------------------------------------------------------------ the runner

    def test_every_row_passes_on_every_preset(self):
        library, seen = self.library(), set()
        presets = subprocess.run([MODEL, "--list"], capture_output=True, text=True,
                                 check=True).stdout.split()
        self.assertGreater(len(presets), 30)
        for preset in presets:
            tests = self.run_on(library, preset)
            self.assertEqual([name for passed, name in tests if not passed], [], preset)
            self.assertGreater(len(tests), 13 if preset == "P-NONE" else 200)
            seen |= {name for _, name in tests}
        for number in range(RANDOM_PROCESSORS):
            tests = self.run_on(library, f"random:{number}")
            self.assertEqual([name for passed, name in tests if not passed], [], number)
            seen |= {name for _, name in tests}
        # None has conditions that no processor meets.
        executed = {re.sub(r"WRMSR \w+ = (\w+)H .*; (REG-\d+): .*", r"\1 \2", name)
                    for name in seen}
        self.assertEqual({f"{row.value:X} {row.rule}" for row in self.rows
                          if "IN_PAGE" not in row.flags} - executed, set())

    def test_a_defect_is_found_by_its_rule(self):
        library = self.library()
        for (defect, preset), rules in DEFECTS.items():
            tests = self.run_on(library, preset, defect, status=1)
            self.assertEqual(failed_rules(tests), set(rules.split()), (defect, preset))
        for defect in ("refuses", "accepts", "faulting"):
            tests = self.run_on(library, "Skylake-X", defect, status=1)
            self.assertGreater(len(failed_rules(tests)), 15, defect)
            self.assertGreater(sum(not passed for passed, _ in tests), 300, defect)

    def test_what_the_rules_leave_open_is_no_failure(self):
        library = self.library()
        for preset in ("Skylake-X", "Broadwell-ULT", "P-FUT"):
            for variation in ("stale", "own"):
                tests = self.run_on(library, preset, variation)
                self.assertEqual(len(tests), len(self.run_on(library, preset)))

    def test_a_failing_line_says_what_was_expected_and_seen(self):
        tests = self.run_on(self.library(), "Skylake-X", "changes", status=1)
        self.assertIn((False, "WRMSR IA32_RTIT_CTL = 2005H after IA32_RTIT_CTL = 2001H must raise "
                              "#GP; SEEN: no fault, read 2001H before and 2005H after; REG-021: "
                              "while TraceEn stays 1, the bits of IA32_RTIT_CTL must not change"),
                      tests)
        tests = self.run_on(self.library(), "Broadwell-ULT", "clears", status=1)
        self.assertIn((False, "WRMSR IA32_RTIT_CTL = 2104H after IA32_RTIT_CTL = 2101H must not "
                              "fault, then read 2104H; SEEN: #GP, read 2101H before and 2101H "
                              "after; REG-022: a write that clears TraceEn may change every other "
                              "field"), tests)
        tests = self.run_on(self.library(), "Skylake-X", "faulting", status=1)
        self.assertIn((False, "WRMSR IA32_RTIT_CR3_MATCH = 1H must raise #GP; SEEN: #GP, but a new "
                              "value, read 0H before and 1H after; REG-074: bits 4:0 of "
                              "IA32_RTIT_CR3_MATCH must be 0"), tests)
        tests = self.run_on(self.library(), "P-NONE", "present", status=1)
        self.assertIn((False, "WRMSR IA32_RTIT_STATUS = 0H must raise #GP, and RDMSR too; SEEN: no "
                              "fault, read 0H before and 0H after; REG-001: an IA32_RTIT MSR must "
                              "not be accessed on a processor without Intel PT"), tests)
        tests = self.run_on(self.library(), "Skylake-X", "refuses", status=1)
        self.assertTrue(any("; NOT EXECUTED: a WRMSR that prepares it faults; REG-004: " in name
                            for passed, name in tests if not passed))

    def test_without_memory_or_while_pt_is_in_use_it_says_so(self):
        library = self.library()
        tests = self.run_on(library, "Skylake-X", "no-memory")
        self.assertRegex(tests[-1][1], "rows left out because target_pages is null: [1-9A-F]+H")
        self.assertFalse(any(" after " in name for _, name in tests))
        self.assertEqual(self.run_on(library, "Skylake-X", "tracing", status=1),
                         [(False, "nothing is executed: Intel PT is in use, TraceEn is 1")])
        tests = self.run_on(library, "Skylake-X", "stays", status=1)
        self.assertRegex(tests[-1][1], "the tests end: TraceEn stays 1 .*REG-022")

    def test_a_changed_row_is_noticed(self):
        change = self.text.replace("0x00000004, PTSPEC_READS, 0x00000000, 0x00000004",
                                   "0x00000004, PTSPEC_READS, 0x00000000, 0x0000000C", 1)
        self.assertNotEqual(change, self.text)
        tests = self.run_on(self.library(change), "Skylake-X", status=1)
        self.assertEqual(sum(not passed for passed, _ in tests), 1)
        change = self.text.replace("0x00000010, PTSPEC_FAULTS", "0x00000010, PTSPEC_ABSENT", 1)
        self.assertNotEqual(change, self.text)
        tests = self.run_on(self.library(change), "Skylake-X", status=1)
        self.assertEqual(sum(not passed for passed, _ in tests), 1)


if __name__ == "__main__":
    skips.main(sys.argv[:1])
