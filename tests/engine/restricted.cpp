// SPDX-License-Identifier: BSL-1.0
// Memory that trace output must not access.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/output/output.hpp>

#include <support/check_twice.hpp>
#include <support/small_tables.hpp>

using namespace ptspec;
using namespace ptspec::test;
using engine::output_options;
using engine::restricted_access;
using engine::write_result;
namespace preset = cpu::preset;
namespace bits = ctl_bits;

namespace {

enum class fate : uint8_t { stored, dropped, neither };

/// What happens to a byte written to an address.
constexpr auto fate_at(uint64_t address, output_options const& how) -> fate {
    listed_memory memory;
    auto one = tracer_on(memory, preset::P_ATM);
    one.how = how;
    one.place(address & ~uint64_t{0x7F}, pointers(0, address & 0x7F));
    (void)one.enable(bits::single_range);
    auto const done = one.write(first_bytes(1));
    if (done.first != address || !one.is_running()) { return fate::neither; }
    if (done.lost == 1 && memory.run_count == 0) { return fate::dropped; }
    bool const stored = done.stored == 1 && memory.runs[0] == stored_run{address, 1};
    return stored ? fate::stored : fate::neither;
}
constexpr auto is_dropped(uint64_t address, output_options const& how) -> bool {
    return fate_at(address, how) == fate::dropped;
}
constexpr auto is_stored(uint64_t address, output_options const& how) -> bool {
    return fate_at(address, how) == fate::stored;
}

}  // namespace

