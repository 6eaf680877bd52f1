// SPDX-License-Identifier: BSL-1.0
#pragma once

// The rules of WRMSR as tables. No rule is written here: the rows are the answers of
// access::check_write about one bit or one encoding at a time, on a processor that lacks one
// capability at a time.

#include "../common/capability_words.hpp"

#include <ptspec/access/check.hpp>
#include <ptspec/print/rows.hpp>
#include <ptspec/reg/list.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace regmap {

using namespace ptspec;

// ------------------------------------------------------------------------------------ capabilities

/// A word of cpu::capabilities.
struct capability_word {
    print::row_list layout;
    std::uint64_t (*get)(cpu::capabilities const&);
    void (*set)(cpu::capabilities&, std::uint64_t);

    [[nodiscard]] auto name() const -> std::string {
        return {layout.name.data(), layout.name.size()};
    }
};

template <auto Member>
auto make_capability_word() -> capability_word {
    using word = bare_t<decltype(cpu::capabilities{}.*Member)>;
    return {print::row_list_of<word>(),
            [](cpu::capabilities const& from) -> std::uint64_t { return (from.*Member).raw; },
            [](cpu::capabilities& to, std::uint64_t value) {
                to.*Member = word{static_cast<typename word::raw_type>(value)};
            }};
}

template <auto... Members>
auto make_capability_words(::capability_words::member_list<Members...>)
    -> std::vector<capability_word> {
    return {make_capability_word<Members>()...};
}

/// All words of cpu::capabilities.
inline auto capability_words() -> std::vector<capability_word> const& {
    static auto const words = make_capability_words(::capability_words::members{});
    return words;
}

/// Bits of a capability word.
struct capability {
    std::size_t word = 0;  ///< in `capability_words`
    std::uint64_t mask = 0;

    [[nodiscard]] auto shift() const -> unsigned { return lowest_bit(mask); }
    [[nodiscard]] auto largest() const -> std::uint64_t { return mask >> shift(); }
    /// `from` with another number in these bits.
    [[nodiscard]] auto in(cpu::capabilities from, std::uint64_t number) const -> cpu::capabilities {
        auto const& in = capability_words()[word];
        in.set(from, (in.get(from) & ~mask) | number << shift());
        return from;
    }
    friend auto operator==(capability const&, capability const&) -> bool = default;
};

/// The fields of all capability words, without those for the widths of addresses.
inline auto capability_fields() -> std::vector<capability> const& {
    static auto const fields = [] {
        std::vector<capability> found;
        for (std::size_t i = 0; i < capability_words().size(); ++i) {
            auto const& layout = capability_words()[i].layout;
            if (layout.name == name_of<reg::cpuid_80000008h_eax>()) { continue; }
            for (auto const& one : layout) {
                if (one.row.kind != row_kind::field) { continue; }
                found.push_back({i, low_bits(one.row.msb - one.row.lsb + 1) << one.row.lsb});
            }
        }
        return found;
    }();
    return fields;
}

/// A processor with all capabilities, whose addresses have 64 bits.
inline auto every_capability() -> cpu::capabilities const& {
    static auto const all = [] {
        cpu::capabilities made;
        for (auto const& field : capability_fields()) { made = field.in(made, field.largest()); }
        made.leaf_80000008_eax = {64 | 64 << 8};
        return made;
    }();
    return all;
}

// ------------------------------------------------------------------------------------ rows

/// What something needs: a capability of at least `least`. Without it a write breaks a rule.
struct need {
    capability of{};          ///< the mask is 0 where no processor meets the need
    std::uint64_t least = 1;  ///< 1 where `of` has several flags: one of them
    rule broken = rule::none;

    [[nodiscard]] auto removed_from(cpu::capabilities const& from) const -> cpu::capabilities {
        return of.mask == 0 ? from : of.in(from, least - 1);
    }
    friend auto operator==(need const&, need const&) -> bool = default;
};

/// A write of any value into the MSRs from `first` to `last` has this need.
struct msr_row {
    std::uint32_t first;
    std::uint32_t last;
    bool in_vmx;  ///< only in VMX operation
    need needs;
};

/// A value with one of `bits` and none of `without` has this need.
struct bits_row {
    std::uint32_t msr;
    std::uint64_t bits;
    std::uint64_t without;
    bool late;  ///< less specific than the rule about a change while TraceEn stays 1
    need needs;
};

