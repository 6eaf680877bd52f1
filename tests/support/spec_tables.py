#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Turns tables of the catalogue into arrays that a constant expression can read.

    spec_tables.py packets SPEC OUTPUT    writes the header OUTPUT from SPEC/packet_vectors.csv and
                                          SPEC/opcode_map.csv
    spec_tables.py cases SPEC OUTPUT      from the worked cases of SPEC/registers.md and the
                                          profiles that they run on

Cells become what the test needs them to be, and nothing more is made of them here.
"""

import csv
import pathlib
import sys

import rc_cases

HEAD = """\
// SPDX-License-Identifier: BSL-1.0
#pragma once

// Made by tests/support/spec_tables.py from tables of the catalogue.

#include <ptspec/lang.hpp>

namespace ptspec::test {
"""

PACKETS = """\

/// A row of packet_vectors.csv.
struct packet_vector {
    text id;
    unsigned char bytes[24];
    unsigned size;
    text name;
    text fields;
    unsigned length;
    unsigned block;
    unsigned long long last_ip;
    int canonical;  ///< -1 where the cell is empty
};

/// A row of opcode_map.csv.
struct opcode_row {
    text space;
    unsigned char byte;
    text packet;
    text length;
    text error;
};
"""

# The kinds of operations and claims, the profiles, the cases and the longest lists are filled in.
CASES = """\

enum class rc_operation : unsigned char {{ {operations} }};
enum class rc_what : unsigned char {{ {claims} }};
enum class rc_profile : unsigned char {{ {profiles} }};
enum class rc : unsigned char {{ {cases} }};

/// What a profile of registers.md enumerates, a column each.
struct rc_profile_row {{
    text name;
    unsigned leaf_07_0_ebx_25;
    unsigned leaf_14_0_eax;
    unsigned leaf_14_0_ebx;
    unsigned leaf_14_0_ecx;
    unsigned leaf_14_1_eax;
    unsigned leaf_14_1_ebx;
    unsigned leaf_14_1_ecx;
    unsigned max_phys_addr;
    unsigned linear_address_bits;
    unsigned vmx_misc_14;
}};

/// `value`, at its place, in the bits `mask` of the MSR `index`, before a case.
struct rc_put {{
    unsigned index;
    unsigned long long mask;
    unsigned long long value;
}};

/// What has to be true after a step.
///
/// gp, no_fault, shutdown: what the step comes to.
/// reads:      RDMSR of `index` gives `value`.
/// holds:      the bits `mask` of the MSR `index` are `value`.
/// stores:     XSAVES stores `value` as the quadword `index`.
/// psb_plus:   0 no, 1 yes, 2 left open. The others: `value` is 0 or 1.
struct rc_claim {{
    rc_what what;
    unsigned index;
    unsigned long long mask;
    unsigned long long value;
}};

/// `index` and `value` of an access; `value` alone of CPL, CR3 and branch; an XRSTORS loads
/// `quadwords`.
struct rc_step {{
    rc_operation operation;
    unsigned index;
    unsigned long long value;
    bool pae;
    unsigned long long quadwords[9];
    unsigned claim_count;
    rc_claim claims[{most_claims}];
}};

/// A row of the worked cases. `separate`: each step starts from the setup, else where the one
/// before it ended.
struct rc_case {{
    text id;
    rc_profile profile;
    bool enclave;
    bool in_vmx;
    bool separate;
    unsigned put_count;
    rc_put puts[{most_puts}];
    unsigned step_count;
    rc_step steps[{most_steps}];
    unsigned rule_count;
    text rules[{most_rules}];
}};
"""


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def quoted(cell):
    if not cell.isascii() or not cell.isprintable() or "\\" in cell or '"' in cell:
        raise ValueError(f"a cell that is no plain text: {cell!r}")
    return f'"{cell}"'


def context(cell):
    """`block=4`, `last_ip=0x..` or nothing, as the two numbers."""
    key, _, value = cell.partition("=")
    if key not in ("", "block", "last_ip"):
        raise ValueError(f"an unknown context: {cell!r}")
    return int(value, 10) if key == "block" else 0, int(value, 16) if key == "last_ip" else 0


def vector(row):
    data = bytes.fromhex(row["bytes_hex"])
    block, last_ip = context(row["ctx"])
    cells = [quoted(row["id"]), "{" + ", ".join(f"0x{byte:02X}" for byte in data) + "}",
             str(len(data)), quoted(row["expected_packet_name"]), quoted(row["expected_fields"]),
             str(int(row["length"])), str(block), f"0x{last_ip:X}",
             {"1": "1", "0": "0", "": "-1"}[row["canonical"]]]
    return "    {" + ", ".join(cells) + "},\n"


def opcode(row):
    cells = [quoted(row["space"]), f"0x{int(row['byte'], 16):02X}",
             *(quoted(row[name]) for name in ("packet", "length", "error"))]
    return "    {" + ", ".join(cells) + "},\n"


def number(value):
    return f"0x{value:X}U" if value >> 32 == 0 else f"0x{value:X}ULL"


def braced(cells):
    return "{" + ", ".join(cells) + "}"


def counted(items, write):
    """A list and how long it is. An array has at least one element."""
    return [str(len(items)), braced([write(item) for item in items])]


def profile(name, words):
    return f"    {braced([quoted(name), *map(number, words)])},\n"


def step(one):
    def claim(made):
        return braced([f"rc_what::{made.what}", *map(number, made[1:])])

    return braced([f"rc_operation::{one.operation}", number(one.index), number(one.value),
                   str(one.pae).lower(), braced(map(number, one.quadwords)),
                   *counted(one.claims, claim)])


def case(row):
    cells = [quoted(row.id), "rc_profile::" + row.profile.replace("-", "_"),
             *(str(flag).lower() for flag in (row.enclave, row.in_vmx, row.separate)),
             *counted(row.puts, lambda put: braced(map(number, put))),
             *counted(row.steps, step), *counted(row.rules, quoted)]
    return f"    {braced(cells)},\n"


def names(items):
    return ", ".join(item.replace("-", "_") for item in items)


def table(kind, name, lines):
    return (f"\ninline constexpr {kind} {name}[] = {{\n{''.join(lines)}}};\n"
            f"inline constexpr unsigned {name}_count = {len(lines)};\n")


def packets(spec):
    return (PACKETS
            + table("packet_vector", "packet_vectors",
                    [vector(row) for row in rows_of(spec / "packet_vectors.csv")])
            + table("opcode_row", "opcode_rows",
                    [opcode(row) for row in rows_of(spec / "opcode_map.csv")]))


def cases(spec):
    catalogue = rc_cases.Catalogue(spec)
    rows = rc_cases.read_cases(catalogue)
    steps = [one for row in rows for one in row.steps]
    kinds = CASES.format(
        operations=names(rc_cases.OPERATIONS), claims=names(rc_cases.CLAIMS),
        profiles=names(catalogue.profiles), cases=names(row.id for row in rows),
        most_claims=max(len(one.claims) for one in steps),
        most_puts=max(1, *(len(row.puts) for row in rows)),
        most_steps=max(len(row.steps) for row in rows),
        most_rules=max(len(row.rules) for row in rows))
    return (kinds + table("rc_profile_row", "rc_profiles",
                          [profile(name, words) for name, words in catalogue.profiles.items()])
            + table("rc_case", "rc_cases", [case(row) for row in rows]))


def main(arguments):
    writers = {"packets": packets, "cases": cases}
    if len(arguments) != 3 or arguments[0] not in writers:
        print(__doc__, file=sys.stderr)
        return 2
    spec, output = map(pathlib.Path, arguments[1:])
    text = HEAD + writers[arguments[0]](spec) + "\n}  // namespace ptspec::test\n"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
