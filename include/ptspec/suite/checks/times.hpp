// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/values.hpp>

/// PSB+ and the packets of time.
namespace ptspec::suite::checks {

/// A trace begins with a PSB+: CBR always, PIP in a context that is traced with OS = 1, TSC and TMA
/// where they are enabled.
struct first_psb {
    static constexpr text name = "psb-of-enabling";
    static constexpr rule_list rules{
        "GEN-170", "GEN-180", "GEN-162", "REG-063", "GEN-172", "GEN-174", "GEN-182", "PKT-130",
        "PKT-133", "PKT-134", "PKT-141", "PRG-042", "GEN-202", "PKT-105", "PKT-060", "GEN-125",
        "GEN-176", "PKT-142", "PKT-138", "PKT-078", "GEN-028", "GEN-241", "PKT-131"};
    static constexpr needs need = needs::tracing().with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        using packet::kind;
        if (!on.trace(snippets::branches, on.usual_ctl()).has_run) { return on.result(); }
        auto const& psb = on.seen().first_psb;
        on.require(on.seen().begins_with_psb_plus, "GEN-180"_rule, "PSB+", 1, 0);
        on.require(psb.has(kind::cbr), "GEN-170"_rule, "CBR in PSB+", 1, 0);
        on.require(psb.has(kind::pip), "GEN-182"_rule, "PIP in PSB+", 1, 0);
        uint64_t const want = on.cr3() & packet::pip::CR3::address_mask;
        uint64_t const cr3 = psb.pip.template get<packet::pip::CR3>();
        on.require(cr3 == want, "GEN-241"_rule, "CR3 of the PIP in PSB+", want, cr3);
        on.require(!psb.has(kind::tsc) && !psb.has(kind::tma), "GEN-170"_rule, "TSC in PSB+", 0, 1);
        on.require(on.seen().times.tsc_count == 0 && on.seen().times.mtc_count == 0 &&
                       on.seen().times.cyc_count == 0,
                   "GEN-028"_rule, "timing packets that are not enabled", 0, 1);
        on.require(psb.cbr.template get<packet::cbr::CoreBusRatio>() != 0, "GEN-202"_rule,
                   "core:bus ratio", 1, 0);
        detail::require_branches(on, "GEN-174"_rule);
        on.observe("PSB+ of enabling with FUP", psb.has_ip);
        return on.result();
    }
};

/// TSC is between two reads of the time-stamp counter; it comes at each enabling.
struct tsc_packets {
    static constexpr text name = "tsc";
    static constexpr rule_list rules{"GEN-200", "PKT-100", "GEN-170", "GEN-181",
                                     "PKT-278", "GEN-028", "GEN-201"};
    static constexpr needs need = needs::tracing().with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::TSCEn{true});
        auto const got = on.trace(snippets::branches, with);
        if (!got.has_run) { return on.result(); }
        auto const& times = on.seen().times;
        on.require(times.tsc_count != 0, "GEN-200"_rule, "TSC packets", 1, 0);
        on.require(on.seen().first_psb.has(packet::kind::tsc), "GEN-170"_rule, "TSC in PSB+", 1, 0);
        constexpr uint64_t in_packet = low_bits(packet::tsc::TSC::width);
        uint64_t const before = got.code.tsc_before & in_packet;
        uint64_t const after = got.code.tsc_after & in_packet;
        for (unsigned i = 0; i < times.tsc_count && i < seen_times::max_count; ++i) {
            on.require(before <= times.tsc[i], "PKT-100"_rule, "TSC before RDTSC", before,
                       times.tsc[i]);
            on.require(times.tsc[i] <= after, "PKT-100"_rule, "TSC after RDTSC", after,
                       times.tsc[i]);
        }
        on.require(times.tma_count == 0, "GEN-201"_rule, "TMA without MTCEn", 0, times.tma_count);
        detail::require_branches(on, "GEN-200"_rule);
        return on.result();
    }
};

