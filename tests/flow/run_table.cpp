// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/coverage.hpp>
#include <ptspec/flow/run_table.hpp>

#include <support/check_twice.hpp>

#include <initializer_list>

using namespace ptspec;
using flow::code_width;
using flow::run;
using flow::run_end;
using flow::run_key;
using flow::run_table;

namespace {

/// The sums of what was counted.
struct sums {
    uint64_t of[4] = {};

    constexpr void count(uint32_t index, uint64_t times) { of[index] += times; }
};

constexpr auto key_of(uint64_t from) noexcept -> run_key {
    return {from, from + 0x1000, packet::marked_branches::of({2, 1}), underlying(run_end::tip)};
}
/// A run that counts an edge twice.
constexpr auto made(run_key const& key, uint32_t index) noexcept -> run {
    run one{};
    one.key = key;
    one.next = key.to;
    (void)one.add(index, true);
    (void)one.add(index, true);
    return one;
}
/// Stores a run that the table does not have, if need be in place of another one.
constexpr auto store(run_table& table, run const& one, sums& replaced) -> run& {
    run* place = table.find_or_place(one.key).place;
    if (place == nullptr) { place = table.find_or_place(one.key).place; }
    return table.insert(*place, one, replaced);
}

}  // namespace

TEST_CASE("the branches of a key have a 1 above them, and nothing else") {
    CHECK_TWICE([](auto value) {
        return packet::marked_branches::of({value(0U), 0}) == 1 &&
               packet::marked_branches::of({value(3U), 5}) == 0xD &&
               packet::marked_branches::of({value(3U), 0xFD}) == 0xD &&
               packet::marked_branches::of({value(62U), 0}) == uint64_t{1} << 62 &&
               packet::marked_branches::of({62, low_bits(62)}) < packet::marked_branches::off &&
               packet::marked_branches::of({value(2U), 1}) !=
                   packet::marked_branches::of({value(3U), 1});
    });
}

TEST_CASE("keys are equal if all of their members are, and have the packet that ends the run") {
    CHECK_TWICE([](auto value) {
        run_key const one{0x1000, 0x2000, packet::marked_branches::of({3, value(uint64_t{5})}), 8};
        auto const differs = [&](auto const& change) {
            run_key other = one;
            change(other);
            return one != other;
        };
        bool good = one == run_key{one} && differs([](run_key& at) { at.from ^= 1; }) &&
                    differs([](run_key& at) { at.to ^= uint64_t{1} << 63; }) &&
                    differs([](run_key& at) { at.branches ^= 1; }) &&
                    differs([](run_key& at) { at.place ^= 8; });
        using enum run_end;
        for (auto const end : {none, tip, tip_pgd, tip_pgd_out, tip_pge}) {
            good = good && run_key{1, 2, 3, 8U | underlying(end)}.end() == end;
        }
        return good;
    });
}

TEST_CASE("each place has a number: address space, code size, and the generation of code") {
    CHECK_TWICE([](auto value) {
        run storage[1] = {};
        run_table table{storage};
        uint64_t numbers[40] = {};
        bool good = true;
        for (uint32_t i = 0; i < 40; ++i) {
            auto const width = i % 2 == 0 ? code_width::bits_64 : code_width::bits_32;
            numbers[i] = table.place_of(value(i / 4), width, i / 2 % 2);
            good = good && (numbers[i] & 7) == 0 &&
                   numbers[i] == table.place_of(i / 4, width, i / 2 % 2);
            for (uint32_t j = 0; j < i; ++j) { good = good && numbers[i] != numbers[j]; }
        }
        // One of the first was replaced: it gets a new number.
        return good && table.place_of(0, code_width::bits_64, 0) > numbers[39];
    });
}

TEST_CASE("a run is found by its key, in a table of any size") {
    CHECK_TWICE([](auto value) {
        run storage[19] = {};
        for (size_t size = 1; size <= 19; ++size) {
            run_table table{storage, value(size)};
            sums none;
            for (uint64_t from = 0x1000; from < 0x1010; ++from) {
                run& kept = store(table, made(key_of(from), 0), none);
                if (table.find(key_of(from)) != &kept) { return false; }
                if (table.find(key_of(from + 0x100)) != nullptr) { return false; }
            }
            if (none.of[0] != 0) { return false; }
        }
        return true;
    });
}

