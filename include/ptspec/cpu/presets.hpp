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

}  // namespace detail

/// All named processors: a range of `named`, whose elements are computed on access.
struct list {
    struct iterator {
        detail::row const* at = nullptr;

        [[nodiscard]] constexpr auto operator*() const noexcept -> named {
            return {at->name, detail::made_of(*at)};
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
    /// When nothing was found: a processor without a name and without Intel PT.
    [[nodiscard]] constexpr auto operator->() const noexcept -> named const* { return &found; }
};

/// Finds a processor by name, case-insensitively.
[[nodiscard]] constexpr auto find(text name) noexcept -> match {
    for (detail::row const& one : detail::rows) {
        if (detail::is_same_name(one.name, name)) {
            return {{one.name, detail::made_of(one)}, true};
        }
    }
    return {};
}

// ------------------------------------------------------------------------------------ constants

namespace build_error {
void no_processor_has_this_name();
}

namespace detail {

/// Finds a processor by its exact name. A builtin compares, because every file that includes this
/// one pays for the search at compile time.
consteval auto named_in_the_table(text name) noexcept -> capabilities {
    for (row const& one : rows) {
        if (one.name.length == name.length &&
            __builtin_memcmp(one.name.characters, name.characters, name.length) == 0) {
            return made_of(one);
        }
    }
    build_error::no_processor_has_this_name();
    return {};
}

}  // namespace detail

// Constants for use in code. The other processors are `find("Its-Name")->value`.

inline constexpr capabilities P_NONE = detail::named_in_the_table("P-NONE");
inline constexpr capabilities P_BDW = detail::named_in_the_table("P-BDW");
inline constexpr capabilities P_SKL = detail::named_in_the_table("P-SKL");
inline constexpr capabilities P_ATM = detail::named_in_the_table("P-ATM");
inline constexpr capabilities P_FUT = detail::named_in_the_table("P-FUT");
inline constexpr capabilities P_SRO = detail::named_in_the_table("P-SRO");
inline constexpr capabilities P_FAB = detail::named_in_the_table("P-FAB");

inline constexpr capabilities broadwell_ult = detail::named_in_the_table("Broadwell-ULT");
inline constexpr capabilities skylake_x = detail::named_in_the_table("Skylake-X");
inline constexpr capabilities cannon_lake = detail::named_in_the_table("CannonLake");
inline constexpr capabilities ice_lake_u = detail::named_in_the_table("IceLake-U");
inline constexpr capabilities tiger_lake = detail::named_in_the_table("TigerLake");
inline constexpr capabilities arrow_lake_p = detail::named_in_the_table("ArrowLake-P");
inline constexpr capabilities arrow_lake_e = detail::named_in_the_table("ArrowLake-E");
inline constexpr capabilities wildcat_lake_p = detail::named_in_the_table("WildcatLake-P");
inline constexpr capabilities wildcat_lake_e = detail::named_in_the_table("WildcatLake-E");
inline constexpr capabilities qemu = detail::named_in_the_table("QEMU");

}  // namespace ptspec::cpu::preset
