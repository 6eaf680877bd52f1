// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/path_cache.hpp>

#include <support/check_twice.hpp>

#include <initializer_list>

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
                path made{};
                made.key = key;
                cache.insert(kept, made);
                if (&cache.at(key) != &kept || cache.at(newer).key == newer) { return false; }
            }
        }
        return true;
    });
}

TEST_CASE("a new cache is empty, also in storage that another one used") {
    CHECK_TWICE([](auto value) {
        path storage[4] = {};
        path_key const key{{value(uint64_t{0x1000}), 0, code_width::bits_64}, {2, 1}, 0};
        path_cache first{storage};
        path made{};
        made.key = key;
        first.insert(first.at(key), made);
        bool const was_there = first.at(key).key == key;
        path_cache second{storage};
        return was_there && second.at(key).key != key;
    });
}

TEST_CASE("the key of a path has the packet that ends it, and its IP") {
    CHECK_TWICE([](auto value) {
        using enum flow::path_end;
        auto const key = [&](flow::path_end end, uint64_t to) {
            return path_key{{0x1000, 0, code_width::bits_64}, {2, 1}, 7, end, value(to)};
        };
        bool good = key(tip, 0x2000) == key(tip, 0x2000) && key(tip, 0x2000) != key(tip, 0x2001);
        for (auto const one : {none, tip, tip_pgd, tip_pgd_out, tip_pge}) {
            for (auto const two : {none, tip, tip_pgd, tip_pgd_out, tip_pge}) {
                good = good && (key(one, 0) == key(two, 0)) == (one == two);
            }
            good = good && key(one, 0).end() == one;
        }
        return good;
    });
}

TEST_CASE("a successor is found by the bytes of its packets, as long as it is in the cache") {
    CHECK_TWICE([](auto value) {
        path storage[3] = {};
        path_cache cache{storage};
        for (auto& one : storage) { cache.insert(one, {}); }
        path& first = storage[0];
        bool good = cache.find_successor(first, {0, 0}) == nullptr;
        // Bytes 0 to 2, and 0 to 9; those after them differ.
        cache.add_successor(first, storage[1], {value(uint64_t{0xFFFF'FF33'2211}), 5}, 3);
        cache.add_successor(first, storage[2], {0x8877'6655'4433'2212, 0xFFAA99}, 10);
        auto const* const three = cache.find_successor(first, {0x1234'0033'2211, 77});
        auto const* const ten = cache.find_successor(first, {0x8877'6655'4433'2212, 0xAA99});
        good = good && three != nullptr && three->size == 3 && cache.find(*three) == &storage[1] &&
               ten != nullptr && ten->size == 10 && cache.find(*ten) == &storage[2] &&
               cache.find_successor(first, {0x8877'6655'4433'2212, 0xAB99}) == nullptr &&
               cache.find_successor(first, {0x1234'0033'2210, 77}) == nullptr;
        // A third one replaces the older of the two; a path that was replaced is not found.
        cache.insert(storage[2], {});
        good = good && cache.find(*ten) == nullptr;
        cache.add_successor(first, storage[2], {1, 0}, 1);
        return good && cache.find_successor(first, {0x1234'0033'2211, 77}) == nullptr &&
               cache.find_successor(first, {0x8877'6655'4433'2212, 0xAA99}) != nullptr &&
               cache.find_successor(first, {0xFF01, 9})->size == 1;
    });
}
