// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/topa.hpp>

/// The PMI of a region with INT, and its preservation.
namespace ptspec::suite::checks {

namespace detail {

using global_status = reg::ia32_perf_global_status;
using global_reset = reg::ia32_perf_global_status_reset;

inline constexpr uint64_t topa_pmi = field_mask<global_status::Trace_ToPA_PMI>;
/// The bits of IA32_RTIT_STATUS that preserve a PSB+ and a PMI.
inline constexpr uint64_t pending_bits = field_mask<status::PendPSB> |
                                         field_mask<status::PendToPAPMI>;

inline constexpr needs pmi_needs = needs::tracing(wanted_output::topa_of_many_entries)
                                       .with(snippets::branches)
                                       .with(ability::global_status);

inline constexpr needs preservation_needs = pmi_needs.with(features::preservation);

template <target T>
constexpr auto is_pending(armed<T>& on) noexcept -> bool {
    auto const got = on.read(global_status::address);
    return got.is_done && (got.value & topa_pmi) != 0;
}
/// Clears bit 55 of IA32_PERF_GLOBAL_STATUS, and calls `pmi`: an earlier PMI does not count then.
template <target T>
constexpr void clear_pmi(armed<T>& on) noexcept {
    (void)on.write(global_reset::address, topa_pmi);
    (void)on.pmi();
}
/// Fills a region with the given flags, from 20 bytes before its end. IA32_RTIT_STATUS is 0 before.
template <target T>
constexpr auto fill(armed<T>& on, entry flags, ctl with) noexcept -> traced {
    on.clear();
    on.set_entry(0, 0, entry{on.region(5).raw | flags.raw});
    on.set_entry(0, 1, on.region(6));
    if (!set_position(on, 0, 4076)) { return {}; }
    clear_pmi(on);
    return on.run(snippets::branches, with);
}
inline constexpr entry with_int = entry{}.with(entry::INT{true});
inline constexpr entry with_stop_and_int = with_int.with(entry::STOP{true});

}  // namespace detail

/// A full region with INT sets bit 55 of IA32_PERF_GLOBAL_STATUS and raises a PMI; output continues
/// in the next region. Writing 1 to bit 55 of 390H clears it.
struct topa_int {
    static constexpr text name = "topa-int";
    static constexpr rule_list rules{"OUT-082", "OUT-084", "REG-203", "PRG-063",
                                     "PRG-121", "REG-192", "PRG-085", "OUT-143"};
    static constexpr needs need = detail::pmi_needs.with(ability::interrupt);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const quiet = detail::fill(on, {}, detail::topa_ctl(on));
        if (!quiet.has_run) { return on.result(); }
        on.require(!detail::is_pending(on) && !on.pmi(), "OUT-082"_rule, "PMI without INT", 0, 1,
                   detail::global_status::address);
        auto const got = detail::fill(on, detail::with_int, detail::topa_ctl(on));
        if (!got.has_run) { return on.result(); }
        detail::require_no_end(on, "OUT-082"_rule, got);
        on.require(got.index() == 1, "PRG-121"_rule, "MaskOrTableOffset", 1, got.index(),
                   ia32_rtit_output_mask_ptrs::address);
        on.require(detail::is_pending(on), "PRG-063"_rule, "bit 55 after TraceEn became 0", 1, 0,
                   detail::global_status::address);
        on.require(on.pmi(), "OUT-082"_rule, "PMI", 1, 0);
        auto const cleared = on.write(detail::global_reset::address, detail::topa_pmi);
        on.require(cleared.is_done && !detail::is_pending(on), "OUT-084"_rule,
                   "bit 55 after a write of 390H", 0, 1, detail::global_status::address);
        return on.result();
    }
};

/// IA32_PERF_GLOBAL_STATUS is read only, 391H sets bit 55, and 390H clears it.
struct global_status_bit {
    static constexpr text name = "global-status-bit-55";
    static constexpr rule_list rules{"REG-203", "OUT-084", "REG-009"};
    static constexpr needs need{.output = wanted_output::topa,
                                .abilities = ability_set{}.with(ability::global_status)};

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        using set = reg::ia32_perf_global_status_set;
        detail::clear_pmi(on);
        on.require(!detail::is_pending(on), "REG-203"_rule, "bit 55", 0, 1,
                   detail::global_status::address);
        on.refuses("REG-203"_rule, detail::global_status::address, detail::topa_pmi);
        auto const done = on.write(set::address, detail::topa_pmi);
        on.require(done.is_done && detail::is_pending(on), "REG-203"_rule, "bit 55 after 391H", 1,
                   0, detail::global_status::address);
        auto const none = on.write(detail::global_reset::address, 0);
        on.require(none.is_done && detail::is_pending(on), "REG-203"_rule, "bit 55 after 0 to 390H",
                   1, 0, detail::global_status::address);
        detail::clear_pmi(on);
        on.require(!detail::is_pending(on), "OUT-084"_rule, "bit 55 after 390H", 0, 1,
                   detail::global_status::address);
        return on.result();
    }
};

