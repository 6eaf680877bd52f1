// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/switch_context.hpp>
#include <ptspec/simulate/recording_port.hpp>
#include <ptspec/simulate/ports.hpp>

#include <support/check_twice.hpp>
#include <support/driven_machine.hpp>
#include <support/faulting_port.hpp>

using namespace ptspec;
using driver::trace_state;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_status;
using test::topa_plan;
using test::table;
using test::world;
namespace preset = cpu::preset;
namespace action = engine::action;

namespace {

constexpr auto all_ranges() -> access::msr_state {
    auto plan = topa_plan;
    plan.ctl = plan.ctl.with(ia32_rtit_ctl::CR3Filter{true},
                             ia32_rtit_ctl::ADDR0_CFG{reg::addr_cfg::filter},
                             ia32_rtit_ctl::ADDR1_CFG{reg::addr_cfg::filter},
                             ia32_rtit_ctl::ADDR2_CFG{reg::addr_cfg::filter},
                             ia32_rtit_ctl::ADDR3_CFG{reg::addr_cfg::trace_stop});
    plan.cr3_match = {0x5000};
    for (uint64_t n = 0; n < 4; ++n) {
        plan.addr[n] = {{0x1000 * (n + 1)}, {0x1000 * (n + 1) + 0xFFF}};
    }
    return plan;
}

constexpr void set_word(driver::xsaves_area& area, size_t at, uint64_t word) {
    store_le64(area.bytes.data() + at, word);
}

}  // namespace

TEST_CASE("a context is saved with TraceEn as it was, and restored to the same state "
          "(PRG-100..103)") {
    CHECK_TWICE([](auto value) {
        world now{value(preset::P_FUT)};
        (void)driver::enable(now.cpu, all_ranges());
        (void)now.cpu.on(action::indirect_jump{0x1800});
        auto const saved = driver::save(now.cpu);
        auto const before = now.cpu.msrs();
        // Another context runs.
        (void)driver::enable(now.cpu, topa_plan);
        (void)now.cpu.on(action::indirect_jump{0x8000});
        (void)driver::disable(now.cpu);
        auto const restored = driver::restore(now.cpu, saved.state);
        auto const stopped = driver::save(now.cpu);
        return saved && saved.trace == trace_state::disabled &&
               saved.state.ctl == all_ranges().ctl && saved.state.cr3_match.raw == 0x5000 &&
               saved.state.addr[3].a.raw == 0x4000 &&
               saved.state.output.mask_ptrs == before.output.mask_ptrs &&
               saved.state.status.get<ia32_rtit_status::PacketByteCnt>() != 0 && restored &&
               restored.trace == trace_state::enabled && stopped &&
               stopped.state.addr[2] == saved.state.addr[2];
    });
}

TEST_CASE("a context that was not tracing is restored without TraceEn (PRG-101)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)now.cpu.write(0x570, value(uint64_t{0x250C}));
        auto const saved = driver::save(now.cpu);
        auto const restored = driver::restore(now.cpu, saved.state);
        return saved && saved.state.ctl.raw == 0x250C && restored &&
               restored.trace == trace_state::disabled && now.cpu.times_enabled() == 0;
    });
}

TEST_CASE("a save that faulted is repeated with CTL as it was (PRG-100,103)") {
    CHECK_TWICE([](auto value) {
        for (unsigned number = 0; number < 20; ++number) {
            world now{preset::P_FUT};
            (void)driver::enable(now.cpu, all_ranges());
            (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x1800})});
            test::faulting_port port{now.cpu, number};
            auto saved = driver::save(port);
            if (!saved.fault.happened) { return number > 10; }
            if (saved) { return false; }
            saved = saved.trace == trace_state::unknown ? driver::save(now.cpu)
                                                        : driver::save(now.cpu, saved.state.ctl);
            auto const msrs = now.cpu.msrs();
            if (!saved || saved.trace != trace_state::disabled || now.cpu.is_tracing() ||
                saved.state.ctl != all_ranges().ctl || saved.state.status != msrs.status ||
                saved.state.output.mask_ptrs != msrs.output.mask_ptrs ||
                saved.state.addr[3] != all_ranges().addr[3]) {
                return false;
            }
        }
        return false;
    });
    // Without it, too: TraceEn is as before the save that faulted.
    CHECK_TWICE([](auto value) {
        for (unsigned number = 0; number < 20; ++number) {
            world now{preset::P_FUT};
            (void)driver::enable(now.cpu, all_ranges());
            (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x1800})});
            test::faulting_port port{now.cpu, number};
            auto const failed = driver::save(port);
            if (!failed.fault.happened) { return number > 10; }
            auto const saved = driver::save(now.cpu);
            if (failed || failed.trace == trace_state::disabled || !saved ||
                saved.state.ctl != all_ranges().ctl || now.cpu.is_tracing()) {
                return false;
            }
        }
        return false;
    });
    // A context that was off is saved as off by both.
    CHECK_TWICE([](auto value) {
        world now;
        (void)now.cpu.write(0x570, value(uint64_t{0x250C}));
        auto const read = driver::save(now.cpu);
        auto const known = driver::save(now.cpu, read.state.ctl);
        return read.state.ctl.raw == 0x250C && known && known.state.ctl.raw == 0x250C &&
               known.trace == trace_state::disabled && !now.cpu.is_tracing();
    });
}

