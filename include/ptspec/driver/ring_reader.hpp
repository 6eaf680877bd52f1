// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/enable.hpp>
#include <ptspec/driver/ring.hpp>
#include <ptspec/base/attribute.hpp>

/// Reads a ring in the order of writing, without copying.
namespace ptspec::driver {

/// A part of a ring: `count` bytes from an offset on, which may continue at the start of the ring.
struct ring_part {
    uint64_t from = 0;  ///< less than the size of the ring
    uint64_t count = 0;

    friend constexpr auto operator==(ring_part const&, ring_part const&) -> bool = default;
};

namespace detail {

/// Calls the visitor. Returns false when it stops.
template <class Visit>
constexpr auto visit_span(Visit& visit, phys_addr base, uint64_t bytes) -> bool {
    constexpr bool is_visitor = requires { visit(base, bytes) ? true : false; };
    constexpr bool returns_nothing = requires {
        requires same_as<decltype(visit(base, bytes)), void>;
    };
    static_assert(is_visitor || returns_nothing,
                  "the visitor of a ring is called with (ptspec::phys_addr base, uint64_t bytes); "
                  "it returns nothing, or bool: false stops");
    if constexpr (is_visitor) {
        return visit(base, bytes) ? true : false;
    } else if constexpr (returns_nothing) {
        visit(base, bytes);
        return true;
    } else {
        return false;
    }
}

}  // namespace detail

/// Calls `visit(base, bytes)` with the contiguous physical memory of a part, in order. Regions that
/// are adjacent in memory are merged. A visitor that returns bool stops with false.
///
/// Source: PRG-129.
template <class Visit>
constexpr void for_each_span(ring const& in, ring_part part, Visit&& visit) {
    if (part.count == 0) { return; }
    auto [region, at] = region_at(in, part.from);
    phys_addr base = in.regions[region].base + at;
    uint64_t bytes = 0;
    uint64_t left = part.count;
    while (left != 0) {
        uint64_t const size = topa::bytes_in(in.regions[region].size);
        uint64_t const here = size - at < left ? size - at : left;
        phys_addr const start = in.regions[region].base + at;
        if (start != base + bytes) {
            if (!detail::visit_span(visit, base, bytes)) { return; }
            base = start;
            bytes = 0;
        }
        bytes += here;
        left -= here;
        at = 0;
        region = region_after(in, region);
    }
    (void)detail::visit_span(visit, base, bytes);
}

// ------------------------------------------------------------------------------------ streaming

/// The reader of a ring in which unread bytes are not overwritten: see `set_marks`.
struct ring_reader {
    uint64_t read_at = 0;  ///< the offset of the oldest unread byte
    uint64_t unread = 0;   ///< the number of unread bytes
    uint64_t total = 0;    ///< bytes of trace since the start

    /// Tracing cannot continue at the last position, `end`, as after STOP. While the position is
    /// the same, there are no new bytes.
    bool is_at_end = false;
    output_registers end{};

    /// Tracing continues at another position than `end`: the next time that the position is `end`,
    /// a whole lap has passed. `continue_after` and `on_topa_pmi` call this for a `drain`.
    constexpr void restarted() noexcept { is_at_end = false; }
    /// True if the trace is still at a position at which it cannot continue.
    [[nodiscard]] constexpr auto is_still_at(output_registers const& output) const noexcept
        -> bool {
        return is_at_end && end == output;
    }

    /// The offset at which the next byte of trace is stored.
    [[nodiscard]] constexpr auto head(ring const& in) const noexcept -> uint64_t {
        return (read_at + unread) % in.bytes;
    }
    /// The unread bytes, in order.
    [[nodiscard]] constexpr auto part() const noexcept -> ring_part { return {read_at, unread}; }
    /// Marks bytes as read, at most the unread ones.
    constexpr void consume(ring const& in, uint64_t bytes) noexcept {
        uint64_t const done = bytes < unread ? bytes : unread;
        read_at = (read_at + done) % in.bytes;
        unread -= done;
    }
};

/// The result of `update`.
struct [[nodiscard]] ring_update {
    bool found = false;          ///< false: the position is not in the ring
    uint64_t new_bytes = 0;      ///< stored since the last update
    uint64_t overwritten = 0;    ///< unread bytes that new ones replaced: the oldest, now skipped
    bool at_region_end = false;  ///< a region with STOP is full: tracing cannot continue there

