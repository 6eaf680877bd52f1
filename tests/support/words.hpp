// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/reg/rtit_status.hpp>
#include <ptspec/topa/entry.hpp>

#include <boost/hana.hpp>

namespace ptspec::test {

/// Every word of registers and tables. What holds for all words, tests/laws_words.cpp says once.
inline constexpr auto all_words = boost::hana::tuple_t<  //
    reg::ia32_rtit_ctl,                                  //
    reg::ia32_rtit_status,                               //
    reg::ia32_rtit_output_base,                          //
    reg::ia32_rtit_output_mask_ptrs,                     //
    topa::entry,                                         //
    topa::end_entry>;

}  // namespace ptspec::test
