// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/print/text.hpp>
#include <ptspec/suite/detail/kind_search.hpp>
#include <ptspec/suite/report.hpp>

/// Finds the row of options by which the model generates the bytes of a target.
namespace ptspec::suite {

/// The row of options of a target, by its traces. It is a row for this target only if `is_whole`.
struct observed_kind {
    engine::model_kind nearest{};  ///< the kind that differs from it in the fewest options
    engine::model_options
        options{};              ///< those that are not `seen` are as the nearest kind has them
    option_set seen{};          ///< the options whose value changes the bytes of these traces
    option_set undetermined{};  ///< the options for which every value makes other bytes
    unsigned traces = 0;        ///< that the target made
    unsigned differing = 0;     ///< traces in which the model has other bytes
    finding problem{};          ///< not `holds`: why traces are missing

    /// True if the model with these options has all bytes of all traces.
    [[nodiscard]] constexpr auto is_whole() const noexcept -> bool {
        return traces != 0 && differing == 0 && undetermined.empty() &&
               problem.what == outcome::holds;
    }
};

/// Finds the row of options by which the model generates the bytes of a target. Stages find a few
/// options each, by the traces that depend on them; at last all bytes of all traces are compared.
///
/// Units:  about 10 ms, and 40 KB of stack. The target makes about 100 traces.
/// Errors: `problem`, if the target does not trace, or breaks a rule.
/// Source: GEN-009..012.
template <target T>
[[nodiscard]] constexpr auto observe_kind(T& it, cpu::capabilities const& caps) noexcept
    -> observed_kind {
    detail::target_traces const seen{it, caps};
    auto const by_model = engine::model_kind_of(caps);
    observed_kind found{.nearest = by_model,
                        .options = engine::options_of(caps),
                        .traces = seen.count(),
                        .problem = seen.problem()};
    if (found.traces == 0) { return found; }
    detail::kind_search search{seen, found.options};
    search.run();
    found.undetermined = search.undetermined();
    found.seen = search.visible();
    found.differing = search.differing();
    auto row = search.row();
    if (seen.lag_is_known()) {
        row.msrs_lag = seen.lags();
        found.seen.add("msrs_lag");
    }
    // The nearest kind, and what is not seen as it has it, unless bytes change together.
    unsigned least = ~0U;
    auto nearest = row;
    for (unsigned i = 0; i <= engine::model_kind_count; ++i) {
        auto const kind = i == 0 ? by_model : engine::model_kinds[i - 1].which;
        auto options = engine::options_of(caps, kind);
        unsigned differences = 0;
        engine::for_each_option(row, [&](text name, auto const& member, uint64_t, uint64_t) {
            if (!found.seen.has(name)) { return; }
            auto const value = static_cast<uint64_t>(member);
            differences += detail::value_of(options, name).value != value;
            detail::set_value(options, name, value);
        });
        if (differences >= least) { continue; }
        least = differences;
        found.nearest = kind;
        nearest = options;
    }
    search.set_row(nearest);
    found.options = search.differing() == found.differing ? nearest : row;
    return found;
}

/// Prints the row, such as `skylake` or `skylake,pads=0,psb_step=64`: the nearest kind, and the
/// options that differ from it, in decimal.
template <class Sink>
constexpr void print_row(engine::model_kind nearest, engine::model_options const& options,
                         Sink&& out) {
    print::put(engine::info_of(nearest).name, out);
    engine::for_each_option(options, [&](text name, auto const& member, uint64_t, uint64_t) {
        auto const value = static_cast<uint64_t>(member);
        if (detail::value_of(engine::options_of(nearest), name).value == value) { return; }
        print::put(",", out);
        print::put(name, out);
        print::put("=", out);
        print::decimal(value, out);
    });
}

/// A row that was read.
struct read_row_result {
    bool is_valid = false;
    engine::model_kind nearest{};
    engine::model_options options{};
    text wrong{};  ///< the piece that is no kind, or no option with a valid value
};
/// Reads a row as `print_row` prints it.
[[nodiscard]] constexpr auto read_row(text row) noexcept -> read_row_result {
    read_row_result read{};
    size_t at = 0;
    auto const up_to = [&](char end, text from, size_t first) {
        size_t count = 0;
        while (first + count < from.size() && from.data()[first + count] != end) { ++count; }
        return text{from.data() + first, count};
    };
    read.wrong = up_to(',', row, at);
    for (auto const& kind : engine::model_kinds) {
        if (kind.name != read.wrong) { continue; }
        read.is_valid = true;
        read.nearest = kind.which;
        read.options = kind.options;
    }
    for (at += read.wrong.size(); read.is_valid && at < row.size(); at += read.wrong.size()) {
        read.wrong = up_to(',', row, ++at);
        auto const name = up_to('=', read.wrong, 0);
        uint64_t value = 0;
        read.is_valid = name.size() + 1 < read.wrong.size();
        for (size_t i = name.size() + 1; i < read.wrong.size(); ++i) {
            char const digit = read.wrong.data()[i];
            bool const fits = digit >= '0' && digit <= '9' && value <= (~uint64_t{0} - 9) / 10;
            read.is_valid = read.is_valid && fits;
            value = value * 10 + static_cast<unsigned char>(digit - '0');
        }
        read.is_valid = read.is_valid && engine::set_option(read.options, name, value);
    }
    return read;
}

/// Prints the names of options, each after a space.
template <class Sink>
constexpr void print_options(option_set const& set, Sink&& out) {
    engine::for_each_option(option_set::names, [&](text name, auto const&, uint64_t, uint64_t) {
        if (!set.has(name)) { return; }
        print::put(" ", out);
        print::put(name, out);
    });
}

/// Prints what is found: the row in a line of its own only if it has all bytes; else comments.
/// `before_row` begins the line of the row.
template <class Sink>
constexpr void print_observed(observed_kind const& found, Sink&& out, text before_row = {}) {
    if (found.traces == 0) {
        print::put("# no row: no trace was made: ", out);
        print_why(found.problem, out);
        print::put("\n", out);
        return;
    }
    print::put(found.is_whole() ? before_row : text{"# no row; the most similar one is "}, out);
    print_row(found.nearest, found.options, out);
    print::put("\n# ", out);
    print::decimal(found.traces, out);
    print::put(" traces; in ", out);
    print::decimal(found.differing, out);
    print::put(" the model has other bytes", out);
    if (found.problem.what != outcome::holds) {
        print::put("\n# not all traces were made: ", out);
        print_why(found.problem, out);
    }
    if (!found.undetermined.empty()) {
        print::put("\n# no value has their bytes:", out);
        print_options(found.undetermined, out);
    }
    option_set unseen;
    engine::for_each_option(option_set::names, [&](text name, auto const&, uint64_t, uint64_t) {
        if (!found.seen.has(name) && !found.undetermined.has(name)) { unseen.add(name); }
    });
    print::put("\n# not seen in these traces, so as ", out);
    print::put(engine::info_of(found.nearest).name, out);
    print::put(" has them:", out);
    print_options(unseen, out);
    print::put("\n", out);
}

}  // namespace ptspec::suite
