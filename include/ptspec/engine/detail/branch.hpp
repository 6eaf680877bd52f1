// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/branch.hpp>
#include <ptspec/engine/detail/control_transfer.hpp>
#include <ptspec/trace/write/direct.hpp>

/// Near branches.
///
/// Source: GEN-110..112, GEN-120..147, GEN-325, GEN-341.
namespace ptspec::engine::detail {

/// Handles an action that completes no packet and changes no enable. Returns false if the action
/// needs `handle`.
[[nodiscard]] constexpr auto try_fast_path(generator_state& s,
                                           action::conditional const& e) noexcept -> bool {
    if (!s.is_fast_ip(e.to) || s.writer.tnt.count - s.fast_tnt_first >= s.fast_tnt_count) {
        return false;
    }
    s.ip = e.to;
    s.writer.add_branch(e.taken);
    return true;
}
[[nodiscard]] constexpr auto try_fast_path(generator_state& s,
                                           action::direct_jump const& e) noexcept -> bool {
    if (!s.is_fast_ip(e.to)) { return false; }
    s.ip = e.to;
    return true;
}
[[nodiscard]] constexpr auto try_fast_path(generator_state& s,
                                           action::direct_call const& e) noexcept -> bool {
    if (!s.is_fast_ip(e.to)) { return false; }
    s.ip = e.to;
    if (trace::pushes_return(e.to, e.next)) { s.calls.push(e.next); }
    return true;
}

/// Adds a TNT bit.
template <class Sink>
constexpr void emit_branch(generator_state& s, bool taken, Sink& to) noexcept {
    if (s.ctl<ctl::DisTNT>()) { return; }
    put_packets(s, to, [=](auto& batch) { batch.branch(taken); });
}
/// Adds the TNT bit that completes a TNT after PADs.
template <class Sink>
constexpr void complete_tnt(generator_state& s, bool taken, Sink& to) noexcept {
    s.writer.add_branch(taken);
    if (trace::append_aligned_tnt(to, s.writer, s.write_options)) { return; }
    put_packets(s, to, [](auto& batch) { batch.flush(); });
}
/// Emits a TIP to a fast IP, after the gathered branches.
template <class Sink>
constexpr void emit_tip(generator_state& s, uint64_t target, Sink& to) noexcept {
    s.ip = target;
    packet_ip const ip = s.in_packets(target);
    bool const is_done = s.writes_plainly
                             ? trace::append_tip(to, s.writer, s.write_options.ips, ip.value)
                             : !s.write_options.cyc && trace::append_aligned_tip(
                                                           to, s.writer, s.write_options, ip.value);
    if (!is_done) {
        put_packets(s, to, [=](auto& batch) { batch.template add_ip<packet::tip>(ip); });
    }
}
/// Handles a call. If its packets are lost, no RET is compressed against it.
/// Source: GEN-130, GEN-135.
template <class Sink>
constexpr void call(generator_state& s, Sink& to, control_transfer const& how, bool pushes,
                    uint64_t next) noexcept {
    bool const was_on = s.enables().packet();
    transfer(s, to, how, s.code);
    if (pushes && was_on && !s.in_overflow && s.enables().packet()) { s.calls.push(next); }
}

template <class Sink>
constexpr void handle(generator_state& s, action::conditional const& e, Sink& to) noexcept {
    if (s.is_fast_ip(e.to)) {  // it begins or completes a TNT
        s.ip = e.to;
        if (s.write_options.cyc && s.writer.tnt.count == 0) { return emit_branch(s, e.taken, to); }
        if (s.write_options.pads != trace::pad_policy::none) [[unlikely]] {
            return complete_tnt(s, e.taken, to);
        }
        s.writer.add_branch(e.taken);
        if (trace::append_tnt(to, s.writer)) { return; }
        return put_packets(s, to, [](auto& batch) { batch.flush(); });
    }
    if (e.taken) { return transfer(s, to, {.encoding = branch_encoding::tnt, .to = e.to}, s.code); }
    s.ip = e.to;
    if (s.enables().packet()) { emit_branch(s, false, to); }
}
template <class Sink>
constexpr void handle(generator_state& s, action::direct_jump const& e, Sink& to) noexcept {
    transfer(s, to, {.encoding = branch_encoding::none, .to = e.to}, s.code);
}
template <class Sink>
constexpr void handle(generator_state& s, action::direct_call const& e, Sink& to) noexcept {
    call(s, to, {.encoding = branch_encoding::none, .to = e.to}, trace::pushes_return(e.to, e.next),
         e.next);
}
template <class Sink>
constexpr void handle(generator_state& s, action::indirect_jump const& e, Sink& to) noexcept {
    if (s.is_fast_ip(e.to)) { return emit_tip(s, e.to, to); }
    transfer(s, to, {.encoding = branch_encoding::tip, .to = e.to}, s.code);
}
template <class Sink>
constexpr void handle(generator_state& s, action::indirect_call const& e, Sink& to) noexcept {
    if (s.is_fast_ip(e.to)) {
        s.calls.push(e.next);
        return emit_tip(s, e.to, to);
    }
    call(s, to, {.encoding = branch_encoding::tip, .to = e.to}, true, e.next);
}
template <class Sink>
constexpr void handle(generator_state& s, action::near_return const& e, Sink& to) noexcept {
    uint64_t const popped = trace::popped_bits(s.code.width);
    bool const matches = s.calls.pop(e.to, popped, s.options.on_ret_mismatch);
    bool const compressed = matches && !s.ctl<ctl::DisRETC>();
    if (!s.is_fast_ip(e.to)) {
        auto const encoding = compressed ? branch_encoding::tnt : branch_encoding::tip_undeferred;
        return transfer(s, to, {.encoding = encoding, .to = e.to}, s.code);
    }
    if (!compressed) { return emit_tip(s, e.to, to); }
    action::conditional const as_taken{e.to, true};
    if (!try_fast_path(s, as_taken)) { handle(s, as_taken, to); }
}
template <class Sink>
constexpr void handle(generator_state& s, action::return_stack_lost const&, Sink& /*to*/) noexcept {
    s.calls.clear();
}
template <class Sink>
constexpr void handle(generator_state& s, action::sequential const& e, Sink& /*to*/) noexcept {
    s.ip = e.next;
}

}  // namespace ptspec::engine::detail
