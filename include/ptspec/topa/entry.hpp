// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/address.hpp>
#include <ptspec/rule.hpp>
#include <ptspec/word.hpp>

/// Entries of a Table of Physical Addresses (ToPA).
namespace ptspec::topa {

/// The size of an output region: 4096 bytes shifted left by the encoding.
///
/// Source: OUT-041, OUT-069.
enum class region_size : uint8_t {
    size_4K = 0,
    size_8K = 1,
    size_16K = 2,
    size_32K = 3,
    size_64K = 4,
    size_128K = 5,
    size_256K = 6,
    size_512K = 7,
    size_1M = 8,
    size_2M = 9,
    size_4M = 10,
    size_8M = 11,
    size_16M = 12,
    size_32M = 13,
    size_64M = 14,
    size_128M = 15,
};

/// A region's size in bytes.
[[nodiscard]] constexpr auto bytes_in(region_size size) noexcept -> uint64_t {
    return uint64_t{4096} << (underlying(size) & 15U);
}

/// A ToPA entry that names an output region. With END set it is an `end_entry`.
///
/// Shape:  8 bytes in memory, little-endian.
/// Units:  Base is a physical address, aligned to the region's size.
/// Errors: a reserved bit, a misaligned Base or one beyond MAXPHYADDR is an operational error when
///         the trace unit comes to the entry.
/// Source: SDM vol. 3, "ToPA Table Entry"; OUT-040..044.
struct entry : bit_word<entry, uint64_t> {
    struct END : flag<0> {};
    struct INT : flag<2> {};   ///< a performance-monitoring interrupt when the region is full
    struct STOP : flag<4> {};  ///< stop tracing when the region is full
    struct Size : enumerated<9, 6, region_size> {};
    struct Base : address_field<63, 12> {};

    // clang-format off
    struct layout : bit_layout<64,
        END, reserved<1>, INT, reserved<3>, STOP, reserved<5>, Size, reserved<11, 10>, Base> {};
    // clang-format on
};

/// A ToPA entry that links to the next table.
///
/// Shape:  8 bytes in memory, little-endian. END is 1.
/// Units:  NextTable is a physical address, a multiple of 4096. Size means nothing.
/// Errors: a reserved bit, INT, STOP or an address beyond MAXPHYADDR is an operational error.
/// Source: SDM vol. 3, "ToPA Table Entry"; OUT-043.
struct end_entry : bit_word<end_entry, uint64_t> {
    struct END : forced_1<flag<0>> {};
    struct Size : field<9, 6> {};
    struct NextTable : address_field<63, 12> {};

    // clang-format off
    struct layout : bit_layout<64,
        END, reserved<1>, reserved<2>, reserved<3>, reserved<4>, reserved<5>, Size,
        reserved<11, 10>, NextTable> {};
    // clang-format on
};

/// The entry that links to a table. Address bits 11:0 are cut off.
[[nodiscard]] constexpr auto link_to(uint64_t next_table) noexcept -> entry {
    return entry{
        end_entry{}.with(end_entry::END{true}, end_entry::NextTable{wrapped{next_table}}).raw};
}

/// The first rule, by number, that an entry breaks at its place in a table.
///
/// Errors: OUT-060 reserved bit; OUT-062 Base not aligned to the region's size; OUT-063 address
///         beyond MAXPHYADDR; OUT-065 END with INT or STOP; OUT-066 END in entry 0.
/// Source: OUT-060..066.
[[nodiscard]] constexpr auto broken_rule(entry which, size_t index, max_phys_addr width) noexcept
    -> rule {
    bool const end = which.get<entry::END>();
    uint64_t const base = which.get<entry::Base>();
    return which.reserved_bits_set() != 0                                  ? rule::OUT_060
           : !end && !is_aligned(base, bytes_in(which.get<entry::Size>())) ? rule::OUT_062
           : !width.reaches(base)                                          ? rule::OUT_063
           : end && (which.get<entry::INT>() || which.get<entry::STOP>())  ? rule::OUT_065
           : end && index == 0                                             ? rule::OUT_066
                                                                           : rule::none;
}

}  // namespace ptspec::topa
