// SPDX-License-Identifier: BSL-1.0
// Fuzzes output with any registers, tables, writes and faults: the engine and a reference model of
// the same rules must agree byte for byte.
//
//   byte 0       MAXPHYADDR minus 32, up to 20
//   byte 1       bit 0 MENTRY, 1 EBX[6], 2 restricted memory is an error; CTL: 3 ToPA, 4 FabricEn,
//                5 InjectPsbPmiOnEnable; STATUS: 6 Error, 7 Stopped
//   byte 2       bits 1:0 the number of protected ranges, 4:2 of words, 7:5 of writes
//   byte 3       bits 1:0 the number of faults, 7:2 how they are handled
//   8 bytes each OUTPUT_BASE, OUTPUT_MASK_PTRS, SMRR base and mask, the lead of interrupts
//   8 bytes twice for a range: its first address, and its size
//   1 byte for a word: its placement (see `places`); 8 its address if it has one; 8 its value
//   2 bytes for a write: its size; the upper byte counts from C0H and is 0 below that
//   1 byte and 8 for a fault: bit 0 selects a page, by address, or an access, by number

#include <fuzz/check.hpp>
#include <support/output_twin.hpp>

namespace {

using fuzz::require;

/// Places words one after another, from the first ToPA entry of the output position. A placement of
/// 1 gives an address of its own, 2 the start of the table that the word before links to.
class places {
public:
    explicit places(uint64_t next) : next_{next} {}

    auto put(fuzz::input& from) -> reference::placed_word {
        unsigned const where = from.byte() % 4;
        if (where == 1) { next_ = from.number() % highest; }
        if (where == 2) { next_ = last_ & ~uint64_t{0xFFF}; }
        last_ = from.number();
        reference::placed_word const made{next_, last_};
        next_ = (next_ + 8) % highest;
        return made;
    }

private:
    static constexpr uint64_t highest = uint64_t{1} << 53;
    uint64_t next_;
    uint64_t last_ = 0;
};

auto setup_from(fuzz::input& from, uint64_t& manner) -> reference::output_setup {
    reference::output_setup setup;
    setup.max_phys_addr = 32 + from.byte() % 21U;
    unsigned const flags = from.byte();
    setup.many_entries = (flags & 1) != 0;
    setup.inject_capable = (flags & 2) != 0;
    setup.restricted_is_error = (flags & 4) != 0;
    setup.ctl = 0x200D;  // BranchEn, User, OS, TraceEn
    setup.ctl |= (flags & 8) != 0 ? uint64_t{1} << 8 : 0;
    setup.ctl |= (flags & 16) != 0 ? uint64_t{1} << 6 : 0;
    setup.ctl |= (flags & 32) != 0 ? uint64_t{1} << 56 : 0;
    setup.status = flags >> 6 << 4;
    unsigned const counts = from.byte();
    unsigned const more = from.byte();
    manner = more / 4;

    uint64_t const below = (uint64_t{1} << setup.max_phys_addr) - 1;
    setup.base = from.number() & below & ~uint64_t{0x7F};
    setup.mask_ptrs = from.number() | 0x7F;
    setup.smrr_base = from.number();
    setup.smrr_mask = from.number();
    setup.lead = from.number() % 0x1'0000'0000;
    for (unsigned i = 0; i < counts % 4; ++i) {
        uint64_t const first = from.number();
        setup.ranges.push_back({first, first + from.number()});
    }
    places place{(setup.base + (setup.mask_ptrs >> 7) % 0x200'0000 * 8) % (uint64_t{1} << 53)};
    for (unsigned i = 0; i < counts / 4 % 8; ++i) { setup.words.push_back(place.put(from)); }
    for (unsigned i = 0; i < counts / 32; ++i) {
        unsigned const low = from.byte();
        unsigned const high = from.byte();
        setup.writes.push_back(high < 0xC0 ? low : low + (high - 0xC0) * 256);
    }
    for (unsigned i = 0; i < more % 4; ++i) {
        bool const page = from.byte() % 2 == 0;
        uint64_t const value = from.number();
        setup.faults.push_back({page, page ? value & ~uint64_t{0xFFF} : value % 0x1'0000});
    }
    return setup;
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::input from{data, size};
    uint64_t manner = 0;
    auto const setup = setup_from(from, manner);
    static ptspec::test::output_twins twins;
    char const* const what = twins.difference(setup, manner);
    require(what == nullptr, what != nullptr ? what : "");
    return 0;
}
