// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

/// The rows of a declaration as data tables. All printers read these tables, so printing another
/// word adds a table but no code.
namespace ptspec::print {

/// The amount of a field without an `amount` function.
[[nodiscard]] constexpr auto no_amount(uint64_t) noexcept -> quantity { return {}; }

/// One row of a layout, or the payload of a packet, with all its properties.
struct row_facts {
    row_info row;
    uint64_t value;  ///< the value of a fixed row
    /// bit n is 1 if the payload may have n bytes; 0 if the row is no payload
    uint32_t payload_sizes;
    bool ends_at_max_phys_addr;  ///< an address: the bits at and above MAXPHYADDR are reserved
    /// the names of the encodings; empty for an encoding without a name
    text const* enumerators;
    size_t enumerator_count;
    /// The decoded value of an encoding. Without a unit if the field has no `amount` function.
    auto (*amount_of)(uint64_t encoding) noexcept -> quantity = no_amount;

    /// The name of an encoding, or empty. Only encodings below 256 have names.
    [[nodiscard]] constexpr auto enumerator(uint64_t encoding) const noexcept -> text {
        return encoding < enumerator_count ? enumerators[encoding] : text{};
    }
};

/// The rows of a word or a packet from bit 0 up, then the payload. Borrows data with static
/// lifetime.
struct row_list {
    text name;
    row_facts const* first;
    size_t count;
    unsigned bits;  ///< including the longest payload
    bool is_packet;

    [[nodiscard]] constexpr auto begin() const noexcept -> row_facts const* { return first; }
    [[nodiscard]] constexpr auto end() const noexcept -> row_facts const* { return first + count; }
    [[nodiscard]] constexpr auto last() const noexcept -> row_facts const& {
        return first[count - 1];
    }
    /// Finds a field by name. Returns null if there is none.
    [[nodiscard]] constexpr auto field(text wanted) const noexcept -> row_facts const* {
        for (auto const& one : *this) {
            if (one.row.kind == row_kind::field && one.row.name == wanted) { return &one; }
        }
        return nullptr;
    }
};

namespace detail {

using namespace ptspec::detail;

template <class Type>
concept is_packet = requires { Type::about.name; };

template <class Type>
concept has_payload = is_packet<Type> && Type::payload_type::largest != 0;

template <class Enum, class Encodings>
struct enumerators;
template <class Enum, size_t... Encoding>
struct enumerators<Enum, index_list<Encoding...>> {
    static constexpr text names[] = {name_of_enumerator<static_cast<Enum>(Encoding)>()...};
};

template <class Row>
constexpr auto make_facts(row_info const& row) noexcept -> row_facts {
    row_facts facts{};
    facts.row = row;
    facts.ends_at_max_phys_addr = Row::ends_at_max_phys_addr;
    if constexpr (Row::kind == row_kind::fixed) {
        facts.value = Row::fixed_value;
    } else if constexpr (Row::kind == row_kind::field) {
        if constexpr (enumeration<typename Row::value_type>) {
            constexpr size_t count = Row::width < 8 ? size_t{1} << Row::width : 256;
            using known = enumerators<typename Row::value_type, make_index_list<count>>;
            facts.enumerators = known::names;
            facts.enumerator_count = count;
        }
        constexpr bool has_amount = requires { Row::amount(uint64_t{}); };
        static_assert(
            has_amount || !requires { &Row::amount; },
            "the amount of a field is `static constexpr auto amount(uint64_t) -> "
            "ptspec::quantity`");
        if constexpr (has_amount) { facts.amount_of = Row::amount; }
    }
    return facts;
}

/// The possible payload sizes: those of the selecting field, those of a block, or all up to the
/// largest.
template <class Packet>
constexpr auto payload_sizes() noexcept -> uint32_t {
    using payload = typename Packet::payload_type;
    if constexpr (requires { payload::size(uint64_t{}); }) {
        constexpr uint64_t last_selector = low_bits(packet::payload_selector<Packet>::width);
        uint32_t sizes = 0;
        for (uint64_t selector = 0; selector <= last_selector; ++selector) {
            unsigned const size = payload::size(selector);
            if (size != packet::undefined_size) { sizes |= uint32_t{1} << size; }
        }
        return sizes;
    } else if constexpr (same_as<payload, packet::payload_of_block>) {
        return uint32_t{1} << underlying(packet::block::items_of_4) |
               uint32_t{1} << underlying(packet::block::items_of_8);
    } else {
        return static_cast<uint32_t>(low_bits(payload::largest + 1));
    }
}

template <size_t Count>
struct row_array {
    row_facts rows[Count];
};

template <class Type, class... Rows>
constexpr auto make_rows(type_list<Rows...>) noexcept {
    constexpr auto infos = rows_of<Type>();
    row_array<sizeof...(Rows) + (has_payload<Type> ? 1 : 0)> list{};
    size_t i = 0;
    ((list.rows[i] = make_facts<Rows>(infos[i]), ++i), ...);
    if constexpr (has_payload<Type>) {
        list.rows[i].row = {"payload",
                            8 * Type::max_bytes - 1,
                            8 * Type::head_bytes,
                            row_kind::field,
                            row_access::plain,
                            false,
                            0};
        list.rows[i].payload_sizes = payload_sizes<Type>();
    }
    return list;
}

template <class Type>
inline constexpr auto rows_in = make_rows<Type>(typename Type::layout::rows{});

}  // namespace detail

/// All properties of the rows of a word or a packet.
template <class Type>
[[nodiscard]] constexpr auto row_list_of() noexcept -> row_list {
    constexpr auto const& rows = detail::rows_in<Type>.rows;
    constexpr size_t count = sizeof rows / sizeof rows[0];
    constexpr unsigned bits = rows[count - 1].row.msb + 1;
    if constexpr (detail::is_packet<Type>) {
        return {Type::about.name, rows, count, bits, true};
    } else {
        return {name_of<Type>(), rows, count, bits, false};
    }
}

/// The access of a row in at most two words.
[[nodiscard]] constexpr auto access_name(row_access access) noexcept -> text {
    switch (access) {
        case row_access::plain: break;
        case row_access::write_ignored: return "write ignored";
        case row_access::forced_1: return "reads 1";
        case row_access::read_only: return "read only";
    }
    return "read/write";
}

}  // namespace ptspec::print