/// STOP and INT: both happen.
struct topa_stop_and_int {
    static constexpr text name = "topa-stop-and-int";
    static constexpr rule_list rules{"OUT-083", "PRG-087", "OUT-080", "OUT-082"};
    static constexpr needs need = detail::pmi_needs.with(ability::interrupt);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const got = detail::fill(on, detail::with_stop_and_int, detail::topa_ctl(on));
        if (!got.has_run) { return on.result(); }
        on.require(got.status.template get<status::Stopped>(), "OUT-083"_rule, "Stopped", 1, 0,
                   status::address);
        on.require(got.index() == 0, "OUT-080"_rule, "MaskOrTableOffset", 0, got.index(),
                   ia32_rtit_output_mask_ptrs::address);
        on.require(detail::is_pending(on) && on.pmi(), "OUT-083"_rule, "PMI", 1, 0,
                   detail::global_status::address);
        return on.result();
    }
};

/// Two regions that fill before the PMI is taken raise one, or two.
struct topa_two_ints {
    static constexpr text name = "topa-two-ints";
    static constexpr rule_list rules{"OUT-090", "PRG-123", "OUT-053"};
    static constexpr needs need = detail::pmi_needs.with(ability::interrupt);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const first = detail::fill(on, detail::with_int, detail::topa_ctl(on));
        if (!first.has_run) { return on.result(); }
        // The region fills a second time before the first PMI is taken.
        if (!detail::set_position(on, 0, 4076)) { return on.result(); }
        auto const second = on.run(snippets::branches, detail::topa_ctl(on));
        if (!second.has_run) { return on.result(); }
        on.require(detail::is_pending(on) && on.pmi(), "OUT-090"_rule, "PMI", 1, 0,
                   detail::global_status::address);
        on.require(second.index() == 1, "PRG-123"_rule, "MaskOrTableOffset", 1, second.index(),
                   ia32_rtit_output_mask_ptrs::address);
        return on.result();
    }
};

/// Without InjectPsbPmiOnEnable the pending bits of STATUS are neither changed nor used.
struct preservation_off {
    static constexpr text name = "pmi-preservation-off";
    static constexpr rule_list rules{"REG-067", "OUT-088", "REG-054"};
    static constexpr needs need = detail::preservation_needs;

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const got = detail::fill(on, detail::with_int, detail::topa_ctl(on));
        if (!got.has_run) { return on.result(); }
        on.require(!got.status.template get<status::PendToPAPMI>(), "OUT-088"_rule, "PendToPAPMI",
                   0, 1, status::address);
        on.clear();
        detail::clear_pmi(on);
        if (!detail::set_position(on, 0, 0) || !on.set(status::address, detail::pending_bits)) {
            return on.result();
        }
        auto const kept = on.run(snippets::branches, detail::topa_ctl(on));
        if (!kept.has_run) { return on.result(); }
        uint64_t const seen = kept.status.raw & detail::pending_bits;
        on.require(seen == detail::pending_bits, "REG-067"_rule, "PendPSB and PendToPAPMI",
                   detail::pending_bits, seen, status::address);
        on.require(!detail::is_pending(on), "REG-067"_rule, "bit 55", 0, 1,
                   detail::global_status::address);
        return on.result();
    }
};

