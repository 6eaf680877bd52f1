// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a recorded trace was configured, as far as its packets show it.

#include "group.hpp"

#include <ptspec/engine/model_kind.hpp>

#include <string_view>
#include <utility>

namespace pt_twin {

/// An address range of a filter.
struct ip_range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
};

/// The options of a kind of processor.
inline auto options_of(std::string_view kind_name) -> engine::model_options {
    for (auto const& one : engine::model_kinds) {
        if (std::string_view{one.name.data(), one.name.size()} == kind_name) { return one.options; }
    }
    return {};
}

/// OS and User.
struct privilege {
    bool os = false;
    bool user = true;
};

struct configuration {
    bool os = false;   // PIPs; a rise of TraceEn may change it
    bool user = true;  // false: code at CPL > 0 is not traced
    bool tsc = false;
    bool mtc = false;
    bool cyc = false;
    bool ptwrite = false;
    bool fup_on_ptwrite = false;
    bool branches = false;
    unsigned mtc_freq = 3;
    bool has_tsx = false;  // a PSB+ has MODE.TSX
    bool has_transactions = false;
    bool has_vmcs = false;
    bool cr3_filter = false;
    std::uint64_t cr3_match = 0;
    std::vector<ip_range> filters{};
    std::vector<ip_range> ranges{};    // that may be filters
    std::optional<privilege> first{};  // at the beginning; without a value as packets show it
};

/// The ranges of IPs without the target of a TIP.PGD in between: up to four, those with most IPs.
/// IPs and targets that occur `least` times or less are no evidence.
inline auto ranges_of(std::vector<std::uint64_t> ips, std::vector<std::uint64_t> targets,
                      std::size_t least) -> std::vector<ip_range> {
    std::sort(ips.begin(), ips.end());
    std::sort(targets.begin(), targets.end());
    std::vector<std::uint64_t> limits;
    for (std::size_t i = 0; i < targets.size();) {
        auto const end = std::upper_bound(targets.begin(), targets.end(), targets[i]);
        auto const count = static_cast<std::size_t>(end - targets.begin()) - i;
        if (count > least) { limits.push_back(targets[i]); }
        i += count;
    }
    struct cluster {
        ip_range range;
        std::size_t count;
    };
    std::vector<cluster> found;
    for (std::size_t i = 0; i < ips.size(); ++i) {
        bool const continues = i != 0 &&
                               std::lower_bound(limits.begin(), limits.end(), ips[i - 1]) ==
                                   std::lower_bound(limits.begin(), limits.end(), ips[i]);
        if (!continues) { found.push_back({{ips[i], ips[i]}, 0}); }
        found.back().range.last = ips[i];
        ++found.back().count;
    }
    std::stable_sort(found.begin(), found.end(),
                     [](cluster const& a, cluster const& b) { return a.count > b.count; });
    std::vector<ip_range> made;
    for (auto const& one : found) {
        bool const is_rare = one.count <= least && !made.empty();
        if (made.size() < 4 && !is_rare) { made.push_back(one.range); }
    }
    return made;
}

/// MTCFreq: the payload of an MTC is the count of TMA, or the next, without that many bits.
class mtc_freq_votes {
public:
    void add(seen const& one) {
        if (one.is(kind::tma)) {
            ctc_ = one.as<packet::tma>().get<packet::tma::CTC>();
            has_ctc_ = true;
        } else if (one.is(kind::mtc) && has_ctc_) {
            std::uint64_t const payload = one.as<packet::mtc>().get<packet::mtc::CTC>();
            for (unsigned freq = 0; freq < 16; ++freq) {
                unsigned const known = freq < 8 ? 8 : 16 - freq;  // bits of the count in both
                std::uint64_t const periods = (payload - (ctc_ >> freq)) & low_bits(known);
                // 2 where an MTC of the next count came before TMA.
                unsigned const likely = periods == 1 ? 3 : periods == 0 ? 2 : periods == 2 ? 1 : 0;
                votes_[freq] += likely * known;
            }
            has_ctc_ = false;
        }
    }
    /// The one with most votes; of several that nearest to 3, which Linux uses.
    [[nodiscard]] auto best() const -> unsigned {
        unsigned found = 3;
        for (unsigned freq = 0; freq < 16; ++freq) {
            if (votes_[freq] > votes_[found]) { found = freq; }
        }
        return found;
    }

private:
    std::uint64_t ctc_ = 0;
    bool has_ctc_ = false;
    unsigned votes_[16] = {};
};

