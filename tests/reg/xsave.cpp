// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/xsave.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

#include <bit>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>

using namespace ptspec;
using namespace ptspec::reg;
using ptspec::test::has_field_at;

using state = xsave_pt_state;

namespace {

template <class... Fields>
concept taken_by_with = requires(state it, Fields... fields) { it.with(fields...); };
template <class Field>
concept given_by_get = requires(state it) { it.get<Field>(); };

/// A different number for each quadword.
constexpr auto pattern_of(unsigned i) -> uint64_t { return 0x0101'0101'0101'0101 * (i + 1); }

constexpr auto full(auto value) -> state {
    state it{};
    for (unsigned i = 0; i < 16; ++i) { it.quadwords[i] = value(pattern_of(i)); }
    return it;
}

/// True if field `Field` reads and writes quadword `i` and no other.
template <class Field>
constexpr auto is_quadword(auto value, unsigned i) -> bool {
    auto const written = full(value).with(Field{wrapped{value(~uint64_t{0})}});
    for (unsigned k = 0; k < 16; ++k) {
        if (written.quadwords[k] != (k == i ? ~uint64_t{0} : pattern_of(k))) { return false; }
    }
    return full(value).template get<Field>().raw == pattern_of(i);
}

}  // namespace

// ------------------------------------------------------------------------------------ the words

TEST_CASE("PT state is component 8: bit 8 of IA32_XSS and of the header (REG-140)") {
    CHECK_TWICE([](auto value) { return has_field_at<ia32_xss, ia32_xss::PT_STATE>(value, 8, 8); });
    CHECK_TWICE([](auto value) {
        return has_field_at<xsave_header_xstate_bv, xsave_header_xstate_bv::PT>(value, 8, 8);
    });
    CHECK_TWICE([](auto value) {
        return has_field_at<xsave_header_xcomp_bv, xsave_header_xcomp_bv::PT>(value, 8, 8) &&
               has_field_at<xsave_header_xcomp_bv, xsave_header_xcomp_bv::Compacted>(value, 63, 63);
    });
}

TEST_CASE("IA32_XSS is MSR DA0H, the words of the header are at 200H and 208H") {
    CHECK(ia32_xss::address == 0xDA0);
    CHECK(xsave_header_xstate_bv::offset == 0x200);
    CHECK(xsave_header_xcomp_bv::offset == 0x208);
}

TEST_CASE("bits of other components are in no mask") {
    CHECK_TWICE([](auto value) {
        return ia32_xss::reserved_mask(value(36U)) == 0 &&
               xsave_header_xstate_bv::reserved_mask(value(36U)) == 0 &&
               xsave_header_xcomp_bv::reserved_mask(value(36U)) == 0 &&
               ia32_xss{value(uint64_t{0x1800})}.with(ia32_xss::PT_STATE{true}).raw == 0x1900;
    });
}

TEST_CASE("bit 63 of XCOMP_BV is always 1") {
    CHECK_TWICE([](auto value) {
        return xsave_header_xcomp_bv::forced_1_mask() == value(uint64_t{0x8000'0000'0000'0000}) &&
               xsave_header_xstate_bv::forced_1_mask() == 0 && ia32_xss::forced_1_mask() == 0;
    });
}

// ------------------------------------------------------------------------------------ PT state

TEST_CASE("PT state is nine MSRs in the manual's order, eight bytes each (REG-141)") {
    CHECK_TWICE([](auto value) { return is_quadword<state::IA32_RTIT_CTL>(value, 0x00 / 8); });
    CHECK_TWICE(
        [](auto value) { return is_quadword<state::IA32_RTIT_OUTPUT_BASE>(value, 0x08 / 8); });
    CHECK_TWICE(
        [](auto value) { return is_quadword<state::IA32_RTIT_OUTPUT_MASK_PTRS>(value, 0x10 / 8); });
    CHECK_TWICE([](auto value) { return is_quadword<state::IA32_RTIT_STATUS>(value, 0x18 / 8); });
    CHECK_TWICE(
        [](auto value) { return is_quadword<state::IA32_RTIT_CR3_MATCH>(value, 0x20 / 8); });
    CHECK_TWICE([](auto value) { return is_quadword<state::IA32_RTIT_ADDR0_A>(value, 0x28 / 8); });
    CHECK_TWICE([](auto value) { return is_quadword<state::IA32_RTIT_ADDR0_B>(value, 0x30 / 8); });
    CHECK_TWICE([](auto value) { return is_quadword<state::IA32_RTIT_ADDR1_A>(value, 0x38 / 8); });
    CHECK_TWICE([](auto value) { return is_quadword<state::IA32_RTIT_ADDR1_B>(value, 0x40 / 8); });
}

TEST_CASE("each quadword has the type of its MSR") {
    CHECK_TWICE([](auto value) {
        auto const ctl = ia32_rtit_ctl{value(uint64_t{0x210D})};
        auto const base = ia32_rtit_output_base{value(uint64_t{0x7000})};
        auto const it = state{}.with(state::IA32_RTIT_CTL{ctl}, state::IA32_RTIT_OUTPUT_BASE{base},
                                     state::IA32_RTIT_ADDR1_B{ia32_rtit_addr{0x1FFF}});
        return it.quadwords[0] == 0x210D && it.quadwords[1] == 0x7000 &&
               it.quadwords[8] == 0x1FFF && it.get<state::IA32_RTIT_CTL>() == ctl &&
               it.get<state::IA32_RTIT_CTL>().get<ia32_rtit_ctl::ToPA>() &&
               it.get<state::IA32_RTIT_STATUS>() == ia32_rtit_status{};
    });
    static_assert(same_as<state::IA32_RTIT_CTL::value_type, ia32_rtit_ctl>);
    static_assert(same_as<state::IA32_RTIT_OUTPUT_BASE::value_type, ia32_rtit_output_base>);
    static_assert(
        same_as<state::IA32_RTIT_OUTPUT_MASK_PTRS::value_type, ia32_rtit_output_mask_ptrs>);
    static_assert(same_as<state::IA32_RTIT_STATUS::value_type, ia32_rtit_status>);
    static_assert(same_as<state::IA32_RTIT_CR3_MATCH::value_type, ia32_rtit_cr3_match>);
    static_assert(same_as<state::IA32_RTIT_ADDR0_A::value_type, ia32_rtit_addr> &&
                  same_as<state::IA32_RTIT_ADDR0_B::value_type, ia32_rtit_addr> &&
                  same_as<state::IA32_RTIT_ADDR1_A::value_type, ia32_rtit_addr> &&
                  same_as<state::IA32_RTIT_ADDR1_B::value_type, ia32_rtit_addr>);
}

TEST_CASE("with() changes the named quadwords and nothing else") {
    CHECK_TWICE([](auto value) {
        auto const before = full(value);
        auto const after = before.with(state::IA32_RTIT_STATUS{ia32_rtit_status{0x20}},
                                       state::IA32_RTIT_CTL{ia32_rtit_ctl{}});
        for (unsigned i = 0; i < 16; ++i) {
            auto const wanted = i == 0 ? 0 : i == 3 ? 0x20 : pattern_of(i);
            if (after.quadwords[i] != wanted) { return false; }
        }
        return before.with() == before;
    });
}

TEST_CASE("a word's image accepts any number") {
    CHECK_TWICE([](auto value) {
        auto const it = checked<state::IA32_RTIT_CTL>(value(~uint64_t{0}));
        return it && it.field.number() == ~uint64_t{0} &&
               state::IA32_RTIT_CTL{wrapped{value(uint64_t{9})}}.value.raw == 9 &&
               state::IA32_RTIT_CTL::from_number(value(uint64_t{9})) == ia32_rtit_ctl{9};
    });
}

TEST_CASE("PT state has only its own fields") {
    static_assert(taken_by_with<state::IA32_RTIT_CTL, state::IA32_RTIT_ADDR0_A>);
    static_assert(!taken_by_with<ia32_rtit_ctl::TraceEn> && !taken_by_with<reserved<639, 576>>);
    static_assert(given_by_get<state::IA32_RTIT_CTL>);
    static_assert(!given_by_get<reserved<639, 576>> && !given_by_get<ia32_rtit_ctl::TraceEn>);
    static_assert(!std::is_constructible_v<state::IA32_RTIT_CTL, ia32_rtit_status>);
    CHECK(!given_by_get<reserved<639, 576>>);
}

TEST_CASE("the seven quadwords from 48H on are reserved (REG-141)") {
    CHECK_TWICE([](auto value) {
        for (unsigned i = 0; i < 16; ++i) {
            state it{};
            it.quadwords[i] = value(uint64_t{1}) << (4 * i);
            if (it.reserved_quadwords_are_zero() != (i < 9)) { return false; }
        }
        return state{}.reserved_quadwords_are_zero() && !full(value).reserved_quadwords_are_zero();
    });
}

TEST_CASE("states are equal if all their quadwords are equal") {
    CHECK_TWICE([](auto value) {
        for (unsigned i = 0; i < 16; ++i) {
            state it = full(value);
            it.quadwords[i] ^= value(uint64_t{1}) << i;
            if (it == full(value) || !(it != full(value))) { return false; }
        }
        return full(value) == full(value) && state{} == state{value(state{})};
    });
}

TEST_CASE("PT state is exactly its 128 bytes, laid out as on processors that support it") {
    static_assert(sizeof(state) == 128 && alignof(state) == alignof(uint64_t));
    static_assert(std::is_trivially_copyable_v<state> && std::is_standard_layout_v<state>);
    unsigned char bytes[128] = {};
    bytes[0x20] = 0xE0;
    bytes[0x7F] = 1;
    state it;
    std::memcpy(&it, bytes, sizeof bytes);
    bool const little = std::endian::native == std::endian::little;
    CHECK(it.get<state::IA32_RTIT_CR3_MATCH>().raw == (little ? 0xE0 : 0xE000'0000'0000'0000));
    CHECK(!it.reserved_quadwords_are_zero());
}

TEST_CASE("rows_of() lists the sixteen quadwords of PT state") {
    CHECK_TWICE([](auto value) {
        auto const rows = value(rows_of<state>());
        for (unsigned i = 0; i < 16; ++i) {
            if (rows[i].lsb != 64 * i || rows[i].msb != 64 * i + 63) { return false; }
            if (rows[i].access != row_access::plain || rows[i].is_address) { return false; }
            if (rows[i].kind != (i < 9 ? row_kind::field : row_kind::reserved)) { return false; }
        }
        return rows.size() == 16 && rows[0].name == text{"IA32_RTIT_CTL"} &&
               rows[2].name == text{"IA32_RTIT_OUTPUT_MASK_PTRS"} &&
               rows[8].name == text{"IA32_RTIT_ADDR1_B"} && rows[9].name == text{"reserved"};
    });
}
