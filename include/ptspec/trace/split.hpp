// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/reader.hpp>

/// Splits a trace into parts that can be decoded in parallel.
///
/// A PSB resets the decoder, so decoding can start at any PSB. To give the same items as one pass
/// over the whole trace, a split point must be a PSB that this pass reaches without damage since
/// the PSB before it. Other PSBs are not valid split points: those in which an invalid packet ends,
/// and those after damage, which this pass reports as `resynced`.
///
/// Source: SDM vol. 3, "Packet Stream Boundary (PSB) Packet"; PKT-250, PKT-251.
namespace ptspec::trace {

/// The first offset, `from` or later, at which a trace can be split; the size of the trace when
/// there is none. Each part decodes to the same items as in the whole trace, apart from offsets.
/// This is not guaranteed for a reader with a hook.
template <class Packets = packet::all>
[[nodiscard]] constexpr auto find_split_point(byte_view trace, size_t from,
                                              reader_options options = {}) noexcept -> size_t {
    size_t here = find_psb(trace, from);
    if (here == npos) { return trace.size(); }
    // A reader reaches each PSB after any bytes: no packet other than a PSB is long enough to cover
    // a PSB, and a PSB that is covered in part causes damage, from which the search steps back.
    // Detecting such damage takes less than twice the bytes of a PSB.
    constexpr size_t visible = size_t{2} * psb_bytes;
    size_t before = find_psb_before(trace, here);
    for (; here != npos; here = find_psb(trace, here + psb_bytes)) {
        if (before == npos) {
            before = here;
        } else if (here - before >= visible) {
            byte_view const between = trace.from(before).first(here - before);
            if (reader<no_hook, Packets>{between, options}.scan().errors == 0) { return here; }
            before = here;
        }
    }
    return trace.size();
}

/// Iterates over the parts of a trace, in order: at most `count`, about equal in size, not empty.
/// `Parts` has `split_point(from)`: the first offset, `from` or later, at which the trace can be
/// split, or its size; and `part(begin, end)`: what is given to the user.
template <class Parts>
class part_iterator {
public:
    struct end_of_trace {};

    constexpr part_iterator(Parts const& parts, size_t trace_size, size_t count) noexcept
        : parts_{parts}, size_{trace_size}, count_{count == 0 ? 1 : count} {
        find_end();
    }

    constexpr auto operator*() const noexcept { return parts_.part(begin_, end_); }
    constexpr auto operator++() noexcept -> part_iterator& {
        begin_ = end_;
        number_ += 1;
        find_end();
        return *this;
    }
    constexpr auto operator==(end_of_trace) const noexcept -> bool { return begin_ == size_; }

private:
    constexpr void find_end() noexcept {
        end_ = size_;
        if (begin_ == size_ || number_ >= count_) { return; }
        size_t const wanted = size_ / count_ * number_;
        end_ = parts_.split_point(wanted > begin_ ? wanted : begin_ + 1);
    }

    Parts const& parts_;
    size_t size_;
    size_t count_;
    size_t number_ = 1;  ///< of the part, counted from 1
    size_t begin_ = 0;
    size_t end_ = 0;
};

/// The parts of a trace, in order: at most `count`, about equal in size, not empty: `for (byte_view
/// part : split{trace, 4})`. The parts, decoded in order, give the items of the whole trace, apart
/// from offsets. This is not guaranteed for a reader with a hook. The first part begins where the
/// trace begins. The others begin with a PSB and decode the same with and without
/// `reader_options::sync`.
///
/// The split points are searched one by one. All searches together cost at most as much as decoding
/// the trace twice, and little where PSBs are frequent.
template <class Packets = packet::all>
class split {
public:
    using iterator = part_iterator<split>;

    constexpr split(borrowed_bytes whole, size_t count, reader_options options = {}) noexcept
        : trace_{whole.view()}, count_{count}, options_{options} {}

    [[nodiscard]] constexpr auto begin() const noexcept -> iterator {
        return {*this, trace_.size(), count_};
    }
    [[nodiscard]] constexpr auto end() const noexcept -> typename iterator::end_of_trace {
        return {};
    }

private:
    friend iterator;

    [[nodiscard]] constexpr auto split_point(size_t from) const noexcept -> size_t {
        return find_split_point<Packets>(trace_, from, options_);
    }
    [[nodiscard]] constexpr auto part(size_t begin, size_t end) const noexcept -> byte_view {
        return trace_.from(begin).first(end - begin);
    }

    byte_view trace_;
    size_t count_;
    reader_options options_;
};

}  // namespace ptspec::trace
