// SPDX-License-Identifier: BSL-1.0

// pt_asm: assembles a listing into the bytes of a trace, the inverse of pt_dump. See `pt_asm
// --help`.

#include "../common/tool.hpp"
#include "../common/listing.hpp"

#include <ptspec/ptspec.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ptspec;

constexpr std::string_view usage = R"(usage: pt_asm [--sparse] [-o OUTPUT] [LISTING]

Reads a listing in the format of pt_dump, and writes the bytes of the trace. Without LISTING, or
when it is -, standard input is read. At a terminal, pt_asm without LISTING prints this text. Each
line is a packet:

  [OFFSET] NAME [FIELD=VALUE...]

OFFSET is hexadecimal, with 8 digits or more. VALUE is decimal, or hexadecimal after 0x. OFFSET,
`len`, and fields that are 0 may be omitted. Where an offset is greater than the number of bytes
written so far, PADs fill the gap: they replace PADs that were not listed, and bytes before the
first PSB that pt_dump skipped. A larger `len` makes a CYC longer than necessary. An IP packet
takes `ipc` and `payload`, or only `ip`; then the shortest encoding of this IP is written. A comment
begins with # and ends with the line. A line has at most 4096 characters.

  -o OUTPUT    write to this file, which must not be LISTING; the default is -, standard output
  --sparse     also fill gaps of more than 64 MB; in a regular file they become holes
  -h, --help   print this text

Example:
  $ echo 'tip ip=0x401000' | pt_asm | pt_dump --no-sync -
  00000000 tip len=5 ipc=2 payload=0x401000 ip=0x401000
  00000005 !end packets=1 errors=0 resyncs=0

Exit status: 0 success; 1 a line that cannot be encoded, such as one that reports damage (the output
ends before this line); 2 wrong usage, or a file that cannot be read or written.

Packets and their fields:
)";

/// Why a line is rejected.
struct refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The `name=value` fields of one line.
class fields {
public:
    explicit fields(std::string_view text) {
        while (true) {
            auto const begin = text.find_first_not_of(" \t\r");
            if (begin == std::string_view::npos || text[begin] == '#') { break; }
            text.remove_prefix(begin);
            auto const word = text.substr(0, text.find_first_of(" \t\r"));
            text.remove_prefix(word.size());
            auto const equals = word.find('=');
            if (equals == std::string_view::npos) {
                throw refusal{"expected FIELD=VALUE, not " + std::string{word}};
            }
            auto const name = word.substr(0, equals);
            for (auto const& field : all_) {
                if (field.name == name) { throw refusal{std::string{name} + " is given twice"}; }
            }
            all_.push_back({name, word.substr(equals + 1), false});
        }
    }

    /// The value of a field as text; empty when the field is absent or `-`.
    auto text(std::string_view name) -> std::string_view {
        for (auto& field : all_) {
            if (field.name == name) {
                field.used = true;
                return field.value == "-" ? std::string_view{} : field.value;
            }
        }
        return {};
    }

    /// The value of a field as a number: decimal, or hexadecimal after 0x.
    auto number(std::string_view name) -> std::optional<std::uint64_t> {
        auto digits = text(name);
        if (digits.empty()) { return std::nullopt; }
        int const base = digits.starts_with("0x") ? 16 : 10;
        digits.remove_prefix(base == 16 ? 2 : 0);
        std::uint64_t value = 0;
        auto const end = digits.data() + digits.size();
        auto const [stop, error] = std::from_chars(digits.data(), end, value, base);
        if (error != std::errc{} || stop != end) {
            throw refusal{std::string{name} +
                          " is no number of up to 64 bits, decimal, or hexadecimal after 0x"};
        }
        return value;
    }

    /// The value of a packet field; 0 when it is absent.
    template <class Field>
    auto as(std::string_view name) -> Field {
        auto const value = number(name).value_or(0);
        auto const field = checked<Field>(value);
        if (!field) { throw refusal{std::string{name} + " does not fit its field (PKT-340)"}; }
        return field.field;
    }

