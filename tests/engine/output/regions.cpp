// SPDX-License-Identifier: BSL-1.0
// Also tests/engine/hostile.cpp.
// Regions that are filled in place can take another code path than store() calls. The result must
// be the same.
#include <ptspec/engine/output/output.hpp>
#include <ptspec/engine/output/regions.hpp>

#include <support/check_twice.hpp>
#include <support/small_tables.hpp>

#include <initializer_list>
#include <vector>

using namespace ptspec;
using namespace ptspec::test;
using engine::write_result;

namespace {

/// The visible result of output to a memory.
struct outcome {
    write_result sum{};
    port_fault start{};
    access::msr_state now{};
    rule why = rule::none;

    friend constexpr auto operator==(outcome const&, outcome const&) -> bool = default;
};

/// A table at A, tracing from an offset in its entry `index`, and writes of some sizes. A write
/// that faults is not repeated.
struct course {
    uint64_t entries[4] = {};
    uint64_t linked = 0;  ///< the first entry of the table at B
    struct {
        bool is = false;
        uint64_t word = 0;
    } rewritten{};  ///< the value of the first entry after the first write
    uint64_t index = 0;
    uint64_t offset = 0;
    size_t writes[3] = {};
};

template <memory_port Memory>
constexpr auto outcome_on(Memory& memory, course const& what) -> outcome {
    set_table(memory, A, what.entries[0], what.entries[1], what.entries[2], what.entries[3]);
    set_table(memory, B, what.linked, B | END);
    auto one = tracer_on(memory);
    one.place(A, pointers(what.index, what.offset));
    (void)one.enable_topa();
    size_t at = 0;
    for (size_t const count : what.writes) {
        (void)one.write(byte_view{traced_bytes}.from(at).first(count));
        at += count;
        if (what.rewritten.is) { set(memory, A, what.rewritten.word); }
    }
    one.out.write_back(one.now);
    return {.sum = one.sum, .start = one.fault, .now = one.now, .why = one.out.ended_by()};
}

/// True when store() calls and in-place writes, to one or two pieces, have the same outcome.
constexpr auto is_the_same(course const& what, uint64_t cut = ram_size) -> bool {
    ram stored{A, {}};
    split_ram<2> in_place{{0, cut}};
    host_memory memory{in_place.pieces};
    return outcome_on(stored, what) == outcome_on(memory, what) && in_place.holds(stored.bytes);
}

/// Entries that can follow a region.
constexpr uint64_t next_entries[] = {
    Y,
    Y | INT,
    Y | STOP,
    Y | INT | STOP,
    Z | size_8K,
    A | END,
    B | END,
    B | END | 5 << 6,
    B | END | INT,
    B | END | STOP,
    Y | 2,
    Y | 8,
    Y | 0x20,
    Y | 0x400,
    Y | 0x800,
    Y | size_8K,  // not aligned
    Y | 15 << 6,
    Y | uint64_t{1} << 39,  // beyond MAXPHYADDR
    Y | uint64_t{1} << 63,
    A | END | uint64_t{1} << 39,
    0x40'0000,  // not in the memory
    A,          // overlaps the table
    0,
};

}  // namespace

TEST_CASE("filling a region at once stops at the end of its host memory (OUT-053)") {
    // Host memory is split inside a region, at its end, and inside a table.
    for (uint64_t const cut : {0x8U, 0x10U, 0x18U, 0x1000U, 0x2000U, 0x2001U, 0x2800U, 0x2FFFU,
                               0x3000U, 0x3001U, 0x37F8U, 0x4000U, 0x4800U, 0x5000U}) {
        for (uint64_t const offset : {0x0U, 0x1U, 0x800U, 0xFFFU}) {
            size_t const rest = static_cast<size_t>(0x1000 - offset);
            for (uint64_t const link : {A, B}) {
                course what{.entries = {X, Y, Z | size_8K, link | END},
                            .linked = Z | size_8K,
                            .offset = offset};
                for (auto const& writes : std::initializer_list<std::vector<size_t>>{
                         {rest, 0x1000, 0x1000}, {rest, 0x3000, 5}, {rest + 0x1000, 0x2000, 3}}) {
                    for (size_t i = 0; i < 3; ++i) { what.writes[i] = writes[i]; }
                    CHECK(is_the_same(what, cut));
                }
            }
        }
    }
}

