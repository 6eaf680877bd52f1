// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/records.hpp>
#include <ptspec/ports/perf_event/mapped_page.hpp>

/// Reads the records of an event from its data area.
namespace ptspec::ports::perf_event {

/// The records of a data area, in order. Only a record that the end of the area cuts is copied.
///
/// The kernel moves `data_head`, this class `data_tail`. A record with an impossible size ends what
/// is there: `skipped` counts these bytes.
class record_ring {
public:
    explicit record_ring(mapped_areas const& areas) noexcept
        : page_{areas.page},
          bytes_{areas.data},
          size_{areas.data_size},
          at_{detail::load_acquire(areas.page->data_tail)} {}

    /// The next record; empty: there is none. It is valid until `release`, or the next call.
    [[nodiscard]] auto next() noexcept -> byte_view {
        using file::perf_data::record_header;
        at_ += last_;
        last_ = 0;
        uint64_t const head = detail::load_acquire(page_->data_head);
        uint64_t const left = head - at_;
        if (left == 0) { return {}; }
        if (left >= sizeof(record_header) && left <= size_) {
            auto const header = file::load<record_header>(part(sizeof(record_header)));
            if (header.size >= sizeof header && header.size <= left) {
                last_ = header.size;
                return part(last_);
            }
        }
        skipped_ += left;
        at_ = head;
        return {};
    }
    /// The last record is not used yet: `next` returns it again.
    void keep() noexcept { last_ = 0; }
    /// Gives the records before the next one back to the kernel.
    void release() noexcept {
        at_ += last_;
        last_ = 0;
        detail::store_release(page_->data_tail, at_);
    }
    /// Bytes without a record.
    [[nodiscard]] auto skipped() const noexcept -> uint64_t { return skipped_; }

private:
    /// The next bytes, copied if the end of the area cuts them.
    auto part(size_t count) noexcept -> byte_view {
        auto const from = detail::place_of(at_, size_);
        size_t const first = size_ - from;
        if (count <= first) { return {bytes_ + from, count}; }
        copy_bytes(cut_, bytes_ + from, first);
        copy_bytes(cut_ + first, bytes_, count - first);
        return {cut_, count};
    }

    perf_event_mmap_page* page_;
    uint8_t const* bytes_;
    size_t size_;
    uint64_t at_;  ///< of the last record
    size_t last_ = 0;
    uint64_t skipped_ = 0;
    uint8_t cut_[65'536] = {};  ///< the size of a record has 16 bits
};

}  // namespace ptspec::ports::perf_event
