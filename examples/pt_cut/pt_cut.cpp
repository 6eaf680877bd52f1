// SPDX-License-Identifier: BSL-1.0

// pt_cut: cuts a trace at PSBs, and replaces addresses and times in it. See `pt_cut --help`.

#include "check.hpp"

#include "../common/raw_trace.hpp"
#include "../common/tool.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace pt_cut;

enum status : std::uint8_t { done = 0, not_private = 1, no_psb = 3 };

constexpr std::string_view usage = R"(usage: pt_cut [OPTION...] TRACE -o OUT
       pt_cut --list [OPTION...] TRACE

Writes a part of a raw Intel PT trace, from one PSB to another, and replaces addresses and times in
it, so that it can be attached to a bug report. TRACE may be - for standard input; it is read into
memory. A segment is a PSB and the packets up to the next PSB; the first has the number 1.

  -o OUT             write to this file, which must not be TRACE; - is standard output
  --list             print the segments instead: number, offset, bytes, packets, damaged bytes that
                     would be dropped, first TSC, first IP

Which segments; all by default:
  --psb A-B          segments A to B; also A, A- and -B
  --bytes FROM-TO    the segments with the bytes from FROM up to TO, which rounds to PSBs
  --around OFFSET    the segment with this byte, and those before and after it
  --segments N       with --around: N segments together; 3 by default
  Offsets are hexadecimal, as pt_dump prints them, with or without 0x.

What is replaced; nothing by default:
  --private          all of: --ip map --offsets --cr3 map --vmcs map --tsc rebase --ptw zero
                     --evd zero --bip zero --mnt zero --mwait zero; later options override it
  --ip map|zero      map: each page of 4 KB becomes another page, in the order of first use
  --offsets          with --ip map: number the offsets in each page, too. If the offsets stay, they
                     show which program it is to those who have its code.
  --cr3 map|zero     map: each CR3 in a PIP becomes another one, in the order of first use
  --vmcs map|zero    the same for VMCS pointers
  --tsc rebase|zero  rebase: subtract the earliest TSC from each TSC
  --ratio EBX/EAX    with --tsc rebase: these registers of CPUID leaf 15H. Then a multiple of 2^23
                     crystal clock ticks is subtracted, so that each TSC keeps its relation to CTC
                     and FC in TMA and MTC. Without it only time differences stay as they are. TMA
                     and MTC do not change in either case.
  --ptw zero         values of PTWRITE
  --evd map|zero     data of events; map: page-fault addresses are mapped as IPs, others become 0
  --bip zero         values of block items (PEBS)
  --mnt zero         values of MNT
  --mwait zero       hints and extensions of MWAIT
  --drop-damaged     drop segments with damage. Otherwise their packets before the damage are
                     written, and some of these may be damaged bytes that look like packets.
  --save-map FILE    write what replaces what: `page`, `ip` (with --offsets), `cr3` or `vmcs`, the
                     original, its replacement; `tsc`, what was subtracted, 0. Keep it private.
  -h, --help         print this text

Packets are changed in place: each keeps its kind, its length, and its distance from the PSB. Damage
that is dropped moves the segments after it.

Compressed IPs stay compressed: bits 63:48, 47:32, 31:16 and 15:12 of an IP are mapped one after the
other, each given the bits above it. Bits 63 and 47 stay, and bits 63:48 if all are 0 or all are 1:
user and kernel addresses remain such. Branches (TNT), CYC, MTC, modes and ratios do not change:
they show the shape of the program and its speed.

Bytes that are not packets are never written: those before the first PSB, and from damage to the
next PSB. A message reports them. Before it writes, pt_cut decodes the result and compares it with
the original. It writes nothing if a replaced IP is in a page of the original, if a replaced CR3 or
VMCS pointer is one of the original, or if a value that is not replaced is such an address.

Example:
  $ printf 'psb\ntip ip=0x401000\ntip ip=0x401080\n' | pt_asm | pt_cut --ip map - -o - | pt_dump -
  00000000 psb len=16
  00000010 tip len=5 ipc=2 payload=0x10000 ip=0x10000
  00000015 tip len=3 ipc=1 payload=0x80 ip=0x10080
  00000018 !end packets=3 errors=0 resyncs=0

Exit status: 0 success; 1 an address of the original would remain, and nothing is written; 2 wrong
usage, or a file that cannot be read or written; 3 no PSB, or no segment without damage.
)";

// ------------------------------------------------------------------------------------- options

auto number(std::string_view text, int base = 10) -> std::optional<std::uint64_t> {
    if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) { text.remove_prefix(2); }
    std::uint64_t value = 0;
    auto const end = text.data() + text.size();
    auto const [stop, error] = std::from_chars(text.data(), end, value, base);
    if (error != std::errc{} || stop != end) { return std::nullopt; }
    return value;
}

