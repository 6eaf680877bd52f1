// SPDX-License-Identifier: BSL-1.0
#pragma once

// Streams of packets whose times are known. They share nothing with the library: own bytes of
// packets, own clocks.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace ptspec::test {

/// How the frequency of the core clock deviates from the ratio that CBR tells.
enum class core_drift : uint8_t { none, slowest, fastest, alternates, wanders, count };

/// What makes up a stream.
struct timed_mixture {
    bool mtc = false;
    bool cyc = false;
    uint8_t mtc_freq = 3;
    uint8_t threshold = 0;     ///< IA32_RTIT_CTL.CycThresh
    uint32_t numerator = 168;  ///< TSC ticks in `denominator` ticks of the crystal clock
    uint32_t denominator = 2;
    uint8_t non_turbo = 36;
    uint8_t tolerance = 5;  ///< the core clock deviates by 1 / 2^tolerance at most
    uint8_t lost_mtcs = 1;  ///< so many MTCs in a row may be dropped
    core_drift drift = core_drift::none;
    bool drops_mtcs = false;
    bool sleeps = false;
    bool changes_frequency = false;
    bool overflows = false;
    bool jumps = false;           ///< the TSC is written
    bool pauses = false;          ///< TraceEn is cleared and set
    bool reports = false;         ///< a PSB+ has more packets, in any order, and lasts longer
    bool changes_cr3 = false;     ///< also without a PIP, which the PIP of the next PSB+ shows
    bool compounds = false;       ///< events with several packets, and packets without a CYC
    bool restarts_count = false;  ///< an OVF without a CYC restarts the count of cycles: GEN-210
};

/// A processor with a crystal clock, a core clock, and a time-stamp counter.
///
/// Source: GEN-123, GEN-200..220, PKT-100..117.
class timed_stream {
public:
    /// The true time of the packet at an offset.
    struct truth {
        uint64_t offset = 0;
        uint64_t tsc = 0;
        uint64_t event = 0;   ///< of the event: of the TSC of the PSB+, or of the TIP at the end
        uint64_t anchor = 0;  ///< the TSC at the last TSC or MTC packet before
        uint8_t ratio = 0;    ///< of the core clock
    };

    timed_stream(timed_mixture const& how, uint64_t seed)
        : how_{how},
          random_{seed},
          tick_{uint64_t{how.denominator} * grain},
          crystal_{uint64_t{how.numerator} * grain} {
        now_ = tick_ * (50'000'000 + any(30'000'000)) + any(tick_);
        ratio_ = some_ratio();
        phase_ = static_cast<double>(any(1000)) / 1000;
        turn_drift();
        psb_plus();
        put({0x71});
        ip();
        is_begun_ = true;
    }

    [[nodiscard]] auto bytes() const -> std::vector<uint8_t> const& { return bytes_; }
    [[nodiscard]] auto truths() const -> std::vector<truth> const& { return truths_; }

    void run(unsigned steps) {
        for (unsigned i = 0; i < steps; ++i) { step(); }
        flush();
    }

private:
    static constexpr uint64_t grain = 64;  ///< units of time in a tick of a clock's fraction

    auto any(uint64_t below) -> uint64_t { return below == 0 ? 0 : random_() % below; }
    auto one_in(uint64_t count) -> bool { return any(count) == 0; }
    auto some_ratio() -> uint8_t { return static_cast<uint8_t>(8 + any(41)); }

    // ------------------------------------------------------------------------------- clocks

    [[nodiscard]] auto tsc() const -> uint64_t { return now_ / tick_ + jumped_; }
    [[nodiscard]] auto crystal() const -> uint64_t { return now_ / crystal_; }
    /// When the next MTC is due.
    [[nodiscard]] auto next_edge() const -> uint64_t {
        return (((crystal() >> how_.mtc_freq) + 1) << how_.mtc_freq) * crystal_;
    }
    [[nodiscard]] auto cycle() const -> uint64_t { return static_cast<uint64_t>(phase_); }
    [[nodiscard]] auto counted() const -> uint64_t { return cycle() - counted_from_; }

