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
    changes replaced{};
};

/// The argument of an option that replaces values: `zero`, or the word for `value_change::map`.
auto parse_change(tool::command_line& line, std::string_view map = {}) -> value_change {
    auto const option = line.argument();
    auto const value = line.value();
    if (value == "zero") { return value_change::zero; }
    if (!map.empty() && value == map) { return value_change::map; }
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

void make_private(changes& replaced) {
    replaced.offsets = true;
    replaced.values = {.ip = value_change::map,
                       .cr3 = value_change::map,
                       .vmcs = value_change::map,
                       .tsc = value_change::map,
                       .ptw = value_change::zero,
                       .evd = value_change::zero,
                       .bip = value_change::zero,
                       .mnt = value_change::zero,
                       .mwait = value_change::zero};
}

/// Parses an option that replaces values. Returns false when it is none.
auto parse_replacement(tool::command_line& line, changes& replaced) -> bool {
    auto& values = replaced.values;
    if (line.is("--private")) {
        make_private(replaced);
    } else if (line.is("--ip")) {
        values.ip = parse_change(line, "map");
    } else if (line.is("--offsets")) {
        replaced.offsets = true;
    } else if (line.is("--cr3")) {
        values.cr3 = parse_change(line, "map");
    } else if (line.is("--vmcs")) {
        values.vmcs = parse_change(line, "map");
    } else if (line.is("--tsc")) {
        values.tsc = parse_change(line, "rebase");
    } else if (line.is("--ratio")) {
        replaced.ratio = parse_ratio(line.value());
    } else if (line.is("--ptw")) {
        values.ptw = parse_change(line);
    } else if (line.is("--evd")) {
        values.evd = parse_change(line, "map");
    } else if (line.is("--bip")) {
        values.bip = parse_change(line);
    } else if (line.is("--mnt")) {
        values.mnt = parse_change(line);
    } else if (line.is("--mwait")) {
        values.mwait = parse_change(line);
    } else {
        return false;
    }
    return true;
}

/// Parses an option that selects segments. Returns false when it is none.
auto parse_selection(tool::command_line& line, settings& options) -> bool {
    if (line.is("--psb")) {
        auto const text = line.value();
        auto const one = number(text);
        options.psb = one ? range{*one, *one} : parse_range(text, 10);
        if (!options.psb || options.psb->last == 0 || options.psb->first > options.psb->last ||
            text.starts_with('0')) {
            throw tool::failure{"--psb takes numbers of segments from 1 on: A-B, A, A- or -B"};
        }
    } else if (line.is("--bytes")) {
        options.bytes = parse_range(line.value(), 16);
        if (!options.bytes || options.bytes->first >= options.bytes->last) {
            throw tool::failure{"--bytes takes hexadecimal offsets, FROM-TO, FROM- or -TO"};
        }
    } else if (line.is("--around")) {
        options.around = number(line.value(), 16);
        if (!options.around) { throw tool::failure{"--around takes a hexadecimal offset"}; }
    } else if (line.is("--segments")) {
        options.segments = number(line.value());
        if (options.segments.value_or(0) == 0) {
            throw tool::failure{"--segments takes a number, at least 1"};
        }
    } else {
        return false;
    }
    return true;
}

void refuse_contradictions(settings const& options) {
    if (!options.trace) { throw tool::failure{"nothing to read: give a trace; see --help"}; }
    if (!options.list && !options.out) { throw tool::failure{"no output: give -o OUT, or --list"}; }
    if (options.list && options.out) { throw tool::failure{"--list writes no trace: give no -o"}; }
    if (options.psb.has_value() + options.bytes.has_value() + options.around.has_value() > 1) {
        throw tool::failure{"--psb, --bytes and --around select segments: give one"};
    }
    if (options.map && options.map == options.out) {
        throw tool::failure{"--save-map and -o name one file"};
    }
    if (options.segments && !options.around) { throw tool::failure{"--segments needs --around"}; }
    if (options.replaced.offsets && options.replaced.values.ip == value_change::keep) {
        throw tool::failure{"--offsets needs --ip map"};
    }
    if (options.replaced.ratio && options.replaced.values.tsc != value_change::map) {
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
    segments all{};
    std::size_t first = 0;
};

auto between(segments all, std::uint64_t first, std::uint64_t last) -> selection {
    auto const begin = static_cast<std::size_t>(first);
    return {all.subspan(begin, static_cast<std::size_t>(last - first + 1)), begin};
}

auto select(segments all, std::uint64_t size, settings const& options) -> selection {
    if (options.psb) {
        if (options.psb->first > all.size()) {
            throw tool::failure{"--psb: the trace has " + std::to_string(all.size()) + " segments"};
        }
        auto const first = std::max<std::uint64_t>(options.psb->first, 1) - 1;
        auto const last = std::min<std::uint64_t>(options.psb->last, all.size()) - 1;
        return between(all, first, last);
    }
    if (options.bytes || options.around) {
        auto const from = options.bytes ? options.bytes->first : *options.around;
        if (from >= size) {
            throw tool::failure{std::string{options.bytes ? "--bytes" : "--around"} +
                                ": the trace ends at " + hex(size)};
        }
        auto const at = segment_with(all, from);
        if (options.bytes) {
            auto const to = std::min(options.bytes->last, size);
            auto const got = between(all, at, segment_with(all, to - 1));
            auto const begin = got.all.front().begin;
            auto const end = got.all.back().end();
            if (begin != from || end != to) {
                tool::print_error("bytes " + hex(from) + '-' + hex(to) + " rounded to " +
                                  hex(begin) + '-' + hex(end));
            }
            return got;
        }
        auto const count = options.segments.value_or(3);
        auto const before = std::min<std::uint64_t>((count - 1) / 2, at);
        auto const after = std::min<std::uint64_t>(count / 2, all.size() - 1 - at);
        return between(all, at - before, at + after);
    }
    return between(all, 0, all.size() - 1);
}

void append_value(std::string& line, std::string_view name, bool is_known, std::uint64_t value) {
    listing::text_fields fields{line};
    if (is_known) {
        fields.hex(name, value);
    } else {
        fields.nothing(name);
    }
}

void print_list(selection const& selected) {
    tool::output out;
    auto number = selected.first;
    for (auto const& one : selected.all) {
        std::string line = std::to_string(++number) + ' ';
        listing::append_offset(line, one.begin);
        listing::text_fields fields{line};
        fields.number("bytes", one.bytes);
        fields.number("packets", one.packets);
        fields.number("dropped", one.dropped);
        append_value(line, "tsc", one.has_tsc, one.tsc);
        append_value(line, "ip", one.has_ip, one.ip);
        out.write(line += '\n');
    }
    out.close();
}

/// Reports the bytes of the selection that are not written.
void report_dropped(contents const& trace, selection const& selected) {
    if (selected.first == 0 && trace.skipped != 0) {
        tool::print_error(std::to_string(trace.skipped) + " bytes before the first PSB: dropped");
    }
    std::uint64_t damaged = 0;
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> first;
    for (auto const& one : selected.all) {
        if (!first && one.is_damaged) { first = one.begin + one.bytes; }
        damaged += one.is_damaged ? 1 : 0;
        bytes += one.dropped;
    }
    if (first) {
        tool::print_error("damage in " + std::to_string(damaged) + " of " +
                          std::to_string(selected.all.size()) + " segments, the first at " +
                          hex(*first) + ": " + std::to_string(bytes) + " bytes dropped");
    }
}

// ------------------------------------------------------------------------------------- the output

auto read_all(tool::input& input) -> std::vector<std::uint8_t> {
    constexpr std::size_t step = std::size_t{1} << 20;
    std::vector<std::uint8_t> bytes;
    bytes.reserve(static_cast<std::size_t>(input.size()) + 1);
    while (!input.at_end()) {
        auto const before = bytes.size();
        bytes.resize(std::max(before + step, bytes.capacity()));
        bytes.resize(before + input.read(bytes.data() + before, bytes.size() - before));
    }
    if (bytes.empty()) { throw tool::unreadable{input.name() + ": is empty"}; }
    return bytes;
}

void append_packet(std::vector<std::uint8_t>& out, packet::any_packet const& packet) {
    auto const bits = packet.raw();
    for (unsigned i = 0; i < packet.length(); ++i) {
        auto const word = i < 8 ? bits.low : bits.high;
        out.push_back(static_cast<std::uint8_t>(word >> 8 * (i % 8) & 0xFF));
    }
}

auto view_of(std::vector<std::uint8_t> const& bytes) -> std::string_view {
    return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

/// Writes a file, then reads it: what was checked is what is on the disk.
void write_and_compare(std::string const& path, std::vector<std::uint8_t> const& bytes) {
    tool::output out{path};
    out.write(view_of(bytes));
    out.close();
    struct ::stat about{};
    if (path == "-" || ::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) { return; }
    tool::input written{path};
    if (read_all(written) != bytes) { throw tool::failure{path + ": has other bytes"}; }
}

auto cut(byte_view trace, segments selected, settings const& options) -> int {
    auto const& changes = options.replaced.values;
    originals const values{trace, selected, changes};
    replacements by{values, options.replaced};
    std::vector<std::uint8_t> out;
    std::uint64_t size = 0;
    for (auto const& one : selected) { size += one.bytes; }
    out.reserve(static_cast<std::size_t>(size));
    for_each_packet(trace, selected, [&](trace::item const& item) {
        append_packet(out, edit::replace_values(item, changes, by));
    });

    output_check check{values, changes, by, byte_view{out}};
    for_each_packet(trace, selected, [&](trace::item const& item) { check.next(item); });
    if (auto const problem = check.end()) {
        tool::print_error("nothing written: " + *problem);
        return not_private;
    }
    write_and_compare(*options.out, out);
    if (options.map) {
        tool::output map{*options.map};
        map.write(by.table());
        map.close();
    }
    return done;
}

auto run(tool::command_line& line) -> int {
    settings options;
    while (line.next()) {
        if (line.is_help()) {
            tool::print(usage);
            return done;
        }
        if (line.is("-o")) {
            options.out = line.value();
        } else if (line.is("--list")) {
            options.list = true;
        } else if (line.is("--drop-damaged")) {
            options.drop_damaged = true;
        } else if (line.is("--save-map")) {
            options.map = line.value();
        } else if (parse_selection(line, options) || parse_replacement(line, options.replaced)) {
            continue;
        } else if (!line.is_operand()) {
            line.refuse();
        } else if (options.trace) {
            throw tool::failure{"takes one trace, not also " + line.argument()};
        } else {
            options.trace = line.argument();
        }
    }
    refuse_contradictions(options);

    tool::input input{*options.trace};
    for (auto const* path : {&options.out, &options.map}) {
        if (*path && **path != "-" && input.is(**path)) {
            throw tool::failure{**path + ": is both the trace and an output"};
        }
    }
    auto const bytes = read_all(input);
    tool::require_raw_trace(input.name(), byte_view{bytes});
    auto const trace = contents_of(byte_view{bytes});
    if (trace.all.empty()) {
        tool::print_error("no PSB to cut at");
        return no_psb;
    }
    auto const chosen = select(trace.all, bytes.size(), options);
    if (options.list) {
        print_list(chosen);
        return done;
    }
    report_dropped(trace, chosen);
    if (!options.drop_damaged) { return cut(byte_view{bytes}, chosen.all, options); }
    std::vector<segment> undamaged;
    std::copy_if(chosen.all.begin(), chosen.all.end(), std::back_inserter(undamaged),
                 [](segment const& one) { return !one.is_damaged; });
    if (undamaged.empty()) {
        tool::print_error("each segment is damaged: nothing written");
        return no_psb;
    }
    return cut(byte_view{bytes}, undamaged, options);
}

}  // namespace

auto main(int count, char** arguments) -> int { return tool::run("pt_cut", count, arguments, run); }