/// A field accepts the encodings of the bitmap `listed`, and those of a bitmap that the processor
/// enumerates.
struct encoding_row {
    std::uint32_t msr;
    std::uint64_t field;
    std::uint64_t listed;
    capability enumerated;  ///< the mask is 0 where there is no such bitmap
    rule broken;
};

/// The rules of WRMSR, the most specific first within each table and each MSR. The tables apply in
/// this order.
struct write_rules {
    std::vector<msr_row> msrs;
    std::vector<bits_row> bits;
    std::vector<encoding_row> encodings;
};

// ------------------------------------------------------------------------------------ questions

/// The rule that a WRMSR breaks.
inline auto broken_by(cpu::capabilities const& caps, std::uint32_t msr, std::uint64_t value,
                      access::msr_state const& now = {}) -> rule {
    return access::check_write(caps, now, msr, value).broken;
}

/// The numbers of a capability that are tried: few of a wide field.
inline auto samples_of(capability const& of) -> std::vector<std::uint64_t> {
    std::vector<std::uint64_t> numbers{0, 1};
    for (std::uint64_t bit = 2; bit != 0 && bit <= of.largest(); bit <<= 1) {
        for (auto const number : {bit - 1, bit, bit + 1, of.largest() & ~bit}) {
            if (number <= of.largest()) { numbers.push_back(number); }
        }
    }
    return numbers;
}

/// The needs of something that `asked(capabilities)` refuses with a rule, each found by removing
/// one capability. Calls `other(capability)` for a capability whose effect is no need.
template <class Asked, class Other>
auto needs_of(Asked const& asked, Other const& other) -> std::vector<need> {
    if (auto const always = asked(every_capability()); always != rule::none) {
        return {{{}, 1, always}};
    }
    std::vector<need> found;
    for (auto const& field : capability_fields()) {
        auto const with = [&](std::uint64_t number) {
            return asked(field.in(every_capability(), number));
        };
        need one{field, 1, with(0)};
        if (one.broken == rule::none) { continue; }
        while (one.least < std::min<std::uint64_t>(field.largest(), 64) &&
               with(one.least) != rule::none) {
            ++one.least;
        }
        auto const numbers = samples_of(field);
        bool const is_need = std::all_of(numbers.begin(), numbers.end(), [&](auto number) {
            return with(number) == (number < one.least ? one.broken : rule::none);
        });
        if (is_need) {
            found.push_back(one);
        } else {
            other(field);
        }
    }
    // One of several flags of a word.
    for (std::size_t i = 0; i < capability_words().size(); ++i) {
        capability const all_fields{i, ~std::uint64_t{0}};
        capability flags{i, 0};
        for (auto const& field : capability_fields()) {
            auto const only = all_fields.in(every_capability(), field.mask);
            if (field.word == i && field.largest() == 1 && asked(only) == rule::none) {
                flags.mask |= field.mask;
            }
        }
        if (flags.mask == 0 || (flags.mask & (flags.mask - 1)) == 0) { continue; }
        auto const broken = asked(flags.in(every_capability(), 0));
        if (broken != rule::none) { found.push_back({flags, 1, broken}); }
    }
    return found;
}

/// Orders rows of one MSR: those first whose rule a write reports that breaks all of them.
/// `value_of(row)` is a value that breaks a row where `removed(row, capabilities)`.
template <class Row, class ValueOf, class Removed, class RuleOf>
auto most_specific_first(std::vector<Row> rows, std::uint32_t msr, bool in_vmx,
                         ValueOf const& value_of, Removed const& removed, RuleOf const& rule_of)
    -> std::vector<Row> {
    std::vector<Row> ordered;
    while (!rows.empty()) {
        auto caps = every_capability();
        std::uint64_t value = 0;
        for (auto const& row : rows) {
            caps = removed(row, caps);
            value |= value_of(row);
        }
        access::msr_state now;
        now.in_vmx_operation = in_vmx;
        auto const first = broken_by(caps, msr, value, now);
        std::vector<Row> rest;
        for (auto const& row : rows) { (rule_of(row) == first ? ordered : rest).push_back(row); }
        if (rest.size() == rows.size()) {
            throw std::logic_error{"rules of WRMSR without an order"};
        }
        rows = std::move(rest);
    }
    return ordered;
}

