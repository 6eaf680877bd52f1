#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Turns tables of the catalogue into arrays that a constant expression can read.

    spec_tables.py SPEC OUTPUT   writes the header OUTPUT from SPEC/packet_vectors.csv and
                                 SPEC/opcode_map.csv

Cells become what the test needs them to be, and nothing more is made of them here.
"""

import csv
import pathlib
import sys

HEAD = """\
// SPDX-License-Identifier: BSL-1.0
#pragma once

// Made by tests/support/spec_tables.py from tables of the catalogue.

#include <ptspec/lang.hpp>

namespace ptspec::test {

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


def table(kind, name, lines):
    return (f"\ninline constexpr {kind} {name}[] = {{\n{''.join(lines)}}};\n"
            f"inline constexpr unsigned {name}_count = {len(lines)};\n")


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    spec, output = map(pathlib.Path, arguments)
    text = HEAD
    text += table("packet_vector", "packet_vectors",
                  [vector(row) for row in rows_of(spec / "packet_vectors.csv")])
    text += table("opcode_row", "opcode_rows",
                  [opcode(row) for row in rows_of(spec / "opcode_map.csv")])
    text += "\n}  // namespace ptspec::test\n"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
