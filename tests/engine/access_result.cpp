// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/access_result.hpp>
#include <ptspec/engine/unit_image.hpp>

#include <support/check_twice.hpp>
#include <support/unit_memory.hpp>

#include <cstdint>

using namespace ptspec;
using engine::trace_unit;
using test::disable;
using test::enable;
using test::machine_memory;
using test::off;
using test::table;
using outcome = engine::access_outcome;
namespace action = engine::action;
using ctl = reg::ia32_rtit_ctl;

namespace {

template <class Type>
concept tests_as_bool = requires(Type value) { static_cast<bool>(value); };

}  // namespace

// No conversion to bool: a #GP and a port failure after the access took effect are not the same.
static_assert(!tests_as_bool<engine::access_result>);
static_assert(!tests_as_bool<engine::xsaves_result>);
static_assert(!tests_as_bool<engine::xrstors_result>);

TEST_CASE("an access result shows whether the access took effect, even if a port failed") {
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0");
        auto const write = [&](std::uint32_t index, std::uint64_t to) {
            return unit.wrmsr({.index = index, .value = value(to), .at = 0x1000, .next = 0x1002},
                              memory);
        };
        auto const fine = write(0x560, table);
        auto const gp = write(0x560, table + 1);  // REG-070
        auto const other = write(0x10, 0);
        bool good = fine.what == outcome::done && fine.took_effect() && !fine.fault.happened &&
                    gp.what == outcome::general_protection && !gp.took_effect() &&
                    gp.broken == rule::REG_070 && other.what == outcome::not_covered &&
                    !other.took_effect() && other.broken == rule::none;
        memory.fails = true;
        auto const on = enable(unit, memory);
        good = good && on.what == outcome::done_but_port_failed && on.took_effect() &&
               on.fault.happened && unit.msrs().ctl.template get<ctl::TraceEn>();
        // A #GP is still reported; `fault` indicates that bytes are pending.
        auto const locked = write(0x560, table);
        good = good && locked.what == outcome::general_protection && locked.fault.happened &&
               locked.broken == rule::REG_004;
        auto const down = disable(unit, memory);
        good = good && down.what == outcome::done_but_port_failed && down.took_effect() &&
               !unit.msrs().ctl.template get<ctl::TraceEn>();
        // An access that did not begin can be repeated.
        auto const waits = write(0x560, table + 0x1000);
        good = good && waits.what == outcome::not_done_port_failed && !waits.took_effect() &&
               waits.fault.happened && unit.rdmsr(0x560).value == table;
        memory.fails = false;
        return good && write(0x560, table + 0x1000).what == outcome::done &&
               unit.rdmsr(0x560).value == table + 0x1000 && unit.total().lost == 0;
    });
}

TEST_CASE("XSAVES and XRSTORS report the same outcomes") {
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        memory.fails = value(true);
        auto const failed = unit.xsaves(0x1100, 0x1104, memory);
        auto const waits = unit.xrstors_init(0x1104, memory);
        memory.fails = false;
        auto const saved = unit.xsaves(0x1100, 0x1104, memory);
        bool good = failed.what == outcome::not_done_port_failed && !failed.took_effect() &&
                    waits.what == outcome::not_done_port_failed && saved.what == outcome::done &&
                    saved.took_effect();
        auto wrong = saved.image;
        wrong.quadwords[1] = table + 1;
        auto const refused = unit.xrstors(wrong, 0x1104, 0x1108, memory);
        good = good && refused.what == outcome::general_protection &&
               refused.broken == rule::REG_144 && refused.violated.msr == 0x560 &&
               refused.violated.broken == rule::REG_070;
        memory.fails = true;
        auto const back = unit.xrstors(saved.image, 0x1104, 0x1108, memory);
        auto const on = unit.xrstors_init(0x1108, memory);
        return good && back.what == outcome::done_but_port_failed && back.took_effect() &&
               back.violated.msr == 0 && unit.msrs().ctl.template get<ctl::TraceEn>() &&
               on.what == outcome::general_protection && on.broken == rule::REG_143;
    });
}

TEST_CASE("XSAVES stores TraceEn = 0 after a disabling WRMSR with pending bytes") {  // REG-142
    using area = access::xsave_pt_state;
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        memory.fails = value(true);
        (void)disable(unit, memory);
        auto moved = engine::load(unit.state().caps, engine::store(unit).view()).unit;
        memory.fails = false;
        auto const of = [&](trace_unit<>& one) {
            auto const saved = one.xsaves(0x1100, 0x1104, memory);
            return saved.took_effect() &&
                   !saved.image.template get<area::IA32_RTIT_CTL>().template get<ctl::TraceEn>();
        };
        return of(unit) && of(moved);
    });
    CHECK_TWICE([](auto value) {  // TraceEn = 1 when XSAVES itself disabled tracing
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        memory.fails = value(true);
        (void)unit.xsaves(0x1100, 0x1104, memory);
        auto moved = engine::load(unit.state().caps, engine::store(unit).view()).unit;
        memory.fails = false;
        auto const of = [&](trace_unit<>& one) {
            auto const saved = one.xsaves(0x1100, 0x1104, memory);
            return saved.took_effect() &&
                   saved.image.template get<area::IA32_RTIT_CTL>().template get<ctl::TraceEn>();
        };
        return of(unit) && of(moved);
    });
}
