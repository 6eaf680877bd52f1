// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/finding.hpp>
#include <ptspec/suite/snippet.hpp>
#include <ptspec/trace/check/checker.hpp>
#include <ptspec/trace/psb_plus.hpp>
#include <ptspec/trace/reader.hpp>

/// The packets of a trace in the form in which checks compare them.
namespace ptspec::suite {

/// A packet, without the choices of the processor: each branch of a TNT is one, and PADs, timing
/// packets and PSB+ are left out.
struct seen_packet {
    packet::kind kind = packet::kind::none;
    bool has_ip = true;
    uint64_t value = 0;  ///< the IP; 1 of a taken branch; else the fields that are compared

    /// True for a MODE.Exec of 64-bit code, with IF or without.
    [[nodiscard]] constexpr auto is_64_bit_mode() const noexcept -> bool {
        return kind == packet::kind::mode_exec && (value & 3) == 1;
    }
    friend constexpr auto operator==(seen_packet const&, seen_packet const&) -> bool = default;
};

/// The timing packets of a trace, in their order.
struct seen_times {
    static constexpr unsigned max_count = 8;

    uint64_t tsc[max_count] = {};
    unsigned tsc_count = 0;
    unsigned tma_count = 0;
    unsigned mtc_count = 0;
    unsigned cbr_count = 0;
    unsigned cyc_count = 0;
    uint64_t cycles = 0;
};

/// What a trace has.
struct seen_trace {
    static constexpr unsigned max_count = 224;

    seen_packet packets[max_count] = {};
    unsigned count = 0;
    seen_times times{};
    trace::psb_plus first_psb{};  ///< the PSB+ that the trace begins with
    bool begins_with_psb = false;
    bool begins_with_psb_plus = false;  ///< it has a PSBEND, too
    unsigned psb_count = 0;
    rule broken = rule::none;  ///< by the packets alone
    uint64_t broken_at = 0;
    bool is_cut = false;       ///< ends within a packet
    bool is_too_long = false;  ///< more than `max_count` packets
    unsigned long_tnts = 0;

