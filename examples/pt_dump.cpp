// SPDX-License-Identifier: BSL-1.0

// pt_dump: lists the packets of Intel PT traces, or sums them up. `pt_dump --help` says how.

#include "listing.hpp"

#include <ptspec/ptspec.hpp>

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

using namespace ptspec;

constexpr std::string_view usage = R"(usage: pt_dump [OPTION...] FILE...

Lists the packets of raw Intel PT traces, one line each. FILE may be - for standard input.

  --no-sync     read from the first byte, not from the first PSB
  --no-pad      leave out PAD packets
  --strict      a reserved bit of TMA that is set is damage
  --hex BYTES   read these bytes, given in hexadecimal
  --summary     counts, PSB spacing, errors and IPs in place of the listing
  --json        one JSON object a line
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

enum status : std::uint8_t { clean = 0, damaged = 1, failed = 2, no_psb = 3 };

/// Of several files the worst counts: failed, then no_psb, then damaged.
auto worse(status one, status two) -> status {
    auto const weight = [](status s) { return s == failed ? 4 : static_cast<int>(s); };
    return weight(one) < weight(two) ? two : one;
}

struct settings {
    trace::options how{};
    bool pads = true;
    bool summary = false;
    bool json = false;
    bool several = false;  ///< more than one input
};

auto complain(std::string_view about, std::string_view what) -> status {
    std::fprintf(stderr, "pt_dump: %.*s: %.*s\n", static_cast<int>(about.size()), about.data(),
                 static_cast<int>(what.size()), what.data());
    return failed;
}

/// Standard output through a buffer. Remembers whether a write failed.
class output {
public:
    auto text() -> std::string& { return text_; }
    void line_done() {
        if (text_.size() >= 1 << 16) { flush(); }
    }
    void flush() {
        broken_ = broken_ || std::fwrite(text_.data(), 1, text_.size(), stdout) != text_.size();
        text_.clear();
    }
    [[nodiscard]] auto close() -> bool {
        flush();
        return std::fflush(stdout) == 0 && !broken_;
    }

private:
    std::string text_{};
    bool broken_ = false;
};

// ------------------------------------------------------------------------------------------- JSON

void append_json_string(std::string& out, std::string_view value) {
    out += '"';
    for (char const c : value) {
        auto const byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", byte);
            out += escape;
        } else {
            out += c;
        }
    }
    out += '"';
}

/// Appends `"name":value` pairs to an object.
class json_fields {
public:
    explicit json_fields(std::string& out) : out_{out} {}

    template <class Number>
    void number(std::string_view name, Number value) {
        begin(name);
        out_ += std::to_string(value);
    }
    void hex(std::string_view name, std::uint64_t value) {
        begin(name);
        char digits[24];
        std::snprintf(digits, sizeof digits, "\"0x%llx\"", static_cast<unsigned long long>(value));
        out_ += digits;
    }
    void nothing(std::string_view name) {
        begin(name);
        out_ += "null";
    }
    void string(std::string_view name, std::string_view value) {
        begin(name);
        append_json_string(out_, value);
    }
    void branches(std::string_view name, packet::branches which) {
        begin(name);
        out_ += '"';
        for (unsigned i = 0; i < which.count; ++i) { out_ += which.taken(i) ? 'T' : 'N'; }
        out_ += '"';
    }
    void open(std::string_view name) {
        begin(name);
        out_ += '{';
    }

    void begin(std::string_view name) {
        if (out_.back() != '{') { out_ += ','; }
        append_json_string(out_, name);
        out_ += ':';
    }

private:
    std::string& out_;
};

void append_json(std::string& out, trace::item const& item, listing::totals const& sofar) {
    using trace::event;
    out += '{';
    json_fields fields{out};
    fields.number("offset", item.what == event::lost && !sofar.synced ? 0 : item.offset);
    switch (item.what) {
        case event::packet:
            fields.string("packet", listing::name(item.packet.kind()));
            fields.number("len", item.length);
            packet::visit(listing::fields_of{fields, item.ip}, item.packet);
            break;
        case event::unknown:
            fields.string("event", "unknown");
            fields.number("len", item.length);
            break;
        case event::synced:
        case event::resynced:
        case event::lost:
            fields.string("event", item.what == event::synced     ? "sync"
                                   : item.what == event::resynced ? "resync"
                                                                  : "nosync");
            fields.number("skipped", item.skipped);
            break;
        case event::damage:
            fields.string("event", "error");
            fields.string("code", listing::error_name(item.why));
            if (item.why == packet::error::truncated) { fields.number("left", item.skipped); }
            break;
        case event::end:
        case event::more:
            fields.string("event", "end");
            fields.number("packets", sofar.packets);
            fields.number("errors", sofar.errors);
            fields.number("resyncs", sofar.resyncs);
            break;
    }
    out += "}\n";
}

