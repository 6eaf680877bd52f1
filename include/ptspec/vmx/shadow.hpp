// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/topa/regions_for_pages.hpp>
#include <ptspec/topa/single_range.hpp>
#include <ptspec/topa/walk.hpp>

/// Shadow ToPA tables: Intel PT for a guest on a processor whose output cannot be guest-physical.
///
/// The VMM intercepts IA32_RTIT_OUTPUT_BASE and IA32_RTIT_OUTPUT_MASK_PTRS, always. When the guest
/// sets TraceEn, `shadow::begin` and `shadow::build` translate the guest's tables to host tables;
/// the processor gets the registers of `shadow::host`, and its position is translated back by
/// `shadow::to_guest`. Each enable needs a new shadow: a guest changes tables only while TraceEn is
/// 0.
namespace ptspec::vmx {

// ------------------------------------------------------------------------------------ memory

using access::output_registers;

/// What the VMM knows about a guest-physical address.
enum class backing : uint8_t {
    mapped,   ///< in host memory, where it stays until the shadow is no longer used
    missing,  ///< in guest memory, but not in host memory now
    none,     ///< there is no memory
};

/// Where guest memory is in host memory.
struct [[nodiscard]] translation {
    backing how = backing::none;
    uint64_t host = 0;      ///< for `mapped`: the host-physical address, a multiple of 4096
    uint64_t bytes = 4096;  ///< for `mapped`: contiguous from there on; a multiple of 4096
};

/// The physical memory of a guest.
///
/// `load` reads the 8 bytes at a guest-physical address.
///
/// `translate` translates the page at a guest-physical address and as many of the pages after it as
/// are contiguous in the host, up to `bytes` bytes, a multiple of 4096. The processor may write
/// trace to what it returns as mapped: the VMM must pin these pages, and treat them as modified,
/// until the shadow is no longer used. It is also called, and the result not used, for a page from
/// which `load` failed.
template <class Port>
concept guest_memory_port = requires(Port& port, uint64_t address, uint64_t bytes) {
    { port.load(address) } -> same_as<port_value>;
    { port.translate(address, bytes) } -> same_as<translation>;
};

/// A page of host memory for a shadow table, and where its entries come from. Borrowed.
struct shadow_page {
    static constexpr uint32_t entry_count = 4096 / sizeof(topa::entry);

    uint64_t address = 0;               ///< host-physical, a multiple of 4096
    topa::entry* entries = nullptr;     ///< the page itself: `entry_count` entries
    topa::position* origins = nullptr;  ///< `entry_count` positions of the guest, not in the page
};

// ------------------------------------------------------------------------------------ results

/// How far `shadow::build` came.
enum class shadow_progress : uint8_t {
    complete,      ///< the processor can use the tables
    paused,        ///< the limit of this call was reached: call `build` again
    missing_page,  ///< make the guest page present, then call `build` again
    no_room,       ///< all pages are used: `add_pages`, then `build` again; or `end_with_error`
    bad_page,      ///< the VMM gave a host page that breaks a rule; asked again by `build`
    not_begun,     ///< call `begin` first
};

/// The result of `shadow::build`.
struct [[nodiscard]] shadow_result {
    shadow_progress what = shadow_progress::not_begun;
    uint64_t address = 0;  ///< `missing_page`: the guest page; `bad_page`: the host page
    rule broken = rule::none;

    constexpr explicit operator bool() const noexcept { return what == shadow_progress::complete; }
    friend constexpr auto operator==(shadow_result const&, shadow_result const&) -> bool = default;
};

/// What the processor must hold while the guest traces.
struct host_output {
    output_registers at{};
    bool topa = false;  ///< CTL.ToPA, independently of the guest's
};

/// A translated position. False: the position does not belong to the shadow.
struct [[nodiscard]] translated_position {
    bool found = false;
    output_registers at{};

