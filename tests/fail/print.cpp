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

namespace field_with_wrong_amount {
/// What an encoding means is computed from its number.
// expect: the amount of a field is `static constexpr auto amount(uint64_t) -> ptspec::quantity`
struct threshold : ptspec::bit_word<threshold, uint64_t> {
    struct Cycles : ptspec::field<3, 0> {
#ifndef SHOULD_FAIL
        static constexpr auto amount(uint64_t encoding) noexcept -> ptspec::quantity {
            return {uint64_t{1} << encoding, "cycles"};
        }
#else
        static constexpr auto amount(Cycles const& encoding) noexcept -> ptspec::quantity {
            return {uint64_t{1} << encoding.value, "cycles"};
        }
#endif
    };
    struct layout : ptspec::bit_layout<64, Cycles, ptspec::reserved<63, 4>> {};
};

void list(threshold word, void (&sink)(ptspec::text)) { ptspec::print::word(word, sink); }
}  // namespace field_with_wrong_amount
