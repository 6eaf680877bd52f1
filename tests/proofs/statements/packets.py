# SPDX-License-Identifier: BSL-1.0
"""Statements about packets, from the rows of packets.csv (packets.md, sections 1 to 15 and 18)."""

import re

from claims import (And, Concat, If, Implies, Not, Or, UGE, UGT, ULE, ULT, bit, bits, by_value,
                    cases, flag, number, rule, statement, table, var, wide)

NONE, TRUNCATED, BAD_OPCODE, RESERVED, BAD_PACKET = range(5)  # PKT-004

ROWS = table("packets.csv")
KIND = {row["name"]: at for at, row in enumerate(ROWS)}  # PKT-007: the canonical order
CPP = {row["name"]: row["cpp_name"].split(";")[0] for row in ROWS}
IP_PACKETS = ("TIP", "TIP.PGE", "TIP.PGD", "FUP")

image = var("bytes", 128)
size, items = var("size", 32), var("items", 8)
strict = flag("strict")
given = And(ULE(size, 16), Or(items == 0, items == 4, items == 8))


def byte(at, of=image):
    return bits(of, 8 * at + 7, 8 * at)


def opcode(row):
    """The opcode bytes of a row, as (value, mask). The leaf of a MODE is not among them."""
    found = re.match(r"([0-9a-f]{2}/[0-9a-f]{2} ?)+", row["opcode_bytes_hex"])[0].split()
    pairs = [tuple(int(half, 16) for half in one.split("/")) for one in found]
    return pairs[:1] if row["name"].startswith("MODE") else pairs


def masked(row, of):
    return And(*[byte(at, of) & mask == value for at, (value, mask) in enumerate(opcode(row))])


def ranges(row):
    """The fields of a row, as (name, first bit, last bit): bit 8n + b is n.b."""
    found = []
    for one in filter(None, re.split(r";(?![^(]*\))", row["fields"])):
        name, place = one.split(":", 1)
        match = re.match(r"(\d+)\.(\d)(?:\.\.(\d+)\.(\d))?", place)
        if match:
            first = 8 * int(match[1]) + int(match[2])
            last = 8 * int(match[3]) + int(match[4]) if match[3] else first
            found.append((name, first, last))
    return found


def reserved(row):
    """The mask of the reserved bits of a row."""
    return sum((1 << last + 1) - (1 << first) for name, first, last in ranges(row)
               if name == "rsvd")


def ip_length(of):
    """PKT-051; 0 for the reserved forms."""
    return cases(bits(of, 7, 5), {0: number(1, 8), 1: number(3, 8), 2: number(5, 8),
                                  3: number(7, 8), 4: number(7, 8), 6: number(9, 8)}, number(0, 8))


def cyc_length(of):
    """PKT-107, PKT-108: at most 10 bytes."""
    found = number(10, 8)
    for at in range(8, 0, -1):
        found = If(bit(of, 8 * at), found, number(at + 1, 8))
    return If(bit(of, 2), found, number(1, 8))


def length(name, of, items):
    """The length of a packet from its bytes; the bytes that are missing are 0 (PKT-002)."""
    text = next(row for row in ROWS if row["name"] == name)["total_length_bytes"]
    if text.isdigit():
        return number(int(text), 8)
    return {**dict.fromkeys(IP_PACKETS, ip_length(of)),
            "CYC": cyc_length(of),
            "PTW": cases(bits(of, 14, 13), {0: number(6, 8), 1: number(10, 8)}, number(0, 8)),
            "BIP": 1 + items,
            "TRIG": If(bit(of, 14), number(5, 8), number(3, 8))}[name]


def header_rule(name, of):
    """The rule of a reserved header, or 0 (PKT-004)."""
    if name in IP_PACKETS:
        return If(Or(bits(of, 7, 5) == 5, bits(of, 7, 5) == 7), number(rule("PKT-052"), 32), 0)
    if name == "PTW":
        return If(bit(of, 14), number(rule("PKT-173"), 32), number(0, 32))
    if name.startswith("MODE"):
        return If(UGE(bits(of, 15, 13), 2), number(rule("PKT-089"), 32),
                  If(bits(of, 9, 8) == 3, number(rule("PKT-090"), 32), 0))
    return number(0, 32)


def payload_rule(name, of, strict):
    """The rule of a bad payload, or 0; all bytes are present."""
    if name == "PSB":
        return If(of == int("8202" * 8, 16), number(0, 32), number(rule("PKT-131"), 32))
    if name == "TNT.long":
        payload = bits(of, 63, 16)
        return If(payload == 0, number(rule("PKT-036"), 32),
                  If(payload == 1, number(rule("PKT-037"), 32), 0))
    if name == "CYC":
        too_long = And(cyc_length(of) == 10, Or(bit(of, 72), UGT(bits(of, 79, 73), 7)))
        return If(too_long, number(rule("PKT-110"), 32), number(0, 32))
    if name == "TMA":
        row = ROWS[KIND["TMA"]]
        return If(And(strict, of & reserved(row) != 0), number(rule("PKT-104"), 32),
                  number(0, 32))
    return number(0, 32)


