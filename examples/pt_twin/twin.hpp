// SPDX-License-Identifier: BSL-1.0
#pragma once

// From the packets of a recorded trace to a script of what the processor did. The machine of
// pt_model runs the script.

#include "evidence.hpp"

#include <common/trace_script/machine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pt_twin {

/// A trace of at most this many bytes has a twin.
constexpr std::size_t max_bytes = std::size_t{1} << 24;
using machine = trace_script::machine<max_bytes>;

inline auto hex(std::uint64_t value) -> std::string {
    char text[17];
    std::size_t at = sizeof text;
    do {
        text[--at] = "0123456789ABCDEF"[value & 15];
        value >>= 4;
    } while (value != 0);
    return {text + at, sizeof text - at};
}

/// Runs a machine through what the processor did.
class twin {
public:
    /// `on` is the machine to use. `script` receives the events, one a line, unless it is null.
    twin(recording const& from, configuration const& with, std::string_view kind_name, machine& on,
         std::string* script)
        : all_{from.all},
          begin_{from.begin - from.alignment},
          ends_in_pads_{from.ends_in_pads},
          with_{with},
          is_broadwell_{kind_name == "broadwell"},
          machine_{on},
          script_{script},
          evidence_{from, with_, kind_name} {
        auto const first = psb_plus_at(all_, 0);
        who_ = evidence_.privilege_from(0, true, {with_.os, true});
        std::size_t pge = after_times(all_, first.next);
        if (evidence_.is_at(pge, kind::mode_exec)) { pge = after_times(all_, pge + 1); }
        bool const is_enable = evidence_.is_at(pge, kind::tip_pge);
        bool const is_on = !with_.branches ||
                           (first.fup() &&
                            !evidence_.is_at(after_times(all_, first.next), kind::tip_pge));
        // A CYC in the first PSB+ counts from an instant before the trace; a PSB+ of code that is
        // not traced may have no packet of its context.
        if (is_on) {
            now_ = tracing::on;
        } else if (!first.takes.empty() && !is_enable) {
            now_ = tracing::out;
        }
        if (now_ != tracing::off) {
            if (first.pip()) { set_pip(*first.pip()); }
            if (first.exec()) { set_mode(*first.exec()); }
        }
        setup_ = setup_text(kind_name, from.alignment,
                            first.fup().value_or(now_ == tracing::out ? outside() : 0));
        auto const read = trace_script::read_setup(setup_, machine::table);
        machine_.begin(read.made);
        if (now_ != tracing::off && first.vmcs()) { set_vmcs(*first.vmcs()); }
    }

    void run() {
        for (std::size_t i = 0; i < all_.size();) { i = step(i); }
        say_branches();
        if (ends_in_pads_ && now_ == tracing::out) { disable(0, {}); }
        say("ACM begin");  // the last branches
    }
    /// True if PacketEn is 1 at the end.
    [[nodiscard]] auto is_tracing() const -> bool { return now_ == tracing::on; }
    [[nodiscard]] auto setup() const -> std::string const& { return setup_; }
    [[nodiscard]] auto bytes() const -> byte_view { return machine_.written(); }

private:
    enum class tracing { off, out, on };

