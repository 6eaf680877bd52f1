// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/packets/vmx_smm.hpp>

namespace ptspec::engine {

/// The packets of a logical processor, from what it does.
///
/// A value, which holds the MSRs of Intel PT and knows what runs. Each operation writes its packets
/// into a sink. Where the sink has no room for them an overflow begins, and packets are lost until
/// `end_overflow` is called.
///
/// The sink is told of packets only: who stores them is asked for where they go (`trace_unit`).
///
/// Source: SDM vol. 3, "Packet Generation Scenarios", "Trace Packets and Data Types"; GEN-001..342.
class generator : public generator_system {
public:
    using generator_system::generator_system;
    using generator_system::on;

    /// Packets come through again, into a sink that has room for them. Nothing while an overflow was
    /// asked for and not yet ended.
    template <trace::packet_sink Sink>
    constexpr void end_overflow(Sink& to) noexcept {
        if (loses_ && !loses_on_) { resolve_overflow(to); }
    }

    // -------------------------------------------------------------------------------- values

    template <trace::packet_sink Sink>
    constexpr void on(event::ptwrite const& e, Sink& to) noexcept {
        ip_ = e.next;
        enables const now = enables_now();
        if (now.trigger && now.context && now.filter && is_set<ctl::PTWEn>()) {
            using packet::ptw;
            bool const with_ip = is_set<ctl::FUPonPTW>();
            uint64_t const value = e.is_64_bit ? e.value : e.value & low_bits(32);
            emit(to, [&](auto& all) {
                all.add(
                    ptw{}
                        .with(ptw::PayloadBytes{wrapped{uint64_t{e.is_64_bit}}}, ptw::IP{with_ip})
                        .with_payload(value));
                if (with_ip) { all.template add_ip<packet::fup>(form(e.at)); }
            });
        }
        finish(to);
    }
    /// Source: GEN-320..322.
    template <trace::packet_sink Sink>
    constexpr void on(event::pebs_record const& e, Sink& to) noexcept {
        if (!triggers() || e.count == 0) { return; }
        for (size_t i = 0; i < e.count; ++i) { emit_items(to, e.groups[i]); }
        bool const with_ip = enables_now().context;
        emit(to, [&](auto& all) {
            all.add(packet::bep{}.with(packet::bep::IP{with_ip}));
            if (with_ip) { all.template add_ip<packet::fup>(form(e.ip)); }
        });
        finish(to);
    }

    // -------------------------------------------------------------------------------- power

    template <trace::packet_sink Sink>
    constexpr void on(event::mwait const& e, Sink& to) noexcept {
        ip_ = e.next;
        if (e.thread.state == 0 && e.thread.substate == 0) { return finish(to); }
        if (tells_power()) {
            enables const now = enables_now();
            emit(to, [&](auto& all) {
                using packet::mwait;
                if (now.context && !e.is_io && !e.is_pending) {
                    all.add(mwait{}.with(mwait::hints{wrapped{uint64_t{e.hints}}},
                                         mwait::ext{wrapped{uint64_t{e.ext}}}));
                }
                add_pwre(all, e.thread, false);
                add_exstop(all, form(e.at));
            });
        }
        sleep();
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::halt const& e, Sink& to) noexcept {
        enables const now = enables_now();
        ip_ = e.next;
        if (e.is_shutdown && tells_events(now, now)) {
            emit(to, [&](auto& all) {
                add_events(all, {packet::cfe_type::SHUTDOWN, 0, own_ip::always}, form(e.from), now);
            });
        }
        if (tells_power()) {
            emit(to, [&](auto& all) {
                add_pwre(all, {1, 0}, false);
                add_exstop(all, form(e.from));
            });
        }
        sleep();
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::duty_cycle const& e, Sink& to) noexcept {
        if (tells_power()) {
            emit(to, [&](auto& all) {
                add_pwre(all, {e.state, 0}, true);
                add_exstop(all, form(e.next));
            });
        }
        sleep();
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::wake const& e, Sink& to) noexcept {
        if (!clocks_.are_off) { return; }
        clocks_.are_off = false;
        if (triggers()) {
            emit(to, [&](auto& all) {
                add_times(all);
                if (tells_power()) { add_pwrx(all, e); }
            });
        }
        finish(to);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::clock_stop const& e, Sink& to) noexcept {
        if (clocks_.are_off) { return; }  // in a C-state nobody sees it: GEN-312
        if (tells_power()) {
            emit(to, [&](auto& all) { add_exstop(all, form(e.next)); });
        }
        sleep();
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::clock_resume const&, Sink& to) noexcept {
        if (!clocks_.are_off) { return; }
        clocks_.are_off = false;
        if (triggers()) {
            emit(to, [&](auto& all) { add_times(all); });
        }
        finish(to);
    }

    // -------------------------------------------------------------------------------- time

    /// What the clocks show, without that they ran there: where they begin, or were written.
    constexpr void set_clocks(clocks const& now) noexcept { clocks_ = now; }
    [[nodiscard]] constexpr auto clocks_now() const noexcept -> clocks const& { return clocks_; }

