// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/packets.hpp>
#include <support/random_numbers.hpp>
#include <support/wire.hpp>

#include <ptspec/packet/decode.hpp>
#include <ptspec/packet/encode.hpp>

#include <string>

// Laws that hold for every packet and every field of it.

namespace hana = boost::hana;
using namespace ptspec;
using namespace ptspec::packet;
using test::all_packets;
using test::rows_of_kind;

namespace {

template <class Wrapped>
using type_in = typename Wrapped::type;

/// Checks a law, `[]<class Packet>(random_numbers random, unsigned rounds) -> bool`, for every
/// packet: in a constant expression for a few rounds, and at run time for more rounds on numbers
/// that the compiler cannot see.
template <class Law>
void for_every_packet(Law law) {
    bool good[kind_count] = {};
    hana::for_each(all_packets, [&](auto wrapped) {
        using one = type_in<decltype(wrapped)>;
        constexpr auto id = underlying(one::about.id);
        static_assert(Law{}.template operator()<one>(test::random_numbers{id}, 2));
        good[id] = law.template operator()<one>(test::unknown{}(test::random_numbers{id + 100U}),
                                                200);
    });
    for (unsigned i = 0; i < kind_count; ++i) {
        auto const name = name_of(static_cast<kind>(i));
        CAPTURE(std::string(name.data(), name.size()));
        CHECK(good[i]);
    }
}

// ------------------------------------------------------------------------------------ bits

template <class Raw>
constexpr auto widened(Raw raw) -> wide_bits {
    if constexpr (same_as<Raw, wide_bits>) {
        return raw;
    } else {
        return {raw, 0};
    }
}

constexpr auto bit_of(wide_bits bits, unsigned at) -> bool {
    return ((at < 64 ? bits.low : bits.high) >> (at % 64) & 1) != 0;
}

/// Bits `lsb` to `msb` of a word as a number, computed bit by bit.
constexpr auto bits_of(wide_bits bits, unsigned msb, unsigned lsb) -> uint64_t {
    uint64_t value = 0;
    for (unsigned at = msb + 1; at-- != lsb;) { value = value * 2 + (bit_of(bits, at) ? 1 : 0); }
    return value;
}

template <class Row>
constexpr auto is_inside(unsigned at) -> bool {
    return at < Row::msb + 1 && at + 1 > Row::lsb;
}

// ------------------------------------------------------------------------------------ packets

/// A packet with random fields. Some of them are illegal.
template <class Packet>
constexpr auto random_packet(test::random_numbers& random, block items) -> Packet {
    if constexpr (same_as<Packet, cyc>) {
        return cyc::of(random() >> random.below(64), static_cast<unsigned>(random.below(11)));
    } else {
        Packet packet{};
        hana::for_each(rows_of_kind<Packet, row_kind::field>, [&](auto row) {
            packet = packet.with(type_in<decltype(row)>{wrapped{random() >> random.below(64)}});
        });
        if constexpr (Packet::max_bytes != Packet::head_bytes) {
            unsigned const length = Packet::length_of(packet.raw, items);
            if (length > Packet::head_bytes && length <= Packet::max_bytes) {
                unsigned const bits = 8 * (length - Packet::head_bytes);
                packet = packet.with_payload(random() >> (64 - bits));
            }
        }
        return packet;
    }
}

/// True if a packet with these bits may be encoded: PKT-033, PKT-036,037, PKT-052, PKT-090,
/// PKT-173, PKT-344.
template <class Packet>
constexpr auto is_legal(wide_bits bits, block items) -> bool {
    uint64_t const low = bits.low;
    switch (Packet::about.id) {
        case kind::tnt_short: return low >= 4 && (items == block::none || low % 8 != 4);
        case kind::tnt_long: return low >> 16 >= 2;
        case kind::tip:
        case kind::tip_pge:
        case kind::tip_pgd:
        case kind::fup: return (low >> 5 & 7) != 5 && (low >> 5 & 7) != 7;
        case kind::mode_exec:
        case kind::mode_tsx: return (low >> 8 & 3) != 3;
        case kind::ptw: return (low >> 13 & 3) < 2;
        case kind::bip: return items != block::none;
        default: return true;
    }
}

constexpr block contexts[] = {block::none, block::items_of_4, block::items_of_8};

/// The fixed bits of a packet and their values.
struct fixed_bits {
    wide_bits mask{};
    wide_bits value{};
};

template <class Packet>
constexpr auto fixed_bits_of() -> fixed_bits {
    fixed_bits out{{}, widened(Packet{}.raw)};
    for (auto const& row : rows_of<Packet>()) {
        for (unsigned at = row.lsb; row.kind == row_kind::fixed && at <= row.msb; ++at) {
            (at < 64 ? out.mask.low : out.mask.high) |= uint64_t{1} << (at % 64);
        }
    }
    return out;
}

template <class... Packets>
constexpr auto differ_as_specified(type_list<Packets...>) -> bool {
    constexpr fixed_bits each[] = {fixed_bits_of<Packets>()...};
    auto const tnt = underlying(kind::tnt_short);
    bool good = true;
    for (unsigned one = 0; one < kind_count; ++one) {
        for (unsigned two = one + 1; two < kind_count; ++two) {
            auto const both = each[one].mask & each[two].mask;
            bool const differ = (each[one].value & both) != (each[two].value & both);
            bool const excused = (two == tnt && one == underlying(kind::pad)) ||
                                 (one == tnt && (two == underlying(kind::bip) ||
                                                 (each[two].value.low & 0xFF) == 0x02));
            good = good && differ != excused;
        }
    }
    return good;
}

}  // namespace

