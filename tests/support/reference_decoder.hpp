// SPDX-License-Identifier: BSL-1.0
#pragma once

// A reference packet decoder: it reads packets.csv one bit at a time, and implements the rules of
// packets.md. The only part of the library that it uses is `text`.

#include <spec_tables.hpp>

#include <cstddef>

namespace reference {

using ptspec::text;
using ptspec::test::open_end;
using ptspec::test::packet_block;
using ptspec::test::packet_field;
using ptspec::test::packet_length;
using ptspec::test::packet_row;
using ptspec::test::packet_rows;
using ptspec::test::packet_rows_count;

using number = unsigned long long;

struct field {
    text name;
    number value;
};

/// The result of decoding. `error` is empty for a packet.
struct answer {
    unsigned packet = packet_rows_count;  ///< row of packets.csv
    text error{};
    unsigned length = 0;
    unsigned need = 0;
    field fields[8] = {};
    unsigned count = 0;

    constexpr void add(text name, number value) { fields[count++] = {name, value}; }
    [[nodiscard]] constexpr auto name() const -> text {
        return packet < packet_rows_count ? packet_rows[packet].name : text{};
    }
    /// The field with this name, or null.
    [[nodiscard]] constexpr auto find(text name) const -> field const* {
        for (unsigned i = 0; i < count; ++i) {
            if (fields[i].name == name) { return &fields[i]; }
        }
        return nullptr;
    }
};

/// The input.
struct bytes {
    unsigned char const* first;
    std::size_t size;

