#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Turns tables of the catalogue into arrays that a constant expression can read.

    spec_tables.py packets SPEC OUTPUT    writes the header OUTPUT from SPEC/packets.csv,
                                          SPEC/packet_vectors.csv and SPEC/opcode_map.csv
    spec_tables.py cases SPEC OUTPUT      from the worked cases of SPEC/registers.md and the
                                          profiles that they run on
    spec_tables.py outputs SPEC OUTPUT    from the worked cases of SPEC/output.md; OUTPUT includes
                                          <rc_cases.hpp>, which has the profiles
    spec_tables.py traces SPEC OUTPUT     from the worked cases of SPEC/tracing.md

Cells become what the test needs them to be, and nothing more is made of them here.
"""

import csv
import pathlib
import re
import sys

import oc_cases
import rc_cases
import spec_page
import tc_cases

HEAD = """\
// SPDX-License-Identifier: BSL-1.0
#pragma once

// Made by tests/support/spec_tables.py from tables of the catalogue.

#include <ptspec/lang.hpp>
{includes}
namespace ptspec::test {{
"""

# The longest list of fields is filled in.
PACKETS = """\

/// Bits of a packet, counted from bit 0 of byte 0. A payload of several lengths ends at `open_end`.
struct packet_field {{
    text name;      ///< in packet_vectors.csv; `rsvd` and `leaf` are not told there
    text cpp_name;  ///< the row of the layout
    unsigned lsb;
    unsigned msb;
    unsigned value_lsb;  ///< the bit of the value that stands at `lsb`
}};
inline constexpr unsigned open_end = ~0U;

/// What decides a packet's length.
enum class packet_length : unsigned char {{
    fixed,      ///< `lengths[0]`
    selected,   ///< the field `selector`: `lengths[its value]`, 0 where the value is reserved
    of_block,   ///< one byte and an item of the open block
    continued,  ///< each byte says whether another one follows
}};

enum class packet_block : unsigned char {{ keeps, clears, sets }};

/// A row of packets.csv.
struct packet_row {{
    text name;
    text cpp_name;
    unsigned opcode_bytes;  ///< the first of the fixed bytes, which tell the packet from others
    unsigned fixed_bytes;
    unsigned char value[16];
    unsigned char mask[16];
    bool only_in_block;
    packet_length length;
    unsigned selector;
    unsigned lengths[8];
    unsigned most_bytes;
    unsigned field_count;
    packet_field fields[{most_fields}];
    text binds_to_ip;
    bool in_psb_plus;
    text cyc_eligible;
    packet_block block;
}};

/// A row of packet_vectors.csv.
struct packet_vector {{
    text id;
    unsigned char bytes[24];
    unsigned size;
    text name;
    unsigned packet;  ///< the row of packets.csv, or how many there are
    text fields;
    unsigned length;
    unsigned block;
    unsigned long long last_ip;
    int canonical;  ///< -1 where the cell is empty
}};

/// A row of opcode_map.csv.
struct opcode_row {{
    text space;
    unsigned char byte;
    text packet;
    text length;
    text error;
}};
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

# The ids of the engine's cases and the longest lists are filled in. How a test uses them:
#
#     constexpr auto holds(oc_engine_case const& row) -> bool;  // sets up, enables, writes
#
#     template <oc_engine Case>
#     struct case_holds {
#         static constexpr bool value = holds(oc_engine_cases[static_cast<unsigned>(Case)]);
#         static_assert(value, "this case does not hold");  // and the compiler says which
#     };
#     template <std::size_t... Numbers>
#     constexpr auto all_hold(std::index_sequence<Numbers...>) -> bool {
#         return (... & case_holds<static_cast<oc_engine>(Numbers)>::value);
#     }
#     static_assert(all_hold(std::make_index_sequence<oc_engine_cases_count>{}));
#
# and, as constant evaluation has its limits, `for (auto const& row : oc_engine_cases)` at run time
# for those that write much.
OUTPUTS = """\

enum class oc_scheme : unsigned char {{ single, topa }};
/// The rows of oc_engine_cases, in their order.
enum class oc_engine : unsigned char {{ {engine_cases} }};

/// 64 bits of memory, at a multiple of 8. What is not listed is 0.
struct oc_word {{
    unsigned long long address;
    unsigned long long word;
}};

/// What has to be true behind an engine case. `base` and `mask_ptrs` are complete.
///
/// first, last:      the addresses of the first and the last byte that had one, dropped ones
///                   included; has_addresses: any had.
/// global_status_55: IA32_PERF_GLOBAL_STATUS[55] is 1. False claims nothing.
/// pend_topa_pmi:    IA32_RTIT_STATUS.PendToPAPMI is 1. False claims nothing.
struct oc_wanted {{
    bool error;
    bool stopped;
    unsigned long long base;
    unsigned long long mask_ptrs;
    bool has_addresses;
    unsigned long long first;
    unsigned long long last;
    unsigned long long stored;
    unsigned long long lost;
    unsigned pmi;
    bool global_status_55;
    bool pend_topa_pmi;
}};

/// From this setup TraceEn rises, which does not fault, and then as many bytes as each of `writes`
/// says are written, in one call each.
///
/// CTL:    TraceEn, OS, User and BranchEn; ToPA as `scheme` says; InjectPsbPmiOnEnable as `inject`.
/// STATUS: Stopped as `stopped` says.
/// SMRR:   PHYSBASE and PHYSMASK, raw, where there is one.
/// Policy: a single region's interrupt comes 512 bytes early; restricted memory drops bytes.
struct oc_engine_case {{
    text id;
    rc_profile profile;
    oc_scheme scheme;
    unsigned long long base;
    unsigned long long mask_ptrs;
    bool stopped;
    bool inject;
    bool has_smrr;
    unsigned long long smrr_base;
    unsigned long long smrr_mask;
    unsigned memory_count;
    oc_word memory[{most_words}];
    unsigned write_count;
    unsigned long long writes[{most_writes}];
    oc_wanted wanted;
    unsigned rule_count;
    text rules[{most_rules}];
}};

/// The fields of a table entry; `base` is the next table's where `end` is true.
struct oc_entry {{
    bool end;
    bool interrupt;
    bool stop;
    unsigned size;
    unsigned long long base;
}};

/// `entry` is encoded as `word`.
struct oc_encode_case {{
    text id;
    oc_entry entry;
    unsigned long long word;
    unsigned rule_count;
    text rules[{most_rules}];
}};

/// `word` is decoded as `entry`; `broken` is the rule that it breaks on a processor with
/// `max_phys_addr`, or empty.
struct oc_decode_case {{
    text id;
    unsigned long long word;
    unsigned max_phys_addr;
    oc_entry entry;
    text broken;
    unsigned rule_count;
    text rules[{most_rules}];
}};

/// A single range of `bytes` from `start` on, beginning at byte `offset`, is this BASE and
/// MASK_PTRS.
struct oc_build_case {{
    text id;
    unsigned long long start;
    unsigned long long bytes;
    unsigned long long offset;
    unsigned long long base;
    unsigned long long mask_ptrs;
    unsigned rule_count;
    text rules[{most_rules}];
}};

/// BASE and MASK_PTRS as a position in a table; `entry` is the address of the current entry.
struct oc_locate_case {{
    text id;
    unsigned long long base;
    unsigned long long mask_ptrs;
    unsigned idx;
    unsigned long long entry;
    unsigned off;
    unsigned rule_count;
    text rules[{most_rules}];
}};

/// Prose: in every setup, writing `pieces` comes to the same as writing `whole` bytes at once.
struct oc_pieces_case {{
    text id;
    unsigned piece_count;
    unsigned long long pieces[{most_pieces}];
    unsigned long long whole;
    unsigned rule_count;
    text rules[{most_rules}];
}};
"""

# The longest lists are filled in.
TRACES = """\

/// A field, or what else can be asked for, and its value.
struct tc_claim {{
    text name;
    text value;
}};

/// What one processor does, and the trace that it makes of it.
struct tc_part {{
    text events;
    unsigned packet_count;
    text packets[{most_packets}];
    unsigned claim_count;
    tc_claim claims[{most_claims}];
}};

/// A row of the worked cases.
struct tc_case {{
    text id;
    text setup;
    unsigned part_count;
    tc_part parts[2];
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


def without_remarks(cell):
    """A cell without what stands in parentheses."""
    return re.sub(r" ?\([^)]*\)", "", cell)


def packet_fields(row):
    """The fields of a packet: name, row of the layout, lsb, msb or None, lsb of the value."""
    cells = list(filter(None, without_remarks(row["fields"]).split(";")))
    names = row["cpp_name"].split(";")[1:]
    if len(cells) != len(names):
        raise ValueError(f"{row['name']}: {len(cells)} fields, {len(names)} names")
    for cell, cpp_name in zip(cells, names):
        found = re.fullmatch(r"(\w+)(?:\[\d+:(\d+)\])?:(\d+)\.(\d)(?:\.\.(\d+|n)\.(\d))?"
                             r"(?: or 1\.0\.\.\d\.7)?(?: if \w+)?", cell)
        if found:
            name, value_lsb, byte, bit, last_byte, last_bit = found.groups()
            lsb = 8 * int(byte) + int(bit)
            is_open = last_byte == "n" or " or " in cell
            msb = None if is_open else 8 * int(last_byte) + int(last_bit) if last_byte else lsb
            yield name, cpp_name, lsb, msb, int(value_lsb or 0)
        elif not re.fullmatch(r"(then per byte )?\w+:n\.\d(\.\.n\.\d)?", cell):
            raise ValueError(f"{row['name']}: not understood: {cell}")


def packet_length(cell, fields):
    """The rule of a length, the number of the field that selects, the lengths by its value."""
    if cell.isdigit():
        return "fixed", 0, [int(cell)]
    names = [field[0] for field in fields]
    if found := re.fullmatch(r"(\d+)\+\{([\d;]+)\} for (\w+) \{([\d;]+)\}", cell):
        lengths = [0] * 8
        for size, value in zip(found[2].split(";"), found[4].split(";"), strict=True):
            lengths[int(value)] = int(found[1]) + int(size)
        return "selected", names.index(found[3].lower()), lengths
    if found := re.fullmatch(r"(\d+) or (\d+) \((\w+)\)", cell):
        return "selected", names.index(found[3]), [int(found[1]), int(found[2])]
    if re.fullmatch(r"5 or 9 \(BBP\.sz\)", cell):
        return "of_block", 0, [5, 9]
    if found := re.fullmatch(r"1\.\.(\d+)", cell):
        return "continued", 0, [int(found[1])]
    raise ValueError(f"a length that is not understood: {cell}")


def packet(row, rows):
    fields = list(packet_fields(row))
    opcode = without_remarks(row["opcode_bytes_hex"])
    only_in_block = opcode.endswith(" inside a block only")
    opcode = opcode.removesuffix(" inside a block only")
    repeats = int(opcode.rpartition(" x")[2]) if " x" in opcode else 1
    pairs = [pair.split("/") for pair in opcode.partition(" x")[0].split(" ")]
    # A leaf is fixed but belongs to the header, not to the opcode.
    leaves = [field[2] // 8 for field in fields if field[0] == "leaf"]
    values, masks = (", ".join(f"0x{pair[i]}" for pair in pairs * repeats) for i in (0, 1))
    cell = row["total_length_bytes"]
    if cell.startswith("as "):
        cell = next(one["total_length_bytes"] for one in rows if one["name"] == cell[3:])
    rule, selector, lengths = packet_length(cell, fields)
    cells = [quoted(row["name"]), quoted(row["cpp_name"].partition(";")[0]),
             str(min(leaves, default=len(pairs))), str(len(pairs) * repeats), f"{{{values}}}",
             f"{{{masks}}}", truth(only_in_block), f"packet_length::{rule}", str(selector),
             braced(map(str, lengths)), str(max(lengths)),
             *counted(fields, lambda one: braced(
                 [quoted(one[0]), quoted(one[1]), str(one[2]),
                  "open_end" if one[3] is None else str(one[3]), str(one[4])])),
             quoted(row["binds_to_IP"]), {"y": "true", "n": "false"}[row["allowed_in_psb_plus"]],
             quoted(row["cyc_eligible"]), f"packet_block::{row['block']}"]
    return f"    {braced(cells)},\n"


def samples(vectors):
    """The numbers of a few vectors of each packet in each of its lengths: the first, the last, and
    the one of which most bytes differ."""
    of_length = {}
    for number, row in enumerate(vectors):
        if row["canonical"] == "1" and 2 * int(row["length"]) == len(row["bytes_hex"]):
            key = row["expected_packet_name"], row["length"]
            of_length.setdefault(key, []).append(number)

    def variety(number):
        return len(set(bytes.fromhex(vectors[number]["bytes_hex"])))

    return sorted({number for numbers in of_length.values()
                   for number in (numbers[0], numbers[-1], max(numbers, key=variety))})


def vector(row, names):
    data = bytes.fromhex(row["bytes_hex"])
    block, last_ip = context(row["ctx"])
    name = row["expected_packet_name"]
    cells = [quoted(row["id"]), "{" + ", ".join(f"0x{byte:02X}" for byte in data) + "}",
             str(len(data)), quoted(name),
             str(names.index(name) if name in names else len(names)), quoted(row["expected_fields"]),
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


def truth(flag):
    return str(bool(flag)).lower()


def step(one):
    def claim(made):
        return braced([f"rc_what::{made.what}", *map(number, made[1:])])

    return braced([f"rc_operation::{one.operation}", number(one.index), number(one.value),
                   truth(one.pae), braced(map(number, one.quadwords)),
                   *counted(one.claims, claim)])


def profile_name(name):
    return "rc_profile::" + name.replace("-", "_")


def case(row):
    cells = [quoted(row.id), profile_name(row.profile),
             *map(truth, (row.enclave, row.in_vmx, row.separate)),
             *counted(row.puts, lambda put: braced(map(number, put))),
             *counted(row.steps, step), *counted(row.rules, quoted)]
    return f"    {braced(cells)},\n"


def entry(fields):
    return braced([*map(truth, fields[:3]), *map(number, fields[3:])])


def wanted(claims):
    return braced([truth(claims.error), truth(claims.stopped), number(claims.base),
                   number(claims.mask_ptrs), truth(claims.reach),
                   *map(number, claims.reach or (0, 0)), number(claims.stored), number(claims.lost),
                   number(claims.pmi), truth(claims.global_status_55),
                   truth(claims.pend_topa_pmi)])


def engine_case(row):
    return [profile_name(row.profile), f"oc_scheme::{row.scheme}", number(row.base),
            number(row.mask_ptrs), *map(truth, (row.stopped, row.inject, row.smrr)),
            *map(number, row.smrr or (0, 0)),
            *counted(row.memory, lambda word: braced(map(number, word))),
            *counted(row.writes, number), wanted(row.wanted)]


def encode_case(row):
    return [entry(row.entry), number(row.word)]


def decode_case(row):
    return [number(row.word), number(row.max_phys_addr), entry(row.entry), quoted(row.broken or "")]


def pieces_case(row):
    return [*counted(row.pieces, number), number(row.whole)]


def numbers_case(row):
    return map(number, row[1:-1])


def spelled(items):
    return ", ".join(item.replace("-", "_") for item in items)


def table(kind, name, lines):
    return (f"\ninline constexpr {kind} {name}[] = {{\n{''.join(lines)}}};\n"
            f"inline constexpr unsigned {name}_count = {len(lines)};\n")


def packets(spec):
    rows = rows_of(spec / "packets.csv")
    vectors = rows_of(spec / "packet_vectors.csv")
    names = [row["name"] for row in rows]
    kinds = PACKETS.format(most_fields=max(len(list(packet_fields(row))) for row in rows))
    return (kinds + table("packet_row", "packet_rows", [packet(row, rows) for row in rows])
            + table("packet_vector", "packet_vectors", [vector(row, names) for row in vectors])
            + "\n/// A few vectors of each packet in each of its lengths."
            + table("unsigned", "sample_vectors",
                    [f"    {number},\n" for number in samples(vectors)])
            + table("opcode_row", "opcode_rows",
                    [opcode(row) for row in rows_of(spec / "opcode_map.csv")]))


def cases(spec):
    catalogue = rc_cases.Catalogue(spec)
    rows = rc_cases.read_cases(catalogue)
    steps = [one for row in rows for one in row.steps]
    kinds = CASES.format(
        operations=spelled(rc_cases.OPERATIONS), claims=spelled(rc_cases.CLAIMS),
        profiles=spelled(catalogue.profiles), cases=spelled(row.id for row in rows),
        most_claims=max(len(one.claims) for one in steps),
        most_puts=max(1, *(len(row.puts) for row in rows)),
        most_steps=max(len(row.steps) for row in rows),
        most_rules=max(len(row.rules) for row in rows))
    return (kinds + table("rc_profile_row", "rc_profiles",
                          [profile(name, words) for name, words in catalogue.profiles.items()])
            + table("rc_case", "rc_cases", [case(row) for row in rows]))


OUTPUT_KINDS = {oc_cases.Engine: engine_case, oc_cases.Encode: encode_case,
                oc_cases.Decode: decode_case, oc_cases.Build: numbers_case,
                oc_cases.Locate: numbers_case, oc_cases.Pieces: pieces_case}


def outputs(spec):
    rows = oc_cases.read_cases(oc_cases.Catalogue(spec))
    of_kind = {kind: [row for row in rows if isinstance(row, kind)] for kind in OUTPUT_KINDS}
    engine = of_kind[oc_cases.Engine]
    kinds = OUTPUTS.format(
        engine_cases=spelled(row.id for row in engine),
        most_words=max(1, *(len(row.memory) for row in engine)),
        most_writes=max(1, *(len(row.writes) for row in engine)),
        most_pieces=max(len(row.pieces) for row in of_kind[oc_cases.Pieces]),
        most_rules=max(len(row.rules) for row in rows))
    tables = []
    for kind, write in OUTPUT_KINDS.items():
        name = f"oc_{kind.__name__.lower()}_case"
        lines = [braced([quoted(row.id), *write(row), *counted(row.rules, quoted)])
                 for row in of_kind[kind]]
        tables.append(table(name, name + "s", [f"    {line},\n" for line in lines]))
    return kinds + "".join(tables)


def trace_case(row):
    def part(one):
        return braced([quoted(one.events), *counted(one.packets, quoted),
                       *counted(one.claims, lambda claim: braced(map(quoted, claim)))])

    cells = [quoted(row.id), quoted(row.setup), *counted(row.parts, part),
             *counted(row.rules, quoted)]
    return f"    {braced(cells)},\n"


def traces(spec):
    rows = tc_cases.read_cases(spec_page.Catalogue(spec))
    parts = [part for row in rows for part in row.parts]
    kinds = TRACES.format(most_packets=max(len(part.packets) for part in parts),
                          most_claims=max(len(part.claims) for part in parts),
                          most_rules=max(len(row.rules) for row in rows))
    return kinds + table("tc_case", "tc_cases", [trace_case(row) for row in rows])


def main(arguments):
    writers = {"packets": (packets, ""), "cases": (cases, ""),
               "outputs": (outputs, "\n#include <rc_cases.hpp>\n"), "traces": (traces, "")}
    if len(arguments) != 3 or arguments[0] not in writers:
        print(__doc__, file=sys.stderr)
        return 2
    spec, output = map(pathlib.Path, arguments[1:])
    write, includes = writers[arguments[0]]
    text = HEAD.format(includes=includes) + write(spec) + "\n}  // namespace ptspec::test\n"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
