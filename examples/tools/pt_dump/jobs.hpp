// SPDX-License-Identifier: BSL-1.0
#pragma once

// pt_dump --jobs: decodes a trace in several threads.

#include "report.hpp"

#include <cstdint>
#include <deque>
#include <future>
#include <system_error>
#include <vector>

namespace pt_dump {

/// Alignment of objects that different threads write, in bytes. It avoids false sharing.
inline constexpr std::size_t separation = 128;

struct alignas(separation) buffered_output : output {};

/// A segment of a trace, the thread that decodes it, and the result.
template <class Report>
struct alignas(separation) job {
    output& text;
    Report report;
    std::future<void> done{};

    job(settings const& how, output& to, byte_view piece, std::uint64_t begin)
        : text{to}, report{how, to, begin} {
        auto const read = [this, piece, options = how.how] {
            trace::reader reader{piece, options};
            report.read(reader);
        };
        try {
            done = std::async(std::launch::async, read);
        } catch (std::system_error const&) {                 // no more threads can be created
            done = std::async(std::launch::deferred, read);  // get() decodes the segment
        }
    }
};

/// Splits the bytes at hand into segments. More bytes follow the last segment unless `all` is set;
/// that one is at least long enough to find the end of its PSB.
inline auto pieces_of(byte_view bytes, bool all, settings const& how) -> std::vector<byte_view> {
    std::vector<byte_view> pieces;
    for (byte_view const piece : trace::split{bytes, how.jobs + (all ? 0U : 1U), how.how}) {
        pieces.push_back(piece);
    }
    constexpr std::size_t enough_for_psb = trace::psb_bytes + 2;
    if (!all && pieces.size() > 1 && pieces.back().size() < enough_for_psb) {
        auto const rest = pieces.back().size();
        pieces.pop_back();
        pieces.back() = {pieces.back().data(), pieces.back().size() + rest};
    }
    return pieces;
}

/// Reads what `more(bytes)` appends until it returns false, in `how.jobs` threads. At most
/// `Report::piece_bytes` for each thread, and one segment, are in memory. Where these bytes cannot
/// be split, one thread reads the rest. The first byte is that at `begin` of the trace.
template <class Report, class More>
void read_in_threads(Report& whole, output& out, settings const& how, More const& more,
                     std::uint64_t begin = 0) {
    std::vector<std::uint8_t> bytes;
    std::vector<buffered_output> texts;  // reused for each round
    texts.resize(how.jobs);
    for (bool all = false; !all;) {
        all = !more(bytes);
        auto pieces = pieces_of(byte_view{bytes}, all, how);
        if (!all && pieces.size() == 1) { break; }
        if (!all) { pieces.pop_back(); }
        std::deque<job<Report>> jobs;
        std::size_t used = 0;
        for (byte_view const piece : pieces) {
            output& text = texts[jobs.size()];
            jobs.emplace_back(how, text, piece, begin + used);
            used += piece.size();
        }
        for (auto& one : jobs) {
            one.done.get();
            out.write(one.text);
            whole.add(one.report);
        }
        begin += used;
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(used));
    }
    if (bytes.empty()) { return; }
    Report rest{how, out, begin};
    trace::reader<> reader{how.how};
    do {
        (void)reader.feed(byte_view{bytes});
        rest.read(reader);
        bytes.clear();
    } while (more(bytes));
    reader.finish();
    rest.read(reader);
    whole.add(rest);
}

}  // namespace pt_dump
