// SPDX-License-Identifier: BSL-1.0
// Proves the address math of both output schemes for all 64-bit numbers. Instantiates the templates
// of topa/address_math.hpp with symbolic numbers and compares them with the catalogue's formulas,
// written as bit selections. Z3 is the solver (Debian: libz3-dev).
//
//   address_math               prints each claim, and whether it is proved
//   address_math --self-test   the same for false claims: each must be refuted
//
// Exit status: 0 all claims as expected, 1 at least one is not, 2 wrong usage.

#include <ptspec/topa/address_math.hpp>

#include <proofs/prover.hpp>

#include <cstdio>
#include <string_view>
#include <vector>

namespace {

using namespace ptspec::address_math;
using namespace proofs;
using z3::concat;
using z3::implies;

static_assert(word_like<symbol>);

// The symbols in the claims. A claim states the limits of a symbol; without limits it is any 64-bit
// number.
symbol const pointers{"pointers"};  // IA32_RTIT_OUTPUT_MASK_PTRS
symbol const base{"base"};          // of a region or a range
symbol const table{"table"};        // base of a ToPA table
symbol const mask{"mask"};          // of a single range
symbol const offset{"offset"};
symbol const bytes{"bytes"};
symbol const more{"more"};
symbol const index{"index"};
symbol const size{"size"};  // the Size field of an entry
symbol const last_index = 0x1FF'FFFF_w;
symbol const below_4G = 0xFFFF'FFFF_w;
symbol const beyond_52_bits = 0x10'0000'0000'0000_w;
z3::expr const always = context().bool_val(true);

/// True if `value` is 2^k - 1 for a k from `first` to `last`.
auto is_all_ones(symbol const& value, unsigned first, unsigned last) -> z3::expr {
    z3::expr found = context().bool_val(false);
    for (unsigned k = first; k <= last; ++k) {
        found = found || value == symbol{k == 64 ? ~uint64_t{0} : (uint64_t{1} << k) - 1};
    }
    return found;
}

/// True if `holds(k)` is true for all k from `first` to `last`.
template <class Holds>
auto for_all(unsigned first, unsigned last, Holds holds) -> z3::expr {
    z3::expr all = always;
    for (unsigned k = first; k <= last; ++k) { all = all && holds(k); }
    return all;
}

auto zeros(unsigned count) -> z3::expr { return constant(0, count); }

// The conditions for legal values, from the catalogue.
z3::expr const legal_mask = is_all_ones(mask, 7, 32);
z3::expr const aligned_range = legal_mask && (base & mask) == 0_w && base < beyond_52_bits;
z3::expr const legal_range = aligned_range && offset <= mask;
symbol const region = region_bytes(size);
z3::expr const legal_size = size <= 15_w;
z3::expr const in_region = legal_size && offset < region;
z3::expr const legal_step = in_region && bytes <= region - offset && index <= last_index;

// The results of the functions under test.
symbol const address = store_address(base, mask, offset);
symbol const next_offset = offset_after(offset, bytes, mask);
symbol const topa_offset = offset_after(offset, bytes, region - 1_w);
symbol const topa_index = index_after(index, offset, bytes, size);
z3::expr const fills = offset + bytes == region;

auto size_is(unsigned k) -> z3::expr { return size == symbol{uint64_t{k}}; }
auto power_of_two(unsigned k) -> symbol { return symbol{uint64_t{1} << k}; }

// The catalogue's formulas for each size, expanded.
z3::expr const every_range_has_its_size = for_all(7, 32, [](unsigned k) {
    auto const field = constant((uint64_t{1} << (k - 7)) - 1, 25);
    return implies(pointers.bits(31, 7) == field, mask_in(pointers) + 1_w == power_of_two(k));
});
z3::expr const a_range_misses_by_its_low_bits = for_all(7, 32, [](unsigned k) {
    return misalignment(base, power_of_two(k)).number == concat(zeros(64 - k), base.bits(k - 1, 0));
});
z3::expr const every_region_has_its_size = for_all(
    0, 15, [](unsigned k) { return implies(size_is(k), region == power_of_two(12 + k)); });
z3::expr const base_bits_below_its_size_are_0 = for_all(
    1, 15, [](unsigned k) { return implies(size_is(k), base.bits(11 + k, 12) == zeros(k)); });
z3::expr const base_bits_up_to_its_size_are_0 = for_all(
    0, 15, [](unsigned k) { return implies(size_is(k), base.bits(12 + k, 12) == zeros(k + 1)); });
z3::expr const legal_region = in_region && base.bits(11, 0) == zeros(12) &&
                              base_bits_below_its_size_are_0 && base < beyond_52_bits;

auto claims() -> std::vector<claim> {
    return {
        // --- IA32_RTIT_OUTPUT_MASK_PTRS
        {"the index is MP[31:7] (OUT-050)", always,
         index_in(pointers).number == concat(zeros(39), pointers.bits(31, 7))},
        {"the offset is MP[63:32] (OUT-050)", always,
         offset_in(pointers).number == concat(zeros(32), pointers.bits(63, 32))},
        {"the mask is MP[31:0] with seven ones below (OUT-020, OUT-024)", always,
         mask_in(pointers).number ==
             concat(zeros(32), concat(pointers.bits(31, 7), constant(0x7F, 7)))},
        {"MP[31:7] = 2^(k-7) - 1 makes a range of 2^k bytes, k from 7 to 32 (OUT-020)", always,
         every_range_has_its_size},
        {"an index is truncated to MP[31:7] and an offset to MP[63:32] (OUT-050)", always,
         pointers_of(index, offset).number ==
             concat(offset.bits(31, 0), concat(index.bits(24, 0), constant(0x7F, 7)))},
        {"MASK_PTRS to a position and back is unchanged, except for seven ones (OUT-050)", always,
         pointers_of(index_in(pointers), offset_in(pointers)) == (pointers | 0x7F_w)},
        {"a position to MASK_PTRS and back is unchanged (OUT-050)",
         index <= last_index && offset <= below_4G,
         index_in(pointers_of(index, offset)) == index &&
             offset_in(pointers_of(index, offset)) == offset},

        // --- single range
        {"a mask has no bit above a gap if and only if it is 2^k - 1, k from 0 to 64 (OUT-022)",
         always, (non_contiguous_bits(mask) == 0_w) == is_all_ones(mask, 0, 64)},
        {"MASK_PTRS without a gap is a range of 2^k bytes, k from 7 to 32 (OUT-020, OUT-022)",
         non_contiguous_bits(mask_in(pointers)) == 0_w, is_all_ones(mask_in(pointers), 7, 32)},
        {"the misalignment of a base to 2^k is its bits k-1:0, k from 7 to 32 (OUT-023)", always,
         a_range_misses_by_its_low_bits},
        {"base AND mask is the misalignment of base to mask + 1 (OUT-023)", legal_mask,
         (base & mask) == misalignment(base, mask + 1_w)},
        {"the address has the offset's bits where the mask has ones, else the base's (OUT-021)",
         always, ((address ^ offset) & mask) == 0_w && ((address ^ base) & ~mask) == 0_w},
        {"in a legal range the address is base + offset (OUT-027)", legal_range,
         address == base + offset},
        {"the address is in the range and below 2^52, without overflow (OUT-021, OUT-153)",
         legal_range,
         base <= address && address <= base + mask && address < beyond_52_bits &&
             (address + mask).exact && non_contiguous_bits(mask).exact},
        {"after any number of bytes the offset is in the range (OUT-021)", legal_mask,
         next_offset <= mask},
        {"one byte advances the offset by one, and from the mask to 0 (OUT-021)",
         legal_mask && offset <= mask,
         offset_after(offset, 1_w, mask).number ==
             z3::ite(offset == mask, constant(0), (offset + 1_w).number)},
        {"zero bytes do not change the offset, nor does a complete lap (OUT-021)",
         legal_mask && offset <= mask,
         offset_after(offset, 0_w, mask) == offset &&
             offset_after(offset, mask + 1_w, mask) == offset},
        {"writing in two parts equals writing at once; by induction, n bytes are n times one",
         legal_mask,
         offset_after(next_offset, more, mask) == offset_after(offset, bytes + more, mask)},
        {"there is no overflow for less than 2^63 bytes (OUT-153)",
         legal_mask && offset <= mask && bytes <= ~0_w >> 1_w, next_offset.exact},

        // --- ToPA
        {"a table has at most 2^25 entries (OUT-046)", always, symbol{max_entries} == 0x200'0000_w},
        {"a region has 2^(12+Size) bytes, 4 KB to 128 MB (OUT-041)", legal_size,
         every_region_has_its_size && 0x1000_w <= region && region <= 0x800'0000_w && region.exact},
        {"a Size of more than four bits is truncated", always,
         region == region_bytes(size & 0xF_w) &&
             topa_index == index_after(index, offset, bytes, size & 0xF_w)},
        {"a 4 KB aligned region is aligned to its size if and only if base bits 11+Size:12 are 0 "
         "(OUT-042, OUT-062)",
         legal_size && base.bits(11, 0) == zeros(12),
         (misalignment(base, region) == 0_w) == base_bits_below_its_size_are_0},
        {"an aligned region contains base + offset, below 2^52, without overflow (OUT-153)",
         legal_region,
         base <= base + offset && base + offset <= base + (region - 1_w) &&
             base + offset < beyond_52_bits && (base + region).exact &&
             store_address(base, region - 1_w, offset) == base + offset},
        {"bytes that fill a region reset the offset to 0, others advance it (OUT-052, OUT-053)",
         legal_step, topa_offset.number == z3::ite(fills, constant(0), (offset + bytes).number)},
        {"the offset stays in the region, without overflow (OUT-153)", legal_step,
         topa_offset < region && topa_offset.exact && topa_index.exact},
        {"the index advances if and only if the region is full (OUT-052, OUT-053)", legal_step,
         topa_index.number == z3::ite(fills, next_index(index).number, index.number) &&
             (topa_index == index) == !fills},
        {"the next index is index + 1, and 0 after 1FFFFFFH (OUT-053, OUT-055)",
         index <= last_index,
         next_index(index).number ==
             z3::ite(index == last_index, constant(0), (index + 1_w).number)},
        {"writing in two parts equals writing at once, if the first part does not fill the region",
         legal_step && !fills && more <= region - topa_offset,
         index_after(topa_index, topa_offset, more, size) ==
                 index_after(index, offset, bytes + more, size) &&
             offset_after(topa_offset, more, region - 1_w) ==
                 offset_after(offset, bytes + more, region - 1_w)},
        {"the current entry is at base + (MP[31:7] << 3) (OUT-050)", always,
         table_pointer(table, index_in(pointers)).number ==
             table.number + concat(zeros(36), concat(pointers.bits(31, 7), zeros(3)))},
        {"the entry is in the table's 256 MB, at a multiple of 8, without overflow (OUT-046, "
         "OUT-153)",
         table.bits(11, 0) == zeros(12) && table < beyond_52_bits && index <= last_index,
         table_pointer(table, index) - table < 0x1000'0000_w &&
             table_pointer(table, index).bits(2, 0) == zeros(3) &&
             table_pointer(table, index).exact},
    };
}

/// False claims: true ones with a limit moved by one, or known misreadings of the manual.
auto false_claims() -> std::vector<claim> {
    return {
        {"the index is MP[31:8]", always,
         index_in(pointers).number == concat(zeros(40), pointers.bits(31, 8))},
        {"MASK_PTRS to a position and back is unchanged", always,
         pointers_of(index_in(pointers), offset_in(pointers)) == pointers},
        {"an index of 2^25 is unchanged", index <= last_index + 1_w,
         index_in(pointers_of(index, offset)) == index},
        {"an offset of 2^32 is unchanged", offset <= below_4G + 1_w,
         offset_in(pointers_of(index, offset)) == offset},
        {"a mask of 64 ones has a gap", always,
         (non_contiguous_bits(mask) == 0_w) == is_all_ones(mask, 0, 63)},
        {"a mask of 0 has a gap", always,
         (non_contiguous_bits(mask) == 0_w) == is_all_ones(mask, 1, 64)},
        {"in a misaligned range the address is base + offset", legal_mask && offset <= mask,
         address == base + offset},
        {"for an offset outside the range the address is base + offset", aligned_range,
         address == base + offset},
        {"no byte is stored at base + mask", legal_range, address < base + mask},
        {"no byte is stored at base", legal_range, base < address},
        {"the offset does not wrap", legal_mask && offset <= mask,
         offset_after(offset, 1_w, mask) == offset + 1_w},
        {"a lap is as long as the mask", legal_mask && offset <= mask,
         offset_after(offset, mask, mask) == offset},
        {"with a gap, n bytes are n times one", always,
         offset_after(next_offset, more, mask) == offset_after(offset, bytes + more, mask)},
        {"there is no overflow for any number of bytes", legal_mask && offset <= mask,
         next_offset.exact},
        {"a region has less than 128 MB", legal_size, region < 0x800'0000_w},
        {"an aligned region has bits 12+Size:12 of its base 0", legal_size,
         implies(misalignment(base, region) == 0_w, base_bits_up_to_its_size_are_0)},
        {"in a misaligned region base + offset equals the masked address", in_region,
         store_address(base, region - 1_w, offset) == base + offset},
        {"a region is full one byte before its end", legal_step,
         implies(offset + bytes == region - 1_w, topa_index == next_index(index))},
        {"a region is full only after one byte more than fits", legal_step, topa_index == index},
        {"one byte more than fits resets the offset to 0 or stays in the region",
         in_region && bytes <= region - offset + 1_w,
         topa_offset == 0_w || !(region <= offset + bytes)},
        {"the index after 1FFFFFFH is 2000000H", index <= last_index,
         next_index(index) == index + 1_w},
        {"the index after 1FFFFFEH is 0", index < last_index,
         implies(last_index <= index + 1_w, next_index(index) == 0_w)},
        {"the current entry is at base + (MP[31:7] << 7)", always,
         table_pointer(table, index_in(pointers)).number ==
             table.number + concat(zeros(32), concat(pointers.bits(31, 7), zeros(7)))},
        {"the last entry is below 256 MB - 8", index <= last_index,
         table_pointer(table, index) - table < 0xFFF'FFF8_w},
        {"a table in the last 256 MB of the 64-bit space does not overflow", index <= last_index,
         table_pointer(table, index).exact},
        {"a sum that wraps is exact", base <= offset, (base + offset).exact},
        {"a difference that wraps is exact", base <= offset, (base - offset).exact},
        {"a shift to the left by 64 is exact", size <= 64_w, (base << size).exact},
        {"a shift to the right by 64 is exact", size <= 64_w, (base >> size).exact},
        {"the result of operations on a sum that wraps is exact", always,
         (~((((base + offset) & mask) | mask) ^ mask) - 0_w << 1_w >> 1_w).exact},
    };
}

/// A symbol with a constant value computes the same as `uint64_t`.
auto claims_of_symbols() -> std::vector<claim> {
    std::vector<claim> all;
    for (uint64_t a : {uint64_t{0}, uint64_t{1}, uint64_t{0x8000'0000'1234'567F}, ~uint64_t{0}}) {
        for (uint64_t b : {uint64_t{0}, uint64_t{1}, uint64_t{32}, uint64_t{63}}) {
            symbol const x{a};
            symbol const y{b};
            all.push_back({std::to_string(a) + " and " + std::to_string(b) + " as symbols", always,
                           x + y == symbol{a + b} && x - y == symbol{a - b} &&
                               (x & y) == symbol{a & b} && (x | y) == symbol{a | b} &&
                               (x ^ y) == symbol{a ^ b} && x << y == symbol{a << b} &&
                               x >> y == symbol{a >> b} && ~x == symbol{~a} &&
                               (x < y) == context().bool_val(a < b) &&
                               (x <= y) == context().bool_val(a <= b) &&
                               (x + y).exact == context().bool_val(a + b >= a) &&
                               (x - y).exact == context().bool_val(a >= b)});
        }
    }
    return all;
}

auto check(std::vector<claim> const& all, verdict wanted) -> int {
    constexpr char const* words[] = {"proved", "refuted", "vacuous", "undecided"};
    unsigned wrong = 0;
    for (auto const& one : all) {
        auto const found = examine(one);
        bool const good = found.is == wanted;
        wrong += good ? 0U : 1U;
        std::printf("%s%s in %.0f ms: %s\n",
                    good ? "" : "WRONG: ", words[static_cast<size_t>(found.is)], found.milliseconds,
                    one.text.c_str());
        if (!found.example.empty()) { std::printf("   %s\n", found.example.c_str()); }
        std::fflush(stdout);
    }
    std::printf("%zu claims, %u wrong\n", all.size(), wrong);
    return wrong == 0 ? 0 : 1;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    if (count == 1) { return check(claims(), verdict::proved); }
    if (count != 2 || arguments[1] != std::string_view{"--self-test"}) {
        std::fputs("usage: address_math [--self-test]\n", stderr);
        return 2;
    }
    int const symbols = check(claims_of_symbols(), verdict::proved);
    int const refuted = check(false_claims(), verdict::refuted);
    int const empty = check({{"a claim about no number", base < 0_w, base == 1_w}},
                            verdict::vacuous);
    return symbols + refuted + empty == 0 ? 0 : 1;
}
