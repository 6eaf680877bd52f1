// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/words.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

// Laws that hold for every word and every field of it.

namespace hana = boost::hana;
namespace test = ptspec::test;
using test::ones;

namespace {

// ------------------------------------------------------------------------------------ as data

// To compile each law once instead of three hundred times (once per field), words and fields are
// converted to tables of function pointers on numbers.

struct outcome {
    bool fits;
    bool is_true;
    std::uint64_t value;
};

struct field_data {
    ptspec::text name;
    unsigned msb;
    unsigned lsb;
    std::uint64_t mask;        ///< the field's bits in the word
    std::uint64_t value_bits;  ///< the bits that its value can have
    unsigned value_lsb;        ///< the bit of the value that is stored at `lsb`
    std::uint64_t (*get)(std::uint64_t raw);
    std::uint64_t (*with)(std::uint64_t raw, std::uint64_t bits);
    outcome (*checked)(std::uint64_t bits);
};

struct word_data {
    ptspec::text name;
    unsigned bits;
    std::uint64_t mask;  ///< all bits of the word
    std::span<ptspec::row_info const> rows;
    std::span<field_data const> fields;
    std::uint64_t default_raw;  ///< a default-constructed word
    std::uint64_t (*with_all)(std::uint64_t raw, std::uint64_t bits);
    bool (*equal)(std::uint64_t one, std::uint64_t two);
    bool (*unequal)(std::uint64_t one, std::uint64_t two);
    std::uint64_t (*reserved_mask)(unsigned max_phys_addr);
    std::uint64_t (*reserved_bits_set)(std::uint64_t raw, unsigned max_phys_addr);
    std::uint64_t write_ignored_mask;
    std::uint64_t forced_1_mask;
};

template <class Word>
constexpr auto word_of(std::uint64_t raw) -> Word {
    return Word{static_cast<typename Word::raw_type>(raw)};
}

/// The lowest bit of a field's value: that of the address for address fields, else 0.
template <class Field>
constexpr auto lowest_bit_of_value() -> unsigned {
    if constexpr (Field::is_address) {
        return Field::lowest_address_bit;
    } else {
        return 0;
    }
}

template <class Word, class Field>
constexpr auto data_of_field() -> field_data {
    constexpr unsigned lowest = lowest_bit_of_value<Field>();
    return {
        ptspec::name_of<Field>(),
        Field::msb,
        Field::lsb,
        ones(Field::msb, Field::lsb),
        ones(lowest + Field::msb - Field::lsb, lowest),
        lowest,
        [](std::uint64_t raw) {
            return static_cast<std::uint64_t>(word_of<Word>(raw).template get<Field>());
        },
        [](std::uint64_t raw, std::uint64_t bits) -> std::uint64_t {
            return word_of<Word>(raw).with(Field{ptspec::wrapped{bits}}).raw;
        },
        [](std::uint64_t bits) -> outcome {
            auto const it = ptspec::checked<Field>(bits);
            return {it.has_value, static_cast<bool>(it),
                    static_cast<std::uint64_t>(it.field.value)};
        },
    };
}

template <class Word, class... Fields>
struct fields_of_word {
    static constexpr std::array<field_data, sizeof...(Fields)> data{
        data_of_field<Word, Fields>()...};
    static constexpr auto with_all(std::uint64_t raw, [[maybe_unused]] std::uint64_t bits)
        -> std::uint64_t {
        return word_of<Word>(raw).with(Fields{ptspec::wrapped{bits >> Fields::lsb}}...).raw;
    }
};

/// The rows of a word that are fields.
template <class Word, class Rows, class... Fields>
struct fields_among;
template <class Word, class... Fields>
struct fields_among<Word, ptspec::type_list<>, Fields...> : fields_of_word<Word, Fields...> {};
template <class Word, class Row, class... Rows, class... Fields>
    requires(Row::kind == ptspec::row_kind::field)
struct fields_among<Word, ptspec::type_list<Row, Rows...>, Fields...>
    : fields_among<Word, ptspec::type_list<Rows...>, Fields..., Row> {};
template <class Word, class Row, class... Rows, class... Fields>
struct fields_among<Word, ptspec::type_list<Row, Rows...>, Fields...>
    : fields_among<Word, ptspec::type_list<Rows...>, Fields...> {};

template <class Word>
inline constexpr auto rows_of_word = ptspec::rows_of<Word>();

template <class Word>
constexpr auto data_of_word() -> word_data {
    using fields = fields_among<Word, typename Word::layout::rows>;
    return {
        ptspec::name_of<Word>(),
        8 * sizeof(Word),
        ones(8 * sizeof(Word) - 1, 0),
        {rows_of_word<Word>.begin(), rows_of_word<Word>.end()},
        fields::data,
        Word{}.raw,
        fields::with_all,
        [](std::uint64_t one, std::uint64_t two) {
            return word_of<Word>(one) == word_of<Word>(two);
        },
        [](std::uint64_t one, std::uint64_t two) {
            return word_of<Word>(one) != word_of<Word>(two);
        },
        [](unsigned width) -> std::uint64_t { return Word::reserved_mask(width); },
        [](std::uint64_t raw, unsigned width) -> std::uint64_t {
            return word_of<Word>(raw).reserved_bits_set(width);
        },
        Word::write_ignored_mask(),
        Word::forced_1_mask(),
    };
}

template <class Word>
inline constexpr word_data data_of = data_of_word<Word>();

constexpr auto all_data = hana::unpack(test::all_words, [](auto... words) {
    return std::array{data_of<typename decltype(words)::type>...};
});

auto spelled(ptspec::text name) -> std::string { return {name.data(), name.size()}; }

/// Checks a law of words, `[](word_data const& word, auto value) { ... return truth; }`: in a
/// constant expression, and at run time on values that the compiler cannot see.
template <class Law>
void for_every_word(Law law) {
    hana::for_each(test::all_words, [](auto word) {
        static_assert(Law{}(data_of<typename decltype(word)::type>, test::known{}));
    });
    for (auto const& word : all_data) {
        CAPTURE(spelled(word.name));
        CHECK(law(word, test::unknown{}));
    }
}

template <class Law>
constexpr auto holds_for_all_fields(word_data const& word) -> bool {
    for (auto const& field : word.fields) {
        if (!Law{}(word, field, test::known{})) { return false; }
    }
    return true;
}

/// Checks a law of fields, `[](word_data const& word, field_data const& field, auto value) { ...
/// }`.
template <class Law>
void for_every_field(Law law) {
    hana::for_each(test::all_words, [](auto word) {
        static_assert(holds_for_all_fields<Law>(data_of<typename decltype(word)::type>));
    });
    for (auto const& word : all_data) {
        CAPTURE(spelled(word.name));
        for (auto const& field : word.fields) {
            CAPTURE(spelled(field.name));
            CHECK(law(word, field, test::unknown{}));
        }
    }
}

// ------------------------------------------------------------------------------------ values

/// The 64-bit test patterns for every field of every word: edge cases and arbitrary values.
constexpr std::uint64_t patterns[] = {
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFFFF'FFFF,
    0x1'0000'0000,
    0x5555'5555'5555'5555,
    0xAAAA'AAAA'AAAA'AAAA,
    0x7FFF'FFFF'FFFF'FFFF,
    0x8000'0000'0000'0000,
    0xFFFF'FFFF'FFFF'FFFF,
    0x9E37'79B9'7F4A'7C15,
    0xBF58'476D'1CE4'E5B9,
    0x94D0'49BB'1331'11EB,
};

}  // namespace

