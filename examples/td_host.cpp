// SPDX-License-Identifier: BSL-1.0

// A host that traces itself runs a trust domain (TD), which has Intel PT of its own. A return from
// the TD leaves the MSRs in their initial configuration, so the host saves its trace before the
// entry and restores it after the return. Neither trace has a jump of the other.

#include "standard_output.hpp"

#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/switch_context.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/base/host_memory.hpp>
#include <ptspec/topa/single_range.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/vmx/tdx.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace ptspec;
namespace action = engine::action;
namespace tdx = vmx::tdx;

constexpr auto const& caps = cpu::preset::sapphire_rapids;
constexpr reg::ia32_xss with_pt = reg::ia32_xss{}.with(reg::ia32_xss::PT_STATE{true});
constexpr std::uint64_t buffer_bytes = 0x1000;
constexpr std::uint64_t host_buffer = 0x10'0000;
constexpr std::uint64_t td_buffer = 0x20'0000;
constexpr std::uint64_t host_ip = 0xFFFF'8000'0000'0000;
constexpr std::uint64_t td_ip = 0x40'0000;

void expect(bool right, char const* what) {
    if (!right) { std::exit((std::printf("not as expected: %s\n", what), 1)); }
}

/// The MSRs of a trace of kernel code into 4 KB at an address.
auto trace_to(std::uint64_t buffer) -> access::msr_state {
    using ctl = reg::ia32_rtit_ctl;
    auto const range = single_range::build({.base = buffer, .bytes = buffer_bytes},
                                           caps.max_phys_addr());
    expect(static_cast<bool>(range), "a buffer");
    return {.ctl = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::BranchEn{true}),
            .output = {range.base, range.pointers}};
}

/// The jumps in a buffer to addresses from `first` on, and all others.
struct jump_counter {
    std::uint64_t first;
    unsigned own = 0;
    unsigned others = 0;

    void operator()(packet::tip const&, trace::packet_place place) {
        ++(place.ip >= first && place.ip < first + 0x1000 ? own : others);
    }
    void operator()(trace::item const& one) {
        expect(one.what == trace::item_type::end, "a trace without damage");
    }
};

struct machine {
    std::uint8_t ram[2][buffer_bytes] = {};
    host_region ranges[2] = {{host_buffer, ram[0], buffer_bytes},
                             {td_buffer, ram[1], buffer_bytes}};
    host_memory memory{ranges};
    simulate::fake_processor<host_memory> cpu{caps, memory, {}, host_ip};

    machine() = default;
    machine(machine const&) = delete;
    auto operator=(machine const&) -> machine& = delete;

    void jump(std::uint64_t first, unsigned count) {
        for (unsigned i = 1; i <= count; ++i) {
            (void)cpu.on(action::indirect_jump{first + 16 * i});
        }
    }
    /// What the TDX module does between the entry and the return, as far as Intel PT is concerned:
    /// it loads component 8 of the TD, saves it, and leaves the initial configuration.
    void run_td(access::xsave_pt_state& image) {
        expect(cpu.xrstors(image).took_effect(), "the state of the TD");
        jump(td_ip, 50);
        image = cpu.xsaves().image;
        expect(cpu.xrstors_init().took_effect(), "the initial configuration");
    }
    [[nodiscard]] auto jumps(unsigned buffer, std::uint64_t bytes, std::uint64_t first) const
        -> jump_counter {
        jump_counter seen{first};
        trace::reader reader{byte_view{ram[buffer], static_cast<std::size_t>(bytes)}};
        (void)reader.for_each<packet::tip, trace::item>(seen);
        return seen;
    }
};

}  // namespace

auto main() -> int {
    // A platform whose logical processors differ is not accepted.
    cpu::capabilities const hybrid[] = {cpu::preset::alder_lake_p, cpu::preset::alder_lake_e};
    cpu::capabilities const server[] = {caps, caps};
    std::printf("a hybrid platform: %s\n", describe(tdx::broken_rule(hybrid, 2)).data());
    expect(tdx::broken_rule(server, 2) == rule::none, "a platform for TDX");

    // What a TD may access depends on its XFAM.
    std::printf("RDMSR(570H) in a TD without Intel PT: %s\n",
                describe(tdx::broken_rule(reg::ia32_xss{}, 0x570)).data());
    expect(tdx::broken_rule(with_pt, 0x570) == rule::none, "the MSRs of a TD with Intel PT");
    auto const td_caps = tdx::td_capabilities(caps, with_pt);

    machine now;
    auto const td_msrs = trace_to(td_buffer);
    auto image = access::xsaves(td_caps, td_msrs).image;
    expect(static_cast<bool>(driver::restore(now.cpu, trace_to(host_buffer))), "the host's trace");
    for (unsigned i = 0; i < 4; ++i) {
        now.jump(host_ip, 25);
        auto const saved = driver::save(now.cpu);
        expect(static_cast<bool>(saved), "a saved trace");
        auto const expected = tdx::after_td_exit(with_pt, now.cpu.msrs());
        now.run_td(image);
        expect(now.cpu.msrs() == expected, "the MSRs after a return from the TD");
        expect(static_cast<bool>(driver::restore(now.cpu, saved.state)), "the restored trace");
    }
    auto const last = driver::save(now.cpu);

    // A debugger of the TD cannot let it trace: CTL of the image is out of its reach.
    std::printf("a debugger that writes CTL of the TD: %s\n",
                describe(tdx::broken_rule_of_debug_write(with_pt, 576, 576)).data());

    using pointers = reg::ia32_rtit_output_mask_ptrs;
    using area = access::xsave_pt_state;
    auto const host = now.jumps(0, last.state.output.mask_ptrs.get<pointers::OutputOffset>(),
                                host_ip);
    auto const td = now.jumps(
        1, image.get<area::IA32_RTIT_OUTPUT_MASK_PTRS>().get<pointers::OutputOffset>(), td_ip);
    std::printf("%u jumps of the host, %u of the TD\n", host.own, td.own);
    expect(host.own == 100 && host.others == 0 && td.own == 200 && td.others == 0,
           "each jump in its trace");
}
