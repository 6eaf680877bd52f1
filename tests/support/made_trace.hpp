// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace ptspec::test {

/// A trace as text: one word a packet, numbers in hexadecimal. HOST is the PSB+ of a host, ENTRY
/// its VM entry to a guest with CR3 1000H at 401000H, EXIT a VM exit at 401100H. `tip6:IP` has 6
/// bytes of IP, which are sign-extended; 2 and 4 bytes replace those of the last IP (PKT-051).
struct made_trace {
    std::uint8_t bytes[600] = {};
    std::size_t size = 0;

    constexpr explicit made_trace(std::string_view text) { add_all(text); }
    [[nodiscard]] constexpr auto view() const -> byte_view { return {bytes, size}; }
    /// Appends a packet of at most eight bytes.
    constexpr void put(std::uint64_t word, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            bytes[size++] = static_cast<std::uint8_t>(word >> 8 * i);
        }
    }

private:
    constexpr void add_all(std::string_view text) {
        while (!text.empty()) {
            std::size_t const end = text.find(' ');
            add(text.substr(0, end));
            text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        }
    }
    static constexpr auto number(std::string_view digits) -> std::uint64_t {
        std::uint64_t value = 0;
        for (char const one : digits) {
            value = value * 16 + static_cast<unsigned>(one <= '9' ? one - '0' : one - 'a' + 10);
        }
        return value;
    }
    static void not_a_packet() { std::abort(); }  // not a constant expression
    constexpr void add_ip(unsigned opcode, unsigned form, std::uint64_t ip) {
        unsigned const ip_bytes = form == 2 ? 1 : form == 4 ? 2 : form == 6 ? 3 : 6;
        bytes[size++] = static_cast<std::uint8_t>(opcode | ip_bytes << 5);
        put(ip, form);
    }
    constexpr void add(std::string_view word) {
        std::size_t const colon = word.find(':');
        std::string_view const name = word.substr(0, colon);
        std::uint64_t const value = colon == std::string_view::npos
                                        ? 0
                                        : number(word.substr(colon + 1));
        auto const form = static_cast<unsigned>(name.back() - '0');
        if (name == "HOST") {
            add_all("psb cbr pip0:9000 vmcs:7000 m64 fup6:ffff800000100000 end");
        } else if (name == "ENTRY") {
            add_all("pip1:1000 tip6:401000");
        } else if (name == "EXIT") {
            add_all("fup6:401100 pip0:9000 tip6:ffff800000200000");
        } else if (name == "psb") {
            put(0x8202'8202'8202'8202, 8);
            put(0x8202'8202'8202'8202, 8);
        } else if (name == "end") {
            put(0x2302, 2);
        } else if (name == "cbr") {
            put(0x0018'0302, 4);
        } else if (name == "ovf") {
            put(0xF302, 2);
        } else if (name == "m64") {
            put(0x0199, 2);
        } else if (name == "m32") {
            put(0x0299, 2);
        } else if (name == "abort") {
            put(0x2299, 2);
        } else if (name == "t") {
            put(0x06, 1);
        } else if (name == "pgd") {
            put(0x01, 1);
        } else if (name == "stop") {
            put(0x8302, 2);
        } else if (name == "pip0" || name == "pip1") {  // PKT-080
            put(0x4302 | (value >> 5 << 1 | (form & 1)) << 16, 8);
        } else if (name == "vmcs") {  // PKT-162
            put(0xC802 | value >> 12 << 16, 7);
        } else if (name == "tsc") {
            put(0x19 | value << 8, 8);
        } else if (name == "tma") {  // CTC 1234H and this FC
            put(0x1234'7302 | value << 40, 7);
        } else if (name == "mtc") {
            put(0x59 | value << 8, 2);
        } else if (name == "cyc") {
            put(0x03 | value << 3, 1);
        } else if (name == "ptw") {  // with a FUP
            put(0x9202 | value << 16, 6);
        } else if (name == "cfe") {  // the byte with type and IP
            put(0x1302 | value << 16, 4);
        } else if (name == "evd") {  // the type
            put(0x5302 | value << 16, 3);
            put(0x1122'3344, 8);
        } else if (name == "x") {  // bytes, the first one in the lowest bits
            put(value, (static_cast<unsigned>(word.size() - colon - 1) + 1) / 2);
        } else if (name.starts_with("tip")) {
            add_ip(0x0D, form, value);
        } else if (name.starts_with("fup")) {
            add_ip(0x1D, form, value);
        } else if (name.starts_with("pge")) {
            add_ip(0x11, form, value);
        } else if (name.starts_with("pgd")) {
            add_ip(0x01, form, value);
        } else {
            not_a_packet();
        }
    }
};

}  // namespace ptspec::test