    constexpr explicit operator bool() const noexcept { return found; }
};

// ------------------------------------------------------------------------------------ state

namespace detail {

/// What the guest's output is translated to.
enum class shadow_kind : uint8_t {
    frozen,  ///< the position cannot change: nothing is output, or an error occurs at once
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

    topa::place at{};          ///< the guest's entry
    uint64_t offset = 0;       ///< in its region: of the next piece
    uint64_t region_base = 0;  ///< guest-physical
    uint64_t region_size = 0;
    topa::entry current{};  ///< the guest's entry, as it was read
    uint64_t link = 0;
    uint64_t run_base = 0;  ///< host-physical, of the pages from `offset` on
    uint64_t run_bytes = 0;

    topa::place first{};  ///< the position of the first entry of the first page
    uint64_t first_offset = 0;
    topa::entry first_entry{};  ///< the guest's
};

}  // namespace detail

/// The shadow of a guest's output. A value; pages are borrowed.
///
/// What the guest sees is what a processor with the same tables would show, except that entries are
/// read when TraceEn is set. An error occurs when output reaches an invalid entry, or a page with
/// no memory: there the processor finds an invalid entry. To drop bytes instead, map a page of the
/// host. For a guest without MENTRY the early interrupt comes a page before the end of the region;
/// for a region of one page it comes when the region is full.
///
/// Shape:  every region of the guest is one or more entries; INT and STOP are on the last. Every
///         table of the guest begins on a page of its own. The rest of a table, from the start of
///         output on, is the first page; the part before the start is shadowed only if a link leads
///         to it. Each entry of the guest is read once. A page takes 511 pieces of regions.
/// Units:  the work is bounded by the pages: for each piece, one entry is read at most, and up to
///         2^15 pages of its region are translated; each table is compared with all used pages.
///         `build` takes a limit, and a VMM can limit the sum.
/// Source: SDM vol. 3, "Intel Processor Trace and VMX"; PRG-083..089, PRG-184, PRG-185.
class shadow {
public:
    /// No shadow.
    constexpr shadow() noexcept = default;

    /// Begins a shadow when a guest sets TraceEn. `now` has the guest's registers, with the new CTL
    /// and the STATUS of that moment. An earlier shadow is gone.
    ///
    /// Errors: REG-024 no ToPA on the host; OUT-067 no tables of many entries; REG-025 no
    ///         single-range output, which a range of less than 4 KB needs.
    /// Source: OUT-001, OUT-007, OUT-022..024, PRG-184, PRG-185.
    [[nodiscard]] constexpr auto begin(cpu::capabilities const& host,
                                       cpu::capabilities const& guest, access::msr_state const& now,
                                       shadow_page const* pages, size_t page_count) noexcept
        -> rule;

    /// Builds tables until they are complete, or until the VMM has to act. Reads entries and
    /// translates runs of pages, at most `most_steps` together. A call continues where the one
    /// before ended.
    template <guest_memory_port Memory>
    constexpr auto build(Memory& memory, uint64_t most_steps = ~uint64_t{0}) noexcept
        -> shadow_result;

    /// More pages for a shadow that is not complete. The pages used so far must come first.
    constexpr void add_pages(shadow_page const* pages, size_t page_count) noexcept;

    /// Completes a shadow without the rest: output that reaches it ends with STATUS.Error. False if
    /// there is no page at all, or no shadow.
    [[nodiscard]] constexpr auto end_with_error() noexcept -> bool;

    /// Forgets the shadow. The pages are no longer borrowed.
    constexpr void invalidate() noexcept { s_ = {}; }

    /// True if the processor can use the tables.
    [[nodiscard]] constexpr auto is_complete() const noexcept -> bool {
        return s_.phase == detail::shadow_phase::done;
    }
    /// The number of pages used.
    [[nodiscard]] constexpr auto pages_used() const noexcept -> size_t { return s_.used; }
    /// The first position of the guest that is not shadowed yet.
    [[nodiscard]] constexpr auto reached() const noexcept -> topa::position;

