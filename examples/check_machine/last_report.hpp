// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/report.hpp>

/// What the report of the last run says of a check.
namespace check_machine {

using namespace ptspec;

/// The position of a text in another; its size if it is not there.
[[nodiscard]] constexpr auto find(text in, text what, size_t from = 0) -> size_t {
    for (size_t at = from; at + what.size() <= in.size(); ++at) {
        if (text{in.data() + at, what.size()} == what) { return at; }
    }
    return in.size();
}

/// True if the machine hung during a check: the report names it, and has no line of its outcome, or
/// the check was left out in that run, too.
[[nodiscard]] constexpr auto hung(text report, text check) -> bool {
    char room[128] = {};
    auto const with = [&](text before, text after) {
        print::text_buffer made{room};
        made(before);
        made(check);
        made(after);
        return find(report, made.written());
    };
    size_t const outcome = with(" - ", " ");
    if (outcome == report.size()) {
        return with(suite::check_names::prefix, "\n") != report.size();
    }
    size_t const end = find(report, "\n", outcome);
    return find({report.data() + outcome, end - outcome}, suite::did_not_end) != end - outcome;
}

}  // namespace check_machine
