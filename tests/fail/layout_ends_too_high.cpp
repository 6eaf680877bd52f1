// SPDX-License-Identifier: BSL-1.0
// expect: the last row has to end at the top of the word
// expect: small::Two
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
    struct Two : field<8, 4> {};
    struct layout : bit_layout<8, One, Two> {};
};
#endif
