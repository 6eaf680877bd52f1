// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/action/transaction.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace action = engine::action;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [at, next] = action::transaction_begin{};
            good = good && are_zero(at, next);
        }
        {
            auto const [at, next] = action::transaction_end{};
            good = good && are_zero(at, next);
        }
        {
            auto const [at, to] = action::transaction_abort{};
            good = good && are_zero(at, to);
        }
        return good;
    });
}
