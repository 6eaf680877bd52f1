# SPDX-License-Identifier: BSL-1.0
"""Statements about the fields of packets: their places are those of packets.csv."""

import re

from claims import And, Concat, Implies, bits, statement, table, var, wide

raw, value, which = var("raw", 128), var("value"), var("which", 32)


def fields(row):
    """The fields of a packet in the order of their bits, as (first bit, last bit, lowest bit of an
    address). Several ranges of one field are joined, and payloads of variable length left out."""
    found = {}
    for name, low, first, last in re.findall(
            r"(?:^|;)([a-z0-9]+)(?:\[\d+:(\d+)\])?:(\d+\.\d(?=$|;| |\.\.))(?:\.\.(\d+\.\d))?",
            re.sub(r" \([^)]*\)", "", row["fields"])):
        first, last = (8 * int(one[:-2]) + int(one[-1]) for one in (first, last or first))
        if name in ("rsvd", "leaf", "icnt") or name == "payload" and row["name"] not in (
                "MNT", "EVD"):
            continue
        before = found.get(name)
        found[name] = (before[0], last, before[2]) if before else (first, last, int(low or 0))
    return sorted(found.values())


PACKETS = [(row["cpp_name"].split(";")[0], fields(row)) for row in table("packets.csv")
           if fields(row)]
words = bits(raw, 63, 0), bits(raw, 127, 64)


@statement("the fields of every packet are the bits of packets.csv; of an address, its upper bits "
           "(PKT-030, 034, 050, 080, 085..088, 100..108, 162, 170, 180..187, 200..204, 220..227, "
           "240)", mutant=("packet/pip.hpp", "field<63, 17, 5>", "field<63, 17, 6>"))
def places(f):
    claimed = []
    for name, rows in PACKETS:
        to = getattr(f, f"values_{name}")(*words, var("to", 320)).memory[0]
        claimed.append(And(*[bits(to, 64 * at + 63, 64 * at) ==
                             wide(bits(raw, last, first)) << low
                             for at, (first, last, low) in enumerate(rows)]))
    return claimed


@statement("a packet with another value in a field has the same other bits (PKT-001)",
           mutant=("base/bits.hpp", "value{address.value & address_mask}", "value{address.value}"))
def independent(f):
    claimed = []
    for name, rows in PACKETS:
        made = getattr(f, f"with_{name}")(*words, which, value, var("to", 128)).memory[0]
        size = 128 if 8 * 8 < max(last for _, last, _ in rows) else 64
        for at, (first, last, low) in enumerate(rows):
            width = last - first + 1
            part = wide(bits(value, min(63, low + width - 1), low), width)
            whole = [one for one in (bits(raw, 127, last + 1) if last < 127 else None, part,
                                     bits(raw, first - 1, 0) if first else None)
                     if one is not None]
            claimed.append(Implies(which == at, bits(made, 63, 0) ==
                                   bits(Concat(*whole) if len(whole) > 1 else whole[0], 63, 0)))
            if size == 128:
                claimed.append(Implies(which == at, bits(made, 127, 64) == bits(
                    Concat(*whole) if len(whole) > 1 else whole[0], 127, 64)))
    return claimed
