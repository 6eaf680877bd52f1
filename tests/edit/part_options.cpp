// SPDX-License-Identifier: BSL-1.0
#include <ptspec/edit/part_options.hpp>

#include <doctest/doctest.h>

using namespace ptspec;

TEST_CASE("by default the part of any guest is kept, from a trace of both sides (PRG-163)") {
    constexpr edit::part_options options{};
    static_assert(options.keep == edit::side::guest && options.where == edit::traced_in::both);
    static_assert(options.vmcs == edit::part_options::any_vmcs && options.hides_exits);
    static_assert(!options.has_other_tsc);
    CHECK(edit::kept_part{});
    CHECK(!edit::kept_part{.broken = rule::PKT_255});
}
