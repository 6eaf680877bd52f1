// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/any_packet.hpp>

namespace ptspec::trace {

/// The state of the processor that packets have reported since PacketEn became 1: the size of code,
/// InTX, CR3 and NR. A PSB+ reports the same values. Another mode shows that packets are missing;
/// another CR3 may have another cause.
///
/// Shape:  a plain value of fixed size.
/// Source: GEN-344.
class known_state {
public:
    /// Forgets all values. Call it when PacketEn becomes 0, and when packets are lost.
    constexpr void forget() noexcept { known_ = 0; }
    /// Forgets CR3: an SMI, RSM, VM exit or VM entry may change it without a PIP: GEN-242, GEN-278.
    constexpr void forget_cr3() noexcept { known_ &= static_cast<uint8_t>(~cr3); }
    /// PacketEn becomes 1. Keeps the values of a PSB+ directly before, and of a MODE.Exec that
    /// precedes the TIP.PGE.
    constexpr void enable(bool follows_psb, bool follows_mode) noexcept {
        if (!follows_psb) { known_ = 0; }
        if (follows_mode) { known_ |= mode; }
    }

    /// Takes the value of a packet; `is_on` is PacketEn. While it is 0, the value is kept but not
    /// known, until `enable` makes it so. Returns false if the value known before differs.
    constexpr auto take(packet::mode_exec packet, bool is_on) noexcept -> bool {
        auto const bits = static_cast<uint8_t>(packet.code_bits());
        bool const agrees = !has(mode) || code_bits_ == bits;
        code_bits_ = bits;
        learn(mode, is_on);
        return agrees;
    }
    constexpr auto take(packet::mode_tsx packet, bool is_on) noexcept -> bool {
        bool const in_tx = packet.get<packet::mode_tsx::InTX>();
        bool const agrees = !has(tsx) || in_tx_ == in_tx;
        in_tx_ = in_tx;
        learn(tsx, is_on);
        return agrees;
    }
    /// A value with another NR agrees: a VM exit or entry without a PIP came between.
    constexpr auto take(packet::pip packet, bool is_on) noexcept -> bool {
        uint64_t const value = packet.get<packet::pip::CR3>();
        bool const nr = packet.get<packet::pip::NR>();
        bool const agrees = !has(cr3) || nr_ != nr || cr3_ == value;
        cr3_ = value;
        nr_ = nr;
        learn(cr3, is_on);
        return agrees;
    }
    /// Takes a packet that reports an SMI, RSM, VM exit or VM entry.
    constexpr void take(packet::cfe packet) noexcept {
        using enum packet::cfe_type;
        switch (packet.get<packet::cfe::type>()) {
            case SMI:
            case RSM:
            case VMENTRY:
            case VMEXIT:
            case VMEXIT_INTR: return forget_cr3();
            default: return;
        }
    }

    /// True if the same values are known, and they are equal.
    friend constexpr auto operator==(known_state const& one, known_state const& two) noexcept
        -> bool {
        return one.known_ == two.known_ && (!one.has(mode) || one.code_bits_ == two.code_bits_) &&
               (!one.has(tsx) || one.in_tx_ == two.in_tx_) &&
               (!one.has(cr3) || (one.nr_ == two.nr_ && one.cr3_ == two.cr3_));
    }

private:
    static constexpr uint8_t mode = 1;
    static constexpr uint8_t tsx = 2;
    static constexpr uint8_t cr3 = 4;

    [[nodiscard]] constexpr auto has(uint8_t bit) const noexcept -> bool {
        return (known_ & bit) != 0;
    }
    constexpr void learn(uint8_t bit, bool is_on) noexcept {
        known_ = static_cast<uint8_t>(is_on ? known_ | bit : known_ & ~bit);
    }

    uint8_t known_ = 0;  ///< a bit for each value
    uint8_t code_bits_ = 0;
    bool in_tx_ = false;
    bool nr_ = false;
    uint64_t cr3_ = 0;
};

}  // namespace ptspec::trace