// ------------------------------------------------------------------------------------ the laws

TEST_CASE("the rows of a word tile it from bit 0 to the top without gaps or overlaps") {
    for_every_word([](word_data const& word, auto value) {
        unsigned next = value(0U);
        for (auto const& row : word.rows) {
            if (row.lsb != next || row.msb < row.lsb) { return false; }
            next = row.msb + 1;
        }
        return next == word.bits;
    });
}

TEST_CASE("with() then get() gives the value, for any old value and at the field's position") {
    for_every_field([](word_data const& word, field_data const& field, auto value) {
        for (auto const before : patterns) {
            for (auto const bits : patterns) {
                auto const wanted = value(bits) & field.value_bits;
                auto const raw = field.with(value(before) & word.mask, value(bits));
                if (field.get(raw) != wanted) { return false; }
                if ((raw & field.mask) != wanted >> field.value_lsb << field.lsb) { return false; }
            }
        }
        return true;
    });
}

TEST_CASE("with() does not change any other bit") {
    for_every_field([](word_data const& word, field_data const& field, auto value) {
        for (auto const before : patterns) {
            for (auto const bits : patterns) {
                auto const raw = value(before) & word.mask;
                auto const after = field.with(raw, value(bits));
                if (((after ^ raw) & ~field.mask) != 0) { return false; }
            }
        }
        return true;
    });
}

