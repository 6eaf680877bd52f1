// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/write/direct.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

#include <random>

using namespace ptspec;
using test::hex;

namespace {

/// What is appended to a buffer of `Room` bytes, and the state afterwards.
template <size_t Room>
struct appended {
    uint8_t bytes[Room] = {};
    size_t size = 0;
    bool done = false;
    trace::writer_state now{};
};

template <size_t Room = 16, class Append>
constexpr auto append(trace::writer_state now, Append const& what) -> appended<Room> {
    appended<Room> got{.now = now};
    byte_buffer to{got.bytes};
    got.done = what(to, got.now);
    got.size = to.written().size();
    return got;
}
template <size_t Room = 16>
constexpr auto append_tip(trace::writer_state const& now, uint64_t ip,
                          trace::writer_options const& how = {}) -> appended<Room> {
    return append<Room>(now, [&](auto& to, auto& state) {
        return how.is_plain() ? trace::append_tip(to, state, how.ips, ip)
                              : trace::append_aligned_tip(to, state, how, ip);
    });
}
template <size_t Room = 16>
constexpr auto append_tnt(trace::writer_state const& now) -> appended<Room> {
    return append<Room>(now, [](auto& to, auto& state) { return trace::append_tnt(to, state); });
}
template <size_t Room>
constexpr auto holds(appended<Room> const& got, char const* bytes) -> bool {
    auto const wanted = hex(bytes);
    return got.done && byte_view{got.bytes}.first(got.size) == byte_view{wanted} &&
           got.now.bytes == got.size && got.now.tnt.count == 0;
}

}  // namespace

TEST_CASE("gathered branches are appended as one TNT.short") {  // PKT-030, GEN-120
    CHECK_TWICE([](auto value) {  // 1, 0, 1: the stop bit, the oldest first, and the zero
        trace::writer_state now{.tnt = {value(3U), 0b101}};
        return holds(append_tnt(now), "1A");
    });
    CHECK_TWICE([](auto value) {  // seven do not fit
        auto const got = append_tnt(trace::writer_state{.tnt = {value(7U), 0}});
        return !got.done && got.size == 0 && got.now.tnt.count == 7 && got.now.bytes == 0;
    });
}

TEST_CASE("a TIP follows the gathered branches, compressed against the last IP") {
    // PKT-052, PKT-064, GEN-229
    CHECK_TWICE([](auto value) {
        trace::writer_state now{.last_ip = 0x40'1000, .has_last_ip = true, .tnt = {1, 1}};
        auto const got = append_tip(now, value(uint64_t{0x40'2345}));
        return holds(got, "06 2D 45 23") && got.now.last_ip == 0x40'2345;
    });
    CHECK_TWICE([](auto value) {  // without branches, and without a last IP
        auto const got = append_tip({}, value(uint64_t{0x40'2345}));
        return holds(got, "6D 45 23 40 00 00 00") && got.now.has_last_ip;
    });
    CHECK_TWICE([](auto value) {  // all bytes of the IP
        trace::writer_state now{.tnt = {6, 0}};
        return holds(append_tip(now, value(uint64_t{0x8123'4567'89AB'CDEF})),
                     "80 CD EF CD AB 89 67 45 23 81");
    });
}

TEST_CASE("what needs a batch is left to it") {  // GEN-210, GEN-225
    CHECK_TWICE([](auto value) {
        auto const timed = append_tip({}, value(uint64_t{0x1000}), {.cyc = true});
        auto const many = append_tip({.tnt = {7, 0}}, value(uint64_t{0x1000}));
        auto const full = append_tip<6>({.tnt = {1, 1}}, value(uint64_t{0x1000}));
        auto const none = [](auto const& got) {
            return !got.done && got.size == 0 && got.now.bytes == 0 && !got.now.has_last_ip;
        };
        return none(timed) && none(many) && many.now.tnt.count == 7 && none(full) &&
               full.now.tnt.count == 1;
    });
}

TEST_CASE("with PADs both ways of writing place the same bytes (GEN-010, GEN-011)") {
    std::mt19937_64 random{7};
    for (int round = 0; round < 20'000; ++round) {
        trace::writer_state before;
        before.bytes = random() % 64;
        before.last_ip = 0x40'0000 + (random() & 0xFFFF);
        before.has_last_ip = random() % 2 != 0;
        before.has_context_ip = random() % 2 != 0;
        before.ends_in_payload = random() % 3 == 0;
        before.tnt = {static_cast<unsigned>(random() % 7), 0};
        trace::writer_options const how{.ips = static_cast<trace::ip_choice>(random() % 5),
                                        .pads = trace::pad_policy::skylake};
        uint64_t const ip = random() % 2 != 0   ? before.last_ip + 5
                            : random() % 2 != 0 ? random()
                                                : random() >> 20;
        trace::packet_batch<> batch{before, how};
        batch.add_ip<packet::tip>(ip);
        batch.finish();
        auto const got = append_tip<32>(before, ip, how);
        if (!got.done) { continue; }
        CHECK(byte_view{got.bytes}.first(got.size) == batch.bytes());
        CHECK(got.now.bytes == batch.state().bytes);
        CHECK(got.now.ends_in_payload == batch.state().ends_in_payload);
        CHECK(got.now.has_context_ip == batch.state().has_context_ip);
    }
    for (unsigned at = 0; at < 16; ++at) {
        for (bool const after : {false, true}) {
            trace::writer_state before;
            before.bytes = at;
            before.ends_in_payload = after;
            before.tnt = {6, 0x15};
            trace::writer_options const how{.pads = trace::pad_policy::skylake};
            trace::packet_batch<> batch{before, how};
            batch.flush();
            batch.finish();
            auto const got = append<16>(before, [&](auto& to, auto& state) {
                return trace::append_aligned_tnt(to, state, how);
            });
            CHECK(got.done);
            CHECK(byte_view{got.bytes}.first(got.size) == batch.bytes());
            CHECK(!got.now.ends_in_payload);
        }
    }
    for (auto const pads : {trace::pad_policy::within_words, trace::pad_policy::broadwell}) {
        CHECK(!append_tip({}, 0x1000, {.pads = pads}).done);  // left to a batch
    }
}