// ------------------------------------------------------------------------------------ tables

/// The needs of an MSR, whatever is written.
inline auto msr_rows_of(std::uint32_t msr) -> std::vector<msr_row> {
    std::vector<msr_row> rows;
    auto const unknown = [](capability const&) {
        throw std::logic_error{"an MSR depends on a capability in an unknown way"};
    };
    for (bool const in_vmx : {false, true}) {
        access::msr_state now;
        now.in_vmx_operation = in_vmx;
        auto const asked = [&](auto const& caps) { return broken_by(caps, msr, 0, now); };
        for (auto const& one : needs_of(asked, unknown)) {
            bool const known = std::any_of(rows.begin(), rows.end(),
                                           [&](auto const& row) { return row.needs == one; });
            if (!known) { rows.push_back({msr, msr, in_vmx, one}); }
        }
    }
    return most_specific_first(
        rows, msr, true, [](auto const&) { return std::uint64_t{0}; },
        [](auto const& row, auto const& from) { return row.needs.removed_from(from); },
        [](auto const& row) { return row.needs.broken; });
}

/// The encodings of the fields of an MSR that are not illegal only because of one of their bits.
inline auto encoding_rows_of(std::uint32_t msr, print::row_list const& layout)
    -> std::vector<encoding_row> {
    std::vector<encoding_row> rows;
    for (auto const& one : layout) {
        unsigned const width = one.row.msb - one.row.lsb + 1;
        if (one.row.kind != row_kind::field || width < 2 || width > 5) { continue; }
        std::uint64_t const encodings = std::uint64_t{1} << width;
        auto const with = [&](std::uint64_t encoding, auto const& caps) {
            return broken_by(caps, msr, encoding << one.row.lsb);
        };
        encoding_row row{msr, low_bits(width) << one.row.lsb, 0, {}, rule::none};
        std::uint64_t legal_bits = 0;
        for (std::uint64_t e = 0; e < encodings; ++e) {
            auto const broken = with(e, every_capability());
            if (broken == rule::none) {
                row.listed |= std::uint64_t{1} << e;
                if ((e & (e - 1)) == 0) { legal_bits |= e; }
            }
        }
        for (std::uint64_t e = 0; e < encodings; ++e) {
            bool const legal = (row.listed >> e & 1) != 0;
            if (!legal && (e & ~legal_bits) == 0) { row.broken = with(e, every_capability()); }
        }
        for (auto const& field : capability_fields()) {
            bool is_bitmap = field.largest() >= encodings;
            for (std::uint64_t e = 1; is_bitmap && e < encodings; ++e) {
                std::uint64_t const bit = std::uint64_t{1} << e;
                is_bitmap = (row.listed & bit) != 0 && (field.largest() & bit) != 0 &&
                            with(e, field.in(every_capability(), bit)) == rule::none &&
                            with(e, field.in(every_capability(), field.largest() & ~bit)) !=
                                rule::none;
            }
            if (!is_bitmap) { continue; }
            row.enumerated = field;
            row.listed = 1;
            row.broken = with(1, field.in(every_capability(), 0));
        }
        if (row.broken != rule::none) { rows.push_back(row); }
    }
    // A value that breaks a row: the lowest encoding of legal bits that it does not list.
    auto const value_of = [](encoding_row const& row) {
        std::uint64_t encoding = 1;
        while ((row.listed >> encoding & 1) != 0) { ++encoding; }
        return encoding << lowest_bit(row.field);
    };
    auto const removed = [](encoding_row const& row, cpu::capabilities const& from) {
        return row.enumerated.mask == 0 ? from : row.enumerated.in(from, 0);
    };
    return most_specific_first(rows, msr, false, value_of, removed,
                               [](auto const& row) { return row.broken; });
}

