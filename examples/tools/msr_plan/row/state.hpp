// SPDX-License-Identifier: BSL-1.0
#pragma once

// The state of a row, and the processor as a port.

#include "../machine.hpp"
#include "../../common/msr_script/session.hpp"
#include "../../common/pc_notation.hpp"

#include <string>
#include <vector>

namespace msr_plan {

using pc_notation::refusal;
using pc_notation::setup;
using pc_notation::words;

inline auto join(std::vector<std::string> const& items, char const* with = "; ") -> std::string {
    std::string line;
    for (auto const& one : items) { line += (line.empty() ? "" : with) + one; }
    return line;
}
inline auto interval(std::uint64_t from, std::uint64_t count) -> std::string {
    return "[" + hex(from) + "," + hex(from + count) + ")";
}

/// The MSRs and the output of a processor, as a port. An access that faults changes nothing.
class row_processor {
public:
    explicit row_processor(msr_script::session& on) : on_{on} {}

    auto read(std::uint32_t index) noexcept -> port_value {
        auto const& caps = on_.of;
        switch (index) {
            case reg::msr_platform_info::address: return {true, caps.platform_info.raw};
            case reg::ia32_perf_capabilities::address: return {true, caps.perf_capabilities.raw};
            case reg::ia32_vmx_misc::address: return {true, caps.vmx_misc.raw};
            case reg::ia32_vmx_procbased_ctls2::address:
                return {true, caps.vmx_procbased_ctls2.raw};
            case reg::ia32_vmx_exit_ctls::address: return {true, caps.vmx_exit_ctls.raw};
            case reg::ia32_vmx_entry_ctls::address: return {true, caps.vmx_entry_ctls.raw};
            default: break;
        }
        auto const got = access::read(caps, on_.now, index);
        return {static_cast<bool>(got), got.value};
    }
    auto write(std::uint32_t index, std::uint64_t value) noexcept -> bool {
        auto const done = access::effect_of_write(on_.of, on_.now, index, value);
        if (done) { on_.apply(done); }
        return static_cast<bool>(done);
    }
    void fence() noexcept {}

private:
    msr_script::session& on_;
};

using log_port = simulate::recording_port<row_processor, 128>;

/// What a row is about, and what its steps changed and printed.
struct row_state {
    setup from;
    bool is_log = false;  ///< accesses print as those of a procedure
    bool trace_en_before_acm = false;
    msr_script::session on{};
    std::vector<std::string> results{};
};

inline void say(row_state& row, std::string const& result) { row.results.push_back(result); }

}  // namespace msr_plan
