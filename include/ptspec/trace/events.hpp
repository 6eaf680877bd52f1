// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/binder.hpp>
#include <ptspec/trace/detail/simple_packets.hpp>
#include <ptspec/trace/no_clock.hpp>
#include <ptspec/trace/packet_errata.hpp>
#include <ptspec/trace/reader.hpp>

/// What happened: the events that the packets of a trace describe, with their IPs and times.
namespace ptspec::trace {

/// Reads the events of a trace in order.
///
/// An event whose IP is in a later FUP, TIP or PSB+ is returned after that packet; its time is that
/// of its own packet. Events of a PSB+ have its time and the IP of its FUP.
///
/// Damage is an event that names the violated rule. After bytes that are no packet, the reader
/// continues at the next PSB, as `reader` does. After a packet that violates only the order of
/// packets, it continues with that packet. If this loses the control flow, it omits the branches up
/// to the next IP, and the event `resumed` has that IP.
///
/// After an OVF, a later packet may decide whether tracing resumed at an IP: GEN-343, APL12. Events
/// from `resumed` on are returned after that packet; if they are many, the others before `resumed`.
///
/// The reader reads ahead up to the next packet other than TNT, TIP, PAD and timing packets.
///
/// Shape:  a value of about 4 KB with `Room` events, 16 or more. A copy continues independently.
/// Source: PKT-250..256, PKT-270..278; GEN-246; those of `binder` and `clock`.
template <event_clock Clock = no_clock, opcode_hook Hook = no_hook, class Packets = packet::all,
          unsigned Room = 32>
class event_reader : public read_by_next<event> {
public:
    /// Reads a whole trace from its first PSB on; from its first byte if `how.sync` is false. Then
    /// IPs, and the state of the processor, are unknown up to the first PSB.
    constexpr explicit event_reader(borrowed_bytes whole, Clock clock = {},
                                    cpu::quirk_set quirks = {}, Hook hook = {},
                                    reader_options how = from_first_psb) noexcept
        : reader_{whole, how, hook},
          clock_{clock},
          binder_{quirks},
          quirks_{quirks},
          errata_{quirks},
          has_last_ip_{how.sync} {}
    /// Reads a trace that arrives in chunks.
    constexpr explicit event_reader(Clock clock = {}, cpu::quirk_set quirks = {}, Hook hook = {},
                                    reader_options how = from_first_psb) noexcept
        : reader_{how, hook},
          clock_{clock},
          binder_{quirks},
          quirks_{quirks},
          errata_{quirks},
          has_last_ip_{how.sync} {}

    template <class Other>
        requires(!event_clock<Other>)
    event_reader(borrowed_bytes, Other const&) = delete;  // clock, quirks

    /// Gives the next chunk: at the start, and after `event_type::need_input`. At other times it
    /// returns false and changes nothing.
    [[nodiscard]] constexpr auto feed(borrowed_bytes chunk) noexcept -> bool {
        return reader_.feed(chunk);
    }
    /// Ends the trace: no more chunks follow.
    constexpr void finish() noexcept { reader_.finish(); }

    /// The next event. It stays valid until the next call.
    [[nodiscard]] constexpr auto next() noexcept -> event const& {
        if (first_ == ready_) [[unlikely]] { refill(buffer{}); }
        return events_[first_++];
    }
    /// The next event after branches that need no binding: `out` gets these instead, as
    /// `detail::event_buffer` does, and returns false to stop: then the result may be nullptr.
    template <class Out>
    [[nodiscard]] constexpr auto next_after(Out out) noexcept -> event const* {
        if (first_ == ready_) { refill(out); }
        return first_ == ready_ ? nullptr : &events_[first_++];
    }
    /// The state of the processor after the last event that `next` returned.
    [[nodiscard]] constexpr auto state() const noexcept -> execution_state const& {
        return first_ == ready_ ? binder_.state() : before_;
    }
    /// The clock, which may have read ahead.
    [[nodiscard]] constexpr auto clock() const noexcept -> Clock const& { return clock_; }

private:
    using kind = packet::kind;
    static constexpr reader_options from_first_psb{.sync = true};
    static constexpr unsigned room = Room;
    /// The maximum number of events pending for one IP. More are returned without an IP. One packet
    /// adds up to three events.
    static constexpr unsigned max_pending = room - 6;
    static constexpr unsigned max_aside = 2;  ///< FUP and PIP

