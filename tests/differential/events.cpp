// SPDX-License-Identifier: BSL-1.0
// Reads traces with trace::event_reader and with libipt's query decoder, and compares the events
// and their times.
//
//   events [--cpu FAMILY/MODEL/STEPPING] [--samples N] [--print] TRACE...
//
// With --samples a file is read in pieces of N bytes.
//
// Both get the same configuration: MTCFreq 3, and the ratio of the clocks that TSC and TMA packets
// of the trace show. The times of events may differ by what libipt loses by rounding. Differences
// that tests/spec/packets.md lists in section 19 are counted. Exit status: 0 no other difference.

#include <intel-pt.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <ptspec/events.hpp>

namespace {

using namespace ptspec;
using trace::event_type;

/// One event as text, and its time. Branches are single.
struct line {
    std::string text;
    uint64_t offset = 0;  // ours: of the packet. libipt reads ahead: only ours are exact
    bool has_time = false;
    uint64_t tsc = 0;
    bool has_cycles = false;  // a CYC came before
};

auto hex(uint64_t value) -> std::string {
    char room[32];
    (void)std::snprintf(room, sizeof room, "%" PRIx64, value);
    return room;
}
auto known(bool is_known, uint64_t value) -> std::string { return is_known ? hex(value) : "-"; }

struct settings {
    pt_cpu cpu{};
    uint32_t numerator = 0;
    uint32_t denominator = 1;
    uint8_t mtc_freq = 3;
    uint8_t non_turbo = 0;
};

// -------------------------------------------------------------------------------- ours

auto text_of(trace::event const& e) -> std::string {
    auto const ip = known(e.has_ip, e.ip);
    auto const to = known(e.has_to, e.to);
    auto const& p = e.packet;
    std::string const status = e.is_status ? " status" : "";
    switch (e.what) {
        case event_type::indirect_branch: return "indirect " + to;
        case event_type::enabled: return "enabled " + ip;
        case event_type::disabled: return "disabled " + to;
        case event_type::async_branch: return "async_branch " + ip + " " + to;
        case event_type::async_disabled: return "async_disabled " + ip + " " + to;
        case event_type::paging: {
            auto const pip = p.as<packet::pip>();
            return "paging " + hex(pip.get<packet::pip::CR3>()) +
                   (pip.get<packet::pip::NR>() ? " nr " : " ") + ip + status;
        }
        case event_type::vmcs:
            return "vmcs " + hex(p.as<packet::vmcs>().get<packet::vmcs::base>()) + " " + ip +
                   status;
        case event_type::exec_mode:
            return "exec_mode " + std::to_string(p.as<packet::mode_exec>().code_bits()) + " " + ip +
                   status;
        case event_type::transaction: {
            auto const tsx = p.as<packet::mode_tsx>();
            return std::string{"tsx "} + (tsx.get<packet::mode_tsx::InTX>() ? "in " : "out ") +
                   (tsx.get<packet::mode_tsx::TXAbort>() ? "abort " : "") + ip + status;
        }
        case event_type::trace_stop: return "stop";
        case event_type::ptwrite: {
            auto const ptw = p.as<packet::ptw>();
            return "ptwrite " + hex(ptw.payload()) + " " + ip;
        }
        case event_type::exstop: return "exstop " + ip;
        case event_type::mwait: return "mwait " + ip;
        case event_type::pwre: return "pwre";
        case event_type::pwrx: return "pwrx";
        case event_type::frequency:
            return "cbr " + std::to_string(p.as<packet::cbr>().get<packet::cbr::CoreBusRatio>()) +
                   status;
        case event_type::maintenance: return "mnt" + status;
        default: return "";
    }
}

auto read_ours(byte_view bytes, settings const& how) -> std::vector<line> {
    std::vector<line> found;
    cpu::quirk_set const quirks = cpu::quirks_of(
        cpu::cpu_model{how.cpu.family, how.cpu.model, how.cpu.stepping});
    trace::clock_options const options{.mtc_freq = how.mtc_freq,
                                       .max_non_turbo_ratio = how.non_turbo,
                                       .tsc_numerator = how.numerator,
                                       .tsc_denominator = how.denominator,
                                       .quirks = quirks};
    trace::event_reader<trace::clock> from{bytes, trace::clock{options}, quirks};
    auto const add = [&](std::string text, trace::event const& e) {
        found.push_back({std::move(text), e.offset, from.clock().is_absolute(), e.when.tsc,
                         e.when.cycles != 0});
    };
    while (auto const& e = from.next()) {
        switch (e.what) {
            case event_type::branches: {
                auto const all = e.branches();
                for (unsigned i = 0; i < all.count; ++i) { add(all.taken(i) ? "T" : "N", e); }
                break;
            }
            case event_type::overflow: add("overflow -", e); break;
            case event_type::resumed:
                if (!found.empty() && found.back().text == "overflow -") {
                    found.back().text = "overflow " + hex(e.ip);
                } else {
                    add("indirect " + hex(e.ip), e);  // tracing was off: GEN-105
                }
                break;
            case event_type::psb:
            case event_type::note:
            case event_type::synced: break;
            case event_type::damage:
                add(std::string{"damage: "} + describe(e.broken).data(), e);
                break;
            case event_type::resynced: add("resynced", e); break;
            case event_type::lost: add("lost", e); break;
            default: add(text_of(e), e); break;
        }
    }
    return found;
}

// -------------------------------------------------------------------------------- libipt

auto text_of(pt_event const& e) -> std::string {
    bool const has_ip = e.ip_suppressed == 0;
    std::string const status = e.status_update != 0 ? " status" : "";
    switch (e.type) {
        case ptev_enabled: return "enabled " + hex(e.variant.enabled.ip);
        case ptev_disabled: return "disabled " + known(has_ip, e.variant.disabled.ip);
        case ptev_async_disabled:
            return "async_disabled " + hex(e.variant.async_disabled.at) + " " +
                   known(has_ip, e.variant.async_disabled.ip);
        case ptev_async_branch:
            return "async_branch " + hex(e.variant.async_branch.from) + " " +
                   known(has_ip, e.variant.async_branch.to);
        case ptev_paging:
            return "paging " + hex(e.variant.paging.cr3) +
                   (e.variant.paging.non_root != 0 ? " nr " : " ") + "-" + status;
        case ptev_async_paging:
            return "paging " + hex(e.variant.async_paging.cr3) +
                   (e.variant.async_paging.non_root != 0 ? " nr " : " ") +
                   known(has_ip, e.variant.async_paging.ip) + status;
        case ptev_overflow: return "overflow " + known(has_ip, e.variant.overflow.ip);
        case ptev_exec_mode: {
            auto const mode = e.variant.exec_mode.mode;
            return std::string{"exec_mode "} +
                   (mode == ptem_64bit   ? "64 "
                    : mode == ptem_32bit ? "32 "
                                         : "16 ") +
                   known(has_ip, e.variant.exec_mode.ip) + status;
        }
        case ptev_tsx:
            return std::string{"tsx "} + (e.variant.tsx.speculative != 0 ? "in " : "out ") +
                   (e.variant.tsx.aborted != 0 ? "abort " : "") + known(has_ip, e.variant.tsx.ip) +
                   status;
        case ptev_stop: return "stop";
        case ptev_vmcs: return "vmcs " + hex(e.variant.vmcs.base) + " -" + status;
        case ptev_async_vmcs:
            return "vmcs " + hex(e.variant.async_vmcs.base) + " " +
                   known(has_ip, e.variant.async_vmcs.ip) + status;
        case ptev_exstop: return "exstop " + known(has_ip, e.variant.exstop.ip);
        case ptev_mwait: return "mwait " + known(has_ip, e.variant.mwait.ip);
        case ptev_pwre: return "pwre";
        case ptev_pwrx: return "pwrx";
        case ptev_ptwrite:
            return "ptwrite " + hex(e.variant.ptwrite.payload) + " " +
                   known(has_ip, e.variant.ptwrite.ip);
        case ptev_tick: return "";
        case ptev_cbr: return "cbr " + std::to_string(e.variant.cbr.ratio) + status;
        case ptev_mnt: return "mnt" + status;
    }
    return "?";
}

struct free_query {
    void operator()(pt_query_decoder* one) const { pt_qry_free_decoder(one); }
};

auto read_theirs(std::vector<uint8_t>& bytes, settings const& how) -> std::vector<line> {
    std::vector<line> found;
    pt_config config;
    std::memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.begin = bytes.data();
    config.end = bytes.data() + bytes.size();
    config.cpu = how.cpu;
    config.mtc_freq = how.mtc_freq;
    config.nom_freq = how.non_turbo;
    config.cpuid_0x15_eax = how.denominator;
    config.cpuid_0x15_ebx = how.numerator;
    if (how.cpu.vendor != pcv_unknown) { (void)pt_cpu_errata(&config.errata, &config.cpu); }
    std::unique_ptr<pt_query_decoder, free_query> decoder{pt_qry_alloc_decoder(&config)};
    auto* from = decoder.get();
    uint64_t ip = 0;
    auto const add = [&](std::string text) {
        line one{std::move(text)};
        one.has_time = pt_qry_time(from, &one.tsc, nullptr, nullptr) >= 0;
        (void)pt_qry_get_offset(from, &one.offset);
        found.push_back(std::move(one));
    };
    bool is_first = true;
    while (true) {
        int status = pt_qry_sync_forward(from, &ip);
        if (status < 0) {
            if (!is_first) { add("lost"); }
            return found;
        }
        if (!is_first) { add("resynced"); }
        is_first = false;
        while (status >= 0) {
            if ((status & pts_event_pending) != 0) {
                pt_event event;
                status = pt_qry_event(from, &event, sizeof event);
                if (status < 0) { break; }
                auto text = text_of(event);
                if (text.empty()) { continue; }
                line one{std::move(text)};
                one.has_time = event.has_tsc != 0;
                one.tsc = event.tsc;
                (void)pt_qry_get_offset(from, &one.offset);
                found.push_back(std::move(one));
                continue;
            }
            int taken = 0;
            status = pt_qry_cond_branch(from, &taken);
            if (status >= 0) {
                add(taken != 0 ? "T" : "N");
            } else if (status == -pte_bad_query) {
                status = pt_qry_indirect_branch(from, &ip);
                if (status >= 0) {
                    add("indirect " + ((status & pts_ip_suppressed) != 0 ? "-" : hex(ip)));
                }
            }
        }
        if (status == -pte_eos) { return found; }
        add("damage: " + std::string{pt_errstr(pt_errcode(status))});
    }
}

// -------------------------------------------------------------------------------- comparison

/// The ratio of the TSC to the crystal clock: TSC - FC advances with CTC.
auto ratio_of(byte_view bytes) -> uint32_t {
    trace::reader from{bytes, trace::reader_options{.sync = true}};
    uint64_t tsc = 0;
    std::vector<std::pair<uint64_t, uint64_t>> edges;
    while (auto const got = from.next()) {
        if (got.what != trace::item_type::packet) { continue; }
        if (got.packet.is<packet::tsc>()) {
            tsc = got.packet.as<packet::tsc>().get<packet::tsc::TSC>();
        }
        if (got.packet.is<packet::tma>()) {
            auto const tma = got.packet.as<packet::tma>();
            edges.emplace_back(tsc - tma.get<packet::tma::FC>(), tma.get<packet::tma::CTC>());
        }
    }
    for (size_t i = 1; i < edges.size(); ++i) {
        uint64_t const ticks = edges[i].first - edges[i - 1].first;
        uint64_t const count = (edges[i].second - edges[i - 1].second) & 0xFFFF;
        if (ticks == 0 || ticks >> 22 != 0 || count == 0) { continue; }
        if (ticks % count == 0 && ticks / count < 400) {
            return static_cast<uint32_t>(ticks / count);
        }
    }
    return 0;
}

/// What a comparison found.
struct totals {
    size_t events = 0;
    size_t times = 0;
    uint64_t furthest = 0;  ///< apart, in TSC ticks
    size_t different = 0;
};

void compare(char const* name, std::vector<uint8_t>& bytes, settings how, bool print, totals& sum) {
    if (how.numerator == 0) {
        auto const ratio = ratio_of(byte_view{bytes.data(), bytes.size()});
        how.numerator = ratio == 0 ? 84 : ratio;
    }
    if (how.non_turbo == 0) { how.non_turbo = static_cast<uint8_t>(how.numerator * 24 / 100); }
    auto const ours = read_ours(byte_view{bytes.data(), bytes.size()}, how);
    auto const theirs = read_theirs(bytes, how);
    if (print) {
        for (auto const& one : ours) {
            std::printf("< %06" PRIx64 " %s @%" PRIx64 "\n", one.offset, one.text.c_str(), one.tsc);
        }
        for (auto const& one : theirs) {
            std::printf("> %06" PRIx64 " %s @%" PRIx64 "\n", one.offset, one.text.c_str(), one.tsc);
        }
    }
    size_t i = 0;
    size_t j = 0;
    while (i < ours.size() || j < theirs.size()) {
        // libipt accepts branches while tracing is off.
        bool const is_off = i < ours.size() && ours[i].text == std::string{"damage: "} +
                                                                   describe(rule::GEN_105).data();
        if (is_off) {
            ++i;
            continue;
        }
        if (i >= ours.size() || j >= theirs.size() || ours[i].text != theirs[j].text) {
            ++sum.different;
            std::printf("%s: %06" PRIx64 " ptspec: %s, libipt: %s\n", name,
                        i < ours.size() ? ours[i].offset : 0,
                        i < ours.size() ? ours[i].text.c_str() : "nothing",
                        j < theirs.size() ? theirs[j].text.c_str() : "nothing");
            return;
        }
        auto const& one = ours[i++];
        auto const& two = theirs[j++];
        ++sum.events;
        if (!one.has_time || !two.has_time) { continue; }
        ++sum.times;
        // libipt gives an event of FUP and TIP the time of the FUP. The CYC between them tells that
        // of the TIP: GEN-214.
        if (one.text.starts_with("async_") && two.tsc < one.tsc) { continue; }
        uint64_t const apart = one.tsc < two.tsc ? two.tsc - one.tsc : one.tsc - two.tsc;
        sum.furthest = std::max(sum.furthest, apart);
        // libipt's ratio of ticks to cycles has 8 bits after the point. Without CYC there is none.
        uint64_t const most = one.has_cycles ? 64 : 0;
        if (apart > most) {
            if (sum.different++ == 0) {
                std::printf("%s: %06" PRIx64 " %s at %" PRIx64 ", in libipt at %" PRIx64 "\n", name,
                            one.offset, one.text.c_str(), one.tsc, two.tsc);
            }
        }
    }
}

}  // namespace

