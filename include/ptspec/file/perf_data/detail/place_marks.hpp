// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/stream.hpp>

/// Sorts pieces, and assigns marks to streams.
namespace ptspec::file::perf_data::detail {

/// The order of pieces in a stream list.
struct is_earlier {
    bool is_snapshot;

    constexpr auto operator()(piece const& one, piece const& two) const noexcept -> bool {
        if (one.is_sample != two.is_sample) { return two.is_sample; }
        bool const has_cpu = one.cpu != no_cpu;
        if (one.is_sample && has_cpu != (two.cpu != no_cpu)) { return has_cpu; }
        if (one.idx != two.idx) { return one.idx < two.idx; }
        // In a snapshot the offset is a place in the ring.
        if (one.is_sample && one.time != two.time) { return one.time < two.time; }
        if (!one.is_sample && !is_snapshot) {
            if (one.offset != two.offset) { return one.offset < two.offset; }
            if (is_mark(one) != is_mark(two)) { return is_mark(one); }
            // A lossy mark is at the end of its AUX record, another mark at the start.
            if (is_lossy(one) != is_lossy(two)) { return is_lossy(one); }
        }
        return one.file_offset != two.file_offset ? one.file_offset < two.file_offset
                                                  : is_lossy(one) && !is_lossy(two);
    }
};
/// The order by processor and thread, for `find_first_of`.
struct has_lower_cpu_or_tid {
    constexpr auto operator()(piece const& one, piece const& two) const noexcept -> bool {
        if (one.cpu != two.cpu) { return one.cpu < two.cpu; }
        if (one.cpu == no_cpu && one.tid != two.tid) { return one.tid < two.tid; }
        if (one.idx != two.idx) { return one.idx < two.idx; }
        return one.file_offset < two.file_offset;
    }
};

template <class Less>
constexpr void sift_down(piece* all, size_t at, size_t count, Less const& less) noexcept {
    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && less(all[child], all[child + 1])) { ++child; }
        if (!less(all[at], all[child])) { return; }
        auto const moved = all[at];
        all[at] = all[child];
        all[child] = moved;
        at = child;
    }
}

/// Sorts distinct pieces in place by heapsort: n log n in the worst case.
template <class Less>
constexpr void sort_pieces(piece* all, size_t count, Less const& less) noexcept {
    bool is_sorted = true;
    for (size_t i = 1; i < count && is_sorted; ++i) { is_sorted = less(all[i - 1], all[i]); }
    if (is_sorted) { return; }
    for (size_t i = count / 2; i != 0; --i) { sift_down(all, i - 1, count, less); }
    for (size_t end = count - 1; end != 0; --end) {
        auto const last = all[0];
        all[0] = all[end];
        all[end] = last;
        sift_down(all, 0, end, less);
    }
}

/// Finds the first piece of a processor, or, if `cpu` is `no_cpu`, of a thread. `all` is sorted by
/// `has_lower_cpu_or_tid`. Returns `count` if there is none.
constexpr auto find_first_of(piece const* all, size_t count, uint32_t cpu, uint32_t tid) noexcept
    -> size_t {
    auto const is_before = [&](piece const& one) {
        return one.cpu != cpu ? one.cpu < cpu : cpu == no_cpu && one.tid < tid;
    };
    size_t low = 0;
    for (size_t high = count; low < high;) {
        size_t const middle = low + (high - low) / 2;
        if (is_before(all[middle])) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool const found = low < count && all[low].cpu == cpu &&
                       (cpu != no_cpu || (tid != no_tid && all[low].tid == tid));
    return found ? low : count;
}

/// Assigns each mark after the first `count` pieces to the stream of its processor or of its
/// thread. A mark whose record names neither is assigned to the only stream, if there is only one.
/// Removes the other marks, and returns the number of marks that are left.
constexpr auto place_marks(piece* all, size_t count, size_t marks) noexcept -> size_t {
    if (marks == 0) { return 0; }
    sort_pieces(all, count, has_lower_cpu_or_tid{});
    bool is_only_one = count != 0;
    for (size_t i = 1; i < count && is_only_one; ++i) {
        is_only_one = share_stream(all[0], all[i]);
    }
    size_t placed = 0;
    for (size_t i = count; i < count + marks; ++i) {
        auto mark = all[i];
        size_t index = mark.cpu == no_cpu ? count : find_first_of(all, count, mark.cpu, no_tid);
        if (index == count) { index = find_first_of(all, count, no_cpu, mark.tid); }
        if (index == count && is_only_one) {
            bool const names_other = all[0].cpu != no_cpu ? mark.cpu != no_cpu : mark.tid != no_tid;
            index = names_other ? count : 0;
        }
        if (index == count) { continue; }
        auto const& first = all[index];
        mark.idx = first.idx;
        mark.cpu = first.cpu;
        mark.tid = first.tid;
        mark.is_sample = first.is_sample;
        all[count + placed] = mark;
        ++placed;
    }
    return placed;
}

}  // namespace ptspec::file::perf_data::detail
