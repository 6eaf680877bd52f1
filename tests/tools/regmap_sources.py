#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of the sources that regmap generates: the C header, the Rust module and the JSON.

    regmap_sources.py REGMAP REGMAP_CHECKS

Names and numbers are compared with the tables of the catalogue, and the checks with those of the
library, by REGMAP_CHECKS. Every comparison must also find a mutation.
"""

import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402

SPEC = pathlib.Path(__file__).resolve().parents[1] / "spec"
REGMAP, CHECKS = sys.argv[1:3]
WRITES = 10_000_000
C_FLAGS = ["-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wshadow", "-Werror"]

# The capabilities in the order of tests/tools/regmap_checks.cpp.
CAPS = ("cpuid_07h_0_ebx", "cpuid_0dh_1_eax", "cpuid_0dh_1_ecx", "cpuid_14h_0_eax",
        "cpuid_14h_0_ebx", "cpuid_14h_0_ecx", "cpuid_14h_1_eax", "cpuid_14h_1_ebx",
        "cpuid_80000008h_eax", "ia32_perf_capabilities", "ia32_vmx_misc")

C_GLUE = """
#include "ptspec.h"
static struct ptspec_caps caps_of(const uint64_t *words)
{
    struct ptspec_caps caps;
%s
    return caps;
}
uint32_t test_write(const uint64_t *words, uint64_t ctl, uint32_t in_vmx, uint32_t msr,
                    uint64_t value);
uint32_t test_write(const uint64_t *words, uint64_t ctl, uint32_t in_vmx, uint32_t msr,
                    uint64_t value)
{
    const struct ptspec_caps caps = caps_of(words);
    struct ptspec_state state;
    state.ctl = ctl;
    state.in_vmx_operation = (int)in_vmx;
    return (uint32_t)ptspec_write_check(&caps, &state, msr, value);
}
uint32_t test_entry(const uint64_t *words, uint64_t table, uint32_t index, uint64_t entry);
uint32_t test_entry(const uint64_t *words, uint64_t table, uint32_t index, uint64_t entry)
{
    const struct ptspec_caps caps = caps_of(words);
    return (uint32_t)ptspec_topa_entry_check(&caps, table, index, entry);
}
""" % "\n".join(f"    caps.{name} = ({'uint32_t' if name.startswith('cpuid') else 'uint64_t'})"
                f"words[{i}];" for i, name in enumerate(CAPS))

RUST_GLUE = """#![no_std]
#![deny(warnings)]
mod ptspec;
use ptspec::*;

/// The checks are constant expressions.
const NONE: Caps = Caps {
%s
};
const IDLE: State = State { ctl: 0, in_vmx_operation: false };
const _: () = assert!(matches!(ctl_check(&NONE, &IDLE, 0), Rule::REG_001));

unsafe fn caps_of(words: *const u64) -> Caps {
    let word = |i| unsafe { *words.add(i) };
    Caps {
%s
    }
}

#[no_mangle]
pub unsafe extern "C" fn test_write(
    words: *const u64,
    ctl: u64,
    in_vmx: u32,
    msr: u32,
    value: u64,
) -> u32 {
    let state = State { ctl, in_vmx_operation: in_vmx != 0 };
    write_check(unsafe { &caps_of(words) }, &state, msr, value) as u32
}

