// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/insert_pip.hpp>

#include <ptspec/simulate/ports.hpp>
#include <ptspec/vmx/world_switch.hpp>

#include <support/check_twice.hpp>
#include <support/how_many.hpp>
#include <support/made_trace.hpp>
#include <support/traced.hpp>
#include <support/unit_memory.hpp>

#include <random>

using namespace ptspec;
using test::made_trace;

namespace {

using reg::ia32_rtit_ctl;
using reg::ia32_rtit_status;

/// A guest that traces with this CTL to a single range of 128 bytes at 1000H.
constexpr auto guest_with(std::uint64_t ctl, std::uint64_t offset) -> access::msr_state {
    access::msr_state made;
    made.ctl = {ctl};
    made.output.base = {0x1000};
    made.output.mask_ptrs = {offset << 32 | 0x7F};
    return made;
}
constexpr std::uint64_t traces_all = 0x200D;  // TraceEn, OS, User, BranchEn

struct pip_case {
    access::msr_state guest;
    simulate::memory_model<128> memory{0x1000, {}};
    vmx::inserted_pip got{};

    constexpr pip_case(access::msr_state const& from, access::processor_context const& after)
        : guest{from} {
        got = vmx::insert_pip(cpu::preset::P_FUT, guest, after, memory);
    }
    [[nodiscard]] constexpr auto at(std::size_t offset) const -> byte_view {
        return byte_view{memory.bytes}.from(offset).first(8);
    }
};

/// True if a PIP was stored; if it was not, nothing may have changed.
constexpr auto is_owed(access::msr_state const& guest, access::processor_context const& after)
    -> bool {
    pip_case const one{guest, after};
    return one.got.is_owed ? one.got.written.stored == 8 : one.guest != guest;
}

}  // namespace

