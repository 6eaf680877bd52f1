// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "cpu_threads.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>

namespace traced {

/// Ends the code of a source where a function ends, so that each block is part of one function.
struct function_ends {
    /// The symbols of a thread; nullptr: none. Not set: code does not end there.
    std::function<symbols const*(thread_id)> symbols_of{};

    [[nodiscard]] auto cut(byte_view code, std::uint64_t address, thread_id thread) const
        -> byte_view {
        auto const* const names = symbols_of ? symbols_of(thread) : nullptr;
        if (names == nullptr) { return code; }
        auto const rest = names->function_at(address).end - address;
        return code.first(static_cast<std::size_t>(std::min<std::uint64_t>(code.size(), rest)));
    }
};

}  // namespace traced
