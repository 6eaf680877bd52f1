// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/dice.hpp>
#include <support/random_programs.hpp>

#include <ptspec/engine/model_kind.hpp>
#include <ptspec/engine/unit_image.hpp>
#include <ptspec/base/host_memory.hpp>
#include <ptspec/trace/reader.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

// Runs random programs on a trace unit and on the reference model, and compares the decoded trace
// with the items that the model expects.
namespace ptspec::test::programs {

inline auto random_setting(dice& from) -> setting {
    setting made{};
    made.os = from.chance(80);
    made.user = from.chance(80);
    made.branch_en = from.chance(90);
    made.tsc_en = from.chance(50);
    made.mtc_en = from.chance(40);
    made.cyc_en = from.chance(40);
    made.ptw_en = from.chance(50);
    made.fup_on_ptw = from.chance(50);
    made.dis_retc = from.chance(30);
    made.cr3_filter = from.chance(20);
    made.pwr_evt_en = from.chance(50);
    made.mtc_freq = made.mtc_en ? static_cast<unsigned>(3 * from.roll(3)) : 0;
    made.psb_freq = static_cast<unsigned>(from.roll(2));
    for (unsigned i = 0; i < 2; ++i) {
        made.range_kind[i] = from.chance(60) ? 0 : from.chance(80) ? 1 : 2;
        made.from[i] = 0x40'0000 + (from.roll(8) << 12);
        made.to[i] = made.from[i] + (from.roll(made.range_kind[i] == 2 ? 2 : 6) << 12) - 1;
    }
    made.cr3_match = 0x1000 * from.roll(3);
    made.counted = from.chance(50);
    return made;
}

inline constexpr std::size_t kind_count = sizeof engine::model_kinds /
                                          sizeof engine::model_kinds[0];

/// The kind of processor of a run: all kinds in turn.
constexpr auto kind_of_run(std::uint64_t number) -> engine::model_kind_info const& {
    return engine::model_kinds[number % kind_count];
}

/// The options of a kind; for `manual`, random ones that fit this configuration.
inline auto random_options(dice& from, setting const& with, engine::model_kind_info const& of)
    -> engine::model_options {
    auto how = of.options;
    if (of.which != engine::model_kind::manual) { return how; }
    how.tnt_capacity = from.chance(30) ? 47 : 6;
    how.defers_tips = with.dis_retc && from.chance(30);
    how.pads = from.chance(20) ? trace::pad_policy::within_words : trace::pad_policy::none;
    how.has_tsx = from.chance(50);
    how.ips = from.chance(50) ? trace::ip_choice::as_processors : trace::ip_choice::shortest;
    return how;
}

/// A processor, its memory, and the reference model.
class program {
public:
    program(setting const& with, engine::model_options const& how, dice& from)
        : dice_{from}, defers_{how.defers_tips}, what_{with}, unit_{state(with, how)} {}

    static constexpr std::uint64_t memory_at = 0x100'0000;
    static constexpr std::size_t memory_bytes = std::size_t{1} << 18;

