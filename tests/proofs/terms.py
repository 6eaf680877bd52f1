# SPDX-License-Identifier: BSL-1.0
"""Values of LLVM IR as Z3 terms, and the operations on them."""

import collections

import z3

Bits = collections.namedtuple("Bits", "term poison")
# Each choice is (condition, object, offset): the offset is an int, or a term of 64 bits.
Pointer = collections.namedtuple("Pointer", "choices poison")
# The bytes of a pointer in memory.
PointerByte = collections.namedtuple("PointerByte", "pointer at")

NO, YES = z3.BoolVal(False), z3.BoolVal(True)


def any_of(*terms):
    terms = [one for one in terms if not one.eq(NO)]
    if any(one.eq(YES) for one in terms):
        return YES
    return NO if not terms else terms[0] if len(terms) == 1 else z3.Or(*terms)


def all_of(*terms):
    terms = [one for one in terms if not one.eq(YES)]
    if any(one.eq(NO) for one in terms):
        return NO
    return YES if not terms else terms[0] if len(terms) == 1 else z3.And(*terms)


def negated(term):
    return NO if term.eq(YES) else YES if term.eq(NO) else z3.Not(term)


def choose(condition, one, other):
    """One of two values of the same kind."""
    if one is other or condition.eq(YES):
        return one
    if condition.eq(NO):
        return other
    if isinstance(one, Bits):
        return Bits(choose(condition, one.term, other.term),
                    choose(condition, one.poison, other.poison))
    if isinstance(one, PointerByte) or isinstance(other, PointerByte):
        whole = [part.pointer if isinstance(part, PointerByte) else Pointer([], YES)
                 for part in (one, other)]
        return PointerByte(choose(condition, *whole),
                           one.at if isinstance(one, PointerByte) else other.at)
    if isinstance(one, Pointer):
        return Pointer([(all_of(condition, when), *place) for when, *place in one.choices] +
                       [(all_of(negated(condition), when), *place)
                        for when, *place in other.choices],
                       choose(condition, one.poison, other.poison))
    if isinstance(one, (list, tuple)):
        return [choose(condition, *pair) for pair in zip(one, other, strict=True)]
    return one if one.eq(other) else z3.If(condition, one, other)


def folded(term):
    """The number that a term of constants is."""
    return z3.simplify(term) if all(map(z3.is_bv_value, term.children())) else term


def bits(condition):
    if z3.is_true(condition) or z3.is_false(condition):
        return z3.BitVecVal(z3.is_true(condition), 1)
    return z3.If(condition, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


def number(value, width):
    return Bits(z3.BitVecVal(value, width), NO)


def is_set(term):
    """The condition that a term of one bit is 1."""
    if z3.is_bv_value(term):
        return z3.BoolVal(term.as_long() == 1)
    if term.decl().kind() == z3.Z3_OP_ITE and z3.is_bv_value(term.arg(1)) and \
            z3.is_bv_value(term.arg(2)) and term.arg(1).as_long() > term.arg(2).as_long():
        return term.arg(0)
    return term == 1


def counted(x):
    """The number of bits that are 1."""
    return sum((z3.ZeroExt(x.size() - 1, z3.Extract(i, i, x)) for i in range(x.size())),
               z3.BitVecVal(0, x.size()))


def first_one(x, places):
    """The number of zeros before the first 1 of the bits at `places`, in that order."""
    found = z3.BitVecVal(x.size(), x.size())
    for zeros, at in reversed(list(enumerate(places))):
        found = z3.If(z3.Extract(at, at, x) == 1, z3.BitVecVal(zeros, x.size()), found)
    return found


def rotated(high, low, by, left):
    """The funnel shifts: the amount is taken modulo the width."""
    width = high.size()
    by = z3.ZeroExt(width, z3.URem(by, z3.BitVecVal(width, width)))
    both = z3.Concat(high, low)
    if left:
        return z3.Extract(2 * width - 1, width, both << by)
    return z3.Extract(width - 1, 0, z3.LShR(both, by))


def overflow(wide, operation):
    """An operation and whether it overflows, computed in twice the width."""
    def made(a, b):
        narrow = operation(a, b)
        return narrow, operation(wide(a.size(), a), wide(a.size(), b)) != wide(a.size(), narrow)
    return made


WIDER = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
         "shl": lambda a, b: a << b}
BINARY = {**WIDER, "udiv": z3.UDiv, "urem": z3.URem, "and": lambda a, b: a & b,
          "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "lshr": z3.LShR,
          "ashr": lambda a, b: a >> b}
COMPARE = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "ult": z3.ULT, "ule": z3.ULE,
           "ugt": z3.UGT, "uge": z3.UGE, "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b,
           "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b}
INTRINSICS = {
    "ctpop": counted,
    "ctlz": lambda x, poison: (first_one(x, range(x.size())[::-1]), all_of(poison == 1, x == 0)),
    "cttz": lambda x, poison: (first_one(x, range(x.size())), all_of(poison == 1, x == 0)),
    "bswap": lambda x: z3.Concat(*[z3.Extract(i + 7, i, x) for i in range(0, x.size(), 8)]),
    "umin": lambda a, b: z3.If(z3.ULT(a, b), a, b),
    "umax": lambda a, b: z3.If(z3.UGT(a, b), a, b),
    "smin": lambda a, b: z3.If(a < b, a, b),
    "smax": lambda a, b: z3.If(a > b, a, b),
    "abs": lambda x, poison: (z3.If(x < 0, -x, x), all_of(poison == 1, x << 1 == 0, x != 0)),
    "fshl": lambda a, b, by: rotated(a, b, by, True),
    "fshr": lambda a, b, by: rotated(a, b, by, False),
    "usub.sat": lambda a, b: z3.If(z3.ULT(a, b), z3.BitVecVal(0, a.size()), a - b),
    "uadd.sat": lambda a, b: z3.If(z3.ULT(a + b, a), z3.BitVecVal(-1, a.size()), a + b),
    **{sign + name + ".with.overflow": overflow(wide, WIDER[name])
       for sign, wide in (("u", z3.ZeroExt), ("s", z3.SignExt)) for name in ("add", "sub", "mul")},
}
