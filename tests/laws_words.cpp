// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/csv.hpp>
#include <support/words.hpp>

#include <charconv>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

// What holds for every word, and for every field of it.

namespace hana = boost::hana;
namespace test = ptspec::test;

namespace {

// ------------------------------------------------------------------------------------ the lists

template <class... Rows>
constexpr auto fields_among(ptspec::type_list<Rows...>) {
    return hana::filter(hana::tuple_t<Rows...>, [](auto row) {
        return hana::bool_c < decltype(row)::type::kind == ptspec::row_kind::field > ;
    });
}

template <class Word>
inline constexpr auto fields_of = fields_among(typename Word::layout::rows{});

template <class Function>
void for_each_word(Function check) {
    hana::for_each(test::all_words, [&](auto word) {
        using word_type = typename decltype(word)::type;
        auto const name = ptspec::name_of<word_type>();
        CAPTURE(std::string(name.data(), name.size()));
        check(word);
    });
}

template <class Function>
void for_each_field(Function check) {
    for_each_word([&](auto word) {
        hana::for_each(fields_of<typename decltype(word)::type>, [&](auto field) {
            auto const name = ptspec::name_of<typename decltype(field)::type>();
            CAPTURE(std::string(name.data(), name.size()));
            check(word, field);
        });
    });
}

// ------------------------------------------------------------------------------------ values

/// The 64-bit patterns that every field of every word is tried with: the edges, and some of no
/// kind.
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

/// A run of ones, counted bit by bit.
constexpr auto ones(unsigned msb, unsigned lsb) -> std::uint64_t {
    std::uint64_t mask = 0;
    for (unsigned bit = 0; bit < 64; ++bit) {
        if (lsb <= bit && bit <= msb) { mask += std::uint64_t{1} << bit; }
    }
    return mask;
}

/// The bits that a field's value can have: an address has its upper bits, a number its lower ones.
template <class Field>
constexpr auto value_bits() -> std::uint64_t {
    if constexpr (Field::is_address) {
        constexpr unsigned lowest = Field::lowest_address_bit;
        return ones(lowest + Field::msb - Field::lsb, lowest);
    } else {
        return ones(Field::msb - Field::lsb, 0);
    }
}

/// A field's value where it stands in the word.
template <class Field>
constexpr auto in_place(std::uint64_t value) -> std::uint64_t {
    if constexpr (Field::is_address) {
        return value >> Field::lowest_address_bit << Field::lsb;
    } else {
        return value << Field::lsb;
    }
}

// ------------------------------------------------------------------------------------ the laws

template <class Word>
constexpr auto rows_partition(auto value) -> bool {
    unsigned next = value(0U);
    for (auto const& row : ptspec::rows_of<Word>()) {
        if (row.lsb != next || row.msb < row.lsb) { return false; }
        next = row.msb + 1;
    }
    return next == 8 * sizeof(Word);
}

template <class Word, class Field>
constexpr auto with_then_get(auto value) -> bool {
    for (auto const bits : patterns) {
        auto const wanted = value(bits) & value_bits<Field>();
        auto const word = Word{}.with(Field{ptspec::wrapped{value(bits)}});
        if (static_cast<std::uint64_t>(word.template get<Field>()) != wanted) { return false; }
        if (word.raw != in_place<Field>(wanted)) { return false; }
    }
    return true;
}

template <class Word, class Field>
constexpr auto with_leaves_the_rest(auto value) -> bool {
    for (auto const before : patterns) {
        for (auto const bits : patterns) {
            auto const raw = static_cast<typename Word::raw_type>(value(before));
            auto const after = Word{raw}.with(Field{ptspec::wrapped{value(bits)}});
            if (((after.raw ^ raw) & ~ones(Field::msb, Field::lsb)) != 0) { return false; }
        }
    }
    return true;
}

/// All fields in one call, against one call a field.
template <class Word, class... Fields>
constexpr auto steps_give_the_same(Word start, std::uint64_t bits) -> bool {
    auto const once = start.with(Fields{ptspec::wrapped{bits >> Fields::lsb}}...);
    Word stepwise = start;
    ((stepwise = stepwise.with(Fields{ptspec::wrapped{bits >> Fields::lsb}})), ...);
    return once.raw == stepwise.raw;
}

template <class Word>
constexpr auto one_with_is_many(auto value) -> bool {
    return hana::unpack(fields_of<Word>, [=](auto... fields) {
        for (auto const before : patterns) {
            for (auto const bits : patterns) {
                Word const start{static_cast<typename Word::raw_type>(value(before))};
                if (!steps_give_the_same<Word, typename decltype(fields)::type...>(start,
                                                                                   value(bits))) {
                    return false;
                }
            }
        }
        return true;
    });
}

template <class Field>
constexpr auto checked_accepts_what_fits(auto value) -> bool {
    for (auto const bits : patterns) {
        bool const fits = (bits & ~value_bits<Field>()) == 0;
        auto const outcome = ptspec::checked<Field>(value(bits));
        if (static_cast<bool>(outcome) != fits || outcome.fits != fits) { return false; }
        if (fits && static_cast<std::uint64_t>(outcome.field.value) != bits) { return false; }
    }
    constexpr auto largest = value_bits<Field>();
    constexpr auto beyond = largest + (largest & (0 - largest));  // 0 for a field of 64 bits
    return ptspec::checked<Field>(value(largest)) &&
           static_cast<bool>(ptspec::checked<Field>(value(beyond))) == (beyond == 0);
}

template <class Word>
constexpr auto starts_at_zero(auto value) -> bool {
    return Word{}.raw == value(typename Word::raw_type{}) && Word{} == Word{0};
}

template <class Word>
constexpr auto equality_is_of_all_bits(auto value) -> bool {
    for (unsigned bit = 0; bit < 8 * sizeof(Word); ++bit) {
        auto const raw = static_cast<typename Word::raw_type>(value(std::uint64_t{1}) << bit);
        if (Word{raw} == Word{} || !(Word{raw} != Word{}) || !(Word{raw} == Word{raw})) {
            return false;
        }
    }
    return true;
}

/// Every bit lies in exactly one mask or is a plain field's.
template <class Word>
constexpr auto masks_are_apart(auto value) -> bool {
    auto const width = value(64U);
    std::uint64_t const reserved = Word::reserved_mask(width);
    std::uint64_t const ignored = Word::write_ignored_mask();
    std::uint64_t const forced = Word::forced_1_mask();
    std::uint64_t plain = 0;
    for (auto const& row : ptspec::rows_of<Word>()) {
        if (row.kind == ptspec::row_kind::field && row.access == ptspec::row_access::plain) {
            plain |= ones(row.msb, row.lsb);
        }
    }
    return reserved + ignored + forced + plain == ones(8 * sizeof(Word) - 1, 0) &&
           (reserved | ignored | forced | plain) == ones(8 * sizeof(Word) - 1, 0);
}

template <class Word>
constexpr auto set_bits_are_reported(auto value) -> bool {
    for (unsigned const width : {36U, 39U, 46U, 52U, 64U}) {
        for (unsigned bit = 0; bit < 8 * sizeof(Word); ++bit) {
            auto const one = static_cast<typename Word::raw_type>(value(std::uint64_t{1}) << bit);
            if (Word{one}.reserved_bits_set(width) != (one & Word::reserved_mask(width))) {
                return false;
            }
        }
    }
    return true;
}

template <auto Word>
struct template_argument {
    static constexpr auto raw = Word.raw;
};

}  // namespace

