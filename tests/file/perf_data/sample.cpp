// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/sample.hpp>
#include <ptspec/file/perf_data/streams.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

#include <random>
#include <vector>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using test::join;
using test::perf_pipe;
using test::perf_record;
using test::u32;
using test::u64;

namespace {

constexpr uint64_t aux_bit = 1 << 20;

/// A SAMPLE with these bytes, of an event with this `sample_type`.
template <class Bytes>
constexpr auto read(sample_format const& how, Bytes const& bytes) -> parsed<byte_view> {
    record one;
    one.type = record_type::sample;
    one.offset = 99;
    one.bytes = one.content = bytes;
    one.event = how.type;
    return aux_sample_of(one, how);
}

}  // namespace

TEST_CASE("the bytes of a SAMPLE with nothing else, and of one without the member") {
    CHECK_TWICE([](auto value) {
        auto const one = value(perf_record(9, 0, join(u64(8), test::letters("tracehas"))));
        auto const got = read({.type = {aux_bit}}, one);
        auto const none = read({}, one);
        auto const empty = read({.type = {aux_bit}}, value(perf_record(9, 0, u64(0))));
        return got && got.value == byte_view{one}.from(16) && none && none.value.empty() && empty &&
               empty.value.empty();
    });
}

TEST_CASE("a SAMPLE that is too short for a count in it") {
    CHECK_TWICE([](auto value) {
        auto const fails = [&](sample_format how, auto const& bytes) {
            how.type.raw |= aux_bit;
            return read(how, value(perf_record(9, 0, bytes))).result ==
                   read_status{read_error::record_too_short, 99};
        };
        constexpr uint64_t huge = ~uint64_t{0};
        return fails({}, u32(0)) && fails({}, join(u64(9), u64(0))) && fails({}, u64(huge)) &&
               fails({.type = {1 << 5}}, join(u64(huge), u64(0))) &&                  // CALLCHAIN
               fails({.type = {1 << 5}}, join(u64(huge / 8 + 2), u64(0), u64(0))) &&  // wraps to 8
               fails({.type = {1 << 10}}, join(u32(~0U), u32(0))) &&                  // RAW
               fails({.type = {1 << 11}}, join(u64(huge / 24 + 1), u64(0))) &&  // BRANCH_STACK
               fails({.type = {1 << 13}}, join(u64(huge), u64(0))) &&           // STACK_USER
               fails({.type = {1 << 4}, .read_format = {8}}, join(u64(huge), u64(0)));  // READ
    });
}

TEST_CASE("the format of a SAMPLE is that of its event") {
    CHECK_TWICE([](auto value) {
        auto attr = join(test::perf_attr{.sample_type = 1 << 20, .read_format = 5}.bytes(), u64(0),
                         u64(3 << 17), u64(0xF0F), u32(0), u32(0), u64(0x10), u64(0), u64(0),
                         u64(0));
        attr.bytes[4] = 128;
        auto const all = value(perf_pipe(perf_record(64, 0, attr)));
        auto const of = open(all);
        auto events = attrs_of(of);
        return sample_format_of(events.next()) == sample_format{.type = {aux_bit},
                                                                .read_format = {5},
                                                                .branch_sample_type = 3 << 17,
                                                                .user_registers = 8,
                                                                .intr_registers = 1} &&
               of.has_aux_samples && !of.sample_formats_differ;
    });
}

TEST_CASE("the bytes are found after every mixture of other members") {
    std::mt19937 random{3};
    auto const below = [&](unsigned most) { return static_cast<unsigned>(random() % most); };
    unsigned wrong = 0;
    for (unsigned round = 0; round < 6000; ++round) {
        std::vector<std::uint8_t> body;
        auto const number = [&](std::uint64_t value) {
            auto const bytes = u64(value);
            body.insert(body.end(), bytes.data(), bytes.data() + bytes.size());
        };
        auto const anything = [&](std::uint64_t count) {
            for (; count != 0; --count) { number(random() * std::uint64_t{0x1'2345'6789}); }
        };
        sample_format how{.type = {(std::uint64_t{random()} & 0x1FF'FFFF) | aux_bit},
                          .read_format = {below(32)},
                          .branch_sample_type = std::uint64_t{below(16)} << 16,
                          .user_registers = below(5),
                          .intr_registers = below(5)};
        auto const has = [&](unsigned bit) { return (how.type.raw >> bit & 1) != 0; };
        // The order of the kernel: IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD.
        for (unsigned const bit : {16U, 0U, 1U, 2U, 3U, 6U, 9U, 7U, 8U}) { anything(has(bit)); }
        if (has(4)) {  // READ
            bool const is_group = (how.read_format.raw & 8) != 0;
            std::uint64_t const times = (how.read_format.raw & 1) + (how.read_format.raw >> 1 & 1);
            std::uint64_t const each = 1 + (how.read_format.raw >> 2 & 1) +
                                       (how.read_format.raw >> 4);
            unsigned const count = is_group ? below(4) : 1;
            if (is_group) { number(count); }
            anything(times + count * each);
        }
        if (has(5)) {  // CALLCHAIN
            unsigned const count = below(4);
            number(count);
            anything(count);
        }
        if (has(10)) {  // RAW: a size of 32 bits, padded with it to 8
            unsigned const count = below(4);
            number(std::uint64_t{random()} << 32 | (4 + 8 * count));
            anything(count);
        }
        if (has(11)) {  // BRANCH_STACK
            unsigned const count = below(4);
            number(count);
            anything(how.branch_sample_type >> 17 & 1);
            anything(3 * count);
            anything((how.branch_sample_type >> 19 & 1) * count);
        }
        auto const registers = [&](unsigned count) {
            bool const has_any = below(2) == 0;
            number(has_any ? 2 : 0);
            anything(has_any ? count : 0);
        };
        if (has(12)) { registers(how.user_registers); }
        if (has(13)) {  // STACK_USER
            unsigned const count = below(3);
            number(8 * count);
            anything(count == 0 ? 0 : count + 1);
        }
        anything(has(14) || has(24));              // WEIGHT, WEIGHT_STRUCT
        anything(std::size_t{has(15)} + has(17));  // DATA_SRC, TRANSACTION
        if (has(18)) { registers(how.intr_registers); }
        anything(std::size_t{has(19)} + has(21) + has(22) +
                 has(23));  // PHYS_ADDR .. CODE_PAGE_SIZE
        std::size_t const begin = body.size();
        unsigned const size = below(9);
        number(8 * size);
        anything(size);

        auto const whole = [&] {
            auto const head = join(u32(9), test::u16(2), test::u16(8 + body.size()));
            std::vector<std::uint8_t> all(head.data(), head.data() + head.size());
            all.insert(all.end(), body.begin(), body.end());
            return all;
        }();
        auto const got = read(how, whole);
        auto const wanted = byte_view{whole}.from(8 + begin + 8);
        bool const right = got && got.value.size() == 8 * size &&
                           (size == 0 || got.value.data() == wanted.data());
        wrong += right ? 0 : 1;
        // Each shorter record is too short, or has other bytes; nothing after its end is read.
        std::vector<std::uint8_t> const cut(
            whole.begin(), whole.end() - 1 - below(static_cast<unsigned>(size) + 1));
        auto const less = read(how, cut);
        wrong += less && less.value.size() == 8 * size ? 1 : 0;
    }
    CHECK(wrong == 0);
}
