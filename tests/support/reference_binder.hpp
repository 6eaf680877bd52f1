// SPDX-License-Identifier: BSL-1.0
#pragma once

// A reference for the rules of order: a walk over binding.csv (notation.md, section 7).

#include <support/csv.hpp>

#include <array>
#include <cstdint>

namespace reference {

using texts = std::vector<std::string>;

/// The pieces of a text, separated by `separator`. An empty text has none.
inline auto split(std::string const& text, std::string const& separator) -> texts {
    texts out;
    for (std::size_t at = 0, end = 0; end != std::string::npos && !text.empty();) {
        end = text.find(separator, at);
        out.push_back(text.substr(at, end - at));
        at = end + separator.size();
    }
    return out;
}

/// The index of a name, which is appended if it is new and may be.
inline auto index_in(texts& names, std::string const& name, bool may_be_new = true) -> std::size_t {
    auto const found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) { return static_cast<std::size_t>(found - names.begin()); }
    if (!may_be_new) { throw std::runtime_error{"there is no " + name}; }
    names.push_back(name);
    return names.size() - 1;
}

constexpr std::size_t max_slots = 16;
constexpr std::size_t of_packet = max_slots;             ///< as an origin: the offset of the packet
using slot_values = std::array<std::size_t, max_slots>;  ///< the index of each slot's value

struct binder_state {
    slot_values values{};
    std::array<std::uint64_t, max_slots> offsets{};
};

struct binding_row {
    std::string place, broken;
    bool is_for_others, is_last;
    std::vector<std::pair<std::size_t, unsigned>> tests{};  ///< a slot; the bits of its values
    std::size_t origin = of_packet;
    std::vector<std::array<std::size_t, 3>> assignments{};  ///< slot, value, origin
    mutable bool is_used = false;

    [[nodiscard]] auto holds(slot_values const& now) const -> bool {
        for (auto const& [slot, bits] : tests) {
            if ((bits >> now[slot] & 1) == 0) { return false; }
        }
        return true;
    }
};

struct violation {
    std::string_view broken{};  ///< empty if there is none
    std::uint64_t offset = 0;
};

/// The table. A cell that cannot be read is a std::runtime_error.
class binding_table {
public:
    texts slots{}, packets{};  ///< declared by the first row, and by the first two
    std::vector<texts> values = std::vector<texts>(max_slots);  ///< of each slot
    std::vector<binding_row> rows{};

    explicit binding_table(ptspec::test::csv_table const& csv) {
        texts part_names;
        for (auto const& cells : csv.rows) {
            rows.push_back(read(cells));
            auto const named = split(cells["packet"], ";");
            if (rows.size() <= 2) { packets.insert(packets.end(), named.begin(), named.end()); }
            auto const part = index_in(part_names, cells["part"]);
            parts_.resize(part_names.size());
            parts_[part].resize(packets.size());
            for (auto const& name : rows.back().is_for_others ? packets : named) {
                parts_[part][index_in(packets, name, false)].push_back(rows.size() - 1);
            }
        }
    }

    /// Binds a packet, by its index. A part without exactly one row for it is an error.
    auto bind(binder_state& state, std::size_t packet, std::uint64_t offset) const -> violation {
        violation found;
        for (auto const& part : parts_) {
            auto const& row = row_for(part.at(packet), state.values, packets[packet]);
            auto const offset_of = [&](std::size_t origin) {
                return origin == of_packet ? offset : state.offsets[origin];
            };
            if (found.broken.empty()) { found = {row.broken, offset_of(row.origin)}; }
            for (auto const& [slot, value, origin] : row.assignments) {
                state.offsets[slot] = offset_of(origin);
                state.values[slot] = value;
            }
            if (row.is_last) { break; }
        }
        return found;
    }

private:
    std::vector<std::vector<std::vector<std::size_t>>> parts_{};  ///< rows by part and packet

    [[nodiscard]] auto row_for(std::vector<std::size_t> const& candidates, slot_values const& now,
                               std::string const& packet) const -> binding_row const& {
        binding_row const* found = nullptr;
        for (auto const index : candidates) {
            auto const& row = rows[index];
            if (!row.holds(now)) { continue; }
            if (found != nullptr && (!row.is_for_others || found->is_for_others)) {
                throw std::runtime_error{row.place + " contradicts " + found->place};
            }
            if (found == nullptr) { found = &row; }
        }
        if (found == nullptr) { throw std::runtime_error{"a part has no row for " + packet}; }
        found->is_used = true;
        return *found;
    }

    auto read(ptspec::test::csv_row const& cells) -> binding_row {
        binding_row out{cells.place, cells["broken"], cells["packet"] == "other", false};
        auto const slot_of = [&](auto& name) { return index_in(slots, name, rows.empty()); };
        for (auto const& test : split(cells["when"], " ")) {
            auto const sides = split(test, "=");
            auto& [slot, bits] = out.tests.emplace_back(slot_of(sides[0]), 0);
            for (auto const& value : split(sides.at(1), "|")) {
                bits |= 1U << index_in(values.at(slot), value);
            }
        }
        auto const& where = cells["place"];
        if (!where.empty() && where != "packet") { out.origin = slot_of(where); }
        for (auto const& item : split(cells["then"], "; ")) {
            if ((out.is_last = item == "end")) { break; }
            auto const sides = split(item, "=");
            auto const value = split(sides.at(1), "@");
            auto const slot = slot_of(sides[0]);
            out.assignments.push_back({slot, index_in(values.at(slot), value[0]),
                                       value.size() == 1 ? of_packet : slot_of(value[1])});
        }
        return out;
    }
};

}  // namespace reference
