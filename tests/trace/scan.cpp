// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/scan.hpp>

#include <random>
#include <vector>

using namespace ptspec;
using packet::kind;
using test::bytes;
using test::join;
using test::psb;
using test::unknown;

namespace {

/// The same from `next`, one thing after the other.
constexpr auto plainly(byte_view in, trace::options how) -> trace::tally {
    trace::tally sum;
    trace::reader reader{in, how};
    for (auto one = reader.next(); one; one = reader.next()) {
        if (one.what == trace::event::packet) {
            sum.add(one.packet.kind(), one.length);
        } else {
            sum.add(one);
        }
    }
    return sum;
}

/// A trace with a PSB about every `spacing` bytes. One of `damage` packets has a wrong byte; none
/// where that is 0.
auto made_trace(std::uint32_t seed, size_t size, unsigned spacing, unsigned damage)
    -> std::vector<std::uint8_t> {
    static constexpr auto tip = bytes(0x2D, 0x10, 0x20);
    static constexpr auto full_tip = bytes(0xCD, 1, 2, 3, 4, 5, 6, 7, 8);
    static constexpr auto long_tnt = bytes(0x02, 0xA3, 0x17, 0, 0, 0, 0, 0);
    static constexpr auto mode = bytes(0x99, 0x01);
    static constexpr auto short_cyc = bytes(0x1B);
    static constexpr auto long_cyc = bytes(0xFF, 0xFF, 0xFE);
    static constexpr auto longest_cyc = bytes(7, 1, 1, 1, 1, 1, 1, 1, 0x10);
    static constexpr auto mnt = bytes(0x02, 0xC3, 0x88, 1, 2, 3, 4, 5, 6, 7, 8);
    static constexpr auto tma = bytes(0x02, 0x73, 1, 2, 0x10, 3, 0);
    static constexpr auto block = bytes(0x02, 0x63, 0x04, 0x04, 1, 2, 3, 4, 5, 6, 7, 8, 0x02, 0x33);
    static constexpr byte_view packets[] = {tip,      full_tip,    long_tnt, mode, short_cyc,
                                            long_cyc, longest_cyc, mnt,      tma,  block};
    std::mt19937 random{seed};
    std::vector<std::uint8_t> out;
    while (out.size() < size) {
        if (random() % spacing == 0) { out.insert(out.end(), psb.bytes, psb.bytes + 16); }
        for (auto i = random() % 8; i != 0; --i) { out.push_back(random() % 2 == 0 ? 0 : 0x16); }
        auto const which = random() % 64;
        byte_view const one = packets[which < 10 ? which : which % 6];
        out.insert(out.end(), one.data(), one.data() + one.size());
        if (damage != 0 && random() % damage == 0) { out.back() = 0x05; }
    }
    return out;
}

}  // namespace

TEST_CASE("a scan of a whole trace counts what is in it (PKT-250)") {
    CHECK_TWICE([](auto value) {
        auto const part = join(psb, bytes(0x2D, 1, 2, 0, 0, 0x16, 0x99, 0x01, 0x02, 0x23, 0x03));
        auto const in = value(join(bytes(0x16), part, part, part, part, bytes(0x05), part));
        auto const sum = trace::scan(in);
        return sum.of(kind::psb) == 5 && sum.of(kind::tip) == 5 && sum.of(kind::pad) == 10 &&
               sum.of(kind::tnt_short) == 5 && sum.of(kind::mode_exec) == 5 &&
               sum.of(kind::psbend) == 5 && sum.of(kind::cyc) == 5 && sum.total() == 40 &&
               sum.errors == 1 && sum.resyncs == 1 && sum == plainly(in, {});
    });
    CHECK_TWICE([](auto value) {
        return trace::scan({}) == trace::tally{} &&
               trace::scan(value(bytes(0x16, 0x16))) == trace::tally{};
    });
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x16, 0x16));
        return trace::scan(in, {.sync = false}).total() == 2;
    });
}

TEST_CASE("a scan of a whole trace counts what one of its packets after the other counts") {
    unsigned long long packets = 0;
    unsigned long long errors = 0;
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        for (unsigned const spacing : {5U, 100U, 1000U}) {
            for (unsigned const damage : {0U, 3000U, 100U}) {
                auto const in = made_trace(seed, 40'000, spacing, damage);
                bool const strict = seed % 2 != 0;
                bool const sync = seed % 3 != 0;
                trace::options const how{.sync = sync, .strict = strict};
                auto const sum = trace::scan(in, how);
                REQUIRE(sum == plainly(in, how));
                packets += sum.total();
                errors += sum.errors;
            }
        }
    }
    CHECK(packets > 3'000'000);
    CHECK(errors > 1'000);
}

TEST_CASE("a trace that is longer than the pieces of its lanes is counted to its end") {
    auto const in = made_trace(7, 3'000'000, 500, 100'000);
    CHECK(trace::scan(in) == plainly(byte_view{in}, {}));
}

TEST_CASE("a scan of a whole trace takes any bytes") {
    for (std::uint32_t seed = 0; seed < 2000; ++seed) {
        auto const in = test::random_stream(seed, 100 + 3 * seed);
        for (bool const strict : {false, true}) {
            for (bool const sync : {false, true}) {
                trace::options const how{.sync = sync, .strict = strict};
                REQUIRE(trace::scan(in, how) == plainly(byte_view{in}, how));
            }
        }
    }
}