    /// Bit `m` of byte `n`, `n.m` in the catalogue.
    [[nodiscard]] constexpr auto bit(unsigned n, unsigned m) const -> number {
        return first[n] / (1U << m) % 2;
    }
    /// The bits from `lsb` to `msb`, counted from bit 0 of byte 0.
    [[nodiscard]] constexpr auto run(unsigned lsb, unsigned msb) const -> number {
        number value = 0;
        for (unsigned at = msb + 1; at-- != lsb;) { value = value * 2 + bit(at / 8, at % 8); }
        return value;
    }
    /// True when the fixed bits of byte `n` match those of a packet.
    [[nodiscard]] constexpr auto has(packet_row const& row, unsigned n) const -> bool {
        return (first[n] & row.mask[n]) == row.value[n];
    }
};

constexpr auto failed(text error, unsigned need = 0) -> answer {
    answer out;
    out.error = error;
    out.need = need;
    return out;
}
constexpr auto truncated(unsigned need) -> answer { return failed("truncated", need); }

constexpr auto ones(unsigned mask) -> unsigned {
    unsigned count = 0;
    for (; mask != 0; mask /= 2) { count += mask % 2; }
    return count;
}

/// Finds the packet whose opcode is at the front. Among the candidates, byte by byte, those with
/// the most fixed bits win: PAD and the escape are not TNT.short, and an item inside a block is not
/// either (PKT-010, PKT-012..016, PKT-203).
constexpr auto opcode_at(bytes in, bool in_block) -> answer {
    if (in.size == 0) { return truncated(1); }
    bool possible[packet_rows_count] = {};
    for (unsigned i = 0; i < packet_rows_count; ++i) {
        possible[i] = in_block || !packet_rows[i].only_in_block;
    }
    for (unsigned at = 0;; ++at) {
        unsigned most = 0;
        for (unsigned i = 0; i < packet_rows_count; ++i) {
            possible[i] = possible[i] && at < packet_rows[i].opcode_bytes &&
                          in.has(packet_rows[i], at);
            if (possible[i] && ones(packet_rows[i].mask[at]) > most) {
                most = ones(packet_rows[i].mask[at]);
            }
        }
        if (most == 0) { return failed("bad_opcode"); }
        unsigned found = packet_rows_count;
        for (unsigned i = packet_rows_count; i-- != 0;) {
            possible[i] = possible[i] && ones(packet_rows[i].mask[at]) == most;
            if (possible[i]) { found = i; }
        }
        if (packet_rows[found].opcode_bytes == at + 1) {
            answer out;
            out.packet = found;
            return out;
        }
        if (in.size == at + 1) { return truncated(at + 2); }
    }
}

/// The length, or the error in the header.
constexpr auto length_at(bytes in, packet_row const& row, unsigned item_size) -> answer {
    answer out;
    if (row.length == packet_length::of_block) {
        out.length = 1 + item_size;
    } else if (row.length == packet_length::continued) {
        // PKT-107..111.
        number more = in.bit(0, 2);
        out.length = 1;
        while (more == 1) {
            if (out.length == row.max_bytes) { return failed("bad_packet"); }
            if (in.size == out.length) { return truncated(out.length + 1); }
            more = in.bit(out.length, 0);
            ++out.length;
        }
    } else if (row.length == packet_length::selected) {
        auto const& selector = row.fields[row.selector];
        bool const is_there = selector.lsb / 8 < in.size;
        out.length = row.lengths[is_there ? in.run(selector.lsb, selector.msb) : 0];
        if (out.length == 0) { return failed("reserved"); }
    } else {
        out.length = row.lengths[0];
    }
    return in.size < out.length ? truncated(out.length) : out;
}

/// True when the payload of a packet breaks a rule.
constexpr auto payload_is_bad(bytes in, packet_row const& row, unsigned length, bool strict)
    -> bool {
    for (unsigned at = 0; at < row.fixed_bytes; ++at) {
        if (!in.has(row, at)) { return true; }  // PKT-131
    }
    if (row.name == "TNT.long") { return in.run(17, 63) == 0; }  // PKT-036, PKT-037
    if (row.name == "TMA") {                                     // PKT-104
        return strict && (in.run(32, 39) != 0 || in.run(49, 55) != 0);
    }
    return row.name == "CYC" && length == 10 && in.run(73, 79) > 7;  // PKT-110
}

/// PKT-031, PKT-032, PKT-034, PKT-035: the branches are below the highest 1, down to bit `first`.
constexpr void add_branches(answer& out, bytes in, unsigned first, unsigned last) {
    unsigned stop = last;
    while (in.bit(stop / 8, stop % 8) == 0) { --stop; }
    out.add("count", stop - first);
    out.add("bits", stop == first ? 0 : in.run(first, stop - 1));
}

/// PKT-051, PKT-053..058.
constexpr auto rebuilt_ip(number ip_bytes, number payload, number last_ip) -> number {
    switch (ip_bytes) {
        case 1: return last_ip - last_ip % 0x10000 + payload;
        case 2: return last_ip - last_ip % 0x1'0000'0000 + payload;
        case 3: return payload + (payload < 0x8000'0000'0000 ? 0 : 0xFFFF'0000'0000'0000);
        case 4: return last_ip - last_ip % 0x1'0000'0000'0000 + payload;
        default: return payload;
    }
}

/// PKT-108, PKT-110: five bits, then seven bits of each byte.
constexpr auto cycles_in(bytes in, unsigned length) -> number {
    number value = in.run(3, 7);
    for (unsigned at = 1; at < length; ++at) {
        value += in.run(8 * at + 1, 8 * at + 7) << (7 * at - 2);
    }
    return value;
}

/// The fields of a complete packet, with the names of packet_vectors.csv (PKT-007).
constexpr void add_fields(answer& out, bytes in, packet_row const& row, number last_ip) {
    if (row.name == "TNT.short") { return add_branches(out, in, 1, 7); }
    if (row.name == "TNT.long") { return add_branches(out, in, 16, 63); }
    if (row.name == "CYC") { return out.add("value", cycles_in(in, out.length)); }
    for (unsigned i = 0; i < row.field_count; ++i) {
        auto const& one = row.fields[i];
        if (one.name == "rsvd" || one.name == "leaf" || one.lsb >= 8 * out.length) { continue; }
        number const value = in.run(one.lsb, one.msb == open_end ? 8 * out.length - 1 : one.msb)
                             << one.value_lsb;
        if (one.name == "payloadbytes") {
            out.add("size", value == 0 ? 4 : 8);
        } else if (one.name == "sz") {
            out.add("size", value == 1 ? 4 : 8);
        } else if (i != 0 && one.name == row.fields[i - 1].name) {
            out.fields[out.count - 1].value += value;
        } else {
            out.add(one.name, value);
        }
    }
    if (auto const* const how = out.find("ipbytes"); how != nullptr) {
        auto const* const payload = out.find("payload");
        out.add("ip", payload == nullptr ? 0 : rebuilt_ip(how->value, payload->value, last_ip));
    }
    if (row.name == "MODE.Exec") {
        out.add("mode", in.bit(1, 0) == 1 ? 64 : in.bit(1, 1) == 1 ? 32 : 16);
    }
}

constexpr auto has_leaf(packet_row const& row) -> bool {
    for (unsigned i = 0; i < row.field_count; ++i) {
        if (row.fields[i].name == "leaf") { return true; }
    }
    return false;
}

/// Decodes the packet at the front. `item_size` is the item size of the current BBP block, or 0
/// outside a block.
constexpr auto decode(unsigned char const* first, std::size_t size, unsigned item_size, bool strict,
                      number last_ip) -> answer {
    bytes const in{first, size};
    answer const opcode = opcode_at(in, item_size != 0);
    if (opcode.packet == packet_rows_count) { return opcode; }
    // Of packets that differ only in their leaf, opcode_at finds the first one (PKT-085, PKT-089).
    auto const& shared = packet_rows[opcode.packet];
    unsigned which = opcode.packet;
    if (has_leaf(shared) && size > 1) {
        while (which < packet_rows_count && packet_rows[which].value[0] == shared.value[0] &&
               !in.has(packet_rows[which], 1)) {
            ++which;
        }
        bool const is_one = which < packet_rows_count &&
                            packet_rows[which].value[0] == shared.value[0];
        if (!is_one || in.run(8, 9) == 3) { return failed("reserved"); }  // PKT-089, PKT-090
    }
    auto const& row = packet_rows[which];
    answer out = length_at(in, row, item_size);
    if (out.error.size() != 0) { return out; }
    if (payload_is_bad(in, row, out.length, strict)) { return failed("bad_packet"); }
    out.packet = which;
    add_fields(out, in, row, last_ip);
    return out;
}

/// The item size after a packet, given the item size before it (PKT-205).
constexpr auto item_size_after(answer const& packet, unsigned before) -> unsigned {
    switch (packet_rows[packet.packet].block) {
        case packet_block::keeps: return before;
        case packet_block::sets: return static_cast<unsigned>(packet.find("size")->value);
        case packet_block::clears: break;
    }
    return 0;
}

/// The last IP after a packet, given the last IP before it (PKT-051, PKT-060).
constexpr auto last_ip_after(answer const& packet, number before) -> number {
    if (packet.name() == "PSB") { return 0; }
    bool const has_ip = packet.find("ipbytes") != nullptr && packet.find("payload") != nullptr;
    return has_ip ? packet.find("ip")->value : before;
}

}  // namespace reference
