// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>

/// The layout of records in files: numbers at fixed bytes, little-endian.
namespace ptspec::file {

/// A number at byte `Offset` of a record, in little-endian order.
template <size_t Offset, class Type>
    requires one_of<Type, uint8_t, uint16_t, uint32_t, uint64_t>
struct member {
    using value_type = Type;
    static constexpr size_t first = Offset;
    static constexpr size_t end = Offset + sizeof(Type);
};

/// Bytes `First` to `Last` of a record that are no number, or have no meaning.
template <size_t First, size_t Last>
    requires(First <= Last)
struct gap {
    static constexpr size_t first = First;
    static constexpr size_t end = Last + 1;
};

template <class Lower, class Upper>
concept directly_before = Lower::end == Upper::first;

namespace detail {

template <class One, class Two>
struct neighbours {
    static_assert(directly_before<One, Two>, "these two members overlap or leave a gap");
};

/// The end of the last member. Members that do not tile the bytes stop the build.
template <class First, class... Others>
struct tiling {
    static constexpr size_t size = First::end;
};
template <class First, class Second, class... Others>
struct tiling<First, Second, Others...> {
    static_assert(sizeof(neighbours<First, Second>) != 0);
    static constexpr size_t size = tiling<Second, Others...>::size;
};

}  // namespace detail

/// All members of the fixed part of a record, from byte 0 on. Members that do not tile it stop the
/// build.
template <class First, class... Others>
struct byte_layout {
    static_assert(First::first == 0, "the first member has to begin at byte 0");
    static constexpr size_t size = detail::tiling<First, Others...>::size;
    static_assert(size != 0);  // checks the tiling, even if the layout is never used
};

/// Stores a member of the record that begins at `record`.
template <class Member>
constexpr void store(uint8_t* record, typename Member::value_type value) noexcept {
    for (size_t i = 0; i < sizeof value; ++i) {
        record[Member::first + i] = static_cast<uint8_t>(uint64_t{value} >> (8 * i));
    }
}

/// Loads a member of a record. Bytes after the end of `record` count as 0.
template <class Member>
[[nodiscard]] constexpr auto load(byte_view record) noexcept -> typename Member::value_type {
    return static_cast<typename Member::value_type>(load_le(record.from(Member::first)));
}

}  // namespace ptspec::file
