// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/one_copy.hpp>

#include <stddef.h>
#include <stdint.h>

// Fields and functions have the names of the manual. Some headers define these as macros:
// <termios.h> CR3, <arpa/telnet.h> IP, Linux rdmsr, and drivers the MSRs. Without the macros no
// other error follows.
#if defined(IA32_RTIT_OUTPUT_BASE) || defined(IA32_RTIT_OUTPUT_MASK_PTRS) ||                       \
    defined(IA32_RTIT_CTL) || defined(IA32_RTIT_STATUS) || defined(IA32_RTIT_CR3_MATCH) ||         \
    defined(IA32_RTIT_ADDR0_A) || defined(IA32_RTIT_ADDR0_B) || defined(IA32_RTIT_ADDR1_A) ||      \
    defined(IA32_RTIT_ADDR1_B) || defined(CR3) || defined(IP) || defined(TSC) || defined(MTC) ||   \
    defined(CTC) || defined(END) || defined(STOP) || defined(INT) || defined(NR) || defined(OS) || \
    defined(PT) || defined(IF) || defined(ID) || defined(HW) || defined(Base) || defined(Error) || \
    defined(Mask) || defined(Size) || defined(Vector) || defined(rdmsr) || defined(wrmsr)
#error "a macro has the name of a field: include ptspec before the header that defines it"
#undef IA32_RTIT_OUTPUT_BASE
#undef IA32_RTIT_OUTPUT_MASK_PTRS
#undef IA32_RTIT_CTL
#undef IA32_RTIT_STATUS
#undef IA32_RTIT_CR3_MATCH
#undef IA32_RTIT_ADDR0_A
#undef IA32_RTIT_ADDR0_B
#undef IA32_RTIT_ADDR1_A
#undef IA32_RTIT_ADDR1_B
#undef CR3
#undef IP
#undef TSC
#undef MTC
#undef CTC
#undef END
#undef STOP
#undef INT
#undef NR
#undef OS
#undef PT
#undef IF
#undef ID
#undef HW
#undef Base
#undef Error
#undef Mask
#undef Size
#undef Vector
#undef rdmsr
#undef wrmsr
#endif

