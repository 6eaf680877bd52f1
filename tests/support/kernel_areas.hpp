// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports/perf_event/mapped_page.hpp>

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ptspec::test {

/// The page and the areas of an event, with the part of the kernel: it stores records and trace,
/// and never waits. Written by kernel/events/ring_buffer.c: perf_output_begin, perf_aux_output_end.
class kernel_areas {
public:
    kernel_areas(std::size_t data_size, std::size_t aux_size) : data_(data_size), aux_(aux_size) {
        page.data_size = data_size;
        page.aux_size = aux_size;
    }

    /// Stores a record; without room it is lost, and counted in a LOST record later.
    auto store(std::vector<std::uint8_t> const& record) -> bool {
        std::vector<std::uint8_t> all;
        if (lost_ != 0) { all = record_of(PERF_RECORD_LOST, {0, lost_}); }
        all.insert(all.end(), record.begin(), record.end());
        std::uint64_t const tail = __atomic_load_n(&page.data_tail, __ATOMIC_ACQUIRE);
        // One byte stays free, as in CIRC_SPACE.
        if (data_.size() - 1 - (data_head_ - tail) < all.size()) {
            ++lost_;
            ++lost_in_all;
            return false;
        }
        for (std::uint8_t const byte : all) { at(data_, data_head_++) = byte; }
        lost_ = 0;
        __atomic_store_n(&page.data_head, data_head_, __ATOMIC_RELEASE);
        return true;
    }
    /// A record with these members, and the sample id that events of ptspec have.
    static auto record_of(std::uint32_t type, std::vector<std::uint64_t> members,
                          std::uint16_t misc = 0) -> std::vector<std::uint8_t> {
        members.insert(members.end(), {std::uint64_t{7} << 32 | 7, 1000, 3, 55});
        std::vector<std::uint8_t> made(8 + 8 * members.size());
        auto const size = static_cast<std::uint16_t>(made.size());
        std::memcpy(made.data(), &type, 4);
        std::memcpy(made.data() + 4, &misc, 2);
        std::memcpy(made.data() + 6, &size, 2);
        std::memcpy(made.data() + 8, members.data(), 8 * members.size());
        return made;
    }
    /// The room for trace.
    [[nodiscard]] auto room() const -> std::uint64_t {
        return aux_.size() - (aux_head_ - __atomic_load_n(&page.aux_tail, __ATOMIC_ACQUIRE));
    }
    /// Stores trace and the AUX record about it; what has no room is lost, with the flag TRUNCATED.
    /// Returns the number of bytes that were stored.
    auto trace(std::vector<std::uint8_t> const& bytes, std::uint64_t flags = 0) -> std::uint64_t {
        std::uint64_t const left = room();
        std::size_t const count = bytes.size() < left ? bytes.size()
                                                      : static_cast<std::size_t>(left);
        if (count < bytes.size()) { flags |= PERF_AUX_FLAG_TRUNCATED; }
        for (std::size_t i = 0; i < count; ++i) { at(aux_, aux_head_ + i) = bytes[i]; }
        auto const before = aux_head_;
        aux_head_ += count;
        if (count != 0 || flags != 0) {
            has_record = store(record_of(PERF_RECORD_AUX, {before, count, flags}));
        }
        __atomic_store_n(&page.aux_head, aux_head_, __ATOMIC_RELEASE);
        return count;
    }
    /// As they are mapped.
    [[nodiscard]] auto areas() -> ports::perf_event::mapped_areas {
        return {.page = &page,
                .data = data_.data(),
                .data_size = data_.size(),
                .aux = aux_.data(),
                .aux_size = aux_.size()};
    }
    [[nodiscard]] auto data() const -> std::uint8_t const* { return data_.data(); }
    [[nodiscard]] auto aux() const -> std::uint8_t const* { return aux_.data(); }
    [[nodiscard]] auto aux() -> std::uint8_t* { return aux_.data(); }

    perf_event_mmap_page page{};
    std::uint64_t lost_in_all = 0;
    bool has_record = true;  ///< about the last trace

private:
    static auto at(std::vector<std::uint8_t>& area, std::uint64_t position) -> std::uint8_t& {
        std::uint64_t const place = position & (area.size() - 1);
        return area[static_cast<std::size_t>(place)];
    }

    std::vector<std::uint8_t> data_;
    std::vector<std::uint8_t> aux_;
    std::uint64_t data_head_ = 0;
    std::uint64_t aux_head_ = 0;
    std::uint64_t lost_ = 0;
};

}  // namespace ptspec::test
