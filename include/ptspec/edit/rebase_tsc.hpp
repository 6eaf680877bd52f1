// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/edit/chunked_trace.hpp>
#include <ptspec/packet/encode.hpp>

/// Changes the TSC of a guest's trace in place, where the VMCS did not.
namespace ptspec::edit {

/// The result of `rebase_tsc`.
struct [[nodiscard]] rebased_tsc {
    rule broken = rule::none;  ///< the rule that a TMA breaks: nothing has changed
    uint64_t offset = 0;       ///< of that TMA, from the start of the trace
    uint64_t count = 0;        ///< TSC packets
    uint64_t skipped = 0;      ///< bytes that stay as they are, as in `replaced_addresses`
    size_t kept_back = 0;      ///< bytes at the end that are unchanged, as in `replaced_addresses`

    constexpr explicit operator bool() const noexcept {
        return broken == rule::none && skipped == 0;
    }
};

namespace detail {

/// Calls `put(offset, bytes)` for each TSC and TMA of a chunk, changed. Returns the offset of the
/// first TMA that cannot be changed, and the rule that it breaks.
template <class Packets>
constexpr auto change_times(chunked_trace<packet::tsc, Packets>& chunks, trace_bytes& chunk,
                            bool is_last, trace::tsc_change change, auto const& put) noexcept
    -> rebased_tsc {
    rebased_tsc result;
    chunks.tsc.set(change);
    chunks.reader.read(chunk, is_last, [&](trace::item const& item) {
        auto const write = [&]<class Packet>(Packet const& changed) {
            put(item.offset, byte_view{packet::encode<Packet, Packets>(changed)});
        };
        if (item.what == trace::item_type::resynced) {
            write(packet::psb{});  // a TSC may have had its first bytes
        } else if (item.packet.is<packet::tsc>()) {
            write(chunks.tsc.changed(item.packet.as<packet::tsc>()));
        } else if (item.packet.is<packet::tma>() && change.scales()) {
            auto tma = item.packet.as<packet::tma>();
            rule const broken = chunks.tsc.change(tma);
            if (broken != rule::none && result.broken == rule::none) {
                result.broken = broken;
                result.offset = item.offset;
            }
            write(tma);
        }
    });
    return result;
}

template <class Packets>
constexpr auto rebase_tsc(chunked_trace<packet::tsc, Packets>& chunks, trace_memory memory,
                          bool is_last, trace::tsc_change change) noexcept -> rebased_tsc {
    trace_bytes chunk{memory, chunks.reader.begin()};
    auto trial = chunks;
    auto result = change_times(trial, chunk, is_last, change, [](uint64_t, byte_view) {});
    if (result.broken != rule::none) { return result; }
    (void)change_times(chunks, chunk, is_last, change, [&](uint64_t offset, byte_view bytes) {
        chunk.write(offset, bytes);
        result.count += bytes[0] == packet::tsc{}.raw ? 1U : 0U;
    });
    result.skipped = chunks.reader.skipped();
    result.kept_back = chunks.reader.kept_back();
    return result;
}

}  // namespace detail

/// Rewrites the TSC packets of a chunk of a trace in place, for a guest whose RDTSC the VMM
/// emulates, or that moved to another processor: then `change` is another one from a chunk on.
///
/// MTC, CYC and CBR do not change. With an offset alone, all relations of the clocks stay. With a
/// multiplier FC changes, too, and MTC and CYC have the guest's time only if its CPUID leaf 15H and
/// MSR_PLATFORM_INFO are scaled in the same way (PRG-176).
///
/// Errors: with a multiplier: PKT-303 a TMA without a TSC; PKT-340 an FC that has more than 9 bits
///         after the change. Then nothing has changed, and the call can be repeated with another
///         `change`.
/// Source: REG-133, GEN-200, GEN-209, PRG-175, PRG-176, PKT-100, PKT-300, PKT-315, PKT-317.
template <class Packets>
constexpr auto rebase_tsc(chunked_trace<packet::tsc, Packets>& chunks, trace_memory chunk,
                          trace::tsc_change change) noexcept -> rebased_tsc {
    return detail::rebase_tsc(chunks, chunk, false, change);
}
/// The same for a whole trace.
template <class Packets = packet::all>
constexpr auto rebase_tsc(trace_memory whole, trace::tsc_change change) noexcept -> rebased_tsc {
    chunked_trace<packet::tsc, Packets> only_chunk;
    return detail::rebase_tsc(only_chunk, whole, true, change);
}

}  // namespace ptspec::edit
