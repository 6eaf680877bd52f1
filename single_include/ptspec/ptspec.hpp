// SPDX-License-Identifier: BSL-1.0
//
// ptspec 0.1.0: Intel Processor Trace, written down as C++20. The whole library in one header.
//
// Generated from include/ptspec/ptspec.hpp by single_include/amalgamate.py. Do not edit.
#pragma once

#include <stddef.h>
#include <stdint.h>

// ---- ptspec/version.hpp ----

#define PTSPEC_VERSION_MAJOR 0
#define PTSPEC_VERSION_MINOR 1
#define PTSPEC_VERSION_PATCH 0

namespace ptspec {

/// The version of these headers. Before 1.0 a minor version may change the API.
struct version_number {
    int major_version;
    int minor_version;
    int patch_version;

    friend constexpr auto operator==(version_number const&, version_number const&)
        -> bool = default;
};

inline constexpr version_number version{PTSPEC_VERSION_MAJOR, PTSPEC_VERSION_MINOR,
                                        PTSPEC_VERSION_PATCH};

}  // namespace ptspec

// ---- ptspec/lang.hpp ----

/// The handful of language-support pieces that ptspec needs and that a target without a C++
/// standard library does not have.
namespace ptspec {

namespace detail {

template <class One, class Two>
inline constexpr bool is_same = false;
template <class Type>
inline constexpr bool is_same<Type, Type> = true;

template <class Type, class... Choices>
inline constexpr bool is_one_of = (is_same<Type, Choices> || ...);

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

}  // namespace detail

template <class One, class Two>
concept same_as = detail::is_same<One, Two>;

template <class Type, class... Choices>
concept one_of = detail::is_one_of<Type, Choices...>;

template <class Type>
concept integral = one_of<Type, bool, char, signed char, unsigned char, wchar_t, char8_t, char16_t,
                          char32_t, short, unsigned short, int, unsigned int, long, unsigned long,
                          long long, unsigned long long>;

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

/// The integer behind an enumerator.
template <enumeration Enum>
constexpr auto underlying(Enum value) noexcept {
    return static_cast<__underlying_type(Enum)>(value);
}

/// A list of types, and nothing but the list.
template <class... Types>
struct type_list {
    static constexpr size_t size = sizeof...(Types);
};

/// A list of numbers, and nothing but the list.
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

/// 0 to `Count` - 1.
template <size_t Count>
using make_index_list = typename detail::count_up<Count>::type;

/// How many bits are 1. No builtin: where there is no instruction it is a call of a library.
constexpr auto popcount(uint64_t value) noexcept -> unsigned {
    unsigned count = 0;
    for (; value != 0; value &= value - 1) { ++count; }
    return count;
}

/// The position of the highest bit that is 1. `value` must not be 0.
constexpr auto highest_bit(uint64_t value) noexcept -> unsigned {
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

/// The position of the lowest bit that is 1. `value` must not be 0.
constexpr auto lowest_bit(uint64_t value) noexcept -> unsigned {
    return highest_bit(value & (0 - value));
}

/// A borrowed string that lives as long as the program: a name or a sentence.
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

/// Cuts the last component out of `... Type = a::b::Name]`, or out of MSVC's
/// `...decorated_name<struct a::b::Name>(void) noexcept`.
constexpr auto last_component(text whole, size_t behind) noexcept -> text {
    size_t const end = whole.size() - behind;
    size_t first = end;
    while (first != 0 && whole.characters[first - 1] != ':' && whole.characters[first - 1] != ' ' &&
           whole.characters[first - 1] != '<' && whole.characters[first - 1] != ')') {
        --first;
    }
    return {whole.characters + first, end - first};
}

struct probe_of_a_name {};
enum class probe_of_a_value : uint8_t { named = 1 };

/// How many characters of `whole` stand behind `known`, which is in it.
constexpr auto behind_the_name(text whole, text known) noexcept -> size_t {
    size_t at = whole.size() - known.size();
    while (!(text{whole.data() + at, known.size()} == known)) { --at; }
    return whole.size() - at - known.size();
}

}  // namespace detail

/// The unqualified name of a type that is not a template, as it is spelled in the source.
template <class Type>
constexpr auto name_of() noexcept -> text {
    // What stands behind the name is the same for every type: measured on a type whose name is
    // known.
    constexpr auto behind = detail::behind_the_name(
        detail::decorated_name<detail::probe_of_a_name>(), "probe_of_a_name");
    return detail::last_component(detail::decorated_name<Type>(), behind);
}

/// The unqualified name of an enumerator; empty for a value that has none.
template <auto Value>
constexpr auto name_of_enumerator() noexcept -> text {
    constexpr auto behind = detail::behind_the_name(
        detail::decorated_value<detail::probe_of_a_value::named>(), "named");
    // A value without a name is spelled as a cast: `(ptspec::reg::addr_cfg)3`.
    constexpr auto name = detail::last_component(detail::decorated_value<Value>(), behind);
    constexpr char first = name.size() == 0 ? '0' : name.data()[0];
    return first == '(' || first == '-' || (first >= '0' && first <= '9') ? text{} : name;
}

}  // namespace ptspec

// ---- ptspec/rule.hpp ----

namespace ptspec {

namespace detail {

/// Where the numbers of each family of rules begin: the thousands tell the family.
enum rule_family : uint16_t { reg = 1000, out = 2000, pkt = 3000, gen = 4000, prg = 5000 };

}  // namespace detail

/// A rule that something broke, under its number in the rule catalogue.
///
/// Only rules that a function of this library returns are listed. `none` means: no rule was broken.
enum class rule : uint16_t {
    none = 0,
    OUT_022 = detail::out + 22,
    OUT_023 = detail::out + 23,
    OUT_024 = detail::out + 24,
    OUT_060 = detail::out + 60,
    OUT_061 = detail::out + 61,
    OUT_062 = detail::out + 62,
    OUT_063 = detail::out + 63,
    OUT_065 = detail::out + 65,
    OUT_066 = detail::out + 66,
    PKT_010 = detail::pkt + 10,
    PKT_012 = detail::pkt + 12,
    PKT_013 = detail::pkt + 13,
    PKT_015 = detail::pkt + 15,
    PKT_033 = detail::pkt + 33,
    PKT_036 = detail::pkt + 36,
    PKT_037 = detail::pkt + 37,
    PKT_052 = detail::pkt + 52,
    PKT_089 = detail::pkt + 89,
    PKT_090 = detail::pkt + 90,
    PKT_104 = detail::pkt + 104,
    PKT_110 = detail::pkt + 110,
    PKT_131 = detail::pkt + 131,
    PKT_173 = detail::pkt + 173,
    PKT_255 = detail::pkt + 255,
    PKT_340 = detail::pkt + 340,
    PKT_344 = detail::pkt + 344,
    PKT_347 = detail::pkt + 347,
};

/// One sentence that says what the rule demands.
[[nodiscard]] constexpr auto sentence_of(rule which) noexcept -> text {
    switch (which) {
        case rule::none: return "no rule is broken";
        case rule::OUT_022:
            return "the mask of a single-range output has to be contiguous from bit 0";
        case rule::OUT_023:
            return "the base of a single-range output has to be aligned to its size";
        case rule::OUT_024: return "the output offset has to lie inside the single-range region";
        case rule::OUT_060: return "bits 1, 3, 5, 10 and 11 of a ToPA entry are reserved";
        case rule::OUT_061: return "a ToPA table has to begin at a multiple of 4 KB";
        case rule::OUT_062:
            return "the base of an output region has to be aligned to the region's size";
        case rule::OUT_063: return "an address in a ToPA entry has to lie below 2^MAXPHYADDR";
        case rule::OUT_065: return "a ToPA entry with END may have neither INT nor STOP";
        case rule::OUT_066: return "entry 0 of a ToPA table has to be an output region, not END";
        case rule::PKT_010: return "these bytes begin another packet";
        case rule::PKT_012: return "no packet has this byte after 02";
        case rule::PKT_013: return "no packet has this byte after 02 C3";
        case rule::PKT_015: return "no packet begins with this byte";
        case rule::PKT_033: return "a TNT.short carries 1 to 6 branches";
        case rule::PKT_036: return "a TNT.long needs a stop bit";
        case rule::PKT_037: return "a TNT.long carries at least one branch";
        case rule::PKT_052: return "IPBytes 5 and 7 are reserved";
        case rule::PKT_089: return "MODE leaves 2 to 7 are reserved";
        case rule::PKT_090: return "CS.L with CS.D, and InTX with TXAbort, have no meaning";
        case rule::PKT_104: return "a reserved bit of TMA is set: the packet may be corrupt";
        case rule::PKT_110: return "the value of a CYC has to fit in 64 bits";
        case rule::PKT_131: return "a PSB is 02 82 eight times";
        case rule::PKT_173: return "PayloadBytes 2 and 3 are reserved";
        case rule::PKT_255: return "the packet needs more bytes than there are";
        case rule::PKT_340: return "the value does not fit its field";
        case rule::PKT_344:
            return "this byte would be read as another packet inside or outside a block";
        case rule::PKT_347: return "there is no room for the whole packet";
    }
    return "unknown rule";
}

/// A rule's id as the catalogue spells it, `OUT-062`.
struct rule_id {
    char letters[8] = {'n', 'o', 'n', 'e'};

    constexpr explicit rule_id(rule which) noexcept {
        auto const number = underlying(which);
        if (number < detail::reg) { return; }
        char const families[][4] = {"REG", "OUT", "PKT", "GEN", "PRG"};
        for (unsigned i = 0; i < 3; ++i) { letters[i] = families[(number / 1000U - 1U) % 5U][i]; }
        letters[3] = '-';
        letters[4] = static_cast<char>('0' + number / 100U % 10U);
        letters[5] = static_cast<char>('0' + number / 10U % 10U);
        letters[6] = static_cast<char>('0' + number % 10U);
    }

    [[nodiscard]] constexpr auto view() const noexcept -> text {
        return {letters, letters[4] == 0 ? size_t{4} : size_t{7}};
    }
};

}  // namespace ptspec

// ---- ptspec/raw_bits.hpp ----

/// Bits as numbers: masks, and words that are longer than a machine's.
namespace ptspec {

/// The `count` lowest bits set. `count` is at most 64.
constexpr auto low_bits(unsigned count) noexcept -> uint64_t {
    return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/// Sixteen bytes as one number, for words that are longer than a machine's.
struct wide_bits {
    uint64_t low = 0;
    uint64_t high = 0;

    friend constexpr auto operator==(wide_bits const&, wide_bits const&) -> bool = default;
    friend constexpr auto operator&(wide_bits a, wide_bits b) noexcept -> wide_bits {
        return {a.low & b.low, a.high & b.high};
    }
    friend constexpr auto operator|(wide_bits a, wide_bits b) noexcept -> wide_bits {
        return {a.low | b.low, a.high | b.high};
    }
    friend constexpr auto operator~(wide_bits a) noexcept -> wide_bits { return {~a.low, ~a.high}; }
};

namespace detail {

/// Bits `lsb` and up of a raw word, right-justified; what lies above bit 63 of the result is cut
/// off.
template <class Raw>
constexpr auto from_bit(Raw raw, unsigned lsb) noexcept -> uint64_t {
    if constexpr (same_as<Raw, wide_bits>) {
        return lsb >= 64  ? raw.high >> (lsb - 64)
               : lsb == 0 ? raw.low
                          : raw.low >> lsb | raw.high << (64 - lsb);
    } else {
        return static_cast<uint64_t>(raw) >> lsb;
    }
}

/// A number put at bit `lsb` of an otherwise empty word.
template <class Raw>
constexpr auto to_bit(uint64_t number, unsigned lsb) noexcept -> Raw {
    if constexpr (same_as<Raw, wide_bits>) {
        return lsb >= 64  ? wide_bits{0, number << (lsb - 64)}
               : lsb == 0 ? wide_bits{number, 0}
                          : wide_bits{number << lsb, number >> (64 - lsb)};
    } else {
        return static_cast<Raw>(number << lsb);
    }
}

template <class Raw>
constexpr auto run_of_bits(unsigned msb, unsigned lsb) noexcept -> Raw {
    if constexpr (same_as<Raw, wide_bits>) {
        return {lsb >= 64 ? 0 : low_bits(msb + 1) & ~low_bits(lsb),
                msb < 64 ? 0 : low_bits(msb - 63) & ~(lsb < 64 ? 0 : low_bits(lsb - 64))};
    } else {
        return static_cast<Raw>(low_bits(msb + 1) & ~low_bits(lsb));
    }
}

}  // namespace detail

}  // namespace ptspec

// ---- ptspec/bits.hpp ----

/// Bit ranges, and what they are in a word: fields, reserved runs, opcodes.
///
/// A row is a type: compilers print type names, so every mistake names the field, and a value of a
/// field's type is "this field, this value". Bit ranges are written `msb, lsb`.
namespace ptspec {

/// Functions that are declared and never defined. Calling one in a constant expression stops the
/// build, and the compiler names it: the name is the message.
namespace build_error {
void value_does_not_fit_in_the_field();
void address_has_bits_outside_the_field();
}  // namespace build_error

// ------------------------------------------------------------------------------------ rows

/// What a row of a layout is.
enum class row_kind : uint8_t {
    field,     ///< software reads and writes it
    reserved,  ///< reads 0; what writing 1 does is the word's rule
    other,     ///< belongs to somebody else: preserved, never reserved
    fixed,     ///< opcode bits of a packet: another value is another packet
};

/// What happens to a written bit.
enum class row_access : uint8_t {
    plain,          ///< it is stored
    write_ignored,  ///< the old value stays
    forced_1,       ///< it reads 1 whatever was written
    read_only,      ///< the processor alone writes it
};

/// What a fixed row that holds another value makes of a packet.
enum class mismatch : uint8_t {
    bad_opcode,  ///< it is not this packet
    reserved,    ///< the value has no meaning
    bad_packet,  ///< it is this packet, damaged
};

template <unsigned Msb, unsigned Lsb = Msb>
struct bit_range {
    static_assert(Msb >= Lsb, "a bit range is written msb, lsb");
    static constexpr unsigned msb = Msb;
    static constexpr unsigned lsb = Lsb;
    static constexpr unsigned width = Msb - Lsb + 1;
    static constexpr row_kind kind = row_kind::field;
    static constexpr row_access access = row_access::plain;
    static constexpr bool is_address = false;
    static constexpr bool ends_at_max_phys_addr = false;
    static constexpr bool selects_the_payload = false;
};

template <unsigned Msb, unsigned Lsb = Msb>
struct reserved : bit_range<Msb, Lsb> {
    static constexpr row_kind kind = row_kind::reserved;
};

/// Bits of a neighbour that Intel PT does not touch.
template <unsigned Msb, unsigned Lsb = Msb>
struct other : bit_range<Msb, Lsb> {
    static constexpr row_kind kind = row_kind::other;
};

/// Opcode bits. Whoever holds another value there holds another packet.
template <unsigned Msb, unsigned Lsb, uint64_t Value>
struct fixed : bit_range<Msb, Lsb> {
    static_assert(Msb < Lsb + 64 && Value <= low_bits(Msb - Lsb + 1));
    static constexpr row_kind kind = row_kind::fixed;
    static constexpr mismatch otherwise = mismatch::bad_opcode;
    static constexpr uint64_t value = Value;
};

/// Fixed bits that choose among packets of one opcode; a value that no packet has is reserved.
template <unsigned Msb, unsigned Lsb, uint64_t Value>
struct leaf : fixed<Msb, Lsb, Value> {
    static constexpr mismatch otherwise = mismatch::reserved;
};

/// Fixed bits behind the opcode; another value means that the packet is damaged.
template <unsigned Msb, unsigned Lsb, uint64_t Value>
struct pattern : fixed<Msb, Lsb, Value> {
    static constexpr mismatch otherwise = mismatch::bad_packet;
};

/// What the encoding in a field amounts to: `{8, "crystal cycles"}`. Without a unit it says nothing.
///
/// A field whose number is an encoding declares `static constexpr auto amount(uint64_t encoding)
/// noexcept -> quantity`.
struct quantity {
    uint64_t count = 0;
    text unit{};
};

// ------------------------------------------------------------------------------------ fields

namespace detail {

template <integral Number>
constexpr auto is_negative(Number number) noexcept -> bool {
    if constexpr (static_cast<Number>(-1) < Number{}) {
        return number < 0;
    } else {
        return false;
    }
}

}  // namespace detail

/// A run-time number of which the bits that fit are kept: `MTCFreq{wrapped{n}}`.
struct wrapped {
    uint64_t value;
};

/// A constant that may depend on a template parameter: `MTCFreq{constant<N>}`.
template <uint64_t Value>
struct constant_number {};
template <uint64_t Value>
inline constexpr constant_number<Value> constant{};

/// A field that holds a number.
template <unsigned Msb, unsigned Lsb = Msb>
struct field : bit_range<Msb, Lsb> {
    static_assert(Msb < Lsb + 64);
    using value_type = uint64_t;
    value_type value;

    static constexpr auto fits(uint64_t number) noexcept -> bool {
        return number <= low_bits(Msb - Lsb + 1);
    }
    static constexpr auto from_number(uint64_t number) noexcept -> value_type { return number; }
    constexpr auto number() const noexcept -> uint64_t { return value; }

    consteval field(integral auto literal) : value{static_cast<value_type>(literal)} {
        if (detail::is_negative(literal) || !fits(value)) {
            build_error::value_does_not_fit_in_the_field();
        }
    }
    constexpr field(wrapped number) noexcept : value{number.value & low_bits(Msb - Lsb + 1)} {}
    template <uint64_t Number>
        requires(fits(Number))
    constexpr field(constant_number<Number>) noexcept : value{Number} {}
};

/// A field of one bit.
template <unsigned Position>
struct flag : bit_range<Position> {
    using value_type = bool;
    value_type value;

    static constexpr auto fits(uint64_t number) noexcept -> bool { return number <= 1; }
    static constexpr auto from_number(uint64_t number) noexcept -> value_type {
        return number != 0;
    }
    constexpr auto number() const noexcept -> uint64_t { return value ? 1 : 0; }

    constexpr flag(same_as<bool> auto on) noexcept : value{on} {}
    constexpr flag(wrapped number) noexcept : value{(number.value & 1) != 0} {}
};

/// A field whose encodings have names.
template <unsigned Msb, unsigned Lsb, enumeration Enum>
struct enumerated : bit_range<Msb, Lsb> {
    using value_type = Enum;
    value_type value;

    static constexpr auto fits(uint64_t number) noexcept -> bool {
        return number <= low_bits(Msb - Lsb + 1);
    }
    static constexpr auto from_number(uint64_t number) noexcept -> value_type {
        return static_cast<value_type>(number);
    }
    constexpr auto number() const noexcept -> uint64_t {
        return static_cast<uint64_t>(value) & low_bits(Msb - Lsb + 1);
    }

    constexpr enumerated(Enum encoding) noexcept : value{encoding} {}
    constexpr enumerated(wrapped number) noexcept
        : value{static_cast<value_type>(number.value & low_bits(Msb - Lsb + 1))} {}
};

/// A field that holds the upper bits of an address: its value is the whole address, of which the
/// bits below `LowestAddressBit` are 0. The address bits at and above MAXPHYADDR are reserved.
template <unsigned Msb, unsigned Lsb, unsigned LowestAddressBit = Lsb>
struct address_field : bit_range<Msb, Lsb> {
    using value_type = uint64_t;
    value_type value;
    static constexpr bool is_address = true;
    static constexpr bool ends_at_max_phys_addr = true;
    static constexpr unsigned lowest_address_bit = LowestAddressBit;
    static constexpr uint64_t address_mask = low_bits(Msb - Lsb + 1) << LowestAddressBit;

