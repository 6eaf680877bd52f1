// SPDX-License-Identifier: BSL-1.0
#include <ptspec/x86/decode.hpp>

#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>

using namespace ptspec;
using x86::code_width;
using x86::decode_error;
using x86::instruction;
using x86::instruction_class;

namespace {

/// The bytes of hexadecimal digits.
struct code {
    uint8_t bytes[24] = {};
    size_t size = 0;

    constexpr explicit code(char const* digits) {
        auto const digit = [](char c) {
            return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
        };
        for (; *digits != 0; ++digits) {
            if (*digits == ' ') { continue; }
            bytes[size++] = static_cast<uint8_t>(digit(digits[0]) << 4 | digit(digits[1]));
            ++digits;
        }
    }
    [[nodiscard]] constexpr auto view() const -> byte_view { return {bytes, size}; }
};

struct row {
    char const* digits;
    unsigned length;
    instruction_class which = instruction_class::other;
    code_width width = code_width::bits_64;
};

/// Each row decodes, is truncated with fewer bytes, and has the same length before other bytes.
template <size_t Count>
constexpr auto all_hold(row const (&rows)[Count]) -> bool {
    for (auto const& one : rows) {
        code const given{one.digits};
        auto const done = x86::decode(given.view(), one.width);
        if (!done || done.instruction.length != one.length || done.instruction.kind != one.which) {
            return false;
        }
        for (size_t size = 0; size < one.length; ++size) {
            auto const part = x86::decode(given.view().first(size), one.width);
            if (part.error != decode_error::truncated) { return false; }
        }
    }
    return true;
}

using enum instruction_class;

constexpr auto bits_16 = code_width::bits_16;
constexpr auto bits_32 = code_width::bits_32;

constexpr row branches[] = {
    {"70 05", 2, conditional},
    {"7f fe", 2, conditional},
    {"0f 80 00 01 00 00", 6, conditional},
    {"0f 8f 00 01", 4, conditional, bits_16},
    {"66 0f 84 00 01", 5, conditional, bits_32},
    {"66 0f 84 00 01 00 00", 7, conditional},  // 66 has no effect
    {"e0 00", 2, conditional},
    {"e2 fe", 2, conditional},
    {"67 e3 00", 3, conditional},
    {"f2 eb 00", 3, direct_jump},  // BND
    {"e9 00 00 00 00", 5, direct_jump},
    {"e9 00 00", 3, direct_jump, bits_16},
    {"66 e9 00 00 00 00", 6, direct_jump, bits_16},
    {"e8 00 00 00 00", 5, direct_call},
    {"ff d0", 2, indirect_call},
    {"41 ff d3", 3, indirect_call},
    {"ff 14 25 00 10 00 00", 7, indirect_call},
    {"ff 15 00 10 00 00", 6, indirect_call},
    {"ff 16 00 10", 4, indirect_call, bits_16},
    {"3e ff e0", 3, indirect_jump},  // NOTRACK
    {"ff a4 c8 00 10 00 00", 7, indirect_jump},
    {"ff 64 24 08", 4, indirect_jump},
    {"d5 00 a1 88 77 66 55 44 33 22 11", 11, absolute_jump},
    {"c3", 1, near_return},
    {"f3 c3", 2, near_return},
    {"c2 08 00", 3, near_return},
};

constexpr row far_transfers[] = {
    {"ff 2c 24", 3, far_jump},
    {"48 ff 2c 24", 4, far_jump},
    {"ea 00 10 00 00 08 00", 7, far_jump, bits_32},
    {"ea 00 10 08 00", 5, far_jump, bits_16},
    {"66 ea 00 10 00 00 08 00", 8, far_jump, bits_16},
    {"9a 00 10 00 00 08 00", 7, far_call, bits_32},
    {"ff 1c 24", 3, far_call},
    {"cb", 1, far_return},
    {"ca 08 00", 3, far_return},
    {"cf", 1, iret},
    {"48 cf", 2, iret},
    {"0f 05", 2, syscall},
    {"48 0f 07", 3, sysret},
    {"0f 34", 2, sysenter},
    {"48 0f 35", 3, sysexit},
    {"f3 0f 01 ec", 4, uiret},
    {"f3 0f 01 ca", 4, eret},
    {"f2 0f 01 ca", 4, eret},
    {"0f 01 ca", 3, other},  // CLAC
    {"cc", 1, software_interrupt},
    {"cd 80", 2, software_interrupt},
    {"ce", 1, software_interrupt, bits_32},
    {"f1", 1, software_interrupt},
    {"0f 01 c2", 3, vm_entry},
    {"66 0f 01 cd", 4, vm_entry},  // SEAMRET
    {"0f 01 cd", 3, other},
    {"66 f3 0f 01 cd", 5, other},
    {"0f 01 c3", 3, vm_entry},
    {"0f 01 c1", 3, vm_call},
    {"0f aa", 2, rsm},
    {"0f 37", 2, getsec},
    {"0f 01 d7", 3, enclave},
    {"0f 01 cf", 3, enclave},
};

constexpr row others_with_packets[] = {
    {"f3 0f ae e0", 4, ptwrite},
    {"f3 48 0f ae 24 24", 6, ptwrite},
    {"0f ae 24 24", 4, other},  // XSAVE
    {"0f 22 d8", 3, mov_to_cr3},
    {"41 0f 22 d8", 4, mov_to_cr3},
    {"44 0f 22 d8", 4, other},  // CR11
    {"0f 22 c0", 3, other},
    {"0f 22 1c", 3, mov_to_cr3},  // ModRM.mod is ignored
    {"0f 30", 2, wrmsr},
    {"0f 01 c6", 3, wrmsr},                    // WRMSRNS
    {"f3 0f 01 c6", 4, wrmsr},                 // WRMSRLIST
    {"f2 0f 01 c6", 4, other},                 // RDMSRLIST
    {"66 0f 01 c6", 4, other},                 // undefined
    {"0f 01 c6", 3, other, bits_32},           // undefined outside 64-bit code
    {"c4 e7 7a f6 c0 70 05 00 00", 9, wrmsr},  // WRMSRNS with an immediate
    {"c4 c7 7a f6 c7 70 05 00 00", 9, wrmsr},  // from R15
    {"62 f7 7e 08 f6 c0 70 05 00 00", 10, wrmsr},
    {"c4 e7 7b f6 c0 70 05 00 00", 9, other},  // RDMSR with an immediate
    {"62 f7 7f 08 f6 c0 70 05 00 00", 10, other},
    {"c4 e7 7a f8 c0 70 05 00 00", 9, other},  // UWRMSR: MSRs of user code
    {"c4 e7 7a f6 c8 70 05 00 00", 9, other},  // ModRM.reg is not 0
    {"0f 32", 2, other},                       // RDMSR
    {"48 0f c7 2c 24", 5, xsaves},
    {"48 0f c7 1c 24", 5, xrstors},
    {"0f c7 0c 24", 4, other},  // CMPXCHG8B
    {"0f c7 f0", 3, other},     // RDRAND
    {"0f c7 34 24", 4, vmptrld},
    {"66 0f c7 34 24", 5, vmclear},
    {"f3 0f c7 34 24", 5, vmxon},
    {"0f 01 c4", 3, vmxoff},
    {"c7 f8 00 10 00 00", 6, xbegin},
    {"66 c7 f8 00 10", 5, xbegin},
    {"c7 c0 00 10 00 00", 6, other},
    {"0f 01 d5", 3, xend},
    {"c6 f8 01", 3, xabort},
    {"c6 c0 01", 3, other},
    {"f4", 1, hlt},
    {"0f 01 c9", 3, mwait},
    {"fa", 1, interrupt_flag},
    {"fb", 1, interrupt_flag},
    {"9d", 1, interrupt_flag},
};

constexpr row lengths[] = {
    {"90", 1},
    {"0f 1f 84 00 00 00 00 00", 8},
    {"66 66 66 66 66 66 66 66 66 0f 1f 04 24", 13},
    {"8b 05 00 00 00 00", 6},
    {"8b 05 00 00 00 00", 6, other, bits_32},
    {"8b 06 00 00", 4, other, bits_16},
    {"8b 46 00", 3, other, bits_16},
    {"8b 86 00 00", 4, other, bits_16},
    {"67 8b 84 00 00 00 00 00", 8, other, bits_16},
    {"67 8b 46 00", 4, other, bits_32},
    {"8b 04 25 00 00 00 00", 7},
    {"8b 44 24 08", 4},
    {"81 c0 00 00 00 00", 6},
    {"66 81 c0 00 00", 5},
    {"48 81 c0 00 00 00 00", 7},
    {"48 b8 00 00 00 00 00 00 00 00", 10},
    {"66 b8 00 00", 4},
    {"a1 00 00 00 00 00 00 00 00", 9},
    {"67 a1 00 00 00 00", 6},
    {"a1 00 00 00 00", 5, other, bits_32},
    {"c8 00 00 00", 4},
    {"f6 c0 01", 3},
    {"f6 d0", 2},
    {"f7 c0 01 00 00 00", 6},
    {"66 f7 c8 01 00", 5},
    {"f7 d8", 2},
    {"48 66 b8 00 00", 5},  // REX before a prefix is ignored
    {"66 0f 38 00 c0", 5},
    {"66 0f 3a 0f c0 08", 6},
    {"66 0f 78 c0 01 02", 6},  // EXTRQ
    {"0f 78 c0", 3},           // VMREAD
    {"0f 0f c0 9a", 4},        // 3DNow!
    {"c5 f8 77", 3},
    {"c5 f8 28 c0", 4},
    {"c5 f9 70 c0 01", 5},
    {"c4 e2 7d 18 05 00 00 00 00", 9},
    {"c4 e3 7d 18 c0 01", 6},
    {"c4 e7 7b f8 c0 00 00 00 00", 9},  // map 7
    {"c4 e5 60 fd ca", 5},              // map 5: AMX-FP8, TDPBF8PS
    {"c4 e5 61 fd ca", 5},
    {"c4 e5 62 fd ca", 5},
    {"c4 e5 63 fd ca", 5},
    {"c4 e5 78 f8 0c 58", 6},  // with memory
    {"62 f1 7c 48 28 c0", 6},
    {"62 f3 7d 48 25 c0 ff", 7},
    {"62 f5 7c 48 58 c0", 6},
    {"62 f4 7c 18 81 c0 00 00 00 00", 10},
    {"62 f4 7d 18 81 c0 00 00", 8},
    {"62 f4 7c 18 24 c0 01", 7},
    {"62 04 20", 3, other, bits_32},  // BOUND
    {"c5 04 20", 3, other, bits_32},  // LDS
    {"c5 f8 28 c0", 4, other, bits_32},
    {"8f e9 78 e2 c0", 5},  // XOP
    {"8f e8 78 c0 c0 01", 6},
    {"8f ea 78 10 c0 00 00 00 00", 9},
    {"8f c0", 2},        // POP
    {"d5 00 89 c0", 4},  // REX2
    {"d5 80 af c0", 4},
    {"d5 08 b8 00 00 00 00 00 00 00 00", 11},
    {"d5 0a", 2, other, bits_32},  // AAD
};

constexpr auto undefined_in(char const* digits, code_width width = code_width::bits_64) -> bool {
    return x86::decode(code{digits}.view(), width).error == decode_error::undefined;
}

}  // namespace

