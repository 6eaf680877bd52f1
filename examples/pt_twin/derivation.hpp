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
        std::uint64_t budget = most_trials + 20 * from_.all.size();
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
    static constexpr std::size_t most_steps = 60;  // to go back over
    static constexpr std::size_t most_kept = 12;
    static constexpr std::size_t most_waiting = 24;
    static constexpr std::uint64_t most_trials = 20'000;  // steps, for a difference
    static constexpr std::size_t ahead = 64;              // packets after a difference, to be sure

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
                if (steps.size() > most_steps) { forget_one(steps); }
            }
            if (now.i == 0) { find_psb(); }
            if (is_different(false) || has_stopped(i)) { return {true, checked_, i}; }
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
        while (kept != most_kept && steps[kept].is_kept) { ++kept; }
        if (kept == most_kept) { kept = 0; }
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
        for (std::size_t k = packet_at(checked_); k < i && waiting != most_waiting; ++k) {
            auto const& one = from_.all[k];
            waiting += !one.is(kind::tnt_short) && !one.is(kind::tnt_long) ? 1 : 0;
        }
        return waiting == most_waiting;
    }
    /// True if a twin of this size, which is equal so far, ends as the trace does: of the last
    /// action some packets are not stored, and of a packet only its PADs.
    [[nodiscard]] auto ends_alike(std::size_t size) const -> bool {
        if (checked_ == real_.size()) { return before_last_ <= checked_; }
        bool const is_pads = real_.size() - checked_ < 16 &&
                             std::all_of(
                                 real_.data() + checked_, real_.data() + real_.size(),
                                 [](std::uint8_t byte) { return byte == 0; });
        return checked_ == size && is_pads &&
               (twin_.is_tracing() || (from_.alignment + from_.end - from_.begin) % 16 != 0);
    }
    [[nodiscard]] auto packet_at(std::size_t at) const -> std::size_t {
        auto const after = std::partition_point(
            from_.all.begin(), from_.all.end(),
            [&](seen const& one) { return one.offset - from_.begin <= at; });
        return static_cast<std::size_t>(after - from_.all.begin()) - 1;
    }

    /// What a trial found: how far the bytes are equal.
    struct trial {
        std::size_t step = 0;
        std::uint32_t others = 0;
        std::size_t at = 0;
    };
    /// Finds other answers in the last steps with which the bytes are equal beyond `at`, and keeps
    /// the steps up to the first of them. False if there are none.
    auto revise(path& steps, progress const& reached, std::uint64_t& left) -> bool {
        std::size_t const at = reached.at;
        std::uint64_t const budget = std::min(left, most_trials);
        used_ = 0;
        std::size_t const until = std::min(reached.next + ahead, from_.all.size());
        auto const kept = others_;
        std::vector<trial> found;
        auto const first = try_all(steps, at, until, budget, found);
        bool is_clean = first;
        std::stable_sort(found.begin(), found.end(),
                         [](trial const& a, trial const& b) { return a.at > b.at; });
        if (!is_clean) {
            for (std::size_t n = 0; n < found.size() && n < 12 && used_ < budget; ++n) {
                if (found[n].at < at) { break; }
                path more;
                (void)attempt(steps[found[n].step], found[n].others, until, more);
                if (!more.empty()) { more.pop_front(); }
                std::vector<trial> second;
                if (!try_all(more, at, until, budget, second)) {
                    others_ = kept;
                    continue;
                }
                auto const best = second.back();
                others_[more[best.step].i] ^= best.others;
                steps.resize(found[n].step + 1);
                left -= std::min(left, used_);
                return true;
            }
            others_ = kept;
        }
        left -= std::min(left, used_);
        if (found.empty()) { return false; }
        auto const best = found.front();
        if (best.at <= at) { return false; }
        others_[steps[best.step].i] ^= best.others;
        steps.resize(best.step + 1);
        return true;
    }
    /// Tries the other answers of all steps, the last ones first. True if the last trial that was
    /// added to `found` has no difference.
    auto try_all(path const& steps, std::size_t at, std::size_t until, std::uint64_t budget,
                 std::vector<trial>& found) -> bool {
        for (unsigned both = 0; both < 2; ++both) {
            for (std::size_t n = steps.size(); n-- != 0;) {
                unsigned const asked = steps[n].asked;
                for (unsigned a = 0; a < asked; ++a) {
                    for (unsigned b = both ? a + 1 : a; b < (both ? asked : a + 1); ++b) {
                        if (used_ >= budget) { return false; }
                        std::uint32_t const others = std::uint32_t{1} << a | std::uint32_t{1} << b;
                        path unused;
                        auto const reached = attempt(steps[n], others, until, unused);
                        others_[steps[n].i] ^= others;
                        bool const is_clean = !reached.differs && reached.at > at;
                        found.push_back({n, others, is_clean ? real_.size() + 1 : reached.at});
                        if (is_clean) { return true; }
                    }
                }
            }
        }
        return false;
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
