// SPDX-License-Identifier: BSL-1.0
#pragma once

// From the packets of a recorded trace to what the processor did.

#include "branches.hpp"
#include "instructions.hpp"
#include "setup.hpp"
#include "status.hpp"
#include "times.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pt_twin {

/// Takes the packet with this index, and others of the same action. Returns the index of the next.
inline auto take_packet(twin_state& state, std::size_t i) -> std::size_t {
    auto const& one = state.all[i];
    switch (one.packet.kind()) {
        case kind::tnt_short:
            take_branches(state, i, one.as<packet::tnt_short>().taken());
            return i + 1;
        case kind::tnt_long:
            take_branches(state, i, one.as<packet::tnt_long>().taken());
            return i + 1;
        case kind::cyc:
            if (state.is_told) {
                state.is_told = false;
                if (!is_tnt(state, i + 1)) {
                    state.branches.push_back(false);
                }  // in a TNT that is lost
                return i + 1;
            }
            break;
        default: break;
    }
    flush_branches(state);
    switch (one.packet.kind()) {
        case kind::psb: return take_psb(state, i);
        case kind::tip: state.run.execute(action::indirect_jump{one.ip}); return i + 1;
        case kind::fup: return take_fup(state, i);
        case kind::tip_pgd: leave(state, one); return i + 1;
        case kind::tip_pge:
        case kind::mode_exec: return take_far_transfer(state, i);
        case kind::mode_tsx: return take_transaction(state, i);
        case kind::pip: return take_pip(state, i);
        case kind::mtc:
        case kind::cyc:
        case kind::tsc:
        case kind::cbr: return take_time(state, i);
        case kind::ovf: return take_overflow(state, i);
        case kind::ptw: return take_value(state, i);
        case kind::vmcs:
            if (state.now == tracing::out) { state.run.visit_context(true); }
            state.run.set_vmcs(one.as<packet::vmcs>());
            return i + 1;
        default: return i + 1;
    }
}

/// Runs a machine through what the processor did.
class twin {
public:
    /// `on` is the machine to use. `script` receives the events, one a line, unless it is null.
    twin(recording const& from, configuration const& with, std::string_view kind_name, machine& on,
         std::string* script, std::uint32_t forgotten = 0)
        : machine_{on}, state_{from, with, kind_name, on, script, forgotten} {
        setup_ = begin(state_, kind_name, from.alignment);
    }

    /// Runs the machine through the packet with this index, and others of the same action. Returns
    /// the index of the next.
    auto step(std::size_t i, std::uint32_t others) -> std::size_t {
        state_.choices.begin(others);
        return take_packet(state_, i);
    }
    /// The number of questions in the last step.
    [[nodiscard]] auto asked() const -> unsigned { return state_.choices.count(); }
    /// True if one of them was about OS: its answer may have an effect only much later.
    [[nodiscard]] auto asked_of_os() const -> bool {
        return state_.choices.has_asked(question::os);
    }
    /// Runs the machine through the end of the trace.
    void end() {
        flush_branches(state_);
        if (state_.ends_in_pads && state_.now == tracing::out) { disable(state_, 0, {}); }
        state_.run.execute(action::acm_begin{});  // the last branches
    }
    /// The state between two steps.
    struct moment {
        script_run::moment run;
        bool is_told = false;
        std::vector<bool> branches{};
        tracing now{};
    };
    [[nodiscard]] auto save() const -> moment {
        return {state_.run.save(), state_.is_told, state_.branches, state_.now};
    }
    void restore(moment const& from) {
        state_.run.restore(from.run);
        state_.is_told = from.is_told;
        state_.branches = from.branches;
        state_.now = from.now;
    }
    /// True if PacketEn is 1 at the end.
    [[nodiscard]] auto is_tracing() const -> bool { return state_.now == tracing::on; }
    [[nodiscard]] auto setup() const -> std::string const& { return setup_; }
    [[nodiscard]] auto bytes() const -> byte_view { return machine_.written(); }

private:
    machine& machine_;
    twin_state state_;
    std::string setup_{};
};

}  // namespace pt_twin
