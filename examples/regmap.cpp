// SPDX-License-Identifier: BSL-1.0

// regmap: shows hardware words and packets, and decodes their values. `regmap --help` says how.

#include "regmap_atlas.hpp"

#include <ptspec/print/diagram.hpp>
#include <ptspec/print/svg.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace regmap;

constexpr std::string_view usage =
    R"(usage: regmap [OPTION] NAME...        diagram and fields of words and packets
       regmap [OPTION] NAME VALUE     what a value of a word says
       regmap NAME BYTES...           what the bytes of a packet say
       regmap --list                  all names
       regmap --svg NAME              the diagram as a picture, to standard output
       regmap --html FILE             everything as one page; - is standard output

NAME is spelled as in the manual or in the library, in either case: IA32_RTIT_CTL, TIP.PGE,
CPUID.14H.0:EBX, ptspec::reg::ia32_rtit_addr, IA32_RTIT_ADDR2_B. VALUE and BYTES are hexadecimal,
BYTES in the order of memory: regmap PTW 02 92 78563412. A value that is a name, too, as CFE is,
needs its 0x.

  --unicode         draw with line characters instead of + - |
  --maxphyaddr N    physical addresses have N bits (decimal): the address bits above are reserved
  --help            this text

Exit status: 0; 1 bytes that are not such a packet; 2 wrong usage, an unknown name, or a file that
cannot be written.
)";

struct options {
    bool help = false;
    bool list = false;
    bool svg = false;
    bool unicode = false;
    unsigned max_phys_addr = 64;
    std::string html;  ///< the file
    std::vector<std::string> words;
};

auto parse(std::span<char*> arguments) -> options {
    options out;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        std::string const argument = arguments[i];
        auto const next = [&]() -> std::string {
            if (++i == arguments.size()) { throw misuse{argument + " needs an argument"}; }
            return arguments[i];
        };
        if (argument == "--help" || argument == "-h") {
            out.help = true;
        } else if (argument == "--list") {
            out.list = true;
        } else if (argument == "--svg") {
            out.svg = true;
        } else if (argument == "--unicode") {
            out.unicode = true;
        } else if (argument == "--html") {
            out.html = next();
        } else if (argument == "--maxphyaddr") {
            auto const number = next();
            bool const digits = !number.empty() && number.size() <= 2 &&
                                number.find_first_not_of("0123456789") == std::string::npos;
            out.max_phys_addr = digits ? static_cast<unsigned>(std::stoul(number)) : 0;
            if (out.max_phys_addr < 32 || out.max_phys_addr > 64) {
                throw misuse{"--maxphyaddr is a number from 32 to 64"};
            }
        } else if (argument.size() > 1 && argument[0] == '-') {
            throw misuse{"there is no option " + argument};
        } else {
            out.words.push_back(argument);
        }
    }
    bool const names = !out.words.empty();
    if (int{out.list} + int{!out.html.empty()} + int{names} > 1) {
        throw misuse{"names, --list and --html do not go together"};
    }
    if (out.svg && out.words.size() != 1) { throw misuse{"--svg needs one name"}; }
    return out;
}

auto found(std::vector<entry> const& entries, std::string const& name) -> entry const& {
    if (auto const* const one = find(entries, name)) { return *one; }
    std::string message = "there is no word or packet " + name + "; did you mean ";
    auto const names = nearest(entries, name);
    for (std::size_t i = 0; i < names.size(); ++i) {
        message += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
    }
    throw misuse{message + "?"};
}

void write(std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stdout); }

constexpr std::size_t screen_width = 100;

/// Cells in columns, each as wide as its widest cell. The last one goes on in the next line where
/// it is too long.
void write_table(std::vector<std::vector<std::string>> const& lines) {
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
        write(out.substr(0, out.find_last_not_of(' ') + 1) + "\n");
    }
}

void show(entry const& one, bool unicode) {
    write(one.name + ": " + one.place + ", " + one.cpp_name + "\n");
    for (auto const& remark : one.remarks) { write(remark + "\n"); }
    write("\n");
    write(printed([&](auto& out) { print::diagram(one.layout, out, {.unicode = unicode}); }));
    write("\n");
    std::vector<std::vector<std::string>> lines;
    for (auto const& row : one.rows) {
        if (one.layout.is_packet) {
            lines.push_back({row.where, row.name, row.meaning});
        } else {
            lines.push_back({row.where, row.name, row.access, row.meaning});
        }
    }
    write_table(lines);
}

void show_value(entry const& one, std::span<std::string const> values, unsigned max_phys_addr) {
    auto const value = one.decode(values, max_phys_addr);
    write(value.summary + "\n\n");
    std::vector<std::vector<std::string>> lines;
    lines.reserve(value.fields.size());
    for (auto const& [name, what] : value.fields) { lines.push_back({name, what}); }
    write_table(lines);
}

void list(std::vector<entry> const& entries) {
    std::string section;
    std::vector<std::vector<std::string>> lines;
    auto const end_section = [&] {
        write_table(lines);
        lines.clear();
    };
    for (auto const& one : entries) {
        if (one.section != section) {
            end_section();
            write((section.empty() ? "" : "\n") + one.section + "\n");
            section = one.section;
        }
        lines.push_back({one.name, one.place});
    }
    end_section();
}

void write_atlas(std::vector<entry> const& entries, std::string const& path) {
    auto const page = atlas{entries}.page();
    if (path == "-") {
        write(page);
        return;
    }
    std::ofstream file{path, std::ios::binary};
    file << page;
    if (!file.flush()) { throw misuse{path + " cannot be written"}; }
}

/// Names only, or a name and what it is to decode.
void show_words(std::vector<entry> const& entries, options const& how) {
    auto const& first = found(entries, how.words[0]);
    bool const names = std::all_of(how.words.begin(), how.words.end(), [&](auto const& word) {
        return find(entries, word) != nullptr;
    });
    if (how.words.size() > 1 && !names) {
        // The second word is a name that is misspelt, or else a value.
        if (how.words[1].find_first_not_of("0123456789abcdefABCDEFxXhH ") != std::string::npos) {
            (void)found(entries, how.words[1]);
        }
        show_value(first, std::span{how.words}.subspan(1), how.max_phys_addr);
        return;
    }
    for (std::size_t i = 0; i < how.words.size(); ++i) {
        if (i != 0) { write("\n\n"); }
        show(found(entries, how.words[i]), how.unicode);
    }
}

void run(options const& how) {
    if (how.help || (how.words.empty() && !how.list && how.html.empty())) {
        write(usage);
        return;
    }
    auto const entries = all_entries();
    if (how.list) {
        list(entries);
    } else if (!how.html.empty()) {
        write_atlas(entries, how.html);
    } else if (how.svg) {
        auto const& one = found(entries, how.words[0]);
        write(printed([&](auto& out) {
            print::svg_diagram(one.layout, out, {.title = {one.name.data(), one.name.size()}});
        }));
        write("\n");
    } else {
        show_words(entries, how);
    }
}

}  // namespace

auto main(int count, char** arguments) -> int {
    try {
        run(parse(std::span{arguments + 1, static_cast<std::size_t>(count - 1)}));
        if (std::fflush(stdout) != 0) { throw misuse{"standard output cannot be written"}; }
        return 0;
    } catch (misuse const& wrong) {
        std::cerr << "regmap: " << wrong.what() << '\n';
        return 2;
    } catch (refusal const& wrong) {
        std::cerr << "regmap: " << wrong.what() << '\n';
        return 1;
    }
}
