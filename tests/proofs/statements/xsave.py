# SPDX-License-Identifier: BSL-1.0
"""Statements about XSAVES and XRSTORS of component 8 (REG-141..148), from XSAVE_PT_STATE in
registers.csv."""

from claims import (And, If, Implies, Not, Or, bit, bits, capability_words, enumerated, mask,
                    number, register, rule, statement, table, var)
from statements.access import (ctl_rules, is_canonical_in, is_legal_base, is_one_of,
                               linear_is_known, status_rules)

words = tuple(capability_words.values())
XSAVE = "access/xsave.hpp"
SAVED = [row["field"] for row in table("registers.csv")
         if row["register"].startswith("XSAVE_PT_STATE+") and row["field"] != "Reserved"]
INDEX = {name: int(next(iter(register(name).values()))["address_hex"], 16) for name in SAVED}
assert [int(row["address_hex"], 16) for row in table("registers.csv")
        if row["register"].startswith("XSAVE_PT_STATE+")] == list(range(0, 128, 8))

ebx, ecx = capability_words["14H.0:EBX"], capability_words["14H.0:ECX"]
has_pt = bit(capability_words["07H.0:EBX"], 25)
state, image = var("state", 64 * 9), var("image", 64 * 16)


def quadword(of, at):
    return bits(of, 64 * at + 63, 64 * at)


def value_of(of, name):
    return quadword(of, SAVED.index(name))


def absence(name):
    """The rules of an MSR that the processor lacks, as (rule, condition)."""
    found = [("REG-001", Not(has_pt))]
    if "OUTPUT" in name:
        found.append(("REG-012", Not(Or(bit(ecx, 0), bit(ecx, 2)))))
    elif "CR3" in name:
        found.append(("REG-013", Not(bit(ebx, 0))))
    elif "ADDR" in name:
        condition = register(name)["Address"]["present_if"]
        found.append(("REG-014", Not(enumerated(condition, capability_words))))
    return found


def exists(name):
    return And(*[Not(holds) for _, holds in absence(name)])


FORCED = mask([row for row in register("IA32_RTIT_OUTPUT_MASK_PTRS").values()
               if row["access"] == "forced-1"])
IGNORED = mask([row for row in register("IA32_RTIT_STATUS").values()
                if row["access"] == "w-ignored"])
TRIGGER_EN = mask([register("IA32_RTIT_STATUS")["TriggerEn"]])


@statement("XSAVES stores the MSRs that exist at the offsets of registers.csv and 0 elsewhere; CTL "
           "with TraceEn, which is 0 afterwards, with TriggerEn (REG-056, REG-141, REG-142)",
           mutant=("access/effect.hpp", "ia32_rtit_status::TriggerEn{false}",
                   "ia32_rtit_status::ContextEn{false}"))
def xsaves(f):
    after, stored = f.xsaves(*words, state, var("to", 64 * 16)).memory
    wanted = {name: value_of(state, name) for name in SAVED}
    wanted["IA32_RTIT_CTL"] &= ~number(1)
    wanted["IA32_RTIT_STATUS"] &= ~number(TRIGGER_EN)
    claimed = [value_of(after, name) == wanted[name] for name in SAVED]
    wanted["IA32_RTIT_CTL"] = value_of(state, "IA32_RTIT_CTL")
    claimed += [value_of(stored, name) == If(Or(exists(name), name == "IA32_RTIT_CTL"),
                                             wanted[name], number(0)) for name in SAVED]
    return And(*claimed, bits(stored, 1023, 64 * len(SAVED)) == 0)


@statement("an image is initial if and only if all MSRs are 0, or MASK_PTRS is 7FH (REG-147)",
           mutant=(XSAVE, "if (value != 0 && value != value_of(msr_state{}, msr.index))",
                   "if (value != value_of(msr_state{}, msr.index))"))
def is_initial(f):
    zero = [value_of(image, name) == 0 for name in SAVED if "MASK" not in name]
    pointers = value_of(image, "IA32_RTIT_OUTPUT_MASK_PTRS")
    return f.is_initial(image).value == And(*zero, Or(pointers == 0, pointers == FORCED))


