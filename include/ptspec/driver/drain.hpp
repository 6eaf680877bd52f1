// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/switch_context.hpp>
#include <ptspec/driver/ring_reader.hpp>
#include <ptspec/driver/topa_pmi.hpp>

/// Reading out a ring between two periods of tracing.
namespace ptspec::driver {

/// What `drain` did.
struct [[nodiscard]] drained : ring_update {
    /// The end of a full buffer, or a TraceStop range, ended tracing: the trace has a gap here.
    bool was_stopped = false;
    pmi_decision next{};  ///< how tracing continues
};

/// The bytes left in a region below which a stepped ring moves on to the next region: the PMI of a
/// processor whose tables have one region comes up to this many bytes early.
///
/// Source: PRG-126, OUT-101.
inline constexpr uint64_t pmi_margin = engine::output_options{}.pmi_lead_bytes;

/// True if the PMI of a region with INT is due at a position: the region became full after the
/// bytes that the reader has counted. If the handler did not read them since, it ran while TraceEn
/// was 0, or the PMI was lost: call `read_out`. False for a position that is not in the ring.
///
/// May be true although nothing is left to do, if the handler ran after `stopped` was read:
/// `read_out` then finds only the bytes since.
/// Source: PRG-063, PRG-085, PRG-115, PRG-121..123, PRG-126.
[[nodiscard]] constexpr auto wake_up_is_due(ring const& in, ring_reader const& reader,
                                            stopped_trace const& stopped) noexcept -> bool {
    auto const at = offset_of(in, stopped);
    if (!at || reader.is_still_at(stopped.output)) { return false; }
    uint64_t left = detail::bytes_since(in, reader, at);
    uint64_t const lead = in.is_stepped ? pmi_margin : 0;
    auto [region, offset] = region_at(in, reader.head(in));
    while (true) {
        uint64_t const room = topa::bytes_in(in.regions[region].size) - offset;
        if (left + lead < room) { return false; }
        if (in.is_stepped || entry_of(in, region).get<topa::entry::INT>()) { return true; }
        left -= room;
        offset = 0;
        region = region_after(in, region);
    }
}

/// Reads out a ring after TraceEn was cleared: calls `visit(base, bytes)` with the physical memory
/// of the new bytes in order, which are then free, and prepares the ring for more: INT and STOP of
/// a streaming ring, the position after a full region, the next region of a stepped ring.
///
/// Units:  `wake_up_bytes` of trace from here on cause the next PMI of a streaming ring; 0: half of
///         the ring.
/// Errors: not found: the position is not in the ring. Nothing is visited, and `next.resume` is
///         false. If `visit` throws, the bytes stay unread: call `drain` again.
/// Source: PRG-086, PRG-121..123, PRG-126, PRG-129, OUT-093, OUT-094.
template <class Visit>
constexpr auto drain(ring const& in, ring_reader& reader, stopped_trace const& stopped,
                     Visit&& visit, uint64_t wake_up_bytes = 0) -> drained {
    drained result{update(in, reader, stopped)};
    result.was_stopped = stopped.status.get<ia32_rtit_status::Stopped>();
    if (!result.found) {
        result.next.resume = false;
        return result;
    }
    for_each_span(in, reader.part(), visit);
    reader.consume(in, reader.unread);
    if (in.is_stepped && !reader.is_at_end) {
        auto const place = region_at(in, reader.read_at);
        uint64_t const left = topa::bytes_in(in.regions[place.region].size) - place.offset;
        if (left <= pmi_margin) {
            reader.read_at = (reader.read_at + left) % in.bytes;
            reader.is_at_end = true;
        }
    }
    uint64_t const head = reader.head(in);
    if (reader.is_at_end) {
        result.next = {.has_new_output = true, .output = output_at(in, head), .reader = &reader};
    }
    if (in.recipe == buffer_recipe::streaming) {
        uint64_t const wake_up = wake_up_bytes != 0 ? wake_up_bytes : in.bytes / 2;
        (void)set_marks(in, {.head = head, .wake_up_bytes = wake_up});
    }
    return result;
}

/// Prepares a saved state, or the plan of `restart`, for continuing after its ring was read out,
/// and tells the reader. Error stays set: see `triage`.
///
/// Source: PRG-041, PRG-086.
constexpr void continue_after(pmi_decision const& next, access::msr_state& saved) noexcept {
    saved.status = saved.status.with(ia32_rtit_status::Stopped{false});
    if (!next.has_new_output) { return; }
    saved.output = next.output;
    next.tell_reader();
}
constexpr void continue_after(drained const& read_out, access::msr_state& saved) noexcept {
    continue_after(read_out.next, saved);
}

}  // namespace ptspec::driver