    /// Rejects a line with a field that the packet does not have.
    void all_used() const {
        for (auto const& field : all_) {
            if (!field.used) {
                throw refusal{"no such field of this packet: " + std::string{field.name}};
            }
        }
    }

private:
    struct one {
        std::string_view name;
        std::string_view value;
        bool used;
    };
    std::vector<one> all_{};
};

/// Encodes packets from the fields of their lines.
class assembler {
public:
    /// With `sparse` a gap may be longer than `max_pads`.
    assembler(tool::output& to, bool sparse) : file_{to}, sparse_{sparse} {}

    /// Assembles one line.
    void line(std::string_view text) {
        text = text.substr(0, text.find('#'));
        auto word = next_word(text);
        if (word.empty()) { return; }
        if (is_offset(word)) {
            pad_up_to(offset(word));
            word = next_word(text);
        }
        if (word.starts_with('!')) {
            item_type(word);
            return;
        }
        auto const kind = kind_of(word);
        fields given{text};
        auto const length = given.number("len");
        auto const packet = this->packet(kind, given, length);
        given.all_used();
        packet_ = byte_buffer{room_};
        if (auto const broken = to_.put(packet); broken != rule::none) {
            throw refusal{std::string{describe(broken).data(), describe(broken).size()}};
        }
        if (length && *length != packet_.size()) {
            throw refusal{"len is " + std::to_string(*length) + ", but the packet has " +
                          std::to_string(packet_.size()) + " bytes"};
        }
        write(packet_.written());
    }

private:
    static constexpr std::uint64_t max_pads = std::uint64_t{64} << 20;

    static auto next_word(std::string_view& text) -> std::string_view {
        auto const begin = std::min(text.find_first_not_of(" \t\r"), text.size());
        text.remove_prefix(begin);
        auto const word = text.substr(0, text.find_first_of(" \t\r"));
        text.remove_prefix(word.size());
        return word;
    }
    static auto is_offset(std::string_view word) -> bool {
        return word.size() >= 8 &&
               word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    }
    static auto offset(std::string_view digits) -> std::uint64_t {
        std::uint64_t value = 0;
        auto const end = digits.data() + digits.size();
        if (std::from_chars(digits.data(), end, value, 16).ptr != end) {
            throw refusal{"the offset has more than 64 bits"};
        }
        return value;
    }

    void write(byte_view bytes) {
        file_.write({reinterpret_cast<char const*>(bytes.data()), bytes.size()});
        written_ += bytes.size();
    }
    void pad_up_to(std::uint64_t offset) {
        static constexpr std::uint8_t pads[4096] = {};
        if (offset < written_) { throw refusal{"the packets before this offset reach over it"}; }
        auto const gap = offset - written_;
        if (gap > max_pads && !sparse_) {
            throw refusal{"the offset is " + std::to_string(gap) +
                          " bytes ahead, and more than 64 MB need --sparse"};
        }
        if (sparse_ && gap > sizeof pads && file_.skip(gap)) { written_ = offset; }
        while (written_ != offset) {
            write(byte_view{pads}.first(
                static_cast<std::size_t>(std::min<std::uint64_t>(offset - written_, sizeof pads))));
        }
    }

    static void item_type(std::string_view word) {
        if (word == "!sync" || word == "!end") { return; }
        throw refusal{"a listing does not contain the bytes of " + std::string{word}};
    }

    static auto kind_of(std::string_view name) -> packet::kind {
        if (name.empty()) { throw refusal{"a packet is missing after the offset"}; }
        for (unsigned i = 0; i < packet::kind_count; ++i) {
            auto const kind = static_cast<packet::kind>(i);
            if (listing::name(kind) == name) { return kind; }
        }
        throw refusal{"no such packet: " + std::string{name} + "; --help lists them"};
    }
    auto packet(packet::kind kind, fields& given, std::optional<std::uint64_t> length)
        -> packet::any_packet {
        return packet::for_kind(
            kind, [&]<class Packet>() { return make(Packet{}, given, length); }, packet::all{});
    }

