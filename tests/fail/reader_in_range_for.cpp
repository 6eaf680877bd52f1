// SPDX-License-Identifier: BSL-1.0
// expect: a reader is no range: while (auto const& one = reader.next()) { .. }
// one error
#include <ptspec/trace/reader.hpp>

auto last_offset(ptspec::byte_view bytes) {
    ptspec::trace::reader reader{bytes};
    uint64_t offset = 0;
#ifndef SHOULD_FAIL
    while (auto const& one = reader.next()) {
#else
    for (auto const& one : reader) {
#endif
        offset = one.offset;
    }
    return offset;
}
