// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "../../examples/tools/common/trace_script/print.hpp"
#include "../../examples/tools/common/trace_script/setup.hpp"

#include <ptspec/engine/generator.hpp>

#include <string>
#include <string_view>

// A packet generator under test: setup, and its packets as text.

namespace ptspec::test {

/// Large enough for the packets of a test.
using packets_text = print::fixed_text<8192>;

/// Packets as text, in the notation of the catalogue.
constexpr auto packets_in(byte_view bytes, bool with_if = false) -> packets_text {
    packets_text out;
    trace_script::packet_printer<packets_text> printer{out, with_if};
    trace::reader from{bytes, {.sync = false}};
    bool first = true;
    for (auto item = from.next(); item; item = from.next()) {
        if (!first) { out(text{", "}); }
        first = false;
        if (item.what != trace::item_type::packet) {
            out(text{"DAMAGE"});
            continue;
        }
        packet::visit([&](auto const& packet) { printer(packet, item.place()); }, item.packet);
    }
    if (first) { out(text{"none"}); }
    return out;
}

/// Calls `visitor` for the packets that it takes.
inline void read(byte_view bytes, auto&& visitor) {
    trace::reader from{bytes, {.sync = false}};
    for (auto it = from.next(); it; it = from.next()) {
        packet::visit(
            [&](auto const& which) {
                if constexpr (requires { visitor(which); }) { visitor(which); }
            },
            it.packet);
    }
}

/// A packet generator that is set up from text, as in the worked cases, with its output buffer.
class traced : public engine::generator {
public:
    constexpr explicit traced(std::string_view setup = {}) : traced{started(setup)} {}
    constexpr explicit traced(trace_script::start const& from)
        : generator{from.of, from.msrs, from.code, from.ip, from.how} {
        conceal(from.hidden);
        set_clocks(from.clocks);
    }
    /// The state of a setup. An invalid setup is not a constant expression.
    static constexpr auto started(std::string_view setup) -> trace_script::start {
        auto const read = trace_script::read_setup(setup, 0x1'0000);
        return read.wrong ? not_a_setup() : read.made;
    }

    [[nodiscard]] constexpr auto ip() const -> uint64_t { return state().ip; }
    [[nodiscard]] constexpr auto msrs() const -> access::msr_state const& { return state().msrs; }

    template <class Event>
    constexpr auto does(Event const& e) -> traced& {
        on(e, bytes);
        return *this;
    }
    /// The same while time passes.
    template <class Event>
    constexpr auto does(Event const& e, engine::action::time_within takes) -> traced& {
        on(e, bytes, takes);
        return *this;
    }
    constexpr auto writes(uint32_t index, uint64_t value, uint64_t at, uint64_t next) -> traced& {
        answer = wrmsr({.index = index, .value = value, .at = at, .next = next}, bytes);
        return *this;
    }
    [[nodiscard]] constexpr auto packets() const -> packets_text {
        return packets_in(bytes.written(), state().ctl<reg::ia32_rtit_ctl::EventEn>());
    }

    uint8_t room[2048] = {};
    byte_buffer bytes{room};
    access::verdict answer{};

    // The buffer refers to this object.
    traced(traced const&) = delete;
    auto operator=(traced const&) -> traced& = delete;

private:
    static auto not_a_setup() -> trace_script::start { return {}; }
};

/// The packets so far, as a string that a failed check prints.
inline auto packets(traced const& on) -> std::string {
    auto const all = on.packets();
    return {all.characters, all.length};
}

}  // namespace ptspec::test
