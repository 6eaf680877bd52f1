# SPDX-License-Identifier: BSL-1.0
"""Statements about time (packets.md, section 17). N is MTCFreq, W is 2^(N+8)."""

from z3 import Int, LShR, UDiv

from claims import (And, If, Or, UGE, ULE, ULT, bits, by_value, number, statement,
                    var, wide)

EDGE = "trace/crystal_edge.hpp"
freq, ctc, fc = var("N", 8), var("ctc", 16), var("FC", 16)
one, two, mtc = var("one", 8), var("two", 8), var("mtc", 32)
tsc, zero = var("tsc"), var("zero")


def by_freq(make, width=32):
    return by_value(freq, range(16), make)


def counted(name):
    """The counter at an MTC."""
    return by_freq(lambda n: wide(name, 32) << n)


def modulo(value):
    return by_freq(lambda n: value & (1 << n + 8) - 1)


@statement("MTC: the periods since the last count, modulo 256, for all MTCFreq; the count becomes "
           "that of the MTC (PKT-101, PKT-304, PKT-306, PKT-307)",
           mutant=(EDGE, "low_bits32(mtc_freq_ + 8U);\n        ctc_ = ctc;",
                   "low_bits32(mtc_freq_ + 7U);\n        ctc_ = ctc;"))
def periods(f):
    start = var("from", 32)
    found = f.periods(freq, start, mtc, var("to", 64))
    payload = by_freq(lambda n: bits(start, n + 7, n))
    delta = modulo(by_freq(lambda n: mtc << n) - start)
    return (And(ULE(freq, 15), ULE(mtc, 255)),
            And(found.value == by_freq(lambda n: LShR(delta, n)),
                bits(found.memory[0], 31, 0) == by_freq(lambda n: mtc << n),
                bits(found.memory[0], 63, 32) == wide(payload, 32)))


def reference(n, first):
    """The count at a TMA: PKT-303, and PKT-308 where TMA lacks bits."""
    low, count = wide(ctc, 32), wide(first, 32) << n
    if n <= 8:
        return low & (1 << n + 8) - 1
    high = count & 0xFFFF0000
    return If(ULT(count & 0xFFFF, low), high - 0x10000, high) + low


@statement("TSC and TMA: the base is TSC - FC, and an MTC adds to it what it adds to 0 "
           "(PKT-302..304)",
           mutant=(EDGE, "restart(tsc < fast ? 0 : tsc - fast);", "restart(tsc);"), slow=True)
def base(f):
    claimed = []
    for n in range(16):
        from_0 = f.times_2_84(n, 0, ctc, 0, one, two, var("to", 192)).memory[0]
        from_tsc = f.times_2_84(n, tsc, ctc, fc, one, two, var("to", 192)).memory[0]
        claimed.append((And(ULE(fc, 511), UGE(tsc, 511)),
                        And(bits(from_tsc, 63, 0) == tsc - wide(fc),
                            bits(from_tsc, 127, 64) == tsc - wide(fc) + bits(from_0, 127, 64))))
    return claimed


def add_times(a, b, mutant):
    @statement(f"TMA and two MTCs where A/B is {a}/{b}: the sum since the TMA is converted, of all "
               "payloads and MTCFreq (PKT-303..308)", mutant=mutant, slow=True)
    def times(f):
        claimed = []
        for n in range(16):
            first = bits((wide(one, 32) << n) - reference(n, one), n + 7, 0)
            second = bits((wide(two, 32) << n) - (wide(one, 32) << n), n + 7, 0)
            to = getattr(f, f"times_{a}_{b}")(n, 0, ctc, 0, one, two, var("to", 192)).memory[0]

            def time(count):
                return wide(UDiv(count * b, number(a, 40)))

            claimed += [bits(to, 127, 64) == time(wide(first, 40)),
                        bits(to, 191, 128) == time(wide(first, 40) + wide(second, 40))]
        return claimed


UPPER = (EDGE, "if ((ctc & 0xFFFF) < ctc_)", "if ((ctc & 0xFFFF) <= ctc_)")
add_times(2, 84, UPPER)
add_times(2, 176, UPPER)
add_times(2, 83, (EDGE, "remainder_ = sum - ticks * denominator_;", "remainder_ = 0;"))


@statement("MTC: the short way of whole ticks equals the long one (PKT-304)",
           mutant=(EDGE, "base_ += periods * period_ticks_;", "base_ += period_ticks_;"))
def regular(f):
    to = f.regular_periods(freq, tsc, ctc, fc, one, var("to", 384)).memory[0]
    return And(ULE(freq, 15), ULE(fc, 511)), bits(to, 191, 0) == bits(to, 383, 192)


@statement("TMA: the next MTC is the next edge, as far as its 16 bits tell (PKT-303, PKT-308)",
           mutant=(EDGE, "mtc_freq_ > 8 ? 16U -", "mtc_freq_ > 8 ? 15U -"))
def next_may_be(f):
    payload = var("payload", 16)
    edge = by_freq(lambda n: (LShR(ctc, n) + 1 - payload) & ((1 << min(8, 16 - n)) - 1) == 0)
    return And(ULE(freq, 15), ULE(payload, 255)), f.next_may_be(freq, ctc, payload) == edge


@statement("a TSC of 56 bits becomes the value within 2^55 of a reference (PKT-315)",
           mutant=("trace/time_conversion.hpp", "near_by < wrap - step", "near_by + step < wrap"))
def tsc_near(f):
    near = var("near")
    found = f.tsc_near(tsc, near)
    inside = And(UGE(near, 1 << 55), ULE(near, (1 << 64) - (1 << 55)))
    return (And(ULT(tsc, 1 << 56), inside),
            And(bits(found, 55, 0) == bits(tsc, 55, 0),
                Or(ULT(found - near, 1 << 55), ULE(near - found, 1 << 55))))


def add_ns(mhz, mutant):
    @statement(f"nanoseconds of a TSC of {mhz} MHz: zero + TSC * mult / 2^shift, in full width",
               mutant=mutant)
    def ns(f):
        shift = max(n for n in range(32) if (10**9 << n) // (mhz * 10**6) < 1 << 32)
        mult = (10**9 << shift) // (mhz * 10**6)
        high, low = LShR(tsc, shift), tsc & (1 << shift) - 1
        # In two parts, without overflow of the lower one; and over integers, that the parts give
        # the whole, whatever their sizes.
        parts = getattr(f, f"ns_at_{mhz}_mhz")(tsc, zero) == \
            zero + high * mult + LShR(low * mult, shift)
        exact = LShR(wide(low, 128) * mult, 64) == 0
        h, lower = Int("high"), Int("low")
        whole = (h * 2**shift + lower) * mult / 2**shift == h * mult + lower * mult / 2**shift
        return [parts, exact, (And(h >= 0, lower >= 0), whole)]


add_ns(1008, ("trace/time_conversion.hpp", "(uint64_t{1} << shift) - 1)",
              "(uint64_t{1} << shift))"))
add_ns(2112, ("trace/time_conversion.hpp", "+ ((low * mult) >> shift)", ""))
