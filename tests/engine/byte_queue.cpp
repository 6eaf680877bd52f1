// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/byte_queue.hpp>
#include <ptspec/trace/write/batch.hpp>

#include <support/check_twice.hpp>

#include <cstddef>
#include <cstdint>

using namespace ptspec;
using engine::byte_queue;

static_assert(trace::packet_sink<byte_queue<32>>);

namespace {

template <std::size_t Depth>
constexpr auto append_one(byte_queue<Depth>& to, std::uint8_t byte) -> bool {
    return to.append({&byte, 1});
}

}  // namespace

TEST_CASE("bytes leave the queue in the order they were appended") {
    CHECK_TWICE([](auto value) {
        byte_queue<16> queue;
        std::uint8_t const bytes[] = {value(std::uint8_t{1}), 2, 3};
        bool good = queue.empty() && queue.room() == 16 && queue.depth() == 16 &&
                    queue.append(bytes) && append_one(queue, 4) && queue.size() == 4 &&
                    queue.room() == 12 && !queue.empty();
        for (std::size_t i = 0; i < 4; ++i) {
            good = good && queue[i] == i + 1 && queue.front()[i] == i + 1;
        }
        queue.drop(value(std::size_t{3}));
        good = good && queue.size() == 1 && queue[0] == 4 && queue.front().size() == 1;
        queue.drop(1);
        return good && queue.empty() && queue.front().empty();
    });
}

TEST_CASE("append() takes all bytes or none") {  // GEN-225
    CHECK_TWICE([](auto value) {
        byte_queue<16> queue;
        std::uint8_t const bytes[17] = {value(std::uint8_t{9})};
        bool good = !queue.append(bytes) && queue.empty();
        good = good && queue.append(byte_view{bytes}.first(16)) && queue.room() == 0;
        return good && !append_one(queue, 1) && !queue.append({1, 0}, 1) &&
               !queue.append(byte_view{bytes}.first(1)) && queue.append(byte_view{}) &&
               queue.size() == 16 && queue[0] == 9 && queue[15] == 0;
    });
}

TEST_CASE("the queue wraps around") {
    CHECK_TWICE([](auto value) {
        byte_queue<19> queue;
        std::uint8_t next_in = 0;
        std::uint8_t next_out = 0;
        bool good = true;
        auto const take = [&](std::size_t most) {
            auto const front = queue.front().first(most);
            for (std::uint8_t const byte : front) { good = good && byte == next_out++; }
            queue.drop(front.size());
        };
        for (unsigned round = 0; round < value(60U); ++round) {
            std::uint8_t bytes[16] = {};
            std::size_t const count = round % 7 + 1;
            wide_bits wide{};
            for (std::size_t i = 0; i < count; ++i) {
                bytes[i] = static_cast<std::uint8_t>(next_in + i);
                wide.low |= std::uint64_t{bytes[i]} << 8 * i;
            }
            bool const fits = count <= queue.room();
            bool const taken = round % 3 == 0   ? queue.append(byte_view{bytes}.first(count))
                               : round % 3 == 1 ? queue.append(wide, count)
                                                : count == 1 && append_one(queue, bytes[0]);
            if (taken) { next_in = static_cast<std::uint8_t>(next_in + count); }
            good = good && (taken == fits || round % 3 == 2);
            good = good && queue.size() + queue.room() == 19;
            if (round % 2 == 0) { take(round % 5 + 2); }
        }
        while (!queue.empty()) { take(19); }
        return good && next_in == next_out && next_in > 19;
    });
}

TEST_CASE("a 16-byte append does not change queued bytes") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (std::size_t before = 0; before <= 24; ++before) {
            for (std::size_t kept = 0; kept <= 8; ++kept) {
                byte_queue<24> queue;
                for (std::size_t i = 0; i < before; ++i) { good = good && append_one(queue, 0xEE); }
                if (before > kept) { queue.drop(before - kept); }
                std::size_t const held = queue.size();
                bool const fits = queue.room() >= 3;
                good = good && queue.append({value(std::uint64_t{0x030201}), 0}, 3) == fits;
                for (std::size_t i = 0; i < held; ++i) { good = good && queue[i] == 0xEE; }
                for (std::size_t i = 0; fits && i < 3; ++i) {
                    good = good && queue[held + i] == i + 1;
                }
            }
        }
        return good;
    });
}

TEST_CASE("drop() of more than size() bytes and clear() both empty the queue") {
    CHECK_TWICE([](auto value) {
        byte_queue<16> queue;
        bool good = append_one(queue, value(std::uint8_t{1})) && append_one(queue, 2);
        queue.drop(5);
        good = good && queue.empty() && queue.room() == 16 && append_one(queue, 7) && queue[0] == 7;
        queue.clear();
        return good && queue.empty() && append_one(queue, 8) && queue.front()[0] == 8;
    });
}

TEST_CASE("a 16-byte append with count 16 keeps all bytes") {
    CHECK_TWICE([](auto value) {
        byte_queue<32> queue;
        bool good = queue.append({value(std::uint64_t{0x0706050403020100}), 0x0F0E0D0C0B0A0908},
                                 16);
        for (std::size_t i = 0; i < 16; ++i) { good = good && queue[i] == i; }
        return good && queue.size() == 16;
    });
}
