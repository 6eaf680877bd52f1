// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a walk found, and why something is not known: what tools say on stderr, so that no output is
// empty without a reason.

#include "clock_options.hpp"
#include "event_names.hpp"
#include "numbers.hpp"
#include "tool.hpp"

#include <ptspec/flow/sink.hpp>
#include <ptspec/trace/time.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

namespace tool {

/// Addresses at which a walk found no code.
class missing_code {
public:
    void add(std::uint64_t address) {
        first_ = std::min(first_, address);
        last_ = std::max(last_, address);
        if (all_.size() < most) { all_.insert(address); }
    }
    void add(missing_code const& more) {
        for (auto const address : more.all_) { add(address); }
        first_ = std::min(first_, more.first_);
        last_ = std::max(last_, more.last_);
    }
    [[nodiscard]] auto is_empty() const -> bool { return all_.empty(); }
    /// `no code for 3 addresses of the kernel from 0x1000 to 0x2000`.
    [[nodiscard]] auto text(std::string_view of) const -> std::string {
        bool const is_one = all_.size() == 1;
        std::string made{"no code for "};
        if (all_.size() == most) { made += "at least "; }
        made += std::to_string(all_.size()) + (is_one ? " address" : " addresses");
        made += of;
        made += is_one ? ": " + hex(first_) : " from " + hex(first_) + " to " + hex(last_);
        return made;
    }

private:
    static constexpr std::size_t most = 4096;

    std::set<std::uint64_t> all_{};
    std::uint64_t first_ = ~std::uint64_t{0};
    std::uint64_t last_ = 0;
};

/// What a walk found. Sums of several are the same for all of them.
struct walk_summary {
    std::uint64_t printed = 0;       ///< lines, counts or bars of what was executed
    std::uint64_t bytes = 0;         ///< of the trace
    std::uint64_t instructions = 0;  ///< in the wanted times and places
    std::uint64_t outside = 0;       ///< instructions and gaps that are not in the wanted times
    std::uint64_t elsewhere = 0;     ///< what is not in the wanted places
    bool has_psb = true;             ///< or no bytes
    bool has_time = false;           ///< the next ones are valid
    std::uint64_t first_time = ~std::uint64_t{0};  ///< TSC
    std::uint64_t last_time = 0;

    void executed(std::uint64_t count, bool is_in_time) {
        (is_in_time ? instructions : outside) += count;
    }
    void gap(ptspec::flow::gap const& one) {
        ++gaps_[ptspec::underlying(one.why)];
        if (one.why != ptspec::flow::gap_reason::missing_code) { return; }
        bool const is_kernel = one.missing >> 63 != 0;
        (is_kernel ? of_kernel_ : of_user_).add(one.missing);
    }
    void time(ptspec::trace::time const& when) {
        if (!when.is_absolute() || when.is_guest) { return; }
        has_time = true;
        first_time = std::min(first_time, when.tsc);
        last_time = std::max(last_time, when.tsc);
    }
    void add(walk_summary const& more) {
        printed += more.printed;
        bytes += more.bytes;
        instructions += more.instructions;
        outside += more.outside;
        elsewhere += more.elsewhere;
        has_psb = has_psb && more.has_psb;
        has_time = has_time || more.has_time;
        first_time = std::min(first_time, more.first_time);
        last_time = std::max(last_time, more.last_time);
        for (std::size_t i = 0; i < reasons; ++i) { gaps_[i] += more.gaps_[i]; }
        of_user_.add(more.of_user_);
        of_kernel_.add(more.of_kernel_);
    }
    [[nodiscard]] auto gaps() const -> std::uint64_t {
        std::uint64_t sum = 0;
        for (auto const one : gaps_) { sum += one; }
        return sum;
    }
    /// Whether all that was executed is known, and something was printed.
    [[nodiscard]] auto is_complete() const -> bool {
        return gaps() == 0 && has_psb && printed != 0;
    }
    /// `missing-code 3, overflow 1`, the most frequent reason first.
    [[nodiscard]] auto gaps_text() const -> std::string {
        std::size_t order[reasons];
        for (std::size_t i = 0; i < reasons; ++i) { order[i] = i; }
        std::sort(std::begin(order), std::end(order), [this](std::size_t one, std::size_t two) {
            return gaps_[one] != gaps_[two] ? gaps_[one] > gaps_[two] : one < two;
        });
        std::string made;
        for (auto const i : order) {
            if (gaps_[i] == 0) { continue; }
            made += made.empty() ? "" : ", ";
            made += events::name_of_gap(static_cast<ptspec::flow::gap_reason>(i));
            made += ' ' + std::to_string(gaps_[i]);
        }
        return made;
    }
    [[nodiscard]] auto code_of_user() const -> missing_code const& { return of_user_; }
    [[nodiscard]] auto code_of_kernel() const -> missing_code const& { return of_kernel_; }

private:
    static constexpr std::size_t reasons = ptspec::underlying(ptspec::flow::gap_reason::no_time) +
                                           1;