    constexpr explicit operator bool() const noexcept { return found; }
};

/// The offset of a trace after TraceEn was cleared. When a region with STOP is full, the offset may
/// be the size of the region or that of its last byte: editions of the manual differ. With
/// STATUS.Stopped both are the end of the region.
///
/// noinline: inlined, a driver has 0.3 KB more (g++ 12).
/// Errors: not found: the position is in no table of the ring, or beyond the end of its region.
/// Source: PRG-086, PRG-129, PRG-143.
PTSPEC_ATTRIBUTE(noinline) [[nodiscard]]
constexpr auto offset_of(ring const& in, stopped_trace const& stopped) noexcept -> ring_offset {
    auto at = offset_of(in, stopped.output);
    if (!at || at.at_region_end || !stopped.status.get<ia32_rtit_status::Stopped>()) { return at; }
    uint64_t const last = topa::bytes_in(in.regions[at.region].size) - 1;
    uint64_t const offset = topa::position_in(stopped.output.base, stopped.output.mask_ptrs).offset;
    if (offset == last && entry_of(in, at.region).template get<topa::entry::STOP>()) {
        ++at.offset;  // the newer edition
        at.at_region_end = true;
    }
    return at;
}

namespace detail {

/// The number of bytes that a reader has not counted, up to a position. Without STOP, a full lap
/// ends where it began: it counts as no bytes.
[[nodiscard]] constexpr auto bytes_since(ring const& in, ring_reader const& reader,
                                         ring_offset const& at) noexcept -> uint64_t {
    uint64_t const head = reader.head(in);
    uint64_t const end = at.offset % in.bytes;
    if (end == head && at.at_region_end) { return in.bytes; }
    return end >= head ? end - head : end + in.bytes - head;
}

}  // namespace detail

/// Takes the position of a trace after TraceEn was cleared. The same position again has no new
/// bytes; at the end of a full region this holds until `restarted()` is called.
///
/// Without STOP, a full lap ends where it began; it counts as no new bytes.
///
/// Errors: not found: the position is in no table of the ring; nothing is changed.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; PRG-086, PRG-123, PRG-129, PRG-143.
constexpr auto update(ring const& in, ring_reader& reader, stopped_trace const& stopped) noexcept
    -> ring_update {
    auto const at = offset_of(in, stopped);
    if (!at) { return {}; }
    ring_update result{.found = true, .at_region_end = at.at_region_end};
    if (reader.is_still_at(stopped.output)) { return result; }
    result.new_bytes = detail::bytes_since(in, reader, at);
    reader.is_at_end = at.at_region_end;
    reader.end = stopped.output;
    reader.total += result.new_bytes;
    reader.unread += result.new_bytes;
    if (reader.unread > in.bytes) {
        result.overwritten = reader.unread - in.bytes;
        reader.read_at = (reader.read_at + result.overwritten) % in.bytes;
        reader.unread = in.bytes;
    }
    return result;
}

// ------------------------------------------------------------------------------------ snapshots

/// The trace in a ring that overwrites its oldest bytes. If it wrapped, the first bytes may be the
/// end of a packet: decoding begins at the first PSB.
///
/// Errors: empty, and `found` false, for a position in no table of the ring.
/// Source: PRG-086, PRG-129, PRG-141..143.
struct [[nodiscard]] snapshot_part {
    bool found = false;
    ring_part part{};

