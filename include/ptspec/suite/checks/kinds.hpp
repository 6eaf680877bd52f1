// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/times.hpp>
#include <ptspec/suite/model_target.hpp>

/// Whether a target generates the bytes of the kind of processor to which it is held.
namespace ptspec::suite::checks {

namespace detail {

/// What a trace is compared with: the first packet that differs.
struct byte_difference {
    bool is_equal = true;
    uint64_t at = 0;
    uint8_t expected = 0;
    uint8_t seen = 0;
    packet::kind kind = packet::kind::none;  ///< of the expected packet there
};

/// With `any_ratio` the core:bus ratios of CBRs may differ.
constexpr auto compare_bytes(byte_view expected, byte_view seen, bool any_ratio) noexcept
    -> byte_difference {
    trace::reader reader{expected, {.sync = false}};
    auto const packet_at = [&](size_t at) {
        trace::reader again{expected, {.sync = false}};
        packet::kind last = packet::kind::none;
        for (auto one = again.next(); one && one.offset <= at; one = again.next()) {
            if (one.what == trace::item_type::packet) { last = one.packet.kind(); }
        }
        return last;
    };
    constexpr size_t ratio_at = 2;
    uint64_t next_ratio = expected.size();
    auto const find_ratio = [&] {
        next_ratio = expected.size();
        for (auto one = reader.next(); one; one = reader.next()) {
            if (one.what == trace::item_type::packet && one.packet.kind() == packet::kind::cbr) {
                next_ratio = one.offset + ratio_at;
                return;
            }
        }
    };
    if (any_ratio) { find_ratio(); }
    for (size_t at = 0; at < expected.size() || at < seen.size(); ++at) {
        if (at == next_ratio) {
            find_ratio();
            if (at < seen.size()) { continue; }
        }
        uint8_t const want = at < expected.size() ? expected[at] : uint8_t{0};
        uint8_t const got = at < seen.size() ? seen[at] : uint8_t{0};
        if (at >= expected.size() || at >= seen.size() || want != got) {
            return {false, at, want, got, packet_at(at)};
        }
    }
    return {};
}
/// The rule that says how a packet is encoded, and where it stands.
constexpr auto rule_of_packet(packet::kind kind) noexcept -> rule {
    switch (kind) {
        case packet::kind::pad: return "GEN-010"_rule;
        case packet::kind::tnt_short:
        case packet::kind::tnt_long: return "GEN-120"_rule;
        case packet::kind::cyc: return "GEN-214"_rule;
        case packet::kind::mtc: return "GEN-203"_rule;
        case packet::kind::tsc: return "GEN-200"_rule;
        case packet::kind::tma: return "GEN-201"_rule;
        case packet::kind::cbr: return "GEN-202"_rule;
        case packet::kind::pip: return "GEN-241"_rule;
        case packet::kind::mode_exec: return "GEN-236"_rule;
        case packet::kind::psbend: return "GEN-171"_rule;
        default: return "GEN-011"_rule;
    }
}

/// The model of the kind to which a target is held, and its own way from a check to it. Time passes
/// from `tsc` on.
class kind_model {
public:
    template <target T>
    constexpr kind_model(armed<T>& on, snippet const& code, uint64_t tsc) noexcept
        : model_{on.caps(),    *on.kind(),
                 pages_,       armed<model_target>::usual_pages,
                 defect::none, {on.address_of(code), on.cr3(), tsc}},
          on_{model_, on.caps(), rule::none} {}

    [[nodiscard]] constexpr auto on() noexcept -> armed<model_target>& { return on_; }

