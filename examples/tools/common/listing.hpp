// SPDX-License-Identifier: BSL-1.0
#pragma once

// A trace as text, one line for each packet: `0000002e tip len=3 ipc=1 payload=0x2042 ip=0x402042`.
// pt_dump writes this format, pt_asm reads it.

#include "listing_names.hpp"

#include <ptspec/trace/reader.hpp>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace listing {

inline auto error_name(packet::error why) -> std::string_view {
    switch (why) {
        case packet::error::truncated: return "trunc";
        case packet::error::bad_opcode: return "bad_opc";
        case packet::error::reserved:
        case packet::error::bad_packet: return "bad_packet";
        case packet::error::none: break;
    }
    return "none";
}
/// What a rule demands.
inline auto text_of(rule broken) -> std::string_view {
    auto const text = describe(broken);
    return {text.data(), text.size()};
}

/// Passes the fields of a packet as name and value to `out.number(name, value)`, `out.hex(name,
/// value)`, `out.nothing(name)` and `out.branches(name, value)`.
template <class Out>
class fields_of {
public:
    fields_of(Out& out, std::uint64_t ip) : out_{out}, ip_{ip} {}

    template <class Packet>
    void operator()(Packet const& p) const {
        std::apply([&](auto const&... each) { (write(p, each), ...); }, columns(p));
        if constexpr (has_payload<Packet>) { out_.hex("payload", p.payload()); }
    }
    void operator()(packet::tnt_short const& p) const { tnt(p.taken()); }
    void operator()(packet::tnt_long const& p) const { tnt(p.taken()); }
    void operator()(packet::tip const& p) const { ip(p); }
    void operator()(packet::tip_pge const& p) const { ip(p); }
    void operator()(packet::tip_pgd const& p) const { ip(p); }
    void operator()(packet::fup const& p) const { ip(p); }
    void operator()(packet::cyc const& p) const { out_.hex("value", p.value()); }
    void operator()(packet::ptw const& p) const {
        auto const bytes = p.get<packet::ptw::PayloadBytes>();
        out_.number("plc", bytes);
        out_.number("size", bytes == 0 ? 4 : 8);
        out_.hex("payload", p.payload());
        out_.number("ip", p.get<packet::ptw::IP>());
    }
    void operator()(packet::pwrx const& p) const {
        auto const reason = p.get<packet::pwrx::reason>();
        out_.number("last", p.get<packet::pwrx::last>());
        out_.number("deepest", p.get<packet::pwrx::deepest>());
        out_.number("interrupt", reason & 1);
        out_.number("store", reason >> 2 & 1);
        out_.number("autonomous", reason >> 3 & 1);
    }
    void operator()(packet::bbp const& p) const {
        out_.number("sz", underlying(p.opens()));
        out_.number("type", p.get<packet::bbp::type>());
    }
    void operator()(packet::trig const& p) const {
        out_.hex("trbv", p.get<packet::trig::TRBV>());
        out_.number("ip", p.get<packet::trig::IP>());
        out_.number("icntv", p.get<packet::trig::ICNTV>());
        out_.number("mult", p.get<packet::trig::MULT>());
        if (p.get<packet::trig::ICNTV>()) {
            out_.hex("icnt", p.ICNT());
        } else {
            out_.nothing("icnt");
        }
    }

private:
    template <class Packet, class Column>
    void write(Packet const& p, Column const& column) const {
        auto const value = static_cast<std::uint64_t>(p.template get<typename Column::field>());
        if (column.base == 10) {
            out_.number(column.name, value);
        } else {
            out_.hex(column.name, value);
        }
    }
    void tnt(packet::branches which) const {
        out_.number("n", which.count);
        out_.branches("bits", which);
    }
    template <class Packet>
    void ip(Packet const& p) const {
        out_.number("ipc", underlying(p.template get<typename Packet::IPBytes>()));
        if (p.has_ip()) {
            out_.hex("payload", p.payload());
            out_.hex("ip", ip_);
        } else {
            out_.nothing("payload");
            out_.nothing("ip");
        }
    }

    Out& out_;
    std::uint64_t ip_;
};

/// Appends `name=value` pairs to a string.
class text_fields {
public:
    explicit text_fields(std::string& out) : out_{out} {}

