// SPDX-License-Identifier: BSL-1.0
#pragma once

// Random set-ups of trace output, most of them nearly legal, and the sizes of writes. A seed gives
// the same set-up on every platform.

#include <support/random_numbers.hpp>
#include <support/reference_output.hpp>

#include <cstdint>
#include <vector>

namespace reference {

/// A word to put into memory.
struct placed_word {
    number address;
    number word;
};

/// A fault: the access with this number fails once (numbers as in reference::memory), or every
/// access to the page at this address fails until it is healed.
struct fault_plan {
    bool whole_page;
    number value;
};

/// The initial state before TraceEn rises, and the writes after it.
struct output_setup {
    number ctl = 0;  ///< includes TraceEn
    number status = 0;
    number base = 0;
    number mask_ptrs = 0x7F;
    number global_status = 0;

    unsigned max_phys_addr = 39;
    bool many_entries = true;     ///< CPUID.14H.0:ECX[1]
    bool inject_capable = false;  ///< CPUID.14H.0:EBX[6]

    number smrr_base = 0;
    number smrr_mask = 0;
    std::vector<address_range> ranges;
    number lead = 512;
    bool restricted_is_error = false;

    std::vector<placed_word> words;  ///< a later word replaces an earlier one at its address
    std::vector<number> writes;      ///< sizes of the writes
    std::vector<fault_plan> faults;
};

/// The byte at this offset of the written stream.
constexpr auto trace_byte(number at) -> unsigned char {
    return static_cast<unsigned char>(1 + at % 251);
}

/// The reference model in this state, with TraceEn set but enable() not called. No access fails.
inline auto machine_of(output_setup const& setup) -> machine {
    machine out;
    out.ctl = setup.ctl;
    out.status = setup.status;
    out.base = setup.base;
    out.mask_ptrs = setup.mask_ptrs;
    out.global_status = setup.global_status;
    out.max_phys_addr = setup.max_phys_addr;
    out.many_entries = setup.many_entries;
    out.inject_capable = setup.inject_capable;
    out.smrr_base = setup.smrr_base;
    out.smrr_mask = setup.smrr_mask;
    out.ranges = setup.ranges;
    out.lead = setup.lead;
    out.restricted_is_error = setup.restricted_is_error;
    for (placed_word const& placed : setup.words) {
        out.ram.write_word(placed.address, placed.word);
    }
    return out;
}

/// Adds faults to a memory.
inline void add_faults(memory& ram, std::vector<fault_plan> const& faults) {
    for (fault_plan const& fault : faults) {
        auto& list = fault.whole_page ? ram.failing_pages : ram.failing_accesses;
        list.push_back(fault.value);
    }
}

// ------------------------------------------------------------------------------ generator

/// Generates one set-up.
class setup_maker {
public:
    explicit setup_maker(std::uint64_t seed) : random_{seed} {}

    auto make() -> output_setup {
        choose_processor();
        number const scheme = below(100);
        if (scheme < 3) {
            make_fabric();
        } else if (scheme < 18) {
            make_single_range();
        } else if (scheme < 24) {
            make_nonsense();
        } else {
            make_topa();
        }
        choose_restricted();
        choose_writes();
        choose_faults();
        return out_;
    }

private:
    /// A region that the output reaches as long as no error occurs.
    struct reached_region {
        number entry_at;  ///< address of its entry; 0 for a single range
        number base;
        number size;
    };

    ptspec::test::random_numbers random_;
    output_setup out_;
    std::vector<reached_region> reached_;
    std::vector<number> tables_;

    auto bits() -> number { return random_(); }
    auto below(number count) -> number { return random_.below(count); }
    auto index_below(size_t count) -> size_t { return static_cast<size_t>(below(count)); }
    auto chance(unsigned percent) -> bool { return below(100) < percent; }
    template <std::size_t Count>
    auto one_of(number const (&values)[Count]) -> number {
        return values[below(Count)];
    }

    [[nodiscard]] auto top() const -> number { return number{1} << out_.max_phys_addr; }

    // ------------------------------------------------------------------------- processor

