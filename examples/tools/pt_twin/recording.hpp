// SPDX-License-Identifier: BSL-1.0
#pragma once

// The packets of a recorded trace, in parts without damage.

#include <ptspec/base/bytes.hpp>
#include <ptspec/trace/reader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace pt_twin {

using namespace ptspec;
using packet::kind;

/// A packet of the recorded trace that is not a PAD.
struct seen {
    packet::any_packet packet{};
    std::uint64_t offset = 0;
    std::uint64_t end = 0;
    std::uint64_t ip = 0;  // the last IP after it
    bool has_ip = false;   // it carries one

    [[nodiscard]] auto is(kind which) const -> bool { return packet.kind() == which; }
    template <class Packet>
    [[nodiscard]] auto as() const -> Packet {
        return packet.as<Packet>();
    }
};

/// Packets from a PSB on, up to damage or the end. Their offsets are those in the trace.
struct recording {
    std::shared_ptr<std::vector<seen>> stored = std::make_shared<std::vector<seen>>();
    std::span<seen const> all{};  // of `stored`
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool ends_in_pads = false;
    bool ends_in_damage = false;  // the last segment is not known completely
    unsigned alignment = 0;       // of `begin` in the output buffer, modulo 16
};

/// A longer run of zeros is memory that was not written.
constexpr std::uint64_t max_pads = 64;

/// Whether PacketEn is 1, as the packets of a part show it.
class packet_en {
public:
    /// False for a branch while tracing is off: it belongs to another time.
    auto accepts(seen const& one) -> bool {
        switch (one.packet.kind()) {
            case kind::tnt_short:
            case kind::tnt_long:
            case kind::tip: return is_ != answer::no;
            case kind::tip_pge: is_ = answer::yes; break;
            case kind::tip_pgd: is_ = answer::no; break;
            case kind::ovf: is_ = answer::unknown; break;
            case kind::psb:
                in_psb_ = true;
                has_fup_ = false;
                break;
            case kind::fup:
                has_fup_ = true;
                if (is_ == answer::unknown) { is_ = answer::yes; }
                break;
            case kind::psbend:
                if (in_psb_) { is_ = has_fup_ ? answer::yes : answer::no; }
                in_psb_ = false;
                break;
            default: break;
        }
        return true;
    }

private:
    enum class answer { unknown, no, yes };
    answer is_ = answer::unknown;
    bool in_psb_ = false;
    bool has_fup_ = false;
};

/// The parts of bytes that begin at `base` in the trace.
inline auto read(byte_view bytes, std::uint64_t base) -> std::vector<recording> {
    std::vector<recording> parts;
    bool is_open = false;
    std::uint64_t pads_from = 0;
    packet_en tracing;
    trace::reader reader{borrowed_bytes{bytes.data(), bytes.size()}};
    for (auto item = reader.next(); item; item = reader.next()) {
        using enum trace::item_type;
        if (item.what == damage && is_open) {
            parts.back().ends_in_damage = true;
            is_open = false;
        }
        if (item.what != packet) { continue; }
        kind const which = item.packet.kind();
        std::uint64_t const offset = base + item.offset;
        if (which == kind::psb && !is_open) {
            parts.push_back({.begin = offset, .end = offset});
            tracing = {};
            is_open = true;
        }
        if (!is_open) { continue; }
        recording& made = parts.back();
        if (which == kind::pad) {
            if (!made.ends_in_pads) { pads_from = offset; }
            made.ends_in_pads = true;
            made.end = offset + item.length;
            continue;
        }
        seen one{item.packet, offset, offset + item.length, item.ip, false};
        packet::visit(
            [&](auto const& it) {
                if constexpr (requires { it.has_ip(); }) { one.has_ip = it.has_ip(); }
            },
            item.packet);
        bool const is_after_hole = made.ends_in_pads && offset - pads_from > max_pads;
        if (is_after_hole || !tracing.accepts(one)) {
            made.ends_in_damage = true;
            is_open = false;
            if (which != kind::psb) { continue; }
            parts.push_back({.begin = offset, .end = offset});
            tracing = {};
            (void)tracing.accepts(one);
            is_open = true;
        }
        parts.back().ends_in_pads = false;
        parts.back().end = one.end;
        parts.back().stored->push_back(one);
    }
    for (auto& made : parts) {
        made.all = *made.stored;
        if (!made.all.empty() && made.end - made.all.back().end > 16) {
            made.end = made.all.back().end;
            made.ends_in_pads = false;
        }
    }
    std::erase_if(parts, [](recording const& one) { return one.all.empty(); });
    return parts;
}

