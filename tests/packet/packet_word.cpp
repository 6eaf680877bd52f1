// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/packet_word.hpp>

#include <support/check_twice.hpp>

#include <type_traits>

using namespace ptspec;
using namespace ptspec::packet;

namespace {

/// A head of two bytes and a payload of 1 or 5: at most 7 bytes, which fit in a uint64_t.
struct narrow_toy : packet_word<narrow_toy, 2, payload_of<1, undefined_size, 5, undefined_size>> {
    struct Opcode : fixed<7, 0, 0xAB> {};
    struct Size : selects_payload<field<9, 8>> {};
    struct Flag : flag<10> {};
    struct Leaf : leaf<13, 11, 5> {};
    struct layout : bit_layout<16, Opcode, Size, Flag, Leaf, reserved<15, 14>> {};
};

/// A head of one byte and a payload of up to eight: nine bytes, one more than a uint64_t holds.
struct wide_toy : packet_word<wide_toy, 1, payload_of<8, 0>> {
    struct Opcode : fixed<6, 0, 0x2A> {};
    struct Size : selects_payload<flag<7>> {};
    struct layout : bit_layout<8, Opcode, Size> {};
};

/// Only a head, of exactly eight bytes.
struct full_toy : packet_word<full_toy, 8> {
    struct Opcode : fixed<7, 0, 0x11> {};
    struct Rest : field<63, 8> {};
    struct layout : bit_layout<64, Opcode, Rest> {};
};

/// A head of nine bytes with fixed bits after the first eight bytes.
struct long_toy : packet_word<long_toy, 9> {
    struct Opcode : fixed<7, 0, 0x22> {};
    struct Middle : field<63, 8> {};
    struct Tail : pattern<71, 64, 0x33> {};
    struct layout : bit_layout<72, Opcode, Middle, Tail> {};
};

struct item_toy : packet_word<item_toy, 1, payload_of_block> {
    struct Opcode : fixed<7, 0, 0x44> {};
    struct layout : bit_layout<8, Opcode> {};
};

template <class Packet>
concept has_payload = requires(Packet packet) { packet.payload(); };
template <class Packet>
concept takes_payload = requires(Packet packet) { packet.with_payload(uint64_t{}); };

}  // namespace

TEST_CASE("a packet of up to eight bytes is a uint64_t, a longer one is wide_bits") {
    static_assert(std::is_same_v<narrow_toy::raw_type, uint64_t>);
    static_assert(std::is_same_v<full_toy::raw_type, uint64_t>);
    static_assert(std::is_same_v<wide_toy::raw_type, wide_bits>);
    static_assert(std::is_same_v<long_toy::raw_type, wide_bits>);
    static_assert(sizeof(narrow_toy) == 8 && sizeof(wide_toy) == 16);
    static_assert(std::is_trivially_copyable_v<wide_toy>);
}

TEST_CASE("a packet type has the size of its head and its maximum size") {
    static_assert(narrow_toy::head_bytes == 2 && narrow_toy::max_bytes == 7);
    static_assert(wide_toy::head_bytes == 1 && wide_toy::max_bytes == 9);
    static_assert(full_toy::head_bytes == 8 && full_toy::max_bytes == 8);
    static_assert(item_toy::head_bytes == 1 && item_toy::max_bytes == 9);
}

TEST_CASE("a default-constructed packet has its opcode, leaf and pattern, and all fields 0") {
    CHECK_TWICE([](auto value) {
        return value(narrow_toy{}).raw == 0x28AB && value(wide_toy{}).raw == wide_bits{0x2A, 0} &&
               value(long_toy{}).raw == wide_bits{0x22, 0x33} && value(full_toy{}).raw == 0x11;
    });
}

TEST_CASE("with() changes a field but not the opcode or the payload") {
    CHECK_TWICE([](auto value) {
        auto const toy = narrow_toy{}.with_payload(value(uint64_t{0x12'3456'789A}));
        auto const other = toy.with(narrow_toy::Flag{true}, narrow_toy::Size{2});
        return other.raw == 0x0012'3456'789A'2EAB && other.template get<narrow_toy::Size>() == 2 &&
               other.payload() == 0x12'3456'789A;
    });
}

