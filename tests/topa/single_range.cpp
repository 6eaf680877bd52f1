// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/single_range.hpp>

#include <support/check_twice.hpp>

#include <initializer_list>

using namespace ptspec;
using base_register = reg::ia32_rtit_output_base;
using pointers = reg::ia32_rtit_output_mask_ptrs;

// ------------------------------------------------------------------------------------ the MSRs

TEST_CASE("the mask of a single range is bits 31:0, and its low seven bits are ones (OUT-020)") {
    CHECK_TWICE([](auto value) {
        return single_range::mask_of(pointers{value(uint64_t{0x0000'0100'001F'FFFF})}) ==
                   0x1F'FFFF &&
               single_range::mask_of(pointers{value(uint64_t{0})}) == 0x7F &&
               single_range::mask_of(pointers{value(uint64_t{0xFFFF'FFFF'0000'0000})}) == 0x7F &&
               single_range::mask_of(pointers{value(uint64_t{0xFFFF'FFFF})}) == 0xFFFF'FFFF;
    });
    CHECK_TWICE([](auto value) {  // 2^k bytes are written as MP[31:7] = 2^(k-7)-1
        for (unsigned k = 7; k <= 32; ++k) {
            uint64_t const field = (value(uint64_t{1}) << (k - 7)) - 1;
            auto const it = pointers{}.with(pointers::MaskOrTableOffset{wrapped{field}});
            if (single_range::mask_of(it) + 1 != uint64_t{1} << k) { return false; }
        }
        return true;
    });
}

TEST_CASE("a single range has 128 bytes to 4 GB (OUT-141)") {
    CHECK_TWICE([](auto value) {
        return single_range::mask_of(pointers{value(uint64_t{0})}) + 1 == 128 &&
               single_range::mask_of(pointers{value(uint64_t{0xFFFF'FFFF})}) + 1 == 0x1'0000'0000;
    });
}

namespace {

constexpr auto stored_at(uint64_t base, uint64_t mask_ptrs) -> phys_addr {
    return single_range::trace_store_phys_addr(base_register{base}, pointers{mask_ptrs});
}
constexpr auto advanced_pointers(uint64_t mask_ptrs, uint64_t bytes) -> uint64_t {
    return single_range::advanced(pointers{mask_ptrs}, bytes).raw;
}
constexpr auto bytes_left(uint64_t mask_ptrs) -> uint64_t {
    return single_range::bytes_left(pointers{mask_ptrs});
}
constexpr auto verdict(uint64_t base, uint64_t mask_ptrs) -> rule {
    return single_range::broken_rule(base_register{base}, pointers{mask_ptrs});
}

}  // namespace

TEST_CASE("a byte is stored at (base & ~mask) + (offset & mask) (OUT-021)") {
    CHECK_TWICE([](auto value) {
        return stored_at(value(uint64_t{0x10'0000}), value(uint64_t{0x0000'0010'0000'0FFF})) ==
                   0x10'0010 &&
               stored_at(value(uint64_t{0x10'0880}), value(uint64_t{0x0000'0010'0000'0FFF})) ==
                   0x10'0010 &&
               stored_at(value(uint64_t{0x10'0000}), value(uint64_t{0x0000'1234'0000'0FFF})) ==
                   0x10'0234 &&
               stored_at(value(uint64_t{0x1'0000'0000}), value(uint64_t{0xFFFF'FFFF'FFFF'FFFF})) ==
                   0x1'FFFF'FFFF;
    });
}

TEST_CASE("with an aligned base the address is base plus offset (OUT-027)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t offset = 0; offset <= 0xFFF; offset += 0x111) {
            auto const at = stored_at(value(uint64_t{0x7F'0000'0000}), offset << 32 | 0xFFF);
            if (at != 0x7F'0000'0000 + offset) { return false; }
        }
        return true;
    });
}

TEST_CASE("the offset advances and wraps at the end of the range (OUT-021)") {
    CHECK_TWICE([](auto value) {
        return advanced_pointers(value(uint64_t{0x0000'0FFE'0000'0FFF}), 1) ==
                   0x0000'0FFF'0000'0FFF &&
               advanced_pointers(value(uint64_t{0x0000'0FFF'0000'0FFF}), 1) ==
                   0x0000'0000'0000'0FFF &&
               advanced_pointers(value(uint64_t{0x0000'0FF0'0000'0FFF}), 0x20) ==
                   0x0000'0010'0000'0FFF &&
               advanced_pointers(value(uint64_t{0x0000'0000'0000'007F}), 0x80) == 0x7F &&
               advanced_pointers(value(uint64_t{0x0000'0005'0000'007F}), 0) ==
                   0x0000'0005'0000'007F &&
               advanced_pointers(value(uint64_t{0xFFFF'FFFF'FFFF'FFFF}), 2) ==
                   0x0000'0001'FFFF'FFFF;
    });
    CHECK_TWICE([](auto value) {  // n bytes are n times one byte
        auto const start = value(uint64_t{0x0000'0070'0000'007F});
        auto stepwise = start;
        for (uint64_t bytes = 0; bytes < 300; ++bytes, stepwise = advanced_pointers(stepwise, 1)) {
            if (advanced_pointers(start, bytes) != stepwise) { return false; }
        }
        return true;
    });
}

TEST_CASE("a range is never full: each lap uses the same addresses (OUT-025,026)") {
    CHECK_TWICE([](auto value) {
        uint64_t at = value(uint64_t{0x0000'0000'0000'00FF});
        for (uint64_t byte = 0; byte < 3 * 0x100; ++byte, at = advanced_pointers(at, 1)) {
            if (stored_at(0xF000'0000, at) != 0xF000'0000 + byte % 0x100 || bytes_left(at) == 0) {
                return false;
            }
        }
        return at == 0xFF;
    });
}

TEST_CASE("only the offset changes (OUT-028)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t const mask : {0x7FU, 0xFFFU, 0xFFFF'FFFFU}) {
            for (uint64_t const bytes : {1U, 0x80U, 0xFFFF'FFFFU}) {
                if ((advanced_pointers(value(mask), bytes) & 0xFFFF'FFFF) != mask) { return false; }
            }
        }
        return true;
    });
}

TEST_CASE("bytes_left() counts the bytes up to the end of the range (OUT-021,024)") {
    CHECK_TWICE([](auto value) {
        return bytes_left(value(uint64_t{0x0000'0000'0000'0FFF})) == 0x1000 &&
               bytes_left(value(uint64_t{0x0000'0001'0000'0FFF})) == 0xFFF &&
               bytes_left(value(uint64_t{0x0000'0FFF'0000'0FFF})) == 1 &&
               bytes_left(value(uint64_t{0x0000'1000'0000'0FFF})) == 0 &&
               bytes_left(value(uint64_t{0xFFFF'FFFF'0000'0FFF})) == 0 &&
               bytes_left(value(uint64_t{0x0000'007F'0000'0000})) == 1 &&
               bytes_left(value(uint64_t{0x0000'0000'FFFF'FFFF})) == 0x1'0000'0000 &&
               bytes_left(value(uint64_t{0xFFFF'FFFF'FFFF'FFFF})) == 1;
    });
}

// ------------------------------------------------------------------------------------ the rules

TEST_CASE("the mask of a single range is contiguous from bit 0 (OUT-022)") {
    CHECK_TWICE([](auto value) {
        return verdict(0x10'0000, value(uint64_t{0x17F})) == rule::OUT_022 &&  // OC-05
               verdict(0, value(uint64_t{0x8000'007F})) == rule::OUT_022 &&
               verdict(0, value(uint64_t{0x1FF})) == rule::none &&
               verdict(0, value(uint64_t{0x80})) == rule::none &&
               verdict(0, value(uint64_t{0x100})) == rule::OUT_022;
    });
    CHECK_TWICE([](auto value) {
        for (unsigned size = 7; size <= 32; ++size) {
            if (verdict(0, (value(uint64_t{1}) << size) - 1) != rule::none) { return false; }
        }
        return true;
    });
}

TEST_CASE("the base of a single range is aligned to its size, bit by bit (OUT-023, REG-235)") {
    CHECK_TWICE([](auto value) {
        return verdict(value(uint64_t{0x80}), 0xFF) == rule::OUT_023 &&  // OC-04, OC-09
               verdict(value(uint64_t{0x18'0000}), 0xF'FFFF) == rule::OUT_023 &&
               verdict(value(uint64_t{0x80}), 0x7F) == rule::none &&
               verdict(value(uint64_t{0xF80}), 0x7F) == rule::none &&
               verdict(value(uint64_t{0x18'0000}), 0x7'FFFF) == rule::none &&
               verdict(value(uint64_t{0x8000'0000}), 0xFFFF'FFFF) == rule::OUT_023;
    });
}

TEST_CASE("the offset is inside the range, up to its last byte (OUT-024)") {
    CHECK_TWICE([](auto value) {
        return verdict(0x10'0000, value(uint64_t{0x0000'1000'0000'0FFF})) == rule::OUT_024 &&
               verdict(0x10'0000, value(uint64_t{0x0000'0FFF'0000'0FFF})) == rule::none &&
               verdict(0, value(uint64_t{0x0000'007F'0000'007F})) == rule::none &&
               verdict(0, value(uint64_t{0x0000'0080'0000'007F})) == rule::OUT_024 &&
               verdict(0, value(uint64_t{0x0000'007F'0000'0000})) == rule::none &&
               verdict(0, value(uint64_t{0xFFFF'FFFF'FFFF'FFFF})) == rule::none;
    });
}

TEST_CASE("of several broken rules the one with the lowest number is returned") {
    CHECK_TWICE([](auto value) {
        return verdict(value(uint64_t{0x80}), 0xFFFF'FFFF'0000'017F) == rule::OUT_022 &&
               verdict(value(uint64_t{0x80}), 0xFFFF'FFFF'0000'00FF) == rule::OUT_023;
    });
}

namespace {

/// The broken rules, in the order in which they are reported.
struct rules {
    rule reported[8] = {};
    size_t count = 0;

    constexpr void operator()(rule broken) noexcept { reported[count++] = broken; }

    template <class... Rules>
    [[nodiscard]] constexpr auto are(Rules... wanted) const noexcept -> bool {
        size_t at = 0;
        return count == sizeof...(Rules) && (... && (reported[at++] == wanted));
    }
};

constexpr auto all_of(uint64_t base, uint64_t mask_ptrs) -> rules {
    rules found;
    single_range::find_broken_rules(base_register{base}, pointers{mask_ptrs}, found);
    return found;
}
constexpr auto all_of(single_range::region wanted, unsigned width = 39) -> rules {
    rules found;
    single_range::find_broken_rules(wanted, max_phys_addr{width}, found);
    return found;
}
constexpr auto error_of(single_range::region wanted, unsigned width = 39) -> rule {
    auto const got = single_range::build(wanted, max_phys_addr{width});
    bool const unchanged = got.base.raw == 0 && got.pointers.raw == 0x7F;
    return got || !unchanged ? rule::none : got.broken;
}

}  // namespace

TEST_CASE("every broken rule of a single range is reported (OUT-022..024,029)") {
    CHECK_TWICE([](auto value) {
        return all_of(value(uint64_t{0}), 0x7F).are() &&
               all_of(value(uint64_t{0x80}), 0xFFFF'FFFF'0000'017F)
                   .are(rule::OUT_022, rule::OUT_024) &&
               all_of(value(uint64_t{0x100}), 0x17F).are(rule::OUT_022, rule::OUT_023) &&
               all_of(value(uint64_t{0x100}), 0xFFFF'FFFF'0000'017F)
                   .are(rule::OUT_022, rule::OUT_023, rule::OUT_024) &&
               all_of(value(uint64_t{0x80}), 0x0000'0100'0000'00FF)
                   .are(rule::OUT_023, rule::OUT_024);
    });
}

// ------------------------------------------------------------------------------------ requests

TEST_CASE("a single range of 2 MB at 600000, from byte 100 on (OUT-020, PRG-128)") {
    CHECK_TWICE([](auto value) {  // OC-49
        auto const got = single_range::build(
            {.base = value(uint64_t{0x60'0000}), .bytes = 0x20'0000, .offset = 0x100});
        return got && got.broken == rule::none && got.base.raw == 0x60'0000 &&
               got.pointers.raw == 0x0000'0100'001F'FFFF;
    });
}

TEST_CASE("a region of every size that a single range can have is built (OUT-020,141)") {
    CHECK_TWICE([](auto value) {
        for (unsigned k = 7; k <= 32; ++k) {
            uint64_t const bytes = value(uint64_t{1}) << k;
            auto const got = single_range::build(
                {.base = 3 * bytes, .bytes = bytes, .offset = bytes - 1});
            if (!got || got.base.raw != 3 * bytes ||
                got.pointers.raw != ((bytes - 1) << 32 | (bytes - 1)) ||
                verdict(got.base.raw, got.pointers.raw) != rule::none) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("a default request is empty, and a default result has no rule and no MSR values") {
    CHECK_TWICE([](auto value) {
        auto const it = value(single_range::region{});
        auto const unchanged = value(single_range::built{});
        return it.base == 0 && it.bytes == 0 && it.offset == 0 && unchanged &&
               unchanged.broken == rule::none && unchanged.base.raw == 0;
    });
}

TEST_CASE("a region smaller than 128 bytes or larger than 4 GB is rejected (OUT-020,141)") {
    CHECK_TWICE([](auto value) {
        return error_of({.bytes = value(uint64_t{0})}) == rule::OUT_020 &&
               error_of({.bytes = value(uint64_t{64})}) == rule::OUT_020 &&
               error_of({.bytes = value(uint64_t{127})}) == rule::OUT_020 &&
               error_of({.bytes = value(uint64_t{128})}) == rule::none &&
               error_of({.bytes = value(uint64_t{0x1'0000'0000})}) == rule::none &&
               error_of({.bytes = value(uint64_t{0x1'0000'0001})}) == rule::OUT_020 &&
               error_of({.bytes = value(uint64_t{0x2'0000'0000})}) == rule::OUT_020;
    });
    CHECK_TWICE([](auto value) {  // no other rule is reported for an empty region
        return all_of({.base = value(uint64_t{0x80}), .bytes = 0, .offset = 1}).are(rule::OUT_020);
    });
}

TEST_CASE("an illegal region is rejected by its rule (OUT-022..024)") {
    CHECK_TWICE([](auto value) {
        return error_of({.bytes = value(uint64_t{0x300})}) == rule::OUT_022 &&
               error_of({.bytes = value(uint64_t{0xFFFF'FFFF})}) == rule::OUT_022 &&
               error_of({.base = value(uint64_t{0x80}), .bytes = 0x100}) == rule::OUT_023 &&
               error_of({.base = value(uint64_t{0x1'0040}), .bytes = 0x80}) == rule::OUT_023 &&
               error_of({.base = 0x80, .bytes = value(uint64_t{0x80})}) == rule::none &&
               error_of({.bytes = 0x100, .offset = value(uint64_t{0x100})}) == rule::OUT_024 &&
               error_of({.bytes = 0x100, .offset = value(uint64_t{0xFF})}) == rule::none &&
               error_of({.bytes = 0x100, .offset = value(uint64_t{0x1'0000'0000})}) ==
                   rule::OUT_024;
    });
}

TEST_CASE("a region beyond the physical width, by default 2^52, is rejected (REG-070)") {
    CHECK_TWICE([](auto value) {
        uint64_t const high = value(uint64_t{0x80'0000'0000});
        return error_of({.base = high, .bytes = 0x80}) == rule::REG_070 &&
               error_of({.base = high, .bytes = 0x80}, 40) == rule::none &&
               error_of({.base = high - 0x80, .bytes = 0x80}) == rule::none;
    });
    CHECK_TWICE([](auto value) {
        uint64_t const limit = value(uint64_t{1}) << 52;
        return single_range::build({.base = limit - 0x80, .bytes = 0x80}) &&
               single_range::build({.base = limit, .bytes = 0x80}).broken == rule::REG_070;
    });
}

TEST_CASE("every broken rule of a request is reported (OUT-020,022..024, REG-070)") {
    CHECK_TWICE([](auto value) {
        return all_of({.base = value(uint64_t{0x80'0000'0040}), .bytes = 0x60, .offset = 0x60})
                   .are(rule::OUT_020, rule::OUT_022, rule::OUT_023, rule::OUT_024,
                        rule::REG_070) &&
               all_of({.base = value(uint64_t{0x1000}), .bytes = 0x1000}).are();
    });
}

TEST_CASE("a range of 4 GB at the top of 52 bits wraps without an overflow (OUT-153)") {
    CHECK_TWICE([](auto value) {
        uint64_t const base = value(uint64_t{0xF'FFFF'0000'0000});
        uint64_t const last = value(uint64_t{0xFFFF'FFFF'FFFF'FFFF});
        return stored_at(base, last) == 0xF'FFFF'FFFF'FFFF &&
               advanced_pointers(last, 1) == 0xFFFF'FFFF &&
               advanced_pointers(last, 0x1'0000'0000) == 0xFFFF'FFFF'FFFF'FFFF &&
               bytes_left(last) == 1 && bytes_left(0xFFFF'FFFF) == 0x1'0000'0000 &&
               verdict(base, last) == rule::none &&
               single_range::build({.base = base, .bytes = 0x1'0000'0000, .offset = 0xFFFF'FFFF},
                                   {52})
                       .pointers.raw == last;
    });
}