    /// Traces this many random events. If `moves` is set, the unit is sometimes saved and loaded
    /// again.
    void run(unsigned events, bool moves) {
        using ctl = reg::ia32_rtit_ctl;
        auto const before = unit_.ip();
        auto const began = unit_.wrmsr(
            {.index = ctl::address, .value = what_.word(), .at = before, .next = before + 2},
            memory_);
        check(began.what == engine::access_outcome::done, "tracing begins");
        model_.begin(before + 2, unit_.state().code.cr3);
        for (unsigned i = 0; i < events; ++i) {
            step();
            if (moves && dice_.chance(5)) { move(); }
        }
        if (lost_) { end_overflow(); }
        go_far(0x40'0000, 0, unit_.state().code.cr3, false);  // WRMSR needs CPL 0
        auto const at = unit_.ip();
        auto const ended = unit_.wrmsr(
            {.index = ctl::address, .value = 0, .at = at, .next = at + 2}, memory_);
        check(ended.what == engine::access_outcome::done, "tracing ends");
        model_.end(at);
    }
    /// The bytes of the trace.
    [[nodiscard]] auto bytes() const -> byte_view {
        return byte_view{bytes_}.first(static_cast<std::size_t>(unit_.total().stored));
    }
    /// The number of items that the model expects.
    [[nodiscard]] auto item_count() const -> std::uint64_t { return model_.items.size(); }
    /// The first difference between the trace and the model; empty when there is none.
    [[nodiscard]] auto difference() -> std::string {
        check(unit_.total().stored <= memory_bytes && unit_.total().lost == 0, "nothing is lost");
        trace::reader from{bytes(), {.sync = false}};
        for (auto it = from.next(); it; it = from.next()) {
            check(it.what == trace::item_type::packet, "no damage");
            if (it.what != trace::item_type::packet) { continue; }
            packet::visit([&](auto const& packet) { this->compare(packet, it.ip); }, it.packet);
        }
        if (wrong_) {
            return "item " + std::to_string(next_) + " of " + std::to_string(wanted().size()) +
                   ": " + message_;
        }
        check(next_ == wanted().size(), "all items occur");
        check(!defers_ || next_bit_ == bits_.size(), "all branches occur");
        return message_;
    }

private:
    /// The buffer has room for 250 MTCs with CYCs where each packet begins at a multiple of 8.
    using unit = engine::trace_unit<8192>;

    static auto state(setting const& with, engine::model_options const& how) -> unit {
        access::msr_state now;
        now.output.base = {memory_at};
        now.output.mask_ptrs = {(memory_bytes - 1) | 0x7F};
        for (unsigned i = 0; i < 2; ++i) { now.addr[i] = {{with.from[i]}, {with.to[i]}}; }
        now.cr3_match = {with.cr3_match};
        if (with.counted) {
            using status = reg::ia32_rtit_status;
            now.status = now.status.with(status::PacketByteCnt{5});
        }
        return {cpu::preset::P_FUT, now, {.cr3 = 0x1000}, 0x40'0000, how};
    }

    void check(bool condition, char const* what) {
        if (!condition && message_.empty()) { message_ = std::string{"does not hold: "} + what; }
    }

    // -------------------------------------------------------------------------------- events

    auto address() -> std::uint64_t {
        // Usually in the address ranges, sometimes far away.
        return dice_.chance(95)
                   ? 0x40'0000 + dice_.roll(0x9000)
                   : dice_.roll(2) * 0xFFFF'8000'0000'0000 + dice_.roll(0x7FFF'FFFF'FFFF);
    }
    template <class Event>
    void on(Event const& e) {
        check(!unit_.on(e, memory_).happened, "no port fails");
    }
    void go_far(std::uint64_t to, unsigned cpl, std::uint64_t cr3, bool interrupts) {
        auto code = unit_.state().code;
        code.cpl = static_cast<std::uint8_t>(cpl);
        code.cr3 = cr3;
        unsigned const mode = cpl == 0 || dice_.chance(70) ? 64 : 32;
        code.width = mode == 64 ? engine::code_width::bits_64 : engine::code_width::bits_32;
        if (mode == 32) { to &= 0xFFFF'FFFF; }
        auto const from = unit_.ip();
        if (interrupts) {
            on(action::interrupt{.next = from, .to = to, .after = code});
        } else {
            on(action::far_transfer{.at = from, .to = to, .after = code});
        }
        model_.far_to(to, cpl, cr3, mode, interrupts, from);
    }
    auto target() -> std::uint64_t {
        auto const to = address();
        return unit_.state().code.width == engine::code_width::bits_64 ? to : to & 0xFFFF'FFFF;
    }
    void time_passes() {
        std::uint64_t const cycles = dice_.roll(50);
        std::uint64_t const ticks = dice_.roll(dice_.chance(10) ? 250 : 4);
        model_.cycle += model_.traces() ? cycles : 0;
        model_.crystal(art_, art_ + ticks);
        art_ += ticks;
        on(action::elapsed{cycles, art_, 3 * art_});
    }
    void end_overflow() {
        auto const ip = unit_.ip();
        on(action::overflow_end{ip});
        model_.end_overflow(ip);
        lost_ = false;
        forget_calls();
    }
    /// The calls so far no longer compress returns. GEN-130, GEN-135
    void forget_calls() { forgotten_calls_ = calls_.size(); }
    void step() {
        auto const here = unit_.ip();
        switch (dice_.roll(24)) {
            case 0: {
                auto const to = target();
                on(action::indirect_jump{to});
                return model_.indirect(to);
            }
            case 1: {
                auto const to = target();
                on(action::indirect_call{here + 3, to});
                calls_.push_back(here + 3);
                return model_.indirect(to);
            }
            case 2:
            case 3: {
                auto const to = dice_.chance(90) ? target() : here + 5;
                on(action::direct_call{here + 5, to});
                if (to != here + 5) { calls_.push_back(here + 5); }
                return model_.direct(to);
            }
            case 4:
            case 5: return go_back();
            case 6: {
                auto const to = target();
                on(action::direct_jump{to});
                return model_.direct(to);
            }
            case 7: return time_passes();
            case 8:
                return go_far(address(), dice_.chance(50) ? 3 : 0,
                              dice_.chance(80) ? unit_.state().code.cr3 : 0x1000 * dice_.roll(3),
                              dice_.chance(50));
            case 9: {
                auto const cr3 = 0x1000 * dice_.roll(3) | dice_.roll(0x1000);
                auto const no_flush = std::uint64_t{dice_.chance(50)} << 63;
                on(action::mov_cr3{here, here + 3, cr3 | no_flush});
                return model_.mov_cr3(here, here + 3, cr3);
            }
            case 10: return transact();
            case 11: {
                auto const value = dice_.roll(~std::uint64_t{0});
                on(action::ptwrite{here, here + 4, value, true});
                return model_.ptwrite(here, value);
            }
            case 12: return sleep();
            case 13: return lose();
            default: {
                bool const taken = dice_.chance(60);
                auto const to = taken ? target() : here + 2;
                on(action::conditional{to, taken});
                return model_.conditional(to, taken);
            }
        }
    }
    void go_back() {
        bool const wide = unit_.state().code.width == engine::code_width::bits_64;
        std::uint64_t const popped = wide ? ~std::uint64_t{0} : 0xFFFF'FFFF;
        if (dice_.chance(3)) {
            on(action::return_stack_lost{});
            forget_calls();
        }
        bool const called = !calls_.empty();
        auto const back = called ? calls_.back() & popped : 0;
        auto const to = called && dice_.chance(80) ? back : target();
        bool const is_known = called && calls_.size() > forgotten_calls_;
        if (called) { calls_.pop_back(); }
        if (!is_known) { forget_calls(); }
        on(action::near_return{to});
        model_.returned(to, is_known && to == back && !what_.dis_retc);
    }
    void transact() {
        auto const here = unit_.ip();
        if (in_tx_ != 0 && dice_.chance(50)) {
            auto const to = target();
            on(action::transaction_abort{here, to});
            model_.abort(here, to);
            in_tx_ = 0;
        } else if (in_tx_ != 0) {
            on(action::transaction_end{here, here + 3});
            model_.transaction(false, here);
            in_tx_ = 0;
        } else {
            on(action::transaction_begin{here, here + 3});
            model_.transaction(true, here);
            in_tx_ = 1;
        }
    }
    void move() {
        auto const image = engine::store(unit_);
        auto const loaded = engine::load<8192>(unit_.state().caps, image.view(),
                                               unit_.state().options);
        check(static_cast<bool>(loaded), "a unit that was saved loads");
        check(engine::store(loaded.unit).view() == image.view(), "and is the same");
        unit_ = loaded.unit;
    }
    void sleep() {
        auto const here = unit_.ip();
        auto const state = static_cast<std::uint8_t>(1 + dice_.roll(9));
        auto const hints = static_cast<std::uint8_t>(dice_.roll(256));
        on(action::mwait{.at = here, .next = here + 3, .hints = hints, .thread = {state, 0}});
        model_.mwait(here, hints, state);
        on(action::wake{state, state});
        model_.wake(state);
    }
    void lose() {
        if (defers_ || lost_ || !dice_.chance(10)) {
            if (lost_) { end_overflow(); }
            return;
        }
        model_.overflow(unit_.state().writer.tnt.count);
        on(action::overflow{});
        lost_ = unit_.state().in_overflow;
        if (lost_) { forget_calls(); }
    }

    // -------------------------------------------------------------------------------- reading

    /// The expected items. With deferred TIPs, branch bits are in a separate list, because their
    /// order relative to other items is not fixed.
    auto wanted() -> std::vector<item> const& {
        if (!defers_ || is_split_) { return is_split_ ? others_ : model_.items; }
        for (auto const& one : model_.items) {
            (one.kind == what::bit ? bits_ : others_).push_back(one);
        }
        is_split_ = true;
        return others_;
    }
    void fail(std::string const& why) {
        if (!wrong_ && message_.empty()) { message_ = why; }
        wrong_ = true;
    }
    /// Compares the next expected item with this one.
    void expect(what kind, std::uint64_t value, bool eligible) {
        if (wrong_ || in_psb_) { return; }
        auto const& all = wanted();
        if (next_ == all.size()) { return fail("too many items"); }
        auto const& one = all[next_];
        bool const has_ip = kind == what::pgd;
        bool const same = one.kind == kind ? one.value == value
                          : one.kind == what::returned
                              ? (kind == what::tip && one.value == value) ||
                                    (kind == what::bit && value == 1)
                              : one.kind == what::pgd_of_return &&
                                    (has_ip ? one.value == value : kind == what::pgd_no_ip);
        auto const differ = [&](char const* name) {
            fail(std::string{name} + ": kind " + std::to_string(underlying(one.kind)) + " value " +
                 std::to_string(one.value) + " mode " + std::to_string(one.mode) + " cycle " +
                 std::to_string(one.cycle) + ", not " + std::to_string(underlying(kind)) + " " +
                 std::to_string(value) + " " + std::to_string(mode_) + " " +
                 std::to_string(cycles_));
        };
        if (!same) { return differ("another item"); }
        bool const shows_mode = kind == what::tip || kind == what::pge;
        if (shows_mode && one.mode != mode_) { return differ("another mode"); }
        if (eligible && timed_ && one.cycle != cycles_) { return differ("another time"); }
        timed_ = timed_ && !eligible;
        ++next_;
    }
    void expect_bits(packet::branches const& all) {
        for (unsigned i = 0; i < all.count; ++i) {
            if (!defers_) {
                expect(what::bit, all.taken(i) ? 1 : 0, i == 0);
                continue;
            }
            // With deferred TIPs, a compressed return is an item, not a branch bit.
            wanted();
            bool const is_next = next_bit_ < bits_.size();
            if (is_next && bits_[next_bit_].value == (all.taken(i) ? 1U : 0U)) {
                ++next_bit_;
            } else {
                fail("another bit");
            }
        }
        timed_ = false;
    }

    template <class Packet>
    void compare(Packet const&, std::uint64_t) {}
    void compare(packet::tnt_short const& p, std::uint64_t) { expect_bits(p.taken()); }
    void compare(packet::tnt_long const& p, std::uint64_t) { expect_bits(p.taken()); }
    void compare(packet::tip const&, std::uint64_t ip) { expect(what::tip, ip, true); }
    void compare(packet::tip_pge const&, std::uint64_t ip) { expect(what::pge, ip, true); }
    void compare(packet::tip_pgd const& p, std::uint64_t ip) {
        expect(p.has_ip() ? what::pgd : what::pgd_no_ip, p.has_ip() ? ip : 0, true);
    }
    void compare(packet::fup const&, std::uint64_t ip) { expect(what::fup, ip, false); }
    void compare(packet::pip const& p, std::uint64_t) {
        expect(what::pip, p.get<packet::pip::CR3>(), true);
    }
    void compare(packet::mode_exec const& p, std::uint64_t) {
        mode_ = p.code_bits();
        timed_ = false;
    }
    void compare(packet::mode_tsx const& p, std::uint64_t) {
        expect(what::tsx,
               (p.get<packet::mode_tsx::InTX>() ? 1U : 0U) |
                   (p.get<packet::mode_tsx::TXAbort>() ? 2U : 0U),
               true);
    }
    void compare(packet::tracestop const&, std::uint64_t) { expect(what::trace_stop, 0, false); }
    void compare(packet::ptw const& p, std::uint64_t) { expect(what::ptw, p.payload(), true); }
    void compare(packet::mwait const& p, std::uint64_t) {
        expect(what::mwait, p.get<packet::mwait::hints>(), true);
    }
    void compare(packet::pwre const& p, std::uint64_t) {
        expect(what::pwre, p.get<packet::pwre::state>(), false);
    }
    void compare(packet::exstop const& p, std::uint64_t) {
        expect(what::exstop, p.get<packet::exstop::IP>() ? 1 : 0, true);
    }
    void compare(packet::pwrx const& p, std::uint64_t) {
        expect(what::pwrx, p.get<packet::pwrx::deepest>(), false);
    }
    void compare(packet::mtc const& p, std::uint64_t) {
        expect(what::mtc, p.get<packet::mtc::CTC>(), true);
    }
    void compare(packet::tsc const&, std::uint64_t) { timed_ = false; }
    void compare(packet::ovf const&, std::uint64_t) { timed_ = false; }
    void compare(packet::cyc const& p, std::uint64_t) {
        cycles_ += p.value();
        timed_ = true;
    }
    void compare(packet::psb const&, std::uint64_t) {
        in_psb_ = true;
        mode_ = 0;
    }
    void compare(packet::psbend const&, std::uint64_t) { in_psb_ = false; }

    dice& dice_;
    bool defers_;
    setting what_;
    std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(memory_bytes);
    host_region regions_[1] = {{memory_at, bytes_.data(), memory_bytes}};
    host_memory memory_{regions_};
    unit unit_;
    model model_{what_};
    std::vector<std::uint64_t> calls_;
    std::size_t forgotten_calls_ = 0;  ///< calls that no longer compress returns
    std::uint64_t art_ = 0;
    unsigned in_tx_ = 0;
    bool lost_ = false;

    std::vector<item> bits_, others_;
    bool is_split_ = false;
    std::size_t next_ = 0, next_bit_ = 0;
    std::uint64_t cycles_ = 0;
    unsigned mode_ = 0;
    bool in_psb_ = false, timed_ = false, wrong_ = false;
    std::string message_;
};

}  // namespace ptspec::test::programs
