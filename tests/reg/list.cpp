// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/list.hpp>

#include <support/csv.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

namespace test = ptspec::test;

namespace {

template <class... Words>
auto names_in(ptspec::type_list<Words...> /*words*/) -> std::vector<std::string> {
    return {std::string(ptspec::name_of<Words>().data(), ptspec::name_of<Words>().size())...};
}

/// `cpuid_14h_0_edx` for `CPUID.14H.0:EDX`.
auto cpp_spelling(std::string name) -> std::string {
    for (char& letter : name) {
        letter = std::isalnum(static_cast<unsigned char>(letter)) != 0
                     ? static_cast<char>(std::tolower(static_cast<unsigned char>(letter)))
                     : '_';
    }
    return name;
}

/// The words of `reg` in registers.csv, and those with only reserved rows.
auto words_of_the_catalogue() -> std::set<std::string> {
    std::set<std::string> words;
    for (auto const& row : test::read_csv("tests/spec/registers.csv").rows) {
        auto const& name = row["cpp_name"];
        if (name.rfind("reg::", 0) == 0) { words.insert(name.substr(5, name.rfind("::") - 5)); }
        if (name == "reserved" && row["msb"] == "31" && row["lsb"] == "0") {
            words.insert(cpp_spelling(row["register"]));
        }
    }
    return words;
}

}  // namespace

TEST_CASE("the list has every word of registers.csv exactly once") {
    auto const listed = names_in(ptspec::reg::all{});
    CHECK(std::set<std::string>(listed.begin(), listed.end()) == words_of_the_catalogue());
    CHECK(listed.size() == words_of_the_catalogue().size());
}

TEST_CASE("the trace unit's own registers come first") {
    auto const listed = names_in(ptspec::reg::all{});
    auto const own = [](std::string const& name) { return name.rfind("ia32_rtit", 0) == 0; };
    CHECK(std::is_partitioned(listed.begin(), listed.end(), own));
    CHECK(own(listed.front()));
}
