# SPDX-License-Identifier: BSL-1.0
"""Statements about legal values and accesses of MSRs (registers.md, registers.csv)."""

from z3 import LShR

from claims import (And, If, Implies, Not, Or, UGE, UGT, ULE, bit, bits, capability_words,
                    enumerated, field, flag, mask, number, register, rule, statement, var, wide)

LEGAL = "access/legal.hpp"
CHECK = "access/check.hpp"
ROWS = "access/pt_msr_rows.hpp"

words = tuple(capability_words.values())
ebx, ecx = capability_words["14H.0:EBX"], capability_words["14H.0:ECX"]
has_pt = bit(capability_words["07H.0:EBX"], 25)
value, index, cpl = var("value"), var("index", 32), var("cpl", 32)


def ctl(name, of=value):
    return field(f"IA32_RTIT_CTL.{name}", of)


# Which rule a field breaks that its capability does not allow (REG-024 to REG-037).
GATES = {"ToPA": "REG-024", "FabricEn": "REG-026", "CYCEn": "REG-027", "CycThresh": "REG-027",
         "PSBFreq": "REG-027", "MTCEn": "REG-030", "MTCFreq": "REG-030", "CR3Filter": "REG-031",
         "PTWEn": "REG-032", "FUPonPTW": "REG-032", "PwrEvtEn": "REG-033",
         "InjectPsbPmiOnEnable": "REG-034", "EventEn": "REG-035", "DisTNT": "REG-036",
         **{f"ADDR{n}_CFG": "REG-037" for n in range(4)}}
FREE = ("TraceEn", "OS", "User", "TSCEn", "DisRETC", "BranchEn")  # REG-039, REG-040


def reserved_mask(name):
    return mask([row for row in register(name).values() if row["access"] == "reserved-must-be-0"])


def ctl_rules(value):
    """The rules that a value of IA32_RTIT_CTL breaks, as (rule, condition)."""
    found = [("REG-044", value & reserved_mask("IA32_RTIT_CTL") != 0)]
    for name, row in register("IA32_RTIT_CTL").items():
        if row["access"] == "rw" and name not in FREE:
            found.append((GATES[name], And(ctl(name, value) != 0,
                                           Not(enumerated(row["present_if"], capability_words)))))
    found += [("REG-037", UGT(ctl(f"ADDR{n}_CFG", value), 2)) for n in range(4)]
    has_subleaf = capability_words["14H.0:EAX"] != 0  # REG-046
    for name, leaf, msb, lsb in (("MTCFreq", "14H.1:EAX", 31, 16),
                                 ("CycThresh", "14H.1:EBX", 15, 0),
                                 ("PSBFreq", "14H.1:EBX", 31, 16)):
        encoding = wide(ctl(name, value), 16)
        listed = And(has_subleaf,
                     LShR(bits(capability_words[leaf], msb, lsb), encoding) & 1 == 1)
        found.append(("REG-028", And(encoding != 0, Not(listed))))  # REG-029
    on = bit(value, 0)
    found.append(("REG-025", And(on, ctl("ToPA", value) == 0, ctl("FabricEn", value) == 0,
                                 Not(bit(ecx, 2)))))
    found.append(("REG-040", And(on, ctl("BranchEn", value) == 0, Not(bit(ebx, 3)))))
    return found


def status_rules(value):
    return [("REG-052", value & reserved_mask("IA32_RTIT_STATUS") != 0),
            ("REG-054", And(bits(value, 7, 6) != 0, Not(bit(ebx, 6)))),
            ("REG-055", And(field("IA32_RTIT_STATUS.PacketByteCnt", value) != 0,
                            Not(bit(ebx, 1))))]


sizes = capability_words["80000008H:EAX"]
width = wide(If(bits(sizes, 7, 0) == 0, number(36, 8), bits(sizes, 7, 0)))
linear = wide(bits(sizes, 15, 8))
linear_is_known = And(UGE(linear, 1), ULE(linear, 64))  # the catalogue has no other


def is_legal_base(value):
    return And(bits(value, 6, 0) == 0, LShR(value, width) == 0)


def is_canonical_in(value):
    return Or(value >> linear - 1 == 0, value >> linear - 1 == -1)


def is_one_of(found, rules, none=0):
    """The rule that is found is one of those that hold, and 0 if none does."""
    return And(Implies(found == none, And(*[Not(holds) for _, holds in rules])),
               Implies(found != none, Or(*[And(found == rule(name), holds)
                                           for name, holds in rules])))