TEST_CASE("branches of every class (GEN-110)") {
    CHECK_TWICE([](auto value) { return value(true) && all_hold(branches); });
}
TEST_CASE("far transfers, software interrupts among them (GEN-110, GEN-111)") {
    CHECK_TWICE([](auto value) { return value(true) && all_hold(far_transfers); });
}
TEST_CASE("other instructions that a trace depends on") {
    CHECK_TWICE([](auto value) { return value(true) && all_hold(others_with_packets); });
}
TEST_CASE("the length of instructions of every form") {
    CHECK_TWICE([](auto value) { return value(true) && all_hold(lengths); });
}

TEST_CASE("JMPABS has a target of 64 bits") {
    CHECK_TWICE([](auto value) {
        auto const bytes = value(
            byte_array<11>{{0xD5, 0, 0xA1, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}});
        auto const got =
            x86::detail::instruction_reader{byte_view{bytes}, code_width::bits_64}.read();
        return got && got.instruction.displacement == 0x1122'3344'5566'7788;
    });
}

TEST_CASE("undefined opcodes and operands") {
    CHECK_TWICE([](auto value) {
        return value(true) && undefined_in("06") && undefined_in("ea 00 00 00 00 00 00") &&
               undefined_in("9a 00 00 00 00 00 00") && undefined_in("d6") &&
               !undefined_in("06", bits_32) && undefined_in("0f 04") && undefined_in("ff f8") &&
               undefined_in("ff e8") && undefined_in("fe d0") && undefined_in("8f e0") &&
               undefined_in("c6 c8 00") && undefined_in("c7 c8 00 00 00 00") &&
               undefined_in("66 c5 f8 77") && undefined_in("48 c5 f8 77") &&
               undefined_in("c4 e4 78 77 c0") && undefined_in("62 f0 7c 48 28 c0") &&
               undefined_in("c4 e6 78 77 c0") && undefined_in("c4 e5 60 fd ca", bits_32) &&
               undefined_in("d5 00 70 00") && undefined_in("d5 80 30 00") &&
               undefined_in("66 d5 00 a1 00 00 00 00 00 00 00 00");
    });
}

