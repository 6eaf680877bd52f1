// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/event/transfer.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace event = engine::event;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [at, to, after, kind] = event::far_transfer{};
            good = good && are_zero(at, to, after) && kind == event::far_kind::plain;
        }
        {
            auto const [until_pip, until_target, art, tsc] = event::cycles_within{};
            good = good && are_zero(until_pip, until_target, art, tsc);
        }
        {
            auto const [at, to, after, vector, takes] = event::software_interrupt{};
            good = good && are_zero(at, to, after, vector, takes.until_pip, takes.until_target);
        }
        {
            auto const [next, to, after, vector, takes] = event::interrupt{};
            good = good && are_zero(next, to, after, vector, takes.until_pip, takes.until_target);
        }
        {
            auto const [at, to, after, vector, cr2, takes] = event::exception{};
            good = good &&
                   are_zero(at, to, after, vector, cr2, takes.until_pip, takes.until_target);
        }
        {
            auto const [next, to, vector] = event::user_interrupt{};
            good = good && are_zero(next, to, vector);
        }
        {
            auto const [next, to, after, waits_for_sipi] = event::init{};
            good = good && are_zero(next, to, after, waits_for_sipi);
        }
        {
            auto const [to, after, vector] = event::sipi{};
            good = good && are_zero(to, after, vector);
        }
        {
            auto const [from, to, after] = event::enclave_transfer{};
            good = good && are_zero(from, to, after);
        }
        return good;
    });
}

TEST_CASE("a page fault is vector 14") {  // GEN-302
    CHECK_TWICE([](auto value) { return value(event::exception::page_fault) == 0x0E; });
}