/// The place of a part in its output buffer: PSBs are at multiples of 8, and after TraceEn fell
/// packets begin at multiples of 16.
inline void find_alignment(recording& part) {
    unsigned votes[2] = {};
    for (std::size_t i = 1; i < part.all.size(); ++i) {
        auto const& one = part.all[i];
        bool const is_tsc = one.is(kind::tsc);
        if (!one.is(kind::psb) && !is_tsc && !one.is(kind::cbr)) { continue; }
        // More PADs than these packets have elsewhere.
        if (one.offset - part.all[i - 1].end < (is_tsc ? 14 : 8)) { continue; }
        std::uint64_t const head = is_tsc ? 6 : 0;
        std::uint64_t const place = (one.offset - head - part.begin) % 16;
        if (place % 8 == 0) { ++votes[place / 8]; }
    }
    part.alignment = votes[1] > votes[0] ? 8 : 0;
}

/// The parts of a trace that consists of samples of `sample` bytes, each of another time.
inline auto read_samples(byte_view bytes, std::size_t sample) -> std::vector<recording> {
    std::vector<recording> parts;
    for (std::size_t at = 0; at < bytes.size(); at += sample) {
        byte_view const rest = bytes.from(at);
        auto more = read(rest.size() < sample ? rest : rest.first(sample), at);
        std::move(more.begin(), more.end(), std::back_inserter(parts));
    }
    for (auto& part : parts) {
        find_alignment(part);
        // PADs up to no multiple of 8 belong to a packet that is not there.
        if ((part.end - part.begin) % 8 == 0) { continue; }
        part.end = part.all.back().end;
        part.ends_in_pads = false;
    }
    return parts;
}

/// The size of the samples that a trace consists of: TSCs go back at multiples of it. Otherwise the
/// size of the trace.
inline auto sample_size_of(byte_view bytes) -> std::size_t {
    struct step_back {
        std::uint64_t after;
        std::uint64_t before;
    };
    std::vector<step_back> found;
    std::optional<std::uint64_t> last;
    std::uint64_t last_at = 0;
    trace::reader reader{borrowed_bytes{bytes.data(), bytes.size()}};
    for (auto item = reader.next(); item; item = reader.next()) {
        if (item.what != trace::item_type::packet || item.packet.kind() != kind::tsc) { continue; }
        std::uint64_t const now = item.packet.as<packet::tsc>().get<packet::tsc::TSC>();
        if (last && now < *last) { found.push_back({last_at, item.offset}); }
        last = now;
        last_at = item.offset;
    }
    constexpr std::size_t least = 3;
    if (found.size() < least) { return bytes.size(); }
    constexpr std::size_t page = 4096;
    for (std::size_t size = bytes.size() / least / page * page; size != 0; size -= page) {
        auto const fitting = static_cast<std::size_t>(std::count_if(
            found.begin(), found.end(),
            [&](step_back const& one) { return one.before / size != one.after / size; }));
        // Damage looks like another TSC; and a sample may be later than the one before.
        if (10 * fitting >= 9 * found.size() && 4 * fitting >= bytes.size() / size) { return size; }
    }
    return bytes.size();
}

}  // namespace pt_twin
