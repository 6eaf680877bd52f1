// SPDX-License-Identifier: BSL-1.0
#include <support/csv.hpp>
#include <support/words.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Compares every row of tests/spec/registers.csv with the reflection of the word in its cpp_name
// column, and every word of the library with the table.

namespace hana = boost::hana;
namespace test = ptspec::test;
using ptspec::row_access;
using ptspec::row_kind;

namespace {

// ------------------------------------------------------------------------------------ one row

/// A row of the table or of the reflection.
struct row {
    std::string name;
    unsigned msb;
    unsigned lsb;
    std::string access;  ///< the access, or `reserved` or `other`

    friend auto operator==(row const&, row const&) -> bool = default;
    friend auto operator<<(std::ostream& out, row const& it) -> std::ostream& {
        return out << it.name << " " << it.msb << ".." << it.lsb << " " << it.access;
    }
};

auto number_of(std::string_view digits, int base = 10) -> unsigned {
    unsigned value = 0;
    auto const* end = digits.data() + digits.size();
    auto const parsed = std::from_chars(digits.data(), end, value, base);
    REQUIRE_MESSAGE((parsed.ec == std::errc{} && parsed.ptr == end), "not a number: ", digits);
    return value;
}

auto hex(std::uint32_t number, std::size_t digits = 1) -> std::string {
    char text[8];
    auto const* end = std::to_chars(text, text + 8, number, 16).ptr;
    std::string spelled{static_cast<char const*>(text), end};
    for (auto& digit : spelled) { digit = digit >= 'a' ? static_cast<char>(digit - 32) : digit; }
    return std::string(spelled.size() < digits ? digits - spelled.size() : 0, '0') + spelled;
}

/// The access of a row; `other` according to its name; `reserved` according to its name or access.
auto access_of(test::csv_row const& cell) -> std::string {
    std::string_view const name = cell["field"];
    if (name.starts_with("Other")) { return "other"; }
    return name.starts_with("Reserved") || cell["access"] == "reserved-must-be-0" ? "reserved"
                                                                                  : cell["access"];
}

auto access_of(ptspec::row_info const& row) -> std::string {
    if (row.kind == row_kind::fixed) { return "?"; }
    if (row.kind != row_kind::field && row.access != row_access::plain) { return "?"; }
    if (row.kind == row_kind::reserved) { return "reserved"; }
    if (row.kind == row_kind::other) { return "other"; }
    switch (row.access) {
        case row_access::plain: return "rw";
        case row_access::write_ignored: return "w-ignored";
        case row_access::forced_1: return "forced-1";
        case row_access::read_only: return "ro";
    }
    return "?";
}

/// The bit number in a cell for a MAXPHYADDR: `12`, `M` or `M-1`.
auto bit_of(std::string const& cell, unsigned width) -> unsigned {
    return cell == "M" ? width : cell == "M-1" ? width - 1 : number_of(cell);
}

/// The parts before and after the last `::`.
auto split(std::string const& cpp_name) -> std::pair<std::string, std::string> {
    auto const at = cpp_name.rfind("::");
    return at == std::string::npos ? std::pair{std::string{}, cpp_name}
                                   : std::pair{cpp_name.substr(0, at), cpp_name.substr(at + 2)};
}

// ------------------------------------------------------------------------------------ the table

struct csv_register {
    std::string name;
    std::vector<test::csv_row> cells;
    std::string word;  ///< its C++ name

    [[nodiscard]] auto place() const -> std::string const& { return cells[0]["address_hex"]; }
    [[nodiscard]] auto kind() const -> std::string const& { return cells[0]["kind"]; }

    /// The position of its bit 0 in its word. Not 0 only for the quadwords of PT state, which are
    /// one word.
    [[nodiscard]] auto first_bit() const -> unsigned {
        return word == "reg::xsave_pt_state" ? 8 * number_of(place(), 16) : 0;
    }

    /// The rows that the word must have. The address rows M-1..n and 63..M are merged.
    [[nodiscard]] auto rows() const -> std::vector<row> {
        std::vector<row> rows;
        for (auto const& cell : cells) {
            CAPTURE(cell.place);
            if (cell["lsb"] == "M") {
                CHECK(cell["msb"] == "63");
                CHECK(access_of(cell) == "reserved");
                continue;
            }
            rows.push_back({split(cell["cpp_name"]).second, first_bit() + bit_of(cell["msb"], 64),
                            first_bit() + bit_of(cell["lsb"], 64), access_of(cell)});
        }
        return rows;
    }

    /// The bits with this access for a MAXPHYADDR.
    [[nodiscard]] auto mask(std::string_view access, unsigned width) const -> std::uint64_t {
        std::uint64_t mask = 0;
        for (auto const& cell : cells) {
            if (access_of(cell) == access) {
                mask |= test::ones(bit_of(cell["msb"], width), bit_of(cell["lsb"], width));
            }
        }
        return mask;
    }

