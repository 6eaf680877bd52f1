// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/binder.hpp>
#include <ptspec/trace/detail/event_queue.hpp>
#include <ptspec/trace/detail/simple_packets.hpp>
#include <ptspec/trace/no_clock.hpp>
#include <ptspec/trace/packet_errata.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/base/attribute.hpp>

/// What happened: the events that the packets of a trace describe, with their IPs and times.
namespace ptspec::trace {

/// Reads the events of a trace in order.
///
/// An event whose IP is in a later FUP, TIP or PSB+ is returned after that packet; its time is that
/// of its own packet, or of the TIP that ends a compound event. Events of a PSB+ have its time and
/// the IP of its FUP.
///
/// Damage is an event that names the violated rule. After bytes that are no packet, the reader
/// continues at the next PSB, as `reader` does. After a packet that violates only the order of
/// packets, it continues with that packet. If this loses the control flow, the event `resumed` has
/// the next IP. Branches before it, and before the first packet that shows PacketEn, are at unknown
/// IPs: their `enabled` is `unknown`.
///
/// After an OVF, a later packet may decide whether tracing resumed at an IP: GEN-343, APL12. Events
/// from `resumed` on are returned after that packet. If there are too many, the events other than
/// `resumed` are returned earlier.
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
    /// Where reading continues, in bytes from the start of the trace. `next` may not have returned
    /// all events of the packets before it yet.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t {
        return has_item_ ? item_.offset : reader_.offset();
    }

    /// The next event. It stays valid until the next call.
    [[nodiscard]] constexpr auto next() noexcept -> event const& {
        if (!events_.has_ready()) [[unlikely]] { refill(buffer{}); }
        return events_.all[events_.first++];
    }
    /// Passes packets that need no binding to `out`, which is like `detail::event_buffer`. Returns
    /// the next event after them, or perhaps nullptr if a function of `out` returns false.
    template <class Out>
    [[nodiscard]] constexpr auto next_after(Out out) -> event const* {
        if (!events_.has_ready()) { refill(out); }
        return events_.has_ready() ? &events_.all[events_.first++] : nullptr;
    }
    /// The state of the processor after the last event that `next` returned.
    [[nodiscard]] constexpr auto state() const noexcept -> execution_state {
        if (!events_.has_ready()) { return binder_.state(); }
        execution_state now = before_;
        now.enabled = events_.all[events_.first - 1].enabled;
        return now;
    }
    /// The clock, which may have read ahead.
    [[nodiscard]] constexpr auto clock() const noexcept -> Clock const& { return clock_; }

