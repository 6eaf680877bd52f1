// SPDX-License-Identifier: BSL-1.0
// The library's decoder against the plain one: all two-byte heads, and random bytes of every
// length.
#include <ptspec/packet/decode.hpp>

#include <support/check_twice.hpp>
#include <support/packet_fields.hpp>
#include <support/packet_samples.hpp>
#include <support/random_numbers.hpp>
#include <support/reference_decoder.hpp>

#include <spec_tables.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace ptspec;
using namespace ptspec::packet;
using test::field_list;
using test::fields_of;

namespace {

auto name_of_error(error why) -> text {
    switch (why) {
        case error::none: return "";
        case error::truncated: return "truncated";
        case error::bad_opcode: return "bad_opcode";
        case error::reserved: return "reserved";
        case error::bad_packet: return "bad_packet";
    }
    return "?";
}

auto fields_agree(field_list const& got, reference::answer const& expected) -> bool {
    if (got.count != expected.count) { return false; }
    for (unsigned i = 0; i < got.count; ++i) {
        auto const* const same = expected.find(got.fields[i].name);
        if (same == nullptr || same->value != got.fields[i].value) { return false; }
    }
    return true;
}

auto agree(decoded const& got, reference::answer const& expected, uint64_t last_ip) -> bool {
    if (!(name_of_error(got.error) == expected.error) || got.length() != expected.length ||
        got.need != expected.need) {
        return false;
    }
    return !got || (name_of(got.packet.kind()) == expected.name() &&
                    fields_agree(fields_of(got.packet, last_ip), expected));
}

struct situation {
    block items;
    bool strict;
};

constexpr situation situations[] = {{block::none, false},       {block::none, true},
                                    {block::items_of_4, false}, {block::items_of_4, true},
                                    {block::items_of_8, false}, {block::items_of_8, true}};

/// True if both decoders give the same result for these bytes in this context.
auto same(uint8_t const* bytes, size_t size, situation in, uint64_t last_ip) -> bool {
    // The bytes end at the end of an array, so that the sanitizer reports reads past the end.
    uint8_t exact[test::hex_bytes::most];
    auto* const first = exact + sizeof exact - size;
    std::memcpy(first, bytes, size);
    auto const got = decode({first, size}, {.block = in.items, .strict = in.strict});
    return agree(got, reference::decode(first, size, underlying(in.items), in.strict, last_ip),
                 last_ip);
}

/// The bytes as text for a failure message.
auto shown(uint8_t const* bytes, size_t size) -> std::string {
    std::string out;
    for (size_t i = 0; i < size; ++i) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%02x ", static_cast<unsigned>(bytes[i]));
        out += digits;
    }
    return out;
}

void check_same(uint8_t const* bytes, size_t size, situation in, uint64_t last_ip) {
    if (!same(bytes, size, in, last_ip)) {
        FAIL_CHECK(shown(bytes, size), " items ", unsigned{underlying(in.items)}, " strict ",
                   in.strict);
    }
}

/// Seventeen random bytes. Zeros and the opcodes of long packets are more frequent than in uniform
/// bytes.
struct random_bytes {
    test::random_numbers random{};
    uint8_t bytes[24] = {};

    void fill() {
        uint64_t const words[] = {random(), random(), random()};
        for (unsigned i = 0; i < 24; ++i) {
            bytes[i] = static_cast<uint8_t>(words[i / 8] >> (8 * (i % 8)));
        }
        // Half of the strings begin with the escape, and some of these continue with few or many
        // bits set.
        uint64_t const how = random();
        if ((how & 1) != 0) { bytes[0] = 0x02; }
        if ((how & 6) == 6) {
            for (unsigned i = 2; i < 24; ++i) { bytes[i] &= static_cast<uint8_t>(how >> (i + 8)); }
        }
        if ((how & 24) == 24) {
            for (unsigned i = 1; i < 24; ++i) { bytes[i] |= static_cast<uint8_t>(how >> (i + 4)); }
        }
    }
};

}  // namespace

