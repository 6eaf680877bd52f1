// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/output/output.hpp>
#include <ptspec/engine/output/regions.hpp>

#include <support/check_twice.hpp>
#include <support/small_tables.hpp>

using namespace ptspec;
using namespace ptspec::test;

TEST_CASE("tracing that begins at an END starts at byte 0 of the next table (OUT-057)") {
    CHECK_TWICE([](auto value) {
        return on_both([&](auto& memory) {
            set_table(memory, A, X, B | END);
            set_table(memory, B, Y, A | END);
            auto one = tracer_on(memory);
            one.place(A, pointers(1, value(uint64_t{0xFFFF'FFFF})));
            (void)one.enable_topa();
            bool const moved = one.is_running() && one.is_at(B, 0x7F);
            (void)one.write(first_bytes(2));
            return moved && holds(memory, Y, first_bytes(2));
        });
    });
}

TEST_CASE("tracing begins inside a region at the offset (OUT-050,051,058, PRG-084)") {
    CHECK_TWICE([](auto value) {
        return on_both([&](auto& memory) {
            set_table(memory, A, X, Y, Z | size_8K, A | END);
            auto one = tracer_on(memory);
            one.place(A, pointers(2, value(uint64_t{0x1FF0})));
            (void)one.enable_topa();
            auto const done = one.write(first_bytes(16));
            return done.first == Z + 0x1FF0 && done.last == Z + 0x1FFF && one.is_at(A, 0x7F) &&
                   holds(memory, Z + 0x1FF0, first_bytes(16));
        });
    });
}

TEST_CASE("a single range begins at the offset, and wraps to its base (OUT-020,021)") {
    CHECK_TWICE([](auto value) {
        return on_both([&](auto& memory) {
            auto one = tracer_on(memory);
            one.place(Z, pointers(0, value(uint64_t{0x70})));  // 128 bytes, 16 before the end
            (void)one.enable(ctl_bits::single_range);
            auto const all = first_bytes(20);
            (void)one.write(all);
            return holds(memory, Z + 0x70, all.first(16)) && holds(memory, Z, all.from(16));
        });
    });
}

TEST_CASE("a region has 4 KB << Size bytes, including the last (OUT-041,052,069, PRG-089)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t size = 0; size < 16; ++size) {
            uint64_t const bytes = value(uint64_t{4096}) << size;
            uint64_t const base = bytes * 3;
            word_at const words[] = {{A, base | size << 6}, {A + 8, Y}};
            listed_memory memory{words};
            auto one = tracer_on(memory);
            one.place(A, pointers(0, bytes - 1));
            (void)one.enable_topa();
            (void)one.write(first_bytes(1));
            bool const right = memory.runs[0] == stored_run{base + bytes - 1, 1} &&
                               one.is_running() && one.is_at(A, pointers(1, 0));
            auto two = tracer_on(memory);
            two.place(A, pointers(0, bytes));
            (void)two.enable_topa();
            if (!right || !two.has_failed(rule::OUT_064)) { return false; }
        }
        return true;
    });
}

TEST_CASE("END can link to any table, and its Size is ignored (OUT-043,047, PRG-089)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t size = 0; size < 16; ++size) {
            word_at const words[] = {{A, X}, {A + 8, B | size << 6 | END}, {B, Y}};
            listed_memory memory{words};
            auto one = tracer_on(memory);
            one.place(value(A), pointers(0, 0xFFF));
            (void)one.enable_topa();
            (void)one.write(first_bytes(1));
            if (!one.is_running() || !one.is_at(B, 0x7F)) { return false; }
        }
        return true;
    });
}
