// SPDX-License-Identifier: BSL-1.0
/// Packets

#include <ptspec/packet/list.hpp>
#include <ptspec/packet/any_packet.hpp>
#include <ptspec/packet/classify.hpp>
#include <ptspec/packet/decode.hpp>
#include <ptspec/packet/encode.hpp>
#include <ptspec/packet/packet_word.hpp>

using namespace ptspec;
using namespace ptspec::packet;

namespace packet_value_too_wide {
/// CoreBusRatio has 8 bits.
// expect: value_does_not_fit_in_the_field
#ifndef SHOULD_FAIL
static_assert(cbr{}.with(cbr::CoreBusRatio{0xFF}).raw != 0);
#else
static_assert(cbr{}.with(cbr::CoreBusRatio{0x100}).raw != 0);
#endif
}  // namespace packet_value_too_wide

namespace packet_tsc_too_wide {
/// A TSC packet has 56 bits of the counter (PKT-340).
// expect: value_does_not_fit_in_the_field
#ifndef SHOULD_FAIL
static_assert(tsc{}.with(tsc::TSC{0xFF'FFFF'FFFF'FFFF}).raw != 0);
#else
static_assert(tsc{}.with(tsc::TSC{0x100'0000'0000'0000}).raw != 0);
#endif
}  // namespace packet_tsc_too_wide

namespace packet_fc_too_wide {
/// FC has 9 bits (PKT-340).
// expect: value_does_not_fit_in_the_field
#ifndef SHOULD_FAIL
static_assert(tma{}.with(tma::FC{511}).raw != 0);
#else
static_assert(tma{}.with(tma::FC{512}).raw != 0);
#endif
}  // namespace packet_fc_too_wide

namespace packet_hints_too_wide {
/// The hints of MWAIT have 8 bits (PKT-340).
// expect: value_does_not_fit_in_the_field
#ifndef SHOULD_FAIL
static_assert(mwait{}.with(mwait::hints{255}).raw.low != 0);
#else
static_assert(mwait{}.with(mwait::hints{256}).raw.low != 0);
#endif
}  // namespace packet_hints_too_wide

namespace packet_ext_too_wide {
/// The extensions of MWAIT have 2 bits (PKT-340).
// expect: value_does_not_fit_in_the_field
#ifndef SHOULD_FAIL
static_assert(mwait{}.with(mwait::ext{3}).raw.low != 0);
#else
static_assert(mwait{}.with(mwait::ext{4}).raw.low != 0);
#endif
}  // namespace packet_ext_too_wide

namespace packet_id_too_wide {
/// The identifier of a BIP has 5 bits (PKT-340).
// expect: value_does_not_fit_in_the_field
#ifndef SHOULD_FAIL
static_assert(bip{}.with(bip::id{31}).raw.low != 0);
#else
static_assert(bip{}.with(bip::id{32}).raw.low != 0);
#endif
}  // namespace packet_id_too_wide

namespace packet_payload_size_too_wide {
/// PayloadBytes has 2 bits.
// expect: value_does_not_fit_in_the_field
#ifndef SHOULD_FAIL
static_assert(ptw{}.with(ptw::PayloadBytes{3}).raw.low != 0);
#else
static_assert(ptw{}.with(ptw::PayloadBytes{4}).raw.low != 0);
#endif
}  // namespace packet_payload_size_too_wide

namespace packet_cr3_low_bits {
/// A PIP has no bits 4:0 of CR3 (PKT-340).
// expect: address_has_bits_outside_the_field
#ifndef SHOULD_FAIL
static_assert(pip{}.with(pip::CR3{0x1020}).raw != 0);
#else
static_assert(pip{}.with(pip::CR3{0x1010}).raw != 0);
#endif
}  // namespace packet_cr3_low_bits

namespace packet_cr3_high_bits {
/// A PIP has no bits of CR3 above 51 (PKT-340).
// expect: address_has_bits_outside_the_field
#ifndef SHOULD_FAIL
static_assert(pip{}.with(pip::CR3{0x8'0000'0000'0000}).raw != 0);
#else
static_assert(pip{}.with(pip::CR3{0x10'0000'0000'0000}).raw != 0);
#endif
}  // namespace packet_cr3_high_bits

namespace packet_vmcs_low_bits {
/// A VMCS packet has no bits 11:0 of the address (PKT-340).
// expect: address_has_bits_outside_the_field
#ifndef SHOULD_FAIL
static_assert(vmcs{}.with(vmcs::base{0x1000}).raw != 0);
#else
static_assert(vmcs{}.with(vmcs::base{0x1800}).raw != 0);
#endif
}  // namespace packet_vmcs_low_bits

namespace packet_vmcs_high_bits {
/// A VMCS packet has no bits of the address above 51 (PKT-340).
// expect: address_has_bits_outside_the_field
#ifndef SHOULD_FAIL
static_assert(vmcs{}.with(vmcs::base{0x8'0000'0000'0000}).raw != 0);
#else
static_assert(vmcs{}.with(vmcs::base{0x10'0000'0000'0000}).raw != 0);
#endif
}  // namespace packet_vmcs_high_bits

namespace packet_field_named_twice {
/// The payload has two values.
// expect: a field is named twice
#ifndef SHOULD_FAIL
static_assert(evd{}.with(evd::payload{1}).raw.low != 0);
#else
static_assert(evd{}.with(evd::payload{1}, evd::payload{2}).raw.low != 0);
#endif
}  // namespace packet_field_named_twice

namespace packet_field_of_another_get {
/// TMA and MTC both have a field CTC; they are two fields.
// expect: the word has no such field
#ifndef SHOULD_FAIL
static_assert(mtc{}.get<mtc::CTC>() == 0);
#else
static_assert(mtc{}.get<tma::CTC>() == 0);
#endif
}  // namespace packet_field_of_another_get

namespace packet_field_of_another_with {
/// The CTC of an MTC is set in a TMA.
// expect: the word has no such field
#ifndef SHOULD_FAIL
static_assert(tma{}.with(tma::CTC{1}).raw != 0);
#else
static_assert(tma{}.with(mtc::CTC{1}).raw != 0);
#endif
}  // namespace packet_field_of_another_with

namespace packet_field_of_the_same_opcode {
/// MODE.Exec and MODE.TSX share an opcode, but no field.
// expect: the word has no such field
#ifndef SHOULD_FAIL
static_assert(!mode_tsx{}.get<mode_tsx::InTX>());
#else
static_assert(!mode_tsx{}.get<mode_exec::CS_L>());
#endif
}  // namespace packet_field_of_the_same_opcode

namespace packet_opcode_written {
/// The opcode is part of the packet's type.
// expect: no member named
// expect: ptspec::packet::cbr::Opcode
#ifndef SHOULD_FAIL
static_assert(cbr{}.with(cbr::CoreBusRatio{3}).raw == 0x0003'0302);
#else
static_assert(cbr{}.with(cbr::Opcode{}).raw == 0x0302);
#endif
}  // namespace packet_opcode_written

namespace packet_leaf_written {
/// The leaf is part of the type of a MODE packet.
// expect: no member named
// expect: ptspec::packet::mode_exec::Leaf
#ifndef SHOULD_FAIL
static_assert(mode_exec{}.with(mode_exec::IF{true}).raw == 0x0499);
#else
static_assert(mode_exec{}.with(mode_exec::Leaf{}).raw == 0x99);
#endif
}  // namespace packet_leaf_written

namespace packet_no_payload {
/// CBR has no payload besides its fields.
// expect: constraints not satisfied
#ifndef SHOULD_FAIL
static_assert(ptw{}.payload() == 0);
#else
static_assert(cbr{}.payload() == 0);
#endif
}  // namespace packet_no_payload

namespace packet_no_payload_to_write {
/// CBR has no payload that could be set.
// expect: constraints not satisfied
#ifndef SHOULD_FAIL
static_assert(ptw{}.with_payload(1).payload() == 1);
#else
static_assert(cbr{}.with_payload(1).raw != 0);
#endif
}  // namespace packet_no_payload_to_write

namespace packet_bip_without_length {
/// The length of a BIP depends on its block: 5 or 9 bytes, which `any_packet` must know.
// expect: payload_of_block
#ifndef SHOULD_FAIL
static_assert(any_packet{bip{}, 5}.length() == 5);
#else
static_assert(any_packet{bip{}}.length() == 5);
#endif
}  // namespace packet_bip_without_length

namespace packet_not_a_packet {
/// Only a packet type can be decoded.
// expect: packet_type
constexpr uint8_t bytes[] = {0x59, 0x80};

#ifndef SHOULD_FAIL
static_assert(decode_as<mtc>(bytes).length == 2);
#else
static_assert(decode_as<int>(bytes).length == 2);
#endif
}  // namespace packet_not_a_packet

namespace packet_append_not_a_packet {
/// Only packets can be appended; 59H may be the opcode of an MTC.
// expect: packet_type
#ifndef SHOULD_FAIL
auto write(ptspec::byte_buffer& out) -> bool { return append(out, mtc{}) == ptspec::rule::none; }
#else
auto write(ptspec::byte_buffer& out) -> bool { return append(out, 0x59) == ptspec::rule::none; }
#endif
}  // namespace packet_append_not_a_packet

namespace packet_layout_is_not_the_head {
/// The layout must tile both bytes of the head.
// expect: layout::bits == 8 * HeadBytes
struct toy : packet_word<toy, 2> {
    struct Opcode : fixed<7, 0, 0x11> {};
#ifndef SHOULD_FAIL
    struct layout : bit_layout<16, Opcode, reserved<15, 8>> {};
#else
    struct layout : bit_layout<8, Opcode> {};
#endif
};

static_assert(toy{}.raw == 0x11);
}  // namespace packet_layout_is_not_the_head

namespace packet_opcode_too_long {
/// The tables of opcodes have three levels.
// expect: an opcode has at most three bytes
struct toy : packet_word<toy, 4> {
    static constexpr facts about{.id = kind::mnt, .name = "toy"};
#ifndef SHOULD_FAIL
    struct Opcode : fixed<23, 0, 0x88'C302> {};
    struct layout : bit_layout<32, Opcode, reserved<31, 24>> {};
#else
    struct Opcode : fixed<31, 0, 0x1188'C302> {};
    struct layout : bit_layout<32, Opcode> {};
#endif
};

static_assert(classify_first<type_list<toy>>(0x02).what == opcode_byte::meaning::prefix);
}  // namespace packet_opcode_too_long
