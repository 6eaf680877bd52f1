// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/packets/control_transfer.hpp>

namespace ptspec::engine {

/// Branches, interrupts, transactions, enclaves. The fourth layer of `generator`.
///
/// Source: GEN-110..147, GEN-250..258, GEN-285, GEN-286, GEN-289, GEN-290, GEN-301, GEN-325,
///         GEN-341.
class generator_flow : public generator_moves {
public:
    using generator_moves::generator_moves;

    template <trace::packet_sink Sink>
    constexpr void on(event::conditional const& e, Sink& to) noexcept {
        if (take_quietly(e)) { return; }
        if (is_calm(e.to)) {
            ip_ = e.to;
            if (writing_.cyc && now_.tnt.count == 0) { return begin_tnt(e.taken, to); }
            now_.gather(e.taken);
            return emit_gathered(to);
        }
        if (!e.taken) {
            ip_ = e.to;
            if (enables_now().packet()) { emit_branch(false, to); }
            return finish(to);
        }
        transfer(to, {.by = told_by::bit, .to = e.to});
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::direct_jump const& e, Sink& to) noexcept {
        if (take_quietly(e)) { return; }
        transfer(to, {.by = told_by::code, .to = e.to});
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::direct_call const& e, Sink& to) noexcept {
        if (take_quietly(e)) { return; }
        call(to, {.by = told_by::code, .to = e.to}, returns(e), e.next);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::indirect_jump const& e, Sink& to) noexcept {
        if (is_calm(e.to)) [[likely]] { return emit_tip(e.to, to); }
        transfer(to, {.by = told_by::tip, .to = e.to});
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::indirect_call const& e, Sink& to) noexcept {
        if (is_calm(e.to)) [[likely]] {
            calls_.push(e.next);
            return emit_tip(e.to, to);
        }
        call(to, {.by = told_by::tip, .to = e.to}, true, e.next);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::near_return const& e, Sink& to) noexcept {
        unsigned const popped = code_.width == code_width::bits_64   ? 64
                                : code_.width == code_width::bits_32 ? 32
                                                                     : 16;
        bool const matches = calls_.pop(e.to, low_bits(popped), how_.on_ret_mismatch);
        bool const compressed = matches && !is_set<ctl::DisRETC>();
        if (is_calm(e.to)) {
            if (compressed) { return on(event::conditional{e.to, true}, to); }
            return emit_tip(e.to, to);
        }
        transfer(to, {.by = compressed ? told_by::bit : told_by::tip_at_once, .to = e.to});
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::sequential const& e, Sink& /*to*/) noexcept {
        ip_ = e.next;
    }

    template <trace::packet_sink Sink>
    constexpr void on(event::far_transfer const& e, Sink& to) noexcept {
        using packet::cfe_type;
        movement how{.by = told_by::tip, .to = e.to};
        how.pip = pip_where_changed(e.after);
        switch (e.kind) {
            case event::far_kind::iret: how.tells = {cfe_type::IRET}; break;
            case event::far_kind::uiret: how.tells = {cfe_type::UIRET}; break;
            case event::far_kind::syscall:
                if (how_.swintr_events) { how.tells = {cfe_type::SYSCALL, 0, own_ip::always}; }
                break;
            case event::far_kind::plain: break;
        }
        how.from = form(e.at);
        go(to, how, e.after);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::software_interrupt const& e, Sink& to) noexcept {
        auto const type = how_.swintr_events ? packet::cfe_type::SWINTR : packet::cfe_type::INTR;
        vectored(to, e.at, e.to, e.after, {type, e.vector}, e.takes);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::interrupt const& e, Sink& to) noexcept {
        vectored(to, e.next, e.to, e.after, {packet::cfe_type::INTR, e.vector}, e.takes);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::exception const& e, Sink& to) noexcept {
        control_flow tells{packet::cfe_type::INTR, e.vector};
        if (e.vector == event::exception::page_fault) {
            tells.first = {true, packet::evd_type::PFA, e.cr2};
        }
        vectored(to, e.at, e.to, e.after, tells, e.takes);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::user_interrupt const& e, Sink& to) noexcept {
        vectored(to, e.next, e.to, code_, {packet::cfe_type::UINTR, e.vector}, {});
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::init const& e, Sink& to) noexcept {
        movement how{.by = told_by::tip, .to = e.to};
        how.from = form(e.next);
        how.has_fup = true;
        how.pip = pip_of(e.after, false);
        how.tells = {packet::cfe_type::INIT};
        tx_depth_ = 0;
        if (e.waits_for_sipi) {
            wait_for_sipi(to, how, e.after);
        } else {
            go(to, how, e.after);
        }
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::sipi const& e, Sink& to) noexcept {
        movement how{.by = told_by::tip, .to = e.to};
        how.tells = {packet::cfe_type::SIPI, e.vector, own_ip::never};
        go(to, how, e.after);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::enclave_transfer const& e, Sink& to) noexcept {
        movement how{.by = told_by::tip, .to = e.to};
        how.from = form(e.from);
        how.has_fup = true;
        go(to, how, e.after);
    }

