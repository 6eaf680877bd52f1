// SPDX-License-Identifier: BSL-1.0

// pt_model: prints the trace packets that a modelled processor generates for a script of events.
// `pt_model --setup OS=0 -e "Jcc T; SYSCALL->kernel"` prints TNT(1), TIP.PGD().
// tests/spec/notation.md, section 3, is the grammar.

#include "../common/script.hpp"
#include "../common/trace_script/machine.hpp"
#include "../common/trace_script/why.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using trace_script::string_view;

constexpr char const* usage =
    R"(usage: pt_model [OPTION...] [-e EVENTS... | SCRIPT]

Executes the events of a script on a modelled logical processor, and prints the packets of its
trace. The script is the text of -e, the file SCRIPT, or standard input (also as -). At a terminal,
pt_model without a script prints this text. Events are separated by ; or newlines, and have at most
4096 characters each. A # at the start of an event begins a comment, which ends with the line.
Numbers are hexadecimal, except cycles (t=) and repeat counts (n x), which are decimal.

  -e EVENTS        the text of the script; each further -e adds a line
  --setup SETUP    changes to the base state, which is 64-bit code at CPL 3 with TraceEn, OS, User,
                   ToPA and BranchEn set. Examples: OS=0, ADDR0=[1000,10FF] filter,
                   TSCEn=MTCEn=1. Options of the model are set by name: pads=1, psb_after_pge=1
  --kind KIND      the kind of processor: manual, broadwell, skylake, icelake or atom. The default
                   is manual, for which the catalogue's cases are written. The same as kind=KIND
                   in SETUP
  --show NAME,...  after the trace, also print fields of IA32_RTIT_CTL and IA32_RTIT_STATUS,
                   `pending` (TNT bits that are not yet in a packet) or `shutdown`
  -o FILE          write the bytes of the trace to FILE. With - they go to standard output, and no
                   text is printed
  --memory         also print the output memory: the ToPA table, and the bytes in its region
  --explain        also print a line for each packet: the event that caused it, and its rules
  -h, --help       print this text

Events. Arguments follow the words in any order: at= is the IP of the instruction, next= the IP of
the next instruction; ->ADDRESS or ->kernel is the target.

  Jcc T, Jcc N     JMP rel, JMP RAX     CALL rel, CALL RAX     RET     NOP, PUSH, POP
  interrupt, NMI, fault #PF, INT 80     SYSCALL, SYSRET, IRET     SMI, RSM     VM exit, VM entry
  MOV CR3,V     WRMSR TraceEn=0     PTWRITE RAX=V     XBEGIN, XEND, abort     HLT, MWAIT 0,0
  n x EVENT repeats an event; t=n EVENT executes it at that core cycle

A script may begin with a line `setup SETUP`, as those of pt_twin do; --setup comes after it.
With LP=A+B in SETUP the script is `A: EVENTS / B: EVENTS`, for two processors. The file
tests/spec/notation.md, section 3, lists all events and all items of a setup.

Example:
  $ pt_model --setup OS=0 -e 'Jcc T; SYSCALL->kernel'
  TNT(1), TIP.PGD()

Exit status: 0 success; 2 wrong usage, an invalid setup or event (the message has the number of the
event), a trace of more than 4 MB, or a file that cannot be read or written.
)";

/// The trace of one processor may have this many bytes.
constexpr std::size_t max_bytes = std::size_t{1} << 22;
using machine = trace_script::machine<max_bytes>;

struct arguments {
    std::string setup;
    std::string kind = "manual";
    tool::script_choice script;
    std::vector<std::string> show;
    std::optional<std::string> output;
    bool help = false;
    bool memory = false;
    bool explain = false;
};

auto parse(tool::command_line& line) -> arguments {
    arguments given;
    while (line.next()) {
        if (line.is_help()) {
            given.help = true;
        } else if (line.is("--setup")) {
            given.setup = line.value();
        } else if (line.is("--kind")) {
            given.kind = line.value();
        } else if (line.is("--show")) {
            auto const names = line.value();
            for (string_view rest = names; !rest.empty();) {
                given.show.emplace_back(trace_script::take_item(rest, ','));
            }
        } else if (line.is("-o")) {
            given.output = line.value();
        } else if (line.is("--memory")) {
            given.memory = true;
        } else if (line.is("--explain")) {
            given.explain = true;
        } else if (!given.script.accept(line)) {
            line.refuse();
        }
    }
    return given;
}

/// An event that added bytes to the trace.
struct traced_event {
    std::uint64_t number;  ///< counts from 1; 0 is the setup
    std::string text;
    std::size_t bytes;  ///< size of the trace after this event
};

/// A logical processor, and the events that caused its trace.
struct processor {
    std::string name;
    std::unique_ptr<machine> on = std::make_unique<machine>();
    std::vector<traced_event> events{};

    void run(string_view event, std::uint64_t number, bool keep) {
        auto const refuse = [&](std::string const& why) {
            throw tool::failure{"event " + std::to_string(number) + ' ' + tool::quoted(event) +
                                ": " + why};
        };
        auto const before = on->written().size();
        auto const expected = on->run(event);
        if (!expected.empty()) { refuse("expected " + std::string{expected}); }
        if (on->wrapped_around()) {
            refuse("the trace has more than " + std::to_string(max_bytes) + " bytes");
        }
        auto const bytes = on->written().size();
        if (keep && bytes != before) { events.push_back({number, tool::clipped(event), bytes}); }
    }
};

auto start_of(std::string const& setup) -> trace_script::start {
    auto const read = trace_script::read_setup(setup, machine::table);
    if (read.wrong) {
        throw tool::failure{"setup " + tool::quoted(read.wrong.found) + ": expected " +
                            std::string{read.wrong.expected}};
    }
    return read.made;
}

