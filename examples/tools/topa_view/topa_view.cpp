// SPDX-License-Identifier: BSL-1.0

// topa_view: draws a chain of ToPA tables. See `topa_view --help`.

#include "../common/script.hpp"
#include "svg.hpp"
#include "text.hpp"
#include "../common/msr_script/statements.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace topa_view;

constexpr std::string_view usage = R"(usage: topa_view [OPTION...] [-e TEXT... | SCRIPT]

Draws a chain of ToPA tables: the entries of each table, their regions, the targets of links, the
address of the next byte of trace, and the rules of the catalogue that an entry breaks.

The script is the text of -e, the file SCRIPT, or standard input (also as -). At a terminal,
topa_view without a script prints this text. Statements are those of what_if; `what_if --help`
lists them. These matter here:

  cpu NAME                  the processor that reads the tables; P-FUT by default
  maxphyaddr N              set MAXPHYADDR, in decimal
  [A]=V                     put the 64-bit word V at physical address A
  set BASE=V                the output base: the chain begins at this table
  set MASK_PTRS=V           the current entry of that table, and the offset in its region
  set STATUS=V              Error (10) or Stopped (20): the drawing says why it is set
  smrr BASE MASK, apic BASE memory that trace output should not use

`enable` and `write N` write trace before the tables are drawn. The text that statements print is
not shown. A missing word reads as 0 if a word follows it in the same 4 KB page; otherwise the
table ends there. A script can put words into up to 2048 pages of 4 KB.

  -e TEXT             the text of the script; each further -e adds a line
  --svg FILE          also draw a picture. With - it goes to standard output, and no text is printed
  --dump FILE@ADDRESS put the words of FILE, 8 bytes each, little-endian, at physical ADDRESS; may
                      be repeated, for up to 4 MB in total
  --table ADDRESS     begin the chain at this table. Then no script is read unless -e or SCRIPT is
                      given, and no position is shown without one
  --cpu NAME          like `cpu NAME` before the script
  --all               show every entry. By default only the first two and the last entry of a long
                      run of similar entries are shown. A picture has at most 2000 rows
  -h, --help          print this text

Example:
  $ topa_view -e '[10000]=400000; [10008]=10001; set BASE=10000'
  ToPA chain at 10000, as a processor of MAXPHYADDR 52 reads it.
  Indexes, addresses and words are hexadecimal. A # more in a bar is 2 times the size.

  table 0 at 10000
       at     word    region or link             size  flags
  > 0  10000  400000  400000..400FFF             4 KB         #
       0H of 1000H bytes are filled, 0%; the next byte goes to 400000
    1  10008  10001   -> 10000, back to table 0        END

  chain     1 table, 1 region, 4 KB; table 0 links to itself
  position  table 0, entry 0, offset 0: the next byte goes to 400000
            0 bytes (0H) from the start of the chain to here
  findings  none

Exit status: 0 the tables are valid; 1 they break a rule (warnings do not count); 2 wrong usage, an
invalid statement, a file that cannot be read, or output that cannot be written.
)";

struct options {
    bool help = false;
    bool all = false;
    std::optional<std::string> svg{};
    std::optional<std::uint64_t> table{};
    std::string cpu = "P-FUT";
    std::vector<std::string> dumps{};
    tool::script_choice script{};

    /// True when a script is read. Only then is a position known.
    [[nodiscard]] auto has_script() const -> bool { return script.is_given() || !table; }
};

auto parse(tool::command_line& line) -> options {
    options out;
    while (line.next()) {
        if (line.is_help()) {
            out.help = true;
        } else if (line.is("--all")) {
            out.all = true;
        } else if (line.is("--svg")) {
            out.svg = line.value();
        } else if (line.is("--dump")) {
            out.dumps.push_back(line.value());
        } else if (line.is("--cpu")) {
            out.cpu = line.value();
        } else if (line.is("--table")) {
            out.table = msr_script::number_in(line.value());
            if (!out.table || !is_aligned(*out.table, 128)) {
                throw tool::failure{"--table takes a hexadecimal address, a multiple of 80"};
            }
        } else if (!out.script.accept(line)) {
            line.refuse();
        }
    }
    return out;
}

