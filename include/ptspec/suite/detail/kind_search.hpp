// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/model_kind.hpp>
#include <ptspec/suite/detail/kind_traces.hpp>
#include <ptspec/base/attribute.hpp>

namespace ptspec::suite {

/// A set of options of the model, by their numbers in `engine::for_each_option`.
struct option_set {
    uint64_t bits = 0;

    /// The number of an option; 63: there is none.
    [[nodiscard]] static constexpr auto number_of(text name) noexcept -> unsigned {
        unsigned found = 63;
        unsigned number = 0;
        engine::for_each_option(names, [&](text one, auto const&, uint64_t, uint64_t) {
            if (one == name) { found = number; }
            ++number;
        });
        return found;
    }
    constexpr void add(text name) noexcept { bits |= uint64_t{1} << number_of(name); }
    [[nodiscard]] constexpr auto has(text name) const noexcept -> bool {
        return (bits >> number_of(name) & 1) != 0;
    }
    [[nodiscard]] constexpr auto empty() const noexcept -> bool { return bits == 0; }

    static constexpr engine::model_options names{};
};

}  // namespace ptspec::suite

/// Finds the options of the model whose bytes a target has.
namespace ptspec::suite::detail {

/// An experiment: traces whose bytes depend on these options, and else on options of stages before.
struct kind_stage {
    static constexpr unsigned max_options = 6;

    shown_by by{};
    text options[max_options] = {};

    /// True if all bytes are compared, of the traces before, too. False: PADs are left out.
    [[nodiscard]] constexpr auto compares_all() const noexcept -> bool {
        return by == shown_by::all_packets || by == shown_by::all;
    }
    [[nodiscard]] constexpr auto with_pads() const noexcept -> bool {
        return by >= shown_by::all_packets;
    }
    [[nodiscard]] constexpr auto has(kind_trace const& one) const noexcept -> bool {
        return compares_all() ? one.shows <= by : one.shows == by;
    }
};

/// The stages, in the order of `shown_by`. The last one has no options: it compares all bytes.
inline constexpr kind_stage kind_stages[] = {
    {shown_by::enabling,
     {"ips", "in_psb", "has_tsx", "psb_after_pge", "psb_before_pge", "psb_of_enable_has_fup"}},
    {shown_by::conditionals, {"tnt_capacity"}},
    {shown_by::indirect_jumps, {"defers_tips"}},
    {shown_by::returns, {"on_ret_mismatch"}},
    {shown_by::mov_cr3, {"pip_for_same_cr3", "mov_cr3_stops_at_next"}},
    {shown_by::enabling_again, {"psb_on_every_enable"}},
    {shown_by::all_packets, {"end_alignment", "pads"}},
    {shown_by::psbs, {"psb_keeps_remainder", "psb_counts_itself", "psb_step", "in_psb"}},
    {shown_by::cycles, {"cycle_counter_bits"}},
    {shown_by::all},
};
inline constexpr unsigned kind_stage_count = sizeof kind_stages / sizeof kind_stages[0];

/// The value of an option, and its limits.
struct option_value {
    uint64_t value = 0;
    uint64_t least = 0;
    uint64_t most = 0;
};
[[nodiscard]] constexpr auto value_of(engine::model_options const& options, text name) noexcept
    -> option_value {
    option_value found{};
    engine::for_each_option(options,
                            [&](text one, auto const& member, uint64_t least, uint64_t most) {
                                if (one == name) {
                                    found = {static_cast<uint64_t>(member), least, most};
                                }
                            });
    return found;
}
constexpr void set_value(engine::model_options& options, text name, uint64_t value) noexcept {
    (void)engine::set_option(options, name, value);
}

/// A search for the row of options whose model makes the traces of a target, in depth: each stage
/// takes the values whose bytes are equal, in turn, until the later stages find theirs, too.
class kind_search {
public:
    constexpr kind_search(target_traces const& seen, engine::model_options const& first) noexcept
        : seen_{seen}, row_{first} {}

    /// Finds the row. Where a stage has no values, the most similar ones stay, and its options are
    /// `undetermined`.
    constexpr void run() noexcept {
        for (unsigned first = 0; first < kind_stage_count;) {
            left_ = max_runs;
            places_left_ = max_places;
            best_stage_ = first;
            best_runs_ = 0;
            best_ = row_;
            if (solve(first)) { return; }
            row_ = best_;
            for (text const name : kind_stages[best_stage_].options) {
                if (name.size() != 0) { undetermined_.add(name); }
            }
            first = best_stage_ + 1;
        }
    }
    [[nodiscard]] constexpr auto row() const noexcept -> engine::model_options const& {
        return row_;
    }
    constexpr void set_row(engine::model_options const& row) noexcept { row_ = row; }
    [[nodiscard]] constexpr auto undetermined() const noexcept -> option_set {
        return undetermined_;
    }
    /// The options whose value shows in the traces: another value changes their bytes.
    [[nodiscard]] constexpr auto visible() noexcept -> option_set {
        option_set found;
        for (auto const& stage : kind_stages) {
            if (!agrees(stage)) { continue; }
            for (text const name : stage.options) {
                if (name.size() != 0 && is_visible(stage, name)) { found.add(name); }
            }
        }
        return found;
    }
    /// The number of traces in which the model does not make the bytes of the target.
    [[nodiscard]] constexpr auto differing() noexcept -> unsigned {
        unsigned count = 0;
        for (unsigned i = 0; i < kind_trace_count; ++i) {
            count += seen_[i].is_made && runs_of(i, compared_by::bytes) != kind_traces[i].runs;
        }
        return count;
    }

private:
    /// The most runs of models between two options that are given up.
    static constexpr unsigned max_runs = 60'000;
    /// The most places of PSBs that are compared with steps between them.
    static constexpr unsigned max_places = 10'000'000;
    static constexpr unsigned max_step = 8192;
    /// The most bytes of deferred TIPs, and of the packets of disabling and enabling.
    static constexpr unsigned max_deferred = 128;
    static constexpr unsigned max_of_enable = kind_trace::bytes_of_enable;

