// SPDX-License-Identifier: BSL-1.0
/// Registers and their fields

#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/reg/rtit_status.hpp>
#include <ptspec/reg/xsave.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;
using st = reg::ia32_rtit_status;
using base = reg::ia32_rtit_output_base;

namespace value_too_wide {
/// MTCFreq has 4 bits, and 16 needs 5.
// expect: value_does_not_fit_in_the_field
// expect: (16)
// also clang
#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::MTCFreq{15}).raw != 0);
#else
static_assert(ctl{}.with(ctl::MTCFreq{16}).raw != 0);
#endif
}  // namespace value_too_wide

namespace value_negative {
/// The value of a field is never negative, also where the field is the whole word.
// expect: value_does_not_fit_in_the_field
// expect: (-1)
struct whole : ptspec::bit_word<whole, uint64_t> {
    struct All : ptspec::field<63, 0> {};
    struct layout : ptspec::bit_layout<64, All> {};
};

#ifndef SHOULD_FAIL
static_assert(whole{}.with(whole::All{1}).raw != 0);
#else
static_assert(whole{}.with(whole::All{-1}).raw != 0);
#endif
}  // namespace value_negative

namespace value_at_run_time {
/// A number known only at run time must say what happens to bits that do not fit: `wrapped` or
/// `checked`.
// expect: a_run_time_number_needs_wrapped_or_checked
// also clang
#ifndef SHOULD_FAIL
auto later(uint64_t n) -> ctl { return ctl{}.with(ctl::MTCFreq{ptspec::wrapped{n}}); }
#else
auto later(uint64_t n) -> ctl { return ctl{}.with(ctl::MTCFreq{n}); }
#endif
}  // namespace value_at_run_time

namespace value_constant_too_wide {
/// A `constant` whose value does not fit converts to no field.
// expect: constant_number<16
// expect: field<17, 14>'
#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::MTCFreq{ptspec::constant<15>}).raw != 0);
#else
static_assert(ctl{}.with(ctl::MTCFreq{ptspec::constant<16>}).raw != 0);
#endif
}  // namespace value_constant_too_wide

namespace address_low_bits {
/// The output base is a multiple of 128 bytes: its bits 6:0 are not part of the field.
// expect: address_has_bits_outside_the_field
// expect: (4097)
#ifndef SHOULD_FAIL
static_assert(base{}.with(base::BasePhysAddr{0x1080}).raw != 0);
#else
static_assert(base{}.with(base::BasePhysAddr{0x1001}).raw != 0);
#endif
}  // namespace address_low_bits

namespace address_negative {
/// A negative address sets bits above the field.
// expect: address_has_bits_outside_the_field
// expect: (-128)
#ifndef SHOULD_FAIL
static_assert(base{}.with(base::BasePhysAddr{0x80}).raw != 0);
#else
static_assert(base{}.with(base::BasePhysAddr{-0x80}).raw != 0);
#endif
}  // namespace address_negative

namespace field_misspelt {
/// The field is MTCFreq.
// expect: 'MTCFrq'
#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::MTCFreq{3}).raw != 0);
#else
static_assert(ctl{}.with(ctl::MTCFrq{3}).raw != 0);
#endif
}  // namespace field_misspelt

namespace field_named_twice {
/// OS has two values.
// expect: a field is named twice
// expect: ptspec::reg::ia32_rtit_ctl::OS
// also clang
#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::OS{true}, ctl::User{true}).raw != 0);
#else
static_assert(ctl{}.with(ctl::OS{true}, ctl::OS{false}).raw != 0);
#endif
}  // namespace field_named_twice

namespace field_of_another_register_get {
/// Stopped is a field of IA32_RTIT_STATUS, not of IA32_RTIT_CTL.
// expect: the word has no such field
// expect: ptspec::reg::ia32_rtit_status::Stopped
// expect: ptspec::reg::ia32_rtit_ctl
#ifndef SHOULD_FAIL
static_assert(!st{}.get<st::Stopped>());
#else
static_assert(!ctl{}.get<st::Stopped>());
#endif
}  // namespace field_of_another_register_get

namespace field_of_another_register_with {
/// Stopped, a field of IA32_RTIT_STATUS, is set in IA32_RTIT_CTL.
// expect: the word has no such field
// expect: ptspec::reg::ia32_rtit_status::Stopped
// expect: ptspec::reg::ia32_rtit_ctl
#ifndef SHOULD_FAIL
static_assert(st{}.with(st::Stopped{true}).raw != 0);
#else
static_assert(ctl{}.with(st::Stopped{true}).raw != 0);
#endif
}  // namespace field_of_another_register_with

namespace field_reserved {
/// A reserved bit has no value to set.
// expect: no member named
// expect: number
// expect: ptspec::reserved<18
// expect: ptspec::reg::ia32_rtit_ctl
using bit_18 = ptspec::reserved<18>;

#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::DisTNT{true}).raw != 0);
#else
static_assert(ctl{}.with(bit_18{}).raw != 0);
#endif
}  // namespace field_reserved