    [[nodiscard]] auto has(std::string_view access) const -> bool {
        return std::any_of(cells.begin(), cells.end(),
                           [=](auto const& cell) { return cell["access"] == access; });
    }
};

/// The registers in table order.
auto read_registers() -> std::vector<csv_register> {
    std::vector<csv_register> registers;
    for (auto const& cell : test::read_csv("tests/spec/registers.csv").rows) {
        if (registers.empty() || registers.back().name != cell["register"]) {
            registers.push_back({cell["register"], {}, {}});
        }
        auto& last = registers.back();
        last.cells.push_back(cell);
        if (last.word.empty()) { last.word = split(cell["cpp_name"]).first; }
    }
    return registers;
}

auto all_registers() -> std::vector<csv_register> const& {
    static auto const all = read_registers();
    return all;
}

// ------------------------------------------------------------------------------------ places

struct place {
    std::string kind;
    std::string address_hex;

    friend auto operator==(place const&, place const&) -> bool = default;
    friend auto operator<<(std::ostream& out, place const& it) -> std::ostream& {
        return out << it.kind << " " << it.address_hex;
    }
};

/// The address of an array of MSRs, in the notation of the table: `14C1+n`.
template <class Word>
auto counted_up(std::string const& letter) -> std::string {
    auto const first = Word::address(0);
    for (unsigned n = 0; n < 64; ++n) { CHECK(Word::address(n) == first + n); }
    return hex(first) + "+" + letter;
}

/// The address of a word in the notation of the table. `it` is one of the word's registers.
template <class Word>
auto place_of(csv_register const& it) -> place {
    if constexpr (ptspec::same_as<Word, ptspec::reg::xsave_pt_state>) {
        return {"xsave", hex(it.first_bit() / 8, 2)};
    } else if constexpr (requires { Word::leaf; }) {
        constexpr std::string_view parts[] = {"EAX", "EBX", "ECX", "EDX"};
        return {"cpuid", hex(Word::leaf, 2) + "." + hex(Word::subleaf) + "." +
                             std::string{parts[ptspec::underlying(Word::output)]}};
    } else if constexpr (requires { Word::encoding; }) {
        return {"vmcs", hex(Word::encoding)};
    } else if constexpr (requires { Word::offset; }) {
        return {it.kind() == "memory" ? "memory" : "xsave", hex(Word::offset)};
    } else if constexpr (requires { Word::address(0U, ptspec::reg::range_end::a); }) {
        auto const which = it.name.ends_with("_A")   ? ptspec::reg::range_end::a
                           : it.name.ends_with("_B") ? ptspec::reg::range_end::b
                                                     : ptspec::reg::range_end{9};
        auto const n = number_of(it.name.substr(it.name.size() - 3, 1));
        return {"msr", hex(Word::address(n, which))};
    } else if constexpr (requires { Word::address(0U); }) {
        return {"msr", counted_up<Word>(it.place().substr(it.place().size() - 1))};
    } else if constexpr (requires { Word::address; }) {
        return {"msr", hex(Word::address)};
    } else {
        return {"", ""};
    }
}

// ------------------------------------------------------------------------------------ the words

/// The name of a type relative to `ptspec::`, as the compiler spells it.
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

struct word_data {
    std::string name;
    row_access access;
    std::span<ptspec::row_info const> rows;
    place (*place_of)(csv_register const& it) = nullptr;
    /// null: the word has no masks
    std::uint64_t (*reserved_mask)(unsigned max_phys_addr) = nullptr;
    std::uint64_t write_ignored_mask = 0;
    std::uint64_t forced_1_mask = 0;
};

template <class Word>
constexpr auto rows_of_word = ptspec::rows_of<Word>();

template <class Word>
auto data_of() -> word_data {
    word_data data{name_below_ptspec<Word>(),
                   Word::access,
                   {rows_of_word<Word>.begin(), rows_of_word<Word>.end()},
                   place_of<Word>};
    if constexpr (requires { Word::reserved_mask(64); }) {
        data.reserved_mask = [](unsigned width) -> std::uint64_t {
            return width == 64 ? Word::reserved_mask() : Word::reserved_mask(width);
        };
        data.write_ignored_mask = Word::write_ignored_mask();
        data.forced_1_mask = Word::forced_1_mask();
    }
    return data;
}

/// All words, and PT state, which is not a bit_word but has rows in the table.
auto all_words() -> std::vector<word_data> const& {
    static auto const all = hana::unpack(test::all_words, [](auto... words) {
        return std::vector{data_of<typename decltype(words)::type>()...,
                           data_of<ptspec::reg::xsave_pt_state>()};
    });
    return all;
}

/// Calls `check(word, register)` for every register of every word.
template <class Function>
void for_each_register(Function check) {
    for (auto const& word : all_words()) {
        for (auto const& it : all_registers()) {
            if (it.word == word.name) {
                CAPTURE(it.name);
                check(word, it);
            }
        }
    }
}

}  // namespace

