// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports/perf_event/area_reader.hpp>
#include <ptspec/ports/perf_event/perf_trace.hpp>

#include <poll.h>

/// Reads an event until its thread has ended.
namespace ptspec::ports::perf_event {

/// Passes the trace and the records of an event to a sink until the thread has ended, and enables
/// the event again where the reader was too slow. `continues()`, called at least every `ms`
/// milliseconds, can end it earlier.
///
/// Errors: other, of poll(2) or of `enable`.
template <takes_areas Sink, class Continues>
auto follow(perf_trace& from, area_reader& areas, Sink& to, Continues const& continues,
            int ms = 100) -> trace_result {
    poll_time time;
    bool is_stopped = false;
    for (;;) {
        pollfd wait{from.descriptor(), POLLIN, 0};
        int const done = ::poll(&wait, 1, time.next(is_stopped, ms));
        if (done < 0 && errno != EINTR) { return {failure::other, errno}; }
        bool const has_ended = done > 0 && (wait.revents & (POLLHUP | POLLERR)) != 0;
        auto const found = areas.read(to);
        if (has_ended || !continues()) { return {}; }
        is_stopped = found.is_stopped;
        if (is_stopped) {
            auto const enabled = from.enable();
            if (!enabled) { return enabled; }
        }
    }
}
template <takes_areas Sink>
auto follow(perf_trace& from, area_reader& areas, Sink& to) -> trace_result {
    return follow(from, areas, to, [] { return true; });
}

}  // namespace ptspec::ports::perf_event
