// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/reader.hpp>

/// Reading one trace in several places at once.
///
/// Behind a PSB nothing is known of what came before, so reading can begin at any. Where it is to
/// end the same as reading all of the trace in one go, a PSB has to be one that reading comes to,
/// with no damage since the PSB before. The others are those in which a broken packet ends, and
/// those behind damage, which reading in one go tells as `resynced`.
///
/// Source: SDM vol. 3, "Packet Stream Boundary (PSB) Packet"; PKT-250, PKT-251.
namespace ptspec::trace {

/// The first place, `from` or later, at which a trace can be cut in two; its size where there is
/// none. Each of the two is read by itself as it is in the whole, offsets aside, but by a reader
/// with a hook.
template <class Packets = packet::all>
[[nodiscard]] constexpr auto find_split_point(byte_view trace, size_t from, options how = {})
    -> size_t {
    size_t here = find_psb(trace, from);
    if (here == nowhere) { return trace.size(); }
    // Whatever stands before a PSB, reading comes to it: no packet but another PSB is so long that
    // it hides all of one, and what is left of it is damage, from which a search steps back. To see
    // that takes less than twice the bytes of a PSB.
    constexpr size_t seen = size_t{2} * psb_bytes;
    size_t before = find_psb_before(trace, here);
    for (; here != nowhere; here = find_psb(trace, here + psb_bytes)) {
        if (before == nowhere) {
            before = here;
        } else if (here - before >= seen) {
            byte_view const between = trace.from(before).first(here - before);
            if (reader<no_hook, Packets>{between, how}.scan().errors == 0) { return here; }
            before = here;
        }
    }
    return trace.size();
}

/// A trace in at most so many pieces of about the same size, none of them empty, in their order:
/// `for (byte_view piece : split{trace, 4})`. Read one after the other they give what the whole
/// gives, offsets aside, but to a reader with a hook. The first begins where the trace does; the
/// others begin with a PSB, and are the same with and without `options::sync`.
///
/// The places are found one by one. All of them together take no more steps than reading the trace
/// twice, and few where there are PSBs.
template <class Packets = packet::all>
class split {
public:
    constexpr split(kept_bytes whole, size_t count, options how = {}) noexcept
        : trace_{whole.view()},
          size_{trace_.size() / (count == 0 ? 1 : count)},
          count_{count},
          how_{how} {}

    struct end_of_trace {};

    class iterator {
    public:
        constexpr explicit iterator(split const& of) : of_{of}, end_{of.split_point_after(0, 1)} {}

        constexpr auto operator*() const noexcept -> byte_view {
            return of_.trace_.from(begin_).first(end_ - begin_);
        }
        constexpr auto operator++() -> iterator& {
            begin_ = end_;
            number_ += 1;
            end_ = of_.split_point_after(begin_, number_);
            return *this;
        }
        constexpr auto operator==(end_of_trace) const noexcept -> bool {
            return begin_ == of_.trace_.size();
        }

    private:
        split const& of_;
        size_t begin_ = 0;
        size_t end_;
        size_t number_ = 1;
    };

    [[nodiscard]] constexpr auto begin() const -> iterator { return iterator{*this}; }
    [[nodiscard]] constexpr auto end() const noexcept -> end_of_trace { return {}; }

private:
    /// Where piece `number`, counted from 1, ends, which begins at `begin`.
    [[nodiscard]] constexpr auto split_point_after(size_t begin, size_t number) const -> size_t {
        if (number >= count_) { return trace_.size(); }
        size_t const wanted = size_ * number;
        return find_split_point<Packets>(trace_, wanted > begin ? wanted : begin + 1, how_);
    }

    byte_view trace_;
    size_t size_;
    size_t count_;
    options how_;
};

}  // namespace ptspec::trace
