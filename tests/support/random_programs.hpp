// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/trace_unit.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Random programs on a random processor, and a reference model of the expected trace. The model
// implements the rules of the catalogue, and uses only the event types of the library.
namespace ptspec::test::programs {

namespace action = engine::action;

/// The kinds of items in a trace. Packets that only carry time or state are omitted.
enum class what : std::uint8_t {
    bit,       ///< a branch was taken (1) or not (0)
    returned,  ///< a bit that is 1, or a TIP with this IP
    tip,
    pge,
    pgd,  ///< with an IP
    pgd_no_ip,
    pgd_of_return,  ///< either of the two
    fup,
    pip,  ///< CR3, and NR in bit 0
    tsx,  ///< InTX, and TXAbort in bit 1
    trace_stop,
    ptw,
    mwait,
    pwre,
    exstop,
    pwrx,
    mtc,
};
struct item {
    what kind;
    std::uint64_t value;
    std::uint64_t cycle;  ///< time of the item
    unsigned mode;        ///< code width at the item
};

/// A configuration that the processor accepts.
struct setting {
    bool os, user, branch_en, tsc_en, mtc_en, cyc_en, ptw_en, fup_on_ptw, dis_retc, cr3_filter;
    bool pwr_evt_en;
    bool dis_tnt = false;
    unsigned mtc_freq, psb_freq;
    unsigned range_kind[2];  ///< 0 off, 1 filter, 2 TraceStop
    std::uint64_t from[2], to[2];
    std::uint64_t cr3_match;
    bool counted;  ///< PacketByteCnt is not 0 initially

    [[nodiscard]] auto word() const -> std::uint64_t {
        auto const at = [](bool is, unsigned bit) { return std::uint64_t{is} << bit; };
        return 1 | at(cyc_en, 1) | at(os, 2) | at(user, 3) | at(pwr_evt_en, 4) | at(fup_on_ptw, 5) |
               at(cr3_filter, 7) | at(mtc_en, 9) | at(tsc_en, 10) | at(dis_retc, 11) |
               at(ptw_en, 12) | at(branch_en, 13) | std::uint64_t{mtc_freq} << 14 |
               std::uint64_t{psb_freq} << 24 | std::uint64_t{range_kind[0]} << 32 |
               std::uint64_t{range_kind[1]} << 36 | at(dis_tnt, 55);
    }
};

/// The reference model: the trace items of each event, by the rules.
class model {
public:
    explicit model(setting const& with) : set_{with} {}

    std::vector<item> items;
    std::uint64_t cycle = 0;

    // GEN-023, GEN-050, GEN-060
    [[nodiscard]] auto in_context() const -> bool {
        bool const level = cpl_ == 0 ? set_.os : set_.user;
        return level && (!set_.cr3_filter || (cr3_ ^ set_.cr3_match) >> 12 == 0);
    }
    // GEN-081, GEN-082
    [[nodiscard]] auto in_any(unsigned kind, std::uint64_t ip) const -> bool {
        for (unsigned i = 0; i < 2; ++i) {
            if (set_.range_kind[i] == kind && set_.from[i] <= ip && ip <= set_.to[i]) {
                return true;
            }
        }
        return false;
    }
    [[nodiscard]] auto filters() const -> bool {
        return set_.range_kind[0] == 1 || set_.range_kind[1] == 1;
    }
    [[nodiscard]] auto packets() const -> bool {
        return trigger_ && context_ && filter_ && set_.branch_en;
    }