    /// True if the packets break no rule.
    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

namespace detail {

using namespace ptspec::detail;

constexpr auto value_of(packet::any_packet const& it, uint64_t ip) noexcept -> seen_packet {
    using packet::kind;
    switch (it.kind()) {
        case kind::tip: return {it.kind(), it.as<packet::tip>().has_ip(), ip};
        case kind::tip_pge: return {it.kind(), it.as<packet::tip_pge>().has_ip(), ip};
        case kind::tip_pgd: {
            bool const has_ip = it.as<packet::tip_pgd>().has_ip();
            return {it.kind(), has_ip, has_ip ? ip : 0};
        }
        case kind::fup: return {it.kind(), it.as<packet::fup>().has_ip(), ip};
        case kind::pip: return {it.kind(), true, it.as<packet::pip>().get<packet::pip::CR3>()};
        case kind::mode_exec: return {it.kind(), true, it.raw().low >> 8 & 7};
        case kind::mode_tsx: return {it.kind(), true, it.raw().low >> 8 & 3};
        case kind::ptw: {
            auto const one = it.as<packet::ptw>();
            return {it.kind(), one.get<packet::ptw::IP>(),
                    it.raw().low >> 16 | it.raw().high << 48};
        }
        case kind::cfe: {
            auto const one = it.as<packet::cfe>();
            return {it.kind(), one.get<packet::cfe::IP>(),
                    underlying(one.get<packet::cfe::type>())};
        }
        default: return {it.kind(), true, 0};
    }
}

}  // namespace detail

/// Reads a trace that begins with a PSB, or where TraceEn became 1.
///
/// Source: PKT-001..015, PKT-030..040, PKT-050..068; the rules of `trace::checker`.
[[nodiscard]] constexpr auto read_trace(byte_view bytes,
                                        trace::check_options const& rules = {}) noexcept
    -> seen_trace {
    using packet::kind;
    seen_trace all;
    trace::check(bytes, rules,
                 [&](trace::violation const& one) {
                     if (one.broken == rule::PKT_255) {
                         all.is_cut = true;
                     } else if (all.broken == rule::none) {
                         all.broken = one.broken;
                         all.broken_at = one.offset;
                     }
                 },
                 {.sync = false});
    auto const add = [&](seen_packet one) {
        if (all.count == seen_trace::max_count) {
            all.is_too_long = true;
            return;
        }
        all.packets[all.count++] = one;
    };
    trace::reader reader{bytes, {.sync = false}};
    bool in_psb_plus = false;
    // PADs may precede the first packet: where output begins between words, they align a PSB, and
    // any processor may insert them. Source: GEN-008, GEN-010.
    bool is_first = true;
    for (auto one = reader.next(); one; one = reader.next()) {
        if (one.what != trace::item_type::packet) { continue; }
        auto const& it = one.packet;
        auto& times = all.times;
        if (in_psb_plus) {
            if (all.psb_count == 1 && all.begins_with_psb) { all.first_psb.add(it, one.place()); }
            if (it.kind() == kind::psbend) {
                all.begins_with_psb_plus |= all.psb_count == 1 && all.begins_with_psb;
                in_psb_plus = false;
            }
            if (it.kind() == kind::ovf) { in_psb_plus = false; }
        }
        switch (it.kind()) {
            case kind::pad:
            case kind::psbend:
            case kind::mnt: break;
            case kind::psb:
                in_psb_plus = true;
                all.begins_with_psb |= is_first;
                if (all.psb_count++ == 0) { all.first_psb.begin(one.offset); }
                break;
            case kind::tsc:
                if (times.tsc_count < seen_times::max_count) {
                    times.tsc[times.tsc_count] = it.as<packet::tsc>().get<packet::tsc::TSC>();
                }
                ++times.tsc_count;
                break;
            case kind::tma: ++times.tma_count; break;
            case kind::mtc: ++times.mtc_count; break;
            case kind::cbr: ++times.cbr_count; break;
            case kind::cyc:
                ++times.cyc_count;
                times.cycles += it.as<packet::cyc>().value();
                break;
            case kind::tnt_short:
            case kind::tnt_long: {
                bool const is_long = it.kind() == kind::tnt_long;
                all.long_tnts += is_long;
                auto const taken = is_long ? it.as<packet::tnt_long>().taken()
                                           : it.as<packet::tnt_short>().taken();
                for (unsigned i = taken.count; i-- > 0;) {
                    add({kind::tnt_short, true, taken.bits >> i & 1});
                }
                break;
            }
            default:
                if (!in_psb_plus) { add(detail::value_of(it, one.ip)); }
                break;
        }
        is_first &= it.kind() == kind::pad;
    }
    return all;
}

/// A packet that a check expects. IPs are offsets in the snippet.
struct wanted {
    enum class form : uint8_t {
        exact,
        at_offset,   ///< the value is an offset in the snippet
        compressed,  ///< a taken branch of a TNT, for a compressed RET: a processor may send a TIP
        cr3,         ///< the value is CR3
    };
    packet::kind kind = packet::kind::none;
    form how = form::exact;
    bool has_ip = true;
    uint64_t value = 0;
};

/// The packets as the catalogue writes them.
namespace expected {

using packet::kind;
using form = wanted::form;

inline constexpr wanted taken{kind::tnt_short, form::exact, true, 1};
inline constexpr wanted not_taken{kind::tnt_short, form::exact, true, 0};
[[nodiscard]] constexpr auto tip_to(uint64_t to) noexcept -> wanted {
    return {kind::tip, form::at_offset, true, to};
}
[[nodiscard]] constexpr auto pge_to(uint64_t to) noexcept -> wanted {
    return {kind::tip_pge, form::at_offset, true, to};
}
[[nodiscard]] constexpr auto pgd(uint64_t to) noexcept -> wanted {
    return {kind::tip_pgd, form::at_offset, true, to};
}
[[nodiscard]] constexpr auto pgd() noexcept -> wanted {
    return {kind::tip_pgd, form::exact, false, 0};
}
[[nodiscard]] constexpr auto fup_at(uint64_t at) noexcept -> wanted {
    return {kind::fup, form::at_offset, true, at};
}
[[nodiscard]] constexpr auto ret(uint64_t to) noexcept -> wanted {
    return {kind::tnt_short, form::compressed, true, to};
}
[[nodiscard]] constexpr auto pip_of_cr3() noexcept -> wanted {
    return {kind::pip, form::cr3, true, 0};
}
[[nodiscard]] constexpr auto ptw_of(uint64_t value, bool has_ip) noexcept -> wanted {
    return {kind::ptw, form::exact, has_ip, value};
}
/// MODE.TSX: InTX is bit 0, TXAbort bit 1.
[[nodiscard]] constexpr auto tsx(unsigned bits) noexcept -> wanted {
    return {kind::mode_tsx, form::exact, true, bits};
}
[[nodiscard]] constexpr auto cfe_of(packet::cfe_type type, bool has_ip) noexcept -> wanted {
    return {kind::cfe, form::exact, has_ip, underlying(type)};
}
inline constexpr wanted trace_stop{kind::tracestop, form::exact, true, 0};

}  // namespace expected

/// Where a trace differs from what is expected.
struct trace_difference {
    bool is_equal = true;
    unsigned at = 0;  ///< the number of the packet
    seen_packet expected{};
    seen_packet seen{};  ///< `kind::none`: it ends before
};

/// Compares all packets of a trace with what is expected. `base` is the address of the snippet, and
/// `cr3` the value of CR3. A MODE.Exec of 64-bit code may precede TIP.PGE, and a RET that is
/// expected to be compressed may not be: `uncompressed` counts these.
///
/// Source: GEN-130, GEN-236.
[[nodiscard]] constexpr auto compare(seen_trace const& trace, uint64_t base, uint64_t cr3,
                                     wanted const* all, size_t count,
                                     unsigned& uncompressed) noexcept -> trace_difference {
    using packet::kind;
    unsigned at = 0;
    for (size_t i = 0; i < count; ++i) {
        wanted const& one = all[i];
        seen_packet want{one.kind, one.has_ip, one.value};
        if (one.how == wanted::form::at_offset) { want.value += base; }
        if (one.how == wanted::form::cr3) { want.value = cr3 & packet::pip::CR3::address_mask; }
        if (one.how == wanted::form::compressed) { want.value = 1; }
        if (want.kind == kind::tip_pge && at < trace.count && trace.packets[at].is_64_bit_mode()) {
            ++at;
        }
        seen_packet const seen = at < trace.count ? trace.packets[at] : seen_packet{};
        bool const is_tip = one.how == wanted::form::compressed &&
                            seen == seen_packet{kind::tip, true, base + one.value};
        uncompressed += is_tip;
        if (seen != want && !is_tip) { return {false, at, want, seen}; }
        ++at;
    }
    if (at != trace.count) { return {false, at, {}, trace.packets[at]}; }
    return {};
}

}  // namespace ptspec::suite