TEST_CASE("the rows of a word go from bit 0 to the top without a gap or an overlap") {
    for_each_word([](auto word) { CHECK_TWICE(rows_partition<typename decltype(word)::type>); });
}

TEST_CASE("with() then get() gives the value, and it stands where the field is") {
    for_each_field([](auto word, auto field) {
        CHECK_TWICE(with_then_get<typename decltype(word)::type, typename decltype(field)::type>);
    });
}

TEST_CASE("with() leaves every other bit alone") {
    for_each_field([](auto word, auto field) {
        CHECK_TWICE(
            with_leaves_the_rest<typename decltype(word)::type, typename decltype(field)::type>);
    });
}

TEST_CASE("with() of several fields is with() of one after the other") {
    for_each_word([](auto word) { CHECK_TWICE(one_with_is_many<typename decltype(word)::type>); });
}

TEST_CASE("checked() accepts exactly the values that fit, and keeps them") {
    for_each_field([](auto, auto field) {
        CHECK_TWICE(checked_accepts_what_fits<typename decltype(field)::type>);
    });
}

TEST_CASE("a word that nothing was written to is zero") {
    for_each_word([](auto word) { CHECK_TWICE(starts_at_zero<typename decltype(word)::type>); });
}

TEST_CASE("words are equal when all their bits are") {
    for_each_word(
        [](auto word) { CHECK_TWICE(equality_is_of_all_bits<typename decltype(word)::type>); });
}

