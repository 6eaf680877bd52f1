#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Makes the inputs from which the fuzz targets start.

    tests/fuzz/seeds.py FOLDER     writes FOLDER/TARGET/... for every target

Nothing here was recorded: packets are put together by hand, then cut, damaged and joined. Scripts
are those of the worked cases.
"""

import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import spec_page  # noqa: E402
import tc_cases  # noqa: E402

PSB = bytes([0x02, 0x82]) * 8
PSBEND = bytes([0x02, 0x23])

# One of every packet, and of every form that has a length of its own.
PACKETS = {
    "pad": "00",
    "tnt_short": "16",
    "tnt_short_6": "fe",
    "tnt_short_low_100": "0c",
    "tnt_long": "02a3 0102030405 80",
    "tnt_long_1": "02a3 020000000000",
    "tip_0": "0d",
    "tip_1": "2d 3412",
    "tip_2": "4d 78563412",
    "tip_3": "6d 00000000ffff",
    "tip_4": "8d 665544332211",
    "tip_6": "cd 8877665544332211",
    "tip_pge": "71 001040000000",
    "tip_pgd": "21 0010",
    "tip_pgd_0": "01",
    "fup": "7d 001140000000",
    "pip": "0243 0110203040 50",
    "mode_exec": "9901",
    "mode_exec_if": "9906",
    "mode_tsx": "9921",
    "tracestop": "0283",
    "cbr": "0203 1800",
    "tsc": "19 01020304050607",
    "mtc": "5955",
    "tma": "0273 3412 00 5001",
    "cyc_1": "fb",
    "cyc_2": "0f20",
    "cyc_3": "ff0302",
    "cyc_9": "070101010101010102",
    "cyc_10": "0701010101010101010e",
    "vmcs": "02c8 0102030405",
    "ovf": "02f3",
    "psb": PSB.hex(),
    "psbend": "0223",
    "mnt": "02c388 0102030405060708",
    "ptw_4": "0212 01020304",
    "ptw_8_ip": "02b2 0102030405060708",
    "exstop": "0262",
    "exstop_ip": "02e2",
    "mwait": "02c2 60000000 03000000",
    "pwre": "0222 8031",
    "pwrx": "02a2 330d000000",
    "bbp_4": "0263 84",
    "bbp_8": "0263 01",
    "bip_4": "0c 01020304",
    "bip_8": "14 0102030405060708",
    "bep_ip": "02b3",
    "cfe": "0213 8120",
    "evd": "0253 00 0102030405060708",
    "trig": "d90005",
    "trig_icnt": "d9c001 0200",
    "bad_opcode": "05",
    "bad_extended": "0244",
    "bad_extended_2": "02c300",
    "reserved_ip": "ad",
    "reserved_mode": "9903",
    "reserved_ptw": "0252",
    "bad_tnt_long": "02a3 000000000000",
    "bad_cyc": "070101010101010101 11",
}
PACKETS = {name: bytes.fromhex(text.replace(" ", "")) for name, text in PACKETS.items()}

BLOCK = b"".join(PACKETS[name] for name in ("bbp_8", "bip_8", "bip_8", "pad", "bbp_4", "bip_4",
                                            "cyc_1", "bip_4", "bep_ip", "fup"))
PSB_PLUS = PSB + b"".join(PACKETS[name] for name in ("tsc", "tma", "cbr", "pip", "vmcs",
                                                     "mode_exec", "fup")) + PSBEND
LEGAL = [data for name, data in PACKETS.items() if "bad" not in name and "reserved" not in name]


def decode():
    for name, data in PACKETS.items():
        for context in (0, 2, 3, 4):
            if context in (0, 4) or name in ("bip_4", "bip_8", "tnt_short_low_100", "bbp_4", "pad"):
                yield bytes([context]) + data + b"\x00\xff"


def encode():
    for kind in range(32):
        for block in (0x00, 0x40, 0x60):
            yield bytes([kind | block, 16]) + bytes(33)
            yield bytes([kind | block, 5]) + b"\xff" * 33
    for data in LEGAL:
        yield bytes([0, 31]) + data.ljust(16, b"\0") + struct.pack("<QQB", 0x401000, 0x400FF0, 5)


def trace(chance):
    """A stream of packets that mean nothing together."""
    parts = []
    for _ in range(chance.randrange(4, 40)):
        pick = chance.random()
        parts.append(PSB_PLUS if pick < 0.1 else BLOCK if pick < 0.15 else
                     bytes(chance.randrange(1, 9)) if pick < 0.2 else chance.choice(LEGAL))
    return b"".join(parts)


def damaged(data, chance):
    data = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(data))
        way = chance.randrange(4)
        if way == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif way == 1:
            del data[at:at + chance.randrange(1, 9)]
        elif way == 2:
            data[at:at] = PSB[chance.randrange(15):]
        else:
            data[at:at] = chance.choice(list(PACKETS.values()))
        data = data or bytearray(b"\0")
    return bytes(data)


def reading(options, moment, answers, sizes, data):
    return (bytes([options | len(sizes) << 4, moment]) + struct.pack("<Q", answers) +
            bytes(sizes) + data)


def reader():
    chance = random.Random(1)
    whole = PSB_PLUS + b"".join(LEGAL)
    for cut in range(0, 17):  # a PSB on either side of the end of a piece
        yield reading(1, cut, 0, [5 + cut, 1], b"\x19\0\0\0\0\0\0\0" + PSB + PSB_PLUS)
        yield reading(0, cut, 0, [16 + cut], PSB + b"\x05" + PSB_PLUS)
        yield reading(0, cut, 0, [cut], PACKETS["mnt"][:3] + PSB[:cut] + PSB + b"\x05\x02" + PSB)
    for moment in range(6):  # the search behind damage begins in the piece before
        yield reading(0, moment, 0, [6], b"\x19" + bytes(5) + PSB + b"\x05" + PSB)
        yield reading(0, moment, 0, [1, 16], b"\x02" + PSB + b"\x05" + PSB)
    for options in range(16):
        yield reading(options, 3, 0x0123456789ABCDEF, [], whole)
        yield reading(options, 9, 0xFEDCBA9876543210, [1] * 15, whole)
    for number in range(120):
        data = trace(chance)
        if number % 3 != 0:
            data = damaged(data, chance)
        if number % 4 == 0:
            data = data[:chance.randrange(len(data))]
        sizes = [chance.choice((0, 1, 2, 7, 15, 16, 17, 40)) for _ in range(chance.randrange(16))]
        yield reading(chance.randrange(16), chance.randrange(64), chance.getrandbits(64), sizes,
                      data)


def psb():
    chance = random.Random(2)
    for description in ([0x08], [0x09], [0x0F, 0x0F], [0x18, 0x21], [0x08, 0x21, 0x08],
                        [0x31, 0x08, 0x21], [0x07, 0x21, 0x08], [0x41, 0x08], [0x4F, 0x08, 0x40],
                        [0x2F] * 4, [0x3F] * 4, [0x2F, 0x31, 0x07], [0x08, 0x31, 0x08]):
        for size in (0, 1, 7, 15, 16, 17):
            yield bytes(5) + bytes([size] * 9) + bytes(description)
    for _ in range(60):
        head = bytes(chance.randrange(256) for _ in range(14))
        body = [chance.choice((0x01, 0x07, 0x08, 0x09, 0x0F, 0x11, 0x18, 0x21, 0x22, 0x31, 0x32,
                               0x41, 0x55)) for _ in range(chance.randrange(1, 20))]
        yield head + bytes(body)


def topa():
    chance = random.Random(3)
    for number in range(60):
        width = chance.choice((36, 39, 42, 46, 52))
        parts = [struct.pack("<BQ", number % 4 | (width - 12) << 2,
                             chance.randrange(1 << 24) << chance.choice((12, 12, 12, 7, 20)))]
        for _ in range(4):
            size = chance.randrange(16)
            base = chance.randrange(1 << 16) << (12 + size - (chance.random() < 0.1))
            parts.append(struct.pack("<QB", base, size | chance.randrange(4) << 4))
        mask = (128 << chance.randrange(26)) - 1 ^ (chance.random() < 0.2) << 8
        offset = chance.randrange(mask + 1) + (chance.random() < 0.2)
        parts.append(struct.pack("<QQQQ", (mask + 1) * chance.randrange(1 << 8),
                                 (offset << 32 | mask) % (1 << 64),
                                 chance.randrange(1 << 20) << 12 | chance.randrange(1 << 12),
                                 chance.randrange(1 << 33)))
        yield b"".join(parts)


def output():
    chance = random.Random(4)
    for number in range(120):
        width = chance.choice((36, 39, 42, 52))
        many = chance.random() < 0.8
        by_table = number % 8 != 0
        table = chance.randrange(1 << 16) << 12
        regions = []
        for _ in range(chance.randrange(1, 4) if many else 1):
            size = chance.choice((0, 0, 0, 1, 3, 15))
            flags = chance.choice((0, 0, 4, 16, 20)) | size << 6
            regions.append((chance.randrange(1 << 8) << (12 + size), flags))
        words = [base | flags for base, flags in regions]
        words.append(1 | (table if not many or number % 3 else chance.randrange(1 << 16) << 12))
        if number % 3 == 0:
            words.append(chance.randrange(1 << 16) << 12)
        where = [0] * (len(regions) + 1) + [2]
        if chance.random() < 0.3:
            words[chance.randrange(len(words))] ^= 1 << chance.randrange(64)
        end = (4096 << (regions[0][1] >> 6)) - chance.randrange(1, 40)
        pointers = end << 32 | 0x7F
        if not by_table:
            pointers = (128 << chance.randrange(6)) - 1
            pointers |= chance.randrange(pointers) << 32
        writes = [chance.choice((0, 1, 20, 40, 0xD000)) for _ in range(chance.randrange(1, 5))]
        ranges = [(regions[0][0] + end + chance.randrange(64), chance.randrange(16))
                  for _ in range(chance.randrange(2))]
        faults = [(chance.randrange(2), chance.choice((table, regions[0][0], 1, 2, 9)))
                  for _ in range(chance.randrange(3))]
        smrr = (0, 0) if number % 5 else (regions[-1][0], 0xFFFFF800)
        yield b"".join((
            bytes([width - 32, many | chance.randrange(4) << 1 | by_table << 3
                   | (number % 7 == 0) << 5, len(ranges) | len(words) << 2 | len(writes) << 5,
                   len(faults) | chance.randrange(64) << 2]),
            struct.pack("<QQQQQ", table, pointers, *smrr, chance.choice((512, 0, 1, 4096))),
            *(struct.pack("<QQ", *one) for one in ranges),
            *(struct.pack("<BQ", *one) for one in zip(where, words)),
            struct.pack(f"<{len(writes)}H", *writes),
            *(struct.pack("<BQ", *one) for one in faults)))


def unit():
    chance = random.Random(5)
    for number in range(96):
        head = number % 4 | chance.randrange(64) << 2
        yield bytes([head]) + chance.randbytes(chance.choice((30, 300, 1500)))


def script():
    for case in tc_cases.read_cases(spec_page.Catalogue()):
        for part in case.parts:
            yield f"{case.setup}\n{part.events}".encode()


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    for target in (decode, encode, reader, psb, topa, output, unit, script):
        folder = pathlib.Path(arguments[0], target.__name__)
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(target()):
            (folder / f"{number:04}").write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