    /// A packet from its columns in the listing and its payload. The length of a BIP depends on the
    /// block that it belongs to.
    template <class Packet>
    auto make(Packet plain, fields& given, std::optional<std::uint64_t>) const
        -> packet::any_packet {
        Packet made = std::apply(
            [&](auto const&... each) {
                return plain.with(given.as<typename bare_t<decltype(each)>::field>(each.name)...);
            },
            listing::columns(plain));
        if constexpr (listing::has_payload<Packet>) {
            made = made.with_payload(given.number("payload").value_or(0));
        }
        return {made, Packet::length_of(made.raw, to_.state().items)};
    }

    template <class Packet>
        requires(derived_from<Packet, packet::ip_packet<Packet>>)
    auto make(Packet, fields& given, std::optional<std::uint64_t>) const -> packet::any_packet {
        auto const form = given.number("ipc");
        auto const payload = given.number("payload");
        auto const ip = given.number("ip");
        if (!form) { return ip ? Packet::compressed(*ip, to_.state().last_ip) : Packet{}; }
        if (*form > 7) { throw refusal{"ipc does not fit its field (PKT-340)"}; }
        auto const how = static_cast<packet::ip_bytes>(*form);
        if (!payload && ip) { return Packet::of(how, *ip); }
        return Packet{}.with(typename Packet::IPBytes{how}).with_payload(payload.value_or(0));
    }

    template <class Packet>
        requires(one_of<Packet, packet::tnt_short, packet::tnt_long>)
    auto make(Packet, fields& given, std::optional<std::uint64_t>) const -> packet::any_packet {
        packet::branches which;
        auto const text = given.text("bits");
        if (text.size() > Packet::max_branches || text.empty()) {
            throw refusal{"bits takes 1 to " + std::to_string(Packet::max_branches) +
                          " letters T and N"};
        }
        for (char const letter : text) {
            if (letter != 'T' && letter != 'N') {
                throw refusal{"bits takes the letters T and N only"};
            }
            which.bits = which.bits << 1 | (letter == 'T' ? 1U : 0U);
            which.count += 1;
        }
        if (given.number("n").value_or(which.count) != which.count) {
            throw refusal{"n is not the number of bits"};
        }
        return Packet::of(which);
    }

    auto make(packet::cyc, fields& given, std::optional<std::uint64_t> length) const
        -> packet::any_packet {
        return packet::cyc::of(
            given.number("value").value_or(0),
            static_cast<unsigned>(std::min<std::uint64_t>(length.value_or(1), 16)));
    }
    auto make(packet::ptw plain, fields& given, std::optional<std::uint64_t>) const
        -> packet::any_packet {
        using p = packet::ptw;
        auto const size = given.number("size");
        auto const code = given.number("plc").value_or(size.value_or(8) == 4 ? 0 : 1);
        if (size && *size != (code == 0 ? 4U : 8U)) { throw refusal{"size does not go with plc"}; }
        if (code > 1) { throw refusal{"PayloadBytes must not be 2 or 3 (PKT-173)"}; }
        return plain.with(p::PayloadBytes{wrapped{code}}, given.as<p::IP>("ip"))
            .with_payload(given.number("payload").value_or(0));
    }
    auto make(packet::pwrx plain, fields& given, std::optional<std::uint64_t>) const
        -> packet::any_packet {
        using p = packet::pwrx;
        std::uint64_t reason = 0;
        for (auto const& [name, bit] :
             {std::pair{"interrupt", 0}, {"store", 2}, {"autonomous", 3}}) {
            reason |= std::uint64_t{given.as<flag<0>>(name).value} << bit;
        }
        return plain.with(given.as<p::last>("last"), given.as<p::deepest>("deepest"),
                          p::reason{wrapped{reason}});
    }
    auto make(packet::bbp plain, fields& given, std::optional<std::uint64_t>) const
        -> packet::any_packet {
        using p = packet::bbp;
        auto const size = given.number("sz").value_or(8);
        if (size != 4 && size != 8) { throw refusal{"sz is 4 or 8"}; }
        return plain.with(p::SZ{size == 4}, given.as<p::type>("type"));
    }
    auto make(packet::trig plain, fields& given, std::optional<std::uint64_t>) const
        -> packet::any_packet {
        using p = packet::trig;
        auto const count = given.number("icnt");
        auto const valid = given.as<p::ICNTV>("icntv");
        if (count && !valid.value) { throw refusal{"icnt without icntv=1"}; }
        if (count.value_or(0) > 0xFFFF) { throw refusal{"icnt does not fit its field (PKT-340)"}; }
        return plain
            .with(given.as<p::TRBV>("trbv"), given.as<p::IP>("ip"), valid,
                  given.as<p::MULT>("mult"))
            .with_payload(count.value_or(0));
    }

