// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/program_runs.hpp>

#include <ptspec/packet/decode.hpp>
#include <ptspec/edit/keep_part.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Runs a random guest twice: in a VM, where a trace unit records host and guest without the
// "conceal" controls; and on a unit that sees only one of the two, as they should see it.
namespace ptspec::test::vm {

namespace action = engine::action;
using test::dice;

/// How a run is traced.
struct setting {
    edit::part_options part{};
    bool dis_retc = true;
    bool cyc = false;
    bool mtc = false;
    bool tsc = false;
    bool events = false;
    /// All VM exits can be hidden: the host does nothing that makes them visible.
    bool only_hidden = false;
    engine::model_options how{};

    [[nodiscard]] auto word(bool on) const -> std::uint64_t {
        auto const at = [](bool is, unsigned bit) { return std::uint64_t{is} << bit; };
        return at(on, 0) | at(cyc, 1) | 0xC | at(mtc, 9) | at(tsc, 10) | at(dis_retc, 11) |
               at(true, 12) | at(true, 13) | std::uint64_t{5} << 24 | at(events, 31);
    }
};

/// A packet that one of the two sides must see, with the state of a decoder at it.
struct item {
    packet::kind which{};
    std::uint64_t value = 0;
    unsigned mode = 0;
    std::uint64_t cycles = 0;

    friend auto operator==(item const&, item const&) -> bool = default;
    [[nodiscard]] auto text() const -> std::string {
        auto const name = packet::name_of(which);
        return std::string{name.data(), name.size()} + " " + std::to_string(value) + " " +
               std::to_string(mode) + " " + std::to_string(cycles);
    }
};

/// The items of a trace from the first TIP.PGE on. PSB+ and TSC are left out: their places depend
/// on the bytes. Branches are items of their own: TNTs may be split in other places.
inline auto items_of(byte_view bytes, bool with_time) -> std::vector<item> {
    using packet::kind;
    std::vector<item> all;
    trace::reader from{bytes, {.sync = false}};
    trace::binder state;
    bool began = false;
    unsigned mode = 0;
    std::uint64_t cycles = 0;
    for (auto it = from.next(); it; it = from.next()) {
        auto const& one = it.packet;
        auto const which = one.kind();
        if (it.what != trace::item_type::packet) { return {{kind::ovf, it.offset}}; }
        auto const bound = state.add(one, it.place());
        if (bound.broken != rule::none) {
            all.push_back({kind::psb, static_cast<std::uint64_t>(bound.broken)});
        }
        if (which == kind::psb) { mode = 0; }
        if (which == kind::mode_exec) { mode = one.as<packet::mode_exec>().code_bits(); }
        if (which == kind::cyc) { cycles += one.as<packet::cyc>().value(); }
        began = began || which == kind::tip_pge;
        if (!began || bound.in_psb_plus) { continue; }
        auto const add = [&](std::uint64_t value, bool timed = false) {
            bool const has_mode = which == kind::tip || which == kind::tip_pge;
            all.push_back({which, value, has_mode ? mode : 0, timed && with_time ? cycles : 0});
        };
        auto const add_ip = [&](bool has_ip, bool timed) { add(has_ip ? it.ip : 1, timed); };
        switch (which) {
            case kind::tnt_short:
            case kind::tnt_long: {
                auto const bits = which == kind::tnt_short ? one.as<packet::tnt_short>().taken()
                                                           : one.as<packet::tnt_long>().taken();
                for (unsigned i = 0; i < bits.count; ++i) {
                    all.push_back({kind::tnt_short, bits.taken(i) ? 1U : 0U});
                }
                break;
            }
            case kind::tip: add_ip(one.as<packet::tip>().has_ip(), true); break;
            case kind::tip_pge: add_ip(one.as<packet::tip_pge>().has_ip(), true); break;
            case kind::tip_pgd: add_ip(one.as<packet::tip_pgd>().has_ip(), false); break;
            case kind::fup: add_ip(one.as<packet::fup>().has_ip(), false); break;
            case kind::mtc:
                if (with_time) { add(one.raw().low); }
                break;
            case kind::pip:
            case kind::vmcs:
            case kind::ptw:
            case kind::evd:
            case kind::cfe: add(one.raw().low ^ one.raw().high << 8); break;
            default: break;
        }
    }
    return all;
}

/// A sink of any size.
struct endless_sink {
    std::vector<std::uint8_t> all{};

