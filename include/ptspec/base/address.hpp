// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bits.hpp>

/// Addresses and indexes of MSRs as types; alignment, canonical form, physical width.
namespace ptspec {

/// True when `address` is a multiple of `size`, a power of two.
[[nodiscard]] constexpr auto is_aligned(uint64_t address, uint64_t size) noexcept -> bool {
    return (address & (size - 1)) == 0;
}

/// Rounds `address` down to a multiple of `size`, a power of two.
[[nodiscard]] constexpr auto align_down(uint64_t address, uint64_t size) noexcept -> uint64_t {
    return address & ~(size - 1);
}

/// Sign-extends bit `width` - 1 into bits 63:`width`. `width` is 1 to 64.
[[nodiscard]] constexpr auto sign_extended(uint64_t value, unsigned width) noexcept -> uint64_t {
    unsigned const above = 64 - width;
    return static_cast<uint64_t>(static_cast<int64_t>(value << above) >> above);
}

/// True when an address is canonical for linear addresses of `width` bits: 48, or 57 with LA57.
[[nodiscard]] constexpr auto is_canonical(uint64_t address, unsigned width) noexcept -> bool {
    return sign_extended(address, width) == address;
}

/// The address of an instruction as an offset in CS: RIP, EIP or IP.
struct cs_offset {
    uint64_t value = 0;

    constexpr cs_offset() noexcept = default;
    constexpr cs_offset(uint64_t offset) noexcept : value{offset} {}
    friend constexpr auto operator==(cs_offset, cs_offset) -> bool = default;
};
/// The address of an instruction as packets and address ranges have it: linear, or a `cs_offset`.
///
/// Source: CPUID.14H.0:ECX[31]; GEN-091.
struct packet_ip {
    uint64_t value = 0;

    constexpr packet_ip() noexcept = default;
    constexpr packet_ip(uint64_t ip) noexcept : value{ip} {}
    friend constexpr auto operator==(packet_ip, packet_ip) -> bool = default;
};

/// A physical address, of the machine or of a guest.
struct phys_addr {
    uint64_t value;

    /// Trivial, because with a value of 0, g++ 12 loses elements of arrays in constant expressions.
    /// `phys_addr x{}` is 0.
    phys_addr() = default;
    constexpr phys_addr(uint64_t address) noexcept : value{address} {}

    /// The address `bytes` after.
    friend constexpr auto operator+(phys_addr from, uint64_t bytes) noexcept -> phys_addr {
        return from.value + bytes;
    }
    constexpr auto operator+=(uint64_t bytes) noexcept -> phys_addr& {
        value += bytes;
        return *this;
    }
    /// The number of bytes from `from` to `to`, modulo 2^64.
    friend constexpr auto operator-(phys_addr to, phys_addr from) noexcept -> uint64_t {
        return to.value - from.value;
    }
    friend constexpr auto operator==(phys_addr one, phys_addr two) noexcept -> bool {
        return one.value == two.value;
    }
    friend constexpr auto operator<(phys_addr one, phys_addr two) noexcept -> bool {
        return one.value < two.value;
    }
    friend constexpr auto operator<=(phys_addr one, phys_addr two) noexcept -> bool {
        return one.value <= two.value;
    }
    friend constexpr auto operator>(phys_addr one, phys_addr two) noexcept -> bool {
        return one.value > two.value;
    }
    friend constexpr auto operator>=(phys_addr one, phys_addr two) noexcept -> bool {
        return one.value >= two.value;
    }
};
[[nodiscard]] constexpr auto is_aligned(phys_addr address, uint64_t size) noexcept -> bool {
    return is_aligned(address.value, size);
}
[[nodiscard]] constexpr auto align_down(phys_addr address, uint64_t size) noexcept -> phys_addr {
    return align_down(address.value, size);
}

/// The index of an MSR, as RDMSR and WRMSR take it in ECX.
struct msr_index {
    uint32_t value;

    msr_index() = default;
    constexpr msr_index(uint32_t index) noexcept : value{index} {}
    /// An integer of 64 bits is the value of an MSR.
    template <integral Wide>
        requires(sizeof(Wide) > sizeof(uint32_t))
    msr_index(Wide) = delete;

    friend constexpr auto operator==(msr_index, msr_index) -> bool = default;
};

/// MAXPHYADDR, the width of physical addresses in bits: CPUID.80000008H:EAX[7:0], or 36 if the leaf
/// is absent. At most 52.
struct max_phys_addr {
    unsigned bits = 52;

    /// True when an address has no bit at or above MAXPHYADDR.
    [[nodiscard]] constexpr auto contains(phys_addr address) const noexcept -> bool {
        return (address.value & ~low_bits(bits)) == 0;
    }
    friend constexpr auto operator==(max_phys_addr, max_phys_addr) -> bool = default;
};

}  // namespace ptspec