    tool::output& file_;
    bool sparse_;
    std::uint64_t written_ = 0;
    std::uint8_t room_[64] = {};
    byte_buffer packet_{room_};  ///< holds the packet of one line
    trace::writer<byte_buffer> to_{packet_};
};

/// The lines of a listing. Only the current line is in memory.
class lines {
public:
    static constexpr std::size_t longest = 4096;

    explicit lines(tool::input& from) : from_{from} {}

    /// Reads the next line; returns false at the end.
    auto next(std::string& line) -> bool {
        line.clear();
        ++number_;
        int letter = from_.get();
        bool const is_there = letter != EOF;
        for (; letter != EOF && letter != '\n'; letter = from_.get()) {
            if (line.size() == longest) {
                throw refusal{"longer than " + std::to_string(longest) + " characters"};
            }
            line += static_cast<char>(letter);
        }
        return is_there;
    }
    [[nodiscard]] auto number() const -> std::uint64_t { return number_; }

private:
    tool::input& from_;
    std::uint64_t number_ = 0;
};

/// Collects the field names of a packet.
struct field_names {
    std::string& to;

    template <class Number>
    void number(std::string_view name, Number) const {
        nothing(name);
    }
    void hex(std::string_view name, std::uint64_t) const { nothing(name); }
    void branches(std::string_view name, packet::branches) const { nothing(name); }
    void nothing(std::string_view name) const { to.append(" ").append(name); }
};

void print_help() {
    std::string text{usage};
    for (unsigned i = 0; i < packet::kind_count; ++i) {
        auto const kind = static_cast<packet::kind>(i);
        text.append("  ").append(listing::name(kind)).append(":");
        field_names names{text};
        packet::for_kind(
            kind, [&]<class Packet>() { listing::fields_of{names, 0}(Packet{}); }, packet::all{});
        text += text.back() == ':' ? " no fields\n" : "\n";
    }
    tool::print(text);
}

auto run(tool::command_line& line) -> int {
    std::optional<std::string> input;
    std::string output = "-";
    bool sparse = false;
    while (line.next()) {
        if (line.is_help()) {
            print_help();
            return 0;
        }
        if (line.is("-o")) {
            output = line.value();
        } else if (line.is("--sparse")) {
            sparse = true;
        } else if (!line.is_operand()) {
            line.refuse();
        } else if (input) {
            throw tool::failure{"takes one listing, not also " + line.argument()};
        } else {
            input = line.argument();
        }
    }

    if (!input && tool::is_terminal()) {
        print_help();
        return 0;
    }
    tool::input from{input.value_or("-")};
    if (output != "-" && from.is(output)) {
        throw tool::failure{output + ": is both the listing and the output"};
    }
    tool::output to{output};
    assembler assembler{to, sparse};
    lines lines{from};
    std::string text;
    try {
        while (lines.next(text)) { assembler.line(text); }
    } catch (refusal const& why) {
        to.close();
        tool::print_error(from.name() + ':' + std::to_string(lines.number()) + ": " + why.what());
        return 1;
    }
    to.close();
    return 0;
}

}  // namespace

auto main(int count, char** arguments) -> int { return tool::run("pt_asm", count, arguments, run); }