TEST_CASE("SMRR protects addresses whose masked bits equal those of the base (OUT-110,144)") {
    CHECK_TWICE([](auto value) {
        auto const how = smrr(value(uint64_t{0x8000'0006}), 0xFF80'0800);  // 8 MB, write-back
        return is_dropped(0x8000'0000, how) && is_dropped(0x807F'FFFF, how) &&
               is_stored(0x7FFF'FFFF, how) && is_stored(0x8080'0000, how) &&
               is_stored(0x1'8000'0000, how) && is_stored(0x81'8000'0000, how) && is_stored(0, how);
    });
    CHECK_TWICE([](auto value) {  // nothing is protected if Valid is 0
        auto const how = smrr(value(uint64_t{0x8000'0006}), 0xFF80'0000);
        return is_stored(0x8000'0000, how) && is_stored(0x807F'FFFF, how);
    });
    CHECK_TWICE([](auto value) {  // 200000H to 3FFFFFH
        auto const how = smrr(value(uint64_t{0x20'0000}), 0xFFE0'0800);
        return is_dropped(0x20'0000, how) && is_dropped(0x3F'FFFF, how) &&
               is_stored(0x1F'FFFF, how) && is_stored(0x40'0000, how);
    });
}

TEST_CASE("an SMRR mask may have holes; a mask of 0 protects all below 4 GB (OUT-110)") {
    CHECK_TWICE([](auto value) {
        auto const how = smrr(value(uint64_t{0x1'1000}), 0xFFFF'D800);  // bit 13 is not compared
        return is_dropped(0x1'1000, how) && is_dropped(0x1'1FFF, how) &&
               is_dropped(0x1'3000, how) && is_dropped(0x1'3FFF, how) && is_stored(0x1'2000, how) &&
               is_stored(0x1'2FFF, how) && is_stored(0x1'0FFF, how) && is_stored(0x1'4000, how);
    });
    CHECK_TWICE([](auto value) {
        auto const how = smrr(value(uint64_t{0xFFFF'F000}), 0x800);
        return is_dropped(0, how) && is_dropped(0xFFFF'FFFF, how) && is_stored(1ULL << 32, how);
    });
}

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

TEST_CASE("other protected ranges may start and end at any byte, overlap, or be empty (OUT-116)") {
    CHECK_TWICE([](auto value) {
        topa::phys_range const spans[] = {
            {value(X + 3), X + 5}, {X + 5, X + 9},       {X + 20, X + 19},  // empty
            {X + 13, X + 13},      {X + 0x7F, X + 0x90}, {0x1'0000'0000, 0x1'0000'0001}};
        auto const how = protecting(spans);
        for (uint64_t at = 0; at < 0x80; ++at) {
            bool const inside = (at >= 3 && at <= 9) || at == 13 || at == 0x7F;
            if (fate_at(X + at, how) != (inside ? fate::dropped : fate::stored)) { return false; }
        }
        return is_dropped(0x1'0000'0001, how) && is_stored(0x1'0000'0002, how);
    });
}

TEST_CASE("bytes to restricted memory are lost, the pointer advances (OUT-111,117,131, PRG-095)") {
    CHECK_TWICE([](auto value) {
        size_t const count = value(size_t{32});
        return on_both([&](auto& memory) {
            topa::phys_range const spans[] = {{X + 0xFF8, X + 0xFFB}, {Y + 2, Y + 2}};
            set_table(memory, A, X, Y, A | END);
            auto one = tracer_on(memory);
            one.how = protecting(spans);
            one.place(A, pointers(0, 0xFF0));
            (void)one.enable_topa();
            auto const done = one.write(first_bytes(count));
            byte_array<4> const nothing{};
            return done == write_result{.taken = 32,
                                        .stored = 27,
                                        .lost = 5,
                                        .first = X + 0xFF0,
                                        .last = Y + 15,
                                        .has_address = true} &&
                   one.is_running() && one.is_at(A, pointers(1, 16)) &&
                   holds(memory, X + 0xFF0, first_bytes(8)) && holds(memory, X + 0xFF8, nothing) &&
                   holds(memory, X + 0xFFC, first_bytes(18).from(12)) &&
                   holds(memory, Y + 2, byte_array<1>{}) &&
                   holds(memory, Y + 3, first_bytes(32).from(19));
        });
    });
    CHECK_TWICE([](auto value) {  // the first and last addresses include dropped bytes
        topa::phys_range const spans[] = {{X, X + 0xFFF}};
        listed_memory memory;
        auto one = tracer_on(memory);
        one.how = protecting(spans);
        one.place(value(X), pointers(31, 0xFFF));
        (void)one.enable(bits::single_range);
        return one.write(first_bytes(2)) ==
                   write_result{
                       .taken = 2, .lost = 2, .first = X + 0xFFF, .last = X, .has_address = true} &&
               memory.run_count == 0 && one.is_at(X, pointers(31, 1));
    });
}

TEST_CASE("restricted memory at or after a region's end does not change its size (OUT-111)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t at = Y - 2; at < Y + 3; ++at) {
            topa::phys_range const spans[] = {{at, Y + 8}};
            word_at const words[] = {{A, X}, {A + 8, Z}, {A + 16, A | END}};
            listed_memory memory{words};
            auto one = tracer_on(memory);
            one.how = protecting(spans);
            one.place(value(A), pointers(0, 0xFF0));
            (void)one.enable_topa();
            auto const done = one.write(first_bytes(0x12));
            uint64_t const lost = at < Y ? Y - at : 0;
            if (done.lost != lost || done.stored != 0x12 - lost || done.last != Z + 1 ||
                !one.is_at(A, pointers(1, 2)) ||
                memory.runs[0] != stored_run{X + 0xFF0, 0x10 - lost} ||
                memory.runs[1] != stored_run{Z, 2}) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("a region of dropped bytes still fills: INT, STOP and END take effect (OUT-111)") {
    CHECK_TWICE([](auto value) {
        topa::phys_range const spans[] = {{X, X + 0xFFF}};
        word_at const words[] = {{A, X | INT}, {A + 8, B | END}, {B, X | INT | STOP}};
        listed_memory memory{words};
        auto one = tracer_on(memory);
        one.how = protecting(spans);
        one.place(value(A), pointers(0, 0xFFF));
        (void)one.enable_topa();
        auto const first = one.write(first_bytes(1));
        bool const moved = first.pmis == 1 && first.lost == 1 && one.is_at(B, 0x7F);
        auto const second = one.write(first_bytes(0x1001));
        return moved && second.pmis == 1 && second.lost == 0x1001 && second.last == X + 0xFFF &&
               one.has_stopped() && one.is_at(B, pointers(0, 0x1000));
    });
    CHECK_TWICE([](auto value) {  // also if the dropped bytes start at the offset of the interrupt
        topa::phys_range const spans[] = {{X + 0xE00, X + 0xFFF}};
        word_at const words[] = {{A, X | INT}, {A + 8, A | END}};
        listed_memory memory{words};
        auto one = tracer_on(memory, preset::P_BDW);
        one.how = protecting(spans);
        one.place(value(A), pointers(0, 0xDF0));
        (void)one.enable_topa();
        auto const done = one.write(first_bytes(0x211));
        return done.pmis == 1 && done.stored == 0x11 && done.lost == 0x200;
    });
}

TEST_CASE("in error mode, reaching restricted memory is an error at that byte (OUT-111)") {
    CHECK_TWICE([](auto value) {
        return on_both([&](auto& memory) {
            topa::phys_range const spans[] = {{X + 0x803, X + 0x803}};
            set_table(memory, A, X, A | END);
            auto one = tracer_on(memory);
            one.how = protecting(spans, restricted_access::error);
            one.place(A, 0x7F);
            (void)one.enable_topa();
            (void)one.write(first_bytes(value(size_t{0x802})));
            bool const before = one.is_running();
            auto const done = one.write(first_bytes(5));
            return before && one.has_failed(rule::OUT_111) && done.stored == 1 && done.lost == 4 &&
                   done.last == X + 0x802 && one.is_at(A, pointers(0, 0x803)) &&
                   holds(memory, X, first_bytes(0x802));
        });
    });
    CHECK_TWICE([](auto value) {  // immediately, also after a link, and after the interrupt
        topa::phys_range const spans[] = {{Y, Y}};
        word_at const words[] = {{A, X | INT}, {A + 8, B | END}, {B, Y}};
        listed_memory memory{words};
        auto one = tracer_on(memory);
        one.how = protecting(spans, restricted_access::error);
        one.place(value(A), pointers(0, 0xFFF));
        (void)one.enable_topa();
        auto const done = one.write(first_bytes(1));
        bool const reached = one.has_failed(rule::OUT_111) && done.stored == 1 && done.pmis == 1 &&
                             one.is_at(B, 0x7F);
        auto const how = protecting(spans, restricted_access::error);
        return reached && enabling_fails(B, 0x7F, words, preset::P_SKL, how) == rule::OUT_111 &&
               enabling_fails(B, pointers(0, 1), words, preset::P_SKL, how) == rule::none;
    });
    CHECK_TWICE([](auto value) {  // STOP comes first: the pointer does not advance
        topa::phys_range const spans[] = {{Y, Y}};
        word_at const words[] = {{A, X | STOP}, {A + 8, Y}};
        listed_memory memory{words};
        auto one = tracer_on(memory);
        one.how = protecting(spans, restricted_access::error);
        one.place(value(A), pointers(0, 0xFFF));
        (void)one.enable_topa();
        (void)one.write(first_bytes(1));
        return one.has_stopped();
    });
    CHECK_TWICE([](auto value) {  // at the wrapped address of a single range
        topa::phys_range const spans[] = {{X, X}};
        listed_memory memory;
        auto one = tracer_on(memory);
        one.how = protecting(spans, restricted_access::error);
        one.place(value(X), pointers(0, 0x7E));
        (void)one.enable(bits::single_range);
        bool const before = one.is_running();
        auto const done = one.write(first_bytes(3));
        bool const wrapped_into = one.has_failed(rule::OUT_111) && done.stored == 2 &&
                                  done.lost == 1 && one.is_at(X, 0x7F);
        auto two = tracer_on(memory);
        two.how = one.how;
        two.place(X, 0x7F);
        (void)two.enable(bits::single_range);
        return before && wrapped_into && two.has_failed(rule::OUT_111) && two.is_at(X, 0x7F);
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
