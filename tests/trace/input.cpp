// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/input.hpp>

#include <initializer_list>

using namespace ptspec;
using test::bytes;
using test::join;
using trace::pieces;

TEST_CASE("a whole trace is one chunk, and the last") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(1, 2, 3));
        pieces at{byte_view{in}};
        bool const start = at.is_last() && at.offset() == 0 && at.rest() == byte_view{in};
        at.step_over(2);
        return start && at.offset() == 2 && at.rest() == byte_view{in}.from(2) && !at.straddles() &&
               !at.feed(byte_view{in});
    });
}

TEST_CASE(
    "feed() takes a chunk after the one before is released, and none after finish() (PKT-255)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(1, 2, 3));
        pieces at;
        bool const first = !at.is_last() && at.feed(in);
        bool const too_early = at.feed(in);
        at.step_over(3);
        at.release(0);
        bool const second = at.feed(in);
        at.step_over(3);
        at.release(0);
        at.finish();
        return first && !too_early && second && at.is_last() && !at.feed(in) && at.offset() == 6;
    });
}

TEST_CASE("carried bytes are read before the next chunk (PKT-255)") {
    CHECK_TWICE([](auto value) {
        auto const one = value(bytes(1, 2, 3));
        auto const two = value(bytes(4, 5));
        pieces at;
        bool ok = at.feed(one);
        at.step_over(1);
        at.release(2);
        ok = ok && at.straddles() && at.offset() == 1 && at.piece().empty() && at.at() == 0;
        ok = ok && at.feed(two) && at.kept() == bytes(2, 3);
        byte_array<32> room{};
        ok = ok && at.stitched(room.bytes) == bytes(2, 3, 4, 5);
        at.step_over(3);
        return ok && !at.straddles() && at.offset() == 4 && at.at() == 1 && at.rest() == bytes(5);
    });
}

TEST_CASE("stitched() holds at most 16 bytes of the next chunk") {
    CHECK_TWICE([](auto value) {
        auto const one = value(bytes(0x02));
        auto const two = value(join(test::psb, test::psb));
        pieces at;
        bool ok = at.feed(one);
        at.release(1);
        ok = ok && at.feed(two);
        byte_array<32> room{};
        return ok && at.stitched(room.bytes) == join(bytes(0x02), test::psb);
    });
}

TEST_CASE("go_back() steps into the carry, over chunks of one byte (PKT-250)") {
    CHECK_TWICE([](auto value) {
        pieces at;
        bool ok = true;
        for (unsigned i = 0; i < 40; ++i) {
            auto const one = value(bytes(i));
            ok = ok && at.feed(one);
            at.step_over(1);
            at.release(0);
        }
        auto const last = value(bytes(40, 41, 42));
        ok = ok && at.feed(last);
        at.step_over(2);
        at.go_back(1);
        ok = ok && !at.straddles() && at.offset() == 41;
        at.go_back(14);
        ok = ok && at.straddles() && at.offset() == 27 && at.at() == 0 &&
             at.kept() == bytes(27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39);
        at.step_over(14);
        return ok && at.offset() == 41 && at.rest() == bytes(41, 42);
    });
}

TEST_CASE("the carry holds 15 bytes of an incomplete packet and the 15 bytes before it (PKT-250)") {
    CHECK_TWICE([](auto value) {
        byte_array<64> in{};
        for (unsigned i = 0; i < 64; ++i) { in.bytes[i] = static_cast<uint8_t>(i); }
        auto const seen = value(in);
        pieces at;
        bool ok = at.feed(seen);
        at.step_over(49);
        at.release(15);
        at.go_back(pieces::look_back);
        ok = ok && at.offset() == 34 && at.kept().size() == 30;
        for (unsigned i = 0; i < 30; ++i) { ok = ok && at.kept()[i] == 34 + i; }
        return ok && pieces::look_back == 15;
    });
}

TEST_CASE("search() stops after the PSB, wherever the chunk boundaries are (PKT-250,251)") {
    auto const in = join(bytes(0x00, 0x02), test::psb, bytes(0x02, 0x06, 0x06));
    for (std::size_t first = 0; first <= in.size(); ++first) {
        for (std::size_t second = first; second <= in.size(); ++second) {
            pieces at;
            trace::psb_search search;
            bool found = false;
            byte_view const view{in};
            for (byte_view const piece :
                 {view.first(first), view.first(second).from(first), view.from(second)}) {
                if (found) { break; }
                REQUIRE(at.feed(piece));
                found = at.search(search);
            }
            if (!found) {
                at.finish();
                found = at.search(search);
            }
            REQUIRE(found);
            REQUIRE(at.offset() == 18);
        }
    }
}

TEST_CASE("search() without a PSB stops at the end of the trace (PKT-254)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x02, 0x82, 0x00));
        pieces at{byte_view{in}};
        trace::psb_search search;
        return !at.search(search) && at.offset() == 3 && at.rest().empty();
    });
}

TEST_CASE("go_to() moves within the chunk and discards the carry") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(1, 2, 3));
        pieces at;
        bool ok = at.feed(in);
        at.release(3);
        ok = ok && at.feed(in);
        at.go_to(2);
        return ok && !at.straddles() && at.offset() == 5 && at.rest() == bytes(3);
    });
}
