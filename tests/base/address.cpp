// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/address.hpp>

#include <support/check_twice.hpp>

#include <initializer_list>
#include <type_traits>

using namespace ptspec;

namespace {

constexpr auto all = ~uint64_t{0};

}  // namespace

TEST_CASE("an address is aligned if no bit below the size is set") {
    CHECK_TWICE([](auto value) {
        return is_aligned(value(uint64_t{0}), 4096) && is_aligned(value(uint64_t{0x1000}), 4096) &&
               !is_aligned(value(uint64_t{0x1001}), 4096) &&
               !is_aligned(value(uint64_t{0x1FFF}), 4096) &&
               !is_aligned(value(uint64_t{0x800}), 4096) && is_aligned(value(uint64_t{7}), 1) &&
               is_aligned(value(uint64_t{0xFFFF'FFFF'FFFF'F000}), 4096);
    });
    CHECK_TWICE([](auto value) {
        return is_aligned(value(uint64_t{0x8000'0000'0000'0000}), uint64_t{1} << 63) &&
               !is_aligned(value(uint64_t{0x4000'0000'0000'0000}), uint64_t{1} << 63);
    });
}

TEST_CASE("align_down returns the next lower multiple, or the address if it is a multiple") {
    CHECK_TWICE([](auto value) {
        return align_down(value(uint64_t{0x1FFF}), 4096) == 0x1000 &&
               align_down(value(uint64_t{0x1000}), 4096) == 0x1000 &&
               align_down(value(uint64_t{0x0FFF}), 4096) == 0 && align_down(value(all), 1) == all &&
               align_down(value(all), 4096) == 0xFFFF'FFFF'FFFF'F000 &&
               align_down(value(all), uint64_t{1} << 63) == 0x8000'0000'0000'0000;
    });
}

TEST_CASE("sign extension copies the top bit of the width to all higher bits") {
    CHECK_TWICE([](auto value) {
        return sign_extended(value(uint64_t{0x7FFF}), 16) == 0x7FFF &&
               sign_extended(value(uint64_t{0x8000}), 16) == 0xFFFF'FFFF'FFFF'8000 &&
               sign_extended(value(uint64_t{0xABCD'0001}), 16) == 1 &&
               sign_extended(value(uint64_t{0x1'8000}), 16) == 0xFFFF'FFFF'FFFF'8000;
    });
    CHECK_TWICE([](auto value) {
        return sign_extended(value(uint64_t{0x7FFF'FFFF'FFFF}), 48) == 0x7FFF'FFFF'FFFF &&
               sign_extended(value(uint64_t{0x8000'0000'0000}), 48) == 0xFFFF'8000'0000'0000 &&
               sign_extended(value(uint64_t{0x1234'8000'0000'0000}), 48) == 0xFFFF'8000'0000'0000;
    });
    CHECK_TWICE([](auto value) {
        return sign_extended(value(uint64_t{0}), 1) == 0 &&
               sign_extended(value(uint64_t{1}), 1) == all &&
               sign_extended(value(uint64_t{2}), 1) == 0 && sign_extended(value(all), 64) == all &&
               sign_extended(value(uint64_t{0x7FFF'FFFF'FFFF'FFFF}), 64) == 0x7FFF'FFFF'FFFF'FFFF;
    });
}

TEST_CASE("canonical addresses of 48 bits") {
    CHECK_TWICE([](auto value) {
        return is_canonical(value(uint64_t{0}), 48) &&
               is_canonical(value(uint64_t{0x0000'7FFF'FFFF'FFFF}), 48) &&
               !is_canonical(value(uint64_t{0x0000'8000'0000'0000}), 48) &&
               !is_canonical(value(uint64_t{0xFFFF'7FFF'FFFF'FFFF}), 48) &&
               is_canonical(value(uint64_t{0xFFFF'8000'0000'0000}), 48) &&
               is_canonical(value(all), 48) && !is_canonical(value(uint64_t{1} << 63), 48);
    });
}

TEST_CASE("canonical addresses of 57 bits") {
    CHECK_TWICE([](auto value) {
        return is_canonical(value(uint64_t{0x0000'8000'0000'0000}), 57) &&
               is_canonical(value(uint64_t{0x00FF'FFFF'FFFF'FFFF}), 57) &&
               !is_canonical(value(uint64_t{0x0100'0000'0000'0000}), 57) &&
               !is_canonical(value(uint64_t{0xFEFF'FFFF'FFFF'FFFF}), 57) &&
               is_canonical(value(uint64_t{0xFF00'0000'0000'0000}), 57) &&
               is_canonical(value(all), 57) && is_canonical(value(uint64_t{1} << 63), 64);
    });
}

TEST_CASE("a physical address is below 2^MAXPHYADDR") {
    CHECK_TWICE([](auto value) {
        for (unsigned const bits : {36U, 39U, 46U, 52U}) {
            auto const width = value(max_phys_addr{bits});
            uint64_t const limit = uint64_t{1} << bits;
            if (!width.contains(0) || !width.contains(limit - 1) || width.contains(limit) ||
                width.contains(limit << 1) || width.contains(uint64_t{1} << 63)) {
                return false;
            }
        }
        return true;
    });
    CHECK_TWICE([](auto value) {
        auto const width = value(max_phys_addr{39});
        return width.contains(0x7F'FFFF'FFFF) && !width.contains(0x80'0000'0000) &&
               value(max_phys_addr{64}).contains(all);
    });
}

TEST_CASE("MAXPHYADDR is 52 by default, its maximum") {
    CHECK_TWICE([](auto value) {
        auto const width = value(max_phys_addr{});
        return width.bits == 52 && width == max_phys_addr{52} && width != max_phys_addr{46} &&
               width.contains(0xF'FFFF'FFFF'FFFF) && !width.contains(0x10'0000'0000'0000);
    });
}

// ------------------------------------------------------------------------------------ the types

namespace {

template <class To, class... From>
constexpr bool none_converts_to = !(std::is_constructible_v<To, From> || ...);

}  // namespace

TEST_CASE("addresses of different kinds and the index of an MSR do not convert into each other") {
    CHECK(none_converts_to<phys_addr, cs_offset, packet_ip, msr_index>);
    CHECK(none_converts_to<cs_offset, phys_addr, packet_ip, msr_index>);
    CHECK(none_converts_to<packet_ip, phys_addr, cs_offset, msr_index>);
    CHECK(none_converts_to<msr_index, phys_addr, cs_offset, packet_ip>);
    CHECK(none_converts_to<uint64_t, phys_addr, cs_offset, packet_ip, msr_index>);
}

TEST_CASE("integers convert into them, as a copy of an integer costs") {
    CHECK(std::is_convertible_v<int, phys_addr>);
    CHECK(std::is_convertible_v<unsigned char, phys_addr>);
    CHECK(std::is_convertible_v<unsigned long long, phys_addr>);
    CHECK(std::is_convertible_v<int, msr_index>);
    CHECK(std::is_convertible_v<uint16_t, msr_index>);
    CHECK(std::is_convertible_v<uint32_t, msr_index>);
    CHECK(std::is_trivially_copyable_v<phys_addr>);
    CHECK(std::is_trivially_copyable_v<msr_index>);
    CHECK(std::is_trivially_default_constructible_v<phys_addr>);
    CHECK(std::is_trivially_default_constructible_v<msr_index>);
    CHECK(sizeof(phys_addr) == 8);
    CHECK(sizeof(msr_index) == 4);
}

TEST_CASE("an integer of 64 bits is the value of an MSR, not its index") {
    CHECK(none_converts_to<msr_index, uint64_t, int64_t>);
}

namespace {

template <phys_addr Address, msr_index Index>
constexpr auto as_arguments() -> uint64_t {
    return Address.value + Index.value;
}

}  // namespace

TEST_CASE("they can be template arguments") { CHECK(as_arguments<0x1000, 0x570>() == 0x1570); }

TEST_CASE("physical addresses have a distance and an order") {
    CHECK_TWICE([](auto value) {
        phys_addr const base = value(uint64_t{0x1'0000'0000});
        phys_addr const end = base + 0x1000;
        phys_addr at = base;
        at += 0x10;
        return base.value == 0x1'0000'0000 && end == 0x1'0000'1000 && end - base == 0x1000 &&
               at - base == 0x10 && base - end == ~uint64_t{0xFFF} && base != end;
    });
    CHECK_TWICE([](auto value) {
        phys_addr const low = value(uint64_t{0x7FFF'FFFF'FFFF'FFFF});
        phys_addr const high = value(uint64_t{0x8000'0000'0000'0000});
        phys_addr const same = low;
        return low < high && !(high < low) && !(low < same) && low <= high && low <= same &&
               !(high <= low) && high > low && !(low > high) && !(low > same) && high >= low &&
               same >= low && !(low >= high);
    });
}

TEST_CASE("a physical address is aligned as its number is") {
    CHECK_TWICE([](auto value) {
        phys_addr const address = value(uint64_t{0xF'0000'1FFF});
        return !is_aligned(address, 4096) && align_down(address, 4096) == 0xF'0000'1000 &&
               is_aligned(align_down(address, 4096), 4096) && is_aligned(address, 1);
    });
}

TEST_CASE("indexes of MSRs are compared") {
    CHECK_TWICE([](auto value) {
        msr_index const ctl = value(0x570U);
        msr_index const status = value(0x571U);
        msr_index const high = value(0xC000'0080U);
        return ctl == 0x570 && ctl != status && ctl == msr_index{ctl} && high != ctl &&
               high.value == 0xC000'0080;
    });
}

TEST_CASE("an address or an index without an initialiser in braces is 0") {
    CHECK_TWICE([](auto value) {
        struct pair {
            phys_addr address{};
            msr_index index{};
        };
        pair pairs[4];
        pairs[value(2U)] = {0x1000, 0x570};
        return pairs[0].address == 0 && pairs[3].index == 0 && pairs[2].address == 0x1000 &&
               pairs[2].index == 0x570;
    });
}
