// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bits.hpp>
#include <ptspec/cpu/code_width.hpp>

namespace ptspec::trace {

/// The effect on the return stack of a near RET whose target differs from the top entry. The RET is
/// not compressed in any case. Decoders keep a return stack, too, and differ in this case.
///
/// Source: GEN-133, GEN-134.
enum class ret_mismatch : uint8_t {
    pop,    ///< every RET pops, as in the manual; libipt misreads some later RETs
    keep,   ///< only compressed RETs pop, as in libipt; perf misreads some later RETs
    clear,  ///< no later RET is compressed against an older CALL: both decode correctly
};

/// True if a direct near CALL to `target` pushes the address after it, `next`. A CALL of the next
/// instruction does not. An indirect CALL always does.
///
/// Source: GEN-132.
[[nodiscard]] constexpr auto pushes_return(uint64_t target, uint64_t next) noexcept -> bool {
    return target != next;
}
/// A mask of the address bits that a near RET pops.
///
/// Source: GEN-137.
[[nodiscard]] constexpr auto popped_bits(cpu::code_width width) noexcept -> uint64_t {
    return low_bits(width == cpu::code_width::bits_64   ? 64
                    : width == cpu::code_width::bits_32 ? 32
                                                        : 16);
}

/// The return addresses of traced near CALLs. A RET to the top entry is compressed to one TNT bit.
///
/// Shape:  at most 64 addresses; one more drops the oldest.
/// Source: SDM vol. 3, "Indirect Transfer Compression for Returns (RET)"; GEN-130..137.
class return_stack {
public:
    static constexpr unsigned max_count = 64;

    /// A near CALL was traced. `next` is the address after it.
    constexpr void push(uint64_t next) noexcept {
        top_ = (top_ + 1) % max_count;
        entries_[top_] = next;
        count_ += count_ < max_count ? 1 : 0;
    }
    /// Applies several pushes and pops at once. They take the top `taken` entries, leave `left` of
    /// their own, `address(0)` and so on, and at no time had more than `depth` entries above those
    /// of before. `taken` is at most `size_after(depth)`.
    template <class Address>
    constexpr void replace(unsigned taken, unsigned left, unsigned depth,
                           Address const& address) noexcept {
        count_ = size_after(depth) - taken;
        top_ = (top_ + max_count - taken) % max_count;
        for (unsigned i = 0; i < left; ++i) { entries_[(top_ + 1 + i) % max_count] = address(i); }
        top_ = (top_ + left) % max_count;
        count_ += left;
    }
    /// The number of entries of now that are kept after `depth` pushes.
    [[nodiscard]] constexpr auto size_after(unsigned depth) const noexcept -> unsigned {
        return count_ + depth <= max_count ? count_ : max_count - depth;
    }
    /// Pops `count` entries, 0 or 1; none if the stack is empty.
    constexpr void drop(unsigned count) noexcept {
        count = count_ == 0 ? 0 : count;
        top_ = (top_ + max_count - count) % max_count;
        count_ -= count;
    }
    /// A near RET to `target`. `compared` is the mask of the address bits that the RET pops.
    /// Returns true, and pops, if the top entry matches. `on_mismatch` is the effect of a mismatch.
    [[nodiscard]] constexpr auto pop(uint64_t target, uint64_t compared,
                                     ret_mismatch on_mismatch = ret_mismatch::pop) noexcept
        -> bool {
        if (count_ == 0) { return false; }
        bool const leads_there = ((entries_[top_] ^ target) & compared) == 0;
        if (leads_there || on_mismatch == ret_mismatch::pop) {
            top_ = (top_ + max_count - 1) % max_count;
            --count_;
        } else if (on_mismatch == ret_mismatch::clear) {
            clear();
        }
        return leads_there;
    }
    /// A near RET that was compressed: pops the top entry, its target. There must be one.
    [[nodiscard]] constexpr auto take() noexcept -> uint64_t {
        uint64_t const target = entries_[top_];
        top_ = (top_ + max_count - 1) % max_count;
        --count_;
        return target;
    }
    constexpr void clear() noexcept { count_ = 0; }

    [[nodiscard]] constexpr auto size() const noexcept -> unsigned { return count_; }
    /// Entry `i`, counted from the oldest. `i` must be below `size()`.
    [[nodiscard]] constexpr auto operator[](unsigned i) const noexcept -> uint64_t {
        return entries_[(top_ + max_count + 1 - count_ + i) % max_count];
    }

    friend constexpr auto operator==(return_stack const& one, return_stack const& two) noexcept
        -> bool {
        if (one.count_ != two.count_) { return false; }
        for (unsigned i = 0; i < one.count_; ++i) {
            if (one[i] != two[i]) { return false; }
        }
        return true;
    }

private:
    uint64_t entries_[max_count] = {};
    unsigned top_ = 0;
    unsigned count_ = 0;
};

}  // namespace ptspec::trace
