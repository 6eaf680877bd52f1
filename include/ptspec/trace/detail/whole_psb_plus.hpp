// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/ip_update.hpp>
#include <ptspec/trace/psb_plus.hpp>

namespace ptspec::trace::detail {

/// A PSB+ that was read in one pass.
struct whole_psb_plus {
    size_t size = 0;      ///< in bytes; 0: it was not read
    uint64_t end_at = 0;  ///< the offset of its PSBEND
    psb_plus status{};
};

/// Reads the PSB+ at `bytes`, at `offset` of the trace. Does not read one that does not end in the
/// first `room` bytes, that has another packet than PAD and status packets, two of one kind, or a
/// TMA before the TSC.
/// `last` is the PSB+ before it, whose values stay. From each of the first `room` bytes on, 16
/// bytes are readable.
template <class Packets>
constexpr auto read_whole_psb_plus(uint8_t const* bytes, size_t room, uint64_t offset, bool strict,
                                   psb_plus const& last) noexcept -> whole_psb_plus {
    whole_psb_plus found{.status = last};
    found.status.begin(offset);
    for (size_t place = packet::psb::max_bytes; place < room;) {
        uint8_t const* const at = bytes + place;
        if (*at == pad_opcode) {
            place += 1;
            continue;
        }
        size_t const row = row_at<Packets>(at, strict);
        unsigned const length = opcode_infos<Packets>.length[row];
        auto const id = opcode_infos<Packets>.kind[row];
        if (length == 0) { break; }
        if (id == packet::kind::psbend) {
            found.end_at = offset + place;
            found.size = place + length;
            break;
        }
        bool const needs_tsc = id == packet::kind::tma && !found.status.has(packet::kind::tsc);
        if (found.status.has(id) || needs_tsc) { break; }
        wide_bits const mask = first_bytes_mask(length);
        uint64_t const ip = updated_ip(ip_update_of(opcode_infos<Packets>.form[row]),
                                       load_le64(at + 1), 0);
        found.status.add({id, {load_le64(at) & mask.low, load_le64(at + 8) & mask.high}, length},
                         {offset + place, ip, length});
        if (!found.status.has(id)) { break; }  // no status packet, or a FUP without an IP
        place += length;
    }
    return found;
}

}  // namespace ptspec::trace::detail
