// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/decoder_config.hpp>
#include <ptspec/file/perf_data/streams.hpp>
#include <ptspec/trace/event_name.hpp>
#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/events.hpp>

namespace ptspec::file::perf_data {

/// Reads the events of a stream, with their times, piece by piece. After a gap, reading resumes at
/// the next PSB.
///
/// Shape:  a value of about 4 KB. It borrows the pieces and the bytes of the file.
/// Units:  `offset` of an event counts the bytes of the pieces, `when` TSC ticks.
///         `decoder_config::clock` converts a TSC to nanoseconds.
/// Errors: damage is an event, as in `trace::event_reader`.
class event_reader {
public:
    constexpr event_reader(stream pieces, decoder_config const& config) noexcept
        : at_{pieces.begin()},
          end_{pieces.end()},
          quirks_{config.quirks},
          events_{trace::clock{clock_for(pieces, config)}, config.quirks} {
        // `skip_gap` does not count a gap before the first piece, because no piece ends there.
        gaps_ = at_ != end_ && at_->has_gap_before ? 1 : 0;
    }

    /// The next event; false at the end. It stays valid until the next call.
    [[nodiscard]] constexpr auto next() noexcept -> trace::event const& {
        while (true) {
            event_ = events_.next();
            if (event_.what == trace::event_type::need_input) {
                feed_or_finish();
            } else if (event_.what == trace::event_type::end && at_ != end_) {
                skip_gap();
            } else {
                event_.offset += begin_;
                return event_;
            }
        }
    }
    /// The number of gaps, where trace is missing, before the last event that `next` returned.
    [[nodiscard]] constexpr auto gaps() const noexcept -> size_t { return gaps_; }

private:
    static constexpr auto clock_for(stream pieces, decoder_config const& config) noexcept
        -> trace::clock_options {
        auto options = clock_options_of(config);
        if (pieces.size() != 0) { options.tsc_reference = pieces[0].reference; }
        return options;
    }
    constexpr void feed_or_finish() noexcept {
        bool const ends = at_ == end_ || (at_->has_gap_before && !is_after_gap_ && fed_ != begin_);
        if (ends) { return events_.finish(); }
        is_after_gap_ = false;
        fed_ += at_->trace.size();
        (void)events_.feed(at_->trace);
        ++at_;
    }
    constexpr void skip_gap() noexcept {
        auto clock = events_.clock();
        clock.lose();
        events_ = trace::event_reader<trace::clock>{clock, quirks_};
        begin_ = fed_;
        is_after_gap_ = true;
        ++gaps_;
    }

    piece const* at_;
    piece const* end_;
    cpu::quirk_set quirks_;
    trace::event_reader<trace::clock> events_;
    uint64_t fed_ = 0;    ///< bytes of the pieces so far
    uint64_t begin_ = 0;  ///< of the bytes since the last gap
    bool is_after_gap_ = false;
    size_t gaps_ = 0;
    trace::event event_{};
};

}  // namespace ptspec::file::perf_data
