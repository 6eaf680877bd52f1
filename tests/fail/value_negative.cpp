// SPDX-License-Identifier: BSL-1.0
// expect: value_does_not_fit_in_the_field
// expect: (-1)
#include <ptspec/base/word.hpp>

struct whole : ptspec::bit_word<whole, uint64_t> {
    struct All : ptspec::field<63, 0> {};
    struct layout : ptspec::bit_layout<64, All> {};
};

#ifndef SHOULD_FAIL
static_assert(whole{}.with(whole::All{1}).raw != 0);
#else
static_assert(whole{}.with(whole::All{-1}).raw != 0);
#endif
