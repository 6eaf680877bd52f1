// SPDX-License-Identifier: BSL-1.0
/// Your own definitions

#include <ptspec/conformance.hpp>
#include <ptspec/packet/list.hpp>
#include <ptspec/reg/cpuid_14h.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/topa/entry.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;
using pointers = reg::ia32_rtit_output_mask_ptrs;

namespace conformance_flag_at_another_bit {
/// CYCEn is bit 1.
// expect: conforms<
// expect: the_definition_begins_at_another_bit
// expect: Bit = 2] | another_bit<2U>
// also clang
#ifndef SHOULD_FAIL
static_assert(conforms<ctl::CYCEn>(1U << 1));
#else
static_assert(conforms<ctl::CYCEn>(1U << 2));
#endif
}  // namespace conformance_flag_at_another_bit

namespace conformance_field_too_wide {
/// CycThresh has 4 bits.
// expect: the_definition_ends_at_another_bit
// expect: Bit = 23] | another_bit<23U>
#ifndef SHOULD_FAIL
static_assert(conforms<ctl::CycThresh>(0xFU << 19));
#else
static_assert(conforms<ctl::CycThresh>(0x1FU << 19));
#endif
}  // namespace conformance_field_too_wide

namespace conformance_negative_mask {
/// `1 << 31` is a negative int: in a 64-bit word it sets the bits 63:31.
// expect: the_definition_ends_at_another_bit
// expect: Bit = 63] | another_bit<63U>
#ifndef SHOULD_FAIL
static_assert(conforms<ctl::EventEn>(1U << 31));
#else
static_assert(conforms<ctl::EventEn>(1 << 31));
#endif
}  // namespace conformance_negative_mask

namespace conformance_mask_with_a_gap {
/// The mask lacks a bit between its first and its last.
// expect: the_definition_has_a_gap
// expect: Bit = 15] | a_gap<15U>
#ifndef SHOULD_FAIL
static_assert(conforms<ctl::MTCFreq>(0x3C000));
#else
static_assert(conforms<ctl::MTCFreq>(0x34000));
#endif
}  // namespace conformance_mask_with_a_gap

namespace conformance_mask_zero {
/// A mask without a bit.
// expect: the_definition_has_no_bit
#ifndef SHOULD_FAIL
static_assert(conforms<ctl::OS>(4));
#else
static_assert(conforms<ctl::OS>(0));
#endif
}  // namespace conformance_mask_zero

namespace conformance_shift {
/// PSBFreq begins at bit 24.
// expect: the_shift_is_not_the_lowest_bit_of_the_field
#ifndef SHOULD_FAIL
static_assert(conforms<ctl::PSBFreq>(0xFU << 24, 24));
#else
static_assert(conforms<ctl::PSBFreq>(0xFU << 24, 23));
#endif
}  // namespace conformance_shift

namespace conformance_unshifted {
/// An unshifted mask is as wide as the field.
// expect: the_definition_ends_at_another_bit
// expect: Bit = 4] | another_bit<4U>
#ifndef SHOULD_FAIL
static_assert(conforms<ctl::PSBFreq>(unshifted{0xF}, 24));
#else
static_assert(conforms<ctl::PSBFreq>(unshifted{0x1F}, 24));
#endif
}  // namespace conformance_unshifted

namespace conformance_bit_numbers {
/// MTCFreq is bits 17:14.
// expect: the_definition_begins_at_another_bit
// expect: Bit = 13] | another_bit<13U>
#ifndef SHOULD_FAIL
static_assert(conforms<ctl::MTCFreq>(at_bits{17, 14}));
#else
static_assert(conforms<ctl::MTCFreq>(at_bits{16, 13}));
#endif
}  // namespace conformance_bit_numbers

namespace conformance_bit_numbers_of_a_packet {
/// The position of a field of a packet: the pattern of a PSB after its first two bytes.
// expect: the_definition_ends_at_another_bit
// expect: Bit = 127] | another_bit<127U>
#ifndef SHOULD_FAIL
static_assert(conforms<packet::psb::Low>(at_bits{63, 16}));
#else
static_assert(conforms<packet::psb::Low>(at_bits{127, 16}));
#endif
}  // namespace conformance_bit_numbers_of_a_packet