    [[nodiscard]] auto setup_text(std::string_view kind_name, unsigned alignment,
                                  std::uint64_t ip) const -> std::string {
        auto const flag = [](bool is) { return is ? std::string{"1"} : std::string{"0"}; };
        std::string text = "kind=" + std::string{kind_name};
        // What the packets show are facts, not choices.
        text += ", psb_keeps_remainder=0, psb_step=1, psb_after_overflow=2, has_tsx=" +
                flag(with_.has_tsx);
        text += ", TraceEn=" + flag(now_ != tracing::off) + ", OS=" + flag(who_.os) +
                ", User=" + flag(who_.user) + ", TSCEn=" + flag(with_.tsc) +
                ", MTCEn=" + flag(with_.mtc) + ", MTCFreq=" + hex(with_.mtc_freq) +
                ", CYCEn=" + flag(with_.cyc) + ", PSBFreq=F, PTWEn=" + flag(with_.ptwrite) +
                ", FUPonPTW=" + flag(with_.fup_on_ptwrite) + ", BranchEn=" + flag(with_.branches);
        for (std::size_t n = 0; n < with_.filters.size(); ++n) {
            text += ", ADDR" + std::to_string(n) + "=[" + hex(with_.filters[n].first) + "," +
                    hex(with_.filters[n].last) + "] filter";
        }
        if (with_.cr3_filter) { text += ", CR3Filter=1, CR3_MATCH=" + hex(with_.cr3_match); }
        if (now_ == tracing::out && !with_.filters.empty()) { text += ", FilterEn=0"; }
        if (alignment != 0) { text += ", OutputOffset=" + hex(alignment); }
        text += std::string{", conceal=exits+entries, VMX="} + (non_root_        ? "nonroot"
                                                                : with_.has_vmcs ? "root"
                                                                                 : "off");
        return text + ", mode=" + mode_name() + ", CR3=" + hex(cr3_) +
               ", CPL=" + (now_ == tracing::on ? traced_cpl() : "0") + ", IP=" + hex(ip) +
               ", cycles=0";
    }
    [[nodiscard]] auto mode_name() const -> char const* {
        using engine::code_width;
        return width_ == code_width::bits_64 ? "64" : width_ == code_width::bits_32 ? "32" : "16";
    }
    [[nodiscard]] auto traced_cpl() const -> char const* { return who_.os ? "0" : "3"; }
    /// True for the CPL of code that is not traced because of it.
    [[nodiscard]] auto cpl_leaves() const -> bool { return !who_.os || !who_.user; }
    /// Arguments for the context of the traced code, or of code that is not traced.
    [[nodiscard]] auto code(bool traced, bool is_wide = false) const -> std::string {
        auto const& now = state().code;
        std::string text = std::string{" CPL="} + (traced                  ? traced_cpl()
                                                   : who_.os && !who_.user ? "3"
                                                                           : "0");
        bool const by_cr3 = !traced && with_.cr3_filter && !cpl_leaves();
        std::uint64_t const cr3 = by_cr3 ? other_cr3() : cr3_;
        if (now.cr3 != cr3) { text += " CR3=" + hex(cr3); }
        using engine::code_width;
        bool const is_64 = now.width == code_width::bits_64;
        if (is_wide && !is_64) { text += " mode=64"; }
        if (!is_wide && now.width != width_) { text += std::string{" mode="} + mode_name(); }
        if (now.vmx_non_root != non_root_) { text += non_root_ ? " VMX=nonroot" : " VMX=root"; }
        return text;
    }
    [[nodiscard]] auto other_cr3() const -> std::uint64_t { return with_.cr3_match ^ 0x1000; }
    /// The same for a VM entry, which without an argument leads to non-root operation.
    [[nodiscard]] auto entered(bool traced) const -> std::string {
        auto const text = code(traced);
        if (text.find(" VMX=") != std::string::npos) { return text; }
        return text + (non_root_ ? " VMX=nonroot" : " VMX=root");
    }
    /// True if code that is not traced may execute while TraceEn is 1.
    [[nodiscard]] auto can_be_out() const -> bool {
        return cpl_leaves() || !with_.filters.empty() || with_.cr3_filter;
    }
    /// True if code at CPL 0 that is not traced may clear TraceEn.
    [[nodiscard]] auto can_fall_outside() const -> bool {
        return !who_.os || !with_.filters.empty() || with_.cr3_filter;
    }
    /// An address that is in no filter range.
    [[nodiscard]] auto outside() const -> std::uint64_t {
        if (with_.filters.empty()) { return 0; }
        std::uint64_t lowest = ~std::uint64_t{0};
        std::uint64_t highest = 0;
        for (auto const& one : with_.filters) {
            lowest = std::min(lowest, one.first);
            highest = std::max(highest, one.last);
        }
        return lowest != 0 ? lowest - 1 : highest + 1;
    }
    [[nodiscard]] auto state() const -> engine::generator_state const& {
        return machine_.unit().state();
    }
    [[nodiscard]] auto ip() const -> std::uint64_t { return state().ip; }

    /// Runs an event. One that is refused, such as where the trace is too long, is a difference.
    void say(std::string const& event) {
        (void)machine_.run(event);
        if (script_ != nullptr) { *script_ += event + '\n'; }
    }
    void say_branches() {
        if (branches_.empty()) { return; }
        say("Jcc " + branches_ + (branches_ == "N" ? " next=" : "->") + hex(ip()));
        branches_.clear();
    }

    // -------------------------------------------------------------------------------- clocks

