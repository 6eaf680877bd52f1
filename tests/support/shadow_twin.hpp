// SPDX-License-Identifier: BSL-1.0
#pragma once

// A guest whose output is shadowed, and the same guest on a processor of its own.

#include <support/dice.hpp>

#include <ptspec/access/enables.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/trace_unit.hpp>
#include <ptspec/engine/unit_image.hpp>
#include <ptspec/vmx/shadow.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace ptspec::test::shadowed {

using vmx::backing;
using ctl = access::ia32_rtit_ctl;
using status = access::ia32_rtit_status;

/// How often interesting things occurred.
struct counts {
    std::uint64_t writes = 0;
    std::uint64_t enables = 0;
    std::uint64_t errors = 0;
    std::uint64_t errors_later = 0;  ///< not when TraceEn was set
    std::uint64_t pmis = 0;
    std::uint64_t moves = 0;  ///< a page moved in the host while the guest traced
    std::uint64_t faults = 0;
    std::uint64_t missing = 0;
    std::uint64_t no_room = 0;
    std::uint64_t cut = 0;
    std::uint64_t max_pages = 0;
    std::uint64_t max_calls = 0;
    std::uint64_t ranges = 0;
    std::uint64_t direct = 0;
    std::uint64_t rules[256] = {};  ///< why output ended: OUT rules
};

inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t data_pages = 32;
inline constexpr std::uint64_t tables_at[] = {0x4000'0000, 0x4000'1000, 0x4000'2000, 0x4FFF'F000};
inline constexpr std::size_t table_pages = 4;
inline constexpr std::size_t guest_pages = data_pages + table_pages;
inline constexpr std::size_t host_pages = 80;
inline constexpr std::size_t max_shadow_pages = 32;
inline constexpr std::uint64_t host_at = 0x9'0000'0000;
inline constexpr std::uint64_t shadow_at = 0xA'0000'0000;
inline constexpr unsigned char canary = 0xC5;

/// The guest-physical address of a page of the guest.
constexpr auto address_of(std::size_t page) -> std::uint64_t {
    return page < data_pages ? page * page_bytes : tables_at[page - data_pages];
}
/// The page of the guest at an address, or `guest_pages`.
constexpr auto page_at(std::uint64_t address) -> std::size_t {
    if (address < data_pages * page_bytes) {
        return static_cast<std::size_t>(address / page_bytes);
    }
    for (std::size_t i = 0; i < table_pages; ++i) {
        if (address - tables_at[i] < page_bytes) { return data_pages + i; }
    }
    return guest_pages;
}

/// The memory of both processors, and the VMM's view of it.
class world {
public:
    std::vector<std::uint8_t> bare = std::vector<std::uint8_t>(guest_pages * page_bytes);
    std::vector<std::uint8_t> host = std::vector<std::uint8_t>(host_pages * page_bytes);
    backing how[guest_pages] = {};
    std::size_t host_of[guest_pages] = {};  ///< the host page of a guest page
    bool is_taken[host_pages] = {};
    bool is_pinned[host_pages] = {};   ///< the processor may write to it
    std::size_t gone = host_pages;     ///< a store to this host page faults
    std::uint64_t pmis = 0;            ///< of the processor with a shadow
    std::uint64_t calls = 0;           ///< calls of the VMM's port since the last `begin`
    char const* wrong = nullptr;       ///< the first thing that went wrong
    std::vector<topa::entry> entries;  ///< of all shadow pages
    std::vector<topa::position> origins;
    std::vector<vmx::shadow_page> pages;

    explicit world(dice const& from) : from_{from} {
        entries.resize(max_shadow_pages * 512);
        origins.resize(max_shadow_pages * 512);
        for (std::size_t i = 0; i < max_shadow_pages; ++i) {
            // Neither contiguous nor in order.
            pages.push_back({shadow_at + (max_shadow_pages - i) * 2 * page_bytes,
                             entries.data() + i * 512, origins.data() + i * 512});
        }
        std::memset(host.data(), canary, host.size());
        auto last = static_cast<std::size_t>(from_.roll(host_pages));
        bool const is_whole = from_.chance(40);
        for (std::size_t page = 0; page < guest_pages; ++page) {
            last = from_.chance(65) && last + 1 < host_pages && !is_taken[last + 1] ? last + 1
                                                                                    : free_page();
            host_of[page] = last;
            is_taken[last] = true;
            bool const is_none = !is_whole && from_.chance(page < data_pages ? 5 : 8);
            how[page] = is_none            ? backing::none
                        : from_.chance(15) ? backing::missing
                                           : backing::mapped;
            for (std::size_t i = 0; i < page_bytes; ++i) {
                bare[page * page_bytes + i] = static_cast<std::uint8_t>(page < data_pages ? 1 : 0);
            }
            copy_to_host(page);
        }
        // On the processor of the guest alone, output ends with an error where there is no memory.
        std::uint64_t next = 0;
        for (std::size_t page = 0; page < guest_pages; ++page) {
            if (how[page] == backing::none) { continue; }
            if (address_of(page) != next) { none_.push_back({next, address_of(page) - 1}); }
            next = address_of(page) + page_bytes;
        }
        none_.push_back({next, ~std::uint64_t{0}});
    }

