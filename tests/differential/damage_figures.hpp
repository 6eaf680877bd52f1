// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <unordered_map>
#include <vector>

// Precision and recall of the instructions that a decoder reports for damaged traces.
namespace differential::damage {

/// The length of a longest common subsequence. Bit-parallel, 64 elements a word: Crochemore et al.
/// 2001.
inline auto common_instructions(std::span<std::uint64_t const> a, std::span<std::uint64_t const> b)
    -> std::size_t {
    std::size_t same = 0;
    for (; !a.empty() && !b.empty() && a.front() == b.front(); ++same) {
        a = a.subspan(1);
        b = b.subspan(1);
    }
    for (; !a.empty() && !b.empty() && a.back() == b.back(); ++same) {
        a = a.first(a.size() - 1);
        b = b.first(b.size() - 1);
    }
    std::size_t const words = b.size() / 64 + 1;
    std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> places;
    for (std::size_t i = 0; i < b.size(); ++i) {
        auto& of = places[b[i]];
        of.resize(words);
        of[i / 64] |= std::uint64_t{1} << i % 64;
    }
    std::vector<std::uint64_t> row(words, ~std::uint64_t{0});  // 0: one more is common
    for (auto const ip : a) {
        auto const found = places.find(ip);
        if (found == places.end()) { continue; }
        std::uint64_t carry = 0;
        for (std::size_t i = 0; i < words; ++i) {
            auto const hit = row[i] & found->second[i];
            auto const sum = row[i] + hit;
            auto const total = sum + carry;
            carry = sum < hit || total < carry ? 1 : 0;
            row[i] = total | (row[i] & ~found->second[i]);
        }
    }
    for (auto const word : row) { same += static_cast<std::size_t>(std::popcount(~word)); }
    return same;
}

/// The sums of one decoder over all copies.
struct figures {
    std::uint64_t reported = 0;  ///< of damaged segments
    std::uint64_t executed = 0;
    std::uint64_t common = 0;
    std::uint64_t whole = 0;  ///< segments
    std::uint64_t equal = 0;
    std::uint64_t gaps = 0;
    double max_seconds = 0;  ///< for one copy

    void add(figures const& other) {
        reported += other.reported;
        executed += other.executed;
        common += other.common;
        whole += other.whole;
        equal += other.equal;
        gaps += other.gaps;
        max_seconds = std::max(max_seconds, other.max_seconds);
    }
    [[nodiscard]] auto precision() const -> double { return share(common, reported); }
    [[nodiscard]] auto recall() const -> double { return share(common, executed); }
    static auto share(std::uint64_t part, std::uint64_t all) -> double {
        return all == 0 ? 1 : static_cast<double>(part) / static_cast<double>(all);
    }
};

struct row {
    std::uint64_t copies = 0;
    figures ours{};
    figures theirs{};
    std::uint64_t resumed = 0;   ///< gaps of ptspec that end at a known IP
    std::uint64_t occurred = 0;  ///< those at an executed IP
    std::uint64_t failures = 0;

    void add(row const& other) {
        copies += other.copies;
        ours.add(other.ours);
        theirs.add(other.theirs);
        resumed += other.resumed;
        occurred += other.occurred;
        failures += other.failures;
    }
};

inline void print_head() {
    std::printf("%-17s %6s  %17s  %17s  %24s  %18s  %11s\n", "", "", "ptspec", "libipt",
                "whole segments equal", "gaps end at", "slowest, ms");
    std::printf("%-17s %6s  %8s %8s  %8s %8s  %16s %7s  %18s  %6s %4s\n", "damage", "copies",
                "precis.", "recall", "precis.", "recall", "ptspec", "libipt", "an executed IP",
                "ptspec", "ipt");
}
inline void print(char const* name, row const& of) {
    std::printf("%-17s %6" PRIu64 "  %8.5f %8.5f  %8.5f %8.5f  %6" PRIu64 " of %6" PRIu64
                " %7" PRIu64 "  %7" PRIu64 " of %7" PRIu64 "  %6.0f %4.0f\n",
                name, of.copies, of.ours.precision(), of.ours.recall(), of.theirs.precision(),
                of.theirs.recall(), of.ours.equal, of.ours.whole, of.theirs.equal, of.occurred,
                of.resumed, of.ours.max_seconds * 1e3, of.theirs.max_seconds * 1e3);
}

}  // namespace differential::damage