TEST_CASE("every bit is reserved, write-ignored, forced to 1 or a plain field's") {
    for_each_word([](auto word) { CHECK_TWICE(masks_are_apart<typename decltype(word)::type>); });
}

TEST_CASE("reserved_bits_set() has the set bits of the reserved mask") {
    for_each_word(
        [](auto word) { CHECK_TWICE(set_bits_are_reported<typename decltype(word)::type>); });
}

TEST_CASE("a word is its raw bits and nothing else, and may be a template argument") {
    for_each_word([](auto word) {
        using type = typename decltype(word)::type;
        using raw = typename type::raw_type;
        static_assert(sizeof(type) == sizeof(raw) && alignof(type) == alignof(raw));
        static_assert(std::is_trivially_copyable_v<type> && std::is_standard_layout_v<type>);
        static_assert(std::is_trivially_destructible_v<type>);
        constexpr raw bits{0x81};
        CHECK(template_argument<type{bits}>::raw == bits);
    });
}

// ------------------------------------------------------------------------------------ the
// catalogue

namespace {

/// The name of a type below `ptspec::`, as the compiler spells it.
template <class Type>
auto name_below_ptspec() -> std::string {
#if defined(_MSC_VER) && !defined(__clang__)
    std::string_view const all = __FUNCSIG__;
#else
    std::string_view const all = __PRETTY_FUNCTION__;
#endif
    std::string_view const root = "ptspec::";
    auto const first = all.rfind(root) + root.size();
    return std::string{all.substr(first, all.find_first_of(";]>, ", first) - first)};
}

/// A row as registers.csv or reflection has it.
struct row {
    std::string name;
    unsigned msb;
    unsigned lsb;
    std::string access;

    friend auto operator==(row const&, row const&) -> bool = default;
    friend auto operator<<(std::ostream& out, row const& it) -> std::ostream& {
        return out << it.name << " " << it.msb << ".." << it.lsb << " " << it.access;
    }
};

auto number_of(std::string const& digits, int base = 10) -> unsigned {
    unsigned value = 0;
    auto const* end = digits.data() + digits.size();
    auto const parsed = std::from_chars(digits.data(), end, value, base);
    REQUIRE_MESSAGE((parsed.ec == std::errc{} && parsed.ptr == end), "not a number: ", digits);
    return value;
}

/// The bit that a cell names for a MAXPHYADDR: `12`, `M` or `M-1`.
auto bit_of(std::string const& cell, unsigned width) -> unsigned {
    return cell == "M" ? width : cell == "M-1" ? width - 1 : number_of(cell);
}

/// What is before and behind the last `::`.
auto split(std::string const& cpp_name) -> std::pair<std::string, std::string> {
    auto const at = cpp_name.rfind("::");
    return at == std::string::npos ? std::pair{std::string{}, cpp_name}
                                   : std::pair{cpp_name.substr(0, at), cpp_name.substr(at + 2)};
}

using csv_rows = std::vector<test::csv_row>;

/// The word that the rows of one register name; none when no row has a cpp_name.
auto word_named_by(csv_rows const& rows) -> std::string {
    std::set<std::string> words;
    std::size_t named = 0;
    for (auto const& row : rows) {
        CAPTURE(row.place);
        auto const [word, field] = split(row["cpp_name"]);
        if (!field.empty()) { ++named; }
        if (!word.empty()) {
            CHECK(field == row["field"]);
            words.insert(word);
        }
    }
    if (named == 0) { return ""; }
    CHECK_MESSAGE(named == rows.size(), "some rows have a cpp_name, some not");
    REQUIRE_MESSAGE(words.size() == 1, "the rows name several words, or none");
    return *words.begin();
}

/// The registers of registers.csv that the library has, by the C++ name of the word.
auto registers_by_word() -> std::map<std::string, csv_rows> {
    std::map<std::string, csv_rows> by_register;
    for (auto const& row : test::read_csv("tests/spec/registers.csv").rows) {
        by_register[row["register"]].push_back(row);
    }
    std::map<std::string, csv_rows> by_word;
    for (auto const& it : by_register) {
        CAPTURE(it.first);
        if (auto const word = word_named_by(it.second); !word.empty()) {
            CHECK_MESSAGE(by_word.emplace(word, it.second).second, "two registers of one word");
        }
    }
    return by_word;
}

/// The rows that the library ought to have: the address rows M-1..n and 63..M are one.
auto expected_rows(csv_rows const& cells) -> std::vector<row> {
    std::vector<row> rows;
    for (auto const& cell : cells) {
        if (cell["lsb"] == "M") {
            CHECK(cell["msb"] == "63");
            CHECK(cell["access"] == "reserved-must-be-0");
            CHECK(cell["cpp_name"] == "reserved");
            continue;
        }
        rows.push_back({split(cell["cpp_name"]).second, bit_of(cell["msb"], 64),
                        bit_of(cell["lsb"], 64), cell["access"]});
    }
    return rows;
}

auto access_of(ptspec::row_info const& row) -> std::string {
    using ptspec::row_access;
    using ptspec::row_kind;
    if (row.kind == row_kind::reserved) {
        return row.access == row_access::plain ? "reserved-must-be-0" : "?";
    }
    if (row.kind != row_kind::field) { return "?"; }
    switch (row.access) {
        case row_access::plain: return "rw";
        case row_access::write_ignored: return "w-ignored";
        case row_access::forced_1: return "forced-1";
        case row_access::read_only: return "ro";
    }
    return "?";
}

auto mask_of(csv_rows const& cells, std::string_view access, unsigned width) -> std::uint64_t {
    std::uint64_t mask = 0;
    for (auto const& cell : cells) {
        if (cell["access"] == access) {
            mask |= ones(bit_of(cell["msb"], width), bit_of(cell["lsb"], width));
        }
    }
    return mask;
}

}  // namespace

