// SPDX-License-Identifier: BSL-1.0
#pragma once

// The packets of a recorded trace, and the configuration that they show.

#include <ptspec/engine/action/psb_overflow.hpp>
#include <ptspec/reg/list.hpp>
#include <ptspec/trace/psb_plus.hpp>
#include <ptspec/trace/reader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

namespace pt_twin {

using namespace ptspec;
using packet::kind;
namespace action = engine::action;

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
    bool ends_in_damage = false;
};

/// The pieces of a trace between damage. `base` is the offset of the first byte.
inline auto read(byte_view bytes, std::uint64_t base) -> std::vector<recording> {
    std::vector<recording> pieces;
    trace::reader reader{borrowed_bytes{bytes.data(), bytes.size()}};
    for (auto item = reader.next(); item; item = reader.next()) {
        using enum trace::item_type;
        if (item.what == damage && !pieces.empty()) { pieces.back().ends_in_damage = true; }
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
    for (auto& made : pieces) {
        made.begin += base;
        made.end += base;
        for (auto& one : made.all) {
            one.offset += base;
            one.end += base;
        }
    }
    return pieces;
}

/// The pieces of a trace that consists of samples of `sample` bytes, each of another time.
inline auto read_samples(byte_view bytes, std::size_t sample) -> std::vector<recording> {
    std::vector<recording> pieces;
    for (std::size_t at = 0; at < bytes.size(); at += sample) {
        byte_view const rest = bytes.from(at);
        auto more = read(rest.size() < sample ? rest : rest.first(sample), at);
        std::move(more.begin(), more.end(), std::back_inserter(pieces));
    }
    return pieces;
}

/// A PSB+, or the clock packets after TraceEn rises.
struct group {
    std::size_t last = 0;  // the index of PSBEND, or of the packet before an OVF
    trace::psb_plus status{};
    std::uint64_t cycles = 0;  // of a CYC before the first status packet
    action::psb_due due{};

    [[nodiscard]] auto tsc() const -> std::optional<std::uint64_t> {
        if (!status.has(kind::tsc)) { return std::nullopt; }
        return status.tsc.get<packet::tsc::TSC>();
    }
    [[nodiscard]] auto fup() const -> std::optional<std::uint64_t> {
        return status.has_ip ? std::optional{status.ip} : std::nullopt;
    }
    [[nodiscard]] auto tma() const { return value(kind::tma, status.tma); }
    [[nodiscard]] auto cbr() const { return value(kind::cbr, status.cbr); }
    [[nodiscard]] auto pip() const { return value(kind::pip, status.pip); }
    [[nodiscard]] auto vmcs() const { return value(kind::vmcs, status.vmcs); }
    [[nodiscard]] auto exec() const { return value(kind::mode_exec, status.mode_exec); }
    void add(seen const& one) { status.add(one.packet, {one.offset, one.ip, one.packet.length()}); }

private:
    template <class Packet>
    [[nodiscard]] auto value(kind which, Packet const& one) const -> std::optional<Packet> {
        return status.has(which) ? std::optional{one} : std::nullopt;
    }
};

inline auto group_at(std::vector<seen> const& all, std::size_t from) -> group {
    group made;
    std::uint64_t payload = 0;
    for (made.last = from; made.last + 1 < all.size();) {
        auto const& one = all[++made.last];
        made.add(one);
        switch (one.packet.kind()) {
            case kind::psbend: return made;
            case kind::ovf: --made.last; return made;
            case kind::tma:
                // An MTC before TSC is of the count that TMA has, or of the next.
                if (made.due.mtc == action::mtc_place::before_older_tsc &&
                    (one.as<packet::tma>().get<packet::tma::CTC>() >> 3 & 0xFF) == payload) {
                    made.due.mtc = action::mtc_place::before_tsc;
                }
                break;
            case kind::cyc: {
                auto const value = one.as<packet::cyc>().value();
                bool const is_first = made.last == from + 1;
                (is_first      ? made.cycles
                 : !made.tsc() ? made.due.cycles_until_tsc
                               : made.due.cycles_until_mtc) = value;
                break;
            }
            case kind::mtc:
                using place = action::mtc_place;
                made.due.mtc = made.cbr()   ? place::after_cbr
                               : made.tma() ? place::after_tma
                               : made.tsc() ? place::after_tsc
                                            : place::before_older_tsc;
                payload = one.as<packet::mtc>().get<packet::mtc::CTC>();
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

/// From all packets of a trace. Where pieces are joined, bytes may look like packets of any kind: a
/// kind of packet that is rarer than one in a thousand in a damaged trace tells nothing.
inline auto configuration_of(std::vector<recording> const& from) -> configuration {
    std::uint64_t counts[256] = {};
    std::uint64_t all = 0;
    std::uint64_t with_fup = 0;
    std::uint64_t left_range = 0;
    for (auto const& piece : from) {
        for (auto const& one : piece.all) {
            ++counts[underlying(one.packet.kind())];
            ++all;
            with_fup += one.is(kind::ptw) && one.as<packet::ptw>().get<packet::ptw::IP>();
            left_range += one.is(kind::tip_pgd) && one.has_ip;
        }
    }
    std::uint64_t const least = from.size() > 1 ? all / 1000 : 0;
    auto const has = [&](kind which) { return counts[underlying(which)] > least; };
    configuration made;
    made.os = has(kind::pip);
    made.tsc = has(kind::tsc);
    made.mtc = has(kind::mtc);
    made.cyc = has(kind::cyc);
    made.ptwrite = has(kind::ptw);
    made.fup_on_ptwrite = with_fup > least;
    made.has_vmcs = has(kind::vmcs);
    made.has_tsx = has(kind::mode_tsx);
    made.branches = has(kind::tnt_short) || has(kind::tnt_long) || has(kind::tip) ||
                    has(kind::tip_pge);
    made.filters = left_range > least;
    for (auto const& piece : from) {
        for (auto const& one : piece.all) {
            if ((one.is(kind::tip) || one.is(kind::tip_pge)) && one.has_ip) {
                made.first = std::min(made.first, one.ip);
                made.last = std::max(made.last, one.ip);
            }
        }
    }
    return made;
}

}  // namespace pt_twin