    void set_clocks(group const& in) {
        auto const tsc = in.tsc();
        auto const tma = in.tma();
        auto const cbr = in.cbr();
        if (!tsc && !cbr && !in.takes.has_mtc()) { return; }
        std::string text = "clocks";
        auto const& now = state().clocks;
        unsigned const freq = with_.mtc_freq;
        if (tma) {
            text += " ART=" + hex(art_of(tma->get<packet::tma::CTC>(), in.takes));
        } else if (in.takes.has_mtc()) {
            text += " ART=" + hex(art_before(in.takes.first_mtc()) >> freq << freq);
        }
        if (tsc) {
            text += " TSC=" + hex(*tsc) +
                    " edge=" + hex(*tsc - (tma ? tma->get<packet::tma::FC>() : 0));
        } else if (in.takes.has_mtc()) {
            text += " TSC=" + hex(now.tsc) + " edge=" + hex(now.tsc_at_edge);
        }
        if (cbr) { text += " ratio=" + hex(cbr->get<packet::cbr::CoreBusRatio>()); }
        say(text);
    }
    /// The count of the crystal clock before the next MTC with this payload.
    [[nodiscard]] auto art_before(std::uint64_t payload) const -> std::uint64_t {
        unsigned const freq = with_.mtc_freq;
        std::uint64_t const count = state().clocks.art >> freq;
        return (count + ((payload - 1 - count) & 0xFF)) << freq | low_bits(freq);
    }
    /// The count of the crystal clock that TMA reports, of which it has 16 bits. An MTC of the same
    /// action has more.
    [[nodiscard]] auto art_of(std::uint64_t ctc, time_within const& takes) const -> std::uint64_t {
        unsigned const freq = with_.mtc_freq;
        std::uint64_t now = state().clocks.art;
        if (takes.has_mtc() && freq > 8) {
            std::uint64_t const payload = takes.first_mtc();
            bool const is_same = ((payload << freq ^ ctc) >> freq & low_bits(16 - freq)) == 0;
            now = (payload - (is_same ? 0 : 1)) << freq & low_bits(freq + 8);
            return (now & ~low_bits(16)) | ctc;
        }
        return now + ((ctc - now) & 0xFFFF);
    }
    /// The text of the moments of a group.
    [[nodiscard]] auto takes_of(group const& in) const -> std::string {
        return in.takes.text(reported_by(in));
    }
    /// The payload of an MTC of the count that TMA reports.
    [[nodiscard]] auto reported_by(group const& in) const -> std::optional<std::uint64_t> {
        auto const tma = in.tma();
        if (!tma) { return std::nullopt; }
        auto const art = art_of(tma->get<packet::tma::CTC>(), in.takes);
        return art >> with_.mtc_freq & 0xFF;
    }
    /// The text of the moments between the packets of an event, such as FUP and TIP.
    auto takes_of(time_within const& within) -> std::string {
        if (within.has_mtc()) { reach(within.first_mtc()); }
        return within.text(std::nullopt);
    }
    /// Makes an MTC of this payload the next one: MTCs were lost, or the clocks stood still.
    void reach(std::uint64_t payload) {
        auto const& now = state().clocks;
        auto const before = art_before(payload);
        if (before >> with_.mtc_freq == now.art >> with_.mtc_freq) { return; }
        say("clocks ART=" + hex(before) + " TSC=" + hex(now.tsc) + " edge=" + hex(now.tsc_at_edge));
    }
    void mtc(seen const& one) {
        reach(one.as<packet::mtc>().get<packet::mtc::CTC>());
        say("ART->" + hex(((state().clocks.art >> with_.mtc_freq) + 1) << with_.mtc_freq));
    }

    // -------------------------------------------------------------------------------- contexts

    void set_context(group const& from) {
        if (from.vmcs()) { set_vmcs(*from.vmcs()); }
        if (from.pip()) { set_pip(*from.pip()); }
        if (from.exec()) { set_mode(*from.exec()); }
    }
    void set_vmcs(packet::vmcs const& from) {
        say("VMPTRLD " + hex(from.get<packet::vmcs::base>()) + " next=" + hex(ip()));
    }
    void set_pip(packet::pip const& from) {
        cr3_ = from.get<packet::pip::CR3>();
        non_root_ = from.get<packet::pip::NR>();
    }
    void set_mode(packet::mode_exec const& from) {
        using mode = packet::mode_exec;
        width_ = from.get<mode::CS_L>()   ? engine::code_width::bits_64
                 : from.get<mode::CS_D>() ? engine::code_width::bits_32
                                          : engine::code_width::bits_16;
    }

    // ----------------------------------------------------------------- TraceEn falls and rises