def keep(of, count):
    """The first bytes; the others are 0."""
    return by_value(count, range(17),
                    lambda n: Concat(number(0, 128 - 8 * n), bits(of, 8 * n - 1, 0))
                    if 0 < n < 16 else of if n else number(0, 128))


def outcome(error, need, length, broken):
    return Concat(wide(broken, 32), number(0, 8), length, need, number(error, 8))


def decoded(of, size, items, strict):
    """What decode returns, the bits of the packet, and its kind: PKT-003, PKT-004, PKT-010."""
    of = keep(of, size)
    zero, none = number(0, 8), number(0, 32)

    def truncated(need):
        return outcome(TRUNCATED, need if not isinstance(need, int) else number(need, 8), zero,
                       number(rule("PKT-255"), 32))

    def as_packet(name):
        long = length(name, of, items)
        header, payload = header_rule(name, of), payload_rule(name, keep(of, long), strict)
        found = If(header != 0, outcome(RESERVED, zero, zero, header),
                   If(ULT(size, wide(long, 32)), truncated(long),
                      If(payload != 0, outcome(BAD_PACKET, zero, zero, payload),
                         outcome(NONE, zero, long, none))))
        return found, keep(of, long), KIND[name]

    def bad(name):
        return outcome(BAD_OPCODE, zero, zero, number(rule(name), 32))

    found, raw, kind = bad("PKT-015"), number(0, 128), number(0)
    for row in ROWS:  # the packets of one byte of opcode
        name = row["name"]
        if len(opcode(row)) > 1 or name in ("BIP", "TNT.short", "MODE.TSX", "PAD"):
            continue
        one, its_raw, its_kind = as_packet(name)
        its_kind = number(its_kind)
        if name == "MODE.Exec":
            its_kind = If(bits(of, 15, 13) == 0, its_kind, number(KIND["MODE.TSX"]))
        here = masked(row, of)
        found, raw, kind = If(here, one, found), If(here, its_raw, raw), If(here, its_kind, kind)
    longer = bad("PKT-012")
    longer_raw, longer_kind = number(0, 128), number(0)
    for row in ROWS:  # after 02
        if len(opcode(row)) < 2:
            continue
        one, its_raw, its_kind = as_packet(row["name"])
        here = masked(row, of)
        if len(opcode(row)) == 3:
            third = If(ULT(size, 3), truncated(3), If(here, one, bad("PKT-013")))
            longer = If(byte(1, of) == 0xC3, third, longer)
        else:
            longer = If(here, one, longer)
        longer_raw, longer_kind = If(here, its_raw, longer_raw), If(here, its_kind, longer_kind)
    longer = If(ULT(size, 2), truncated(2), longer)
    for name, here, one, its_raw, its_kind in (
            ("", byte(0, of) == 2, longer, longer_raw, longer_kind),
            ("TNT.short", And(not_set(of, 0), byte(0, of) != 0, byte(0, of) != 2),
             *[None] * 3),
            ("PAD", byte(0, of) == 0, *[None] * 3),
            ("BIP", And(items != 0, byte(0, of) & 7 == 4), *[None] * 3)):
        if name:
            one, its_raw, its_kind = as_packet(name)
        found, raw, kind = If(here, one, found), If(here, its_raw, raw), If(here, its_kind, kind)
    return If(size == 0, truncated(1), found), raw, kind


def not_set(of, at):
    return Not(bit(of, at))


@statement("decode: error, need, length and rule of all bytes, sizes and blocks, strict or not, "
           "are those of packets.csv (PKT-003..006, PKT-010..016, PKT-255)", only="DECODE",
           mutant=("packet/cyc.hpp", "(raw.high >> 8 & 0xF1)", "(raw.high >> 8 & 0xE1)"))
def decode(f):
    wanted = decoded(image, size, items, strict)
    found = f.decode(image, size, items, strict, var("to", 192))
    packet = Concat(wanted[2], wanted[1])
    return given, And(found.value == wanted[0],
                      Implies(bits(found.value, 7, 0) == NONE, found.memory[1] == packet))


@statement("decode: a truncated packet needs at most 16 bytes, more than there are; an error has "
           "length 0 (PKT-002, PKT-004, PKT-005)", only="DECODE",
           mutant=("packet/decode.hpp", "return truncated(length); }",
                   "return truncated(length - 1); }"))