TEST_CASE("PTWRITE with an operand-size prefix is undefined") {  // GEN-300
    CHECK_TWICE([](auto value) {
        return value(true) && undefined_in("66 f3 0f ae e0") && undefined_in("f3 66 0f ae e0") &&
               undefined_in("66 f3 48 0f ae 24 24") && undefined_in("66 f3 0f ae e0", bits_16) &&
               !undefined_in("f3 0f ae e0") && !undefined_in("67 f3 0f ae 20") &&
               !undefined_in("66 0f ae 38");  // CLFLUSHOPT
    });
}

TEST_CASE("an instruction has at most 15 bytes") {
    CHECK_TWICE([](auto value) {
        auto const most = x86::decode(code{"66 66 66 66 66 66 66 66 66 66 66 66 66 66 90"}.view());
        return value(true) && most && most.instruction.length == 15 &&
               undefined_in("66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90") &&
               undefined_in("66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 66");
    });
}

TEST_CASE("a string instruction with REP repeats") {
    CHECK_TWICE([](auto value) {
        auto const repeats = [&](char const* digits) {
            return x86::decode(code{digits}.view()).instruction.repeats && value(true);
        };
        return repeats("f3 a4") && repeats("f3 48 ab") && repeats("f2 ae") && repeats("f3 6c") &&
               !repeats("a4") && !repeats("f3 a8 00") && !repeats("f3 90") && !repeats("f3 c3");
    });
}