    void disable(std::uint64_t at, time_within const& within) {
        if (now_ == tracing::on && !who_.os) {  // WRMSR needs CPL 0
            say("interrupt next=" + hex(at) + code(false) + takes_of(within) + "->" +
                hex(outside()));
            say("WRMSR TraceEn=0 at=" + hex(at) + " next=" + hex(at + 2));
        } else {
            if (state().code.cpl != 0) { say("SYSCALL" + code(true) + "->" + hex(outside())); }
            say("WRMSR TraceEn=0 at=" + hex(at) + " next=" + hex(at + 2) + takes_of(within));
        }
        now_ = tracing::off;
    }
    /// The arguments OS and User of an access that sets TraceEn, at this packet.
    auto privilege_argument(std::size_t i) -> std::string {
        auto const before = who_;
        who_ = evidence_.privilege_from(i, now_ == tracing::off, who_);
        std::string text;
        if (who_.os != before.os) { text += who_.os ? " OS=1" : " OS=0"; }
        if (who_.user != before.user) { text += who_.user ? " User=1" : " User=0"; }
        return text;
    }
    /// TraceEn rises with a PSB+, by WRMSR, or by a VM entry to code that has no WRMSR.
    auto rise_with_psb(std::size_t i, group const& in) -> std::size_t {
        auto const os = privilege_argument(i);
        set_clocks(in);
        set_context(in);
        settle_context(i);
        settle_transaction(i);
        say("WRMSR PacketByteCnt=0");
        std::size_t const mode = after_times(all_, in.next);
        bool const has_mode = evidence_.is_at(mode, kind::mode_exec);
        std::size_t pge = has_mode ? after_times(all_, mode + 1) : mode;
        if (is_broadwell_ && evidence_.is_at(mode, kind::psb)) {  // the PSB+ before each TIP.PGE
            auto const before = psb_plus_at(all_, mode);
            if (before.fup() && who_.os && before.tsc() == in.tsc()) {
                set_context(before);
                pge = after_times(all_, before.next);
            }
        }
        bool const in_context = in.fup() || in.pip() || in.tsx();
        // Time passes before TIP.PGE.
        bool const waits = !is_broadwell_ && pge != in.next + (has_mode ? 1 : 0);
        bool const is_on = evidence_.is_at(pge, kind::tip_pge) && !(waits && can_be_out()) &&
                           (state().options.psb_of_enable_has_fup ? in.fup().has_value()
                                                                  : in_context || !can_be_out());
        if (!is_on) {
            say("SYSRET" + kernel_code(in_context) + "->" + hex(outside()));
            say("WRMSR TraceEn=1 at=" + hex(in.fup().value_or(outside())) + os +
                " next=" + hex(outside()) + takes_of(in));
            now_ = tracing::out;
            return in.next;
        }
        time_within within = in.takes;
        for (std::size_t k = in.next; k <= pge; ++k) { within.add(all_[k]); }
        auto const takes = within.text(reported_by(in));
        if (has_mode) { set_mode(all_[mode].as<packet::mode_exec>()); }
        std::uint64_t const to = all_[pge].ip;
        std::uint64_t const at = in.fup().value_or(to - 2);
        if (at == to || !who_.os) {
            say("VM entry at=" + hex(at) + " TraceEn=1" + os + entered(true) + takes + "->" +
                hex(to));
        } else {
            say("SYSRET" + kernel_code(true) + "->" + hex(at));
            say("WRMSR TraceEn=1 at=" + hex(at) + os + " next=" + hex(to) + takes);
        }
        now_ = tracing::on;
        return pge + 1;
    }
    /// Arguments for the code at CPL 0 that sets TraceEn.
    [[nodiscard]] auto kernel_code(bool is_traced) const -> std::string {
        auto text = code(is_traced && who_.os);
        if (auto const at = text.find(" CPL=3"); at != std::string::npos) { text[at + 5] = '0'; }
        return text;
    }
    /// TraceEn rises without a PSB+: PacketByteCnt is not 0.
    auto rise(std::size_t i, group const& in) -> std::size_t {
        auto const os = privilege_argument(i);
        set_clocks(in);
        std::size_t const next = after_times(all_, in.next);
        std::size_t pge = next;
        if (is_broadwell_ && evidence_.is_at(next, kind::psb)) {  // the PSB+ before each TIP.PGE
            auto const before = psb_plus_at(all_, next);
            set_context(before);
            pge = after_times(all_, before.next);
        } else if (evidence_.is_at(next, kind::mode_exec)) {
            pge = after_times(all_, next + 1);
        }
        bool const is_on = pge != next && evidence_.is_at(pge, kind::tip_pge) && who_.os &&
                           with_.filters.empty();
        settle_context(i);
        settle_transaction(i);
        say("WRMSR PacketByteCnt=5");
        if (is_on) {
            if (evidence_.is_at(next, kind::mode_exec)) {
                set_mode(all_[next].as<packet::mode_exec>());
            }
            std::uint64_t const to = all_[pge].ip;
            time_within within = in.takes;
            for (std::size_t k = in.next; k <= pge; ++k) { within.add(all_[k]); }
            say("SYSRET" + kernel_code(true) + "->" + hex(to - 2));
            say("WRMSR TraceEn=1 at=" + hex(to - 2) + os + " next=" + hex(to) +
                within.text(reported_by(in)));
            now_ = tracing::on;
            return pge + 1;
        }
        std::string privileges = os;
        if (who_.os && with_.filters.empty() && !with_.cr3_filter) {  // a TIP.PGE would follow
            who_.os = false;
            privileges = " OS=0";
        }
        say("SYSRET" + kernel_code(false) + "->" + hex(outside()));
        say("WRMSR TraceEn=1 at=" + hex(outside()) + privileges + " next=" + hex(outside()) +
            takes_of(in));
        now_ = tracing::out;
        return in.next;
    }

