// SPDX-License-Identifier: BSL-1.0
#pragma once

// Compares the definitions of other code, such as the macros of a driver, with those of ptspec:
//
//     static_assert(conforms<ctl::CYCEn>(RTIT_CTL_CYCEN));
//
// In a constant expression a difference stops the build; the message names the field, the bit and
// the difference. At run time the functions return false.
//
// A number is an integer or an enumerator. A negative one is sign-extended, as `1 << 31` is when
// it is combined with a 64-bit word.

#include <ptspec/conformance/fields.hpp>
#include <ptspec/conformance/bit_fields.hpp>
#include <ptspec/conformance/words.hpp>
#include <ptspec/conformance/numbers.hpp>
#include <ptspec/conformance/packets.hpp>
