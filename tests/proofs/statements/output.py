# SPDX-License-Identifier: BSL-1.0
"""Statements about the addresses of both output schemes (output.md)."""

from claims import (And, Concat, If, Implies, Not, Or, UGE, UGT, ULE, ULT, bit, bits, by_value,
                    field, first, low, number, statement, var, wide)

MATH = "topa/address_math.hpp"
MP = "IA32_RTIT_OUTPUT_MASK_PTRS"

base, pointers, table, current = (var(one) for one in ("base", "pointers", "table", "entry"))
index, offset = var("index", 32), var("offset", 32)
count = var("count")
mask = Concat(field(f"{MP}.MaskOrTableOffset", pointers), number(0x7F, 7))
mp_offset = field(f"{MP}.OutputOffset", pointers)


def position(where, table, index, offset):
    """Memory that holds a position."""
    return where == Concat(wide(offset), wide(index), table)


def contiguous(mask):
    """The mask is 2^k - 1 with k of 7 to 32."""
    return Or(*[mask == number((1 << k) - 1, mask.size()) for k in range(7, 33)])


size = bits(current, 9, 6)
region_base = Concat(bits(current, 63, 12), number(0, 12))


def region(make, size=size):
    """What `make` gives for the binary logarithm of the region's size (OUT-041)."""
    return by_value(size, range(16), lambda one: make(12 + one))


region_bytes = region(lambda k: number(1 << k))


@statement("561H: the index is MP[31:7], the offset MP[63:32], the table the base (OUT-050)",
           mutant=(MATH, "field::lsb}}) & Word{max_entries - 1}", "field::lsb}})"))
def position_in(f):
    return position(f.position_in(base, pointers, var("to", 192)).memory[0],
                    Concat(bits(base, 63, 7), number(0, 7)),
                    field(f"{MP}.MaskOrTableOffset", pointers), mp_offset)


@statement("561H: an index of 25 bits, an offset of 32 bits, seven ones (OUT-050, REG-072)",
           mutant=(MATH, "((index & Word{max_entries - 1})", "((index & Word{max_entries})"))
def mask_ptrs_of(f):
    return And(f.mask_ptrs_of(table, index, offset) ==
               Concat(offset, bits(index, 24, 0), number(0x7F, 7)),
               f.base_of(table, index, offset) == Concat(bits(table, 63, 7), number(0, 7)))


@statement("the entry is at base + 8 * index (OUT-050)",
           mutant=(MATH, "index << Word{uint64_t{3}}", "index << Word{uint64_t{7}}"))
def table_pointer(f):
    return f.table_pointer(table, index) == table + 8 * wide(index)


@statement("ToPA: the store address is Base + offset, of all entries (OUT-051)",
           mutant=("topa/position.hpp", "active.get<entry::Base>() + where.offset",
                   "(active.get<entry::Base>() | where.offset)"))
def store_address(f):
    return f.topa_store_address(current, offset) == region_base + wide(offset)


@statement("ToPA: bytes left in a region of 4096 << Size, 0 outside (OUT-041, OUT-052)",
           mutant=("topa/position.hpp", "where.offset < size ? size - where.offset",
                   "where.offset <= size ? size - where.offset + 1"))
def bytes_left(f):
    left = region(lambda k: If(UGE(offset, number(1 << k, 32)), number(0, 64),
                               number(1 << k) - wide(offset)))
    return f.topa_bytes_left(current, offset) == left


@statement("ToPA: a step inside a region adds to the offset; one that fills it goes to the next "
           "index, after 1FFFFFFH to 0 (OUT-052, OUT-053, OUT-055)",
           mutant=(MATH, "Word const filled = (offset + bytes) >>",
                   "Word const filled = (offset + bytes + Word{uint64_t{1}}) >>"))
def advanced(f):
    inside = And(ULT(wide(offset), region_bytes), ULE(count, region_bytes - wide(offset)),
                 ULE(index, 0x1FF_FFFF))
    fills = wide(offset) + count == region_bytes
    next_index = If(index == 0x1FF_FFFF, number(0, 32), index + 1)
    to = f.topa_advanced(table, index, offset, current, count, var("to", 192)).memory[0]
    return inside, position(to, table, If(fills, next_index, index),
                            If(fills, number(0, 32), offset + bits(count, 31, 0)))


@statement("ToPA: the entry after a full one; END leads to entry 0 of its table (OUT-053..055)",
           mutant=(MATH, "return (index + Word{uint64_t{1}}) & Word{max_entries - 1};",
                   "return index + Word{uint64_t{1}};"))
def next_entry(f):
    to = var("to", 192)
    after = If(index == 0x1FF_FFFF, number(0, 32), index + 1)
    return (ULE(index, 0x1FF_FFFF),
            And(position(f.next_entry(table, index, offset, to).memory[0], table, after,
                         number(0, 32)),
                position(f.follow_end(current, to).memory[0], region_base, number(0, 32),
                         number(0, 32)),
                f.link_to(table) == Concat(bits(table, 63, 12), number(1, 12))))