/// With InjectPsbPmiOnEnable a region with INT sets PendToPAPMI, and enabling again pends the PMI.
struct preservation_of_pmi {
    static constexpr text name = "pmi-preservation";
    static constexpr rule_list rules{"OUT-085", "OUT-086", "REG-066", "PRG-125", "OUT-082"};
    static constexpr needs need = detail::preservation_needs.with(ability::interrupt);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = detail::topa_ctl(on).with(ctl::InjectPsbPmiOnEnable{true});
        auto const got = detail::fill(on, detail::with_int, with);
        if (!got.has_run) { return on.result(); }
        on.require(got.status.template get<status::PendToPAPMI>(), "OUT-085"_rule, "PendToPAPMI", 1,
                   0, status::address);
        on.require(detail::is_pending(on) && on.pmi(), "OUT-082"_rule, "PMI", 1, 0,
                   detail::global_status::address);
        detail::clear_pmi(on);
        on.clear();
        if (!on.set_output(on.page(0), 0, 0)) { return on.result(); }
        auto const again = on.run(snippets::branches, with);
        if (!again.has_run) { return on.result(); }
        on.require(detail::is_pending(on) && on.pmi(), "OUT-086"_rule, "PMI of enabling", 1, 0,
                   detail::global_status::address);
        on.require(again.status.template get<status::PendToPAPMI>(), "REG-066"_rule, "PendToPAPMI",
                   1, 0, status::address);
        detail::clear_pmi(on);
        if (!detail::set_position(on, 0, 0)) { return on.result(); }
        auto const quiet = on.run(snippets::branches, with);
        if (!quiet.has_run) { return on.result(); }
        on.require(!detail::is_pending(on), "OUT-086"_rule, "PMI with PendToPAPMI = 0", 0, 1,
                   detail::global_status::address);
        return on.result();
    }
};

/// With InjectPsbPmiOnEnable and PendPSB, enabling generates a PSB+ whatever PacketByteCnt is, and
/// clears PendPSB.
struct preservation_of_psb {
    static constexpr text name = "psb-preservation";
    static constexpr rule_list rules{"REG-065", "GEN-162"};
    static constexpr needs need =
        needs::tracing().with(snippets::branches).with(features::preservation);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::InjectPsbPmiOnEnable{true});
        auto const pending = status{}.with(status::PendPSB{true});
        bool const counts = on.caps().leaf_14_0_ebx.template get<ebx::CPSB_CAM>();
        auto const before = counts ? pending.with(status::PacketByteCnt{0x40}) : pending;
        if (!on.set_usual_output() || !on.set(status::address, before.raw)) { return on.result(); }
        auto const got = on.run_and_read(snippets::branches, with);
        if (!got.has_run) { return on.result(); }
        on.require(on.seen().begins_with_psb_plus, "REG-065"_rule, "PSB+", 1, 0);
        on.require(!got.status.template get<status::PendPSB>(), "REG-065"_rule, "PendPSB", 0, 1,
                   status::address);
        detail::require_branches(on, "REG-065"_rule);
        return on.result();
    }
};

/// Without MENTRY the PMI comes before the region is full.
struct early_int {
    static constexpr text name = "topa-int-without-mentry";
    static constexpr rule_list rules{"OUT-101", "PRG-090"};
    static constexpr needs need = needs::tracing(wanted_output::topa)
                                      .with(snippets::branches)
                                      .with(ability::global_status)
                                      .with(features::no_mentry);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        on.clear();
        on.set_entry(0, 0, on.region(5).with(topa::entry::INT{true}));
        if (!detail::set_position(on, 0, 4096 - 1024)) { return on.result(); }
        detail::clear_pmi(on);
        for (unsigned runs = 0; runs < 40; ++runs) {
            if (!on.set(status::address, 0)) { return on.result(); }
            auto const got = on.run(snippets::branches, detail::topa_ctl(on));
            if (!got.has_run) { return on.result(); }
            detail::require_no_end(on, "OUT-101"_rule, got);
            if (on.is_broken()) { return on.result(); }
            bool const has_wrapped = got.offset() < 4096 - 1024;
            if (detail::is_pending(on)) {
                on.observe("bytes before the end at which INT was seen",
                           has_wrapped ? 0 : 4096 - got.offset());
                return on.result();
            }
            on.require(!has_wrapped, "OUT-101"_rule, "bit 55 after a full region", 1, 0,
                       detail::global_status::address);
            if (on.is_broken()) { return on.result(); }
        }
        on.require(false, "OUT-101"_rule, "bit 55", 1, 0, detail::global_status::address);
        return on.result();
    }
};

using interrupt_checks =
    type_list<topa_int, global_status_bit, topa_stop_and_int, topa_two_ints, preservation_off,
              preservation_of_pmi, preservation_of_psb, early_int>;

}  // namespace ptspec::suite::checks
