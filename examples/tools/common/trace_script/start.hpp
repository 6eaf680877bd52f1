// SPDX-License-Identifier: BSL-1.0
#pragma once

// The initial state of a logical processor. In the base state tracing is on, and 64-bit code runs
// at CPL 3, on a processor of the kind `manual`.

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/model_kind.hpp>
#include <ptspec/engine/trace_unit.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trace_script {

using namespace ptspec;
using std::string_view;
using engine::execution_context;

/// The addresses of the ToPA table and of its only region.
inline constexpr std::uint64_t region_base = 0x1000'0000;

/// All parameters of a setup.
struct start {
    cpu::capabilities of{};
    access::msr_state msrs{};
    execution_context code{};
    engine::model_options how = engine::options_of(engine::model_kind::manual);
    engine::vmx_concealment hidden{};
    engine::clocks clocks{};
    std::uint64_t ip = 0x1000;
    std::uint64_t calls = 0;           ///< depth of the call stack
    std::uint64_t cycles = 1'000'000;  ///< for which the processor has run
    string_view pending{};             ///< TNT bits
    bool filter_en = true;
    bool two_processors = false;

    /// Where a call of the call stack returns to; 0 is the outermost.
    [[nodiscard]] constexpr auto return_address(std::uint64_t i) const -> std::uint64_t {
        return 0x1005 + 0x10 * (calls - 1 - i);
    }
    /// Sets address range `n` and its use.
    constexpr void set_range(std::size_t n, std::uint64_t first, std::uint64_t last,
                             reg::addr_cfg use) {
        msrs.addr[n] = {{first}, {last}};
        msrs.ctl.raw |= std::uint64_t{underlying(use)} << (32 + 4 * n);
    }
};

/// The base state: TraceEn, OS, User, ToPA and BranchEn are set; all capabilities are enumerated.
constexpr auto base_state(std::uint64_t table) -> start {
    start made;
    made.of = cpu::preset::P_FUT;
    made.of.leaf_14_0_ebx.raw |= 0x1FF;
    made.of.leaf_14_0_ecx.raw |= 0x8000'000F;
    made.of.leaf_14_1_eax.raw = (made.of.leaf_14_1_eax.raw & ~7U) | 4;
    made.of.vmx_misc = made.of.vmx_misc.with(reg::ia32_vmx_misc::INTEL_PT{true});
    using ctl = reg::ia32_rtit_ctl;
    made.msrs.ctl = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::User{true}, ctl::ToPA{true},
                               ctl::BranchEn{true});
    made.msrs.output.base = {table};
    made.code.cpl = 3;
    made.code.cr3 = 0x1000;
    return made;
}

/// Sets the bits of IA32_RTIT_STATUS that belong to the processor, as they follow from the rest.
constexpr void derive_status(start& made) {
    using status = reg::ia32_rtit_status;
    auto& now = made.msrs;
    if (access::trigger_en(now.ctl, now.status)) {
        auto const in_packets = engine::ip_in_packets(made.of.ip_payload(), made.code, made.ip);
        bool const in_context = access::context_en(now.ctl, now.cr3_match,
                                                   engine::context_of(made.code, in_packets));
        now.status = now.status.with(status::TriggerEn{true}, status::ContextEn{in_context});
    }
    if (now.ctl.get<reg::ia32_rtit_ctl::TraceEn>()) {
        now.status = now.status.with(status::FilterEn{made.filter_en});
    }
}

}  // namespace trace_script
