// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

namespace ptspec::test {

/// True when a field occupies bits `msb` to `lsb`, which are copied from the manual: ones written
/// to the field set exactly these bits, and the field reads back exactly these bits.
template <class Word, class Field>
constexpr auto has_field_at(auto value, unsigned msb, unsigned lsb) -> bool {
    uint64_t bits = 0;
    for (unsigned bit = lsb; bit <= msb; ++bit) { bits += uint64_t{1} << bit; }
    auto const here = static_cast<typename Word::raw_type>(value(bits));
    auto const elsewhere = static_cast<typename Word::raw_type>(~here);
    auto const read = [](Word word) {
        return Field{wrapped{static_cast<uint64_t>(word.template get<Field>())}}.number();
    };
    return Word{}.with(Field{wrapped{value(~uint64_t{0})}}).raw == here &&
           read(Word{here}) == bits >> lsb && read(Word{elsewhere}) == 0;
}

}  // namespace ptspec::test
