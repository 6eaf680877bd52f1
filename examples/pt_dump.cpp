// SPDX-License-Identifier: BSL-1.0

// pt_dump: lists the packets of Intel PT traces, or sums them up. `pt_dump --help` says how.

#include "pt_dump_jobs.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace pt_dump;

constexpr std::string_view usage = R"(usage: pt_dump [OPTION...] FILE...

Lists the packets of raw Intel PT traces, one line each. FILE may be - for standard input.

  --no-sync     read from the first byte, not from the first PSB
  --no-pad      leave out PAD packets
  --strict      a reserved bit of TMA that is set is damage
  --hex BYTES   read these bytes, given in hexadecimal
  --summary     counts, PSB spacing, errors and IPs in place of the listing
  --json        one JSON object a line
  --jobs N      read in N threads, 1 to 256; what is printed is the same
  --help        this text

A line of the listing is `OFFSET name len=N field=value...`, the offset in hexadecimal. Behind
damage reading goes on at the next PSB: `OFFSET !error code=...`, then `OFFSET !resync
skipped=N`.

JSON: every object has "offset" (a number, in bytes). A packet has "packet" (its name in the
listing), "len", and its fields by the names of the listing: numbers, but addresses, payloads
and counters as strings "0x...", branches as a string of T and N, and null where the listing has
`-`. What is no packet has "event" in place of "packet": "sync", "resync" and "nosync" with
"skipped"; "error" with "code", and "left" when the trace ends in a packet; "unknown" with
"len"; "end" with "packets", "errors" and "resyncs". With several files,
{"event":"file","file":NAME} comes before the objects of each. With --summary there is one
object a file: "file", "bytes", "packets", "skipped", "errors" and "resyncs" (numbers),
"errors_by_code" and "by_type" (an object a name; of a packet "packets" and "bytes"),
"psb_spacing" ("min", "mean", "max" in bytes) and "ip" ("lowest", "highest"), which are null
when there is nothing to tell.

Exit status: 0 no damage; 1 damage, listed; 2 wrong usage, a file that is empty or cannot be
read, or output that cannot be written; 3 no PSB.
)";

/// Of several files the worst counts: failed, then no_psb, then damaged.
auto worse(status one, status two) -> status {
    auto const weight = [](status s) { return s == failed ? 4 : static_cast<int>(s); };
    return weight(one) < weight(two) ? two : one;
}

auto complain(std::string_view about, std::string_view what) -> status {
    std::fprintf(stderr, "pt_dump: %.*s: %.*s\n", static_cast<int>(about.size()), about.data(),
                 static_cast<int>(what.size()), what.data());
    return failed;
}

// ------------------------------------------------------------------------------------------ inputs

/// A bar on standard error, for a person who waits.
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

template <class Way>
auto dump_bytes(std::vector<std::uint8_t> const& bytes, settings const& how, output& out)
    -> status {
    Way way{how, out};
    way.begin("--hex");
    trace::reader reader{byte_view{bytes}, how.how};
    way.read(reader);
    return way.end(bytes.size());
}

template <class Way>
auto dump_file(std::string const& name, settings const& how, output& out) -> status {
    bool const standard = name == "-";
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> const owned{
        standard ? nullptr : std::fopen(name.c_str(), "rb"),
        [](std::FILE* f) { return f != nullptr ? std::fclose(f) : 0; }};
    std::FILE* const file = standard ? stdin : owned.get();
    if (file == nullptr) { return complain(name, std::strerror(errno)); }
    struct stat about{};
    if (::fstat(::fileno(file), &about) != 0) { return complain(name, std::strerror(errno)); }
    if (S_ISDIR(about.st_mode)) { return complain(name, "is a directory"); }

    Way way{how, out};
    progress bar{S_ISREG(about.st_mode) ? static_cast<std::uint64_t>(about.st_size) : 0};
    std::uint64_t size = 0;
    // Appends what comes next. False where nothing does.
    auto const more = [&](std::vector<std::uint8_t>& bytes) {
        if (std::feof(file) != 0 || std::ferror(file) != 0) { return false; }
        std::size_t const before = bytes.size();
        bytes.resize(before + how.jobs * Way::piece_bytes);
        auto const count = std::fread(bytes.data() + before, 1, bytes.size() - before, file);
        bytes.resize(before + count);
        if (size == 0 && count != 0) { way.begin(name); }
        size += count;
        bar.at(size);
        return count != 0;
    };
    if (how.jobs > 1) {
        read_in_jobs(way, out, how, more);
    } else {
        trace::reader<> reader{how.how};
        for (std::vector<std::uint8_t> piece; more(piece); piece.clear()) {
            (void)reader.feed(byte_view{piece});
            way.read(reader);
        }
        reader.finish();
        way.read(reader);
    }
    if (std::ferror(file) != 0) { return complain(name, std::strerror(errno)); }
    if (size == 0) { return complain(name, "is empty"); }
    return way.end(size);
}

/// Bytes from pairs of hexadecimal digits; blanks between the pairs and a leading 0x do not matter.
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

/// The number of threads, or 0.
auto parse_jobs(std::string_view text) -> unsigned {
    unsigned value = 0;
    auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && stop == text.data() + text.size() && value <= 256 ? value : 0;
}

auto run(std::vector<std::string> const& arguments) -> status {
    settings how;
    std::vector<std::string> files;
    std::vector<std::vector<std::uint8_t>> literals;
    bool options_end = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        auto const& argument = arguments[i];
        if (options_end || argument == "-" || !argument.starts_with('-')) {
            files.push_back(argument);
        } else if (argument == "--") {
            options_end = true;
        } else if (argument == "--help") {
            std::fwrite(usage.data(), 1, usage.size(), stdout);
            return std::fflush(stdout) == 0 ? clean : failed;
        } else if (argument == "--no-sync") {
            how.how.sync = false;
        } else if (argument == "--no-pad") {
            how.pads = false;
        } else if (argument == "--strict") {
            how.how.strict = true;
        } else if (argument == "--summary") {
            how.summary = true;
        } else if (argument == "--json") {
            how.json = true;
        } else if (argument == "--jobs") {
            auto const number = ++i < arguments.size() ? parse_jobs(arguments[i]) : 0;
            if (number == 0) { return complain("--jobs", "takes a number from 1 to 256"); }
            how.jobs = number;
        } else if (argument == "--hex") {
            if (++i == arguments.size()) { return complain("--hex", "needs bytes"); }
            auto const bytes = parse_hex(arguments[i]);
            if (!bytes) {
                return complain("--hex",
                                "takes bytes as pairs of hexadecimal digits, like 02031800");
            }
            literals.push_back(*bytes);
        } else {
            return complain(argument, "no such option; --help lists them");
        }
    }
    if (files.empty() && literals.empty()) {
        return complain("nothing to read", "give a file, - for standard input, or --hex BYTES");
    }
    how.several = files.size() + literals.size() > 1;

    output out;
    status worst = clean;
    for (auto const& bytes : literals) {
        worst = worse(worst, how.summary ? dump_bytes<summariser>(bytes, how, out)
                                         : dump_bytes<lister>(bytes, how, out));
    }
    for (auto const& file : files) {
        worst = worse(worst, how.summary ? dump_file<summariser>(file, how, out)
                                         : dump_file<lister>(file, how, out));
    }
    if (!out.close()) { return complain("standard output", "cannot be written"); }
    if (worst == no_psb) {
        std::fputs("pt_dump: no PSB to begin at; --no-sync reads from the first byte\n", stderr);
    }
    return worst;
}

}  // namespace

auto main(int count, char** arguments) -> int { return run({arguments + 1, arguments + count}); }
