// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/config/trace_config.hpp>

/// Converts configurations to and from Linux perf's `perf_event_attr`.
namespace ptspec::config {

/// The members of a `perf_event_attr` of the PMU `intel_pt` that determine IA32_RTIT_CTL.
///
/// Shape:  a bit of `config` is the same bit of IA32_RTIT_CTL, except bit 0, `pt`. When `pt` is 1,
///         bit 13, `branch`, is BranchEn. When `pt` is 0, BranchEn is 1 and bit 13 must be 0.
/// Source: Linux, arch/x86/events/intel/pt.c; REG-032.
struct perf_event {
    uint64_t config = 0;
    bool exclude_kernel = false;
    bool exclude_user = false;

    friend constexpr auto operator==(perf_event const&, perf_event const&) -> bool = default;
};

/// Why Linux refuses an event on every processor.
enum class error : uint8_t {
    none,
    unknown_bit,          ///< `config` has a bit without a meaning: clear it
    branch_without_pt,    ///< bit 13 without bit 0: set both, or none
    fup_without_ptwrite,  ///< bit 5 without bit 12: set both, or none
};

/// The error as one sentence.
[[nodiscard]] constexpr auto describe(config::error error) noexcept -> text {
    switch (error) {
        case config::error::none: return "nothing is wrong";
        case config::error::unknown_bit: return "config has a bit that means nothing";
        case config::error::branch_without_pt: return "branch needs pt";
        case config::error::fup_without_ptwrite: return "fup_on_ptw needs ptw";
    }
    return "unknown error";
}

namespace detail {

/// The bit of `config` that says that bit 13 is valid: bit 0.
inline constexpr uint64_t perf_pt = field_mask<ctl::TraceEn>;

/// The fields that `config` and IA32_RTIT_CTL have in the same places.
inline constexpr uint64_t perf_fields = field_mask<ctl::CYCEn> | field_mask<ctl::PwrEvtEn> |
                                        field_mask<ctl::FUPonPTW> | field_mask<ctl::MTCEn> |
                                        field_mask<ctl::TSCEn> | field_mask<ctl::DisRETC> |
                                        field_mask<ctl::PTWEn> | field_mask<ctl::BranchEn> |
                                        field_mask<ctl::MTCFreq> | field_mask<ctl::CycThresh> |
                                        field_mask<ctl::PSBFreq> | field_mask<ctl::EventEn> |
                                        field_mask<ctl::DisTNT>;

}  // namespace detail

/// The bits of `perf_event::config` that mean something on every processor.
inline constexpr uint64_t perf_config_bits = detail::perf_fields | detail::perf_pt;

namespace detail {

constexpr auto perf_error_of(uint64_t config) noexcept -> config::error {
    auto const has = [=](config_member one) { return is_set({config}, one); };
    bool const branch_alone = has(config_member::branches) && (config & perf_pt) == 0;
    bool const fup_alone = has(config_member::fup_on_ptwrite) && !has(config_member::ptwrite);
    return (config & ~perf_config_bits) != 0 ? config::error::unknown_bit
           : branch_alone                    ? config::error::branch_without_pt
           : fup_alone                       ? config::error::fup_without_ptwrite
                                             : config::error::none;
}

}  // namespace detail

// ------------------------------------------------------------------------------------ from perf

/// The configuration that Linux uses for an event, or why it refuses the event.
struct perf_config {
    config::error error = config::error::none;
    trace_config config{};  ///< `output` and `addr` have their defaults: perf sets them elsewhere

    constexpr explicit operator bool() const noexcept { return error == config::error::none; }
};

/// The configuration that an event has if Linux accepts it. Bits that are not in
/// `perf_config_bits` are ignored. `output` and `addr` have their defaults.
///
/// Errors: none.
[[nodiscard]] constexpr auto from_perf_unchecked(perf_event const& event) noexcept -> trace_config {
    auto made = config_of(ia32_rtit_ctl{event.config & detail::perf_fields});
    made.os = !event.exclude_kernel;
    made.user = !event.exclude_user;
    made.branches = made.branches || (event.config & detail::perf_pt) == 0;
    made.output = trace_config{}.output;
    return made;
}

/// Converts an event to the configuration that Linux uses. The processor's capabilities are not
/// checked; `check` does that.
///
/// Errors: those of config::error.
[[nodiscard]] constexpr auto from_perf(perf_event const& event) noexcept -> perf_config {
    auto const error = detail::perf_error_of(event.config);
    if (error != config::error::none) { return {.error = error}; }
    return {.config = from_perf_unchecked(event)};
}

// ------------------------------------------------------------------------------------ to perf

/// An event, and the members of a configuration that it cannot express.
struct perf_request {
    perf_event event{};
    config_member_set lost{};
    config::error error = config::error::none;  ///< why Linux refuses the event

    constexpr explicit operator bool() const noexcept {
        return lost.empty() && error == config::error::none;
    }
};

/// Converts a configuration to an event. Bit 0 is set only when necessary, because old kernels
/// refuse it.
///
/// Errors: `lost` has the members that `from_perf` would not return, because perf has no bit for
///         them (perf takes filters from elsewhere and chooses the output itself). `error` is the
///         reason why Linux refuses the event.
[[nodiscard]] constexpr auto to_perf(trace_config const& wanted) noexcept -> perf_request {
    using detail::perf_pt;
    uint64_t const config_bits = ctl_of(wanted).raw & detail::perf_fields;
    uint64_t const branches = detail::field_mask<ia32_rtit_ctl::BranchEn>;
    perf_request made;
    made.event = {.config = wanted.branches ? config_bits & ~branches : config_bits | perf_pt,
                  .exclude_kernel = !wanted.os,
                  .exclude_user = !wanted.user};
    made.error = detail::perf_error_of(made.event.config);
    auto const mark_lost = [&](config_member one, bool differs) {
        if (differs) { made.lost.add(one); }
    };
    mark_lost(config_member::cr3_filter, wanted.cr3_filter);
    mark_lost(config_member::addr_0, wanted.addr[0] != addr_cfg::off);
    mark_lost(config_member::addr_1, wanted.addr[1] != addr_cfg::off);
    mark_lost(config_member::addr_2, wanted.addr[2] != addr_cfg::off);
    mark_lost(config_member::addr_3, wanted.addr[3] != addr_cfg::off);
    mark_lost(config_member::output, wanted.output != trace_config{}.output);
    mark_lost(config_member::inject_psb_pmi, wanted.inject_psb_pmi);
    return made;
}

}  // namespace ptspec::config