TEST_CASE(
    "the PIP of a CR3 write that exits is stored at the guest's position (PRG-175, GEN-241)") {
    CHECK_TWICE([](auto value) {
        // Bit 63 of the operand is not written to CR3; bits 4:0 have no place in the packet.
        pip_case const one{guest_with(traces_all, 0x10),
                           {.cr3 = value(std::uint64_t{0x8000'0001'2345'6FFF})}};
        return one.got && one.got.is_owed && one.got.written.stored == 8 &&
               one.at(0x10) == byte_view{{0x02, 0x43, 0xFE, 0x56, 0x34, 0x12, 0x00, 0x00}} &&
               one.guest.output.mask_ptrs.raw == 0x18'0000'007F;
    });
    CHECK_TWICE([](auto value) {  // across the end of the range, which is circular
        pip_case const one{guest_with(traces_all, value(std::uint64_t{0x7D})), {.cr3 = 0x1000}};
        return one.at(0x7D).first(3) == byte_view{{0x02, 0x43, 0x00}} &&
               one.at(0).first(5) == byte_view{{0x01, 0x00, 0x00, 0x00, 0x00}} &&
               one.guest.output.mask_ptrs.raw == 0x5'0000'007F;
    });
}

TEST_CASE("a PIP needs TriggerEn, OS, and ContextEn after the write; not FilterEn or BranchEn "
          "(GEN-028, GEN-240, GEN-243, PKT-083)") {
    CHECK_TWICE([](auto value) {
        auto const with = [&](std::uint64_t ctl, std::uint64_t status = 0) {
            auto made = guest_with(value(ctl), 0);
            made.status = {status};
            made.cr3_match = {0x5000};
            return made;
        };
        access::processor_context const to{.cr3 = value(std::uint64_t{0x5000})};
        access::processor_context const user{.cpl = 3, .cr3 = 0x5000};
        return is_owed(with(0x200D), to) && is_owed(with(0x000D), to) &&
               is_owed(with(0x1'0000'200D), to) && !is_owed(with(0x200C), to) &&
               !is_owed(with(0x2009), to) && !is_owed(with(0x2009), user) &&
               !is_owed(with(0x200D, 0x20), to) && !is_owed(with(0x200D, 0x10), to) &&
               is_owed(with(0x208D), to) && !is_owed(with(0x208D), {.cr3 = 0x6000}) &&
               !is_owed(with(0x200D), {.cr3 = 0x5000, .production_enclave = true});
    });
}

TEST_CASE("a PIP counts in PacketByteCnt, unless the next enable sends a PSB+ anyway (GEN-161, "
          "GEN-162)") {
    CHECK_TWICE([](auto value) {
        auto const count_after = [&](std::uint64_t count) {
            auto from = guest_with(traces_all, 0);
            from.status = {value(count << 32)};
            return pip_case{from, {}}.guest.status.raw;
        };
        return count_after(0x300) == std::uint64_t{0x308} << 32 && count_after(0) == 0 &&
               count_after(0x1'FFFF) == std::uint64_t{7} << 32;
    });
    CHECK_TWICE([](auto value) {  // STATUS[2:0] of a guest that does not run now
        auto from = guest_with(traces_all, 0);
        from.status = {value(std::uint64_t{0x0000'0300'0000'0003})};
        return pip_case{from, {}}.guest.status.raw == 0x0000'0308'0000'0003;
    });
}

TEST_CASE("a PIP counts in the processor's PacketByteCnt, which a guest without it reads as 0 "
          "(REG-055, GEN-161)") {
    CHECK_TWICE([](auto value) {
        vmx::guest_pt guest{.caps = cpu::preset::P_FUT};
        guest.caps.leaf_14_0_ebx = guest.caps.leaf_14_0_ebx.with(
            reg::cpuid_14h_0_ebx::CPSB_CAM{false});
        guest.msrs = guest_with(traces_all, 0);
        guest.hidden_byte_count = value(std::uint64_t{100});
        simulate::memory_model<128> memory{0x1000, {}};
        auto const insert = [&] {
            return vmx::insert_pip(guest, vmx::shadow{}, {.cr3 = 0x5000}, packet::pip{}, memory);
        };
        bool const counted = insert().is_owed && guest.hidden_byte_count == 108 &&
                             guest.msrs.status.get<ia32_rtit_status::PacketByteCnt>() == 0;
        guest.hidden_byte_count = 0;  // the next VM entry sends a PSB+
        return counted && insert().is_owed && guest.hidden_byte_count == 0;
    });
}

TEST_CASE(
    "a PIP ends output as the processor does: STOP, INT, errors (PRG-175, PRG-177, PRG-085)") {
    CHECK_TWICE([](auto value) {
        test::machine_memory memory{test::INT, test::STOP};
        auto guest = guest_with(traces_all | 0x100, 0);
        guest.output.base = {test::table};
        guest.output.mask_ptrs = {value(std::uint64_t{0xFFD} << 32 | 0x7F)};
        auto const first = vmx::insert_pip(cpu::preset::P_FUT, guest, {.cr3 = 0x1000}, memory);
        bool const right = first.written.stored == 8 && first.written.pmis == 1 &&
                           memory.interrupts == 0 && guest.perf_global_status.raw == 1ULL << 55 &&
                           guest.output.mask_ptrs.raw == (std::uint64_t{5} << 32 | 0xFF) &&
                           guest.status.raw == 0;
        guest.output.mask_ptrs = {std::uint64_t{0xFFA} << 32 | 0xFF};
        auto const last = vmx::insert_pip(cpu::preset::P_FUT, guest, {.cr3 = 0x1000}, memory);
        return right && last.written.stored == 6 && last.written.lost == 2 &&
               guest.status.raw == 0x20 &&
               guest.output.mask_ptrs.raw == (std::uint64_t{0x1000} << 32 | 0xFF);
    });
    CHECK_TWICE([](auto value) {  // TriggerEn falls, if the guest's was 1
        test::machine_memory memory{test::STOP};
        auto guest = guest_with(traces_all | 0x100, 0xFFA);
        guest.status = {value(std::uint64_t{7})};
        guest.output.base = {test::table};
        (void)vmx::insert_pip(cpu::preset::P_FUT, guest, {.cr3 = 0x1000}, memory);
        return guest.status.raw == 0x23;
    });
    CHECK_TWICE([](auto value) {
        auto from = guest_with(traces_all, value(std::uint64_t{0x80}));  // beyond the mask
        pip_case const one{from, {}};
        return one.got && one.got.written.stored == 0 && one.guest.status.raw == 0x10;
    });
}

TEST_CASE("the packet may have another CR3 than the context, and NR (PRG-175, GEN-241, GEN-272)") {
    CHECK_TWICE([](auto value) {
        using packet::pip;
        auto guest = guest_with(traces_all | 0x80, 0x10);
        guest.cr3_match = {0x5000};
        simulate::memory_model<128> memory{0x1000, {}};
        pip const shown = pip{}.with(pip::CR3{wrapped{value(std::uint64_t{0x7'5000})}},
                                     pip::NR{true});
        auto const got = vmx::insert_pip(cpu::preset::P_FUT, guest, {.cr3 = 0x5000}, shown, memory);
        return got && got.is_owed &&
               byte_view{memory.bytes}.from(0x10).first(8) == made_trace{"pip1:75000"}.view();
    });
}

TEST_CASE("with shadow tables the processor's position moves by the PIP, too (PRG-175, PRG-184)") {
    CHECK_TWICE([](auto value) {
        // A single range of 128 bytes in guest page 1000H, which is host page 70000H.
        struct page_of_guest {
            constexpr auto load(std::uint64_t) -> port_value { return {}; }
            constexpr auto translate(std::uint64_t, std::uint64_t) -> vmx::translation {
                return {vmx::backing::mapped, 0x7'0000};
            }
        } pages;
        simulate::memory_model<256> memory{0x1000, {}};
        topa::entry entries[512] = {};
        topa::position origins[512] = {};
        vmx::shadow_page const page{0x5000, entries, origins};
        vmx::guest_pt guest;
        guest.caps = cpu::preset::P_FUT;
        guest.output = vmx::guest_output::shadow;
        guest.msrs = guest_with(traces_all, value(std::uint64_t{0x10}));
        vmx::shadow of;
        bool right = begin_shadow(guest, of, guest.caps, &page, 1) == rule::none && of.build(pages);
        guest.host_output = of.host().at;
        guest.shadow = vmx::shadow_use::placed;
        packet::pip const which{};
        auto const got = vmx::insert_pip(guest, of, {}, which, memory);
        right = right && got && guest.shadow == vmx::shadow_use::placed &&
                guest.msrs.output.mask_ptrs.raw == 0x18'0000'007F &&
                guest.host_output.base.raw == 0x7'0000 &&
                guest.host_output.mask_ptrs.raw == 0x18'0000'007F && !guest.pmi_pending;
        // A position that is not in this shadow: the guest needs another one.
        guest.msrs.output.base = {0x1080};
        return right && vmx::insert_pip(guest, of, {}, which, memory).is_owed &&
               guest.needs_shadow();
    });
    CHECK_TWICE([](auto value) {
        test::machine_memory memory{test::INT, test::STOP};
        vmx::guest_pt guest;
        guest.caps = cpu::preset::P_FUT;
        guest.msrs = guest_with(traces_all | 0x100, 0);
        guest.msrs.output.base = {test::table};
        guest.msrs.output.mask_ptrs = {value(std::uint64_t{0xFFD} << 32 | 0x7F)};
        auto const got = vmx::insert_pip(guest, vmx::shadow{}, {.cr3 = 0x1000}, packet::pip{},
                                         memory);
        return got && got.written.pmis == 1 && guest.pmi_pending;
    });
}

TEST_CASE("if the memory of the guest fails nothing has changed, and the call can be repeated "
          "(PRG-175)") {
    CHECK_TWICE([](auto value) {
        auto guest = guest_with(traces_all, 0);
        guest.output.base = {test::regions};
        guest.output.mask_ptrs = {value(std::uint64_t{0xFFF})};
        auto const before = guest;
        test::machine_memory memory;
        memory.fails = true;
        auto const failed = vmx::insert_pip(cpu::preset::P_FUT, guest, {}, memory);
        memory.fails = false;
        bool const right = !failed && failed.is_owed && guest == before;
        auto const done = vmx::insert_pip(cpu::preset::P_FUT, guest, {}, memory);
        return right && done && guest.output.mask_ptrs.raw == (std::uint64_t{8} << 32 | 0xFFF);
    });
    CHECK_TWICE([](auto value) {  // after five bytes; before the first: the table
        auto guest = guest_with(traces_all, value(std::uint64_t{0x38}));
        guest.status = {std::uint64_t{5} << 32};
        auto const before = guest;
        simulate::memory_model<0x3D> memory{0x1000, {}};
        auto const late = vmx::insert_pip(cpu::preset::P_FUT, guest, {}, memory);
        bool const right = !late && late.is_owed && guest == before;
        guest.ctl = {traces_all | 0x100};
        guest.output.base = {0x5000};
        auto const early = vmx::insert_pip(cpu::preset::P_FUT, guest, {}, memory);
        return right && !early && early.written.fault.address == 0x5000 &&
               guest.output.mask_ptrs == before.output.mask_ptrs;
    });
    CHECK_TWICE([](auto value) {  // a fabric that takes nothing
        pip_case const one{guest_with(traces_all | value(std::uint64_t{0x40}), 0), {}};
        return one.got.is_owed && !one.got && one.got.written.stored == 0;
    });
}

TEST_CASE(
    "a unit whose CR3 write exits, with the PIP inserted, has the bytes and MSRs of one whose "
    "write does not exit (PRG-175, GEN-240)") {
    // Without BranchEn, TSCEn and PSBs, the only packet of either is the PIP.
    std::uint64_t const count = test::number_from("PTSPEC_VM_PIPS", 20'000);
    std::mt19937_64 random{1};
    std::uint64_t owed = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        auto const flags = [&] {
            return topa::entry{(random() % 4 == 0 ? test::INT.raw : 0) |
                               (random() % 4 == 0 ? test::STOP.raw : 0)};
        };
        test::machine_memory bare_memory{flags(), flags()};
        auto exit_memory = bare_memory;
        access::msr_state msrs;
        msrs.cr3_match = {random() % 3 << 12};
        msrs.output.base = {test::table};
        msrs.output.mask_ptrs = {(0xFF0 + random() % 17) << 32 | random() % 2 << 7 | 0x7F};
        if (random() % 2 == 0) {
            msrs.output.base = {test::regions};
            msrs.output.mask_ptrs = {(random() % 64 + 64) << 32 | 0x7F};
        }
        msrs.status = {(random() % 3 == 0 ? 0 : random() % 0x700) << 32 |
                       (random() % 8 == 0 ? 0x20 : 0)};
        bool const to_topa = msrs.output.base.raw == test::table;
        access::ia32_rtit_ctl const ctl{1 | 8 | (random() % 4 == 0 ? 0 : 4) |
                                        (to_topa ? 0x100 : 0) | (random() % 3 == 0 ? 0x80 : 0)};
        msrs = access::apply(cpu::preset::P_FUT, msrs, ctl, {.cr3 = 0x1000}).state;
        engine::execution_context const code{.cr3 = 0x1000};
        engine::trace_unit<384> bare{cpu::preset::P_FUT, msrs, code, 0x40'0000,
                                     engine::options_of(engine::model_kind::manual)};
        engine::trace_unit<384> exits = bare;
        auto const cr3 = random() % 3 << 12;

        (void)bare.on(engine::action::mov_cr3{0x40'0000, 0x40'0003, cr3}, bare_memory);
        (void)bare.wrmsr({.index = 0x570,
                          .value = msrs.ctl.raw & ~std::uint64_t{1},
                          .at = 0x40'0003,
                          .next = 0x40'0005},
                         bare_memory);
        (void)exits.wrmsr({.index = 0x570,
                           .value = msrs.ctl.raw & ~std::uint64_t{1},
                           .at = 0x40'0000,
                           .next = 0x40'0002},
                          exit_memory);
        auto guest = exits.msrs();
        guest.ctl = msrs.ctl;
        auto const got = vmx::insert_pip(cpu::preset::P_FUT, guest, {.cr3 = cr3}, exit_memory);
        owed += got.is_owed ? 1U : 0U;
        auto const want = bare.msrs();
        constexpr std::uint64_t kept = ~std::uint64_t{7};  // the three bits of the processor
        bool const starts_new = guest.status.get<ia32_rtit_status::PacketByteCnt>() == 0;
        std::uint64_t const counted = starts_new ? kept & 0xFFFF'FFFF : kept;
        REQUIRE(static_cast<bool>(got));
        REQUIRE(exit_memory.trace.bytes == bare_memory.trace.bytes);
        REQUIRE(guest.output.base == want.output.base);
        REQUIRE(guest.output.mask_ptrs == want.output.mask_ptrs);
        REQUIRE((guest.status.raw & counted) == (want.status.raw & counted));
        REQUIRE(guest.perf_global_status == want.perf_global_status);
        REQUIRE(got.written.pmis == bare_memory.interrupts);
    }
    CHECK(owed > count / 4);
    CHECK(owed < count);
}