    /// Requires that the last trace of a target has the bytes of the model's. `of_psb` is the rule
    /// that is broken if the model has a PSB where they differ.
    template <target T>
    constexpr void require_same_bytes(armed<T>& on, rule of_psb) noexcept {
        auto const found = compare_bytes(on_.bytes().view(), on.bytes().view(),
                                         !on.can(ability::model_time));
        on.require(found.is_equal,
                   found.kind == packet::kind::psb ? of_psb : rule_of_packet(found.kind),
                   packet::name_of(found.kind), found.expected, found.seen, {}, found.at);
    }

private:
    uint8_t pages_[armed<model_target>::usual_pages * given_memory::page_bytes] = {};
    model_target model_;
    armed<model_target> on_;
};

/// Traces a snippet on the target, and on the model of its kind, and compares the bytes.
template <target T>
constexpr void require_same_bytes(armed<T>& on, snippet const& code, ctl with) noexcept {
    if (!access::is_legal(on.caps(), with) || on.is_broken()) { return; }
    auto const got = on.trace(code, with);
    if (!got.has_run) { return; }
    kind_model wanted{on, code, got.code.tsc_before};
    for_each_of_filters(on.caps(), [&](access::pt_msr const& msr) {
        (void)wanted.on().write(msr.index, access::value_of(on.state(), msr.index));
    });
    (void)wanted.on().trace(code, with);
    wanted.require_same_bytes(on, "GEN-171"_rule);
}

/// Traces the same snippet several times, without PSB+ where the period has not passed, on the
/// target and on the model of its kind, and compares the bytes of each run.
template <target T>
constexpr void require_same_runs(armed<T>& on, ctl with, unsigned runs = 24) noexcept {
    if (!access::is_legal(on.caps(), with) || on.is_broken()) { return; }
    if (__builtin_is_constant_evaluated() && runs > 2) { runs = 2; }
    kind_model wanted{on, snippets::long_run, model_target::surroundings{}.tsc};
    for (unsigned i = 0; i < runs && !on.is_broken(); ++i) {
        auto const keep = on.state().status;
        if (!on.set_usual_output() || !wanted.on().set_usual_output()) { return; }
        // The count of the last run; 0 at first.
        if (i != 0 &&
            (!on.set(status::address, keep.raw) || !wanted.on().set(status::address, keep.raw))) {
            return;
        }
        if (!on.run_and_read(snippets::long_run, with).has_run) { return; }
        (void)wanted.on().run_and_read(snippets::long_run, with);
        wanted.require_same_bytes(on, "GEN-163"_rule);
        if (on.kind()->psb_step != 1) { continue; }
        auto const count = on.state().status.template get<status::PacketByteCnt>();
        auto const right = wanted.on().state().status.get<status::PacketByteCnt>();
        on.require(count == right, "GEN-165"_rule, "PacketByteCnt", right, count, status::address);
    }
}

inline constexpr needs kind_needs = [] {
    auto made = needs::tracing();
    made.is_of_kind = true;
    return made;
}();

}  // namespace detail

/// The bytes of branches.
struct bytes_of_branches {
    static constexpr text name = "bytes-of-branches";
    static constexpr rule_list rules{
        "GEN-011", "GEN-010", "GEN-120", "GEN-171", "GEN-009", "GEN-202", "GEN-241", "GEN-236",
        "PKT-001", "PKT-002", "PKT-053", "PKT-054", "PKT-055", "PKT-064", "PKT-086", "PKT-133",
        "PKT-345", "PKT-341", "PKT-340", "PKT-057", "PKT-068", "PKT-003", "PKT-056"};
    static constexpr needs need = detail::kind_needs;

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (auto const* const code :
             few{&snippets::nothing, &snippets::branches, &snippets::many_conditionals,
                 &snippets::indirect, &snippets::calls, &snippets::mismatched_returns,
                 &snippets::calls_of_next, &snippets::nested_calls, &snippets::far_return,
                 &snippets::interrupt_return, &snippets::areas, &snippets::paging}) {
            detail::require_same_bytes(on, *code, on.usual_ctl());
            if (__builtin_is_constant_evaluated() && code == &snippets::indirect) { break; }
        }
        detail::require_same_bytes(on, snippets::calls, on.usual_ctl().with(ctl::DisRETC{true}));
        return on.result();
    }
};

/// The bytes with filters.
struct bytes_with_filters {
    static constexpr text name = "bytes-with-filters";
    static constexpr rule_list rules{"GEN-011", "GEN-010", "GEN-101", "GEN-100", "GEN-120",
                                     "GEN-171", "GEN-236", "GEN-202", "GEN-241", "GEN-107",
                                     "PKT-058", "PKT-059", "GEN-102"};
    static constexpr needs need = detail::kind_needs.with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        using detail::area;
        if (!detail::set_range(on, 0, snippets::areas, area(0), area(4))) { return on.result(); }
        detail::require_same_bytes(on, snippets::areas, detail::as_filter(on.usual_ctl()));
        return on.result();
    }
};

/// The bytes of values: PTW and MODE.TSX.
struct bytes_of_ptwrite {
    static constexpr text name = "bytes-of-ptwrite";
    static constexpr rule_list rules{"GEN-011", "GEN-010", "GEN-120", "GEN-171", "GEN-202",
                                     "GEN-241", "GEN-236", "PKT-170", "PKT-171"};
    static constexpr needs need = detail::kind_needs.with(snippets::ptwrites);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::PTWEn{true});
        detail::require_same_bytes(on, snippets::ptwrites, with);
        detail::require_same_bytes(on, snippets::ptwrites, with.with(ctl::FUPonPTW{true}));
        return on.result();
    }
};
struct bytes_of_transactions {
    static constexpr text name = "bytes-of-transactions";
    static constexpr rule_list rules{"GEN-011", "GEN-010", "GEN-120", "GEN-171", "GEN-202",
                                     "GEN-241", "GEN-236", "PKT-085", "PKT-088"};
    static constexpr needs need = detail::kind_needs.with(snippets::transaction);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        detail::require_same_bytes(on, snippets::transaction, on.usual_ctl());
        detail::require_same_bytes(on, snippets::aborted_transaction, on.usual_ctl());
        return on.result();
    }
};