TEST_CASE("the plain decoder decodes all vectors correctly") {
    // The plain decoder is a valid reference only if it passes these vectors, which were checked
    // with real decoders.
    REQUIRE(test::packet_vectors_count != 0);
    for (auto const& row : test::packet_vectors) {
        INFO(std::string(row.id.data(), row.id.size()));
        auto const got = reference::decode(row.bytes, row.size, row.block, false, row.last_ip);
        std::string const name{row.name.data(), row.name.size()};
        std::string rest{row.fields.data(), row.fields.size()};
        CHECK(got.length == row.length);
        if (name.starts_with("error:")) {
            CHECK(name == "error:" + std::string{got.error.data(), got.error.size()});
            CHECK(rest == (got.need == 0 ? "" : "need=" + std::to_string(got.need)));
            continue;
        }
        CHECK(got.name() == row.name);
        CHECK(got.error == "");
        // A list of `name=value`: hexadecimal, decimal, T and N, or a word.
        unsigned count = 0;
        for (; !rest.empty(); ++count) {
            auto const cell = rest.substr(0, rest.find(';'));
            rest.erase(0, cell.size() + 1);
            auto const equals = cell.find('=');
            REQUIRE(equals != std::string::npos);
            auto const* const field = got.find({cell.data(), equals});
            REQUIRE(field != nullptr);
            auto const value = cell.substr(equals + 1);
            if (cell.starts_with("bits=")) {
                std::string bits;
                for (auto left = got.find("count")->value; left-- != 0;) {
                    bits += (field->value >> left & 1) != 0 ? 'T' : 'N';
                }
                CHECK(value == bits);
            } else if (value == "suppressed") {
                CHECK(got.find("ipbytes")->value == 0);
            } else {
                int const base = value.starts_with("0x") ? 16 : 10;
                CHECK(std::strtoull(value.c_str(), nullptr, base) == field->value);
            }
        }
        CHECK(got.count == count);
    }
}

TEST_CASE("both decoders agree on all 65536 two-byte heads, complete and truncated, in every "
          "context (PKT-001..006, PKT-010..016, PKT-203)") {
    random_bytes source;
    for (unsigned head = 0; head < 65536; ++head) {
        source.fill();
        source.bytes[0] = static_cast<uint8_t>(head % 256);
        source.bytes[1] = static_cast<uint8_t>(head / 256);
        uint64_t const last_ip = source.random();
        for (auto const in : situations) {
            check_same(source.bytes, 17, in, last_ip);
            check_same(source.bytes, head % 17, in, last_ip);
        }
    }
}

TEST_CASE("both decoders agree on every sample, each prefix of it and each single-bit change") {
    for (auto const& sample : test::packet_samples) {
        for (auto const in : situations) {
            for (size_t size = 0; size <= sample.bytes.size(); ++size) {
                check_same(sample.bytes.bytes, size, in, 0x1234'5678'9ABC'DEF0);
            }
            for (unsigned bit = 0; bit < 8 * sample.bytes.size(); ++bit) {
                auto changed = sample.bytes;
                changed.bytes[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
                check_same(changed.bytes, test::hex_bytes::most, in, 0xFFFF'FFFF'8123'4567);
            }
        }
    }
}

TEST_CASE("both decoders agree on random bytes of every length, in every context (PKT-001..006, "
          "PKT-030..037, PKT-050..058, PKT-104, PKT-107,108,110,111, PKT-203, PKT-255)") {
    random_bytes source{{17}};
    unsigned wrong = 0;
    for (unsigned i = 0; i < 5'000'000; ++i) {
        source.fill();
        auto const in = situations[i % 6];
        size_t const size = i / 6 % 18;
        uint64_t const last_ip = source.random.state;
        if (!same(source.bytes, size, in, last_ip) && ++wrong < 20) {
            check_same(source.bytes, size, in, last_ip);
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("both decoders agree on random three-byte heads (PKT-013)") {
    random_bytes source{{13}};
    for (unsigned i = 0; i < 2'000'000; ++i) {
        source.fill();
        auto const head = static_cast<unsigned>(source.random() >> 40);
        for (unsigned k = 0; k < 3; ++k) {
            source.bytes[k] = static_cast<uint8_t>(head >> (8 * k));
        }
        check_same(source.bytes, 17, situations[i % 6], source.random.state);
    }
    for (unsigned third = 0; third < 256; ++third) {
        source.fill();
        source.bytes[0] = 0x02;
        source.bytes[1] = 0xC3;
        source.bytes[2] = static_cast<uint8_t>(third);
        for (auto const in : situations) { check_same(source.bytes, 11, in, 0); }
    }
}