auto main(int count, char** arguments) -> int {
    settings how;
    bool print = false;
    size_t sample = 0;
    size_t different = 0;
    for (int i = 1; i < count; ++i) {
        std::string_view const one = arguments[i];
        if (one == "--print") {
            print = true;
        } else if (one == "--samples" && i + 1 < count) {
            sample = std::strtoul(arguments[++i], nullptr, 0);
        } else if (one == "--cpu" && i + 1 < count) {
            unsigned family = 0;
            unsigned model = 0;
            unsigned stepping = 0;
            if (std::sscanf(arguments[++i], "%u/%u/%u", &family, &model, &stepping) < 2) {
                return 2;
            }
            how.cpu = {pcv_intel, static_cast<uint16_t>(family), static_cast<uint8_t>(model),
                       static_cast<uint8_t>(stepping)};
        } else {
            std::ifstream file{arguments[i], std::ios::binary};
            std::vector<uint8_t> const bytes{std::istreambuf_iterator<char>(file), {}};
            if (bytes.empty()) { return 2; }
            auto const* slash = std::strrchr(arguments[i], '/');
            auto const* const name = slash == nullptr ? arguments[i] : slash + 1;
            totals sum;
            size_t const size = sample == 0 ? bytes.size() : sample;
            for (size_t at = 0; at < bytes.size(); at += size) {
                auto const end = bytes.begin() +
                                 static_cast<std::ptrdiff_t>(std::min(at + size, bytes.size()));
                std::vector<uint8_t> part{bytes.begin() + static_cast<std::ptrdiff_t>(at), end};
                compare(name, part, how, print, sum);
            }
            std::printf("%s: %zu events equal, %zu times, at most %" PRIu64
                        " ticks apart; %zu differences\n",
                        name, sum.events, sum.times, sum.furthest, sum.different);
            different += sum.different;
        }
    }
    return different == 0 ? 0 : 1;
}