    /// A factor of the frequency. The slowest is 1 - 1 / 2^tolerance, the fastest its reciprocal.
    void turn_drift() {
        double const most = 1.0 / static_cast<double>(uint64_t{1} << how_.tolerance);
        double const slowest = 1 - most;
        double const fastest = 1 / slowest;
        switch (how_.drift) {
            case core_drift::slowest: speed_ = slowest; break;
            case core_drift::fastest: speed_ = fastest; break;
            case core_drift::alternates:
                if (one_in(80)) { speed_ = speed_ == slowest ? fastest : slowest; }
                break;
            case core_drift::wanders:
                if (one_in(20)) {
                    speed_ = slowest + (fastest - slowest) * static_cast<double>(any(1001)) / 1000;
                }
                break;
            default: speed_ = 1;
        }
    }
    void move_to(uint64_t end) {
        if (is_running_) {
            phase_ += static_cast<double>(end - now_) / static_cast<double>(tick_) * ratio_ /
                      how_.non_turbo * speed_;
        }
        now_ = end;
    }
    /// Time passes. MTCs are sent at edges of the crystal clock.
    void pass(uint64_t units) {
        uint64_t const end = now_ + units;
        while (true) {
            uint64_t const edge = next_edge();
            if (edge > end) { break; }
            move_to(edge);
            if (how_.mtc && is_running_ && is_enabled_) { mtc_at_edge(); }
        }
        move_to(end);
    }
    void pass_ticks(uint64_t ticks) { pass(ticks * tick_ + any(tick_)); }

    // ------------------------------------------------------------------------------- packets