    static constexpr auto fits(uint64_t address) noexcept -> bool {
        return (address & ~address_mask) == 0;
    }
    static constexpr auto from_number(uint64_t number) noexcept -> value_type {
        return number << LowestAddressBit;
    }
    constexpr auto number() const noexcept -> uint64_t { return value >> LowestAddressBit; }

    consteval address_field(integral auto literal) : value{static_cast<value_type>(literal)} {
        if (detail::is_negative(literal) || !fits(value)) {
            build_error::address_has_bits_outside_the_field();
        }
    }
    constexpr address_field(wrapped address) noexcept : value{address.value & address_mask} {}
    template <uint64_t Address>
        requires(fits(Address))
    constexpr address_field(constant_number<Address>) noexcept : value{Address} {}
};

/// A field that the processor owns: writing it changes nothing.
template <class Field>
struct write_ignored : Field {
    static constexpr row_access access = row_access::write_ignored;
};

/// A field that reads as all ones whatever is written.
template <class Field>
struct forced_1 : Field {
    static constexpr row_access access = row_access::forced_1;
};

/// A field that the processor alone writes.
template <class Field>
struct read_only : Field {
    static constexpr row_access access = row_access::read_only;
};

/// A field in the form of an address, of which no bit is reserved whatever MAXPHYADDR is.
template <class Field>
struct unbounded : Field {
    static constexpr bool ends_at_max_phys_addr = false;
};

/// A packet field whose value tells how many payload bytes follow.
template <class Field>
struct selects_payload : Field {
    static constexpr bool selects_the_payload = true;
};

/// The outcome of `checked`: a field, or nothing where the number does not fit.
template <class Field>
struct checked_field {
    bool fits;
    Field field;

    constexpr explicit operator bool() const noexcept { return fits; }
};

/// A run-time number as a field's value, if it fits: `if (auto f = checked<ctl::MTCFreq>(n))`.
template <class Field>
[[nodiscard]] constexpr auto checked(uint64_t number) noexcept -> checked_field<Field> {
    return {Field::fits(number), Field{wrapped{number}}};
}

}  // namespace ptspec

// ---- ptspec/word.hpp ----

/// Layouts and hardware words.
///
/// A layout is the list of a word's rows from bit 0 to the top, and a word is its raw bits. Every
/// mask and every table about a word is folded from its rows.
namespace ptspec {

template <class Lower, class Upper>
concept directly_below = Lower::msb + 1 == Upper::lsb;

namespace detail {

template <class One, class Two>
struct neighbours {
    static_assert(directly_below<One, Two>, "these two rows overlap or leave a gap");
};

template <unsigned Bits, class... Rows>
constexpr auto rows_tile() noexcept -> bool {
    unsigned next = 0;
    bool tile = true;
    ((tile = tile && Rows::lsb == next, next = Rows::msb + 1), ...);
    return tile && next == Bits;
}

template <class First, class... Rest>
struct first_and_last {
    using first = First;
    using last = typename first_and_last<Rest...>::last;
};
template <class Only>
struct first_and_last<Only> {
    using first = Only;
    using last = Only;
};

template <class First, class... Rest>
struct explain_pairs {};
template <class One, class Two, class... Rest>
struct explain_pairs<One, Two, Rest...> : neighbours<One, Two>, explain_pairs<Two, Rest...> {};

/// Only for layouts that do not tile: says where.
template <bool Tile, unsigned Bits, class... Rows>
struct explain_tiling {};
template <unsigned Bits, class... Rows>
struct explain_tiling<false, Bits, Rows...> : explain_pairs<Rows...> {
    static_assert(first_and_last<Rows...>::first::lsb == 0, "the first row has to begin at bit 0");
    static_assert(first_and_last<Rows...>::last::msb + 1 == Bits,
                  "the last row has to end at the top of the word");
};

}  // namespace detail

/// All rows of a word, from bit 0 to the top. Rows that do not tile the word stop the build.
template <unsigned Bits, class... Rows>
struct bit_layout : detail::explain_tiling<detail::rows_tile<Bits, Rows...>(), Bits, Rows...> {
    static constexpr unsigned bits = Bits;
    using rows = type_list<Rows...>;
};

namespace detail {

template <class Row, class... Rows>
constexpr auto is_among(type_list<Rows...>) noexcept -> bool {
    return (same_as<Row, Rows> || ...);
}

/// The bits of a row from `lsb` up, or none of it.
struct part_of_a_row {
    bool any;
    unsigned lsb;
};

/// The bits of all rows that `chosen` picks.
template <class Raw, class Chosen, class... Rows>
constexpr auto bits_of_rows(type_list<Rows...>, Chosen chosen) noexcept -> Raw {
    auto const pick = [=]<class Row>(Row* row) -> Raw {
        auto const part = chosen(row);
        return part.any ? run_of_bits<Raw>(Row::msb, part.lsb) : Raw{};
    };
    return static_cast<Raw>((Raw{} | ... | pick(static_cast<Rows*>(nullptr))));
}

template <class... Fields>
constexpr auto named_once() noexcept -> bool {
    [[maybe_unused]] wide_bits seen{};
    bool once = true;
    ((once = once && (seen & run_of_bits<wide_bits>(Fields::msb, Fields::lsb)) == wide_bits{},
      seen = seen | run_of_bits<wide_bits>(Fields::msb, Fields::lsb)),
     ...);
    return once;
}

}  // namespace detail

template <class Row, class Word>
concept row_of = detail::is_among<Row>(typename Word::layout::rows{});

template <class Field, class Word>
concept field_of = Field::kind == row_kind::field && row_of<Field, Word>;

// ------------------------------------------------------------------------------------ words

/// A hardware word: its raw bits and nothing else.
///
/// `Derived` declares the fields and `struct layout : bit_layout<...>`. `Access` is what happens to
/// its fields when written, where they do not say otherwise.
template <class Derived, class Raw, row_access Access = row_access::plain>
struct bit_word {
    using raw_type = Raw;
    static constexpr row_access access = Access;
    Raw raw{};

    constexpr bit_word() noexcept = default;
    constexpr bit_word(Raw bits) noexcept : raw{bits} {}

    friend constexpr auto operator==(bit_word const&, bit_word const&) -> bool = default;

    /// The value of a field.
    template <class Field>
        requires field_of<Field, Derived>
    [[nodiscard]] constexpr auto get() const noexcept -> typename Field::value_type {
        if constexpr (same_as<typename Field::value_type, bool>) {
            // Tested in place, so that compilers merge the tests of several flags.
            return (raw & detail::run_of_bits<Raw>(Field::msb, Field::lsb)) != Raw{};
        } else {
            return Field::from_number(detail::from_bit(raw, Field::lsb) & low_bits(Field::width));
        }
    }

    /// The same word with other values in the named fields; every other bit stays.
    template <class... Fields>
        requires(field_of<Fields, Derived> && ...)
    [[nodiscard]] constexpr auto with(Fields... fields) const noexcept -> Derived {
        static_assert(detail::named_once<Fields...>(), "a field is named twice");
        constexpr Raw named = (Raw{} | ... | detail::run_of_bits<Raw>(Fields::msb, Fields::lsb));
        return Derived{
            static_cast<Raw>((raw & static_cast<Raw>(~named)) |
                             (Raw{} | ... | detail::to_bit<Raw>(fields.number(), Fields::lsb)))};
    }

    /// The reserved rows, and of address fields the bits at and above `max_phys_addr`.
    [[nodiscard]] static constexpr auto reserved_mask(unsigned max_phys_addr = 64) noexcept -> Raw {
        return detail::bits_of_rows<Raw>(
            typename Derived::layout::rows{}, [=]<class Row>(Row*) -> detail::part_of_a_row {
                if constexpr (Row::kind == row_kind::reserved) {
                    return {true, Row::lsb};
                } else if constexpr (Row::ends_at_max_phys_addr) {
                    unsigned const first = max_phys_addr < Row::lowest_address_bit
                                               ? Row::lsb
                                               : max_phys_addr - Row::lowest_address_bit + Row::lsb;
                    return {first <= Row::msb, first};
                } else {
                    return {false, 0};
                }
            });
    }

    /// The rows of which writes are ignored.
    [[nodiscard]] static constexpr auto write_ignored_mask() noexcept -> Raw {
        return detail::bits_of_rows<Raw>(typename Derived::layout::rows{}, []<class Row>(Row*) {
            return detail::part_of_a_row{Row::access == row_access::write_ignored, Row::lsb};
        });
    }

    /// The rows that read as ones whatever is written.
    [[nodiscard]] static constexpr auto forced_1_mask() noexcept -> Raw {
        return detail::bits_of_rows<Raw>(typename Derived::layout::rows{}, []<class Row>(Row*) {
            return detail::part_of_a_row{Row::access == row_access::forced_1, Row::lsb};
        });
    }

    /// The reserved bits that are 1.
    [[nodiscard]] constexpr auto reserved_bits_set(unsigned max_phys_addr = 64) const noexcept
        -> Raw {
        return static_cast<Raw>(raw & reserved_mask(max_phys_addr));
    }
};

/// A word that software can only read.
template <class Derived, class Raw>
using read_only_word = bit_word<Derived, Raw, row_access::read_only>;

// ------------------------------------------------------------------------------------ reflection

/// One row of a word, as data.
struct row_info {
    text name;  ///< the field's name; `reserved` and `other` for rows that have none
    unsigned msb;
    unsigned lsb;
    row_kind kind;
    row_access access;
    bool is_address;
    unsigned lowest_address_bit;  ///< of an address: the bit that stands at `lsb`
};

template <size_t Count>
struct row_table {
    row_info rows[Count];

    [[nodiscard]] constexpr auto begin() const noexcept -> row_info const* { return rows; }
    [[nodiscard]] constexpr auto end() const noexcept -> row_info const* { return rows + Count; }
    [[nodiscard]] static constexpr auto size() noexcept -> size_t { return Count; }
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> row_info const& {
        return rows[i];
    }
};

namespace detail {

template <class Row>
constexpr auto name_of_row() noexcept -> text {
    if constexpr (Row::kind == row_kind::reserved) {
        return "reserved";
    } else if constexpr (Row::kind == row_kind::other) {
        return "other";
    } else {
        return name_of<Row>();
    }
}

template <class Row>
constexpr auto lowest_address_bit_of() noexcept -> unsigned {
    if constexpr (Row::is_address) {
        return Row::lowest_address_bit;
    } else {
        return 0;
    }
}

/// What writing a row does: what the row says, or else what the word says of its fields.
template <class Word, class Row>
constexpr auto access_of_row() noexcept -> row_access {
    return Row::access == row_access::plain && Row::kind == row_kind::field ? Word::access
                                                                            : Row::access;
}

template <class Word, class... Rows>
constexpr auto describe_rows(type_list<Rows...>) noexcept -> row_table<sizeof...(Rows)> {
    return {{{name_of_row<Rows>(), Rows::msb, Rows::lsb, Rows::kind, access_of_row<Word, Rows>(),
              Rows::is_address, lowest_address_bit_of<Rows>()}...}};
}

}  // namespace detail

/// Every row of a word from bit 0 to the top, with its name and position.
template <class Word>
constexpr auto rows_of() noexcept {
    return detail::describe_rows<Word>(typename Word::layout::rows{});
}

}  // namespace ptspec

// ---- ptspec/bytes.hpp ----

/// Bytes: borrowed for reading, borrowed for writing, owned. Little-endian numbers in them.
namespace ptspec {

/// Borrowed bytes to read. The owner has to outlive the view.
class byte_view {
public:
    constexpr byte_view() noexcept = default;
    constexpr byte_view(uint8_t const* first, size_t count) noexcept
        : first_{first}, size_{count} {}
    template <size_t Count>
    constexpr byte_view(uint8_t const (&array)[Count]) noexcept : first_{array}, size_{Count} {}
    /// Anything that owns bytes in a row and says so with `data()` and `size()`.
    template <class Owner>
        requires(!same_as<Owner, byte_view> &&
                 requires(Owner const& owner) {
                     { owner.data() } -> convertible_to<uint8_t const*>;
                     { owner.size() } -> convertible_to<size_t>;
                 })
    constexpr byte_view(Owner const& owner) noexcept
        : first_{owner.data()}, size_{static_cast<size_t>(owner.size())} {}

    [[nodiscard]] constexpr auto data() const noexcept -> uint8_t const* { return first_; }
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return size_; }
    [[nodiscard]] constexpr auto empty() const noexcept -> bool { return size_ == 0; }
    [[nodiscard]] constexpr auto begin() const noexcept -> uint8_t const* { return first_; }
    [[nodiscard]] constexpr auto end() const noexcept -> uint8_t const* { return first_ + size_; }
    /// The byte at `i`, which has to be below `size()`.
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> uint8_t {
        return first_[i];
    }

    /// The bytes from `offset` on; none when `offset` lies at or behind the end.
    [[nodiscard]] constexpr auto from(size_t offset) const noexcept -> byte_view {
        return offset < size_ ? byte_view{first_ + offset, size_ - offset} : byte_view{};
    }
    /// The first `count` bytes, or all when there are fewer.
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

/// Borrowed room to write bytes into, filled from the front.
class byte_buffer {
public:
    constexpr byte_buffer() noexcept = default;
    constexpr byte_buffer(uint8_t* first, size_t room) noexcept : first_{first}, room_{room} {}
    template <size_t Count>
    constexpr byte_buffer(uint8_t (&array)[Count]) noexcept : first_{array}, room_{Count} {}

    /// The bytes written so far.
    [[nodiscard]] constexpr auto written() const noexcept -> byte_view { return {first_, size_}; }
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return size_; }
    /// How many more bytes there is room for.
    [[nodiscard]] constexpr auto room() const noexcept -> size_t { return room_ - size_; }

    /// Writes all of `bytes`, or nothing where they do not fit. True when they were written.
    [[nodiscard]] constexpr auto append(byte_view bytes) noexcept -> bool {
        if (bytes.size() > room()) { return false; }
        for (size_t i = 0; i < bytes.size(); ++i) { first_[size_ + i] = bytes[i]; }
        size_ += bytes.size();
        return true;
    }

private:
    uint8_t* first_ = nullptr;
    size_t room_ = 0;
    size_t size_ = 0;
};

/// Owned bytes, `Count` of them.
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

/// The eight bytes at `from` as a little-endian number. They have to be there.
constexpr auto load_le64(uint8_t const* from) noexcept -> uint64_t {
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

/// Up to eight bytes as a little-endian number, zero where there are fewer.
constexpr auto load_le(byte_view from) noexcept -> uint64_t {
    if (from.size() >= 8) { return load_le64(from.data()); }
    uint64_t value = 0;
    for (size_t i = 0; i < from.size(); ++i) { value |= uint64_t{from[i]} << (8 * i); }
    return value;
}

/// Up to sixteen bytes as a little-endian number, zero where there are fewer.
constexpr auto load_le_wide(byte_view from) noexcept -> wide_bits {
    return from.size() >= 16 ? wide_bits{load_le64(from.data()), load_le64(from.data() + 8)}
                             : wide_bits{load_le(from.first(8)), load_le(from.from(8))};
}

}  // namespace ptspec

// ---- ptspec/address.hpp ----

/// Addresses: alignment, canonical form, physical width.
namespace ptspec {

/// True when `address` is a multiple of `size`, a power of two.
constexpr auto is_aligned(uint64_t address, uint64_t size) noexcept -> bool {
    return (address & (size - 1)) == 0;
}

/// The highest multiple of `size`, a power of two, that is not above `address`.
constexpr auto align_down(uint64_t address, uint64_t size) noexcept -> uint64_t {
    return address & ~(size - 1);
}

/// True for 1, 2, 4 and so on.
constexpr auto is_power_of_two(uint64_t value) noexcept -> bool {
    return value != 0 && (value & (value - 1)) == 0;
}

/// Bits 63 to `width` become copies of bit `width` - 1. `width` is 1 to 64.
constexpr auto sign_extended(uint64_t value, unsigned width) noexcept -> uint64_t {
    uint64_t const sign = uint64_t{1} << (width - 1);
    return ((value & low_bits(width)) ^ sign) - sign;
}

/// True when an address is canonical for linear addresses of `width` bits: 48, or 57 with LA57.
constexpr auto is_canonical(uint64_t address, unsigned width) noexcept -> bool {
    return sign_extended(address, width) == address;
}

/// MAXPHYADDR, the width of physical addresses in bits: CPUID.80000008H:EAX[7:0], 36 without that
/// leaf, at most 52.
struct max_phys_addr {
    unsigned bits = 52;

    /// True when an address has no bit at or above MAXPHYADDR.
    [[nodiscard]] constexpr auto reaches(uint64_t address) const noexcept -> bool {
        return (address & ~low_bits(bits)) == 0;
    }
    friend constexpr auto operator==(max_phys_addr, max_phys_addr) -> bool = default;
};

}  // namespace ptspec

// ---- ptspec/ports.hpp ----

/// How memory, MSRs, CPUID and interrupts reach the library, and a constexpr model of each.
///
/// A port may fail. A failed access changes nothing, and whoever made it can make it again.
namespace ptspec {

/// What an access through a port gave.
struct port_value {
    bool done = false;  ///< false: the access faulted, `value` says nothing
    uint64_t value = 0;

    constexpr explicit operator bool() const noexcept { return done; }
    friend constexpr auto operator==(port_value const&, port_value const&) -> bool = default;
};

/// Physical memory, or a guest's.
///
/// `load` reads the 8 bytes at an address as a little-endian number. `store` writes bytes from an
/// address on and returns how many were stored: fewer than given when the next one faulted.
template <class Port>
concept memory_port = requires(Port& port, uint64_t address, byte_view bytes) {
    { port.load(address) } -> same_as<port_value>;
    { port.store(address, bytes) } -> same_as<size_t>;
};

/// A logical processor's model-specific registers. A fault is a #GP.
template <class Port>
concept msr_port = requires(Port& port, uint32_t index, uint64_t value) {
    { port.read(index) } -> same_as<port_value>;
    { port.write(index, value) } -> same_as<bool>;
};

/// The four registers that CPUID fills.
struct cpuid_registers {
    uint32_t eax = 0;
    uint32_t ebx = 0;
    uint32_t ecx = 0;
    uint32_t edx = 0;

    friend constexpr auto operator==(cpuid_registers const&, cpuid_registers const&)
        -> bool = default;
};

template <class Port>
concept cpuid_port = requires(Port& port, uint32_t leaf, uint32_t subleaf) {
    { port.query(leaf, subleaf) } -> same_as<cpuid_registers>;
};

/// Where a performance-monitoring interrupt goes.
template <class Port>
concept pmi_port = requires(Port& port) { port.raise(); };

// ------------------------------------------------------------------------------------ models

/// `Size` bytes of memory from `base` on. Everything outside faults.
template <size_t Size>
struct memory_model {
    uint64_t base = 0;
    byte_array<Size> bytes{};

    [[nodiscard]] constexpr auto load(uint64_t address) const noexcept -> port_value {
        uint64_t const at = address - base;
        if (at > Size || Size - at < 8) { return {}; }
        return {true, load_le64(bytes.data() + at)};
    }

    [[nodiscard]] constexpr auto store(uint64_t address, byte_view from) noexcept -> size_t {
        uint64_t const at = address - base;
        uint64_t const room = at < Size ? Size - at : 0;
        size_t const count = from.size() < room ? from.size() : static_cast<size_t>(room);
        for (size_t i = 0; i < count; ++i) { bytes.bytes[at + i] = from[i]; }
        return count;
    }
};

/// A file of `Count` registers, each with its index. Every other index is #GP.
template <size_t Count>
struct msr_model {
    struct slot {
        uint32_t index = 0;
        uint64_t value = 0;
    };
    slot slots[Count] = {};

