// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/host_memory.hpp>

#include <support/check_twice.hpp>

#include <random>
#include <utility>
#include <vector>

using namespace ptspec;

namespace {

constexpr uint64_t top = 0xFFFF'FFFF'FFFF'FFFF;

/// The bytes 10H, 11H and so on.
template <size_t Count>
struct counting {
    uint8_t bytes[Count] = {};

    constexpr explicit counting(uint8_t first) {
        for (size_t i = 0; i < Count; ++i) { bytes[i] = static_cast<uint8_t>(first + i); }
    }
    constexpr auto operator[](size_t i) const -> uint8_t { return bytes[i]; }
};

constexpr byte_array<8> new_bytes{{0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7}};

constexpr auto is(byte_window const& got, uint8_t const* first, uint64_t size) -> bool {
    return got.first == first && got.size == size;
}
constexpr auto is_none(byte_window const& got) -> bool { return is(got, nullptr, 0); }

}  // namespace

TEST_CASE("host_memory is a mapped_memory_port") {
    static_assert(mapped_memory_port<host_memory>);
    uint8_t bytes[2] = {};
    host_region const regions[] = {{0x1000, bytes, 2}};
    host_memory memory{regions};
    memory.window(0x1001).first[0] = 5;
    CHECK(bytes[1] == 5);
    CHECK(bytes[0] == 0);
}

// ------------------------------------------------------------------------------------ windows

TEST_CASE("a window has the bytes from an address to the end of its region") {
    CHECK_TWICE([](auto value) {
        counting<16> a{0x10};
        host_region const regions[] = {{value(uint64_t{0x4000}), a.bytes, 16}};
        host_memory memory{regions};
        return is(memory.window(0x4000), a.bytes, 16) &&
               is(memory.window(0x4001), a.bytes + 1, 15) &&
               is(memory.window(0x400F), a.bytes + 15, 1) && is_none(memory.window(0x4010)) &&
               is_none(memory.window(0x3FFF)) && is_none(memory.window(0)) &&
               is_none(memory.window(top)) && is_none(memory.window(0x1'0000'4000)) &&
               is(memory.window(0x4008), a.bytes + 8, 8);
    });
}

TEST_CASE("an empty list holds no addresses, and a default-constructed region is empty") {
    CHECK_TWICE([](auto value) {
        host_memory memory{nullptr, value(size_t{0})};
        return is_none(memory.window(0)) && is_none(memory.window(top)) && !memory.load(0) &&
               memory.store(0, new_bytes) == 0;
    });
    CHECK_TWICE([](auto value) {
        auto const it = value(host_region{});
        return it.base == 0 && it.bytes == nullptr && it.size == 0;
    });
}

TEST_CASE("only the first `count` regions of an array are used") {
    CHECK_TWICE([](auto value) {
        counting<4> a{0x10};
        counting<4> b{0x20};
        counting<4> c{0x30};
        host_region const regions[] = {
            {0x1000, a.bytes, 4}, {0x2000, b.bytes, 4}, {0x3000, c.bytes, 4}};
        host_memory memory{regions, value(size_t{2})};
        return is(memory.window(0x2000), b.bytes, 4) && is_none(memory.window(0x3000)) &&
               is(memory.window(0x1000), a.bytes, 4) && is_none(memory.window(0x3000));
    });
}

TEST_CASE("a region may end at the end of the address space") {
    CHECK_TWICE([](auto value) {
        counting<16> a{0x10};
        counting<16> b{0x30};
        host_region const regions[] = {{value(top - 15), a.bytes, 16}, {0, b.bytes, 16}};
        host_memory memory{regions};
        return is(memory.window(top), a.bytes + 15, 1) && is(memory.window(0), b.bytes, 16) &&
               is(memory.window(top - 15), a.bytes, 16) && is_none(memory.window(top - 16)) &&
               is_none(memory.window(16)) && memory.load(top - 7) && !memory.load(top - 6) &&
               !memory.load(top);
    });
    CHECK_TWICE([](auto value) {  // only the highest byte
        counting<16> a{0x10};
        host_region const regions[] = {{value(top), a.bytes, 1}};
        host_memory memory{regions};
        return is(memory.window(top), a.bytes, 1) && is_none(memory.window(0)) &&
               is_none(memory.window(top - 1)) && memory.store(top, new_bytes) == 1 &&
               a[0] == 0xA0 && a[1] == 0x11;
    });
}

