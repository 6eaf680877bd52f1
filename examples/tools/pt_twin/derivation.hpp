// SPDX-License-Identifier: BSL-1.0
#pragma once

// The answers to what packets do not say, with which a machine writes the bytes of a trace.

#include "twin.hpp"

#include <deque>
#include <map>

namespace pt_twin {

/// Runs a twin by evidence, and goes back to questions with other answers where the bytes that it
/// writes are not those of the trace.
class derivation {
public:
    struct options {
        bool revises = true;          // goes back
        std::uint32_t forgotten = 0;  // questions, a bit each, whose answer is always no: for tests
    };

    derivation(recording const& from, byte_view real, configuration const& with,
               std::string_view kind_name, machine& on, std::string* script, options const& how)
        : from_{from}, real_{real}, how_{how}, twin_{from, with,   kind_name,
                                                     on,   script, how.forgotten} {
        if (!from.ends_in_damage) { return; }
        auto last = from.all.size();  // the last segment is not known completely
        while (last != 0 && !from.all[last - 1].is(kind::psb)) { --last; }
        real_ = real.first(
            last == 0 ? 0 : static_cast<std::size_t>(from.all[last - 1].offset - from.begin));
        is_cut_ = true;
    }

    /// Returns the index of the packet at the first difference; the number of packets if there is
    /// none.
    auto run() -> std::size_t {
        auto steps = path{};
        std::size_t i = 0;
        std::uint64_t budget = max_trials + 20 * from_.all.size();
        for (;;) {
            auto const reached = advance(i, from_.all.size(), steps);
            if (!reached.differs) { return from_.all.size(); }
            bool const goes_on = how_.revises && revise(steps, reached, budget);
            // Trials wrote over the bytes.
            if (!steps.empty()) {
                path unused;
                i = goes_on ? steps.back().i : from_.all.size();
                (void)attempt(steps.front(), 0, i, unused);
            }
            if (!goes_on) { return packet_at(reached.at); }
            steps.pop_back();
        }
    }
    [[nodiscard]] auto result() const -> twin const& { return twin_; }
    /// What the twin has written from the first PSB on.
    [[nodiscard]] auto bytes() const -> byte_view {
        auto const all = twin_.bytes();
        return all.size() < lead_ ? byte_view{} : all.from(lead_);
    }

private:
    /// A step with questions, and the state before it.
    struct choice_step {
        std::size_t i = 0;
        unsigned asked = 0;
        bool is_kept = false;  // longer than others
        std::size_t checked = 0;
        twin::moment before{};
    };
    using path = std::deque<choice_step>;
    static constexpr std::size_t max_steps = 60;  // to go back over
    static constexpr std::size_t max_kept = 12;
    static constexpr std::size_t max_waiting = 24;
    static constexpr std::uint64_t max_trials = 20'000;  // steps, for a difference
    static constexpr std::size_t ahead = 64;             // packets after a difference, to be sure

    struct progress {
        bool differs = false;
        std::size_t at = 0;    // in `real_`, of the difference
        std::size_t next = 0;  // the packet after the last step
    };

    /// Runs steps from `i` up to `until` or a difference.
    auto advance(std::size_t i, std::size_t until, path& steps) -> progress {
        while (i < until) {
            choice_step now{i, 0, false, checked_, twin_.save()};
            auto const found = others_.find(i);
            before_last_ = bytes().size();
            i = twin_.step(i, found == others_.end() ? 0 : found->second);
            ++used_;
            now.asked = twin_.asked();
            now.is_kept = twin_.asked_of_os();
            if (now.asked != 0) {
                steps.push_back(std::move(now));
                if (steps.size() > max_steps) { forget_one(steps); }
            }
            if (now.i == 0) { find_psb(); }
            if (is_different(false)) {
                return {!(i == from_.all.size() && is_cut_off()), checked_, i};
            }
            if (has_stopped(i)) { return {true, checked_, i}; }
        }
        if (until < from_.all.size()) { return {false, checked_, i}; }
        twin_.end();
        return {is_different(true), checked_, i};
    }
    /// The status of the first PSB+ may take packets before it.
    void find_psb() {
        auto const made = twin_.bytes();
        for (lead_ = 0; lead_ + 1 < made.size(); ++lead_) {
            if (made[lead_] == 0x02 && made[lead_ + 1] == 0x82) { return; }
        }
        lead_ = 0;
    }
    /// Drops the first step that is not kept, or the first if many are.
    static void forget_one(path& steps) {
        std::size_t kept = 0;
        while (kept != max_kept && steps[kept].is_kept) { ++kept; }
        if (kept == max_kept) { kept = 0; }
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(kept));
    }
    /// Compares the bytes that are new.
    auto is_different(bool at_end) -> bool {
        auto const made = bytes();
        std::size_t const both = std::min(made.size(), real_.size());
        while (checked_ < both && made[checked_] == real_[checked_]) { ++checked_; }
        if (checked_ < both) { return true; }
        return at_end && (is_cut_ ? checked_ != real_.size() : !ends_alike(made.size()));
    }
    /// True if many packets before this one are not in the bytes: branches wait for others, and no
    /// other packet for long.
    [[nodiscard]] auto has_stopped(std::size_t i) const -> bool {
        if (checked_ == real_.size()) { return false; }
        std::size_t waiting = 0;
        for (std::size_t k = packet_at(checked_); k < i && waiting != max_waiting; ++k) {
            auto const& one = from_.all[k];
            waiting += !one.is(kind::tnt_short) && !one.is(kind::tnt_long) ? 1 : 0;
        }
        return waiting == max_waiting;
    }
    /// True if a twin of this size, which is equal so far, ends as the trace does: of the last
    /// action some packets are not stored, and of a packet only its PADs.
    [[nodiscard]] auto ends_alike(std::size_t size) const -> bool {
        if (checked_ == real_.size()) { return before_last_ <= checked_; }
        bool const is_pads = real_.size() - checked_ < 16 && only_zeros_follow();
        return checked_ == size && is_pads &&
               (twin_.is_tracing() || (from_.alignment + from_.end - from_.begin) % 16 != 0);
    }
    /// True if the difference, after the last step, is where the trace was cut off: packets of the
    /// last action are stored, and in place of the others zeros, which nothing was written over.
    [[nodiscard]] auto is_cut_off() const -> bool {
        std::uint64_t const stored = from_.all.back().end - from_.begin;
        return !is_cut_ && before_last_ < stored && stored <= checked_ && only_zeros_follow();
    }
    [[nodiscard]] auto only_zeros_follow() const -> bool {
        return std::all_of(real_.data() + checked_, real_.data() + real_.size(),
                           [](std::uint8_t byte) { return byte == 0; });
    }
    [[nodiscard]] auto packet_at(std::size_t at) const -> std::size_t {
        auto const after = std::partition_point(
            from_.all.begin(), from_.all.end(),
            [&](seen const& one) { return one.offset - from_.begin <= at; });
        return static_cast<std::size_t>(after - from_.all.begin()) - 1;
    }