/// A range `A-B`, where either number can be missing.
struct range {
    std::uint64_t first = 0;
    std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
};

auto parse_range(std::string_view text, int base) -> std::optional<range> {
    range all;
    auto const dash = text.find('-');
    if (dash == std::string_view::npos || text.size() == 1) { return std::nullopt; }
    if (dash != 0) {
        auto const first = number(text.substr(0, dash), base);
        if (!first) { return std::nullopt; }
        all.first = *first;
    }
    if (dash + 1 != text.size()) {
        auto const last = number(text.substr(dash + 1), base);
        if (!last) { return std::nullopt; }
        all.last = *last;
    }
    return all;
}

struct settings {
    std::optional<std::string> trace{};
    std::optional<std::string> out{};
    std::optional<std::string> map{};
    bool list = false;
    bool drop_damaged = false;
    std::optional<range> psb{};
    std::optional<range> bytes{};
    std::optional<std::uint64_t> around{};
    std::optional<std::uint64_t> segments{};
    changes how{};
};

/// The argument of an option that replaces values: `zero`, or the word for `change::map`.
auto parse_change(tool::command_line& line, std::string_view map = {}) -> change {
    auto const option = line.argument();
    auto const value = line.value();
    if (value == "zero") { return change::zero; }
    if (!map.empty() && value == map) { return change::map; }
    throw tool::failure{option + " takes " +
                        (map.empty() ? "zero" : std::string{map} + " or zero")};
}

auto parse_ratio(std::string_view text) -> clock_ratio {
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    auto const slash = std::min(text.find('/'), text.size());
    auto const ebx = number(text.substr(0, slash));
    auto const eax = slash == text.size() ? std::nullopt : number(text.substr(slash + 1));
    if (!ebx || !eax || *ebx - 1 >= most || *eax - 1 >= most) {
        throw tool::failure{"--ratio takes EBX/EAX of CPUID leaf 15H, like 168/2"};
    }
    return {static_cast<std::uint32_t>(*ebx), static_cast<std::uint32_t>(*eax)};
}

void make_private(changes& how) {
    how = {.ip = change::map,
           .offsets = true,
           .cr3 = change::map,
           .vmcs = change::map,
           .tsc = change::map,
           .ratio = how.ratio,
           .ptw = change::zero,
           .evd = change::zero,
           .bip = change::zero,
           .mnt = change::zero,
           .mwait = change::zero};
}

/// Parses an option that replaces values. Returns false when it is none.
auto parse_replacement(tool::command_line& line, changes& how) -> bool {
    if (line.is("--private")) {
        make_private(how);
    } else if (line.is("--ip")) {
        how.ip = parse_change(line, "map");
    } else if (line.is("--offsets")) {
        how.offsets = true;
    } else if (line.is("--cr3")) {
        how.cr3 = parse_change(line, "map");
    } else if (line.is("--vmcs")) {
        how.vmcs = parse_change(line, "map");
    } else if (line.is("--tsc")) {
        how.tsc = parse_change(line, "rebase");
    } else if (line.is("--ratio")) {
        how.ratio = parse_ratio(line.value());
    } else if (line.is("--ptw")) {
        how.ptw = parse_change(line);
    } else if (line.is("--evd")) {
        how.evd = parse_change(line, "map");
    } else if (line.is("--bip")) {
        how.bip = parse_change(line);
    } else if (line.is("--mnt")) {
        how.mnt = parse_change(line);
    } else if (line.is("--mwait")) {
        how.mwait = parse_change(line);
    } else {
        return false;
    }
    return true;
}

/// Parses an option that selects segments. Returns false when it is none.
auto parse_selection(tool::command_line& line, settings& how) -> bool {
    if (line.is("--psb")) {
        auto const text = line.value();
        auto const one = number(text);
        how.psb = one ? range{*one, *one} : parse_range(text, 10);
        if (!how.psb || how.psb->last == 0 || how.psb->first > how.psb->last ||
            text.starts_with('0')) {
            throw tool::failure{"--psb takes numbers of segments from 1 on: A-B, A, A- or -B"};
        }
    } else if (line.is("--bytes")) {
        how.bytes = parse_range(line.value(), 16);
        if (!how.bytes || how.bytes->first >= how.bytes->last) {
            throw tool::failure{"--bytes takes hexadecimal offsets, FROM-TO, FROM- or -TO"};
        }
    } else if (line.is("--around")) {
        how.around = number(line.value(), 16);
        if (!how.around) { throw tool::failure{"--around takes a hexadecimal offset"}; }
    } else if (line.is("--segments")) {
        how.segments = number(line.value());
        if (how.segments.value_or(0) == 0) {
            throw tool::failure{"--segments takes a number, at least 1"};
        }
    } else {
        return false;
    }
    return true;
}