    // ------------------------------------------------------------------------- the events
    // [first_, ready_) are ready to return. The next `held_` are held while it is in doubt whether
    // those of them that are `resumed` happened. [first_pending(), count_) are pending: their IP is
    // not known yet.

    struct buffer {};  // of events
    template <class Out>
    constexpr void refill(Out out) noexcept {
        unsigned const waiting = count_ - ready_;
        for (unsigned i = 0; i < waiting; ++i) { events_[i] = events_[ready_ + i]; }
        first_ = ready_ = 0;
        count_ = waiting;
        before_ = binder_.state();
        while (ready_ == 0) {
            if (count_ > max_pending) { return make_room(); }
            if (has_item_) {
                has_item_ = false;
                add(item_);
            } else if (needs_single_packets()) {
                (void)errata_.skip(reader_);
                add(reader_.next());
            } else if constexpr (same_as<Out, buffer>) {
                read_simple_packets();
            } else if (!pass_simple_packets(out)) {
                return;
            }
        }
        if (!has_last_ip_) [[unlikely]] { hide_ips(); }
    }
    /// Before the first PSB a compressed IP is not known.
    constexpr void hide_ips() noexcept {
        for (unsigned i = 0; i < ready_ + held_; ++i) {
            events_[i].has_ip = events_[i].has_to = false;
            events_[i].ip = events_[i].to = 0;
        }
    }
    /// Visits packets up to one that needs binding, or until `out` stops.
    template <class Out>
    constexpr auto visit_simple_packets(Out out) noexcept -> detail::simple_packets<Clock, Out> {
        bool const has_no_pending = count_ == 0;
        bool const takes_branches = binder_.binds_branches() && has_no_pending;
        detail::simple_packets<Clock, Out> plain{
            out, &clock_, &item_, &binder_, &disabled_, takes_branches, has_no_pending};
        (void)reader_.for_each(plain);
        has_item_ = plain.has_stopped;
        return plain;
    }
    [[gnu::noinline]]  // inlined, a trace without CYCs takes 4 % more instructions (g++ 12)
    constexpr void
    read_simple_packets() noexcept {
        auto const plain = visit_simple_packets(
            detail::event_buffer<Clock>{events_ + count_, events_ + room});
        if (!plain.has_no_pending) { return; }
        count_ = ready_ = static_cast<unsigned>(plain.out.next - events_);
    }
    /// False if `out` has stopped.
    template <class Out>
    constexpr auto pass_simple_packets(Out out) noexcept -> bool {
        if constexpr (requires { out.end_skipping(); }) { out.end_skipping(); }
        auto const plain = visit_simple_packets(out);
        return has_item_ || !plain.out.has_stopped();
    }
    [[nodiscard]] constexpr auto needs_single_packets() const noexcept -> bool {
        return quirks_.bits != 0 && (errata_.needs_next() || quirks_.has(cpu::quirk::bdm64));
    }
    /// Appends a pending event.
    constexpr void add_pending(event const& one) noexcept {
        events_[count_] = one;
        ++count_;
    }
    constexpr void add_ready(event const& one) noexcept {
        add_pending(one);
        complete_pending();
    }
    /// Makes all pending events ready, or holds them.
    constexpr void complete_pending() noexcept {
        awaits_abort_ = false;
        if (binder_.may_have_resumed()) [[unlikely]] {
            held_ = count_ - ready_;
        } else {
            held_ = 0;
            ready_ = count_;
        }
    }
    constexpr void release() noexcept {
        if (binder_.may_have_resumed()) [[unlikely]] { return; }
        ready_ += held_;
        held_ = 0;
    }
    [[nodiscard]] constexpr auto first_pending() const noexcept -> unsigned {
        return ready_ + held_;
    }
    /// Sets the IP of all pending events, and makes them ready.
    constexpr void complete_pending_at(uint64_t ip) noexcept {
        for (unsigned i = first_pending(); i < count_; ++i) {
            events_[i].has_ip = true;
            events_[i].ip = ip;
        }
        complete_pending();
    }
    /// Inserts an event, which is complete, at `place`.
    constexpr void insert(unsigned place, event const& one) noexcept {
        for (unsigned i = count_; i > place; --i) { events_[i] = events_[i - 1]; }
        events_[place] = one;
        ++count_;
        ++held_;
        release();
    }

    // ------------------------------------------------------------------------- after an OVF

