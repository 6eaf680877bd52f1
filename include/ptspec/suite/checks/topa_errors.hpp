// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/topa.hpp>

/// Entries and pointers that are operational errors: where TraceEn becomes 1, and where output
/// reaches them.
namespace ptspec::suite::checks {

namespace detail {

/// Requires that an entry is an error at index `at`, from where tracing starts.
template <target T>
constexpr void refuse_entry(armed<T>& on, rule which, entry word, uint32_t at) noexcept {
    on.clear();
    on.set_entry(0, at, word);
    if (set_position(on, at, 0)) { refuse_output_now(on, which, topa_ctl(on)); }
}

/// Requires that an entry is an error that output reaches from the region before it: the bytes of
/// that region are stored, and the pointers name the entry, with offset 0.
template <target T>
constexpr void refuse_next_entry(armed<T>& on, rule which, entry word) noexcept {
    on.clear();
    on.set_entry(0, 0, on.region(5));
    on.set_entry(0, 1, word);
    if (!set_position(on, 0, 4076)) { return; }
    auto const got = on.run(snippets::branches, topa_ctl(on));
    if (!got.has_run) { return; }
    on.require(got.status.template get<status::Error>(), which, "Error", 1, 0, status::address);
    on.require(got.base.raw == on.page(0) && got.index() == 1, which, "MaskOrTableOffset", 1,
               got.index(), ia32_rtit_output_mask_ptrs::address);
    on.require(got.offset() == 0, which, "OutputOffset", 0, got.offset(),
               ia32_rtit_output_mask_ptrs::address);
    on.require(on.is_clear(page_of(4)) && on.is_clear({6 * 4096, 8 * 4096}), which,
               "bytes after an error");
}

/// Requires that an entry raises no error.
template <target T>
constexpr void take_entry(armed<T>& on, rule which, entry word, uint32_t page) noexcept {
    on.clear();
    on.set_entry(0, 0, word);
    if (!set_position(on, 0, 0)) { return; }
    stretch const path[] = {page_of(page)};
    follow(on, which, topa_ctl(on), path, on.page(0), 0);
}

}  // namespace detail

struct topa_reserved_bits {
    static constexpr text name = "topa-reserved-bits";
    static constexpr rule_list rules{"OUT-060", "OUT-008", "REG-042", "GEN-231",
                                     "PRG-088", "REG-056", "OUT-040"};
    static constexpr needs need =
        needs::tracing(wanted_output::topa_of_many_entries).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        detail::for_each_bit(topa::entry::reserved_mask(), [&](uint64_t one) {
            if (on.is_broken()) { return; }
            detail::refuse_entry(on, "OUT-060"_rule, topa::entry{on.region(5).raw | one}, 0);
            detail::refuse_entry(on, "OUT-060"_rule, topa::entry{on.region(5).raw | one}, 5);
            detail::refuse_next_entry(on, "OUT-060"_rule, topa::entry{on.region(6).raw | one});
            detail::refuse_next_entry(on, "OUT-060"_rule, topa::entry{on.link(0).raw | one});
        });
        return on.result();
    }
};

struct topa_misaligned_table {
    static constexpr text name = "topa-misaligned-table";
    static constexpr rule_list rules{"OUT-061", "REG-071", "PRG-088", "OUT-008"};
    static constexpr needs need = needs::tracing(wanted_output::topa).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (uint64_t low = 0x80; low < 0x1000; low *= 2) {
            detail::refuse_output(on, "OUT-061"_rule, detail::topa_ctl(on), on.page(0) + low, 0, 0);
        }
        return on.result();
    }
};

struct topa_misaligned_region {
    static constexpr text name = "topa-misaligned-region";
    static constexpr rule_list rules{"OUT-062", "PRG-088", "OUT-008", "OUT-042"};
    static constexpr needs need = needs::tracing(wanted_output::topa).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        using topa::region_size;
        detail::refuse_entry(on, "OUT-062"_rule, on.region(5, region_size::size_8K), 0);
        detail::refuse_entry(on, "OUT-062"_rule, on.region(3, region_size::size_8K), 0);
        detail::take_entry(on, "OUT-042"_rule, on.region(6, region_size::size_8K), 6);
        if (on.caps().has_topa_of_many_entries()) {
            detail::refuse_next_entry(on, "OUT-062"_rule, on.region(5, region_size::size_8K));
        }
        return on.result();
    }
};