    // noinline: a model needs much stack, which the recursion must not have many times.
    PTSPEC_ATTRIBUTE(noinline)
    constexpr auto runs_of(unsigned trace, compared_by what) const noexcept -> unsigned {
        return seen_.agreeing_runs(trace, row_, what);
    }
    [[nodiscard]] constexpr auto agrees(kind_stage const& stage) noexcept -> bool {
        return agreeing(stage).is_whole;
    }
    struct agreement {
        bool is_whole = true;
        unsigned runs = 0;
    };
    [[nodiscard]] constexpr auto agreeing(kind_stage const& stage) noexcept -> agreement {
        agreement found;
        auto const what = !stage.with_pads()                           ? compared_by::packets
                          : stage.by == shown_by::psbs && with_counts_ ? compared_by::counts
                                                                       : compared_by::bytes;
        // The last one first: of the traces of PSBs it tells most steps apart.
        for (unsigned i = kind_trace_count; i-- != 0 && found.is_whole;) {
            if (!seen_[i].is_made || !stage.has(kind_traces[i])) { continue; }
            unsigned const runs = runs_of(i, what);
            left_ -= left_ > runs ? runs + 1 : left_;
            found.runs += runs;
            found.is_whole = runs == kind_traces[i].runs;
        }
        return found;
    }
    [[nodiscard]] constexpr auto has_traces(kind_stage const& stage) const noexcept -> bool {
        for (unsigned i = 0; i < kind_trace_count; ++i) {
            if (seen_[i].is_made && stage.has(kind_traces[i])) { return true; }
        }
        return false;
    }

    /// Solves a stage and those after it.
    [[nodiscard]] constexpr auto solve(unsigned stage) noexcept -> bool {
        if (stage == kind_stage_count) { return true; }
        if (!has_traces(kind_stages[stage])) { return solve(stage + 1); }
        if (kind_stages[stage].by != shown_by::psbs) { return try_values(stage, 0); }
        // It is not known that PacketByteCnt of processors whose PSBs come at steps is the model's.
        for (bool const with_counts : few{true, false}) {
            for (auto const how : few{steps::likely, steps::all}) {
                tried_ = how;
                with_counts_ = with_counts;
                // Each way may take half of what is left.
                unsigned const runs = left_ / 2;
                unsigned const places = places_left_ / 2;
                left_ -= runs;
                places_left_ -= places;
                if (try_values(stage, 0)) { return true; }
                left_ += runs;
                places_left_ += places;
            }
        }
        return false;
    }
    /// Tries the values of an option of a stage, the current one first, and of those after it.
    [[nodiscard]] constexpr auto try_values(unsigned number, unsigned option) noexcept -> bool {
        auto const& stage = kind_stages[number];
        bool const is_last = option == kind_stage::max_options || stage.options[option].size() == 0;
        if (is_last) { return take(number); }
        auto const name = stage.options[option];
        if (name == "psb_step") { return try_steps(number, option); }
        auto const old = value_of(row_, name);
        if (may_be(name, old.value) && try_values(number, option + 1)) { return true; }
        // 0, then the highest first: a divisor of `end_alignment` may have the same bytes.
        for (uint64_t i = 0; i <= old.most - old.least && left_ != 0; ++i) {
            uint64_t const value = i == 0 ? old.least : old.most - i + 1;
            if (value == old.value || !may_be(name, value)) { continue; }
            set_value(row_, name, value);
            if (try_values(number, option + 1)) { return true; }
        }
        set_value(row_, name, old.value);
        return false;
    }
    /// Takes the row for a stage if the bytes are equal, and solves the stages after it.
    [[nodiscard]] constexpr auto take(unsigned number) noexcept -> bool {
        if (left_ == 0) { return false; }
        auto const found = agreeing(kind_stages[number]);
        if (number > best_stage_ || (number == best_stage_ && found.runs > best_runs_)) {
            best_stage_ = number;
            best_runs_ = found.runs;
            best_ = row_;
        }
        return found.is_whole && solve(number + 1);
    }
    [[nodiscard]] constexpr auto may_be(text name, uint64_t value) const noexcept -> bool {
        return name != "end_alignment" || value == 0 ||
               (value != 1 && seen_.divisor_of_sizes() % value == 0);
    }

