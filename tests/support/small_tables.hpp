// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/ports.hpp>

#include <support/tracer.hpp>

namespace ptspec::test {

/// Memory for small tables: two tables, two regions of 4 KB and one of 8 KB.
inline constexpr uint64_t A = 0x1'0000;
inline constexpr uint64_t B = 0x1'1000;
inline constexpr uint64_t X = 0x1'2000;
inline constexpr uint64_t Y = 0x1'3000;
inline constexpr uint64_t Z = 0x1'4000;
inline constexpr size_t ram_size = 0x6000;
using ram = simulate::memory_model<ram_size>;

inline constexpr uint64_t END = 1;
inline constexpr uint64_t INT = 4;
inline constexpr uint64_t STOP = 16;
inline constexpr uint64_t size_8K = 1 << 6;

inline constexpr auto traced_bytes = numbered_bytes<0x3000>();

constexpr auto first_bytes(size_t count) -> byte_view {
    return byte_view{traced_bytes}.first(count);
}

/// MASK_PTRS with an index and an offset.
constexpr auto pointers(uint64_t index, uint64_t offset) -> uint64_t {
    return offset << 32 | index << 7 | 0x7F;
}

template <memory_port Memory>
constexpr void set(Memory& memory, uint64_t address, uint64_t word) {
    uint8_t bytes[8] = {};
    store_le64(bytes, word);
    (void)memory.store(address, bytes);
}

template <memory_port Memory>
constexpr void set_table(Memory& memory, uint64_t table, auto... entries) {
    (set(memory, (table += 8) - 8, static_cast<uint64_t>(entries)), ...);
}

/// True when memory holds these bytes at an address.
template <memory_port Memory>
constexpr auto holds(Memory& memory, uint64_t address, byte_view bytes) -> bool {
    for (size_t i = 0; i < bytes.size();) {
        uint64_t const at = address + i;
        if (at % 8 == 0 && bytes.size() - i >= 8) {
            if (memory.load(at).value != load_le64(bytes.data() + i)) { return false; }
            i += 8;
            continue;
        }
        if ((memory.load(at & ~uint64_t{7}).value >> 8 * (at % 8) & 0xFF) != bytes[i]) {
            return false;
        }
        ++i;
    }
    return true;
}

/// The same memory as separate regions, with unused bytes between them.
template <size_t Pieces>
struct split_ram {
    static constexpr size_t gap = 64;

    uint8_t bytes[ram_size + gap * Pieces] = {};
    host_region pieces[Pieces] = {};

    /// `begins` are the offsets of the regions; the first is 0.
    constexpr explicit split_ram(uint64_t const (&begins)[Pieces]) noexcept {
        for (size_t i = 0; i < Pieces; ++i) {
            uint64_t const end = i + 1 < Pieces ? begins[i + 1] : ram_size;
            pieces[i] = {A + begins[i], bytes + begins[i] + gap * i, end - begins[i]};
        }
    }
    split_ram(split_ram const&) = delete;
    auto operator=(split_ram const&) -> split_ram& = delete;

    /// True when memory holds these bytes, and no byte between the regions was written.
    [[nodiscard]] constexpr auto holds(byte_view wanted) const noexcept -> bool {
        uint64_t at = 0;
        for (size_t i = 0; i < Pieces; ++i) {
            auto const size = static_cast<size_t>(pieces[i].size);
            byte_view const piece{pieces[i].bytes, size};
            if (!(piece == wanted.from(static_cast<size_t>(at)).first(size))) { return false; }
            at += size;
            for (size_t n = 0; n < gap; ++n) {
                if (pieces[i].bytes[size + n] != 0) { return false; }
            }
        }
        return true;
    }
};

/// Runs a body with store() calls, and with in-place writes to regions whose boundaries are inside
/// of output regions. Both memories must be equal at the end.
constexpr auto on_both(auto body) -> bool {
    ram stored{A, {}};
    split_ram<3> cut{{0, 0x2808, 0x3FF8}};
    host_memory in_place{cut.pieces};
    return body(stored) && body(in_place) && cut.holds(stored.bytes);
}

/// The same, but the memory that is written in place is one region.
constexpr auto on_whole(auto body) -> bool {
    ram stored{A, {}};
    split_ram<1> whole{{0}};
    host_memory in_place{whole.pieces};
    return body(stored) && body(in_place) && whole.holds(stored.bytes);
}

template <memory_port Memory>
constexpr auto tracer_on(Memory& memory, cpu::capabilities const& of = cpu::preset::P_SKL)
    -> tracer<Memory> {
    return {.of = of, .memory = memory};
}

/// A processor with tracing enabled at entry 0 of a table.
template <memory_port Memory>
constexpr auto traced_from(Memory& memory, uint64_t table,
                           cpu::capabilities const& of = cpu::preset::P_SKL) -> tracer<Memory> {
    auto one = tracer_on(memory, of);
    one.place(table, 0x7F);
    (void)one.enable_topa();
    return one;
}

constexpr auto smrr(uint64_t base, uint64_t mask) -> engine::output_options {
    return {.restricted = {.smrr_physbase = {base}, .smrr_physmask = {mask}, .extra = nullptr}};
}

template <size_t Count>
constexpr auto protecting(topa::phys_range const (&spans)[Count],
                          engine::restricted_access when = engine::restricted_access::drop)
    -> engine::output_options {
    return {.restricted = {.extra = spans, .extra_count = Count}, .when_restricted = when};
}

/// Not a rule: an error whose state is wrong.
inline constexpr rule wrong_state{0xFFFF};

/// The rule by which enabling fails, or none. A failure must have no other effect.
constexpr auto enabling_fails(uint64_t base, uint64_t mask_ptrs, listed_memory memory,
                              cpu::capabilities const& of = cpu::preset::P_SKL,
                              engine::output_options const& how = {}) -> rule {
    auto one = tracer_on(memory, of);
    one.how = how;
    one.place(base, mask_ptrs);
    (void)one.enable_topa();
    rule const why = one.out.ended_by();
    if (why == rule::none) { return one.is_running() ? why : wrong_state; }
    bool const failed = one.has_failed(why) && one.is_at(base, mask_ptrs);
    auto const done = one.write(first_bytes(3));
    bool const lost = done == engine::write_result{.taken = 3, .lost = 3} && memory.run_count == 0;
    return failed && lost && !one.pmi_pending() ? why : wrong_state;
}

}  // namespace ptspec::test
