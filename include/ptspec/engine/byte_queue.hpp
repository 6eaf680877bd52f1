// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>

namespace ptspec::engine {

/// A queue of bytes, first in, first out: the internal buffer between packet generation and output.
///
/// Shape:  a ring buffer of `Depth` bytes.
/// Source: GEN-225.
template <size_t Depth>
class byte_queue {
    static_assert(Depth >= 16, "the queue must have room for the longest packet");

public:
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return size_; }
    [[nodiscard]] constexpr auto empty() const noexcept -> bool { return size_ == 0; }
    [[nodiscard]] constexpr auto room() const noexcept -> size_t { return Depth - size_; }
    [[nodiscard]] static constexpr auto depth() noexcept -> size_t { return Depth; }

    /// Appends all of `bytes`, or nothing if they do not fit. Returns true if they were appended.
    [[nodiscard]] constexpr auto append(byte_view bytes) noexcept -> bool {
        if (bytes.size() > room()) { return false; }
        size_t const at = wrapped(first_ + size_);
        byte_view const front = bytes.first(Depth - at);
        byte_view const back = bytes.from(front.size());
        copy_bytes(bytes_ + at, front.data(), front.size());
        copy_bytes(bytes_, back.data(), back.size());
        size_ += bytes.size();
        return true;
    }
    /// Appends the first `count` of sixteen bytes. May store all sixteen: the bytes after the first
    /// `count` are unused.
    [[nodiscard]] constexpr auto append(wide_bits bytes, size_t count) noexcept -> bool {
        size_t const at = first_ + size_;
        if (at > Depth - 16) { return append(byte_view{to_le(bytes)}.first(count)); }
        size_ += count;
        store_le64(bytes_ + at, bytes.low);
        store_le64(bytes_ + at + 8, bytes.high);
        return true;
    }
    /// The oldest bytes: all of them, or those before the end of the ring buffer if they wrap.
    [[nodiscard]] constexpr auto front() const noexcept -> byte_view {
        return {bytes_ + first_, size_ < Depth - first_ ? size_ : Depth - first_};
    }
    /// Removes the oldest `count` bytes, or all if there are fewer.
    constexpr void drop(size_t count) noexcept {
        if (count >= size_) { return clear(); }
        first_ = wrapped(first_ + count);
        size_ -= count;
    }
    constexpr void clear() noexcept { first_ = size_ = 0; }

    /// Byte `i`, counted from the oldest. `i` must be below `size()`.
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> uint8_t {
        return bytes_[wrapped(first_ + i)];
    }

private:
    static constexpr auto wrapped(size_t at) noexcept -> size_t {
        return at < Depth ? at : at - Depth;
    }

    size_t first_ = 0;
    size_t size_ = 0;
    uint8_t bytes_[Depth] = {};
};

}  // namespace ptspec::engine