TEST_CASE("the vector of a software interrupt") {
    CHECK_TWICE([](auto value) {
        auto const vector = [&](char const* digits) {
            return value(x86::decode(code{digits}.view(), bits_32).instruction.vector);
        };
        return vector("cd 80") == 0x80 && vector("cc") == 3 && vector("ce") == 4 &&
               vector("f1") == 1;
    });
}

TEST_CASE("the fast path for common forms decodes as the general decoder") {
    test::random_numbers random{};
    size_t common = 0;
    for (unsigned i = 0; i < 4 * 65536; ++i) {
        uint8_t bytes[15];
        for (auto& byte : bytes) { byte = static_cast<uint8_t>(random()); }
        // Each pair of first bytes, alone and after 66, REX and 0F.
        constexpr uint8_t before[] = {0x66, 0x48, 0x0F};
        size_t const at = i < 65536 ? 0 : 1;
        if (at != 0) { bytes[0] = before[i / 65536 - 1]; }
        bytes[at] = static_cast<uint8_t>(i);
        bytes[at + 1] = static_cast<uint8_t>(i >> 8);
        auto const fast = x86::detail::decode_common(bytes);
        if (fast.length == 0) { continue; }
        ++common;
        auto const slow =
            x86::detail::instruction_reader{byte_view{bytes}, code_width::bits_64}.read();
        REQUIRE(slow);
        REQUIRE(slow.instruction == fast);
    }
    CHECK(common > 100'000);
}
