// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports/perf_event/mapped_page.hpp>

/// Reads the trace of an event from its AUX area.
namespace ptspec::ports::perf_event {

/// Bytes of a ring: the second part begins at the start of the area. The end of the first may cut a
/// packet.
///
/// Units:  `offset` counts the bytes of the event since it was opened.
struct aux_bytes {
    uint64_t offset = 0;
    byte_view parts[2] = {};

    [[nodiscard]] auto size() const noexcept -> uint64_t {
        return parts[0].size() + parts[1].size();
    }
    [[nodiscard]] auto end() const noexcept -> uint64_t { return offset + size(); }
};

/// The trace of an AUX area that the kernel does not overwrite. It moves `aux_head`, this class
/// `aux_tail`; where they are a whole area apart, the kernel stops the trace.
class aux_ring {
public:
    explicit aux_ring(mapped_areas const& areas) noexcept
        : page_{areas.page},
          bytes_{areas.aux},
          size_{areas.aux_size},
          tail_{detail::load_acquire(areas.page->aux_tail)} {}

    /// The end of the trace that is there.
    [[nodiscard]] auto head() const noexcept -> uint64_t {
        return detail::load_acquire(page_->aux_head);
    }
    [[nodiscard]] auto tail() const noexcept -> uint64_t { return tail_; }
    /// The bytes up to `end`, which is at most `head()`.
    [[nodiscard]] auto up_to(uint64_t end) const noexcept -> aux_bytes {
        uint64_t const left = end - tail_;
        size_t const count = left < size_ ? static_cast<size_t>(left) : size_;
        auto const from = detail::place_of(tail_, size_);
        auto const first = byte_view{bytes_ + from, size_ - from}.first(count);
        return {tail_, {first, byte_view{bytes_, size_}.first(count - first.size())}};
    }
    /// Gives the bytes before `end` back to the kernel.
    void release(uint64_t end) noexcept {
        tail_ = end;
        detail::store_release(page_->aux_tail, end);
    }

private:
    perf_event_mmap_page* page_;
    uint8_t const* bytes_;
    size_t size_;
    uint64_t tail_;
};

/// The trace of an AUX area that the kernel overwrites, the oldest byte first. Tracing must be off,
/// or the first bytes may be newer than the last. Their first packet is cut where the area was
/// filled: begin to read at a PSB. `offset` is 0.
///
/// Bytes that are not written yet are 0.
[[nodiscard]] inline auto snapshot_of(mapped_areas const& areas) noexcept -> aux_bytes {
    auto const head = detail::place_of(detail::load_acquire(areas.page->aux_head), areas.aux_size);
    byte_view const area{areas.aux, areas.aux_size};
    auto const older = area.from(head);
    size_t zeros = 0;
    while (zeros < older.size() && older[zeros] == 0) { ++zeros; }
    bool const is_filled = zeros != older.size();
    auto const newer = area.first(head);
    return {0, {is_filled ? older : newer, is_filled ? newer : byte_view{}}};
}

}  // namespace ptspec::ports::perf_event