    /// Decides about the held events that are `resumed`.
    constexpr void settle(resumption how) noexcept {
        if (how < resumption::withdrawn) { return release(); }
        unsigned const end = first_pending();
        unsigned keep = ready_;  // up to here, if only the last did not happen
        for (unsigned i = ready_; how != resumption::refuted && i < end; ++i) {
            if (events_[i].what == event_type::resumed) { keep = i; }
        }
        unsigned to = keep;
        for (unsigned i = keep; i < count_; ++i) {
            if (i < end && events_[i].what == event_type::resumed) { continue; }
            events_[to] = events_[i];
            ++to;
        }
        held_ -= count_ - to;
        count_ = to;
        if (how == resumption::at_fup) { resume_at_fup(); }
        release();
    }
    /// The FUP that opened the pending compound event was that of the OVF. A MODE.Exec after it
    /// stays pending.
    constexpr void resume_at_fup() noexcept {
        unsigned const begin = first_pending();
        for (unsigned i = begin; i < count_; ++i) {
            if (events_[i].what == event_type::async_branch) {
                events_[i].what = event_type::resumed;
            }
        }
        bool const has_mode = count_ > begin && events_[count_ - 1].what == event_type::exec_mode;
        held_ = count_ - has_mode - ready_;
    }
    /// Returns held events before those that are `resumed`, else pending events without an IP.
    constexpr void make_room() noexcept {
        if (held_ == 0) { return complete_pending(); }
        unsigned const end = first_pending();
        for (unsigned i = 0; i < end; ++i) {
            if (events_[i].what == event_type::resumed) { continue; }
            event const one = events_[i];
            for (unsigned place = i; place > ready_; --place) {
                events_[place] = events_[place - 1];
            }
            events_[ready_] = one;
            ++ready_;
        }
        if (ready_ == 0) { ready_ = 1; }
        held_ = end - ready_;
    }

    // ------------------------------------------------------------------------- items

    constexpr auto made(event_type what, item const& got) noexcept -> event {
        return {.what = what,
                .enabled = binder_.in_overflow() ? tracing::unknown : binder_.state().enabled,
                .offset = got.offset,
                .packet = got.packet,
                .when = time_of(got)};
    }
    /// The time of the packet that the clock has got last. Only some packets have a CYC: GEN-213.
    [[nodiscard]] constexpr auto time_of(item const& got) const noexcept -> time {
        bool const has_cyc = got.what == item_type::packet &&
                             packet::cyc_kinds.has(got.packet.kind());
        return has_cyc ? clock_.now() : clock_.now_without_cyc();
    }

    constexpr void add(item const& got) noexcept {
        switch (got.what) {
            case item_type::packet: return add_packet(got);
            case item_type::unknown: return add_ready(made(event_type::unknown, got));
            case item_type::synced: return lose(event_type::synced, got);
            case item_type::damage: return lose(event_type::damage, got);
            case item_type::resynced: return lose(event_type::resynced, got);
            case item_type::lost: return lose(event_type::lost, got);
            case item_type::need_input: return add_need_input(got);
            case item_type::end:
                settle(binder_.end_doubt());
                leave_event();
                return add_ready({.what = event_type::end, .offset = got.offset});
        }
    }
    /// Returns the end of the chunk before the pending events, which stay pending.
    constexpr void add_need_input(item const& got) noexcept {
        for (unsigned i = count_; i > 0; --i) { events_[i] = events_[i - 1]; }
        events_[0] = {.what = event_type::need_input, .offset = got.offset};
        ++count_;
        ready_ = 1;
    }
    constexpr void lose(event_type what, item const& got) noexcept {
        settle(binder_.end_doubt());
        leave_event();
        binder_.restart();
        clock_.lose();
        auto one = made(what, got);
        one.error = got.error;
        one.broken = got.broken;
        one.skipped = got.skipped < 0             ? 0
                      : got.skipped > 0xFFFF'FFFF ? 0xFFFF'FFFF
                                                  : static_cast<uint32_t>(got.skipped);
        add_ready(one);
    }

    // ------------------------------------------------------------------------- packets

