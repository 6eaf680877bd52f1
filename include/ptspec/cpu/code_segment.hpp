// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bits.hpp>
#include <ptspec/cpu/ip_payload.hpp>

/// Converts between the IPs of packets, linear addresses and offsets in CS.
namespace ptspec::cpu {

/// The code segment of traced code. A trace does not contain `base`. `base` is 0 in 64-bit code and
/// under all current operating systems. In real mode it is the selector times 16.
struct code_segment {
    uint64_t base = 0;
    bool is_64_bit = true;  ///< the code size that MODE.Exec reports is 64; `base` is not used

    /// The linear address of an offset in CS, from which the processor fetches code.
    ///
    /// Source: SDM vol. 3, "Linear IP vs. RIP"; GEN-091, REG-079.
    [[nodiscard]] constexpr auto linear_of(uint64_t offset) const noexcept -> uint64_t {
        return is_64_bit ? offset : (base + offset) & low_bits(32);
    }
    /// The offset in CS of a linear address: RIP, EIP or IP.
    ///
    /// Source: as `linear_of`.
    [[nodiscard]] constexpr auto offset_of(uint64_t linear) const noexcept -> uint64_t {
        return is_64_bit ? linear : (linear - base) & low_bits(32);
    }
};

/// Converts the IP of a packet to a linear address. `capabilities::ip_payload` returns the `form`.
///
/// Source: SDM vol. 3, "Linear IP vs. RIP"; GEN-091, REG-079.
[[nodiscard]] constexpr auto linear_of_packet_ip(ip_payload form, code_segment const& cs,
                                                 uint64_t ip) noexcept -> uint64_t {
    return form == ip_payload::linear ? ip : cs.linear_of(ip);
}
/// Converts the IP of a packet to an offset in CS.
///
/// Source: as `linear_of_packet_ip`.
[[nodiscard]] constexpr auto offset_of_packet_ip(ip_payload form, code_segment const& cs,
                                                 uint64_t ip) noexcept -> uint64_t {
    return form == ip_payload::linear ? cs.offset_of(ip) : ip;
}
/// Converts an offset in CS to the IP in packets and in the MSRs of address ranges.
///
/// Source: as `linear_of_packet_ip`.
[[nodiscard]] constexpr auto packet_ip_of_offset(ip_payload form, code_segment const& cs,
                                                 uint64_t offset) noexcept -> uint64_t {
    return form == ip_payload::linear ? cs.linear_of(offset) : offset;
}

}  // namespace ptspec::cpu