/// With TSCEn and MTCEn a TMA follows each TSC, and MTCs count the crystal clock.
struct mtc_packets {
    static constexpr text name = "mtc-and-tma";
    static constexpr rule_list rules{"GEN-201", "GEN-203", "GEN-204", "GEN-206", "PKT-101",
                                     "PKT-102", "PKT-103", "PKT-135", "PKT-303", "GEN-170",
                                     "REG-030", "PRG-134", "REG-048"};
    static constexpr needs need = needs::tracing().with(snippets::long_run).with(features::mtc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::TSCEn{true}, ctl::MTCEn{true});
        auto const got = on.trace(snippets::long_run, with);
        if (!got.has_run) { return on.result(); }
        auto const& times = on.seen().times;
        on.require(times.tma_count != 0 && times.tma_count == times.tsc_count, "GEN-201"_rule,
                   "TMA packets", times.tsc_count, times.tma_count);
        if (!on.caps().has_crystal_ratio()) { return on.result(); }
        uint64_t const edges = on.caps().crystal_ticks(got.code.tsc_passed());
        on.require(times.mtc_count <= edges + 1, "GEN-203"_rule, "MTC packets", edges + 1,
                   times.mtc_count);
        // At MTCFreq 0 each edge of the crystal clock has an MTC; some may be dropped.
        on.require(times.mtc_count != 0 || edges < 4, "GEN-203"_rule, "MTC packets", edges,
                   times.mtc_count);
        return on.result();
    }
};

/// MTCs come with PacketEn = 0, too.
struct mtc_without_context {
    static constexpr text name = "mtc-without-contexten";
    static constexpr rule_list rules{"GEN-204", "GEN-028", "GEN-030"};
    static constexpr needs need = needs::tracing().with(snippets::long_run).with(features::mtc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::OS{false}, ctl::TSCEn{true}, ctl::MTCEn{true});
        auto const got = on.trace(snippets::long_run, with);
        if (!got.has_run) { return on.result(); }
        on.expect_nothing("GEN-030"_rule, snippets::long_run);
        bool const is_due = on.caps().crystal_ticks(got.code.tsc_passed()) >= 4;
        on.require(on.seen().times.mtc_count != 0 || !is_due, "GEN-204"_rule, "MTC packets", 1, 0);
        on.require(on.seen().times.tsc_count != 0, "GEN-028"_rule, "TSC packets", 1, 0);
        return on.result();
    }
};

/// A lower MTCFreq has more MTCs.
struct mtc_periods {
    static constexpr text name = "mtc-periods";
    static constexpr rule_list rules{"PKT-102", "REG-048", "GEN-203", "PRG-134", "PKT-101"};
    static constexpr needs need = needs::tracing().with(snippets::long_run).with(features::mtc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (unsigned freq = 0; freq < 16; ++freq) {
            auto const with = on.usual_ctl().with(ctl::MTCEn{true}, ctl::MTCFreq{wrapped{freq}});
            if (!access::is_legal(on.caps(), with)) { continue; }
            auto const got = on.trace(snippets::long_run, with);
            if (!got.has_run) { return on.result(); }
            if (!on.caps().has_crystal_ratio()) { continue; }
            uint64_t const ticks = on.caps().crystal_ticks(got.code.tsc_passed());
            uint64_t const most = (ticks >> freq) + 2;
            on.require(on.seen().times.mtc_count <= most, "PKT-102"_rule, "MTC packets", most,
                       on.seen().times.mtc_count);
            uint64_t const least = (ticks >> freq) / 4;
            on.require(on.seen().times.mtc_count >= least, "PKT-102"_rule, "MTC packets", least,
                       on.seen().times.mtc_count);
        }
        return on.result();
    }
};

/// CYC packets: at CycThresh 0 each packet of a cycle of its own has one.
struct cyc_packets {
    static constexpr text name = "cyc";
    static constexpr rule_list rules{"GEN-211", "GEN-210", "GEN-213", "GEN-214",
                                     "PKT-107", "PKT-112", "PKT-113", "REG-027",
                                     "GEN-028", "PRG-133", "GEN-217", "PKT-110"};
    static constexpr needs need = needs::tracing().with(snippets::long_run).with(features::cyc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::CYCEn{true}, ctl::TSCEn{true});
        auto const got = on.trace(snippets::long_run, with);
        if (!got.has_run) { return on.result(); }
        auto const& times = on.seen().times;
        on.require(times.cyc_count != 0, "GEN-211"_rule, "CYC packets", 1, 0);
        // No more cycles than the highest ratio of core clock and TSC allows.
        uint64_t const passed = got.code.tsc_passed();
        on.require(times.cycles <= passed * 8 + 64, "GEN-210"_rule, "cycles", passed * 8 + 64,
                   times.cycles);
        if (on.trace(snippets::branches, with).has_run) {
            detail::require_branches(on, "GEN-213"_rule);
        }
        return on.result();
    }
};

