// SPDX-License-Identifier: BSL-1.0
#pragma once

// From the packets of a recorded trace to a script of what the processor did. The machine of
// pt_model runs the script.

#include "choices.hpp"
#include "script_run.hpp"
#include "../common/trace_script/machine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pt_twin {

/// Runs a machine through what the processor did.
class twin {
public:
    /// `on` is the machine to use. `script` receives the events, one a line, unless it is null.
    twin(recording const& from, configuration const& with, std::string_view kind_name, machine& on,
         std::string* script, std::uint32_t forgotten = 0)
        : all_{from.all},
          begin_{from.begin - from.alignment},
          ends_in_pads_{from.ends_in_pads},
          with_{with},
          is_broadwell_{kind_name == "broadwell"},
          machine_{on},
          evidence_{from, with_, kind_name},
          run_{with_, on, script},
          choices_{forgotten} {
        auto const first = psb_plus_at(all_, 0);
        run_.traced.who = with_.first.value_or(evidence_.privilege_from(0, true, {with_.os, true}));
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
            if (first.pip()) { run_.set_pip(*first.pip()); }
            if (first.exec()) { run_.set_mode(*first.exec()); }
        }
        setup_ = setup_text(kind_name, from.alignment,
                            first.fup().value_or(now_ == tracing::out ? run_.outside() : 0));
        auto const read = trace_script::read_setup(setup_, machine::table);
        machine_.begin(read.made);
        if (now_ != tracing::off && first.vmcs()) { run_.set_vmcs(*first.vmcs()); }
    }

    twin(twin const&) = delete;  // parts refer to others
    /// Runs the machine through the packet with this index, and others of the same action. Returns
    /// the index of the next.
    auto step(std::size_t i, std::uint32_t others) -> std::size_t {
        choices_.begin(others);
        return step(i);
    }
    /// The number of questions in the last step.
    [[nodiscard]] auto asked() const -> unsigned { return choices_.count(); }
    /// True if one of them was about OS: its answer may have an effect only much later.
    [[nodiscard]] auto asked_of_os() const -> bool { return choices_.has_asked(question::os); }
    /// Runs the machine through the end of the trace.
    void end() {
        say_branches();
        if (ends_in_pads_ && now_ == tracing::out) { disable(0, {}); }
        run_.say("ACM begin");  // the last branches
    }
    /// The state between two steps.
    struct moment {
        script_run::moment run;
        bool is_told = false;
        std::string branches{};
        int now = 0;
    };
    [[nodiscard]] auto save() const -> moment {
        return {run_.save(), is_told_, branches_, static_cast<int>(now_)};
    }
    void restore(moment const& from) {
        run_.restore(from.run);
        is_told_ = from.is_told;
        branches_ = from.branches;
        now_ = static_cast<tracing>(from.now);
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
        text += ", TraceEn=" + flag(now_ != tracing::off) + ", OS=" + flag(run_.traced.who.os) +
                ", User=" + flag(run_.traced.who.user) + ", TSCEn=" + flag(with_.tsc) +
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
        text += std::string{", conceal=exits+entries, VMX="} + (run_.traced.non_root ? "nonroot"
                                                                : with_.has_vmcs     ? "root"
                                                                                     : "off");
        return text + ", mode=" + run_.mode_name() + ", CR3=" + hex(run_.traced.cr3) +
               ", CPL=" + (now_ == tracing::on ? run_.traced_cpl() : "0") + ", IP=" + hex(ip) +
               ", cycles=0";
    }

    void say_branches() {
        if (branches_.empty()) { return; }
        run_.say("Jcc " + branches_ + (branches_ == "N" ? " next=" : "->") + hex(run_.ip()));
        branches_.clear();
    }

    // ----------------------------------------------------------------- TraceEn falls and rises

    void disable(std::uint64_t at, time_within const& within) {
        if (now_ == tracing::on && !run_.traced.who.os) {  // WRMSR needs CPL 0
            run_.say("interrupt next=" + hex(at) + run_.code(false) + run_.takes_of(within) + "->" +
                     hex(run_.outside()));
            run_.say("WRMSR TraceEn=0 at=" + hex(at) + " next=" + hex(at + 2));
        } else {
            if (run_.state().code.cpl != 0) {
                run_.say("SYSRET" + run_.kernel_code(run_.traced.who.os) + "->" +
                         hex(run_.outside()));
            }
            run_.say("WRMSR TraceEn=0 at=" + hex(at) + " next=" + hex(at + 2) +
                     run_.takes_of(within));
        }
        now_ = tracing::off;
    }
    /// The arguments OS and User of an access that sets TraceEn, at this packet.
    auto privilege_argument(std::size_t i) -> std::string {
        auto const before = run_.traced.who;
        auto const evident = evidence_.privilege_from(i, now_ == tracing::off, before);
        if (with_.os) {
            run_.traced.who.os = before.os != choices_.ask(question::os, evident.os != before.os);
            bool const is_other = !run_.traced.who.os ? !before.user : evident.user != before.user;
            run_.traced.who.user = before.user != choices_.ask(question::user, is_other);
        }
        std::string text;
        if (run_.traced.who.os != before.os) { text += run_.traced.who.os ? " OS=1" : " OS=0"; }
        if (run_.traced.who.user != before.user) {
            text += run_.traced.who.user ? " User=1" : " User=0";
        }
        return text;
    }
    /// TraceEn rises with a PSB+, by WRMSR, or by a VM entry to code that has no WRMSR.
    auto rise_with_psb(std::size_t i, group const& in) -> std::size_t {
        auto const os = privilege_argument(i);
        run_.set_clocks(in);
        run_.set_context(in);
        settle(i, true);
        run_.say("WRMSR PacketByteCnt=0");
        std::size_t const mode = after_times(all_, in.next);
        bool const has_mode = evidence_.is_at(mode, kind::mode_exec);
        std::size_t pge = has_mode ? after_times(all_, mode + 1) : mode;
        if (is_broadwell_ && evidence_.is_at(mode, kind::psb)) {  // the PSB+ before each TIP.PGE
            auto const before = psb_plus_at(all_, mode);
            if (before.fup() && run_.traced.who.os && before.tsc() == in.tsc()) {
                run_.set_context(before);
                pge = after_times(all_, before.next);
            }
        }
        bool const in_context = in.fup() || in.pip() || in.tsx();
        // Time passes before TIP.PGE.
        bool const waits = !is_broadwell_ && pge != in.next + (has_mode ? 1 : 0);
        bool const is_on = evidence_.is_at(pge, kind::tip_pge) &&
                           choices_.ask(question::traced,
                                        !(waits && run_.can_be_out()) &&
                                            (run_.state().options.psb_of_enable_has_fup
                                                 ? in.fup().has_value()
                                                 : in_context || !run_.can_be_out()));
        if (!is_on) {
            run_.say("SYSRET" + run_.kernel_code(in_context) + "->" + hex(run_.outside()));
            run_.say("WRMSR TraceEn=1 at=" + hex(in.fup().value_or(run_.outside())) + os +
                     " next=" + hex(run_.outside()) + run_.takes_of(in));
            now_ = tracing::out;
            return in.next;
        }
        time_within within = in.takes;
        for (std::size_t k = in.next; k <= pge; ++k) { within.add(all_[k]); }
        auto const takes = within.text(run_.reported_by(in));
        if (has_mode) { run_.set_mode(all_[mode].as<packet::mode_exec>()); }
        std::uint64_t const to = all_[pge].ip;
        std::uint64_t const at = in.fup().value_or(to - 2);
        if (at == to || !run_.traced.who.os) {
            run_.say("VM entry at=" + hex(at) + " TraceEn=1" + os + run_.entered(true) + takes +
                     "->" + hex(to));
        } else {
            run_.say("SYSRET" + run_.kernel_code(true) + "->" + hex(at));
            run_.say("WRMSR TraceEn=1 at=" + hex(at) + os + " next=" + hex(to) + takes);
        }
        now_ = tracing::on;
        return pge + 1;
    }
    /// TraceEn rises without a PSB+: PacketByteCnt is not 0.
    auto rise(std::size_t i, group const& in) -> std::size_t {
        auto const os = privilege_argument(i);
        run_.set_clocks(in);
        std::size_t const next = after_times(all_, in.next);
        std::size_t pge = next;
        if (is_broadwell_ && evidence_.is_at(next, kind::psb)) {  // the PSB+ before each TIP.PGE
            auto const before = psb_plus_at(all_, next);
            run_.set_context(before);
            pge = after_times(all_, before.next);
        } else if (evidence_.is_at(next, kind::mode_exec)) {
            pge = after_times(all_, next + 1);
        }
        bool const is_on = pge != next && evidence_.is_at(pge, kind::tip_pge) &&
                           choices_.ask(question::traced,
                                        run_.traced.who.os && with_.filters.empty());
        settle(i, true);
        run_.say("WRMSR PacketByteCnt=5");
        if (is_on) {
            if (evidence_.is_at(next, kind::mode_exec)) {
                run_.set_mode(all_[next].as<packet::mode_exec>());
            }
            std::uint64_t const to = all_[pge].ip;
            time_within within = in.takes;
            for (std::size_t k = in.next; k <= pge; ++k) { within.add(all_[k]); }
            run_.say("SYSRET" + run_.kernel_code(true) + "->" + hex(to - 2));
            run_.say("WRMSR TraceEn=1 at=" + hex(to - 2) + os + " next=" + hex(to) +
                     within.text(run_.reported_by(in)));
            now_ = tracing::on;
            return pge + 1;
        }
        std::string privileges = os;
        if (run_.traced.who.os && with_.filters.empty() &&
            !with_.cr3_filter) {  // a TIP.PGE would follow
            run_.traced.who.os = false;
            privileges = " OS=0";
        }
        run_.say("SYSRET" + run_.kernel_code(false) + "->" + hex(run_.outside()));
        run_.say("WRMSR TraceEn=1 at=" + hex(run_.outside()) + privileges +
                 " next=" + hex(run_.outside()) + run_.takes_of(in));
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
                    if (!is_tnt(i + 1)) { branches_ += 'N'; }  // in a TNT that is lost
                    return i + 1;
                }
                break;
            default: break;
        }
        say_branches();
        switch (one.packet.kind()) {
            case kind::psb: return psb(i);
            case kind::tip: run_.say("JMP RAX->" + hex(one.ip)); return i + 1;
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
                if (now_ == tracing::out) { run_.visit_context(true); }
                run_.set_vmcs(one.as<packet::vmcs>());
                return i + 1;
            default: return i + 1;
        }
    }

    /// A CYC after a TNT that is not aligned has the cycle in which the TNT was completed: its
    /// cycles passed before the last branch of the TNT. Source: GEN-010.
    void branches(std::size_t i, packet::branches taken) {
        bool const is_told = evidence_.is_at(i + 1, kind::cyc) &&
                             choices_.ask(
                                 question::told,
                                 is_unaligned(i + 1) &&
                                     (is_tnt(i + 2) ||
                                      evidence_.is_at(after_times(all_, i + 1), kind::ovf)));
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
    [[nodiscard]] auto is_tnt(std::size_t i) const -> bool {
        return evidence_.is_at(i, kind::tnt_short) || evidence_.is_at(i, kind::tnt_long);
    }
    [[nodiscard]] auto is_unaligned(std::size_t i) const -> bool {
        return (all_[i].offset - begin_) % 8 + (all_[i].end - all_[i].offset) > 8;
    }
    void cycles(seen const& one) {
        run_.say("cycles " + std::to_string(one.as<packet::cyc>().value()));
    }

    auto psb(std::size_t i) -> std::size_t {
        auto const in = psb_plus_at(all_, i);
        std::size_t const next = in.next;
        std::size_t const pge = after_times(all_, next);
        bool const is_cut_before_pge = is_broadwell_ && pge == all_.size() && in.exec();
        bool const is_of_pge = is_cut_before_pge ||
                               (in.fup() && evidence_.is_at(pge, kind::tip_pge));
        bool const is_rise = is_broadwell_ ? !in.fup() && i != 0 && all_[i - 1].is(kind::tip_pgd)
                                           : evidence_.must_have_fallen(i) || is_of_pge ||
                                                 (evidence_.may_have_fallen(i) &&
                                                  evidence_.has_other_os(i, run_.traced.who));
        if (now_ == tracing::out && run_.can_fall_outside() &&
            choices_.ask(question::fell, is_rise)) {
            disable(0, {});
        }
        if (now_ == tracing::off) { return rise_with_psb(i, in); }
        run_.set_clocks(in);
        if (is_broadwell_ && now_ == tracing::out && is_of_pge) { return enter_with_psb(i, in); }
        if (in.fup()) {
            run_.say("fall through->" + hex(*in.fup()));
        } else if (now_ == tracing::out && in.is_complete) {
            settle(i, false);
            bool const tells = with_.has_tsx || run_.traced.who.os || vmcs_tells();
            visit_context(tells ? has_context(in) : run_.is_in_context());
        }
        run_.say("psb due" + run_.takes_of(in));
        return next;
    }

    [[nodiscard]] auto vmcs_tells() const -> bool {
        return with_.has_vmcs && run_.state().options.vmcs_needs_context;
    }
    /// True if ContextEn is 1, as a PSB+ shows it.
    [[nodiscard]] auto has_context(group const& in) const -> bool {
        return in.tsx() || in.pip() || (vmcs_tells() && in.vmcs());
    }
    /// Goes to code outside of the filters that is in the context or not, as evidence has it.
    void visit_context(bool evident) {
        if (with_.filters.empty()) { return; }
        run_.visit_context(choices_.ask(question::context, evident));
    }
    /// What changed where no packet shows it: transactions, CR3 and the VMCS. The next PSB+ does.
    /// `is_silent`: TraceEn is 0, or packets are lost.
    void settle(std::size_t i, bool is_silent) {
        bool const is_other_transaction = with_.has_transactions &&
                                          choices_.ask(question::transaction,
                                                       has_other_transaction(i));
        auto const pip = next_pip(i);
        bool const is_other_cr3 = pip &&
                                  choices_.ask(question::cr3,
                                               pip->get<packet::pip::CR3>() != run_.traced.cr3 ||
                                                   pip->get<packet::pip::NR>() !=
                                                       run_.traced.non_root);
        auto const vmcs = next_vmcs(i);
        bool const is_other_vmcs = vmcs &&
                                   choices_.ask(question::vmcs, vmcs->get<packet::vmcs::base>() !=
                                                                    run_.state().vmcs);
        if (!is_other_transaction && !is_other_cr3 && !is_other_vmcs) { return; }
        if (!is_silent) { run_.visit_context(false); }
        if (!is_silent && run_.is_in_context()) { return; }  // packets would show it
        if (is_other_transaction) {
            run_.say((run_.state().tx_depth == 0 ? "XBEGIN at=" : "XEND at=") + hex(run_.ip()) +
                     " next=" + hex(run_.ip()));
        }
        if (is_other_cr3) {
            run_.set_pip(*pip);
            if (!is_silent) { run_.say("SYSRET" + run_.code(false) + "->" + hex(run_.outside())); }
        }
        if (is_other_vmcs) { run_.set_vmcs(*vmcs); }
    }
    [[nodiscard]] auto has_other_transaction(std::size_t i) const -> bool {
        for (std::size_t k = i; k < all_.size(); ++k) {
            if (all_[k].is(kind::ovf)) { return false; }
            std::optional<packet::mode_tsx> tsx;
            bool const begins_or_ends = all_[k].is(kind::mode_tsx);
            if (begins_or_ends) { tsx = all_[k].as<packet::mode_tsx>(); }
            if (all_[k].is(kind::psb)) { tsx = psb_plus_at(all_, k).tsx(); }
            if (!tsx) { continue; }
            return (is_in_transaction(*tsx) != begins_or_ends) != (run_.state().tx_depth != 0);
        }
        return false;
    }
    /// The PIP of the next PSB+ that has one, unless another PIP precedes it.
    [[nodiscard]] auto next_pip(std::size_t i) const -> std::optional<packet::pip> {
        for (std::size_t k = i; k < all_.size() && !all_[k].is(kind::pip); ++k) {
            if (!all_[k].is(kind::psb)) { continue; }
            auto const in = psb_plus_at(all_, k);
            if (in.pip()) { return in.pip(); }
            k = in.next - 1;
        }
        return std::nullopt;
    }
    [[nodiscard]] auto next_vmcs(std::size_t i) const -> std::optional<packet::vmcs> {
        for (std::size_t k = i; k < all_.size() && !all_[k].is(kind::vmcs); ++k) {
            if (!all_[k].is(kind::psb)) { continue; }
            auto const in = psb_plus_at(all_, k);
            if (in.vmcs()) { return in.vmcs(); }
            k = in.next - 1;
        }
        return std::nullopt;
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
            run_.set_mode(all_[k].as<packet::mode_exec>());
            within.add(all_[k++]);
        }
        for (; evidence_.is_at(k, kind::mtc) || evidence_.is_at(k, kind::cyc); ++k) {
            within.add(all_[k]);
        }
        bool const enters = evidence_.is_at(k, kind::tip_pge);
        if (k == all_.size()) {  // the target is not stored
            run_.say("SYSRET" + run_.code(true) + run_.takes_of(within) + "->" + hex(inside()));
            return k;
        }
        if (!enters && !evidence_.is_at(k, kind::tip) && !evidence_.is_at(k, kind::tip_pgd)) {
            return k;
        }
        if (enters && !is_broadwell_) {  // whose PSB+ before TIP.PGE has shown it
            if (!evidence_.is_at(i, kind::pip)) { settle(i, false); }
        }
        auto const& target = all_[k];
        within.add(target);
        bool const is_traced = enters || target.has_ip;
        auto const takes = run_.takes_of(within);
        run_.say("SYSRET" + run_.code(is_traced, is_wide(target)) + takes + "->" +
                 hex(is_traced ? target.ip : run_.outside()));
        now_ = evidence_.is_at(k, kind::tip_pgd) ? tracing::out : tracing::on;
        return k + 1;
    }
    /// An address that the filters do not exclude.
    [[nodiscard]] auto inside() const -> std::uint64_t {
        return with_.filters.empty() ? run_.ip() : with_.filters.front().first;
    }
    /// A PSB+ before a TIP.PGE: broadwell generates one before each.
    auto enter_with_psb(std::size_t i, group const& in) -> std::size_t {
        settle(i, false);
        if (in.pip()) { run_.set_pip(*in.pip()); }
        if (in.exec()) { run_.set_mode(*in.exec()); }
        std::size_t const pge = after_times(all_, in.next);
        time_within within;
        for (std::size_t k = in.next; k <= pge && k < all_.size(); ++k) { within.add(all_[k]); }
        bool const is_stored = pge < all_.size();
        run_.say("SYSRET" + run_.code(true, is_stored && is_wide(all_[pge])) + joined(in, within) +
                 "->" + hex(is_stored ? all_[pge].ip : in.fup().value_or(inside())));
        now_ = tracing::on;
        return is_stored ? pge + 1 : pge;
    }
    /// The moments of a PSB+ and of the TIP.PGE after it.
    [[nodiscard]] auto joined(group const& in, time_within const& within) const -> std::string {
        auto const first = run_.takes_of(in);
        auto const second = within.text(std::nullopt);
        if (first.empty() || second.empty()) { return first + second; }
        return first + "," + second.substr(second.find('=') + 1);
    }
    /// True for an IP that code of the current width cannot have: a far transfer leads to it.
    [[nodiscard]] auto is_wide(seen const& one) const -> bool {
        return one.has_ip && run_.traced.width != engine::code_width::bits_64 && one.ip >> 32 != 0;
    }
    void leave(seen const& one) {
        // With an IP the filter range is left, without one the context.
        if (one.has_ip && is_wide(one)) {
            run_.say("SYSRET" + run_.code(true, true) + "->" + hex(one.ip));
        } else if (one.has_ip) {
            run_.say("JMP RAX->" + hex(one.ip));
        } else if (with_.cr3_filter && !run_.cpl_leaves()) {
            run_.say("MOV CR3," + hex(run_.other_cr3()) + " next=" + hex(run_.ip() + 3));
        } else if (run_.can_leave_context()) {
            run_.say("SYSRET" + run_.code(false) + "->" + hex(run_.outside()));
        } else {
            run_.say("Jcc T->" + hex(run_.outside()));  // a branch that would be in a TNT
        }
        now_ = tracing::out;
    }
    /// MOV CR3, or the PIP of a far transfer.
    auto pip(std::size_t i) -> std::size_t {
        if (now_ == tracing::out) {
            settle(i, false);
            run_.visit_context(true);
        }
        run_.set_pip(all_[i].as<packet::pip>());
        std::size_t const after = after_times(all_, i + 1);
        bool const is_far = evidence_.is_at(after, kind::mode_exec) ||
                            (now_ == tracing::out && evidence_.is_at(after, kind::tip_pge));
        bool const is_new = run_.state().code.cr3 !=
                            run_.traced.cr3;  // a far transfer has no PIP without a new CR3
        constexpr std::size_t max_moments = 6;
        if (is_far && choices_.ask(question::transfer, is_new && after - i <= max_moments)) {
            return far_transfer(i);
        }
        run_.say("MOV CR3," + hex(run_.traced.cr3) + " next=" + hex(run_.ip()));
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
            run_.say("interrupt next=" + hex(from) + run_.code(true) + "->" + hex(from));
            return k;
        }
        if (!is_tip && !evidence_.is_at(k, kind::tip_pgd)) { return i + 1; }
        if (has_pip) { run_.set_pip(all_[at_pip].as<packet::pip>()); }
        if (has_mode) { run_.set_mode(all_[at_mode].as<packet::mode_exec>()); }
        auto const& last = all_[k];
        within.add(last);
        bool const is_traced = is_tip || last.has_ip;
        if (!is_traced && choices_.ask(question::fell, run_.traced.who.os)) {
            disable(from, within);
            return k + 1;
        }
        run_.say("interrupt next=" + hex(from) + run_.code(is_traced, is_wide(last)) +
                 run_.takes_of(within) + "->" + hex(is_traced ? last.ip : run_.outside()));
        now_ = is_tip ? tracing::on : tracing::out;
        return k + 1;
    }
    /// Packets were lost. The FUP after OVF, and a PSB+ before or after it, show what changed.
    auto overflow(std::size_t i) -> std::size_t {
        run_.say("overflow");
        std::size_t next = i + 1;
        group in;
        bool const has_cyc = i != 0 && evidence_.is_at(i - 1, kind::cyc);
        bool const may_rise = evidence_.may_be_rise(next) || evidence_.is_at(next, kind::mtc) ||
                              evidence_.is_at(next, kind::cyc);
        // TraceEn fell while packets were lost
        if (may_rise && choices_.ask(question::lost_fall, evidence_.rises_at(next) && !has_cyc)) {
            disable(0, {});
            run_.say("resolved at=" + hex(run_.ip()));
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
        if (in.pip()) { run_.set_pip(*in.pip()); }
        if (in.exec()) { run_.set_mode(*in.exec()); }
        if (in.vmcs() && run_.state().vmcs != in.vmcs()->get<packet::vmcs::base>()) {
            run_.set_vmcs(*in.vmcs());
        }
        settle(i + 1, true);
        std::uint64_t const to = is_on ? all_[next].ip : run_.outside();
        bool const is_in_context = is_on ||
                                   choices_.ask(question::context,
                                                has_context(in) ||
                                                    (!is_psb_first && !with_.filters.empty()));
        run_.say("SYSRET" + run_.code(is_in_context) + "->" + hex(to));
        now_ = is_on ? tracing::on : tracing::out;
        std::string takes;
        if (is_psb_first) {
            run_.set_clocks(in);
            takes = run_.takes_of(in);
            run_.say("psb due");
        }
        run_.say("resolved at=" + hex(to) + takes);
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
        std::uint64_t const at = has_fup ? all_[i + 1].ip : run_.outside();
        if (now_ == tracing::out) { run_.visit_context(true); }
        std::size_t target = after_times(all_, next);
        bool const has_mode = evidence_.is_at(target, kind::mode_exec);
        if (has_mode) { target = after_times(all_, target + 1); }
        bool const has_target = evidence_.is_at(target, kind::tip) ||
                                evidence_.is_at(target, kind::tip_pge) ||
                                (evidence_.is_at(target, kind::tip_pgd) && all_[target].has_ip);
        bool const is_one = next >= all_.size() || has_fup || all_[next].offset == all_[i].end;
        if (aborts && has_target && choices_.ask(question::transfer, is_one)) {
            if (has_mode) {
                run_.set_mode(all_[after_times(all_, next)].as<packet::mode_exec>());
                if (now_ == tracing::out && run_.state().code.width != run_.traced.width) {
                    run_.say("SYSRET" + run_.code(true) + "->" + hex(run_.outside()));
                }
            }
            time_within within;
            for (std::size_t k = next; k <= target; ++k) { within.add(all_[k]); }
            auto const takes = run_.takes_of(within);
            run_.say("abort at=" + hex(at) + takes + "->" + hex(all_[target].ip));
            now_ = evidence_.is_at(target, kind::tip_pgd) ? tracing::out : tracing::on;
            return target + 1;
        }
        if (aborts) {
            run_.say("abort at=" + hex(at) + "->" + hex(run_.outside()));
            return next;
        }
        bool const begins = is_in_transaction(mode);
        run_.say((begins ? "XBEGIN at=" : "XEND at=") + hex(at) +
                 " next=" + hex(has_fup ? at + 3 : run_.outside()));
        return next;
    }
    auto value(std::size_t i) -> std::size_t {
        auto const one = all_[i].as<packet::ptw>();
        bool const has_ip = one.get<packet::ptw::IP>() && evidence_.is_at(i + 1, kind::fup);
        std::uint64_t const at = has_ip ? all_[i + 1].ip : run_.ip();
        bool const is_wide = all_[i].end - all_[i].offset > 6;
        run_.say((is_wide ? "PTWRITE RAX=" : "PTWRITE EAX=") + hex(one.payload()) +
                 " at=" + hex(at) + " next=" + hex(at + 4));
        return has_ip ? i + 2 : i + 1;
    }
    /// Timing packets outside of a PSB+: TraceEn rose, the clocks were off, the ratio changed, or
    /// time passed.
    auto time(std::size_t i) -> std::size_t {
        auto const in = timing_at(all_, i);
        bool const is_cut = in.next == all_.size() && in.next != i && in.tsc();
        bool const is_rise = is_cut || evidence_.is_timing_of_rise(in);
        if (now_ == tracing::out && is_rise && run_.can_fall_outside() &&
            choices_.ask(question::fell,
                         evidence_.must_have_fallen(i) ||
                             (evidence_.may_have_fallen(i) &&
                              (evidence_.explains_mode(i, run_.traced.who, run_.state()) ||
                               evidence_.has_other_os(in.next, run_.traced.who))) ||
                             (is_broadwell_ && evidence_.rises_at(i)))) {
            disable(0, {});
        }
        if (now_ == tracing::off && is_rise) { return rise(i, in); }
        bool const is_early = evidence_.is_at(i, kind::mtc) || evidence_.is_at(i, kind::cyc);
        bool const is_group = is_early && in.tsc() && choices_.ask(question::stop, false);
        if (evidence_.is_at(i, kind::mtc) && !is_group) { return run_.mtc(all_[i]), i + 1; }
        if (evidence_.is_at(i, kind::cyc) && !is_group) {
            cycles(all_[i]);
            if (choices_.ask(question::guard, evidence_.is_alone(i))) { run_.say("wrap guard"); }
            return i + 1;
        }
        if (in.next == i) { return i + 1; }
        run_.set_clocks(in);
        if (!in.tsc()) {
            run_.say("ratio " + hex(run_.state().clocks.core_to_bus));
        } else {
            run_.say("clock stop next=" + hex(run_.ip()));
            run_.say("clock resume" + run_.takes_of(in));
        }
        return in.next;
    }

    std::span<seen const> all_;
    std::uint64_t begin_;  ///< the offset of a multiple of 16 in the output buffer
    bool ends_in_pads_;
    configuration with_;
    bool is_broadwell_;
    machine& machine_;
    evidence evidence_;
    script_run run_;
    choices choices_;
    std::string setup_{};
    bool is_told_ = false;    ///< the cycles of the next CYC have passed
    std::string branches_{};  ///< not yet an event
    tracing now_ = tracing::off;
};

}  // namespace pt_twin
