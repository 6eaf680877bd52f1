// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/record.hpp>

/// Reads the values of a record.
namespace ptspec::file::perf_data {

namespace detail {

/// The size of the `perf_event_attr` at the front of `in`.
constexpr auto attr_size(byte_view in) noexcept -> size_t {
    size_t const size = load<layout::attr::size>(in);
    return size == 0 ? layout::attr::first_size : size;
}

/// Reads a `perf_event_attr`, without its ids. `in` has `attr_size(in)` bytes or more.
constexpr auto attr_of(byte_view in, uint64_t offset) noexcept -> event_attr {
    using attr = layout::attr;
    event_attr made;
    made.offset = offset;
    made.bytes = in.first(attr_size(in));
    made.type = load<attr::type>(made.bytes);
    made.config = load<attr::config>(made.bytes);
    made.sample_period = load<attr::sample_period>(made.bytes);
    made.sample_type = {load<attr::sample_type>(made.bytes)};
    made.read_format = load<attr::read_format>(made.bytes);
    made.flags = {load<attr::flags>(made.bytes)};
    return made;
}

/// The bytes before the first NUL.
constexpr auto until_nul(byte_view all) noexcept -> byte_view {
    size_t size = 0;
    while (size < all.size() && all[size] != 0) { ++size; }
    return all.first(size);
}

/// How a value is read: from which records, and from how many bytes at least.
template <class Value>
struct reading;

template <class Layout, record_type... Types>
struct reading_of {
    static constexpr size_t least = Layout::bytes::size;
    static constexpr auto accepts(record_type type) noexcept -> bool {
        return ((type == Types) || ...);
    }
};

template <>
struct reading<thread_name> : reading_of<layout::comm, record_type::comm> {
    static constexpr void read(record const& from, thread_name& to) noexcept {
        using layout::comm;
        to.thread = {load<comm::pid>(from.content), load<comm::tid>(from.content)};
        to.name = until_nul(from.content.from(comm::bytes::size));
        to.exec = (from.misc & misc_comm_exec) != 0;
    }
};

template <>
struct reading<mapping> : reading_of<layout::mmap, record_type::mmap, record_type::mmap2> {
    static constexpr auto read(record const& from, mapping& to) noexcept -> bool {
        using layout::mmap, layout::mmap2, layout::mmap2_build_id;
        auto const in = from.content;
        to.is_mmap2 = from.type == record_type::mmap2;
        size_t const fixed = to.is_mmap2 ? mmap2::bytes::size : mmap::bytes::size;
        if (in.size() < fixed) { return false; }
        to.thread = {load<mmap::pid>(in), load<mmap::tid>(in)};
        to.addr = load<mmap::addr>(in);
        to.len = load<mmap::len>(in);
        to.pgoff = load<mmap::pgoff>(in);
        to.filename = until_nul(in.from(fixed));
        to.is_data = (from.misc & misc_mmap_data) != 0;
        if (!to.is_mmap2) { return true; }
        to.prot = load<mmap2::prot>(in);
        to.flags = load<mmap2::flags>(in);
        if ((from.misc & misc_mmap_build_id) != 0) {
            size_t const size = load<mmap2_build_id::build_id_size>(in);
            constexpr size_t most = mmap2_build_id::longest;
            to.build_id = in.from(mmap2_build_id::build_id::first).first(size < most ? size : most);
        } else {
            to.dev_major = load<mmap2::dev_major>(in);
            to.dev_minor = load<mmap2::dev_minor>(in);
            to.ino = load<mmap2::ino>(in);
            to.ino_generation = load<mmap2::ino_generation>(in);
        }
        return true;
    }
};

template <class Record>
constexpr void read_task(record const& from, Record& to) noexcept {
    using layout::task;
    to.thread = {load<task::pid>(from.content), load<task::tid>(from.content)};
    to.parent = {load<task::ppid>(from.content), load<task::ptid>(from.content)};
    to.time = load<task::time>(from.content);
}
template <>
struct reading<fork_record> : reading_of<layout::task, record_type::fork> {
    static constexpr void read(record const& from, fork_record& to) noexcept {
        read_task(from, to);
    }
};
template <>
struct reading<exit_record> : reading_of<layout::task, record_type::exit> {
    static constexpr void read(record const& from, exit_record& to) noexcept {
        read_task(from, to);
    }
};

template <>
struct reading<lost_record>
    : reading_of<layout::lost_samples, record_type::lost, record_type::lost_samples> {
    static constexpr auto read(record const& from, lost_record& to) noexcept -> bool {
        using layout::lost, layout::lost_samples;
        if (from.type == record_type::lost_samples) {
            to.count = load<lost_samples::count>(from.content);
            return true;
        }
        to.id = load<lost::id>(from.content);
        to.count = load<lost::count>(from.content);
        return from.content.size() >= lost::bytes::size;
    }
};

template <>
struct reading<throttle_record>
    : reading_of<layout::throttle, record_type::throttle, record_type::unthrottle> {
    static constexpr void read(record const& from, throttle_record& to) noexcept {
        using layout::throttle;
        to.throttled = from.type == record_type::throttle;
        to.time = load<throttle::time>(from.content);
        to.id = load<throttle::id>(from.content);
        to.stream_id = load<throttle::stream_id>(from.content);
    }
};

template <>
struct reading<aux_record> : reading_of<layout::aux, record_type::aux> {
    static constexpr void read(record const& from, aux_record& to) noexcept {
        using layout::aux;
        to.offset = load<aux::aux_offset>(from.content);
        to.size = load<aux::aux_size>(from.content);
        to.flags = {load<aux::flags>(from.content)};
    }
};

template <>
struct reading<itrace_start_record> : reading_of<layout::itrace_start, record_type::itrace_start> {
    static constexpr void read(record const& from, itrace_start_record& to) noexcept {
        using layout::itrace_start;
        to.thread = {load<itrace_start::pid>(from.content), load<itrace_start::tid>(from.content)};
    }
};

template <>
struct reading<switch_record>
    : reading_of<layout::record_header, record_type::context_switch, record_type::switch_cpu_wide> {
    static constexpr auto read(record const& from, switch_record& to) noexcept -> bool {
        using wide = layout::switch_cpu_wide;
        to.out = (from.misc & misc_switch_out) != 0;
        to.preempted = to.out && (from.misc & misc_switch_out_preempt) != 0;
        to.has_other = from.type == record_type::switch_cpu_wide;
        if (!to.has_other) { return true; }
        to.other = {load<wide::next_prev_pid>(from.content),
                    load<wide::next_prev_tid>(from.content)};
        return from.content.size() >= wide::bytes::size;
    }
};

/// Reads the members of fixed size of a SAMPLE into `to`, and those of a `sample_id` into `id`.
constexpr auto read_sample(record const& from, sample_record& to, sample_id& id) noexcept -> bool {
    using is = sample_type;
    auto const has = from.event;
    quadwords in{from.content.from(layout::record_header::bytes::size)};
    if (in.rest().size() < size_t{8} * popcount(from.event.raw & sample_bits)) { return false; }
    id.has = {from.event.raw & id_bits};
    if (has.get<is::IDENTIFIER>()) { id.id = in.number(); }
    if (has.get<is::IP>()) { to.ip = in.number(); }
    if (has.get<is::TID>()) { id.thread = thread_in(in.next()); }
    if (has.get<is::TIME>()) { id.time = in.number(); }
    if (has.get<is::ADDR>()) { to.addr = in.number(); }
    if (has.get<is::ID>()) {
        uint64_t const own = in.number();
        if (!has.get<is::IDENTIFIER>()) { id.id = own; }
    }
    if (has.get<is::STREAM_ID>()) { id.stream_id = in.number(); }
    if (has.get<is::CPU>()) { id.cpu = static_cast<uint32_t>(in.number()); }
    if (has.get<is::PERIOD>()) { to.period = in.number(); }
    to.rest = in.rest();
    return true;
}
template <>
struct reading<sample_record> : reading_of<layout::record_header, record_type::sample> {
    static constexpr auto read(record const& from, sample_record& to) noexcept -> bool {
        sample_id ignored;
        return read_sample(from, to, ignored);
    }
};

template <>
struct reading<auxtrace_info_record> {
    static constexpr size_t least = layout::auxtrace_info::reserved_1::end;
    static constexpr auto accepts(record_type type) noexcept -> bool {
        return type == record_type::auxtrace_info;
    }
    static constexpr auto read(record const& from, auxtrace_info_record& to) noexcept -> bool {
        using info = layout::auxtrace_info;
        auto const in = from.content;
        to.type = load<info::type>(in);
        to.words = static_cast<unsigned>((in.size() - least) / 8);
        if (to.type != auxtrace_intel_pt) { return true; }
        // A member that the record has only a part of does not exist, as one that it lacks.
        auto const known = in.first(least + size_t{8} * to.words);
        to.PMU_TYPE = load<info::PMU_TYPE>(known);
        to.TIME_SHIFT = load<info::TIME_SHIFT>(known);
        to.TIME_MULT = load<info::TIME_MULT>(known);
        to.TIME_ZERO = load<info::TIME_ZERO>(known);
        to.CAP_USER_TIME_ZERO = load<info::CAP_USER_TIME_ZERO>(known);
        to.TSC_BIT = load<info::TSC_BIT>(known);
        to.NORETCOMP_BIT = load<info::NORETCOMP_BIT>(known);
        to.HAVE_SCHED_SWITCH = load<info::HAVE_SCHED_SWITCH>(known);
        to.SNAPSHOT_MODE = load<info::SNAPSHOT_MODE>(known);
        to.PER_CPU_MMAPS = load<info::PER_CPU_MMAPS>(known);
        to.MTC_BIT = load<info::MTC_BIT>(known);
        to.MTC_FREQ_BITS = load<info::MTC_FREQ_BITS>(known);
        to.TSC_CTC_N = load<info::TSC_CTC_N>(known);
        to.TSC_CTC_D = load<info::TSC_CTC_D>(known);
        to.CYC_BIT = load<info::CYC_BIT>(known);
        to.MAX_NONTURBO_RATIO = load<info::MAX_NONTURBO_RATIO>(known);
        auto const after = known.from(info::bytes::size);
        uint64_t const length = load<info::FILTER_STR_LEN>(known);
        // The filter ends with a NUL, and is padded to 8 bytes.
        size_t padded = 0;
        if (length != 0) {
            if (length >= after.size()) { return false; }
            to.filter = until_nul(after.first(static_cast<size_t>(length)));
            padded = static_cast<size_t>(length) / 8 * 8 + 8;
        }
        to.CAP_EVENT_TRACE = load_le(after.from(padded).first(8));
        return true;
    }
};

template <>
struct reading<auxtrace_record> : reading_of<layout::auxtrace, record_type::auxtrace> {
    static constexpr void read(record const& from, auxtrace_record& to) noexcept {
        using layout::auxtrace;
        to.size = load<auxtrace::trace_size>(from.content);
        to.offset = load<auxtrace::offset>(from.content);
        to.reference = load<auxtrace::reference>(from.content);
        to.idx = load<auxtrace::idx>(from.content);
        to.tid = load<auxtrace::tid>(from.content);
        to.cpu = load<auxtrace::cpu>(from.content);
    }
};

template <>
struct reading<auxtrace_error_record> {
    static constexpr size_t least = layout::auxtrace_error::old_size;
    static constexpr auto accepts(record_type type) noexcept -> bool {
        return type == record_type::auxtrace_error;
    }
    static constexpr void read(record const& from, auxtrace_error_record& to) noexcept {
        using error = layout::auxtrace_error;
        auto const in = from.content;
        to.type = load<error::type>(in);
        to.code = load<error::code>(in);
        to.cpu = load<error::cpu>(in);
        to.thread = {load<error::pid>(in), load<error::tid>(in)};
        to.format = load<error::fmt>(in);
        to.ip = load<error::ip>(in);
        size_t const message = to.format == 0 ? error::time::first : error::msg::first;
        to.message = until_nul(in.from(message).first(error::longest));
        if (to.format != 0) { to.time = load<error::time>(in); }
        if (to.format >= 2) {
            to.machine_pid = load<error::machine_pid>(in);
            to.vcpu = load<error::vcpu>(in);
        }
    }
};

template <>
struct reading<time_conv_record> {
    static constexpr size_t least = layout::time_conv::old_size;
    static constexpr auto accepts(record_type type) noexcept -> bool {
        return type == record_type::time_conv;
    }
    static constexpr void read(record const& from, time_conv_record& to) noexcept {
        using conv = layout::time_conv;
        auto const in = from.content;
        to.shift = load<conv::time_shift>(in);
        to.mult = load<conv::time_mult>(in);
        to.zero = load<conv::time_zero>(in);
        to.has_cycles = in.size() >= conv::cap_user_time_short::end;
        if (!to.has_cycles) { return; }
        to.cycles = load<conv::time_cycles>(in);
        to.mask = load<conv::time_mask>(in);
        to.cap_user_time_zero = load<conv::cap_user_time_zero>(in) != 0;
        to.cap_user_time_short = load<conv::cap_user_time_short>(in) != 0;
    }
};

template <>
struct reading<id_index_record> : reading_of<layout::id_index, record_type::id_index> {
    static constexpr auto read(record const& from, id_index_record& to) noexcept -> bool {
        using layout::id_index, layout::id_index_entry;
        to.count = load<id_index::nr>(from.content);
        to.entries = from.content.from(id_index::bytes::size);
        return to.count <= to.entries.size() / id_index_entry::bytes::size;
    }
};

template <>
struct reading<event_attr> {
    static constexpr size_t least = layout::header_attr::attr_offset + layout::attr::first_size;
    static constexpr auto accepts(record_type type) noexcept -> bool {
        return type == record_type::header_attr;
    }
    static constexpr auto read(record const& from, event_attr& to) noexcept -> bool {
        constexpr size_t begin = layout::header_attr::attr_offset;
        auto const in = from.content.from(begin);
        size_t const size = attr_size(in);
        if (size < layout::attr::first_size || size > in.size()) { return false; }
        to = attr_of(in, from.offset + begin);
        to.id_bytes = in.from(size);
        return true;
    }
};

template <>
struct reading<build_id_record>
    : reading_of<layout::header_build_id, record_type::header_build_id> {
    static constexpr void read(record const& from, build_id_record& to) noexcept {
        using layout::header_build_id;
        auto const in = from.content;
        bool const has_size = (from.misc & misc_build_id_size) != 0;
        constexpr size_t most = header_build_id::longest;
        size_t const size = has_size ? load<header_build_id::build_id_size>(in) : most;
        to.pid = load<header_build_id::pid>(in);
        to.build_id = in.from(header_build_id::build_id::first).first(size < most ? size : most);
        to.filename = until_nul(in.from(header_build_id::bytes::size));
    }
};

template <>
struct reading<feature_record> : reading_of<layout::header_feature, record_type::header_feature> {
    static constexpr void read(record const& from, feature_record& to) noexcept {
        using layout::header_feature;
        to.feature = load<header_feature::feat_id>(from.content);
        to.data = from.content.from(header_feature::bytes::size);
    }
};

template <>
struct reading<compressed_record>
    : reading_of<layout::record_header, record_type::compressed, record_type::compressed2> {
    static constexpr auto read(record const& from, compressed_record& to) noexcept -> bool {
        using layout::compressed2;
        if (from.type == record_type::compressed) {
            to.data = from.body();
            return true;
        }
        auto const in = from.content.from(compressed2::bytes::size);
        uint64_t const size = load<compressed2::data_size>(from.content);
        to.data = in.first(size < in.size() ? static_cast<size_t>(size) : in.size());
        return from.content.size() >= compressed2::bytes::size && size <= in.size();
    }
};

}  // namespace detail

// ------------------------------------------------------------------------------------ reading

/// A value, or why it could not be read.
template <class Value>
struct [[nodiscard]] parsed {
    read_status result{};
    Value value{};

