// SPDX-License-Identifier: BSL-1.0
//
// What trace does a processor make of what it does? `pt_model "OS=0" "Jcc T; SYSCALL->kernel"`
// prints TNT(1), TIP.PGD(). tests/spec/notation.md, section 3, is the grammar.

#include "pt_model_machine.hpp"
#include "pt_model_why.hpp"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using pt_model::string_view;

constexpr char const* usage =
    R"(usage: pt_model [--setup SETUP] [--events EVENTS] [--show NAME,..] [-o FILE] [--memory] [--explain]
       pt_model SETUP EVENTS [options]

Lets a logical processor do what EVENTS say, and prints the packets of its trace.

  --setup SETUP    what differs from the base state: OS=0, ADDR0=[1000,10FF] filter, TSCEn=MTCEn=1
                   The base state is 64-bit code at CPL 3 with TraceEn, OS, User, ToPA, BranchEn
  --events EVENTS  Jcc T; CALL RAX at=1000 next=1002->2000; interrupt next=1010->F000; ..
                   Without it events are read from standard input, `;` or a line's end between them
  --show NAME,..   afterwards also fields of IA32_RTIT_CTL and IA32_RTIT_STATUS, `pending` for the
                   TNT bits that are in no packet yet, `shutdown`
  -o FILE          writes the trace's bytes to FILE
  --memory         also the output memory: the table, and the bytes in its region
  --explain        also a line for each packet: the event that it comes from, and the rules behind it
  --help           prints this

Numbers are hexadecimal, cycles (t=) decimal. The grammar: tests/spec/notation.md, section 3.
Exit status: 0; 2 for a setup or an event that cannot be read, told with its number.
)";

/// The trace of one processor may have as many bytes.
constexpr std::size_t most_bytes = std::size_t{1} << 22;
using machine = pt_model::machine<most_bytes>;

struct arguments {
    std::string setup;
    std::string events;
    bool has_setup = false;
    bool has_events = false;
    std::vector<std::string> show;
    std::string output;
    bool memory = false;
    bool explain = false;
};

/// What cannot be done, and why.
struct refusal {
    std::string why;
};

auto parse(int count, char** words) -> arguments {
    arguments given;
    auto const value = [&](int& i) -> std::string {
        if (i + 1 >= count) { throw refusal{std::string{words[i]} + " needs a value"}; }
        return words[++i];
    };
    for (int i = 1; i < count; ++i) {
        std::string const word = words[i];
        if (word == "--setup") {
            given.setup = value(i);
            given.has_setup = true;
        } else if (word == "--events") {
            given.events = value(i);
            given.has_events = true;
        } else if (word == "--show") {
            std::istringstream names{value(i)};
            for (std::string name; std::getline(names, name, ',');) { given.show.push_back(name); }
        } else if (word == "-o") {
            given.output = value(i);
        } else if (word == "--memory") {
            given.memory = true;
        } else if (word == "--explain") {
            given.explain = true;
        } else if (word.size() > 1 && word[0] == '-') {
            throw refusal{word + " is no option; --help lists them"};
        } else if (!given.has_setup) {
            given.setup = word;
            given.has_setup = true;
        } else if (!given.has_events) {
            given.events = word;
            given.has_events = true;
        } else {
            throw refusal{"'" + word + "' is too much"};
        }
    }
    if (!given.has_events) {
        given.events.assign(std::istreambuf_iterator<char>{std::cin}, {});
        for (char& letter : given.events) { letter = letter == '\n' ? ';' : letter; }
    }
    return given;
}

auto shown(string_view text) -> std::string {
    std::string safe;
    for (char const letter : text.substr(0, 60)) {
        safe += letter >= ' ' && letter <= '~' ? letter : '?';
    }
    return "'" + safe + (text.size() > 60 ? "...'" : "'");
}

/// One event of a script, and how long the trace was behind it.
struct happened {
    std::string text;
    std::size_t bytes;
};

/// Lets the events of one processor happen.
auto run(machine& on, string_view events) -> std::vector<happened> {
    std::vector<happened> all;
    for (std::size_t number = 0; !events.empty();) {
        auto const event = pt_model::take_item(events, ';');
        if (event.empty()) { continue; }
        ++number;
        auto const expected = on.run(event);
        if (!expected.empty()) {
            throw refusal{"event " + std::to_string(number) + " " + shown(event) + ": expected " +
                          std::string{expected}};
        }
        if (on.wrapped_around()) {
            throw refusal{"event " + std::to_string(number) + ": the trace has more than " +
                          std::to_string(most_bytes) + " bytes"};
        }
        all.push_back({std::string{event}, on.written().size()});
    }
    return all;
}

