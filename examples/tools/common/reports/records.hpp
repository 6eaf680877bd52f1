// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a walker reported, in a form that another thread can report again.

#include "report.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace reports {

/// Steps of walks: branches and events, each once or a few times. Their addresses do not change, so
/// another thread may read those that it got the numbers of.
class step_table {
public:
    /// A branch or event, after instructions of which the first is at `ip`.
    struct step {
        std::uint64_t ip = 0;
        flow::edge edge{};
        vm_transition transition = vm_transition::none;

        friend auto operator==(step const& one, step const& two) -> bool {
            auto const& a = one.edge;
            auto const& b = two.edge;
            return one.ip == two.ip && a.from == b.from && a.to == b.to && a.after == b.after &&
                   a.space == b.space && a.kind == b.kind && a.is_taken == b.is_taken &&
                   a.is_asynchronous == b.is_asynchronous && one.transition == two.transition;
        }
    };

    /// The number of a step, which is added if it is not one of the last.
    auto number_of(step const& one) -> std::uint32_t {
        auto const mixed = (one.edge.from ^ one.edge.to << 20 ^ one.ip << 40) *
                           0x9E37'79B9'7F4A'7C15;
        auto& kept = last_[mixed >> (64 - last_bits)];
        if (kept < size_ && (*this)[kept] == one) { return kept; }
        kept = add(one);
        return kept;
    }
    [[nodiscard]] auto operator[](std::uint32_t number) const -> step const& {
        auto const [part, at] = place_of(number);
        return parts_[part][at];
    }
    /// A new table should take its place, to limit the memory.
    [[nodiscard]] auto is_large() const -> bool { return size_ >= (std::uint32_t{1} << 20); }

private:
    static constexpr unsigned last_bits = 14;
    static constexpr unsigned first_bits = 10;

    struct place {
        unsigned part;
        std::uint32_t at;
    };
    /// Part i has 2^(10 + i) steps.
    static auto place_of(std::uint32_t number) -> place {
        auto const shifted = std::uint64_t{number} + (1U << first_bits);
        auto const bit = static_cast<unsigned>(std::bit_width(shifted)) - 1;
        return {bit - first_bits, static_cast<std::uint32_t>(shifted - (std::uint64_t{1} << bit))};
    }
    auto add(step const& one) -> std::uint32_t {
        auto const [part, at] = place_of(size_);
        if (at == 0) {
            parts_[part] = std::make_unique<step[]>(std::size_t{1} << (first_bits + part));
        }
        parts_[part][at] = one;
        return size_++;
    }

    std::unique_ptr<step[]> parts_[32 - first_bits]{};
    std::uint32_t size_ = 0;
    std::vector<std::uint32_t> last_ = std::vector<std::uint32_t>(std::size_t{1} << last_bits,
                                                                  ~std::uint32_t{0});
};

/// What a walker reported, in order.
class records {
public:
    struct start {
        std::uint64_t ip;
        std::uint32_t space;
    };

    /// By PTWRITE.
    struct written {
        std::uint64_t ip;
        std::uint64_t payload;
    };
    /// Instructions in several blocks, the first at `ip`.
    struct sum {
        std::uint64_t ip = 0;
        std::uint64_t count = 0;
    };
    /// Where what follows is executed.
    struct place {
        bool is_wanted = true;
        bool is_known = true;
    };
    using other = std::variant<flow::executed, flow::executed_block, sum, flow::gap, start,
                               flow::stop, trace::time, thread_id, written, place>;
    /// A step after `count` instructions, or another report.
    struct record {
        std::uint32_t number;  ///< of the step, or of the other report plus `first_other`
        std::uint32_t count;
    };
    static constexpr std::uint32_t first_other = std::uint32_t{1} << 31;

    explicit records(std::shared_ptr<step_table> steps = std::make_shared<step_table>())
        : steps_{std::move(steps)} {}

