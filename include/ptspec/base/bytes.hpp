// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bits.hpp>
#include <ptspec/base/attribute.hpp>

/// Bytes: borrowed for reading, borrowed for writing, and owned. Little-endian loads and stores.
namespace ptspec {

/// Copies `count` bytes. Source and destination must not overlap.
constexpr void copy_bytes(uint8_t* to, uint8_t const* from, size_t count) noexcept {
#if defined(__GNUC__) || defined(__clang__)
    if (!__builtin_is_constant_evaluated()) {
        if (count != 0) { __builtin_memcpy(to, from, count); }  // memcpy requires non-null pointers
        return;
    }
#endif
    for (size_t i = 0; i < count; ++i) { to[i] = from[i]; }
}

inline constexpr size_t few_bytes = 16;

/// Copies `count` bytes like `copy_bytes`, but inline for up to 16 bytes, the size of a packet.
constexpr void copy_few_bytes(uint8_t* to, uint8_t const* from, size_t count) noexcept {
#if defined(__GNUC__) || defined(__clang__)
    // Copies the first and the last sizeof(End) bytes; the two overlap if count < 2 *
    // sizeof(End).
    auto const both_ends = [&]<class End>(End front) {
        End back{};
        size_t const back_at = count - sizeof(End);
        __builtin_memcpy(&front, from, sizeof(End));
        __builtin_memcpy(&back, from + back_at, sizeof(End));
        __builtin_memcpy(to, &front, sizeof(End));
        __builtin_memcpy(to + back_at, &back, sizeof(End));
    };
    if (!__builtin_is_constant_evaluated() && count <= few_bytes) {
        if (count >= 8) { return both_ends(uint64_t{}); }
        if (count >= 4) { return both_ends(uint32_t{}); }
        if (count >= 2) { return both_ends(uint16_t{}); }
        if (count == 1) { *to = *from; }
        return;
    }
#endif
    copy_bytes(to, from, count);
}

namespace detail {

/// Types of one byte: uint8_t, the other character types of that size, and std::byte, an
/// enumeration over unsigned char.
template <class Element>
concept byte_like = one_of<Element, unsigned char, char, signed char, detail::utf8_char> ||
                    (enumeration<Element> && same_as<__underlying_type(Element), unsigned char>);

template <class Owner>
concept has_uint8 = requires(Owner const& owner) {
    { owner.data() } -> convertible_to<uint8_t const*>;
    { owner.size() } -> convertible_to<size_t>;
};
template <class Owner>
concept has_bytes = requires(Owner const& owner) {
    requires byte_like<bare_t<decltype(*owner.data())>>;
    { owner.size() } -> convertible_to<size_t>;
};

}  // namespace detail

/// True for a type that borrows its bytes, such as std::span and std::string_view. Detected as
/// trivially copyable and constructible from a pointer and a length, which excludes arrays.
/// Specialise it for a type that the detection misses.
template <class Type>
inline constexpr bool borrows_bytes = false;
template <class Type>
    requires requires(Type const& it) {
        requires __is_trivially_copyable(Type);
        requires __is_constructible(Type, decltype(it.data()), size_t);
    }
inline constexpr bool borrows_bytes<Type> = true;

/// Borrowed bytes to read. The owner must outlive the view.
///
/// A call such as `packet::decode(read_file())` reads a temporary while it exists. A view with a
/// name, `byte_view const bytes = read_file();`, outlives the temporary: clang warns (-Wdangling),
/// g++ does not. Give the owner a name. Functions and classes that keep a view take
/// `borrowed_bytes`.
class byte_view {
public:
    constexpr byte_view() noexcept = default;
    constexpr byte_view(uint8_t const* first, size_t count) noexcept
        : first_{first}, size_{count} {}
    template <size_t Count>
    constexpr byte_view(uint8_t const (&array)[Count]) noexcept : first_{array}, size_{Count} {}
    /// Any contiguous container of uint8_t with `data()` and `size()`.
    template <detail::has_uint8 Owner>
        requires(!same_as<Owner, byte_view> && !borrows_bytes<Owner>)
    constexpr byte_view(Owner const& owner
#if defined(__clang__)
                        [[clang::lifetimebound]]
#endif
                        ) noexcept
        : byte_view{owner.data(), static_cast<size_t>(owner.size())} {
    }
    /// The same for a type that borrows its bytes, such as std::span.
    template <detail::has_uint8 Borrower>
        requires(!same_as<Borrower, byte_view> && borrows_bytes<Borrower>)
    constexpr byte_view(Borrower const& other) noexcept
        : byte_view{other.data(), static_cast<size_t>(other.size())} {}
    /// A contiguous container of `char` or std::byte. Not constexpr, since it needs a
    /// reinterpret_cast.
    template <detail::has_bytes Owner>
        requires(!detail::has_uint8<Owner> && !borrows_bytes<Owner>)
    byte_view(Owner const& owner
#if defined(__clang__)
              [[clang::lifetimebound]]
#endif
              ) noexcept
        : first_{reinterpret_cast<uint8_t const*>(owner.data())},
          size_{static_cast<size_t>(owner.size())} {
    }
    template <detail::has_bytes Borrower>
        requires(!detail::has_uint8<Borrower> && borrows_bytes<Borrower>)
    byte_view(Borrower const& other) noexcept
        : first_{reinterpret_cast<uint8_t const*>(other.data())},
          size_{static_cast<size_t>(other.size())} {}