def needs(f):
    found = f.decode(image, size, items, strict, var("to", 192)).value
    error, need, long = byte(0, found), byte(1, found), byte(2, found)
    return given, And(Implies(error == TRUNCATED, And(UGT(wide(need, 32), size), ULE(need, 16))),
                      (error != NONE) == (long == 0), ULE(wide(long, 32), size))


@statement("decode: every proper prefix of a packet is truncated, and needs no more than the "
           "packet has; the bytes after a packet change nothing (PKT-002, PKT-004, PKT-255)",
           only="DECODE", slow=True,
           mutant=("packet/decode.hpp", "return truncated(length); }",
                   "return truncated(length + 1); }"))
def prefixes(f):
    whole = f.decode(image, number(16, 32), items, strict, var("to", 192))
    claimed = []
    for count in range(16):
        part = f.decode(image, number(count, 32), items, strict, var("to", 192))
        need, is_prefix = byte(1, part.value), UGT(byte(2, whole.value), count)
        claimed.append((And(given, byte(0, whole.value) == NONE),
                        If(is_prefix, And(byte(0, part.value) == TRUNCATED, UGT(need, count),
                                          ULE(need, byte(2, whole.value))),
                           And(part.value == whole.value, part.memory[1] == whole.memory[1]))))
    return claimed


def shares(one, other):
    """True for opcodes that may match the same bytes: that of TNT.short has one bit."""
    both = {one["name"], other["name"]}
    return ("TNT.short" in both and (both & {"PAD", "BIP"} or len(opcode(one)) > 1 or
                                     len(opcode(other)) > 1)
            or both == {"MODE.Exec", "MODE.TSX"})


@statement("decode: a packet has the opcode of its kind and of no other kind; where TNT.short "
           "matches too, it is PAD, BIP or after 02H (PKT-010..016, PKT-344)", only="DECODE",
           mutant=("packet/vmcs.hpp", "fixed<15, 8, 0xC8>", "fixed<15, 8, 0xC9>"))
def kinds(f):
    found = f.decode(image, number(16, 32), items, strict, var("to", 192))
    kind = bits(found.memory[1], 191, 128)
    claimed = [Implies(kind == KIND[row["name"]],
                       And(masked(row, image), *[Not(masked(other, image)) for other in ROWS
                                                 if other is not row and not shares(row, other)]))
               for row in ROWS]
    return given, And(Implies(byte(0, found.value) == NONE, And(*claimed)))


def add_encode(name, mutant):
    row = ROWS[KIND[name]]
    one, own_bits = var("packet", 128), 8 * 16
    fixed = [(value, mask) for value, mask in opcode(row)]
    if name.startswith("MODE"):
        fixed.append((0 if name == "MODE.Exec" else 0x20, 0xE0))
    if name == "PSB":
        fixed = [(0x82 if at % 2 else 0x02, 0xFF) for at in range(16)]
    mask = sum(part << 8 * at for at, (_, part) in enumerate(fixed))
    value = sum(part << 8 * at for at, (part, _) in enumerate(fixed))

    @statement(f"encode {name}: accepts what decode reads back unchanged, with the opcode and "
               "without reserved bits, and nothing else (PKT-340, PKT-344..346)", only="ENCODE",
               mutant=mutant)
    def encode(f):
        # The packet as decode sees it: opcode and reserved bits are not the caller's.
        canonical = one & ((1 << own_bits) - 1 & ~mask & ~reserved(row)) | value
        wanted, raw, kind = decoded(canonical, number(16, 32), items, flag("strict"))
        accepted = And(byte(0, wanted) == NONE, kind == KIND[name], raw == canonical)
        if bits_of(name) <= 64:  # its word has 64 bits
            high_is_0 = bits(one, 127, 64) == 0
        else:
            high_is_0 = one == one
        found = getattr(f, f"encode_{CPP[name]}")(bits(one, 63, 0), bits(one, 127, 64), items,
                                                  var("to", 128))
        long, why, wire = (bits(found.value, 15, 0), bits(found.value, 31, 16), found.memory[0])
        return (And(Or(items == 0, items == 4, items == 8), high_is_0),
                And((why == 0) == accepted,
                    Implies(accepted, And(wire == canonical, long == wide(byte(2, wanted), 16))),
                    Implies(Not(accepted), And(wire == 0, long == 0))))


def bits_of(name):
    text = ROWS[KIND[name]]["total_length_bytes"]
    if text.isdigit():
        return 8 * int(text)
    return {"TRIG": 40}.get(name, 128)


