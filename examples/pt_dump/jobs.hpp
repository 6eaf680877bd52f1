// SPDX-License-Identifier: BSL-1.0
#pragma once

// Reading a trace in several threads: pt_dump --jobs.

#include "ways.hpp"

#include <cstdint>
#include <deque>
#include <future>
#include <system_error>
#include <vector>

namespace pt_dump {

/// What threads write to stands this far apart, so that none waits for another's cache line.
inline constexpr std::size_t apart = 128;

struct alignas(apart) kept_output : output {};

/// A piece of a trace, what is to be done with it, and what came of it.
template <class Way>
struct alignas(apart) job {
    output& text;
    Way way;
    std::future<void> done{};

    job(settings const& how, output& to, byte_view piece, std::uint64_t begin)
        : text{to}, way{how, to, begin} {
        auto const read = [this, piece, options = how.how] {
            trace::reader reader{piece, options};
            way.read(reader);
        };
        try {
            done = std::async(std::launch::async, read);
        } catch (std::system_error const&) {                 // no further thread can be started
            done = std::async(std::launch::deferred, read);  // get() reads the piece
        }
    }
};

/// The pieces of the bytes at hand, of which more come behind the last piece. That one is as long as
/// it has to be to tell where its PSB ends.
inline auto pieces_of(byte_view bytes, bool all, settings const& how) -> std::vector<byte_view> {
    std::vector<byte_view> pieces;
    for (byte_view const piece : trace::split{bytes, how.jobs + (all ? 0U : 1U), how.how}) {
        pieces.push_back(piece);
    }
    constexpr std::size_t told = trace::psb_bytes + 2;
    if (!all && pieces.size() > 1 && pieces.back().size() < told) {
        auto const rest = pieces.back().size();
        pieces.pop_back();
        pieces.back() = {pieces.back().data(), pieces.back().size() + rest};
    }
    return pieces;
}

/// Reads what `more(bytes)` appends, until that is nothing, in `how.jobs` threads. Of the trace there
/// is never more in memory than `Way::piece_bytes` for each, and one piece. Where that holds no place to cut, one
/// thread reads the rest.
template <class Way, class More>
void read_in_jobs(Way& whole, output& out, settings const& how, More const& more) {
    std::vector<std::uint8_t> bytes;
    std::vector<kept_output> texts;  // their memory is used again
    texts.resize(how.jobs);
    std::uint64_t begin = 0;
    for (bool all = false; !all;) {
        all = !more(bytes);
        auto pieces = pieces_of(byte_view{bytes}, all, how);
        if (!all && pieces.size() == 1) { break; }
        if (!all) { pieces.pop_back(); }
        std::deque<job<Way>> jobs;
        std::size_t used = 0;
        for (byte_view const piece : pieces) {
            output& text = texts[jobs.size()];
            jobs.emplace_back(how, text, piece, begin + used);
            used += piece.size();
        }
        for (auto& one : jobs) {
            one.done.get();
            out.write(one.text);
            whole.add(one.way);
        }
        begin += used;
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(used));
    }
    if (bytes.empty()) { return; }
    Way rest{how, out, begin};
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