auto packets_of(machine& on, std::vector<std::string> const& show) -> std::string {
    std::string line;
    auto out = [&](ptspec::text piece) { line.append(piece.data(), piece.size()); };
    (void)on.print_packets(out);
    for (auto const& name : show) {
        line += "; " + name + "=";
        if (!on.print_value(name, out)) { throw refusal{"--show knows no " + shown(name)}; }
    }
    return line;
}

void explain(machine& on, std::vector<happened> const& events) {
    using namespace ptspec;
    trace::reader from{on.written(), {.sync = false}};
    std::size_t event = 0;
    for (auto item = from.next(); item; item = from.next()) {
        if (item.what != trace::event::packet) { continue; }
        while (event + 1 < events.size() && item.offset >= events[event].bytes) { ++event; }
        std::string line;
        auto out = [&](text piece) { line.append(piece.data(), piece.size()); };
        pt_model::packet_printer printer{out, on.unit().events_are_traced()};
        packet::visit(
            [&](auto const& packet) {
                printer(packet, trace::at{item.offset, item.ip, item.length});
            },
            item.packet);
        std::cout << "  " << line << "  event " << event + 1 << ", "
                  << (events.empty() ? "" : events[event].text) << ": "
                  << pt_model::why(item.packet.kind()) << "\n";
    }
}

void show_memory(machine& on) {
    auto const bytes = on.written();
    std::printf("  %llX  table: entry 0 the region at %llX, %zu bytes; entry 1 back to entry 0\n",
                static_cast<unsigned long long>(machine::table),
                static_cast<unsigned long long>(pt_model::region_base), most_bytes);
    for (std::size_t i = 0; i < bytes.size(); i += 16) {
        std::uint64_t const address = pt_model::region_base + i;
        std::printf("  %llX ", static_cast<unsigned long long>(address));
        for (std::size_t j = i; j < bytes.size() && j < i + 16; ++j) {
            std::printf(" %02X", static_cast<unsigned>(bytes[j]));
        }
        std::puts("");
    }
}

auto work(arguments const& given) -> int {
    auto const read = pt_model::read_setup(given.setup, machine::table);
    if (read.wrong) {
        throw refusal{"setup " + shown(read.wrong.found) + ": expected " +
                      std::string{read.wrong.expected}};
    }
    // Events of two processors stand behind `A:` and `B:`, and are joined by ` / `.
    std::vector<std::pair<std::string, string_view>> parts;
    string_view const all = given.events;
    if (read.made.two_processors) {
        auto const second = all.find(" / B:");
        if (!pt_model::begins(all, "A:") || second == string_view::npos) {
            throw refusal{"event 1: expected A: events / B: events"};
        }
        parts.emplace_back("A: ", all.substr(2, second - 2));
        parts.emplace_back("B: ", all.substr(second + 5));
    } else {
        parts.emplace_back("", all);
    }
    std::ofstream file;
    if (!given.output.empty()) { file.open(given.output, std::ios::binary); }
    std::string line;
    std::vector<std::unique_ptr<machine>> machines;
    std::vector<std::vector<happened>> events;
    for (auto const& [name, text] : parts) {
        machines.push_back(std::make_unique<machine>());
        machines.back()->begin(read.made);
        events.push_back(run(*machines.back(), text));
        line += (line.empty() ? "" : " / ") + name + packets_of(*machines.back(), given.show);
        auto const bytes = machines.back()->written();
        if (file.is_open()) {
            file.write(reinterpret_cast<char const*>(bytes.data()),
                       static_cast<std::streamsize>(bytes.size()));
        }
    }
    if (!given.output.empty() && !file.flush()) {
        std::cerr << "pt_model: cannot write " << given.output << "\n";
        return 1;
    }
    std::cout << line << "\n";
    for (std::size_t i = 0; i < machines.size(); ++i) {
        if (given.explain) { explain(*machines[i], events[i]); }
        std::cout.flush();
        if (given.memory) { show_memory(*machines[i]); }
    }
    return 0;
}

}  // namespace

auto main(int count, char** words) -> int {
    for (int i = 1; i < count; ++i) {
        if (string_view{words[i]} == "--help") {
            std::cout << usage;
            return 0;
        }
    }
    try {
        return work(parse(count, words));
    } catch (refusal const& no) {
        std::cerr << "pt_model: " << no.why << "\n";
        return 2;
    }
}
