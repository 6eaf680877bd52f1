// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/psb_search.hpp>

#include <algorithm>
#include <optional>
#include <vector>

using namespace ptspec;
using test::bytes;
using test::join;
using test::psb;

namespace {

/// All PSBs, directly from PKT-250 and PKT-251: each offset at which the pattern begins, where no
/// ninth pair follows it and no earlier PSB overlaps it.
auto all_psbs(std::vector<std::uint8_t> const& in) -> std::vector<std::size_t> {
    std::vector<std::size_t> found;
    for (std::size_t at = 0; at + 16 <= in.size(); ++at) {
        bool const pattern = std::equal(psb.bytes, psb.bytes + 16,
                                        in.begin() + static_cast<long>(at));
        bool const goes_on = at + 18 <= in.size() && in[at + 16] == 0x02 && in[at + 17] == 0x82;
        if (pattern && !goes_on) { found.push_back(at); }
    }
    return found;
}

auto next_of(std::vector<std::size_t> const& all, std::size_t from) -> std::size_t {
    auto const it = std::lower_bound(all.begin(), all.end(), from);
    return it == all.end() ? trace::npos : *it;
}

auto before_of(std::vector<std::size_t> const& all, std::size_t before) -> std::size_t {
    auto const it = std::lower_bound(all.begin(), all.end(), before);
    return it == all.begin() ? trace::npos : *(it - 1);
}

}  // namespace

TEST_CASE("find_psb returns the offset of the PSB (PKT-130,250)") {
    CHECK_TWICE([](auto value) { return trace::find_psb(value(psb)) == 0; });
    CHECK_TWICE([](auto value) {
        return trace::find_psb(value(join(bytes(0x82, 0x00, 0x02), psb, bytes(0x02)))) == 3;
    });
    CHECK_TWICE([](auto value) { return trace::find_psb(value(psb), 1) == trace::npos; });
    CHECK_TWICE([](auto value) { return trace::find_psb(value(psb), 17) == trace::npos; });
    CHECK_TWICE([](auto) { return trace::find_psb({}) == trace::npos; });
}

TEST_CASE("15 bytes of the pattern are no PSB (PKT-250)") {
    auto const short_by_one = [](auto value, std::size_t drop) {
        auto const in = value(psb);
        return trace::find_psb(byte_view{in}.from(drop)) == trace::npos &&
               trace::find_psb(byte_view{in}.first(16 - drop)) == trace::npos;
    };
    static_assert(short_by_one(test::known{}, 1));
    for (std::size_t drop = 1; drop <= 16; ++drop) { CHECK(short_by_one(test::unknown{}, drop)); }
    CHECK_TWICE([](auto value) {
        auto in = value(join(psb, bytes(0x00)));
        in.bytes[15] = 0x83;
        return trace::find_psb(in) == trace::npos;
    });
}

TEST_CASE("in a longer run the last 16 bytes are the PSB (PKT-251)") {
    CHECK_TWICE([](auto value) {
        return trace::find_psb(value(join(bytes(0x02, 0x82), psb, bytes(0x00)))) == 2;
    });
    CHECK_TWICE([](auto value) {
        return trace::find_psb(value(join(psb, psb, bytes(0x00)))) == 16 &&
               trace::find_psb(value(join(psb, psb)), 3) == 16;
    });
    // A single byte of the pattern after or before the pairs does not count.
    CHECK_TWICE([](auto value) {
        return trace::find_psb(value(join(bytes(0x82), psb, bytes(0x02, 0x02)))) == 1;
    });
}

TEST_CASE("find_psb agrees with a bytewise search from every offset (PKT-250,251)") {
    unsigned psbs = 0;
    for (std::uint32_t seed = 0; seed < 400; ++seed) {
        auto const in = test::random_stream(seed, 40 + seed % 160);
        auto const all = all_psbs(in);
        psbs += static_cast<unsigned>(all.size());
        for (std::size_t from = 0; from <= in.size() + 1; ++from) {
            REQUIRE(trace::find_psb(byte_view{in}, from) == next_of(all, from));
        }
    }
    CHECK(psbs > 400);
}