    template <trace::packet_sink Sink>
    constexpr void on(event::cycles const& e, Sink& to) noexcept {
        if (take_quietly(e)) { return; }
        now_.cycles = count(e).cycles;
        on(event::cycle_guard{}, to);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::cycle_guard const&, Sink& to) noexcept {
        if (!triggers() || !is_set<ctl::CYCEn>() || now_.cycles == 0) { return; }
        emit(to, [](auto& all) { all.add_cycles(); });
        finish(to);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::time const& e, Sink& to) noexcept {
        on(event::cycles{e.cycles}, to);
        auto const due = clocks_.until(e.art, static_cast<unsigned>(msrs_.ctl.get<ctl::MTCFreq>()));
        clocks_.run_to(e.art, e.tsc);
        if (!triggers() || !is_set<ctl::MTCEn>() || clocks_.are_off) { return; }
        for (uint64_t i = 0; i < due.count; ++i) {
            emit(to, [&](auto& all) { all.add(due.packet(i)); });
            finish(to);
        }
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::ratio const& e, Sink& to) noexcept {
        clocks_.core_to_bus = e.core_to_bus;
        if (triggers() && !clocks_.are_off) {
            emit(to, [&](auto& all) { all.add(cbr()); });
        }
        finish(to);
    }

    // -------------------------------------------------------------------------------- the unit

    template <trace::packet_sink Sink>
    constexpr void on(event::psb_due const&, Sink& to) noexcept {
        told_.owes_psb = triggers();
        finish(to);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::overflow const&, Sink& /*to*/) noexcept {
        if (!triggers()) { return; }
        loses_on_ = true;
        begin_overflow();
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::overflow_end const& e, Sink& to) noexcept {
        if (!loses_) { return; }
        ip_ = e.next;
        resolve_overflow(to);
    }

protected:
    using generator_system::take_quietly;

    /// Takes cycles behind which no packet is due. False where one is, for which there is `on`.
    [[nodiscard]] constexpr auto take_quietly(event::cycles const& e) noexcept -> bool {
        if (!triggers() || clocks_.are_off) { return true; }
        auto const counted = count(e);
        if (!counted.guard) { now_.cycles = counted.cycles; }
        return !counted.guard;
    }

private:
    [[nodiscard]] constexpr auto count(event::cycles const& e) const noexcept -> counted_cycles {
        return count_cycles(now_.cycles, e.passed, how_.cycle_counter_bits,
                            loses_ || !is_set<ctl::CYCEn>());
    }
    [[nodiscard]] constexpr auto tells_power() const noexcept -> bool {
        return triggers() && is_set<ctl::PwrEvtEn>();
    }
    /// The core clock stands still from now on. Source: GEN-210.
    constexpr void sleep() noexcept { clocks_.are_off = true; }
    static constexpr void add_pwre(auto& all, event::c_state thread, bool by_hardware) noexcept {
        using packet::pwre;
        all.add(pwre{}.with(pwre::HW{by_hardware},
                            pwre::substate{wrapped{uint64_t{thread.substate}}},
                            pwre::state{wrapped{uint64_t{thread.state}}}));
    }
    static constexpr void add_pwrx(auto& all, event::wake const& e) noexcept {
        using packet::pwrx;
        all.add(pwrx{}.with(pwrx::last{wrapped{uint64_t{e.last}}},
                            pwrx::deepest{wrapped{uint64_t{e.deepest}}},
                            pwrx::reason{wrapped{uint64_t{underlying(e.reason)}}}));
    }
    /// Source: GEN-317.
    constexpr void add_exstop(auto& all, uint64_t from) const noexcept {
        bool const with_ip = enables_now().context;
        all.add(packet::exstop{}.with(packet::exstop::IP{with_ip}));
        if (with_ip) { all.template add_ip<packet::fup>(from); }
    }
    /// A group of items, in pieces that fit into a group of packets. Source: GEN-320, GEN-321.
    template <class Sink>
    constexpr void emit_items(Sink& to, event::pebs_group const& which) noexcept {
        constexpr size_t at_once = 16;
        using packet::bbp;
        using packet::bip;
        size_t done = 0;
        do {
            size_t const end = which.count - done < at_once ? which.count : done + at_once;
            emit(to, [&](auto& all) {
                if (done == 0) {
                    all.add(bbp{}.with(bbp::type{wrapped{uint64_t{which.type}}},
                                       bbp::SZ{which.items_of_4}));
                }
                for (size_t i = done; i < end; ++i) {
                    auto const& item = which.items[i];
                    uint64_t const value = which.items_of_4 ? item.value & low_bits(32)
                                                            : item.value;
                    all.add(bip{}.with(bip::id{wrapped{uint64_t{item.id}}}).with_payload(value));
                }
            });
            done = end;
        } while (done < which.count && !loses_);
    }
};

/// An event that a generator takes.
template <class Generator, class Event, class Sink>
concept takes_event = requires(Generator& to, Event const& e, Sink& sink) { to.on(e, sink); };

}  // namespace ptspec::engine
