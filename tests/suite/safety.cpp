// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/safety.hpp>

#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>

#include <vector>

namespace {

using namespace ptspec;
using suite::given_memory;

constexpr uint64_t base = 0x10'0000;

/// Eight pages: page 0 is a table, whose entries lead to page 4, and END to itself.
struct armed_pages {
    uint8_t bytes[8 * 4096] = {};

    constexpr armed_pages() noexcept {
        for (unsigned i = 0; i < 512; ++i) { set(i, base + 4 * 4096); }
        set(511, base | 1);
    }
    constexpr void set(unsigned index, uint64_t word) noexcept {
        store_le64(bytes + 8 * index, word);
    }
    constexpr auto is_safe(uint64_t output_base, uint64_t pointers) noexcept -> bool {
        return suite::output_stays_inside({{base}, bytes, 8},
                                          reg::ia32_rtit_output_base{output_base},
                                          reg::ia32_rtit_output_mask_ptrs{pointers});
    }
};

}  // namespace

TEST_CASE("an armed page is safe as a range and as a table") {
    CHECK_TWICE([](auto value) {
        armed_pages pages;
        return pages.is_safe(value(base), 0x7F) && pages.is_safe(base, value(0xFFFU)) &&
               pages.is_safe(base, value(uint64_t{0xFFF} << 32 | 0xFFF)) &&
               pages.is_safe(base + value(0x800U), 0x7FF);
    });
}

TEST_CASE("a range or an offset that leaves the given pages is not safe") {
    CHECK_TWICE([](auto value) {
        armed_pages pages;
        return !pages.is_safe(base, value(0xFFFFU)) &&
               !pages.is_safe(base - value(0x1000U), 0xFFF) && !pages.is_safe(0, value(0x7FU)) &&
               !pages.is_safe(base, value(uint64_t{0x8000} << 32 | 0xFFF)) &&
               !pages.is_safe(base + value(7U * 4096), 0xFFF);  // no table
    });
}

TEST_CASE("each entry that output can reach must lead to given pages") {
    CHECK_TWICE([](auto value) {
        armed_pages pages;
        pages.set(value(2U), 0);
        bool const next = pages.is_safe(base, 0x7F);
        pages.set(2, base + 4 * 4096);
        pages.set(value(1U), (base + 8 * 4096) | 1);  // END to a page that is not given
        bool const end = pages.is_safe(base, 0x7F);
        pages.set(1, (base + 4 * 4096) | value(4U) << 6);  // 64 KB
        bool const size = pages.is_safe(base, 0x7F);
        pages.set(1, base + 4 * 4096);
        return !next && !end && !size && pages.is_safe(base, 0x7F);
    });
}

// A target that is wrong in one way writes where it should not: whatever it does, a value that was
// judged to be safe keeps it inside.
TEST_CASE("no wrong target leaves the given pages from values that are safe") {
    test::random_numbers random{1};
    unsigned safe = 0;
    for (unsigned trial = 0; trial < 20'000; ++trial) {
        armed_pages pages;
        for (unsigned i = 0; i < random.below(6); ++i) {
            uint64_t const page = base + random.below(10) * 4096 - 4096;
            uint64_t const flags = random.below(64) | random.below(4) << 6 |
                                   (random.below(8) == 0 ? 0xC00 : 0);
            pages.set(static_cast<unsigned>(random.below(8)), page | flags);
        }
        uint64_t const output_base = base + random.below(9) * 0x800;
        uint64_t const index = random.below(2) == 0 ? random.below(8) : random.below(64);
        uint64_t const offset = random.below(3) == 0 ? random.below(0x3000) : 0;
        if (!pages.is_safe(output_base, offset << 32 | index << 7 | 0x7F)) { continue; }
        ++safe;
        uint64_t const mask = index << 7 | 0x7F;
        std::vector<uint64_t> written;
        // As a single range: masked, or added; wrapping at the mask, or not at all.
        for (uint64_t i = 0; i < 1024; ++i) {
            written.push_back((output_base & ~mask) + ((offset + i) & mask));
            written.push_back(output_base + ((offset + i) & mask));
            written.push_back(output_base + offset + i);
        }
        // As a table, from the base or its page, with END followed or taken for a region.
        for (bool const follows : {false, true}) {
            uint64_t at = (output_base & ~uint64_t{4095}) + 8 * index;
            uint64_t first = offset;
            for (unsigned regions = 0; regions < 2; ++regions) {
                uint64_t const word = load_le64(pages.bytes + (at - base));
                if (follows && (word & 1) != 0) {
                    at = word & ~uint64_t{4095};
                    first = 0;
                    continue;
                }
                for (uint64_t i = 0; i < 256; ++i) {
                    written.push_back((word & ~uint64_t{4095}) + first + i);
                }
                first = 0;
                at += 8;
            }
        }
        bool is_inside = true;
        for (uint64_t const address : written) {
            is_inside = is_inside && given_memory{{base}, pages.bytes, 8}.has(address, 1);
        }
        CHECK(is_inside);
    }
    CHECK(safe > 500);
}
