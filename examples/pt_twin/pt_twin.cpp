// SPDX-License-Identifier: BSL-1.0

// pt_twin: makes the trace that a kind of processor writes for what a recorded trace shows, and
// compares the two. See `pt_twin --help`.

#include "twin.hpp"

#include <common/tool.hpp>

#include <map>

namespace {

using namespace pt_twin;

constexpr std::string_view usage = R"(usage: pt_twin FILE [--kind K | --auto] [--differences N]

Reads a recorded raw trace, derives from its packets what the processor did, lets the model of a
processor do it, and compares the bytes of each segment from PSB to PSB. What the model has to find
out by itself: the form of IPs, PADs, the packets that share a TNT, and the order of packets.

  --kind K                  manual, broadwell, skylake, icelake or atom
  --auto                    the kind with most equal segments (the default)
  --differences N           show the first difference of N segments; the default is 3
  -h, --help                print this text

The last line is `twin: segments A of B equal, bytes C of D equal, kind K`.

Exit status: 0 all segments are equal; 1 some are not, or there is no PSB; 2 wrong usage.
)";

/// The offsets of the PSBs in a trace, and its end.
auto segments_of(byte_view bytes) -> std::vector<std::size_t> {
    std::vector<std::size_t> starts;
    trace::reader reader{borrowed_bytes{bytes.data(), bytes.size()}};
    for (auto item = reader.next(); item; item = reader.next()) {
        if (item.what == trace::item_type::packet && item.packet.kind() == kind::psb) {
            starts.push_back(item.offset);
        }
    }
    starts.push_back(bytes.size());
    return starts;
}

struct comparison {
    std::size_t segments = 0;
    std::size_t equal = 0;
    std::uint64_t bytes = 0;
    std::uint64_t equal_bytes = 0;
    unsigned shown = 0;
    std::string differences{};
};

auto line_at(byte_view bytes, std::size_t at) -> std::string {
    std::string line;
    char text[4];
    for (std::size_t i = at; i < at + 16 && i < bytes.size(); ++i) {
        std::snprintf(text, sizeof text, " %02x", bytes[i]);
        line += text;
    }
    return line;
}

/// Adds the comparison of a piece of the trace, which begins at `begin`.
void compare(byte_view real, byte_view made, std::uint64_t begin, unsigned shown,
             comparison& result) {
    auto const one = segments_of(real);
    auto const two = segments_of(made);
    for (std::size_t i = 0; i + 1 < one.size(); ++i) {
        byte_view const a = real.from(one[i]).first(one[i + 1] - one[i]);
        byte_view const b = i + 1 < two.size() ? made.from(two[i]).first(two[i + 1] - two[i])
                                               : byte_view{};
        ++result.segments;
        result.bytes += a.size();
        std::size_t same = 0;
        while (same < a.size() && same < b.size() && a[same] == b[same]) { ++same; }
        bool const is_equal = same == a.size() && same == b.size();
        result.equal += is_equal;
        result.equal_bytes += same;
        if (is_equal || result.shown == shown) { continue; }
        ++result.shown;
        std::size_t const from = same < 8 ? 0 : same - 8;
        char text[96];
        std::snprintf(text, sizeof text, "segment %zu at %llx differs at %llx\n",
                      result.segments - 1, static_cast<unsigned long long>(begin + one[i]),
                      static_cast<unsigned long long>(begin + one[i] + same));
        result.differences += text + std::string{"  real"} + line_at(a, from) + "\n  twin" +
                              line_at(b, from) + "\n";
    }
}

auto read_file(std::string const& path) -> std::vector<std::uint8_t> {
    tool::input in{path};
    std::vector<std::uint8_t> all;
    std::uint8_t piece[65536];
    for (;;) {
        std::size_t const count = in.read(piece, sizeof piece);
        all.insert(all.end(), piece, piece + count);
        if (count < sizeof piece) { return all; }
    }
}

auto run_tool(tool::command_line& line) -> int {
    bool is_auto = true;
    engine::kind wanted = engine::kind::manual;
    std::string path;
    unsigned shown = 3;
    while (line.next()) {
        if (line.is_help()) {
            tool::print(usage);
            return 0;
        }
        if (line.is("--kind")) {
            auto const name = line.value();
            is_auto = true;
            for (auto const& one : engine::kinds) {
                if (one.name != text{name.data(), name.size()}) { continue; }
                wanted = one.which;
                is_auto = false;
            }
            if (is_auto) { throw tool::failure{tool::quoted(name) + ": no such kind"}; }
        } else if (line.is("--auto")) {
            is_auto = true;
        } else if (line.is("--differences")) {
            shown = static_cast<unsigned>(std::strtoul(line.value().c_str(), nullptr, 10));
        } else if (line.is_operand() && path.empty()) {
            path = line.argument();
        } else {
            line.refuse();
        }
    }
    if (path.empty()) { throw tool::failure{"needs a trace; see --help"}; }
    auto const file = read_file(path);
    byte_view const whole{file.data(), file.size()};
    auto const pieces = read(whole);
    if (pieces.empty()) { throw tool::failure{path + ": no PSB"}; }
    comparison best;
    engine::kind best_kind = engine::kind::manual;
    bool is_first = true;
    for (auto const& one : engine::kinds) {
        if (!is_auto && wanted != one.which) { continue; }
        comparison result;
        for (auto const& from : pieces) {
            byte_view const real = whole.from(static_cast<std::size_t>(from.begin))
                                       .first(static_cast<std::size_t>(from.end - from.begin));
            twin made{from, one.which};
            made.run();
            auto const bytes = made.bytes();
            compare(real, {bytes.data(), bytes.size()}, from.begin, shown, result);
        }
        bool const is_better = is_first || result.equal > best.equal ||
                               (result.equal == best.equal &&
                                result.equal_bytes > best.equal_bytes);
        if (is_better) {
            best = result;
            best_kind = one.which;
        }
        is_first = false;
    }
    auto const name = engine::info_of(best_kind).name;
    tool::print(best.differences + "twin: segments " + std::to_string(best.equal) + " of " +
                std::to_string(best.segments) + " equal, bytes " +
                std::to_string(best.equal_bytes) + " of " + std::to_string(best.bytes) +
                " equal, kind " + std::string{name.data(), name.size()} + "\n");
    return best.equal == best.segments ? 0 : 1;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("pt_twin", count, arguments, run_tool);
}