    constexpr explicit operator bool() const noexcept { return found; }
};
[[nodiscard]] constexpr auto snapshot(ring const& in, stopped_trace const& stopped,
                                      bool wrapped) noexcept -> snapshot_part {
    auto const at = offset_of(in, stopped);
    if (!at) { return {}; }
    uint64_t const end = at.offset % in.bytes;
    bool const is_full = wrapped || at.offset == in.bytes;
    return {true, is_full ? ring_part{end, in.bytes} : ring_part{0, at.offset}};
}

namespace detail {

/// The number of bytes up to the last one of a part that is not zero; 0 if all are zero. Memory
/// that cannot be read counts as zero.
template <memory_port Memory>
[[nodiscard]] constexpr auto bytes_until_zeros(ring const& in, ring_part part,
                                               Memory& memory) noexcept -> uint64_t {
    uint64_t last = 0;
    uint64_t before = 0;
    for_each_span(in, part, [&](phys_addr base, uint64_t bytes) {
        phys_addr const end = base + bytes;
        for (phys_addr at = align_down(base, 8); at < end; at += 8) {
            auto const word = memory.load(at.value);
            uint64_t value = word ? word.value : 0;
            if (at < base) { value &= ~low_bits(static_cast<unsigned>(8 * (base - at))); }
            if (end - at < 8) { value &= low_bits(static_cast<unsigned>(8 * (end - at))); }
            if (value == 0) { continue; }
            unsigned bytes_used = 8;
            while (value >> (8 * (bytes_used - 1)) == 0) { --bytes_used; }
            last = before + (at - base) + bytes_used;
        }
        before += bytes;
    });
    return last;
}

}  // namespace detail

/// True if a ring whose memory was zero at the start has wrapped: if a byte after the position is
/// not zero. Reads `checked_bytes` bytes after it, and as many at the end of the ring: a trace may
/// contain zeros (PAD).
///
/// Errors: memory that cannot be read counts as zero.
/// Source: PRG-086, PRG-140.
template <memory_port Memory>
[[nodiscard]] constexpr auto has_wrapped(ring const& in, stopped_trace const& stopped,
                                         Memory& memory, uint64_t checked_bytes = 4096) noexcept
    -> bool {
    auto const at = offset_of(in, stopped);
    if (!at || at.offset >= in.bytes) { return false; }
    uint64_t const after = in.bytes - at.offset;
    uint64_t const count = after < checked_bytes ? after : checked_bytes;
    return detail::bytes_until_zeros(in, {at.offset, count}, memory) != 0 ||
           detail::bytes_until_zeros(in, {in.bytes - count, count}, memory) != 0;
}

/// The part of a ring up to its last byte that is not zero: the trace, when its position is lost
/// and the memory was zero at the start. It may end with PADs that are left out.
///
/// Errors: memory that cannot be read counts as zero.
/// Source: PRG-140.
template <memory_port Memory>
[[nodiscard]] constexpr auto part_in_memory(ring const& in, Memory& memory) noexcept -> ring_part {
    return {0, detail::bytes_until_zeros(in, {0, in.bytes}, memory)};
}

// ------------------------------------------------------------------------------------ one range

/// The trace in a single range, which is circular.
///
/// Source: SDM vol. 3, "Single Range Output"; PRG-081, PRG-142.
struct single_range_part {
    phys_addr first_base{};  ///< the older bytes
    uint64_t first_bytes = 0;
    phys_addr second_base{};  ///< the newer bytes
    uint64_t second_bytes = 0;

    friend constexpr auto operator==(single_range_part const&, single_range_part const&)
        -> bool = default;
};
[[nodiscard]] constexpr auto snapshot_of_single_range(output_registers const& output,
                                                      bool wrapped) noexcept -> single_range_part {
    uint64_t const bytes = single_range::mask_of(output.mask_ptrs) + 1;
    uint64_t const offset = output.mask_ptrs.get<ia32_rtit_output_mask_ptrs::OutputOffset>();
    uint64_t const end = offset < bytes ? offset : 0;
    return {output.base.raw + end, wrapped ? bytes - end : 0, output.base.raw, end};
}

}  // namespace ptspec::driver

#undef PTSPEC_ATTRIBUTE
