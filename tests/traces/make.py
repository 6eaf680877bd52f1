#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Makes the traces of this folder again, with their listings.

    make.py BIN

BIN is the folder of the built examples. Needs g++, qemu-user and xz. The recorded program executes
the same instructions each time; only timing packets differ between two recordings.
"""

import lzma
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import traces  # noqa: E402

PROGRAM = HERE.parent / "differential" / "programs" / "bare" / "bare.cpp"
# Name -> options of pt_record, and the segments that are kept.
RECORDED = {
    "bare-manual": (["--kind", "manual", "--ctl", "tsc,mtc=3,cyc=2,psb=2K"], "1-9"),
    "bare-broadwell": (["--kind", "broadwell", "--ctl", "tsc,noretcomp,psb=2K"], "1-6"),
    "bare-skylake": (["--kind", "skylake", "--ctl", "tsc,mtc=3,cyc,psb=2K"], "1-9"),
    "bare-icelake": (["--kind", "icelake", "--ctl", "tsc,mtc=3,psb=2K"], "1-"),
    "bare-atom": (["--kind", "atom", "--ctl", "psb=2K"], "1-9"),
}
REPEATED = 20


def run(*command, **how):
    done = subprocess.run(list(map(str, command)), capture_output=True, **how)
    if done.returncode not in (0, 1):  # 1: pt_dump found damage
        sys.exit(f"{command}: {done.stderr.decode()}")
    return done.stdout


def damaged(data, pt_dump):
    """Copies of a trace: with noise, without its tail in the middle of a packet, without a part,
    and with flipped bits, none of which is reserved."""
    chance = random.Random(1)
    middle = len(data) // 2
    while True:
        flipped = bytearray(data)
        for _ in range(24):
            flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        if run(pt_dump, "-", input=flipped) == run(pt_dump, "--strict", "-", input=flipped):
            break
    return {"noise": data[:middle] + chance.randbytes(200) + data[middle + 200:],
            "cut": data[:data.rindex(b"\x02\x82") - 3],
            "drop": data[:middle // 2 + 1] + data[middle:],
            "flip": bytes(flipped)}


def keep(name, data, pt_dump):
    listing = traces.without_rules(run(pt_dump, "--strict", "-", input=data).decode()).encode()
    (HERE / f"{name}.pt.xz").write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    (HERE / f"{name}.packets.xz").write_bytes(
        lzma.compress(listing, preset=9 | lzma.PRESET_EXTREME))


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    pt_dump = programs / "pt_dump"
    for old in HERE.glob("*.xz"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run("g++", "-std=c++20", "-O1", "-static", "-nostdlib", "-no-pie", "-fno-stack-protector",
            "-fcf-protection=none", PROGRAM, "-o", folder / "bare")
        for name, (options, segments) in RECORDED.items():
            run(programs / "pt_record", "-o", folder / f"{name}.data", "--raw", folder / name,
                *options, "./bare", cwd=folder)
            trace = next((folder / name).glob("*.pt"))
            keep(name, run(programs / "pt_cut", "--psb", segments, trace, "-o", "-"), pt_dump)
            if name == "bare-icelake":
                (HERE / f"{name}.data.xz").write_bytes(
                    lzma.compress((folder / f"{name}.data").read_bytes()))
        head, mark, rest = (HERE / "system.script").read_text().partition("# User code")
        script = head + (mark + rest) * REPEATED
        keep("system", run(programs / "pt_model", "-o", "-", input=script.encode()), pt_dump)
    for base in ("bare-skylake", "system"):
        data = lzma.decompress((HERE / f"{base}.pt.xz").read_bytes())
        for how, bad in damaged(data, pt_dump).items():
            keep(f"bad-{base}-{how}", bad, pt_dump)


if __name__ == "__main__":
    main()
