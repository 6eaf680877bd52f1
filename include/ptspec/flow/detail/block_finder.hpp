// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/block_cache.hpp>
#include <ptspec/flow/detail/loop_guard.hpp>
#include <ptspec/flow/sink.hpp>
#include <ptspec/base/attribute.hpp>

namespace ptspec::flow::detail {

/// True if a block ends with a branch whose outcome is not certain without TNT. `may_pop`: a RET
/// may be compressed.
constexpr auto is_unsure(block const& at, bool may_pop) noexcept -> bool {
    return at.branch == branch_kind::conditional ||
           (at.branch == branch_kind::near_return && may_pop);
}

/// Finds blocks in a cache, and decodes those that it lacks.
template <code_source Code>
class block_finder {
public:
    constexpr block_finder(Code& code, block_cache& cache, ip_form const& form) noexcept
        : code_{&code}, cache_{&cache}, form_{form} {}

    [[nodiscard]] constexpr auto code() noexcept -> Code& { return *code_; }
    [[nodiscard]] constexpr auto cache() noexcept -> block_cache& { return *cache_; }
    /// Why the last block could not be decoded: after `at` has returned nullptr.
    [[nodiscard]] constexpr auto error() const noexcept -> block_error { return error_; }
    /// The linear address at which code is missing, after `block_error::missing_code`.
    [[nodiscard]] constexpr auto missing() const noexcept -> uint64_t { return missing_; }
    /// Why a walk ends at this block: after `at` has returned nullptr.
    [[nodiscard]] constexpr auto reason() const noexcept -> gap_reason {
        if (error_ == block_error::no_instruction) { return gap_reason::no_instruction; }
        return needs_time_ ? gap_reason::no_time : gap_reason::missing_code;
    }

    /// The block with a key, whose slot is `slot`; nullptr if it cannot be decoded.
    [[nodiscard]] constexpr auto at(uint32_t slot, block_key const& key) -> block const* {
        block const* const found = cache_->find(slot, key);
        return found != nullptr ? found : decode(slot, key);
    }
    /// Follows straight code and direct jumps from `here`. `gap_reason::none` if they lead to `ip`,
    /// else why not.
    [[nodiscard]] constexpr auto find_way(block_key here, uint32_t slot, uint64_t ip)
        -> gap_reason {
        loop_guard guard{here.ip};
        while (here.ip != ip) {
            block const* const next = at(slot, here);
            if (next == nullptr) { return reason(); }
            if (ip - here.ip < next->size && next->count_before(ip) != 0) { break; }
            if (next->branch > branch_kind::direct) { return gap_reason::wrong_turn; }
            bool const jumps = next->branch == branch_kind::direct;
            here.ip = jumps ? next->target : next->end();
            slot = jumps ? next->slot_target : next->slot_after;
            if (here.ip != ip && guard.ends(jumps, here.ip)) { return gap_reason::endless_loop; }
        }
        return gap_reason::none;
    }

    /// Follows straight code and direct jumps from `here`. True if each IP on this way is reached
    /// once, also without TNT: it ends with a branch that has a packet, or in a loop without
    /// branches. `pushes`: a CALL on the way may compress the RET.
    [[nodiscard]] constexpr auto leads_to_packet(block_key here, uint32_t slot, bool may_pop,
                                                 bool pushes) -> bool {
        for (loop_guard guard{here.ip};;) {
            block const* const next = at(slot, here);
            if (next == nullptr) { return false; }
            if (next->branch > branch_kind::direct) { return !is_unsure(*next, may_pop); }
            bool const jumps = next->branch == branch_kind::direct;
            may_pop = may_pop || (next->pushes && pushes);
            here.ip = jumps ? next->target : next->end();
            slot = jumps ? next->slot_target : next->slot_after;
            if (guard.ends(jumps, here.ip)) { return true; }
        }
    }

private:
    /// Decodes a block and keeps it in the cache.
    ///
    /// noinline: inlined, a walk of blocks takes 23 % more instructions (g++ 12).
    PTSPEC_ATTRIBUTE(noinline)
    constexpr auto decode(uint32_t slot, block_key key) -> block const* {
        auto const got = decode_block(*code_, key, form_);
        error_ = got.error;
        missing_ = got.missing;
        if constexpr (knows_why_absent<Code>) {
            needs_time_ = got.error == block_error::missing_code &&
                          code_->needs_time_at(got.missing, key.space);
        }
        return got.error == block_error::none ? cache_->insert(slot, got.made) : nullptr;
    }

    Code* code_;
    block_cache* cache_;
    ip_form form_;
    block_error error_ = block_error::none;
    uint64_t missing_ = 0;
    bool needs_time_ = false;
};

}  // namespace ptspec::flow::detail

#undef PTSPEC_ATTRIBUTE
