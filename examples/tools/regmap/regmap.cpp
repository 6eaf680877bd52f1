// SPDX-License-Identifier: BSL-1.0

// regmap: shows hardware words and packets, and decodes their values. See `regmap --help`.

#include "../common/draw/diagram.hpp"
#include "../common/draw/svg.hpp"
#include "../common/tool.hpp"
#include "atlas.hpp"
#include "c_header.hpp"
#include "json.hpp"
#include "msr_cases.hpp"
#include "rust_module.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace regmap;

constexpr std::string_view usage =
    R"(usage: regmap [OPTION...] NAME...         show words and packets: a diagram and the fields
       regmap [OPTION...] NAME VALUE      decode a value of a word
       regmap [OPTION...] NAME BYTES...   decode the bytes of a packet
       regmap --svg NAME
       regmap --html FILE
       regmap --c FILE
       regmap --rust FILE
       regmap --json FILE
       regmap --cases FILE
       regmap --list

NAME is spelled as in the manual or in the library, in upper or lower case: IA32_RTIT_CTL, TIP.PGE,
CPUID.14H.0:EBX, ptspec::reg::ia32_rtit_addr, IA32_RTIT_ADDR2_B. VALUE and BYTES are hexadecimal;
BYTES are in memory order. A value that is also a name, such as CFE, needs the prefix 0x.

  --list            print all names
  --svg             print the diagram as a picture (SVG)
  --html FILE       write all words and packets to FILE, as one HTML page; - is standard output
  --c FILE          write a C99 header: all words and packets as constants, and functions that check
                    a WRMSR or a ToPA entry and return the broken rule
  --rust FILE       write the same as a Rust module without std
  --json FILE       write all words and packets, the rules, and the tables of these checks as JSON
  --cases FILE      write test cases of WRMSR as arrays in C89, for tests of a kernel, a hypervisor
                    or an emulator; examples/msr_cases has a runner
  --unicode         draw with line characters instead of + - |
  --maxphyaddr N    physical addresses have N bits, 32 to 64 (decimal); higher address bits are
                    reserved
  -h, --help        print this text; the default without arguments

Example:
  $ regmap PTW '02 92 78563412'
  PTW PayloadBytes=0 IP=1 payload=12345678H

    PayloadBytes  0
    IP            1

Exit status: 0 success; 1 the bytes are not an encoding of the packet; 2 wrong usage, an unknown
name, or output that cannot be written.
)";

struct options {
    bool help = false;
    bool list = false;
    bool svg = false;
    bool unicode = false;
    unsigned max_phys_addr = 64;
    std::string whole{};  ///< the option that writes all words and packets, or empty
    std::string file{};   ///< where it writes
    std::vector<std::string> words;
};

auto parse(tool::command_line& line) -> options {
    options out;
    while (line.next()) {
        if (line.is_help()) {
            out.help = true;
        } else if (line.is("--list")) {
            out.list = true;
        } else if (line.is("--svg")) {
            out.svg = true;
        } else if (line.is("--unicode")) {
            out.unicode = true;
        } else if (line.is("--html") || line.is("--c") || line.is("--rust") || line.is("--json") ||
                   line.is("--cases")) {
            if (!out.whole.empty()) { throw misuse{"one file is written at a time"}; }
            out.whole = line.argument();
            out.file = line.value();
        } else if (line.is("--maxphyaddr")) {
            auto const number = line.value();
            bool const digits = !number.empty() && number.size() <= 2 &&
                                number.find_first_not_of("0123456789") == std::string::npos;
            out.max_phys_addr = digits ? static_cast<unsigned>(std::stoul(number)) : 0;
            if (out.max_phys_addr < 32 || out.max_phys_addr > 64) {
                throw misuse{"--maxphyaddr is a number from 32 to 64"};
            }
        } else if (line.is_operand()) {
            out.words.push_back(line.argument());
        } else {
            line.refuse();
        }
    }
    bool const names = !out.words.empty();
    if (int{out.list} + int{!out.whole.empty()} + int{names} > 1) {
        throw misuse{"names, --list and the options with FILE do not go together"};
    }
    if (out.svg && out.words.size() != 1) { throw misuse{"--svg needs one name"}; }
    return out;
}

/// The names that are most similar to an unknown one.
auto suggestion(std::vector<entry> const& entries, std::string const& name) -> std::string {
    std::string all;
    auto const names = nearest(entries, name);
    for (std::size_t i = 0; i < names.size(); ++i) {
        all += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
    }
    return all;
}

auto found(std::vector<entry> const& entries, std::string const& name) -> entry const& {
    if (auto const* const one = find(entries, name)) { return *one; }
    throw misuse{"there is no word or packet " + name + "; did you mean " +
                 suggestion(entries, name) + "? --list prints all names"};
}

constexpr std::size_t screen_width = 100;

