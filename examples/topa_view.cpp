// SPDX-License-Identifier: BSL-1.0

// topa_view: draws a chain of ToPA tables. `topa_view --help` says how.

#include "topa_view_svg.hpp"
#include "topa_view_text.hpp"
#include "what_if_statements.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace {

using namespace topa_view;

constexpr std::string_view usage = R"(usage: topa_view [OPTION] [SCRIPT]

Draws a chain of ToPA tables: the entries of each table, their regions, where the links lead, where
the next byte of trace goes, and what is wrong with an entry, by the rules of the catalogue.

SCRIPT, or standard input, has the statements of what_if; `what_if --help` lists them. Those that
matter are

  cpu NAME                  the processor that reads the tables, P-FUT until then
  maxphyaddr N              another MAXPHYADDR, in decimal
  [A]=V                     put the 64-bit word V at physical address A
  set BASE=V                the output base: the chain begins at this table
  set MASK_PTRS=V           the current entry of that table, and the offset in its region
  set STATUS=V              Error (10) or Stopped (20): why is told
  smrr BASE MASK, apic BASE memory that output should not hit

`enable` and `write N` let trace go out first. What statements print is not shown. A word that was
not given counts as 0 where another was given behind it in the same 4 KB, and ends a table else.

  --svg FILE          draw a picture, too; - is standard output, and then there is no text
  --dump FILE@ADDRESS words of 8 bytes, little-endian, that stand at physical ADDRESS; may be given
                      more than once, for 4 MB together
  --table ADDRESS     the chain begins at this table. Without SCRIPT nothing else is read then, and
                      no position is shown
  --cpu NAME          as `cpu NAME` in front of the script
  --all               show every entry; otherwise of a long run of entries that are alike only the
                      first two and the last. A picture has 2000 rows at most
  --help              this text

Exit status: 0 nothing is wrong with the tables; 1 something is; 2 wrong usage, a statement or a
file that cannot be read, or output that cannot be written. Warnings are not wrong.
)";

/// The command line, or what it names, cannot be used.
struct misuse : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

auto open(std::string const& name, char const* how) -> file {
    file opened{std::fopen(name.c_str(), how), std::fclose};
    if (!opened) { throw misuse{name + ": " + std::strerror(errno)}; }
    return opened;
}

struct options {
    bool help = false;
    bool all = false;
    std::string svg{};
    std::optional<std::uint64_t> table{};
    std::string cpu = "P-FUT";
    std::vector<std::string> dumps{};
    std::optional<std::string> script{};
};

auto parse(std::vector<std::string> const& arguments) -> options {
    options out;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        auto const& argument = arguments[i];
        auto const next = [&]() -> std::string const& {
            if (++i == arguments.size()) { throw misuse{argument + " needs an argument"}; }
            return arguments[i];
        };
        if (argument == "--help") {
            out.help = true;
        } else if (argument == "--all") {
            out.all = true;
        } else if (argument == "--svg") {
            out.svg = next();
        } else if (argument == "--dump") {
            out.dumps.push_back(next());
        } else if (argument == "--cpu") {
            out.cpu = next();
        } else if (argument == "--table") {
            out.table = what_if::number_in(next());
            if (!out.table || !is_aligned(*out.table, 128)) {
                throw misuse{"--table takes a hexadecimal address, a multiple of 80"};
            }
        } else if (argument != "-" && argument.starts_with('-')) {
            throw misuse{argument + ": no such option; --help lists them"};
        } else if (out.script) {
            throw misuse{"takes one script, not also " + argument};
        } else {
            out.script = argument;
        }
    }
    return out;
}

// ------------------------------------------------------------------------------------ reading