    [[nodiscard]] constexpr auto read(uint32_t index) const noexcept -> port_value {
        for (size_t i = 0; i < Count; ++i) {
            if (slots[i].index == index) { return {true, slots[i].value}; }
        }
        return {};
    }

    [[nodiscard]] constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        for (size_t i = 0; i < Count; ++i) {
            if (slots[i].index == index) {
                slots[i].value = value;
                return true;
            }
        }
        return false;
    }
};

/// `Count` leaves. Every other leaf is all zero, as a processor answers within its range.
template <size_t Count>
struct cpuid_model {
    struct answer {
        uint32_t leaf = 0;
        uint32_t subleaf = 0;
        cpuid_registers registers{};
    };
    answer answers[Count] = {};

    [[nodiscard]] constexpr auto query(uint32_t leaf, uint32_t subleaf) const noexcept
        -> cpuid_registers {
        for (size_t i = 0; i < Count; ++i) {
            if (answers[i].leaf == leaf && answers[i].subleaf == subleaf) {
                return answers[i].registers;
            }
        }
        return {};
    }
};

/// Counts the interrupts that were raised.
struct pmi_model {
    uint64_t raised = 0;

    constexpr void raise() noexcept { ++raised; }
};

static_assert(memory_port<memory_model<8>> && msr_port<msr_model<1>>);
static_assert(cpuid_port<cpuid_model<1>> && pmi_port<pmi_model>);

}  // namespace ptspec

// ---- ptspec/reg/rtit_ctl.hpp ----

namespace ptspec::reg {

/// What an address range does: encodings of ADDR0_CFG to ADDR3_CFG. 3 to 15 are reserved.
enum class addr_cfg : uint8_t {
    off = 0,
    filter = 1,      ///< FilterEn is 1 inside
    trace_stop = 2,  ///< a branch or event into it stops tracing
};

/// IA32_RTIT_CTL, which trace is made, and whether.
///
/// Shape:  64-bit MSR 570H.
/// Units:  an MTC every 2^MTCFreq crystal cycles; a CYC at most every 2^(CycThresh-1) core cycles
///         where CycThresh is not 0; a PSB every 2^(PSBFreq+11) bytes of trace.
/// Errors: WRMSR raises #GP(0) for a reserved bit, for a field or an encoding that the processor
///         does not enumerate, and for any change while TraceEn stays 1.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR"; REG-020..048.
struct ia32_rtit_ctl : bit_word<ia32_rtit_ctl, uint64_t> {
    static constexpr uint32_t address = 0x570;

    struct TraceEn : flag<0> {};
    struct CYCEn : flag<1> {};
    struct OS : flag<2> {};    ///< trace at CPL 0
    struct User : flag<3> {};  ///< trace at CPL 1 to 3
    struct PwrEvtEn : flag<4> {};
    struct FUPonPTW : flag<5> {};
    struct FabricEn : flag<6> {};  ///< output to the trace transport; ToPA is then ignored
    struct CR3Filter : flag<7> {};
    struct ToPA : flag<8> {};  ///< 0: a single range
    struct MTCEn : flag<9> {};
    struct TSCEn : flag<10> {};
    struct DisRETC : flag<11> {};
    struct PTWEn : flag<12> {};
    struct BranchEn : flag<13> {};
    struct MTCFreq : field<17, 14> {
        static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
            return {uint64_t{1} << encoding, "crystal cycles"};
        }
    };
    struct CycThresh : field<22, 19> {
        static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
            return encoding == 0 ? quantity{} : quantity{uint64_t{1} << (encoding - 1), "cycles"};
        }
    };
    struct PSBFreq : field<27, 24> {
        static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
            return {uint64_t{2048} << encoding, "bytes"};
        }
    };
    struct EventEn : flag<31> {};
    struct ADDR0_CFG : enumerated<35, 32, addr_cfg> {};
    struct ADDR1_CFG : enumerated<39, 36, addr_cfg> {};
    struct ADDR2_CFG : enumerated<43, 40, addr_cfg> {};
    struct ADDR3_CFG : enumerated<47, 44, addr_cfg> {};
    struct DisTNT : flag<55> {};
    struct InjectPsbPmiOnEnable : flag<56> {};

    // clang-format off
    struct layout : bit_layout<64,
        TraceEn, CYCEn, OS, User, PwrEvtEn, FUPonPTW, FabricEn, CR3Filter,
        ToPA, MTCEn, TSCEn, DisRETC, PTWEn, BranchEn, MTCFreq, reserved<18>,
        CycThresh, reserved<23>, PSBFreq, reserved<30, 28>, EventEn,
        ADDR0_CFG, ADDR1_CFG, ADDR2_CFG, ADDR3_CFG, reserved<54, 48>,
        DisTNT, InjectPsbPmiOnEnable, reserved<63, 57>> {};
    // clang-format on
};

}  // namespace ptspec::reg

// ---- ptspec/reg/rtit_status.hpp ----

namespace ptspec::reg {

/// IA32_RTIT_STATUS, what the trace unit is doing, and why it stopped.
///
/// Shape:  64-bit MSR 571H. FilterEn, ContextEn and TriggerEn belong to the processor.
/// Units:  PacketByteCnt counts bytes of trace since the last PSB.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1, and when a reserved bit is 1.
/// Source: SDM vol. 3, "IA32_RTIT_STATUS MSR"; REG-050..067.
struct ia32_rtit_status : bit_word<ia32_rtit_status, uint64_t> {
    static constexpr uint32_t address = 0x571;

    struct FilterEn : write_ignored<flag<0>> {};
    struct ContextEn : write_ignored<flag<1>> {};
    struct TriggerEn : write_ignored<flag<2>> {};
    struct Error : flag<4> {};        ///< an operational error ended tracing
    struct Stopped : flag<5> {};      ///< a TraceStop range or a ToPA STOP ended tracing
    struct PendPSB : flag<6> {};      ///< a PSB+ is owed when tracing is enabled again
    struct PendToPAPMI : flag<7> {};  ///< a ToPA interrupt is owed when tracing is enabled again
    struct PacketByteCnt : field<48, 32> {};

    // clang-format off
    struct layout : bit_layout<64,
        FilterEn, ContextEn, TriggerEn, reserved<3>, Error, Stopped, PendPSB, PendToPAPMI,
        reserved<31, 8>, PacketByteCnt, reserved<63, 49>> {};
    // clang-format on
};

}  // namespace ptspec::reg

// ---- ptspec/reg/rtit_output.hpp ----

namespace ptspec::reg {

/// IA32_RTIT_OUTPUT_BASE, where the output region or the ToPA table begins.
///
/// Shape:  64-bit MSR 560H.
/// Units:  BasePhysAddr is a physical address in bytes, a multiple of 128; a ToPA table begins at a
///         multiple of 4096, a single range at a multiple of its size.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1, and for bits 6:0 or bits at or above MAXPHYADDR.
/// Source: SDM vol. 3, "IA32_RTIT_OUTPUT_BASE MSR"; REG-070.
struct ia32_rtit_output_base : bit_word<ia32_rtit_output_base, uint64_t> {
    static constexpr uint32_t address = 0x560;

    struct BasePhysAddr : address_field<63, 7> {};

    struct layout : bit_layout<64, reserved<6, 0>, BasePhysAddr> {};
};

/// IA32_RTIT_OUTPUT_MASK_PTRS, where in the region or the table the next byte goes.
///
/// Shape:  64-bit MSR 561H. Its low seven bits read as ones, so a single range's mask can be taken
///         from bits 31:0 as they are.
/// Units:  MaskOrTableOffset is the mask's bits 31:7 of a single range, or the number of the
///         current ToPA entry (8 bytes each). OutputOffset is in bytes from the region's begin.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1. What it holds is checked when TraceEn rises.
/// Source: SDM vol. 3, "IA32_RTIT_OUTPUT_MASK_PTRS MSR"; REG-071, OUT-020, OUT-050.
struct ia32_rtit_output_mask_ptrs : bit_word<ia32_rtit_output_mask_ptrs, uint64_t> {
    static constexpr uint32_t address = 0x561;

    struct LowerMask : forced_1<field<6, 0>> {};
    struct MaskOrTableOffset : field<31, 7> {};
    struct OutputOffset : field<63, 32> {};

    struct layout : bit_layout<64, LowerMask, MaskOrTableOffset, OutputOffset> {};
};

}  // namespace ptspec::reg

// ---- ptspec/topa/entry.hpp ----

/// Entries of a Table of Physical Addresses (ToPA).
namespace ptspec::topa {

/// The size of an output region: 4096 bytes shifted left by the encoding.
///
/// Source: OUT-041, OUT-069.
enum class region_size : uint8_t {
    size_4K = 0,
    size_8K = 1,
    size_16K = 2,
    size_32K = 3,
    size_64K = 4,
    size_128K = 5,
    size_256K = 6,
    size_512K = 7,
    size_1M = 8,
    size_2M = 9,
    size_4M = 10,
    size_8M = 11,
    size_16M = 12,
    size_32M = 13,
    size_64M = 14,
    size_128M = 15,
};

/// A region's size in bytes.
[[nodiscard]] constexpr auto bytes_in(region_size size) noexcept -> uint64_t {
    return uint64_t{4096} << (underlying(size) & 15U);
}

/// A ToPA entry that names an output region. With END set it is an `end_entry`.
///
/// Shape:  8 bytes in memory, little-endian.
/// Units:  Base is a physical address, aligned to the region's size.
/// Errors: a reserved bit, a misaligned Base or one beyond MAXPHYADDR is an operational error when
///         the trace unit comes to the entry.
/// Source: SDM vol. 3, "ToPA Table Entry"; OUT-040..044.
struct entry : bit_word<entry, uint64_t> {
    struct END : flag<0> {};
    struct INT : flag<2> {};   ///< a performance-monitoring interrupt when the region is full
    struct STOP : flag<4> {};  ///< stop tracing when the region is full
    struct Size : enumerated<9, 6, region_size> {};
    struct Base : address_field<63, 12> {};

    // clang-format off
    struct layout : bit_layout<64,
        END, reserved<1>, INT, reserved<3>, STOP, reserved<5>, Size, reserved<11, 10>, Base> {};
    // clang-format on
};

/// A ToPA entry that links to the next table.
///
/// Shape:  8 bytes in memory, little-endian. END is 1.
/// Units:  NextTable is a physical address, a multiple of 4096. Size means nothing.
/// Errors: a reserved bit, INT, STOP or an address beyond MAXPHYADDR is an operational error.
/// Source: SDM vol. 3, "ToPA Table Entry"; OUT-043.
struct end_entry : bit_word<end_entry, uint64_t> {
    struct END : forced_1<flag<0>> {};
    struct Size : field<9, 6> {};
    struct NextTable : address_field<63, 12> {};

    // clang-format off
    struct layout : bit_layout<64,
        END, reserved<1>, reserved<2>, reserved<3>, reserved<4>, reserved<5>, Size,
        reserved<11, 10>, NextTable> {};
    // clang-format on
};

/// The entry that links to a table. Address bits 11:0 are cut off.
[[nodiscard]] constexpr auto link_to(uint64_t next_table) noexcept -> entry {
    return entry{
        end_entry{}.with(end_entry::END{true}, end_entry::NextTable{wrapped{next_table}}).raw};
}

/// The first rule, by number, that an entry breaks at its place in a table.
///
/// Errors: OUT-060 reserved bit; OUT-062 Base not aligned to the region's size; OUT-063 address
///         beyond MAXPHYADDR; OUT-065 END with INT or STOP; OUT-066 END in entry 0.
/// Source: OUT-060..066.
[[nodiscard]] constexpr auto broken_rule(entry which, size_t index, max_phys_addr width) noexcept
    -> rule {
    bool const end = which.get<entry::END>();
    uint64_t const base = which.get<entry::Base>();
    return which.reserved_bits_set() != 0                                  ? rule::OUT_060
           : !end && !is_aligned(base, bytes_in(which.get<entry::Size>())) ? rule::OUT_062
           : !width.reaches(base)                                          ? rule::OUT_063
           : end && (which.get<entry::INT>() || which.get<entry::STOP>())  ? rule::OUT_065
           : end && index == 0                                             ? rule::OUT_066
                                                                           : rule::none;
}

}  // namespace ptspec::topa

// ---- ptspec/topa/table.hpp ----

/// Tables of Physical Addresses, built and proved while compiling.
namespace ptspec {

namespace build_error {
void a_table_must_begin_at_a_multiple_of_4_KB();
void a_region_must_be_aligned_to_its_own_size();
void an_address_must_lie_below_the_physical_width();
void a_table_must_have_an_output_region();
}  // namespace build_error

namespace topa {

/// A request for an output region.
struct region {
    uint64_t base = 0;  ///< physical address, a multiple of the size
    region_size size = region_size::size_4K;
    bool interrupt = false;  ///< INT: an interrupt when it is full
    bool stop = false;       ///< STOP: no more trace when it is full
};

/// The entry for a region. Address bits 11:0 are cut off.
[[nodiscard]] constexpr auto entry_for(region which) noexcept -> entry {
    return entry{}.with(entry::INT{which.interrupt}, entry::STOP{which.stop},
                        entry::Size{which.size}, entry::Base{wrapped{which.base}});
}

/// A table as it stands in memory. It has to be placed at a multiple of 4096, at the physical
/// address it was built for.
template <size_t Entries>
struct table {
    entry entries[Entries];

    [[nodiscard]] static constexpr auto size() noexcept -> size_t { return Entries; }
    friend constexpr auto operator==(table const&, table const&) -> bool = default;
};

/// What is wrong with a table, and at which entry.
struct finding {
    rule broken = rule::none;
    size_t index = 0;

    friend constexpr auto operator==(finding const&, finding const&) -> bool = default;
};

/// A table, or what forbids it.
template <size_t Entries>
struct built {
    finding why{};
    topa::table<Entries> table{};

    constexpr explicit operator bool() const noexcept { return why.broken == rule::none; }
};

namespace detail {

/// The rule that a region breaks, Base bits below 4 KB included, which an entry does not have.
constexpr auto check_region(size_t index, region which, max_phys_addr width) noexcept -> rule {
    return !is_aligned(which.base, 4096) ? rule::OUT_062
                                         : broken_rule(entry_for(which), index, width);
}

constexpr auto check_table_base(uint64_t base, max_phys_addr width) noexcept -> rule {
    return !is_aligned(base, 4096) ? rule::OUT_061
           : !width.reaches(base)  ? rule::OUT_063
                                   : rule::none;
}

/// Stops the build with the mistake's name.
constexpr void check_entry([[maybe_unused]] size_t index, rule broken) {
    switch (broken) {
        case rule::none: return;
        case rule::OUT_061: return build_error::a_table_must_begin_at_a_multiple_of_4_KB();
        case rule::OUT_062: return build_error::a_region_must_be_aligned_to_its_own_size();
        case rule::OUT_063: return build_error::an_address_must_lie_below_the_physical_width();
        default: return build_error::a_table_must_have_an_output_region();
    }
}

/// One call an entry, so that compilers show which: g++ shows an argument as it is written, and
/// clang 14 and 16 show no template arguments.
template <size_t... Index>
constexpr void check_entries(index_list<Index...>, finding why) {
    (check_entry(Index, why.index == Index ? why.broken : rule::none), ...);
}

}  // namespace detail

/// A ring: the regions in order, then a link back to the table itself. This is the form for run
/// time and for templates; `ring` is the one that stops the build.
///
/// Units:  `base` is the physical address at which the table will stand.
/// Errors: OUT-061 base not a multiple of 4 KB; OUT-062 region not aligned to its size; OUT-063 an
///         address beyond `width`. The table is then all zero.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-043, OUT-045, OUT-047, OUT-056.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_ring(max_phys_addr width, uint64_t base,
                                      Regions... regions) noexcept
    -> built<sizeof...(Regions) + 1> {
    constexpr size_t count = sizeof...(Regions);
    if (rule const broken = detail::check_table_base(base, width); broken != rule::none) {
        return {.why = {broken, count}};
    }
    region const wanted[count + 1] = {regions...};
    for (size_t i = 0; i < count; ++i) {
        if (rule const broken = detail::check_region(i, wanted[i], width); broken != rule::none) {
            return {.why = {broken, i}};
        }
    }
    if (count == 0) { return {.why = {rule::OUT_066, 0}}; }
    return {.table = {{entry_for(regions)..., link_to(base)}}};
}

template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_ring(uint64_t base, Regions... regions) noexcept
    -> built<sizeof...(Regions) + 1> {
    return try_ring(max_phys_addr{}, base, regions...);
}

/// A ring, proved while compiling. A mistake stops the build with its name and the entry's index.
///
/// Units:  `base` is the physical address at which the table will stand; `width` is the MAXPHYADDR
///         that the processor has at least, 52 unless said otherwise.
/// Source: as `try_ring`.
template <same_as<region>... Regions>
[[nodiscard]] consteval auto ring(max_phys_addr width, uint64_t base, Regions... regions) {
    auto const made = try_ring(width, base, regions...);
    detail::check_entries(make_index_list<sizeof...(Regions) + 1>{}, made.why);
    return made.table;
}

template <same_as<region>... Regions>
[[nodiscard]] consteval auto ring(uint64_t base, Regions... regions) {
    return ring(max_phys_addr{}, base, regions...);
}

}  // namespace topa

}  // namespace ptspec

// ---- ptspec/topa/position.hpp ----

/// Where the next byte of trace goes: the address math of both output schemes.
namespace ptspec {

namespace single_range {

using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;

/// The mask of a single range: its size in bytes less one. The seven lowest bits are always ones.
///
/// Source: OUT-020.
[[nodiscard]] constexpr auto mask_of(ia32_rtit_output_mask_ptrs pointers) noexcept -> uint64_t {
    return (pointers.raw & low_bits(32)) | ia32_rtit_output_mask_ptrs::forced_1_mask();
}

/// The physical address at which the next byte of trace is stored.
///
/// Source: SDM vol. 3, "Single Range Output"; OUT-021.
[[nodiscard]] constexpr auto trace_store_phys_addr(ia32_rtit_output_base base,
                                                   ia32_rtit_output_mask_ptrs pointers) noexcept
    -> uint64_t {
    uint64_t const mask = mask_of(pointers);
    return (base.raw & ~mask) + (pointers.get<ia32_rtit_output_mask_ptrs::OutputOffset>() & mask);
}

/// The pointers after `bytes` more bytes: the offset wraps at the region's end.
///
/// Source: OUT-021, OUT-028.
[[nodiscard]] constexpr auto advanced(ia32_rtit_output_mask_ptrs pointers, uint64_t bytes) noexcept
    -> ia32_rtit_output_mask_ptrs {
    using field = ia32_rtit_output_mask_ptrs::OutputOffset;
    return pointers.with(field{wrapped{(pointers.get<field>() + bytes) & mask_of(pointers)}});
}

/// The rule that a single range breaks when tracing is enabled.
///
/// Errors: OUT-022 mask not contiguous; OUT-023 base not aligned to the size; OUT-024 offset
///         outside.
/// Source: OUT-022..024.
[[nodiscard]] constexpr auto broken_rule(ia32_rtit_output_base base,
                                         ia32_rtit_output_mask_ptrs pointers) noexcept -> rule {
    uint64_t const mask = mask_of(pointers);
    return (mask & (mask + 1)) != 0                                          ? rule::OUT_022
           : (base.raw & mask) != 0                                          ? rule::OUT_023
           : pointers.get<ia32_rtit_output_mask_ptrs::OutputOffset>() > mask ? rule::OUT_024
                                                                             : rule::none;
}

}  // namespace single_range

namespace topa {

using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;

/// The last index that an entry can have: tables have at most 2^25 entries.
inline constexpr uint32_t last_index = 0x1FF'FFFF;

/// A place in a chain of tables, as the two output MSRs hold it.
///
/// Units:  `table` is a physical address; `index` counts entries of 8 bytes; `offset` counts bytes
///         from the begin of the entry's region.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-046, OUT-050, OUT-053.
struct position {
    uint64_t table = 0;
    uint32_t index = 0;
    uint32_t offset = 0;

