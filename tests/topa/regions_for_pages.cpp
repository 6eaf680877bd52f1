// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/regions_for_pages.hpp>

#include <support/check_twice.hpp>

#include <algorithm>
#include <random>
#include <vector>

using namespace ptspec;
using topa::page_regions;
using topa::region;
using topa::region_size;

namespace {

constexpr max_phys_addr widest{52};

/// Collects the regions in order.
struct regions {
    region items[16] = {};
    size_t count = 0;

    constexpr void operator()(region one) noexcept { items[count++] = one; }

    template <class... Regions>
    [[nodiscard]] constexpr auto are(Regions... wanted) const noexcept -> bool {
        size_t at = 0;
        return count == sizeof...(Regions) && (... && (items[at++] == wanted));
    }
};

constexpr auto at(uint64_t base, region_size size = region_size::size_4K) -> region {
    return {.base = base, .size = size};
}

/// The regions for pages. Also checks that the returned number is right.
template <size_t Count>
constexpr auto cover_of(uint64_t const (&pages)[Count], max_phys_addr width = widest) -> regions {
    regions found;
    auto const done = topa::regions_for_pages(pages, Count, width, found);
    return done && done == page_regions{found.count} ? found : regions{.count = 99};
}

constexpr auto largest_bytes(uint64_t base, uint64_t most) -> uint64_t {
    auto const one = topa::largest_region(base, most);
    bool const plain = one.base == base && !one.interrupt && !one.stop;
    return plain ? uint64_t{4096} << underlying(one.size) : 0;
}

}  // namespace

// ------------------------------------------------------------------------------------ regions