TEST_CASE("a region may hold all addresses except the highest") {
    CHECK_TWICE([](auto value) {
        uint8_t byte = 0;
        host_region const regions[] = {{0, &byte, value(top)}};
        host_memory memory{regions};
        return is(memory.window(0), &byte, top) && is_none(memory.window(top));
    });
}

// ------------------------------------------------------------------------------------ loads

TEST_CASE("a load returns eight bytes of a region, little-endian") {
    CHECK_TWICE([](auto value) {
        counting<16> a{0x10};
        counting<8> b{0x30};
        host_region const regions[] = {{value(uint64_t{0x4000}), a.bytes, 16},
                                       {value(uint64_t{0x1000}), b.bytes, 8}};
        host_memory memory{regions};
        return memory.load(0x4000) == port_value{true, 0x1716'1514'1312'1110} &&
               memory.load(0x1000) == port_value{true, 0x3736'3534'3332'3130} &&
               memory.load(0x4001) == port_value{true, 0x1817'1615'1413'1211} &&
               memory.load(0x4008) == port_value{true, 0x1F1E'1D1C'1B1A'1918};
    });
}

TEST_CASE("a load faults at the end of the address space") {
    CHECK_TWICE([](auto value) {
        counting<4> at_the_top{0x10};
        counting<8> at_0{0x20};
        host_region const regions[] = {{value(top - 3), at_the_top.bytes, 4}, {0, at_0.bytes, 8}};
        host_memory memory{regions};
        return !memory.load(top - 3) && memory.load(0);
    });
}

// ------------------------------------------------------------------------------------ stores

TEST_CASE("a store outside writes nothing, and an empty store writes nothing") {
    CHECK_TWICE([](auto value) {
        counting<8> a{0x10};
        host_region const regions[] = {{value(uint64_t{0x4000}), a.bytes, 8}};
        host_memory memory{regions};
        bool const refused = memory.store(0x3FFF, new_bytes) == 0 &&
                             memory.store(0x4008, new_bytes) == 0 &&
                             memory.store(0, new_bytes) == 0 && memory.store(top, new_bytes) == 0 &&
                             memory.store(0x4000, {}) == 0;
        for (size_t i = 0; i < 8; ++i) {
            if (a[i] != 0x10 + i) { return false; }
        }
        return refused;
    });
}

TEST_CASE("a store continues in the adjacent region and stops at a gap") {
    CHECK_TWICE([](auto value) {
        counting<4> low{0x10};
        counting<2> middle{0x20};
        counting<4> high{0x30};
        // Regions that are adjacent in memory are not adjacent in the list.
        host_region const regions[] = {{value(uint64_t{0x1006}), high.bytes, 4},
                                       {value(uint64_t{0x1000}), low.bytes, 4},
                                       {value(uint64_t{0x5000}), nullptr, 0},
                                       {value(uint64_t{0x1004}), middle.bytes, 2}};
        host_memory memory{regions};
        bool const over_three = memory.store(0x1003, byte_view{new_bytes}.first(5)) == 5 &&
                                low[2] == 0x12 && low[3] == 0xA0 && middle[0] == 0xA1 &&
                                middle[1] == 0xA2 && high[0] == 0xA3 && high[1] == 0xA4 &&
                                high[2] == 0x32;
        bool const to_the_gap = memory.store(0x1005, new_bytes) == 5 && middle[0] == 0xA1 &&
                                middle[1] == 0xA0 && high[0] == 0xA1 && high[3] == 0xA4 &&
                                low[3] == 0xA0;
        return over_three && to_the_gap;
    });
}

TEST_CASE("a store ends at the end of the address space") {
    CHECK_TWICE([](auto value) {
        counting<4> at_the_top{0x10};
        counting<8> at_0{0x20};
        host_region const regions[] = {{value(top - 3), at_the_top.bytes, 4}, {0, at_0.bytes, 8}};
        host_memory memory{regions};
        return memory.store(top - 1, new_bytes) == 2 && at_the_top[1] == 0x11 &&
               at_the_top[2] == 0xA0 && at_the_top[3] == 0xA1 && at_0[0] == 0x20 &&
               memory.store(0, new_bytes) == 8 && at_0[0] == 0xA0;
    });
}

// ------------------------------------------------------------------------------------ all of it

TEST_CASE("random regions behave like a model that lists their bytes") {
    constexpr size_t room = 96;
    std::mt19937_64 random{20};
    auto const below = [&](size_t count) { return static_cast<size_t>(random() % count); };
    for (unsigned round = 0; round < 400; ++round) {
        // The space is cut into pieces. Some of them become regions, sorted or shuffled.
        uint64_t const base = round % 4 == 0 ? top - (room - 1) : below(3) * 0x1000;
        std::vector<std::vector<uint8_t>> bytes;
        std::vector<host_region> regions;
        std::vector<int> holder(room, -1);
        for (size_t at = 0; at < room;) {
            size_t const wanted = 1 + below(12);
            size_t const size = wanted < room - at ? wanted : room - at;
            if (below(3) != 0) {
                bytes.emplace_back(size, static_cast<uint8_t>(0));
                regions.push_back({base + at, nullptr, size});
            }
            if (below(6) == 0) {  // an empty region, possibly inside another one
                bytes.emplace_back();
                regions.push_back({base + at + below(size), nullptr, 0});
            }
            at += size;
        }
        for (size_t i = 0; i < regions.size(); ++i) { regions[i].bytes = bytes[i].data(); }
        for (size_t i = round % 2 == 0 ? 0 : regions.size(); i > 1; --i) {
            std::swap(regions[i - 1], regions[below(i)]);
        }
        for (size_t i = 0; i < regions.size(); ++i) {
            for (size_t b = 0; b < regions[i].size; ++b) {
                holder[static_cast<size_t>(regions[i].base - base) + b] = static_cast<int>(i);
            }
        }
        std::vector<uint8_t> expected(room, 0);
        host_memory memory{regions.data(), regions.size()};
        for (unsigned step = 0; step < 60; ++step) {
            size_t const at = below(room);
            std::vector<uint8_t> from(below(40));
            for (auto& byte : from) { byte = static_cast<uint8_t>(random()); }
            size_t stored = 0;
            while (stored < from.size() && at + stored < room && holder[at + stored] >= 0) {
                expected[at + stored] = from[stored];
                ++stored;
            }
            REQUIRE(memory.store(base + at, from) == stored);

            size_t const look = below(room);
            auto const got = memory.window(base + look);
            size_t left = 0;
            while (look + left < room && holder[look] >= 0 && holder[look + left] == holder[look]) {
                ++left;
            }
            REQUIRE(got.size == left);
            REQUIRE((got.first == nullptr) == (left == 0));
            for (size_t i = 0; i < left; ++i) { REQUIRE(got.first[i] == expected[look + i]); }
            uint64_t word = 0;
            bool inside = look + 8 <= room;
            for (unsigned i = 0; i < 8 && inside; ++i) {
                inside = holder[look + i] >= 0;
                word |= uint64_t{expected[look + i]} << 8 * i;
            }
            auto const loaded = memory.load(base + look);
            REQUIRE(loaded == port_value{inside, inside ? word : 0});
        }
    }
}
