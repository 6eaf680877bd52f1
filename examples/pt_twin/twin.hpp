// SPDX-License-Identifier: BSL-1.0
#pragma once

// From the packets of a recorded trace to what the processor did, and from that to packets again.

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/kind.hpp>
#include <ptspec/engine/packets/generator.hpp>
#include <ptspec/trace/reader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pt_twin {

using namespace ptspec;
using packet::kind;
namespace event = engine::event;
using ctl = reg::ia32_rtit_ctl;

/// A packet of the recorded trace that is not a PAD.
struct seen {
    packet::any_packet packet{};
    std::uint64_t offset = 0;
    std::uint64_t end = 0;
    std::uint64_t ip = 0;  // the last IP after it
    bool has_ip = false;   // it carries one

    [[nodiscard]] auto is(kind which) const -> bool { return packet.kind() == which; }
    template <class Packet>
    [[nodiscard]] auto as() const -> Packet {
        Packet found{};
        packet::visit(
            [&](auto const& one) {
                if constexpr (same_as<bare_t<decltype(one)>, Packet>) { found = one; }
            },
            packet);
        return found;
    }
};

/// Packets from a PSB on, up to damage or the end.
struct recording {
    std::vector<seen> all{};
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool ends_in_pads = false;
};

/// The pieces of a trace between damage.
inline auto read(byte_view bytes) -> std::vector<recording> {
    std::vector<recording> pieces;
    trace::reader reader{borrowed_bytes{bytes.data(), bytes.size()}};
    for (auto item = reader.next(); item; item = reader.next()) {
        using enum trace::item_type;
        if (item.what == synced || item.what == resynced) {
            pieces.push_back({.begin = item.offset, .end = item.offset});
        } else if (item.what == packet) {
            if (pieces.empty()) { pieces.push_back({.begin = item.offset, .end = item.offset}); }
            auto& made = pieces.back();
            made.end = item.offset + item.length;
            made.ends_in_pads = item.packet.kind() == kind::pad;
            if (made.ends_in_pads) { continue; }
            seen one{item.packet, item.offset, made.end, item.ip, false};
            packet::visit(
                [&](auto const& which) {
                    if constexpr (requires { which.has_ip(); }) { one.has_ip = which.has_ip(); }
                },
                item.packet);
            made.all.push_back(one);
        }
    }
    // A long run of zeros at the end is memory that was not written.
    for (auto& made : pieces) {
        if (!made.all.empty() && made.end - made.all.back().end > 16) {
            made.end = made.all.back().end;
            made.ends_in_pads = false;
        }
    }
    std::erase_if(pieces, [](recording const& one) { return one.all.empty(); });
    return pieces;
}

/// The status packets of a PSB+.
struct group {
    std::size_t last = 0;  // the index of PSBEND, or of the packet before an OVF
    std::optional<std::uint64_t> tsc{}, fup{};
    std::optional<packet::tma> tma{};
    std::optional<packet::cbr> cbr{};
    std::optional<packet::pip> pip{};
    std::optional<packet::vmcs> vmcs{};
    std::optional<packet::mode_exec> exec{};
    bool has_tsx = false;
    std::uint64_t cycles = 0;  // of a CYC before the first status packet
    event::psb_due due{};
};

inline auto group_at(std::vector<seen> const& all, std::size_t from) -> group {
    group made;
    for (made.last = from; made.last + 1 < all.size();) {
        auto const& one = all[++made.last];
        switch (one.packet.kind()) {
            case kind::psbend: return made;
            case kind::ovf: --made.last; return made;
            case kind::tsc: made.tsc = one.as<packet::tsc>().get<packet::tsc::TSC>(); break;
            case kind::tma: made.tma = one.as<packet::tma>(); break;
            case kind::cbr: made.cbr = one.as<packet::cbr>(); break;
            case kind::pip: made.pip = one.as<packet::pip>(); break;
            case kind::vmcs: made.vmcs = one.as<packet::vmcs>(); break;
            case kind::mode_exec: made.exec = one.as<packet::mode_exec>(); break;
            case kind::mode_tsx: made.has_tsx = true; break;
            case kind::fup: made.fup = one.ip; break;
            case kind::cyc: {
                auto const value = one.as<packet::cyc>().value();
                bool const is_first = made.last == from + 1;
                (is_first    ? made.cycles
                 : !made.tsc ? made.due.cycles_until_tsc
                             : made.due.cycles_until_mtc) = value;
                break;
            }
            case kind::mtc:
                using place = event::psb_due::mtc_place;
                made.due.mtc = made.cbr   ? place::after_cbr
                               : made.tma ? place::after_tma
                               : made.tsc ? place::after_tsc
                                          : place::before_tsc;
                break;
            default: break;
        }
    }
    return made;
}

