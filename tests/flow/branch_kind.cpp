// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/branch_kind.hpp>
#include <ptspec/x86/decode.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using flow::branch_kind;

namespace {

struct row {
    uint8_t bytes[5];
    branch_kind how;
    x86::code_width width = x86::code_width::bits_64;
};

// Each class of the COFI table: GEN-110, GEN-111, GEN-114.
constexpr row rows[] = {
    {{0x90}, branch_kind::none},
    {{0x74, 0x00}, branch_kind::conditional},
    {{0xE2, 0x00}, branch_kind::conditional},
    {{0xE3, 0x00}, branch_kind::conditional},
    {{0xEB, 0x00}, branch_kind::direct},
    {{0xE9}, branch_kind::direct},
    {{0xE8}, branch_kind::direct},
    {{0xFF, 0xE0}, branch_kind::indirect},
    {{0xFF, 0xD0}, branch_kind::indirect},
    {{0xFF, 0x28}, branch_kind::indirect},
    {{0xFF, 0x18}, branch_kind::indirect},
    {{0xC3}, branch_kind::near_return},
    {{0xC2}, branch_kind::near_return},
    {{0xCB}, branch_kind::indirect},
    {{0xCF}, branch_kind::indirect},
    {{0x0F, 0x05}, branch_kind::indirect},
    {{0x0F, 0x07}, branch_kind::indirect},
    {{0x0F, 0x34}, branch_kind::indirect},
    {{0x0F, 0x35}, branch_kind::indirect},
    {{0xF3, 0x0F, 0x01, 0xEC}, branch_kind::indirect},
    {{0xF3, 0x0F, 0x01, 0xCA}, branch_kind::indirect},
    {{0x0F, 0x01, 0xC2}, branch_kind::indirect},
    {{0x0F, 0x01, 0xC3}, branch_kind::indirect},
    {{0x0F, 0xAA}, branch_kind::indirect},
    {{0xCD, 0x80}, branch_kind::interrupt},
    {{0xCC}, branch_kind::interrupt},
    {{0xF1}, branch_kind::interrupt},
    {{0xCE}, branch_kind::none, x86::code_width::bits_32},
    {{0x0F, 0x22, 0xD8}, branch_kind::none},
    {{0x0F, 0x30}, branch_kind::none},
    {{0xF3, 0x0F, 0xAE, 0xE0}, branch_kind::none},
    {{0x0F, 0x01, 0xC1}, branch_kind::none},
    {{0x0F, 0x01, 0xD5}, branch_kind::none},
    {{0xF4}, branch_kind::none},
    {{0x0F, 0x01, 0xC9}, branch_kind::none},
};

}  // namespace

TEST_CASE("how control leaves an instruction (GEN-110, GEN-111, GEN-114)") {
    CHECK_TWICE([](auto value) {
        for (auto const& one : rows) {
            auto const here = value(one);
            auto const got = x86::decode({here.bytes, sizeof here.bytes}, here.width);
            if (!got || flow::branch_kind_of(got.instruction) != here.how) { return false; }
        }
        return true;
    });
}
