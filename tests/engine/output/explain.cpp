// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/output/explain.hpp>
#include <ptspec/simulate/ports.hpp>

#include <support/check_twice.hpp>
#include <support/small_tables.hpp>

#include <initializer_list>

using namespace ptspec;
using namespace ptspec::test;
using engine::explanation;
using engine::output_options;
using engine::restricted_access;
namespace preset = cpu::preset;
namespace flags = status_bits;

namespace {

constexpr uint64_t topa_ctl = ctl_bits::single_range | ctl_bits::topa;

/// Register values after tracing ended.
struct left_behind {
    uint64_t base = 0;
    uint64_t mask_ptrs = 0x7F;
    uint64_t status = flags::error;
    uint64_t ctl = topa_ctl;
};

constexpr auto state_of(left_behind const& left) -> access::msr_state {
    access::msr_state now;
    now.output.base = {left.base};
    now.output.mask_ptrs = {left.mask_ptrs};
    now.status = {left.status};
    now.ctl = {left.ctl};
    return now;
}

constexpr auto explain(left_behind const& left, listed_memory memory = {},
                       cpu::capabilities const& of = preset::P_SKL, output_options const& how = {})
    -> explanation {
    return engine::explain(of, state_of(left), memory, how);
}

/// True when an explanation has a rule and an MSR field, and no entry.
constexpr auto is_of_registers(explanation const& told, rule why, text field = {}) -> bool {
    return told.ended_by != rule::none && told.ended_by == why && told.field == field &&
           !told.has_place && told.at == topa::position{} && told.entry.raw == 0 &&
           !told.fault.happened;
}
/// True when an explanation has a rule, an entry and a field.
constexpr auto is_of_entry(explanation const& told, rule why, uint64_t table, uint32_t index,
                           uint64_t entry, text field) -> bool {
    return told.ended_by != rule::none && told.ended_by == why && told.has_place &&
           told.at == topa::position{table, index} && told.entry.raw == entry &&
           told.field == field && !told.fault.happened;
}

/// Output ends at entry 1 of the table, after the region at X. Then TraceEn is cleared.
constexpr auto traced_to(uint64_t entry, cpu::capabilities const& of = preset::P_SKL,
                         output_options const& how = {}, uint64_t linked = 0) -> explanation {
    word_at const words[] = {{A, X}, {A + 8, entry}, {B, linked}};
    listed_memory memory{words};
    auto one = tracer_on(memory, of);
    one.how = how;
    one.place(A, pointers(0, 0xFFF));
    (void)one.enable_topa();
    (void)one.write(first_bytes(0x4000));
    rule const why = one.out.ended_by();
    (void)one.disable();
    auto const told = engine::explain(of, one.now, memory, how);
    return told.ended_by == why ? told : explanation{};
}

}  // namespace

TEST_CASE("explain() returns no rule if output did not end") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X | 2}};
        listed_memory memory{words};
        auto const told = engine::explain(
            preset::P_SKL, state_of({.base = value(A), .status = flags::trigger_en}), memory);
        return told.ended_by == rule::none && !told.fault.happened && memory.loads == 0;
    });
}

// ------------------------------------------------------------------------------------ single range

TEST_CASE("errors of a single range are explained with the field to change (OUT-022..024)") {
    CHECK_TWICE([](auto value) {
        auto const one = [&](uint64_t base, uint64_t pointers) {
            return explain({value(base), pointers, flags::error, ctl_bits::single_range});
        };
        return is_of_registers(one(0, 0x17F), rule::OUT_022, "MaskOrTableOffset") &&
               is_of_registers(one(0x80, 0xFF), rule::OUT_023, "BasePhysAddr") &&
               is_of_registers(one(0, 0x80'0000'007F), rule::OUT_024, "OutputOffset") &&
               is_of_registers(one(0x80, 0x17F), rule::OUT_022, "MaskOrTableOffset") &&
               is_of_registers(one(0x80, 0x7F'0000'007F), rule::REG_053);
    });
}