TEST_CASE("a table can span two pieces of memory (OUT-053,055)") {
    for (uint64_t const cut : {8U, 16U, 24U, 32U}) {
        for (uint64_t const offset : {0x0U, 0x1U, 0xFFFU}) {
            for (size_t const first : {size_t{0x1000}, size_t{0x2000}, size_t{0x2800}}) {
                for (auto const& entries : {course{.entries = {X, Z | size_8K, Y, A | END}},
                                            course{.entries = {Z | size_8K, X, Y, A | END}},
                                            course{.entries = {Y, X, Z | size_8K, A | END}}}) {
                    course what = entries;
                    what.offset = offset;
                    what.writes[0] = first - static_cast<size_t>(offset);
                    what.writes[1] = 0x1000;
                    what.writes[2] = 0x1801;
                    CHECK_MESSAGE(is_the_same(what, cut), cut, " ", offset, " ", first);
                }
            }
        }
    }
}

TEST_CASE("bytes that overwrite the next entry are stored before it is read (OUT-070)") {
    // A region overlaps its own table. The next entry changes from Y to Z, in one of its bytes.
    auto const body = [](auto value, uint64_t from, size_t first_write, uint64_t index = 0) {
        auto const on = [&](auto& memory) {
            set_table(memory, A + 8 * index, A, Y, A | END);
            auto one = tracer_on(memory);
            one.place(A, pointers(index, value(from)));
            (void)one.enable_topa();
            uint8_t page[0x1000] = {};
            store_le64(page + 8 * (index + 1), Z);
            auto const bytes = byte_view{page}.from(static_cast<size_t>(from));
            (void)one.write(bytes.first(first_write));
            (void)one.write(bytes.from(first_write));
            auto const done = one.write(first_bytes(1));
            return one.is_running() && one.is_at(A, pointers(index + 1, 1)) &&
                   done.first == (from <= 8 * index + 9 ? Z : Y);
        };
        return on_both(on) && on_whole(on);
    };
    CHECK_TWICE([body](auto value) { return body(value, 9, 0); });
    for (uint64_t from = 0; from < 40; ++from) {
        for (size_t const first_write : {0U, 1U, 5U, 0xF00U}) {
            CHECK(body(unknown{}, from, first_write));
            // The next entry is the last of the page.
            CHECK(body(unknown{}, 0xFE0 + from / 2, first_write & 1, 510));
        }
    }
}

TEST_CASE("bytes for several regions can overwrite an entry after them (OUT-070)") {
    // The table continues in B, which is also the region of entry `index`. The first entry in B is
    // read after all regions, and changes to Z.
    auto const body = [](auto value, uint64_t index, auto... regions) {
        return on_whole([&](auto& memory) {
            set_table(memory, A + 8 * index, B, regions..., X, A | END);
            auto one = tracer_on(memory);
            one.place(A, pointers(value(index), 0));
            (void)one.enable_topa();
            uint8_t bytes[0x3001] = {};
            store_le64(bytes, Z);
            auto const count = static_cast<size_t>((512 - index) * 0x1000 + 1);
            auto const done = one.write(byte_view{bytes}.first(count));
            return one.is_running() && one.is_at(A, pointers(512, 1)) && done.last == Z;
        });
    };
    CHECK_TWICE([body](auto value) { return body(value, 510, X); });
    // Two entries between entry `index` and the entry in B.
    CHECK_TWICE([body](auto value) { return body(value, 509, X, Y); });
}

