// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/topa/regions_for_pages.hpp>
#include <ptspec/topa/single_range.hpp>
#include <ptspec/topa/walk.hpp>
#include <ptspec/vmx/shadow_page.hpp>

/// The walk over a guest's tables that makes the shadow table.
namespace ptspec::vmx::detail {

/// What the guest's output is translated to.
enum class shadow_kind : uint8_t {
    frozen,  ///< no output, or an error at once: the position is constant
    topa,    ///< tables to tables
    range,   ///< a single range of 4 KB or more to a ring
    direct,  ///< a single range in one page to a single range
};

/// What comes next in the guest's chain of tables.
enum class shadow_phase : uint8_t {
    off,
    entry,   ///< the entry at the position must be read
    region,  ///< its pages must be translated
    link,    ///< output continues at the start of table `link`
    error,   ///< output ends at the position
    done,
};

/// The shadow and the walk over the guest's tables that makes it.
///
/// A table of the guest has one successor, so the walk is a line: from the start to STOP, to an
/// error, or to a position that was shadowed before. Every page has pieces of one table only. The
/// origin of an entry is the position of its first byte.
struct shadow_state {
    shadow_page const* pages = nullptr;
    size_t page_count = 0;
    size_t used = 0;    ///< pages that are part of the shadow
    uint32_t slot = 0;  ///< the next entry of the last used page; the last is for END or an error

    shadow_kind kind = shadow_kind::frozen;
    shadow_phase phase = shadow_phase::off;
    topa::limits guest{};
    max_phys_addr host_width{};
    output_registers start{};   ///< of the guest
    uint32_t start_offset = 0;  ///< of the processor
    output_registers direct{};  ///< of the processor, for `direct`

    topa::position at{};      ///< the guest's entry
    uint64_t offset = 0;      ///< in its region: of the next piece
    phys_addr region_base{};  ///< guest-physical
    uint64_t region_size = 0;
    topa::entry active{};  ///< the guest's entry, as it was read
    phys_addr link{};
    phys_addr run_base{};  ///< host-physical, of the pages from `offset` on
    uint64_t run_bytes = 0;

