// SPDX-License-Identifier: BSL-1.0
#pragma once

// The script that a machine executes: its clocks, the context of the code, and where it may go.

#include "evidence.hpp"
#include "script_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace pt_twin {

/// A trace of at most this many bytes has a twin.
constexpr std::size_t max_bytes = std::size_t{1} << 24;
using machine = trace_script::processor<max_bytes>;

/// What is known of the code that is traced, also where the machine executes other code.
struct traced_code {
    privilege who{};  ///< OS and User now
    std::uint64_t cr3 = 0;
    bool non_root = false;
    engine::code_width width = engine::code_width::bits_64;
};

/// Executes events on a machine, and writes them to a script.
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
    /// The initial state.
    void begin(trace_script::start const& from) { machine_.begin(from); }
    /// Executes an event. One with more moments than a script can have is a difference.
    template <class Event>
    void execute(Event const& what, moments const& takes = {}) {
        if (script_ != nullptr) { *script_ += script_line{state().code, takes}(what) + '\n'; }
        if (takes.size() <= trace_script::max_moments) { run(what, {takes.data(), takes.size()}); }
    }
    /// Goes to other code, with a far transfer.
    void go(engine::execution_context const& after, std::uint64_t to, moments const& takes = {}) {
        execute(action::far_transfer{ip(), to, after, action::far_kind::sysret}, takes);
    }
    [[nodiscard]] auto traced_cpl() const -> std::uint8_t { return traced.who.os ? 0 : 3; }
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
    /// The context of the traced code, or of code that is not traced. `is_wide`: 64-bit code.
    [[nodiscard]] auto code(bool is_traced, bool is_wide = false) const
        -> engine::execution_context {
        auto made = state().code;
        made.cpl = is_traced ? traced_cpl() : traced.who.os && !traced.who.user ? 3 : 0;
        bool const by_cr3 = !is_traced && with_.cr3_filter && !cpl_leaves();
        made.cr3 = by_cr3 ? other_cr3() : traced.cr3;
        made.width = is_wide ? engine::code_width::bits_64 : traced.width;
        made.vmx_non_root = traced.non_root;
        return made;
    }
    /// The context of the code at CPL 0 that sets TraceEn.
    [[nodiscard]] auto kernel_code(bool is_traced) const -> engine::execution_context {
        auto made = code(is_traced && traced.who.os);
        made.cpl = 0;
        return made;
    }
    void set_context(group const& from) {
        if (from.vmcs()) { set_vmcs(*from.vmcs()); }
        if (from.pip()) { set_pip(*from.pip()); }
        if (from.exec()) { set_mode(*from.exec()); }
    }
    void set_vmcs(packet::vmcs const& from) {
        execute(action::vmptrld{ip(), from.get<packet::vmcs::base>()});
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
        if (is_traced || can_leave_context()) { go(code(is_traced), outside()); }
    }
    void set_clocks(group const& in) {
        auto const tsc = in.tsc();
        auto const tma = in.tma();
        auto const cbr = in.cbr();
        if (!tsc && !cbr && !in.takes.has_mtc()) { return; }
        clock_values values;
        auto const& now = state().clocks;
        unsigned const freq = with_.mtc_freq;
        if (tma) {
            values.art = art_of(tma->get<packet::tma::CTC>(), in.takes);
        } else if (in.takes.has_mtc()) {
            values.art = art_before(in.takes.first_mtc()) >> freq << freq;
        }
        if (tsc) {
            values.tsc = *tsc;
            values.tsc_at_edge = *tsc - (tma ? tma->get<packet::tma::FC>() : 0);
        } else if (in.takes.has_mtc()) {
            values.tsc = now.tsc;
            values.tsc_at_edge = now.tsc_at_edge;
        }
        if (cbr) { values.core_to_bus = cbr->get<packet::cbr::CoreBusRatio>(); }
        execute(values);
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
    /// The moments of a group.
    [[nodiscard]] auto takes_of(group const& in) const -> moments {
        return in.takes.all(reported_by(in));
    }
    /// The payload of an MTC of the count that TMA reports.
    [[nodiscard]] auto reported_by(group const& in) const -> std::optional<std::uint64_t> {
        auto const tma = in.tma();
        if (!tma) { return std::nullopt; }
        auto const art = art_of(tma->get<packet::tma::CTC>(), in.takes);
        return art >> with_.mtc_freq & 0xFF;
    }
    /// The moments between the packets of an event, such as FUP and TIP.
    auto takes_of(time_within const& within) -> moments {
        if (within.has_mtc()) { reach(within.first_mtc()); }
        return within.all(std::nullopt);
    }
    /// Makes an MTC of this payload the next one: MTCs were lost, or the clocks stood still.
    void reach(std::uint64_t payload) {
        auto const& now = state().clocks;
        auto const before = art_before(payload);
        if (before >> with_.mtc_freq == now.art >> with_.mtc_freq) { return; }
        execute(clock_values{.art = before, .tsc = now.tsc, .tsc_at_edge = now.tsc_at_edge});
    }
    void mtc(seen const& one) {
        reach(one.as<packet::mtc>().get<packet::mtc::CTC>());
        auto const& now = state().clocks;
        std::uint64_t const next = ((now.art >> with_.mtc_freq) + 1) << with_.mtc_freq;
        execute(action::elapsed{0, next, now.tsc});
    }

private:
    template <class Action>
    void run(Action const& what, action::time_within takes) {
        machine_.execute(what, takes);
    }
    void run(trace_en_write const& what, action::time_within takes) {
        auto const value = ctl_with(what.value, what.who);
        (void)machine_.wrmsr({value.address, value.raw, what.at, what.next}, takes);
    }
    void run(packet_byte_cnt_write const& what, action::time_within) {
        using status = reg::ia32_rtit_status;
        auto const value = status{}.with(status::PacketByteCnt{wrapped{what.value}});
        (void)machine_.wrmsr({status::address, value.raw, ip(), ip() + 2});
    }
    void run(tracing_vm_entry const& what, action::time_within takes) {
        machine_.execute(action::vm_entry{.at = what.at,
                                          .to = what.to,
                                          .after = what.after,
                                          .loads = {true, ctl_with(true, what.who)}},
                         takes);
    }
    void run(conditional_branches const& what, action::time_within) {
        for (bool const is_taken : what.taken) {
            machine_.execute(action::conditional{what.to, is_taken});
        }
    }
    void run(packet_loss, action::time_within) {
        machine_.execute(action::sequential{ip()});
        machine_.execute(action::overflow{});
    }
    void run(clock_values const& to, action::time_within) {
        auto now = state().clocks;
        now.art = to.art.value_or(now.art);
        now.tsc = to.tsc.value_or(now.tsc);
        now.tsc_at_edge = to.tsc_at_edge.value_or(now.tsc);
        now.core_to_bus = to.core_to_bus.value_or(now.core_to_bus);
        machine_.set_clocks(now);
    }
    [[nodiscard]] auto ctl_with(bool trace_en, privilege_change const& who) const
        -> reg::ia32_rtit_ctl {
        using ctl = reg::ia32_rtit_ctl;
        auto const now = machine_.unit().msrs().ctl;
        return now.with(ctl::TraceEn{trace_en}, ctl::OS{who.os.value_or(now.get<ctl::OS>())},
                        ctl::User{who.user.value_or(now.get<ctl::User>())});
    }

    configuration const& with_;
    machine& machine_;
    std::string* script_;
};

}  // namespace pt_twin