    void choose_processor() {
        out_.max_phys_addr = static_cast<unsigned>(one_of({32, 36, 39, 39, 42, 46, 48, 52, 52}));
        out_.many_entries = !chance(22);
        out_.inject_capable = chance(50);
        out_.lead = chance(60) ? 512 : one_of({0, 1, 2, 4095, 4096, 4097, 8192, 0x1000'0000});
        if (chance(10)) { out_.lead = below(4096); }
        out_.restricted_is_error = chance(40);
        out_.ctl = 1;                            // TraceEn
        if (chance(90)) { out_.ctl |= 0x200C; }  // BranchEn, User, OS
        if (chance(out_.inject_capable ? 60 : 10)) { out_.ctl |= number{1} << 56; }
        if (chance(2)) { out_.status |= 0x10; }  // Error
        if (chance(2)) { out_.status |= 0x20; }  // Stopped
        if (chance(5)) { out_.status |= 0x80; }  // PendToPAPMI
        if (chance(20)) { out_.status |= below(0x2'0000) << 32; }
        if (chance(20)) { out_.status |= 3; }  // ContextEn, FilterEn
        if (chance(10)) { out_.global_status |= number{1} << one_of({0, 32, 55, 62}); }
    }

    // ------------------------------------------------------------------------- addresses

    /// An address at which a region or table of that size may begin.
    auto aligned_address(number size) -> number {
        number const limit = top();
        number at = below(limit);
        switch (below(8)) {
            case 0: at = limit - size - below(4) * size; break;
            case 1: at = below(16) * size; break;
            case 2: at = 0x8000'0000 + below(8) * 0x1000; break;
            case 3: at = 0x1'0000'0000 - size + below(3) * size; break;
            default: break;
        }
        at %= limit;
        return at - at % size;
    }
    /// One of the first regions, which a run probably reaches.
    auto early_region() -> reached_region& {
        return reached_[index_below(reached_.size() < 3 ? reached_.size() : 3)];
    }

    // ---------------------------------------------------------------- fabric, single range

    void make_fabric() {
        out_.ctl |= 0x40;
        if (chance(50)) { out_.ctl |= 0x100; }
        out_.base = below(top()) & ~number{0x7F};
        out_.mask_ptrs = bits() | 0x7F;
        reached_.push_back({0, 0, 4096});
    }

    void make_single_range() {
        number const log = chance(80) ? 7 + below(6) : 7 + below(26);
        number const size = number{1} << log;
        number mask = size - 1;
        number base = aligned_address(size);
        number off = chance(70) ? size - 1 - below(size < 64 ? size : 64) : below(size);
        if (chance(10)) { off = 0; }
        if (chance(5)) { mask ^= number{1} << (7 + below(25)); }
        if (chance(6)) { base ^= number{1} << (7 + below(log > 7 ? log - 7 : 1)); }
        if (chance(8)) { off = size - 1 + below(3); }
        if (chance(2)) { off = below(0x1'0000'0000); }
        if (chance(2)) { mask = bits() % 0x1'0000'0000 | 0x7F; }
        if (off > 0xFFFF'FFFF) { off = 0xFFFF'FFFF; }
        out_.base = base % top();
        out_.mask_ptrs = off << 32 | mask;
        for (unsigned i = 0; i < 3; ++i) { reached_.push_back({0, out_.base, size}); }
    }

    // ------------------------------------------------------------------------------ ToPA

    void set_pointer(number index, number off) { out_.mask_ptrs = off << 32 | index << 7 | 0x7F; }
    void put(number address, number word) { out_.words.push_back({address, word}); }
    /// Flips bits of the word at an address, if one was put there.
    void change(number address, number flipped) {
        for (placed_word& placed : out_.words) {
            if (placed.address == address) { placed.word ^= flipped; }
        }
    }

    auto size_code() -> number {
        if (chance(75)) { return 0; }
        if (chance(60)) { return 1; }
        return below(16);
    }
    /// Puts a region entry and returns the size of the region.
    void put_region(number address, number interrupt_percent, number stop_percent) {
        number const code = size_code();
        number const size = number{4096} << code;
        number const base = aligned_address(size);
        number word = base | code << 6;
        if (chance(static_cast<unsigned>(interrupt_percent))) { word |= 4; }
        if (chance(static_cast<unsigned>(stop_percent))) { word |= 0x10; }
        put(address, word);
        reached_.push_back({address, base, size});
    }
    void put_end(number address, number to) {
        number word = to | 1;
        if (chance(20)) { word |= below(16) << 6; }  // the size of a link is ignored
        put(address, word);
    }

    /// Random registers and random table contents.
    void make_nonsense() {
        out_.ctl |= 0x100;
        out_.base = aligned_address(128);
        if (chance(80)) { out_.base -= out_.base % 4096; }
        number const index = chance(70) ? below(4) : below(0x200'0000);
        number const off = chance(70) ? 0 : below(0x1'0000);
        set_pointer(index, off);
        for (unsigned i = 0; i < 6; ++i) {
            number word = bits() % top();
            if (chance(80)) { word &= ~number{0xC2A}; }
            if (chance(80)) { word &= ~number{0x3C0}; }
            if (chance(60)) { word &= ~number{1}; }
            put(out_.base + 8 * (index + i), word);
        }
        reached_.push_back({out_.base + 8 * index, 0, 4096});
        tables_.push_back(out_.base);
    }

    void make_topa() {
        out_.ctl |= 0x100;
        if (out_.many_entries) {
            make_tables();
        } else {
            make_single_entry();
        }
        choose_offset();
        if (chance(33)) { break_something(); }
    }

    /// One region and a link back to its table.
    void make_single_entry() {
        number const table = aligned_address(4096);
        tables_.push_back(table);
        out_.base = table;
        put_region(table, 75, 30);
        put_end(table + 8, table);
        reached_.push_back({table, reached_[0].base, reached_[0].size});
        set_pointer(chance(5) ? 1 : 0, 0);
        if (chance(6)) { change(table + 8, number{0x1000} << below(12)); }  // a link to another
        // table
        if (chance(6)) { change(table + 8, 1); }  // no link
        if (chance(3)) { set_pointer(1 + below(3), 0); }
    }

    void make_tables() {
        number const tables = 1 + below(3);
        for (unsigned i = 0; i < tables; ++i) { tables_.push_back(aligned_address(4096)); }
        for (unsigned i = 0; i < tables; ++i) {
            number first = 0;
            number count = 1 + below(4);
            if (i == 0) {
                if (chance(10)) { first = 1 + below(600); }
                if (chance(6)) { first = 0x1FF'FFFF - below(3); }
                if (chance(4)) { near_the_top(first, count); }
                out_.base = tables_[0];
                set_pointer(chance(4) ? first + count : first, 0);
            }
            put_table(i, first, count);
        }
        if (chance(3)) { out_.base |= number{0x80} << below(5); }
    }
    /// A table near the top of physical memory, whose entries are used up to the end and beyond.
    void near_the_top(number& first, number& count) {
        tables_[0] = top() - 4096 * (1 + below(3));
        first = (top() - tables_[0]) / 8 - 1 - below(3);
        if (chance(20)) { first += 1 + below(4); }
        count = 8;
    }
    void put_table(unsigned which, number first, number count) {
        number const table = tables_[which];
        number at = table + 8 * first;
        number index = first;
        for (; count != 0; --count) {
            if (at < top()) { put_region(at, 45, 12); }
            at += 8;
            if (++index == 0x200'0000) {  // wraps to the first entry of the table
                put_region(table, 45, 12);
                put_end(table + 8, table);
                return;
            }
        }
        if (at >= top()) { return; }
        switch (below(12)) {
            case 0: put(at, 0); break;                          // no END: memory contents follow
            case 1: put_end(at, aligned_address(4096)); break;  // a link to a random address
            case 2:
            case 3: put_end(at, table); break;
            case 4: put_end(at, tables_[0]); break;
            case 5: change(at - 8, 0x10); break;  // STOP
            default: put_end(at, tables_[(which + 1) % tables_.size()]); break;
        }
    }

    /// Most runs begin shortly before the end of a region, so that they cross it.
    void choose_offset() {
        number const index = field(out_.mask_ptrs, 31, 7);
        number const size = reached_.empty() ? 4096 : reached_[0].size;
        number off = size - 1 - below(48);
        if (chance(30)) { off = below(size); }
        if (chance(15)) { off = 0; }
        if (!out_.many_entries && chance(50)) {
            number const early_by = out_.lead < size ? out_.lead : size - 1;
            number const due = size - early_by;
            off = due - 1 - below(due < 16 ? due : 16);
            if (chance(10)) { off = due + below(2); }
        }
        if (chance(3)) { off = size - 1; }
        if (chance(3)) { off = size; }
        if (chance(2)) { off = size + 1; }
        if (chance(1)) { off = below(0x1'0000'0000); }
        set_pointer(index, off);
    }

    /// Introduces one error near the first entries. It does not always break a rule.
    void break_something() {
        if (reached_.empty()) { return; }
        number const at = early_region().entry_at;
        switch (below(12)) {
            case 0: change(at, one_of({0x2, 0x8, 0x20, 0x400, 0x800})); break;
            case 1: change(at, number{0x1000} << below(4)); break;  // possibly misaligned
            case 2: change(at, 0x40 + (below(15) << 6)); break;
            case 3:
                change(at, number{1} << (out_.max_phys_addr + below(64 - out_.max_phys_addr)));
                break;
            case 4: change(at, 1); break;
            case 5: change(at, 5); break;
            case 6: change(at, 0x11); break;
            case 7: {  // a link to a link
                number const other = aligned_address(4096);
                put(at + 8, other | 1);
                put(other, aligned_address(4096) | 1);
                break;
            }
            case 8: change(at + 8, one_of({0x2, 0x4, 0x8, 0x10, 0x14, 0x20, 0x400, 0x800})); break;
            case 9: change(at + 8, number{1} << below(64)); break;
            case 10: put(at + 8, bits()); break;
            default: change(at, number{1} << below(64)); break;
        }
    }

    // ------------------------------------------------------------------------ restricted

    void choose_restricted() {
        if (chance(22)) { choose_smrr(); }
        while (chance(20)) { choose_range(); }
    }
    /// An address that the run probably uses.
    auto likely_address() -> number {
        if (reached_.empty() || chance(20)) {
            return tables_.empty() ? out_.base : tables_[index_below(tables_.size())];
        }
        reached_region const& region = early_region();
        if (chance(12)) { return region.entry_at + below(8); }
        number const off = field(out_.mask_ptrs, 63, 32);
        if (chance(40)) { return region.base + off % region.size; }
        return chance(50) ? region.base : region.base + region.size - 1;
    }
    void choose_smrr() {
        number const near = likely_address() % 0x1'0000'0000;
        number const size = number{0x1000} << (chance(70) ? below(4) : below(20));
        number mask = 0xFFFF'F000 & ~(size - 1);
        if (chance(15)) { mask &= bits(); }  // a mask with holes
        number base = near;
        if (chance(15)) { base += size; }
        out_.smrr_base = (base & 0xFFFF'F000) | 6;
        out_.smrr_mask = mask | (chance(90) ? 0x800 : 0);
    }
    void choose_range() {
        number near = likely_address();
        near += below(32);
        if (chance(50)) { near -= below(16); }
        number const length = chance(70) ? 1 + below(64) : 1 + below(0x3000);
        number first = near;
        number last = near + length - 1;
        if (near > (number{1} << 53)) { first = 0; }  // would be below zero
        if (last < first) { last = first; }
        if (chance(10)) {  // an empty range
            number const lower = first;
            first = last + 1;
            last = lower;
        }
        if (chance(1)) { last = ~number{0}; }
        out_.ranges.push_back({first, last});
    }

    // ----------------------------------------------------------------- writes and faults

    void choose_writes() {
        // The distance to the end of each region.
        std::vector<number> ends;
        number off = field(out_.mask_ptrs, 63, 32);
        number sum = 0;
        for (reached_region const& region : reached_) {
            number const left = off < region.size ? region.size - off : 1;
            sum += left;
            if (sum > 20000) { break; }
            ends.push_back(sum);
            off = 0;
        }
        number written = 0;
        auto const add = [&](number size) {
            out_.writes.push_back(size);
            written += size;
        };
        number const count = 1 + below(5);
        for (unsigned i = 0; i < count; ++i) {
            number const kind = below(200);
            if (kind < 20) {
                add(0);
            } else if (kind < 100) {
                add(1 + below(40));
            } else if (kind < 110) {
                add(below(1000));
            } else if (kind < 111) {
                add(below(20001));
            } else {  // to the end of a region, or one byte before or after it
                number const limit = chance(15) ? 20000 : 300;
                number to = 0;
                for (number const end : ends) {
                    if (end > written && end - written <= limit && (to == 0 || chance(50))) {
                        to = end;
                    }
                }
                if (to == 0) {
                    add(1 + below(16));
                } else {
                    add(to - written - 1 + below(3));
                }
            }
        }
    }

    void choose_faults() {
        while (chance(35)) {
            if (chance(60)) {
                out_.faults.push_back({false, 1 + below(chance(70) ? 16 : 2000)});
            } else {
                number const at = likely_address();
                out_.faults.push_back({true, at - at % 4096});
            }
        }
    }
};

inline auto random_setup(std::uint64_t seed) -> output_setup { return setup_maker{seed}.make(); }

}  // namespace reference