    void begin(std::uint64_t ip, std::uint64_t cr3) {
        cr3_ = cr3;
        trigger_ = true;
        filter_ = !filters();
        bool const stops = load_entry(ip, ip);
        if (packets()) { add(what::pge, ip); }
        stop_if(stops);
    }
    void end(std::uint64_t at) {
        if (packets()) {
            add(what::fup, at);
            add(what::pgd_no_ip, 0);
        }
        trigger_ = false;
    }
    void conditional(std::uint64_t to, bool taken) {
        if (!taken) {
            if (packets()) { add(what::bit, 0); }
            return;
        }
        branch_to(to, what::bit, true);
    }
    void direct(std::uint64_t to) { branch_to(to, what::trace_stop, false); }
    void indirect(std::uint64_t to) { branch_to(to, what::tip, false); }
    void returned(std::uint64_t to, bool may_be_compressed) {
        branch_to(to, may_be_compressed ? what::returned : what::tip, false);
    }
    /// A far transfer, or an event with a FUP.
    void far_to(std::uint64_t to, unsigned cpl, std::uint64_t cr3, unsigned mode, bool has_fup,
                std::uint64_t from) {
        bool const before = packets();
        bool const other_cr3 = cr3 != cr3_;
        cpl_ = cpl;
        cr3_ = cr3;
        mode_ = mode;
        if (!trigger_) { return; }
        bool const stops = load_entry(to, to);
        if (before && has_fup) { add(what::fup, from); }
        if (other_cr3 && context_ && set_.os) { add(what::pip, cr3_ & ~std::uint64_t{0x1F}); }
        add_transfer(before, to, what::tip, false);
        stop_if(stops);
    }
    void mov_cr3(std::uint64_t at, std::uint64_t next, std::uint64_t cr3) {
        bool const before = packets();
        cr3_ = cr3;
        if (!trigger_) { return; }
        bool const stops = load_entry(next, at);
        if (context_ && set_.os) { add(what::pip, cr3_ & ~std::uint64_t{0x1F}); }
        bool const after = packets();
        if (before && !after) {
            add(context_ ? what::pgd : what::pgd_no_ip, context_ ? next : 0);
        } else if (!before && after) {
            add(what::pge, next);
        }
        stop_if(stops);
    }
    void transaction(bool begins, std::uint64_t at) {
        if (!trigger_ || !context_ || !set_.branch_en) { return; }
        add(what::tsx, begins ? 1 : 0);
        if (packets()) { add(what::fup, at); }
    }
    void abort(std::uint64_t at, std::uint64_t to) {
        if (!trigger_) { return; }
        bool const before = packets();
        bool const stops = load_entry(to, to);
        if (context_ && set_.branch_en) { add(what::tsx, 2); }
        if (before) { add(what::fup, at); }
        add_transfer(before, to, what::tip, false);
        stop_if(stops);
    }
    void ptwrite(std::uint64_t at, std::uint64_t value) {
        if (!trigger_ || !context_ || !filter_ || !set_.ptw_en) { return; }
        add(what::ptw, value);
        if (set_.fup_on_ptw) { add(what::fup, at); }
    }
    void mwait(std::uint64_t at, unsigned hints, unsigned state) {
        if (!trigger_ || !set_.pwr_evt_en) { return; }
        if (context_) { add(what::mwait, hints); }
        add(what::pwre, state);
        add(what::exstop, context_ ? 1 : 0);
        if (context_) { add(what::fup, at); }
    }
    void wake(unsigned state) {
        if (trigger_ && set_.pwr_evt_en) { add(what::pwrx, state); }
    }
    /// Loses packets, including the pending TNT bits: GEN-225.
    void overflow(std::size_t held) {
        if (!trigger_) { return; }
        in_overflow_ = true;
        items.resize(items.size() - held);
    }
    /// GEN-227, GEN-230
    void end_overflow(std::uint64_t ip) {
        if (!in_overflow_) { return; }
        in_overflow_ = false;
        if (pending_stop_) { items.push_back({what::trace_stop, 0, cycle, mode_}); }
        pending_stop_ = false;
        if (packets()) { add(what::fup, ip); }
    }
    [[nodiscard]] auto traces() const -> bool { return trigger_; }
    void crystal(std::uint64_t before, std::uint64_t now) {
        if (!trigger_ || !set_.mtc_en) { return; }
        for (auto n = (before >> set_.mtc_freq) + 1; n <= now >> set_.mtc_freq; ++n) {
            add(what::mtc, n & 0xFF);
        }
    }

private:
    setting set_;
    bool trigger_ = false, context_ = false, filter_ = false;
    unsigned cpl_ = 0, mode_ = 64;
    bool in_overflow_ = false, pending_stop_ = false;
    std::uint64_t cr3_ = 0;

    void add(what kind, std::uint64_t value) {
        if (!in_overflow_) { items.push_back({kind, value, cycle, mode_}); }
    }
    /// GEN-005, steps 3 and 4. Returns true for a TraceStop.
    auto load_entry(std::uint64_t filtered, std::uint64_t stopped) -> bool {
        context_ = in_context();
        if (!context_) { return false; }
        bool const stops = in_any(2, stopped);
        filter_ = !stops && (!filters() || in_any(1, filtered));
        return stops;
    }
    void stop_if(bool stops) {
        if (!stops) { return; }
        add(what::trace_stop, 0);
        pending_stop_ = in_overflow_;
        trigger_ = false;
    }
    void branch_to(std::uint64_t to, what kind, bool hides_ip) {
        if (!trigger_) { return; }
        bool const before = packets();
        bool const stops = load_entry(to, to);
        add_transfer(before, to, kind, hides_ip);
        stop_if(stops);
    }
    /// GEN-340. `trace_stop` means that the transfer has no item of its own.
    void add_transfer(bool before, std::uint64_t to, what kind, bool hides_ip) {
        bool const after = packets();
        if (before && after) {
            if (kind == what::bit) {
                add(what::bit, 1);
            } else if (kind != what::trace_stop) {
                add(kind, to);
            }
        } else if (before) {
            if (kind == what::returned && context_) { return add(what::pgd_of_return, to); }
            bool const hidden = hides_ip || !context_;
            add(hidden ? what::pgd_no_ip : what::pgd, hidden ? 0 : to);
        } else if (after) {
            add(what::pge, to);
        }
    }
};

}  // namespace ptspec::test::programs