    topa::position first{};  ///< the position of the first entry of the first page
    uint64_t first_offset = 0;
    topa::entry first_entry{};  ///< the guest's
};

/// An entry that ends output with an error: a reserved bit is set.
///
/// Source: OUT-060.
inline constexpr topa::entry error_entry{1 << 1};
/// The same, for an entry that nothing leads to.
inline constexpr topa::entry unused_entry{1 << 3};
/// The origin of an entry that nothing leads to. No table of a guest has this address.
inline constexpr topa::position no_origin{~uint64_t{0}, 0, 0};

constexpr auto position_now(shadow_state const& s) noexcept -> topa::position {
    return {s.at.table, s.at.index, static_cast<uint32_t>(s.offset)};
}

// ------------------------------------------------------------------------------------ pages

/// Puts an entry into the next slot.
constexpr void put(shadow_state& s, topa::entry what, topa::position origin) noexcept {
    shadow_page const& page = s.pages[s.used - 1];
    page.entries[s.slot] = what;
    page.origins[s.slot] = origin;
    ++s.slot;
}

/// Takes the next page. From the last used page a link leads to it, which has this origin.
constexpr auto take_page(shadow_state& s, topa::position origin) noexcept -> shadow_result {
    if (s.used == s.page_count) { return {shadow_progress::no_room}; }
    shadow_page const& page = s.pages[s.used];
    rule const broken = topa::check_table_base(page.address, s.host_width);
    if (broken != rule::none) { return {shadow_progress::bad_page, page.address, broken}; }
    for (uint32_t i = 0; i < shadow_page::entry_count; ++i) { page.entries[i] = unused_entry; }
    if (s.used != 0) { put(s, topa::link_to(page.address), origin); }
    ++s.used;
    s.slot = 0;
    return {shadow_progress::complete};
}

/// Closes the last page with an entry, and ends the walk.
constexpr void close(shadow_state& s, topa::entry what, topa::position origin) noexcept {
    put(s, what, origin);
    s.phase = shadow_phase::done;
}

/// Ends output by an error at the current position.
constexpr auto close_with_error(shadow_state& s) noexcept -> shadow_result {
    if (s.used == 0) {
        if (auto const taken = take_page(s, no_origin); !taken) { return taken; }
    }
    close(s, error_entry, position_now(s));
    return {shadow_progress::complete};
}

/// The page that begins with a position, or `used`.
constexpr auto find_page(shadow_state const& s, topa::position start) noexcept -> size_t {
    size_t page = 0;
    while (page != s.used && s.pages[page].origins[0] != start) { ++page; }
    return page;
}

// ------------------------------------------------------------------------------------ regions

/// The offset at which the interrupt is due. A table of a single region has it before the region
/// is full: a page before its end, if there is one.
///
/// Source: OUT-082, OUT-101, OUT-104, PRG-090.
constexpr auto interrupt_offset(shadow_state const& s) noexcept -> uint64_t {
    bool const early = !s.guest.many_entries && s.region_size > 4096;
    return early ? s.region_size - 4096 : s.region_size;
}

/// The offset up to which pages can form one piece.
constexpr auto piece_limit(shadow_state const& s) noexcept -> uint64_t {
    uint64_t limit = s.region_size;
    auto const until = [&](uint64_t offset) {
        if (s.offset < offset && offset < limit) { limit = offset; }
    };
    if (s.active.get<topa::entry::INT>()) { until(interrupt_offset(s)); }
    if (s.at == s.first) { until(s.first_offset); }
    return limit;
}

/// Puts the pieces of the translated pages.
constexpr auto put_run(shadow_state& s) noexcept -> shadow_result {
    using topa::entry;
    while (s.run_bytes != 0) {
        if (s.used == 0 || s.slot == shadow_page::entry_count - 1) {
            if (auto const taken = take_page(s, position_now(s)); !taken) { return taken; }
        }
        topa::region piece = topa::largest_region(s.run_base, s.run_bytes);
        uint64_t const bytes = topa::bytes_in(piece.size);
        uint64_t const end = s.offset + bytes;
        piece.interrupt = s.active.get<entry::INT>() && end == interrupt_offset(s);
        piece.stop = s.active.get<entry::STOP>() && end == s.region_size;
        put(s, topa::entry_for(piece), position_now(s));
        s.run_base += bytes;
        s.run_bytes -= bytes;
        s.offset = end;
    }
    return {shadow_progress::complete};
}

/// After the last piece before `piece_limit`.
constexpr void after_pieces(shadow_state& s) noexcept {
    if (s.offset == s.region_size) {
        if (s.active.get<topa::entry::STOP>()) {
            // Never reached, but a processor may read it in advance.
            return close(s, topa::link_to(s.pages[s.used - 1].address), no_origin);
        }
        s.offset = 0;
        if (s.kind == shadow_kind::topa) {
            s.phase = shadow_phase::entry;
            if (s.at.index == topa::last_index) {
                s.link = s.at.table;
                s.at.index = 0;
                s.phase = shadow_phase::link;
                return;
            }
            ++s.at.index;
        }
    }
    if (s.at == s.first && s.offset == s.first_offset) {
        close(s, topa::link_to(s.pages[0].address), position_now(s));
    }
}

/// Translates the pages of the region, and puts its pieces.
template <guest_memory_port Memory>
constexpr auto shadow_region(shadow_state& s, Memory& memory, uint64_t& steps) noexcept
    -> shadow_result {
    for (uint64_t const limit = piece_limit(s); s.offset + s.run_bytes < limit;) {
        if (steps == 0) { return {shadow_progress::paused}; }
        --steps;
        uint64_t const at = s.offset + s.run_bytes;
        auto const page = memory.translate((s.region_base + at).value, limit - at);
        if (page.kind == backing::missing) {
            return {shadow_progress::missing_page, s.region_base + at};
        }
        if (page.kind == backing::none) {
            if (auto const done = put_run(s); !done) { return done; }
            s.phase = shadow_phase::error;
            return {shadow_progress::complete};
        }
        uint64_t const whole = page.bytes < 4096 ? 4096 : align_down(page.bytes, 4096);
        uint64_t const bytes = whole < limit - at ? whole : limit - at;
        if (!is_aligned(page.host, 4096)) {
            return {shadow_progress::bad_page, page.host, rule::OUT_062};
        }
        if (!s.host_width.contains(page.host) || !s.host_width.contains(page.host + (bytes - 1))) {
            return {shadow_progress::bad_page, page.host, rule::OUT_063};
        }
        if (page.host != s.run_base + s.run_bytes) {
            if (auto const done = put_run(s); !done) { return done; }
        }
        if (s.run_bytes == 0) { s.run_base = page.host; }
        s.run_bytes += bytes;
    }
    if (auto const done = put_run(s); !done) { return done; }
    after_pieces(s);
    return {shadow_progress::complete};
}

// ------------------------------------------------------------------------------------ entries

/// A memory port that reads one entry.
template <class Memory>
struct single_load {
    Memory& memory;
    bool is_used = false;