#[no_mangle]
pub unsafe extern "C" fn test_entry(words: *const u64, table: u64, index: u32, entry: u64) -> u32 {
    topa_entry_check(unsafe { &caps_of(words) }, table, index, entry) as u32
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
""" % ("\n".join(f"    {name}: 0," for name in CAPS),
       "\n".join(f"        {name}: word({i}){' as u32' if name.startswith('cpuid') else ''},"
                 for i, name in enumerate(CAPS)))

RUST_NAMES = """#![deny(warnings)]
mod ptspec;
fn main() {
    for rule in [ptspec::Rule::OUT_062, ptspec::Rule::NONE] {
        println!("{}: {}", rule.name(), rule.text());
    }
}
"""

C_NAMES = """
#include <stdio.h>
#include <stddef.h>
#include "ptspec.h"
int main(void)
{
    const enum ptspec_rule rules[] = {PTSPEC_RULE_OUT_062, PTSPEC_RULE_NONE};
    int i;
%s
    for (i = 0; i < 2; ++i) {
        printf("%%s: %%s\\n", ptspec_rule_name(rules[i]), ptspec_rule_text(rules[i]));
    }
    return 0;
}
"""

def generated(option):
    return subprocess.run([REGMAP, option, "-"], capture_output=True, check=True).stdout.decode()


def rows_of(name):
    with open(SPEC / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def compiler(*names):
    return next((found for found in map(shutil.which, names) if found), None)


# ------------------------------------------------------------------------------------- catalogue

def word_of(rows):
    """The C++ name of a register: `ia32_rtit_ctl`. Empty where it has only unnamed rows."""
    named = [row["cpp_name"].split("::") for row in rows if "::" in row["cpp_name"]]
    return named[0] if named else []


def registers():
    """The registers of registers.csv that have constants: (word, rows)."""
    found = {}
    for row in rows_of("registers.csv"):
        found.setdefault(row["register"], []).append(row)
    for register, rows in found.items():
        if not register.startswith("XSAVE_PT_STATE"):
            name = word_of(rows)
            yield ("TOPA_" if name[0] == "topa" else "") + name[1].upper(), register, rows


def mask_of(row):
    msb = 63 if row["msb"] in ("M-1", "63") else int(row["msb"])
    lsb = int(row["lsb"])
    return (1 << msb + 1) - (1 << lsb)


def locations(word, register, rows):
    """The constants that locate a register."""
    place, kind = rows[0]["address_hex"], rows[0]["kind"]
    if place in ("-", "UNCONFIRMED"):
        return {}
    if kind == "cpuid":
        leaf, subleaf, part = place.split(".")
        return {f"{word}_LEAF": int(leaf, 16), f"{word}_SUBLEAF": int(subleaf),
                f"{word}_REGISTER": ("EAX", "EBX", "ECX", "EDX").index(part)}
    if kind == "vmcs":
        return {f"{word}_VMCS_ENCODING": int(place, 16)}
    if kind in ("memory", "xsave"):
        return {f"{word}_OFFSET": int(place, 16)}
    if "+" in place:
        return {f"{word}_FIRST_MSR": int(place.split("+")[0], 16)}
    return {f"{register if word == 'IA32_RTIT_ADDR' else word}_MSR": int(place, 16)}


def expected_of_words():
    """The constants that registers.csv requires."""
    expected = {}
    for word, register, rows in registers():
        expected |= locations(word, register, rows)
        reserved = ignored = ones = 0
        for row in rows:
            name = row["cpp_name"].split("::")
            if row["lsb"] == "M":  # depends on MAXPHYADDR
                continue
            if name[-1] == "reserved":
                reserved |= mask_of(row)
            if len(name) == 3 and name[-1] not in ("reserved", "other"):
                expected[f"{word}_{name[-1]}_MASK"] = mask_of(row)
                expected[f"{word}_{name[-1]}_SHIFT"] = int(row["lsb"])
                ignored |= mask_of(row) if row["access"] == "w-ignored" else 0
                ones |= mask_of(row) if row["access"] == "forced-1" else 0
        expected[f"{word}_RESERVED_MASK"] = reserved
        if ignored:
            expected[f"{word}_WRITE_IGNORED_MASK"] = ignored
        if ones:
            expected[f"{word}_READS_1_MASK"] = ones
    return expected


def width_of(row, field):
    """The width of a field of one byte."""
    found = re.search(rf"\b{field}:(\d+)\.(\d)(?:\.\.(\d+)\.(\d))?", row["fields"], re.I)
    return int(found[4]) - int(found[2]) + 1 if found[3] else 1


def lengths_of(row, rows):
    """The lengths of a packet in bytes, and the payload sizes by the value of the field that
    selects them, None for a reserved value. Without such a field, no sizes."""
    text = row["total_length_bytes"]
    if text.startswith("as "):
        return lengths_of(next(one for one in rows if one["name"] == text[3:]), rows)
    listed = re.fullmatch(r"(\d+)\+\{(.*)\} for (\w+) \{(.*)\}", text)
    if listed:
        head = int(listed[1])
        sizes = dict(zip(map(int, listed[4].split(";")), map(int, listed[2].split(";"))))
        return sorted({head + size for size in sizes.values()}), [
            sizes.get(n) for n in range(1 << width_of(row, listed[3]))]
    either = re.fullmatch(r"(\d+) or (\d+) \((\w+)\)", text)
    if either:
        low, high = int(either[1]), int(either[2])
        return [low, high], [0, high - low]
    if ".." in text:
        low, high = map(int, text.split(".."))
        return list(range(low, high + 1)), []
    return [int(number) for number in re.findall(r"\d+", text.split("(")[0])], []


def expected_of_packets():
    """The constants that packets.csv requires. Of a field in pieces, the lowest bit."""
    expected, rows = {}, rows_of("packets.csv")
    for row in rows:
        struct, *fields = row["cpp_name"].split(";")
        name = f"PACKET_{struct.upper()}"
        opcode = row["opcode_bytes_hex"].split(" (")[0].split(" inside")[0].split()
        if opcode[-1].startswith("x"):
            opcode = opcode[:-1] * int(opcode[-1][1:])
        expected[f"{name}_OPCODE_VALUE"] = [int(pair.split("/")[0], 16) for pair in opcode]
        expected[f"{name}_OPCODE_MASK"] = [int(pair.split("/")[1], 16) for pair in opcode]
        lengths, sizes = lengths_of(row, rows)
        expected[f"{name}_MIN_BYTES"] = min(lengths)
        expected[f"{name}_MAX_BYTES"] = max(lengths)
        if sizes:
            expected[f"{name}_PAYLOAD_BYTES"] = [255 if n is None else n for n in sizes]
        places = [re.match(r"[^:]+:(\d+)\.(\d)", one) for one in row["fields"].split(";")]
        for field, place in zip(fields, places):
            if place and field not in ("reserved", "Leaf", ""):  # a leaf is part of the opcode
                at = 8 * int(place[1]) + int(place[2])
                key = f"{name}_{field}_SHIFT"
                expected[key] = min(at, expected.get(key, at))
    return expected


# ------------------------------------------------------------------------------------- generated

def constants_of_c(text):
    """The constants of the C header: numbers and lists of bytes."""
    found = {}
    for name, value in re.findall(r"^#define PTSPEC_(\w+) ((?:0x|\d|\{)(?:.|\\\n)*)$",
                                  text.replace("\\\n", ""), re.M):
        numbers = [int(number, 0) for number in re.findall(r"0x[0-9A-F]+|\d+", value)]
        found[name] = numbers if value.startswith("{") else numbers[0]
    return found


def constants_of_rust(text):
    found = {}
    for name, kind, value in re.findall(r"^pub const (\w+): ([^=]+) =\s+([^;]+);", text, re.M):
        numbers = [int(number, 0) for number in re.findall(r"0x[0-9A-F]+|\d+", value)]
        found[name] = numbers if kind.startswith("[") else numbers[0]
    return found


def rules_of_checks(text):
    """The rules that the generated checks return: those that a comparison must meet."""
    tables = re.split(r"^struct (?:ptspec_msr_row|MsrRow) ", text, flags=re.M)[1]
    found = re.findall(r"(?:PTSPEC_RULE_|Rule::)((?:REG|OUT)_\d+)", tables)
    return {name.replace("_", "-") for name in found}


def unlike(found, expected):
    return [(name, found.get(name), value) for name, value in expected.items()
            if found.get(name) != value]


class Scratch(unittest.TestCase):
    """A directory with the generated sources."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def ran(self, *command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        return done.stdout

    def compared(self, library, writes):
        """Exit status and output of a comparison with the library's checks."""
        done = subprocess.run([CHECKS, library, str(writes)], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout


class CHeader(Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = generated("--c")
        cls.gcc = compiler("gcc", "cc", "clang")
        cls.gxx = compiler("g++", "c++", "clang++")
        (cls.folder / "ptspec.h").write_text(cls.text)
        (cls.folder / "glue.c").write_text(C_GLUE)

    def cc(self):
        return self.gcc or self.skipTest("a C compiler")

    def library(self, text):
        """The checks of a header as a shared library."""
        (self.folder / "mutant").mkdir(exist_ok=True)
        (self.folder / "mutant" / "ptspec.h").write_text(text)
        (self.folder / "mutant" / "glue.c").write_text(C_GLUE)
        library = self.folder / "checks.so"
        self.ran(self.cc(), "-std=c99", *C_FLAGS, "-O1", "-shared", "-fPIC", "-o", library,
                 self.folder / "mutant" / "glue.c")
        return library

    def test_it_compiles_as_c99_c11_and_cpp(self):
        for language, standards, run in (("c", ("c99", "c11"), self.gcc),
                                         ("c++", ("c++11", "c++20"), self.gxx)):
            if not run:
                self.skipTest(f"a compiler of {language}")
            for standard in standards:
                source = self.folder / "only.c"
                source.write_text('#include "ptspec.h"\n#include "ptspec.h"\nint used;\n')
                self.ran(run, "-x", language, f"-std={standard}", *C_FLAGS, "-fsyntax-only", source)

    def test_it_needs_only_stdint_and_in_a_kernel_only_its_types(self):
        self.assertEqual(re.findall(r"^#include (.*)$", self.text, re.M),
                         ["<linux/types.h>", "<stdint.h>"])
        (self.folder / "linux").mkdir()
        (self.folder / "linux" / "types.h").write_text(
            "typedef unsigned char uint8_t;\ntypedef unsigned int uint32_t;\n"
            "typedef unsigned long long uint64_t;\n")
        self.ran(self.cc(), "-std=gnu11", *C_FLAGS, "-nostdinc", "-ffreestanding", "-D__KERNEL__",
                 f"-I{self.folder}", "-fsyntax-only", self.folder / "glue.c")

    def test_it_is_readable(self):
        self.assertLessEqual(max(map(len, self.text.splitlines())), 100)
        self.assertTrue(self.text.isascii())
        self.assertNotRegex(self.text, r"[ \t]\n|\n\n\n")
        self.assertEqual(self.text, generated("--c"))

    def test_every_name_has_the_prefix_and_is_unique(self):
        defined = re.findall(r"^#define (\w+)", self.text, re.M)
        static = defined.count("PTSPEC_STATIC_ASSERT")
        self.assertEqual(static, 3)
        self.assertEqual(len(defined) - static + 1, len(set(defined)))
        self.assertTrue(all(name.startswith("PTSPEC_") for name in defined))
        functions = re.findall(r"^static inline .*?(\w+)\(", self.text, re.M)
        self.assertTrue(all(name.startswith("ptspec_") for name in functions), functions)
        members = re.search(r"struct ptspec_caps \{(.*?)\}", self.text, re.S)[1]
        self.assertEqual(tuple(re.findall(r"(\w+);", members)), CAPS)

    def test_the_constants_of_words_are_those_of_the_catalogue(self):
        found, expected = constants_of_c(self.text), expected_of_words()
        self.assertGreater(len(expected), 500)
        self.assertEqual(unlike(found, expected), [])
        # Apart from encodings there are no others.
        fields = tuple(name[:-4] for name in expected if name.endswith("_MASK"))
        self.assertEqual(found.pop("VMCS_GUEST_IA32_RTIT_CTL_VMCS_ENCODING_HIGH"), 0x2815)
        others = [name for name in found if name not in expected and not name.startswith(
            ("PACKET_", "DEFAULT_", "TOPA_SMALLEST"))]
        self.assertEqual([name for name in others if not name.startswith(fields)], [])
        self.assertEqual([name for name in others if re.search("_(MASK|SHIFT|MSR)$", name)],
                         [])

    def test_encodings_have_the_numbers_of_the_manual(self):
        found = constants_of_c(self.text)
        for n in range(4):
            for number, name in enumerate(("OFF", "FILTER", "TRACE_STOP")):
                self.assertEqual(found[f"IA32_RTIT_CTL_ADDR{n}_CFG_{name}"], number)
        sizes = ("4K 8K 16K 32K 64K 128K 256K 512K 1M 2M 4M 8M 16M 32M 64M 128M").split()
        for number, name in enumerate(sizes):
            self.assertEqual(found[f"TOPA_ENTRY_Size_SIZE_{name}"], number)
        self.assertEqual((found["DEFAULT_MAXPHYADDR"], found["DEFAULT_LINEAR_BITS"],
                          found["TOPA_SMALLEST_REGION"]), (36, 48, 4096))

    def test_the_constants_of_packets_are_those_of_the_catalogue(self):
        found, expected = constants_of_c(self.text), expected_of_packets()
        self.assertGreater(len(expected), 32 * 4)
        self.assertEqual(unlike(found, expected), [])
        names = {name.rsplit("_OPCODE_VALUE", 1)[0] for name in found if "OPCODE_VALUE" in name}
        self.assertEqual(len(names), len(rows_of("packets.csv")))

    def test_a_wrong_constant_is_found(self):
        for expected, right, wrong in (
                (expected_of_words(), "CTL_TraceEn_SHIFT 0", "CTL_TraceEn_SHIFT 1"),
                (expected_of_words(), "CTL_MTCFreq_MASK 0x000000000003C000",
                 "CTL_MTCFreq_MASK 0x000000000003C001"),
                (expected_of_packets(), "CBR_OPCODE_VALUE {0x02, 0x03}",
                 "CBR_OPCODE_VALUE {0x02, 0x13}"),
                (expected_of_packets(), "TIP_MAX_BYTES 9", "TIP_MAX_BYTES 8")):
            self.assertEqual(self.text.count(right), 1, right)
            self.assertEqual(len(unlike(constants_of_c(self.text.replace(right, wrong)),
                                        expected)), 1, wrong)

    def test_names_texts_and_the_xsave_area(self):
        rows = [row for row in rows_of("registers.csv")
                if row["register"].startswith("XSAVE_PT_STATE")]
        fields = "\n".join(
            f"    PTSPEC_STATIC_ASSERT(offsetof(struct ptspec_xsave_pt_state, "
            f"{row['field'].lower()}) == 0x{row['address_hex']}, at_{row['address_hex']});"
            for row in rows if row["field"] != "Reserved")
        self.assertEqual(fields.count("offsetof"), 9)
        source, program = self.folder / "names.c", self.folder / "names"
        for standard in ("c99", "c11"):
            source.write_text(C_NAMES % (fields if standard == "c11" else ""))
            self.ran(self.cc(), f"-std={standard}", *C_FLAGS, "-o", program, source)
            self.assertEqual(self.ran(program),
                             "OUT-062: the base of an output region must be aligned to the "
                             "region's size\nnone: no rule is broken\n")

    def test_the_checks_are_those_of_the_library(self):
        status, out = self.compared(self.library(self.text), WRITES)
        self.assertEqual(status, 0, out)
        met = dict(line.split() for line in out.splitlines()[:-1])
        self.assertEqual(set(met), rules_of_checks(self.text) | {"none"})
        self.assertGreater(len(met), 40)
        self.assertGreater(min(map(int, met.values())), 50)

    def test_wrong_checks_are_found(self):
        def without_row(text, comment):
            return re.sub(rf"        /\* {comment} \*/\n        \{{.*?\}}\}},\n", "", text, count=1,
                          flags=re.S)
        for wrong in (
                without_row(self.text, "DisTNT"), without_row(self.text, "PacketByteCnt"),
                without_row(self.text, "TraceEn"),
                self.text.replace("0x000000000F780002ULL", "0x000000000F780000ULL"),
                self.text.replace("RANGECNT_MASK, 0x4,", "RANGECNT_MASK, 0x3,"),
                self.text.replace("ULL, 44, 0x7,", "ULL, 44, 0xF,"),
                self.text.replace("(state->ctl & value & ", "(state->ctl & "),
                self.text.replace("bits == 0 ? PTSPEC_DEFAULT_MAXPHYADDR", "bits == 1 ? 36"),
                self.text.replace("end && index == 0", "end && index == 1"),
                self.text.replace("in_vmx || !rows", "!in_vmx || !rows")):
            self.assertNotEqual(wrong, self.text)
            status, out = self.compared(self.library(wrong), 400_000)
            self.assertEqual(status, 1)
            self.assertRegex(out, r"(?m)^(WRMSR|entry) .*: \S+, not \S+; capabilities")


class RustModule(Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = generated("--rust")
        cls.rustc = compiler("rustc")
        (cls.folder / "ptspec.rs").write_text(cls.text)

    def compiled(self, kind, source, *options):
        """Compiles a crate that has the module; warnings are errors."""
        if not self.rustc:
            self.skipTest("rustc")
        path, output = self.folder / "crate.rs", self.folder / f"crate.{kind}"
        path.write_text(source)
        self.ran(self.rustc, "--edition", "2021", "--crate-type", kind, *options, "-o", output,
                 path)
        return output

    def test_the_module_alone_is_a_crate_without_warnings(self):
        self.compiled("lib", self.text, "-Dwarnings", "--emit=metadata")

    def test_names_and_texts(self):
        self.assertEqual(self.ran(self.compiled("bin", RUST_NAMES)),
                         "OUT-062: the base of an output region must be aligned to the "
                         "region's size\nnone: no rule is broken\n")

    def test_it_is_readable(self):
        self.assertLessEqual(max(map(len, self.text.splitlines())), 100)
        self.assertTrue(self.text.isascii())
        self.assertNotRegex(self.text, r"[ \t]\n|\n\n\n|\bstd::|\bunsafe\b")
        self.assertEqual(self.text, generated("--rust"))

    def test_the_constants_are_those_of_the_catalogue_and_of_the_c_header(self):
        found = constants_of_rust(self.text)
        self.assertEqual(unlike(found, expected_of_words() | expected_of_packets()), [])
        self.assertEqual(found, constants_of_c(generated("--c")))
        wrong = self.text.replace("CTL_TraceEn_SHIFT: u32 = 0;", "CTL_TraceEn_SHIFT: u32 = 1;")
        self.assertEqual(unlike(constants_of_rust(wrong), expected_of_words()),
                         [("IA32_RTIT_CTL_TraceEn_SHIFT", 1, 0)])

    def test_the_checks_are_those_of_the_library(self):
        options = ("-Copt-level=2", "-Cpanic=abort")
        status, out = self.compared(self.compiled("cdylib", RUST_GLUE, *options), WRITES)
        self.assertEqual(status, 0, out)
        self.assertEqual({line.split()[0] for line in out.splitlines()[:-1]},
                         rules_of_checks(self.text) | {"none"})
        for right, wrong in (("bits: 0x000000000F780002", "bits: 0x000000000F780000"),
                             ("end && index == 0", "end && index == 1")):
            self.assertEqual(self.text.count(right), 1)
            (self.folder / "ptspec.rs").write_text(self.text.replace(right, wrong))
            self.addCleanup((self.folder / "ptspec.rs").write_text, self.text)
            status, out = self.compared(self.compiled("cdylib", RUST_GLUE, *options), 400_000)
            self.assertEqual(status, 1, wrong)


class Json(Scratch):
    """The JSON, whose tables the test evaluates independently of the generated functions."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = generated("--json")
        cls.all = json.loads(cls.text)
        cls.words = {word["cpp_name"]: word for word in cls.all["words"]}

    def test_json_tool_accepts_it(self):
        path = self.folder / "ptspec.json"
        path.write_text(self.text)
        self.ran(sys.executable, "-m", "json.tool", path, self.folder / "again.json")
        self.assertEqual(json.loads((self.folder / "again.json").read_text()), self.all)
        self.assertEqual(self.text, generated("--json"))
        self.assertLessEqual(set(self.all), {"generator", "words", "packets", "rules",
                                             "write_checks"})

    def unlike(self, words):
        """The rows of registers.csv that differ."""
        access = {"rw": "read/write", "ro": "read only", "w-ignored": "write ignored",
                  "forced-1": "reads 1"}
        wrong = []
        for row in rows_of("registers.csv"):
            name = row["cpp_name"].split("::")
            if len(name) < 3 or name[2] in ("reserved", "other"):
                continue
            word = words[f"ptspec::{name[0]}::{name[1]}"]
            found = next((one for one in word["rows"] if one["name"] == name[2]), {})
            base = 8 * int(row["address_hex"], 16) if name[1] == "xsave_pt_state" else 0
            msb = 63 if row["msb"] == "M-1" else int(row["msb"])
            if (found.get("msb"), found.get("lsb"), found.get("access")) != (
                    base + msb, base + int(row["lsb"]), access[row["access"]]):
                wrong.append(row["cpp_name"])
            if (row["msb"] == "M-1") != found.get("reserved_from_maxphyaddr", False):
                wrong.append(row["cpp_name"])
        return wrong

    def test_fields_and_places_are_those_of_the_catalogue(self):
        self.assertEqual(self.unlike(self.words), [])
        self.assertEqual(self.unlike(json.loads(json.dumps(self.words).replace(
            '"name": "PSBFreq", "msb": 27', '"name": "PSBFreq", "msb": 28'))),
            ["reg::ia32_rtit_ctl::PSBFreq"])
        found = {f"{one['name']}_{one['kind']}": one["number"]
                 for word in self.all["words"] for one in word["locations"]}
        for word, register, rows in registers():
            self.assertEqual(unlike(found, locations(word, register, rows)), [])

    def test_rows_tile_every_word(self):
        for word in self.all["words"]:
            bit = 0
            for row in word["rows"]:
                self.assertEqual(row["lsb"], bit, word["name"])
                bit = row["msb"] + 1
            self.assertEqual(bit, word["bits"], word["name"])

    def test_packets_are_those_of_the_catalogue(self):
        rows = rows_of("packets.csv")
        found = {packet["name"]: packet for packet in self.all["packets"]}
        self.assertEqual(list(found), [row["name"] for row in rows])
        expected = expected_of_packets()
        answers = {"y": "yes", "n": "no", "UNCONFIRMED": "unconfirmed"}
        for row in rows:
            packet = found[row["name"]]
            name = f"PACKET_{row['cpp_name'].split(';')[0].upper()}"
            self.assertEqual(packet["opcode_value"], expected[f"{name}_OPCODE_VALUE"])
            self.assertEqual(packet["opcode_mask"], expected[f"{name}_OPCODE_MASK"])
            lengths, sizes = lengths_of(row, rows)
            self.assertEqual((packet["lengths"], packet["payload_sizes"]), (lengths, sizes), name)
            self.assertEqual(packet["binds_to_ip"], row["binds_to_IP"], name)
            self.assertEqual(packet["in_psb_plus"], answers[row["allowed_in_psb_plus"]], name)
            self.assertEqual(packet["cyc_eligible"], answers[row["cyc_eligible"]], name)
            self.assertEqual(packet["only_in_block"], "inside a block only" in
                             row["opcode_bytes_hex"])

    def test_every_rule_has_a_sentence_and_an_entry_of_the_catalogue(self):
        catalogue = "".join(path.read_text(encoding="utf-8") for path in SPEC.glob("*.md"))
        rules = {rule["id"]: rule["text"] for rule in self.all["rules"]}
        self.assertGreaterEqual(set(rules), set(re.findall(
            '"rule": "(.*?)"', json.dumps(self.all["write_checks"]))))
        self.assertEqual(len(rules), len(self.all["rules"]))
        for name, text in rules.items():
            self.assertIn(name, catalogue)
            self.assertGreater(len(text.split()), 2)
        self.assertEqual(rules["OUT-065"], "a ToPA entry with END must not have INT or STOP")

    def test_the_tables_refuse_what_the_manual_does(self):
        """Worked cases, evaluated from the tables alone."""
        tables = self.all["write_checks"]
        pt, maximum = {"cpuid_07h_0_ebx": 1 << 25}, {
            "cpuid_07h_0_ebx": 1 << 25, "cpuid_14h_0_eax": 1, "cpuid_14h_0_ebx": 0x3FF,
            "cpuid_14h_0_ecx": 0xF, "cpuid_14h_1_eax": 0x249 << 16 | 2,
            "cpuid_14h_1_ebx": 0x3F << 16 | 0x1FFF}

        def met(caps, row):
            of = row["capability"]
            if of is None:
                return False
            mask = int(of["mask"], 16)
            return (caps.get(of["word"], 0) & mask) // (mask & -mask) >= row["least"]

        def rule(caps, value):
            for row in tables["msrs"]:
                here = row["first"] <= 0x570 <= row["last"] and not row["in_vmx"]
                if here and not met(caps, row):
                    return row["rule"]
            for late in (False, True):
                for row in tables["bits"]:
                    if (row["msr"] == 0x570 and row["late"] == late and
                            value & int(row["bits"], 16) and not value & int(row["without"], 16) and
                            not met(caps, row)):
                        return row["rule"]
                for row in () if late else tables["encodings"]:
                    field, of = int(row["field"], 16), row["capability"]
                    listed = int(row["listed"], 16)
                    if of:
                        mask = int(of["mask"], 16)
                        listed |= (caps.get(of["word"], 0) & mask) // (mask & -mask)
                    if not listed >> (value & field) // (field & -field) & 1:
                        return row["rule"]
            return None

        for caps, value, broken in (
                ({}, 0x2001, "REG-001"), (pt, 0x2001, "REG-025"), (maximum, 0x2001, None),
                (maximum, 1 << 18, "REG-044"), (pt, 0x100, "REG-024"), (pt, 0x2, "REG-027"),
                (maximum, 3 << 14, None), (maximum, 1 << 14, "REG-028"),
                (maximum, 2 << 36, None), (maximum, 3 << 36, "REG-037"),
                (maximum, 1 << 40, "REG-037"), (maximum, 0x1, None),
                (dict(maximum, cpuid_14h_0_ebx=0), 0x1, "REG-040")):
            self.assertEqual(rule(caps, value), broken, (caps, hex(value)))


if __name__ == "__main__":
    skips.main(sys.argv[:1])