    template <class Number>
    void number(std::string_view name, Number value, int base = 10) {
        char text[26] = "0x";
        auto const digits = text + (base == 16 ? 2 : 0);
        auto const end =
            std::to_chars(digits, text + sizeof text, static_cast<std::uint64_t>(value), base).ptr;
        begin(name);
        out_.append(text, end);
    }
    void hex(std::string_view name, std::uint64_t value) { number(name, value, 16); }
    void nothing(std::string_view name) {
        begin(name);
        out_ += '-';
    }
    void string(std::string_view name, std::string_view value) {
        begin(name);
        out_ += value;
    }
    void branches(std::string_view name, packet::branches which) {
        char letters[64];
        for (unsigned i = 0; i < which.count; ++i) { letters[i] = which.taken(i) ? 'T' : 'N'; }
        begin(name);
        out_.append(letters, which.count);
    }

private:
    /// Names have up to 30 letters. One append is faster than three.
    void begin(std::string_view name) {
        char text[32] = " ";
        std::size_t const size = name.copy(text + 1, sizeof text - 2) + 1;
        text[size] = '=';
        out_.append(text, size + 1);
    }

    std::string& out_;
};

/// Appends an offset: lower-case hexadecimal, at least eight digits.
inline void append_offset(std::string& out, std::uint64_t offset) {
    char digits[8 + 16] = {'0', '0', '0', '0', '0', '0', '0', '0'};
    auto const end = std::to_chars(digits + 8, digits + sizeof digits, offset, 16).ptr;
    auto const begin = end - digits < 16 ? end - 8 : digits + 8;
    out.append(begin, end);
}

inline void append_number(std::string& out, std::string_view text, std::int64_t value) {
    out += text;
    out += std::to_string(value);
}

/// The counters that the last line of a listing prints.
struct totals {
    std::uint64_t packets = 0;
    std::uint64_t errors = 0;
    std::uint64_t resyncs = 0;
    bool synced = false;  ///< at least one PSB was found

    void count(trace::item const& item) {
        packets += item.what == trace::item_type::packet || item.what == trace::item_type::unknown;
        errors += item.what == trace::item_type::damage;
        resyncs += item.what == trace::item_type::resynced;
        synced = synced || item.what == trace::item_type::packet ||
                 item.what == trace::item_type::damage;
    }
    void add(totals const& next) {
        packets += next.packets;
        errors += next.errors;
        resyncs += next.resyncs;
        synced = synced || next.synced;
    }
};

/// Appends the line of one item, without its end. `sofar` counts all items up to and including this
/// one.
inline void append_item(std::string& out, trace::item const& item, totals const& sofar) {
    using trace::item_type;
    append_offset(out, item.what == item_type::lost && !sofar.synced ? 0 : item.offset);
    switch (item.what) {
        case item_type::packet: {
            out += ' ';
            out += name(item.packet.kind());
            append_number(out, " len=", item.length);
            text_fields fields{out};
            packet::visit(fields_of{fields, item.ip}, item.packet);
            break;
        }
        case item_type::unknown: append_number(out, " unknown len=", item.length); break;
        case item_type::synced: append_number(out, " !sync skipped=", item.skipped); break;
        case item_type::damage:
            out += " !error code=";
            out += error_name(item.error);
            if (item.error == packet::error::truncated) {
                append_number(out, " left=", item.skipped);
            }
            break;
        case item_type::resynced: append_number(out, " !resync skipped=", item.skipped); break;
        case item_type::lost:
            out += " !nosync";
            if (sofar.synced) { append_number(out, " skipped=", item.skipped); }
            break;
        case item_type::end:
        case item_type::need_input:
            append_number(out, " !end packets=", static_cast<std::int64_t>(sofar.packets));
            append_number(out, " errors=", static_cast<std::int64_t>(sofar.errors));
            append_number(out, " resyncs=", static_cast<std::int64_t>(sofar.resyncs));
            break;
    }
}
/// Appends the line of one item.
inline void append_line(std::string& out, trace::item const& item, totals const& sofar) {
    append_item(out, item, sofar);
    out += '\n';
}

}  // namespace listing
