// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/output_run.hpp>

/// Output to a single range.
namespace ptspec::suite::checks {

namespace detail {

/// The upper half of the first page: a range that is also entries of a table.
inline constexpr uint64_t half = 0x800;

}  // namespace detail

/// Bytes go from the offset on, and after the last byte of the range to its first.
struct range_wraps {
    static constexpr text name = "single-range-wraps";
    static constexpr rule_list rules{"OUT-021", "OUT-020", "OUT-027", "OUT-028",
                                     "OUT-025", "OUT-002", "OUT-001", "OUT-005",
                                     "OUT-006", "PRG-081", "PRG-080", "PRG-063"};
    static constexpr needs need =
        needs::tracing(wanted_output::single_range).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (uint64_t size = 0x100; size <= 0x800; size *= 2) {
            // The first byte at the last byte, at the last line, and in the middle.
            for (uint64_t const before_end : few{uint64_t{1}, uint64_t{17}, uint64_t{24}}) {
                on.clear(true);
                uint64_t const base = on.page(0) + detail::half;
                uint64_t const first = size - before_end;
                if (!on.set(status::address, 0) || !on.set_output(base, size / 128 - 1, first)) {
                    return on.result();
                }
                stretch const path[] = {{detail::half + first, detail::half + size},
                                        {detail::half, detail::half + size}};
                detail::follow(on, "OUT-021"_rule, on.usual_ctl(), path, base, size / 128 - 1);
                if (on.is_broken()) { return on.result(); }
                on.require(on.is_armed(armed<T>::table_page, {0, detail::half}) &&
                               on.is_armed(armed<T>::table_page, {detail::half + size, 0x1000}),
                           "OUT-021"_rule, "bytes outside the range");
            }
        }
        return on.result();
    }
};

/// A range has 128 bytes or more.
struct range_of_128 {
    static constexpr text name = "single-range-of-128-bytes";
    static constexpr rule_list rules{"OUT-020", "OUT-021", "OUT-025"};
    static constexpr needs need =
        needs::tracing(wanted_output::single_range).with(snippets::nothing);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        on.clear();
        if (!on.set(status::address, 0) || !on.set_output(on.page(0) + detail::half, 0, 0)) {
            return on.result();
        }
        auto const got = on.run(snippets::nothing, on.usual_ctl());
        if (!got.has_run) { return on.result(); }
        detail::require_no_end(on, "OUT-020"_rule, got);
        on.require(got.offset() < 128, "OUT-020"_rule, "OutputOffset", 127, got.offset(),
                   ia32_rtit_output_mask_ptrs::address);
        on.require(!on.is_armed(armed<T>::table_page, {detail::half, detail::half + 128}),
                   "OUT-020"_rule, "bytes in the range");
        on.require(on.is_armed(armed<T>::table_page, {0, detail::half}) &&
                       on.is_armed(armed<T>::table_page, {detail::half + 128, 0x1000}),
                   "OUT-020"_rule, "bytes outside the range");
        return on.result();
    }
};

/// In a range of two pages the bytes from the second page on go to that page.
struct range_of_two_pages {
    static constexpr text name = "single-range-of-two-pages";
    static constexpr rule_list rules{"OUT-021", "OUT-020", "OUT-027"};
    static constexpr needs need =
        needs::tracing(wanted_output::single_range).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!on.set_usual_output()) { return on.result(); }
        auto const got = on.run(snippets::branches, on.usual_ctl());
        if (!got.has_run) { return on.result(); }
        detail::require_no_end(on, "OUT-021"_rule, got);
        on.require(0x1000 < got.offset() && got.offset() <= 0x2000, "OUT-021"_rule, "OutputOffset",
                   0x1001, got.offset(), ia32_rtit_output_mask_ptrs::address);
        on.require(on.is_armed(armed<T>::table_page, {0, 0x1000}), "OUT-021"_rule,
                   "bytes in the first page");
        if (on.is_broken()) { return on.result(); }
        stretch const part[] = {{0x1000, got.offset()}};
        on.collect(part, on.bytes());
        on.read_bytes(on.usual_ctl());
        detail::require_branches(on, "OUT-021"_rule);
        return on.result();
    }
};

/// Values of the output MSRs that the rules refuse when TraceEn becomes 1: WRMSR does not fault,
/// Error becomes 1, and nothing is stored.
struct range_errors {
    static constexpr text name = "single-range-errors";
    static constexpr rule_list rules{"OUT-022", "OUT-023", "OUT-024", "OUT-008",
                                     "OUT-029", "REG-042", "GEN-231", "PRG-082",
                                     "REG-056", "REG-073", "PRG-023", "OUT-141"};
    static constexpr needs need =
        needs::tracing(wanted_output::single_range).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        uint64_t const page = on.page(0);
        // A mask with a gap.
        for (uint64_t const index : few{uint64_t{2}, uint64_t{5}, uint64_t{13}, uint64_t{14}}) {
            detail::refuse_output(on, "OUT-022"_rule, on.usual_ctl(), page, index, 0);
        }
        // A base inside the range.
        detail::refuse_output(on, "OUT-023"_rule, on.usual_ctl(), page + 0x80, 1, 0);
        detail::refuse_output(on, "OUT-023"_rule, on.usual_ctl(), page + 0x800, 31, 0);
        detail::refuse_output(on, "OUT-023"_rule, on.usual_ctl(),
                              on.page(armed<T>::second_table) + 0xC00, 15, 0);
        // An offset after the last byte.
        detail::refuse_output(on, "OUT-024"_rule, on.usual_ctl(), page, 0, 0x80);
        detail::refuse_output(on, "OUT-024"_rule, on.usual_ctl(), page, 31, 0x1000);
        return on.result();
    }
};

/// Between two runs the output MSRs stay, and the trace continues where it ended.
struct range_continues {
    static constexpr text name = "output-continues";
    static constexpr rule_list rules{"OUT-006", "OUT-058", "OUT-005", "PRG-043"};
    static constexpr needs need = needs::tracing().with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const first = on.trace(snippets::branches, on.usual_ctl());
        if (!first.has_run || !on.set(status::address, 0)) { return on.result(); }
        uint64_t const first_byte = first.offset();
        auto const second = on.run(snippets::branches, on.usual_ctl());
        if (!second.has_run) { return on.result(); }
        uint64_t const page = on.uses_topa() ? armed<T>::first_region * 4096 : 0;
        on.require(second.offset() > first_byte, "OUT-006"_rule, "OutputOffset", first_byte + 1,
                   second.offset(), ia32_rtit_output_mask_ptrs::address);
        if (on.is_broken()) { return on.result(); }
        stretch const part[] = {{page + first_byte, page + second.offset()}};
        on.collect(part, on.bytes());
        on.read_bytes(on.usual_ctl());
        detail::require_branches(on, "OUT-006"_rule);
        return on.result();
    }
};

using single_range_checks =
    type_list<range_wraps, range_of_128, range_of_two_pages, range_errors, range_continues>;

}  // namespace ptspec::suite::checks