    friend constexpr auto operator==(position const&, position const&) -> bool = default;
};

/// The position that the two MSRs hold.
[[nodiscard]] constexpr auto position_in(ia32_rtit_output_base base,
                                         ia32_rtit_output_mask_ptrs pointers) noexcept -> position {
    using pointer = ia32_rtit_output_mask_ptrs;
    return {base.get<ia32_rtit_output_base::BasePhysAddr>(),
            static_cast<uint32_t>(pointers.get<pointer::MaskOrTableOffset>()),
            static_cast<uint32_t>(pointers.get<pointer::OutputOffset>())};
}

/// IA32_RTIT_OUTPUT_MASK_PTRS for a position.
[[nodiscard]] constexpr auto mask_ptrs_of(position where) noexcept -> ia32_rtit_output_mask_ptrs {
    using pointer = ia32_rtit_output_mask_ptrs;
    return pointer{pointer::forced_1_mask()}.with(pointer::MaskOrTableOffset{wrapped{where.index}},
                                                  pointer::OutputOffset{wrapped{where.offset}});
}

/// The physical address of the current entry, the manual's table pointer.
///
/// Source: OUT-050.
[[nodiscard]] constexpr auto table_pointer(position where) noexcept -> uint64_t {
    return where.table + uint64_t{where.index} * sizeof(entry);
}

/// The physical address at which the next byte of trace is stored. `current` is the entry at
/// `where`.
///
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-051.
[[nodiscard]] constexpr auto trace_store_phys_addr(position where, entry current) noexcept
    -> uint64_t {
    return current.get<entry::Base>() + where.offset;
}

/// How many bytes fit into the current region before it is full; 0 when the offset lies outside.
///
/// Source: OUT-052, OUT-064.
[[nodiscard]] constexpr auto bytes_left(position where, entry current) noexcept -> uint64_t {
    uint64_t const size = bytes_in(current.get<entry::Size>());
    return where.offset < size ? size - where.offset : 0;
}

/// The position behind a region that is full: the next entry, and behind the last possible one the
/// first of the same table.
///
/// Source: OUT-053, OUT-055.
[[nodiscard]] constexpr auto behind(position full) noexcept -> position {
    return {full.table, (full.index + 1) & last_index, 0};
}

/// The position to which an END entry leads.
///
/// Source: OUT-054.
[[nodiscard]] constexpr auto through(entry end) noexcept -> position {
    return {end_entry{end.raw}.get<end_entry::NextTable>(), 0, 0};
}

}  // namespace topa

}  // namespace ptspec

// ---- ptspec/packet/kind.hpp ----

namespace ptspec::packet {

/// The 32 packets.
///
/// Source: PKT-007.
enum class kind : uint8_t {
    pad,
    tnt_short,
    tnt_long,
    tip,
    tip_pge,
    tip_pgd,
    fup,
    pip,
    mode_exec,
    mode_tsx,
    tracestop,
    cbr,
    tsc,
    mtc,
    tma,
    cyc,
    vmcs,
    ovf,
    psb,
    psbend,
    mnt,
    ptw,
    exstop,
    mwait,
    pwre,
    pwrx,
    bbp,
    bip,
    bep,
    cfe,
    evd,
    trig,
};

inline constexpr unsigned kinds = 32;

/// An answer of the catalogue that may be missing.
enum class answer : uint8_t { no, yes, unconfirmed };

/// Whether a packet belongs to an instruction's address.
enum class binding : uint8_t { no, yes, conditional };

/// What is to be said of a packet beside its bits.
struct facts {
    kind id;
    text name;  ///< as the manual spells it
    binding binds_to_ip = binding::no;
    bool in_psb_plus = false;  ///< it may stand between PSB and PSBEND
    answer cyc_eligible = answer::no;
    bool keeps_block = false;  ///< a block of BIPs goes on behind it
};

/// The item size of the open block, the one piece of context that reading a packet needs.
///
/// Source: PKT-006, PKT-203.
enum class block : uint8_t {
    none = 0,
    items_of_4 = 4,
    items_of_8 = 8,
};

/// What is wrong with the bytes at hand.
///
/// Source: PKT-004, in its order of checks.
enum class error : uint8_t {
    none,
    truncated,   ///< legal so far, and more bytes are needed: append some and try again
    bad_opcode,  ///< no packet begins like this: go on at the next PSB
    reserved,    ///< the packet's header holds a value without a meaning: go on at the next PSB
    bad_packet,  ///< the packet is whole and its payload breaks a rule: go on at the next PSB
};

}  // namespace ptspec::packet

// ---- ptspec/packet/packet_word.hpp ----

/// What all packets share: bits at their places on the wire, and how long they are.
namespace ptspec::packet {

/// The size that a payload has for values of the selecting field that are reserved.
inline constexpr unsigned undefined_size = ~0U;

/// Payload sizes in bytes, by the value of the field that is declared with `selects_payload`.
template <unsigned... Sizes>
struct payload_of {
    static constexpr unsigned largest = [] {
        unsigned most = 0;
        ((most = Sizes != undefined_size && Sizes > most ? Sizes : most), ...);
        return most;
    }();
    static constexpr auto size(uint64_t selector) noexcept -> unsigned {
        constexpr unsigned sizes[] = {Sizes...};
        return sizes[selector];
    }
};

struct no_payload {
    static constexpr unsigned largest = 0;
};

/// The payload is an item of the open block: its size is context, not content.
struct payload_of_block {
    static constexpr unsigned largest = 8;
};

/// Bytes follow as long as each announces another, `Most` at the most.
template <unsigned Most>
struct payload_continues {
    static constexpr unsigned largest = Most;
};

namespace detail {

using namespace ptspec::detail;

template <class Row>
constexpr auto fixed_bits() noexcept -> wide_bits {
    if constexpr (Row::kind == row_kind::fixed) {
        return to_bit<wide_bits>(Row::value, Row::lsb);
    } else {
        return {};
    }
}

template <class... Rows>
constexpr auto all_fixed_bits(type_list<Rows...>) noexcept -> wide_bits {
    return (wide_bits{} | ... | fixed_bits<Rows>());
}

template <class Raw>
constexpr auto widen(Raw raw) noexcept -> wide_bits {
    if constexpr (same_as<Raw, wide_bits>) {
        return raw;
    } else {
        return {raw, 0};
    }
}

template <class Raw>
constexpr auto narrow(wide_bits bits) noexcept -> Raw {
    if constexpr (same_as<Raw, wide_bits>) {
        return bits;
    } else {
        return bits.low;
    }
}

/// The bits of a packet's opcode and of everything else in it that is fixed.
template <class Packet>
inline constexpr auto opcode_bits = [] {
    static_assert(Packet::layout::bits == 8 * Packet::head_bytes);
    return narrow<typename Packet::raw_type>(all_fixed_bits(typename Packet::layout::rows{}));
}();

/// The row that selects the payload's size, if a layout has one.
template <class... Rows>
struct selector_among {};
template <class First, class... Rest>
struct selector_among<First, Rest...> : selector_among<Rest...> {};
template <class First, class... Rest>
    requires(First::selects_the_payload)
struct selector_among<First, Rest...> {
    using row = First;
};

template <class... Rows>
auto selector_in(type_list<Rows...>) -> selector_among<Rows...>;

}  // namespace detail

/// A packet: its bytes as one little-endian number, so that bit 8n+b is bit b of byte n.
///
/// `Derived` declares the fields of its first `HeadBytes` bytes and `struct layout :
/// bit_layout<...>` that tiles them, opcode included. `Payload` says what follows them.
template <class Derived, unsigned HeadBytes, class Payload = no_payload>
struct packet_word
    : bit_word<Derived, choose_t<(HeadBytes + Payload::largest > 8), wide_bits, uint64_t>> {
    using word =
        bit_word<Derived, choose_t<(HeadBytes + Payload::largest > 8), wide_bits, uint64_t>>;
    using raw_type = typename word::raw_type;
    using payload_type = Payload;
    static constexpr unsigned head_bytes = HeadBytes;
    static constexpr unsigned most_bytes = HeadBytes + Payload::largest;

    /// The packet with every field 0.
    constexpr packet_word() noexcept : word{detail::opcode_bits<Derived>} {}
    constexpr packet_word(raw_type bits) noexcept : word{bits} {}

    /// What follows the head, as a little-endian number. Bytes that the packet does not have are 0.
    [[nodiscard]] constexpr auto payload() const noexcept -> uint64_t
        requires(Payload::largest != 0)
    {
        return detail::from_bit(this->raw, 8 * HeadBytes) & low_bits(8 * Payload::largest);
    }

    /// The same packet with another payload. The bits that do not fit are cut off.
    [[nodiscard]] constexpr auto with_payload(uint64_t number) const noexcept -> Derived
        requires(Payload::largest != 0)
    {
        constexpr auto place = detail::run_of_bits<raw_type>(
            8 * HeadBytes + 8 * Payload::largest - 1, 8 * HeadBytes);
        return Derived{(this->raw & ~place) |
                       (detail::to_bit<raw_type>(number, 8 * HeadBytes) & place)};
    }

    // A packet that can be illegal beyond its opcode says so in static functions of its raw bits:
    //   broken_header       the rule that a field of the header breaks: it is `reserved`
    //   broken_payload      the rule that the whole packet breaks: it is `bad_packet`
    //   broken_when_strict  the rule that it breaks where reserved bits have to be 0

    /// How many bytes the packet has, as far as the bytes at hand tell.
    [[nodiscard]] static constexpr auto length_of(raw_type raw, block items) noexcept -> unsigned {
        if constexpr (same_as<Payload, payload_of_block>) {
            return HeadBytes + underlying(items);
        } else if constexpr (Payload::largest != 0) {
            return HeadBytes + selected_size(raw);
        } else {
            return HeadBytes;
        }
    }

protected:
    /// The payload's size by the field that selects it, or `undefined_size`.
    [[nodiscard]] static constexpr auto selected_size(raw_type raw) noexcept -> unsigned {
        using row = typename decltype(detail::selector_in(typename Derived::layout::rows{}))::row;
        return Payload::size(detail::from_bit(raw, row::lsb) & low_bits(row::width));
    }
};

}  // namespace ptspec::packet

// ---- ptspec/packet/pad.hpp ----

namespace ptspec::packet {

/// PAD, nothing. Each 00H is one PAD.
///
/// Shape:  1 byte: 00H.
/// Errors: none.
/// Source: SDM vol. 3, "PAD Packet"; PKT-166.
struct pad : packet_word<pad, 1> {
    static constexpr facts about{
        .id = kind::pad, .name = "PAD", .in_psb_plus = true, .keeps_block = true};

    struct Opcode : fixed<7, 0, 0x00> {};
    struct layout : bit_layout<8, Opcode> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/tnt.hpp ----

namespace ptspec::packet {

/// The branches that a TNT packet tells of.
struct branches {
    unsigned count = 0;
    /// Bit count-1 is the oldest branch, bit 0 the youngest; 1 is taken.
    uint64_t bits = 0;

    /// Branch `i`, counted from the oldest. `i` has to be below `count`.
    [[nodiscard]] constexpr auto taken(unsigned i) const noexcept -> bool {
        return (bits >> (count - 1 - i) & 1) != 0;
    }
    friend constexpr auto operator==(branches const&, branches const&) -> bool = default;
};

namespace detail {

/// What stands below the stop bit, the highest bit that is 1.
constexpr auto below_stop_bit(uint64_t bits) noexcept -> branches {
    if (bits == 0) { return {}; }
    unsigned const stop = highest_bit(bits);
    return {stop, bits & low_bits(stop)};
}

}  // namespace detail

/// TNT.short, up to six taken or not-taken branches.
///
/// Shape:  1 byte: bit 0 is 0, above it the branches, above them the stop bit. 00H is PAD and 02H
///         is the escape of the longer opcodes, so it has at least one branch.
/// Units:  the bit directly below the stop bit is the oldest branch.
/// Errors: none when read; PKT-033 for no branch or more than six, PKT-344 inside a block, when
///         written.
/// Source: SDM vol. 3, "Taken/Not-taken (TNT) Packet"; PKT-030..033, PKT-039.
struct tnt_short : packet_word<tnt_short, 1> {
    static constexpr facts about{.id = kind::tnt_short,
                                 .name = "TNT.short",
                                 .binds_to_ip = binding::yes,
                                 .cyc_eligible = answer::yes};
    static constexpr unsigned most_branches = 6;

    struct Opcode : fixed<0, 0, 0> {};
    struct bits : field<7, 1> {};
    struct layout : bit_layout<8, Opcode, bits> {};

    [[nodiscard]] constexpr auto taken() const noexcept -> branches {
        return detail::below_stop_bit(raw >> 1);
    }
    /// The packet for 1 to 6 branches. Others give a packet that `encode` refuses.
    [[nodiscard]] static constexpr auto of(branches which) noexcept -> tnt_short {
        return which.count == 0 || which.count > most_branches
                   ? tnt_short{}
                   : tnt_short{}.with(bits{wrapped{uint64_t{1} << which.count |
                                                   (which.bits & low_bits(which.count))}});
    }
    [[nodiscard]] static constexpr auto broken_payload(uint64_t raw) noexcept -> rule {
        return raw < 4 ? rule::PKT_033 : rule::none;
    }
};

/// TNT.long, up to 47 taken or not-taken branches.
///
/// Shape:  8 bytes: 02H A3H, then 48 bits that hold the branches and above them the stop bit.
/// Units:  the bit directly below the stop bit is the oldest branch.
/// Errors: truncated; bad_packet without a stop bit or without a branch.
/// Source: SDM vol. 3, "Taken/Not-taken (TNT) Packet"; PKT-034..037, PKT-039, PKT-040.
struct tnt_long : packet_word<tnt_long, 8> {
    static constexpr facts about{.id = kind::tnt_long,
                                 .name = "TNT.long",
                                 .binds_to_ip = binding::yes,
                                 .cyc_eligible = answer::yes};
    static constexpr unsigned most_branches = 47;

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xA3> {};
    struct bits : field<63, 16> {};
    struct layout : bit_layout<64, Escape, Opcode, bits> {};

    [[nodiscard]] constexpr auto taken() const noexcept -> branches {
        return detail::below_stop_bit(raw >> 16);
    }
    /// The packet for 1 to 47 branches. Others give a packet that `encode` refuses.
    [[nodiscard]] static constexpr auto of(branches which) noexcept -> tnt_long {
        return which.count == 0 || which.count > most_branches
                   ? tnt_long{}
                   : tnt_long{}.with(bits{wrapped{uint64_t{1} << which.count |
                                                  (which.bits & low_bits(which.count))}});
    }
    [[nodiscard]] static constexpr auto broken_payload(uint64_t raw) noexcept -> rule {
        return raw >> 16 == 0 ? rule::PKT_036 : raw >> 16 == 1 ? rule::PKT_037 : rule::none;
    }
};

}  // namespace ptspec::packet

// ---- ptspec/packet/ip.hpp ----

namespace ptspec::packet {

/// How an IP packet's payload and the last IP make an IP.
///
/// Source: PKT-051. 5 and 7 are reserved.
enum class ip_bytes : uint8_t {
    suppressed = 0,  ///< no payload: no IP
    update_16 = 1,   ///< 2 bytes replace bits 15:0
    update_32 = 2,   ///< 4 bytes replace bits 31:0
    sign_48 = 3,     ///< 6 bytes, sign-extended
    update_48 = 4,   ///< 6 bytes replace bits 47:0
    full = 6,        ///< 8 bytes
};

/// The IP that an IP packet leaves as last IP: `last_ip` itself where it carries none.
///
/// Errors: none; for reserved values of IPBytes it is `last_ip`.
/// Source: PKT-053..059.
constexpr auto rebuilt_ip(ip_bytes how, uint64_t payload, uint64_t last_ip) noexcept -> uint64_t {
    switch (how) {
        case ip_bytes::update_16: return (last_ip & ~low_bits(16)) | (payload & low_bits(16));
        case ip_bytes::update_32: return (last_ip & ~low_bits(32)) | (payload & low_bits(32));
        case ip_bytes::sign_48: return sign_extended(payload, 48);
        case ip_bytes::update_48: return (last_ip & ~low_bits(48)) | (payload & low_bits(48));
        case ip_bytes::full: return payload;
        case ip_bytes::suppressed: break;
    }
    return last_ip;
}

/// The shortest form from which a reader whose last IP is `last_ip` rebuilds `ip`.
///
/// Source: PKT-064: the first that fits of 1, 2, 3, 4, 6.
constexpr auto shortest_form(uint64_t ip, uint64_t last_ip) noexcept -> ip_bytes {
    return (ip ^ last_ip) >> 16 == 0     ? ip_bytes::update_16
           : (ip ^ last_ip) >> 32 == 0   ? ip_bytes::update_32
           : sign_extended(ip, 48) == ip ? ip_bytes::sign_48
           : (ip ^ last_ip) >> 48 == 0   ? ip_bytes::update_48
                                         : ip_bytes::full;
}

/// What TIP, TIP.PGE, TIP.PGD and FUP share.
///
/// Shape:  1 byte: the opcode in bits 4:0 and IPBytes in bits 7:5; then 0, 2, 4, 6 or 8 bytes of
///         IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "IP Compression"; PKT-050..062.
template <class Derived>
struct ip_packet
    : packet_word<Derived, 1, payload_of<0, 2, 4, 6, 6, undefined_size, 8, undefined_size>> {
    using base =
        packet_word<Derived, 1, payload_of<0, 2, 4, 6, 6, undefined_size, 8, undefined_size>>;
    using base::base;

    struct IPBytes : selects_payload<enumerated<7, 5, ip_bytes>> {};

    /// False: the IP is suppressed, and the last IP stays as it is.
    [[nodiscard]] constexpr auto has_ip() const noexcept -> bool {
        return this->template get<IPBytes>() != ip_bytes::suppressed;
    }
    /// The last IP behind this packet; where it has an IP, that IP.
    [[nodiscard]] constexpr auto ip(uint64_t last_ip) const noexcept -> uint64_t {
        return rebuilt_ip(this->template get<IPBytes>(), this->payload(), last_ip);
    }
    /// The packet in the form of the caller's choice, with as many bits of `ip` as it carries.
    [[nodiscard]] static constexpr auto of(ip_bytes how, uint64_t ip) noexcept -> Derived {
        return Derived{}.with(IPBytes{how}).with_payload(ip & low_bits(8 * payload_bytes(how)));
    }
    /// The packet in the shortest form from which `ip` is rebuilt behind `last_ip`.
    [[nodiscard]] static constexpr auto compressed(uint64_t ip, uint64_t last_ip) noexcept
        -> Derived {
        return of(shortest_form(ip, last_ip), ip);
    }
    [[nodiscard]] static constexpr auto broken_header(wide_bits raw) noexcept -> rule {
        return base::selected_size(raw) == undefined_size ? rule::PKT_052 : rule::none;
    }

private:
    static constexpr auto payload_bytes(ip_bytes how) noexcept -> unsigned {
        unsigned const size = base::payload_type::size(underlying(how) & 7U);
        return size == undefined_size ? 0 : size;
    }
};

/// TIP, where an indirect branch, an uncompressed return, a far transfer or an event went.
///
/// Shape:  1, 3, 5, 7 or 9 bytes: 0DH with IPBytes, then the IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "Target IP (TIP) Packet"; PKT-050, PKT-070, PKT-071.
struct tip : ip_packet<tip> {
    static constexpr facts about{
        .id = kind::tip, .name = "TIP", .binds_to_ip = binding::yes, .cyc_eligible = answer::yes};

