// SPDX-License-Identifier: BSL-1.0
// expect: a sink is called with each piece: [](ptspec::text piece) {..}
// one error
// at most 20 lines
#include <ptspec/print/word.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

#include <string>

auto as_text(ptspec::reg::ia32_rtit_ctl word) {
    std::string all;
#ifndef SHOULD_FAIL
    ptspec::print::word(word, [&](ptspec::text piece) { all += piece; });
#else
    ptspec::print::word(word, all);
#endif
    return all;
}