/// The language-support pieces that ptspec needs and that a target without a C++ standard library
/// lacks.
namespace ptspec {

namespace detail {

#if defined(__GNUC__) || defined(__clang__)
// The builtin avoids one instantiation for each pair of types.
template <class One, class Two>
concept is_same = __is_same(One, Two);
template <class Type, class... Choices>
concept is_one_of = (__is_same(Type, Choices) || ...);
#else
template <class One, class Two>
inline constexpr bool is_same = false;
template <class Type>
inline constexpr bool is_same<Type, Type> = true;

template <class Type, class... Choices>
inline constexpr bool is_one_of = (is_same<Type, Choices> || ...);
#endif

template <bool Condition, class Yes, class No>
struct choose {
    using type = Yes;
};
template <class Yes, class No>
struct choose<false, Yes, No> {
    using type = No;
};

template <class Type>
struct bare {
    using type = Type;
};
template <class Type>
struct bare<Type const> : bare<Type> {};
template <class Type>
struct bare<Type volatile> : bare<Type> {};
template <class Type>
struct bare<Type const volatile> : bare<Type> {};
template <class Type>
struct bare<Type&> : bare<Type> {};
template <class Type>
struct bare<Type&&> : bare<Type> {};

template <class Type>
auto make() noexcept -> Type&&;

#if defined(__cpp_char8_t)
using utf8_char = char8_t;
#else
using utf8_char = char;  // -fno-char8_t
#endif

}  // namespace detail

template <class One, class Two>
concept same_as = detail::is_same<One, Two>;

template <class Type, class... Choices>
concept one_of = detail::is_one_of<Type, Choices...>;

template <class Type>
concept integral = one_of<Type, bool, char, signed char, unsigned char, wchar_t, detail::utf8_char,
                          char16_t, char32_t, short, unsigned short, int, unsigned int, long,
                          unsigned long, long long, unsigned long long>;

template <class Type>
concept enumeration = __is_enum(Type);

template <class Derived, class Base>
concept derived_from = __is_base_of(Base, Derived);

template <class From, class To>
concept convertible_to = requires(void (&take)(To), From&& from) {
    take(static_cast<From&&>(from));
};

template <class Function, class... Arguments>
concept callable = requires(Function&& function, Arguments&&... arguments) {
    static_cast<Function&&>(function)(static_cast<Arguments&&>(arguments)...);
};

template <bool Condition, class Yes, class No>
using choose_t = typename detail::choose<Condition, Yes, No>::type;

template <class Type>
using bare_t = typename detail::bare<Type>::type;

template <class Function, class... Arguments>
using result_t = decltype(detail::make<Function>()(detail::make<Arguments>()...));

/// The integer value of an enumerator.
template <enumeration Enum>
[[nodiscard]] constexpr auto underlying(Enum value) noexcept {
    return static_cast<__underlying_type(Enum)>(value);
}

/// A list of types.
template <class... Types>
struct type_list {
    static constexpr size_t size = sizeof...(Types);
};

/// A list of numbers.
template <size_t... Index>
struct index_list {};

namespace detail {

template <size_t Count, size_t... Index>
struct count_up : count_up<Count - 1, Count - 1, Index...> {};
template <size_t... Index>
struct count_up<0, Index...> {
    using type = index_list<Index...>;
};

}  // namespace detail

/// The numbers 0 to `Count` - 1.
template <size_t Count>
using make_index_list = typename detail::count_up<Count>::type;

namespace detail {

/// True if the number is a compile-time constant, or if the compiler cannot tell. Used to give a
/// clear error where a constant is required. By reference, because copying a run-time number is an
/// error in a constant expression.
template <class Number>
constexpr auto is_known([[maybe_unused]] Number const& number) noexcept -> bool {
#if defined(__GNUC__)
    return __builtin_constant_p(number);
#else
    return true;
#endif
}

}  // namespace detail

/// The number of bits that are 1. Without a popcnt instruction the builtin is a library call.
[[nodiscard]] constexpr auto popcount(uint64_t value) noexcept -> unsigned {
    unsigned count = 0;
    for (; value != 0; value &= value - 1) { ++count; }
    return count;
}

/// The position of the highest bit that is 1 (bit scan reverse). `value` must not be 0.
[[nodiscard]] constexpr auto highest_bit(uint64_t value) noexcept -> unsigned {
#if defined(__GNUC__) || defined(__clang__)
    return 63U ^ static_cast<unsigned>(__builtin_clzll(value));
#else
    unsigned position = 0;
    for (unsigned step = 32; step != 0; step /= 2) {
        if ((value >> step) != 0) {
            value >>= step;
            position += step;
        }
    }
    return position;
#endif
}

/// The position of the lowest bit that is 1 (bit scan forward). `value` must not be 0.
[[nodiscard]] constexpr auto lowest_bit(uint64_t value) noexcept -> unsigned {
#if defined(__GNUC__) || defined(__clang__)
    return static_cast<unsigned>(__builtin_ctzll(value));
#else
    return highest_bit(value & (0 - value));
#endif
}

/// Returns its argument and hides its origin from the optimizer. Keeps the compiler from merging
/// code paths that compute it differently, and from combining it with another value in one
/// register.
template <class Unsigned>
[[nodiscard]] constexpr auto hide_from_optimizer(Unsigned value) noexcept -> Unsigned {
#if defined(__GNUC__) || defined(__clang__)
    if constexpr (sizeof(Unsigned) <= sizeof(size_t)) {
        if (!__builtin_is_constant_evaluated()) { asm("" : "+r"(value)); }
    }
#endif
    return value;
}
template <class Pointee>
[[nodiscard]] constexpr auto hide_from_optimizer(Pointee* value) noexcept -> Pointee* {
#if defined(__GNUC__) || defined(__clang__)
    if (!__builtin_is_constant_evaluated()) { asm("" : "+r"(value)); }
#endif
    return value;
}

struct text;

namespace detail {

/// A string view such as std::string_view: it borrows characters, and is made of a pointer and a
/// length.
template <class Type>
concept string_view_like = !same_as<Type, text> && requires(Type const& it) {
    { it.data() } -> same_as<char const*>;
    requires __is_trivially_copyable(Type);
    requires __is_constructible(Type, char const*, size_t);
};

}  // namespace detail

/// Borrowed characters: a name or a sentence of static lifetime, or a piece of printed text.
///
/// It converts to std::string_view. The texts that `describe`, `name_of`, reflection and the tables
/// of ptspec return end in a NUL that `size()` does not count, so `printf("%s", it.data())` prints
/// them. The pieces that a printer passes to its sink do not, nor does text from a file or buffer.
struct text {
    char const* characters = "";
    size_t length = 0;

    constexpr text() noexcept = default;
    constexpr text(char const* first, size_t count) noexcept : characters{first}, length{count} {}
    template <size_t Size>
    constexpr text(char const (&literal)[Size]) noexcept : characters{literal}, length{Size - 1} {}

