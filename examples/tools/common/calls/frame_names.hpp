// SPDX-License-Identifier: BSL-1.0
#pragma once

// The names of frames that are no functions.

#include <ptspec/flow/frame.hpp>

#include <string_view>

namespace calls {

/// The name of a frame of kind `stopped`.
constexpr auto name_of(ptspec::flow::stop_reason why) -> std::string_view {
    switch (why) {
        case ptspec::flow::stop_reason::system_call: return "[syscall]";
        case ptspec::flow::stop_reason::fault: return "[fault]";
        case ptspec::flow::stop_reason::interrupt: return "[interrupt]";
        case ptspec::flow::stop_reason::unknown: break;
    }
    return "[unknown]";
}

}  // namespace calls
