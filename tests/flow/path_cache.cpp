// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/path_cache.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using flow::code_width;
using flow::path;
using flow::path_cache;
using flow::path_key;

TEST_CASE("the key of a path: IP, address space, code size, branches, and the generation of code") {
    CHECK_TWICE([](auto value) {
        auto const key = [&](uint64_t ip, uint32_t space, code_width width, unsigned count,
                             uint64_t bits, uint32_t generation) {
            return path_key{{value(ip), space, width}, {count, bits}, generation};
        };
        constexpr auto wide = code_width::bits_64;
        auto const one = key(0x1000, 1, wide, 3, 5, 2);
        return one == key(0x1000, 1, wide, 3, 5, 2) && one != key(0x1001, 1, wide, 3, 5, 2) &&
               one != key(0x1000, 2, wide, 3, 5, 2) && one != key(0x1000, 1, wide, 4, 5, 2) &&
               one != key(0x1000, 1, code_width::bits_32, 3, 5, 2) &&
               one != key(0x1000, 1, wide, 3, 4, 2) && one != key(0x1000, 1, wide, 3, 5, 3) &&
               key(0, 0, code_width::bits_16, 1, 0, 0) != path_key{} &&
               key(0, 0, wide, 32, 0xFFFF'FFFF, 0) != key(0, 0, wide, 31, 0xFFFF'FFFF, 0);
    });
}

TEST_CASE("a path is found by its key, in a cache of any size") {
    CHECK_TWICE([](auto value) {
        path storage[5] = {};
        for (size_t size = 1; size <= 5; ++size) {
            path_cache cache{storage, value(size)};
            cache.clear();
            for (uint64_t ip = 0x1000; ip < 0x1020; ++ip) {
                path_key const key{{ip, 0, code_width::bits_64}, {2, 1}, 7};
                path_key const newer{{ip, 0, code_width::bits_64}, {2, 1}, 8};
                path& kept = cache.at(key);
                kept.key = key;
                if (&cache.at(key) != &kept || cache.at(newer).key == newer) { return false; }
            }
        }
        return true;
    });
}
