// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/byte_layout.hpp>
#include <ptspec/print/rows.hpp>

#include <cstddef>

// Compares structures and words with those of a header in C.
namespace ptspec::test {

/// A field of a word: its name in perf_event.h, and its bits there.
struct bits_in_c {
    text name;
    unsigned lsb;
    unsigned width = 1;
};

/// True if these are all fields of the word, in this order.
template <class Word, std::size_t Count>
constexpr auto has_fields(bits_in_c const (&wanted)[Count]) -> bool {
    std::size_t fields = 0;
    for (auto const& facts : print::row_list_of<Word>()) {
        auto const& row = facts.row;
        if (row.kind != row_kind::field) { continue; }
        if (fields == Count) { return false; }
        auto const& one = wanted[fields++];
        bool const same = row.name == one.name && row.lsb == one.lsb &&
                          row.msb == one.lsb + one.width - 1;
        if (!same) { return false; }
    }
    return fields == Count;
}

/// Copies a member, of which all elements if it is an array.
template <class Member>
constexpr void copy_member(Member const& from, Member& to) {
    to = from;
}
template <class Element, std::size_t Count>
constexpr void copy_member(Element const (&from)[Count], Element (&to)[Count]) {
    for (std::size_t i = 0; i < Count; ++i) { to[i] = from[i]; }
}

/// True if a member is these bytes of its structure, and no others.
template <class Structure, class Member>
constexpr auto is_at(Member Structure::* member, std::size_t offset, std::size_t size) -> bool {
    byte_array<sizeof(Structure)> bytes;
    auto changed = file::load<Structure>(bytes);
    for (auto& byte : bytes.bytes) { byte = 0xFF; }
    auto const ones = file::load<Structure>(bytes);
    copy_member(ones.*member, changed.*member);
    auto const got = file::to_bytes(changed);
    for (std::size_t i = 0; i < got.size(); ++i) {
        bool const is_inside = i >= offset && i < offset + size;
        if (got[i] != (is_inside ? 0xFF : 0)) { return false; }
    }
    return true;
}

}  // namespace ptspec::test
