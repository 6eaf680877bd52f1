// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/host_memory.hpp>
#include <ptspec/packet/pad.hpp>

/// A trace in memory that is changed in place.
namespace ptspec::edit {

/// A trace in memory that can be written: in one window, or in several, as the two of a ring that
/// wrapped or the regions of a table. Borrowed; the windows must not overlap.
class trace_memory {
public:
    constexpr trace_memory(byte_window const* first, size_t count) noexcept
        : first_{first}, count_{count} {}
    template <size_t Count>
    constexpr trace_memory(byte_window const (&windows)[Count]) noexcept
        : trace_memory{windows, Count} {}

    [[nodiscard]] constexpr auto begin() const noexcept -> byte_window const* { return first_; }
    [[nodiscard]] constexpr auto end() const noexcept -> byte_window const* {
        return first_ + count_;
    }
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> byte_window const& {
        return first_[i];
    }

private:
    byte_window const* first_;
    size_t count_;
};

namespace detail {

using namespace ptspec::detail;

/// Reads and writes the bytes of a trace in memory by their offsets in the trace. The first byte
/// of the memory may have any offset.
class trace_bytes {
    /// The window of the last access, and the offset of its first byte in the memory.
    struct place {
        size_t window = 0;
        uint64_t begin = 0;
    };

    /// Calls `each(bytes, count)` for the bytes from an offset in the memory on, window by window.
    template <class Each>
    constexpr void visit(place& here, uint64_t from, uint64_t count, Each const& each) noexcept {
        while (count != 0) {
            while (from < here.begin) { here.begin -= memory_[--here.window].size; }
            while (from - here.begin >= memory_[here.window].size) {
                here.begin += memory_[here.window++].size;
            }
            uint64_t const at = from - here.begin;
            uint64_t const left = memory_[here.window].size - at;
            auto const bytes = static_cast<size_t>(left < count ? left : count);
            each(memory_[here.window].first + at, bytes);
            from += bytes;
            count -= bytes;
        }
    }

public:
    constexpr explicit trace_bytes(trace_memory memory, uint64_t begin = 0) noexcept
        : memory_{memory}, begin_{begin} {
        for (auto const& window : memory) { size_ += window.size; }
    }
    [[nodiscard]] constexpr auto size() const noexcept -> uint64_t { return size_; }
    [[nodiscard]] constexpr auto end() const noexcept -> uint64_t { return begin_ + size_; }

    constexpr void read(uint64_t offset, uint8_t* destination, size_t count) noexcept {
        visit(read_, offset - begin_, count, [&](uint8_t const* bytes, size_t size) {
            copy_bytes(destination, bytes, size);
            destination += size;
        });
    }
    /// Writes bytes at an offset of the trace, but for those before the memory.
    constexpr void write(uint64_t offset, byte_view bytes) noexcept {
        if (offset < begin_) {
            uint64_t const missing = begin_ - offset;
            bytes = bytes.from(static_cast<size_t>(missing));
            offset = begin_;
        }
        uint8_t const* source = bytes.data();
        visit(written_, offset - begin_, bytes.size(), [&](uint8_t* destination, size_t size) {
            copy_bytes(destination, source, size);
            source += size;
        });
    }
    /// Writes PADs from one offset up to another.
    constexpr void pad(uint64_t begin, uint64_t end) noexcept {
        visit(written_, begin - begin_, end - begin, [](uint8_t* bytes, size_t size) {
            for (size_t i = 0; i < size; ++i) {
                bytes[i] = static_cast<uint8_t>(packet::pad{}.raw);
            }
        });
    }

private:
    trace_memory memory_;
    uint64_t begin_ = 0;
    uint64_t size_ = 0;
    place read_{};
    place written_{};
};

}  // namespace detail

}  // namespace ptspec::edit
