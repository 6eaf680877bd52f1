// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/enables.hpp>
#include <ptspec/access/msr_write_sources.hpp>
#include <ptspec/engine/action/execution_context.hpp>
#include <ptspec/engine/action/time.hpp>
#include <ptspec/engine/model_options.hpp>
#include <ptspec/engine/clocks.hpp>
#include <ptspec/engine/detail/fast_ips.hpp>
#include <ptspec/trace/return_stack.hpp>
#include <ptspec/trace/write/batch.hpp>
#include <ptspec/base/attribute.hpp>

namespace ptspec::engine {

/// The controls by which a VMM conceals VMX operation from the trace.
///
/// Source: GEN-278, REG-122..124.
struct vmx_concealment {
    bool non_root = false;  ///< "conceal VMX from PT", a VM-execution control
    bool exits = false;     ///< "conceal VMX from PT", a VM-exit control
    bool entries = false;   ///< "conceal VMX from PT", a VM-entry control

    friend constexpr auto operator==(vmx_concealment const&, vmx_concealment const&)
        -> bool = default;
};

/// The base address in a VMCS packet while no VMCS is current.
///
/// Source: GEN-244.
inline constexpr uint64_t no_vmcs = ~uint64_t{0};

/// The state that a decoder has after the packets so far.
struct decoder_view {
    uint64_t mode = 0;  ///< the bits of the last MODE.Exec since the last PSB; 0: none
    uint64_t pip = 0;   ///< the bits of the last PIP; 0: none
    bool in_tx = false;
    bool psb_requested = false;
    uint64_t count_start = 0;  ///< `writer.bytes` when PacketByteCnt was 0

    friend constexpr auto operator==(decoder_view const&, decoder_view const&) -> bool = default;
};

/// The packets that follow an overflow during which tracing stopped.
///
/// Source: GEN-225, GEN-230.
enum class deferred_ovf : uint8_t { none, ovf, ovf_and_trace_stop };

/// The state of packet generation between two actions.
///
/// `msrs.status.PacketByteCnt` and `PendPSB` are not kept current: see `status_now`.
///
/// Source: GEN-003..008, GEN-123, GEN-160..176, GEN-225..230.
struct generator_state {
    cpu::capabilities caps{};
    model_options options{};
    access::msr_state msrs{};
    execution_context code{};
    uint64_t ip = 0;  ///< the next instruction

    trace::writer_state writer{};
    trace::writer_options write_options{};  ///< from IA32_RTIT_CTL and `options`
    trace::return_stack calls{};
    engine::clocks clocks{};
    decoder_view view{};
    vmx_concealment concealment{};
    uint64_t vmcs = no_vmcs;
    uint64_t psb_period = 0;       ///< in bytes, from IA32_RTIT_CTL
    uint64_t psb_after = 0;        ///< bytes from `view.count_start` to the next PSB
    action::time_within within{};  ///< of the action that is handled
    rule shutdown_by = rule::none;
    access::msr_write_verdict ctl_load_verdict{};  ///< of the last VM transition
    uint8_t tx_depth = 0;
    bool in_overflow = false;         ///< packets are lost
    bool overflow_requested = false;  ///< the overflow lasts until its end is requested
    engine::deferred_ovf deferred_ovf = deferred_ovf::none;
    bool in_acm = false;
    bool trace_en_after_acm = false;

    // Cached by `refresh_cache` for `try_fast_path`.

    /// A branch to one of the `fast_ip_count` IPs from `fast_ip_first` on changes no enable.
    uint64_t fast_ip_first = 0;
    uint64_t fast_ip_count = 0;
    /// If the number of gathered branches is one of the `fast_tnt_count` from `fast_tnt_first` on,
    /// one more branch completes no packet.
    unsigned fast_tnt_first = 0;
    unsigned fast_tnt_count = 0;
    bool has_ranges = false;      ///< there is a filter range or a TraceStop range
    bool writes_plainly = false;  ///< `write_options` are plain