TEST_CASE("the table has each register once") {
    std::set<std::string> names;
    for (auto const& it : all_registers()) { CHECK(names.insert(it.name).second); }
    CHECK(names.count("IA32_RTIT_CTL") == 1);
}

TEST_CASE("every row names its row in the library, and all rows of a register name the same word") {
    for (auto const& it : all_registers()) {
        bool some_are_named = false;
        for (auto const& cell : it.cells) {
            some_are_named = some_are_named ||
                             (access_of(cell) != "reserved" && access_of(cell) != "other");
        }
        for (auto const& cell : it.cells) {
            CAPTURE(cell.place);
            auto const access = access_of(cell);
            bool const named = access != "reserved" && access != "other";
            CHECK(split(cell["cpp_name"]).second == (named ? cell["field"] : access));
            // If no row has a name, all rows contain only the word's name.
            CHECK(split(cell["cpp_name"]).first == (named || !some_are_named ? it.word : ""));
            CHECK((access != "reserved" || cell["access"] == "ro" ||
                   cell["access"] == "reserved-must-be-0"));
            CHECK(cell["address_hex"] == it.place());
            CHECK(cell["kind"] == it.kind());
        }
    }
}

TEST_CASE("the words of the library are exactly those in the table") {
    std::set<std::string> library_words;
    for (auto const& word : all_words()) { CHECK(library_words.insert(word.name).second); }
    std::set<std::string> named;
    for (auto const& it : all_registers()) { named.insert(it.word); }
    CHECK(library_words == named);
    CHECK(library_words.count("reg::ia32_rtit_ctl") == 1);
}

TEST_CASE("names, positions and access kinds match the table") {
    std::size_t compared = 0;
    for_each_register([&](word_data const& word, csv_register const& it) {
        std::vector<row> rows;
        for (auto const& row : word.rows) {
            if (row.lsb < it.first_bit() || row.lsb > it.first_bit() + 63) { continue; }
            rows.push_back({{row.name.data(), row.name.size()}, row.msb, row.lsb, access_of(row)});
            for (auto const& cell : it.cells) {
                if (cell["msb"] == "M-1" && cell["field"] == rows.back().name) {
                    CHECK(row.is_address);
                }
            }
        }
        auto const expected = it.rows();
        REQUIRE(rows.size() == expected.size());
        for (std::size_t i = 0; i < rows.size(); ++i) { CHECK(rows[i] == expected[i]); }
        compared += it.cells.size();
    });
    CHECK(compared == test::read_csv("tests/spec/registers.csv").rows.size());
}

TEST_CASE("a word is read-only if the table has only ro fields for it") {
    for_each_register([](word_data const& word, csv_register const& it) {
        bool const written = it.has("rw") || it.has("w-ignored") || it.has("forced-1");
        CHECK(word.access ==
              (it.has("ro") && !written ? row_access::read_only : row_access::plain));
    });
}

TEST_CASE("masks match the table for every MAXPHYADDR") {
    for_each_register([](word_data const& word, csv_register const& it) {
        if (word.reserved_mask == nullptr) {
            CHECK(word.name == "reg::xsave_pt_state");
            return;
        }
        for (unsigned const width : {36U, 39U, 42U, 46U, 52U, 63U, 64U}) {
            CAPTURE(width);
            CHECK(word.reserved_mask(width) == it.mask("reserved", width));
        }
        CHECK(word.write_ignored_mask == it.mask("w-ignored", 64));
        CHECK(word.forced_1_mask == it.mask("forced-1", 64));
    });
}

TEST_CASE("MSR numbers, VMCS encodings, CPUID leaves and offsets match the table") {
    std::set<std::string> without_place;
    for_each_register([&](word_data const& word, csv_register const& it) {
        auto const where = word.place_of(it);
        if (where == place{}) {
            without_place.insert(it.name);
        } else {
            CHECK(where == place{it.kind(), it.place()});
        }
    });
    CHECK(without_place == std::set<std::string>{"IA32_RTIT_TRIGGERx_CFG", "DR7",
                                                 "TOPA_ENTRY_OUTPUT", "TOPA_ENTRY_END"});
    for (auto const& it : all_registers()) {
        CAPTURE(it.name);
        CHECK((without_place.count(it.name) == 1) ==
              (it.place() == "-" || it.place() == "UNCONFIRMED"));
    }
}