    /// What the processor must hold when the guest starts. Only for a complete shadow.
    [[nodiscard]] constexpr auto host() const noexcept -> host_output;

    /// The guest's registers for a position of the processor: any that it may report, also after
    /// STOP and after an error.
    ///
    /// Source: OUT-053, OUT-054, OUT-080, PRG-086.
    [[nodiscard]] constexpr auto to_guest(output_registers const& host) const noexcept
        -> translated_position;

    /// The processor's registers for a position of the guest that is in the shadow.
    [[nodiscard]] constexpr auto to_host(output_registers const& guest) const noexcept
        -> translated_position;

private:
    detail::shadow_state s_{};
};

namespace detail {

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
    if (s.current.get<topa::entry::INT>()) { until(interrupt_offset(s)); }
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
        piece.interrupt = s.current.get<entry::INT>() && end == interrupt_offset(s);
        piece.stop = s.current.get<entry::STOP>() && end == s.region_size;
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
        if (s.current.get<topa::entry::STOP>()) {
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
        auto const page = memory.translate(s.region_base + at, limit - at);
        if (page.how == backing::missing) {
            return {shadow_progress::missing_page, s.region_base + at};
        }
        if (page.how == backing::none) {
            if (auto const done = put_run(s); !done) { return done; }
            s.phase = shadow_phase::error;
            return {shadow_progress::complete};
        }
        uint64_t const whole = page.bytes < 4096 ? 4096 : align_down(page.bytes, 4096);
        uint64_t const bytes = whole < limit - at ? whole : limit - at;
        if (!is_aligned(page.host, 4096)) {
            return {shadow_progress::bad_page, page.host, rule::OUT_062};
        }
        if (!s.host_width.contains(page.host) || !s.host_width.contains(page.host + bytes - 1)) {
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
constexpr void begin_region(shadow_state& s, topa::entry current) noexcept {
    s.phase = shadow_phase::region;
    s.current = current;
    s.region_base = current.get<topa::entry::Base>();
    s.region_size = topa::bytes_in(current.get<topa::entry::Size>());
    if (s.used != 0) { return; }
    if (s.start_offset >= s.region_size) {  // OUT-064
        s.phase = shadow_phase::error;
        return;
    }
    s.offset = align_down(s.start_offset, 4096);
    s.start_offset %= 4096;
    s.first = s.at;
    s.first_offset = s.offset;
    s.first_entry = current;
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
        begin_region(s, loaded.current);
    } else if (loaded.where != here) {  // an END
        s.link = loaded.where.table;
        s.phase = shadow_phase::link;
    } else if (loaded.broken != rule::none) {
        s.phase = shadow_phase::error;
    } else {
        uint64_t const page = align_down(loaded.fault.address, 4096);
        if (memory.translate(page, 4096).how != backing::none) {
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
    auto const page = memory.translate(s.region_base, 4096);
    if (page.how == backing::missing) { return {shadow_progress::missing_page, s.region_base}; }
    if (page.how == backing::none) {
        s.kind = shadow_kind::frozen;
        s.phase = shadow_phase::error;
        return {shadow_progress::complete};
    }
    rule const broken = topa::check_table_base(page.host, s.host_width);
    if (broken != rule::none) { return {shadow_progress::bad_page, page.host, broken}; }
    s.direct = {{page.host | s.start.base.raw % 4096}, s.start.mask_ptrs};
    s.phase = shadow_phase::done;
    return {shadow_progress::complete};
}

// ------------------------------------------------------------------------------------ positions

constexpr auto registers_of(topa::position where) noexcept -> output_registers {
    return {topa::base_of(where), topa::mask_ptrs_of(where)};
}

/// The page at a host-physical address, or `used`.
constexpr auto page_at(shadow_state const& s, uint64_t address) noexcept -> size_t {
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
    topa::entry const current = s.pages[page].entries[at.index];
    topa::position origin = s.pages[page].origins[at.index];
    if (current == unused_entry || origin == no_origin) { return {}; }
    if (current.get<topa::entry::END>()) {
        size_t const next = page_at(s, topa::follow_end(current).table);
        return {true, s.pages[next].origins[0]};
    }
    uint64_t const most = current == error_entry ? low_bits(32) - origin.offset
                                                 : topa::bytes_in(current.get<topa::entry::Size>());
    origin.offset += at.offset;  // wraps at the end of a range of 4 GB
    return {at.offset <= most, origin};
}

/// The offset in an entry of a shadow table for a position of the guest.
struct host_offset {
    bool found = false;
    uint32_t offset = 0;
};
constexpr auto host_offset_of(topa::entry current, topa::position origin,
                              topa::position guest) noexcept -> host_offset {
    using topa::entry;
    uint32_t const offset = guest.offset - origin.offset;
    if (origin.table != guest.table || origin.index != guest.index ||
        guest.offset < origin.offset) {
        return {};
    }
    if (current == error_entry) { return {true, offset}; }
    if (current.get<entry::END>()) { return {offset == 0, 0}; }
    uint64_t const size = topa::bytes_in(current.get<entry::Size>());
    return {offset < size || (offset == size && current.get<entry::STOP>()), offset};
}

}  // namespace detail

// ------------------------------------------------------------------------------------ functions

constexpr auto shadow::begin(cpu::capabilities const& host, cpu::capabilities const& guest,
                             access::msr_state const& now, shadow_page const* pages,
                             size_t page_count) noexcept -> rule {
    using ctl = access::ia32_rtit_ctl;
    using detail::shadow_kind;
    using detail::shadow_phase;
    invalidate();
    if (!host.supports(cpu::output_scheme::topa)) { return rule::REG_024; }
    if (!host.has_topa_of_many_entries()) { return rule::OUT_067; }
    detail::shadow_state s;
    s.pages = pages;
    s.page_count = page_count;
    s.guest = topa::limits::of(guest);
    s.host_width = host.max_phys_addr();
    s.start = now.output;
    auto const where = topa::position_in(now.output.base, now.output.mask_ptrs);
    s.start_offset = where.offset;
    bool const is_range = !now.ctl.get<ctl::ToPA>();
    auto const mask = single_range::mask_of(now.output.mask_ptrs);
    if (now.ctl.get<ctl::FabricEn>() || now.status.get<access::ia32_rtit_status::Stopped>() ||
        now.status.get<access::ia32_rtit_status::Error>() ||
        (is_range &&
         single_range::broken_rule(now.output.base, now.output.mask_ptrs) != rule::none)) {
        s.phase = shadow_phase::error;
    } else if (!is_range) {
        s.kind = shadow_kind::topa;
        s.phase = shadow_phase::entry;
        s.at = {where.table, where.index};
    } else {
        bool const is_in_page = mask < 4095;
        if (is_in_page && !host.supports(cpu::output_scheme::single_range)) {
            return rule::REG_025;
        }
        s.kind = is_in_page ? shadow_kind::direct : shadow_kind::range;
        s.phase = shadow_phase::region;
        s.at = s.first = {where.table, 0};
        s.region_base = is_in_page ? align_down(where.table, 4096) : where.table;
        s.region_size = mask + 1;
        s.offset = s.first_offset = align_down(where.offset, 4096);
        s.start_offset = where.offset % 4096;
    }
    s_ = s;
    return rule::none;
}

template <guest_memory_port Memory>
constexpr auto shadow::build(Memory& memory, uint64_t most_steps) noexcept -> shadow_result {
    using detail::shadow_phase;
    for (;;) {
        shadow_result step{shadow_progress::complete};
        switch (s_.phase) {
            case shadow_phase::off: return {};
            case shadow_phase::entry: step = detail::shadow_entry(s_, memory, most_steps); break;
            case shadow_phase::region:
                step = s_.kind == detail::shadow_kind::direct
                           ? detail::shadow_direct(s_, memory, most_steps)
                           : detail::shadow_region(s_, memory, most_steps);
                break;
            case shadow_phase::link: step = detail::shadow_link(s_); break;
            case shadow_phase::error: step = detail::close_with_error(s_); break;
            case shadow_phase::done: return step;
        }
        if (!step) { return step; }
    }
}

constexpr void shadow::add_pages(shadow_page const* pages, size_t page_count) noexcept {
    s_.pages = pages;
    s_.page_count = page_count;
}

constexpr auto shadow::end_with_error() noexcept -> bool {
    using detail::shadow_phase;
    if (s_.phase == shadow_phase::off) { return false; }
    if (s_.phase == shadow_phase::done) { return true; }
    if (s_.phase == shadow_phase::link) { s_.at = {s_.link, 0}; }
    if (s_.kind == detail::shadow_kind::direct) { s_.kind = detail::shadow_kind::frozen; }
    (void)detail::put_run(s_);  // as much as there is room for
    return static_cast<bool>(detail::close_with_error(s_));
}

constexpr auto shadow::reached() const noexcept -> topa::position {
    return detail::position_now(s_);
}

constexpr auto shadow::host() const noexcept -> host_output {
    if (s_.kind == detail::shadow_kind::direct) { return {s_.direct, false}; }
    return {detail::registers_of({s_.pages[0].address, 0, s_.start_offset}), true};
}

constexpr auto shadow::to_guest(output_registers const& host) const noexcept
    -> translated_position {
    using detail::shadow_kind;
    using pointers = access::ia32_rtit_output_mask_ptrs;
    if (!is_complete()) { return {}; }
    auto const where = topa::position_in(host.base, host.mask_ptrs);
    if (s_.kind == shadow_kind::frozen) { return {host == this->host().at, s_.start}; }
    if (s_.kind == shadow_kind::direct) {
        auto const moved = s_.direct.mask_ptrs.with(pointers::OutputOffset{wrapped{where.offset}});
        bool const is_inside = single_range::bytes_left(moved) != 0;
        return {is_inside && host == output_registers{s_.direct.base, moved},
                {s_.start.base, moved}};
    }
    auto const guest = detail::guest_position_of(s_, detail::page_at(s_, host.base.raw), where);
    if (s_.kind == shadow_kind::topa) { return {guest.found, detail::registers_of(guest.where)}; }
    uint64_t const mask = single_range::mask_of(s_.start.mask_ptrs);
    return {guest.found,
            {s_.start.base,
             s_.start.mask_ptrs.with(pointers::OutputOffset{wrapped{guest.where.offset & mask}})}};
}

constexpr auto shadow::to_host(output_registers const& guest) const noexcept
    -> translated_position {
    using detail::shadow_kind;
    using pointers = access::ia32_rtit_output_mask_ptrs;
    if (!is_complete()) { return {}; }
    auto where = topa::position_in(guest.base, guest.mask_ptrs);
    if (s_.kind == shadow_kind::frozen) { return {guest == s_.start, this->host().at}; }
    if (s_.kind != shadow_kind::topa) {
        auto const moved = s_.start.mask_ptrs.with(pointers::OutputOffset{wrapped{where.offset}});
        if (guest != output_registers{s_.start.base, moved} ||
            single_range::bytes_left(moved) == 0) {
            return {};
        }
        if (s_.kind == shadow_kind::direct) { return {true, {s_.direct.base, moved}}; }
        where.index = 0;
    }
    for (size_t i = 0; i < s_.used; ++i) {
        shadow_page const& page = s_.pages[i];
        for (uint32_t slot = 0; slot < shadow_page::entry_count; ++slot) {
            topa::entry const current = page.entries[slot];
            if (current == detail::unused_entry) { break; }
            auto const found = detail::host_offset_of(current, page.origins[slot], where);
            if (!found.found) { continue; }
            topa::position const at{page.address, slot, found.offset};
            return {true, detail::registers_of(
                              current.get<topa::entry::END>() ? topa::follow_end(current) : at)};
        }
    }
    return {};
}

}  // namespace ptspec::vmx
