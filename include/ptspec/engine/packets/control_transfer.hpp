// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/packets/psb.hpp>

namespace ptspec::engine {

/// How execution goes from one instruction to another that is not the next, and the packets that
/// tell of it. The third layer of `generator`.
///
/// Source: SDM vol. 3, "Packet Generation Scenarios"; GEN-005, GEN-020..032, GEN-080..107,
///         GEN-236..245, GEN-255..257, GEN-301..306, GEN-340..342.
class generator_moves : public generator_packets {
public:
    using generator_packets::generator_packets;

protected:
    /// What tells of a movement while PacketEn stays 1.
    ///
    /// Source: GEN-110, GEN-340.
    enum class told_by : uint8_t {
        bit,   ///< a taken branch, or a compressed return
        code,  ///< nothing: who reads the trace sees it in the code
        tip,
        tip_at_once,  ///< which is never deferred
    };
    /// When a CFE has a FUP of its own. Source: GEN-303, GEN-304.
    enum class own_ip : uint8_t { where_no_other, always, never };
    /// What an EVD tells.
    struct datum {
        bool is_there = false;
        packet::evd_type type = packet::evd_type::PFA;
        uint64_t value = 0;
    };
    /// What Event Trace tells of a movement. Source: GEN-301, GEN-302.
    struct control_flow {
        packet::cfe_type type{};  ///< 0: nothing
        uint8_t vector = 0;
        own_ip ip = own_ip::where_no_other;
        datum first{};
        datum second{};
    };
    /// Execution goes on somewhere else.
    struct movement {
        told_by by = told_by::tip;
        uint64_t to = 0;    ///< not yet in the form of packets
        uint64_t from = 0;  ///< in the form of packets
        bool has_fup = false;
        bool aborts = false;   ///< a transaction
        packet::pip pip{0};    ///< 0: CR3 is not written
        packet::vmcs vmcs{0};  ///< 0: the current VMCS stays
        control_flow tells{};
        event::cycles_within takes{};
    };

    /// True when Event Trace tells of a movement. Source: GEN-306.
    [[nodiscard]] constexpr auto tells_events(enables const& before,
                                              enables const& after) const noexcept -> bool {
        return is_set<ctl::EventEn>() && before.trigger && (before.context || after.context);
    }
    /// Source: GEN-301..304.
    constexpr void add_events(auto& all, control_flow const& tells, uint64_t from,
                              enables const& before) const noexcept {
        using packet::cfe;
        if (tells.type == packet::cfe_type{}) { return; }
        add_datum(all, tells.first);
        add_datum(all, tells.second);
        bool const has_ip = before.context &&
                            (tells.ip == own_ip::always ||
                             (tells.ip == own_ip::where_no_other && !before.packet()));
        all.add(cfe{}.with(cfe::type{tells.type}, cfe::IP{has_ip},
                           cfe::vector{wrapped{uint64_t{tells.vector}}}));
        if (has_ip) { all.template add_ip<packet::fup>(from); }
    }
    static constexpr void add_datum(auto& all, datum const& which) noexcept {
        using packet::evd;
        if (!which.is_there) { return; }
        all.add(evd{}.with(evd::type{which.type}, evd::payload{wrapped{which.value}}));
    }

    /// Goes somewhere else, and lets the operation be complete.
    template <class Sink>
    constexpr void go(Sink& to, movement const& how, running const& after) noexcept {
        code_ = after;
        ip_ = how.to;
        move(to, how);
        finish(to);
    }
    /// The packets of a movement that has happened.
    ///
    /// Source: GEN-005, GEN-100..105, GEN-245, GEN-255..257, GEN-340..342.
    template <class Sink>
    constexpr void move(Sink& to, movement const& how) noexcept {
        enables const before = enables_now();
        if (!before.trigger) { return; }
        uint64_t const target = form(how.to);
        auto const done = evaluate(of_, msrs_, context_of(code_, target), {true, target, target});
        msrs_.status = done.status;
        bool const was_on = before.packet();
        bool const is_on = done.after.packet();
        owe(done);
        if (was_on && is_on && how.by == told_by::code) {
            if (has_ranges_) { settle(); }
            return;
        }
        emit(to, [&](auto& all) {
            if (tells_events(before, done.after)) { add_events(all, how.tells, how.from, before); }
            if (how.aborts && done.after.context && done.after.branch) { add_tsx(all, true); }
            if (was_on && how.has_fup) { all.template add_ip<packet::fup>(how.from); }
            all.advance(how.takes.until_pip);
            bool const tells_vmcs = how.vmcs.raw != 0 && done.after.context;
            if (tells_vmcs && how_.vmcs_before_pip) { all.add(how.vmcs); }
            if (how.pip.raw != 0 && done.after.context && is_set<ctl::OS>()) {
                add_pip(all, how.pip);
            }
            if (tells_vmcs && !how_.vmcs_before_pip) { all.add(how.vmcs); }
            all.advance(how.takes.until_target);
            add_end(all, how, was_on, is_on, done.after.context);
            if (done.trace_stop) { all.add(packet::tracestop{}); }
        });
        if (done.trace_stop || was_on != is_on || has_ranges_) { settle(); }
    }
    /// The last packets of a movement, which say where it went. Source: GEN-101..103.
    constexpr void add_end(auto& all, movement const& how, bool was_on, bool is_on,
                           bool in_context) noexcept {
        uint64_t const target = form(how.to);
        if (was_on && is_on) {
            if (how.by == told_by::bit) {
                if (!is_set<ctl::DisTNT>()) { all.branch(true); }
                return;
            }
            add_mode_where_stale(all);
            if (how.by == told_by::tip) {
                all.defer(target);
            } else {
                all.template add_ip<packet::tip>(target);
            }
        } else if (was_on) {
            if (in_context && how.by != told_by::bit) {
                all.template add_ip<packet::tip_pgd>(target);
            } else {
                all.add(packet::tip_pgd{});
            }
        } else if (is_on) {
            add_mode_where_stale(all);
            all.template add_ip<packet::tip_pge>(target);
        }
    }
};

}  // namespace ptspec::engine
