// SPDX-License-Identifier: BSL-1.0
#include <ptspec/conformance.hpp>

#include <ptspec/packet/list.hpp>
#include <ptspec/reg/list.hpp>
#include <ptspec/topa/entry.hpp>

#include <support/check_twice.hpp>

#include <cstdint>
#include <vector>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;
using pointers = reg::ia32_rtit_output_mask_ptrs;
using topa::entry;

namespace {

// A difference stops the build in a constant expression (tests/fail/conformance.cpp), so here it
// is tested at run time only.
constexpr test::unknown at_run_time;

enum old_style { cyc_en = 2, mtc_shift = 14, mtc_mask = 0x3C000 };
enum class new_style : std::uint8_t { off, filter, stop };

}  // namespace

TEST_CASE("a mask conforms if it has exactly the bits of the field") {
    CHECK_TWICE([](auto value) {
        return conforms<ctl::TraceEn>(value(1)) && conforms<ctl::CYCEn>(value(1U << 1)) &&
               conforms<ctl::CYCEn>(value(cyc_en)) && conforms<ctl::MTCFreq>(value(0x3C000ULL)) &&
               conforms<ctl::EventEn>(value(1U << 31)) &&
               conforms<ctl::InjectPsbPmiOnEnable>(value(1ULL << 56)) &&
               conforms<reg::ia32_rtit_addr::Address>(value(~0ULL));
    });
    CHECK(!conforms<ctl::CYCEn>(at_run_time(1U)));
    CHECK(!conforms<ctl::CYCEn>(at_run_time(4U)));
    CHECK(!conforms<ctl::CYCEn>(at_run_time(0U)));
    CHECK(!conforms<ctl::CYCEn>(at_run_time(6U)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x7C000U)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x1C000U)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x38000U)));
}

TEST_CASE("a mask with a gap does not conform") {
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x24000U)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x34000U)));
}

TEST_CASE("a negative mask is sign-extended") {
    CHECK(!conforms<ctl::EventEn>(at_run_time(std::int32_t{-0x7FFF'FFFF - 1})));
    CHECK_TWICE([](auto value) { return conforms<reg::ia32_rtit_addr::Address>(value(-1)); });
}

TEST_CASE("a mask in its place has a shift") {
    CHECK_TWICE([](auto value) {
        return conforms<ctl::MTCFreq>(value(0x3C000), value(14)) &&
               conforms<ctl::MTCFreq>(value(mtc_mask), value(mtc_shift)) &&
               conforms<ctl::TraceEn>(value(1), value(0));
    });
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x3C000), at_run_time(13)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x3C000), at_run_time(-14)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0x1E000), at_run_time(14)));
    CHECK(!conforms<ctl::MTCFreq>(at_run_time(0xF), at_run_time(14)));
}

TEST_CASE("an unshifted mask has the width of the field") {
    CHECK_TWICE([](auto value) {
        return conforms<ctl::MTCFreq>(unshifted{value(0xF)}, value(14)) &&
               conforms<ctl::TraceEn>(unshifted{value(1)}, value(0));
    });
    CHECK(!conforms<ctl::MTCFreq>(unshifted{at_run_time(0xF)}, at_run_time(15)));
    CHECK(!conforms<ctl::MTCFreq>(unshifted{at_run_time(0x1F)}, at_run_time(14)));
    CHECK(!conforms<ctl::MTCFreq>(unshifted{at_run_time(0x7)}, at_run_time(14)));
    CHECK(!conforms<ctl::MTCFreq>(unshifted{at_run_time(0x3C000)}, at_run_time(14)));
    CHECK(!conforms<ctl::MTCFreq>(unshifted{at_run_time(0)}, at_run_time(14)));
}

TEST_CASE("bit numbers conform if they are those of the field") {
    CHECK_TWICE([](auto value) {
        return conforms<ctl::MTCFreq>(at_bits{value(17), value(14)}) &&
               conforms<ctl::MTCFreq>(at_bits{value(17), value(mtc_shift)}) &&
               conforms<ctl::CYCEn>(at_bits{value(1)}) &&
               conforms<packet::psb::High>(at_bits{value(127), value(64)});
    });
    CHECK(!conforms<ctl::MTCFreq>(at_bits{at_run_time(18), at_run_time(14)}));
    CHECK(!conforms<ctl::MTCFreq>(at_bits{at_run_time(17), at_run_time(13)}));
    CHECK(!conforms<ctl::MTCFreq>(at_bits{at_run_time(14), at_run_time(17)}));
    CHECK(!conforms<ctl::MTCFreq>(at_bits{at_run_time(14)}));
    CHECK(!conforms<ctl::CYCEn>(at_bits{at_run_time(2)}));
    CHECK(!conforms<ctl::CYCEn>(at_bits{at_run_time(-1)}));
}