    /// Other answers in a step, and in a later one, and how far the bytes are then equal.
    struct trial {
        std::size_t step = 0;
        std::uint32_t others = 0;
        std::size_t at = 0;
        std::size_t later = 0;  // index of the packet
        std::uint32_t others_later = 0;
    };
    /// What a difference is tried with.
    struct search {
        std::size_t at = 0;     // the difference
        std::size_t until = 0;  // the packet up to which steps run
        std::uint64_t most = 0;
        std::vector<trial> found{};
        bool is_done = false;  // the last one has no difference
    };
    /// Finds other answers in the last steps with which the bytes are equal beyond a difference,
    /// and keeps the steps up to the first of them. False if there are none.
    auto revise(path& steps, progress const& reached, std::uint64_t& left) -> bool {
        search now{reached.at, std::min(reached.next + ahead, from_.all.size()),
                   std::min(left, max_trials)};
        used_ = 0;
        try_one(steps, now);
        if (!now.is_done) { try_two(steps, now); }
        if (!now.is_done) { try_two_in_one_step(steps, now); }
        left -= std::min(left, used_);
        auto const best = std::max_element(
            now.found.begin(), now.found.end(),
            [](trial const& a, trial const& b) { return a.at < b.at; });
        if (best == now.found.end() || best->at <= now.at) { return false; }
        others_[steps[best->step].i] ^= best->others;
        if (best->others_later != 0) { others_[best->later] ^= best->others_later; }
        steps.resize(best->step + 1);
        return true;
    }
    /// Another answer in each step, the last ones first.
    void try_one(path const& steps, search& now) {
        for (std::size_t n = steps.size(); n-- != 0;) {
            for (unsigned a = 0; a < steps[n].asked; ++a) {
                if (!try_with(steps, n, std::uint32_t{1} << a, now)) { return; }
            }
        }
    }
    void try_two_in_one_step(path const& steps, search& now) {
        for (std::size_t n = steps.size(); n-- != 0;) {
            for (unsigned a = 0; a < steps[n].asked; ++a) {
                for (unsigned b = a + 1; b < steps[n].asked; ++b) {
                    auto const both = std::uint32_t{1} << a | std::uint32_t{1} << b;
                    if (!try_with(steps, n, both, now)) { return; }
                }
            }
        }
    }
    /// After the best of the first trials, each answer in later steps.
    void try_two(path const& steps, search& now) {
        auto firsts = now.found;
        std::stable_sort(firsts.begin(), firsts.end(),
                         [](trial const& a, trial const& b) { return a.at > b.at; });
        constexpr std::size_t max_firsts = 24;
        if (firsts.size() > max_firsts) { firsts.resize(max_firsts); }
        for (auto const& first : firsts) {
            path more;
            (void)attempt(steps[first.step], first.others, now.until, more);
            if (!more.empty() && more.front().i == steps[first.step].i) { more.pop_front(); }
            search then{now.at, now.until, now.most};
            try_one(more, then);
            others_[steps[first.step].i] ^= first.others;
            for (auto const& second : then.found) {
                now.found.push_back(
                    {first.step, first.others, second.at, more[second.step].i, second.others});
            }
            now.is_done = then.is_done;
            if (now.is_done || used_ >= now.most) { return; }
        }
    }
    /// False if that was the last one.
    auto try_with(path const& steps, std::size_t n, std::uint32_t others, search& now) -> bool {
        if (used_ >= now.most) { return false; }
        path unused;
        auto const reached = attempt(steps[n], others, now.until, unused);
        others_[steps[n].i] ^= others;
        now.is_done = !reached.differs && reached.at > now.at;
        now.found.push_back({n, others, now.is_done ? real_.size() + 1 : reached.at});
        return !now.is_done;
    }
    /// Runs from a step with other answers.
    auto attempt(choice_step const& from, std::uint32_t others, std::size_t until, path& steps)
        -> progress {
        others_[from.i] ^= others;
        twin_.restore(from.before);
        checked_ = from.checked;
        return advance(from.i, until, steps);
    }

    recording const& from_;
    byte_view real_;
    bool is_cut_ = false;
    std::size_t lead_ = 0;  // bytes before the first PSB
    options how_;
    twin twin_;
    std::map<std::size_t, std::uint32_t> others_{};  // by the index of the packet
    std::size_t checked_ = 0;                        // bytes that are equal
    std::size_t before_last_ = 0;                    // bytes before the last step
    std::uint64_t used_ = 0;                         // steps of trials
};

}  // namespace pt_twin