@statement("a value of IA32_RTIT_CTL is legal if and only if it breaks none of REG-024..040 and "
           "REG-044, for all values and capability words",
           mutant=(LEGAL, "(value.raw & value.raw >> 1 & lowest) != 0",
                   "(value.raw & value.raw >> 2 & lowest) != 0"))
def ctl_is_legal(f):
    return f.ctl_is_legal(*words, value) == And(*[Not(holds) for _, holds in ctl_rules(value)])


@statement("the rule that is named for a value of IA32_RTIT_CTL is one that it breaks",
           mutant=(LEGAL, "ebx_gate<ebx::PTWRITE, rule::REG_032,",
                   "ebx_gate<ebx::PTWRITE, rule::REG_033,"))
def ctl_broken_rule(f):
    return is_one_of(f.ctl_broken_rule(*words, value), ctl_rules(value))


@statement("a bit of IA32_RTIT_CTL is writable if and only if its field is enumerated, and of "
           "ADDRn_CFG the lower two bits (REG-024..037, REG-039, REG-044)",
           mutant=(LEGAL, "all & ~(lowest * 3 &", "all & ~(lowest * 7 &"))
def ctl_writable(f):
    found, claimed = f.ctl_writable(*words), []
    for name, row in register("IA32_RTIT_CTL").items():
        for at in range(int(row["lsb"]), int(row["msb"]) + 1):
            can = name in FREE or row["access"] == "rw" and And(
                enumerated(row["present_if"], capability_words),
                not name.startswith("ADDR") or at - int(row["lsb"]) < 2)
            claimed.append(bit(found, at) == can)
    return And(*claimed)


@statement("IA32_RTIT_STATUS: faulting bits, and the named rule (REG-052, REG-054, REG-055)",
           mutant=(LEGAL, "ebx_gate<ebx::CPSB_CAM, rule::REG_055, status::PacketByteCnt>",
                   "ebx_gate<ebx::MTC, rule::REG_055, status::PacketByteCnt>"))
def status(f):
    rules = status_rules(value)
    faulting = f.status_faulting(*words)
    return And((faulting & value != 0) == Or(*[holds for _, holds in rules]),
               is_one_of(f.status_broken_rule(*words, value), rules))


@statement("legal values of STATUS, OUTPUT_BASE, OUTPUT_MASK_PTRS, CR3_MATCH and ADDRn, of all "
           "MAXPHYADDR and linear widths (REG-052..055, REG-070..076)",
           mutant=("base/address.hpp", "unsigned const above = 64 - width;",
                   "unsigned const above = 63 - width;"))
def others(f):
    found = f.legal_others(*words, value)
    legal = (And(*[Not(holds) for _, holds in status_rules(value)]), is_legal_base(value),
             value == value, bits(value, 4, 0) == 0, is_canonical_in(value))
    return linear_is_known, And(*[bit(found, at) == one for at, one in enumerate(legal)],
                                bits(found, 31, 5) == 0)


@statement("reserved, write-ignored and forced-1 masks of the MSRs equal registers.csv",
           mutant=("reg/rtit_status.hpp", "struct ContextEn : write_ignored<flag<1>> {};",
                   "struct ContextEn : flag<1> {};"))
def masks(f):
    def with_access(name, access):
        return mask([row for row in register(name).values() if row["access"] == access])

    wanted = [reserved_mask("IA32_RTIT_CTL"), reserved_mask("IA32_RTIT_STATUS"),
              with_access("IA32_RTIT_STATUS", "w-ignored"),
              mask([register("IA32_RTIT_OUTPUT_BASE")["Reserved0"]]),
              reserved_mask("IA32_RTIT_OUTPUT_MASK_PTRS"),
              with_access("IA32_RTIT_OUTPUT_MASK_PTRS", "forced-1"),
              reserved_mask("IA32_RTIT_CR3_MATCH"), reserved_mask("IA32_RTIT_ADDR0_A"),
              reserved_mask("IA32_PERF_GLOBAL_STATUS_RESET"),
              reserved_mask("IA32_PERF_GLOBAL_STATUS_SET"), reserved_mask("IA32_DEBUGCTL"), 0]
    found = f.masks(var("to", 64 * len(wanted))).memory[0]
    return And(*[bits(found, 64 * at + 63, 64 * at) == one for at, one in enumerate(wanted)])


# --- accesses

def between(low, high):
    return And(UGE(index, low), ULE(index, high))


