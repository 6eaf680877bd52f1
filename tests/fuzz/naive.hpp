// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ptspec/bytes.hpp>
#include <ptspec/packet/kind.hpp>

/// The packet grammar and the search for PSBs, written down a second time from the catalogue, byte
/// by byte and without a thought of speed. Of the library it uses names of packets and errors.
namespace naive {

using ptspec::byte_view;
using ptspec::packet::error;
using ptspec::packet::kind;

struct outcome {
    error why;
    kind which;       ///< when `why` is `none`
    unsigned length;  ///< when `why` is `none`
    unsigned need;    ///< when truncated
};

inline auto packet(kind which, unsigned length) -> outcome {
    return {error::none, which, length, 0};
}
inline auto failed(error why) -> outcome { return {why, kind::pad, 0, 0}; }
inline auto truncated(unsigned need) -> outcome { return {error::truncated, kind::pad, 0, need}; }

/// A packet of a length that is known, if it is there.
inline auto whole(byte_view in, kind which, unsigned length) -> outcome {
    return in.size() < length ? truncated(length) : packet(which, length);
}

inline auto decode_cyc(byte_view in) -> outcome {
    bool more = (in[0] & 0x04) != 0;
    unsigned length = 1;
    while (more) {
        if (length == 10) { return failed(error::bad_packet); }
        if (in.size() == length) { return truncated(length + 1); }
        more = (in[length] & 0x01) != 0;
        ++length;
    }
    return length == 10 && in[9] >> 1 > 7 ? failed(error::bad_packet) : packet(kind::cyc, length);
}

inline auto decode_ip(byte_view in, kind which) -> outcome {
    switch (in[0] >> 5) {
        case 0: return whole(in, which, 1);
        case 1: return whole(in, which, 3);
        case 2: return whole(in, which, 5);
        case 3: return whole(in, which, 7);
        case 4: return whole(in, which, 7);
        case 6: return whole(in, which, 9);
        default: return failed(error::reserved);
    }
}

inline auto decode_mode(byte_view in) -> outcome {
    if (in.size() < 2) { return truncated(2); }
    unsigned const leaf = in[1] >> 5;
    if (leaf > 1 || (in[1] & 3) == 3) { return failed(error::reserved); }
    return packet(leaf == 0 ? kind::mode_exec : kind::mode_tsx, 2);
}

inline auto decode_psb(byte_view in) -> outcome {
    if (in.size() < 16) { return truncated(16); }
    for (unsigned i = 0; i < 16; ++i) {
        if (in[i] != (i % 2 == 0 ? 0x02 : 0x82)) { return failed(error::bad_packet); }
    }
    return packet(kind::psb, 16);
}

inline auto decode_tnt_long(byte_view in) -> outcome {
    if (in.size() < 8) { return truncated(8); }
    bool branch = in[2] > 1;
    for (unsigned i = 3; i < 8; ++i) { branch = branch || in[i] != 0; }
    return branch ? packet(kind::tnt_long, 8) : failed(error::bad_packet);
}

inline auto decode_extended(byte_view in) -> outcome {
    if (in.size() < 2) { return truncated(2); }
    switch (in[1]) {
        case 0x03: return whole(in, kind::cbr, 4);
        case 0x12: return whole(in, kind::ptw, 6);
        case 0x92: return whole(in, kind::ptw, 6);
        case 0x32: return whole(in, kind::ptw, 10);
        case 0xB2: return whole(in, kind::ptw, 10);
        case 0x52: return failed(error::reserved);
        case 0x72: return failed(error::reserved);
        case 0xD2: return failed(error::reserved);
        case 0xF2: return failed(error::reserved);
        case 0x13: return whole(in, kind::cfe, 4);
        case 0x22: return whole(in, kind::pwre, 4);
        case 0x23: return packet(kind::psbend, 2);
        case 0x33: return packet(kind::bep, 2);
        case 0xB3: return packet(kind::bep, 2);
        case 0x43: return whole(in, kind::pip, 8);
        case 0x53: return whole(in, kind::evd, 11);
        case 0x62: return packet(kind::exstop, 2);
        case 0xE2: return packet(kind::exstop, 2);
        case 0x63: return whole(in, kind::bbp, 3);
        case 0x73: return whole(in, kind::tma, 7);
        case 0x82: return decode_psb(in);
        case 0x83: return packet(kind::tracestop, 2);
        case 0xA2: return whole(in, kind::pwrx, 7);
        case 0xA3: return decode_tnt_long(in);
        case 0xC2: return whole(in, kind::mwait, 10);
        case 0xC3:
            return in.size() < 3   ? truncated(3)
                   : in[2] == 0x88 ? whole(in, kind::mnt, 11)
                                   : failed(error::bad_opcode);
        case 0xC8: return whole(in, kind::vmcs, 7);
        case 0xF3: return packet(kind::ovf, 2);
        default: return failed(error::bad_opcode);
    }
}

/// The packet at the front of `in`. `item_bytes` is 0 outside a block, 4 or 8 inside.
inline auto decode(byte_view in, unsigned item_bytes) -> outcome {
    if (in.empty()) { return truncated(1); }
    unsigned const first = in[0];
    if (item_bytes != 0 && (first & 0x07) == 0x04) { return whole(in, kind::bip, 1 + item_bytes); }
    if (first == 0x00) { return packet(kind::pad, 1); }
    if (first == 0x02) { return decode_extended(in); }
    if ((first & 0x01) == 0) { return packet(kind::tnt_short, 1); }
    if ((first & 0x03) == 0x03) { return decode_cyc(in); }
    switch (first) {
        case 0x19: return whole(in, kind::tsc, 8);
        case 0x59: return whole(in, kind::mtc, 2);
        case 0x99: return decode_mode(in);
        case 0xD9: return whole(in, kind::trig, in.size() > 1 && (in[1] & 0x40) != 0 ? 5 : 3);
        default: break;
    }
    switch (first & 0x1F) {
        case 0x0D: return decode_ip(in, kind::tip);
        case 0x11: return decode_ip(in, kind::tip_pge);
        case 0x01: return decode_ip(in, kind::tip_pgd);
        case 0x1D: return decode_ip(in, kind::fup);
        default: return failed(error::bad_opcode);
    }
}

/// The item size behind a packet, given the one before it (PKT-205). `in` begins with the packet.
inline auto items_behind(kind which, byte_view in, unsigned before) -> unsigned {
    switch (which) {
        case kind::bbp: return (in[2] & 0x80) != 0 ? 4 : 8;
        case kind::pad:
        case kind::tsc:
        case kind::tma:
        case kind::mtc:
        case kind::cyc:
        case kind::cbr:
        case kind::mnt:
        case kind::fup:
        case kind::exstop:
        case kind::pwre:
        case kind::pwrx:
        case kind::bip: return before;
        default: return 0;
    }
}

/// The last IP behind a packet, given the one before it (PKT-051, PKT-060). `in` begins with it.
inline auto last_ip_behind(kind which, byte_view in, uint64_t before) -> uint64_t {
    switch (which) {
        case kind::psb: return 0;
        case kind::tip:
        case kind::tip_pge:
        case kind::tip_pgd:
        case kind::fup: break;
        default: return before;
    }
    uint64_t payload = 0;
    unsigned const form = in[0] >> 5;
    unsigned const bytes = form == 1 ? 2 : form == 2 ? 4 : form == 0 ? 0 : form == 6 ? 8 : 6;
    for (unsigned i = 0; i < bytes; ++i) { payload |= uint64_t{in[1 + i]} << (8 * i); }
    switch (form) {
        case 1: return (before & 0xFFFF'FFFF'FFFF'0000) | payload;
        case 2: return (before & 0xFFFF'FFFF'0000'0000) | payload;
        case 3: return (payload >> 47) != 0 ? payload | 0xFFFF'0000'0000'0000 : payload;
        case 4: return (before & 0xFFFF'0000'0000'0000) | payload;
        case 6: return payload;
        default: return before;
    }
}

/// 02 82 `pairs` times from `at` on.
inline auto pattern_at(byte_view in, size_t at, unsigned pairs) -> bool {
    if (at > in.size() || in.size() - at < size_t{2} * pairs) { return false; }
    for (unsigned i = 0; i < 2 * pairs; ++i) {
        if (in[at + i] != (i % 2 == 0 ? 0x02 : 0x82)) { return false; }
    }
    return true;
}

/// A PSB is eight pairs behind which no ninth stands (PKT-251).
inline auto psb_at(byte_view in, size_t at) -> bool {
    return pattern_at(in, at, 8) && !pattern_at(in, at + 16, 1);
}

/// Where every PSB begins.
inline auto psbs(byte_view in) -> std::vector<size_t> {
    std::vector<size_t> found;
    for (size_t at = 0; at < in.size(); ++at) {
        if (psb_at(in, at)) { found.push_back(at); }
    }
    return found;
}

}  // namespace naive
