// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/passage.hpp>
#include <ptspec/x86/decode.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using flow::passage;

namespace {

struct row {
    uint8_t bytes[5];
    passage how;
    x86::code_width width = x86::code_width::bits_64;
};

// Each class of the COFI table: GEN-110, GEN-111, GEN-114.
constexpr row rows[] = {
    {{0x90}, passage::falls},
    {{0x74, 0x00}, passage::conditional},
    {{0xE2, 0x00}, passage::conditional},
    {{0xE3, 0x00}, passage::conditional},
    {{0xEB, 0x00}, passage::jumps},
    {{0xE9}, passage::jumps},
    {{0xE8}, passage::jumps},
    {{0xFF, 0xE0}, passage::targets},
    {{0xFF, 0xD0}, passage::targets},
    {{0xFF, 0x28}, passage::targets},
    {{0xFF, 0x18}, passage::targets},
    {{0xC3}, passage::returns},
    {{0xC2}, passage::returns},
    {{0xCB}, passage::targets},
    {{0xCF}, passage::targets},
    {{0x0F, 0x05}, passage::targets},
    {{0x0F, 0x07}, passage::targets},
    {{0x0F, 0x34}, passage::targets},
    {{0x0F, 0x35}, passage::targets},
    {{0xF3, 0x0F, 0x01, 0xEC}, passage::targets},
    {{0xF3, 0x0F, 0x01, 0xCA}, passage::targets},
    {{0x0F, 0x01, 0xC2}, passage::targets},
    {{0x0F, 0x01, 0xC3}, passage::targets},
    {{0x0F, 0xAA}, passage::targets},
    {{0xCD, 0x80}, passage::interrupts},
    {{0xCC}, passage::interrupts},
    {{0xF1}, passage::interrupts},
    {{0xCE}, passage::falls, x86::code_width::bits_32},
    {{0x0F, 0x22, 0xD8}, passage::falls},
    {{0x0F, 0x30}, passage::falls},
    {{0xF3, 0x0F, 0xAE, 0xE0}, passage::falls},
    {{0x0F, 0x01, 0xC1}, passage::falls},
    {{0x0F, 0x01, 0xD5}, passage::falls},
    {{0xF4}, passage::falls},
    {{0x0F, 0x01, 0xC9}, passage::falls},
};

}  // namespace

TEST_CASE("how control leaves an instruction (GEN-110, GEN-111, GEN-114)") {
    CHECK_TWICE([](auto value) {
        for (auto const& one : rows) {
            auto const here = value(one);
            auto const got = x86::decode({here.bytes, sizeof here.bytes}, here.width);
            if (!got || flow::passage_of(got.what) != here.how) { return false; }
        }
        return true;
    });
}