TEST_CASE("with() of several fields equals with() of each field in turn") {
    for_every_word([](word_data const& word, auto value) {
        for (auto const before : patterns) {
            for (auto const bits : patterns) {
                auto stepwise = value(before) & word.mask;
                auto const once = word.with_all(stepwise, value(bits));
                for (auto const& field : word.fields) {
                    stepwise = field.with(stepwise, value(bits) >> field.lsb);
                }
                if (once != stepwise) { return false; }
            }
        }
        return true;
    });
}

TEST_CASE("checked() accepts exactly the values that fit, and keeps them") {
    for_every_field([](word_data const&, field_data const& field, auto value) {
        for (auto const bits : patterns) {
            bool const fits = (bits & ~field.value_bits) == 0;
            auto const it = field.checked(value(bits));
            if (it.is_true != fits || it.fits != fits) { return false; }
            if (fits && it.value != bits) { return false; }
        }
        auto const largest = field.value_bits;
        auto const beyond = largest + (largest & (0 - largest));  // 0 for a field of 64 bits
        return field.checked(value(largest)).is_true &&
               field.checked(value(beyond)).is_true == (beyond == 0);
    });
}

TEST_CASE("a default-constructed word is zero") {
    for_every_word([](word_data const& word, auto value) {
        return word.default_raw == value(std::uint64_t{0}) && word.equal(word.default_raw, 0);
    });
}

TEST_CASE("words are equal if all their bits are equal") {
    for_every_word([](word_data const& word, auto value) {
        for (unsigned bit = 0; bit < word.bits; ++bit) {
            auto const raw = value(std::uint64_t{1}) << bit;
            if (word.equal(raw, 0) || !word.unequal(raw, 0) || !word.equal(raw, raw)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("every bit is reserved, other, or part of a field with exactly one kind of access") {
    for_every_word([](word_data const& word, auto value) {
        std::uint64_t rest = 0;  // the bits that are in no mask
        for (auto const& row : word.rows) {
            bool const stored = row.access == ptspec::row_access::plain ||
                                row.access == ptspec::row_access::read_only;
            if (row.kind == ptspec::row_kind::other ||
                (row.kind == ptspec::row_kind::field && stored)) {
                rest |= ones(row.msb, row.lsb);
            }
        }
        auto const reserved = word.reserved_mask(value(64U));
        auto const ignored = word.write_ignored_mask;
        auto const forced = word.forced_1_mask;
        return reserved + ignored + forced + rest == word.mask &&
               (reserved | ignored | forced | rest) == word.mask;
    });
}

TEST_CASE("reserved_bits_set() has the set bits of the reserved mask") {
    for_every_word([](word_data const& word, auto value) {
        for (unsigned const width : {36U, 39U, 46U, 52U, 64U}) {
            auto const mask = word.reserved_mask(width);
            for (unsigned bit = 0; bit < word.bits; ++bit) {
                auto const one = value(std::uint64_t{1}) << bit;
                if (word.reserved_bits_set(one, width) != (one & mask)) { return false; }
            }
        }
        return true;
    });
}

namespace {

template <auto Word>
struct template_argument {
    static constexpr auto raw = Word.raw;
};

}  // namespace

TEST_CASE("a word is only its raw bits and may be a template argument") {
    hana::for_each(test::all_words, [](auto word) {
        using type = typename decltype(word)::type;
        using raw = typename type::raw_type;
        static_assert(sizeof(type) == sizeof(raw) && alignof(type) == alignof(raw));
        static_assert(std::is_trivially_copyable_v<type> && std::is_standard_layout_v<type>);
        static_assert(std::is_trivially_destructible_v<type>);
        static_assert(template_argument<type{raw{0x81}}>::raw == 0x81);
    });
    CHECK(template_argument<ptspec::reg::ia32_rtit_ctl{0x81}>::raw == 0x81);
}
