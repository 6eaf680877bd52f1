// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/address.hpp>
#include <ptspec/base/rule.hpp>
#include <ptspec/topa/address_math.hpp>
#include <ptspec/base/word.hpp>

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
    return address_math::region_bytes(uint64_t{underlying(size)});
}

/// A ToPA entry that names an output region. With END set it is an `end_entry`.
///
/// Shape:  8 bytes in memory, little-endian.
/// Units:  Base is a physical address, aligned to the region's size.
/// Errors: a reserved bit, a misaligned Base or one beyond MAXPHYADDR is an operational error when
///         the trace unit reaches the entry.
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
/// Units:  NextTable is a physical address, a multiple of 4096. Size is ignored.
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

/// An END entry that links to a table. Address bits 11:0 are dropped.
[[nodiscard]] constexpr auto link_to(phys_addr next_table) noexcept -> entry {
    return entry{end_entry{}
                     .with(end_entry::END{true}, end_entry::NextTable{wrapped{next_table.value}})
                     .raw};
}

// ------------------------------------------------------------------------------------ rules

/// Calls `found` with every rule that the address of an entry breaks, in the order of their
/// numbers. `base` is the requested address, with the bits 11:0 that an entry does not hold.
///
/// Errors: OUT-061 a next table not at a multiple of 4 KB; OUT-062 a region not aligned to its
///         size; OUT-063 an address beyond MAXPHYADDR.
/// Source: OUT-042, OUT-061..063.
template <class Found>
constexpr void find_broken_rules_of_base(entry word, phys_addr base, max_phys_addr width,
                                         Found&& found) noexcept {
    bool const end = word.get<entry::END>();
    if (end && !is_aligned(base, 4096)) { found(rule::OUT_061); }
    if (!end && !is_aligned(base, bytes_in(word.get<entry::Size>()))) { found(rule::OUT_062); }
    if (!width.contains(base)) { found(rule::OUT_063); }
}

/// Calls `found` with every rule that an entry breaks at any position, in the order of their
/// numbers.
///
/// Errors: OUT-060 reserved bit; OUT-062, OUT-063 as above; OUT-065 END with INT or STOP.
/// Source: OUT-043, OUT-060..065.
template <callable<rule> Found>
constexpr void find_broken_rules(entry word, max_phys_addr width, Found&& found) noexcept {
    if (word.reserved_bits_set() != 0) { found(rule::OUT_060); }
    find_broken_rules_of_base(word, word.get<entry::Base>(), width, found);
    if (word.get<entry::END>() && (word.get<entry::INT>() || word.get<entry::STOP>())) {
        found(rule::OUT_065);
    }
}

/// The capabilities of a processor that limit its ToPA tables.
struct limits {
    max_phys_addr width{};
    bool many_entries = true;  ///< CPUID.14H.0:ECX.MENTRY: a table may hold more than one region

    /// The limits of a processor.
    ///
    /// Source: REG-070, REG-163.
    template <class Capabilities>
    [[nodiscard]] static constexpr auto of(Capabilities const& caps) noexcept -> limits {
        return {caps.max_phys_addr(), caps.has_topa_of_many_entries()};
    }

    friend constexpr auto operator==(limits, limits) -> bool = default;
};

/// A position in a chain of tables, as the two output MSRs hold it: of an entry (offset 0), or of a
/// byte in the region of this entry.
///
/// Units:  `index` counts entries of 8 bytes; `offset` counts bytes from the start of the entry's
///         region.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-046, OUT-050, OUT-053.
struct position {
    phys_addr table{};
    uint32_t index = 0;
    uint32_t offset = 0;

    friend constexpr auto operator==(position const&, position const&) -> bool = default;
};

/// Calls `found` with every rule that an entry breaks at its position in a table, in the order of
/// their numbers. The offset of the position does not matter.
///
/// Errors: those of an entry at any position; OUT-066 END in entry 0. Without MENTRY also OUT-067
///         an output region that is not entry 0; OUT-068 END to another table.
/// Source: OUT-060..068, OUT-072, OUT-100.
template <callable<rule> Found>
constexpr void find_broken_rules(entry word, position at, limits limits, Found&& found) noexcept {
    bool const end = word.get<entry::END>();
    find_broken_rules(word, limits.width, found);
    if (end && at.index == 0) { found(rule::OUT_066); }
    if (limits.many_entries) { return; }
    if (!end && at.index != 0) { found(rule::OUT_067); }
    if (end && word.get<entry::Base>() != at.table) { found(rule::OUT_068); }
}

/// The first rule, by number, that an entry breaks at its position in a table.
///
/// Source: OUT-060..068.
[[nodiscard]] constexpr auto broken_rule(entry word, position at, limits limits) noexcept -> rule {
    first_rule first;
    find_broken_rules(word, at, limits, first);
    return first.broken;
}

}  // namespace ptspec::topa