    /// A branch or event, after these instructions.
    void add(sum before, flow::edge const& edge) {
        constexpr std::uint32_t most = ~std::uint32_t{0};
        if (before.count > most) {
            add(sum{before.ip, before.count - most});
            before.count = most;
        }
        auto const number = steps_->number_of({before.ip, edge});
        all_.push_back({number, static_cast<std::uint32_t>(before.count)});
    }
    void add(other const& one) {
        all_.push_back({first_other + static_cast<std::uint32_t>(others_.size()), 0});
        others_.push_back(one);
    }
    /// Adds steps again, the first one after more instructions.
    void add(sum before, record const* steps, std::size_t count) {
        if (before.count == 0) {
            all_.insert(all_.end(), steps, steps + count);
        } else {
            add({before.ip, before.count + steps->count}, (*steps_)[steps->number].edge);
            all_.insert(all_.end(), steps + 1, steps + count);
        }
    }
    /// The records from one on, if all are steps.
    [[nodiscard]] auto steps_from(std::size_t first) const -> std::optional<std::vector<record>> {
        std::vector<record> made{all_.begin() + static_cast<std::ptrdiff_t>(first), all_.end()};
        bool const are_steps = std::all_of(made.begin(), made.end(),
                                           [](record one) { return one.number < first_other; });
        return are_steps ? std::optional{std::move(made)} : std::nullopt;
    }
    /// The other report at a place; nullptr: a step.
    [[nodiscard]] auto other_at(std::size_t i) const -> other const* {
        auto const number = all_[i].number;
        return number < first_other ? nullptr : &others_[number - first_other];
    }
    /// Adds a record of others that have the same steps.
    void add(records const& from, std::size_t i) {
        auto const* const one = from.other_at(i);
        one == nullptr ? all_.push_back(from.all_[i]) : add(*one);
    }
    /// Empty records with the same steps.
    [[nodiscard]] auto sibling() const -> records { return records{steps_}; }
    [[nodiscard]] auto steps() -> step_table& { return *steps_; }
    [[nodiscard]] auto size() const -> std::size_t { return all_.size(); }
    void clear() {
        all_.clear();
        others_.clear();
        if (steps_->is_large()) { steps_ = std::make_shared<step_table>(); }
    }
    /// The last step becomes a VM entry or exit, if it is still here.
    void set_transition(std::size_t step_at, vm_transition what) {
        auto& at = all_.at(step_at);
        if (at.number >= first_other) { return; }
        auto changed = (*steps_)[at.number];
        changed.transition = what;
        at.number = steps_->number_of(changed);
    }

    /// Passes all records to a report. `shows(time)` is false outside of the wanted times.
    template <class Shows>
    void replay(report& to, Shows const& shows) const {
        bool const has_transitions = !to.is_filtered || to.wants().edges;
        for (auto const [number, count] : all_) {
            if (number >= first_other) {
                replay(others_[number - first_other], to, shows);
                continue;
            }
            if (!to.is_in_place) {
                to.others.branches += 1;
                leave_out(count, to);
                continue;
            }
            auto const& step = (*steps_)[number];
            if (count != 0) {
                to.found.executed(count, to.is_shown);
                to.executed(step.ip, count);
            }
            to.transition = step.transition;
            // A guest continues after its exit and entry.
            bool const is_other = to.transition != vm_transition::none;
            if (has_transitions || !is_other) { to.edge(step.edge); }
        }
    }

private:
    template <class Shows>
    static void replay(other const& any, report& to, Shows const& shows) {
        if (auto const* const where = std::get_if<place>(&any)) {
            to.is_in_place = where->is_wanted;
            to.is_place_known = where->is_known;
        } else if (!to.is_in_place && leave_out(any, to)) {
            return;
        } else if (auto const* const instruction = std::get_if<flow::executed>(&any)) {
            to.found.executed(1, to.is_shown);
            to.instruction(*instruction);
        } else if (auto const* const block = std::get_if<flow::executed_block>(&any)) {
            to.found.executed(block->count, to.is_shown);
            to.block(*block);
        } else if (auto const* const all = std::get_if<sum>(&any)) {
            to.found.executed(all->count, to.is_shown);
            to.executed(all->ip, all->count);
        } else if (auto const* const gap = std::get_if<flow::gap>(&any)) {
            to.is_shown ? to.found.gap(*gap) : to.found.executed(1, false);
            to.gap(*gap);
        } else if (auto const* const begin = std::get_if<start>(&any)) {
            to.start(begin->ip, begin->space);
        } else if (auto const* const end = std::get_if<flow::stop>(&any)) {
            to.stop(*end);
        } else if (auto const* const when = std::get_if<trace::time>(&any)) {
            to.is_shown = shows(*when);
            to.found.time(*when);
            to.time(*when);
        } else if (auto const* const which = std::get_if<thread_id>(&any)) {
            to.thread(*which);
        } else {
            auto const& value = std::get<written>(any);
            to.written(value.ip, value.payload);
        }
    }
    /// Counts what is executed outside of the place.
    static void leave_out(std::uint64_t instructions, report& to) {
        to.others.instructions += instructions;
        to.others.unknown += to.is_place_known ? 0 : instructions;
    }
    /// The same of a record. False for a time or thread, which is reported.
    static auto leave_out(other const& any, report& to) -> bool {
        if (std::holds_alternative<flow::executed>(any)) {
            leave_out(1, to);
        } else if (auto const* const block = std::get_if<flow::executed_block>(&any)) {
            leave_out(block->count, to);
        } else if (auto const* const all = std::get_if<sum>(&any)) {
            leave_out(all->count, to);
        } else if (std::holds_alternative<flow::gap>(any)) {
            to.others.gaps += 1;
        }
        return !std::holds_alternative<trace::time>(any) && !std::holds_alternative<thread_id>(any);
    }

