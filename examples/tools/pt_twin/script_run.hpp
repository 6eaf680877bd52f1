// SPDX-License-Identifier: BSL-1.0
#pragma once

// The script that a machine executes: its clocks, the context of the code, and where it may go.

#include "evidence.hpp"
#include "../common/trace_script/machine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

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

/// What is known of the code that is traced, also where the machine executes other code.
struct traced_code {
    privilege who{};  ///< OS and User now
    std::uint64_t cr3 = 0;
    bool non_root = false;
    engine::code_width width = engine::code_width::bits_64;
};

/// Executes events, and writes them to a script.
class script_run {
public:
    /// `script` receives the events, one a line, unless it is null.
    script_run(configuration const& with, machine& on, std::string* script)
        : with_{with}, machine_{on}, script_{script} {}

    traced_code traced{};

    /// The state between two events.
    struct moment {
        machine::moment on;
        traced_code traced{};
        std::size_t length = 0;  // of the script
    };
    [[nodiscard]] auto save() const -> moment {
        return {machine_.save(), traced, script_ != nullptr ? script_->size() : 0};
    }
    void restore(moment const& from) {
        machine_.restore(from.on);
        traced = from.traced;
        if (script_ != nullptr) { script_->resize(from.length); }
    }

    [[nodiscard]] auto state() const -> engine::generator_state const& {
        return machine_.unit().state();
    }
    [[nodiscard]] auto ip() const -> std::uint64_t { return state().ip; }
    [[nodiscard]] auto is_in_context() const -> bool {
        return machine_.unit().msrs().status.get<reg::ia32_rtit_status::ContextEn>();
    }
    /// Runs an event. One that is refused, such as where the trace is too long, is a difference.
    void say(std::string const& event) {
        (void)machine_.run(event);
        if (script_ != nullptr) { *script_ += event + '\n'; }
    }
    [[nodiscard]] auto mode_name() const -> char const* {
        using engine::code_width;
        return traced.width == code_width::bits_64   ? "64"
               : traced.width == code_width::bits_32 ? "32"
                                                     : "16";
    }
    [[nodiscard]] auto traced_cpl() const -> char const* { return traced.who.os ? "0" : "3"; }
    /// True for the CPL of code that is not traced because of it.
    [[nodiscard]] auto cpl_leaves() const -> bool { return !traced.who.os || !traced.who.user; }
    /// True if code that is not traced may execute while TraceEn is 1.
    [[nodiscard]] auto can_be_out() const -> bool {
        return cpl_leaves() || !with_.filters.empty() || with_.cr3_filter;
    }
    /// True if code at CPL 0 that is not traced may clear TraceEn.
    [[nodiscard]] auto can_fall_outside() const -> bool {
        return !traced.who.os || !with_.filters.empty() || with_.cr3_filter;
    }
    [[nodiscard]] auto can_leave_context() const -> bool {
        return cpl_leaves() || with_.cr3_filter;
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
    [[nodiscard]] auto other_cr3() const -> std::uint64_t { return with_.cr3_match ^ 0x1000; }
    /// Arguments for the context of the traced code, or of code that is not traced.
    [[nodiscard]] auto code(bool is_traced, bool is_wide = false) const -> std::string {
        auto const& now = state().code;
        std::string text = std::string{" CPL="} + (is_traced ? traced_cpl()
                                                   : traced.who.os && !traced.who.user ? "3"
                                                                                       : "0");
        bool const by_cr3 = !is_traced && with_.cr3_filter && !cpl_leaves();
        std::uint64_t const next = by_cr3 ? other_cr3() : traced.cr3;
        if (now.cr3 != next) { text += " CR3=" + hex(next); }
        using engine::code_width;
        bool const is_64 = now.width == code_width::bits_64;
        if (is_wide && !is_64) { text += " mode=64"; }
        if (!is_wide && now.width != traced.width) { text += std::string{" mode="} + mode_name(); }
        if (now.vmx_non_root != traced.non_root) {
            text += traced.non_root ? " VMX=nonroot" : " VMX=root";
        }
        return text;
    }
    /// The same for a VM entry, which without an argument leads to non-root operation.
    [[nodiscard]] auto entered(bool is_traced) const -> std::string {
        auto const text = code(is_traced);
        if (text.find(" VMX=") != std::string::npos) { return text; }
        return text + (traced.non_root ? " VMX=nonroot" : " VMX=root");
    }
    /// Arguments for the code at CPL 0 that sets TraceEn.
    [[nodiscard]] auto kernel_code(bool is_traced) const -> std::string {
        auto text = code(is_traced && traced.who.os);
        if (auto const at = text.find(" CPL=3"); at != std::string::npos) { text[at + 5] = '0'; }
        return text;
    }
    void set_context(group const& from) {
        if (from.vmcs()) { set_vmcs(*from.vmcs()); }
        if (from.pip()) { set_pip(*from.pip()); }
        if (from.exec()) { set_mode(*from.exec()); }
    }
    void set_vmcs(packet::vmcs const& from) {
        say("VMPTRLD " + hex(from.get<packet::vmcs::base>()) + " next=" + hex(ip()));
    }
    void set_pip(packet::pip const& from) {
        traced.cr3 = from.get<packet::pip::CR3>();
        traced.non_root = from.get<packet::pip::NR>();
    }
    void set_mode(packet::mode_exec const& from) {
        using mode = packet::mode_exec;
        traced.width = from.get<mode::CS_L>()   ? engine::code_width::bits_64
                       : from.get<mode::CS_D>() ? engine::code_width::bits_32
                                                : engine::code_width::bits_16;
    }
    /// Goes to code outside of the filters whose context is traced, or not: GEN-170.
    void visit_context(bool is_traced) {
        if (with_.filters.empty()) { return; }
        if (is_in_context() == is_traced) { return; }
        if (is_traced || can_leave_context()) {
            say("SYSRET" + code(is_traced) + "->" + hex(outside()));
        }
    }
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
    /// The count of the crystal clock whose low 16 bits TMA reports. An MTC of the same
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

private:
    configuration const& with_;
    machine& machine_;
    std::string* script_;
};

}  // namespace pt_twin
