// SPDX-License-Identifier: BSL-1.0
#pragma once

// A report prints the results of a walk.

#include "../clock_options.hpp"
#include "../traced/processes.hpp"
#include "../walk_summary.hpp"

#include <ptspec/flow.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace reports {

using namespace ptspec;

using traced::no_process;
using traced::thread_id;

/// What a report takes. What it does not take costs no time.
struct wanted {
    bool instructions = false;  ///< else blocks and edges
    bool edges = false;         ///< all, else all but direct and conditional jumps
    bool blocks = false;        ///< each, else the sum of instructions
    bool times = false;         ///< of edges
    bool functions = false;     ///< sums of instructions of one function, by `symbols_of`
    bool events = false;        ///< PTWRITEs
    bool window = false;        ///< times of all, to know what is shown
};

/// What --only, --vmcs and --cr3 leave out.
struct left_out {
    std::uint64_t instructions = 0;
    std::uint64_t branches = 0;
    std::uint64_t gaps = 0;
    std::uint64_t unknown = 0;  ///< of the instructions: where the place is not known

    void add(left_out const& more) {
        instructions += more.instructions;
        branches += more.branches;
        gaps += more.gaps;
        unknown += more.unknown;
    }
};
/// What an edge is between host and guest.
enum class vm_transition : std::uint8_t { none, entry, exit };

/// Takes what a walker reports, in the order of execution.
class report {
public:
    report() = default;
    report(report const&) = delete;
    auto operator=(report const&) -> report& = delete;
    virtual ~report() = default;

    [[nodiscard]] virtual auto wants() const -> wanted = 0;
    virtual void instruction(flow::executed const&) {}
    virtual void block(flow::executed_block const&) {}
    /// Instructions since the last report, the first at `ip`.
    virtual void executed(std::uint64_t /*ip*/, std::uint64_t /*count*/) {}
    virtual void edge(flow::edge const&) {}
    virtual void start(std::uint64_t /*ip*/, std::uint32_t /*space*/) {}
    virtual void stop(flow::stop const&) {}
    /// Its offset is that in the stream.
    virtual void gap(flow::gap const&) {}
    virtual void time(trace::time const&) {}
    /// The thread that executes what follows.
    virtual void thread(thread_id) {}
    /// PTWRITE.
    virtual void written(std::uint64_t /*ip*/, std::uint64_t /*payload*/) {}
    /// The symbols of a thread; nullptr: none are needed. Any thread of the tool may call it.
    [[nodiscard]] virtual auto symbols_of(thread_id) const -> traced::symbols const* {
        return nullptr;
    }
    /// The symbols of some threads changed.
    virtual void update_names() {}
    /// Writes the lines that are complete.
    virtual void flush() {}
    /// The end of the walk.
    virtual void end() {}

    tool::walk_summary found{};  ///< what was shown
    bool is_filtered = false;    ///< by --only, --vmcs or --cr3
    bool is_in_place = true;     ///< false where they do not select
    bool is_place_known = true;
    left_out others{};                 ///< what was executed there
    vm_transition transition{};        ///< the edge that is reported next
    bool is_shown = true;              ///< false outside of the times that are wanted
    std::vector<std::string> notes{};  ///< of the walk, for stderr
};

/// A direct or conditional jump.
[[nodiscard]] inline auto is_jump(flow::edge const& one) -> bool {
    using enum flow::instruction_class;
    constexpr auto bit = [](flow::instruction_class which) {
        return std::uint64_t{1} << static_cast<unsigned>(which);
    };
    constexpr auto jumps = bit(conditional) | bit(direct_jump);
    return !one.is_asynchronous && (bit(one.kind) & jumps) != 0;
}

/// The times that are shown.
struct time_window {
    std::uint64_t first = 0;
    std::uint64_t last = ~std::uint64_t{0};

    [[nodiscard]] auto contains(trace::time const& when, trace_file::conversion const& to_ns) const
        -> bool {
        if (!when.is_absolute() || when.is_guest) { return false; }
        auto const now = to_ns.is_known() ? to_ns.ns(when.tsc) : when.tsc;
        return first <= now && now <= last;
    }
};

}  // namespace reports