    std::uint64_t gaps_[reasons] = {};
    missing_code of_user_{};
    missing_code of_kernel_{};
};

/// What a command line asks of a walk.
struct walk_request {
    std::string what{"instructions"};  ///< what is printed
    bool has_bytes = false;            ///< --from or --to
    trace_file::conversion to_ns{};    ///< of the times
    std::string user_code{};           ///< what helps where code is missing
    std::string kernel_code{};         ///< the same for the kernel; empty: the same
    bool is_quiet = false;             ///< without counts of gaps
};

namespace detail {

/// A time in seconds or ticks, as --time takes it.
inline auto time_text(std::uint64_t tsc, trace_file::conversion const& to_ns) -> std::string {
    if (!to_ns.is_known()) { return std::to_string(tsc); }
    constexpr std::uint64_t second = 1'000'000'000;
    auto const ns = to_ns.ns(tsc);
    return std::to_string(ns / second) + '.' + std::to_string(second + ns % second).substr(1);
}
/// Why nothing was printed.
inline auto why_nothing(walk_summary const& of, walk_request const& asked) -> std::string {
    auto const instructions = [](std::uint64_t count) {
        return std::to_string(count) + (count == 1 ? " instruction" : " instructions");
    };
    if (of.bytes == 0) {
        return asked.has_bytes ? "no bytes in the range of --from and --to"
                               : "the trace has no bytes";
    }
    if (of.instructions != 0) { return "none in " + instructions(of.instructions); }
    if (asked.has_bytes && of.outside != 0) { return "nothing in the range of --from and --to"; }
    if (of.outside != 0) {
        std::string const text{"nothing in the range of --time: "};
        if (!of.has_time) { return text + "no time is known"; }
        return text + "the times of the trace are from " + time_text(of.first_time, asked.to_ns) +
               " to " + time_text(of.last_time, asked.to_ns);
    }
    if (of.elsewhere != 0) {
        return "nothing where --only, --vmcs and --cr3 select, but " +
               std::to_string(of.elsewhere) + " elsewhere";
    }
    if (of.gaps() != 0) { return "only gaps: " + of.gaps_text(); }
    return "tracing is off in all " + std::to_string(of.bytes) + " bytes";
}

}  // namespace detail

/// Says on stderr where code is missing, how many gaps there are, and why nothing was printed. That
/// there is no PSB is already said.
inline void print_summary(walk_summary const& of, walk_request const& asked) {
    bool const is_nothing = of.printed == 0;
    if (is_nothing || !asked.is_quiet) {
        auto const say = [](missing_code const& code, char const* where, std::string const& how) {
            if (!code.is_empty()) {
                print_error(code.text(where) + (how.empty() ? "" : "; " + how));
            }
        };
        bool const has_kernel = !asked.kernel_code.empty();
        auto all = of.code_of_user();
        if (!has_kernel) { all.add(of.code_of_kernel()); }
        say(all, "", asked.user_code);
        if (has_kernel) { say(of.code_of_kernel(), " of the kernel", asked.kernel_code); }
        if (!is_nothing && of.gaps() != 0) { print_error("gaps: " + of.gaps_text()); }
    }
    bool const is_said = !of.has_psb && of.instructions + of.outside + of.elsewhere == 0;
    if (is_nothing && !is_said) {
        print_error("no " + asked.what + ": " + detail::why_nothing(of, asked));
    }
}

}  // namespace tool
