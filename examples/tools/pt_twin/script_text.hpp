// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a processor does as text, in the notation of pt_model.

#include "events.hpp"
#include "../common/trace_script/processor.hpp"

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace pt_twin {

inline auto hex(std::uint64_t value) -> std::string {
    char text[17];
    std::size_t at = sizeof text;
    do {
        text[--at] = "0123456789ABCDEF"[value & 15];
        value >>= 4;
    } while (value != 0);
    return {text + at, sizeof text - at};
}
inline auto width_text(engine::code_width width) -> char const* {
    using engine::code_width;
    return width == code_width::bits_64 ? "64" : width == code_width::bits_32 ? "32" : "16";
}

/// An event as a line. `before` is the context in which it begins, `takes` its moments.
struct script_line {
    engine::execution_context const& before;
    moments const& takes;

    auto operator()(action::far_transfer const& of) const -> std::string {  // the only kind
        return "SYSRET" + context(of.after) + taken() + "->" + hex(of.to);
    }
    auto operator()(action::interrupt const& of) const -> std::string {
        return "interrupt next=" + hex(of.next) + context(of.after) + taken() + "->" + hex(of.to);
    }
    auto operator()(tracing_vm_entry const& of) const -> std::string {
        auto after = context(of.after, true);
        return "VM entry at=" + hex(of.at) + " TraceEn=1" + privileges(of.who) + after + taken() +
               "->" + hex(of.to);
    }
    auto operator()(action::vmptrld const& of) const -> std::string {
        return "VMPTRLD " + hex(of.vmcs) + " next=" + hex(of.next);
    }
    auto operator()(action::acm_begin const&) const -> std::string { return "ACM begin"; }

    auto operator()(trace_en_write const& of) const -> std::string {
        return std::string{"WRMSR TraceEn="} + (of.value ? "1" : "0") + " at=" + hex(of.at) +
               privileges(of.who) + " next=" + hex(of.next) + taken();
    }
    auto operator()(packet_byte_cnt_write const& of) const -> std::string {
        return "WRMSR PacketByteCnt=" + hex(of.value);
    }
    auto operator()(action::mov_cr3 const& of) const -> std::string {
        return "MOV CR3," + hex(of.cr3) + " next=" + hex(of.next);
    }
    auto operator()(action::ptwrite const& of) const -> std::string {
        return (of.is_64_bit ? "PTWRITE RAX=" : "PTWRITE EAX=") + hex(of.value) +
               " at=" + hex(of.at) + " next=" + hex(of.next);
    }
    auto operator()(action::transaction_begin const& of) const -> std::string {
        return "XBEGIN at=" + hex(of.at) + " next=" + hex(of.next);
    }
    auto operator()(action::transaction_end const& of) const -> std::string {
        return "XEND at=" + hex(of.at) + " next=" + hex(of.next);
    }
    auto operator()(action::transaction_abort const& of) const -> std::string {
        return "abort at=" + hex(of.at) + taken() + "->" + hex(of.to);
    }

    auto operator()(conditional_branches const& of) const -> std::string {
        std::string letters;
        for (bool const is_taken : of.taken) { letters += is_taken ? 'T' : 'N'; }
        return "Jcc " + letters + (letters == "N" ? " next=" : "->") + hex(of.to);
    }
    auto operator()(action::indirect_jump const& of) const -> std::string {
        return "JMP RAX->" + hex(of.to);
    }
    auto operator()(action::sequential const& of) const -> std::string {
        return "fall through->" + hex(of.next);
    }

    auto operator()(action::psb_due const&) const -> std::string { return "psb due" + taken(); }
    auto operator()(packet_loss const&) const -> std::string { return "overflow"; }
    auto operator()(action::overflow_end const& of) const -> std::string {
        return "resolved at=" + hex(of.next) + taken();
    }

    auto operator()(action::cycles const& of) const -> std::string {
        return "cycles " + std::to_string(of.passed);
    }
    auto operator()(action::cycle_guard const&) const -> std::string { return "wrap guard"; }
    auto operator()(action::ratio const& of) const -> std::string {
        return "ratio " + hex(of.core_to_bus);
    }
    auto operator()(action::elapsed const& of) const -> std::string {
        return "ART->" + hex(of.art);
    }
    auto operator()(action::clock_stop const& of) const -> std::string {
        return "clock stop next=" + hex(of.next);
    }
    auto operator()(action::clock_resume const&) const -> std::string {
        return "clock resume" + taken();
    }
    auto operator()(clock_values const& of) const -> std::string {
        std::string text = "clocks";
        if (of.art) { text += " ART=" + hex(*of.art); }
        if (of.tsc) { text += " TSC=" + hex(*of.tsc); }
        if (of.tsc_at_edge) { text += " edge=" + hex(*of.tsc_at_edge); }
        if (of.core_to_bus) { text += " ratio=" + hex(*of.core_to_bus); }
        return text;
    }

private:
    /// What is not as before. Without VMX= a VM entry leads to non-root operation.
    [[nodiscard]] auto context(engine::execution_context const& after, bool is_entry = false) const
        -> std::string {
        std::string text = " CPL=" + hex(after.cpl);
        if (after.cr3 != before.cr3) { text += " CR3=" + hex(after.cr3); }
        if (after.width != before.width) {
            text += std::string{" mode="} + width_text(after.width);
        }
        if (is_entry || after.vmx_non_root != before.vmx_non_root) {
            text += after.vmx_non_root ? " VMX=nonroot" : " VMX=root";
        }
        return text;
    }
    [[nodiscard]] static auto privileges(privilege_change const& who) -> std::string {
        std::string text;
        if (who.os) { text += *who.os ? " OS=1" : " OS=0"; }
        if (who.user) { text += *who.user ? " User=1" : " User=0"; }
        return text;
    }
    [[nodiscard]] auto taken() const -> std::string {
        std::string text;
        for (auto const& one : takes) {
            auto const name = packet::name_of(one.before);
            text += text.empty() ? " takes=" : ",";
            text.append(name.data(), name.size());
            text += "@" + std::to_string(one.cycles);
            text += one.mtc == action::due_mtc::reported ? "+MTC.now"
                    : one.mtc == action::due_mtc::next   ? "+MTC"
                                                         : "";
        }
        return text;
    }
};

/// A setup as text. What it does not name is as in the base state.
inline auto setup_text(std::string_view kind_name, trace_script::start const& from) -> std::string {
    using ctl = reg::ia32_rtit_ctl;
    auto const& msrs = from.msrs;
    auto const value = [](char const* name, std::uint64_t number) {
        return std::string{", "} + name + "=" + hex(number);
    };
    std::string text = "kind=" + std::string{kind_name};
    text += value("psb_keeps_remainder", from.how.psb_keeps_remainder) +
            value("psb_step", from.how.psb_step) +
            value("psb_after_overflow", underlying(from.how.psb_after_overflow)) +
            value("has_tsx", from.how.has_tsx) + value("TraceEn", msrs.ctl.get<ctl::TraceEn>()) +
            value("OS", msrs.ctl.get<ctl::OS>()) + value("User", msrs.ctl.get<ctl::User>()) +
            value("TSCEn", msrs.ctl.get<ctl::TSCEn>()) +
            value("MTCEn", msrs.ctl.get<ctl::MTCEn>()) +
            value("MTCFreq", msrs.ctl.get<ctl::MTCFreq>()) +
            value("CYCEn", msrs.ctl.get<ctl::CYCEn>()) +
            value("PSBFreq", msrs.ctl.get<ctl::PSBFreq>()) +
            value("PTWEn", msrs.ctl.get<ctl::PTWEn>()) +
            value("FUPonPTW", msrs.ctl.get<ctl::FUPonPTW>()) +
            value("BranchEn", msrs.ctl.get<ctl::BranchEn>());
    for (unsigned n = 0; n < std::size(msrs.addr); ++n) {
        if (access::use_of_range(msrs.ctl, n) != reg::addr_cfg::filter) { continue; }
        text += ", ADDR" + std::to_string(n) + "=[" + hex(msrs.addr[n].a.raw) + "," +
                hex(msrs.addr[n].b.raw) + "] filter";
    }
    if (msrs.ctl.get<ctl::CR3Filter>()) {
        text += ", CR3Filter=1" + value("CR3_MATCH", msrs.cr3_match.raw);
    }
    if (!from.filter_en) { text += ", FilterEn=0"; }
    using pointers = reg::ia32_rtit_output_mask_ptrs;
    if (auto const offset = msrs.output.mask_ptrs.get<pointers::OutputOffset>(); offset != 0) {
        text += value("OutputOffset", offset);
    }
    text += ", conceal=exits+entries, VMX=";
    text += from.code.vmx_non_root ? "nonroot" : msrs.in_vmx_operation ? "root" : "off";
    return text + ", mode=" + width_text(from.code.width) + value("CR3", from.code.cr3) +
           value("CPL", from.code.cpl) + value("IP", from.ip) +
           ", cycles=" + std::to_string(from.cycles);
}

}  // namespace pt_twin
