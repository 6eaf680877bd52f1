// SPDX-License-Identifier: BSL-1.0
#pragma once

// Blocks of instructions as the emulator translates them.

#include "../common/translated_block.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace machine {

using namespace ptspec;
using cpu::code_width;
using code_block = emulated::code_block<>;

/// The block that the emulator translates, for code of this width in a segment with this base.
inline auto block_of(qemu_plugin_tb const* from, code_width width, std::uint64_t base)
    -> std::unique_ptr<code_block> {
    auto made = std::make_unique<code_block>();
    emulated::translate(*made, from, {.width = width}, base, [](auto const&...) {});
    return made;
}

/// The translated blocks, until the emulator drops its translations.
class live_blocks {
public:
    auto add(std::unique_ptr<code_block> block) -> code_block* {
        std::lock_guard const guard{lock_};
        all_.push_back(std::move(block));
        return all_.back().get();
    }
    /// No block executes.
    void clear() {
        std::lock_guard const guard{lock_};
        all_.clear();
    }

private:
    std::mutex lock_{};
    std::vector<std::unique_ptr<code_block>> all_{};
};

}  // namespace machine
