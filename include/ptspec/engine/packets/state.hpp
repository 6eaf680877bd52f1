// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/resets.hpp>
#include <ptspec/engine/packets/clocks.hpp>
#include <ptspec/engine/event/events.hpp>
#include <ptspec/engine/packets/enables.hpp>
#include <ptspec/engine/model_options.hpp>
#include <ptspec/engine/packets/return_stack.hpp>
#include <ptspec/trace/write/batch.hpp>

namespace ptspec::engine {

/// The controls by which a VMM hides VMX operation from trace.
///
/// Source: GEN-278, REG-122..124.
struct concealed {
    bool non_root = false;  ///< "conceal VMX from PT", of VM execution
    bool exits = false;     ///< "conceal VMX from PT", of VM exits
    bool entries = false;   ///< "conceal VMX from PT", of VM entries

    friend constexpr auto operator==(concealed const&, concealed const&) -> bool = default;
};

/// The address that a VMCS packet has where no VMCS is current.
///
/// Source: GEN-244.
inline constexpr uint64_t no_vmcs = ~uint64_t{0};

/// What the packets so far have told, and a decoder therefore knows.
struct told {
    uint64_t mode = 0;  ///< MODE.Exec, raw, since the last PSB; 0: none
    uint64_t pip = 0;   ///< PIP, raw; 0: none
    bool in_tx = false;
    bool owes_psb = false;  ///< a PSB+ was asked for
    uint64_t counted = 0;   ///< how many bytes were written where PacketByteCnt began

    friend constexpr auto operator==(told const&, told const&) -> bool = default;
};

namespace detail {

using namespace ptspec::detail;

}  // namespace detail

/// What is to be told of an overflow that tracing did not outlive.
///
/// Source: GEN-225, GEN-230.
enum class owed : uint8_t { nothing, ovf, ovf_and_trace_stop };

/// What a generator of packets knows between two operations, and what all operations have in common.
/// The base of `generator`.
///
/// Source: GEN-003..008, GEN-123, GEN-160..176, GEN-225..230.
class generator_state {
protected:
    using ctl = access::ia32_rtit_ctl;
    using status = access::ia32_rtit_status;

    template <class Field>
    [[nodiscard]] constexpr auto is_set() const noexcept -> bool {
        return msrs_.ctl.get<Field>();
    }

public:
    constexpr generator_state(cpu::capabilities const& of, access::msr_state const& msrs,
                              running const& code, uint64_t ip,
                              model_options const& how = {}) noexcept
        : of_{of}, how_{how}, msrs_{msrs}, code_{code}, ip_{ip} {
        told_.counted = 0 - msrs.status.get<status::PacketByteCnt>();
        if (triggers()) { told_.mode = mode().raw; }
        take_over_ctl();
    }

    [[nodiscard]] constexpr auto of() const noexcept -> cpu::capabilities const& { return of_; }
    [[nodiscard]] constexpr auto how() const noexcept -> model_options const& { return how_; }
    /// The MSRs, of which STATUS.PacketByteCnt and PendPSB are not brought up to date.
    [[nodiscard]] constexpr auto msrs() const noexcept -> access::msr_state const& { return msrs_; }
    [[nodiscard]] constexpr auto runs() const noexcept -> running const& { return code_; }
    /// The next instruction.
    [[nodiscard]] constexpr auto ip() const noexcept -> uint64_t { return ip_; }
    [[nodiscard]] constexpr auto enables_now() const noexcept -> enables {
        return enables_of(of_, msrs_);
    }
    /// The branches that are in no packet yet.
    [[nodiscard]] constexpr auto pending() const noexcept -> packet::branches { return now_.tnt; }
    [[nodiscard]] constexpr auto calls() const noexcept -> return_stack const& { return calls_; }
    /// True where Event Trace is on: MODE.Exec has RFLAGS.IF then. Source: GEN-305.
    [[nodiscard]] constexpr auto events_are_traced() const noexcept -> bool {
        return is_set<ctl::EventEn>();
    }
    /// True while packets are lost.
    [[nodiscard]] constexpr auto overflows() const noexcept -> bool { return loses_; }

protected:
    cpu::capabilities of_;
    model_options how_;
    access::msr_state msrs_;
    running code_;
    uint64_t ip_;

    trace::writer_state now_{};
    trace::writer_options writing_{};
    return_stack calls_{};
    clocks clocks_{};
    told told_{};
    concealed conceal_{};
    uint64_t vmcs_ = no_vmcs;
    uint64_t psb_period_ = 0;
    rule shut_down_by_ = rule::none;
    uint8_t tx_depth_ = 0;
    // Branches to one of so many IPs from this one on change nothing but what is gathered.
    uint64_t calm_at_ = 0;
    uint64_t calm_ips_ = 0;
    // With one of so many counts of gathered branches, from this one on, one more makes no packet.
    unsigned quiet_from_ = 0;
    unsigned quiet_counts_ = 0;
    bool has_ranges_ = false;    ///< IPs are filtered, or stop tracing
    bool loses_ = false;         ///< an overflow: no packet comes through
    bool loses_on_ = false;      ///< until it is said to end
    owed owes_ = owed::nothing;  ///< when packets come through again
    bool in_acm_ = false;
    bool goes_on_behind_acm_ = false;

    // -------------------------------------------------------------------------------- state

    [[nodiscard]] constexpr auto triggers() const noexcept -> bool {
        return msrs_.status.get<status::TriggerEn>();
    }
    /// An IP of code as packets have it.
    [[nodiscard]] constexpr auto form(running const& code, uint64_t ip) const noexcept -> uint64_t {
        return ip_in_packets(of_.ip_payload(), code, ip);
    }
    [[nodiscard]] constexpr auto form(uint64_t ip) const noexcept -> uint64_t {
        return form(code_, ip);
    }
    [[nodiscard]] constexpr auto context_at(uint64_t ip) const noexcept -> access::context {
        return context_of(code_, form(ip));
    }

