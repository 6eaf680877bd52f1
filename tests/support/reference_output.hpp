// SPDX-License-Identifier: BSL-1.0
#pragma once

// A reference model of trace output: output.md sections 1 to 9, sentence by sentence. It is simple
// on purpose: it writes one byte at a time, keeps no state except the registers and one table
// entry, and uses nothing of the library.
//
// The caller executes the WRMSR that sets TraceEn and maintains STATUS, except for Error, Stopped,
// TriggerEn and PendToPAPMI.

#include <support/reference_rules.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace reference {

// --------------------------------------------------------------------------------- memory

/// Memory by address; unwritten bytes are 0. An access is the load of one entry or the store of one
/// byte. It fails when its page or its number is listed.
class memory {
public:
    static constexpr number page_size = 4096;

    std::vector<number> failing_pages;     ///< addresses of the pages
    std::vector<number> failing_accesses;  ///< counted from 1, including failed accesses
    number accesses = 0;

    [[nodiscard]] auto read(number address) const -> unsigned char {
        std::size_t const at = place_of(address / page_size);
        return at == pages_.size() ? 0 : pages_[at].bytes[address % page_size];
    }
    void write(number address, unsigned char value) {
        std::size_t at = place_of(address / page_size);
        if (at == pages_.size()) {
            pages_.push_back({address / page_size, std::vector<unsigned char>(page_size)});
        }
        pages_[at].bytes[address % page_size] = value;
        last_ = at;
    }
    /// Reads a little-endian word.
    [[nodiscard]] auto read_word(number address) const -> number {
        number word = 0;
        for (unsigned i = 8; i != 0; --i) { word = word * 256 + read(address + i - 1); }
        return word;
    }
    void write_word(number address, number word) {
        for (unsigned i = 0; i < 8; ++i) {
            write(address + i, static_cast<unsigned char>(word % 256));
            word /= 256;
        }
    }

    /// Counts an access. Returns false when it fails.
    auto works(number address) -> bool {
        ++accesses;
        for (number const failing : failing_pages) {
            if (address / page_size == failing / page_size) { return false; }
        }
        for (number const failing : failing_accesses) {
            if (accesses == failing) { return false; }
        }
        return true;
    }
    /// Makes all pages accessible.
    void heal() { failing_pages.clear(); }

    /// True when both hold the same bytes.
    [[nodiscard]] auto same_as(memory const& other) const -> bool {
        return contains(other) && other.contains(*this);
    }

private:
    struct page {
        number index;
        std::vector<unsigned char> bytes;
    };
    std::vector<page> pages_;
    std::size_t last_ = 0;  ///< index of the page that was written last

    [[nodiscard]] auto place_of(number index) const -> std::size_t {
        if (last_ < pages_.size() && pages_[last_].index == index) { return last_; }
        std::size_t at = 0;
        while (at < pages_.size() && pages_[at].index != index) { ++at; }
        return at;
    }
    [[nodiscard]] auto contains(memory const& other) const -> bool {
        std::vector<unsigned char> const zeros(page_size);
        for (page const& theirs : other.pages_) {
            std::size_t const at = place_of(theirs.index);
            auto const& ours = at == pages_.size() ? zeros : pages_[at].bytes;
            if (!std::equal(ours.begin(), ours.end(), theirs.bytes.begin())) { return false; }
        }
        return true;
    }
};

// -------------------------------------------------------------------------------- machine

/// Both ends are included. The range is empty when `first` is above `last`.
struct address_range {
    number first;
    number last;
};

/// The outcome of a byte. The address is that of the byte or, for `fault`, of the failed access;
/// then the byte was not taken, and the caller passes it again. When only the load of the next
/// entry failed, the byte was taken and `machine::unread` is set.
enum class outcome { stored, dropped, lost, fabric, fault };

struct byte_result {
    outcome what = outcome::lost;
    number address = 0;
};

/// The outcome of an event that is not a byte.
struct step_result {
    bool faulted = false;
    number address = 0;
};

