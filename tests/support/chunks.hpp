// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>

#include <cstddef>

namespace ptspec::test {

/// The rest of a trace that a reader gets in chunks.
struct chunks {
    byte_view rest;

    /// Gives the reader at most `size` bytes, or finishes it when none are left. False when it
    /// refuses them.
    template <class Reader>
    constexpr auto feed(Reader& to, std::size_t size) -> bool {
        if (rest.empty()) {
            to.finish();
            return true;
        }
        byte_view const chunk = rest.first(size);
        rest = rest.from(chunk.size());
        return to.feed(chunk);
    }
};

}  // namespace ptspec::test
