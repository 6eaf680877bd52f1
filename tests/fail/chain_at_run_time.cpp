// SPDX-License-Identifier: BSL-1.0
// expect: a_run_time_table_needs_try_ring_or_its_like
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
auto is_chain(uint64_t base) {
    auto const part = topa::table_at(base, topa::region{.base = 0x10'0000});
    return static_cast<bool>(topa::try_chain(part));
}
#else
auto is_chain(uint64_t base) {
    auto const part = topa::table_at(base, topa::region{.base = 0x10'0000});
    return topa::chain(part).get<0>().size();
}
#endif
