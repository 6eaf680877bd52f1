// SPDX-License-Identifier: BSL-1.0
#include <ptspec/conformance/bit_fields.hpp>

#include <ptspec/conformance/words.hpp>
#include <ptspec/reg/list.hpp>
#include <ptspec/topa/entry.hpp>

#include <support/check_twice.hpp>

#include <cstdint>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;
using pointers = reg::ia32_rtit_output_mask_ptrs;
using topa::entry;

namespace {

enum class new_style : std::uint8_t { off, filter, stop };

struct my_ctl {
    std::uint64_t trace_en : 1;
    std::uint64_t cyc_en : 1;
    std::uint64_t : 12;
    std::uint64_t mtc_freq : 4;
    std::uint64_t one_lower : 4;
    std::uint64_t one_shorter : 3;
    std::uint64_t : 1;
    std::uint64_t one_longer : 5;
    bool event_en : 1;
    new_style addr0 : 4;
    std::int64_t signed_number : 4;
    std::uint64_t rest : 24;
};
static_assert(sizeof(my_ctl) == 8);

struct my_pointers {
    std::uint32_t lower_mask : 7;
    std::uint32_t table_offset : 25;
    std::uint32_t output_offset;
};

/// Compilers for x86 place the first bit-field at bit 0, those for PowerPC at bit 63.
constexpr bool as_on_x86 = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

/// True if the body holds, also in a constant expression where the compiler can read bit-fields.
template <class Body>
auto holds(Body body) -> bool {
    if constexpr (reads_constant_bit_fields && as_on_x86) { static_assert(Body{}()); }
    return body() == as_on_x86;
}

}  // namespace

TEST_CASE("a bit-field conforms if it has the position and the width of the field") {
    CHECK(holds([] {
        return conforms_bit_field<ctl::TraceEn>([](my_ctl const& it) { return it.trace_en; }) &&
               conforms_bit_field<ctl::CYCEn>([](my_ctl it) noexcept { return it.cyc_en; }) &&
               conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }) &&
               conforms_bit_field<ctl::EventEn>([](my_ctl const& it) { return it.event_en; }) &&
               conforms_bit_field<ctl::ADDR0_CFG>([](my_ctl const& it) { return it.addr0; });
    }));
    CHECK(!conforms_bit_field<ctl::TraceEn>([](my_ctl const& it) { return it.cyc_en; }));
    CHECK(!conforms_bit_field<ctl::CYCEn>([](my_ctl const& it) { return it.trace_en; }));
    CHECK(!conforms_bit_field<ctl::CycThresh>([](my_ctl const& it) { return it.one_lower; }));
    CHECK(!conforms_bit_field<ctl::CycThresh>([](my_ctl const& it) { return it.mtc_freq; }));
}

namespace {

/// A field of four bits.
template <unsigned Lsb>
struct nibble : field<Lsb + 3, Lsb> {};

}  // namespace

TEST_CASE("a bit-field of another width does not conform") {
    CHECK(conforms_bit_field<nibble<18>>([](my_ctl const& it) { return it.one_lower; }));
    CHECK(!conforms_bit_field<nibble<22>>([](my_ctl const& it) { return it.one_shorter; }));
    CHECK(!conforms_bit_field<nibble<26>>([](my_ctl const& it) { return it.one_longer; }));
    CHECK(!conforms_bit_field<nibble<36>>([](my_ctl const& it) { return it.signed_number; }));
    CHECK(!conforms_bit_field<nibble<18>>([](my_ctl const& it) { return it.one_lower << 1; }));
}

TEST_CASE("every bit of the struct is tried, from the first to the last") {
    CHECK(!conforms_bit_field<ctl::CYCEn>([](my_ctl it) { return it.trace_en | it.cyc_en; }));
    CHECK(!conforms_bit_field<ctl::CYCEn>([](my_ctl it) { return it.rest >> 23 | it.cyc_en; }));
}

TEST_CASE("g++ reads bit-fields in constant expressions") {
#if defined(__GNUC__) && !defined(__clang__)
    CHECK(reads_constant_bit_fields);
#else
    CHECK(!reads_constant_bit_fields);
#endif
}

TEST_CASE("the members of a struct are the fields of a word") {
    CHECK(holds([] {
        return conforms_all<pointers>(
            member_is<pointers::LowerMask>([](my_pointers const& it) { return it.lower_mask; }),
            member_is<pointers::OutputOffset>(
                [](my_pointers const& it) { return it.output_offset; }),
            member_is<pointers::MaskOrTableOffset>(
                [](my_pointers const& it) { return it.table_offset; }));
    }));
    CHECK(!conforms_all<pointers>(
        member_is<pointers::LowerMask>([](my_pointers const& it) { return it.table_offset; }),
        left_out<pointers::OutputOffset, pointers::MaskOrTableOffset>()));
}

