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
using trace::detail::find_first;
using trace::detail::first_segments;
using trace::detail::lane_count;
using trace::detail::speculation;
using trace::detail::segment_finder;
using trace::detail::count_lanes;

namespace {

/// The reference: the counts of all items of `next`.
constexpr auto reference_counts(byte_view in, trace::reader_options how) -> trace::packet_counts {
    trace::packet_counts sum;
    trace::reader reader{in, how};
    for (auto one = reader.next(); one; one = reader.next()) {
        if (one.what == trace::item_type::packet) {
            sum.add(one.packet.kind(), one.length);
        } else {
            sum.add(one);
        }
    }
    return sum;
}

/// A trace with a PSB about every `spacing` packets. One in `damage` packets has an invalid byte;
/// none if `damage` is 0. Without `any`, the first bytes of each packet give its length.
auto made_trace(std::uint32_t seed, size_t size, unsigned spacing, unsigned damage, bool any = true)
    -> std::vector<std::uint8_t> {
    static constexpr auto tip = bytes(0x2D, 0x10, 0x20);
    static constexpr auto full_tip = bytes(0xCD, 1, 2, 3, 4, 5, 6, 7, 8);
    static constexpr auto long_tnt = bytes(0x02, 0xA3, 0x17, 0, 0, 0, 0, 0);
    static constexpr auto mode = bytes(0x99, 0x01);
    static constexpr auto mode_tsx = bytes(0x99, 0x20);
    static constexpr auto psbend = bytes(0x02, 0x23);
    static constexpr auto ovf = bytes(0x02, 0xF3);
    static constexpr auto short_cyc = bytes(0x1B);
    static constexpr auto long_cyc = bytes(0xFF, 0xFF, 0xFE);
    static constexpr auto longest_cyc = bytes(7, 1, 1, 1, 1, 1, 1, 1, 0x10);
    static constexpr auto mnt = bytes(0x02, 0xC3, 0x88, 1, 2, 3, 4, 5, 6, 7, 8);
    static constexpr auto tma = bytes(0x02, 0x73, 1, 2, 0x10, 3, 0);
    static constexpr auto block = bytes(0x02, 0x63, 0x04, 0x04, 1, 2, 3, 4, 5, 6, 7, 8, 0x02, 0x33);
    static constexpr byte_view packets[] = {tip,    full_tip, long_tnt,  mode,     mode_tsx,
                                            psbend, ovf,      short_cyc, long_cyc, longest_cyc,
                                            mnt,    tma,      block};
    std::mt19937 random{seed};
    std::vector<std::uint8_t> out;
    while (out.size() < size) {
        if (random() % spacing == 0) { out.insert(out.end(), psb.bytes, psb.bytes + 16); }
        for (auto i = random() % 8; i != 0; --i) { out.push_back(random() % 2 == 0 ? 0 : 0x16); }
        auto const which = random() % 64;
        byte_view const one = packets[any && which < 13 ? which : which % 9];
        out.insert(out.end(), one.data(), one.data() + one.size());
        if (damage != 0 && random() % damage == 0) { out.back() = 0x05; }
    }
    return out;
}

/// PADs, with a PSB at each of these offsets.
auto pads_and_psbs(size_t size, std::vector<size_t> const& places) -> std::vector<std::uint8_t> {
    std::vector<std::uint8_t> out(size, 0);
    for (size_t const at : places) { std::copy_n(psb.bytes, 16, out.begin() + long(at)); }
    return out;
}
/// The multiples of `every`, beginning with `every`.
auto each(size_t every, size_t size) -> std::vector<size_t> {
    std::vector<size_t> places;
    for (size_t at = every; at + 16 < size; at += every) { places.push_back(at); }
    return places;
}

/// Where the segments of a trace end.
auto segment_ends(byte_view in, size_t until) -> std::vector<size_t> {
    std::vector<size_t> ends;
    segment_finder segments{in, 0, until};
    while (segments.place < segments.until && segments.next()) { ends.push_back(segments.place); }
    return ends;
}

}  // namespace

TEST_CASE("scan counts the packets, errors and resyncs of a trace (PKT-250)") {
    CHECK_TWICE([](auto value) {
        auto const part = join(psb, bytes(0x2D, 1, 2, 0, 0, 0x16, 0x99, 0x01, 0x02, 0x23, 0x03));
        auto const in = value(join(bytes(0x16), part, part, part, part, bytes(0x05), part));
        auto const sum = trace::reader{byte_view{in}}.scan();
        return sum.of(kind::psb) == 5 && sum.of(kind::tip) == 5 && sum.of(kind::pad) == 10 &&
               sum.of(kind::tnt_short) == 5 && sum.of(kind::mode_exec) == 5 &&
               sum.of(kind::psbend) == 5 && sum.of(kind::cyc) == 5 && sum.total() == 40 &&
               sum.errors == 1 && sum.resyncs == 1 && sum == reference_counts(in, {});
    });
    CHECK_TWICE([](auto value) {
        auto const two = value(bytes(0x16, 0x16));
        return trace::reader{byte_view{}}.scan() == trace::packet_counts{} &&
               trace::reader{byte_view{two}}.scan() == trace::packet_counts{};
    });
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x16, 0x16));
        return trace::reader{byte_view{in}, {.sync = false}}.scan().total() == 2;
    });
}

