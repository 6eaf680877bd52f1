// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/encode.hpp>
#include <ptspec/trace/detail/encode_table.hpp>

#include <support/check_twice.hpp>

#include <random>

using namespace ptspec;
using packet::kind;

namespace {

using packets_without_psb = type_list<packet::pad, packet::tnt_short, packet::tip>;

template <class Packets = packet::all>
constexpr auto is_accepted(kind which, unsigned length, wide_bits bits) -> bool {
    return trace::detail::encode_tables<Packets>::table.accepts(which, length, bits.low, bits.high);
}

/// True when `encode` writes exactly these bits.
template <class Packet>
auto is_written_unchanged(unsigned length, wide_bits bits) -> bool {
    Packet const one{from_wide<typename Packet::raw_type>(bits)};
    auto const bytes = packet::encode(one);
    auto const before = to_le(bits);
    return bytes && bytes.length == length && byte_view{bytes} == byte_view{before}.first(length) &&
           bits == first_bytes(bits, length) && to_wide(one.raw) == bits;
}

/// True when the table may accept a packet that is written unchanged.
template <class Packet>
constexpr auto may_be_accepted(unsigned length) -> bool {
    return Packet::about.id != kind::bbp && Packet::about.id != kind::bip &&
           !(Packet::about.id == kind::cyc && length > 8);
}

/// Checks a packet unchanged, with each bit flipped, and with other lengths. Returns how many
/// variants the table accepts, or a negative number when it is wrong.
template <class Packet>
auto accepted_variants(wide_bits bits, unsigned length) -> int {
    int found = 0;
    auto const is_right = [&](unsigned claimed, wide_bits other) {
        bool const plain = is_accepted(Packet::about.id, claimed, other);
        found += plain ? 1 : 0;
        return plain ==
               (may_be_accepted<Packet>(claimed) && is_written_unchanged<Packet>(claimed, other));
    };
    for (unsigned i = 0; i < 256; ++i) {
        if (!is_right(i, bits)) { return -1; }
    }
    for (unsigned i = 0; i < 128; ++i) {
        wide_bits const other{bits.low ^ (i < 64 ? uint64_t{1} << i : 0),
                              bits.high ^ (i < 64 ? 0 : uint64_t{1} << (i - 64))};
        if (!is_right(length, other)) { return -2; }
    }
    return found;
}

/// Random bits of a packet of this type, often only a few of them set.
template <class Packet>
auto some_bits(std::mt19937_64& random) -> wide_bits {
    wide_bits bits{random(), random()};
    for (auto i = random() % 4; i != 0; --i) { bits = bits & wide_bits{random(), random()}; }
    if (random() % 4 == 0) { bits.low &= random() % 0x100'0000; }
    wide_bits const written_as_0 = to_wide(Packet::reserved_mask());
    bits = (bits & ~(to_wide(packet::fixed_mask<Packet>) | written_as_0)) | to_wide(Packet{}.raw);
    auto const raw = from_wide<typename Packet::raw_type>(bits);
    bits = to_wide(raw);
    unsigned const length = Packet::length_of(raw, packet::block::none);
    return first_bytes(bits, length < 16 ? length : 16);
}

}  // namespace

TEST_CASE("the table accepts exactly the packets that encode writes unchanged "
          "(PKT-010..016,110,340,346)") {
    std::mt19937_64 random{5};
    for (uint8_t i = 0; i < packet::kind_count; ++i) {
        CAPTURE(int{i});
        packet::for_kind(
            static_cast<kind>(i),
            [&]<class Packet>() {
                long found = 0;
                for (unsigned round = 0; round < 1000; ++round) {
                    wide_bits const bits = some_bits<Packet>(random);
                    auto const raw = from_wide<typename Packet::raw_type>(bits);
                    INFO("low " << bits.low << " high " << bits.high);
                    int const plain = accepted_variants<Packet>(
                        bits, Packet::length_of(raw, packet::block::none));
                    REQUIRE(plain >= 0);
                    found += plain;
                }
                CHECK((found > 0) ==
                      (Packet::about.id != kind::bbp && Packet::about.id != kind::bip));
            },
            packet::all{});
    }
}

TEST_CASE("the table accepts a PSB if it is in the packet list and all bytes are valid (PKT-131)") {
    CHECK_TWICE([](auto value) {
        wide_bits const psb{value(uint64_t{0x8202'8202'8202'8202}), 0x8202'8202'8202'8202};
        return is_accepted(kind::psb, 16, psb) &&
               !is_accepted<packets_without_psb>(kind::psb, 16, psb) &&
               !is_accepted<packets_without_psb>(kind::psb, 0, psb) &&
               !is_accepted(kind::psb, 15, psb) &&
               !is_accepted(kind::psb, 16, {psb.low, psb.high ^ 1}) &&
               !is_accepted(kind::psb, 16, {psb.low ^ 1, psb.high}) &&
               !is_accepted(kind::psbend, 16, psb) && !is_accepted(kind::psb, 16, {psb.low, 0});
    });
}

TEST_CASE("the table accepts a CYC of one to eight bytes with valid Exp bits (PKT-110)") {
    CHECK_TWICE([](auto value) {
        auto const is = [&](uint64_t low, unsigned length) {
            return is_accepted(kind::cyc, length, {value(low), 0});
        };
        bool const right = is(0x03, 1) && is(0x0207, 2) && is(0x02'0107, 3) &&
                           is(0x02'0101'0101'0107, 7) && is(0x0201'0101'0101'0107, 8);
        bool const wrong = is(0x0207, 3) || is(0x0207, 1) || is(0x01'0207, 2) || is(0x0205, 2) ||
                           is(0x0301'0101'0101'0107, 8) || is(0x0301'0101'0101'0107, 9) ||
                           is_accepted(kind::cyc, 2, {0x0207, 1}) ||
                           is_accepted(kind::tsc, 2, {0x0207, 0});
        return right && !wrong;
    });
}

TEST_CASE("any length and any kind stay within the table") {
    CHECK_TWICE([](auto value) {
        bool plain = false;
        for (unsigned which = 0; which < 256; ++which) {
            for (unsigned const length : {0U, 12U, 17U, 19U, 20U, 21U, 40U, 255U}) {
                auto const claimed = static_cast<kind>(value(which));
                plain = plain || is_accepted(claimed, length, {0x6D, 0}) ||
                        is_accepted(claimed, length, {});
            }
        }
        return !plain;
    });
}
