// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/output_run.hpp>

/// Output to a Table of Physical Addresses.
namespace ptspec::suite::checks {

namespace detail {

using topa::entry;
using topa::region_size;

/// The pages of regions, and their offsets in the given memory.
inline constexpr uint64_t page_bytes = given_memory::page_bytes;
constexpr auto page_of(uint32_t number, uint64_t first = 0) noexcept -> stretch {
    return {number * page_bytes + first, (number + 1) * page_bytes};
}

template <target T>
constexpr auto topa_ctl(armed<T>& on) noexcept -> ctl {
    return on.usual_ctl().with(ctl::ToPA{true});
}
/// Sets the output MSRs to a position in the first table, and STATUS to 0.
template <target T>
constexpr auto set_position(armed<T>& on, uint64_t index, uint64_t offset) noexcept -> bool {
    return on.set(status::address, 0) && on.set_output(on.page(0), index, offset);
}

}  // namespace detail

/// A region that is full is followed by the next entry at once, and a packet may lie in both.
struct topa_advances {
    static constexpr text name = "topa-next-entry";
    static constexpr rule_list rules{"OUT-050", "OUT-051", "OUT-052", "OUT-053", "OUT-040",
                                     "OUT-045", "OUT-042", "OUT-058", "OUT-002", "OUT-001",
                                     "PRG-083", "PRG-084", "PRG-085", "PRG-080"};
    static constexpr needs need =
        needs::tracing(wanted_output::topa_of_many_entries).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (uint64_t const index : few{uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{200}}) {
            for (uint64_t const before_end : few{uint64_t{1}, uint64_t{17}, uint64_t{22}}) {
                on.clear();
                on.set_entry(0, static_cast<uint32_t>(index), on.region(5));
                on.set_entry(0, static_cast<uint32_t>(index) + 1, on.region(7));
                uint64_t const first = 4096 - before_end;
                if (!detail::set_position(on, index, first)) { return on.result(); }
                stretch const path[] = {detail::page_of(5, first), detail::page_of(7)};
                detail::follow(on, "OUT-053"_rule, detail::topa_ctl(on), path, on.page(0),
                               index + 1);
                on.require(on.is_clear(detail::page_of(4)) && on.is_clear(detail::page_of(6)),
                           "OUT-051"_rule, "bytes outside the regions");
                if (on.is_broken()) { return on.result(); }
            }
        }
        return on.result();
    }
};

/// A region of the sizes for which there are pages. Its last byte is the one before its size.
struct topa_sizes {
    static constexpr text name = "topa-region-sizes";
    static constexpr rule_list rules{"OUT-041", "OUT-069", "OUT-052", "OUT-042", "PRG-089"};
    static constexpr needs need =
        needs::tracing(wanted_output::topa_of_many_entries).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        using topa::region_size;
        for (auto const size :
             few{region_size::size_4K, region_size::size_8K, region_size::size_16K,
                 region_size::size_32K, region_size::size_64K}) {
            uint64_t const bytes = bytes_in(size);
            // Regions up to 16 KB begin at page 4, larger ones at their size.
            uint64_t const page = bytes <= 0x4000 ? 4 : bytes / 4096;
            if (!on.has_pages(static_cast<uint32_t>(page + bytes / 4096))) { continue; }
            on.clear();
            on.set_entry(0, 0, on.region(static_cast<uint32_t>(page), size));
            on.set_entry(0, 1, on.region(3));
            uint64_t const first = bytes - 20;
            if (!detail::set_position(on, 0, first)) { return on.result(); }
            stretch const path[] = {{page * 4096 + first, page * 4096 + bytes}, detail::page_of(3)};
            detail::follow(on, "OUT-041"_rule, detail::topa_ctl(on), path, on.page(0), 1);
            if (on.is_broken()) { return on.result(); }
        }
        return on.result();
    }
};

/// An END entry leads to entry 0 of its table at once; its Size is ignored.
struct topa_end {
    static constexpr text name = "topa-end";
    static constexpr rule_list rules{"OUT-054", "OUT-043", "OUT-047", "OUT-045",
                                     "PRG-085", "PRG-089", "OUT-050"};
    static constexpr needs need =
        needs::tracing(wanted_output::topa_of_many_entries).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (uint32_t const to : few{armed<T>::table_page, armed<T>::second_table}) {
            for (uint64_t const size : few{uint64_t{0}, uint64_t{1}, uint64_t{15}}) {
                on.clear();
                on.set_entry(0, 0, on.region(5));
                on.set_entry(0, 1, on.region(6));
                on.set_entry(0, 2, on.link(to).with(topa::entry::Size{wrapped{size}}));
                on.set_entry(armed<T>::second_table, 0, on.region(7));
                if (!detail::set_position(on, 1, 4076)) { return on.result(); }
                uint32_t const next = to == armed<T>::table_page ? 5 : 7;
                stretch const path[] = {detail::page_of(6, 4076), detail::page_of(next)};
                detail::follow(on, "OUT-054"_rule, detail::topa_ctl(on), path, on.page(to), 0);
                if (on.is_broken()) { return on.result(); }
            }
        }
        return on.result();
    }
};

