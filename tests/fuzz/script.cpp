// SPDX-License-Identifier: BSL-1.0
// Fuzzes the scripts of pt_model: a line of SETUP, then EVENTS. An invalid script gives a message;
// a valid one gives a trace of packets from end to end.

#include <memory>
#include <string>
#include <string_view>

#include <fuzz/check.hpp>

#include "../../examples/tools/common/trace_script/machine.hpp"

namespace {

using fuzz::require;
using machine = trace_script::machine<size_t{1} << 16>;

/// Limits the run time: an event can be repeated a million times.
constexpr size_t max_letters = 400;

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    std::string_view const all{reinterpret_cast<char const*>(data),
                               size < max_letters ? size : max_letters};
    auto const line = all.find('\n');
    auto const setup = all.substr(0, line);
    auto events = line == std::string_view::npos ? std::string_view{} : all.substr(line + 1);

    auto const read = trace_script::read_setup(setup, machine::table);
    if (read.wrong) {
        require(!read.wrong.expected.empty(), "a rejected setup has an error message");
        return 0;
    }
    auto const on = std::make_unique<machine>();
    on->begin(read.made);
    while (!events.empty()) {
        auto const event = trace_script::take_item(events, ';');
        if (event.empty()) { continue; }
        if (event.find('x') != std::string_view::npos) { continue; }  // repeats an event
        if (!on->run(event).empty()) { return 0; }
        if (on->wrapped_around()) { return 0; }
    }
    size_t letters = 0;
    auto out = [&](ptspec::text piece) { letters += piece.size(); };
    bool const whole = on->print_packets(out);
    require(whole || on->unit().total().lost != 0, "a trace consists of packets");
    require(letters != 0, "every trace is printed");
    for (auto const* name : {"pending", "shutdown", "TraceEn", "Stopped", "nothing"}) {
        (void)on->print_value(name, out);
    }
    return 0;
}
