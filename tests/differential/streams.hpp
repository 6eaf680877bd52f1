// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/random_numbers.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

/// Random traces, made from the layouts of the rule catalogue without the library.
namespace streams {

struct chance : ptspec::test::random_numbers {
    explicit chance(uint64_t seed) : random_numbers{seed} {}

    auto bits() -> uint64_t { return (*this)(); }
    auto byte() -> uint8_t { return static_cast<uint8_t>(bits()); }
    auto flag() -> bool { return (bits() & 1) != 0; }
    /// A number of random magnitude: each bit length is about equally likely.
    auto number() -> uint64_t { return bits() >> below(64); }
};

using buffer = std::vector<uint8_t>;

inline void put(buffer& out, std::initializer_list<unsigned> bytes) {
    for (unsigned const byte : bytes) { out.push_back(static_cast<uint8_t>(byte)); }
}
inline void put_number(buffer& out, uint64_t number, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) { out.push_back(static_cast<uint8_t>(number >> (8 * i))); }
}

inline void put_psb(buffer& out, unsigned pairs = 8) {
    for (unsigned i = 0; i < pairs; ++i) { put(out, {0x02, 0x82}); }
}

/// `count` random branches below their stop bit.
inline auto branches(uint64_t bits, unsigned count) -> uint64_t {
    uint64_t const stop = uint64_t{1} << count;
    return stop | (bits & (stop - 1));
}

/// Writes a valid packet of a kind, according to the layouts of the catalogue, with random payload.
inline void put_packet(buffer& out, chance& random, uint64_t which) {
    uint64_t const bits = random.bits();
    auto const one = static_cast<unsigned>(bits >> 56);
    switch (which) {
        case 0: return out.insert(out.end(), 1 + bits % 9, uint8_t{0}), void();  // PAD
        case 1: return put_number(out, branches(bits, 1 + one % 6) << 1, 1);     // TNT.short
        case 2:                                                                  // TNT.long
            put(out, {0x02, 0xA3});
            return put_number(out, branches(bits, 1 + one % 47), 6);
        case 3:
        case 4:
        case 5:
        case 6: {  // TIP, TIP.PGE, TIP.PGD, FUP
            constexpr unsigned opcodes[] = {0x0D, 0x11, 0x01, 0x1D};
            constexpr unsigned forms[] = {0, 1, 2, 3, 4, 6};
            constexpr unsigned sizes[] = {0, 2, 4, 6, 6, 8};
            unsigned const form = one % 6;
            put(out, {opcodes[which - 3] | forms[form] << 5});
            return put_number(out, random.bits(), sizes[form]);
        }
        case 7: put(out, {0x02, 0x43}); return put_number(out, bits, 6);   // PIP
        case 8: return put(out, {0x99, one & 0x1F});                       // MODE.Exec
        case 9: return put(out, {0x99, 0x20 | (one & 0x1F)});              // MODE.TSX
        case 10: return put(out, {0x02, 0x83});                            // TraceStop
        case 11: put(out, {0x02, 0x03}); return put_number(out, bits, 2);  // CBR
        case 12: put(out, {0x19}); return put_number(out, bits, 7);        // TSC
        case 13: return put(out, {0x59, one});                             // MTC
        case 14:                                                           // TMA
            put(out, {0x02, 0x73});
            put_number(out, bits, 2);
            return put(out, {0, one, one & (random.below(8) == 0 ? 0xFFU : 1U)});
        case 15: {  // CYC
            auto const more = static_cast<unsigned>(random.below(4) == 0 ? one % 11 : one % 3);
            put(out, {(static_cast<unsigned>(bits) & 0xF8) | 3 | (more != 0 ? 4U : 0U)});
            for (unsigned i = 1; i <= more; ++i) {
                auto const seven = static_cast<unsigned>(bits >> (5 * i) & 0xFE);
                put(out, {(i == 9 && one < 200 ? seven & 0x0E : seven) | (i < more ? 1U : 0U)});
            }
            return;
        }
        case 16: put(out, {0x02, 0xC8}); return put_number(out, bits, 5);        // VMCS
        case 17: return put(out, {0x02, 0xF3});                                  // OVF
        case 18: return put_psb(out);                                            // PSB
        case 19: return put(out, {0x02, 0x23});                                  // PSBEND
        case 20: put(out, {0x02, 0xC3, 0x88}); return put_number(out, bits, 8);  // MNT
        case 21:                                                                 // PTW
            put(out, {0x02, 0x12U | (one & 0xA0)});
            return put_number(out, bits, (one & 0x20) != 0 ? 8 : 4);
        case 22: return put(out, {0x02, 0x62 | (one & 0x80)});  // EXSTOP
        case 23:                                                // MWAIT
            put(out, {0x02, 0xC2});
            return put_number(out, random.flag() ? bits : bits & 0x3'0000'00FF, 8);
        case 24: put(out, {0x02, 0x22}); return put_number(out, bits, 2);  // PWRE
        case 25: put(out, {0x02, 0xA2}); return put_number(out, bits, 5);  // PWRX
        case 26: {                                                         // a block
            bool const four = random.flag();
            put(out, {0x02, 0x63, (one & 0x7F) | (four ? 0x80U : 0U)});
            for (uint64_t i = random.below(4); i != 0; --i) {
                if (random.below(4) == 0) { put_packet(out, random, 11 + random.below(5)); }
                put(out, {0x04 | (random.byte() & 0xF8U)});
                put_number(out, random.bits(), four ? 4 : 8);
            }
            return put(out, {0x02, 0x33 | (one & 0x80)});
        }
        case 27: put(out, {0x02, 0x13}); return put_number(out, bits, 2);       // CFE
        case 28: put(out, {0x02, 0x53, one}); return put_number(out, bits, 8);  // EVD
        default:                                                                // TRIG
            put(out, {0xD9, one});
            return put_number(out, bits, (one & 0x40) != 0 ? 3 : 1);
    }
}

