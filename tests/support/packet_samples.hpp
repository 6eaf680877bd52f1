// SPDX-License-Identifier: BSL-1.0
#pragma once

// One packet of each kind, in each length that it can have: rows of packet_vectors.csv by hand.

#include <support/wire.hpp>

namespace ptspec::test {

/// In which context bytes are the packet that they are said to be.
enum class context_of : uint8_t { any, outside, items_of_4, items_of_8 };

struct packet_sample {
    packet::kind id;
    hex_bytes bytes;
    context_of where = context_of::any;

    [[nodiscard]] constexpr auto stands_in(packet::block items) const noexcept -> bool {
        switch (where) {
            case context_of::any: return true;
            case context_of::outside: return items == packet::block::none;
            case context_of::items_of_4: return items == packet::block::items_of_4;
            case context_of::items_of_8: return items == packet::block::items_of_8;
        }
        return false;
    }
};

inline constexpr packet::block all_contexts[] = {packet::block::none, packet::block::items_of_4,
                                                 packet::block::items_of_8};

inline constexpr packet_sample packet_samples[] = {
    {packet::kind::pad, hex("00")},
    {packet::kind::tnt_short, hex("0C"), context_of::outside},
    {packet::kind::tnt_short, hex("A6")},
    {packet::kind::tnt_long, hex("02 A3 EF CD AB 00 00 00")},
    {packet::kind::tip, hex("0D")},
    {packet::kind::tip, hex("2D 12 34")},
    {packet::kind::tip, hex("4D 78 56 34 12")},
    {packet::kind::tip, hex("6D 78 56 34 12 9A BC")},
    {packet::kind::tip, hex("8D 78 56 34 12 01 00")},
    {packet::kind::tip, hex("CD EF CD AB 89 67 45 23 01")},
    {packet::kind::tip_pge, hex("11")},
    {packet::kind::tip_pge, hex("31 12 34")},
    {packet::kind::tip_pge, hex("51 78 56 34 12")},
    {packet::kind::tip_pge, hex("71 78 56 34 12 9A BC")},
    {packet::kind::tip_pge, hex("91 78 56 34 12 01 00")},
    {packet::kind::tip_pge, hex("D1 EF CD AB 89 67 45 23 01")},
    {packet::kind::tip_pgd, hex("01")},
    {packet::kind::tip_pgd, hex("21 12 34")},
    {packet::kind::tip_pgd, hex("41 78 56 34 12")},
    {packet::kind::tip_pgd, hex("61 78 56 34 12 9A BC")},
    {packet::kind::tip_pgd, hex("81 78 56 34 12 01 00")},
    {packet::kind::tip_pgd, hex("C1 EF CD AB 89 67 45 23 01")},
    {packet::kind::fup, hex("1D")},
    {packet::kind::fup, hex("3D 12 34")},
    {packet::kind::fup, hex("5D 78 56 34 12")},
    {packet::kind::fup, hex("7D 78 56 34 12 9A BC")},
    {packet::kind::fup, hex("9D 78 56 34 12 01 00")},
    {packet::kind::fup, hex("DD EF CD AB 89 67 45 23 01")},
    {packet::kind::pip, hex("02 43 01 12 34 56 78 0A")},
    {packet::kind::mode_exec, hex("99 05")},
    {packet::kind::mode_tsx, hex("99 22")},
    {packet::kind::tracestop, hex("02 83")},
    {packet::kind::cbr, hex("02 03 18 00")},
    {packet::kind::tsc, hex("19 01 02 03 04 05 06 07")},
    {packet::kind::mtc, hex("59 80")},
    {packet::kind::tma, hex("02 73 FF FF 00 FF 01")},
    {packet::kind::cyc, hex("FB")},
    {packet::kind::cyc, hex("DF FA")},
    {packet::kind::cyc, hex("17 01 04")},
    {packet::kind::cyc, hex("FF FF FF FE")},
    {packet::kind::cyc, hex("07 01 01 01 02")},
    {packet::kind::cyc, hex("FF FF FF FF FF FE")},
    {packet::kind::cyc, hex("FF FF FF FF FF FF FE")},
    {packet::kind::cyc, hex("FF FF FF FF FF FF FF FE")},
    {packet::kind::cyc, hex("FF FF FF FF FF FF FF FF FE")},
    {packet::kind::cyc, hex("07 01 01 01 01 01 01 01 01 02")},
    {packet::kind::vmcs, hex("02 C8 05 04 03 02 01")},
    {packet::kind::ovf, hex("02 F3")},
    {packet::kind::psb, hex("0282 0282 0282 0282 0282 0282 0282 0282")},
    {packet::kind::psbend, hex("02 23")},
    {packet::kind::mnt, hex("02 C3 88 01 02 03 04 05 06 07 08")},
    {packet::kind::ptw, hex("02 12 78 56 34 12")},
    {packet::kind::ptw, hex("02 32 EF CD AB 89 67 45 23 01")},
    {packet::kind::ptw, hex("02 92 78 56 34 12")},
    {packet::kind::ptw, hex("02 B2 EF CD AB 89 67 45 23 F1")},
    {packet::kind::exstop, hex("02 62")},
    {packet::kind::exstop, hex("02 E2")},
    {packet::kind::mwait, hex("02 C2 FF 00 00 00 03 00 00 00")},
    {packet::kind::pwre, hex("02 22 80 F0")},
    {packet::kind::pwrx, hex("02 A2 46 04 00 00 00")},
    {packet::kind::bbp, hex("02 63 04")},
    {packet::kind::bbp, hex("02 63 81")},
    {packet::kind::bip, hex("0C EF BE AD DE"), context_of::items_of_4},
    {packet::kind::bip, hex("FC 88 77 66 55 44 33 22 11"), context_of::items_of_8},
    {packet::kind::bep, hex("02 33")},
    {packet::kind::bep, hex("02 B3")},
    {packet::kind::cfe, hex("02 13 81 03")},
    {packet::kind::evd, hex("02 53 00 10 32 54 76 98 BA DC FE")},
    {packet::kind::trig, hex("D9 80 01")},
    {packet::kind::trig, hex("D9 E0 A1 FF FF")},
};

inline constexpr unsigned packet_sample_count = sizeof packet_samples / sizeof *packet_samples;

/// Bytes with every reserved bit of the packet set, and the same with every reserved bit 0.
struct dirty_sample {
    packet::kind id;
    hex_bytes dirty;
    hex_bytes clean;
};

inline constexpr dirty_sample dirty_samples[] = {
    {packet::kind::mode_exec, hex("99 1E"), hex("99 06")},
    {packet::kind::mode_tsx, hex("99 3D"), hex("99 21")},
    {packet::kind::cbr, hex("02 03 18 FF"), hex("02 03 18 00")},
    {packet::kind::tma, hex("02 73 34 12 FF 56 FF"), hex("02 73 34 12 00 56 01")},
    {packet::kind::mwait, hex("02 C2 11 FF FF FF FE FF FF FF"),
     hex("02 C2 11 00 00 00 02 00 00 00")},
    {packet::kind::pwre, hex("02 22 FF 21"), hex("02 22 80 21")},
    {packet::kind::pwrx, hex("02 A2 46 F4 FF FF FF"), hex("02 A2 46 04 00 00 00")},
    {packet::kind::bbp, hex("02 63 E4"), hex("02 63 84")},
    {packet::kind::cfe, hex("02 13 E1 03"), hex("02 13 81 03")},
    {packet::kind::evd, hex("02 53 C2 30 00 00 00 00 00 00 80"),
     hex("02 53 02 30 00 00 00 00 00 00 80")},
    {packet::kind::trig, hex("D9 FF A1 17 80"), hex("D9 E0 A1 17 80")},
};

inline constexpr unsigned dirty_sample_count = sizeof dirty_samples / sizeof *dirty_samples;

}  // namespace ptspec::test