ENCODE = "packet/encode.hpp"
for packet in (row["name"] for row in ROWS):
    add_encode(packet, {
        "TNT.short": ("packet/tnt.hpp", "min_raw = 4", "min_raw = 5"),
        "TNT.long": ("packet/tnt.hpp", "uint64_t{2} << 16", "uint64_t{3} << 16"),
        "CYC": ("packet/cyc.hpp", "& 0xF1) != 0", "& 0xF0) != 0"),
        "PTW": ("packet/ptw.hpp", "payload_of<4, 8, undefined_size, undefined_size>",
                "payload_of<4, 8, 8, undefined_size>"),
        "PSB": ("packet/psb.hpp", "pattern<63, 16, 0x8202'8202'8202>",
                "pattern<63, 16, 0x8202'8202'0202>"),
        "BIP": (ENCODE, "return rule::PKT_344;", "return rule::none;"),
        "TRIG": ("packet/trig.hpp", "payload_of<0, 2>", "payload_of<0, 1>"),
    }.get(packet, (ENCODE, "~(to_wide(Packet::reserved_mask()) | to_wide(fixed_mask<Packet>))",
                   "~(to_wide(fixed_mask<Packet>))") if reserved(ROWS[KIND[packet]]) else
          (ENCODE, "to_wide(fixed_mask<Packet>));", "wide_bits{0x80'00, 0});")))


# --- CYC and TNT

def cyc_count(raw):
    """PKT-107, PKT-108: the value of a CYC whose bytes after its end are 0."""
    found = wide(bits(raw, 7, 3), 72)
    for at in range(1, 10):
        found = found | wide(bits(raw, 8 * at + 7, 8 * at + 1), 72) << 5 + 7 * (at - 1)
    return bits(found, 63, 0)


@statement("CYC: a count becomes the fewest bytes, or as many as asked for, and is read back, for "
           "all counts and lengths (PKT-107..111)", only="ENCODE",
           mutant=("packet/cyc.hpp", "(raw.high >> 1 & 0x7F)", "(raw.high >> 1 & 0x3F)"))
def cyc(f):
    count, most = var("count"), var("most", 32)
    made = f.cyc_of(count, most, var("to", 128))
    raw = made.memory[0]
    fewest = number(10)
    for n in range(9, 0, -1):
        fewest = If(ULT(wide(count, 72), 1 << 5 + 7 * (n - 1)), number(n), fewest)
    asked = wide(If(UGT(most, 10), number(10, 32), most))
    long = If(UGT(asked, fewest), asked, fewest)
    return And(made.value == long, wide(cyc_length(raw)) == long, cyc_count(raw) == count,
               bits(raw, 1, 0) == 3, keep(raw, bits(long, 7, 0)) == raw,
               f.cyc_value(bits(raw, 63, 0), bits(raw, 127, 64)) == count)


@statement("CYC: the value of all bytes that decode accepts (PKT-107, PKT-108, PKT-110)",
           only="ENCODE",
           mutant=("packet/cyc.hpp", "raw.low >> 9 << 5; }", "raw.low >> 9 << 4; }"))
def cyc_value(f):
    raw = var("raw", 128)
    accepted = And(bits(raw, 1, 0) == 3, keep(raw, cyc_length(raw)) == raw,
                   payload_rule("CYC", raw, flag("strict")) == 0)
    # The Exp bits of the bytes after the first are no bits of the value.
    return accepted, f.cyc_value(bits(raw, 63, 0), bits(raw, 127, 64)) == cyc_count(raw)


def add_tnt(name, most, first, mutant):
    @statement(f"{name}: the stop bit above the branches, the oldest directly below it, for every "
               f"count of 1 to {most} (PKT-030..037, PKT-039)", only="ENCODE", mutant=mutant)
    def tnt(f):
        count, branches, raw = var("count", 32), var("branches"), var("raw")
        cpp = CPP[name]
        made = getattr(f, f"{cpp}_of")(count, branches)
        taken = getattr(f, f"{cpp}_taken")(raw, var("to", 128)).memory[0]
        back = getattr(f, f"{cpp}_taken")(made, var("to", 128)).memory[0]

        def wire(n):
            return Concat(number(1, 1), bits(branches, n - 1, 0))

        by_count = And(*[Implies(count == n, And(
            bits(made, first + n, first) == wire(n),
            bits(made, 63, first + n + 1) == 0 if first + n < 63 else made == made,
            back == Concat(wide(bits(branches, n - 1, 0)), number(n))))
            for n in range(1, most + 1)])
        # What a packet on the wire holds: the stop bit is its highest 1.
        read = And(*[Implies(And(bits(raw, 63, first + n) == 1),
                             taken == Concat(wide(bits(raw, first + n - 1, first)), number(n)))
                     for n in range(1, most + 1)])
        return And(by_count, read, bits(made, first - 1, 0) == (0xA302 if first == 16 else 0))


add_tnt("TNT.short", 6, 1, ("packet/tnt.hpp", "return {stop, bits & ~(uint64_t{1} << stop)};",
                            "return {stop, bits};"))
add_tnt("TNT.long", 47, 16, ("packet/tnt.hpp", "max_branches = 47", "max_branches = 46"))
