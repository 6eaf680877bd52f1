// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <differential/recording.hpp>

#include <ptspec/flow.hpp>

#include <array>
#include <cstdint>
#include <vector>

// The executed instructions of a recorded thread, as ptspec's walker finds them.
namespace differential::recording {

/// The code of a thread, page by page. A version of the code is an address space.
class walked_code {
public:
    static constexpr auto changes = ptspec::flow::space_changes::at_branches;

    walked_code(code_pages const& of, std::uint32_t thread, ptspec::byte_view trace)
        : changes_code_{of.has_versions()},
          used_{changes_code_ ? trace : ptspec::byte_view{}},
          code_{of, thread, [&](auto const& when) { return used_.when(when); }} {}

    [[nodiscard]] auto code(std::uint64_t at, std::uint32_t) -> ptspec::byte_view {
        auto const most = static_cast<std::size_t>(page_.size() - at % page_.size());
        return {page_.data(), code_.read(at, page_.data(), most)};
    }
    [[nodiscard]] auto space_of(ptspec::flow::walk_place const& at) -> std::uint32_t {
        if (!changes_code_) { return 0; }
        auto const now = used_.when({.offset = at.offset, .branches = at.branches});
        return code_.advance(now);
    }

private:
    bool changes_code_;
    pt_record::trace_moments used_;
    code_of_thread code_;
    std::array<std::uint8_t, code_pages::page_bytes> page_{};
};

/// Logs instructions as the emulator does.
struct walked_log {
    walked_code& code;
    instruction_log log{};
    std::uint64_t last = 0;
    std::uint64_t gaps = 0;

    void instruction(ptspec::flow::executed const& one) {
        if (one.ip == last) {
            auto const bytes = code.code(one.ip, one.space);
            (void)log.add(one.ip, bytes.data(), bytes.size());
        } else {
            log.add(one.ip);
        }
        last = one.ip;
    }
    void gap(ptspec::flow::gap const&) { ++gaps; }
};

/// What a walk found.
struct walked {
    instruction_log log{};
    std::uint64_t gaps = 0;
};
inline auto walk(std::vector<std::uint8_t> const& trace, code_pages const& pages,
                 std::uint32_t thread) -> walked {
    walked_code code{pages, thread, trace};
    std::vector<ptspec::flow::block> storage(std::size_t{1} << 16);
    ptspec::flow::block_cache cache{storage.data(), storage.size()};
    walked_log to{code};
    // As libipt reads: GEN-134.
    ptspec::flow::walker walker{ptspec::borrowed_bytes{trace.data(), trace.size()},
                                code,
                                cache,
                                {.on_ret_mismatch = ptspec::trace::ret_mismatch::keep}};
    (void)walker.run(to);
    return {to.log, to.gaps};
}

}  // namespace differential::recording
