// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a processor does, where that is more than an action of the engine, or depends on its state.

#include "configuration.hpp"

#include <ptspec/engine/action/execution_context.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace pt_twin {

/// New values of OS and User.
struct privilege_change {
    std::optional<bool> os{};
    std::optional<bool> user{};
};
/// WRMSR to IA32_RTIT_CTL that changes TraceEn.
struct trace_en_write {
    bool value = false;
    std::uint64_t at = 0;
    std::uint64_t next = 0;
    privilege_change who{};
};
/// WRMSR to IA32_RTIT_STATUS.
struct packet_byte_cnt_write {
    std::uint64_t value = 0;
};
/// A VM entry that sets TraceEn.
struct tracing_vm_entry {
    std::uint64_t at = 0;
    std::uint64_t to = 0;
    engine::execution_context after{};
    privilege_change who{};
};
/// Conditional branches. Each of several goes to the same address; one that is not taken, to it as
/// the next instruction.
struct conditional_branches {
    std::vector<bool> taken{};
    std::uint64_t to = 0;
};
/// The trace unit loses packets from here on.
struct packet_loss {};
/// New values of clocks.
struct clock_values {
    std::optional<std::uint64_t> art{};
    std::optional<std::uint64_t> tsc{};
    std::optional<std::uint64_t> tsc_at_edge{};  ///< without a value that of `tsc`
    std::optional<std::uint8_t> core_to_bus{};
};

}  // namespace pt_twin
