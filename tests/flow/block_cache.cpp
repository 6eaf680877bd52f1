// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/block_cache.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using flow::block;
using flow::block_cache;

namespace {

constexpr auto block_at(uint64_t ip, uint32_t space = 0) -> block {
    block made;
    made.key = {ip, space, flow::code_width::bits_64};
    made.count = 1;
    made.size = 4;
    made.target = ip + 0x100;
    return made;
}
constexpr auto has(block_cache const& in, uint64_t ip, uint32_t space = 0) -> bool {
    return in.find(in.slot_of(ip), {ip, space, flow::code_width::bits_64}) != nullptr;
}
constexpr void add(block_cache& to, uint64_t ip, uint32_t space = 0) {
    (void)to.insert(to.slot_of(ip), block_at(ip, space));
}

}  // namespace

TEST_CASE("a block is found by IP, space and width") {
    CHECK_TWICE([](auto value) {
        block storage[8] = {};
        block_cache cache{storage};
        bool const none = !has(cache, 0);  // an empty slot is no block at 0
        auto const ip = value(uint64_t{0x1000});
        add(cache, ip);
        auto const slot = cache.slot_of(ip);
        return none && has(cache, ip) && !has(cache, ip, 1) && !has(cache, ip + 1) &&
               cache.find(slot, {ip, 0, flow::code_width::bits_32}) == nullptr &&
               cache.find(slot, {ip, 0, flow::code_width::bits_64})->slot_target ==
                   cache.slot_of(ip + 0x100);
    });
}

TEST_CASE("a new cache is empty, also in storage that another one used") {
    CHECK_TWICE([](auto value) {
        block storage[4] = {};
        auto const ip = value(uint64_t{0x1000});
        block_cache first{storage};
        add(first, ip);
        bool const was_there = has(first, ip);
        block_cache const second{storage};
        return was_there && !has(second, ip);
    });
}

TEST_CASE("a cache of any size keeps the last block") {
    CHECK_TWICE([](auto value) {
        block storage[5] = {};
        for (size_t size = 1; size <= 5; ++size) {
            block_cache cache{storage, value(size)};
            cache.clear();
            for (uint64_t ip = 0; ip < 40; ++ip) {
                add(cache, ip * 0x11);
                if (cache.slot_of(ip * 0x11) >= size || !has(cache, ip * 0x11)) { return false; }
            }
        }
        return true;
    });
}

TEST_CASE("invalidate() forgets the blocks with bytes in a range") {
    CHECK_TWICE([](auto value) {
        block storage[64] = {};
        block_cache cache{storage};
        constexpr uint64_t ips[] = {0xFFC, 0xFFD, 0x1000, 0x100F, 0x1010};
        for (auto const ip : ips) { add(cache, ip); }
        cache.invalidate(value(uint64_t{0x1000}), 0x10);
        return has(cache, 0xFFC) && !has(cache, 0xFFD) && !has(cache, 0x1000) &&
               !has(cache, 0x100F) && has(cache, 0x1010);
    });
}