/// From all packets of a trace. A damaged trace may have bytes that look like packets of any kind:
/// what is rarer than one in a thousand, or in one of eight PSB+, is no evidence there.
inline auto configuration_of(std::vector<recording> const& from, std::string_view kind_name)
    -> configuration {
    bool const enable_has_fup = options_of(kind_name).psb_of_enable_has_fup;
    bool const vmcs_needs_context = options_of(kind_name).vmcs_needs_context;
    std::uint64_t counts[256] = {};
    std::uint64_t in_psbs[256] = {};
    std::uint64_t psbs = 0;
    std::uint64_t all = 0;
    std::uint64_t with_fup = 0;
    std::uint64_t left_range = 0;
    std::uint64_t with_context = 0;  // PSB+ with ContextEn
    std::uint64_t without_pip = 0;   // PSB+ with PacketEn, without a PIP: OS is 0 then
    std::uint64_t without_ip = 0;    // PSB+ with ContextEn, without PacketEn
    std::uint64_t left_context = 0;  // TIP.PGD without IP and FUP
    std::uint64_t entered = 0;       // TIP.PGE that a PIP would precede with CR3Filter
    std::vector<std::uint64_t> ips;
    std::vector<std::uint64_t> targets;
    std::vector<std::uint64_t> cr3s;
    mtc_freq_votes freq;
    bool has_user_ip = false;
    auto const is_user = [](std::uint64_t ip) { return ip >> 63 == 0; };
    for (auto const& part : from) {
        for (std::size_t i = 0; i < part.all.size(); ++i) {
            auto const& one = part.all[i];
            freq.add(one);
            ++counts[underlying(one.packet.kind())];
            ++all;
            with_fup += one.is(kind::ptw) && one.as<packet::ptw>().get<packet::ptw::IP>();
            if (one.is(kind::tip_pge) && i != 0) {
                auto const& before = part.all[i - 1];
                entered += !before.is(kind::pip) && !before.is(kind::mode_exec) &&
                           !before.is(kind::psbend);
            }
            if (one.is(kind::tip_pgd)) {
                std::size_t before = i;
                while (before != 0 &&
                       (part.all[before - 1].is(kind::mtc) || part.all[before - 1].is(kind::cyc))) {
                    --before;
                }
                bool const has_fup_before = before != 0 && part.all[before - 1].is(kind::fup);
                left_range += one.has_ip;
                left_context += !one.has_ip && !has_fup_before;
                if (one.has_ip) { targets.push_back(one.ip); }
            }
            bool const is_after_loss = one.is(kind::fup) && i != 0 && part.all[i - 1].is(kind::ovf);
            if ((one.is(kind::tip) || one.is(kind::tip_pge) || is_after_loss) && one.has_ip) {
                ips.push_back(one.ip);
            }
            if (one.has_ip && !one.is(kind::tip_pgd)) { has_user_ip |= is_user(one.ip); }
            if (one.is(kind::pip)) {
                cr3s.push_back(one.as<packet::pip>().get<packet::pip::CR3>());
            }
            if (!one.is(kind::psb)) { continue; }
            auto const in = psb_plus_at(part.all, i);
            ++psbs;
            with_context += in.fup() || in.pip();
            without_pip += in.is_complete && in.fup() && !in.pip();
            for (kind const which : {kind::mode_tsx, kind::pip, kind::vmcs}) {
                in_psbs[underlying(which)] += in.status.has(which);
            }
            std::size_t pge = after_times(part.all, in.next);
            if (pge < part.all.size() && part.all[pge].is(kind::mode_exec)) {
                pge = after_times(part.all, pge + 1);
            }
            bool enters = pge < part.all.size() && part.all[pge].is(kind::tip_pge);
            if (pge < part.all.size() && part.all[pge].is(kind::psb)) {
                enters = psb_plus_at(part.all, pge).tsc() == in.tsc();
            }
            bool const is_enable = !enable_has_fup && enters;
            bool const in_context = in.tsx() || in.pip() || (vmcs_needs_context && in.vmcs());
            without_ip += in.is_complete && in_context && !in.fup() && !is_enable;
        }
    }
    bool const is_damaged = from.size() > 1;
    std::uint64_t const least = is_damaged ? all / 1000 : 0;
    auto const has = [&](kind which) { return counts[underlying(which)] > least; };
    auto const has_status = [&](kind which) {
        return in_psbs[underlying(which)] > (is_damaged ? psbs / 8 : 0);
    };
    configuration made;
    made.os = has(kind::pip) || has_status(kind::pip);
    made.tsc = has(kind::tsc);
    made.mtc = has(kind::mtc) || has(kind::tma);
    made.cyc = has(kind::cyc);
    made.mtc_freq = freq.best();
    made.ptwrite = has(kind::ptw);
    made.fup_on_ptwrite = with_fup > least;
    made.has_vmcs = has(kind::vmcs) || has_status(kind::vmcs);
    made.has_transactions = has(kind::mode_tsx) || has_status(kind::mode_tsx);
    made.has_tsx = with_context != 0 ? has_status(kind::mode_tsx) : has(kind::mode_tsx);
    made.branches = has(kind::tnt_short) || has(kind::tnt_long) || has(kind::tip) ||
                    has(kind::tip_pge);
    made.ranges = ranges_of(std::move(ips), std::move(targets), is_damaged ? 1 : 0);
    if (left_range != 0 || without_ip > (is_damaged ? psbs / 8 : 0)) { made.filters = made.ranges; }
    if (made.os && left_context > least && made.filters.empty()) {
        made.user = has_user_ip;
        // With CR3Filter all PIPs have the CR3 that matches, and a PIP precedes each TIP.PGE.
        std::sort(cr3s.begin(), cr3s.end());
        bool const has_one_cr3 = !cr3s.empty() && cr3s.front() == cr3s.back();
        made.cr3_filter = has_user_ip && made.filters.empty() && has_one_cr3 && entered == 0 &&
                          without_pip == 0;
        if (made.cr3_filter) { made.cr3_match = cr3s.front(); }
    }
    return made;
}

/// Others that a trace may have been recorded with: with filters that no TIP.PGD shows, without
/// those that seem to be, with another OS or User at the beginning, and with branches that it ends
/// before.
inline auto alternatives_to(configuration const& with) -> std::vector<configuration> {
    std::vector<configuration> made;
    std::optional<privilege> const firsts[] = {std::nullopt, privilege{false, true},
                                               privilege{true, true}, privilege{true, false}};
    for (bool const has_tsx : {with.has_tsx, !with.has_tsx}) {
        if (has_tsx != with.has_tsx && !with.has_transactions) { continue; }
        for (auto const& first : firsts) {
            if (first && !with.os) { break; }
            for (bool const has_filters : {false, true}) {
                bool const is_same = has_filters != with.filters.empty();
                if (!first && is_same && has_tsx == with.has_tsx) { continue; }
                auto other = with;
                other.has_tsx = has_tsx;
                other.first = first;
                other.filters = has_filters ? with.ranges : std::vector<ip_range>{};
                made.push_back(other);
            }
        }
    }
    if (!with.branches) {
        made.push_back(with);
        made.back().branches = true;
    }
    return made;
}

}  // namespace pt_twin