TEST_CASE("a single range in restricted memory is explained if that is an error (OUT-111)") {
    CHECK_TWICE([](auto value) {
        topa::phys_range const spans[] = {{X + 5, X + 5}};
        auto const one = [&](uint64_t offset, restricted_access when) {
            return explain({X, pointers(0, value(offset)), flags::error, ctl_bits::single_range},
                           {}, preset::P_SKL, protecting(spans, when));
        };
        return is_of_registers(one(5, restricted_access::error), rule::OUT_111, "BasePhysAddr") &&
               is_of_registers(one(4, restricted_access::error), rule::REG_053) &&
               is_of_registers(one(6, restricted_access::error), rule::REG_053) &&
               is_of_registers(one(5, restricted_access::drop), rule::REG_053);
    });
}

// ------------------------------------------------------------------------------------ ToPA

TEST_CASE("an entry's error is explained with its place and field (OUT-060..068, PRG-088)") {
    CHECK_TWICE([](auto value) {
        uint64_t const y = value(Y);
        for (unsigned const bit : {1U, 3U, 5U, 10U, 11U}) {
            uint64_t const entry = y | uint64_t{1} << bit;
            if (!is_of_entry(traced_to(entry), rule::OUT_060, A, 1, entry, "reserved")) {
                return false;
            }
        }
        uint64_t const far = y | uint64_t{1} << 39;
        auto const& ends = preset::P_BDW;
        return is_of_entry(traced_to(y | size_8K), rule::OUT_062, A, 1, Y | size_8K, "Base") &&
               is_of_entry(traced_to(far), rule::OUT_063, A, 1, far, "Base") &&
               is_of_entry(traced_to(far | END), rule::OUT_063, A, 1, far | END, "Base") &&
               is_of_entry(traced_to(y | END | INT), rule::OUT_065, A, 1, Y | END | INT, "INT") &&
               is_of_entry(traced_to(y | END | STOP), rule::OUT_065, A, 1, Y | END | STOP,
                           "STOP") &&
               is_of_entry(traced_to(y | END | INT | STOP), rule::OUT_065, A, 1,
                           Y | END | INT | STOP, "INT") &&
               is_of_entry(traced_to(y, ends), rule::OUT_067, A, 1, Y, "END") &&
               is_of_entry(traced_to(y | END, ends), rule::OUT_068, A, 1, Y | END, "Base");
    });
}

TEST_CASE("errors after a link are explained with the linked entry (OUT-066, PRG-088)") {
    CHECK_TWICE([](auto value) {
        uint64_t const link = value(B) | END;
        return is_of_entry(traced_to(link, preset::P_SKL, {}, A | END), rule::OUT_066, B, 0,
                           A | END, "END") &&
               is_of_entry(traced_to(link, preset::P_SKL, {}, Y | 8), rule::OUT_060, B, 0, Y | 8,
                           "reserved");
    });
}

TEST_CASE("an offset outside its region is explained with the entry (OUT-064,134)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X}, {A + 8, Y | STOP}};
        auto const at = [&](uint64_t offset) {
            return explain({A, pointers(1, value(offset))}, words);
        };
        return is_of_entry(at(0x1000), rule::OUT_064, A, 1, Y | STOP, "OutputOffset") &&
               is_of_entry(at(0xFFFF'FFFF), rule::OUT_064, A, 1, Y | STOP, "OutputOffset") &&
               is_of_registers(at(0xFFF), rule::REG_053);
    });
}

