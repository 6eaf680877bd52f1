// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/address_filter.hpp>
#include <ptspec/file/perf_data/clock.hpp>
#include <ptspec/file/perf_data/reader.hpp>
#include <ptspec/file/perf_data/session.hpp>
#include <ptspec/trace/clock.hpp>

/// What a decoder has to know of a perf.data file before it reads the traces.
namespace ptspec::file::perf_data {

/// How the traces of a file were recorded.
///
/// Units:  the TSC has `tsc_ctc_n` / `tsc_ctc_d` times the frequency of the crystal clock, which
///         MTC counts; both are 0 if the ratio is unknown. `max_non_turbo_ratio` is the ratio of
///         the TSC to the bus clock, which CBR counts; 0 if unknown.
struct [[nodiscard]] decoder_config {
    read_status result{};
    auxtrace_info_record info{};
    byte_view filter{};  ///< the address filters, as text: `address_filter_reader`
    event_attr event{};  ///< of the PMU intel_pt
    /// IA32_RTIT_CTL as Linux set it for the event: the packets that are enabled, MTCFreq,
    /// CycThresh, PSBFreq, OS, User and ADDRn_CFG. `config::config_of` converts it.
    reg::ia32_rtit_ctl ctl{};
    uint64_t unknown_config = 0;   ///< bits of `event.config` without a known meaning
    bool has_event_trace = false;  ///< the processor has event trace; false in old files
    time_conversion clock{};       ///< from the TSC to the times of records; mult 0: unknown
    uint32_t tsc_ctc_n = 0;        ///< CPUID.15H:EBX
    uint32_t tsc_ctc_d = 0;        ///< CPUID.15H:EAX
    uint32_t max_non_turbo_ratio = 0;
    found_model model{};      ///< of the processor, if the file names it
    cpu::quirk_set quirks{};  ///< of this model

    constexpr explicit operator bool() const noexcept { return bool{result}; }
};

namespace detail {

/// IA32_RTIT_CTL for an event. `info` has the places of some bits in `config`.
constexpr auto ctl_of(event_attr const& event, auxtrace_info_record const& info,
                      byte_view filter) noexcept -> reg::ia32_rtit_ctl {
    using flags = attr_flags;
    uint64_t const bits = event.config;
    auto made = config::from_perf_unchecked(
        {.config = bits,
         .exclude_kernel = event.flags.get<flags::exclude_kernel>(),
         .exclude_user = event.flags.get<flags::exclude_user>()});
    made.tsc = (bits & info.TSC_BIT) != 0;
    made.ret_compression = (bits & info.NORETCOMP_BIT) == 0;
    made.mtc = (bits & info.MTC_BIT) != 0;
    made.cyc = (bits & info.CYC_BIT) != 0;
    uint64_t const freq = info.MTC_FREQ_BITS;
    made.mtc_every = cpu::mtc_period::encoded(
        wrapped{freq == 0 ? 0 : (bits & freq) >> lowest_bit(freq)});
    address_filter_reader filters{filter};
    for (auto& one : made.addr) {
        auto const next = filters.next();
        if (!next) { break; }
        one = next.is_stop ? reg::addr_cfg::trace_stop : reg::addr_cfg::filter;
    }
    return config::ctl_of(made);
}

constexpr auto fits_32(uint64_t value) noexcept -> bool { return value <= 0xFFFF'FFFF; }

}  // namespace detail

/// What a decoder needs, from AUXTRACE_INFO, the event of Intel PT and the feature CPUID.
///
/// Numbers that no processor can have count as unknown.
///
/// Errors: no_auxtrace_info, bad_auxtrace_info; not_intel_pt; no_intel_pt_event; without an
///         AUXTRACE_INFO, those of `record_reader::next`.
/// Source: drivers.md, 4.3 and 4.4.
[[nodiscard]] constexpr auto decoder_config_of(input const& file) noexcept -> decoder_config {
    decoder_config made;
    auto all = records(file);
    record found;
    do { found = all.next(); } while (found && found.type != record_type::auxtrace_info);
    if (!found) {
        made.result = all.result() ? read_status{read_error::no_auxtrace_info, 0} : all.result();
        return made;
    }
    auto const info = read_as<auxtrace_info_record>(found);
    if (!info) { made.result = {read_error::bad_auxtrace_info, found.offset}; }
    if (info && info->type != auxtrace_intel_pt) {
        made.result = {read_error::not_intel_pt, found.offset};
    }
    if (!made.result) { return made; }
    made.info = info.value;
    made.filter = info.string();
    auto events = attrs_of(file);
    do { made.event = events.next(); } while (made.event && made.event.type != info->PMU_TYPE);
    if (!made.event) {
        made.result = {read_error::no_intel_pt_event, found.offset};
        return made;
    }
    made.ctl = detail::ctl_of(made.event, info.value, made.filter);
    made.unknown_config = made.event.config &
                          ~(config::perf_config_bits | info->TSC_BIT | info->NORETCOMP_BIT |
                            info->MTC_BIT | info->MTC_FREQ_BITS | info->CYC_BIT);
    made.has_event_trace = info->CAP_EVENT_TRACE != 0;
    using detail::fits_32;
    made.clock = time_conversion_of(info.value);
    bool const has_ratio = info->TSC_CTC_N != 0 && info->TSC_CTC_D != 0 &&
                           fits_32(info->TSC_CTC_N) && fits_32(info->TSC_CTC_D);
    if (has_ratio) {
        made.tsc_ctc_n = static_cast<uint32_t>(info->TSC_CTC_N);
        made.tsc_ctc_d = static_cast<uint32_t>(info->TSC_CTC_D);
    }
    if (fits_32(info->MAX_NONTURBO_RATIO)) {
        made.max_non_turbo_ratio = static_cast<uint32_t>(info->MAX_NONTURBO_RATIO);
    }
    made.model = model_of(file);
    if (made.model) { made.quirks = cpu::quirks_of(made.model.model); }
    return made;
}

/// The constants of the clock of the traces, with the quirks of their processor. The clock takes
/// the upper bits of the TSC from the piece: set `tsc_reference` to the `reference` of the first
/// piece of a stream.
[[nodiscard]] constexpr auto clock_options_of(decoder_config const& config) noexcept
    -> trace::clock_options {
    using ctl = reg::ia32_rtit_ctl;
    bool const has_ratio = config.max_non_turbo_ratio <= 0xFF;
    return {.mtc_freq = static_cast<uint8_t>(config.ctl.get<ctl::MTCFreq>()),
            .cyc_thresh = static_cast<uint8_t>(config.ctl.get<ctl::CycThresh>()),
            .max_non_turbo_ratio = static_cast<uint8_t>(has_ratio ? config.max_non_turbo_ratio : 0),
            .tsc_numerator = config.tsc_ctc_n,
            .tsc_denominator = config.tsc_ctc_d,
            .tsc_age = trace::tsc_age_of(config.tsc_ctc_n, config.tsc_ctc_d),
            .quirks = config.quirks};
}

}  // namespace ptspec::file::perf_data
