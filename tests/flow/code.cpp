// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/code.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

namespace {

constexpr uint8_t bytes[] = {0x10, 0x11, 0x12, 0x13};

constexpr auto is(byte_view got, uint8_t first, size_t size) -> bool {
    return got.size() == size && (size == 0 || got[0] == first);
}

}  // namespace

TEST_CASE("a span has the bytes from an address on, and none outside") {
    CHECK_TWICE([](auto value) {
        flow::code_span const one{bytes, value(uint64_t{0x1000})};
        return is(one.code(0x1000, 0), 0x10, 4) && is(one.code(0x1003, 7), 0x13, 1) &&
               is(one.code(0x1004, 0), 0, 0) && is(one.code(0xFFF, 0), 0, 0);
    });
}

TEST_CASE("a span at the end of the address space") {
    CHECK_TWICE([](auto value) {
        flow::code_span const one{bytes, value(~uint64_t{0} - 3)};
        return is(one.code(~uint64_t{0}, 0), 0x13, 1) && is(one.code(0, 0), 0, 0);
    });
}

TEST_CASE("spans that are sorted by address") {
    CHECK_TWICE([](auto value) {
        flow::code_span const all[] = {{bytes, 0x1000}, {bytes, 0x1004}, {bytes, 0x2000}};
        flow::code_spans const some{all, value(size_t{3})};
        return is(some.code(0x1003, 0), 0x13, 1) && is(some.code(0x1004, 0), 0x10, 4) &&
               is(some.code(0x2001, 0), 0x11, 3) && is(some.code(0xFFF, 0), 0, 0) &&
               is(some.code(0x1008, 0), 0, 0) && is(some.code(0x3000, 0), 0, 0) &&
               is(flow::code_spans{}.code(0x1000, 0), 0, 0);
    });
}

TEST_CASE("pages") {
    static constexpr auto memory = [] {
        byte_array<3 * 4096> made{};
        for (size_t i = 0; i < 3; ++i) { made.bytes[i * 4096 + 5] = static_cast<uint8_t>(i + 1); }
        return made;
    }();
    CHECK_TWICE([](auto value) {
        uint64_t const addresses[] = {0x1000, 0x2000, 0x9000};
        flow::code_pages const all{addresses, value(size_t{3}), memory.data()};
        return is(all.code(0x1005, 0), 1, 4091) && is(all.code(0x2005, 0), 2, 4091) &&
               is(all.code(0x9005, 0), 3, 4091) && is(all.code(0x9FFF, 0), 0, 1) &&
               is(all.code(0x3000, 0), 0, 0) && is(all.code(0xA000, 0), 0, 0) &&
               is(all.code(0, 0), 0, 0);
    });
}

TEST_CASE("pages and spans in any order have their code, the first of those that overlap") {
    static constexpr auto memory = [] {
        byte_array<4 * 4096> made{};
        for (size_t i = 0; i < 4; ++i) { made.bytes[i * 4096 + 5] = static_cast<uint8_t>(i + 1); }
        return made;
    }();
    CHECK_TWICE([](auto value) {
        uint64_t const addresses[] = {value(uint64_t{0x9000}), 0x1000, 0x2000, 0x1000};
        uint64_t const odd[] = {value(uint64_t{0x1800}), 0x3000};
        flow::code_pages const all{addresses, 4, memory.data()};
        flow::code_pages const unaligned{odd, 2, memory.data()};
        flow::code_span const spans[] = {
            {bytes, value(uint64_t{0x2000})}, {bytes, 0x1000}, {bytes, 0x1002}};
        flow::code_span const nested[] = {{borrowed_bytes{memory.data(), 4096}, 0x1000},
                                          {bytes, value(uint64_t{0x1004})}};
        flow::code_spans const some{spans, 3};
        flow::code_spans const outer{nested, 2};
        return is(all.code(0x9005, 0), 1, 4091) && is(all.code(0x1005, 0), 2, 4091) &&
               is(all.code(0x2005, 0), 3, 4091) && is(all.code(0x3000, 0), 0, 0) &&
               is(all.code(0xFFF, 0), 0, 0) && is(unaligned.code(0x1805, 0), 1, 4091) &&
               is(unaligned.code(0x27FF, 0), 0, 1) && is(unaligned.code(0x2800, 0), 0, 0) &&
               is(unaligned.code(0x3005, 0), 2, 4091) && is(some.code(0x2001, 0), 0x11, 3) &&
               is(some.code(0x1003, 0), 0x13, 1) && is(some.code(0x1004, 0), 0x12, 2) &&
               is(some.code(0x1006, 0), 0, 0) && is(outer.code(0x1005, 0), 1, 4091) &&
               is(outer.code(0x100A, 0), 0, 4086);
    });
}

TEST_CASE("a callback gets address and space") {
    CHECK_TWICE([](auto value) {
        flow::code_callback source{[](uint64_t at, uint32_t space) {
            return at == 0x40 && space == 7 ? byte_view{bytes} : byte_view{};
        }};
        static_assert(flow::code_source<decltype(source)>);
        return is(source.code(value(uint64_t{0x40}), 7), 0x10, 4) &&
               is(source.code(0x40, value(uint32_t{8})), 0, 0);
    });
}
