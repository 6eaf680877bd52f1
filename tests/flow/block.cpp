// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/block.hpp>

#include <support/check_twice.hpp>
#include <support/walked.hpp>

using namespace ptspec;
using flow::block;
using flow::block_error;
using flow::code_width;
using test::made_code;

namespace {

constexpr auto decode(made_code const& code, uint64_t ip = 0x1000,
                      code_width width = code_width::bits_64, flow::ip_form const& form = {}) {
    return flow::decode_block(code, {ip, 0, width}, form);
}

/// Bytes with a boundary of pages: 1000H and 1004H are different pages of a source.
struct two_pages {
    uint8_t bytes[8];
    bool has_second = true;

    [[nodiscard]] constexpr auto code(uint64_t at, uint32_t) const -> byte_view {
        byte_view const all{bytes, sizeof bytes};
        if (at - 0x1000 < 4) { return all.first(4).from(static_cast<size_t>(at - 0x1000)); }
        if (at - 0x1004 < 4 && has_second) { return all.from(static_cast<size_t>(at - 0x1000)); }
        return {};
    }
};

}  // namespace

TEST_CASE("a block ends at the first instruction that may branch or have a packet") {
    CHECK_TWICE([](auto value) {
        // NOP; MOV EAX, imm32; JNE 1000
        auto const got = decode(value(made_code{"90 b801020304 75f8 90"})).made;
        return got.count == 3 && got.size == 8 && got.length_of(0) == 1 && got.length_of(1) == 5 &&
               got.length_of(2) == 2 && got.last() == 0x1006 && got.end() == 0x1008 &&
               got.target == 0x1000 && got.kind == x86::instruction_class::conditional &&
               got.branch == flow::branch_kind::conditional && !got.pushes;
    });
    CHECK_TWICE([](auto value) {
        // PTWRITE EAX, STI, HLT: they fall through, and end a block.
        bool const ptwrite = decode(value(made_code{"f30faee0 90"})).made.count == 1;
        bool const sti = decode(value(made_code{"90 fb 90"})).made.count == 2;
        return ptwrite && sti && decode(value(made_code{"f4 90"})).made.count == 1;
    });
}

TEST_CASE("which calls push (GEN-132)") {
    CHECK_TWICE([](auto value) {
        auto const call = decode(value(made_code{"e801000000"})).made;
        auto const next = decode(value(made_code{"e800000000"})).made;
        auto const indirect = decode(value(made_code{"ffd0"})).made;
        auto const jump = decode(value(made_code{"ffe0"})).made;
        return call.pushes && !next.pushes && indirect.pushes && !jump.pushes;
    });
}

TEST_CASE("a block has at most 32 instructions") {
    CHECK_TWICE([](auto value) {
        auto const code = value(
            made_code{"90909090909090909090909090909090909090909090909090909090909090909090"});
        auto const got = decode(code).made;
        return got.count == block::max_instructions && got.size == 32 && got.last() == 0x101F &&
               got.length_of(16) == 1 && got.length_of(31) == 1 &&
               got.kind == x86::instruction_class::other;
    });
}

TEST_CASE("an instruction that continues in another page") {
    CHECK_TWICE([](auto value) {
        // NOP; NOP; then JMP +5 of five bytes. Its last three are in the second page.
        auto const code = value(two_pages{{0x90, 0x90, 0xE9, 0x05, 0x00, 0x00, 0x00, 0x90}});
        auto const got = flow::decode_block(code, {0x1000, 0, code_width::bits_64}, {});
        auto absent = code;
        absent.has_second = false;
        auto const some = flow::decode_block(absent, {0x1000, 0, code_width::bits_64}, {});
        auto const none = flow::decode_block(absent, {0x1002, 0, code_width::bits_64}, {});
        return got.made.count == 3 && got.made.target == 0x100C && some.made.count == 2 &&
               some.error == block_error::none && none.error == block_error::missing_code &&
               none.missing == 0x1004;
    });
}

TEST_CASE("no bytes, no instruction, and a cut one") {
    CHECK_TWICE([](auto value) {
        auto const none = decode(value(made_code{"90"}), 0x2000);
        auto const wrong = decode(value(made_code{"06"}));
        auto const later = decode(value(made_code{"90 06"}));
        return none.error == block_error::missing_code && none.missing == 0x2000 &&
               wrong.error == block_error::no_instruction && later.error == block_error::none &&
               later.made.count == 1;
    });
}

TEST_CASE("32-bit and 16-bit code, and IPs that are offsets in CS (REG-079)") {
    CHECK_TWICE([](auto value) {
        // JMP -7 wraps at 32 bits; at 16 bits with a base of 10000H.
        auto const code = value(made_code{"ebf0"});
        auto const flat = decode(code, 0x1000, code_width::bits_32).made;
        flow::ip_form const offsets{cpu::ip_payload::effective, 0xF00};
        auto const far = decode(code, 0x100, code_width::bits_16, offsets).made;
        flow::ip_form const linear{cpu::ip_payload::linear, 0x1000};
        auto const wraps = decode(code, 0x1000, code_width::bits_16, linear).made;
        return flat.target == 0xFF2 && far.target == 0xF2 && wraps.target == 0x1000 + 0xFFF2;
    });
}