    // -------------------------------------------------------------------------------- packets

    auto step(std::size_t i) -> std::size_t {
        auto const& one = all_[i];
        switch (one.packet.kind()) {
            case kind::tnt_short: branches(i, one.as<packet::tnt_short>().taken()); return i + 1;
            case kind::tnt_long: branches(i, one.as<packet::tnt_long>().taken()); return i + 1;
            case kind::cyc:
                if (is_told_) {
                    is_told_ = false;
                    return i + 1;
                }
                break;
            default: break;
        }
        say_branches();
        switch (one.packet.kind()) {
            case kind::psb: return psb(i);
            case kind::tip: say("JMP RAX->" + hex(one.ip)); return i + 1;
            case kind::fup: return fup(i);
            case kind::tip_pgd: leave(one); return i + 1;
            case kind::tip_pge:
            case kind::mode_exec: return far_transfer(i);
            case kind::mode_tsx: return transaction(i);
            case kind::pip: return pip(i);
            case kind::mtc:
            case kind::cyc:
            case kind::tsc:
            case kind::cbr: return time(i);
            case kind::ovf: return overflow(i);
            case kind::ptw: return value(i);
            case kind::vmcs:
                if (now_ == tracing::out) { visit_context(true); }
                set_vmcs(one.as<packet::vmcs>());
                return i + 1;
            default: return i + 1;
        }
    }

    /// A CYC after a TNT that is not aligned has the cycle in which the TNT was completed: its
    /// cycles passed before the last branch of the TNT. Source: GEN-010.
    void branches(std::size_t i, packet::branches taken) {
        bool const is_told =
            evidence_.is_at(i + 1, kind::cyc) &&
            (evidence_.is_at(i + 2, kind::tnt_short) || evidence_.is_at(i + 2, kind::tnt_long)) &&
            (all_[i + 1].offset - begin_) % 8 + (all_[i + 1].end - all_[i + 1].offset) > 8;
        for (unsigned left = taken.count; left != 0; --left) {
            if (is_told && left == 1) {
                say_branches();
                cycles(all_[i + 1]);
                is_told_ = true;
            }
            branches_ += (taken.bits >> (left - 1) & 1) != 0 ? 'T' : 'N';
        }
        if (branches_.size() > 1000) { say_branches(); }
    }
    void cycles(seen const& one) { say("cycles " + std::to_string(one.as<packet::cyc>().value())); }

    auto psb(std::size_t i) -> std::size_t {
        auto const in = psb_plus_at(all_, i);
        std::size_t const next = in.next;
        bool const is_of_pge = in.fup() && evidence_.is_at(after_times(all_, next), kind::tip_pge);
        bool const is_rise = is_broadwell_ ? !in.fup() && i != 0 && all_[i - 1].is(kind::tip_pgd)
                                           : evidence_.must_have_fallen(i) || is_of_pge;
        if (now_ == tracing::out && is_rise && can_fall_outside()) { disable(0, {}); }
        if (now_ == tracing::off) { return rise_with_psb(i, in); }
        set_clocks(in);
        if (is_broadwell_ && now_ == tracing::out && is_of_pge) {
            settle_transaction(i);
            if (!is_in_context()) { settle_vmcs(i); }
            if (in.pip()) { set_pip(*in.pip()); }
            if (in.exec()) { set_mode(*in.exec()); }
            return next;
        }
        if (in.fup()) {
            say("fall through->" + hex(*in.fup()));
        } else if (now_ == tracing::out && in.is_complete) {
            bool const vmcs_tells = with_.has_vmcs && state().options.vmcs_needs_context;
            if (with_.has_tsx || who_.os || vmcs_tells) {
                visit_context(in.tsx() || in.pip() || (vmcs_tells && in.vmcs()));
            }
        }
        say("psb due" + takes_of(in));
        return next;
    }
    /// Goes to code outside of the filters whose context is traced, or not: GEN-170.
    void visit_context(bool is_traced) {
        if (with_.filters.empty()) { return; }
        if (is_in_context() == is_traced) { return; }
        if (is_traced || can_leave_context()) {
            say("SYSRET" + code(is_traced) + "->" + hex(outside()));
        }
    }
    [[nodiscard]] auto is_in_context() const -> bool {
        return machine_.unit().msrs().status.get<reg::ia32_rtit_status::ContextEn>();
    }
    [[nodiscard]] auto can_leave_context() const -> bool {
        return cpl_leaves() || with_.cr3_filter;
    }