    // ------------------------------------------------------------------ PSBs at steps

    /// Which steps are tried: likely ones or the others.
    enum class steps : uint8_t { likely, all };

    [[nodiscard]] constexpr auto try_steps(unsigned number, unsigned option) noexcept -> bool {
        auto const old = row_;
        for (unsigned step = 1; step <= max_step && left_ != 0 && places_left_ != 0; ++step) {
            if (is_likely(step) == (tried_ == steps::all)) { continue; }
            row_.psb_step = static_cast<uint16_t>(step);
            if (step_fits() && try_values(number, option + 1)) { return true; }
        }
        row_ = old;
        return false;
    }
    /// True for the steps of the kinds, and powers of two.
    [[nodiscard]] static constexpr auto is_likely(uint64_t step) noexcept -> bool {
        for (auto const& kind : engine::model_kinds) {
            if (kind.options.psb_step == step) { return true; }
        }
        return (step & (step - 1)) == 0;
    }
    /// False if a PSB comes elsewhere than at its step. A PSB near the beginning of a run may be of
    /// its enabling: its place is not compared.
    [[nodiscard]] constexpr auto step_fits() noexcept -> bool {
        for (unsigned i = 0; i < kind_trace_count; ++i) {
            bool const has_psbs = kind_traces[i].has_psbs() && seen_[i].is_made;
            if (has_psbs && !step_fits(kind_traces[i], seen_[i])) { return false; }
        }
        return true;
    }
    [[nodiscard]] constexpr auto step_fits(kind_trace const& asked,
                                           target_traces::made const& trace) noexcept -> bool {
        auto const& options = row_;
        bool const is_enabled = asked.how != traced_with::no_context;
        uint64_t const step = options.psb_step;
        uint64_t const period = uint64_t{2048} << asked.psb_freq;
        uint64_t const deferred = options.defers_tips ? max_deferred : 0;
        uint64_t const at_end = is_enabled ? max_of_enable + options.end_alignment : 0;
        for (unsigned i = 0; i < asked.runs; ++i) {
            if (places_left_ == 0) { return false; }
            --places_left_;
            auto const& run = seen_.run_of(trace, i);
            // Bytes are counted from the beginning of the run.
            uint64_t const count = asked.sets_count ? asked.count_before(i)
                                   : i == 0         ? 0
                                                    : seen_.run_of(trace, i - 1).count;
            auto from = -static_cast<int64_t>(count);  // the period began
            auto const due = [&] {
                uint64_t const over = (static_cast<uint64_t>(from) + period) % step;
                return from + static_cast<int64_t>(period + (over != 0 ? step - over : 0));
            };
            for (unsigned k = 0; k < run.psb_count; ++k) {
                auto const& psb = seen_.psb(run.first_psb + k);
                bool const is_late = is_enabled &&
                                     due() + static_cast<int64_t>(deferred) <= psb.not_due;
                if (!psb.is_of_enable && (due() > psb.begin || is_late)) { return false; }
                auto const since = static_cast<uint64_t>(psb.begin - from);
                bool const keeps = options.psb_keeps_remainder && since >= period &&
                                   since < 2 * period;
                from = keeps                       ? from + static_cast<int64_t>(period)
                       : options.psb_counts_itself ? psb.begin
                                                   : psb.end;
            }
            auto const last = static_cast<int64_t>(is_enabled ? run.size : 0);
            if (due() + static_cast<int64_t>(at_end) <= last) { return false; }
        }
        return true;
    }

    // ------------------------------------------------------------------ what is seen

    /// True if other bytes come with another value: of a number, with one near it.
    [[nodiscard]] constexpr auto is_visible(kind_stage const& stage, text name) noexcept -> bool {
        constexpr uint64_t few_values = 8;
        auto const kept = row_;
        auto const old = value_of(row_, name);
        bool const is_number = old.most - old.least > few_values;
        bool is_seen = false;
        auto const look = [&](uint64_t value) {
            if (is_seen || value == old.value || value < old.least || value > old.most) { return; }
            set_value(row_, name, value);
            is_seen = !agrees(stage);
            row_ = kept;
        };
        if (is_number) {
            look(old.value - 1);
            look(old.value + 1);
            look(old.value + 2);  // an alignment to 1 is one to 0
        } else {
            for (uint64_t value = old.least; value <= old.most; ++value) { look(value); }
        }
        return is_seen;
    }

    target_traces const& seen_;
    steps tried_ = steps::likely;
    bool with_counts_ = true;
    engine::model_options row_;
    option_set undetermined_{};
    unsigned left_ = 0;  ///< runs of models
    unsigned places_left_ = 0;
    unsigned best_stage_ = 0;
    unsigned best_runs_ = 0;
    engine::model_options best_{};
};

}  // namespace ptspec::suite::detail

#undef PTSPEC_ATTRIBUTE
