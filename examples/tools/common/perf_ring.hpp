// SPDX-License-Identifier: BSL-1.0
#pragma once

// A raw ring of perf beside a raw trace: --records has the bytes of the data area, --attr those of
// the perf_event_attr. They are put into the form of a perf.data file, which is then read.

#include "numbers.hpp"

#include <ptspec/file/perf_data/reader.hpp>
#include <ptspec/file/perf_data/stream.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/trace/time_conversion.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trace_file {

using namespace ptspec;

/// The files beside a trace, and what they do not say.
struct ring_files {
    std::string records{};
    std::string attr{};
    trace::time_conversion to_ns{};  ///< mult 0: that of a TIME_CONV record

    [[nodiscard]] auto is_given() const -> bool { return !records.empty() || !attr.empty(); }
    void check() const {
        if (records.empty() != attr.empty()) {
            throw tool::failure{"--records and --attr need each other"};
        }
    }
};
/// Takes --records or --attr. Returns false when it is another option.
inline auto take_ring_option(tool::command_line& line, ring_files& to) -> bool {
    if (line.is("--records")) {
        to.records = line.value();
    } else if (line.is("--attr")) {
        to.attr = line.value();
    } else {
        return false;
    }
    return true;
}

/// A perf.data file in memory.
struct ring_data {
    std::vector<std::uint8_t> bytes{};
    std::string error{};          ///< why not all records could be read; or empty
    std::string damage{};         ///< the damaged records that were skipped; or empty
    std::string warning{};        ///< what is missing of the trace; or empty
    bool is_overwritten = false;  ///< the trace is what was left of a ring
};

namespace detail {

namespace perf_data = ptspec::file::perf_data;

/// `begin` is where the file begins to which the offset belongs.
inline auto text_of(perf_data::skipped_bytes const& skipped, std::uint64_t begin) -> std::string {
    return std::to_string(skipped.bytes) + " bytes of damaged records at " +
           tool::hex(skipped.offset - begin) + " were skipped";
}

/// Bytes of the trace that AUX records describe.
struct aux_part {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
};

/// What the records say of the trace.
class ring_reader {
public:
    void take(perf_data::record const& one) {
        using is = perf_data::sample_type;
        if (auto const clock = perf_data::read_as<perf_data::time_conv_record>(one)) {
            constexpr std::uint64_t any32 = 0xFFFF'FFFF;
            if (clock->time_shift < 64 && clock->time_mult <= any32) {
                to_ns = {.shift = static_cast<std::uint16_t>(clock->time_shift),
                         .mult = static_cast<std::uint32_t>(clock->time_mult),
                         .zero = clock->time_zero};
            }
        } else if (auto const start = perf_data::read_as<perf_data::itrace_start_record>(one)) {
            started_ = start->tid;
        } else if (auto const change = perf_data::read_as<perf_data::switch_record>(one)) {
            is_cpu_wide_ = is_cpu_wide_ || change->has_other();
        } else if (auto const aux = perf_data::read_as<perf_data::aux_record>(one)) {
            if (aux->flags.get<perf_data::aux_flags::OVERWRITE>()) { is_overwritten = true; }
            if (aux->aux_size != 0) { parts_.push_back({aux->aux_offset, aux->aux_size}); }
            if (one.id.has.get<is::CPU>()) { set(cpu_, one.id.cpu, is_on_many_cpus_); }
            if (one.id.has.get<is::TID>()) { set(tid_, one.id.thread.tid, has_many_threads_); }
        }
    }
    /// The ring of a processor has records of several threads, or SWITCH_CPU_WIDE.
    [[nodiscard]] auto cpu() const -> std::uint32_t {
        bool const is_of_cpu = cpu_ && !is_on_many_cpus_ && (is_cpu_wide_ || has_many_threads_);
        return is_of_cpu ? *cpu_ : perf_data::no_cpu;
    }
    [[nodiscard]] auto tid() const -> std::uint32_t {
        if (cpu() != perf_data::no_cpu || has_many_threads_) { return perf_data::no_tid; }
        return tid_ ? *tid_ : started_.value_or(perf_data::no_tid);
    }
    /// The parts of the trace, in order; those that continue each other are one.
    [[nodiscard]] auto parts() const -> std::vector<aux_part> {
        auto sorted = parts_;
        tool::stable_sort(sorted, [](auto const& a, auto const& b) { return a.offset < b.offset; });
        std::vector<aux_part> made;
        for (auto const& one : sorted) {
            bool const continues = !made.empty() &&
                                   one.offset - made.back().offset <= made.back().size;
            if (!continues) {
                made.push_back(one);
                continue;
            }
            auto& last = made.back();
            last.size = std::max(last.size, one.offset - last.offset + one.size);
        }
        return made;
    }

