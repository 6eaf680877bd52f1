// SPDX-License-Identifier: BSL-1.0
// expect: a sink has append(byte_view) -> bool, as ptspec::byte_buffer has
// one error
// at most 20 lines
#include <ptspec/trace/write/writer.hpp>

#include <vector>

auto write(std::vector<unsigned char>& to) {
#ifndef SHOULD_FAIL
    ptspec::byte_buffer out{to.data(), to.size()};
    ptspec::trace::writer writer{out};
#else
    ptspec::trace::writer writer{to};
#endif
    return writer.branch(true);
}