    constexpr void add_packet(item got) noexcept {
        if (quirks_.bits != 0) {
            auto const more = errata_.correct(got, reader_);
            if (more.what == item_type::need_input) {
                item_ = got;
                has_item_ = true;
                return add_need_input(more);
            }
            if (awaits_abort_) { end_wait_for_abort(got); }
        }
        bool const was_lost = binder_.is_lost();
        bool const was_in_event = binder_.in_event();
        auto const was = binder_.state().enabled;
        auto const bound = binder_.add(got.packet, {got.offset, got.ip, got.length});
        rule const bad_time = clock_.add(got.packet);
        rule const broken = bound.broken != rule::none ? bound.broken : bad_time;
        if (held_ != 0) [[unlikely]] { settle(bound.resumed); }
        if (was_in_event) [[unlikely]] { continue_event(got, bound); }
        if (broken != rule::none) { add_damage(got, bound, broken); }
        switch (bound.to) {
            case owner::none: return add_unbound(got, bound);
            case owner::status: return add_status(got);
            case owner::branch:
            case owner::far_transfer:
            case owner::asynchronous:
            case owner::entry:
            case owner::interrupt_flag: return add_flow(got, bound, was_lost, was);
            case owner::paging: return add_ready(made(detail::type_of(got.packet.kind()), got));
            case owner::transaction:
            case owner::transaction_abort: return add_transaction(got, bound);
            case owner::overflow: return add_overflow(got);
            case owner::ptwrite:
            case owner::power:
            case owner::pebs:
            case owner::control_flow:
            case owner::trigger:
            case owner::trace_stop: return add_value(got, bound);
        }
    }

    /// After a packet while an asynchronous event is pending. If it is an INIT, its events wait for
    /// the TIP of the SIPI, and what comes between is returned first. Source: GEN-290.
    [[gnu::noinline]] constexpr void continue_event(item const& got, binding bound) noexcept {
        bool const is_fup = got.packet.is<packet::fup>();
        if (!binder_.in_event() || (is_fup && bound.to == owner::asynchronous)) {
            bool const ends = bound.to == owner::asynchronous && !is_fup;
            return ends ? return_to_event() : leave_event();
        }
        if (bound.to == owner::asynchronous) { return return_to_event(); }
        if (is_interrupted_ || packet::unbound_kinds.has(got.packet.kind())) { return; }
        is_interrupted_ = true;
        unsigned const begin = first_pending();
        if (count_ - begin > max_aside) { return complete_pending(); }
        for (; begin + aside_ < count_; ++aside_) { set_aside_[aside_] = events_[begin + aside_]; }
        count_ = begin;
    }
    /// The events of an INIT are pending again.
    constexpr void return_to_event() noexcept {
        if (!is_interrupted_) { return; }
        complete_pending();
        for (unsigned i = 0; i < aside_; ++i) { add_pending(set_aside_[i]); }
        is_interrupted_ = false, aside_ = 0;
    }
    constexpr void leave_event() noexcept {
        if (!is_interrupted_) { return; }
        is_interrupted_ = false;
        if (!binder_.in_psb_plus()) { complete_pending(); }  // else they are those of the PSB+
        for (unsigned i = 0; i < aside_; ++i) { insert(first_pending(), set_aside_[i]); }
        aside_ = 0;
    }
    constexpr void add_damage(item const& got, binding bound, rule broken) noexcept {
        auto one = made(bound.is_note ? event_type::note : event_type::damage, got);
        one.broken = broken;
        if (bound.broken != rule::none && binder_.violated().offset != got.offset) {
            one.offset = binder_.violated().offset;
            one.packet = packet::any_packet::of_kind(binder_.violated().which);
        }
        unsigned place = first_pending();
        if (bound.resumed == resumption::confirmed && bound.broken == rule::GEN_227) {
            // Before the IP at which tracing resumed.
            for (unsigned i = 0; i < first_pending(); ++i) {
                if (events_[i].what == event_type::resumed) { place = i; }
            }
        } else if (bound.to != owner::status &&
                   (bound.to != owner::asynchronous || got.packet.is<packet::fup>())) {
            return add_ready(one);
        }
        insert(place, one);  // the event that the packet continues stays whole
    }

    /// BDM64: the target before an abort may be wrong.
    constexpr void end_wait_for_abort(item const& got) noexcept {
        if (packet::unbound_kinds.has(got.packet.kind())) { return; }
        event& branch = events_[first_pending()];
        if (got.packet.is<packet::mode_tsx>() &&
            got.packet.as<packet::mode_tsx>().get<packet::mode_tsx::TXAbort>()) {
            branch.has_to = false;
            branch.to = 0;
            branch.packet = packet::tip{};
        }
        complete_pending();
    }