/// Runs all events of a script, on one processor or on two. Only the current event is in memory.
auto run(arguments const& given) -> std::vector<processor> {
    constexpr string_view setup_word = "setup ";
    auto text = given.script.open();
    tool::script source{text, "event", tool::comments::before_statements};
    std::string statement;
    bool has_statement = source.next(statement);
    std::string setup = "kind=" + given.kind;
    if (has_statement && trace_script::starts_with(statement, setup_word)) {
        setup += "," + statement.substr(setup_word.size());
        has_statement = source.next(statement);
    }
    if (!given.setup.empty()) { setup += "," + given.setup; }
    auto const from = start_of(setup);
    std::vector<processor> all;
    auto const add = [&](char const* name) {
        auto& next = all.emplace_back(processor{name});
        next.on->begin(from);
        next.events.push_back({0, "setup", next.on->written().size()});
    };
    bool const two = from.two_processors;
    if (!two) { add(""); }
    std::uint64_t number = 0;
    auto const execute = [&](string_view event) {
        event = trace_script::trimmed(event);
        if (!event.empty()) { all.back().run(event, ++number, given.explain); }
    };
    for (; has_statement; has_statement = source.next(statement)) {
        string_view rest = statement;
        if (trace_script::starts_with(rest, setup_word)) {
            throw tool::failure{"a script has one setup, before its events; pt_twin --part N "
                                "prints one part"};
        }
        if (two && all.empty()) {
            if (!trace_script::starts_with(rest, "A:")) { break; }
            add("A: ");
            rest.remove_prefix(2);
        }
        // `/ B:` is a separator between two events, or the prefix of one.
        auto const mark = all.size() == 1 ? rest.find("/ B:") : string_view::npos;
        if (two && mark != string_view::npos &&
            (mark == 0 || trace_script::is_blank(rest[mark - 1]))) {
            execute(rest.substr(0, mark));
            add("B: ");
            rest.remove_prefix(mark + 4);
        }
        execute(rest);
    }
    if (two && all.size() != 2) { throw tool::failure{"LP=A+B needs A: events / B: events"}; }
    return all;
}

auto packets_of(machine& on, std::vector<std::string> const& show) -> std::string {
    std::string line;
    auto out = [&](ptspec::text piece) { line.append(piece.data(), piece.size()); };
    (void)on.print_packets(out);
    for (auto const& name : show) {
        line += "; " + name + "=";
        if (!on.print_value(name, out)) {
            throw tool::failure{"--show: no such field: " + tool::quoted(name)};
        }
    }
    return line;
}

void explain(processor& one, tool::output& to) {
    using namespace ptspec;
    auto const& events = one.events;
    trace::reader from{one.on->written(), {.sync = false}};
    std::size_t event = 0;
    for (auto item = from.next(); item; item = from.next()) {
        if (item.what != trace::item_type::packet) { continue; }
        while (event + 1 < events.size() && item.offset >= events[event].bytes) { ++event; }
        std::string line = "  ";
        auto out = [&](text piece) { line.append(piece.data(), piece.size()); };
        trace_script::packet_printer printer{
            out, one.on->unit().state().ctl<ptspec::reg::ia32_rtit_ctl::EventEn>()};
        packet::visit([&](auto const& packet) { printer(packet, item.place()); }, item.packet);
        auto const& [number, what, bytes] = events[event];
        line += number != 0 ? "  event " + std::to_string(number) + ", " : "  ";
        line.append(what).append(": ").append(trace_script::why(item.packet.kind())) += '\n';
        to.write(line);
    }
}

void show_memory(machine& on, tool::output& to) {
    auto const bytes = on.written();
    char line[128];
    std::snprintf(line, sizeof line,
                  "  %llX  table: entry 0 the region at %llX, %zu bytes; entry 1 back to entry 0\n",
                  static_cast<unsigned long long>(machine::table),
                  static_cast<unsigned long long>(trace_script::region_base), max_bytes);
    to.write(line);
    for (std::size_t i = 0; i < bytes.size(); i += 16) {
        std::uint64_t const address = trace_script::region_base + i;
        std::snprintf(line, sizeof line, "  %llX ", static_cast<unsigned long long>(address));
        to.write(line);
        for (std::size_t j = i; j < bytes.size() && j < i + 16; ++j) {
            std::snprintf(line, sizeof line, " %02X", static_cast<unsigned>(bytes[j]));
            to.write(line);
        }
        to.write("\n");
    }
}

void write_trace(std::vector<processor> const& all, std::string const& path) {
    tool::output file{path};
    for (auto const& one : all) {
        auto const bytes = one.on->written();
        file.write({reinterpret_cast<char const*>(bytes.data()), bytes.size()});
    }
    file.close();
}

auto run_tool(tool::command_line& line) -> int {
    auto const given = parse(line);
    if (given.help || (!given.script.is_given() && tool::is_terminal())) {
        tool::print(usage);
        return 0;
    }
    auto all = run(given);
    std::string packets;
    for (auto const& one : all) {
        packets += (packets.empty() ? "" : " / ") + one.name + packets_of(*one.on, given.show);
    }
    if (given.output) { write_trace(all, *given.output); }
    if (given.output == "-") { return 0; }
    tool::output out;
    out.write(packets + "\n");
    for (auto& one : all) {
        if (given.explain) { explain(one, out); }
        if (given.memory) { show_memory(*one.on, out); }
    }
    out.close();
    return 0;
}

}  // namespace

auto main(int count, char** words) -> int { return tool::run("pt_model", count, words, run_tool); }
