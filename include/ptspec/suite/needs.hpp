// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/suite/finding.hpp>
#include <ptspec/suite/target.hpp>

namespace ptspec::suite {

/// An output scheme that a check needs, or any that the processor has.
enum class wanted_output : uint8_t { none, any, single_range, topa, topa_of_many_entries };

/// What a check needs. If the target or the processor lacks it, the check is skipped.
struct needs {
    uint32_t pages = 0;  ///< of given memory
    wanted_output output = wanted_output::none;
    ability_set abilities{};
    bool (*has)(cpu::capabilities const&) = nullptr;  ///< true if the processor has the feature
    text feature{};                                   ///< its name
    snippet const* code = nullptr;                    ///< that it executes
    bool is_without_pt = false;  ///< the processor must lack Intel PT instead of having it
    bool is_of_kind = false;     ///< the target is held to a kind of processor
    bool asks_absence = false;   ///< an MSR that does not exist must raise #GP
    bool is_dangerous = false;   ///< may write outside the given pages if a rule is broken

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
    [[nodiscard]] constexpr auto with(bool (*feature_of)(cpu::capabilities const&),
                                      text name) const noexcept -> needs {
        auto more = *this;
        more.has = feature_of;
        more.feature = name;
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
    if (lacks(ability::user)) { return "the target has no code at CPL 3"; }
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
    if (need.has != nullptr && !need.has(caps)) { return need.feature; }
    if (need.code != nullptr) {
        if (need.code->needs_the(snippet_need::ptwrite) &&
            !caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::PTWRITE>()) {
            return "CPUID.14H.0:EBX.PTWRITE is 0";
        }
        if (need.code->needs_the(snippet_need::transaction) &&
            !caps.leaf_07_0_ebx.get<reg::cpuid_07h_0_ebx::RTM>()) {
            return "CPUID.07H.0:EBX.RTM is 0";
        }
        if (need.code->needs_the(snippet_need::user) && !abilities.has(ability::user)) {
            return "the target has no code at CPL 3";
        }
    }
    return {};
}

}  // namespace ptspec::suite
