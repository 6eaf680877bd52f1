// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/output_violation.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/vmx/world_switch.hpp>
#include <ptspec/simulate/ports.hpp>
#include <ptspec/vmx/guest_image.hpp>
#include <ptspec/vmx/msr_exits.hpp>

#include <support/check_twice.hpp>

#include <cstdint>
#include <vector>

using namespace ptspec;
using vmx::backing;
using vmx::guest_pt;
using vmx::output_access;
using vmx::ept_violation_action;

namespace {

/// A guest with pages 0 to 15 in host memory from 100000H on; some are missing.
struct guest_pages {
    simulate::memory_model<0x1'0000>* memory = nullptr;
    std::uint32_t missing = 0;

    constexpr auto load(std::uint64_t address) -> port_value { return memory->load(address); }
    constexpr auto translate(std::uint64_t address, std::uint64_t) -> vmx::translation {
        std::uint64_t const page = address / 4096;
        if (page >= 16) { return {backing::none}; }
        if ((missing >> page & 1) != 0) { return {backing::missing}; }
        return {backing::mapped, 0x10'0000 + page * 4096};
    }
};

constexpr auto tracing_guest() -> guest_pt {
    guest_pt guest{.caps = cpu::preset::ice_lake_u};
    guest.msrs.ctl = {0x2109};
    return guest;
}

}  // namespace

TEST_CASE("an EPT violation by output is told from others, and answered by what is at the address "
          "(PRG-180..182)") {
    CHECK_TWICE([](auto value) {
        simulate::memory_model<0x1'0000> memory;
        guest_pages pages{&memory, 1U << 3};
        guest_pt guest = tracing_guest();
        auto const answer = [&](std::uint64_t qualification, std::uint64_t address) {
            return on_ept_violation(guest, value(qualification), value(address), pages);
        };
        bool right = answer(0x1'0002, 0x3FF8).what == ept_violation_action::missing_page &&
                     answer(0x1'0002, 0x3FF8).page == 0x3000 &&
                     answer(0x1'0001, 0x4FF8).what == ept_violation_action::resume &&
                     answer(0x1'0001, 0x10'0000).what == ept_violation_action::end_output &&
                     !answer(0x1'0001, 0x10'0000) &&
                     answer(0x182, 0x3FF8).what == ept_violation_action::not_output;
        // A guest without such output: the access is another one, for example of PEBS.
        guest.output = vmx::guest_output::shadow;
        right = right && answer(0x1'0002, 0x3FF8).what == ept_violation_action::not_output;
        guest.output = vmx::guest_output::guest_physical;
        guest.level = vmx::guest_level::l2;
        right = right && answer(0x1'0002, 0x3FF8).what == ept_violation_action::not_output;
        guest.level = vmx::guest_level::l1;
        guest.msrs.ctl = {0x2108};
        return right && answer(0x1'0002, 0x3FF8).what == ept_violation_action::not_output;
    });
}

TEST_CASE("output to no memory ends as by an operational error (REG-056, PRG-180)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = tracing_guest();
        guest.msrs.status = {value(std::uint64_t{0x0000'0123'0000'0007})};
        end_output(guest);
        guest_pt moved = guest;
        return guest.msrs.status.raw == 0x0000'0123'0000'0013 && load(moved, store(guest)) &&
               guest.trace_en();
    });
}

TEST_CASE("the memory of a processor raises violations, and stores nothing without a mapping "
          "(PRG-180, PRG-181)") {
    CHECK_TWICE([](auto value) {
        simulate::memory_model<0x1'0000> host{0x10'0000, {}};
        guest_pages pages{&host, 1U << 3};
        vmx::ept_memory memory{host, pages};
        std::uint8_t bytes[20] = {};
        for (auto& byte : bytes) { byte = value(std::uint8_t{0xAB}); }
        // 16 bytes before the page that is missing, 4 in it.
        bool right = memory.store(0x2FF0, byte_view{bytes}) == 16 && memory.has_violation() &&
                     host.bytes.bytes[0x2FFF] == 0xAB && host.bytes.bytes[0x3000] == 0;
        right = right && memory.take_violation() == output_access{0x3000, true} &&
                !memory.has_violation() && output_access{0x3000, true}.qualification() == 0x1'0002;
        right = right && !memory.load(0x3008) && !memory.load(0x10'0000) &&
                memory.take_violation() == output_access{0x3008, false} &&
                output_access{}.qualification() == 0x1'0001;
        pages.missing = 0;
        return right && memory.store(0x2FF0, byte_view{bytes}) == 20 && !memory.has_violation() &&
               host.bytes.bytes[0x3003] == 0xAB && memory.load(0x2FF8).value != 0;
    });
}

namespace {

/// Runs a guest that traces to pages 4 to 7 through a table in page 1. Pages are missing at first
/// if their bit is set. Returns its memory.
auto run(std::uint32_t missing, std::uint64_t& violations, std::uint64_t first_region = 0x4000)
    -> std::vector<std::uint8_t> {
    auto const& caps = cpu::preset::ice_lake_u;
    simulate::memory_model<0x1'0000> host{0x10'0000, {}};
    store_le64(host.bytes.data() + 0x1000, first_region);
    store_le64(host.bytes.data() + 0x1008, 0x5000);
    store_le64(host.bytes.data() + 0x1010, 0x6040);  // 8 KB
    store_le64(host.bytes.data() + 0x1018, 0x1001);
    guest_pages pages{&host, missing};
    vmx::ept_memory memory{host, pages};
    simulate::no_tap tap;
    simulate::fake_processor cpu{caps, memory, tap, engine::execution_context{}, 0x1000};
    guest_pt guest{.caps = caps};
    CHECK(on_wrmsr(guest, 0x560, 0x1000));
    CHECK(on_wrmsr(guest, 0x570, 0x2105));
    auto const set = vmx::with_guest_pt(caps, {.enable_ept = true}, guest.output);
    vmx::host_pt of_host;
    std::uint64_t ip = 0x40'0000;
    auto const enter = [&] {
        auto const entry = vmx::enter(guest, set, of_host, cpu);
        CHECK(entry);
        (void)cpu.on(engine::action::vm_entry{.at = 0x1000, .to = ip, .loads = {true, entry.ctl}});
    };
    auto const leave = [&] {
        (void)cpu.on(engine::action::vm_exit{.from = ip, .to = 0x1000, .loads = {true, {}}});
        CHECK(vmx::leave(guest, of_host, cpu));
    };
    /// The VM exits of output.
    auto const settle = [&] {
        while (memory.has_violation() && violations < 100) {
            ++violations;
            auto const access = memory.take_violation();
            auto const answer = on_ept_violation(guest, access.qualification(), access.address,
                                                 pages);
            if (answer.what == ept_violation_action::missing_page) {
                pages.missing &= ~(1U << answer.page.value / 4096);
                (void)cpu.write(0, 0);  // the processor stores what waited for the page
            } else {
                CHECK(answer.what == ept_violation_action::end_output);
                memory.discard(true);
                leave();
                memory.discard(false);
                end_output(guest);
                enter();
            }
        }
    };
    enter();
    settle();
    for (unsigned i = 0; i < 2000; ++i) {
        ip = 0x40'0000 + i % 7 * 0x1'0000'0000;
        (void)cpu.on(engine::action::indirect_jump{ip});
        settle();
        if (guest.msrs.status.get<access::ia32_rtit_status::Error>()) { break; }
    }
    leave();
    CHECK(pages.missing == 0);
    std::vector<std::uint8_t> all(host.bytes.data(), host.bytes.data() + 0x1'0000);
    all.push_back(guest.msrs.status.get<access::ia32_rtit_status::Error>());
    return all;
}

}  // namespace

TEST_CASE("no byte of trace is lost where pages of tables and regions are missing (PRG-181)") {
    std::uint64_t none = 0;
    std::uint64_t some = 0;
    auto const wanted = run(0, none);
    CHECK(none == 0);
    CHECK(wanted.back() == 0);
    CHECK(run(1U << 1 | 0xFU << 4, some) == wanted);
    CHECK(some == 5);
}

TEST_CASE("a guest whose output leads to no memory sees an error, and the host goes on (PRG-180)") {
    std::uint64_t violations = 0;
    CHECK(run(0, violations, 0x20'0000).back() == 1);
    CHECK(violations == 1);
}
