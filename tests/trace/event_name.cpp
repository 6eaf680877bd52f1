// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/event_name.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using trace::event_type;
using trace::name_of;

TEST_CASE("the name of an event is its enumerator") {
    CHECK_TWICE([](auto value) {
        return name_of(value(event_type::branches)) == "branches" &&
               name_of(value(event_type::indirect_branch)) == "indirect_branch" &&
               name_of(value(event_type::psb)) == "psb" && name_of(value(event_type::end)) == "end";
    });
}

TEST_CASE("all names differ, and other values have none") {
    CHECK_TWICE([](auto value) {
        bool right = true;
        for (unsigned one = 0; one <= underlying(event_type::end); ++one) {
            auto const name = name_of(static_cast<event_type>(value(one)));
            right = right && name.size() != 0;
            for (unsigned other = 0; other < one; ++other) {
                right = right && !(name == name_of(static_cast<event_type>(other)));
            }
        }
        return right && name_of(static_cast<event_type>(value(200U))).size() == 0;
    });
}