TEST_CASE("a bad table address is explained without an entry value (OUT-061,071,091,134)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X}, {A + 0x80, X}, {0x7F'FFFF'F000, X}};
        uint64_t const misplaced = value(A + 0x80);
        uint64_t const last_page = value(uint64_t{0x7F'FFFF'F000});
        return is_of_entry(explain({misplaced, pointers(3, 0)}, words), rule::OUT_061, A + 0x80, 3,
                           0, "BasePhysAddr") &&
               is_of_entry(explain({last_page, pointers(0x200, 0)}, words), rule::OUT_071,
                           0x7F'FFFF'F000, 0x200, 0, "MaskOrTableOffset") &&
               is_of_registers(explain({last_page, 0x7F}, words), rule::REG_053) &&
               is_of_entry(explain({value(A), 0x7F}, words, preset::P_SKL, smrr(A, 0xFFFF'F800)),
                           rule::OUT_091, A, 0, 0, "BasePhysAddr") &&
               is_of_registers(
                   explain({value(A), 0x7F}, words, preset::P_SKL, smrr(B, 0xFFFF'F800)),
                   rule::REG_053);
    });
}

TEST_CASE("a region in restricted memory is explained if that is an error (OUT-111)") {
    CHECK_TWICE([](auto value) {
        topa::phys_range const spans[] = {{Y + 5, Y + 5}};
        word_at const words[] = {{A, X}, {A + 8, Y}};
        auto const at = [&](uint64_t offset, restricted_access when) {
            return explain({A, pointers(1, value(offset))}, words, preset::P_SKL,
                           protecting(spans, when));
        };
        return is_of_entry(at(5, restricted_access::error), rule::OUT_111, A, 1, Y, "Base") &&
               is_of_registers(at(4, restricted_access::error), rule::REG_053) &&
               is_of_registers(at(5, restricted_access::drop), rule::REG_053) &&
               is_of_entry(traced_to(Y, preset::P_SKL, protecting(spans, restricted_access::error)),
                           rule::OUT_111, A, 1, Y, "Base");
    });
}

TEST_CASE("MAXPHYADDR and MENTRY come from the capabilities (OUT-063,067,068)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, uint64_t{1} << 40}, {A + 8, Y}, {A + 16, B | END}, {B, X}};
        auto const why = [&](uint64_t index, cpu::capabilities const& of) {
            return explain({A, pointers(value(index), 0)}, words, of).ended_by;
        };
        return why(0, preset::P_SKL) == rule::OUT_063 && why(0, preset::P_ATM) == rule::REG_053 &&
               why(1, preset::P_BDW) == rule::OUT_067 && why(1, preset::P_SKL) == rule::REG_053 &&
               why(2, preset::P_BDW) == rule::OUT_068 && why(2, preset::P_SKL) == rule::REG_053;
    });
}

// ------------------------------------------------------------------------------------ Stopped

TEST_CASE("a full STOP region is explained with either edition's offset (OUT-080, PRG-086)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X | STOP}, {A + 8, Z | size_8K | INT | STOP}};
        auto const at = [&](uint64_t index, uint64_t offset) {
            return explain({A, pointers(index, value(offset)), flags::stopped}, words);
        };
        return is_of_entry(at(0, 0x1000), rule::OUT_080, A, 0, X | STOP, "STOP") &&
               is_of_entry(at(0, 0xFFF), rule::OUT_080, A, 0, X | STOP, "STOP") &&
               is_of_registers(at(0, 0xFFE), rule::REG_053) &&
               is_of_registers(at(0, 0), rule::REG_053) &&
               is_of_entry(at(1, 0x2000), rule::OUT_080, A, 1, Z | size_8K | INT | STOP, "STOP") &&
               is_of_entry(at(1, 0x1FFF), rule::OUT_080, A, 1, Z | size_8K | INT | STOP, "STOP") &&
               is_of_registers(at(1, 0x1000), rule::REG_053);
    });
    CHECK_TWICE([](auto value) {  // with the MSRs that the output unit writes
        return is_of_entry(traced_to(value(Y) | STOP), rule::OUT_080, A, 1, Y | STOP, "STOP");
    });
    CHECK_TWICE([](auto value) {  // the name of the field ends in NUL
        auto const field = traced_to(value(Y) | STOP).field;
        return field.data()[field.size()] == 0;
    });
    CHECK_TWICE([](auto value) {  // regions without STOP, and END entries, do not stop
        word_at const words[] = {{A, X}, {A + 8, Y | END | STOP}};
        uint64_t const full = value(uint64_t{0x1000});
        return is_of_registers(explain({A, pointers(0, full), flags::stopped}, words),
                               rule::REG_053) &&
               is_of_registers(explain({A, pointers(1, full), flags::stopped}, words),
                               rule::REG_053);
    });
}