/// The bytes of time, on a target whose time passes as in the model.
struct bytes_of_time {
    static constexpr text name = "bytes-of-time";
    static constexpr rule_list rules{
        "GEN-214", "GEN-200", "GEN-201", "GEN-203", "GEN-202", "GEN-011", "GEN-010", "GEN-120",
        "GEN-171", "GEN-241", "GEN-236", "GEN-216", "GEN-212", "GEN-210", "GEN-215", "PKT-108",
        "PKT-109", "PKT-100", "PKT-101", "PKT-103", "PKT-342", "PKT-116", "PRG-131"};
    static constexpr needs need =
        detail::kind_needs.with(ability::model_time).with(snippets::long_run);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl();
        bool is_short = false;
        if (__builtin_is_constant_evaluated()) { is_short = true; }
        auto const& code = is_short ? snippets::indirect : snippets::long_run;
        detail::require_same_bytes(on, code, with.with(ctl::TSCEn{true}));
        detail::require_same_bytes(on, code, with.with(ctl::TSCEn{true}, ctl::MTCEn{true}));
        detail::require_same_bytes(on, code, with.with(ctl::MTCEn{true}, ctl::MTCFreq{3}));
        for (unsigned thresh = 0; thresh < (is_short ? 2 : 16); ++thresh) {
            auto const cyc = with.with(ctl::CYCEn{true}, ctl::CycThresh{wrapped{thresh}});
            detail::require_same_bytes(on, code, cyc);
            detail::require_same_bytes(on, code, cyc.with(ctl::TSCEn{true}, ctl::MTCEn{true}));
            if (is_short) { continue; }
            detail::require_same_bytes(on, snippets::quiet_run, cyc);
            detail::require_same_bytes(on, snippets::many_conditionals, cyc);
            detail::require_same_bytes(on, snippets::calls, cyc);
            detail::require_same_bytes(on, snippets::areas, cyc);
            detail::require_same_bytes(on, snippets::paging, cyc.with(ctl::TSCEn{true}));
        }
        return on.result();
    }
};

/// The bytes of runs after each other that keep PacketByteCnt: PSB+ come at the period.
struct bytes_of_psb_periods {
    static constexpr text name = "bytes-of-psb-periods";
    static constexpr rule_list rules{"GEN-163", "GEN-012", "GEN-165", "GEN-160", "GEN-161",
                                     "GEN-162", "GEN-171", "GEN-011", "GEN-010", "GEN-120",
                                     "GEN-202", "GEN-241", "GEN-236", "REG-048", "PKT-139",
                                     "GEN-174", "GEN-344"};
    static constexpr needs need = detail::kind_needs.with(snippets::long_run);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (on.kind()->psb_step != 1) {
            on.skip("this kind counts in steps, whose phase is not known");
            return on.result();
        }
        for (unsigned freq = 0; freq < 2; ++freq) {
            auto const with = on.usual_ctl().with(ctl::PSBFreq{wrapped{freq}});
            detail::require_same_runs(on, with);
            if (__builtin_is_constant_evaluated()) { break; }
        }
        return on.result();
    }
};

/// The same with CYCs, on a target whose time passes as in the model: a PSB+ loses no cycles.
struct bytes_of_cyc_at_psb {
    static constexpr text name = "bytes-of-cyc-at-psb";
    static constexpr rule_list rules{"GEN-210", "GEN-214", "GEN-163",
                                     "GEN-171", "GEN-211", "GEN-165"};
    static constexpr needs need =
        detail::kind_needs.with(ability::model_time).with(snippets::long_run).with(features::cyc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        // Where a kind counts in steps, whose phase is not known, only up to the first PSB+ of a
        // period.
        unsigned const runs = on.kind()->psb_step == 1 ? 24 : 1;
        auto const with = on.usual_ctl().with(ctl::CYCEn{true});
        detail::require_same_runs(on, with, runs);
        // With a threshold there are cycles that no CYC has reported when a PSB+ begins.
        detail::require_same_runs(on, with.with(ctl::CycThresh{9}), runs);
        return on.result();
    }
};

using kind_checks =
    type_list<bytes_of_psb_periods, bytes_of_cyc_at_psb, bytes_of_branches, bytes_with_filters,
              bytes_of_ptwrite, bytes_of_transactions, bytes_of_time>;

}  // namespace ptspec::suite::checks