    trace::time_conversion to_ns{};
    bool is_overwritten = false;

private:
    static void set(std::optional<std::uint32_t>& to, std::uint32_t value, bool& differs) {
        differs = differs || (to && *to != value);
        to = value;
    }

    std::vector<aux_part> parts_{};
    std::optional<std::uint32_t> cpu_{};
    std::optional<std::uint32_t> tid_{};
    std::optional<std::uint32_t> started_{};
    bool is_on_many_cpus_ = false;
    bool has_many_threads_ = false;
    bool is_cpu_wide_ = false;
};

class ring_composer {
public:
    ring_composer(byte_view trace, ring_files const& files)
        : trace_{trace},
          files_{files},
          attr_{tool::read_all(files.attr, std::size_t{1} << 16)},
          records_{tool::read_all(files.records, std::size_t{1} << 32)} {}

    auto made() -> ring_data {
        check_attr();
        append_head();
        std::size_t const info = made_.bytes.size();
        append(perf_data::auxtrace_info_record{});  // its place
        auto const found = append_records();
        append_info(info, found);
        append_trace(found);
        perf_data::file_header head = header_of(made_.bytes.size());
        auto const bytes = file::to_bytes(head);
        std::copy(bytes.data(), bytes.data() + sizeof head, made_.bytes.begin());
        return std::move(made_);
    }

private:
    static constexpr std::size_t attr_begin = sizeof(perf_data::file_header);

