// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/action/transfer.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace action = engine::action;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [at, to, after, kind] = action::far_transfer{};
            good = good && are_zero(at, to, after) && kind == action::far_kind::plain;
        }
        {
            auto const [at, to, after, vector] = action::software_interrupt{};
            good = good && are_zero(at, to, after, vector);
        }
        {
            auto const [next, to, after, vector] = action::interrupt{};
            good = good && are_zero(next, to, after, vector);
        }
        {
            auto const [at, to, after, vector, cr2] = action::exception{};
            good = good && are_zero(at, to, after, vector, cr2);
        }
        {
            auto const [next, to, vector] = action::user_interrupt{};
            good = good && are_zero(next, to, vector);
        }
        {
            auto const [next, to, after, waits_for_sipi] = action::init{};
            good = good && are_zero(next, to, after, waits_for_sipi);
        }
        {
            auto const [to, after, vector] = action::sipi{};
            good = good && are_zero(to, after, vector);
        }
        {
            auto const [from, to, after] = action::enclave_transfer{};
            good = good && are_zero(from, to, after);
        }
        return good;
    });
}

TEST_CASE("a page fault is vector 14") {  // GEN-302
    CHECK_TWICE([](auto value) { return value(action::exception::page_fault) == 0x0E; });
}
