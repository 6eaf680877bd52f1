// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/byte_layout.hpp>

#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <cstdint>

using namespace ptspec;
using file::byte_layout;
using file::gap;
using file::load;
using file::member;
using file::store;
using test::bytes;

namespace {

struct one : member<0, std::uint8_t> {};
struct two : member<1, std::uint16_t> {};
struct four : member<3, std::uint32_t> {};
struct eight : member<8, std::uint64_t> {};
struct layout : byte_layout<one, two, four, gap<7, 7>, eight> {};

}  // namespace

static_assert(layout::size == 16);
static_assert(byte_layout<gap<0, 2>>::size == 3);
static_assert(file::directly_before<two, four> && !file::directly_before<one, four>);

TEST_CASE("store writes little-endian numbers and no other byte") {
    CHECK_TWICE([](auto value) {
        byte_array<16> record{};
        for (auto& byte : record.bytes) { byte = 0xEE; }
        store<one>(record.data(), value(std::uint8_t{0x11}));
        store<two>(record.data(), value(std::uint16_t{0x2221}));
        store<four>(record.data(), value(std::uint32_t{0x3433'3231}));
        store<eight>(record.data(), value(std::uint64_t{0x4847'4645'4443'4241}));
        return record == bytes(0x11, 0x21, 0x22, 0x31, 0x32, 0x33, 0x34, 0xEE, 0x41, 0x42, 0x43,
                               0x44, 0x45, 0x46, 0x47, 0x48);
    });
}

TEST_CASE("load reads little-endian numbers") {
    CHECK_TWICE([](auto value) {
        auto const record = value(bytes(0xF1, 0xF2, 0x81, 0xF3, 0x32, 0x33, 0x84, 0xEE, 0x41, 0x42,
                                        0x43, 0x44, 0x45, 0x46, 0x47, 0x88));
        return load<one>(record) == 0xF1 && load<two>(record) == 0x81F2 &&
               load<four>(record) == 0x8433'32F3 && load<eight>(record) == 0x8847'4645'4443'4241;
    });
}

TEST_CASE("load takes bytes after the end as 0") {
    CHECK_TWICE([](auto value) {
        auto const record = value(bytes(1, 2, 3, 4, 5));
        return load<two>(record) == 0x0302 && load<four>(record) == 0x0504 &&
               load<eight>(record) == 0 && load<one>(byte_view{}) == 0;
    });
}
