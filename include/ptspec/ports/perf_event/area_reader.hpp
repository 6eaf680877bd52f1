// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/read_as.hpp>
#include <ptspec/ports/perf_event/attributes.hpp>
#include <ptspec/ports/perf_event/aux_ring.hpp>
#include <ptspec/ports/perf_event/record_ring.hpp>

/// Reads the trace and the records of an event in their order, while it traces.
namespace ptspec::ports::perf_event {

/// Why trace is missing at an offset.
enum class loss : uint8_t {
    area_full,  ///< the reader was too slow: the kernel stopped the event
    collision,  ///< a hypervisor traced
    /// The data area was full. An AUX record may be lost that says that trace is missing: there, or
    /// in the bytes since the last AUX record.
    records_lost,
    not_published,  ///< the kernel announced bytes that it does not have
};

/// The loss as one sentence.
[[nodiscard]] constexpr auto describe(loss why) noexcept -> text {
    switch (why) {
        case loss::area_full: return "the AUX area was full: the reader was too slow";
        case loss::collision: return "a hypervisor used Intel PT";
        case loss::records_lost: return "the data area was full: trace may be missing";
        case loss::not_published: return "the kernel announced trace that it does not have";
    }
    return "unknown loss";
}

/// What takes a trace and its records, in the order of the kernel. Bytes are valid during the call.
/// After `gap`, the bytes do not continue those before it.
template <class Sink>
concept takes_areas = requires(Sink& to, aux_bytes const& bytes, uint64_t offset,
                               file::perf_data::record const& one, loss why) {
    to.trace(bytes);
    to.record(one);
    to.gap(offset, why);
};

/// What `area_reader::read` found.
struct [[nodiscard]] areas_read {
    bool has_more = false;  ///< a record or trace
    /// The kernel stopped the event, or a lost record may say so, and no trace came since: `enable`
    /// it. The kernel stops it after it has published the AUX record: an earlier `enable` has no
    /// effect and must be repeated.
    bool is_stopped = false;
};

/// How long poll(2) may wait. An `enable` that came too early is repeated after 1 ms, then after
/// twice as long each time, up to a second: the thread may also sleep.
struct poll_time {
    int after_stop = 1;

    /// In milliseconds, at most `longest`, which is negative if there is no limit.
    [[nodiscard]] constexpr auto next(bool is_stopped, int longest) noexcept -> int {
        if (!is_stopped) {
            after_stop = 1;
            return longest;
        }
        int const now = after_stop;
        after_stop = now < 500 ? now * 2 : 1000;
        return longest < 0 || now < longest ? now : longest;
    }
};

/// Reads the two areas of an event, but not those of a snapshot. Nothing is copied, except a record
/// that the end of its area cuts.
///
/// Source: Linux, kernel/events/ring_buffer.c, `perf_aux_output_end`: an AUX record is in the data
///         area before `aux_head` has its bytes.
class area_reader {
public:
    explicit area_reader(mapped_areas const& areas) noexcept
        : records_{areas}, aux_{areas}, aux_size_{areas.aux_size} {}

    /// Passes on all that is there, and gives it back to the kernel.
    template <takes_areas Sink>
    auto read(Sink& to) -> areas_read {
        using namespace file::perf_data;
        areas_read made;
        uint64_t const head = aux_.head();
        for (;;) {
            auto const bytes = records_.next();
            if (bytes.empty()) { break; }
            auto const one = kernel_record(bytes, record_members);
            auto const about = read_as<aux_record>(one);
            if (about && !take(about.value, to)) {
                records_.keep();
                break;
            }
            if (auto const lost = read_as<lost_record>(one)) {
                lost_records_ += lost->lost;
                report_lost_records(to);
            }
            made.has_more = true;
            if (one) {
                to.record(one);
            } else {
                ++bad_records_;
            }
            records_.release();
        }
        made.has_more = made.has_more || is_after(head, aux_.tail());
        pass_on_without_record(head, to);
        records_.release();
        made.is_stopped = is_stopped_;
        return made;
    }
    /// Records that the kernel could not store.
    [[nodiscard]] auto lost_records() const noexcept -> uint64_t { return lost_records_; }
    /// Records that could not be read, and bytes in which there was none.
    [[nodiscard]] auto bad_records() const noexcept -> uint64_t { return bad_records_; }
    [[nodiscard]] auto skipped() const noexcept -> uint64_t { return records_.skipped(); }

private:
    /// Offsets may wrap.
    static constexpr auto is_after(uint64_t one, uint64_t other) noexcept -> bool {
        return static_cast<int64_t>(one - other) > 0;
    }
    /// Takes the bytes that an AUX record is about. False if the kernel has not yet published them.
    template <class Sink>
    auto take(file::perf_data::aux_record const& about, Sink& to) -> bool {
        using flags = file::perf_data::aux_flags;
        uint64_t end = about.aux_offset + about.aux_size;
        uint64_t const head = aux_.head();
        bool const is_early = is_after(end, head);
        if (is_early && end - aux_.tail() <= aux_size_) { return false; }
        if (is_early) { end = head; }
        uint64_t const begin = about.aux_offset;
        pass_on_without_record(is_after(begin, end) ? end : begin, to);
        pass_on(end, to);
        if (is_early) { to.gap(end, loss::not_published); }
        if (about.flags.get<flags::COLLISION>()) { to.gap(end, loss::collision); }
        if (about.flags.get<flags::TRUNCATED>()) {
            is_stopped_ = true;
            to.gap(end, loss::area_full);
        }
        return true;
    }
    /// The record that is about these bytes is lost.
    template <class Sink>
    void pass_on_without_record(uint64_t end, Sink& to) {
        if (!is_after(end, aux_.tail())) { return; }
        pass_on(end, to);
        report_lost_records(to);
    }
    template <class Sink>
    void report_lost_records(Sink& to) {
        is_stopped_ = true;
        if (has_reported_ && reported_at_ == aux_.tail()) { return; }
        has_reported_ = true;
        reported_at_ = aux_.tail();
        to.gap(reported_at_, loss::records_lost);
    }
    template <class Sink>
    void pass_on(uint64_t end, Sink& to) {
        if (!is_after(end, aux_.tail())) { return; }
        auto const bytes = aux_.up_to(end);
        to.trace(bytes);
        is_stopped_ = false;
        if (bytes.end() != end) { to.gap(end, loss::not_published); }
        aux_.release(end);
    }

    record_ring records_;
    aux_ring aux_;
    size_t aux_size_;
    uint64_t lost_records_ = 0;
    uint64_t bad_records_ = 0;
    bool is_stopped_ = false;  ///< since the last trace
    bool has_reported_ = false;
    uint64_t reported_at_ = 0;  ///< the last gap because records are lost
};

}  // namespace ptspec::ports::perf_event