TEST_CASE("a saved trace is ordered before what its saver stores, after TraceEn is 0 "
          "(PRG-040,062)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        simulate::recording_port log{now.cpu};
        (void)driver::save(log);
        bool const read = log.begin()[1].index == 0x570 &&
                          log.begin()[2].what == simulate::logged_access::kind::fence &&
                          log.begin()[3].index == 0x571;
        (void)driver::restore(now.cpu, topa_plan);
        log.clear();
        (void)driver::save(log, {value(uint64_t{0x250D})});
        return read && log.begin()[0].what == simulate::logged_access::kind::write &&
               log.begin()[1].what == simulate::logged_access::kind::fence && now.cpu.fences() == 2;
    });
}

TEST_CASE("a resumed context has no PSB: its PacketByteCnt is restored (PRG-102)") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)driver::enable(now.cpu, topa_plan);
        (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x2000})});
        auto const saved = driver::save(now.cpu);
        uint64_t const from = saved.state.output.mask_ptrs.raw >> 32;
        (void)driver::restore(now.cpu, saved.state);
        auto const again = driver::save(now.cpu);
        uint64_t const to = again.state.output.mask_ptrs.raw >> 32;
        for (uint64_t i = from; i + 1 < to; ++i) {
            if (now.memory.trace.bytes.bytes[i] == 0x02 &&
                now.memory.trace.bytes.bytes[i + 1] == 0x82) {
                return false;
            }
        }
        return from != 0 && to > from;
    });
}

TEST_CASE("PC-21: ranges 2 and 3 are saved and restored beside XSAVES (PRG-110)") {
    CHECK_TWICE([](auto value) {
        world now{value(preset::P_FUT)};
        (void)driver::enable(now.cpu, all_ranges());
        auto const image = now.cpu.xsaves().image;
        auto state = access::msr_state_of(image);
        bool const covered = state.ctl == all_ranges().ctl && state.addr[1].b.raw == 0x2FFF &&
                             state.addr[2].a.raw == 0;
        bool const read = static_cast<bool>(driver::read_uncovered(now.cpu, state)) &&
                          state.addr[2].a.raw == 0x3000 && state.addr[3].b.raw == 0x4FFF;
        for (uint32_t index = 0x580; index <= 0x587; ++index) { (void)now.cpu.write(index, 0); }
        simulate::recording_port log{now.cpu};
        bool const written = static_cast<bool>(driver::write_uncovered(log, state)) &&
                             log.count() == 4 && log.begin()->index == 0x584;
        bool const loaded = now.cpu.xrstors(image).took_effect();
        return covered && read && written && loaded && now.cpu.is_tracing() &&
               now.cpu.msrs().addr[3] == all_ranges().addr[3] &&
               now.cpu.msrs().addr[0] == all_ranges().addr[0];
    });
}

TEST_CASE("an XSAVE area is built as XSAVES writes it, and parsed again (PRG-110,112)") {
    CHECK_TWICE([](auto value) {
        auto plan = all_ranges();
        plan.status = {value(uint64_t{0x300'0000'0000})};
        auto const area = driver::make_xsaves_area(preset::P_FUT, plan);
        auto const word = [&](size_t at) { return load_le64(area.bytes.data() + at); };
        bool const layout = sizeof(area.bytes) == 704 && word(0x200) == 0x100 &&
                            word(0x208) == 0x8000'0000'0000'0100 && word(576) == plan.ctl.raw &&
                            word(576 + 0x08) == table && word(576 + 0x10) == 0x7F &&
                            word(576 + 0x18) == 0x300'0000'0000 && word(576 + 0x20) == 0x5000 &&
                            word(576 + 0x28) == 0x1000 && word(576 + 0x40) == 0x2FFF &&
                            word(576 + 0x48) == 0;
        auto const parsed = driver::parse_xsaves_area(area.bytes);
        auto back = access::msr_state_of(parsed.state);
        back.addr[2] = plan.addr[2];
        back.addr[3] = plan.addr[3];
        return layout && parsed && !parsed.is_initial && back == plan;
    });
}

