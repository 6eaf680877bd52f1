// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/split.hpp>

#include <algorithm>
#include <vector>

using namespace ptspec;
using test::bytes;
using test::join;
using test::psb;
using test::unknown;

namespace {

/// The items of a reader without the end item, as numbers. Adds `begin` to their offsets.
auto items_of(byte_view in, trace::reader_options how, size_t begin = 0)
    -> std::vector<std::uint64_t> {
    std::vector<std::uint64_t> all;
    trace::reader reader{in, how};
    for (auto one = reader.next(); one.what != trace::item_type::end; one = reader.next()) {
        for (std::uint64_t const value :
             {std::uint64_t{one.offset + begin}, static_cast<std::uint64_t>(one.what), one.ip,
              static_cast<std::uint64_t>(one.error), std::uint64_t{one.length},
              static_cast<std::uint64_t>(one.skipped),
              static_cast<std::uint64_t>(one.packet.kind()), one.packet.raw().low,
              one.packet.raw().high}) {
            all.push_back(value);
        }
    }
    return all;
}

/// The parts make up the trace in order, are at most `count`, are not empty, and decode to the
/// items of the whole trace.
auto is_exact(byte_view in, size_t count, trace::reader_options how) -> bool {
    std::vector<std::uint64_t> all;
    size_t begin = 0;
    size_t pieces = 0;
    for (byte_view const piece : trace::split{in, count, how}) {
        if (piece.data() != in.data() + begin || piece.empty()) { return false; }
        if (begin != 0 && !(piece.first(16) == byte_view{psb})) { return false; }
        auto const more = items_of(piece, how, begin);
        all.insert(all.end(), more.begin(), more.end());
        begin += piece.size();
        ++pieces;
    }
    return begin == in.size() && pieces <= std::max<size_t>(count, 1) && all == items_of(in, how);
}

/// The number of parts.
constexpr auto pieces_of(byte_view in, size_t count, trace::reader_options how = {}) -> size_t {
    size_t pieces = 0;
    for (byte_view const piece : trace::split{in, count, how}) {
        pieces += piece.empty() ? 0U : 1U;
    }
    return pieces;
}

constexpr auto tip = bytes(0x2D, 0x02, 0x82);
constexpr auto tips = join(tip, tip, tip, tip, tip, tip);
constexpr auto bad = bytes(0x05);  // an undefined opcode
constexpr auto four_psbs = join(psb, tips, psb, tips, psb, tips, psb, tips);
constexpr size_t step = 16 + 18;

}  // namespace

TEST_CASE("a trace is split at PSBs, into parts of about the same size") {
    CHECK_TWICE([](auto value) {
        auto const in = value(four_psbs);
        size_t begin = 0;
        for (byte_view const piece : trace::split{byte_view{in}, 2}) {
            if (piece.data() != in.data() + begin || piece.size() != 2 * step) { return false; }
            begin += piece.size();
        }
        return begin == in.size();
    });
    CHECK_TWICE([](auto value) { return pieces_of(value(four_psbs), 4) == 4; });
    CHECK_TWICE([](auto value) { return pieces_of(value(four_psbs), 3) == 3; });
    CHECK_TWICE([](auto value) { return pieces_of(value(four_psbs), 1) == 1; });
}

TEST_CASE("split() gives fewer parts when the trace has too few split points") {
    CHECK_TWICE([](auto value) { return pieces_of(value(four_psbs), 0) == 1; });
    CHECK_TWICE([](auto value) { return pieces_of(value(four_psbs), 1000) == 4; });
    CHECK_TWICE([](auto value) { return pieces_of(value(four_psbs), ~size_t{0}) == 4; });
    CHECK_TWICE([](auto value) { return pieces_of(value(tip), 2) == 1; });
    CHECK_TWICE([](auto) { return pieces_of({}, 2) == 0; });
}

TEST_CASE("the first PSB is no split point: the bytes before it are skipped (PKT-250)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(tip, psb, tips, psb, tips));
        size_t const second = 3 + step;
        return trace::find_split_point(in, 0) == second &&
               trace::find_split_point(in, second) == second &&
               trace::find_split_point(in, second + 1) == in.size();
    });
    CHECK_TWICE([](auto value) {
        auto const in = value(tips);
        return trace::find_split_point(in, 0) == in.size();
    });
}