    [[nodiscard]] auto restricted() const -> topa::restricted_memory {
        return {.extra = none_.data(), .extra_count = none_.size()};
    }
    void require(bool condition, char const* what) {
        if (!condition && wrong == nullptr) { wrong = what; }
    }

    /// Puts a word into the guest's memory.
    void put(std::uint64_t address, std::uint64_t word) {
        std::size_t const page = page_at(address);
        if (page == guest_pages) { return; }
        store_le64(bare.data() + page * page_bytes + address % page_bytes, word);
        store_le64(host.data() + host_of[page] * page_bytes + address % page_bytes, word);
    }
    [[nodiscard]] auto word_at(std::uint64_t address) const -> std::uint64_t {
        return load_le64(bare.data() + page_at(address) * page_bytes + address % page_bytes);
    }
    /// Moves a page of the guest to another page of the host.
    void move(std::size_t page) {
        std::size_t const before = host_of[page];
        std::size_t const after = free_page();
        std::memcpy(host.data() + after * page_bytes, host.data() + before * page_bytes,
                    page_bytes);
        std::memset(host.data() + before * page_bytes, canary, page_bytes);
        is_taken[before] = is_pinned[before] = false;
        is_taken[after] = true;
        host_of[page] = after;
    }
    void unpin() {
        for (bool& one : is_pinned) { one = false; }
        calls = 0;
        std::memset(reads_, 0, sizeof reads_);
    }
    /// The memories of the two guests are equal, and no other memory has changed.
    void compare() {
        for (std::size_t page = 0; page < guest_pages; ++page) {
            require(how[page] == backing::none ||
                        std::memcmp(bare.data() + page * page_bytes,
                                    host.data() + host_of[page] * page_bytes, page_bytes) == 0,
                    "the bytes of the guest");
        }
        for (std::size_t page = 0; page < host_pages; ++page) {
            for (std::size_t i = 0; !is_taken[page] && i < page_bytes; i += 8) {
                require(load_le64(host.data() + page * page_bytes + i) == 0xC5C5'C5C5'C5C5'C5C5,
                        "memory that is not the guest's");
            }
        }
    }

    // ---------------------------------------------------------------------------- the ports

    /// The VMM's view of the guest.
    auto load(std::uint64_t address) -> port_value {
        ++calls;
        require(address % 8 == 0, "a load is aligned");
        std::size_t const page = page_at(address);
        if (page == guest_pages || how[page] != backing::mapped) { return {}; }
        // A table without END runs into the next one, so a word can be in four tables.
        auto& reads = reads_[page * 512 + address % page_bytes / 8];
        require(++reads <= table_pages, "an entry is read once");
        return {true, load_le64(host.data() + host_of[page] * page_bytes + address % page_bytes)};
    }
    auto translate(std::uint64_t address, std::uint64_t bytes) -> vmx::translation {
        ++calls;
        require(address % page_bytes == 0 && bytes % page_bytes == 0 && bytes != 0,
                "whole pages are translated");
        std::size_t const page = page_at(address);
        if (page == guest_pages) { return {}; }
        if (how[page] != backing::mapped) { return {how[page]}; }
        vmx::translation found{backing::mapped, host_at + host_of[page] * page_bytes, page_bytes};
        is_pinned[host_of[page]] = true;
        bool const runs = from_.chance(70);
        for (std::size_t next = page + 1; runs && next < data_pages && found.bytes < bytes;
             ++next) {
            if (how[next] != backing::mapped || host_of[next] != host_of[next - 1] + 1) { break; }
            is_pinned[host_of[next]] = true;
            found.bytes += page_bytes;
        }
        return found;
    }

    /// Copies up to `room` bytes, and returns how many.
    static auto copy_in_page(std::uint8_t* to, std::size_t room, byte_view bytes) -> std::size_t {
        byte_view const part = bytes.first(room);
        copy_bytes(to, part.data(), part.size());
        return part.size();
    }

    /// The memory of the processor with a shadow.
    struct host_port {
        world& of;

