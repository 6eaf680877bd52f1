// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/preset_rows.hpp>

/// Processors as constants: real ones, and the profiles of the rule catalogue.
///
/// The model does not determine the enumeration: two processors of one model, and the core types of
/// one processor, can differ. Use CPUID where possible.
namespace ptspec::cpu::preset {

// ------------------------------------------------------------------------------------ by name

/// A processor and its name.
struct named {
    text name{};
    capabilities value{};
};

namespace detail {

constexpr auto lower_case(char letter) noexcept -> char {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
}

constexpr auto is_same_name(text one, text two) noexcept -> bool {
    if (one.size() != two.size()) { return false; }
    for (size_t i = 0; i < one.size(); ++i) {
        if (lower_case(one.data()[i]) != lower_case(two.data()[i])) { return false; }
    }
    return true;
}

constexpr auto family_of(text name) noexcept -> text {
    size_t length = 0;
    while (length < name.size() && name.data()[length] != '-') { ++length; }
    return {name.data(), length};
}

}  // namespace detail

/// All named processors: a range of `named`, whose elements are computed on access.
struct list {
    struct iterator {
        detail::row const* at = nullptr;

        [[nodiscard]] constexpr auto operator*() const noexcept -> named {
            return {at->name, detail::capabilities_of(*at)};
        }
        constexpr auto operator++() noexcept -> iterator& {
            ++at;
            return *this;
        }
        friend constexpr auto operator==(iterator, iterator) -> bool = default;
    };

    [[nodiscard]] static constexpr auto size() noexcept -> size_t {
        return sizeof(detail::rows) / sizeof(detail::rows[0]);
    }
    [[nodiscard]] static constexpr auto begin() noexcept -> iterator { return {detail::rows}; }
    [[nodiscard]] static constexpr auto end() noexcept -> iterator {
        return {detail::rows + size()};
    }
};

inline constexpr list all{};

/// The result of `find`: a processor, or nothing.
struct match {
    named found{};
    bool exists = false;

    constexpr explicit operator bool() const noexcept { return exists; }
    /// The processor. If nothing was found, it has no name and no Intel PT.
    [[nodiscard]] constexpr auto operator->() const noexcept -> named const* { return &found; }
};

/// Finds a processor by name, case-insensitively. The part of a name before its hyphen is enough if
/// no other processor shares it: "Broadwell" for "Broadwell-ULT".
[[nodiscard]] constexpr auto find(text name) noexcept -> match {
    detail::row const* family = nullptr;
    size_t members = 0;
    for (detail::row const& one : detail::rows) {
        if (detail::is_same_name(one.name, name)) {
            return {{one.name, detail::capabilities_of(one)}, true};
        }
        if (detail::is_same_name(detail::family_of(one.name), name)) {
            family = &one;
            ++members;
        }
    }
    if (members != 1) { return {}; }
    return {{family->name, detail::capabilities_of(*family)}, true};
}

// ------------------------------------------------------------------------------------ constants

namespace build_error {
void no_processor_has_this_name();
}

namespace detail {

/// Finds a processor by its exact name. Every file that includes this one pays for the search at
/// compile time. With an index instead of an iterator, and a builtin that compares, parsing
/// core.hpp takes 0.2 % less (g++ 12).
consteval auto find_exact(text name) noexcept -> capabilities {
    for (size_t i = 0; i < list::size(); ++i) {
        if (rows[i].name.length == name.length &&
            __builtin_memcmp(rows[i].name.characters, name.characters, name.length) == 0) {
            return capabilities_of(rows[i]);
        }
    }
    build_error::no_processor_has_this_name();
    return {};
}

}  // namespace detail

// Constants for use in code. The other processors are `find("Its-Name")->value`.

inline constexpr capabilities P_NONE = detail::find_exact("P-NONE");
inline constexpr capabilities P_BDW = detail::find_exact("P-BDW");
inline constexpr capabilities P_SKL = detail::find_exact("P-SKL");
inline constexpr capabilities P_ATM = detail::find_exact("P-ATM");
inline constexpr capabilities P_FUT = detail::find_exact("P-FUT");
inline constexpr capabilities P_SRO = detail::find_exact("P-SRO");
inline constexpr capabilities P_FAB = detail::find_exact("P-FAB");

inline constexpr capabilities broadwell = detail::find_exact("Broadwell-ULT");
inline constexpr capabilities skylake_x = detail::find_exact("Skylake-X");
inline constexpr capabilities cannon_lake = detail::find_exact("CannonLake");
inline constexpr capabilities ice_lake_u = detail::find_exact("IceLake-U");
inline constexpr capabilities tiger_lake = detail::find_exact("TigerLake");
inline constexpr capabilities sapphire_rapids = detail::find_exact("SapphireRapids");
inline constexpr capabilities alder_lake_p = detail::find_exact("AlderLake-P");
inline constexpr capabilities alder_lake_e = detail::find_exact("AlderLake-E");
inline constexpr capabilities arrow_lake_p = detail::find_exact("ArrowLake-P");
inline constexpr capabilities arrow_lake_e = detail::find_exact("ArrowLake-E");
inline constexpr capabilities wildcat_lake_p = detail::find_exact("WildcatLake-P");
inline constexpr capabilities wildcat_lake_e = detail::find_exact("WildcatLake-E");
inline constexpr capabilities qemu = detail::find_exact("QEMU");

}  // namespace ptspec::cpu::preset
