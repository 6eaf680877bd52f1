// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/switch_context.hpp>
#include <ptspec/simulate/fake_processor.hpp>

#include <support/check_twice.hpp>
#include <support/unit_memory.hpp>
#include <support/world.hpp>

using namespace ptspec;
using test::table;
namespace preset = cpu::preset;
namespace action = engine::action;

namespace {

struct byte_counter {
    uint64_t bytes = 0;
    uint64_t next = 0;
    bool contiguous = true;

    constexpr void operator()(uint64_t address, byte_view all) noexcept {
        contiguous = contiguous && (bytes == 0 || address == next);
        bytes += all.size();
        next = address + all.size();
    }
};

/// The first region has INT.
struct world : test::world_of<test::machine_memory, byte_counter> {
    constexpr explicit world(cpu::capabilities const& of = preset::skylake_x)
        : world_of{of, {}, test::machine_memory{test::INT}} {}
};
using machine = world::machine;

static_assert(driver::fenced_msr_port<machine> && cpuid_port<machine>);

constexpr void enable(machine& cpu) {
    (void)cpu.write(0x560, table);
    (void)cpu.write(0x570, 0x250D);
}

}  // namespace

TEST_CASE("a processor without a tap has the same trace") {
    CHECK_TWICE([](auto value) {
        world now;
        enable(now.cpu);
        test::machine_memory memory{test::INT};
        simulate::fake_processor bare{value(preset::skylake_x), memory, {}, 0x1000};
        (void)bare.write(0x560, table);
        (void)bare.write(0x570, 0x250D);
        simulate::fake_processor with_options{
            preset::skylake_x, memory, {}, 0x1000, engine::options_of(preset::skylake_x)};
        simulate::fake_processor least{preset::skylake_x, memory};
        return bare.is_tracing() && bare.msrs() == now.cpu.msrs() &&
               memory.load(test::regions) == now.memory.load(test::regions) &&
               with_options.unit().ip() == 0x1000 && !least.is_tracing();
    });
}

TEST_CASE("an access faults as on the processor, with its rule; a fault of memory is reported "
          "separately") {
    CHECK_TWICE([](auto value) {
        world now;
        enable(now.cpu);
        bool const while_tracing = !now.cpu.write(value(0x560U), 0) &&
                                   now.cpu.fault().broken == rule::REG_004 &&
                                   !now.cpu.fault().is_unknown_msr;
        bool const unknown = !now.cpu.read(0x10) && now.cpu.fault().is_unknown_msr;
        now.memory.fails = true;
        (void)now.cpu.on(action::indirect_jump{0x2000});
        bool const memory = !now.cpu.write(0x570, 0x250D) || now.cpu.fault().memory.happened;
        return while_tracing && unknown && memory && now.cpu.fault().broken == rule::none;
    });
}

TEST_CASE("the tap sees every byte of trace once and in order") {
    CHECK_TWICE([](auto value) {
        world now;
        enable(now.cpu);
        for (uint64_t i = 0; i < value(uint64_t{20}); ++i) {
            (void)now.cpu.on(action::indirect_jump{0x2000 + i * 0x1'0000'0000});
        }
        (void)now.cpu.write(0x570, 0x250C);
        return now.tap.contiguous && now.tap.bytes != 0 &&
               now.tap.bytes == now.cpu.msrs().output.mask_ptrs.raw >> 32;
    });
}

TEST_CASE("a PMI is delivered once, masks the LVT entry, and waits while that is masked "
          "(PRG-120,122)") {
    CHECK_TWICE([](auto value) {
        world now;
        enable(now.cpu);
        for (uint64_t i = 0; i < 1024; ++i) {
            (void)now.cpu.on(action::indirect_jump{0x2000 + i * 0x1'0000'0000});
        }
        bool const masked = !now.cpu.pmi_is_deliverable() && !now.cpu.deliver_pmi();
        (void)now.cpu.write(0x834, value(uint64_t{0xFE}));
        bool const delivered = now.cpu.pmi_is_deliverable() && now.cpu.deliver_pmi();
        return masked && delivered && now.cpu.read(0x834).value == 0x1'00FE &&
               !now.cpu.deliver_pmi() && (now.cpu.read(0x38E).value >> 55 & 1) == 1;
    });
}

/// Fills the first region of a table whose trace has only user code.
static constexpr void fill_region(machine& cpu) {
    for (uint64_t i = 0; i < 1024; ++i) {
        (void)cpu.on(action::indirect_jump{0x2000 + i * 0x1'0000'0000});
    }
}

