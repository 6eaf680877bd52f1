// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/address.hpp>

#include <support/check_twice.hpp>

#include <initializer_list>

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

TEST_CASE("a power of two has exactly one bit set") {
    CHECK_TWICE([](auto value) {
        for (unsigned bit = 0; bit < 64; ++bit) {
            if (!is_power_of_two(value(uint64_t{1}) << bit)) { return false; }
        }
        return !is_power_of_two(value(uint64_t{0})) && !is_power_of_two(value(uint64_t{3})) &&
               !is_power_of_two(value(uint64_t{6})) && !is_power_of_two(value(all)) &&
               !is_power_of_two(value(uint64_t{0x8000'0000'0000'0001}));
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
