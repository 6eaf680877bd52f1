// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/input.hpp>

#include <initializer_list>

using namespace ptspec;
using test::bytes;
using test::join;
using trace::chunked_input;

TEST_CASE("a whole trace is one chunk, and the last") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(1, 2, 3));
        chunked_input from{byte_view{in}};
        bool const start = from.is_last() && from.offset() == 0 && from.rest() == byte_view{in};
        from.advance(2);
        return start && from.offset() == 2 && from.rest() == byte_view{in}.from(2) &&
               !from.straddles() && !from.feed(byte_view{in});
    });
}

TEST_CASE(
    "feed() takes a chunk after the one before is released, and none after finish() (PKT-255)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(1, 2, 3));
        chunked_input from;
        bool const first = !from.is_last() && from.feed(in);
        bool const too_early = from.feed(in);
        from.advance(3);
        from.release(0);
        bool const second = from.feed(in);
        from.advance(3);
        from.release(0);
        from.finish();
        return first && !too_early && second && from.is_last() && !from.feed(in) &&
               from.offset() == 6;
    });
}

TEST_CASE("carried bytes are read before the next chunk (PKT-255)") {
    CHECK_TWICE([](auto value) {
        auto const one = value(bytes(1, 2, 3));
        auto const two = value(bytes(4, 5));
        chunked_input from;
        bool ok = from.feed(one);
        from.advance(1);
        from.release(2);
        ok = ok && from.straddles() && from.offset() == 1 && from.chunk().empty() &&
             from.position() == 0;
        ok = ok && from.feed(two) && from.unread_carry() == bytes(2, 3);
        byte_array<32> room{};
        ok = ok && from.stitched(room.bytes) == bytes(2, 3, 4, 5);
        from.advance(3);
        return ok && !from.straddles() && from.offset() == 4 && from.position() == 1 &&
               from.rest() == bytes(5);
    });
}

TEST_CASE("stitched() holds at most 16 bytes of the next chunk") {
    CHECK_TWICE([](auto value) {
        auto const one = value(bytes(0x02));
        auto const two = value(join(test::psb, test::psb));
        chunked_input from;
        bool ok = from.feed(one);
        from.release(1);
        ok = ok && from.feed(two);
        byte_array<32> room{};
        return ok && from.stitched(room.bytes) == join(bytes(0x02), test::psb);
    });
}

TEST_CASE("step_back() steps into the carry, over chunks of one byte (PKT-250)") {
    CHECK_TWICE([](auto value) {
        chunked_input from;
        bool ok = true;
        for (unsigned i = 0; i < 40; ++i) {
            auto const one = value(bytes(i));
            ok = ok && from.feed(one);
            from.advance(1);
            from.release(0);
        }
        auto const last = value(bytes(40, 41, 42));
        ok = ok && from.feed(last);
        from.advance(2);
        from.step_back(1);
        ok = ok && !from.straddles() && from.offset() == 41;
        from.step_back(14);
        ok = ok && from.straddles() && from.offset() == 27 && from.position() == 0 &&
             from.unread_carry() == bytes(27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39);
        from.advance(14);
        return ok && from.offset() == 41 && from.rest() == bytes(41, 42);
    });
}

TEST_CASE("the carry holds 15 bytes of an incomplete packet and the 15 bytes before it (PKT-250)") {
    CHECK_TWICE([](auto value) {
        byte_array<64> in{};
        for (unsigned i = 0; i < 64; ++i) { in.bytes[i] = static_cast<uint8_t>(i); }
        auto const seen = value(in);
        chunked_input from;
        bool ok = from.feed(seen);
        from.advance(49);
        from.release(15);
        from.step_back(chunked_input::max_step_back);
        ok = ok && from.offset() == 34 && from.unread_carry().size() == 30;
        for (unsigned i = 0; i < 30; ++i) { ok = ok && from.unread_carry()[i] == 34 + i; }
        return ok && chunked_input::max_step_back == 15;
    });
}

TEST_CASE("search() stops after the PSB, wherever the chunk boundaries are (PKT-250,251)") {
    auto const in = join(bytes(0x00, 0x02), test::psb, bytes(0x02, 0x06, 0x06));
    for (std::size_t first = 0; first <= in.size(); ++first) {
        for (std::size_t second = first; second <= in.size(); ++second) {
            chunked_input from;
            trace::psb_search search;
            bool found = false;
            byte_view const view{in};
            for (byte_view const chunk :
                 {view.first(first), view.first(second).from(first), view.from(second)}) {
                if (found) { break; }
                REQUIRE(from.feed(chunk));
                found = from.search(search);
            }
            if (!found) {
                from.finish();
                found = from.search(search);
            }
            REQUIRE(found);
            REQUIRE(from.offset() == 18);
        }
    }
}

TEST_CASE("search() without a PSB stops at the end of the trace (PKT-254)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x02, 0x82, 0x00));
        chunked_input from{byte_view{in}};
        trace::psb_search search;
        return !from.search(search) && from.offset() == 3 && from.rest().empty();
    });
}

TEST_CASE("seek() moves within the chunk and discards the carry") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(1, 2, 3));
        chunked_input from;
        bool ok = from.feed(in);
        from.release(3);
        ok = ok && from.feed(in);
        from.seek(2);
        return ok && !from.straddles() && from.offset() == 5 && from.rest() == bytes(3);
    });
}