    [[nodiscard]] auto attr_size() const -> std::size_t {
        auto const size = file::load<perf_data::perf_event_attr>(byte_view{attr_}).size;
        return size == 0 ? perf_data::perf_event_attr::first_size : std::size_t{size};
    }
    void check_attr() const {
        bool const is_right = attr_.size() >= perf_data::perf_event_attr::first_size &&
                              attr_size() >= perf_data::perf_event_attr::first_size &&
                              attr_size() <= attr_.size();
        if (!is_right) {
            throw tool::failure{files_.attr + ": is no struct perf_event_attr: its size is " +
                                std::to_string(attr_.size()) + " bytes, its member `size` " +
                                std::to_string(attr_.size() < 8 ? 0 : attr_size())};
        }
    }
    [[nodiscard]] auto header_of(std::uint64_t end) const -> perf_data::file_header {
        std::uint64_t const step = attr_size() + sizeof(perf_data::section);
        return {.magic = perf_data::file_header::magic_value,
                .size = sizeof(perf_data::file_header),
                .attr_size = step,
                .attrs = {attr_begin, step},
                .data = {attr_begin + step, end - (attr_begin + step)}};
    }
    template <class Structure>
    void append(Structure const& what) {
        auto const bytes = file::to_bytes(what);
        append(byte_view{bytes.data(), sizeof what});
    }
    void append(byte_view bytes) {
        made_.bytes.insert(made_.bytes.end(), bytes.begin(), bytes.end());
    }
    void append_head() {
        append(header_of(0));
        append(byte_view{attr_}.first(attr_size()));
        append(perf_data::section{});
    }
    /// Appends the records without what is damaged.
    auto append_records() -> ring_reader {
        std::size_t const begin = made_.bytes.size();
        append(byte_view{records_});
        auto const head = file::to_bytes(header_of(made_.bytes.size()));
        std::copy(head.data(), head.data() + sizeof(perf_data::file_header), made_.bytes.begin());
        auto in = perf_data::open(borrowed_bytes{made_.bytes.data(), made_.bytes.size()});
        if (!in) { throw tool::failure{files_.attr + ": " + reason_of(in.result, 0)}; }
        in.data_begin = begin;
        ring_reader found;
        auto all = perf_data::records(in);
        auto kept = made_.bytes.begin() + static_cast<std::ptrdiff_t>(begin);
        perf_data::read_status wrong;
        while (auto const one = all.next()) {
            if (one.type == perf_data::record_type::auxtrace) {
                wrong = {perf_data::read_error::other_record_type, one.offset};
                break;
            }
            found.take(one);
            kept = std::copy(one.bytes.begin(), one.bytes.end(), kept);
            kept = std::copy(one.trace.begin(), one.trace.end(), kept);
        }
        made_.bytes.erase(kept, made_.bytes.end());
        auto const skipped = all.skipped();
        bool const ends_early = !all.result() && (!skipped || skipped.to_end);
        if (wrong && ends_early) { wrong = all.result(); }
        if (!wrong) { made_.error = files_.records + ": " + reason_of(wrong, begin); }
        bool const is_error = skipped.to_end && skipped.offset == wrong.offset &&
                              skipped.offset + skipped.bytes == begin + records_.size();
        if (skipped && !is_error) {
            made_.damage = files_.records + ": " + text_of(skipped, begin);
        }
        return found;
    }
    static auto reason_of(perf_data::read_status const& why, std::uint64_t begin) -> std::string {
        auto const text = describe(why.error);
        return "byte " + std::to_string(why.offset - begin) + ": " +
               std::string{text.data(), text.size()};
    }
    void append_info(std::size_t at, ring_reader const& found) {
        using ctl = reg::ia32_rtit_ctl;
        auto const clock = files_.to_ns.mult != 0 ? files_.to_ns : found.to_ns;
        auto const bit = [](auto word) { return word.raw; };
        perf_data::auxtrace_info_record info{
            .type = perf_data::auxtrace_intel_pt,
            .PMU_TYPE =
                std::uint32_t{file::load<perf_data::perf_event_attr>(byte_view{attr_}).type},
            .TIME_SHIFT = clock.shift,
            .TIME_MULT = clock.mult,
            .TIME_ZERO = clock.zero,
            .CAP_USER_TIME_ZERO = clock.mult != 0,
            .TSC_BIT = bit(ctl{}.with(ctl::TSCEn{true})),
            .NORETCOMP_BIT = bit(ctl{}.with(ctl::DisRETC{true})),
            .MTC_BIT = bit(ctl{}.with(ctl::MTCEn{true})),
            .MTC_FREQ_BITS = bit(ctl{}.with(ctl::MTCFreq{15})),
            .CYC_BIT = bit(ctl{}.with(ctl::CYCEn{true})),
        };
        info.header.size = sizeof info;
        auto const bytes = file::to_bytes(info);
        std::copy(bytes.data(), bytes.data() + sizeof info,
                  made_.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    }
    /// Appends the trace, in the parts that AUX records name. A file that is as long as all of it
    /// has also what records that were lost describe.
    void append_trace(ring_reader const& found) {
        made_.is_overwritten = found.is_overwritten;
        auto parts = found.parts();
        if (parts.empty() || found.is_overwritten) { return append_part(found, 0, trace_); }
        auto const begin = parts.front().offset;
        auto const end = parts.back().offset + parts.back().size;
        std::uint64_t sum = 0;
        for (auto const& one : parts) { sum += one.size; }
        auto const size = std::uint64_t{trace_.size()};
        if (parts.size() == 1 || size != sum) {
            if (size < end - begin) {
                made_.warning = "the trace has " + std::to_string(size) +
                                " bytes, but AUX records describe " + std::to_string(end - begin);
            }
            return append_part(found, begin, trace_);
        }
        for (auto const& one : parts) {
            append_part(found, one.offset, trace_.first(static_cast<std::size_t>(one.size)));
            trace_ = trace_.from(static_cast<std::size_t>(one.size));
        }
    }
    void append_part(ring_reader const& found, std::uint64_t offset, byte_view bytes) {
        perf_data::auxtrace_record record{
            .size = bytes.size(), .offset = offset, .tid = found.tid(), .cpu = found.cpu()};
        record.header.size = sizeof record;
        append(record);
        append(bytes);
    }

    byte_view trace_;
    ring_files const& files_;
    std::vector<std::uint8_t> attr_;
    std::vector<std::uint8_t> records_;
    ring_data made_{};
};

}  // namespace detail

/// Puts a trace and the ring beside it into the form of a perf.data file.
inline auto data_of_ring(byte_view trace, ring_files const& files) -> ring_data {
    return detail::ring_composer{trace, files}.made();
}

}  // namespace trace_file
