// SPDX-License-Identifier: BSL-1.0
#pragma once

// The findings on several processors as those of their core types.

#include "linux_processors.hpp"
#include "report.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pt_suite {

/// The core type by CPUID.1AH:EAX[31:24], as Linux names it; empty if the leaf is 0.
inline auto core_type_of(std::uint32_t eax) -> std::string {
    switch (eax >> 24) {
        case 0: return {};
        case 0x20: return "atom";
        case 0x40: return "core";
        default: return "core type " + hex(eax >> 24);
    }
}

/// What the checks found on a processor.
struct processor_results {
    unsigned cpu = 0;
    std::string core_type{};
    std::vector<result> results{};
};

namespace detail {

/// The outcomes and the processors that have each.
inline auto list_outcomes(std::vector<std::pair<unsigned, result const*>> const& all)
    -> std::string {
    std::vector<std::pair<std::string, std::vector<unsigned>>> groups;
    for (auto const& [cpu, one] : all) {
        auto text = one->outcome() + ' ' + one->id();
        if (one->found.is_broken()) { text += ' ' + why(*one); }
        auto const group = std::find_if(groups.begin(), groups.end(),
                                        [&](auto const& it) { return it.first == text; });
        if (group != groups.end()) {
            group->second.push_back(cpu);
        } else {
            groups.push_back({std::move(text), {cpu}});
        }
    }
    std::string made;
    for (auto const& [text, cpus] : groups) {
        made += (made.empty() ? "cpu " : "; cpu ") + list_of(cpus) + ": " + text;
    }
    return made;
}

}  // namespace detail

/// One result for each check and core type: that of its processors, or one that says how they
/// differ. A check that not all of them have, because the run ended early, counts where it ran.
inline auto by_core_type(std::vector<processor_results> const& all) -> std::vector<result> {
    std::vector<std::string> types;
    std::size_t most = 0;
    for (auto const& one : all) {
        if (std::find(types.begin(), types.end(), one.core_type) == types.end()) {
            types.push_back(one.core_type);
        }
        most = std::max(most, one.results.size());
    }
    std::vector<result> made;
    for (auto const& type : types) {
        for (std::size_t i = 0; i < most; ++i) {
            std::vector<std::pair<unsigned, result const*>> same;
            for (auto const& one : all) {
                if (one.core_type == type && i < one.results.size()) {
                    same.push_back({one.cpu, &one.results[i]});
                }
            }
            if (same.empty()) { continue; }
            result merged = *same[0].second;
            for (auto const& [cpu, one] : same) {
                bool const is_alike = one->found.what == merged.found.what &&
                                      one->id() == merged.id();
                merged.differs |= !is_alike;
                if (merged.found.what == suite::outcome::observed &&
                    one->found.seen != merged.found.seen) {
                    merged.more = "differs between processors";
                }
            }
            if (merged.differs) {
                merged.found = {};
                merged.more = detail::list_outcomes(same);
            }
            if (types.size() > 1) { merged.core_type = type.empty() ? "no core type" : type; }
            made.push_back(std::move(merged));
        }
    }
    return made;
}

}  // namespace pt_suite