    void put(std::initializer_list<unsigned> some) {
        for (unsigned const one : some) { byte(one); }
    }
    void byte(uint64_t value) {
        if (!is_losing_) { bytes_.push_back(static_cast<uint8_t>(value)); }
    }
    void number(uint64_t value, unsigned count) {
        for (unsigned i = 0; i < count; ++i) { byte(value >> (8 * i) & 0xFF); }
    }
    void ip() { number(0x40'0000 + 16 * any(1000), 6); }
    /// The event of the next packet is now.
    void mark(uint64_t when) {
        if (!is_losing_) { truths_.push_back({bytes_.size(), when, when, anchor_, ratio_}); }
    }
    void mark() { mark(tsc()); }

    /// A CYC if one is due before a packet.
    void cyc_if_due() {
        if (!how_.cyc || is_losing_) { return; }
        uint64_t const least = how_.threshold == 0 ? 1 : uint64_t{1} << (how_.threshold - 1);
        if (counted() >= (must_send_ ? 1 : least)) { cyc(); }
        must_send_ = false;
    }
    void cyc() {
        uint64_t value = counted();
        counted_from_ = cycle();
        uint64_t const more = value >> 5;
        byte(3 | (value & 31) << 3 | (more != 0 ? 4 : 0));
        for (value = more; value != 0; value >>= 7) {
            byte((value & 127) << 1 | (value >> 7 != 0 ? 1 : 0));
        }
    }
    /// Before each packet: branches come first.
    void flush() {
        if (branches_ == 0) { return; }
        mark(first_branch_);
        byte((1U << branches_ | outcomes_) << 1);
        branches_ = 0;
    }
    void eligible() {
        flush();
        cyc_if_due();
    }
    void mtc_at_edge() {
        if (how_.drops_mtcs && dropped_ < how_.lost_mtcs && one_in(6)) {
            ++dropped_;
            return;
        }
        dropped_ = 0;
        mtc(crystal());
    }
    void mtc(uint64_t count) {
        eligible();
        byte(0x59);
        byte(count >> how_.mtc_freq & 0xFF);
        anchor_ = tsc();
    }
    void tsc_packet() { tsc_packet(tsc()); }
    void tsc_packet(uint64_t value) {
        byte(0x19);
        number(value & 0xFF'FFFF'FFFF'FFFF, 7);
        anchor_ = value;
    }
    void tma() { tma(now_); }
    void tma(uint64_t time) {
        if (!how_.mtc) { return; }
        put({0x02, 0x73});
        number(time / crystal_ & 0xFFFF, 2);
        uint64_t const edge = time / crystal_ * crystal_ / tick_;
        byte(0);
        number((time / tick_ - edge) & 0x1FF, 2);
    }
    void cbr() { put({0x02, 0x03, ratio_, 0}); }
    /// TSC, TMA and CBR, as after the clocks stopped.
    void timing_group(bool has_cbr = true) {
        eligible();
        if (how_.mtc && !how_.cyc && one_in(2)) {
            late_timing_group();
        } else {
            tsc_packet();
            tma();
        }
        if (has_cbr) {
            mark();
            cbr();
        }
    }
    /// The MTC of the next edge of the crystal clock stands before the TSC or its TMA: GEN-218.
    void late_timing_group() {
        uint64_t const edge = next_edge();
        uint64_t const before = edge - 1 - any(tick_);
        uint64_t const time = before > now_ ? before : now_;
        bool const is_first = one_in(2);
        move_to(edge);
        if (is_first) { mtc(crystal()); }
        tsc_packet(time / tick_ + jumped_);
        if (!is_first) { mtc(crystal()); }
        tma(time);
    }
    void psb_plus(bool has_code = true) {
        flush();
        auto const first = truths_.size();
        for (unsigned i = 0; i < 8; ++i) { put({0x02, 0x82}); }
        std::vector<unsigned> parts{0, 1};
        if (how_.reports) { parts = {0, 1, 2, 3, 4, 5, 5}; }
        std::shuffle(parts.begin(), parts.end(), random_);
        uint64_t time = 0;
        for (auto const part : parts) {
            if (how_.reports && how_.overflows && is_begun_ && has_code && one_in(100)) {
                return overflow();
            }  // ends it
            switch (part) {
                case 0:
                    cyc_if_due();
                    time = tsc();
                    tsc_packet();
                    tma();
                    if (one_in(4)) { pass(any(3 * tick_)); }
                    mark();
                    cbr();
                    break;
                case 1:
                    if (!has_code) { break; }
                    status();
                    put({0x99, 1});
                    mark();
                    put({0x7D});
                    ip();
                    break;
                case 2: status_pip(); break;
                case 3:
                    if (one_in(2)) { break; }
                    status();
                    vmcs();
                    break;
                case 4:
                    if (!has_code) { break; }
                    status();
                    put({0x99, 0x20U + (is_in_tx_ ? 1U : 0U)});
                    break;
                default:
                    if (one_in(4)) { mnt(); }
            }
            if (one_in(4)) { pass(any((how_.reports && one_in(3) ? 300 : 3) * tick_)); }
        }
        mark();
        put({0x02, 0x23});
        // All events of a PSB+ have the time of its TSC.
        for (auto i = first; i < truths_.size(); ++i) {
            truths_[i].event = truths_[i].anchor = time;
        }
    }
    /// Before a status packet, which may have a CYC: GEN-172.
    void status() {
        if (one_in(3)) { cyc_if_due(); }
        mark();
    }
    void status_pip() {
        status();
        if (how_.changes_cr3 && one_in(2)) { cr3_ = any(1000); }
        pip();
    }
    void pip() {
        put({0x02, 0x43});
        number(cr3_ << 8, 6);
    }
    void vmcs() {
        put({0x02, 0xC8});
        number(any(1000), 5);
    }
    void mnt() {
        mark();
        put({0x02, 0xC3, 0x88});
        number(any(~uint64_t{0}), 8);
    }

    // ------------------------------------------------------------------------------- events

    void step() {
        turn_drift();
        switch (any(24)) {
            case 0: pass_ticks(any(one_in(4) ? 40'000 : 2000)); break;
            case 1: break;
            case 2: pass(any(tick_)); break;
            default: pass_ticks(any(one_in(3) ? 300 : 40));
        }
        switch (any(96)) {
            case 0: return how_.sleeps ? sleep() : void();
            case 1: return how_.changes_frequency && one_in(2) ? change_frequency() : void();
            case 2: return how_.overflows && one_in(2) ? overflow() : void();
            case 3: return how_.jumps && one_in(2) ? jump() : void();
            case 4: return how_.pauses && one_in(2) ? pause() : void();
            case 5: return one_in(2) ? psb_plus() : void();
            case 6: return one_in(2) ? stand_alone_cyc() : void();
            case 7: return one_in(4) ? timing_group(one_in(2)) : void();
            case 8: return one_in(2) ? maintenance() : same_ratio();
            case 10:
            case 11: return ptwrite();
            case 12:
            case 13: return interrupt();
            case 14: return paging();
            case 15: return how_.compounds ? compound() : void();
            case 16: return how_.reports && one_in(3) ? psb_plus() : void();
            default: return any(100) < 14 ? jump_to() : branch();
        }
    }
    void branch() {
        if (branches_ == 0) {
            // The CYC of a TNT has the time of its first branch.
            cyc_if_due();
            first_branch_ = tsc();
            outcomes_ = 0;
        }
        outcomes_ = outcomes_ << 1 | static_cast<unsigned>(any(2));
        if (++branches_ == 6) { flush(); }
    }
    void jump_to() {
        eligible();
        mark();
        byte(0x6D);
        ip();
    }
    void ptwrite() {
        eligible();
        mark();
        put({0x02, 0x12});
        number(any(~uint64_t{0}), 4);
    }
    void paging() {
        eligible();
        mark();
        cr3_ = any(1000);
        pip();
    }
    void interrupt() {
        flush();
        auto const first = truths_.size();
        mark();
        byte(0x7D);
        ip();
        if (how_.compounds && one_in(2)) {
            if (one_in(2)) { pass_ticks(any(40)); }
            cyc_if_due();
            mark();
            cr3_ = any(1000);
            pip();
            if (one_in(2)) { pass_ticks(any(40)); }
            if (one_in(4)) { same_ratio(); }
        }
        cyc_if_due();
        byte(0x6D);
        ip();
        // The parts of a compound event happen at its end.
        for (auto i = first; i < truths_.size(); ++i) { truths_[i].event = tsc(); }
    }
    void compound() {
        switch (any(4)) {
            case 0:  // MODE.TSX, FUP
                eligible();
                mark();
                is_in_tx_ = !is_in_tx_;
                put({0x99, 0x20U + (is_in_tx_ ? 1U : 0U)});
                byte(0x7D);
                return ip();
            case 1:  // BBP, BIP, BEP
                flush();
                mark();
                put({0x02, 0x63, 0x01});
                mark();
                byte(0x04);
                number(any(~uint64_t{0}), 8);
                pass(any(40 * tick_));
                mark();
                return put({0x02, 0x33});
            case 2:
                eligible();
                mark();
                return vmcs();
            default:  // PTW, FUP
                eligible();
                mark();
                put({0x02, 0x92});
                number(any(~uint64_t{0}), 4);
                pass(any(40 * tick_));
                byte(0x7D);
                return ip();
        }
    }
    void maintenance() {
        flush();
        mnt();
    }
    void same_ratio() {
        flush();
        mark();
        cbr();
    }
    void stand_alone_cyc() {
        if (!how_.cyc || counted() == 0) { return; }
        flush();
        cyc();
        must_send_ = true;
    }
    void change_frequency() {
        if (one_in(3)) {
            ratio_ = some_ratio();
            turn_drift();
            return timing_group();
        }
        flush();
        ratio_ = one_in(2) ? some_ratio() : static_cast<uint8_t>(ratio_ + 1);
        if (one_in(8)) { ratio_ = 48; }
        mark();
        cbr();
    }
    void sleep() {
        eligible();
        mark();
        put({0x02, 0x62});  // EXSTOP
        flush();
        mark();
        put({0x02, 0x22, 0, 0});  // PWRE
        is_running_ = false;
        pass_ticks(any(one_in(3) ? 4'000'000 : 20'000));
        is_running_ = true;
        dropped_ = 0;
        if (how_.mtc && one_in(4)) { mtc(crystal()); }
        if (one_in(2)) { must_send_ = true; }
        if (one_in(3)) { ratio_ = some_ratio(); }
        timing_group();
        mark();
        put({0x02, 0xA2});  // PWRX
        number(0, 5);
    }
    void jump() {
        flush();
        uint64_t const by = any(one_in(2) ? 2000 : uint64_t{1} << 40);
        jumped_ += one_in(2) ? by : 0 - by;
        if (tsc() >> 55 != 0) { jumped_ = 0; }
        timing_group(one_in(2));
    }
    void pause() {
        flush();
        eligible();
        mark();
        put({0x01});  // TIP.PGD
        if (how_.cyc && counted() != 0 && one_in(2)) { cyc(); }
        is_enabled_ = false;
        pass_ticks(any(one_in(2) ? 300 : 100'000));
        if (how_.changes_frequency && one_in(2)) { ratio_ = some_ratio(); }
        if (how_.jumps && one_in(2)) { jumped_ += any(100'000); }
        counted_from_ = cycle();
        must_send_ = false;
        dropped_ = 0;
        is_enabled_ = true;
        if (one_in(2)) {
            psb_plus(false);
        } else {
            timing_group();
        }
        pass_ticks(any(40));
        eligible();
        put({0x99, 1});
        mark();
        put({0x71});
        ip();
    }
    void overflow() {
        flush();
        is_losing_ = true;
        for (uint64_t i = any(one_in(2) ? 3 : 30); i != 0; --i) {
            pass_ticks(any(one_in(6) ? 100'000 : 400));
            turn_drift();
            if (how_.changes_frequency && one_in(10)) { ratio_ = some_ratio(); }
            if (how_.sleeps && one_in(30)) {
                is_running_ = false;
                pass_ticks(any(1'000'000));
                is_running_ = true;
            }
        }
        is_losing_ = false;
        dropped_ = 0;
        if (how_.cyc && one_in(3)) { counted_from_ += counted() / 4096 * 4096; }  // it wrapped
        cyc_if_due();
        if (how_.restarts_count) { counted_from_ = cycle(); }
        mark();
        put({0x02, 0xF3});
        if (one_in(3)) { pass_ticks(any(500)); }
        if (one_in(3)) { timing_group(); }
        if (one_in(6)) {  // its FUP is missing: GEN-343
            psb_plus();
            if (one_in(2)) { pass_ticks(any(500)); }
            return jump_to();
        }
        mark();
        byte(0x7D);
        ip();
        if (one_in(3)) { psb_plus(); }
    }

    timed_mixture how_;
    std::mt19937_64 random_;
    uint64_t tick_;     ///< units of time in a tick of the TSC
    uint64_t crystal_;  ///< and in a tick of the crystal clock
    uint64_t now_ = 0;
    uint64_t jumped_ = 0;
    uint64_t anchor_ = 0;
    double phase_ = 0;  ///< of the core clock, in cycles
    double speed_ = 1;
    uint64_t counted_from_ = 0;  ///< the cycle of the last CYC
    bool must_send_ = false;     ///< the next packet has a CYC whatever the threshold is
    bool is_running_ = true;
    bool is_enabled_ = true;
    bool is_losing_ = false;
    uint8_t ratio_ = 0;
    unsigned dropped_ = 0;
    uint64_t cr3_ = 1;
    bool is_in_tx_ = false;
    bool is_begun_ = false;
    unsigned branches_ = 0;
    unsigned outcomes_ = 0;
    uint64_t first_branch_ = 0;
    std::vector<uint8_t> bytes_{};
    std::vector<truth> truths_{};
};

}  // namespace ptspec::test