        auto load(std::uint64_t address) -> port_value {
            for (auto const& page : of.pages) {
                if (address - page.address < page_bytes) {
                    return {true, page.entries[address % page_bytes / 8].raw};
                }
            }
            of.require(false, "the processor reads shadow tables only");
            return {};
        }
        auto store(std::uint64_t address, byte_view bytes) -> std::size_t {
            std::size_t done = 0;
            while (done < bytes.size()) {
                std::uint64_t const at = address + done - host_at;
                auto const page = static_cast<std::size_t>(at / page_bytes);
                bool const is_guests = at < of.host.size() && of.is_pinned[page];
                of.require(is_guests, "the processor writes to pages of the guest only");
                if (!is_guests || page == of.gone) { break; }
                done += copy_in_page(of.host.data() + at, page_bytes - at % page_bytes,
                                     bytes.from(done));
            }
            return done;
        }
        void raise() { ++of.pmis; }
    };
    /// The memory of the processor of the guest alone.
    struct bare_port {
        using ignores_pmis = bare_port;

        world& of;

        auto load(std::uint64_t address) -> port_value {
            std::size_t const page = page_at(address);
            of.require(page != guest_pages && of.how[page] != backing::none, "restricted memory");
            if (page == guest_pages) { return {}; }
            return {true, load_le64(of.bare.data() + page * page_bytes + address % page_bytes)};
        }
        auto store(std::uint64_t address, byte_view bytes) -> std::size_t {
            std::size_t done = 0;
            while (done < bytes.size()) {
                std::uint64_t const at = address + done;
                std::size_t const page = page_at(at);
                bool const is_data = page < data_pages && of.how[page] != backing::none;
                of.require(is_data, "only data");
                if (!is_data) { break; }
                done += copy_in_page(of.bare.data() + page * page_bytes + at % page_bytes,
                                     page_bytes - at % page_bytes, bytes.from(done));
            }
            return done;
        }
    };

private:
    dice const& from_;
    std::vector<topa::phys_range> none_;
    std::uint8_t reads_[guest_pages * 512] = {};

    auto free_page() -> std::size_t {
        auto page = static_cast<std::size_t>(from_.roll(host_pages));
        while (is_taken[page]) { page = (page + 1) % host_pages; }
        return page;
    }
    void copy_to_host(std::size_t page) {
        std::memcpy(host.data() + host_of[page] * page_bytes, bare.data() + page * page_bytes,
                    page_bytes);
    }
};

/// A guest, its tables, and a VMM that shadows them.
class guest {
public:
    cpu::capabilities caps = cpu::preset::P_FUT;
    cpu::capabilities host_caps = cpu::preset::P_FUT;
    world ram;
    vmx::shadow shadow;
    counts& seen;
    bool is_cut = false;  ///< the shadow ends early, with an error

    guest(dice const& from, counts& count) : ram{from}, seen{count}, from_{from} {
        auto const width = [&] { return static_cast<std::uint32_t>(from_.one_of({36, 39, 46})); };
        caps.leaf_80000008_eax = {0x3000U | width()};
        host_caps.leaf_80000008_eax = {0x3000U | width()};
        if (from_.chance(25)) {
            caps.leaf_14_0_ecx = caps.leaf_14_0_ecx.with(reg::cpuid_14h_0_ecx::MENTRY{false});
        }
    }

    [[nodiscard]] auto has_many_entries() const -> bool { return caps.has_topa_of_many_entries(); }
    /// The behavior of the guest's own processor.
    [[nodiscard]] auto bare_options() const -> engine::output_options {
        return {.restricted = ram.restricted(),
                .when_restricted = engine::restricted_access::error,
                .pmi_lead_bytes = page_bytes};
    }

    // ------------------------------------------------------------------------ the guest's part

