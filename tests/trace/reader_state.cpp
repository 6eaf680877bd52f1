// SPDX-License-Identifier: BSL-1.0
// What can be asked of a reader between two packets. Packets of long pieces are read at a glance,
// those of pieces below 16 bytes never are: the answers have to be the same.
#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/reader.hpp>
#include <ptspec/trace/reader_state.hpp>

using namespace ptspec;
using test::bytes;
using trace::reader;

namespace {

/// TNT, TIP with 48 bits, CYC, a block of one item, TIP with 16 bits, PADs.
constexpr auto packets = test::join(
    test::psb, bytes(0x16, 0x6D, 1, 2, 3, 4, 5, 6, 0x07, 0x02, 0x02, 0x63, 0x80, 0x04, 1, 2, 3, 4,
                     0x02, 0x33, 0x2D, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));

/// What a reader says of itself.
struct answers {
    uint64_t offset;
    uint64_t last_ip;
    packet::block items;

    friend constexpr auto operator==(answers const&, answers const&) -> bool = default;
};

constexpr auto ask(trace::reader_state const& which) -> answers {
    return {which.offset(), which.last_ip(), which.items()};
}

/// The next packet of a reader that is fed with pieces of so many bytes.
template <class Reader>
constexpr auto next_in_pieces(Reader& in, size_t piece, size_t& fed) -> trace::item {
    auto got = in.next();
    while (got.what == trace::item_type::need_input) {
        auto const rest = byte_view{packets}.from(fed);
        if (rest.empty()) {
            in.finish();
        } else if (!in.feed(rest.first(piece))) {
            return {};
        } else {
            fed += rest.first(piece).size();
        }
        got = in.next();
    }
    return got;
}

}  // namespace

TEST_CASE("a reader that has read nothing stands at the begin, without IP and block (PKT-060)") {
    CHECK_TWICE([](auto value) {
        reader const whole{byte_view{packets}, value(trace::options{})};
        reader const parts{value(trace::options{.sync = false})};
        answers const none{0, 0, packet::block::none};
        return ask(whole) == none && ask(parts) == none;
    });
}

TEST_CASE("a reader tells where it stands, its last IP and its block (PKT-059..061,205)") {
    CHECK_TWICE([](auto value) {
        reader in{byte_view{packets}, value(trace::options{.sync = false})};
        constexpr auto none = packet::block::none;
        answers const expected[] = {
            {16, 0, none},
            {17, 0, none},
            {24, 0x0605'0403'0201, none},
            {26, 0x0605'0403'0201, none},
            {29, 0x0605'0403'0201, packet::block::items_of_4},
            {34, 0x0605'0403'0201, packet::block::items_of_4},
            {36, 0x0605'0403'0201, none},
            {39, 0x0605'0403'1234, none},
            {40, 0x0605'0403'1234, none},
        };
        for (auto const& one : expected) {
            if (in.next().what != trace::item_type::packet || ask(in) != one) { return false; }
        }
        return true;
    });
}

TEST_CASE("it tells the same whatever the pieces are (PKT-256)") {
    CHECK_TWICE([](auto value) {
        for (size_t const piece : {size_t{1}, size_t{7}, size_t{15}, size_t{16}, size_t{40}}) {
            reader whole{byte_view{packets}, value(trace::options{})};
            reader parts{value(trace::options{})};
            size_t fed = 0;
            while (true) {
                auto const one = whole.next();
                auto const two = next_in_pieces(parts, piece, fed);
                if (one.what != two.what || one.offset != two.offset || one.ip != two.ip ||
                    one.packet != two.packet || ask(whole) != ask(parts)) {
                    return false;
                }
                if (!one) { break; }
            }
        }
        return true;
    });
}

TEST_CASE("a reader that goes to a PSB stands before it, and reads it (PKT-250)") {
    CHECK_TWICE([](auto value) {
        constexpr auto twice = test::join(packets, packets);
        reader in{byte_view{twice}, value(trace::options{})};
        bool const found = in.sync_first() && in.offset() == 0 && in.sync_next() &&
                           in.offset() == packets.size();
        auto const got = in.next();
        return found && got.packet.template is<packet::psb>() && got.offset == packets.size() &&
               in.offset() == packets.size() + 16;
    });
}

TEST_CASE("behind a scan the last IP is 0 until the next PSB (PKT-060)") {
    CHECK_TWICE([](auto value) {
        constexpr auto few = test::bytes(0x6D, 1, 2, 3, 4, 5, 6);  // too few for a glance
        constexpr auto last = test::bytes(0x2D, 0x34, 0x12);
        reader in{value(trace::options{.sync = false})};
        bool const fed = in.feed(packets);
        auto const first = in.scan();
        bool const more = in.feed(few);
        auto const sum = in.scan(first);
        bool const most = in.feed(last);
        auto const got = in.next();
        return fed && more && most && sum.of(packet::kind::tip) == 3 &&
               sum.of(packet::kind::bip) == 1 && got.packet.template is<packet::tip>() &&
               got.ip == 0x1234;
    });
}
