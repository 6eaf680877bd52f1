// SPDX-License-Identifier: BSL-1.0
// expect: these two rows overlap or leave a gap
// expect: neighbours<small::Two, small::Two>
#include <ptspec/base/word.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<7, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#else
struct small : bit_word<small, uint8_t> {
    struct One : field<3, 0> {};
    struct Two : field<7, 4> {};
    struct layout : bit_layout<8, One, Two, Two> {};
};
#endif