/// How the trace was configured, as far as the packets show it.
struct configuration {
    bool os = false;
    bool tsc = false;
    bool mtc = false;
    bool cyc = false;
    bool ptwrite = false;
    bool fup_on_ptwrite = false;
    bool branches = false;
    bool has_tsx = false;
    bool filters = false;  // a TIP.PGD with an IP
    bool has_vmcs = false;
    std::uint64_t first = ~std::uint64_t{0};
    std::uint64_t last = 0;  // of the filter range
};

inline auto configuration_of(recording const& from) -> configuration {
    configuration made;
    bool in_psb = false;
    for (auto const& one : from.all) {
        auto const which = one.packet.kind();
        in_psb = which == kind::psb || (in_psb && which != kind::psbend && which != kind::ovf);
        made.os |= which == kind::pip;
        made.tsc |= which == kind::tsc;
        made.mtc |= which == kind::mtc;
        made.cyc |= which == kind::cyc;
        made.ptwrite |= which == kind::ptw;
        made.has_vmcs |= which == kind::vmcs;
        made.has_tsx |= which == kind::mode_tsx;
        made.branches |= which == kind::tnt_short || which == kind::tnt_long ||
                         which == kind::tip || which == kind::tip_pge;
        if (which == kind::ptw) {
            made.fup_on_ptwrite |= one.as<packet::ptw>().get<packet::ptw::IP>();
        }
        made.filters |= which == kind::tip_pgd && one.has_ip;
        bool const is_inside = which == kind::tip || which == kind::tip_pge;
        if (is_inside && one.has_ip) {
            made.first = std::min(made.first, one.ip);
            made.last = std::max(made.last, one.ip);
        }
    }
    return made;
}

/// The bytes of the twin.
struct byte_list {
    std::vector<std::uint8_t> bytes{};

    auto append(byte_view more) -> bool {
        bytes.insert(bytes.end(), more.begin(), more.end());
        return true;
    }
};

/// Runs a generator through what the processor did.
class twin {
public:
    twin(recording const& from, engine::kind of)
        : all_{from.all},
          ends_in_pads_{from.ends_in_pads},
          with_{configuration_of(from)},
          kind_{of},
          unit_{capabilities(), state(), code(false), 0, options()} {
        unit_.conceal({false, true, true});
        auto const first = group_at(all_, 0);
        bool const is_on = !with_.branches ||
                           (first.fup.has_value() && !is_at(first.last + 1, kind::tip_pge));
        // A CYC in the first PSB+ counts from an instant before the trace.
        if (!is_on && first.cycles == 0) { return; }
        set_context(first);
        auto now = state();
        now.ctl = control();
        now.status = {is_on ? 7U : 5U};
        unit_ = engine::generator{capabilities(), now, code(is_on), first.fup.value_or(0),
                                  options()};
        unit_.conceal({false, true, true});
        now_ = is_on ? tracing::on : tracing::out;
    }

    void run() {
        for (std::size_t i = 0; i < all_.size();) { i = step(i); }
        if (ends_in_pads_ && now_ == tracing::out) { disable(0); }
        on(event::acm_begin{});  // the last branches
    }
    [[nodiscard]] auto bytes() const -> std::vector<std::uint8_t> const& { return out_.bytes; }

private:
    enum class tracing { off, out, on };