// ------------------------------------------------------------------------------------- the two
// ways

/// Prints every item as a line.
class lister {
public:
    lister(settings const& how, output& out) : how_{how}, out_{out} {}

    void begin(std::string_view name) {
        if (!how_.several) { return; }
        if (how_.json) {
            out_.text() += '{';
            json_fields fields{out_.text()};
            fields.string("event", "file");
            fields.string("file", name);
            out_.text() += "}\n";
        } else {
            out_.text().append("# ").append(name) += '\n';
        }
    }

    template <class Reader>
    auto read(Reader& reader) -> trace::event {
        while (true) {
            auto const item = reader.next();
            if (item.what == trace::event::more) { return item.what; }
            totals_.count(item);
            bool const hidden = !how_.pads && item.what == trace::event::packet &&
                                item.packet.kind() == packet::kind::pad;
            if (!hidden) {
                (how_.json ? append_json : listing::append_line)(out_.text(), item, totals_);
                out_.line_done();
            }
            if (item.what == trace::event::end) { return item.what; }
        }
    }

    [[nodiscard]] auto end(std::uint64_t) -> status {
        return totals_.errors != 0 ? damaged : totals_.synced ? clean : no_psb;
    }

private:
    settings const& how_;
    output& out_;
    listing::totals totals_{};
};

/// Counts, and prints the sums.
class summariser {
public:
    summariser(settings const& how, output& out) : how_{how}, out_{out} {}

    void begin(std::string_view name) { name_ = name; }

    template <class Reader>
    auto read(Reader& reader) -> trace::event {
        return reader.for_each(visitor{*this});
    }

    [[nodiscard]] auto end(std::uint64_t bytes) -> status {
        how_.json ? print_json(bytes) : print_text(bytes);
        return sum_.errors != 0 ? damaged : sum_.total() != 0 ? clean : no_psb;
    }

private:
    struct visitor {
        summariser& to;

        template <packet::packet_type Packet>
        void operator()(Packet const& packet, trace::at where) const {
            to.sum_.add(Packet::about.id, where.length);
            if constexpr (requires { packet.has_ip(); }) {
                if (packet.has_ip()) {
                    to.lowest_ip_ = std::min(to.lowest_ip_, where.ip);
                    to.highest_ip_ = std::max(to.highest_ip_, where.ip);
                }
            } else if constexpr (std::is_same_v<Packet, packet::psb>) {
                to.count_psb(where.offset);
            }
        }
        void operator()(trace::item const& other) const {
            to.sum_.add(other);
            if (other.what == trace::event::damage) {
                to.by_code_[static_cast<unsigned>(other.why)] += 1;
            }
            to.skipped_ += other.skipped;
        }
    };

    void count_psb(std::uint64_t offset) {
        if (psbs() == 1) {
            first_psb_ = offset;
        } else {
            nearest_ = std::min(nearest_, offset - last_psb_);
            farthest_ = std::max(farthest_, offset - last_psb_);
        }
        last_psb_ = offset;
    }

    [[nodiscard]] auto psbs() const -> std::uint64_t { return sum_.of(packet::kind::psb); }
    [[nodiscard]] auto mean_spacing() const -> std::uint64_t {
        return (last_psb_ - first_psb_) / (psbs() - 1);
    }

