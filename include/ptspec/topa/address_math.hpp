// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/reg/rtit_output.hpp>

/// The address arithmetic of both output schemes, on integers.
///
/// These functions neither branch nor compare. They work on 64-bit numbers and on symbolic values,
/// which a proof uses. Sums do not overflow for values that the rules allow.
namespace ptspec::address_math {

/// A type with the arithmetic, bitwise and shift operators of a 64-bit number.
template <class Word>
concept word_like = requires(Word a, Word b) {
    Word{uint64_t{1}};
    { a + b } -> convertible_to<Word>;
    { a - b } -> convertible_to<Word>;
    { (a & b) } -> convertible_to<Word>;
    { a | b } -> convertible_to<Word>;
    { a << b } -> convertible_to<Word>;
    { a >> b } -> convertible_to<Word>;
    { ~a } -> convertible_to<Word>;
};

/// The maximum number of entries of a ToPA table: 2^25 entries of 8 bytes, which is 256 MB.
///
/// Source: OUT-046.
inline constexpr uint64_t max_entries =
    uint64_t{1} << reg::ia32_rtit_output_mask_ptrs::MaskOrTableOffset::width;

// ------------------------------------------------------------------- IA32_RTIT_OUTPUT_MASK_PTRS

/// The index of the current entry, from MaskOrTableOffset.
///
/// Source: OUT-050.
template <word_like Word>
[[nodiscard]] constexpr auto index_in(Word pointers) noexcept -> Word {
    using field = reg::ia32_rtit_output_mask_ptrs::MaskOrTableOffset;
    return (pointers >> Word{uint64_t{field::lsb}}) & Word{max_entries - 1};
}

/// The offset of the next byte in the region, from OutputOffset.
template <word_like Word>
[[nodiscard]] constexpr auto offset_in(Word pointers) noexcept -> Word {
    return pointers >> Word{uint64_t{reg::ia32_rtit_output_mask_ptrs::OutputOffset::lsb}};
}

/// The mask of a single range: its size in bytes minus one. The low seven bits are ones.
///
/// Source: OUT-020, OUT-024.
template <word_like Word>
[[nodiscard]] constexpr auto mask_in(Word pointers) noexcept -> Word {
    using word = reg::ia32_rtit_output_mask_ptrs;
    return (pointers & Word{low_bits(word::OutputOffset::lsb)}) | Word{word::forced_1_mask()};
}

/// The value of IA32_RTIT_OUTPUT_MASK_PTRS for an index and an offset. Bits that do not fit are
/// dropped.
///
/// Source: OUT-050.
template <word_like Word>
[[nodiscard]] constexpr auto pointers_of(Word index, Word offset) noexcept -> Word {
    using word = reg::ia32_rtit_output_mask_ptrs;
    return (offset << Word{uint64_t{word::OutputOffset::lsb}}) |
           ((index & Word{max_entries - 1}) << Word{uint64_t{word::MaskOrTableOffset::lsb}}) |
           Word{word::forced_1_mask()};
}

// ------------------------------------------------------------------- single range

/// The bits of a mask above its lowest 0 bit: 0 when the mask is contiguous from bit 0.
///
/// Source: OUT-022.
template <word_like Word>
[[nodiscard]] constexpr auto non_contiguous_bits(Word mask) noexcept -> Word {
    return mask & (mask + Word{uint64_t{1}});
}

/// The address at which the next byte is stored.
///
/// Source: OUT-021.
template <word_like Word>
[[nodiscard]] constexpr auto store_address(Word base, Word mask, Word offset) noexcept -> Word {
    return (base & ~mask) + (offset & mask);
}

/// The offset after `bytes` more bytes, wrapped at the end of the region.
///
/// Source: OUT-021.
template <word_like Word>
[[nodiscard]] constexpr auto offset_after(Word offset, Word bytes, Word mask) noexcept -> Word {
    return (offset + bytes) & mask;
}

// ------------------------------------------------------------------- ToPA

/// The size of a region in bytes, from an entry's Size.
///
/// Source: OUT-041.
template <word_like Word>
[[nodiscard]] constexpr auto region_bytes(Word size) noexcept -> Word {
    return Word{uint64_t{4096}} << (size & Word{uint64_t{15}});
}

/// The remainder of an address modulo `bytes`, a power of two: 0 when the address is aligned.
///
/// Source: OUT-023, OUT-042, OUT-062.
template <word_like Word>
[[nodiscard]] constexpr auto misalignment(Word address, Word bytes) noexcept -> Word {
    return address & (bytes - Word{uint64_t{1}});
}

/// The address of an entry, the manual's table pointer.
///
/// Source: OUT-050.
template <word_like Word>
[[nodiscard]] constexpr auto table_pointer(Word table, Word index) noexcept -> Word {
    return table + (index << Word{uint64_t{3}});
}

/// The index after an entry. After the last possible index it wraps to 0.
///
/// Source: OUT-053, OUT-055.
template <word_like Word>
[[nodiscard]] constexpr auto next_index(Word index) noexcept -> Word {
    return (index + Word{uint64_t{1}}) & Word{max_entries - 1};
}

/// The index after `bytes` more bytes, which may fill the region but not exceed it.
///
/// Source: OUT-052, OUT-053, OUT-055.
template <word_like Word>
[[nodiscard]] constexpr auto index_after(Word index, Word offset, Word bytes, Word size) noexcept
    -> Word {
    Word const filled = (offset + bytes) >> (Word{uint64_t{12}} + (size & Word{uint64_t{15}}));
    return (index + filled) & Word{max_entries - 1};
}

}  // namespace ptspec::address_math
