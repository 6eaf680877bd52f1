// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/head.hpp>
#include <ptspec/ports/perf_event/pmu.hpp>

/// The attributes of an event of Intel PT, as perf_event_open(2) takes them.
namespace ptspec::ports::perf_event {

using file::perf_data::attr_flags;
using file::perf_data::perf_event_attr;
using file::perf_data::sample_type;

/// When an event begins to trace.
enum class begin : uint8_t {
    at_enable,  ///< by `enable`
    at_open,
    at_exec,  ///< when the thread executes another program
};

/// What an event records.
///
/// Units:  `wakeup_bytes`: poll(2) returns after this many bytes of trace, 0: after half of the
///         area.
struct trace_options {
    config::trace_config config{};
    perf_event::begin begin = perf_event::begin::at_enable;
    /// Also the threads and processes that the thread makes. Linux maps no trace of such an event
    /// unless it is opened for one processor.
    bool inherits = false;
    /// Names and mappings of processes. An event that is disabled has none of that time: then
    /// `side_band_of` is for another event, which has them all.
    bool records_processes = true;
    bool records_switches = false;  ///< SWITCH records, which an event of a processor needs
    uint32_t wakeup_bytes = 0;
};

struct [[nodiscard]] attributes {
    trace_result result{};
    perf_event_attr attr{};

    constexpr explicit operator bool() const noexcept { return bool{result}; }
};

/// The members of `sample_id` that the records of these events have.
inline constexpr sample_type record_members = sample_type{}.with(
    sample_type::TID{true}, sample_type::TIME{true}, sample_type::CPU{true},
    sample_type::IDENTIFIER{true});

namespace detail {

/// `config`, with the bits where the kernel has them.
constexpr auto place_terms(config::trace_config const& wanted, pmu const& of,
                           attributes& made) noexcept -> uint64_t {
    auto const request = config::to_perf(wanted);
    uint64_t placed = 0;
    auto const place = [&](config::config_member member, term const& at, uint64_t number) {
        if (number == 0 || !made.result) { return; }
        if (!at.holds(number)) {
            made.result = {failure::unsupported, 0, member};
            return;
        }
        placed |= number << at.lsb;
    };
    for (auto const& one : config::config_members) {
        if (made.result && request.lost.has(one.member)) {
            made.result = {failure::unsupported, 0, one.member};
        }
        uint64_t const bits = request.event.config & one.ctl_bits;
        place(one.member, of.terms[underlying(one.member)], bits >> lowest_bit(one.ctl_bits));
    }
    uint64_t const pt = ptspec::detail::field_mask<reg::ia32_rtit_ctl::TraceEn>;
    place(config::config_member::branches, of.pt, (request.event.config & pt) != 0 ? 1 : 0);
    if (made.result && !request) { made.result = {failure::refused, 0}; }
    return placed;
}

}  // namespace detail

/// The attributes of an event. Its records have `record_members`: names and mappings of processes,
/// and, if the kernel is traced, what changes its code.
///
/// Errors: unsupported, with the member; refused.
[[nodiscard]] constexpr auto attributes_of(trace_options const& wanted, pmu const& of) noexcept
    -> attributes {
    using is = attr_flags;
    bool const os = wanted.config.os;
    bool const records = wanted.records_processes;
    attributes made;
    made.attr.type = of.type;
    made.attr.size = perf_event_attr::size_of_writer;
    made.attr.config = detail::place_terms(wanted.config, of, made);
    made.attr.sample_period = uint64_t{1};
    made.attr.sample_type = record_members.with(sample_type::IP{true});  // perf requires it
    made.attr.flags = is{}.with(is::disabled{wanted.begin != begin::at_open},
                                is::enable_on_exec{wanted.begin == begin::at_exec},
                                is::inherit{wanted.inherits}, is::exclude_kernel{!os},
                                is::exclude_user{!wanted.config.user}, is::exclude_hv{!os},
                                is::mmap{records}, is::mmap2{records}, is::comm{records},
                                is::comm_exec{records}, is::task{records}, is::sample_id_all{true},
                                is::watermark{true}, is::context_switch{wanted.records_switches},
                                is::ksymbol{os && records}, is::text_poke{os && records});
    made.attr.wakeup = uint32_t{1};
    made.attr.aux_watermark = wanted.wakeup_bytes;
    return made;
}

/// The attributes of an event without trace, for the same target: it has all names, mappings and
/// switches from its opening on, whenever the other event is enabled.
[[nodiscard]] constexpr auto side_band_of(trace_options const& wanted) noexcept -> perf_event_attr {
    constexpr uint32_t software = 1;  // PERF_TYPE_SOFTWARE
    constexpr uint64_t dummy = 9;     // PERF_COUNT_SW_DUMMY
    auto options = wanted;
    options.begin = begin::at_open;
    options.records_processes = true;
    options.config.user = true;
    auto made = attributes_of(options, {.type = software}).attr;
    made.config = dummy;
    made.sample_period = uint64_t{0};
    return made;
}

}  // namespace ptspec::ports::perf_event
