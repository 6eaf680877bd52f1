// SPDX-License-Identifier: BSL-1.0

// pt_dump: lists the packets of Intel PT traces, or summarises them. See `pt_dump --help`.

#include "check.hpp"
#include "jobs.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace pt_dump;

constexpr std::string_view usage = R"(usage: pt_dump [OPTION...] FILE...

Lists the packets of raw Intel PT traces, one packet a line. FILE may be - for standard input.

  --no-sync     read from the first byte instead of from the first PSB
  --no-pad      do not list PAD packets
  --strict      report a set reserved bit of TMA as damage
  --hex BYTES   read these bytes, given as pairs of hexadecimal digits; may be repeated
  --summary     print counts, PSB spacing, errors and the range of IPs instead of the listing
  --check       print the violations of rules that streams obey instead of the listing
  --kind K      check also what this kind of processor does: broadwell, skylake, icelake or atom;
                manual: only what all do; auto, the default: the kind with the fewest violations
  --json        print JSON, one object a line
  --jobs N      read in up to N threads, 1 to 256; the output is the same
  -h, --help    print this text

A line of the listing is `OFFSET name len=N field=value...`; the offset is hexadecimal. After
damage, reading continues at the next PSB: `OFFSET !error code=...`, then `OFFSET !resync
skipped=N`.

With --check a line is `OFFSET name RULE: text`, with the first 100 violations in the order of their
offsets; the last line has the number of all. Packets are checked from the first PSB on. With
--jobs, one thread checks.

JSON: every object has "offset" (a number, in bytes). A packet has "packet" (its name in the
listing), "len", and its fields with their names in the listing. Fields are numbers, except that
addresses, payloads and counters are strings "0x...", branches are a string of T and N, and `-` in
the listing is null. Other lines have "event" instead of "packet": "sync", "resync" and "nosync"
with "skipped"; "error" with "code", and with "left" when the trace ends within a packet;
"unknown" with "len"; "end" with "packets", "errors" and "resyncs". With several files,
{"event":"file","file":NAME} precedes the objects of each file. With --summary there is one
object for each file: "file", "bytes", "packets", "skipped", "errors" and "resyncs" (numbers),
"errors_by_code" (a number for each error), "by_type" (for each packet an object with "packets" and
"bytes"), "psb_spacing" ("min", "mean" and "max" in bytes) and "ip" ("lowest" and "highest"). The
last two are null when the trace has no such value. Bytes of a name that are not UTF-8 are written
as \ufffd. With --check an object has "offset", "packet" (null where no packet is), "rule" and
"text"; the last one "event":"end", "violations" and "kind".

Example:
  $ pt_dump --no-sync --hex '02 03 18 00'
  00000000 cbr len=4 ratio=24
  00000004 !end packets=1 errors=0 resyncs=0

Exit status: 0 no damage; 1 damage, which is listed, or with --check a violation; 2 wrong usage, a
file that is empty or cannot be read, or output that cannot be written; 3 no PSB. With several files
the worst status is returned, in the order 2, 3, 1.
)";

/// The status for several files: the worst in the order failed, no_psb, damaged.
auto worse(status one, status two) -> status {
    auto const weight = [](status s) { return s == failed ? 4 : static_cast<int>(s); };
    return weight(one) < weight(two) ? two : one;
}

// ------------------------------------------------------------------------------------------ inputs

/// A progress bar on standard error; shown only at a terminal.
class progress {
public:
    explicit progress(std::uint64_t total)
        : total_{::isatty(STDERR_FILENO) == 1 && total > 16U << 20 ? total : 0} {}
    progress(progress const&) = delete;
    auto operator=(progress const&) -> progress& = delete;
    ~progress() {
        if (shown_ >= 0) { std::fputs("\r\033[K", stderr); }
    }

    void at(std::uint64_t done) {
        if (total_ == 0) { return; }
        int const percent = static_cast<int>(std::min(done, total_) * 100 / total_);
        if (percent == shown_) { return; }
        shown_ = percent;
        std::string const bar(static_cast<std::size_t>(percent / 2), '#');
        std::fprintf(stderr, "\r[%-50s] %3d %%", bar.c_str(), percent);
        std::fflush(stderr);
    }

private:
    std::uint64_t total_;
    int shown_ = -1;
};

template <class Report>
auto dump_bytes(std::vector<std::uint8_t> const& bytes, settings const& how, output& out)
    -> status {
    Report report{how, out};
    report.begin("--hex");
    trace::reader reader{byte_view{bytes}, how.how};
    report.read(reader);
    return report.end(bytes.size());
}