/// All state that the output of a byte depends on.
struct machine {
    number ctl = 0;
    number status = 0;
    number base = 0;
    number mask_ptrs = 0x7F;
    number global_status = 0;

    unsigned max_phys_addr = 52;
    bool many_entries = true;     ///< CPUID.14H.0:ECX[1]
    bool inject_capable = false;  ///< CPUID.14H.0:EBX[6]

    number smrr_base = 0;
    number smrr_mask = 0;
    std::vector<address_range> ranges;
    number lead = 512;
    bool restricted_is_error = false;

    memory ram;

    // Results other than registers.
    unsigned pmis = 0;
    unsigned error_rule = 0;     ///< the rule that set Error, 2062 for OUT-062; 0 for none
    unsigned stop_rule = 0;      ///< the rule that set Stopped
    bool met[256] = {};          ///< rules OUT that were applied
    bool own_bytes_met = false;  ///< an entry was read from a page that holds trace

    // State that is not in a register.
    number entry = 0;        ///< the current entry
    bool unread = false;     ///< the current entry has not been read
    bool unchecked = false;  ///< the offset has not changed since tracing was enabled
    std::vector<number> traced_pages;

    auto enable() -> step_result;
    auto resume() -> step_result;
    auto write_byte(unsigned char value) -> byte_result;

    [[nodiscard]] auto on() const -> bool { return bit(status, 2); }
    [[nodiscard]] auto fabric() const -> bool { return bit(ctl, 6); }
    [[nodiscard]] auto topa() const -> bool { return !bit(ctl, 6) && bit(ctl, 8); }
    [[nodiscard]] auto offset() const -> number { return field(mask_ptrs, 63, 32); }
    [[nodiscard]] auto index() const -> number { return field(mask_ptrs, 31, 7); }
    [[nodiscard]] auto mask() const -> number { return field(mask_ptrs, 31, 0); }

private:
    void set_offset(number value) { mask_ptrs = value * 0x1'0000'0000 + field(mask_ptrs, 31, 0); }
    void set_index(number value) {
        mask_ptrs = field(mask_ptrs, 63, 32) * 0x1'0000'0000 + value * 128 + 127;
    }
    void meet(unsigned rule) { met[rule] = true; }

    void fail(unsigned rule);
    void stop(unsigned rule);
    void raise_pmi();

    [[nodiscard]] auto restricted(number address) const -> bool;
    [[nodiscard]] auto entry_restricted(number address) const -> bool;
    [[nodiscard]] auto entry_base() const -> number { return field(entry, 63, 12) * 4096; }
    [[nodiscard]] auto region_size() const -> number { return number{4096} << field(entry, 9, 6); }
    [[nodiscard]] auto next_address() const -> number;
    [[nodiscard]] auto broken_by_entry() const -> unsigned;

    void check_next_address();
    auto load_entry() -> step_result;
    void advance_topa();
    void note_trace_byte(number address);
};

/// Section 5, REG-056: an error stops tracing.
inline void machine::fail(unsigned rule) {
    meet(rule);
    status = changed(status, 4, true);
    status = changed(status, 2, false);
    error_rule = 2000 + rule;
    unread = false;
}

inline void machine::stop(unsigned rule) {
    meet(rule);
    status = changed(status, 5, true);
    status = changed(status, 2, false);
    stop_rule = 2000 + rule;
}

/// OUT-082, OUT-085.
inline void machine::raise_pmi() {
    ++pmis;
    global_status = changed(global_status, 55, true);
    if (inject_capable && bit(ctl, 56)) {
        meet(85);
        status = changed(status, 7, true);
    }
}

/// OUT-110, OUT-116.
inline auto machine::restricted(number address) const -> bool {
    if (bit(smrr_mask, 11) && address < 0x1'0000'0000) {
        bool same = true;
        for (unsigned i = 12; i < 32; ++i) {
            if (bit(smrr_mask, i) && bit(smrr_base, i) != bit(address, i)) { same = false; }
        }
        if (same) { return true; }
    }
    for (address_range const& range : ranges) {
        if (range.first <= address && address <= range.last) { return true; }
    }
    return false;
}