    void print_text(std::uint64_t bytes) {
        auto& out = out_.text();
        auto const line = [&](std::string_view name, std::uint64_t value) {
            char buffer[80];
            std::snprintf(buffer, sizeof buffer, "%-12.*s %12llu\n", static_cast<int>(name.size()),
                          name.data(), static_cast<unsigned long long>(value));
            out += buffer;
        };
        if (how_.several) { out.append("# ").append(name_) += '\n'; }
        line("bytes", bytes);
        line("packets", sum_.total());
        line("skipped", static_cast<std::uint64_t>(skipped_));
        line("errors", sum_.errors);
        for (auto const why : codes) {
            if (count(why) != 0) {
                line(std::string{"  "}.append(listing::error_name(why)), count(why));
            }
        }
        line("resyncs", sum_.resyncs);
        char buffer[120];
        if (psbs() > 1) {
            std::snprintf(buffer, sizeof buffer,
                          "psb spacing  min %llu, mean %llu, max %llu bytes\n",
                          static_cast<unsigned long long>(nearest_),
                          static_cast<unsigned long long>(mean_spacing()),
                          static_cast<unsigned long long>(farthest_));
            out += buffer;
        }
        if (lowest_ip_ <= highest_ip_) {
            std::snprintf(buffer, sizeof buffer, "ip           0x%llx to 0x%llx\n",
                          static_cast<unsigned long long>(lowest_ip_),
                          static_cast<unsigned long long>(highest_ip_));
            out += buffer;
        }
        if (sum_.total() != 0) { out += "\ntype              packets        bytes\n"; }
        for (unsigned i = 0; i < packet::kinds; ++i) {
            if (sum_.packets[i] == 0) { continue; }
            auto const name = listing::name(static_cast<packet::kind>(i));
            std::snprintf(buffer, sizeof buffer, "%-12.*s %12llu %12llu\n",
                          static_cast<int>(name.size()), name.data(),
                          static_cast<unsigned long long>(sum_.packets[i]),
                          static_cast<unsigned long long>(sum_.bytes[i]));
            out += buffer;
        }
    }

    void print_json(std::uint64_t bytes) {
        auto& out = out_.text();
        out += '{';
        json_fields fields{out};
        fields.string("file", name_);
        fields.number("bytes", bytes);
        fields.number("packets", sum_.total());
        fields.number("skipped", skipped_);
        fields.number("errors", sum_.errors);
        fields.number("resyncs", sum_.resyncs);
        fields.open("errors_by_code");
        for (auto const why : codes) {
            if (count(why) != 0) { fields.number(listing::error_name(why), count(why)); }
        }
        out += '}';
        fields.open("by_type");
        for (unsigned i = 0; i < packet::kinds; ++i) {
            if (sum_.packets[i] == 0) { continue; }
            fields.open(listing::name(static_cast<packet::kind>(i)));
            fields.number("packets", sum_.packets[i]);
            fields.number("bytes", sum_.bytes[i]);
            out += '}';
        }
        out += '}';
        if (psbs() > 1) {
            fields.open("psb_spacing");
            fields.number("min", nearest_);
            fields.number("mean", mean_spacing());
            fields.number("max", farthest_);
            out += '}';
        } else {
            fields.nothing("psb_spacing");
        }
        if (lowest_ip_ <= highest_ip_) {
            fields.open("ip");
            fields.hex("lowest", lowest_ip_);
            fields.hex("highest", highest_ip_);
            out += '}';
        } else {
            fields.nothing("ip");
        }
        out += "}\n";
    }

    static constexpr packet::error codes[] = {packet::error::bad_opcode, packet::error::bad_packet,
                                              packet::error::truncated};

    /// Errors by what the listing calls them.
    [[nodiscard]] auto count(packet::error why) const -> std::uint64_t {
        auto const plain = by_code_[static_cast<unsigned>(why)];
        return why == packet::error::bad_packet
                   ? plain + by_code_[static_cast<unsigned>(packet::error::reserved)]
                   : plain;
    }

    settings const& how_;
    output& out_;
    std::string name_{};
    trace::tally sum_{};
    std::uint64_t by_code_[5] = {};
    std::int64_t skipped_ = 0;
    std::uint64_t lowest_ip_ = ~std::uint64_t{0};
    std::uint64_t highest_ip_ = 0;
    std::uint64_t last_psb_ = 0;
    std::uint64_t first_psb_ = 0;
    std::uint64_t nearest_ = ~std::uint64_t{0};
    std::uint64_t farthest_ = 0;
};

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
    (void)way.read(reader);
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
    trace::reader<> reader{how.how};
    progress bar{S_ISREG(about.st_mode) ? static_cast<std::uint64_t>(about.st_size) : 0};
    std::vector<std::uint8_t> piece(1 << 20);
    std::uint64_t size = 0;
    while (std::feof(file) == 0 && std::ferror(file) == 0) {
        auto const count = std::fread(piece.data(), 1, piece.size(), file);
        if (count == 0) { continue; }
        if (size == 0) { way.begin(name); }
        size += count;
        (void)reader.feed({piece.data(), count});
        (void)way.read(reader);
        bar.at(size);
    }
    if (std::ferror(file) != 0) { return complain(name, std::strerror(errno)); }
    if (size == 0) { return complain(name, "is empty"); }
    reader.finish();
    (void)way.read(reader);
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