    std::shared_ptr<step_table> steps_;
    std::vector<record> all_{};
    std::vector<other> others_{};
};

/// What was recorded of each run in a table.
class recorded_runs {
public:
    struct kept {
        static constexpr unsigned max_steps = 2;

        std::uint64_t ip = 0;     ///< of the first instruction
        std::uint64_t begin = 0;  ///< of the function at the end
        std::uint64_t end = 0;
        std::uint64_t last_jump = 0;
        std::uint64_t rest_ip = 0;  ///< of the instructions after the last step
        std::uint32_t rest = 0;     ///< their number
        std::uint32_t count = 0;    ///< of steps
        /// If there are more, the number of the first is its place in `more_`.
        records::record steps[max_steps]{};
    };

    /// For a trace of so many bytes. A run has at least a byte.
    explicit recorded_runs(std::uint64_t bytes)
        : runs_(static_cast<std::size_t>(std::clamp<std::uint64_t>(bytes, 64, max_count))),
          kept_(runs_.size()) {}
    recorded_runs(recorded_runs const&) = delete;
    auto operator=(recorded_runs const&) -> recorded_runs& = delete;

    [[nodiscard]] auto table() -> flow::run_table& { return table_; }
    [[nodiscard]] auto steps() const -> std::shared_ptr<step_table> const& { return steps_; }
    [[nodiscard]] auto at(std::uint32_t index) const -> kept const& { return kept_[index]; }
    [[nodiscard]] auto steps_of(kept const& one) const -> records::record const* {
        return one.count <= kept::max_steps ? one.steps : &more_[one.steps[0].number];
    }
    void keep(std::uint32_t index, kept made, std::vector<records::record> const& steps) {
        made.count = static_cast<std::uint32_t>(steps.size());
        if (steps.size() <= kept::max_steps) {
            std::copy(steps.begin(), steps.end(), made.steps);
        } else {
            made.steps[0].number = static_cast<std::uint32_t>(more_.size());
            more_.insert(more_.end(), steps.begin(), steps.end());
        }
        kept_[index] = made;
    }
    /// Forgets all if there is too much. Call it while nothing is recorded.
    void limit() {
        constexpr std::size_t max_steps = std::size_t{1} << 21;
        if (!steps_->is_large() && more_.size() < max_steps) { return; }
        table_.clear();
        steps_ = std::make_shared<step_table>();
        more_.clear();
    }

private:
    static constexpr std::uint64_t max_count = 65536;

    std::vector<flow::run> runs_;
    flow::run_table table_{runs_.data(), runs_.size()};
    std::vector<kept> kept_;
    std::vector<records::record> more_{};
    std::shared_ptr<step_table> steps_ = std::make_shared<step_table>();
};

}  // namespace reports