    [[nodiscard]] constexpr auto data() const noexcept -> uint8_t const* { return first_; }
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return size_; }
    [[nodiscard]] constexpr auto empty() const noexcept -> bool { return size_ == 0; }
    [[nodiscard]] constexpr auto begin() const noexcept -> uint8_t const* { return first_; }
    [[nodiscard]] constexpr auto end() const noexcept -> uint8_t const* { return first_ + size_; }
    /// The byte at `i`, which must be below `size()`.
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> uint8_t {
        return first_[i];
    }

    /// The bytes from `offset` to the end; empty if `offset` is at or past the end.
    [[nodiscard]] constexpr auto from(size_t offset) const noexcept -> byte_view {
        return offset < size_ ? byte_view{first_ + offset, size_ - offset} : byte_view{};
    }
    /// The first `count` bytes, or all if there are fewer.
    [[nodiscard]] constexpr auto first(size_t count) const noexcept -> byte_view {
        return {first_, count < size_ ? count : size_};
    }

    friend constexpr auto operator==(byte_view one, byte_view two) noexcept -> bool {
        if (one.size_ != two.size_) { return false; }
        for (size_t i = 0; i < one.size_; ++i) {
            if (one[i] != two[i]) { return false; }
        }
        return true;
    }

private:
    uint8_t const* first_ = nullptr;
    size_t size_ = 0;
};

/// A base of readers whose `next` returns one item at a time: a range-for over one stops the build.
template <class Item>
struct read_by_next {
    template <class Never = void>
    [[nodiscard]] constexpr auto begin() const noexcept -> Item const* {
        static_assert(!same_as<Never, void>,
                      "a reader is no range: while (auto const& one = reader.next()) { .. }");
        return nullptr;
    }
    [[nodiscard]] constexpr auto end() const noexcept -> Item const* { return nullptr; }
};

/// Borrowed bytes that the callee keeps after the call returns. Takes the same arguments as
/// byte_view, except a temporary that owns its bytes.
class borrowed_bytes {
public:
    constexpr borrowed_bytes(uint8_t const* first, size_t count) noexcept : view_{first, count} {}
    template <class Owner>
        requires(!same_as<bare_t<Owner>, borrowed_bytes>)
    constexpr borrowed_bytes(Owner&& owner) noexcept : view_{view_of<Owner>(owner)} {}

    [[nodiscard]] constexpr auto view() const noexcept -> byte_view { return view_; }

private:
    template <class Owner>
    static constexpr auto view_of(auto const& owner) noexcept -> byte_view {
        constexpr bool is_view = __is_constructible(byte_view, Owner);
        static_assert(is_view, "borrowed bytes have data() and size(), and elements of one byte");
        static_assert(!is_view || same_as<Owner, Owner&> || borrows_bytes<bare_t<Owner>>,
                      "the bytes of this temporary are gone before they are read: give it a name");
        if constexpr (is_view) {
            return owner;
        } else {
            return {};
        }
    }

    byte_view view_{};
};

/// Borrowed space for bytes, filled from the front.
class byte_buffer {
public:
    constexpr byte_buffer() noexcept = default;
    constexpr byte_buffer(uint8_t* first, size_t room) noexcept : first_{first}, room_{room} {}
    template <size_t Count>
    constexpr byte_buffer(uint8_t (&array)[Count]) noexcept : first_{array}, room_{Count} {}

    /// The bytes written so far.
    [[nodiscard]] constexpr auto written() const noexcept -> byte_view { return {first_, size_}; }
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return size_; }
    /// The number of bytes that still fit.
    [[nodiscard]] constexpr auto room() const noexcept -> size_t { return room_ - size_; }
    /// The address of the next byte. A caller that writes several bytes directly then calls `grow`.
    [[nodiscard]] constexpr auto end() noexcept -> uint8_t* { return first_ + size_; }
    /// Marks `count` bytes after the last one as written, limited to `room()`.
    constexpr void grow(size_t count) noexcept { size_ += count < room() ? count : room(); }

    /// Appends all of `bytes`, or nothing if they do not fit. Returns true if they were appended.
    [[nodiscard]] constexpr auto append(byte_view bytes) noexcept -> bool {
        if (bytes.size() > room()) { return false; }
        for (size_t i = 0; i < bytes.size(); ++i) { first_[size_ + i] = bytes[i]; }
        size_ += bytes.size();
        return true;
    }
    /// Appends the first `count` of sixteen bytes. If there is room, it stores all sixteen with two
    /// stores, so the bytes after the first `count` are overwritten.
    ///
    /// always_inline: without it writing takes up to 1.6 % more instructions (g++ 12).
    PTSPEC_ATTRIBUTE(always_inline) [[nodiscard]]
    constexpr auto append(wide_bits bytes, size_t count) noexcept -> bool;