    /// Transactions that begin or end where no packet shows it: the next PSB+ does.
    void settle_transaction(std::size_t i) {
        for (std::size_t k = i; k < all_.size(); ++k) {
            if (all_[k].is(kind::ovf)) { return; }
            std::optional<packet::mode_tsx> tsx;
            bool const begins_or_ends = all_[k].is(kind::mode_tsx);
            if (begins_or_ends) { tsx = all_[k].as<packet::mode_tsx>(); }
            if (all_[k].is(kind::psb)) { tsx = psb_plus_at(all_, k).tsx(); }
            if (!tsx) { continue; }
            bool const is_in = is_in_transaction(*tsx) != begins_or_ends;
            if (is_in == (state().tx_depth != 0)) { return; }
            visit_context(false);
            say((is_in ? "XBEGIN at=" : "XEND at=") + hex(ip()) + " next=" + hex(ip()));
            return;
        }
    }
    /// CR3 and the VMCS that changed where no packet shows it: the next PSB+ does.
    void settle_context(std::size_t i) {
        for (std::size_t k = i; k < all_.size() && !all_[k].is(kind::pip); ++k) {
            if (!all_[k].is(kind::psb)) { continue; }
            auto const in = psb_plus_at(all_, k);
            if (in.pip()) { set_pip(*in.pip()); }
            if (in.pip()) { break; }
            k = in.next - 1;
        }
        settle_vmcs(i);
    }
    void settle_vmcs(std::size_t i) {
        for (std::size_t k = i; k < all_.size() && !all_[k].is(kind::vmcs); ++k) {
            if (!all_[k].is(kind::psb)) { continue; }
            auto const in = psb_plus_at(all_, k);
            if (in.vmcs() && state().vmcs != in.vmcs()->get<packet::vmcs::base>()) {
                set_vmcs(*in.vmcs());
            }
            if (in.vmcs()) { break; }
            k = in.next - 1;
        }
    }
    /// PIP, MODE.Exec and the target of a far transfer, or a TIP.PGE.
    auto far_transfer(std::size_t i) -> std::size_t {
        time_within within;
        std::size_t k = i;
        if (evidence_.is_at(k, kind::pip)) { within.add(all_[k++]); }
        for (; evidence_.is_at(k, kind::mtc) || evidence_.is_at(k, kind::cyc); ++k) {
            within.add(all_[k]);
        }
        if (evidence_.is_at(k, kind::mode_exec)) {
            set_mode(all_[k].as<packet::mode_exec>());
            within.add(all_[k++]);
        }
        for (; evidence_.is_at(k, kind::mtc) || evidence_.is_at(k, kind::cyc); ++k) {
            within.add(all_[k]);
        }
        bool const enters = evidence_.is_at(k, kind::tip_pge);
        if (!enters && !evidence_.is_at(k, kind::tip) && !evidence_.is_at(k, kind::tip_pgd)) {
            return k;
        }
        if (enters && !is_broadwell_) {  // whose PSB+ before TIP.PGE has shown it
            settle_transaction(i);
            if (!is_in_context()) { settle_vmcs(i); }
        }
        auto const& target = all_[k];
        within.add(target);
        bool const is_traced = enters || target.has_ip;
        auto const takes = takes_of(within);
        say("SYSRET" + code(is_traced, is_wide(target)) + takes + "->" +
            hex(is_traced ? target.ip : outside()));
        now_ = evidence_.is_at(k, kind::tip_pgd) ? tracing::out : tracing::on;
        return k + 1;
    }
    /// True for an IP that code of the current width cannot have: a far transfer leads to it.
    [[nodiscard]] auto is_wide(seen const& one) const -> bool {
        return one.has_ip && width_ != engine::code_width::bits_64 && one.ip >> 32 != 0;
    }
    void leave(seen const& one) {
        // With an IP the filter range is left, without one the context.
        if (one.has_ip && is_wide(one)) {
            say("SYSRET" + code(true, true) + "->" + hex(one.ip));
        } else if (one.has_ip) {
            say("JMP RAX->" + hex(one.ip));
        } else if (with_.cr3_filter && !cpl_leaves()) {
            say("MOV CR3," + hex(other_cr3()) + " next=" + hex(ip() + 3));
        } else if (can_leave_context()) {
            say("SYSRET" + code(false) + "->" + hex(outside()));
        } else {
            say("Jcc T->" + hex(outside()));  // a branch that would be in a TNT
        }
        now_ = tracing::out;
    }
    /// MOV CR3, or the PIP of a far transfer.
    auto pip(std::size_t i) -> std::size_t {
        if (now_ == tracing::out) { visit_context(true); }
        set_pip(all_[i].as<packet::pip>());
        std::size_t const after = after_times(all_, i + 1);
        bool const is_far = evidence_.is_at(after, kind::mode_exec) ||
                            (now_ == tracing::out && evidence_.is_at(after, kind::tip_pge));
        bool const is_new = state().code.cr3 !=
                            cr3_;  // a far transfer has no PIP without a new CR3
        constexpr std::size_t most_moments = 6;
        if (is_far && is_new && after - i <= most_moments) { return far_transfer(i); }
        say("MOV CR3," + hex(cr3_) + " next=" + hex(ip()));
        return i + 1;
    }
    /// An asynchronous event, or another one with a FUP: its packets up to the target.
    auto fup(std::size_t i) -> std::size_t {
        std::uint64_t const from = all_[i].ip;
        time_within within;
        std::size_t k = i + 1;
        auto const skip_times = [&] {
            for (; evidence_.is_at(k, kind::mtc) || evidence_.is_at(k, kind::cyc); ++k) {
                within.add(all_[k]);
            }
        };
        auto const take = [&](kind which) {
            skip_times();
            if (!evidence_.is_at(k, which)) { return false; }
            within.add(all_[k++]);
            return true;
        };
        bool const has_pip = take(kind::pip);
        std::size_t const at_pip = k - 1;
        bool const has_mode = take(kind::mode_exec);
        std::size_t const at_mode = k - 1;
        skip_times();
        bool const is_tip = evidence_.is_at(k, kind::tip);
        if (k == all_.size()) {  // the target is not stored
            say("interrupt next=" + hex(from) + code(true) + "->" + hex(from));
            return k;
        }
        if (!is_tip && !evidence_.is_at(k, kind::tip_pgd)) { return i + 1; }
        if (has_pip) { set_pip(all_[at_pip].as<packet::pip>()); }
        if (has_mode) { set_mode(all_[at_mode].as<packet::mode_exec>()); }
        auto const& last = all_[k];
        within.add(last);
        bool const is_traced = is_tip || last.has_ip;
        if (!is_traced && who_.os) {
            disable(from, within);
            return k + 1;
        }
        say("interrupt next=" + hex(from) + code(is_traced, is_wide(last)) + takes_of(within) +
            "->" + hex(is_traced ? last.ip : outside()));
        now_ = is_tip ? tracing::on : tracing::out;
        return k + 1;
    }
    /// Packets were lost. The FUP after OVF, and a PSB+ before or after it, show what changed.
    auto overflow(std::size_t i) -> std::size_t {
        say("overflow");
        std::size_t next = i + 1;
        group in;
        bool const has_cyc = i != 0 && evidence_.is_at(i - 1, kind::cyc);
        if (evidence_.rises_at(next) && !has_cyc) {  // TraceEn fell while packets were lost
            disable(0, {});
            say("resolved at=" + hex(ip()));
            return next;
        }
        bool is_psb_first = evidence_.is_at(next, kind::psb);
        if (is_psb_first) {
            in = psb_plus_at(all_, next);
            bool const is_of_pge = in.fup() &&
                                   evidence_.is_at(after_times(all_, in.next), kind::tip_pge);
            if (is_broadwell_ && is_of_pge) {
                is_psb_first = false;
                in = {};
            } else {
                next = in.next;
            }
        }
        bool const is_on = evidence_.is_at(next, kind::fup);
        if (!is_psb_first && is_on && evidence_.is_at(next + 1, kind::psb)) {
            in = psb_plus_at(all_, next + 1);
        }
        if (in.pip()) { set_pip(*in.pip()); }
        if (in.exec()) { set_mode(*in.exec()); }
        if (in.vmcs() && state().vmcs != in.vmcs()->get<packet::vmcs::base>()) {
            set_vmcs(*in.vmcs());
        }
        if (auto const tsx = in.tsx(); tsx && (state().tx_depth != 0) != is_in_transaction(*tsx)) {
            say((is_in_transaction(*tsx) ? "XBEGIN at=" : "XEND at=") + hex(ip()));
        }
        std::uint64_t const to = is_on ? all_[next].ip : outside();
        bool const is_in_context = is_on || in.pip() || in.tsx() ||
                                   (!is_psb_first && !with_.filters.empty());
        say("SYSRET" + code(is_in_context) + "->" + hex(to));
        now_ = is_on ? tracing::on : tracing::out;
        std::string takes;
        if (is_psb_first) {
            set_clocks(in);
            takes = takes_of(in);
            say("psb due");
        }
        say("resolved at=" + hex(to) + takes);
        return is_on ? next + 1 : next;
    }
    static auto is_in_transaction(packet::mode_tsx const& one) -> bool {
        return one.get<packet::mode_tsx::InTX>();
    }
    auto transaction(std::size_t i) -> std::size_t {
        auto const mode = all_[i].as<packet::mode_tsx>();
        bool const aborts = mode.get<packet::mode_tsx::TXAbort>();
        bool const has_fup = evidence_.is_at(i + 1, kind::fup);
        std::size_t const next = i + (has_fup ? 2 : 1);
        std::uint64_t const at = has_fup ? all_[i + 1].ip : outside();
        if (now_ == tracing::out) { visit_context(true); }
        std::size_t const target = after_times(all_, next);
        bool const has_target = evidence_.is_at(target, kind::tip) ||
                                evidence_.is_at(target, kind::tip_pge) ||
                                (evidence_.is_at(target, kind::tip_pgd) && all_[target].has_ip);
        bool const is_one = next >= all_.size() || has_fup || all_[next].offset == all_[i].end;
        if (aborts && has_target && is_one) {
            time_within within;
            for (std::size_t k = next; k <= target; ++k) { within.add(all_[k]); }
            auto const takes = takes_of(within);
            say("abort at=" + hex(at) + takes + "->" + hex(all_[target].ip));
            now_ = evidence_.is_at(target, kind::tip_pgd) ? tracing::out : tracing::on;
            return target + 1;
        }
        if (aborts) {
            say("abort at=" + hex(at) + "->" + hex(outside()));
            return next;
        }
        bool const begins = is_in_transaction(mode);
        say((begins ? "XBEGIN at=" : "XEND at=") + hex(at) +
            " next=" + hex(has_fup ? at + 3 : outside()));
        return next;
    }
    auto value(std::size_t i) -> std::size_t {
        auto const one = all_[i].as<packet::ptw>();
        bool const has_ip = one.get<packet::ptw::IP>() && evidence_.is_at(i + 1, kind::fup);
        std::uint64_t const at = has_ip ? all_[i + 1].ip : ip();
        bool const is_wide = all_[i].end - all_[i].offset > 6;
        say((is_wide ? "PTWRITE RAX=" : "PTWRITE EAX=") + hex(one.payload()) + " at=" + hex(at) +
            " next=" + hex(at + 4));
        return has_ip ? i + 2 : i + 1;
    }
    /// Timing packets outside of a PSB+: TraceEn rose, the clocks were off, the ratio changed, or
    /// time passed.
    auto time(std::size_t i) -> std::size_t {
        auto const in = timing_at(all_, i);
        bool const is_rise = evidence_.is_timing_of_rise(in);
        if (now_ == tracing::out && is_rise && can_fall_outside() &&
            (evidence_.must_have_fallen(i) ||
             (evidence_.may_have_fallen(i) && !evidence_.may_fall_later(i, in) &&
              (evidence_.explains_mode(i, who_, state()) ||
               evidence_.has_other_os(in.next, who_))) ||
             (is_broadwell_ && evidence_.rises_at(i)))) {
            disable(0, {});
        }
        if (now_ == tracing::off && is_rise) { return rise(i, in); }
        if (evidence_.is_at(i, kind::mtc)) { return mtc(all_[i]), i + 1; }
        if (evidence_.is_at(i, kind::cyc)) {
            cycles(all_[i]);
            if (evidence_.is_alone(i)) { say("wrap guard"); }
            return i + 1;
        }
        if (in.next == i) { return i + 1; }
        set_clocks(in);
        if (!in.tsc()) {
            say("ratio " + hex(state().clocks.core_to_bus));
        } else {
            say("clock stop next=" + hex(ip()));
            say("clock resume" + takes_of(in));
        }
        return in.next;
    }

    std::vector<seen> const& all_;
    std::uint64_t begin_;  ///< the offset of a multiple of 16 in the output buffer
    bool ends_in_pads_;
    configuration with_;
    privilege who_{};
    bool is_broadwell_;
    machine& machine_;
    std::string* script_;
    evidence evidence_;
    std::string setup_{};
    std::uint64_t cr3_ = 0;
    bool non_root_ = false;
    bool is_told_ = false;  ///< the cycles of the next CYC have passed
    engine::code_width width_ = engine::code_width::bits_64;
    std::string branches_{};  ///< not yet an event
    tracing now_ = tracing::off;
};

}  // namespace pt_twin
