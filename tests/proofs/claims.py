# SPDX-License-Identifier: BSL-1.0
"""What the statements are written with: numbers, rules, and the tables of tests/spec.

A statement is a function that takes the compiled functions and returns what it claims: a condition,
or a pair of conditions, the first of which the inputs satisfy, or a list of these, which are proved
one by one. It is proved for all inputs.

    @statement("the offset is MP[63:32] (OUT-050)",
               mutant=("topa/address_math.hpp", "OutputOffset::lsb}", "OutputOffset::lsb + 1}"))
    def offset(functions):
        pointers = var("pointers")
        return functions.offset_in(pointers) == wide(bits(pointers, 63, 32))

Its functions are those of the C++ file with the same name. The mutant is an edit of a header below
include/ptspec that makes it false.
"""

import collections
import csv
import functools
import pathlib
import re

import z3
from z3 import And, Concat, Extract, If, Implies, Not, Or, UGE, UGT, ULE, ULT  # noqa: F401

SPEC = pathlib.Path(__file__).resolve().parent.parent / "spec"

Statement = collections.namedtuple("Statement", "name source claim mutant only slow needs")
ALL = []

# The numbers of the rules in the library.
FAMILIES = {"REG": 1000, "OUT": 2000, "PKT": 3000, "GEN": 4000, "PRG": 5000}


def statement(name, mutant, only="", slow=False, needs=()):
    """Adds a statement. `only` is the part of its C++ file that the mutant compiles; one that is
    slow is proved with --all; `needs` has programs that may be missing."""
    def add(claim):
        ALL.append(Statement(name, claim.__module__.rpartition(".")[2], claim, mutant, only,
                             slow, needs))
        return claim
    return add


def rule(name):
    family, number = name.split("-")
    return FAMILIES[family] + int(number)


def var(name, width=64):
    return z3.BitVec(name, width)


def flag(name):
    return z3.Bool(name)


def number(value, width=64):
    return z3.BitVecVal(value, width)


def bits(value, msb, lsb=None):
    """The bits msb to lsb, in as many bits."""
    return Extract(msb, msb if lsb is None else lsb, value)


def bit(value, at):
    return Extract(at, at, value) == 1


def wide(value, width=64):
    """Extended with zeros."""
    return z3.ZeroExt(width - value.size(), value) if value.size() < width else value


def low(value, count, width=64):
    """The lowest bits, extended with zeros."""
    return wide(bits(value, count - 1, 0), width)


def signed(value, width=64):
    return z3.SignExt(width - value.size(), value)


def cases(value, table, otherwise):
    """The entry of a table at a value."""
    for at, entry in table.items():
        otherwise = If(value == at, entry, otherwise)
    return otherwise


def by_value(value, values, make):
    """What `make` gives for the value, which is one of a few."""
    values = list(values)
    return cases(value, {one: make(one) for one in values[:-1]}, make(values[-1]))


def first(rules, otherwise=0, width=16):
    """The number of the first rule whose condition holds."""
    found = number(otherwise, width)
    for name, condition in reversed(rules):
        found = If(condition, number(rule(name), width), found)
    return found


@functools.cache
def table(name):
    with open(SPEC / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@functools.cache
def register(name):
    """The rows of a register, by field."""
    return {row["field"]: row for row in table("registers.csv") if row["register"] == name}


def field(name, of):
    """The bits of a field: field("IA32_RTIT_CTL.MTCFreq", value)."""
    row = register(name.split(".")[0])[name.split(".")[1]]
    return bits(of, int(row["msb"]), int(row["lsb"]))


def mask(rows, width=64):
    """The bits of rows of registers.csv."""
    return sum(((1 << int(row["msb"]) + 1) - (1 << int(row["lsb"]))) for row in rows) % (1 << width)


def enumerated(condition, words):
    """A cell `present_if` without the words after a semicolon, for capability words by name."""
    found = []
    for part in condition.split(";")[0].split(" and "):
        if match := re.fullmatch(r"CPUID\.(\w+\.\d:E[A-D]X)\[(\d+)\]=1", part):
            found.append(bit(words[match[1]], int(match[2])))
        elif match := re.fullmatch(r"(?:RANGECNT|CPUID\.14H\.1:EAX\[2:0\])>(\d)", part):
            count = If(words["14H.0:EAX"] == 0, number(0, 3), bits(words["14H.1:EAX"], 2, 0))
            found.append(UGT(count, int(match[1])))
        else:
            raise ValueError(f"registers.csv: {condition}")
    return And(*found)


# The words of a processor, in the order of statements/words.hpp.
NAMES = ("07H.0:EBX", "14H.0:EAX", "14H.0:EBX", "14H.0:ECX", "14H.1:EAX", "14H.1:EBX",
         "80000008H:EAX", "0DH.1:EAX", "0DH.1:ECX", "IA32_PERF_CAPABILITIES", "IA32_VMX_MISC")
capability_words = {name: var(name, 64 if name.startswith("IA32") else 32) for name in NAMES}