    constexpr void add_unbound(item const& got, binding bound) noexcept {
        switch (got.packet.kind()) {
            case kind::cbr:
            case kind::mnt: {
                auto one = made(detail::type_of(got.packet.kind()), got);
                one.is_status = binder_.in_psb_plus();
                // Inside a compound event they are returned first.
                return one.is_status || awaits_abort_ ? add_pending(one)
                                                      : insert(first_pending(), one);
            }
            case kind::psb:
                complete_pending();
                if (!has_last_ip_) [[unlikely]] {
                    hide_ips();
                    disabled_ = stopped_ = {};
                    has_last_ip_ = true;
                }
                return;
            case kind::psbend: return end_psb_plus(got, bound);
            default: return;
        }
    }
    constexpr void add_status(item const& got) noexcept {
        if (got.packet.is<packet::fup>()) { return; }
        auto one = made(detail::type_of(got.packet.kind()), got);
        one.is_status = true;
        add_pending(one);
    }
    constexpr void end_psb_plus(item const& got, binding bound) noexcept {
        auto one = made(event_type::psb, got);
        one.when = clock_.now_of_psb_plus();
        for (unsigned i = first_pending(); i < count_; ++i) { events_[i].when = one.when; }
        psb_plus const& reported = binder_.last_psb_plus();
        one.has_ip = bound.in_psb_plus && reported.has_ip;
        one.ip = one.has_ip ? reported.ip : 0;
        if (one.has_ip) { complete_pending_at(one.ip); }
        add_ready(one);
        if (bound.resumed == resumption::possible) {
            one.what = event_type::resumed;
            one.offset = reported.fup_offset;
            one.packet = reported.fup;
            add_ready(one);
        }
    }

    constexpr void add_flow(item const& got, binding bound, bool was_lost, tracing was) noexcept {
        switch (got.packet.kind()) {
            case kind::tnt_short:
            case kind::tnt_long:
                if (!binder_.is_lost()) { add_ready(made(event_type::branches, got)); }
                return;
            case kind::tip: return add_tip(got, bound, was_lost, was);
            case kind::tip_pge: {
                auto one = made(event_type::enabled, got);
                one.has_ip = got.packet.as<packet::tip_pge>().has_ip();
                one.ip = got.ip;
                event const mode = take_mode();
                add_ready(one);
                return ready_mode(mode, got.ip);
            }
            case kind::tip_pgd: return add_tip_pgd(got, bound);
            case kind::fup:
                if (bound.to == owner::interrupt_flag) { return ready_mode(take_mode(), got.ip); }
                if (bound.broken != rule::PKT_078) {
                    give_ip_to_control_flow(got.ip);
                    auto one = made(event_type::async_branch, got);
                    one.has_ip = true;
                    one.ip = got.ip;
                    complete_pending();
                    add_pending(one);
                }
                return;
            case kind::mode_exec:
                if (bound.to != owner::asynchronous) { complete_pending(); }
                [[fallthrough]];
            default: return add_pending(made(detail::type_of(got.packet.kind()), got));
        }
    }
    /// A CFE without an IP belongs to the compound event that follows. Source: PKT-222.
    constexpr void give_ip_to_control_flow(uint64_t ip) noexcept {
        for (unsigned i = first_pending(); i < count_; ++i) {
            if (events_[i].what == event_type::control_flow ||
                events_[i].what == event_type::event_data) {
                events_[i].has_ip = true;
                events_[i].ip = ip;
            }
        }
    }
    /// Removes the pending MODE.Exec, if there is one.
    constexpr auto take_mode() noexcept -> event {
        if (count_ > first_pending() && events_[count_ - 1].what == event_type::exec_mode) {
            --count_;
            return events_[count_];
        }
        return {};
    }
    constexpr void ready_mode(event mode, uint64_t ip) noexcept {
        if (mode.what != event_type::exec_mode) { return; }
        mode.has_ip = true;
        mode.ip = ip;
        add_ready(mode);
    }
    constexpr void add_tip(item const& got, binding bound, bool was_lost, tracing was) noexcept {
        bool const has_to = got.packet.as<packet::tip>().has_ip();
        if (bound.to == owner::asynchronous || bound.to == owner::transaction_abort) {
            return end_async(got, event_type::async_branch, has_to);
        }
        event const mode = take_mode();
        bool const resumes = was_lost || was == tracing::off || was == tracing::unknown;
        auto one = made(resumes ? event_type::resumed : event_type::indirect_branch, got);
        (resumes ? one.has_ip : one.has_to) = has_to;
        (resumes ? one.ip : one.to) = got.ip;
        if (quirks_.has(cpu::quirk::bdm64) && bound.to == owner::branch && !resumes) {
            complete_pending();
            add_pending(one);
            awaits_abort_ = true;
            return;
        }
        add_ready(one);
        ready_mode(mode, got.ip);
    }
    constexpr void add_tip_pgd(item const& got, binding bound) noexcept {
        bool const has_to = got.packet.as<packet::tip_pgd>().has_ip();
        disabled_ = {has_to, got.ip};
        if (bound.to == owner::asynchronous || bound.to == owner::transaction_abort) {
            return end_async(got, event_type::async_disabled, has_to);
        }
        auto one = made(event_type::disabled, got);
        one.has_to = has_to;
        one.to = got.ip;
        add_ready(one);
    }
    /// A TIP or TIP.PGD ends a compound event. The state that its other packets carry applies at
    /// the IP of the last: PKT-270.
    constexpr void end_async(item const& got, event_type what, bool has_to) noexcept {
        bool has_event = false;
        for (unsigned i = first_pending(); i < count_; ++i) {
            auto& one = events_[i];
            one.when = clock_.now();
            if (one.what == event_type::async_branch) {
                has_event = true;
                one.what = what;
                one.has_to = has_to;
                one.to = got.ip;
            } else {
                one.has_ip = has_to;
                one.ip = got.ip;
            }
        }
        if (!has_event) {  // it was returned without its end
            auto one = made(what, got);
            one.has_to = has_to;
            one.to = got.ip;
            insert(first_pending(), one);
        }
        complete_pending();
    }

