// SPDX-License-Identifier: BSL-1.0
#pragma once

// A few packets of each kind and of each possible length, from packet_vectors.csv.

#include <support/wire.hpp>

#include <spec_tables.hpp>

namespace ptspec::test {

/// The context in which the bytes encode this packet.
enum class context_of : uint8_t { any, outside, items_of_4, items_of_8 };

struct packet_sample {
    packet::kind id;
    hex_bytes bytes;
    context_of where = context_of::any;

    [[nodiscard]] constexpr auto stands_in(packet::block items) const noexcept -> bool {
        return where == context_of::any || items == a_context();
    }
    /// A context in which the packet is valid.
    [[nodiscard]] constexpr auto a_context() const noexcept -> packet::block {
        return where == context_of::items_of_4   ? packet::block::items_of_4
               : where == context_of::items_of_8 ? packet::block::items_of_8
                                                 : packet::block::none;
    }
};

inline constexpr packet::block all_contexts[] = {packet::block::none, packet::block::items_of_4,
                                                 packet::block::items_of_8};

/// The row of packets.csv for a packet.
constexpr auto row_of(packet::kind which) noexcept -> packet_row const& {
    return packet_rows[underlying(which)];
}

/// The packet of a vector. A TNT.short whose low bits are 100 exists only outside a block
/// (PKT-203).
constexpr auto sample_of(packet_vector const& vector) noexcept -> packet_sample {
    packet_sample out{static_cast<packet::kind>(vector.packet), {}};
    for (unsigned i = 0; i < vector.size; ++i) { out.bytes = out.bytes.and_then(vector.bytes[i]); }
    if (vector.name == "BIP") {
        out.where = vector.block == 4 ? context_of::items_of_4 : context_of::items_of_8;
    } else if (vector.name == "TNT.short" && vector.bytes[0] % 8 == 4) {
        out.where = context_of::outside;
    }
    return out;
}

/// A packet with all reserved bits set, and the same with all reserved bits clear.
struct dirty_sample {
    packet::kind id;
    hex_bytes dirty;
    hex_bytes clean;
    packet::block items;
};

constexpr auto dirty_of(packet_sample const& clean) noexcept -> dirty_sample {
    dirty_sample out{clean.id, clean.bytes, clean.bytes, clean.a_context()};
    auto const& row = row_of(clean.id);
    for (unsigned i = 0; i < row.field_count; ++i) {
        auto const& field = row.fields[i];
        for (unsigned bit = field.lsb; field.name == "rsvd" && bit <= field.msb; ++bit) {
            auto& byte = out.dirty.bytes[bit / 8];
            byte = static_cast<uint8_t>(byte | 1U << bit % 8);
        }
    }
    return out;
}

template <class Numbers>
struct samples_of;
template <size_t... Numbers>
struct samples_of<index_list<Numbers...>> {
    static constexpr packet_sample packets[] = {
        sample_of(packet_vectors[sample_vectors[Numbers]])...};
    static constexpr dirty_sample dirty[] = {dirty_of(packets[Numbers])...};
};

inline constexpr unsigned packet_sample_count = sample_vectors_count;
inline constexpr auto const& packet_samples =
    samples_of<make_index_list<packet_sample_count>>::packets;
/// For packets without reserved bits both are the same.
inline constexpr auto const& dirty_samples =
    samples_of<make_index_list<packet_sample_count>>::dirty;

}  // namespace ptspec::test
