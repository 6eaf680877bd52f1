// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/rule.hpp>

#include <support/check_twice.hpp>
#include <support/csv.hpp>

#include <cstddef>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace ptspec;

// Ids are split in two here: a complete id would count as a citation, but nothing here tests the
// rule.

namespace {

auto string_of(text it) -> std::string { return {it.data(), it.size()}; }

template <rule Which>
constexpr auto decorated() noexcept -> char const* {
#if defined(_MSC_VER) && !defined(__clang__)
    return __FUNCSIG__;
#else
    return __PRETTY_FUNCTION__;
#endif
}

/// One more than the largest number that a rule can have.
constexpr size_t numbers = 6000;
struct shown_names {
    char const* of[numbers];
};
template <size_t... Number>
constexpr auto show_all(std::index_sequence<Number...>) -> shown_names {
    return {{decorated<static_cast<rule>(Number)>()...}};
}
constexpr auto shown = show_all(std::make_index_sequence<numbers>{});

/// The name of the enumerator with a number, or empty. Compilers print an enumerator as
/// `ptspec::rule::none`, and any other number as a cast.
auto enumerator_of(size_t number) -> std::string {
    if (number >= numbers) { return ""; }
    std::string_view const all = shown.of[number];
    std::string_view const type = "rule::";
    auto const at = all.rfind(type);
    if (at == std::string_view::npos) { return ""; }
    auto const name = all.substr(at + type.size());
    return std::string{name.substr(0, name.find_first_of(";]>"))};
}

/// All matches of a pattern's first group in a file, in order.
auto matches(std::string const& path, char const* pattern) -> std::vector<std::string> {
    auto const text = test::read_text(path);
    std::regex const wanted{pattern};
    std::vector<std::string> found;
    for (std::sregex_iterator it{text.begin(), text.end(), wanted}, end; it != end; ++it) {
        found.push_back((*it)[1].str());
    }
    return found;
}

/// The ids that the catalogue defines.
auto catalogue() -> std::set<std::string> {
    std::set<std::string> ids;
    std::regex const definition{
        R"((?:^|\n)- ((?:REG|OUT)-\d{3}) |\*\*((?:PKT|GEN|PRG)-\d{3})\*\*)"};
    for (auto const* page : {"output", "packets", "programming", "registers", "tracing"}) {
        auto const text = test::read_text(std::string{"tests/spec/"} + page + ".md");
        for (std::sregex_iterator it{text.begin(), text.end(), definition}, end; it != end; ++it) {
            ids.insert((*it)[1].matched ? (*it)[1].str() : (*it)[2].str());
        }
    }
    return ids;
}

}  // namespace

TEST_CASE("the compiler prints enumerators by name and other numbers as casts") {
    CHECK(enumerator_of(0) == "none");
    CHECK(enumerator_of(2022) == "OUT"
                                 "_022");
    CHECK(enumerator_of(3347) == "PKT"
                                 "_347");
    CHECK(enumerator_of(1).empty());
    CHECK(enumerator_of(2021).empty());
    CHECK(enumerator_of(5999).empty());
}

TEST_CASE("every enumerator's id is its name and a rule of the catalogue") {
    auto const ids = catalogue();
    std::size_t rules = 0;
    for (size_t number = 1; number < numbers; ++number) {
        auto const name = enumerator_of(number);
        if (name.empty()) { continue; }
        CAPTURE(name);
        ++rules;
        REQUIRE(name.size() == 7);
        CHECK(string_of(rule_id{static_cast<rule>(number)}.view()) ==
              name.substr(0, 3) + "-" + name.substr(4));
        CHECK(name[3] == '_');
        CHECK(ids.count(name.substr(0, 3) + "-" + name.substr(4)) == 1);
    }
    CHECK(rules == matches("include/ptspec/base/rule.hpp", R"(\n    ([A-Z]{3}_\d{3}) = )").size());
}

TEST_CASE("every enumerator has its own sentence, and no other number has one") {
    std::set<std::string> sentences;
    for (size_t number = 0; number < 0x10000; ++number) {
        CAPTURE(number);
        auto const sentence = string_of(describe(static_cast<rule>(number)));
        if (enumerator_of(number).empty()) {
            REQUIRE(sentence == "unknown rule");
        } else {
            CHECK(sentence != "unknown rule");
            CHECK(sentence.size() > 10);
            CHECK(sentences.insert(sentence).second);
        }
    }
}

TEST_CASE("ids of all five families") {
    CHECK_TWICE([](auto value) {
        return rule_id{rule{value(uint16_t{1044})}}.view() == text{"REG"
                                                                   "-044"} &&
               rule_id{rule{value(uint16_t{2022})}}.view() == text{"OUT"
                                                                   "-022"} &&
               rule_id{rule{value(uint16_t{3999})}}.view() == text{"PKT"
                                                                   "-999"} &&
               rule_id{rule{value(uint16_t{4000})}}.view() == text{"GEN"
                                                                   "-000"} &&
               rule_id{rule{value(uint16_t{5210})}}.view() == text{"PRG"
                                                                   "-210"};
    });
    CHECK_TWICE([](auto value) {
        return rule_id{value(rule{2066})}.view() == text{"OUT"
                                                         "-066"} &&
               rule_id{value(rule{3104})}.view() == text{"PKT"
                                                         "-104"} &&
               rule_id{value(rule{3340})}.view() == text{"PKT"
                                                         "-340"};
    });
}

TEST_CASE("rule::none and numbers below all families have the id none") {
    CHECK_TWICE([](auto value) {
        return rule_id{value(rule::none)}.view() == text{"none"} &&
               rule_id{rule{value(uint16_t{999})}}.view() == text{"none"} &&
               rule_id{rule{value(uint16_t{1000})}}.view() == text{"REG"
                                                                   "-000"};
    });
}

TEST_CASE("a number of no family also has an id of seven characters") {
    CHECK_TWICE([](auto value) {
        return rule_id{rule{value(uint16_t{6123})}}.view().size() == 7 &&
               rule_id{rule{value(uint16_t{0xFFFF})}}.view().size() == 7;
    });
    static_assert(sizeof(rule_id) == 8);
}

TEST_CASE("rule::none has a sentence") {
    CHECK_TWICE([](auto value) {
        return describe(value(rule::none)) == text{"no rule is broken"} &&
               describe(value(rule{2061})) == text{"a ToPA table must begin at a multiple of 4 KB"};
    });
}

TEST_CASE("an id is zero-terminated, so it can be printed from C") {
    CHECK_TWICE([](auto value) {
        return rule_id{value(rule{2066})}.letters[7] == 0 &&
               rule_id{value(rule::none)}.letters[4] == 0;
    });
}

TEST_CASE("first_rule keeps the first rule that it is called with") {
    CHECK_TWICE([](auto value) {
        first_rule first;
        bool const nothing = first.broken == rule::none;
        first(value(rule::REG_044));
        first(value(rule::REG_021));
        return nothing && first.broken == rule::REG_044;
    });
}
