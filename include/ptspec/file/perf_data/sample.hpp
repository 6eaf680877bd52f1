// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/read_as.hpp>

/// AUX area samples: SAMPLE records that contain bytes of a trace.
namespace ptspec::file::perf_data {

/// The attributes of an event that determine the members of its SAMPLE records.
struct sample_format {
    sample_type type{};
    perf_data::read_format read_format{};
    uint64_t branch_sample_type = 0;
    unsigned user_registers = 0;  ///< the number of registers
    unsigned intr_registers = 0;

    friend constexpr auto operator==(sample_format const&, sample_format const&) -> bool = default;
};

/// The format of the SAMPLE records of an event.
[[nodiscard]] constexpr auto sample_format_of(event_attr const& event) noexcept -> sample_format {
    return {.type = event.sample_type,
            .read_format = event.read_format,
            .branch_sample_type = event.branch_sample_type,
            .user_registers = popcount(event.sample_regs_user),
            .intr_registers = popcount(event.sample_regs_intr)};
}

namespace detail {

/// Bits of `branch_sample_type`: PERF_SAMPLE_BRANCH_HW_INDEX and PERF_SAMPLE_BRANCH_COUNTERS.
inline constexpr uint64_t branch_hw_index = uint64_t{1} << 17;
inline constexpr uint64_t branch_counters = uint64_t{1} << 19;

/// Skips members of a SAMPLE. If bytes are missing, `is_short` is set and no byte is left.
class sample_members {
public:
    constexpr explicit sample_members(byte_view from) noexcept : rest_{from} {}

    constexpr auto number() noexcept -> uint64_t { return load_le(bytes(sizeof(uint64_t))); }
    constexpr auto bytes(uint64_t const size) noexcept -> byte_view {
        if (size > rest_.size()) {
            is_short_ = true;
            rest_ = {};
            return {};
        }
        auto const found = rest_.first(static_cast<size_t>(size));
        rest_ = rest_.from(found.size());
        return found;
    }
    /// `count` elements of `size` bytes.
    constexpr void skip(uint64_t count, uint64_t size) noexcept {
        // Bytes are missing; the product may be too large for 64 bits.
        bool const is_much = count > rest_.size();
        (void)bytes(is_much ? ~uint64_t{0} : count * size);
    }
    constexpr void skip_numbers(uint64_t count) noexcept { skip(count, sizeof(uint64_t)); }
    [[nodiscard]] constexpr auto is_short() const noexcept -> bool { return is_short_; }

private:
    byte_view rest_;
    bool is_short_ = false;
};

constexpr void skip_counters(sample_members& in, read_format format) noexcept {
    using is = read_format;
    unsigned const times = unsigned{format.get<is::TOTAL_TIME_ENABLED>()} +
                           unsigned{format.get<is::TOTAL_TIME_RUNNING>()};
    unsigned const each = 1 + unsigned{format.get<is::ID>()} + unsigned{format.get<is::LOST>()};
    if (format.get<is::GROUP>()) {
        uint64_t const count = in.number();
        in.skip_numbers(times);
        in.skip(count, each * sizeof(uint64_t));
    } else {
        in.skip_numbers(times + each);
    }
}
constexpr void skip_branches(sample_members& in, uint64_t branch_sample_type) noexcept {
    constexpr unsigned entry = 24;  // perf_branch_entry
    uint64_t const count = in.number();
    if ((branch_sample_type & branch_hw_index) != 0) { in.skip_numbers(1); }
    in.skip(count, entry);
    if ((branch_sample_type & branch_counters) != 0) { in.skip_numbers(count); }
}
constexpr void skip_registers(sample_members& in, unsigned count) noexcept {
    bool const has_registers = in.number() != 0;  // abi
    if (has_registers) { in.skip_numbers(count); }
}
constexpr void skip_stack(sample_members& in) noexcept {
    uint64_t const size = in.number();
    (void)in.bytes(size);
    if (size != 0) { in.skip_numbers(1); }  // dyn_size
}

}  // namespace detail

/// The bytes of trace in a SAMPLE: the member AUX. They are empty if the event has none.
///
/// Shape:  `from` is a SAMPLE of an event with this format. The kernel pads the bytes to 8.
/// Errors: other_record_type; record_too_short, also if a count in the record is too large for it.
/// Source: Linux, kernel/events/core.c, `perf_output_sample`.
[[nodiscard]] constexpr auto aux_sample_of(record const& from, sample_format const& format) noexcept
    -> parsed<byte_view> {
    using is = sample_type;
    auto const sample = read_as<sample_record>(from);
    if (!sample) { return {sample.result, {}, {}}; }
    if (!format.type.get<is::AUX>()) { return {}; }
    detail::sample_members in{sample.rest};
    auto const has = format.type;
    if (has.get<is::READ>()) { detail::skip_counters(in, format.read_format); }
    if (has.get<is::CALLCHAIN>()) { in.skip_numbers(in.number()); }
    if (has.get<is::RAW>()) { (void)in.bytes(load_le(in.bytes(sizeof(uint32_t)))); }
    if (has.get<is::BRANCH_STACK>()) { detail::skip_branches(in, format.branch_sample_type); }
    if (has.get<is::REGS_USER>()) { detail::skip_registers(in, format.user_registers); }
    if (has.get<is::STACK_USER>()) { detail::skip_stack(in); }
    if (has.get<is::WEIGHT>() || has.get<is::WEIGHT_STRUCT>()) { in.skip_numbers(1); }
    if (has.get<is::DATA_SRC>()) { in.skip_numbers(1); }
    if (has.get<is::TRANSACTION>()) { in.skip_numbers(1); }
    if (has.get<is::REGS_INTR>()) { detail::skip_registers(in, format.intr_registers); }
    constexpr auto last_numbers = is{}.with(is::PHYS_ADDR{true}, is::CGROUP{true},
                                            is::DATA_PAGE_SIZE{true}, is::CODE_PAGE_SIZE{true});
    in.skip_numbers(popcount(has.raw & last_numbers.raw));
    auto const found = in.bytes(in.number());
    if (in.is_short()) { return {{read_error::record_too_short, from.offset}, {}, {}}; }
    return {{}, found, {}};
}

}  // namespace ptspec::file::perf_data
