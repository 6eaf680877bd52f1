#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compares pt_dump and pt_asm with the golden listings, for every trace of the corpus.

    golden.py PT_DUMP PT_ASM LIST_IN_PIECES

The output of pt_dump --strict is equal to each golden listing, except for the rules of damage and
the lines of disagreements.csv. So is the output of pt_dump with three jobs, and of the reader with
the whole trace and with pieces of 1, 7 and 4096 bytes, by next() and by for_each(). pt_asm restores
the trace from each golden listing without damage, except for reserved bits. Cites PKT-185 and, by
the contents of the listings, the reading rules PKT-250..252 and PKT-254.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
import traces  # noqa: E402

# Reserved bits by packet, as (byte, mask): PKT-091, 103, 105, 182, 184, 186, 200, 220, 225, 240.
RESERVED = {
    "mode.exec": [(1, 0x18)], "mode.tsx": [(1, 0x1C)], "tma": [(4, 0xFF), (6, 0xFE)],
    "cbr": [(3, 0xFF)], "pwre": [(2, 0x7F)], "cfe": [(2, 0x60)], "evd": [(2, 0xC0)],
    "pwrx": [(3, 0xF0), (4, 0xFF), (5, 0xFF), (6, 0xFF)], "bbp": [(2, 0x60)], "trig": [(1, 0x1F)],
    "mwait": [(3, 0xFF), (4, 0xFF), (5, 0xFF), (6, 0xFC), (7, 0xFF), (8, 0xFF), (9, 0xFF)],
}


def first_difference(ours, golden):
    for number, (one, two) in enumerate(zip(ours.split("\n"), golden.split("\n")), 1):
        if one != two:
            return f"line {number}\n  ours   {one}\n  golden {two}"
    return "one is longer"


def exit_status(golden):
    last = golden.rstrip("\n").rsplit("\n", 1)[-1]
    return 1 if " errors=0 " not in last else 3 if golden.startswith("00000000 !nosync\n") else 0


def without_reserved_bits(data, listing):
    """The bytes of a trace, with the bits that a listing omits set to 0."""
    out = bytearray(data)
    for line in listing.split("\n"):
        offset, _, rest = line.partition(" ")
        name = rest.partition(" ")[0]
        if name == "!sync":
            out[:int(offset, 16)] = bytes(int(offset, 16))
        for byte, mask in RESERVED.get(name, ()):
            out[int(offset, 16) + byte] &= ~mask & 0xFF
    return bytes(out)


def main():
    pt_dump, pt_asm, list_in_pieces = sys.argv[1:]
    failures, dumped, assembled, used = [], 0, 0, set()
    ways = [(way, str(size)) for way in ("next", "for_each") for size in (0, 1, 7, 4096)]
    with tempfile.TemporaryDirectory() as scratch:
        trace = pathlib.Path(scratch, "trace.pt")
        for name, data, golden, sync in traces.all_traces():
            listing = traces.expected(name, golden, used)
            trace.write_bytes(data)
            options = ["--strict"] if sync else ["--strict", "--no-sync"]
            done = subprocess.run([pt_dump, *options, trace], capture_output=True, text=True)
            dumped += 1
            ours = traces.without_rules(done.stdout)
            if ours != listing:
                failures.append(f"{name}: {first_difference(ours, listing)}")
            elif done.returncode != exit_status(golden):
                failures.append(f"{name}: pt_dump ended with {done.returncode}")
            done = subprocess.run([pt_dump, "--jobs", "3", *options, trace], capture_output=True,
                                  text=True)
            ours = traces.without_rules(done.stdout)
            if ours != listing:
                failures.append(f"{name}, in 3 jobs: {first_difference(ours, listing)}")
            for way, size in ways:
                done = subprocess.run([list_in_pieces, way, size, "sync" if sync else "no-sync",
                                       trace], capture_output=True, text=True)
                if done.stdout != listing:
                    failures.append(f"{name}, {way} in pieces of {size}: "
                                    f"{first_difference(done.stdout, listing)}")
            if " errors=0 " in golden.rstrip("\n").rsplit("\n", 1)[-1] and "!nosync" not in golden:
                done = subprocess.run([pt_asm], input=listing.encode(), capture_output=True)
                assembled += 1
                if done.returncode != 0:
                    failures.append(f"{name}: {done.stderr.decode()}")
                elif done.stdout != without_reserved_bits(data, listing):
                    failures.append(f"{name}: pt_asm gives other bytes")
    unused = set(traces.disagreements()) - used if traces.are_there() else ()
    failures += [f"disagreements.csv: nothing at {row}" for row in sorted(unused)]
    print(f"{dumped} listings, each read in {len(ways) + 1} more ways, {assembled} assembled back, "
          f"{len(used)} disagreements as listed")
    print("\n".join(failures))
    return skips.status(failures)


if __name__ == "__main__":
    sys.exit(main())
