// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>

/// The layout of structures in files, declared as in C.
///
/// The members of a structure are `little_endian` numbers, bytes, arrays of these, and structures.
/// They have no alignment, so that each begins where the one before it ends, on every host.
///
///     struct entry {
///         le32 pid{};
///         le32 tid{};
///         le64 time{};
///     };
///     constexpr auto copy = to_bytes(load<entry>(bytes));  // 16 bytes
namespace ptspec::file {

namespace detail {

/// The number that an integer, an enumeration or a word is in a file.
template <class Type>
struct number_of {
    using type = Type;
    static constexpr auto from(Type value) noexcept -> Type { return value; }
};
template <enumeration Type>
struct number_of<Type> {
    using type = __underlying_type(Type);
    static constexpr auto from(Type value) noexcept -> type { return underlying(value); }
};
template <class Type>
    requires requires { typename Type::raw_type; }
struct number_of<Type> {
    using type = typename Type::raw_type;
    static constexpr auto from(Type value) noexcept -> type { return value.raw; }
};

/// Converts a number between the byte order of the host and little-endian.
template <class Number>
constexpr auto swap_on_big_endian(Number value) noexcept -> Number {
    constexpr bool is_little = ptspec::detail::little_endian(1) == 1;
    constexpr unsigned unused = is_little ? 0 : 64 - 8 * unsigned{sizeof(Number)};
    return static_cast<Number>(ptspec::detail::little_endian(value) >> unused);
}

}  // namespace detail

/// A member of a structure: a number, an enumeration or a word, in little-endian order. It converts
/// from and to its value.
template <class Type>
struct little_endian {
    using number = typename detail::number_of<Type>::type;
    byte_array<sizeof(number)> bytes{};

    constexpr little_endian() noexcept = default;
    constexpr little_endian(Type value) noexcept
        : bytes{__builtin_bit_cast(
              byte_array<sizeof(number)>,
              detail::swap_on_big_endian(detail::number_of<Type>::from(value)))} {}
    constexpr operator Type() const noexcept { return value(); }
    [[nodiscard]] constexpr auto value() const noexcept -> Type {
        auto const made = detail::swap_on_big_endian(__builtin_bit_cast(number, bytes));
        if constexpr (enumeration<Type>) {
            return static_cast<Type>(made);
        } else {
            return Type{made};
        }
    }
    /// The value of a field of a word.
    template <class Field>
    [[nodiscard]] constexpr auto get() const noexcept -> typename Field::value_type {
        return value().template get<Field>();
    }
};
using le16 = little_endian<uint16_t>;
using le32 = little_endian<uint32_t>;
using le64 = little_endian<uint64_t>;

namespace detail {

/// Not in `load`, so that it stays small where all bytes are there.
template <class Structure>
constexpr auto load_part(byte_view from) noexcept -> Structure {
    auto bytes = __builtin_bit_cast(byte_array<sizeof(Structure)>, Structure{});
    copy_bytes(bytes.data(), from.data(), from.size());
    return __builtin_bit_cast(Structure, bytes);
}

}  // namespace detail

/// Loads a structure from the front of `from`. Members after the end of `from` have their default.
template <class Structure>
[[nodiscard]] constexpr auto load(byte_view from) noexcept -> Structure {
    static_assert(alignof(Structure) == 1, "a member of a structure is little_endian or a byte");
    if (from.size() < sizeof(Structure)) { return detail::load_part<Structure>(from); }
    byte_array<sizeof(Structure)> bytes;
    copy_bytes(bytes.data(), from.data(), sizeof(Structure));
    return __builtin_bit_cast(Structure, bytes);
}
/// Loads the structure at `index` of an array.
template <class Structure>
[[nodiscard]] constexpr auto load(byte_view array, size_t index) noexcept -> Structure {
    return load<Structure>(array.from(index * sizeof(Structure)));
}

/// The bytes of a structure.
template <class Structure>
[[nodiscard]] constexpr auto to_bytes(Structure const& structure) noexcept
    -> byte_array<sizeof(Structure)> {
    static_assert(alignof(Structure) == 1, "a member of a structure is little_endian or a byte");
    return __builtin_bit_cast(byte_array<sizeof(Structure)>, structure);
}

}  // namespace ptspec::file
