// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/action/execution_context.hpp>

#include <support/check_twice.hpp>

#include <cstdint>

using namespace ptspec;
using engine::code_width;
using engine::execution_context;

TEST_CASE("real mode counts as CPL 0, virtual-8086 mode as CPL 3") {  // GEN-051
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned cpl = 0; cpl < 4; ++cpl) {
            auto const now = static_cast<std::uint8_t>(value(cpl));
            good = good && execution_context{.cpl = now}.counted_cpl() == cpl &&
                   execution_context{.cpl = now, .real_mode = true}.counted_cpl() == 0 &&
                   execution_context{.cpl = now, .virtual_8086 = true}.counted_cpl() == 3;
        }
        return good;
    });
}

TEST_CASE("a linear IP includes the CS base, except in 64-bit code") {  // GEN-091, REG-079
    using engine::ip_in_packets;
    constexpr auto linear = cpu::ip_payload::linear;
    constexpr auto effective = cpu::ip_payload::effective;
    CHECK_TWICE([](auto value) {
        execution_context const real{.cs_base = value(std::uint64_t{0x10000}),
                                     .width = code_width::bits_16,
                                     .real_mode = true};
        execution_context const flat{.cs_base = value(std::uint64_t{0x10000})};
        return ip_in_packets(linear, real, 0x100) == 0x10100 &&
               ip_in_packets(effective, real, 0x100) == 0x100 &&
               ip_in_packets(linear, flat, 0x100) == 0x100 &&
               ip_in_packets(linear, flat, 0xFFFF'8000'0000'0000) == 0xFFFF'8000'0000'0000;
    });
    CHECK_TWICE([](auto value) {  // truncated to 32 bits
        execution_context const code{.cs_base = value(std::uint64_t{0xFFFF'0000}),
                                     .width = code_width::bits_32};
        return ip_in_packets(linear, code, 0x1'FFF0) == 0xFFF0 &&
               ip_in_packets(linear, code, 0xFFF0) == 0xFFFF'FFF0;
    });
}

TEST_CASE("the inputs of ContextEn come from the execution context") {  // GEN-023, GEN-051
    CHECK_TWICE([](auto value) {
        execution_context const code{.cr3 = value(std::uint64_t{0x5000}),
                                     .cpl = 1,
                                     .virtual_8086 = true,
                                     .pae = true,
                                     .inside = engine::enclave::production};
        auto const now = engine::context_of(code, 0x1234);
        return now.cpl == 3 && now.cr3 == 0x5000 && now.pae && now.production_enclave &&
               now.ip == 0x1234;
    });
    CHECK_TWICE([](auto value) {
        execution_context const code{.inside = value(engine::enclave::debug)};
        return !engine::context_of(code, 0).production_enclave;
    });
}

TEST_CASE("the default execution context is 64-bit kernel code") {
    CHECK_TWICE([](auto value) {
        execution_context const code = value(execution_context{});
        return code.cr3 == 0 && code.cs_base == 0 && code.cpl == 0 &&
               code.width == code_width::bits_64 && !code.real_mode && !code.virtual_8086 &&
               !code.pae && !code.IF && code.inside == engine::enclave::none && !code.vmx_non_root;
    });
}
