// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/reg/rtit_addr.hpp>
#include <ptspec/reg/rtit_cr3_match.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/reg/rtit_status.hpp>

/// The trace configuration as component 8 of XSAVE.
namespace ptspec::reg {

/// IA32_XSS, the supervisor components that XSAVES and XRSTORS manage.
///
/// Shape:  64-bit MSR DA0H.
/// Errors: WRMSR raises #GP(0) for a component that CPUID.0DH.1:ECX and EDX do not enumerate.
/// Source: SDM vol. 1, "Enabling the XSAVE Feature Set and XSAVE-Enabled Features"; REG-140.
struct ia32_xss : bit_word<ia32_xss, uint64_t> {
    static constexpr uint32_t address = 0xDA0;

    struct PT_STATE : flag<8> {};

    struct layout : bit_layout<64, other<7, 0>, PT_STATE, other<63, 9>> {};
};

/// XSTATE_BV, the components of an XSAVE area that hold data. The others are in their initial
/// state.
///
/// Shape:  64 bits, 200H bytes into the XSAVE area.
/// Errors: XRSTORS raises #GP(0) for a bit that is 0 in XCOMP_BV.
/// Source: SDM vol. 1, "XSAVE Header"; REG-146, REG-148.
struct xsave_header_xstate_bv : bit_word<xsave_header_xstate_bv, uint64_t> {
    static constexpr uint32_t offset = 0x200;  ///< in bytes from the start of the area

    struct PT : flag<8> {};

    struct layout : bit_layout<64, other<7, 0>, PT, other<63, 9>> {};
};

/// XCOMP_BV, the components that an XSAVE area in compacted form contains.
///
/// Shape:  64 bits, 208H bytes into the XSAVE area. XSAVES writes no other form.
/// Errors: XRSTORS raises #GP(0) if Compacted is 0, and for a bit that is 0 in IA32_XSS.
/// Source: SDM vol. 1, "XSAVE Header"; REG-148.
struct xsave_header_xcomp_bv : bit_word<xsave_header_xcomp_bv, uint64_t> {
    static constexpr uint32_t offset = 0x208;  ///< in bytes from the start of the area

    struct PT : flag<8> {};
    struct Compacted : forced_1<flag<63>> {};

    struct layout : bit_layout<64, other<7, 0>, PT, other<62, 9>, Compacted> {};
};

/// A field that holds a whole word, `Offset` bytes into the state.
template <unsigned Offset, class Word>
struct image : bit_range<8 * Offset + 63, 8 * Offset> {
    using value_type = Word;
    value_type value;

    [[nodiscard]] static constexpr auto fits(uint64_t) noexcept -> bool { return true; }
    [[nodiscard]] static constexpr auto from_number(uint64_t number) noexcept -> value_type {
        return value_type{number};
    }
    [[nodiscard]] constexpr auto number() const noexcept -> uint64_t { return value.raw; }

    constexpr image(Word word) noexcept : value{word} {}
    constexpr image(wrapped number) noexcept : value{number.value} {}
};

/// PT state, component 8: the trace configuration as XSAVES writes it.
///
/// Shape:  128 bytes: nine MSRs of 8 bytes each, then reserved quadwords. Address ranges 2 and 3
///         are not included.
/// Errors: XRSTORS raises #GP(0) while TraceEn is 1, for a reserved quadword that is not 0, and for
///         a value that WRMSR refuses.
/// Source: SDM vol. 1, "PT State"; REG-141, REG-144.
struct xsave_pt_state {
    static constexpr row_access access = row_access::plain;
    uint64_t quadwords[16] = {};

    struct IA32_RTIT_CTL : image<0x00, ia32_rtit_ctl> {};
    struct IA32_RTIT_OUTPUT_BASE : image<0x08, ia32_rtit_output_base> {};
    struct IA32_RTIT_OUTPUT_MASK_PTRS : image<0x10, ia32_rtit_output_mask_ptrs> {};
    struct IA32_RTIT_STATUS : image<0x18, ia32_rtit_status> {};
    struct IA32_RTIT_CR3_MATCH : image<0x20, ia32_rtit_cr3_match> {};
    struct IA32_RTIT_ADDR0_A : image<0x28, ia32_rtit_addr> {};
    struct IA32_RTIT_ADDR0_B : image<0x30, ia32_rtit_addr> {};
    struct IA32_RTIT_ADDR1_A : image<0x38, ia32_rtit_addr> {};
    struct IA32_RTIT_ADDR1_B : image<0x40, ia32_rtit_addr> {};

    // clang-format off
    struct layout : bit_layout<1024,
        IA32_RTIT_CTL, IA32_RTIT_OUTPUT_BASE, IA32_RTIT_OUTPUT_MASK_PTRS, IA32_RTIT_STATUS,
        IA32_RTIT_CR3_MATCH, IA32_RTIT_ADDR0_A, IA32_RTIT_ADDR0_B, IA32_RTIT_ADDR1_A,
        IA32_RTIT_ADDR1_B,
        reserved<639, 576>, reserved<703, 640>, reserved<767, 704>, reserved<831, 768>,
        reserved<895, 832>, reserved<959, 896>, reserved<1023, 960>> {};
    // clang-format on

    friend constexpr auto operator==(xsave_pt_state const&, xsave_pt_state const&)
        -> bool = default;

    /// The index of a row's quadword.
    template <class Row>
    static constexpr unsigned quadword_of = Row::lsb / 64;

    /// The saved value of a register.
    template <class Field>
        requires field_of<Field, xsave_pt_state>
    [[nodiscard]] constexpr auto get() const noexcept -> typename Field::value_type {
        return Field::from_number(quadwords[quadword_of<Field>]);
    }

    /// Returns the state with the named registers changed. All other quadwords keep their value.
    template <class... Fields>
        requires(field_of<Fields, xsave_pt_state> && ...)
    [[nodiscard]] constexpr auto with(Fields... fields) const noexcept -> xsave_pt_state {
        static_assert(popcount((uint64_t{0} | ... | (uint64_t{1} << quadword_of<Fields>))) ==
                          sizeof...(Fields),
                      "a field is named twice");
        xsave_pt_state changed = *this;
        ((changed.quadwords[quadword_of<Fields>] = fields.number()), ...);
        return changed;
    }

    /// True if all reserved quadwords are 0. If not, XRSTORS of this state raises #GP(0).
    [[nodiscard]] constexpr auto reserved_quadwords_are_zero() const noexcept -> bool {
        return [this]<class... Rows>(type_list<Rows...>) {
            row_kind const kinds[] = {Rows::kind...};
            unsigned const places[] = {quadword_of<Rows>...};
            for (size_t i = 0; i < sizeof...(Rows); ++i) {
                if (kinds[i] == row_kind::reserved && quadwords[places[i]] != 0) { return false; }
            }
            return true;
        }(layout::rows{});
    }
};

}  // namespace ptspec::reg
