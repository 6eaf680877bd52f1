// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/byte_layout.hpp>

#include <ptspec/base/word.hpp>

#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <cstdint>

using namespace ptspec;
using file::le16;
using file::le32;
using file::le64;
using file::little_endian;
using file::load;
using file::to_bytes;
using test::bytes;

namespace {

enum class colour : std::uint16_t { red = 0x8182 };

struct word : bit_word<word, std::uint32_t> {
    struct Low : field<7, 0> {};
    struct High : field<31, 8> {};
    struct layout : bit_layout<32, Low, High> {};
};

struct entry {
    std::uint8_t one = 0xEE;
    le16 two{};
    le32 four = 0x44;
    std::uint8_t more[2]{};
    le64 eight{};
    little_endian<colour> kind{};
    little_endian<word> bits{};
};
static_assert(sizeof(entry) == 23 && alignof(entry) == 1);

constexpr auto entry_bytes = bytes(0xF1, 0xF2, 0x81, 0xF3, 0x32, 0x33, 0x84, 0xEE, 0xDD, 0x41, 0x42,
                                   0x43, 0x44, 0x45, 0x46, 0x47, 0x88, 0x82, 0x81, 0x11, 0x22, 0x33,
                                   0x44);

}  // namespace

TEST_CASE("the bytes of a structure are its members in order, little-endian") {
    CHECK_TWICE([](auto value) {
        entry const made{.one = 0xF1,
                         .two = value(std::uint16_t{0x81F2}),
                         .four = value(std::uint32_t{0x8433'32F3}),
                         .more = {0xEE, 0xDD},
                         .eight = value(std::uint64_t{0x8847'4645'4443'4241}),
                         .kind = colour::red,
                         .bits = word{value(0x4433'2211U)}};
        return to_bytes(made) == entry_bytes;
    });
}

TEST_CASE("load reads each member as its type") {
    CHECK_TWICE([](auto value) {
        auto const record = value(entry_bytes);
        entry const got = load<entry>(record);
        return got.one == 0xF1 && got.two == 0x81F2 && got.four == 0x8433'32F3 &&
               got.more[0] == 0xEE && got.more[1] == 0xDD && got.eight == 0x8847'4645'4443'4241 &&
               got.kind == colour::red && got.bits.value() == word{0x4433'2211} &&
               got.bits.get<word::Low>() == 0x11 && got.bits.get<word::High>() == 0x44'3322;
    });
}

TEST_CASE("members after the end have their default") {
    CHECK_TWICE([](auto value) {
        auto const record = value(entry_bytes);
        auto const none = load<entry>(byte_view{});
        auto const part = load<entry>(byte_view{record}.first(3));
        auto const within = load<entry>(byte_view{record}.first(2));
        return none.one == 0xEE && none.two == 0 && none.four == 0x44 && part.one == 0xF1 &&
               part.two == 0x81F2 && part.four == 0x44 && part.eight == 0 && within.two == 0xF2;
    });
}

TEST_CASE("the structures of an array") {
    CHECK_TWICE([](auto value) {
        auto const array = value(bytes(1, 2, 3, 4, 5));
        return load<le16>(array, 1) == 0x0403 && load<le16>(array, 2) == 5 &&
               load<le16>(array, value(std::size_t{3})) == 0;
    });
}
