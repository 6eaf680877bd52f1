#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Converts a trace of tests/traces and its listing to a C++ header, for a test in constant
expressions.

    embed_trace.py NAME OUTPUT
"""

import collections
import csv
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
    lines = traces.shipped(name, "packets").decode().splitlines()
    # The sum of rotated IPs depends on their order. `-` stands for no IP.
    checksum, by_kind = 0, collections.Counter()
    for line in lines:
        _, kind, *rest = line.split(" ")
        by_kind[kind] += not kind.startswith("!")
        fields = dict(f.split("=") for f in rest if "=" in f)
        if "payload" in fields and "ipc" in fields and fields["ip"] != "-":
            checksum = (checksum * 31 + int(fields["ip"], 16)) % 2**64
    data = traces.shipped(name)
    rows = [",".join(str(byte) for byte in data[i:i + 64]) for i in range(0, len(data), 64)]
    counts = ",".join(str(by_kind[kind]) for kind in kinds())
    return (f"inline constexpr std::uint64_t golden_packets = {by_kind.total()};\n"
            f"inline constexpr std::uint64_t golden_checksum = {checksum}U;\n"
            f"inline constexpr std::uint64_t golden_by_kind[] = {{{counts}}};\n"
            "inline constexpr std::uint8_t embedded_trace[] = {\n" + ",\n".join(rows) + "};\n")


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_text(header(sys.argv[1]))