/// The needs of each bit of an MSR. Those of `encodings` are known.
inline auto bits_rows_of(std::uint32_t msr, std::vector<encoding_row> const& encodings)
    -> std::vector<bits_row> {
    std::vector<bits_row> rows;
    for (unsigned position = 0; position < 64; ++position) {
        std::uint64_t const bit = std::uint64_t{1} << position;
        // A processor that refuses 0 too lacks the MSR.
        auto const asked = [&](auto const& caps) {
            bool const exists = broken_by(caps, msr, 0) == rule::none;
            return exists ? broken_by(caps, msr, bit) : rule::none;
        };
        auto const needs = needs_of(asked, [&](capability const& of) {
            bool const known = std::any_of(
                encodings.begin(), encodings.end(),
                [&](auto const& row) { return (row.field & bit) != 0 && row.enumerated == of; });
            if (!known) {
                throw std::logic_error{"a bit depends on a capability in an unknown way"};
            }
        });
        for (auto const& one : needs) {
            auto const caps = one.removed_from(every_capability());
            bits_row row{msr, bit, 0, false, one};
            for (unsigned i = 0; i < 64; ++i) {
                std::uint64_t const added = std::uint64_t{1} << i;
                if (broken_by(caps, msr, bit | added) == rule::none) { row.without |= added; }
            }
            using ctl = reg::ia32_rtit_ctl;
            auto const enabled = ctl{}.with(ctl::TraceEn{true});
            access::msr_state now;
            now.ctl = enabled.with(ctl::TSCEn{true}, ctl::OS{true});
            row.late = broken_by(caps, msr, bit | enabled.raw, now) == rule::REG_021;
            auto const same = std::find_if(rows.begin(), rows.end(), [&](auto const& other) {
                return other.without == row.without && other.late == row.late &&
                       other.needs == row.needs;
            });
            if (same == rows.end()) {
                rows.push_back(row);
            } else {
                same->bits |= bit;
            }
        }
    }
    std::vector<bits_row> ordered;
    for (bool const late : {false, true}) {
        std::vector<bits_row> part;
        std::copy_if(rows.begin(), rows.end(), std::back_inserter(part),
                     [=](auto const& row) { return row.late == late; });
        part = most_specific_first(
            part, msr, false, [](auto const& row) { return row.bits; },
            [](auto const& row, auto const& from) { return row.needs.removed_from(from); },
            [](auto const& row) { return row.needs.broken; });
        ordered.insert(ordered.end(), part.begin(), part.end());
    }
    return ordered;
}

/// The layout of the MSR with this number; empty for a number that is no MSR.
inline auto layout_of_msr(std::uint32_t msr) -> print::row_list {
    print::row_list found{};
    auto const look_at = [&]<class Word>(Word const*) {
        if constexpr (requires { std::uint32_t{Word::address}; }) {
            if (Word::address == msr) { found = print::row_list_of<Word>(); }
        }
    };
    [&]<class... Words>(type_list<Words...>) {
        (look_at(static_cast<Words const*>(nullptr)), ...);
    }(reg::all{});
    return found;
}

/// The rules of all MSRs that access::check_write covers.
inline auto find_write_rules() -> write_rules {
    write_rules all;
    std::vector<std::pair<std::size_t, msr_row>> msrs;  // with its place among those of its MSR
    constexpr std::uint32_t last_msr = 0x1FFF;
    for (std::uint32_t msr = 0; msr <= last_msr; ++msr) {
        if (!access::is_covered_msr(msr)) { continue; }
        auto const own = msr_rows_of(msr);
        for (std::size_t place = 0; place < own.size(); ++place) {
            auto const before = std::find_if(msrs.begin(), msrs.end(), [&](auto const& other) {
                return other.first == place && other.second.last + 1 == msr &&
                       other.second.in_vmx == own[place].in_vmx &&
                       other.second.needs == own[place].needs;
            });
            if (before == msrs.end()) {
                msrs.emplace_back(place, own[place]);
            } else {
                before->second.last = msr;
            }
        }
        if (broken_by(every_capability(), msr, 0) != rule::none) { continue; }
        auto const encodings = encoding_rows_of(msr, layout_of_msr(msr));
        auto const bits = bits_rows_of(msr, encodings);
        all.bits.insert(all.bits.end(), bits.begin(), bits.end());
        all.encodings.insert(all.encodings.end(), encodings.begin(), encodings.end());
    }
    for (std::size_t place = 0; all.msrs.size() < msrs.size(); ++place) {
        for (auto const& [its_place, row] : msrs) {
            if (its_place == place) { all.msrs.push_back(row); }
        }
    }
    return all;
}

}  // namespace regmap