namespace conformance_address_mask {
/// A mask of addresses that ends at bit 51: say that this is MAXPHYADDR, `max_phys_addr{52}`.
// expect: the_definition_ends_at_another_bit
// expect: Bit = 51] | another_bit<51U>
#ifndef SHOULD_FAIL
static_assert(conforms<topa::entry::Base>(0x000F'FFFF'FFFF'F000, max_phys_addr{52}));
#else
static_assert(conforms<topa::entry::Base>(0x000F'FFFF'FFFF'F000));
#endif
}  // namespace conformance_address_mask

namespace conformance_value {
/// The definition is the encoding of another range, filter.
// expect: the_definition_is_another_value_of_the_field
#ifndef SHOULD_FAIL
static_assert(conforms_value(ctl::ADDR0_CFG{reg::addr_cfg::trace_stop}, 2ULL << 32));
#else
static_assert(conforms_value(ctl::ADDR0_CFG{reg::addr_cfg::trace_stop}, 1ULL << 32));
#endif
}  // namespace conformance_value

namespace conformance_value_outside {
/// The value is shifted by one bit too few.
// expect: the_definition_has_a_bit_outside_the_field
// expect: Bit = 23] | the_field<23U>
#ifndef SHOULD_FAIL
static_assert(conforms_value(ctl::PSBFreq{3}, 3U << 24));
#else
static_assert(conforms_value(ctl::PSBFreq{3}, 3U << 23));
#endif
}  // namespace conformance_value_outside

namespace conformance_enumerator {
/// TraceStop is encoding 2.
// expect: the_enumerator_differs
#ifndef SHOULD_FAIL
static_assert(conforms_value(reg::addr_cfg::trace_stop, 2));
#else
static_assert(conforms_value(reg::addr_cfg::trace_stop, 3));
#endif
}  // namespace conformance_enumerator

namespace conformance_address {
/// IA32_RTIT_CTL is MSR 570H.
// expect: the_address_differs
// expect: conforms_address<
// also clang
#ifndef SHOULD_FAIL
static_assert(conforms_address<ctl>(0x570));
#else
static_assert(conforms_address<ctl>(0x571));
#endif
}  // namespace conformance_address

namespace conformance_leaf {
/// The word is in leaf 14H.
// expect: the_cpuid_leaf_differs
#ifndef SHOULD_FAIL
static_assert(conforms_leaf<reg::cpuid_14h_1_eax>(0x14));
#else
static_assert(conforms_leaf<reg::cpuid_14h_1_eax>(0x15));
#endif
}  // namespace conformance_leaf

namespace conformance_subleaf {
/// The word is in subleaf 1.
// expect: the_cpuid_subleaf_differs
#ifndef SHOULD_FAIL
static_assert(conforms_leaf<reg::cpuid_14h_1_eax>(0x14, 1));
#else
static_assert(conforms_leaf<reg::cpuid_14h_1_eax>(0x14, 0));
#endif
}  // namespace conformance_subleaf

namespace conformance_opcode {
/// The second byte of CBR's opcode is 03H.
// expect: the_opcode_differs
// expect: Bit = 8] | opcode_differs<8U>
#ifndef SHOULD_FAIL
static_assert(conforms_opcode<packet::cbr>(0x0302));
#else
static_assert(conforms_opcode<packet::cbr>(0x0202));
#endif
}  // namespace conformance_opcode

namespace conformance_opcode_byte {
/// The second byte of PSB's opcode is 82H.
// expect: the_opcode_differs
// expect: Bit = 8] | opcode_differs<8U>
#ifndef SHOULD_FAIL
static_assert(conforms_opcode<packet::psb>({0x02, 0x82}));
#else
static_assert(conforms_opcode<packet::psb>({0x02, 0x83}));
#endif
}  // namespace conformance_opcode_byte

namespace conformance_opcode_bytes_missing {
/// PSB's opcode has two bytes.
// expect: the_number_of_opcode_bytes_differs
#ifndef SHOULD_FAIL
static_assert(conforms_opcode<packet::psb>({0x02, 0x82}));
#else
static_assert(conforms_opcode<packet::psb>({0x02}));
#endif
}  // namespace conformance_opcode_bytes_missing

namespace conformance_opcode_mask {
/// Five bits of the first byte are TIP's opcode; the others are IPBytes.
// expect: the_opcode_mask_differs
// expect: Bit = 5] | mask_differs<5U>
#ifndef SHOULD_FAIL
static_assert(conforms_opcode<packet::tip>(0x0D, 0x1F));
#else
static_assert(conforms_opcode<packet::tip>(0x0D, 0x3F));
#endif
}  // namespace conformance_opcode_mask

namespace conformance_length {
/// A TIP with all of its payload has 9 bytes.
// expect: the_length_differs
#ifndef SHOULD_FAIL
static_assert(conforms_length<packet::tip>(1, 9));
#else
static_assert(conforms_length<packet::tip>(1, 7));
#endif
}  // namespace conformance_length

namespace conformance_length_varies {
/// One length says nothing about a packet whose length varies.
// expect: the length of this packet varies: give its minimum and its maximum
#ifndef SHOULD_FAIL
static_assert(conforms_length<packet::mtc>(2));
#else
static_assert(conforms_length<packet::tip>(1));
#endif
}  // namespace conformance_length_varies

namespace conformance_all_forgotten {
/// OutputOffset has no definition.
// expect: a field has no definition: name it, or put it into left_out
// expect: definitions_of<ptspec::reg::ia32_rtit_output_mask_ptrs::OutputOffset, 0>
#ifndef SHOULD_FAIL
static_assert(conforms_all<pointers>(field_is<pointers::LowerMask>(0x7F),
                                     field_is<pointers::MaskOrTableOffset>(at_bits{31, 7}),
                                     left_out<pointers::OutputOffset>()));
#else
static_assert(conforms_all<pointers>(field_is<pointers::LowerMask>(0x7F),
                                     field_is<pointers::MaskOrTableOffset>(at_bits{31, 7})));
#endif
}  // namespace conformance_all_forgotten

namespace conformance_all_named_twice {
/// LowerMask has two definitions.
// expect: a field is named twice
// expect: definitions_of<ptspec::reg::ia32_rtit_output_mask_ptrs::LowerMask, 2>
#ifndef SHOULD_FAIL
static_assert(conforms_all<pointers>(field_is<pointers::LowerMask>(0x7F),
                                     field_is<pointers::MaskOrTableOffset>(at_bits{31, 7}),
                                     left_out<pointers::OutputOffset>()));
#else
static_assert(conforms_all<pointers>(field_is<pointers::LowerMask>(0x7F),
                                     field_is<pointers::MaskOrTableOffset>(at_bits{31, 7}),
                                     left_out<pointers::OutputOffset>(),
                                     field_is<pointers::LowerMask>(0x7F)));
#endif
}  // namespace conformance_all_named_twice

namespace conformance_all_of_another_word {
/// BasePhysAddr is a field of another word.
// expect: the word has no such field
// expect: named_in<ptspec::reg::ia32_rtit_output_base::BasePhysAddr,
#ifndef SHOULD_FAIL
static_assert(conforms_all<pointers>(field_is<pointers::LowerMask>(0x7F),
                                     field_is<pointers::MaskOrTableOffset>(at_bits{31, 7}),
                                     left_out<pointers::OutputOffset>()));
#else
static_assert(conforms_all<pointers>(field_is<pointers::LowerMask>(0x7F),
                                     field_is<pointers::MaskOrTableOffset>(at_bits{31, 7}),
                                     left_out<pointers::OutputOffset>(),
                                     left_out<reg::ia32_rtit_output_base::BasePhysAddr>()));
#endif
}  // namespace conformance_all_of_another_word

namespace conformance_all_wrong {
/// One of all definitions is wrong: LowerMask has 7 bits.
// expect: the_definition_ends_at_another_bit
// expect: Bit = 7] | another_bit<7U>
// expect: field_is<
#ifndef SHOULD_FAIL
static_assert(conforms_all<pointers>(field_is<pointers::LowerMask>(0x7F),
                                     field_is<pointers::MaskOrTableOffset>(at_bits{31, 7}),
                                     left_out<pointers::OutputOffset>()));
#else
static_assert(conforms_all<pointers>(field_is<pointers::LowerMask>(0xFF),
                                     field_is<pointers::MaskOrTableOffset>(at_bits{31, 7}),
                                     left_out<pointers::OutputOffset>()));
#endif
}  // namespace conformance_all_wrong

namespace conformance_bit_field_higher {
/// The member of a bit-field struct begins one bit too high.
// expect: the_definition_lacks_a_bit_of_the_field | only_gcc_reads_bit_fields
// expect: Bit = 14] | the_field<14U> | only_gcc_reads_bit_fields
// also clang
#ifndef SHOULD_FAIL
struct my_ctl {
    uint64_t flags : 14;
    uint64_t mtc_freq : 4;
    uint64_t rest : 46;
};
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#else
struct my_ctl {
    uint64_t flags : 15;
    uint64_t mtc_freq : 4;
    uint64_t rest : 45;
};
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#endif
}  // namespace conformance_bit_field_higher

namespace conformance_bit_field_lower {
/// The member begins one bit too low.
// expect: the_definition_has_a_bit_outside_the_field | only_gcc_reads_bit_fields
// expect: Bit = 13] | the_field<13U> | only_gcc_reads_bit_fields
#ifndef SHOULD_FAIL
struct my_ctl {
    uint64_t flags : 14;
    uint64_t mtc_freq : 4;
    uint64_t rest : 46;
};
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#else
struct my_ctl {
    uint64_t flags : 13;
    uint64_t mtc_freq : 4;
    uint64_t rest : 47;
};
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#endif
}  // namespace conformance_bit_field_lower

namespace conformance_bit_field_wide {
/// The member is one bit too wide.
// expect: the_definition_has_a_bit_outside_the_field | only_gcc_reads_bit_fields
// expect: Bit = 18] | the_field<18U> | only_gcc_reads_bit_fields
#ifndef SHOULD_FAIL
struct my_ctl {
    uint64_t flags : 14;
    uint64_t mtc_freq : 4;
    uint64_t rest : 46;
};
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#else
struct my_ctl {
    uint64_t flags : 14;
    uint64_t mtc_freq : 5;
    uint64_t rest : 45;
};
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#endif
}  // namespace conformance_bit_field_wide

namespace conformance_bit_field_narrow {
/// The member is one bit too narrow.
// expect: the_definition_lacks_a_bit_of_the_field | only_gcc_reads_bit_fields
// expect: Bit = 17] | the_field<17U> | only_gcc_reads_bit_fields
#ifndef SHOULD_FAIL
struct my_ctl {
    uint64_t flags : 14;
    uint64_t mtc_freq : 4;
    uint64_t rest : 46;
};
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#else
struct my_ctl {
    uint64_t flags : 14;
    uint64_t mtc_freq : 3;
    uint64_t rest : 47;
};
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#endif
}  // namespace conformance_bit_field_narrow

namespace conformance_bit_field_address_narrow {
/// The member for an address has 36 bits, and MAXPHYADDR is 52.
// expect: the_definition_lacks_a_bit_of_the_field | only_gcc_reads_bit_fields
// expect: Bit = 48] | the_field<48U> | only_gcc_reads_bit_fields
struct my_entry {
    uint64_t flags : 12;
#ifndef SHOULD_FAIL
    uint64_t base : 40;
    uint64_t rest : 12;
#else
    uint64_t base : 36;
    uint64_t rest : 16;
#endif
};

#ifndef SHOULD_FAIL
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<topa::entry::Base>([](my_entry const& it) { return it.base; },
                                                    max_phys_addr{52}));
#else
static_assert(conforms_bit_field<topa::entry::Base>([](my_entry const& it) { return it.base; },
                                                    max_phys_addr{52}));
#endif
}  // namespace conformance_bit_field_address_narrow

namespace conformance_bit_field_signed {
/// The member is signed: half of its values would be negative.
// expect: the_member_is_signed | only_gcc_reads_bit_fields_in_constant_expressions
#ifndef SHOULD_FAIL
struct my_ctl {
    uint64_t flags : 14;
    uint64_t mtc_freq : 4;
    uint64_t rest : 46;
};
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#else
struct my_ctl {
    uint64_t flags : 14;
    int64_t mtc_freq : 4;
    uint64_t rest : 46;
};
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#endif
}  // namespace conformance_bit_field_signed

namespace conformance_bit_field_moved {
/// The function returns the member shifted, not the member.
// expect: the_member_moves_a_bit | only_gcc_reads_bit_fields
// expect: Bit = 14] | a_bit<14U> | only_gcc_reads_bit_fields
struct my_ctl {
    uint64_t flags : 14;
    uint64_t mtc_freq : 4;
    uint64_t rest : 46;
};

#ifndef SHOULD_FAIL
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#else
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq << 1; }));
#endif
}  // namespace conformance_bit_field_moved

namespace conformance_bit_field_in_a_union {
/// A member of a union that does not hold it cannot be read at compile time.
// expect: a_union_is_compared_at_run_time_or_by_its_named_member | only_gcc_reads_bit_fields
union my_ctl {
    struct {
        uint64_t flags : 14;
        uint64_t mtc_freq : 4;
        uint64_t rest : 46;
    } bits;
    uint64_t value;
};

#ifndef SHOULD_FAIL
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<ctl::MTCFreq>([](decltype(my_ctl::bits) it) {
                  return it.mtc_freq;
              }));
#else
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.bits.mtc_freq; }));
#endif
}  // namespace conformance_bit_field_in_a_union

namespace conformance_bit_field_struct_too_short {
/// The struct ends below the field.
// expect: the struct ends below the field
struct my_ctl {
    uint8_t below : 2;
    uint8_t os : 1;
};

#ifndef SHOULD_FAIL
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<ctl::OS>([](my_ctl const& it) { return it.os; }));
#else
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.os; }));
#endif
}  // namespace conformance_bit_field_struct_too_short