    constexpr auto load(uint64_t address) noexcept -> port_value {
        if (is_used) { return {}; }
        is_used = true;
        return memory.load(address);
    }
    constexpr auto store(uint64_t, byte_view) const noexcept -> size_t { return 0; }
};

/// A region of the guest begins.
constexpr void begin_region(shadow_state& s, topa::entry active) noexcept {
    s.phase = shadow_phase::region;
    s.active = active;
    s.region_base = active.get<topa::entry::Base>();
    s.region_size = topa::bytes_in(active.get<topa::entry::Size>());
    if (s.used != 0) { return; }
    if (s.start_offset >= s.region_size) {  // OUT-064
        s.phase = shadow_phase::error;
        return;
    }
    s.offset = align_down(s.start_offset, 4096);
    s.start_offset %= 4096;
    s.first = s.at;
    s.first_offset = s.offset;
    s.first_entry = active;
}

/// Reads the entry at the position.
template <guest_memory_port Memory>
constexpr auto shadow_entry(shadow_state& s, Memory& memory, uint64_t& steps) noexcept
    -> shadow_result {
    if (s.used != 0 && s.at == s.first) {
        begin_region(s, s.first_entry);
        return {shadow_progress::complete};
    }
    if (steps == 0) { return {shadow_progress::paused}; }
    --steps;
    topa::position const here{s.at.table, s.at.index, 0};
    single_load<Memory> once{memory};
    auto const loaded = topa::load_entry(once, here, s.guest);
    if (loaded) {
        begin_region(s, loaded.active);
    } else if (loaded.where != here) {  // an END
        s.link = loaded.where.table;
        s.phase = shadow_phase::link;
    } else if (loaded.broken != rule::none) {
        s.phase = shadow_phase::error;
    } else {
        phys_addr const page = align_down(loaded.fault.address, 4096);
        if (memory.translate(page.value, 4096).kind != backing::none) {
            return {shadow_progress::missing_page, page};
        }
        s.phase = shadow_phase::error;  // reads as ones, which are reserved bits
    }
    return {shadow_progress::complete};
}

/// Continues at the start of a table.
constexpr auto shadow_link(shadow_state& s) noexcept -> shadow_result {
    topa::position const next{s.link, 0, 0};
    if (s.used == 0) {
        s.start_offset = 0;
    } else if (size_t const page = find_page(s, next); page != s.used) {
        close(s, topa::link_to(s.pages[page].address), position_now(s));
        return {shadow_progress::complete};
    } else if (auto const taken = take_page(s, position_now(s)); !taken) {
        return taken;
    }
    s.at = {s.link, 0};
    s.phase = shadow_phase::entry;
    return {shadow_progress::complete};
}

/// A range that lies in one page stays a single range.
template <guest_memory_port Memory>
constexpr auto shadow_direct(shadow_state& s, Memory& memory, uint64_t steps) noexcept
    -> shadow_result {
    if (steps == 0) { return {shadow_progress::paused}; }
    auto const page = memory.translate(s.region_base.value, 4096);
    if (page.kind == backing::missing) { return {shadow_progress::missing_page, s.region_base}; }
    if (page.kind == backing::none) {
        s.kind = shadow_kind::frozen;
        s.phase = shadow_phase::error;
        return {shadow_progress::complete};
    }
    rule const broken = topa::check_table_base(page.host, s.host_width);
    if (broken != rule::none) { return {shadow_progress::bad_page, page.host, broken}; }
    s.direct = {{page.host.value | s.start.base.raw % 4096}, s.start.mask_ptrs};
    s.phase = shadow_phase::done;
    return {shadow_progress::complete};
}

// ------------------------------------------------------------------------------------ positions

constexpr auto registers_of(topa::position where) noexcept -> output_registers {
    return {topa::base_of(where), topa::mask_ptrs_of(where)};
}

/// The page at a host-physical address, or `used`.
constexpr auto page_at(shadow_state const& s, phys_addr address) noexcept -> size_t {
    size_t page = 0;
    while (page != s.used && s.pages[page].address != address) { ++page; }
    return page;
}

/// The guest's position for an entry of a shadow table and an offset.
struct guest_position {
    bool found = false;
    topa::position where{};
};
constexpr auto guest_position_of(shadow_state const& s, size_t page, topa::position at) noexcept
    -> guest_position {
    if (page == s.used || at.index >= shadow_page::entry_count) { return {}; }
    topa::entry const active = s.pages[page].entries[at.index];
    topa::position origin = s.pages[page].origins[at.index];
    if (active == unused_entry || origin == no_origin) { return {}; }
    if (active.get<topa::entry::END>()) {
        size_t const next = page_at(s, topa::follow_end(active).table);
        return {true, s.pages[next].origins[0]};
    }
    uint64_t const most = active == error_entry ? low_bits(32) - origin.offset
                                                : topa::bytes_in(active.get<topa::entry::Size>());
    origin.offset += at.offset;  // wraps at the end of a range of 4 GB
    return {at.offset <= most, origin};
}

/// The offset in an entry of a shadow table for a position of the guest.
struct host_offset {
    bool found = false;
    uint32_t offset = 0;
};
constexpr auto host_offset_of(topa::entry active, topa::position origin,
                              topa::position guest) noexcept -> host_offset {
    using topa::entry;
    uint32_t const offset = guest.offset - origin.offset;
    if (origin.table != guest.table || origin.index != guest.index ||
        guest.offset < origin.offset) {
        return {};
    }
    if (active == error_entry) { return {true, offset}; }
    if (active.get<entry::END>()) { return {offset == 0, 0}; }
    uint64_t const size = topa::bytes_in(active.get<entry::Size>());
    return {offset < size || (offset == size && active.get<entry::STOP>()), offset};
}

}  // namespace ptspec::vmx::detail