// ------------------------------------------------------------------------------------ reading

/// Loads the words of a dump, FILE@ADDRESS, into memory. At most `room` bytes are read.
void read_dump(msr_script::physical_memory& memory, std::string const& what, std::size_t& room) {
    auto const at = what.rfind('@');
    auto const encoded = at == std::string::npos ? std::nullopt
                                                 : msr_script::number_in(what.substr(at + 1));
    if (!encoded || !is_aligned(*encoded, 8)) {
        throw tool::failure{
            "--dump takes FILE@ADDRESS, a hexadecimal address that is a multiple of 8"};
    }
    auto const name = what.substr(0, at);
    tool::input from{name};
    std::uint64_t address = *encoded;
    std::array<std::uint8_t, 4096> piece{};
    while (!from.at_end()) {
        auto const count = from.read(piece.data(), piece.size());
        if (count > room) { throw tool::failure{name + ": more than 4 MB of dumps"}; }
        if (count % 8 != 0) { throw tool::failure{name + ": not a whole number of 8-byte words"}; }
        if (count != 0 && address + (count - 1) < address) {
            throw tool::failure{name + ": continues after the last address there is"};
        }
        room -= count;
        for (std::size_t i = 0; i < count; i += 8) {
            // cannot fail: memory holds more words than dumps may have
            (void)memory.put(address + i, load_le64(piece.data() + i));
        }
        address += count;
    }
    if (address == *encoded) { throw tool::failure{name + ": is empty"}; }
}

/// Applies the dumps and the script to a processor and its memory.
auto read_all(options const& how) -> msr_script::session {
    msr_script::session in;
    try {
        msr_script::choose_cpu(in, how.cpu);
    } catch (msr_script::refusal const&) {
        throw tool::failure{"--cpu: no such processor: " + how.cpu + "; what_if --help lists them"};
    }
    std::size_t room = std::size_t{4} << 20;
    for (auto const& dump : how.dumps) { read_dump(in.memory, dump, room); }
    if (how.has_script()) {
        msr_script::run_script(in, how.script, [&] { in.out.clear(); });
    }
    return in;
}

/// Rejects more pages than can be drawn: each page with a word can be a table of 512 entries.
void check_pages(msr_script::physical_memory const& memory) {
    constexpr std::size_t most = 2048;
    std::size_t pages = 0;
    auto last = ~std::uint64_t{0};
    for (auto const& [address, word] : memory.put_words()) {
        pages += address >> 12 != last ? 1 : 0;
        last = address >> 12;
    }
    if (pages > most) {
        throw tool::failure{"words in more than " + std::to_string(most) + " pages of 4 KB"};
    }
}

// ------------------------------------------------------------------------------------ writing

auto run(tool::command_line& line) -> int {
    auto const how = parse(line);
    if (how.help || (how.has_script() && !how.script.is_given() && tool::is_terminal())) {
        tool::print(usage);
        return 0;
    }
    auto const in = read_all(how);
    check_pages(in.memory);
    auto const first = how.table ? *how.table : topa::position_in(in.now.output.base, {}).table;
    auto const drawn = read_chain(in, first, how.has_script());
    auto const reader = "a processor of MAXPHYADDR " + std::to_string(in.of.max_phys_addr().bits) +
                        (in.of.has_topa_of_many_entries() ? "" : ", without MENTRY,");
    if (how.svg) {
        auto const picture = svg_file_of(drawn, reader, how.all);
        tool::output to{*how.svg};
        to.write(picture);
        to.close();
    }
    if (how.svg != "-") { tool::print(text_drawing{drawn, how.all}.draw(reader)); }
    return drawn.findings == 0 ? 0 : 1;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("topa_view", count, arguments, run);
}