TEST_CASE("the mask of an address may end at MAXPHYADDR") {
    CHECK_TWICE([](auto value) {
        return conforms<entry::Base>(value(0x000F'FFFF'FFFF'F000ULL), max_phys_addr{value(52U)}) &&
               conforms<entry::Base>(value(0x0000'007F'FFFF'F000ULL), max_phys_addr{value(39U)}) &&
               conforms<entry::Base>(value(0xFFFF'FFFF'FFFF'F000ULL)) &&
               conforms<reg::ia32_rtit_output_base::BasePhysAddr>(value(0x000F'FFFF'FFFF'FF80ULL),
                                                                  max_phys_addr{value(52U)});
    });
    CHECK(!conforms<entry::Base>(at_run_time(0x000F'FFFF'FFFF'F000ULL)));
    CHECK(!conforms<entry::Base>(at_run_time(0x000F'FFFF'FFFF'F000ULL),
                                 max_phys_addr{at_run_time(51U)}));
    CHECK(!conforms<entry::Base>(at_run_time(0x000F'FFFF'FFFF'E000ULL), max_phys_addr{}));
}

TEST_CASE("an address that ends at MAXPHYADDR is defined in every form that a field has") {
    CHECK_TWICE([](auto value) {
        auto const width = max_phys_addr{value(52U)};
        return conforms<entry::Base>(value(0x000F'FFFF'FFFF'F000ULL), value(12), width) &&
               conforms<entry::Base>(unshifted{value(0xFF'FFFF'FFFFULL)}, value(12), width) &&
               conforms<entry::Base>(at_bits{value(51), value(12)}, width);
    });
    constexpr max_phys_addr width{52};
    CHECK(!conforms<entry::Base>(at_run_time(0x000F'FFFF'FFFF'F000ULL), at_run_time(13), width));
    CHECK(!conforms<entry::Base>(at_run_time(0x0007'FFFF'FFFF'F000ULL), at_run_time(12), width));
    CHECK(
        !conforms<entry::Base>(unshifted{at_run_time(0xFF'FFFF'FFFFULL)}, at_run_time(13), width));
    CHECK(!conforms<entry::Base>(unshifted{at_run_time(0xF'FFFF'FFFFULL)}, at_run_time(12), width));
    CHECK(!conforms<entry::Base>(at_bits{at_run_time(50), at_run_time(12)}, width));
    CHECK(!conforms<entry::Base>(at_bits{at_run_time(51), at_run_time(11)}, width));
    CHECK(!conforms<entry::Base>(at_bits{at_run_time(63), at_run_time(12)}, width));
}

TEST_CASE("a value of a field is compared in its place, or as an encoding") {
    CHECK_TWICE([](auto value) {
        return conforms_value(ctl::PSBFreq{3}, value(0x0300'0000)) &&
               conforms_value(ctl::PSBFreq{3}, unshifted{value(3)}) &&
               conforms_value(ctl::ToPA{true}, value(0x100)) &&
               conforms_value(ctl::ADDR0_CFG{reg::addr_cfg::trace_stop}, value(2ULL << 32)) &&
               conforms_value(ctl::ADDR0_CFG{reg::addr_cfg::filter},
                              unshifted{value(new_style::filter)}) &&
               conforms_value(entry::Size{topa::region_size::size_64K}, value(0x100)) &&
               conforms_value(entry::Base{0x5000}, value(0x5000));
    });
    CHECK(!conforms_value(ctl::PSBFreq{3}, at_run_time(0x0200'0000)));
    CHECK(!conforms_value(ctl::PSBFreq{3}, at_run_time(0x0180'0000)));
    CHECK(!conforms_value(ctl::PSBFreq{3}, at_run_time(3)));
    CHECK(!conforms_value(ctl::PSBFreq{3}, unshifted{at_run_time(0x0300'0000)}));
    CHECK(!conforms_value(ctl::PSBFreq{3}, unshifted{at_run_time(19)}));
    CHECK(!conforms_value(ctl::ToPA{false}, at_run_time(0x100)));
}

TEST_CASE("an enumerator has the number of another one") {
    CHECK_TWICE([](auto value) {
        return conforms_value(reg::addr_cfg::trace_stop, value(2)) &&
               conforms_value(reg::addr_cfg::trace_stop, value(new_style::stop));
    });
    CHECK(!conforms_value(reg::addr_cfg::trace_stop, at_run_time(1)));
    CHECK(!conforms_value(reg::addr_cfg::trace_stop, at_run_time(new_style::filter)));
}

TEST_CASE("conforms_all takes every field once, in any order and in any form") {
    CHECK_TWICE([](auto value) {
        return conforms_all<pointers>(
                   field_is<pointers::OutputOffset>(unshifted{value(0xFFFF'FFFFU)}, value(32)),
                   field_is<pointers::LowerMask>(value(0x7F)),
                   field_is<pointers::MaskOrTableOffset>(at_bits{value(31), value(7)})) &&
               conforms_all<status>(
                   field_is<status::FilterEn>(value(1)), field_is<status::ContextEn>(value(2)),
                   field_is<status::TriggerEn>(value(4)), field_is<status::Error>(value(0x10)),
                   field_is<status::Stopped>(value(0x20)),
                   left_out<status::PendPSB, status::PendToPAPMI>(),
                   field_is<status::PacketByteCnt>(value(0x0001'FFFF'0000'0000), value(32)));
    });
    CHECK(!conforms_all<pointers>(field_is<pointers::LowerMask>(at_run_time(0xFF)),
                                  left_out<pointers::MaskOrTableOffset, pointers::OutputOffset>()));
    CHECK(!conforms_all<pointers>(left_out<pointers::MaskOrTableOffset, pointers::OutputOffset>(),
                                  field_is<pointers::LowerMask>(at_run_time(0xFF))));
}

TEST_CASE("conforms_all takes the fields of ToPA entries and of packets") {
    CHECK_TWICE([](auto value) {
        return conforms_all<entry>(
                   field_is<entry::END>(value(1)), field_is<entry::INT>(value(4)),
                   field_is<entry::STOP>(value(0x10)), field_is<entry::Size>(value(0x3C0)),
                   field_is<entry::Base>(value(0x000F'FFFF'FFFF'F000), max_phys_addr{})) &&
               conforms_all<packet::ptw>(
                   field_is<packet::ptw::PayloadBytes>(at_bits{value(14), value(13)}),
                   field_is<packet::ptw::IP>(value(0x8000)));
    });
}

TEST_CASE("the address of a register, a VMCS field and a word in memory") {
    CHECK_TWICE([](auto value) {
        return conforms_address<ctl>(value(0x570)) &&
               conforms_address<reg::ia32_rtit_addr>(value(0x583), value(1), reg::range_end::b) &&
               conforms_address<reg::vmcs_guest_ia32_rtit_ctl>(value(0x2814)) &&
               conforms_address<reg::xsave_header_xcomp_bv>(value(0x208));
    });
    CHECK(!conforms_address<ctl>(at_run_time(0x571)));
    CHECK(!conforms_address<reg::ia32_rtit_addr>(at_run_time(0x582), 1, reg::range_end::b));
    CHECK(!conforms_address<reg::vmcs_guest_ia32_rtit_ctl>(at_run_time(0x2815)));
    CHECK(!conforms_address<reg::xsave_header_xcomp_bv>(at_run_time(0x200)));
}

TEST_CASE("the leaf and the sub-leaf of a CPUID word") {
    CHECK_TWICE([](auto value) {
        return conforms_leaf<reg::cpuid_14h_1_eax>(value(0x14)) &&
               conforms_leaf<reg::cpuid_14h_1_eax>(value(0x14), value(1)) &&
               conforms_leaf<reg::cpuid_80000008h_eax>(value(0x8000'0008));
    });
    CHECK(!conforms_leaf<reg::cpuid_14h_1_eax>(at_run_time(0x15)));
    CHECK(!conforms_leaf<reg::cpuid_14h_1_eax>(at_run_time(0x15), 1));
    CHECK(!conforms_leaf<reg::cpuid_14h_1_eax>(0x14, at_run_time(0)));
}

TEST_CASE("an opcode is a number, a number with its mask, or a part of it") {
    CHECK_TWICE([](auto value) {
        return conforms_opcode<packet::pad>(value(0)) &&
               conforms_opcode<packet::cbr>(value(0x0302)) &&
               conforms_opcode<packet::tip>(value(0x0D), value(0x1F)) &&
               conforms_opcode<packet::tnt_short>(value(0), value(1)) &&
               conforms_opcode<packet::mode_tsx>(value(0x2099), value(0xE0FF)) &&
               conforms_opcode<packet::ptw>(value(0x1202), value(0x1FFF)) &&
               conforms_opcode<packet::psb>(value(0x8202), value(0xFFFF)) &&
               conforms_opcode<packet::cbr::Opcode>(value(0x03)) &&
               conforms_opcode<packet::mode_tsx::Leaf>(value(1));
    });
    CHECK(!conforms_opcode<packet::cbr>(at_run_time(0x0203)));
    CHECK(!conforms_opcode<packet::tip>(at_run_time(0x11), at_run_time(0x1F)));
    CHECK(!conforms_opcode<packet::tip>(at_run_time(0x0D), at_run_time(0xFF)));
    CHECK(!conforms_opcode<packet::tip>(at_run_time(0x2D), at_run_time(0x1F)));
    CHECK(!conforms_opcode<packet::mode_tsx>(at_run_time(0x0099), at_run_time(0xE0FF)));
    CHECK(!conforms_opcode<packet::cbr::Opcode>(at_run_time(0x02)));
}

TEST_CASE("an opcode is bytes, up to the whole packet") {
    CHECK_TWICE([](auto value) {
        byte_array<16> psb;
        for (unsigned i = 0; i < 16; i += 2) {
            psb.data()[i] = value(std::uint8_t{0x02});
            psb.data()[i + 1] = value(std::uint8_t{0x82});
        }
        byte_view const whole = psb;
        return conforms_opcode<packet::psb>(whole) &&
               conforms_opcode<packet::psb>(whole.first(2)) &&
               conforms_opcode<packet::psb>({0x02, 0x82}) && conforms_opcode<packet::pad>({0x00}) &&
               conforms_opcode<packet::cbr>({0x02, 0x03, 0x00, 0x00}) &&
               conforms_opcode<packet::tip>({0x0D});
    });
    auto bytes = std::vector<std::uint8_t>{0x02, 0x03, 0x00, 0x00};
    CHECK(conforms_opcode<packet::cbr>(bytes));
    CHECK(!conforms_opcode<packet::cbr>(byte_view{bytes}.first(1)));
    CHECK(!conforms_opcode<packet::cbr>(byte_view{bytes}.first(0)));
    bytes.push_back(0);
    CHECK(!conforms_opcode<packet::cbr>(bytes));
    bytes = {0x03, 0x03, 0x00, 0x00};
    CHECK(!conforms_opcode<packet::cbr>(bytes));
    bytes = {0x02, 0x83, 0x00, 0x00};
    CHECK(!conforms_opcode<packet::cbr>(bytes));
    bytes = {0x02, 0x03, 0x00, 0x01};
    CHECK(!conforms_opcode<packet::cbr>(bytes));
}

TEST_CASE("the length of a packet") {
    CHECK_TWICE([](auto value) {
        return conforms_length<packet::psb>(value(16)) && conforms_length<packet::pad>(value(1)) &&
               conforms_length<packet::tsc>(value(8)) &&
               conforms_length<packet::tip>(value(1), value(9)) &&
               conforms_length<packet::ptw>(value(6), value(10)) &&
               conforms_length<packet::bip>(value(5), value(9)) &&
               conforms_length<packet::cyc>(value(1), value(10)) &&
               conforms_length<packet::mtc>(value(2), value(2));
    });
    CHECK(!conforms_length<packet::psb>(at_run_time(2)));
    CHECK(!conforms_length<packet::tip>(at_run_time(2), 9));
    CHECK(!conforms_length<packet::tip>(1, at_run_time(7)));
    CHECK(!conforms_length<packet::bip>(at_run_time(1), 9));
}

namespace {

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
