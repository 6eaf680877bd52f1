// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/block.hpp>
#include <ptspec/flow/detail/slots.hpp>

namespace ptspec::flow {

/// Blocks that were decoded, in storage of the caller: `block storage[16384]` is 1 MB. When it is
/// full, blocks are replaced; no result depends on its size. A new cache is empty, whatever the
/// storage has: blocks of another cache are of other code.
class block_cache {
public:
    template <size_t Count>
    constexpr explicit block_cache(block (&storage)[Count]) noexcept
        : block_cache{storage, Count} {}
    /// `count` is 1 to 2^32 - 1.
    constexpr block_cache(block* storage, size_t count) noexcept
        : blocks_{storage}, count_{static_cast<uint32_t>(count)} {
        forget_all();
    }

    /// The slot of a block, which is stored there or in the slot beside it.
    [[nodiscard]] constexpr auto slot_of(uint64_t ip) const noexcept -> uint32_t {
        return detail::slot_of(detail::hash_of(ip), count_);
    }
    /// The block, or nullptr. It stays valid until the next `insert`.
    [[nodiscard]] constexpr auto find(uint32_t slot, block_key const& key) const noexcept
        -> block const* {
        block const& one = blocks_[slot];
        if (one.key == key && one.count != 0) [[likely]] { return &one; }
        uint32_t const beside = detail::slot_beside(slot, count_);
        block const& other = blocks_[beside];
        return other.key == key && other.count != 0 ? &other : nullptr;
    }
    /// Keeps a block, in the place of another one if there is no room.
    constexpr auto insert(uint32_t slot, block const& made) noexcept -> block const* {
        uint32_t chosen = slot;
        if (blocks_[slot].count != 0) {
            uint32_t const beside = detail::slot_beside(slot, count_);
            bool const is_free = blocks_[beside].count == 0;
            if (is_free || takes_beside_) { chosen = beside; }
            takes_beside_ = !takes_beside_;
        }
        block& kept = blocks_[chosen];
        kept = made;
        kept.slot_after = slot_of(made.end());
        kept.slot_target = slot_of(made.target);
        return &kept;
    }
    /// Forgets blocks with bytes in a range of packet IPs: the code there has changed.
    constexpr void invalidate(uint64_t from, uint64_t size) noexcept {
        ++generation_;
        for (uint32_t i = 0; i < count_; ++i) {
            block& one = blocks_[i];
            bool const is_in = one.key.ip - from < size || from - one.key.ip < one.size;
            if (is_in) { one.count = 0; }
        }
    }
    constexpr void clear() noexcept {
        ++generation_;
        forget_all();
    }

    /// The number of times that code has changed.
    [[nodiscard]] constexpr auto generation() const noexcept -> uint32_t { return generation_; }

private:
    constexpr void forget_all() noexcept {
        for (uint32_t i = 0; i < count_; ++i) { blocks_[i].count = 0; }
    }

    block* blocks_;
    uint32_t count_;
    uint32_t generation_ = 0;
    bool takes_beside_ = false;
};

}  // namespace ptspec::flow