TEST_CASE("the payload is the bits after the head, up to its largest size") {
    CHECK_TWICE([](auto value) {
        auto const ones = narrow_toy{value(~uint64_t{0})};
        auto const wide = wide_toy{wide_bits{value(uint64_t{0x8877'6655'4433'2200}), 0xFFEE'DD99}};
        return ones.payload() == 0xFF'FFFF'FFFF && wide.payload() == 0x9988'7766'5544'3322;
    });
}

TEST_CASE("with_payload() changes only the payload and truncates it") {
    CHECK_TWICE([](auto value) {
        auto const ones = narrow_toy{value(~uint64_t{0})};
        auto const zeros = narrow_toy{uint64_t{0}};
        auto const wide_ones = wide_toy{wide_bits{~uint64_t{0}, value(~uint64_t{0})}};
        auto const wide_zeros = wide_toy{wide_bits{}};
        return ones.with_payload(0).raw == 0xFF00'0000'0000'FFFF &&
               zeros.with_payload(value(~uint64_t{0})).raw == 0x00FF'FFFF'FFFF'0000 &&
               wide_ones.with_payload(0).raw == wide_bits{0xFF, 0xFFFF'FFFF'FFFF'FF00} &&
               wide_zeros.with_payload(value(0x9988'7766'5544'3322)).raw ==
                   wide_bits{0x8877'6655'4433'2200, 0x99};
    });
}

TEST_CASE("a packet without a payload has no payload functions") {
    static_assert(has_payload<narrow_toy> && takes_payload<narrow_toy>);
    static_assert(has_payload<item_toy> && takes_payload<item_toy>);
    static_assert(!has_payload<full_toy> && !takes_payload<full_toy>);
}

TEST_CASE("the length is the head plus the size that the selecting field gives") {
    CHECK_TWICE([](auto value) {
        auto const of = [&](uint64_t size) {
            auto const toy = narrow_toy{}.with(narrow_toy::Size{wrapped{value(size)}});
            return narrow_toy::length_of(toy.raw, block::none);
        };
        return of(0) == 3 && of(2) == 7 &&
               wide_toy::length_of(wide_toy{}.raw, block::items_of_4) == 9 &&
               wide_toy::length_of(wide_bits{value(uint64_t{0xAA}), 0}, block::none) == 1 &&
               full_toy::length_of(value(~uint64_t{0}), block::items_of_8) == 8;
    });
}

TEST_CASE("the length of an item depends on the block (PKT-202)") {
    CHECK_TWICE([](auto value) {
        return item_toy::length_of(item_toy{}.raw, value(block::items_of_4)) == 5 &&
               item_toy::length_of(item_toy{}.raw, value(block::items_of_8)) == 9;
    });
}

TEST_CASE("payload_of gives the size for each value and the largest defined size") {
    using sizes = payload_of<0, 6, undefined_size, 2>;
    static_assert(sizes::largest == 6);
    static_assert(payload_of<undefined_size, 3>::largest == 3 && payload_of<0>::largest == 0);
    static_assert(no_payload::largest == 0 && payload_of_block::largest == 8 &&
                  payload_continues<9>::largest == 9);
    CHECK_TWICE([](auto value) {
        return sizes::size(value(uint64_t{0})) == 0 && sizes::size(value(uint64_t{1})) == 6 &&
               sizes::size(value(uint64_t{2})) == undefined_size &&
               sizes::size(value(uint64_t{3})) == 2 && undefined_size == 0xFFFF'FFFFU;
    });
}

TEST_CASE("payload_selector is the field that selects the payload size") {
    CHECK(std::is_same_v<payload_selector<narrow_toy>, narrow_toy::Size>);
    CHECK(std::is_same_v<payload_selector<wide_toy>, wide_toy::Size>);
}

TEST_CASE("the fixed bits are those of opcode, leaf and pattern") {
    CHECK_TWICE([](auto value) {
        return fixed_mask<narrow_toy> == value(uint64_t{0x38FF}) &&
               fixed_mask<long_toy> == value(wide_bits{0xFF, 0xFF}) &&
               fixed_mask<item_toy> == wide_bits{0xFF, 0};
    });
}

TEST_CASE("opcode_of() has neither the leaf nor the pattern; leaf_mask has the leaf") {
    CHECK_TWICE([](auto value) {
        return opcode_of<narrow_toy>() == masked_opcode{value(0xFFU), 0xAB} &&
               opcode_of<wide_toy>() == masked_opcode{value(0x7FU), 0x2A} &&
               opcode_of<long_toy>() == masked_opcode{value(0xFFU), 0x22} &&
               leaf_mask<narrow_toy> == value(uint64_t{0x3800}) && leaf_mask<long_toy> == 0;
    });
}
