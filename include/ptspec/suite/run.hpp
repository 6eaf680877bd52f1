// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/compare.hpp>
#include <ptspec/suite/armed.hpp>

/// Runs checks on a target.
namespace ptspec::suite {

/// A check: a type with its name, the rules that it can find broken, what it needs, and `run`.
template <class C, class T>
concept runnable_check = requires(armed<T>& on) {
    { C::name } -> convertible_to<text>;
    { C::rules } -> convertible_to<rule_list>;
    { C::need } -> convertible_to<needs>;
    { C::run(on) } -> same_as<finding>;
};

/// The capabilities of a target.
///
/// Source: PRG-001.
template <target T>
[[nodiscard]] constexpr auto capabilities_of(T& it) noexcept -> cpu::capabilities {
    port_of<T> ports{it};
    return cpu::detect(ports, ports);
}

/// What a target does with an MSR that it does not have.
enum class absence_policy : uint8_t {
    faults,   ///< #GP, as a processor
    ignores,  ///< reads 0 and drops writes: some virtual machines
};

/// What is said of a check that the policy `ignores` decides.
inline constexpr text by_policy = "policy: ignores absent MSRs";

/// Asks a target for its policy, by RDMSR of two indices that no processor has.
///
/// Source: REG-017.
template <target T>
[[nodiscard]] constexpr auto policy_of(T& it) noexcept -> absence_policy {
    bool const is_ignored = it.read(0x562).is_done && it.read(0x57F).is_done;
    return is_ignored ? absence_policy::ignores : absence_policy::faults;
}

/// True if TraceEn is 1: another agent traces, and the target must be left alone.
///
/// Source: PRG-260.
template <target T>
[[nodiscard]] constexpr auto is_in_use(T& it) noexcept -> bool {
    auto const value = it.read(ia32_rtit_ctl::address);
    return value.is_done && ia32_rtit_ctl{value.value}.get<ia32_rtit_ctl::TraceEn>();
}

/// How checks run.
struct run_options {
    unsigned runs = 16;  ///< how often a check runs; `broken` must be found by each
    absence_policy absent = absence_policy::faults;
    bool may_be_dangerous = false;
    /// The kind of processor to which the target is held; null: its choices are its own.
    engine::model_options const* kind = nullptr;
};

/// Runs a check once.
template <class C, target T>
    requires runnable_check<C, T>
[[nodiscard]] constexpr auto run_once(T& it, cpu::capabilities const& caps,
                                      engine::model_options const* kind = nullptr) noexcept
    -> finding {
    text const lacking = missing(C::need, caps, it.abilities(), it.memory().pages);
    if (lacking.size() != 0) { return {.what = outcome::skipped, .detail = lacking}; }
    if (C::need.is_of_kind && kind == nullptr) {
        return {.what = outcome::skipped, .detail = "the target is held to no kind of processor"};
    }
    if (is_in_use(it)) {
        return {.what = outcome::skipped, .detail = "TraceEn is 1: another agent traces"};
    }
    armed<T> on{it, caps, C::rules.ids[0], C::need.is_dangerous, kind};
    it.note(C::name, on.before());
    auto const found = C::run(on);
    bool const is_restored = on.restore();
    it.note({}, on.before());
    if (!is_restored && !found.is_broken()) {
        return {.what = outcome::error, .detail = "the target refuses to restore an MSR"};
    }
    if (on.is_disturbed()) { return {.what = outcome::unsteady, .detail = "disturbed"}; }
    return found;
}

/// Runs a check as often as the options say, at least once. Disturbed runs do not count: after as
/// many of them as runs were wanted, the check ends. It is unsteady if two runs differ.
template <class C, target T>
    requires runnable_check<C, T>
[[nodiscard]] constexpr auto run_check(T& it, cpu::capabilities const& caps,
                                       run_options const& options = {}) noexcept -> finding {
    if (C::need.is_dangerous && !options.may_be_dangerous) {
        return {.what = outcome::skipped, .detail = "dangerous"};
    }
    if (C::need.asks_absence && options.absent == absence_policy::ignores) {
        return {.what = outcome::skipped, .detail = by_policy};
    }
    finding first{.what = outcome::unsteady, .detail = "disturbed in each run"};
    unsigned counted = 0;
    for (unsigned disturbed = 0; disturbed <= options.runs && counted < options.runs;) {
        auto const found = run_once<C>(it, caps, options.kind);
        if (found.what == outcome::skipped || found.what == outcome::error) {
            // TraceEn may have stayed 1 in the run before.
            return counted != 0 && first.is_broken() ? first : found;
        }
        if (found.what == outcome::unsteady) {
            ++disturbed;
            continue;
        }
        if (++counted == 1) {
            first = found;
        } else if (first.what != found.what || first.which != found.which ||
                   first.msr != found.msr) {
            auto differs = first.is_broken() ? first : found;
            differs.what = outcome::unsteady;
            return differs;
        } else if (first.what == outcome::observed && first.seen != found.seen) {
            first.detail = "differs between runs";
        }
    }
    return first;
}

}  // namespace ptspec::suite