TEST_CASE("an area that XRSTORS refuses is refused (REG-144,146,148)") {
    CHECK_TWICE([](auto value) {
        auto const good = driver::make_xsaves_area(preset::P_FUT, topa_plan);
        auto const why = [&](size_t at, uint64_t word) {
            auto bad = good;
            set_word(bad, at, word);
            return driver::parse_xsaves_area(bad.bytes).broken;
        };
        auto initial = good;
        set_word(initial, 0x200, 0);
        auto const is_initial = driver::parse_xsaves_area(initial.bytes);
        byte_view const all = good.bytes;
        return why(0x208, value(uint64_t{0x100})) == rule::REG_148 &&  // not compacted
               why(0x208, 0x8000'0000'0000'0000) == rule::REG_148 &&   // no component 8
               why(0x200, 0x300) == rule::REG_148 &&                   // another component
               why(576 + 0x78, 1) == rule::REG_144 && why(576 + 0x48, 1) == rule::REG_144 &&
               is_initial && is_initial.is_initial &&
               driver::parse_xsaves_area(all.first(703)).broken == rule::REG_148 &&
               driver::parse_xsaves_area(all.first(0)).broken == rule::REG_148 &&
               driver::parse_xsaves_area(all.first(128)).broken == rule::REG_148 &&
               driver::parse_xsaves_area(all, 577).broken == rule::REG_148 &&
               driver::parse_xsaves_area(all, ~size_t{0}).broken == rule::REG_148 &&
               driver::parse_xsaves_area(all, 0).broken == rule::REG_148;
    });
}

TEST_CASE("the offset of component 8 depends on the components before it (REG-141)") {
    CHECK_TWICE([](auto value) {
        // AVX: 256 bytes. A component of 8 bytes, and one that is aligned to 64 bytes.
        simulate::cpuid_model<4> const cpuid{{{0x0D, 2, {.eax = value(256U)}},
                                              {0x0D, 3, {.eax = 8}},
                                              {0x0D, 5, {.eax = 64, .ecx = 2}},
                                              {0x0D, 8, {.eax = 128, .ecx = 3}}}};
        auto const offset = [&](uint64_t components) {
            return driver::component_offset(cpuid, reg::xsave_header_xcomp_bv{components});
        };
        // Component 8 is aligned to 64 bytes, too.
        return offset(0x100) == 576 && offset(0x107) == 832 && offset(0x10F) == 896 &&
               offset(0x12F) == 960 && offset(0x123) == 640 && offset(0x1100) == 576;
    });
}

TEST_CASE("each MSR that CTL uses is saved, and restored to the value before (PRG-100,101)") {
    CHECK_TWICE([](auto value) {
        world now{preset::P_FUT};
        auto const all = all_ranges();
        (void)driver::enable(now.cpu, all);
        auto const saved = driver::save(now.cpu);
        bool right = saved.state.cr3_match == all.cr3_match &&
                     saved.state.output.base == all.output.base;
        for (unsigned n = 0; n < 4; ++n) {
            right = right && saved.state.addr[n] == all.addr[n];
            (void)now.cpu.write(0x580 + 2 * n, 0);
            (void)now.cpu.write(0x581 + 2 * n, value(uint64_t{1}));
        }
        (void)driver::restore(now.cpu, saved.state);
        for (unsigned n = 0; n < 4; ++n) { right = right && now.cpu.msrs().addr[n] == all.addr[n]; }
        return right;
    });
}

TEST_CASE("only ranges 2 and 3 are read and written beside XSAVES (PRG-110)") {
    CHECK_TWICE([](auto value) {
        world now{value(preset::P_FUT)};
        simulate::recording_port log{now.cpu};
        auto to = all_ranges();
        auto const read = driver::read_uncovered(log, to);
        auto const written = driver::write_uncovered(log, all_ranges());
        uint32_t expected[] = {0x584, 0x585, 0x586, 0x587, 0x584, 0x585, 0x586, 0x587};
        size_t at = 0;
        for (auto const& one : log) {
            if (at == 8 || one.index != expected[at++]) { return false; }
        }
        return at == 8 && read && written && to.addr[1] == all_ranges().addr[1] &&
               to.addr[2].a.raw == 0 && now.cpu.msrs().addr[3] == all_ranges().addr[3];
    });
}

TEST_CASE("components that are not aligned follow each other directly (REG-141)") {
    CHECK_TWICE([](auto value) {
        // Of ECX, bit 0 says that a component is a supervisor state, bit 1 that it is aligned.
        simulate::cpuid_model<3> const cpuid{{{0x0D, 3, {.eax = value(8U), .ecx = 1}},
                                              {0x0D, 4, {.eax = 60, .ecx = 1}},
                                              {0x0D, 8, {.eax = 128, .ecx = 1}}}};
        auto const offset = [&](uint64_t components) {
            return driver::component_offset(cpuid, reg::xsave_header_xcomp_bv{components});
        };
        return offset(0x108) == 584 && offset(0x118) == 644 && offset(0x100) == 576;
    });
}