TEST_CASE("the largest region has at most the given bytes, but at least 4 KB (OUT-041)") {
    CHECK_TWICE([](auto value) {
        return largest_bytes(0, value(uint64_t{0})) == 0x1000 &&
               largest_bytes(0, value(uint64_t{1})) == 0x1000 &&
               largest_bytes(0, value(uint64_t{0xFFF})) == 0x1000 &&
               largest_bytes(0, value(uint64_t{0x1000})) == 0x1000 &&
               largest_bytes(0, value(uint64_t{0x1FFF})) == 0x1000 &&
               largest_bytes(0, value(uint64_t{0x2000})) == 0x2000 &&
               largest_bytes(0, value(uint64_t{0x3000})) == 0x2000 &&
               largest_bytes(0, value(uint64_t{0x7FF'FFFF})) == 0x400'0000 &&
               largest_bytes(0, value(uint64_t{0x800'0000})) == 0x800'0000;
    });
}

TEST_CASE("the largest region is aligned to its size, also at address 0 (OUT-042)") {
    CHECK_TWICE([](auto value) {
        uint64_t const all = value(~uint64_t{0});
        return largest_bytes(0x1000, all) == 0x1000 && largest_bytes(0x2000, all) == 0x2000 &&
               largest_bytes(0x3000, all) == 0x1000 && largest_bytes(0x1'0000, all) == 0x1'0000 &&
               largest_bytes(0x30'0000, all) == 0x10'0000 &&
               largest_bytes(0x400'0000, all) == 0x400'0000 &&
               largest_bytes(0xC00'0000, all) == 0x400'0000 &&
               largest_bytes(0, all) == 0x800'0000 &&
               largest_bytes(0xF'FFFF'FFFF'F000, all) == 0x1000;
    });
    CHECK_TWICE([](auto value) {  // the smaller limit decides
        return largest_bytes(value(uint64_t{0x8000}), 0x7FFF) == 0x4000 &&
               largest_bytes(value(uint64_t{0x8000}), 0x8000) == 0x8000 &&
               largest_bytes(value(uint64_t{0x8000}), 0x1'0000) == 0x8000;
    });
}

TEST_CASE("no region is larger than 128 MB (OUT-041,141)") {
    CHECK_TWICE([](auto value) {
        return largest_bytes(value(uint64_t{0x800'0000}), 0x1000'0000) == 0x800'0000 &&
               largest_bytes(value(uint64_t{0x1000'0000}), 0x1000'0000) == 0x800'0000 &&
               largest_bytes(value(uint64_t{0x8'0000'0000'0000}), ~uint64_t{0}) == 0x800'0000 &&
               largest_bytes(0, value(uint64_t{0x1000'0000})) == 0x800'0000;
    });
}

TEST_CASE("the largest of all 16 sizes that fits is found (OUT-041,042)") {
    auto const fits = [](uint64_t base, uint64_t most, uint64_t size) {
        return base % size == 0 && (size <= most || size == 4096);
    };
    std::mt19937_64 random{1};
    for (unsigned round = 0; round < 20'000; ++round) {
        uint64_t const base = (random() >> 12 >> random() % 52) << 12 << random() % 20;
        uint64_t const most = random() >> random() % 64;
        uint64_t best = 4096;
        for (uint64_t size = 4096; size <= 0x800'0000; size *= 2) {
            if (fits(base, most, size)) { best = size; }
        }
        REQUIRE(largest_bytes(base, most) == best);
    }
}

// ------------------------------------------------------------------------------------ covers

TEST_CASE("a page is a region of 4 KB, and no page is no region") {
    CHECK_TWICE([](auto value) {
        return cover_of({value(uint64_t{0x7000})}).are(at(0x7000)) &&
               cover_of({value(uint64_t{0})}).are(at(0));
    });
    CHECK_TWICE([](auto value) {
        regions found;
        phys_addr const* const none = nullptr;
        return topa::regions_for_pages(none, value(size_t{0}), widest, found) == page_regions{} &&
               found.count == 0;
    });
}

TEST_CASE("contiguous pages become regions, each aligned to its size (OUT-041,042)") {
    CHECK_TWICE([](auto value) {
        uint64_t const first = value(uint64_t{0x1000});
        return cover_of({first, first + 0x1000, first + 0x2000})
                   .are(at(0x1000), at(0x2000, region_size::size_8K)) &&
               cover_of({first, first + 0x1000, first + 0x2000, first + 0x3000, first + 0x4000})
                   .are(at(0x1000), at(0x2000, region_size::size_8K),
                        at(0x4000, region_size::size_8K)) &&
               cover_of({first - 0x1000, first, first + 0x1000, first + 0x2000})
                   .are(at(0, region_size::size_16K));
    });
}

TEST_CASE("pages keep their order, and non-contiguous pages are not merged") {
    CHECK_TWICE([](auto value) {
        uint64_t const one = value(uint64_t{0x2000});
        return cover_of({one + 0x1000, one}).are(at(0x3000), at(0x2000)) &&
               cover_of({one, one + 0x2000}).are(at(0x2000), at(0x4000)) &&
               cover_of({one, one}).are(at(0x2000), at(0x2000)) &&
               cover_of({one + 0x6000, one, one + 0x1000, one + 0x7000})
                   .are(at(0x8000), at(0x2000, region_size::size_8K), at(0x9000)) &&
               cover_of({one, one + 0x1000, one + 0x3000})
                   .are(at(0x2000, region_size::size_8K), at(0x5000));
    });
}

namespace {

/// The pages of regions, in the order in which trace fills them.
auto pages_of(std::vector<region> const& of) -> std::vector<uint64_t> {
    std::vector<uint64_t> pages;
    for (auto const& one : of) {
        uint64_t const size = uint64_t{4096} << underlying(one.size);
        REQUIRE(one.base.value % size == 0);
        REQUIRE(size <= 0x800'0000);
        REQUIRE(!one.interrupt);
        REQUIRE(!one.stop);
        for (uint64_t page = 0; page < size; page += 4096) {
            pages.push_back(one.base.value + page);
        }
    }
    return pages;
}

auto cover_of(std::vector<uint64_t> const& pages) -> std::vector<region> {
    std::vector<region> found;
    auto const done = topa::regions_for_pages(pages.data(), pages.size(), widest,
                                              [&](region one) { found.push_back(one); });
    REQUIRE(done);
    REQUIRE(done.regions == found.size());
    return found;
}

/// The minimum number of regions, by dynamic programming over the last region of every prefix.
auto fewest_regions(std::vector<uint64_t> const& pages) -> size_t {
    std::vector<size_t> fewest(pages.size() + 1, 0);
    for (size_t end = 1; end <= pages.size(); ++end) {
        fewest[end] = fewest[end - 1] + 1;
        for (size_t count = 2; count <= end && count <= 0x8000; count *= 2) {
            uint64_t const* const first = pages.data() + (end - count);
            bool fits = first[0] % (count * 4096) == 0;
            for (size_t i = 0; i < count && fits; ++i) { fits = first[i] == first[0] + i * 4096; }
            if (fits) { fewest[end] = std::min(fewest[end], fewest[end - count] + 1); }
        }
    }
    return fewest[pages.size()];
}

void check_cover(std::vector<uint64_t> const& pages) {
    auto const found = cover_of(pages);
    REQUIRE(pages_of(found) == pages);
    REQUIRE(found.size() == fewest_regions(pages));
}

}  // namespace

TEST_CASE("every short list of pages is covered exactly, in order, by the fewest regions") {
    for (size_t length = 0; length <= 5; ++length) {
        std::vector<uint64_t> pages(length, 0);
        for (;;) {
            check_cover(pages);
            size_t place = 0;
            for (; place < length && (pages[place] += 4096) == 7 * 4096; ++place) {
                pages[place] = 0;
            }
            if (place == length) { break; }
        }
    }
}

TEST_CASE("random lists of pages are covered exactly, in order, by the fewest regions") {
    std::mt19937_64 random{2};
    for (unsigned round = 0; round < 2000; ++round) {
        std::vector<uint64_t> pages;
        while (pages.size() < 60) {
            uint64_t const from = (random() >> (random() % 2 == 0 ? 18 : 57)) << 12;
            for (uint64_t i = 0, run = random() % 40; i < run; ++i) {
                pages.push_back((from + i * 4096) & 0xF'FFFF'FFFF'F000);
            }
        }
        check_cover(pages);
    }
}

TEST_CASE("more than 128 MB of contiguous pages become several regions (OUT-141)") {
    std::vector<uint64_t> pages;
    for (uint64_t page = 0x7FF'F000; page < 0x1801'0000; page += 4096) { pages.push_back(page); }
    auto const found = cover_of(pages);
    REQUIRE(found.size() == 4);
    CHECK(found[0] == at(0x7FF'F000));
    CHECK(found[1] == at(0x800'0000, region_size::size_128M));
    CHECK(found[2] == at(0x1000'0000, region_size::size_128M));
    CHECK(found[3] == at(0x1800'0000, region_size::size_64K));
}

TEST_CASE("the highest possible pages are covered") {
    CHECK_TWICE([](auto value) {
        uint64_t const last = value(uint64_t{0xF'FFFF'FFFF'F000});
        return cover_of({last - 0x1000, last}).are(at(last - 0x1000, region_size::size_8K)) &&
               cover_of({last, uint64_t{0}}).are(at(last), at(0)) &&
               cover_of({value(uint64_t{0xF'F000})}, {20}).are(at(0xF'F000));
    });
}

// ------------------------------------------------------------------------------------ refusals

namespace {

/// The result for pages that cannot be covered; a default result when a region was produced.
template <size_t Count>
constexpr auto refusal(uint64_t const (&pages)[Count], max_phys_addr width) -> page_regions {
    regions found;
    auto const done = topa::regions_for_pages(pages, Count, width, found);
    return done || found.count != 0 ? page_regions{} : done;
}

}  // namespace

TEST_CASE("a page not at a multiple of 4 KB is rejected, and no region is produced (OUT-062)") {
    CHECK_TWICE([](auto value) {
        uint64_t const misaligned = value(uint64_t{0x3001});
        return refusal({0x1000, 0x2000, misaligned}, {39}) == page_regions{0, rule::OUT_062, 2} &&
               refusal({misaligned, 0x2000}, {39}) == page_regions{0, rule::OUT_062, 0} &&
               refusal({0x1000, misaligned + 0x7FF, misaligned}, {39}) ==
                   page_regions{0, rule::OUT_062, 1} &&
               refusal({misaligned + 0xFFE}, {39}) == page_regions{0, rule::OUT_062, 0} &&
               refusal({misaligned + 0xFFF}, {39}) == page_regions{};
    });
}

TEST_CASE("a page beyond the physical width is rejected, and no region is produced (OUT-063)") {
    CHECK_TWICE([](auto value) {
        uint64_t const high = value(uint64_t{0x80'0000'0000});
        return refusal({0x1000, high}, {39}) == page_regions{0, rule::OUT_063, 1} &&
               refusal({high, high + 0x1000}, {39}) == page_regions{0, rule::OUT_063, 0} &&
               cover_of({0x1000, high}, {40}).are(at(0x1000), at(high)) &&
               cover_of({high - 0x1000}, {39}).are(at(0x7F'FFFF'F000));
    });
    CHECK_TWICE([](auto value) {
        return refusal({value(~uint64_t{0xFFF})}, {52}) == page_regions{0, rule::OUT_063, 0} &&
               refusal({value(uint64_t{1} << 52)}, {52}) == page_regions{0, rule::OUT_063, 0};
    });
}

TEST_CASE("the first invalid page is reported, with its lowest-numbered rule") {
    CHECK_TWICE([](auto value) {
        uint64_t const high = value(uint64_t{0x80'0000'0000});
        return refusal({high + 1, 0x1001}, {39}) == page_regions{0, rule::OUT_062, 0} &&
               refusal({0x1000, high, 0x1001}, {39}) == page_regions{0, rule::OUT_063, 1} &&
               refusal({0x1000, 0x1001, high}, {39}) == page_regions{0, rule::OUT_062, 1};
    });
}

TEST_CASE("page_regions is true without a rule, and equal when every member is equal") {
    CHECK_TWICE([](auto value) {
        auto const it = value(page_regions{3, rule::OUT_062, 5});
        return !it && value(page_regions{3, rule::none, 0}) && value(page_regions{}).regions == 0 &&
               value(page_regions{}).page == 0 && value(page_regions{}) &&
               it == page_regions{3, rule::OUT_062, 5} && it != page_regions{2, rule::OUT_062, 5} &&
               it != page_regions{3, rule::OUT_063, 5} && it != page_regions{3, rule::OUT_062, 4};
    });
}
