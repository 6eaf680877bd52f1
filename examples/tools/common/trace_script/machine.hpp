// SPDX-License-Identifier: BSL-1.0
#pragma once

// A logical processor that executes a script.

#include "branches.hpp"
#include "clockwork.hpp"
#include "instructions.hpp"
#include "print.hpp"
#include "processor.hpp"
#include "transfers.hpp"

namespace trace_script {

/// Executes events on a logical processor with an output region of `Bytes` bytes.
template <std::size_t Bytes>
class machine {
public:
    static constexpr std::uint64_t table = processor<Bytes>::table;

    /// Sets the initial state.
    constexpr void begin(start const& given) {
        on_.begin(given);
        for (std::uint64_t i = 0; i < given.calls; ++i) { code_.push(given.return_address(i)); }
    }

    /// Executes one event. Returns an empty text, or what was expected instead.
    constexpr auto run(string_view text) -> string_view {
        auto done = cut(text);
        if (!done.expected.empty()) { return done.expected; }
        event_text& e = done.parts;
        if (e.cycle && e.rest.find("task_gate") == string_view::npos) {
            if (*e.cycle < code_.cycle) { return "a time that is not before the last one"; }
            on_.execute(action::cycles{*e.cycle - code_.cycle});
            code_.cycle = *e.cycle;
        }
        moment_list moments;
        if (auto const expected = read_moments(e.value("takes"), moments); !expected.empty()) {
            return expected;
        }
        for (std::uint64_t i = 0; i < e.times; ++i) {
            event_run<processor<Bytes>> one{on_, code_, e, moments, moments.view()};
            auto const expected = run_kind(one);
            if (!one.expected.empty()) { return one.expected; }
            if (!expected.empty()) { return expected; }
        }
        if (on_.has_failed()) { return "a shorter trace: there is no more memory"; }
        return e.unused().empty() ? valid : string_view{"arguments that this event has"};
    }

    /// Prints the packets so far, or `none`. Returns false when the trace has errors.
    template <class Out>
    constexpr auto print_packets(Out& out) const -> bool {
        bool first = true;
        packet_printer<Out> printer{out, on_.traces_events()};
        auto each = [&](auto const& packet, trace::packet_place where) {
            if (!first) { out(text{", "}); }
            first = false;
            printer(packet, where);
        };
        trace::reader from{written(), {.sync = false}};
        bool valid_packets = true;
        for (auto item = from.next(); item; item = from.next()) {
            if (item.what != trace::item_type::packet) {
                valid_packets = false;
                continue;
            }
            packet::visit([&](auto const& packet) { each(packet, item.place()); }, item.packet);
        }
        if (first) { out(text{"none"}); }
        return valid_packets;
    }
    /// Prints a field of CTL or STATUS, the value of `shutdown`, or the bits of `pending`. Returns
    /// false for any other name.
    template <class Out>
    constexpr auto print_value(string_view name, Out& out) -> bool {
        if (name == "pending") {
            auto const held = on_.unit().state().writer.tnt;
            for (unsigned i = 0; i < held.count; ++i) {
                out(held.taken(i) ? text{"1"} : text{"0"});
            }
            if (held.count == 0) { out(text{"none"}); }
            return true;
        }
        if (name == "shutdown") {
            out(on_.unit().state().shutdown_by != rule::none ? text{"1"} : text{"0"});
            return true;
        }
        auto const& now = on_.unit().msrs();
        return print_field(now.ctl, name, out) || print_field(now.status, name, out);
    }

    /// The trace in memory.
    [[nodiscard]] constexpr auto written() const -> byte_view { return on_.written(); }
    [[nodiscard]] constexpr auto wrapped_around() const -> bool { return on_.wrapped_around(); }
    [[nodiscard]] constexpr auto unit() const -> engine::trace_unit<> const& { return on_.unit(); }

private:
    template <class Word, class Out>
    static constexpr auto print_field(Word word, string_view name, Out& out) -> bool {
        auto const* const field = print::row_list_of<Word>().field({name.data(), name.size()});
        if (field == nullptr) { return false; }
        auto const& row = field->row;
        print::hex(word.raw >> row.lsb & low_bits(row.msb - row.lsb + 1), out);
        return true;
    }
    static constexpr auto run_kind(event_run<processor<Bytes>>& run) -> string_view {
        auto const kind = run.text.kind;
        if (kind == "Jcc" || kind == "JMP" || kind == "CALL" || kind == "RET") {
            return near_branch(run);
        }
        if (kind == "any" || kind == "branches" || kind == "PUSH" || kind == "POP" ||
            kind == "NOP" || kind == "fall") {
            return silent(run);
        }
        if (kind == "interrupt" || kind == "NMI" || kind == "fault" || kind == "INT" ||
            kind == "SYSCALL" || kind == "SYSRET" || kind == "IRET" || kind == "ERETU" ||
            kind == "ERETS" || kind == "INIT" || kind == "SIPI") {
            return far_away(run);
        }
        if (kind == "MOV" || kind == "WRMSR" || kind == "STI" || kind == "CLI" ||
            kind == "XBEGIN" || kind == "XEND" || kind == "abort" || kind == "PTWRITE" ||
            kind == "ACM") {
            return instruction(run);
        }
        if (kind == "VM" || kind == "VMPTRLD" || kind == "EENTER" || kind == "ERESUME" ||
            kind == "EEXIT" || kind == "AEX" || kind == "SMI" || kind == "RSM") {
            return transition(run);
        }
        if (kind == "HLT" || kind == "MWAIT" || kind == "wake" || kind == "clock") {
            return power(run);
        }
        return clockwork(run);
    }

    processor<Bytes> on_{};
    program code_{};
};

}  // namespace trace_script
