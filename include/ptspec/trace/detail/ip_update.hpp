// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/opcode_info.hpp>

/// The last IP after a packet with an IP.
namespace ptspec::trace::detail {

/// How a packet with this IP form changes the last IP.
struct ip_update {
    uint64_t kept;   ///< the bits of the last IP that stay
    uint64_t taken;  ///< the bits of the payload that replace the others
    uint64_t sign;   ///< the sign bit to extend, or 0
};
struct ip_update_table {
    uint64_t kept[9];  // one array for each member: an index needs no multiplication
    uint64_t taken[9];
    uint64_t sign[9];
};
inline constexpr ip_update_table ip_updates = [] {
    constexpr uint64_t sign = uint64_t{1} << 47;
    ip_update_table all{};  // the last row, for PSB, is 0
    for (uint8_t i = 0; i < clears_ip; ++i) {
        auto const form = static_cast<packet::ip_bytes>(i);
        all.kept[i] = packet::rebuilt_ip(form, 0, ~uint64_t{0});
        all.sign[i] = packet::rebuilt_ip(form, sign, 0) > sign ? sign : 0;
        all.taken[i] = all.sign[i] != 0 ? low_bits(48) : ~all.kept[i];
    }
    return all;
}();
constexpr auto ip_update_of(unsigned form) noexcept -> ip_update {
    return {ip_updates.kept[form], ip_updates.taken[form], ip_updates.sign[form]};
}

/// The last IP after a packet. `payload` is the eight bytes after its first.
constexpr auto updated_ip(ip_update update, uint64_t payload, uint64_t last_ip) noexcept
    -> uint64_t {
    return (last_ip & update.kept) | (((payload & update.taken) ^ update.sign) - update.sign);
}

}  // namespace ptspec::trace::detail
