// SPDX-License-Identifier: BSL-1.0
#pragma once

// Packets that one action generates, and the time that passes between them.

#include "recording.hpp"

#include <ptspec/engine/action/time.hpp>
#include <ptspec/trace/psb_plus.hpp>

#include <optional>
#include <vector>

namespace pt_twin {

namespace action = engine::action;

/// The moments of one action, in their order.
using moments = std::vector<action::moment>;

/// The time within an action: MTCs and CYCs before its packets.
class time_within {
public:
    /// Adds a packet of the action, or an MTC or a CYC before one.
    void add(seen const& one) {
        if (one.is(kind::cyc)) {
            cycles_ += one.as<packet::cyc>().value();
            has_cycles_ = true;
        } else if (one.is(kind::mtc)) {
            std::uint64_t const payload = one.as<packet::mtc>().get<packet::mtc::CTC>();
            waiting_.push_back({cycles_, payload, true, {}});
            cycles_ = 0;
            has_cycles_ = false;
        } else {
            if (has_cycles_) { waiting_.push_back({cycles_, 0, false, {}}); }
            for (auto& waits : waiting_) {
                waits.before = one.packet.kind();
                items_.push_back(waits);
            }
            waiting_.clear();
            cycles_ = 0;
            has_cycles_ = false;
        }
    }
    /// The packet that the last MTCs and CYCs precede is not stored.
    void end_before(kind expected) {
        if (has_cycles_) { waiting_.push_back({cycles_, 0, false, {}}); }
        for (auto& waits : waiting_) {
            waits.before = expected;
            items_.push_back(waits);
        }
        waiting_.clear();
        has_cycles_ = false;
    }
    [[nodiscard]] auto empty() const -> bool { return items_.empty(); }
    [[nodiscard]] auto has_mtc() const -> bool {
        return std::any_of(items_.begin(), items_.end(), [](item const& it) { return it.is_mtc; });
    }
    /// The first count of an MTC.
    [[nodiscard]] auto first_mtc() const -> std::uint64_t {
        auto const it = std::find_if(items_.begin(), items_.end(),
                                     [](item const& one) { return one.is_mtc; });
        return it->count;
    }
    /// True if the MTCs are of an action whose TMA has this count, in `known` bits: one may be of
    /// that count, the others are of the next ones.
    [[nodiscard]] auto fits(std::uint64_t count, unsigned known) const -> bool {
        std::uint64_t next = count + 1;
        bool is_first = true;
        for (auto const& one : items_) {
            if (!one.is_mtc) { continue; }
            bool const is_same = is_first && ((one.count ^ count) & low_bits(known)) == 0;
            is_first = false;
            if (is_same) { continue; }
            if (((one.count ^ next) & low_bits(known)) != 0) { return false; }
            ++next;
        }
        return true;
    }
    /// The moments of all items. `reported` is the count that TMA reports, if the action has one.
    [[nodiscard]] auto all(std::optional<std::uint64_t> reported) const -> moments {
        using action::due_mtc;
        moments made;
        for (auto const& one : items_) {
            bool const is_reported = one.is_mtc && reported && *reported == one.count;
            auto const mtc = is_reported  ? due_mtc::reported
                             : one.is_mtc ? due_mtc::next
                                          : due_mtc::none;
            made.push_back({.before = one.before, .cycles = one.cycles, .mtc = mtc});
        }
        return made;
    }

private:
    struct item {
        std::uint64_t cycles = 0;
        std::uint64_t count = 0;  // of the MTC
        bool is_mtc = false;
        kind before{};
    };
    std::vector<item> items_{};
    std::vector<item> waiting_{};  // for the next packet
    std::uint64_t cycles_ = 0;
    bool has_cycles_ = false;
};

/// A PSB+, or the timing packets after the clocks were off or TraceEn rose.
struct group {
    std::size_t next = 0;      // the index after it
    bool is_complete = false;  // it has its last packet
    trace::psb_plus status{};
    time_within takes{};

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
    [[nodiscard]] auto tsx() const { return value(kind::mode_tsx, status.mode_tsx); }
    void add(seen const& one) {
        takes.add(one);
        status.add(one.packet, {one.offset, one.ip, one.packet.length()});
    }

private:
    template <class Packet>
    [[nodiscard]] auto value(kind which, Packet const& one) const -> std::optional<Packet> {
        return status.has(which) ? std::optional{one} : std::nullopt;
    }
};

/// The PSB+ from a PSB on. It ends at PSBEND, before an OVF, or at the end.
inline auto psb_plus_at(std::span<seen const> all, std::size_t from) -> group {
    group made;
    for (made.next = from + 1; made.next < all.size(); ++made.next) {
        auto const& one = all[made.next];
        if (one.is(kind::ovf) || one.is(kind::psb)) { return made; }
        made.add(one);
        if (one.is(kind::psbend)) {
            ++made.next;
            made.is_complete = true;
            return made;
        }
    }
    made.takes.end_before(made.cbr() ? kind::psbend : made.tsc() ? kind::cbr : kind::tsc);
    return made;
}

/// TSC, TMA and CBR from a packet on, with the MTCs and CYCs before and between them.
inline auto timing_at(std::span<seen const> all, std::size_t from) -> group {
    group made;
    group longer;
    made.next = longer.next = from;
    for (std::size_t i = from; i < all.size(); ++i) {
        auto const& one = all[i];
        bool const is_time = one.is(kind::mtc) || one.is(kind::cyc);
        bool const is_next = (one.is(kind::tsc) && !longer.tsc()) ||
                             (one.is(kind::tma) && longer.tsc() && !longer.tma()) ||
                             one.is(kind::cbr);
        if (!is_time && !is_next) { break; }
        longer.add(one);
        longer.next = i + 1;
        if (is_next) { made = longer; }
        if (one.is(kind::cbr)) {
            made.is_complete = true;
            break;
        }
    }
    return made;
}

/// The index after MTCs and CYCs.
inline auto after_times(std::span<seen const> all, std::size_t i) -> std::size_t {
    while (i < all.size() && (all[i].is(kind::mtc) || all[i].is(kind::cyc))) { ++i; }
    return i;
}

}  // namespace pt_twin
