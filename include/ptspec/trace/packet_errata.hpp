// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirk_set.hpp>
#include <ptspec/trace/reader.hpp>

namespace ptspec::trace {

/// Corrects packets that errata of a processor change.
///
/// SKD007: an OVF after the first byte of a CYC is read as the second byte of the CYC and a CYC.
/// The OVF is the item; the first byte of the CYC belongs to no item. SKZ84: after a TMA with set
/// reserved bits comes a byte that is no packet; it belongs to no item.
///
/// Shape:  a plain value of fixed size, for one reader.
/// Source: the errata of the processors in `cpu::quirks_of`.
class packet_errata {
public:
    constexpr packet_errata() noexcept = default;
    constexpr explicit packet_errata(cpu::quirk_set quirks) noexcept : quirks_{quirks} {}

    /// The next item, corrected.
    template <class Reader>
    [[nodiscard]] constexpr auto next(Reader& from) noexcept -> item {
        item got = waiting_;
        if (!is_waiting_) {
            (void)skip(from);
            got = from.next();
        }
        auto const more = correct(got, from);
        is_waiting_ = more.what == item_type::need_input;
        if (!is_waiting_) { return got; }
        waiting_ = got;
        return more;
    }

    /// Corrects the last item of `from`. If that depends on bytes of the next chunk, the
    /// result is `item_type::need_input`: call again, with the same item, after `from` has them.
    template <class Reader>
    [[nodiscard]] constexpr auto correct(item& got, Reader& from) noexcept -> item {
        if (!is_needed() || got.what != item_type::packet) { return {}; }
        if (got.packet.is<packet::tma>()) {
            skips_byte_ = quirks_.has(cpu::quirk::skz84) &&
                          got.packet.as<packet::tma>().reserved_bits_set() != 0;
        }
        bool const may_be_ovf = quirks_.has(cpu::quirk::skd007) && got.packet.is<packet::cyc>() &&
                                got.length == 2 && got.packet.raw().low >> 8 == 0x02;
        if (!may_be_ovf) { return {}; }
        auto ahead = from;
        auto const after = ahead.next();
        if (after.what == item_type::need_input) { from = ahead; }
        if (after.what == item_type::packet && after.length == 1 &&
            after.packet.raw().low == 0xF3) {
            from = ahead;
            got.offset += 1;
            got.packet = packet::ovf{};
        }
        return after;
    }
    /// Skips the byte after a TMA, if there is one. Returns whether it did.
    template <class Reader>
    constexpr auto skip(Reader& from) noexcept -> bool {
        if (!skips_byte_ || !from.skip_byte()) { return false; }
        skips_byte_ = false;
        return true;
    }
    /// True if the processor has such errata.
    [[nodiscard]] constexpr auto is_needed() const noexcept -> bool {
        return quirks_.has(cpu::quirk::skd007) || quirks_.has(cpu::quirk::skz84);
    }
    /// True if a byte must be skipped before the next packet, or if any packet may need a
    /// correction.
    [[nodiscard]] constexpr auto needs_next() const noexcept -> bool {
        return skips_byte_ || quirks_.has(cpu::quirk::skd007);
    }

private:
    cpu::quirk_set quirks_{};
    bool skips_byte_ = false;  ///< SKZ84: the next byte is no packet
    bool is_waiting_ = false;  ///< for the bytes after `waiting_`
    item waiting_{};
};

}  // namespace ptspec::trace