TEST_CASE("a long run is cut into its first 12 branches, and what is left after them") {
    CHECK_TWICE([](auto value) {
        using packet::marked_branches;
        for (unsigned count = 0; count <= run_key::max_branches; ++count) {
            uint64_t const bits = 0xA5C3'96F0'7E81'D24B & low_bits(count);
            run_key const whole{value(uint64_t{0x1000}), 0x2000, marked_branches::of({count, bits}),
                                24U | underlying(run_end::tip)};
            if (whole.is_long() != (count > 12)) { return false; }
            for (unsigned taken = 0; taken <= count; ++taken) {
                unsigned const left = count - taken;
                run_key const rest{0x3000, 0x2000, marked_branches::of({left, bits}), whole.place};
                if (whole.after(taken, 0x3000) != rest) { return false; }
            }
            if (count <= 12) { continue; }
            run_key const start{0x1000, 0, marked_branches::of({12, bits >> (count - 12)}),
                                24U | underlying(run_end::none)};
            if (whole.start() != start) { return false; }
        }
        return true;
    });
}

TEST_CASE("where no place is free, a run is stored the second time that it is asked for") {
    CHECK_TWICE([](auto value) {
        run storage[3] = {};
        run_table table{storage, value(size_t{3})};
        sums none;
        bool good = true;
        for (uint64_t from = 0x1000; from < 0x1003; ++from) {
            auto const free = table.find_or_place(key_of(from));
            good = good && free.known == nullptr && free.place->key.branches == 0;
            run const& kept = table.insert(*free.place, made(key_of(from), 0), none);
            auto const again = table.find_or_place(key_of(from));
            good = good && again.known == &kept && again.place == nullptr;
        }
        auto const place_of = [&](run_key const& key) { return table.find_or_place(key).place; };
        auto const one = key_of(0x5000);
        auto const other = key_of(0x6000);
        run_key const longer{0x5000, 0x6000, uint64_t{1} << 13, underlying(run_end::tip)};
        good = good && place_of(longer) == nullptr && place_of(longer) == nullptr &&
               place_of(one) == nullptr && place_of(other) == nullptr;
        for (uint64_t from = 0x1000; from < 0x1003; ++from) {
            good = good && table.find(key_of(from)) != nullptr;
        }
        run* const place = place_of(one);
        good = good && place != nullptr &&
               &table.insert(*place, made(one, 0), none) == table.find(one);
        // Only the other one is still asked for.
        return good && place_of(key_of(0x7000)) == nullptr && place_of(other) != nullptr;
    });
}

TEST_CASE("a run is known only if it fits, and then has a place of its own") {
    CHECK_TWICE([](auto value) {
        run storage[2] = {};
        run_table table{storage};
        sums none;
        auto const key = key_of(value(uint64_t{0x1000}));
        run& kept = store(table, made(key, 0), none);
        auto const got = table.find_or_place(key, [&](run const& one) { return &one != &kept; });
        return got.known == nullptr && got.place != nullptr && got.place != &kept;
    });
}

TEST_CASE("a new table is empty, also in storage that another one used") {
    CHECK_TWICE([](auto value) {
        run storage[4] = {};
        auto const key = key_of(value(uint64_t{0x1000}));
        sums none;
        run_table first{storage};
        first.repeat(store(first, made(key, 1), none));
        bool const was_there = first.find(key) != nullptr;
        run_table second{storage};
        second.count_all(none);
        return was_there && second.find(key) == nullptr && none.of[1] == 0;
    });
}

TEST_CASE("edges count for each time that their run was repeated, also after it was replaced") {
    CHECK_TWICE([](auto value) {
        run storage[1] = {};
        run_table table{storage};
        sums found;
        run* one = &store(table, made(key_of(0x1000), 1), found);
        for (int i = 0; i < value(5); ++i) { table.repeat(*one); }
        bool good = found.of[1] == 0;
        one = &store(table, made(key_of(0x2000), 2), found);
        good = good && found.of[1] == 10 && table.find(key_of(0x1000)) == nullptr;
        table.repeat(*one);
        table.count_all(found);
        table.count_all(found);
        good = good && found.of[1] == 10 && found.of[2] == 2;
        table.repeat(*one);
        table.clear();
        table.count_all(found);
        return good && found.of[2] == 2;
    });
}

