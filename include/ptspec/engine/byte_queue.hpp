// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/bytes.hpp>

namespace ptspec::engine {

/// The buffer between what makes packets and what stores them: bytes leave in the order in which
/// they came.
///
/// Shape:  `Depth` bytes, used in a circle.
/// Source: GEN-225.
template <size_t Depth>
class byte_queue {
    static_assert(Depth >= 16, "as many bytes as a packet can have");

public:
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return size_; }
    [[nodiscard]] constexpr auto empty() const noexcept -> bool { return size_ == 0; }
    [[nodiscard]] constexpr auto room() const noexcept -> size_t { return Depth - size_; }
    [[nodiscard]] static constexpr auto depth() noexcept -> size_t { return Depth; }

    /// Takes all of `bytes`, or none of them where there is no room.
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
    /// The same for the first `count` of sixteen bytes. What they are followed by is not kept.
    [[nodiscard]] constexpr auto append(wide_bits bytes, size_t count) noexcept -> bool {
        size_t const at = first_ + size_;
        if (at > Depth - 16) { return append(byte_view{to_le(bytes)}.first(count)); }
        size_ += count;
        store_le64(bytes_ + at, bytes.low);
        store_le64(bytes_ + at + 8, bytes.high);
        return true;
    }
    /// Bytes that come out next: all of them or, where they go around, those before the end.
    [[nodiscard]] constexpr auto front() const noexcept -> byte_view {
        return {bytes_ + first_, size_ < Depth - first_ ? size_ : Depth - first_};
    }
    /// `count` bytes have come out: at most as many as there are.
    constexpr void drop(size_t count) noexcept {
        if (count >= size_) { return clear(); }
        first_ = wrapped(first_ + count);
        size_ -= count;
    }
    constexpr void clear() noexcept { first_ = size_ = 0; }

    /// Byte `i` of those in the queue, which has to be below `size()`.
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