private:
    uint8_t* first_ = nullptr;
    size_t room_ = 0;
    size_t size_ = 0;
};

/// Owned bytes: an array of `Count` bytes.
template <size_t Count>
struct byte_array {
    uint8_t bytes[Count] = {};

    [[nodiscard]] constexpr auto data() const noexcept -> uint8_t const* { return bytes; }
    [[nodiscard]] constexpr auto data() noexcept -> uint8_t* { return bytes; }
    [[nodiscard]] static constexpr auto size() noexcept -> size_t { return Count; }
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> uint8_t { return bytes[i]; }

    friend constexpr auto operator==(byte_array const&, byte_array const&) -> bool = default;
};

namespace detail {

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
constexpr auto little_endian(uint64_t value) noexcept -> uint64_t {
    return __builtin_bswap64(value);
}
#else
constexpr auto little_endian(uint64_t value) noexcept -> uint64_t { return value; }
#endif

}  // namespace detail

/// Loads the eight bytes at `from` as a little-endian number.
[[nodiscard]] constexpr auto load_le64(uint8_t const* from) noexcept -> uint64_t {
#if defined(__GNUC__) || defined(__clang__)
    if (!__builtin_is_constant_evaluated()) {
        uint64_t value = 0;
        __builtin_memcpy(&value, from, sizeof value);
        return detail::little_endian(value);
    }
#endif
    return uint64_t{from[0]} | uint64_t{from[1]} << 8 | uint64_t{from[2]} << 16 |
           uint64_t{from[3]} << 24 | uint64_t{from[4]} << 32 | uint64_t{from[5]} << 40 |
           uint64_t{from[6]} << 48 | uint64_t{from[7]} << 56;
}

/// Loads up to eight bytes as a little-endian number, zero-extended.
[[nodiscard]] constexpr auto load_le(byte_view from) noexcept -> uint64_t {
    if (from.size() >= 8) { return load_le64(from.data()); }
    uint64_t value = 0;
    for (size_t i = 0; i < from.size(); ++i) { value |= uint64_t{from[i]} << (8 * i); }
    return value;
}

/// Loads up to sixteen bytes as a little-endian number, zero-extended.
[[nodiscard]] constexpr auto load_le_wide(byte_view from) noexcept -> wide_bits {
    return from.size() >= 16 ? wide_bits{load_le64(from.data()), load_le64(from.data() + 8)}
                             : wide_bits{load_le(from.first(8)), load_le(from.from(8))};
}

/// Stores a number as eight little-endian bytes.
constexpr void store_le64(uint8_t* to, uint64_t value) noexcept {
#if defined(__GNUC__) || defined(__clang__)
    if (!__builtin_is_constant_evaluated()) {
        uint64_t const bytes = detail::little_endian(value);
        __builtin_memcpy(to, &bytes, sizeof bytes);
        return;
    }
#endif
    for (unsigned i = 0; i < 8; ++i) { to[i] = static_cast<uint8_t>(value >> 8 * i); }
}

/// Converts a number to sixteen little-endian bytes.
[[nodiscard]] constexpr auto to_le(wide_bits value) noexcept -> byte_array<16> {
    byte_array<16> bytes;
    store_le64(bytes.data(), value.low);
    store_le64(bytes.data() + 8, value.high);
    return bytes;
}

namespace detail {

/// Stores the first `count` bytes of a little-endian number.
constexpr void store_first_bytes(uint8_t* to, uint64_t low, uint64_t high, size_t count) noexcept {
    copy_bytes(to, to_le({low, high}).data(), count);
}

}  // namespace detail

constexpr auto byte_buffer::append(wide_bits bytes, size_t count) noexcept -> bool {
    if (room() < 16) {
        if (room() < count) { return false; }
        detail::store_first_bytes(first_ + size_, bytes.low, bytes.high, count);
        size_ += count;
        return true;
    }
    uint8_t* const next = end();
    size_ += count;
    store_le64(next, bytes.low);
    store_le64(next + 8, bytes.high);
    return true;
}

}  // namespace ptspec

#undef PTSPEC_ATTRIBUTE
