// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/checks.hpp>

#include <support/check_twice.hpp>

#include <set>
#include <string>

using namespace ptspec;

TEST_CASE("the names of checks are different, and of lower case") {
    std::set<std::string> names;
    suite::for_each_check([&]<class Check>(text) {
        std::string const name{text{Check::name}.data()};
        CAPTURE(name);
        CHECK(names.insert(name).second);
        CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos);
    });
    CHECK(names.size() == suite::check_count());
    CHECK(names.size() > 100);
}

TEST_CASE("each check names a rule, each once, and is in one group") {
    std::set<std::string> groups;
    std::string last;
    suite::for_each_check([&]<class Check>(text group) {
        CAPTURE(std::string{text{Check::name}.data()});
        std::set<rule> rules;
        for (rule const one : Check::rules) { CHECK(rules.insert(one).second); }
        CHECK(!rules.empty());
        std::string const name{group.data()};
        if (name != last) { CHECK(groups.insert(name).second); }
        last = name;
    });
    CHECK(groups.size() == 13);
}
