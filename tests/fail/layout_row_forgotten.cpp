// SPDX-License-Identifier: BSL-1.0
// expect: these two rows overlap or leave a gap
// expect: neighbours<small::One, small::Three>
#include <ptspec/base/word.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<5, 4> {};
    struct Three : field<7, 6> {};
    struct layout : bit_layout<8, One, Two, Three> {};
};
#else
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<5, 4> {};
    struct Three : field<7, 6> {};
    struct layout : bit_layout<8, One, Three> {};
};
#endif
