// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/suite/finding.hpp>
#include <ptspec/suite/target.hpp>

namespace ptspec::suite {

/// An output scheme that a check needs, or any that the processor has.
enum class wanted_output : uint8_t { none, any, single_range, topa, topa_of_many_entries };

/// A feature of a processor that a check needs, or needs to be absent.
struct feature {
    bool (*is_met)(cpu::capabilities const&) = nullptr;  ///< null: none
    text missing{};                                      ///< what is said where it is not met
};

/// The features by which checks differ.
namespace features {

using pt_ebx = reg::cpuid_14h_0_ebx;

template <class Field>
[[nodiscard]] constexpr auto has(cpu::capabilities const& caps) noexcept -> bool {
    return caps.leaf_14_0_ebx.get<Field>();
}
template <class Field>
[[nodiscard]] constexpr auto lacks(cpu::capabilities const& caps) noexcept -> bool {
    return !has<Field>(caps);
}

inline constexpr feature mtc{has<pt_ebx::MTC>, "CPUID.14H.0:EBX.MTC is 0"};
inline constexpr feature cyc{has<pt_ebx::CPSB_CAM>, "CPUID.14H.0:EBX.CPSB_CAM is 0"};
inline constexpr feature no_cyc{lacks<pt_ebx::CPSB_CAM>, "CPUID.14H.0:EBX.CPSB_CAM is 1"};
inline constexpr feature ptwrite{has<pt_ebx::PTWRITE>, "CPUID.14H.0:EBX.PTWRITE is 0"};
inline constexpr feature preservation{has<pt_ebx::INJECTPSBPMI>,
                                      "CPUID.14H.0:EBX.INJECTPSBPMI is 0"};
inline constexpr feature dis_tnt{has<pt_ebx::TNT_DIS>, "CPUID.14H.0:EBX.TNT_DIS is 0"};
inline constexpr feature cr3_filter{has<pt_ebx::CR3FILTER>, "CPUID.14H.0:EBX.CR3FILTER is 0"};
inline constexpr feature event_trace{has<pt_ebx::EVENT_TRACE>, "CPUID.14H.0:EBX.EVENT_TRACE is 0"};
inline constexpr feature ranges{
    [](cpu::capabilities const& caps) { return caps.address_ranges() != 0; },
    "the processor has no address ranges"};
inline constexpr feature two_ranges{
    [](cpu::capabilities const& caps) { return caps.address_ranges() >= 2; },
    "the processor has fewer than two address ranges"};
inline constexpr feature no_mentry{
    [](cpu::capabilities const& caps) { return !caps.has_topa_of_many_entries(); },
    "CPUID.14H.0:ECX.MENTRY is 1"};
inline constexpr feature xsaves{
    [](cpu::capabilities const& caps) { return caps.has_xsaves_state(); },
    "CPUID.0DH.1:ECX.PT_STATE is 0"};
inline constexpr feature rtm{[](cpu::capabilities const& caps) {
                                 return caps.leaf_07_0_ebx.get<reg::cpuid_07h_0_ebx::RTM>();
                             },
                             "CPUID.07H.0:EBX.RTM is 0"};

}  // namespace features

namespace build_error {

void a_check_needs_one_feature_at_most();

}  // namespace build_error

/// What a check needs. If the target or the processor lacks it, the check is skipped.
struct needs {
    uint32_t pages = 0;  ///< of given memory
    wanted_output output = wanted_output::none;
    ability_set abilities{};
    feature has{};                  ///< of the processor
    snippet const* code = nullptr;  ///< that it executes
    bool is_without_pt = false;     ///< the processor must lack Intel PT instead of having it
    bool is_of_kind = false;        ///< the target is held to a kind of processor
    bool asks_absence = false;      ///< an MSR that does not exist must raise #GP
    bool is_dangerous = false;      ///< may write outside the given pages if a rule is broken

    /// Tracing: the page of the range or the table, those that it leads to, and the snippet.
    [[nodiscard]] static constexpr auto tracing(wanted_output output = wanted_output::any) noexcept
        -> needs {
        return {.pages = 8,
                .output = output,
                .abilities = ability_set{}.with(ability::enable).with(ability::execute)};
    }
    /// Writes of MSRs while TraceEn is 1.
    [[nodiscard]] static constexpr auto enabling(wanted_output output = wanted_output::any) noexcept
        -> needs {
        return {.pages = 8, .output = output, .abilities = ability_set{}.with(ability::enable)};
    }
    [[nodiscard]] consteval auto with(feature one) const noexcept -> needs {
        if (has.is_met != nullptr) { build_error::a_check_needs_one_feature_at_most(); }
        auto more = *this;
        more.has = one;
        return more;
    }
    [[nodiscard]] constexpr auto with(ability one) const noexcept -> needs {
        auto more = *this;
        more.abilities.add(one);
        return more;
    }
    [[nodiscard]] constexpr auto with(snippet const& executed) const noexcept -> needs {
        auto more = *this;
        more.code = &executed;
        return more;
    }
};

namespace detail {

using namespace ptspec::detail;

constexpr auto has_output(cpu::capabilities const& caps, wanted_output output) noexcept -> bool {
    using cpu::output_scheme;
    bool const single = caps.supports(output_scheme::single_range);
    bool const topa = caps.supports(output_scheme::topa);
    switch (output) {
        case wanted_output::none: return true;
        case wanted_output::any: return single || topa;
        case wanted_output::single_range: return single;
        case wanted_output::topa: return topa;
        case wanted_output::topa_of_many_entries: return topa && caps.has_topa_of_many_entries();
    }
    return false;
}

}  // namespace detail

/// What is missing for a check; empty if nothing is.
[[nodiscard]] constexpr auto missing(needs const& need, cpu::capabilities const& caps,
                                     ability_set abilities, uint32_t pages) noexcept -> text {
    if (need.is_without_pt && caps.has_pt()) { return "the processor has Intel PT"; }
    if (!need.is_without_pt && !caps.has_pt()) { return "the processor lacks Intel PT"; }
    auto const lacks = [&](ability one) { return need.abilities.has(one) && !abilities.has(one); };
    if (lacks(ability::enable)) { return "the target must not enable tracing"; }
    if (lacks(ability::execute)) { return "the target executes no snippets"; }
    if (lacks(ability::interrupt)) { return "the target receives no PMI"; }
    if (lacks(ability::xsaves)) { return "the target has no XSAVES of component 8"; }
    if (lacks(ability::reset)) { return "the target is not reset"; }
    if (lacks(ability::model_time)) { return "time passes otherwise than in the model"; }
    if (lacks(ability::global_status)) { return "the target must not access 38EH to 391H"; }
    if (need.pages > pages) { return "the target gives too few pages"; }
    if (!detail::has_output(caps, need.output)) {
        switch (need.output) {
            case wanted_output::single_range: return "CPUID.14H.0:ECX.SNGLRNGOUT is 0";
            case wanted_output::topa: return "CPUID.14H.0:ECX.TOPAOUT is 0";
            case wanted_output::topa_of_many_entries: return "CPUID.14H.0:ECX.MENTRY is 0";
            default: return "the processor stores no trace in memory";
        }
    }
    auto const runs = [&](snippet_need one) {
        return need.code != nullptr && need.code->needs_the(one);
    };
    for (auto const& one :
         few{need.has, runs(snippet_need::ptwrite) ? features::ptwrite : feature{},
             runs(snippet_need::transaction) ? features::rtm : feature{}}) {
        if (one.is_met != nullptr && !one.is_met(caps)) { return one.missing; }
    }
    return {};
}

}  // namespace ptspec::suite
