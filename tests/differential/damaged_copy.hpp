// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/dice.hpp>

#include <ptspec/trace/reader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Damaged copies of a trace, without an OVF, and their undamaged segments.
namespace differential::damage {

using namespace std::string_view_literals;

/// The bytes from a PSB to the next one.
struct segment {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t psb_plus = 0;  ///< in bytes, with PSB and PSBEND
};

/// The segments of a trace. Bytes before the first PSB belong to no segment.
inline auto segments_of(ptspec::byte_view trace) -> std::vector<segment> {
    std::vector<segment> made;
    auto const add = [&](auto const& one, ptspec::trace::packet_place where) {
        using packet = std::remove_cvref_t<decltype(one)>;
        auto const at = static_cast<std::size_t>(where.offset);
        if constexpr (ptspec::same_as<packet, ptspec::packet::psb>) {
            if (!made.empty()) { made.back().end = at; }
            made.push_back({at, trace.size(), 0});
        } else if constexpr (ptspec::same_as<packet, ptspec::packet::psbend>) {
            if (made.empty() || made.back().psb_plus != 0) { return true; }
            made.back().psb_plus = at + where.length - made.back().begin;
        }
        return true;
    };
    ptspec::trace::reader from{ptspec::borrowed_bytes{trace.data(), trace.size()}, {.sync = true}};
    (void)from.for_each<ptspec::packet::all>(add);
    return made;
}

enum class kind : std::uint8_t { flip, overwrite, remove, clear, write, repeat, swap };
inline constexpr kind kinds[] = {kind::flip,  kind::overwrite, kind::remove, kind::clear,
                                 kind::write, kind::repeat,    kind::swap};
inline constexpr char const* names[] = {"bits flipped",  "bytes random",      "bytes removed",
                                        "bytes cleared", "packet before PSB", "chunk twice",
                                        "chunks swapped"};
/// The number of kinds without `--more`.
inline constexpr std::size_t usual_kinds = 3;
/// The number of kinds for which decoders are compared. The other kinds repeat or reorder code.
inline constexpr std::size_t comparable_kinds = 5;

/// Packets that change how later packets are read.
inline constexpr std::string_view packets[] = {"\x02\xF3"sv,                // OVF
                                               "\x02\x83"sv,                // TraceStop
                                               "\x99\x02"sv,                // MODE.Exec
                                               "\x99\x21"sv,                // MODE.TSX
                                               "\x99\x22"sv,                // the same, an abort
                                               "\x02\x43\0\x10\0\0\0\0"sv,  // PIP
                                               "\x01"sv,                    // TIP.PGD
                                               "\x21\0\x20"sv,              // the same, with an IP
                                               "\x31\0\x20"sv,              // TIP.PGE
                                               "\x3D\0\x20"sv,              // FUP
                                               "\x2D\0\x20"sv,              // TIP
                                               "\x02\x62"sv,                // EXSTOP
                                               "\x02\x92\0\0\0\0"sv,        // PTW with a FUP
                                               "\x02\x22\0\x10"sv,          // PWRE
                                               "\x02\x63\x01"sv,            // BBP
                                               "\x02\x53\0\0\0\0\0\0\0\0\0"sv,  // EVD
                                               "\xFE"sv};                       // TNT

template <class All>
auto place(All& in, std::size_t at) {
    return in.begin() + static_cast<std::ptrdiff_t>(at);
}
template <class All>
void repeat(All& in, std::size_t begin, std::size_t end) {
    All const chunk(place(in, begin), place(in, end));
    in.insert(place(in, end), chunk.begin(), chunk.end());
}
template <class All>
void rotate(All& in, std::size_t begin, std::size_t middle, std::size_t end) {
    std::rotate(place(in, begin), place(in, middle), place(in, end));
}

/// A damaged part of a trace: the bytes, and the original offset of each.
class copy {
public:
    static constexpr std::size_t changed = ~std::size_t{0};

    explicit copy(ptspec::byte_view from, std::size_t begin)
        : bytes_(from.data(), from.data() + from.size()), origin_(from.size()) {
        for (std::size_t i = 0; i < origin_.size(); ++i) { origin_[i] = begin + i; }
    }