TEST_CASE("find_psb finds a single PSB at any offset, and nothing without one (PKT-250,251)") {
    CHECK_TWICE([](auto value) {
        constexpr std::size_t size = 340;
        for (unsigned const quiet : {0x00U, 0x02U, 0x82U}) {
            for (std::size_t place = 0; place + trace::psb_bytes <= size; place += value(7U)) {
                byte_array<size> all{};
                for (auto& byte : all.bytes) { byte = static_cast<std::uint8_t>(quiet); }
                if (trace::find_psb(byte_view{all}) != trace::npos) { return false; }
                for (std::size_t i = 0; i < trace::psb_bytes; ++i) {
                    all.bytes[place + i] = i % 2 == 0 ? 0x02 : 0x82;
                }
                if (trace::find_psb(byte_view{all}) != place ||
                    trace::find_psb(byte_view{all}, place / 2) != place ||
                    trace::find_psb(byte_view{all}, place + 1) != trace::npos ||
                    trace::find_psb(byte_view{all}.first(place + 15)) != trace::npos) {
                    return false;
                }
            }
        }
        return true;
    });
}

TEST_CASE("find_psb_before finds the last PSB that begins before an offset (PKT-250,251)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(psb, bytes(0x00), psb, bytes(0x00, 0x00)));
        return trace::find_psb_before(in, 0) == trace::npos && trace::find_psb_before(in, 1) == 0 &&
               trace::find_psb_before(in, 17) == 0 && trace::find_psb_before(in, 18) == 17 &&
               trace::find_psb_before(in, 99) == 17;
    });
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        auto const in = test::random_stream(seed, 40 + seed % 160);
        auto const all = all_psbs(in);
        for (std::size_t before = 0; before <= in.size() + 1; ++before) {
            REQUIRE(trace::find_psb_before(byte_view{in}, before) == before_of(all, before));
        }
    }
}

TEST_CASE("find_psb_before finds a PSB across its 4096-byte search blocks (PKT-250)") {
    for (std::size_t const lead : {4080U, 4090U, 4095U, 4096U, 4097U, 8191U, 8192U}) {
        std::vector<std::uint8_t> in(lead, 0x02);
        in.insert(in.end(), psb.bytes, psb.bytes + 16);
        in.resize(in.size() + 9000, 0x06);
        auto const all = all_psbs(in);
        for (std::size_t const before : {in.size(), in.size() - 5000, lead + 17, lead + 1, lead}) {
            CHECK(trace::find_psb_before(byte_view{in}, before) == before_of(all, before));
        }
    }
}

TEST_CASE("a search in chunks finds the same PSB as find_psb (PKT-250,251)") {
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        auto const in = test::random_stream(seed, 60 + seed % 100);
        for (std::size_t const step : {1U, 2U, 3U, 7U, 8U, 15U, 16U, 17U, 31U}) {
            trace::psb_search search;
            std::optional<std::size_t> found;
            std::size_t at = 0;
            std::size_t last = 0;
            for (; at < in.size() && !found; at += step) {
                last = at;
                if (search.feed(byte_view{in}.from(at).first(step))) {
                    found = static_cast<std::size_t>(static_cast<std::int64_t>(at) + search.end()) -
                            16;
                }
            }
            if (!found && search.finish()) {
                found = static_cast<std::size_t>(static_cast<std::int64_t>(last) + search.end()) -
                        16;
            }
            REQUIRE(found.value_or(trace::npos) == trace::find_psb(byte_view{in}));
        }
    }
}

TEST_CASE("end() is -1 when the chunk before ends with a PSB and half a pair (PKT-251)") {
    CHECK_TWICE([](auto value) {
        trace::psb_search search;
        auto const first = value(join(psb, bytes(0x02)));
        auto const second = value(bytes(0x00));
        return !search.feed(first) && search.feed(second) && search.end() == -1;
    });
}

TEST_CASE("a run of 02H and a pattern that breaks at every 16th byte hold no PSB (PKT-250)") {
    std::vector<std::uint8_t> in(100000, 0x02);
    CHECK(trace::find_psb(byte_view{in}) == trace::npos);
    for (std::size_t i = 0; i < in.size(); ++i) {
        in[i] = i % 16 == 15 ? 0x83 : i % 2 ? 0x82 : 0x02;
    }
    CHECK(trace::find_psb(byte_view{in}) == trace::npos);
    in[15 + 16 * 1000] = 0x82;
    CHECK(trace::find_psb(byte_view{in}) == all_psbs(in).front());
}