namespace {

/// A ToPA entry as Linux defines it: physical addresses of up to 52 bits.
template <unsigned BaseBits>
struct topa_entry {
    std::uint64_t end : 1;
    std::uint64_t : 1;
    std::uint64_t intr : 1;
    std::uint64_t : 1;
    std::uint64_t stop : 1;
    std::uint64_t : 1;
    std::uint64_t size : 4;
    std::uint64_t : 2;
    std::uint64_t base : BaseBits;
    std::uint64_t rest : 52 - BaseBits;
};

template <unsigned BaseBits>
constexpr auto base_conforms(max_phys_addr width) -> bool {
    return conforms_bit_field<entry::Base>([](topa_entry<BaseBits> const& it) { return it.base; },
                                           width);
}

}  // namespace

TEST_CASE("a bit-field of an address may end at MAXPHYADDR") {
    using linux_entry = topa_entry<40>;
    CHECK(holds([] { return base_conforms<40>(max_phys_addr{52}); }));
    CHECK(holds([] {
        return conforms_all<entry>(
            member_is<entry::END>([](linux_entry const& it) { return it.end; }),
            member_is<entry::INT>([](linux_entry const& it) { return it.intr; }),
            member_is<entry::STOP>([](linux_entry const& it) { return it.stop; }),
            member_is<entry::Size>([](linux_entry const& it) { return it.size; }),
            member_is<entry::Base>([](linux_entry const& it) { return it.base; },
                                   max_phys_addr{52}));
    }));
    // Without a width the address has all bits up to 63.
    CHECK(!conforms_bit_field<entry::Base>([](linux_entry const& it) { return it.base; }));
    CHECK(!base_conforms<40>(max_phys_addr{51}));
    CHECK(!base_conforms<40>(max_phys_addr{53}));
    CHECK(!base_conforms<36>(max_phys_addr{52}));
    CHECK(!base_conforms<41>(max_phys_addr{52}));
    CHECK(!conforms_bit_field<entry::Base>([](linux_entry const& it) { return it.base << 1; },
                                           max_phys_addr{52}));
}

namespace {

// As in headers for Windows: the struct of the bits has no name.
union anonymous_ctl {
    __extension__ struct {
        std::uint64_t trace_en : 1;
        std::uint64_t cyc_en : 1;
        std::uint64_t : 12;
        std::uint64_t mtc_freq : 4;
        std::uint64_t : 1;
        std::uint64_t cyc_thresh : 3;
        std::uint64_t : 42;
    };
    std::uint64_t as_number;
};

struct ctl_bits {
    std::uint64_t trace_en : 1;
    std::uint64_t cyc_en : 1;
    std::uint64_t : 62;
};
struct with_anonymous_union {
    union {
        std::uint64_t as_number;
        ctl_bits bits;
    };
};

}  // namespace

TEST_CASE("the members of an anonymous struct in a union are compared at run time") {
    auto const in_union = [](auto field, auto get) {
        return conforms_bit_field<decltype(field)>(get);
    };
    auto const mtc_freq = [](anonymous_ctl const& it) { return it.mtc_freq; };
    CHECK(in_union(ctl::MTCFreq{0}, mtc_freq) == as_on_x86);
    CHECK(in_union(ctl::TraceEn{false}, [](anonymous_ctl it) { return it.trace_en; }) == as_on_x86);
    CHECK(!in_union(ctl::CYCEn{false}, [](anonymous_ctl it) { return it.trace_en; }));
    CHECK(!in_union(ctl::CycThresh{0}, mtc_freq));
    CHECK(!in_union(ctl::CycThresh{0}, [](anonymous_ctl it) { return it.cyc_thresh; }));
    CHECK(in_union(ctl::CYCEn{false},
                   [](with_anonymous_union const& it) { return it.bits.cyc_en; }) == as_on_x86);
    CHECK(!in_union(ctl::OS{false}, [](with_anonymous_union const& it) { return it.bits.cyc_en; }));
    CHECK(!conforms_all<pointers>(
        member_is<pointers::LowerMask>([](anonymous_ctl it) { return it.as_number & 0xFF; }),
        left_out<pointers::OutputOffset, pointers::MaskOrTableOffset>()));
    CHECK(conforms_all<pointers>(
              member_is<pointers::LowerMask>([](anonymous_ctl it) { return it.as_number & 0x7F; }),
              left_out<pointers::OutputOffset, pointers::MaskOrTableOffset>()) == as_on_x86);
}
