// SPDX-License-Identifier: BSL-1.0
#pragma once

// The code of a recorded thread, for a walker.

#include "journal.hpp"

#include <ptspec/flow/code.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace pt_record {

/// The code that a recorded thread executes. Each version of the code is an address space.
class walked_code {
public:
    static constexpr auto changes = ptspec::flow::space_changes::at_branches;

    walked_code(code_pages const& of, std::uint32_t tid, ptspec::byte_view trace)
        : changes_code_{of.has_versions()},
          moments_{changes_code_ ? trace : ptspec::byte_view{}},
          code_{of, tid, [&](auto const& when) { return moments_.when(when); }} {}
    walked_code(walked_code const&) = delete;
    auto operator=(walked_code const&) -> walked_code& = delete;

    [[nodiscard]] auto code(std::uint64_t at, std::uint32_t /*space*/) -> ptspec::byte_view {
        auto const most = static_cast<std::size_t>(page_.size() - at % page_.size());
        return {page_.data(), code_.read(at, page_.data(), most)};
    }
    [[nodiscard]] auto space_of(ptspec::flow::walk_state const& walked) -> std::uint32_t {
        if (!changes_code_) { return 0; }
        return code_.advance(moments_.when({.offset = walked.offset, .branches = walked.branches}));
    }

private:
    bool changes_code_;
    trace_moments moments_;
    code_of_thread code_;
    std::array<std::uint8_t, code_pages::page_bytes> page_{};
};

}  // namespace pt_record