TEST_CASE("a PSB after damage is no split point: the reader reports it as resynced (PKT-251)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(psb, tips, bad, psb, tips, psb, tips));
        return trace::find_split_point(in, 1) == 2 * step + 1;
    });
    // In strict mode a set reserved bit of TMA is damage.
    CHECK_TWICE([](auto value) {
        auto const tma = bytes(0x02, 0x73, 0, 0, 1, 0, 0);
        auto const in = value(join(psb, tips, tma, psb, tips, psb));
        return trace::find_split_point(in, 1) == step + 7 &&
               trace::find_split_point(in, 1, {.strict = true}) == 2 * step + 7;
    });
}

TEST_CASE("a PSB whose first bytes belong to another packet is no split point (PKT-250)") {
    CHECK_TWICE([](auto value) {
        auto const ptw = bytes(0x02, 0x12);  // takes its payload from the PSB
        auto const in = value(join(psb, tips, ptw, psb, tips, psb));
        return trace::find_split_point(in, 1) == 2 * step + 2;
    });
}

TEST_CASE("damage is reported in the part that contains all its bytes (PKT-255)") {
    // A packet covers the first bytes of a PSB. The last packet that can begin before the end of
    // that PSB needs up to 16 bytes, the last of which only the whole trace would contain.
    for (size_t const tip_count : {0U, 1U, 2U, 3U, 4U, 5U, 6U}) {
        auto const head = join(psb, tips, bytes(0x02, 0x12), psb);
        std::vector<std::uint8_t> in(head.bytes, head.bytes + head.size());
        for (size_t i = 0; i < tip_count; ++i) { in.insert(in.end(), tip.bytes, tip.bytes + 3); }
        in.insert(in.end(), psb.bytes, psb.bytes + 16);
        in.insert(in.end(), tips.bytes, tips.bytes + 18);
        CHECK(is_exact(byte_view{in}, 1000, {}));
    }
}

TEST_CASE("the parts of random bytes decode to the items of the whole (PKT-250,251)") {
    size_t cuts = 0;
    for (std::uint32_t seed = 0; seed < 3000; ++seed) {
        auto const in = test::random_stream(seed, 100 + seed);
        for (bool const strict : {false, true}) {
            for (bool const sync : {false, true}) {
                for (size_t const count : {2U, 5U, 1000U}) {
                    bool const exact = is_exact(in, count, {.sync = sync, .strict = strict});
                    CHECK_MESSAGE(exact, seed, " ", count, " ", sync, " ", strict);
                }
            }
        }
        cuts += pieces_of(in, 1000) - 1;
    }
    CHECK(cuts > 3000);
}

TEST_CASE("a split point is at least 32 bytes after the PSB before it (PKT-250)") {
    CHECK_TWICE([](auto value) {
        constexpr auto rest = [](size_t pads) { return 16 + pads; };  // a PSB and `pads` PADs
        bool right = true;
        for (size_t pads = 14; pads < 20; ++pads) {
            byte_array<64> in{};
            for (unsigned i = 0; i < 16; ++i) {
                in.bytes[i] = test::psb[i];
                in.bytes[rest(pads) + i] = test::psb[i];
            }
            byte_view const trace = byte_view{in}.first(rest(pads) + 16);
            right = right && trace::find_split_point(trace, value(size_t{1})) ==
                                 (pads >= 16 ? rest(pads) : trace.size());
        }
        return right;
    });
}

TEST_CASE("split() never gives more parts than requested, whatever the remainder of the division") {
    std::vector<std::uint8_t> in;
    for (unsigned i = 0; i <= 20; ++i) {  // a PSB every 33 bytes, and one in the remainder
        in.insert(in.end(), test::psb.bytes, test::psb.bytes + 16);
        if (i != 20) { in.insert(in.end(), 17, 0); }
    }
    size_t count = 0;
    size_t size = 0;
    for (byte_view const piece : trace::split{byte_view{in.data(), in.size()}, 20}) {
        ++count;
        size += piece.size();
    }
    CHECK(count == 20);
    CHECK(size == in.size());
}