    static auto capabilities() -> cpu::capabilities {
        auto caps = cpu::preset::P_FUT;
        caps.leaf_14_1_ebx = {0xFFFF'FFFF};
        caps.leaf_14_1_eax = {caps.leaf_14_1_eax.raw | 0xFFFF'0000};
        return caps;
    }
    [[nodiscard]] auto options() const -> engine::model_options {
        auto how = engine::options_of(kind_);
        how.has_tsx = with_.has_tsx;
        how.psb_keeps_remainder = false;
        how.psb_step = 1;
        how.psb_after_overflow = engine::psb_after_ovf::never;
        return how;
    }
    [[nodiscard]] auto state() const -> access::msr_state {
        access::msr_state now;
        now.addr[0] = {{with_.first}, {with_.last}};
        now.in_vmx_operation = with_.has_vmcs;
        return now;
    }
    [[nodiscard]] auto control() const -> ctl {
        return ctl{}.with(
            ctl::TraceEn{true}, ctl::OS{with_.os}, ctl::User{true}, ctl::ToPA{true},
            ctl::TSCEn{with_.tsc}, ctl::MTCEn{with_.mtc}, ctl::MTCFreq{3}, ctl::CYCEn{with_.cyc},
            ctl::PSBFreq{15}, ctl::PTWEn{with_.ptwrite}, ctl::FUPonPTW{with_.fup_on_ptwrite},
            ctl::BranchEn{with_.branches},
            ctl::ADDR0_CFG{with_.filters ? reg::addr_cfg::filter : reg::addr_cfg::off});
    }
    /// The context of the traced code, or of code that is not traced.
    [[nodiscard]] auto code(bool traced) const -> engine::execution_context {
        engine::execution_context made;
        made.cr3 = cr3_;
        made.width = width_;
        made.vmx_non_root = non_root_;
        made.cpl = traced && !with_.os ? 3 : 0;
        return made;
    }

    template <class Event>
    void on(Event const& e) {
        unit_.on(e, out_);
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
        auto now = unit_.state().clocks;
        if (tma) {
            std::uint64_t const ctc = tma->get<packet::tma::CTC>();
            now.art += (ctc - now.art) & 0xFFFF;
        }
        if (tsc) {
            now.tsc = *tsc;
            now.tsc_at_edge = now.tsc - (tma ? tma->get<packet::tma::FC>() : 0);
        }
        if (cbr) {
            now.core_to_bus = static_cast<std::uint8_t>(cbr->get<packet::cbr::CoreBusRatio>());
        }
        unit_.set_clocks(now);
    }
    /// The counter of the crystal clock at an MTC after `art`.
    static auto next_mtc(seen const& one, std::uint64_t art) -> std::uint64_t {
        std::uint64_t const payload = one.as<packet::mtc>().get<packet::mtc::CTC>();
        std::uint64_t const periods = (payload - (art >> 3)) & 0xFF;
        return ((art >> 3) + (periods == 0 ? 256 : periods)) << 3;
    }
    void mtc(seen const& one) {
        auto now = unit_.state().clocks;
        std::uint64_t const art = next_mtc(one, now.art);
        if (art >> 3 != (now.art >> 3) + 1) {  // MTCs were lost, or the clocks stood still
            now.art = art - 1;
            unit_.set_clocks(now);
        }
        on(event::time{0, art, now.tsc});
    }

    // -------------------------------------------------------------------------------- contexts

    void set_context(group const& from) {
        if (from.vmcs) { on(event::vmptrld{unit_.state().ip, vmcs_address(*from.vmcs)}); }
        if (from.pip) { set_pip(*from.pip); }
        if (from.exec) { set_mode(*from.exec); }
    }
    static auto vmcs_address(packet::vmcs const& from) -> std::uint64_t {
        return from.get<packet::vmcs::base>();
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
            if (kind_ == engine::kind::broadwell) { return !in.fup.has_value(); }
            return in.fup.has_value() &&
                   is_at(next_of(in.last, {kind::mtc, kind::cyc}), kind::tip_pge);
        }
        if (!is_at(i, kind::tsc) && !is_at(i, kind::cbr)) { return false; }
        i = next_of(i - 1, {kind::tsc, kind::tma, kind::cbr, kind::mtc, kind::cyc});
        return is_at(i, kind::mode_exec) && is_at(next_of(i, {kind::cyc}), kind::tip_pge);
    }
    void disable(std::uint64_t at) {
        if (!with_.os && now_ == tracing::on) {  // WRMSR needs CPL 0
            on(event::interrupt{.next = at, .to = outside(), .after = code(false)});
        }
        (void)unit_.wrmsr(ctl::address, control().with(ctl::TraceEn{false}).raw, at, at + 2, out_);
        now_ = tracing::off;
    }

    // -------------------------------------------------------------------------------- packets

    auto step(std::size_t i) -> std::size_t {
        auto const& one = all_[i];
        switch (one.packet.kind()) {
            case kind::psb: return psb(i);
            case kind::tnt_short: branches(one.as<packet::tnt_short>().taken()); return i + 1;
            case kind::tnt_long: branches(one.as<packet::tnt_long>().taken()); return i + 1;
            case kind::tip:
                if (mode_follows_) {
                    on(event::far_transfer{unit_.state().ip, one.ip, code(true)});
                } else {
                    on(event::indirect_jump{one.ip});
                }
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
                on(event::mov_cr3{unit_.state().ip, unit_.state().ip, cr3_});
                return i + 1;
            case kind::mtc: mtc(one); return i + 1;
            case kind::cyc:
                if (one.offset % 8 + (one.end - one.offset) > 8) { on(event::unaligned_cyc{}); }
                on(event::cycles{one.as<packet::cyc>().value()});
                return i + 1;
            case kind::tsc: return clocks(i);
            case kind::cbr: return clocks(i);
            case kind::ovf: return overflow(i);
            case kind::ptw: return value(i);
            default: return i + 1;
        }
    }

    void branches(packet::branches taken) {
        for (unsigned i = taken.count; i != 0; --i) {
            on(event::conditional{unit_.state().ip, (taken.bits >> (i - 1) & 1) != 0});
        }
    }

    auto psb(std::size_t i) -> std::size_t {
        auto const in = group_at(all_, i);
        // More PADs than a PSB needs: TraceEn fell before it.
        bool const is_after_end = i != 0 && all_[i].offset - all_[i - 1].end >= 8;
        if (now_ == tracing::out && is_after_end) { disable(0); }
        set_clocks(in.tsc, in.tma, in.cbr);
        std::size_t const next = in.last + 1;
        if (now_ == tracing::off) {
            set_context(in);
            (void)unit_.wrmsr(reg::ia32_rtit_status::address, 0, 0, 0, out_);
            begin(in.fup, next);
            if (!in.fup || !is_at(next, kind::tip_pge)) { return next; }
            return next + 1;
        }
        bool const is_of_pge = kind_ == engine::kind::broadwell && now_ == tracing::out &&
                               in.fup.has_value() && is_at(next, kind::tip_pge);
        if (is_of_pge) {
            set_context(in);
            return next;
        }
        if (in.fup) { on(event::sequential{*in.fup}); }
        if (in.cycles != 0) { on(event::cycles{in.cycles}); }
        on(in.due);
        return next;
    }

    /// Enables tracing by WRMSR, or by a VM entry if the FUP has the IP of TIP.PGE.
    void begin(std::optional<std::uint64_t> fup, std::size_t next) {
        bool const is_on = is_at(next, kind::tip_pge) && fup.has_value();
        bool const by_entry = is_on && all_[next].ip == *fup;
        std::uint64_t const to = is_on ? all_[next].ip : 0;
        auto before = unit_.state().code;
        if (by_entry || (is_on && !with_.os)) {
            on(event::vm_entry{
                .at = to, .to = to, .after = code(true), .loads = {true, control()}});
        } else {
            before = code(false);
            on(event::far_transfer{unit_.state().ip, is_on ? *fup : 0, before});
            (void)unit_.wrmsr(ctl::address, control().raw, is_on ? *fup : 0, is_on ? to : outside(),
                              out_);
        }
        now_ = is_on ? tracing::on : tracing::out;
    }
    /// Enables tracing without a PSB+: PacketByteCnt is not 0.
    void continue_at(std::size_t pge) {
        using status = reg::ia32_rtit_status;
        (void)unit_.wrmsr(status::address, status{}.with(status::PacketByteCnt{5}).raw, 0, 0, out_);
        std::uint64_t const to = all_[pge].ip;
        on(event::far_transfer{0, to - 2, code(true)});
        on(event::vm_entry{.at = to, .to = to, .after = code(true), .loads = {true, control()}});
        now_ = tracing::on;
    }
    /// An address that is in no filter range.
    [[nodiscard]] auto outside() const -> std::uint64_t {
        return with_.filters ? with_.first - 1 : 0;
    }

    void enter(std::size_t i) {
        auto const& one = all_[i];
        on(event::far_transfer{unit_.state().ip, one.ip, code(true)});
        now_ = tracing::on;
        mode_follows_ = false;
    }
    void leave(seen const& one) {
        // With an IP the filter range is left, without one the context.
        if (one.has_ip) {
            on(event::indirect_jump{one.ip});
        } else {
            on(event::far_transfer{unit_.state().ip, outside(), code(false)});
        }
        now_ = tracing::out;
    }
    auto fup(std::size_t i) -> std::size_t {
        std::uint64_t const from = all_[i].ip;
        std::size_t k = i + 1;
        event::cycles_within takes;
        auto clock = unit_.state().clocks;
        for (; is_at(k, kind::mtc) || is_at(k, kind::cyc); ++k) {
            if (is_at(k, kind::cyc)) {
                takes.until_target = all_[k].as<packet::cyc>().value();
                continue;
            }
            takes.until_pip += takes.until_target;  // before the MTC
            takes.until_target = 0;
            clock.art = next_mtc(all_[k], clock.art);
            takes.art = clock.art;
            takes.tsc = clock.tsc;
        }
        if (is_at(k, kind::tip)) {
            on(event::interrupt{
                .next = from, .to = all_[k].ip, .after = code(true), .takes = takes});
            return k + 1;
        }
        if (!is_at(k, kind::tip_pgd)) { return i + 1; }
        if (all_[k].has_ip) {
            on(event::interrupt{
                .next = from, .to = all_[k].ip, .after = code(true), .takes = takes});
            now_ = tracing::out;
        } else if (falls(k)) {
            disable(from);
        } else {
            on(event::interrupt{
                .next = from, .to = outside(), .after = code(false), .takes = takes});
            now_ = tracing::out;
        }
        return k + 1;
    }
    auto overflow(std::size_t i) -> std::size_t {
        on(event::overflow{});
        std::size_t next = i + 1;
        bool const has_psb = is_at(next, kind::psb);
        if (has_psb) {
            auto const in = group_at(all_, next);
            set_clocks(in.tsc, in.tma, in.cbr);
            next = in.last + 1;
        }
        bool const is_on = is_at(next, kind::fup);
        if (!is_on) {  // the context or the filter range was left meanwhile
            on(event::far_transfer{unit_.state().ip, outside(), code(with_.filters)});
        }
        now_ = is_on ? tracing::on : tracing::out;
        if (has_psb) { on(event::psb_due{}); }
        on(event::overflow_end{is_on ? all_[next].ip : outside()});
        return is_on ? next + 1 : next;
    }
    auto transaction(std::size_t i) -> std::size_t {
        auto const mode = all_[i].as<packet::mode_tsx>();
        if (!is_at(i + 1, kind::fup)) { return i + 1; }
        std::uint64_t const at = all_[i + 1].ip;
        if (mode.get<packet::mode_tsx::TXAbort>() && is_at(i + 2, kind::tip)) {
            on(event::transaction_abort{at, all_[i + 2].ip});
            return i + 3;
        }
        if (mode.get<packet::mode_tsx::InTX>()) {
            on(event::transaction_begin{at, at + 3});
        } else {
            on(event::transaction_end{at, at + 3});
        }
        return i + 2;
    }
    auto value(std::size_t i) -> std::size_t {
        auto const one = all_[i].as<packet::ptw>();
        bool const has_ip = one.get<packet::ptw::IP>() && is_at(i + 1, kind::fup);
        std::uint64_t const at = has_ip ? all_[i + 1].ip : unit_.state().ip;
        on(event::ptwrite{at, at + 4, one.payload(), all_[i].end - all_[i].offset > 6});
        return has_ip ? i + 2 : i + 1;
    }
    /// TSC, TMA, CBR outside of a PSB+: the clocks were off, or tracing is enabled again.
    auto clocks(std::size_t i) -> std::size_t {
        group in;
        std::size_t k = i;
        for (; k < all_.size(); ++k) {
            auto const& one = all_[k];
            if (one.is(kind::tsc)) {
                in.tsc = one.as<packet::tsc>().get<packet::tsc::TSC>();
            } else if (one.is(kind::tma)) {
                in.tma = one.as<packet::tma>();
            } else {
                break;
            }
        }
        bool const has_cbr = is_at(k, kind::cbr);
        if (has_cbr) { in.cbr = all_[k++].as<packet::cbr>(); }
        set_clocks(in.tsc, in.tma, in.cbr);
        if (now_ == tracing::off) {
            if (is_at(k, kind::mode_exec) && is_at(k + 1, kind::tip_pge)) {
                set_mode(all_[k].as<packet::mode_exec>());
                continue_at(k + 1);
                return k + 2;
            }
            return k;
        }
        if (!in.tsc && has_cbr) {
            on(event::ratio{unit_.state().clocks.core_to_bus});
        } else {
            // More PADs than a TSC needs.
            bool const is_aligned = i != 0 && all_[i].offset - all_[i - 1].end >= 8;
            on(event::clock_stop{unit_.state().ip, static_cast<std::uint8_t>(is_aligned ? 16 : 0)});
            on(event::clock_resume{});
        }
        return k;
    }

    std::vector<seen> const& all_;
    bool ends_in_pads_;
    configuration with_;
    engine::kind kind_;
    std::uint64_t cr3_ = 0;
    bool non_root_ = false;
    bool mode_follows_ = false;
    engine::code_width width_ = engine::code_width::bits_64;
    engine::generator unit_;
    byte_list out_{};
    tracing now_ = tracing::off;
};

}  // namespace pt_twin
