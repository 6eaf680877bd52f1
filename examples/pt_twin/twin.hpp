// SPDX-License-Identifier: BSL-1.0
#pragma once

// From the packets of a recorded trace to a script of what the processor did. The machine of
// pt_model runs the script.

#include "recording.hpp"

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
    twin(recording const& from, configuration const& with, std::string_view kind, machine& on,
         std::string* script)
        : all_{from.all},
          ends_in_pads_{from.ends_in_pads},
          with_{with},
          is_broadwell_{kind == "broadwell"},
          machine_{on},
          script_{script} {
        auto const first = group_at(all_, 0);
        bool const is_on = !with_.branches ||
                           (first.fup().has_value() && !is_at(first.last + 1, kind::tip_pge));
        // A CYC in the first PSB+ counts from an instant before the trace.
        if (is_on || first.cycles != 0) {
            now_ = is_on ? tracing::on : tracing::out;
            if (first.pip()) { set_pip(*first.pip()); }
            if (first.exec()) { set_mode(*first.exec()); }
        }
        setup_ = setup_text(kind, first.fup().value_or(now_ == tracing::out ? outside() : 0));
        auto const read = trace_script::read_setup(setup_, machine::table);
        machine_.begin(read.made);
        if (now_ != tracing::off && first.vmcs()) { set_vmcs(*first.vmcs()); }
    }

    void run() {
        for (std::size_t i = 0; i < all_.size();) {
            std::size_t const next = step(i);
            i = next;
        }
        say_branches();
        if (ends_in_pads_ && now_ == tracing::out) { disable(0); }
        say("ACM begin");  // the last branches
    }
    [[nodiscard]] auto setup() const -> std::string const& { return setup_; }
    [[nodiscard]] auto bytes() const -> byte_view { return machine_.written(); }