is_pt = between(0x560, 0x587)  # REG-017
covered = Or(is_pt, *[index == one for one in (0x38E, 0x390, 0x391, 0xDA0, 0x1D9)])
ALLOWED, FAULTS, NOT_COVERED = range(3)
LISTED = {0x560: "IA32_RTIT_OUTPUT_BASE", 0x561: "IA32_RTIT_OUTPUT_MASK_PTRS",
          0x570: "IA32_RTIT_CTL", 0x571: "IA32_RTIT_STATUS", 0x572: "IA32_RTIT_CR3_MATCH",
          **{0x580 + at: f"IA32_RTIT_ADDR{at // 2}_{'AB'[at % 2]}" for at in range(8)}}
assert all(next(iter(register(name).values()))["address_hex"] == f"{at:X}"
           for at, name in LISTED.items())
ranges = [enumerated(register(f"IA32_RTIT_ADDR{n}_A")["Address"]["present_if"], capability_words)
          for n in range(4)]
absence = [
    ("REG-001", And(is_pt, Not(has_pt))),
    ("REG-012", And(between(0x560, 0x561), Not(Or(bit(ecx, 0), bit(ecx, 2))))),
    ("REG-013", And(index == 0x572, Not(bit(ebx, 0)))),
    ("REG-014", Or(*[And(between(0x580 + 2 * n, 0x581 + 2 * n), Not(ranges[n]))
                     for n in range(4)])),
    ("REG-017", And(is_pt, And(*[index != at for at in LISTED]))),
]


def access(found, rules):
    """The outcome and its rule."""
    what, why = bits(found, 15, 0), bits(found, 31, 16)
    faults = Or(*[holds for _, holds in rules])
    return And(what == If(covered, If(faults, number(FAULTS, 16), number(ALLOWED, 16)),
                          number(NOT_COVERED, 16)),
               Implies(Not(covered), why == 0),
               Implies(covered, is_one_of(why, rules)))


@statement("RDMSR: the outcome and the rule, of all indexes and capability words (REG-001, "
           "REG-002, REG-011..015, REG-017)",
           mutant=(ROWS, "msr.number >= 2 * caps.address_ranges()",
                   "msr.number > 2 * caps.address_ranges()"))
def check_read(f):
    return access(f.check_read(*words, index, cpl), [("REG-002", cpl != 0), *absence])


@statement("WRMSR: the outcome and the rule, of all indexes, values, capability words, of all "
           "values of IA32_RTIT_CTL before, inside and outside VMX operation, in both policies",
           mutant=(CHECK, "(detail::staying_enabled(state, ctl) != 0 || !access", "(!access"))
def check_write(f):
    now, in_vmx, only_enabling = var("now"), flag("in_vmx"), flag("only_enabling")
    found = f.check_write(*words, now, in_vmx, only_enabling, index, value, cpl)
    exists = And(*[Not(holds) for _, holds in absence])
    is_ctl = And(exists, index == 0x570)
    changed = And(is_ctl, value != now)
    rules = [("REG-002", cpl != 0), *absence,
             ("REG-121", And(is_ctl, in_vmx, Not(bit(capability_words["IA32_VMX_MISC"], 14)),
                             Or(Not(only_enabling), bit(value, 0)))),
             ("REG-021", And(changed, bit(now, 0), bit(value, 0))),
             *[(name, And(changed, holds)) for name, holds in ctl_rules(value)],
             ("REG-004", And(exists, is_pt, index != 0x570, bit(now, 0))),
             *[(name, And(exists, index == 0x571, holds)) for name, holds in status_rules(value)],
             ("REG-070", And(exists, index == 0x560, Not(is_legal_base(value)))),
             ("REG-074", And(exists, index == 0x572, bits(value, 4, 0) != 0)),
             ("REG-076", And(exists, between(0x580, 0x587), Not(is_canonical_in(value)))),
             ("REG-203", index == 0x38E),
             ("REG-204", And(between(0x390, 0x391), bit(value, 55),
                             Not(And(has_pt, bit(ecx, 0))))),
             ("REG-006", And(between(0x390, 0x391), Or(
                 value & reserved_mask("IA32_PERF_GLOBAL_STATUS_SET") != 0,
                 And(bit(value, 54),
                     bits(capability_words["IA32_PERF_CAPABILITIES"], 11, 8) != 0xF)))),
             ("REG-140", And(index == 0xDA0, bit(value, 8),
                             Not(And(bit(capability_words["0DH.1:EAX"], 3),
                                     bit(capability_words["0DH.1:ECX"], 8))))),
             ("REG-006", And(index == 0x1D9, value & reserved_mask("IA32_DEBUGCTL") != 0))]
    return linear_is_known, access(found, rules)
