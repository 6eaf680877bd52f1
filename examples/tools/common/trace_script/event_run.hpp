// SPDX-License-Identifier: BSL-1.0
#pragma once

// One event of a script that executes: its arguments, whose defaults depend on the processor.

#include "processor.hpp"
#include "setup.hpp"

#include <cstddef>
#include <cstdint>

namespace trace_script {

/// The result of a valid event. Otherwise the result is the text that was expected.
inline constexpr string_view valid{};

inline constexpr std::uint64_t kernel = 0xFFFF'8000'0010'0000;

/// The program that a script executes, as far as later events depend on it.
struct program {
    static constexpr std::size_t max_calls = 128;

    std::uint64_t calls[max_calls] = {};  ///< return addresses
    std::size_t depth = 0;
    std::uint64_t cycle = 0;  ///< of the last event with a time
    std::uint8_t core = 1;    ///< the C-state of the core

    constexpr void push(std::uint64_t next) {
        if (depth < max_calls) { calls[depth++] = next; }
    }
    constexpr void pop() { depth -= depth != 0 ? 1 : 0; }
};

/// The moments of an event.
struct moment_list {
    action::moment all[max_moments] = {};
    std::size_t count = 0;

    /// False if there are too many.
    constexpr auto add(action::moment const& one) -> bool {
        if (count == max_moments) { return false; }
        all[count++] = one;
        return true;
    }
    [[nodiscard]] constexpr auto view() const -> action::time_within { return {all, count}; }
};

/// `TSC@5+MTC,TMA@0`: 5 cycles pass before the TSC, then an MTC falls due; nothing before the
/// TMA. `+MTC.now` is an MTC of the count that TMA reports.
constexpr auto read_moments(string_view text, moment_list& to) -> string_view {
    constexpr string_view expected = "PACKET@cycles, with +MTC or +MTC.now, and at most 32 of them";
    while (!text.empty()) {
        auto item = take_item(text, ',');
        auto const name = item.substr(0, item.find('@'));
        bool is_packet = false;
        action::moment one;
        for (unsigned i = 0; i < packet::kind_count; ++i) {
            auto const of = packet::name_of(static_cast<packet::kind>(i));
            if (name != string_view{of.data(), of.size()}) { continue; }
            one.before = static_cast<packet::kind>(i);
            is_packet = true;
        }
        if (!is_packet || name.size() == item.size()) { return expected; }
        item = item.substr(name.size() + 1);
        auto const plus = item.find('+');
        auto const mtc = plus == string_view::npos ? string_view{} : item.substr(plus);
        auto const cycles = number_in(item.substr(0, plus), 10);
        one.mtc = mtc == "+MTC"       ? action::due_mtc::next
                  : mtc == "+MTC.now" ? action::due_mtc::reported
                                      : action::due_mtc::none;
        bool const is_read = mtc.empty() || one.mtc != action::due_mtc::none;
        if (!cycles || !is_read) { return expected; }
        one.cycles = *cycles;
        if (!to.add(one)) { return expected; }
    }
    return valid;
}

/// An event, and what it acts on.
template <class Processor>
struct event_run {
    Processor& on;
    program& code;
    event_text& text;
    moment_list& moments;
    action::time_within takes{};  ///< of the next action
    string_view expected{};       ///< in place of an argument

    template <class Action>
    constexpr void execute(Action const& what) {
        on.execute(what, taken());
    }
    /// The moments, for the first action only.
    constexpr auto taken() -> action::time_within {
        auto const all = takes;
        takes = {};
        return all;
    }
    [[nodiscard]] constexpr auto state() const -> engine::generator_state const& {
        return on.unit().state();
    }
    [[nodiscard]] constexpr auto ip() const -> std::uint64_t { return on.unit().ip(); }
    constexpr void call(std::uint64_t next) {
        code.push(next);
        execute(action::direct_call{next, next + 0x1000});
    }
    [[nodiscard]] constexpr auto returns_to() const -> std::uint64_t {
        return code.depth == 0 ? ip() + 0x10 : code.calls[code.depth - 1];
    }

    // ------------------------------------------------------------------------------- arguments

    constexpr auto value(string_view name) -> string_view { return text.value(name); }
    /// A numeric argument, or `other` when it is absent.
    constexpr auto number(string_view name, std::uint64_t other,
                          std::uint64_t most = ~std::uint64_t{0}) -> std::uint64_t {
        auto const digits = value(name);
        if (digits.empty()) { return other; }
        auto const given = number_in(digits);
        if (!given) { expected = "a hexadecimal number as the argument"; }
        if (given.value_or(0) > most) { expected = "a smaller number as the argument"; }
        return given.value_or(other);
    }
    constexpr auto vector(std::uint64_t other) -> std::uint8_t {
        return static_cast<std::uint8_t>(number("vector", other, 0xFF));
    }
    constexpr auto at() -> std::uint64_t { return number("at", ip()); }
    constexpr auto next(std::uint64_t length = 2) -> std::uint64_t {
        return number("next", at() + length);
    }
    constexpr auto target(std::uint64_t other) -> std::uint64_t {
        if (!text.has_target) { return other; }
        if (text.target == "kernel") { return kernel; }
        auto const given = number_in(text.target);
        if (!given) { expected = "a hexadecimal address or kernel after ->"; }
        return given.value_or(other);
    }
    constexpr auto c_state(string_view name, std::uint8_t other) -> std::uint8_t {
        auto const given = value(name);
        if (given.empty()) { return other; }
        auto const state = given[0] == 'C' ? number_in(given.substr(1), 10) : maybe_number{};
        if (!state || *state > 15) { expected = "a C-state C0 to C15"; }
        return static_cast<std::uint8_t>(state.value_or(other));
    }
    /// The execution mode after a transfer to a privilege level.
    constexpr auto after(std::uint64_t cpl) -> execution_context {
        auto made = state().code;
        made.cpl = static_cast<std::uint8_t>(number("CPL", cpl, 3));
        made.IF = number("IF", made.IF ? 1 : 0, 1) != 0;
        made.cr3 = number("CR3", made.cr3);
        auto const mode = value("mode");
        if (mode == "16") {
            made.width = engine::code_width::bits_16;
        } else if (mode == "32") {
            made.width = engine::code_width::bits_32;
        } else if (mode == "64") {
            made.width = engine::code_width::bits_64;
        } else if (!mode.empty()) {
            expected = "a mode of 16, 32 or 64";
        }
        auto const vmx = value("VMX");
        if (!vmx.empty()) { made.vmx_non_root = vmx == "nonroot"; }
        if (!vmx.empty() && vmx != "root" && vmx != "nonroot") { expected = "root or nonroot"; }
        return made;
    }
    /// IA32_RTIT_CTL with another TraceEn. OS and User may change where TraceEn rises.
    constexpr auto ctl_with(bool trace_en) -> reg::ia32_rtit_ctl {
        using ctl = reg::ia32_rtit_ctl;
        ctl const now = on.unit().msrs().ctl;
        if (!trace_en) { return now.with(ctl::TraceEn{false}); }
        return now.with(ctl::TraceEn{true}, ctl::OS{number("OS", now.get<ctl::OS>(), 1) != 0},
                        ctl::User{number("User", now.get<ctl::User>(), 1) != 0});
    }
};

}  // namespace trace_script
