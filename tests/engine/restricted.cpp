// SPDX-License-Identifier: BSL-1.0
// Memory that trace output must not access.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/output/output.hpp>

#include <support/check_twice.hpp>
#include <support/small_tables.hpp>

using namespace ptspec;
using namespace ptspec::test;
using engine::restricted_access;
namespace preset = cpu::preset;
namespace bits = ctl_bits;

TEST_CASE("SMRR protects in SMM too (OUT-114, PRG-095)") {
    CHECK_TWICE([](auto value) {
        listed_memory memory;
        auto one = tracer_on(memory);
        one.how = smrr(0x1'2000, 0xFFFF'F800);
        one.now.in_smm = value(true);
        one.place(X, 0xFFF);
        (void)one.enable(bits::single_range);
        (void)one.write(first_bytes(2));
        auto two = tracer_on(memory);
        two.how = one.how;
        two.now.in_smm = true;
        two.place(X, 0x7F);
        (void)two.enable_topa();
        return one.sum.lost == 2 && memory.run_count == 0 && two.has_failed(rule::OUT_091);
    });
}

TEST_CASE("a region that was entered before SMRRs change is not checked again (OUT-115, PRG-097)") {
    CHECK_TWICE([](auto value) {
        topa::phys_range const spans[] = {{X, Y + 0xFFF}};
        auto const how = protecting(spans);
        return on_both([&](auto& memory) {
            set_table(memory, A, X, Y, Z, A | END);
            auto one = traced_from(memory, A);
            (void)one.write(first_bytes(value(size_t{0x800})));
            one.out.change_restricted(how.restricted);
            auto const rest = one.write(first_bytes(0x800));
            bool const kept = rest.stored == 0x800 && one.is_at(A, pointers(1, 0)) &&
                              holds(memory, X + 0x800, first_bytes(0x800));
            auto const next = one.write(first_bytes(0x1001));  // the next entry is checked
            return kept && next.lost == 0x1000 && next.stored == 1 && next.last == Z &&
                   holds(memory, Y, byte_array<16>{});
        });
    });
    CHECK_TWICE([](auto value) {  // ranges that end in the same way
        topa::phys_range const spans[] = {{X, Y + 0xFFF}};
        word_at const words[] = {{A, X}, {A + 8, Y}, {A + 16, A | END}};
        listed_memory memory{words};
        auto one = tracer_on(memory);
        one.how = protecting(spans);
        one.place(value(A), 0x7F);
        (void)one.enable_topa();
        one.out.change_restricted({});
        return one.write(first_bytes(0x1002)).lost == 0x1000 && memory.runs[0] == stored_run{Y, 2};
    });
    CHECK_TWICE([](auto value) {  // a single range is entered once; TraceEn ends that
        topa::phys_range const spans[] = {{X, X + 0xFFF}};
        auto const how = protecting(spans, restricted_access::error);
        listed_memory memory;
        auto one = tracer_on(memory);
        one.place(value(X), pointers(31, 0xFF0));
        (void)one.enable(bits::single_range);
        one.out.change_restricted(how.restricted);
        bool const wraps = one.write(first_bytes(0x20)).stored == 0x20 && one.is_running();
        auto two = tracer_on(memory);
        two.how = how;
        two.place(X, pointers(31, 0xFF0));
        (void)two.enable(bits::single_range);
        return wraps && two.has_failed(rule::OUT_111);
    });
    CHECK_TWICE([](auto value) {  // so is a table that SMRR comes to cover: at the next entry
        topa::phys_range const spans[] = {{A, A + 0xFFF}};
        auto const how = protecting(spans);
        return on_both([&](auto& memory) {
            set_table(memory, A, X, Y, A | END);
            auto one = traced_from(memory, A);
            one.out.change_restricted(how.restricted);
            bool const before = one.write(first_bytes(value(size_t{0xFFF}))).stored == 0xFFF &&
                                one.is_running();
            (void)one.write(first_bytes(2));
            return before && one.has_failed(rule::OUT_091);
        });
    });
}

TEST_CASE("a table in restricted memory is an error in either mode (OUT-091,112)") {
    auto const body = [](auto value, restricted_access when) {
        // Each byte of an entry counts, and no adjacent byte.
        for (uint64_t byte = 0; byte < 8; ++byte) {
            topa::phys_range const spans[] = {{A + 8 + byte, A + 8 + byte}};
            word_at const words[] = {{A, X}, {A + 8, Y}, {A + 16, A | END}};
            listed_memory memory{words};
            auto one = tracer_on(memory);
            one.how = protecting(spans, when);
            one.place(value(A), pointers(0, 0xFFF));
            (void)one.enable_topa();
            bool const beside = one.is_running();
            auto const done = one.write(first_bytes(2));
            if (!beside || !one.has_failed(rule::OUT_091) || done.lost != 1 ||
                !one.is_at(A, pointers(1, 0)) || memory.loads != 1) {
                return false;
            }
            auto const at_enable = enabling_fails(A, pointers(1, 7), words, preset::P_SKL, one.how);
            auto const past_it = enabling_fails(A, pointers(2, 7), words, preset::P_SKL, one.how);
            if (at_enable != rule::OUT_091 || past_it != rule::none) { return false; }
        }
        // The table that an END links to.
        topa::phys_range const spans[] = {{B, B + 0xFFF}};
        word_at const words[] = {{A, X}, {A + 8, B | END}, {B, Y}};
        listed_memory memory{words};
        auto one = tracer_on(memory);
        one.how = protecting(spans, when);
        one.place(value(A), pointers(0, 0xFFF));
        (void)one.enable_topa();
        (void)one.write(first_bytes(1));
        return one.has_failed(rule::OUT_091) && one.is_at(B, 0x7F) && memory.loads == 2;
    };
    CHECK_TWICE([body](auto value) { return body(value, restricted_access::drop); });
    CHECK_TWICE([body](auto value) { return body(value, restricted_access::error); });
}

TEST_CASE("output to the page of the local APIC is not an error (OUT-113, PRG-096)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, 0xFEE0'0000}, {A + 8, A | END}};
        listed_memory memory{words};
        auto one = traced_from(memory, value(A));
        auto const done = one.write(first_bytes(0x1000));
        return done.stored == 0x1000 && one.is_running() &&
               memory.runs[0] == stored_run{0xFEE0'0000, 0x1000};
    });
}
