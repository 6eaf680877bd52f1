// SPDX-License-Identifier: BSL-1.0

// pt_twin: makes the trace that a kind of processor writes for what a recorded trace shows, and
// compares the two. See `pt_twin --help`.

#include "comparison.hpp"
#include "../common/raw_trace.hpp"
#include "../common/tool.hpp"

#include <memory>

namespace {

using namespace pt_twin;

constexpr std::string_view usage =
    R"(usage: pt_twin FILE [--kind K | --auto] [--samples SIZE] [--part N]
               [--events | --differences N]

Reads a recorded raw trace, derives from its packets a script of what the processor did, runs the
script on the model of a processor, and compares the bytes of each segment from PSB to PSB. What the
model has to find out by itself: the form of IPs, PADs, the branches that share a TNT, and the order
of packets.

  --kind K                  manual, broadwell, skylake, icelake or atom
  --auto                    the kind with most equal segments in the first 20,000 packets of a part
                            (the default)
  --samples SIZE            the trace consists of samples of SIZE bytes (hexadecimal), which are
                            parts of their own. Without it, it does where TSCs go back at multiples
                            of a size
  --part N                  only the N-th part of a damaged trace. A part begins at a PSB and ends
                            at damage, where pieces are joined, at memory that was not written (more
                            than 64 zeros), or at the end; the first is 1
  --events                  print the script instead of the comparison. A line `setup SETUP`
                            precedes the events of each part; pt_model runs those of one. After a
                            difference a script ends, and another one begins at the next PSB
  --differences N           show the first difference of N segments; the default is 3
  -h, --help                print this text

The last line is `twin: segments A of B equal, bytes C of D equal, kind K`. A segment that ends in
damage is not compared, because its last packets are unknown; a line before says how many there are.
A PSB+ or another event that the end of the trace cuts is equal if its bytes so far are.

Exit status: 0 all segments are equal; 1 some are not, or there is no PSB; 2 wrong usage, or a trace
of more than 16 MB.
)";

struct arguments {
    std::string path;
    std::string_view kind{};  // empty: the best one
    std::size_t part = 0;     // 0: all
    std::size_t sample = 0;   // 0: one trace
    unsigned shown = 3;
    bool events = false;
};

auto parse(tool::command_line& line) -> arguments {
    arguments given;
    while (line.next()) {
        if (line.is_help()) {
            tool::print(usage);
            std::exit(0);
        }
        if (line.is("--kind")) {
            auto const name = line.value();
            given.kind = {};
            for (auto const& one : engine::model_kinds) {
                std::string_view const known{one.name.data(), one.name.size()};
                if (known == name) { given.kind = known; }
            }
            if (given.kind.empty()) { throw tool::failure{tool::quoted(name) + ": no such kind"}; }
        } else if (line.is("--auto")) {
            given.kind = {};
        } else if (line.is("--events")) {
            given.events = true;
        } else if (line.is("--samples")) {
            given.sample = std::strtoul(line.value().c_str(), nullptr, 16);
            if (given.sample == 0) { throw tool::failure{"--samples needs a size in bytes"}; }
        } else if (line.is("--part")) {
            given.part = std::strtoul(line.value().c_str(), nullptr, 10);
            if (given.part == 0) { throw tool::failure{"--part needs a number from 1 on"}; }
        } else if (line.is("--differences")) {
            given.shown = static_cast<unsigned>(std::strtoul(line.value().c_str(), nullptr, 10));
        } else if (line.is_operand() && given.path.empty()) {
            given.path = line.argument();
        } else {
            line.refuse();
        }
    }
    if (given.path.empty()) { throw tool::failure{"needs a trace; see --help"}; }
    return given;
}

auto run_tool(tool::command_line& line) -> int {
    auto const given = parse(line);
    auto const file = tool::read_all(given.path, max_bytes);
    byte_view const whole{file.data(), file.size()};
    tool::require_raw_trace(given.path, whole);
    auto parts = read_samples(whole, given.sample != 0 ? given.sample : sample_size_of(whole));
    if (parts.empty()) {
        tool::print_error(given.path + ": no PSB to begin at");
        return 1;
    }
    auto const on = std::make_unique<machine>();
    auto const kind = given.kind.empty() ? best_kind(whole, parts, *on) : given.kind;
    auto const with = best_configuration(whole, parts, kind, *on);
    if (given.part > parts.size()) {
        throw tool::failure{"the trace has only " + std::to_string(parts.size()) + " parts"};
    }
    if (given.part != 0) { parts = {parts[given.part - 1]}; }
    if (given.events) {
        tool::output out;
        for (auto const& from : parts) { out.write(scripts_of(whole, from, with, kind, *on)); }
        out.close();
        return 0;
    }
    auto const result = compare_all(whole, parts, with, kind, given.shown, *on);
    std::string text = result.differences;
    if (result.damaged != 0) {
        text += std::to_string(result.damaged) + " segments end in damage: not compared\n";
    }
    tool::print(text + "twin: segments " + std::to_string(result.equal) + " of " +
                std::to_string(result.segments) + " equal, bytes " +
                std::to_string(result.equal_bytes) + " of " + std::to_string(result.bytes) +
                " equal, kind " + std::string{kind} + "\n");
    return result.equal == result.segments ? 0 : 1;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("pt_twin", count, arguments, run_tool);
}