inline auto machine::entry_restricted(number address) const -> bool {
    for (unsigned i = 0; i < 8; ++i) {
        if (restricted(address + i)) { return true; }
    }
    return false;
}

/// OUT-021, OUT-051.
inline auto machine::next_address() const -> number {
    if (topa()) { return entry_base() + offset(); }
    number const inside = offset() & mask();
    number const outside = base & ~mask();
    return outside + inside;
}

/// OUT-111: checks the address of the next byte.
inline void machine::check_next_address() {
    if (restricted_is_error && restricted(next_address())) { fail(111); }
}

/// The lowest rule that the entry breaks, or 0. This order is not architectural.
inline auto machine::broken_by_entry() const -> unsigned {
    bool const end = bit(entry, 0);
    bool const interrupt = bit(entry, 2);
    bool const stops = bit(entry, 4);

    if (bit(entry, 1) || bit(entry, 3) || bit(entry, 5)) { return 60; }
    if (bit(entry, 10) || bit(entry, 11)) { return 60; }
    if (!end && entry_base() % region_size() != 0) { return 62; }
    if (field(entry, 63, max_phys_addr) != 0) { return 63; }
    if (end && (interrupt || stops)) { return 65; }
    if (end && index() == 0) { return 66; }
    if (!many_entries && !end && index() >= 1) { return 67; }
    if (!many_entries && end && entry_base() != base) { return 68; }
    return 0;
}

/// Reads the current entry, and follows it where it is a link.
inline auto machine::load_entry() -> step_result {
    while (true) {
        number const address = base + 8 * index();
        if (field(address, 63, max_phys_addr) != 0) {
            fail(71);
            return {};
        }
        if (entry_restricted(address)) {
            fail(91);
            return {};
        }
        if (!ram.works(address)) { return {true, address}; }
        entry = ram.read_word(address);
        for (number const page : traced_pages) {
            if (page == address / memory::page_size) { own_bytes_met = true; }
        }
        unsigned const broken = broken_by_entry();
        if (broken != 0) {
            fail(broken);
            return {};
        }
        if (bit(entry, 0)) {  // OUT-054, OUT-057
            meet(unchecked ? 57 : 54);
            base = entry_base();
            set_index(0);
            set_offset(0);
            unchecked = false;
            continue;
        }
        if (unchecked && offset() >= region_size()) {
            fail(64);
            return {};
        }
        unread = false;
        unchecked = false;
        check_next_address();
        return {};
    }
}

/// WRMSR has set TraceEn in CTL.
inline auto machine::enable() -> step_result {
    bool const trigger = bit(ctl, 0) && !bit(status, 5) && !bit(status, 4);  // REG-056
    status = changed(status, 2, trigger);
    unread = false;
    if (!trigger) {
        meet(7);
        return {};
    }
    if (fabric()) {  // OUT-001, OUT-120
        meet(120);
        return {};
    }
    if (topa()) {
        if (field(base, 11, 7) != 0) {
            fail(61);
            return {};
        }
        unread = true;
        unchecked = true;
        return load_entry();
    }
    bool zero_seen = false;  // OUT-022: no 1 above a 0
    for (unsigned i = 0; i < 32; ++i) {
        if (!bit(mask(), i)) { zero_seen = true; }
        if (bit(mask(), i) && zero_seen) {
            fail(22);
            return {};
        }
    }
    if ((base & mask()) != 0) {
        fail(23);
        return {};
    }
    if (offset() > mask()) {
        fail(24);
        return {};
    }
    check_next_address();
    return {};
}

/// Repeats a failed load. A failed store is not repeated: the caller passes the byte again.
inline auto machine::resume() -> step_result {
    if (unread) { return load_entry(); }
    return {};
}