    constexpr void add_transaction(item const& got, binding bound) noexcept {
        switch (got.packet.kind()) {
            case kind::mode_tsx:
                complete_pending();
                add_pending(made(event_type::transaction, got));
                if (bound.completes) { complete_pending(); }
                return;
            case kind::fup: {
                complete_pending_at(got.ip);
                if (bound.completes) { return; }
                auto one = made(event_type::async_branch, got);
                one.has_ip = true;
                one.ip = got.ip;
                return add_pending(one);
            }
            case kind::tip: return add_tip(got, bound, false, tracing::on);
            default: return add_tip_pgd(got, bound);
        }
    }
    constexpr void add_overflow(item const& got) noexcept {
        complete_pending();
        if (got.packet.is<packet::ovf>()) { return add_ready(made(event_type::overflow, got)); }
        auto one = made(event_type::resumed, got);
        one.has_ip = true;
        one.ip = got.ip;
        add_ready(one);
    }
    /// PTW, the packets of power events, PEBS, event trace, TRIG, TraceStop, and their FUP.
    constexpr void add_value(item const& got, binding bound) noexcept {
        if (got.packet.is<packet::fup>()) {
            if (bound.to == owner::power) { stopped_ = {true, got.ip}; }
            return complete_pending_at(got.ip);
        }
        auto one = made(detail::type_of(got.packet.kind()), got);
        switch (got.packet.kind()) {
            case kind::tracestop:
                one.has_ip = disabled_.is_known;
                one.ip = disabled_.ip;
                return add_ready(one);
            case kind::pwrx:
                one.has_ip = stopped_.is_known;
                one.ip = stopped_.ip;
                stopped_ = {};
                return add_ready(one);
            case kind::bbp:
            case kind::bip: return add_ready(one);
            case kind::mwait:
            case kind::pwre:
            case kind::evd: return add_pending(one);
            default: break;
        }
        add_pending(one);
        bool const may_be_compound = got.packet.is<packet::cfe>() &&
                                     binder_.state().enabled != tracing::off;
        if (bound.completes && !may_be_compound) { complete_pending(); }
    }

    reader<Hook, Packets> reader_;
    Clock clock_;
    binder binder_;
    cpu::quirk_set quirks_;
    packet_errata errata_;
    unsigned first_ = 0;
    unsigned ready_ = 0;
    unsigned held_ = 0;
    unsigned count_ = 0;
    bool has_last_ip_ = true;      ///< a PSB was read
    bool has_item_ = false;        ///< `item_` is the next item
    bool awaits_abort_ = false;    ///< BDM64: the first pending event is an indirect branch
    detail::known_ip disabled_{};  ///< the IP of the last TIP.PGD
    detail::known_ip stopped_{};   ///< where the core clock stopped
    item item_{};
    execution_state before_{};     ///< before the events that are ready
    bool is_interrupted_ = false;  ///< other packets came after those of an INIT
    unsigned aside_ = 0;
    event set_aside_[max_aside]{};  ///< of an INIT
    event events_[room]{};
};

}  // namespace ptspec::trace