TEST_CASE("the rows of a packet cover each bit of its head once, and no bit after it") {
    for_every_packet([]<class Packet>(test::random_numbers, unsigned) {
        unsigned page_regions[128] = {};
        for (auto const& row : rows_of<Packet>()) {
            for (unsigned at = row.lsb; at <= row.msb; ++at) { ++page_regions[at]; }
        }
        for (unsigned at = 0; at < 128; ++at) {
            if (page_regions[at] != (at < 8 * Packet::head_bytes ? 1U : 0U)) { return false; }
        }
        return true;
    });
}

TEST_CASE("a packet is at most 16 bytes long; only PSB is longer than 11 (PKT-002)") {
    for_every_packet([]<class Packet>(test::random_numbers, unsigned) {
        unsigned const most = Packet::max_bytes;
        return Packet::about.id == kind::psb ? most == 16 : most <= 11;
    });
}

TEST_CASE("all fields and reserved bits of a default-constructed packet are 0") {
    for_every_packet([]<class Packet>(test::random_numbers, unsigned) {
        auto const bits = widened(Packet{}.raw);
        bool good = true;
        for (auto const& row : rows_of<Packet>()) {
            good = good && (row.kind == row_kind::fixed || bits_of(bits, row.msb, row.lsb) == 0);
        }
        return good;
    });
}

TEST_CASE("with() writes one field, get() reads it back, and no other bit changes") {
    for_every_packet([]<class Packet>(test::random_numbers random, unsigned rounds) {
        bool good = true;
        hana::for_each(rows_of_kind<Packet, row_kind::field>, [&](auto row) {
            using field = type_in<decltype(row)>;
            for (unsigned round = 0; round < rounds; ++round) {
                auto const before = random_packet<Packet>(random, block::items_of_8);
                auto const number = field::from_number(round == 0
                                                           ? ~uint64_t{0} & low_bits(field::width)
                                                           : random() & low_bits(field::width));
                auto after = before;
                if constexpr (same_as<typename field::value_type, uint64_t>) {
                    after = before.with(field{wrapped{number}});
                } else {
                    after = before.with(field{number});
                }
                good = good && after.template get<field>() == number;
                auto const old_bits = widened(before.raw);
                auto const new_bits = widened(after.raw);
                for (unsigned at = 0; at < 128; ++at) {
                    good = good &&
                           (is_inside<field>(at) || bit_of(old_bits, at) == bit_of(new_bits, at));
                }
                good = good &&
                       field::from_number(bits_of(new_bits, field::msb, field::lsb)) == number;
            }
        });
        return good;
    });
}