def value_rules(name, value):
    """The rules that a value of an MSR breaks, while TraceEn is 0."""
    if name == "IA32_RTIT_CTL":
        return ctl_rules(value)
    if name == "IA32_RTIT_STATUS":
        return status_rules(value)
    if name == "IA32_RTIT_OUTPUT_BASE":
        return [("REG-070", Not(is_legal_base(value)))]
    if name == "IA32_RTIT_CR3_MATCH":
        return [("REG-074", bits(value, 4, 0) != 0)]
    if "ADDR" in name:
        return [("REG-076", Not(is_canonical_in(value)))]
    return []


def refusals(name, of, now):
    """The rules by which XRSTORS refuses a quadword: a zero of an MSR that is absent is skipped."""
    value = value_of(of, name)
    changed = Or(name != "IA32_RTIT_CTL", value != value_of(now, name))
    return ([(why, And(value != 0, holds)) for why, holds in absence(name)] +
            [(why, And(exists(name), changed, holds)) for why, holds in value_rules(name, value)])


@statement("XRSTORS refuses while TraceEn is 1, reserved quadwords, and each quadword that WRMSR "
           "refuses, the first of them; else it loads the MSRs that exist but CTL (REG-143..145)",
           slow=True, mutant=(XSAVE, "result && msr.index != ia32_rtit_ctl::address && exists",
                              "result && exists"))
def xrstors_except_ctl(f):
    found = f.xrstors_except_ctl(*words, state, image)
    verdict, why, msr = (bits(found.value, 15, 0), bits(found.value, 31, 16),
                         bits(found.value, 63, 32))
    on = bit(value_of(state, "IA32_RTIT_CTL"), 0)
    reserved = bits(image, 1023, 64 * len(SAVED)) != 0
    refused = {name: Or(*[holds for _, holds in refusals(name, image, state)]) for name in SAVED}
    wanted, claimed = If(on, number(rule("REG-143"), 16),
                         If(Or(reserved, *refused.values()), number(rule("REG-144"), 16),
                            number(0, 16))), []
    checked, earlier = And(Not(on), Not(reserved)), []
    for name in SAVED:
        first = And(checked, refused[name], *earlier)
        claimed.append(Implies(first, And(msr == INDEX[name],
                                          is_one_of(why, refusals(name, image, state)))))
        earlier.append(Not(refused[name]))
    claimed.append(Implies(Not(And(checked, Or(*refused.values()))), And(msr == 0, why == 0)))
    after = found.memory[0]
    for name in SAVED:
        old, loaded = value_of(state, name), value_of(image, name)
        if "MASK" in name:
            loaded |= FORCED
        if "STATUS" in name:
            loaded = loaded & ~number(IGNORED) | old & IGNORED
        new = If(And(wanted == 0, exists(name), name != "IA32_RTIT_CTL"), loaded, old)
        claimed.append(value_of(after, name) == new)
    return linear_is_known, And(verdict == wanted, *claimed)


@statement("XRSTORS of the initial state: all MSRs 0, MASK_PTRS 7FH; refused while TraceEn is 1 "
           "(REG-143, REG-146)",
           mutant=(XSAVE, "set_raw(next, msr.index, value_of(msr_state{}, msr.index))",
                   "set_raw(next, msr.index, msr.quadword == 8 ? 1 : 0)"))
def xrstors_init(f):
    found = f.xrstors_init(state)
    on = bit(value_of(state, "IA32_RTIT_CTL"), 0)
    initial = [value_of(found.memory[0], name) == (FORCED if "MASK" in name else 0)
               for name in SAVED]
    return And(found.value == If(on, number(rule("REG-143"), 32), number(0, 32)),
               Implies(on, found.memory[0] == state), Implies(Not(on), And(*initial)))


@statement("XRSTORS needs the compacted form, XSTATE_BV within XCOMP_BV, and PT in IA32_XSS "
           "(REG-148)",
           mutant=(XSAVE, "(present.raw & ~format.raw) == 0", "(format.raw & ~present.raw) == 0"))
def check_header(f):
    present, layout, xss = var("xstate_bv"), var("xcomp_bv"), var("xss")
    right = And(bit(layout, 63), present & ~layout == 0, Or(Not(bit(layout, 8)), bit(xss, 8)))
    return f.check_header(present, layout, xss) == If(right, number(0, 32),
                                                      number(rule("REG-148"), 32))
