// SPDX-License-Identifier: BSL-1.0
/// Printing

#include <ptspec/print/word.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

#include <string>

namespace print_into_no_sink {
/// A string is no sink: a sink is called with each piece.
// expect: a sink is called with each piece: [](ptspec::text piece) {..}
// one error
// at most 20 lines
auto as_text(ptspec::reg::ia32_rtit_ctl word) {
    std::string all;
#ifndef SHOULD_FAIL
    ptspec::print::word(word, [&](ptspec::text piece) { all += piece; });
#else
    ptspec::print::word(word, all);
#endif
    return all;
}
}  // namespace print_into_no_sink
