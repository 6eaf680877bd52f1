// SPDX-License-Identifier: BSL-1.0
#include <ptspec/edit/trace_memory.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

using namespace ptspec;

TEST_CASE("bytes outside of the memory are not written (PRG-129)") {
    std::uint8_t bytes[20];
    for (auto& byte : bytes) { byte = 0xA5; }
    byte_window const windows[] = {{bytes + 10, 3}, {bytes + 5, 0}, {bytes + 2, 3}};
    edit::detail::trace_bytes memory{windows, 100};
    std::uint8_t const from[] = {1, 2, 3, 4, 5, 6};
    memory.write(98, byte_view{from, 6});  // 98 and 99 are in no window
    memory.pad(104, 106);
    std::uint8_t const wanted[] = {0xA5, 0xA5, 6, 0,    0,    0xA5, 0xA5, 0xA5, 0xA5, 0xA5,
                                   3,    4,    5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5};
    bool same = true;
    for (std::size_t i = 0; i < 20; ++i) {
        bool const is_pad = i == 3 || i == 4;
        same = same && bytes[i] == (is_pad ? 0 : wanted[i]);
    }
    CHECK(memory.size() == 6);
    CHECK(memory.end() == 106);
    CHECK(same);
}