/// Puts the words of a dump, FILE@ADDRESS, into memory. `room` is how many bytes there may be.
void read_dump(what_if::physical_memory& memory, std::string const& what, std::size_t& room) {
    auto const at = what.rfind('@');
    auto const given = at == std::string::npos ? std::nullopt
                                               : what_if::number_in(what.substr(at + 1));
    if (!given || !is_aligned(*given, 8)) {
        throw misuse{"--dump takes FILE@ADDRESS, a hexadecimal address that is a multiple of 8"};
    }
    auto const name = what.substr(0, at);
    auto const from = open(name, "rb");
    std::uint64_t address = *given;
    std::array<std::uint8_t, 4096> piece{};
    while (std::feof(from.get()) == 0) {
        auto const count = std::fread(piece.data(), 1, piece.size(), from.get());
        if (std::ferror(from.get()) != 0) { throw misuse{name + ": " + std::strerror(errno)}; }
        if (count > room) { throw misuse{name + ": more than 4 MB of dumps"}; }
        if (count % 8 != 0) { throw misuse{name + ": not a whole number of 8-byte words"}; }
        if (count != 0 && address + (count - 1) < address) {
            throw misuse{name + ": goes on behind the last address there is"};
        }
        room -= count;
        for (std::size_t i = 0; i < count; i += 8) {
            memory.put(address + i, load_le64(piece.data() + i));
        }
        address += count;
    }
    if (address == *given) { throw misuse{name + ": is empty"}; }
}

void run_script(what_if::session& in, std::FILE* from, std::string const& name) {
    what_if::script source{from};
    std::string text;
    try {
        while (source.next(text)) {
            what_if::run(in, text);
            in.out.clear();
        }
    } catch (what_if::refusal const& why) {
        throw misuse{"statement " + std::to_string(source.number()) + ": " + why.what()};
    }
    if (std::ferror(from) != 0) { throw misuse{name + ": " + std::strerror(errno)}; }
}

/// What the dumps and the script make of a processor and its memory.
auto read_all(options const& how) -> what_if::session {
    what_if::session in;
    try {
        what_if::choose_cpu(in, how.cpu);
    } catch (what_if::refusal const&) {
        throw misuse{"--cpu: no such processor: " + how.cpu + "; what_if --help lists them"};
    }
    std::size_t room = std::size_t{4} << 20;
    for (auto const& dump : how.dumps) { read_dump(in.memory, dump, room); }
    if (how.script && *how.script != "-") {
        run_script(in, open(*how.script, "rb").get(), *how.script);
    } else if (how.script || !how.table) {
        run_script(in, stdin, "standard input");
    }
    return in;
}

// ------------------------------------------------------------------------------------ writing

void write(std::FILE* to, std::string const& text, std::string const& name) {
    bool const whole = std::fwrite(text.data(), 1, text.size(), to) == text.size();
    if (!whole || std::fflush(to) != 0) { throw misuse{name + ": " + std::strerror(errno)}; }
}

auto run(options const& how) -> int {
    bool const nothing_to_read = !how.script && !how.table && ::isatty(STDIN_FILENO) == 1;
    if (how.help || nothing_to_read) {
        write(stdout, std::string{usage}, "standard output");
        return 0;
    }
    auto const in = read_all(how);
    auto const first = how.table ? *how.table : topa::position_in(in.now.output_base, {}).table;
    bool const positioned = how.script || !how.table;
    auto const drawn = read_chain(in, first, positioned);
    auto const reader = "a processor of MAXPHYADDR " + std::to_string(in.of.max_phys_addr().bits) +
                        (in.of.has_topa_of_many_entries() ? "" : ", without MENTRY,");
    if (!how.svg.empty()) {
        auto const picture = svg_file_of(drawn, reader, how.all);
        bool const to_stdout = how.svg == "-";
        auto const to = to_stdout ? file{nullptr, std::fclose} : open(how.svg, "wb");
        write(to_stdout ? stdout : to.get(), picture, to_stdout ? "standard output" : how.svg);
    }
    if (how.svg != "-") {
        write(stdout, text_drawing{drawn, how.all}.draw(reader), "standard output");
    }
    return drawn.findings == 0 ? 0 : 1;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    try {
        return run(parse({arguments + 1, arguments + count}));
    } catch (misuse const& wrong) {
        std::fprintf(stderr, "topa_view: %s\n", wrong.what());
        return 2;
    }
}