@statement("ToPA: the first broken rule of an entry at its place, of all entries, places and "
           "MAXPHYADDR (OUT-060, 062, 063, 065..068)",
           mutant=("topa/entry.hpp", "if (end && at.index == 0)", "if (end && at.index <= 1)"))
def entry_rules(f):
    width, many = var("width", 32), var("many", 1)
    end = bit(current, 0)
    aligned = region(lambda k: bits(current, k, 12) == 0 if k < 12 else
                     bits(current, k - 1, 0) & number((1 << k) - (1 << 12), k) == 0)
    above = by_value(width, range(32, 65),
                     lambda m: bits(current, 63, m) != 0 if m < 64 else current != current)
    rules = [("OUT-060", Or(*[bit(current, at) for at in (1, 3, 5, 10, 11)])),
             ("OUT-062", And(Not(end), Not(aligned))),
             ("OUT-063", above),
             ("OUT-065", And(end, Or(bit(current, 2), bit(current, 4)))),
             ("OUT-066", And(end, index == 0)),
             ("OUT-067", And(many == 0, Not(end), index != 0)),
             ("OUT-068", And(many == 0, end, region_base != table))]
    return (And(UGE(width, 32), ULE(width, 64)),
            f.entry_broken_rule(current, table, index, width, many) == first(rules))


@statement("single range: the mask is MP[31:0] with seven ones (OUT-020, OUT-024)",
           mutant=(MATH, "| Word{word::forced_1_mask()};\n}\n\n/// The value",
                   ";\n}\n\n/// The value"))
def single_mask(f):
    return f.single_mask(pointers) == wide(mask)


@statement("single range: the store address has the offset's bits under the mask (OUT-021), in an "
           "aligned range base + offset (OUT-027)",
           mutant=(MATH, "(base & ~mask) + (offset & mask)", "(base & ~mask) + offset"))
def single_address(f):
    address = f.single_store_address(base, pointers)
    over = wide(mask)
    legal = And(contiguous(mask), base & over == 0, ULE(mp_offset, mask))
    return And((address ^ wide(mp_offset)) & over == 0, (address ^ base) & ~over == 0,
               Implies(legal, address == base + wide(mp_offset)))


@statement("single range: bytes left until the wrap; a step adds modulo the size, and changes "
           "nothing else (OUT-021, OUT-024, OUT-028)",
           mutant=("topa/single_range.hpp", "offset <= mask ? mask + 1 - offset",
                   "offset < mask ? mask + 1 - offset"))
def single_step(f):
    left = If(UGT(mp_offset, mask), number(0, 64), wide(mask) + 1 - wide(mp_offset))
    after = f.single_advanced(pointers, count)
    by_size = And(*[Implies(mask == number((1 << k) - 1, 32),
                            low(after_offset(after), k, 32) == low(mp_offset + low(count, 32, 32),
                                                                   k, 32))
                    for k in range(7, 33)])
    return And(f.single_bytes_left(pointers) == left, bits(after, 31, 0) == bits(pointers, 31, 0),
               by_size, Implies(contiguous(mask), ULE(after_offset(after), mask)))


def after_offset(pointers):
    return field(f"{MP}.OutputOffset", pointers)


@statement("single range: one byte after the last is offset 0 (OUT-021)",
           mutant=(MATH, "return (offset + bytes) & mask;", "return (offset + bytes) % mask;"))
def single_wrap(f):
    after = after_offset(f.single_advanced(pointers, 1))
    return (And(contiguous(mask), ULE(mp_offset, mask)),
            after == If(mp_offset == mask, number(0, 32), mp_offset + 1))


@statement("single range: the first broken rule at enable (OUT-022..024)",
           mutant=("topa/single_range.hpp", "if (offset > mask)", "if (offset >= mask)"))
def single_rules(f):
    return f.single_broken_rule(base, pointers) == first([
        ("OUT-022", Not(contiguous(mask))), ("OUT-023", base & wide(mask) != 0),
        ("OUT-024", UGT(mp_offset, mask))])


@statement("single range: build refuses by rule, else base and MP are those of the request "
           "(OUT-020, OUT-022..024, REG-070)",
           mutant=("topa/single_range.hpp", "wanted.bytes / 128 - 1", "wanted.bytes / 128"))
def single_build(f):
    size, start, width = var("size"), var("start"), var("width", 32)
    powers = [1 << k for k in range(64)]
    power = Or(*[size == one for one in powers])
    above = by_value(width, range(32, 53), lambda m: bits(base, 63, m) != 0)
    rules = [("OUT-020", Or(ULT(size, 128), UGT(size, 1 << 32))), ("OUT-022", Not(power)),
             ("OUT-023", base & (size - 1) != 0), ("OUT-024", UGT(start, size - 1)),
             ("REG-070", above)]
    why = f.single_build(base, size, start, width, var("to", 128))
    built = Concat(bits(start, 31, 0), bits(size - 1, 31, 7), number(0x7F, 7), base)
    return (And(UGE(width, 32), ULE(width, 52), size != 0),
            And(why.value == first(rules),
                why.memory[0] == If(why.value == 0, built, Concat(number(0x7F), number(0, 64)))))