/// Writes cells in aligned columns. The last cell of a line is wrapped where it is too long.
void write_table(std::vector<std::vector<std::string>> const& lines, tool::output& to) {
    std::vector<std::size_t> widths;
    for (auto const& line : lines) {
        widths.resize(std::max(widths.size(), line.size()));
        for (std::size_t i = 0; i < line.size(); ++i) {
            widths[i] = std::max(widths[i], line[i].size());
        }
    }
    for (auto const& line : lines) {
        std::string out;
        for (std::size_t i = 0; i + 1 < line.size(); ++i) {
            out += "  " + line[i] + std::string(widths[i] - line[i].size(), ' ');
        }
        auto rest = line.back();
        auto const indent = out.size() + 2;
        while (indent + rest.size() > screen_width) {
            auto const blank = rest.rfind(' ', screen_width - indent);
            if (blank == std::string::npos) { break; }
            out += "  " + rest.substr(0, blank) + "\n" + std::string(indent - 2, ' ');
            rest.erase(0, blank + 1);
        }
        out += "  " + rest;
        to.write(out.substr(0, out.find_last_not_of(' ') + 1) + "\n");
    }
}

void show(entry const& one, bool unicode, tool::output& to) {
    to.write(one.name + ": " + one.place + ", " + one.cpp_name + "\n");
    for (auto const& [what, answer] : one.remarks) {
        to.write(what);
        to.write(": " + answer);
        to.write("\n");
    }
    to.write("\n");
    to.write(printed([&](auto& out) { draw::diagram(one.layout, out, {.unicode = unicode}); }));
    to.write("\n");
    std::vector<std::vector<std::string>> lines;
    for (auto const& row : one.rows) {
        if (one.layout.is_packet) {
            lines.push_back({row.where, row.name, row.meaning});
        } else {
            lines.push_back({row.where, row.name, row.access, row.meaning});
        }
    }
    write_table(lines, to);
}

void show_value(entry const& one, std::span<std::string const> values, unsigned max_phys_addr,
                tool::output& to) {
    auto const value = one.decode(values, max_phys_addr);
    to.write(value.summary + "\n\n");
    std::vector<std::vector<std::string>> lines;
    lines.reserve(value.fields.size());
    for (auto const& [name, what] : value.fields) { lines.push_back({name, what}); }
    write_table(lines, to);
}

void list(std::vector<entry> const& entries, tool::output& to) {
    std::string section;
    std::vector<std::vector<std::string>> lines;
    auto const end_section = [&] {
        write_table(lines, to);
        lines.clear();
    };
    for (auto const& one : entries) {
        if (one.section != section) {
            end_section();
            to.write((section.empty() ? "" : "\n") + one.section + "\n");
            section = one.section;
        }
        lines.push_back({one.name, one.place});
    }
    end_section();
}

/// Shows each name, or decodes the values that follow a single name.
void show_words(std::vector<entry> const& entries, options const& how, tool::output& to) {
    auto const& first = found(entries, how.words[0]);
    bool const names = std::all_of(how.words.begin(), how.words.end(), [&](auto const& word) {
        return find(entries, word) != nullptr;
    });
    if (how.words.size() > 1 && !names) {
        // The second word is a misspelt name unless all its characters may occur in a value.
        if (how.words[1].find_first_not_of("0123456789abcdefABCDEFxXhH ") != std::string::npos) {
            throw misuse{how.words[1] +
                         " is neither a name nor a hexadecimal value; did you mean " +
                         suggestion(entries, how.words[1]) + "?"};
        }
        show_value(first, std::span{how.words}.subspan(1), how.max_phys_addr, to);
        return;
    }
    for (std::size_t i = 0; i < how.words.size(); ++i) {
        if (i != 0) { to.write("\n\n"); }
        show(found(entries, how.words[i]), how.unicode, to);
    }
}

void run(options const& how, tool::output& to) {
    auto const entries = all_entries();
    if (how.list) {
        list(entries, to);
    } else if (how.whole == "--html") {
        to.write(atlas{entries}.page());
    } else if (how.whole == "--c") {
        to.write(c_header{entries}.text());
    } else if (how.whole == "--rust") {
        to.write(rust_module{entries}.text());
    } else if (how.whole == "--json") {
        to.write(json_document{entries}.text());
    } else if (how.whole == "--cases") {
        to.write(case_header{entries}.text());
    } else if (how.svg) {
        auto const& one = found(entries, how.words[0]);
        to.write(printed([&](auto& out) {
            draw::svg_diagram(one.layout, out, {.title = {one.name.data(), one.name.size()}});
        }));
        to.write("\n");
    } else {
        show_words(entries, how, to);
    }
}

auto run_tool(tool::command_line& line) -> int {
    auto const how = parse(line);
    if (how.help || (how.words.empty() && !how.list && how.whole.empty())) {
        tool::print(usage);
        return 0;
    }
    try {
        tool::output to{how.whole.empty() ? "-" : how.file};
        run(how, to);
        to.close();
        return 0;
    } catch (refusal const& wrong) {
        tool::print_error(wrong.what());
        return 1;
    }
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("regmap", count, arguments, run_tool);
}