    /// New tables and a new position.
    void set_up(access::msr_state& now) {
        if (from_.chance(25)) { return set_up_range(now); }
        now.ctl = now.ctl.with(ctl::ToPA{true}, ctl::InjectPsbPmiOnEnable{from_.chance(30)});
        bool const is_usual = !has_many_entries() && from_.chance(85);
        for (std::size_t i = 0; i < table_pages; ++i) {
            is_usual ? write_single_entry(tables_at[i]) : write_table(tables_at[i]);
        }
        if (!has_many_entries()) { remove_late_interrupts(); }
        std::uint64_t table = tables_at[from_.roll(3)];
        std::uint64_t index = is_usual || from_.chance(50) ? 0 : from_.roll(8);
        if (from_.chance(5)) { index = 0x1FF'FFFF - from_.roll(6); }
        if (from_.chance(5)) { index = 509 + from_.roll(6); }
        if (from_.chance(2)) { index = from_.roll(0x200'0000); }
        if (from_.chance(2)) { table += std::uint64_t{0x80} << from_.roll(5); }
        if (from_.chance(2)) { table = from_.roll(1U << 24) * page_bytes; }
        if (from_.chance(2)) {
            table = (std::uint64_t{1} << 36) - page_bytes;
            index = 510 + from_.roll(4);
        }
        std::uint64_t offset = from_.chance(40) ? 0 : from_.roll(0x1000);
        if (from_.chance(20)) { offset = from_.roll(0x4100); }
        if (from_.chance(10)) { offset = from_.roll(0x10) * 0x1000 - from_.roll(2); }
        set_position(now, table, offset << 32 | index << 7);
    }
    /// A position for the next enable: the same, or one that a driver chooses after STOP or an
    /// error.
    void repair(access::msr_state& now) {
        if (from_.chance(80)) {
            now.status = now.status.with(status::Stopped{false}, status::Error{false});
        }
        if (!now.ctl.get<ctl::ToPA>() || from_.chance(50)) { return; }
        auto where = topa::position_in(now.output.base, now.output.mask_ptrs);
        where.index += static_cast<std::uint32_t>(from_.roll(2));
        where.offset = static_cast<std::uint32_t>(from_.chance(80) ? 0 : from_.roll(0x1000));
        now.output.mask_ptrs = topa::mask_ptrs_of(where);
    }

    // -------------------------------------------------------------------------- the VMM's part

    /// Shadows the output of a guest that sets TraceEn, or continues. The registers for the
    /// processor.
    auto enable(access::msr_state const& now) -> vmx::host_output {
        auto room = static_cast<std::size_t>(from_.chance(50) ? max_shadow_pages : from_.roll(3));
        most_room_ = static_cast<std::size_t>(from_.chance(95) ? max_shadow_pages
                                                               : 1 + from_.roll(3));
        if (room > most_room_) { room = most_room_; }
        is_cut = false;
        ram.unpin();
        ++seen.enables;
        rule const why = shadow.begin(host_caps, caps, now, ram.pages.data(), room);
        ram.require(why == rule::none, "the host can shadow");
        std::uint64_t const steps = from_.chance(50) ? ~std::uint64_t{0} : 1 + from_.roll(9);
        for (std::uint64_t tries = 0;; ++tries) {
            std::uint64_t const calls = ram.calls;
            auto const done = shadow.build(ram, steps);
            ram.require(steps > 100 || ram.calls - calls <= 2 * steps, "steps are limited");
            ram.require(ram.calls < 40 * (shadow.pages_used() * 512 + 100),
                        "work is bounded by the storage");
            if (done || ram.wrong != nullptr) { break; }
            act_on(done, room);
            ram.require(tries < 1'000'000, "the walk ends");
        }
        if (shadow.pages_used() > seen.max_pages) { seen.max_pages = shadow.pages_used(); }
        if (ram.calls > seen.max_calls) { seen.max_calls = ram.calls; }
        if (!shadow.is_complete()) { return {}; }
        auto const made = shadow.host();
        if (!now.ctl.get<ctl::ToPA>()) { ++(made.topa ? seen.ranges : seen.direct); }
        return made;
    }
    /// Compares the guest's position with that of its own processor.
    void compare(access::msr_state bare, access::msr_state const& host) {
        if (is_cut && host.status.get<status::Error>()) {
            bare.status = bare.status.with(status::Error{true}, status::TriggerEn{false});
        }
        vmx::output_registers const expected = bare.output;
        vmx::output_registers const at = host.output;
        auto const got = shadow.to_guest(at);
        ram.require(got.found, "a position that the processor reports belongs to the shadow");
        ram.require(!got.found || got.at == expected, "the position of the guest");
        auto const back = shadow.to_host(expected);
        ram.require(back.found && back.at == at, "the position of the processor");
        ram.require(bare.status == host.status, "STATUS");
        ram.require(bare.perf_global_status == host.perf_global_status, "IA32_PERF_GLOBAL_STATUS");
    }
    /// The guest's registers at an exit.
    auto at_exit(access::msr_state host, access::msr_state const& guests) -> access::msr_state {
        auto const got = shadow.to_guest(host.output);
        ram.require(got.found, "a position at an exit belongs to the shadow");
        host.output = got.at;
        host.ctl = guests.ctl;
        return host;
    }
    /// A page of the guest that has memory.
    auto any_page() -> std::size_t {
        auto page = static_cast<std::size_t>(from_.roll(data_pages));
        while (ram.how[page] == backing::none) { page = (page + 1) % data_pages; }
        return page;
    }

private:
    dice const& from_;
    std::size_t most_room_ = max_shadow_pages;

    static void set_position(access::msr_state& now, std::uint64_t base, std::uint64_t pointers) {
        now.output.base = {base};
        now.output.mask_ptrs = {pointers | 0x7F};
    }
    void set_up_range(access::msr_state& now) {
        now.ctl = now.ctl.with(ctl::ToPA{false});
        std::uint64_t const log = from_.chance(60) ? 12 + from_.roll(6) : 7 + from_.roll(26);
        std::uint64_t const size = std::uint64_t{1} << log;
        std::uint64_t base = from_.roll(data_pages * page_bytes) / size * size;
        std::uint64_t mask = size - 1;
        std::uint64_t offset = from_.roll(size);
        if (from_.chance(5)) { base += std::uint64_t{0x80} << from_.roll(8); }
        if (from_.chance(5)) { mask ^= std::uint64_t{1} << (7 + from_.roll(25)); }
        if (from_.chance(5)) { offset = size - 1 + from_.roll(3); }
        set_position(now, base, offset << 32 | (mask & 0xFFFF'FFFF));
    }
    auto region() -> std::uint64_t {
        std::uint64_t const code = from_.chance(70) ? from_.roll(3) : from_.roll(6);
        std::uint64_t const size = page_bytes << code;
        std::uint64_t word = from_.roll(data_pages * page_bytes) / size * size | code << 6;
        if (from_.chance(30)) { word |= 4; }
        if (from_.chance(6)) { word |= 0x10; }
        return word;
    }
    auto link() -> std::uint64_t { return tables_at[from_.roll(100) < 95 ? from_.roll(3) : 3] | 1; }
    auto any_word() -> std::uint64_t {
        switch (from_.roll(16)) {
            case 0:
                return region() ^ std::uint64_t{1}
                                      << from_.one_of({1, 3, 5, 10, 11, 12, 36, 39, 46, 63});
            case 1:
                return link() ^ std::uint64_t{1}
                                    << from_.one_of({1, 2, 3, 4, 5, 10, 12, 36, 39, 46});
            case 2: return region() | 15 << 6;
            case 3: return 0;
            case 4: return from_.roll(~std::uint64_t{0}) & ~std::uint64_t{0xFFF'F000};
            case 5: return link();
            default: return region();
        }
    }
    void write_table(std::uint64_t at) {
        bool const is_large = from_.chance(3);
        std::uint64_t const first = from_.chance(10) ? 508 : 0;
        std::uint64_t const count = 1 + from_.roll(first == 0 ? 8 : 3);
        for (std::uint64_t i = 0; i < count; ++i) { ram.put(at + 8 * (first + i), any_word()); }
        if (from_.chance(90)) { ram.put(at + 8 * (first + count), link()); }
        if (from_.chance(30)) { ram.put(at + 8 * 511, from_.chance(50) ? any_word() : link()); }
        if (from_.chance(5)) { ram.put(at, link()); }
        for (std::uint64_t i = 0; is_large && i < 512; ++i) {
            ram.put(at + 8 * i, region() & ~std::uint64_t{0x10});
        }
    }
    void write_single_entry(std::uint64_t at) {
        ram.put(at, from_.chance(10) ? any_word() : region());
        ram.put(at + 8, from_.chance(90) ? at | 1 : any_word());
        ram.put(at + 16, from_.chance(90) ? 0 : any_word());
    }
    /// Of a table of one region with one page: there the shadow's interrupt is not early.
    void remove_late_interrupts() {
        for (std::uint64_t const table : tables_at) {
            for (std::uint64_t at = table; at < table + page_bytes; at += 8) {
                std::uint64_t const word = ram.word_at(at);
                if ((word & 0x3C5) == 4) { ram.put(at, word & ~std::uint64_t{4}); }
            }
        }
    }
    /// What a VMM does when the walk cannot go on.
    void act_on(vmx::shadow_result const& result, std::size_t& room) {
        switch (result.what) {
            case vmx::shadow_progress::paused: break;
            case vmx::shadow_progress::missing_page: {
                ++seen.missing;
                std::size_t const page = page_at(result.address.value);
                bool const is_missing = page != guest_pages && ram.how[page] == backing::missing;
                ram.require(is_missing && result.address.value % page_bytes == 0,
                            "the missing page");
                if (!is_missing) { break; }
                ram.move(page);
                ram.how[page] = backing::mapped;
                break;
            }
            case vmx::shadow_progress::no_room:
                ++seen.no_room;
                ram.require(shadow.pages_used() == room, "all pages are used");
                if (room == most_room_) {
                    ++seen.cut;
                    is_cut = true;
                    ram.require(shadow.end_with_error(), "a shadow can end with an error");
                    break;
                }
                room = static_cast<std::size_t>(room + 1 + from_.roll(8));
                if (room > most_room_) { room = most_room_; }
                shadow.add_pages(ram.pages.data(), room);
                break;
            default: ram.require(false, "no other result"); break;
        }
    }
};

// ------------------------------------------------------------------------------ output alone

/// Runs the output of a guest on both processors, byte ranges at a time.
class output_run {
public:
    output_run(dice const& from, counts& count) : guest_{from, count}, from_{from} {}

    /// Up to `writes` writes in some sessions. What went wrong, or null.
    auto run(unsigned writes) -> char const* {
        for (unsigned session = 0; writes != 0 && is_good() && !is_at_cut(); ++session) {
            if (session == 0 || from_.chance(60)) {
                guest_.set_up(bare_);
                bare_.status = {from_.chance(95) ? 0 : 0x10U << from_.roll(2)};
            } else {
                guest_.repair(bare_);
            }
            enable();
            auto count = 1 + from_.roll(12);
            for (; count != 0 && writes != 0 && is_good() && !is_at_cut(); --count, --writes) {
                write();
            }
            disable();
        }
        return guest_.ram.wrong;
    }

private:
    guest guest_;
    dice const& from_;
    access::msr_state bare_{};
    access::msr_state host_{};
    engine::output bare_output_{};
    engine::output host_output_{};
    std::uint64_t pmis_ = 0;
    std::uint64_t written_ = 0;
    std::uint64_t last_ = 0;  ///< the guest-physical address of the last byte

    /// The page of the last byte, or the one after it.
    auto next_page() -> std::size_t { return (page_at(last_) + from_.roll(2)) % data_pages; }
    [[nodiscard]] auto is_good() const -> bool { return guest_.ram.wrong == nullptr; }
    /// The shadow ended early, and output has reached its end.
    [[nodiscard]] auto is_at_cut() const -> bool {
        return guest_.is_cut && host_.status.get<status::Error>() &&
               !bare_.status.get<status::Error>();
    }
    static void set_trace_en(access::msr_state& now, bool on) {
        now.ctl = now.ctl.with(ctl::TraceEn{on});
        now.status = now.status.with(status::TriggerEn{access::trigger_en(now.ctl, now.status)});
    }
    void enable() {
        set_trace_en(bare_, true);
        start_host(bare_);
        world::bare_port memory{guest_.ram};
        auto const fault = bare_output_.start(guest_.caps, bare_, memory, guest_.bare_options());
        guest_.ram.require(!fault.happened, "no fault");
        compare();
        if (bare_output_.ended_by() != rule::none) {
            ++guest_.seen.errors;
            count_end();
        }
    }
    void count_end() { ++guest_.seen.rules[underlying(bare_output_.ended_by()) % 1000 % 256]; }
    /// The processor continues as the guest's registers say.
    void start_host(access::msr_state const& now) {
        auto const made = guest_.enable(now);
        if (!is_good()) { return; }
        host_ = now;
        host_.output = made.at;
        host_.ctl = host_.ctl.with(ctl::ToPA{made.topa});
        world::host_port memory{guest_.ram};
        auto const fault = host_output_.start(guest_.host_caps, host_, memory);
        guest_.ram.require(!fault.happened, "no fault");
    }
    /// An exit, after which a page is elsewhere in the host.
    void move(std::size_t page) {
        host_output_.stop(host_);
        auto const now = guest_.at_exit(host_, bare_);
        guest_.ram.move(page);
        guest_.ram.how[page] = backing::mapped;
        start_host(now);
    }
    void compare() {
        if (!is_good()) { return; }
        bare_output_.write_back(bare_);
        host_output_.write_back(host_);
        guest_.compare(bare_, host_);
        guest_.ram.require(pmis_ == guest_.ram.pmis, "interrupts");
    }
    auto size_of_write() -> std::size_t { return static_cast<std::size_t>(any_size()); }
    auto any_size() -> std::uint64_t {
        std::uint64_t const left = page_bytes - (bare_.output.mask_ptrs.raw >> 32) % page_bytes;
        switch (from_.roll(6)) {
            case 0: return from_.roll(20);
            case 1: return from_.roll(6000);
            case 2: return left;
            case 3: return left - 1 + from_.roll(3);
            case 4: return left + page_bytes * from_.roll(4);
            default: return 1 + from_.roll(300);
        }
    }
    void write() {
        ++guest_.seen.writes;
        auto& ram = guest_.ram;
        if (from_.chance(10)) {
            ++guest_.seen.moves;
            move(guest_.any_page());
        }
        if (from_.chance(20)) { ram.gone = ram.host_of[next_page()]; }
        std::uint8_t bytes[20'000];
        std::size_t const count = size_of_write();
        for (std::size_t i = 0; i < count; ++i) {
            bytes[i] = static_cast<std::uint8_t>(2 + (written_ + i) % 251);
        }
        bool const was_running = bare_output_.ended_by() == rule::none;
        world::host_port host{ram};
        world::bare_port bare{ram};
        for (std::size_t at = 0; at < count && is_good();) {
            byte_view const rest = byte_view{bytes, count}.from(at);
            auto got = host_output_.write(host_, host, rest);
            if (is_at_cut()) {
                got.taken = static_cast<std::size_t>(got.stored);
                got.lost = 0;
            }
            auto const expected = bare_output_.write(bare_, bare, rest.first(got.taken));
            pmis_ += expected.pmis;
            if (expected.has_address) { last_ = expected.last.value; }
            ram.require(!expected.fault.happened && got.taken == expected.taken &&
                            got.stored == expected.stored && got.lost == expected.lost &&
                            got.pmis == expected.pmis,
                        "the same bytes are stored");
            at += got.taken;
            compare();
            if (!got.fault.happened) { break; }
            ++guest_.seen.faults;
            std::size_t page = 0;
            while (page != guest_pages && ram.host_of[page] != ram.gone) { ++page; }
            ram.require(page != guest_pages &&
                            got.fault.address.value / page_bytes == host_at / page_bytes + ram.gone,
                        "the page that is gone");
            ram.gone = host_pages;
            if (is_good()) { move(page); }
        }
        ram.gone = host_pages;
        written_ += count;
        if (was_running && bare_output_.ended_by() != rule::none) {
            ++guest_.seen.errors_later;
            count_end();
        }
        guest_.seen.pmis += ram.pmis - counted_pmis_;
        counted_pmis_ = ram.pmis;
    }
    void disable() {
        bare_output_.stop(bare_);
        host_output_.stop(host_);
        compare();
        if (!is_good()) { return; }
        set_trace_en(bare_, false);
        set_trace_en(host_, false);
        guest_.ram.compare();
    }

    std::uint64_t counted_pmis_ = 0;
};

// ------------------------------------------------------------------------------ trace units

/// Runs the same code on both processors.
class unit_run {
public:
    unit_run(dice const& from, counts& count)
        : guest_{from, count}, from_{from}, options_{engine::options_of(guest_.caps)} {
        options_.drained_at_once = from.chance(70) ? ~std::size_t{0}
                                                   : static_cast<std::size_t>(1 + from.roll(20));
        auto bare = options_;
        bare.output = guest_.bare_options();
        bare_ = {guest_.caps, {}, 0x40'0000, bare};
        host_ = {guest_.host_caps, {}, 0x40'0000, options_};
    }

    /// So many events and accesses. What went wrong, or null.
    auto run(unsigned steps) -> char const* {
        for (; steps != 0 && is_good(); --steps) {
            ++guest_.seen.writes;
            if (!is_tracing()) {
                enable();
            } else if (from_.chance(2)) {
                disable();
            } else {
                if (drains_at_once() && from_.chance(3)) {
                    guest_.ram.gone = guest_.ram.host_of[guest_.any_page()];
                }
                if (from_.chance(5)) { take_action(engine::action::overflow{}); }
                unsigned const count = from_.chance(80) ? 1 : 1 + unsigned(from_.roll(200));
                for (unsigned i = 0; i < count && is_good(); ++i) { take_any_event(); }
            }
            compare();
        }
        return guest_.ram.wrong;
    }

private:
    using unit = engine::trace_unit<512>;

    guest guest_;
    dice const& from_;
    engine::model_options options_;
    unit bare_{cpu::preset::P_FUT};
    unit host_{cpu::preset::P_FUT};
    access::msr_state registers_{};  ///< the guest's, while TraceEn is 0

    [[nodiscard]] auto is_good() const -> bool {
        return guest_.ram.wrong == nullptr && !guest_.is_cut;
    }
    /// True if no bytes stay in the buffer, so that both processors can be compared after a fault.
    [[nodiscard]] auto drains_at_once() const -> bool {
        return options_.drained_at_once == ~std::size_t{0};
    }
    [[nodiscard]] auto is_tracing() const -> bool { return bare_.state().ctl<ctl::TraceEn>(); }

    /// A WRMSR by both.
    void write(std::uint32_t index, std::uint64_t bare, std::uint64_t host) {
        auto const at = bare_.ip();
        world::bare_port bare_memory{guest_.ram};
        world::host_port host_memory{guest_.ram};
        auto const one = bare_.wrmsr({.index = index, .value = bare, .at = at, .next = at + 2},
                                     bare_memory);
        auto const two = host_.wrmsr({.index = index, .value = host, .at = at, .next = at + 2},
                                     host_memory);
        guest_.ram.require(one.what == engine::access_outcome::done && two.took_effect(),
                           "registers can be written");
        resume(two.fault);
    }
    void enable() {
        if (from_.chance(50)) { return take_any_event(); }
        registers_.status = bare_.msrs().status;
        if (from_.chance(70)) {
            guest_.set_up(registers_);
            registers_.status = {registers_.status.raw & ~std::uint64_t{0x30}};
        } else {
            registers_.output = bare_.msrs().output;
            guest_.repair(registers_);
        }
        auto word = ctl{0x2000 | 0xC}.with(
            ctl::TraceEn{true}, ctl::PTWEn{from_.chance(50)}, ctl::TSCEn{from_.chance(50)},
            ctl::CYCEn{from_.chance(50)}, ctl::InjectPsbPmiOnEnable{from_.chance(30)});
        word = word.with(ctl::ToPA{registers_.ctl.get<ctl::ToPA>()});
        registers_.ctl = word;
        bool const fits = guest_.caps.max_phys_addr().contains(registers_.output.base.raw);
        if (!fits) { registers_.output.base = {tables_at[0]}; }
        auto const made = guest_.enable(registers_);
        if (!is_good()) { return; }
        write(status::address, registers_.status.raw, registers_.status.raw);
        write(access::ia32_rtit_output_base::address, registers_.output.base.raw, made.at.base.raw);
        write(access::ia32_rtit_output_mask_ptrs::address, registers_.output.mask_ptrs.raw,
              made.at.mask_ptrs.raw);
        write(ctl::address, word.raw, word.with(ctl::ToPA{made.topa}).raw);
    }
    void disable() {
        auto const word = registers_.ctl.with(ctl::TraceEn{false});
        write(ctl::address, word.raw, host_.msrs().ctl.with(ctl::TraceEn{false}).raw);
        guest_.ram.require(!host_.is_flushing(), "all bytes are stored");
        guest_.ram.compare();
    }
    void take_action(auto const& e) {
        world::bare_port bare{guest_.ram};
        world::host_port host{guest_.ram};
        guest_.ram.require(!bare_.on(e, bare).happened, "no fault");
        resume(host_.on(e, host));
    }
    void take_any_event() {
        namespace action = engine::action;
        auto const here = bare_.ip();
        auto const to = 0x40'0000 + from_.roll(0x3000);
        switch (from_.roll(12)) {
            case 0: return take_action(action::direct_call{here + 5, to});
            case 1: return take_action(action::near_return{to});
            case 2: return take_action(action::ptwrite{here, here + 4, to << from_.roll(40), true});
            case 3: return take_action(action::mov_cr3{here, here + 3, 0x1000 * from_.roll(3)});
            case 4: return take_action(action::cycles{from_.roll(300)});
            case 5: return take_action(action::interrupt{here, to, {}, 32});
            case 6: return take_action(action::overflow_end{to});
            case 7: return take_action(action::conditional{to, from_.chance(50)});
            default: return take_action(action::indirect_jump{to << from_.roll(20)});
        }
    }
    /// Resumes after a page is gone: the VMM moves it elsewhere in the host, and shadows the output
    /// of the guest again. The unit keeps the bytes that are not stored.
    void resume(port_fault fault) {
        auto& ram = guest_.ram;
        while (fault.happened && is_good()) {
            ++guest_.seen.faults;
            std::size_t page = 0;
            while (page != guest_pages && ram.host_of[page] != ram.gone) { ++page; }
            ram.require(page != guest_pages, "the page that is gone");
            ram.gone = host_pages;
            if (!is_good()) { return; }
            auto now = host_.msrs();
            auto const made = [&] {
                auto const guests = guest_.at_exit(now, registers_);
                ram.move(page);
                return guest_.enable(guests);
            }();
            if (!is_good()) { return; }
            now.output = made.at;
            auto image = engine::store(host_);
            copy_bytes(image.bytes.data() + 16, access::store(now).data(), access::image_size);
            auto const loaded = engine::load<512>(guest_.host_caps, image.view(), options_);
            ram.require(static_cast<bool>(loaded), "the unit goes on");
            host_ = loaded.unit;
            world::host_port host{ram};
            fault = host_.drain(host);
        }
    }
    void compare() {
        if (!is_good()) { return; }
        auto& ram = guest_.ram;
        if (is_tracing()) { guest_.compare(bare_.msrs(), host_.msrs()); }
        ram.require(bare_.ip() == host_.ip(), "the same code runs");
        ram.require(bare_.total() == host_.total(), "bytes and interrupts");
        ram.require(bare_.buffered().size() == host_.buffered().size(), "buffered bytes");
        ram.require(bare_.total().pmis == ram.pmis, "interrupts");
    }
};

}  // namespace ptspec::test::shadowed