    struct Opcode : fixed<4, 0, 0x0D> {};
    struct layout : bit_layout<8, Opcode, IPBytes> {};
};

/// TIP.PGE, where tracing of control flow starts.
///
/// Shape:  1, 3, 5, 7 or 9 bytes: 11H with IPBytes, then the IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "Packet Generation Enable (TIP.PGE) Packet"; PKT-050, PKT-076.
struct tip_pge : ip_packet<tip_pge> {
    static constexpr facts about{.id = kind::tip_pge,
                                 .name = "TIP.PGE",
                                 .binds_to_ip = binding::yes,
                                 .cyc_eligible = answer::yes};

    struct Opcode : fixed<4, 0, 0x11> {};
    struct layout : bit_layout<8, Opcode, IPBytes> {};
};

/// TIP.PGD, where tracing of control flow stops.
///
/// Shape:  1, 3, 5, 7 or 9 bytes: 01H with IPBytes, then the IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "Packet Generation Disable (TIP.PGD) Packet"; PKT-050, PKT-073..075.
struct tip_pgd : ip_packet<tip_pgd> {
    static constexpr facts about{.id = kind::tip_pgd,
                                 .name = "TIP.PGD",
                                 .binds_to_ip = binding::yes,
                                 .cyc_eligible = answer::yes};

    struct Opcode : fixed<4, 0, 0x01> {};
    struct layout : bit_layout<8, Opcode, IPBytes> {};
};

/// FUP, where an event came from. It is never alone: another packet consumes it.
///
/// Shape:  1, 3, 5, 7 or 9 bytes: 1DH with IPBytes, then the IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "Flow Update Packet (FUP)"; PKT-050, PKT-065, PKT-077.
struct fup : ip_packet<fup> {
    static constexpr facts about{.id = kind::fup,
                                 .name = "FUP",
                                 .binds_to_ip = binding::yes,
                                 .in_psb_plus = true,
                                 .keeps_block = true};

