#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Makes the seed inputs of the fuzz targets.

    tests/fuzz/seeds.py FOLDER     writes FOLDER/TARGET/... for every target

The seeds use no recorded traces: packets are those of packet_vectors.csv, cut, damaged and joined.
Scripts are those of the worked cases.
"""

import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files  # noqa: E402
import spec_page  # noqa: E402
import spec_tables  # noqa: E402
import tc_cases  # noqa: E402

PSB = bytes([0x02, 0x82]) * 8
PSBEND = bytes([0x02, 0x23])

VECTORS = spec_tables.rows_of(spec_page.SPEC / "packet_vectors.csv")
KINDS = len(spec_tables.rows_of(spec_page.SPEC / "packets.csv"))
# The contexts of the targets, by the size of an item.
CONTEXTS = {0: 0, 4: 2, 8: 3}


def of(name, fields="", block=""):
    """The first vector of a packet whose fields begin with `fields`."""
    return next(bytes.fromhex(row["bytes_hex"]) for row in VECTORS
                if row["expected_packet_name"] == name and row["ctx"] == block
                and row["canonical"] == "1" and row["expected_fields"].startswith(fields))


FUP = bytes.fromhex("7d001140000000")
BLOCK = (of("BBP", "size=8") + of("BIP", block="block=8") * 2 + of("PAD") + of("BBP", "size=4")
         + of("BIP", block="block=4") + of("CYC", "value=31") + of("BIP", block="block=4")
         + of("BEP", "ip=1", "block=4") + FUP)
PSB_PLUS = (PSB + b"".join(map(of, ("TSC", "TMA", "CBR", "PIP", "VMCS", "MODE.Exec"))) + FUP
            + PSBEND)
# Valid packets, and all vectors of the catalogue, including errors.
LEGAL = [bytes.fromhex(row["bytes_hex"]) for row in VECTORS if row["canonical"] == "1"]
ALL = [bytes.fromhex(row["bytes_hex"]) for row in VECTORS]


def decode():
    for row in VECTORS:
        block, _ = spec_tables.context(row["ctx"])
        for context in {0, 4, CONTEXTS[block]}:
            yield bytes([context]) + bytes.fromhex(row["bytes_hex"]) + b"\x00\xff"


def encode():
    for kind in range(KINDS):
        choice = kind // 32 * 0x80 | kind % 32
        for block in (0x00, 0x40, 0x60):
            yield bytes([choice | block, 16]) + bytes(33)
            yield bytes([choice | block, 5]) + b"\xff" * 33
    for data in LEGAL:
        yield bytes([0, 31]) + data.ljust(16, b"\0") + struct.pack("<QQB", 0x401000, 0x400FF0, 5)


def trace(chance):
    """A random stream of packets."""
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
            data[at:at] = chance.choice(ALL)
        data = data or bytearray(b"\0")
    return bytes(data)


def reading(options, moment, answers, sizes, data):
    return (bytes([options | len(sizes) << 4, moment]) + struct.pack("<Q", answers) +
            bytes(sizes) + data)


def reader():
    chance = random.Random(1)
    whole = PSB_PLUS + b"".join(LEGAL)
    for cut in range(0, 17):  # a PSB across or beside the end of a chunk
        yield reading(1, cut, 0, [5 + cut, 1], b"\x19\0\0\0\0\0\0\0" + PSB + PSB_PLUS)
        yield reading(0, cut, 0, [16 + cut], PSB + b"\x05" + PSB_PLUS)
        yield reading(0, cut, 0, [cut], of("MNT")[:3] + PSB[:cut] + PSB + b"\x05\x02" + PSB)
    for moment in range(6):  # the search after damage begins in the chunk before
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


def events():
    chance = random.Random(7)
    for number in range(160):
        data = PSB_PLUS + trace(chance) + PSB_PLUS + trace(chance)
        if number % 3 == 0:
            data = damaged(data, chance)
        sizes = [chance.choice((1, 2, 7, 16, 40)) for _ in range(chance.randrange(16))]
        errata = chance.getrandbits(16) if number % 4 == 0 else 0
        yield (bytes([chance.choice((0, 3, 9)) | chance.choice((0, 1, 9)) << 4, 36]) +
               struct.pack("<HH", chance.choice((0, 2, 84, 250)), chance.choice((1, 2, 3))) +
               bytes([number & 1 | len(sizes) << 4]) + struct.pack("<H", errata) + bytes(sizes) +
               data)


def keep_part():
    chance = random.Random(8)
    entry, exit_ = bytes.fromhex("0243010100000000"), bytes.fromhex("0243000900000000")
    host, guest = bytes.fromhex("6d000010000080"), bytes.fromhex("6d001040000000")
    vmcs = bytes.fromhex("02c80700000000")
    for number in range(160):
        parts = []
        for _ in range(chance.randrange(1, 8)):
            parts += [entry, chance.choice((guest, b"\x2d\x01\x11", b"\x71" + guest[1:])),
                      trace(chance) if number % 2 else chance.choice(LEGAL), FUP,
                      chance.choice((b"", vmcs)), exit_, chance.choice((host, b"\x01"))]
        data = PSB_PLUS + b"".join(parts)
        if number % 5 == 0:
            data = damaged(data, chance)
        scale = chance.choice((1 << 48, 1 << 48, 3 << 47, 1 << 47, chance.getrandbits(64)))
        yield (bytes([chance.randrange(256), chance.randrange(256)]) + struct.pack("<Q", scale) +
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
        parts.append(struct.pack("<BQ", chance.randrange(8) | chance.randrange(5) << 4,
                                 chance.randrange(1 << 24) << 12))
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


def guest():
    chance = random.Random(8)
    for how in range(4):
        for count in (200, 1500):
            yield bytes([how]) + chance.randbytes(2 * count)


def unit():
    chance = random.Random(5)
    for number in range(96):
        head = number % 4 | chance.randrange(64) << 2
        yield bytes([head]) + chance.randbytes(chance.choice((30, 300, 1500)))


def shadow():
    chance = random.Random(8)
    for number in range(96):
        yield bytes([number % 2]) + chance.randbytes(chance.choice((300, 700, 1500)))


def script():
    for case in tc_cases.read_cases(spec_page.Catalogue()):
        for part in case.parts:
            yield f"{case.setup}\n{part.events}".encode()


def x86():
    rest = bytes([0x84, 0x25]) + bytes(10)
    for opcode in range(256):
        for escape in (b"", b"\x0f"):
            yield b"\2" + escape + bytes([opcode]) + rest
    for width in range(3):
        for prefix in (b"\x66", b"\x67\xf3", b"\x48", b"\x0f\x38", b"\x0f\x3a", b"\xc5\xf8",
                       b"\xc4\xe3\x7d", b"\x62\xf1\x7c\x48", b"\xd5\x80"):
            yield bytes([width]) + prefix + b"\x80" + rest


def flow():
    """Code: NOPs, branches within it, CALL, RET, indirect branches; and packets for them."""
    chance = random.Random(8)
    short = (b"\x90", b"\x74\x02", b"\x75\xf0", b"\xeb\x04", b"\xeb\xfe", b"\xc3", b"\xff\xe0",
             b"\xff\xd0", b"\xe8\x10\0\0\0", b"\xe8\0\0\0\0", b"\x0f\x05", b"\x0f\x22\xd8",
             b"\xcd\x80", b"\x48\xb8" + bytes(8), b"\xf3\x0f\xae\xe0", b"\xcf", b"\x06")
    packets = (b"\x06", b"\x04", b"\x0c", b"\x16", b"\xfe", b"\x01", b"\x02\xf3", PSB + PSBEND,
               PSB + b"\x99\x01\x7d\0\x10\0\0\0\0" + PSBEND,
               b"\x02\xa3\x15\x2a\0\0\0\0", b"\x02\x43" + bytes(6), b"\x99\x01")
    for number in range(160):
        code = b"".join(chance.choices(short, k=chance.randrange(4, 60)))
        code += b"\x90" * (-len(code) % 4)
        trace = b""
        for _ in range(chance.randrange(1, 60)):
            if chance.random() < 0.4:
                target = 0x1000 + chance.randrange(len(code))
                trace += bytes([chance.choice((0x2D, 0x3D, 0x31, 0x21))])
                trace += target.to_bytes(2, "little")
            else:
                trace += chance.choice(packets)
        if number % 4 == 0:
            trace = damaged(trace, chance)
        yield bytes([min(len(code) // 4, 255), chance.randrange(16), number % 9]) + code + trace


def perf_data():
    made = perf_data_files
    chance = random.Random(6)
    bits = (made.TID, made.TIME, made.ID, made.CPU, made.STREAM_ID, made.IDENTIFIER)
    for number in range(48):
        kinds = [sum(bit for bit in bits if chance.random() < 0.6) | made.IP | made.IDENTIFIER
                 for _ in range(1 + number % 3)]
        events = [made.Event(sample_type=kind, ids=[10 * i + 1, 10 * i + 2],
                             size=chance.choice((64, 96, 128, 144)), chance=chance)
                  for i, kind in enumerate(kinds)]
        ring = b"".join(made.pt_segment(chance, tsc if number % 2 else None, 40)
                        for tsc in range(5, 15))
        records = [made.info_of(snapshot=number % 2),
                   *chance.sample(list(made.all_records(events[0], chance)), number % 12),
                   *(made.auxtrace(made.padded(ring[at:at + 160]), at) for at in (0, 100, 240))]
        features = {9: made.text_feature(b"GenuineIntel,6,78,3")} if number % 5 else {}
        if number % 3:
            features[25] = made.bpf_feature(*(
                made.bpf_program(one, [(chance.randrange(1, 1 << 64), chance.randbytes(9))
                                       for _ in range(chance.randrange(3))])
                for one in range(number % 4)))
        layout = made.file_of if number % 4 else made.pipe_of
        data = layout(events, records, features)[0]
        yield damaged(data, chance) if number % 3 == 0 else data
    for tsc in (5, None):
        ring = b"".join(made.pt_segment(chance, tsc and tsc + i, 40) for i in range(8))
        yield ring[:200] + ring[100:300]
    for number in range(12):
        kind = made.TID | made.TIME | made.CPU
        event = made.Event(sample_type=kind | (number % 2) * made.AUX_SAMPLE, ids=[1])
        ring = b"".join(made.pt_segment(chance, tsc, 40) for tsc in range(5, 15))
        records = [made.info_of(snapshot=number % 3 == 2)]
        for at in (0, 100, 240):
            records.append(made.aux(event, at + chance.randrange(80), chance.randrange(80),
                                    chance.randrange(16), cpu=number % 4))
            part = ring[at:at + chance.randrange(40, 200)]
            records.append(made.aux_sample(event, part, cpu=number % 4, time=at)
                           if number % 2 else
                           made.auxtrace(made.padded(part), at, cpu=number % 4))
        data = made.pipe_of([event], records)[0]
        yield damaged(data, chance) if number % 3 == 0 else data


def winipt():
    chance = random.Random(7)
    for number in range(16):
        data = b""
        for _ in range(number % 4):
            size = chance.randrange(60)
            ring = chance.randrange(size + 1)
            data += struct.pack("<QIIIII", 4711, number % 3, 3, 84, ring, size)
            data += chance.randbytes(size)
        whole = struct.pack("<HHI", 1, 1, len(data) + (number == 7) * 9) + data
        yield damaged(whole, chance) if number % 2 else whole


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    for target in (decode, encode, reader, events, keep_part, psb, topa, output, guest, unit,
                   shadow, script, x86, flow, perf_data, winipt):
        folder = pathlib.Path(arguments[0], target.__name__)
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(target()):
            (folder / f"{number:04}").write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
