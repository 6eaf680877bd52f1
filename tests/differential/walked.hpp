// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <differential/recording.hpp>

#include <tools/common/recorded/walked_code.hpp>

#include <ptspec/flow.hpp>

#include <cstdint>
#include <vector>

// The executed instructions of a recorded thread, as ptspec's walker finds them.
namespace differential::recording {

using pt_record::walked_code;

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