/// A higher CycThresh has no more CYC packets.
struct cyc_thresholds {
    static constexpr text name = "cyc-thresholds";
    static constexpr rule_list rules{"GEN-212", "PRG-130", "REG-048", "PRG-131"};
    static constexpr needs need = needs::tracing().with(snippets::long_run).with(features::cyc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (unsigned thresh = 0; thresh < 16; ++thresh) {
            auto const with = on.usual_ctl().with(ctl::CYCEn{true}, ctl::TSCEn{true},
                                                  ctl::CycThresh{wrapped{thresh}});
            if (!access::is_legal(on.caps(), with)) { continue; }
            auto const got = on.trace(snippets::long_run, with);
            if (!got.has_run) { return on.result(); }
            if (thresh == 0) { continue; }
            // Each CYC but stand-alone ones counts at least the threshold.
            uint64_t const least = uint64_t{1} << (thresh - 1);
            auto const& times = on.seen().times;
            on.require(times.cyc_count * least <= times.cycles + least, "GEN-212"_rule,
                       "cycles of all CYCs", times.cyc_count * least, times.cycles);
        }
        return on.result();
    }
};

/// With PacketByteCnt other than 0 enabling need not give a PSB+: TSC, TMA and CBR come.
struct resumed_trace {
    static constexpr text name = "enabled-with-packetbytecnt";
    static constexpr rule_list rules{"GEN-181", "REG-063", "PKT-141", "GEN-236", "REG-055"};
    static constexpr needs need = needs::tracing().with(snippets::branches).with(features::cyc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::TSCEn{true});
        auto const before = status{}.with(status::PacketByteCnt{0x100});
        if (!on.set_usual_output() || !on.set(status::address, before.raw)) { return on.result(); }
        auto const got = on.run_and_read(snippets::branches, with);
        if (!got.has_run) { return on.result(); }
        auto const& seen = on.seen();
        on.require(seen.times.tsc_count != 0, "GEN-181"_rule, "TSC packets", 1, 0);
        on.require(seen.times.cbr_count != 0, "GEN-181"_rule, "CBR packets", 1, 0);
        detail::require_branches(on, "GEN-181"_rule);
        on.observe("PSB+ although PacketByteCnt is not 0", seen.begins_with_psb);
        return on.result();
    }
};

/// PacketByteCnt counts the bytes since the PSB.
struct packet_byte_count {
    static constexpr text name = "packetbytecnt";
    static constexpr rule_list rules{"GEN-161", "REG-061"};
    static constexpr needs need = needs::tracing().with(snippets::branches).with(features::cyc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const got = on.trace(snippets::branches, on.usual_ctl());
        if (!got.has_run) { return on.result(); }
        auto const count = got.status.template get<status::PacketByteCnt>();
        on.require(count <= on.bytes().count, "GEN-161"_rule, "PacketByteCnt", on.bytes().count,
                   count, status::address);
        on.require(on.bytes().count != 0, "GEN-161"_rule, "bytes of trace", 1, 0);
        on.observe("bytes of trace that PacketByteCnt does not count", on.bytes().count - count);
        return on.result();
    }
};

/// Without CPSB_CAM each enabling gives a PSB+, and PacketByteCnt reads 0.
struct psb_always {
    static constexpr text name = "psb-without-cpsb-cam";
    static constexpr rule_list rules{"REG-063", "GEN-162", "REG-055", "GEN-161"};
    static constexpr needs need = needs::tracing().with(snippets::branches).with(features::no_cyc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const got = on.trace(snippets::branches, on.usual_ctl());
        if (!got.has_run) { return on.result(); }
        on.require(on.seen().begins_with_psb_plus, "REG-063"_rule, "PSB+", 1, 0);
        on.require(got.status.template get<status::PacketByteCnt>() == 0, "REG-055"_rule,
                   "PacketByteCnt", 0, 1, status::address);
        return on.result();
    }
};

using time_checks =
    type_list<first_psb, tsc_packets, mtc_packets, mtc_without_context, mtc_periods, cyc_packets,
              cyc_thresholds, resumed_trace, packet_byte_count, psb_always>;

}  // namespace ptspec::suite::checks