constexpr uint64_t packet_choices = 30;

inline void fill_with_packets(buffer& out, chance& random, size_t size) {
    // Some buffers hold few kinds, so that packets of one kind are adjacent more often.
    uint64_t const kinds = random.below(4) == 0 ? 1 + random.below(4) : packet_choices;
    uint64_t const first = random.below(packet_choices);
    while (out.size() < size) {
        put_packet(out, random, (first + random.below(kinds)) % packet_choices);
    }
}

/// Flips bits, and removes, copies and inserts bytes.
inline void mutate(buffer& in, chance& random) {
    auto const place = [&] { return static_cast<std::ptrdiff_t>(random.below(in.size())); };
    for (uint64_t i = 1 + random.below(in.size() / 16); i != 0 && in.size() > 64; --i) {
        auto const at = in.begin() + place();
        auto const room = static_cast<uint64_t>(in.end() - at);
        auto const length = static_cast<std::ptrdiff_t>(random.below(room < 20 ? room : 20));
        switch (random.below(8)) {
            case 0:
            case 1:
            case 2: *at = static_cast<uint8_t>(*at ^ 1U << random.below(8)); break;
            case 3: *at = random.byte(); break;
            case 4: in.erase(at, at + length); break;
            case 5: {
                buffer const piece{at, at + length};
                in.insert(in.begin() + place(), piece.begin(), piece.end());
                break;
            }
            case 6: {
                buffer piece;
                put_packet(piece, random, random.below(packet_choices));
                in.insert(at, piece.begin(), piece.end());
                break;
            }
            default: {
                buffer run;
                put_psb(run, static_cast<unsigned>(1 + random.below(20)));
                in.insert(at, run.begin(), run.end());
                break;
            }
        }
    }
}

/// Random bytes: uniform, or mostly those that begin long packets.
inline void fill_with_noise(buffer& out, chance& random, size_t size) {
    uint64_t const sort = random.below(4);
    while (out.size() < size) {
        uint64_t bits = random.bits();
        if (sort == 1 && bits % 4 == 0) { out.push_back(0x02); }
        if (sort == 2) { bits |= 0x0707; }
        if (sort == 3) { bits &= 0x8282'8282'8282'8282; }
        put_number(out, bits, 8);
    }
}

}  // namespace streams