TEST_CASE("user code is at CPL 3, a PMI enters its handler at CPL 0, and the return restores CPL 3 "
          "(REG-002, REG-057, GEN-113)") {
    CHECK_TWICE([](auto value) {
        world now;
        auto& cpu = now.cpu;
        (void)cpu.write(0x834, 0xFE);
        (void)cpu.write(0x560, table);
        (void)cpu.write(0x570, value(uint64_t{0x2509}));  // TraceEn, User, ToPA, DisRETC, BranchEn
        fill_region(cpu);
        bool const no_kernel = now.tap.bytes < 64 && !cpu.pmi_is_deliverable();
        bool const enters = cpu.cpl() == 0 && !cpu.enter_user(0x40'1000).happened &&
                            cpu.cpl() == 3 && cpu.unit().ip() == 0x40'1000;
        fill_region(cpu);
        uint64_t const ip = cpu.unit().ip();
        bool const user_faults = !cpu.write(0x570, 0) && cpu.fault().broken == rule::REG_002 &&
                                 !cpu.write(0x834, 0xFE) && cpu.fault().broken == rule::REG_002 &&
                                 !cpu.read(0x834) && !cpu.read(0x571);
        auto before = cpu.unit().state().code;
        bool const delivers = cpu.deliver_pmi(0xFFFF'8000'0000'2000) && cpu.cpl() == 0 &&
                              cpu.unit().ip() == 0xFFFF'8000'0000'2000;
        bool const handles = !cpu.msrs().status.template get<reg::ia32_rtit_status::ContextEn>() &&
                             cpu.write(0x834, 0xFE) && cpu.read(0x38E).value >> 55 == 1;
        bool const returns = !cpu.return_from_pmi().happened && cpu.unit().ip() == ip &&
                             cpu.unit().state().code == before &&
                             cpu.msrs().status.template get<reg::ia32_rtit_status::ContextEn>();
        // Another return does nothing.
        return no_kernel && enters && user_faults && delivers && handles && returns &&
               now.tap.bytes > 4096 && !cpu.return_from_pmi().happened && cpu.cpl() == 3;
    });
}

TEST_CASE("a PMI at CPL 0 has no packets, also in the handler of a PMI at CPL 3") {
    CHECK_TWICE([](auto value) {
        world now;
        auto& cpu = now.cpu;
        (void)cpu.write(0x834, value(uint64_t{0xFE}));
        (void)cpu.write(0x560, table);
        (void)cpu.write(0x570, 0x250D);
        fill_region(cpu);
        uint64_t const ip = cpu.unit().ip();
        uint64_t const bytes = cpu.unit().total().stored;
        bool const plain = cpu.deliver_pmi() && !cpu.return_from_pmi().happened &&
                           cpu.unit().ip() == ip && cpu.unit().total().stored == bytes;
        (void)cpu.enter_user(0x40'1000);
        for (unsigned i = 0; i < 8 && !cpu.pmi_is_deliverable(); ++i) {
            fill_region(cpu);
            if (cpu.cpl() == 3) { (void)cpu.on(action::far_transfer{.to = 0x1000}); }
            (void)cpu.write(0x834, 0xFE);
            (void)cpu.enter_user(0x40'1000);
        }
        bool const outer = cpu.deliver_pmi();
        (void)cpu.write(0x834, 0xFE);
        for (unsigned i = 0; i < 8 && !cpu.pmi_is_deliverable(); ++i) { fill_region(cpu); }
        bool const inner = cpu.cpl() == 0 && cpu.deliver_pmi();
        (void)cpu.return_from_pmi();
        bool const stays = cpu.cpl() == 0;
        (void)cpu.return_from_pmi();
        return plain && outer && inner && stays && cpu.cpl() == 3 && cpu.unit().ip() == 0x40'1000;
    });
}

TEST_CASE("the beginning and the end of tracing are counted, whatever causes them") {
    CHECK_TWICE([](auto value) {
        world now;
        enable(now.cpu);
        (void)now.cpu.on(action::smi{});
        bool const after_smi = now.cpu.times_disabled() == 1 && !now.cpu.is_tracing();
        world other;
        enable(other.cpu);
        auto const saved = other.cpu.xsaves();
        bool const after_xsaves = other.cpu.times_disabled() == 1;
        (void)other.cpu.xrstors(saved.image);
        return after_smi && after_xsaves && other.cpu.times_enabled() == value(uint64_t{2});
    });
}

TEST_CASE("XSAVES that faults leaves TraceEn and the IP (PRG-111)") {
    CHECK_TWICE([](auto value) {
        world now;
        enable(now.cpu);
        (void)now.cpu.on(action::indirect_jump{value(uint64_t{0x2000})});
        auto const before = now.cpu.msrs();
        auto const result = now.cpu.xsaves_that_faults();
        auto const after = now.cpu.msrs();
        bool const as_before = result.took_effect() && now.cpu.is_tracing() &&
                               now.cpu.unit().ip() == 0x2000 && after.ctl == before.ctl &&
                               after.output.base == before.output.base &&
                               now.tap.bytes == after.output.mask_ptrs.raw >> 32 &&
                               now.cpu.times_disabled() == 0;
        // Where bytes cannot be stored, TraceEn is 0 until it is retried.
        now.memory.fails = true;
        bool const waits = !now.cpu.xsaves_that_faults().took_effect() && !now.cpu.is_tracing() &&
                           now.cpu.times_disabled() == 1;
        now.memory.fails = false;
        return as_before && waits && now.cpu.xsaves_that_faults().took_effect() &&
               now.cpu.is_tracing() && now.cpu.times_enabled() == 2;
    });
}

TEST_CASE("an area without the component loads the initial state, while TraceEn is 0 "
          "(REG-143,146)") {
    CHECK_TWICE([](auto value) {
        world now;
        enable(now.cpu);
        bool const refused = now.cpu.xrstors_init().broken == rule::REG_143 && now.cpu.is_tracing();
        (void)now.cpu.write(0x570, value(uint64_t{0x250C}));
        uint64_t const ip = now.cpu.unit().ip();
        auto area = driver::make_xsaves_area(preset::skylake_x, {.output = {{table}, {}}});
        store_le64(area.bytes.data() + 0x200, 0);  // XSTATE_BV
        bool const is_initial = driver::parse_xsaves_area(area.bytes).is_initial;
        bool const loads = now.cpu.xrstors_init().took_effect();
        return refused && is_initial && loads && now.cpu.unit().ip() == ip + 4 &&
               now.cpu.msrs() == access::msr_state{};
    });
}

TEST_CASE("a reset masks the LVT entry; a cold one also clears IA32_PERF_GLOBAL_CTRL") {
    CHECK_TWICE([](auto value) {
        world now;
        (void)now.cpu.write(0x834, 0xFE);
        (void)now.cpu.write(0x38F, value(uint64_t{3}));
        now.cpu.warm_reset({}, 0xFFFF'FFF0);
        bool const warm = now.cpu.read(0x834).value == 0x1'0000 && now.cpu.read(0x38F).value == 3;
        now.cpu.cold_reset({}, 0xFFFF'FFF0);
        return warm && now.cpu.read(0x38F).value == 0;
    });
}

TEST_CASE("a pending PMI is delivered once, also when the LVT entry is unmasked again") {
    CHECK_TWICE([](auto value) {
        world now;
        enable(now.cpu);
        (void)now.cpu.write(0x834, 0xFE);
        for (uint64_t i = 0; i < 800 && !now.cpu.pmi_is_deliverable(); ++i) {
            (void)now.cpu.on(action::indirect_jump{0x2000 + i * 0x1'0000'0000});
        }
        bool const first = now.cpu.deliver_pmi();
        (void)now.cpu.write(0x834, value(uint64_t{0xFE}));
        return first && !now.cpu.pmi_is_deliverable() && !now.cpu.deliver_pmi();
    });
}

TEST_CASE("below version 4 of performance monitoring a PMI clears IA32_PERF_GLOBAL_CTRL if it "
          "freezes counters (REG-205)") {
    CHECK_TWICE([](auto value) {
        auto caps = preset::skylake_x;
        caps.leaf_0a_eax = {value(3U)};
        world now{caps};
        auto& cpu = now.cpu;
        (void)cpu.write(0x1D9, 0x1000);  // FREEZE_PERFMON_ON_PMI
        (void)cpu.write(0x38F, 3);
        (void)cpu.write(0x834, 0xFE);
        enable(cpu);
        for (uint64_t i = 0; i < 800 && !cpu.pmi_is_deliverable(); ++i) {
            (void)cpu.on(action::indirect_jump{0x2000 + i * 0x1'0000'0000});
        }
        bool const before = cpu.read(0x38F).value == 3;
        return before && cpu.deliver_pmi() && cpu.read(0x38F).value == 0;
    });
}

TEST_CASE("the capability MSRs are read, instructions advance the IP, and fences are counted") {
    CHECK_TWICE([](auto value) {
        auto caps = preset::skylake_x;
        caps.perf_capabilities = {value(uint64_t{0x42})};
        world now{caps};
        auto& cpu = now.cpu;
        bool const reads = cpu.read(0xCE).has_value &&
                           cpu.read(0xCE).value == caps.platform_info.raw &&
                           cpu.read(0x345).value == 0x42 &&
                           cpu.read(0x485).value == caps.vmx_misc.raw &&
                           cpu.read(0x48B).value == caps.vmx_procbased_ctls2.raw &&
                           cpu.read(0x483).value == caps.vmx_exit_ctls.raw &&
                           cpu.read(0x484).value == caps.vmx_entry_ctls.raw;
        (void)cpu.write(0x560, 0x1000);
        bool const wrmsr = cpu.unit().ip() == 0x1002;
        auto const image = cpu.xsaves().image;
        bool const xsaves = cpu.unit().ip() == 0x1006;
        (void)cpu.xrstors(image);
        bool const none = cpu.fences() == 0;
        cpu.fence();
        cpu.fence();
        machine const initial{caps, now.memory, now.tap};
        return reads && wrmsr && xsaves && cpu.unit().ip() == 0x100A && none && cpu.fences() == 2 &&
               initial.unit().ip() == 0;
    });
}

TEST_CASE("a cold reset clears the MSRs of the trace unit, a warm one keeps them (PRG-070)") {
    CHECK_TWICE([](auto value) {
        world now;
        enable(now.cpu);
        now.cpu.warm_reset({}, value(uint64_t{0xFFF0}));
        bool const kept = now.cpu.msrs().output.base.raw == table && !now.cpu.is_tracing();
        now.cpu.cold_reset({}, 0xFFF0);
        return kept && now.cpu.msrs() == access::msr_state{} && now.cpu.unit().ip() == 0xFFF0;
    });
}

TEST_CASE("what ends tracing while TraceEn stays 1 is reported with its rule") {
    CHECK_TWICE([](auto value) {
        world stops;
        stops.memory.put(0, topa::entry{test::regions | 0x10});
        enable(stops.cpu);
        bool const runs = stops.cpu.why_stopped() == rule::none;
        for (uint64_t i = 0; i < value(uint64_t{1000}); ++i) {
            (void)stops.cpu.on(action::indirect_jump{i << 20});
        }
        bool const full = stops.cpu.is_tracing() && stops.cpu.why_stopped() == rule::OUT_080;
        (void)stops.cpu.write(0x570, 0x250C);
        bool const off = stops.cpu.why_stopped() == rule::none;
        world wrong;
        wrong.memory.put(0, topa::link_to(table));
        enable(wrong.cpu);
        bool const error = wrong.cpu.why_stopped() == rule::OUT_066;
        world range;
        (void)range.cpu.write(0x580, 0x5000);
        (void)range.cpu.write(0x581, 0x5FFF);
        (void)range.cpu.write(0x560, table);
        (void)range.cpu.write(0x570, 0x250D | uint64_t{2} << 32);
        (void)range.cpu.on(action::indirect_jump{0x5000});
        return runs && full && off && error && range.cpu.why_stopped() == rule::REG_068;
    });
}

TEST_CASE("the controls of a VMM conceal VM exits and VM entries from the trace (GEN-278)") {
    CHECK_TWICE([](auto value) {
        auto const pips = [&](engine::vmx_concealment const& how) {
            world now;
            enable(now.cpu);
            now.cpu.conceal(how);
            (void)now.cpu.on(action::vm_entry{0x1000, value(uint64_t{0x5000}), {}});
            (void)now.cpu.on(action::vm_exit{.from = 0x5000, .to = 0x1000});
            (void)now.cpu.write(0x570, 0x250C);
            uint64_t count = 0;
            byte_view const trace{now.memory.trace.bytes};
            for (size_t i = 40; i + 1 < now.tap.bytes; ++i) {  // after the PIP of the PSB+
                count += trace[i] == 0x02 && trace[i + 1] == 0x43;
            }
            return count;
        };
        return pips({}) == 2 && pips({.exits = true}) == 1 && pips({.entries = true}) == 1 &&
               pips({.exits = true, .entries = true}) == 0;
    });
}
