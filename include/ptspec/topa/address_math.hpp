// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/reg/rtit_output.hpp>

/// The address math of both output schemes, on numbers.
///
/// None of these functions branches or compares, so that each works on a 64-bit number as well as
/// on what stands for all of them in a proof. Sums do not overflow for what the rules allow.
namespace ptspec::address_math {

/// What adds, masks and shifts as a 64-bit number does.
template <class Word>
concept word_like = requires(Word a, Word b) {
    Word{uint64_t{1}};
    { a + b } -> convertible_to<Word>;
    { a - b } -> convertible_to<Word>;
    { a& b } -> convertible_to<Word>;
    { a | b } -> convertible_to<Word>;
    { a << b } -> convertible_to<Word>;
    { a >> b } -> convertible_to<Word>;
    { ~a } -> convertible_to<Word>;
};

/// How many entries of 8 bytes a ToPA table can have: 2^25, which is 256 MB.
///
/// Source: OUT-046.
inline constexpr uint64_t most_entries =
    uint64_t{1} << reg::ia32_rtit_output_mask_ptrs::MaskOrTableOffset::width;

// ------------------------------------------------------------------- IA32_RTIT_OUTPUT_MASK_PTRS

/// MaskOrTableOffset: the index of the current entry.
///
/// Source: OUT-050.
template <word_like Word>
[[nodiscard]] constexpr auto index_in(Word pointers) noexcept -> Word {
    using field = reg::ia32_rtit_output_mask_ptrs::MaskOrTableOffset;
    return (pointers >> Word{uint64_t{field::lsb}}) & Word{most_entries - 1};
}

/// OutputOffset: where in the region the next byte goes.
template <word_like Word>
[[nodiscard]] constexpr auto offset_in(Word pointers) noexcept -> Word {
    return pointers >> Word{uint64_t{reg::ia32_rtit_output_mask_ptrs::OutputOffset::lsb}};
}

/// The mask of a single range: its size in bytes less one. The seven lowest bits are ones.
///
/// Source: OUT-020, OUT-024.
template <word_like Word>
[[nodiscard]] constexpr auto mask_in(Word pointers) noexcept -> Word {
    using word = reg::ia32_rtit_output_mask_ptrs;
    return (pointers & Word{low_bits(word::OutputOffset::lsb)}) | Word{word::forced_1_mask()};
}

/// The register that holds an index and an offset. What does not fit is cut off.
///
/// Source: OUT-050.
template <word_like Word>
[[nodiscard]] constexpr auto pointers_of(Word index, Word offset) noexcept -> Word {
    using word = reg::ia32_rtit_output_mask_ptrs;
    return (offset << Word{uint64_t{word::OutputOffset::lsb}}) |
           ((index & Word{most_entries - 1}) << Word{uint64_t{word::MaskOrTableOffset::lsb}}) |
           Word{word::forced_1_mask()};
}

// ------------------------------------------------------------------- single range

/// The bits of a mask above which one is missing: 0 when the mask is contiguous from bit 0.
///
/// Source: OUT-022.
template <word_like Word>
[[nodiscard]] constexpr auto bits_above_a_gap(Word mask) noexcept -> Word {
    return mask & (mask + Word{uint64_t{1}});
}

/// The address at which the next byte is stored.
///
/// Source: OUT-021.
template <word_like Word>
[[nodiscard]] constexpr auto store_address(Word base, Word mask, Word offset) noexcept -> Word {
    return (base & ~mask) + (offset & mask);
}

/// The offset after `bytes` more bytes: it wraps at the region's end.
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

/// The bits by which an address misses a multiple of `bytes`, a power of two: 0 when it is one.
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

/// The index behind an entry; behind the last possible one, 0.
///
/// Source: OUT-053, OUT-055.
template <word_like Word>
[[nodiscard]] constexpr auto next_index(Word index) noexcept -> Word {
    return (index + Word{uint64_t{1}}) & Word{most_entries - 1};
}

/// The index after `bytes` more bytes of a region, which may fill it but no more.
///
/// Source: OUT-052, OUT-053, OUT-055.
template <word_like Word>
[[nodiscard]] constexpr auto index_after(Word index, Word offset, Word bytes, Word size) noexcept
    -> Word {
    Word const filled = (offset + bytes) >> (Word{uint64_t{12}} + (size & Word{uint64_t{15}}));
    return (index + filled) & Word{most_entries - 1};
}

}  // namespace ptspec::address_math