void refuse_contradictions(settings const& how) {
    if (!how.trace) { throw tool::failure{"nothing to read: give a trace; see --help"}; }
    if (!how.list && !how.out) { throw tool::failure{"no output: give -o OUT, or --list"}; }
    if (how.list && how.out) { throw tool::failure{"--list writes no trace: give no -o"}; }
    if (how.psb.has_value() + how.bytes.has_value() + how.around.has_value() > 1) {
        throw tool::failure{"--psb, --bytes and --around select segments: give one"};
    }
    if (how.map && how.map == how.out) { throw tool::failure{"--save-map and -o name one file"}; }
    if (how.segments && !how.around) { throw tool::failure{"--segments needs --around"}; }
    if (how.how.offsets && how.how.ip == change::keep) {
        throw tool::failure{"--offsets needs --ip map"};
    }
    if (how.how.ratio && how.how.tsc != change::map) {
        throw tool::failure{"--ratio needs --tsc rebase"};
    }
}

// ------------------------------------------------------------------------------------- segments

auto hex(std::uint64_t offset) -> std::string {
    std::string text;
    listing::append_offset(text, offset);
    return text;
}

/// The index of the segment with this byte. Bytes before the first PSB belong to the first.
auto segment_with(segments all, std::uint64_t offset) -> std::size_t {
    auto const after = std::upper_bound(
        all.begin(), all.end(), offset,
        [](std::uint64_t value, segment const& one) { return value < one.begin; });
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - all.begin(), 1) - 1);
}

/// The selected segments, and the number of the first, counted from 0.
struct selection {
    segments which{};
    std::size_t first = 0;
};

auto between(segments all, std::uint64_t first, std::uint64_t last) -> selection {
    auto const begin = static_cast<std::size_t>(first);
    return {all.subspan(begin, static_cast<std::size_t>(last - first + 1)), begin};
}

auto select(segments all, std::uint64_t size, settings const& how) -> selection {
    if (how.psb) {
        if (how.psb->first > all.size()) {
            throw tool::failure{"--psb: the trace has " + std::to_string(all.size()) + " segments"};
        }
        auto const first = std::max<std::uint64_t>(how.psb->first, 1) - 1;
        auto const last = std::min<std::uint64_t>(how.psb->last, all.size()) - 1;
        return between(all, first, last);
    }
    if (how.bytes || how.around) {
        auto const from = how.bytes ? how.bytes->first : *how.around;
        if (from >= size) {
            throw tool::failure{std::string{how.bytes ? "--bytes" : "--around"} +
                                ": the trace ends at " + hex(size)};
        }
        auto const at = segment_with(all, from);
        if (how.bytes) {
            auto const to = std::min(how.bytes->last, size);
            auto const got = between(all, at, segment_with(all, to - 1));
            auto const begin = got.which.front().begin;
            auto const end = got.which.back().end();
            if (begin != from || end != to) {
                tool::print_error("bytes " + hex(from) + '-' + hex(to) + " rounded to " +
                                  hex(begin) + '-' + hex(end));
            }
            return got;
        }
        auto const count = how.segments.value_or(3);
        auto const before = std::min<std::uint64_t>((count - 1) / 2, at);
        auto const after = std::min<std::uint64_t>(count / 2, all.size() - 1 - at);
        return between(all, at - before, at + after);
    }
    return between(all, 0, all.size() - 1);
}

void append_value(std::string& line, std::string_view name,
                  std::optional<std::uint64_t> const& value) {
    listing::text_fields to{line};
    if (value) {
        to.hex(name, *value);
    } else {
        to.nothing(name);
    }
}

void print_list(selection const& of) {
    tool::output out;
    auto number = of.first;
    for (auto const& one : of.which) {
        std::string line = std::to_string(++number) + ' ';
        listing::append_offset(line, one.begin);
        listing::text_fields fields{line};
        fields.number("bytes", one.bytes);
        fields.number("packets", one.packets);
        fields.number("dropped", one.dropped);
        append_value(line, "tsc", one.tsc);
        append_value(line, "ip", one.ip);
        out.write(line += '\n');
    }
    out.close();
}

/// Reports the bytes of the selection that are not written.
void report_dropped(contents const& in, selection const& of) {
    if (of.first == 0 && in.skipped != 0) {
        tool::print_error(std::to_string(in.skipped) + " bytes before the first PSB: dropped");
    }
    std::uint64_t damaged = 0;
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> first;
    for (auto const& one : of.which) {
        if (!first && one.is_damaged) { first = one.begin + one.bytes; }
        damaged += one.is_damaged ? 1 : 0;
        bytes += one.dropped;
    }
    if (first) {
        tool::print_error("damage in " + std::to_string(damaged) + " of " +
                          std::to_string(of.which.size()) + " segments, the first at " +
                          hex(*first) + ": " + std::to_string(bytes) + " bytes dropped");
    }
}