    /// Damages the first `size` bytes.
    void damage(kind how, std::size_t size, ptspec::test::dice const& by) {
        auto const within = [&](std::size_t least, std::size_t most) {
            auto const length = std::min<std::size_t>(least + by.roll(most - least + 1), size / 2);
            auto const begin = static_cast<std::size_t>(by.roll(size - length + 1));
            return std::pair{begin, begin + length};
        };
        switch (how) {
            case kind::flip:
                for (auto count = 1 + by.roll(8); count != 0; --count) {
                    auto const at = static_cast<std::size_t>(by.roll(size));
                    put(at, static_cast<std::uint8_t>(bytes_[at] ^ 1U << by.roll(8)));
                }
                return;
            case kind::overwrite: {
                auto const [begin, end] = within(1, 64);
                for (auto i = begin; i < end; ++i) {
                    put(i, static_cast<std::uint8_t>(by.roll(256)));
                }
                return;
            }
            case kind::remove: {
                auto const [begin, end] = within(1, 4096);
                bytes_.erase(place(bytes_, begin), place(bytes_, end));
                origin_.erase(place(origin_, begin), place(origin_, end));
                return;
            }
            case kind::clear: {
                auto const [begin, end] = within(64, 4096);
                for (auto i = begin; i < end; ++i) { put(i, 0); }
                return;
            }
            case kind::write: {
                auto const from = static_cast<std::size_t>(by.roll(size));
                auto const found = ptspec::trace::find_psb({bytes_.data(), bytes_.size()}, from);
                auto const& packet = packets[by.roll(std::size(packets))];
                if (found == ptspec::trace::npos || found < packet.size()) { return; }
                for (std::size_t i = 0; i < packet.size(); ++i) {
                    put(found - packet.size() + i, static_cast<std::uint8_t>(packet[i]));
                }
                return;
            }
            case kind::repeat: {
                auto const [begin, end] = within(1, 4096);
                repeat(bytes_, begin, end);
                repeat(origin_, begin, end);
                return;
            }
            case kind::swap: {
                auto const [begin, end] = within(2, 8192);
                auto const middle = begin + static_cast<std::size_t>(by.roll(end - begin));
                rotate(bytes_, begin, middle, end);
                rotate(origin_, begin, middle, end);
                return;
            }
        }
    }

    [[nodiscard]] auto size() const -> std::size_t { return bytes_.size(); }
    [[nodiscard]] auto bytes() -> std::vector<std::uint8_t>& { return bytes_; }
    /// The original offset of a byte; `changed` for a new byte.
    [[nodiscard]] auto origin(std::size_t at) const -> std::size_t { return origin_[at]; }
    /// The bytes from `at` on equal those of the trace from `from` on.
    [[nodiscard]] auto is_whole(std::size_t at, std::size_t from, std::size_t size) const -> bool {
        if (size > origin_.size() || at > origin_.size() - size) { return false; }
        for (std::size_t i = 0; i < size; ++i) {
            if (origin_[at + i] != from + i) { return false; }
        }
        return true;
    }

private:
    std::vector<std::uint8_t> bytes_;
    std::vector<std::size_t> origin_;

    void put(std::size_t at, std::uint8_t value) {
        if (bytes_[at] != value) { origin_[at] = changed; }
        bytes_[at] = value;
    }
};

/// An undamaged segment of a copy.
struct whole_segment {
    std::size_t begin = 0;  ///< in the copy
    std::size_t end = 0;
    std::size_t number = 0;
    /// The undamaged PSB+ of the next segment follows: the straight code up to its IP is known.
    bool is_continued = false;
};

/// The undamaged segments of [first, last). The copy has only the PSB+ of segment `last`.
inline auto whole_segments(copy const& in, std::vector<segment> const& all, std::size_t first,
                           std::size_t last) -> std::vector<whole_segment> {
    std::vector<whole_segment> made;
    std::size_t at = 0;
    while (at < in.size()) {
        auto const from = in.origin(at);
        auto const found = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(first),
                                        all.begin() + static_cast<std::ptrdiff_t>(last),
                                        [&](segment const& one) { return one.begin == from; });
        auto const number = static_cast<std::size_t>(found - all.begin());
        auto const length = number == last ? 0 : found->end - found->begin;
        if (number == last || !in.is_whole(at, from, length)) {
            ++at;
            continue;
        }
        auto const& next = all[number + 1];
        bool const is_continued = in.is_whole(at + length, next.begin, next.psb_plus);
        made.push_back({at, at + length, number, is_continued});
        at += length;
    }
    return made;
}

}  // namespace differential::damage
