#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Parses the worked cases TC of tracing.md, by the grammar of notation.md, section 3.

    tc_cases.py [SPEC]        prints the parsed rows
    tc_cases.py --self-test   breaks the notation in many ways; each change must be rejected

Setup and events remain text: the program that executes them parses and checks them. The expected
packets are split into packets and claims, and each must be a known one.
"""

import collections
import re
import sys

import spec_page
from spec_page import SPEC, NotationError, refused, split_outside

HEAD = ("id", "setup (changes to S0)", "events", "expected packets", "rules")

# `parts` has an item for each processor: events, packets, claims (name, value).
Case = collections.namedtuple("Case", "id setup parts rules")
Part = collections.namedtuple("Part", "events packets claims")

HEX, BIT = r"[0-9A-F]+", "[01]"
# The packets of GEN-002, with the possible text in parentheses. Without it no payload is claimed.
PACKETS = {
    "TNT": f"{BIT}+", "TIP": HEX, "TIP.PGE": HEX, "TIP.PGD": f"(?:{HEX})?", "FUP": HEX,
    "PIP": f"{HEX},NR={BIT}", "VMCS": HEX, "MODE.Exec": rf"(?:16|32|64)(?:,IF={BIT})?",
    "MODE.TSX": f"InTX={BIT},TXAbort={BIT}", "TSC": None, "TMA": None, "CBR": None, "MTC": HEX,
    "CYC": r"\d+|\?", "PSB": None, "PSBEND": None, "OVF": None, "TraceStop": None,
    "PTW": f"IP={BIT},[48]B,{HEX}", "MWAIT": f"{HEX},{HEX}", "PWRE": r"C\d+(?:\.\d+)?(?:,HW)?",
    "EXSTOP": f"IP={BIT}", "PWRX": rf"C\d+,C\d+,{HEX}",
    "CFE": f"[A-Z_]+(?::{HEX})?,IP={BIT}", "EVD": f"(?:PFA|VMXQ|VMXR):{HEX}",
}
CLAIMS = {"pending": f"{BIT}+", "TriggerEn": BIT, "Stopped": BIT, "TraceEn": BIT, "shutdown": "1"}


def packet(text):
    found = re.fullmatch(r"([A-Za-z.]+)(?:\((.*)\))?(?: x([1-9]\d*))?", text, re.A)
    name, inside, times = found.groups() if found else (None, None, None)
    if name not in PACKETS:
        raise NotationError(f"{text!r} is no packet")
    if inside is not None and (PACKETS[name] is None
                               or not re.fullmatch(PACKETS[name], inside, re.A)):
        raise NotationError(f"{inside!r} does not stand in a {name}")
    return [name + ("" if inside is None else f"({inside})")] * int(times or 1)


def claim(text):
    name, _, value = text.partition("=")
    if name not in CLAIMS or not re.fullmatch(CLAIMS[name], value, re.A):
        raise NotationError(f"{text!r} is no claim")
    return name, value


def expected(text):
    """Packets, followed by claims. There may be claims without packets."""
    groups = split_outside(text, ("; ",), "()")
    items = [split_outside(group, (", ",), "()") for group in groups]
    if items[0] == ["none"]:
        first = []
    else:
        first = [one for item in items[0] for one in packet(item)]
    return first, [claim(item) for group in items[1:] for item in group]


def parts(events, wanted, two):
    if not two:
        return [Part(events, *expected(wanted))]
    both = []
    for text in (events, wanted):
        found = re.fullmatch(r"A: (.+) / B: (.+)", text)
        if not found:
            raise NotationError(f"{text!r} is not of two processors")
        both.append(found.groups())
    return [Part(one, *expected(two)) for one, two in zip(*both)]


def read_row(row, rules):
    with spec_page.naming(row[0]):
        _, setup, events, wanted, cited = row
        if not events:
            raise NotationError("no event")
        numbers = ["GEN-" + item for item in cited.split(",")]
        if unknown := [rule for rule in numbers if rule not in rules]:
            raise NotationError(f"no rule {unknown[0]}")
        return Case(row[0], setup, parts(events, wanted, setup == "LP=A+B"), numbers)


def read_cases(catalogue, text=None):
    rows = spec_page.table_below(text or catalogue.page("tracing.md"), "## 13. Worked cases", HEAD)
    cases = [read_row(row, catalogue.rules) for row in rows]
    for at, case in enumerate(cases, 1):
        if case.id != f"TC-{at:02}":
            raise NotationError(f"{case.id} stands where TC-{at:02} belongs")
    return cases


# ------------------------------------------------------------------------------------- self-test

SPOILT = ["TIP(2000", "TIP(2000),", "TIP(2000) x0", "TIP(20G0)", "Tip(2000)", "TNT()", "TNT(2)",
          "TIP.PGE()", "FUP()", "MODE.Exec(48)", "PIP(1000)", "CYC(A)", "TSC(1)", "", "none, TIP",
          "TIP; pending", "TIP; pending=2", "TIP; Nothing=1", "TIP;pending=1", "PWRE(6)",
          "CFE(INTR:E)", "EVD(CR2:0)", "PTW(IP=0,2B,1)", "A: TIP / B: TIP"]


def self_test():
    catalogue = spec_page.Catalogue(SPEC)
    cases = read_cases(catalogue)
    wrong = [f"is read: {cell!r}" for cell in SPOILT
             if not refused(read_row, ("TC-01", "", "NOP", cell, "120"), catalogue.rules)]
    for row in (("TC-01", "", "", "none", "120"), ("TC-01", "", "NOP", "none", "999"),
                ("TC-01", "LP=A+B", "NOP", "A: none / B: none", "120"),
                ("TC-01", "LP=A+B", "A: NOP / B: NOP", "none", "120")):
        wrong += [f"is read: {row}"] * (not refused(read_row, row, catalogue.rules))
    page = catalogue.page("tracing.md")
    for old, new in (("| TC-07 |", "| TC-08 |"), ("| TC-07 |", "TC-07 |"), ("## 13. ", "## 15. ")):
        wrong += [f"is read: {old!r} as {new!r}"] * (
            not refused(read_cases, catalogue, page.replace(old, new, 1)))
    read = read_row(("TC-11", "", "65 x RET", "TNT(1) x2, TIP(505); pending=1, Stopped=0", "131"),
                    catalogue.rules)
    if read.parts != [Part("65 x RET", ["TNT(1)", "TNT(1)", "TIP(505)"],
                           [("pending", "1"), ("Stopped", "0")])]:
        wrong.append(f"is read as {read}")
    print("\n".join(wrong) if wrong else
          f"self-test: {len(cases)} rows read, {len(SPOILT) + 7} mistakes refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(spec_page.main(__doc__, self_test,
                            lambda *spec: read_cases(spec_page.Catalogue(*spec))))