TEST_CASE("the words of the library are those that registers.csv names") {
    std::set<std::string> words;
    for_each_word(
        [&](auto word) { words.insert(name_below_ptspec<typename decltype(word)::type>()); });
    std::set<std::string> named;
    for (auto const& [word, rows] : registers_by_word()) { named.insert(word); }
    CHECK(words == named);
    CHECK(words.count("reg::ia32_rtit_ctl") == 1);
}

TEST_CASE("names, positions and access kinds are those of registers.csv") {
    auto const registers = registers_by_word();
    for_each_word([&](auto word) {
        using type = typename decltype(word)::type;
        auto const& cells = registers.at(name_below_ptspec<type>());
        std::vector<row> rows;
        for (auto const& it : ptspec::rows_of<type>()) {
            rows.push_back({{it.name.data(), it.name.size()}, it.msb, it.lsb, access_of(it)});
            bool const to_the_width = std::any_of(
                cells.begin(), cells.end(), [&](test::csv_row const& cell) {
                    return cell["msb"] == "M-1" &&
                           split(cell["cpp_name"]).second == rows.back().name;
                });
            CHECK(it.is_address == to_the_width);
        }
        auto const expected = expected_rows(cells);
        REQUIRE(rows.size() == expected.size());
        for (std::size_t i = 0; i < rows.size(); ++i) { CHECK(rows[i] == expected[i]); }
    });
}

TEST_CASE("masks are those of registers.csv, for every MAXPHYADDR") {
    auto const registers = registers_by_word();
    for_each_word([&](auto word) {
        using type = typename decltype(word)::type;
        auto const& cells = registers.at(name_below_ptspec<type>());
        for (unsigned const width : {36U, 39U, 42U, 46U, 52U, 63U}) {
            CAPTURE(width);
            CHECK(type::reserved_mask(width) == mask_of(cells, "reserved-must-be-0", width));
        }
        CHECK(type::reserved_mask() == mask_of(cells, "reserved-must-be-0", 64));
        CHECK(type::write_ignored_mask() == mask_of(cells, "w-ignored", 64));
        CHECK(type::forced_1_mask() == mask_of(cells, "forced-1", 64));
    });
}

TEST_CASE("MSR numbers are those of registers.csv") {
    int checked = 0;
    auto const registers = registers_by_word();
    for_each_word([&](auto word) {
        using type = typename decltype(word)::type;
        for (auto const& cell : registers.at(name_below_ptspec<type>())) {
            if constexpr (requires { type::address; }) {
                CHECK(type::address == number_of(cell["address_hex"], 16));
                ++checked;
            } else {
                CHECK(cell["kind"] != "msr");
            }
        }
    });
    CHECK(checked > 0);
}