TEST_CASE("edges are counted before a run can have been repeated 2^32 times: each has a byte") {
    CHECK_TWICE([](auto value) {
        run storage[1] = {};
        run_table table{storage};
        sums found;
        run& one = store(table, made(key_of(0x1000), 1), found);
        table.repeat(one);
        table.add_bytes(value(run_table::max_bytes - 1), found);
        bool const waits = found.of[1] == 0;
        table.add_bytes(1, found);
        bool const counts = found.of[1] == 2;
        table.repeat(one);
        table.add_bytes(run_table::max_bytes - 1, found);
        static_assert(2 * (run_table::max_bytes - 1) < 0xFFFF'FFFF);
        return waits && counts && found.of[1] == 2;
    });
}

TEST_CASE("a successor is found by the bytes of its packets, as long as it is in the table") {
    CHECK_TWICE([](auto value) {
        run storage[3] = {};
        run_table table{storage};
        sums none;
        run& first = store(table, made(key_of(0x1000), 0), none);
        run& second = store(table, made(key_of(0x2000), 0), none);
        run& third = store(table, made(key_of(0x3000), 0), none);
        auto const after_first = [&](wide_bits bytes) -> run* {
            auto const* const found = table.find_after(first, bytes);
            return found == nullptr ? nullptr : table.find(*found);
        };
        bool good = after_first({0, 0}) == nullptr;
        // Bytes 0 to 2, and 0 to 9; those after them differ.
        table.add_after(first, second, {value(uint64_t{0xFFFF'FF33'2211}), 5}, 3);
        good = good && after_first({0, 0}) == nullptr;
        table.add_after(first, third, {0x8877'6655'4433'2212, 0xFFAA99}, 10);
        good = good && after_first({0x1234'0033'2211, 77}) == &second &&
               after_first({0x8877'6655'4433'2212, 0xAA99}) == &third &&
               after_first({0x8877'6655'4433'2212, 0xAB99}) == nullptr &&
               after_first({0x1234'0033'2210, 77}) == nullptr &&
               table.find_after(first, {0x8877'6655'4433'2212, 0xAA99})->size == 10;
        // The older one leaves for a third one.
        table.add_after(first, second, {1, 0}, 1);
        good = good && after_first({0x1234'0033'2211, 77}) == nullptr &&
               after_first({0x8877'6655'4433'2212, 0xAA99}) == &third &&
               after_first({0xFF01, 9}) == &second;
        // A run that was replaced is not found.
        for (uint64_t from = 0x4000; table.find(key_of(0x3000)) != nullptr; ++from) {
            (void)store(table, made(key_of(from), 0), none);
        }
        return good && after_first({0x8877'6655'4433'2212, 0xAA99}) == nullptr;
    });
}

TEST_CASE("a successor is not found by the number of another run, however many are stored") {
    run storage[2] = {};
    run_table table{storage};
    sums none;
    run* first = &store(table, made(key_of(0x1000), 0), none);
    run* const second = &store(table, made(key_of(0x2000), 0), none);
    table.add_after(*first, *second, {0x11, 0}, 1);
    auto const id = second->id;
    auto const successor = *table.find_after(*first, {0x11, 0});
    // All numbers of the place are used.
    unsigned stored = 0;
    for (uint64_t from = 0x3000; stored == 0 || second->id != id; ++from) {
        if (&store(table, made(key_of(from), 0), none) == second) { ++stored; }
        REQUIRE(stored <= 0x10000);
    }
    CHECK(stored == 0xFFFF);
    for (auto const& one : storage) {
        for (auto const& after : one.after) { CHECK(table.find(after) == nullptr); }
    }
    CHECK(table.find(successor) != nullptr);  // which is why no run may have it any more
}

TEST_CASE("an edge counts up to 255 times, then again; indices have 24 bits") {
    CHECK_TWICE([](auto value) {
        run one;
        for (unsigned i = value(0U); i < 256; ++i) {
            if (!one.add(7, true)) { return false; }
        }
        bool good = one.edges == 2 && one.words[0] == (7 | 255U << 24) &&
                    one.words[1] == (7 | 1U << 24);
        good = good && one.add(0xFF'FFFF, true) && !one.add(0x100'0000, true);
        for (unsigned i = one.edges; i < run::max_words; ++i) {
            good = good && one.add(100 + i, true);
        }
        return good && !one.add(99, true) && one.add(100 + run::max_words - 1, true) &&
               !one.add(7, false);
    });
}

TEST_CASE("edges and return addresses share the room of a run") {
    CHECK_TWICE([](auto value) {
        run one;
        uint64_t const address = value(uint64_t{0xFFFF'8123'4567'89AB});
        one.set_address(0, address);
        one.set_address(1, ~address);
        one.takes = one.pushes = 1;
        bool good = one.room() == run::max_words - 4 && one.address(0) == address &&
                    one.address(1) == ~address;
        for (unsigned i = 0; i < run::max_words - 4; ++i) { good = good && one.add(i, false); }
        return good && !one.add(0, false) && one.room() == 0 && one.address(0) == address &&
               one.address(1) == ~address;
    });
}

TEST_CASE("a bitmap of coverage takes counts of many times: they wrap, or stay at 255") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (bool const saturates : {false, true}) {
            uint8_t counts[8] = {250, 1};
            flow::coverage to{counts, 8, nullptr, {.saturates = saturates}};
            to.count(0, value(uint64_t{3}));
            to.count(1, uint64_t{1} << 40 | 2);
            good = good && counts[0] == 253 && counts[1] == (saturates ? 255 : 3);
            to.count(0, 3);
            good = good && counts[0] == (saturates ? 255 : 0);
        }
        return good;
    });
}
