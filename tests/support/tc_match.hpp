// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string_view>

// Compares the packets of a catalogue case with packets as text.

namespace ptspec::test {

/// The name of a packet, without its parentheses.
constexpr auto name_of_packet(std::string_view packet) -> std::string_view {
    return packet.substr(0, packet.find('('));
}

/// True when a packet matches a wanted one. Without parentheses, or with `?` in them, any payload
/// matches.
constexpr auto is_wanted(std::string_view wanted, std::string_view packet) -> bool {
    if (wanted.find('(') == std::string_view::npos || wanted.find('?') != std::string_view::npos) {
        return name_of_packet(wanted) == name_of_packet(packet);
    }
    return wanted == packet;
}

/// Splits packets that are joined by `, `. `none` is an empty list.
class packet_list {
public:
    constexpr explicit packet_list(std::string_view all) : rest_{all == "none" ? "" : all} {}

    [[nodiscard]] constexpr auto at_end() const -> bool { return rest_.empty(); }
    constexpr auto next() -> std::string_view {
        int depth = 0;
        std::size_t end = 0;
        for (; end < rest_.size() && (depth != 0 || rest_[end] != ','); ++end) {
            depth += rest_[end] == '(' ? 1 : rest_[end] == ')' ? -1 : 0;
        }
        auto const one = rest_.substr(0, end);
        rest_.remove_prefix(end + 2 < rest_.size() ? end + 2 : rest_.size());
        return one;
    }

private:
    std::string_view rest_;
};

/// True when a list of packets matches a case. Inside a PSB+ any order matches, except that TMA
/// directly follows TSC.
template <class Wanted>
constexpr auto are_wanted(Wanted const* wanted, std::size_t count, std::string_view packets)
    -> bool {
    auto const text = [&](std::size_t i) {
        return std::string_view{wanted[i].data(), wanted[i].size()};
    };
    packet_list rest{packets};
    for (std::size_t i = 0; i < count;) {
        if (text(i) != "PSB") {
            if (rest.at_end() || !is_wanted(text(i), rest.next())) { return false; }
            ++i;
            continue;
        }
        std::size_t end = i;
        while (end < count && text(end) != "PSBEND") { ++end; }
        if (end == count) { return false; }
        auto const group = rest;
        std::string_view before;
        for (std::size_t n = i; n <= end; ++n) {
            if (rest.at_end()) { return false; }
            auto const one = rest.next();
            // Both lists have the same number of packets of this kind, and one wanted packet
            // matches.
            bool found = false;
            int balance = 0;
            auto again = group;
            for (std::size_t k = i; k <= end; ++k) {
                found = found || is_wanted(text(k), one);
                balance += name_of_packet(text(k)) == name_of_packet(one) ? 1 : 0;
                balance -= name_of_packet(again.next()) == name_of_packet(one) ? 1 : 0;
            }
            bool const in_place = (n == i) == (one == "PSB") && (n == end) == (one == "PSBEND") &&
                                  (one != "TMA" || before == "TSC");
            if (!found || balance != 0 || !in_place) { return false; }
            before = one;
        }
        i = end + 1;
    }
    return rest.at_end();
}

}  // namespace ptspec::test
