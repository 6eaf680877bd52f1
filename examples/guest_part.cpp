// SPDX-License-Identifier: BSL-1.0

// A host traces itself and a guest in one trace, and gives the guest its part: without the packets
// of the host and of VMX, with the CR3 values of the guest instead of those of shadow paging, and
// with the time that the guest's RDTSC has, which the VMM emulates.

#include "standard_output.hpp"

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/generator.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/edit/keep_part.hpp>
#include <ptspec/edit/rebase_tsc.hpp>
#include <ptspec/edit/replace_addresses.hpp>
#include <ptspec/edit/vmx_packets.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using namespace ptspec;
namespace action = engine::action;

constexpr std::uint64_t host_ip = 0xFFFF'8000'0000'0000, guest_ip = 0x40'0000;
constexpr std::uint64_t host_cr3 = 0x1000;
constexpr std::uint64_t shadow_of[] = {0x7'5000, 0x7'9000};  // CR3 of the tables of the VMM,
constexpr std::uint64_t guest_cr3[] = {0x5000, 0x6000};      // for these of the guest's processes
constexpr std::uint64_t tsc_at_start = 1'000'000;            // of the host, when the guest's is 0

void expect(bool right, char const* what) {
    if (!right) { std::exit((std::printf("not as expected: %s\n", what), 1)); }
}

/// A host, its guest, and the trace of both.
struct machine {
    std::vector<std::uint8_t> bytes{};
    std::uint64_t tsc = tsc_at_start;
    engine::generator unit{
        cpu::preset::skylake_x, {.in_vmx_operation = true}, {.cr3 = host_cr3}, host_ip};

    /// The sink of the unit.
    auto append(byte_view from) -> bool {
        bytes.insert(bytes.end(), from.begin(), from.end());
        return true;
    }
    void write_ctl(reg::ia32_rtit_ctl value) {
        auto const ip = unit.state().ip;
        auto const done = unit.wrmsr(
            {.index = value.address, .value = value.raw, .at = ip, .next = ip + 2}, *this);
        expect(static_cast<bool>(done), "WRMSR");
    }
    void jump(std::uint64_t first) {
        for (unsigned i = 1; i <= 10; ++i) {
            unit.on(action::indirect_jump{first + 16 * i}, *this);
        }
        tsc += 1000;
        unit.on(action::elapsed{.cycles = 1000, .art = tsc / 100, .tsc = tsc}, *this);
    }
    /// Runs a process of the guest, in which a PSB falls due.
    void run_guest(std::size_t process) {
        unit.on(action::vm_entry{.at = unit.state().ip,
                                 .to = guest_ip,
                                 .after = {.cr3 = shadow_of[process], .vmx_non_root = true}},
                *this);
        jump(guest_ip);
        unit.on(action::psb_due{}, *this);
        jump(guest_ip);
        unit.on(action::vm_exit{.from = unit.state().ip, .to = host_ip, .after = {.cr3 = host_cr3}},
                *this);
    }
};

/// What a trace shows.
struct content {
    unsigned tips_of_host = 0, tips_of_guest = 0;  ///< by their targets
    bool is_of_guest = true;                       ///< each CR3 and TSC is one of the guest

    void operator()(packet::tip const&, trace::packet_place place) {
        ++(place.ip >= host_ip ? tips_of_host : tips_of_guest);
    }
    void operator()(packet::pip const& one, trace::packet_place) {
        auto const cr3 = one.get<packet::pip::CR3>();
        is_of_guest = is_of_guest && (cr3 == guest_cr3[0] || cr3 == guest_cr3[1]);
    }
    void operator()(packet::tsc const& one, trace::packet_place) {
        is_of_guest = is_of_guest && one.get<packet::tsc::TSC>() < tsc_at_start;
    }
    void operator()(trace::item const& one) {
        expect(one.what == trace::item_type::end, "a trace without damage");
    }
};

auto content_of(std::vector<std::uint8_t> const& bytes) -> content {
    content seen;
    trace::reader reader{byte_view{bytes}};
    (void)reader.for_each<packet::tip, packet::pip, packet::tsc, trace::item>(seen);
    return seen;
}
void print(char const* whose, machine const& of, content const& seen) {
    std::printf("%s: %zu bytes, %u TIPs of the host, %u of the guest\n", whose, of.bytes.size(),
                seen.tips_of_host, seen.tips_of_guest);
}

}  // namespace

auto main() -> int {
    using ctl = reg::ia32_rtit_ctl;
    machine now;
    now.unit.on(action::elapsed{.art = now.tsc / 100, .tsc = now.tsc}, now);
    auto const on = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::User{true}, ctl::TSCEn{true},
                               ctl::DisRETC{true}, ctl::BranchEn{true}, ctl::ToPA{true});
    now.write_ctl(on);
    for (std::size_t i = 0; i < 10; ++i) {
        now.jump(host_ip);
        now.run_guest(i % 2);
    }
    now.write_ctl(on.with(ctl::TraceEn{false}));
    print("the trace", now, content_of(now.bytes));

    byte_window const whole[] = {{now.bytes.data(), now.bytes.size()}};
    auto const packets = edit::count_vmx_packets(whole);
    auto const kept = edit::keep_part(whole, {.keep = edit::side::guest});
    expect(kept && packets != 0 && edit::count_vmx_packets(whole) == 0, "no packets of VMX");
    auto const replaced = edit::replace_cr3(whole, [](std::uint64_t cr3) {
        bool const is_first = cr3 == shadow_of[0];
        return edit::guest_address{is_first || cr3 == shadow_of[1], guest_cr3[is_first ? 0 : 1]};
    });
    expect(replaced && replaced.count != 0, "each CR3 is one of the guest");
    auto const rebased = edit::rebase_tsc(whole, {.offset = 0 - tsc_at_start});
    expect(rebased && rebased.count != 0, "the guest's time");

    auto const part = content_of(now.bytes);
    print("the guest's part", now, part);
    std::printf("%llu packets of VMX, %llu PIPs and %llu TSCs changed\n",
                static_cast<unsigned long long>(packets),
                static_cast<unsigned long long>(replaced.count),
                static_cast<unsigned long long>(rebased.count));
    expect(part.tips_of_host == 0 && part.tips_of_guest == 200 && part.is_of_guest,
           "what the guest executed, and nothing of the host");
}
