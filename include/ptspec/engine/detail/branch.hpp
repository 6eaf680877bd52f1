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
constexpr void emit_branch(generator_state& s, bool taken, Sink& sink) noexcept {
    if (s.ctl<ctl::DisTNT>()) { return; }
    put_packets(s, sink, [=](auto& batch) { batch.branch(taken); });
}
/// Adds the TNT bit that completes a TNT after PADs.
template <class Sink>
constexpr void complete_tnt(generator_state& s, bool taken, Sink& sink) noexcept {
    s.writer.add_branch(taken);
    if (trace::append_aligned_tnt(sink, s.writer, s.write_options)) { return; }
    put_packets(s, sink, [](auto& batch) { batch.flush(); });
}
/// Emits a TIP to a fast IP, after the gathered branches.
template <class Sink>
constexpr void emit_tip(generator_state& s, uint64_t target, Sink& sink) noexcept {
    s.ip = target;
    packet_ip const ip = s.in_packets(target);
    bool const is_done = s.writes_plainly
                             ? trace::append_tip(sink, s.writer, s.write_options.ips, ip.value)
                             : !s.write_options.cyc &&
                                   trace::append_aligned_tip(sink, s.writer, s.write_options,
                                                             ip.value);
    if (!is_done) {
        put_packets(s, sink, [=](auto& batch) { batch.template add_ip<packet::tip>(ip); });
    }
}
/// Handles a call. If its packets are lost, no RET is compressed against it.
/// Source: GEN-130, GEN-135.
template <class Sink>
constexpr void emit_call(generator_state& s, Sink& sink, control_transfer const& transfer,
                         bool pushes, uint64_t next) noexcept {
    bool const was_on = s.enables().packet();
    emit_transfer(s, sink, transfer, s.code);
    if (pushes && was_on && !s.in_overflow && s.enables().packet()) { s.calls.push(next); }
}

template <class Sink>
constexpr void handle(generator_state& s, action::conditional const& e, Sink& sink) noexcept {
    if (s.is_fast_ip(e.to)) {  // it begins or completes a TNT
        s.ip = e.to;
        if (s.write_options.cyc && s.writer.tnt.count == 0) {
            return emit_branch(s, e.taken, sink);
        }
        if (s.write_options.pads != trace::pad_policy::none) [[unlikely]] {
            return complete_tnt(s, e.taken, sink);
        }
        s.writer.add_branch(e.taken);
        if (trace::append_tnt(sink, s.writer)) { return; }
        return put_packets(s, sink, [](auto& batch) { batch.flush(); });
    }
    if (e.taken) {
        return emit_transfer(s, sink, {.encoding = branch_encoding::tnt, .to = e.to}, s.code);
    }
    s.ip = e.to;
    if (s.enables().packet()) { emit_branch(s, false, sink); }
}
template <class Sink>
constexpr void handle(generator_state& s, action::direct_jump const& e, Sink& sink) noexcept {
    emit_transfer(s, sink, {.encoding = branch_encoding::none, .to = e.to}, s.code);
}
template <class Sink>
constexpr void handle(generator_state& s, action::direct_call const& e, Sink& sink) noexcept {
    emit_call(s, sink, {.encoding = branch_encoding::none, .to = e.to},
              trace::pushes_return(e.to, e.next), e.next);
}
template <class Sink>
constexpr void handle(generator_state& s, action::indirect_jump const& e, Sink& sink) noexcept {
    if (s.is_fast_ip(e.to)) { return emit_tip(s, e.to, sink); }
    emit_transfer(s, sink, {.encoding = branch_encoding::tip, .to = e.to}, s.code);
}
template <class Sink>
constexpr void handle(generator_state& s, action::indirect_call const& e, Sink& sink) noexcept {
    if (s.is_fast_ip(e.to)) {
        s.calls.push(e.next);
        return emit_tip(s, e.to, sink);
    }
    emit_call(s, sink, {.encoding = branch_encoding::tip, .to = e.to}, true, e.next);
}
template <class Sink>
constexpr void handle(generator_state& s, action::near_return const& e, Sink& sink) noexcept {
    uint64_t const popped = trace::popped_bits(s.code.width);
    bool const matches = s.calls.pop(e.to, popped, s.options.on_ret_mismatch);
    bool const compressed = matches && !s.ctl<ctl::DisRETC>();
    if (!s.is_fast_ip(e.to)) {
        auto const encoding = compressed ? branch_encoding::tnt : branch_encoding::tip_undeferred;
        return emit_transfer(s, sink, {.encoding = encoding, .to = e.to}, s.code);
    }
    if (!compressed) { return emit_tip(s, e.to, sink); }
    action::conditional const as_taken{e.to, true};
    if (!try_fast_path(s, as_taken)) { handle(s, as_taken, sink); }
}
template <class Sink>
constexpr void handle(generator_state& s, action::return_stack_lost const&,
                      Sink& /*sink*/) noexcept {
    s.calls.clear();
}
template <class Sink>
constexpr void handle(generator_state& s, action::sequential const& e, Sink& /*sink*/) noexcept {
    s.ip = e.next;
}

}  // namespace ptspec::engine::detail