// ------------------------------------------------------------------------------------- the output

auto read_all(tool::input& from) -> std::vector<std::uint8_t> {
    constexpr std::size_t piece = std::size_t{1} << 20;
    std::vector<std::uint8_t> bytes;
    bytes.reserve(static_cast<std::size_t>(from.size()) + 1);
    while (!from.at_end()) {
        auto const before = bytes.size();
        bytes.resize(std::max(before + piece, bytes.capacity()));
        bytes.resize(before + from.read(bytes.data() + before, bytes.size() - before));
    }
    if (bytes.empty()) { throw tool::unreadable{from.name() + ": is empty"}; }
    return bytes;
}

void append_packet(std::vector<std::uint8_t>& out, packet::any_packet const& one) {
    auto const bits = one.raw();
    for (unsigned i = 0; i < one.length(); ++i) {
        auto const word = i < 8 ? bits.low : bits.high;
        out.push_back(static_cast<std::uint8_t>(word >> 8 * (i % 8) & 0xFF));
    }
}

auto view_of(std::vector<std::uint8_t> const& bytes) -> std::string_view {
    return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

/// Writes a file, then reads it: what was checked is what is on the disk.
void write_and_compare(std::string const& path, std::vector<std::uint8_t> const& bytes) {
    tool::output to{path};
    to.write(view_of(bytes));
    to.close();
    struct ::stat about{};
    if (path == "-" || ::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) { return; }
    tool::input written{path};
    if (read_all(written) != bytes) { throw tool::failure{path + ": has other bytes"}; }
}

auto cut(byte_view trace, segments which, settings const& how) -> int {
    originals const values{trace, which, how.how};
    rewriter replace{values, how.how};
    std::vector<std::uint8_t> out;
    std::uint64_t size = 0;
    for (auto const& one : which) { size += one.bytes; }
    out.reserve(static_cast<std::size_t>(size));
    for_each_packet(trace, which,
                    [&](trace::item const& one) { append_packet(out, replace(one)); });

    output_check check{values, how.how, replace, byte_view{out}};
    for_each_packet(trace, which, [&](trace::item const& one) { check.next(one); });
    if (auto const wrong = check.end()) {
        tool::print_error("nothing written: " + *wrong);
        return not_private;
    }
    write_and_compare(*how.out, out);
    if (how.map) {
        tool::output to{*how.map};
        to.write(replace.table());
        to.close();
    }
    return done;
}

auto run(tool::command_line& line) -> int {
    settings how;
    while (line.next()) {
        if (line.is_help()) {
            tool::print(usage);
            return done;
        }
        if (line.is("-o")) {
            how.out = line.value();
        } else if (line.is("--list")) {
            how.list = true;
        } else if (line.is("--drop-damaged")) {
            how.drop_damaged = true;
        } else if (line.is("--save-map")) {
            how.map = line.value();
        } else if (parse_selection(line, how) || parse_replacement(line, how.how)) {
            continue;
        } else if (!line.is_operand()) {
            line.refuse();
        } else if (how.trace) {
            throw tool::failure{"takes one trace, not also " + line.argument()};
        } else {
            how.trace = line.argument();
        }
    }
    refuse_contradictions(how);

    tool::input from{*how.trace};
    for (auto const* path : {&how.out, &how.map}) {
        if (*path && **path != "-" && from.is(**path)) {
            throw tool::failure{**path + ": is both the trace and an output"};
        }
    }
    auto const bytes = read_all(from);
    tool::require_raw_trace(from.name(), byte_view{bytes});
    auto const in = contents_of(byte_view{bytes});
    if (in.all.empty()) {
        tool::print_error("no PSB to cut at");
        return no_psb;
    }
    auto const chosen = select(in.all, bytes.size(), how);
    if (how.list) {
        print_list(chosen);
        return done;
    }
    report_dropped(in, chosen);
    if (!how.drop_damaged) { return cut(byte_view{bytes}, chosen.which, how); }
    std::vector<segment> undamaged;
    std::copy_if(chosen.which.begin(), chosen.which.end(), std::back_inserter(undamaged),
                 [](segment const& one) { return !one.is_damaged; });
    if (undamaged.empty()) {
        tool::print_error("each segment is damaged: nothing written");
        return no_psb;
    }
    return cut(byte_view{bytes}, undamaged, how);
}

}  // namespace

auto main(int count, char** arguments) -> int { return tool::run("pt_cut", count, arguments, run); }