TEST_CASE("Stopped is explained by a TraceStop range if no region stopped output (REG-068)") {
    auto const body = [](auto value, unsigned range) {
        word_at const words[] = {{A, X | STOP}};
        uint64_t const stops = uint64_t{2} << (32 + 4 * range);
        uint64_t const filters = uint64_t{1} << (32 + 4 * range);
        auto const told = [&](uint64_t ctl, uint64_t offset) {
            return explain({A, pointers(0, value(offset)), flags::stopped, ctl}, words);
        };
        constexpr uint64_t single_range = ctl_bits::single_range;
        return is_of_registers(told(topa_ctl | stops, 5), rule::REG_068) &&
               is_of_registers(told(single_range | stops, 0x1000), rule::REG_068) &&
               is_of_registers(told(topa_ctl | ctl_bits::fabric | stops, 0x1000), rule::REG_068) &&
               told(topa_ctl | stops, 0x1000).ended_by == rule::OUT_080 &&
               is_of_registers(told(topa_ctl | filters, 5), rule::REG_053);
    };
    CHECK_TWICE([body](auto value) { return body(value, 0); });
    CHECK_TWICE([body](auto value) { return body(value, 3); });
}

// ------------------------------------------------------------------------------------ software

TEST_CASE("with no error in the MSRs, software set the bit or fixed the error (REG-053)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X}};
        auto const told = [&](uint64_t status, uint64_t ctl) {
            return explain({.base = A, .status = value(status), .ctl = ctl}, words);
        };
        for (uint64_t const status : {flags::error, flags::stopped}) {
            for (uint64_t const ctl :
                 {ctl_bits::single_range, topa_ctl, topa_ctl | ctl_bits::fabric,
                  ctl_bits::single_range | ctl_bits::fabric, topa_ctl | ctl_bits::trace_en}) {
                if (!is_of_registers(told(status, ctl), rule::REG_053)) { return false; }
            }
        }
        return true;
    });
}

TEST_CASE("a fabric has no errors, whatever the other registers contain (OUT-120)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X | STOP}};
        listed_memory memory{words};
        auto const told = [&](uint64_t status) {
            left_behind const left{.base = A + 0x80,
                                   .mask_ptrs = pointers(0x1FF'FFFF, 0xFFFF'FFFF),
                                   .status = value(status),
                                   .ctl = topa_ctl | ctl_bits::fabric};
            return engine::explain(preset::P_FUT, state_of(left), memory);
        };
        return is_of_registers(told(flags::error), rule::REG_053) &&
               is_of_registers(told(flags::stopped), rule::REG_053) && memory.loads == 0;
    });
}

TEST_CASE("with Error and Stopped both set Error is explained") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X | STOP}};
        return explain({A, pointers(0, 0x1000), value(flags::error | flags::stopped)}, words)
                   .ended_by == rule::OUT_064;
    });
}

// ------------------------------------------------------------------------------------ unreadable

TEST_CASE("if memory cannot be read only the port fault is returned") {
    auto const body = [](auto value, uint64_t status, uint64_t bad, uint64_t mask_ptrs) {
        simulate::memory_model<0x2000> ram{A, {}};
        set_table(ram, A, X | STOP, B | END);
        set_table(ram, B, Y | 2);
        failing_memory<simulate::memory_model<0x2000>> memory{.inner = ram};
        memory.bad_first = bad;
        memory.bad_last = bad;
        auto const now = state_of({value(A), mask_ptrs, status, topa_ctl});
        auto const told = engine::explain(preset::P_SKL, now, memory);
        bool const unreadable = told.ended_by == rule::none && !told.has_place &&
                                told.fault == port_fault{true, bad & ~uint64_t{7}};
        memory.mend();
        return unreadable && !engine::explain(preset::P_SKL, now, memory).fault.happened;
    };
    CHECK_TWICE([body](auto value) { return body(value, flags::error, A + 7, 0x7F); });
    CHECK_TWICE([body](auto value) { return body(value, flags::stopped, A, pointers(0, 0x1000)); });
    CHECK_TWICE([body](auto value) { return body(value, flags::error, A + 8, pointers(1, 0)); });
    CHECK_TWICE([body](auto value) { return body(value, flags::error, B, pointers(1, 0)); });
}

TEST_CASE("explain() changes nothing, and reads at most two entries") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X}, {A + 8, B | END}, {B, A | END}};
        listed_memory memory{words};
        auto const now = state_of({value(A), pointers(1, 9)});
        auto const told = engine::explain(preset::P_SKL, now, memory);
        return told.ended_by == rule::OUT_066 && memory.loads == 2 && memory.run_count == 0 &&
               is_of_entry(told, rule::OUT_066, B, 0, A | END, "END");
    });
}