struct topa_offset {
    static constexpr text name = "topa-offset-outside-region";
    static constexpr rule_list rules{"OUT-064", "PRG-088", "OUT-041"};
    static constexpr needs need = needs::tracing(wanted_output::topa).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (uint64_t const offset : few{uint64_t{4096}, uint64_t{4097}, uint64_t{8191}}) {
            on.clear();
            on.set_entry(0, 0, on.region(4));
            if (!detail::set_position(on, 0, offset)) { return on.result(); }
            detail::refuse_output_now(on, "OUT-064"_rule, detail::topa_ctl(on));
        }
        // The same offset in a larger region.
        on.clear();
        on.set_entry(0, 0, on.region(4, topa::region_size::size_8K));
        if (!detail::set_position(on, 0, 4096)) { return on.result(); }
        auto const got = on.run(snippets::branches, detail::topa_ctl(on));
        if (!got.has_run) { return on.result(); }
        detail::require_no_end(on, "OUT-064"_rule, got);
        return on.result();
    }
};

struct topa_end_with_int_or_stop {
    static constexpr text name = "topa-end-with-int-or-stop";
    static constexpr rule_list rules{"OUT-065", "PRG-088", "OUT-043"};
    static constexpr needs need =
        needs::tracing(wanted_output::topa_of_many_entries).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const end = on.link(0);
        for (auto const word :
             few{end.with(topa::entry::INT{true}), end.with(topa::entry::STOP{true}),
                 end.with(topa::entry::INT{true}, topa::entry::STOP{true})}) {
            detail::refuse_next_entry(on, "OUT-065"_rule, word);
            detail::refuse_entry(on, "OUT-065"_rule, word, 3);
        }
        return on.result();
    }
};

struct topa_end_at_zero {
    static constexpr text name = "topa-end-in-entry-0";
    static constexpr rule_list rules{"OUT-066", "OUT-047", "PRG-088"};
    static constexpr needs need = needs::tracing(wanted_output::topa).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        detail::refuse_entry(on, "OUT-066"_rule, on.link(0), 0);
        if (!on.caps().has_topa_of_many_entries()) { return on.result(); }
        // Entry 0 of a table that END leads to.
        on.clear();
        on.set_entry(0, 0, on.region(5));
        on.set_entry(0, 1, on.link(armed<T>::second_table));
        on.set_entry(armed<T>::second_table, 0, on.link(0));
        if (!detail::set_position(on, 0, 4076)) { return on.result(); }
        auto const got = on.run(snippets::branches, detail::topa_ctl(on));
        if (!got.has_run) { return on.result(); }
        on.require(got.status.template get<status::Error>(), "OUT-066"_rule, "Error", 1, 0,
                   status::address);
        on.require(got.index() == 0 && got.base.raw == on.page(armed<T>::second_table),
                   "OUT-066"_rule, "OUTPUT_BASE", on.page(armed<T>::second_table), got.base.raw,
                   ia32_rtit_output_base::address);
        return on.result();
    }
};

/// Without MENTRY entry 1 must be END, and lead to the same table.
struct topa_needs_mentry {
    static constexpr text name = "topa-of-many-entries-without-mentry";
    static constexpr rule_list rules{"OUT-067", "OUT-068", "PRG-088", "OUT-100"};
    static constexpr needs need =
        needs::tracing(wanted_output::topa).with(snippets::branches).with(features::no_mentry);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        detail::refuse_next_entry(on, "OUT-067"_rule, on.region(6));
        detail::refuse_entry(on, "OUT-067"_rule, on.region(6), 1);
        detail::refuse_entry(on, "OUT-067"_rule, on.region(6), 2);
        detail::refuse_next_entry(on, "OUT-068"_rule, on.link(armed<T>::second_table));
        return on.result();
    }
};

/// An address at or above 2^MAXPHYADDR. A processor that ignores it stores at an unknown place.
struct topa_beyond_maxphyaddr {
    static constexpr text name = "topa-beyond-maxphyaddr";
    static constexpr rule_list rules{"OUT-063", "PRG-088"};
    static constexpr needs need = [] {
        auto made = needs::tracing(wanted_output::topa).with(snippets::branches);
        made.is_dangerous = true;
        return made;
    }();

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        unsigned const width = on.caps().max_phys_addr().bits;
        for (unsigned bit = width; bit < 64; ++bit) {
            uint64_t const high = uint64_t{1} << bit;
            detail::refuse_entry(on, "OUT-063"_rule, topa::entry{on.region(5).raw | high}, 0);
            if (on.caps().has_topa_of_many_entries()) {
                detail::refuse_next_entry(on, "OUT-063"_rule, topa::entry{on.link(0).raw | high});
            }
            if (on.is_broken()) { break; }
        }
        return on.result();
    }
};

using topa_error_checks = type_list<topa_reserved_bits, topa_misaligned_table,
                                    topa_misaligned_region, topa_offset, topa_end_with_int_or_stop,
                                    topa_end_at_zero, topa_needs_mentry, topa_beyond_maxphyaddr>;

}  // namespace ptspec::suite::checks
