// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/decode_loop.hpp>

namespace ptspec::trace {

/// What follows branches that `read_branches` has read.
struct [[nodiscard]] branches_end {
    /// TIP, TIP.PGE or TIP.PGD, with an IP; TNT.short: a TNT that has no room; PAD: another packet,
    /// or the end of the bytes.
    packet::kind what = packet::kind::pad;
    uint64_t ip = 0;
    size_t length = 0;       ///< of the packet with the IP, in bytes
    bool has_times = false;  ///< there were CYC, MTC or TSC
};

/// Reads PAD, TNT, CYC and MTC, and while tracing is on TSC. Stops at any other packet. Reading is
/// at `at`, which is before `end`; 16 bytes are readable from each byte there. `begin` is where the
/// bytes begin, best at an offset of the trace that is a multiple of eight. `branches` is as in
/// `packet::marked_branches`. `first_tnt` becomes the place of the first TNT if there was none.
template <class Packets = packet::all>
[[nodiscard]] constexpr auto read_branches(uint8_t const* begin, uint8_t const*& at,
                                           uint8_t const* end, uint64_t& branches,
                                           uint8_t const*& first_tnt, uint64_t last_ip) noexcept
    -> branches_end {
    using packet::kind;
    using namespace detail;
    using marked = packet::marked_branches;
    constexpr auto const& opcodes = opcode_infos<Packets>;
    constexpr unsigned most_in_short = packet::tnt_short::max_branches;
    // While `branches` is below, a TNT.short has room.
    constexpr uint64_t is_full = uint64_t{1} << (marked::max_count - most_in_short + 1);
    bool has_times = false;
    while (at < end) {
        unsigned const first = *at;
        if (first == pad_opcode) {
            at += leading_pads(load_le64(at), static_cast<size_t>(at - begin));
            continue;
        }
        if (is_tnt(first) && branches < is_full) [[likely]] {
            first_tnt = branches == marked::none ? at : first_tnt;
            unsigned const count = highest_bit(uint64_t{first}) - 1;
            branches = ((branches - 1) << count) + (first >> 1);
            ++at;
            continue;
        }
        kind const what = opcodes.kind[first];
        size_t length = opcodes.length[first];
        bool const is_off = branches == marked::off;
        if (what == kind::tip || what == kind::tip_pgd || what == kind::tip_pge) {
            if (length <= 1 || (what == kind::tip_pge) != is_off) { break; }
            auto const update = ip_update_of(opcodes.form[first]);
            return {what, updated_ip(update, load_le64(at + 1), last_ip), length, has_times};
        }
        if (is_cyc(first) || what == kind::mtc || (what == kind::tsc && !is_off)) {
            if (is_cyc(first)) { length = length_of_cyc(load_le64(at)); }
            if (length == 0) { break; }
            at += length;
            has_times = true;
            continue;
        }
        using packet::tnt_long;
        uint64_t const image = load_le64(at);
        bool const is_long = (image & low_bits(8)) == tnt_long::Escape::fixed_value &&
                             (image >> 8 & low_bits(8)) == tnt_long::Opcode::fixed_value &&
                             image >= tnt_long::min_raw;
        if (is_off || !(is_tnt(first) || is_long)) { break; }
        auto const more = is_long ? tnt_long{image}.taken() : packet::tnt_short{first}.taken();
        if (highest_bit(branches) + more.count > marked::max_count) {
            return {.what = kind::tnt_short, .has_times = has_times};
        }
        first_tnt = branches == marked::none ? at : first_tnt;
        branches = branches << more.count | more.bits;
        at += is_long ? 8 : 1;
    }
    return {};
}

}  // namespace ptspec::trace