    constexpr explicit operator bool() const noexcept { return bool{result}; }
    [[nodiscard]] constexpr auto operator->() const noexcept -> Value const* { return &value; }
};

template <class Value>
concept record_value = requires { detail::reading<Value>::least; };

/// True for a record that `read_as<Value>` reads.
template <record_value Value>
[[nodiscard]] constexpr auto holds(record const& which) noexcept -> bool {
    return which && detail::reading<Value>::accepts(which.type);
}

/// Reads the values of a record: `read_as<thread_name>(record)`.
///
/// Errors: other_record_type; record_too_short, also if a count in the record is too large for it.
template <record_value Value>
[[nodiscard]] constexpr auto read_as(record const& from) noexcept -> parsed<Value> {
    using how = detail::reading<Value>;
    if (!holds<Value>(from)) { return {{read_error::other_record_type, from.offset}, {}}; }
    parsed<Value> made;
    bool complete = from.content.size() >= how::least;
    if (complete) {
        if constexpr (same_as<decltype(how::read(from, made.value)), bool>) {
            complete = how::read(from, made.value);
        } else {
            how::read(from, made.value);
        }
    }
    if (!complete) { return {{read_error::record_too_short, from.offset}, {}}; }
    return made;
}

}  // namespace ptspec::file::perf_data