TEST_CASE("scan agrees with next() on traces with and without damage") {
    unsigned long long packets = 0;
    unsigned long long errors = 0;
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        for (unsigned const spacing : {5U, 100U, 1000U}) {
            for (unsigned const damage : {0U, 3000U, 100U}) {
                auto const in = made_trace(seed, 40'000, spacing, damage);
                bool const strict = seed % 2 != 0;
                bool const sync = seed % 3 != 0;
                trace::reader_options const how{.sync = sync, .strict = strict};
                auto const sum = trace::reader{byte_view{in}, how}.scan();
                REQUIRE(sum == reference_counts(in, how));
                packets += sum.total();
                errors += sum.errors;
            }
        }
    }
    CHECK(packets > 3'000'000);
    CHECK(errors > 1'000);
}

TEST_CASE("scan agrees with next() on a trace longer than one attempt of the lanes") {
    auto const in = made_trace(7, 3'000'000, 500, 100'000);
    CHECK(trace::reader{byte_view{in}}.scan() == reference_counts(byte_view{in}, {}));
}

TEST_CASE("scan of long chunks agrees with the whole trace (PKT-255)") {
    auto const in = made_trace(8, 400'000, 200, 5000);
    auto const whole = reference_counts(byte_view{in}, {});
    for (size_t const size : {size_t{50'001}, size_t{100'000}, in.size()}) {
        trace::reader reader;
        trace::packet_counts sum;
        for (size_t at = 0; at < in.size(); at += size) {
            REQUIRE(reader.feed(byte_view{in}.from(at).first(size)));
            sum = reader.scan(sum);
        }
        reader.finish();
        CHECK(reader.scan(sum) == whole);
    }
}

TEST_CASE("a segment ends at the first PSB after 1/16 of the remaining bytes, at least 2048") {
    auto const in = pads_and_psbs(400'000, each(1000, 400'000));
    segment_finder segments{in, 700, 400'000};
    for (size_t const end : {26'000U, 50'000U, 72'000U}) {  // 24'956, 23'375, 21'875 bytes at least
        CHECK(segments.next());
        CHECK(segments.place == end);
    }
    segments.place = 367'232;  // 1/16 is 2048 bytes
    CHECK((segments.next() && segments.place == 370'000));
    segments.place = 367'952;  // 1/16 is less
    CHECK((segments.next() && segments.place == 370'000));
    segments.place = 367'953;
    CHECK((segments.next() && segments.place == 371'000));
    segments.place = 397'000;  // no PSB after 399'048
    CHECK(!segments.next());
    CHECK(segments.place == 397'000);

    segments = {in, 5000, 1000};  // `until` is before `place`
    CHECK((segments.next() && segments.place == 8000));
}

TEST_CASE("find_first finds a segment for each lane, or fails") {
    auto const many = pads_and_psbs(400'000, each(1000, 400'000));
    segment_finder segments{many, 700, 400'000};
    first_segments first;
    CHECK(find_first(segments, first));
    CHECK(first.begins[0] == 700);
    segment_finder same{many, 700, 400'000};
    for (size_t i = 1; i <= lane_count; ++i) {
        CHECK((same.next() && first.begins[i] == same.place));
    }
    CHECK(segments.place == same.place);

    segment_finder enough{many, 0, 8 * 2048};
    CHECK(find_first(enough, first));
    segment_finder too_few{many, 1, 8 * 2048};
    CHECK(!find_first(too_few, first));

    // When PSBs are rare, segments may end after `until`.
    auto const seldom = pads_and_psbs(400'000, each(40'000, 400'000));
    segment_finder late{seldom, 0, 20'000};
    CHECK((find_first(late, first) && late.place == 320'000));
    late = {seldom, 80'000, 400'000};
    CHECK(!find_first(late, first));
    CHECK(trace::reader{byte_view{seldom}, {.sync = false}}.scan() ==
          reference_counts(byte_view{seldom}, {.sync = false}));
}

TEST_CASE("after a failed attempt the next is a quarter of it, after a good one twice as long") {
    size_t const size = 20'000'000;
    auto in = pads_and_psbs(size, each(4096, size));
    struct end {
        size_t place;
        speculation lanes;
    };
    auto const scan = [&](speculation lanes, size_t from) -> end {
        trace::packet_counts sum;
        size_t const place = count_lanes<packet::all>(byte_view{in}, from, false, sum, lanes);
        size_t const psbs = (place - from) / 4096;
        CHECK((sum.of(kind::psb) == psbs && sum.total() == place - from - 15 * psbs));
        return {place, lanes};
    };
    constexpr auto least = size_t{1} << 15;
    constexpr auto most = size_t{1} << 23;
    size_t const last = size / 4096 * 4096;
    auto const well = scan({}, 4096);
    CHECK(
        (well.place == last && well.lanes.attempt_bytes == most && well.lanes.retry_from == size));
    CHECK(scan({0, least}, 4096).lanes.attempt_bytes == most);
    // 160 KB: attempts of 32 KB, 64 KB and the rest.
    auto const more = scan({0, least}, last - 40 * 4096);
    CHECK((more.place == last && more.lanes.attempt_bytes == 8 * least));

    in[100] = 0x05;  // an undefined opcode
    for (size_t const at_once : {most, 3 * least, least}) {
        auto const none = scan({0, at_once}, 0);
        CHECK((none.place == 0 && none.lanes.attempt_bytes == least));
        CHECK((none.lanes.retry_from >= least && none.lanes.retry_from < 2 * least));
    }
    in[100] = 0;
    in[15'000'000] = 0x05;
    auto const later = scan({}, 4096);
    CHECK((later.place > 15'000'000 - 2 * least && later.place < 15'000'000));
    CHECK((later.lanes.retry_from > 15'000'000 && later.lanes.retry_from < 15'000'000 + 2 * least));
    CHECK(later.lanes.attempt_bytes == least);
}

TEST_CASE("lanes agree with packet::decode (PKT-250)") {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        auto const in = made_trace(seed, 60'000 + 1000 * seed, 30, 0, false);
        trace::packet_counts sum;
        speculation lanes;
        auto const end = count_lanes<packet::all>(in, 0, seed % 2 != 0, sum, lanes);
        CHECK((in.size() - end < 20'000 && lanes.retry_from == in.size()));
        trace::packet_counts plain;
        size_t at = 0;
        while (at < end) {
            auto const got = packet::decode(byte_view{in}.from(at));
            REQUIRE(got);
            plain.add(got.packet.kind(), got.length());
            at += got.length();
        }
        CHECK((at == end && sum == plain));
    }
}

TEST_CASE("lanes count in a constant expression (PKT-250)") {
    CHECK_TWICE([](auto value) {
        // 650 times 32 bytes: ten segments of 64, and a remainder.
        constexpr auto some = join(psb, bytes(0xCD, 1, 2, 3, 4, 5, 6, 7, 8),
                                   bytes(0x8D, 1, 2, 3, 4, 5, 6));
        byte_array<650 * some.size()> trace{};
        for (size_t at = 0; at < trace.size(); at += some.size()) {
            copy_bytes(&trace.bytes[at], some.bytes, some.size());
        }
        auto const in = value(trace);
        trace::packet_counts sum;
        speculation lanes;
        auto const end = count_lanes<packet::all>(byte_view{in}, 0, true, sum, lanes);
        return end == 10 * 2048 && lanes.retry_from == trace.size() && sum.of(kind::psb) == 640 &&
               sum.of(kind::tip) == 1280 && sum.total() == 1920;
    });
}

TEST_CASE("lane counts are discarded unless each segment ends where the next begins") {
    std::vector<std::uint8_t> right(100'000, 0x16);
    for (size_t at = 1000; at < right.size() - 16; at += 1000) {
        std::copy_n(psb.bytes, 16, right.begin() + static_cast<long>(at));
    }
    trace::reader_options const from_the_begin{.sync = false};
    size_t begin = 0;
    for (size_t const end : segment_ends(right, right.size())) {
        auto const broken_at = [&](size_t at, byte_view by) {
            std::vector<std::uint8_t> in = right;
            std::copy_n(by.data(), by.size(), in.begin() + static_cast<long>(at));
            trace::packet_counts sum;
            speculation lanes;
            auto const stop = count_lanes<packet::all>(in, 0, false, sum, lanes);
            CHECK((stop <= at && lanes.retry_from > at));
            auto const before = byte_view{in}.first(stop);
            CHECK(sum == reference_counts(before, from_the_begin));
            CHECK(trace::reader{byte_view{in}, from_the_begin}.scan() ==
                  reference_counts(byte_view{in}, from_the_begin));
        };
        broken_at(begin + 16, bytes(0x05));  // an undefined opcode
        broken_at(end - 20, bytes(0x05));    // near the end of the segment
        broken_at(end - 1, bytes(0xCD));     // a TIP covers half a PSB
        // A valid CYC that is too long for the fast path.
        broken_at(begin + 16, bytes(7, 1, 1, 1, 1, 1, 1, 1, 0x10));
        begin = end;
    }
    CHECK(begin > 96'000);
}

TEST_CASE("scan agrees with next() on random bytes") {
    for (std::uint32_t seed = 0; seed < 2000; ++seed) {
        auto const in = test::random_stream(seed, 100 + 3 * seed);
        for (bool const strict : {false, true}) {
            for (bool const sync : {false, true}) {
                trace::reader_options const how{.sync = sync, .strict = strict};
                REQUIRE(trace::reader{byte_view{in}, how}.scan() ==
                        reference_counts(byte_view{in}, how));
            }
        }
    }
}
