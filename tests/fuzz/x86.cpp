// SPDX-License-Identifier: BSL-1.0
// Fuzzes the decoding of instructions: any bytes in any mode.
//
//   byte 0    the width of code, modulo 3
//   byte 1..  the bytes to decode, also each prefix of them

#include <ptspec/x86/decode.hpp>

#include <fuzz/check.hpp>

namespace {

using fuzz::require;
using namespace ptspec;
using x86::decode_error;
using x86::instruction;

void check_result(byte_view in, x86::decoded const& got) {
    if (!got) {
        require(got.instruction == instruction{}, "an error has no instruction");
        require(got.error != decode_error::truncated || in.size() < instruction::max_bytes,
                "15 bytes are enough");
        return;
    }
    require(got.instruction.length >= 1 && got.instruction.length <= in.size(),
            "an instruction is within the input");
    require(got.instruction.length <= instruction::max_bytes,
            "an instruction has at most 15 bytes");
    using enum x86::instruction_class;
    auto const which = got.instruction.kind;
    bool const may_have_one = which == conditional || which == direct_jump ||
                              which == direct_call || which == xbegin;
    require(got.instruction.has_displacement == may_have_one,
            "direct branches have a displacement");
    require(!got.instruction.repeats || which == other, "a string instruction is no branch");
}

}  // namespace

auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::input from{data, size};
    auto const width = static_cast<x86::code_width>(from.byte() % 3);
    byte_view const bytes = from.rest().first(20);
    x86::decoded before{};
    for (size_t length = 0; length <= bytes.size(); ++length) {
        fuzz::copy const prefix{bytes.first(length)};
        auto const got = x86::decode(prefix, width);
        check_result(prefix, got);
        if (length != 0 && before.error != decode_error::truncated) {
            require(got.instruction == before.instruction && got.error == before.error,
                    "more bytes do not change a complete result");
        }
        before = got;
    }
    return 0;
}
