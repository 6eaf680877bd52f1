// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/enable.hpp>
#include <ptspec/driver/ring.hpp>

/// Reads a ring in the order of writing, without copying.
namespace ptspec::driver {

/// A part of a ring: `count` bytes from an offset on, which may continue at the start of the ring.
struct ring_part {
    uint64_t from = 0;  ///< less than the size of the ring
    uint64_t count = 0;

    friend constexpr auto operator==(ring_part const&, ring_part const&) -> bool = default;
};

/// Calls `visit(base, bytes)` with the contiguous physical memory of a part, in order. Regions that
/// are adjacent in memory are merged. A visitor that returns bool stops with false.
///
/// Source: PRG-129.
template <class Visit>
constexpr void for_each_span(ring const& in, ring_part part, Visit&& visit) noexcept {
    if (part.count == 0) { return; }
    auto [region, at] = region_at(in, part.from);
    uint64_t base = in.regions[region].base + at;
    uint64_t bytes = 0;
    uint64_t left = part.count;
    while (left != 0) {
        uint64_t const size = topa::bytes_in(in.regions[region].size);
        uint64_t const here = size - at < left ? size - at : left;
        uint64_t const start = in.regions[region].base + at;
        if (start != base + bytes) {
            if constexpr (requires { static_cast<bool>(visit(base, bytes)); }) {
                if (!visit(base, bytes)) { return; }
            } else {
                visit(base, bytes);
            }
            base = start;
            bytes = 0;
        }
        bytes += here;
        left -= here;
        at = 0;
        region = region_after(in, region);
    }
    (void)visit(base, bytes);
}

// ------------------------------------------------------------------------------------ streaming

/// The reader of a ring in which unread bytes are not overwritten: see `set_marks`.
struct ring_reader {
    uint64_t read_at = 0;  ///< the offset of the oldest unread byte
    uint64_t unread = 0;   ///< the number of unread bytes
    uint64_t total = 0;    ///< bytes of trace since the start

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
    bool found = false;        ///< false: the position is not in the ring
    uint64_t new_bytes = 0;    ///< stored since the last update
    uint64_t overwritten = 0;  ///< unread bytes that new ones replaced: the oldest, now skipped

    constexpr explicit operator bool() const noexcept { return found; }
};

/// Takes the position of a trace after TraceEn was cleared. A region with STOP that is full may
/// show its size or its last byte as the offset, by edition of the manual.
///
/// Without STOP the position after a whole lap is that after no byte: no byte is assumed.
///
/// Errors: not found: the position is in no table of the ring; nothing is changed.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; PRG-086, PRG-123, PRG-129, PRG-143.
constexpr auto update(ring const& in, ring_reader& reader, stopped_trace const& now) noexcept
    -> ring_update {
    auto at = offset_of(in, now.output);
    if (!at) { return {}; }
    bool const has_stop = entry_of(in, at.region).template get<topa::entry::STOP>();
    if (now.status.get<ia32_rtit_status::Stopped>() && has_stop && !at.at_region_end) {
        auto const next = offset_of(
            in, {now.output.base, {now.output.mask_ptrs.raw + (uint64_t{1} << 32)}});
        if (next && next.at_region_end) { at = next; }  // the newer edition
    }
    uint64_t const head = reader.head(in);
    uint64_t const to = at.offset % in.bytes;
    uint64_t count = to >= head ? to - head : to + in.bytes - head;
    if (count == 0 && at.at_region_end) { count = in.bytes; }
    ring_update result{.found = true, .new_bytes = count};
    reader.total += count;
    reader.unread += count;
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
/// Source: PRG-129, PRG-141..143.
struct [[nodiscard]] snapshot_part {
    bool found = false;
    ring_part part{};

    constexpr explicit operator bool() const noexcept { return found; }
};
[[nodiscard]] constexpr auto snapshot(ring const& in, output_buffer const& now,
                                      bool wrapped) noexcept -> snapshot_part {
    auto const at = offset_of(in, now);
    if (!at) { return {}; }
    uint64_t const end = at.offset % in.bytes;
    bool const is_full = wrapped || at.offset == in.bytes;
    return {true, is_full ? ring_part{end, in.bytes} : ring_part{0, at.offset}};
}

/// True if a ring whose memory was zero at the start has wrapped: if a byte after the position is
/// not zero. Looks at `look_at` bytes after it, and at as many at the end of the ring: a trace may
/// contain zeros (PAD).
///
/// Errors: memory that cannot be read counts as zero.
/// Source: PRG-140.
template <memory_port Memory>
[[nodiscard]] constexpr auto has_wrapped(ring const& in, output_buffer const& now, Memory& memory,
                                         uint64_t look_at = 4096) noexcept -> bool {
    auto const at = offset_of(in, now);
    if (!at || at.offset >= in.bytes) { return false; }
    auto const has_trace = [&](ring_part part) {
        bool found = false;
        for_each_span(in, part, [&](uint64_t base, uint64_t bytes) {
            for (uint64_t i = align_down(base, 8); i < base + bytes && !found; i += 8) {
                auto const word = memory.load(i);
                uint64_t value = word ? word.value : 0;
                if (i < base) { value &= ~low_bits(static_cast<unsigned>(8 * (base - i))); }
                if (base + bytes - i < 8) {
                    value &= low_bits(static_cast<unsigned>(8 * (base + bytes - i)));
                }
                found = value != 0;
            }
            return !found;
        });
        return found;
    };
    uint64_t const after = in.bytes - at.offset;
    uint64_t const count = after < look_at ? after : look_at;
    return has_trace({at.offset, count}) || has_trace({in.bytes - count, count});
}

// ------------------------------------------------------------------------------------ one range

/// The trace in a single range, which is circular.
///
/// Source: SDM vol. 3, "Single Range Output"; PRG-081, PRG-142.
struct single_range_part {
    uint64_t first_base = 0;  ///< the older bytes
    uint64_t first_bytes = 0;
    uint64_t second_base = 0;  ///< the newer bytes
    uint64_t second_bytes = 0;

    friend constexpr auto operator==(single_range_part const&, single_range_part const&)
        -> bool = default;
};
[[nodiscard]] constexpr auto snapshot_of_single_range(output_buffer const& now,
                                                      bool wrapped) noexcept -> single_range_part {
    uint64_t const bytes = single_range::mask_of(now.mask_ptrs) + 1;
    uint64_t const offset = now.mask_ptrs.get<ia32_rtit_output_mask_ptrs::OutputOffset>();
    uint64_t const end = offset < bytes ? offset : 0;
    return {now.base.raw + end, wrapped ? bytes - end : 0, now.base.raw, end};
}

}  // namespace ptspec::driver