    [[nodiscard]] constexpr auto data() const noexcept -> char const* { return characters; }
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return length; }
    [[nodiscard]] constexpr auto begin() const noexcept -> char const* { return characters; }
    [[nodiscard]] constexpr auto end() const noexcept -> char const* { return characters + length; }

    template <detail::string_view_like View>
    constexpr operator View() const noexcept {
        return View(characters, length);
    }

    friend constexpr auto operator==(text one, text two) noexcept -> bool {
        if (one.length != two.length) { return false; }
        for (size_t i = 0; i < one.length; ++i) {
            if (one.characters[i] != two.characters[i]) { return false; }
        }
        return true;
    }
};

namespace detail {

template <class Type>
constexpr auto decorated_name() noexcept -> text {
#if defined(_MSC_VER) && !defined(__clang__)
    return __FUNCSIG__;
#else
    return __PRETTY_FUNCTION__;
#endif
}

template <auto Value>
constexpr auto decorated_value() noexcept -> text {
#if defined(_MSC_VER) && !defined(__clang__)
    return __FUNCSIG__;
#else
    return __PRETTY_FUNCTION__;
#endif
}

/// A function, because g++ remembers its results: this halves the cost of a name.
constexpr auto is_in_a_name(char letter) noexcept -> bool {
    return letter != ':' && letter != ' ' && letter != '<' && letter != ')';
}

/// The last component of a qualified name. `whole` is `... Type = a::b::Name]`, or
/// `...decorated_name<struct a::b::Name>(void) noexcept` from MSVC, and ends `suffix` characters
/// after the name.
constexpr auto last_component(text whole, size_t suffix) noexcept -> text {
    size_t const end = whole.size() - suffix;
    size_t first = end;
    while (first != 0 && is_in_a_name(whole.characters[first - 1])) { --first; }
    return {whole.characters + first, end - first};
}

struct probe_of_a_name {};
enum class probe_enum : uint8_t { named = 1 };

/// The number of characters of `whole` after `known`. `whole` must contain `known`.
constexpr auto suffix_length(text whole, text known) noexcept -> size_t {
    size_t at = whole.size() - known.size();
    while (!(text{whole.data() + at, known.size()} == known)) { --at; }
    return whole.size() - at - known.size();
}

/// The number of characters after a name, the same for every type, measured on a known name.
/// Templates, so that only translation units that use names measure it.
template <class Known>
inline constexpr size_t suffix_of_types = suffix_length(decorated_name<Known>(), "probe_of_a_name");
template <auto Known>
inline constexpr size_t suffix_of_values = suffix_length(decorated_value<Known>(), "named");

template <size_t Size>
struct terminated {
    char characters[Size + 1];
};
/// A copy of `Size` characters with a NUL after them.
template <size_t Size>
constexpr auto terminate(char const* from) noexcept -> terminated<Size> {
    terminated<Size> copy{};
    for (size_t i = 0; i < Size; ++i) { copy.characters[i] = from[i]; }
    return copy;
}

/// Returns the name of an enumerator, or nothing: a value without a name is spelled as a cast,
/// `(ptspec::reg::addr_cfg)3`.
constexpr auto if_it_is_a_name(text name) noexcept -> text {
    char const first = name.size() == 0 ? '0' : name.data()[0];
    return first == '(' || first == '-' || (first >= '0' && first <= '9') ? text{} : name;
}

template <class Type>
inline constexpr text spelled_type = last_component(decorated_name<Type>(),
                                                    suffix_of_types<probe_of_a_name>);
template <auto Value>
inline constexpr text spelled_value = if_it_is_a_name(
    last_component(decorated_value<Value>(), suffix_of_values<probe_enum::named>));

template <class Type>
inline constexpr auto type_name = terminate<spelled_type<Type>.length>(
    spelled_type<Type>.characters);
template <auto Value>
inline constexpr auto value_name = terminate<spelled_value<Value>.length>(
    spelled_value<Value>.characters);

}  // namespace detail

/// The unqualified name of a type that is not a template, as spelled in the source.
template <class Type>
[[nodiscard]] constexpr auto name_of() noexcept -> text {
    return detail::type_name<Type>.characters;
}

/// The unqualified name of an enumerator; empty for a value without a name.
template <auto Value>
[[nodiscard]] constexpr auto name_of_enumerator() noexcept -> text {
    return detail::value_name<Value>.characters;
}

}  // namespace ptspec