inline void machine::note_trace_byte(number address) {
    number const page = address / memory::page_size;
    if (!traced_pages.empty() && traced_pages.back() == page) { return; }
    for (number const known : traced_pages) {
        if (known == page) { return; }
    }
    traced_pages.push_back(page);
}

/// Advances by one byte, which was stored or dropped: OUT-117.
inline void machine::advance_topa() {
    number const size = region_size();
    number const before = offset();
    number const after = before + 1;
    bool const full = after == size;
    bool const interrupt = bit(entry, 2);
    bool const stops = bit(entry, 4);

    bool pmi = false;
    if (interrupt && many_entries && full) {
        meet(82);
        pmi = true;
    }
    if (interrupt && !many_entries) {  // OUT-101, OUT-104
        number const early = lead < size ? lead : size - 1;
        number const due = size - early;
        if (before < due && due <= after) {
            meet(104);
            pmi = true;
        }
    }

    set_offset(after);
    if (full && stops) {  // OUT-080, and OUT-083 for the order
        stop(80);
        if (pmi) {
            meet(83);
            raise_pmi();
        }
        return;
    }
    if (pmi) { raise_pmi(); }
    if (!full) {
        check_next_address();
        return;
    }

    set_offset(0);
    if (index() == 0x1FF'FFFF) {  // OUT-055
        meet(55);
        set_index(0);
    } else {  // OUT-053
        meet(53);
        set_index(index() + 1);
    }
    unread = true;
    load_entry();  // where this load fails, the next byte or resume() repeats it
}

inline auto machine::write_byte(unsigned char value) -> byte_result {
    if (unread) {
        step_result const step = load_entry();
        if (step.faulted) { return {outcome::fault, step.address}; }
    }
    if (!on()) { return {outcome::lost, 0}; }
    if (fabric()) { return {outcome::fabric, 0}; }

    number const address = next_address();
    byte_result result{outcome::stored, address};
    if (restricted(address)) {
        meet(111);
        result.what = outcome::dropped;
    } else {
        if (!ram.works(address)) { return {outcome::fault, address}; }
        ram.write(address, value);
        note_trace_byte(address);
    }

    if (topa()) {
        advance_topa();
        return result;
    }
    number const after = offset() + 1;
    if (after > mask()) {
        meet(21);
        set_offset(0);
    } else {
        set_offset(after);
    }
    check_next_address();
    return result;
}

// --------------------------------------------------------------------------------- counts

/// The outcome of a sequence of bytes.
struct packet_counts {
    number taken = 0;  ///< all except the byte that met a fault
    number stored = 0;
    number lost = 0;     ///< including dropped bytes, and those to the fabric: no port takes them
    number dropped = 0;  ///< lost, but had an address
    bool placed = false;
    number first = 0;  ///< address of the first byte that had one, including dropped bytes
    number last = 0;
    bool faulted = false;  ///< the first byte that was not taken met a fault
    number fault_address = 0;

    void add(byte_result const& byte) {
        if (byte.what == outcome::fault) {
            faulted = true;
            fault_address = byte.address;
            return;
        }
        ++taken;
        if (byte.what == outcome::stored) { ++stored; }
        if (byte.what == outcome::lost || byte.what == outcome::dropped ||
            byte.what == outcome::fabric) {
            ++lost;
        }
        if (byte.what == outcome::dropped) { ++dropped; }
        if (byte.what == outcome::stored || byte.what == outcome::dropped) {
            if (!placed) { first = byte.address; }
            placed = true;
            last = byte.address;
        }
    }
};

/// OUT-151: writes bytes one by one. Stops at the first fault.
inline auto write(machine& where, unsigned char const* bytes, std::size_t count) -> packet_counts {
    packet_counts result;
    for (std::size_t i = 0; i < count && !result.faulted; ++i) {
        result.add(where.write_byte(bytes[i]));
    }
    return result;
}

}  // namespace reference
