// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/action/value.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace action = engine::action;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [at, next, number, is_64_bit] = action::ptwrite{};
            good = good && are_zero(at, next, number, is_64_bit);
        }
        {
            auto const [id, number] = action::pebs_item{};
            good = good && are_zero(id, number);
        }
        {
            auto const [type, items_of_4, items, count] = action::pebs_group{};
            good = good && are_zero(type, items_of_4, items, count);
        }
        {
            auto const [ip, groups, count] = action::pebs_record{};
            good = good && are_zero(ip, groups, count);
        }
        return good;
    });
}
