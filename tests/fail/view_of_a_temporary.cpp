// SPDX-License-Identifier: BSL-1.0
// expect: will be destroyed at the end of the full-expression | only clang warns
// one error
#include <ptspec/packet/decode.hpp>

#include <vector>

auto read_file() -> std::vector<unsigned char>;

#if defined(__clang__)
#pragma clang diagnostic error "-Wdangling"
#elif defined(SHOULD_FAIL)
#error "only clang warns"
#endif
auto first_packet() {
#ifndef SHOULD_FAIL
    return ptspec::packet::decode(read_file());
#else
    ptspec::byte_view const bytes = read_file();
    return ptspec::packet::decode(bytes);
#endif
}
