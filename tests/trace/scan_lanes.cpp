// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/reader.hpp>

#include <algorithm>
#include <random>
#include <vector>

using namespace ptspec;
using packet::kind;
using test::bytes;
using test::join;
using test::psb;
using trace::nowhere;
using trace::detail::find_lanes;
using trace::detail::lane_count;
using trace::detail::scan_lanes;

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
/// where that is 0. Without `any` all packets are such as a look at their first bytes tells.
auto made_trace(std::uint32_t seed, size_t size, unsigned spacing, unsigned damage, bool any = true)
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
        byte_view const one = packets[any && which < 10 ? which : which % 6];
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
        auto const sum = trace::reader{byte_view{in}}.scan();
        return sum.of(kind::psb) == 5 && sum.of(kind::tip) == 5 && sum.of(kind::pad) == 10 &&
               sum.of(kind::tnt_short) == 5 && sum.of(kind::mode_exec) == 5 &&
               sum.of(kind::psbend) == 5 && sum.of(kind::cyc) == 5 && sum.total() == 40 &&
               sum.errors == 1 && sum.resyncs == 1 && sum == plainly(in, {});
    });
    CHECK_TWICE([](auto value) {
        auto const two = value(bytes(0x16, 0x16));
        return trace::reader{byte_view{}}.scan() == trace::tally{} &&
               trace::reader{byte_view{two}}.scan() == trace::tally{};
    });
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x16, 0x16));
        return trace::reader{byte_view{in}, {.sync = false}}.scan().total() == 2;
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
                auto const sum = trace::reader{byte_view{in}, how}.scan();
                REQUIRE(sum == plainly(in, how));
                packets += sum.total();
                errors += sum.errors;
            }
        }
    }
    CHECK(packets > 3'000'000);
    CHECK(errors > 1'000);
}

TEST_CASE("a trace that is longer than its lanes is counted to its end") {
    auto const in = made_trace(7, 3'000'000, 500, 100'000);
    CHECK(trace::reader{byte_view{in}}.scan() == plainly(byte_view{in}, {}));
}

TEST_CASE("a trace that comes in long pieces is counted as the whole (PKT-255)") {
    auto const in = made_trace(8, 400'000, 200, 5000);
    auto const whole = plainly(byte_view{in}, {});
    for (size_t const size : {size_t{50'001}, size_t{100'000}, in.size()}) {
        trace::reader reader;
        trace::tally sum;
        for (size_t at = 0; at < in.size(); at += size) {
            REQUIRE(reader.feed(byte_view{in}.from(at).first(size)));
            sum = reader.scan(sum);
        }
        reader.finish();
        CHECK(reader.scan(sum) == whole);
    }
}

TEST_CASE("lanes begin at PSBs, about as far from each other, and need room and PSBs") {
    std::vector<std::uint8_t> in(400'000, 0x16);
    auto const put_psb = [&](size_t at) { std::copy_n(psb.bytes, 16, in.begin() + long(at)); };
    for (size_t at = 1000; at < in.size() - 16; at += 1000) { put_psb(at); }
    auto const many = find_lanes(in, 700);
    CHECK(many.of[0] == 700);
    for (size_t i = 1; i <= lane_count; ++i) {
        size_t const wanted = 700 + i * ((in.size() - 700) / 9);
        CHECK(many.of[i] == (wanted + 999) / 1000 * 1000);
    }
    CHECK(find_lanes(in, in.size() - 9 * 2048 + 1).of[lane_count] == nowhere);
    CHECK(find_lanes(in, in.size() - 9 * 2048 - 1000).of[lane_count] != nowhere);

    // Where PSBs are seldom, each lane takes another one.
    in.assign(in.size(), 0x16);
    for (size_t const at : {360'000U, 360'100U, 360'200U, 360'300U, 360'400U, 360'500U, 360'600U}) {
        put_psb(at);
    }
    CHECK(find_lanes(in, 0).of[1] == 360'000);
    CHECK(find_lanes(in, 0).of[7] == 360'600);
    CHECK(find_lanes(in, 0).of[lane_count] == nowhere);
    put_psb(360'700);
    CHECK(find_lanes(in, 0).of[lane_count] == 360'700);
    CHECK(trace::reader{byte_view{in}, {.sync = false}}.scan() ==
          plainly(byte_view{in}, {.sync = false}));
}

TEST_CASE("no lane is longer than a megabyte where there are PSBs") {
    std::vector<std::uint8_t> in(20'000'000, 0);
    for (size_t at = 0; at < in.size() - 16; at += 4096) {
        std::copy_n(psb.bytes, 16, in.begin() + long(at));
    }
    CHECK(find_lanes(in, 0).of[lane_count] == 8 << 20);
}

TEST_CASE("lanes count what is in them, round after round (PKT-250)") {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        auto const in = made_trace(seed, 60'000 + 1000 * seed, 30, 0, false);
        trace::tally sum;
        auto const end = scan_lanes<packet::all>(in, 0, seed % 2 != 0, sum);
        CHECK((end.place > in.size() / 9 * 8 && end.again == in.size()));
        CHECK(find_lanes(in, end.place).of[lane_count] == nowhere);
        trace::tally plain;
        size_t at = 0;
        while (at < end.place) {
            auto const got = packet::decode(byte_view{in}.from(at));
            REQUIRE(got);
            plain.add(got.packet.kind(), got.length());
            at += got.length();
        }
        CHECK((at == end.place && sum == plain));
    }
}

TEST_CASE("what is counted in lanes counts only if each of them ends where the next begins") {
    std::vector<std::uint8_t> right(400'000, 0x16);
    for (size_t at = 1000; at < right.size() - 16; at += 1000) {
        std::copy_n(psb.bytes, 16, right.begin() + static_cast<long>(at));
    }
    auto const begins = find_lanes(right, 0);
    trace::options const from_the_begin{.sync = false};
    for (size_t lane = 0; lane < lane_count; ++lane) {
        auto const broken_at = [&](size_t at, byte_view by) {
            std::vector<std::uint8_t> in = right;
            std::copy_n(by.data(), by.size(), in.begin() + static_cast<long>(at));
            trace::tally none;
            auto const failed = scan_lanes<packet::all>(in, 0, false, none);
            CHECK((failed.place == 0 && failed.again == begins.of[lane_count] &&
                   none == trace::tally{}));
            CHECK(trace::reader{byte_view{in}, from_the_begin}.scan() ==
                  plainly(byte_view{in}, from_the_begin));
        };
        broken_at(begins.of[lane] + 16, bytes(0x05));      // no packet begins like this
        broken_at(begins.of[lane + 1] - 20, bytes(0x05));  // nor the last but some of a lane
        broken_at(begins.of[lane + 1] - 1, bytes(0xCD));   // a TIP hides half a PSB
    }
}

TEST_CASE("a scan of a whole trace takes any bytes") {
    for (std::uint32_t seed = 0; seed < 2000; ++seed) {
        auto const in = test::random_stream(seed, 100 + 3 * seed);
        for (bool const strict : {false, true}) {
            for (bool const sync : {false, true}) {
                trace::options const how{.sync = sync, .strict = strict};
                REQUIRE(trace::reader{byte_view{in}, how}.scan() == plainly(byte_view{in}, how));
            }
        }
    }
}