    /// IA32_RTIT_CTL may have changed.
    constexpr void take_over_ctl() noexcept {
        writing_ = {.ips = how_.ips,
                    .long_tnt = how_.long_tnt,
                    .defers_tips = how_.defers_tips,
                    .pads = how_.pads,
                    .cyc = is_set<ctl::CYCEn>(),
                    .cyc_threshold = static_cast<uint8_t>(msrs_.ctl.get<ctl::CycThresh>())};
        psb_period_ = uint64_t{2048} << msrs_.ctl.get<ctl::PSBFreq>();
        settle();
    }
    /// The enables may have changed.
    constexpr void settle() noexcept {
        enables const now = enables_now();
        if (!now.packet()) { calls_.clear(); }
        if (!now.trigger) {
            drop_gathered();
            now_.cycles = 0;
        }
        quiet_from_ = writing_.cyc ? 1 : 0;  // of the first one the CYC may be due
        quiet_counts_ = writing_.most_branches() - 1 - quiet_from_;
        has_ranges_ = access::has_filter(msrs_) || access::has_trace_stop(msrs_);
        ip_span calm{0, ~uint64_t{0}};
        if (has_ranges_) {
            bool const are_offsets = code_.width != code_width::bits_64 &&
                                     of_.ip_payload() == cpu::ip_payload::linear;
            calm = are_offsets ? ip_span{} : traced_around(msrs_, ip_);
        }
        bool const only_branches = now.packet() && !loses_ && !is_set<ctl::DisTNT>() &&
                                   !how_.defers_tips && !how_.pads;
        calm_at_ = calm.first;
        calm_ips_ = only_branches ? calm.size() : 0;
    }
    constexpr void drop_gathered() noexcept {
        now_.tnt = {};
        now_.deferred_count = 0;
    }
    /// True where a branch to an IP changes nothing but what is gathered.
    [[nodiscard]] constexpr auto is_calm(uint64_t ip) const noexcept -> bool {
        return ip - calm_at_ < calm_ips_;
    }
    /// Takes a branch that makes no packet and changes no enable. False where it is another one, for
    /// which there is `on`.
    [[nodiscard]] constexpr auto take_quietly(event::conditional const& e) noexcept -> bool {
        if (!is_calm(e.to) || now_.tnt.count - quiet_from_ >= quiet_counts_) { return false; }
        ip_ = e.to;
        now_.gather(e.taken);
        return true;
    }
    [[nodiscard]] constexpr auto take_quietly(event::direct_jump const& e) noexcept -> bool {
        if (is_calm(e.to)) { ip_ = e.to; }
        return is_calm(e.to);
    }
    [[nodiscard]] constexpr auto take_quietly(event::direct_call const& e) noexcept -> bool {
        if (!is_calm(e.to)) { return false; }
        ip_ = e.to;
        if (returns(e)) { calls_.push(e.next); }
        return true;
    }
    /// A call of the next instruction only asks where that is. Source: GEN-132.
    static constexpr auto returns(event::direct_call const& e) noexcept -> bool {
        return e.to != e.next;
    }

    /// STATUS, up to date. Source: REG-055, REG-061, REG-064, REG-065, GEN-161.
    [[nodiscard]] constexpr auto status_now() const noexcept -> status {
        auto now = msrs_.status;
        if (!is_set<ctl::TraceEn>()) { return now; }
        // Otherwise the count still decides when a PSB is due, but reads as 0.
        if (of_.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>()) {
            now = now.with(status::PacketByteCnt{wrapped{counted_bytes()}});
        }
        if (is_set<ctl::InjectPsbPmiOnEnable>() && triggers()) {
            now = now.with(status::PendPSB{psb_is_due()});
        }
        return now;
    }
    constexpr void sync_status() noexcept { msrs_.status = status_now(); }
    /// Bytes since the last PSB.
    [[nodiscard]] constexpr auto counted_bytes() const noexcept -> uint64_t {
        return now_.bytes - told_.counted;
    }
    [[nodiscard]] constexpr auto psb_is_due() const noexcept -> bool {
        return told_.owes_psb || counted_bytes() >= psb_period_;
    }

    /// Source: GEN-235, GEN-305.
    [[nodiscard]] constexpr auto mode() const noexcept -> packet::mode_exec {
        using packet::mode_exec;
        return mode_exec{}.with(mode_exec::CS_L{code_.width == code_width::bits_64},
                                mode_exec::CS_D{code_.width == code_width::bits_32},
                                mode_exec::IF{is_set<ctl::EventEn>() && code_.IF});
    }
    // -------------------------------------------------------------------------------- packets

    /// Writes what `add` adds to a group: all of it, or nothing where packets are lost.
    template <class Sink, class Add>
    constexpr void emit(Sink& to, Add const& add) noexcept {
        if (loses_) { return; }
        trace::packet_batch<> all{now_, writing_};
        told const before = told_;
        add(all);
        if (all.broken() == rule::none && (all.bytes().empty() || to.append(all.bytes()))) {
            now_ = all.state();
            return;
        }
        told_ = before;
        begin_overflow();
    }
    /// Source: GEN-166, GEN-225, GEN-229, GEN-135.
    constexpr void begin_overflow() noexcept {
        loses_ = true;
        drop_gathered();
        now_.items = packet::block::none;
        calls_.clear();
        settle();
    }
};

}  // namespace ptspec::engine
