// SPDX-License-Identifier: BSL-1.0
#pragma once

// Finds the calls of a trace: where its code comes from, and the walk over it.

#include "names.hpp"
#include "recorder.hpp"
#include "../trace_file.hpp"
#include "../walk_limits.hpp"
#include "../traced/filters.hpp"
#include "../traced/options.hpp"
#include "../traced/processes.hpp"

#include <ptspec/flow.hpp>
#include <ptspec/trace/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace calls {

/// What the command line says of calls and code.
struct options {
    bool is_on = false;
    std::string given{};  ///< an option that needs --calls
    traced::code_options code{};

    void check() const {
        if (!is_on && !given.empty()) { throw tool::failure{given + " needs --calls"}; }
    }
};

/// Takes an option about calls. Returns false when it is another option.
inline auto take_option(tool::command_line& line, options& to) -> bool {
    auto const option = line.argument();
    if (line.is("--calls")) {
        to.is_on = true;
    } else if (traced::take_code_option(line, to.code)) {
        to.given = option;
    } else {
        return false;
    }
    return true;
}

/// Code, as a walker reads it, which also gives the place of each packet to a recorder.
struct located_code {
    static constexpr auto changes = flow::space_changes::at_packets;

    traced::traced_code& from;
    recorder& to;
    std::uint64_t begin = 0;  ///< of the walk, in the trace

    [[nodiscard]] auto code(std::uint64_t address, std::uint32_t space) -> byte_view {
        return from.code(address, space);
    }
    [[nodiscard]] auto needs_time_at(std::uint64_t address, std::uint32_t space) -> bool {
        return from.needs_time_at(address, space);
    }
    [[nodiscard]] auto space_of(flow::walk_state const& walked) -> std::uint32_t {
        auto const space = from.space_of(walked);
        auto const* const constant = from.constant_thread();
        auto const* const thread = constant != nullptr ? constant : from.changing_thread();
        to.move_to(begin + walked.offset, walked.when, thread == nullptr ? any_thread : *thread);
        return space;
    }
};

/// Walks a trace that comes in pieces.
class walk {
public:
    /// `options` has what the trace can have.
    walk(traced::traced_code& from, trace::clock_options const& how,
         flow::walk_options const& options, recorder& to)
        : code_{from, to}, how_{options}, to_{to} {
        how_.quirks = how.quirks;
        walker_.emplace(code_, cache_, how_, trace::clock{how});
        to.set_one_thread(from.is_one_thread());
        from.ends.symbols_of = [&to](thread_id thread) { return &to.symbols_of_thread(thread); };
    }
    walk(walk const&) = delete;
    auto operator=(walk const&) -> walk& = delete;

    void feed(byte_view bytes) {
        (void)walker_->feed(borrowed_bytes{bytes.data(), bytes.size()});
        end_ += bytes.size();
        (void)walker_->run(to_);
    }
    /// Skips bytes that are missing here.
    void skip_gap() {
        end_part();
        to_.lose();
        auto clock = walker_->clock();
        clock.lose();
        code_.begin = end_;
        walker_.emplace(code_, cache_, how_, clock);
    }
    void finish() {
        end_part();
        to_.finish();
    }

private:
    void end_part() {
        walker_->finish();
        (void)walker_->run(to_);
    }

    located_code code_;
    flow::walk_options how_;
    recorder& to_;
    std::vector<flow::block> blocks_ = std::vector<flow::block>(std::size_t{1} << 16);
    flow::block_cache cache_{blocks_.data(), blocks_.size()};
    std::uint64_t end_ = 0;
    std::optional<flow::walker<located_code, trace::clock>> walker_{};
};

/// The code of a perf.data file.
struct process_code {
    process_code(trace_file::container const& of, options const& how)
        : binaries{how.code.files}, all{file::perf_data::open(of.from->bytes()), binaries} {}

    auto name_of(thread_id thread, bar const& one) -> std::string {
        return calls::name_of(one, names_of(thread));
    }
    auto names_of(thread_id thread) -> traced::symbols const& {
        return thread.is_guest ? all.guest_names() : all.names_of(thread.pid);
    }

    traced::binaries binaries;
    traced::processes all;
};

/// The name of a function of a raw trace.
inline auto name_of(options const& how, bar const& one) -> std::string {
    return name_of(one, how.code.images.names());
}

/// Checks that the code of a file with streams can be found.
inline void require_processes(trace_file::container const& of, options const& how) {
    if (of.layout == "winipt") {
        throw tool::failure{of.name + ": --calls takes a raw trace or a perf.data file"};
    }
    if (how.code.has_images) {
        throw tool::failure{of.name + ": a perf.data file names the files with code itself"};
    }
}

/// Walks a stream of a perf.data file.
inline void walk_stream(trace_file::stream const& of, process_code& in,
                        trace::clock_options const& how, flow::walk_options const& options,
                        recorder& to) {
    traced::traced_code code{in.all, of};
    auto limits = options;
    limits.quirks = how.quirks;
    walk steps{code, how, traced::with_filters(limits, in.all, of.how), to};
    trace_file::for_each_piece(
        of, [&](byte_view bytes) { steps.feed(bytes); },
        [&](trace_file::gap const&) { steps.skip_gap(); }, [](trace_file::partial const&) {});
    steps.finish();
}

}  // namespace calls