TEST_CASE("after an END to the same table its first entry is read again (OUT-053,054)") {
    // In the second lap it is another or a larger region, has flags, or is invalid.
    for (uint64_t const first : next_entries) {
        for (uint64_t const link : {A | END, A | END | 5 << 6, A | END | INT, B | END}) {
            for (uint64_t const index : {0U, 1U}) {
                for (size_t const more : {0x0U, 0x1U, 0x1000U, 0x1FFFU, 0x2005U}) {
                    course what{.entries = {X, Y, link}, .linked = Z | size_8K, .index = index};
                    what.rewritten = {true, first};
                    what.writes[0] = index == 0 ? 0x1000 : 0x10;
                    what.writes[1] = (index == 0 ? 0x1000 : 0xFF0) + more;
                    what.writes[2] = 0x1001;
                    CHECK_MESSAGE(is_the_same(what), first, " ", link, " ", index, " ", more);
                }
            }
        }
    }
}

TEST_CASE("a region that overwrites the first entry changes the region after END (OUT-053,054)") {
    // The table continues in B, which has the END. The region of the entry before it is the page
    // of the first entry, and changes that from X to Z.
    CHECK(on_whole([](auto& memory) {
        for (uint64_t index = 0; index < 511; ++index) { set(memory, A + 8 * index, X); }
        set_table(memory, A + 8 * 511, A, A | END);
        auto one = traced_from(memory, A);
        for (unsigned i = 0; i < 511; ++i) { (void)one.write(first_bytes(0x1000)); }
        bool const right = one.is_at(A, pointers(511, 0));
        uint8_t page[0x1001] = {};
        store_le64(page, Z);
        auto const done = one.write(byte_view{page});
        return right && one.is_running() && one.is_at(A, pointers(0, 1)) && done.last == Z;
    }));
}

TEST_CASE("bytes that would fill a region are lost after TraceEn 1->0") {
    CHECK_TWICE([](auto value) {
        return on_whole([&](auto& memory) {
            set_table(memory, A, X, Y, A | END);
            auto one = traced_from(memory, value(A));
            (void)one.write(first_bytes(0x10));
            one.out.stop(one.now);
            bool right = true;
            for (size_t const count : {size_t{0xFF0}, size_t{0xFF8}, size_t{0x3000}}) {
                right = right && one.write(first_bytes(count)) ==
                                     engine::write_result{.taken = count, .lost = count};
            }
            return right && one.is_at(A, pointers(0, 0x10));
        });
    });
}

TEST_CASE("an entry that changes before output reaches it is read changed (OUT-053)") {
    CHECK_TWICE([](auto value) {
        return on_both([&](auto& memory) {
            set_table(memory, A, X, X, X, A | END);
            auto one = traced_from(memory, value(A));
            (void)one.write(first_bytes(0x1000));
            set_table(memory, A + 16, Y, X | INT);
            (void)one.write(first_bytes(0x1000));
            bool const second = one.is_at(A, pointers(2, 0));
            set_table(memory, A + 24, B | END);
            set_table(memory, B, Z);
            auto const done = one.write(first_bytes(0x1001));
            return second && done.first == Y && done.last == Z && one.is_at(B, pointers(0, 1));
        });
    });
}

