// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/lang.hpp>

namespace ptspec {

namespace detail {

/// Where the numbers of each family of rules begin: the thousands tell the family.
enum rule_family : uint16_t { reg = 1000, out = 2000, pkt = 3000, gen = 4000, prg = 5000 };

}  // namespace detail

/// A rule that something broke, under its number in the rule catalogue.
///
/// Only rules that a function of this library returns are listed. `none` means: no rule was broken.
enum class rule : uint16_t {
    none = 0,
    OUT_022 = detail::out + 22,
    OUT_023 = detail::out + 23,
    OUT_024 = detail::out + 24,
    OUT_060 = detail::out + 60,
    OUT_061 = detail::out + 61,
    OUT_062 = detail::out + 62,
    OUT_063 = detail::out + 63,
    OUT_065 = detail::out + 65,
    OUT_066 = detail::out + 66,
    PKT_010 = detail::pkt + 10,
    PKT_012 = detail::pkt + 12,
    PKT_013 = detail::pkt + 13,
    PKT_015 = detail::pkt + 15,
    PKT_033 = detail::pkt + 33,
    PKT_036 = detail::pkt + 36,
    PKT_037 = detail::pkt + 37,
    PKT_052 = detail::pkt + 52,
    PKT_089 = detail::pkt + 89,
    PKT_090 = detail::pkt + 90,
    PKT_104 = detail::pkt + 104,
    PKT_110 = detail::pkt + 110,
    PKT_131 = detail::pkt + 131,
    PKT_173 = detail::pkt + 173,
    PKT_255 = detail::pkt + 255,
    PKT_340 = detail::pkt + 340,
    PKT_344 = detail::pkt + 344,
    PKT_347 = detail::pkt + 347,
};

/// One sentence that says what the rule demands.
[[nodiscard]] constexpr auto sentence_of(rule which) noexcept -> text {
    switch (which) {
        case rule::none: return "no rule is broken";
        case rule::OUT_022:
            return "the mask of a single-range output has to be contiguous from bit 0";
        case rule::OUT_023:
            return "the base of a single-range output has to be aligned to its size";
        case rule::OUT_024: return "the output offset has to lie inside the single-range region";
        case rule::OUT_060: return "bits 1, 3, 5, 10 and 11 of a ToPA entry are reserved";
        case rule::OUT_061: return "a ToPA table has to begin at a multiple of 4 KB";
        case rule::OUT_062:
            return "the base of an output region has to be aligned to the region's size";
        case rule::OUT_063: return "an address in a ToPA entry has to lie below 2^MAXPHYADDR";
        case rule::OUT_065: return "a ToPA entry with END may have neither INT nor STOP";
        case rule::OUT_066: return "entry 0 of a ToPA table has to be an output region, not END";
        case rule::PKT_010: return "these bytes begin another packet";
        case rule::PKT_012: return "no packet has this byte after 02";
        case rule::PKT_013: return "no packet has this byte after 02 C3";
        case rule::PKT_015: return "no packet begins with this byte";
        case rule::PKT_033: return "a TNT.short carries 1 to 6 branches";
        case rule::PKT_036: return "a TNT.long needs a stop bit";
        case rule::PKT_037: return "a TNT.long carries at least one branch";
        case rule::PKT_052: return "IPBytes 5 and 7 are reserved";
        case rule::PKT_089: return "MODE leaves 2 to 7 are reserved";
        case rule::PKT_090: return "CS.L with CS.D, and InTX with TXAbort, have no meaning";
        case rule::PKT_104: return "a reserved bit of TMA is set: the packet may be corrupt";
        case rule::PKT_110: return "the value of a CYC has to fit in 64 bits";
        case rule::PKT_131: return "a PSB is 02 82 eight times";
        case rule::PKT_173: return "PayloadBytes 2 and 3 are reserved";
        case rule::PKT_255: return "the packet needs more bytes than there are";
        case rule::PKT_340: return "the value does not fit its field";
        case rule::PKT_344:
            return "this byte would be read as another packet inside or outside a block";
        case rule::PKT_347: return "there is no room for the whole packet";
    }
    return "unknown rule";
}

/// A rule's id as the catalogue spells it, `OUT-062`.
struct rule_id {
    char letters[8] = {'n', 'o', 'n', 'e'};

    constexpr explicit rule_id(rule which) noexcept {
        auto const number = underlying(which);
        if (number < detail::reg) { return; }
        char const families[][4] = {"REG", "OUT", "PKT", "GEN", "PRG"};
        for (unsigned i = 0; i < 3; ++i) { letters[i] = families[(number / 1000U - 1U) % 5U][i]; }
        letters[3] = '-';
        letters[4] = static_cast<char>('0' + number / 100U % 10U);
        letters[5] = static_cast<char>('0' + number / 10U % 10U);
        letters[6] = static_cast<char>('0' + number % 10U);
    }

    [[nodiscard]] constexpr auto view() const noexcept -> text {
        return {letters, letters[4] == 0 ? size_t{4} : size_t{7}};
    }
};

}  // namespace ptspec
