// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/code_width.hpp>

#include <ptspec/engine/action/execution_context.hpp>
#include <ptspec/x86/instruction.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using cpu::code_width;

TEST_CASE("the code sizes are numbered from the narrowest on, as an image of a unit has them") {
    CHECK_TWICE([](auto value) {
        return underlying(value(code_width::bits_16)) == 0 &&
               underlying(value(code_width::bits_32)) == 1 &&
               underlying(value(code_width::bits_64)) == 2;
    });
}

TEST_CASE("the decoder and the trace unit have the same type of code size") {
    CHECK(same_as<decltype(engine::execution_context::width), code_width>);
    CHECK(same_as<x86::code_width, code_width>);
}
