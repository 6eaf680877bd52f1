// SPDX-License-Identifier: BSL-1.0
#pragma once

// The fields of a packet by their names in packet_vectors.csv, including derived fields.

#include <ptspec/packet/any_packet.hpp>

#include <spec_tables.hpp>

namespace ptspec::test {

struct named_value {
    text name;
    uint64_t value = 0;
    bool is_suppressed = false;  ///< an IP that is suppressed
};

struct field_list {
    static constexpr unsigned most = 8;
    named_value fields[most];
    unsigned count = 0;

    constexpr auto with(text name, uint64_t value, bool is_suppressed = false) const noexcept
        -> field_list {
        auto longer = *this;
        longer.fields[longer.count++] = {name, value, is_suppressed};
        return longer;
    }
    /// The field with this name, or null.
    [[nodiscard]] constexpr auto find(text name) const noexcept -> named_value const* {
        for (unsigned i = 0; i < count; ++i) {
            if (fields[i].name == name) { return &fields[i]; }
        }
        return nullptr;
    }
};

namespace detail {

/// The name in packets.csv of a layout row.
template <class Packet>
constexpr auto name_of_row(text cpp_name) noexcept -> text {
    auto const& row = packet_rows[underlying(Packet::about.id)];
    for (auto const& field : row.fields) {
        if (field.cpp_name == cpp_name) { return field.name; }
    }
    return "?";
}
template <class Row, class Packet>
constexpr void add_row(field_list& out, Packet const& one) noexcept {
    if constexpr (Row::kind == row_kind::field) {
        out = out.with(name_of_row<Packet>(name_of<Row>()),
                       static_cast<uint64_t>(one.template get<Row>()));
    }
}
template <class Packet, class... Rows>
constexpr auto of_rows(Packet const& one, type_list<Rows...>) noexcept -> field_list {
    field_list out;
    (add_row<Rows>(out, one), ...);
    if constexpr (Packet::max_bytes != Packet::head_bytes) {
        unsigned const length = Packet::length_of(one.raw, packet::block::items_of_8);
        if (length > Packet::head_bytes) {
            out = out.with(name_of_row<Packet>("payload"), one.payload());
        }
    }
    return out;
}

}  // namespace detail

/// A visitor that returns the fields of a packet. IPs are decompressed with `last_ip`.
struct fields_of_packet {
    uint64_t last_ip = 0;

    /// Each layout row, and the payload, by its name in packets.csv.
    template <class Packet>
    constexpr auto operator()(Packet const& one) const noexcept -> field_list {
        return detail::of_rows(one, typename Packet::layout::rows{});
    }

    template <class Packet>
        requires one_of<Packet, packet::tnt_short, packet::tnt_long>
    constexpr auto operator()(Packet const& one) const noexcept -> field_list {
        return field_list{}.with("count", one.taken().count).with("bits", one.taken().bits);
    }
    template <class Packet>
        requires derived_from<Packet, packet::ip_packet<Packet>>
    constexpr auto operator()(Packet const& one) const noexcept -> field_list {
        return detail::of_rows(one, typename Packet::layout::rows{})
            .with("ip", one.has_ip() ? one.ip(last_ip) : 0, !one.has_ip());
    }
    constexpr auto operator()(packet::mode_exec const& one) const noexcept -> field_list {
        return detail::of_rows(one, packet::mode_exec::layout::rows{})
            .with("mode", one.code_bits());
    }
    constexpr auto operator()(packet::cyc const& one) const noexcept -> field_list {
        return field_list{}.with("value", one.value());
    }
    constexpr auto operator()(packet::ptw const& one) const noexcept -> field_list {
        using packet::ptw;
        return field_list{}
            .with("size", one.get<ptw::PayloadBytes>() == 0 ? 4 : 8)
            .with("payload", one.payload())
            .with("ip", one.get<ptw::IP>());
    }
    constexpr auto operator()(packet::bbp const& one) const noexcept -> field_list {
        return field_list{}
            .with("size", underlying(one.opens()))
            .with("type", one.get<packet::bbp::type>());
    }
};

/// The fields of any packet.
constexpr auto fields_of(packet::any_packet const& one, uint64_t last_ip) noexcept -> field_list {
    return visit(fields_of_packet{last_ip}, one);
}

/// Parses a number: decimal, or hexadecimal after 0x.
constexpr auto number_in(text digits) noexcept -> uint64_t {
    bool const is_hex = digits.size() > 2 && digits.data()[1] == 'x';
    uint64_t value = 0;
    for (size_t i = is_hex ? 2 : 0; i < digits.size(); ++i) {
        char const digit = digits.data()[i];
        value = value * (is_hex ? 16 : 10) +
                static_cast<uint64_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return value;
}

/// Parses branches: T and N, the oldest first.
constexpr auto branches_in(text letters) noexcept -> uint64_t {
    uint64_t bits = 0;
    for (char const letter : letters) { bits = bits * 2 + (letter == 'T' ? 1 : 0); }
    return bits;
}

/// True when a cell, `name=value` joined by `;`, lists exactly these fields.
constexpr auto are_the_fields(text cell, field_list const& list) noexcept -> bool {
    unsigned count = 0;
    size_t at = 0;
    auto const part_up_to = [&](char end) {
        size_t const first = at;
        while (at < cell.size() && cell.data()[at] != end) { ++at; }
        return text{cell.data() + first, at++ - first};
    };
    for (; at < cell.size(); ++count) {
        auto const name = part_up_to('=');
        auto const value = part_up_to(';');
        auto const* const field = list.find(name);
        if (field == nullptr || field->is_suppressed != (value == "suppressed")) { return false; }
        if (field->is_suppressed) { continue; }
        bool const same = name == "bits" ? value.size() == list.find("count")->value &&
                                               branches_in(value) == field->value
                                         : number_in(value) == field->value;
        if (!same) { return false; }
    }
    return count == list.count;
}

}  // namespace ptspec::test
