// SPDX-License-Identifier: BSL-1.0
#pragma once

// A second packet decoder, to compare with: packets.md sections 2 to 14 written down one sentence
// after the other, a bit at a time, without tables, without tricks, and without anything of the
// library.

#include <cstddef>

namespace plain {

using number = unsigned long long;

struct field {
    char const* name;
    number value;
};

/// What some bytes are. `error` is empty for a packet.
struct answer {
    char const* name = "";
    char const* error = "";
    unsigned length = 0;
    unsigned need = 0;
    field fields[6] = {};
    unsigned count = 0;

    void add(char const* field_name, number value) { fields[count++] = {field_name, value}; }
};

/// The bytes at hand, and what of them a packet's description names.
struct bytes {
    unsigned char const* first;
    std::size_t size;

    /// Bit `m` of byte `n`, `n.m` in the catalogue.
    auto bit(unsigned n, unsigned m) const -> number { return first[n] / (1U << m) % 2; }
    /// The run of bits `a.b..c.d`, the lowest first.
    auto run(unsigned a, unsigned b, unsigned c, unsigned d) const -> number {
        number value = 0;
        for (unsigned at = 8 * c + d + 1; at-- != 8 * a + b;) {
            value = value * 2 + bit(at / 8, at % 8);
        }
        return value;
    }
};

inline auto failed(char const* error, unsigned need = 0) -> answer {
    answer out;
    out.error = error;
    out.need = need;
    return out;
}

inline auto truncated(unsigned need) -> answer { return failed("truncated", need); }

inline auto packet(char const* name, unsigned length) -> answer {
    answer out;
    out.name = name;
    out.length = length;
    return out;
}

// ------------------------------------------------------------------------------ section 3

inline auto tnt_short(bytes in) -> answer {
    // PKT-031, PKT-032.
    unsigned stop = 7;
    while (in.bit(0, stop) == 0) { --stop; }
    answer out = packet("TNT.short", 1);
    out.add("count", stop - 1);
    out.add("bits", stop == 1 ? 0 : in.run(0, 1, 0, stop - 1));
    return out;
}

inline auto tnt_long(bytes in) -> answer {
    // PKT-034..037.
    if (in.size < 8) { return truncated(8); }
    unsigned stop = 48;
    do {
        if (stop == 0) { return failed("bad_packet"); }
        --stop;
    } while (in.bit(2 + stop / 8, stop % 8) == 0);
    if (stop == 0) { return failed("bad_packet"); }
    answer out = packet("TNT.long", 8);
    out.add("count", stop);
    out.add("bits", in.run(2, 0, 2 + (stop - 1) / 8, (stop - 1) % 8));
    return out;
}

// ------------------------------------------------------------------------------ section 4

inline auto ip_packet(char const* name, bytes in, number last_ip) -> answer {
    number const ip_bytes = in.run(0, 5, 0, 7);
    unsigned size = 0;
    switch (ip_bytes) {
        case 0: break;
        case 1: size = 2; break;
        case 2: size = 4; break;
        case 3:
        case 4: size = 6; break;
        case 6: size = 8; break;
        default: return failed("reserved");
    }
    if (in.size < 1 + size) { return truncated(1 + size); }
    answer out = packet(name, 1 + size);
    out.add("ipbytes", ip_bytes);
    if (size == 0) {
        out.add("ip", 0);  // suppressed
        return out;
    }
    number const payload = in.run(1, 0, size, 7);
    number ip = 0;
    switch (ip_bytes) {
        case 1: ip = last_ip - last_ip % 0x10000 + payload; break;
        case 2: ip = last_ip - last_ip % 0x1'0000'0000 + payload; break;
        case 3: ip = payload + (in.bit(6, 7) == 1 ? 0xFFFF'0000'0000'0000 : 0); break;
        case 4: ip = last_ip - last_ip % 0x1'0000'0000'0000 + payload; break;
        default: ip = payload; break;
    }
    out.add("payload", payload);
    out.add("ip", ip);
    return out;
}

// ------------------------------------------------------------------------------ section 5

inline auto pip(bytes in) -> answer {
    if (in.size < 8) { return truncated(8); }
    answer out = packet("PIP", 8);
    out.add("cr3", in.run(3, 0, 7, 7) * 4096 + in.run(2, 1, 2, 7) * 32);
    out.add("nr", in.bit(2, 0));
    return out;
}

inline auto mode(bytes in) -> answer {
    if (in.size < 2) { return truncated(2); }
    number const leaf = in.run(1, 5, 1, 7);
    if (leaf >= 2) { return failed("reserved"); }
    if (in.bit(1, 0) == 1 && in.bit(1, 1) == 1) { return failed("reserved"); }
    if (leaf == 1) {
        answer out = packet("MODE.TSX", 2);
        out.add("intx", in.bit(1, 0));
        out.add("txabort", in.bit(1, 1));
        return out;
    }
    answer out = packet("MODE.Exec", 2);
    out.add("csl", in.bit(1, 0));
    out.add("csd", in.bit(1, 1));
    out.add("iflag", in.bit(1, 2));
    out.add("mode", in.bit(1, 0) == 1 ? 64 : in.bit(1, 1) == 1 ? 32 : 16);
    return out;
}

// ------------------------------------------------------------------------------ section 6

inline auto tsc(bytes in) -> answer {
    if (in.size < 8) { return truncated(8); }
    answer out = packet("TSC", 8);
    out.add("tsc", in.run(1, 0, 7, 7));
    return out;
}

inline auto mtc(bytes in) -> answer {
    if (in.size < 2) { return truncated(2); }
    answer out = packet("MTC", 2);
    out.add("ctc", in.run(1, 0, 1, 7));
    return out;
}

inline auto tma(bytes in, bool strict) -> answer {
    if (in.size < 7) { return truncated(7); }
    if (strict && (in.run(4, 0, 4, 7) != 0 || in.run(6, 1, 6, 7) != 0)) {
        return failed("bad_packet");
    }
    answer out = packet("TMA", 7);
    out.add("ctc", in.run(2, 0, 3, 7));
    out.add("fc", in.run(5, 0, 5, 7) + 256 * in.bit(6, 0));
    return out;
}

inline auto cbr(bytes in) -> answer {
    if (in.size < 4) { return truncated(4); }
    answer out = packet("CBR", 4);
    out.add("ratio", in.run(2, 0, 2, 7));
    return out;
}

inline auto cyc(bytes in) -> answer {
    // PKT-107..111.
    number value = in.run(0, 3, 0, 7);
    number exp = in.bit(0, 2);
    unsigned k = 0;
    while (exp == 1) {
        ++k;
        if (k == 10) { return failed("bad_packet"); }
        if (in.size < k + 1) { return truncated(k + 1); }
        exp = in.bit(k, 0);
        number const seven = in.run(k, 1, k, 7);
        if (k == 9 && (seven > 7 || exp == 1)) { return failed("bad_packet"); }
        for (unsigned bit = 0; bit < 7; ++bit) {
            unsigned const place = 5 + 7 * (k - 1) + bit;
            if (seven / (1U << bit) % 2 == 1) { value += 1ULL << place; }
        }
    }
    answer out = packet("CYC", k + 1);
    out.add("value", value);
    return out;
}

// ---------------------------------------------------------------------------- sections 7 to 9

inline auto vmcs(bytes in) -> answer {
    if (in.size < 7) { return truncated(7); }
    answer out = packet("VMCS", 7);
    out.add("base", in.run(2, 0, 6, 7) * 4096);
    return out;
}

inline auto mnt(bytes in) -> answer {
    if (in.size < 3) { return truncated(3); }
    if (in.run(2, 0, 2, 7) != 0x88) { return failed("bad_opcode"); }
    if (in.size < 11) { return truncated(11); }
    answer out = packet("MNT", 11);
    out.add("payload", in.run(3, 0, 10, 7));
    return out;
}

inline auto psb(bytes in) -> answer {
    if (in.size < 16) { return truncated(16); }
    for (unsigned i = 0; i < 16; ++i) {
        if (in.first[i] != (i % 2 == 0 ? 0x02 : 0x82)) { return failed("bad_packet"); }
    }
    return packet("PSB", 16);
}

// ---------------------------------------------------------------------------- sections 10, 11

inline auto ptw(bytes in) -> answer {
    number const payload_bytes = in.run(1, 5, 1, 6);
    if (payload_bytes >= 2) { return failed("reserved"); }
    unsigned const size = payload_bytes == 0 ? 4 : 8;
    if (in.size < 2 + size) { return truncated(2 + size); }
    answer out = packet("PTW", 2 + size);
    out.add("size", size);
    out.add("payload", in.run(2, 0, 1 + size, 7));
    out.add("ip", in.bit(1, 7));
    return out;
}

inline auto exstop(bytes in) -> answer {
    answer out = packet("EXSTOP", 2);
    out.add("ip", in.bit(1, 7));
    return out;
}

inline auto mwait(bytes in) -> answer {
    if (in.size < 10) { return truncated(10); }
    answer out = packet("MWAIT", 10);
    out.add("hints", in.run(2, 0, 2, 7));
    out.add("ext", in.run(6, 0, 6, 1));
    return out;
}

inline auto pwre(bytes in) -> answer {
    if (in.size < 4) { return truncated(4); }
    answer out = packet("PWRE", 4);
    out.add("hw", in.bit(2, 7));
    out.add("state", in.run(3, 4, 3, 7));
    out.add("substate", in.run(3, 0, 3, 3));
    return out;
}

inline auto pwrx(bytes in) -> answer {
    if (in.size < 7) { return truncated(7); }
    answer out = packet("PWRX", 7);
    out.add("last", in.run(2, 4, 2, 7));
    out.add("deepest", in.run(2, 0, 2, 3));
    out.add("reason", in.run(3, 0, 3, 3));
    return out;
}

// ---------------------------------------------------------------------------- sections 12 to 14

inline auto bbp(bytes in) -> answer {
    if (in.size < 3) { return truncated(3); }
    answer out = packet("BBP", 3);
    out.add("size", in.bit(2, 7) == 1 ? 4 : 8);
    out.add("type", in.run(2, 0, 2, 4));
    return out;
}

inline auto bip(bytes in, unsigned item_size) -> answer {
    if (in.size < 1 + item_size) { return truncated(1 + item_size); }
    answer out = packet("BIP", 1 + item_size);
    out.add("id", in.run(0, 3, 0, 7));
    out.add("payload", in.run(1, 0, item_size, 7));
    return out;
}

inline auto bep(bytes in) -> answer {
    answer out = packet("BEP", 2);
    out.add("ip", in.bit(1, 7));
    return out;
}

inline auto cfe(bytes in) -> answer {
    if (in.size < 4) { return truncated(4); }
    answer out = packet("CFE", 4);
    out.add("type", in.run(2, 0, 2, 4));
    out.add("vector", in.run(3, 0, 3, 7));
    out.add("ip", in.bit(2, 7));
    return out;
}

inline auto evd(bytes in) -> answer {
    if (in.size < 11) { return truncated(11); }
    answer out = packet("EVD", 11);
    out.add("type", in.run(2, 0, 2, 5));
    out.add("payload", in.run(3, 0, 10, 7));
    return out;
}

inline auto trig(bytes in) -> answer {
    if (in.size < 2) { return truncated(3); }
    bool const counts = in.bit(1, 6) == 1;
    unsigned const length = counts ? 5 : 3;
    if (in.size < length) { return truncated(length); }
    answer out = packet("TRIG", length);
    out.add("trbv", in.run(2, 0, 2, 7));
    out.add("ip", in.bit(1, 7));
    out.add("icntv", in.bit(1, 6));
    out.add("mult", in.bit(1, 5));
    if (counts) { out.add("icnt", in.run(3, 0, 4, 7)); }
    return out;
}

// ------------------------------------------------------------------------------ section 2

/// Behind 02: PKT-012.
inline auto extended(bytes in, bool strict) -> answer {
    if (in.size < 2) { return truncated(2); }
    unsigned const second = in.first[1];
    if (second % 32 == 0x12) { return ptw(in); }
    switch (second) {
        case 0x03: return cbr(in);
        case 0x13: return cfe(in);
        case 0x22: return pwre(in);
        case 0x23: return packet("PSBEND", 2);
        case 0x33: return bep(in);
        case 0x43: return pip(in);
        case 0x53: return evd(in);
        case 0x62: return exstop(in);
        case 0x63: return bbp(in);
        case 0x73: return tma(in, strict);
        case 0x82: return psb(in);
        case 0x83: return packet("TraceStop", 2);
        case 0xA2: return pwrx(in);
        case 0xA3: return tnt_long(in);
        case 0xB3: return bep(in);
        case 0xC2: return mwait(in);
        case 0xC3: return mnt(in);
        case 0xC8: return vmcs(in);
        case 0xE2: return exstop(in);
        case 0xF3: return packet("OVF", 2);
        default: return failed("bad_opcode");
    }
}

/// The packet at the front, behind a BBP with items of `item_size` bytes, or 0: PKT-010, PKT-014.
inline auto decode(unsigned char const* first, std::size_t size, unsigned item_size, bool strict,
                   number last_ip) -> answer {
    bytes const in{first, size};
    if (size == 0) { return truncated(1); }
    unsigned const b = first[0];
    if (item_size != 0 && b % 8 == 4) { return bip(in, item_size); }
    if (b == 0x00) { return packet("PAD", 1); }
    if (b == 0x02) { return extended(in, strict); }
    if (b % 2 == 0) { return tnt_short(in); }
    if (b % 4 == 3) { return cyc(in); }
    switch (b % 32) {
        case 0x0D: return ip_packet("TIP", in, last_ip);
        case 0x11: return ip_packet("TIP.PGE", in, last_ip);
        case 0x01: return ip_packet("TIP.PGD", in, last_ip);
        case 0x1D: return ip_packet("FUP", in, last_ip);
        default: break;
    }
    switch (b) {
        case 0x19: return tsc(in);
        case 0x59: return mtc(in);
        case 0x99: return mode(in);
        case 0xD9: return trig(in);
        default: return failed("bad_opcode");
    }
}

}  // namespace plain