private:
    using kind = packet::kind;
    static constexpr reader_options from_first_psb{.sync = true};
    static constexpr unsigned max_aside = 2;  ///< FUP and PIP
    static constexpr unsigned max_added = max_aside + 3;  ///< a damage, its own and `resumed`
    /// The maximum number of events that wait for a packet. If more events wait, the pending events
    /// are returned without an IP. `event_buffer` needs room for one more.
    static constexpr unsigned max_waiting = Room - max_added - 1;
    /// The packets that change more of the state than PacketEn.
    static constexpr packet::kind_set changes_state = packet::kinds_of(
        kind::pip, kind::vmcs, kind::mode_exec, kind::mode_tsx);

    // ------------------------------------------------------------------------- reading

    struct buffer {};  // of events
    template <class Out>
    constexpr void refill(Out out) {
        events_.compact();
        if (events_.count == 0) { before_ = binder_.state(); }
        while (events_.ready == 0) {
            if (events_.count > max_waiting) { return make_room(); }
            if (has_item_) {
                has_item_ = false;
                add(item_);
            } else if (needs_single_packets()) {
                (void)errata_.skip(reader_);
                add(reader_.next());
            } else if constexpr (same_as<Out, buffer>) {
                read_batch();
            } else if (!pass_simple_packets(out)) {
                return;
            }
        }
        if (!has_last_ip_) [[unlikely]] { events_.hide_ips(); }
    }
    /// Visits packets up to one that `out` does not take.
    template <class Out>
    constexpr auto visit_simple_packets(Out out) -> detail::simple_packets<Clock, Out> {
        bool const has_no_pending = events_.count == 0;
        bool const takes_branches = binder_.binds_branches() && has_no_pending;
        detail::simple_packets<Clock, Out> plain{
            out, &clock_, &item_, &binder_, &disabled_, takes_branches, has_no_pending};
        (void)reader_.for_each(plain);
        has_item_ = plain.has_stopped;
        return plain;
    }
    /// Writes events of simple packets, and binds the others, until a packet may change more of the
    /// state than PacketEn.
    struct batch : detail::event_buffer<Clock> {
        event_reader* by;

        constexpr auto bind(packet::any_packet const& which, packet_place where,
                            bool has_no_pending) noexcept -> detail::after_binding {
            auto const after = by->bind_in_batch(which, where, this->next, has_no_pending);
            this->next = after.next;
            return after;
        }
    };
    constexpr auto bind_in_batch(packet::any_packet const& which, packet_place where, event* next,
                                 bool has_no_pending) noexcept -> detail::after_binding {
        if (has_no_pending) { end_simple_packets(next); }
        if (!may_bind(which.kind())) {
            // Made by the visitor, events with times take 10 % more instructions (g++ 12).
            item_ = {.what = item_type::packet,
                     .length = static_cast<uint8_t>(where.length),
                     .offset = where.offset,
                     .ip = where.ip,
                     .packet = which};
            return {.next = next, .has_no_pending = has_no_pending, .has_stopped = true};
        }
        bool const had_ready = events_.ready != 0;
        add_packet(which, where);
        bool const is_ready = events_.is_ready();
        return {.next = events_.all + events_.count,
                .has_no_pending = is_ready,
                .takes_branches = is_ready && binder_.binds_branches(),
                .goes_on = had_ready || events_.ready == 0 || binder_.state() == before_};
    }
    constexpr void end_simple_packets(event const* next) noexcept {
        events_.count = events_.ready = static_cast<unsigned>(next - events_.all);
    }
    /// True if a batch can bind the packet: it changes only PacketEn in the state of ready events.
    [[nodiscard]] constexpr auto may_bind(kind which) const noexcept -> bool {
        if (quirks_.bits != 0 || events_.count > max_waiting) { return false; }
        auto const enabled = binder_.state().enabled;
        bool const is_known = enabled == tracing::on || enabled == tracing::off;
        return events_.ready == 0 || (is_known && !changes_state.has(which));
    }
    /// noinline: inlined, a trace without CYCs takes 4 % more instructions (g++ 12).
    PTSPEC_ATTRIBUTE(noinline)
    constexpr void read_batch() noexcept {
        unsigned const begin = events_.count;
        auto const plain = visit_simple_packets(
            batch{{events_.all + begin, events_.all + Room}, this});
        if (plain.has_no_pending) { end_simple_packets(plain.out.next); }
    }
    /// False if `out` has stopped.
    template <class Out>
    constexpr auto pass_simple_packets(Out out) -> bool {
        if constexpr (requires { out.end_skipping(); }) { out.end_skipping(); }
        auto const plain = visit_simple_packets(out);
        return has_item_ || !plain.out.has_stopped();
    }
    [[nodiscard]] constexpr auto needs_single_packets() const noexcept -> bool {
        return quirks_.bits != 0 && (errata_.needs_next() || quirks_.has(cpu::quirk::bdm64));
    }

    // ------------------------------------------------------------------------- the events

    constexpr void add_ready(event const& one) noexcept {
        events_.put(one);
        complete_pending();
    }
    constexpr void complete_pending() noexcept {
        awaits_abort_ = false;
        events_.complete(binder_.may_have_resumed());
    }
    constexpr void complete_pending_at(uint64_t ip) noexcept {
        events_.set_ip_of_pending(ip);
        complete_pending();
    }
    constexpr void release() noexcept {
        if (!binder_.may_have_resumed()) [[likely]] { events_.release(); }
    }
    constexpr void insert(unsigned place, event const& one) noexcept {
        events_.insert(place, one);
        release();
    }
    /// After an OVF: keeps or removes the held events `resumed`.
    constexpr void settle(resumption how) noexcept {
        if (how >= resumption::withdrawn) {
            events_.withdraw(how == resumption::refuted);
            if (how == resumption::at_fup) { events_.resume_at_fup(); }
        }
        release();
    }
    /// Makes the held events other than `resumed` ready. If no event is held, makes the pending
    /// events ready without an IP.
    constexpr void make_room() noexcept {
        events_.held == 0 ? complete_pending() : events_.release_some();
    }

    // ------------------------------------------------------------------------- items

    [[nodiscard]] constexpr auto known_enabled() const noexcept -> tracing {
        return binder_.in_overflow() ? tracing::unknown : binder_.state().enabled;
    }
    /// The event of a packet, at the time that the clock has after it. Only some packets have a
    /// CYC, and the status packets of a PSB+ have none: GEN-213.
    constexpr auto made(event_type what, packet::any_packet const& which,
                        packet_place where) noexcept -> event {
        bool const has_cyc = packet::cyc_kinds.has(which.kind()) && !binder_.in_psb_plus();
        return {.what = what,
                .enabled = known_enabled(),
                .offset = where.offset,
                .packet = which,
                .when = has_cyc ? clock_.now() : clock_.now_without_cyc()};
    }
    /// Appends the event of a packet, which is pending.
    constexpr auto put(event_type what, packet::any_packet const& which,
                       packet_place where) noexcept -> event& {
        events_.put(made(what, which, where));
        return events_.all[events_.count - 1];
    }
    constexpr void put_ready(event_type what, packet::any_packet const& which,
                             packet_place where) noexcept {
        (void)put(what, which, where);
        complete_pending();
    }
    constexpr auto made(event_type what, item const& got) noexcept -> event {
        return {.what = what,
                .enabled = known_enabled(),
                .offset = got.offset,
                .packet = got.packet,
                .when = clock_.now_without_cyc()};
    }

    constexpr void add(item const& got) noexcept {
        switch (got.what) {
            case item_type::packet: return add_packet_item(got);
            case item_type::unknown:
                clock_.pass();
                return add_ready(made(event_type::unknown, got));
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
        events_.put_first({.what = event_type::need_input, .offset = got.offset});
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

    constexpr void add_packet_item(item got) noexcept {
        if (quirks_.bits != 0) {
            auto const more = errata_.correct(got, reader_);
            if (more.what == item_type::need_input) {
                item_ = got;
                has_item_ = true;
                return add_need_input(more);
            }
            if (awaits_abort_) { end_wait_for_abort(got.packet); }
        }
        add_packet(got.packet, {got.offset, got.ip, got.length});
    }
    constexpr void add_packet(packet::any_packet const& which, packet_place where) noexcept {
        bool const was_lost = binder_.is_lost() || binder_.in_overflow();
        bool const was_in_event = binder_.in_event();
        auto const was = binder_.state().enabled;
        auto const bound = binder_.add(which, where);
        rule const bad_time = clock_.add(which);
        rule const broken = bound.broken != rule::none ? bound.broken : bad_time;
        if (events_.held != 0) [[unlikely]] { settle(bound.resumed); }
        if (was_in_event) [[unlikely]] { continue_event(which, bound); }
        if (broken != rule::none) { add_damage(which, where, bound, broken); }
        switch (bound.to) {
            case owner::none: return add_unbound(which, where, bound);
            case owner::status: return add_status(which, where);
            case owner::branch:
            case owner::far_transfer:
            case owner::asynchronous:
            case owner::entry:
            case owner::interrupt_flag: return add_flow(which, where, bound, was_lost, was);
            case owner::paging: return put_ready(detail::type_of(which.kind()), which, where);
            case owner::transaction:
            case owner::transaction_abort: return add_transaction(which, where, bound);
            case owner::overflow: return add_overflow(which, where);
            case owner::ptwrite:
            case owner::power:
            case owner::pebs:
            case owner::control_flow:
            case owner::trigger:
            case owner::trace_stop: return add_value(which, where, bound);
        }
    }

    /// Called after each packet while an asynchronous event is pending. The events of an INIT wait
    /// for the TIP of the SIPI; the events between are returned first. Source: GEN-290.
    constexpr void continue_event(packet::any_packet const& which, binding bound) noexcept {
        bool const is_fup = which.is<packet::fup>();
        if (!binder_.in_event() || (is_fup && bound.to == owner::asynchronous)) {
            bool const ends = bound.to == owner::asynchronous && !is_fup;
            return ends ? return_to_event() : leave_event();
        }
        if (bound.to == owner::asynchronous) { return return_to_event(); }
        if (is_interrupted_ || packet::unbound_kinds.has(which.kind())) { return; }
        is_interrupted_ = true;
        unsigned const begin = events_.first_pending();
        if (events_.count - begin > max_aside) { return complete_pending(); }
        for (; begin + aside_ < events_.count; ++aside_) {
            set_aside_[aside_] = events_.all[begin + aside_];
        }
        events_.count = begin;
    }
    /// Makes the events of an INIT pending again.
    constexpr void return_to_event() noexcept {
        if (!is_interrupted_) { return; }
        complete_pending();
        for (unsigned i = 0; i < aside_; ++i) { events_.put(set_aside_[i]); }
        is_interrupted_ = false, aside_ = 0;
    }
    constexpr void leave_event() noexcept {
        if (!is_interrupted_) { return; }
        is_interrupted_ = false;
        if (!binder_.in_psb_plus()) { complete_pending(); }  // in a PSB+ they belong to it
        for (unsigned i = 0; i < aside_; ++i) { insert(events_.first_pending(), set_aside_[i]); }
        aside_ = 0;
    }
    constexpr void add_damage(packet::any_packet const& which, packet_place where, binding bound,
                              rule broken) noexcept {
        auto one = made(bound.is_note ? event_type::note : event_type::damage, which, where);
        one.broken = broken;
        if (bound.broken != rule::none && binder_.violated().offset != where.offset) {
            one.offset = binder_.violated().offset;
            one.packet = packet::any_packet::of_kind(binder_.violated().which);
        }
        unsigned place = events_.first_pending();
        if (bound.resumed == resumption::confirmed && bound.broken == rule::GEN_227) {
            place = events_.last_resumed(0);  // before the IP at which tracing resumed
        } else if (bound.to != owner::status &&
                   (bound.to != owner::asynchronous || which.is<packet::fup>())) {
            return add_ready(one);
        }
        insert(place, one);  // does not split a continued event
    }

    /// BDM64: the target before an abort may be wrong.
    constexpr void end_wait_for_abort(packet::any_packet const& which) noexcept {
        if (packet::unbound_kinds.has(which.kind())) { return; }
        event& branch = events_.all[events_.first_pending()];
        if (which.is<packet::mode_tsx>() &&
            which.as<packet::mode_tsx>().get<packet::mode_tsx::TXAbort>()) {
            branch.has_to = false;
            branch.to = 0;
            branch.packet = packet::tip{};
        }
        complete_pending();
    }

    constexpr void add_unbound(packet::any_packet const& which, packet_place where,
                               binding bound) noexcept {
        switch (which.kind()) {
            case kind::cbr:
            case kind::mnt: {
                auto one = made(detail::type_of(which.kind()), which, where);
                one.is_status = binder_.in_psb_plus();
                // Inside a compound event, the CBR or MNT is returned before it.
                return one.is_status || awaits_abort_ ? events_.put(one)
                                                      : insert(events_.first_pending(), one);
            }
            case kind::psb:
                complete_pending();
                if (!has_last_ip_) [[unlikely]] {
                    events_.hide_ips();
                    disabled_ = stopped_ = {};
                    has_last_ip_ = true;
                }
                return;
            case kind::psbend: return end_psb_plus(which, where, bound);
            default: return;
        }
    }
    constexpr void add_status(packet::any_packet const& which, packet_place where) noexcept {
        if (which.is<packet::fup>()) { return; }
        put(detail::type_of(which.kind()), which, where).is_status = true;
    }
    constexpr void end_psb_plus(packet::any_packet const& which, packet_place where,
                                binding bound) noexcept {
        auto one = made(event_type::psb, which, where);
        if (bound.in_psb_plus) { one.when = clock_.now_of_psb_plus(); }
        events_.set_time_of_pending(one.when);
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

    constexpr void add_flow(packet::any_packet const& which, packet_place where, binding bound,
                            bool was_lost, tracing was) noexcept {
        switch (which.kind()) {
            case kind::tnt_short:
            case kind::tnt_long: return put_ready(event_type::branches, which, where);
            case kind::tip: return add_tip(which, where, bound, was_lost, was);
            case kind::tip_pge: {
                auto one = made(event_type::enabled, which, where);
                one.has_ip = which.as<packet::tip_pge>().has_ip();
                one.ip = where.ip;
                event const mode = take_mode();
                add_ready(one);
                return ready_mode(mode, where.ip);
            }
            case kind::tip_pgd: return add_tip_pgd(which, where, bound);
            case kind::fup:
                if (bound.to == owner::interrupt_flag) { return ready_mode(take_mode(), where.ip); }
                if (bound.broken != rule::PKT_078) {
                    give_ip_to_control_flow(where.ip);
                    complete_pending();
                    put(event_type::async_branch, which, where).set_ip(where.ip);
                }
                return;
            default:
                if (which.is<packet::mode_exec>() && bound.to != owner::asynchronous) {
                    complete_pending();
                }
                (void)put(detail::type_of(which.kind()), which, where);
        }
    }
    /// A CFE without an IP belongs to the compound event that follows. Source: PKT-222.
    constexpr void give_ip_to_control_flow(uint64_t ip) noexcept {
        for (unsigned i = events_.first_pending(); i < events_.count; ++i) {
            if (events_.all[i].what == event_type::control_flow ||
                events_.all[i].what == event_type::event_data) {
                events_.all[i].has_ip = true;
                events_.all[i].ip = ip;
            }
        }
    }
    /// Removes the pending MODE.Exec, if there is one.
    constexpr auto take_mode() noexcept -> event {
        if (!events_.ends_in_mode()) { return {}; }
        --events_.count;
        return events_.all[events_.count];
    }
    constexpr void ready_mode(event mode, uint64_t ip) noexcept {
        if (mode.what != event_type::exec_mode) { return; }
        mode.has_ip = true;
        mode.ip = ip;
        add_ready(mode);
    }
    constexpr void add_tip(packet::any_packet const& which, packet_place where, binding bound,
                           bool was_lost, tracing was) noexcept {
        bool const has_to = which.as<packet::tip>().has_ip();
        if (bound.to == owner::asynchronous || bound.to == owner::transaction_abort) {
            return end_async(which, where, event_type::async_branch, has_to);
        }
        event const mode = take_mode();
        bool const resumes = was == tracing::off || (was == tracing::unknown && was_lost);
        auto one = made(resumes ? event_type::resumed : event_type::indirect_branch, which, where);
        (resumes ? one.has_ip : one.has_to) = has_to;
        (resumes ? one.ip : one.to) = where.ip;
        if (quirks_.has(cpu::quirk::bdm64) && bound.to == owner::branch && !resumes) {
            complete_pending();
            events_.put(one);
            awaits_abort_ = true;
            return;
        }
        add_ready(one);
        ready_mode(mode, where.ip);
    }
    constexpr void add_tip_pgd(packet::any_packet const& which, packet_place where,
                               binding bound) noexcept {
        bool const has_to = which.as<packet::tip_pgd>().has_ip();
        disabled_ = {has_to, where.ip};
        if (bound.to == owner::asynchronous || bound.to == owner::transaction_abort) {
            return end_async(which, where, event_type::async_disabled, has_to);
        }
        auto one = made(event_type::disabled, which, where);
        one.has_to = has_to;
        one.to = where.ip;
        add_ready(one);
    }
    /// A TIP or TIP.PGD ends a compound event. The state that its other packets carry applies at
    /// the IP of the last: PKT-270.
    constexpr void end_async(packet::any_packet const& which, packet_place where, event_type what,
                             bool has_to) noexcept {
        bool has_event = false;
        for (unsigned i = events_.first_pending(); i < events_.count; ++i) {
            auto& one = events_.all[i];
            one.when = clock_.now();
            one.enabled = known_enabled();
            if (one.what == event_type::async_branch) {
                has_event = true;
                one.what = what;
                one.has_to = has_to;
                one.to = where.ip;
            } else {
                one.has_ip = has_to;
                one.ip = where.ip;
            }
        }
        if (!has_event) {  // it was returned without its end
            auto one = made(what, which, where);
            one.has_to = has_to;
            one.to = where.ip;
            insert(events_.first_pending(), one);
        }
        complete_pending();
    }

    constexpr void add_transaction(packet::any_packet const& which, packet_place where,
                                   binding bound) noexcept {
        switch (which.kind()) {
            case kind::mode_tsx:
                complete_pending();
                (void)put(event_type::transaction, which, where);
                if (bound.completes) { complete_pending(); }
                return;
            case kind::fup: {
                complete_pending_at(where.ip);
                if (bound.completes) { return; }
                return put(event_type::async_branch, which, where).set_ip(where.ip);
            }
            case kind::tip: return add_tip(which, where, bound, false, tracing::on);
            default: return add_tip_pgd(which, where, bound);
        }
    }
    constexpr void add_overflow(packet::any_packet const& which, packet_place where) noexcept {
        complete_pending();
        if (which.is<packet::ovf>()) { return put_ready(event_type::overflow, which, where); }
        put(event_type::resumed, which, where).set_ip(where.ip);
        complete_pending();
    }
    /// PTW, the packets of power events, PEBS, event trace, TRIG, TraceStop, and their FUP.
    constexpr void add_value(packet::any_packet const& which, packet_place where,
                             binding bound) noexcept {
        if (which.is<packet::fup>()) {
            if (bound.to == owner::power) { stopped_ = {true, where.ip}; }
            return complete_pending_at(where.ip);
        }
        event& one = put(detail::type_of(which.kind()), which, where);
        switch (which.kind()) {
            case kind::tracestop:
                one.has_ip = disabled_.is_known;
                one.ip = disabled_.ip;
                return complete_pending();
            case kind::pwrx:
                one.has_ip = stopped_.is_known;
                one.ip = stopped_.ip;
                stopped_ = {};
                return complete_pending();
            case kind::bbp:
            case kind::bip: return complete_pending();
            case kind::mwait:
            case kind::pwre:
            case kind::evd: return;
            case kind::cfe:  // a compound event may follow
                if (binder_.state().enabled != tracing::off) { return; }
                break;
            default: break;
        }
        if (bound.completes) { complete_pending(); }
    }

    reader<Hook, Packets> reader_;
    Clock clock_;
    binder binder_;
    cpu::quirk_set quirks_;
    packet_errata errata_;
    bool has_last_ip_ = true;      ///< a PSB was read
    bool has_item_ = false;        ///< `item_` is the next item
    bool awaits_abort_ = false;    ///< BDM64: the first pending event is an indirect branch
    detail::known_ip disabled_{};  ///< the IP of the last TIP.PGD
    detail::known_ip stopped_{};   ///< where the core clock stopped
    item item_{};
    execution_state before_{};     ///< before the events that are ready
    bool is_interrupted_ = false;  ///< other packets came after the packets of an INIT
    unsigned aside_ = 0;
    event set_aside_[max_aside]{};  ///< of an INIT
    detail::event_queue<Room> events_{};
};

}  // namespace ptspec::trace

#undef PTSPEC_ATTRIBUTE