    template <class Field>
    [[nodiscard]] constexpr auto ctl() const noexcept -> typename Field::value_type {
        return msrs.ctl.get<Field>();
    }
    [[nodiscard]] constexpr auto trigger_en() const noexcept -> bool {
        return msrs.status.get<access::ia32_rtit_status::TriggerEn>();
    }
    [[nodiscard]] constexpr auto enables() const noexcept -> access::enables {
        return access::enables_of(caps, msrs);
    }
    /// An address in the code that executes, as packets have it.
    [[nodiscard]] constexpr auto in_packets(cs_offset from) const noexcept -> packet_ip {
        return ip_in_packets(caps.ip_payload(), code, from);
    }
    [[nodiscard]] constexpr auto context_at(cs_offset where) const noexcept
        -> access::processor_context {
        return context_at(code, where);
    }
    /// The same for the code `next`.
    [[nodiscard]] constexpr auto context_at(execution_context const& next,
                                            cs_offset where) const noexcept
        -> access::processor_context {
        return context_of(next, ip_in_packets(caps.ip_payload(), next, where));
    }
    [[nodiscard]] constexpr auto bytes_since_psb() const noexcept -> uint64_t {
        return writer.bytes - view.count_start;
    }
    [[nodiscard]] constexpr auto psb_is_due() const noexcept -> bool {
        return view.psb_requested || bytes_since_psb() >= psb_after;
    }
    /// True for an IP to which a branch changes no enable.
    [[nodiscard]] constexpr auto is_fast_ip(uint64_t target) const noexcept -> bool {
        return target - fast_ip_first < fast_ip_count;
    }
};

namespace detail {

using namespace ptspec::detail;
using ctl = access::ia32_rtit_ctl;

/// IA32_RTIT_STATUS with its counters. Source: REG-055, REG-061, REG-064, REG-065, GEN-161.
[[nodiscard]] constexpr auto status_now(generator_state const& s) noexcept
    -> access::ia32_rtit_status {
    using status = access::ia32_rtit_status;
    auto value = s.msrs.status;
    if (!s.ctl<ctl::TraceEn>()) { return value; }
    // Without CPSB_CAM the count still decides when a PSB is due, but reads as 0.
    if (s.caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>()) {
        value = value.with(status::PacketByteCnt{wrapped{s.bytes_since_psb()}});
    }
    if (s.ctl<ctl::InjectPsbPmiOnEnable>() && s.trigger_en()) {
        value = value.with(status::PendPSB{s.psb_is_due()});
    }
    return value;
}

constexpr void drop_gathered_branches(generator_state& s) noexcept {
    s.writer.tnt = {};
    s.writer.deferred_count = 0;
}

/// Recomputes the state that depends on the enables, after they may have changed.
constexpr void refresh_cache(generator_state& s) noexcept {
    auto const enables = s.enables();
    if (!enables.packet()) { s.calls.clear(); }
    if (!enables.trigger) {
        drop_gathered_branches(s);
        s.writer.cycles = 0;
    }
    s.writes_plainly = s.write_options.is_plain();
    s.fast_tnt_first = s.write_options.cyc ? 1 : 0;  // the first branch may need a CYC
    s.fast_tnt_count = s.write_options.max_branches() - 1 - s.fast_tnt_first;
    s.has_ranges = access::has_filter(s.msrs) || access::has_trace_stop(s.msrs);
    ip_span fast{0, ~uint64_t{0}};
    if (s.has_ranges) {
        bool const ips_are_offsets = s.code.width != code_width::bits_64 &&
                                     s.caps.ip_payload() == cpu::ip_payload::linear;
        fast = ips_are_offsets ? ip_span{} : fast_ips_around(s.msrs, s.ip);
    }
    bool const branches_only_gather = enables.packet() && !s.in_overflow && !s.ctl<ctl::DisTNT>() &&
                                      !s.options.defers_tips;
    s.fast_ip_first = fast.first;
    s.fast_ip_count = branches_only_gather ? fast.size() : 0;
}

/// The period of PSBs begins at this count of bytes. Source: GEN-012, GEN-165.
constexpr void start_period(generator_state& s, uint64_t at) noexcept {
    uint64_t const step = s.options.psb_step;
    s.view.count_start = at;
    uint64_t const over = step > 1 ? (at + s.psb_period) % step : 0;
    s.psb_after = s.psb_period + (over != 0 ? step - over : 0);
}

/// Sets the number of bytes so far. PacketByteCnt does not change.
constexpr void set_byte_count(generator_state& s, uint64_t bytes) noexcept {
    uint64_t const count = s.bytes_since_psb();
    s.writer.bytes = bytes;
    start_period(s, bytes - count);
}
/// The alignment of every region of output, in bytes. PADs align packets to addresses, so
/// `writer.bytes` is the address of the next byte modulo this number, and stays so when output
/// moves to another region. Source: GEN-010, OUT-020..023, OUT-060.
inline constexpr uint64_t region_alignment = 128;

/// Counts bytes from `address`, where the first byte after TraceEn rose will be stored: the count
/// does not depend on earlier traces.
constexpr void count_from_address(generator_state& s, uint64_t address) noexcept {
    set_byte_count(s, address % region_alignment);
}
/// The next byte will be stored at `address`.
constexpr void align_to_address(generator_state& s, uint64_t address) noexcept {
    set_byte_count(s, s.writer.bytes + (address - s.writer.bytes) % region_alignment);
}

/// Derives the state that depends on IA32_RTIT_CTL, after it may have changed.
constexpr void apply_ctl(generator_state& s) noexcept {
    s.write_options = {.ips = s.options.ips,
                       .tnt_capacity = s.options.tnt_capacity,
                       .defers_tips = s.options.defers_tips,
                       .pads = s.options.pads,
                       .in_psb = s.options.in_psb,
                       .cyc = s.ctl<ctl::CYCEn>(),
                       .cyc_threshold = static_cast<uint8_t>(s.ctl<ctl::CycThresh>())};
    s.psb_period = uint64_t{2048} << s.ctl<ctl::PSBFreq>();
    start_period(s, s.view.count_start);
    refresh_cache(s);
}

/// Begins an overflow: packets are lost from now on. Source: GEN-166, GEN-225, GEN-229, GEN-135.
constexpr void begin_overflow(generator_state& s) noexcept {
    s.in_overflow = true;
    drop_gathered_branches(s);
    s.writer.items = packet::block::none;
    s.calls.clear();
    refresh_cache(s);
}

/// Writes the packets that `add` adds to a batch: all of them or, during an overflow, none. An
/// overflow begins if the sink has no room for them.
///
/// noinline: inlined, branches take 3 % more instructions and cycles 4 % (g++ 12).
template <class Sink, class Add>
PTSPEC_ATTRIBUTE(noinline)
constexpr void put_packets(generator_state& s, Sink& sink, Add const& add) noexcept {
    if (s.in_overflow) { return; }
    trace::packet_batch<> batch{s.writer, s.write_options};
    decoder_view const before = s.view;
    add(batch);
    batch.finish();
    if (batch.broken() == rule::none && (batch.bytes().empty() || sink.append(batch.bytes()))) {
        s.writer = batch.state();
        return;
    }
    s.view = before;
    start_period(s, before.count_start);
    begin_overflow(s);
}

}  // namespace detail

}  // namespace ptspec::engine

#undef PTSPEC_ATTRIBUTE
