// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/base/rule.hpp>

/// The frequency of MTC, CYC and PSB packets, which IA32_RTIT_CTL encodes in fields of four bits.
namespace ptspec {

namespace build_error {
void a_run_time_number_needs_a_function_that_begins_with_try();
void an_encoding_is_0_to_15();
void an_MTC_period_is_a_power_of_two_up_to_32768_crystal_cycles();
void a_CYC_threshold_is_0_or_a_power_of_two_up_to_16384_cycles();
void a_PSB_period_is_a_power_of_two_from_2_KB_to_64_MB();
}  // namespace build_error

namespace cpu {

/// A period, or the rule that the number breaks.
template <class Period>
struct [[nodiscard]] checked_period {
    rule broken = rule::none;
    Period period{};

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

namespace detail {

/// The common part of the period types. `Field` maps each encoding to its amount.
template <class Period, class Field>
class encoded_period {
public:
    static constexpr unsigned last_encoding = 15;

    /// Returns the period of an encoding: a literal from 0 to 15.
    [[nodiscard]] static consteval auto encoded(integral auto const& literal) -> Period {
        if (!ptspec::detail::is_known(literal)) {
            build_error::a_run_time_number_needs_a_function_that_begins_with_try();
        }
        if (ptspec::detail::is_negative(literal) || !Field::fits(static_cast<uint64_t>(literal))) {
            build_error::an_encoding_is_0_to_15();
        }
        return from_encoding(static_cast<uint64_t>(literal));
    }
    /// The same at run time: keeps the low four bits.
    [[nodiscard]] static constexpr auto encoded(wrapped number) noexcept -> Period {
        return from_encoding(number.value & last_encoding);
    }
    /// The same at run time, checked.
    ///
    /// Errors: REG-028 not 0 to 15.
    [[nodiscard]] static constexpr auto try_encoded(uint64_t number) noexcept
        -> checked_period<Period> {
        if (number > last_encoding) { return {.broken = rule::REG_028}; }
        return {.period = from_encoding(number)};
    }
    /// The encoding, as the field holds it.
    [[nodiscard]] constexpr auto encoding() const noexcept -> unsigned { return encoding_; }

    friend constexpr auto operator==(encoded_period, encoded_period) -> bool = default;

protected:
    constexpr encoded_period() noexcept = default;

    [[nodiscard]] constexpr auto amount() const noexcept -> uint64_t {
        return amount_of(encoding_);
    }

    /// Calls `Stop`, a function of build_error, if there is no encoding for this amount.
    template <auto Stop>
    static consteval auto of_literal(uint64_t const& amount) -> Period {
        if (!ptspec::detail::is_known(amount)) {
            build_error::a_run_time_number_needs_a_function_that_begins_with_try();
        }
        auto const found = try_of(amount);
        if (!found) { Stop(); }
        return found.period;
    }
    /// Errors: REG-048 no encoding for this amount.
    static constexpr auto try_of(uint64_t amount) noexcept -> checked_period<Period> {
        for (unsigned encoding = 0; encoding <= last_encoding; ++encoding) {
            if (amount_of(encoding) == amount) { return {.period = from_encoding(encoding)}; }
        }
        return {.broken = rule::REG_048};
    }

private:
    static constexpr auto amount_of(unsigned encoding) noexcept -> uint64_t {
        return Field::amount(encoding).count;
    }
    static constexpr auto from_encoding(uint64_t encoding) noexcept -> Period {
        Period period;
        period.encoding_ = static_cast<uint8_t>(encoding);
        return period;
    }

    uint8_t encoding_ = 0;
};

}  // namespace detail

/// The period of MTC packets in crystal cycles: `of_crystal_cycles(8)`.
///
/// Units:  crystal cycles, 2^n for encoding n: 1 to 32768. The default is 1.
/// Errors: other numbers stop the build; `try_of_crystal_cycles` returns REG-048.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR"; REG-048.
class mtc_period : public detail::encoded_period<mtc_period, reg::ia32_rtit_ctl::MTCFreq> {
public:
    constexpr mtc_period() noexcept = default;
    mtc_period(int) = delete;  // of_crystal_cycles(n), or encoded(n) for MTCFreq

    [[nodiscard]] static consteval auto of_crystal_cycles(uint64_t const& cycles) -> mtc_period {
        return of_literal<build_error::an_MTC_period_is_a_power_of_two_up_to_32768_crystal_cycles>(
            cycles);
    }
    [[nodiscard]] static constexpr auto try_of_crystal_cycles(uint64_t cycles) noexcept
        -> checked_period<mtc_period> {
        return try_of(cycles);
    }
    [[nodiscard]] constexpr auto crystal_cycles() const noexcept -> uint64_t { return amount(); }
};

/// The minimum number of core cycles between two CYC packets: `of_cycles(16)`.
///
/// Units:  cycles, 2^(n-1) for encoding n: 1 to 16384. The default, 0, is no threshold.
/// Errors: other numbers stop the build; `try_of_cycles` returns REG-048.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR"; REG-048.
class cyc_threshold : public detail::encoded_period<cyc_threshold, reg::ia32_rtit_ctl::CycThresh> {
public:
    constexpr cyc_threshold() noexcept = default;
    cyc_threshold(int) = delete;  // of_cycles(n), or encoded(n) for CycThresh

    [[nodiscard]] static consteval auto of_cycles(uint64_t const& cycles) -> cyc_threshold {
        return of_literal<build_error::a_CYC_threshold_is_0_or_a_power_of_two_up_to_16384_cycles>(
            cycles);
    }
    [[nodiscard]] static constexpr auto try_of_cycles(uint64_t cycles) noexcept
        -> checked_period<cyc_threshold> {
        return try_of(cycles);
    }
    [[nodiscard]] constexpr auto cycles() const noexcept -> uint64_t { return amount(); }
};

/// The number of trace bytes between two PSBs: `of_bytes(8192)`.
///
/// Units:  bytes, 2^(n+11) for encoding n: 2 KB, the default, to 64 MB.
/// Errors: other numbers stop the build; `try_of_bytes` returns REG-048.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR"; REG-048.
class psb_period : public detail::encoded_period<psb_period, reg::ia32_rtit_ctl::PSBFreq> {
public:
    constexpr psb_period() noexcept = default;
    psb_period(int) = delete;  // of_bytes(n), or encoded(n) for PSBFreq

    [[nodiscard]] static consteval auto of_bytes(uint64_t const& bytes) -> psb_period {
        return of_literal<build_error::a_PSB_period_is_a_power_of_two_from_2_KB_to_64_MB>(bytes);
    }
    [[nodiscard]] static constexpr auto try_of_bytes(uint64_t bytes) noexcept
        -> checked_period<psb_period> {
        return try_of(bytes);
    }
    [[nodiscard]] constexpr auto bytes() const noexcept -> uint64_t { return amount(); }
};

}  // namespace cpu

}  // namespace ptspec