TEST_CASE("in place, too, the first entry follows the last possible one (OUT-055)") {
    // A table of 256 MB; only its two ends are mapped.
    auto const body = [](auto value, uint64_t entries) {
        uint8_t low[0x20] = {};
        uint8_t high[0x60] = {};  // the end, and entries after it
        uint8_t region[0x2000] = {};
        uint64_t const end = A + (uint64_t{1} << 28);
        host_region const pieces[] = {
            {0x2'0000'0000, region, 0x2000}, {A, low, 0x20}, {end - 0x40, high, 0x60}};
        host_memory memory{pieces};
        constexpr uint64_t one_region = 0x2'0000'0000;
        for (uint64_t at = end - 0x40; at < end + 0x20; at += 8) { set(memory, at, one_region); }
        set(memory, A, one_region + 0x1000);
        auto one = tracer_on(memory);
        one.place(A, pointers(0x200'0000 - entries, value(uint64_t{0})));
        (void)one.enable_topa();
        for (uint64_t i = 0; i < entries; ++i) { (void)one.write(first_bytes(0x1000)); }
        bool const round = one.is_at(A, 0x7F);
        auto const done = one.write(first_bytes(1));
        return round && done.first == one_region + 0x1000;
    };
    CHECK_TWICE([body](auto value) { return body(value, 1); });
    CHECK(body(unknown{}, 2));
    CHECK(body(unknown{}, 8));
}

TEST_CASE("in place, too, no entry is read from above MAXPHYADDR (OUT-071)") {
    auto const body = [](auto value, uint64_t entries) {
        uint8_t table[0x40] = {};
        uint8_t region[0x1000] = {};
        constexpr uint64_t top = uint64_t{1} << 39;
        host_region const pieces[] = {{top - 0x20, table, 0x40}, {X, region, 0x1000}};
        host_memory memory{pieces};
        for (uint64_t at = top - 0x20; at < top + 0x20; at += 8) { set(memory, at, X); }
        auto one = tracer_on(memory);
        one.place(top - 0x1000, pointers(0x200 - entries, value(uint64_t{0})));
        (void)one.enable_topa();
        bool running = one.is_running();
        for (uint64_t i = 0; i < entries; ++i) {
            running = running && one.is_running();
            (void)one.write(first_bytes(0x1000));
        }
        return running && one.has_failed(rule::OUT_071) &&
               one.is_at(top - 0x1000, pointers(0x200, 0));
    };
    CHECK_TWICE([body](auto value) { return body(value, 1); });
    CHECK(body(unknown{}, 2));
    CHECK(body(unknown{}, 4));
}

namespace {

/// Memory of which only the addresses first..last are mapped.
struct partly_mapped {
    using ignores_pmis = partly_mapped;

    ram inner{A, {}};
    uint64_t first = 0;
    uint64_t last = 0;

    constexpr auto load(uint64_t address) const noexcept -> port_value {
        return inner.load(address);
    }
    constexpr auto store(uint64_t address, byte_view bytes) noexcept -> size_t {
        return inner.store(address, bytes);
    }
    constexpr auto window(uint64_t address) noexcept -> byte_window {
        if (address < first || address > last) { return {}; }
        return {inner.bytes.bytes + (address - A), last - address + 1};
    }
};
static_assert(mapped_memory_port<partly_mapped>);

}  // namespace

TEST_CASE("memory that cannot be written in place is written through the port") {
    auto const body = [](auto value, uint64_t first, uint64_t last) {
        course const what{.entries = {X, Y | INT, Z | size_8K, B | END},
                          .linked = X,
                          .writes = {0x1000, value(size_t{0x1801}), 0x7FF}};
        partly_mapped memory{.first = first, .last = last};
        ram stored{A, {}};
        return outcome_on(stored, what) == outcome_on(memory, what) &&
               stored.bytes == memory.inner.bytes;
    };
    CHECK_TWICE([body](auto value) { return body(value, X, Z - 1); });  // regions, no table
    CHECK_TWICE([body](auto value) { return body(value, A, A + 0xFFF); });
    for (uint64_t first = A; first < Z; first += 0x400) {
        for (uint64_t last = first + 7; last < Z + 0x2000; last += 0x800) {
            CHECK(body(unknown{}, first, last));
        }
    }
}

// ------------------------------------------------------------------------------------ port calls

namespace {

/// Host memory that counts calls of load() and store().
struct asked_memory {
    using ignores_pmis = asked_memory;

    host_memory inner;
    uint64_t loads = 0;
    uint64_t stores = 0;

    constexpr auto load(uint64_t address) noexcept -> port_value {
        ++loads;
        return inner.load(address);
    }
    constexpr auto store(uint64_t address, byte_view bytes) noexcept -> size_t {
        ++stores;
        return inner.store(address, bytes);
    }
    constexpr auto window(uint64_t address) noexcept -> byte_window {
        return inner.window(address);
    }
};
static_assert(mapped_memory_port<asked_memory>);

}  // namespace

TEST_CASE("filling whole regions in place loads only the first entry and stores nothing") {
    // Each region is a separate piece.
    for (size_t const piece : {0x1000U, 0x2000U, 0x3000U}) {
        uint8_t table[0x80] = {};
        uint8_t regions[4][0x1000] = {};
        host_region const pieces[] = {{A, table, 0x80},
                                      {X, regions[0], 0x1000},
                                      {Z, regions[1], 0x1000},
                                      {B, regions[2], 0x1000},
                                      {Y, regions[3], 0x1000}};
        asked_memory memory{.inner = pieces};
        set_table(memory.inner, A, X, Z, B, Y, X, Z, A | END);
        auto one = traced_from(memory, unknown{}(A));
        for (size_t at = 0; at < 0x6000; at += piece) { (void)one.write(first_bytes(piece)); }
        CHECK(one.is_at(A, 0x7F));
        CHECK(one.sum.stored == 0x6000);
        CHECK(memory.stores == 0);
        CHECK(memory.loads == 1);  // the first entry, before its window is known
    }
}

TEST_CASE("in place, too, an entry is loaded once (OUT-053,054)") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[ram_size] = {};
        host_region const pieces[] = {{A, bytes, ram_size}};
        asked_memory memory{.inner = pieces};
        set_table(memory.inner, A, X | INT, B | END);
        set_table(memory.inner, B, Y, A | END);
        auto one = traced_from(memory, A);
        (void)one.write(first_bytes(value(size_t{0x1000})));
        bool const linked = memory.loads == 2 && one.is_at(B, 0x7F);
        uint64_t const before = memory.loads;
        (void)one.write(first_bytes(0x1000));  // through END, which is read in place
        return linked && memory.loads == before + 1 && one.is_at(A, 0x7F) && memory.stores == 0;
    });
    uint8_t bytes[ram_size] = {};
    host_region const pieces[] = {{A, bytes, ram_size}};
    asked_memory memory{.inner = pieces};
    set_table(memory.inner, A, X, A | END);
    auto one = traced_from(memory, unknown{}(A));
    (void)one.write(first_bytes(0x1000));
    CHECK(memory.loads == 1);  // END and then the first entry are read in place
}

