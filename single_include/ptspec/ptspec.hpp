// SPDX-License-Identifier: BSL-1.0
//
// ptspec 0.1.0: Intel Processor Trace, written down as C++20. The whole library in one header.
//
// Generated from include/ptspec/ptspec.hpp by single_include/amalgamate.py. Do not edit.
#pragma once

#if defined(PTSPEC_SEPARATE_HEADERS)
#error "headers of ptspec are included already: include either those or the single header"
#include <ptspec/either_the_single_header_or_those>  // ends compilation before redefinitions follow
#endif
#define PTSPEC_SINGLE_HEADER

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

/// A borrowed string with static lifetime: a name or a sentence.
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

/// The last component of a qualified name. `whole` is `... Type = a::b::Name]`, or
/// `...decorated_name<struct a::b::Name>(void) noexcept` from MSVC, and ends `suffix` characters
/// after the name.
constexpr auto last_component(text whole, size_t suffix) noexcept -> text {
    size_t const end = whole.size() - suffix;
    size_t first = end;
    while (first != 0 && whole.characters[first - 1] != ':' && whole.characters[first - 1] != ' ' &&
           whole.characters[first - 1] != '<' && whole.characters[first - 1] != ')') {
        --first;
    }
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

}  // namespace detail

/// The unqualified name of a type that is not a template, as spelled in the source.
template <class Type>
[[nodiscard]] constexpr auto name_of() noexcept -> text {
    // The suffix after the name is the same for every type, so it is measured on a known name.
    constexpr auto suffix = detail::suffix_length(detail::decorated_name<detail::probe_of_a_name>(),
                                                  "probe_of_a_name");
    return detail::last_component(detail::decorated_name<Type>(), suffix);
}

/// The unqualified name of an enumerator; empty for a value without a name.
template <auto Value>
[[nodiscard]] constexpr auto name_of_enumerator() noexcept -> text {
    constexpr auto suffix = detail::suffix_length(
        detail::decorated_value<detail::probe_enum::named>(), "named");
    // A value without a name is spelled as a cast: `(ptspec::reg::addr_cfg)3`.
    constexpr auto name = detail::last_component(detail::decorated_value<Value>(), suffix);
    constexpr char first = name.size() == 0 ? '0' : name.data()[0];
    return first == '(' || first == '-' || (first >= '0' && first <= '9') ? text{} : name;
}

}  // namespace ptspec

// ---- ptspec/rule.hpp ----

namespace ptspec {

namespace detail {

// The base of each family of rules, in thousands. Constants instead of an enumeration: compilers
// resolve an overloaded operator for each sum with an enumerator, which costs compile time.
inline constexpr uint16_t reg = 1000;
inline constexpr uint16_t out = 2000;
inline constexpr uint16_t pkt = 3000;
inline constexpr uint16_t gen = 4000;
inline constexpr uint16_t prg = 5000;

}  // namespace detail

/// A violated rule, by its number in the rule catalogue.
///
/// Lists only the rules that a function of this library returns. `none`: no rule was violated.
enum class rule : uint16_t {
    none = 0,
    REG_001 = detail::reg + 1,
    REG_002 = detail::reg + 2,
    REG_004 = detail::reg + 4,
    REG_006 = detail::reg + 6,
    REG_012 = detail::reg + 12,
    REG_013 = detail::reg + 13,
    REG_014 = detail::reg + 14,
    REG_017 = detail::reg + 17,
    REG_021 = detail::reg + 21,
    REG_024 = detail::reg + 24,
    REG_025 = detail::reg + 25,
    REG_026 = detail::reg + 26,
    REG_027 = detail::reg + 27,
    REG_028 = detail::reg + 28,
    REG_030 = detail::reg + 30,
    REG_031 = detail::reg + 31,
    REG_032 = detail::reg + 32,
    REG_033 = detail::reg + 33,
    REG_034 = detail::reg + 34,
    REG_035 = detail::reg + 35,
    REG_036 = detail::reg + 36,
    REG_037 = detail::reg + 37,
    REG_040 = detail::reg + 40,
    REG_044 = detail::reg + 44,
    REG_048 = detail::reg + 48,
    REG_052 = detail::reg + 52,
    REG_053 = detail::reg + 53,
    REG_054 = detail::reg + 54,
    REG_055 = detail::reg + 55,
    REG_056 = detail::reg + 56,
    REG_068 = detail::reg + 68,
    REG_070 = detail::reg + 70,
    REG_074 = detail::reg + 74,
    REG_076 = detail::reg + 76,
    REG_102 = detail::reg + 102,
    REG_103 = detail::reg + 103,
    REG_121 = detail::reg + 121,
    REG_129 = detail::reg + 129,
    REG_130 = detail::reg + 130,
    REG_131 = detail::reg + 131,
    REG_132 = detail::reg + 132,
    REG_135 = detail::reg + 135,
    REG_136 = detail::reg + 136,
    REG_140 = detail::reg + 140,
    REG_143 = detail::reg + 143,
    REG_144 = detail::reg + 144,
    REG_148 = detail::reg + 148,
    REG_200 = detail::reg + 200,
    REG_201 = detail::reg + 201,
    REG_203 = detail::reg + 203,
    REG_204 = detail::reg + 204,
    REG_216 = detail::reg + 216,
    REG_217 = detail::reg + 217,
    OUT_020 = detail::out + 20,
    OUT_022 = detail::out + 22,
    OUT_023 = detail::out + 23,
    OUT_024 = detail::out + 24,
    OUT_046 = detail::out + 46,
    OUT_056 = detail::out + 56,
    OUT_060 = detail::out + 60,
    OUT_061 = detail::out + 61,
    OUT_062 = detail::out + 62,
    OUT_063 = detail::out + 63,
    OUT_064 = detail::out + 64,
    OUT_065 = detail::out + 65,
    OUT_066 = detail::out + 66,
    OUT_067 = detail::out + 67,
    OUT_068 = detail::out + 68,
    OUT_070 = detail::out + 70,
    OUT_071 = detail::out + 71,
    OUT_080 = detail::out + 80,
    OUT_091 = detail::out + 91,
    OUT_093 = detail::out + 93,
    OUT_111 = detail::out + 111,
    OUT_113 = detail::out + 113,
    PKT_010 = detail::pkt + 10,
    PKT_012 = detail::pkt + 12,
    PKT_013 = detail::pkt + 13,
    PKT_015 = detail::pkt + 15,
    PKT_033 = detail::pkt + 33,
    PKT_036 = detail::pkt + 36,
    PKT_037 = detail::pkt + 37,
    PKT_052 = detail::pkt + 52,
    PKT_070 = detail::pkt + 70,
    PKT_076 = detail::pkt + 76,
    PKT_077 = detail::pkt + 77,
    PKT_078 = detail::pkt + 78,
    PKT_089 = detail::pkt + 89,
    PKT_090 = detail::pkt + 90,
    PKT_103 = detail::pkt + 103,
    PKT_104 = detail::pkt + 104,
    PKT_109 = detail::pkt + 109,
    PKT_110 = detail::pkt + 110,
    PKT_131 = detail::pkt + 131,
    PKT_134 = detail::pkt + 134,
    PKT_135 = detail::pkt + 135,
    PKT_142 = detail::pkt + 142,
    PKT_173 = detail::pkt + 173,
    PKT_255 = detail::pkt + 255,
    PKT_273 = detail::pkt + 273,
    PKT_278 = detail::pkt + 278,
    PKT_303 = detail::pkt + 303,
    PKT_340 = detail::pkt + 340,
    PKT_344 = detail::pkt + 344,
    PKT_347 = detail::pkt + 347,
    GEN_006 = detail::gen + 6,
    GEN_010 = detail::gen + 10,
    GEN_011 = detail::gen + 11,
    GEN_020 = detail::gen + 20,
    GEN_090 = detail::gen + 90,
    GEN_100 = detail::gen + 100,
    GEN_101 = detail::gen + 101,
    GEN_105 = detail::gen + 105,
    GEN_120 = detail::gen + 120,
    GEN_122 = detail::gen + 122,
    GEN_125 = detail::gen + 125,
    GEN_170 = detail::gen + 170,
    GEN_171 = detail::gen + 171,
    GEN_172 = detail::gen + 172,
    GEN_174 = detail::gen + 174,
    GEN_176 = detail::gen + 176,
    GEN_202 = detail::gen + 202,
    GEN_203 = detail::gen + 203,
    GEN_206 = detail::gen + 206,
    GEN_211 = detail::gen + 211,
    GEN_214 = detail::gen + 214,
    GEN_217 = detail::gen + 217,
    GEN_227 = detail::gen + 227,
    GEN_235 = detail::gen + 235,
    GEN_236 = detail::gen + 236,
    GEN_237 = detail::gen + 237,
    GEN_245 = detail::gen + 245,
    GEN_300 = detail::gen + 300,
    GEN_302 = detail::gen + 302,
    GEN_320 = detail::gen + 320,
    GEN_321 = detail::gen + 321,
    GEN_342 = detail::gen + 342,
    PRG_165 = detail::prg + 165,
    PRG_166 = detail::prg + 166,
};

/// One sentence that states the rule.
template <same_as<rule> Rule = rule>  // a plain function adds 1.1 % to including ptspec.hpp
[[nodiscard]] constexpr auto describe(Rule which) noexcept -> text {
    switch (which) {
        case rule::none: return "no rule is broken";
        case rule::REG_001: return "a processor without Intel PT has no IA32_RTIT MSR";
        case rule::REG_002: return "RDMSR and WRMSR are for CPL 0";
        case rule::REG_004: return "while TraceEn is 1, only IA32_RTIT_CTL may be written";
        case rule::REG_006: return "a reserved bit may not be written as 1";
        case rule::REG_012: return "the output MSRs exist only with ToPA or single-range output";
        case rule::REG_013: return "IA32_RTIT_CR3_MATCH exists only with CR3 filtering";
        case rule::REG_014: return "the processor has fewer address ranges";
        case rule::REG_017: return "this number between 560H and 587H is no MSR";
        case rule::REG_021: return "while TraceEn stays 1, no bit of IA32_RTIT_CTL may change";
        case rule::REG_024: return "ToPA needs CPUID.14H.0:ECX.TOPAOUT";
        case rule::REG_025: return "tracing into a single range needs CPUID.14H.0:ECX.SNGLRNGOUT";
        case rule::REG_026: return "FabricEn needs CPUID.14H.0:ECX.FABRIC";
        case rule::REG_027: return "CYCEn, CycThresh and PSBFreq need CPUID.14H.0:EBX.CPSB_CAM";
        case rule::REG_028:
            return "CPUID.14H.1 does not list this encoding of MTCFreq, CycThresh or PSBFreq";
        case rule::REG_030: return "MTCEn and MTCFreq need CPUID.14H.0:EBX.MTC";
        case rule::REG_031: return "CR3Filter needs CPUID.14H.0:EBX.CR3FILTER";
        case rule::REG_032: return "PTWEn and FUPonPTW need CPUID.14H.0:EBX.PTWRITE";
        case rule::REG_033: return "PwrEvtEn needs CPUID.14H.0:EBX.PWR_EVT";
        case rule::REG_034: return "InjectPsbPmiOnEnable needs CPUID.14H.0:EBX.INJECTPSBPMI";
        case rule::REG_035: return "EventEn needs CPUID.14H.0:EBX.EVENT_TRACE";
        case rule::REG_036: return "DisTNT needs CPUID.14H.0:EBX.TNT_DIS";
        case rule::REG_037: return "ADDRn_CFG is 0, 1 or 2, and 0 for a range that does not exist";
        case rule::REG_040: return "without CPUID.14H.0:EBX.MTC tracing needs BranchEn";
        case rule::REG_044:
            return "bits 18, 23, 30:28, 54:48 and 63:57 of IA32_RTIT_CTL are reserved";
        case rule::REG_048:
            return "MTC packets come every 2^n crystal cycles, CYC packets after 2^(n-1) cycles, "
                   "PSBs every 2^(n+11) bytes";
        case rule::REG_052: return "bits 3, 31:8 and 63:49 of IA32_RTIT_STATUS are reserved";
        case rule::REG_053: return "Error and Stopped are also what software writes into them";
        case rule::REG_054: return "PendPSB and PendToPAPMI need CPUID.14H.0:EBX.INJECTPSBPMI";
        case rule::REG_055: return "PacketByteCnt needs CPUID.14H.0:EBX.CPSB_CAM";
        case rule::REG_056:
            return "TriggerEn is 1 only with TraceEn, and without Stopped and Error";
        case rule::REG_068: return "a branch into a TraceStop range stops tracing";
        case rule::REG_070: return "the output base is a multiple of 128 below 2^MAXPHYADDR";
        case rule::REG_074: return "bits 4:0 of IA32_RTIT_CR3_MATCH are reserved";
        case rule::REG_076: return "an end of an address range has to be canonical";
        case rule::REG_102: return "RSM with TraceEn set in SMM shuts the processor down";
        case rule::REG_103:
            return "RSM may not leave both Intel PT and LBR enabled on this processor";
        case rule::REG_121: return "in VMX operation this processor cannot trace";
        case rule::REG_129:
            return "guest-physical output needs EPT and IA32_RTIT_CTL loaded and cleared";
        case rule::REG_130: return "VM entry may not load IA32_RTIT_CTL while TraceEn is 1";
        case rule::REG_131: return "VM entry may not load reserved bits of IA32_RTIT_CTL";
        case rule::REG_132: return "this processor has no VMX controls of Intel PT";
        case rule::REG_135: return "a capability MSR does not allow this VMX control of Intel PT";
        case rule::REG_136: return "without XFAM[8] a trust domain has no IA32_RTIT MSR";
        case rule::REG_140: return "IA32_XSS has PT_STATE only where CPUID.0DH.1:ECX has it";
        case rule::REG_143: return "XRSTORS may not touch the state of Intel PT while TraceEn is 1";
        case rule::REG_144:
            return "XRSTORS checks every MSR as WRMSR does, and the reserved bytes have to be 0";
        case rule::REG_148:
            return "XRSTORS needs the compacted form, XSTATE_BV within XCOMP_BV, and components "
                   "that IA32_XSS allows";
        case rule::REG_200: return "PEBS records in the trace need PEBS_OUTPUT_PT_AVAIL";
        case rule::REG_201: return "architectural PEBS has a buffer of its own";
        case rule::REG_203:
            return "IA32_PERF_GLOBAL_STATUS is read-only; 390H clears its bits and 391H sets them";
        case rule::REG_204: return "Trace_ToPA_PMI exists only with ToPA output";
        case rule::REG_216:
            return "a trigger slot has an action that is not enumerated, or a reserved bit set";
        case rule::REG_217: return "this trigger input does not exist";
        case rule::OUT_020: return "a single-range output has 128 bytes to 4 GB";
        case rule::OUT_022:
            return "the mask of a single-range output has to be contiguous from bit 0";
        case rule::OUT_023:
            return "the base of a single-range output has to be aligned to its size";
        case rule::OUT_024: return "the output offset has to lie inside the single-range region";
        case rule::OUT_046: return "a ToPA table has at most 2^25 entries";
        case rule::OUT_056: return "a ToPA table has to end with END or with STOP";
        case rule::OUT_060: return "bits 1, 3, 5, 10 and 11 of a ToPA entry are reserved";
        case rule::OUT_061: return "a ToPA table has to begin at a multiple of 4 KB";
        case rule::OUT_062:
            return "the base of an output region has to be aligned to the region's size";
        case rule::OUT_063: return "an address in a ToPA entry has to lie below 2^MAXPHYADDR";
        case rule::OUT_064: return "the output offset has to lie inside the current region";
        case rule::OUT_065: return "a ToPA entry with END may have neither INT nor STOP";
        case rule::OUT_066: return "entry 0 of a ToPA table has to be an output region, not END";
        case rule::OUT_067:
            return "without CPUID.14H.0:ECX.MENTRY only entry 0 may be an output region";
        case rule::OUT_068:
            return "without CPUID.14H.0:ECX.MENTRY a ToPA table has to link to itself";
        case rule::OUT_070:
            return "an output region at address 0 or over a ToPA table destroys what is there";
        case rule::OUT_071: return "a ToPA entry has to lie below 2^MAXPHYADDR";
        case rule::OUT_080: return "a region with STOP is full, so tracing stopped";
        case rule::OUT_091: return "a ToPA table may not lie in restricted memory";
        case rule::OUT_093: return "INT has to be on a region before the last";
        case rule::OUT_111: return "trace may not be stored into restricted memory";
        case rule::OUT_113: return "trace may not be stored into the APIC's page";
        case rule::PKT_010: return "these bytes begin another packet";
        case rule::PKT_012: return "no packet has this byte after 02";
        case rule::PKT_013: return "no packet has this byte after 02 C3";
        case rule::PKT_015: return "no packet begins with this byte";
        case rule::PKT_033: return "a TNT.short carries 1 to 6 branches";
        case rule::PKT_036: return "a TNT.long needs a stop bit";
        case rule::PKT_037: return "a TNT.long carries at least one branch";
        case rule::PKT_052: return "IPBytes 5 and 7 are reserved";
        case rule::PKT_070: return "a TIP has an IP";
        case rule::PKT_076: return "a TIP.PGE has an IP";
        case rule::PKT_077:
            return "a FUP without an owner begins an event, which TIP or TIP.PGD ends";
        case rule::PKT_078: return "a FUP has an IP";
        case rule::PKT_089: return "MODE leaves 2 to 7 are reserved";
        case rule::PKT_090: return "CS.L with CS.D, and InTX with TXAbort, have no meaning";
        case rule::PKT_103: return "FC of a TMA is less than a period of the crystal clock";
        case rule::PKT_104: return "a reserved bit of TMA is set: the packet may be corrupt";
        case rule::PKT_109: return "a CYC has as few bytes as its value needs";
        case rule::PKT_110: return "the value of a CYC has to fit in 64 bits";
        case rule::PKT_131: return "a PSB is 02 82 eight times";
        case rule::PKT_134: return "a PSBEND ends a PSB+";
        case rule::PKT_135: return "a TMA directly follows its TSC";
        case rule::PKT_142: return "a PSB+ has one PSB";
        case rule::PKT_173: return "PayloadBytes 2 and 3 are reserved";
        case rule::PKT_255: return "the packet needs more bytes than there are";
        case rule::PKT_273: return "the FUP that a packet announces follows it";
        case rule::PKT_278: return "TSC does not decrease";
        case rule::PKT_303: return "a TMA follows a TSC, and no other TMA";
        case rule::PKT_340: return "the value does not fit its field";
        case rule::PKT_344:
            return "this byte would be read as another packet inside or outside a block";
        case rule::PKT_347: return "there is no room for the whole packet";
        case rule::GEN_006: return "no PSB splits an event of several packets";
        case rule::GEN_010: return "PADs place each packet as this kind of processor does";
        case rule::GEN_011:
            return "the form of an IP is the one that this kind of processor selects";
        case rule::GEN_020: return "no packet follows TraceStop until TraceEn rises";
        case rule::GEN_090: return "TraceStop follows TIP.PGD";
        case rule::GEN_100: return "TIP.PGE stands only where PacketEn was 0";
        case rule::GEN_101: return "TIP.PGD stands only where PacketEn was 1";
        case rule::GEN_105: return "no branch gives TNT or TIP while PacketEn is 0";
        case rule::GEN_120:
            return "a TNT has at most as many branches as the processor collects, in the shorter "
                   "form";
        case rule::GEN_122: return "a TNT that is not full is not followed by a TNT";
        case rule::GEN_125: return "no TNT stands in a PSB+";
        case rule::GEN_170:
            return "a PSB+ has each status packet once: CBR always, FUP and MODE.Exec if PacketEn "
                   "is 1";
        case rule::GEN_171: return "the packets of a PSB+ have the order of this kind of processor";
        case rule::GEN_172: return "only status packets, MTC, CYC, PAD and MNT stand in a PSB+";
        case rule::GEN_174: return "the first IP after a PSB is not compressed";
        case rule::GEN_176: return "a PSB+ has a FUP while PacketEn is 0 only before TIP.PGE";
        case rule::GEN_202: return "CBR is not 0";
        case rule::GEN_203: return "an MTC is one more than the last, or two if one was lost";
        case rule::GEN_206: return "MTC, TMA and TSC show the same crystal clock";
        case rule::GEN_211: return "a CYC counts at least one cycle";
        case rule::GEN_214: return "a CYC stands directly before the packet that it times";
        case rule::GEN_217: return "no CYC stands directly before another CYC";
        case rule::GEN_227:
            return "after an OVF, FUP or TIP.PGE stands before TNT, TIP and TIP.PGD";
        case rule::GEN_235: return "MODE.Exec is followed by TIP or TIP.PGE";
        case rule::GEN_236:
            return "the first TIP.PGE after a PSB+ without MODE.Exec follows a MODE.Exec";
        case rule::GEN_237: return "MODE.Exec is not followed by TIP.PGD";
        case rule::GEN_245: return "MODE.Exec stands after PIP and VMCS";
        case rule::GEN_300: return "no PTW while ContextEn or FilterEn is 0";
        case rule::GEN_302: return "EVD is followed by its CFE";
        case rule::GEN_320: return "a BEP ends a block";
        case rule::GEN_321: return "no packet but BBP and BEP ends a block";
        case rule::GEN_342: return "no FUP of an event while PacketEn is 0";
        case rule::PRG_165:
            return "an MSR list has at most as many entries as IA32_VMX_MISC says, and bits 63:32 "
                   "of "
                   "an entry are 0";
        case rule::PRG_166:
            return "the VM-exit MSR-store list stores output MSRs and IA32_RTIT_STATUS while "
                   "tracing";
    }
    return "unknown rule";
}

/// The id of a rule as spelled in the catalogue, `OUT-062`.
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

/// Collects the first violated rule. Passed to functions that call `found` for each one.
struct first_rule {
    rule found = rule::none;

    constexpr void operator()(rule broken) noexcept {
        if (found == rule::none) { found = broken; }
    }
};

}  // namespace ptspec

// ---- ptspec/raw_bits.hpp ----

/// Bit masks and shifts, and a 128-bit word.
namespace ptspec {

/// A mask of the `count` lowest bits. `count` is at most 64.
[[nodiscard]] constexpr auto low_bits(unsigned count) noexcept -> uint64_t {
    return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/// A 128-bit number, for words longer than 64 bits.
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

/// The bits from `lsb` up, right-justified and truncated to 64 bits.
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

/// A word that holds a number from bit `lsb` up; the other bits are 0.
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
constexpr auto bit_mask(unsigned msb, unsigned lsb) noexcept -> Raw {
    if constexpr (same_as<Raw, wide_bits>) {
        return {lsb >= 64 ? 0 : low_bits(msb + 1) & ~low_bits(lsb),
                msb < 64 ? 0 : low_bits(msb - 63) & ~(lsb < 64 ? 0 : low_bits(lsb - 64))};
    } else {
        return static_cast<Raw>(low_bits(msb + 1) & ~low_bits(lsb));
    }
}
/// The mask of a field in a 64-bit word.
template <class Field>
constexpr uint64_t field_mask = bit_mask<uint64_t>(Field::msb, Field::lsb);

/// The number in bits `msb` to `lsb`.
template <class Raw>
constexpr auto bits_between(Raw raw, unsigned msb, unsigned lsb) noexcept -> uint64_t {
    return from_bit(raw, lsb) & low_bits(msb - lsb + 1);
}

constexpr auto bits_in(wide_bits bits) noexcept -> unsigned {
    return popcount(bits.low) + popcount(bits.high);
}

}  // namespace detail

}  // namespace ptspec

// ---- ptspec/bits.hpp ----

/// Bit ranges and their roles in a word: fields, reserved bits, opcodes.
///
/// A row is a type. Compilers print type names, so an error message names the field; and a value of
/// a field's type means "this field with this value". Bit ranges are written `msb, lsb`.
namespace ptspec {

/// Functions that are declared and never defined. A call in a constant expression stops the build,
/// and the compiler prints the function's name as the error message.
namespace build_error {
void value_does_not_fit_in_the_field();
void address_has_bits_outside_the_field();
void a_run_time_number_needs_wrapped_or_checked();
}  // namespace build_error

// ------------------------------------------------------------------------------------ rows

/// The role of a row in a layout.
enum class row_kind : uint8_t {
    field,     ///< software reads and writes it
    reserved,  ///< reads 0; the word defines the effect of writing 1
    other,     ///< not part of Intel PT: preserved, never reserved
    fixed,     ///< opcode bits of a packet: a different value is a different packet
};

/// The effect of a write on a bit.
enum class row_access : uint8_t {
    plain,          ///< the written value is stored
    write_ignored,  ///< the old value stays
    forced_1,       ///< reads 1 regardless of the written value
    read_only,      ///< only the processor writes it
};

/// The decode result when a fixed row holds a different value.
enum class mismatch : uint8_t {
    nothing,     ///< the row is not fixed
    bad_opcode,  ///< the bytes are a different packet
    reserved,    ///< the value is reserved
    bad_packet,  ///< the packet is corrupt
};

/// The defaults of a row.
struct row_facts {
    static constexpr row_kind kind = row_kind::field;
    static constexpr row_access access = row_access::plain;
    static constexpr bool is_address = false;
    static constexpr bool ends_at_max_phys_addr = false;
    static constexpr unsigned lowest_address_bit = 0;
    static constexpr bool selects_the_payload = false;
    static constexpr mismatch on_mismatch = mismatch::nothing;
    static constexpr uint64_t fixed_value = 0;
};

template <unsigned Msb, unsigned Lsb = Msb>
struct bit_range : row_facts {
    static_assert(Msb >= Lsb, "a bit range is written msb, lsb");
    static constexpr unsigned msb = Msb;
    static constexpr unsigned lsb = Lsb;
    static constexpr unsigned width = Msb - Lsb + 1;
};

template <unsigned Msb, unsigned Lsb = Msb>
struct reserved : bit_range<Msb, Lsb> {
    static constexpr row_kind kind = row_kind::reserved;
};

/// Bits of the same register that Intel PT does not use.
template <unsigned Msb, unsigned Lsb = Msb>
struct other : bit_range<Msb, Lsb> {
    static constexpr row_kind kind = row_kind::other;
};

/// Opcode bits. A different value is a different packet.
template <unsigned Msb, unsigned Lsb, uint64_t Value>
struct fixed : bit_range<Msb, Lsb> {
    static_assert(Msb < Lsb + 64 && Value <= low_bits(Msb - Lsb + 1));
    static constexpr row_kind kind = row_kind::fixed;
    static constexpr mismatch on_mismatch = mismatch::bad_opcode;
    static constexpr uint64_t fixed_value = Value;
};

/// Fixed bits that select a packet among those with the same opcode. Other values are reserved.
template <unsigned Msb, unsigned Lsb, uint64_t Value>
struct leaf : fixed<Msb, Lsb, Value> {
    static constexpr mismatch on_mismatch = mismatch::reserved;
};

/// Fixed bits after the opcode. A different value means that the packet is corrupt.
template <unsigned Msb, unsigned Lsb, uint64_t Value>
struct pattern : fixed<Msb, Lsb, Value> {
    static constexpr mismatch on_mismatch = mismatch::bad_packet;
};

/// The decoded value of an encoding, with its unit: `{8, "crystal cycles"}`. An empty unit means
/// that there is no decoded value.
///
/// A field whose number is an encoding declares `static constexpr auto amount(uint64_t encoding)
/// noexcept -> quantity`.
struct quantity {
    uint64_t count = 0;
    text unit{};
};

// ------------------------------------------------------------------------------------ fields

namespace detail {

/// A literal's value.
template <integral Number>
constexpr auto known(Number const& literal) -> uint64_t {
    if (!is_known(literal)) { build_error::a_run_time_number_needs_wrapped_or_checked(); }
    return static_cast<uint64_t>(literal);
}

template <integral Number>
constexpr auto is_negative(Number number) noexcept -> bool {
    if constexpr (static_cast<Number>(-1) < Number{}) {
        return number < 0;
    } else {
        return false;
    }
}

}  // namespace detail

/// A run-time number, truncated to the bits that fit the field: `MTCFreq{wrapped{n}}`.
struct wrapped {
    uint64_t value;
};

/// A constant that may depend on a template parameter: `MTCFreq{constant<N>}`.
template <uint64_t Value>
struct constant_number {};
template <uint64_t Value>
inline constexpr constant_number<Value> constant{};

namespace detail {

/// The members of a field that do not depend on its position. Not a template, so it is compiled
/// once for all fields.
struct number_value {
    using value_type = uint64_t;
    value_type value;

    static constexpr auto from_number(uint64_t number) noexcept -> value_type { return number; }
    constexpr auto number() const noexcept -> uint64_t { return value; }
};
struct flag_value {
    using value_type = bool;
    value_type value;

    static constexpr auto fits(uint64_t number) noexcept -> bool { return number <= 1; }
    static constexpr auto from_number(uint64_t number) noexcept -> value_type {
        return number != 0;
    }
    constexpr auto number() const noexcept -> uint64_t { return value ? 1 : 0; }
};

}  // namespace detail

/// A field that holds a number.
template <unsigned Msb, unsigned Lsb = Msb>
struct field : bit_range<Msb, Lsb>, detail::number_value {
    static_assert(Msb < Lsb + 64);

    [[nodiscard]] static constexpr auto fits(uint64_t number) noexcept -> bool {
        return number <= low_bits(Msb - Lsb + 1);
    }

    consteval field(integral auto const& literal) : number_value{detail::known(literal)} {
        if (detail::is_negative(literal) || !fits(value)) {
            build_error::value_does_not_fit_in_the_field();
        }
    }
    constexpr field(wrapped number) noexcept
        : number_value{number.value & low_bits(Msb - Lsb + 1)} {}
    template <uint64_t Number>
        requires(fits(Number))
    constexpr field(constant_number<Number>) noexcept : number_value{Number} {}
};

/// A field of one bit.
template <unsigned Position>
struct flag : bit_range<Position>, detail::flag_value {
    constexpr flag(bool on) noexcept : flag_value{on} {}
    template <class Other>
    flag(Other) = delete;  // a flag is true or false
    constexpr flag(wrapped number) noexcept : flag_value{(number.value & 1) != 0} {}
};

/// A field whose encodings are named by an enumeration.
template <unsigned Msb, unsigned Lsb, enumeration Enum>
struct enumerated : bit_range<Msb, Lsb> {
    using value_type = Enum;
    value_type value;

    [[nodiscard]] static constexpr auto fits(uint64_t number) noexcept -> bool {
        return number <= low_bits(Msb - Lsb + 1);
    }
    [[nodiscard]] static constexpr auto from_number(uint64_t number) noexcept -> value_type {
        return static_cast<value_type>(number);
    }
    [[nodiscard]] constexpr auto number() const noexcept -> uint64_t {
        return static_cast<uint64_t>(value) & low_bits(Msb - Lsb + 1);
    }

    constexpr enumerated(Enum encoding) noexcept : value{encoding} {}
    constexpr enumerated(wrapped number) noexcept
        : value{static_cast<value_type>(number.value & low_bits(Msb - Lsb + 1))} {}
};

/// A field that holds the upper bits of an address. Its value is the whole address, with the bits
/// below `LowestAddressBit` 0. The address bits at and above MAXPHYADDR are reserved.
template <unsigned Msb, unsigned Lsb, unsigned LowestAddressBit = Lsb>
struct address_field : bit_range<Msb, Lsb> {
    using value_type = uint64_t;
    value_type value;
    static constexpr bool is_address = true;
    static constexpr bool ends_at_max_phys_addr = true;
    static constexpr unsigned lowest_address_bit = LowestAddressBit;
    static constexpr uint64_t address_mask = low_bits(Msb - Lsb + 1) << LowestAddressBit;

    [[nodiscard]] static constexpr auto fits(uint64_t address) noexcept -> bool {
        return (address & ~address_mask) == 0;
    }
    [[nodiscard]] static constexpr auto from_number(uint64_t number) noexcept -> value_type {
        return number << LowestAddressBit;
    }
    [[nodiscard]] constexpr auto number() const noexcept -> uint64_t {
        return value >> LowestAddressBit;
    }

    consteval address_field(integral auto const& literal) : value{detail::known(literal)} {
        if (detail::is_negative(literal) || !fits(value)) {
            build_error::address_has_bits_outside_the_field();
        }
    }
    constexpr address_field(wrapped address) noexcept : value{address.value & address_mask} {}
    template <uint64_t Address>
        requires(fits(Address))
    constexpr address_field(constant_number<Address>) noexcept : value{Address} {}
};

/// A field whose value the processor sets: writes are ignored.
template <class Field>
struct write_ignored : Field {
    static constexpr row_access access = row_access::write_ignored;
};

/// A field that reads as all ones regardless of the written value.
template <class Field>
struct forced_1 : Field {
    static constexpr row_access access = row_access::forced_1;
};

/// A field that only the processor writes.
template <class Field>
struct read_only : Field {
    static constexpr row_access access = row_access::read_only;
};

/// An address field without reserved bits at and above MAXPHYADDR.
template <class Field>
struct unbounded : Field {
    static constexpr bool ends_at_max_phys_addr = false;
};

/// A packet field that selects the payload size.
template <class Field>
struct selects_payload : Field {
    static constexpr bool selects_the_payload = true;
};

/// The result of `checked`: a field, valid only if `fits` is true.
template <class Field>
struct checked_field {
    bool fits;
    Field field;

    constexpr explicit operator bool() const noexcept { return fits; }
};

/// Converts a run-time number to a field and checks the range: `if (auto f =
/// checked<ctl::MTCFreq>(n))`.
template <class Field>
[[nodiscard]] constexpr auto checked(uint64_t number) noexcept -> checked_field<Field> {
    return {Field::fits(number), Field{wrapped{number}}};
}

}  // namespace ptspec

// ---- ptspec/word.hpp ----

/// Layouts and hardware words.
///
/// A layout lists the rows of a word from bit 0 up, and a word is its raw bits. All masks and
/// tables of a word are computed from its rows.
namespace ptspec {

template <class Lower, class Upper>
concept directly_below = Lower::msb + 1 == Upper::lsb;

namespace detail {

template <class One, class Two>
struct neighbours {
    static_assert(directly_below<One, Two>, "these two rows overlap or leave a gap");
};

template <size_t Count>
constexpr auto tile(unsigned const (&lsb)[Count], unsigned const (&msb)[Count],
                    unsigned bits) noexcept -> bool {
    unsigned next = 0;
    for (size_t i = 0; i < Count; ++i) {
        if (lsb[i] != next) { return false; }
        next = msb[i] + 1;
    }
    return next == bits;
}

template <class First, class... Rest>
struct explain_pairs {};
template <class One, class Two, class... Rest>
struct explain_pairs<One, Two, Rest...> : neighbours<One, Two>, explain_pairs<Two, Rest...> {};

template <unsigned Bits, class... Rows>
struct explained_tiling : explain_pairs<Rows...> {
    static constexpr unsigned lsb[sizeof...(Rows)] = {Rows::lsb...};
    static constexpr unsigned msb[sizeof...(Rows)] = {Rows::msb...};
    static_assert(lsb[0] == 0, "the first row has to begin at bit 0");
    static_assert(msb[sizeof...(Rows) - 1] + 1 == Bits,
                  "the last row has to end at the top of the word");
};

/// Instantiated only for layouts that do not tile: names the two rows in the error message.
template <bool Tile>
struct explain_tiling {
    template <unsigned Bits, class... Rows>
    using of = bool;
};
template <>
struct explain_tiling<false> {
    template <unsigned Bits, class... Rows>
    using of = explained_tiling<Bits, Rows...>;
};

}  // namespace detail

/// All rows of a word, from bit 0 up. Rows that do not tile the word stop the build.
///
/// The rows are base classes: `__is_base_of` checks membership in a time that does not depend on
/// the number of rows.
template <unsigned Bits, class... Rows>
struct bit_layout : Rows... {
    static constexpr bool tiles = detail::tile({Rows::lsb...}, {Rows::msb...}, Bits);
    static_assert(sizeof(typename detail::explain_tiling<tiles>::template of<Bits, Rows...>) != 0);
    static constexpr unsigned bits = Bits;
    using rows = type_list<Rows...>;
};

namespace detail {

/// The bits of the rows whose fact equals `wanted`.
template <class Raw, class Fact>
constexpr auto bits_where(Fact const* facts, Fact wanted, unsigned const* msb, unsigned const* lsb,
                          size_t count) noexcept -> Raw {
    Raw all{};
    for (size_t i = 0; i < count; ++i) {
        if (facts[i] == wanted) { all = static_cast<Raw>(all | bit_mask<Raw>(msb[i], lsb[i])); }
    }
    return all;
}

// Arrays of facts compile faster than one function call for each row.
template <class Raw, class Fact, class... Rows>
constexpr auto bits_where(type_list<Rows...>, Fact const* facts, Fact wanted) noexcept -> Raw {
    unsigned const msb[] = {Rows::msb...};
    unsigned const lsb[] = {Rows::lsb...};
    return bits_where<Raw>(facts, wanted, msb, lsb, sizeof...(Rows));
}
template <class Raw, class... Rows>
constexpr auto bits_of_kind(type_list<Rows...> rows, row_kind wanted) noexcept -> Raw {
    row_kind const kinds[] = {Rows::kind...};
    return bits_where<Raw>(rows, kinds, wanted);
}
template <class Raw, class... Rows>
constexpr auto bits_of_access(type_list<Rows...> rows, row_access wanted) noexcept -> Raw {
    row_access const accesses[] = {Rows::access...};
    return bits_where<Raw>(rows, accesses, wanted);
}

/// Masks as constants, so that they cost nothing at run time.
template <class Raw, class Layout, row_kind Kind>
inline constexpr Raw kind_mask = bits_of_kind<Raw>(typename Layout::rows{}, Kind);
template <class Raw, class Layout, row_access Access>
inline constexpr Raw access_mask = bits_of_access<Raw>(typename Layout::rows{}, Access);

/// The bits of an address row at and above `max_phys_addr`.
template <class Raw>
constexpr auto bits_above(unsigned msb, unsigned lsb, unsigned lowest_address_bit,
                          unsigned max_phys_addr) noexcept -> Raw {
    unsigned const first = max_phys_addr < lowest_address_bit
                               ? lsb
                               : max_phys_addr - lowest_address_bit + lsb;
    return first <= msb ? bit_mask<Raw>(msb, first) : Raw{};
}

template <class... Rows>
constexpr auto has_address_row(type_list<Rows...>) noexcept -> bool {
    bool const ends[] = {Rows::ends_at_max_phys_addr...};
    for (bool const one : ends) {
        if (one) { return true; }
    }
    return false;
}

/// The bits of all address rows at and above `max_phys_addr`.
template <class Raw, class... Rows>
constexpr auto address_bits_above(type_list<Rows...>, unsigned max_phys_addr) noexcept -> Raw {
    if constexpr (has_address_row(type_list<Rows...>{})) {
        return static_cast<Raw>(
            (Raw{} | ... |
             (Rows::ends_at_max_phys_addr
                  ? bits_above<Raw>(Rows::msb, Rows::lsb, Rows::lowest_address_bit, max_phys_addr)
                  : Raw{})));
    } else {
        return Raw{};
    }
}

/// True if no two of these bit ranges overlap.
template <size_t Count>
constexpr auto are_disjoint(unsigned const (&msb)[Count], unsigned const (&lsb)[Count]) noexcept
    -> bool {
    for (size_t i = 0; i < Count; ++i) {
        for (size_t k = 0; k < i; ++k) {
            if (msb[i] >= lsb[k] && msb[k] >= lsb[i]) { return false; }
        }
    }
    return true;
}

}  // namespace detail

template <class Row, class Word>
concept row_of = __is_base_of(Row, typename Word::layout);

template <class Field, class Word>
concept field_of = Field::kind == row_kind::field && __is_base_of(Field, typename Word::layout);

// ------------------------------------------------------------------------------------ words

/// A hardware word: its raw bits and nothing else.
///
/// `Derived` declares the fields and `struct layout : bit_layout<...>`. `Access` applies to the
/// fields that do not set their own.
template <class Derived, class Raw, row_access Access = row_access::plain>
struct bit_word {
    using raw_type = Raw;
    static constexpr row_access access = Access;
    Raw raw{};

    constexpr bit_word(Raw bits = {}) noexcept : raw{bits} {}

    friend constexpr auto operator==(bit_word const& one, bit_word const& two) noexcept -> bool {
        return one.raw == two.raw;
    }

    /// The value of a field.
    template <class Field>
    [[nodiscard]] constexpr auto get() const noexcept -> typename Field::value_type {
        static_assert(row_of<Field, Derived>, "the word has no such field");
        if constexpr (Field::width == 1) {
            // Tests the bit without a shift, so that compilers can merge tests of several flags.
            bool const is_set = (raw & detail::bit_mask<Raw>(Field::msb, Field::lsb)) != Raw{};
            return Field::from_number(is_set ? 1 : 0);
        } else {
            return Field::from_number(detail::bits_between(raw, Field::msb, Field::lsb));
        }
    }

    /// Returns the word with the named fields changed. All other bits keep their value.
    template <class... Fields>
    [[nodiscard]] constexpr auto with(Fields... fields) const noexcept -> Derived {
        static_assert((row_of<Fields, Derived> && ...), "the word has no such field");
        if constexpr (sizeof...(Fields) > 1) {
            static_assert(detail::are_disjoint({Fields::msb...}, {Fields::lsb...}),
                          "a field is named twice");
        }
        constexpr Raw named = (Raw{} | ... | detail::bit_mask<Raw>(Fields::msb, Fields::lsb));
        return Derived{
            static_cast<Raw>((raw & static_cast<Raw>(~named)) |
                             (Raw{} | ... | detail::to_bit<Raw>(fields.number(), Fields::lsb)))};
    }

    /// The reserved bits, including the address bits at and above `max_phys_addr`.
    [[nodiscard]] static constexpr auto reserved_mask(unsigned max_phys_addr = 64) noexcept -> Raw {
        using layout = typename Derived::layout;
        return static_cast<Raw>(
            detail::kind_mask<Raw, layout, row_kind::reserved> |
            detail::address_bits_above<Raw>(typename layout::rows{}, max_phys_addr));
    }

    /// The bits that ignore writes.
    [[nodiscard]] static constexpr auto write_ignored_mask() noexcept -> Raw {
        return detail::access_mask<Raw, typename Derived::layout, row_access::write_ignored>;
    }

    /// The bits that read as 1 regardless of the written value.
    [[nodiscard]] static constexpr auto forced_1_mask() noexcept -> Raw {
        return detail::access_mask<Raw, typename Derived::layout, row_access::forced_1>;
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

/// A row of a word, as data.
struct row_info {
    text name;  ///< the field's name, or `reserved` or `other`
    unsigned msb;
    unsigned lsb;
    row_kind kind;
    row_access access;
    bool is_address;
    unsigned lowest_address_bit;  ///< the address bit at `lsb`; 0 if the field is no address
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

/// The access of a row: its own, or else the default of the word's fields.
template <class Word, class Row>
constexpr auto access_of_row() noexcept -> row_access {
    return Row::access == row_access::plain && Row::kind == row_kind::field ? Word::access
                                                                            : Row::access;
}

template <class Word, class... Rows>
constexpr auto describe_rows(type_list<Rows...>) noexcept -> row_table<sizeof...(Rows)> {
    return {{{name_of_row<Rows>(), Rows::msb, Rows::lsb, Rows::kind, access_of_row<Word, Rows>(),
              Rows::is_address, Rows::lowest_address_bit}...}};
}

}  // namespace detail

/// All rows of a word from bit 0 up, with names and positions.
template <class Word>
[[nodiscard]] constexpr auto rows_of() noexcept {
    return detail::describe_rows<Word>(typename Word::layout::rows{});
}

}  // namespace ptspec

// ---- ptspec/bytes.hpp ----

/// Byte ranges: borrowed for reading, borrowed for writing, and owned. Little-endian loads and
/// stores.
namespace ptspec {

/// Copies `count` bytes. The ranges must not overlap.
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
concept byte_like = one_of<Element, unsigned char, char, signed char, char8_t> ||
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

/// Borrowed bytes to read. The owner must outlive the view.
class byte_view {
public:
    constexpr byte_view() noexcept = default;
    constexpr byte_view(uint8_t const* first, size_t count) noexcept
        : first_{first}, size_{count} {}
    template <size_t Count>
    constexpr byte_view(uint8_t const (&array)[Count]) noexcept : first_{array}, size_{Count} {}
    /// Any contiguous container of uint8_t with `data()` and `size()`.
    template <detail::has_uint8 Owner>
        requires(!same_as<Owner, byte_view>)
    constexpr byte_view(Owner const& owner) noexcept
        : first_{owner.data()}, size_{static_cast<size_t>(owner.size())} {}
    /// A contiguous container of `char` or std::byte. Not constexpr, since it needs a
    /// reinterpret_cast.
    template <detail::has_bytes Owner>
        requires(!detail::has_uint8<Owner>)
    byte_view(Owner const& owner) noexcept
        : first_{reinterpret_cast<uint8_t const*>(owner.data())},
          size_{static_cast<size_t>(owner.size())} {}

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
        constexpr bool is_row = __is_constructible(byte_view, Owner);
        static_assert(is_row, "a row of bytes has data() and size(), and elements of one byte");
        static_assert(!is_row || same_as<Owner, Owner&> || borrows_bytes<bare_t<Owner>>,
                      "the bytes of this temporary are gone before they are read: give it a name");
        if constexpr (is_row) {
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
    [[nodiscard, gnu::always_inline]]  // without it writing takes up to 1.6 % more (g++ 12)
    constexpr auto
    append(wide_bits bytes, size_t count) noexcept -> bool;

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
    uint8_t* const to = first_ + size_;
    size_ += count;
    store_le64(to, bytes.low);
    store_le64(to + 8, bytes.high);
    return true;
}

}  // namespace ptspec

// ---- ptspec/address.hpp ----

/// Addresses: alignment, canonical form, physical width.
namespace ptspec {

/// True when `address` is a multiple of `size`, a power of two.
[[nodiscard]] constexpr auto is_aligned(uint64_t address, uint64_t size) noexcept -> bool {
    return (address & (size - 1)) == 0;
}

/// Rounds `address` down to a multiple of `size`, a power of two.
[[nodiscard]] constexpr auto align_down(uint64_t address, uint64_t size) noexcept -> uint64_t {
    return address & ~(size - 1);
}

/// True for 1, 2, 4 and so on.
[[nodiscard]] constexpr auto is_power_of_two(uint64_t value) noexcept -> bool {
    return value != 0 && (value & (value - 1)) == 0;
}

/// Sign-extends bit `width` - 1 into bits 63:`width`. `width` is 1 to 64.
[[nodiscard]] constexpr auto sign_extended(uint64_t value, unsigned width) noexcept -> uint64_t {
    unsigned const above = 64 - width;
    return static_cast<uint64_t>(static_cast<int64_t>(value << above) >> above);
}

/// True when an address is canonical for linear addresses of `width` bits: 48, or 57 with LA57.
[[nodiscard]] constexpr auto is_canonical(uint64_t address, unsigned width) noexcept -> bool {
    return sign_extended(address, width) == address;
}

/// MAXPHYADDR, the width of physical addresses in bits: CPUID.80000008H:EAX[7:0], or 36 if the leaf
/// is absent. At most 52.
struct max_phys_addr {
    unsigned bits = 52;

    /// True when an address has no bit at or above MAXPHYADDR.
    [[nodiscard]] constexpr auto contains(uint64_t address) const noexcept -> bool {
        return (address & ~low_bits(bits)) == 0;
    }
    friend constexpr auto operator==(max_phys_addr, max_phys_addr) -> bool = default;
};

}  // namespace ptspec

// ---- ptspec/ports.hpp ----

/// The interfaces through which the library accesses memory, MSRs, CPUID and interrupts, and a
/// constexpr model of each.
///
/// A port may fail. A failed access changes nothing and may be retried.
namespace ptspec {

/// The result of a read through a port.
struct [[nodiscard]] port_value {
    bool done = false;  ///< false: the access faulted and `value` is meaningless
    uint64_t value = 0;

    constexpr explicit operator bool() const noexcept { return done; }
    friend constexpr auto operator==(port_value const&, port_value const&) -> bool = default;
};

/// A fault of a port. The operation may be retried.
struct [[nodiscard]] port_fault {
    bool happened = false;
    uint64_t address = 0;  ///< the first byte that was not accessed

    constexpr explicit operator bool() const noexcept { return happened; }
    friend constexpr auto operator==(port_fault, port_fault) -> bool = default;
};

/// Physical memory, or guest-physical memory.
///
/// `load` reads the 8 bytes at an address as a little-endian number. `store` writes bytes starting
/// at an address and returns the number of bytes stored: fewer than given if the next byte faulted.
template <class Port>
concept memory_port = requires(Port& port, uint64_t address, byte_view bytes) {
    { port.load(address) } -> same_as<port_value>;
    { port.store(address, bytes) } -> same_as<size_t>;
};

/// Directly writable bytes of memory.
struct byte_window {
    uint8_t* first = nullptr;  ///< null: no bytes
    uint64_t size = 0;
};

/// Memory that is at least partly mapped into the program's address space. `window` returns the
/// contiguous bytes from an address on, or none if the caller must use `store`. The bytes must stay
/// mapped while output runs, because the output code caches the address of the ToPA table.
template <class Port>
concept mapped_memory_port = memory_port<Port> && requires(Port& port, uint64_t address) {
    { port.window(address) } -> same_as<byte_window>;
};

/// The trace transport subsystem, an output other than memory. `send` takes bytes and returns how
/// many it accepted: fewer than given if it has no more room at present.
template <class Port>
concept fabric_port = requires(Port& port, byte_view bytes) {
    { port.send(bytes) } -> same_as<size_t>;
};

/// The MSRs of a logical processor. A fault is a #GP.
template <class Port>
concept msr_port = requires(Port& port, uint32_t index, uint64_t value) {
    { port.read(index) } -> same_as<port_value>;
    { port.write(index, value) } -> same_as<bool>;
};

/// The four registers that CPUID writes.
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

/// The receiver of performance-monitoring interrupts.
template <class Port>
concept pmi_port = requires(Port& port) { port.raise(); };

// ------------------------------------------------------------------------------------ models

/// `Size` bytes of memory from `base` on. An access outside them faults.
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

/// A set of `Count` registers, each with its index. Any other index raises #GP.
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

/// `Count` leaves. Any other leaf returns all zeros, as a processor does for a leaf within its
/// range.
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

// ---- ptspec/host_memory.hpp ----

/// The program's own memory, presented as physical memory.
namespace ptspec {

/// A range of the program's memory and its physical address.
struct host_region {
    uint64_t base = 0;
    uint8_t* bytes = nullptr;
    uint64_t size = 0;
};

/// Maps regions of the program's memory to physical addresses, as a `mapped_memory_port`. An access
/// outside the regions faults. The regions may be in any order, but must not overlap and must not
/// extend past the highest address. The list is borrowed and must outlive this object.
///
/// The lookup is O(1) for the last used region and the one listed after it. Otherwise it is a
/// binary search if the list is sorted by address, and a linear search if it is not.
class host_memory {
public:
    constexpr host_memory(host_region const* regions, size_t count) noexcept
        : first_{count != 0 ? regions : &no_region},
          end_{count != 0 ? regions + count : &no_region + 1} {
        for (size_t i = 1; i < count; ++i) {
            auto const& before = regions[i - 1];
            is_sorted_ = is_sorted_ && regions[i].base >= before.base &&
                         regions[i].base - before.base >= before.size;
        }
    }
    template <size_t Count>
    constexpr host_memory(host_region const (&regions)[Count]) noexcept
        : host_memory{regions, Count} {}

    /// The bytes from an address to the end of its region.
    [[nodiscard]] constexpr auto window(uint64_t address) noexcept -> byte_window {
        return find(address, last_written_);
    }

    [[nodiscard]] constexpr auto load(uint64_t address) noexcept -> port_value {
        auto const at = find(address, last_read_);
        if (at.size >= 8) { return {true, load_le64(at.first)}; }
        return load_across_regions(address);
    }

    [[nodiscard]] constexpr auto store(uint64_t address, byte_view from) noexcept -> size_t {
        size_t stored = 0;
        while (stored < from.size()) {
            auto const at = window(address + stored);
            if (at.first == nullptr || address + stored < address) { break; }
            size_t const left = from.size() - stored;
            size_t const count = at.size < left ? static_cast<size_t>(at.size) : left;
            copy_bytes(at.first, from.data() + stored, count);
            stored += count;
        }
        return stored;
    }

private:
    /// Looks up an address. Reads and writes are sequential, and each has its own position, so the
    /// last used region and the next one are tried first.
    [[nodiscard]] constexpr auto find(uint64_t address, host_region const*& hint) const noexcept
        -> byte_window {
        host_region const* found = hint;
        uint64_t offset = address - found->base;
        if (offset >= found->size) {
            ++found;
            if (found == end_) { found = first_; }
            offset = address - found->base;
            if (offset >= found->size) {
                found = search(address);
                offset = address - found->base;
                if (offset >= found->size) { return {}; }
            }
            hint = found;
        }
        return {found->bytes + offset, found->size - offset};
    }
    /// Returns the only region that can contain an address.
    [[nodiscard]] constexpr auto search(uint64_t address) const noexcept -> host_region const* {
        if (!is_sorted_) {
            host_region const* one = first_;
            while (one + 1 != end_ && address - one->base >= one->size) { ++one; }
            return one;
        }
        host_region const* first = first_;
        for (size_t count = static_cast<size_t>(end_ - first_); count > 1;) {
            size_t const half = count / 2;
            first = first[half].base <= address ? first + half : first;
            count -= half;
        }
        return first;
    }
    /// Loads eight bytes that span regions.
    [[nodiscard]] constexpr auto load_across_regions(uint64_t address) noexcept -> port_value {
        uint64_t value = 0;
        for (unsigned i = 0; i < 8; ++i) {
            auto const at = find(address + i, last_read_);
            if (at.first == nullptr || address + i < address) { return {}; }
            value |= uint64_t{*at.first} << 8 * i;
        }
        return {true, value};
    }
    static constexpr host_region no_region{};  // means "no region", so find() needs no null check

    host_region const* first_;
    host_region const* end_;
    host_region const* last_read_ = first_;     ///< the region of the last read
    host_region const* last_written_ = first_;  ///< the region of the last write
    bool is_sorted_ = true;
};

static_assert(mapped_memory_port<host_memory>);

}  // namespace ptspec

// ---- ptspec/reg/rtit_ctl.hpp ----

namespace ptspec::reg {

/// Encodings of ADDR0_CFG to ADDR3_CFG: the use of an address range. 3 to 15 are reserved.
enum class addr_cfg : uint8_t {
    off = 0,
    filter = 1,      ///< trace only inside: FilterEn is 1 there
    trace_stop = 2,  ///< a branch or event into the range stops tracing
};

/// IA32_RTIT_CTL, the enable bit and the configuration of the trace.
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
    /// output to the trace transport subsystem; ToPA is then ignored
    struct FabricEn : flag<6> {};
    struct CR3Filter : flag<7> {};
    struct ToPA : flag<8> {};  ///< 0: single-range output
    struct MTCEn : flag<9> {};
    struct TSCEn : flag<10> {};
    struct DisRETC : flag<11> {};
    struct PTWEn : flag<12> {};
    struct BranchEn : flag<13> {};
    struct MTCFreq : field<17, 14> {
        [[nodiscard]] static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
            return {uint64_t{1} << encoding, "crystal cycles"};
        }
    };
    struct CycThresh : field<22, 19> {
        [[nodiscard]] static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
            return encoding == 0 ? quantity{} : quantity{uint64_t{1} << (encoding - 1), "cycles"};
        }
    };
    struct PSBFreq : field<27, 24> {
        [[nodiscard]] static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
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

/// IA32_RTIT_STATUS, the state of the trace unit and the reason why it stopped.
///
/// Shape:  64-bit MSR 571H. Only the processor changes FilterEn, ContextEn and TriggerEn.
/// Units:  PacketByteCnt counts bytes of trace since the last PSB.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1, and when a reserved bit is 1.
/// Source: SDM vol. 3, "IA32_RTIT_STATUS MSR"; REG-050..067.
struct ia32_rtit_status : bit_word<ia32_rtit_status, uint64_t> {
    static constexpr uint32_t address = 0x571;

    struct FilterEn : write_ignored<flag<0>> {};
    struct ContextEn : write_ignored<flag<1>> {};
    struct TriggerEn : write_ignored<flag<2>> {};
    struct Error : flag<4> {};        ///< an operational error ended tracing
    struct Stopped : flag<5> {};      ///< a TraceStop range or a ToPA STOP bit ended tracing
    struct PendPSB : flag<6> {};      ///< a PSB+ is pending until tracing is enabled again
    struct PendToPAPMI : flag<7> {};  ///< a ToPA PMI is pending until tracing is enabled again
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

/// IA32_RTIT_OUTPUT_BASE, the base address of the output region or the ToPA table.
///
/// Shape:  64-bit MSR 560H.
/// Units:  BasePhysAddr is a physical address in bytes, a multiple of 128. A ToPA table is aligned
///         to 4096 bytes, a single range to its size.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1, and for bits 6:0 or bits at or above MAXPHYADDR.
/// Source: SDM vol. 3, "IA32_RTIT_OUTPUT_BASE MSR"; REG-070.
struct ia32_rtit_output_base : bit_word<ia32_rtit_output_base, uint64_t> {
    static constexpr uint32_t address = 0x560;

    struct BasePhysAddr : address_field<63, 7> {};

    struct layout : bit_layout<64, reserved<6, 0>, BasePhysAddr> {};
};

/// IA32_RTIT_OUTPUT_MASK_PTRS, the position of the next output byte.
///
/// Shape:  64-bit MSR 561H. The low seven bits read as ones, so bits 31:0 are the mask of a single
///         range.
/// Units:  MaskOrTableOffset is bits 31:7 of the mask of a single range, or the index of the
///         current ToPA entry (8 bytes each). OutputOffset is in bytes from the start of the
///         region.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1. The value is checked when TraceEn is set.
/// Source: SDM vol. 3, "IA32_RTIT_OUTPUT_MASK_PTRS MSR"; REG-071, OUT-020, OUT-050.
struct ia32_rtit_output_mask_ptrs : bit_word<ia32_rtit_output_mask_ptrs, uint64_t> {
    static constexpr uint32_t address = 0x561;

    struct LowerMask : forced_1<field<6, 0>> {};
    struct MaskOrTableOffset : field<31, 7> {};
    struct OutputOffset : field<63, 32> {};

    struct layout : bit_layout<64, LowerMask, MaskOrTableOffset, OutputOffset> {};
};

}  // namespace ptspec::reg

// ---- ptspec/reg/rtit_cr3_match.hpp ----

namespace ptspec::reg {

/// IA32_RTIT_CR3_MATCH, the CR3 value that is traced if CR3Filter is 1.
///
/// Shape:  64-bit MSR 572H.
/// Units:  CR3 is the register's value, a multiple of 32. It is compared from bit 12 up, in PAE
///         paging from bit 5 up.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1, and for bits 4:0. The bits at and above
///         MAXPHYADDR are not checked.
/// Source: SDM vol. 3, "IA32_RTIT_CR3_MATCH MSR"; REG-013, REG-074, REG-075.
struct ia32_rtit_cr3_match : bit_word<ia32_rtit_cr3_match, uint64_t> {
    static constexpr uint32_t address = 0x572;

    struct CR3 : unbounded<address_field<63, 5>> {};

    struct layout : bit_layout<64, reserved<4, 0>, CR3> {};
};

}  // namespace ptspec::reg

// ---- ptspec/reg/rtit_addr.hpp ----

namespace ptspec::reg {

/// The two registers of an address range.
enum class range_end : uint8_t {
    a,  ///< its first address
    b,  ///< its last address
};

/// IA32_RTIT_ADDR0_A to IA32_RTIT_ADDR3_B, the ends of the address ranges. One type for all eight.
///
/// Shape:  64-bit MSRs: 580H and 581H for range 0, and so on in pairs to 587H.
/// Units:  Address is a linear address, or an effective address if CPUID.14H.0:ECX.LIP is 0. Both
///         ends belong to the range. A range with A above B is empty.
/// Errors: WRMSR raises #GP(0) while TraceEn is 1, and for an address that is not canonical. The
///         processor has the first RANGECNT ranges; the MSRs of the others raise #GP(0).
/// Source: SDM vol. 3, "IA32_RTIT_ADDRn_A and IA32_RTIT_ADDRn_B MSRs"; REG-014, REG-018,
///         REG-076..079.
struct ia32_rtit_addr : bit_word<ia32_rtit_addr, uint64_t> {
    static constexpr unsigned count = 4;  ///< the number of ranges that the manual defines

    /// The MSR index of one end of range `n`. `n` must be below `count`.
    [[nodiscard]] static constexpr auto address(unsigned n, range_end which) noexcept -> uint32_t {
        return 0x580 + 2 * n + underlying(which);
    }

    struct Address : field<63, 0> {};

    struct layout : bit_layout<64, Address> {};
};

}  // namespace ptspec::reg

// ---- ptspec/reg/rtit_trigger.hpp ----

/// The registers of trigger tracing.
namespace ptspec::reg {

/// IA32_RTIT_TRIGGERx_CFG, the triggers and their actions. One type for all of them.
///
/// Shape:  64-bit MSRs of four slots with 16 bits each. UNCONFIRMED: their indices, so they have no
///         address here; and that bits 11:7 of a slot are reserved.
/// Units:  Input 0 to 7 and 20H to 27H select a general-purpose counter by its low three bits, 40H
///         to 43H a match of DR0 to DR3. UNCONFIRMED: how 0 to 7 differ from 20H to 27H.
/// Errors: UNCONFIRMED. The processor may accept encodings without a meaning.
/// Source: REG-016, REG-215..219.
struct ia32_rtit_triggerx_cfg : bit_word<ia32_rtit_triggerx_cfg, uint64_t> {
    struct Input0 : field<6, 0> {};
    struct Action12_0 : flag<12> {};  ///< UNCONFIRMED: TRACE_PAUSE or TRACE_RESUME
    /// UNCONFIRMED: the other one of TRACE_PAUSE and TRACE_RESUME
    struct Action13_0 : flag<13> {};
    struct EnIcnt0 : flag<14> {};  ///< the TRIG packet carries an instruction count
    struct En0 : flag<15> {};      ///< this slot is armed
    struct Input1 : field<22, 16> {};
    struct Action12_1 : flag<28> {};  ///< UNCONFIRMED: like Action12_0
    struct Action13_1 : flag<29> {};  ///< UNCONFIRMED: like Action13_0
    struct EnIcnt1 : flag<30> {};
    struct En1 : flag<31> {};
    struct Input2 : field<38, 32> {};
    struct Action12_2 : flag<44> {};  ///< UNCONFIRMED: like Action12_0
    struct Action13_2 : flag<45> {};  ///< UNCONFIRMED: like Action13_0
    struct EnIcnt2 : flag<46> {};
    struct En2 : flag<47> {};
    struct Input3 : field<54, 48> {};
    struct Action12_3 : flag<60> {};  ///< UNCONFIRMED: like Action12_0
    struct Action13_3 : flag<61> {};  ///< UNCONFIRMED: like Action13_0
    struct EnIcnt3 : flag<62> {};
    struct En3 : flag<63> {};

    // clang-format off
    struct layout : bit_layout<64,
        Input0, reserved<11, 7>, Action12_0, Action13_0, EnIcnt0, En0,
        Input1, reserved<27, 23>, Action12_1, Action13_1, EnIcnt1, En1,
        Input2, reserved<43, 39>, Action12_2, Action13_2, EnIcnt2, En2,
        Input3, reserved<59, 55>, Action12_3, Action13_3, EnIcnt3, En3> {};
    // clang-format on
};

/// DR7: the debug registers whose matches fire triggers.
///
/// Shape:  64-bit debug register.
/// Source: SDM vol. 3, "Debug Control Register (DR7)"; REG-219.
struct dr7 : bit_word<dr7, uint64_t> {
    struct DR0_PT_LOG : flag<32> {};
    struct DR1_PT_LOG : flag<33> {};
    struct DR2_PT_LOG : flag<34> {};
    struct DR3_PT_LOG : flag<35> {};

    // clang-format off
    struct layout : bit_layout<64,
        other<31, 0>, DR0_PT_LOG, DR1_PT_LOG, DR2_PT_LOG, DR3_PT_LOG, other<63, 36>> {};
    // clang-format on
};

}  // namespace ptspec::reg

// ---- ptspec/reg/xsave.hpp ----

/// The trace configuration as component 8 of XSAVE.
namespace ptspec::reg {

/// IA32_XSS, the supervisor components that XSAVES and XRSTORS manage.
///
/// Shape:  64-bit MSR DA0H.
/// Errors: WRMSR raises #GP(0) for a component that CPUID.0DH.1:ECX and EDX do not enumerate.
/// Source: SDM vol. 1, "Enabling the XSAVE Feature Set and XSAVE-Enabled Features"; REG-140.
struct ia32_xss : bit_word<ia32_xss, uint64_t> {
    static constexpr uint32_t address = 0xDA0;

    struct PT_STATE : flag<8> {};

    struct layout : bit_layout<64, other<7, 0>, PT_STATE, other<63, 9>> {};
};

/// XSTATE_BV, the components of an XSAVE area that hold data. The others are in their initial
/// state.
///
/// Shape:  64 bits, 200H bytes into the XSAVE area.
/// Errors: XRSTORS raises #GP(0) for a bit that is 0 in XCOMP_BV.
/// Source: SDM vol. 1, "XSAVE Header"; REG-146, REG-148.
struct xsave_header_xstate_bv : bit_word<xsave_header_xstate_bv, uint64_t> {
    static constexpr uint32_t offset = 0x200;  ///< in bytes from the start of the area

    struct PT : flag<8> {};

    struct layout : bit_layout<64, other<7, 0>, PT, other<63, 9>> {};
};

/// XCOMP_BV, the components that an XSAVE area in compacted form contains.
///
/// Shape:  64 bits, 208H bytes into the XSAVE area. XSAVES writes no other form.
/// Errors: XRSTORS raises #GP(0) if Compacted is 0, and for a bit that is 0 in IA32_XSS.
/// Source: SDM vol. 1, "XSAVE Header"; REG-148.
struct xsave_header_xcomp_bv : bit_word<xsave_header_xcomp_bv, uint64_t> {
    static constexpr uint32_t offset = 0x208;  ///< in bytes from the start of the area

    struct PT : flag<8> {};
    struct Compacted : forced_1<flag<63>> {};

    struct layout : bit_layout<64, other<7, 0>, PT, other<62, 9>, Compacted> {};
};

/// A field that holds a whole word, `Offset` bytes into the state.
template <unsigned Offset, class Word>
struct image : bit_range<8 * Offset + 63, 8 * Offset> {
    using value_type = Word;
    value_type value;

    [[nodiscard]] static constexpr auto fits(uint64_t) noexcept -> bool { return true; }
    [[nodiscard]] static constexpr auto from_number(uint64_t number) noexcept -> value_type {
        return value_type{number};
    }
    [[nodiscard]] constexpr auto number() const noexcept -> uint64_t { return value.raw; }

    constexpr image(Word word) noexcept : value{word} {}
    constexpr image(wrapped number) noexcept : value{number.value} {}
};

/// PT state, component 8: the trace configuration as XSAVES writes it.
///
/// Shape:  128 bytes: nine MSRs of 8 bytes each, then reserved quadwords. Address ranges 2 and 3
///         are not included.
/// Errors: XRSTORS raises #GP(0) while TraceEn is 1, for a reserved quadword that is not 0, and for
///         a value that WRMSR refuses.
/// Source: SDM vol. 1, "PT State"; REG-141, REG-144.
struct xsave_pt_state {
    static constexpr row_access access = row_access::plain;
    uint64_t quadwords[16] = {};

    struct IA32_RTIT_CTL : image<0x00, ia32_rtit_ctl> {};
    struct IA32_RTIT_OUTPUT_BASE : image<0x08, ia32_rtit_output_base> {};
    struct IA32_RTIT_OUTPUT_MASK_PTRS : image<0x10, ia32_rtit_output_mask_ptrs> {};
    struct IA32_RTIT_STATUS : image<0x18, ia32_rtit_status> {};
    struct IA32_RTIT_CR3_MATCH : image<0x20, ia32_rtit_cr3_match> {};
    struct IA32_RTIT_ADDR0_A : image<0x28, ia32_rtit_addr> {};
    struct IA32_RTIT_ADDR0_B : image<0x30, ia32_rtit_addr> {};
    struct IA32_RTIT_ADDR1_A : image<0x38, ia32_rtit_addr> {};
    struct IA32_RTIT_ADDR1_B : image<0x40, ia32_rtit_addr> {};

    // clang-format off
    struct layout : bit_layout<1024,
        IA32_RTIT_CTL, IA32_RTIT_OUTPUT_BASE, IA32_RTIT_OUTPUT_MASK_PTRS, IA32_RTIT_STATUS,
        IA32_RTIT_CR3_MATCH, IA32_RTIT_ADDR0_A, IA32_RTIT_ADDR0_B, IA32_RTIT_ADDR1_A,
        IA32_RTIT_ADDR1_B,
        reserved<639, 576>, reserved<703, 640>, reserved<767, 704>, reserved<831, 768>,
        reserved<895, 832>, reserved<959, 896>, reserved<1023, 960>> {};
    // clang-format on

    friend constexpr auto operator==(xsave_pt_state const&, xsave_pt_state const&)
        -> bool = default;

    /// The index of a row's quadword.
    template <class Row>
    static constexpr unsigned quadword_of = Row::lsb / 64;

    /// The saved value of a register.
    template <class Field>
        requires field_of<Field, xsave_pt_state>
    [[nodiscard]] constexpr auto get() const noexcept -> typename Field::value_type {
        return Field::from_number(quadwords[quadword_of<Field>]);
    }

    /// Returns the state with the named registers changed. All other quadwords keep their value.
    template <class... Fields>
        requires(field_of<Fields, xsave_pt_state> && ...)
    [[nodiscard]] constexpr auto with(Fields... fields) const noexcept -> xsave_pt_state {
        static_assert(popcount((uint64_t{0} | ... | (uint64_t{1} << quadword_of<Fields>))) ==
                          sizeof...(Fields),
                      "a field is named twice");
        xsave_pt_state changed = *this;
        ((changed.quadwords[quadword_of<Fields>] = fields.number()), ...);
        return changed;
    }

    /// If false, XRSTORS of this state raises #GP(0).
    [[nodiscard]] constexpr auto reserved_quadwords_are_zero() const noexcept -> bool {
        return [this]<class... Rows>(type_list<Rows...>) {
            row_kind const kinds[] = {Rows::kind...};
            unsigned const places[] = {quadword_of<Rows>...};
            for (size_t i = 0; i < sizeof...(Rows); ++i) {
                if (kinds[i] == row_kind::reserved && quadwords[places[i]] != 0) { return false; }
            }
            return true;
        }(layout::rows{});
    }
};

}  // namespace ptspec::reg

// ---- ptspec/reg/cpuid.hpp ----

/// The CPUID leaves that tracing depends on. Leaf 14H is in cpuid_14h.hpp.
namespace ptspec::reg {

/// The four registers that CPUID writes.
enum class cpuid_register : uint8_t { eax, ebx, ecx, edx };

/// One output register of CPUID for one leaf and sub-leaf.
///
/// Shape:  32 bits, read-only.
/// Source: SDM vol. 2A, "CPUID".
template <class Derived, uint32_t Leaf, uint32_t Subleaf, cpuid_register Part>
struct cpuid_word : read_only_word<Derived, uint32_t> {
    static constexpr uint32_t leaf = Leaf;  ///< EAX before CPUID
    /// ECX before CPUID; 0 if the leaf has no sub-leaves
    static constexpr uint32_t subleaf = Subleaf;
    static constexpr cpuid_register part = Part;

    using base = read_only_word<Derived, uint32_t>;
    using base::base;
};

/// CPUID.01H:EAX, the processor's family, model and stepping.
///
/// Shape:  32 bits.
/// Units:  ExtFamily is added to Family if Family is 15. ExtModel is bits 7:4 of the model if
///         Family is 6 or 15.
/// Source: SDM vol. 2A, "CPUID".
struct cpuid_01h_eax : cpuid_word<cpuid_01h_eax, 0x01, 0, cpuid_register::eax> {
    struct Stepping : field<3, 0> {};
    struct Model : field<7, 4> {};
    struct Family : field<11, 8> {};
    struct Type : field<13, 12> {};
    struct ExtModel : field<19, 16> {};
    struct ExtFamily : field<27, 20> {};

    // clang-format off
    struct layout : bit_layout<32,
        Stepping, Model, Family, Type, reserved<15, 14>, ExtModel, ExtFamily, reserved<31, 28>> {};
    // clang-format on
};

/// CPUID.01H:ECX, feature flags.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID".
struct cpuid_01h_ecx : cpuid_word<cpuid_01h_ecx, 0x01, 0, cpuid_register::ecx> {
    struct VMX : flag<5> {};
    struct PDCM : flag<15> {};  ///< IA32_PERF_CAPABILITIES exists
    struct x2APIC : flag<21> {};
    struct XSAVE : flag<26> {};
    struct OSXSAVE : flag<27> {};  ///< CR4.OSXSAVE is 1

    // clang-format off
    struct layout : bit_layout<32,
        other<4, 0>, VMX, other<14, 6>, PDCM, other<20, 16>, x2APIC, other<25, 22>, XSAVE, OSXSAVE,
        other<31, 28>> {};
    // clang-format on
};

/// CPUID.07H.0:EBX, feature flags, including Intel PT.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID"; REG-134, REG-160.
struct cpuid_07h_0_ebx : cpuid_word<cpuid_07h_0_ebx, 0x07, 0, cpuid_register::ebx> {
    struct SGX : flag<2> {};
    struct HLE : flag<4> {};   ///< TSX: lock elision
    struct RTM : flag<11> {};  ///< TSX: transactions
    struct INTEL_PT : flag<25> {};

    // clang-format off
    struct layout : bit_layout<32,
        other<1, 0>, SGX, other<3>, HLE, other<10, 5>, RTM, other<24, 12>, INTEL_PT,
        other<31, 26>> {};
    // clang-format on
};

/// CPUID.0AH:EAX, the performance counters.
///
/// Shape:  32 bits.
/// Units:  NumGP counts general-purpose counters. Width is a counter's width in bits. EbxLen counts
///         the bits of EBX that enumerate an event.
/// Source: SDM vol. 2A, "CPUID".
struct cpuid_0ah_eax : cpuid_word<cpuid_0ah_eax, 0x0A, 0, cpuid_register::eax> {
    struct VersionID : field<7, 0> {};
    struct NumGP : field<15, 8> {};
    struct Width : field<23, 16> {};
    struct EbxLen : field<31, 24> {};

    struct layout : bit_layout<32, VersionID, NumGP, Width, EbxLen> {};
};

// ------------------------------------------------------------------------------------ XSAVE

/// CPUID.0DH.1:EAX, the supported forms of XSAVE.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID"; REG-140.
struct cpuid_0dh_1_eax : cpuid_word<cpuid_0dh_1_eax, 0x0D, 1, cpuid_register::eax> {
    struct XSAVES : flag<3> {};  ///< XSAVES, XRSTORS and IA32_XSS

    struct layout : bit_layout<32, other<2, 0>, XSAVES, other<31, 4>> {};
};

/// CPUID.0DH.1:ECX, the low bits of IA32_XSS that may be 1.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID"; REG-140.
struct cpuid_0dh_1_ecx : cpuid_word<cpuid_0dh_1_ecx, 0x0D, 1, cpuid_register::ecx> {
    struct PT_STATE : flag<8> {};

    struct layout : bit_layout<32, other<7, 0>, PT_STATE, other<31, 9>> {};
};

/// CPUID.0DH.8:EAX, the size of PT state in an XSAVE area.
///
/// Shape:  32 bits.
/// Units:  Size is in bytes; 128 on every processor seen.
/// Source: SDM vol. 2A, "CPUID"; REG-140.
struct cpuid_0dh_8_eax : cpuid_word<cpuid_0dh_8_eax, 0x0D, 8, cpuid_register::eax> {
    struct Size : field<31, 0> {
        [[nodiscard]] static constexpr auto amount(uint64_t bytes) noexcept -> quantity {
            return {bytes, "bytes"};
        }
    };

    struct layout : bit_layout<32, Size> {};
};

/// CPUID.0DH.8:EBX, the offset of PT state in the standard form of an XSAVE area. 0, since the
/// standard form does not hold PT state.
///
/// Shape:  32 bits, all 0.
/// Source: SDM vol. 2A, "CPUID"; REG-140.
struct cpuid_0dh_8_ebx : cpuid_word<cpuid_0dh_8_ebx, 0x0D, 8, cpuid_register::ebx> {
    struct Offset : field<31, 0> {};

    struct layout : bit_layout<32, Offset> {};
};

/// CPUID.0DH.8:ECX, the management and alignment of PT state.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID"; REG-140.
struct cpuid_0dh_8_ecx : cpuid_word<cpuid_0dh_8_ecx, 0x0D, 8, cpuid_register::ecx> {
    struct Supervisor : flag<0> {};  ///< managed by IA32_XSS; always 1
    struct Align64 : flag<1> {};     ///< aligned to 64 bytes in compacted form

    struct layout : bit_layout<32, Supervisor, Align64, other<31, 2>> {};
};

// ------------------------------------------------------------------------------------ clocks

/// CPUID.15H:EAX, the denominator of the ratio of the TSC to the crystal clock.
///
/// Shape:  32 bits. 0: the ratio is not enumerated.
/// Units:  TSC / crystal = Numerator / Denominator.
/// Source: SDM vol. 2A, "CPUID"; REG-167.
struct cpuid_15h_eax : cpuid_word<cpuid_15h_eax, 0x15, 0, cpuid_register::eax> {
    struct Denominator : field<31, 0> {};

    struct layout : bit_layout<32, Denominator> {};
};

/// CPUID.15H:EBX, the numerator of the ratio of the TSC to the crystal clock.
///
/// Shape:  32 bits. 0: the ratio is not enumerated.
/// Units:  TSC / crystal = Numerator / Denominator.
/// Source: SDM vol. 2A, "CPUID"; REG-167.
struct cpuid_15h_ebx : cpuid_word<cpuid_15h_ebx, 0x15, 0, cpuid_register::ebx> {
    struct Numerator : field<31, 0> {};

    struct layout : bit_layout<32, Numerator> {};
};

/// CPUID.15H:ECX, the frequency of the crystal clock.
///
/// Shape:  32 bits. 0: the frequency is not enumerated.
/// Units:  CrystalHz is in Hz.
/// Source: SDM vol. 2A, "CPUID"; REG-167.
struct cpuid_15h_ecx : cpuid_word<cpuid_15h_ecx, 0x15, 0, cpuid_register::ecx> {
    struct CrystalHz : field<31, 0> {
        [[nodiscard]] static constexpr auto amount(uint64_t hz) noexcept -> quantity {
            return hz == 0 ? quantity{} : quantity{hz, "Hz"};
        }
    };

    struct layout : bit_layout<32, CrystalHz> {};
};

/// CPUID.15H:EDX, reserved.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID".
struct cpuid_15h_edx : cpuid_word<cpuid_15h_edx, 0x15, 0, cpuid_register::edx> {
    struct layout : bit_layout<32, reserved<31, 0>> {};
};

/// CPUID.80000007H:EDX, the invariant TSC.
///
/// Shape:  32 bits.
/// Source: SDM vol. 2A, "CPUID"; PRG-138.
struct cpuid_80000007h_edx : cpuid_word<cpuid_80000007h_edx, 0x8000'0007, 0, cpuid_register::edx> {
    struct InvariantTSC : flag<8> {};  ///< counts at a constant rate in all C-states

    struct layout : bit_layout<32, other<7, 0>, InvariantTSC, other<31, 9>> {};
};

// ------------------------------------------------------------------------------------ addresses

/// CPUID.80000008H:EAX, the widths of addresses.
///
/// Shape:  32 bits.
/// Units:  MAXPHYADDR is the width of physical addresses in bits, 36 if this leaf is absent.
///         LinearBits is the width of linear addresses, 48 or 57.
/// Source: SDM vol. 2A, "CPUID"; REG-070, REG-076.
struct cpuid_80000008h_eax : cpuid_word<cpuid_80000008h_eax, 0x8000'0008, 0, cpuid_register::eax> {
    struct MAXPHYADDR : field<7, 0> {};
    struct LinearBits : field<15, 8> {};

    struct layout : bit_layout<32, MAXPHYADDR, LinearBits, other<31, 16>> {};
};

}  // namespace ptspec::reg

// ---- ptspec/reg/cpuid_14h.hpp ----

/// CPUID leaf 14H: the capabilities of the trace unit. Each one is enumerated separately.
namespace ptspec::reg {

/// CPUID.14H.0:EAX, the number of the last sub-leaf.
///
/// Shape:  32 bits.
/// Units:  MaxSubleaf is the number of the last sub-leaf.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-046,
///         REG-160.
struct cpuid_14h_0_eax : cpuid_word<cpuid_14h_0_eax, 0x14, 0, cpuid_register::eax> {
    struct MaxSubleaf : field<31, 0> {};

    struct layout : bit_layout<32, MaxSubleaf> {};
};

/// CPUID.14H.0:EBX, the supported features.
///
/// Shape:  32 bits.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-161.
struct cpuid_14h_0_ebx : cpuid_word<cpuid_14h_0_ebx, 0x14, 0, cpuid_register::ebx> {
    struct CR3FILTER : flag<0> {};
    struct CPSB_CAM : flag<1> {};         ///< PSBFreq and cycle-accurate mode
    struct IPFILT_WRSTPRSV : flag<2> {};  ///< address ranges; MSRs preserved across warm reset
    struct MTC : flag<3> {};              ///< MTC packets; BranchEn may be 0
    struct PTWRITE : flag<4> {};
    struct PWR_EVT : flag<5> {};       ///< power events
    struct INJECTPSBPMI : flag<6> {};  ///< PendPSB and PendToPAPMI, for context switches
    struct EVENT_TRACE : flag<7> {};
    struct TNT_DIS : flag<8> {};  ///< DisTNT
    struct PTTT : flag<9> {};     ///< trigger tracing

    // clang-format off
    struct layout : bit_layout<32,
        CR3FILTER, CPSB_CAM, IPFILT_WRSTPRSV, MTC, PTWRITE, PWR_EVT, INJECTPSBPMI, EVENT_TRACE,
        TNT_DIS, PTTT, reserved<31, 10>> {};
    // clang-format on
};

/// CPUID.14H.0:ECX, the supported outputs and the kind of IPs.
///
/// Shape:  32 bits.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-162,
///         REG-163.
struct cpuid_14h_0_ecx : cpuid_word<cpuid_14h_0_ecx, 0x14, 0, cpuid_register::ecx> {
    struct TOPAOUT : flag<0> {};
    struct MENTRY : flag<1> {};      ///< ToPA tables with more than one region
    struct SNGLRNGOUT : flag<2> {};  ///< single-range output
    struct FABRIC : flag<3> {};      ///< output to the trace transport subsystem
    struct LIP : flag<31> {};        ///< 1: IPs are linear addresses; 0: effective addresses

    struct layout : bit_layout<32, TOPAOUT, MENTRY, SNGLRNGOUT, FABRIC, reserved<30, 4>, LIP> {};
};

/// CPUID.14H.0:EDX, reserved.
///
/// Shape:  32 bits.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration".
struct cpuid_14h_0_edx : cpuid_word<cpuid_14h_0_edx, 0x14, 0, cpuid_register::edx> {
    struct layout : bit_layout<32, reserved<31, 0>> {};
};

/// CPUID.14H.1:EAX, the number of ranges and triggers, and the supported MTC periods.
///
/// Shape:  32 bits.
/// Units:  RANGECNT counts address ranges, TRIGGER_CFG_CNT the IA32_RTIT_TRIGGERx_CFG MSRs. Bit n
///         of MTC_PERIODS is 1 if MTCFreq may be n.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-164.
struct cpuid_14h_1_eax : cpuid_word<cpuid_14h_1_eax, 0x14, 1, cpuid_register::eax> {
    struct RANGECNT : field<2, 0> {};
    struct TRIGGER_CFG_CNT : field<10, 8> {};
    struct MTC_PERIODS : field<31, 16> {};

    // clang-format off
    struct layout : bit_layout<32,
        RANGECNT, reserved<7, 3>, TRIGGER_CFG_CNT, reserved<15, 11>, MTC_PERIODS> {};
    // clang-format on
};

/// CPUID.14H.1:EBX, the supported CYC thresholds and PSB periods.
///
/// Shape:  32 bits.
/// Units:  Bit n of CYC_THRESHOLDS is 1 if CycThresh may be n, bit n of PSB_PERIODS if PSBFreq may
///         be n.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-164.
struct cpuid_14h_1_ebx : cpuid_word<cpuid_14h_1_ebx, 0x14, 1, cpuid_register::ebx> {
    struct CYC_THRESHOLDS : field<15, 0> {};
    struct PSB_PERIODS : field<31, 16> {};

    struct layout : bit_layout<32, CYC_THRESHOLDS, PSB_PERIODS> {};
};

/// CPUID.14H.1:ECX, the supported trigger features.
///
/// Shape:  32 bits.
/// Source: REG-164.
struct cpuid_14h_1_ecx : cpuid_word<cpuid_14h_1_ecx, 0x14, 1, cpuid_register::ecx> {
    struct TRIGGER_ATTRIBUTION : flag<0> {};   ///< a TRIG packet may carry an instruction count
    struct TRIGGER_PAUSE_RESUME : flag<1> {};  ///< a trigger may pause and resume tracing
    struct TRIGGER_DR_MATCH : flag<15> {};     ///< a debug-register match may be a trigger

    // clang-format off
    struct layout : bit_layout<32,
        TRIGGER_ATTRIBUTION, TRIGGER_PAUSE_RESUME, reserved<14, 2>, TRIGGER_DR_MATCH,
        reserved<31, 16>> {};
    // clang-format on
};

/// CPUID.14H.1:EDX, reserved.
///
/// Shape:  32 bits.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration".
struct cpuid_14h_1_edx : cpuid_word<cpuid_14h_1_edx, 0x14, 1, cpuid_register::edx> {
    struct layout : bit_layout<32, reserved<31, 0>> {};
};

}  // namespace ptspec::reg

// ---- ptspec/reg/perf.hpp ----

/// The performance-monitoring registers that tracing uses: the ToPA PMI is reported in them.
namespace ptspec::reg {

/// The common part of IA32_PERF_GLOBAL_STATUS and its RESET and SET registers, which have the same
/// bits.
///
/// Shape:  64 bits.
/// Source: SDM vol. 3, "IA32_PERF_GLOBAL_STATUS MSR"; REG-203, REG-205.
template <class Derived, row_access Access = row_access::plain>
struct perf_global_status_word : bit_word<Derived, uint64_t, Access> {
    using base = bit_word<Derived, uint64_t, Access>;
    using base::base;

    struct OvfPMC : field<31, 0> {};  ///< one bit per general-purpose counter
    struct OvfFixed : field<47, 32> {};
    struct OvfPerfMetrics : flag<48> {};
    struct ArchPebsThresh : flag<54> {};  ///< the architectural PEBS buffer reached its threshold
    struct Trace_ToPA_PMI : flag<55> {};  ///< a ToPA region with INT is full
    struct LBR_Frz : flag<58> {};         ///< a PMI froze the LBRs
    struct CTR_Frz : flag<59> {};         ///< a PMI froze the counters
    struct ASCI : flag<60> {};            ///< an SGX enclave may have contributed to the counts
    struct OvfUncore : flag<61> {};
    struct OvfBuf : flag<62> {};  ///< the DS buffer overflowed
    struct CondChgd : flag<63> {};

    // clang-format off
    struct layout : bit_layout<64,
        OvfPMC, OvfFixed, OvfPerfMetrics, reserved<53, 49>, ArchPebsThresh, Trace_ToPA_PMI,
        reserved<57, 56>, LBR_Frz, CTR_Frz, ASCI, OvfUncore, OvfBuf, CondChgd> {};
    // clang-format on
};

/// IA32_PERF_GLOBAL_STATUS, the causes of a performance-monitoring interrupt.
///
/// Shape:  64-bit MSR 38EH, read-only.
/// Source: SDM vol. 3, "IA32_PERF_GLOBAL_STATUS MSR"; REG-203..205.
struct ia32_perf_global_status
    : perf_global_status_word<ia32_perf_global_status, row_access::read_only> {
    static constexpr uint32_t address = 0x38E;
};

/// IA32_PERF_GLOBAL_STATUS_RESET: writing 1 to a bit clears that bit of IA32_PERF_GLOBAL_STATUS.
///
/// Shape:  64-bit MSR 390H. Below version 4 of performance monitoring it is called
///         IA32_PERF_GLOBAL_OVF_CTRL.
/// Source: SDM vol. 3, "IA32_PERF_GLOBAL_STATUS_RESET MSR"; REG-203, OUT-084.
struct ia32_perf_global_status_reset : perf_global_status_word<ia32_perf_global_status_reset> {
    static constexpr uint32_t address = 0x390;
};

/// IA32_PERF_GLOBAL_STATUS_SET: writing 1 to a bit sets that bit of IA32_PERF_GLOBAL_STATUS.
///
/// Shape:  64-bit MSR 391H, from version 4 of performance monitoring on.
/// Source: SDM vol. 3, "IA32_PERF_GLOBAL_STATUS_SET MSR"; REG-203.
struct ia32_perf_global_status_set : perf_global_status_word<ia32_perf_global_status_set> {
    static constexpr uint32_t address = 0x391;
};

/// IA32_PERF_GLOBAL_CTRL, the enabled counters.
///
/// Shape:  64-bit MSR 38FH. Up to version 3 of performance monitoring, FREEZE_PERFMON_ON_PMI clears
///         it on a PMI.
/// Source: SDM vol. 3, "IA32_PERF_GLOBAL_CTRL MSR"; REG-205.
struct ia32_perf_global_ctrl : bit_word<ia32_perf_global_ctrl, uint64_t> {
    static constexpr uint32_t address = 0x38F;

    struct EnPMC : field<31, 0> {};  ///< one bit per general-purpose counter
    struct EnFixed : field<47, 32> {};

    struct layout : bit_layout<64, EnPMC, EnFixed, other<63, 48>> {};
};

/// IA32_PERF_CAPABILITIES, the performance-monitoring features.
///
/// Shape:  64-bit MSR 345H, where CPUID.01H:ECX.PDCM is 1. Read-only.
/// Source: SDM vol. 3, "IA32_PERF_CAPABILITIES MSR"; REG-200.
struct ia32_perf_capabilities : read_only_word<ia32_perf_capabilities, uint64_t> {
    static constexpr uint32_t address = 0x345;

    struct LBR_FMT : field<5, 0> {};  ///< the format of LBR records
    struct PEBSTrap : flag<6> {};
    struct PEBSArchRegs : flag<7> {};
    /// the format of PEBS records; FH is architectural PEBS
    struct PEBS_FMT : field<11, 8> {};
    struct SMM_FREEZE : flag<12> {};            ///< IA32_DEBUGCTL has FREEZE_WHILE_SMM
    struct FW_WRITE : flag<13> {};              ///< counters can be written in their full width
    struct PEBS_BASELINE : flag<14> {};         ///< adaptive PEBS
    struct PERF_METRICS : flag<15> {};          ///< top-down metrics
    struct PEBS_OUTPUT_PT_AVAIL : flag<16> {};  ///< PEBS records may go into the trace
    struct PEBS_TIMING_INFO : flag<17> {};      ///< PEBS records may hold timing information

    // clang-format off
    struct layout : bit_layout<64,
        LBR_FMT, PEBSTrap, PEBSArchRegs, PEBS_FMT, SMM_FREEZE, FW_WRITE, PEBS_BASELINE,
        PERF_METRICS, PEBS_OUTPUT_PT_AVAIL, PEBS_TIMING_INFO, other<63, 18>> {};
    // clang-format on
};

/// MSR_PLATFORM_INFO, the ratio of the TSC to the bus clock.
///
/// Shape:  64-bit MSR CEH, read-only.
/// Units:  MaxNonTurboRatio multiplies the bus clock, as CoreBusRatio of a CBR packet does.
/// Source: SDM vol. 4, "MSR_PLATFORM_INFO"; REG-168, GEN-208.
struct msr_platform_info : read_only_word<msr_platform_info, uint64_t> {
    static constexpr uint32_t address = 0xCE;

    struct MaxNonTurboRatio : field<15, 8> {};

    struct layout : bit_layout<64, other<7, 0>, MaxNonTurboRatio, other<63, 16>> {};
};

}  // namespace ptspec::reg

// ---- ptspec/reg/pebs.hpp ----

namespace ptspec::reg {

/// Encodings of PEBS_OUTPUT: where PEBS records go. 2 and 3 are reserved.
enum class pebs_output : uint8_t {
    ds_area = 0,
    intel_pt = 1,  ///< into the trace
};

/// IA32_PEBS_ENABLE, the counters that make PEBS records, and the output of the records.
///
/// Shape:  64-bit MSR 3F1H. One PEBS_OUTPUT for all counters.
/// Errors: PMI_AFTER_EACH_RECORD and PEBS_OUTPUT exist where PEBS_OUTPUT_PT_AVAIL is 1.
/// Source: SDM vol. 3, "PEBS Output to Intel Processor Trace"; REG-200, REG-201.
struct ia32_pebs_enable : bit_word<ia32_pebs_enable, uint64_t> {
    static constexpr uint32_t address = 0x3F1;

    struct EnPMC : field<31, 0> {};  ///< one bit per general-purpose counter
    struct EnFixed : field<59, 32> {};
    struct PMI_AFTER_EACH_RECORD : flag<60> {};
    struct PEBS_OUTPUT : enumerated<62, 61, pebs_output> {};

    // clang-format off
    struct layout : bit_layout<64,
        EnPMC, EnFixed, PMI_AFTER_EACH_RECORD, PEBS_OUTPUT, other<63>> {};
    // clang-format on
};

/// MSR_RELOAD_PMCx, the reload value of a general-purpose counter after its record was written to
/// the trace.
///
/// Shape:  64-bit MSRs from 14C1H on, one for each general counter.
/// Source: SDM vol. 3, "PEBS Output to Intel Processor Trace"; REG-200.
struct msr_reload_pmcx : bit_word<msr_reload_pmcx, uint64_t> {
    /// The MSR index of general-purpose counter `n`.
    [[nodiscard]] static constexpr auto address(unsigned n) noexcept -> uint32_t {
        return 0x14C1 + n;
    }

    struct Reload : field<63, 0> {};

    struct layout : bit_layout<64, Reload> {};
};

/// MSR_RELOAD_FIXED_CTRx, the reload value of a fixed-function counter after its record was written
/// to the trace.
///
/// Shape:  64-bit MSRs from 1309H on, one for each fixed counter.
/// Source: SDM vol. 3, "PEBS Output to Intel Processor Trace"; REG-200.
struct msr_reload_fixed_ctrx : bit_word<msr_reload_fixed_ctrx, uint64_t> {
    /// The MSR index of fixed-function counter `n`.
    [[nodiscard]] static constexpr auto address(unsigned n) noexcept -> uint32_t {
        return 0x1309 + n;
    }

    struct Reload : field<63, 0> {};

    struct layout : bit_layout<64, Reload> {};
};

}  // namespace ptspec::reg

// ---- ptspec/reg/lbr.hpp ----

/// Last-branch records and related registers, which some processors suspend while PT is enabled.
namespace ptspec::reg {

/// IA32_DEBUGCTL, branch recording and freeze-on-PMI.
///
/// Shape:  64-bit MSR 1D9H. If PT and LBR exclude each other, tracing suspends the features but
///         does not change their enable bits.
/// Errors: WRMSR raises #GP(0) for a reserved bit.
/// Source: SDM vol. 3, "IA32_DEBUGCTL MSR"; REG-181, REG-205.
struct ia32_debugctl : bit_word<ia32_debugctl, uint64_t> {
    static constexpr uint32_t address = 0x1D9;

    struct LBR : flag<0> {};                     ///< record last branches
    struct BTF : flag<1> {};                     ///< single-step on branches
    struct BLD : flag<2> {};                     ///< detect bus locks
    struct TR : flag<6> {};                      ///< send branch trace messages
    struct BTS : flag<7> {};                     ///< store branch trace messages in the BTS buffer
    struct BTINT : flag<8> {};                   ///< interrupt when the BTS buffer is full
    struct BTS_OFF_OS : flag<9> {};              ///< no BTS at CPL 0
    struct BTS_OFF_USR : flag<10> {};            ///< no BTS at CPL 1 to 3
    struct FREEZE_LBRS_ON_PMI : flag<11> {};     ///< also on a ToPA PMI
    struct FREEZE_PERFMON_ON_PMI : flag<12> {};  ///< also on a ToPA PMI
    struct ENABLE_UNCORE_PMI : flag<13> {};
    struct FREEZE_WHILE_SMM : flag<14> {};
    struct RTM_DEBUG : flag<15> {};

    // clang-format off
    struct layout : bit_layout<64,
        LBR, BTF, BLD, reserved<5, 3>, TR, BTS,
        BTINT, BTS_OFF_OS, BTS_OFF_USR, FREEZE_LBRS_ON_PMI, FREEZE_PERFMON_ON_PMI,
        ENABLE_UNCORE_PMI, FREEZE_WHILE_SMM, RTM_DEBUG, reserved<63, 16>> {};
    // clang-format on
};

/// The common part of the LBR registers. If PT and LBR exclude each other, they read 0 and ignore
/// writes while TraceEn is 1.
///
/// Shape:  64 bits with model-specific content.
/// Source: SDM vol. 3, "Last Branch, Interrupt, and Exception Recording"; REG-180..182.
template <class Derived>
struct lbr_word : bit_word<Derived, uint64_t> {
    using base = bit_word<Derived, uint64_t>;
    using base::base;

    struct Value : field<63, 0> {};

    struct layout : bit_layout<64, Value> {};
};

/// MSR_LASTBRANCH_TOS, the index of the latest record.
///
/// Shape:  64-bit MSR 1C9H.
/// Source: REG-182.
struct msr_lastbranch_tos : lbr_word<msr_lastbranch_tos> {
    static constexpr uint32_t address = 0x1C9;
};

/// MSR_LBR_SELECT, the filter of the recorded branches.
///
/// Shape:  64-bit MSR 1C8H.
/// Source: REG-182.
struct msr_lbr_select : lbr_word<msr_lbr_select> {
    static constexpr uint32_t address = 0x1C8;
};

/// MSR_LER_FROM_LIP, the source of the last branch before the latest exception or interrupt.
///
/// Shape:  64-bit MSR 1DDH.
/// Source: REG-182, REG-238.
struct msr_ler_from_lip : lbr_word<msr_ler_from_lip> {
    static constexpr uint32_t address = 0x1DD;
};

/// MSR_LER_TO_LIP, the target of the last branch before the latest exception or interrupt.
///
/// Shape:  64-bit MSR 1DEH.
/// Source: REG-182, REG-238.
struct msr_ler_to_lip : lbr_word<msr_ler_to_lip> {
    static constexpr uint32_t address = 0x1DE;
};

/// MSR_LASTBRANCH_x_FROM_IP, the source of a recorded branch.
///
/// Shape:  64-bit MSRs from 680H on, one for each record.
/// Source: REG-182.
struct msr_lastbranch_x_from_ip : lbr_word<msr_lastbranch_x_from_ip> {
    /// The MSR index of record `x`.
    [[nodiscard]] static constexpr auto address(unsigned x) noexcept -> uint32_t {
        return 0x680 + x;
    }
};

/// MSR_LASTBRANCH_x_TO_IP, the target of a recorded branch.
///
/// Shape:  64-bit MSRs from 6C0H on, one for each record.
/// Source: REG-182.
struct msr_lastbranch_x_to_ip : lbr_word<msr_lastbranch_x_to_ip> {
    /// The MSR index of record `x`.
    [[nodiscard]] static constexpr auto address(unsigned x) noexcept -> uint32_t {
        return 0x6C0 + x;
    }
};

/// MSR_LBR_INFO_x, further information about a recorded branch.
///
/// Shape:  64-bit MSRs from DC0H on, one for each record.
/// Source: REG-182.
struct msr_lbr_info_x : lbr_word<msr_lbr_info_x> {
    /// The MSR index of record `x`.
    [[nodiscard]] static constexpr auto address(unsigned x) noexcept -> uint32_t {
        return 0xDC0 + x;
    }
};

}  // namespace ptspec::reg

// ---- ptspec/reg/smrr.hpp ----

/// The SMRR, a memory range for SMM. Trace output must not go there.
namespace ptspec::reg {

/// IA32_MTRRCAP, the supported memory-type range registers.
///
/// Shape:  64-bit MSR FEH, read-only.
/// Source: SDM vol. 3, "IA32_MTRRCAP Register".
struct ia32_mtrrcap : read_only_word<ia32_mtrrcap, uint64_t> {
    static constexpr uint32_t address = 0xFE;

    struct VCNT : field<7, 0> {};  ///< the number of variable ranges
    struct FIX : flag<8> {};       ///< fixed ranges
    struct WC : flag<10> {};       ///< write combining
    struct SMRR : flag<11> {};     ///< the SMRR registers below exist

    struct layout : bit_layout<64, VCNT, FIX, reserved<9>, WC, SMRR, other<63, 12>> {};
};

/// IA32_SMRR_PHYSBASE, the base address and memory type of the SMRR.
///
/// Shape:  64-bit MSR 1F2H, where IA32_MTRRCAP.SMRR is 1.
/// Units:  PhysBase is a physical address below 4 GB, a multiple of 4096. Type is a memory type.
/// Source: SDM vol. 3, "System-Management Range Register Interface"; OUT-110.
struct ia32_smrr_physbase : bit_word<ia32_smrr_physbase, uint64_t> {
    static constexpr uint32_t address = 0x1F2;

    struct Type : field<7, 0> {};
    struct PhysBase : address_field<31, 12> {};

    struct layout : bit_layout<64, Type, reserved<11, 8>, PhysBase, reserved<63, 32>> {};
};

/// IA32_SMRR_PHYSMASK, the size and the valid bit of the SMRR.
///
/// Shape:  64-bit MSR 1F3H, where IA32_MTRRCAP.SMRR is 1.
/// Units:  PhysMask selects the address bits that are compared with PhysBase. Only addresses below
///         4 GB are inside.
/// Source: SDM vol. 3, "System-Management Range Register Interface"; OUT-110.
struct ia32_smrr_physmask : bit_word<ia32_smrr_physmask, uint64_t> {
    static constexpr uint32_t address = 0x1F3;

    struct Valid : flag<11> {};
    struct PhysMask : address_field<31, 12> {};

    struct layout : bit_layout<64, reserved<10, 0>, Valid, PhysMask, reserved<63, 32>> {};
};

}  // namespace ptspec::reg

// ---- ptspec/reg/apic.hpp ----

/// The local APIC, which delivers the PMI of a full ToPA region.
namespace ptspec::reg {

/// IA32_APIC_BASE, the address of the local APIC's registers. Trace output must not go there.
///
/// Shape:  64-bit MSR 1BH.
/// Units:  ApicBase is the physical address of a page of 4096 bytes.
/// Errors: WRMSR raises #GP(0) for a reserved bit and for bits at or above MAXPHYADDR.
/// Source: SDM vol. 3, "Local APIC Status and Location"; OUT-113.
struct ia32_apic_base : bit_word<ia32_apic_base, uint64_t> {
    static constexpr uint32_t address = 0x1B;

    struct BSP : flag<8> {};    ///< this is the bootstrap processor
    struct EXTD : flag<10> {};  ///< x2APIC mode
    struct EN : flag<11> {};    ///< the APIC is enabled
    struct ApicBase : address_field<63, 12> {};

    struct layout : bit_layout<64, reserved<7, 0>, BSP, reserved<9>, EXTD, EN, ApicBase> {};
};

/// Encodings of DeliveryMode: how the interrupt is delivered.
enum class delivery_mode : uint8_t {
    fixed = 0,  ///< by vector, as the ToPA PMI requires
    nmi = 4,
};

/// The common part of the two forms of the LVT performance-monitoring entry.
///
/// Shape:  32 or 64 bits; the low 17 are in use.
/// Source: SDM vol. 3, "Local Vector Table"; OUT-082, OUT-084.
template <class Derived, class Raw>
struct lvt_pmi_word : bit_word<Derived, Raw> {
    using base = bit_word<Derived, Raw>;
    using base::base;

    struct Vector : field<7, 0> {};
    struct DeliveryMode : enumerated<10, 8, delivery_mode> {};
    struct DeliveryStatus : read_only<flag<12>> {};  ///< sent, but not yet accepted
    struct Mask : flag<16> {};                       ///< the processor sets it on delivery

    // clang-format off
    struct layout : bit_layout<8 * sizeof(Raw),
        Vector, DeliveryMode, reserved<11>, DeliveryStatus, reserved<15, 13>, Mask,
        reserved<8 * sizeof(Raw) - 1, 17>> {};
    // clang-format on
};

/// The LVT performance-monitoring entry in x2APIC mode.
///
/// Shape:  64-bit MSR 834H.
/// Errors: WRMSR raises #GP(0) for a reserved bit.
/// Source: SDM vol. 3, "x2APIC Register Address Space"; OUT-082, OUT-143.
struct ia32_x2apic_lvt_pmi : lvt_pmi_word<ia32_x2apic_lvt_pmi, uint64_t> {
    static constexpr uint32_t address = 0x834;
};

/// The LVT performance-monitoring entry in xAPIC mode.
///
/// Shape:  32 bits, 340H bytes into the APIC's page.
/// Source: SDM vol. 3, "Local Vector Table"; OUT-082, OUT-143.
struct apic_mmio_lvt_pmi : lvt_pmi_word<apic_mmio_lvt_pmi, uint32_t> {
    static constexpr uint32_t offset = 0x340;  ///< in bytes from ApicBase
};

}  // namespace ptspec::reg

// ---- ptspec/reg/vmx.hpp ----

/// The parts of VMX that concern tracing: capability MSRs, controls and fields of the VMCS.
namespace ptspec::reg {

/// IA32_VMX_MISC, miscellaneous capabilities of VMX.
///
/// Shape:  64-bit MSR 485H, read-only.
/// Units:  CR3TargetCount counts values, MaxMsrList is an encoding of a number of MSRs.
/// Source: SDM vol. 3, "Miscellaneous Data"; REG-110, REG-120, REG-121, REG-132.
struct ia32_vmx_misc : read_only_word<ia32_vmx_misc, uint64_t> {
    static constexpr uint32_t address = 0x485;

    struct PreemptTscShift : field<4, 0> {};  ///< the preemption timer counts at this TSC bit
    struct StoreEferLma : flag<5> {};         ///< a VM exit stores EFER.LMA in the entry controls
    struct ActivityStates : field<8, 6> {};   ///< HLT, shutdown, wait-for-SIPI: one bit each
    struct INTEL_PT : flag<14> {};            ///< PT may be used in VMX operation
    struct RdmsrSmbase : flag<15> {};         ///< RDMSR of SMBASE is allowed in SMM
    struct CR3TargetCount : field<24, 16> {};
    struct MaxMsrList : field<27, 25> {
        [[nodiscard]] static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
            return {512 * (encoding + 1), "MSRs"};
        }
    };
    struct MsegRevision : field<63, 32> {};

    // clang-format off
    struct layout : bit_layout<64,
        PreemptTscShift, StoreEferLma, ActivityStates, reserved<13, 9>, INTEL_PT, RdmsrSmbase,
        CR3TargetCount, MaxMsrList, other<31, 28>, MsegRevision> {};
    // clang-format on
};

// ------------------------------------------------------------------------------------ capabilities

// For each control, `Must1` means that it cannot be 0, and `Can1` that it can be 1.

/// IA32_VMX_PROCBASED_CTLS2, the allowed settings of the secondary processor-based controls.
///
/// Shape:  64-bit MSR 48BH, read-only.
/// Source: SDM vol. 3, "Secondary Processor-Based VM-Execution Controls"; REG-122, REG-128.
struct ia32_vmx_procbased_ctls2 : read_only_word<ia32_vmx_procbased_ctls2, uint64_t> {
    static constexpr uint32_t address = 0x48B;

    struct Allowed0_18_0 : field<18, 0> {};
    struct Must1_CONCEAL_VMX_NONROOT_FROM_PT : flag<19> {};
    struct Allowed0_23_20 : field<23, 20> {};
    struct Must1_PT_USES_GPA : flag<24> {};
    struct Allowed0_31_25 : field<31, 25> {};
    struct Allowed1_18_0 : field<50, 32> {};
    struct Can1_CONCEAL_VMX_NONROOT_FROM_PT : flag<51> {};
    struct Allowed1_23_20 : field<55, 52> {};
    struct Can1_PT_USES_GPA : flag<56> {};
    struct Allowed1_31_25 : field<63, 57> {};

    // clang-format off
    struct layout : bit_layout<64,
        Allowed0_18_0, Must1_CONCEAL_VMX_NONROOT_FROM_PT, Allowed0_23_20, Must1_PT_USES_GPA,
        Allowed0_31_25,
        Allowed1_18_0, Can1_CONCEAL_VMX_NONROOT_FROM_PT, Allowed1_23_20, Can1_PT_USES_GPA,
        Allowed1_31_25> {};
    // clang-format on
};

/// IA32_VMX_EXIT_CTLS, the allowed settings of the VM-exit controls.
///
/// Shape:  64-bit MSR 483H, read-only.
/// Source: SDM vol. 3, "VM-Exit Controls"; REG-123, REG-126.
struct ia32_vmx_exit_ctls : read_only_word<ia32_vmx_exit_ctls, uint64_t> {
    static constexpr uint32_t address = 0x483;

    struct Allowed0_23_0 : field<23, 0> {};
    struct Must1_CONCEAL_VMEXITS_FROM_PT : flag<24> {};
    struct Must1_CLEAR_IA32_RTIT_CTL : flag<25> {};
    struct Allowed0_31_26 : field<31, 26> {};
    struct Allowed1_23_0 : field<55, 32> {};
    struct Can1_CONCEAL_VMEXITS_FROM_PT : flag<56> {};
    struct Can1_CLEAR_IA32_RTIT_CTL : flag<57> {};
    struct Allowed1_31_26 : field<63, 58> {};

    // clang-format off
    struct layout : bit_layout<64,
        Allowed0_23_0, Must1_CONCEAL_VMEXITS_FROM_PT, Must1_CLEAR_IA32_RTIT_CTL, Allowed0_31_26,
        Allowed1_23_0, Can1_CONCEAL_VMEXITS_FROM_PT, Can1_CLEAR_IA32_RTIT_CTL, Allowed1_31_26> {};
    // clang-format on
};

/// IA32_VMX_ENTRY_CTLS, the allowed settings of the VM-entry controls.
///
/// Shape:  64-bit MSR 484H, read-only.
/// Source: SDM vol. 3, "VM-Entry Controls"; REG-124, REG-125.
struct ia32_vmx_entry_ctls : read_only_word<ia32_vmx_entry_ctls, uint64_t> {
    static constexpr uint32_t address = 0x484;

    struct Allowed0_16_0 : field<16, 0> {};
    struct Must1_CONCEAL_VMENTRIES_FROM_PT : flag<17> {};
    struct Must1_LOAD_IA32_RTIT_CTL : flag<18> {};
    struct Allowed0_31_19 : field<31, 19> {};
    struct Allowed1_16_0 : field<48, 32> {};
    struct Can1_CONCEAL_VMENTRIES_FROM_PT : flag<49> {};
    struct Can1_LOAD_IA32_RTIT_CTL : flag<50> {};
    struct Allowed1_31_19 : field<63, 51> {};

    // clang-format off
    struct layout : bit_layout<64,
        Allowed0_16_0, Must1_CONCEAL_VMENTRIES_FROM_PT, Must1_LOAD_IA32_RTIT_CTL, Allowed0_31_19,
        Allowed1_16_0, Can1_CONCEAL_VMENTRIES_FROM_PT, Can1_LOAD_IA32_RTIT_CTL, Allowed1_31_19> {};
    // clang-format on
};

// ------------------------------------------------------------------------------------ the VMCS

/// The secondary processor-based VM-execution controls.
///
/// Shape:  32-bit field 401EH of the VMCS.
/// Errors: VM entry fails for a control that IA32_VMX_PROCBASED_CTLS2 does not allow.
/// Source: SDM vol. 3, "Processor-Based VM-Execution Controls"; REG-122, REG-128, REG-129.
struct vmcs_secondary_proc_ctls : bit_word<vmcs_secondary_proc_ctls, uint32_t> {
    static constexpr uint32_t encoding = 0x401E;

    /// PIPs without NR; no VMCS packet in a guest's PSB+
    struct ConcealVmxNonRootFromPT : flag<19> {};
    /// output and ToPA addresses are translated by EPT
    struct PTUsesGuestPhysAddr : flag<24> {};

    // clang-format off
    struct layout : bit_layout<32,
        other<18, 0>, ConcealVmxNonRootFromPT, other<23, 20>, PTUsesGuestPhysAddr,
        other<31, 25>> {};
    // clang-format on
};

/// The VM-exit controls.
///
/// Shape:  32-bit field 400CH of the VMCS.
/// Errors: VM entry fails for a control that IA32_VMX_EXIT_CTLS does not allow.
/// Source: SDM vol. 3, "VM-Exit Controls"; REG-123, REG-126.
struct vmcs_vmexit_ctls : bit_word<vmcs_vmexit_ctls, uint32_t> {
    static constexpr uint32_t encoding = 0x400C;

    /// no PIP on exit, no VMCS packet on an SMM VM exit
    struct ConcealVmExitsFromPT : flag<24> {};
    struct ClearIA32_RTIT_CTL : flag<25> {};

    // clang-format off
    struct layout : bit_layout<32,
        other<23, 0>, ConcealVmExitsFromPT, ClearIA32_RTIT_CTL, other<31, 26>> {};
    // clang-format on
};

/// The VM-entry controls.
///
/// Shape:  32-bit field 4012H of the VMCS.
/// Errors: VM entry fails for a control that IA32_VMX_ENTRY_CTLS does not allow.
/// Source: SDM vol. 3, "VM-Entry Controls"; REG-124, REG-125.
struct vmcs_vmentry_ctls : bit_word<vmcs_vmentry_ctls, uint32_t> {
    static constexpr uint32_t encoding = 0x4012;

    /// no PIP on entry, no VMCS packet on a return from SMM
    struct ConcealVmEntriesFromPT : flag<17> {};
    struct LoadIA32_RTIT_CTL : flag<18> {};  ///< loads it from the guest-state field

    // clang-format off
    struct layout : bit_layout<32,
        other<16, 0>, ConcealVmEntriesFromPT, LoadIA32_RTIT_CTL, other<31, 19>> {};
    // clang-format on
};

/// The guest's IA32_RTIT_CTL.
///
/// Shape:  64-bit field 2814H of the VMCS; 2815H is its upper half. It exists if the load control
///         or the clear control exists.
/// Source: SDM vol. 3, "Guest Register State"; REG-125, REG-127.
struct vmcs_guest_ia32_rtit_ctl : bit_word<vmcs_guest_ia32_rtit_ctl, uint64_t> {
    static constexpr uint32_t encoding = 0x2814;
    static constexpr uint32_t encoding_high = 0x2815;

    struct GuestRtitCtl : field<63, 0> {};  ///< the bits of ia32_rtit_ctl

    struct layout : bit_layout<64, GuestRtitCtl> {};
};

/// The XSS-exiting bitmap: the components for which XSAVES and XRSTORS cause a VM exit.
///
/// Shape:  64-bit field 202CH of the VMCS.
/// Source: SDM vol. 3, "XSS-Exiting Bitmap".
struct vmcs_xss_exiting_bitmap : bit_word<vmcs_xss_exiting_bitmap, uint64_t> {
    static constexpr uint32_t encoding = 0x202C;

    struct PT_STATE : flag<8> {};

    struct layout : bit_layout<64, other<7, 0>, PT_STATE, other<63, 9>> {};
};

/// The exit qualification of an EPT violation.
///
/// Shape:  64-bit field 6400H of the VMCS, read-only.
/// Source: SDM vol. 3, "Exit Qualification for EPT Violations"; REG-128.
struct vmcs_exit_qual_ept_violation : read_only_word<vmcs_exit_qual_ept_violation, uint64_t> {
    static constexpr uint32_t encoding = 0x6400;

    /// not caused by an instruction, for example by trace output
    struct Asynchronous : flag<16> {};

    struct layout : bit_layout<64, other<15, 0>, Asynchronous, other<63, 17>> {};
};

}  // namespace ptspec::reg

// ---- ptspec/reg/list.hpp ----

namespace ptspec::reg {

/// All register and capability words, the trace unit's first. ToPA entries are in `topa`.
using all = type_list<
    // The trace unit
    ia32_rtit_output_base, ia32_rtit_output_mask_ptrs, ia32_rtit_ctl, ia32_rtit_status,
    ia32_rtit_cr3_match, ia32_rtit_addr, ia32_rtit_triggerx_cfg, dr7,
    // Performance monitoring
    ia32_perf_global_status, ia32_perf_global_status_reset, ia32_perf_global_status_set,
    ia32_perf_global_ctrl, ia32_perf_capabilities, ia32_pebs_enable, msr_reload_pmcx,
    msr_reload_fixed_ctrx,
    // Last branches
    ia32_debugctl, msr_lastbranch_tos, msr_lbr_select, msr_ler_from_lip, msr_ler_to_lip,
    msr_lastbranch_x_from_ip, msr_lastbranch_x_to_ip, msr_lbr_info_x,
    // Restricted memory, and the APIC that receives the PMI
    ia32_mtrrcap, ia32_smrr_physbase, ia32_smrr_physmask, ia32_apic_base, ia32_x2apic_lvt_pmi,
    apic_mmio_lvt_pmi, msr_platform_info,
    // VMX
    ia32_vmx_misc, ia32_vmx_procbased_ctls2, ia32_vmx_exit_ctls, ia32_vmx_entry_ctls,
    vmcs_secondary_proc_ctls, vmcs_vmexit_ctls, vmcs_vmentry_ctls, vmcs_guest_ia32_rtit_ctl,
    vmcs_xss_exiting_bitmap, vmcs_exit_qual_ept_violation,
    // CPUID
    cpuid_01h_eax, cpuid_01h_ecx, cpuid_07h_0_ebx, cpuid_0ah_eax, cpuid_0dh_1_eax, cpuid_0dh_1_ecx,
    cpuid_0dh_8_eax, cpuid_0dh_8_ebx, cpuid_0dh_8_ecx, cpuid_14h_0_eax, cpuid_14h_0_ebx,
    cpuid_14h_0_ecx, cpuid_14h_0_edx, cpuid_14h_1_eax, cpuid_14h_1_ebx, cpuid_14h_1_ecx,
    cpuid_14h_1_edx, cpuid_15h_eax, cpuid_15h_ebx, cpuid_15h_ecx, cpuid_15h_edx,
    cpuid_80000007h_edx, cpuid_80000008h_eax,
    // XSAVE
    ia32_xss, xsave_header_xstate_bv, xsave_header_xcomp_bv, xsave_pt_state>;

}  // namespace ptspec::reg

// ---- ptspec/packet/kind.hpp ----

namespace ptspec::packet {

/// The packet types.
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

/// Whether a CYC precedes a packet. The catalogue leaves some packets unconfirmed.
enum class cyc_rule : uint8_t { no, yes, unconfirmed };

/// Whether a packet binds to the address of an instruction.
enum class binding : uint8_t { no, yes, conditional };

/// The properties of a packet type other than its bits.
struct facts {
    kind id;
    text name;  ///< as the manual spells it
    binding binds_to_ip = binding::no;
    bool in_psb_plus = false;  ///< may appear between PSB and PSBEND
    cyc_rule cyc_eligible = cyc_rule::no;
    bool keeps_block = false;  ///< does not end a block of BIPs
};

/// The item size of the open block: the only context that decoding a packet needs.
///
/// Source: PKT-006, PKT-203.
enum class block : uint8_t {
    none = 0,
    items_of_4 = 4,
    items_of_8 = 8,
};

/// The reason why a decode failed.
///
/// Source: PKT-004, in its order of checks.
enum class error : uint8_t {
    none,
    truncated,   ///< valid so far, but more bytes are needed: append some and retry
    bad_opcode,  ///< no packet has this opcode: continue at the next PSB
    reserved,    ///< the packet's header holds a reserved value: continue at the next PSB
    /// the packet is complete, but its payload violates a rule: continue at the next PSB
    bad_packet,
};

}  // namespace ptspec::packet

// ---- ptspec/packet/packet_word.hpp ----

/// The common part of all packets: the bits on the wire and the length.
namespace ptspec::packet {

/// The payload size for reserved values of the field that selects it.
inline constexpr unsigned undefined_size = ~0U;

/// Payload sizes in bytes, indexed by the field declared with `selects_payload`.
template <unsigned... Sizes>
struct payload_of {
    static constexpr unsigned largest = [] {
        unsigned most = 0;
        ((most = Sizes != undefined_size && Sizes > most ? Sizes : most), ...);
        return most;
    }();
    [[nodiscard]] static constexpr auto size(uint64_t selector) noexcept -> unsigned {
        constexpr unsigned sizes[] = {Sizes...};
        return sizes[selector];
    }
};

struct no_payload {
    static constexpr unsigned largest = 0;
};

/// The payload is an item of the open block. Its size is context, not part of the packet.
struct payload_of_block {
    static constexpr unsigned largest = 8;
};

/// Each byte indicates whether another one follows, up to `Most` bytes.
template <unsigned Most>
struct payload_continues {
    static constexpr unsigned largest = Most;
};

namespace detail {

using namespace ptspec::detail;

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
        return static_cast<Raw>(bits.low);
    }
}

template <class Raw, class... Rows>
constexpr auto all_fixed_bits(type_list<Rows...>) noexcept -> Raw {
    uint64_t const values[] = {Rows::fixed_value...};
    unsigned const places[] = {Rows::lsb...};
    wide_bits all{};
    for (size_t i = 0; i < sizeof...(Rows); ++i) {
        all = all | to_bit<wide_bits>(values[i], places[i]);
    }
    return narrow<Raw>(all);
}

/// The fixed bits of a packet: its opcode, leaf and pattern.
template <class Packet>
inline constexpr auto opcode_bits = all_fixed_bits<typename Packet::raw_type>(
    typename Packet::layout::rows{});

/// The row of a layout that selects the payload size, if there is one.
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

/// A packet: its bytes as one little-endian number. Bit 8n+b is bit b of byte n.
///
/// `Derived` declares the fields of its first `HeadBytes` bytes and `struct layout :
/// bit_layout<...>` that tiles them, opcode included. `Payload` describes the bytes after them.
template <class Derived, unsigned HeadBytes, class Payload = no_payload>
struct packet_word
    : bit_word<Derived, choose_t<(HeadBytes + Payload::largest > 8), wide_bits, uint64_t>> {
    using word =
        bit_word<Derived, choose_t<(HeadBytes + Payload::largest > 8), wide_bits, uint64_t>>;
    using raw_type = typename word::raw_type;
    using payload_type = Payload;
    static constexpr unsigned head_bytes = HeadBytes;
    static constexpr unsigned max_bytes = HeadBytes + Payload::largest;

    /// The packet with all fields 0.
    constexpr packet_word() noexcept : word{detail::opcode_bits<Derived>} {
        static_assert(Derived::layout::bits == 8 * HeadBytes);
    }
    constexpr packet_word(raw_type bits) noexcept : word{bits} {}

    /// The bytes after the head, as a little-endian number. Missing bytes are 0.
    [[nodiscard]] constexpr auto payload() const noexcept -> uint64_t
        requires(Payload::largest != 0)
    {
        return detail::from_bit(this->raw, 8 * HeadBytes) & low_bits(8 * Payload::largest);
    }

    /// Returns the packet with another payload, truncated to the bits that fit.
    [[nodiscard]] constexpr auto with_payload(uint64_t number) const noexcept -> Derived
        requires(Payload::largest != 0)
    {
        constexpr auto place = detail::bit_mask<raw_type>(8 * HeadBytes + 8 * Payload::largest - 1,
                                                          8 * HeadBytes);
        return Derived{(this->raw & ~place) |
                       (detail::to_bit<raw_type>(number, 8 * HeadBytes) & place)};
    }

    // A packet with further rules declares static functions of its raw bits:
    //   broken_header       the rule that a header field violates: the packet is `reserved`
    //   broken_payload      the rule that the whole packet violates: it is `bad_packet`
    //   broken_when_strict  the same, checked only in strict mode

    /// The length of the packet in bytes, computed from the bytes present.
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
    /// The payload size that the selecting field gives, or `undefined_size`.
    [[nodiscard]] static constexpr auto selected_size(raw_type raw) noexcept -> unsigned {
        using row = typename decltype(detail::selector_in(typename Derived::layout::rows{}))::row;
        return Payload::size(detail::from_bit(raw, row::lsb) & low_bits(row::width));
    }
};

}  // namespace ptspec::packet

// ---- ptspec/packet/pad.hpp ----

namespace ptspec::packet {

/// PAD, no information. Each 00H byte is one PAD.
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

/// The branches in a TNT packet.
struct branches {
    unsigned count = 0;
    /// Bit count-1 is the oldest branch, bit 0 the youngest. 1 is taken.
    uint64_t bits = 0;

    /// True if branch `i` was taken. Branch 0 is the oldest; `i` must be below `count`.
    [[nodiscard]] constexpr auto taken(unsigned i) const noexcept -> bool {
        return (bits >> (count - 1 - i) & 1) != 0;
    }
    friend constexpr auto operator==(branches const&, branches const&) -> bool = default;
};

namespace detail {

/// The branches below the stop bit, which is the highest bit that is 1.
constexpr auto below_stop_bit(uint64_t bits) noexcept -> branches {
    unsigned const stop = highest_bit(bits | 1);  // 0 without a stop bit: no branches
    return {stop, bits & ~(uint64_t{1} << stop)};
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
                                 .cyc_eligible = cyc_rule::yes};
    static constexpr unsigned max_branches = 6;
    /// Smaller values are PAD, the escape byte or a TNT without branches.
    static constexpr uint64_t least_raw = 4;

    struct Opcode : fixed<0, 0, 0> {};
    struct bits : field<7, 1> {};
    struct layout : bit_layout<8, Opcode, bits> {};

    [[nodiscard]] constexpr auto taken() const noexcept -> branches {
        return detail::below_stop_bit(raw >> 1);
    }
    /// A packet for 1 to 6 branches. Any other count gives a packet that `encode` refuses.
    [[nodiscard]] static constexpr auto of(branches which) noexcept -> tnt_short {
        return which.count == 0 || which.count > max_branches
                   ? tnt_short{}
                   : tnt_short{}.with(bits{wrapped{uint64_t{1} << which.count |
                                                   (which.bits & low_bits(which.count))}});
    }
    [[nodiscard]] static constexpr auto broken_payload(uint64_t raw) noexcept -> rule {
        return raw < least_raw ? rule::PKT_033 : rule::none;
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
                                 .cyc_eligible = cyc_rule::yes};
    static constexpr unsigned max_branches = 47;
    /// Smaller values have no stop bit, or no branch below it.
    static constexpr uint64_t least_raw = uint64_t{2} << 16;

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xA3> {};
    struct bits : field<63, 16> {};
    struct layout : bit_layout<64, Escape, Opcode, bits> {};

    [[nodiscard]] constexpr auto taken() const noexcept -> branches {
        return detail::below_stop_bit(raw >> 16);
    }
    /// A packet for 1 to 47 branches. Any other count gives a packet that `encode` refuses.
    [[nodiscard]] static constexpr auto of(branches which) noexcept -> tnt_long {
        return which.count == 0 || which.count > max_branches
                   ? tnt_long{}
                   : tnt_long{}.with(bits{wrapped{uint64_t{1} << which.count |
                                                  (which.bits & low_bits(which.count))}});
    }
    [[nodiscard]] static constexpr auto broken_payload(uint64_t raw) noexcept -> rule {
        return raw >= least_raw ? rule::none : raw >> 16 == 0 ? rule::PKT_036 : rule::PKT_037;
    }
};

}  // namespace ptspec::packet

// ---- ptspec/packet/ip.hpp ----

namespace ptspec::packet {

/// How the IP is rebuilt from the payload and the last IP.
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

/// The last IP after an IP packet. `last_ip` is unchanged if the packet has no IP.
///
/// Errors: none; for reserved values of IPBytes it is `last_ip`.
/// Source: PKT-053..059.
[[nodiscard]] constexpr auto rebuilt_ip(ip_bytes how, uint64_t payload, uint64_t last_ip) noexcept
    -> uint64_t {
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

/// The shortest form that compresses `ip`, given the last IP.
///
/// Source: PKT-064: the first that fits of 1, 2, 3, 4, 6.
[[nodiscard]] constexpr auto shortest_form(uint64_t ip, uint64_t last_ip) noexcept -> ip_bytes {
    return (ip ^ last_ip) >> 16 == 0     ? ip_bytes::update_16
           : (ip ^ last_ip) >> 32 == 0   ? ip_bytes::update_32
           : sign_extended(ip, 48) == ip ? ip_bytes::sign_48
           : (ip ^ last_ip) >> 48 == 0   ? ip_bytes::update_48
                                         : ip_bytes::full;
}

/// The common part of TIP, TIP.PGE, TIP.PGD and FUP.
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

    /// False if the IP is suppressed; the last IP is then unchanged.
    [[nodiscard]] constexpr auto has_ip() const noexcept -> bool {
        return this->template get<IPBytes>() != ip_bytes::suppressed;
    }
    /// The IP of this packet, which is the next last IP; if the IP is suppressed, `last_ip`.
    /// The last IP is 0 after a PSB. Source: PKT-059, PKT-060.
    [[nodiscard]] constexpr auto ip(uint64_t last_ip = 0) const noexcept -> uint64_t {
        return rebuilt_ip(this->template get<IPBytes>(), this->payload(), last_ip);
    }
    /// A packet in the given form. IP bits that the form does not carry are dropped.
    [[nodiscard]] static constexpr auto of(ip_bytes how, uint64_t ip) noexcept -> Derived {
        return Derived{}.with(IPBytes{how}).with_payload(ip & low_bits(8 * payload_bytes(how)));
    }
    /// A packet that carries `ip` in the shortest form, given the last IP.
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

/// TIP, the target of an indirect branch, uncompressed return, far transfer or event.
///
/// Shape:  1, 3, 5, 7 or 9 bytes: 0DH with IPBytes, then the IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "Target IP (TIP) Packet"; PKT-050, PKT-070, PKT-071.
struct tip : ip_packet<tip> {
    static constexpr facts about{
        .id = kind::tip, .name = "TIP", .binds_to_ip = binding::yes, .cyc_eligible = cyc_rule::yes};

    struct Opcode : fixed<4, 0, 0x0D> {};
    struct layout : bit_layout<8, Opcode, IPBytes> {};
};

/// TIP.PGE, the IP where packet generation was enabled.
///
/// Shape:  1, 3, 5, 7 or 9 bytes: 11H with IPBytes, then the IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "Packet Generation Enable (TIP.PGE) Packet"; PKT-050, PKT-076.
struct tip_pge : ip_packet<tip_pge> {
    static constexpr facts about{.id = kind::tip_pge,
                                 .name = "TIP.PGE",
                                 .binds_to_ip = binding::yes,
                                 .cyc_eligible = cyc_rule::yes};

    struct Opcode : fixed<4, 0, 0x11> {};
    struct layout : bit_layout<8, Opcode, IPBytes> {};
};

/// TIP.PGD, the IP where packet generation was disabled.
///
/// Shape:  1, 3, 5, 7 or 9 bytes: 01H with IPBytes, then the IP.
/// Errors: truncated; reserved when IPBytes is 5 or 7.
/// Source: SDM vol. 3, "Packet Generation Disable (TIP.PGD) Packet"; PKT-050, PKT-073..075.
struct tip_pgd : ip_packet<tip_pgd> {
    static constexpr facts about{.id = kind::tip_pgd,
                                 .name = "TIP.PGD",
                                 .binds_to_ip = binding::yes,
                                 .cyc_eligible = cyc_rule::yes};

    struct Opcode : fixed<4, 0, 0x01> {};
    struct layout : bit_layout<8, Opcode, IPBytes> {};
};

/// FUP, the source IP of an event. It always belongs to another packet, which consumes it.
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

/// PIP, a new CR3 value.
///
/// Shape:  8 bytes: 02H 43H, then NR and CR3[51:5].
/// Units:  CR3 is the register itself. Bits 11:5 are part of the address with PAE paging, else of
///         the PCID. Bits 4:0 read as 0.
/// Errors: truncated.
/// Source: SDM vol. 3, "Paging Information (PIP) Packet"; PKT-080, PKT-081.
struct pip : packet_word<pip, 8> {
    static constexpr facts about{.id = kind::pip,
                                 .name = "PIP",
                                 .binds_to_ip = binding::conditional,
                                 .in_psb_plus = true,
                                 .cyc_eligible = cyc_rule::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x43> {};
    struct NR : flag<16> {};  ///< VMX non-root operation
    struct CR3 : address_field<63, 17, 5> {};
    struct layout : bit_layout<64, Escape, Opcode, NR, CR3> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/mode.hpp ----

namespace ptspec::packet {

/// MODE.Exec, the execution mode of the code that follows.
///
/// Shape:  2 bytes: 99H, then leaf 0 and the mode.
/// Units:  CS_L is CS.L & EFER.LMA. IF is RFLAGS.IF, valid only with event trace.
/// Errors: truncated; reserved when CS_L and CS_D are both 1.
/// Source: SDM vol. 3, "MODE Packets"; PKT-085..087, PKT-090, PKT-091.
struct mode_exec : packet_word<mode_exec, 2> {
    static constexpr facts about{.id = kind::mode_exec,
                                 .name = "MODE.Exec",
                                 .binds_to_ip = binding::yes,
                                 .in_psb_plus = true,
                                 .cyc_eligible = cyc_rule::yes};

    struct Opcode : fixed<7, 0, 0x99> {};
    struct CS_L : flag<8> {};
    struct CS_D : flag<9> {};
    struct IF : flag<10> {};
    struct Leaf : leaf<15, 13, 0> {};
    struct layout : bit_layout<16, Opcode, CS_L, CS_D, IF, reserved<12, 11>, Leaf> {};
    static constexpr rule unknown_leaf = rule::PKT_089;

    /// The code size: 16, 32 or 64 bits.
    [[nodiscard]] constexpr auto code_bits() const noexcept -> unsigned {
        return get<CS_L>() ? 64 : get<CS_D>() ? 32 : 16;
    }
    static constexpr uint64_t never_both = uint64_t{1} << CS_L::lsb | uint64_t{1} << CS_D::lsb;
    [[nodiscard]] static constexpr auto broken_header(uint64_t raw) noexcept -> rule {
        return (raw & never_both) == never_both ? rule::PKT_090 : rule::none;
    }
};

/// MODE.TSX, a transaction began, committed or aborted.
///
/// Shape:  2 bytes: 99H, then leaf 1 and the state.
/// Errors: truncated; reserved when InTX and TXAbort are both 1.
/// Source: SDM vol. 3, "MODE Packets"; PKT-085, PKT-088, PKT-090, PKT-091.
struct mode_tsx : packet_word<mode_tsx, 2> {
    static constexpr facts about{.id = kind::mode_tsx,
                                 .name = "MODE.TSX",
                                 .binds_to_ip = binding::yes,
                                 .in_psb_plus = true,
                                 .cyc_eligible = cyc_rule::yes};

    struct Opcode : fixed<7, 0, 0x99> {};
    struct InTX : flag<8> {};
    struct TXAbort : flag<9> {};
    struct Leaf : leaf<15, 13, 1> {};
    struct layout : bit_layout<16, Opcode, InTX, TXAbort, reserved<12, 10>, Leaf> {};
    static constexpr rule unknown_leaf = rule::PKT_089;

    static constexpr uint64_t never_both = uint64_t{1} << InTX::lsb | uint64_t{1} << TXAbort::lsb;
    [[nodiscard]] static constexpr auto broken_header(uint64_t raw) noexcept -> rule {
        return (raw & never_both) == never_both ? rule::PKT_090 : rule::none;
    }
};

}  // namespace ptspec::packet

// ---- ptspec/packet/tracestop.hpp ----

namespace ptspec::packet {

/// TraceStop, a TraceStop range stopped tracing.
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

/// CBR, the ratio of the core clock to the bus clock.
///
/// Shape:  4 bytes: 02H 03H, the ratio, one reserved byte.
/// Units:  CoreBusRatio multiplies the bus clock; 0 decodes, but gives no information about time.
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
                                 .cyc_eligible = cyc_rule::yes,
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
                                 .cyc_eligible = cyc_rule::yes,
                                 .keeps_block = true};

    struct Opcode : fixed<7, 0, 0x59> {};
    struct CTC : field<15, 8> {};
    struct layout : bit_layout<16, Opcode, CTC> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/tma.hpp ----

namespace ptspec::packet {

/// TMA, the crystal clock at the time of the preceding TSC packet.
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

/// The Exp bit of each byte, 1 if another byte follows: bit 2 of the first byte, bit 0 of the
/// others.
inline constexpr uint64_t cyc_exp_bits_low = 0x0101'0101'0101'0100;

/// Packs the seven low bits of each of the eight bytes.
constexpr auto pack_7_bit_groups(uint64_t bytes) noexcept -> uint64_t {
    bytes = (bytes & 0x007F'007F'007F'007F) | (bytes & 0x7F00'7F00'7F00'7F00) >> 1;
    bytes = (bytes & 0x0000'3FFF'0000'3FFF) | (bytes & 0x3FFF'0000'3FFF'0000) >> 2;
    return (bytes & 0x0000'0000'0FFF'FFFF) | (bytes & 0x0FFF'FFFF'0000'0000) >> 4;
}

}  // namespace detail

/// CYC, the core clock cycles since the previous CYC.
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

    /// The cycle count.
    [[nodiscard]] constexpr auto value() const noexcept -> uint64_t {
        // One or two bytes. Without this, event times of a trace with CYC packets take 7 to 10 %
        // more instructions.
        if (raw.low >> 16 == 0) [[likely]] { return get<value_4_0>() | raw.low >> 9 << 5; }
        return get<value_4_0>() |
               detail::pack_7_bit_groups(raw.low >> 9 & 0x007F'7F7F'7F7F'7F7F) << 5 |
               (raw.high >> 1 & 0x7F) << 54 | raw.high >> 9 << 61;
    }
    /// The number of bytes in the packet.
    [[nodiscard]] constexpr auto length() const noexcept -> unsigned {
        return length_of(raw, block::none);
    }
    /// A packet for a count, in the fewest bytes, or in `bytes` bytes if that is more.
    [[nodiscard]] static constexpr auto of(uint64_t count, unsigned bytes = 1) noexcept -> cyc {
        wide_bits bits = cyc{}.with(value_4_0{wrapped{count}}).raw;
        count >>= 5;
        for (unsigned at = 1; at < max_bytes && (count != 0 || at < bytes); ++at) {
            bits = bits | detail::to_bit<wide_bits>(1, at == 1 ? Exp::lsb : 8 * (at - 1)) |
                   detail::to_bit<wide_bits>((count & 0x7F) << 1, 8 * at);
            count >>= 7;
        }
        return cyc{bits};
    }

    [[nodiscard]] static constexpr auto length_of(wide_bits raw, block) noexcept -> unsigned {
        if ((raw.low & 1U << Exp::lsb) == 0) { return 1; }
        uint64_t const ends = ~raw.low & detail::cyc_exp_bits_low;
        return ends != 0 ? lowest_bit(ends) / 8 + 1 : (raw.high & 1) == 0 ? 9 : 10;
    }
    [[nodiscard]] static constexpr auto broken_payload(wide_bits raw) noexcept -> rule {
        return length_of(raw, block::none) == max_bytes && (raw.high >> 8 & 0xF1) != 0
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
                                 .cyc_eligible = cyc_rule::yes};

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
                                 .cyc_eligible = cyc_rule::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xF3> {};
    struct layout : bit_layout<16, Escape, Opcode> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/psb.hpp ----

namespace ptspec::packet {

/// PSB, the synchronisation point where a decoder can start.
///
/// Shape:  16 bytes: 02H 82H eight times. This pattern occurs nowhere else in a trace.
/// Errors: truncated; bad_packet when a byte after the first two does not match the pattern.
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

/// PTW, the operand of a PTWRITE instruction.
///
/// Shape:  6 or 10 bytes: 02H 12H with PayloadBytes and IP, then 4 or 8 bytes of payload.
/// Errors: truncated; reserved when PayloadBytes is 2 or 3.
/// Source: SDM vol. 3, "PTWRITE (PTW) Packet"; PKT-170..174.
struct ptw : packet_word<ptw, 2, payload_of<4, 8, undefined_size, undefined_size>> {
    static constexpr facts about{
        .id = kind::ptw, .name = "PTW", .binds_to_ip = binding::yes, .cyc_eligible = cyc_rule::yes};

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

/// EXSTOP, execution stopped because the core clock stopped.
///
/// Shape:  2 bytes: 02H 62H with IP.
/// Errors: truncated.
/// Source: SDM vol. 3, "Execution Stop (EXSTOP) Packet"; PKT-180, PKT-181.
struct exstop : packet_word<exstop, 2> {
    static constexpr facts about{.id = kind::exstop,
                                 .name = "EXSTOP",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = cyc_rule::yes,
                                 .keeps_block = true};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<14, 8, 0x62> {};
    struct IP : flag<15> {};  ///< a FUP follows
    struct layout : bit_layout<16, Escape, Opcode, IP> {};
};

/// MWAIT, the idle state that an MWAIT instruction requested.
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
                                 .cyc_eligible = cyc_rule::yes};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0xC2> {};
    struct hints : field<23, 16> {};
    struct ext : field<49, 48> {};
    // clang-format off
    struct layout : bit_layout<80,
        Escape, Opcode, hints, reserved<47, 24>, ext, reserved<79, 50>> {};
    // clang-format on
};

/// PWRE, entry into a C-state.
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
    struct HW : flag<23> {};  ///< the hardware initiated the entry
    struct substate : field<27, 24> {};
    struct state : field<31, 28> {};
    struct layout : bit_layout<32, Escape, Opcode, reserved<22, 16>, HW, substate, state> {};
};

/// PWRX, exit from a C-state.
///
/// Shape:  7 bytes: 02H A2H, the deepest and the last core C-state, the wake reason, reserved bits.
/// Units:  C-states as MWAIT encodes them. reason has one bit per cause: bit 0 an interrupt, bit 2
///         a store to the monitored address, bit 3 the hardware; 0 is none of these.
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

/// BBP, the start of a block of BIPs.
///
/// Shape:  3 bytes: 02H 63H, the type of the group and the size of its items.
/// Units:  SZ is 1 for items of 4 bytes and 0 for items of 8.
/// Errors: truncated.
/// Source: SDM vol. 3, "Block Begin Packet (BBP)"; PKT-200, PKT-201.
struct bbp : packet_word<bbp, 3> {
    static constexpr facts about{.id = kind::bbp,
                                 .name = "BBP",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = cyc_rule::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x63> {};
    struct type : field<20, 16> {};
    struct SZ : flag<23> {};
    struct layout : bit_layout<24, Escape, Opcode, type, reserved<22, 21>, SZ> {};

    /// The item size of the block that this packet opens.
    [[nodiscard]] constexpr auto opens() const noexcept -> block {
        return get<SZ>() ? block::items_of_4 : block::items_of_8;
    }
};

/// BIP, one item of a block.
///
/// Shape:  5 or 9 bytes: 04H with the id, then 4 or 8 bytes, as the last BBP selects. Outside a
///         block the same byte is a TNT.short.
/// Errors: truncated; PKT-344 when written outside a block.
/// Source: SDM vol. 3, "Block Item Packet (BIP)"; PKT-202, PKT-203.
struct bip : packet_word<bip, 1, payload_of_block> {
    static constexpr facts about{.id = kind::bip,
                                 .name = "BIP",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = cyc_rule::unconfirmed,
                                 .keeps_block = true};

    struct Opcode : fixed<2, 0, 4> {};
    struct id : field<7, 3> {};
    struct layout : bit_layout<8, Opcode, id> {};
};

/// BEP, the end of a record of blocks.
///
/// Shape:  2 bytes: 02H 33H with IP.
/// Errors: truncated.
/// Source: SDM vol. 3, "Block End Packet (BEP)"; PKT-204.
struct bep : packet_word<bep, 2> {
    static constexpr facts about{.id = kind::bep,
                                 .name = "BEP",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = cyc_rule::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<14, 8, 0x33> {};
    struct IP : flag<15> {};  ///< a FUP follows
    struct layout : bit_layout<16, Escape, Opcode, IP> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/event_trace.hpp ----

namespace ptspec::packet {

/// The event that a CFE reports. Other values decode, but their meaning is unknown.
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

/// The payload type of an EVD. Other values decode, but their meaning is unknown.
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
                                 .cyc_eligible = cyc_rule::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x13> {};
    struct type : enumerated<20, 16, cfe_type> {};
    struct IP : flag<23> {};  ///< a FUP follows
    struct vector : field<31, 24> {};
    struct layout : bit_layout<32, Escape, Opcode, type, reserved<22, 21>, IP, vector> {};
};

/// EVD, data of the event that the next CFE reports.
///
/// Shape:  11 bytes: 02H 53H, the type, then 8 bytes.
/// Errors: truncated.
/// Source: SDM vol. 3, "Event Data (EVD) Packet"; PKT-225, PKT-226 (six bits of type are
///         UNCONFIRMED).
struct evd : packet_word<evd, 11> {
    static constexpr facts about{.id = kind::evd,
                                 .name = "EVD",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = cyc_rule::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x53> {};
    struct type : enumerated<21, 16, evd_type> {};
    struct payload : field<87, 24> {};
    struct layout : bit_layout<88, Escape, Opcode, type, reserved<23, 22>, payload> {};
};

}  // namespace ptspec::packet

// ---- ptspec/packet/trig.hpp ----

namespace ptspec::packet {

/// TRIG, one or more triggers fired.
///
/// Shape:  3 or 5 bytes: D9H, flags, TRBV with one bit per trigger, and ICNT when ICNTV is 1.
/// Units:  ICNT counts instructions since the last packet that carried an IP.
/// Errors: truncated.
/// Source: PKT-240, PKT-242, PKT-243. UNCONFIRMED as a whole: known from decoders only.
struct trig : packet_word<trig, 3, payload_of<0, 2>> {
    static constexpr facts about{.id = kind::trig,
                                 .name = "TRIG",
                                 .binds_to_ip = binding::conditional,
                                 .cyc_eligible = cyc_rule::unconfirmed};

    struct Opcode : fixed<7, 0, 0xD9> {};
    struct MULT : flag<13> {};  ///< more triggers fired than are reported
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

/// All packet types, in the order of `kind`.
using all = type_list<pad, tnt_short, tnt_long, tip, tip_pge, tip_pgd, fup, pip, mode_exec,
                      mode_tsx, tracestop, cbr, tsc, mtc, tma, cyc, vmcs, ovf, psb, psbend, mnt,
                      ptw, exstop, mwait, pwre, pwrx, bbp, bip, bep, cfe, evd, trig>;

inline constexpr unsigned kinds = all::size;

namespace detail {

template <class... Packets>
constexpr auto are_in_order(type_list<Packets...>) noexcept -> bool {
    kind const order[] = {Packets::about.id...};
    for (unsigned i = 0; i < sizeof...(Packets); ++i) {
        if (underlying(order[i]) != i) { return false; }
    }
    return true;
}
static_assert(are_in_order(all{}), "a kind is the place of its packet in the list");

template <class... Packets>
constexpr auto facts_in(type_list<Packets...>, kind which) noexcept -> facts {
    facts found{};
    (void)((Packets::about.id == which ? (found = Packets::about, true) : false) || ...);
    return found;
}

/// Tests membership in a list by base class, so the compile time does not depend on the list's
/// length.
template <class Type>
struct member {};
template <class List>
struct members;
template <class... Types>
struct members<type_list<Types...>> : member<Types>... {};

}  // namespace detail

/// One of the packet types of `all`.
template <class Packet>
concept packet_type = __is_base_of(detail::member<Packet>, detail::members<all>);

// Functions that search a list of packets are templates with the list as parameter; the default
// lists all packets. As plain functions they would build their tables in every inclusion of
// ptspec.hpp, which would take 30 % (g++ 12) to 50 % (clang 19) longer.

/// The properties of a packet type other than its bits.
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

/// Calls `body.operator()<Packet>()` with the packet type of `which`. If the body returns a value,
/// its type must be default-constructible.
template <class Body, class First, class... Rest>
[[gnu::always_inline]]  // without it reading takes up to 1 % more instructions (clang 19)
constexpr auto
for_kind(kind which, Body&& body, type_list<First, Rest...> /*packets*/) {
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

/// The members of `any_packet`, for decoders that look up kind and length in a table.
struct known_packet {
    wide_bits bits{};
    unsigned length = 0;
    kind which = kind::pad;
};

}  // namespace detail

/// A packet of any type: its bytes, kind and length. PAD by default.
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

    /// A packet whose length follows from its own bits: every type except BIP.
    template <packet_type Packet>
        requires(!same_as<typename Packet::payload_type, payload_of_block>)
    constexpr any_packet(Packet const& packet) noexcept
        : any_packet{packet, Packet::length_of(packet.raw, block::none)} {}

    constexpr explicit any_packet(detail::known_packet known) noexcept
        : bytes_{known.bits}, kind_{known.which}, length_{static_cast<uint8_t>(known.length)} {}

    [[nodiscard]] constexpr auto kind() const noexcept -> packet::kind { return kind_; }
    /// The number of bytes on the wire.
    [[nodiscard]] constexpr auto length() const noexcept -> unsigned { return length_; }
    /// The bytes as one little-endian number.
    [[nodiscard]] constexpr auto raw() const noexcept -> wide_bits { return bytes_; }

    template <packet_type Packet>
    [[nodiscard]] constexpr auto is() const noexcept -> bool {
        return kind_ == Packet::about.id;
    }
    /// The packet as a `Packet`. The caller must check `is<Packet>()` first.
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

/// Calls `visitor` with the packet as its own type and returns the result. The visitor must return
/// the same type for all packets: void, or a default-constructible type.
template <class Packets = all, class Visitor>
[[gnu::always_inline]]  // without it `for_each` takes 1.5 % more instructions (g++ 12)
constexpr auto
visit(Visitor&& visitor, any_packet const& packet) {
    return for_kind(
        packet.kind(), [&]<class Packet>() { return visitor(packet.template as<Packet>()); },
        Packets{});
}

/// The block context after a packet.
///
/// Source: PKT-205.
template <packet_type Packet>
[[nodiscard]] constexpr auto block_after(Packet const& packet, block before) noexcept -> block {
    if constexpr (same_as<Packet, bbp>) {
        return packet.opens();
    } else {
        return Packet::about.keeps_block ? before : block::none;
    }
}

template <class Packets = all>
[[nodiscard]] constexpr auto block_after(any_packet const& packet, block before) noexcept -> block {
    return visit<Packets>([=](auto const& one) { return block_after(one, before); }, packet);
}

/// The last IP after a packet, given the last IP before it.
///
/// Source: PKT-059, PKT-060, PKT-061, PKT-068.
template <packet_type Packet>
[[nodiscard]] constexpr auto last_ip_after(Packet const& packet, uint64_t before) noexcept
    -> uint64_t {
    if constexpr (derived_from<Packet, ip_packet<Packet>>) {
        return packet.ip(before);
    } else {
        return same_as<Packet, psb> ? 0 : before;
    }
}

template <class Packets = all>
[[nodiscard]] constexpr auto last_ip_after(any_packet const& packet, uint64_t before) noexcept
    -> uint64_t {
    return visit<Packets>([=](auto const& one) { return last_ip_after(one, before); }, packet);
}

}  // namespace ptspec::packet

// ---- ptspec/packet/classify.hpp ----

/// Identifies a packet by its opcode bytes. The tables are derived from the packets' declarations.
namespace ptspec::packet {

/// The meaning of one opcode byte.
struct opcode_byte {
    enum class meaning : uint8_t {
        invalid,  ///< no packet has this byte here: `bad_opcode`
        packet,   ///< the opcode is complete: the packet is `which`
        prefix,   ///< the opcode continues in the next byte
    };
    meaning what = meaning::invalid;
    kind which = kind::pad;

    friend constexpr auto operator==(opcode_byte const&, opcode_byte const&) -> bool = default;
};

namespace detail {

/// The value that one byte of an opcode must have, and the bits that are compared.
struct masked_byte {
    uint8_t mask = 0;
    uint8_t value = 0;
};

/// The bits of the rows for which a different value gives the decode result `which`.
template <class... Rows>
constexpr auto bits_of_mismatch(type_list<Rows...> rows, mismatch which) noexcept -> uint64_t {
    mismatch const mismatches[] = {Rows::on_mismatch...};
    return bits_where<wide_bits>(rows, mismatches, which).low;
}

/// The opcode of a packet: up to three bytes, as value and mask.
struct opcode_shape {
    kind which;
    uint32_t mask;
    uint32_t value;

    [[nodiscard]] constexpr auto at(unsigned byte) const noexcept -> masked_byte {
        return {static_cast<uint8_t>(mask >> (8 * byte)),
                static_cast<uint8_t>(value >> (8 * byte))};
    }
};

template <class Packet>
constexpr auto shape_of() noexcept -> opcode_shape {
    constexpr uint64_t mask = bits_of_mismatch(typename Packet::layout::rows{},
                                               mismatch::bad_opcode);
    static_assert(mask >> 24 == 0, "an opcode has at most three bytes");
    return {Packet::about.id, static_cast<uint32_t>(mask),
            static_cast<uint32_t>(widen(opcode_bits<Packet>).low & mask)};
}

/// The opcode bits of a packet type. MODE.Exec and MODE.TSX have the same.
template <class... Packets>
constexpr auto opcode_of(kind which, type_list<Packets...>) noexcept -> uint32_t {
    uint32_t found = 0;
    (void)((Packets::about.id == which ? (found = shape_of<Packets>().value, true) : false) || ...);
    return found;
}

struct opcode_table {
    opcode_byte bytes[256];
};

/// The meaning of each value of opcode byte number `at`, after the opcode bytes `prefix`. If
/// several packets match, the one that compares the most bits wins; among packets that differ only
/// in a leaf, the first.
template <class... Packets>
constexpr auto make_opcode_table(type_list<Packets...>, unsigned at, uint32_t prefix,
                                 bool in_block) noexcept -> opcode_table {
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
        bool const continues = shape.at(at + 1).mask != 0;
        unsigned const compared_bits = popcount(here.mask);
        unsigned const free_bits = 0xFFU & ~unsigned{here.mask};
        // All values that match in the compared bits: the subsets of the other bits.
        for (unsigned rest = free_bits;; rest = (rest - 1) & free_bits) {
            unsigned const byte = here.value | rest;
            if (compared_bits > bits[byte]) {
                bits[byte] = compared_bits;
                table.bytes[byte] = {continues ? opcode_byte::meaning::prefix
                                               : opcode_byte::meaning::packet,
                                     continues ? kind::pad : shape.which};
            }
            if (rest == 0) { break; }
        }
    }
    return table;
}

/// The first byte of two-byte opcodes, and the first two bytes of three-byte opcodes.
inline constexpr uint32_t escape = shape_of<psbend>().value & 0xFF;
inline constexpr uint32_t second_escape = shape_of<mnt>().value & 0xFFFF;

/// The opcode tables. Members of a template, so they are computed on first use.
template <class Packets>
struct tables_of {
    static constexpr opcode_table first = make_opcode_table(Packets{}, 0, 0, false);
    static constexpr opcode_table first_in_block = make_opcode_table(Packets{}, 0, 0, true);
    static constexpr opcode_table ext = make_opcode_table(Packets{}, 1, escape, false);
    static constexpr opcode_table ext2 = make_opcode_table(Packets{}, 2, second_escape, false);
};

}  // namespace detail

/// The meaning of a packet's first byte.
///
/// Source: PKT-010, PKT-011, PKT-014, PKT-015, PKT-203.
template <class Packets = all>
[[nodiscard]] constexpr auto classify_first(uint8_t byte, block items = block::none) noexcept
    -> opcode_byte {
    return items == block::none ? detail::tables_of<Packets>::first.bytes[byte]
                                : detail::tables_of<Packets>::first_in_block.bytes[byte];
}

/// The meaning of the byte after 02H.
///
/// Source: PKT-012, PKT-016.
template <class Packets = all>
[[nodiscard]] constexpr auto classify_ext(uint8_t byte) noexcept -> opcode_byte {
    return detail::tables_of<Packets>::ext.bytes[byte];
}

/// The meaning of the byte after 02H C3H.
///
/// Source: PKT-013.
template <class Packets = all>
[[nodiscard]] constexpr auto classify_ext2(uint8_t byte) noexcept -> opcode_byte {
    return detail::tables_of<Packets>::ext2.bytes[byte];
}

namespace detail {

/// Opcode lookup in the tables.
template <class Packets>
struct opcodes {
    static constexpr auto first(uint8_t byte, block items) noexcept -> opcode_byte {
        return classify_first<Packets>(byte, items);
    }
    static constexpr auto ext(uint8_t byte) noexcept -> opcode_byte {
        return classify_ext<Packets>(byte);
    }
    static constexpr auto ext2(uint8_t byte) noexcept -> opcode_byte {
        return classify_ext2<Packets>(byte);
    }
};

/// A set of byte values.
struct byte_set {
    uint64_t bits[4] = {};

    [[nodiscard]] constexpr auto has(unsigned byte) const noexcept -> bool {
        return (bits[byte / 64] >> byte % 64 & 1) != 0;
    }
    friend constexpr auto operator==(byte_set const&, byte_set const&) -> bool = default;
};

/// The bytes of a table for which `holds(opcode_byte)` is true.
template <class Holds>
constexpr auto bytes_where(opcode_table const& table, Holds const& holds) noexcept -> byte_set {
    byte_set found;
    for (unsigned i = 0; i < 256; ++i) {
        if (holds(table.bytes[i])) { found.bits[i / 64] |= uint64_t{1} << i % 64; }
    }
    return found;
}

/// Opcode lookup for one packet, `Own`, with sets of 32 bytes instead of tables of 512. Every other
/// packet is reported as `Other`.
template <class Packets, kind Own, kind Other>
struct opcodes_of_one {
    using tables = tables_of<Packets>;

    template <opcode_table const& Table>
    static constexpr byte_set known = bytes_where(
        Table, [](opcode_byte one) { return one.what != opcode_byte::meaning::invalid; });
    template <opcode_table const& Table>
    static constexpr byte_set own = bytes_where(Table, [](opcode_byte one) {
        return one == opcode_byte{opcode_byte::meaning::packet, Own};
    });
    static constexpr bool depends_on_block = known<tables::first> !=
                                                 known<tables::first_in_block> ||
                                             own<tables::first> != own<tables::first_in_block>;

    /// `prefix` is the byte after which the opcode continues.
    template <opcode_table const& Table>
    static constexpr auto in(unsigned prefix, uint8_t byte) noexcept -> opcode_byte {
        if (byte == prefix) { return {opcode_byte::meaning::prefix}; }
        if (!known<Table>.has(byte)) { return {}; }
        bool is_own = false;
        if constexpr (own<Table> != byte_set{}) { is_own = own<Table>.has(byte); }
        return {opcode_byte::meaning::packet, is_own ? Own : Other};
    }
    static constexpr auto first(uint8_t byte, block items) noexcept -> opcode_byte {
        if constexpr (depends_on_block) {
            if (items != block::none) { return in<tables::first_in_block>(escape, byte); }
        }
        return in<tables::first>(escape, byte);
    }
    static constexpr auto ext(uint8_t byte) noexcept -> opcode_byte {
        return in<tables::ext>(second_escape >> 8, byte);
    }
    static constexpr auto ext2(uint8_t byte) noexcept -> opcode_byte {
        return in<tables::ext2>(~0U, byte);
    }
};

}  // namespace detail

}  // namespace ptspec::packet

// ---- ptspec/packet/decode.hpp ----

/// Decodes bytes to packets. A pure function of the bytes and the block's item size.
namespace ptspec::packet {

/// The context of a decode: everything it depends on besides the bytes.
struct context {
    block items = block::none;
    bool strict = false;  ///< a set reserved bit of TMA is `bad_packet` (PKT-003, PKT-104)
};

/// The result of a decode.
struct decoded {
    any_packet packet{};  ///< valid if `why` is `none`
    error why = error::none;
    uint8_t need = 0;          ///< if truncated: the bytes known to be required so far, at most 16
    rule broken = rule::none;  ///< the rule that was violated

    constexpr explicit operator bool() const noexcept { return why == error::none; }
    /// The number of bytes consumed: 0 after an error.
    [[nodiscard]] constexpr auto length() const noexcept -> unsigned {
        return why == error::none ? packet.length() : 0;
    }
};

/// The result of a decode as one packet type.
template <class Packet>
struct decoded_as {
    Packet packet{};
    unsigned length = 0;  ///< the number of bytes consumed: 0 after an error
    error why = error::none;
    uint8_t need = 0;
    rule broken = rule::none;

    constexpr explicit operator bool() const noexcept { return why == error::none; }
};

namespace detail {

/// The reason why a decode failed.
struct failure {
    error why = error::none;
    uint8_t need = 0;
    rule broken = rule::none;
};

constexpr auto truncated(unsigned need) noexcept -> failure {
    return {error::truncated, static_cast<uint8_t>(need), rule::PKT_255};
}

/// The bits that distinguish a packet from others with the same opcode.
template <class Packet>
inline constexpr uint64_t leaf_bits = bits_of_mismatch(typename Packet::layout::rows{},
                                                       mismatch::reserved);

struct no_sibling {};

template <class Packet>
constexpr auto is_sibling(opcode_shape one) noexcept -> bool {
    constexpr auto two = shape_of<Packet>();
    return underlying(two.which) > underlying(one.which) && two.mask == one.mask &&
           two.value == one.value;
}

template <class Packet, class... Rest>
struct sibling_among {
    using type = no_sibling;
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

/// Decodes everything after the opcode: header, length, payload. Missing bytes read as 0, which is
/// a valid value in every header, so a short header fails the length check.
template <class Packets, class Packet, class Sink>
constexpr auto decode_after_opcode(wide_bits image, size_t present, context how, Sink&& sink)
    -> failure {
    using raw = typename Packet::raw_type;
    if constexpr (leaf_bits<Packet> != 0) {
        if ((image.low & leaf_bits<Packet>) !=
            (widen(opcode_bits<Packet>).low & leaf_bits<Packet>)) {
            using sibling = decltype(sibling_in<Packet>(Packets{}));
            if constexpr (same_as<sibling, no_sibling>) {
                return {error::reserved, 0, Packet::unknown_leaf};
            } else {
                return decode_after_opcode<Packets, sibling>(image, present, how, sink);
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

/// The packet whose opcode is at the front, or the failure.
struct opcode_result {
    failure failed{};
    kind which = kind::pad;
};

template <class Opcodes>
constexpr auto find_opcode(wide_bits image, size_t present, block items) noexcept -> opcode_result {
    if (present == 0) { return {truncated(1)}; }
    auto opcode = Opcodes::first(static_cast<uint8_t>(image.low), items);
    if (opcode.what == opcode_byte::meaning::packet) { return {{}, opcode.which}; }
    rule unknown = rule::PKT_015;
    if (opcode.what == opcode_byte::meaning::prefix) {
        if (present < 2) { return {truncated(2)}; }
        opcode = Opcodes::ext(static_cast<uint8_t>(image.low >> 8));
        unknown = rule::PKT_012;
        if (opcode.what == opcode_byte::meaning::prefix) {
            if (present < 3) { return {truncated(3)}; }
            opcode = Opcodes::ext2(static_cast<uint8_t>(image.low >> 16));
            unknown = rule::PKT_013;
        }
    }
    if (opcode.what == opcode_byte::meaning::invalid) { return {{error::bad_opcode, 0, unknown}}; }
    return {{}, opcode.which};
}

/// Decodes the packet at the front and calls `sink(packet, length)` with its type.
template <class Packets, class Sink>
constexpr auto decode_into(byte_view in, context how, Sink&& sink) -> failure {
    wide_bits const image = load_le_wide(in);
    auto const opcode = find_opcode<opcodes<Packets>>(image, in.size(), how.items);
    return opcode.failed.why != error::none
               ? opcode.failed
               : for_kind(
                     opcode.which,
                     [&]<class Packet>() {
                         return decode_after_opcode<Packets, Packet>(image, in.size(), how, sink);
                     },
                     Packets{});
}

/// The first packet type with the same opcode as `Packet`. The opcode tables name this type.
template <class Packet, class... Packets>
struct first_with_opcode_among;
template <class Packet, class First, class... Rest>
struct first_with_opcode_among<Packet, First, Rest...> : first_with_opcode_among<Packet, Rest...> {
};
template <class Packet, class First, class... Rest>
    requires(shape_of<First>().mask == shape_of<Packet>().mask &&
             shape_of<First>().value == shape_of<Packet>().value)
struct first_with_opcode_among<Packet, First, Rest...> {
    using type = First;
};
template <class Packet, class... Packets>
auto first_with_opcode_of(type_list<Packets...>) ->
    typename first_with_opcode_among<Packet, Packets...>::type;

}  // namespace detail

/// Decodes the packet at the front of `in`. Empty input is `truncated` with need 1.
///
/// Errors: truncated, bad_opcode, reserved, bad_packet, checked in this order; but reserved is
///         checked before a truncated payload. An error consumes nothing.
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

/// Decodes the packet at the front of `in` as a `Packet`. Any other packet, complete or not, is
/// `bad_opcode`. An error in a MODE packet is reported for both MODE types, since they share an
/// opcode.
template <packet_type Packet, class Packets = all>
[[nodiscard]] constexpr auto decode_as(byte_view in, context how = {}) noexcept
    -> decoded_as<Packet> {
    using named_packet = decltype(detail::first_with_opcode_of<Packet>(Packets{}));
    constexpr kind own = named_packet::about.id;
    constexpr kind other = own == kind::pad ? kind::psb : kind::pad;
    wide_bits const image = load_le_wide(in);
    auto const opcode = detail::find_opcode<detail::opcodes_of_one<Packets, own, other>>(
        image, in.size(), how.items);
    detail::failure failed = opcode.failed;
    decoded_as<Packet> out;
    if (failed.why == error::none && opcode.which == own) {
        failed = detail::decode_after_opcode<Packets, named_packet>(
            image, in.size(), how, [&]<class Found>(Found const& packet, unsigned length) {
                if constexpr (same_as<Found, Packet>) {
                    out.packet = packet;
                    out.length = length;
                }
            });
    }
    if (failed.why == error::none && out.length == 0) {
        failed = {error::bad_opcode, 0, rule::PKT_010};
    }
    out.why = failed.why;
    out.need = failed.need;
    out.broken = failed.broken;
    return out;
}

}  // namespace ptspec::packet

// ---- ptspec/packet/encode.hpp ----

/// Encodes packets to bytes. Refuses every packet that `decode` would not read back unchanged.
namespace ptspec::packet {

/// The bytes of a packet, or the rule that it violates.
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

/// The bits of a packet with the opcode set and the reserved bits 0.
template <class Packet>
constexpr auto canonical_bits(Packet const& packet) noexcept -> wide_bits {
    constexpr wide_bits kept = ~(
        widen(Packet::reserved_mask()) |
        bits_of_kind<wide_bits>(typename Packet::layout::rows{}, row_kind::fixed));
    return (widen(packet.raw) & kept) | widen(opcode_bits<Packet>);
}

/// The rule that these bits violate as a `Packet`, or `none`.
template <class Packets, class Packet>
constexpr auto violated_rule(wide_bits bits, block items) noexcept -> rule {
    using raw = typename Packet::raw_type;
    if (rule const broken = broken_header<Packet>(narrow<raw>(bits)); broken != rule::none) {
        return broken;
    }
    if (rule const broken = broken_payload<Packet>(narrow<raw>(bits), false);
        broken != rule::none) {
        return broken;
    }
    auto const read = classify_first<Packets>(static_cast<uint8_t>(bits.low), items);
    if (read.what == opcode_byte::meaning::packet &&
        opcode_of(read.which, Packets{}) != opcode_of(Packet::about.id, Packets{})) {
        return rule::PKT_344;
    }
    unsigned const length = Packet::length_of(narrow<raw>(bits), items);
    return bits == first_bytes(bits, length) ? rule::none : rule::PKT_340;
}

/// The bytes and length of a packet, or the rule that it violates.
struct code {
    wide_bits bytes{};
    unsigned length = 0;
    rule broken = rule::none;
};

template <class Packets, class Packet>
constexpr auto encoding_of(Packet const& packet, block items) noexcept -> code {
    wide_bits const bits = canonical_bits(packet);
    if (rule const broken = violated_rule<Packets, Packet>(bits, items); broken != rule::none) {
        return {{}, 0, broken};
    }
    return {bits, Packet::length_of(narrow<typename Packet::raw_type>(bits), items), rule::none};
}

}  // namespace detail

/// Encodes a packet. Reserved bits are written as 0.
///
/// Errors: the rule that the packet violates: a reserved value in its header, no branch in a TNT, a
///         payload longer than its size field gives (PKT-340), a TNT.short or BIP that would be
///         decoded as the other one (PKT-344).
/// Source: PKT-340..347.
template <packet_type Packet, class Packets = all>
[[nodiscard]] constexpr auto encode(Packet const& packet, block items = block::none) noexcept
    -> encoded<Packet::max_bytes> {
    auto const code = detail::encoding_of<Packets>(packet, items);
    encoded<Packet::max_bytes> out{{}, code.length, code.broken};
    copy_bytes(out.bytes.data(), to_le(code.bytes).data(), code.length);
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

/// Appends a packet to `out`, completely or not at all.
///
/// Errors: the errors of `encode`, and PKT-347 when there is no room. On an error nothing is
///         written.
/// Source: PKT-347.
template <class Packet>
    requires(packet_type<Packet> || same_as<Packet, any_packet>)
[[nodiscard]] constexpr auto append(byte_buffer& out, Packet const& packet,
                                    block items = block::none) noexcept -> rule {
    auto const bytes = encode(packet, items);
    return !bytes ? bytes.broken : out.append(bytes) ? rule::none : rule::PKT_347;
}

}  // namespace ptspec::packet

// ---- ptspec/cpu/quirk_set.hpp ----

namespace ptspec::cpu {

/// A deviation of a processor from the architecture. The lower ones matter to drivers. Those from
/// `bdm70` on are named after errata and matter to decoders.
enum class quirk : uint32_t {
    /// A write of IA32_RTIT_CTL that sets TraceEn without BranchEn faults. Source: REG-040.
    branch_en_always_on = 1U << 0,
    /// No tracing in VMX operation. Source: REG-110, REG-121.
    no_vmx = 1U << 1,
    /// Single-range output of more than 4 KB is not reliable.
    single_range_one_page = 1U << 2,
    /// A ToPA table has one region and a link to itself. Source: REG-163.
    single_entry_topa = 1U << 3,
    /// Intel PT and LBR, BTS, BTM and LER are mutually exclusive. Source: REG-180.
    lbr_exclusive = 1U << 4,
    /// The MSRs belong to a core, not to a logical processor: write them on the core's first
    /// thread.
    core_scoped_msrs = 1U << 5,
    /// XSAVES does not manage the state of Intel PT.
    no_xsaves = 1U << 6,
    /// P-cores and E-cores enumerate different capabilities: execute CPUID on each logical
    /// processor.
    per_core_type_caps = 1U << 7,
    /// Fewer CYC thresholds than the first processors with CYC packets.
    short_cyc_bitmap = 1U << 8,

    bdm70 = 1U << 9,    ///< a spurious PSB+ may precede TIP.PGE
    bdm64 = 1U << 10,   ///< the branch before a TSX abort may have a wrong target
    skd007 = 1U << 11,  ///< an OVF may replace the second byte of a CYC
    skd022 = 1U << 12,  ///< a VM entry that clears TraceEn adds a FUP before TIP.PGD
    skd010 = 1U << 13,  ///< the FUP after an OVF may be missing
    skl014 = 1U << 14,  ///< TIP.PGD lacks its IP when a direct branch leaves the filter range
    apl12 = 1U << 15,   ///< with IP filters, a spurious FUP after an OVF
    apl11 = 1U << 16,   ///< TIP.PGD in place of the FUP after an OVF
    skl168 = 1U << 17,  ///< a CYC or MTC may be missing before a PSB
    skz84 = 1U << 18,   ///< with TSC scaling or offset, TMA is corrupt and one byte longer
};

/// A set of quirks.
struct quirk_set {
    uint32_t bits = 0;

    [[nodiscard]] constexpr auto has(quirk one) const noexcept -> bool {
        return (bits & underlying(one)) != 0;
    }
    /// The set with `one` added, if `wanted`.
    [[nodiscard]] constexpr auto with(quirk one, bool wanted = true) const noexcept -> quirk_set {
        return {wanted ? bits | underlying(one) : bits};
    }
    friend constexpr auto operator|(quirk_set one, quirk_set two) noexcept -> quirk_set {
        return {one.bits | two.bits};
    }
    friend constexpr auto operator==(quirk_set const&, quirk_set const&) -> bool = default;
};

template <same_as<quirk>... Quirks>
[[nodiscard]] constexpr auto quirks(Quirks... all) noexcept -> quirk_set {
    return {(0U | ... | underlying(all))};
}

}  // namespace ptspec::cpu

// ---- ptspec/cpu/quirks.hpp ----

/// The model of a processor, and quirks of models that CPUID does not enumerate.
namespace ptspec::cpu {

/// A processor's model as the SDM names it: 06_5EH is family 6, model 5EH.
struct cpu_model {
    unsigned family = 0;
    unsigned model = 0;
    unsigned stepping = 0;

    friend constexpr auto operator==(cpu_model const&, cpu_model const&) -> bool = default;
};

/// DisplayFamily, DisplayModel and stepping.
///
/// Source: SDM vol. 2A, "CPUID"; PRG-001.
[[nodiscard]] constexpr auto model_of(reg::cpuid_01h_eax signature) noexcept -> cpu_model {
    using eax = reg::cpuid_01h_eax;
    auto const part = [](uint64_t value) { return static_cast<unsigned>(value); };
    unsigned const family = part(signature.get<eax::Family>());
    unsigned const model = part(signature.get<eax::Model>());
    return {family == 15 ? family + part(signature.get<eax::ExtFamily>()) : family,
            family == 6 || family == 15 ? part(signature.get<eax::ExtModel>()) << 4 | model : model,
            part(signature.get<eax::Stepping>())};
}

// ------------------------------------------------------------------------------------ by model

/// The quirks of one model, for a range of steppings.
struct model_quirks {
    uint16_t family = 0;
    uint8_t model = 0;
    quirk_set has{};
    uint8_t first_stepping = 0;
    uint8_t last_stepping = 15;

    [[nodiscard]] constexpr auto applies_to(cpu_model const& which) const noexcept -> bool {
        return family == which.family && model == which.model && first_stepping <= which.stepping &&
               which.stepping <= last_stepping;
    }
};

namespace detail {

using enum quirk;

inline constexpr quirk_set broadwell = quirks(branch_en_always_on, no_vmx, no_xsaves, lbr_exclusive,
                                              bdm70, bdm64);
inline constexpr quirk_set skylake = quirks(bdm70, skd007, skd022, skd010, skl014, skl168);
inline constexpr quirk_set first_skylake = skylake.with(lbr_exclusive);
inline constexpr quirk_set skylake_server = quirks(bdm70, skl014, skd022, skz84);
inline constexpr quirk_set later_server = quirks(bdm70, skd022, skz84);
inline constexpr quirk_set ice_lake = quirks(bdm70, skl014, skd022);
inline constexpr quirk_set tiger_lake = ice_lake.with(single_range_one_page);
inline constexpr quirk_set hybrid = quirks(per_core_type_caps, bdm70, skd022, apl11);
inline constexpr quirk_set raptor_cove = quirks(bdm70, skd022, single_range_one_page);
inline constexpr quirk_set lakefield = ice_lake | quirks(per_core_type_caps, apl11);
inline constexpr quirk_set alder_lake = hybrid.with(single_range_one_page);
inline constexpr quirk_set goldmont = quirks(core_scoped_msrs, apl12, apl11);
inline constexpr quirk_set goldmont_plus = quirks(core_scoped_msrs, apl11);
inline constexpr quirk_set later_atom = quirks(apl11);

}  // namespace detail

// clang-format off

/// The quirks that depend only on the model.
///
/// UNCONFIRMED: all quirks of 06_8AH, 06_BEH, 06_D7H and 06_E5H, except `per_core_type_caps` of
/// 06_8AH. They are taken from processors with the same cores.
/// Source: REG-040, REG-180.
inline constexpr model_quirks quirk_table[] = {
    {0x06, 0x3D, detail::broadwell}, {0x06, 0x47, detail::broadwell},
    {0x06, 0x4F, detail::broadwell}, {0x06, 0x56, detail::broadwell},

    {0x06, 0x4E, detail::first_skylake}, {0x06, 0x5E, detail::first_skylake},
    {0x06, 0x8E, detail::skylake}, {0x06, 0x9E, detail::skylake},
    {0x06, 0xA5, detail::skylake}, {0x06, 0xA6, detail::skylake},

    {0x06, 0x55, detail::skylake_server}, {0x06, 0x6A, detail::skylake_server},
    {0x06, 0x6C, detail::skylake_server},

    {0x06, 0x8F, detail::later_server}, {0x06, 0xCF, detail::later_server},
    {0x06, 0xAD, detail::later_server}, {0x06, 0xAE, detail::later_server},
    {0x13, 0x01, detail::later_server},

    {0x06, 0x66, detail::ice_lake}, {0x06, 0x7D, detail::ice_lake}, {0x06, 0x7E, detail::ice_lake},
    {0x06, 0xA7, detail::ice_lake}, {0x06, 0xA8, detail::ice_lake},
    {0x06, 0x8C, detail::tiger_lake}, {0x06, 0x8D, detail::tiger_lake},

    {0x06, 0x97, detail::alder_lake}, {0x06, 0x9A, detail::alder_lake},
    {0x06, 0xB7, detail::alder_lake}, {0x06, 0xBA, detail::alder_lake},
    {0x06, 0xBF, detail::alder_lake},
    {0x06, 0xD7, detail::raptor_cove}, {0x06, 0x8A, detail::lakefield},
    {0x06, 0xAA, detail::hybrid}, {0x06, 0xAC, detail::hybrid}, {0x06, 0xB5, detail::hybrid},
    {0x06, 0xBD, detail::hybrid}, {0x06, 0xC5, detail::hybrid}, {0x06, 0xC6, detail::hybrid},
    {0x06, 0xCC, detail::hybrid}, {0x06, 0xD5, detail::hybrid}, {0x06, 0xE5, detail::hybrid},
    {0x12, 0x01, detail::hybrid}, {0x12, 0x03, detail::hybrid},

    {0x06, 0x5C, detail::goldmont}, {0x06, 0x5F, detail::goldmont},
    {0x06, 0x7A, detail::goldmont_plus},
    {0x06, 0x86, detail::later_atom}, {0x06, 0x96, detail::later_atom},
    {0x06, 0x9C, detail::later_atom}, {0x06, 0xAF, detail::later_atom},
    {0x06, 0xB6, detail::later_atom}, {0x06, 0xBE, detail::later_atom},
    {0x06, 0xDD, detail::later_atom},
};

// clang-format on

/// The quirks of a processor's model. An unknown model has none.
///
/// Source: REG-040, REG-180, REG-184.
[[nodiscard]] constexpr auto quirks_of(cpu_model const& which) noexcept -> quirk_set {
    quirk_set found;
    for (model_quirks const& row : quirk_table) {
        if (row.applies_to(which)) { found = found | row.has; }
    }
    return found;
}
[[nodiscard]] constexpr auto quirks_of(reg::cpuid_01h_eax signature) noexcept -> quirk_set {
    return quirks_of(model_of(signature));
}

}  // namespace ptspec::cpu

// ---- ptspec/cpu/periods.hpp ----

/// The frequency of MTC, CYC and PSB packets, which IA32_RTIT_CTL encodes in fields of four bits.
namespace ptspec {

namespace build_error {
void a_run_time_number_needs_a_function_that_begins_with_try();
void an_encoding_is_0_to_15();
void an_MTC_period_is_a_power_of_two_up_to_32768_crystal_cycles();
void a_CYC_threshold_is_0_or_a_power_of_two_up_to_16384_cycles();
void a_PSB_period_is_a_power_of_two_from_2_KB_to_64_MB();
}  // namespace build_error

namespace cpu {

/// A period, or the rule that the number breaks.
template <class Period>
struct [[nodiscard]] checked_period {
    rule broken = rule::none;
    Period period{};

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

namespace detail {

/// The common part of the period types. `Field` maps each encoding to its amount.
template <class Period, class Field>
class encoded_period {
public:
    static constexpr unsigned last_encoding = 15;

    /// Returns the period of an encoding: a literal from 0 to 15.
    [[nodiscard]] static consteval auto encoded(integral auto const& literal) -> Period {
        if (!ptspec::detail::is_known(literal)) {
            build_error::a_run_time_number_needs_a_function_that_begins_with_try();
        }
        if (ptspec::detail::is_negative(literal) || !Field::fits(static_cast<uint64_t>(literal))) {
            build_error::an_encoding_is_0_to_15();
        }
        return from_encoding(static_cast<uint64_t>(literal));
    }
    /// The same at run time: keeps the low four bits.
    [[nodiscard]] static constexpr auto encoded(wrapped number) noexcept -> Period {
        return from_encoding(number.value & last_encoding);
    }
    /// The same at run time, checked.
    ///
    /// Errors: REG-028 not 0 to 15.
    [[nodiscard]] static constexpr auto try_encoded(uint64_t number) noexcept
        -> checked_period<Period> {
        if (number > last_encoding) { return {.broken = rule::REG_028}; }
        return {.period = from_encoding(number)};
    }
    /// The encoding, as the field holds it.
    [[nodiscard]] constexpr auto encoding() const noexcept -> unsigned { return encoding_; }

    friend constexpr auto operator==(encoded_period, encoded_period) -> bool = default;

protected:
    constexpr encoded_period() noexcept = default;

    [[nodiscard]] constexpr auto amount() const noexcept -> uint64_t {
        return amount_of(encoding_);
    }

    static constexpr auto of_literal(uint64_t const& amount) -> checked_period<Period> {
        if (!ptspec::detail::is_known(amount)) {
            build_error::a_run_time_number_needs_a_function_that_begins_with_try();
        }
        return try_of(amount);
    }
    /// Errors: REG-048 no encoding for this amount.
    static constexpr auto try_of(uint64_t amount) noexcept -> checked_period<Period> {
        for (unsigned encoding = 0; encoding <= last_encoding; ++encoding) {
            if (amount_of(encoding) == amount) { return {.period = from_encoding(encoding)}; }
        }
        return {.broken = rule::REG_048};
    }
    /// The period with the smallest ratio to `amount`.
    static constexpr auto nearest_to(uint64_t amount) noexcept -> Period {
        uint64_t const most = amount_of(last_encoding);
        uint64_t const wanted = amount < most ? amount : most;
        unsigned encoding = 0;
        while (encoding < last_encoding &&
               wanted * wanted > amount_of(encoding) * amount_of(encoding + 1)) {
            ++encoding;
        }
        return from_encoding(encoding);
    }

private:
    static constexpr auto amount_of(unsigned encoding) noexcept -> uint64_t {
        return Field::amount(encoding).count;
    }
    static constexpr auto from_encoding(uint64_t encoding) noexcept -> Period {
        Period period;
        period.encoding_ = static_cast<uint8_t>(encoding);
        return period;
    }

    uint8_t encoding_ = 0;
};

}  // namespace detail

/// The period of MTC packets in crystal cycles: `of_crystal_cycles(8)`.
///
/// Units:  crystal cycles, 2^n for encoding n: 1 to 32768. The default is 1.
/// Errors: other numbers stop the build; `try_of_crystal_cycles` returns REG-048.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR"; REG-048.
class mtc_period : public detail::encoded_period<mtc_period, reg::ia32_rtit_ctl::MTCFreq> {
public:
    constexpr mtc_period() noexcept = default;
    mtc_period(int) = delete;  // of_crystal_cycles(n), or encoded(n) for MTCFreq

    [[nodiscard]] static consteval auto of_crystal_cycles(uint64_t const& cycles) -> mtc_period {
        auto const found = of_literal(cycles);
        if (!found) { build_error::an_MTC_period_is_a_power_of_two_up_to_32768_crystal_cycles(); }
        return found.period;
    }
    [[nodiscard]] static constexpr auto try_of_crystal_cycles(uint64_t cycles) noexcept
        -> checked_period<mtc_period> {
        return try_of(cycles);
    }
    [[nodiscard]] static constexpr auto nearest_to_crystal_cycles(uint64_t cycles) noexcept
        -> mtc_period {
        return nearest_to(cycles);
    }
    [[nodiscard]] constexpr auto crystal_cycles() const noexcept -> uint64_t { return amount(); }
};

/// The minimum number of core cycles between two CYC packets: `of_cycles(16)`.
///
/// Units:  cycles, 2^(n-1) for encoding n: 1 to 16384. The default, 0, is no threshold.
/// Errors: other numbers stop the build; `try_of_cycles` returns REG-048.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR"; REG-048.
class cyc_threshold : public detail::encoded_period<cyc_threshold, reg::ia32_rtit_ctl::CycThresh> {
public:
    constexpr cyc_threshold() noexcept = default;
    cyc_threshold(int) = delete;  // of_cycles(n), or encoded(n) for CycThresh

    [[nodiscard]] static consteval auto of_cycles(uint64_t const& cycles) -> cyc_threshold {
        auto const found = of_literal(cycles);
        if (!found) { build_error::a_CYC_threshold_is_0_or_a_power_of_two_up_to_16384_cycles(); }
        return found.period;
    }
    [[nodiscard]] static constexpr auto try_of_cycles(uint64_t cycles) noexcept
        -> checked_period<cyc_threshold> {
        return try_of(cycles);
    }
    [[nodiscard]] static constexpr auto nearest_to_cycles(uint64_t cycles) noexcept
        -> cyc_threshold {
        return nearest_to(cycles);
    }
    [[nodiscard]] constexpr auto cycles() const noexcept -> uint64_t { return amount(); }
};

/// The number of trace bytes between two PSBs: `of_bytes(8192)`.
///
/// Units:  bytes, 2^(n+11) for encoding n: 2 KB, the default, to 64 MB.
/// Errors: other numbers stop the build; `try_of_bytes` returns REG-048.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR"; REG-048.
class psb_period : public detail::encoded_period<psb_period, reg::ia32_rtit_ctl::PSBFreq> {
public:
    constexpr psb_period() noexcept = default;
    psb_period(int) = delete;  // of_bytes(n), or encoded(n) for PSBFreq

    [[nodiscard]] static consteval auto of_bytes(uint64_t const& bytes) -> psb_period {
        auto const found = of_literal(bytes);
        if (!found) { build_error::a_PSB_period_is_a_power_of_two_from_2_KB_to_64_MB(); }
        return found.period;
    }
    [[nodiscard]] static constexpr auto try_of_bytes(uint64_t bytes) noexcept
        -> checked_period<psb_period> {
        return try_of(bytes);
    }
    [[nodiscard]] static constexpr auto nearest_to_bytes(uint64_t bytes) noexcept -> psb_period {
        return nearest_to(bytes);
    }
    [[nodiscard]] constexpr auto bytes() const noexcept -> uint64_t { return amount(); }
};

}  // namespace cpu

}  // namespace ptspec

// ---- ptspec/cpu/capabilities.hpp ----

/// The Intel PT capabilities that a processor enumerates.
namespace ptspec::cpu {

/// An output scheme of Intel PT.
enum class output_scheme : uint8_t { single_range, topa, fabric };

/// Which kind of address packets and IA32_RTIT_ADDRn hold.
///
/// Source: REG-079, REG-166.
enum class ip_payload : uint8_t {
    effective,  ///< offsets from the CS base, also called RIP or EIP
    linear,     ///< linear addresses, LIP
};

/// The level of Intel PT support in VMX operation, in historical order.
///
/// Source: REG-120, REG-122..128.
enum class vmx_support : uint8_t {
    none,     ///< IA32_VMX_MISC[14] is 0: no tracing in VMX operation
    conceal,  ///< tracing in VMX operation, with controls to conceal VMX from the trace
    whole,    ///< also guest-physical output; VM entry loads CTL, VM exit clears it
};

/// The enumeration of Intel PT by a processor: raw CPUID leaves and capability MSRs.
///
/// Units:  each member is the word of its name; a leaf that does not exist is 0.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration";
///         REG-160..168.
struct capabilities {
    reg::cpuid_01h_eax leaf_01_eax{};
    reg::cpuid_01h_ecx leaf_01_ecx{};
    reg::cpuid_07h_0_ebx leaf_07_0_ebx{};
    reg::cpuid_0ah_eax leaf_0a_eax{};
    reg::cpuid_0dh_1_eax leaf_0d_1_eax{};
    reg::cpuid_0dh_1_ecx leaf_0d_1_ecx{};
    reg::cpuid_0dh_8_eax leaf_0d_8_eax{};
    reg::cpuid_0dh_8_ecx leaf_0d_8_ecx{};
    reg::cpuid_14h_0_eax leaf_14_0_eax{};
    reg::cpuid_14h_0_ebx leaf_14_0_ebx{};
    reg::cpuid_14h_0_ecx leaf_14_0_ecx{};
    reg::cpuid_14h_1_eax leaf_14_1_eax{};
    reg::cpuid_14h_1_ebx leaf_14_1_ebx{};
    reg::cpuid_14h_1_ecx leaf_14_1_ecx{};
    reg::cpuid_15h_eax leaf_15_eax{};
    reg::cpuid_15h_ebx leaf_15_ebx{};
    reg::cpuid_15h_ecx leaf_15_ecx{};
    reg::cpuid_80000008h_eax leaf_80000008_eax{};
    reg::msr_platform_info platform_info{};
    reg::ia32_perf_capabilities perf_capabilities{};
    reg::ia32_vmx_misc vmx_misc{};
    reg::ia32_vmx_procbased_ctls2 vmx_procbased_ctls2{};
    reg::ia32_vmx_exit_ctls vmx_exit_ctls{};
    reg::ia32_vmx_entry_ctls vmx_entry_ctls{};

    friend constexpr auto operator==(capabilities const&, capabilities const&) -> bool = default;

    /// Source: REG-160.
    [[nodiscard]] constexpr auto has_pt() const noexcept -> bool {
        return leaf_07_0_ebx.get<reg::cpuid_07h_0_ebx::INTEL_PT>();
    }

    /// True when the processor supports IP filtering, TraceStop, and MSRs that survive a warm
    /// reset.
    ///
    /// Source: REG-161.
    [[nodiscard]] constexpr auto has_ip_filtering() const noexcept -> bool {
        return leaf_14_0_ebx.get<ebx::IPFILT_WRSTPRSV>();
    }

    /// The number of IA32_RTIT_ADDRn_A/B pairs: 0 to 4.
    ///
    /// Source: REG-014, REG-046, REG-164.
    [[nodiscard]] constexpr auto address_ranges() const noexcept -> unsigned {
        bool const any = has_subleaf_1() && has_ip_filtering();
        auto const count = leaf_14_1_eax.get<reg::cpuid_14h_1_eax::RANGECNT>();
        return !any ? 0 : count < 4 ? static_cast<unsigned>(count) : 4;
    }

    /// The legal encodings of MTCFreq, CycThresh and PSBFreq, as bitmaps. Encoding 0 is always
    /// legal.
    ///
    /// Source: REG-028, REG-029, REG-046.
    [[nodiscard]] constexpr auto mtc_periods() const noexcept -> uint32_t {
        return bitmap(leaf_14_1_eax.get<reg::cpuid_14h_1_eax::MTC_PERIODS>(),
                      leaf_14_0_ebx.get<ebx::MTC>());
    }
    [[nodiscard]] constexpr auto cyc_thresholds() const noexcept -> uint32_t {
        return bitmap(leaf_14_1_ebx.get<reg::cpuid_14h_1_ebx::CYC_THRESHOLDS>(),
                      leaf_14_0_ebx.get<ebx::CPSB_CAM>());
    }
    [[nodiscard]] constexpr auto psb_periods() const noexcept -> uint32_t {
        return bitmap(leaf_14_1_ebx.get<reg::cpuid_14h_1_ebx::PSB_PERIODS>(),
                      leaf_14_0_ebx.get<ebx::CPSB_CAM>());
    }

    [[nodiscard]] constexpr auto supports(mtc_period period) const noexcept -> bool {
        return leaf_14_0_ebx.get<ebx::MTC>() && has_bit(mtc_periods(), period.encoding());
    }
    [[nodiscard]] constexpr auto supports(cyc_threshold threshold) const noexcept -> bool {
        return leaf_14_0_ebx.get<ebx::CPSB_CAM>() &&
               has_bit(cyc_thresholds(), threshold.encoding());
    }
    [[nodiscard]] constexpr auto supports(psb_period period) const noexcept -> bool {
        return leaf_14_0_ebx.get<ebx::CPSB_CAM>() && has_bit(psb_periods(), period.encoding());
    }
    /// Source: REG-024..026, REG-162.
    [[nodiscard]] constexpr auto supports(output_scheme scheme) const noexcept -> bool {
        using ecx = reg::cpuid_14h_0_ecx;
        return scheme == output_scheme::topa     ? leaf_14_0_ecx.get<ecx::TOPAOUT>()
               : scheme == output_scheme::fabric ? leaf_14_0_ecx.get<ecx::FABRIC>()
                                                 : leaf_14_0_ecx.get<ecx::SNGLRNGOUT>();
    }
    /// True when a ToPA table may hold more than one region.
    ///
    /// Source: REG-163.
    [[nodiscard]] constexpr auto has_topa_of_many_entries() const noexcept -> bool {
        return supports(output_scheme::topa) && leaf_14_0_ecx.get<reg::cpuid_14h_0_ecx::MENTRY>();
    }
    /// True when IA32_RTIT_OUTPUT_BASE and IA32_RTIT_OUTPUT_MASK_PTRS exist.
    ///
    /// Source: REG-012.
    [[nodiscard]] constexpr auto has_output_msrs() const noexcept -> bool {
        return supports(output_scheme::topa) || supports(output_scheme::single_range);
    }

    [[nodiscard]] constexpr auto ip_payload() const noexcept -> cpu::ip_payload {
        return leaf_14_0_ecx.get<reg::cpuid_14h_0_ecx::LIP>() ? cpu::ip_payload::linear
                                                              : cpu::ip_payload::effective;
    }

    /// MAXPHYADDR: 36 where the leaf is absent.
    ///
    /// Source: REG-070.
    [[nodiscard]] constexpr auto max_phys_addr() const noexcept -> ptspec::max_phys_addr {
        using eax = reg::cpuid_80000008h_eax;
        auto const bits = static_cast<unsigned>(leaf_80000008_eax.get<eax::MAXPHYADDR>());
        return {bits == 0 ? 36U : bits};
    }
    /// The width of linear addresses in bits: 48 or 57. 48 where the leaf is absent.
    ///
    /// Source: REG-076.
    [[nodiscard]] constexpr auto linear_address_bits() const noexcept -> unsigned {
        using eax = reg::cpuid_80000008h_eax;
        auto const bits = static_cast<unsigned>(leaf_80000008_eax.get<eax::LinearBits>());
        return bits == 0 || bits > 64 ? 48 : bits;
    }

    /// Source: REG-120, REG-125..128.
    [[nodiscard]] constexpr auto vmx() const noexcept -> vmx_support {
        bool const whole =
            vmx_procbased_ctls2.get<reg::ia32_vmx_procbased_ctls2::Can1_PT_USES_GPA>() &&
            vmx_exit_ctls.get<reg::ia32_vmx_exit_ctls::Can1_CLEAR_IA32_RTIT_CTL>() &&
            vmx_entry_ctls.get<reg::ia32_vmx_entry_ctls::Can1_LOAD_IA32_RTIT_CTL>();
        return !vmx_misc.get<reg::ia32_vmx_misc::INTEL_PT>() ? vmx_support::none
               : whole                                       ? vmx_support::whole
                                                             : vmx_support::conceal;
    }

    /// True when XSAVES and XRSTORS can manage the state of Intel PT.
    ///
    /// Source: REG-140.
    [[nodiscard]] constexpr auto has_xsaves_state() const noexcept -> bool {
        return leaf_0d_1_eax.get<reg::cpuid_0dh_1_eax::XSAVES>() &&
               leaf_0d_1_ecx.get<reg::cpuid_0dh_1_ecx::PT_STATE>();
    }

private:
    using ebx = reg::cpuid_14h_0_ebx;

    [[nodiscard]] constexpr auto has_subleaf_1() const noexcept -> bool {
        return leaf_14_0_eax.raw != 0;
    }
    [[nodiscard]] constexpr auto bitmap(uint64_t encodings, bool enumerated) const noexcept
        -> uint32_t {
        return enumerated && has_subleaf_1() ? static_cast<uint32_t>(encodings) | 1U : 1U;
    }
    [[nodiscard]] static constexpr auto has_bit(uint32_t bits, unsigned position) noexcept -> bool {
        return (bits >> position & 1U) != 0;
    }
};

// ------------------------------------------------------------------------------------ detection

/// Reads the capabilities from CPUID. Members that are MSRs stay 0.
///
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-160,
///         PRG-001.
template <cpuid_port Cpuid>
[[nodiscard]] constexpr auto detect(Cpuid& cpuid) noexcept -> capabilities {
    capabilities found;
    uint32_t const last = cpuid.query(0, 0).eax;
    auto const leaf_or_zero = [&](uint32_t leaf, uint32_t subleaf) {
        return leaf <= last ? cpuid.query(leaf, subleaf) : cpuid_registers{};
    };
    auto const signature_leaf = leaf_or_zero(0x01, 0);
    found.leaf_01_eax = {signature_leaf.eax};
    found.leaf_01_ecx = {signature_leaf.ecx};
    found.leaf_07_0_ebx = {leaf_or_zero(0x07, 0).ebx};
    found.leaf_0a_eax = {leaf_or_zero(0x0A, 0).eax};
    // Without extended leaves CPUID returns the data of another leaf, so the value may be anything.
    uint32_t const last_extended = cpuid.query(0x8000'0000, 0).eax;
    if (last_extended >= 0x8000'0008 && last_extended <= 0x8000'FFFF) {
        found.leaf_80000008_eax = {cpuid.query(0x8000'0008, 0).eax};
    }
    auto const tsc_leaf = leaf_or_zero(0x15, 0);
    found.leaf_15_eax = {tsc_leaf.eax};
    found.leaf_15_ebx = {tsc_leaf.ebx};
    found.leaf_15_ecx = {tsc_leaf.ecx};
    if (found.leaf_01_ecx.template get<reg::cpuid_01h_ecx::XSAVE>()) {
        auto const xsave_leaf = leaf_or_zero(0x0D, 1);
        found.leaf_0d_1_eax = {xsave_leaf.eax};
        found.leaf_0d_1_ecx = {xsave_leaf.ecx};
        auto const pt_component = leaf_or_zero(0x0D, 8);
        found.leaf_0d_8_eax = {pt_component.eax};
        found.leaf_0d_8_ecx = {pt_component.ecx};
    }
    if (!found.has_pt()) { return found; }
    auto const subleaf_0 = leaf_or_zero(0x14, 0);
    found.leaf_14_0_eax = {subleaf_0.eax};
    found.leaf_14_0_ebx = {subleaf_0.ebx};
    found.leaf_14_0_ecx = {subleaf_0.ecx};
    if (subleaf_0.eax >= 1) {
        auto const subleaf_1 = leaf_or_zero(0x14, 1);
        found.leaf_14_1_eax = {subleaf_1.eax};
        found.leaf_14_1_ebx = {subleaf_1.ebx};
        found.leaf_14_1_ecx = {subleaf_1.ecx};
    }
    return found;
}

/// Reads the capabilities from CPUID and from the capability MSRs that CPUID enumerates. An MSR
/// that faults anyway, as under some hypervisors, counts as 0.
///
/// Source: REG-160, REG-168, PRG-001.
template <cpuid_port Cpuid, msr_port Msrs>
[[nodiscard]] constexpr auto detect(Cpuid& cpuid, Msrs& msrs) noexcept -> capabilities {
    capabilities found = detect(cpuid);
    auto const read = [&]<class Word>(Word& word) {
        auto const answer = msrs.read(Word::address);
        word = {answer ? answer.value : 0};
    };
    if (!found.has_pt()) { return found; }
    read(found.platform_info);
    if (found.leaf_01_ecx.template get<reg::cpuid_01h_ecx::PDCM>()) {
        read(found.perf_capabilities);
    }
    if (found.leaf_01_ecx.template get<reg::cpuid_01h_ecx::VMX>()) {
        read(found.vmx_misc);
        read(found.vmx_procbased_ctls2);
        read(found.vmx_exit_ctls);
        read(found.vmx_entry_ctls);
    }
    return found;
}

}  // namespace ptspec::cpu

// ---- ptspec/cpu/enumerated_quirks.hpp ----

namespace ptspec::cpu {

/// The CYC thresholds of the first processors with CYC packets: encodings 0 to 13.
inline constexpr uint32_t first_cyc_thresholds = 0x3FFF;

/// The quirks of a processor: those of its model, and those that follow from its capabilities.
///
/// Without Intel PT only the quirks of the model are returned. When IA32_VMX_MISC was not read (0),
/// `no_vmx` is set.
/// Source: REG-040, REG-120, REG-121, REG-140, REG-163, REG-165.
[[nodiscard]] constexpr auto quirks_of(capabilities const& caps) noexcept -> quirk_set {
    using ebx = reg::cpuid_14h_0_ebx;
    auto const by_model = quirks_of(caps.leaf_01_eax);
    if (!caps.has_pt()) { return by_model; }
    bool const has_thresholds = caps.leaf_14_0_ebx.template get<ebx::CPSB_CAM>();
    return by_model.with(quirk::branch_en_always_on, !caps.leaf_14_0_ebx.template get<ebx::MTC>())
        .with(quirk::no_vmx, caps.vmx() == vmx_support::none)
        .with(quirk::single_entry_topa,
              caps.supports(output_scheme::topa) && !caps.has_topa_of_many_entries())
        .with(quirk::no_xsaves, !caps.has_xsaves_state())
        .with(quirk::short_cyc_bitmap,
              has_thresholds && (first_cyc_thresholds & ~caps.cyc_thresholds()) != 0);
}

}  // namespace ptspec::cpu

// ---- ptspec/cpu/preset_rows.hpp ----

/// The table of processors.
namespace ptspec::cpu::preset::detail {

/// CPUID leaf 14H: sub-leaves 0 and 1.
struct leaf_14 {
    uint32_t eax_0;
    uint32_t ebx_0;
    uint32_t ecx_0;
    uint32_t eax_1 = 0;
    uint32_t ebx_1 = 0;
    uint32_t ecx_1 = 0;
};

/// IA32_VMX_MISC, and the controls that may be 1 by the VMX capability MSRs.
struct vmx_words {
    uint32_t misc = 0;
    uint32_t procbased_ctls2 = 0;
    uint32_t exit_ctls = 0;
    uint32_t entry_ctls = 0;
};

/// CPUID.15H, and the ratio in MSR_PLATFORM_INFO.
struct clock {
    uint32_t eax = 0;
    uint32_t ebx = 0;
    uint32_t hz = 0;
    unsigned ratio = 0;
};

/// A row of the table of processors. Where `physical` is 0, only leaf 14H is known. Where `leaf` is
/// 0, there is no Intel PT.
struct row {
    text name{};
    uint32_t signature = 0;  ///< CPUID.01H:EAX
    leaf_14 leaf{};
    unsigned physical = 0;  ///< MAXPHYADDR
    unsigned linear = 48;   ///< the width of linear addresses
    bool xsaves = false;    ///< XSAVES manages the state of Intel PT
    vmx_words vmx{};
    clock time{};
    uint64_t perf_capabilities = 0;
};

/// The VM-exit and VM-entry controls that must be 1 on all known processors.
inline constexpr uint32_t required_exit_ctls = 0x0003'6DFF;
inline constexpr uint32_t required_entry_ctls = 0x0000'11FF;

/// A VMX capability MSR: the upper half has the controls that may be 1, the lower half those that
/// must be 1.
constexpr auto allowed(uint32_t can_be_1, uint32_t required = 0) noexcept -> uint64_t {
    return uint64_t{can_be_1} << 32 | (can_be_1 & required);
}

/// The capabilities of a row. Uses shifts instead of `with`, whose templates would be instantiated
/// on inclusion.
constexpr auto capabilities_of(row const& processor) noexcept -> capabilities {
    using widths = reg::cpuid_80000008h_eax;
    capabilities caps;
    bool const has_pt = processor.leaf.ecx_0 != 0;
    caps.leaf_01_eax.raw = processor.signature;
    caps.leaf_07_0_ebx.raw = has_pt ? 1U << reg::cpuid_07h_0_ebx::INTEL_PT::lsb : 0;
    caps.leaf_14_0_eax.raw = processor.leaf.eax_0;
    caps.leaf_14_0_ebx.raw = processor.leaf.ebx_0;
    caps.leaf_14_0_ecx.raw = processor.leaf.ecx_0;
    caps.leaf_14_1_eax.raw = processor.leaf.eax_1;
    caps.leaf_14_1_ebx.raw = processor.leaf.ebx_1;
    caps.leaf_14_1_ecx.raw = processor.leaf.ecx_1;
    if (processor.physical == 0) { return caps; }
    caps.leaf_80000008_eax.raw = processor.physical << widths::MAXPHYADDR::lsb |
                                 processor.linear << widths::LinearBits::lsb;
    if (!has_pt) { return caps; }
    caps.leaf_01_ecx.raw = 1U << reg::cpuid_01h_ecx::VMX::lsb;
    caps.vmx_misc.raw = processor.vmx.misc;
    caps.vmx_procbased_ctls2.raw = allowed(processor.vmx.procbased_ctls2);
    caps.vmx_exit_ctls.raw = allowed(processor.vmx.exit_ctls, required_exit_ctls);
    caps.vmx_entry_ctls.raw = allowed(processor.vmx.entry_ctls, required_entry_ctls);
    if (processor.xsaves) {  // size and format are the same on all known processors
        caps.leaf_01_ecx.raw |= 1U << reg::cpuid_01h_ecx::XSAVE::lsb;
        caps.leaf_0d_1_eax.raw = 1U << reg::cpuid_0dh_1_eax::XSAVES::lsb;
        caps.leaf_0d_1_ecx.raw = 1U << reg::cpuid_0dh_1_ecx::PT_STATE::lsb;
        caps.leaf_0d_8_eax.raw = 0x80;
        caps.leaf_0d_8_ecx.raw = 1U << reg::cpuid_0dh_8_ecx::Supervisor::lsb;
    }
    if (processor.perf_capabilities != 0) {
        caps.leaf_01_ecx.raw |= 1U << reg::cpuid_01h_ecx::PDCM::lsb;
        caps.perf_capabilities.raw = processor.perf_capabilities;
    }
    caps.leaf_15_eax.raw = processor.time.eax;
    caps.leaf_15_ebx.raw = processor.time.ebx;
    caps.leaf_15_ecx.raw = processor.time.hz;
    caps.platform_info.raw = processor.time.ratio << reg::msr_platform_info::MaxNonTurboRatio::lsb;
    return caps;
}

// ------------------------------------------------------------------------------------ leaf 14H

// Leaf 14H of real processors, named after the first processor known to have it.

inline constexpr leaf_14 like_broadwell{0, 0x01, 1};
inline constexpr leaf_14 like_skylake{1, 0x0F, 7, 0x0249'0002, 0x003F'3FFF};
inline constexpr leaf_14 like_cannon_lake{1, 0x0F, 7, 0x0249'0002, 0x003F'1FFF};
inline constexpr leaf_14 like_tiger_lake{1, 0x4F, 7, 0x0249'0002, 0x003F'1FFF};
inline constexpr leaf_14 like_alder_lake_p{1, 0x5F, 7, 0x0249'0002, 0x003F'003F};
inline constexpr leaf_14 like_lunar_lake_p{1, 0x15F, 7, 0x0249'0002, 0x003F'003F};
inline constexpr leaf_14 like_goldmont{1, 0x0F, 0x8000'0007, 0x0249'0002, 0x003F'FFFF};
inline constexpr leaf_14 like_goldmont_plus{1, 0x3F, 0x8000'0007, 0x0249'0002, 0x003F'FFFF};
inline constexpr leaf_14 like_lakefield_e{1, 0x0F, 0x8000'0007, 0x0249'0002, 0x003F'1FFF};
inline constexpr leaf_14 like_elkhart_lake{1, 0x7F, 0x8000'0007, 0x0249'0002, 0x003F'FFFF};
inline constexpr leaf_14 like_early_alder_lake_e{1, 0x5F, 0x8000'0007, 0x0249'0002, 0x003F'1FFF};
inline constexpr leaf_14 like_alder_lake_e{1, 0x5F, 0x8000'0007, 0x0249'0002, 0x003F'003F};
inline constexpr leaf_14 like_lunar_lake_e{1, 0x15F, 0x8000'0007, 0x0249'0002, 0x003F'003F};
inline constexpr leaf_14 like_alder_lake_n{1, 0x1FF, 0x8000'0007, 0x0249'0002, 0x003F'FFFF};

// ------------------------------------------------------------------------------------ the table

inline constexpr uint32_t crystal_19 = 19'200'000;
inline constexpr uint32_t crystal_24 = 24'000'000;
inline constexpr uint32_t crystal_25 = 25'000'000;
inline constexpr uint32_t crystal_38 = 38'400'000;

// The profiles may set only those VMX controls that concern Intel PT.
inline constexpr vmx_words no_pt_in_vmx{};
inline constexpr vmx_words conceal_only{
    1U << reg::ia32_vmx_misc::INTEL_PT::lsb,
    1U << reg::vmcs_secondary_proc_ctls::ConcealVmxNonRootFromPT::lsb,
    1U << reg::vmcs_vmexit_ctls::ConcealVmExitsFromPT::lsb,
    1U << reg::vmcs_vmentry_ctls::ConcealVmEntriesFromPT::lsb};
inline constexpr vmx_words all_of_pt{
    conceal_only.misc,
    conceal_only.procbased_ctls2 | 1U << reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr::lsb,
    conceal_only.exit_ctls | 1U << reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL::lsb,
    conceal_only.entry_ctls | 1U << reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL::lsb};

// clang-format off

/// Every named processor. P-FUT enumerates everything in the catalogue, P-SRO has only single-range
/// output, P-FAB only output to the trace transport. QEMU gives a guest only this leaf 14H,
/// whatever the host has.
///
/// Columns: name, 01H:EAX, leaf 14H, MAXPHYADDR, width of linear addresses, XSAVES; MSRs 485H,
///          48BH, 483H, 484H; CPUID.15H and the ratio; IA32_PERF_CAPABILITIES.
/// Source:  section 0 of registers.md and presets.csv in the rule catalogue; REG-160..168.
inline constexpr row rows[] = {
    {"P-NONE", 0, {}, 39},
    {"P-BDW", 0x306D0, {0, 0x01, 1}, 39, 48, false, no_pt_in_vmx},
    {"P-SKL", 0x506E0, {1, 0x0F, 7, 0x0249'0002, 0x003F'3FFF}, 39, 48, true, conceal_only},
    {"P-ATM", 0x80660, {1, 0x7F, 0x8000'0007, 0x0249'0002, 0x003F'FFFF}, 42, 48, true,
     conceal_only},
    {"P-FUT", 0, {1, 0x3FF, 0x8000'000F, 0xFFFF'0204, 0xFFFF'FFFF, 0x8003}, 52, 57, true, all_of_pt,
     {}, uint64_t{1} << reg::ia32_perf_capabilities::PEBS_OUTPUT_PT_AVAIL::lsb},
    {"P-SRO", 0, {1, 0x0A, 4, 0x0249'0000, 0x003F'0FFF}, 46, 48, false, conceal_only},
    {"P-FAB", 0, {1, 0x08, 8, 0x0001'0000, 0}, 40, 48, false, conceal_only},

    {"Broadwell-ULT", 0x306D4, like_broadwell, 39, 48, false,
     {0x3004'81E5, 0x0005'7CFF, 0x007F'FFFF, 0x0000'FFFF}, {0, 0, 0, 13}},
    {"Skylake-X", 0x50654, like_skylake, 46, 48, true,
     {0x7004'C1E7, 0x025D'3FFF, 0x01FF'FFFF, 0x0003'FFFF}, {2, 0x124, 0, 35}},
    {"CannonLake", 0x60663, like_cannon_lake, 39, 48, true,
     {0x7004'C1E7, 0x025F'3CFF, 0x01FF'FFFF, 0x0003'FFFF}, {2, 0xB8, crystal_24, 22}},
    {"IceLake-U", 0x706E5, like_cannon_lake, 39, 48, true,
     {0x7004'C1E7, 0x335F'BFFF, 0x037F'FFFF, 0x0006'FFFF}, {2, 0x4E, crystal_38, 15}},
    {"TigerLake", 0x806C1, like_tiger_lake, 39, 48, true,
     {0x7004'C1E7, 0x035F'3FFF, 0x137F'FFFF, 0x0016'FFFF}, {2, 0x7E, crystal_38, 24}},
    {"SapphireRapids", 0x806F8, like_alder_lake_p, 52, 57, true,
     {0x7004'C1E7, 0xCFFF'3FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xD8, crystal_24, 26}},
    {"GraniteRapids", 0xA06D1, like_alder_lake_p, 52, 57, true,
     {0x7004'C1E7, 0xCFFF'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xF0, crystal_25, 30}},

    {"Goldmont", 0x506CA, like_goldmont, 39, 48, true,
     {0x6004'C1E7, 0x001D'6FFF, 0x01FF'FFFF, 0x0003'FFFF}, {3, 0xC9, crystal_19, 13}},
    {"GoldmontPlus", 0x706A8, like_goldmont_plus, 39, 48, true,
     {0x6004'C1E7, 0x025D'EFFF, 0x01FF'FFFF, 0x0003'FFFF}, {3, 0xAB, crystal_19, 11}},
    {"ElkhartLake", 0x90661, like_elkhart_lake, 39, 48, true,
     {0x7004'C1E7, 0x07DD'6FFF, 0x037F'FFFF, 0x0006'FFFF}, {2, 0x68, crystal_38, 20}},
    {"AlderLake-N", 0xB06E0, like_alder_lake_n, 39, 48, true,
     {0x7004'C1E7, 0x075D'7FFF, 0xF77F'FFFF, 0x0076'FFFF}, {2, 0x5E, crystal_38, 18}},

    {"Lakefield-P", 0x806A1, like_cannon_lake, 39, 48, true,
     {0x7004'C1E7, 0x035D'6FFF, 0x037F'FFFF, 0x0006'FFFF}, {2, 0x48, crystal_38, 14}},
    {"Lakefield-E", 0x806A1, like_lakefield_e, 39, 48, true,
     {0x7004'C1E7, 0x035D'6FFF, 0x037F'FFFF, 0x0006'FFFF}, {2, 0x48, crystal_38, 14}},
    {"AlderLake-P", 0x90672, like_alder_lake_p, 39, 48, true,
     {0x7004'C1E7, 0x075D'7FFF, 0xF77F'FFFF, 0x0076'FFFF}, {2, 0x78, crystal_38, 23}},
    {"AlderLake-E", 0x90672, like_alder_lake_e, 39, 48, true,
     {0x7004'C1E7, 0x075D'7FFF, 0xF77F'FFFF, 0x0076'FFFF}, {2, 0x78, crystal_38, 23}},
    {"AlderLake-E-early", 0x90672, like_early_alder_lake_e, 46, 48, true,
     {0x7004'C1E7, 0x0F5D'7FFF, 0xF77F'FFFF, 0x0076'FFFF}, {2, 0xA6, crystal_38, 32}},
    {"ArrowLake-H-P", 0xC0652, like_alder_lake_p, 46, 48, true,
     {0x7004'C1E7, 0xCF5F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xC0, crystal_38, 37}},
    {"ArrowLake-H-E", 0xC0652, like_alder_lake_e, 46, 48, true,
     {0x7004'C1E7, 0xCF5F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xC0, crystal_38, 37}},
    {"ArrowLake-P", 0xC0662, like_lunar_lake_p, 46, 48, true,
     {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xDA, crystal_38, 42}},
    {"ArrowLake-E", 0xC0662, like_lunar_lake_e, 46, 48, true,
     {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xDA, crystal_38, 42}},
    {"LunarLake-P", 0xB06D1, like_lunar_lake_p, 42, 48, true,
     {0x7004'C1E7, 0xCF5F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xAC, crystal_38, 33}},
    {"LunarLake-E", 0xB06D1, like_lunar_lake_e, 42, 48, true,
     {0x7004'C1E7, 0xCF5F'7FFF, 0xFF7F'FFFF, 0x007E'FFFF}, {2, 0xAC, crystal_38, 33}},
    {"WildcatLake-P", 0xD0651, like_lunar_lake_p, 46, 48, true,
     {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x01FE'FFFF}, {2, 0x82, crystal_38, 25}},
    {"WildcatLake-E", 0xD0651, like_lunar_lake_e, 46, 48, true,
     {0x7004'C1E7, 0xC75F'7FFF, 0xFF7F'FFFF, 0x01FE'FFFF}, {2, 0x82, crystal_38, 25}},

    {"QEMU", 0, like_cannon_lake},
};

// clang-format on

}  // namespace ptspec::cpu::preset::detail

// ---- ptspec/cpu/presets.hpp ----

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
    /// When nothing was found: a processor without a name and without Intel PT.
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

/// Finds a processor by its exact name. A builtin compares, because every file that includes this
/// one pays for the search at compile time.
consteval auto find_exact(text name) noexcept -> capabilities {
    for (row const& one : rows) {
        if (one.name.length == name.length &&
            __builtin_memcmp(one.name.characters, name.characters, name.length) == 0) {
            return capabilities_of(one);
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

// ---- ptspec/cpu/compare.hpp ----

/// Compares two processors: whether one includes the other, and what both have in common.
///
/// A configuration for several cores, or one that must survive a migration, may only use what all
/// processors have. LIP is not a feature but a convention for IPs: a difference is reported, not
/// resolved.
namespace ptspec::cpu {

/// A capability that one processor can have and another can lack.
enum class aspect : uint16_t {
    pt = 1U << 0,              ///< Intel PT itself
    features = 1U << 1,        ///< CPUID.14H.0:EBX
    outputs = 1U << 2,         ///< CPUID.14H.0:ECX, except LIP
    address_ranges = 1U << 3,  ///< their number
    mtc_periods = 1U << 4,
    cyc_thresholds = 1U << 5,
    psb_periods = 1U << 6,
    triggers = 1U << 7,             ///< their number and their actions
    max_phys_addr = 1U << 8,        ///< the width of physical addresses
    linear_address_bits = 1U << 9,  ///< the width of linear addresses
    vmx = 1U << 10,                 ///< Intel PT in VMX operation
    xsaves = 1U << 11,              ///< XSAVES manages the state of Intel PT
    pebs_output = 1U << 12,         ///< PEBS records in the trace
};

/// Whether one processor has every capability of another.
struct inclusion {
    uint32_t lacking = 0;  ///< bits of `aspect`
    bool same_ip_payload = true;

    [[nodiscard]] constexpr auto lacks(aspect one) const noexcept -> bool {
        return (lacking & underlying(one)) != 0;
    }
    /// True when no capability is lacking. LIP does not matter.
    constexpr explicit operator bool() const noexcept { return lacking == 0; }
    friend constexpr auto operator==(inclusion const&, inclusion const&) -> bool = default;
};

// The functions that read words are templates: as plain functions they add 2.6 % to the cost of
// including ptspec.hpp, because every field access is then instantiated on inclusion.

namespace detail {

template <class Field>
constexpr auto has(auto word) noexcept -> bool {
    return word.template get<Field>();
}
template <class Field>
constexpr auto number_of(auto word) noexcept -> uint64_t {
    return word.template get<Field>();
}

/// The bits of CPUID.14H.0:ECX that are features.
template <class Word>
constexpr auto outputs_of(Word ecx) noexcept -> uint32_t {
    return ecx.with(reg::cpuid_14h_0_ecx::LIP{false}).raw;
}

constexpr auto is_within(uint32_t part, uint32_t whole) noexcept -> bool {
    return (part & ~whole) == 0;
}

}  // namespace detail

/// Whether `whole` has every capability of `part`. If so, every value that is legal for `part` is
/// legal for `whole`.
///
/// Source: REG-164, REG-165; for LIP REG-079, REG-166.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto includes(Capabilities const& whole, Capabilities const& part) noexcept
    -> inclusion {
    using detail::has, detail::is_within, detail::number_of, detail::outputs_of;
    using trigger_count = reg::cpuid_14h_1_eax::TRIGGER_CFG_CNT;
    using pebs = reg::ia32_perf_capabilities::PEBS_OUTPUT_PT_AVAIL;
    inclusion found;
    auto const require = [&](aspect which, bool holds) {
        if (!holds) { found.lacking |= underlying(which); }
    };
    require(aspect::pt, whole.has_pt() || !part.has_pt());
    require(aspect::features, is_within(part.leaf_14_0_ebx.raw, whole.leaf_14_0_ebx.raw));
    require(aspect::outputs,
            is_within(outputs_of(part.leaf_14_0_ecx), outputs_of(whole.leaf_14_0_ecx)));
    require(aspect::address_ranges, part.address_ranges() <= whole.address_ranges());
    require(aspect::mtc_periods, is_within(part.mtc_periods(), whole.mtc_periods()));
    require(aspect::cyc_thresholds, is_within(part.cyc_thresholds(), whole.cyc_thresholds()));
    require(aspect::psb_periods, is_within(part.psb_periods(), whole.psb_periods()));
    require(aspect::triggers, number_of<trigger_count>(part.leaf_14_1_eax) <=
                                      number_of<trigger_count>(whole.leaf_14_1_eax) &&
                                  is_within(part.leaf_14_1_ecx.raw, whole.leaf_14_1_ecx.raw));
    require(aspect::max_phys_addr, part.max_phys_addr().bits <= whole.max_phys_addr().bits);
    require(aspect::linear_address_bits, part.linear_address_bits() <= whole.linear_address_bits());
    require(aspect::vmx, part.vmx() <= whole.vmx());
    require(aspect::xsaves, whole.has_xsaves_state() || !part.has_xsaves_state());
    require(aspect::pebs_output,
            has<pebs>(whole.perf_capabilities) || !has<pebs>(part.perf_capabilities));
    found.same_ip_payload = part.ip_payload() == whole.ip_payload();
    return found;
}

/// The capabilities that two processors have in common.
struct common_capabilities {
    capabilities value{};
    bool same_ip_payload = true;  ///< false: `value` has LIP of the first processor
};

namespace detail {

/// Feature bits: 1 where both have them.
template <class Word>
constexpr auto bits_of_both(Word one, Word two) noexcept -> Word {
    return {one.raw & two.raw};
}

/// `Flag` is 1 where both have it; the other bits are those of `one`.
template <class Flag, class Word>
constexpr auto with_flag_of_both(Word one, Word two) noexcept -> Word {
    return one.with(Flag{has<Flag>(one) && has<Flag>(two)});
}

/// Each of `Fields` is the smaller number; other bits are 1 where both have them.
template <class... Fields, class Word>
constexpr auto with_minimum_of(Word one, Word two) noexcept -> Word {
    auto const smaller = [](uint64_t a, uint64_t b) { return wrapped{a < b ? a : b}; };
    return bits_of_both(one, two).with(
        Fields{smaller(number_of<Fields>(one), number_of<Fields>(two))}...);
}

/// The number where both agree, else 0.
template <class Word>
constexpr auto same_or_zero(Word one, Word two) noexcept -> Word {
    return one.raw == two.raw ? one : Word{};
}

/// A VMX capability MSR: the upper half has bits that can be 1 on both, the lower half bits that
/// must be 1 on either.
template <class Word>
constexpr auto allowed_by_both(Word one, Word two) noexcept -> Word {
    return {((one.raw & two.raw) & ~low_bits(32)) | ((one.raw | two.raw) & low_bits(32))};
}

/// The field that encodes the smaller width. Where both encode the same width, the larger number:
/// 0 encodes the default width.
template <class Field>
constexpr auto narrower(auto one, unsigned width_of_one, auto two, unsigned width_of_two) noexcept
    -> Field {
    uint64_t const a = number_of<Field>(one);
    uint64_t const b = number_of<Field>(two);
    bool const first = width_of_one == width_of_two ? a > b : width_of_one < width_of_two;
    return Field{wrapped{first ? a : b}};
}

template <class Capabilities>
constexpr auto common_widths(Capabilities const& one, Capabilities const& two) noexcept
    -> reg::cpuid_80000008h_eax {
    using eax = reg::cpuid_80000008h_eax;
    auto const a = one.leaf_80000008_eax;
    auto const b = two.leaf_80000008_eax;
    return bits_of_both(a, b).with(
        narrower<eax::MAXPHYADDR>(a, one.max_phys_addr().bits, b, two.max_phys_addr().bits),
        narrower<eax::LinearBits>(a, one.linear_address_bits(), b, two.linear_address_bits()));
}

}  // namespace detail

/// The common capabilities of two processors: a value of an MSR is legal for them exactly when it
/// is legal for both processors. Clocks, and the size of an XSAVE component, are 0 where they
/// differ.
///
/// The signature, LIP, and the bits of IA32_VMX_MISC and IA32_PERF_CAPABILITIES that do not concern
/// Intel PT are those of `one`.
/// Source: REG-164, REG-165; for LIP REG-079, REG-166.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto common(Capabilities const& one, Capabilities const& two) noexcept
    -> common_capabilities {
    using detail::same_or_zero, detail::allowed_by_both, detail::bits_of_both,
        detail::with_flag_of_both, detail::with_minimum_of;
    using counters = reg::cpuid_0ah_eax;
    using sizes = reg::cpuid_14h_1_eax;
    using lip = reg::cpuid_14h_0_ecx::LIP;
    auto value = one;
    value.leaf_01_ecx = bits_of_both(one.leaf_01_ecx, two.leaf_01_ecx);
    value.leaf_07_0_ebx = bits_of_both(one.leaf_07_0_ebx, two.leaf_07_0_ebx);
    value.leaf_0a_eax =
        with_minimum_of<counters::VersionID, counters::NumGP, counters::Width, counters::EbxLen>(
            one.leaf_0a_eax, two.leaf_0a_eax);
    value.leaf_0d_1_eax = bits_of_both(one.leaf_0d_1_eax, two.leaf_0d_1_eax);
    value.leaf_0d_1_ecx = bits_of_both(one.leaf_0d_1_ecx, two.leaf_0d_1_ecx);
    value.leaf_0d_8_eax = same_or_zero(one.leaf_0d_8_eax, two.leaf_0d_8_eax);
    value.leaf_0d_8_ecx = bits_of_both(one.leaf_0d_8_ecx, two.leaf_0d_8_ecx);
    value.leaf_14_0_eax = with_minimum_of<reg::cpuid_14h_0_eax::MaxSubleaf>(one.leaf_14_0_eax,
                                                                            two.leaf_14_0_eax);
    value.leaf_14_0_ebx = bits_of_both(one.leaf_14_0_ebx, two.leaf_14_0_ebx);
    value.leaf_14_0_ecx = bits_of_both(one.leaf_14_0_ecx, two.leaf_14_0_ecx)
                              .with(lip{detail::has<lip>(one.leaf_14_0_ecx)});
    value.leaf_14_1_eax = with_minimum_of<sizes::RANGECNT, sizes::TRIGGER_CFG_CNT>(
        one.leaf_14_1_eax, two.leaf_14_1_eax);
    value.leaf_14_1_ebx = bits_of_both(one.leaf_14_1_ebx, two.leaf_14_1_ebx);
    value.leaf_14_1_ecx = bits_of_both(one.leaf_14_1_ecx, two.leaf_14_1_ecx);
    value.leaf_15_eax = same_or_zero(one.leaf_15_eax, two.leaf_15_eax);
    value.leaf_15_ebx = same_or_zero(one.leaf_15_ebx, two.leaf_15_ebx);
    value.leaf_15_ecx = same_or_zero(one.leaf_15_ecx, two.leaf_15_ecx);
    value.leaf_80000008_eax = detail::common_widths(one, two);
    value.platform_info = same_or_zero(one.platform_info, two.platform_info);
    value.perf_capabilities = with_flag_of_both<reg::ia32_perf_capabilities::PEBS_OUTPUT_PT_AVAIL>(
        one.perf_capabilities, two.perf_capabilities);
    value.vmx_misc = with_flag_of_both<reg::ia32_vmx_misc::INTEL_PT>(one.vmx_misc, two.vmx_misc);
    value.vmx_procbased_ctls2 = allowed_by_both(one.vmx_procbased_ctls2, two.vmx_procbased_ctls2);
    value.vmx_exit_ctls = allowed_by_both(one.vmx_exit_ctls, two.vmx_exit_ctls);
    value.vmx_entry_ctls = allowed_by_both(one.vmx_entry_ctls, two.vmx_entry_ctls);
    return {value, one.ip_payload() == two.ip_payload()};
}

}  // namespace ptspec::cpu

// ---- ptspec/topa/address_math.hpp ----

/// The address arithmetic of both output schemes, on integers.
///
/// These functions neither branch nor compare. They work on 64-bit numbers and on symbolic values,
/// which a proof uses. Sums do not overflow for values that the rules allow.
namespace ptspec::address_math {

/// A type with the arithmetic, bitwise and shift operators of a 64-bit number.
template <class Word>
concept word_like = requires(Word a, Word b) {
    Word{uint64_t{1}};
    { a + b } -> convertible_to<Word>;
    { a - b } -> convertible_to<Word>;
    { a& b } -> convertible_to<Word>;
    { a | b } -> convertible_to<Word>;
    { a << b } -> convertible_to<Word>;
    { a >> b } -> convertible_to<Word>;
    { ~a } -> convertible_to<Word>;
};

/// The maximum number of entries of a ToPA table: 2^25 entries of 8 bytes, which is 256 MB.
///
/// Source: OUT-046.
inline constexpr uint64_t max_entries =
    uint64_t{1} << reg::ia32_rtit_output_mask_ptrs::MaskOrTableOffset::width;

// ------------------------------------------------------------------- IA32_RTIT_OUTPUT_MASK_PTRS

/// MaskOrTableOffset: the index of the current entry.
///
/// Source: OUT-050.
template <word_like Word>
[[nodiscard]] constexpr auto index_in(Word pointers) noexcept -> Word {
    using field = reg::ia32_rtit_output_mask_ptrs::MaskOrTableOffset;
    return (pointers >> Word{uint64_t{field::lsb}}) & Word{max_entries - 1};
}

/// OutputOffset: the offset of the next byte in the region.
template <word_like Word>
[[nodiscard]] constexpr auto offset_in(Word pointers) noexcept -> Word {
    return pointers >> Word{uint64_t{reg::ia32_rtit_output_mask_ptrs::OutputOffset::lsb}};
}

/// The mask of a single range: its size in bytes minus one. The low seven bits are ones.
///
/// Source: OUT-020, OUT-024.
template <word_like Word>
[[nodiscard]] constexpr auto mask_in(Word pointers) noexcept -> Word {
    using word = reg::ia32_rtit_output_mask_ptrs;
    return (pointers & Word{low_bits(word::OutputOffset::lsb)}) | Word{word::forced_1_mask()};
}

/// The value of IA32_RTIT_OUTPUT_MASK_PTRS for an index and an offset. Bits that do not fit are
/// dropped.
///
/// Source: OUT-050.
template <word_like Word>
[[nodiscard]] constexpr auto pointers_of(Word index, Word offset) noexcept -> Word {
    using word = reg::ia32_rtit_output_mask_ptrs;
    return (offset << Word{uint64_t{word::OutputOffset::lsb}}) |
           ((index & Word{max_entries - 1}) << Word{uint64_t{word::MaskOrTableOffset::lsb}}) |
           Word{word::forced_1_mask()};
}

// ------------------------------------------------------------------- single range

/// The bits of a mask above its lowest 0 bit: 0 when the mask is contiguous from bit 0.
///
/// Source: OUT-022.
template <word_like Word>
[[nodiscard]] constexpr auto non_contiguous_bits(Word mask) noexcept -> Word {
    return mask & (mask + Word{uint64_t{1}});
}

/// The address at which the next byte is stored.
///
/// Source: OUT-021.
template <word_like Word>
[[nodiscard]] constexpr auto store_address(Word base, Word mask, Word offset) noexcept -> Word {
    return (base & ~mask) + (offset & mask);
}

/// The offset after `bytes` more bytes, wrapped at the end of the region.
///
/// Source: OUT-021.
template <word_like Word>
[[nodiscard]] constexpr auto offset_after(Word offset, Word bytes, Word mask) noexcept -> Word {
    return (offset + bytes) & mask;
}

// ------------------------------------------------------------------- ToPA

/// The size of a region in bytes, from an entry's Size.
///
/// Source: OUT-041.
template <word_like Word>
[[nodiscard]] constexpr auto region_bytes(Word size) noexcept -> Word {
    return Word{uint64_t{4096}} << (size & Word{uint64_t{15}});
}

/// The remainder of an address modulo `bytes`, a power of two: 0 when the address is aligned.
///
/// Source: OUT-023, OUT-042, OUT-062.
template <word_like Word>
[[nodiscard]] constexpr auto misalignment(Word address, Word bytes) noexcept -> Word {
    return address & (bytes - Word{uint64_t{1}});
}

/// The address of an entry, the manual's table pointer.
///
/// Source: OUT-050.
template <word_like Word>
[[nodiscard]] constexpr auto table_pointer(Word table, Word index) noexcept -> Word {
    return table + (index << Word{uint64_t{3}});
}

/// The index after an entry. After the last possible index it wraps to 0.
///
/// Source: OUT-053, OUT-055.
template <word_like Word>
[[nodiscard]] constexpr auto next_index(Word index) noexcept -> Word {
    return (index + Word{uint64_t{1}}) & Word{max_entries - 1};
}

/// The index after `bytes` more bytes, which may fill the region but not exceed it.
///
/// Source: OUT-052, OUT-053, OUT-055.
template <word_like Word>
[[nodiscard]] constexpr auto index_after(Word index, Word offset, Word bytes, Word size) noexcept
    -> Word {
    Word const filled = (offset + bytes) >> (Word{uint64_t{12}} + (size & Word{uint64_t{15}}));
    return (index + filled) & Word{max_entries - 1};
}

}  // namespace ptspec::address_math

// ---- ptspec/topa/single_range.hpp ----

/// The single-range output scheme.
namespace ptspec::single_range {

using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;

/// The mask of a single range: its size in bytes minus one. The low seven bits are always ones.
///
/// Source: OUT-020.
[[nodiscard]] constexpr auto mask_of(ia32_rtit_output_mask_ptrs pointers) noexcept -> uint64_t {
    return address_math::mask_in(pointers.raw);
}

/// The physical address at which the next byte of trace is stored.
///
/// Source: SDM vol. 3, "Single Range Output"; OUT-021, OUT-027.
[[nodiscard]] constexpr auto trace_store_phys_addr(ia32_rtit_output_base base,
                                                   ia32_rtit_output_mask_ptrs pointers) noexcept
    -> uint64_t {
    return address_math::store_address(base.raw, mask_of(pointers),
                                       address_math::offset_in(pointers.raw));
}

/// The number of bytes until the offset wraps; 0 when the offset is outside the range.
///
/// Source: OUT-021, OUT-024.
[[nodiscard]] constexpr auto bytes_left(ia32_rtit_output_mask_ptrs pointers) noexcept -> uint64_t {
    uint64_t const mask = mask_of(pointers);
    uint64_t const offset = address_math::offset_in(pointers.raw);
    return offset <= mask ? mask + 1 - offset : 0;
}

/// The pointers after `bytes` more bytes: the offset wraps at the end of the range.
///
/// Source: OUT-021, OUT-028.
[[nodiscard]] constexpr auto advanced(ia32_rtit_output_mask_ptrs pointers, uint64_t bytes) noexcept
    -> ia32_rtit_output_mask_ptrs {
    uint64_t const offset = address_math::offset_in(pointers.raw);
    return pointers.with(ia32_rtit_output_mask_ptrs::OutputOffset{
        wrapped{address_math::offset_after(offset, bytes, mask_of(pointers))}});
}

namespace detail {

template <class Found>
constexpr void find_broken_rules(uint64_t base, uint64_t mask, uint64_t offset,
                                 Found&& found) noexcept {
    if (address_math::non_contiguous_bits(mask) != 0) { found(rule::OUT_022); }
    if ((base & mask) != 0) { found(rule::OUT_023); }
    if (offset > mask) { found(rule::OUT_024); }
}

}  // namespace detail

/// Calls `found` with every rule that a single range breaks when tracing is enabled, in the order
/// of their numbers.
///
/// Errors: OUT-022 mask not contiguous; OUT-023 base not aligned to the size; OUT-024 offset
///         outside.
/// Source: OUT-022..024, OUT-029.
template <class Found>
constexpr void find_broken_rules(ia32_rtit_output_base base, ia32_rtit_output_mask_ptrs pointers,
                                 Found&& found) noexcept {
    detail::find_broken_rules(base.raw, mask_of(pointers), address_math::offset_in(pointers.raw),
                              found);
}

/// The first rule, by number, that a single range breaks when tracing is enabled.
///
/// Source: OUT-022..024.
[[nodiscard]] constexpr auto broken_rule(ia32_rtit_output_base base,
                                         ia32_rtit_output_mask_ptrs pointers) noexcept -> rule {
    first_rule first;
    find_broken_rules(base, pointers, first);
    return first.found;
}

/// A request for an output region.
struct region {
    uint64_t base = 0;    ///< physical address, a multiple of the size
    uint64_t bytes = 0;   ///< its size: 128 bytes to 4 GB, a power of two
    uint64_t offset = 0;  ///< the offset of the next byte of trace
};

/// The two output MSRs for a region, or the first broken rule.
struct built {
    rule why = rule::none;
    ia32_rtit_output_base base{};
    ia32_rtit_output_mask_ptrs pointers{};

    constexpr explicit operator bool() const noexcept { return why == rule::none; }
};

/// Calls `found` with every rule that a request breaks.
///
/// Errors: OUT-020 fewer than 128 bytes or more than 4 GB; OUT-022 not a power of two; OUT-023 base
///         not aligned to the size; OUT-024 offset outside; REG-070 base beyond MAXPHYADDR.
/// Source: OUT-020, OUT-022..024, OUT-141, REG-070.
template <class Found>
constexpr void find_broken_rules(region wanted, max_phys_addr width, Found&& found) noexcept {
    if (wanted.bytes < 128 || wanted.bytes > uint64_t{1} << 32) { found(rule::OUT_020); }
    if (wanted.bytes != 0) {
        detail::find_broken_rules(wanted.base, wanted.bytes - 1, wanted.offset, found);
    }
    if (!width.contains(wanted.base)) { found(rule::REG_070); }
}

/// Computes the output MSRs for a region.
///
/// Errors: the first rule that the request breaks; the MSRs are then those of a cold reset.
/// Source: OUT-020, OUT-022..024, REG-070.
[[nodiscard]] constexpr auto build(region wanted, max_phys_addr width = {}) noexcept -> built {
    using pointer = ia32_rtit_output_mask_ptrs;
    constexpr pointer cold{pointer::forced_1_mask()};
    first_rule first;
    find_broken_rules(wanted, width, first);
    if (first.found != rule::none) { return {first.found, {}, cold}; }
    return {.base = {wanted.base},
            .pointers = cold.with(pointer::MaskOrTableOffset{wrapped{wanted.bytes / 128 - 1}},
                                  pointer::OutputOffset{wrapped{wanted.offset}})};
}

}  // namespace ptspec::single_range

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
    return address_math::region_bytes(uint64_t{underlying(size)});
}

/// A ToPA entry that names an output region. With END set it is an `end_entry`.
///
/// Shape:  8 bytes in memory, little-endian.
/// Units:  Base is a physical address, aligned to the region's size.
/// Errors: a reserved bit, a misaligned Base or one beyond MAXPHYADDR is an operational error when
///         the trace unit reaches the entry.
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
/// Units:  NextTable is a physical address, a multiple of 4096. Size is ignored.
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

/// An END entry that links to a table. Address bits 11:0 are dropped.
[[nodiscard]] constexpr auto link_to(uint64_t next_table) noexcept -> entry {
    return entry{
        end_entry{}.with(end_entry::END{true}, end_entry::NextTable{wrapped{next_table}}).raw};
}

// ------------------------------------------------------------------------------------ rules

/// Calls `found` with every rule that the address of an entry breaks, in the order of their
/// numbers. `base` is the requested address, with the bits 11:0 that an entry does not hold.
///
/// Errors: OUT-061 a next table not at a multiple of 4 KB; OUT-062 a region not aligned to its
///         size; OUT-063 an address beyond MAXPHYADDR.
/// Source: OUT-042, OUT-061..063.
template <class Found>
constexpr void find_broken_rules_of_base(entry which, uint64_t base, max_phys_addr width,
                                         Found&& found) noexcept {
    bool const end = which.get<entry::END>();
    if (end && !is_aligned(base, 4096)) { found(rule::OUT_061); }
    if (!end && !is_aligned(base, bytes_in(which.get<entry::Size>()))) { found(rule::OUT_062); }
    if (!width.contains(base)) { found(rule::OUT_063); }
}

/// Calls `found` with every rule that an entry breaks at any place in a table, in the order of
/// their numbers.
///
/// Errors: OUT-060 reserved bit; OUT-062, OUT-063 as above; OUT-065 END with INT or STOP.
/// Source: OUT-043, OUT-060..065.
template <class Found>
constexpr void find_broken_rules(entry which, max_phys_addr width, Found&& found) noexcept {
    if (which.reserved_bits_set() != 0) { found(rule::OUT_060); }
    find_broken_rules_of_base(which, which.get<entry::Base>(), width, found);
    if (which.get<entry::END>() && (which.get<entry::INT>() || which.get<entry::STOP>())) {
        found(rule::OUT_065);
    }
}

/// The capabilities of a processor that limit its ToPA tables.
struct limits {
    max_phys_addr width{};
    bool many_entries = true;  ///< CPUID.14H.0:ECX.MENTRY: a table may hold more than one region

    /// The limits of a processor.
    ///
    /// Source: REG-070, REG-163.
    template <class Capabilities>
    [[nodiscard]] static constexpr auto of(Capabilities const& processor) noexcept -> limits {
        return {processor.max_phys_addr(), processor.has_topa_of_many_entries()};
    }

    friend constexpr auto operator==(limits, limits) -> bool = default;
};

/// A place in a table: the table's physical address, and the number of an entry in it.
struct place {
    uint64_t table = 0;
    uint32_t index = 0;

    friend constexpr auto operator==(place, place) -> bool = default;
};

/// Calls `found` with every rule that an entry breaks at its place in a table, in the order of
/// their numbers.
///
/// Errors: those of an entry at any place; OUT-066 END in entry 0. Without MENTRY also OUT-067 an
///         output region that is not entry 0; OUT-068 END to another table.
/// Source: OUT-060..068, OUT-072, OUT-100.
template <class Found>
constexpr void find_broken_rules(entry which, place at, limits of, Found&& found) noexcept {
    bool const end = which.get<entry::END>();
    find_broken_rules(which, of.width, found);
    if (end && at.index == 0) { found(rule::OUT_066); }
    if (of.many_entries) { return; }
    if (!end && at.index != 0) { found(rule::OUT_067); }
    if (end && which.get<entry::Base>() != at.table) { found(rule::OUT_068); }
}

/// The first rule, by number, that an entry breaks at its place in a table.
///
/// Source: OUT-060..068.
[[nodiscard]] constexpr auto broken_rule(entry which, place at, limits of) noexcept -> rule {
    first_rule first;
    find_broken_rules(which, at, of, first);
    return first.found;
}

}  // namespace ptspec::topa

// ---- ptspec/topa/position.hpp ----

/// The output position in a chain of ToPA tables: where the next byte of trace is stored.
namespace ptspec::topa {

using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;

/// The last index that an entry can have: tables have at most 2^25 entries.
///
/// Source: OUT-046.
inline constexpr uint32_t last_index = address_math::max_entries - 1;

/// A place in a chain of tables, as the two output MSRs hold it.
///
/// Units:  `table` is a physical address; `index` counts entries of 8 bytes; `offset` counts bytes
///         from the start of the entry's region.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-046, OUT-050, OUT-053.
struct position {
    uint64_t table = 0;
    uint32_t index = 0;
    uint32_t offset = 0;

    friend constexpr auto operator==(position const&, position const&) -> bool = default;
};

/// The position that the two MSRs hold.
///
/// Source: OUT-050.
[[nodiscard]] constexpr auto position_in(ia32_rtit_output_base base,
                                         ia32_rtit_output_mask_ptrs pointers) noexcept -> position {
    return {base.get<ia32_rtit_output_base::BasePhysAddr>(),
            static_cast<uint32_t>(address_math::index_in(pointers.raw)),
            static_cast<uint32_t>(address_math::offset_in(pointers.raw))};
}

/// IA32_RTIT_OUTPUT_BASE for a position. Address bits 6:0 are dropped.
[[nodiscard]] constexpr auto base_of(position where) noexcept -> ia32_rtit_output_base {
    return ia32_rtit_output_base{}.with(ia32_rtit_output_base::BasePhysAddr{wrapped{where.table}});
}

/// IA32_RTIT_OUTPUT_MASK_PTRS for a position.
///
/// Source: OUT-050.
[[nodiscard]] constexpr auto mask_ptrs_of(position where) noexcept -> ia32_rtit_output_mask_ptrs {
    return {address_math::pointers_of(uint64_t{where.index}, uint64_t{where.offset})};
}

/// The physical address of the current entry, the manual's table pointer.
///
/// Source: OUT-050.
[[nodiscard]] constexpr auto table_pointer(position where) noexcept -> uint64_t {
    return address_math::table_pointer(where.table, uint64_t{where.index});
}

/// The physical address at which the next byte of trace is stored. `current` is the entry at
/// `where`.
///
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-051.
[[nodiscard]] constexpr auto trace_store_phys_addr(position where, entry current) noexcept
    -> uint64_t {
    return current.get<entry::Base>() + where.offset;
}

/// The number of bytes until the current region is full; 0 when the offset is outside the region.
///
/// Source: OUT-052, OUT-064.
[[nodiscard]] constexpr auto bytes_left(position where, entry current) noexcept -> uint64_t {
    uint64_t const size = bytes_in(current.get<entry::Size>());
    return where.offset < size ? size - where.offset : 0;
}

/// The position after a full region: the next entry, or, after the last possible entry, the first
/// entry of the same table.
///
/// Source: OUT-053, OUT-055.
[[nodiscard]] constexpr auto next_entry(position full) noexcept -> position {
    return {full.table, static_cast<uint32_t>(address_math::next_index(uint64_t{full.index})), 0};
}

/// The position that an END entry links to: entry 0 of the next table.
///
/// Source: OUT-054.
[[nodiscard]] constexpr auto follow_end(entry end) noexcept -> position {
    return {end_entry{end.raw}.get<end_entry::NextTable>(), 0, 0};
}

/// The position after `bytes` more bytes, at most `bytes_left`, in a region without STOP. When they
/// fill the region it is the next entry, which may be an END entry.
///
/// Source: OUT-051..053, OUT-055.
[[nodiscard]] constexpr auto advanced(position where, entry current, uint64_t bytes) noexcept
    -> position {
    uint64_t const size = underlying(current.get<entry::Size>());
    uint64_t const offset = where.offset;
    uint64_t const index = address_math::index_after(uint64_t{where.index}, offset, bytes, size);
    return {where.table, static_cast<uint32_t>(index),
            static_cast<uint32_t>(
                address_math::offset_after(offset, bytes, address_math::region_bytes(size) - 1))};
}

}  // namespace ptspec::topa

// ---- ptspec/topa/table.hpp ----

/// Tables of Physical Addresses, built and checked at compile time or at run time.
namespace ptspec {

namespace build_error {
void a_table_must_begin_at_a_multiple_of_4_KB();
void a_region_must_be_aligned_to_its_own_size();
void an_address_must_lie_below_the_physical_width();
void a_table_must_have_an_output_region();
void this_processor_takes_one_region_so_use_single_entry();
void a_run_time_table_needs_try_ring_or_its_like();
void an_interrupt_must_come_before_the_last_region();
}  // namespace build_error

namespace topa {

/// A request for an output region.
struct region {
    uint64_t base = 0;  ///< physical address, a multiple of the size
    region_size size = region_size::size_4K;
    bool interrupt = false;  ///< INT: a PMI when the region is full
    bool stop = false;       ///< STOP: stop tracing when the region is full

    friend constexpr auto operator==(region const&, region const&) -> bool = default;
};

/// The entry for a region. Address bits 11:0 are dropped.
[[nodiscard]] constexpr auto entry_for(region which) noexcept -> entry {
    return entry{}.with(entry::INT{which.interrupt}, entry::STOP{which.stop},
                        entry::Size{which.size}, entry::Base{wrapped{which.base}});
}

/// A table as in memory. It must be placed at the physical address that it was built for, a
/// multiple of 4096.
template <size_t Entries>
struct table {
    entry entries[Entries];

    [[nodiscard]] static constexpr auto size() noexcept -> size_t { return Entries; }
    friend constexpr auto operator==(table const&, table const&) -> bool = default;
};

/// A broken rule, and the entry that breaks it.
struct finding {
    rule broken = rule::none;
    place at{};

    friend constexpr auto operator==(finding, finding) -> bool = default;
};

/// A table, or the first broken rule. The table is all zero on an error.
template <size_t Entries>
struct built {
    finding why{};
    topa::table<Entries> table{};

    constexpr explicit operator bool() const noexcept { return why.broken == rule::none; }
};

/// What follows the last region of a table.
struct ending {
    bool is_link = false;
    uint64_t next_table = 0;  ///< for a link
};

/// No link: the last region has STOP.
inline constexpr ending no_link{};
[[nodiscard]] constexpr auto link(uint64_t next_table) noexcept -> ending {
    return {true, next_table};
}

namespace detail {

constexpr auto check_table_base(uint64_t base, max_phys_addr width) noexcept -> rule {
    return !is_aligned(base, 4096) ? rule::OUT_061
           : !width.contains(base) ? rule::OUT_063
                                   : rule::none;
}

/// The rule that a region breaks. Checks the base bits 11:0, too, which an entry does not hold.
constexpr auto check_region(region which, place at, limits of) noexcept -> rule {
    return !is_aligned(which.base, 4096) ? rule::OUT_062 : broken_rule(entry_for(which), at, of);
}

/// The rule that the end of a table breaks.
constexpr auto check_ending(ending end, bool stops, place at, limits of) noexcept -> rule {
    if (!end.is_link) {
        return !stops ? rule::OUT_056 : !of.many_entries ? rule::OUT_067 : rule::none;
    }
    rule const broken = check_table_base(end.next_table, of.width);
    return broken != rule::none ? broken : broken_rule(link_to(end.next_table), at, of);
}

}  // namespace detail

/// Writes a table of `count` regions, `region_at(0)` and so on, and a link if `end` is one, into
/// `to`, which has room for `count` entries and one more for a link. All builders use it. Call it
/// directly when the number of regions is known only at run time.
///
/// Units:  `base` is the physical address of the table.
/// Errors: OUT-061 a table's address not a multiple of 4 KB; OUT-062 region not aligned to its
///         size; OUT-063 an address beyond the width; OUT-066 no region; OUT-046 too many regions;
///         OUT-071 an entry beyond the width, reported for the last entry; OUT-056 no link, and the
///         last region has no STOP. Without MENTRY also OUT-067 more than one region, or no link;
///         OUT-068 a link to another table. Nothing is then written.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-043, OUT-045..047, OUT-056,
///         OUT-060..068, OUT-071, OUT-072.
template <class RegionAt>
[[nodiscard]] constexpr auto write_table(limits of, uint64_t base, size_t count,
                                         RegionAt const& region_at, ending end, entry* to) noexcept
    -> finding {
    constexpr uint64_t most = address_math::max_entries;
    if (count > most - (end.is_link ? 1 : 0)) { return {rule::OUT_046, {base, most - 1}}; }
    place at{base, static_cast<uint32_t>(count)};
    if (rule const broken = detail::check_table_base(base, of.width); broken != rule::none) {
        return {broken, at};
    }
    if (count == 0) { return {rule::OUT_066, at}; }
    place const last{base, end.is_link ? at.index : at.index - 1};
    if (!of.width.contains(address_math::table_pointer(base, uint64_t{last.index}))) {
        return {rule::OUT_071, last};
    }
    for (at.index = 0; at.index < count; ++at.index) {
        rule const broken = detail::check_region(region_at(at.index), at, of);
        if (broken != rule::none) { return {broken, at}; }
    }
    rule const broken = detail::check_ending(end, region_at(count - 1).stop, at, of);
    if (broken != rule::none) { return {broken, at}; }
    for (size_t i = 0; i < count; ++i) { to[i] = entry_for(region_at(i)); }
    if (end.is_link) { to[count] = link_to(end.next_table); }
    return {};
}
[[nodiscard]] constexpr auto write_table(limits of, uint64_t base, region const* regions,
                                         size_t count, ending end, entry* to) noexcept -> finding {
    return write_table(of, base, count, [=](size_t i) { return regions[i]; }, end, to);
}

}  // namespace topa

}  // namespace ptspec

// ---- ptspec/topa/table_site.hpp ----

namespace ptspec::topa {

/// The physical address of a table, and the limits of its processor.
struct table_site {
    uint64_t base;  ///< physical address
    limits of;

    /// The cast avoids a warning inside this header when the address is an int.
    constexpr table_site(integral auto table, limits processor = {}) noexcept
        : base{static_cast<uint64_t>(table)}, of{processor} {}
};

namespace detail {

/// A site, or the address of a table.
template <class At>
concept table_site_like = convertible_to<At const&, table_site>;

constexpr auto is_known(table_site const& at) noexcept -> bool {
    return ptspec::detail::is_known(at.base);
}
constexpr auto is_known(region const& which) noexcept -> bool {
    return ptspec::detail::is_known(which.base);
}
constexpr auto is_known(integral auto const& number) noexcept -> bool {
    return ptspec::detail::is_known(number);
}

/// Stops the build when an argument of a builder is not a constant.
constexpr void require_constants(auto const&... arguments) {
    if (!(is_known(arguments) && ...)) {
        build_error::a_run_time_table_needs_try_ring_or_its_like();
    }
}

}  // namespace detail

}  // namespace ptspec::topa

// ---- ptspec/topa/builders.hpp ----

/// Builders of the usual ToPA tables. Each has two forms: `try_ring` works at run time and in
/// templates and returns an error; `ring` is checked at compile time, and a mistake stops the build
/// with its name and the numbers of the table and the entry.
///
/// Regions are given in the order in which they are filled. Tracing starts with
/// IA32_RTIT_OUTPUT_BASE = the address of the table and IA32_RTIT_OUTPUT_MASK_PTRS = 7FH.
namespace ptspec::topa {

namespace detail {

/// Stops the build with the mistake's name.
constexpr void check_entry([[maybe_unused]] size_t table, [[maybe_unused]] size_t index,
                           rule broken) {
    switch (broken) {
        case rule::none: return;
        case rule::OUT_061: return build_error::a_table_must_begin_at_a_multiple_of_4_KB();
        case rule::OUT_062: return build_error::a_region_must_be_aligned_to_its_own_size();
        case rule::OUT_063:
        case rule::OUT_071: return build_error::an_address_must_lie_below_the_physical_width();
        case rule::OUT_067:
        case rule::OUT_068:
            return build_error::this_processor_takes_one_region_so_use_single_entry();
        case rule::OUT_093: return build_error::an_interrupt_must_come_before_the_last_region();
        default: return build_error::a_table_must_have_an_output_region();
    }
}

/// One call for each entry, so that compilers show which one is wrong: g++ shows an argument as it
/// is written, and clang 14 and 16 show no template arguments.
template <size_t Table, size_t... Index>
constexpr void check_entries(index_list<Index...>, finding why) {
    (check_entry(Table, Index, why.at.index == Index ? why.broken : rule::none), ...);
}

template <size_t Entries>
constexpr auto checked(built<Entries> const& result) -> table<Entries> {
    check_entries<0>(make_index_list<Entries + 1>{}, result.why);
    return result.table;
}

/// Builds a table of all regions of the array except the last, a dummy that keeps the array from
/// being empty.
template <size_t Entries, size_t Room>
constexpr auto build(table_site at, region const (&regions)[Room], ending end) noexcept
    -> built<Entries> {
    built<Entries> result;
    result.why = write_table(at.of, at.base, regions, Room - 1, end, result.table.entries);
    return result;
}

}  // namespace detail

// ------------------------------------------------------------------------------------ links

/// A table with the regions in order, then a link to the table at `next`. For chains that grow or
/// change at run time.
///
/// Errors: OUT-061, OUT-062, OUT-063, OUT-066; without MENTRY OUT-067, OUT-068.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-043, OUT-045, OUT-047.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_linked(table_site at, uint64_t next, Regions... regions) noexcept
    -> built<sizeof...(Regions) + 1> {
    return detail::build<sizeof...(Regions) + 1>(at, {regions..., region{}}, link(next));
}
template <detail::table_site_like At = table_site, same_as<region>... Regions>
[[nodiscard]] consteval auto linked(At const& at, uint64_t const& next, Regions const&... regions) {
    detail::require_constants(at, next, regions...);
    return detail::checked(try_linked(at, next, regions...));
}

/// A ring: the regions in order, then a link back to the table itself. It keeps the newest bytes.
///
/// Errors: as `try_linked`.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-047, OUT-056, PRG-128.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_ring(table_site at, Regions... regions) noexcept
    -> built<sizeof...(Regions) + 1> {
    return try_linked(at, at.base, regions...);
}
template <detail::table_site_like At = table_site, same_as<region>... Regions>
[[nodiscard]] consteval auto ring(At const& at, Regions const&... regions) {
    detail::require_constants(at, regions...);
    return detail::checked(try_ring(at, regions...));
}

/// A ring of one region, which every processor with ToPA accepts. With `interrupt` or `stop`, every
/// processor that takes only one region raises the PMI before the region is full, and stops when it
/// is full.
///
/// Errors: OUT-061, OUT-062, OUT-063.
/// Source: OUT-100..103.
[[nodiscard]] constexpr auto try_single_entry(table_site at, region which) noexcept -> built<2> {
    return try_ring(at, which);
}
template <detail::table_site_like At = table_site>
[[nodiscard]] consteval auto single_entry(At const& at, region const& which) {
    detail::require_constants(at, which);
    return detail::checked(try_single_entry(at, which));
}

// ------------------------------------------------------------------------------------ when full

/// The regions in order, STOP on the last, no link. It keeps the oldest bytes; the trace may end
/// inside a packet.
///
/// Errors: OUT-061, OUT-062, OUT-063, OUT-066; OUT-067 without MENTRY, where STOP also needs a
///         link: see `try_single_entry`.
/// Source: OUT-045, OUT-080, PRG-128.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_stop_on_full(table_site at, Regions... regions) noexcept {
    constexpr size_t count = sizeof...(Regions);
    region wanted[count + 1] = {regions..., region{}};
    if (count != 0) { wanted[count - 1].stop = true; }
    return detail::build < count == 0 ? 1 : count > (at, wanted, no_link);
}
template <detail::table_site_like At = table_site, same_as<region>... Regions>
[[nodiscard]] consteval auto stop_on_full(At const& at, Regions const&... regions) {
    detail::require_constants(at, regions...);
    return detail::checked(try_stop_on_full(at, regions...));
}

/// A ring with INT on the region before the last: while the interrupt is handled, the trace goes
/// into the last region. Bytes are overwritten when the handler is later than that.
///
/// Errors: as `try_ring`; OUT-093 fewer than two regions.
/// Source: OUT-093, PRG-128.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_interrupt_on_full(table_site at, Regions... regions) noexcept
    -> built<sizeof...(Regions) + 1> {
    constexpr size_t count = sizeof...(Regions);
    if constexpr (count < 2) {
        return {.why = {rule::OUT_093, {at.base, count}}};
    } else {
        region wanted[count + 1] = {regions..., region{}};
        wanted[count - 2].interrupt = true;
        return detail::build<count + 1>(at, wanted, link(at.base));
    }
}
template <detail::table_site_like At = table_site, same_as<region>... Regions>
[[nodiscard]] consteval auto interrupt_on_full(At const& at, Regions const&... regions) {
    detail::require_constants(at, regions...);
    return detail::checked(try_interrupt_on_full(at, regions...));
}

/// INT on the region before the last, INT and STOP on the last, no link: nothing is overwritten
/// when the handler is late.
///
/// Errors: as `try_stop_on_full`; OUT-093 fewer than two regions.
/// Source: OUT-083, OUT-093, PRG-128.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_interrupt_and_stop(table_site at, Regions... regions) noexcept
    -> built<sizeof...(Regions) == 0 ? 1 : sizeof...(Regions)> {
    constexpr size_t count = sizeof...(Regions);
    if constexpr (count < 2) {
        return {.why = {rule::OUT_093, {at.base, count}}};
    } else {
        region wanted[count + 1] = {regions..., region{}};
        wanted[count - 2].interrupt = true;
        wanted[count - 1].interrupt = true;
        wanted[count - 1].stop = true;
        return detail::build<count>(at, wanted, no_link);
    }
}
template <detail::table_site_like At = table_site, same_as<region>... Regions>
[[nodiscard]] consteval auto interrupt_and_stop(At const& at, Regions const&... regions) {
    detail::require_constants(at, regions...);
    return detail::checked(try_interrupt_and_stop(at, regions...));
}

// ------------------------------------------------------------------------------------ chains

/// A request for one table of a chain.
template <size_t Count>
struct part {
    table_site at;
    region regions[Count];
};
template <same_as<region>... Regions>
    requires(sizeof...(Regions) != 0)
[[nodiscard]] constexpr auto table_at(table_site at, Regions... regions) noexcept
    -> part<sizeof...(Regions)> {
    return {at, {regions...}};
}

namespace detail {

template <size_t Number, size_t Entries>
struct numbered_table {
    topa::table<Entries> table{};

    friend constexpr auto operator==(numbered_table const&, numbered_table const&)
        -> bool = default;
};
template <size_t Number, size_t Entries>
constexpr auto table_of(numbered_table<Number, Entries>& one) noexcept -> table<Entries>& {
    return one.table;
}
template <size_t Number, size_t Entries>
constexpr auto table_of(numbered_table<Number, Entries> const& one) noexcept
    -> table<Entries> const& {
    return one.table;
}

template <class Numbers, size_t... Entries>
struct numbered_tables;
template <size_t... Number, size_t... Entries>
struct numbered_tables<index_list<Number...>, Entries...> : numbered_table<Number, Entries>... {
    friend constexpr auto operator==(numbered_tables const&, numbered_tables const&)
        -> bool = default;
};

}  // namespace detail

/// The tables of a chain. Each must be placed at the physical address that it was built for.
template <size_t... Entries>
struct tables : detail::numbered_tables<make_index_list<sizeof...(Entries)>, Entries...> {
    /// The table with a number, starting at 0.
    template <size_t Number>
    [[nodiscard]] constexpr auto get() const noexcept -> auto const& {
        return detail::table_of<Number>(*this);
    }
    friend constexpr auto operator==(tables const&, tables const&) -> bool = default;
};

/// A chain of tables, or the first broken rule.
template <size_t... Entries>
struct built_chain {
    finding why{};
    size_t number = 0;  ///< the number of the invalid table
    topa::tables<Entries...> tables{};

    constexpr explicit operator bool() const noexcept { return why.broken == rule::none; }
};

namespace detail {

template <size_t... Number, size_t... Count>
constexpr auto build_chain(index_list<Number...>, part<Count> const&... parts) noexcept
    -> built_chain<(Count + 1)...> {
    constexpr size_t last = sizeof...(Count) - 1;
    uint64_t const bases[] = {parts.at.base...};
    built_chain<(Count + 1)...> result;
    auto const write = [&](size_t number, auto const& wanted, size_t count, entry* to) {
        if (!result) { return; }
        uint64_t const next = bases[number == last ? 0 : number + 1];
        result.why = write_table(wanted.at.of, wanted.at.base, wanted.regions, count, link(next),
                                 to);
        result.number = number;
    };
    (write(Number, parts, Count, table_of<Number>(result.tables).entries), ...);
    return result ? result
                  : built_chain<(Count + 1)...>{.why = result.why, .number = result.number};
}

template <size_t... Number, size_t... Entries>
constexpr auto checked(index_list<Number...>, built_chain<Entries...> const& result)
    -> tables<Entries...> {
    (check_entries<Number>(make_index_list<Entries>{},
                           result.number == Number ? result.why : finding{}),
     ...);
    return result.tables;
}

}  // namespace detail

/// A chain of tables, each linked to the next and the last to the first:
/// `try_chain(table_at(0x1000, one, two), table_at(0x2000, three))`.
///
/// Errors: as `try_linked`, for the first invalid table.
/// Source: OUT-047, OUT-142, PRG-128.
template <size_t... Count>
    requires(sizeof...(Count) != 0)
[[nodiscard]] constexpr auto try_chain(part<Count> const&... parts) noexcept
    -> built_chain<(Count + 1)...> {
    return detail::build_chain(make_index_list<sizeof...(Count)>{}, parts...);
}
template <size_t... Count>
    requires(sizeof...(Count) != 0)
[[nodiscard]] consteval auto chain(part<Count> const&... parts) {
    detail::require_constants(parts.at...);
    return detail::checked(make_index_list<sizeof...(Count)>{}, try_chain(parts...));
}

}  // namespace ptspec::topa

// ---- ptspec/topa/regions_for_pages.hpp ----

/// Output regions for pages that an allocator chose.
namespace ptspec::topa {

/// The result of `regions_for_pages`.
struct page_regions {
    size_t regions = 0;        ///< the number of regions passed to `take`
    rule broken = rule::none;  ///< the rule that a page breaks
    size_t page = 0;           ///< the number of that page

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
    friend constexpr auto operator==(page_regions, page_regions) -> bool = default;
};

/// The largest region that starts at an address and has at most `max_bytes` bytes, but at least 4
/// KB. The address must be a multiple of 4 KB.
///
/// Source: OUT-041, OUT-042.
[[nodiscard]] constexpr auto largest_region(uint64_t base, uint64_t max_bytes) noexcept -> region {
    unsigned const size_limit = highest_bit(max_bytes | 4096);
    unsigned const alignment = lowest_bit(base | uint64_t{1} << 27);  // 128 MB at most
    unsigned const bit = size_limit < alignment ? size_limit : alignment;
    return {.base = base, .size = static_cast<region_size>(bit - 12)};
}

/// Calls `take(region)` with the fewest regions that cover exactly these pages of 4 KB, in this
/// order. Contiguous pages are merged, and each region is aligned to its size. The pages are filled
/// in this order: sort them first if the order is free.
///
/// Units:  `pages` are physical addresses.
/// Errors: OUT-062 a page that is not at a multiple of 4 KB; OUT-063 a page beyond the width. Then
///         `take` is not called.
/// Source: OUT-041, OUT-042, OUT-141.
template <class Take>
[[nodiscard]] constexpr auto regions_for_pages(uint64_t const* pages, size_t count,
                                               max_phys_addr width, Take&& take) noexcept
    -> page_regions {
    for (size_t i = 0; i < count; ++i) {
        if (!is_aligned(pages[i], 4096)) { return {0, rule::OUT_062, i}; }
        if (!width.contains(pages[i])) { return {0, rule::OUT_063, i}; }
    }
    page_regions result;
    for (size_t i = 0; i < count;) {
        size_t run = 1;
        while (i + run < count && pages[i + run] - pages[i] == run * uint64_t{4096}) { ++run; }
        for (uint64_t left = run * uint64_t{4096}, at = pages[i]; left != 0;) {
            region const next = largest_region(at, left);
            take(next);
            ++result.regions;
            at += bytes_in(next.size);
            left -= bytes_in(next.size);
        }
        i += run;
    }
    return result;
}

}  // namespace ptspec::topa

// ---- ptspec/topa/set_int_and_stop.hpp ----

/// Places INT and STOP in a ring that is read while it is written.
namespace ptspec::topa {

/// The state of a ring's reader, as numbers of regions.
struct int_and_stop {
    size_t unread = 0;   ///< the region that holds the oldest unread byte
    size_t wake_up = 0;  ///< the region whose INT wakes the reader
};

/// Sets INT and STOP in the regions of a ring, `count` entries in the order in which they are
/// filled: STOP and INT on the region before the unread bytes, so that no unread byte is
/// overwritten; INT on the region that wakes the reader; neither on the others. Call it while
/// TraceEn is 0, before each enable. A ring of one region gets both, and its interrupt is raised
/// early.
///
/// Errors: false when a number is out of range; nothing is then changed.
/// Source: OUT-093, OUT-094.
[[nodiscard]] constexpr auto set_int_and_stop(entry* regions, size_t count,
                                              int_and_stop where) noexcept -> bool {
    if (where.unread >= count || where.wake_up >= count) { return false; }
    size_t const last_free = (where.unread == 0 ? count : where.unread) - 1;
    for (size_t i = 0; i < count; ++i) {
        bool const stops = i == last_free;
        regions[i] = regions[i].with(entry::STOP{stops}, entry::INT{stops || i == where.wake_up});
    }
    return true;
}

}  // namespace ptspec::topa

// ---- ptspec/topa/restricted.hpp ----

/// Restricted memory, into which trace must not be stored.
namespace ptspec::topa {

/// The physical addresses from `first` to `last`, both inclusive. Empty when `last` is lower.
struct address_span {
    uint64_t first = 0;
    uint64_t last = 0;
};

/// A run of addresses that are all restricted, or all unrestricted.
struct address_run {
    bool restricted = false;
    uint64_t last = 0;  ///< the last address of the run
};

/// The SMRR range of a processor, and other ranges that its platform protects in the same way.
///
/// Source: SDM vol. 3, "Restricted Memory Access"; OUT-110, OUT-114, OUT-116.
struct restricted_memory {
    reg::ia32_smrr_physbase smrr_physbase{};
    reg::ia32_smrr_physmask smrr_physmask{};
    address_span const* extra = nullptr;  ///< borrowed
    size_t extra_count = 0;

    /// True when nothing is restricted.
    [[nodiscard]] constexpr auto is_empty() const noexcept -> bool {
        return extra_count == 0 && !smrr_physmask.get<reg::ia32_smrr_physmask::Valid>();
    }

    /// Whether an address is restricted, and a run of addresses from it on for which this is the
    /// same. The run may be shorter than possible.
    ///
    /// Source: OUT-110, OUT-116, OUT-144.
    [[nodiscard]] constexpr auto run_from(uint64_t address) const noexcept -> address_run {
        address_run found{false, ~uint64_t{0}};
        if (is_empty()) { return found; }
        auto const until = [&](uint64_t last) {
            if (last < found.last) { found.last = last; }
        };
        constexpr uint64_t below_4G = low_bits(32);
        if (smrr_physmask.get<reg::ia32_smrr_physmask::Valid>() && address <= below_4G) {
            // Bits below the lowest bit of the mask are not compared.
            uint64_t const mask = smrr_physmask.get<reg::ia32_smrr_physmask::PhysMask>();
            uint64_t const base = smrr_physbase.get<reg::ia32_smrr_physbase::PhysBase>();
            found.restricted = ((address ^ base) & mask) == 0;
            until(address | (mask == 0 ? below_4G : (mask & (0 - mask)) - 1));
        }
        for (size_t i = 0; i < extra_count; ++i) {
            auto const& one = extra[i];
            if (one.last < one.first || one.last < address) { continue; }
            if (address < one.first) {
                until(one.first - 1);
            } else {
                found.restricted = true;
                until(one.last);
            }
        }
        return found;
    }

    /// True when one of `bytes` bytes from `address` is restricted. `bytes` is not 0.
    [[nodiscard]] constexpr auto touches(uint64_t address, uint64_t bytes) const noexcept -> bool {
        if (is_empty()) { return false; }
        for (;;) {
            auto const here = run_from(address);
            if (here.restricted) { return true; }
            uint64_t const left = here.last - address;
            if (left >= bytes - 1) { return false; }
            bytes -= left + 1;
            address = here.last + 1;
        }
    }
};

/// True when one of `bytes` bytes from `address` is in the page of the local APIC. `bytes` is not
/// 0. The processor signals no error for such output; its effect is undefined.
///
/// Source: SDM vol. 3, "Restricted Memory Access"; OUT-113.
[[nodiscard]] constexpr auto touches(reg::ia32_apic_base apic, uint64_t address,
                                     uint64_t bytes) noexcept -> bool {
    if (!apic.get<reg::ia32_apic_base::EN>()) { return false; }
    uint64_t const page = apic.get<reg::ia32_apic_base::ApicBase>();
    return address > page ? address - page < 4096 : page - address < bytes;
}

}  // namespace ptspec::topa

// ---- ptspec/topa/walk.hpp ----

/// Walks over chains of tables in memory, for the trace unit and for readers of a trace.
///
/// The tables are untrusted: every walk is bounded.
namespace ptspec::topa {

/// The result of loading an entry: the position of the trace unit after END entries.
struct loaded_entry {
    position where{};  ///< after following END; on an error the position of the invalid entry
    entry current{};   ///< the entry at that position, if it was read
    rule broken = rule::none;  ///< the rule of the operational error
    port_fault fault{};        ///< the load failed: retry it

    /// True when the entry is a valid output region.
    constexpr explicit operator bool() const noexcept { return broken == rule::none && !fault; }
};

/// Loads the entry at a position. An END is followed to the first entry of the next table. An END
/// in entry 0 is an error, so at most two entries are read, each once.
///
/// Errors: OUT-061 table not at a multiple of 4 KB; OUT-071 entry beyond MAXPHYADDR; OUT-091 entry
///         in restricted memory; the rules that the entry breaks at its place.
/// Source: SDM vol. 3, "ToPA Errors", "Restricted Memory Access"; OUT-047, OUT-050, OUT-054,
///         OUT-057, OUT-060..068, OUT-071, OUT-091, OUT-112.
template <memory_port Memory>
[[nodiscard]] constexpr auto load_entry(Memory& memory, position where, limits of,
                                        restricted_memory const& restricted = {}) noexcept
    -> loaded_entry {
    for (;;) {
        uint64_t const address = table_pointer(where);
        rule const misplaced = !is_aligned(where.table, 4096)               ? rule::OUT_061
                               : !of.width.contains(where.table | address)  ? rule::OUT_071
                               : restricted.touches(address, sizeof(entry)) ? rule::OUT_091
                                                                            : rule::none;
        if (misplaced != rule::none) { return {.where = where, .broken = misplaced}; }
        auto const word = memory.load(address);
        if (!word) { return {.where = where, .fault = {true, address}}; }
        entry const current{word.value};
        rule const broken = broken_rule(current, {where.table, where.index}, of);
        if (broken != rule::none || !current.get<entry::END>()) {
            return {.where = where, .current = current, .broken = broken};
        }
        where = follow_end(current);
    }
}

/// Loads the entry at which tracing is enabled. The offset must be inside the region, unless an END
/// was followed: then it is 0.
///
/// Errors: as `load_entry`; OUT-064 offset outside the region.
/// Source: OUT-006, OUT-057, OUT-058, OUT-064.
template <memory_port Memory>
[[nodiscard]] constexpr auto enter(Memory& memory, position where, limits of,
                                   restricted_memory const& restricted = {}) noexcept
    -> loaded_entry {
    auto at = load_entry(memory, where, of, restricted);
    if (at && bytes_left(at.where, at.current) == 0) { at.broken = rule::OUT_064; }
    return at;
}

// ------------------------------------------------------------------------------------ distances

/// The number of bytes from one position to another.
struct distance {
    bool reached = false;
    uint64_t bytes = 0;        ///< the distance; if not reached, the bytes walked over
    rule broken = rule::none;  ///< the rule that an entry on the way breaks
    port_fault fault{};

    constexpr explicit operator bool() const noexcept { return reached; }
};

/// Counts the bytes of trace between two positions in a chain of tables: the bytes written since
/// `from` when the trace unit is at `to` and has wrapped at most once. Equal positions have
/// distance 0, not a whole ring.
///
/// Units:  `max_regions` bounds the walk.
/// Errors: not reached: the rule of an entry on the way, OUT-064 `to` after the end of its region,
///         a failing port, or none of these when the bound was reached.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-053..055, PRG-129, PRG-143.
template <memory_port Memory>
[[nodiscard]] constexpr auto bytes_between(Memory& memory, position from, position to, limits of,
                                           uint64_t max_regions = 0x1'0000) noexcept -> distance {
    distance walked;
    for (uint64_t i = 0; i <= max_regions; ++i) {
        auto const at = load_entry(memory, from, of);
        if (!at) { return {false, walked.bytes, at.broken, at.fault}; }
        from = at.where;
        if (from.table == to.table && from.index == to.index && from.offset <= to.offset) {
            entry const current = at.current;
            if (to.offset > bytes_in(current.get<entry::Size>())) {
                return {false, walked.bytes, rule::OUT_064, {}};
            }
            return {true, walked.bytes + (to.offset - from.offset), rule::none, {}};
        }
        walked.bytes += bytes_left(from, at.current);
        from = next_entry(from);
    }
    return walked;
}

// ------------------------------------------------------------------------------------ tables

/// How the entries of a table end.
enum class table_end : uint8_t {
    link,           ///< END: a link to another table or to the same
    stop,           ///< STOP: tracing stops
    wraps,          ///< the last possible entry: the first entry follows
    limit_reached,  ///< the bound of the walk was reached before an END or STOP
    unreadable,     ///< the memory port failed
};

/// How a walk over the entries of a table ended.
struct table_walk {
    table_end how = table_end::link;
    place last{};             ///< the entry at which it ended
    uint64_t next_table = 0;  ///< for a link
};

/// Calls `visit(place, entry)` for the entries of a table, from the first to the first END or STOP.
/// Other errors in entries are ignored. At most `max_entries` are read, each once; 512 fill a
/// page.
///
/// Source: OUT-045, OUT-055, OUT-056.
template <memory_port Memory, class Visit>
[[nodiscard]] constexpr auto for_each_entry(Memory& memory, uint64_t table, uint64_t max_entries,
                                            Visit&& visit) noexcept -> table_walk {
    place at{table, 0};
    for (uint64_t i = 0; i < max_entries; ++i, ++at.index) {
        auto const word = memory.load(address_math::table_pointer(table, i));
        if (!word) { return {table_end::unreadable, at, 0}; }
        entry const current{word.value};
        visit(at, current);
        if (current.get<entry::END>()) { return {table_end::link, at, follow_end(current).table}; }
        if (current.get<entry::STOP>()) { return {table_end::stop, at, 0}; }
        if (i == last_index) { return {table_end::wraps, at, 0}; }
    }
    return {table_end::limit_reached, at, 0};
}

/// The shape of a chain of tables.
struct chain_shape {
    uint64_t tables = 0;   ///< the number of distinct tables, up to the bound
    bool closes = false;   ///< the last links to an earlier one, or to itself
    uint64_t back_to = 0;  ///< the number of that table, from 0
};

/// Finds how many tables a chain has, and where it closes. For a chain of more than `max_tables`
/// tables only `tables` = `max_tables` is returned. Up to 8 * `max_tables` tables are walked; one
/// table may be walked many times.
///
/// Source: OUT-047.
template <memory_port Memory>
[[nodiscard]] constexpr auto shape_of_chain(Memory& memory, uint64_t first,
                                            uint64_t max_entries = 512,
                                            uint64_t max_tables = 0x1'0000) noexcept
    -> chain_shape {
    auto const next = [&](uint64_t& table) {
        auto const walk = for_each_entry(memory, table, max_entries, [](place, entry) {});
        if (walk.how == table_end::wraps) { return true; }
        table = walk.next_table;
        return walk.how == table_end::link;
    };
    // Brent's algorithm: `hare` advances until it meets `tortoise` again.
    uint64_t tortoise = first;
    uint64_t hare = first;
    uint64_t loop_length = 0;
    uint64_t power = 1;
    for (uint64_t tables = 1;; ++tables) {
        if (!next(hare)) { return {tables < max_tables ? tables : max_tables, false, 0}; }
        ++loop_length;
        if (hare == tortoise) { break; }
        // A loop of up to `max_tables` tables is found within three times as many steps.
        if (tables / 3 >= max_tables) { return {max_tables, false, 0}; }
        if (loop_length == power) {
            tortoise = hare;
            power *= 2;
            loop_length = 0;
        }
    }
    // Two pointers that are `loop_length` tables apart meet at the start of the loop.
    uint64_t tail_length = 0;
    tortoise = first;
    hare = first;
    for (uint64_t i = 0; i < loop_length; ++i) { (void)next(hare); }
    for (; tortoise != hare && tail_length < max_tables; ++tail_length) {
        (void)next(tortoise);
        (void)next(hare);
    }
    uint64_t const tables = tail_length + loop_length;
    return tables <= max_tables ? chain_shape{tables, true, tail_length}
                                : chain_shape{max_tables, false, 0};
}

}  // namespace ptspec::topa

// ---- ptspec/topa/validate.hpp ----

/// Checks ToPA tables in memory, of a guest or of a driver, against the rules. Reports every broken
/// rule, not only the first that tracing would hit.
namespace ptspec::topa {

/// Calls `found(finding)` with every rule that the entries of a table break, from the first to the
/// first END or STOP, by entry and then by number.
///
/// Units:  `max_entries` is the number of entries that the table has room for: 512 in a page.
/// Errors: OUT-061, OUT-063 the table's own address, reported for entry 0; OUT-056 neither END nor
///         STOP in the table, reported for the entry after it; OUT-071 an entry beyond MAXPHYADDR;
///         OUT-091 one in restricted memory; the rules of entries. When the port fails, the result
///         is `unreadable` and nothing after that entry is reported.
/// Source: SDM vol. 3, "ToPA Errors", "Restricted Memory Access"; OUT-056, OUT-060..072, OUT-091,
///         OUT-112.
template <memory_port Memory, class Found>
[[nodiscard]] constexpr auto validate(Memory& memory, uint64_t table, limits of, Found&& found,
                                      uint64_t max_entries = 512,
                                      restricted_memory const& restricted = {}) noexcept
    -> table_walk {
    auto const report = [&](place at) {
        return [&found, at](rule broken) { found(finding{broken, at}); };
    };
    find_broken_rules_of_base(link_to(table), table, of.width, report({table, 0}));
    auto const visit = [&](place at, entry current) {
        find_broken_rules(current, at, of, report(at));
        // An entry beyond MAXPHYADDR in a table that starts below it.
        uint64_t const address = table_pointer({table, at.index, 0});
        if (!of.width.contains(address) && of.width.contains(table)) { report(at)(rule::OUT_071); }
        if (restricted.touches(address, sizeof(entry))) { report(at)(rule::OUT_091); }
    };
    auto const entries = for_each_entry(memory, table, max_entries, visit);
    if (entries.how == table_end::limit_reached) { report(entries.last)(rule::OUT_056); }
    return entries;
}

/// The result of validating a chain.
struct chain_walk {
    uint64_t tables = 0;  ///< the number of validated tables
    table_walk last{};    ///< the walk over the last one
};

/// Validates each table of a chain once, in the order of the links. Calls `found(finding)` with
/// every broken rule.
///
/// Units:  `max_entries` is the number of entries that each table has room for; `max_tables`
///         bounds the walk, which also ends at a table that the port cannot read.
/// Errors: as `validate`.
/// Source: OUT-047, OUT-072.
template <memory_port Memory, class Found>
[[nodiscard]] constexpr auto validate_chain(Memory& memory, uint64_t first, limits of,
                                            Found&& found, uint64_t max_entries = 512,
                                            uint64_t max_tables = 0x1'0000,
                                            restricted_memory const& restricted = {}) noexcept
    -> chain_walk {
    auto const shape = shape_of_chain(memory, first, max_entries, max_tables);
    chain_walk result;
    for (uint64_t table = first; result.tables < shape.tables; table = result.last.next_table) {
        result.last = validate(memory, table, of, found, max_entries, restricted);
        ++result.tables;
        if (result.last.how != table_end::link) { break; }
    }
    return result;
}

/// The memory that output must avoid: restricted memory and the page of the local APIC.
struct output_hazards {
    restricted_memory restricted{};
    reg::ia32_apic_base apic{};
};

/// Calls `found` with every warning about a region: legal, but likely a mistake. In the order of
/// the rules' numbers.
///
/// Errors: OUT-070 the region starts at 0, or covers the page of its entry; OUT-111 it overlaps
///         restricted memory; OUT-113 it overlaps the page of the local APIC.
/// Source: SDM vol. 3, "Restricted Memory Access"; OUT-070, OUT-111, OUT-113.
template <class Found>
constexpr void find_warnings(entry which, place at, output_hazards const& hazards,
                             Found&& found) noexcept {
    if (which.get<entry::END>()) { return; }
    uint64_t const base = which.get<entry::Base>();
    uint64_t const size = bytes_in(which.get<entry::Size>());
    uint64_t const page = align_down(table_pointer({at.table, at.index, 0}), 4096);
    bool const covers = base <= page && page - base < size;
    if (base == 0 || covers) { found(rule::OUT_070); }
    if (hazards.restricted.touches(base, size)) { found(rule::OUT_111); }
    if (touches(hazards.apic, base, size)) { found(rule::OUT_113); }
}

}  // namespace ptspec::topa

// ---- ptspec/access/legal.hpp ----

/// Which register values a processor accepts, by what CPUID enumerates. The state of the processor
/// is not considered here; check.hpp does.
namespace ptspec::access {

using cpu::capabilities;
using cpu::output_scheme;
using reg::ia32_rtit_addr;
using reg::ia32_rtit_cr3_match;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_output_base;
using reg::ia32_rtit_status;

namespace detail {

using namespace ptspec::detail;

// Every rule about a value is a type:
//
//   broken                its number in the catalogue
//   forbidden(caps)       the bits that it keeps at 0 on a processor
//   rejects(caps, value)  true if `value`, which has no forbidden bit of the list, breaks it
//
// Legality, the list of broken rules and the mask of writable bits are derived from lists of them.
template <rule Broken>
struct value_rule {
    static constexpr rule broken = Broken;
    static constexpr auto forbidden(capabilities const&) noexcept -> uint64_t { return 0; }
    static constexpr auto rejects(capabilities const&, auto) noexcept -> bool { return false; }
};

/// Reserved bits must be 0.
template <class Word, rule Broken>
struct reserved_bits : value_rule<Broken> {
    static constexpr auto forbidden(capabilities const&) noexcept -> uint64_t {
        return Word::reserved_mask();
    }
};

/// Fields that must be 0 where a bit of a capability leaf is 0.
template <auto Leaf, class Bit, rule Broken, class... Fields>
struct gate : value_rule<Broken> {
#if defined(__GNUC__)
    [[gnu::always_inline]]  // without it a check takes 2.1 times as many instructions (g++ -Os)
#endif
    static constexpr auto
    forbidden(capabilities const& caps) noexcept -> uint64_t {
        return (caps.*Leaf).template get<Bit>() ? 0 : (... | field_mask<Fields>);
    }
};

template <class Bit, rule Broken, class... Fields>
using ebx_gate = gate<&capabilities::leaf_14_0_ebx, Bit, Broken, Fields...>;
template <class Bit, rule Broken, class... Fields>
using ecx_gate = gate<&capabilities::leaf_14_0_ecx, Bit, Broken, Fields...>;

/// ADDRn_CFG accepts encodings 0 to 2, for the ranges that exist.
///
/// Source: REG-037.
struct addr_cfg_rule : value_rule<rule::REG_037> {
    /// ADDR0_CFG to ADDR3_CFG, four bits each. `lowest` has the lowest bit of each.
    static constexpr uint64_t all = field_mask<ia32_rtit_ctl::ADDR0_CFG> |
                                    field_mask<ia32_rtit_ctl::ADDR1_CFG> |
                                    field_mask<ia32_rtit_ctl::ADDR2_CFG> |
                                    field_mask<ia32_rtit_ctl::ADDR3_CFG>;
    static constexpr uint64_t lowest = all / 15;

    static constexpr auto forbidden(capabilities const& caps) noexcept -> uint64_t {
        return all & ~(lowest * 3 & ~(all << 4 * caps.address_ranges()));
    }
    /// Encoding 3: both low bits are 1. Tests all four fields in parallel.
    static constexpr auto rejects(capabilities const&, ia32_rtit_ctl value) noexcept -> bool {
        return (value.raw & value.raw >> 1 & lowest) != 0;
    }
};

/// MTCFreq, CycThresh and PSBFreq accept the encodings that CPUID lists, and 0.
///
/// Source: REG-028, REG-029.
struct frequency_rule : value_rule<rule::REG_028> {
#if defined(__GNUC__)
    [[gnu::always_inline]]  // without it a check takes 4 % more instructions (g++)
#endif
    static constexpr auto
    rejects(capabilities const& caps, ia32_rtit_ctl value) noexcept -> bool {
        return (caps.mtc_periods() >> value.get<ia32_rtit_ctl::MTCFreq>() & 1U) == 0 ||
               (caps.cyc_thresholds() >> value.get<ia32_rtit_ctl::CycThresh>() & 1U) == 0 ||
               (caps.psb_periods() >> value.get<ia32_rtit_ctl::PSBFreq>() & 1U) == 0;
    }
};

/// TraceEn = 1 requires an output scheme that exists: a single range unless ToPA or FabricEn is 1.
///
/// Source: REG-025.
struct output_rule : value_rule<rule::REG_025> {
    static constexpr auto rejects(capabilities const& caps, ia32_rtit_ctl value) noexcept -> bool {
        return !caps.supports(output_scheme::single_range) && value.get<ia32_rtit_ctl::TraceEn>() &&
               !value.get<ia32_rtit_ctl::ToPA>() && !value.get<ia32_rtit_ctl::FabricEn>();
    }
};

/// TraceEn = 1 requires BranchEn = 1 on a processor without MTC.
///
/// Source: REG-040.
struct branch_rule : value_rule<rule::REG_040> {
    static constexpr auto rejects(capabilities const& caps, ia32_rtit_ctl value) noexcept -> bool {
        return !caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::MTC>() &&
               value.get<ia32_rtit_ctl::TraceEn>() && !value.get<ia32_rtit_ctl::BranchEn>();
    }
};

namespace rules {

using ctl = ia32_rtit_ctl;
using ebx = reg::cpuid_14h_0_ebx;
using ecx = reg::cpuid_14h_0_ecx;
using status = ia32_rtit_status;

/// Of every value of IA32_RTIT_CTL, the most specific first.
///
/// Source: REG-024, REG-026..037, REG-044.
using of_ctl = type_list<                                 //
    reserved_bits<ctl, rule::REG_044>,                    //
    ecx_gate<ecx::TOPAOUT, rule::REG_024, ctl::ToPA>,     //
    ecx_gate<ecx::FABRIC, rule::REG_026, ctl::FabricEn>,  //
    ebx_gate<ebx::CPSB_CAM, rule::REG_027, ctl::CYCEn, ctl::CycThresh, ctl::PSBFreq>,
    ebx_gate<ebx::MTC, rule::REG_030, ctl::MTCEn, ctl::MTCFreq>,  //
    ebx_gate<ebx::CR3FILTER, rule::REG_031, ctl::CR3Filter>,      //
    ebx_gate<ebx::PTWRITE, rule::REG_032, ctl::PTWEn, ctl::FUPonPTW>,
    ebx_gate<ebx::PWR_EVT, rule::REG_033, ctl::PwrEvtEn>,  //
    ebx_gate<ebx::INJECTPSBPMI, rule::REG_034, ctl::InjectPsbPmiOnEnable>,
    ebx_gate<ebx::EVENT_TRACE, rule::REG_035, ctl::EventEn>,  //
    ebx_gate<ebx::TNT_DIS, rule::REG_036, ctl::DisTNT>,       //
    addr_cfg_rule, frequency_rule>;

/// Of a value of IA32_RTIT_CTL with TraceEn = 1.
///
/// Source: REG-025, REG-040.
using of_trace_en = type_list<output_rule, branch_rule>;

/// Source: REG-052, REG-054, REG-055.
using of_status = type_list<  //
    reserved_bits<status, rule::REG_052>,
    ebx_gate<ebx::INJECTPSBPMI, rule::REG_054, status::PendPSB, status::PendToPAPMI>,
    ebx_gate<ebx::CPSB_CAM, rule::REG_055, status::PacketByteCnt>>;

}  // namespace rules

template <class... Rules>
#if defined(__GNUC__)
[[gnu::always_inline]]  // without it a check takes 1.6 times as many instructions (clang 19)
#endif
constexpr auto
forbidden_bits(type_list<Rules...>, capabilities const& caps) noexcept -> uint64_t {
    return (... | Rules::forbidden(caps));
}

/// True if a value breaks a rule of the list. One test of a mask covers all rules about bits.
template <class... Rules, class Word>
#if defined(__GNUC__)
[[gnu::always_inline]]  // without it a check takes 3.1 times as many instructions (g++)
#endif
constexpr auto
breaks_any(type_list<Rules...> rules, capabilities const& caps, Word value) noexcept -> bool {
    return (value.raw & forbidden_bits(rules, caps)) != 0 || (... || Rules::rejects(caps, value));
}

/// Calls `found` with every rule of the list that a value breaks.
template <class... Rules, class Word, class Found>
constexpr void find_broken(type_list<Rules...> rules, capabilities const& caps, Word value,
                           Found&& found) noexcept {
    Word const allowed{value.raw & ~forbidden_bits(rules, caps)};
    ((((value.raw & Rules::forbidden(caps)) != 0 || Rules::rejects(caps, allowed))
          ? found(Rules::broken)
          : void()),
     ...);
}

}  // namespace detail

// ------------------------------------------------------------------------------------ CTL

/// The bits of IA32_RTIT_CTL that can be 1 on a processor. A field of several bits may accept only
/// some of its encodings.
///
/// Source: REG-024, REG-026, REG-027, REG-030..037, REG-039, REG-044.
[[nodiscard]] constexpr auto writable_ctl_mask(capabilities const& caps) noexcept -> uint64_t {
    return ~detail::forbidden_bits(detail::rules::of_ctl{}, caps);
}

/// Calls `found` with every rule that a value of IA32_RTIT_CTL breaks by itself, independently of
/// the processor's state: reserved bits and features first, then encodings, then the requirements
/// of TraceEn.
///
/// Source: REG-024..028, REG-030..037, REG-040, REG-044.
template <class Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_ctl value,
                                 Found&& found) noexcept {
    detail::find_broken(detail::rules::of_ctl{}, caps, value, found);
    detail::find_broken(detail::rules::of_trace_en{}, caps, value, found);
}

/// True when a value of IA32_RTIT_CTL breaks no rule by itself.
#if defined(__GNUC__)
[[gnu::always_inline]]  // as breaks_any
#endif
[[nodiscard]] constexpr auto
is_legal(capabilities const& caps, ia32_rtit_ctl value) noexcept -> bool {
    return !detail::breaks_any(detail::rules::of_ctl{}, caps, value) &&
           !detail::breaks_any(detail::rules::of_trace_en{}, caps, value);
}

// ------------------------------------------------------------------------------------ the others

/// The bits of IA32_RTIT_STATUS that raise #GP when written as 1.
///
/// Source: REG-052, REG-054, REG-055.
[[nodiscard]] constexpr auto faulting_status_mask(capabilities const& caps) noexcept -> uint64_t {
    return detail::forbidden_bits(detail::rules::of_status{}, caps);
}

template <class Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_status value,
                                 Found&& found) noexcept {
    detail::find_broken(detail::rules::of_status{}, caps, value, found);
}
[[nodiscard]] constexpr auto is_legal(capabilities const& caps, ia32_rtit_status value) noexcept
    -> bool {
    return (value.raw & faulting_status_mask(caps)) == 0;
}

/// Source: REG-070, REG-071.
[[nodiscard]] constexpr auto is_legal(capabilities const& caps,
                                      ia32_rtit_output_base value) noexcept -> bool {
    return value.reserved_bits_set(caps.max_phys_addr().bits) == 0;
}
template <class Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_output_base value,
                                 Found&& found) noexcept {
    if (!is_legal(caps, value)) { found(rule::REG_070); }
}

/// Source: REG-074.
[[nodiscard]] constexpr auto is_legal(capabilities const&, ia32_rtit_cr3_match value) noexcept
    -> bool {
    return value.reserved_bits_set() == 0;
}
template <class Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_cr3_match value,
                                 Found&& found) noexcept {
    if (!is_legal(caps, value)) { found(rule::REG_074); }
}

/// Source: REG-076.
[[nodiscard]] constexpr auto is_legal(capabilities const& caps, ia32_rtit_addr value) noexcept
    -> bool {
    return is_canonical(value.raw, caps.linear_address_bits());
}
template <class Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_addr value,
                                 Found&& found) noexcept {
    if (!is_legal(caps, value)) { found(rule::REG_076); }
}

/// IA32_RTIT_OUTPUT_MASK_PTRS accepts every value.
///
/// Source: REG-072, REG-073.
[[nodiscard]] constexpr auto is_legal(capabilities const&, reg::ia32_rtit_output_mask_ptrs) noexcept
    -> bool {
    return true;
}
template <class Found>
constexpr void find_broken_rules(capabilities const&, reg::ia32_rtit_output_mask_ptrs,
                                 Found&&) noexcept {}

/// The most specific rule that a value breaks by itself.
template <class Word>
[[nodiscard]] constexpr auto broken_rule(capabilities const& caps, Word value) noexcept -> rule {
    first_rule first;
    find_broken_rules(caps, value, first);
    return first.found;
}

}  // namespace ptspec::access

// ---- ptspec/access/trigger.hpp ----

/// Trigger tracing: which trigger configurations are meaningful. A processor may accept others
/// without a fault, so these rules help to build a configuration, and no check of a WRMSR uses
/// them.
///
/// UNCONFIRMED: most of it has only one source.
namespace ptspec::access {

using cpu::capabilities;
using reg::ia32_rtit_triggerx_cfg;

/// The number of triggers: four for each IA32_RTIT_TRIGGERx_CFG.
///
/// Source: REG-215.
[[nodiscard]] constexpr auto triggers(capabilities const& caps) noexcept -> unsigned {
    using eax = reg::cpuid_14h_1_eax;
    bool const has_triggers = caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::PTTT>() &&
                              caps.leaf_14_0_eax.raw != 0;
    return has_triggers ? 4 * static_cast<unsigned>(caps.leaf_14_1_eax.get<eax::TRIGGER_CFG_CNT>())
                        : 0;
}

/// True for a valid trigger input: 0 to 7 and 20H to 27H are general counters, 40H to 43H are
/// matches of DR0 to DR3.
///
/// Source: REG-217.
[[nodiscard]] constexpr auto is_trigger_input(capabilities const& caps, uint64_t input) noexcept
    -> bool {
    bool const counter = (input & ~uint64_t{0x27}) == 0;
    bool const debug_register = (input & ~uint64_t{3}) == 0x40;
    return counter ||
           (debug_register && caps.leaf_14_1_ecx.get<reg::cpuid_14h_1_ecx::TRIGGER_DR_MATCH>());
}

namespace detail {

template <class Input, class Action12, class Action13, class EnIcnt, class Found>
constexpr void find_broken_rules_of_slot(capabilities const& caps, ia32_rtit_triggerx_cfg value,
                                         Found&& found) noexcept {
    using leaf = reg::cpuid_14h_1_ecx;
    bool const acts = value.get<Action12>() || value.get<Action13>();
    if ((acts && !caps.leaf_14_1_ecx.get<leaf::TRIGGER_PAUSE_RESUME>()) ||
        (value.get<EnIcnt>() && !caps.leaf_14_1_ecx.get<leaf::TRIGGER_ATTRIBUTION>())) {
        found(rule::REG_216);
    }
    if (!is_trigger_input(caps, value.get<Input>())) { found(rule::REG_217); }
}

}  // namespace detail

/// Calls `found` with every rule that a trigger configuration breaks, slot by slot.
///
/// Errors: REG-216 reserved bits, or an action that is not enumerated; REG-217 an input that does
///         not exist.
/// Source: REG-215..218.
template <class Found>
constexpr void find_broken_rules(capabilities const& caps, ia32_rtit_triggerx_cfg value,
                                 Found&& found) noexcept {
    using cfg = ia32_rtit_triggerx_cfg;
    using namespace detail;
    if (value.reserved_bits_set() != 0) { found(rule::REG_216); }
    find_broken_rules_of_slot<cfg::Input0, cfg::Action12_0, cfg::Action13_0, cfg::EnIcnt0>(
        caps, value, found);
    find_broken_rules_of_slot<cfg::Input1, cfg::Action12_1, cfg::Action13_1, cfg::EnIcnt1>(
        caps, value, found);
    find_broken_rules_of_slot<cfg::Input2, cfg::Action12_2, cfg::Action13_2, cfg::EnIcnt2>(
        caps, value, found);
    find_broken_rules_of_slot<cfg::Input3, cfg::Action12_3, cfg::Action13_3, cfg::EnIcnt3>(
        caps, value, found);
}

/// The DR7 bits that the enabled slots need to receive matches of their debug registers.
///
/// Source: REG-217, REG-219.
[[nodiscard]] constexpr auto needed_dr7(ia32_rtit_triggerx_cfg value) noexcept -> reg::dr7 {
    using cfg = ia32_rtit_triggerx_cfg;
    uint64_t bits = 0;
    for (unsigned slot = 0; slot < 4; ++slot) {
        uint64_t const slot_bits = value.raw >> 16 * slot;
        uint64_t const input = slot_bits & low_bits(cfg::Input0::msb + 1);
        bool const enabled = (slot_bits >> cfg::En0::lsb & 1) != 0;
        if (enabled && (input & ~uint64_t{3}) == 0x40) {
            bits |= uint64_t{1} << (reg::dr7::DR0_PT_LOG::lsb + (input & 3));
        }
    }
    return {bits};
}

/// The first rule that a trigger configuration breaks.
///
/// Source: REG-215..218.
[[nodiscard]] constexpr auto broken_rule(capabilities const& caps,
                                         ia32_rtit_triggerx_cfg value) noexcept -> rule {
    first_rule first;
    find_broken_rules(caps, value, first);
    return first.found;
}

}  // namespace ptspec::access

// ---- ptspec/access/msr_state.hpp ----

/// The Intel PT state of a logical processor, and the context that it runs.
namespace ptspec::access {

using reg::ia32_rtit_addr;
using reg::ia32_rtit_cr3_match;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;
using reg::ia32_rtit_status;
using reg::range_end;

/// An address range: ADDRn_A and ADDRn_B, both inclusive.
///
/// Source: REG-077, REG-078.
struct address_range {
    ia32_rtit_addr a{};
    ia32_rtit_addr b{};

    /// True when an instruction whose first byte is at `ip` belongs to the range.
    [[nodiscard]] constexpr auto contains(uint64_t ip) const noexcept -> bool {
        return a.raw <= ip && ip <= b.raw;
    }
    friend constexpr auto operator==(address_range const&, address_range const&) -> bool = default;
};

/// The MSRs of Intel PT on one logical processor, related MSRs that Intel PT uses, and the
/// processor modes that affect them. The default is the state after a cold reset.
///
/// Source: REG-003, REG-018, REG-090.
struct msr_state {
    ia32_rtit_ctl ctl{};
    ia32_rtit_status status{};
    ia32_rtit_output_base output_base{};
    ia32_rtit_output_mask_ptrs output_mask_ptrs{ia32_rtit_output_mask_ptrs::forced_1_mask()};
    ia32_rtit_cr3_match cr3_match{};
    address_range addr[ia32_rtit_addr::count]{};

    reg::ia32_xss xss{};
    reg::ia32_perf_global_status perf_global_status{};
    reg::ia32_debugctl debugctl{};

    bool in_vmx_operation = false;
    bool in_smm = false;
    bool smram_trace_en = false;  ///< the TraceEn that the last SMI saved

    friend constexpr auto operator==(msr_state const&, msr_state const&) -> bool = default;
};

/// The use of address range `n`, 0 to 3: ADDRn_CFG.
///
/// Source: REG-037.
[[nodiscard]] constexpr auto use_of_range(ia32_rtit_ctl from, unsigned n) noexcept
    -> reg::addr_cfg {
    using ctl = ia32_rtit_ctl;
    switch (n) {
        case 0: return from.get<ctl::ADDR0_CFG>();
        case 1: return from.get<ctl::ADDR1_CFG>();
        case 2: return from.get<ctl::ADDR2_CFG>();
        default: return from.get<ctl::ADDR3_CFG>();
    }
}

/// The running context: ContextEn and FilterEn depend on it.
struct context {
    unsigned cpl = 0;  ///< 0 in real mode, 3 in virtual-8086 mode
    uint64_t cr3 = 0;
    bool pae = false;  ///< PAE paging: CR3 bits 63:5 are compared, not 63:12
    bool production_enclave = false;
    uint64_t ip = 0;  ///< the address of the next instruction, in the form that packets use
};

/// Choices where the sources of the rule catalogue disagree.
struct policy {
    /// Where Intel PT is not allowed in VMX operation: a write of IA32_RTIT_CTL faults there only
    /// when it sets TraceEn, as in older manuals. Source: REG-121.
    bool only_enabling_faults_in_vmx = false;
    /// RSM that would enable both Intel PT and LBR, where they are mutually exclusive, shuts the
    /// processor down. When false, LBR is only suspended. Source: REG-103 (UNCONFIRMED).
    bool lbr_after_rsm_shuts_down = true;
};

// ------------------------------------------------------------------------------------ by index

namespace detail {

using namespace ptspec::detail;

inline constexpr uint32_t first_pt_msr = ia32_rtit_output_base::address;
inline constexpr uint32_t first_addr_msr = ia32_rtit_addr::address(0, range_end::a);
inline constexpr uint32_t last_pt_msr = ia32_rtit_addr::address(ia32_rtit_addr::count - 1,
                                                                range_end::b);

constexpr auto is_pt_msr(uint32_t index) noexcept -> bool {
    return index >= first_pt_msr && index <= last_pt_msr;
}
constexpr auto is_addr_msr(uint32_t index) noexcept -> bool {
    return index >= first_addr_msr && index <= last_pt_msr;
}

}  // namespace detail

/// True for the MSRs that this directory models: 560H to 587H, IA32_DEBUGCTL, IA32_XSS and the
/// three IA32_PERF_GLOBAL_STATUS registers.
///
/// Source: REG-017, REG-018.
[[nodiscard]] constexpr auto covers(uint32_t index) noexcept -> bool {
    return detail::is_pt_msr(index) || index == reg::ia32_perf_global_status::address ||
           index == reg::ia32_perf_global_status_reset::address ||
           index == reg::ia32_perf_global_status_set::address || index == reg::ia32_xss::address ||
           index == reg::ia32_debugctl::address;
}

/// The value of a covered MSR, whether or not the processor has it. The two registers that set and
/// reset IA32_PERF_GLOBAL_STATUS read 0.
///
/// Source: REG-011, REG-080.
[[nodiscard]] constexpr auto value_of(msr_state const& now, uint32_t index) noexcept -> uint64_t {
    switch (index) {
        case ia32_rtit_output_base::address: return now.output_base.raw;
        case ia32_rtit_output_mask_ptrs::address: return now.output_mask_ptrs.raw;
        case ia32_rtit_ctl::address: return now.ctl.raw;
        case ia32_rtit_status::address: return now.status.raw;
        case ia32_rtit_cr3_match::address: return now.cr3_match.raw;
        case reg::ia32_perf_global_status::address: return now.perf_global_status.raw;
        case reg::ia32_xss::address: return now.xss.raw;
        case reg::ia32_debugctl::address: return now.debugctl.raw;
        default: break;
    }
    if (!detail::is_addr_msr(index)) { return 0; }
    uint32_t const at = index - detail::first_addr_msr;
    auto const& range = now.addr[at / 2];
    return at % 2 == 0 ? range.a.raw : range.b.raw;
}

/// Stores a value in a covered MSR without checks or side effects.
///
/// Errors: none; ignored for an MSR that is not covered or has no storage. LowerMask always reads
///         as ones.
/// Source: REG-072.
constexpr void set_raw(msr_state& state, uint32_t index, uint64_t value) noexcept {
    switch (index) {
        case ia32_rtit_output_base::address: state.output_base = {value}; return;
        case ia32_rtit_output_mask_ptrs::address:
            state.output_mask_ptrs = {value | ia32_rtit_output_mask_ptrs::forced_1_mask()};
            return;
        case ia32_rtit_ctl::address: state.ctl = {value}; return;
        case ia32_rtit_status::address: state.status = {value}; return;
        case ia32_rtit_cr3_match::address: state.cr3_match = {value}; return;
        case reg::ia32_perf_global_status::address: state.perf_global_status = {value}; return;
        case reg::ia32_xss::address: state.xss = {value}; return;
        case reg::ia32_debugctl::address: state.debugctl = {value}; return;
        default: break;
    }
    if (!detail::is_addr_msr(index)) { return; }
    uint32_t const at = index - detail::first_addr_msr;
    auto& range = state.addr[at / 2];
    (at % 2 == 0 ? range.a : range.b) = {value};
}

}  // namespace ptspec::access

// ---- ptspec/access/check.hpp ----

/// Whether an RDMSR or a WRMSR faults, and by which rule.
namespace ptspec::access {

using cpu::capabilities;

enum class outcome : uint8_t {
    allowed,
    general_protection,  ///< the access raises #GP(0) and changes nothing
    not_covered,         ///< not an MSR of Intel PT: the caller's own code handles it
};

/// The outcome of an access and, where it faults, the most specific rule that it breaks.
struct verdict {
    outcome what = outcome::allowed;
    rule why = rule::none;

    constexpr explicit operator bool() const noexcept { return what == outcome::allowed; }
    friend constexpr auto operator==(verdict const&, verdict const&) -> bool = default;
};

namespace detail {

using namespace ptspec::detail;

/// The rule that makes an MSR absent on a processor, or none.
///
/// Source: REG-001, REG-012..015, REG-017.
#if defined(__GNUC__)
[[gnu::always_inline]]  // without it a WRMSR that faults takes 6 % more instructions (clang 19)
#endif
constexpr auto
rule_of_absence(capabilities const& caps, uint32_t index) noexcept -> rule {
    if (!is_pt_msr(index)) { return rule::none; }
    rule missing = rule::none;
    switch (index) {
        case ia32_rtit_ctl::address:
        case ia32_rtit_status::address: break;
        case ia32_rtit_output_base::address:
        case ia32_rtit_output_mask_ptrs::address:
            if (!caps.has_output_msrs()) { missing = rule::REG_012; }
            break;
        case ia32_rtit_cr3_match::address:
            if (!caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CR3FILTER>()) {
                missing = rule::REG_013;
            }
            break;
        default:
            if (!is_addr_msr(index)) { return rule::REG_017; }
            if (index - first_addr_msr >= 2 * caps.address_ranges()) { missing = rule::REG_014; }
    }
    return caps.has_pt() ? missing : rule::REG_001;
}

/// Source: REG-121.
constexpr auto is_disallowed_in_vmx(capabilities const& caps, msr_state const& now,
                                    ia32_rtit_ctl value, policy const& how) noexcept -> bool {
    return now.in_vmx_operation && caps.vmx() == cpu::vmx_support::none &&
           (!how.only_enabling_faults_in_vmx || value.get<ia32_rtit_ctl::TraceEn>());
}

/// The TraceEn bit, where it is 1 before and after the write; else 0.
///
/// Source: REG-021.
constexpr auto staying_enabled(msr_state const& now, ia32_rtit_ctl value) noexcept -> uint64_t {
    return now.ctl.raw & value.raw & detail::field_mask<ia32_rtit_ctl::TraceEn>;
}

template <class Found>
constexpr void find_broken_rules(capabilities const& caps, msr_state const& now,
                                 ia32_rtit_ctl value, policy const& how, Found&& found) noexcept {
    if (is_disallowed_in_vmx(caps, now, value, how)) { found(rule::REG_121); }
    if (value == now.ctl) { return; }  // REG-020
    access::detail::find_broken(access::detail::rules::of_ctl{}, caps, value, found);
    if (staying_enabled(now, value) != 0) { found(rule::REG_021); }
    access::detail::find_broken(access::detail::rules::of_trace_en{}, caps, value, found);
}

/// Source: REG-007, REG-203, REG-204.
template <class Word, class Found>
constexpr void find_broken_rules_of_global_status(capabilities const& caps, Word value,
                                                  Found&& found) noexcept {
    bool const has_topa = caps.has_pt() && caps.supports(cpu::output_scheme::topa);
    bool const has_arch_pebs =
        caps.perf_capabilities.get<reg::ia32_perf_capabilities::PEBS_FMT>() == 0xF;
    bool const reserved = value.reserved_bits_set() != 0 ||
                          (value.template get<typename Word::ArchPebsThresh>() && !has_arch_pebs);
    if (value.template get<typename Word::Trace_ToPA_PMI>() && !has_topa) {
        found(rule::REG_204);
    } else if (reserved) {
        found(rule::REG_006);
    }
}

/// Source: REG-140.
template <class Found>
constexpr void find_broken_rules_of_xss(capabilities const& caps, reg::ia32_xss value,
                                        Found&& found) noexcept {
    if (value.get<reg::ia32_xss::PT_STATE>() && !caps.has_xsaves_state()) { found(rule::REG_140); }
}

/// Calls `use` with `value` as the register type of an MSR of Intel PT other than CTL.
constexpr auto with_word(uint32_t index, uint64_t value, auto const& use) noexcept {
    switch (index) {
        case ia32_rtit_status::address: return use(ia32_rtit_status{value});
        case ia32_rtit_output_base::address: return use(ia32_rtit_output_base{value});
        case ia32_rtit_output_mask_ptrs::address: return use(ia32_rtit_output_mask_ptrs{value});
        case ia32_rtit_cr3_match::address: return use(ia32_rtit_cr3_match{value});
        default: return use(ia32_rtit_addr{value});
    }
}

}  // namespace detail

// ------------------------------------------------------------------------------------ WRMSR

/// Calls `found` with every rule by which a WRMSR at CPL 0 raises #GP, the most specific first. A
/// write of an MSR that is not covered breaks none.
///
/// Source: REG-001, REG-004, REG-006, REG-012..015, REG-017, REG-020..044, REG-050..055,
///         REG-070..076, REG-121, REG-140, REG-203, REG-204.
template <class Found>
constexpr void find_broken_rules(capabilities const& caps, msr_state const& now, uint32_t index,
                                 uint64_t value, policy const& how, Found&& found) noexcept {
    if (auto const absent = detail::rule_of_absence(caps, index); absent != rule::none) {
        return found(absent);
    }
    if (index == ia32_rtit_ctl::address) {
        return detail::find_broken_rules(caps, now, ia32_rtit_ctl{value}, how, found);
    }
    if (detail::is_pt_msr(index)) {
        if (now.ctl.get<ia32_rtit_ctl::TraceEn>()) { found(rule::REG_004); }
        return detail::with_word(index, value,
                                 [&](auto word) { access::find_broken_rules(caps, word, found); });
    }
    switch (index) {
        case reg::ia32_perf_global_status::address: return found(rule::REG_203);
        case reg::ia32_perf_global_status_reset::address:
            return detail::find_broken_rules_of_global_status(
                caps, reg::ia32_perf_global_status_reset{value}, found);
        case reg::ia32_perf_global_status_set::address:
            return detail::find_broken_rules_of_global_status(
                caps, reg::ia32_perf_global_status_set{value}, found);
        case reg::ia32_xss::address:
            return detail::find_broken_rules_of_xss(caps, reg::ia32_xss{value}, found);
        case reg::ia32_debugctl::address:
            if (reg::ia32_debugctl{value}.reserved_bits_set() != 0) { found(rule::REG_006); }
            return;
        default: return;
    }
}

/// The most specific rule by which a WRMSR at CPL 0 raises #GP.
#if defined(__GNUC__)
[[gnu::noinline, gnu::pure]]  // without it a check whose rule is unused takes 4.7 times as long
#endif
[[nodiscard]] constexpr auto
broken_rule(capabilities const& caps, msr_state const& now, uint32_t index, uint64_t value,
            policy const& how = {}) noexcept -> rule {
    first_rule first;
    find_broken_rules(caps, now, index, value, how, first);
    return first.found;
}

/// True when a WRMSR at CPL 0 raises #GP.
#if defined(__GNUC__)
[[gnu::always_inline]]  // one test of a mask for constant capabilities: 43 instructions, not 79
#endif
[[nodiscard]] constexpr auto
write_faults(capabilities const& caps, msr_state const& now, uint32_t index, uint64_t value,
             policy const& how = {}) noexcept -> bool {
    if (!detail::is_pt_msr(index)) {
        return broken_rule(caps, now, index, value, how) != rule::none;
    }
    if (detail::rule_of_absence(caps, index) != rule::none) { return true; }
    if (index == ia32_rtit_ctl::address) {
        ia32_rtit_ctl const ctl{value};
        return detail::is_disallowed_in_vmx(caps, now, ctl, how) ||
               (ctl != now.ctl &&
                (detail::staying_enabled(now, ctl) != 0 || !access::is_legal(caps, ctl)));
    }
    if (now.ctl.get<ia32_rtit_ctl::TraceEn>()) { return true; }
    return !detail::with_word(index, value,
                              [&](auto word) { return access::is_legal(caps, word); });
}

/// Checks whether a WRMSR raises #GP, and by which rule.
///
/// Errors: `general_protection` with the rule; nothing is written. `not_covered` for other MSRs.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR" and the sections after it; REG-002, REG-009 and the
///         rules of `find_broken_rules`.
#if defined(__GNUC__)
[[gnu::always_inline]]  // as above: 58 instructions, not 416 (clang 19)
#endif
[[nodiscard]] constexpr auto
check_write(capabilities const& caps, msr_state const& now, uint32_t index, uint64_t value,
            unsigned cpl = 0, policy const& how = {}) noexcept -> verdict {
    if (!covers(index)) { return {outcome::not_covered}; }
    if (cpl != 0) { return {outcome::general_protection, rule::REG_002}; }
    if (!write_faults(caps, now, index, value, how)) { return {}; }
    return {outcome::general_protection, broken_rule(caps, now, index, value, how)};
}

// ------------------------------------------------------------------------------------ RDMSR

/// Checks whether an RDMSR raises #GP, and by which rule. It does not depend on TraceEn.
///
/// Errors: `general_protection` with the rule; `not_covered` for other MSRs.
/// Source: REG-001, REG-002, REG-011..017.
[[nodiscard]] constexpr auto check_read(capabilities const& caps, uint32_t index,
                                        unsigned cpl = 0) noexcept -> verdict {
    if (!covers(index)) { return {outcome::not_covered}; }
    if (cpl != 0) { return {outcome::general_protection, rule::REG_002}; }
    auto const absent = detail::rule_of_absence(caps, index);
    return absent == rule::none ? verdict{} : verdict{outcome::general_protection, absent};
}

}  // namespace ptspec::access

// ---- ptspec/access/enables.hpp ----

/// TriggerEn, ContextEn, FilterEn and PacketEn, as pure functions.
namespace ptspec::access {

/// True when TraceEn is 1, and Stopped and Error are 0.
///
/// Source: SDM vol. 3, "Trigger Enable"; REG-056.
[[nodiscard]] constexpr auto trigger_en(ia32_rtit_ctl ctl, ia32_rtit_status status) noexcept
    -> bool {
    return ctl.get<ia32_rtit_ctl::TraceEn>() && !status.get<ia32_rtit_status::Stopped>() &&
           !status.get<ia32_rtit_status::Error>();
}

/// True when IA32_RTIT_CR3_MATCH equals CR3 in the bits that are compared.
///
/// Source: SDM vol. 3, "Filtering by CR3"; REG-075, GEN-060.
[[nodiscard]] constexpr auto cr3_matches(ia32_rtit_cr3_match match, uint64_t cr3, bool pae) noexcept
    -> bool {
    return ((match.raw ^ cr3) & ~low_bits(pae ? 5 : 12)) == 0;
}

/// True when the running context may be traced: CPL, CR3 and enclave allow it.
///
/// Source: SDM vol. 3, "Context Enable"; REG-057, REG-113.
[[nodiscard]] constexpr auto context_en(ia32_rtit_ctl ctl, ia32_rtit_cr3_match match,
                                        context const& now) noexcept -> bool {
    bool const at_this_cpl = now.cpl == 0 ? ctl.get<ia32_rtit_ctl::OS>()
                                          : ctl.get<ia32_rtit_ctl::User>();
    return at_this_cpl && !now.production_enclave &&
           (!ctl.get<ia32_rtit_ctl::CR3Filter>() || cr3_matches(match, now.cr3, now.pae));
}

namespace detail {

using namespace ptspec::detail;

constexpr auto any_range_of_kind(msr_state const& state, reg::addr_cfg kind, auto accepted) noexcept
    -> bool {
    for (unsigned n = 0; n < ia32_rtit_addr::count; ++n) {
        if (use_of_range(state.ctl, n) == kind && accepted(state.addr[n])) { return true; }
    }
    return false;
}

}  // namespace detail

/// The result of looking `ip`, the target of a taken branch or event, up in the address ranges.
struct range_hit {
    bool filter_en = true;    ///< FilterEn afterwards
    bool trace_stop = false;  ///< `ip` lies in a TraceStop range
};

/// True when at least one address range is a filter.
///
/// Source: REG-058.
[[nodiscard]] constexpr auto has_filter(msr_state const& state) noexcept -> bool {
    return detail::any_range_of_kind(state, reg::addr_cfg::filter,
                                     [](address_range const&) { return true; });
}

/// True when at least one address range is a TraceStop range.
///
/// Source: REG-068.
[[nodiscard]] constexpr auto has_trace_stop(msr_state const& state) noexcept -> bool {
    return detail::any_range_of_kind(state, reg::addr_cfg::trace_stop,
                                     [](address_range const&) { return true; });
}

/// True when FilterEn is 1 for an instruction: it lies in a filter range, or no range is a filter.
///
/// Source: REG-058, REG-078, GEN-081, GEN-082.
[[nodiscard]] constexpr auto in_filter(msr_state const& state, uint64_t ip) noexcept -> bool {
    return !has_filter(state) ||
           detail::any_range_of_kind(state, reg::addr_cfg::filter, [=](address_range const& range) {
               return range.contains(ip);
           });
}

/// True when an instruction lies in a TraceStop range.
///
/// Source: REG-068, REG-078, GEN-081.
[[nodiscard]] constexpr auto in_trace_stop(msr_state const& state, uint64_t ip) noexcept -> bool {
    return detail::any_range_of_kind(
        state, reg::addr_cfg::trace_stop,
        [=](address_range const& range) { return range.contains(ip); });
}

/// Looks an instruction up in the address ranges. Where a filter range and a TraceStop range
/// overlap, TraceStop wins.
///
/// Source: SDM vol. 3, "Filtering by IP"; REG-058, REG-068, GEN-085.
[[nodiscard]] constexpr auto match_ranges(msr_state const& state, uint64_t ip) noexcept
    -> range_hit {
    bool const stop = in_trace_stop(state, ip);
    return {!stop && in_filter(state, ip), stop};
}

/// The effective FilterEn. Without IP filtering STATUS.FilterEn reads 0, but FilterEn counts as 1.
///
/// Source: REG-051, REG-058.
[[nodiscard]] constexpr auto filter_en(cpu::capabilities const& caps,
                                       ia32_rtit_status status) noexcept -> bool {
    return !caps.has_ip_filtering() || status.get<ia32_rtit_status::FilterEn>();
}

/// The enables at one point.
///
/// Source: SDM vol. 3, "Packet Generation Enable Controls"; GEN-020..027.
struct enables {
    bool trigger = false;
    bool context = false;
    bool filter = false;
    bool branch = false;

    /// PacketEn: control flow is traced. No register shows it.
    ///
    /// Source: SDM vol. 3, "Packet Enable (PacketEn)"; REG-059.
    [[nodiscard]] constexpr auto packet() const noexcept -> bool {
        return trigger && context && filter && branch;
    }
    friend constexpr auto operator==(enables const&, enables const&) -> bool = default;
};

/// Source: GEN-020..027.
[[nodiscard]] constexpr auto enables_of(cpu::capabilities const& caps,
                                        msr_state const& state) noexcept -> enables {
    using status = ia32_rtit_status;
    return {state.status.get<status::TriggerEn>(), state.status.get<status::ContextEn>(),
            filter_en(caps, state.status), state.ctl.get<ia32_rtit_ctl::BranchEn>()};
}

/// PacketEn. Source: REG-059.
[[nodiscard]] constexpr auto packet_en(cpu::capabilities const& caps,
                                       msr_state const& state) noexcept -> bool {
    return enables_of(caps, state).packet();
}

/// The enables after a branch, an event or a write of CR3.
struct evaluated {
    ia32_rtit_status status{};
    enables after{};  ///< a TraceStop clears only `filter`; `status` has all that it clears
    bool trace_stop = false;
};

/// Evaluates the enables at a target. `now` is the context there, `now.ip` the target; `stop_ip` is
/// compared with the TraceStop ranges. TraceEn stays as it is; a TraceStop sets STATUS.Stopped.
///
/// Source: REG-057, REG-058, REG-068, GEN-005, GEN-024..027, GEN-080..090.
[[nodiscard]] constexpr auto evaluate(cpu::capabilities const& caps, msr_state const& state,
                                      context const& now, uint64_t stop_ip) noexcept -> evaluated {
    using status = ia32_rtit_status;
    evaluated result{state.status, enables_of(caps, state), false};
    if (!result.after.trigger) { return result; }
    result.after.context = context_en(state.ctl, state.cr3_match, now);
    result.status = result.status.with(status::ContextEn{result.after.context});
    if (result.after.context && caps.has_ip_filtering()) {
        result.trace_stop = in_trace_stop(state, stop_ip);
        result.after.filter = !result.trace_stop && in_filter(state, now.ip);
        result.status = result.status.with(status::FilterEn{result.after.filter});
        if (result.trace_stop) {
            result.status = result.status.with(status::Stopped{true}, status::TriggerEn{false});
        }
    }
    return result;
}

/// The state after a branch or an event whose target is `now.ip`.
///
/// Source: REG-057, REG-058, REG-068, GEN-024, GEN-025, GEN-090.
[[nodiscard]] constexpr auto after_branch(cpu::capabilities const& caps, msr_state state,
                                          context const& now) noexcept -> msr_state {
    state.status = evaluate(caps, state, now, now.ip).status;
    return state;
}

}  // namespace ptspec::access

// ---- ptspec/access/effect.hpp ----

/// The effect of a WRMSR on the state of a logical processor.
namespace ptspec::access {

/// Whether an access or an event makes the processor generate a PSB+.
enum class psb_plus : uint8_t {
    no,
    yes,
    may,  ///< the processor may generate one or not
};

/// The effect of an access or an event.
struct effect {
    access::verdict verdict{};
    msr_state state{};  ///< the new state; unchanged where the access faulted
    psb_plus psb = psb_plus::no;
    bool pmi = false;         ///< a performance-monitoring interrupt was pended
    bool trace_stop = false;  ///< tracing resumed inside a TraceStop range, and stopped

    constexpr explicit operator bool() const noexcept { return static_cast<bool>(verdict); }
};

namespace detail {

/// Source: REG-063..067.
constexpr auto psb_when_enabled(capabilities const& caps, msr_state const& now) noexcept
    -> psb_plus {
    using status = ia32_rtit_status;
    bool const has_byte_count = caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>();
    bool const pending = now.ctl.get<ia32_rtit_ctl::InjectPsbPmiOnEnable>() &&
                         now.status.get<status::PendPSB>();
    return !has_byte_count || pending || now.status.get<status::PacketByteCnt>() == 0
               ? psb_plus::yes
               : psb_plus::may;
}

/// TraceEn changes from 0 to 1, for any reason. `now.ctl` already holds the 1.
///
/// Source: REG-043, REG-056, REG-058, REG-063..067, GEN-024, GEN-025, GEN-088, OUT-086.
constexpr auto enabled(capabilities const& caps, msr_state now, context const& code) noexcept
    -> effect {
    using ctl = ia32_rtit_ctl;
    using status = ia32_rtit_status;
    effect result;
    bool const triggered = trigger_en(now.ctl, now.status);
    now.status = now.status.with(status::TriggerEn{triggered});
    if (caps.has_ip_filtering() && !has_filter(now)) {
        now.status = now.status.with(status::FilterEn{true});
    }
    bool const inject = now.ctl.get<ctl::InjectPsbPmiOnEnable>();
    result.pmi = inject && now.status.get<status::PendToPAPMI>();
    if (result.pmi) {
        now.perf_global_status = now.perf_global_status.with(
            reg::ia32_perf_global_status::Trace_ToPA_PMI{true});
    }
    if (triggered) {
        result.psb = psb_when_enabled(caps, now);
        if (inject) { now.status = now.status.with(status::PendPSB{false}); }
        now = after_branch(caps, now, code);
        result.trace_stop = now.status.get<status::Stopped>();
    }
    result.state = now;
    return result;
}

/// Clears TraceEn, for any reason.
///
/// Source: REG-061, REG-093.
constexpr auto disabled(msr_state now) noexcept -> msr_state {
    now.ctl = now.ctl.with(ia32_rtit_ctl::TraceEn{false});
    now.status = now.status.with(ia32_rtit_status::TriggerEn{false});
    return now;
}

/// Source: REG-020, REG-022, REG-023.
constexpr auto write_ctl(capabilities const& caps, msr_state now, ia32_rtit_ctl value,
                         context const& code) noexcept -> effect {
    bool const was_on = now.ctl.get<ia32_rtit_ctl::TraceEn>();
    now.ctl = value;
    bool const is_on = value.get<ia32_rtit_ctl::TraceEn>();
    if (was_on == is_on) { return {.state = now}; }
    return is_on ? enabled(caps, now, code) : effect{.state = disabled(now)};
}

/// A write of a covered MSR that exists, other than IA32_RTIT_CTL. Write-ignored bits keep their
/// values.
///
/// Source: REG-050, REG-203.
constexpr auto store(msr_state now, uint32_t index, uint64_t value) noexcept -> msr_state {
    switch (index) {
        case ia32_rtit_status::address: {
            constexpr auto kept = ia32_rtit_status::write_ignored_mask();
            now.status = {(value & ~kept) | (now.status.raw & kept)};
            break;
        }
        case reg::ia32_perf_global_status_reset::address:
            now.perf_global_status = {now.perf_global_status.raw & ~value};
            break;
        case reg::ia32_perf_global_status_set::address:
            now.perf_global_status = {now.perf_global_status.raw | value};
            break;
        default: set_raw(now, index, value); break;
    }
    return now;
}

}  // namespace detail

/// Executes a WRMSR. `code` describes the code that executes it.
///
/// Errors: those of `check_write`; the state is then unchanged.
/// Source: SDM vol. 3, "IA32_RTIT_CTL MSR", "IA32_RTIT_STATUS MSR"; REG-009, REG-020..023, REG-043,
///         REG-050, REG-053, REG-056..068, REG-072, REG-080, REG-203.
[[nodiscard]] constexpr auto effect_of_write(capabilities const& caps, msr_state const& now,
                                             uint32_t index, uint64_t value,
                                             context const& code = {},
                                             policy const& how = {}) noexcept -> effect {
    auto const checked = check_write(caps, now, index, value, code.cpl, how);
    if (!checked) { return {.verdict = checked, .state = now}; }
    return index == ia32_rtit_ctl::address
               ? detail::write_ctl(caps, now, ia32_rtit_ctl{value}, code)
               : effect{.state = detail::store(now, index, value)};
}

/// The result of an RDMSR.
struct read_result {
    access::verdict verdict{};
    uint64_t value = 0;

    constexpr explicit operator bool() const noexcept { return static_cast<bool>(verdict); }
};

/// Source: REG-011, REG-080.
[[nodiscard]] constexpr auto read(capabilities const& caps, msr_state const& now, uint32_t index,
                                  unsigned cpl = 0) noexcept -> read_result {
    auto const checked = check_read(caps, index, cpl);
    return {checked, checked ? value_of(now, index) : 0};
}

}  // namespace ptspec::access

// ---- ptspec/access/paths.hpp ----

/// The paths by which a value reaches an MSR, and how each reports an illegal value.
namespace ptspec::access {

/// Source: REG-010.
enum class write_path : uint8_t {
    wrmsr,
    xrstors,  ///< component 8 of an XSAVE area
    vm_entry_msr_load_list,
    vm_exit_msr_load_list,
};

/// How a path reports an illegal value.
enum class refusal : uint8_t {
    none,                ///< the value is legal
    general_protection,  ///< #GP(0)
    vm_entry_fails,      ///< exit reason 34 with bit 31 set, "VM-entry failure due to MSR loading"
    vmx_abort,
};

/// The exit reason of a VM entry that fails while loading its MSR-load list.
///
/// Source: REG-010.
inline constexpr uint32_t exit_reason_of_msr_load_failure = 0x8000'0000U | 34U;

/// How a path reports an illegal value.
///
/// Source: SDM vol. 3, "Loading MSRs" of VM entries and of VM exits; REG-010.
[[nodiscard]] constexpr auto refusal_on(write_path path) noexcept -> refusal {
    switch (path) {
        case write_path::vm_entry_msr_load_list: return refusal::vm_entry_fails;
        case write_path::vm_exit_msr_load_list: return refusal::vmx_abort;
        case write_path::wrmsr:
        case write_path::xrstors: break;
    }
    return refusal::general_protection;
}

/// The verdict on a write, and how the path reports an illegal value.
struct path_verdict {
    access::verdict verdict{};
    refusal how = refusal::none;

    constexpr explicit operator bool() const noexcept { return static_cast<bool>(verdict); }
};

/// Applies the checks of a WRMSR at CPL 0 to a value that is written on `path`.
///
/// Errors: those of `check_write`.
/// Source: REG-010.
[[nodiscard]] constexpr auto check_write_on(write_path path, capabilities const& caps,
                                            msr_state const& now, uint32_t index, uint64_t value,
                                            policy const& how = {}) noexcept -> path_verdict {
    auto const checked = check_write(caps, now, index, value, 0, how);
    return {checked,
            checked.what == outcome::general_protection ? refusal_on(path) : refusal::none};
}

}  // namespace ptspec::access

// ---- ptspec/access/lbr.hpp ----

/// Branch records (LBR, LER, BTS, BTM) on processors where Intel PT and LBR are mutually exclusive.
namespace ptspec::access {

/// True for signatures on which Intel PT and branch records are mutually exclusive.
///
/// Source: REG-180, REG-184.
[[nodiscard]] constexpr auto excludes_lbr(reg::cpuid_01h_eax signature) noexcept -> bool {
    return cpu::quirks_of(signature).has(cpu::quirk::lbr_exclusive);
}

/// True while TraceEn suspends branch records.
///
/// Source: SDM vol. 3, "Interaction of Intel Processor Trace and LBR"; REG-180, REG-181.
[[nodiscard]] constexpr auto suspends_lbr(reg::cpuid_01h_eax signature, ia32_rtit_ctl ctl) noexcept
    -> bool {
    return ctl.get<ia32_rtit_ctl::TraceEn>() && excludes_lbr(signature);
}

/// The largest number of entries of an LBR stack.
inline constexpr uint32_t max_lbr_entries = 32;

/// True for the LBR and LER MSRs, which read 0 and drop writes while branch records are suspended.
/// IA32_DEBUGCTL does not.
///
/// Source: REG-182.
[[nodiscard]] constexpr auto is_lbr_msr(uint32_t index) noexcept -> bool {
    auto const in_stack = [=](uint32_t first) {
        return index >= first && index - first < max_lbr_entries;
    };
    return in_stack(reg::msr_lastbranch_x_from_ip::address(0)) ||
           in_stack(reg::msr_lastbranch_x_to_ip::address(0)) ||
           in_stack(reg::msr_lbr_info_x::address(0)) || index == reg::msr_lastbranch_tos::address ||
           index == reg::msr_lbr_select::address || index == reg::msr_ler_from_lip::address ||
           index == reg::msr_ler_to_lip::address;
}

/// True while an RDMSR of `index` returns 0 and a WRMSR of it is ignored. Neither faults.
///
/// Source: REG-181, REG-182.
[[nodiscard]] constexpr auto is_suspended(reg::cpuid_01h_eax signature, ia32_rtit_ctl ctl,
                                          uint32_t index) noexcept -> bool {
    return suspends_lbr(signature, ctl) && is_lbr_msr(index);
}

/// True when a write of IA32_RTIT_CTL from `before` to `after` resets the LBR stack.
///
/// Source: REG-183.
[[nodiscard]] constexpr auto resets_lbr(reg::cpuid_01h_eax signature, ia32_rtit_ctl before,
                                        ia32_rtit_ctl after) noexcept -> bool {
    return suspends_lbr(signature, before) && !suspends_lbr(signature, after);
}

}  // namespace ptspec::access

// ---- ptspec/access/resets.hpp ----

/// Events that change the MSRs without an access to them: resets, INIT, SMM, VMX, measured launch.
namespace ptspec::access {

/// The state after power-up.
///
/// Source: REG-090.
[[nodiscard]] constexpr auto cold_reset() noexcept -> msr_state { return {}; }

/// The state after a warm reset. With IP filtering all MSRs of Intel PT survive, but TraceEn is
/// cleared. The related MSRs (IA32_XSS, IA32_PERF_GLOBAL_STATUS, IA32_DEBUGCTL) are not changed
/// here: the caller models them.
///
/// Source: REG-091..093.
[[nodiscard]] constexpr auto warm_reset(capabilities const& caps, msr_state const& now) noexcept
    -> msr_state {
    auto next = detail::disabled(now);
    if (!caps.has_ip_filtering()) {
        next = cold_reset();
        next.xss = now.xss;
        next.perf_global_status = now.perf_global_status;
        next.debugctl = now.debugctl;
    }
    next.in_vmx_operation = false;
    next.in_smm = false;
    next.smram_trace_en = false;
    return next;
}

/// The state after INIT: tracing continues in the context `code`.
///
/// Source: REG-094.
[[nodiscard]] constexpr auto init(capabilities const& caps, msr_state const& now,
                                  context const& code = {}) noexcept -> msr_state {
    return after_branch(caps, now, code);
}

// ------------------------------------------------------------------------------------ SMM

/// How the processor treats an SMI.
enum class smm_treatment : uint8_t {
    by_default,
    dual_monitor,  ///< a VM exit to the SMI-transfer monitor, which saves and restores MSRs itself
};

/// The state after the delivery of an SMI. In SMM an SMI stays pending, and the state does not
/// change.
///
/// Source: SDM vol. 3, "System Management Mode (SMM)"; REG-100, REG-104..106.
[[nodiscard]] constexpr auto smi(msr_state const& now,
                                 smm_treatment how = smm_treatment::by_default) noexcept
    -> msr_state {
    if (now.in_smm || how == smm_treatment::dual_monitor) { return now; }
    auto next = detail::disabled(now);
    next.smram_trace_en = now.ctl.get<ia32_rtit_ctl::TraceEn>();
    next.in_smm = true;
    return next;
}

enum class rsm_outcome : uint8_t {
    resumed,
    shutdown,          ///< the processor shut down; `why` has the rule
    undefined_opcode,  ///< #UD: the processor was not in SMM
};

struct rsm_result {
    rsm_outcome outcome = rsm_outcome::resumed;
    rule why = rule::none;
    access::effect effect{};  ///< the effect, where the processor resumed

    constexpr explicit operator bool() const noexcept { return outcome == rsm_outcome::resumed; }
};

/// The effect of RSM: it restores TraceEn and resumes the context `code`.
///
/// Source: SDM vol. 3, "System Management Mode (SMM)"; REG-101..103.
[[nodiscard]] constexpr auto rsm(capabilities const& caps, msr_state const& now,
                                 context const& code = {}, policy const& how = {}) noexcept
    -> rsm_result {
    if (!now.in_smm) { return {rsm_outcome::undefined_opcode, rule::none, {.state = now}}; }
    if (now.ctl.get<ia32_rtit_ctl::TraceEn>()) {
        return {rsm_outcome::shutdown, rule::REG_102, {.state = now}};
    }
    bool const would_enable_both = now.smram_trace_en &&
                                   now.debugctl.get<reg::ia32_debugctl::LBR>() &&
                                   excludes_lbr(caps.leaf_01_eax);
    if (would_enable_both && how.lbr_after_rsm_shuts_down) {
        return {rsm_outcome::shutdown, rule::REG_103, {.state = now}};
    }
    auto next = now;
    next.in_smm = false;
    next.smram_trace_en = false;
    if (!now.smram_trace_en) { return {rsm_outcome::resumed, rule::none, {.state = next}}; }
    next.ctl = next.ctl.with(ia32_rtit_ctl::TraceEn{true});
    return {rsm_outcome::resumed, rule::none, detail::enabled(caps, next, code)};
}

// ------------------------------------------------------------------------------------ VMX, SMX

/// The state after VMXON, which clears TraceEn where Intel PT is not allowed in VMX operation.
///
/// Source: REG-110.
[[nodiscard]] constexpr auto vmxon(capabilities const& caps, msr_state const& now) noexcept
    -> msr_state {
    auto next = caps.vmx() == cpu::vmx_support::none ? detail::disabled(now) : now;
    next.in_vmx_operation = true;
    return next;
}

/// The state after VMXOFF.
[[nodiscard]] constexpr auto vmxoff(msr_state now) noexcept -> msr_state {
    now.in_vmx_operation = false;
    return now;
}

/// The state after GETSEC[SENTER] or GETSEC[ENTERACCS], which clear TraceEn and do not restore it.
/// SENTER does so on the other logical processors, too.
///
/// Source: REG-111.
[[nodiscard]] constexpr auto measured_launch(msr_state const& now) noexcept -> msr_state {
    return detail::disabled(now);
}

/// The state at the start of an authenticated code module: TraceEn is cleared without any packet.
///
/// Source: REG-112.
[[nodiscard]] constexpr auto acm_entry(msr_state const& now) noexcept -> msr_state {
    return detail::disabled(now);
}

/// The state after the module. `trace_en` is the value of TraceEn before the module started.
///
/// Source: REG-112.
[[nodiscard]] constexpr auto acm_exit(capabilities const& caps, msr_state now, bool trace_en,
                                      context const& code = {}) noexcept -> msr_state {
    if (!trace_en) { return now; }
    now.ctl = now.ctl.with(ia32_rtit_ctl::TraceEn{true});
    return detail::enabled(caps, now, code).state;
}

}  // namespace ptspec::access

// ---- ptspec/access/xsave.hpp ----

/// XSAVES and XRSTORS of component 8, the state of Intel PT.
///
/// RFBM[8] is assumed to be 1: the instruction mask selects the component, and IA32_XSS enables it.
namespace ptspec::access {

using reg::xsave_pt_state;

namespace detail {

/// Calls `each` with the index and the image's value of every MSR of the component except CTL. CTL
/// is handled separately: it is saved first and restored last.
template <class Each>
constexpr void for_each_msr_except_ctl(xsave_pt_state const& image, Each&& each) noexcept {
    using area = xsave_pt_state;
    each(ia32_rtit_output_base::address, image.get<area::IA32_RTIT_OUTPUT_BASE>().raw);
    each(ia32_rtit_output_mask_ptrs::address, image.get<area::IA32_RTIT_OUTPUT_MASK_PTRS>().raw);
    each(ia32_rtit_status::address, image.get<area::IA32_RTIT_STATUS>().raw);
    each(ia32_rtit_cr3_match::address, image.get<area::IA32_RTIT_CR3_MATCH>().raw);
    each(ia32_rtit_addr::address(0, range_end::a), image.get<area::IA32_RTIT_ADDR0_A>().raw);
    each(ia32_rtit_addr::address(0, range_end::b), image.get<area::IA32_RTIT_ADDR0_B>().raw);
    each(ia32_rtit_addr::address(1, range_end::a), image.get<area::IA32_RTIT_ADDR1_A>().raw);
    each(ia32_rtit_addr::address(1, range_end::b), image.get<area::IA32_RTIT_ADDR1_B>().raw);
}

}  // namespace detail

// ------------------------------------------------------------------------------------ XSAVES

struct xsaves_result {
    xsave_pt_state image{};
    msr_state state{};  ///< the new state: TraceEn is 0
};

/// The effect of XSAVES: the stored image and the new state. Where the instruction faults midway,
/// the old state remains: TraceEn gets its old value back.
///
/// Source: SDM vol. 1, "Operation of XSAVES"; REG-141, REG-142.
[[nodiscard]] constexpr auto xsaves(capabilities const& caps, msr_state const& now) noexcept
    -> xsaves_result {
    using area = xsave_pt_state;
    auto const after = detail::disabled(now);
    auto const msr_or_zero = [&](uint32_t index) {
        return detail::rule_of_absence(caps, index) == rule::none ? value_of(after, index) : 0;
    };
    auto const addr_or_zero = [&](unsigned n, range_end end) {
        return wrapped{msr_or_zero(ia32_rtit_addr::address(n, end))};
    };
    return {xsave_pt_state{}.with(
                area::IA32_RTIT_CTL{now.ctl},
                area::IA32_RTIT_OUTPUT_BASE{wrapped{msr_or_zero(ia32_rtit_output_base::address)}},
                area::IA32_RTIT_OUTPUT_MASK_PTRS{
                    wrapped{msr_or_zero(ia32_rtit_output_mask_ptrs::address)}},
                area::IA32_RTIT_STATUS{after.status},
                area::IA32_RTIT_CR3_MATCH{wrapped{msr_or_zero(ia32_rtit_cr3_match::address)}},
                area::IA32_RTIT_ADDR0_A{addr_or_zero(0, range_end::a)},
                area::IA32_RTIT_ADDR0_B{addr_or_zero(0, range_end::b)},
                area::IA32_RTIT_ADDR1_A{addr_or_zero(1, range_end::a)},
                area::IA32_RTIT_ADDR1_B{addr_or_zero(1, range_end::b)}),
            after};
}

/// True for an image that XSAVES may mark as initial in XSTATE_BV: all 0, except that LowerMask may
/// be all ones.
///
/// Source: REG-147.
[[nodiscard]] constexpr auto is_initial(xsave_pt_state const& image) noexcept -> bool {
    bool initial = image.get<xsave_pt_state::IA32_RTIT_CTL>().raw == 0;
    detail::for_each_msr_except_ctl(image, [&](uint32_t index, uint64_t value) {
        initial = initial && (value == 0 || (index == ia32_rtit_output_mask_ptrs::address &&
                                             value == ia32_rtit_output_mask_ptrs::forced_1_mask()));
    });
    return initial;
}

// ------------------------------------------------------------------------------------ XRSTORS

/// Checks the header of an XSAVE area, which XRSTORS does before it loads component 8.
///
/// Source: SDM vol. 1, "Operation of XRSTORS"; REG-148.
[[nodiscard]] constexpr auto check_header(reg::xsave_header_xstate_bv present,
                                          reg::xsave_header_xcomp_bv format,
                                          reg::ia32_xss allowed) noexcept -> verdict {
    using xcomp = reg::xsave_header_xcomp_bv;
    bool const compacted = format.get<xcomp::Compacted>();
    bool const inside = (present.raw & ~format.raw) == 0;
    bool const enabled = !format.get<xcomp::PT>() || allowed.get<reg::ia32_xss::PT_STATE>();
    return compacted && inside && enabled ? verdict{}
                                          : verdict{outcome::general_protection, rule::REG_148};
}

struct xrstors_result {
    access::effect effect{};        ///< where XRSTORS faults, the state is unchanged
    uint32_t refused_msr = 0;       ///< the MSR whose quadword was refused, or 0
    rule why_refused = rule::none;  ///< the rule that a WRMSR of that quadword breaks

    constexpr explicit operator bool() const noexcept { return static_cast<bool>(effect); }
};

namespace detail {

constexpr auto refused(msr_state const& now, rule why) noexcept -> effect {
    return {.verdict = {outcome::general_protection, why}, .state = now};
}

/// The rule by which XRSTORS refuses a quadword, or none. A zero for an MSR that the processor
/// lacks is skipped.
///
/// Source: REG-144.
constexpr auto broken_rule_of_quadword(capabilities const& caps, msr_state const& now,
                                       uint32_t index, uint64_t value, policy const& how) noexcept
    -> rule {
    auto const absent = rule_of_absence(caps, index);
    if (absent != rule::none) { return value == 0 ? rule::none : absent; }
    return broken_rule(caps, now, index, value, how);
}

}  // namespace detail

/// The effect of XRSTORS: every quadword is checked like a WRMSR, and TraceEn is written last.
/// `code` describes the context that runs when TraceEn becomes 1.
///
/// Errors: REG-143 while TraceEn is 1; REG-144 for a quadword that is refused, or reserved bytes
///         that are not 0. Then no MSR changes (a processor may have loaded some; TraceEn is 0).
/// Source: SDM vol. 1, "Operation of XRSTORS"; REG-143..145.
[[nodiscard]] constexpr auto xrstors(capabilities const& caps, msr_state const& now,
                                     xsave_pt_state const& image, context const& code = {},
                                     policy const& how = {}) noexcept -> xrstors_result {
    if (now.ctl.get<ia32_rtit_ctl::TraceEn>()) { return {detail::refused(now, rule::REG_143)}; }
    if (!image.reserved_quadwords_are_zero()) { return {detail::refused(now, rule::REG_144)}; }
    auto const ctl = image.get<xsave_pt_state::IA32_RTIT_CTL>();
    uint32_t refused_msr = ia32_rtit_ctl::address;
    rule why = detail::broken_rule_of_quadword(caps, now, refused_msr, ctl.raw, how);
    auto next = now;
    detail::for_each_msr_except_ctl(image, [&](uint32_t index, uint64_t value) {
        if (why != rule::none) { return; }
        refused_msr = index;
        why = detail::broken_rule_of_quadword(caps, now, index, value, how);
        if (detail::rule_of_absence(caps, index) == rule::none) {
            next = detail::store(next, index, value);
        }
    });
    if (why != rule::none) { return {detail::refused(now, rule::REG_144), refused_msr, why}; }
    return {detail::write_ctl(caps, next, ctl, code)};
}

/// The effect of XRSTORS where XSTATE_BV[8] is 0: the component gets its initial configuration.
///
/// Errors: REG-143 while TraceEn is 1.
/// Source: REG-143, REG-146.
[[nodiscard]] constexpr auto xrstors_init(msr_state const& now) noexcept -> xrstors_result {
    if (now.ctl.get<ia32_rtit_ctl::TraceEn>()) { return {detail::refused(now, rule::REG_143)}; }
    msr_state const initial{};
    auto next = now;
    next.ctl = initial.ctl;
    next.output_base = initial.output_base;
    next.output_mask_ptrs = initial.output_mask_ptrs;
    next.status = initial.status;
    next.cr3_match = initial.cr3_match;
    next.addr[0] = initial.addr[0];
    next.addr[1] = initial.addr[1];
    return {effect{.state = next}};
}

}  // namespace ptspec::access

// ---- ptspec/access/pmi.hpp ----

/// The effects of delivering a performance-monitoring interrupt (PMI), and a PMI handler's
/// decision.
namespace ptspec::access {

struct pmi_result {
    msr_state state{};
    bool clears_global_ctrl = false;  ///< IA32_PERF_GLOBAL_CTRL becomes 0
};

/// Delivers a PMI. A ToPA PMI freezes what any other PMI freezes. From version 4 of performance
/// monitoring on, bits of IA32_PERF_GLOBAL_STATUS freeze counters and LBRs; before, their enables
/// are cleared. Intel PT keeps tracing.
///
/// Source: SDM vol. 3, "ToPA PMI"; REG-205.
[[nodiscard]] constexpr auto deliver_pmi(cpu::capabilities const& caps, msr_state now) noexcept
    -> pmi_result {
    using debugctl = reg::ia32_debugctl;
    using status = reg::ia32_perf_global_status;
    auto const version = caps.leaf_0a_eax.get<reg::cpuid_0ah_eax::VersionID>();
    bool const freeze_counters = version >= 2 &&
                                 now.debugctl.get<debugctl::FREEZE_PERFMON_ON_PMI>();
    bool const freeze_lbrs = version >= 2 && now.debugctl.get<debugctl::FREEZE_LBRS_ON_PMI>();
    if (version < 4) {
        if (freeze_lbrs) { now.debugctl = now.debugctl.with(debugctl::LBR{false}); }
        return {now, freeze_counters};
    }
    if (freeze_counters) {
        now.perf_global_status = now.perf_global_status.with(status::CTR_Frz{true});
    }
    if (freeze_lbrs) {
        now.perf_global_status = now.perf_global_status.with(status::LBR_Frz{true});
    }
    return {now, false};
}

/// The performance-monitoring LVT entry after it delivered an interrupt: Mask is set, and no
/// further interrupt is delivered until software clears it.
///
/// Source: SDM vol. 3, "ToPA PMI"; OUT-084.
template <one_of<reg::ia32_x2apic_lvt_pmi, reg::apic_mmio_lvt_pmi> Word>
[[nodiscard]] constexpr auto after_delivery(Word entry) noexcept -> Word {
    return entry.with(typename Word::Mask{true});
}

/// True when a handler has to handle a ToPA PMI now. A PMI that arrives while TraceEn is 0 belongs
/// to another context: the handler ignores it and leaves PendToPAPMI set, and the PMI is raised
/// again when that context is enabled. A handler that handles the PMI clears the bit.
///
/// Source: SDM vol. 3, "PMI Preservation"; OUT-087.
[[nodiscard]] constexpr auto is_topa_pmi_for_now(msr_state const& now) noexcept -> bool {
    return now.perf_global_status.get<reg::ia32_perf_global_status::Trace_ToPA_PMI>() &&
           now.ctl.get<ia32_rtit_ctl::TraceEn>();
}

}  // namespace ptspec::access

// ---- ptspec/access/image.hpp ----

/// Serialises an `msr_state` to bytes, for storage or migration to another processor.
namespace ptspec::access {

/// Why an image was rejected.
enum class image_error : uint8_t {
    none,
    truncated,      ///< fewer bytes than the size in the header, or than a header has
    not_an_image,   ///< the magic number does not match
    other_version,  ///< an image of an unknown format version
    wrong_size,     ///< more bytes than the image has
    unknown_flags,  ///< unknown flags, or flags that exclude each other
    refused,        ///< the processor cannot hold a value; the result names the MSR and the rule
    out_of_range,   ///< a number out of range
    no_room,        ///< the output buffer is too small
};

/// The format version that `save` writes.
inline constexpr uint32_t image_version = 1;

namespace detail {

/// "PTSTATE" and a zero byte, as a little-endian number.
inline constexpr uint64_t image_magic = 0x0045'5441'5453'5450;

inline constexpr uint64_t flag_in_vmx_operation = 1;
inline constexpr uint64_t flag_in_smm = 2;
inline constexpr uint64_t flag_smram_trace_en = 4;

/// The MSRs of an image, in the order of the image.
inline constexpr uint32_t image_msrs[] = {
    ia32_rtit_ctl::address,
    ia32_rtit_status::address,
    ia32_rtit_output_base::address,
    ia32_rtit_output_mask_ptrs::address,
    ia32_rtit_cr3_match::address,
    ia32_rtit_addr::address(0, range_end::a),
    ia32_rtit_addr::address(0, range_end::b),
    ia32_rtit_addr::address(1, range_end::a),
    ia32_rtit_addr::address(1, range_end::b),
    ia32_rtit_addr::address(2, range_end::a),
    ia32_rtit_addr::address(2, range_end::b),
    ia32_rtit_addr::address(3, range_end::a),
    ia32_rtit_addr::address(3, range_end::b),
    reg::ia32_xss::address,
    reg::ia32_perf_global_status::address,
    reg::ia32_debugctl::address,
};
inline constexpr size_t image_msr_count = sizeof(image_msrs) / sizeof(image_msrs[0]);
inline constexpr size_t image_head = 16;

}  // namespace detail

/// The size of an image in bytes.
inline constexpr size_t image_size = detail::image_head + 8 * (detail::image_msr_count + 1);

/// Serialises a state.
///
/// Shape: a header of 16 bytes: `PTSTATE` and a zero byte, then the version and the size in bytes,
///        4 bytes each. Then 8 bytes for each MSR: CTL, STATUS, OUTPUT_BASE, OUTPUT_MASK_PTRS,
///        CR3_MATCH, ADDR0_A to ADDR3_B, IA32_XSS, IA32_PERF_GLOBAL_STATUS, IA32_DEBUGCTL. Then 8
///        bytes of flags: 1 for VMX operation, 2 for SMM, 4 for the TraceEn that the SMI saved. All
///        numbers are little-endian.
[[nodiscard]] constexpr auto save(msr_state const& now) noexcept -> byte_array<image_size> {
    byte_array<image_size> image;
    uint8_t* to = image.data();
    store_le64(to, detail::image_magic);
    store_le64(to + 8, uint64_t{image_size} << 32 | image_version);
    to += detail::image_head;
    for (uint32_t const index : detail::image_msrs) {
        store_le64(to, value_of(now, index));
        to += 8;
    }
    store_le64(to, (now.in_vmx_operation ? detail::flag_in_vmx_operation : 0) |
                       (now.in_smm ? detail::flag_in_smm : 0) |
                       (now.smram_trace_en ? detail::flag_smram_trace_en : 0));
    return image;
}

/// A deserialised state, or why the image was rejected.
struct load_result {
    image_error why = image_error::none;
    rule broken = rule::none;  ///< for `refused`: the rule that the value breaks
    uint32_t msr = 0;          ///< for `refused`: the MSR
    msr_state state{};         ///< the state after a cold reset on an error

    constexpr explicit operator bool() const noexcept { return why == image_error::none; }
};

namespace detail {

constexpr auto refused_value(rule broken, uint32_t index) noexcept -> load_result {
    return {image_error::refused, broken, index, {}};
}

/// The rule by which a processor can never hold a value in an MSR, or none.
///
/// Source: REG-012..015, REG-024..044, REG-052..055, REG-070..076, REG-140, REG-204.
constexpr auto rule_of_value(capabilities const& caps, uint32_t index, uint64_t value) noexcept
    -> rule {
    if (auto const absent = rule_of_absence(caps, index); absent != rule::none) {
        return value == value_of(msr_state{}, index) ? rule::none : absent;
    }
    if (index == ia32_rtit_ctl::address) { return access::broken_rule(caps, ia32_rtit_ctl{value}); }
    if (index == reg::ia32_perf_global_status::address) {
        // Its bits can only be set through the SET register.
        index = reg::ia32_perf_global_status_set::address;
    }
    return broken_rule(caps, msr_state{}, index, value);
}

}  // namespace detail

/// Deserialises a state and checks that the processor `caps` can hold it. The bytes are untrusted.
///
/// Errors: those of `image_error`. A value is refused by the rule that a WRMSR of it would break on
///         this processor; by REG-056 when TriggerEn does not follow from the other bits; by
///         REG-121 when TraceEn is 1 in VMX operation and the processor does not allow it.
/// Source: REG-056, REG-121, and the rules of `find_broken_rules`.
[[nodiscard]] constexpr auto load(capabilities const& caps, byte_view image) noexcept
    -> load_result {
    if (image.size() < 8) { return {image_error::truncated}; }
    if (load_le64(image.data()) != detail::image_magic) { return {image_error::not_an_image}; }
    if (image.size() < detail::image_head) { return {image_error::truncated}; }
    uint64_t const version_and_size = load_le64(image.data() + 8);
    if ((version_and_size & low_bits(32)) != image_version) { return {image_error::other_version}; }
    if (version_and_size >> 32 != image_size) { return {image_error::wrong_size}; }
    if (image.size() < image_size) { return {image_error::truncated}; }
    if (image.size() > image_size) { return {image_error::wrong_size}; }

    load_result loaded;
    uint8_t const* from = image.data() + detail::image_head;
    for (uint32_t const index : detail::image_msrs) {
        uint64_t const value = load_le64(from);
        auto const broken = detail::rule_of_value(caps, index, value);
        if (broken != rule::none) { return detail::refused_value(broken, index); }
        set_raw(loaded.state, index, value);
        from += 8;
    }
    uint64_t const flags = load_le64(from);
    msr_state& state = loaded.state;
    state.in_vmx_operation = (flags & detail::flag_in_vmx_operation) != 0;
    state.in_smm = (flags & detail::flag_in_smm) != 0;
    state.smram_trace_en = (flags & detail::flag_smram_trace_en) != 0;
    if (flags > 7 || (state.smram_trace_en && !state.in_smm)) {
        return {image_error::unknown_flags};
    }
    if (state.status.get<ia32_rtit_status::TriggerEn>() != trigger_en(state.ctl, state.status)) {
        return detail::refused_value(rule::REG_056, ia32_rtit_status::address);
    }
    bool const trace_en = state.ctl.get<ia32_rtit_ctl::TraceEn>();
    if (trace_en && detail::is_disallowed_in_vmx(caps, state, state.ctl, {})) {
        return detail::refused_value(rule::REG_121, ia32_rtit_ctl::address);
    }
    return loaded;
}

}  // namespace ptspec::access

// ---- ptspec/config/nearest.hpp ----

/// Finds the supported value nearest to a wanted one.
namespace ptspec::config {

using cpu::capabilities;
using cpu::cyc_threshold;
using cpu::mtc_period;
using cpu::output_scheme;
using cpu::psb_period;

/// The nearest value, if any.
template <class Value>
struct nearest_of {
    bool any = false;
    Value value{};

    constexpr explicit operator bool() const noexcept { return any; }
    friend constexpr auto operator==(nearest_of const&, nearest_of const&) -> bool = default;
};

namespace detail {

constexpr auto distance(unsigned one, unsigned two) noexcept -> unsigned {
    return one < two ? two - one : one - two;
}

template <class Encoding>
constexpr auto nearest_encoding(capabilities const& caps, Encoding wanted) noexcept
    -> nearest_of<Encoding> {
    nearest_of<Encoding> best;
    for (unsigned encoding = 0; encoding <= Encoding::last_encoding; ++encoding) {
        auto const one = Encoding::encoded(wrapped{encoding});
        bool const nearer = !best.any || distance(encoding, wanted.encoding()) <
                                             distance(best.value.encoding(), wanted.encoding());
        if (nearer && caps.supports(one)) { best = {true, one}; }
    }
    return best;
}

}  // namespace detail

/// The nearest encoding that the processor enumerates; the smaller one of two that are equally
/// near. None where the processor lacks MTC, CYC or PSBFreq.
///
/// Units:  distances are differences of encodings, so powers of two. The nearest CYC threshold can
///         be 0, no threshold.
/// Source: REG-028, REG-029, REG-048.
[[nodiscard]] constexpr auto nearest(capabilities const& caps, mtc_period wanted) noexcept
    -> nearest_of<mtc_period> {
    return detail::nearest_encoding(caps, wanted);
}
[[nodiscard]] constexpr auto nearest(capabilities const& caps, cyc_threshold wanted) noexcept
    -> nearest_of<cyc_threshold> {
    return detail::nearest_encoding(caps, wanted);
}
[[nodiscard]] constexpr auto nearest(capabilities const& caps, psb_period wanted) noexcept
    -> nearest_of<psb_period> {
    return detail::nearest_encoding(caps, wanted);
}

/// The wanted output scheme, else the first supported one of ToPA, single range, trace transport.
///
/// Source: REG-024..026, PRG-003.
[[nodiscard]] constexpr auto nearest(capabilities const& caps, output_scheme wanted) noexcept
    -> nearest_of<output_scheme> {
    output_scheme const order[] = {wanted, output_scheme::topa, output_scheme::single_range,
                                   output_scheme::fabric};
    for (output_scheme const one : order) {
        if (caps.supports(one)) { return {true, one}; }
    }
    return {};
}

}  // namespace ptspec::config

// ---- ptspec/config/trace_config.hpp ----

/// A trace configuration with readable members, converted to and from IA32_RTIT_CTL.
namespace ptspec::config {

using cpu::capabilities;
using cpu::cyc_threshold;
using cpu::mtc_period;
using cpu::output_scheme;
using cpu::psb_period;
using reg::addr_cfg;
using reg::ia32_rtit_ctl;

/// A trace configuration:
/// `trace_config{.user = true, .mtc = true, .mtc_every = mtc_period::of_crystal_cycles(8)}`.
///
/// The default traces branches, with RET compression, into ToPA, which every known processor has.
/// Source: REG-024..041, REG-048.
struct trace_config {
    bool os = false;    ///< trace CPL 0
    bool user = false;  ///< trace CPL 1 to 3
    bool branches = true;
    bool ret_compression = true;  ///< a RET to its CALL is one TNT bit; DisRETC is 0
    bool no_tnt = false;          ///< no TNT packets: only TIPs
    bool tsc = false;
    bool mtc = false;
    mtc_period mtc_every{};
    bool cyc = false;
    cyc_threshold cyc_after{};
    psb_period psb_every{};
    bool ptwrite = false;
    bool fup_on_ptwrite = false;  ///< a FUP with the IP of each PTWRITE
    bool power_events = false;
    bool event_trace = false;
    bool cr3_filter = false;
    addr_cfg addr[4] = {};
    output_scheme output = output_scheme::topa;
    bool inject_psb_pmi =
        false;  ///< on enable, raise the PSB and PMI that were pending at the stop

    friend constexpr auto operator==(trace_config const&, trace_config const&) -> bool = default;
};

// ------------------------------------------------------------------------------------ members

/// A member of trace_config.
enum class config_member : uint8_t {
    os,
    user,
    branches,
    ret_compression,
    no_tnt,
    tsc,
    mtc,
    mtc_every,
    cyc,
    cyc_after,
    psb_every,
    ptwrite,
    fup_on_ptwrite,
    power_events,
    event_trace,
    cr3_filter,
    addr_0,
    addr_1,
    addr_2,
    addr_3,
    output,
    inject_psb_pmi,
};

/// A member's name, and its bits of IA32_RTIT_CTL.
struct config_member_info {
    config_member which{};
    text name{};
    uint64_t ctl_bits = 0;
};

/// Every member, in the order of the enumeration.
inline constexpr config_member_info config_members[] = {
    {config_member::os, "os", ptspec::detail::field_mask<ia32_rtit_ctl::OS>},
    {config_member::user, "user", ptspec::detail::field_mask<ia32_rtit_ctl::User>},
    {config_member::branches, "branches", ptspec::detail::field_mask<ia32_rtit_ctl::BranchEn>},
    {config_member::ret_compression, "ret_compression",
     ptspec::detail::field_mask<ia32_rtit_ctl::DisRETC>},
    {config_member::no_tnt, "no_tnt", ptspec::detail::field_mask<ia32_rtit_ctl::DisTNT>},
    {config_member::tsc, "tsc", ptspec::detail::field_mask<ia32_rtit_ctl::TSCEn>},
    {config_member::mtc, "mtc", ptspec::detail::field_mask<ia32_rtit_ctl::MTCEn>},
    {config_member::mtc_every, "mtc_every", ptspec::detail::field_mask<ia32_rtit_ctl::MTCFreq>},
    {config_member::cyc, "cyc", ptspec::detail::field_mask<ia32_rtit_ctl::CYCEn>},
    {config_member::cyc_after, "cyc_after", ptspec::detail::field_mask<ia32_rtit_ctl::CycThresh>},
    {config_member::psb_every, "psb_every", ptspec::detail::field_mask<ia32_rtit_ctl::PSBFreq>},
    {config_member::ptwrite, "ptwrite", ptspec::detail::field_mask<ia32_rtit_ctl::PTWEn>},
    {config_member::fup_on_ptwrite, "fup_on_ptwrite",
     ptspec::detail::field_mask<ia32_rtit_ctl::FUPonPTW>},
    {config_member::power_events, "power_events",
     ptspec::detail::field_mask<ia32_rtit_ctl::PwrEvtEn>},
    {config_member::event_trace, "event_trace", ptspec::detail::field_mask<ia32_rtit_ctl::EventEn>},
    {config_member::cr3_filter, "cr3_filter", ptspec::detail::field_mask<ia32_rtit_ctl::CR3Filter>},
    {config_member::addr_0, "addr[0]", ptspec::detail::field_mask<ia32_rtit_ctl::ADDR0_CFG>},
    {config_member::addr_1, "addr[1]", ptspec::detail::field_mask<ia32_rtit_ctl::ADDR1_CFG>},
    {config_member::addr_2, "addr[2]", ptspec::detail::field_mask<ia32_rtit_ctl::ADDR2_CFG>},
    {config_member::addr_3, "addr[3]", ptspec::detail::field_mask<ia32_rtit_ctl::ADDR3_CFG>},
    {config_member::output, "output",
     ptspec::detail::field_mask<ia32_rtit_ctl::ToPA> |
         ptspec::detail::field_mask<ia32_rtit_ctl::FabricEn>},
    {config_member::inject_psb_pmi, "inject_psb_pmi",
     ptspec::detail::field_mask<ia32_rtit_ctl::InjectPsbPmiOnEnable>},
};

inline constexpr size_t config_member_count = sizeof(config_members) / sizeof(config_members[0]);

[[nodiscard]] constexpr auto info_of(config_member which) noexcept -> config_member_info const& {
    return config_members[underlying(which)];
}

/// A set of members.
struct config_member_set {
    uint32_t bits = 0;

    [[nodiscard]] constexpr auto has(config_member which) const noexcept -> bool {
        return (bits >> underlying(which) & 1U) != 0;
    }
    constexpr void add(config_member which) noexcept { bits |= 1U << underlying(which); }
    [[nodiscard]] constexpr auto empty() const noexcept -> bool { return bits == 0; }
    friend constexpr auto operator==(config_member_set const&, config_member_set const&)
        -> bool = default;
};

// ------------------------------------------------------------------------------------ CTL

// The functions below use the masks of the table above instead of `with` and `get`, whose templates
// would be instantiated on inclusion.

namespace detail {

using namespace ptspec::detail;
using ctl = ia32_rtit_ctl;

/// The bits of IA32_RTIT_CTL of each member, without names: a driver needs none of them.
struct member_bits {
    uint64_t of[config_member_count]{};

    constexpr member_bits() noexcept {
        for (config_member_info const& one : config_members) {
            of[underlying(one.which)] = one.ctl_bits;
        }
    }
};
inline constexpr member_bits all_member_bits{};

constexpr auto bits_of(config_member which) noexcept -> uint64_t {
    return all_member_bits.of[underlying(which)];
}

/// Shifts a number to its field in IA32_RTIT_CTL. Bits that do not fit are dropped.
constexpr auto to_field(config_member which, uint64_t number) noexcept -> uint64_t {
    uint64_t const bits = bits_of(which);
    return number << lowest_bit(bits) & bits;
}
constexpr auto field_value(ia32_rtit_ctl value, config_member which) noexcept -> unsigned {
    uint64_t const bits = bits_of(which);
    return static_cast<unsigned>((value.raw & bits) >> lowest_bit(bits));
}
constexpr auto is_set(ia32_rtit_ctl value, config_member which) noexcept -> bool {
    return (value.raw & bits_of(which)) != 0;
}

constexpr auto ctl_bits_of(output_scheme scheme) noexcept -> uint64_t {
    return scheme == output_scheme::topa     ? field_mask<ia32_rtit_ctl::ToPA>
           : scheme == output_scheme::fabric ? field_mask<ia32_rtit_ctl::FabricEn>
                                             : 0;
}

}  // namespace detail

/// The value of IA32_RTIT_CTL for a configuration, with TraceEn 0. ADDRn_CFG is truncated to four
/// bits: `check` refuses larger numbers.
[[nodiscard]] constexpr auto ctl_of(trace_config const& wanted) noexcept -> ia32_rtit_ctl {
    using member = config_member;
    using detail::to_field;
    return {to_field(member::os, wanted.os) | to_field(member::user, wanted.user) |
            to_field(member::branches, wanted.branches) |
            to_field(member::ret_compression, !wanted.ret_compression) |
            to_field(member::no_tnt, wanted.no_tnt) | to_field(member::tsc, wanted.tsc) |
            to_field(member::mtc, wanted.mtc) |
            to_field(member::mtc_every, wanted.mtc_every.encoding()) |
            to_field(member::cyc, wanted.cyc) |
            to_field(member::cyc_after, wanted.cyc_after.encoding()) |
            to_field(member::psb_every, wanted.psb_every.encoding()) |
            to_field(member::ptwrite, wanted.ptwrite) |
            to_field(member::fup_on_ptwrite, wanted.fup_on_ptwrite) |
            to_field(member::power_events, wanted.power_events) |
            to_field(member::event_trace, wanted.event_trace) |
            to_field(member::cr3_filter, wanted.cr3_filter) |
            to_field(member::addr_0, underlying(wanted.addr[0])) |
            to_field(member::addr_1, underlying(wanted.addr[1])) |
            to_field(member::addr_2, underlying(wanted.addr[2])) |
            to_field(member::addr_3, underlying(wanted.addr[3])) |
            detail::ctl_bits_of(wanted.output) |
            to_field(member::inject_psb_pmi, wanted.inject_psb_pmi)};
}

/// The output scheme that a value of IA32_RTIT_CTL selects.
///
/// Source: REG-026.
[[nodiscard]] constexpr auto output_of(ia32_rtit_ctl value) noexcept -> output_scheme {
    bool const fabric = (value.raw & ptspec::detail::field_mask<ia32_rtit_ctl::FabricEn>) != 0;
    bool const topa = (value.raw & ptspec::detail::field_mask<ia32_rtit_ctl::ToPA>) != 0;
    return fabric ? output_scheme::fabric
           : topa ? output_scheme::topa
                  : output_scheme::single_range;
}

/// The configuration for a value of IA32_RTIT_CTL, the inverse of `ctl_of`. TraceEn, reserved bits,
/// and ToPA beside FabricEn are ignored; `ctl_of` returns all other bits unchanged.
[[nodiscard]] constexpr auto config_of(ia32_rtit_ctl value) noexcept -> trace_config {
    using member = config_member;
    using detail::field_value, detail::is_set;
    auto const number = [=](member which) { return wrapped{field_value(value, which)}; };
    auto const range = [=](member which) {
        return static_cast<addr_cfg>(field_value(value, which));
    };
    return {.os = is_set(value, member::os),
            .user = is_set(value, member::user),
            .branches = is_set(value, member::branches),
            .ret_compression = !is_set(value, member::ret_compression),
            .no_tnt = is_set(value, member::no_tnt),
            .tsc = is_set(value, member::tsc),
            .mtc = is_set(value, member::mtc),
            .mtc_every = mtc_period::encoded(number(member::mtc_every)),
            .cyc = is_set(value, member::cyc),
            .cyc_after = cyc_threshold::encoded(number(member::cyc_after)),
            .psb_every = psb_period::encoded(number(member::psb_every)),
            .ptwrite = is_set(value, member::ptwrite),
            .fup_on_ptwrite = is_set(value, member::fup_on_ptwrite),
            .power_events = is_set(value, member::power_events),
            .event_trace = is_set(value, member::event_trace),
            .cr3_filter = is_set(value, member::cr3_filter),
            .addr = {range(member::addr_0), range(member::addr_1), range(member::addr_2),
                     range(member::addr_3)},
            .output = output_of(value),
            .inject_psb_pmi = is_set(value, member::inject_psb_pmi)};
}

}  // namespace ptspec::config

// ---- ptspec/config/check_config.hpp ----

/// Checks whether a processor supports a configuration, and finds the nearest one that it supports.
namespace ptspec::config {

using access::broken_rule;
using cpu::quirk;
using cpu::quirk_set;

/// A hint about a legal configuration that is likely a mistake.
enum class config_advice : uint8_t {
    nothing_to_trace = 1U << 0,         ///< neither `os` nor `user`. Source: REG-041
    cyc_without_tsc = 1U << 1,          ///< CYC packets without a time base. Source: REG-047
    threshold_without_cyc = 1U << 2,    ///< Source: REG-047
    no_tnt_without_branches = 1U << 3,  ///< Source: REG-047
    fup_without_ptwrite = 1U << 4,      ///< Linux refuses it. Source: REG-032
    range_of_one_page = 1U << 5,        ///< a single range should have at most 4 KB
    table_of_one_region = 1U << 6,      ///< ToPA has one region. Source: REG-163
};

/// The advice as one sentence.
[[nodiscard]] constexpr auto describe(config_advice which) noexcept -> text {
    switch (which) {
        case config_advice::nothing_to_trace: return "with neither os nor user, no code is traced";
        case config_advice::cyc_without_tsc: return "without TSC, CYC packets have no time base";
        case config_advice::threshold_without_cyc:
            return "the CYC threshold has no effect without CYC packets";
        case config_advice::no_tnt_without_branches:
            return "without branches there are no TNT packets to disable";
        case config_advice::fup_without_ptwrite: return "the FUP of PTWRITE needs PTWRITE packets";
        case config_advice::range_of_one_page:
            return "on this model a single range of more than 4 KB is not reliable";
        case config_advice::table_of_one_region:
            return "on this processor a ToPA table has one region and a link to itself";
    }
    return "unknown advice";
}

/// A set of advice.
struct config_advice_set {
    uint8_t bits = 0;

    [[nodiscard]] constexpr auto has(config_advice one) const noexcept -> bool {
        return (bits & underlying(one)) != 0;
    }
    friend constexpr auto operator==(config_advice_set const&, config_advice_set const&)
        -> bool = default;
};

/// A member that a processor refuses, and the broken rule.
struct config_refusal {
    config_member member{};
    rule why = rule::none;

    friend constexpr auto operator==(config_refusal const&, config_refusal const&)
        -> bool = default;
};

/// The result of checking a configuration.
struct config_verdict {
    /// The rule why tracing is impossible: no Intel PT, or no output scheme.
    rule impossible = rule::none;
    config_refusal refusals[config_member_count] = {};
    size_t refused = 0;  ///< the number of refusals

    /// The wanted configuration with the fewest changes that make it legal. Unchanged where tracing
    /// is impossible.
    trace_config nearest{};
    config_advice_set advice{};  ///< about `nearest`

    constexpr explicit operator bool() const noexcept {
        return impossible == rule::none && refused == 0;
    }
    [[nodiscard]] constexpr auto begin() const noexcept -> config_refusal const* {
        return refusals;
    }
    [[nodiscard]] constexpr auto end() const noexcept -> config_refusal const* {
        return refusals + refused;
    }
    /// The rule by which a member is refused, or none.
    [[nodiscard]] constexpr auto why(config_member member) const noexcept -> rule {
        for (config_refusal const& one : *this) {
            if (one.member == member) { return one.why; }
        }
        return rule::none;
    }
};

namespace detail {

/// The number in a member that can exceed its field, else 0.
constexpr auto number_in(trace_config const& wanted, config_member which) noexcept -> uint64_t {
    switch (which) {
        case config_member::addr_0: return underlying(wanted.addr[0]);
        case config_member::addr_1: return underlying(wanted.addr[1]);
        case config_member::addr_2: return underlying(wanted.addr[2]);
        case config_member::addr_3: return underlying(wanted.addr[3]);
        default: return 0;
    }
}

/// The rule by which a member is refused. Only the member's bits are checked: the fields of CTL are
/// independent, except for what TraceEn requires.
constexpr auto rule_of_member(capabilities const& caps, quirk_set quirks,
                              trace_config const& wanted, config_member which) noexcept -> rule {
    uint64_t const number = number_in(wanted, which);
    if (to_field(which, number) >> lowest_bit(bits_of(which)) != number) { return rule::REG_037; }
    uint64_t const all = ctl_of(wanted).raw | field_mask<ia32_rtit_ctl::TraceEn>;
    if (which == config_member::output && access::detail::output_rule::rejects(caps, {all})) {
        return rule::REG_025;
    }
    if (which == config_member::branches && !wanted.branches &&
        quirks.has(quirk::branch_en_always_on)) {
        return rule::REG_040;
    }
    return broken_rule(caps, ia32_rtit_ctl{all & bits_of(which)});
}

/// The replacement bits for a refused member. A member without a nearest value is turned off.
constexpr auto corrected_bits(capabilities const& caps, trace_config const& wanted,
                              config_member which) noexcept -> uint64_t {
    switch (which) {
        case config_member::branches: return bits_of(which);
        case config_member::mtc_every:
            return to_field(which, nearest(caps, wanted.mtc_every).value.encoding());
        case config_member::cyc_after:
            return to_field(which, nearest(caps, wanted.cyc_after).value.encoding());
        case config_member::psb_every:
            return to_field(which, nearest(caps, wanted.psb_every).value.encoding());
        case config_member::output: return ctl_bits_of(nearest(caps, wanted.output).value);
        default: return 0;
    }
}

constexpr auto advice_on(quirk_set quirks, trace_config const& wanted) noexcept
    -> config_advice_set {
    config_advice_set found;
    auto const add = [&](config_advice one, bool applies) {
        if (applies) { found.bits |= underlying(one); }
    };
    add(config_advice::nothing_to_trace, !wanted.os && !wanted.user);
    add(config_advice::cyc_without_tsc, wanted.cyc && !wanted.tsc);
    add(config_advice::threshold_without_cyc, wanted.cyc_after.encoding() != 0 && !wanted.cyc);
    add(config_advice::no_tnt_without_branches, wanted.no_tnt && !wanted.branches);
    add(config_advice::fup_without_ptwrite, wanted.fup_on_ptwrite && !wanted.ptwrite);
    add(config_advice::range_of_one_page,
        wanted.output == output_scheme::single_range && quirks.has(quirk::single_range_one_page));
    add(config_advice::table_of_one_region,
        wanted.output == output_scheme::topa && quirks.has(quirk::single_entry_topa));
    return found;
}

}  // namespace detail

/// Checks every member of a configuration against a processor, and finds the nearest legal
/// configuration. When the verdict is true, a WRMSR of `ctl_of` with TraceEn set breaks no rule by
/// its value.
///
/// Errors: `impossible` is REG-001 without Intel PT, REG-025 without an output scheme. Refusals are
///         those of `find_broken_rules`; also REG-040 where an erratum keeps BranchEn on, and
///         REG-037 for numbers that exceed the field.
/// Source: REG-001, REG-025, REG-028, REG-037, REG-040, REG-041, REG-047, PRG-003, PRG-027.
[[nodiscard]] constexpr auto check(trace_config const& wanted, capabilities const& caps) noexcept
    -> config_verdict {
    config_verdict found;
    found.nearest = wanted;
    if (!caps.has_pt()) {
        found.impossible = rule::REG_001;
        return found;
    }
    if (!nearest(caps, wanted.output)) {
        found.impossible = rule::REG_025;
        return found;
    }
    auto const quirks = quirks_of(caps);
    uint64_t best = ctl_of(wanted).raw;
    for (size_t i = 0; i < config_member_count; ++i) {
        auto const member = static_cast<config_member>(i);
        rule const why = detail::rule_of_member(caps, quirks, wanted, member);
        if (why == rule::none) { continue; }
        found.refusals[found.refused++] = {member, why};
        best = (best & ~detail::bits_of(member)) | detail::corrected_bits(caps, wanted, member);
    }
    found.nearest = config_of({best});
    found.advice = detail::advice_on(quirks, found.nearest);
    return found;
}

}  // namespace ptspec::config

// ---- ptspec/config/perf_config.hpp ----

/// Converts configurations to and from Linux perf's `perf_event_attr`.
namespace ptspec::config {

/// The members of a `perf_event_attr` of the PMU `intel_pt` that determine IA32_RTIT_CTL.
///
/// Shape:  a bit of `config` is the same bit of IA32_RTIT_CTL, except bit 0, `pt`. When `pt` is 1,
///         bit 13, `branch`, is BranchEn. When `pt` is 0, BranchEn is 1 and bit 13 must be 0.
/// Source: Linux, arch/x86/events/intel/pt.c; REG-032.
struct perf_event {
    uint64_t config = 0;
    bool exclude_kernel = false;
    bool exclude_user = false;

    friend constexpr auto operator==(perf_event const&, perf_event const&) -> bool = default;
};

/// Why Linux refuses an event on every processor.
enum class perf_error : uint8_t {
    none,
    unknown_bit,          ///< `config` has a bit without a meaning: clear it
    branch_without_pt,    ///< bit 13 without bit 0: set both, or none
    fup_without_ptwrite,  ///< bit 5 without bit 12: set both, or none
};

/// The error as one sentence.
[[nodiscard]] constexpr auto describe(perf_error which) noexcept -> text {
    switch (which) {
        case perf_error::none: return "nothing is wrong";
        case perf_error::unknown_bit: return "config has a bit that means nothing";
        case perf_error::branch_without_pt: return "branch needs pt";
        case perf_error::fup_without_ptwrite: return "fup_on_ptw needs ptw";
    }
    return "unknown error";
}

namespace detail {

/// Bit 0 of `config`: bit 13 is valid.
inline constexpr uint64_t perf_pt = field_mask<ctl::TraceEn>;

/// The fields that `config` and IA32_RTIT_CTL have in the same places.
inline constexpr uint64_t perf_fields = field_mask<ctl::CYCEn> | field_mask<ctl::PwrEvtEn> |
                                        field_mask<ctl::FUPonPTW> | field_mask<ctl::MTCEn> |
                                        field_mask<ctl::TSCEn> | field_mask<ctl::DisRETC> |
                                        field_mask<ctl::PTWEn> | field_mask<ctl::BranchEn> |
                                        field_mask<ctl::MTCFreq> | field_mask<ctl::CycThresh> |
                                        field_mask<ctl::PSBFreq> | field_mask<ctl::EventEn> |
                                        field_mask<ctl::DisTNT>;

constexpr auto perf_error_of(uint64_t config) noexcept -> perf_error {
    auto const has = [=](config_member which) { return is_set({config}, which); };
    bool const branch_alone = has(config_member::branches) && (config & perf_pt) == 0;
    bool const fup_alone = has(config_member::fup_on_ptwrite) && !has(config_member::ptwrite);
    return (config & ~(perf_fields | perf_pt)) != 0 ? perf_error::unknown_bit
           : branch_alone                           ? perf_error::branch_without_pt
           : fup_alone                              ? perf_error::fup_without_ptwrite
                                                    : perf_error::none;
}

}  // namespace detail

// ------------------------------------------------------------------------------------ from perf

/// The configuration that Linux uses for an event, or why it refuses the event.
struct perf_config {
    perf_error why = perf_error::none;
    trace_config config{};  ///< `output` and `addr` have their defaults: perf sets them elsewhere

    constexpr explicit operator bool() const noexcept { return why == perf_error::none; }
};

/// Converts an event to the configuration that Linux uses. The processor's capabilities are not
/// checked; `check` does that.
///
/// Errors: those of perf_error.
[[nodiscard]] constexpr auto from_perf(perf_event const& event) noexcept -> perf_config {
    auto const why = detail::perf_error_of(event.config);
    if (why != perf_error::none) { return {.why = why}; }
    auto made = config_of(ia32_rtit_ctl{event.config & detail::perf_fields});
    made.os = !event.exclude_kernel;
    made.user = !event.exclude_user;
    made.branches = made.branches || (event.config & detail::perf_pt) == 0;
    made.output = trace_config{}.output;
    return {.config = made};
}

// ------------------------------------------------------------------------------------ to perf

/// An event, and the members of a configuration that it cannot express.
struct perf_request {
    perf_event event{};
    config_member_set lost{};
    perf_error why = perf_error::none;  ///< why Linux refuses the event

    constexpr explicit operator bool() const noexcept {
        return lost.empty() && why == perf_error::none;
    }
};

/// Converts a configuration to an event. Bit 0 is set only when necessary, because old kernels
/// refuse it.
///
/// Errors: `lost` has the members that `from_perf` would not return, because perf has no bit for
///         them (perf takes filters from elsewhere and chooses the output itself). `why` is the
///         reason why Linux refuses the event.
[[nodiscard]] constexpr auto to_perf(trace_config const& wanted) noexcept -> perf_request {
    using detail::perf_pt;
    uint64_t const config_bits = ctl_of(wanted).raw & detail::perf_fields;
    uint64_t const branches = detail::field_mask<ia32_rtit_ctl::BranchEn>;
    perf_request made;
    made.event = {.config = wanted.branches ? config_bits & ~branches : config_bits | perf_pt,
                  .exclude_kernel = !wanted.os,
                  .exclude_user = !wanted.user};
    made.why = detail::perf_error_of(made.event.config);
    auto const mark_lost = [&](config_member which, bool differs) {
        if (differs) { made.lost.add(which); }
    };
    mark_lost(config_member::cr3_filter, wanted.cr3_filter);
    mark_lost(config_member::addr_0, wanted.addr[0] != addr_cfg::off);
    mark_lost(config_member::addr_1, wanted.addr[1] != addr_cfg::off);
    mark_lost(config_member::addr_2, wanted.addr[2] != addr_cfg::off);
    mark_lost(config_member::addr_3, wanted.addr[3] != addr_cfg::off);
    mark_lost(config_member::output, wanted.output != trace_config{}.output);
    mark_lost(config_member::inject_psb_pmi, wanted.inject_psb_pmi);
    return made;
}

}  // namespace ptspec::config

// ---- ptspec/print/text.hpp ----

/// Text output, and numbers as text.
///
/// A printer passes its text to a sink piece by piece, so it allocates nothing. A sink may be a
/// lambda that writes to a screen, a borrowed buffer, or a constant.
namespace ptspec::print {

/// A callable that takes the pieces of a text in order.
template <class Sink>
concept text_sink = callable<Sink&, text>;

/// Passes one piece as `text`, so that a sink with a generic parameter also works.
template <text_sink Sink>
constexpr void put(text piece, Sink&& sink) {
    sink(piece);
}

/// A borrowed character buffer, filled from the front. Text that does not fit is truncated.
class text_buffer {
public:
    constexpr text_buffer(char* first, size_t room) noexcept : first_{first}, room_{room} {}
    template <size_t Count>
    constexpr text_buffer(char (&array)[Count]) noexcept : first_{array}, room_{Count} {}

    constexpr void operator()(text piece) noexcept {
        for (char const letter : piece) {
            if (size_ == room_) {
                cut_ = true;
                break;
            }
            first_[size_++] = letter;
        }
    }

    /// The text written so far, without a terminating zero.
    [[nodiscard]] constexpr auto written() const noexcept -> text { return {first_, size_}; }
    /// True if text was truncated.
    [[nodiscard]] constexpr auto is_truncated() const noexcept -> bool { return cut_; }

private:
    char* first_;
    size_t room_;
    size_t size_ = 0;
    bool cut_ = false;
};

/// An owned text of up to `Room` characters. Text that does not fit is truncated.
template <size_t Room>
struct fixed_text {
    char characters[Room] = {};
    size_t length = 0;
    bool is_truncated = false;

    constexpr void operator()(text piece) noexcept {
        text_buffer rest{characters + length, Room - length};
        rest(piece);
        length += rest.written().size();
        is_truncated = is_truncated || rest.is_truncated();
    }

    /// The text, valid as long as this object.
    [[nodiscard]] constexpr auto written() const noexcept -> text { return {characters, length}; }

    friend constexpr auto operator==(fixed_text const& one, text two) noexcept -> bool {
        return one.written() == two && !one.is_truncated;
    }
};

/// Returns the output of `prints(sink)` as a value: `written<80>([](auto& out) { print::word(start,
/// out); })`.
template <size_t Room, class Prints>
[[nodiscard]] constexpr auto written(Prints&& prints) -> fixed_text<Room> {
    fixed_text<Room> out;
    prints(out);
    return out;
}

/// Prints a number in upper-case hexadecimal with at least `digits` digits. `digits` is at most 16.
template <text_sink Sink>
constexpr void hex(uint64_t number, Sink&& sink, unsigned digits = 1) {
    char letters[16] = {};
    unsigned count = 0;
    while (count < digits || number != 0) {
        ++count;
        letters[16 - count] = "0123456789ABCDEF"[number & 15];
        number >>= 4;
    }
    sink(text{letters + 16 - count, count});
}

template <text_sink Sink>
constexpr void hex(wide_bits number, Sink&& sink) {
    if (number.high != 0) { hex(number.high, sink); }
    hex(number.low, sink, number.high != 0 ? 16 : 1);
}

/// Prints a number in decimal.
template <text_sink Sink>
constexpr void decimal(uint64_t number, Sink&& sink) {
    char letters[20] = {};
    unsigned count = 0;
    do {
        ++count;
        letters[20 - count] = static_cast<char>('0' + number % 10);
        number /= 10;
    } while (number != 0);
    sink(text{letters + 20 - count, count});
}

}  // namespace ptspec::print

// ---- ptspec/print/rows.hpp ----

/// The rows of a declaration as data tables. All printers read these tables, so printing another
/// word adds a table but no code.
namespace ptspec::print {

/// The amount of a field without an `amount` function.
[[nodiscard]] constexpr auto no_amount(uint64_t) noexcept -> quantity { return {}; }

/// One row of a layout, or the payload of a packet, with all its properties.
struct row_facts {
    row_info row;
    uint64_t value;  ///< the value of a fixed row
    /// bit n is 1 if the payload may have n bytes; 0 if the row is no payload
    uint32_t payload_sizes;
    bool ends_at_max_phys_addr;  ///< an address: the bits at and above MAXPHYADDR are reserved
    /// the names of the encodings; empty for an encoding without a name
    text const* enumerators;
    size_t enumerator_count;
    /// The decoded value of an encoding. Without a unit if the field has no `amount` function.
    auto (*amount_of)(uint64_t encoding) noexcept -> quantity = no_amount;

    /// The name of an encoding, or empty. Only encodings below 256 have names.
    [[nodiscard]] constexpr auto enumerator(uint64_t encoding) const noexcept -> text {
        return encoding < enumerator_count ? enumerators[encoding] : text{};
    }
};

/// The rows of a word or a packet from bit 0 up, then the payload. Borrows data with static
/// lifetime.
struct row_list {
    text name;
    row_facts const* first;
    size_t count;
    unsigned bits;  ///< including the longest payload
    bool is_packet;

    [[nodiscard]] constexpr auto begin() const noexcept -> row_facts const* { return first; }
    [[nodiscard]] constexpr auto end() const noexcept -> row_facts const* { return first + count; }
    [[nodiscard]] constexpr auto last() const noexcept -> row_facts const& {
        return first[count - 1];
    }
    /// Finds a field by name. Returns null if there is none.
    [[nodiscard]] constexpr auto field(text which) const noexcept -> row_facts const* {
        for (auto const& one : *this) {
            if (one.row.kind == row_kind::field && one.row.name == which) { return &one; }
        }
        return nullptr;
    }
};

namespace detail {

using namespace ptspec::detail;

template <class Type>
concept is_packet = requires { Type::about.name; };

template <class Type>
concept has_payload = is_packet<Type> && Type::payload_type::largest != 0;

template <class Enum, class Encodings>
struct enumerators;
template <class Enum, size_t... Encoding>
struct enumerators<Enum, index_list<Encoding...>> {
    static constexpr text names[] = {name_of_enumerator<static_cast<Enum>(Encoding)>()...};
};

template <class Row>
constexpr auto make_facts(row_info const& row) noexcept -> row_facts {
    row_facts facts{};
    facts.row = row;
    facts.ends_at_max_phys_addr = Row::ends_at_max_phys_addr;
    if constexpr (Row::kind == row_kind::fixed) {
        facts.value = Row::fixed_value;
    } else if constexpr (Row::kind == row_kind::field) {
        if constexpr (enumeration<typename Row::value_type>) {
            constexpr size_t count = Row::width < 8 ? size_t{1} << Row::width : 256;
            using known = enumerators<typename Row::value_type, make_index_list<count>>;
            facts.enumerators = known::names;
            facts.enumerator_count = count;
        }
        if constexpr (requires { Row::amount(uint64_t{}); }) { facts.amount_of = Row::amount; }
    }
    return facts;
}

/// The possible payload sizes: those of the selecting field, those of a block, or all up to the
/// largest.
template <class Packet>
constexpr auto payload_sizes() noexcept -> uint32_t {
    using payload = typename Packet::payload_type;
    if constexpr (requires { payload::size(uint64_t{}); }) {
        using row = typename decltype(packet::detail::selector_in(
            typename Packet::layout::rows{}))::row;
        uint32_t sizes = 0;
        for (uint64_t selector = 0; selector <= low_bits(row::width); ++selector) {
            unsigned const size = payload::size(selector);
            if (size != packet::undefined_size) { sizes |= uint32_t{1} << size; }
        }
        return sizes;
    } else if constexpr (same_as<payload, packet::payload_of_block>) {
        return uint32_t{1} << underlying(packet::block::items_of_4) |
               uint32_t{1} << underlying(packet::block::items_of_8);
    } else {
        return static_cast<uint32_t>(low_bits(payload::largest + 1));
    }
}

template <size_t Count>
struct row_array {
    row_facts rows[Count];
};

template <class Type, class... Rows>
constexpr auto make_rows(type_list<Rows...>) noexcept {
    constexpr auto infos = rows_of<Type>();
    row_array<sizeof...(Rows) + (has_payload<Type> ? 1 : 0)> list{};
    size_t i = 0;
    ((list.rows[i] = make_facts<Rows>(infos[i]), ++i), ...);
    if constexpr (has_payload<Type>) {
        list.rows[i].row = {"payload",
                            8 * Type::max_bytes - 1,
                            8 * Type::head_bytes,
                            row_kind::field,
                            row_access::plain,
                            false,
                            0};
        list.rows[i].payload_sizes = payload_sizes<Type>();
    }
    return list;
}

template <class Type>
inline constexpr auto rows_in = make_rows<Type>(typename Type::layout::rows{});

}  // namespace detail

/// All properties of the rows of a word or a packet.
template <class Type>
[[nodiscard]] constexpr auto row_list_of() noexcept -> row_list {
    constexpr auto const& rows = detail::rows_in<Type>.rows;
    constexpr size_t count = sizeof rows / sizeof rows[0];
    constexpr unsigned bits = rows[count - 1].row.msb + 1;
    if constexpr (detail::is_packet<Type>) {
        return {Type::about.name, rows, count, bits, true};
    } else {
        return {name_of<Type>(), rows, count, bits, false};
    }
}

/// The access of a row in at most two words.
[[nodiscard]] constexpr auto access_name(row_access access) noexcept -> text {
    switch (access) {
        case row_access::plain: break;
        case row_access::write_ignored: return "write ignored";
        case row_access::forced_1: return "reads 1";
        case row_access::read_only: return "read only";
    }
    return "read/write";
}

}  // namespace ptspec::print

// ---- ptspec/print/word.hpp ----

/// Prints the value of a word: `TraceEn=1 MTCFreq=3 (8 crystal cycles) reserved set 40000H`.
///
/// A number below 10 is a decimal digit. Larger numbers and all addresses are hexadecimal with the
/// suffix H, as in the manual. Amounts are decimal and followed by their unit.
namespace ptspec::print {

/// Options for printing a word.
struct style {
    bool zeros = false;     ///< also print fields that are 0
    bool meanings = true;   ///< in parentheses, the name or the amount of an encoding
    bool bare_hex = false;  ///< all numbers in hexadecimal without H; `; ` before reserved bits
    unsigned max_phys_addr = 64;  ///< address bits at and above this bit are reserved

    /// Prints all fields.
    static style const full;
    /// Prints all fields as bare hexadecimal numbers: `TraceEn=1 MTCFreq=F; reserved set 40000`.
    static style const plain_hex;
};

inline constexpr style style::full{.zeros = true};
inline constexpr style style::plain_hex{.zeros = true, .meanings = false, .bare_hex = true};

/// A field and its value.
struct field_value {
    row_facts const* of;
    uint64_t encoding;
    uint64_t value;  ///< the encoding, or the address for an address field
};

/// Calls `visit(field_value)` for each field from bit 0 up.
template <class Visitor>
constexpr void for_each_field(row_list const& rows, wide_bits raw, Visitor&& visit) {
    for (auto const& one : rows) {
        if (one.row.kind != row_kind::field || one.payload_sizes != 0) { continue; }
        uint64_t const encoding = detail::from_bit(raw, one.row.lsb) &
                                  low_bits(one.row.msb - one.row.lsb + 1);
        visit(field_value{&one, encoding, encoding << one.row.lowest_address_bit});
    }
}

template <class Word, class Visitor>
constexpr void for_each_field(Word const& word, Visitor&& visit) {
    for_each_field(row_list_of<Word>(), packet::detail::widen(word.raw), visit);
}

namespace detail {

template <class Sink>
constexpr void hex_with_h(wide_bits number, Sink& sink, style how) {
    hex(number, sink);
    if (!how.bare_hex) { put("H", sink); }
}

/// Prints a number that is not an address.
template <class Sink>
constexpr void plain_number(wide_bits number, Sink& sink, style how) {
    if (number.high == 0 && number.low < 10) {
        decimal(number.low, sink);
    } else {
        hex_with_h(number, sink, how);
    }
}

}  // namespace detail

/// Prints an amount with its unit, which is a plural: `8 crystal cycles`, `1 byte`.
template <text_sink Sink>
constexpr void amount(quantity const& what, Sink&& sink) {
    decimal(what.count, sink);
    put(" ", sink);
    auto unit = what.unit;
    if (what.count == 1 && unit.data()[unit.size() - 1] == 's') { --unit.length; }
    put(unit, sink);
}

/// Prints the value of a field: `3 (8 crystal cycles)`.
template <text_sink Sink>
constexpr void value(field_value const& what, Sink&& sink, style how = {}) {
    if (what.of->row.is_address) {
        detail::hex_with_h({what.value, 0}, sink, how);
    } else {
        detail::plain_number({what.value, 0}, sink, how);
    }
    if (!how.meanings) { return; }
    auto const enumerator = what.of->enumerator(what.encoding);
    auto const quantity = what.of->amount_of(what.encoding);
    if (enumerator.size() != 0) {
        put(" (", sink);
        put(enumerator, sink);
        put(")", sink);
    } else if (quantity.unit.size() != 0) {
        put(" (", sink);
        amount(quantity, sink);
        put(")", sink);
    }
}

namespace detail {

/// Prints items on one line, separated by spaces.
template <class Sink>
struct item_writer {
    Sink& sink;
    style how;
    bool any = false;

    constexpr void begin_item(text separator = " ") {
        if (any) { put(separator, sink); }
        any = true;
    }
    constexpr void fields(row_list const& rows, wide_bits raw) {
        for_each_field(rows, raw, [&](field_value const& field) {
            if (field.encoding == 0 && !how.zeros) { return; }
            begin_item();
            put(field.of->row.name, sink);
            put("=", sink);
            value(field, sink, how);
        });
    }
    constexpr void other(wide_bits set) {
        if (set == wide_bits{} || how.bare_hex) { return; }
        begin_item();
        put("other set ", sink);
        hex_with_h(set, sink, how);
    }
    constexpr void reserved(wide_bits set) {
        if (set == wide_bits{}) { return; }
        begin_item(how.bare_hex ? text{"; "} : text{" "});
        put("reserved set ", sink);
        hex_with_h(set, sink, how);
    }
};

constexpr auto other_bits(row_list const& rows) noexcept -> wide_bits {
    wide_bits mask{};
    for (auto const& one : rows) {
        if (one.row.kind == row_kind::other) {
            mask = mask | bit_mask<wide_bits>(one.row.msb, one.row.lsb);
        }
    }
    return mask;
}

}  // namespace detail

/// Prints a word's fields from bit 0 up, separated by spaces, and the reserved bits that are set.
/// Prints `0` if there is nothing else.
template <class Word, text_sink Sink>
constexpr void word(Word const& word, Sink&& sink, style how = {}) {
    detail::item_writer<bare_t<Sink>> out{sink, how};
    auto const rows = row_list_of<Word>();
    auto const raw = packet::detail::widen(word.raw);
    out.fields(rows, raw);
    out.other(raw & detail::other_bits(rows));
    out.reserved(packet::detail::widen(word.reserved_bits_set(how.max_phys_addr)));
    if (!out.any) { put("0", sink); }
}

}  // namespace ptspec::print

// ---- ptspec/print/packet.hpp ----

/// A packet as text: `PTW PayloadBytes=0 IP=1 payload=12345678H`.
namespace ptspec::print {

namespace detail {

/// The bytes after the head, and their number.
struct payload_value {
    wide_bits bits{};
    unsigned bytes = 0;
};

/// The length of a packet in bytes. For a BIP it depends on the block, so the longest is assumed.
template <class Packet>
constexpr auto length_of(Packet const& packet) noexcept -> unsigned {
    if constexpr (same_as<typename Packet::payload_type, packet::payload_of_block>) {
        return Packet::max_bytes;
    } else {
        return Packet::length_of(packet.raw, packet::block::none);
    }
}

template <class Packet>
constexpr auto payload_of(Packet const& packet) noexcept -> payload_value {
    if constexpr (!has_payload<Packet>) {
        return {};
    } else {
        constexpr unsigned head = Packet::head_bytes;
        unsigned const length = length_of(packet);
        if (length < head) { return {}; }  // the selecting field holds a reserved value
        auto const bits = packet::detail::widen(packet.raw);
        return {packet::detail::first_bytes({from_bit(bits, 8 * head), bits.high >> 8 * head},
                                            length - head),
                length - head};
    }
}

}  // namespace detail

/// Prints a packet's name, its fields from bit 0 up, its payload if it has one, and the reserved
/// bits that are set.
template <packet::packet_type Packet, text_sink Sink>
constexpr void packet(Packet const& packet, Sink&& sink, style how = style::full) {
    detail::item_writer<bare_t<Sink>> out{sink, how};
    out.begin_item();
    put(Packet::about.name, sink);
    out.fields(row_list_of<Packet>(), packet::detail::widen(packet.raw));
    if (auto const payload = detail::payload_of(packet); payload.bytes != 0) {
        out.begin_item();
        put("payload=", sink);
        detail::plain_number(payload.bits, sink, how);
    }
    out.reserved(packet::detail::widen(packet.reserved_bits_set(how.max_phys_addr)));
}

template <class Packets = packet::all, text_sink Sink>
constexpr void packet(packet::any_packet const& packet, Sink&& sink, style how = style::full) {
    visit<Packets>([&](auto const& one) { print::packet(one, sink, how); }, packet);
}

}  // namespace ptspec::print

// ---- ptspec/trace/psb_search.hpp ----

/// Finds PSBs, the places where decoding can start.
///
/// In a run of more than eight pairs 02 82 the PSB is the last 16 bytes: the payload of the packet
/// before a PSB can extend the run to the left; only another PSB can extend it to the right.
///
/// Source: SDM vol. 3, "Packet Stream Boundary (PSB) Packet"; PKT-250, PKT-251.
namespace ptspec::trace {

inline constexpr unsigned psb_bytes = packet::psb::max_bytes;

/// Searches a stream that arrives in chunks. Its state is the run of the pattern at the end of the
/// last chunk.
class psb_search {
public:
    /// Continues in the next chunk. Returns true when it finds a PSB, which ends before byte
    /// `end()` of this chunk; -1 when it ends one byte before the chunk. Use a new object to search
    /// for the PSB after it.
    [[nodiscard]] constexpr auto feed(byte_view chunk) noexcept -> bool {
        size_t at = 0;
        while (at < chunk.size()) {
            if (run_ == 0) { at = likely_begin(chunk, at); }
            if (chunk[at] == (run_ % 2 == 0 ? first_byte : second_byte)) {
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

    /// Ends the stream. Returns true when the run at its end is a PSB, which ends before byte
    /// `end()` of the last chunk.
    [[nodiscard]] constexpr auto finish() noexcept -> bool {
        return is_psb() && found_before(static_cast<size_t>(end_));
    }

    [[nodiscard]] constexpr auto end() const noexcept -> int64_t { return end_; }

private:
    /// Eight bytes of the pattern, in its two phases: 02H first and 82H first.
    static constexpr uint64_t phase_02 = packet::detail::opcode_bits<packet::psb>.low;
    static constexpr uint64_t phase_82 = phase_02 >> 8 | phase_02 << 56;
    static constexpr uint8_t first_byte = phase_02 & 0xFF;
    static constexpr uint8_t second_byte = phase_82 & 0xFF;

    [[nodiscard]] constexpr auto is_psb() const noexcept -> bool {
        return run_ / 2 >= psb_bytes / 2;
    }

    constexpr auto found_before(size_t at) noexcept -> bool {
        end_ = static_cast<int64_t>(at) - static_cast<int64_t>(run_ % 2);
        return true;
    }

    /// True when two bytes may be part of the pattern. One comparison covers both phases. Of all
    /// other pairs, one in 256 passes, but no pair of equal bytes.
    static constexpr auto may_be_pattern(uint8_t const* two) noexcept -> bool {
        constexpr unsigned pair_82 = phase_82 & 0xFFFF;
        constexpr unsigned pair_02 = phase_02 & 0xFFFF;
        unsigned const here = two[0] | unsigned{two[1]} << 8;
        return ((here - pair_82) & 0xFFFF & ~(pair_02 - pair_82)) == 0;
    }

    /// True when eight bytes may be part of a PSB, given the eight bytes before and after them.
    static constexpr auto may_be_psb(uint8_t const* eight) noexcept -> bool {
        uint64_t const here = load_le64(eight);
        if (here != phase_02 && here != phase_82) { return false; }
        uint64_t const before = load_le64(eight - 8) ^ here;
        uint64_t const after = load_le64(eight + 8) ^ here;
        if (before == 0 || after == 0) { return true; }
        return (63 - highest_bit(before)) / 8 + 8 + lowest_bit(after) / 8 >= psb_bytes;
    }

    /// Where the bytewise search must start at the latest, so that it misses no PSB that begins at
    /// `begin` or later and no run that reaches the end. Tests one pair of bytes every 15 bytes: if
    /// the pair lies in a PSB, so do the eight bytes that begin with it or the eight that end with
    /// it.
    static constexpr auto likely_begin(byte_view chunk, size_t begin) noexcept -> size_t {
        constexpr size_t step = psb_bytes - 1;
        uint8_t const* const data = chunk.data();
        size_t at = begin + step - 1;
        auto const is_not = [&](size_t i) { return !may_be_pattern(data + at + i * step); };
        for (;; at += step) {
            while (at + size_t{8} * psb_bytes <= chunk.size() && is_not(0) && is_not(1) &&
                   is_not(2) && is_not(3) && is_not(4) && is_not(5) && is_not(6) && is_not(7)) {
                at += 8 * step;
            }
            while (at + psb_bytes <= chunk.size() && is_not(0)) { at += step; }
            if (at + psb_bytes > chunk.size() || may_be_psb(data + at) ||
                may_be_psb(data + at - 6)) {
                return at - (step - 1);
            }
        }
    }

    uint64_t run_ = 0;  // bytes of the pattern directly before the search position
    int64_t end_ = 0;
};

/// The offset that means "no PSB found".
inline constexpr size_t npos = ~size_t{0};

/// The first PSB that begins at `from` or later, or `npos`.
[[nodiscard]] constexpr auto find_psb(byte_view in, size_t from = 0) noexcept -> size_t {
    psb_search search;
    return search.feed(in.from(from)) || search.finish()
               ? from + static_cast<size_t>(search.end()) - psb_bytes
               : npos;
}

/// The last PSB that begins before `before`, or `npos`.
[[nodiscard]] constexpr auto find_psb_before(byte_view in, size_t before) noexcept -> size_t {
    constexpr size_t block = 4096;
    while (before != 0) {
        size_t const begin = before > block ? before - block : 0;
        // Enough bytes to see whether the run of a PSB that begins before `before` continues.
        auto const near_bytes = in.first(before + psb_bytes + 1);
        size_t found = npos;
        for (size_t at = find_psb(near_bytes, begin); at < before;
             at = find_psb(near_bytes, at + psb_bytes)) {
            found = at;
        }
        if (found != npos) { return found; }
        before = begin;
    }
    return npos;
}

}  // namespace ptspec::trace

// ---- ptspec/trace/input.hpp ----

namespace ptspec::trace {

/// The bytes of a trace, which arrives in one chunk or several, and the read position.
///
/// The chunk is borrowed. When it is released, its last bytes are copied into the carry: the
/// beginning of a packet that continues in the next chunk, and as many bytes before it as a search
/// for a PSB may have to step back.
class input {
public:
    /// The most bytes to step back. A PSB can begin this many bytes before the position at which
    /// decoding failed, because the packet before the PSB may have taken its first bytes (PKT-250).
    static constexpr unsigned max_step_back = psb_bytes - 1;

    constexpr input() noexcept = default;
    constexpr explicit input(byte_view whole) noexcept : chunk_{whole}, last_{true} {}

    /// Sets the next chunk. Returns false while the last one is not released, and after `finish()`.
    [[nodiscard]] constexpr auto feed(byte_view chunk) noexcept -> bool {
        if (last_ || !chunk_.empty()) { return false; }
        chunk_ = chunk;
        return true;
    }
    constexpr void finish() noexcept { last_ = true; }
    /// No more chunks follow.
    [[nodiscard]] constexpr auto is_last() const noexcept -> bool { return last_; }

    /// The read position, in bytes from the start of the trace.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t {
        return chunk_offset_ + position_ - carry_unread_;
    }
    /// The same, when no byte of the carry is unread.
    [[nodiscard]] constexpr auto offset_in_chunk() const noexcept -> uint64_t {
        return chunk_offset_ + position_;
    }
    /// The read position lies before the chunk, in the carry.
    [[nodiscard]] constexpr auto straddles() const noexcept -> bool { return carry_unread_ != 0; }

    [[nodiscard]] constexpr auto chunk() const noexcept -> byte_view { return chunk_; }
    /// The read position in the chunk, when it does not straddle.
    [[nodiscard]] constexpr auto position() const noexcept -> size_t { return position_; }
    /// The unread bytes of the chunk, when the position does not straddle.
    [[nodiscard]] constexpr auto rest() const noexcept -> byte_view {
        return chunk_.from(position_);
    }
    /// The unread bytes of the carry.
    [[nodiscard]] constexpr auto unread_carry() const noexcept -> byte_view {
        return byte_view{carry_}.from(carry_bytes - carry_unread_);
    }
    /// The unread bytes at a position that straddles, written to `room`: the carry, and as many
    /// bytes of the chunk as the longest packet has.
    [[nodiscard]] constexpr auto stitched(byte_buffer room) const noexcept -> byte_view {
        (void)room.append(unread_carry());
        (void)room.append(chunk_.first(psb_bytes));
        return room.written();
    }

    constexpr void advance(size_t count) noexcept {
        size_t const carried = count < carry_unread_ ? count : carry_unread_;
        carry_unread_ = static_cast<uint8_t>(carry_unread_ - carried);
        position_ += count - carried;
    }
    /// The same, when the position does not straddle.
    constexpr void advance_in_chunk(size_t count) noexcept {
        // Without the barrier next() takes up to 38 % more instructions (clang 19).
        position_ = hide_from_optimizer(position_ + count);
    }
    /// Steps back by `count` bytes, which is at most `max_step_back` and at most `offset()`.
    constexpr void step_back(unsigned count) noexcept {
        unsigned const in_chunk = position_ < count ? static_cast<unsigned>(position_) : count;
        position_ -= in_chunk;
        carry_unread_ = static_cast<uint8_t>(carry_unread_ + count - in_chunk);
    }
    constexpr void seek(size_t to) noexcept {
        position_ = to;
        carry_unread_ = 0;
    }

    /// Releases the chunk and copies its last bytes to the carry. The last `unread` bytes, which
    /// may begin before this chunk, stay unread.
    constexpr void release(unsigned unread) noexcept {
        byte_array<carry_bytes> all{};
        size_t const from_chunk = chunk_.size() < carry_bytes ? chunk_.size() : carry_bytes;
        for (size_t i = 0; i < carry_bytes; ++i) {
            all.bytes[i] = i < carry_bytes - from_chunk ? carry_.bytes[i + from_chunk]
                                                        : chunk_[chunk_.size() - carry_bytes + i];
        }
        carry_ = all;
        carry_unread_ = static_cast<uint8_t>(unread);
        chunk_offset_ += chunk_.size();
        chunk_ = {};
        position_ = 0;
    }

    /// Moves the position after the next PSB. Returns false when there is none: then the position
    /// is at the end of the last chunk, or the chunk is released and the search continues in the
    /// next.
    [[nodiscard]] constexpr auto search(psb_search& search) noexcept -> bool {
        if (straddles()) {
            auto const before = unread_carry();
            bool const found = search.feed(before);
            advance(found ? static_cast<size_t>(search.end()) : before.size());
            if (found) { return true; }
        }
        bool const found = search.feed(rest()) || (last_ && search.finish());
        if (found && search.end() < 0) {
            step_back(1);
        } else if (found) {
            position_ += static_cast<size_t>(search.end());
        } else if (last_) {
            position_ = chunk_.size();
        } else {
            release(0);
        }
        return found;
    }

private:
    // An incomplete packet, and the bytes before it to step back.
    static constexpr size_t carry_bytes = size_t{2} * max_step_back;

    byte_view chunk_{};
    size_t position_ = 0;
    uint64_t chunk_offset_ = 0;
    bool last_ = false;
    uint8_t carry_unread_ = 0;
    byte_array<carry_bytes> carry_{};
};

}  // namespace ptspec::trace

// ---- ptspec/trace/item.hpp ----

namespace ptspec::trace {

/// The type of an item of a trace.
enum class item_type : uint8_t {
    packet,      ///< a packet
    unknown,     ///< `length` bytes that only the caller's hook can decode
    synced,      ///< the first PSB: the `skipped` bytes before it were not decoded
    damage,      ///< the bytes at `offset` are no packet or an invalid one: `why`, `broken`
    resynced,    ///< decoding resumes at the PSB at `offset`
    lost,        ///< no PSB follows: the last `skipped` bytes are not decoded
    need_input,  ///< the chunk is consumed: call `feed()` with the next, or `finish()`
    end,         ///< the end of the trace
};

/// One item of a trace: a packet, or something else that a reader reports, and its offset.
struct item {
    item_type what = item_type::end;
    packet::error why = packet::error::none;  ///< of damage; truncated: the trace ends in a packet
    uint8_t length = 0;                       ///< size of the packet or unknown bytes, in bytes
    uint8_t need = 0;  ///< for need_input and truncated damage: the minimum number of missing bytes
    rule broken = rule::none;  ///< of damage
    uint64_t offset = 0;       ///< in bytes from the start of the trace
    uint64_t ip = 0;           ///< the last IP after it
    int64_t skipped = 0;       ///< of synced, resynced and lost: bytes since the last position.
        ///< Negative when a PSB begins before the damage, by up to 15 bytes.
    packet::any_packet packet{};

    /// False at the end of the trace and at the end of a chunk.
    constexpr explicit operator bool() const noexcept {
        return what != item_type::need_input && what != item_type::end;
    }
};

/// Where a packet begins, the last IP after it, and its length in bytes.
struct at {
    uint64_t offset;
    uint64_t ip;
    unsigned length;
};

/// How to read a trace.
struct options {
    bool sync = true;     ///< start at the first PSB; otherwise at the first byte
    bool strict = false;  ///< a set reserved bit of TMA is damage (PKT-104)
};

/// The default hook, which decodes no opcode.
///
/// A hook decodes opcodes that are unknown to ptspec. It is called with the bytes at such an opcode
/// (up to 16) and returns the length of the packet: 1 to 16, or 0 when the opcode is unknown to the
/// hook, too.
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

/// The visitor accepts this packet type.
template <class Visitor, class Packet>
concept takes = callable<Visitor&, Packet const&, at>;

/// The visitor accepts runs of PADs: `visitor.pads(count, at)`. This is not `operator()`, because a
/// run of PADs is no packet type and must not reach a visitor that accepts every type.
template <class Visitor>
concept accepts_pad_runs = requires(Visitor& visitor, unsigned count, at where) {
    visitor.pads(count, where);
};

namespace detail {

template <class Visitor, class... Packets>
constexpr auto accepts_any(type_list<Packets...>) noexcept -> bool {
    return (takes<Visitor, Packets> || ...);
}

/// Passes a run of PADs to the visitor. Returns false when the visitor stops.
template <class Visitor>
constexpr auto call_pads(Visitor& visitor, unsigned count, at where) -> bool {
    if constexpr (same_as<decltype(visitor.pads(count, where)), void>) {
        visitor.pads(count, where);
        return true;
    } else {
        return visitor.pads(count, where);
    }
}

/// Calls the visitor if it accepts this packet type. Returns false when the visitor stops.
template <class Visitor, class Packet>
constexpr auto call(Visitor& visitor, Packet const& packet, at where) -> bool {
    if constexpr (same_as<Packet, packet::pad> && accepts_pad_runs<Visitor>) {
        return call_pads(visitor, 1, where);
    } else if constexpr (!takes<Visitor, Packet>) {
        return true;
    } else if constexpr (same_as<result_t<Visitor&, Packet const&, at>, void>) {
        visitor(packet, where);
        return true;
    } else {
        return visitor(packet, where);
    }
}

/// Calls the visitor if it accepts items. Returns false when the visitor stops.
template <class Visitor>
constexpr auto call([[maybe_unused]] Visitor& visitor, [[maybe_unused]] item const& one) -> bool {
    if constexpr (!callable<Visitor&, item const&>) {
        return true;
    } else if constexpr (same_as<result_t<Visitor&, item const&>, void>) {
        visitor(one);
        return true;
    } else {
        return visitor(one);
    }
}

/// A small visitor is copied before the decode loop and written back after it. The address of the
/// copy does not escape, so that its members can stay in registers.
template <class Visitor>
inline constexpr bool is_copied = sizeof(Visitor) <= 64 && __is_trivially_copyable(Visitor) &&
                                  __is_assignable(Visitor&, Visitor const&);
template <class Visitor>
using copy_or_reference = choose_t<is_copied<Visitor>, Visitor, Visitor&>;

}  // namespace detail

/// A visitor of packets: `visitor(packet, at)` for at least one packet type. It returns nothing, or
/// false to stop. It may also accept `visitor(item)`, likewise, for every item that is no packet,
/// and have `visitor.pads(count, at)`, which then gets all PADs, in order, in runs of any length.
///
/// The fastest visitor is a struct of at most 64 bytes that contains its sums. A trivially
/// copyable visitor may be called as a copy. The copy is written back when decoding stops, but not
/// when the visitor throws.
template <class Visitor, class Packets = packet::all>
concept packet_visitor = detail::accepts_any<Visitor>(Packets{}) || accepts_pad_runs<Visitor>;

}  // namespace ptspec::trace

// ---- ptspec/trace/packet_counts.hpp ----

namespace ptspec::trace {

/// The number of packets and bytes in a trace, by packet kind.
struct packet_counts {
    uint64_t packets[packet::kinds] = {};  ///< by kind
    uint64_t bytes[packet::kinds] = {};    ///< by kind
    uint64_t unknown = 0;                  ///< packets that only the caller's hook decoded
    uint64_t unknown_bytes = 0;
    uint64_t errors = 0;
    uint64_t resyncs = 0;

    /// Counts `count` packets of one kind and length.
    constexpr void add(packet::kind which, unsigned length, uint64_t count = 1) noexcept {
        packets[underlying(which)] += count;
        bytes[underlying(which)] += count * length;
    }
    /// Counts one item of a reader.
    constexpr void add(item const& one) noexcept {
        if (one.what == item_type::packet) { return add(one.packet.kind(), one.length); }
        unknown += one.what == item_type::unknown ? 1U : 0U;
        unknown_bytes += one.what == item_type::unknown ? one.length : 0U;
        errors += one.what == item_type::damage ? 1U : 0U;
        resyncs += one.what == item_type::resynced ? 1U : 0U;
    }
    /// Adds the counts of another part of the trace.
    constexpr auto operator+=(packet_counts const& other) noexcept -> packet_counts& {
        for (unsigned i = 0; i < packet::kinds; ++i) {
            packets[i] += other.packets[i];
            bytes[i] += other.bytes[i];
        }
        unknown += other.unknown;
        unknown_bytes += other.unknown_bytes;
        errors += other.errors;
        resyncs += other.resyncs;
        return *this;
    }

    [[nodiscard]] constexpr auto of(packet::kind which) const noexcept -> uint64_t {
        return packets[underlying(which)];
    }
    /// All packets, including the unknown ones.
    [[nodiscard]] constexpr auto total() const noexcept -> uint64_t {
        uint64_t sum = unknown;
        for (uint64_t const count : packets) { sum += count; }
        return sum;
    }

    friend constexpr auto operator==(packet_counts const&, packet_counts const&) -> bool = default;
};

namespace detail {

/// A visitor that counts packets and reports their boundaries.
template <class Boundary>
struct counter {
    packet_counts& sum;
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

// ---- ptspec/trace/fast/opcode_info.hpp ----

/// Tables that give the length, kind and IP form of a packet from its first bytes. They are derived
/// from the declarations of the packets.
namespace ptspec::trace::detail {

using packet::detail::escape;
using packet::detail::opcode_bits;

/// The number of bytes that the fast path reads at each packet, independent of its length.
inline constexpr size_t lookahead_bytes = 16;

/// The next lookup that a packet needs.
enum class next_lookup : uint8_t {
    first_byte,
    after_escape,  ///< the second byte is the opcode: the second table
    after_mode,    ///< the second byte has the leaf: the third table
    whole_packet,  ///< the payload may be invalid: check the whole packet
};

/// The IP form of PSB, which clears the last IP. Source: PKT-061.
inline constexpr uint8_t clears_ip = 8;

/// The properties of a packet that follow from its first one or two bytes.
struct opcode_info {
    uint8_t length = 0;  ///< 0: unknown, although `which` may be known
    packet::kind which = packet::kind::pad;
    uint8_t form = 0;  ///< IPBytes; 0 also for a packet without IP; `clears_ip` for PSB
    next_lookup next = next_lookup::first_byte;
};

inline constexpr auto tnt_opcode = packet::detail::shape_of<packet::tnt_short>();
inline constexpr auto cyc_opcode = packet::detail::shape_of<packet::cyc>();
inline constexpr uint64_t mode_opcode = packet::detail::shape_of<packet::mode_exec>().value;

template <class Packet>
inline constexpr bool opens_or_needs_a_block =
    same_as<Packet, packet::bbp> ||
    same_as<typename Packet::payload_type, packet::payload_of_block>;

/// The opcode information of a packet type, outside a block. `head` has the first `known` bytes of
/// the packet.
template <class Packet>
constexpr auto opcode_info_of(uint64_t head, unsigned known) noexcept -> opcode_info {
    using raw = typename Packet::raw_type;
    constexpr bool has_one_size = same_as<typename Packet::payload_type, packet::no_payload>;
    auto const bits = packet::detail::narrow<raw>(wide_bits{head, 0});
    opcode_info const unknown{.which = Packet::about.id};
    if (opens_or_needs_a_block<Packet>) { return unknown; }
    if (packet::detail::leaf_bits<Packet> != 0 && known == 1) {
        return {.next = next_lookup::after_mode};
    }
    if (packet::detail::broken_header<Packet>(bits) != rule::none) { return unknown; }
    unsigned const length = Packet::length_of(bits, packet::block::none);
    opcode_info all{static_cast<uint8_t>(length), Packet::about.id};
    if (length <= known) {
        if (packet::detail::broken_payload<Packet>(bits, true) != rule::none) { return unknown; }
    } else {
        if (!has_one_size && Packet::head_bytes > known) { return unknown; }
        if (
            requires { Packet::broken_payload(bits); } ||
            requires { Packet::broken_when_strict(bits); }) {
            if (!has_one_size || known == 1) { return unknown; }
            all.next = next_lookup::whole_packet;
        }
    }
    if constexpr (derived_from<Packet, packet::ip_packet<Packet>>) {
        all.form = underlying(Packet{bits}.template get<typename Packet::IPBytes>());
    } else if constexpr (same_as<Packet, packet::psb>) {
        all.form = clears_ip;
    }
    return all;
}

/// All opcode information: 256 rows for the first byte, 256 for the second byte after the escape
/// and 256 for the second byte of MODE. One array for each member: each lookup is one load.
struct opcode_info_table {
    static constexpr size_t rows = size_t{3} * 256;

    uint8_t length[rows];
    packet::kind which[rows];
    uint8_t form[rows];
    next_lookup next[rows];

    [[nodiscard]] constexpr auto at(size_t row) const noexcept -> opcode_info {
        return {length[row], which[row], form[row], next[row]};
    }
    constexpr void set(size_t row, opcode_info one) noexcept {
        length[row] = one.length;
        which[row] = one.which;
        form[row] = one.form;
        next[row] = one.next;
    }
};

/// The row of a byte in the table that `where` selects.
constexpr auto row_of(next_lookup where, uint8_t byte) noexcept -> size_t {
    return size_t{underlying(where)} << 8 | byte;
}

/// Sets the rows of the first byte, or of the second byte after the escape.
template <class Packets>
constexpr void set_opcode_infos(opcode_info_table& all, next_lookup where) noexcept {
    bool const second = where == next_lookup::after_escape;
    for (unsigned i = 0; i < 256; ++i) {
        auto const byte = static_cast<uint8_t>(i);
        auto const opcode = second ? packet::classify_ext<Packets>(byte)
                                   : packet::classify_first<Packets>(byte);
        if (opcode.what != packet::opcode_byte::meaning::packet) { continue; }
        uint64_t const head = second ? escape | i << 8 : i;
        all.set(row_of(where, byte),
                packet::for_kind(
                    opcode.which,
                    [&]<class Packet>() { return opcode_info_of<Packet>(head, second ? 2 : 1); },
                    Packets{}));
    }
}

/// Sets the rows of the second byte of MODE, whose leaf selects the packet.
template <class... Packets>
constexpr void set_mode_leaves(opcode_info_table& all, type_list<Packets...>) noexcept {
    for (unsigned i = 0; i < 256; ++i) {
        uint64_t const head = mode_opcode | i << 8;
        size_t const row = row_of(next_lookup::after_mode, static_cast<uint8_t>(i));
        ((packet::detail::leaf_bits<Packets> != 0 &&
                  ((packet::detail::widen(opcode_bits<Packets>).low ^ head) &
                   packet::detail::leaf_bits<Packets>) == 0
              ? all.set(row, opcode_info_of<Packets>(head, 2))
              : void()),
         ...);
    }
}

/// The table. It is a variable template: only programs that use it evaluate it.
template <class Packets>
inline constexpr opcode_info_table opcode_infos = [] {
    opcode_info_table all{};
    set_opcode_infos<Packets>(all, next_lookup::first_byte);
    set_opcode_infos<Packets>(all, next_lookup::after_escape);
    set_mode_leaves(all, Packets{});
    all.next[escape] = next_lookup::after_escape;
    return all;
}();

/// Checks the payload of a packet whose bytes are all given.
template <class Packets>
[[gnu::noinline]]  // keeps the cold path out of the caller's registers
constexpr auto
is_valid_packet(uint64_t low, uint64_t high, packet::kind which, bool strict) noexcept -> bool {
    wide_bits const image{low, high};  // passed as two scalars: some ABIs pass a struct in memory
    return packet::for_kind(
        which,
        [&]<class Packet>() {
            auto const bits = packet::detail::narrow<typename Packet::raw_type>(image);
            return packet::detail::broken_payload<Packet>(bits, strict) == rule::none;
        },
        Packets{});
}

/// The row of the packet at `at`, or the row of the escape, whose length is 0, when the payload is
/// invalid. At least `lookahead_bytes` bytes are readable.
template <class Packets>
[[gnu::always_inline]]  // avoids a call per packet
constexpr auto
row_at(uint8_t const* at, bool strict) noexcept -> size_t {
    opcode_info_table const& all = opcode_infos<Packets>;
    size_t const first = *at;
    size_t row = first;
    // A branch, not a conditional move: a move would add its latency to the length of every TIP.
    if (first == escape) [[unlikely]] { row = row_of(next_lookup::after_escape, at[1]); }
    next_lookup const where = all.next[row];
    if (where == next_lookup::first_byte) [[likely]] { return row; }
    if (where == next_lookup::whole_packet) {
        return is_valid_packet<Packets>(load_le64(at), load_le64(at + 8), all.which[row], strict)
                   ? row
                   : escape;
    }
    return row_of(where, at[1]);  // MODE: the second byte has the leaf
}
template <class Packets>
constexpr auto opcode_info_at(uint8_t const* at, bool strict) noexcept -> opcode_info {
    return opcode_infos<Packets>.at(row_at<Packets>(at, strict));
}

}  // namespace ptspec::trace::detail

// ---- ptspec/trace/fast/decode_loop.hpp ----

/// The fast path that decodes most packets of a trace. `packet::decode` decodes the others.
///
/// Throughput is latency-bound: the next packet's start depends on this one's length, and a
/// misprediction costs about 50 instructions. So one table lookup by the first byte gives the
/// length, kind and IP form of a packet. Only PAD, TNT and CYC, the most frequent kinds, have a
/// branch of their own.
namespace ptspec::trace::detail {

/// How a packet with this IP form changes the last IP.
struct ip_update {
    uint64_t kept;   ///< the bits of the last IP that stay
    uint64_t taken;  ///< the bits of the payload that replace the others
    uint64_t sign;   ///< the sign bit to extend, or 0
};
struct ip_update_table {
    uint64_t kept[9];  // one array for each member: an index needs no multiplication
    uint64_t taken[9];
    uint64_t sign[9];
};
inline constexpr ip_update_table ip_updates = [] {
    constexpr uint64_t sign = uint64_t{1} << 47;
    ip_update_table all{};  // the last row, of zeros, is that of PSB
    for (uint8_t i = 0; i < clears_ip; ++i) {
        auto const how = static_cast<packet::ip_bytes>(i);
        all.kept[i] = packet::rebuilt_ip(how, 0, ~uint64_t{0});
        all.sign[i] = packet::rebuilt_ip(how, sign, 0) > sign ? sign : 0;
        all.taken[i] = all.sign[i] != 0 ? low_bits(48) : ~all.kept[i];
    }
    return all;
}();
constexpr auto ip_update_of(unsigned form) noexcept -> ip_update {
    return {ip_updates.kept[form], ip_updates.taken[form], ip_updates.sign[form]};
}

struct byte_masks {
    uint64_t low[lookahead_bytes + 1];
    uint64_t high[lookahead_bytes + 1];
};
inline constexpr byte_masks first_bytes_masks = [] {
    byte_masks all{};
    for (unsigned i = 0; i <= lookahead_bytes; ++i) {
        wide_bits const mask = packet::detail::first_bytes(~wide_bits{}, i);
        all.low[i] = mask.low;
        all.high[i] = mask.high;
    }
    return all;
}();
/// A mask of the first `count` bytes.
constexpr auto first_bytes_mask(unsigned count) noexcept -> wide_bits {
    return {first_bytes_masks.low[count], first_bytes_masks.high[count]};
}

/// The last IP after a packet. `payload` is the eight bytes after its first.
constexpr auto updated_ip(ip_update update, uint64_t payload, uint64_t last_ip) noexcept
    -> uint64_t {
    return (last_ip & update.kept) | (((payload & update.taken) ^ update.sign) - update.sign);
}

/// A packet that the fast path decoded.
struct quick_packet {
    packet::detail::known_packet packet{};  ///< length 0: decode it with `packet::decode`
    uint64_t ip = 0;                        ///< the last IP after it
};

/// One comparison detects TNT, to have one branch instead of several unpredictable ones: rotated
/// right by one, odd bytes are negative, PAD is 0 and the escape is 1.
constexpr auto is_tnt(unsigned first) noexcept -> bool {
    static_assert(tnt_opcode.mask == 1 && tnt_opcode.value == 0);
    static_assert(opcode_bits<packet::pad> == 0 && escape == 2);
    return static_cast<int>(first >> 1 | first << 31) > 1;
}
constexpr auto is_cyc(unsigned first) noexcept -> bool {
    return (first & cyc_opcode.mask) == cyc_opcode.value;
}

/// The length of a CYC, or 0 for the rare CYC of eight bytes or more. One mask finds its last byte.
/// `image` is 8 bytes.
constexpr auto length_of_cyc(uint64_t image) noexcept -> unsigned {
    constexpr uint64_t first_goes_on = uint64_t{1} << packet::cyc::Exp::lsb;
    constexpr uint64_t others_go_on = packet::detail::cyc_exp_bits_low & low_bits(56);
    uint64_t const ends = ~image & (others_go_on | first_goes_on);
    return ends == 0 ? 0 : lowest_bit(ends) / 8 + 1;
}
constexpr auto quick_decode_cyc(uint64_t image, uint64_t last_ip) noexcept -> quick_packet {
    unsigned const length = length_of_cyc(image);
    return {{{image & first_bytes_masks.low[length], 0}, length, packet::kind::cyc}, last_ip};
}

/// Decodes a packet that is neither TNT, PAD nor CYC. At least `lookahead_bytes` bytes are
/// readable, and no block is open.
template <class Packets>
[[gnu::always_inline]]  // lets the compiler drop the results that the caller does not use
constexpr auto
quick_decode(uint8_t const* at, uint64_t last_ip, bool strict) noexcept -> quick_packet {
    size_t const row = row_at<Packets>(at, strict);
    unsigned const length = opcode_infos<Packets>.length[row];
    // Two scalars: some compilers leave a struct in memory.
    uint64_t const low = load_le64(at) & first_bytes_masks.low[length];
    uint64_t const high = load_le64(at + 8) & first_bytes_masks.high[length];
    return {{{low, high}, length, opcode_infos<Packets>.which[row]},
            updated_ip(ip_update_of(opcode_infos<Packets>.form[row]), load_le64(at + 1), last_ip)};
}

/// The state of the decode loop. Passed and returned by value, to stay in registers.
struct loop_state {
    size_t place = 0;  // position in the bytes
    uint64_t last_ip = 0;
    packet::block items = packet::block::none;
    bool keep_going = true;  // the visitor has not stopped
};

/// Counts the PADs at the start of `bytes`, up to the next position that is a multiple of eight.
/// The first byte must be a PAD.
///
/// Processors pad up to a multiple of eight bytes, or to one byte before it, so that the two
/// branches predict well. Counting the zero bytes would add its latency to that of the load.
constexpr auto leading_pads(uint64_t bytes, size_t place) noexcept -> unsigned {
    auto const gone = static_cast<unsigned>(place % 8);
    if (bytes << 8 * gone == 0) { return 8 - gone; }
    if (bytes << 8 * (gone + 1) == 0) { return 7 - gone; }
    return hide_from_optimizer(lowest_bit(bytes)) / 8;
}

/// The loop state and the visitor after one packet.
template <class Visitor>
struct decoded_one {
    loop_state now;
    copy_or_reference<Visitor> visitor;
};

/// Decodes one packet of any kind and calls the visitor. `now.place` is 0 when there is no packet.
template <class Packets, class Visitor>
[[gnu::noinline]]  // keeps the cold path out of the loop; no address of the loop's state escapes
constexpr auto
decode_one(byte_view from, packet::context how, uint64_t offset, uint64_t last_ip,
           copy_or_reference<Visitor> visitor) -> decoded_one<Visitor> {
    loop_state now{0, last_ip, how.items, true};
    (void)packet::detail::decode_into<Packets>(from, how, [&](auto const& packet, unsigned length) {
        now.place = length;
        now.last_ip = last_ip_after(packet, last_ip);
        now.items = block_after(packet, how.items);
        now.keep_going = call(visitor, packet, {offset, now.last_ip, length});
    });
    return {now, visitor};
}

/// Calls the visitor with one packet of known length. `lookahead_bytes` bytes must be readable.
template <class Visitor>
struct visitor_call {
    Visitor& visitor;
    uint8_t const* from;
    at where;

    template <class Packet>
    [[gnu::always_inline]]  // one specialised copy for each packet kind
    constexpr auto
    operator()() const -> bool {
        uint64_t const low = load_le64(from) & first_bytes_masks.low[where.length];
        uint64_t const high = load_le64(from + 8) & first_bytes_masks.high[where.length];
        return call(visitor, Packet{packet::detail::narrow<typename Packet::raw_type>({low, high})},
                    where);
    }
};

/// Calls the visitor with the packets of `bytes`, which begin at `offset` of the trace, until the
/// visitor stops or no complete valid packet follows. Fastest when `offset` is a multiple of eight.
template <class Packets, class Visitor>
constexpr auto decode_loop(byte_view bytes, uint64_t offset, bool strict, loop_state now,
                           Visitor& caller_visitor) -> loop_state {
    using namespace packet;
    copy_or_reference<Visitor> visitor = caller_visitor;
    uint8_t const* const data = bytes.data();
    size_t const fast_limit = bytes.size() < lookahead_bytes ? 0
                                                             : bytes.size() - (lookahead_bytes - 1);
    size_t place = now.place;
    uint64_t last_ip = now.last_ip;
    block items = now.items;
    bool keep_going = now.keep_going;
    while (keep_going) {
        size_t const until = items == block::none ? fast_limit : 0;
        while (place < until) {
            unsigned const first = data[place];
            at here{offset + place, last_ip, 1};
            if (first == opcode_bits<pad>) {
                if constexpr (accepts_pad_runs<Visitor>) {
                    here.length = leading_pads(load_le64(data + place), place);
                    keep_going = call_pads(visitor, here.length, here);
                } else {
                    keep_going = call(visitor, pad{}, here);
                }
                place += here.length;
            } else if (is_tnt(first)) {
                keep_going = call(visitor, tnt_short{first}, here);
                place += 1;
            } else if (is_cyc(first)) {
                auto const found = quick_decode_cyc(load_le64(data + place), last_ip);
                here.length = found.packet.length;
                if (here.length == 0) { break; }
                keep_going = call(visitor, cyc{found.packet.bits}, here);
                place += here.length;
            } else {
                size_t const row = row_at<Packets>(data + place, strict);
                here.length = opcode_infos<Packets>.length[row];
                if (here.length == 0) { break; }
                here.ip = last_ip = updated_ip(ip_update_of(opcode_infos<Packets>.form[row]),
                                               load_le64(data + place + 1), last_ip);
                uint8_t const* const from = data + place;
                place += here.length;
                keep_going = for_kind(opcode_infos<Packets>.which[row],
                                      visitor_call<copy_or_reference<Visitor>>{visitor, from, here},
                                      Packets{});
            }
            if (!keep_going) {
                if constexpr (is_copied<Visitor>) { caller_visitor = visitor; }
                return {place, last_ip, items, false};
            }
        }
        auto const after = decode_one<Packets, Visitor>(bytes.from(place), {items, strict},
                                                        offset + place, last_ip, visitor);
        if constexpr (is_copied<Visitor>) { visitor = after.visitor; }
        if (after.now.place == 0) { break; }
        place += after.now.place;
        last_ip = after.now.last_ip;
        items = after.now.items;
        keep_going = after.now.keep_going;
    }
    if constexpr (is_copied<Visitor>) { caller_visitor = visitor; }
    return {place, last_ip, items, keep_going};
}

}  // namespace ptspec::trace::detail

// ---- ptspec/trace/fast/count_loop.hpp ----

/// Counts packets by kind without building them.
namespace ptspec::trace::detail {

/// Eight bytes in one word, tested in parallel.
struct eight_bytes {
    static constexpr uint64_t ones = 0x0101'0101'0101'0101;
    static constexpr uint64_t tops = ones << 7;

    uint64_t word;

    /// The top bit of each byte that is 0. All other bits are 0.
    [[nodiscard]] constexpr auto zeros() const noexcept -> uint64_t {
        return ~(((word & ~tops) + ~tops) | word) & tops;
    }
    /// The top bit of each byte that is neither TNT nor PAD.
    [[nodiscard]] constexpr auto others() const noexcept -> uint64_t {
        return (word << 7 & tops) | eight_bytes{word ^ ones * escape}.zeros();
    }
};

/// How many of the eight top bits are set.
constexpr auto count_top_bits(uint64_t tops) noexcept -> unsigned {
    return static_cast<unsigned>((tops >> 7) * eight_bytes::ones >> 56);
}

/// The opcode information of the packet at `at`, including the length of a CYC.
template <class Packets>
[[gnu::always_inline]]  // avoids a call per packet
constexpr auto
opcode_info_with_cyc_at(uint8_t const* at, bool strict) noexcept -> opcode_info {
    opcode_info one = opcode_info_at<Packets>(at, strict);
    if (one.length == 0 && one.which == packet::kind::cyc) {
        one.length = static_cast<uint8_t>(length_of_cyc(load_le64(at)));
    }
    return one;
}

/// Counts the packets of `bytes` from `place` on, where no block is open. Returns the position
/// where it stops: near the end, or at a packet that needs `packet::decode`.
///
/// Each iteration counts a run of up to eight TNTs and PADs at once, then looks up one other
/// packet. No branch depends on the packet kind, which is unpredictable.
template <class Packets>
constexpr auto count_loop(byte_view bytes, size_t place, bool strict, packet_counts& sum) noexcept
    -> size_t {
    using packet::kind;
    constexpr size_t bytes_per_iteration = 8 + lookahead_bytes;
    size_t const until = bytes.size() < bytes_per_iteration
                             ? 0
                             : bytes.size() - (bytes_per_iteration - 1);
    uint8_t const* const data = bytes.data();
    uint64_t tnt_and_pads = 0;  // TNTs and PADs
    uint64_t pads = 0;
    while (place < until) {
        eight_bytes const word{load_le64(data + place)};
        uint64_t const ends = word.others();
        unsigned const count = ends == 0 ? 8 : lowest_bit(ends) / 8;
        uint64_t const in_run = ends ^ (ends - 1);  // bits up to the end of the run, or all
        pads += count_top_bits(word.zeros() & in_run);
        tnt_and_pads += count;
        place += count;
        if (ends == 0) { continue; }
        opcode_info const one = opcode_info_with_cyc_at<Packets>(data + place, strict);
        if (one.length == 0) { break; }
        sum.add(one.which, one.length);
        place += one.length;
    }
    sum.packets[underlying(kind::pad)] += pads;
    sum.bytes[underlying(kind::pad)] += pads;
    sum.packets[underlying(kind::tnt_short)] += tnt_and_pads - pads;
    sum.bytes[underlying(kind::tnt_short)] += tnt_and_pads - pads;
    return place;
}

}  // namespace ptspec::trace::detail

// ---- ptspec/trace/fast/count_lanes.hpp ----

/// Counts packets in several segments of a trace at once.
///
/// Counting one segment is latency-bound: each packet start becomes known about ten cycles after
/// the previous one. Interleaved lanes use these cycles to count other segments. Every segment
/// begins at a PSB, where the decoder has no state. A search can mistake the payload of other
/// packets for a PSB. A PSB is real if the count of the preceding segment ends exactly there;
/// otherwise all counts of the attempt are discarded.
namespace ptspec::trace::detail {

/// The number of lanes.
inline constexpr size_t lane_count = 8;
/// The minimum size of a segment in bytes. A lane counts one segment after another.
inline constexpr size_t min_segment_bytes = size_t{1} << 11;
/// Bytes counted speculatively in one attempt: doubled after success, quartered after failure.
inline constexpr size_t min_attempt_bytes = 2 * lane_count * min_segment_bytes;
inline constexpr size_t max_attempt_bytes = size_t{1} << 23;
/// The maximum number of bytes in the search for the end of a segment. It keeps the counts of an
/// attempt within 32 bits.
inline constexpr size_t max_search_bytes = size_t{1} << 28;
/// The number of packets that a lane counts by their first byte alone after each fully checked
/// packet. If the first byte does not give the length, the lane stops at that packet until the next
/// full check.
inline constexpr size_t packets_per_check = 5;
/// The number of count tables, which are on the stack. Lanes share them. Each has few enough lanes
/// that an increment does not wait for the store of another lane.
inline constexpr size_t table_count = 4;

/// Finds the segments of a trace. A segment ends where a PSB begins; the next one begins there.
struct segment_finder {
    byte_view bytes;
    size_t place;  ///< where the next segment begins
    size_t until;  ///< about where the last segment ends

    /// Moves to the end of the next segment. Returns false, and does not move, when it finds no
    /// PSB.
    constexpr auto next() noexcept -> bool {
        // Segments get shorter towards the end, so that the lanes finish at about the same time.
        size_t const share = place < until ? (until - place) / (2 * lane_count) : 0;
        size_t const from = place + (share < min_segment_bytes ? min_segment_bytes : share);
        size_t const found = find_psb(bytes.from(from).first(max_search_bytes));
        if (found == npos) { return false; }
        place = from + found;
        return true;
    }
};

/// The bytes of a segment that its lane has not counted yet.
struct lane {
    uint8_t const* at;
    uint8_t const* end;

    [[nodiscard]] constexpr auto room() const noexcept -> ptrdiff_t { return end - at; }
};

/// The speculative counts of all lanes.
template <class Packets>
struct lane_sums {
    uint32_t by_first[table_count][256] = {};                ///< packets by their first byte
    uint32_t by_second[opcode_info_table::rows - 256] = {};  ///< those that need the second byte
    packet_counts others{};                                  ///< those that need more bytes
    bool all_valid = true;
    bool strict;

    /// Counts a packet whose first byte does not give its length. Returns the position after it, or
    /// `at` when the packet is invalid.
    [[gnu::noinline]]  // keeps the cold path out of the loop's registers
    constexpr auto
    add_other(uint8_t const* at) noexcept -> uint8_t const* {
        opcode_info_table const& all = opcode_infos<Packets>;
        size_t const first = *at;
        if (all.which[first] == packet::kind::cyc) {
            unsigned const length = length_of_cyc(load_le64(at));
            if (length == 0) { return add_decoded(at); }
            others.add(packet::kind::cyc, length);
            return at + length;
        }
        size_t const row = row_of(all.next[first], at[1]);
        size_t const length = all.length[row];
        bool const is_known = all.next[first] != next_lookup::first_byte && length != 0 &&
                              all.next[row] == next_lookup::first_byte;
        if (!is_known) { return add_decoded(at); }
        by_second[row - 256] += 1;
        return at + length;
    }
    [[gnu::noinline]]  // keeps the cold path out of the loop's registers
    constexpr auto
    add_decoded(uint8_t const* at) noexcept -> uint8_t const* {
        opcode_info const one = opcode_info_at<Packets>(at, strict);
        if (one.length != 0) { others.add(one.which, one.length); }
        all_valid = all_valid && one.length != 0;
        return at + one.length;
    }
    /// Counts one packet if its first byte gives its length. Otherwise the position stays, and
    /// `add_to` ignores the count of that byte.
    [[gnu::always_inline]]  // keeps the position in a register
    constexpr void
    add_known(uint8_t const*& at, uint8_t const* lengths, size_t table) noexcept {
        size_t const first = *at;
        at = hide_from_optimizer(at + lengths[first]);
        by_first[table][first] += 1;
    }
    /// Counts one packet. The position stays when the packet is invalid.
    [[gnu::always_inline]]  // keeps the position in a register
    constexpr void
    add_one(uint8_t const*& at, uint8_t const* lengths, size_t table) noexcept {
        size_t const first = *at;
        size_t const length = lengths[first];
        by_first[table][first] += 1;
        if (length == 0) [[unlikely]] {
            at = add_other(at);
        } else {
            at += length;
        }
    }
    constexpr void add_to(packet_counts& sum) const noexcept {
        sum += others;
        auto const add = [&](size_t row, uint64_t count) {
            auto const one = opcode_infos<Packets>.at(row);
            if (one.length != 0) { sum.add(one.which, one.length, count); }
        };
        for (size_t first = 0; first < 256; ++first) {
            uint64_t count = 0;
            for (auto const& table : by_first) { count += table[first]; }
            add(first, count);
        }
        for (size_t row = 256; row < opcode_info_table::rows; ++row) {
            add(row, by_second[row - 256]);
        }
    }
};

/// Where the first segment of each lane begins, and where the last of these segments ends.
struct first_segments {
    size_t begins[lane_count + 1] = {};
};

/// Finds the first segment of each lane. Returns false when there are too few.
constexpr auto find_first(segment_finder& segments, first_segments& found) noexcept -> bool {
    if (segments.until - segments.place < lane_count * min_segment_bytes) { return false; }
    found.begins[0] = segments.place;
    for (size_t i = 1; i <= lane_count; ++i) {
        if (!segments.next()) { return false; }
        found.begins[i] = segments.place;
    }
    return true;
}

/// Counts the first segments and those after them. Returns false, and leaves `sum` unchanged, when
/// a segment holds an invalid packet or one that needs `packet::decode`, or does not end at its
/// PSB.
template <class Packets, size_t... I, size_t... K>
constexpr auto run_lanes(first_segments const& first, segment_finder& segments, bool strict,
                         packet_counts& sum, index_list<I...> /*lanes*/,
                         index_list<K...> /*known*/) noexcept -> bool {
    constexpr auto round_bytes = static_cast<ptrdiff_t>((1 + sizeof...(K)) * lookahead_bytes);
    lane_sums<Packets> counts{.strict = strict};
    // Hides which table this is: the compiler would compute its address again in each round.
    uint8_t const* const lengths = hide_from_optimizer(&opcode_infos<Packets>.length[0]);
    uint8_t const* const data = segments.bytes.data();
    auto const finish = [&](lane one) {
        while (counts.all_valid && one.room() >= round_bytes) {
            counts.add_one(one.at, lengths, 0);
            (counts.add_known(one.at, lengths, K % table_count), ...);
        }
        while (counts.all_valid && one.room() > 0) { counts.add_one(one.at, lengths, 0); }
        counts.all_valid = counts.all_valid && one.room() == 0;
    };
    bool has_more = true;
    // Completes the segment of a lane that is near its end and returns the next one, or an empty
    // one.
    auto const next_segment = [&](lane one) -> lane {
        if (one.room() >= round_bytes) { return one; }
        finish(one);
        uint8_t const* const begin = data + segments.place;
        has_more = has_more && segments.place < segments.until && segments.next();
        return has_more ? lane{begin, data + segments.place} : lane{begin, begin};
    };
    // Fold expressions instead of loops over the lanes: they keep the positions in registers.
    lane lanes[] = {{data + first.begins[I], data + first.begins[I + 1]}...};
    while (counts.all_valid && has_more) {
        ptrdiff_t least = lanes[0].room();
        ((least = lanes[I].room() < least ? lanes[I].room() : least), ...);
        for (ptrdiff_t rounds = least / round_bytes; rounds > 0; --rounds) {
            (counts.add_one(lanes[I].at, lengths, I % table_count), ...);
            ((static_cast<void>(K), (counts.add_known(lanes[I].at, lengths, I % table_count), ...)),
             ...);
        }
        if (least < round_bytes) { ((lanes[I] = next_segment(lanes[I])), ...); }
    }
    (finish(lanes[I]), ...);
    if (counts.all_valid) { counts.add_to(sum); }
    return counts.all_valid;
}

/// How well counting in lanes worked so far.
struct speculation {
    size_t retry_from = 0;  ///< the position from which to try again
    size_t attempt_bytes = max_attempt_bytes;
};

/// Counts the packets of `bytes` from `place` on, where no block is open, as far as lanes can
/// count. Returns the position after them.
template <class Packets>
constexpr auto count_lanes(byte_view bytes, size_t place, bool strict, packet_counts& sum,
                           speculation& lanes) noexcept -> size_t {
    while (true) {
        size_t const left = bytes.size() - place;
        size_t const tried = left < lanes.attempt_bytes ? left : lanes.attempt_bytes;
        segment_finder segments{bytes, place, place + tried};
        first_segments first;
        if (!find_first(segments, first)) {
            lanes.retry_from = bytes.size();
            return place;
        }
        if (run_lanes<Packets>(first, segments, strict, sum, make_index_list<lane_count>{},
                               make_index_list<packets_per_check>{})) {
            place = segments.place;
            if (lanes.attempt_bytes < max_attempt_bytes) { lanes.attempt_bytes *= 2; }
        } else if (tried > min_attempt_bytes) {
            lanes.attempt_bytes = tried / 4 < min_attempt_bytes ? min_attempt_bytes : tried / 4;
        } else {
            lanes.retry_from = segments.place;
            return place;
        }
    }
}

}  // namespace ptspec::trace::detail

// ---- ptspec/trace/reader.hpp ----

namespace ptspec::trace {

/// Reads the packets of a trace in order, and resynchronises after damage.
///
/// A reader is a value: a copy continues independently from the same position. It borrows the
/// bytes: the whole trace, or one chunk at a time. It copies what it still needs of a consumed
/// chunk, so that the caller can reuse the memory.
///
/// Errors: damage is an item. The next item is the PSB at which decoding resumes, or `lost`. When
///         the trace ends inside a packet, there is no search.
/// Source: PKT-250..256; the last IP PKT-059..061; the block context PKT-205.
template <opcode_hook Hook = no_hook, class Packets = packet::all>
class reader {
public:
    /// Reads a whole trace.
    constexpr explicit reader(borrowed_bytes whole, options how = {}, Hook hook = {}) noexcept
        : now_{copy_of(initial_state(whole.view(), true, how))}, hook_{hook} {}

    /// Reads a trace that arrives in chunks.
    constexpr explicit reader(options how = {}, Hook hook = {}) noexcept
        : now_{copy_of(initial_state({}, false, how))}, hook_{hook} {}

    /// Gives the next chunk: at the start, and when the reader returned `item_type::need_input`. At
    /// other times it returns false and changes nothing.
    [[nodiscard]] constexpr auto feed(borrowed_bytes chunk) noexcept -> bool {
        return now_.in.feed(chunk.view());
    }

    /// Ends the trace: no more chunks follow.
    constexpr void finish() noexcept { now_.in.finish(); }

    /// Where the next packet begins, in bytes from the start of the trace.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t {
        return now_.in.offset() - found_psb_bytes();
    }
    [[nodiscard]] constexpr auto last_ip() const noexcept -> uint64_t { return now_.last_ip; }
    [[nodiscard]] constexpr auto items() const noexcept -> packet::block { return now_.items; }

    /// The next item of the trace.
    ///
    /// always_inline: keeps the state in registers between two calls. Without it next() takes 1.5 %
    /// more instructions (g++ 12), or 2.9 times as many (clang 19).
    [[nodiscard, gnu::always_inline]] constexpr auto next() noexcept -> item {
        if (now_.in.position() < now_.fast_limit) [[likely]] {
            using packet::kind;
            // One return for each kind: the compiler drops what the caller does for other kinds.
            uint64_t const offset = now_.in.offset_in_chunk();
            uint8_t const* const here = now_.in.chunk().data() + now_.in.position();
            unsigned const first = *here;
            if (first == detail::opcode_bits<packet::pad>) {
                return consume({{{0, 0}, 1, kind::pad}, now_.last_ip}, offset);
            }
            if (detail::is_tnt(first)) {
                return consume({{{first, 0}, 1, kind::tnt_short}, now_.last_ip}, offset);
            }
            if (detail::is_cyc(first)) {
                auto const found = detail::quick_decode_cyc(load_le64(here), now_.last_ip);
                if (found.packet.length != 0) { return consume(found, offset); }
            }
            // A CYC of eight bytes or more has length 0 here, too.
            auto const found = detail::quick_decode<Packets>(here, now_.last_ip, now_.strict);
            if (found.packet.length != 0) [[likely]] { return consume(found, offset); }
        }
        return next_by_value();
    }

    /// Decodes until the end of the trace, the end of the chunk, or until the visitor returns
    /// false. Returns `end`, `need_input` or `packet`, respectively.
    template <class Visitor>
    constexpr auto for_each(Visitor&& visitor) -> item_type {
        static_assert(
            packet_visitor<Visitor, Packets>,
            "a visitor is called with (packet, trace::at) and takes one packet type at least");
        while (true) {
            if (decodes_in_chunk() && !visit_chunk(visitor)) { return item_type::packet; }
            auto const got = next_slow_path();
            if (got.what == item_type::packet) {
                bool const keep_going = packet::visit<Packets>(
                    [&](auto const& packet) {
                        return detail::call(visitor, packet, at{got.offset, got.ip, got.length});
                    },
                    got.packet);
                if (!keep_going) { return item_type::packet; }
            } else {
                if (!detail::call(visitor, got)) { return item_type::packet; }
                if (!got) { return got.what; }
            }
        }
    }

    /// Counts packets until the end of the trace or of the chunk, and adds them to `sofar`. Where
    /// there are PSBs it counts several segments at once, which takes about 6 KB of stack. It does
    /// not track the last IP, which counts as 0 until the next PSB.
    [[nodiscard]] constexpr auto scan(packet_counts sofar = {}) -> packet_counts {
        detail::speculation lanes;
        while (true) {
            if (decodes_in_chunk() && now_.items == packet::block::none) {
                size_t place = now_.in.position();
                if (place >= lanes.retry_from) {
                    place = detail::count_lanes<Packets>(now_.in.chunk(), place, now_.strict, sofar,
                                                         lanes);
                }
                byte_view const up_to_lanes = now_.in.chunk().first(lanes.retry_from);
                now_.in.seek(detail::count_loop<Packets>(up_to_lanes, place, now_.strict, sofar));
            }
            auto const got = next_slow_path();
            now_.last_ip = 0;
            if (!got) { return sofar; }
            sofar.add(got);
        }
    }
    /// The same, and calls `boundary(kind, offset, length)` for each packet.
    template <class Boundary>
    [[nodiscard]] constexpr auto scan(packet_counts sofar, Boundary&& boundary) -> packet_counts {
        (void)for_each(detail::counter<Boundary>{sofar, boundary});
        return sofar;
    }

    /// Skips one byte, which is not decoded. Returns false, and does not move, at the end of the
    /// chunk.
    [[nodiscard]] constexpr auto skip_byte() noexcept -> bool {
        bool const is_here = now_.next == mode::decoding &&
                             (now_.in.straddles() || !now_.in.rest().empty());
        if (is_here) { now_.in.advance(1); }
        refresh_fast_limit();
        return is_here;
    }

    /// Moves to the first PSB of the chunk. Returns false, and does not move, when there is none.
    [[nodiscard]] constexpr auto sync_first() noexcept -> bool {
        return go_to_psb(find_psb(now_.in.chunk()));
    }
    /// Moves to the next PSB of the chunk, after the current position.
    [[nodiscard]] constexpr auto sync_next() noexcept -> bool {
        size_t const here = is_before_chunk() || now_.next == mode::searching ? 0 : 1;
        return go_to_psb(find_psb(now_.in.chunk(), position_in_chunk() + here));
    }
    /// Moves back to the last PSB of the chunk before the current position.
    [[nodiscard]] constexpr auto sync_previous() noexcept -> bool {
        return go_to_psb(find_psb_before(now_.in.chunk(), position_in_chunk()));
    }

private:
    /// What `next` does.
    enum class mode : uint8_t {
        decoding,
        searching,  // for the PSB at which decoding resumes
        at_psb,     // the position is after a PSB that was found and is the next packet
    };
    /// Everything but the hook.
    struct state {
        input in{};
        size_t fast_limit = 0;  // packets before this position of the chunk take the fast path
        uint64_t last_ip = 0;
        packet::block items = packet::block::none;
        mode next = mode::decoding;
        bool strict = false;
        bool synced = false;   // decoding has begun: a PSB that is found is not the first
        uint64_t lost_at = 0;  // where the bytes that a search skips begin
        psb_search search{};
    };
    struct step {
        state now;
        item got;
    };

    /// noinline: keeps the cold members out of registers. Without it next() takes 15 % more
    /// instructions on packets of all kinds (clang 19).
    [[gnu::noinline]] static constexpr auto initial_state(byte_view bytes, bool is_whole,
                                                          options how) noexcept -> state {
        return {.in = is_whole ? input{bytes} : input{},
                .next = how.sync ? mode::searching : mode::decoding,
                .strict = how.strict,
                .synced = !how.sync};
    }

    /// A copy, so that `initial_state` does not construct `now_` in place: the address of `now_`
    /// would escape, and next() would take 17 % more instructions (clang 19).
    static constexpr auto copy_of(state const& from) noexcept -> state const& { return from; }

    [[nodiscard]] constexpr auto decodes_in_chunk() const noexcept -> bool {
        return now_.next == mode::decoding && !now_.in.straddles();
    }
    /// The length of a PSB that was found: it is the next packet, but lies before the position.
    [[nodiscard]] constexpr auto found_psb_bytes() const noexcept -> size_t {
        return now_.next == mode::at_psb ? psb_bytes : 0;
    }
    /// The next packet begins before the chunk.
    [[nodiscard]] constexpr auto is_before_chunk() const noexcept -> bool {
        return now_.in.straddles() || now_.in.position() < found_psb_bytes();
    }
    /// Where the next packet begins in the chunk; 0 when it begins before.
    [[nodiscard]] constexpr auto position_in_chunk() const noexcept -> size_t {
        return is_before_chunk() ? 0 : now_.in.position() - found_psb_bytes();
    }

    constexpr auto go_to_psb(size_t psb) noexcept -> bool {
        if (psb == npos) { return false; }
        now_.in.seek(psb + psb_bytes);
        now_.synced = true;
        now_.next = mode::at_psb;
        refresh_fast_limit();
        return true;
    }

    constexpr void refresh_fast_limit() noexcept {
        bool const fast = decodes_in_chunk() && now_.items == packet::block::none &&
                          now_.in.chunk().size() >= detail::lookahead_bytes;
        now_.fast_limit = fast ? now_.in.chunk().size() - (detail::lookahead_bytes - 1) : 0;
    }

    /// Takes and returns the state by value: the address of the caller's reader does not escape, so
    /// that its hot members stay in registers.
    ///
    /// noinline: keeps the cold path out of the caller's registers. Without it next() takes 44 %
    /// more instructions (g++ 12).
    [[gnu::noinline]] static constexpr auto slow_path(reader copy) noexcept -> step {
        item const got = copy.next_slow_path();
        return {copy.now_, got};
    }
    /// always_inline: without it next() takes 17 % more instructions (clang 19). Not part of
    /// next(), where the lifetimes of its variables would be longer.
    [[gnu::always_inline]] constexpr auto next_by_value() noexcept -> item {
        if constexpr (__is_empty(Hook)) {
            auto after = slow_path(*this);
            now_ = after.now;
            after.got.ip = now_.last_ip;  // the same value: one register serves both
            return after.got;
        } else {
            return next_slow_path();
        }
    }
    constexpr auto next_slow_path() noexcept -> item {
        item got = decode_or_search();
        got.ip = now_.last_ip;
        refresh_fast_limit();
        return got;
    }

    /// Consumes a packet of the fast path.
    constexpr auto consume(detail::quick_packet found, uint64_t offset) noexcept -> item {
        now_.in.advance_in_chunk(found.packet.length);
        now_.last_ip = found.ip;
        return {.what = item_type::packet,
                .length = static_cast<uint8_t>(found.packet.length),
                .offset = offset,
                .ip = found.ip,
                .packet = packet::any_packet{found.packet}};
    }
    /// Consumes a packet of the slow path.
    constexpr auto consume(packet::any_packet const& packet) noexcept -> item {
        uint64_t const offset = now_.in.offset();
        now_.in.advance(packet.length());
        now_.last_ip = packet::last_ip_after<Packets>(packet, now_.last_ip);
        now_.items = packet::block_after<Packets>(packet, now_.items);
        return {.what = item_type::packet,
                .length = static_cast<uint8_t>(packet.length()),
                .offset = offset,
                .packet = packet};
    }

    /// Handles bytes that `packet::decode` rejects: incomplete, decoded by the hook, or damage.
    constexpr auto handle_bad_bytes(packet::decoded const& got, byte_view here) noexcept -> item {
        if (got.why == packet::error::truncated) { return out_of_bytes(got.need, here.size()); }
        uint64_t const offset = now_.in.offset();
        if (got.why == packet::error::bad_opcode) {
            unsigned const known = hook_(here.first(psb_bytes));
            if (known != 0 && known <= psb_bytes) {
                if (known > here.size()) { return out_of_bytes(known, here.size()); }
                now_.in.advance(known);
                return {.what = item_type::unknown,
                        .length = static_cast<uint8_t>(known),
                        .offset = offset};
            }
        }
        now_.next = mode::searching;
        now_.lost_at = offset;
        now_.search = {};
        now_.in.step_back(offset < input::max_step_back ? static_cast<unsigned>(offset)
                                                        : input::max_step_back);
        return {.what = item_type::damage, .why = got.why, .broken = got.broken, .offset = offset};
    }

    /// Handles an incomplete packet: it continues in the next chunk, or the trace ends inside it.
    constexpr auto out_of_bytes(unsigned need, size_t have) noexcept -> item {
        uint64_t const offset = now_.in.offset();
        auto const missing = static_cast<uint8_t>(need - have);
        if (!now_.in.is_last()) {
            now_.in.release(static_cast<unsigned>(have));
            return {.what = item_type::need_input, .need = missing, .offset = offset};
        }
        if (have == 0) { return {.what = item_type::end, .offset = offset}; }
        now_.in.advance(have);
        return {.what = item_type::damage,
                .why = packet::error::truncated,
                .need = missing,
                .broken = rule::PKT_255,
                .offset = offset,
                .skipped = static_cast<int64_t>(have)};
    }

    /// The slow path: at chunk boundaries, after damage, and for packets that the fast path
    /// rejects.
    constexpr auto decode_or_search() noexcept -> item {
        switch (now_.next) {
            case mode::searching: return search();
            case mode::at_psb: return consume_psb();
            case mode::decoding: break;
        }
        byte_array<size_t{2} * psb_bytes> room{};
        auto const here = now_.in.straddles() ? now_.in.stitched(room.bytes) : now_.in.rest();
        auto const got = packet::decode<Packets>(here, {now_.items, now_.strict});
        return got ? consume(got.packet) : handle_bad_bytes(got, here);
    }

    constexpr auto search() noexcept -> item {
        bool const found = now_.in.search(now_.search);
        uint64_t const offset = now_.in.offset();
        if (!found && !now_.in.is_last()) {
            return {.what = item_type::need_input, .need = 1, .offset = offset};
        }
        if (!found) {
            now_.next = mode::decoding;
            if (offset == now_.lost_at) { return {.what = item_type::end, .offset = offset}; }
            return {.what = item_type::lost,
                    .offset = offset,
                    .skipped = static_cast<int64_t>(offset - now_.lost_at)};
        }
        now_.next = mode::at_psb;
        bool const first = !now_.synced;
        now_.synced = true;
        uint64_t const psb = offset - psb_bytes;
        if (first && psb == 0) { return consume_psb(); }
        return {.what = first ? item_type::synced : item_type::resynced,
                .offset = psb,
                .skipped = static_cast<int64_t>(psb - now_.lost_at)};
    }

    /// Consumes a PSB that was found. Its bytes may be released; they are constant.
    constexpr auto consume_psb() noexcept -> item {
        now_.next = mode::decoding;
        now_.last_ip = 0;
        now_.items = packet::block::none;
        return {.what = item_type::packet,
                .length = psb_bytes,
                .offset = now_.in.offset() - psb_bytes,
                .packet = packet::any_packet{packet::psb{}}};
    }

    /// Calls the visitor with the packets of the chunk, up to one that needs the slow path. Returns
    /// false when the visitor stops.
    template <class Visitor>
    constexpr auto visit_chunk(Visitor& visitor) -> bool {
        size_t const place = now_.in.position();
        auto const after = detail::decode_loop<Packets>(
            now_.in.chunk(), now_.in.offset() - place, now_.strict,
            {place, now_.last_ip, now_.items, true}, visitor);
        now_.in.seek(after.place);
        now_.last_ip = after.last_ip;
        now_.items = after.items;
        refresh_fast_limit();
        return after.keep_going;
    }

    state now_;
    Hook hook_{};
};

}  // namespace ptspec::trace

// ---- ptspec/trace/split.hpp ----

/// Splits a trace into parts that can be decoded in parallel.
///
/// A PSB resets the decoder, so decoding can start at any PSB. To give the same items as one pass
/// over the whole trace, a split point must be a PSB that the one pass reaches without damage since
/// the PSB before it. Other PSBs are not valid split points: those in which an invalid packet ends,
/// and those after damage, which the one pass reports as `resynced`.
///
/// Source: SDM vol. 3, "Packet Stream Boundary (PSB) Packet"; PKT-250, PKT-251.
namespace ptspec::trace {

/// The first offset, `from` or later, at which a trace can be split; the size of the trace when
/// there is none. Each part decodes to the same items as in the whole trace, apart from offsets.
/// This is not guaranteed for a reader with a hook.
template <class Packets = packet::all>
[[nodiscard]] constexpr auto find_split_point(byte_view trace, size_t from, options how = {})
    -> size_t {
    size_t here = find_psb(trace, from);
    if (here == npos) { return trace.size(); }
    // A reader reaches each PSB after any bytes: no packet other than a PSB is long enough to cover
    // a PSB, and a PSB that is covered in part causes damage, from which the search steps back.
    // Detecting such damage takes less than twice the bytes of a PSB.
    constexpr size_t visible = size_t{2} * psb_bytes;
    size_t before = find_psb_before(trace, here);
    for (; here != npos; here = find_psb(trace, here + psb_bytes)) {
        if (before == npos) {
            before = here;
        } else if (here - before >= visible) {
            byte_view const between = trace.from(before).first(here - before);
            if (reader<no_hook, Packets>{between, how}.scan().errors == 0) { return here; }
            before = here;
        }
    }
    return trace.size();
}

/// The parts of a trace, in order: at most `count`, about equal in size, not empty:
/// `for (byte_view part : split{trace, 4})`. The parts, decoded in order, give the items of the
/// whole trace, apart from offsets. This is not guaranteed for a reader with a hook. The first part
/// begins where the trace begins. The others begin with a PSB and decode the same with and without
/// `options::sync`.
///
/// The split points are searched one by one. All searches together cost at most as much as decoding
/// the trace twice, and little where PSBs are frequent.
template <class Packets = packet::all>
class split {
public:
    constexpr split(borrowed_bytes whole, size_t count, options how = {}) noexcept
        : trace_{whole.view()},
          size_{trace_.size() / (count == 0 ? 1 : count)},
          count_{count},
          how_{how} {}

    struct end_of_trace {};

    class iterator {
    public:
        constexpr explicit iterator(split const& of) : of_{of}, end_{of.split_point_after(0, 1)} {}

        constexpr auto operator*() const noexcept -> byte_view {
            return of_.trace_.from(begin_).first(end_ - begin_);
        }
        constexpr auto operator++() -> iterator& {
            begin_ = end_;
            number_ += 1;
            end_ = of_.split_point_after(begin_, number_);
            return *this;
        }
        constexpr auto operator==(end_of_trace) const noexcept -> bool {
            return begin_ == of_.trace_.size();
        }

    private:
        split const& of_;
        size_t begin_ = 0;
        size_t end_;
        size_t number_ = 1;
    };

    [[nodiscard]] constexpr auto begin() const -> iterator { return iterator{*this}; }
    [[nodiscard]] constexpr auto end() const noexcept -> end_of_trace { return {}; }

private:
    /// The end of part `number`, counted from 1, which begins at `begin`.
    [[nodiscard]] constexpr auto split_point_after(size_t begin, size_t number) const -> size_t {
        if (number >= count_) { return trace_.size(); }
        size_t const wanted = size_ * number;
        return find_split_point<Packets>(trace_, wanted > begin ? wanted : begin + 1, how_);
    }

    byte_view trace_;
    size_t size_;
    size_t count_;
    options how_;
};

}  // namespace ptspec::trace

// ---- ptspec/trace/clock.hpp ----

/// The time of packets, computed from TSC, TMA, MTC, CYC and CBR packets in integers.
namespace ptspec::trace {

/// The constants from which a clock computes: those of a processor by `clock_options_of`.
struct clock_options {
    uint8_t mtc_freq = 0;             ///< IA32_RTIT_CTL.MTCFreq
    uint8_t cyc_thresh = 0;           ///< IA32_RTIT_CTL.CycThresh
    uint8_t max_non_turbo_ratio = 0;  ///< MSR_PLATFORM_INFO[15:8]; 0: no time from CYC and CBR
    uint32_t tsc_numerator = 0;       ///< CPUID.15H:EBX; 0: no time from MTC
    uint32_t tsc_denominator = 0;     ///< CPUID.15H:EAX; 0: no time from MTC
    /// The most MTCs in a row that the processor may drop. Real ones drop single MTCs: GEN-203.
    uint8_t lost_mtcs = 1;
    /// The core clock deviates from the ratio of CBR by at most 1 / 2^tolerance. At most 16.
    uint8_t tolerance = 5;
    bool monotonic = false;      ///< no estimate is lower than one before: PKT-309
    uint64_t tsc_reference = 0;  ///< a TSC near the trace: it extends the 56 bits of a TSC packet
    cpu::quirk_set quirks{};     ///< skl168, skz84
};

/// A time: an estimate, and the bounds of the true time.
///
/// Units:  TSC ticks, and core clock cycles. `latest` is `unbounded` when no packet limits it.
///         Before the first TSC the estimate is relative, and the bounds are 0 and `unbounded`.
struct time {
    static constexpr uint64_t unbounded = ~uint64_t{0};

    uint64_t tsc = 0;
    uint64_t earliest = 0;
    uint64_t latest = unbounded;
    uint64_t cycles = 0;  ///< the sum of all CYCs before

    /// The estimate is a value of the time-stamp counter.
    [[nodiscard]] constexpr auto is_absolute() const noexcept -> bool {
        return earliest != 0 || latest != unbounded;
    }
    friend constexpr auto operator==(time const&, time const&) -> bool = default;
};

/// The core clock cycle of a packet, counted from the first packet of the trace: it lies between
/// `earliest` and `earliest + slack`.
///
/// Units:  core clock cycles while the core clock runs. `slack` is `time::unbounded` for packets
///         that have no CYC: they follow the last packet that has one.
struct cycle_time {
    uint64_t earliest = 0;
    uint64_t slack = 0;

    friend constexpr auto operator==(cycle_time const&, cycle_time const&) -> bool = default;
};

/// The frequency of the core clock between two points of a trace; 0 if no TSC ticks passed.
///
/// Units:  that of `tsc_frequency`.
/// Source: PKT-316.
[[nodiscard]] constexpr auto core_frequency(uint64_t cycles, uint64_t tsc_ticks,
                                            uint64_t tsc_frequency) noexcept -> uint64_t {
    // Keeps the product below 2^64: the quotient needs only the upper bits of long intervals.
    while (cycles >> 24 != 0 && tsc_ticks > 1) {
        cycles >>= 1;
        tsc_ticks >>= 1;
    }
    return tsc_ticks == 0 ? 0 : cycles * tsc_frequency / tsc_ticks;
}

namespace detail {

/// A factor in units of 2^-32.
class ratio {
public:
    constexpr ratio() noexcept = default;

    /// numerator / denominator, rounded up: products with less than 2^24 are exact. Unknown if the
    /// denominator is 0 or the quotient is 256 or more.
    [[nodiscard]] static constexpr auto of(uint64_t numerator, uint64_t denominator) noexcept
        -> ratio {
        while (numerator >> 32 != 0) {
            numerator >>= 1;
            denominator >>= 1;
        }
        ratio found;
        if (denominator != 0 && numerator / denominator < 256) {
            found.scaled_ = ((numerator << 32) + denominator - 1) / denominator;
        }
        return found;
    }
    [[nodiscard]] constexpr auto is_known() const noexcept -> bool { return scaled_ != 0; }
    [[nodiscard]] constexpr auto scaled() const noexcept -> uint64_t { return scaled_; }

    /// `count` is below 2^48.
    [[nodiscard]] constexpr auto of(uint64_t count) const noexcept -> uint64_t {
        if (count < uint64_t{1} << 24) [[likely]] { return (count * scaled_) >> 32; }
        return (count >> 24) * (scaled_ >> 8) + (((count & low_bits(24)) * scaled_) >> 32);
    }
    /// Within a quarter of another.
    [[nodiscard]] constexpr auto is_near(ratio other) const noexcept -> bool {
        uint64_t const apart = scaled_ < other.scaled_ ? other.scaled_ - scaled_
                                                       : scaled_ - other.scaled_;
        return apart <= other.scaled_ / 4;
    }

private:
    uint64_t scaled_ = 0;
};

constexpr auto saturating_add(uint64_t one, uint64_t two) noexcept -> uint64_t {
    return one + two < one ? ~uint64_t{0} : one + two;
}
constexpr auto saturating_sub(uint64_t one, uint64_t two) noexcept -> uint64_t {
    return one < two ? 0 : one - two;
}

}  // namespace detail

/// Computes the time of each packet of a trace. `add` must get all packets, in order.
///
/// TSC, TMA and MTC give the time of an edge of the crystal clock; CYC and CBR give the time since
/// that edge. Lower bound: the last edge. Upper bound: the edge of the next MTC, if MTC packets are
/// enabled, and the time that CYC and CBR give plus the deviation of the core clock. After an OVF
/// there is no upper bound until the next TSC, because MTCs and CYCs may be lost.
///
/// Before the first TSC, times are relative: MTCs advance from 0, and `is_absolute()` is false.
///
/// Shape:  a value of fixed size; a copy continues independently.
/// Errors: `add` returns PKT-303 for a TMA without a TSC; the packet is ignored.
/// Source: SDM vol. 3, "Tracking Time", "Cycle-Accurate Mode"; PKT-300..319, GEN-200..220.
class clock {
public:
    constexpr clock() noexcept : clock{clock_options{}} {}
    constexpr explicit clock(clock_options const& how) noexcept
        : threshold_{how.cyc_thresh == 0 || how.cyc_thresh > 15 ? 0U : 1U << (how.cyc_thresh - 1)},
          non_turbo_{how.max_non_turbo_ratio},
          mtc_freq_{static_cast<uint8_t>(how.mtc_freq & 15)},
          tolerance_{static_cast<uint8_t>(how.tolerance < 16 ? how.tolerance : 16)},
          is_monotonic_{how.monotonic},
          is_skl168_{how.quirks.has(cpu::quirk::skl168)},
          is_skz84_{how.quirks.has(cpu::quirk::skz84)},
          has_reference_{how.tsc_reference != 0},
          lost_mtcs_{how.lost_mtcs},
          numerator_{how.tsc_denominator == 0 ? 0 : how.tsc_numerator},
          denominator_{how.tsc_denominator == 0 ? 1 : how.tsc_denominator},
          reference_{how.tsc_reference} {
        bool const is_power = (denominator_ & (denominator_ - 1)) == 0;
        denominator_shift_ = static_cast<uint8_t>(is_power ? lowest_bit(denominator_) : no_shift);
        round_up_ = low_bits32(tolerance_);
        rounding_ = numerator_ % denominator_ != 0 ? 1 : 0;
        uint64_t const ticks = uint64_t{numerator_} << mtc_freq_;
        period_ticks_ = ticks % denominator_ == 0 ? ticks / denominator_ : 0;
    }

    // --------------------------------------------------------------------------- packets

    constexpr auto add(packet::tsc which) noexcept -> rule {
        uint64_t const tsc = extended(which.get<packet::tsc::TSC>());
        calibrate(tsc, false);
        has_tsc_ = true;
        has_tma_ = has_mtc_ = is_unlimited_ = false;
        tsc_ = base_ = tsc;
        remainder_ = 0;
        anchor_at(tsc, 0, time::unbounded);
        refresh();
        return rule::none;
    }
    [[nodiscard]] constexpr auto add(packet::tma which) noexcept -> rule {
        if (!has_tsc_ || has_tma_) { return rule::PKT_303; }
        if (is_corrupt(which)) { return rule::none; }
        uint64_t const fast = which.get<packet::tma::FC>();
        has_tma_ = true;
        has_mtc_ = false;
        ctc_ = static_cast<uint32_t>(which.get<packet::tma::CTC>());
        base_ = detail::saturating_sub(tsc_, fast);
        remainder_ = 0;
        // FC has nine bits: with a longer period of the crystal clock the edge may lie earlier.
        uint64_t const period = numerator_ / denominator_;
        base_error_ = period < 512 ? 0 : period / 512 * 512;
        if (numerator_ != 0 && !is_unlimited_) {
            uint32_t const next = ((ctc_ >> mtc_freq_) + 1) << mtc_freq_;
            // TMA lacks the upper bits of the counter, but not those below MTCFreq.
            ceiling_ = ticks_until(next - ctc_);
            if (ceiling_ < anchor_) { ceiling_ = time::unbounded; }
        }
        refresh();
        return rule::none;
    }
    constexpr auto add(packet::mtc which) noexcept -> rule {
        auto const payload = static_cast<uint32_t>(which.get<packet::mtc::CTC>());
        if (is_regular_) [[likely]] {
            add_regular(payload);
        } else {
            add_mtc(payload);
        }
        return rule::none;
    }
    constexpr auto add(packet::cyc which) noexcept -> rule {
        uint64_t const value = which.value();
        uint64_t const sum = cycles_ + value;
        if (is_simple_ && (value | sum) < quick_cycles) [[likely]] {
            all_ += value;
            cycles_ = sum;
        } else {
            add_cycles(value);
        }
        return rule::none;
    }
    constexpr auto add(packet::cbr which) noexcept -> rule {
        auto const core = which.get<packet::cbr::CoreBusRatio>();
        auto const found = detail::ratio::of(non_turbo_, core);
        if (!in_psb_plus_ || !ratio_.is_known()) { is_calibrated_ = is_clean_ = false; }
        if (found.scaled() == nominal_.scaled()) {
            if (!is_calibrated_) { ratio_ = found; }
            refresh();
            return rule::none;
        }
        if (ratio_.is_known()) {
            // The cycles up to the next CYC ran partly at the old frequency.
            anchor_here();
            if (!has_mixed_ratios_) { least_ratio_ = greatest_ratio_ = ratio_; }
            has_mixed_ratios_ = true;
            if (found.scaled() < least_ratio_.scaled()) { least_ratio_ = found; }
            if (found.scaled() > greatest_ratio_.scaled()) { greatest_ratio_ = found; }
        }
        nominal_ = ratio_ = found;
        is_calibrated_ = is_clean_ = false;
        refresh();
        return rule::none;
    }
    constexpr auto add(packet::psb) noexcept -> rule {
        in_psb_plus_ = true;
        if (is_skl168_) { is_clean_ = false; }
        return rule::none;
    }
    constexpr auto add(packet::psbend) noexcept -> rule {
        in_psb_plus_ = false;
        return rule::none;
    }
    /// MTCs, CYCs and the packets at which clocks stop may be lost.
    constexpr auto add(packet::ovf) noexcept -> rule {
        lose();
        return rule::none;
    }
    /// Any other packet.
    template <packet::packet_type Packet>
    constexpr auto add(Packet const&) noexcept -> rule {
        if constexpr (Packet::about.cyc_eligible == packet::cyc_rule::yes) { pass(); }
        return rule::none;
    }
    [[nodiscard]] constexpr auto add(packet::any_packet const& which) noexcept -> rule {
        return packet::visit([this](auto const& one) { return add(one); }, which);
    }

    /// Packets may be lost here: times have no upper bound until the next TSC.
    constexpr void lose() noexcept {
        anchor_here();
        is_unlimited_ = true;
        in_psb_plus_ = is_clean_ = false;
        ceiling_ = time::unbounded;
        refresh();
    }
    /// Call this after a CYC-eligible packet that is not passed to `add`. It matters only with a
    /// threshold.
    constexpr void pass() noexcept {
        if (is_fresh_ && threshold_ != 0) [[unlikely]] {
            is_fresh_ = false;
            refresh();
        }
    }

    // --------------------------------------------------------------------------- time

    /// A TSC was read: times are those of the time-stamp counter.
    [[nodiscard]] constexpr auto is_absolute() const noexcept -> bool { return has_tsc_; }

    /// The time of the last packet, if it is CYC-eligible.
    [[nodiscard]] constexpr auto now() const noexcept -> time {
        return is_simple_ ? quick_estimate() : now_;
    }
    /// The time of the last packet, if it is not CYC-eligible. It has the upper bound of the MTCs.
    [[nodiscard]] constexpr auto now_without_cyc() const noexcept -> time {
        auto found = now();
        if (has_cyc_) { found.latest = ceiling_; }
        return found;
    }

    // --------------------------------------------------------------------------- cycles

    /// The cycle of the last packet, if it is CYC-eligible. With a threshold, it is exact for a
    /// packet directly after a CYC; other packets are less than the threshold later.
    ///
    /// Source: GEN-211..218, PKT-109..113.
    [[nodiscard]] constexpr auto cycle() const noexcept -> cycle_time { return {all_, slack()}; }
    /// The sum of all CYCs.
    [[nodiscard]] constexpr auto cycles() const noexcept -> uint64_t { return all_; }
    /// The ratio of TSC ticks to core clock cycles in units of 2^-32; 0 if it is unknown.
    [[nodiscard]] constexpr auto ticks_per_cycle() const noexcept -> uint64_t {
        return ratio_.scaled();
    }
    /// The ratio was measured between two TSCs or MTCs, not taken from a CBR.
    [[nodiscard]] constexpr auto is_calibrated() const noexcept -> bool { return is_calibrated_; }

    // --------------------------------------------------------------------------- losses

    /// The number of MTCs that were missing between two others. Multiples of 256 are invisible.
    ///
    /// Source: PKT-306, PKT-307.
    [[nodiscard]] constexpr auto missing_mtcs() const noexcept -> uint64_t { return lost_; }
    /// The number of CYCs without a known ratio. They give no time.
    ///
    /// Source: PKT-311.
    [[nodiscard]] constexpr auto unused_cycs() const noexcept -> uint64_t { return unused_; }

private:
    static constexpr uint8_t no_shift = 0xFF;
    static constexpr uint64_t quick_cycles = uint64_t{1} << 24;
    /// The most cycles from which time is computed, since the last TSC or MTC: 39 hours.
    static constexpr uint64_t most_cycles = low_bits(48);

    static constexpr auto low_bits32(unsigned count) noexcept -> uint32_t {
        return static_cast<uint32_t>(low_bits(count));
    }
    /// SKZ84: with TSC scaling or offset, a TMA is corrupt.
    [[nodiscard]] constexpr auto is_corrupt(packet::tma which) const noexcept -> bool {
        return is_skz84_ && (which.raw & packet::tma::reserved_mask()) != 0;
    }
    /// Handles the MTC after an MTC, if an MTC period is a whole number of TSC ticks. Without it,
    /// event times of a trace with MTC and CYC packets take 26 % more instructions.
    constexpr void add_regular(uint32_t payload) noexcept {
        uint32_t const periods = (payload - (ctc_ >> mtc_freq_)) & 0xFF;
        if (periods > 1) { lost_ += periods - 1; }
        ctc_ = payload << mtc_freq_;
        base_ += periods * period_ticks_;
        calibrate(base_, true);
        anchor_ = floor_ = base_;
        early_ = 0;
        high_ = base_;
        ceiling_ = detail::saturating_add(base_, (1 + uint64_t{lost_mtcs_}) * period_ticks_);
        cycles_ = 0;
        now_ = {base_, base_, ceiling_, all_};
    }
    constexpr void add_mtc(uint32_t payload) noexcept {
        // MTCs between a TSC and its TMA are ignored.
        if (numerator_ == 0 || (has_tsc_ && !has_tma_)) {
            pass();
            return;
        }
        uint32_t const ctc = payload << mtc_freq_;
        if (!has_tsc_ && !has_mtc_) {
            ctc_ = ctc;
            has_mtc_ = true;
            anchor_at(base_, 0, time::unbounded);
            refresh();
            return;
        }
        if (!has_mtc_) { resolve_upper_bits(ctc); }
        uint32_t const delta = (ctc - ctc_) & low_bits32(mtc_freq_ + 8U);
        uint32_t const periods = delta >> mtc_freq_;
        if (has_mtc_ && !is_unlimited_ && periods > 1) { lost_ += periods - 1; }
        has_mtc_ = true;
        ctc_ = ctc;
        advance_edge(delta);
        calibrate(base_, true);
        anchor_at(base_, base_error_ + rounding_,
                  is_unlimited_ || !has_tsc_ ? time::unbounded : ticks_until(1U << mtc_freq_));
        refresh();
    }
    [[nodiscard]] constexpr auto divided(uint64_t ticks) const noexcept -> uint64_t {
        return denominator_shift_ != no_shift ? ticks >> denominator_shift_ : ticks / denominator_;
    }
    /// The sum of all steps since the TMA is converted, not each step. Source: PKT-304, PKT-305.
    constexpr void advance_edge(uint32_t delta) noexcept {
        uint64_t const sum = remainder_ + uint64_t{delta} * numerator_;
        uint64_t const ticks = divided(sum);
        base_ += ticks;
        remainder_ = sum - ticks * denominator_;
    }
    /// The latest time before an MTC that is `crystal` crystal cycles after the last edge, if the
    /// processor drops as many MTCs as it may.
    [[nodiscard]] constexpr auto ticks_until(uint64_t crystal) const noexcept -> uint64_t {
        uint64_t const all = crystal + (uint64_t{lost_mtcs_} << mtc_freq_);
        uint64_t const ticks = divided(remainder_ + all * numerator_) + rounding_;
        return detail::saturating_add(base_, ticks);
    }
    /// TMA has the lower 16 bits of the counter. An MTC of a longer period shows more.
    ///
    /// Source: PKT-308, GEN-207.
    constexpr void resolve_upper_bits(uint32_t ctc) noexcept {
        if (mtc_freq_ <= 8) {
            ctc_ &= low_bits32(mtc_freq_ + 8U);
            return;
        }
        uint32_t upper = ctc & ~uint32_t{0xFFFF};
        if ((ctc & 0xFFFF) < ctc_) { upper -= 0x1'0000; }
        ctc_ = (upper + ctc_) & low_bits32(mtc_freq_ + 8U);
    }
    /// The 64-bit value nearest to the last one.
    ///
    /// Source: PKT-315.
    [[nodiscard]] constexpr auto extended(uint64_t low_56) const noexcept -> uint64_t {
        if (!has_tsc_ && !has_reference_) { return low_56; }
        uint64_t const near_by = has_tsc_ ? anchor_ : reference_;
        constexpr uint64_t wrap = uint64_t{1} << 56;
        uint64_t const step = (low_56 - near_by) & (wrap - 1);
        return step < wrap / 2 || near_by + step < wrap ? near_by + step : near_by + step - wrap;
    }

    /// Sets the point from which cycles count: a TSC or an MTC, which has the time `tsc`.
    constexpr void anchor_at(uint64_t tsc, uint64_t error, uint64_t ceiling) noexcept {
        bool const is_first = ceiling_ == time::unbounded && anchor_ == 0;
        spans_anchor_ = threshold_ != 0 && !is_fresh_;
        if (spans_anchor_ && !is_first) { estimate_early_cycles(tsc); }
        anchor_ = tsc;
        floor_ = detail::saturating_sub(tsc, error);
        early_ = error;
        high_ = detail::saturating_add(tsc, error);
        ceiling_ = ceiling < floor_ ? time::unbounded : ceiling;
        cycles_ = 0;
        has_mixed_ratios_ = false;
        is_fresh_ = false;
    }
    /// With a threshold, the next CYC has cycles of before the point `tsc`: their number is not
    /// known, but lower than the threshold.
    ///
    /// Source: PKT-314, GEN-212.
    constexpr void estimate_early_cycles(uint64_t tsc) noexcept {
        uint64_t const here = anchor_ + ratio_.of(cycles_);
        uint64_t const ticks = detail::saturating_sub(tsc, here);
        uint64_t const scaled = ratio_.scaled() >> 16;
        uint64_t const passed = scaled == 0 ? 0 : ((ticks & low_bits(40)) << 16) / scaled;
        uint64_t const sum = early_cycles_ + passed;
        early_cycles_ = sum < threshold_ ? static_cast<uint32_t>(sum) : threshold_ - 1;
    }
    /// Makes the estimate of the last CYC the point from which cycles count.
    constexpr void anchor_here() noexcept {
        if (cycles_ == 0) { return; }
        auto const here = estimate(0);
        anchor_ = here.tsc;
        early_ = here.tsc - here.earliest;
        high_ = here.latest;
        cycles_ = 0;
    }
    constexpr void add_cycles(uint64_t value) noexcept {
        has_cyc_ = is_fresh_ = true;
        all_ += value;
        if (!ratio_.is_known()) { ++unused_; }
        uint64_t const sum = detail::saturating_add(cycles_, value);
        if (spans_anchor_) { return add_first_cycles(sum); }
        cycles_ = sum < most_cycles ? sum : most_cycles;
        if (has_mixed_ratios_) { mix_frequencies(); }
        refresh();
    }
    /// Handles the first CYC after an anchor without a CYC: some of its cycles precede the anchor.
    constexpr void add_first_cycles(uint64_t sum) noexcept {
        uint64_t const before = early_cycles_ < sum ? early_cycles_ : sum;
        uint64_t const most = threshold_ - 1U;
        cycles_ = sum - before < most_cycles ? sum - before : most_cycles;
        early_ = detail::saturating_add(early_, most_ticks_of(most - early_cycles_));
        high_ = detail::saturating_add(high_, most_ticks_of(before));
        early_cycles_ = 0;
        spans_anchor_ = is_clean_ = false;
        if (has_mixed_ratios_) { mix_frequencies(); }
        refresh();
    }
    /// Accounts for a CBR since the last CYC: the cycles ran partly at each frequency.
    constexpr void mix_frequencies() noexcept {
        uint64_t const ticks = ratio_.of(cycles_);
        early_ = detail::saturating_add(early_, ticks - least_ratio_.of(cycles_));
        high_ = detail::saturating_add(high_, greatest_ratio_.of(cycles_) - ticks);
        has_mixed_ratios_ = false;
        anchor_here();
    }

    /// Measures the ratio of TSC ticks to cycles since the last TSC or MTC: from TSC to TSC or from
    /// MTC to MTC. The value of a TSC may be some 40 cycles older than its CYC
    /// (dr-hello-dyn @43b4).
    ///
    /// Source: PKT-312, PKT-318.
    constexpr void calibrate(uint64_t tsc, bool is_mtc) noexcept {
        bool const is_exact = threshold_ == 0 || is_fresh_;
        bool const is_same = anchor_is_mtc_ == is_mtc;
        anchor_is_mtc_ = is_mtc;
        if (cycles_ != 0 && is_clean_ && is_exact && is_same && tsc > anchor_) {
            auto const found = detail::ratio::of(tsc - anchor_, cycles_);
            if (found.is_known() && (!nominal_.is_known() || found.is_near(nominal_))) {
                ratio_ = found;
                is_calibrated_ = true;
            }
        }
        is_clean_ = is_exact;
    }

    [[nodiscard]] constexpr auto slack() const noexcept -> uint64_t {
        return threshold_ == 0 || is_fresh_ ? 0 : has_cyc_ ? threshold_ - 1U : time::unbounded;
    }
    /// The time `slack` cycles or less after the last CYC.
    [[nodiscard]] constexpr auto estimate(uint64_t slack) const noexcept -> time {
        uint64_t const ticks = has_cyc_ ? ratio_.of(cycles_) : 0;
        if (!has_tsc_) { return {anchor_ + ticks, 0, time::unbounded, all_}; }
        if (!has_cyc_ || !ratio_.is_known()) { return {anchor_, floor_, ceiling_, all_}; }
        uint64_t const error = error_of(ticks);
        uint64_t high = ceiling_;
        if (slack != time::unbounded && !is_unlimited_) {
            uint64_t const most = detail::saturating_add(high_, ticks + error);
            high = least(detail::saturating_add(most, most_ticks_of(slack)), high);
        }
        // At least the last TSC or MTC.
        uint64_t const middle = detail::saturating_add(anchor_, ticks);
        uint64_t const low = detail::saturating_sub(middle, detail::saturating_add(error, early_));
        return {least(middle, high), least(low < floor_ ? floor_ : low, high), high, all_};
    }
    /// The same where `is_simple_`.
    [[nodiscard]] constexpr auto quick_estimate() const noexcept -> time {
        uint64_t const ticks = (cycles_ * ratio_.scaled()) >> 32;
        uint64_t const error = error_of(ticks);
        uint64_t const high = least(high_ + ticks + error, ceiling_);
        uint64_t const low = detail::saturating_sub(anchor_ + ticks, error + early_);
        return {least(anchor_ + ticks, high), least(low < floor_ ? floor_ : low, high), high, all_};
    }
    /// The most TSC ticks that cycles since the last CYC may take.
    [[nodiscard]] constexpr auto most_ticks_of(uint64_t cycles) const noexcept -> uint64_t {
        if (cycles == 0) { return 0; }
        uint64_t const ticks = (has_mixed_ratios_ ? greatest_ratio_ : ratio_).of(cycles) + 1;
        return ticks + deviation_of(ticks);
    }
    /// The error of so many ticks: the deviation of the core clock, and a cycle.
    [[nodiscard]] constexpr auto error_of(uint64_t ticks) const noexcept -> uint64_t {
        return deviation_of(ticks) + cycle_ticks_;
    }
    /// Rounded up.
    [[nodiscard]] constexpr auto deviation_of(uint64_t ticks) const noexcept -> uint64_t {
        return (ticks + round_up_) >> tolerance_;
    }
    static constexpr auto least(uint64_t one, uint64_t two) noexcept -> uint64_t {
        return one < two ? one : two;
    }
    /// Sets the time after a packet.
    constexpr void refresh() noexcept {
        cycle_ticks_ = (ratio_.scaled() >> 32) + 2;
        is_simple_ = has_tsc_ && has_cyc_ && threshold_ == 0 && !is_unlimited_ &&
                     ratio_.is_known() && !has_mixed_ratios_ && !is_monotonic_ &&
                     high_ >> 63 == 0 && cycles_ < quick_cycles;
        is_regular_ = has_tsc_ && has_mtc_ && period_ticks_ != 0 && remainder_ == 0 &&
                      base_error_ == 0 && (is_simple_ || !has_cyc_) && threshold_ == 0 &&
                      !is_unlimited_ && !is_monotonic_;
        now_ = estimate(slack());
        if (is_monotonic_) {
            now_.tsc = now_.tsc < reported_ ? reported_ : now_.tsc;
            reported_ = now_.tsc;
        }
    }

    // The last point with a known time, and the cycles since then.
    uint64_t anchor_ = 0;
    uint64_t early_ = 0;                  ///< the maximum error of `anchor_` downwards
    uint64_t high_ = 0;                   ///< the upper bound of `anchor_`
    uint64_t floor_ = 0;                  ///< the lower bound of all packets after the anchor
    uint64_t ceiling_ = time::unbounded;  ///< their upper bound
    uint64_t cycles_ = 0;
    uint64_t all_ = 0;
    detail::ratio ratio_{};     ///< TSC ticks in a core clock cycle
    uint64_t cycle_ticks_ = 1;  ///< in one cycle, plus rounding: CYC counts whole cycles
    bool is_simple_ = false;    ///< `quick_estimate` applies
    bool is_regular_ = false;   ///< `add_regular` applies
    time now_{};
    uint32_t threshold_ = 0;     ///< in cycles; 0: none
    uint32_t early_cycles_ = 0;  ///< the estimated cycles from the last CYC to the anchor
    bool has_cyc_ = false;
    bool is_fresh_ = false;          ///< no packet since the last CYC
    bool has_mixed_ratios_ = false;  ///< a CBR since the last CYC
    bool spans_anchor_ = false;      ///< the next CYC includes cycles before the anchor
    bool is_unlimited_ = false;
    bool is_clean_ = false;  ///< the ratio can be measured from the anchor on
    bool is_calibrated_ = false;
    bool anchor_is_mtc_ = false;
    bool in_psb_plus_ = false;
    bool has_tsc_ = false;
    bool has_tma_ = false;  ///< since the last TSC
    bool has_mtc_ = false;  ///< since the last TSC or TMA
    uint8_t non_turbo_ = 0;
    uint8_t mtc_freq_ = 0;
    uint8_t tolerance_ = 0;
    uint8_t denominator_shift_ = no_shift;
    bool is_monotonic_ = false;
    bool is_skl168_ = false;
    bool is_skz84_ = false;
    bool has_reference_ = false;
    uint8_t lost_mtcs_ = 0;
    uint32_t numerator_ = 0;
    uint32_t denominator_ = 1;
    uint32_t round_up_ = 0;      ///< 2^tolerance_ - 1
    uint8_t rounding_ = 0;       ///< one tick where the ratio of the clocks is no integer
    uint64_t period_ticks_ = 0;  ///< in a period of MTCs, where that is an integer
    uint32_t ctc_ = 0;           ///< the crystal counter at `base_`
    uint64_t base_ = 0;          ///< the TSC at the last edge of the crystal clock
    uint64_t base_error_ = 0;    ///< the maximum error of `base_` downwards
    uint64_t remainder_ = 0;     ///< of the division by `denominator_`
    uint64_t tsc_ = 0;
    uint64_t reference_ = 0;
    uint64_t reported_ = 0;  ///< the last estimate, if it is monotonic
    uint64_t lost_ = 0;
    uint64_t unused_ = 0;
    detail::ratio nominal_{};         ///< by the last CBR
    detail::ratio least_ratio_{};     ///< extremes since the last CYC, valid if
    detail::ratio greatest_ratio_{};  ///< `has_mixed_ratios_`
};

}  // namespace ptspec::trace

// ---- ptspec/trace/clock_options.hpp ----

namespace ptspec::trace {

/// The constants of the clock of a trace that this configuration makes on this processor.
///
/// Source: PKT-101, PKT-301, PKT-311, REG-168.
[[nodiscard]] constexpr auto clock_options_of(reg::ia32_rtit_ctl ctl,
                                              cpu::capabilities const& caps) noexcept
    -> clock_options {
    using word = reg::ia32_rtit_ctl;
    auto const ratio = caps.platform_info.get<reg::msr_platform_info::MaxNonTurboRatio>();
    return {.mtc_freq = static_cast<uint8_t>(ctl.get<word::MTCFreq>()),
            .cyc_thresh = static_cast<uint8_t>(ctl.get<word::CycThresh>()),
            .max_non_turbo_ratio = static_cast<uint8_t>(ratio),
            .tsc_numerator = static_cast<uint32_t>(caps.leaf_15_ebx.raw),
            .tsc_denominator = static_cast<uint32_t>(caps.leaf_15_eax.raw)};
}

}  // namespace ptspec::trace

// ---- ptspec/trace/context.hpp ----

/// What packets belong to, and the state of the processor after each.
namespace ptspec::trace {

/// What is known about PacketEn.
enum class tracing : uint8_t {
    unknown,   ///< at the start, after an OVF and after damage
    off,       ///< control flow is not traced: the next is TIP.PGE
    entering,  ///< on according to the last PSB+; a TIP.PGE may follow: BDM70, PKT-140
    on,
};

/// What a packet belongs to.
///
/// Source: PKT-270..278, GEN-246.
enum class owner : uint8_t {
    none,               ///< PAD, TSC, TMA, MTC, CYC, CBR, MNT, PSB, PSBEND
    status,             ///< a packet of a PSB+, which reports the state: PKT-136
    branch,             ///< TNT, TIP, TIP.PGD: the next branches of the code
    far_transfer,       ///< MODE.Exec and TIP without a FUP
    asynchronous,       ///< FUP, PIP, VMCS, MODE.Exec, and the TIP or TIP.PGD that ends the event
    entry,              ///< MODE.Exec and TIP.PGE
    paging,             ///< PIP, VMCS without a FUP: the next MOV CR3, far transfer, VM entry ..
    interrupt_flag,     ///< MODE.Exec and FUP, with event trace: PKT-092
    transaction,        ///< MODE.TSX and FUP
    transaction_abort,  ///< MODE.TSX, FUP, and TIP or TIP.PGD
    overflow,           ///< OVF, and the FUP with the IP at which tracing resumes
    ptwrite,            ///< PTW and FUP
    power,              ///< MWAIT, PWRE, EXSTOP and FUP; PWRX
    pebs,               ///< BBP, BIP, BEP and FUP
    control_flow,       ///< EVD, CFE and FUP
    trigger,            ///< TRIG and FUP
    trace_stop,         ///< TraceStop
};

/// What a packet belongs to, and whether it completes it.
///
/// MODE.Exec has the owner `far_transfer` until the packet that completes it: TIP, TIP.PGE or FUP.
struct binding {
    owner to = owner::none;
    bool completes = true;  ///< no packet of the same owner has to follow
    rule broken =
        rule::none;  ///< the rule that the order of packets violates; pending packets are dropped
    bool in_psb_plus = false;  ///< between PSB and PSBEND
};

/// The state of the processor, as far as it is known from the packets.
struct execution_state {
    tracing enabled = tracing::unknown;
    uint8_t code_bits = 0;     ///< 16, 32 or 64; 0: unknown
    bool has_cr3 = false;      ///< `cr3` and `non_root` are known
    bool has_vmcs = false;     ///< `vmcs` is known
    bool non_root = false;     ///< PIP.NR
    bool interrupts = false;   ///< RFLAGS.IF, with event trace
    bool transaction = false;  ///< InTX
    uint64_t cr3 = 0;
    uint64_t vmcs = 0;  ///< the base address of the current VMCS; all ones: none

    friend constexpr auto operator==(execution_state const&, execution_state const&)
        -> bool = default;
};

namespace detail {

/// A packet that belongs to the next branches, if nothing is pending.
template <class Packet>
inline constexpr bool is_branch = one_of<Packet, packet::tnt_short, packet::tnt_long, packet::tip>;

/// A packet that belongs to no other. Source: PKT-272.
template <class Packet>
inline constexpr bool is_unbound = Packet::about.binds_to_ip == packet::binding::no &&
                                   !one_of<Packet, packet::psb, packet::psbend>;

/// A bit for each kind of packet.
template <class... Packets>
constexpr auto branch_kinds_of(type_list<Packets...>) noexcept -> uint32_t {
    return (... | (uint32_t{is_branch<Packets>} << underlying(Packets::about.id)));
}
template <class... Packets>
constexpr auto unbound_kinds_of(type_list<Packets...>) noexcept -> uint32_t {
    return (... | (uint32_t{is_unbound<Packets>} << underlying(Packets::about.id)));
}
inline constexpr uint32_t branch_kinds = branch_kinds_of(packet::all{});
inline constexpr uint32_t unbound_kinds = unbound_kinds_of(packet::all{});

}  // namespace detail

/// Binds each packet to its owner, and tracks the state of the processor.
///
/// If a packet violates the order of packets, its binding has the violated rule. The pending
/// packets are dropped, and the packet is bound without them. After control flow packets that
/// cannot be bound, `is_lost()` is true until the next packet with an IP.
///
/// Shape:  a plain value of fixed size.
/// Source: PKT-070..078, PKT-082, PKT-092, PKT-093, PKT-134..142, PKT-150..154, PKT-161, PKT-163,
///         PKT-172, PKT-181, PKT-188, PKT-204, PKT-222, PKT-241, PKT-270..274.
class context {
public:
    constexpr context() noexcept = default;
    constexpr explicit context(cpu::quirk_set quirks) noexcept : quirks_{quirks} {}

    /// The state after the last packet.
    [[nodiscard]] constexpr auto state() const noexcept -> execution_state const& { return now_; }
    [[nodiscard]] constexpr auto in_psb_plus() const noexcept -> bool { return has(psb_plus); }
    /// After an OVF, until a packet shows whether and where tracing resumes.
    [[nodiscard]] constexpr auto in_overflow() const noexcept -> bool { return has(overflow); }
    /// Packets are lost or cannot be bound: TNTs are meaningless until a packet has an IP.
    [[nodiscard]] constexpr auto is_lost() const noexcept -> bool { return has(lost); }
    /// Tracing is on and no packet is pending: TNT and TIP belong to branches.
    [[nodiscard]] constexpr auto binds_branches() const noexcept -> bool { return flags_ == 0; }

    /// Packets are lost: resets the state to unknown.
    constexpr void restart() noexcept {
        now_ = {};
        flags_ = lost;
    }

    /// Binds the next packet, as a visitor gets it.
    template <packet::packet_type Packet>
    constexpr auto add(Packet const& which, unsigned length) noexcept -> binding {
        if constexpr (detail::is_branch<Packet>) {
            if (binds_branches()) [[likely]] { return {.to = owner::branch}; }
        } else if constexpr (detail::is_unbound<Packet>) {
            return {.in_psb_plus = in_psb_plus()};
        }
        return add_other({which, length});
    }
    /// Binds the next packet.
    constexpr auto add(packet::any_packet const& which) noexcept -> binding {
        uint32_t const kind = uint32_t{1} << underlying(which.kind());
        if ((kind & detail::branch_kinds) != 0 && binds_branches()) [[likely]] {
            return {.to = owner::branch};
        }
        if ((kind & detail::unbound_kinds) != 0) { return {.in_psb_plus = in_psb_plus()}; }
        return add_other(which);
    }
    /// Binds a TIP.PGD that belongs to a branch. Returns false, and changes nothing, for any other
    /// TIP.PGD.
    [[nodiscard]] constexpr auto try_end_tracing() noexcept -> bool {
        if (!binds_branches()) { return false; }
        set(tracing::off);
        return true;
    }
    /// Binds a TIP.PGE without a MODE.Exec. Returns false, and changes nothing, for any other
    /// TIP.PGE.
    [[nodiscard]] constexpr auto try_start_tracing() noexcept -> bool {
        if (flags_ != off) { return false; }
        set(tracing::on);
        return true;
    }

private:
    constexpr auto add_other(packet::any_packet const& which) noexcept -> binding {
        using packet::kind;
        switch (which.kind()) {
            case kind::psb: return begin_psb_plus();
            case kind::psbend: return end_psb_plus();
            case kind::ovf: return add_ovf();
            default: break;
        }
        bool const is_status = has(psb_plus) && packet_facts(which.kind()).in_psb_plus;
        if (is_status) { return add_status(which); }
        rule const misplaced = has(psb_plus) ? rule::GEN_172 : rule::none;
        if (has(psb_plus)) { leave_psb_plus(); }
        auto found = add_outside(which);
        if (misplaced != rule::none) { found.broken = misplaced; }
        return found;
    }

    // What is pending. `off` and `lost` are flags, too: if no flag is set, TNT and TIP belong to
    // branches.
    static constexpr uint32_t psb_plus = 1U << 0;
    static constexpr uint32_t has_psb_ip = 1U << 1;  ///< the PSB+ has a FUP with an IP
    static constexpr uint32_t overflow = 1U << 2;    ///< a FUP or TIP.PGE ends the overflow
    static constexpr uint32_t transaction =
        1U << 3;  ///< this flag to `trigger`: the owner of the next FUP
    static constexpr uint32_t abort = 1U << 4;
    static constexpr uint32_t ptwrite = 1U << 5;
    static constexpr uint32_t exstop = 1U << 6;
    static constexpr uint32_t pebs = 1U << 7;
    static constexpr uint32_t control_flow = 1U << 8;
    static constexpr uint32_t trigger = 1U << 9;
    static constexpr uint32_t mode = 1U << 10;          ///< TIP, TIP.PGE or FUP follows
    static constexpr uint32_t asynchronous = 1U << 11;  ///< TIP or TIP.PGD follows
    static constexpr uint32_t aborting = 1U << 12;      ///< the same, of a TSX abort
    static constexpr uint32_t event_data = 1U << 13;    ///< a CFE follows
    static constexpr uint32_t off = 1U << 14;
    static constexpr uint32_t entering = 1U << 15;
    static constexpr uint32_t lost = 1U << 16;
    static constexpr uint32_t owners_of_fup = transaction | abort | ptwrite | exstop | pebs |
                                              control_flow | trigger;
    static constexpr uint32_t waiting = owners_of_fup | mode | asynchronous | aborting | event_data;

    [[nodiscard]] constexpr auto has(uint32_t any_of) const noexcept -> bool {
        return (flags_ & any_of) != 0;
    }
    constexpr void set(uint32_t which, bool value = true) noexcept {
        flags_ = value ? flags_ | which : flags_ & ~which;
    }
    constexpr void set(tracing value) noexcept {
        now_.enabled = value;
        set(off, value == tracing::off);
        set(entering, value == tracing::entering);
    }
    /// Tracing is on at a known IP.
    constexpr void resume() noexcept {
        set(lost | overflow, false);
        set(tracing::on);
    }
    static constexpr auto packet_facts(packet::kind which) noexcept -> packet::facts {
        return packet::for_kind(which, []<class Packet>() { return Packet::about; }, packet::all{});
    }

    // --------------------------------------------------------------------------- PSB+

    constexpr auto begin_psb_plus() noexcept -> binding {
        // The FUP of an INIT has no TIP before its SIPI: GEN-290.
        rule const broken = has(psb_plus)                  ? rule::PKT_142
                            : has(waiting & ~asynchronous) ? rule::GEN_006
                                                           : rule::none;
        set(waiting | has_psb_ip, false);
        set(psb_plus);
        return {.completes = false, .broken = broken, .in_psb_plus = true};
    }
    constexpr auto end_psb_plus() noexcept -> binding {
        if (!has(psb_plus)) { return {.broken = rule::PKT_134}; }
        bool const has_ip = has(has_psb_ip);
        leave_psb_plus();
        if (!has_ip) {
            // PKT-140. After an OVF: PKT-153.
            set(overflow | lost, false);
            set(tracing::off);
        } else if (!has(overflow) && now_.enabled != tracing::on) {
            resume();
            set(tracing::entering);
        }
        return {.in_psb_plus = true};
    }
    constexpr void leave_psb_plus() noexcept { set(psb_plus | has_psb_ip, false); }
    constexpr auto add_status(packet::any_packet const& which) noexcept -> binding {
        using packet::kind;
        rule broken = rule::none;
        switch (which.kind()) {
            case kind::fup:
                if (which.as<packet::fup>().has_ip()) { set(has_psb_ip); }
                break;
            case kind::pip: take(which.as<packet::pip>()); break;
            case kind::vmcs: take(which.as<packet::vmcs>()); break;
            case kind::mode_exec: take(which.as<packet::mode_exec>()); break;
            case kind::mode_tsx: take(which.as<packet::mode_tsx>()); break;
            default: broken = rule::GEN_172; break;
        }
        return {.to = owner::status, .broken = broken, .in_psb_plus = true};
    }
    constexpr auto add_ovf() noexcept -> binding {
        leave_psb_plus();
        set(waiting, false);
        set(tracing::unknown);
        set(overflow);
        return {.to = owner::overflow, .completes = false};
    }

    // --------------------------------------------------------------------------- values

    constexpr void take(packet::pip which) noexcept {
        now_.has_cr3 = true;
        now_.cr3 = which.get<packet::pip::CR3>();
        now_.non_root = which.get<packet::pip::NR>();
    }
    constexpr void take(packet::vmcs which) noexcept {
        now_.has_vmcs = true;
        now_.vmcs = which.get<packet::vmcs::base>();
    }
    constexpr void take(packet::mode_exec which) noexcept {
        now_.code_bits = static_cast<uint8_t>(which.code_bits());
        now_.interrupts = which.get<packet::mode_exec::IF>();
    }
    constexpr void take(packet::mode_tsx which) noexcept {
        now_.transaction = which.get<packet::mode_tsx::InTX>();
    }

    // --------------------------------------------------------------------------- outside PSB+

    constexpr auto add_outside(packet::any_packet const& which) noexcept -> binding {
        using packet::kind;
        switch (which.kind()) {
            case kind::tnt_short:
            case kind::tnt_long: return add_tnt();
            case kind::tip: return add_tip();
            case kind::tip_pge: return add_tip_pge();
            case kind::tip_pgd: return add_tip_pgd();
            case kind::fup: return add_fup(which.as<packet::fup>());
            case kind::pip: take(which.as<packet::pip>()); return add_middle(owner::paging);
            case kind::vmcs: take(which.as<packet::vmcs>()); return add_middle(owner::paging);
            case kind::mode_exec: return add(which.as<packet::mode_exec>());
            case kind::mode_tsx: return add(which.as<packet::mode_tsx>());
            case kind::tracestop: return alone(owner::trace_stop);
            case kind::ptw:
                return announce(owner::ptwrite, ptwrite,
                                which.as<packet::ptw>().get<packet::ptw::IP>());
            case kind::exstop:
                return announce(owner::power, exstop,
                                which.as<packet::exstop>().get<packet::exstop::IP>());
            case kind::mwait:
            case kind::pwre: return announce(owner::power, exstop, false);
            case kind::pwrx: return alone(owner::power);
            case kind::bbp:
            case kind::bip: return announce(owner::pebs, pebs, false);
            case kind::bep:
                return announce(owner::pebs, pebs, which.as<packet::bep>().get<packet::bep::IP>());
            case kind::evd: {
                auto const found = announce(owner::control_flow, control_flow, false);
                set(event_data);
                return {.to = found.to, .completes = false, .broken = found.broken};
            }
            case kind::cfe: {
                set(event_data, false);
                return announce(owner::control_flow, control_flow,
                                which.as<packet::cfe>().get<packet::cfe::IP>());
            }
            case kind::trig:
                return announce(owner::trigger, trigger,
                                which.as<packet::trig>().get<packet::trig::IP>());
            default: return {};
        }
    }

    /// Drops the pending packets that `which` selects. Returns the rule that this violates.
    constexpr auto drop(uint32_t which) noexcept -> rule {
        uint32_t const left = flags_ & which;
        set(which, false);
        if (has(lost)) { return rule::none; }
        return (left & owners_of_fup) != 0               ? rule::PKT_273
               : (left & (asynchronous | aborting)) != 0 ? rule::PKT_077
               : (left & mode) != 0                      ? rule::GEN_235
               : (left & event_data) != 0                ? rule::GEN_302
                                                         : rule::none;
    }
    /// Marks the control flow as lost until the next packet with an IP.
    constexpr void lose_flow() noexcept {
        set(overflow, false);
        set(tracing::unknown);
        set(lost);
    }
    /// Handles a packet that does not depend on PacketEn: after an OVF it shows that tracing is
    /// off.
    ///
    /// Source: PKT-153.
    constexpr void end_overflow() noexcept {
        if (!has(overflow)) { return; }
        set(overflow, false);
        set(tracing::off);
    }
    /// Confirms the state that the last PSB+ reported: no TIP.PGE followed it.
    constexpr void enter() noexcept {
        if (now_.enabled == tracing::entering) { set(tracing::on); }
    }

    constexpr auto add_tnt() noexcept -> binding {
        enter();
        bool const loses = has(asynchronous | aborting | abort | mode);
        binding found{.to = owner::branch, .broken = drop(waiting)};
        if (has(overflow)) {
            // SKD010: the FUP is missing; TNTs are meaningless until the next IP.
            found.broken = quirks_.has(cpu::quirk::skd010) ? found.broken : rule::GEN_227;
            lose_flow();
        } else if (has(off)) {
            found.broken = rule::GEN_105;
            lose_flow();
        } else if (loses) {
            lose_flow();
        }
        return found;
    }
    constexpr auto add_tip() noexcept -> binding {
        enter();
        binding found{.to = owner::branch, .broken = drop(owners_of_fup | event_data)};
        if (has(asynchronous | aborting)) {
            found.to = has(aborting) ? owner::transaction_abort : owner::asynchronous;
        } else if (has(mode)) {
            found.to = owner::far_transfer;
        }
        if (has(overflow) && !quirks_.has(cpu::quirk::skd010)) { found.broken = rule::GEN_227; }
        // A FUP and TIP while tracing is off: an INIT and the SIPI after it (GEN-290).
        if (has(off) && found.to != owner::asynchronous) { found.broken = rule::GEN_105; }
        set(waiting, false);
        resume();
        return found;
    }
    constexpr auto add_tip_pge() noexcept -> binding {
        binding found{.to = owner::entry, .broken = drop(waiting & ~mode)};
        if (now_.enabled == tracing::on) { found.broken = rule::GEN_100; }
        set(waiting, false);
        resume();
        return found;
    }
    constexpr auto add_tip_pgd() noexcept -> binding {
        enter();
        binding found{.to = owner::branch, .broken = drop(owners_of_fup | event_data)};
        if (has(asynchronous | aborting)) {
            found.to = has(aborting) ? owner::transaction_abort : owner::asynchronous;
        } else if (has(off)) {
            found.broken = rule::GEN_101;
        } else if (has(overflow) && !quirks_.has(cpu::quirk::apl11) &&
                   !quirks_.has(cpu::quirk::skd010)) {
            found.broken = rule::GEN_227;
        }
        set(waiting | overflow | lost, false);
        set(tracing::off);
        return found;
    }
    constexpr auto add_fup(packet::fup which) noexcept -> binding {
        enter();
        if (has(owners_of_fup)) {
            auto const to = has(transaction)    ? owner::transaction
                            : has(abort)        ? owner::transaction_abort
                            : has(ptwrite)      ? owner::ptwrite
                            : has(exstop)       ? owner::power
                            : has(pebs)         ? owner::pebs
                            : has(control_flow) ? owner::control_flow
                                                : owner::trigger;
            bool const opens = has(abort);
            set(owners_of_fup, false);
            set(aborting, opens);
            return {.to = to, .completes = !opens};
        }
        if (!which.has_ip()) { return {.to = owner::asynchronous, .broken = rule::PKT_078}; }
        if (has(overflow)) {
            resume();
            // APL12: a TIP.PGE may follow the FUP.
            if (quirks_.has(cpu::quirk::apl12)) { set(tracing::entering); }
            return {.to = owner::overflow};
        }
        if (has(mode)) {
            set(mode, false);
            return {.to = owner::interrupt_flag};
        }
        binding found{.to = owner::asynchronous, .completes = false, .broken = drop(waiting)};
        if (has(off)) { found.broken = rule::PKT_077; }
        set(asynchronous);
        return found;
    }
    /// PIP and VMCS: of a compound event, or alone.
    constexpr auto add_middle(owner otherwise) noexcept -> binding {
        end_overflow();
        rule const broken = drop(owners_of_fup | event_data);
        bool const is_middle = has(asynchronous | aborting);
        return {.to = is_middle ? owner::asynchronous : otherwise,
                .completes = !is_middle,
                .broken = broken};
    }
    constexpr auto add(packet::mode_exec which) noexcept -> binding {
        take(which);
        if (has(asynchronous | aborting)) {
            return {.to = owner::asynchronous,
                    .completes = false,
                    .broken = drop(owners_of_fup | event_data)};
        }
        end_overflow();
        rule const broken = drop(owners_of_fup | mode | event_data);
        set(mode);
        return {.to = owner::far_transfer, .completes = false, .broken = broken};
    }
    /// MODE.TSX: a FUP follows while tracing is on. Source: PKT-093.
    constexpr auto add(packet::mode_tsx which) noexcept -> binding {
        take(which);
        bool const aborts = which.get<packet::mode_tsx::TXAbort>();
        auto const to = aborts ? owner::transaction_abort : owner::transaction;
        auto const found = announce(to, aborts ? abort : transaction, false);
        bool const is_off = has(off);
        if (!is_off) { set(aborts ? abort : transaction); }
        return {.to = to, .completes = is_off, .broken = found.broken};
    }
    /// A packet after which a FUP may follow. Several may share one.
    constexpr auto announce(owner to, uint32_t flag, bool has_fup) noexcept -> binding {
        end_overflow();
        rule const broken = drop(mode | asynchronous | aborting);
        if (has_fup) { set(flag); }
        return {.to = to, .completes = !has_fup, .broken = broken};
    }
    /// A packet without a FUP.
    constexpr auto alone(owner to) noexcept -> binding {
        end_overflow();
        return {.to = to, .broken = drop(waiting)};
    }

    execution_state now_{};
    uint32_t flags_ = lost;
    cpu::quirk_set quirks_{};
};

}  // namespace ptspec::trace

// ---- ptspec/trace/time_conversion.hpp ----

namespace ptspec::trace {

/// The conversion of the TSC to nanoseconds and back, as Linux and perf compute it:
/// `perf_event_mmap_page` and the TIME_CONV record have these numbers.
///
/// Units:  time in ns = zero + TSC * mult / 2^shift.
/// Source: Linux, include/uapi/linux/perf_event.h, `cap_user_time_zero`.
struct time_conversion {
    uint16_t shift = 0;  ///< below 64
    uint32_t mult = 0;   ///< 0: unknown
    uint64_t zero = 0;

    /// The conversion for a TSC of `hz`, where time 0 is TSC 0; unknown if `hz` is 0.
    [[nodiscard]] static constexpr auto of_frequency(uint64_t hz) noexcept -> time_conversion {
        constexpr uint64_t ns_per_s = 1'000'000'000;
        if (hz == 0) { return {}; }
        uint16_t shift = 31;
        while ((ns_per_s << shift) / hz > 0xFFFF'FFFF) { --shift; }
        return {.shift = shift, .mult = static_cast<uint32_t>((ns_per_s << shift) / hz)};
    }
    /// The time of a TSC value.
    [[nodiscard]] constexpr auto time_of(uint64_t tsc) const noexcept -> uint64_t {
        uint64_t const low = tsc & ((uint64_t{1} << shift) - 1);
        return zero + (tsc >> shift) * mult + ((low * mult) >> shift);
    }
    /// The TSC value of a time, rounded down; 0 if the conversion is unknown. `time_of` rounds to
    /// nanoseconds: `tsc_of(time_of(tsc))` can be lower than `tsc`.
    [[nodiscard]] constexpr auto tsc_of(uint64_t time) const noexcept -> uint64_t {
        if (mult == 0) { return 0; }
        uint64_t const since = time - zero;
        return ((since / mult) << shift) + ((since % mult) << shift) / mult;
    }

    friend constexpr auto operator==(time_conversion const&, time_conversion const&)
        -> bool = default;
};

}  // namespace ptspec::trace

// ---- ptspec/trace/events.hpp ----

/// What happened: the events that the packets of a trace describe, with their IPs and times.
namespace ptspec::trace {

/// The type of an event, and the members of `event` that it has. All have `offset` and `when`;
/// `packet` is the packet with the values of the event.
enum class event_type : uint8_t {
    branches,         ///< outcomes of conditional branches and compressed returns: `branches()`
    indirect_branch,  ///< an indirect branch, an uncompressed return, a far transfer: `to`
    enabled,          ///< tracing starts at `ip`
    disabled,         ///< a branch or MOV CR3 ends tracing; `to` is its target, where it is known
    async_branch,     ///< an interrupt, an exception, a VM exit ..: from `ip` to `to`
    async_disabled,   ///< tracing ends at `ip`; `to` is the next IP, where it is known
    paging,           ///< CR3, and VMX root or non-root operation: PIP. With `ip` after an event
    vmcs,             ///< the current VMCS: VMCS
    exec_mode,        ///< the size of code at `ip`, and with event trace RFLAGS.IF: MODE.Exec
    transaction,      ///< begin, end or abort at `ip`: MODE.TSX
    overflow,         ///< packets before it are lost: OVF
    resumed,          ///< after an overflow or a loss of packets, control flow continues at `ip`
    trace_stop,       ///< TraceStop; `ip` is that of the TIP.PGD before it, where it is known
    ptwrite,          ///< PTW
    exstop,           ///< execution stops: EXSTOP
    mwait,            ///< MWAIT
    pwre,             ///< entry of a C-state: PWRE
    pwrx,             ///< exit from a C-state: PWRX; `ip` is that of the entry
    pebs_group,       ///< BBP, without `ip`: the record's is that of `pebs_end`
    pebs_item,        ///< BIP, likewise
    pebs_end,         ///< BEP
    event_data,       ///< EVD: of the `control_flow` event that follows
    control_flow,     ///< an event of event trace: CFE
    trigger,          ///< TRIG
    frequency,        ///< the ratio of the core clock to the bus clock: CBR
    maintenance,      ///< MNT
    psb,              ///< a PSB+ ends; `ip` is the current IP, unless tracing is off
    damage,           ///< bytes that are no packet, or a packet that violates `broken`
    synced,           ///< the first PSB: `skipped` bytes before it
    resynced,         ///< reading resumes at a PSB, `skipped` bytes after the damage
    lost,             ///< no PSB follows: the last `skipped` bytes are not decoded
    unknown,          ///< bytes that only the caller's hook can decode
    need_input,       ///< the chunk is consumed: call `feed()` with the next, or `finish()`
    end,              ///< the end of the trace
};

/// One event of a trace.
///
/// Units:  `when` in TSC ticks; all zero without a clock.
struct event {
    event_type what = event_type::end;
    bool has_ip = false;
    bool has_to = false;
    bool is_status = false;                   ///< reported by a PSB+: not a change
    packet::error why = packet::error::none;  ///< of damage to the bytes
    rule broken = rule::none;                 ///< of damage
    uint32_t skipped = 0;                     ///< in bytes
    uint64_t offset = 0;                      ///< of `packet`, in bytes from the start of the trace
    uint64_t ip = 0;
    uint64_t to = 0;
    packet::any_packet packet{};
    time when{};

    /// False at the end of the trace and at the end of a chunk.
    constexpr explicit operator bool() const noexcept {
        return what != event_type::need_input && what != event_type::end;
    }
    /// The outcomes of `event_type::branches`, the oldest first.
    [[nodiscard]] constexpr auto branches() const noexcept -> packet::branches {
        return packet.is<packet::tnt_short>() ? packet.as<packet::tnt_short>().taken()
                                              : packet.as<packet::tnt_long>().taken();
    }
};

/// The clock of an event reader that computes no times. It generates no instructions.
struct no_clock {
    template <class Packet>
    [[nodiscard]] constexpr auto add(Packet const&) const noexcept -> rule {
        return rule::none;
    }
    constexpr void pass() const noexcept {}
    constexpr void lose() const noexcept {}
    [[nodiscard]] constexpr auto now() const noexcept -> time { return {}; }
    [[nodiscard]] constexpr auto now_without_cyc() const noexcept -> time { return {}; }
};

namespace detail {

/// Visits the common packets, which need no binding: PAD, TSC, MTC and CYC, and, while no event is
/// pending, TNT and TIP. Stops at any other packet, when the event buffer is full, and after a
/// TIP.PGE or TIP.PGD that needs no binding.
template <class Clock>
struct simple_packets {
    event* out;
    event* end;
    Clock* clock;
    item* stopped_at;
    context* binds;
    bool takes_branches;
    bool has_no_pending;
    bool has_stopped = false;  ///< at an item

    template <packet::packet_type Packet>
        requires one_of<Packet, packet::tnt_short, packet::tnt_long>
    constexpr auto operator()(Packet const& which, at where) -> bool {
        if (!takes_branches) { return stop(which, where); }
        write(event_type::branches, which, where, false, false, 0, 0);
        return out != end;
    }
    constexpr auto operator()(packet::tip const& which, at where) -> bool {
        if (!takes_branches) { return stop(which, where); }
        bool const has_to = which.has_ip();
        write(event_type::indirect_branch, which, where, false, has_to, 0, has_to ? where.ip : 0);
        return out != end;
    }
    constexpr auto operator()(packet::tip_pgd const& which, at where) -> bool {
        if (!has_no_pending || !binds->try_end_tracing()) { return stop(which, where); }
        bool const has_to = which.has_ip();
        write(event_type::disabled, which, where, false, has_to, 0, has_to ? where.ip : 0);
        return false;
    }
    constexpr auto operator()(packet::tip_pge const& which, at where) -> bool {
        if (!has_no_pending || !binds->try_start_tracing()) { return stop(which, where); }
        bool const has_ip = which.has_ip();
        write(event_type::enabled, which, where, has_ip, false, has_ip ? where.ip : 0, 0);
        return false;
    }
    template <packet::packet_type Packet>
        requires one_of<Packet, packet::tsc, packet::mtc, packet::cyc>
    constexpr void operator()(Packet const& which, at) {
        (void)clock->add(which);
    }
    constexpr void pads(unsigned, at) {}
    template <packet::packet_type Packet>
    constexpr auto operator()(Packet const& which, at where) -> bool {
        return stop(which, where);
    }
    constexpr auto operator()(item const& one) -> bool {
        *stopped_at = one;
        has_stopped = true;
        return false;
    }

private:
    /// Member by member: an event that is built and copied takes 2 % more instructions (g++ 12).
    template <packet::packet_type Packet>
    constexpr void write(event_type what, Packet const& which, at where, bool has_ip, bool has_to,
                         uint64_t ip, uint64_t to) {
        out->what = what;
        out->has_ip = has_ip;
        out->has_to = has_to;
        out->is_status = false;
        out->why = packet::error::none;
        out->broken = rule::none;
        out->skipped = 0;
        out->offset = where.offset;
        out->ip = ip;
        out->to = to;
        out->packet = {which, where.length};
        if constexpr (!__is_empty(Clock)) { out->when = clock->now(); }
        clock->pass();
        ++out;
    }
    template <packet::packet_type Packet>
    constexpr auto stop(Packet const& which, at where) -> bool {
        return (*this)({.what = item_type::packet,
                        .length = static_cast<uint8_t>(where.length),
                        .offset = where.offset,
                        .ip = where.ip,
                        .packet = {which, where.length}});
    }
};

}  // namespace detail

/// Reads the events of a trace in order.
///
/// An event whose IP is in a later FUP, TIP or PSB+ is returned after that packet; its time is that
/// of its own packet. Events of a PSB+ have its time and the IP of its FUP.
///
/// Damage is an event that names the violated rule. After bytes that are no packet, the reader
/// continues at the next PSB, as `reader` does. After a packet that violates only the order of
/// packets, it continues with that packet. If this loses the control flow, it omits the branches up
/// to the next IP, and the event `resumed` has that IP.
///
/// The reader reads ahead up to the next packet other than TNT, TIP, PAD and timing packets.
///
/// Shape:  a value of about 4 KB. A copy continues independently.
/// Source: PKT-250..256, PKT-270..278; GEN-246; those of `context` and `clock`.
template <class Clock = no_clock, opcode_hook Hook = no_hook, class Packets = packet::all>
class event_reader {
public:
    /// Reads a whole trace from its first PSB on.
    constexpr explicit event_reader(borrowed_bytes whole, Clock clock = {},
                                    cpu::quirk_set quirks = {}, Hook hook = {}) noexcept
        : reader_{whole, from_first_psb, hook}, clock_{clock}, context_{quirks}, quirks_{quirks} {}
    /// Reads a trace that arrives in chunks.
    constexpr explicit event_reader(Clock clock = {}, cpu::quirk_set quirks = {},
                                    Hook hook = {}) noexcept
        : reader_{from_first_psb, hook}, clock_{clock}, context_{quirks}, quirks_{quirks} {}

    /// Gives the next chunk: at the start, and after `event_type::need_input`. At other times it
    /// returns false and changes nothing.
    [[nodiscard]] constexpr auto feed(borrowed_bytes chunk) noexcept -> bool {
        return reader_.feed(chunk);
    }
    /// Ends the trace: no more chunks follow.
    constexpr void finish() noexcept { reader_.finish(); }

    /// The next event. It stays valid until the next call.
    [[nodiscard]] constexpr auto next() noexcept -> event const& {
        if (first_ == ready_) [[unlikely]] { refill(); }
        return events_[first_++];
    }
    /// The state of the processor after the last event that `next` returned.
    [[nodiscard]] constexpr auto state() const noexcept -> execution_state const& {
        return first_ == ready_ ? context_.state() : before_;
    }
    /// The clock, which may have read ahead.
    [[nodiscard]] constexpr auto clock() const noexcept -> Clock const& { return clock_; }

private:
    using kind = packet::kind;

    static constexpr options from_first_psb{.sync = true};
    static constexpr unsigned room = 32;
    /// The maximum number of events pending for one IP. More are returned without an IP. One packet
    /// adds up to three events.
    static constexpr unsigned max_pending = room - 4;

    // ------------------------------------------------------------------------- the events
    // [first_, ready_) are ready to return; [ready_, count_) are pending: their IP is not known
    // yet.

    constexpr void refill() noexcept {
        unsigned const waiting = count_ - ready_;
        for (unsigned i = 0; i < waiting; ++i) { events_[i] = events_[ready_ + i]; }
        first_ = ready_ = 0;
        count_ = waiting;
        before_ = context_.state();
        while (ready_ == 0) {
            if (count_ > max_pending) { return complete_pending(); }
            if (has_item_) {
                has_item_ = false;
                add(item_);
            } else if (!needs_single_packets()) {
                read_simple_packets();
            } else if (skips_byte_ && reader_.skip_byte()) {
                skips_byte_ = false;
            } else {
                add(reader_.next());
            }
        }
    }
    constexpr void read_simple_packets() noexcept {
        bool const has_no_pending = count_ == 0;
        bool const takes_branches = context_.binds_branches() && has_no_pending;
        detail::simple_packets<Clock> plain{events_ + count_, events_ + room, &clock_,       &item_,
                                            &context_,        takes_branches, has_no_pending};
        (void)reader_.for_each(plain);
        if (has_no_pending) { count_ = ready_ = static_cast<unsigned>(plain.out - events_); }
        if (count_ != 0 && events_[count_ - 1].what == event_type::disabled) {
            disabled_ = {events_[count_ - 1].has_to, events_[count_ - 1].to};
        }
        has_item_ = plain.has_stopped;
    }
    [[nodiscard]] constexpr auto needs_single_packets() const noexcept -> bool {
        return skips_byte_ || quirks_.has(cpu::quirk::skd007) || quirks_.has(cpu::quirk::bdm64);
    }
    /// Appends a pending event.
    constexpr void add_pending(event const& one) noexcept {
        events_[count_] = one;
        ++count_;
    }
    constexpr void add_ready(event const& one) noexcept {
        add_pending(one);
        complete_pending();
    }
    /// Makes all pending events ready.
    constexpr void complete_pending() noexcept {
        ready_ = count_;
        awaits_abort_ = false;
    }
    /// Sets the IP of all pending events, and makes them ready.
    constexpr void complete_pending_at(uint64_t ip) noexcept {
        for (unsigned i = ready_; i < count_; ++i) {
            events_[i].has_ip = true;
            events_[i].ip = ip;
        }
        complete_pending();
    }

    // ------------------------------------------------------------------------- items

    constexpr auto made(event_type what, item const& got) noexcept -> event {
        return {.what = what, .offset = got.offset, .packet = got.packet, .when = clock_.now()};
    }

    constexpr void add(item const& got) noexcept {
        switch (got.what) {
            case item_type::packet: return add_packet(got);
            case item_type::unknown: return add_ready(made(event_type::unknown, got));
            case item_type::synced: return lose(event_type::synced, got);
            case item_type::damage: return lose(event_type::damage, got);
            case item_type::resynced: return lose(event_type::resynced, got);
            case item_type::lost: return lose(event_type::lost, got);
            case item_type::need_input: return add_need_input(got);
            case item_type::end: return add_ready({.what = event_type::end, .offset = got.offset});
        }
    }
    /// Returns the end of the chunk before the pending events, which stay pending.
    constexpr void add_need_input(item const& got) noexcept {
        for (unsigned i = count_; i > 0; --i) { events_[i] = events_[i - 1]; }
        events_[0] = {.what = event_type::need_input, .offset = got.offset};
        ++count_;
        ready_ = 1;
    }
    constexpr void lose(event_type what, item const& got) noexcept {
        context_.restart();
        clock_.lose();
        auto one = made(what, got);
        one.why = got.why;
        one.broken = got.broken;
        one.skipped = got.skipped < 0             ? 0
                      : got.skipped > 0xFFFF'FFFF ? 0xFFFF'FFFF
                                                  : static_cast<uint32_t>(got.skipped);
        add_ready(one);
    }

    // ------------------------------------------------------------------------- packets

    constexpr void add_packet(item got) noexcept {
        if (quirks_.bits != 0) {
            auto const after = item_after_cyc(got);
            if (after.what == item_type::need_input) {
                item_ = got;
                has_item_ = true;
                return add_need_input(after);
            }
            apply_errata(got, after);
        }
        bool const was_lost = context_.is_lost();
        auto const was = context_.state().enabled;
        auto const bound = context_.add(got.packet);
        rule const bad_time = clock_.add(got.packet);
        rule const broken = bound.broken != rule::none ? bound.broken : bad_time;
        if (broken != rule::none) {
            auto one = made(event_type::damage, got);
            one.broken = broken;
            add_ready(one);
        }
        switch (bound.to) {
            case owner::none: return add_unbound(got);
            case owner::status: return add_status(got);
            case owner::branch:
            case owner::far_transfer:
            case owner::asynchronous:
            case owner::entry:
            case owner::interrupt_flag: return add_flow(got, bound, was_lost, was);
            case owner::paging: return add_ready(made(type_of(got.packet.kind()), got));
            case owner::transaction:
            case owner::transaction_abort: return add_transaction(got, bound);
            case owner::overflow: return add_overflow(got);
            case owner::ptwrite:
            case owner::power:
            case owner::pebs:
            case owner::control_flow:
            case owner::trigger:
            case owner::trace_stop: return add_value(got, bound);
        }
    }

    /// The item after a CYC that SKD007 may concern; else any item but `need_input`. The reader only
    /// moves to ask for input.
    [[nodiscard]] constexpr auto item_after_cyc(item const& got) noexcept -> item {
        bool const may_be_ovf = quirks_.has(cpu::quirk::skd007) && got.packet.is<packet::cyc>() &&
                                got.length == 2 && got.packet.raw().low >> 8 == 0x02;
        if (!may_be_ovf) { return {.what = item_type::end}; }
        auto next = reader_;
        auto const after = next.next();
        if (after.what == item_type::need_input) { reader_ = next; }
        return after;
    }
    /// Corrects a packet that an erratum changes. `after` is the result of `item_after_cyc`.
    constexpr void apply_errata(item& got, item const& after) noexcept {
        if (after.what == item_type::packet && after.length == 1 &&
            after.packet.raw().low == 0xF3) {
            // SKD007: an OVF follows the first byte of a CYC. Its own first byte, 02H, was read as
            // the second byte of the CYC.
            (void)reader_.next();
            got.offset += 1;
            got.packet = packet::ovf{};
        } else if (got.packet.is<packet::tma>() && quirks_.has(cpu::quirk::skz84)) {
            skips_byte_ = got.packet.as<packet::tma>().reserved_bits_set() != 0;
        }
        if (awaits_abort_ && !is_unbound(got.packet.kind())) {
            // BDM64: the target before an abort may be wrong.
            event& branch = events_[ready_];
            if (got.packet.is<packet::mode_tsx>() &&
                got.packet.as<packet::mode_tsx>().get<packet::mode_tsx::TXAbort>()) {
                branch.has_to = false;
                branch.to = 0;
                branch.packet = packet::tip{};
            }
            complete_pending();
        }
    }
    static constexpr auto is_unbound(kind which) noexcept -> bool {
        return (detail::unbound_kinds >> underlying(which) & 1) != 0;
    }

    static constexpr auto type_of(kind which) noexcept -> event_type {
        switch (which) {
            case kind::pip: return event_type::paging;
            case kind::vmcs: return event_type::vmcs;
            case kind::mode_exec: return event_type::exec_mode;
            case kind::mode_tsx: return event_type::transaction;
            case kind::tracestop: return event_type::trace_stop;
            case kind::ptw: return event_type::ptwrite;
            case kind::exstop: return event_type::exstop;
            case kind::mwait: return event_type::mwait;
            case kind::pwre: return event_type::pwre;
            case kind::pwrx: return event_type::pwrx;
            case kind::bbp: return event_type::pebs_group;
            case kind::bip: return event_type::pebs_item;
            case kind::bep: return event_type::pebs_end;
            case kind::evd: return event_type::event_data;
            case kind::cfe: return event_type::control_flow;
            case kind::trig: return event_type::trigger;
            case kind::cbr: return event_type::frequency;
            case kind::mnt: return event_type::maintenance;
            default: return event_type::psb;
        }
    }

    constexpr void add_unbound(item const& got) noexcept {
        switch (got.packet.kind()) {
            case kind::cbr:
            case kind::mnt: {
                auto one = made(type_of(got.packet.kind()), got);
                one.is_status = context_.in_psb_plus();
                // Inside a compound event they are returned first.
                return one.is_status || awaits_abort_ ? add_pending(one) : insert(one);
            }
            case kind::psb:
                complete_pending();
                psb_ip_ = {};
                return;
            case kind::psbend: return end_psb_plus(got);
            default: return;
        }
    }
    /// Inserts a ready event before the pending ones.
    constexpr void insert(event const& one) noexcept {
        for (unsigned i = count_; i > ready_; --i) { events_[i] = events_[i - 1]; }
        events_[ready_] = one;
        ++count_;
        ++ready_;
    }
    constexpr void add_status(item const& got) noexcept {
        if (got.packet.is<packet::fup>()) {
            auto const fup = got.packet.as<packet::fup>();
            psb_ip_ = {fup.has_ip(), got.ip};
            return;
        }
        auto one = made(type_of(got.packet.kind()), got);
        one.is_status = true;
        add_pending(one);
    }
    constexpr void end_psb_plus(item const& got) noexcept {
        // All packets of a PSB+ have the time of its TSC.
        auto one = made(event_type::psb, got);
        for (unsigned i = ready_; i < count_; ++i) { events_[i].when = one.when; }
        if (psb_ip_.is_known) {
            complete_pending_at(psb_ip_.ip);
        } else {
            complete_pending();
        }
        one.has_ip = psb_ip_.is_known;
        one.ip = psb_ip_.ip;
        psb_ip_ = {};
        add_ready(one);
    }

    constexpr void add_flow(item const& got, binding bound, bool was_lost, tracing was) noexcept {
        switch (got.packet.kind()) {
            case kind::tnt_short:
            case kind::tnt_long:
                if (!context_.is_lost()) { add_ready(made(event_type::branches, got)); }
                return;
            case kind::tip: return add_tip(got, bound, was_lost, was);
            case kind::tip_pge: {
                auto one = made(event_type::enabled, got);
                one.has_ip = got.packet.as<packet::tip_pge>().has_ip();
                one.ip = got.ip;
                event const mode = take_mode();
                add_ready(one);
                return ready_mode(mode, got.ip);
            }
            case kind::tip_pgd: return add_tip_pgd(got, bound);
            case kind::fup:
                if (bound.to == owner::interrupt_flag) { return ready_mode(take_mode(), got.ip); }
                if (bound.broken != rule::PKT_078) {
                    give_ip_to_control_flow(got.ip);
                    auto one = made(event_type::async_branch, got);
                    one.has_ip = true;
                    one.ip = got.ip;
                    complete_pending();
                    add_pending(one);
                }
                return;
            case kind::mode_exec:
                if (bound.to != owner::asynchronous) { complete_pending(); }
                [[fallthrough]];
            default: return add_pending(made(type_of(got.packet.kind()), got));
        }
    }
    /// A CFE without an IP belongs to the compound event that follows. Source: PKT-222.
    constexpr void give_ip_to_control_flow(uint64_t ip) noexcept {
        for (unsigned i = ready_; i < count_; ++i) {
            if (events_[i].what == event_type::control_flow ||
                events_[i].what == event_type::event_data) {
                events_[i].has_ip = true;
                events_[i].ip = ip;
            }
        }
    }
    /// Removes the pending MODE.Exec, if there is one.
    constexpr auto take_mode() noexcept -> event {
        if (count_ > ready_ && events_[count_ - 1].what == event_type::exec_mode) {
            --count_;
            return events_[count_];
        }
        return {};
    }
    constexpr void ready_mode(event mode, uint64_t ip) noexcept {
        if (mode.what != event_type::exec_mode) { return; }
        mode.has_ip = true;
        mode.ip = ip;
        add_ready(mode);
    }
    constexpr void add_tip(item const& got, binding bound, bool was_lost, tracing was) noexcept {
        bool const has_to = got.packet.as<packet::tip>().has_ip();
        if (bound.to == owner::asynchronous || bound.to == owner::transaction_abort) {
            return end_async(got, has_to);
        }
        event const mode = take_mode();
        bool const resumes = was_lost || was == tracing::off || was == tracing::unknown;
        auto one = made(resumes ? event_type::resumed : event_type::indirect_branch, got);
        (resumes ? one.has_ip : one.has_to) = has_to;
        (resumes ? one.ip : one.to) = got.ip;
        if (quirks_.has(cpu::quirk::bdm64) && bound.to == owner::branch && !resumes) {
            complete_pending();
            add_pending(one);
            awaits_abort_ = true;
            return;
        }
        add_ready(one);
        ready_mode(mode, got.ip);
    }
    constexpr void add_tip_pgd(item const& got, binding bound) noexcept {
        bool const has_to = got.packet.as<packet::tip_pgd>().has_ip();
        disabled_ = {has_to, got.ip};
        if (bound.to == owner::asynchronous || bound.to == owner::transaction_abort) {
            for (unsigned i = ready_; i < count_; ++i) {
                if (events_[i].what == event_type::async_branch) {
                    events_[i].what = event_type::async_disabled;
                }
            }
            return end_async(got, has_to);
        }
        auto one = made(event_type::disabled, got);
        one.has_to = has_to;
        one.to = got.ip;
        add_ready(one);
    }
    /// A TIP or TIP.PGD ends a compound event. The state that its other packets carry applies at
    /// the IP of the last: PKT-270.
    constexpr void end_async(item const& got, bool has_to) noexcept {
        for (unsigned i = ready_; i < count_; ++i) {
            auto& one = events_[i];
            one.when = clock_.now();
            if (one.what == event_type::async_branch || one.what == event_type::async_disabled) {
                one.has_to = has_to;
                one.to = got.ip;
            } else {
                one.has_ip = has_to;
                one.ip = got.ip;
            }
        }
        complete_pending();
    }

    constexpr void add_transaction(item const& got, binding bound) noexcept {
        switch (got.packet.kind()) {
            case kind::mode_tsx:
                complete_pending();
                add_pending(made(event_type::transaction, got));
                if (bound.completes) { complete_pending(); }
                return;
            case kind::fup: {
                complete_pending_at(got.ip);
                if (bound.completes) { return; }
                auto one = made(event_type::async_branch, got);
                one.has_ip = true;
                one.ip = got.ip;
                return add_pending(one);
            }
            case kind::tip: return end_async(got, got.packet.as<packet::tip>().has_ip());
            default: return add_tip_pgd(got, bound);
        }
    }
    constexpr void add_overflow(item const& got) noexcept {
        complete_pending();
        if (got.packet.is<packet::ovf>()) { return add_ready(made(event_type::overflow, got)); }
        auto one = made(event_type::resumed, got);
        one.has_ip = true;
        one.ip = got.ip;
        add_ready(one);
    }
    /// PTW, the packets of power events, PEBS, event trace, TRIG, TraceStop, and their FUP.
    constexpr void add_value(item const& got, binding bound) noexcept {
        if (got.packet.is<packet::fup>()) {
            if (bound.to == owner::power) { stopped_ = {true, got.ip}; }
            return complete_pending_at(got.ip);
        }
        auto one = made(type_of(got.packet.kind()), got);
        if constexpr (!__is_empty(Clock)) {
            bool const is_eligible = packet::for_kind(
                got.packet.kind(),
                []<class Packet>() { return Packet::about.cyc_eligible == packet::cyc_rule::yes; },
                Packets{});
            if (!is_eligible) { one.when = clock_.now_without_cyc(); }
        }
        switch (got.packet.kind()) {
            case kind::tracestop:
                one.has_ip = disabled_.is_known;
                one.ip = disabled_.ip;
                return add_ready(one);
            case kind::pwrx:
                one.has_ip = stopped_.is_known;
                one.ip = stopped_.ip;
                stopped_ = {};
                return add_ready(one);
            case kind::bbp:
            case kind::bip: return add_ready(one);
            case kind::mwait:
            case kind::pwre:
            case kind::evd: return add_pending(one);
            default: break;
        }
        add_pending(one);
        bool const may_be_compound = got.packet.is<packet::cfe>() &&
                                     context_.state().enabled != tracing::off;
        if (bound.completes && !may_be_compound) { complete_pending(); }
    }

    struct known_ip {
        bool is_known = false;
        uint64_t ip = 0;
    };

    reader<Hook, Packets> reader_;
    Clock clock_;
    context context_;
    cpu::quirk_set quirks_;
    unsigned first_ = 0;
    unsigned ready_ = 0;
    unsigned count_ = 0;
    bool has_item_ = false;      ///< `item_` is the next item
    bool skips_byte_ = false;    ///< SKZ84: the next byte is no packet
    bool awaits_abort_ = false;  ///< BDM64: the first pending event is an indirect branch
    known_ip psb_ip_{};
    known_ip disabled_{};  ///< the IP of the last TIP.PGD
    known_ip stopped_{};   ///< where the core clock stopped
    item item_{};
    execution_state before_{};  ///< before the events that are ready
    event events_[room]{};
};

}  // namespace ptspec::trace

// ---- ptspec/trace/flow_query.hpp ----

/// Queries for a decoder that walks code: the outcome of the next conditional branch, and the
/// target of the next indirect branch.
namespace ptspec::trace {

/// Why a query has no answer.
enum class no_answer : uint8_t {
    none,        ///< the query has an answer
    event,       ///< an event comes first: `pending()`
    branch,      ///< the trace has the target of an indirect branch next
    need_input,  ///< the chunk is consumed: call `feed()` with the next, or `finish()`
    end,         ///< the end of the trace
};

/// The outcome of a conditional branch or compressed return.
struct [[nodiscard]] branch_answer {
    no_answer why = no_answer::none;
    bool taken = false;

    constexpr explicit operator bool() const noexcept { return why == no_answer::none; }
};

/// The target of an indirect branch, an uncompressed return or a far transfer.
struct [[nodiscard]] target_answer {
    no_answer why = no_answer::none;
    bool has_ip = false;
    uint64_t ip = 0;

    constexpr explicit operator bool() const noexcept { return why == no_answer::none; }
};

/// Supplies branch outcomes, targets and events to a decoder that walks a memory image.
///
/// The decoder calls `take_branch()` at a conditional branch and `take_target()` at an indirect
/// one. If the result is `no_answer::event`, `pending()` returns an event, which applies at its IP,
/// or at the current instruction if it has none. The decoder applies it and calls `pop()`.
///
/// A processor may send a TNT before the TIPs of indirect branches that precede some of its
/// branches. Therefore `take_target()` takes the TIP after the TNT even while outcomes of that TNT
/// are unused.
///
/// Shape:  a value of about 5 KB.
/// Source: PKT-275, PKT-277, GEN-145.
template <class Clock = no_clock, opcode_hook Hook = no_hook>
class flow_query {
public:
    constexpr explicit flow_query(event_reader<Clock, Hook> const& from) noexcept : reader_{from} {}

    [[nodiscard]] constexpr auto feed(borrowed_bytes chunk) noexcept -> bool {
        if (has_next_ && next_.what == event_type::need_input) { has_next_ = false; }
        return reader_.feed(chunk);
    }
    constexpr void finish() noexcept {
        if (has_next_ && next_.what == event_type::need_input) { has_next_ = false; }
        reader_.finish();
    }

    /// Takes the outcome of the next conditional branch.
    constexpr auto take_branch() noexcept -> branch_answer {
        if (left_.count == 0) {
            fetch();
            if (next_.what != event_type::branches) { return {reason()}; }
            left_ = next_.branches();
            when_ = next_.when;
            has_next_ = false;
        }
        --left_.count;
        return {no_answer::none, (left_.bits >> left_.count & 1) != 0};
    }
    /// Takes the target of the next indirect branch.
    constexpr auto take_target() noexcept -> target_answer {
        fetch();
        if (next_.what != event_type::indirect_branch) { return {reason()}; }
        has_next_ = false;
        when_ = next_.when;
        return {no_answer::none, next_.has_to, next_.to};
    }
    /// The next event, if it is not a branch and no branch outcomes are unused; otherwise nullptr.
    [[nodiscard]] constexpr auto pending() noexcept -> event const* {
        if (left_.count != 0) { return nullptr; }
        fetch();
        return reason() == no_answer::event ? &next_ : nullptr;
    }
    /// Removes the pending event.
    constexpr void pop() noexcept {
        if (left_.count != 0 || reason() != no_answer::event) { return; }
        when_ = next_.when;
        has_next_ = false;
    }
    /// The number of unused branch outcomes of the last TNT. At a compound event or a PSB it must
    /// be 0; otherwise trace and image do not match.
    [[nodiscard]] constexpr auto branches_left() const noexcept -> unsigned { return left_.count; }
    /// The time of the last answer or event.
    [[nodiscard]] constexpr auto when() const noexcept -> time const& { return when_; }
    /// The state of the processor: of the next event, which may be pending.
    [[nodiscard]] constexpr auto state() const noexcept -> execution_state const& {
        return reader_.state();
    }

private:
    constexpr void fetch() noexcept {
        if (has_next_) { return; }
        next_ = reader_.next();
        has_next_ = true;
    }
    [[nodiscard]] constexpr auto reason() const noexcept -> no_answer {
        switch (next_.what) {
            case event_type::branches:
            case event_type::indirect_branch: return no_answer::branch;
            case event_type::need_input: return no_answer::need_input;
            case event_type::end: return no_answer::end;
            default: return no_answer::event;
        }
    }

    event_reader<Clock, Hook> reader_;
    event next_{};
    bool has_next_ = false;
    packet::branches left_{};
    time when_{};
};

}  // namespace ptspec::trace

// ---- ptspec/trace/write/state.hpp ----

namespace ptspec::trace {

/// How a writer selects the IPBytes form of an IP.
///
/// Source: PKT-064, GEN-011, GEN-174, GEN-229.
enum class ip_choice : uint8_t {
    as_processors,  ///< the first IP after a PSB or OVF not by the last IP, others the shortest
    shortest,       ///< the first that fits of 16, 32, 48 and 64 bits
    broadwell,      ///< 48 bits always
    skylake,        ///< 48 bits in a FUP and in the first IP of a context, others the shortest
    icelake,        ///< 64 bits where `skylake` has 48
};

/// Where PADs stand before packets.
///
/// Source: GEN-008, GEN-010.
enum class pad_policy : uint8_t {
    none,
    within_words,  ///< no packet crosses a multiple of 8 bytes that fits before the next one
    broadwell,     ///< each packet begins at a multiple of 8; CBR, MODE.TSX, MODE.Exec share a word
    skylake,       ///< wide payloads begin at a multiple of 8, narrow packets do not cross one
};

/// The order of the status packets in a PSB+, CBR and PSBEND included.
///
/// Source: GEN-171.
enum class psb_order : uint8_t {
    manual,   ///< TSC, TMA, CBR, PIP, VMCS, MODE.TSX, MODE.Exec, FUP
    skylake,  ///< MODE.TSX, MODE.Exec, FUP, PIP, VMCS, TSC, TMA, CBR
    atom,     ///< as `manual`, with FUP before MODE.Exec
};

/// The choices that the manual leaves to the processor, and settings from its control registers.
struct writer_options {
    ip_choice ips = ip_choice::as_processors;
    uint8_t tnt_capacity = packet::tnt_short::max_branches;  ///< branches in a TNT: 6 to 47
    bool defers_tips = false;  ///< TIPs are deferred until after the current TNT (GEN-145)
    pad_policy pads = pad_policy::none;
    psb_order in_psb = psb_order::manual;
    bool cyc = false;           ///< IA32_RTIT_CTL.CYCEn
    uint8_t cyc_threshold = 0;  ///< IA32_RTIT_CTL.CycThresh: 2^(n-1) cycles, or 1 if it is 0

    [[nodiscard]] constexpr auto max_branches() const noexcept -> unsigned { return tnt_capacity; }
    /// True if packets need neither CYCs nor PADs, nor the forms of a kind of processor.
    [[nodiscard]] constexpr auto is_plain() const noexcept -> bool {
        return !cyc && pads == pad_policy::none && ips <= ip_choice::shortest;
    }
};

/// The state of a writer between two packets.
struct writer_state {
    static constexpr unsigned max_deferred = 8;
    /// The size of a PSB+ in which each packet has a CYC and PADs, after a TNT and deferred TIPs.
    static constexpr size_t max_bytes = 384;

    uint64_t last_ip = 0;
    bool has_last_ip = false;  ///< an IP was written after the last PSB or OVF
    /// An IP was written after the last PSB, OVF, PIP, VMCS, TSC or MODE.Exec. Source: GEN-011.
    bool has_context_ip = false;
    /// The last packet ended with a wide payload, after which `pad_policy::skylake` pads.
    bool ends_in_payload = false;
    /// The next CYC may cross a multiple of 8, though `pad_policy::skylake` aligns it.
    /// Source: GEN-010.
    bool cyc_crosses = false;
    packet::block items = packet::block::none;
    packet::branches tnt{};  ///< the TNT buffer: branches that are in no packet yet
    uint64_t cycles = 0;     ///< since the last CYC
    uint64_t bytes = 0;      ///< written so far
    unsigned deferred_count = 0;
    uint64_t deferred[max_deferred] = {};  ///< the IPs of deferred TIPs, oldest first

    /// Adds a branch to the TNT buffer, as its youngest.
    constexpr void add_branch(bool taken) noexcept {
        tnt = {tnt.count + 1, tnt.bits << 1 | uint64_t{taken}};
    }
    /// Updates the state after a packet was written.
    template <packet::packet_type Packet>
    constexpr void record(Packet const& which, unsigned length) noexcept {
        last_ip = packet::last_ip_after(which, last_ip);
        items = packet::block_after(which, items);
        if constexpr (derived_from<Packet, packet::ip_packet<Packet>>) {
            has_last_ip |= which.has_ip();
            has_context_ip |= which.has_ip();
        } else if constexpr (same_as<Packet, packet::psb> || same_as<Packet, packet::ovf>) {
            has_last_ip = has_context_ip = false;
        } else if constexpr (same_as<Packet, packet::pip> || same_as<Packet, packet::vmcs> ||
                             same_as<Packet, packet::tsc> || same_as<Packet, packet::mode_exec>) {
            has_context_ip = false;
        }
        bytes += length;
    }
    /// The form for the next IP, of a FUP or of another packet.
    [[nodiscard]] constexpr auto form_of(uint64_t ip, ip_choice how,
                                         bool is_fup = false) const noexcept -> packet::ip_bytes {
        return how > ip_choice::shortest ? form_by_kind(ip, how, is_fup)
                                         : form_of_any_kind(ip, how);
    }
    /// The same where no kind of processor selects it.
    [[nodiscard]] constexpr auto form_of_any_kind(uint64_t ip, ip_choice how) const noexcept
        -> packet::ip_bytes {
        if (how == ip_choice::shortest || has_last_ip) {
            return packet::shortest_form(ip, last_ip);
        }
        return wide_form(ip);
    }
    /// True when the next CYC-eligible packet must have a CYC.
    [[nodiscard]] constexpr auto cyc_is_due(writer_options const& how) const noexcept -> bool {
        unsigned const doublings = how.cyc_threshold > 1 ? how.cyc_threshold - 1U : 0;
        return how.cyc && cycles >= uint64_t{1} << (doublings < 63 ? doublings : 63);
    }

private:
    [[nodiscard]] static constexpr auto wide_form(uint64_t ip) noexcept -> packet::ip_bytes {
        return sign_extended(ip, 48) == ip ? packet::ip_bytes::sign_48 : packet::ip_bytes::full;
    }
    [[nodiscard]] constexpr auto form_by_kind(uint64_t ip, ip_choice how,
                                              bool is_fup) const noexcept -> packet::ip_bytes {
        auto const wide = how == ip_choice::icelake ? packet::ip_bytes::full : wide_form(ip);
        if (how == ip_choice::broadwell || is_fup || !has_context_ip) { return wide; }
        auto const form = packet::shortest_form(ip, last_ip);
        bool const is_short = form == packet::ip_bytes::update_16 ||
                              form == packet::ip_bytes::update_32;
        return is_short ? form : wide;
    }
};

/// The status packets of a PSB+. TMA requires TSC.
///
/// Source: PKT-134, PKT-135, GEN-170, GEN-171.
struct psb_status {
    /// An optional value.
    template <class Value>
    struct optional {
        bool has_value = false;
        Value value{};

        constexpr optional() noexcept = default;
        constexpr optional(Value given) noexcept : has_value{true}, value{given} {}
    };

    optional<packet::tsc> tsc{};
    optional<packet::tma> tma{};
    optional<packet::cbr> cbr{};
    optional<packet::pip> pip{};
    optional<packet::vmcs> vmcs{};
    optional<packet::mode_tsx> mode_tsx{};
    optional<packet::mode_exec> mode_exec{};
    optional<uint64_t> fup{};  ///< the IP, when PacketEn is 1
    /// An MTC that falls due meanwhile, and how many of TSC, TMA and CBR precede it.
    /// Source: GEN-171, GEN-172.
    optional<packet::mtc> mtc{};
    uint8_t mtc_after = 0;
    uint64_t cycles_until_tsc = 0;
    uint64_t cycles_until_mtc = 0;  ///< after TSC
};

}  // namespace ptspec::trace

// ---- ptspec/trace/write/batch.hpp ----

namespace ptspec::trace {

/// A sink of bytes. `append` stores all bytes of its argument, or returns false and stores none.
template <class Sink>
concept packet_sink = requires(Sink& to, byte_view bytes) {
    { to.append(bytes) } -> same_as<bool>;
};
/// A sink that also takes up to 16 bytes as a little-endian number. TNTs and TIPs use this
/// overload. A sink that has 16 bytes of room can store both halves of the number, whatever the
/// count, and advance by the count, as `byte_buffer` and `ports::growing_file` do.
template <class Sink>
concept wide_packet_sink = packet_sink<Sink> && requires(Sink& to, wide_bits bytes, size_t count) {
    { to.append(bytes, count) } -> same_as<bool>;
};

namespace detail {

/// The bytes before which PADs stand.
struct alignment_of_next {
    size_t whole = 0;   ///< so many do not cross a multiple of 8
    size_t head = 0;    ///< or so many end at one
    bool ends = false;  ///< the second applies
};

/// The number of PADs before the bytes at `at`, as `pad_policy::skylake` places them. A wide
/// payload takes its last word alone: `after_payload`.
///
/// Source: GEN-010.
[[nodiscard]] constexpr auto pads_before(uint64_t at, bool after_payload,
                                         alignment_of_next const& next) noexcept -> unsigned {
    unsigned const over = at % 8;
    unsigned const skipped = after_payload ? (8 - over) % 8 : 0;
    unsigned const place = (over + skipped) % 8;
    if (next.ends) { return skipped + (16 - (place + next.head % 8)) % 8; }
    return place + next.whole > 8 ? skipped + (8 - place) % 8 : skipped;
}

/// What the place of a packet among PADs depends on.
enum class placed_as : uint8_t { other, mode, cbr, status, tnt, ip, psb, cyc };

template <class Packet>
[[nodiscard]] constexpr auto placed_as_of() noexcept -> placed_as {
    using namespace packet;
    if (same_as<Packet, mode_tsx> || same_as<Packet, mode_exec>) { return placed_as::mode; }
    if (same_as<Packet, packet::cbr>) { return placed_as::cbr; }
    if (same_as<Packet, pip> || same_as<Packet, vmcs> || same_as<Packet, tsc> ||
        same_as<Packet, tma>) {
        return placed_as::status;
    }
    if (same_as<Packet, tnt_short> || same_as<Packet, tnt_long>) { return placed_as::tnt; }
    if (derived_from<Packet, ip_packet<Packet>>) { return placed_as::ip; }
    if (same_as<Packet, packet::psb>) { return placed_as::psb; }
    return same_as<Packet, packet::cyc> ? placed_as::cyc : placed_as::other;
}

}  // namespace detail

/// Packets that are written all together or not at all, and the writer's state after them.
///
/// Source: as `writer`.
template <class Packets = packet::all>
class packet_batch {
    using code = packet::detail::code;

    writer_state now_;
    writer_options const& how_;
    byte_array<writer_state::max_bytes + 16> bytes_{};  // `put` stores 16 bytes
    size_t size_ = 0;
    rule broken_ = rule::none;
    bool shares_word_ = false;  ///< the last packet may share its word: `pad_policy::broadwell`
    /// The MODEs whose place the next packet decides: `pad_policy::skylake`.
    unsigned held_size_ = 0;
    uint8_t held_[32];

    /// Writes a packet, after its CYC if it has one. There is no PAD between the two, except that
    /// `pad_policy::skylake` aligns a TNT and a TIP.PGD without IP separately.
    template <class Packet>
    constexpr void write(Packet const& which, bool has_cyc = false) noexcept {
        if (broken_ != rule::none) { return; }
        auto const bytes = packet::detail::encoding_of<Packets>(which, now_.items);
        if (write_code(bytes, detail::placed_as_of<Packet>(), has_cyc)) {
            now_.record(which, bytes.length);
        }
    }
    /// The same for all packets. It does not count the bytes of `bytes`.
    constexpr auto write_code(code const& bytes, detail::placed_as as, bool has_cyc) noexcept
        -> bool {
        using packet::cyc;
        broken_ = bytes.broken;
        if (broken_ != rule::none) { return false; }
        code time{};
        if (has_cyc) {
            time = packet::detail::encoding_of<Packets>(cyc::of(now_.cycles), now_.items);
            now_.cycles = 0;
        }
        if (how_.pads != pad_policy::none) [[unlikely]] {
            write_aligned(as, time, bytes);
        } else {
            put(time);
            put(bytes);
            now_.bytes += time.length;
        }
        return true;
    }
    /// Writes a packet after PADs. It does not count the bytes of `bytes`.
    constexpr void write_aligned(detail::placed_as as, code const& time,
                                 code const& bytes) noexcept {
        constexpr size_t most_pads = 14;  // to the end of a wide payload, and to the next header
        if (held_size_ + time.length + bytes.length + most_pads > room()) {
            broken_ = rule::PKT_347;
            return;
        }
        if (how_.pads == pad_policy::skylake) { return place(as, time, bytes); }
        bool const shares_word = as == detail::placed_as::mode || as == detail::placed_as::cbr;
        align(time.length + bytes.length, shares_word);
        put(time);
        put(bytes);
        now_.bytes += time.length;
        shares_word_ = shares_word;
    }
    /// Writes PADs up to the next multiple of 8: if `length` bytes would cross it, or always.
    constexpr void align(size_t length, bool shares_word) noexcept {
        uint64_t const at = now_.bytes % 8;
        bool const crosses = at + length > 8;
        if (at == 0 || (how_.pads == pad_policy::within_words && !crosses)) { return; }
        if (how_.pads == pad_policy::broadwell && shares_word && shares_word_ && !crosses) {
            return;
        }
        pad(8 - at);
    }
    /// Places a packet as `pad_policy::skylake` says, with the MODEs that were held for it. It does
    /// not count the bytes of `bytes`. Source: GEN-010.
    constexpr void place(detail::placed_as as, code time, code const& bytes) noexcept {
        using detail::placed_as;
        bool const is_status = as == placed_as::status;
        bool const is_ip = as == placed_as::ip;
        bool const has_ip = is_ip && bytes.length > 1;
        bool const is_wide_ip = is_ip && bytes.length >= 7;
        if (as == placed_as::mode) {
            hold(time);
            hold(bytes);
            now_.bytes += time.length;
            return;
        }
        if (has_ip) {  // with the MODEs before it, one group
            hold(time);
            now_.bytes += time.length;
            time = {};
        } else {
            release_held();
        }
        size_t const group = held_size_ + time.length;
        if (is_wide_ip || is_status) {
            align_head(group + (is_status ? 2 : 1));
        } else if (as == placed_as::psb) {
            align_head(0);
        } else if (as == placed_as::tnt || (is_ip && !has_ip)) {
            align_whole(time.length);
            put(time);
            now_.bytes += time.length;
            time = {};
            align_whole(bytes.length);
        } else if (as == placed_as::cyc && now_.cyc_crosses) {
            align_whole(0);
        } else {
            align_whole(group + bytes.length);
        }
        now_.cyc_crosses = false;
        put_held();
        put(time);
        put(bytes);
        now_.bytes += time.length;
        now_.ends_in_payload = is_wide_ip || is_status;
    }
    /// Writes PADs so that the next bytes, of which some are held, do not cross a multiple of 8.
    constexpr void align_whole(size_t length) noexcept { align_by({.whole = length}); }
    /// Writes PADs so that they end at a multiple of 8.
    constexpr void align_head(size_t length) noexcept { align_by({.head = length, .ends = true}); }
    constexpr void align_by(detail::alignment_of_next const& next) noexcept {
        pad(detail::pads_before(now_.bytes - held_size_, now_.ends_in_payload, next));
        now_.ends_in_payload = false;
    }
    /// Keeps bytes for the group that they begin. A group that is too long is no group.
    constexpr void hold(code const& bytes) noexcept {
        if (bytes.length > sizeof held_ - held_size_) { release_held(); }
        copy_bytes(held_ + held_size_, to_le(bytes.bytes).data(), bytes.length);
        held_size_ += bytes.length;
    }
    constexpr void put_held() noexcept {
        copy_bytes(bytes_.data() + size_, held_, held_size_);
        size_ += held_size_;
        held_size_ = 0;
    }
    /// Writes the MODEs that no IP follows, at a multiple of 8.
    constexpr void release_held() noexcept {
        if (held_size_ == 0) { return; }
        align_head(0);
        put_held();
    }
    /// Writes PADs, or breaks PKT-347 where the batch has no room for them.
    constexpr void pad(uint64_t count) noexcept {
        if (count > room()) {
            broken_ = rule::PKT_347;
            return;
        }
        size_ += static_cast<size_t>(count);  // the buffer is zero, and zeros are PADs
        now_.bytes += count;
    }
    /// Stores zeros after the packet, up to 16 bytes.
    constexpr void put(code const& bytes) noexcept {
        store_le64(bytes_.data() + size_, bytes.bytes.low);
        store_le64(bytes_.data() + size_ + 8, bytes.bytes.high);
        size_ += bytes.length;
    }
    [[nodiscard]] constexpr auto room() const noexcept -> size_t {
        return writer_state::max_bytes - size_;
    }

public:
    constexpr packet_batch(writer_state const& before, writer_options const& how) noexcept
        : now_{before}, how_{how} {}

    /// Ends the batch: nothing may be added after it. Call it before `bytes` and `state`.
    constexpr void finish() noexcept {
        if (how_.pads == pad_policy::skylake) [[unlikely]] { release_held(); }
    }
    [[nodiscard]] constexpr auto bytes() const noexcept -> byte_view {
        return byte_view{bytes_}.first(size_);
    }
    [[nodiscard]] constexpr auto state() const noexcept -> writer_state const& { return now_; }
    /// The rule that a packet broke, or `none`.
    [[nodiscard]] constexpr auto broken() const noexcept -> rule { return broken_; }

    /// Adds core clock cycles that pass between two packets.
    constexpr void advance(uint64_t cycles) noexcept { now_.cycles += cycles; }

    /// Writes the TNT buffer, then the TIPs that were deferred until after it.
    constexpr void flush() noexcept {
        if (now_.tnt.count == 0) { return; }
        // In an open block a decoder could take a short TNT for a BIP.
        bool const is_short = now_.tnt.count <= packet::tnt_short::max_branches &&
                              now_.items == packet::block::none;
        if (is_short) {
            write(packet::tnt_short::of(now_.tnt));
        } else {
            write(packet::tnt_long::of(now_.tnt));
        }
        now_.tnt = {};
        for (unsigned i = 0; i < now_.deferred_count; ++i) {
            uint64_t const ip = now_.deferred[i];
            write(packet::tip::of(now_.form_of(ip, how_.ips), ip));
        }
        now_.deferred_count = 0;
    }

    template <packet::packet_type Packet>
    constexpr void add(Packet const& which) noexcept {
        flush();
        write(which, Packet::about.cyc_eligible == packet::cyc_rule::yes && now_.cyc_is_due(how_));
    }
    constexpr void add(packet::any_packet const& which) noexcept {
        packet::visit<Packets>([this](auto const& one) { this->add(one); }, which);
    }
    /// A packet with an IP, in the form that the writer selects.
    template <class Packet>
    constexpr void add_ip(uint64_t ip) noexcept {
        flush();  // may change the last IP
        add(Packet::of(now_.form_of(ip, how_.ips, same_as<Packet, packet::fup>), ip));
    }
    /// Makes the next IP the first one of a context. Source: GEN-011.
    constexpr void begin_context() noexcept { now_.has_context_ip = false; }
    /// PADs up to a multiple of `alignment` bytes.
    constexpr void align_end(unsigned alignment) noexcept {
        release_held();
        now_.ends_in_payload = false;
        pad((alignment - now_.bytes % alignment) % alignment);
    }
    /// A CYC without a packet that it times.
    constexpr void add_cycles() noexcept {
        flush();
        write(packet::cyc::of(now_.cycles));
        now_.cycles = 0;
    }
    /// A branch, which enters the TNT buffer. The CYC of a TNT is written before its first branch.
    constexpr void branch(bool taken) noexcept {
        if (now_.tnt.count == 0 && now_.cyc_is_due(how_)) {
            write(packet::cyc::of(now_.cycles));
            now_.cycles = 0;
        }
        now_.add_branch(taken);
        if (now_.tnt.count >= how_.max_branches()) { flush(); }
    }
    /// A TIP, which is deferred until after the current TNT if the options allow it.
    constexpr void defer(uint64_t ip) noexcept {
        bool const waits = how_.defers_tips && now_.tnt.count != 0 && !now_.cyc_is_due(how_) &&
                           now_.deferred_count < writer_state::max_deferred;
        if (!waits) { return add_ip<packet::tip>(ip); }
        now_.deferred[now_.deferred_count] = ip;
        ++now_.deferred_count;
    }

    /// A PSB+.
    constexpr void add(psb_status const& status) noexcept {
        if (status.tma.has_value && !status.tsc.has_value) {
            broken_ = rule::PKT_135;
            return;
        }
        auto const add_if = [this](auto const& which) {
            if (which.has_value) { this->add(which.value); }
        };
        auto const add_times = [&] {
            auto const add_mtc_after = [&](unsigned count) {
                if (!status.mtc.has_value || status.mtc_after != count) { return; }
                advance(status.cycles_until_mtc);
                add_if(status.mtc);
            };
            add_mtc_after(0);
            advance(status.cycles_until_tsc);
            add_if(status.tsc);
            add_mtc_after(1);
            add_if(status.tma);
            add_mtc_after(2);
            add_if(status.cbr);
            add_mtc_after(3);
        };
        auto const add_context = [&] {
            bool const before = now_.has_context_ip;
            add_if(status.pip);
            add_if(status.vmcs);
            return before;
        };
        auto const add_exec = [&] { add_if(status.mode_exec); };
        auto const add_fup = [&] {
            if (status.fup.has_value) { add_ip<packet::fup>(status.fup.value); }
        };
        add(packet::psb{});
        if (how_.in_psb == psb_order::skylake) {
            add_if(status.mode_tsx);
            add_exec();
            add_fup();
            bool const had_ip = add_context();
            add_times();
            // The context of a PSB+ does not change the form of the next IP here. Source: GEN-011.
            if (how_.ips == ip_choice::icelake && !status.vmcs.has_value) {
                now_.has_context_ip = had_ip;
            }
        } else {
            add_times();
            (void)add_context();
            add_if(status.mode_tsx);
            if (how_.in_psb == psb_order::atom) { add_fup(); }
            add_exec();
            if (how_.in_psb != psb_order::atom) { add_fup(); }
        }
        add(packet::psbend{});
    }
};

}  // namespace ptspec::trace

// ---- ptspec/trace/write/direct.hpp ----

/// The two packets that branches generate, appended without a batch.
///
/// A batch copies the writer's state and the bytes: with it, a unit that traces branches executes
/// 1.9 times the instructions (g++ 12, clang 19).
namespace ptspec::trace {

namespace detail {

/// Appends the gathered branches and the packet after them, `count` bytes in all.
template <class Sink>
constexpr auto append_with_tnt(Sink& to, writer_state& now, wide_bits bytes,
                               unsigned count) noexcept -> bool {
    bool const has_room = [&] {
        if constexpr (wide_packet_sink<Sink>) {
            return to.append(bytes, size_t{count});
        } else {
            return to.append(byte_view{to_le(bytes)}.first(count));
        }
    }();
    if (has_room) {
        now.tnt = {};
        now.bytes += count;
    }
    return has_room;
}

/// Moves bytes by up to 16 places.
[[nodiscard]] constexpr auto moved(wide_bits bytes, unsigned places) noexcept -> wide_bits {
    unsigned const bits = 8 * (places % 8);
    wide_bits const some{bytes.low << bits,
                         bits == 0 ? bytes.high : bytes.high << bits | bytes.low >> (64 - bits)};
    return places < 8 ? some : wide_bits{0, some.low};
}

}  // namespace detail

/// Appends the gathered branches as a TNT.short, for options that are plain. False, and nothing is
/// written, if they do not fit into one, or the sink has no room.
template <packet_sink Sink>
[[nodiscard]] constexpr auto append_tnt(Sink& to, writer_state& now) noexcept -> bool {
    if (now.tnt.count > packet::tnt_short::max_branches) { return false; }
    return detail::append_with_tnt(to, now, {packet::tnt_short::of(now.tnt).raw, 0}, 1);
}

/// Appends the gathered branches, if any, as a TNT.short, and a TIP, for options that are plain.
/// False, and nothing is written, if the branches do not fit into one, or the sink has no room.
template <packet_sink Sink>
[[nodiscard]] constexpr auto append_tip(Sink& to, writer_state& now, ip_choice how,
                                        uint64_t ip) noexcept -> bool {
    if (now.tnt.count > packet::tnt_short::max_branches) { return false; }
    auto const which = packet::tip::of(now.form_of_any_kind(ip, how), ip);
    wide_bits bytes = which.raw;
    unsigned count = packet::tip::length_of(which.raw, packet::block::none);
    if (now.tnt.count != 0) {
        bytes = {bytes.low << 8 | packet::tnt_short::of(now.tnt).raw,
                 bytes.high << 8 | bytes.low >> 56};
        ++count;
    }
    if (!detail::append_with_tnt(to, now, bytes, count)) { return false; }
    now.last_ip = ip;
    now.has_last_ip = now.has_context_ip = true;
    return true;
}

/// As `append_tnt`, with the PADs of a kind of processor. False also for other PADs.
template <packet_sink Sink>
[[nodiscard]] constexpr auto append_aligned_tnt(Sink& to, writer_state& now,
                                                writer_options const& how) noexcept -> bool {
    if (now.tnt.count > packet::tnt_short::max_branches) { return false; }
    wide_bits const bytes{packet::tnt_short::of(now.tnt).raw, 0};
    if (how.pads == pad_policy::none) { return detail::append_with_tnt(to, now, bytes, 1); }
    if (how.pads != pad_policy::skylake) { return false; }
    unsigned const pads = detail::pads_before(now.bytes, now.ends_in_payload, {.whole = 1});
    if (!detail::append_with_tnt(to, now, detail::moved(bytes, pads), pads + 1)) { return false; }
    now.ends_in_payload = false;
    return true;
}

/// As `append_tip`, with the PADs and the forms of a kind of processor. False also for other PADs,
/// if a CYC may be due, or if more than 16 bytes are needed.
template <packet_sink Sink>
[[nodiscard, gnu::noinline]]  // inlined, branches take 5 % more instructions (clang 19)
constexpr auto
append_aligned_tip(Sink& to, writer_state& now, writer_options const& how, uint64_t ip) noexcept
    -> bool {
    bool const is_padded = how.pads == pad_policy::skylake;
    if (how.cyc || now.tnt.count > packet::tnt_short::max_branches) { return false; }
    if (how.pads != pad_policy::none && !is_padded) { return false; }
    auto const which = packet::tip::of(now.form_of(ip, how.ips), ip);
    unsigned const length = packet::tip::length_of(which.raw, packet::block::none);
    bool const is_wide = length >= 7;
    bool const has_tnt = now.tnt.count != 0;
    bool const after = now.ends_in_payload;
    unsigned first = 0;
    unsigned second = 0;
    if (is_padded) {
        first = has_tnt ? detail::pads_before(now.bytes, after, {.whole = 1}) : 0;
        second = detail::pads_before(now.bytes + (has_tnt ? first + 1 : 0), after && !has_tnt,
                                     {.whole = length, .head = 1, .ends = is_wide});
    }
    unsigned const before = has_tnt ? first + 1 : 0;
    if (before + second + length > 16) { return false; }
    uint64_t const tnt = has_tnt ? packet::tnt_short::of(now.tnt).raw : 0;
    wide_bits const one = detail::moved({tnt, 0}, first);
    wide_bits const two = detail::moved(which.raw, before + second);
    wide_bits const bytes{one.low | two.low, one.high | two.high};
    if (!detail::append_with_tnt(to, now, bytes, before + second + length)) { return false; }
    now.last_ip = ip;
    now.has_last_ip = now.has_context_ip = true;
    now.ends_in_payload = is_padded && is_wide;
    return true;
}

}  // namespace ptspec::trace

// ---- ptspec/trace/write/encode_table.hpp ----

/// A table that decides whether a packet image is valid and can be written unchanged.
namespace ptspec::trace::detail {

/// The fixed bits of valid packets, by kind and length. All other bits may have any value. One
/// array for each member: an index needs no multiplication.
struct encode_table {
    static constexpr size_t lengths = 20;  // above the length of every packet
    static constexpr size_t rows = packet::kinds * lengths;

    uint64_t fixed[rows];      ///< mask of the fixed bits in bits 63:0
    uint64_t value[rows];      ///< the value of these bits
    uint64_t zero_high[rows];  ///< mask of the bits in 127:64 that are 0
    uint64_t least[rows];      ///< the least value of bits 63:0
    /// The length in bytes; 0 in an unused row. A packet that claims more bytes than `lengths`
    /// selects a row of another kind, which has another length, or one after all rows.
    uint8_t length[rows + (256 - lengths)];

    [[nodiscard]] static constexpr auto row_of(packet::kind which, unsigned bytes) noexcept
        -> size_t {
        return underlying(which) % packet::kinds * lengths + bytes;
    }
    /// Adds a row: packets have `bytes` bytes when the bits of `selectors` equal those of `bits`.
    /// If the row of this length is in use, sets the spare row of the kind, at length 0, which no
    /// packet has.
    template <class Packet>
    constexpr void set(unsigned bytes, wide_bits selectors, wide_bits bits) noexcept {
        size_t row = row_of(Packet::about.id, bytes);
        if (length[row] != 0) { row -= bytes; }
        wide_bits const whole = first_bytes_mask(bytes);
        wide_bits const same = selectors | packet::detail::widen(Packet::reserved_mask()) |
                               packet::detail::bits_of_kind<wide_bits>(
                                   typename Packet::layout::rows{}, row_kind::fixed);
        fixed[row] = ~whole.low | same.low;
        value[row] = bits.low;
        zero_high[row] = ~whole.high | same.high;
        if constexpr (requires { Packet::least_raw; }) { least[row] = Packet::least_raw; }
        length[row] = static_cast<uint8_t>(bytes);
    }
    /// True when this row describes the packet.
    [[nodiscard, gnu::always_inline]]  // avoids a call per packet
    constexpr auto
    matches(size_t row, unsigned bytes, uint64_t low, uint64_t high) const noexcept -> bool {
        // Four branches that predict well cost less than combining the conditions into one.
        return bytes == length[row] && (low & fixed[row]) == value[row] &&
               (high & zero_high[row]) == 0 && low >= least[row];
    }
    /// True when the packet is valid and can be written unchanged.
    [[nodiscard, gnu::always_inline]]  // avoids a call per packet
    constexpr auto
    accepts(packet::kind which, unsigned bytes, uint64_t low, uint64_t high) const noexcept
        -> bool {
        size_t const row = row_of(which, bytes);
        if (matches(row, bytes, low, high)) [[likely]] { return true; }
        return matches(row - bytes, bytes, low, high) ||
               (row == row_of(packet::kind::psb, packet::psb::max_bytes) && bytes == length[row] &&
                wide_bits{low, high} == packet::psb{}.raw);
    }
};

/// Every payload is valid, or every payload from `least_raw` on.
template <class Packet>
concept has_simple_payload = requires {
    Packet::least_raw;
} || !requires(typename Packet::raw_type bits) { Packet::broken_payload(bits); };

template <class Packet>
constexpr void add_to_table(encode_table& all) noexcept {
    using payload = typename Packet::payload_type;
    wide_bits const opcode = packet::detail::widen(opcode_bits<Packet>);
    if constexpr (same_as<Packet, packet::cyc>) {
        wide_bits const exp_bits{1U << packet::cyc::Exp::lsb | packet::detail::cyc_exp_bits_low, 0};
        for (unsigned bytes = 1; bytes <= 8; ++bytes) {
            all.set<Packet>(bytes, exp_bits & first_bytes_mask(bytes),
                            packet::cyc::of(0, bytes).raw);
        }
    } else if constexpr (requires { payload::size(0); }) {
        using row = typename decltype(packet::detail::selector_in(
            typename Packet::layout::rows{}))::row;
        auto const selects = packet::detail::bit_mask<wide_bits>(row::msb, row::lsb);
        for (uint64_t i = 0; i <= low_bits(row::width); ++i) {
            unsigned const bytes = payload::size(i);
            if (bytes == packet::undefined_size) { continue; }
            all.set<Packet>(Packet::head_bytes + bytes, selects,
                            opcode | packet::detail::to_bit<wide_bits>(i, row::lsb));
        }
    } else if constexpr (requires { Packet::never_both; }) {
        constexpr uint64_t both = Packet::never_both;
        constexpr uint64_t second = both & (both - 1);
        all.set<Packet>(Packet::head_bytes, {second, 0}, opcode);
        all.set<Packet>(Packet::head_bytes, {both, 0}, opcode | wide_bits{second, 0});
    } else if constexpr (same_as<Packet, packet::psb>) {  // `accepts` compares its 16 bytes
        all.length[encode_table::row_of(packet::kind::psb, Packet::max_bytes)] = Packet::max_bytes;
    } else if constexpr (!opens_or_needs_a_block<Packet> && has_simple_payload<Packet>) {
        all.set<Packet>(Packet::head_bytes, {}, opcode);
    }
}

/// The table. It is a template: only programs that use it evaluate it.
template <class Packets>
struct encode_tables;
template <class... Packets>
struct encode_tables<type_list<Packets...>> {
    static constexpr encode_table table = [] {
        encode_table all{};
        for (auto& bits : all.value) { bits = 1; }  // no fixed bit is set yet: matches no packet
        (add_to_table<Packets>(all), ...);
        return all;
    }();
};

}  // namespace ptspec::trace::detail

// ---- ptspec/trace/write/writer.hpp ----

/// Writes a trace from branches, IPs, status and time.
namespace ptspec::trace {

/// How many packets were written, and the rule that the next one breaks; `none` if all were
/// written.
struct [[nodiscard]] put_result {
    size_t count = 0;
    rule broken = rule::none;
};

/// Writes packets as a processor does: it collects branches in TNTs, compresses IPs, and writes a
/// CYC before the packet that it times.
///
/// Each call writes all of its packets, or returns a rule and writes none. In that case the state
/// is unchanged, and the call can be repeated. A packet that `decode` would reject is not written.
///
/// Errors: those of `encode`; PKT-135 a TMA without TSC; PKT-347 the sink has no room.
/// Source: SDM vol. 3, "Trace Packets and Data Types"; PKT-030..064, PKT-134, PKT-135, PKT-275,
///         PKT-340..347, GEN-120..125, GEN-145..147, GEN-170..174, GEN-210..218, GEN-229.
template <packet_sink Sink, class Packets = packet::all>
class writer {
public:
    /// The writer borrows the sink, which must outlive it.
    constexpr explicit writer(Sink& to, writer_options how = {}) noexcept : to_{to}, how_{how} {}

    /// A conditional branch, or a compressed return, which counts as taken. The TNT is written when
    /// it is full, before the next packet, or by `flush`.
    [[nodiscard]] constexpr auto branch(bool taken) noexcept -> rule {
        bool const begins = now_.tnt.count == 0;
        if (now_.tnt.count + 1 < how_.max_branches() && !(begins && now_.cyc_is_due(how_))) {
            now_.add_branch(taken);
            needs_slow_path_ = true;
            return rule::none;
        }
        return write_batch([&](packet_batch<Packets>& all) { all.branch(taken); });
    }
    /// A TIP for the target of an indirect branch. It may be deferred.
    [[nodiscard]] constexpr auto indirect(uint64_t ip) noexcept -> rule {
        return write_batch([&](packet_batch<Packets>& all) { all.defer(ip); });
    }
    /// A packet with an IP, in the form that the options select. It is never deferred.
    template <class Packet>
        requires derived_from<Packet, packet::ip_packet<Packet>>
    [[nodiscard]] constexpr auto put_ip(uint64_t ip) noexcept -> rule {
        if (can_write_directly()) { return put(Packet::of(now_.form_of(ip, how_.ips), ip)); }
        return write_batch([&](packet_batch<Packets>& all) { all.template add_ip<Packet>(ip); });
    }
    /// A packet, unchanged.
    template <packet::packet_type Packet>
    [[nodiscard]] constexpr auto put(Packet const& which) noexcept -> rule {
        bool const eligible = Packet::about.cyc_eligible == packet::cyc_rule::yes;
        if (!can_write_directly() || (eligible && now_.cyc_is_due(how_))) {
            return write_batch([&](packet_batch<Packets>& all) { all.add(which); });
        }
        auto const code = packet::detail::encoding_of<Packets>(which, now_.items);
        if (code.broken != rule::none) { return code.broken; }
        if (!append(code.bytes, code.length)) { return rule::PKT_347; }
        now_.record(which, code.length);
        return finish_write();
    }
    [[nodiscard, gnu::always_inline]]  // avoids a call per packet
    constexpr auto
    put(packet::any_packet const& which) noexcept -> rule {
        packet::kind const kind = which.kind();
        unsigned const length = which.length();
        uint64_t const low = hide_from_optimizer(which.raw().low);
        uint64_t const high = hide_from_optimizer(which.raw().high);
        if (needs_slow_path_ || !table.accepts(kind, length, low, high)) {
            return slow_path(which);
        }
        if (!append({low, high}, length)) { return rule::PKT_347; }
        update_last_ip(kind, low, high);
        now_.bytes += length;
        return rule::none;
    }
    /// Packets, unchanged and in order, up to the first that breaks a rule.
    ///
    /// Has the effect of `put` for each packet, and is twice as fast.
    [[nodiscard]] constexpr auto put(packet::any_packet const* first, size_t count) noexcept
        -> put_result {
        for (size_t written = 0;;) {
            if (!needs_slow_path_) { written += put_by_table(first + written, count - written); }
            if (written == count) { return {written, rule::none}; }
            rule const broken = put(first[written]);
            if (broken != rule::none) { return {written, broken}; }
            ++written;
        }
    }
    /// A PSB+: PSB, the status packets in the order of `psb_status`, PSBEND.
    [[nodiscard]] constexpr auto put(psb_status const& status) noexcept -> rule {
        return write_batch([&](packet_batch<Packets>& all) { all.add(status); });
    }
    /// Writes the TNT buffer and the deferred TIPs.
    [[nodiscard]] constexpr auto flush() noexcept -> rule {
        return write_batch([](packet_batch<Packets>& all) { all.flush(); });
    }

    /// Adds core clock cycles.
    constexpr void advance(uint64_t cycles) noexcept { now_.cycles += cycles; }

    [[nodiscard]] constexpr auto state() const noexcept -> writer_state const& { return now_; }

private:
    static constexpr detail::encode_table const& table = detail::encode_tables<Packets>::table;

    /// True when no branch is pending in the TNT buffer and packets need no PADs.
    [[nodiscard]] constexpr auto can_write_directly() const noexcept -> bool {
        return now_.tnt.count == 0 && how_.pads == pad_policy::none;
    }
    /// Called after a write: updates whether the next packet can be written through the table.
    constexpr auto finish_write() noexcept -> rule {
        needs_slow_path_ = !can_write_directly() || how_.cyc || how_.ips > ip_choice::shortest ||
                           now_.items != packet::block::none;
        return rule::none;
    }
    [[nodiscard, gnu::always_inline]]  // avoids a call per packet
    constexpr auto
    append(wide_bits bytes, unsigned count) noexcept -> bool {
        if constexpr (requires { to_.append(bytes, size_t{count}); }) {
            return to_.append(bytes, size_t{count});
        } else {
            return to_.append(byte_view{to_le(bytes)}.first(count));
        }
    }
    /// Writes packets through the table, and returns how many: up to the first that the table does
    /// not accept, or for which there might be no room.
    ///
    /// No branch depends on the packet kind, which is unpredictable.
    [[gnu::noinline]]  // gives the loop all registers
    constexpr auto
    put_by_table(packet::any_packet const* first, size_t count) noexcept -> size_t {
        if constexpr (requires { to_.grow(to_.room()), to_.end(); }) {
            size_t const most = to_.room() / detail::lookahead_bytes;
            if (count > most) { count = most; }
            uint8_t* place = to_.end();
            size_t written = 0;
            for (; written < count; ++written) {
                packet::any_packet const& which = first[written];
                // Hidden, so that the halves are two scalar registers and not one vector.
                uint64_t const low = hide_from_optimizer(which.raw().low);
                uint64_t const high = hide_from_optimizer(which.raw().high);
                unsigned const length = which.length();
                if (!table.accepts(which.kind(), length, low, high)) { break; }
                store_le64(place, low);
                store_le64(place + 8, high);
                place += length;
            }
            update_last_ips(first, written);
            auto const bytes = static_cast<size_t>(place - to_.end());
            now_.bytes += bytes;
            to_.grow(bytes);
            return written;
        } else {
            return 0;
        }
    }
    /// Updates the last IP after packets written through the table, beginning with the last of them
    /// that does not depend on the IP before it.
    constexpr void update_last_ips(packet::any_packet const* first, size_t count) noexcept {
        auto const sets_whole_ip = [](packet::any_packet const& which) {
            return detail::ip_updates.kept[ip_form_of(which.kind(), which.raw().low)] == 0;
        };
        size_t at = count;
        while (at > 0 && !sets_whole_ip(first[at - 1])) { --at; }
        for (at = at > 0 ? at - 1 : 0; at < count; ++at) {
            update_last_ip(first[at].kind(), first[at].raw().low, first[at].raw().high);
        }
    }
    /// Updates the last IP after one packet, without a branch.
    constexpr void update_last_ip(packet::kind which, uint64_t low, uint64_t high) noexcept {
        unsigned const form = ip_form_of(which, low);
        // A load of one byte, as large as the store before it, so that the store forwards to it.
        unsigned const had = hide_from_optimizer(unsigned{now_.has_last_ip});
        unsigned const has = form - 1 < detail::clears_ip - 1U ? 1 : 0;
        unsigned const keeps = which == packet::kind::psb || which == packet::kind::ovf ? 0 : 1;
        now_.has_last_ip = (has | (had & keeps)) != 0;
        now_.last_ip = detail::updated_ip(detail::ip_update_of(form), low >> 8 | high << 56,
                                          now_.last_ip);
    }
    /// The IP form of a packet, as in `opcode_info`.
    [[nodiscard]] static constexpr auto ip_form_of(packet::kind which, uint64_t low) noexcept
        -> unsigned {
        return which == packet::kind::psb ? detail::clears_ip
                                          : detail::opcode_infos<Packets>.form[low & 0xFF];
    }
    [[gnu::noinline]]  // keeps the slow path out of the caller's registers
    constexpr auto
    slow_path(packet::any_packet const& which) noexcept -> rule {
        return packet::visit<Packets>([this](auto const& one) { return this->put(one); }, which);
    }
    /// Writes the packets that `add` adds to a batch.
    template <class Add>
    [[gnu::noinline]]  // keeps the slow path out of the caller's registers
    constexpr auto
    write_batch(Add const& add) noexcept -> rule {
        packet_batch<Packets> all{now_, how_};
        add(all);
        all.finish();
        if (all.broken() != rule::none) { return all.broken(); }
        if (!all.bytes().empty() && !to_.append(all.bytes())) { return rule::PKT_347; }
        now_ = all.state();
        return finish_write();
    }

    Sink& to_;
    writer_options how_;
    writer_state now_{};
    bool needs_slow_path_ = true;  // the table cannot be used for the next packet
};

}  // namespace ptspec::trace

// ---- ptspec/trace/write/synthetic_psb.hpp ----

/// A PSB+ to put before a trace that begins without one.
namespace ptspec::trace {

/// The bytes of `synthetic_psb`.
struct synthetic_prefix {
    /// The longest: PSB+ with every packet, and three packets that set LastIP.
    static constexpr size_t capacity = 96;

    rule broken = rule::none;  ///< PKT-135: TMA without TSC; nothing is written
    byte_array<capacity> bytes{};
    size_t size = 0;

    [[nodiscard]] constexpr auto view() const noexcept -> byte_view { return {bytes.data(), size}; }
    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

/// The state of the traced processor where a trace begins.
struct prefix_state {
    psb_status status{};  ///< `fup` if PacketEn is 1 there: it also is LastIP
    /// LastIP, if PacketEn is 0 there. The processor keeps it while TraceEn is 0, so the IP of the
    /// first TIP.PGE may be compressed against it. Source: GEN-107.
    psb_status::optional<uint64_t> last_ip{};
};

/// A PSB+ with the state of the processor, to put before a trace that begins without one: the trace
/// of a restored context, whose PacketByteCnt was not 0, or a trace that was cut.
///
/// With `last_ip`, the empty trace TIP.PGE, FUP, TIP.PGD at this IP follows. It sets LastIP of a
/// decoder, and has no instruction.
///
/// Source: SDM vol. 3, "Packet Stream Boundary (PSB) Packet"; PKT-060, PKT-134, GEN-107, GEN-170,
///         PRG-031, PRG-102.
template <class Packets = packet::all>  // a plain function doubles the cost of including trace.hpp
[[nodiscard]] constexpr auto synthetic_psb(prefix_state const& from) noexcept -> synthetic_prefix {
    synthetic_prefix made;
    byte_buffer out{made.bytes.bytes};
    writer<byte_buffer, Packets> to{out};
    made.broken = to.put(from.status);
    if (made && from.last_ip.has_value && !from.status.fup.has_value) {
        using packet::ip_bytes;
        uint64_t const ip = from.last_ip.value;
        made.broken = to.put(packet::tip_pge::of(ip_bytes::full, ip));
        if (made) { made.broken = to.put(packet::fup::of(ip_bytes::full, ip)); }
        if (made) { made.broken = to.put(packet::tip_pgd{}); }
    }
    made.size = made ? out.size() : 0;
    return made;
}

namespace detail {

/// Finds the first packet with an IP. Source: PKT-053..056.
struct first_ip_form {
    bool is_relative = false;

    constexpr auto operator()(packet::psb const&, at) noexcept -> bool { return false; }
    template <class Packet>
        requires derived_from<Packet, packet::ip_packet<Packet>>
    constexpr auto operator()(Packet const& which, at) noexcept -> bool {
        auto const form = which.template get<typename Packet::IPBytes>();
        is_relative = form == packet::ip_bytes::update_16 || form == packet::ip_bytes::update_32 ||
                      form == packet::ip_bytes::update_48;
        return form == packet::ip_bytes::suppressed;
    }
};

}  // namespace detail

/// True if the first packet with an IP is compressed against LastIP, before any PSB: `last_ip` or
/// `fup` is then needed.
///
/// Source: PKT-051, PKT-060.
template <class Found = detail::first_ip_form>  // as above
[[nodiscard]] constexpr auto needs_last_ip(borrowed_bytes trace) noexcept -> bool {
    reader from{trace, {.sync = false}};
    Found found;
    (void)from.for_each(found);
    return found.is_relative;
}

}  // namespace ptspec::trace

// ---- ptspec/engine/output/options.hpp ----

namespace ptspec::engine {

/// What happens when output reaches restricted memory.
///
/// Source: OUT-111.
enum class restricted_access : uint8_t {
    drop,   ///< bytes are lost; output continues after the restricted memory
    error,  ///< an operational error when the output pointer reaches it
};

/// Output behavior that the manual leaves to the processor or the platform.
struct output_options {
    topa::restricted_memory restricted{};
    restricted_access when_restricted = restricted_access::drop;
    /// For tables of a single region: the distance of the interrupt from the end of the region, in
    /// bytes. At least one byte is stored before it. Source: OUT-101, OUT-104 (UNCONFIRMED figure).
    uint32_t pmi_lead_bytes = 512;
};

}  // namespace ptspec::engine

// ---- ptspec/engine/output/result.hpp ----

namespace ptspec::engine {

/// The result of writing bytes.
struct [[nodiscard]] write_result {
    size_t taken = 0;  ///< number of bytes consumed, from the front; see `fault` for the rest
    uint64_t stored = 0;
    uint64_t lost = 0;
    uint64_t pmis = 0;   ///< interrupts that were raised
    uint64_t first = 0;  ///< address of the first byte that has one, dropped bytes included
    uint64_t last = 0;
    bool has_address = false;
    port_fault fault{};  ///< at address 0 when a fabric has no room

    constexpr explicit operator bool() const noexcept { return !fault; }

    /// Counts bytes that were consumed and stored, at least one, from address `from` to `to`.
    constexpr void count_stored(uint64_t from, uint64_t to, uint64_t count) noexcept {
        first = has_address ? first : from;
        last = to;
        has_address = true;
        stored += count;
        taken += static_cast<size_t>(count);
    }
    /// Counts contiguous bytes that were consumed and stored, at least one.
    constexpr void count_stored(uint64_t from, uint64_t count) noexcept {
        count_stored(from, from + count - 1, count);
    }
    /// Adds the result of the next write. The fault is that of the next write.
    constexpr auto operator+=(write_result const& next) noexcept -> write_result& {
        taken += next.taken;
        stored += next.stored;
        lost += next.lost;
        pmis += next.pmis;
        if (next.has_address) {
            first = has_address ? first : next.first;
            last = next.last;
            has_address = true;
        }
        fault = next.fault;
        return *this;
    }
    friend constexpr auto operator==(write_result const&, write_result const&) -> bool = default;
};

/// Byte and interrupt counts since the construction of a trace unit.
struct totals {
    uint64_t stored = 0;
    uint64_t lost = 0;
    uint64_t pmis = 0;  ///< interrupts that were raised

    /// Adds the result of the next write.
    constexpr auto operator+=(write_result const& next) noexcept -> totals& {
        stored += next.stored;
        lost += next.lost;
        pmis += next.pmis;
        return *this;
    }
    friend constexpr auto operator==(totals const&, totals const&) -> bool = default;
};

}  // namespace ptspec::engine

// ---- ptspec/engine/output/state.hpp ----

namespace ptspec::engine::detail {

enum class output_phase : uint8_t {
    off,       ///< every byte is lost: TraceEn is 0, or an error or STOP ended output
    at_entry,  ///< the entry at the position must be loaded before the next byte
    running,
};

/// The rest of a region, or of a part of it, that takes bytes without a decision. The end is stored
/// instead of the start: storing bytes changes only `room`.
struct output_window {
    uint64_t room = 0;              ///< bytes left; 0: no window
    uint8_t* mapped_end = nullptr;  ///< its end in the address space of this program; null: bytes
                                    ///< go through the port, to a fabric, or are dropped
    uint64_t end = 0;               ///< the physical address after its last byte
    topa::entry region{};
    uint8_t const* next_entry = nullptr;  ///< the entry after `region`, see `output_state`

    /// Where the next byte is stored in the address space of this program.
    [[nodiscard]] constexpr auto mapped() const noexcept -> uint8_t* {
        return mapped_end - static_cast<size_t>(room);
    }
    /// The physical address of the next byte.
    [[nodiscard]] constexpr auto address() const noexcept -> uint64_t { return end - room; }
};

inline constexpr uint64_t no_pmi_offset = ~uint64_t{0};

/// The state of output between two bytes: the position and what follows it.
///
/// Entries after the current one that can be read directly are `[window.next_entry, entries_end)`.
/// Filling regions changes only `window`; `update_position` makes up for it, once for all regions
/// filled.
///
/// Source: OUT-005, OUT-006, OUT-021, OUT-028, OUT-050, OUT-051, OUT-056..058, OUT-080.
struct output_state {
    output_window window{};
    uint8_t const* position_next = nullptr;  ///< `window.next_entry` when `position` was updated
    uint8_t const* first_entry = nullptr;    ///< entry 0 of the table, if it can be read directly
    uint8_t const* entries_end = nullptr;
    topa::position position{};  ///< its offset is valid only without a window
    uint64_t region_base = 0;
    uint64_t region_size = 0;
    uint64_t fixed_bits = 0;  ///< entry bits that `try_next_region` requires to equal those of
                              ///< the current entry
    uint64_t pmi_offset = no_pmi_offset;  ///< the offset of an interrupt before the region's end
    topa::limits limits{};
    output_options options{};
    cpu::output_scheme scheme = cpu::output_scheme::single_range;
    output_phase phase = output_phase::off;
    bool needs_checks = false;  ///< interrupts may be early, or memory may be restricted
    bool can_fill = false;      ///< the end of the window only leads to the next entry
    bool drops = false;         ///< the window is in restricted memory
    bool sets_pend_topa_pmi = false;
    rule ended_by = rule::none;
};

// ----------------------------------------------------------------------------- the position

/// The index of the current entry.
[[nodiscard]] constexpr auto current_index(output_state const& s) noexcept -> uint32_t {
    auto const entry_bytes = static_cast<long long>(sizeof(topa::entry));
    return s.position.index +
           static_cast<uint32_t>((s.window.next_entry - s.position_next) / entry_bytes);
}
[[nodiscard]] constexpr auto current_region_base(output_state const& s) noexcept -> uint64_t {
    return s.scheme == cpu::output_scheme::topa ? s.window.region.get<topa::entry::Base>()
                                                : s.region_base;
}
[[nodiscard]] constexpr auto current_offset(output_state const& s) noexcept -> uint32_t {
    return s.window.room == 0 ? s.position.offset
                              : static_cast<uint32_t>(s.window.address() - current_region_base(s));
}
constexpr void update_position(output_state& s) noexcept {
    s.position.index = current_index(s);
    s.region_base = current_region_base(s);
    s.position_next = s.window.next_entry;
}

/// Writes the position to the output MSRs.
constexpr void sync_output_msrs(output_state const& s, access::msr_state& now) noexcept {
    if (s.phase == output_phase::off || s.scheme == cpu::output_scheme::fabric) { return; }
    if (s.scheme == cpu::output_scheme::single_range) {
        now.output_mask_ptrs = now.output_mask_ptrs.with(
            access::ia32_rtit_output_mask_ptrs::OutputOffset{wrapped{current_offset(s)}});
        return;
    }
    now.output_base = topa::base_of(s.position);
    now.output_mask_ptrs = topa::mask_ptrs_of(
        {s.position.table, current_index(s), current_offset(s)});
}

// ----------------------------------------------------------------------------- the entries

/// True if storing `bytes` at `place` does not change the entry at `which`.
[[nodiscard]] inline auto is_disjoint(uint8_t const* which, uint8_t const* place,
                                      uint64_t bytes) noexcept -> bool {
    uint64_t const last = sizeof(topa::entry) - 1;
    // 64-bit arithmetic on 32-bit targets too: `bytes` may exceed 32 bits.
    uint64_t const distance = uint64_t{reinterpret_cast<uintptr_t>(which)} -
                              uint64_t{reinterpret_cast<uintptr_t>(place)};
    return distance + last >= bytes + last;
}

constexpr void forget_entries(output_state& s) noexcept {
    s.window.next_entry = s.position_next = s.first_entry = s.entries_end = nullptr;
}
/// `current` points to the current entry, and `count` entries after it can be read directly.
constexpr void set_entries(output_state& s, uint8_t const* current, uint64_t count) noexcept {
    s.first_entry = s.position.index == 0 ? current : nullptr;
    s.window.next_entry = current + sizeof(topa::entry);
    s.position_next = s.window.next_entry;
    s.entries_end = s.window.next_entry + count * sizeof(topa::entry);
}

// ----------------------------------------------------------------------------- the end of output

constexpr void stop_output(output_state& s, access::msr_state& now) noexcept {
    sync_output_msrs(s, now);
    s.phase = output_phase::off;
    s.window.mapped_end = nullptr;
    s.can_fill = false;
}
/// Ends output by a rule. TriggerEn becomes 0 at once.
constexpr void end_output(output_state& s, access::msr_state& now, rule why) noexcept {
    s.ended_by = why;
    stop_output(s, now);
    now.status = now.status.with(access::ia32_rtit_status::TriggerEn{false});
}
/// Ends output by an operational error.
constexpr void fail_output(output_state& s, access::msr_state& now, rule why) noexcept {
    end_output(s, now, why);
    now.status = now.status.with(access::ia32_rtit_status::Error{true});
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/output/regions.hpp ----

/// The way of output from region to region.
///
/// Source: OUT-020..024, OUT-050..058, OUT-060..071, OUT-091, OUT-100..104, OUT-110, OUT-111.
namespace ptspec::engine::detail {

/// Opens the window at an offset inside the region.
template <memory_port Memory>
constexpr void open_window(output_state& s, access::msr_state& now, Memory& memory,
                           uint64_t from) noexcept {
    using topa::entry;
    uint64_t const address = s.region_base + from;
    uint64_t left = s.region_size - from;
    if (s.needs_checks) {
        auto const here = s.options.restricted.run_from(address);
        if (here.restricted && s.options.when_restricted == restricted_access::error) {
            s.position.offset = static_cast<uint32_t>(from);
            return fail_output(s, now, rule::OUT_111);
        }
        if (from < s.pmi_offset && s.pmi_offset < s.region_size) { left = s.pmi_offset - from; }
        if (here.last - address < left) { left = here.last - address + 1; }
        s.drops = here.restricted;
    }
    s.window.mapped_end = nullptr;
    if constexpr (mapped_memory_port<Memory>) {
        if (!s.drops) {
            byte_window const here = memory.window(address);
            if (here.first != nullptr) {
                if (here.size < left) { left = here.size; }
                s.window.mapped_end = here.first + left;
            }
        }
    }
    s.window.end = address + left;
    s.window.room = left;
    constexpr uint64_t marks = entry{}.with(entry::INT{true}, entry::STOP{true}).raw;
    s.can_fill = !__builtin_is_constant_evaluated() && s.window.mapped_end != nullptr &&
                 !s.needs_checks && from + left == s.region_size &&
                 (s.window.region.raw & marks) == 0;
}

template <memory_port Memory>
constexpr void begin_single_range(output_state& s, access::msr_state& now,
                                  Memory& memory) noexcept {
    rule const broken = single_range::broken_rule(now.output_base, now.output_mask_ptrs);
    if (broken != rule::none) { return fail_output(s, now, broken); }
    s.region_base = now.output_base.raw;
    s.region_size = single_range::mask_of(now.output_mask_ptrs) + 1;
    open_window(s, now, memory, s.position.offset);
}

template <memory_port Memory>
constexpr void begin_region(output_state& s, access::msr_state& now, Memory& memory,
                            topa::entry which) noexcept {
    s.window.region = which;
    s.region_base = which.get<topa::entry::Base>();
    s.region_size = topa::bytes_in(which.get<topa::entry::Size>());
    s.fixed_bits = ~(low_bits(s.limits.width.bits) & ~(s.region_size - 1));
    bool const early = which.get<topa::entry::INT>() && !s.limits.many_entries;
    uint64_t const lead = s.options.pmi_lead_bytes < s.region_size ? s.options.pmi_lead_bytes
                                                                   : s.region_size - 1;
    s.pmi_offset = early ? s.region_size - lead : no_pmi_offset;
    s.phase = output_phase::running;
    open_window(s, now, memory, s.position.offset);
}

/// Finds the entries after the current one that can be read directly: mapped, in the same table,
/// below 2^MAXPHYADDR. `needs_checks` excludes restricted memory.
template <memory_port Memory>
constexpr void find_entries(output_state& s, Memory& memory) noexcept {
    if constexpr (mapped_memory_port<Memory>) {
        uint64_t const here = topa::table_pointer(s.position);
        byte_window const table = memory.window(here);
        uint64_t bytes = table.size;
        auto const until = [&](uint64_t last) {
            if (last - here < bytes) { bytes = last - here + 1; }
        };
        until(topa::table_pointer({s.position.table, topa::last_index, 0}) | 7);
        until(low_bits(s.limits.width.bits));
        if (bytes < sizeof(topa::entry)) { return; }
        set_entries(s, table.first, bytes / sizeof(topa::entry) - 1);
    }
}

/// Loads the entry at the position through the port, follows END, and begins the region.
template <memory_port Memory>
constexpr auto load_region(output_state& s, access::msr_state& now, Memory& memory) noexcept
    -> port_fault {
    forget_entries(s);
    auto const loaded = topa::enter(memory, s.position, s.limits, s.options.restricted);
    s.position = loaded.where;
    if (loaded.fault) { return loaded.fault; }
    if (!loaded) {
        fail_output(s, now, loaded.broken);
        return {};
    }
    find_entries(s, memory);
    begin_region(s, now, memory, loaded.current);
    return {};
}

/// The same after a region: the entry may be one that can be read directly.
template <memory_port Memory>
constexpr auto load_next_region(output_state& s, access::msr_state& now, Memory& memory) noexcept
    -> port_fault {
    if (s.needs_checks || s.window.next_entry == s.entries_end) {
        return load_region(s, now, memory);
    }
    topa::entry const next{load_le64(s.window.next_entry)};
    rule const broken = topa::broken_rule(next, {s.position.table, s.position.index}, s.limits);
    if (broken != rule::none) {
        fail_output(s, now, broken);
        return {};
    }
    if (next.get<topa::entry::END>()) {
        s.position = topa::follow_end(next);
        return load_region(s, now, memory);
    }
    s.window.next_entry += sizeof(topa::entry);
    s.position_next = s.window.next_entry;
    begin_region(s, now, memory, next);
    return {};
}

/// The first entry of the table if `end` links to the same table and the entry can be read directly
/// after `room` bytes are stored at `place`; else null. The parts of the window are parameters so
/// that the caller keeps it in registers.
[[gnu::noinline]]  // keeps this rare case out of `try_next_region`
inline auto
entry_after_link(output_state const& s, uint64_t end, uint8_t const* place, uint64_t room) noexcept
    -> uint8_t const* {
    bool const to_same_table = end == topa::link_to(s.position.table).raw;
    bool const is_readable = s.first_entry != nullptr && is_disjoint(s.first_entry, place, room);
    return to_same_table && is_readable ? s.first_entry : nullptr;
}

/// Moves from a window that is about to be filled to the region of the next entry, which may be the
/// first of the same table. False, and no change, if that entry needs more: if it differs from the
/// current one, which is valid and has neither INT nor STOP, in more than the region's address.
template <memory_port Memory>
[[gnu::always_inline]]  // a filled region costs no call
constexpr auto
try_next_region(output_state& s, Memory& memory, output_window const& full) noexcept -> bool {
    using topa::entry;
    if constexpr (mapped_memory_port<Memory>) {
        auto const differs = [&](entry next) {
            return ((next.raw ^ full.region.raw) & s.fixed_bits) != 0;
        };
        uint8_t const* at = full.next_entry;
        if (at == s.entries_end || !is_disjoint(at, full.mapped(), full.room)) { return false; }
        entry next{load_le64(at)};
        if (differs(next)) [[unlikely]] {
            at = entry_after_link(s, next.raw, full.mapped(), full.room);
            if (at == nullptr) { return false; }
            next = entry{load_le64(at)};
            if (differs(next)) { return false; }
        }
        uint64_t const base = next.get<entry::Base>();
        byte_window const here = memory.window(base);
        if (here.size < s.region_size) { return false; }
        s.window = {s.region_size, here.first + s.region_size, base + s.region_size, next,
                    at + sizeof(entry)};
        return true;
    }
    return false;
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/output/output.hpp ----

/// Where every byte of trace is stored, and what ends output.
namespace ptspec::engine {

/// The output of a logical processor: single range, ToPA or fabric. A value. The MSRs, which it
/// changes as the processor does, and the memory port are passed with each operation.
///
/// Nothing is buffered: with the byte that fills a region, the next entry is loaded, and status
/// bits and interrupts are up to date. The two output MSRs are updated by `sync`, by `stop`, and
/// when output ends.
///
/// The memory port may also be a `fabric_port`, which then receives the bytes of a fabric, and a
/// `pmi_port`, which then receives every interrupt when it occurs.
///
/// A failing port loses and repeats nothing. `write` returns how many bytes it consumed; the next
/// `write`, with the rest, or `resume` retries what failed.
///
/// Shape:  writing n bytes at once is equivalent to writing them one by one.
/// Errors: an operational error sets STATUS.Error, and `why` returns its rule: OUT-022..024,
///         OUT-060..068, OUT-071, OUT-091, OUT-111. ToPA STOP sets STATUS.Stopped: OUT-080.
/// Source: SDM vol. 3, "Trace Output"; OUT-001, OUT-002, OUT-005..008, OUT-020..030, OUT-050..058,
///         OUT-060..071, OUT-080..088, OUT-091, OUT-100..104, OUT-110..117, OUT-120, OUT-121,
///         OUT-131, OUT-133, OUT-151..153, PRG-080..090, PRG-095, PRG-096, PRG-180.
class output {
public:
    constexpr output() noexcept = default;
    /// Output that was ended by a rule.
    constexpr explicit output(rule why) noexcept { s_.ended_by = why; }

    /// TraceEn became 1; `now` contains it. If TriggerEn is 0, nothing is checked, and all bytes
    /// are lost.
    template <memory_port Memory>
    constexpr auto start(cpu::capabilities const& of, access::msr_state& now, Memory& memory,
                         output_options const& how = {}) noexcept -> port_fault {
        using ctl = access::ia32_rtit_ctl;
        s_ = {};
        s_.options = how;
        s_.limits = topa::limits::of(of);
        s_.needs_checks = !s_.limits.many_entries || !how.restricted.is_empty();
        s_.sets_pend_topa_pmi = of.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::INJECTPSBPMI>() &&
                                now.ctl.get<ctl::InjectPsbPmiOnEnable>();
        if (!now.status.get<access::ia32_rtit_status::TriggerEn>()) { return {}; }
        s_.scheme = now.ctl.get<ctl::FabricEn>() ? cpu::output_scheme::fabric
                    : now.ctl.get<ctl::ToPA>()   ? cpu::output_scheme::topa
                                                 : cpu::output_scheme::single_range;
        s_.position = topa::position_in(now.output_base, now.output_mask_ptrs);
        bool const is_topa = s_.scheme == cpu::output_scheme::topa;
        s_.phase = is_topa ? phase::at_entry : phase::running;
        if (is_topa) { return detail::load_region(s_, now, memory); }
        if (s_.scheme == cpu::output_scheme::single_range) {
            detail::begin_single_range(s_, now, memory);
        }
        return {};
    }

    /// Writes a few bytes that fill nothing, to mapped memory. False, and no change: `write` must
    /// write them.
    [[nodiscard]] constexpr auto put_few(byte_view bytes) noexcept -> bool {
        if (bytes.size() >= s_.window.room || !are_few_and_mapped(bytes.size())) { return false; }
        put_mapped(bytes);
        return true;
    }
    /// Writes bytes of trace.
    template <memory_port Memory>
    [[gnu::always_inline]]  // the caller pays only for the parts of the result that it uses
    constexpr auto
    write(access::msr_state& now, Memory& memory, byte_view bytes) noexcept -> write_result {
        size_t const count = bytes.size();
        write_result result;
        if (count < s_.window.room) {
            if (!are_few_and_mapped(count)) [[unlikely]] { return write_slow(now, memory, bytes); }
            result.count_stored(s_.window.address(), count);
            put_mapped(bytes);
            return result;
        }
        if (s_.can_fill && count - s_.window.room < s_.region_size) {
            detail::output_window const full = s_.window;
            // Before the copy, which the processor overlaps with finding the next region.
            if (detail::try_next_region(s_, memory, full)) {
                auto const front = static_cast<size_t>(full.room);
                copy_bytes(full.mapped(), bytes.data(), front);
                if (count != front) { put_mapped(bytes.from(front)); }
                uint64_t const end = count == front ? full.end : s_.window.address();
                result.count_stored(full.end - front, end - 1, count);
                return result;
            }
        }
        return write_slow(now, memory, bytes);
    }

    /// Retries what a port failed to do; no effect if nothing failed.
    template <memory_port Memory>
    constexpr auto resume(access::msr_state& now, Memory& memory) noexcept -> port_fault {
        return s_.phase == phase::at_entry ? detail::load_region(s_, now, memory) : port_fault{};
    }

    /// Writes the position to the two output MSRs.
    constexpr void sync(access::msr_state& now) const noexcept {
        detail::sync_output_msrs(s_, now);
    }
    /// TraceEn became 0. All bytes consumed are in memory, and the MSRs are exact.
    constexpr void stop(access::msr_state& now) noexcept { detail::stop_output(s_, now); }

    /// The rule that ended output since `start`; none if it has not ended.
    [[nodiscard]] constexpr auto why() const noexcept -> rule { return s_.ended_by; }

private:
    using phase = detail::output_phase;

    detail::output_state s_{};

    /// True if `put_mapped` can store `count` bytes, for which there is room.
    [[nodiscard]] constexpr auto are_few_and_mapped(size_t count) const noexcept -> bool {
        // Hidden: two predictable branches instead of one computed condition.
        return hide_from_optimizer(s_.window.mapped_end) != nullptr && count - 1 < few_bytes;
    }
    /// Stores fewer bytes than there is room for.
    constexpr void put_mapped(byte_view bytes) noexcept {
        uint8_t* const to = s_.window.mapped();
        // `room` before the bytes, which may alias it: no reload after them.
        s_.window.room -= bytes.size();
        copy_few_bytes(to, bytes.data(), bytes.size());
    }

    /// `write_rest`, whose result is copied: it stays in registers on paths that do not call it.
    template <memory_port Memory>
    [[gnu::always_inline]]  // else it is copied twice
    constexpr auto
    write_slow(access::msr_state& now, Memory& memory, byte_view bytes) noexcept -> write_result {
        write_result const result = write_rest(now, memory, bytes);
        return write_result{result};
    }
    /// Writes bytes from window to window.
    template <memory_port Memory>
    [[gnu::noinline]]  // keeps this out of `write`
    constexpr auto
    write_rest(access::msr_state& now, Memory& memory, byte_view bytes) noexcept -> write_result {
        write_result result;
        while (result.taken < bytes.size() && !result.fault) {
            byte_view const rest = bytes.from(result.taken);
            if (rest.size() < s_.window.room && s_.window.mapped_end != nullptr) {
                result.count_stored(s_.window.address(), rest.size());
                put_mapped(rest);
            } else if (!fill_regions(memory, rest, result)) {
                write_window(now, memory, rest, result);
            }
        }
        return result;
    }

    /// Fills as many regions as possible. False if it cannot fill the first.
    template <memory_port Memory>
    [[gnu::noinline]]  // gives the loop all registers
    constexpr auto
    fill_regions(Memory& memory, byte_view bytes, write_result& result) noexcept -> bool {
        if (!s_.can_fill) { return false; }
        uint64_t const first = s_.window.address();
        uint64_t end = first;
        uint8_t const* from = bytes.data();
        size_t left = bytes.size();
        while (left >= s_.window.room) {
            detail::output_window const full = s_.window;
            if (!detail::try_next_region(s_, memory, full)) { break; }
            auto const room = static_cast<size_t>(full.room);
            left -= room;
            end = full.end;
            copy_bytes(full.mapped(), from, room);
            from += room;
        }
        if (left == bytes.size()) { return false; }
        result.count_stored(first, end - 1, bytes.size() - left);
        return true;
    }

    /// Writes bytes, at least one, up to the end of the window, or loads the entry for it.
    template <memory_port Memory>
    [[gnu::noinline]]  // keeps this out of the path of bytes that are only copied
    constexpr void
    write_window(access::msr_state& now, Memory& memory, byte_view bytes,
                 write_result& result) noexcept {
        detail::update_position(s_);
        if (s_.phase == phase::at_entry) {
            result.fault = detail::load_region(s_, now, memory);
        } else if (s_.phase == phase::off) {
            result.lost += bytes.size();
            result.taken += bytes.size();
        } else if (s_.scheme == cpu::output_scheme::fabric) {
            send(memory, bytes, result);
        } else {
            size_t const most = bytes.size() < s_.window.room ? bytes.size()
                                                              : static_cast<size_t>(s_.window.room);
            store(memory, bytes.first(most), result);
            if (s_.window.room == 0) { end_window(now, memory, result); }
        }
    }

    /// Stores bytes in the window, or drops them.
    template <memory_port Memory>
    constexpr void store(Memory& memory, byte_view bytes, write_result& result) noexcept {
        uint64_t const address = s_.window.address();
        size_t count = bytes.size();
        if (s_.window.mapped_end != nullptr) {
            copy_bytes(s_.window.mapped(), bytes.data(), count);
        } else if (!s_.drops) {
            count = memory.store(address, bytes);
            if (count < bytes.size()) { result.fault = {true, address + count}; }
        }
        if (count != 0) { result.count_stored(address, count); }
        if (s_.drops) {
            result.stored -= count;
            result.lost += count;
        }
        s_.window.room -= count;
    }

    template <memory_port Memory>
    constexpr void send(Memory& memory, byte_view bytes, write_result& result) noexcept {
        size_t const sent = [&] {
            if constexpr (fabric_port<Memory>) { return memory.send(bytes); }
            return bytes.size();
        }();
        result.fault = {sent < bytes.size(), 0};
        result.stored += sent;
        result.taken += sent;
    }

    /// The window is full: raises the interrupt, stops, or opens the next window.
    template <memory_port Memory>
    constexpr void end_window(access::msr_state& now, Memory& memory,
                              write_result& result) noexcept {
        using topa::entry;
        uint64_t const offset = s_.window.end - s_.region_base;
        s_.position.offset = static_cast<uint32_t>(offset);
        bool const interrupts = s_.limits.many_entries
                                    ? s_.window.region.get<entry::INT>() && offset == s_.region_size
                                    : offset == s_.pmi_offset;
        if (offset < s_.region_size) {
            if (interrupts) { raise_pmi(now, memory, result); }
            return detail::open_window(s_, now, memory, offset);
        }
        if (s_.scheme == cpu::output_scheme::single_range) {
            return detail::open_window(s_, now, memory, 0);
        }
        if (s_.window.region.get<entry::STOP>()) {
            detail::end_output(s_, now, rule::OUT_080);
            now.status = now.status.with(access::ia32_rtit_status::Stopped{true});
        }
        if (interrupts) { raise_pmi(now, memory, result); }
        if (s_.phase == phase::off) { return; }
        s_.position = topa::next_entry(s_.position);
        s_.phase = phase::at_entry;
        result.fault = detail::load_next_region(s_, now, memory);
    }

    template <memory_port Memory>
    constexpr void raise_pmi(access::msr_state& now, Memory& memory,
                             write_result& result) const noexcept {
        ++result.pmis;
        now.perf_global_status = now.perf_global_status.with(
            reg::ia32_perf_global_status::Trace_ToPA_PMI{true});
        if (s_.sets_pend_topa_pmi) {
            now.status = now.status.with(access::ia32_rtit_status::PendToPAPMI{true});
        }
        if constexpr (pmi_port<Memory>) { memory.raise(); }
    }
};

}  // namespace ptspec::engine

// ---- ptspec/engine/output/sink.hpp ----

namespace ptspec::engine {

/// Output as the sink of a `trace::writer`. Bytes that a failing port did not accept are kept and
/// written before all later bytes.
///
/// Errors: `append` returns false, and accepts nothing, while the port fails, and for more than
///         `max_bytes` at once. `fault` returns the reason.
/// Source: OUT-001, PKT-347, PRG-180.
template <memory_port Memory>
class output_sink {
public:
    /// The most bytes that a writer appends at once.
    static constexpr size_t max_bytes = trace::writer_state::max_bytes;

    /// All parameters are borrowed and must outlive the sink.
    constexpr output_sink(output& to, access::msr_state& now, Memory& memory) noexcept
        : to_{to}, now_{now}, memory_{memory} {}

    [[nodiscard]] constexpr auto append(byte_view bytes) noexcept -> bool {
        if (bytes.size() > max_bytes || resume()) { return false; }
        keep(bytes.from(write(bytes)));
        return true;
    }
    /// Retries what a port failed to do.
    constexpr auto resume() noexcept -> port_fault {
        if (!fault()) { return {}; }
        if (count_ == 0) {  // all bytes are stored, and loading the next entry failed
            last_ = {.fault = to_.resume(now_, memory_)};
        } else {
            auto const all = byte_view{kept_}.first(count_);
            keep(all.from(write(all)));
        }
        return fault();
    }
    /// The fault that `resume` retries, if there is one.
    [[nodiscard]] constexpr auto fault() const noexcept -> port_fault { return last_.fault; }
    /// The number of bytes kept.
    [[nodiscard]] constexpr auto kept() const noexcept -> size_t { return count_; }
    /// The result of the last write, by `append` or `resume`.
    [[nodiscard]] constexpr auto last() const noexcept -> write_result const& { return last_; }

private:
    constexpr auto write(byte_view bytes) noexcept -> size_t {
        last_ = to_.write(now_, memory_, bytes);
        return last_.taken;
    }
    /// Keeps bytes, which may be a part of the bytes already kept.
    constexpr void keep(byte_view bytes) noexcept {
        for (size_t i = 0; i < bytes.size(); ++i) { kept_.bytes[i] = bytes[i]; }
        count_ = bytes.size();
    }

    output& to_;
    access::msr_state& now_;
    Memory& memory_;
    byte_array<max_bytes> kept_{};
    size_t count_ = 0;
    write_result last_{};
};

}  // namespace ptspec::engine

// ---- ptspec/engine/output/explain.hpp ----

/// Why STATUS.Error or STATUS.Stopped is set, from the MSRs and tables after tracing ended.
namespace ptspec::engine {

/// Why output ended, and where. `describe(why)` is the rule as a sentence.
struct explanation {
    rule why = rule::none;  ///< none: nothing ended output, or the entry could not be read
    bool has_place = false;
    topa::place at{};     ///< of the ToPA entry, if the reason is one
    topa::entry entry{};  ///< the entry, if it was read
    text field{};         ///< the invalid field of the entry or of the MSR
    port_fault fault{};   ///< the memory port failed: the reason is unknown

    constexpr explicit operator bool() const noexcept { return why != rule::none; }
};

namespace detail {

template <class Field>
constexpr auto name() noexcept -> text {
    return name_of<Field>();
}

/// The field that must change to remove an operational error.
constexpr auto field_at_fault(rule why, topa::entry current) noexcept -> text {
    using topa::entry;
    using pointers = reg::ia32_rtit_output_mask_ptrs;
    switch (why) {
        case rule::OUT_022:
        case rule::OUT_071: return name<pointers::MaskOrTableOffset>();
        case rule::OUT_024:
        case rule::OUT_064: return name<pointers::OutputOffset>();
        case rule::OUT_023:
        case rule::OUT_061:
        case rule::OUT_091: return name<reg::ia32_rtit_output_base::BasePhysAddr>();
        case rule::OUT_060: return "reserved";
        case rule::OUT_062:
        case rule::OUT_063:
        case rule::OUT_068:
        case rule::OUT_111: return name<entry::Base>();
        case rule::OUT_065:
            return current.get<entry::INT>() ? name<entry::INT>() : name<entry::STOP>();
        case rule::OUT_066:
        case rule::OUT_067: return name<entry::END>();
        case rule::OUT_080: return name<entry::STOP>();
        default: return {};
    }
}

constexpr auto at_entry(rule why, topa::position where, topa::entry current) noexcept
    -> explanation {
    return {why, true, {where.table, where.index}, current, field_at_fault(why, current), {}};
}
constexpr auto in_registers(rule why, text field = {}) noexcept -> explanation {
    return {.why = why, .field = field};
}

constexpr auto stores_into_restricted(output_options const& how, uint64_t address) noexcept
    -> bool {
    return how.when_restricted == restricted_access::error &&
           how.restricted.run_from(address).restricted;
}

constexpr auto error_of_single_range(access::msr_state const& now,
                                     output_options const& how) noexcept -> explanation {
    rule const broken = single_range::broken_rule(now.output_base, now.output_mask_ptrs);
    if (broken != rule::none) { return in_registers(broken, field_at_fault(broken, {})); }
    auto const next = single_range::trace_store_phys_addr(now.output_base, now.output_mask_ptrs);
    if (stores_into_restricted(how, next)) {
        return in_registers(rule::OUT_111, name<reg::ia32_rtit_output_base::BasePhysAddr>());
    }
    return in_registers(rule::REG_053);
}

template <memory_port Memory>
constexpr auto error_of_topa(cpu::capabilities const& of, access::msr_state const& now,
                             Memory& memory, output_options const& how) noexcept -> explanation {
    auto const where = topa::position_in(now.output_base, now.output_mask_ptrs);
    auto const loaded = topa::enter(memory, where, topa::limits::of(of), how.restricted);
    if (loaded.fault) { return {.fault = loaded.fault}; }
    if (!loaded) { return at_entry(loaded.broken, loaded.where, loaded.current); }
    if (stores_into_restricted(how, topa::trace_store_phys_addr(loaded.where, loaded.current))) {
        return at_entry(rule::OUT_111, loaded.where, loaded.current);
    }
    return in_registers(rule::REG_053);
}

/// After STOP the offset is the region's size; in newer editions of the manual, that of its last
/// byte.
template <memory_port Memory>
constexpr auto stopped(access::msr_state const& now, Memory& memory) noexcept -> explanation {
    bool const topa = now.ctl.get<reg::ia32_rtit_ctl::ToPA>() &&
                      !now.ctl.get<reg::ia32_rtit_ctl::FabricEn>();
    if (topa) {
        auto const where = topa::position_in(now.output_base, now.output_mask_ptrs);
        auto const word = memory.load(topa::table_pointer(where));
        if (!word) { return {.fault = {true, topa::table_pointer(where)}}; }
        topa::entry const current{word.value};
        bool const stops = current.get<topa::entry::STOP>() && !current.get<topa::entry::END>();
        if (stops && topa::bytes_left(where, current) <= 1) {
            return at_entry(rule::OUT_080, where, current);
        }
    }
    return in_registers(access::has_trace_stop(now) ? rule::REG_068 : rule::REG_053);
}

}  // namespace detail

/// Why STATUS.Error or, if it is 0, STATUS.Stopped is set: derived from the registers as tracing
/// left them, the tables in memory and `how`. Tables that changed since may hide the reason.
///
/// The rule is that of an operational error; OUT-080 for a region with STOP; REG-068 for a
/// TraceStop range; REG-053 if nothing is wrong, when software set the bit or repaired the cause.
///
/// Errors: `fault` if the memory port fails.
/// Source: SDM vol. 3, "Operational Errors"; OUT-022..024, OUT-060..068, OUT-071, OUT-080, OUT-091,
///         OUT-111, OUT-134, PRG-086, PRG-088.
template <memory_port Memory>
[[nodiscard]] constexpr auto explain(cpu::capabilities const& of, access::msr_state const& now,
                                     Memory& memory, output_options const& how = {}) noexcept
    -> explanation {
    using status = reg::ia32_rtit_status;
    if (!now.status.get<status::Error>()) {
        return now.status.get<status::Stopped>() ? detail::stopped(now, memory) : explanation{};
    }
    if (now.ctl.get<reg::ia32_rtit_ctl::FabricEn>()) { return detail::in_registers(rule::REG_053); }
    return now.ctl.get<reg::ia32_rtit_ctl::ToPA>() ? detail::error_of_topa(of, now, memory, how)
                                                   : detail::error_of_single_range(now, how);
}

}  // namespace ptspec::engine

// ---- ptspec/engine/event/execution_context.hpp ----

namespace ptspec::engine {

/// The code size, by CS.L, CS.D and IA32_EFER.LMA.
///
/// Source: GEN-235.
enum class code_width : uint8_t { bits_16, bits_32, bits_64 };

/// Source: GEN-285, GEN-286.
enum class enclave : uint8_t {
    none,
    debug,       ///< traced as any code
    production,  ///< not traced
};

/// The context in which a logical processor executes, without the IP: all state that its trace
/// depends on.
struct execution_context {
    uint64_t cr3 = 0;
    uint64_t cs_base = 0;  ///< added to IPs if packets have linear addresses; 0 in 64-bit code
    uint8_t cpl = 0;       ///< ignored in real mode and virtual-8086 mode
    code_width width = code_width::bits_64;
    bool real_mode = false;
    bool virtual_8086 = false;
    bool pae = false;  ///< PAE paging: CR4.PAE is 1, IA32_EFER.LMA is 0
    bool IF = false;   ///< RFLAGS.IF
    engine::enclave inside = enclave::none;
    bool vmx_non_root = false;

    /// The CPL that filtering uses: 0 in real mode, 3 in virtual-8086 mode.
    ///
    /// Source: SDM vol. 3, "Filtering by Current Privilege Level (CPL)"; GEN-051.
    [[nodiscard]] constexpr auto counted_cpl() const noexcept -> unsigned {
        return real_mode ? 0 : virtual_8086 ? 3 : cpl;
    }
    friend constexpr auto operator==(execution_context const&, execution_context const&)
        -> bool = default;
};

/// An IP in the form that packets and address ranges use: LIP or RIP.
///
/// Source: SDM vol. 3, "Linear IP vs. RIP"; GEN-091, REG-079.
[[nodiscard]] constexpr auto ip_in_packets(cpu::ip_payload form, execution_context const& code,
                                           uint64_t ip) noexcept -> uint64_t {
    if (form == cpu::ip_payload::effective || code.width == code_width::bits_64) { return ip; }
    return (code.cs_base + ip) & low_bits(32);
}

/// The inputs of ContextEn and FilterEn while `code` executes at `ip`. `ip` is in packet form.
[[nodiscard]] constexpr auto context_of(execution_context const& code, uint64_t ip) noexcept
    -> access::context {
    return {code.counted_cpl(), code.cr3, code.pae, code.inside == enclave::production, ip};
}

}  // namespace ptspec::engine

// ---- ptspec/engine/event/branch.hpp ----

/// Events: the actions of a logical processor that its trace depends on.
///
/// IPs are offsets from the CS base, as software sees them. `at` is the address of the instruction,
/// the manual's CLIP; `next` the address after it, NLIP; `to` the target, BLIP. `after` is the
/// context after the event.
namespace ptspec::engine::event {

/// Jcc, JCXZ, JECXZ, JRCXZ, LOOP, LOOPE, LOOPNE. Source: GEN-110, GEN-121.
struct conditional {
    uint64_t to = 0;  ///< the target if taken, else the next instruction
    bool taken = false;
};
/// JMP E9 and EB. Source: GEN-110, GEN-112.
struct direct_jump {
    uint64_t to = 0;
};
/// CALL E8. Source: GEN-110, GEN-112, GEN-132.
struct direct_call {
    uint64_t next = 0;
    uint64_t to = 0;
};
/// JMP FF /4, and JMPABS. Source: GEN-110.
struct indirect_jump {
    uint64_t to = 0;
};
/// CALL FF /2. Source: GEN-110, GEN-132.
struct indirect_call {
    uint64_t next = 0;
    uint64_t to = 0;
};
/// RET C3 and C2. Source: GEN-110, GEN-130..139.
struct near_return {
    uint64_t to = 0;
};
/// The processor loses all entries of its return stack, without a packet: the next RETs to them are
/// not compressed. Recorded traces show this at moments that nothing explains.
/// Source: GEN-130.
struct return_stack_lost {};
/// Instructions without packets executed up to `next`. Source: GEN-083, GEN-084.
struct sequential {
    uint64_t next = 0;
};

}  // namespace ptspec::engine::event

// ---- ptspec/engine/event/transfer.hpp ----

/// Far transfers, interrupts, exceptions, INIT and SIPI, enclave transitions.
namespace ptspec::engine::event {

/// The transfers without a FUP that Event Trace distinguishes. Source: GEN-301.
enum class far_kind : uint8_t {
    plain,
    iret,
    uiret,
    syscall,  ///< SYSCALL and SYSENTER
};

/// Far JMP, CALL and RET, SYSCALL, SYSRET, SYSENTER, SYSEXIT, IRET, UIRET.
///
/// Source: GEN-110, GEN-114, GEN-136.
struct far_transfer {
    uint64_t at = 0;
    uint64_t to = 0;
    execution_context after{};
    far_kind kind = far_kind::plain;
};

/// The cycles of a long transfer, such as a task switch, whose packets are generated at different
/// times.
///
/// Units:  core clock cycles. Source: GEN-215.
struct cycles_within {
    uint64_t until_pip = 0;
    uint64_t until_target = 0;  ///< after the PIP
    /// The counter of the crystal clock at the target, and the time-stamp counter: MTCs fall due
    /// after the PIP. 0: no time passes. Source: GEN-006, GEN-203.
    uint64_t art = 0;
    uint64_t tsc = 0;
};

/// INT n, INT3, INT1, INTO. Source: GEN-110, GEN-111, GEN-113.
struct software_interrupt {
    uint64_t at = 0;
    uint64_t to = 0;
    execution_context after{};
    uint8_t vector = 0;
    cycles_within takes{};
};
/// An external interrupt, an NMI, a trap, or a machine check delivered as a trap.
/// Source: GEN-110, GEN-113.
struct interrupt {
    uint64_t next = 0;
    uint64_t to = 0;
    execution_context after{};
    uint8_t vector = 0;
    cycles_within takes{};
};
/// A fault, or a machine check delivered as a fault. Source: GEN-110, GEN-113, GEN-289, GEN-302.
struct exception {
    static constexpr uint8_t page_fault = 0x0E;

    uint64_t at = 0;
    uint64_t to = 0;
    execution_context after{};
    uint8_t vector = 0;
    uint64_t cr2 = 0;  ///< of a page fault
    cycles_within takes{};
};
/// The delivery of a user interrupt. Source: GEN-301, GEN-303.
struct user_interrupt {
    uint64_t next = 0;
    uint64_t to = 0;
    uint8_t vector = 0;  ///< the user vector
};
/// A visit to a kernel that is not traced: a system call, an interrupt, a fault or a signal, as an
/// emulator of user mode sees it. Traced as with IA32_RTIT_CTL.OS = 0, whatever OS is. The code
/// that continues has the context of the code that was left.
///
/// Source: GEN-020, GEN-051, GEN-110, GEN-113.
struct kernel_visit {
    enum class reason : uint8_t {
        system_call,  ///< SYSCALL, SYSENTER; without a FUP
        interrupt,    ///< `at` is the next instruction
        exception,    ///< a fault, or INT n, INT3, INTO: `at` is the instruction
    };
    uint64_t at = 0;
    uint64_t to = 0;  ///< the next instruction of the user code
    reason why = reason::system_call;
    uint8_t vector = 0;   ///< of an interrupt or exception
    uint64_t cr2 = 0;     ///< of a page fault
    bool returns = true;  ///< false: the code ended, as by the system call exit; `to` is ignored
};
/// INIT. The bootstrap processor continues at `to`, the others wait for a SIPI.
///
/// Source: GEN-113, GEN-290.
struct init {
    uint64_t next = 0;
    uint64_t to = 0;
    execution_context after{};
    bool waits_for_sipi = false;
};
/// Source: GEN-290.
struct sipi {
    uint64_t to = 0;
    execution_context after{};
    uint8_t vector = 0;
};

/// EENTER, ERESUME, EEXIT, EEE, AEX. `after.inside` is the kind of enclave that executes next.
///
/// Source: GEN-113, GEN-285, GEN-286.
struct enclave_transfer {
    uint64_t from = 0;  ///< the instruction; for an AEX that is a trap the one after it
    uint64_t to = 0;    ///< for an AEX the AEP
    execution_context after{};
};

}  // namespace ptspec::engine::event

// ---- ptspec/engine/event/transaction.hpp ----

/// Transactions of TSX.
namespace ptspec::engine::event {

/// XBEGIN, or an XACQUIRE that starts a transaction. Source: GEN-250, GEN-253.
struct transaction_begin {
    uint64_t at = 0;
    uint64_t next = 0;
};
/// XEND or XRELEASE. Source: GEN-251, GEN-253.
struct transaction_end {
    uint64_t at = 0;
    uint64_t next = 0;
};
/// Source: GEN-252.
struct transaction_abort {
    uint64_t at = 0;
    uint64_t to = 0;  ///< the fallback address, or the XACQUIRE
};

}  // namespace ptspec::engine::event

// ---- ptspec/engine/event/register_write.hpp ----

/// Writes of registers that are not MSRs. `trace_unit::wrmsr` writes MSRs.
namespace ptspec::engine::event {

/// MOV to CR3 that causes no VM exit. Source: GEN-087, GEN-240..243.
struct mov_cr3 {
    /// An operand bit that is not written to CR3. If CR4.PCIDE is 1, it keeps cached translations.
    static constexpr uint64_t keeps_translations = uint64_t{1} << 63;

    uint64_t at = 0;
    uint64_t next = 0;
    uint64_t cr3 = 0;  ///< the operand
};
/// STI, CLI, POPF. Source: GEN-305.
struct interrupt_flag {
    uint64_t next = 0;
    bool IF = false;
};

}  // namespace ptspec::engine::event

// ---- ptspec/engine/event/vmx_smm.hpp ----

/// VMX transitions and instructions, system management mode, measured launch.
namespace ptspec::engine::event {

/// A value that a VM transition loads into IA32_RTIT_CTL: by an MSR list, or by the controls that
/// load or clear it.
///
/// Source: GEN-273, GEN-274, REG-125..127.
struct ctl_load {
    bool has_value = false;
    access::ia32_rtit_ctl value{};
};

/// Source: GEN-271, GEN-273, GEN-274, GEN-301, GEN-302.
struct vm_exit {
    uint64_t from = 0;  ///< the guest RIP that the VMCS saves
    uint64_t to = 0;
    execution_context after{};
    ctl_load loads{};
    uint64_t qualification = 0;
    uint64_t reason = 0;
    bool is_vectored = false;  ///< caused by an event that has a vector
    uint8_t vector = 0;
    bool to_stm = false;  ///< an SMM VM exit; `vmcs` is then that of the SMM-transfer monitor
    uint64_t vmcs = 0;
};
/// Source: GEN-272..274, GEN-301.
struct vm_entry {
    uint64_t at = 0;
    uint64_t to = 0;
    execution_context after{};
    ctl_load loads{};
    bool from_stm = false;  ///< a return from SMM; `vmcs` is then the current VMCS
    uint64_t vmcs = 0;
};
/// A VM entry that failed: execution continues after the instruction, or with the host's state.
///
/// Source: GEN-276.
struct vm_entry_failure {
    uint64_t to = 0;
    execution_context after{};
    bool loaded_host_state = false;
};
/// VMPTRLD that succeeded. Source: GEN-244.
struct vmptrld {
    uint64_t next = 0;
    uint64_t vmcs = 0;
};
/// VMCLEAR of the current VMCS. Source: GEN-244.
struct vmclear {
    uint64_t next = 0;
};
struct vmxon {
    uint64_t at = 0;
    uint64_t next = 0;
};
struct vmxoff {
    uint64_t next = 0;
};

/// Source: GEN-113, GEN-260.
struct smi {
    uint64_t next = 0;  ///< the saved IP
    uint64_t to = 0;
    execution_context after{};
};
/// Source: GEN-261, GEN-262.
struct rsm {
    uint64_t to = 0;
    execution_context after{};
};
/// GETSEC[SENTER] and GETSEC[ENTERACCS], or SENTER on another logical processor. Source: GEN-287.
struct measured_launch {};
/// An authenticated code module is set up. Source: GEN-288.
struct acm_begin {};
struct acm_end {
    uint64_t next = 0;
};

}  // namespace ptspec::engine::event

// ---- ptspec/engine/event/value.hpp ----

/// Values that software or PEBS puts into the trace.
namespace ptspec::engine::event {

/// PTWRITE whose operand is readable. Source: GEN-300.
struct ptwrite {
    uint64_t at = 0;
    uint64_t next = 0;
    uint64_t value = 0;
    bool is_64_bit = false;
};

/// An item of a PEBS record. Source: GEN-320.
struct pebs_item {
    uint8_t id = 0;
    uint64_t value = 0;
};
struct pebs_group {
    uint8_t type = 0;
    bool items_of_4 = false;
    pebs_item const* items = nullptr;
    size_t count = 0;
};
/// A PEBS record that is output to the trace. Source: GEN-320..322.
struct pebs_record {
    uint64_t ip = 0;
    pebs_group const* groups = nullptr;
    size_t count = 0;
};

}  // namespace ptspec::engine::event

// ---- ptspec/engine/event/time.hpp ----

/// Time passes.
namespace ptspec::engine::event {

/// Time passes.
///
/// Units:  core clock cycles; ticks of the crystal clock; ticks of the time-stamp counter as RDTSC
///         returns them.
/// Source: GEN-200..204, GEN-210.
struct time {
    uint64_t cycles = 0;  ///< since the last event
    uint64_t art = 0;     ///< the new value of the crystal clock's counter
    uint64_t tsc = 0;     ///< the new value of the time-stamp counter
};
/// Core clock cycles pass. Source: GEN-210.
struct cycles {
    uint64_t passed = 0;
};
/// The next CYC with a TNT is not aligned, on a kind of processor that aligns most.
/// Source: GEN-010.
struct unaligned_cyc {};
/// The place of an MTC that falls due while TSC, TMA and CBR are generated: in a PSB+, or after the
/// clocks were off. Source: GEN-171, GEN-172, GEN-205, GEN-218.
enum class mtc_place : uint8_t {
    none,
    before_tsc,  ///< of the current count: TSC and TMA report the time after it
    after_tsc,   ///< of the next count, here and below
    after_tma,
    after_cbr,
    before_older_tsc,  ///< TSC and TMA report the time before it
};
/// The ratio of the core clock to the bus clock changes. Source: GEN-202.
struct ratio {
    uint8_t core_to_bus = 0;  ///< 0: the processor's default ratio
};
/// A CYC without a packet, generated before the cycle counter wraps. Source: GEN-217.
struct cycle_guard {};

}  // namespace ptspec::engine::event

// ---- ptspec/engine/event/power.hpp ----

/// C-states and clock stops.
namespace ptspec::engine::event {

/// A C-state as packets encode it. Source: GEN-310.
struct c_state {
    uint8_t state = 0;
    uint8_t substate = 0;
};

/// MWAIT, or an I/O instruction that acts as one. C-state 0 means that none is entered.
/// Source: GEN-310, GEN-312.
struct mwait {
    uint64_t at = 0;
    uint64_t next = 0;
    uint8_t hints = 0;
    uint8_t ext = 0;
    c_state thread{};         ///< the resolved thread C-state
    bool is_io = false;       ///< an I/O instruction: no MWAIT packet
    bool is_pending = false;  ///< an event is already pending: GEN-314
};
/// HLT, shutdown, a VMX abort, INIT, and other entries into C1. Source: GEN-311.
struct halt {
    uint64_t from = 0;  ///< the instruction; for INIT the one after it
    uint64_t next = 0;
    bool is_shutdown = false;
};
/// Why a C-state ends. Source: GEN-313.
enum class wake_reason : uint8_t { other = 0, interrupt = 1, store = 4, hardware = 8 };
/// A C-state ends. The event that ended it follows. Source: GEN-200, GEN-205, GEN-313, GEN-318.
struct wake {
    uint8_t last = 0;     ///< core C-state
    uint8_t deepest = 0;  ///< core C-state
    wake_reason reason = wake_reason::other;
    mtc_place mtc = mtc_place::none;
};
/// Hardware duty cycling begins; `wake` ends it. Source: GEN-315.
struct duty_cycle {
    uint64_t next = 0;
    uint8_t state = 6;
};
/// The clock stops while code executes: a new P-state, thermal throttling, STPCLK. Source: GEN-316.
struct clock_stop {
    uint64_t next = 0;
    uint8_t aligned_to = 0;  ///< PADs up to a multiple of so many bytes; 0: none. Source: GEN-010
};
/// The clock resumes. Source: GEN-202, GEN-205, GEN-316.
struct clock_resume {
    mtc_place mtc = mtc_place::none;
};

}  // namespace ptspec::engine::event

// ---- ptspec/engine/event/psb_overflow.hpp ----

/// PSB+ and overflow on request, independent of the byte count and the buffer.
namespace ptspec::engine::event {

/// A PSB+ is due. Source: GEN-164.
struct psb_due {
    mtc_place mtc = mtc_place::none;
    uint64_t cycles_until_tsc = 0;  ///< while the PSB+ is generated
    uint64_t cycles_until_mtc = 0;  ///< after TSC

    friend constexpr auto operator==(psb_due const&, psb_due const&) -> bool = default;
};
/// An overflow begins: packets are lost from now on. Source: GEN-225.
struct overflow {};
/// The overflow ends: packets are generated again. Source: GEN-227.
struct overflow_end {
    uint64_t next = 0;
};

}  // namespace ptspec::engine::event

// ---- ptspec/engine/model_options.hpp ----

namespace ptspec::engine {

/// The effect on the return stack of a near RET whose target differs from the top entry. The RET is
/// not compressed in any case. Decoders keep a return stack, too, and differ in this case.
///
/// Source: GEN-133, GEN-134.
enum class ret_mismatch : uint8_t {
    pop,    ///< every RET pops, as in the manual; libipt misreads some later RETs
    keep,   ///< only compressed RETs pop, as in libipt; perf misreads some later RETs
    clear,  ///< no later RET is compressed against an older CALL: both decode correctly
};

/// The packets for a branch into a TraceStop range during an overflow. Tracing stops at once.
///
/// Source: GEN-230.
enum class stop_in_overflow : uint8_t {
    after_ovf,       ///< OVF and TraceStop at the end of the overflow
    without_packet,  ///< none
};

/// Whether a PSB+ is generated with an OVF.
///
/// Source: GEN-228.
enum class psb_after_ovf : uint8_t {
    where_needed,  ///< if a MODE or PIP was lost and no later packet reports its state
    always,
    never,
};

/// The choices that the manual leaves to the processor, and other differences between processors.
///
/// Source: GEN-005, and the rules beside each.
struct model_options {
    trace::ip_choice ips = trace::ip_choice::as_processors;  ///< GEN-011, GEN-229
    uint8_t tnt_capacity = 6;  ///< branches in a TNT, 6 to 47: GEN-120
    bool defers_tips = false;  ///< TIPs are deferred until after the current TNT: GEN-145
    trace::pad_policy pads = trace::pad_policy::none;    ///< GEN-008, GEN-010
    trace::psb_order in_psb = trace::psb_order::manual;  ///< GEN-171
    /// When TraceEn falls, PADs follow up to a multiple of this many bytes; 0: none. GEN-010.
    uint8_t end_alignment = 0;

    bool has_tsx = false;              ///< a PSB+ has a MODE.TSX: GEN-170
    bool vmcs_needs_context = true;    ///< a PSB+ has a VMCS only if ContextEn is 1: GEN-170
    bool vmcs_before_pip = false;      ///< before a TIP, VMCS precedes PIP: GEN-245
    bool psb_after_pge = false;        ///< when tracing is enabled, TIP.PGE comes first: GEN-180
    bool psb_on_every_enable = false;  ///< a PSB+ also if PacketByteCnt is not 0: GEN-162
    bool psb_before_pge = false;       ///< a PSB+ before every TIP.PGE: GEN-162
    /// A PSB+ of an enable with PacketEn = 1 has MODE.Exec and FUP, and TIP.PGE has no MODE.Exec
    /// before it: GEN-176, GEN-180.
    bool psb_of_enable_has_fup = false;
    bool psb_keeps_remainder = false;  ///< bytes beyond the period count to the next: GEN-012
    uint16_t psb_step = 1;  ///< the count is compared at multiples of so many bytes: GEN-012
    bool psb_counts_itself = true;  ///< a PSB+'s bytes count towards the next: GEN-165
    bool pip_for_same_cr3 = true;   ///< a PIP also if MOV CR3 does not change CR3: GEN-240
    /// TraceStop ranges are compared with the address after MOV CR3, not with its own: GEN-087.
    bool mov_cr3_stops_at_next = false;
    bool swintr_events = false;  ///< CFE has types for software interrupts and SYSCALL: GEN-301
    ret_mismatch on_ret_mismatch = ret_mismatch::pop;  ///< GEN-134
    psb_after_ovf psb_after_overflow = psb_after_ovf::where_needed;
    /// If PacketEn is 1: OVF, PSB+, FUP instead of OVF, FUP, PSB+. libipt rejects this: GEN-228.
    bool psb_before_ovf_fup = false;
    stop_in_overflow trace_stop_in_overflow = stop_in_overflow::after_ovf;

    /// The width of the cycle counter in bits, 1 to 64. A CYC is generated before it wraps:
    /// GEN-210, GEN-217.
    uint8_t cycle_counter_bits = 32;
    /// The maximum number of bytes of the internal buffer that are stored after each operation.
    size_t drained_at_once = ~size_t{0};
    /// An overflow ends when the internal buffer has at most this many bytes: GEN-225, GEN-227.
    size_t overflow_ends_at = 0;

    /// While TraceEn is 1, RDMSR of OUTPUT_BASE, OUTPUT_MASK_PTRS, and PacketByteCnt and PendPSB of
    /// STATUS returns their values of the moment when TraceEn rose, the oldest that a processor may
    /// return: REG-011, PRG-034, PRG-103.
    bool msrs_lag = false;

    access::policy policy{};
    output_options output{};
};

/// Calls `visit(name, member, least, most)` for every member of `model_options` that is a number, a
/// flag or an enumerator, in declaration order. Its valid values are `least` to `most`.
template <class Options, class Visit>
constexpr void for_each_option(Options& how, Visit&& visit) noexcept {
    visit("ips", how.ips, uint64_t{0}, uint64_t{underlying(trace::ip_choice::icelake)});
    visit("tnt_capacity", how.tnt_capacity, uint64_t{6}, uint64_t{47});
    visit("defers_tips", how.defers_tips, uint64_t{0}, uint64_t{1});
    visit("pads", how.pads, uint64_t{0}, uint64_t{underlying(trace::pad_policy::skylake)});
    visit("in_psb", how.in_psb, uint64_t{0}, uint64_t{underlying(trace::psb_order::atom)});
    visit("end_alignment", how.end_alignment, uint64_t{0}, uint64_t{255});
    visit("has_tsx", how.has_tsx, uint64_t{0}, uint64_t{1});
    visit("vmcs_needs_context", how.vmcs_needs_context, uint64_t{0}, uint64_t{1});
    visit("vmcs_before_pip", how.vmcs_before_pip, uint64_t{0}, uint64_t{1});
    visit("psb_after_pge", how.psb_after_pge, uint64_t{0}, uint64_t{1});
    visit("psb_on_every_enable", how.psb_on_every_enable, uint64_t{0}, uint64_t{1});
    visit("psb_before_pge", how.psb_before_pge, uint64_t{0}, uint64_t{1});
    visit("psb_of_enable_has_fup", how.psb_of_enable_has_fup, uint64_t{0}, uint64_t{1});
    visit("psb_keeps_remainder", how.psb_keeps_remainder, uint64_t{0}, uint64_t{1});
    visit("psb_step", how.psb_step, uint64_t{1}, uint64_t{65535});
    visit("psb_counts_itself", how.psb_counts_itself, uint64_t{0}, uint64_t{1});
    visit("pip_for_same_cr3", how.pip_for_same_cr3, uint64_t{0}, uint64_t{1});
    visit("mov_cr3_stops_at_next", how.mov_cr3_stops_at_next, uint64_t{0}, uint64_t{1});
    visit("swintr_events", how.swintr_events, uint64_t{0}, uint64_t{1});
    visit("on_ret_mismatch", how.on_ret_mismatch, uint64_t{0},
          uint64_t{underlying(ret_mismatch::clear)});
    visit("psb_after_overflow", how.psb_after_overflow, uint64_t{0},
          uint64_t{underlying(psb_after_ovf::never)});
    visit("psb_before_ovf_fup", how.psb_before_ovf_fup, uint64_t{0}, uint64_t{1});
    visit("trace_stop_in_overflow", how.trace_stop_in_overflow, uint64_t{0},
          uint64_t{underlying(stop_in_overflow::without_packet)});
    visit("cycle_counter_bits", how.cycle_counter_bits, uint64_t{1}, uint64_t{64});
    visit("drained_at_once", how.drained_at_once, uint64_t{0}, uint64_t{~size_t{0}});
    visit("overflow_ends_at", how.overflow_ends_at, uint64_t{0}, uint64_t{~size_t{0}});
    visit("msrs_lag", how.msrs_lag, uint64_t{0}, uint64_t{1});
}

/// Sets the option with this name. Returns false, and sets nothing, if there is none or the value
/// is out of range.
template <same_as<model_options> Options>
[[nodiscard]] constexpr auto set_option(Options& how, text name, uint64_t value) noexcept -> bool {
    bool is_set = false;
    for_each_option(how, [&](text option, auto& member, uint64_t least, uint64_t most) {
        if (option == name && least <= value && value <= most) {
            member = static_cast<bare_t<decltype(member)>>(value);
            is_set = true;
        }
    });
    return is_set;
}

}  // namespace ptspec::engine

// ---- ptspec/engine/kind.hpp ----

/// Kinds of processor: what the manual leaves open, as recorded processors do it.
namespace ptspec::engine {

/// A kind of processor. Recorded traces show four; `manual` is what the rules say.
///
/// Source: GEN-009.
enum class kind : uint8_t {
    manual,
    broadwell,
    skylake,  ///< up to Comet Lake
    icelake,  ///< and later P-cores
    atom,     ///< Goldmont Plus
};

/// A kind, its name, and its options.
struct kind_info {
    kind which{};
    text name{};
    model_options options{};
};

/// All kinds, in the order of the enumeration.
///
/// Source: GEN-009..012, GEN-120, GEN-162, GEN-170, GEN-171, GEN-176, GEN-180, GEN-228.
inline constexpr kind_info kinds[] = {
    {kind::manual, "manual", {}},
    {kind::broadwell,
     "broadwell",
     {.ips = trace::ip_choice::broadwell,
      .tnt_capacity = 44,
      .pads = trace::pad_policy::broadwell,
      .end_alignment = 8,
      .has_tsx = true,
      .psb_before_pge = true,
      .psb_keeps_remainder = true}},
    {kind::skylake,
     "skylake",
     {.ips = trace::ip_choice::skylake,
      .pads = trace::pad_policy::skylake,
      .in_psb = trace::psb_order::skylake,
      .end_alignment = 16,
      .has_tsx = true,
      .psb_of_enable_has_fup = true,
      .psb_keeps_remainder = true,
      .psb_step = 960,
      .psb_after_overflow = psb_after_ovf::always}},
    {kind::icelake,
     "icelake",
     {.ips = trace::ip_choice::icelake,
      .pads = trace::pad_policy::skylake,
      .in_psb = trace::psb_order::skylake,
      .end_alignment = 16,
      .has_tsx = true,
      .psb_of_enable_has_fup = true,
      .psb_keeps_remainder = true,
      .psb_step = 960,
      .psb_after_overflow = psb_after_ovf::always}},
    {kind::atom, "atom", {.in_psb = trace::psb_order::atom, .psb_keeps_remainder = true}},
};

[[nodiscard]] constexpr auto info_of(kind which) noexcept -> kind_info const& {
    return kinds[underlying(which)];
}
[[nodiscard]] constexpr auto options_of(kind which) noexcept -> model_options const& {
    return info_of(which).options;
}

/// The kind of a processor: that of its generation, and the last one of a generation that no trace
/// shows. `skylake` without a signature.
///
/// Source: GEN-009.
[[nodiscard]] constexpr auto kind_of(reg::cpuid_01h_eax signature) noexcept -> kind {
    if (signature.raw == 0) { return kind::skylake; }
    auto const which = cpu::model_of(signature);
    if (which.family != 6) { return kind::icelake; }
    // clang-format off
    switch (which.model) {
        case 0x3D: case 0x47: case 0x4F: case 0x56:
            return kind::broadwell;
        case 0x4E: case 0x55: case 0x5E: case 0x66: case 0x8E: case 0x9E: case 0xA5: case 0xA6:
            return kind::skylake;
        case 0x5C: case 0x5F: case 0x7A: case 0x86: case 0x96: case 0x9C: case 0xAF: case 0xB6:
        case 0xBE: case 0xDD:
            return kind::atom;
        default: return kind::icelake;
    }
    // clang-format on
}
/// The same for a logical processor. The E-cores of a hybrid processor have the model of its
/// P-cores, and enumerate LIP as Atom processors do.
///
/// Source: GEN-009.
[[nodiscard]] constexpr auto kind_of(cpu::capabilities const& of) noexcept -> kind {
    auto const by_model = kind_of(of.leaf_01_eax);
    bool const is_e_core = by_model == kind::icelake && of.ip_payload() == cpu::ip_payload::linear;
    return is_e_core ? kind::atom : by_model;
}
/// The options of a processor that were not chosen: those of its kind.
[[nodiscard]] constexpr auto options_of(cpu::capabilities const& of) noexcept
    -> model_options const& {
    return options_of(kind_of(of));
}

}  // namespace ptspec::engine

// ---- ptspec/engine/byte_queue.hpp ----

namespace ptspec::engine {

/// A queue of bytes, first in, first out: the internal buffer between packet generation and output.
///
/// Shape:  a ring buffer of `Depth` bytes.
/// Source: GEN-225.
template <size_t Depth>
class byte_queue {
    static_assert(Depth >= 16, "the queue must have room for the longest packet");

public:
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return size_; }
    [[nodiscard]] constexpr auto empty() const noexcept -> bool { return size_ == 0; }
    [[nodiscard]] constexpr auto room() const noexcept -> size_t { return Depth - size_; }
    [[nodiscard]] static constexpr auto depth() noexcept -> size_t { return Depth; }

    /// Appends all of `bytes`, or nothing if they do not fit. Returns true if they were appended.
    [[nodiscard]] constexpr auto append(byte_view bytes) noexcept -> bool {
        if (bytes.size() > room()) { return false; }
        size_t const at = wrapped(first_ + size_);
        byte_view const front = bytes.first(Depth - at);
        byte_view const back = bytes.from(front.size());
        copy_bytes(bytes_ + at, front.data(), front.size());
        copy_bytes(bytes_, back.data(), back.size());
        size_ += bytes.size();
        return true;
    }
    /// Appends the first `count` of sixteen bytes. May store all sixteen: the bytes after the first
    /// `count` are unused.
    [[nodiscard]] constexpr auto append(wide_bits bytes, size_t count) noexcept -> bool {
        size_t const at = first_ + size_;
        if (at > Depth - 16) { return append(byte_view{to_le(bytes)}.first(count)); }
        size_ += count;
        store_le64(bytes_ + at, bytes.low);
        store_le64(bytes_ + at + 8, bytes.high);
        return true;
    }
    /// The oldest bytes: all of them, or those before the end of the ring buffer if they wrap.
    [[nodiscard]] constexpr auto front() const noexcept -> byte_view {
        return {bytes_ + first_, size_ < Depth - first_ ? size_ : Depth - first_};
    }
    /// Removes the oldest `count` bytes, or all if there are fewer.
    constexpr void drop(size_t count) noexcept {
        if (count >= size_) { return clear(); }
        first_ = wrapped(first_ + count);
        size_ -= count;
    }
    constexpr void clear() noexcept { first_ = size_ = 0; }

    /// Byte `i`, counted from the oldest. `i` must be below `size()`.
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> uint8_t {
        return bytes_[wrapped(first_ + i)];
    }

private:
    static constexpr auto wrapped(size_t at) noexcept -> size_t {
        return at < Depth ? at : at - Depth;
    }

    size_t first_ = 0;
    size_t size_ = 0;
    uint8_t bytes_[Depth] = {};
};

}  // namespace ptspec::engine

// ---- ptspec/engine/packets/fast_ips.hpp ----

namespace ptspec::engine {

/// IPs from `first` to `last`, both included. The default is empty.
struct ip_span {
    uint64_t first = 1;
    uint64_t last = 0;

    /// The number of IPs; for the whole address space one less.
    [[nodiscard]] constexpr auto size() const noexcept -> uint64_t {
        if (first > last) { return 0; }
        uint64_t const after_first = last - first;
        return after_first == ~uint64_t{0} ? after_first : after_first + 1;
    }
    friend constexpr auto operator==(ip_span const&, ip_span const&) -> bool = default;
};

/// A span of IPs around `ip`: a branch to any of them keeps FilterEn at 1 and enters no TraceStop
/// range. It extends to the nearest TraceStop ranges, within one filter range.
///
/// Source: GEN-080..085.
[[nodiscard]] constexpr auto fast_ips_around(access::msr_state const& state, uint64_t ip) noexcept
    -> ip_span {
    using access::detail::any_range_of_kind;
    ip_span found{0, ~uint64_t{0}};
    if (access::has_filter(state)) {
        found = {};
        any_range_of_kind(state, reg::addr_cfg::filter, [&](access::address_range const& range) {
            bool const inside = range.contains(ip);
            if (inside) { found = {range.a.raw, range.b.raw}; }
            return inside;
        });
    }
    any_range_of_kind(state, reg::addr_cfg::trace_stop, [&](access::address_range const& range) {
        if (range.contains(ip)) {
            found = {};
        } else if (ip < range.a.raw) {
            found.last = range.a.raw - 1 < found.last ? range.a.raw - 1 : found.last;
        } else {
            found.first = range.b.raw + 1 > found.first ? range.b.raw + 1 : found.first;
        }
        return false;
    });
    return found;
}

}  // namespace ptspec::engine

// ---- ptspec/engine/packets/clocks.hpp ----

/// The clocks of a logical processor, and the packets that report them.
namespace ptspec::engine {

/// The MTCs that are due.
struct mtcs_due {
    /// The maximum: a packet has eight bits of the crystal counter, so more are indistinguishable.
    static constexpr uint64_t most = 256;

    uint64_t first = 0;  ///< the crystal counter at the first, shifted right by MTCFreq
    uint64_t count = 0;

    /// Packet `i`. Source: GEN-203, PKT-101.
    [[nodiscard]] constexpr auto packet(uint64_t i) const noexcept -> packet::mtc {
        return packet::mtc{}.with(packet::mtc::CTC{wrapped{first + i}});
    }
};

/// The core:bus ratio if MSR_PLATFORM_INFO gives none.
///
/// Units:  a multiple of the bus clock: 2.4 GHz with a bus clock of 100 MHz.
/// Source: GEN-202.
inline constexpr uint8_t default_core_to_bus = 24;

/// The values of the clocks.
///
/// Units:  ticks of the crystal clock and of the time-stamp counter.
/// Source: SDM vol. 3, "Timing Packets"; GEN-200..204.
struct clocks {
    uint64_t art = 0;
    uint64_t tsc = 0;          ///< as RDTSC would return it
    uint64_t tsc_at_edge = 0;  ///< its value at the last edge of the crystal clock
    uint8_t core_to_bus = 0;   ///< 0: the processor's default ratio (`core_to_bus_of`)
    bool are_off = false;      ///< the core clock is stopped

    /// Advances the crystal clock and the time-stamp counter to new values.
    ///
    /// Source: GEN-201.
    constexpr void run_to(uint64_t new_art, uint64_t new_tsc) noexcept {
        if (new_art != art) { tsc_at_edge = new_tsc; }
        art = new_art;
        tsc = new_tsc;
    }
    /// The MTCs that are due when the crystal counter advances to a value. The last 256 if there
    /// are more, none if the value is lower. `freq` is MTCFreq.
    ///
    /// Source: SDM vol. 3, "Mini Time Counter (MTC) Packet"; GEN-203, PRG-134.
    [[nodiscard]] constexpr auto until(uint64_t new_art, unsigned freq) const noexcept -> mtcs_due {
        if (new_art <= art) { return {}; }
        uint64_t const periods = (new_art >> freq) - (art >> freq);
        uint64_t const count = periods < mtcs_due::most ? periods : mtcs_due::most;
        return {(new_art >> freq) - count + 1, count};
    }

    /// Source: GEN-200.
    [[nodiscard]] constexpr auto tsc_packet() const noexcept -> packet::tsc {
        return packet::tsc{}.with(packet::tsc::TSC{wrapped{tsc}});
    }
    /// Source: GEN-201.
    [[nodiscard]] constexpr auto tma_packet() const noexcept -> packet::tma {
        return packet::tma{}.with(packet::tma::CTC{wrapped{art}},
                                  packet::tma::FC{wrapped{tsc - tsc_at_edge}});
    }
    /// `otherwise` is the ratio if `core_to_bus` is 0. Source: GEN-202, PKT-106.
    [[nodiscard]] constexpr auto cbr_packet(uint8_t otherwise = default_core_to_bus) const noexcept
        -> packet::cbr {
        uint8_t const ratio = core_to_bus != 0 ? core_to_bus : otherwise;
        return packet::cbr{}.with(packet::cbr::CoreBusRatio{wrapped{uint64_t{ratio}}});
    }
    friend constexpr auto operator==(clocks const&, clocks const&) -> bool = default;
};

/// The default core:bus ratio of a processor: MaxNonTurboRatio, the ratio at which the TSC counts.
///
/// Source: REG-168, GEN-202, GEN-208.
[[nodiscard]] constexpr auto core_to_bus_of(cpu::capabilities const& of) noexcept -> uint8_t {
    auto const ratio = of.platform_info.get<reg::msr_platform_info::MaxNonTurboRatio>();
    return ratio != 0 ? static_cast<uint8_t>(ratio) : default_core_to_bus;
}

/// The cycle counter after cycles have passed.
struct counted_cycles {
    uint64_t cycles = 0;
    bool guard = false;  ///< it is about to wrap: a CYC with all cycles is due
};

/// Adds core clock cycles to a counter of `bits` bits. If `loses`, it wraps, and no CYC is due.
///
/// Source: SDM vol. 3, "Cycle-Accurate Mode"; GEN-210, GEN-217, GEN-220.
[[nodiscard]] constexpr auto count_cycles(uint64_t before, uint64_t passed, unsigned bits,
                                          bool loses) noexcept -> counted_cycles {
    uint64_t const sum = before + passed;
    bool const carries = sum < before;
    uint64_t const all = carries ? ~uint64_t{0} : sum;
    uint64_t const most = low_bits(bits);
    if (all < most) { return {all, false}; }
    return loses ? counted_cycles{sum & most, false} : counted_cycles{all, true};
}

}  // namespace ptspec::engine

// ---- ptspec/engine/packets/return_stack.hpp ----

namespace ptspec::engine {

/// The return addresses of traced near CALLs. A RET to the top entry is compressed to one TNT bit.
///
/// Shape:  at most 64 addresses; one more drops the oldest.
/// Source: SDM vol. 3, "Indirect Transfer Compression for Returns (RET)"; GEN-130..137.
class return_stack {
public:
    static constexpr unsigned most = 64;

    /// A near CALL was traced. `next` is the address after it.
    constexpr void push(uint64_t next) noexcept {
        top_ = (top_ + 1) % most;
        entries_[top_] = next;
        count_ += count_ < most ? 1 : 0;
    }
    /// A near RET to `to`. `compared` is the mask of the address bits that the RET pops. Returns
    /// true, and pops, if the top entry matches. `on_mismatch` is the effect of a mismatch.
    [[nodiscard]] constexpr auto pop(uint64_t to, uint64_t compared,
                                     ret_mismatch on_mismatch = ret_mismatch::pop) noexcept
        -> bool {
        if (count_ == 0) { return false; }
        bool const leads_there = ((entries_[top_] ^ to) & compared) == 0;
        if (leads_there || on_mismatch == ret_mismatch::pop) {
            top_ = (top_ + most - 1) % most;
            --count_;
        } else if (on_mismatch == ret_mismatch::clear) {
            clear();
        }
        return leads_there;
    }
    constexpr void clear() noexcept { count_ = 0; }

    [[nodiscard]] constexpr auto size() const noexcept -> unsigned { return count_; }
    /// Entry `i`, counted from the oldest. `i` must be below `size()`.
    [[nodiscard]] constexpr auto operator[](unsigned i) const noexcept -> uint64_t {
        return entries_[(top_ + most + 1 - count_ + i) % most];
    }

    friend constexpr auto operator==(return_stack const& one, return_stack const& two) noexcept
        -> bool {
        if (one.count_ != two.count_) { return false; }
        for (unsigned i = 0; i < one.count_; ++i) {
            if (one[i] != two[i]) { return false; }
        }
        return true;
    }

private:
    uint64_t entries_[most] = {};
    unsigned top_ = 0;
    unsigned count_ = 0;
};

}  // namespace ptspec::engine

// ---- ptspec/engine/packets/state.hpp ----

namespace ptspec::engine {

/// The controls by which a VMM conceals VMX operation from the trace.
///
/// Source: GEN-278, REG-122..124.
struct vmx_concealment {
    bool non_root = false;  ///< "conceal VMX from PT", a VM-execution control
    bool exits = false;     ///< "conceal VMX from PT", a VM-exit control
    bool entries = false;   ///< "conceal VMX from PT", a VM-entry control

    friend constexpr auto operator==(vmx_concealment const&, vmx_concealment const&)
        -> bool = default;
};

/// The base address in a VMCS packet while no VMCS is current.
///
/// Source: GEN-244.
inline constexpr uint64_t no_vmcs = ~uint64_t{0};

/// The state that a decoder has after the packets so far.
struct decoder_view {
    uint64_t mode = 0;  ///< the bits of the last MODE.Exec since the last PSB; 0: none
    uint64_t pip = 0;   ///< the bits of the last PIP; 0: none
    bool in_tx = false;
    bool psb_requested = false;
    uint64_t count_start = 0;  ///< `writer.bytes` when PacketByteCnt was 0

    friend constexpr auto operator==(decoder_view const&, decoder_view const&) -> bool = default;
};

/// The packets that follow an overflow during which tracing stopped.
///
/// Source: GEN-225, GEN-230.
enum class deferred_ovf : uint8_t { none, ovf, ovf_and_trace_stop };

/// The state of packet generation between two events.
///
/// `msrs.status.PacketByteCnt` and `PendPSB` are not kept current: see `status_now`.
///
/// Source: GEN-003..008, GEN-123, GEN-160..176, GEN-225..230.
struct generator_state {
    cpu::capabilities caps{};
    model_options options{};
    access::msr_state msrs{};
    execution_context code{};
    uint64_t ip = 0;  ///< the next instruction

    trace::writer_state writer{};
    trace::writer_options write_options{};  ///< from IA32_RTIT_CTL and `options`
    return_stack calls{};
    engine::clocks clocks{};
    decoder_view view{};
    vmx_concealment concealment{};
    uint64_t vmcs = no_vmcs;
    uint64_t psb_period = 0;       ///< in bytes, from IA32_RTIT_CTL
    uint64_t psb_after = 0;        ///< bytes from `view.count_start` to the next PSB
    event::psb_due psb_details{};  ///< of the next PSB+
    rule shutdown_rule = rule::none;
    access::path_verdict ctl_load_verdict{};  ///< of the last VM transition
    uint8_t tx_depth = 0;
    bool in_overflow = false;         ///< packets are lost
    bool overflow_requested = false;  ///< the overflow lasts until its end is requested
    engine::deferred_ovf deferred_ovf = deferred_ovf::none;
    bool in_acm = false;
    bool trace_en_after_acm = false;

    // Cached by `refresh_cache` for `try_fast_path`.

    /// A branch to one of the `fast_ip_count` IPs from `fast_ip_first` on changes no enable.
    uint64_t fast_ip_first = 0;
    uint64_t fast_ip_count = 0;
    /// If the number of gathered branches is one of the `fast_tnt_count` from `fast_tnt_first` on,
    /// one more branch completes no packet.
    unsigned fast_tnt_first = 0;
    unsigned fast_tnt_count = 0;
    bool has_ranges = false;      ///< there is a filter range or a TraceStop range
    bool writes_plainly = false;  ///< `write_options` are plain

    template <class Field>
    [[nodiscard]] constexpr auto ctl() const noexcept -> typename Field::value_type {
        return msrs.ctl.get<Field>();
    }
    [[nodiscard]] constexpr auto trigger_en() const noexcept -> bool {
        return msrs.status.get<access::ia32_rtit_status::TriggerEn>();
    }
    [[nodiscard]] constexpr auto enables() const noexcept -> access::enables {
        return access::enables_of(caps, msrs);
    }
    /// An IP of the code that executes, in the form of packets.
    [[nodiscard]] constexpr auto packet_ip(uint64_t from) const noexcept -> uint64_t {
        return ip_in_packets(caps.ip_payload(), code, from);
    }
    [[nodiscard]] constexpr auto context_at(uint64_t where) const noexcept -> access::context {
        return context_at(code, where);
    }
    /// The same for the code `next`.
    [[nodiscard]] constexpr auto context_at(execution_context const& next,
                                            uint64_t where) const noexcept -> access::context {
        return context_of(next, ip_in_packets(caps.ip_payload(), next, where));
    }
    [[nodiscard]] constexpr auto bytes_since_psb() const noexcept -> uint64_t {
        return writer.bytes - view.count_start;
    }
    [[nodiscard]] constexpr auto psb_is_due() const noexcept -> bool {
        return view.psb_requested || bytes_since_psb() >= psb_after;
    }
    /// True for an IP to which a branch changes no enable.
    [[nodiscard]] constexpr auto is_fast_ip(uint64_t target) const noexcept -> bool {
        return target - fast_ip_first < fast_ip_count;
    }
};

namespace detail {

using namespace ptspec::detail;
using ctl = access::ia32_rtit_ctl;

/// IA32_RTIT_STATUS with its counters. Source: REG-055, REG-061, REG-064, REG-065, GEN-161.
[[nodiscard]] constexpr auto status_now(generator_state const& s) noexcept
    -> access::ia32_rtit_status {
    using status = access::ia32_rtit_status;
    auto now = s.msrs.status;
    if (!s.ctl<ctl::TraceEn>()) { return now; }
    // Without CPSB_CAM the count still decides when a PSB is due, but reads as 0.
    if (s.caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>()) {
        now = now.with(status::PacketByteCnt{wrapped{s.bytes_since_psb()}});
    }
    if (s.ctl<ctl::InjectPsbPmiOnEnable>() && s.trigger_en()) {
        now = now.with(status::PendPSB{s.psb_is_due()});
    }
    return now;
}

constexpr void drop_gathered_branches(generator_state& s) noexcept {
    s.writer.tnt = {};
    s.writer.deferred_count = 0;
}

/// Recomputes the state that depends on the enables, after they may have changed.
constexpr void refresh_cache(generator_state& s) noexcept {
    auto const now = s.enables();
    if (!now.packet()) { s.calls.clear(); }
    if (!now.trigger) {
        drop_gathered_branches(s);
        s.writer.cycles = 0;
    }
    s.writes_plainly = s.write_options.is_plain();
    s.fast_tnt_first = s.write_options.cyc ? 1 : 0;  // the first branch may need a CYC
    s.fast_tnt_count = s.write_options.max_branches() - 1 - s.fast_tnt_first;
    s.has_ranges = access::has_filter(s.msrs) || access::has_trace_stop(s.msrs);
    ip_span fast{0, ~uint64_t{0}};
    if (s.has_ranges) {
        bool const ips_are_offsets = s.code.width != code_width::bits_64 &&
                                     s.caps.ip_payload() == cpu::ip_payload::linear;
        fast = ips_are_offsets ? ip_span{} : fast_ips_around(s.msrs, s.ip);
    }
    bool const branches_only_gather = now.packet() && !s.in_overflow && !s.ctl<ctl::DisTNT>() &&
                                      !s.options.defers_tips;
    s.fast_ip_first = fast.first;
    s.fast_ip_count = branches_only_gather ? fast.size() : 0;
}

/// The period of PSBs begins at this count of bytes. Source: GEN-012, GEN-165.
constexpr void start_period(generator_state& s, uint64_t at) noexcept {
    uint64_t const step = s.options.psb_step;
    s.view.count_start = at;
    uint64_t const over = step > 1 ? (at + s.psb_period) % step : 0;
    s.psb_after = s.psb_period + (over != 0 ? step - over : 0);
}

/// Derives the state that depends on IA32_RTIT_CTL, after it may have changed.
constexpr void apply_ctl(generator_state& s) noexcept {
    s.write_options = {.ips = s.options.ips,
                       .tnt_capacity = s.options.tnt_capacity,
                       .defers_tips = s.options.defers_tips,
                       .pads = s.options.pads,
                       .in_psb = s.options.in_psb,
                       .cyc = s.ctl<ctl::CYCEn>(),
                       .cyc_threshold = static_cast<uint8_t>(s.ctl<ctl::CycThresh>())};
    s.psb_period = uint64_t{2048} << s.ctl<ctl::PSBFreq>();
    start_period(s, s.view.count_start);
    refresh_cache(s);
}

/// Begins an overflow: packets are lost from now on. Source: GEN-166, GEN-225, GEN-229, GEN-135.
constexpr void begin_overflow(generator_state& s) noexcept {
    s.in_overflow = true;
    drop_gathered_branches(s);
    s.writer.items = packet::block::none;
    s.calls.clear();
    refresh_cache(s);
}

/// Writes the packets that `add` adds to a batch: all of them or, during an overflow, none. An
/// overflow begins if the sink has no room for them.
template <class Sink, class Add>
[[gnu::noinline]]  // inlined, branches take 3 % more instructions and cycles 4 % (g++ 12)
constexpr void
emit(generator_state& s, Sink& to, Add const& add) noexcept {
    if (s.in_overflow) { return; }
    trace::packet_batch<> batch{s.writer, s.write_options};
    decoder_view const before = s.view;
    add(batch);
    batch.finish();
    if (batch.broken() == rule::none && (batch.bytes().empty() || to.append(batch.bytes()))) {
        s.writer = batch.state();
        return;
    }
    s.view = before;
    start_period(s, before.count_start);
    begin_overflow(s);
}

}  // namespace detail

}  // namespace ptspec::engine

// ---- ptspec/engine/packets/psb.hpp ----

/// PSB+, and its status packets: MODE, PIP, VMCS, timing.
namespace ptspec::engine::detail {

/// The MODE.Exec of the code that executes. Source: GEN-235, GEN-305.
[[nodiscard]] constexpr auto mode_exec_of(generator_state const& s) noexcept -> packet::mode_exec {
    using packet::mode_exec;
    return mode_exec{}.with(mode_exec::CS_L{s.code.width == code_width::bits_64},
                            mode_exec::CS_D{s.code.width == code_width::bits_32},
                            mode_exec::IF{s.ctl<ctl::EventEn>() && s.code.IF});
}
constexpr void add_mode_exec(generator_state& s, auto& batch) noexcept {
    s.view.mode = mode_exec_of(s).raw;
    batch.add(mode_exec_of(s));
}
/// Adds a MODE.Exec if the mode differs from the last one in the trace. Source: GEN-236.
constexpr void add_changed_mode_exec(generator_state& s, auto& batch) noexcept {
    if (s.view.mode != mode_exec_of(s).raw) { add_mode_exec(s, batch); }
}

/// Source: GEN-240, GEN-241.
[[nodiscard]] constexpr auto pip_of(execution_context const& code, bool non_root) noexcept
    -> packet::pip {
    return packet::pip{}.with(packet::pip::NR{non_root}, packet::pip::CR3{wrapped{code.cr3}});
}
/// The PIP of a context, with NR unless a VMM conceals it. Source: GEN-241, GEN-278.
[[nodiscard]] constexpr auto pip_of(generator_state const& s,
                                    execution_context const& code) noexcept -> packet::pip {
    return pip_of(code, code.vmx_non_root && !s.concealment.non_root);
}
constexpr void add_pip(generator_state& s, auto& batch, packet::pip which) noexcept {
    s.view.pip = which.raw;
    batch.add(which);
}
[[nodiscard]] constexpr auto vmcs_of(uint64_t address) noexcept -> packet::vmcs {
    return packet::vmcs{}.with(packet::vmcs::base{wrapped{address}});
}
[[nodiscard]] constexpr auto mode_tsx_of(generator_state const& s, bool aborted = false) noexcept
    -> packet::mode_tsx {
    using packet::mode_tsx;
    return mode_tsx{}.with(mode_tsx::InTX{s.tx_depth != 0}, mode_tsx::TXAbort{aborted});
}
constexpr void add_mode_tsx(generator_state& s, auto& batch, bool aborted = false) noexcept {
    s.view.in_tx = s.tx_depth != 0;
    batch.add(mode_tsx_of(s, aborted));
}
/// Source: GEN-202.
[[nodiscard]] constexpr auto cbr_of(generator_state const& s) noexcept -> packet::cbr {
    return s.clocks.cbr_packet(core_to_bus_of(s.caps));
}
/// The MTC that falls due at this place. The crystal clock runs to it. Source: GEN-203.
constexpr auto run_to_mtc(generator_state& s, event::mtc_place place) noexcept
    -> trace::psb_status::optional<packet::mtc> {
    using event::mtc_place;
    if (place == mtc_place::none || !s.ctl<ctl::MTCEn>()) { return {}; }
    auto const freq = static_cast<unsigned>(s.ctl<ctl::MTCFreq>());
    uint64_t const count = (s.clocks.art >> freq) + (place == mtc_place::before_tsc ? 0 : 1);
    if (place != mtc_place::before_tsc) { s.clocks.run_to(count << freq, s.clocks.tsc); }
    return packet::mtc{}.with(packet::mtc::CTC{wrapped{count}});
}
/// How many of TSC, TMA and CBR precede an MTC at this place.
[[nodiscard]] constexpr auto count_before(event::mtc_place place) noexcept -> uint8_t {
    using event::mtc_place;
    bool const is_first = place == mtc_place::none || place == mtc_place::before_older_tsc;
    return is_first ? 0 : static_cast<uint8_t>(underlying(place) - 1);
}
/// The timing packets after the clocks were off. Source: GEN-181, GEN-201, GEN-205, GEN-313.
constexpr void add_timing(generator_state& s, auto& batch,
                          event::mtc_place place = event::mtc_place::none) noexcept {
    auto const tsc = s.clocks.tsc_packet();
    auto const tma = s.clocks.tma_packet();
    auto const mtc = run_to_mtc(s, place);
    auto const add_mtc_after = [&](uint8_t count) {
        if (mtc.has_value && count_before(place) == count) { batch.add(mtc.value); }
    };
    add_mtc_after(0);
    if (s.ctl<ctl::TSCEn>()) { batch.add(tsc); }
    add_mtc_after(1);
    if (s.ctl<ctl::TSCEn>() && s.ctl<ctl::MTCEn>()) { batch.add(tma); }
    add_mtc_after(2);
    batch.add(cbr_of(s));
    add_mtc_after(3);
}

/// Adds a PSB+ that reports the status under the enables `now`, at this IP.
/// Source: GEN-012, GEN-165, GEN-170..176, REG-065.
constexpr void add_psb(generator_state& s, auto& batch, access::enables const& now,
                       uint64_t ip) noexcept {
    batch.flush();
    uint64_t const begin = batch.state().bytes;
    trace::psb_status reported;
    if (s.ctl<ctl::TSCEn>()) { reported.tsc = s.clocks.tsc_packet(); }
    if (s.ctl<ctl::TSCEn>() && s.ctl<ctl::MTCEn>()) { reported.tma = s.clocks.tma_packet(); }
    reported.cbr = cbr_of(s);
    reported.cycles_until_tsc = s.psb_details.cycles_until_tsc;
    reported.cycles_until_mtc = s.psb_details.cycles_until_mtc;
    reported.mtc = run_to_mtc(s, s.psb_details.mtc);
    reported.mtc_after = count_before(s.psb_details.mtc);
    s.psb_details = {};
    bool const vmx_is_visible = s.msrs.in_vmx_operation && s.caps.vmx() != cpu::vmx_support::none &&
                                !(s.code.vmx_non_root && s.concealment.non_root);
    s.view.mode = 0;
    if (now.context && s.ctl<ctl::OS>()) {
        reported.pip = pip_of(s, s.code);
        s.view.pip = pip_of(s, s.code).raw;
    }
    if (vmx_is_visible && (now.context || !s.options.vmcs_needs_context)) {
        reported.vmcs = vmcs_of(s.vmcs);
    }
    if (now.context && now.branch && s.options.has_tsx) {
        reported.mode_tsx = mode_tsx_of(s);
        s.view.in_tx = s.tx_depth != 0;
    }
    if (now.packet()) {
        reported.mode_exec = mode_exec_of(s);
        s.view.mode = mode_exec_of(s).raw;
        reported.fup = ip;
    }
    batch.add(reported);
    if (s.options.psb_keeps_remainder && begin - s.view.count_start >= s.psb_period &&
        begin - s.view.count_start < 2 * s.psb_period) {
        start_period(s, s.view.count_start + s.psb_period);
    } else {
        start_period(s, s.options.psb_counts_itself ? begin : batch.state().bytes);
    }
    s.view.psb_requested = false;
    s.calls.clear();
}

constexpr void add_psb(generator_state& s, auto& batch, access::enables const& now) noexcept {
    add_psb(s, batch, now, s.packet_ip(s.ip));
}

/// Completes an event: generates a PSB+ if one is due. While the clocks are off it stays due until
/// the wake. Source: GEN-006, GEN-163.
template <class Sink>
constexpr void complete_event(generator_state& s, Sink& to) noexcept {
    if (!s.psb_is_due() || !s.trigger_en() || s.in_overflow || s.clocks.are_off) { return; }
    emit(s, to, [&](auto& batch) { add_psb(s, batch, s.enables()); });
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/packets/overflow.hpp ----

/// The end of an overflow, and overflows and PSB+ on request. `emit` begins an overflow.
namespace ptspec::engine::detail {

/// True if a packet was lost and no later packet reports its state.
[[nodiscard]] constexpr auto has_lost_state(generator_state const& s,
                                            access::enables const& now) noexcept -> bool {
    bool const mode_was_lost = now.packet() && s.view.mode != mode_exec_of(s).raw;
    bool const pip_was_lost = now.context && s.ctl<ctl::OS>() && s.view.pip != 0 &&
                              s.view.pip != pip_of(s, s.code).raw;
    bool const tsx_was_lost = now.context && now.branch && s.view.in_tx != (s.tx_depth != 0);
    return mode_was_lost || pip_was_lost || (tsx_was_lost && s.options.has_tsx);
}

/// Ends an overflow: generates an OVF and the packets that must follow it. The sink must have room.
/// Source: GEN-227..230.
template <class Sink>
constexpr void resolve_overflow(generator_state& s, Sink& to) noexcept {
    s.in_overflow = s.overflow_requested = false;
    auto const now = s.enables();
    if (s.deferred_ovf != deferred_ovf::none) {
        bool const stopped = s.deferred_ovf == deferred_ovf::ovf_and_trace_stop;
        s.deferred_ovf = deferred_ovf::none;
        emit(s, to, [=](auto& batch) {
            batch.add(packet::ovf{});
            if (stopped) { batch.add(packet::tracestop{}); }
        });
    } else if (now.trigger) {
        emit(s, to, [&](auto& batch) {
            batch.add(packet::ovf{});
            bool const requested = s.options.psb_after_overflow == psb_after_ovf::always ||
                                   (s.options.psb_after_overflow == psb_after_ovf::where_needed &&
                                    has_lost_state(s, now));
            s.view.psb_requested = s.view.psb_requested || requested;
            bool const psb = s.psb_is_due() && !s.clocks.are_off;
            bool const psb_first = !now.packet() || s.options.psb_before_ovf_fup;
            if (psb && psb_first) { add_psb(s, batch, now); }
            if (now.packet()) { batch.template add_ip<packet::fup>(s.packet_ip(s.ip)); }
            if (psb && !psb_first) { add_psb(s, batch, now); }
        });
    }
    refresh_cache(s);
}

/// Ends an overflow, unless `event::overflow` requested it and `event::overflow_end` ends it.
template <class Sink>
constexpr void end_overflow(generator_state& s, Sink& to) noexcept {
    if (s.in_overflow && !s.overflow_requested) { resolve_overflow(s, to); }
}

template <class Sink>
constexpr void handle(generator_state& s, event::psb_due const& e, Sink& /*to*/) noexcept {
    s.view.psb_requested = s.trigger_en();
    s.psb_details = e;
}
template <class Sink>
constexpr void handle(generator_state& s, event::overflow const&, Sink& /*to*/) noexcept {
    if (!s.trigger_en()) { return; }
    s.overflow_requested = true;
    begin_overflow(s);
}
template <class Sink>
constexpr void handle(generator_state& s, event::overflow_end const& e, Sink& to) noexcept {
    if (!s.in_overflow) { return; }
    s.ip = e.next;
    resolve_overflow(s, to);
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/packets/control_transfer.hpp ----

/// The packets of a control transfer, in the order of the manual's scenarios.
///
/// Source: SDM vol. 3, "Packet Generation Scenarios"; GEN-005, GEN-020..032, GEN-080..107,
///         GEN-236..245, GEN-255..257, GEN-301..306, GEN-340..342.
namespace ptspec::engine::detail {

/// How a transfer is encoded while PacketEn stays 1.
///
/// Source: GEN-110, GEN-340.
enum class branch_encoding : uint8_t {
    tnt,   ///< a TNT bit: a taken branch, or a compressed RET
    none,  ///< no packet: the decoder gets the target from the code
    tip,
    tip_undeferred,  ///< a TIP that no option defers
};
/// Whether a CFE is followed by its own FUP. Source: GEN-303, GEN-304.
enum class fup_policy : uint8_t { if_no_other, always, never };

/// An EVD packet, or none.
struct event_data {
    bool has_value = false;
    packet::evd_type type = packet::evd_type::PFA;
    uint64_t value = 0;
};
/// The packets of Event Trace for a transfer. Source: GEN-301, GEN-302.
struct traced_event {
    packet::cfe_type type{};  ///< 0: no packet
    uint8_t vector = 0;
    fup_policy fup = fup_policy::if_no_other;
    event_data first{};
    event_data second{};
};

/// A transfer of control, or a write of CR3.
struct control_transfer {
    branch_encoding encoding = branch_encoding::tip;
    uint64_t to = 0;    ///< an offset in CS, not yet in the form of packets
    uint64_t from = 0;  ///< in the form of packets
    bool has_fup = false;
    bool aborts_transaction = false;
    packet::pip pip{0};    ///< 0: CR3 is not written
    packet::vmcs vmcs{0};  ///< 0: the current VMCS stays
    traced_event cfe{};
    event::cycles_within takes{};
};

/// True if Event Trace records a transfer. Source: GEN-306.
[[nodiscard]] constexpr auto records_events(generator_state const& s, access::enables const& before,
                                            access::enables const& after) noexcept -> bool {
    return s.ctl<ctl::EventEn>() && before.trigger && (before.context || after.context);
}
/// Source: GEN-301..304.
constexpr void add_cfe(auto& batch, traced_event const& which, uint64_t from,
                       access::enables const& before) noexcept {
    using packet::cfe;
    using packet::evd;
    if (which.type == packet::cfe_type{}) { return; }
    auto const add_evd = [&](event_data const& data) {
        if (!data.has_value) { return; }
        batch.add(evd{}.with(evd::type{data.type}, evd::payload{wrapped{data.value}}));
    };
    add_evd(which.first);
    add_evd(which.second);
    bool const has_ip = before.context &&
                        (which.fup == fup_policy::always ||
                         (which.fup == fup_policy::if_no_other && !before.packet()));
    batch.add(cfe{}.with(cfe::type{which.type}, cfe::IP{has_ip},
                         cfe::vector{wrapped{uint64_t{which.vector}}}));
    if (has_ip) { batch.template add_ip<packet::fup>(from); }
}

/// Adds the last packets of a transfer, which report its target. Source: GEN-101..103.
constexpr void add_target(generator_state& s, auto& batch, control_transfer const& how,
                          access::enables const& before, access::enables const& after) noexcept {
    uint64_t const target = s.packet_ip(how.to);
    bool const is_tnt = how.encoding == branch_encoding::tnt;
    if (before.packet() && after.packet()) {
        if (how.encoding == branch_encoding::none) { return; }
        if (is_tnt) {
            if (!s.ctl<ctl::DisTNT>()) { batch.branch(true); }
            return;
        }
        add_changed_mode_exec(s, batch);
        if (how.encoding == branch_encoding::tip) {
            batch.defer(target);
        } else {
            batch.template add_ip<packet::tip>(target);
        }
    } else if (before.packet()) {
        if (after.context && !is_tnt) {
            batch.template add_ip<packet::tip_pgd>(target);
        } else {
            batch.add(packet::tip_pgd{});
        }
    } else if (after.packet()) {
        if (s.options.psb_before_pge) { add_psb(s, batch, after, target); }
        add_changed_mode_exec(s, batch);
        batch.template add_ip<packet::tip_pge>(target);
    }
}

/// Adds the MTCs that fall due within an event: the last ones, as many as a batch holds beside the
/// other packets. Source: GEN-006, GEN-203.
constexpr void add_mtcs(generator_state& s, auto& batch,
                        event::cycles_within const& takes) noexcept {
    if (takes.art <= s.clocks.art) { return; }
    auto const due = s.clocks.until(takes.art, static_cast<unsigned>(s.ctl<ctl::MTCFreq>()));
    s.clocks.run_to(takes.art, takes.tsc);
    if (!s.ctl<ctl::MTCEn>() || s.clocks.are_off) { return; }
    constexpr uint64_t most = 8;
    uint64_t const lost = due.count > most ? due.count - most : 0;
    for (uint64_t i = lost; i < due.count; ++i) { batch.add(due.packet(i)); }
}

/// Generates the packets of a transfer to `s.ip`, after which `s.code` executes. `stop_ip`, in the
/// form of packets, is compared with the TraceStop ranges.
///
/// Source: GEN-005, GEN-100..105, GEN-245, GEN-255..257, GEN-340..342.
template <class Sink>
constexpr void transfer(generator_state& s, Sink& to, control_transfer const& how,
                        uint64_t stop_ip) noexcept {
    auto const before = s.enables();
    if (!before.trigger) { return; }
    auto const result = access::evaluate(s.caps, s.msrs, s.context_at(how.to), stop_ip);
    s.msrs.status = result.status;
    if (result.trace_stop && s.in_overflow) {  // Source: GEN-230
        s.deferred_ovf = s.options.trace_stop_in_overflow == stop_in_overflow::after_ovf
                             ? deferred_ovf::ovf_and_trace_stop
                             : deferred_ovf::none;
    }
    bool const stays_on = before.packet() && result.after.packet();
    bool const has_packet = how.encoding != branch_encoding::none || how.pip.raw != 0;
    if (has_packet || !stays_on) {
        emit(s, to, [&](auto& batch) {
            if (records_events(s, before, result.after)) {
                add_cfe(batch, how.cfe, how.from, before);
            }
            if (how.aborts_transaction && result.after.context && result.after.branch) {
                add_mode_tsx(s, batch, true);
            }
            if (before.packet() && how.has_fup) { batch.template add_ip<packet::fup>(how.from); }
            batch.advance(how.takes.until_pip);
            bool const has_vmcs = how.vmcs.raw != 0 && result.after.context;
            if (has_vmcs && s.options.vmcs_before_pip) { batch.add(how.vmcs); }
            if (how.pip.raw != 0 && result.after.context && s.ctl<ctl::OS>()) {
                add_pip(s, batch, how.pip);
            }
            if (has_vmcs && !s.options.vmcs_before_pip) { batch.add(how.vmcs); }
            add_mtcs(s, batch, how.takes);
            batch.advance(how.takes.until_target);
            add_target(s, batch, how, before, result.after);
            if (result.trace_stop) { batch.add(packet::tracestop{}); }
        });
    }
    if (result.trace_stop || before.packet() != result.after.packet() || s.has_ranges) {
        refresh_cache(s);
    }
}
/// The same for a transfer whose target is compared with the TraceStop ranges: all except MOV CR3.
template <class Sink>
constexpr void transfer(generator_state& s, Sink& to, control_transfer const& how,
                        execution_context const& after) noexcept {
    s.code = after;
    s.ip = how.to;
    transfer(s, to, how, s.packet_ip(how.to));
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/packets/branch.hpp ----

/// Near branches.
///
/// Source: GEN-110..112, GEN-120..147, GEN-325, GEN-341.
namespace ptspec::engine::detail {

/// True for a call that pushes a return address which a RET can match. A call of the next
/// instruction only reads the IP. Source: GEN-132.
[[nodiscard]] constexpr auto pushes_return(event::direct_call const& e) noexcept -> bool {
    return e.to != e.next;
}

/// Handles an event that completes no packet and changes no enable. Returns false if the event
/// needs `handle`.
[[nodiscard]] constexpr auto try_fast_path(generator_state& s, event::conditional const& e) noexcept
    -> bool {
    if (!s.is_fast_ip(e.to) || s.writer.tnt.count - s.fast_tnt_first >= s.fast_tnt_count) {
        return false;
    }
    s.ip = e.to;
    s.writer.add_branch(e.taken);
    return true;
}
[[nodiscard]] constexpr auto try_fast_path(generator_state& s, event::direct_jump const& e) noexcept
    -> bool {
    if (!s.is_fast_ip(e.to)) { return false; }
    s.ip = e.to;
    return true;
}
[[nodiscard]] constexpr auto try_fast_path(generator_state& s, event::direct_call const& e) noexcept
    -> bool {
    if (!s.is_fast_ip(e.to)) { return false; }
    s.ip = e.to;
    if (pushes_return(e)) { s.calls.push(e.next); }
    return true;
}

/// Adds a TNT bit.
template <class Sink>
constexpr void emit_branch(generator_state& s, bool taken, Sink& to) noexcept {
    if (s.ctl<ctl::DisTNT>()) { return; }
    emit(s, to, [=](auto& batch) { batch.branch(taken); });
}
/// Adds the TNT bit that completes a TNT after PADs.
template <class Sink>
constexpr void complete_tnt(generator_state& s, bool taken, Sink& to) noexcept {
    s.writer.add_branch(taken);
    if (trace::append_aligned_tnt(to, s.writer, s.write_options)) { return; }
    emit(s, to, [](auto& batch) { batch.flush(); });
}
/// Emits a TIP to a fast IP, after the gathered branches.
template <class Sink>
constexpr void emit_tip(generator_state& s, uint64_t target, Sink& to) noexcept {
    s.ip = target;
    uint64_t const ip = s.packet_ip(target);
    bool const is_done = s.writes_plainly
                             ? trace::append_tip(to, s.writer, s.write_options.ips, ip)
                             : !s.write_options.cyc &&
                                   trace::append_aligned_tip(to, s.writer, s.write_options, ip);
    if (!is_done) {
        emit(s, to, [=](auto& batch) { batch.template add_ip<packet::tip>(ip); });
    }
}
/// Handles a call. If its packets are lost, no RET is compressed against it.
/// Source: GEN-130, GEN-135.
template <class Sink>
constexpr void call(generator_state& s, Sink& to, control_transfer const& how, bool pushes,
                    uint64_t next) noexcept {
    bool const was_on = s.enables().packet();
    transfer(s, to, how, s.code);
    if (pushes && was_on && !s.in_overflow && s.enables().packet()) { s.calls.push(next); }
}

template <class Sink>
constexpr void handle(generator_state& s, event::conditional const& e, Sink& to) noexcept {
    if (s.is_fast_ip(e.to)) {  // it begins or completes a TNT
        s.ip = e.to;
        if (s.write_options.cyc && s.writer.tnt.count == 0) { return emit_branch(s, e.taken, to); }
        if (s.write_options.pads != trace::pad_policy::none) [[unlikely]] {
            return complete_tnt(s, e.taken, to);
        }
        s.writer.add_branch(e.taken);
        if (trace::append_tnt(to, s.writer)) { return; }
        return emit(s, to, [](auto& batch) { batch.flush(); });
    }
    if (e.taken) { return transfer(s, to, {.encoding = branch_encoding::tnt, .to = e.to}, s.code); }
    s.ip = e.to;
    if (s.enables().packet()) { emit_branch(s, false, to); }
}
template <class Sink>
constexpr void handle(generator_state& s, event::direct_jump const& e, Sink& to) noexcept {
    transfer(s, to, {.encoding = branch_encoding::none, .to = e.to}, s.code);
}
template <class Sink>
constexpr void handle(generator_state& s, event::direct_call const& e, Sink& to) noexcept {
    call(s, to, {.encoding = branch_encoding::none, .to = e.to}, pushes_return(e), e.next);
}
template <class Sink>
constexpr void handle(generator_state& s, event::indirect_jump const& e, Sink& to) noexcept {
    if (s.is_fast_ip(e.to)) { return emit_tip(s, e.to, to); }
    transfer(s, to, {.encoding = branch_encoding::tip, .to = e.to}, s.code);
}
template <class Sink>
constexpr void handle(generator_state& s, event::indirect_call const& e, Sink& to) noexcept {
    if (s.is_fast_ip(e.to)) {
        s.calls.push(e.next);
        return emit_tip(s, e.to, to);
    }
    call(s, to, {.encoding = branch_encoding::tip, .to = e.to}, true, e.next);
}
template <class Sink>
constexpr void handle(generator_state& s, event::near_return const& e, Sink& to) noexcept {
    unsigned const popped_bits = s.code.width == code_width::bits_64   ? 64
                                 : s.code.width == code_width::bits_32 ? 32
                                                                       : 16;
    bool const matches = s.calls.pop(e.to, low_bits(popped_bits), s.options.on_ret_mismatch);
    bool const compressed = matches && !s.ctl<ctl::DisRETC>();
    if (!s.is_fast_ip(e.to)) {
        auto const encoding = compressed ? branch_encoding::tnt : branch_encoding::tip_undeferred;
        return transfer(s, to, {.encoding = encoding, .to = e.to}, s.code);
    }
    if (!compressed) { return emit_tip(s, e.to, to); }
    event::conditional const as_taken{e.to, true};
    if (!try_fast_path(s, as_taken)) { handle(s, as_taken, to); }
}
template <class Sink>
constexpr void handle(generator_state& s, event::return_stack_lost const&, Sink& /*to*/) noexcept {
    s.calls.clear();
}
template <class Sink>
constexpr void handle(generator_state& s, event::sequential const& e, Sink& /*to*/) noexcept {
    s.ip = e.next;
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/packets/transfer.hpp ----

/// Far transfers, interrupts, exceptions, INIT and SIPI, enclave transitions.
///
/// Source: GEN-110..114, GEN-136, GEN-285, GEN-286, GEN-289, GEN-290, GEN-301..303.
namespace ptspec::engine::detail {

/// The PIP of a transfer that may load CR3, as a task switch does. Source: GEN-240.
[[nodiscard]] constexpr auto pip_if_changed(generator_state const& s,
                                            execution_context const& after) noexcept
    -> packet::pip {
    return after.cr3 == s.code.cr3 ? packet::pip{0} : pip_of(s, after);
}
/// An event that has a vector. `from` is the IP of its FUP, an offset in CS.
template <class Sink>
constexpr void vectored(generator_state& s, Sink& to, uint64_t from, uint64_t target,
                        execution_context const& after, traced_event const& cfe,
                        event::cycles_within takes) noexcept {
    control_transfer how{.to = target};
    how.from = s.packet_ip(from);
    how.has_fup = true;
    how.pip = pip_if_changed(s, after);
    how.cfe = cfe;
    how.takes = takes;
    transfer(s, to, how, after);
}

template <class Sink>
constexpr void handle(generator_state& s, event::far_transfer const& e, Sink& to) noexcept {
    using packet::cfe_type;
    control_transfer how{.to = e.to};
    how.from = s.packet_ip(e.at);
    how.pip = pip_if_changed(s, e.after);
    switch (e.kind) {
        case event::far_kind::iret: how.cfe = {cfe_type::IRET}; break;
        case event::far_kind::uiret: how.cfe = {cfe_type::UIRET}; break;
        case event::far_kind::syscall:
            if (s.options.swintr_events) { how.cfe = {cfe_type::SYSCALL, 0, fup_policy::always}; }
            break;
        case event::far_kind::plain: break;
    }
    transfer(s, to, how, e.after);
}
template <class Sink>
constexpr void handle(generator_state& s, event::software_interrupt const& e, Sink& to) noexcept {
    auto const type = s.options.swintr_events ? packet::cfe_type::SWINTR : packet::cfe_type::INTR;
    vectored(s, to, e.at, e.to, e.after, {type, e.vector}, e.takes);
}
template <class Sink>
constexpr void handle(generator_state& s, event::interrupt const& e, Sink& to) noexcept {
    vectored(s, to, e.next, e.to, e.after, {packet::cfe_type::INTR, e.vector}, e.takes);
}
template <class Sink>
constexpr void handle(generator_state& s, event::exception const& e, Sink& to) noexcept {
    traced_event cfe{packet::cfe_type::INTR, e.vector};
    if (e.vector == event::exception::page_fault) {
        cfe.first = {true, packet::evd_type::PFA, e.cr2};
    }
    vectored(s, to, e.at, e.to, e.after, cfe, e.takes);
}
template <class Sink>
constexpr void handle(generator_state& s, event::kernel_visit const& e, Sink& to) noexcept {
    using event::kernel_visit;
    auto const user = s.code;
    auto kernel = user;
    kernel.cpl = 0;
    kernel.cs_base = 0;
    kernel.width = code_width::bits_64;
    kernel.real_mode = kernel.virtual_8086 = kernel.IF = false;
    kernel.inside = enclave::none;
    auto const ctl_now = s.msrs.ctl;
    s.msrs.ctl = ctl_now.with(ctl::OS{false});
    switch (e.why) {
        case kernel_visit::reason::system_call:
            handle(s, event::far_transfer{e.at, 0, kernel, event::far_kind::syscall}, to);
            break;
        case kernel_visit::reason::interrupt:
            handle(s, event::interrupt{.next = e.at, .after = kernel, .vector = e.vector}, to);
            break;
        case kernel_visit::reason::exception:
            handle(s,
                   event::exception{.at = e.at, .after = kernel, .vector = e.vector, .cr2 = e.cr2},
                   to);
            break;
    }
    if (e.returns) {
        auto const by = e.why == kernel_visit::reason::system_call ? event::far_kind::plain
                                                                   : event::far_kind::iret;
        handle(s, event::far_transfer{0, e.to, user, by}, to);
    }
    s.msrs.ctl = ctl_now;
    refresh_cache(s);
}
template <class Sink>
constexpr void handle(generator_state& s, event::user_interrupt const& e, Sink& to) noexcept {
    vectored(s, to, e.next, e.to, s.code, {packet::cfe_type::UINTR, e.vector}, {});
}
/// A processor that waits for a SIPI evaluates the enables when the SIPI arrives.
template <class Sink>
constexpr void handle(generator_state& s, event::init const& e, Sink& to) noexcept {
    control_transfer how{.to = e.to};
    how.from = s.packet_ip(e.next);
    how.has_fup = true;
    how.pip = pip_of(e.after, false);
    how.cfe = {packet::cfe_type::INIT};
    s.tx_depth = 0;
    if (!e.waits_for_sipi) { return transfer(s, to, how, e.after); }
    auto const now = s.enables();
    s.code = e.after;
    s.ip = e.to;
    if (!now.trigger) { return; }
    emit(s, to, [&](auto& batch) {
        if (records_events(s, now, now)) { add_cfe(batch, how.cfe, how.from, now); }
        if (!now.packet()) { return; }
        batch.template add_ip<packet::fup>(how.from);
        if (s.ctl<ctl::OS>()) { add_pip(s, batch, how.pip); }
    });
}
template <class Sink>
constexpr void handle(generator_state& s, event::sipi const& e, Sink& to) noexcept {
    control_transfer how{.to = e.to};
    how.cfe = {packet::cfe_type::SIPI, e.vector, fup_policy::never};
    transfer(s, to, how, e.after);
}
template <class Sink>
constexpr void handle(generator_state& s, event::enclave_transfer const& e, Sink& to) noexcept {
    control_transfer how{.to = e.to};
    how.from = s.packet_ip(e.from);
    how.has_fup = true;
    transfer(s, to, how, e.after);
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/packets/transaction.hpp ----

/// Transactions of TSX.
///
/// Source: GEN-250..258.
namespace ptspec::engine::detail {

/// Source: GEN-250, GEN-251, GEN-255.
template <class Sink>
constexpr void emit_mode_tsx(generator_state& s, uint64_t at, Sink& to) noexcept {
    auto const now = s.enables();
    if (!now.trigger || !now.context || !now.branch) { return; }
    emit(s, to, [&](auto& batch) {
        add_mode_tsx(s, batch);
        if (now.packet()) { batch.template add_ip<packet::fup>(s.packet_ip(at)); }
    });
}

template <class Sink>
constexpr void handle(generator_state& s, event::transaction_begin const& e, Sink& to) noexcept {
    if (s.tx_depth < 0xFF) { ++s.tx_depth; }
    s.ip = e.next;
    if (s.tx_depth == 1) { emit_mode_tsx(s, e.at, to); }
}
template <class Sink>
constexpr void handle(generator_state& s, event::transaction_end const& e, Sink& to) noexcept {
    bool const ends = s.tx_depth == 1;
    if (s.tx_depth != 0) { --s.tx_depth; }
    s.ip = e.next;
    if (ends) { emit_mode_tsx(s, e.at, to); }
}
template <class Sink>
constexpr void handle(generator_state& s, event::transaction_abort const& e, Sink& to) noexcept {
    control_transfer how{.to = e.to};
    how.from = s.packet_ip(e.at);
    how.has_fup = true;
    how.aborts_transaction = true;
    s.tx_depth = 0;
    transfer(s, to, how, s.code);
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/packets/msr_access.hpp ----

/// Accesses to MSRs, which can start and end tracing, and writes of other registers.
///
/// Source: GEN-020..024, GEN-087, GEN-124, GEN-161, GEN-162, GEN-180..185, GEN-236, GEN-240..243,
///         GEN-291, GEN-305.
namespace ptspec::engine::detail {

/// Generates the packets after TraceEn rose, by the instruction at `at` in the form of packets. The
/// last IP is kept. Source: GEN-011, GEN-107, GEN-162, GEN-176, GEN-180..182, GEN-236.
template <class Sink>
constexpr void begin_trace(generator_state& s, access::effect const& result, uint64_t at, Sink& to,
                           bool by_rsm) noexcept {
    uint64_t const count = s.msrs.status.get<access::ia32_rtit_status::PacketByteCnt>();
    s.writer = {.last_ip = s.writer.last_ip, .bytes = s.writer.bytes};
    s.view = {.in_tx = s.tx_depth != 0, .count_start = s.writer.bytes - count};
    s.in_overflow = s.overflow_requested = false;
    s.deferred_ovf = deferred_ovf::none;
    apply_ctl(s);
    if (!s.trigger_en() && !result.trace_stop) { return; }
    auto const now = s.enables();
    bool const psb = result.psb == access::psb_plus::yes ||
                     (result.psb == access::psb_plus::may && s.options.psb_on_every_enable);
    bool const psb_last = psb && s.options.psb_after_pge && now.packet();
    uint64_t const next = s.packet_ip(s.ip);
    emit(s, to, [&](auto& batch) {
        if (!psb) {
            add_timing(s, batch);
        } else if (!psb_last) {
            bool const filter = now.filter && s.options.psb_of_enable_has_fup;
            add_psb(s, batch, {now.trigger, now.context, filter, now.branch}, at);
            batch.begin_context();  // the IP of TIP.PGE is not compressed by that of the PSB+
        }
        if (by_rsm && s.ctl<ctl::EventEn>() && now.context) {
            add_cfe(batch, {packet::cfe_type::RSM, 0, fup_policy::never}, 0, now);
        }
        if (now.packet()) {
            if (s.options.psb_before_pge) { add_psb(s, batch, now); }
            add_changed_mode_exec(s, batch);
            batch.template add_ip<packet::tip_pge>(next);
        }
        if (psb_last) { add_psb(s, batch, now); }
        if (result.trace_stop) { batch.add(packet::tracestop{}); }
    });
}
/// Generates the packets when TraceEn is cleared, for any reason. The MSRs are `next` afterwards;
/// PacketByteCnt includes these packets. Source: GEN-124, GEN-183, GEN-260, GEN-273, REG-061.
template <class Sink>
constexpr void end_trace(generator_state& s, Sink& to, control_transfer const& how,
                         access::msr_state const& next) noexcept {
    using status = access::ia32_rtit_status;
    auto const before = s.enables();
    if (before.trigger) {
        emit(s, to, [&](auto& batch) {
            if (records_events(s, before, before)) { add_cfe(batch, how.cfe, how.from, before); }
            if (before.packet() && how.has_fup) { batch.template add_ip<packet::fup>(how.from); }
            if (how.pip.raw != 0 && s.ctl<ctl::OS>()) { add_pip(s, batch, how.pip); }
            if (before.packet()) { batch.add(packet::tip_pgd{}); }
            batch.flush();
            if (s.options.end_alignment != 0) { batch.align_end(s.options.end_alignment); }
        });
        if (s.in_overflow) { s.deferred_ovf = deferred_ovf::ovf; }
    }
    s.overflow_requested = false;
    auto const last = status_now(s);
    s.msrs = next;
    s.msrs.status = next.status.with(
        status::PacketByteCnt{wrapped{last.get<status::PacketByteCnt>()}},
        status::PendPSB{last.get<status::PendPSB>()});
}
/// An instruction at `at` wrote MSRs: TraceEn may have risen or fallen.
template <class Sink>
constexpr void apply_effect(generator_state& s, access::effect const& result, uint64_t at,
                            uint64_t next, Sink& to) noexcept {
    bool const was_on = s.ctl<ctl::TraceEn>();
    bool const is_on = result.state.ctl.get<ctl::TraceEn>();
    if (was_on && !is_on) {
        end_trace(s, to, {.from = s.packet_ip(at), .has_fup = true}, result.state);
    } else {
        s.msrs = result.state;
    }
    s.ip = next;
    if (!was_on && is_on) {
        begin_trace(s, result, s.packet_ip(at), to, false);
    } else {
        apply_ctl(s);
    }
}

/// Writes IA32_RTIT_CTL between two instructions of the code that executes, at any CPL.
template <class Sink>
[[nodiscard]] constexpr auto start(generator_state& s, access::ia32_rtit_ctl value,
                                   Sink& to) noexcept -> access::verdict {
    auto const on = value.with(ctl::TraceEn{true});
    auto const checked = access::check_write(s.caps, s.msrs, ctl::address, on.raw, 0,
                                             s.options.policy);
    if (!checked) { return checked; }
    apply_effect(s, access::detail::write_ctl(s.caps, s.msrs, on, s.context_at(s.ip)), s.ip, s.ip,
                 to);
    complete_event(s, to);
    return checked;
}
/// Clears TraceEn between two instructions.
template <class Sink>
constexpr void stop(generator_state& s, Sink& to) noexcept {
    if (!s.ctl<ctl::TraceEn>()) { return; }
    apply_effect(s, {.state = access::detail::disabled(s.msrs)}, s.ip, s.ip, to);
}

/// RDMSR. Source: REG-011, GEN-161.
[[nodiscard]] constexpr auto rdmsr(generator_state& s, uint32_t index) noexcept
    -> access::read_result {
    if (!s.options.msrs_lag) { s.msrs.status = status_now(s); }
    return access::read(s.caps, s.msrs, index, s.code.counted_cpl());
}
/// WRMSR by the instruction at `at`.
///
/// Errors: those of `access::check_write`; nothing has changed then.
/// Source: GEN-021, GEN-088, GEN-106, GEN-180..183.
template <class Sink>
[[nodiscard]] constexpr auto wrmsr(generator_state& s, uint32_t index, uint64_t value, uint64_t at,
                                   uint64_t next, Sink& to) noexcept -> access::verdict {
    auto const result = access::effect_of_write(s.caps, s.msrs, index, value, s.context_at(next),
                                                s.options.policy);
    if (!result) { return result.verdict; }
    apply_effect(s, result, at, next, to);
    complete_event(s, to);
    return result.verdict;
}
/// XRSTORS of component 8. Source: GEN-184, REG-143..146.
template <class Sink>
[[nodiscard]] constexpr auto xrstors(generator_state& s, access::xsave_pt_state const& image,
                                     uint64_t at, uint64_t next, Sink& to) noexcept
    -> access::xrstors_result {
    auto const result = access::xrstors(s.caps, s.msrs, image, s.context_at(next),
                                        s.options.policy);
    if (result) {
        apply_effect(s, result.effect, at, next, to);
        complete_event(s, to);
    }
    return result;
}
/// XRSTORS where XSTATE_BV[8] is 0. Source: REG-146.
[[nodiscard]] constexpr auto xrstors_init(generator_state& s, uint64_t next) noexcept
    -> access::xrstors_result {
    auto const result = access::xrstors_init(s.msrs);
    if (result) {
        s.msrs = result.effect.state;
        s.ip = next;
    }
    return result;
}

/// The TraceStop ranges are compared with the address of the MOV CR3, or with the next address.
/// Source: GEN-087, GEN-101, GEN-240..243.
template <class Sink>
constexpr void handle(generator_state& s, event::mov_cr3 const& e, Sink& to) noexcept {
    uint64_t const cr3 = e.cr3 & ~event::mov_cr3::keeps_translations;
    bool const has_pip = cr3 != s.code.cr3 || s.options.pip_for_same_cr3;
    s.code.cr3 = cr3;
    s.ip = e.next;
    control_transfer const how{.encoding = branch_encoding::none,
                               .to = e.next,
                               .pip = has_pip ? pip_of(s, s.code) : packet::pip{0}};
    transfer(s, to, how, s.packet_ip(s.options.mov_cr3_stops_at_next ? e.next : e.at));
}
template <class Sink>
constexpr void handle(generator_state& s, event::interrupt_flag const& e, Sink& to) noexcept {
    bool const changes = s.code.IF != e.IF;
    s.code.IF = e.IF;
    s.ip = e.next;
    if (!changes || !s.ctl<ctl::EventEn>() || !s.enables().packet()) { return; }
    emit(s, to, [&](auto& batch) {
        add_mode_exec(s, batch);
        batch.template add_ip<packet::fup>(s.packet_ip(e.next));
    });
}

/// Resets generate no packet. Source: GEN-291, REG-090..093.
constexpr void reset(generator_state& s, access::msr_state const& now,
                     execution_context const& after, uint64_t ip) noexcept {
    s.msrs = now;
    s.code = after;
    s.ip = ip;
    s.vmcs = no_vmcs;
    s.tx_depth = 0;
    s.view = {};
    s.in_overflow = s.overflow_requested = s.in_acm = false;
    s.deferred_ovf = deferred_ovf::none;
    s.shutdown_rule = rule::none;
    s.clocks.are_off = false;
    apply_ctl(s);
}
constexpr void warm_reset(generator_state& s, execution_context const& after,
                          uint64_t ip) noexcept {
    s.msrs.status = status_now(s);
    reset(s, access::warm_reset(s.caps, s.msrs), after, ip);
}
constexpr void cold_reset(generator_state& s, execution_context const& after,
                          uint64_t ip) noexcept {
    reset(s, access::cold_reset(), after, ip);
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/packets/vmx_smm.hpp ----

/// VMX, system management mode, measured launch.
///
/// Source: GEN-244, GEN-260..264, GEN-270..279, GEN-287, GEN-288.
namespace ptspec::engine::detail {

/// A VM transition, which may load IA32_RTIT_CTL. Source: GEN-270..278, REG-010.
template <class Sink>
constexpr void vm_transition(generator_state& s, Sink& to, control_transfer how,
                             execution_context const& after, event::ctl_load const& loads,
                             access::write_path path) noexcept {
    s.ctl_load_verdict = {};
    if (loads.has_value) {
        s.ctl_load_verdict = access::check_write_on(path, s.caps, s.msrs, ctl::address,
                                                    loads.value.raw, s.options.policy);
    }
    bool const is_loaded = loads.has_value && s.ctl_load_verdict;
    bool const was_on = s.ctl<ctl::TraceEn>();
    bool const is_on = is_loaded ? loads.value.get<ctl::TraceEn>() : was_on;
    if (was_on == is_on) {
        if (is_loaded && !is_on) { s.msrs.ctl = loads.value; }
        transfer(s, to, how, after);
        return apply_ctl(s);
    }
    auto const context = s.context_at(after, how.to);
    auto const result = access::detail::write_ctl(s.caps, s.msrs, loads.value, context);
    if (was_on) {
        // The PIP, which precedes the clearing of TraceEn, depends on the new context.
        bool const in_context = access::context_en(s.msrs.ctl, s.msrs.cr3_match, context);
        if (!in_context) { how.pip = packet::pip{0}; }
        end_trace(s, to, how, result.state);
    } else {
        s.msrs = result.state;
    }
    s.code = after;
    s.ip = how.to;
    if (is_on) {
        begin_trace(s, result, s.packet_ip(s.ip), to, false);
    } else {
        apply_ctl(s);
    }
}

template <class Sink>
constexpr void handle(generator_state& s, event::vm_exit const& e, Sink& to) noexcept {
    using packet::cfe_type;
    control_transfer how{.to = e.to};
    how.from = s.packet_ip(e.from);
    how.has_fup = true;
    if (!s.concealment.exits) {
        how.pip = pip_of(e.after, false);
        how.cfe = {e.is_vectored ? cfe_type::VMEXIT_INTR : cfe_type::VMEXIT,
                   e.is_vectored ? e.vector : uint8_t{0},
                   fup_policy::if_no_other,
                   {true, packet::evd_type::VMXQ, e.qualification},
                   {true, packet::evd_type::VMXR, e.reason}};
        if (e.to_stm) { how.vmcs = vmcs_of(e.vmcs); }
    }
    if (e.to_stm) { s.vmcs = e.vmcs; }
    s.tx_depth = 0;
    vm_transition(s, to, how, e.after, e.loads, access::write_path::vm_exit_msr_load_list);
}
template <class Sink>
constexpr void handle(generator_state& s, event::vm_entry const& e, Sink& to) noexcept {
    control_transfer how{.to = e.to};
    how.from = s.packet_ip(e.at);
    if (!s.concealment.entries) {
        how.pip = pip_of(s, e.after);
        how.cfe = {packet::cfe_type::VMENTRY, 0, fup_policy::always};
        if (e.from_stm) { how.vmcs = vmcs_of(e.vmcs); }
    }
    if (e.from_stm) { s.vmcs = e.vmcs; }
    vm_transition(s, to, how, e.after, e.loads, access::write_path::vm_entry_msr_load_list);
}
template <class Sink>
constexpr void handle(generator_state& s, event::vm_entry_failure const& e, Sink& to) noexcept {
    control_transfer how{.to = e.to};
    if (e.loaded_host_state && !s.concealment.exits) { how.pip = pip_of(e.after, false); }
    transfer(s, to, how, e.loaded_host_state ? e.after : s.code);
}
template <class Sink>
constexpr void handle(generator_state& s, event::vmptrld const& e, Sink& to) noexcept {
    s.vmcs = e.vmcs;
    s.ip = e.next;
    auto const now = s.enables();
    if (now.trigger && now.context && s.caps.vmx() != cpu::vmx_support::none) {
        emit(s, to, [&](auto& batch) { batch.add(vmcs_of(s.vmcs)); });
    }
}
template <class Sink>
constexpr void handle(generator_state& s, event::vmclear const& e, Sink& /*to*/) noexcept {
    s.vmcs = no_vmcs;
    s.ip = e.next;
}
template <class Sink>
constexpr void handle(generator_state& s, event::vmxon const& e, Sink& to) noexcept {
    apply_effect(s, {.state = access::vmxon(s.caps, s.msrs)}, e.at, e.next, to);
}
template <class Sink>
constexpr void handle(generator_state& s, event::vmxoff const& e, Sink& /*to*/) noexcept {
    s.msrs = access::vmxoff(s.msrs);
    s.vmcs = no_vmcs;
    s.ip = e.next;
}

template <class Sink>
constexpr void handle(generator_state& s, event::smi const& e, Sink& to) noexcept {
    if (s.msrs.in_smm) { return; }  // it stays pending
    end_trace(s, to, {.from = s.packet_ip(e.next), .has_fup = true, .cfe = {packet::cfe_type::SMI}},
              access::smi(s.msrs));
    s.code = e.after;
    s.ip = e.to;
    s.tx_depth = 0;
    refresh_cache(s);
}
template <class Sink>
constexpr void handle(generator_state& s, event::rsm const& e, Sink& to) noexcept {
    auto const context = s.context_at(e.after, e.to);
    auto const result = access::rsm(s.caps, s.msrs, context, s.options.policy);
    if (result.outcome == access::rsm_outcome::undefined_opcode) { return; }
    if (!result) {
        s.shutdown_rule = result.why;
        return;
    }
    s.code = e.after;
    s.ip = e.to;
    s.msrs = result.effect.state;
    if (!s.ctl<ctl::TraceEn>()) { return refresh_cache(s); }
    begin_trace(s, result.effect, s.packet_ip(s.ip), to, true);
}
template <class Sink>
constexpr void handle(generator_state& s, event::measured_launch const&, Sink& to) noexcept {
    end_trace(s, to, {}, access::measured_launch(s.msrs));
    refresh_cache(s);
}
template <class Sink>
constexpr void handle(generator_state& s, event::acm_begin const&, Sink& to) noexcept {
    if (s.in_acm) { return; }
    s.msrs.status = status_now(s);
    emit(s, to, [](auto& batch) { batch.flush(); });
    s.in_acm = true;
    s.trace_en_after_acm = s.ctl<ctl::TraceEn>();
    s.msrs = access::acm_entry(s.msrs);
    refresh_cache(s);
}
template <class Sink>
constexpr void handle(generator_state& s, event::acm_end const& e, Sink& to) noexcept {
    if (!s.in_acm) { return; }
    s.in_acm = false;
    s.ip = e.next;
    s.msrs = access::acm_exit(s.caps, s.msrs, s.trace_en_after_acm, s.context_at(e.next));
    apply_ctl(s);
    if (!s.trigger_en()) { return; }
    emit(s, to, [&](auto& batch) { add_timing(s, batch); });
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/packets/value.hpp ----

/// PTWRITE, and PEBS records that are output to the trace.
///
/// Source: GEN-300, GEN-320..322.
namespace ptspec::engine::detail {

template <class Sink>
constexpr void handle(generator_state& s, event::ptwrite const& e, Sink& to) noexcept {
    s.ip = e.next;
    auto const now = s.enables();
    if (!now.trigger || !now.context || !now.filter || !s.ctl<ctl::PTWEn>()) { return; }
    using packet::ptw;
    bool const has_ip = s.ctl<ctl::FUPonPTW>();
    uint64_t const value = e.is_64_bit ? e.value : e.value & low_bits(32);
    emit(s, to, [&](auto& batch) {
        batch.add(ptw{}
                      .with(ptw::PayloadBytes{wrapped{uint64_t{e.is_64_bit}}}, ptw::IP{has_ip})
                      .with_payload(value));
        if (has_ip) { batch.template add_ip<packet::fup>(s.packet_ip(e.at)); }
    });
}

/// A group of items, in parts that fit into a batch. Source: GEN-320, GEN-321.
template <class Sink>
constexpr void emit_group(generator_state& s, event::pebs_group const& which, Sink& to) noexcept {
    constexpr size_t items_of_a_batch = 16;
    using packet::bbp;
    using packet::bip;
    size_t emitted = 0;
    do {
        size_t const end = which.count - emitted < items_of_a_batch ? which.count
                                                                    : emitted + items_of_a_batch;
        emit(s, to, [&](auto& batch) {
            if (emitted == 0) {
                batch.add(bbp{}.with(bbp::type{wrapped{uint64_t{which.type}}},
                                     bbp::SZ{which.items_of_4}));
            }
            for (size_t i = emitted; i < end; ++i) {
                auto const& item = which.items[i];
                uint64_t const value = which.items_of_4 ? item.value & low_bits(32) : item.value;
                batch.add(bip{}.with(bip::id{wrapped{uint64_t{item.id}}}).with_payload(value));
            }
        });
        emitted = end;
    } while (emitted < which.count && !s.in_overflow);
}
/// Source: GEN-320..322.
template <class Sink>
constexpr void handle(generator_state& s, event::pebs_record const& e, Sink& to) noexcept {
    if (!s.trigger_en() || e.count == 0) { return; }
    for (size_t i = 0; i < e.count; ++i) { emit_group(s, e.groups[i], to); }
    bool const has_ip = s.enables().context;
    emit(s, to, [&](auto& batch) {
        batch.add(packet::bep{}.with(packet::bep::IP{has_ip}));
        if (has_ip) { batch.template add_ip<packet::fup>(s.packet_ip(e.ip)); }
    });
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/packets/power.hpp ----

/// C-states and clock stops. The core clock is off after their packets, until the wake.
///
/// Source: GEN-200, GEN-205, GEN-210, GEN-310..318.
namespace ptspec::engine::detail {

[[nodiscard]] constexpr auto records_power(generator_state const& s) noexcept -> bool {
    return s.trigger_en() && s.ctl<ctl::PwrEvtEn>();
}
constexpr void add_pwre(auto& batch, event::c_state thread, bool by_hardware) noexcept {
    using packet::pwre;
    batch.add(pwre{}.with(pwre::HW{by_hardware}, pwre::substate{wrapped{uint64_t{thread.substate}}},
                          pwre::state{wrapped{uint64_t{thread.state}}}));
}
constexpr void add_pwrx(auto& batch, event::wake const& e) noexcept {
    using packet::pwrx;
    batch.add(pwrx{}.with(pwrx::last{wrapped{uint64_t{e.last}}},
                          pwrx::deepest{wrapped{uint64_t{e.deepest}}},
                          pwrx::reason{wrapped{uint64_t{underlying(e.reason)}}}));
}
/// Source: GEN-317.
constexpr void add_exstop(generator_state const& s, auto& batch, uint64_t from) noexcept {
    bool const has_ip = s.enables().context;
    batch.add(packet::exstop{}.with(packet::exstop::IP{has_ip}));
    if (has_ip) { batch.template add_ip<packet::fup>(s.packet_ip(from)); }
}

template <class Sink>
constexpr void handle(generator_state& s, event::mwait const& e, Sink& to) noexcept {
    s.ip = e.next;
    if (e.thread.state == 0 && e.thread.substate == 0) { return; }
    if (records_power(s)) {
        emit(s, to, [&](auto& batch) {
            using packet::mwait;
            if (s.enables().context && !e.is_io && !e.is_pending) {
                batch.add(mwait{}.with(mwait::hints{wrapped{uint64_t{e.hints}}},
                                       mwait::ext{wrapped{uint64_t{e.ext}}}));
            }
            add_pwre(batch, e.thread, false);
            add_exstop(s, batch, e.at);
        });
    }
    s.clocks.are_off = true;
}
template <class Sink>
constexpr void handle(generator_state& s, event::halt const& e, Sink& to) noexcept {
    auto const now = s.enables();
    s.ip = e.next;
    if (e.is_shutdown && records_events(s, now, now)) {
        emit(s, to, [&](auto& batch) {
            add_cfe(batch, {packet::cfe_type::SHUTDOWN, 0, fup_policy::always}, s.packet_ip(e.from),
                    now);
        });
    }
    if (records_power(s)) {
        emit(s, to, [&](auto& batch) {
            add_pwre(batch, {1, 0}, false);
            add_exstop(s, batch, e.from);
        });
    }
    s.clocks.are_off = true;
}
template <class Sink>
constexpr void handle(generator_state& s, event::duty_cycle const& e, Sink& to) noexcept {
    if (records_power(s)) {
        emit(s, to, [&](auto& batch) {
            add_pwre(batch, {e.state, 0}, true);
            add_exstop(s, batch, e.next);
        });
    }
    s.clocks.are_off = true;
}
template <class Sink>
constexpr void handle(generator_state& s, event::wake const& e, Sink& to) noexcept {
    if (!s.clocks.are_off) { return; }
    s.clocks.are_off = false;
    if (!s.trigger_en()) { return; }
    emit(s, to, [&](auto& batch) {
        add_timing(s, batch, e.mtc);
        if (records_power(s)) { add_pwrx(batch, e); }
    });
}
/// In a C-state the clock is off already: GEN-312.
template <class Sink>
constexpr void handle(generator_state& s, event::clock_stop const& e, Sink& to) noexcept {
    if (s.clocks.are_off) { return; }
    if (records_power(s)) {
        emit(s, to, [&](auto& batch) { add_exstop(s, batch, e.next); });
    }
    if (e.aligned_to != 0 && s.trigger_en()) {
        emit(s, to, [&](auto& batch) {
            batch.flush();
            batch.align_end(e.aligned_to);
        });
    }
    s.clocks.are_off = true;
}
template <class Sink>
constexpr void handle(generator_state& s, event::clock_resume const& e, Sink& to) noexcept {
    if (!s.clocks.are_off) { return; }
    s.clocks.are_off = false;
    if (s.trigger_en()) {
        emit(s, to, [&](auto& batch) { add_timing(s, batch, e.mtc); });
    }
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/packets/time.hpp ----

/// Time: cycles, MTC, CBR.
///
/// Source: GEN-200..204, GEN-210, GEN-217, GEN-220.
namespace ptspec::engine::detail {

[[nodiscard]] constexpr auto count(generator_state const& s, event::cycles const& e) noexcept
    -> counted_cycles {
    return count_cycles(s.writer.cycles, e.passed, s.options.cycle_counter_bits,
                        s.in_overflow || !s.ctl<ctl::CYCEn>());
}
/// Counts cycles after which no CYC is due. False if one is.
[[nodiscard]] constexpr auto try_fast_path(generator_state& s, event::cycles const& e) noexcept
    -> bool {
    if (!s.trigger_en() || s.clocks.are_off) { return true; }
    auto const counted = count(s, e);
    if (!counted.guard) { s.writer.cycles = counted.cycles; }
    return !counted.guard;
}

template <class Sink>
constexpr void handle(generator_state& s, event::cycle_guard const&, Sink& to) noexcept {
    if (!s.trigger_en() || !s.ctl<ctl::CYCEn>() || s.writer.cycles == 0) { return; }
    emit(s, to, [](auto& batch) { batch.add_cycles(); });
}
template <class Sink>
constexpr void handle(generator_state& s, event::cycles const& e, Sink& to) noexcept {
    s.writer.cycles = count(s, e).cycles;
    handle(s, event::cycle_guard{}, to);
}
template <class Sink>
constexpr void handle(generator_state& s, event::unaligned_cyc const&, Sink& /*to*/) noexcept {
    s.writer.cyc_crosses = true;
}
/// Each MTC is an event of its own, after which a PSB+ may be due: the clocks run from one to the
/// next. Source: GEN-203, GEN-206.
template <class Sink>
constexpr void handle(generator_state& s, event::time const& e, Sink& to) noexcept {
    event::cycles const cycles{e.cycles};
    if (!try_fast_path(s, cycles)) {
        handle(s, cycles, to);
        complete_event(s, to);
    }
    auto const freq = static_cast<unsigned>(s.ctl<ctl::MTCFreq>());
    auto const due = s.clocks.until(e.art, freq);
    bool const generates = s.trigger_en() && s.ctl<ctl::MTCEn>() && !s.clocks.are_off;
    uint64_t const tsc_per_tick = due.count != 0 ? (e.tsc - s.clocks.tsc) / (e.art - s.clocks.art)
                                                 : 0;
    for (uint64_t i = 0; generates && i < due.count; ++i) {
        uint64_t const art = (due.first + i) << freq;
        s.clocks.run_to(art, e.tsc - tsc_per_tick * (e.art - art));
        emit(s, to, [&](auto& batch) { batch.add(due.packet(i)); });
        complete_event(s, to);
    }
    s.clocks.run_to(e.art, e.tsc);
}
template <class Sink>
constexpr void handle(generator_state& s, event::ratio const& e, Sink& to) noexcept {
    s.clocks.core_to_bus = e.core_to_bus;
    if (s.trigger_en() && !s.clocks.are_off) {
        emit(s, to, [&](auto& batch) { batch.add(cbr_of(s)); });
    }
}

}  // namespace ptspec::engine::detail

// ---- ptspec/engine/packets/generator.hpp ----

/// Generates packets from events: the dispatch, and a generator for the caller's own sink.
namespace ptspec::engine {

/// An event: a struct of `engine::event` that a `handle` accepts.
template <class Event, class Sink>
concept event_for = requires(generator_state& state, Event const& e, Sink& sink) {
    detail::handle(state, e, sink);
};

namespace detail {

/// Handles an event, and completes it. The state's cache decides which events take the fast path.
template <class Event, class Sink>
[[gnu::always_inline]]  // without it branches take 1 % more instructions (clang 19)
constexpr void
generate(generator_state& s, Event const& e, Sink& to) noexcept {
    if constexpr (requires { try_fast_path(s, e); }) {
        if (try_fast_path(s, e)) { return; }
    }
    handle(s, e, to);
    complete_event(s, to);
}

/// The state of a processor that has executed for a while.
[[nodiscard]] constexpr auto make_generator_state(cpu::capabilities const& caps,
                                                  access::msr_state const& msrs,
                                                  execution_context const& code, uint64_t ip,
                                                  model_options const& options) noexcept
    -> generator_state {
    generator_state s{.caps = caps, .options = options, .msrs = msrs, .code = code, .ip = ip};
    s.view.count_start = 0 - msrs.status.get<access::ia32_rtit_status::PacketByteCnt>();
    if (s.trigger_en()) { s.view.mode = mode_exec_of(s).raw; }
    apply_ctl(s);
    return s;
}

}  // namespace detail

/// Generates the packets of a logical processor from its events.
///
/// A value that holds the MSRs of Intel PT and the context that executes. Each operation appends
/// its packets to a sink. If the sink has no room for them an overflow begins, and packets are lost
/// until `end_overflow`.
///
/// Output is not modelled, nor are the MSRs that output changes: `trace_unit` adds both.
///
/// Source: SDM vol. 3, "Packet Generation Scenarios", "Trace Packets and Data Types"; GEN-001..342.
class generator {
public:
    /// Without options it has those of the processor's kind.
    constexpr generator(cpu::capabilities const& caps, access::msr_state const& msrs,
                        execution_context const& code, uint64_t ip) noexcept
        : generator{caps, msrs, code, ip, options_of(caps)} {}
    constexpr generator(cpu::capabilities const& caps, access::msr_state const& msrs,
                        execution_context const& code, uint64_t ip,
                        model_options const& options) noexcept
        : state_{detail::make_generator_state(caps, msrs, code, ip, options)} {}

    /// The state of packet generation. PacketByteCnt and PendPSB of `msrs.status` are as of the
    /// last access to an MSR.
    [[nodiscard]] constexpr auto state() const noexcept -> generator_state const& { return state_; }

    /// Handles an event.
    template <class Event, trace::packet_sink Sink>
        requires event_for<Event, Sink>
    constexpr void on(Event const& e, Sink& to) noexcept {
        detail::generate(state_, e, to);
    }
    /// Ends an overflow that `event::overflow` did not request. The sink must have room.
    template <trace::packet_sink Sink>
    constexpr void end_overflow(Sink& to) noexcept {
        detail::end_overflow(state_, to);
    }

    /// Starts tracing at the next instruction, as if a WRMSR wrote `value`, with TraceEn = 1, just
    /// before it: for an emulator that traces code which has no such WRMSR, such as user code.
    ///
    /// Errors: those of `access::check_write` at CPL 0; nothing has changed then.
    /// Source: GEN-162, GEN-180..182.
    template <trace::packet_sink Sink>
    [[nodiscard]] constexpr auto start(access::ia32_rtit_ctl value, Sink& to) noexcept
        -> access::verdict {
        return detail::start(state_, value, to);
    }
    /// Ends tracing before the next instruction, and appends the gathered branches. Without effect
    /// if TraceEn is 0. Source: GEN-124, GEN-183.
    template <trace::packet_sink Sink>
    constexpr void stop(Sink& to) noexcept {
        detail::stop(state_, to);
    }

    /// RDMSR. Source: REG-011, GEN-161.
    [[nodiscard]] constexpr auto rdmsr(uint32_t index) noexcept -> access::read_result {
        return detail::rdmsr(state_, index);
    }
    /// WRMSR by the instruction at `at`.
    ///
    /// Errors: those of `access::check_write`; nothing has changed then.
    /// Source: GEN-021, GEN-088, GEN-106, GEN-180..183.
    template <trace::packet_sink Sink>
    [[nodiscard]] constexpr auto wrmsr(uint32_t index, uint64_t value, uint64_t at, uint64_t next,
                                       Sink& to) noexcept -> access::verdict {
        return detail::wrmsr(state_, index, value, at, next, to);
    }
    /// XRSTORS of component 8. Source: GEN-184, REG-143..146.
    template <trace::packet_sink Sink>
    [[nodiscard]] constexpr auto xrstors(access::xsave_pt_state const& image, uint64_t at,
                                         uint64_t next, Sink& to) noexcept
        -> access::xrstors_result {
        return detail::xrstors(state_, image, at, next, to);
    }
    /// XRSTORS where XSTATE_BV[8] is 0. Source: REG-146.
    [[nodiscard]] constexpr auto xrstors_init(uint64_t next) noexcept -> access::xrstors_result {
        return detail::xrstors_init(state_, next);
    }

    /// Source: GEN-291, REG-090..093.
    constexpr void warm_reset(execution_context const& after, uint64_t ip) noexcept {
        detail::warm_reset(state_, after, ip);
    }
    constexpr void cold_reset(execution_context const& after, uint64_t ip) noexcept {
        detail::cold_reset(state_, after, ip);
    }

    /// Source: GEN-278.
    constexpr void conceal(vmx_concealment const& what) noexcept { state_.concealment = what; }
    /// Sets the clocks without timing packets for the time between.
    constexpr void set_clocks(clocks const& now) noexcept { state_.clocks = now; }

private:
    generator_state state_;
};

}  // namespace ptspec::engine

// ---- ptspec/engine/access_result.hpp ----

/// The results of accesses to the MSRs of a trace unit, whose ports may fail.
namespace ptspec::engine {

enum class access_outcome : uint8_t {
    done,
    done_but_port_failed,  ///< it took effect, but not all bytes of trace were stored
    not_done_port_failed,  ///< earlier bytes could not be stored: retry the access
    general_protection,    ///< #GP(0), nothing changed
    not_covered,           ///< not an MSR of Intel PT: the caller's own code handles it
};

/// The result of an access. Does not convert to bool: an access that took effect must not be
/// retried, even if a port failed.
///
/// Errors: `why` is the rule of a #GP, else `none`. `fault` is the fault of the port, as
///         `trace_unit::on` returns it; it may be set with a #GP, too.
struct [[nodiscard]] access_result {
    access_outcome what = access_outcome::done;
    rule why = rule::none;
    port_fault fault{};

    /// True if the access changed the registers as specified.
    [[nodiscard]] constexpr auto took_effect() const noexcept -> bool {
        return what == access_outcome::done || what == access_outcome::done_but_port_failed;
    }
};

/// The result of XSAVES: `done` or `not_done_port_failed`.
struct [[nodiscard]] xsaves_result : access_result {
    access::xsave_pt_state image{};  ///< the stored state, if it took effect
};

/// The result of XRSTORS.
struct [[nodiscard]] xrstors_result : access_result {
    uint32_t refused_msr = 0;       ///< for a #GP: the MSR whose quadword was refused, or 0
    rule why_refused = rule::none;  ///< the rule that a WRMSR of that quadword breaks
};

namespace detail {

using namespace ptspec::detail;

/// The result of an access with this verdict, after which a port may have failed.
constexpr auto access_result_of(access::verdict const& outcome, port_fault fault) noexcept
    -> access_result {
    switch (outcome.what) {
        case access::outcome::general_protection:
            return {access_outcome::general_protection, outcome.why, fault};
        case access::outcome::not_covered: return {access_outcome::not_covered, rule::none, fault};
        case access::outcome::allowed: break;
    }
    return {fault ? access_outcome::done_but_port_failed : access_outcome::done, rule::none, fault};
}
/// The result of an access that did not begin because a port failed.
constexpr auto not_started(port_fault fault) noexcept -> access_result {
    return {access_outcome::not_done_port_failed, rule::none, fault};
}

}  // namespace detail

}  // namespace ptspec::engine

// ---- ptspec/engine/trace_unit.hpp ----

namespace ptspec::engine {

namespace detail {

struct unit_codec;

}  // namespace detail

/// The trace unit of a logical processor: turns events into packets in memory, status bits and
/// interrupts.
///
/// A value. Memory, fabric and interrupts are ports, passed with each operation; see `output` for
/// what they may do. Packets pass through a buffer of `Depth` bytes; after each operation
/// `model_options::drained_at_once` of them are stored. A full buffer begins an overflow.
///
/// If a port fails, no byte is lost or repeated: bytes that were not stored stay in the buffer.
/// `on` returns the fault, and the operation has taken effect. Only an operation that clears
/// TraceEn must store all bytes: until it has, the unit `is_flushing`, and each operation first
/// tries to store them again; if that fails the operation does not take effect.
///
/// Shape:  at most 2 KB besides the buffer.
/// Source: SDM vol. 3, "Intel Processor Trace"; GEN-003, GEN-004, GEN-183, GEN-184, GEN-225..232,
///         OUT-132, PRG-061, PRG-110.
template <size_t Depth = 1024>
class trace_unit {
    static_assert(Depth >= trace::writer_state::max_bytes,
                  "the buffer holds the packets of any operation");
    using ctl = access::ia32_rtit_ctl;

public:
    /// A processor after a cold reset. Without options it has those of its kind.
    constexpr explicit trace_unit(cpu::capabilities const& caps, execution_context const& code = {},
                                  uint64_t ip = 0) noexcept
        : trace_unit{caps, code, ip, options_of(caps)} {}
    constexpr trace_unit(cpu::capabilities const& caps, execution_context const& code, uint64_t ip,
                         model_options const& options) noexcept
        : trace_unit{caps, access::msr_state{}, code, ip, options} {}
    /// A processor that has executed for a while. If TraceEn is 1, output begins with the first
    /// operation.
    constexpr trace_unit(cpu::capabilities const& caps, access::msr_state const& msrs,
                         execution_context const& code, uint64_t ip) noexcept
        : trace_unit{caps, msrs, code, ip, options_of(caps)} {}
    constexpr trace_unit(cpu::capabilities const& caps, access::msr_state const& msrs,
                         execution_context const& code, uint64_t ip,
                         model_options const& options) noexcept
        : state_{detail::make_generator_state(caps, msrs, code, ip, options)},
          pending_{state_.ctl<ctl::TraceEn>() ? pending_action::start_output
                                              : pending_action::none} {}

    /// The state of packet generation. The output MSRs and the counters of IA32_RTIT_STATUS in it
    /// are not current: use `msrs`.
    [[nodiscard]] constexpr auto state() const noexcept -> generator_state const& { return state_; }
    /// The next instruction.
    [[nodiscard]] constexpr auto ip() const noexcept -> uint64_t { return state_.ip; }
    /// The MSRs, all current.
    [[nodiscard]] constexpr auto msrs() const noexcept -> access::msr_state {
        auto now = state_.msrs;
        now.status = detail::status_now(state_);
        if (output_active_) { output_.sync(now); }
        return now;
    }
    [[nodiscard]] constexpr auto total() const noexcept -> totals const& { return total_; }
    /// The bytes that are not stored yet.
    [[nodiscard]] constexpr auto buffered() const noexcept -> byte_queue<Depth> const& {
        return queue_;
    }
    /// True if TraceEn was cleared and bytes are not stored yet, because a port failed.
    [[nodiscard]] constexpr auto is_flushing() const noexcept -> bool {
        return pending_ == pending_action::flush || pending_ == pending_action::save;
    }
    /// The rule by which output ended by itself since TraceEn rose; `none` if it has not.
    [[nodiscard]] constexpr auto why_ended() const noexcept -> rule { return output_.why(); }

    /// Handles an event: appends its packets to the buffer, and stores bytes of the buffer.
    template <class Event, memory_port Memory>
        requires event_for<Event, byte_queue<Depth>>
    constexpr auto on(Event const& e, Memory& memory) noexcept -> port_fault {
        if constexpr (requires { detail::try_fast_path(state_, e); }) {
            // With these three attributes branches are 4 % faster (g++ 12).
            if (pending_ == pending_action::none && detail::try_fast_path(state_, e)) [[likely]] {
                return queue_.empty() ? port_fault{} : drain_after_operation(memory);
            }
        }
        return on_slow_path(e, memory);
    }
    template <class Other, class Memory>
    void on(Other const&, Memory&) = delete;  // an event is a struct of engine::event

    /// Starts tracing at the next instruction, as if a WRMSR wrote `value`, with TraceEn = 1, just
    /// before it: for an emulator that traces code which has no such WRMSR, such as user code.
    ///
    /// Errors: those of `access::check_write` at CPL 0; nothing has changed then.
    /// Source: GEN-162, GEN-180..182.
    template <memory_port Memory>
    constexpr auto start(access::ia32_rtit_ctl value, Memory& memory) noexcept -> access_result {
        if (auto const fault = complete_pending(memory)) { return detail::not_started(fault); }
        auto const verdict = detail::start(state_, value, queue_);
        return detail::access_result_of(verdict, drain_after_operation(memory));
    }
    /// Ends tracing before the next instruction, and stores all bytes. Without effect if TraceEn is
    /// 0. Source: GEN-124, GEN-183.
    template <memory_port Memory>
    constexpr auto stop(Memory& memory) noexcept -> port_fault {
        if (auto const fault = complete_pending(memory)) { return fault; }
        detail::stop(state_, queue_);
        return drain_after_operation(memory);
    }

    /// RDMSR at the CPL of the code that executes. Source: REG-011, PRG-034.
    [[nodiscard]] constexpr auto rdmsr(uint32_t index) noexcept -> access::read_result {
        bool const lags = state_.options.msrs_lag && state_.ctl<ctl::TraceEn>();
        if (output_active_ && !lags) { output_.sync(state_.msrs); }
        return detail::rdmsr(state_, index);
    }
    /// WRMSR by the instruction at `at`.
    template <memory_port Memory>
    constexpr auto wrmsr(uint32_t index, uint64_t value, uint64_t at, uint64_t next,
                         Memory& memory) noexcept -> access_result {
        if (auto const fault = complete_pending(memory)) { return detail::not_started(fault); }
        auto const verdict = detail::wrmsr(state_, index, value, at, next, queue_);
        return detail::access_result_of(verdict, drain_after_operation(memory));
    }
    /// XSAVES of component 8 by the instruction at `at`. If a port fails nothing is stored, and
    /// TraceEn is 0: retry it, and it stores what the first attempt would have stored.
    ///
    /// Source: GEN-184, REG-142, PRG-110.
    template <memory_port Memory>
    constexpr auto xsaves(uint64_t at, uint64_t next, Memory& memory) noexcept -> xsaves_result {
        bool const is_repeated = pending_ == pending_action::save;
        bool const was_on = is_repeated || state_.ctl<ctl::TraceEn>();
        if (auto const fault = complete_pending(memory)) { return {detail::not_started(fault)}; }
        if (!is_repeated) {
            detail::apply_effect(state_, {.state = access::detail::disabled(state_.msrs)}, at, next,
                                 queue_);
            if (auto const fault = drain_after_operation(memory)) {
                pending_ = pending_action::save;
                return {detail::not_started(fault)};
            }
        }
        auto before = state_.msrs;
        if (was_on) { before.ctl = ctl_at_start_; }
        return {{}, access::xsaves(state_.caps, before).image};
    }
    /// XRSTORS of component 8. Source: GEN-184, REG-143..146.
    template <memory_port Memory>
    constexpr auto xrstors(access::xsave_pt_state const& image, uint64_t at, uint64_t next,
                           Memory& memory) noexcept -> xrstors_result {
        if (auto const fault = complete_pending(memory)) { return {detail::not_started(fault)}; }
        auto const loaded = detail::xrstors(state_, image, at, next, queue_);
        return {detail::access_result_of(loaded.effect.verdict, drain_after_operation(memory)),
                loaded.refused_msr, loaded.why_refused};
    }
    /// XRSTORS where XSTATE_BV[8] is 0. Source: REG-146.
    template <memory_port Memory>
    constexpr auto xrstors_init(uint64_t next, Memory& memory) noexcept -> xrstors_result {
        if (auto const fault = complete_pending(memory)) { return {detail::not_started(fault)}; }
        return {detail::access_result_of(detail::xrstors_init(state_, next).effect.verdict, {})};
    }
    /// A warm reset: bytes in the buffer are lost. Source: GEN-291, REG-091..093.
    constexpr void warm_reset(execution_context const& after, uint64_t ip) noexcept {
        state_.msrs = msrs();
        detail::warm_reset(state_, after, ip);
        drop_buffer();
    }
    constexpr void cold_reset(execution_context const& after, uint64_t ip) noexcept {
        detail::cold_reset(state_, after, ip);
        drop_buffer();
    }

    /// Sets the controls by which a VMM conceals VMX operation. Source: GEN-278.
    constexpr void conceal(vmx_concealment const& what) noexcept { state_.concealment = what; }
    /// Sets the clocks without timing packets for the time between.
    constexpr void set_clocks(clocks const& now) noexcept { state_.clocks = now; }

    /// Stores up to `most` bytes of the buffer, independently of the options.
    template <memory_port Memory>
    constexpr auto drain(Memory& memory, size_t most = ~size_t{0}) noexcept -> port_fault {
        if (auto const fault = complete_pending(memory)) { return fault; }
        return store(memory, most);
    }

private:
    friend struct detail::unit_codec;

    enum class pending_action : uint8_t {
        none,
        start_output,  ///< TraceEn is 1, and output has not begun
        flush,         ///< TraceEn was cleared, and bytes are not stored yet
        save,          ///< the same, by an XSAVES that the caller retries
    };

    generator_state state_;
    output output_{};
    totals total_{};
    access::ia32_rtit_ctl ctl_at_start_{};  ///< when output began; constant while TraceEn is 1
    bool output_active_ = false;            ///< `output_` was started, and not stopped
    pending_action pending_ = pending_action::none;
    byte_queue<Depth> queue_{};

    template <class Event, memory_port Memory>
    [[gnu::noinline]]  // inlined, branches take 12 % more instructions (g++ 12)
    constexpr auto
    on_slow_path(Event const& e, Memory& memory) noexcept -> port_fault {
        if (auto const fault = complete_pending(memory)) { return fault; }
        detail::generate(state_, e, queue_);
        return drain_after_operation(memory);
    }
    /// Stores bytes after an operation, and starts or ends output if TraceEn changed.
    template <memory_port Memory>
    constexpr auto drain_after_operation(Memory& memory) noexcept -> port_fault {
        if (state_.ctl<ctl::TraceEn>() != output_active_) [[unlikely]] {
            return on_trace_en_changed(memory);
        }
        if (queue_.empty()) { return {}; }
        byte_view const all = queue_.front();
        if (all.size() <= state_.options.drained_at_once && !state_.in_overflow &&
            output_.put_few(all)) [[likely]] {
            queue_.drop(all.size());
            total_.stored += all.size();
            return {};
        }
        return store(memory, state_.options.drained_at_once);
    }
    template <memory_port Memory>
    constexpr auto store(Memory& memory, size_t most) noexcept -> port_fault {
        bool const was_triggered = state_.trigger_en();
        port_fault fault{};
        while (!queue_.empty() && most != 0 && !fault) {
            auto const result = output_.write(state_.msrs, memory, queue_.front().first(most));
            queue_.drop(result.taken);
            most -= result.taken;
            total_ += result;
            fault = result.fault;
            end_overflow_if_drained();
        }
        if (was_triggered != state_.trigger_en()) { detail::refresh_cache(state_); }
        return fault;
    }
    constexpr void end_overflow_if_drained() noexcept {
        if (queue_.size() <= state_.options.overflow_ends_at) {
            detail::end_overflow(state_, queue_);
        }
    }

    // -------------------------------------------------------------- TraceEn rises and falls

    /// Completes the pending action of an earlier operation.
    template <memory_port Memory>
    constexpr auto complete_pending(Memory& memory) noexcept -> port_fault {
        return pending_ == pending_action::none ? port_fault{} : run_pending(memory);
    }
    template <memory_port Memory>
    constexpr auto run_pending(Memory& memory) noexcept -> port_fault {
        if (is_flushing()) { return flush(memory); }
        pending_ = pending_action::none;
        ctl_at_start_ = state_.msrs.ctl;
        (void)start_output(memory);  // storing bytes reports the same fault again
        return {};
    }
    template <memory_port Memory>
    [[gnu::noinline]]  // inlined, branches take 2 % more instructions (g++ 12)
    constexpr auto
    on_trace_en_changed(Memory& memory) noexcept -> port_fault {
        if (output_active_) { return flush(memory); }
        ctl_at_start_ = state_.msrs.ctl;
        raise_preserved_pmi(memory);
        auto const fault = start_output(memory);
        return fault ? fault : store(memory, state_.options.drained_at_once);
    }
    /// Raises the PMI that enabling pends: `access` has set the bit of IA32_PERF_GLOBAL_STATUS.
    /// Source: OUT-086, OUT-089.
    template <memory_port Memory>
    constexpr void raise_preserved_pmi(Memory& memory) noexcept {
        using status = access::ia32_rtit_status;
        if (!state_.ctl<ctl::InjectPsbPmiOnEnable>() ||
            !state_.msrs.status.get<status::PendToPAPMI>()) {
            return;
        }
        ++total_.pmis;
        if constexpr (pmi_port<Memory>) { memory.raise(); }
    }
    template <memory_port Memory>
    constexpr auto start_output(Memory& memory) noexcept -> port_fault {
        using status = access::ia32_rtit_status;
        output_active_ = true;
        auto& msrs = state_.msrs;
        auto const ctl_now = msrs.ctl;
        msrs.ctl = ctl_at_start_;
        // Tracing may have ended already, as in a TraceStop range; its packets are still stored.
        bool const has_ended = !state_.trigger_en() && (!queue_.empty() || state_.in_overflow);
        if (has_ended) { msrs.status = msrs.status.with(status::TriggerEn{true}); }
        auto const fault = output_.start(state_.caps, msrs, memory, state_.options.output);
        if (has_ended) { msrs.status = msrs.status.with(status::TriggerEn{false}); }
        msrs.ctl = ctl_now;
        detail::refresh_cache(state_);
        return fault;
    }
    /// TraceEn was cleared: stores all bytes, and ends output.
    template <memory_port Memory>
    constexpr auto flush(Memory& memory) noexcept -> port_fault {
        if (!is_flushing()) { pending_ = pending_action::flush; }
        if (!output_active_) {
            if (auto const fault = start_output(memory)) { return fault; }
        }
        end_overflow_if_drained();
        if (auto const fault = store(memory, ~size_t{0})) { return fault; }
        output_.stop(state_.msrs);
        output_active_ = false;
        pending_ = pending_action::none;
        return {};
    }
    constexpr void drop_buffer() noexcept {
        total_.lost += queue_.size();
        queue_.clear();
        output_active_ = false;
        pending_ = pending_action::none;
    }
};

}  // namespace ptspec::engine

// ---- ptspec/engine/unit_image.hpp ----

/// Serialises a `trace_unit` to bytes, for storage or migration to another processor.
namespace ptspec::engine {

using access::image_error;

/// The format version that `save` writes.
inline constexpr uint32_t unit_image_version = 1;

namespace detail {

/// Serialises the state of a unit other than its MSRs. Saving and loading share one list of
/// members.
struct unit_codec {
    /// Calls `each` with every number at a fixed offset and, if not every value of its type is
    /// valid, with the greatest valid one.
    template <class Unit, class Each>
    static constexpr void visit(Unit& unit, Each& each) noexcept {
        each(unit.state_.ip);
        visit_code(unit.state_.code, each);
        visit_packets(unit.state_.writer, each);
        visit_view(unit, each);
        each(unit.state_.clocks.art);
        each(unit.state_.clocks.tsc);
        each(unit.state_.clocks.tsc_at_edge);
        each(unit.state_.clocks.core_to_bus);
        each(unit.state_.clocks.are_off);
        each(unit.state_.concealment.non_root);
        each(unit.state_.concealment.exits);
        each(unit.state_.concealment.entries);
        each(unit.state_.vmcs);
        each(unit.state_.tx_depth);
        each(unit.state_.in_acm);
        each(unit.state_.trace_en_after_acm);
        each(unit.state_.shutdown_rule);
        each(unit.total_.stored);
        each(unit.total_.lost);
        each(unit.total_.pmis);
    }
    template <class Code, class Each>
    static constexpr void visit_code(Code& code, Each& each) noexcept {
        each(code.cr3);
        each(code.cs_base);
        each(code.cpl, 3);
        each(code.width, underlying(code_width::bits_64));
        each(code.real_mode);
        each(code.virtual_8086);
        each(code.pae);
        each(code.IF);
        each(code.inside, underlying(enclave::production));
        each(code.vmx_non_root);
    }
    /// Omits the open block: none is open between two operations.
    template <class State, class Each>
    static constexpr void visit_packets(State& now, Each& each) noexcept {
        each(now.last_ip);
        each(now.has_last_ip);
        each(now.has_context_ip);
        each(now.ends_in_payload);
        each(now.cyc_crosses);
        each(now.tnt.count);
        each(now.tnt.bits);
        each(now.cycles);
        each(now.bytes);
        each(now.deferred_count, trace::writer_state::max_deferred);
        for (auto& ip : now.deferred) { each(ip); }
    }
    template <class Unit, class Each>
    static constexpr void visit_view(Unit& unit, Each& each) noexcept {
        each(unit.state_.view.mode);
        each(unit.state_.view.pip);
        each(unit.state_.view.in_tx);
        each(unit.state_.view.psb_requested);
        each(unit.state_.view.count_start);
        auto& psb = unit.state_.psb_details;
        each(psb.mtc, underlying(event::mtc_place::before_older_tsc));
        each(psb.cycles_until_tsc);
        each(psb.cycles_until_mtc);
        each(unit.state_.in_overflow);
        each(unit.state_.overflow_requested);
        each(unit.state_.deferred_ovf, underlying(deferred_ovf::ovf_and_trace_stop));
    }

    /// Writes each number as 8 bytes.
    struct writer {
        uint8_t* to;

        constexpr void operator()(auto const& number, auto...) noexcept {
            store_le64(to, static_cast<uint64_t>(number));
            to += sizeof(uint64_t);
        }
    };
    /// Reads numbers of 8 bytes each. The caller must check the size first.
    struct reader {
        uint8_t const* from;
        bool all_possible = true;

        template <class Number>
        constexpr void operator()(Number& number, uint64_t most = greatest<Number>()) noexcept {
            uint64_t const value = load_le64(from);
            from += sizeof value;
            all_possible = all_possible && value <= most;
            if (value <= most) { number = static_cast<Number>(value); }
        }
        template <class Number>
        static constexpr auto greatest() noexcept -> uint64_t {
            return same_as<Number, bool> ? 1 : low_bits(8 * sizeof(Number));
        }
    };
    struct counter {
        size_t count = 0;

        constexpr void operator()(auto const&...) noexcept { ++count; }
    };

    /// The part of an image before the numbers of `unit_codec::visit`.
    struct front {
        static constexpr uint64_t magic = 0x0000'5449'4E55'5450;  ///< the letters PTUNIT
        static constexpr size_t msrs_at = 16;
        static constexpr size_t size = msrs_at + access::image_size + 5 * sizeof(uint64_t);

        access::ia32_rtit_ctl ctl_at_start{};
        rule why_ended = rule::none;
        uint8_t flushing = 0;  ///< the pending action: 1 `flush`, 2 `save`, 0 neither
        uint8_t calls = 0;
        uint64_t bytes = 0;

        template <class Self, class Each>
        static constexpr void visit(Self& self, Each& each) noexcept {
            each(self.ctl_at_start.raw);
            each(self.why_ended);
            each(self.flushing, 2);
            each(self.calls, return_stack::most);
            each(self.bytes);
        }
    };

    /// The size of an image without calls and without buffered bytes.
    template <size_t Depth>
    static constexpr auto min_bytes() noexcept -> size_t {
        trace_unit<Depth> unit{cpu::capabilities{}};
        counter numbers;
        visit(unit, numbers);
        return front::size + numbers.count * sizeof(uint64_t);
    }

    template <size_t Depth>
    static constexpr auto save(trace_unit<Depth> now, uint8_t* const to) noexcept -> size_t {
        copy_bytes(to + front::msrs_at, access::save(now.msrs()).data(), access::image_size);
        using pending = typename trace_unit<Depth>::pending_action;
        uint8_t const flushing = now.pending_ == pending::save    ? 2
                                 : now.pending_ == pending::flush ? 1
                                                                  : 0;
        front const first{now.ctl_at_start_, now.output_.why(), flushing,
                          static_cast<uint8_t>(now.state_.calls.size()), now.queue_.size()};
        writer numbers{to + front::msrs_at + access::image_size};
        front::visit(first, numbers);
        visit(now, numbers);
        for (unsigned i = 0; i < now.state_.calls.size(); ++i) { numbers(now.state_.calls[i]); }
        for (; !now.queue_.empty(); now.queue_.drop(now.queue_.front().size())) {
            copy_bytes(numbers.to, now.queue_.front().data(), now.queue_.front().size());
            numbers.to += now.queue_.front().size();
        }
        auto const size = static_cast<size_t>(numbers.to - to);
        store_le64(to, front::magic);
        store_le64(to + 8, uint64_t{size} << 32 | unit_image_version);
        return size;
    }

    /// Loads the image into a new unit, which has the MSRs of the image already.
    template <size_t Depth>
    static constexpr auto load(byte_view image, trace_unit<Depth>& unit) noexcept -> image_error {
        front first;
        reader numbers{image.data() + front::msrs_at + access::image_size};
        front::visit(first, numbers);
        visit(unit, numbers);
        bool const is_on = unit.state_.msrs.ctl.template get<access::ia32_rtit_ctl::TraceEn>();
        auto const& now = unit.state_.writer;
        bool const are_branches = now.tnt.count < unit.state_.write_options.max_branches() &&
                                  now.tnt.bits <= low_bits(now.tnt.count);
        if (!numbers.all_possible || !are_branches || (first.flushing != 0 && is_on)) {
            return image_error::out_of_range;
        }
        byte_view const calls = image.from(min_bytes<Depth>());
        if (first.bytes > calls.size() ||
            calls.size() - first.bytes != first.calls * sizeof(uint64_t)) {
            return image_error::wrong_size;
        }
        for (size_t i = 0; i < first.calls; ++i) {
            unit.state_.calls.push(load_le64(calls.data() + i * sizeof(uint64_t)));
        }
        if (!unit.queue_.append(calls.from(first.calls * sizeof(uint64_t)))) {
            return image_error::no_room;
        }
        unit.ctl_at_start_ = first.ctl_at_start;
        unit.output_ = output{first.why_ended};
        bool const has_ended = first.why_ended != rule::none;
        unit.output_active_ = has_ended && (is_on || first.flushing != 0);
        using pending = typename trace_unit<Depth>::pending_action;
        unit.pending_ = first.flushing == 2   ? pending::save
                        : first.flushing == 1 ? pending::flush
                        : is_on && !has_ended ? pending::start_output
                                              : pending::none;
        refresh_cache(unit.state_);
        return image_error::none;
    }
};

}  // namespace detail

/// The serialised form of a unit.
template <size_t Depth>
struct unit_image {
    /// The maximum size in bytes.
    static constexpr size_t most = detail::unit_codec::min_bytes<Depth>() +
                                   sizeof(uint64_t) * return_stack::most + Depth;

    byte_array<most> bytes{};
    size_t size = 0;

    [[nodiscard]] constexpr auto view() const noexcept -> byte_view {
        return byte_view{bytes}.first(size);
    }
};

/// Serialises a unit, except the capabilities and `model_options`, which `load` takes as arguments,
/// and `generator_state::ctl_load_verdict`.
///
/// Shape: a header of 16 bytes: `PTUNIT` and two zero bytes, then the version and the size in
///        bytes, 4 bytes each. Then the image of the MSRs from `access::save`, 8 bytes for each
///        number, 8 bytes for each entry of the return stack, oldest first, and the buffered bytes.
///        All numbers are little-endian.
template <size_t Depth>
[[nodiscard]] constexpr auto save(trace_unit<Depth> const& unit) noexcept -> unit_image<Depth> {
    unit_image<Depth> image;
    image.size = detail::unit_codec::save(unit, image.bytes.data());
    return image;
}

/// A deserialised unit, or why the image was rejected.
template <size_t Depth>
struct unit_load {
    image_error why = image_error::none;
    rule broken = rule::none;  ///< for `refused`: the rule that the value breaks
    uint32_t msr = 0;          ///< for `refused`: the MSR
    trace_unit<Depth> unit;    ///< a unit after a cold reset on an error

    constexpr explicit operator bool() const noexcept { return why == image_error::none; }
};

/// Deserialises a unit and checks that the processor `of` can hold its MSRs. The bytes are
/// untrusted.
///
/// Output continues at the position in the MSRs: the current ToPA entry is read again.
///
/// Errors: those of `access::load` for the MSRs, and those of `image_error` for the other state.
template <size_t Depth = 1024>
[[nodiscard]] constexpr auto load(cpu::capabilities const& of, byte_view image,
                                  model_options const& options) noexcept -> unit_load<Depth> {
    using detail::unit_codec;
    using front = unit_codec::front;
    trace_unit<Depth> const none{of, {}, 0, options};
    auto const fails = [&](image_error why) { return unit_load<Depth>{.why = why, .unit = none}; };
    if (image.size() < 8) { return fails(image_error::truncated); }
    if (load_le64(image.data()) != front::magic) { return fails(image_error::not_an_image); }
    if (image.size() < front::msrs_at) { return fails(image_error::truncated); }
    uint64_t const form = load_le64(image.data() + 8);
    if ((form & low_bits(32)) != unit_image_version) { return fails(image_error::other_version); }
    uint64_t const size = form >> 32;
    if (size < unit_codec::min_bytes<Depth>()) { return fails(image_error::wrong_size); }
    if (image.size() < size) { return fails(image_error::truncated); }
    if (image.size() > size) { return fails(image_error::wrong_size); }

    auto const msrs = access::load(of, image.from(front::msrs_at).first(access::image_size));
    if (!msrs) { return {msrs.why, msrs.broken, msrs.msr, none}; }
    uint64_t const ctl = load_le64(image.data() + front::msrs_at + access::image_size);
    auto const index = access::ia32_rtit_ctl::address;
    if (rule const broken = access::detail::rule_of_value(of, index, ctl); broken != rule::none) {
        return {image_error::refused, broken, index, none};
    }
    unit_load<Depth> loaded{.unit = {of, msrs.state, {}, 0, options}};
    loaded.why = unit_codec::load(image, loaded.unit);
    return loaded ? loaded : fails(loaded.why);
}
/// The same, with the options of the processor's kind.
template <size_t Depth = 1024>
[[nodiscard]] constexpr auto load(cpu::capabilities const& of, byte_view image) noexcept
    -> unit_load<Depth> {
    return load<Depth>(of, image, options_of(of));
}

}  // namespace ptspec::engine

// ---- ptspec/driver/msr_sequence.hpp ----

/// Procedures of a driver over ports: sequences of MSR accesses that stop at the first fault.
namespace ptspec::driver {

// ------------------------------------------------------------------------------------ one access

/// The result of reading an MSR as its register type.
template <class Word>
struct [[nodiscard]] word_read {
    bool done = false;  ///< false: the access faulted and `value` is meaningless
    Word value{};

    constexpr explicit operator bool() const noexcept { return done; }
};

/// Reads an MSR: `read<reg::ia32_rtit_ctl>(msrs)`.
template <class Word, msr_port Msrs>
    requires requires { Word::address; }
[[nodiscard]] constexpr auto read(Msrs& msrs) noexcept -> word_read<Word> {
    port_value const got = msrs.read(Word::address);
    return {got.done, Word{got.value}};
}

/// Writes an MSR. False: the access faulted.
template <msr_port Msrs, class Word>
    requires requires { Word::address; }
[[nodiscard]] constexpr auto write(Msrs& msrs, Word value) noexcept -> bool {
    return msrs.write(Word::address, value.raw);
}

// ------------------------------------------------------------------------------------ a sequence

/// An MSR port that also orders stores: `fence` executes an SFENCE or a stronger instruction, after
/// which other logical processors see the trace.
///
/// Source: PRG-040, PRG-062.
template <class Port>
concept fenced_msr_port = msr_port<Port> && requires(Port& port) { port.fence(); };

/// An access of a procedure that faulted.
struct failed_access {
    bool happened = false;
    bool is_write = false;
    uint32_t index = 0;   ///< of the MSR
    uint64_t value = 0;   ///< of a write
    unsigned number = 0;  ///< the number of the access in the procedure, from 0

    constexpr explicit operator bool() const noexcept { return happened; }
    friend constexpr auto operator==(failed_access const&, failed_access const&) -> bool = default;
};

/// Whether the trace unit is enabled after a procedure.
enum class trace_state : uint8_t {
    disabled,
    enabled,
    still_tracing,  ///< the write that clears TraceEn faulted
    unknown,        ///< IA32_RTIT_CTL could not be read
};

/// The state that a value of IA32_RTIT_CTL shows.
[[nodiscard]] constexpr auto trace_state_of(reg::ia32_rtit_ctl ctl) noexcept -> trace_state {
    return ctl.get<reg::ia32_rtit_ctl::TraceEn>() ? trace_state::enabled : trace_state::disabled;
}

/// The result of a procedure. After a failed access the procedure makes no further access, except
/// those that `still_tracing` and the documentation of the procedure name.
struct [[nodiscard]] procedure_result {
    failed_access failed{};
    trace_state trace = trace_state::unknown;

    constexpr explicit operator bool() const noexcept { return !failed; }
};

namespace detail {

using namespace ptspec::detail;

/// Makes accesses until one faults. After that reads return 0, and nothing is accessed.
///
/// noinline: an access takes longer than a call. Inlined, the procedures of a driver have 2.6 KB
/// more (g++ 12), or 1.7 KB (clang 19).
template <msr_port Msrs>
class msr_sequence {
public:
    constexpr explicit msr_sequence(Msrs& msrs) noexcept : msrs_{msrs} {}

    [[gnu::noinline]] constexpr auto read(uint32_t index) noexcept -> uint64_t {
        if (failed_) { return 0; }
        port_value const got = msrs_.read(index);
        if (!got) {
            failed_ = {true, false, index, 0, number_};
            return 0;
        }
        ++number_;
        return got.value;
    }
    template <class Word>
    constexpr auto read() noexcept -> Word {
        return Word{read(Word::address)};
    }
    /// False after a fault.
    [[gnu::noinline]] constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        if (failed_) { return false; }
        if (!msrs_.write(index, value)) {
            failed_ = {true, true, index, value, number_};
            return false;
        }
        ++number_;
        return true;
    }
    template <class Word>
    constexpr auto write(Word value) noexcept -> bool {
        return write(Word::address, value.raw);
    }
    constexpr void fence() noexcept
        requires fenced_msr_port<Msrs>
    {
        if (!failed_) { msrs_.fence(); }
    }

    constexpr explicit operator bool() const noexcept { return !failed_; }
    [[nodiscard]] constexpr auto failed() const noexcept -> failed_access { return failed_; }
    [[nodiscard]] constexpr auto port() noexcept -> Msrs& { return msrs_; }

private:
    Msrs& msrs_;
    failed_access failed_{};
    unsigned number_ = 0;
};

}  // namespace detail

}  // namespace ptspec::driver

// ---- ptspec/driver/recording_port.hpp ----

/// For tests of drivers: the accesses to a port, recorded.
namespace ptspec::driver {

/// An access in the log of a `recording_port`.
struct logged_access {
    enum class kind : uint8_t { read, write, fence, note };
    kind what = kind::read;
    bool faulted = false;
    uint32_t index = 0;  ///< of the MSR
    uint64_t value = 0;  ///< that was read or written
    text action{};       ///< of a note: a step without an MSR access

    friend constexpr auto operator==(logged_access const&, logged_access const&) -> bool = default;
};

/// Prints an access in the notation of the catalogue: `RDMSR(571)->0`, `WRMSR(570,250D)`,
/// `WRMSR(560,0)->#GP`, `[SFENCE]`, `[drain]`. All numbers are hexadecimal; values of more than 32
/// bits have 16 digits.
///
/// Source: tests/spec/notation.md, section 4.
template <print::text_sink Sink>
constexpr void print_access(logged_access const& one, Sink&& sink) {
    using kind = logged_access::kind;
    if (one.what == kind::fence || one.what == kind::note) {
        sink("[");
        sink(one.what == kind::fence ? text{"SFENCE"} : one.action);
        sink("]");
        return;
    }
    auto const value = [&] { print::hex(one.value, sink, one.value >> 32 != 0 ? 16 : 1); };
    bool const is_write = one.what == kind::write;
    sink(is_write ? text{"WRMSR("} : text{"RDMSR("});
    print::hex(one.index, sink);
    if (is_write) {
        sink(",");
        value();
    }
    sink(")");
    if (one.faulted) {
        sink("->#GP");
    } else if (!is_write) {
        sink("->");
        value();
    }
}

/// Passes accesses on to another port and records the first `Room` of them.
///
/// Shape:  a value; `count` may exceed `Room`, and `log` has the first `Room` accesses.
/// Source: tests/spec/notation.md, section 4.
template <msr_port Msrs, size_t Room = 64>
class recording_port {
public:
    constexpr explicit recording_port(Msrs& to) noexcept : to_{to} {}

    constexpr auto read(uint32_t index) noexcept -> port_value {
        port_value const got = to_.read(index);
        add({logged_access::kind::read, !got.done, index, got.value, {}});
        return got;
    }
    constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        bool const done = to_.write(index, value);
        add({logged_access::kind::write, !done, index, value, {}});
        return done;
    }
    constexpr void fence() noexcept {
        if constexpr (fenced_msr_port<Msrs>) { to_.fence(); }
        add({.what = logged_access::kind::fence});
    }
    /// Records a step without an MSR access, such as "drain".
    constexpr void note(text action) noexcept {
        add({.what = logged_access::kind::note, .action = action});
    }

    /// The number of accesses and notes.
    [[nodiscard]] constexpr auto count() const noexcept -> size_t { return count_; }
    [[nodiscard]] constexpr auto begin() const noexcept -> logged_access const* { return log_; }
    [[nodiscard]] constexpr auto end() const noexcept -> logged_access const* {
        return log_ + (count_ < Room ? count_ : Room);
    }
    constexpr void clear() noexcept { count_ = 0; }

private:
    constexpr void add(logged_access one) noexcept {
        if (count_ < Room) { log_[count_] = one; }
        ++count_;
    }

    Msrs& to_;
    logged_access log_[Room] = {};
    size_t count_ = 0;
};

}  // namespace ptspec::driver

// ---- ptspec/driver/faulting_port.hpp ----

/// For tests of drivers: a port with a fault.
namespace ptspec::driver {

/// Passes accesses on to another port, except those that fault: the one with a number, from 0, and
/// with `persistent` all that access the same MSR after it.
template <msr_port Msrs>
class faulting_port {
public:
    constexpr faulting_port(Msrs& to, unsigned number, bool persistent = false) noexcept
        : to_{to}, number_{number}, persistent_{persistent} {}

    constexpr auto read(uint32_t index) noexcept -> port_value {
        return faults(index, false) ? port_value{} : to_.read(index);
    }
    constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        return !faults(index, true) && to_.write(index, value);
    }
    constexpr void fence() noexcept {
        if constexpr (fenced_msr_port<Msrs>) { to_.fence(); }
    }

    /// The access that faulted.
    [[nodiscard]] constexpr auto fault() const noexcept -> failed_access { return fault_; }
    /// The number of accesses, with those that faulted.
    [[nodiscard]] constexpr auto count() const noexcept -> unsigned { return count_; }

private:
    constexpr auto faults(uint32_t index, bool is_write) noexcept -> bool {
        unsigned const now = count_++;
        if (now == number_) {
            fault_ = {true, is_write, index, 0, now};
            return true;
        }
        return persistent_ && fault_ && fault_.index == index && fault_.is_write == is_write;
    }

    Msrs& to_;
    unsigned number_ = 0;
    bool persistent_ = false;
    unsigned count_ = 0;
    failed_access fault_{};
};

}  // namespace ptspec::driver

// ---- ptspec/driver/detect.hpp ----

/// Detection of Intel PT, and of another owner of it.
namespace ptspec::driver {

/// What a logical processor has.
struct [[nodiscard]] detection : procedure_result {
    cpu::capabilities caps{};
    reg::ia32_rtit_ctl ctl{};  ///< as found

    /// True if Intel PT exists and may be programmed.
    constexpr explicit operator bool() const noexcept {
        return caps.has_pt() && !failed && trace == trace_state::disabled;
    }
    /// Another agent traces: leave all MSRs of Intel PT alone.
    [[nodiscard]] constexpr auto is_in_use() const noexcept -> bool {
        return trace == trace_state::enabled;
    }
};

/// Detects Intel PT on the logical processor that executes this, and reads TraceEn. Call it on each
/// logical processor: capabilities can differ. Without Intel PT no MSR is accessed.
///
/// Errors: the access to IA32_RTIT_CTL that faulted, as under a hypervisor that hides Intel PT;
///         `trace` is then `unknown`.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; PRG-001,
///         PRG-005, PRG-030, PRG-260.
template <cpuid_port Cpuid, msr_port Msrs>
constexpr auto detect(Cpuid& cpuid, Msrs& msrs) noexcept -> detection {
    detection found{{.trace = trace_state::disabled}, cpu::detect(cpuid, msrs)};
    if (!found.caps.has_pt()) { return found; }
    auto const ctl = read<reg::ia32_rtit_ctl>(msrs);
    if (!ctl) { found.failed = {.happened = true, .index = reg::ia32_rtit_ctl::address}; }
    found.ctl = ctl.value;
    found.trace = ctl ? trace_state_of(ctl.value) : trace_state::unknown;
    return found;
}

/// What several logical processors have in common.
struct common_detection {
    cpu::capabilities value{};
    bool same_ip_payload = true;  ///< false: some compare RIPs, some LIPs: plan for each separately
    bool all_same = true;         ///< all have the same capabilities
    uint32_t differing = 0;       ///< bits of `cpu::aspect` that some lack and others have

    [[nodiscard]] constexpr auto differs(cpu::aspect one) const noexcept -> bool {
        return (differing & underlying(one)) != 0;
    }
};

/// The capabilities that a configuration for all of these processors may use.
///
/// Source: REG-164..166, PRG-005.
[[nodiscard]] constexpr auto common(cpu::capabilities const* all, size_t count) noexcept
    -> common_detection {
    if (count == 0) { return {}; }
    common_detection result{.value = all[0]};
    for (size_t i = 1; i < count; ++i) {
        auto const both = cpu::common(result.value, all[i]);
        result.same_ip_payload = result.same_ip_payload && both.same_ip_payload;
        result.value = both.value;
        result.all_same = result.all_same && all[i] == all[0];
    }
    for (size_t i = 0; i < count; ++i) {
        result.differing |= cpu::includes(result.value, all[i]).lacking;
    }
    return result;
}

}  // namespace ptspec::driver

// ---- ptspec/driver/plan.hpp ----

/// From a wanted trace to the values of the MSRs.
namespace ptspec::driver {

using access::address_range;
using cpu::capabilities;
using reg::ia32_rtit_addr;
using reg::ia32_rtit_cr3_match;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;
using reg::ia32_rtit_status;

/// The values of IA32_RTIT_OUTPUT_BASE and IA32_RTIT_OUTPUT_MASK_PTRS for a buffer.
struct output_buffer {
    ia32_rtit_output_base base{};
    ia32_rtit_output_mask_ptrs mask_ptrs{ia32_rtit_output_mask_ptrs::forced_1_mask()};

    friend constexpr auto operator==(output_buffer const&, output_buffer const&) -> bool = default;
};

/// A chain of ToPA tables, from a position on: `in_topa({.table = 0x1000})`.
///
/// Source: OUT-050, PRG-128.
[[nodiscard]] constexpr auto in_topa(topa::position from) noexcept -> output_buffer {
    return {topa::base_of(from), topa::mask_ptrs_of(from)};
}

/// The values of the MSRs for a trace. `ctl` has TraceEn = 1.
struct msr_plan {
    ia32_rtit_ctl ctl{};
    ia32_rtit_status status{};
    output_buffer output{};
    ia32_rtit_cr3_match cr3_match{};
    address_range addr[ia32_rtit_addr::count]{};

    friend constexpr auto operator==(msr_plan const&, msr_plan const&) -> bool = default;
};

/// The state of the trace unit with the MSRs of a plan.
[[nodiscard]] constexpr auto msr_state_of(msr_plan const& from) noexcept -> access::msr_state {
    access::msr_state state;
    state.ctl = from.ctl;
    state.status = from.status;
    state.output_base = from.output.base;
    state.output_mask_ptrs = from.output.mask_ptrs;
    state.cr3_match = from.cr3_match;
    for (unsigned n = 0; n < ia32_rtit_addr::count; ++n) { state.addr[n] = from.addr[n]; }
    return state;
}
/// The plan with the MSRs of a state.
[[nodiscard]] constexpr auto plan_of(access::msr_state const& from) noexcept -> msr_plan {
    msr_plan plan{.ctl = from.ctl,
                  .status = from.status,
                  .output = {from.output_base, from.output_mask_ptrs},
                  .cr3_match = from.cr3_match};
    for (unsigned n = 0; n < ia32_rtit_addr::count; ++n) { plan.addr[n] = from.addr[n]; }
    return plan;
}

namespace detail {

using namespace ptspec::detail;

/// True if IA32_RTIT_CTL uses address range `n`.
[[nodiscard]] constexpr auto uses_range(ia32_rtit_ctl ctl, unsigned n) noexcept -> bool {
    return access::use_of_range(ctl, n) != reg::addr_cfg::off;
}
/// True if the output MSRs have an effect. Source: PRG-080.
[[nodiscard]] constexpr auto uses_output_msrs(ia32_rtit_ctl ctl) noexcept -> bool {
    return !ctl.get<ia32_rtit_ctl::FabricEn>();
}

}  // namespace detail

/// A wanted trace.
struct plan_request {
    config::trace_config config{};
    output_buffer output{};
    /// The address ranges that `config.addr` selects, as IPs, both ends inclusive.
    address_range addr[ia32_rtit_addr::count]{};
    uint64_t cs_base = 0;  ///< the base of CS in the traced code
    uint64_t cr3 = 0;      ///< with `config.cr3_filter`
    /// The count to continue from; 0 begins the trace with a PSB. Source: PRG-031, PRG-042,
    /// PRG-102.
    uint64_t packet_byte_cnt = 0;
};

/// What `plan` changed, besides the members of the configuration that its verdict lists.
enum class plan_change : uint8_t {
    range_clamped = 1U << 0,    ///< an end of a range was moved to a canonical address
    range_empty = 1U << 1,      ///< a range has no canonical address: it matches no instruction
    cr3_truncated = 1U << 2,    ///< low bits of CR3, such as the PCID, are not compared
    byte_count_reset = 1U << 3  ///< the processor has no PacketByteCnt: PSB at every enable
};

/// The result of `plan`.
struct [[nodiscard]] plan_result {
    config::config_verdict config{};  ///< refused members, and the nearest configuration
    rule output = rule::none;         ///< the rule that `output` breaks
    uint8_t changes = 0;              ///< bits of `plan_change`
    msr_plan plan{};                  ///< for the nearest configuration

    /// True if everything is as requested, apart from `changes`.
    constexpr explicit operator bool() const noexcept {
        return static_cast<bool>(config) && output == rule::none;
    }
    [[nodiscard]] constexpr auto changed(plan_change one) const noexcept -> bool {
        return (changes & underlying(one)) != 0;
    }
};

namespace detail {

/// The lowest canonical address from `address` on, or the highest up to it.
///
/// Source: REG-076, PRG-136.
[[nodiscard]] constexpr auto canonical_from(uint64_t address, unsigned width) noexcept -> uint64_t {
    return is_canonical(address, width) ? address : ~low_bits(width - 1);
}
[[nodiscard]] constexpr auto canonical_up_to(uint64_t address, unsigned width) noexcept
    -> uint64_t {
    return is_canonical(address, width) ? address : low_bits(width - 1);
}

/// The rule that the output MSRs break with this scheme.
[[nodiscard]] constexpr auto broken_rule_of_output(capabilities const& caps, ia32_rtit_ctl ctl,
                                                   output_buffer const& output) noexcept -> rule {
    if (!uses_output_msrs(ctl)) { return rule::none; }
    if (!access::is_legal(caps, output.base)) { return rule::REG_070; }
    if (!ctl.get<ia32_rtit_ctl::ToPA>()) {
        return single_range::broken_rule(output.base, output.mask_ptrs);
    }
    return is_aligned(output.base.raw, 4096) ? rule::none : rule::OUT_061;
}

}  // namespace detail

/// The values of the MSRs for a wanted trace on a processor: those of the nearest configuration
/// where it refuses the wanted one.
///
/// Addresses of ranges become linear addresses where the processor compares those (LIP), and are
/// clamped to canonical addresses: a start upward, an end downward.
///
/// Errors: those of `config::check`; `output`: REG-070, and OUT-022..024 of a single range, OUT-061
///         of a table. The entries of a table are not read: see `topa::validate`.
/// Source: SDM vol. 3, "Enabling and Configuration of Packet Generation"; REG-076, REG-079,
///         PRG-005, PRG-022, PRG-026, PRG-042, PRG-128, PRG-134..136.
[[nodiscard]] constexpr auto plan(plan_request const& wanted, capabilities const& caps) noexcept
    -> plan_result {
    plan_result result{.config = config::check(wanted.config, caps)};
    auto& made = result.plan;
    auto const change = [&](plan_change which) {
        result.changes = static_cast<uint8_t>(result.changes | underlying(which));
    };
    made.ctl = config::ctl_of(result.config.nearest).with(ia32_rtit_ctl::TraceEn{true});
    made.output = wanted.output;
    result.output = detail::broken_rule_of_output(caps, made.ctl, wanted.output);
    if (wanted.packet_byte_cnt != 0) {
        if (caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>()) {
            made.status = made.status.with(
                ia32_rtit_status::PacketByteCnt{wrapped{wanted.packet_byte_cnt}});
        } else {
            change(plan_change::byte_count_reset);
        }
    }
    if (made.ctl.get<ia32_rtit_ctl::CR3Filter>()) {
        made.cr3_match = {wanted.cr3 & ~ia32_rtit_cr3_match::reserved_mask()};
        if (made.cr3_match.raw != wanted.cr3) { change(plan_change::cr3_truncated); }
    }
    bool const linear = caps.ip_payload() == cpu::ip_payload::linear;
    uint64_t const base = linear ? wanted.cs_base : 0;
    unsigned const width = caps.linear_address_bits();
    for (unsigned n = 0; n < ia32_rtit_addr::count; ++n) {
        if (!detail::uses_range(made.ctl, n)) { continue; }
        uint64_t const first = wanted.addr[n].a.raw + base;
        uint64_t const last = wanted.addr[n].b.raw + base;
        made.addr[n] = {{detail::canonical_from(first, width)},
                        {detail::canonical_up_to(last, width)}};
        bool const clamped = made.addr[n].a.raw != first || made.addr[n].b.raw != last;
        if (clamped) { change(plan_change::range_clamped); }
        if (made.addr[n].b.raw < made.addr[n].a.raw) { change(plan_change::range_empty); }
    }
    return result;
}

}  // namespace ptspec::driver

// ---- ptspec/driver/pebs.hpp ----

/// PEBS records in the trace.
namespace ptspec::driver {

/// The value of IA32_PEBS_ENABLE for records in the trace, or why the processor has none.
struct [[nodiscard]] pebs_plan {
    rule why = rule::none;
    reg::ia32_pebs_enable enable{};  ///< write it before the counters run, and 0 after them

    constexpr explicit operator bool() const noexcept { return why == rule::none; }
};

/// Directs the records of the counters in `wanted` to the trace: all of them, since one field
/// selects the output of all counters. Reload values are then those of MSR_RELOAD_PMCx and
/// MSR_RELOAD_FIXED_CTRx. IA32_RTIT_CTL needs no bit for them.
///
/// Errors: REG-200 the processor does not write PEBS records to the trace; REG-201 it has
///         architectural PEBS, whose records have a buffer of their own.
/// Source: SDM vol. 3, "PEBS Output to Intel Processor Trace"; REG-200, REG-201.
[[nodiscard]] constexpr auto plan_pebs(cpu::capabilities const& caps,
                                       reg::ia32_pebs_enable wanted) noexcept -> pebs_plan {
    using enable = reg::ia32_pebs_enable;
    using perf = reg::ia32_perf_capabilities;
    constexpr uint64_t architectural = 0xF;
    if (caps.perf_capabilities.get<perf::PEBS_FMT>() == architectural) {
        return {.why = rule::REG_201};
    }
    if (!caps.has_pt() || !caps.perf_capabilities.get<perf::PEBS_OUTPUT_PT_AVAIL>()) {
        return {.why = rule::REG_200};
    }
    return {.enable = wanted.with(enable::PEBS_OUTPUT{reg::pebs_output::intel_pt})};
}

}  // namespace ptspec::driver

// ---- ptspec/driver/enable.hpp ----

/// Enabling and disabling packet generation.
namespace ptspec::driver {

// ------------------------------------------------------------------------------------ enabling

namespace detail {

/// Writes the address ranges from `first` on that IA32_RTIT_CTL uses.
template <class Sequence>
constexpr void write_ranges(Sequence& to, msr_plan const& from, unsigned first) noexcept {
    for (unsigned n = first; n < ia32_rtit_addr::count; ++n) {
        if (!uses_range(from.ctl, n)) { continue; }
        (void)to.write(ia32_rtit_addr::address(n, reg::range_end::a), from.addr[n].a.raw);
        (void)to.write(ia32_rtit_addr::address(n, reg::range_end::b), from.addr[n].b.raw);
    }
}

/// Writes all MSRs of a plan except IA32_RTIT_CTL.
///
/// noinline: three procedures share it. Inlined, a driver has 0.2 KB more (g++ 12).
template <class Sequence>
[[gnu::noinline]] constexpr void program(Sequence& to, msr_plan const& plan) noexcept {
    (void)to.write(plan.status);
    if (plan.ctl.get<ia32_rtit_ctl::CR3Filter>()) { (void)to.write(plan.cr3_match); }
    write_ranges(to, plan, 0);
    if (uses_output_msrs(plan.ctl)) {
        (void)to.write(plan.output.base);
        (void)to.write(plan.output.mask_ptrs);
    }
}

template <class Sequence>
constexpr auto set_trace_en(Sequence& to, ia32_rtit_ctl ctl) noexcept -> trace_state {
    return to.write(ctl.with(ia32_rtit_ctl::TraceEn{true})) ? trace_state::enabled
                                                            : trace_state::disabled;
}
/// Clears TraceEn. False, and `still_tracing`, if the write faulted.
template <class Sequence>
constexpr auto clear_trace_en(Sequence& to, ia32_rtit_ctl ctl) noexcept -> trace_state {
    auto const off = ctl.with(ia32_rtit_ctl::TraceEn{false});
    if (to.write(off)) { return trace_state::disabled; }
    return ctl.get<ia32_rtit_ctl::TraceEn>() ? trace_state::still_tracing : trace_state::disabled;
}

}  // namespace detail

/// Enables packet generation: writes STATUS, the filters and the output MSRs that the plan uses,
/// and IA32_RTIT_CTL last. TraceEn must be 0.
///
/// Errors: the access that faulted; TraceEn is then 0, and MSRs before it are written.
/// Source: SDM vol. 3, "Enabling and Configuration of Packet Generation"; PRG-030..032, PRG-035.
template <msr_port Msrs>
constexpr auto enable(Msrs& msrs, msr_plan const& plan) noexcept -> procedure_result {
    detail::msr_sequence to{msrs};
    detail::program(to, plan);
    if (!to) { return {to.failed(), trace_state::disabled}; }
    trace_state const state = detail::set_trace_en(to, plan.ctl);
    return {to.failed(), state};
}

/// The MSRs some time after enabling.
struct [[nodiscard]] enable_check : procedure_result {
    ia32_rtit_ctl ctl{};        ///< as read
    ia32_rtit_status status{};  ///< transient while TraceEn is 1
    bool is_ours = false;       ///< IA32_RTIT_CTL has the value that was written

    /// True if tracing runs as programmed. An operational error may be signaled later.
    constexpr explicit operator bool() const noexcept {
        return !failed && is_ours && !status.get<ia32_rtit_status::Error>();
    }
};

/// Reads back IA32_RTIT_CTL, to detect another agent that programs the trace unit, and
/// IA32_RTIT_STATUS, to detect an operational error of the configuration.
///
/// Source: PRG-033, PRG-034, PRG-261.
template <msr_port Msrs>
constexpr auto check_enabled(Msrs& msrs, msr_plan const& plan) noexcept -> enable_check {
    detail::msr_sequence from{msrs};
    enable_check result;
    result.ctl = from.template read<ia32_rtit_ctl>();
    result.status = from.template read<ia32_rtit_status>();
    result.failed = from.failed();
    result.is_ours = from && result.ctl == plan.ctl.with(ia32_rtit_ctl::TraceEn{true});
    if (from) { result.trace = trace_state_of(result.ctl); }
    return result;
}

// ------------------------------------------------------------------------------------ disabling

/// The MSRs after TraceEn was cleared.
struct [[nodiscard]] stopped_trace : procedure_result {
    ia32_rtit_ctl ctl{};  ///< before TraceEn was cleared
    ia32_rtit_status status{};
    output_buffer output{};  ///< where the trace ends; not read for a fabric
};

namespace detail {

template <class Sequence>
constexpr void read_status_and_output(Sequence& from, stopped_trace& to) noexcept {
    to.status = from.template read<ia32_rtit_status>();
    if (uses_output_msrs(to.ctl)) {
        to.output.base = from.template read<ia32_rtit_output_base>();
        to.output.mask_ptrs = from.template read<ia32_rtit_output_mask_ptrs>();
    }
    to.failed = from.failed();
}

template <class Sequence>
constexpr auto disable(Sequence& on, stopped_trace result) noexcept -> stopped_trace {
    result.trace = clear_trace_en(on, result.ctl);
    on.fence();
    read_status_and_output(on, result);
    return result;
}

}  // namespace detail

/// Disables packet generation: reads IA32_RTIT_CTL, clears TraceEn, which writes all packets to
/// memory, orders these stores before later ones, and reads where the trace ends. Call it also when
/// Stopped or Error is set, which do not write all packets.
///
/// Errors: the access that faulted. `unknown` if IA32_RTIT_CTL could not be read, `still_tracing`
///         if it could not be written.
/// Source: SDM vol. 3, "Disabling Packet Generation", "Flushing Trace Output"; PRG-040, PRG-043,
///         PRG-060..063.
template <fenced_msr_port Msrs>
constexpr auto disable(Msrs& msrs) noexcept -> stopped_trace {
    detail::msr_sequence on{msrs};
    stopped_trace result;
    result.ctl = on.template read<ia32_rtit_ctl>();
    result.failed = on.failed();
    return on ? detail::disable(on, result) : result;
}
/// The same for the owner, who knows what it wrote to IA32_RTIT_CTL and does not read it.
template <fenced_msr_port Msrs>
constexpr auto disable(Msrs& msrs, ia32_rtit_ctl written) noexcept -> stopped_trace {
    detail::msr_sequence on{msrs};
    stopped_trace result;
    result.ctl = written;
    return detail::disable(on, result);
}

/// Writes all packets to memory and continues: disables as `disable`, and sets TraceEn again
/// without other changes. The result is that of `disable`; `enabled` if tracing continues. Tracing
/// that ended by Stopped or Error is not continued: TraceEn stays 0.
///
/// Errors: as `disable`; an access after TraceEn was cleared that faults leaves it 0.
/// Source: SDM vol. 3, "Flushing Trace Output"; PRG-060..063, PRG-086.
template <fenced_msr_port Msrs>
constexpr auto flush(Msrs& msrs, ia32_rtit_ctl written) noexcept -> stopped_trace {
    using status = ia32_rtit_status;
    detail::msr_sequence on{msrs};
    stopped_trace result;
    result.ctl = written;
    result = detail::disable(on, result);
    bool const ended = result.status.get<status::Stopped>() || result.status.get<status::Error>();
    if (!on || ended || !written.get<ia32_rtit_ctl::TraceEn>()) { return result; }
    result.trace = detail::set_trace_en(on, written);
    result.failed = on.failed();
    return result;
}

// ------------------------------------------------------------------------------------ changes

/// Clears TraceEn and programs everything again, for example after STOP ended a full buffer.
///
/// Errors: as `disable` and `enable`.
/// Source: PRG-041, PRG-086.
template <msr_port Msrs>
constexpr auto restart(Msrs& msrs, msr_plan const& plan) noexcept -> stopped_trace {
    detail::msr_sequence on{msrs};
    stopped_trace result;
    result.ctl = plan.ctl;
    result.trace = detail::clear_trace_en(on, plan.ctl.with(ia32_rtit_ctl::TraceEn{true}));
    result.status = on.template read<ia32_rtit_status>();
    detail::program(on, plan);
    if (on) { result.trace = detail::set_trace_en(on, plan.ctl); }
    result.failed = on.failed();
    return result;
}

/// Calls `edit` while TraceEn is 0, and sets it again: the trace unit may cache entries of ToPA
/// tables while it is 1. The position does not change.
///
/// Errors: the access that faulted. `edit` is not called if TraceEn could not be cleared.
/// Source: PRG-091, PRG-124, OUT-072.
template <msr_port Msrs, class Edit>
constexpr auto while_disabled(Msrs& msrs, ia32_rtit_ctl written, Edit&& edit) noexcept
    -> procedure_result {
    detail::msr_sequence on{msrs};
    trace_state state = detail::clear_trace_en(on, written);
    if (!on) { return {on.failed(), state}; }
    edit();
    if (written.get<ia32_rtit_ctl::TraceEn>()) { state = detail::set_trace_en(on, written); }
    return {on.failed(), state};
}

}  // namespace ptspec::driver

// ---- ptspec/driver/pause.hpp ----

/// Pausing a trace.
namespace ptspec::driver {

/// Clears TraceEn and changes nothing else: PacketByteCnt and the position are kept. The trace is
/// not ordered for other logical processors: see `disable`.
///
/// Errors: `still_tracing` if the write faulted.
/// Source: PRG-043.
template <msr_port Msrs>
constexpr auto pause(Msrs& msrs, ia32_rtit_ctl written) noexcept -> procedure_result {
    detail::msr_sequence on{msrs};
    trace_state const state = detail::clear_trace_en(on, written);
    return {on.failed(), state};
}

/// The result of `resume`.
struct [[nodiscard]] resumed_trace : procedure_result {
    ia32_rtit_status status{};
};

/// Sets TraceEn after `pause`, unless tracing runs, or ended by Stopped or Error meanwhile: then
/// TraceEn is not written, and `status` shows why.
///
/// Source: PRG-031, PRG-041, PRG-102.
template <msr_port Msrs>
constexpr auto resume(Msrs& msrs, ia32_rtit_ctl written) noexcept -> resumed_trace {
    using status = ia32_rtit_status;
    detail::msr_sequence on{msrs};
    resumed_trace result;
    result.trace = trace_state::disabled;
    result.status = on.template read<status>();
    if (result.status.get<status::TriggerEn>()) {
        result.trace = trace_state::enabled;
    } else if (on && !result.status.get<status::Error>() && !result.status.get<status::Stopped>()) {
        result.trace = detail::set_trace_en(on, written);
    }
    result.failed = on.failed();
    return result;
}

}  // namespace ptspec::driver

// ---- ptspec/driver/guards.hpp ----

/// What to check before a trace is enabled.
namespace ptspec::driver {

/// The conflict of a trace with branch records.
struct [[nodiscard]] lbr_conflict : procedure_result {
    bool excludes = false;  ///< this processor does not record both
    bool records = false;   ///< LBR, BTS or branch trace messages are enabled now

    /// True if both would be enabled where they exclude each other.
    constexpr explicit operator bool() const noexcept { return excludes && records; }
};

/// Checks for branch records that a trace would suspend and clear. On processors where both exist
/// IA32_DEBUGCTL is not read.
///
/// Source: SDM vol. 3, "Interaction of Intel Processor Trace and LBR"; PRG-150..152, PRG-044.
template <msr_port Msrs>
constexpr auto lbr_guard(Msrs& msrs, cpu::capabilities const& caps) noexcept -> lbr_conflict {
    using debugctl = reg::ia32_debugctl;
    lbr_conflict result;
    result.excludes = access::excludes_lbr(caps.leaf_01_eax);
    if (!result.excludes) { return result; }
    detail::msr_sequence from{msrs};
    debugctl const now = from.template read<debugctl>();
    result.failed = from.failed();
    result.records = now.get<debugctl::LBR>() || now.get<debugctl::BTS>() ||
                     now.get<debugctl::TR>();
    return result;
}

/// The rule by which memory is unsuitable for trace or for a table of `bytes` bytes: OUT-111 it
/// overlaps restricted memory, OUT-113 the page of the local APIC, for which the processor signals
/// no error. Disable tracing before the SMRRs or the APIC base change.
///
/// Source: SDM vol. 3, "Restricted Memory Access"; PRG-095..097, OUT-110..114.
[[nodiscard]] constexpr auto restricted_check(topa::output_hazards const& hazards, uint64_t base,
                                              uint64_t bytes) noexcept -> rule {
    if (bytes == 0) { return rule::none; }
    if (hazards.restricted.touches(base, bytes)) { return rule::OUT_111; }
    return topa::touches(hazards.apic, base, bytes) ? rule::OUT_113 : rule::none;
}

}  // namespace ptspec::driver

// ---- ptspec/driver/triage.hpp ----

/// Why tracing ended, and what to do before it is enabled again.
namespace ptspec::driver {

enum class end_reason : uint8_t {
    none,                ///< neither Error nor Stopped is set
    trace_stop,          ///< a branch into a TraceStop range
    topa_stop,           ///< a region with STOP is full
    trace_stop_or_topa,  ///< Stopped is set; the tables were not read
    operational_error,   ///< Error is set: the end of the trace may be lost
    set_by_software,     ///< nothing explains the bit: software set it, or repaired the cause
};

/// Why tracing ended.
struct end_of_trace {
    end_reason reason = end_reason::none;
    engine::explanation why{};  ///< the rule, the entry and the field, if they are known

    /// STATUS to write before enabling: Error and Stopped are 0, PacketByteCnt is kept.
    ia32_rtit_status status{};
    /// The output MSRs must change before enabling, or an operational error follows. Source:
    /// PRG-041, PRG-086.
    bool needs_new_position = false;
    /// A table or the value of an MSR must be repaired before enabling.
    bool needs_repair = false;
};

namespace detail {

[[nodiscard]] constexpr auto without_end_bits(ia32_rtit_status now) noexcept -> ia32_rtit_status {
    return now.with(ia32_rtit_status::Error{false}, ia32_rtit_status::Stopped{false});
}

[[nodiscard]] constexpr auto state_of(stopped_trace const& now) noexcept -> access::msr_state {
    return msr_state_of({.ctl = now.ctl, .status = now.status, .output = now.output});
}

}  // namespace detail

/// Why tracing ended, from the MSRs after `disable` alone. ToPA STOP and TraceStop look the same.
///
/// Source: SDM vol. 3, "Disabling Packet Generation"; PRG-041, PRG-042.
[[nodiscard]] constexpr auto triage(stopped_trace const& now) noexcept -> end_of_trace {
    using status = ia32_rtit_status;
    end_of_trace result{.status = detail::without_end_bits(now.status)};
    if (now.status.get<status::Error>()) {
        result.reason = end_reason::operational_error;
        result.needs_repair = true;
    } else if (now.status.get<status::Stopped>()) {
        bool const topa = detail::uses_output_msrs(now.ctl) && now.ctl.get<ia32_rtit_ctl::ToPA>();
        bool const ranges = access::has_trace_stop(detail::state_of(now));
        result.reason = topa && ranges ? end_reason::trace_stop_or_topa
                        : topa         ? end_reason::topa_stop
                        : ranges       ? end_reason::trace_stop
                                       : end_reason::set_by_software;
        result.needs_new_position = topa;
    }
    return result;
}

/// The same with the tables, which must not have changed since.
///
/// Errors: `why.fault` if a table could not be read; the reason is then as without tables.
/// Source: PRG-041, PRG-086, PRG-088; as `engine::explain`.
template <memory_port Memory>
[[nodiscard]] constexpr auto triage(stopped_trace const& now, cpu::capabilities const& caps,
                                    Memory& memory, engine::output_options const& how = {}) noexcept
    -> end_of_trace {
    end_of_trace result = triage(now);
    if (result.reason == end_reason::none) { return result; }
    result.why = engine::explain(caps, detail::state_of(now), memory, how);
    if (result.why.fault) { return result; }
    result.needs_new_position = false;
    switch (result.why.why) {
        case rule::OUT_080:
            result.reason = end_reason::topa_stop;
            result.needs_new_position = true;
            break;
        case rule::REG_068: result.reason = end_reason::trace_stop; break;
        case rule::REG_053:
            result.reason = end_reason::set_by_software;
            result.needs_repair = false;
            break;
        case rule::OUT_024:
        case rule::OUT_064:
            result.needs_new_position = true;
            result.needs_repair = false;
            break;
        default: break;
    }
    return result;
}

/// Continues after a TraceStop: clears TraceEn, reads STATUS, clears Stopped in it, and sets
/// TraceEn again at the same position. With Error set TraceEn stays 0, and STATUS is not written.
///
/// Do not use it after ToPA STOP: the position must change, see `restart`.
/// Errors: the access that faulted. `still_tracing` if TraceEn could not be cleared.
/// Source: SDM vol. 3, "Disabling Packet Generation"; PRG-020, PRG-041, PRG-042, PRG-061.
template <msr_port Msrs>
constexpr auto recover(Msrs& msrs, ia32_rtit_ctl written) noexcept -> stopped_trace {
    detail::msr_sequence on{msrs};
    stopped_trace result;
    result.ctl = written;
    result.trace = detail::clear_trace_en(on, written);
    result.status = on.template read<ia32_rtit_status>();
    if (on && !result.status.get<ia32_rtit_status::Error>()) {
        (void)on.write(detail::without_end_bits(result.status));
        if (on && written.get<ia32_rtit_ctl::TraceEn>()) {
            result.trace = detail::set_trace_en(on, written);
        }
    }
    result.failed = on.failed();
    return result;
}

}  // namespace ptspec::driver

// ---- ptspec/driver/context.hpp ----

/// Context switches: the state of a trace saved and restored, by MSR accesses or by XSAVES.
namespace ptspec::driver {

// ------------------------------------------------------------------------------------ by MSRs

/// The state of a trace that is not running. `ctl` is as it was: TraceEn is 1 if it was tracing.
struct [[nodiscard]] saved_context : procedure_result {
    msr_plan state{};
};

/// Where the trace of a saved state ends, for `triage`, `update` and `drain`.
[[nodiscard]] constexpr auto stopped_at(msr_plan const& saved) noexcept -> stopped_trace {
    stopped_trace result;
    result.trace = trace_state::disabled;
    result.ctl = saved.ctl;
    result.status = saved.status;
    result.output = saved.output;
    return result;
}

namespace detail {

template <class Sequence>
constexpr void read_ranges(Sequence& from, msr_plan& to, unsigned first) noexcept {
    for (unsigned n = first; n < ia32_rtit_addr::count; ++n) {
        if (!uses_range(to.ctl, n)) { continue; }
        to.addr[n].a = {from.read(ia32_rtit_addr::address(n, reg::range_end::a))};
        to.addr[n].b = {from.read(ia32_rtit_addr::address(n, reg::range_end::b))};
    }
}

}  // namespace detail

/// Saves the state of a trace: reads IA32_RTIT_CTL, clears TraceEn, and reads the other MSRs that
/// the trace uses. They are not exact before TraceEn is 0.
///
/// Errors: the access that faulted; the context is then incomplete. `still_tracing` if TraceEn
///         could not be cleared: nothing is saved.
/// Source: SDM vol. 3, "Context Switch Consideration"; PRG-100, PRG-103.
template <msr_port Msrs>
constexpr auto save(Msrs& msrs) noexcept -> saved_context {
    detail::msr_sequence from{msrs};
    saved_context result;
    auto& to = result.state;
    to.ctl = from.template read<ia32_rtit_ctl>();
    if (from) { result.trace = detail::clear_trace_en(from, to.ctl); }
    to.status = from.template read<ia32_rtit_status>();
    if (detail::uses_output_msrs(to.ctl)) {
        to.output.base = from.template read<ia32_rtit_output_base>();
        to.output.mask_ptrs = from.template read<ia32_rtit_output_mask_ptrs>();
    }
    if (to.ctl.get<ia32_rtit_ctl::CR3Filter>()) {
        to.cr3_match = from.template read<ia32_rtit_cr3_match>();
    }
    detail::read_ranges(from, to, 0);
    result.failed = from.failed();
    return result;
}

/// Restores the state of a trace, IA32_RTIT_CTL last. TraceEn must be 0. PacketByteCnt is restored,
/// too, so that the trace continues without a PSB.
///
/// Errors: the access that faulted; TraceEn is then 0, and the saved state can be restored again.
/// Source: SDM vol. 3, "Context Switch Consideration"; PRG-101, PRG-102.
template <msr_port Msrs>
constexpr auto restore(Msrs& msrs, msr_plan const& saved) noexcept -> procedure_result {
    detail::msr_sequence to{msrs};
    detail::program(to, saved);
    bool const done = to.write(saved.ctl);
    return {to.failed(), done ? trace_state_of(saved.ctl) : trace_state::disabled};
}

// ------------------------------------------------------------------------------------ by XSAVES

/// Component 8 in an XSAVE area that contains no other component beyond the legacy region.
///
/// Shape:  704 bytes: the legacy region of 512 bytes, the header of 64, PT state of 128. The area
///         must be at a multiple of 64 bytes.
/// Source: SDM vol. 1, "XSAVE Area"; PRG-110, REG-141.
struct xsaves_area {
    static constexpr size_t component_offset = 576;
    static constexpr size_t size = component_offset + sizeof(access::xsave_pt_state);

    byte_array<size> bytes{};
};

/// Why an XSAVE area has no state of Intel PT that XRSTORS loads.
struct [[nodiscard]] parsed_area {
    rule why = rule::none;    ///< REG-148 the header; REG-144 a reserved quadword
    bool is_initial = false;  ///< XSTATE_BV[8] is 0: XRSTORS loads the initial configuration
    access::xsave_pt_state state{};

    constexpr explicit operator bool() const noexcept { return why == rule::none; }
};

/// The offset of component 8 in a compacted area with these components, in bytes.
///
/// Source: SDM vol. 1, "Compacted Format of an XSAVE Area"; REG-141.
template <cpuid_port Cpuid>
[[nodiscard]] constexpr auto component_offset(Cpuid& cpuid,
                                              reg::xsave_header_xcomp_bv format) noexcept
    -> size_t {
    size_t at = xsaves_area::component_offset;
    for (unsigned i = 2; i <= 8; ++i) {
        if ((format.raw >> i & 1) == 0) { continue; }
        auto const component = cpuid.query(0x0D, i);
        if ((component.ecx & 2) != 0) { at = (at + 63) / 64 * 64; }
        if (i == 8) { break; }
        at += component.eax;
    }
    return at;
}

/// An area from which XRSTORS with RFBM[8] loads the state of a trace on this processor.
///
/// Address ranges 2 and 3 are not in it: write them with `write_uncovered`.
/// Source: PRG-110, PRG-112.
[[nodiscard]] constexpr auto make_xsaves_area(cpu::capabilities const& caps,
                                              msr_plan const& from) noexcept -> xsaves_area {
    auto const state = access::xsaves(caps, msr_state_of(from)).image;
    xsaves_area made;
    uint64_t const bit = uint64_t{1} << reg::xsave_header_xcomp_bv::PT::lsb;
    uint8_t* const bytes = made.bytes.bytes;
    store_le64(bytes + reg::xsave_header_xstate_bv::offset, bit);
    store_le64(bytes + reg::xsave_header_xcomp_bv::offset,
               bit | reg::xsave_header_xcomp_bv::forced_1_mask());
    for (unsigned i = 0; i < 16; ++i) {
        store_le64(bytes + xsaves_area::component_offset + 8 * i, state.quadwords[i]);
    }
    return made;
}

/// Reads component 8 from an XSAVE area of any components: `offset` is that of `component_offset`.
/// The bytes are untrusted.
///
/// Errors: REG-148 an area that is too short, not compacted, or without the component; REG-144 a
///         reserved quadword that is not 0.
/// Source: SDM vol. 1, "Operation of XRSTORS"; REG-144, REG-146, REG-148.
[[nodiscard]] constexpr auto parse_xsaves_area(
    byte_view area, size_t offset = xsaves_area::component_offset) noexcept -> parsed_area {
    using xcomp = reg::xsave_header_xcomp_bv;
    constexpr size_t bytes = sizeof(access::xsave_pt_state);
    if (offset < xsaves_area::component_offset || area.size() < bytes ||
        area.size() - bytes < offset) {
        return {.why = rule::REG_148};
    }
    reg::xsave_header_xstate_bv const present{
        load_le64(area.data() + reg::xsave_header_xstate_bv::offset)};
    xcomp const format{load_le64(area.data() + xcomp::offset)};
    auto const header = access::check_header(present, format,
                                             reg::ia32_xss{}.with(reg::ia32_xss::PT_STATE{true}));
    if (!header || !format.get<xcomp::PT>()) { return {.why = rule::REG_148}; }
    parsed_area result;
    result.is_initial = !present.get<reg::xsave_header_xstate_bv::PT>();
    if (result.is_initial) { return result; }
    for (unsigned i = 0; i < 16; ++i) {
        result.state.quadwords[i] = load_le64(area.data() + offset + 8 * i);
    }
    if (!result.state.reserved_quadwords_are_zero()) { return {.why = rule::REG_144}; }
    return result;
}

/// The state of a trace from component 8. Address ranges 2 and 3 are 0: read them with
/// `read_uncovered`.
///
/// Source: REG-141.
[[nodiscard]] constexpr auto plan_of(access::xsave_pt_state const& from) noexcept -> msr_plan {
    access::msr_state state;
    state.ctl = from.get<access::xsave_pt_state::IA32_RTIT_CTL>();
    access::detail::for_each_msr_except_ctl(
        from, [&](uint32_t index, uint64_t value) { access::set_raw(state, index, value); });
    return plan_of(state);
}

/// Reads address ranges 2 and 3, which XSAVES does not save, after XSAVES.
///
/// Source: PRG-110.
template <msr_port Msrs>
constexpr auto read_uncovered(Msrs& msrs, msr_plan& to) noexcept -> procedure_result {
    detail::msr_sequence from{msrs};
    detail::read_ranges(from, to, 2);
    return {from.failed(), trace_state::disabled};
}
/// Writes address ranges 2 and 3, which XRSTORS does not restore, before XRSTORS.
///
/// Source: PRG-110, PRG-112.
template <msr_port Msrs>
constexpr auto write_uncovered(Msrs& msrs, msr_plan const& from) noexcept -> procedure_result {
    detail::msr_sequence to{msrs};
    detail::write_ranges(to, from, 2);
    return {to.failed(), trace_state::disabled};
}

}  // namespace ptspec::driver

// ---- ptspec/driver/topa_pmi.hpp ----

/// The handler of a ToPA PMI.
namespace ptspec::driver {

/// What a PMI handler does after it read the trace.
struct pmi_decision {
    bool resume = true;           ///< set TraceEn again, if it was 1
    bool has_new_output = false;  ///< continue at `output`, not where the trace ended
    output_buffer output{};
};

/// How a handler handled a PMI.
enum class pmi_outcome : uint8_t {
    not_topa,  ///< another source of the PMI: no MSR of Intel PT was accessed
    deferred,  ///< TraceEn is 0: the PMI belongs to a context that was switched out
    handled,
};

/// The result of `on_topa_pmi`.
struct [[nodiscard]] pmi_result : stopped_trace {
    pmi_outcome outcome = pmi_outcome::not_topa;
};

/// Handles a PMI: finds out whether it is a ToPA PMI, clears TraceEn, calls
/// `drain(stopped_trace const&)`, which reads the trace and returns a `pmi_decision`, acknowledges
/// the PMI, calls `unmask_lvt()`, and sets TraceEn again.
///
/// PMIs may merge: `drain` compares positions, and never counts interrupts. Stopped and, with PMI
/// preservation, PendToPAPMI are cleared; Error is not, and ends tracing.
///
/// Errors: the access that faulted. If it is the one that clears TraceEn, `still_tracing`, and
///         `drain` is not called. After any fault the LVT is still unmasked, so that PMIs of others
///         are not lost, and TraceEn is not set again.
/// Source: SDM vol. 3, "ToPA PMI", "PMI Preservation"; PRG-087, PRG-115, PRG-120..126, OUT-084,
///         OUT-087.
template <msr_port Msrs, class Drain, class UnmaskLvt>
constexpr auto on_topa_pmi(Msrs& msrs, Drain&& drain, UnmaskLvt&& unmask_lvt) noexcept
    -> pmi_result {
    using global_status = reg::ia32_perf_global_status;
    using acknowledge = reg::ia32_perf_global_status_reset;
    using status = ia32_rtit_status;
    detail::msr_sequence on{msrs};
    pmi_result result;
    global_status const causes = on.template read<global_status>();
    result.failed = on.failed();
    if (!on || !causes.template get<global_status::Trace_ToPA_PMI>()) {
        if (!on) { unmask_lvt(); }
        return result;
    }
    result.outcome = pmi_outcome::deferred;
    result.ctl = on.template read<ia32_rtit_ctl>();
    bool const was_on = result.ctl.template get<ia32_rtit_ctl::TraceEn>();
    pmi_decision next{.resume = false};
    if (on && was_on) {
        result.trace = detail::clear_trace_en(on, result.ctl);
        detail::read_status_and_output(on, result);
        if (on) {
            next = drain(static_cast<stopped_trace const&>(result));
            result.outcome = pmi_outcome::handled;
            auto const after = result.status.template get<status::Error>()
                                   ? result.status
                                   : detail::without_end_bits(result.status);
            auto const settled = after.with(status::PendToPAPMI{false});
            if (settled != result.status) { (void)on.write(settled); }
            if (next.has_new_output) {
                (void)on.write(next.output.base);
                (void)on.write(next.output.mask_ptrs);
            }
        }
    } else if (on) {
        result.trace = trace_state::disabled;
    }
    (void)on.write(acknowledge{}.with(acknowledge::Trace_ToPA_PMI{true}));
    unmask_lvt();
    if (on && was_on && next.resume && !result.status.template get<status::Error>()) {
        result.trace = detail::set_trace_en(on, result.ctl);
    }
    result.failed = on.failed();
    return result;
}

}  // namespace ptspec::driver

// ---- ptspec/driver/ring.hpp ----

/// Buffers of many regions: their tables, and positions in them as byte offsets.
namespace ptspec::driver {

/// What happens when a buffer is full.
///
/// Source: PRG-128.
enum class buffer_recipe : uint8_t {
    circular,            ///< the oldest bytes are overwritten; no interrupt
    stop_on_full,        ///< tracing stops: the oldest bytes are kept
    interrupt_on_full,   ///< circular, with an interrupt one region before the end
    interrupt_and_stop,  ///< an interrupt one region before the end, and STOP at the end
    streaming,           ///< circular, with INT and STOP where `set_marks` places them
};

/// A page for a ToPA table: its physical address, and its entries in this program's memory.
struct table_page {
    uint64_t base = 0;
    topa::entry* entries = nullptr;
};

/// A buffer of several regions, filled in their order, and the tables that describe it. The lists
/// are borrowed and must outlive it.
///
/// Shape:  all tables but the last have `regions_per_table` regions. Offsets count bytes from the
///         start of the first region.
struct ring {
    topa::region const* regions = nullptr;
    size_t region_count = 0;
    table_page const* tables = nullptr;
    size_t table_count = 0;
    size_t regions_per_table = 0;
    uint64_t bytes = 0;  ///< of all regions
    buffer_recipe recipe = buffer_recipe::circular;
    bool has_link = true;  ///< the last table links to the first
    /// Each table has one region and links to itself: software moves on to the next table, as
    /// `drain` does. For processors whose tables have one region.
    bool is_stepped = false;
};

/// A ring, or why it cannot be built.
struct [[nodiscard]] built_ring {
    rule why = rule::none;
    size_t region = 0;  ///< the number of the region that breaks the rule
    driver::ring ring{};

    constexpr explicit operator bool() const noexcept { return why == rule::none; }
};

namespace detail {

[[nodiscard]] constexpr auto interrupts(buffer_recipe how) noexcept -> bool {
    return how == buffer_recipe::interrupt_on_full || how == buffer_recipe::interrupt_and_stop;
}
[[nodiscard]] constexpr auto stops(buffer_recipe how) noexcept -> bool {
    return how == buffer_recipe::stop_on_full || how == buffer_recipe::interrupt_and_stop;
}
/// True for recipes whose buffer software reads while it is filled.
[[nodiscard]] constexpr auto is_read_while_filled(buffer_recipe how) noexcept -> bool {
    return interrupts(how) || how == buffer_recipe::streaming;
}
/// Region `i` of `count`, with the marks of the recipe.
[[nodiscard]] constexpr auto marked(buffer_recipe how, topa::region which, size_t i,
                                    size_t count) noexcept -> topa::region {
    bool const is_last = i + 1 == count;
    bool const is_before_last = i + 2 == count || count == 1;
    which.stop = stops(how) && is_last;
    which.interrupt = interrupts(how) && (is_before_last || which.stop);
    return which;
}

}  // namespace detail

/// Writes the tables of a buffer: `entries_per_table` - 1 regions and a link each, the last link to
/// the first table. INT and STOP of the given regions are ignored: the recipe places them.
///
/// On a processor whose tables have one region, a buffer of several regions that is read while it
/// is filled becomes one table a region, each with INT and STOP: see `is_stepped`.
///
/// To add regions at the end, build it again with the longer list while TraceEn is 0 (see
/// `while_disabled`): positions stay valid. STOP and INT are then those of a new ring.
///
/// Errors: OUT-046 not enough tables; OUT-066 no region; OUT-093 an interrupt with fewer than two
///         regions on a processor of many entries; those of `topa::write_table`; OUT-111, OUT-113 a
///         region that overlaps restricted memory or the page of the local APIC; OUT-091 a table in
///         restricted memory. Tables before the one with the error are written.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; PRG-089, PRG-090, PRG-091, PRG-095,
///         PRG-096, PRG-124, PRG-126, PRG-128.
[[nodiscard]] constexpr auto build_ring(buffer_recipe how, topa::region const* regions,
                                        size_t count, table_page const* pages, size_t page_count,
                                        topa::limits of, topa::output_hazards const& hazards = {},
                                        size_t entries_per_table = 512) noexcept -> built_ring {
    if (count == 0) { return {.why = rule::OUT_066}; }
    if (detail::interrupts(how) && count < 2 && of.many_entries) { return {.why = rule::OUT_093}; }
    bool const is_stepped = !of.many_entries && detail::is_read_while_filled(how);
    size_t const per_table = entries_per_table < 2 || is_stepped ? 1 : entries_per_table - 1;
    size_t const tables = (count + per_table - 1) / per_table;
    if (entries_per_table < 2 || tables > page_count) { return {.why = rule::OUT_046}; }
    built_ring result{.ring = {.regions = regions,
                               .region_count = count,
                               .tables = pages,
                               .table_count = tables,
                               .regions_per_table = per_table,
                               .recipe = how,
                               .has_link = !detail::stops(how) || !of.many_entries,
                               .is_stepped = is_stepped}};
    for (size_t table = 0, first = 0; table < tables; ++table, first += per_table) {
        size_t const here = count - first < per_table ? count - first : per_table;
        bool const is_last = table + 1 == tables;
        uint64_t const base = pages[table].base;
        auto const region_at = [&](size_t i) {
            return is_stepped
                       ? detail::marked(buffer_recipe::interrupt_and_stop, regions[first], 0, 1)
                       : detail::marked(how, regions[first + i], first + i, count);
        };
        size_t const next = is_stepped ? table : is_last ? 0 : table + 1;
        auto const end = is_last && !result.ring.has_link ? topa::no_link
                                                          : topa::link(pages[next].base);
        auto const written = topa::write_table(of, base, here, region_at, end,
                                               pages[table].entries);
        if (written.broken != rule::none) {
            return {.why = written.broken, .region = first + written.at.index};
        }
        if (hazards.restricted.touches(base, (here + 1) * sizeof(topa::entry))) {
            return {.why = rule::OUT_091, .region = first};
        }
        for (size_t i = 0; i < here; ++i) {
            uint64_t const size = topa::bytes_in(regions[first + i].size);
            rule const why = restricted_check(hazards, regions[first + i].base, size);
            if (why != rule::none) { return {.why = why, .region = first + i}; }
            result.ring.bytes += size;
        }
    }
    return result;
}

/// The output MSRs for a ring from its start.
///
/// Source: PRG-128.
[[nodiscard]] constexpr auto start_of(ring const& which) noexcept -> output_buffer {
    return in_topa({.table = which.tables[0].base});
}

// ------------------------------------------------------------------------------------ positions

/// A position in a ring as an offset.
struct [[nodiscard]] ring_offset {
    bool found = false;
    uint64_t offset = 0;         ///< in bytes: at most that of the ring
    size_t region = 0;           ///< the number of the current region
    bool at_region_end = false;  ///< the region is full, and the next not begun: after STOP

    constexpr explicit operator bool() const noexcept { return found; }
};

namespace detail {

/// The offset of the start of a region.
[[nodiscard]] constexpr auto start_of_region(ring const& in, size_t region) noexcept -> uint64_t {
    uint64_t offset = 0;
    for (size_t i = 0; i < region; ++i) { offset += topa::bytes_in(in.regions[i].size); }
    return offset;
}

}  // namespace detail

/// A place in a ring: a region, and an offset in it.
struct region_offset {
    size_t region = 0;
    uint64_t offset = 0;
};

/// The place at an offset from the start of the ring, modulo its size.
///
/// noinline: inlined, a driver has 0.2 KB more (g++ 12, clang 19).
[[nodiscard, gnu::noinline]] constexpr auto region_at(ring const& in, uint64_t offset) noexcept
    -> region_offset {
    region_offset place{0, offset % in.bytes};
    while (place.offset >= topa::bytes_in(in.regions[place.region].size)) {
        place.offset -= topa::bytes_in(in.regions[place.region].size);
        ++place.region;
    }
    return place;
}

/// The region after another.
[[nodiscard]] constexpr auto region_after(ring const& in, size_t region) noexcept -> size_t {
    return region + 1 == in.region_count ? 0 : region + 1;
}
[[nodiscard]] constexpr auto region_before(ring const& in, size_t region) noexcept -> size_t {
    return (region == 0 ? in.region_count : region) - 1;
}

/// The offset of a position that the output MSRs held after TraceEn was cleared.
///
/// noinline: inlined, a driver has 0.3 KB more (g++ 12).
/// Errors: not found: the position is in no table of the ring, or beyond the end of its region.
/// Source: PRG-086, PRG-129, PRG-143.
[[nodiscard, gnu::noinline]] constexpr auto offset_of(ring const& in,
                                                      output_buffer const& now) noexcept
    -> ring_offset {
    auto const where = topa::position_in(now.base, now.mask_ptrs);
    size_t table = 0;
    while (table < in.table_count && in.tables[table].base != where.table) { ++table; }
    if (table == in.table_count) { return {}; }
    size_t const first = table * in.regions_per_table;
    size_t const left = in.region_count - first;
    size_t const here = left < in.regions_per_table ? left : in.regions_per_table;
    ring_offset result{.found = true, .region = first + where.index};
    if (where.index > here || (where.index == here && where.offset != 0)) { return {}; }
    if (where.index == here && in.is_stepped) { result.region = first; }
    if (result.region >= in.region_count) { result.region = 0; }  // at the last link
    uint64_t const size = topa::bytes_in(in.regions[result.region].size);
    if (where.offset > size) { return {}; }
    result.offset = detail::start_of_region(in, result.region) + where.offset;
    result.at_region_end = where.offset == size;
    return result;
}

/// The output MSRs for an offset in a ring, from which tracing continues. The offset is taken
/// modulo the size of the ring.
///
/// Source: PRG-086, PRG-129.
[[nodiscard]] constexpr auto buffer_at(ring const& in, uint64_t offset) noexcept -> output_buffer {
    auto const place = region_at(in, offset);
    return in_topa({.table = in.tables[place.region / in.regions_per_table].base,
                    .index = static_cast<uint32_t>(place.region % in.regions_per_table),
                    .offset = static_cast<uint32_t>(place.offset)});
}

/// The entry of a region.
[[nodiscard]] constexpr auto entry_of(ring const& in, size_t region) noexcept -> topa::entry& {
    return in.tables[region / in.regions_per_table].entries[region % in.regions_per_table];
}

/// Places INT and STOP of a streaming ring while TraceEn is 0: STOP and INT on the region before
/// the one with the oldest unread byte; INT on the region in which `wake_up_bytes` from `head` on
/// end, at the latest the one before STOP.
///
/// Units:  `head` is the offset of the next byte of trace, `unread` the number of bytes before it
///         that are not read.
/// The entries of a stepped ring all have INT and STOP, and are not changed.
///
/// Errors: false, and no change, if unread bytes follow `head` in its region: tracing would
///         overwrite them.
/// Source: OUT-093, OUT-094, PRG-121, PRG-126, PRG-128.
[[nodiscard]] constexpr auto set_marks(ring const& in, uint64_t head, uint64_t unread,
                                       uint64_t wake_up_bytes) noexcept -> bool {
    if (unread > in.bytes) { return false; }
    auto const current = region_at(in, head);
    auto const oldest = region_at(in, head % in.bytes + in.bytes - unread);
    bool const follows = oldest.region == current.region && oldest.offset >= current.offset;
    if (unread != 0 && follows) { return false; }
    if (in.is_stepped) { return true; }
    size_t const stop = region_before(in, unread == 0 ? current.region : oldest.region);
    size_t wake_up = current.region;
    uint64_t room = topa::bytes_in(in.regions[wake_up].size) - current.offset;
    while (room < wake_up_bytes && wake_up != stop) {
        wake_up = region_after(in, wake_up);
        room += topa::bytes_in(in.regions[wake_up].size);
    }
    if (wake_up == stop && wake_up != current.region) { wake_up = region_before(in, wake_up); }
    using topa::entry;
    for (size_t i = 0; i < in.region_count; ++i) {
        bool const stops = i == stop;
        entry& one = entry_of(in, i);
        one = one.with(entry::STOP{stops}, entry::INT{stops || i == wake_up});
    }
    return true;
}

/// Makes the entry of a region a link to another table, where tracing continues after the regions
/// before it. The handler of a PMI may do so for a context whose MSRs are saved, and for the
/// running one while TraceEn is 0. The regions from here on are no longer part of the ring.
///
/// Errors: OUT-066 the first entry of a table; OUT-061 a table that is not at a multiple of 4 KB;
///         OUT-068 a ring of one region a table; OUT-093 the region at `now`, whose entry is in
///         use. Nothing is changed.
/// Source: SDM vol. 3, "ToPA PMI"; PRG-091, PRG-115, PRG-124, OUT-093.
[[nodiscard]] constexpr auto link_instead(ring const& in, size_t region, uint64_t table,
                                          output_buffer const& now) noexcept -> rule {
    if (in.is_stepped) { return rule::OUT_068; }
    if (region % in.regions_per_table == 0) { return rule::OUT_066; }
    if (!is_aligned(table, 4096)) { return rule::OUT_061; }
    auto const at = offset_of(in, now);
    if (at && at.region == region) { return rule::OUT_093; }
    entry_of(in, region) = topa::link_to(table);
    return rule::none;
}

}  // namespace ptspec::driver

// ---- ptspec/driver/ring_reader.hpp ----

/// Reads a ring in the order of writing, without copying.
namespace ptspec::driver {

/// A part of a ring: `count` bytes from an offset on, which may continue at the start of the ring.
struct ring_part {
    uint64_t from = 0;  ///< less than the size of the ring
    uint64_t count = 0;

    friend constexpr auto operator==(ring_part const&, ring_part const&) -> bool = default;
};

/// Calls `visit(base, bytes)` with the contiguous physical memory of a part, in order. Regions that
/// are adjacent in memory are merged. A visitor that returns bool stops with false.
///
/// Source: PRG-129.
template <class Visit>
constexpr void for_each_span(ring const& in, ring_part part, Visit&& visit) noexcept {
    if (part.count == 0) { return; }
    auto [region, at] = region_at(in, part.from);
    uint64_t base = in.regions[region].base + at;
    uint64_t bytes = 0;
    uint64_t left = part.count;
    while (left != 0) {
        uint64_t const size = topa::bytes_in(in.regions[region].size);
        uint64_t const here = size - at < left ? size - at : left;
        uint64_t const start = in.regions[region].base + at;
        if (start != base + bytes) {
            if constexpr (requires { static_cast<bool>(visit(base, bytes)); }) {
                if (!visit(base, bytes)) { return; }
            } else {
                visit(base, bytes);
            }
            base = start;
            bytes = 0;
        }
        bytes += here;
        left -= here;
        at = 0;
        region = region_after(in, region);
    }
    (void)visit(base, bytes);
}

// ------------------------------------------------------------------------------------ streaming

/// The reader of a ring in which unread bytes are not overwritten: see `set_marks`.
struct ring_reader {
    uint64_t read_at = 0;  ///< the offset of the oldest unread byte
    uint64_t unread = 0;   ///< the number of unread bytes
    uint64_t total = 0;    ///< bytes of trace since the start

    /// The offset at which the next byte of trace is stored.
    [[nodiscard]] constexpr auto head(ring const& in) const noexcept -> uint64_t {
        return (read_at + unread) % in.bytes;
    }
    /// The unread bytes, in order.
    [[nodiscard]] constexpr auto part() const noexcept -> ring_part { return {read_at, unread}; }
    /// Marks bytes as read, at most the unread ones.
    constexpr void consume(ring const& in, uint64_t bytes) noexcept {
        uint64_t const done = bytes < unread ? bytes : unread;
        read_at = (read_at + done) % in.bytes;
        unread -= done;
    }
};

/// The result of `update`.
struct [[nodiscard]] ring_update {
    bool found = false;          ///< false: the position is not in the ring
    uint64_t new_bytes = 0;      ///< stored since the last update
    uint64_t overwritten = 0;    ///< unread bytes that new ones replaced: the oldest, now skipped
    bool at_region_end = false;  ///< a region with STOP is full: tracing cannot continue there

    constexpr explicit operator bool() const noexcept { return found; }
};

/// Takes the position of a trace after TraceEn was cleared. A region with STOP that is full may
/// show its size or its last byte as the offset, by edition of the manual.
///
/// Without STOP the position after a whole lap is that after no byte: no byte is assumed.
///
/// Errors: not found: the position is in no table of the ring; nothing is changed.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; PRG-086, PRG-123, PRG-129, PRG-143.
constexpr auto update(ring const& in, ring_reader& reader, stopped_trace const& now) noexcept
    -> ring_update {
    auto at = offset_of(in, now.output);
    if (!at) { return {}; }
    bool const has_stop = entry_of(in, at.region).template get<topa::entry::STOP>();
    if (now.status.get<ia32_rtit_status::Stopped>() && has_stop && !at.at_region_end) {
        uint64_t const last = topa::bytes_in(in.regions[at.region].size) - 1;
        if (topa::position_in(now.output.base, now.output.mask_ptrs).offset == last) {
            ++at.offset;  // the newer edition
            at.at_region_end = true;
        }
    }
    uint64_t const head = reader.head(in);
    uint64_t const to = at.offset % in.bytes;
    uint64_t count = to >= head ? to - head : to + in.bytes - head;
    if (count == 0 && at.at_region_end) { count = in.bytes; }
    ring_update result{.found = true, .new_bytes = count, .at_region_end = at.at_region_end};
    reader.total += count;
    reader.unread += count;
    if (reader.unread > in.bytes) {
        result.overwritten = reader.unread - in.bytes;
        reader.read_at = (reader.read_at + result.overwritten) % in.bytes;
        reader.unread = in.bytes;
    }
    return result;
}

// ------------------------------------------------------------------------------------ snapshots

/// The trace in a ring that overwrites its oldest bytes. If it wrapped, the first bytes may be the
/// end of a packet: decoding begins at the first PSB.
///
/// Errors: empty, and `found` false, for a position in no table of the ring.
/// Source: PRG-129, PRG-141..143.
struct [[nodiscard]] snapshot_part {
    bool found = false;
    ring_part part{};

    constexpr explicit operator bool() const noexcept { return found; }
};
[[nodiscard]] constexpr auto snapshot(ring const& in, output_buffer const& now,
                                      bool wrapped) noexcept -> snapshot_part {
    auto const at = offset_of(in, now);
    if (!at) { return {}; }
    uint64_t const end = at.offset % in.bytes;
    bool const is_full = wrapped || at.offset == in.bytes;
    return {true, is_full ? ring_part{end, in.bytes} : ring_part{0, at.offset}};
}

namespace detail {

/// The number of bytes up to the last one of a part that is not zero; 0 if all are zero. Memory
/// that cannot be read counts as zero.
template <memory_port Memory>
[[nodiscard]] constexpr auto bytes_until_zeros(ring const& in, ring_part part,
                                               Memory& memory) noexcept -> uint64_t {
    uint64_t last = 0;
    uint64_t before = 0;
    for_each_span(in, part, [&](uint64_t base, uint64_t bytes) {
        for (uint64_t at = align_down(base, 8); at < base + bytes; at += 8) {
            auto const word = memory.load(at);
            uint64_t value = word ? word.value : 0;
            if (at < base) { value &= ~low_bits(static_cast<unsigned>(8 * (base - at))); }
            if (base + bytes - at < 8) {
                value &= low_bits(static_cast<unsigned>(8 * (base + bytes - at)));
            }
            if (value == 0) { continue; }
            unsigned bytes_used = 8;
            while (value >> (8 * (bytes_used - 1)) == 0) { --bytes_used; }
            last = before + (at - base) + bytes_used;
        }
        before += bytes;
    });
    return last;
}

}  // namespace detail

/// True if a ring whose memory was zero at the start has wrapped: if a byte after the position is
/// not zero. Looks at `look_at` bytes after it, and at as many at the end of the ring: a trace may
/// contain zeros (PAD).
///
/// Errors: memory that cannot be read counts as zero.
/// Source: PRG-140.
template <memory_port Memory>
[[nodiscard]] constexpr auto has_wrapped(ring const& in, output_buffer const& now, Memory& memory,
                                         uint64_t look_at = 4096) noexcept -> bool {
    auto const at = offset_of(in, now);
    if (!at || at.offset >= in.bytes) { return false; }
    uint64_t const after = in.bytes - at.offset;
    uint64_t const count = after < look_at ? after : look_at;
    return detail::bytes_until_zeros(in, {at.offset, count}, memory) != 0 ||
           detail::bytes_until_zeros(in, {in.bytes - count, count}, memory) != 0;
}

/// The part of a ring up to its last byte that is not zero: the trace, when its position is lost
/// and the memory was zero at the start. It may end with PADs that are left out.
///
/// Errors: memory that cannot be read counts as zero.
/// Source: PRG-140.
template <memory_port Memory>
[[nodiscard]] constexpr auto part_in_memory(ring const& in, Memory& memory) noexcept -> ring_part {
    return {0, detail::bytes_until_zeros(in, {0, in.bytes}, memory)};
}

/// The number of bytes at the start of `newer` that `older` ends with: two snapshots of a ring that
/// overwrites its oldest bytes have them in common. The largest such number; the bytes after it
/// continue `older`.
///
/// Takes time in proportion to the shorter one, for any bytes. Positions alone do not tell whether
/// a lap passed between the snapshots.
/// Source: PRG-140.
[[nodiscard]] constexpr auto overlap_of(byte_view older, byte_view newer) noexcept -> size_t {
    constexpr uint64_t base = 0x0010'0000'01B3;  // of the polynomial; odd
    size_t most = older.size() < newer.size() ? older.size() : newer.size();
    // Equal hashes of different bytes are improbable, and bounded: each attempt looks at fewer.
    for (unsigned attempt = 0; attempt < 4 && most != 0; ++attempt) {
        uint64_t end_hash = 0;    // of the last bytes of the older
        uint64_t start_hash = 0;  // of the first bytes of the newer
        uint64_t power = 1;
        size_t found = 0;
        for (size_t count = 1; count <= most; ++count) {
            end_hash += power * (older[older.size() - count] + 1U);
            start_hash = start_hash * base + newer[count - 1] + 1U;
            power *= base;
            if (end_hash == start_hash) { found = count; }
        }
        if (found == 0 || older.from(older.size() - found) == newer.first(found)) { return found; }
        most = found - 1;
    }
    return 0;
}

// ------------------------------------------------------------------------------------ one range

/// The trace in a single range, which is circular.
///
/// Source: SDM vol. 3, "Single Range Output"; PRG-081, PRG-142.
struct single_range_part {
    uint64_t first_base = 0;  ///< the older bytes
    uint64_t first_bytes = 0;
    uint64_t second_base = 0;  ///< the newer bytes
    uint64_t second_bytes = 0;

    friend constexpr auto operator==(single_range_part const&, single_range_part const&)
        -> bool = default;
};
[[nodiscard]] constexpr auto snapshot_of_single_range(output_buffer const& now,
                                                      bool wrapped) noexcept -> single_range_part {
    uint64_t const bytes = single_range::mask_of(now.mask_ptrs) + 1;
    uint64_t const offset = now.mask_ptrs.get<ia32_rtit_output_mask_ptrs::OutputOffset>();
    uint64_t const end = offset < bytes ? offset : 0;
    return {now.base.raw + end, wrapped ? bytes - end : 0, now.base.raw, end};
}

}  // namespace ptspec::driver

// ---- ptspec/driver/reset.hpp ----

/// The last trace before a reset or a sleep state.
namespace ptspec::driver {

/// What a reset left.
struct [[nodiscard]] reset_trace : stopped_trace {
    bool is_preserved = false;  ///< the MSRs are those of before the reset
};

/// Reads the MSRs after a warm reset: where the last trace ended, if the processor preserves them.
/// The bytes in its internal buffer are lost. STATUS must be written before tracing is enabled.
///
/// Errors: the access that faulted. `enabled` if TraceEn is 1: another agent enabled it since.
/// Source: SDM vol. 3, "Warm Reset"; PRG-070, PRG-071, PRG-260.
template <msr_port Msrs>
constexpr auto after_warm_reset(Msrs& msrs, cpu::capabilities const& caps) noexcept -> reset_trace {
    detail::msr_sequence from{msrs};
    reset_trace result;
    result.ctl = from.template read<ia32_rtit_ctl>();
    result.failed = from.failed();
    if (!from) { return result; }
    result.trace = trace_state_of(result.ctl);
    if (result.trace == trace_state::enabled) { return result; }
    result.is_preserved = caps.has_ip_filtering();
    if (caps.has_output_msrs()) { detail::read_status_and_output(from, result); }
    return result;
}

/// The trace that memory still has after a cold reset.
struct [[nodiscard]] cold_reset_trace : procedure_result {
    ring_part part{};  ///< from the start of the ring to its last byte that is not 0
};

/// Finds the last trace after a cold reset, or a sleep state such as S3 with the same effect: all
/// MSRs are 0, and the position is lost. If memory kept its contents, and the ring was 0 when
/// tracing began and has not wrapped, the trace ends after the last byte that is not 0, or after
/// PADs. In a ring that wrapped, each PSB begins a piece.
///
/// Program every MSR again: `restore` or `enable` with all values, none of them remembered as
/// written.
///
/// Errors: the access that faulted. `enabled` if TraceEn is 1: another agent enabled it since.
///         Memory that cannot be read counts as 0.
/// Source: PRG-030, PRG-070, PRG-140, PRG-260.
template <msr_port Msrs, memory_port Memory>
constexpr auto after_cold_reset(Msrs& msrs, ring const& in, Memory& memory) noexcept
    -> cold_reset_trace {
    cold_reset_trace result;
    detail::msr_sequence from{msrs};
    auto const ctl = from.template read<ia32_rtit_ctl>();
    result.failed = from.failed();
    if (!from) { return result; }
    result.trace = trace_state_of(ctl);
    if (result.trace == trace_state::enabled) { return result; }
    result.part = part_in_memory(in, memory);
    return result;
}

}  // namespace ptspec::driver

// ---- ptspec/driver/drain.hpp ----

/// Reading out a ring between two periods of tracing.
namespace ptspec::driver {

/// What `drain` did.
struct [[nodiscard]] drained : ring_update {
    /// The end of a full buffer, or a TraceStop range, ended tracing: the trace has a gap here.
    bool was_stopped = false;
    pmi_decision next{};  ///< how tracing continues
};

/// The bytes left in a region below which a stepped ring moves on to the next region: the PMI of a
/// processor whose tables have one region comes up to this many bytes early.
///
/// Source: PRG-126, OUT-101.
inline constexpr uint64_t pmi_margin = engine::output_options{}.pmi_lead_bytes;

/// Reads out a ring after TraceEn was cleared: calls `visit(base, bytes)` with the physical memory
/// of the new bytes in order, which are then free, and prepares the ring for more: INT and STOP of
/// a streaming ring, the position after a full region, the next region of a stepped ring.
///
/// Units:  `wake_up_bytes` of trace from here on cause the next PMI of a streaming ring; 0: half of
///         the ring.
/// Errors: not found: the position is not in the ring. Nothing is visited, and `next.resume` is
///         false.
/// Source: PRG-086, PRG-121..123, PRG-126, PRG-129, OUT-093, OUT-094.
template <class Visit>
constexpr auto drain(ring const& in, ring_reader& reader, stopped_trace const& now, Visit&& visit,
                     uint64_t wake_up_bytes = 0) noexcept -> drained {
    drained result{update(in, reader, now)};
    result.was_stopped = now.status.get<ia32_rtit_status::Stopped>();
    if (!result.found) {
        result.next.resume = false;
        return result;
    }
    for_each_span(in, reader.part(), visit);
    reader.consume(in, reader.unread);
    result.next.has_new_output = result.at_region_end;
    if (in.is_stepped && !result.at_region_end) {
        auto const place = region_at(in, reader.read_at);
        uint64_t const left = topa::bytes_in(in.regions[place.region].size) - place.offset;
        if (left <= pmi_margin) {
            reader.read_at = (reader.read_at + left) % in.bytes;
            result.next.has_new_output = true;
        }
    }
    uint64_t const head = reader.head(in);
    if (result.next.has_new_output) { result.next.output = buffer_at(in, head); }
    if (in.recipe == buffer_recipe::streaming) {
        (void)set_marks(in, head, 0, wake_up_bytes != 0 ? wake_up_bytes : in.bytes / 2);
    }
    return result;
}

/// Prepares a saved state for `restore` after its ring was read out. Error stays set: see `triage`.
///
/// Source: PRG-041, PRG-086.
constexpr void continue_after(drained const& read_out, msr_plan& saved) noexcept {
    saved.status = saved.status.with(ia32_rtit_status::Stopped{false});
    if (read_out.next.has_new_output) { saved.output = read_out.next.output; }
}

}  // namespace ptspec::driver

// ---- ptspec/driver/fake_processor.hpp ----

/// A logical processor for tests of drivers: CPUID, MSRs, the trace unit, and its interrupt.
namespace ptspec::driver {

/// The CPUID leaves that enumerate given capabilities, as a `cpuid_port`.
///
/// Source: REG-160..168, PRG-001.
class capabilities_cpuid {
public:
    constexpr explicit capabilities_cpuid(cpu::capabilities const& caps) noexcept : caps_{caps} {}

    [[nodiscard]] constexpr auto query(uint32_t leaf, uint32_t subleaf) const noexcept
        -> cpuid_registers {
        switch (leaf) {
            case 0x00: return {.eax = 0x15};
            case 0x01: return {.eax = caps_.leaf_01_eax.raw, .ecx = caps_.leaf_01_ecx.raw};
            case 0x07: return {.ebx = subleaf == 0 ? caps_.leaf_07_0_ebx.raw : 0};
            case 0x0A: return {.eax = caps_.leaf_0a_eax.raw};
            case 0x0D:
                if (subleaf == 1) {
                    return {.eax = caps_.leaf_0d_1_eax.raw, .ecx = caps_.leaf_0d_1_ecx.raw};
                }
                if (subleaf == 8) {
                    return {.eax = caps_.leaf_0d_8_eax.raw, .ecx = caps_.leaf_0d_8_ecx.raw};
                }
                return {};
            case 0x14:
                if (subleaf == 0) {
                    return {.eax = caps_.leaf_14_0_eax.raw,
                            .ebx = caps_.leaf_14_0_ebx.raw,
                            .ecx = caps_.leaf_14_0_ecx.raw};
                }
                if (subleaf == 1) {
                    return {.eax = caps_.leaf_14_1_eax.raw,
                            .ebx = caps_.leaf_14_1_ebx.raw,
                            .ecx = caps_.leaf_14_1_ecx.raw};
                }
                return {};
            case 0x15:
                return {.eax = caps_.leaf_15_eax.raw,
                        .ebx = caps_.leaf_15_ebx.raw,
                        .ecx = caps_.leaf_15_ecx.raw};
            case 0x8000'0000: return {.eax = 0x8000'0008};
            case 0x8000'0008: return {.eax = caps_.leaf_80000008_eax.raw};
            default: return {};
        }
    }

private:
    cpu::capabilities caps_;
};

/// Why an access of a `fake_processor` failed.
struct fake_fault {
    rule general_protection = rule::none;  ///< the rule of a #GP; none for an unknown MSR
    bool is_unknown_msr = false;
    port_fault memory{};  ///< the memory port failed: retry the access

    friend constexpr auto operator==(fake_fault const&, fake_fault const&) -> bool = default;
};

namespace detail {

/// A memory port whose interrupts are recorded, and whose stores are passed to `tap` first.
template <memory_port Memory, class Tap>
struct tapped_memory {
    Memory& memory;
    Tap& tap;
    bool& interrupt;

    constexpr auto load(uint64_t address) noexcept -> port_value { return memory.load(address); }
    constexpr auto store(uint64_t address, byte_view bytes) noexcept -> size_t {
        size_t const stored = memory.store(address, bytes);
        tap(address, bytes.first(stored));
        return stored;
    }
    constexpr auto send(byte_view bytes) noexcept -> size_t
        requires fabric_port<Memory>
    {
        return memory.send(bytes);
    }
    constexpr void raise() noexcept { interrupt = true; }
};

}  // namespace detail

/// Ignores the bytes of trace.
struct no_tap {
    constexpr void operator()(uint64_t, byte_view) const noexcept {}
};

/// A logical processor. Each event and access goes to its trace unit, whose bytes go to the memory
/// port and to `tap(address, bytes)`; its PMIs become pending and are delivered by `deliver_pmi`.
///
/// It is an `msr_port` and a `cpuid_port`. An access is made by the instruction at the current IP.
/// Besides the MSRs of the trace unit it has IA32_PERF_GLOBAL_CTRL, the x2APIC LVT entry, and the
/// capability MSRs. All others raise #GP.
///
/// Shape:  a value, except that it borrows the memory port and the tap.
/// Source: as `engine::trace_unit`; OUT-082..087, REG-203..205.
template <memory_port Memory, class Tap = no_tap, size_t Depth = 1024>
class fake_processor {
public:
    /// The length of WRMSR, in bytes.
    static constexpr unsigned wrmsr_bytes = 2;

    /// Without options it has those of its kind, as `engine::trace_unit`.
    constexpr fake_processor(cpu::capabilities const& caps, Memory& memory, Tap& tap,
                             engine::execution_context const& code = {}, uint64_t ip = 0) noexcept
        : fake_processor{caps, memory, tap, code, ip, engine::options_of(caps)} {}
    constexpr fake_processor(cpu::capabilities const& caps, Memory& memory, Tap& tap,
                             engine::execution_context const& code, uint64_t ip,
                             engine::model_options const& options) noexcept
        : fake_processor{caps, memory, tap, access::msr_state{}, code, ip, options} {}
    /// A processor that has executed for a while, as `engine::trace_unit`.
    constexpr fake_processor(cpu::capabilities const& caps, Memory& memory, Tap& tap,
                             access::msr_state const& msrs, engine::execution_context const& code,
                             uint64_t ip) noexcept
        : fake_processor{caps, memory, tap, msrs, code, ip, engine::options_of(caps)} {}
    constexpr fake_processor(cpu::capabilities const& caps, Memory& memory, Tap& tap,
                             access::msr_state const& msrs, engine::execution_context const& code,
                             uint64_t ip, engine::model_options const& options) noexcept
        : caps_{caps}, memory_{memory}, tap_{tap}, unit_{caps, msrs, code, ip, options} {}

    // -------------------------------------------------------------------------------- ports

    [[nodiscard]] constexpr auto query(uint32_t leaf, uint32_t subleaf) const noexcept
        -> cpuid_registers {
        return capabilities_cpuid{caps_}.query(leaf, subleaf);
    }

    constexpr auto read(uint32_t index) noexcept -> port_value {
        fault_ = {};
        if (auto const* const word = own_msr(index)) { return {true, *word}; }
        if (auto const value = capability_msr(index)) { return value; }
        auto const got = unit_.rdmsr(index);
        if (!got) {
            fault_ = {.general_protection = got.verdict.why,
                      .is_unknown_msr = got.verdict.what == access::outcome::not_covered};
            return {};
        }
        return {true, got.value};
    }
    constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        fault_ = {};
        if (auto* const word = own_msr(index)) {
            *word = value;
            return true;
        }
        bool const was_on = is_tracing();
        auto memory = ports();
        auto const result = unit_.wrmsr(index, value, unit_.ip(), unit_.ip() + wrmsr_bytes, memory);
        note_change(was_on);
        fault_ = {.general_protection = result.why,
                  .is_unknown_msr = result.what == engine::access_outcome::not_covered,
                  .memory = result.fault};
        return result.took_effect();
    }
    /// Counts the fences.
    constexpr void fence() noexcept { ++fences_; }

    /// Why the last access failed.
    [[nodiscard]] constexpr auto fault() const noexcept -> fake_fault { return fault_; }
    [[nodiscard]] constexpr auto fences() const noexcept -> uint64_t { return fences_; }

    // -------------------------------------------------------------------------------- execution

    /// Executes an event of `engine::event`.
    template <class Event>
    constexpr auto on(Event const& e) noexcept -> port_fault {
        bool const was_on = is_tracing();
        auto memory = ports();
        auto const fault = unit_.on(e, memory);
        note_change(was_on);
        return fault;
    }
    constexpr auto xsaves() noexcept -> engine::xsaves_result {
        bool const was_on = is_tracing();
        auto memory = ports();
        auto result = unit_.xsaves(unit_.ip(), unit_.ip() + xsaves_bytes, memory);
        note_change(was_on);
        return result;
    }
    constexpr auto xrstors(access::xsave_pt_state const& image) noexcept -> engine::xrstors_result {
        bool const was_on = is_tracing();
        auto memory = ports();
        auto result = unit_.xrstors(image, unit_.ip(), unit_.ip() + xsaves_bytes, memory);
        note_change(was_on);
        return result;
    }
    constexpr void warm_reset(engine::execution_context const& after, uint64_t ip) noexcept {
        unit_.warm_reset(after, ip);
        lvt_ = masked_lvt;
        pmi_pending_ = false;
    }
    constexpr void cold_reset(engine::execution_context const& after, uint64_t ip) noexcept {
        unit_.cold_reset(after, ip);
        lvt_ = masked_lvt;
        global_ctrl_ = 0;
        pmi_pending_ = false;
    }

    // -------------------------------------------------------------------------------- the PMI

    /// True if `deliver_pmi` would deliver: a PMI is pending, and the LVT entry is not masked.
    [[nodiscard]] constexpr auto pmi_is_deliverable() const noexcept -> bool {
        return pmi_pending_ && !reg::ia32_x2apic_lvt_pmi{lvt_}.get<lvt::Mask>();
    }
    /// Delivers a pending PMI: the LVT entry becomes masked. False if there is none to deliver.
    constexpr auto deliver_pmi() noexcept -> bool {
        if (!pmi_is_deliverable()) { return false; }
        pmi_pending_ = false;
        lvt_ = access::after_delivery(lvt{lvt_}).raw;
        if (access::deliver_pmi(caps_, unit_.msrs()).clears_global_ctrl) { global_ctrl_ = 0; }
        return true;
    }

    // -------------------------------------------------------------------------------- state

    [[nodiscard]] constexpr auto unit() const noexcept -> engine::trace_unit<Depth> const& {
        return unit_;
    }
    [[nodiscard]] constexpr auto msrs() const noexcept -> access::msr_state { return unit_.msrs(); }
    /// TraceEn.
    [[nodiscard]] constexpr auto is_tracing() const noexcept -> bool {
        return unit_.state().template ctl<reg::ia32_rtit_ctl::TraceEn>();
    }
    /// The rule by which tracing ended while TraceEn stays 1: of STOP, TraceStop or an operational
    /// error. None if it runs, or TraceEn is 0.
    [[nodiscard]] constexpr auto why_stopped() const noexcept -> rule {
        bool const runs = unit_.msrs().status.template get<reg::ia32_rtit_status::TriggerEn>();
        if (runs || !is_tracing()) { return rule::none; }
        rule const of_output = unit_.why_ended();
        return of_output != rule::none ? of_output : rule::REG_068;
    }
    /// How often TraceEn became 1, and 0.
    [[nodiscard]] constexpr auto times_enabled() const noexcept -> uint64_t { return enabled_; }
    [[nodiscard]] constexpr auto times_disabled() const noexcept -> uint64_t { return disabled_; }

private:
    using lvt = reg::ia32_x2apic_lvt_pmi;
    static constexpr unsigned xsaves_bytes = 4;  // XSAVES64, XRSTORS64
    static constexpr uint64_t masked_lvt = lvt{}.with(lvt::Mask{true}).raw;

    [[nodiscard]] constexpr auto ports() noexcept -> detail::tapped_memory<Memory, Tap> {
        return {memory_, tap_, pmi_pending_};
    }
    constexpr void note_change(bool was_on) noexcept {
        bool const is_on = is_tracing();
        enabled_ += !was_on && is_on;
        disabled_ += was_on && !is_on;
    }
    [[nodiscard]] constexpr auto own_msr(uint32_t index) noexcept -> uint64_t* {
        return index == reg::ia32_perf_global_ctrl::address ? &global_ctrl_
               : index == lvt::address                      ? &lvt_
                                                            : nullptr;
    }
    [[nodiscard]] constexpr auto capability_msr(uint32_t index) const noexcept -> port_value {
        switch (index) {
            case reg::msr_platform_info::address: return {true, caps_.platform_info.raw};
            case reg::ia32_perf_capabilities::address: return {true, caps_.perf_capabilities.raw};
            case reg::ia32_vmx_misc::address: return {true, caps_.vmx_misc.raw};
            case reg::ia32_vmx_procbased_ctls2::address:
                return {true, caps_.vmx_procbased_ctls2.raw};
            case reg::ia32_vmx_exit_ctls::address: return {true, caps_.vmx_exit_ctls.raw};
            case reg::ia32_vmx_entry_ctls::address: return {true, caps_.vmx_entry_ctls.raw};
            default: return {};
        }
    }

    cpu::capabilities caps_;
    Memory& memory_;
    Tap& tap_;
    engine::trace_unit<Depth> unit_;
    uint64_t global_ctrl_ = 0;
    uint64_t lvt_ = masked_lvt;
    bool pmi_pending_ = false;
    fake_fault fault_{};
    uint64_t fences_ = 0;
    uint64_t enabled_ = 0;
    uint64_t disabled_ = 0;
};

}  // namespace ptspec::driver

// ---- ptspec/vmx/controls.hpp ----

/// The VM-execution, VM-exit and VM-entry controls of Intel PT and the MSR lists of a VMCS: the
/// checks of VM entry on them, their effects, and their values for each usage model.
namespace ptspec::vmx {

using access::ia32_rtit_ctl;
using access::msr_state;
using cpu::capabilities;

// ------------------------------------------------------------------------------------ controls

/// The control words of a VMCS that concern Intel PT.
struct controls {
    reg::vmcs_secondary_proc_ctls secondary{};
    reg::vmcs_vmexit_ctls vm_exit{};
    reg::vmcs_vmentry_ctls vm_entry{};
    bool enable_ept = false;  ///< secondary processor-based control 1

    friend constexpr auto operator==(controls const&, controls const&) -> bool = default;
};

namespace detail {

/// The bits of a control word that belong to Intel PT: all rows except `other`.
template <class Word>
constexpr auto pt_bits(Word word) noexcept -> uint32_t {
    return word.raw &
           ~ptspec::detail::bits_of_kind<uint32_t>(typename Word::layout::rows{}, row_kind::other);
}

/// True when a capability MSR allows the Intel PT controls in a control word. Its upper half has
/// the controls that may be 1, its lower half those that must be 1.
template <class Word>
constexpr auto is_allowed(Word word, auto capability) noexcept -> bool {
    auto const can_be_1 = static_cast<uint32_t>(capability.raw >> 32);
    auto const must_be_1 = static_cast<uint32_t>(capability.raw);
    return pt_bits(Word{(word.raw & ~can_be_1) | (~word.raw & must_be_1)}) == 0;
}

}  // namespace detail

/// Calls `found` with every rule by which VM entry fails on the controls of Intel PT. `host` is
/// IA32_RTIT_CTL at the start of VM entry.
///
/// Errors: REG-129 guest-physical output without EPT, load and clear; REG-130 TraceEn of the host
///         is 1 and VM entry loads CTL; REG-132 a control where Intel PT is not allowed in VMX
///         operation; REG-135 a control that a capability MSR does not allow.
/// Source: SDM vol. 3, "Checks on VMX Controls"; REG-129, REG-130, REG-132, REG-135.
template <class Found>
constexpr void find_broken_rules(capabilities const& caps, controls const& set, ia32_rtit_ctl host,
                                 Found&& found) noexcept {
    bool const load = set.vm_entry.get<reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL>();
    bool const clear = set.vm_exit.get<reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL>();
    uint32_t const any = detail::pt_bits(set.secondary) | detail::pt_bits(set.vm_exit) |
                         detail::pt_bits(set.vm_entry);
    if (caps.vmx() == cpu::vmx_support::none && any != 0) { found(rule::REG_132); }
    if (!detail::is_allowed(set.secondary, caps.vmx_procbased_ctls2) ||
        !detail::is_allowed(set.vm_exit, caps.vmx_exit_ctls) ||
        !detail::is_allowed(set.vm_entry, caps.vmx_entry_ctls)) {
        found(rule::REG_135);
    }
    if (set.secondary.get<reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr>() &&
        !(set.enable_ept && load && clear)) {
        found(rule::REG_129);
    }
    if (load && host.get<ia32_rtit_ctl::TraceEn>()) { found(rule::REG_130); }
}

/// The first rule by which VM entry fails on the controls of Intel PT.
///
/// Source: REG-129, REG-130, REG-132, REG-135.
[[nodiscard]] constexpr auto broken_rule(capabilities const& caps, controls const& set,
                                         ia32_rtit_ctl host) noexcept -> rule {
    first_rule first;
    find_broken_rules(caps, set, host, first);
    return first.found;
}

/// Sets the three controls that give a guest its own Intel PT. Clears all of them where the
/// processor lacks one, or without EPT: then hide Intel PT from the guest (`without_pt`).
///
/// Source: REG-125..129.
[[nodiscard]] constexpr auto with_guest_pt(capabilities const& caps, controls set) noexcept
    -> controls {
    bool const whole = caps.vmx() == cpu::vmx_support::whole && set.enable_ept;
    set.secondary = set.secondary.with(reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr{whole});
    set.vm_exit = set.vm_exit.with(reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL{whole});
    set.vm_entry = set.vm_entry.with(reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL{whole});
    return set;
}

/// CPUID.07H.0:EBX for a guest without Intel PT.
///
/// Source: REG-134, REG-234.
[[nodiscard]] constexpr auto without_pt(reg::cpuid_07h_0_ebx leaf) noexcept
    -> reg::cpuid_07h_0_ebx {
    return leaf.with(reg::cpuid_07h_0_ebx::INTEL_PT{false});
}

/// True where the guest-state field for IA32_RTIT_CTL exists in a VMCS.
///
/// Source: REG-127.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto has_guest_ctl_field(Capabilities const& caps) noexcept -> bool {
    return caps.vmx_exit_ctls.template get<reg::ia32_vmx_exit_ctls::Can1_CLEAR_IA32_RTIT_CTL>() ||
           caps.vmx_entry_ctls.template get<reg::ia32_vmx_entry_ctls::Can1_LOAD_IA32_RTIT_CTL>();
}

// ------------------------------------------------------------------------------------ MSR lists

/// An entry of an MSR list of a VMCS.
///
/// Shape:  16 bytes, as in memory.
/// Source: SDM vol. 3, "VM-Entry Controls for MSRs"; PRG-165.
struct msr_list_entry {
    uint32_t index = 0;
    uint32_t reserved = 0;
    uint64_t value = 0;

    friend constexpr auto operator==(msr_list_entry const&, msr_list_entry const&)
        -> bool = default;
};
static_assert(sizeof(msr_list_entry) == 16);

/// The entries of an MSR list, owned by the caller.
struct msr_list {
    msr_list_entry const* entries = nullptr;
    size_t count = 0;
};

/// The fields of a VMCS that concern Intel PT.
struct vmcs_fields {
    controls set{};
    ia32_rtit_ctl guest_ctl{};  ///< the guest-state field, 2814H
    msr_list entry_load{};
    msr_list exit_store{};
    msr_list exit_load{};
};

/// The steps of VM entry and VM exit that can fail.
enum class step : uint8_t {
    control_checks,      ///< VM entry fails with VM-instruction error 7
    guest_state_checks,  ///< VM entry fails with exit reason 33 and bit 31
    entry_load,          ///< VM entry fails with exit reason 34 and bit 31
    exit_store,          ///< VMX abort, except for PRG-166: the stored value is not exact
    exit_load,           ///< VMX abort
};

/// A broken rule of a VM entry or a VM exit.
struct finding {
    rule why = rule::none;
    step where = step::control_checks;
    size_t position = 0;  ///< of the entry in the list, for the steps with a list
    uint32_t index = 0;   ///< the MSR of that entry

    constexpr explicit operator bool() const noexcept { return why != rule::none; }
    friend constexpr auto operator==(finding const&, finding const&) -> bool = default;
};

/// The state after a VM entry, a VM exit or an MSR list, and the first rule that it breaks.
struct [[nodiscard]] transition {
    finding failed{};
    msr_state state{};  ///< where it failed, the state at that point

    constexpr explicit operator bool() const noexcept { return !failed; }
};

namespace detail {

/// Calls `use` with the entries of a list, in order, up to the first one that breaks a rule. `use`
/// returns that rule or none.
///
/// Source: PRG-165.
template <class Capabilities>
constexpr auto first_broken(Capabilities const& caps, msr_list list, step where,
                            auto const& use) noexcept -> finding {
    using size = reg::ia32_vmx_misc::MaxMsrList;
    uint64_t const most = size::amount(caps.vmx_misc.template get<size>()).count;
    for (size_t i = 0; i < list.count; ++i) {
        if (i == most) { return {rule::PRG_165, where, i}; }
        auto const& entry = list.entries[i];
        rule const why = entry.reserved != 0 ? rule::PRG_165 : use(entry);
        if (why != rule::none) { return {why, where, i, entry.index}; }
    }
    return {};
}

template <class Capabilities>
constexpr auto load(Capabilities const& caps, msr_list list, step where, msr_state now,
                    access::context const& code, access::policy const& how) noexcept -> transition {
    auto const failed = first_broken(caps, list, where, [&](msr_list_entry const& entry) {
        auto const checked = access::check_write(caps, now, entry.index, entry.value, 0, how);
        if (checked.what == access::outcome::general_protection) { return checked.why; }
        now = entry.index == ia32_rtit_ctl::address
                  ? access::detail::write_ctl(caps, now, {entry.value}, code).state
                  : access::detail::store(now, entry.index, entry.value);
        return rule::none;
    });
    return {failed, now};
}

/// Source: REG-012..017, PRG-165, PRG-166.
template <class Capabilities>
constexpr auto store(Capabilities const& caps, msr_list list, msr_state const& now,
                     bool as_failure) noexcept -> finding {
    bool const tracing = now.ctl.get<ia32_rtit_ctl::TraceEn>();
    return first_broken(caps, list, step::exit_store, [&](msr_list_entry const& entry) {
        auto const checked = access::check_read(caps, entry.index);
        bool const faults = checked.what == access::outcome::general_protection;
        if (as_failure || faults) { return faults ? checked.why : rule::none; }
        bool const changes = entry.index == access::ia32_rtit_status::address ||
                             entry.index == access::ia32_rtit_output_base::address ||
                             entry.index == access::ia32_rtit_output_mask_ptrs::address;
        return tracing && changes ? rule::PRG_166 : rule::none;
    });
}

/// The state in VMX non-root operation before the MSR-load list.
///
/// Source: REG-125.
template <class Capabilities>
constexpr auto load_guest(Capabilities const& caps, vmcs_fields const& fields, msr_state now,
                          access::context const& code) noexcept -> msr_state {
    now.in_vmx_operation = true;
    bool const load = fields.set.vm_entry.get<reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL>();
    return load ? access::detail::write_ctl(caps, now, fields.guest_ctl, code).state : now;
}

/// Source: REG-126.
template <class Capabilities>
constexpr auto load_host(Capabilities const& caps, vmcs_fields const& fields, msr_state now,
                         access::context const& code, access::policy const& how) noexcept
    -> transition {
    now.in_vmx_operation = true;
    bool const clear = fields.set.vm_exit.get<reg::vmcs_vmexit_ctls::ClearIA32_RTIT_CTL>();
    if (clear) { now = access::detail::write_ctl(caps, now, {}, code).state; }
    return load(caps, fields.exit_load, step::exit_load, now, code, how);
}

/// Source: REG-131.
template <class Capabilities>
constexpr auto is_bad_guest_ctl(Capabilities const& caps, vmcs_fields const& fields) noexcept
    -> bool {
    return fields.set.vm_entry.get<reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL>() &&
           (fields.guest_ctl.raw & ~access::writable_ctl_mask(caps)) != 0;
}

}  // namespace detail

/// Executes a VM entry: the checks, the load of IA32_RTIT_CTL, then the MSR-load list, whose
/// entries are written in order as by WRMSR. `code` is the context of the guest.
///
/// Errors: those of `check`. A VM entry that fails after the control checks loads the host's
///         state as a VM exit does, without the MSR-store list.
/// Source: SDM vol. 3, "VM Entries"; REG-010, REG-125, REG-129..132, REG-135, PRG-162, PRG-165.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto vm_entry(Capabilities const& caps, vmcs_fields const& fields,
                                      msr_state const& now, access::context const& code = {},
                                      access::policy const& how = {}) noexcept -> transition {
    rule const why = broken_rule(caps, fields.set, now.ctl);
    if (why != rule::none) { return {{why, step::control_checks}, now}; }
    if (detail::is_bad_guest_ctl(caps, fields)) {
        return {{rule::REG_131, step::guest_state_checks}, now};
    }
    return detail::load(caps, fields.entry_load, step::entry_load,
                        detail::load_guest(caps, fields, now, code), code, how);
}

/// Executes a VM exit: the MSR-store list, which does not change the state, then the clear of
/// IA32_RTIT_CTL, then the MSR-load list. `now` is the state of the guest, `code` the context of
/// the host. The guest-state field, where it exists, has `now.ctl` afterwards.
///
/// Errors: a VMX abort, with the rule and the entry of the list.
/// Source: SDM vol. 3, "VM Exits"; REG-010, REG-126, REG-127, PRG-165..167.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto vm_exit(Capabilities const& caps, vmcs_fields const& fields,
                                     msr_state const& now, access::context const& code = {},
                                     access::policy const& how = {}) noexcept -> transition {
    if (auto const failed = detail::store(caps, fields.exit_store, now, true)) {
        return {failed, now};
    }
    return detail::load_host(caps, fields, now, code, how);
}

/// Calls `found` with every finding of a VM entry from the state `host` and of the VM exit that
/// follows it: every rule of the control checks, REG-131, and the first entry of each list that
/// fails. The guest is assumed not to change IA32_RTIT_CTL; else check the VM exit with `vm_exit`.
///
/// Errors: REG-129, REG-130, REG-132, REG-135 as for the controls alone; REG-131 the guest-state
///         field has bits that are reserved on this processor; PRG-165 bits 63:32 of an entry, or
///         too many entries; PRG-166 an MSR that changes while it is stored; for other entries the
///         rule by which WRMSR, or RDMSR in the MSR-store list, raises #GP.
/// Source: SDM vol. 3, "VM Entries", "VM Exits"; REG-010, REG-129..132, REG-135, PRG-162,
///         PRG-165, PRG-166.
template <same_as<capabilities> Capabilities, class Found>
constexpr void check(Capabilities const& caps, vmcs_fields const& fields, msr_state const& host,
                     Found&& found, access::policy const& how = {}) noexcept {
    find_broken_rules(caps, fields.set, host.ctl,
                      [&](rule why) { found(finding{why, step::control_checks}); });
    if (detail::is_bad_guest_ctl(caps, fields)) {
        found(finding{rule::REG_131, step::guest_state_checks});
    }
    auto const entered = detail::load(caps, fields.entry_load, step::entry_load,
                                      detail::load_guest(caps, fields, host, {}), {}, how);
    if (!entered) { found(entered.failed); }
    if (entered) {
        auto const stored = detail::store(caps, fields.exit_store, entered.state, false);
        if (stored) { found(stored); }
    }
    auto const left = detail::load_host(caps, fields, entered.state, {}, how);
    if (!left) { found(left.failed); }
}

// ------------------------------------------------------------------------------------ usage models

/// An MSR list with its entries.
struct stored_list {
    /// CTL, STATUS, OUTPUT_BASE, OUTPUT_MASK_PTRS, CR3_MATCH, and both ends of each range.
    static constexpr size_t capacity = 5 + 2 * access::ia32_rtit_addr::count;

    msr_list_entry entries[capacity]{};
    size_t count = 0;

    [[nodiscard]] constexpr auto view() const& noexcept -> msr_list { return {entries, count}; }
    [[nodiscard]] auto view() const&& -> msr_list = delete;
};

namespace detail {

constexpr void append(stored_list& list, uint32_t index, uint64_t value = 0) noexcept {
    list.entries[list.count] = {index, 0, value};
    ++list.count;
}
constexpr void append(stored_list& list, ia32_rtit_ctl value, bool trace_en) noexcept {
    append(list, ia32_rtit_ctl::address, value.with(ia32_rtit_ctl::TraceEn{trace_en}).raw);
}

/// The MSRs of a trace except CTL, in the order for a start.
///
/// Source: PRG-165.
template <class Capabilities>
constexpr void append_all_but_ctl(stored_list& list, Capabilities const& caps,
                                  msr_state const& from) noexcept {
    using namespace access;
    auto const add = [&](uint32_t index) {
        if (check_read(caps, index)) { append(list, index, value_of(from, index)); }
    };
    add(ia32_rtit_status::address);
    add(ia32_rtit_output_base::address);
    add(ia32_rtit_output_mask_ptrs::address);
    add(ia32_rtit_cr3_match::address);
    for (unsigned n = 0; n < ia32_rtit_addr::count; ++n) {
        add(ia32_rtit_addr::address(n, range_end::a));
        add(ia32_rtit_addr::address(n, range_end::b));
    }
}

template <class Controls>
constexpr auto with_conceal(Controls set, bool conceal) noexcept -> Controls {
    using reg::vmcs_secondary_proc_ctls, reg::vmcs_vmexit_ctls, reg::vmcs_vmentry_ctls;
    set.secondary = set.secondary.with(vmcs_secondary_proc_ctls::ConcealVmxNonRootFromPT{conceal},
                                       vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr{false});
    set.vm_exit = set.vm_exit.with(vmcs_vmexit_ctls::ConcealVmExitsFromPT{conceal},
                                   vmcs_vmexit_ctls::ClearIA32_RTIT_CTL{false});
    set.vm_entry = set.vm_entry.with(vmcs_vmentry_ctls::ConcealVmEntriesFromPT{conceal},
                                     vmcs_vmentry_ctls::LoadIA32_RTIT_CTL{false});
    return set;
}

}  // namespace detail

/// The VMCS fields of a usage model, with the entries of the MSR lists.
struct [[nodiscard]] usage {
    rule why = rule::none;  ///< why the processor cannot do this
    controls set{};
    ia32_rtit_ctl guest_ctl{};
    stored_list entry_load{};
    stored_list exit_store{};
    stored_list exit_load{};

    constexpr explicit operator bool() const noexcept { return why == rule::none; }
    /// The fields; the lists are views of this object.
    [[nodiscard]] constexpr auto fields() const& noexcept -> vmcs_fields {
        return {set, guest_ctl, entry_load.view(), exit_store.view(), exit_load.view()};
    }
    [[nodiscard]] auto fields() const&& -> vmcs_fields = delete;
};

namespace detail {

/// Source: REG-121, REG-132, REG-135.
template <class Capabilities>
constexpr auto usage_with(Capabilities const& caps, controls set) noexcept -> usage {
    bool const none = caps.vmx() == cpu::vmx_support::none;
    return {none ? rule::REG_121 : broken_rule(caps, set, {}), set};
}

}  // namespace detail

/// The host traces itself and all guests: nothing is concealed, and TraceEn stays 1. Hide Intel PT
/// from the guests (`without_pt`). TSC packets in a guest include its TSC offset and scaling.
///
/// Errors: `why` is REG-121 where Intel PT is not allowed in VMX operation.
/// Source: SDM vol. 3, "System-Wide Tracing"; PRG-163, PRG-164.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto system_wide(Capabilities const& caps, controls set) noexcept -> usage {
    return detail::usage_with(caps, detail::with_conceal(set, false));
}

/// The host traces itself only: VM entry clears TraceEn, VM exit sets it. `host` is the host's
/// IA32_RTIT_CTL while it traces.
///
/// Errors: as `system_wide`; REG-135 where the controls that conceal VMX are missing.
/// Source: SDM vol. 3, "Host-Only Tracing"; PRG-163, PRG-165.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto vmm_only(Capabilities const& caps, controls set,
                                      ia32_rtit_ctl host) noexcept -> usage {
    auto made = detail::usage_with(caps, detail::with_conceal(set, true));
    detail::append(made.entry_load, host, false);
    detail::append(made.exit_load, host, true);
    return made;
}

/// The host traces a guest only: VM entry sets TraceEn, VM exit clears it. `guest` is IA32_RTIT_CTL
/// while the guest runs; the host writes the other MSRs before the first VM entry.
///
/// Errors: as `vmm_only`.
/// Source: SDM vol. 3, "Guest-Only Tracing"; PRG-163, PRG-165, PRG-166.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto vm_only(Capabilities const& caps, controls set,
                                     ia32_rtit_ctl guest) noexcept -> usage {
    auto made = detail::usage_with(caps, detail::with_conceal(set, true));
    detail::append(made.entry_load, guest, true);
    detail::append(made.exit_load, guest, false);
    return made;
}

/// The guest traces itself: its MSRs are `guest`, as the processor is to have them.
///
/// With all controls of Intel PT, and EPT, VM entry loads IA32_RTIT_CTL from the guest-state field
/// and VM exit clears it; the VMM swaps the other MSRs by WRMSR before and after it. Without them
/// the MSR lists load the guest's MSRs, clear TraceEn, and store the guest's IA32_RTIT_CTL; the
/// output must then lie in host-physical memory.
///
/// Errors: as `vmm_only`.
/// Source: SDM vol. 3, "Guest-Only Tracing"; PRG-163, PRG-165..167, PRG-170.
template <same_as<capabilities> Capabilities = capabilities>
[[nodiscard]] constexpr auto pt_aware_guest(Capabilities const& caps, controls set,
                                            msr_state const& guest) noexcept -> usage {
    controls const given = with_guest_pt(caps, detail::with_conceal(set, true));
    auto made = detail::usage_with(caps, given);
    if (given.vm_entry.get<reg::vmcs_vmentry_ctls::LoadIA32_RTIT_CTL>()) {
        made.guest_ctl = guest.ctl;
        return made;
    }
    detail::append_all_but_ctl(made.entry_load, caps, guest);
    detail::append(made.entry_load, guest.ctl, guest.ctl.get<ia32_rtit_ctl::TraceEn>());
    detail::append(made.exit_store, ia32_rtit_ctl::address);
    detail::append(made.exit_load, guest.ctl, false);
    return made;
}

}  // namespace ptspec::vmx

// ---- ptspec/vmx/intercepts.hpp ----

/// Which MSR accesses of a guest with its own Intel PT exit to the VMM.
namespace ptspec::vmx {

/// What a VMM does with an RDMSR or WRMSR of a guest.
enum class guest_access : uint8_t {
    intercept,     ///< emulate it: the guest's value is not in the processor
    pass_through,  ///< the guest's value is in the processor, which raises #GP as for anyone
    inject_gp,     ///< the guest has no such MSR
    not_pt,        ///< not an MSR of Intel PT
};

/// How to handle accesses to `index` of a guest with these capabilities. IA32_RTIT_CTL is always
/// intercepted; the others only while the guest's TraceEn is 0: while it is 1 they are live.
///
/// Source: SDM vol. 3, "Intel Processor Trace and VMX"; PRG-172.
[[nodiscard]] constexpr auto access_of_guest(cpu::capabilities const& guest, bool trace_en,
                                             uint32_t index) noexcept -> guest_access {
    auto const read = access::check_read(guest, index);
    if (!access::detail::is_pt_msr(index)) { return guest_access::not_pt; }
    if (!read) { return guest_access::inject_gp; }
    if (index == reg::ia32_rtit_ctl::address) { return guest_access::intercept; }
    return trace_en ? guest_access::pass_through : guest_access::intercept;
}

}  // namespace ptspec::vmx

// ---- ptspec/vmx/tdx.hpp ----

/// Intel TDX: Intel PT in a trust domain (TD).
namespace ptspec::vmx::tdx {

/// The rule by which the TDX module makes RDMSR and WRMSR of an index raise #GP in a TD, or none.
/// The other checks of an access are separate.
///
/// Errors: REG-136 an MSR of Intel PT, and `xfam` has no PT_STATE.
/// Source: TDX module, branch tdx_1.5; REG-136.
[[nodiscard]] constexpr auto broken_rule(reg::ia32_xss xfam, uint32_t index) noexcept -> rule {
    bool const allowed = (xfam.raw >> reg::ia32_xss::PT_STATE::lsb & 1) != 0;
    bool const of_output = index == reg::ia32_rtit_output_base::address ||
                           index == reg::ia32_rtit_output_mask_ptrs::address;
    bool const of_control = index >= reg::ia32_rtit_ctl::address &&
                            index <= reg::ia32_rtit_cr3_match::address;
    uint32_t const first_end = reg::ia32_rtit_addr::address(0, reg::range_end::a);
    bool const of_ranges = index >= first_end && index < first_end + 8;
    return !allowed && (of_output || of_control || of_ranges) ? rule::REG_136 : rule::none;
}

/// The capabilities that a TD with Intel PT sees: the TDX module masks leaf 14H.
///
/// Source: TDX module, branch tdx_1.5; REG-137.
[[nodiscard]] constexpr auto td_capabilities(cpu::capabilities caps) noexcept -> cpu::capabilities {
    caps.leaf_14_0_ebx.raw &= 0x0000'01FF;
    caps.leaf_14_0_ecx.raw &= 0x8000'000F;
    caps.leaf_14_1_eax.raw &= 0xFFFF'0007;
    caps.leaf_14_1_ecx.raw = 0;
    return caps;
}

}  // namespace ptspec::vmx::tdx

// ---- ptspec/x86/instruction.hpp ----

/// x86 instructions, as far as a trace depends on them.
namespace ptspec::x86 {

using engine::code_width;

/// What an instruction does that a trace shows.
///
/// Source: SDM vol. 3, "Change of Flow Instruction (COFI) Tracing"; GEN-110, GEN-111.
enum class instruction_class : uint8_t {
    other,
    conditional,    ///< Jcc, LOOP, JRCXZ
    direct_jump,    ///< JMP E9, EB
    direct_call,    ///< CALL E8
    indirect_jump,  ///< JMP FF/4
    indirect_call,  ///< CALL FF/2
    absolute_jump,  ///< JMPABS; traced as an indirect jump
    near_return,    ///< RET C2, C3
    far_jump,       ///< JMP EA, FF/5
    far_call,       ///< CALL 9A, FF/3
    far_return,     ///< RET CA, CB
    iret,
    syscall,
    sysret,
    sysenter,
    sysexit,
    uiret,
    eret,                ///< ERETU, ERETS
    software_interrupt,  ///< INT n, INT3, INT1, INTO
    vm_entry,            ///< VMLAUNCH, VMRESUME
    vm_call,             ///< VMCALL, VMMCALL
    vmxon,
    vmxoff,
    vmptrld,
    vmclear,
    rsm,
    getsec,
    enclave,  ///< ENCLU, ENCLS, ENCLV
    ptwrite,
    mov_to_cr3,
    wrmsr,
    xsaves,
    xrstors,
    xbegin,
    xend,
    xabort,
    hlt,
    mwait,
    interrupt_flag,  ///< STI, CLI, POPF: may change IF
};

/// A decoded instruction.
///
/// Units:  bytes.
struct instruction {
    /// The number of bytes of the longest instruction.
    static constexpr uint8_t most_bytes = 15;

    uint8_t length = 0;
    instruction_class which = instruction_class::other;
    bool has_displacement = false;    ///< a conditional or direct branch, or XBEGIN
    bool repeats = false;             ///< a string instruction with REP
    bool target_is_16_bits = false;   ///< the branch clears the upper bits of the IP
    bool operand_is_64_bits = false;  ///< of PTWRITE
    uint8_t vector = 0;               ///< of a software interrupt
    /// Relative to the next instruction; the target itself of an absolute jump.
    int64_t displacement = 0;

    friend constexpr auto operator==(instruction const&, instruction const&) -> bool = default;
};

/// True for a branch whose target is in the instruction.
[[nodiscard]] constexpr auto is_direct(instruction const& of) noexcept -> bool {
    return of.has_displacement || of.which == instruction_class::absolute_jump;
}

/// The target of a direct branch at `ip`.
///
/// Shape:  an offset in the code segment, as the instruction pointer holds it.
[[nodiscard]] constexpr auto target_of(instruction const& of, uint64_t ip,
                                       code_width width = code_width::bits_64) noexcept
    -> uint64_t {
    auto const displacement = static_cast<uint64_t>(of.displacement);
    if (of.which == instruction_class::absolute_jump) { return displacement; }
    uint64_t const target = ip + of.length + displacement;
    if (width == code_width::bits_64) { return target; }
    return target & low_bits(of.target_is_16_bits ? 16 : 32);
}

}  // namespace ptspec::x86

// ---- ptspec/x86/opcode_map.hpp ----

/// What follows an opcode, and its class, for each opcode of the first two maps.
namespace ptspec::x86 {

/// The bytes after the opcode and its ModRM.
enum class immediate : uint8_t {
    none,
    bits_8,
    bits_16,
    bits_24,  ///< ENTER
    bits_32,
    operand,  ///< 2 or 4 bytes, by the operand size
    wide,     ///< 2, 4 or 8 bytes: MOV of an immediate to a register
    address,  ///< 2, 4 or 8 bytes, by the address size
    far,      ///< a selector and an offset
    relative_8,
    relative,  ///< 2 or 4 bytes; 4 in 64-bit code
    test_8,    ///< 1 byte if ModRM.reg is 0 or 1
    test,      ///< as `operand` if ModRM.reg is 0 or 1
};

/// What follows an opcode.
struct opcode_form {
    immediate rest = immediate::none;
    bool has_modrm = false;
    bool is_register_only = false;  ///< ModRM.mod is ignored
    bool is_prefix = false;
    bool is_defined = true;
    // For `decode_common`, in 64-bit code.
    bool is_common = false;         ///< `bytes` is all that follows
    bool has_displacement = false;  ///< `bytes` are a displacement
    uint8_t bytes[3] = {};          ///< without 66 and REX.W, with 66, with REX.W
};

/// The class of an opcode.
struct opcode_class {
    instruction_class which = instruction_class::other;
    bool is_in_64_bit = true;  ///< it is defined in 64-bit code
    bool needs_modrm = false;  ///< the class depends on ModRM or on a prefix
    bool is_common = false;    ///< for `decode_common`: the class is all there is to know
};

namespace detail {

constexpr auto form_of(char letter) noexcept -> opcode_form {
    switch (letter) {
        case '.': return {};
        case 'p': return {.is_prefix = true};
        case 'm': return {.has_modrm = true};
        case 'r': return {.has_modrm = true, .is_register_only = true};
        case 'M': return {immediate::bits_8, true};
        case 'Z': return {immediate::operand, true};
        case 't': return {immediate::test_8, true};
        case 'T': return {immediate::test, true};
        case 'b': return {immediate::bits_8};
        case 'w': return {immediate::bits_16};
        case 'e': return {immediate::bits_24};
        case 'z': return {immediate::operand};
        case 'v': return {immediate::wide};
        case 'o': return {immediate::address};
        case 'f': return {immediate::far};
        case 'j': return {immediate::relative_8};
        case 'J': return {immediate::relative};
        default: return {.is_defined = false};
    }
}

constexpr auto class_of(char letter) noexcept -> opcode_class {
    using enum instruction_class;
    switch (letter) {
        case '?': return {other, true, true};
        case 'x': return {other, false};
        case 'c': return {conditional};
        case 'd': return {direct_jump};
        case 'k': return {direct_call};
        case 'r': return {near_return};
        case 'J': return {far_jump, false};
        case 'K': return {far_call, false};
        case 'R': return {far_return};
        case 'I': return {iret};
        case 'n': return {software_interrupt};
        case 'o': return {software_interrupt, false};
        case 'h': return {hlt};
        case 'i': return {interrupt_flag};
        case 's': return {syscall};
        case 't': return {sysret};
        case 'e': return {sysenter};
        case 'q': return {sysexit};
        case 'g': return {getsec};
        case 'w': return {wrmsr};
        case 'm': return {rsm};
        default: return {};
    }
}

/// The members for `decode_common`.
constexpr auto with_bytes(opcode_form of) noexcept -> opcode_form {
    struct sizes {
        uint8_t bytes[3];
    };
    constexpr sizes by_rest[] = {{{0, 0, 0}}, {{1, 1, 1}}, {{2, 2, 2}}, {{3, 3, 3}}, {{4, 4, 4}},
                                 {{4, 2, 4}}, {{4, 2, 8}}, {{8, 8, 8}}, {{0, 0, 0}}, {{1, 1, 1}},
                                 {{4, 4, 4}}, {{0, 0, 0}}, {{0, 0, 0}}};
    for (unsigned i = 0; i < 3; ++i) { of.bytes[i] = by_rest[underlying(of.rest)].bytes[i]; }
    of.has_displacement = of.rest == immediate::relative_8 || of.rest == immediate::relative;
    bool const is_other = of.rest == immediate::address || of.rest == immediate::far ||
                          of.rest == immediate::test_8 || of.rest == immediate::test;
    of.is_common = of.is_defined && !of.is_prefix && !of.is_register_only && !is_other;
    return of;
}
constexpr auto with_common(opcode_class of) noexcept -> opcode_class {
    using enum instruction_class;
    of.is_common = of.is_in_64_bit && !of.needs_modrm &&
                   (of.which == other || of.which == conditional || of.which == direct_jump ||
                    of.which == direct_call || of.which == near_return);
    return of;
}

inline constexpr char first_letter = '.';
inline constexpr unsigned letters = 'z' - first_letter + 1;

/// Forms and classes by their letter.
struct letter_tables {
    opcode_form forms[letters] = {};
    opcode_class classes[letters] = {};

    constexpr letter_tables() noexcept {
        for (unsigned i = 0; i < letters; ++i) {
            forms[i] = with_bytes(form_of(static_cast<char>(first_letter + i)));
            classes[i] = with_common(class_of(static_cast<char>(first_letter + i)));
        }
    }
};
inline constexpr letter_tables by_letter;

}  // namespace detail

/// 256 opcodes: a letter each for what follows and for the class.
struct opcode_map {
    char const* forms;
    char const* classes;

    [[nodiscard]] constexpr auto form(uint8_t opcode) const noexcept -> opcode_form const& {
        return detail::by_letter.forms[forms[opcode] - detail::first_letter];
    }
    [[nodiscard]] constexpr auto class_of(uint8_t opcode) const noexcept -> opcode_class const& {
        return detail::by_letter.classes[classes[opcode] - detail::first_letter];
    }
};

inline constexpr opcode_map one_byte = {"mmmmbz..mmmmbz.x"  // 0F: the two-byte opcodes
                                        "mmmmbz..mmmmbz.."
                                        "mmmmbzp.mmmmbzp."
                                        "mmmmbzp.mmmmbzp."
                                        "................"  // in 64-bit code REX
                                        "................"
                                        "..mmppppzZbM...."
                                        "jjjjjjjjjjjjjjjj"
                                        "MZMMmmmmmmmmmmmm"
                                        "..........f....."
                                        "oooo....bz......"
                                        "bbbbbbbbvvvvvvvv"
                                        "MMw.mmMZe.w..b.."
                                        "mmmmbb..mmmmmmmm"
                                        "jjjjbbbbJJfj...."
                                        "p.pp..tT......mm",
                                        "......xx......xx"
                                        "......xx......xx"
                                        ".......x.......x"
                                        ".......x.......x"
                                        "xxxxxxxxxxxxxxxx"
                                        "................"
                                        "xxx............."
                                        "cccccccccccccccc"
                                        "..x............?"
                                        "..........K..i.."
                                        "................"
                                        "................"
                                        "..rrxx??..RRnnoI"
                                        "....xxx........."
                                        "cccc....kdJd...."
                                        ".n..h.....ii..??"};

/// The opcodes after 0F.
inline constexpr opcode_map two_byte = {"mmmmx.....x.xm.M"  // 0F 0E and 0F 0F: 3DNow!
                                        "mmmmmmmmmmmmmmmm"
                                        "rrrrxxxxmmmmmmmm"
                                        "......x.xxxxxxxx"  // 38 and 3A: the three-byte opcodes
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm"
                                        "MMMMmmm.mmxxmmmm"
                                        "JJJJJJJJJJJJJJJJ"
                                        "mmmmmmmmmmmmmmmm"
                                        "...mMmmm...mMmmm"
                                        "mmmmmmmmmmMmmmmm"
                                        "mmMmMMMm........"
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm",
                                        ".?...s.t........"
                                        "................"
                                        "..?............."
                                        "w...eq.g........"
                                        "................"
                                        "................"
                                        "................"
                                        "........?......."
                                        "cccccccccccccccc"
                                        "................"
                                        "..........m...?."
                                        "................"
                                        ".......?........"
                                        "................"
                                        "................"
                                        "................"};

}  // namespace ptspec::x86

// ---- ptspec/x86/decode.hpp ----

/// Decodes the length and the class of an instruction.
namespace ptspec::x86 {

enum class decode_error : uint8_t {
    none,
    truncated,  ///< the bytes end within the instruction
    undefined,  ///< no processor executes it, or it is longer than 15 bytes
};

/// An instruction, or the reason why there is none.
struct decoded {
    instruction what{};
    decode_error error = decode_error::none;

    [[nodiscard]] constexpr explicit operator bool() const noexcept {
        return error == decode_error::none;
    }
};

namespace detail {

using namespace ptspec::detail;

/// Reads one instruction.
class instruction_reader {
public:
    constexpr instruction_reader(byte_view code, code_width width) noexcept
        : bytes_{code.data()},
          size_{code.size() < instruction::most_bytes ? static_cast<unsigned>(code.size())
                                                      : instruction::most_bytes},
          is_64_bit_{width == code_width::bits_64},
          is_16_bit_{width == code_width::bits_16} {}

    constexpr auto read() noexcept -> decoded {
        uint8_t opcode = 0;
        for (;;) {
            opcode = next();
            if (is_64_bit_ && (opcode & 0xF0) == 0x40) {
                rex_ = opcode;
            } else if (one_byte.form(opcode).is_prefix && at_ <= size_) {
                rex_ = 0;  // only directly before the opcode
                add_prefix(opcode);
            } else {
                break;
            }
        }
        if (opcode == 0x0F) {
            read_two_byte();
        } else if (opcode == 0xD5 && is_64_bit_) {
            read_rex2();
        } else if (is_vector(opcode)) {
            read_vector(opcode);
        } else {
            read_one_byte(opcode);
        }
        return result();
    }

private:
    /// The next byte, or 0 after the last one.
    constexpr auto next() noexcept -> uint8_t {
        uint8_t const byte = at_ < size_ ? bytes_[at_] : uint8_t{0};
        ++at_;
        return byte;
    }
    [[nodiscard]] constexpr auto peek() const noexcept -> uint8_t {
        return at_ < size_ ? bytes_[at_] : uint8_t{0};
    }
    constexpr void is_undefined() noexcept { is_defined_ = false; }

    [[nodiscard]] constexpr auto result() const noexcept -> decoded {
        if (at_ > size_) {
            return {{},
                    size_ < instruction::most_bytes ? decode_error::truncated
                                                    : decode_error::undefined};
        }
        if (!is_defined_) { return {{}, decode_error::undefined}; }
        decoded done{made_, decode_error::none};
        done.what.length = static_cast<uint8_t>(at_);
        return done;
    }

    constexpr void add_prefix(uint8_t prefix) noexcept {
        switch (prefix) {
            case 0x66: has_66_ = true; break;
            case 0x67: has_67_ = true; break;
            case 0xF0: has_lock_ = true; break;
            case 0xF2:
            case 0xF3: repeat_ = prefix; break;
            default: break;  // a segment
        }
    }
    [[nodiscard]] constexpr auto operand_bytes() const noexcept -> unsigned {
        if ((rex_ & 8) != 0) { return 4; }
        return has_66_ != is_16_bit_ ? 2 : 4;
    }
    [[nodiscard]] constexpr auto address_bytes() const noexcept -> unsigned {
        if (is_64_bit_) { return has_67_ ? 4 : 8; }
        return has_67_ != is_16_bit_ ? 2 : 4;
    }

    // -------------------------------------------------------------------------------- the parts

    constexpr void read_modrm(bool is_register_only) noexcept {
        modrm_ = next();
        unsigned const mod = modrm_ >> 6U;
        unsigned const rm = modrm_ & 7U;
        if (mod == 3 || is_register_only) { return; }
        if (address_bytes() == 2) {
            at_ += mod == 0 ? (rm == 6 ? 2 : 0) : mod;
            return;
        }
        unsigned const base = rm == 4 ? next() & 7U : rm;
        at_ += mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0;
    }
    constexpr void read_displacement(unsigned count) noexcept {
        uint64_t value = 0;
        for (unsigned i = 0; i < count; ++i) { value |= uint64_t{next()} << 8 * i; }
        unsigned const unused = 64 - 8 * count;
        made_.displacement = static_cast<int64_t>(value << unused) >> unused;
    }
    constexpr void read_branch(unsigned count) noexcept {
        read_displacement(count);
        made_.has_displacement = true;
        made_.target_is_16_bits = !is_64_bit_ && operand_bytes() == 2;
    }
    constexpr void read_immediate(immediate rest) noexcept {
        unsigned const operand = operand_bytes();
        bool const is_test = (modrm_ >> 3 & 7) < 2;
        switch (rest) {
            case immediate::none: break;
            case immediate::bits_8: immediate_ = next(); break;
            case immediate::bits_16: at_ += 2; break;
            case immediate::bits_24: at_ += 3; break;
            case immediate::bits_32: at_ += 4; break;
            case immediate::operand: at_ += operand; break;
            case immediate::wide: at_ += (rex_ & 8) != 0 ? 8 : operand; break;
            case immediate::address: at_ += address_bytes(); break;
            case immediate::far: at_ += operand + 2; break;
            case immediate::relative_8: read_branch(1); break;
            // Intel processors ignore the operand size of near branches in 64-bit code.
            case immediate::relative: read_branch(is_64_bit_ ? 4 : operand); break;
            case immediate::test_8: at_ += is_test ? 1 : 0; break;
            case immediate::test: at_ += is_test ? operand : 0; break;
        }
    }
    constexpr void read_rest(opcode_map const& map, uint8_t opcode) noexcept {
        auto const& form = map.form(opcode);
        auto const& info = map.class_of(opcode);
        made_.which = info.which;
        if (!form.is_defined || (is_64_bit_ && !info.is_in_64_bit)) { return is_undefined(); }
        if (form.has_modrm) { read_modrm(form.is_register_only); }
        // XBEGIN has a displacement where MOV has an immediate.
        if (info.needs_modrm && modrm_ == 0xF8 && form.rest == immediate::operand) {
            return read_branch(operand_bytes());
        }
        read_immediate(form.rest);
    }

    // -------------------------------------------------------------------------------- one byte

    [[nodiscard]] constexpr auto reg() const noexcept -> unsigned { return modrm_ >> 3 & 7U; }
    [[nodiscard]] constexpr auto is_memory() const noexcept -> bool { return modrm_ >> 6 != 3; }

    constexpr void read_one_byte(uint8_t opcode) noexcept {
        using enum instruction_class;
        read_rest(one_byte, opcode);
        bool const is_string = (opcode >= 0x6C && opcode <= 0x6F) ||
                               (opcode >= 0xA4 && opcode <= 0xAF && (opcode & 0xFE) != 0xA8);
        made_.repeats = repeat_ != 0 && is_string;
        if (made_.which == software_interrupt) {
            made_.vector = opcode == 0xCD   ? immediate_
                           : opcode == 0xCC ? uint8_t{3}
                           : opcode == 0xCE ? uint8_t{4}
                                            : uint8_t{1};
        }
        if (!one_byte.class_of(opcode).needs_modrm) { return; }
        bool const is_tsx = modrm_ == 0xF8;
        switch (opcode) {
            case 0x8F:
                if (reg() != 0) { is_undefined(); }
                break;
            case 0xC6:
                if (is_tsx) { made_.which = xabort; }
                if (!is_tsx && reg() != 0) { is_undefined(); }
                break;
            case 0xC7:
                if (is_tsx) { made_.which = xbegin; }
                if (!is_tsx && reg() != 0) { is_undefined(); }
                break;
            case 0xFE:
                if (reg() > 1) { is_undefined(); }
                break;
            default: classify_group_5(); break;
        }
    }
    constexpr void classify_group_5() noexcept {
        using enum instruction_class;
        constexpr instruction_class classes[] = {other,         other,    indirect_call, far_call,
                                                 indirect_jump, far_jump, other,         other};
        made_.which = classes[reg()];
        bool const is_far = made_.which == far_call || made_.which == far_jump;
        if (reg() == 7 || (is_far && !is_memory())) { is_undefined(); }
        made_.target_is_16_bits = !is_64_bit_ && operand_bytes() == 2;
    }

    // -------------------------------------------------------------------------------- two bytes

    constexpr void read_two_byte() noexcept {
        uint8_t const opcode = next();
        if (opcode == 0x38 || opcode == 0x3A) {
            (void)next();  // the opcode
            read_modrm(false);
            if (opcode == 0x3A) { ++at_; }
            return;
        }
        read_rest(two_byte, opcode);
        if (two_byte.class_of(opcode).needs_modrm) { classify_two_byte(opcode); }
    }
    constexpr void classify_two_byte(uint8_t opcode) noexcept {
        using enum instruction_class;
        switch (opcode) {
            case 0x01:
                if (!is_memory()) { classify_system(); }
                break;
            case 0x22:
                if (reg() == 3 && (rex_ & 4) == 0) { made_.which = mov_to_cr3; }
                break;
            case 0x78:  // EXTRQ, INSERTQ
                if (has_66_ || repeat_ == 0xF2) { at_ += 2; }
                break;
            case 0xAE:
                if (repeat_ == 0xF3 && reg() == 4) {
                    made_.which = ptwrite;
                    made_.operand_is_64_bits = (rex_ & 8) != 0;
                }
                break;
            default: classify_group_9(); break;
        }
    }
    /// 0F 01 with a register.
    constexpr void classify_system() noexcept {
        using enum instruction_class;
        bool const has_none = repeat_ == 0 && !has_66_;
        switch (modrm_) {
            case 0xC1: made_.which = vm_call; break;
            case 0xC2:
            case 0xC3: made_.which = vm_entry; break;
            case 0xC4: made_.which = vmxoff; break;
            case 0xC9:
            case 0xFB: made_.which = mwait; break;
            case 0xC0:
            case 0xD7: made_.which = enclave; break;
            case 0xCA: made_.which = repeat_ != 0 ? eret : other; break;
            case 0xCD: made_.which = has_66_ && repeat_ == 0 ? vm_entry : other; break;  // SEAMRET
            case 0xCF: made_.which = has_none ? enclave : vm_call; break;  // ENCLS, SEAMCALL
            case 0xD5: made_.which = has_none ? xend : other; break;
            case 0xD9: made_.which = vm_call; break;
            case 0xEC: made_.which = repeat_ == 0xF3 ? uiret : other; break;
            default: break;
        }
    }
    constexpr void classify_group_9() noexcept {
        using enum instruction_class;
        if (!is_memory()) { return; }
        switch (reg()) {
            case 3: made_.which = xrstors; break;
            case 5: made_.which = xsaves; break;
            case 6:
                made_.which = repeat_ == 0xF3 ? vmxon
                              : repeat_ != 0  ? other
                              : has_66_       ? vmclear
                                              : vmptrld;
                break;
            default: break;
        }
    }

    // -------------------------------------------------------------------------------- vectors, APX

    /// REX2: a map, and more bits of register numbers.
    constexpr void read_rex2() noexcept {
        if (rex_ != 0) { return is_undefined(); }
        uint8_t const payload = next();
        rex_ = static_cast<uint8_t>(0x40 | (payload & 0x0F));
        uint8_t const opcode = next();
        unsigned const row = opcode >> 4U;
        if ((payload & 0x80) != 0) {
            if (row == 3 || row == 8) { return is_undefined(); }
            read_rest(two_byte, opcode);
            if (two_byte.class_of(opcode).needs_modrm) { classify_two_byte(opcode); }
            return;
        }
        bool const is_plain = !has_66_ && !has_67_ && repeat_ == 0 && !has_lock_ && (rex_ & 8) == 0;
        if (opcode == 0xA1 && is_plain) {
            made_.which = instruction_class::absolute_jump;
            uint64_t target = 0;
            for (unsigned i = 0; i < 8; ++i) { target |= uint64_t{next()} << 8 * i; }
            made_.displacement = static_cast<int64_t>(target);
            return;
        }
        bool const is_reserved = row == 4 || row == 7 || row == 0xA || row == 0xE ||
                                 opcode == 0x0F || opcode == 0x62 || opcode == 0xC4 ||
                                 opcode == 0xC5 || opcode == 0xD5 ||
                                 one_byte.form(opcode).is_prefix;
        if (is_reserved) { return is_undefined(); }
        read_one_byte(opcode);
    }
    /// True for the first byte of VEX, EVEX and XOP. Outside 64-bit code they are other opcodes
    /// with forms of ModRM that are undefined there.
    [[nodiscard]] constexpr auto is_vector(uint8_t opcode) const noexcept -> bool {
        if (opcode == 0x8F) { return (peek() & 0x1F) >= 8; }
        if (opcode != 0xC4 && opcode != 0xC5 && opcode != 0x62) { return false; }
        return is_64_bit_ || peek() >= 0xC0;
    }
    constexpr void read_vector(uint8_t first) noexcept {
        bool const has_prefix = has_66_ || repeat_ != 0 || has_lock_ || rex_ != 0;
        uint8_t const one = next();
        uint8_t const two = first != 0xC5 ? next() : one;
        if (first == 0x62) { (void)next(); }
        uint8_t const opcode = next();
        if (has_prefix) { return is_undefined(); }
        unsigned const map = first == 0xC5 ? 1 : first == 0x62 ? one & 7U : one & 0x1FU;
        // The prefix 66 and REX.W, for the immediates of map 4.
        has_66_ = (two & 3) == 1;
        rex_ = (two & 0x80) != 0 && first != 0xC5 ? 0x48 : 0;
        bool const has_modrm = map != 1 || opcode != 0x77 || first == 0x62;
        if (has_modrm) { read_modrm(false); }
        read_immediate(rest_of_vector(first, map, opcode));
    }
    constexpr auto rest_of_vector(uint8_t first, unsigned map, uint8_t opcode) noexcept
        -> immediate {
        if (first == 0x8F) {
            if (map > 10) { is_undefined(); }
            return map == 8 ? immediate::bits_8 : map == 10 ? immediate::bits_32 : immediate::none;
        }
        switch (map) {
            case 1: {
                bool const has_one = (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xC2 ||
                                     (opcode >= 0xC4 && opcode <= 0xC6);
                return has_one ? immediate::bits_8 : immediate::none;
            }
            case 2: return immediate::none;
            case 3: return immediate::bits_8;
            case 4: return first == 0x62 ? rest_of_map_4(opcode) : no_map();
            case 5:
            case 6: return first == 0x62 ? immediate::none : no_map();
            case 7: return immediate::bits_32;
            default: return no_map();
        }
    }
    constexpr auto no_map() noexcept -> immediate {
        is_undefined();
        return immediate::none;
    }
    /// Map 4 of EVEX has one-byte opcodes, and the double shifts.
    static constexpr auto rest_of_map_4(uint8_t opcode) noexcept -> immediate {
        if (opcode == 0x24 || opcode == 0x2C) { return immediate::bits_8; }
        bool const is_as_one_byte = opcode == 0x69 || opcode == 0x6B ||
                                    (opcode >= 0x80 && opcode <= 0x83) || opcode == 0xC0 ||
                                    opcode == 0xC1 || opcode == 0xF6 || opcode == 0xF7;
        return is_as_one_byte ? one_byte.form(opcode).rest : immediate::none;
    }

    uint8_t const* bytes_;
    unsigned size_;
    unsigned at_ = 0;
    bool is_64_bit_;
    bool is_16_bit_;
    bool has_66_ = false;
    bool has_67_ = false;
    bool has_lock_ = false;
    bool is_defined_ = true;
    uint8_t repeat_ = 0;  ///< F2 or F3, the last one
    uint8_t rex_ = 0;
    uint8_t modrm_ = 0;
    uint8_t immediate_ = 0;
    instruction made_{};
};

/// The bytes of a ModRM, with its SIB and displacement, in 64-bit code.
constexpr auto bytes_of_modrm(uint8_t const* code) noexcept -> unsigned {
    unsigned const mod = code[0] >> 6U;
    if (mod == 3) { return 1; }
    bool const has_sib = (code[0] & 7) == 4;
    unsigned const base = code[has_sib ? 1 : 0] & 7U;
    unsigned const displacement = mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0;
    return (has_sib ? 2 : 1) + displacement;
}
/// Decodes an instruction from 15 bytes of 64-bit code, if neither its ModRM nor a prefix other
/// than 66 and REX decides about it, as for most opcodes. Otherwise the length is 0. With it
/// `decode` executes a third of the instructions (g++ 12, code of python).
constexpr auto decode_common(uint8_t const* code) noexcept -> instruction {
    instruction made;
    unsigned at = 0;
    uint8_t opcode = code[0];
    bool const has_66 = opcode == 0x66;
    if (has_66) { opcode = code[++at]; }
    bool has_rex_w = false;
    if ((opcode & 0xF0) == 0x40) {
        has_rex_w = (opcode & 8) != 0;
        opcode = code[++at];
    }
    bool const is_two_byte = opcode == 0x0F;
    if (is_two_byte) { opcode = code[++at]; }
    auto const& map = is_two_byte ? two_byte : one_byte;
    auto const& form = map.form(opcode);
    auto const& info = map.class_of(opcode);
    if (!form.is_common || !info.is_common) { return made; }
    ++at;
    if (form.has_modrm) { at += bytes_of_modrm(code + at); }
    at += form.bytes[has_rex_w ? 2 : has_66 ? 1 : 0];
    if (form.has_displacement) {
        made.has_displacement = true;
        uint64_t value = static_cast<uint64_t>(code[at - 1]) << 56;
        if (form.bytes[0] == 4) {
            value |= uint64_t{code[at - 4]} << 32 | uint64_t{code[at - 3]} << 40 |
                     uint64_t{code[at - 2]} << 48;
        }
        made.displacement = static_cast<int64_t>(value) >> (form.bytes[0] == 4 ? 32 : 56);
    }
    made.which = info.which;
    made.length = static_cast<uint8_t>(at);
    return made;
}

}  // namespace detail

/// Decodes the first instruction of some code. Of undefined opcodes and operands it rejects some:
/// processors differ in them, and no trace has them.
///
/// Errors: `decode_error`.
/// Source: SDM vol. 2, "Instruction Format", "Opcode Map"; GEN-110, GEN-111.
[[nodiscard]] constexpr auto decode(byte_view code, code_width width = code_width::bits_64) noexcept
    -> decoded {
    if (width == code_width::bits_64 && code.size() >= instruction::most_bytes) {
        auto const common = detail::decode_common(code.data());
        if (common.length != 0) { return {common}; }
    }
    return detail::instruction_reader{code, width}.read();
}

}  // namespace ptspec::x86

// ---- ptspec/x86/event.hpp ----

/// From an instruction that an emulator executed to the event of a trace unit.
namespace ptspec::x86 {

/// An executed instruction.
struct execution {
    instruction what{};
    uint64_t at = 0;                    ///< the address of the instruction
    uint64_t to = 0;                    ///< the address of the next instruction that executes
    engine::execution_context after{};  ///< the context of that one
    uint64_t operand = 0;               ///< of PTWRITE, MOV CR3 and VMPTRLD

    /// The address after this instruction.
    [[nodiscard]] constexpr auto next() const noexcept -> uint64_t {
        uint64_t const following = at + what.length;
        return after.width == code_width::bits_64 ? following : following & low_bits(32);
    }
};

/// True if the instruction leads to the next one. Otherwise an interrupt, an exception or another
/// event came between, whose event follows that of the instruction.
[[nodiscard]] constexpr auto leads_on(execution const& of) noexcept -> bool {
    using enum instruction_class;
    switch (of.what.which) {
        case other:
        case ptwrite:
        case mov_to_cr3:
        case wrmsr:
        case xsaves:
        case xrstors:
        case xbegin:
        case xend:
        case hlt:
        case mwait:
        case vmxon:
        case vmxoff:
        case vmptrld:
        case vmclear:
        case interrupt_flag: return of.to == of.next() || (of.what.repeats && of.to == of.at);
        case conditional:
            return of.to == of.next() || of.to == target_of(of.what, of.at, of.after.width);
        case direct_jump:
        case direct_call:
        case absolute_jump: return of.to == target_of(of.what, of.at, of.after.width);
        default: return true;
    }
}

/// Calls `take` with the event of an executed instruction. For some it is `event::sequential`:
/// WRMSR, XSAVES and XRSTORS are functions of a trace unit, MWAIT has operands that are not here,
/// and VMCLEAR is an event only if its VMCS is current.
///
/// Source: GEN-110, GEN-111, GEN-113, GEN-240, GEN-250, GEN-300, GEN-305.
template <class Take>
constexpr void take_event(execution const& of, Take&& take) noexcept {
    namespace event = engine::event;
    using enum instruction_class;
    using event::far_kind;
    auto const far_transfer = [&](far_kind kind) {
        take(event::far_transfer{of.at, of.to, of.after, kind});
    };
    bool const is_elsewhere = of.to != of.next();
    switch (of.what.which) {
        case conditional: return take(event::conditional{of.to, is_elsewhere});
        case direct_jump: return take(event::direct_jump{of.to});
        case direct_call: return take(event::direct_call{of.next(), of.to});
        case indirect_jump:
        case absolute_jump: return take(event::indirect_jump{of.to});
        case indirect_call: return take(event::indirect_call{of.next(), of.to});
        case near_return: return take(event::near_return{of.to});
        case far_jump:
        case far_call:
        case far_return:
        case sysret:
        case sysexit:
        case eret: return far_transfer(far_kind::plain);
        case iret: return far_transfer(far_kind::iret);
        case uiret: return far_transfer(far_kind::uiret);
        case syscall:
        case sysenter: return far_transfer(far_kind::syscall);
        case software_interrupt:
            return take(event::software_interrupt{of.at, of.to, of.after, of.what.vector});
        case vm_entry: return take(event::vm_entry{.at = of.at, .to = of.to, .after = of.after});
        case vm_call:
            if (!is_elsewhere) { break; }
            return take(event::vm_exit{.from = of.at, .to = of.to, .after = of.after});
        case vmxon: return take(event::vmxon{of.at, of.to});
        case vmxoff: return take(event::vmxoff{of.to});
        case vmptrld: return take(event::vmptrld{of.to, of.operand});
        case rsm: return take(event::rsm{of.to, of.after});
        case enclave:
            if (!is_elsewhere) { break; }
            return take(event::enclave_transfer{of.at, of.to, of.after});
        case ptwrite:
            return take(event::ptwrite{of.at, of.to, of.operand, of.what.operand_is_64_bits});
        case mov_to_cr3: return take(event::mov_cr3{of.at, of.to, of.operand});
        case xbegin: return take(event::transaction_begin{of.at, of.to});
        case xend: return take(event::transaction_end{of.at, of.to});
        case xabort:
            if (!is_elsewhere) { break; }
            return take(event::transaction_abort{of.at, of.to});
        case hlt: return take(event::halt{of.at, of.to});
        case interrupt_flag: return take(event::interrupt_flag{of.to, of.after.IF});
        case other:
        case getsec:
        case wrmsr:
        case xsaves:
        case xrstors:
        case vmclear:
        case mwait: break;
    }
    take(event::sequential{of.to});
}

/// The successors of an instruction at an address: what `take_near_event` compares, computed once.
struct successors {
    uint64_t next = 0;    ///< the instruction after it
    uint64_t target = 0;  ///< of a direct branch
    instruction_class which = instruction_class::other;
};
[[nodiscard]] constexpr auto successors_of(instruction const& of, uint64_t at,
                                           code_width width = code_width::bits_64) noexcept
    -> successors {
    execution const one{.what = of, .at = at, .after = {.width = width}};
    return {one.next(), is_direct(of) ? target_of(of, at, width) : 0, of.which};
}

/// The fast path of an emulator that executes blocks of code. Calls `take` with the event of a near
/// branch at the end of a block, after which the code at `to` executes. Returns true if it did, and
/// for an instruction without event that led to the next one. Returns false, and takes nothing,
/// otherwise: then ask `leads_on`, and call `take_event`.
///
/// Source: as `take_event`.
template <class Take>
[[nodiscard, gnu::always_inline]]  // a call for each block costs 30 % (gzip, g++ 12)
constexpr auto
take_near_event(successors const& of, uint64_t to, Take&& take) noexcept -> bool {
    namespace event = engine::event;
    using enum instruction_class;
    if (of.which == conditional) {
        bool const taken = to == of.target;
        if (!taken && to != of.next) { return false; }
        take(event::conditional{to, taken});
        return true;
    }
    switch (of.which) {
        case other: return to == of.next;
        case direct_jump:
            if (to != of.target) { return false; }
            take(event::direct_jump{to});
            return true;
        case direct_call:
            if (to != of.target) { return false; }
            take(event::direct_call{of.next, to});
            return true;
        case near_return: take(event::near_return{to}); return true;
        case indirect_jump: take(event::indirect_jump{to}); return true;
        case indirect_call: take(event::indirect_call{of.next, to}); return true;
        default: return false;
    }
}

}  // namespace ptspec::x86