    struct Opcode : fixed<4, 0, 0x1D> {};
    struct layout : bit_layout<8, Opcode, IPBytes> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/pip.hpp ----

namespace ptspec::packet {

/// PIP, a new page-directory base.
///
/// Shape:  8 bytes: 02H 43H, then NR and CR3[51:5].
/// Units:  CR3 is the address itself; its bits 11:5 carry something only with PAE paging.
/// Errors: truncated.
/// Source: SDM vol. 3, "Paging Information (PIP) Packet"; PKT-080, PKT-081.
struct pip : packet_word<pip, 8> {
    static constexpr facts about{.id = kind::pip,
                                 .name = "PIP",
                                 .binds_to_ip = binding::conditional,
                                 .in_psb_plus = true,
                                 .cyc_eligible = answer::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x43> {};
    struct NR : flag<16> {};  ///< VMX non-root operation
    struct CR3 : address_field<63, 17, 5> {};
    struct layout : bit_layout<64, Escape, Opcode, NR, CR3> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/mode.hpp ----

namespace ptspec::packet {

/// MODE.Exec, the execution mode from here on.
///
/// Shape:  2 bytes: 99H, then leaf 0 and the mode.
/// Units:  CS_L is CS.L & EFER.LMA. IF is RFLAGS.IF, told only with event trace.
/// Errors: truncated; reserved when CS_L and CS_D are both 1.
/// Source: SDM vol. 3, "MODE Packets"; PKT-085..087, PKT-090, PKT-091.
struct mode_exec : packet_word<mode_exec, 2> {
    static constexpr facts about{.id = kind::mode_exec,
                                 .name = "MODE.Exec",
                                 .binds_to_ip = binding::yes,
                                 .in_psb_plus = true,
                                 .cyc_eligible = answer::yes};

    struct Opcode : fixed<7, 0, 0x99> {};
    struct CS_L : flag<8> {};
    struct CS_D : flag<9> {};
    struct IF : flag<10> {};
    struct Leaf : leaf<15, 13, 0> {};
    struct layout : bit_layout<16, Opcode, CS_L, CS_D, IF, reserved<12, 11>, Leaf> {};
    static constexpr rule unknown_leaf = rule::PKT_089;

    /// The width of the code that runs: 16, 32 or 64 bits.
    [[nodiscard]] constexpr auto code_bits() const noexcept -> unsigned {
        return get<CS_L>() ? 64 : get<CS_D>() ? 32 : 16;
    }
    [[nodiscard]] static constexpr auto broken_header(uint64_t raw) noexcept -> rule {
        return mode_exec{raw}.get<CS_L>() && mode_exec{raw}.get<CS_D>() ? rule::PKT_090
                                                                        : rule::none;
    }
};

/// MODE.TSX, a transaction began, ended or was aborted.
///
/// Shape:  2 bytes: 99H, then leaf 1 and the state.
/// Errors: truncated; reserved when InTX and TXAbort are both 1.
/// Source: SDM vol. 3, "MODE Packets"; PKT-085, PKT-088, PKT-090, PKT-091.
struct mode_tsx : packet_word<mode_tsx, 2> {
    static constexpr facts about{.id = kind::mode_tsx,
                                 .name = "MODE.TSX",
                                 .binds_to_ip = binding::yes,
                                 .in_psb_plus = true,
                                 .cyc_eligible = answer::yes};

    struct Opcode : fixed<7, 0, 0x99> {};
    struct InTX : flag<8> {};
    struct TXAbort : flag<9> {};
    struct Leaf : leaf<15, 13, 1> {};
    struct layout : bit_layout<16, Opcode, InTX, TXAbort, reserved<12, 10>, Leaf> {};
    static constexpr rule unknown_leaf = rule::PKT_089;

    [[nodiscard]] static constexpr auto broken_header(uint64_t raw) noexcept -> rule {
        return mode_tsx{raw}.get<InTX>() && mode_tsx{raw}.get<TXAbort>() ? rule::PKT_090
                                                                         : rule::none;
    }
};

}  // namespace ptspec::packet

// ---- ptspec/packet/tracestop.hpp ----

namespace ptspec::packet {

/// TraceStop, tracing was stopped by a TraceStop range.
///
/// Shape:  2 bytes: 02H 83H.
/// Errors: truncated.
/// Source: SDM vol. 3, "TraceStop Packet"; PKT-160.
struct tracestop : packet_word<tracestop, 2> {
    static constexpr facts about{
        .id = kind::tracestop, .name = "TraceStop", .binds_to_ip = binding::conditional};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x83> {};
    struct layout : bit_layout<16, Escape, Opcode> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/cbr.hpp ----

namespace ptspec::packet {

/// CBR, the core clock's ratio to the bus clock.
///
/// Shape:  4 bytes: 02H 03H, the ratio, one reserved byte.
/// Units:  CoreBusRatio multiplies the bus clock; 0 is decoded but says nothing about time.
/// Errors: truncated. A set reserved bit is ignored when read and 0 when written.
/// Source: SDM vol. 3, "Core:Bus Ratio (CBR) Packet"; PKT-105, PKT-106.
struct cbr : packet_word<cbr, 4> {
    static constexpr facts about{
        .id = kind::cbr, .name = "CBR", .in_psb_plus = true, .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x03> {};
    struct CoreBusRatio : field<23, 16> {};
    struct layout : bit_layout<32, Escape, Opcode, CoreBusRatio, reserved<31, 24>> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/tsc.hpp ----

namespace ptspec::packet {

/// TSC, the time-stamp counter.
///
/// Shape:  8 bytes: 19H, then TSC[55:0].
/// Units:  ticks of the time-stamp counter, zero-extended.
/// Errors: truncated.
/// Source: SDM vol. 3, "Timestamp Counter (TSC) Packet"; PKT-100.
struct tsc : packet_word<tsc, 8> {
    static constexpr facts about{.id = kind::tsc,
                                 .name = "TSC",
                                 .in_psb_plus = true,
                                 .cyc_eligible = answer::yes,
                                 .keeps_block = true};

    struct Opcode : fixed<7, 0, 0x19> {};
    struct TSC : field<63, 8> {};
    struct layout : bit_layout<64, Opcode, TSC> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/mtc.hpp ----

namespace ptspec::packet {

/// MTC, eight bits of the crystal clock.
///
/// Shape:  2 bytes: 59H, then CTC.
/// Units:  CTC is bits N+7:N of the crystal counter, N being IA32_RTIT_CTL.MTCFreq.
/// Errors: truncated.
/// Source: SDM vol. 3, "Mini Time Counter (MTC) Packet"; PKT-101, PKT-102.
struct mtc : packet_word<mtc, 2> {
    static constexpr facts about{.id = kind::mtc,
                                 .name = "MTC",
                                 .in_psb_plus = true,
                                 .cyc_eligible = answer::yes,
                                 .keeps_block = true};

    struct Opcode : fixed<7, 0, 0x59> {};
    struct CTC : field<15, 8> {};
    struct layout : bit_layout<16, Opcode, CTC> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/tma.hpp ----

namespace ptspec::packet {

/// TMA, the crystal clock at the TSC packet before it.
///
/// Shape:  7 bytes: 02H 73H, CTC in two bytes, a reserved byte, FC in nine bits.
/// Units:  CTC is bits 15:0 of the crystal counter; FC counts TSC ticks since its last edge.
/// Errors: truncated; bad_packet in strict mode when a reserved bit is set.
/// Source: SDM vol. 3, "TSC/MTC Alignment (TMA) Packet"; PKT-103, PKT-104.
struct tma : packet_word<tma, 7> {
    static constexpr facts about{
        .id = kind::tma, .name = "TMA", .in_psb_plus = true, .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x73> {};
    struct CTC : field<31, 16> {};
    struct FC : field<48, 40> {};
    // clang-format off
    struct layout : bit_layout<56,
        Escape, Opcode, CTC, reserved<39, 32>, FC, reserved<55, 49>> {};
    // clang-format on

    [[nodiscard]] static constexpr auto broken_when_strict(uint64_t raw) noexcept -> rule {
        return (raw & reserved_mask()) != 0 ? rule::PKT_104 : rule::none;
    }
};

}  // namespace ptspec::packet

// ---- ptspec/packet/cyc.hpp ----

namespace ptspec::packet {

namespace detail {

/// In each byte the bit that says whether another follows: bit 2 of the first, bit 0 of the others.
inline constexpr uint64_t cyc_ends_low = 0x0101'0101'0101'0100;

/// Seven bits of each of the eight bytes, put together.
constexpr auto gather_sevens(uint64_t bytes) noexcept -> uint64_t {
    bytes = (bytes & 0x007F'007F'007F'007F) | (bytes & 0x7F00'7F00'7F00'7F00) >> 1;
    bytes = (bytes & 0x0000'3FFF'0000'3FFF) | (bytes & 0x3FFF'0000'3FFF'0000) >> 2;
    return (bytes & 0x0000'0000'0FFF'FFFF) | (bytes & 0x0FFF'FFFF'0000'0000) >> 4;
}

}  // namespace detail

/// CYC, core clocks since the CYC before it.
///
/// Shape:  1 to 10 bytes: 03H in bits 1:0 of the first, Exp in bit 2 and five bits of the count
///         above; while Exp is 1 another byte follows, with its Exp in bit 0 and seven bits of the
///         count.
/// Units:  core clock cycles.
/// Errors: truncated; bad_packet for a count beyond 64 bits.
/// Source: SDM vol. 3, "Cycle Count Packet (CYC)"; PKT-107..111.
struct cyc : packet_word<cyc, 1, payload_continues<9>> {
    static constexpr facts about{
        .id = kind::cyc, .name = "CYC", .in_psb_plus = true, .keeps_block = true};

    struct Opcode : fixed<1, 0, 3> {};
    struct Exp : flag<2> {};
    struct value_4_0 : field<7, 3> {};
    struct layout : bit_layout<8, Opcode, Exp, value_4_0> {};

    /// The count.
    [[nodiscard]] constexpr auto value() const noexcept -> uint64_t {
        return get<value_4_0>() | detail::gather_sevens(raw.low >> 9 & 0x007F'7F7F'7F7F'7F7F) << 5 |
               (raw.high >> 1 & 0x7F) << 54 | raw.high >> 9 << 61;
    }
    /// How many bytes the packet has.
    [[nodiscard]] constexpr auto length() const noexcept -> unsigned {
        return length_of(raw, block::none);
    }
    /// The packet of a count in the fewest bytes, or in `bytes` of them where that is more.
    [[nodiscard]] static constexpr auto of(uint64_t count, unsigned bytes = 1) noexcept -> cyc {
        wide_bits bits = cyc{}.with(value_4_0{wrapped{count}}).raw;
        count >>= 5;
        for (unsigned at = 1; at < most_bytes && (count != 0 || at < bytes); ++at) {
            bits = bits | detail::to_bit<wide_bits>(1, at == 1 ? Exp::lsb : 8 * (at - 1)) |
                   detail::to_bit<wide_bits>((count & 0x7F) << 1, 8 * at);
            count >>= 7;
        }
        return cyc{bits};
    }

    [[nodiscard]] static constexpr auto length_of(wide_bits raw, block) noexcept -> unsigned {
        if ((raw.low & 1U << Exp::lsb) == 0) { return 1; }
        uint64_t const ends = ~raw.low & detail::cyc_ends_low;
        return ends != 0 ? lowest_bit(ends) / 8 + 1 : (raw.high & 1) == 0 ? 9 : 10;
    }
    [[nodiscard]] static constexpr auto broken_payload(wide_bits raw) noexcept -> rule {
        return length_of(raw, block::none) == most_bytes && (raw.high >> 8 & 0xF1) != 0
                   ? rule::PKT_110
                   : rule::none;
    }
};

}  // namespace ptspec::packet

// ---- ptspec/packet/vmcs.hpp ----

namespace ptspec::packet {

/// VMCS, a new VMCS pointer.
///
/// Shape:  7 bytes: 02H C8H, then bits 51:12 of the address.
/// Units:  base is the address itself; all ones means that no VMCS is loaded.
/// Errors: truncated.
/// Source: SDM vol. 3, "VMCS Packet"; PKT-162.
struct vmcs : packet_word<vmcs, 7> {
    static constexpr facts about{.id = kind::vmcs,
                                 .name = "VMCS",
                                 .binds_to_ip = binding::conditional,
                                 .in_psb_plus = true,
                                 .cyc_eligible = answer::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xC8> {};
    struct base : address_field<55, 16, 12> {};
    struct layout : bit_layout<56, Escape, Opcode, base> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/ovf.hpp ----

namespace ptspec::packet {

/// OVF, packets before this one were lost.
///
/// Shape:  2 bytes: 02H F3H.
/// Errors: truncated.
/// Source: SDM vol. 3, "Overflow (OVF) Packet"; PKT-150.
struct ovf : packet_word<ovf, 2> {
    static constexpr facts about{.id = kind::ovf,
                                 .name = "OVF",
                                 .binds_to_ip = binding::conditional,
                                 .in_psb_plus = true,
                                 .cyc_eligible = answer::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xF3> {};
    struct layout : bit_layout<16, Escape, Opcode> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/psb.hpp ----

namespace ptspec::packet {

/// PSB, where a reader can start.
///
/// Shape:  16 bytes: 02H 82H eight times. Nothing else in a trace looks like this.
/// Errors: truncated; bad_packet when a byte behind the first two is off the pattern.
/// Source: SDM vol. 3, "Packet Stream Boundary (PSB) Packet"; PKT-130..132.
struct psb : packet_word<psb, 16> {
    static constexpr facts about{.id = kind::psb, .name = "PSB"};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x82> {};
    struct Low : pattern<63, 16, 0x8202'8202'8202> {};
    struct High : pattern<127, 64, 0x8202'8202'8202'8202> {};
    struct layout : bit_layout<128, Escape, Opcode, Low, High> {};

    [[nodiscard]] static constexpr auto broken_payload(wide_bits raw) noexcept -> rule {
        return raw == detail::opcode_bits<psb> ? rule::none : rule::PKT_131;
    }
};

/// PSBEND, the end of the status packets that follow a PSB.
///
/// Shape:  2 bytes: 02H 23H.
/// Errors: truncated.
/// Source: SDM vol. 3, "PSBEND Packet"; PKT-133.
struct psbend : packet_word<psbend, 2> {
    static constexpr facts about{.id = kind::psbend, .name = "PSBEND", .in_psb_plus = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x23> {};
    struct layout : bit_layout<16, Escape, Opcode> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/mnt.hpp ----

namespace ptspec::packet {

/// MNT, a model-specific value.
///
/// Shape:  11 bytes: 02H C3H 88H, then 8 bytes.
/// Errors: truncated.
/// Source: SDM vol. 3, "Maintenance (MNT) Packet"; PKT-164.
struct mnt : packet_word<mnt, 11> {
    static constexpr facts about{
        .id = kind::mnt, .name = "MNT", .in_psb_plus = true, .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Escape2 : fixed<15, 8, 0xC3> {};
    struct Opcode : fixed<23, 16, 0x88> {};
    struct payload : field<87, 24> {};
    struct layout : bit_layout<88, Escape, Escape2, Opcode, payload> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/ptw.hpp ----

namespace ptspec::packet {

/// PTW, a value that PTWRITE put into the trace.
///
/// Shape:  6 or 10 bytes: 02H 12H with PayloadBytes and IP, then 4 or 8 bytes of payload.
/// Errors: truncated; reserved when PayloadBytes is 2 or 3.
/// Source: SDM vol. 3, "PTWRITE (PTW) Packet"; PKT-170..174.
struct ptw : packet_word<ptw, 2, payload_of<4, 8, undefined_size, undefined_size>> {
    static constexpr facts about{
        .id = kind::ptw, .name = "PTW", .binds_to_ip = binding::yes, .cyc_eligible = answer::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<12, 8, 0x12> {};
    struct PayloadBytes : selects_payload<field<14, 13>> {};
    struct IP : flag<15> {};  ///< a FUP with this instruction's IP follows
    struct layout : bit_layout<16, Escape, Opcode, PayloadBytes, IP> {};

    [[nodiscard]] static constexpr auto broken_header(wide_bits raw) noexcept -> rule {
        return selected_size(raw) == undefined_size ? rule::PKT_173 : rule::none;
    }
};

}  // namespace ptspec::packet

// ---- ptspec/packet/power.hpp ----

namespace ptspec::packet {

/// EXSTOP, execution stopped because the core clock did.
///
/// Shape:  2 bytes: 02H 62H with IP.
/// Errors: truncated.
/// Source: SDM vol. 3, "Execution Stop (EXSTOP) Packet"; PKT-180, PKT-181.
struct exstop : packet_word<exstop, 2> {
    static constexpr facts about{.id = kind::exstop,
                                 .name = "EXSTOP",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = answer::yes,
                                 .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<14, 8, 0x62> {};
    struct IP : flag<15> {};  ///< a FUP follows
    struct layout : bit_layout<16, Escape, Opcode, IP> {};
};

/// MWAIT, which idle state an MWAIT asked for.
///
/// Shape:  10 bytes: 02H C2H, the hints, three reserved bytes, the extensions, three reserved
///         bytes.
/// Units:  hints and ext as MWAIT takes them in EAX and ECX.
/// Errors: truncated.
/// Source: SDM vol. 3, "MWAIT Packet"; PKT-182, PKT-183.
struct mwait : packet_word<mwait, 10> {
    static constexpr facts about{.id = kind::mwait,
                                 .name = "MWAIT",
                                 .binds_to_ip = binding::yes,
                                 .cyc_eligible = answer::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xC2> {};
    struct hints : field<23, 16> {};
    struct ext : field<49, 48> {};
    // clang-format off
    struct layout : bit_layout<80,
        Escape, Opcode, hints, reserved<47, 24>, ext, reserved<79, 50>> {};
    // clang-format on
};

/// PWRE, an idle state was entered.
///
/// Shape:  4 bytes: 02H 22H, HW, the resolved thread C-state and its sub-state.
/// Units:  C-states as MWAIT encodes them.
/// Errors: truncated.
/// Source: SDM vol. 3, "Power Entry (PWRE) Packet"; PKT-184, PKT-185.
struct pwre : packet_word<pwre, 4> {
    static constexpr facts about{
        .id = kind::pwre, .name = "PWRE", .binds_to_ip = binding::conditional, .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x22> {};
    struct HW : flag<23> {};  ///< the hardware's own decision
    struct substate : field<27, 24> {};
    struct state : field<31, 28> {};
    struct layout : bit_layout<32, Escape, Opcode, reserved<22, 16>, HW, substate, state> {};
};

/// PWRX, an idle state was left.
///
/// Shape:  7 bytes: 02H A2H, the deepest and the last core C-state, the wake reason, reserved bits.
/// Units:  C-states as MWAIT encodes them. reason has one bit a cause: bit 0 an interrupt, bit 2 a
///         store to the monitored address, bit 3 the hardware; 0 is none of these.
/// Errors: truncated.
/// Source: SDM vol. 3, "Power Exit (PWRX) Packet"; PKT-186, PKT-187.
struct pwrx : packet_word<pwrx, 7> {
    static constexpr facts about{
        .id = kind::pwrx, .name = "PWRX", .binds_to_ip = binding::conditional, .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xA2> {};
    struct deepest : field<19, 16> {};
    struct last : field<23, 20> {};
    struct reason : field<27, 24> {};
    struct layout : bit_layout<56, Escape, Opcode, deepest, last, reason, reserved<55, 28>> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/pebs.hpp ----

namespace ptspec::packet {

/// BBP, a block of BIPs begins.
///
/// Shape:  3 bytes: 02H 63H, the type of the group and the size of its items.
/// Units:  SZ is 1 for items of 4 bytes and 0 for items of 8.
/// Errors: truncated.
/// Source: SDM vol. 3, "Block Begin Packet (BBP)"; PKT-200, PKT-201.
struct bbp : packet_word<bbp, 3> {
    static constexpr facts about{.id = kind::bbp,
                                 .name = "BBP",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = answer::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x63> {};
    struct type : field<20, 16> {};
    struct SZ : flag<23> {};
    struct layout : bit_layout<24, Escape, Opcode, type, reserved<22, 21>, SZ> {};

    /// The item size of the block that begins here.
    [[nodiscard]] constexpr auto opens() const noexcept -> block {
        return get<SZ>() ? block::items_of_4 : block::items_of_8;
    }
};

/// BIP, one item of a block.
///
/// Shape:  5 or 9 bytes: 04H with the id, then 4 or 8 bytes as the last BBP said. Outside a block
///         the same byte is a TNT.short.
/// Errors: truncated; PKT-344 when written outside a block.
/// Source: SDM vol. 3, "Block Item Packet (BIP)"; PKT-202, PKT-203.
struct bip : packet_word<bip, 1, payload_of_block> {
    static constexpr facts about{.id = kind::bip,
                                 .name = "BIP",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = answer::unconfirmed,
                                 .keeps_block = true};

    struct Opcode : fixed<2, 0, 4> {};
    struct id : field<7, 3> {};
    struct layout : bit_layout<8, Opcode, id> {};
};

/// BEP, a record of blocks ends.
///
/// Shape:  2 bytes: 02H 33H with IP.
/// Errors: truncated.
/// Source: SDM vol. 3, "Block End Packet (BEP)"; PKT-204.
struct bep : packet_word<bep, 2> {
    static constexpr facts about{.id = kind::bep,
                                 .name = "BEP",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = answer::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<14, 8, 0x33> {};
    struct IP : flag<15> {};  ///< a FUP follows
    struct layout : bit_layout<16, Escape, Opcode, IP> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/event.hpp ----

namespace ptspec::packet {

/// What a CFE tells of. Other values decode; what they mean is not known.
///
/// Source: PKT-221. SWINTR and SYSCALL are UNCONFIRMED.
enum class cfe_type : uint8_t {
    INTR = 0x01,
    IRET = 0x02,
    SMI = 0x03,
    RSM = 0x04,
    SIPI = 0x05,
    INIT = 0x06,
    VMENTRY = 0x07,
    VMEXIT = 0x08,
    VMEXIT_INTR = 0x09,
    SHUTDOWN = 0x0A,
    UINTR = 0x0C,
    UIRET = 0x0D,
    SWINTR = 0x0E,
    SYSCALL = 0x0F,
};

/// What the payload of an EVD is. Other values decode; what they mean is not known.
///
/// Source: PKT-226.
enum class evd_type : uint8_t {
    PFA = 0,   ///< page-fault linear address
    VMXQ = 1,  ///< VMX exit qualification
    VMXR = 2,  ///< VMX exit reason
};

/// CFE, a control-flow event of event trace.
///
/// Shape:  4 bytes: 02H 13H, the type and IP, the vector.
/// Errors: truncated.
/// Source: SDM vol. 3, "Control Flow Event (CFE) Packet"; PKT-220, PKT-221.
struct cfe : packet_word<cfe, 4> {
    static constexpr facts about{.id = kind::cfe,
                                 .name = "CFE",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = answer::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x13> {};
    struct type : enumerated<20, 16, cfe_type> {};
    struct IP : flag<23> {};  ///< a FUP follows
    struct vector : field<31, 24> {};
    struct layout : bit_layout<32, Escape, Opcode, type, reserved<22, 21>, IP, vector> {};
};

/// EVD, data of the event that the next CFE tells of.
///
/// Shape:  11 bytes: 02H 53H, the type, then 8 bytes.
/// Errors: truncated.
/// Source: SDM vol. 3, "Event Data (EVD) Packet"; PKT-225, PKT-226 (six bits of type are
///         UNCONFIRMED).
struct evd : packet_word<evd, 11> {
    static constexpr facts about{.id = kind::evd,
                                 .name = "EVD",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = answer::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x53> {};
    struct type : enumerated<21, 16, evd_type> {};
    struct payload : field<87, 24> {};
    struct layout : bit_layout<88, Escape, Opcode, type, reserved<23, 22>, payload> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/trig.hpp ----

namespace ptspec::packet {

/// TRIG, triggers fired.
///
/// Shape:  3 or 5 bytes: D9H, flags, TRBV with one bit a trigger, and ICNT when ICNTV is 1.
/// Units:  ICNT counts instructions since the last packet that told an IP.
/// Errors: truncated.
/// Source: PKT-240, PKT-242, PKT-243. UNCONFIRMED as a whole: known from decoders only.
struct trig : packet_word<trig, 3, payload_of<0, 2>> {
    static constexpr facts about{.id = kind::trig,
                                 .name = "TRIG",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = answer::unconfirmed};

    struct Opcode : fixed<7, 0, 0xD9> {};
    struct MULT : flag<13> {};  ///< more triggers fired than are told
    struct ICNTV : selects_payload<flag<14>> {};
    struct IP : flag<15> {};  ///< a FUP follows
    struct TRBV : field<23, 16> {};
    struct layout : bit_layout<24, Opcode, reserved<12, 8>, MULT, ICNTV, IP, TRBV> {};

    /// The instruction count, 0 when ICNTV is 0.
    [[nodiscard]] constexpr auto ICNT() const noexcept -> uint64_t { return payload(); }
};

}  // namespace ptspec::packet

// ---- ptspec/packet/list.hpp ----

namespace ptspec::packet {

/// Every packet type, in the order of `kind`.
using all = type_list<pad, tnt_short, tnt_long, tip, tip_pge, tip_pgd, fup, pip, mode_exec,
                      mode_tsx, tracestop, cbr, tsc, mtc, tma, cyc, vmcs, ovf, psb, psbend, mnt,
                      ptw, exstop, mwait, pwre, pwrx, bbp, bip, bep, cfe, evd, trig>;

namespace detail {

template <class... Packets>
constexpr auto facts_in(type_list<Packets...>, kind which) noexcept -> facts {
    facts found{};
    (void)((Packets::about.id == which ? (found = Packets::about, true) : false) || ...);
    return found;
}

}  // namespace detail

/// One of the packet types of `all`.
template <class Packet>
concept packet_type = ptspec::detail::is_among<Packet>(all{});

// Functions that look through a list of packets are templates of it, with every packet as default:
// a header that is only included then instantiates none of them.

/// What is to be said of a packet beside its bits.
template <class Packets = all>
[[nodiscard]] constexpr auto facts_of(kind which) noexcept -> facts {
    return detail::facts_in(Packets{}, which);
}

/// A packet's name as the manual spells it, `TIP.PGE`.
template <class Packets = all>
[[nodiscard]] constexpr auto name_of(kind which) noexcept -> text {
    return facts_of<Packets>(which).name;
}

}  // namespace ptspec::packet

// ---- ptspec/packet/any_packet.hpp ----

namespace ptspec::packet {

/// Calls `body.operator()<Packet>()` for the packet type of one kind. Where the body returns
/// something, a value-initialised result has to exist.
template <class Body, class First, class... Rest>
constexpr auto for_kind(kind which, Body&& body, type_list<First, Rest...> /*packets*/) {
    using result = decltype(body.template operator()<First>());
    if constexpr (same_as<result, void>) {
        (void)((which == First::about.id ? (body.template operator()<First>(), true) : false) ||
               ... || (which == Rest::about.id ? (body.template operator()<Rest>(), true) : false));
    } else {
        result out{};
        (void)((which == First::about.id ? (out = body.template operator()<First>(), true)
                                         : false) ||
               ... ||
               (which == Rest::about.id ? (out = body.template operator()<Rest>(), true) : false));
        return out;
    }
}

namespace detail {

/// The first `length` bytes.
constexpr auto first_bytes(wide_bits bits, unsigned length) noexcept -> wide_bits {
    return {bits.low & low_bits(8 * length),
            length > 8 ? bits.high & low_bits(8 * length - 64) : 0};
}

}  // namespace detail

/// Any of the 32 packets: its bytes, its kind and its length. PAD unless said otherwise.
///
/// Shape:  at most 24 bytes, trivially copyable.
class any_packet {
public:
    constexpr any_packet() noexcept = default;

    template <packet_type Packet>
    constexpr any_packet(Packet const& packet, unsigned length) noexcept
        : bytes_{detail::widen(packet.raw)},
          kind_{Packet::about.id},
          length_{static_cast<uint8_t>(length)} {}

    /// A packet whose own bits tell its length: every one but BIP.
    template <packet_type Packet>
        requires(!same_as<typename Packet::payload_type, payload_of_block>)
    constexpr any_packet(Packet const& packet) noexcept
        : any_packet{packet, Packet::length_of(packet.raw, block::none)} {}

    [[nodiscard]] constexpr auto kind() const noexcept -> packet::kind { return kind_; }
    /// How many bytes it has on the wire.
    [[nodiscard]] constexpr auto length() const noexcept -> unsigned { return length_; }
    /// Its bytes as one little-endian number.
    [[nodiscard]] constexpr auto raw() const noexcept -> wide_bits { return bytes_; }

    template <packet_type Packet>
    [[nodiscard]] constexpr auto is() const noexcept -> bool {
        return kind_ == Packet::about.id;
    }
    /// The packet, which has to be a `Packet`.
    template <packet_type Packet>
    [[nodiscard]] constexpr auto as() const noexcept -> Packet {
        return Packet{detail::narrow<typename Packet::raw_type>(bytes_)};
    }

    friend constexpr auto operator==(any_packet const&, any_packet const&) -> bool = default;

private:
    wide_bits bytes_{};
    packet::kind kind_ = packet::kind::pad;
    uint8_t length_ = 1;
};

static_assert(sizeof(any_packet) <= 24 && __is_trivially_copyable(any_packet));

/// Calls `visitor` with the packet as what it is, and returns what it returned. The results for all
/// packets are of one type, which is void or has a default.
template <class Packets = all, class Visitor>
constexpr auto visit(Visitor&& visitor, any_packet const& packet) {
    return for_kind(
        packet.kind(), [&]<class Packet>() { return visitor(packet.template as<Packet>()); },
        Packets{});
}

/// The block context behind a packet.
///
/// Source: PKT-205.
template <packet_type Packet>
[[nodiscard]] constexpr auto block_behind(Packet const& packet, block before) noexcept -> block {
    if constexpr (same_as<Packet, bbp>) {
        return packet.opens();
    } else {
        return Packet::about.keeps_block ? before : block::none;
    }
}

template <class Packets = all>
[[nodiscard]] constexpr auto block_behind(any_packet const& packet, block before) noexcept
    -> block {
    return visit<Packets>([=](auto const& one) { return block_behind(one, before); }, packet);
}

/// The last IP behind a packet, given the one before it.
///
/// Source: PKT-059, PKT-060, PKT-061, PKT-068.
template <packet_type Packet>
[[nodiscard]] constexpr auto last_ip_behind(Packet const& packet, uint64_t before) noexcept
    -> uint64_t {
    if constexpr (derived_from<Packet, ip_packet<Packet>>) {
        return packet.ip(before);
    } else {
        return same_as<Packet, psb> ? 0 : before;
    }
}

template <class Packets = all>
[[nodiscard]] constexpr auto last_ip_behind(any_packet const& packet, uint64_t before) noexcept
    -> uint64_t {
    return visit<Packets>([=](auto const& one) { return last_ip_behind(one, before); }, packet);
}

}  // namespace ptspec::packet

// ---- ptspec/packet/classify.hpp ----

/// Which packet some bytes begin, derived from the packets' declarations.
namespace ptspec::packet {

/// What a byte of an opcode says.
struct opcode_byte {
    enum class says : uint8_t {
        nothing,   ///< no packet has this byte here: `bad_opcode`
        a_packet,  ///< `which` begins here
        go_on,     ///< the next byte tells
    };
    says what = says::nothing;
    kind which = kind::pad;

    friend constexpr auto operator==(opcode_byte const&, opcode_byte const&) -> bool = default;
};

namespace detail {

/// What a packet demands of one byte of its opcode.
struct demand {
    uint8_t mask = 0;
    uint8_t value = 0;
};

template <class Row>
constexpr auto opcode_mask() noexcept -> wide_bits {
    if constexpr (Row::kind == row_kind::fixed) {
        if constexpr (Row::otherwise == mismatch::bad_opcode) {
            return run_of_bits<wide_bits>(Row::msb, Row::lsb);
        }
    }
    return {};
}

template <class... Rows>
constexpr auto opcode_mask_of(type_list<Rows...>) noexcept -> uint64_t {
    return (wide_bits{} | ... | opcode_mask<Rows>()).low;
}

/// The opcode of a packet: up to three bytes, as value and mask.
struct opcode_shape {
    kind which;
    uint32_t mask;
    uint32_t value;

    [[nodiscard]] constexpr auto at(unsigned byte) const noexcept -> demand {
        return {static_cast<uint8_t>(mask >> (8 * byte)),
                static_cast<uint8_t>(value >> (8 * byte))};
    }
};

template <class Packet>
constexpr auto shape_of() noexcept -> opcode_shape {
    constexpr uint64_t mask = opcode_mask_of(typename Packet::layout::rows{});
    static_assert(mask >> 24 == 0, "an opcode has at most three bytes");
    return {Packet::about.id, static_cast<uint32_t>(mask),
            static_cast<uint32_t>(widen(opcode_bits<Packet>).low & mask)};
}

/// The opcode bits of a packet. MODE.Exec and MODE.TSX share them.
template <class... Packets>
constexpr auto opcode_of(kind which, type_list<Packets...>) noexcept -> uint32_t {
    uint32_t found = 0;
    (void)((Packets::about.id == which ? (found = shape_of<Packets>().value, true) : false) || ...);
    return found;
}

struct opcode_table {
    opcode_byte bytes[256];
};

/// What each value of the opcode's byte number `at` says behind the bytes `prefix`. Where the
/// demands of several packets hold, the one that demands most bits is meant; of packets that differ
/// only in a leaf it is the first.
template <class... Packets>
constexpr auto tabulate(type_list<Packets...>, unsigned at, uint32_t prefix, bool in_block) noexcept
    -> opcode_table {
    constexpr opcode_shape shapes[] = {shape_of<Packets>()...};
    constexpr bool only_in_block[] = {same_as<typename Packets::payload_type, payload_of_block>...};
    opcode_table table{};
    unsigned bits[256] = {};
    for (unsigned i = 0; i < sizeof...(Packets); ++i) {
        auto const shape = shapes[i];
        auto const here = shape.at(at);
        if (here.mask == 0 || ((shape.value ^ prefix) & low_bits(8 * at)) != 0 ||
            (only_in_block[i] && !in_block)) {
            continue;
        }
        bool const goes_on = shape.at(at + 1).mask != 0;
        unsigned const demanded = popcount(here.mask);
        unsigned const free_bits = 0xFFU & ~unsigned{here.mask};
        // Every value that agrees in the demanded bits: the subsets of the free ones.
        for (unsigned rest = free_bits;; rest = (rest - 1) & free_bits) {
            unsigned const byte = here.value | rest;
            if (demanded > bits[byte]) {
                bits[byte] = demanded;
                table.bytes[byte] = {goes_on ? opcode_byte::says::go_on
                                             : opcode_byte::says::a_packet,
                                     goes_on ? kind::pad : shape.which};
            }
            if (rest == 0) { break; }
        }
    }
    return table;
}

/// The tables, made when they are first used.
template <class Packets>
struct tables_of {
    static constexpr opcode_table first = tabulate(Packets{}, 0, 0, false);
    static constexpr opcode_table first_in_block = tabulate(Packets{}, 0, 0, true);
    static constexpr opcode_table ext = tabulate(Packets{}, 1, 0x02, false);
    static constexpr opcode_table ext2 = tabulate(Packets{}, 2, 0xC302, false);
};

}  // namespace detail

/// What a packet's first byte says.
///
/// Source: PKT-010, PKT-011, PKT-014, PKT-015, PKT-203.
template <class Packets = all>
[[nodiscard]] constexpr auto classify_first(uint8_t byte, block items = block::none) noexcept
    -> opcode_byte {
    return items == block::none ? detail::tables_of<Packets>::first.bytes[byte]
                                : detail::tables_of<Packets>::first_in_block.bytes[byte];
}

/// What the byte after 02H says.
///
/// Source: PKT-012, PKT-016.
template <class Packets = all>
[[nodiscard]] constexpr auto classify_ext(uint8_t byte) noexcept -> opcode_byte {
    return detail::tables_of<Packets>::ext.bytes[byte];
}

/// What the byte after 02H C3H says.
///
/// Source: PKT-013.
template <class Packets = all>
[[nodiscard]] constexpr auto classify_ext2(uint8_t byte) noexcept -> opcode_byte {
    return detail::tables_of<Packets>::ext2.bytes[byte];
}

}  // namespace ptspec::packet

// ---- ptspec/packet/decode.hpp ----

/// Bytes to packets. A pure function of the bytes and of the block's item size.
namespace ptspec::packet {

/// What reading a packet depends on beside its bytes.
struct context {
    block items = block::none;
    bool strict = false;  ///< a reserved bit of TMA that is set is `bad_packet` (PKT-003, PKT-104)
};

/// What reading the bytes at hand gave.
struct decoded {
    any_packet packet{};  ///< when `why` is `none`
    error why = error::none;
    uint8_t need = 0;  ///< when truncated: the bytes known to be required so far, at most 16
    rule broken = rule::none;  ///< the rule behind `why`

    constexpr explicit operator bool() const noexcept { return why == error::none; }
    /// How many bytes were consumed: 0 after an error.
    [[nodiscard]] constexpr auto length() const noexcept -> unsigned {
        return why == error::none ? packet.length() : 0;
    }
};

/// The same for one packet type.
template <class Packet>
struct decoded_as {
    Packet packet{};
    unsigned length = 0;  ///< the bytes consumed: 0 after an error
    error why = error::none;
    uint8_t need = 0;
    rule broken = rule::none;

    constexpr explicit operator bool() const noexcept { return why == error::none; }
};

namespace detail {

/// Why there is no packet.
struct failure {
    error why = error::none;
    uint8_t need = 0;
    rule broken = rule::none;
};

constexpr auto truncated(unsigned need) noexcept -> failure {
    return {error::truncated, static_cast<uint8_t>(need), rule::PKT_255};
}

template <class Row>
constexpr auto leaf_mask() noexcept -> wide_bits {
    if constexpr (Row::kind == row_kind::fixed) {
        if constexpr (Row::otherwise == mismatch::reserved) {
            return run_of_bits<wide_bits>(Row::msb, Row::lsb);
        }
    }
    return {};
}

template <class... Rows>
constexpr auto leaf_mask_of(type_list<Rows...>) noexcept -> uint64_t {
    return (wide_bits{} | ... | leaf_mask<Rows>()).low;
}

/// The bits by which a packet is told from others of the same opcode.
template <class Packet>
inline constexpr uint64_t leaf_bits = leaf_mask_of(typename Packet::layout::rows{});

struct nobody {};

template <class Packet>
constexpr auto is_sibling(opcode_shape one) noexcept -> bool {
    constexpr auto two = shape_of<Packet>();
    return underlying(two.which) > underlying(one.which) && two.mask == one.mask &&
           two.value == one.value;
}

template <class Packet, class... Rest>
struct sibling_among {
    using type = nobody;
};
template <class Packet, class First, class... Rest>
struct sibling_among<Packet, First, Rest...> : sibling_among<Packet, Rest...> {};
template <class Packet, class First, class... Rest>
    requires(is_sibling<First>(shape_of<Packet>()))
struct sibling_among<Packet, First, Rest...> {
    using type = First;
};
template <class Packet, class... Packets>
auto sibling_in(type_list<Packets...>) -> typename sibling_among<Packet, Packets...>::type;

template <class Packet>
constexpr auto broken_header(typename Packet::raw_type bits) noexcept -> rule {
    if constexpr (requires { Packet::broken_header(bits); }) {
        return Packet::broken_header(bits);
    } else {
        return rule::none;
    }
}

template <class Packet>
constexpr auto broken_payload(typename Packet::raw_type bits, bool strict) noexcept -> rule {
    if constexpr (requires { Packet::broken_payload(bits); }) {
        return Packet::broken_payload(bits);
    } else if constexpr (requires { Packet::broken_when_strict(bits); }) {
        return strict ? Packet::broken_when_strict(bits) : rule::none;
    } else {
        return rule::none;
    }
}

/// Everything behind the opcode: header, length, payload. Bytes that are not there count as 0,
/// which no header forbids, so that a short header shows as a length that is not reached.
template <class Packets, class Packet, class Sink>
constexpr auto finish(wide_bits image, size_t present, context how, Sink&& sink) -> failure {
    using raw = typename Packet::raw_type;
    if constexpr (leaf_bits<Packet> != 0) {
        if ((image.low & leaf_bits<Packet>) !=
            (widen(opcode_bits<Packet>).low & leaf_bits<Packet>)) {
            using sibling = decltype(sibling_in<Packet>(Packets{}));
            if constexpr (same_as<sibling, nobody>) {
                return {error::reserved, 0, Packet::unknown_leaf};
            } else {
                return finish<Packets, sibling>(image, present, how, sink);
            }
        }
    }
    rule broken = broken_header<Packet>(narrow<raw>(image));
    if (broken != rule::none) { return {error::reserved, 0, broken}; }
    unsigned const length = Packet::length_of(narrow<raw>(image), how.items);
    if (present < length) { return truncated(length); }
    raw const bits = narrow<raw>(first_bytes(image, length));
    broken = broken_payload<Packet>(bits, how.strict);
    if (broken != rule::none) { return {error::bad_packet, 0, broken}; }
    sink(Packet{bits}, length);
    return {};
}

/// The opcode at the front: which packet it begins, or why none.
struct opcode_found {
    failure failed{};
    kind which = kind::pad;
};

template <class Packets>
constexpr auto find_opcode(wide_bits image, size_t present, block items) noexcept -> opcode_found {
    if (present == 0) { return {truncated(1)}; }
    auto says = classify_first<Packets>(static_cast<uint8_t>(image.low), items);
    if (says.what == opcode_byte::says::a_packet) { return {{}, says.which}; }
    rule unknown = rule::PKT_015;
    if (says.what == opcode_byte::says::go_on) {
        if (present < 2) { return {truncated(2)}; }
        says = classify_ext<Packets>(static_cast<uint8_t>(image.low >> 8));
        unknown = rule::PKT_012;
        if (says.what == opcode_byte::says::go_on) {
            if (present < 3) { return {truncated(3)}; }
            says = classify_ext2<Packets>(static_cast<uint8_t>(image.low >> 16));
            unknown = rule::PKT_013;
        }
    }
    if (says.what == opcode_byte::says::nothing) { return {{error::bad_opcode, 0, unknown}}; }
    return {{}, says.which};
}

/// Reads the packet at the front and hands it to `sink(packet, length)`, typed.
template <class Packets, class Sink>
constexpr auto decode_into(byte_view in, context how, Sink&& sink) -> failure {
    wide_bits const image = load_le_wide(in);
    auto const opcode = find_opcode<Packets>(image, in.size(), how.items);
    return opcode.failed.why != error::none
               ? opcode.failed
               : for_kind(
                     opcode.which,
                     [&]<class Packet>() {
                         return finish<Packets, Packet>(image, in.size(), how, sink);
                     },
                     Packets{});
}

}  // namespace detail

/// The packet at the front of `in`. Nothing at all is `truncated`, need 1.
///
/// Errors: truncated, bad_opcode, reserved, bad_packet, checked in this order but that reserved
///         comes before a payload that is short. An error consumes nothing.
/// Source: PKT-003..006, PKT-010..016, PKT-255.
template <class Packets = all>
[[nodiscard]] constexpr auto decode(byte_view in, context how = {}) noexcept -> decoded {
    decoded out;
    auto const failure = detail::decode_into<Packets>(
        in, how,
        [&](auto const& packet, unsigned length) { out.packet = any_packet{packet, length}; });
    out.why = failure.why;
    out.need = failure.need;
    out.broken = failure.broken;
    return out;
}

/// The packet at the front of `in`, if it is a `Packet`; another one, whole or not, is
/// `bad_opcode`. What is wrong with a MODE packet is told to those who ask for either of the two.
template <packet_type Packet, class Packets = all>
[[nodiscard]] constexpr auto decode_as(byte_view in, context how = {}) noexcept
    -> decoded_as<Packet> {
    auto const opcode = detail::find_opcode<Packets>(load_le_wide(in), in.size(), how.items);
    auto const any = decode<Packets>(in, how);
    bool const other = any ? !any.packet.template is<Packet>()
                           : opcode.failed.why == error::none &&
                                 detail::opcode_of(opcode.which, Packets{}) !=
                                     detail::opcode_of(Packet::about.id, Packets{});
    if (other) { return {.why = error::bad_opcode, .broken = rule::PKT_010}; }
    return {any ? any.packet.template as<Packet>() : Packet{}, any.length(), any.why, any.need,
            any.broken};
}

}  // namespace ptspec::packet

// ---- ptspec/packet/encode.hpp ----

/// Packets to bytes. Whatever `decode` would not read back as the same packet is refused.
namespace ptspec::packet {

/// A packet's bytes, or the rule that forbids writing it.
template <unsigned Most>
struct encoded {
    byte_array<Most> bytes{};
    unsigned length = 0;
    rule broken = rule::none;

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
    [[nodiscard]] constexpr auto data() const noexcept -> uint8_t const* { return bytes.data(); }
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return length; }

    friend constexpr auto operator==(encoded const& one, byte_view two) noexcept -> bool {
        return byte_view{one} == two;
    }
};

namespace detail {

template <class... Rows>
constexpr auto fixed_mask_of(type_list<Rows...>) noexcept -> wide_bits {
    return (wide_bits{} | ... |
            (Rows::kind == row_kind::fixed ? run_of_bits<wide_bits>(Rows::msb, Rows::lsb)
                                           : wide_bits{}));
}

/// The packet's bits with opcode in place and reserved bits 0.
template <class Packet>
constexpr auto clean(Packet const& packet) noexcept -> wide_bits {
    constexpr wide_bits kept = ~(widen(Packet::reserved_mask()) |
                                 fixed_mask_of(typename Packet::layout::rows{}));
    return (widen(packet.raw) & kept) | widen(opcode_bits<Packet>);
}

/// The rule that forbids writing these bits as a `Packet`.
template <class Packets, class Packet>
constexpr auto why_refused(wide_bits bits, block items) noexcept -> rule {
    using raw = typename Packet::raw_type;
    if (rule const broken = broken_header<Packet>(narrow<raw>(bits)); broken != rule::none) {
        return broken;
    }
    if (rule const broken = broken_payload<Packet>(narrow<raw>(bits), false);
        broken != rule::none) {
        return broken;
    }
    auto const read = classify_first<Packets>(static_cast<uint8_t>(bits.low), items);
    if (read.what == opcode_byte::says::a_packet &&
        opcode_of(read.which, Packets{}) != opcode_of(Packet::about.id, Packets{})) {
        return rule::PKT_344;
    }
    unsigned const length = Packet::length_of(narrow<raw>(bits), items);
    return bits == first_bytes(bits, length) ? rule::none : rule::PKT_340;
}

}  // namespace detail

/// The packet's bytes; reserved bits are 0.
///
/// Errors: the rule that the packet breaks: a value without a meaning in its header, no branch in a
///         TNT, a payload longer than its size says (PKT-340), a TNT.short or BIP that would be
///         read as the other one (PKT-344).
/// Source: PKT-340..347.
template <packet_type Packet, class Packets = all>
[[nodiscard]] constexpr auto encode(Packet const& packet, block items = block::none) noexcept
    -> encoded<Packet::most_bytes> {
    encoded<Packet::most_bytes> out;
    wide_bits const bits = detail::clean(packet);
    out.broken = detail::why_refused<Packets, Packet>(bits, items);
    if (out.broken == rule::none) {
        out.length = Packet::length_of(detail::narrow<typename Packet::raw_type>(bits), items);
        for (unsigned i = 0; i < out.length; ++i) {
            out.bytes.bytes[i] = static_cast<uint8_t>(detail::from_bit(bits, 8 * i));
        }
    }
    return out;
}

template <class Packets = all>
[[nodiscard]] constexpr auto encode(any_packet const& packet, block items = block::none) noexcept
    -> encoded<16> {
    return for_kind(
        packet.kind(),
        [&]<class Packet>() {
            auto const one = encode(packet.template as<Packet>(), items);
            encoded<16> out;
            out.length = one.length;
            out.broken = one.broken;
            for (unsigned i = 0; i < one.length; ++i) { out.bytes.bytes[i] = one.bytes[i]; }
            return out;
        },
        Packets{});
}

/// Writes the packet behind what `out` holds, whole or not at all.
///
/// Errors: what `encode` refuses, and PKT-347 when there is no room. Nothing is written then.
/// Source: PKT-347.
template <class Packet>
    requires(packet_type<Packet> || same_as<Packet, any_packet>)
[[nodiscard]] constexpr auto append(byte_buffer& out, Packet const& packet,
                                    block items = block::none) noexcept -> rule {
    auto const bytes = encode(packet, items);
    return !bytes ? bytes.broken : out.append(bytes) ? rule::none : rule::PKT_347;
}

}  // namespace ptspec::packet

// ---- ptspec/trace/sync.hpp ----

/// Finding the places where a trace can be read from.
///
/// Where the pattern 02 82 stands more than eight times in a row, the PSB is the last 16 bytes of
/// the run: payload in front of a PSB can extend the run to the left, and only another PSB to the
/// right.
///
/// Source: SDM vol. 3, "Packet Stream Boundary (PSB) Packet"; PKT-250, PKT-251.
namespace ptspec::trace {

inline constexpr unsigned psb_bytes = packet::psb::most_bytes;

/// Searches a stream that comes in pieces. Its state is the run of the pattern at the end of the
/// last piece.
class psb_search {
public:
    /// Searches on in the next piece. Returns true when a PSB was found; it ends before byte
    /// `end()` of this piece. That is -1 when it ends one byte before the piece. What comes next
    /// takes a new search.
    [[nodiscard]] constexpr auto in(byte_view piece) noexcept -> bool {
        size_t at = 0;
        while (at < piece.size()) {
            if (run_ == 0) { at = likely_begin(piece, at); }
            if (piece[at] == (run_ % 2 == 0 ? first_byte : second_byte)) {
                ++run_;
                ++at;
            } else if (is_psb()) {
                return found_before(at);
            } else {
                // The byte that broke a run can begin the next one.
                at += run_ == 0 ? 1 : 0;
                run_ = 0;
            }
        }
        end_ = static_cast<int64_t>(at);
        return false;
    }

    /// The stream ends here: true when the run at its end is a PSB, which ends before byte `end()`
    /// of the last piece.
    [[nodiscard]] constexpr auto at_the_end() noexcept -> bool {
        return is_psb() && found_before(static_cast<size_t>(end_));
    }

    [[nodiscard]] constexpr auto end() const noexcept -> int64_t { return end_; }

private:
    static constexpr uint8_t first_byte = 0x02;
    static constexpr uint8_t second_byte = 0x82;

    [[nodiscard]] constexpr auto is_psb() const noexcept -> bool {
        return run_ / 2 >= psb_bytes / 2;
    }

    constexpr auto found_before(size_t at) noexcept -> bool {
        end_ = static_cast<int64_t>(at) - static_cast<int64_t>(run_ % 2);
        return true;
    }

    /// Where the search byte by byte has to begin at the latest, so that it misses no PSB that
    /// begins at `at` or later and no run that reaches the end. Fifteen bytes of the pattern hold
    /// eight that stand at a multiple of eight from `at`, and these are one of two numbers.
    static constexpr auto likely_begin(byte_view piece, size_t at) noexcept -> size_t {
        constexpr uint64_t even = 0x8202'8202'8202'8202;
        constexpr uint64_t odd = 0x0282'0282'0282'0282;
        constexpr size_t sure = 15;
        size_t const begin = at;
        for (; piece.size() - at >= 8; at += 8) {
            uint64_t const eight = load_le64(piece.data() + at);
            // The eight bytes before were neither number, so at most seven of them belong to the
            // run.
            if (eight == even || eight == odd) { return at == begin ? begin : at - 7; }
        }
        return piece.size() - begin < sure ? begin : piece.size() - (sure - 1);
    }

    uint64_t run_ = 0;  // bytes of the pattern up to where the search is
    int64_t end_ = 0;
};

/// Where no PSB is.
inline constexpr size_t nowhere = ~size_t{0};

/// The first PSB that begins at `from` or later, or `nowhere`.
[[nodiscard]] constexpr auto find_psb(byte_view in, size_t from = 0) noexcept -> size_t {
    psb_search search;
    return search.in(in.from(from)) || search.at_the_end()
               ? from + static_cast<size_t>(search.end()) - psb_bytes
               : nowhere;
}

/// The last PSB that begins before `before`, or `nowhere`.
[[nodiscard]] constexpr auto find_psb_before(byte_view in, size_t before) noexcept -> size_t {
    constexpr size_t block = 4096;
    while (before != 0) {
        size_t const begin = before > block ? before - block : 0;
        // As far as a run that begins before `before` has to be seen to tell where it does not end.
        auto const near_bytes = in.first(before + psb_bytes + 1);
        size_t found = nowhere;
        for (size_t at = find_psb(near_bytes, begin); at < before;
             at = find_psb(near_bytes, at + psb_bytes)) {
            found = at;
        }
        if (found != nowhere) { return found; }
        before = begin;
    }
    return nowhere;
}

}  // namespace ptspec::trace

// ---- ptspec/trace/pieces.hpp ----

namespace ptspec::trace {

/// The bytes of a trace that comes as one piece or in several, and a place in them.
///
/// Of a piece that is used up it keeps the last bytes by value: the begin of a packet that goes on
/// in the next piece, and as many before it as a search for a PSB may have to step back over.
class pieces {
public:
    /// How far `go_back` can go. A PSB can begin this many bytes before the place where reading
    /// failed: the packet before it may have swallowed its head (PKT-250).
    static constexpr unsigned look_back = psb_bytes - 1;

    constexpr pieces() noexcept = default;
    constexpr explicit pieces(byte_view whole) noexcept : piece_{whole}, last_{true} {}

    /// Gives the next piece, when the one before was let go.
    [[nodiscard]] constexpr auto feed(byte_view piece) noexcept -> bool {
        if (last_ || !piece_.empty()) { return false; }
        piece_ = piece;
        return true;
    }
    constexpr void finish() noexcept { last_ = true; }
    /// No more pieces come.
    [[nodiscard]] constexpr auto is_last() const noexcept -> bool { return last_; }

    /// Where the place is, in bytes from the begin of the trace.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t {
        return piece_offset_ + at_ - kept_unread_;
    }
    /// The place lies before the piece, in what was kept.
    [[nodiscard]] constexpr auto straddles() const noexcept -> bool { return kept_unread_ != 0; }

    [[nodiscard]] constexpr auto piece() const noexcept -> byte_view { return piece_; }
    /// Where the place is in the piece, when it does not straddle.
    [[nodiscard]] constexpr auto at() const noexcept -> size_t { return at_; }
    /// The piece from the place on, when it does not straddle.
    [[nodiscard]] constexpr auto rest() const noexcept -> byte_view { return piece_.from(at_); }
    /// What was kept from the place on.
    [[nodiscard]] constexpr auto kept() const noexcept -> byte_view {
        return byte_view{kept_}.from(kept_room - kept_unread_);
    }
    /// The bytes from the place on, when it straddles, as many as a packet can have: written to
    /// `room`.
    [[nodiscard]] constexpr auto joint(byte_buffer room) const noexcept -> byte_view {
        (void)room.append(kept());
        (void)room.append(piece_.first(psb_bytes));
        return room.written();
    }

    constexpr void step_over(size_t count) noexcept {
        size_t const kept = count < kept_unread_ ? count : kept_unread_;
        kept_unread_ = static_cast<uint8_t>(kept_unread_ - kept);
        at_ += count - kept;
    }
    /// Steps back over `count` bytes, at most `look_back` and no more than there were.
    constexpr void go_back(unsigned count) noexcept {
        unsigned const here = at_ < count ? static_cast<unsigned>(at_) : count;
        at_ -= here;
        kept_unread_ = static_cast<uint8_t>(kept_unread_ + count - here);
    }
    constexpr void go_to(size_t at) noexcept {
        at_ = at;
        kept_unread_ = 0;
    }

    /// Lets go of the piece; its last `unread` bytes, which may have begun before it, are to be
    /// read yet.
    constexpr void let_go(unsigned unread) noexcept {
        byte_array<kept_room> all{};
        size_t const fresh = piece_.size() < kept_room ? piece_.size() : kept_room;
        for (size_t i = 0; i < kept_room; ++i) {
            all.bytes[i] = i < kept_room - fresh ? kept_.bytes[i + fresh]
                                                 : piece_[piece_.size() - kept_room + i];
        }
        kept_ = all;
        kept_unread_ = static_cast<uint8_t>(unread);
        piece_offset_ += piece_.size();
        piece_ = {};
        at_ = 0;
    }

    /// Moves the place behind the next PSB. False when there is none: the place is then at the end
    /// of the last piece, or the piece was let go and the search goes on in the next.
    [[nodiscard]] constexpr auto search(psb_search& search) noexcept -> bool {
        if (straddles()) {
            auto const before = kept();
            bool const found = search.in(before);
            step_over(found ? static_cast<size_t>(search.end()) : before.size());
            if (found) { return true; }
        }
        bool const found = search.in(rest()) || (last_ && search.at_the_end());
        if (found && search.end() < 0) {
            go_back(1);
        } else if (found) {
            at_ += static_cast<size_t>(search.end());
        } else if (last_) {
            at_ = piece_.size();
        } else {
            let_go(0);
        }
        return found;
    }

private:
    static constexpr size_t kept_room = size_t{2} *
                                        look_back;  // a packet without its end, and before it

    byte_view piece_{};
    size_t at_ = 0;
    uint64_t piece_offset_ = 0;
    bool last_ = false;
    uint8_t kept_unread_ = 0;
    byte_array<kept_room> kept_{};
};

}  // namespace ptspec::trace

// ---- ptspec/trace/item.hpp ----

namespace ptspec::trace {

/// What a reader came to.
enum class event : uint8_t {
    packet,    ///< a packet
    unknown,   ///< bytes that the caller's hook knows: `length` of them
    synced,    ///< the first PSB: `skipped` bytes before it were not read
    damage,    ///< the bytes at `offset` are no packet, or a broken one: `why`, `broken`
    resynced,  ///< reading goes on at the PSB at `offset`
    lost,      ///< no PSB follows: the last `skipped` bytes are lost
    more,      ///< the piece is used up: `feed()` the next, or `finish()`
    end,       ///< the end of the trace
};

/// One thing that a reader came to, and where.
struct item {
    event what = event::end;
    packet::error why = packet::error::none;  ///< of damage; truncated: the trace ends in a packet
    uint8_t length = 0;                       ///< bytes that a packet or unknown bytes take
    uint8_t need = 0;  ///< of more, and of truncated damage: bytes that are missing at least
    rule broken = rule::none;  ///< of damage
    uint64_t offset = 0;       ///< in bytes from the begin of the trace
    uint64_t ip = 0;           ///< the last IP behind a packet
    int64_t skipped = 0;  ///< of synced, resynced and lost: bytes from the last place to this one.
        ///< A PSB can begin up to 15 bytes before the damage: then it is negative.
    packet::any_packet packet{};

    /// True for everything but the end of what there is to read.
    constexpr explicit operator bool() const noexcept {
        return what != event::more && what != event::end;
    }
};

/// Where a packet stands, the last IP behind it, and how many bytes it takes.
struct at {
    uint64_t offset;
    uint64_t ip;
    unsigned length;
};

/// How to read a trace.
struct options {
    bool sync = true;     ///< begin at the first PSB; otherwise at the first byte
    bool strict = false;  ///< a reserved bit of TMA that is set is damage (PKT-104)
};

/// The hook of a caller who knows no more opcodes than ptspec.
///
/// A hook is called with the bytes at an unknown opcode (up to 16 of them) and returns how many
/// bytes it takes: 1 to 16, or 0 when it does not know it either.
///
/// Source: PKT-253.
struct no_hook {
    constexpr auto operator()(byte_view) const noexcept -> unsigned { return 0; }
};

template <class Hook>
concept opcode_hook = requires(Hook& hook, byte_view bytes) {
    { hook(bytes) } -> convertible_to<unsigned>;
};

}  // namespace ptspec::trace

// ---- ptspec/trace/visitor.hpp ----

namespace ptspec::trace {

/// The visitor can be called with one type of packet.
template <class Visitor, class Packet>
concept takes = callable<Visitor&, Packet const&, at>;

namespace detail {

template <class Visitor, class... Packets>
constexpr auto takes_any(type_list<Packets...>) noexcept -> bool {
    return (takes<Visitor, Packets> || ...);
}

/// Calls the visitor, if it takes such a packet. False when it wants no more.
template <class Visitor, class Packet>
constexpr auto call(Visitor& visitor, Packet const& packet, at where) -> bool {
    if constexpr (!takes<Visitor, Packet>) {
        return true;
    } else if constexpr (same_as<result_t<Visitor&, Packet const&, at>, void>) {
        visitor(packet, where);
        return true;
    } else {
        return visitor(packet, where);
    }
}

}  // namespace detail

/// A visitor of packets: `visitor(packet, at)` for at least one type of packet. It returns nothing,
/// or false when it wants no more. It may also take `visitor(item)` for everything that is no
/// packet.
template <class Visitor, class Packets = packet::all>
concept packet_visitor = detail::takes_any<Visitor>(Packets{});

}  // namespace ptspec::trace

// ---- ptspec/trace/tally.hpp ----

namespace ptspec::trace {

/// How much of what a trace holds.
struct tally {
    uint64_t packets[packet::kinds] = {};  ///< by kind
    uint64_t bytes[packet::kinds] = {};    ///< by kind
    uint64_t unknown = 0;                  ///< packets that the caller's hook knew
    uint64_t unknown_bytes = 0;
    uint64_t errors = 0;
    uint64_t resyncs = 0;

    /// Counts one packet.
    constexpr void add(packet::kind which, unsigned length) noexcept {
        packets[underlying(which)] += 1;
        bytes[underlying(which)] += length;
    }
    /// Counts what is no packet.
    constexpr void add(item const& other) noexcept {
        unknown += other.what == event::unknown ? 1U : 0U;
        unknown_bytes += other.what == event::unknown ? other.length : 0U;
        errors += other.what == event::damage ? 1U : 0U;
        resyncs += other.what == event::resynced ? 1U : 0U;
    }

    [[nodiscard]] constexpr auto of(packet::kind which) const noexcept -> uint64_t {
        return packets[underlying(which)];
    }
    /// All packets, the unknown ones included.
    [[nodiscard]] constexpr auto total() const noexcept -> uint64_t {
        uint64_t sum = unknown;
        for (uint64_t const count : packets) { sum += count; }
        return sum;
    }

    friend constexpr auto operator==(tally const&, tally const&) -> bool = default;
};

/// Takes the boundaries of a scan and does nothing.
struct no_boundary {
    constexpr void operator()(packet::kind, uint64_t, unsigned) const noexcept {}
};

namespace detail {

/// The visitor that counts, and tells the boundaries.
template <class Boundary>
struct counter {
    tally& sum;
    Boundary& boundary;

    template <packet::packet_type Packet>
    constexpr void operator()(Packet const&, at where) const {
        sum.add(Packet::about.id, where.length);
        boundary(Packet::about.id, where.offset, where.length);
    }
    constexpr void operator()(item const& other) const { sum.add(other); }
};

}  // namespace detail

}  // namespace ptspec::trace

// ---- ptspec/trace/hot_loop.hpp ----

/// The loop in which nearly all packets of a trace are read.
namespace ptspec::trace::detail {

/// What reading changes. It goes in and out by value, so that it can stay in registers.
struct hot_state {
    size_t place = 0;  // in the bytes at hand
    uint64_t last_ip = 0;
    packet::block items = packet::block::none;
    bool go_on = true;  // the visitor wants more
};

/// Hands out the packets of `bytes`, which begin at `offset` of the trace, until the visitor wants
/// no more or until a packet needs more care: the last one, which may be cut, and everything that
/// is not one.
///
/// Nine packets of ten are short TNT, PAD, MTC or a CYC of one or two bytes: these are known by
/// their first two bytes, and change nothing but the place.
template <class Packets, class Visitor>
constexpr auto hot_loop(byte_view bytes, uint64_t offset, bool strict, hot_state now,
                        Visitor& visitor) -> hot_state {
    using namespace packet;
    using packet::detail::opcode_bits;
    using packet::detail::opcode_shape;
    using packet::detail::shape_of;
    constexpr opcode_shape tnt_opcode = shape_of<tnt_short>();
    constexpr unsigned escape = opcode_bits<psbend> & 0xFF;
    // The opcode of CYC, and whether a second and a third byte follow.
    constexpr opcode_shape cyc_opcode = shape_of<cyc>();
    constexpr unsigned second_follows = 1U << cyc::Exp::lsb;
    constexpr unsigned third_follows = 1U << 8;

    uint8_t const* const data = bytes.data();
    while (now.go_on && bytes.size() - now.place >= 2) {
        unsigned const two = data[now.place] | unsigned{data[now.place + 1]} << 8;
        unsigned const first = two & 0xFF;
        at here{offset + now.place, now.last_ip, 1};
        if ((first & tnt_opcode.mask) == tnt_opcode.value && first != escape &&
            now.items == block::none) {
            now.place += 1;
            now.go_on = first == opcode_bits<pad> ? call(visitor, pad{}, here)
                                                  : call(visitor, tnt_short{first}, here);
        } else if ((first & (cyc_opcode.mask | second_follows)) == cyc_opcode.value) {
            now.place += 1;
            now.go_on = call(visitor, cyc{wide_bits{first, 0}}, here);
        } else if ((two & (cyc_opcode.mask | second_follows | third_follows)) ==
                   (cyc_opcode.value | second_follows)) {
            now.place += 2;
            here.length = 2;
            now.go_on = call(visitor, cyc{wide_bits{two, 0}}, here);
        } else if (first == opcode_bits<mtc>) {
            now.place += 2;
            here.length = 2;
            now.go_on = call(visitor, mtc{two}, here);
        } else {
            auto const failure = packet::detail::decode_into<Packets>(
                bytes.from(now.place), {now.items, strict},
                [&](auto const& packet, unsigned length) {
                    now.place += length;
                    now.last_ip = last_ip_behind(packet, now.last_ip);
                    now.items = block_behind(packet, now.items);
                    now.go_on = call(visitor, packet, at{here.offset, now.last_ip, length});
                });
            if (failure.why != error::none) { break; }
        }
    }
    return now;
}

}  // namespace ptspec::trace::detail

// ---- ptspec/trace/reader.hpp ----

namespace ptspec::trace {

/// Reads the packets of a trace, one after the other, and finds its way through damage.
///
/// A reader is a value: a copy goes on by itself from where the original stands. It borrows the
/// bytes: the whole trace, or one piece after the other. Of a piece that is used up it keeps what
/// it still needs, so that the caller can let go of it.
///
/// Errors: damage is an item like any other. The next item is the PSB at which reading goes on, or
///         `lost`. Behind a trace that ends in a packet nothing is searched.
/// Source: PKT-250..256; the last IP PKT-059..061; the block context PKT-205.
template <opcode_hook Hook = no_hook, class Packets = packet::all>
class reader {
public:
    /// Reads a whole trace.
    constexpr explicit reader(byte_view whole, options how = {}, Hook hook = {}) noexcept
        : bytes_{whole},
          state_{first_state(how)},
          strict_{how.strict},
          synced_{!how.sync},
          hook_{hook} {}

    /// Reads a trace that comes in pieces.
    constexpr explicit reader(options how = {}, Hook hook = {}) noexcept
        : state_{first_state(how)}, strict_{how.strict}, synced_{!how.sync}, hook_{hook} {}

    /// Gives the next piece. Only when the reader asked for it with `event::more`, and at the
    /// beginning; at other times nothing happens and the answer is false.
    [[nodiscard]] constexpr auto feed(byte_view piece) noexcept -> bool {
        return bytes_.feed(piece);
    }

    /// Says that there are no more pieces.
    constexpr void finish() noexcept { bytes_.finish(); }

    /// The next thing in the trace.
    [[nodiscard]] constexpr auto next() noexcept -> item {
        if (reads_in_the_piece()) {
            auto const here = bytes_.rest();
            auto const got = packet::decode<Packets>(here, context());
            return got ? take(got.packet) : trouble(got, here);
        }
        return next_with_care();
    }

    /// Reads on until the end, the end of the piece, or until the visitor returns false, and says
    /// which of the three it was: `end`, `more`, or `packet`.
    template <packet_visitor<Packets> Visitor>
    constexpr auto for_each(Visitor&& visitor) -> event {
        while (true) {
            if (reads_in_the_piece() && !visit_in_the_piece(visitor)) { return event::packet; }
            auto const got = next();
            if (got.what == event::packet) {
                bool const go_on = packet::visit<Packets>(
                    [&](auto const& packet) {
                        return detail::call(visitor, packet, at{got.offset, got.ip, got.length});
                    },
                    got.packet);
                if (!go_on) { return event::packet; }
            } else {
                if constexpr (callable<Visitor&, item const&>) { visitor(got); }
                if (!got) { return got.what; }
            }
        }
    }

    /// Counts what comes until the end, or the end of the piece, on top of `sofar`. Calls
    /// `boundary(kind, offset, length)` for each packet, if it is given.
    template <class Boundary = no_boundary>
    constexpr auto scan(tally sofar = {}, Boundary&& boundary = {}) -> tally {
        (void)for_each(detail::counter<Boundary>{sofar, boundary});
        return sofar;
    }

    /// Where the next packet begins, in bytes from the begin of the trace.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t {
        return bytes_.offset() - ahead();
    }
    [[nodiscard]] constexpr auto last_ip() const noexcept -> uint64_t { return last_ip_; }
    [[nodiscard]] constexpr auto items() const noexcept -> packet::block { return items_; }

    /// Goes to the first PSB of what is at hand. False, and nothing happens, when there is none.
    [[nodiscard]] constexpr auto sync_first() noexcept -> bool {
        return go_to(find_psb(bytes_.piece()));
    }
    /// Goes to the next PSB of what is at hand, past the one at which the reader stands.
    [[nodiscard]] constexpr auto sync_next() noexcept -> bool {
        size_t const here = stands_before_the_piece() || state_ == state::searching ? 0 : 1;
        return go_to(find_psb(bytes_.piece(), place() + here));
    }
    /// Goes back to the last PSB of what is at hand before the place at which the reader stands.
    [[nodiscard]] constexpr auto sync_previous() noexcept -> bool {
        return go_to(find_psb_before(bytes_.piece(), place()));
    }

private:
    enum class state : uint8_t {
        reading,
        searching,  // for the PSB at which reading goes on
        resuming,   // behind a PSB that was found and is the next packet

    };

    static constexpr auto first_state(options how) noexcept -> state {
        return how.sync ? state::searching : state::reading;
    }
    [[nodiscard]] constexpr auto context() const noexcept -> packet::context {
        return {items_, strict_};
    }
    [[nodiscard]] constexpr auto reads_in_the_piece() const noexcept -> bool {
        return state_ == state::reading && !bytes_.straddles();
    }
    /// How many bytes behind the next packet's begin the place is.
    [[nodiscard]] constexpr auto ahead() const noexcept -> size_t {
        return state_ == state::resuming ? psb_bytes : 0;
    }
    /// The next packet begins before the piece.
    [[nodiscard]] constexpr auto stands_before_the_piece() const noexcept -> bool {
        return bytes_.straddles() || bytes_.at() < ahead();
    }
    /// Where the next packet begins in the piece; 0 when it begins before.
    [[nodiscard]] constexpr auto place() const noexcept -> size_t {
        return stands_before_the_piece() ? 0 : bytes_.at() - ahead();
    }

    constexpr auto go_to(size_t psb) noexcept -> bool {
        if (psb == nowhere) { return false; }
        bytes_.go_to(psb + psb_bytes);
        synced_ = true;
        state_ = state::resuming;
        return true;
    }

    /// Steps over a packet.
    constexpr auto take(packet::any_packet const& packet) noexcept -> item {
        uint64_t const offset = bytes_.offset();
        bytes_.step_over(packet.length());
        last_ip_ = packet::last_ip_behind<Packets>(packet, last_ip_);
        items_ = packet::block_behind<Packets>(packet, items_);
        return {.what = event::packet,
                .length = static_cast<uint8_t>(packet.length()),
                .offset = offset,
                .ip = last_ip_,
                .packet = packet};
    }

    /// What to do about bytes that are no packet.
    constexpr auto trouble(packet::decoded const& got, byte_view here) noexcept -> item {
        if (got.why == packet::error::truncated) { return out_of_bytes(got.need, here.size()); }
        uint64_t const offset = bytes_.offset();
        if (got.why == packet::error::bad_opcode) {
            unsigned const known = hook_(here.first(psb_bytes));
            if (known != 0 && known <= psb_bytes) {
                if (known > here.size()) { return out_of_bytes(known, here.size()); }
                bytes_.step_over(known);
                return {.what = event::unknown,
                        .length = static_cast<uint8_t>(known),
                        .offset = offset,
                        .ip = last_ip_};
            }
        }
        state_ = state::searching;
        lost_at_ = offset;
        search_ = {};
        bytes_.go_back(offset < pieces::look_back ? static_cast<unsigned>(offset)
                                                  : pieces::look_back);
        return {.what = event::damage, .why = got.why, .broken = got.broken, .offset = offset};
    }

    /// A packet needs more bytes than there are: the next piece has them, or the trace ends here.
    constexpr auto out_of_bytes(unsigned need, size_t have) noexcept -> item {
        uint64_t const offset = bytes_.offset();
        auto const missing = static_cast<uint8_t>(need - have);
        if (!bytes_.is_last()) {
            bytes_.let_go(static_cast<unsigned>(have));
            return {.what = event::more, .need = missing, .offset = offset};
        }
        if (have == 0) { return {.what = event::end, .offset = offset}; }
        bytes_.step_over(have);
        return {.what = event::damage,
                .why = packet::error::truncated,
                .need = missing,
                .broken = rule::PKT_255,
                .offset = offset,
                .skipped = static_cast<int64_t>(have)};
    }

    // What is seldom: between two pieces, and behind damage.

    constexpr auto next_with_care() noexcept -> item {
        switch (state_) {
            case state::searching: return search();
            case state::resuming: return resume();

            case state::reading: break;
        }
        byte_array<size_t{2} * psb_bytes> room{};
        auto const here = bytes_.joint(room.bytes);
        auto const got = packet::decode<Packets>(here, context());
        return got ? take(got.packet) : trouble(got, here);
    }

    constexpr auto search() noexcept -> item {
        bool const found = bytes_.search(search_);
        uint64_t const offset = bytes_.offset();
        if (!found && !bytes_.is_last()) {
            return {.what = event::more, .need = 1, .offset = offset};
        }
        if (!found) {
            state_ = state::reading;
            if (offset == lost_at_) { return {.what = event::end, .offset = offset}; }
            return {.what = event::lost,
                    .offset = offset,
                    .skipped = static_cast<int64_t>(offset - lost_at_)};
        }
        state_ = state::resuming;
        bool const first = !synced_;
        synced_ = true;
        uint64_t const psb = offset - psb_bytes;
        if (first && psb == 0) { return resume(); }
        return {.what = first ? event::synced : event::resynced,
                .offset = psb,
                .skipped = static_cast<int64_t>(psb - lost_at_)};
    }

    /// The PSB that was found. Its bytes may be gone, but they are known.
    constexpr auto resume() noexcept -> item {
        state_ = state::reading;
        last_ip_ = 0;
        items_ = packet::block::none;
        return {.what = event::packet,
                .length = psb_bytes,
                .offset = bytes_.offset() - psb_bytes,
                .packet = packet::any_packet{packet::psb{}}};
    }

    /// Hands out packets until one needs more care. False when the visitor wants no more.
    template <class Visitor>
    constexpr auto visit_in_the_piece(Visitor& visitor) -> bool {
        auto const behind = detail::hot_loop<Packets>(bytes_.rest(), bytes_.offset(), strict_,
                                                      {0, last_ip_, items_, true}, visitor);
        bytes_.step_over(behind.place);
        last_ip_ = behind.last_ip;
        items_ = behind.items;
        return behind.go_on;
    }

    pieces bytes_{};
    uint64_t last_ip_ = 0;
    packet::block items_ = packet::block::none;
    state state_;
    bool strict_;
    bool synced_;  // reading has begun: a PSB that is found is not the first
    Hook hook_{};
    uint64_t lost_at_ = 0;  // where the bytes that a search skips begin
    psb_search search_{};
};

}  // namespace ptspec::trace