    template <trace::packet_sink Sink>
    constexpr void on(event::transaction_begin const& e, Sink& to) noexcept {
        if (tx_depth_ < 0xFF) { ++tx_depth_; }
        ip_ = e.next;
        if (tx_depth_ == 1) { tell_tsx(to, e.at); }
        finish(to);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::transaction_end const& e, Sink& to) noexcept {
        bool const ends = tx_depth_ == 1;
        if (tx_depth_ != 0) { --tx_depth_; }
        ip_ = e.next;
        if (ends) { tell_tsx(to, e.at); }
        finish(to);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::transaction_abort const& e, Sink& to) noexcept {
        movement how{.by = told_by::tip, .to = e.to};
        how.from = form(e.at);
        how.has_fup = true;
        how.aborts = true;
        tx_depth_ = 0;
        go(to, how, code_);
    }

private:
    // What `emit` would write where nothing but branches is to be thought of, and in its stead.

    /// The first branch of a TNT, with the CYC that may be due.
    template <class Sink>
    constexpr void begin_tnt(bool taken, Sink& to) noexcept {
        emit_branch(taken, to);
        finish(to);
    }
    /// The branches that were gathered.
    template <class Sink>
    constexpr void emit_gathered(Sink& to) noexcept {
        if (now_.tnt.count > packet::tnt_short::most_branches ||
            !append({packet::tnt_short::of(now_.tnt).raw, 0}, 1, to)) {
            emit(to, [](auto& all) { all.flush(); });
        }
        finish(to);
    }
    /// The branches that were gathered, and a TIP.
    template <class Sink>
    constexpr void emit_tip(uint64_t target, Sink& to) noexcept {
        ip_ = target;
        uint64_t const ip = form(target);
        auto const which = packet::tip::of(now_.form_of(ip, writing_.ips), ip);
        wide_bits bytes = which.raw;
        unsigned count = packet::tip::length_of(which.raw, packet::block::none);
        if (now_.tnt.count != 0) {
            bytes = {bytes.low << 8 | packet::tnt_short::of(now_.tnt).raw,
                     bytes.high << 8 | bytes.low >> 56};
            ++count;
        }
        if (writing_.cyc || now_.tnt.count > packet::tnt_short::most_branches ||
            !append(bytes, count, to)) {
            emit(to, [=](auto& all) { all.template add_ip<packet::tip>(ip); });
        } else {
            now_.last_ip = ip;
            now_.has_last_ip = true;
        }
        finish(to);
    }
    /// Bytes in which the branches are that were gathered. False where there is no room.
    template <class Sink>
    constexpr auto append(wide_bits bytes, unsigned count, Sink& to) noexcept -> bool {
        bool const has_room = [&] {
            if constexpr (requires { to.append(bytes, size_t{count}); }) {
                return to.append(bytes, size_t{count});
            } else {
                return to.append(byte_view{to_le(bytes)}.first(count));
            }
        }();
        if (has_room) {
            now_.tnt = {};
            now_.bytes += count;
        }
        return has_room;
    }

    template <class Sink>
    constexpr void emit_branch(bool taken, Sink& to) noexcept {
        if (is_set<ctl::DisTNT>()) { return; }
        emit(to, [=](auto& all) { all.branch(taken); });
    }
    /// A near branch: what runs stays. Source: GEN-112, GEN-341.
    template <class Sink>
    constexpr void transfer(Sink& to, movement const& how) noexcept {
        go(to, how, code_);
    }
    /// A call whose packets are lost is not compressed against. Source: GEN-130, GEN-135.
    template <class Sink>
    constexpr void call(Sink& to, movement const& how, bool returns, uint64_t next) noexcept {
        bool const before = enables_now().packet();
        ip_ = how.to;
        move(to, how);
        bool const was_traced = before && !loses_ && enables_now().packet();
        if (returns && was_traced) { calls_.push(next); }
        finish(to);
    }
    template <class Sink>
    constexpr void vectored(Sink& to, uint64_t from, uint64_t target, running const& after,
                            control_flow const& tells, event::cycles_within takes) noexcept {
        movement how{.by = told_by::tip, .to = target};
        how.from = form(from);
        how.has_fup = true;
        how.pip = pip_where_changed(after);
        how.tells = tells;
        how.takes = takes;
        go(to, how, after);
    }
    /// The PIP of a transfer that may load CR3, as a task switch does. Source: GEN-240.
    [[nodiscard]] constexpr auto pip_where_changed(running const& after) const noexcept
        -> packet::pip {
        return after.cr3 == code_.cr3 ? packet::pip{0} : pip_of(after);
    }

    /// Source: GEN-250, GEN-251, GEN-255.
    template <class Sink>
    constexpr void tell_tsx(Sink& to, uint64_t at) noexcept {
        enables const now = enables_now();
        if (!now.trigger || !now.context || !now.branch) { return; }
        emit(to, [&](auto& all) {
            add_tsx(all);
            if (now.packet()) { all.template add_ip<packet::fup>(form(at)); }
        });
    }
    /// INIT of a processor that then waits: the enables are evaluated when it goes on. Source:
    /// GEN-290.
    template <class Sink>
    constexpr void wait_for_sipi(Sink& to, movement const& how, running const& after) noexcept {
        enables const now = enables_now();
        code_ = after;
        ip_ = how.to;
        if (now.trigger) {
            emit(to, [&](auto& all) {
                if (tells_events(now, now)) { add_events(all, how.tells, how.from, now); }
                if (!now.packet()) { return; }
                all.template add_ip<packet::fup>(how.from);
                if (is_set<ctl::OS>()) { add_pip(all, how.pip); }
            });
        }
        finish(to);
    }
};

}  // namespace ptspec::engine