TEST_CASE("the reserved bits of a packet are the bits of the head that no other row covers") {
    for_every_packet([]<class Packet>(test::random_numbers, unsigned) {
        auto const mask = widened(Packet::reserved_mask());
        for (unsigned at = 0; at < 128; ++at) {
            bool left = at < 8 * Packet::head_bytes;
            for (auto const& row : rows_of<Packet>()) {
                bool const inside = row.lsb <= at && at <= row.msb;
                left = left && !(inside && row.kind != row_kind::reserved);
            }
            if (bit_of(mask, at) != left) { return false; }
        }
        return true;
    });
}

TEST_CASE("legal packets are encoded, illegal ones are refused, and an encoded packet decodes to "
          "itself (PKT-033, PKT-036,037, PKT-052, PKT-090, PKT-173, PKT-344, PKT-346)") {
    for_every_packet([]<class Packet>(test::random_numbers random, unsigned rounds) {
        bool good = true;
        for (unsigned round = 0; round < rounds; ++round) {
            for (auto const items : contexts) {
                auto const packet = random_packet<Packet>(random, items);
                auto const bytes = encode(packet, items);
                good = good && bool{bytes} == is_legal<Packet>(widened(packet.raw), items);
                if (!bytes) { continue; }
                auto const typed = decode_as<Packet>(bytes, {.block = items});
                auto const any = decode(bytes, {.block = items, .strict = true});
                good = good && typed && typed.packet == packet && typed.length == bytes.size() &&
                       any && any.packet == any_packet{packet, bytes.length} &&
                       encode(any.packet, items) == byte_view{bytes};
            }
        }
        return good;
    });
}

TEST_CASE("every proper prefix of an encoded packet is truncated and reports its need (PKT-255)") {
    for_every_packet([]<class Packet>(test::random_numbers random, unsigned rounds) {
        bool good = true;
        for (unsigned round = 0; round < rounds; ++round) {
            for (auto const items : contexts) {
                auto const bytes = encode(random_packet<Packet>(random, items), items);
                for (unsigned n = 0; n < bytes.size(); ++n) {
                    auto const part = byte_view{bytes}.first(n);
                    good = good &&
                           test::is_error(decode(part, {.block = items}), error::truncated,
                                          rule::PKT_255, test::need_of_prefix(part, bytes.length));
                }
            }
        }
        return good;
    });
}

TEST_CASE("the bytes of a packet are its raw bits in little-endian order (PKT-001)") {
    for_every_packet([]<class Packet>(test::random_numbers random, unsigned rounds) {
        bool good = true;
        for (unsigned round = 0; round < rounds; ++round) {
            auto const packet = random_packet<Packet>(random, block::items_of_8);
            auto const bytes = encode(packet, block::items_of_8);
            for (unsigned i = 0; i < bytes.size(); ++i) {
                good = good && bytes.bytes[i] == bits_of(widened(packet.raw), 8 * i + 7, 8 * i);
            }
        }
        return good;
    });
}

TEST_CASE("two packets differ in a bit that both fix, except TNT.short with PAD, BIP and packets "
          "with the escape 02 (PKT-010, PKT-033, PKT-203)") {
    static_assert(differ_as_specified(all{}));
    // The opcode table resolves these cases.
    CHECK_TWICE([](auto value) {
        return classify_first(value(uint8_t{0x00})).id == kind::pad &&
               classify_first(value(uint8_t{0x02})).what == opcode_byte::meaning::prefix;
    });
}