TEST_CASE("a link that was followed in place to memory that faults is not followed again") {
    // The entry after the link must not be used as the next one.
    CHECK_TWICE([](auto value) {
        uint8_t low[0x20] = {};
        uint8_t linked[0x10] = {};
        uint8_t regions[0x2000] = {};
        host_region const all[] = {{A, low, 0x20}, {X, regions, 0x2000}, {B, linked, 0x10}};
        host_memory memory{all, 2};  // without the table at B
        host_memory whole{all};
        set_table(whole, A, X, B | END, X, X);
        set_table(whole, B, Y, A | END);
        auto one = traced_from(memory, value(A));
        auto const filled = one.write(first_bytes(0x1000));
        bool const waits = filled.taken == 0x1000 && filled.fault == port_fault{true, B} &&
                           one.is_running() && one.is_at(B, 0x7F);
        auto const again = one.write(first_bytes(0x1000));
        bool const still = again == write_result{.fault = {true, B}} && one.is_at(B, 0x7F);
        one.retry();
        bool const asked = one.fault == port_fault{true, B};
        memory = whole;
        set_table(memory, A, X, X | 2);  // the link is not read again
        auto const done = one.write(first_bytes(5));
        return waits && still && asked && done.first == Y && done.taken == 5 &&
               one.is_at(B, pointers(0, 5)) && one.is_running();
    });
}