/// TraceEn becomes 1 with the index on an END entry: the link is followed, and the offset is 0.
struct topa_starts_at_end {
    static constexpr text name = "topa-enabled-at-end";
    static constexpr rule_list rules{"OUT-057", "OUT-054"};
    static constexpr needs need =
        needs::tracing(wanted_output::topa_of_many_entries).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        on.clear();
        on.set_entry(0, 1, on.link(armed<T>::second_table));
        on.set_entry(armed<T>::second_table, 0, on.region(6));
        if (!detail::set_position(on, 1, 0x100)) { return on.result(); }
        stretch const path[] = {detail::page_of(6)};
        detail::follow(on, "OUT-057"_rule, detail::topa_ctl(on), path,
                       on.page(armed<T>::second_table), 0);
        return on.result();
    }
};

/// Two entries may lead to the same region, and a region may have any aligned address.
struct topa_overlap {
    static constexpr text name = "topa-overlapping-regions";
    static constexpr rule_list rules{"OUT-070", "OUT-053"};
    static constexpr needs need =
        needs::tracing(wanted_output::topa_of_many_entries).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        on.clear();
        on.set_entry(0, 0, on.region(4, topa::region_size::size_8K));
        on.set_entry(0, 1, on.region(4));
        if (!detail::set_position(on, 0, 8192 - 20)) { return on.result(); }
        stretch const path[] = {{6 * 4096 - 20, 6 * 4096}, detail::page_of(4)};
        detail::follow(on, "OUT-070"_rule, detail::topa_ctl(on), path, on.page(0), 1);
        return on.result();
    }
};

/// A region that is filled exactly: the pointers name the next entry with offset 0.
struct topa_exactly_full {
    static constexpr text name = "topa-exactly-full";
    static constexpr rule_list rules{"OUT-053", "OUT-052", "PRG-143", "OUT-054"};
    static constexpr needs need =
        needs::tracing(wanted_output::topa_of_many_entries).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        require_full(on, true);
        require_full(on, false);
        return on.result();
    }

private:
    /// The entry after the region is a link to it, or a region.
    template <target T>
    static constexpr void require_full(armed<T>& on, bool links) noexcept {
        uint64_t const next = links ? 0 : 1;
        uint64_t bytes = 64;
        // PADs depend on where a trace begins: the number of bytes is found by trying.
        for (unsigned i = 0; i < 5; ++i) {
            on.clear();
            on.set_entry(0, 0, on.region(5));
            on.set_entry(0, 1, links ? on.link(armed<T>::table_page) : on.region(6));
            if (!detail::set_position(on, 0, 4096 - bytes)) { return; }
            auto const got = on.run(snippets::branches, detail::topa_ctl(on));
            if (!got.has_run) { return; }
            detail::require_no_end(on, "OUT-053"_rule, got);
            // After an END entry the first bytes are overwritten last.
            bool const is_full = got.offset() < 4096 - bytes;
            uint64_t const index = is_full ? next : 0;
            on.require(got.base.raw == on.page(0) && got.index() == index,
                       links ? "OUT-054"_rule : "OUT-053"_rule, "MaskOrTableOffset", index,
                       got.index(), ia32_rtit_output_mask_ptrs::address);
            if (on.is_broken() || got.offset() == 0) { return; }
            bytes = is_full ? bytes + got.offset() : bytes - (4096 - got.offset());
        }
        on.require(false, "OUT-053"_rule, "OutputOffset after a region that is full", 0, bytes);
    }
};

/// A table that was changed while TraceEn was 0 is read again.
struct topa_edited {
    static constexpr text name = "topa-edited";
    static constexpr rule_list rules{"OUT-059", "PRG-091", "OUT-006"};
    static constexpr needs need = needs::tracing(wanted_output::topa).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (uint32_t const page : few{5U, 6U, 7U}) {
            on.clear();
            on.set_entry(0, 0, on.region(page));
            if (!detail::set_position(on, 0, 0)) { return on.result(); }
            stretch const path[] = {detail::page_of(page)};
            detail::follow(on, "OUT-059"_rule, detail::topa_ctl(on), path, on.page(0), 0);
            if (on.is_broken()) { return on.result(); }
        }
        return on.result();
    }
};