template <class Report>
auto dump_file(std::string const& name, settings const& how, output& out) -> status {
    tool::input file{name};
    Report report{how, out};
    progress bar{file.size()};
    std::uint64_t size = 0;
    // Appends the next bytes. Returns false at the end.
    auto const more = [&](std::vector<std::uint8_t>& bytes) {
        if (file.at_end()) { return false; }
        std::size_t const before = bytes.size();
        bytes.resize(before + how.jobs * Report::piece_bytes);
        auto const count = file.read(bytes.data() + before, bytes.size() - before);
        bytes.resize(before + count);
        if (size == 0 && count != 0) { report.begin(name); }
        size += count;
        bar.at(size);
        return count != 0;
    };
    auto const read_in_order = [&] {
        trace::reader<> reader{how.how};
        for (std::vector<std::uint8_t> piece; more(piece); piece.clear()) {
            (void)reader.feed(byte_view{piece});
            report.read(reader);
        }
        reader.finish();
        report.read(reader);
    };
    if constexpr (Report::is_splittable) {
        if (how.jobs > 1) {
            read_in_threads(report, out, how, more);
        } else {
            read_in_order();
        }
    } else {
        read_in_order();
    }
    if (size == 0) { throw tool::unreadable{file.name() + ": is empty"}; }
    return report.end(size);
}

/// Like dump_file, but a file that cannot be read is reported, and the next one is read.
template <class Report>
auto try_file(std::string const& name, settings const& how, output& out) -> status {
    try {
        return dump_file<Report>(name, how, out);
    } catch (tool::unreadable const& why) {
        tool::print_error(why.what());
        return failed;
    }
}

/// Bytes from pairs of hexadecimal digits. Blanks between pairs and a leading 0x are ignored.
auto parse_hex(std::string_view text) -> std::optional<std::vector<std::uint8_t>> {
    std::vector<std::uint8_t> bytes;
    while (true) {
        auto const begin = text.find_first_not_of(" \t\n,");
        if (begin == std::string_view::npos) { break; }
        text.remove_prefix(begin);
        if (text.starts_with("0x") || text.starts_with("0X")) { text.remove_prefix(2); }
        unsigned value = 0;
        auto const end = text.data() + std::min<std::size_t>(2, text.size());
        auto const [stop, error] = std::from_chars(text.data(), end, value, 16);
        if (error != std::errc{} || stop != text.data() + 2) { return std::nullopt; }
        bytes.push_back(static_cast<std::uint8_t>(value));
        text.remove_prefix(2);
    }
    if (bytes.empty()) { return std::nullopt; }
    return bytes;
}

/// The number of threads; 0 when it is invalid.
auto parse_jobs(std::string_view text) -> unsigned {
    unsigned value = 0;
    auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && stop == text.data() + text.size() && value <= 256 ? value : 0;
}

auto run(tool::command_line& line) -> int {
    settings how;
    std::vector<std::string> files;
    std::vector<std::vector<std::uint8_t>> literals;
    while (line.next()) {
        if (line.is_operand()) {
            files.push_back(line.argument());
        } else if (line.is_help()) {
            tool::print(usage);
            return clean;
        } else if (line.is("--no-sync")) {
            how.how.sync = false;
        } else if (line.is("--no-pad")) {
            how.pads = false;
        } else if (line.is("--strict")) {
            how.how.strict = true;
        } else if (line.is("--summary")) {
            how.summary = true;
        } else if (line.is("--check")) {
            how.check = true;
        } else if (line.is("--kind")) {
            how.kinds = kinds_of(line.value());
            if (how.kinds.empty()) {
                throw tool::failure{
                    "--kind takes auto, manual, broadwell, skylake, icelake or atom"};
            }
        } else if (line.is("--json")) {
            how.json = true;
        } else if (line.is("--jobs")) {
            how.jobs = parse_jobs(line.value());
            if (how.jobs == 0) { throw tool::failure{"--jobs takes a number from 1 to 256"}; }
        } else if (line.is("--hex")) {
            auto const bytes = parse_hex(line.value());
            if (!bytes) {
                throw tool::failure{"--hex takes bytes as pairs of hexadecimal digits, like "
                                    "'02 03 18 00'"};
            }
            literals.push_back(*bytes);
        } else {
            line.refuse();
        }
    }
    if (files.empty() && literals.empty()) {
        throw tool::failure{"nothing to read: give a file, - for standard input, or --hex BYTES; "
                            "--help tells more"};
    }
    if (how.check && how.summary) {
        throw tool::failure{"--check and --summary print different things: give one"};
    }
    how.several = files.size() + literals.size() > 1;

    tool::output standard;
    output out{&standard};
    status worst = clean;
    for (auto const& bytes : literals) {
        worst = worse(worst, how.check     ? dump_bytes<stream_checker>(bytes, how, out)
                             : how.summary ? dump_bytes<summariser>(bytes, how, out)
                                           : dump_bytes<lister>(bytes, how, out));
    }
    for (auto const& file : files) {
        worst = worse(worst, how.check     ? try_file<stream_checker>(file, how, out)
                             : how.summary ? try_file<summariser>(file, how, out)
                                           : try_file<lister>(file, how, out));
    }
    out.flush();
    standard.close();
    if (worst == no_psb) {
        tool::print_error("no PSB to begin at; --no-sync reads from the first byte");
    }
    return worst;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("pt_dump", count, arguments, run);
}