namespace flag_from_int {
/// A flag is `true` or `false`: a number could be a mask or a bit position.
// expect: deleted
// expect: a flag is true or false
// expect: ctl::TraceEn{1}
#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::TraceEn{true}).raw == 1);
#else
static_assert(ctl{}.with(ctl::TraceEn{1}).raw == 1);
#endif
}  // namespace flag_from_int

namespace enumerated_from_int {
/// A field whose encodings have names takes these names.
// expect: from 'int' to
// expect: enumerated<35, 32,
#ifndef SHOULD_FAIL
static_assert(ctl{}.with(ctl::ADDR0_CFG{ptspec::reg::addr_cfg::filter}).raw != 0);
#else
static_assert(ctl{}.with(ctl::ADDR0_CFG{1}).raw != 0);
#endif
}  // namespace enumerated_from_int

namespace word_from_another_word {
/// The bits of IA32_RTIT_CTL mean nothing in IA32_RTIT_STATUS. `.raw` says that this is intended.
// expect: bit_word<ptspec::reg::ia32_rtit_status,
// expect: from 'ctl'
#ifndef SHOULD_FAIL
constexpr st now{st{}.raw};
#else
constexpr st now{ctl{}};
#endif
}  // namespace word_from_another_word

namespace word_with_raw_designated {
/// `raw` cannot be designated: a word is made from its bits, `ctl{0x2109}`.
// expect: no non-static data member named 'raw' | does not refer to any field in type
// expect: raw
// one error
// at most 5 lines
#ifndef SHOULD_FAIL
static_assert(ctl{0x2109}.raw == 0x2109);
#else
static_assert(ctl{.raw = 0x2109}.raw == 0x2109);
#endif
}  // namespace word_with_raw_designated

namespace image_named_twice {
/// An MSR is named twice for an XSAVE area.
// expect: a field is named twice
using state = ptspec::reg::xsave_pt_state;
#ifndef SHOULD_FAIL
static_assert(state{}.with(state::IA32_RTIT_CTL{ctl{1}}).quadwords[0] == 1);
#else
static_assert(
    state{}.with(state::IA32_RTIT_CTL{ctl{2}}, state::IA32_RTIT_CTL{ctl{1}}).quadwords[0] == 1);
#endif
}  // namespace image_named_twice

namespace range_upside_down {
/// A bit range is written as in the manual, the high bit first.
// expect: a bit range is written msb, lsb
#ifndef SHOULD_FAIL
struct Number : ptspec::field<17, 14> {};
#else
struct Number : ptspec::field<14, 17> {};
#endif
}  // namespace range_upside_down

namespace layout_hole {
/// Bit 4 belongs to no row.
// expect: these two rows overlap or leave a gap
// expect: neighbours<small::One, small::Two>
// also clang
#ifndef SHOULD_FAIL
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<7, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#else
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<7, 5> {};
    struct layout : bit_layout<8, One, Two> {};
};
#endif
}  // namespace layout_hole

namespace layout_overlap {
/// Bit 4 belongs to two rows.
// expect: these two rows overlap or leave a gap
// expect: neighbours<small::One, small::Two>
#ifndef SHOULD_FAIL
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<7, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#else
struct small : bit_word<small, uint8_t> {
    struct One : field<4, 0> {};
    struct Two : field<7, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#endif
}  // namespace layout_overlap

namespace layout_row_forgotten {
/// The layout omits a field.
// expect: these two rows overlap or leave a gap
// expect: neighbours<small::One, small::Three>
#ifndef SHOULD_FAIL
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<5, 4> {};
    struct Three : field<7, 6> {};
    struct layout : bit_layout<8, One, Two, Three> {};
};
#else
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<5, 4> {};
    struct Three : field<7, 6> {};
    struct layout : bit_layout<8, One, Three> {};
};
#endif
}  // namespace layout_row_forgotten

namespace layout_row_twice {
/// The layout has a field twice.
// expect: these two rows overlap or leave a gap
// expect: neighbours<small::Two, small::Two>
#ifndef SHOULD_FAIL
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<7, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#else
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<7, 4> {};
    struct layout : bit_layout<8, One, Two, Two> {};
};
#endif
}  // namespace layout_row_twice

namespace layout_starts_too_high {
/// Bit 0 belongs to no row.
// expect: the first row has to begin at bit 0
// expect: small::One
#ifndef SHOULD_FAIL
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<7, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#else
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 1> {};
    struct Two : field<7, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#endif
}  // namespace layout_starts_too_high

namespace layout_ends_too_low {
/// Bit 7 belongs to no row.
// expect: the last row has to end at the top of the word
// expect: small::Two
#ifndef SHOULD_FAIL
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<7, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#else
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<6, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#endif
}  // namespace layout_ends_too_low

namespace layout_ends_too_high {
/// The last row has a bit above the word.
// expect: the last row has to end at the top of the word
// expect: small::Two
#ifndef SHOULD_FAIL
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<7, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#else
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<8, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#endif
}  // namespace layout_ends_too_high