private:
    enum class tracing { off, out, on };

    [[nodiscard]] auto setup_text(std::string_view kind, std::uint64_t ip) const -> std::string {
        auto const flag = [](bool is) { return is ? std::string{"1"} : std::string{"0"}; };
        std::string text = "kind=" + std::string{kind};
        // What the packets show are facts, not choices.
        text += ", psb_keeps_remainder=0, psb_step=1, psb_after_overflow=2, has_tsx=" +
                flag(with_.has_tsx);
        text += ", TraceEn=" + flag(now_ != tracing::off) + ", OS=" + flag(with_.os) +
                ", TSCEn=" + flag(with_.tsc) + ", MTCEn=" + flag(with_.mtc) +
                ", MTCFreq=3, CYCEn=" + flag(with_.cyc) +
                ", PSBFreq=F, PTWEn=" + flag(with_.ptwrite) +
                ", FUPonPTW=" + flag(with_.fup_on_ptwrite) + ", BranchEn=" + flag(with_.branches);
        if (with_.filters) {
            text += ", ADDR0=[" + hex(with_.first) + "," + hex(with_.last) + "] filter";
        }
        if (now_ == tracing::out && with_.os) { text += ", FilterEn=0"; }
        text += std::string{", conceal=exits+entries, VMX="} + (non_root_        ? "nonroot"
                                                                : with_.has_vmcs ? "root"
                                                                                 : "off");
        return text + ", mode=" + mode_name() + ", CR3=" + hex(cr3_) +
               ", CPL=" + (now_ == tracing::on && !with_.os ? "3" : "0") + ", IP=" + hex(ip) +
               ", cycles=0";
    }
    [[nodiscard]] auto mode_name() const -> char const* {
        using engine::code_width;
        return width_ == code_width::bits_64 ? "64" : width_ == code_width::bits_32 ? "32" : "16";
    }
    /// Arguments for the context of the traced code, or of code that is not traced.
    [[nodiscard]] auto code(bool traced) const -> std::string {
        auto const& now = state().code;
        std::string text = traced && !with_.os ? " CPL=3" : " CPL=0";
        if (now.cr3 != cr3_) { text += " CR3=" + hex(cr3_); }
        if (now.width != width_) { text += std::string{" mode="} + mode_name(); }
        if (now.vmx_non_root != non_root_) { text += non_root_ ? " VMX=nonroot" : " VMX=root"; }
        return text;
    }
    /// The same for a VM entry, which without an argument leads to non-root operation.
    [[nodiscard]] auto entered(bool traced) const -> std::string {
        auto const text = code(traced);
        if (text.find(" VMX=") != std::string::npos) { return text; }
        return text + (non_root_ ? " VMX=nonroot" : " VMX=root");
    }
    [[nodiscard]] auto state() const -> engine::generator_state const& {
        return machine_.unit().state();
    }
    [[nodiscard]] auto ip() const -> std::uint64_t { return state().ip; }

    /// Runs an event. Nothing of it can be wrong but the length of the trace.
    void say(std::string const& event) {
        if (!machine_.run(event).empty()) { too_long_ = true; }
        if (script_ != nullptr) { *script_ += event + '\n'; }
    }
    void say_branches() {
        if (branches_.empty()) { return; }
        say("Jcc " + branches_ + (branches_ == "N" ? " next=" : "->") + hex(ip()));
        branches_.clear();
    }

    auto next_of(std::size_t i, std::initializer_list<kind> skipped) const -> std::size_t {
        ++i;
        while (i < all_.size() &&
               std::any_of(
                   skipped.begin(), skipped.end(), [&](kind one) { return all_[i].is(one); })) {
            ++i;
        }
        return i;
    }
    [[nodiscard]] auto is_at(std::size_t i, kind which) const -> bool {
        return i < all_.size() && all_[i].is(which);
    }

    // -------------------------------------------------------------------------------- clocks

    void set_clocks(std::optional<std::uint64_t> tsc, std::optional<packet::tma> tma,
                    std::optional<packet::cbr> cbr) {
        if (!tsc && !cbr) { return; }
        say_branches();
        std::string text = "clocks";
        auto const& now = state().clocks;
        if (tma) {
            std::uint64_t const ctc = tma->get<packet::tma::CTC>();
            text += " ART=" + hex(now.art + ((ctc - now.art) & 0xFFFF));
        }
        if (tsc) {
            text += " TSC=" + hex(*tsc) +
                    " edge=" + hex(*tsc - (tma ? tma->get<packet::tma::FC>() : 0));
        }
        if (cbr) { text += " ratio=" + hex(cbr->get<packet::cbr::CoreBusRatio>()); }
        say(text);
    }
    /// The counter of the crystal clock at an MTC after `art`.
    static auto next_mtc(seen const& one, std::uint64_t art) -> std::uint64_t {
        std::uint64_t const payload = one.as<packet::mtc>().get<packet::mtc::CTC>();
        std::uint64_t const periods = (payload - (art >> 3)) & 0xFF;
        return ((art >> 3) + (periods == 0 ? 256 : periods)) << 3;
    }
    void mtc(seen const& one) {
        auto const& now = state().clocks;
        std::uint64_t const art = next_mtc(one, now.art);
        // Otherwise MTCs were lost, or the clocks stood still.
        if (art >> 3 != (now.art >> 3) + 1) {
            say("clocks ART=" + hex(art - 1) + " edge=" + hex(now.tsc_at_edge));
        }
        say("ART->" + hex(art));
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

    /// True if TraceEn fell at a TIP.PGD: tracing is enabled again after it, or the trace ends.
    [[nodiscard]] auto falls(std::size_t pgd) const -> bool {
        std::size_t i = next_of(pgd, {kind::mtc, kind::cyc});
        if (i >= all_.size()) { return true; }
        if (is_at(i, kind::psb)) {
            auto const in = group_at(all_, i);
            if (is_broadwell_) { return !in.fup().has_value(); }
            return in.fup().has_value() &&
                   is_at(next_of(in.last, {kind::mtc, kind::cyc}), kind::tip_pge);
        }
        if (!is_at(i, kind::tsc) && !is_at(i, kind::cbr)) { return false; }
        i = next_of(i - 1, {kind::tsc, kind::tma, kind::cbr, kind::mtc, kind::cyc});
        return is_at(i, kind::mode_exec) && is_at(next_of(i, {kind::cyc}), kind::tip_pge);
    }
    void disable(std::uint64_t at) {
        if (!with_.os && now_ == tracing::on) {  // WRMSR needs CPL 0
            say("interrupt next=" + hex(at) + code(false) + "->" + hex(outside()));
        }
        say("WRMSR TraceEn=0 at=" + hex(at) + " next=" + hex(at + 2));
        now_ = tracing::off;
    }

    // -------------------------------------------------------------------------------- packets

    auto step(std::size_t i) -> std::size_t {
        auto const& one = all_[i];
        switch (one.packet.kind()) {
            case kind::tnt_short: branches(one.as<packet::tnt_short>().taken()); return i + 1;
            case kind::tnt_long: branches(one.as<packet::tnt_long>().taken()); return i + 1;
            default: say_branches();
        }
        switch (one.packet.kind()) {
            case kind::psb: return psb(i);
            case kind::tip:
                say((mode_follows_ ? "SYSRET" + code(true) : "JMP RAX") + "->" + hex(one.ip));
                mode_follows_ = false;
                return i + 1;
            case kind::fup: return fup(i);
            case kind::tip_pgd: leave(one); return i + 1;
            case kind::tip_pge: enter(i); return i + 1;
            case kind::mode_exec:
                set_mode(one.as<packet::mode_exec>());
                mode_follows_ = true;
                return i + 1;
            case kind::mode_tsx: return transaction(i);
            case kind::pip:
                set_pip(one.as<packet::pip>());
                say("MOV CR3," + hex(cr3_) + " next=" + hex(ip()));
                return i + 1;
            case kind::mtc: mtc(one); return i + 1;
            case kind::cyc: cycles(one); return i + 1;
            case kind::tsc:
            case kind::cbr: return clocks(i);
            case kind::ovf: return overflow(i);
            case kind::ptw: return value(i);
            default: return i + 1;
        }
    }

    void branches(packet::branches taken) {
        for (unsigned i = taken.count; i != 0; --i) {
            branches_ += (taken.bits >> (i - 1) & 1) != 0 ? 'T' : 'N';
        }
        if (branches_.size() > 1000) { say_branches(); }
    }
    void cycles(seen const& one) {
        bool const is_unaligned = one.offset % 8 + (one.end - one.offset) > 8;
        say("cycles " + std::to_string(one.as<packet::cyc>().value()) +
            (is_unaligned ? " unaligned" : ""));
    }

    auto psb(std::size_t i) -> std::size_t {
        auto const in = group_at(all_, i);
        // More PADs than a PSB needs: TraceEn fell before it.
        bool const is_after_end = i != 0 && all_[i].offset - all_[i - 1].end >= 8;
        if (now_ == tracing::out && is_after_end) { disable(0); }
        set_clocks(in.tsc(), in.tma(), in.cbr());
        std::size_t const next = in.last + 1;
        if (now_ == tracing::off) {
            set_context(in);
            say("WRMSR PacketByteCnt=0");
            begin(in.fup(), next);
            if (!in.fup() || !is_at(next, kind::tip_pge)) { return next; }
            return next + 1;
        }
        bool const is_of_pge = is_broadwell_ && now_ == tracing::out && in.fup().has_value() &&
                               is_at(next, kind::tip_pge);
        if (is_of_pge) {
            set_context(in);
            return next;
        }
        if (in.fup()) { say("fall through->" + hex(*in.fup())); }
        if (in.cycles != 0) { say("cycles " + std::to_string(in.cycles)); }
        psb_due(in.due);
        return next;
    }

    static auto mtc_at(action::mtc_place where) -> char const* {
        constexpr char const* places[] = {"",
                                          " mtc=before_tsc",
                                          " mtc=after_tsc",
                                          " mtc=after_tma",
                                          " mtc=after_cbr",
                                          " mtc=before_older_tsc"};
        return places[underlying(where)];
    }
    void psb_due(action::psb_due const& due) {
        std::string text = "psb due";
        text += mtc_at(due.mtc);
        auto const add = [&](char const* name, std::uint64_t cycles) {
            if (cycles != 0) { text += name + std::to_string(cycles); }
        };
        add(" until_tsc=", due.cycles_until_tsc);
        add(" until_mtc=", due.cycles_until_mtc);
        say(text);
    }

    /// Enables tracing by WRMSR, or by a VM entry if the FUP has the IP of TIP.PGE.
    void begin(std::optional<std::uint64_t> fup, std::size_t next) {
        bool const is_on = is_at(next, kind::tip_pge) && fup.has_value();
        bool const by_entry = is_on && all_[next].ip == *fup;
        std::uint64_t const to = is_on ? all_[next].ip : 0;
        if (by_entry || (is_on && !with_.os)) {
            say("VM entry at=" + hex(to) + " TraceEn=1" + entered(true) + "->" + hex(to));
        } else {
            std::uint64_t const at = is_on ? *fup : 0;
            say("SYSRET" + code(false) + "->" + hex(at));
            say("WRMSR TraceEn=1 at=" + hex(at) + " next=" + hex(is_on ? to : outside()));
        }
        now_ = is_on ? tracing::on : tracing::out;
    }
    /// Enables tracing without a PSB+: PacketByteCnt is not 0.
    void continue_at(std::size_t pge) {
        say("WRMSR PacketByteCnt=5");
        std::uint64_t const to = all_[pge].ip;
        say("SYSRET" + code(true) + "->" + hex(to - 2));
        say("VM entry at=" + hex(to) + " TraceEn=1" + entered(true) + "->" + hex(to));
        now_ = tracing::on;
    }
    /// An address that is in no filter range.
    [[nodiscard]] auto outside() const -> std::uint64_t {
        return with_.filters ? with_.first - 1 : 0;
    }

    void enter(std::size_t i) {
        auto const& one = all_[i];
        say("SYSRET" + code(true) + "->" + hex(one.ip));
        now_ = tracing::on;
        mode_follows_ = false;
    }
    void leave(seen const& one) {
        // With an IP the filter range is left, without one the context.
        if (one.has_ip) {
            say("JMP RAX->" + hex(one.ip));
        } else {
            say("SYSRET" + code(false) + "->" + hex(outside()));
        }
        now_ = tracing::out;
    }
    auto fup(std::size_t i) -> std::size_t {
        std::uint64_t const from = all_[i].ip;
        std::size_t k = i + 1;
        std::uint64_t art = state().clocks.art;
        std::uint64_t until_pip = 0;
        std::uint64_t until_target = 0;
        bool has_mtc = false;
        for (; is_at(k, kind::mtc) || is_at(k, kind::cyc); ++k) {
            if (is_at(k, kind::cyc)) {
                until_target = all_[k].as<packet::cyc>().value();
                continue;
            }
            until_pip += until_target;  // before the MTC
            until_target = 0;
            art = next_mtc(all_[k], art);
            has_mtc = true;
        }
        std::string takes;
        if (until_pip != 0) { takes += " until_pip=" + std::to_string(until_pip); }
        if (until_target != 0) { takes += " until_target=" + std::to_string(until_target); }
        if (has_mtc) { takes += " ART=" + hex(art); }
        auto const interrupt = [&](bool is_traced, std::uint64_t to) {
            say("interrupt next=" + hex(from) + code(is_traced) + takes + "->" + hex(to));
        };
        if (is_at(k, kind::tip)) {
            interrupt(true, all_[k].ip);
            return k + 1;
        }
        if (!is_at(k, kind::tip_pgd)) { return i + 1; }
        if (!all_[k].has_ip && falls(k)) {
            disable(from);
        } else {
            interrupt(all_[k].has_ip, all_[k].has_ip ? all_[k].ip : outside());
            now_ = tracing::out;
        }
        return k + 1;
    }
    auto overflow(std::size_t i) -> std::size_t {
        say("overflow");
        std::size_t next = i + 1;
        bool const has_psb = is_at(next, kind::psb);
        if (has_psb) {
            auto const in = group_at(all_, next);
            set_clocks(in.tsc(), in.tma(), in.cbr());
            next = in.last + 1;
        }
        bool const is_on = is_at(next, kind::fup);
        if (!is_on) {  // the context or the filter range was left meanwhile
            say("SYSRET" + code(with_.filters) + "->" + hex(outside()));
        }
        now_ = is_on ? tracing::on : tracing::out;
        if (has_psb) { say("psb due"); }
        say("resolved at=" + hex(is_on ? all_[next].ip : outside()));
        return is_on ? next + 1 : next;
    }
    auto transaction(std::size_t i) -> std::size_t {
        auto const mode = all_[i].as<packet::mode_tsx>();
        if (!is_at(i + 1, kind::fup)) { return i + 1; }
        std::uint64_t const at = all_[i + 1].ip;
        if (mode.get<packet::mode_tsx::TXAbort>() && is_at(i + 2, kind::tip)) {
            say("abort at=" + hex(at) + "->" + hex(all_[i + 2].ip));
            return i + 3;
        }
        bool const begins = mode.get<packet::mode_tsx::InTX>();
        say((begins ? "XBEGIN at=" : "XEND at=") + hex(at) + " next=" + hex(at + 3));
        return i + 2;
    }
    auto value(std::size_t i) -> std::size_t {
        auto const one = all_[i].as<packet::ptw>();
        bool const has_ip = one.get<packet::ptw::IP>() && is_at(i + 1, kind::fup);
        std::uint64_t const at = has_ip ? all_[i + 1].ip : ip();
        bool const is_wide = all_[i].end - all_[i].offset > 6;
        say((is_wide ? "PTWRITE RAX=" : "PTWRITE EAX=") + hex(one.payload()) + " at=" + hex(at) +
            " next=" + hex(at + 4));
        return has_ip ? i + 2 : i + 1;
    }
    /// TSC, TMA, CBR outside of a PSB+: the clocks were off, or tracing is enabled again.
    auto clocks(std::size_t i) -> std::size_t {
        group in;
        auto mtc = action::mtc_place::none;
        std::size_t k = i;
        for (; k < all_.size(); ++k) {
            auto const& one = all_[k];
            if (one.is(kind::tsc) || one.is(kind::tma)) {
                in.add(one);
            } else if (one.is(kind::mtc) && is_at(k + 1, in.tma() ? kind::cbr : kind::tma)) {
                mtc = in.tma() ? action::mtc_place::after_tma : action::mtc_place::after_tsc;
            } else {
                break;
            }
        }
        bool const has_cbr = is_at(k, kind::cbr);
        if (has_cbr) { in.add(all_[k++]); }
        set_clocks(in.tsc(), in.tma(), in.cbr());
        if (now_ == tracing::off) {
            if (is_at(k, kind::mode_exec) && is_at(k + 1, kind::tip_pge)) {
                set_mode(all_[k].as<packet::mode_exec>());
                continue_at(k + 1);
                return k + 2;
            }
            return k;
        }
        if (!in.tsc() && has_cbr) {
            say("ratio " + hex(state().clocks.core_to_bus));
        } else {
            // More PADs than a TSC needs.
            bool const is_aligned = i != 0 && all_[i].offset - all_[i - 1].end >= 8;
            say("clock stop next=" + hex(ip()) + (is_aligned ? " align=10" : ""));
            say(std::string{"clock resume"} + mtc_at(mtc));
        }
        return k;
    }

    std::vector<seen> const& all_;
    bool ends_in_pads_;
    configuration with_;
    bool is_broadwell_;
    machine& machine_;
    std::string* script_;
    std::string setup_{};
    std::uint64_t cr3_ = 0;
    bool non_root_ = false;
    bool mode_follows_ = false;
    bool too_long_ = false;
    engine::code_width width_ = engine::code_width::bits_64;
    std::string branches_{};  ///< not yet an event
    tracing now_ = tracing::off;
};

}  // namespace pt_twin
