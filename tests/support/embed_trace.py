#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Converts a recorded trace and its golden listing to a C++ header, for a test in constant
expressions.

    embed_trace.py NAME OUTPUT

Without the folder of traces, the header only says that they are missing.
"""

import csv
import json
import pathlib
import sys

import traces

SPEC = pathlib.Path(__file__).resolve().parents[1] / "spec"
# Packet names in listings that differ from the packet's name in lower case.
LISTED = {"TNT.short": "tnt.8", "TNT.long": "tnt.64", "TraceStop": "stop"}


def kinds():
    with open(SPEC / "packets.csv", encoding="utf-8", newline="") as file:
        return [LISTED.get(row["name"], row["name"].lower()) for row in csv.DictReader(file)]


def header(name):
    where = traces.folder()
    if not (where / "README.md").is_file():
        return "#define PTSPEC_NO_TRACES 1\n"
    summary = json.loads((where / f"{name}.summary.json").read_text())
    listing = traces.read(where / f"{name}.packets").decode()
    # The sum of rotated IPs depends on their order. `-` stands for no IP.
    checksum = 0
    for line in listing.split("\n"):
        fields = dict(f.split("=") for f in line.split(" ")[2:] if "=" in f)
        if "payload" in fields and "ipc" in fields and fields["ip"] != "-":
            checksum = (checksum * 31 + int(fields["ip"], 16)) % 2**64
    counts = [summary["packets_by_type"].get(kind, 0) for kind in kinds()]
    data = traces.read(where / f"{name}.pt")
    rows = [",".join(str(byte) for byte in data[i:i + 64]) for i in range(0, len(data), 64)]
    return (f"inline constexpr std::uint64_t golden_packets = {summary['packets']};\n"
            f"inline constexpr std::uint64_t golden_checksum = {checksum}U;\n"
            f"inline constexpr std::uint64_t golden_by_kind[] = {{{','.join(map(str, counts))}}};\n"
            "inline constexpr std::uint8_t recorded_trace[] = {\n" + ",\n".join(rows) + "};\n")


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_text(header(sys.argv[1]))