/// Without MENTRY: one region, and END to the table.
struct topa_single_entry {
    static constexpr text name = "topa-of-one-entry";
    static constexpr rule_list rules{"OUT-100", "OUT-103", "OUT-054", "PRG-090"};
    static constexpr needs need = needs::tracing(wanted_output::topa).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        on.clear();
        on.set_entry(0, 0, on.region(5));
        on.set_entry(0, 1, on.link(armed<T>::table_page));
        if (!detail::set_position(on, 0, 4076)) { return on.result(); }
        stretch const path[] = {detail::page_of(5, 4076), detail::page_of(5)};
        detail::follow(on, "OUT-103"_rule, detail::topa_ctl(on), path, on.page(0), 0);
        return on.result();
    }
};

/// STOP: tracing ends with the last byte of the region, and the pointers stay.
struct topa_stop {
    static constexpr text name = "topa-stop";
    static constexpr rule_list rules{"OUT-080", "PRG-085", "PRG-086",
                                     "GEN-232", "GEN-022", "OUT-045"};
    static constexpr needs need =
        needs::tracing(wanted_output::topa_of_many_entries).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (uint64_t const index : few{uint64_t{0}, uint64_t{3}}) {
            on.clear();
            on.set_entry(0, static_cast<uint32_t>(index),
                         on.region(5).with(topa::entry::STOP{true}));
            on.set_entry(0, static_cast<uint32_t>(index) + 1, on.region(6));
            if (!detail::set_position(on, index, 4076)) { return on.result(); }
            auto const got = on.run(snippets::branches, detail::topa_ctl(on));
            if (!got.has_run) { return on.result(); }
            on.require(got.status.template get<status::Stopped>(), "OUT-080"_rule, "Stopped", 1, 0,
                       status::address);
            on.require(!got.status.template get<status::Error>(), "OUT-080"_rule, "Error", 0, 1,
                       status::address);
            on.require(got.base.raw == on.page(0) && got.index() == index, "OUT-080"_rule,
                       "MaskOrTableOffset", index, got.index(),
                       ia32_rtit_output_mask_ptrs::address);
            on.require(on.is_clear(detail::page_of(6)) && on.is_clear(detail::page_of(4)),
                       "GEN-232"_rule, "bytes after a region with STOP");
            on.require(!on.is_clear(detail::page_of(5, 4076)), "OUT-080"_rule,
                       "bytes before a region with STOP was full");
            // A newer edition has the size - 1.
            if (got.offset() == 4095) {
                on.observe("offset after STOP", 4095);
            } else {
                on.require(got.offset() == 4096, "PRG-086"_rule, "OutputOffset", 4096, got.offset(),
                           ia32_rtit_output_mask_ptrs::address);
            }
        }
        return on.result();
    }
};

/// After STOP: enabled again with Stopped = 1 nothing happens; with Stopped = 0 the offset, which
/// is the size, is an error until software moves it.
struct topa_after_stop {
    static constexpr text name = "topa-after-stop";
    static constexpr rule_list rules{"OUT-081", "OUT-064", "OUT-007", "GEN-020"};
    static constexpr needs need = needs::tracing(wanted_output::topa).with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        on.clear();
        on.set_entry(0, 0, on.region(5));
        if (!on.set(status::address, detail::stopped.raw) || !on.set_output(on.page(0), 0, 4096)) {
            return on.result();
        }
        auto const still = on.run(snippets::branches, detail::topa_ctl(on));
        if (!still.has_run) { return on.result(); }
        on.require(!still.status.template get<status::Error>(), "OUT-081"_rule,
                   "Error while Stopped is 1", 0, 1, status::address);
        on.require(on.is_clear({4 * 4096, 8 * 4096}), "OUT-007"_rule, "bytes of trace");
        detail::refuse_output(on, "OUT-064"_rule, detail::topa_ctl(on), on.page(0), 0, 4096);
        on.clear();
        on.set_entry(0, 0, on.region(5));
        if (!detail::set_position(on, 0, 0)) { return on.result(); }
        stretch const path[] = {detail::page_of(5)};
        detail::follow(on, "OUT-081"_rule, detail::topa_ctl(on), path, on.page(0), 0);
        return on.result();
    }
};

using topa_checks =
    type_list<topa_advances, topa_sizes, topa_end, topa_starts_at_end, topa_overlap,
              topa_exactly_full, topa_edited, topa_single_entry, topa_stop, topa_after_stop>;

}  // namespace ptspec::suite::checks
