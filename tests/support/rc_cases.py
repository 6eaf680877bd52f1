#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Parses the worked cases RC of registers.md, by the grammar of notation.md, section 1.

    rc_cases.py [SPEC]        prints the parsed rows
    rc_cases.py --self-test   breaks the notation in many ways; each change must be rejected

A cell that the notation does not describe raises a `NotationError` that names the case. Only
comments, which contain no claim, are skipped; text that resembles a claim is not a comment.
"""

import collections
import csv
import re
import sys

import spec_page
from spec_page import CASE_HEAD, SPEC, NotationError, number, refused, split_outside

ALL = 2**64 - 1

# A register, or bits of it, set before a case. `value` is shifted to its place.
Put = collections.namedtuple("Put", "index mask value")
# A claim about the state after a step. `what` is one of CLAIMS; unused fields are 0. For a value
# that is not specified the mask is 0.
Claim = collections.namedtuple("Claim", "what index mask value")
# `quadwords` are the nine quadwords of an XRSTORS.
Step = collections.namedtuple("Step", "operation index value pae quadwords claims")
# `separate`: every step starts from the setup, not from the end of the previous step.
Case = collections.namedtuple(
    "Case", "id profile puts enclave in_vmx steps separate rules")

# Operation -> possible claims.
AFTER = ("holds", "psb_plus", "pmi", "trace_stop")
OPERATIONS = {
    "rdmsr": ("gp", "reads"),
    "wrmsr": ("gp", "no_fault", "reads", *AFTER),
    "warm_reset": ("no_fault", "holds"),
    "smi": ("no_fault", "holds"),
    "rsm": ("no_fault", "shutdown", *AFTER),
    "vmxon": ("no_fault", "holds"),
    "xsaves": ("gp", "no_fault", "holds", "stores"),
    "xrstors": ("gp", "no_fault", *AFTER),
    "xrstors_init": ("gp", "no_fault", *AFTER),
    "cpl": ("context_en",),
    "cr3": ("cr3_match",),
    "branch": ("filter_en", "trace_stop"),
}
CLAIMS = ("gp", "no_fault", "shutdown", "reads", "holds", "stores", "psb_plus", "pmi", "trace_stop",
          "context_en", "cr3_match", "filter_en")
PSB_PLUS = {"no": 0, "yes": 1, "may": 2}

EVENTS = {"warm reset": "warm_reset", "SMI": "smi", "RSM": "rsm", "VMXON": "vmxon",
          "XSAVES": "xsaves", "XRSTORS init": "xrstors_init"}

REGISTERS = re.compile(r"IA32_RTIT_\w+|IA32_PERF_GLOBAL_STATUS")
WITH_FIELDS = ("IA32_RTIT_CTL", "IA32_RTIT_STATUS", "IA32_RTIT_OUTPUT_MASK_PTRS")

# A comment is words, and does not begin like a claim, not even a misspelt one.
COMMENT = re.compile(r"[a-z]+|\S+ .+")
BEGINS_LIKE_A_CLAIM = re.compile(
    r"[^A-Z]|GP\b|no[ -]?faults?\b|reads?\b|image\b|shut|(?:PSB|PMI|CR3match|TraceStop)\b"
    r"|\S*=|\S+ =", re.I)


# ------------------------------------------------------------------------------------- registers

class Catalogue(spec_page.Catalogue):
    """The catalogue entries that cells refer to, including registers and their fields."""

    def __init__(self, spec=SPEC, registers_md=None):
        super().__init__(spec, registers_md)
        self.registers = {}  # name -> index
        self.fields = {}     # name -> list of (register, msb, lsb)
        self.quadwords = {}  # index of a register -> number of its quadword in PT state
        with open(self.spec / "registers.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
        for row in rows:
            if row["kind"] == "msr" and REGISTERS.fullmatch(row["register"]):
                self.read_register(row)
        for row in rows:
            if row["register"].startswith("XSAVE_PT_STATE+") and row["field"] in self.registers:
                at = self.registers[row["field"]]
                self.quadwords[at] = int(row["address_hex"], 16) // 8
        self.short_names()

    def read_register(self, row):
        name = row["register"]
        if row["address_hex"] == "UNCONFIRMED":
            return
        self.registers[name] = int(row["address_hex"], 16)
        if name in WITH_FIELDS and row["access"] != "reserved-must-be-0":
            where = self.registers[name], int(row["msb"]), int(row["lsb"])
            self.fields.setdefault(row["field"], []).append(where)

    def short_names(self):
        self.short = {"BASE": self.registers["IA32_RTIT_OUTPUT_BASE"],
                      "MASK_PTRS": self.registers["IA32_RTIT_OUTPUT_MASK_PTRS"],
                      "MP": self.registers["IA32_RTIT_OUTPUT_MASK_PTRS"],
                      "GLOBAL_STATUS": self.registers["IA32_PERF_GLOBAL_STATUS"]}
        for name, index in self.registers.items():
            if name.startswith("IA32_RTIT_") and "OUTPUT" not in name:
                self.short[name.removeprefix("IA32_RTIT_")] = index
        self.fields["Inject"] = self.fields["InjectPsbPmiOnEnable"]
        # The name in parentheses after an index: the MSR's name without prefix, or a short name.
        self.access_names = self.short | {
            name.removeprefix("IA32_RTIT_"): index for name, index in self.registers.items()
            if name.startswith("IA32_RTIT_")}


# ------------------------------------------------------------------------------------- the cells

class Reader:
    """Parses one row."""

    def __init__(self, catalogue):
        self.catalogue = catalogue

    def place(self, name, registers, fields):
        """The index and the bit range of a name."""
        if name in registers:
            return registers[name], 63, 0
        found = fields.get(name, [])
        if len(found) != 1:
            raise NotationError(f"{name!r} is no register and no field of one")
        return found[0]

    def at_place(self, name, value, registers, fields, any_value):
        index, msb, lsb = self.place(name, registers, fields)
        mask = ALL >> (63 - msb) & ALL << lsb & ALL
        if value == "?" and any_value:
            return index, 0, 0
        return index, mask, number(value, msb - lsb + 1) << lsb

    # setup

    def setup(self, cell):
        puts, enclave, in_vmx = [], None, False
        for item in [] if cell == "cold state" else split_outside(cell, (", ",), "[]"):
            if item == "in VMX operation":
                if in_vmx:
                    raise NotationError(f"{item!r} twice")
                in_vmx = True
            elif match := re.fullmatch(r"enclave=([01])", item):
                if enclave is not None:
                    raise NotationError("enclave twice")
                enclave = match[1] == "1"
            else:
                for put in self.puts_of(item):
                    if any(put.index == old.index and put.mask & old.mask == old.mask
                           for old in puts):
                        raise NotationError(f"{item!r} puts something over an item before it")
                    puts.append(put)
        return puts, bool(enclave), in_vmx

    def puts_of(self, item):
        ctl = self.catalogue.registers["IA32_RTIT_CTL"]
        registers = {name: index for name, index in self.catalogue.short.items()
                     if name != "GLOBAL_STATUS"}
        fields = {name: [where for where in places if where[0] == ctl]
                  for name, places in self.catalogue.fields.items()}
        if match := re.fullmatch(r"ADDR([0-3])=\[(\w+),(\w+)\] CFG=(\w+)", item):
            n, first, last, kind = match.groups()
            parts = [(f"ADDR{n}_A", first), (f"ADDR{n}_B", last), (f"ADDR{n}_CFG", kind)]
        elif match := re.fullmatch(r"(\w+)=(\w+)", item):
            parts = [match.groups()]
        else:
            raise NotationError(f"{item!r} is no item of a setup")
        return [Put(*self.at_place(name, value, registers, fields, False))
                for name, value in parts]

    # operation

    def operation(self, text):
        """Name, index, value, PAE and quadwords of one step."""
        none = (0,) * 9
        if text in EVENTS:
            return EVENTS[text], 0, 0, False, none
        if match := re.fullmatch(r"RDMSR (\w+) \((\w+)\)", text):
            return "rdmsr", self.msr(match[1], match[2]), 0, False, none
        if match := re.fullmatch(r"WRMSR (\w+) \((\w+)\) = (\w+)", text):
            return "wrmsr", self.msr(match[1], match[2]), number(match[3]), False, none
        if match := re.fullmatch(r"XRSTORS \{(.*)\}", text):
            return "xrstors", 0, 0, False, self.quadwords(match[1])
        if match := re.fullmatch(r"CPL ([0-3])", text):
            return "cpl", 0, int(match[1]), False, none
        if match := re.fullmatch(r"CR3=(\w+)( PAE)?", text):
            return "cr3", 0, number(match[1]), bool(match[2]), none
        if match := re.fullmatch(r"branch to (\w+)", text):
            return "branch", 0, number(match[1]), False, none
        raise NotationError(f"{text!r} is no operation")

    def msr(self, index, name):
        if self.catalogue.access_names.get(name) != number(index, 32):
            raise NotationError(f"{name!r} is not the name of MSR {index}")
        return number(index, 32)

    def named_quadwords(self, text):
        """`NAME=v, ..` as pairs of quadword number and value."""
        pairs = []
        for item in split_outside(text, (", ",), "{}") if text else []:
            match = re.fullmatch(r"(\w+)=(\w+|\?)", item)
            at = self.catalogue.quadwords.get(self.catalogue.short.get(match[1])) if match else None
            if at is None:
                raise NotationError(f"{item!r} is no quadword of PT state")
            if at in [pair[0] for pair in pairs]:
                raise NotationError(f"{match[1]} twice in {text!r}")
            pairs.append((at, match[2]))
        return pairs

    def quadwords(self, text):
        mask_ptrs = self.catalogue.quadwords[self.catalogue.short["MASK_PTRS"]]
        values = {mask_ptrs: 0x7F} | {at: number(value) for at, value in self.named_quadwords(text)}
        return tuple(values.get(n, 0) for n in range(9))

    # expected

    def claims(self, text, step):
        """The claims of one result."""
        operation = step[0]
        claims = []
        for item in split_outside(text, ("; ", ", "), "{}"):
            claims += self.claims_of(item, step)
        for claim in claims:
            if claim.what not in OPERATIONS[operation]:
                raise NotationError(f"of {operation} nothing can be claimed like {text!r}")
        if not claims:
            raise NotationError(f"{text!r} claims nothing")
        self.check_whole(operation, text, [claim.what for claim in claims])
        places = [(claim.what, claim.index) for claim in claims if claim.what != "holds"]
        if len(places) != len(set(places)):
            raise NotationError(f"a claim made twice in {text!r}")
        return tuple(claims)

    @staticmethod
    def check_whole(operation, text, whats):
        """A result says whether the access faults. A faulting access has no other effect."""
        verdicts = [what for what in whats if what in ("gp", "no_fault", "shutdown")]
        if operation == "rdmsr":
            verdicts += [what for what in whats if what == "reads"]
        asked = operation in ("rdmsr", "wrmsr", "xsaves", "xrstors", "xrstors_init")
        if len(verdicts) > 1 or (asked and not verdicts):
            raise NotationError(f"faults or does not: {text!r}")
        if {"gp", "shutdown"} & set(verdicts) and set(whats) - {"gp", "shutdown", "holds"}:
            raise NotationError(f"an effect of what faults in {text!r}")

    def claims_of(self, item, step):
        operation, index = step[:2]
        if plain := {"#GP": "gp", "no fault": "no_fault", "shutdown": "shutdown"}.get(item):
            return [Claim(plain, 0, 0, 0)]
        if re.fullmatch(r"[0-9A-Fa-f]+|\?", item):
            if operation != "rdmsr":
                raise NotationError(f"{item!r} alone, and nothing was read")
            return [self.read_back(index, item)]
        if match := re.fullmatch(r"reads back (\w+|\?)", item):
            if operation != "wrmsr":
                raise NotationError(f"{item!r}, and nothing was written")
            return [self.read_back(index, match[1])]
        if match := re.fullmatch(r"image=\{(.+)\}", item):
            return [Claim("stores", at, *((0, 0) if value == "?" else (ALL, number(value))))
                    for at, value in self.named_quadwords(match[1])]
        if match := re.fullmatch(r"([\w+]+)=(\w+|\?)", item):
            return [self.named(match[1], match[2], operation)]
        if self.looks_like_a_claim(item):
            raise NotationError(f"{item!r} is no claim")
        return []

    @staticmethod
    def read_back(index, value):
        return Claim("reads", index, *((0, 0) if value == "?" else (ALL, number(value))))

    def named(self, name, value, operation):
        if name == "PSB+":
            if value not in PSB_PLUS:
                raise NotationError(f"PSB+ is yes, no or may, not {value!r}")
            return Claim("psb_plus", 0, 0, PSB_PLUS[value])
        results = {"PMI": "pmi", "CR3match": "cr3_match", "TraceStop": "trace_stop"}
        if operation == "cpl":
            results["ContextEn"] = "context_en"
        if operation == "branch":
            results["FilterEn"] = "filter_en"
        if name in results:
            return Claim(results[name], 0, 0, number(value, 1))
        return Claim("holds", *self.at_place(name, value, self.catalogue.short,
                                             self.catalogue.fields, True))

    def looks_like_a_claim(self, item):
        first, _, rest = item.partition(" ")
        known = first in self.catalogue.short or first in self.catalogue.fields
        return (BEGINS_LIKE_A_CLAIM.match(item) is not None or COMMENT.fullmatch(item) is None
                or (known and re.fullmatch(r"[0-9A-Fa-f]+|\?", rest) is not None))

    # rows

    def row(self, cells):
        name, profile, setup, operation, expected, rules = cells
        if not re.fullmatch(r"RC-\d{2}", name):
            raise NotationError(f"{name!r} is no id of a case")
        with spec_page.naming(name):
            self.catalogue.profile(profile)
            puts, enclave, in_vmx = self.setup(setup)
            steps, separate = self.steps(operation, expected)
            return Case(name, profile, tuple(puts), enclave, in_vmx, steps, separate,
                        self.catalogue.rule_ids(rules, "REG-"))

    def steps(self, operation, expected):
        by_then = split_outside(operation, (" then ",), "{}")
        by_slash = split_outside(operation, (" / ",), "{}")
        if len(by_then) > 1 and len(by_slash) > 1:
            raise NotationError("steps one after the other and separate trials in one case")
        separate = len(by_slash) > 1
        parts = by_slash if separate else by_then
        results = split_outside(expected, (" / ",) if separate else (" then ",), "{}")
        if len(parts) != len(results):
            raise NotationError(f"{len(parts)} steps and {len(results)} results")
        steps = []
        for part, result in zip(parts, results):
            head = self.operation(part)
            steps.append(Step(*head, self.claims(result, head)))
        if len(steps) == 1 and steps[0].operation == "wrmsr":
            self.check_read_back(steps[0])
        return tuple(steps), separate

    @staticmethod
    def check_read_back(step):
        """`reads back` may be omitted only when the register is listed by name."""
        whats = [claim.what for claim in step.claims]
        named = any(claim.what == "holds" and claim.index == step.index and claim.mask == ALL
                    for claim in step.claims)
        if "no_fault" in whats and "reads" not in whats and not named:
            raise NotationError("nothing says what reads back")


def read_cases(catalogue=None):
    """All cases of the table, in order."""
    catalogue = catalogue or Catalogue()
    return spec_page.cases_below(catalogue.registers_md, "## 16. Worked cases", "RC",
                                 Reader(catalogue).row)


# ------------------------------------------------------------------------------------- listing

def listing(case):
    def bits(one):
        return f"{one.index:X}&{one.mask:X}={one.value:X}"

    lines = [f"{case.id} {case.profile}" + " enclave" * case.enclave + " in_vmx" * case.in_vmx
             + " separate" * case.separate + "".join(f" {bits(put)}" for put in case.puts)
             + f"  [{' '.join(case.rules)}]"]
    for step in case.steps:
        numbers = [f"{step.index:X}", f"{step.value:X}"] + ["pae"] * step.pae
        if step.operation == "xrstors":
            numbers += [f"{word:X}" for word in step.quadwords]
        lines.append(f"  {step.operation} {' '.join(numbers)}")
        lines += [f"    {claim.what} {bits(claim)}" for claim in step.claims]
    return "\n".join(lines)


# ------------------------------------------------------------------------------------- self-test

# Rule ids are assembled here, so that these rows do not cite rules.
def ids(*numbers):
    return tuple(f"{PREFIX}{number}" for number in numbers)


PREFIX = "REG-"

# Rows that must be accepted, and the parsed result.
READ = (
    (("RC-01", "P-SKL", "cold state", "RDMSR 570 (CTL)", "0", "001"),
     Case("RC-01", "P-SKL", (), False, False,
          (Step("rdmsr", 0x570, 0, False, (0,) * 9, (Claim("reads", 0x570, ALL, 0),)),), False,
          ids("001"))),
    (("RC-02", "P-FUT", "CTL=2109, PSBFreq=3, ADDR1=[10,2F] CFG=2, enclave=1, in VMX operation",
      "WRMSR 561 (OUTPUT_MASK_PTRS) = ff",
      "no fault; reads back FF; because x=1, MP=?, PSBFreq=3, PSB+=may", PREFIX + "072, 73,074"),
     None),  # 73 is not a rule number
    (("RC-02", "P-FUT", "CTL=2109, PSBFreq=3, ADDR1=[10,2F] CFG=2, enclave=1, in VMX operation",
      "WRMSR 561 (OUTPUT_MASK_PTRS) = ff",
      "no fault; reads back FF; because x=1, MP=?, PSBFreq=3, PSB+=may", PREFIX + "072, 073,074"),
     Case("RC-02", "P-FUT",
          (Put(0x570, ALL, 0x2109), Put(0x570, 0xF << 24, 3 << 24), Put(0x582, ALL, 0x10),
           Put(0x583, ALL, 0x2F), Put(0x570, 0xF << 36, 2 << 36)), True, True,
          (Step("wrmsr", 0x561, 0xFF, False, (0,) * 9,
                (Claim("no_fault", 0, 0, 0), Claim("reads", 0x561, ALL, 0xFF),
                 Claim("holds", 0x561, 0, 0), Claim("holds", 0x570, 0xF << 24, 3 << 24),
                 Claim("psb_plus", 0, 0, 2))),), False, ids("072", "073", "074"))),
    (("RC-03", "P-BDW", "STATUS=4", "SMI then XSAVES then RSM",
      "CTL=0 then no fault; image={STATUS=0, ADDR1_B=7} then shutdown", "100"),
     Case("RC-03", "P-BDW", (Put(0x571, ALL, 4),), False, False,
          (Step("smi", 0, 0, False, (0,) * 9, (Claim("holds", 0x570, ALL, 0),)),
           Step("xsaves", 0, 0, False, (0,) * 9,
                (Claim("no_fault", 0, 0, 0), Claim("stores", 3, ALL, 0),
                 Claim("stores", 8, ALL, 7))),
           Step("rsm", 0, 0, False, (0,) * 9, (Claim("shutdown", 0, 0, 0),))), False,
          ids("100"))),
    (("RC-04", "P-BDW", "cold state", "XRSTORS {CR3_MATCH=20, STATUS=10} / XRSTORS init",
      "#GP; CTL=0 / no fault", "144"),
     Case("RC-04", "P-BDW", (), False, False,
          (Step("xrstors", 0, 0, False, (0, 0, 0x7F, 0x10, 0x20, 0, 0, 0, 0),
                (Claim("gp", 0, 0, 0), Claim("holds", 0x570, ALL, 0))),
           Step("xrstors_init", 0, 0, False, (0,) * 9, (Claim("no_fault", 0, 0, 0),))), True,
          ids("144"))),
    (("RC-05", "P-BDW", "cold state", "CR3=1FE0 PAE / CPL 3 / branch to 7",
      "CR3match=1 / ContextEn=0 / FilterEn=1, TraceStop=0", "057"),
     Case("RC-05", "P-BDW", (), False, False,
          (Step("cr3", 0, 0x1FE0, True, (0,) * 9, (Claim("cr3_match", 0, 0, 1),)),
           Step("cpl", 0, 3, False, (0,) * 9, (Claim("context_en", 0, 0, 0),)),
           Step("branch", 0, 7, False, (0,) * 9,
                (Claim("filter_en", 0, 0, 1), Claim("trace_stop", 0, 0, 0)))), True,
          ids("057"))),
)

GOOD = ("RC-09", "P-SKL", "CTL=2108", "WRMSR 570 (CTL) = 2109", "no fault; reads back 2109",
        "023")

# Invalid cells: for each valid row, the replacements by column.
REFUSED = (
    *(("id", cell) for cell in ("", "RC-9", "RC-123", "OC-01", "rc-01")),
    *(("profile", cell) for cell in ("", "P-XXL", "SKL", "P-SKL P-BDW")),
    *(("setup", cell) for cell in (
        "", "cold", "cold state, CTL=1", "CTL=2108,STATUS=4", "CTL=2108; STATUS=4", "CTL=2108, ",
        "CTL", "CTL=", "CTL = 2108", "CTL=2108H", "CTL=0x2108", "CTL=?", "CTL=12345678901234567",
        "CTL=1, CTL=2", "OS=1, CTL=1", "OS=2", "MTCFreq=10", "Stopped=1", "TriggerEn=1", "NAME=1",
        "GLOBAL_STATUS=0", "OUTPUT_BASE=0", "Reserved18=1", "ADDR4_A=0", "ADDR4=[0,1] CFG=1",
        "ADDR0=[0, 1] CFG=1", "ADDR0=[0,1]", "ADDR0=[0,1] CFG=10", "ADDR0=[0,1] CFG=x",
        "ADDR0=[0,1", "ADDR0=0,1] CFG=1", "enclave=2", "enclave", "enclave=0, enclave=1",
        "in VMX", "in VMX operation, in VMX operation", "VMX operation", "CPL=3", "CR3=0")),
    *(("operation", cell) for cell in (
        "", "WRMSR 570 = 2109", "WRMSR 570 (CTL)", "WRMSR 570 (CTL) =", "WRMSR 570 (CTL)=2109",
        "WRMSR 570 (STATUS) = 2109", "WRMSR 571 (CTL) = 2109", "WRMSR 570 (IA32_RTIT_CTL) = 2109",
        "WRMSR 570 (CTL) = 0x2109", "WRMSR 570 (CTL) = 12345678901234567", "WRMSR 570 (CTL) = ?",
        "WRMSR CTL = 2109", "RDMSR 570", "wrmsr 570 (CTL) = 2109", "WRMSR  570 (CTL) = 2109",
        "WRMSR 570 (CTL) = 2109; then", "WRMSR 588 (TRIGGER0_CFG) = 0", "cold reset", "reset",
        "Warm reset", "INIT", "XSAVES {}", "XSAVE", "XRSTORS", "XRSTORS {CTL}", "XRSTORS {CTL=}",
        "XRSTORS {CTL=?}", "XRSTORS {CTL=1, CTL=1}", "XRSTORS {ADDR2_A=0}", "XRSTORS {OS=1}",
        "XRSTORS {CTL=1; STATUS=0}", "XRSTORS {CTL=1", "XRSTORS CTL=1", "XRSTORS {{}}",
        "XRSTORS {CTL=1,}", "VMXOFF", "CPL 4", "CPL=3", "CR3 = 0", "CR3=0 pae", "branch 1000",
        "branch to", "SMI, RSM", "SMI then", "then RSM", "SMI / RSM then VMXON", "SMI  then RSM",
        "SMI/RSM", "SMI; RSM")),
    *(("expected", cell) for cell in (
        "", "reads back 2109", "always", "no fault", "no fault;", "no fault; ; reads back 2109",
        "no fault;reads back 2109", "no fault reads back 2109", "#GP; no fault", "#GP, #GP",
        "#GP(0)", "GP", "#UD", "2109", "#GP; reads back 2109", "#GP; PSB+=no", "shutdown",
        "no fault; read back 2109", "no fault; reads back", "no fault; reads back 0x2109",
        "no fault; reads back 2109H", "no fault; Reads back 2109", "no fault; reads back 2109 now",
        "no fault; reads back 2109; reads back 2109", "no fault; STATUS=4", "no fault; CTL = 2109",
        "nofault; CTL=2109", "no fault; CTL=2109; reads back 2109; PSB+=", "no fault; CTL 2109",
        "no fault; CTL=2109; PSB+=maybe", "no fault; CTL=2109; PSB=yes", "no fault; CTL=2109; PSB+",
        "no fault; CTL=2109; psb+=yes", "no fault; CTL=2109; PMI=2", "no fault; CTL=2109; PMI=?",
        "no fault; CTL=2109; PMI 1", "no fault; CTL=2109; PMI=0, PMI=0",
        "no fault; CTL=2109; FooEn=1",
        "no fault; CTL=2109; TriggerEn=2", "no fault; CTL=2109; Address=0", "no fault; CTL=21 09",
        "no fault; CTL=2109; CR3match=1", "no fault; CTL=2109; image={CTL=1}",
        "no fault; CTL=2109}",
        "no fault; CTL=2109; TraceStop=maybe", "no fault; CTL=2109; =1", "no fault; CTL=2109; -1",
        "no fault; CTL=2109; TriggerEn", "no fault; CTL=2109; shutdwon", "no fault; CTL=2109; Word",
        "no fault; CTL=2109 then no fault", "no fault; CTL=2109 / no fault; CTL=2109")),
    *(("rules", cell) for cell in (
        "", "999", PREFIX + "999", PREFIX + "23", "23", "023;024", "REG_" "023", "023, ", "023 024",
        "023, 023", PREFIX + "023, 023", "RC-01")),
)

# Valid operations with results that do not fit them.
MISMATCHED = (
    ("RDMSR 570 (CTL)", "no fault"), ("RDMSR 570 (CTL)", "reads back 0"),
    ("RDMSR 570 (CTL)", "no fault; 0"), ("RDMSR 570 (CTL)", "0; CTL=0"),
    ("RDMSR 570 (CTL)", "0, 1"),
    ("RDMSR 570 (CTL)", "#GP; 0"), ("SMI", "#GP"), ("SMI", "shutdown"), ("SMI", "PSB+=no"),
    ("VMXON", "reads back 0"), ("warm reset", "nothing changed"), ("RSM", "#GP"),
    ("RSM", "shutdown; PSB+=no"), ("XSAVES", "image={CTL=0}"), ("XSAVES", "no fault; image={OS=0}"),
    ("XSAVES", "no fault; image={ADDR2_A=0}"), ("XSAVES", "no fault; image={CTL=0, CTL=0}"),
    ("XSAVES", "no fault; image={CTL=0}, image={CTL=0}"), ("XSAVES", "no fault; image=CTL"),
    ("XSAVES", "no fault; image={CTL=0; STATUS=0}"), ("XRSTORS {}", "CTL=0"),
    ("XRSTORS {}", "#GP; image={CTL=0}"), ("XRSTORS init", "no fault; image={CTL=0}"),
    ("CPL 0", "no fault"), ("CPL 0", "CR3match=1"), ("CPL 0", "ContextEn=2"),
    ("CPL 0", "FilterEn=1"),
    ("CPL 0", "STATUS=0"), ("CR3=0", "ContextEn=1"), ("CR3=0", "0"), ("branch to 0", "ContextEn=1"),
    ("branch to 0", "Stopped=1"), ("SMI then RSM", "CTL=0"), ("SMI / RSM", "CTL=0 then CTL=0"),
    ("SMI then RSM", "CTL=0 / CTL=0"), ("SMI then RSM", "CTL=0 then CTL=0 then CTL=0"),
    ("WRMSR 570 (CTL) = 0", "no fault; reads back 0; image={}"),
)

# Invalid changes to the page: (old, new).
TAMPERED = (
    ("| RC-14 | P-SKL |", "| RC-14 | P-SKL | x |"), ("| RC-14 | P-SKL |", "| RC-14 |"),
    ("| RC-14 |", "| RC-15 |"), ("| RC-14 |", "RC-14 |"), ("| RC-01 |", "| RC-02 |"),
    ("| RC-85 |", "RC-85 |"), ("| RC-40 |", "\n| RC-40 |"), ("| RC-40 |", "  | RC-40 |"),
    ("| RC-40 |", "text\n| RC-40 |"), ("078 |", "078"), ("078 |", "078 \\|"),
    ("| setup | operation |", "| operation | setup |"),
    ("## 16. Worked cases", "## 16. Cases"),
    ("## 16. Worked", "## 16. Worked cases\n\n## 16. Worked"),
    ("| P-SKL | 1 | 1 |", "| P-SKL | 1 | x |"), ("| P-SKL | 1 | 1 |", "| P-BDW | 1 | 1 |"),
    ("| P-SKL | 1 | 1 |", "| P-SKL | 1 |"), ("| 39 | 48 | 1 |", "| 39 | 48 | 2 |"),
    ("| 39 | 48 | 1 |", "| M | 48 | 1 |"), ("| 39 | 48 | 1 |", "| 39 | LA | 1 |"),
    ("| 00000007 |", "| 100000007 |"),
    *(("\n| P-BDW |", f"\n| {name} |{' 1 |' * 11}\n| P-BDW |")
      for name in ("P-NONE", "", "NEW", "P-new", "P-", "P-NEW2", "xP-NEW")),
    ("| 14H.0 EBX |", "| 14H.0 EDX |"),
)


def self_test():
    catalogue = Catalogue()
    reader = Reader(catalogue)
    wrong = []
    for cells, case in READ:
        if case is None:
            wrong += [f"is read: {cells}"] * (not refused(reader.row, cells))
        elif reader.row(cells) != case:
            wrong.append(f"is read as\n{listing(reader.row(cells))}\nnot\n{listing(case)}")
    reader.row(GOOD)
    for column, cell in REFUSED:
        row = list(GOOD)
        row[CASE_HEAD.index(column)] = cell
        wrong += [f"is read: {column} {cell!r}"] * (not refused(reader.row, row))
    for operation, expected in MISMATCHED:
        row = GOOD[:3] + (operation, expected, GOOD[5])
        wrong += [f"is read: {operation!r} with {expected!r}"] * (not refused(reader.row, row))
    for old, new in TAMPERED:
        assert old in catalogue.registers_md, f"the page has no {old!r} to replace"
        text = catalogue.registers_md.replace(old, new, 1)
        wrong += [f"is read: {old!r} as {new!r}"] * (
            not refused(lambda t: read_cases(Catalogue(registers_md=t)), text))
    count = len(REFUSED) + len(MISMATCHED) + len(TAMPERED)
    print("\n".join(wrong) if wrong else
          f"self-test: {len(READ)} rows read, {count} mistakes refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(spec_page.main(__doc__, self_test,
                            lambda *spec: map(listing, read_cases(Catalogue(*spec)))))