    auto append(byte_view bytes) -> bool {
        all.insert(all.end(), bytes.begin(), bytes.end());
        return true;
    }
};

/// A host and a guest, the unit that records both, and the unit that sees one.
class machine {
public:
    machine(setting const& with, dice& from)
        : set_{with},
          dice_{from},
          both_{cpu::preset::P_FUT, state(), host_, 0xFFFF'8000'0010'0000, with.how},
          one_{cpu::preset::P_FUT, state(), host_, 0xFFFF'8000'0010'0000, with.how} {
        one_.conceal({true, true, true});
    }

    std::uint64_t events = 0;
    std::uint64_t exits = 0;

    void run(unsigned count) {
        bool const is_host = set_.part.keep == edit::side::host;
        if (set_.part.where == edit::traced_in::both) {
            start(both_, in_both_);
            if (is_host) { start(one_, in_one_); }
        }
        enter(guest_ip_, true);
        for (unsigned i = 0; i < count; ++i) {
            if (dice_.chance(8)) {
                leave_and_enter();
            } else {
                guest_step();
            }
        }
        leave(true);
    }
    [[nodiscard]] auto recorded() -> std::vector<std::uint8_t>& { return in_both_.all; }
    [[nodiscard]] auto wanted() const -> byte_view { return byte_view{in_one_.all}; }

private:
    using unit = engine::generator;

    static auto state() -> access::msr_state {
        access::msr_state now;
        now.in_vmx_operation = true;
        return now;
    }
    [[nodiscard]] auto keeps_guest() const -> bool { return set_.part.keep == edit::side::guest; }
    [[nodiscard]] auto toggles() const -> bool { return set_.part.where != edit::traced_in::both; }

    void start(unit& which, endless_sink& to) {
        auto const at = which.state().ip;
        (void)which.wrmsr({.index = 0x570, .value = set_.word(true), .at = at, .next = at + 2}, to);
    }
    template <class Event>
    void on_both(Event const& e) {
        both_.on(e, in_both_);
    }
    template <class Event>
    void on_one(Event const& e) {
        one_.on(e, in_one_);
    }
    /// An event of the guest.
    template <class Event>
    void guest(Event const& e) {
        on_both(e);
        if (keeps_guest()) { on_one(e); }
    }
    /// An event of the host.
    template <class Event>
    void host(Event const& e) {
        on_both(e);
        if (!keeps_guest()) { on_one(e); }
    }
    void time_passes() {
        art_ += dice_.roll(4);
        action::elapsed const e{dice_.roll(40), art_, 3 * art_};
        on_both(e);
        on_one(e);
    }
    auto loads(bool on) const -> action::ctl_load { return {true, {set_.word(on)}}; }

    void enter(std::uint64_t to, bool is_seen) {
        action::vm_entry e{.at = both_.state().ip, .to = to, .after = guest_};
        auto const of_one = [&] {
            auto seen = e;
            seen.loads = loads(keeps_guest());
            return seen;
        };
        if (is_seen) { on_one(of_one()); }
        if (toggles()) { e.loads = loads(set_.part.where == edit::traced_in::non_root); }
        on_both(e);
        guest_ip_ = to;
    }
    void leave(bool is_seen) {
        ++exits;
        action::vm_exit e{.from = guest_ip_,
                          .to = 0xFFFF'8000'0010'0000 + (dice_.roll(4) << 12),
                          .after = host_,
                          .qualification = dice_.roll(1000),
                          .reason = dice_.roll(70)};
        auto seen = e;
        seen.loads = loads(!keeps_guest());
        if (is_seen) { on_one(seen); }
        if (toggles()) { e.loads = loads(set_.part.where == edit::traced_in::root); }
        on_both(e);
    }
    /// A VM exit, the host, and a VM entry.
    void leave_and_enter() {
        bool const may_be_seen = !set_.only_hidden;
        bool const jumps = may_be_seen && dice_.chance(20);
        bool const has_psb = may_be_seen && dice_.chance(20) && !toggles();
        bool const is_seen = jumps || has_psb || !set_.part.hides_exits || !keeps_guest();
        auto const before = guest_ip_;
        auto const next = jumps ? address() : before + dice_.roll(16);
        bool const moves = !jumps && dice_.chance(30);
        leave(is_seen);
        for (auto i = dice_.roll(20); i != 0; --i) { host_step(); }
        if (has_psb) { host(action::psb_due{}); }
        bool const has_new_mode = jumps && dice_.chance(20);
        if (has_new_mode) { change_mode(); }
        if (moves) { guest_.cr3 = other_cr3(); }
        // To the guest that sees no exit, the exit is an instruction.
        if (!is_seen && moves) {
            on_one(action::mov_cr3{before, next, guest_.cr3});
        } else if (!is_seen) {
            on_one(action::sequential{next});
        } else if (moves && keeps_guest()) {
            pip_of_one();
        }
        enter(jumps ? next & mask() : next, is_seen);
    }
    /// The PIP that a VMM inserts: not one of this unit.
    void pip_of_one() {
        if (toggles()) { return; }
        (void)in_one_.append(
            packet::encode(packet::pip{}.with(packet::pip::CR3{wrapped{guest_.cr3}})));
    }

    auto address() -> std::uint64_t {
        return dice_.chance(80)
                   ? 0x40'0000 + dice_.roll(0x3'0000)
                   : dice_.roll(2) * 0xFFFF'8000'0000'0000 + dice_.roll(0x7FFF'FFFF'FFFF);
    }
    [[nodiscard]] auto mask() const -> std::uint64_t {
        return guest_.width == engine::code_width::bits_64 ? ~std::uint64_t{0} : 0xFFFF'FFFF;
    }
    auto target() -> std::uint64_t { return address() & mask(); }
    auto other_cr3() -> std::uint64_t {
        auto const made = 0x1000 * (1 + dice_.roll(5));
        return made == guest_.cr3 ? made + 0x10'0000 : made;
    }
    void change_mode() {
        guest_.width = dice_.chance(60) ? engine::code_width::bits_64 : engine::code_width::bits_32;
    }
    void guest_step() {
        ++events;
        auto const here = guest_ip_;
        auto const go = [&](std::uint64_t to, auto const& e) {
            guest_ip_ = to;
            guest(e);
        };
        auto const to = target();
        switch (dice_.roll(14)) {
            case 0: return go(to, action::indirect_jump{to});
            case 1: calls_.push_back(here + 3); return go(to, action::indirect_call{here + 3, to});
            case 2: calls_.push_back(here + 5); return go(to, action::direct_call{here + 5, to});
            case 3: return go(to, action::direct_jump{to});
            case 4:
            case 5: {
                auto const back = calls_.empty() || dice_.chance(20) ? to : calls_.back() & mask();
                if (!calls_.empty()) { calls_.pop_back(); }
                return go(back, action::near_return{back});
            }
            case 6: {
                guest_.cpl = dice_.chance(50) ? 3 : 0;
                change_mode();
                auto const there = target();
                return go(there, action::far_transfer{here, there, guest_});
            }
            case 7: {
                guest_.cpl = 0;
                guest_.width = engine::code_width::bits_64;
                auto const there = target();
                return go(there, action::interrupt{.next = here, .to = there, .after = guest_});
            }
            case 8:
                guest_.cr3 = other_cr3();
                return go(here + 3, action::mov_cr3{here, here + 3, guest_.cr3});
            case 9: return go(here + 4, action::ptwrite{here, here + 4, dice_.roll(100), true});
            case 10: return dice_.chance(10) ? guest(action::psb_due{}) : time_passes();
            default: {
                bool const taken = dice_.chance(60);
                auto const there = taken ? to : here + 2;
                return go(there, action::conditional{there, taken});
            }
        }
    }
    void host_step() {
        auto const here = both_.state().ip;
        auto const to = 0xFFFF'8000'0010'0000 + dice_.roll(0x2'0000);
        // CALLs of the host would change the stack of the guest's RETs.
        switch (dice_.roll(set_.dis_retc ? 9 : 6)) {
            case 0: return host(action::indirect_jump{to});
            case 1: return host(action::conditional{to, true});
            case 2: return time_passes();
            case 3: return host(action::vmptrld{here + 4, 0x1000 * dice_.roll(9)});
            case 4: return host(action::ptwrite{here, here + 4, 0x1234, false});
            case 5: return host(action::interrupt{.next = here, .to = to, .after = host_});
            case 6: return host(action::direct_call{here + 5, to});
            case 7: return host(action::near_return{to});
            default: {
                host_.cr3 = 0x9000 + (dice_.roll(2) << 12);
                return host(action::mov_cr3{here, here + 3, host_.cr3});
            }
        }
    }

    setting set_;
    dice& dice_;
    engine::execution_context host_{.cr3 = 0x9000};
    engine::execution_context guest_{.cr3 = 0x1000, .vmx_non_root = true};
    unit both_, one_;
    endless_sink in_both_, in_one_;
    std::uint64_t guest_ip_ = 0x40'0000;
    std::uint64_t art_ = 0;
    std::vector<std::uint64_t> calls_;
};

}  // namespace ptspec::test::vm
