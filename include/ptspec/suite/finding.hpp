// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/address.hpp>
#include <ptspec/base/rule.hpp>

/// A suite of checks that holds a processor, a hypervisor or an emulator against the rules.
namespace ptspec::suite {

/// A few values to try: `for (uint64_t const value : few{...})`, without <initializer_list>.
template <class Type, size_t Count>
struct few {
    Type all[Count];

    [[nodiscard]] constexpr auto begin() const noexcept -> Type const* { return all; }
    [[nodiscard]] constexpr auto end() const noexcept -> Type const* { return all + Count; }
};
template <class Type, class... More>
few(Type, More...) -> few<Type, 1 + sizeof...(More)>;

/// What a check found.
enum class outcome : uint8_t {
    holds,     ///< each of its rules holds
    broken,    ///< a rule is broken: `which`, `wrote`, `expected`, `seen`
    observed,  ///< the rules leave a choice, and this is what the target does: `seen`
    unsteady,  ///< repeated runs differ
    skipped,   ///< the target or the processor lacks what the check needs: `detail`
    error,     ///< the check or its target failed, not a rule: `detail`
};

[[nodiscard]] constexpr auto name_of(outcome what) noexcept -> text {
    switch (what) {
        case outcome::holds: return "holds";
        case outcome::broken: return "broken";
        case outcome::observed: return "observed";
        case outcome::unsteady: return "unsteady";
        case outcome::skipped: return "skipped";
        case outcome::error: return "error";
    }
    return {};
}

/// The result of a check, and of what led to it: an access, a position, or a packet.
struct [[nodiscard]] finding {
    outcome what = outcome::holds;
    rule which = rule::none;  ///< the broken rule
    msr_index msr{};          ///< 0: no MSR
    uint64_t wrote = 0;
    uint64_t expected = 0;
    uint64_t seen = 0;
    text detail{};  ///< what was compared, why it was skipped, or the name of the observation

    [[nodiscard]] constexpr auto is_broken() const noexcept -> bool {
        return what == outcome::broken;
    }
    friend constexpr auto operator==(finding const&, finding const&) -> bool = default;
};

namespace build_error {

/// The id of a rule has the form "REG-004".
void not_the_id_of_a_rule();

}  // namespace build_error

/// A rule of the catalogue by its id, such as "REG-004". Also a rule that no other function of the
/// library returns, which has no enumerator.
[[nodiscard]] consteval auto rule_of(text id) noexcept -> rule {
    constexpr char families[][4] = {"REG", "OUT", "PKT", "GEN", "PRG"};
    char const* const it = id.data();
    if (id.size() == 7 && it[3] == '-') {
        unsigned number = 0;
        for (unsigned i = 4; i < 7; ++i) {
            number = number * 10 + static_cast<unsigned>(it[i] - '0');
        }
        for (unsigned family = 0; family < 5; ++family) {
            if (text{it, 3} == text{families[family], 3}) {
                return static_cast<rule>(1000 * (family + 1) + number);
            }
        }
    }
    build_error::not_the_id_of_a_rule();
    return rule::none;
}

namespace literals {

[[nodiscard]] consteval auto operator""_rule(char const* id, size_t size) noexcept -> rule {
    return rule_of({id, size});
}

}  // namespace literals

/// The rules that a check can find broken, the most important first.
struct rule_list {
    static constexpr unsigned max_count = 32;

    rule ids[max_count] = {};
    unsigned count = 0;

    template <size_t... Sizes>
    consteval rule_list(char const (&... list)[Sizes]) noexcept
        : ids{rule_of(list)...}, count{sizeof...(Sizes)} {}

    /// The list with another rule before it.
    [[nodiscard]] consteval auto after(rule first) const noexcept -> rule_list {
        auto made = *this;
        for (unsigned i = made.count++; i != 0; --i) { made.ids[i] = made.ids[i - 1]; }
        made.ids[0] = first;
        return made;
    }

    [[nodiscard]] constexpr auto begin() const noexcept -> rule const* { return ids; }
    [[nodiscard]] constexpr auto end() const noexcept -> rule const* { return ids + count; }
    [[nodiscard]] constexpr auto has(rule one) const noexcept -> bool {
        for (rule const id : *this) {
            if (id == one) { return true; }
        }
        return false;
    }
};

}  // namespace ptspec::suite
