// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/edit/detail/part/writer.hpp>
#include <ptspec/trace/psb_plus.hpp>

/// The PSB+ that is being read.
namespace ptspec::edit::detail {

/// Holds the packets of a PSB+ until it is known whose they are.
struct held_psb_plus {
    static constexpr unsigned max_count = 16;  ///< more than a PSB+ has before its PIP

    bool is_open = false;
    bool is_decided = false;  ///< it is known whose PSB+ it is
    trace::psb_plus reported{};
    unsigned count = 0;
    part_packet packets[max_count]{};

    constexpr void open() noexcept {
        close();
        is_open = true;
    }
    constexpr void close() noexcept {
        is_open = is_decided = false;
        reported = {};
        count = 0;
    }
    constexpr void report(part_packet const& one) noexcept {
        reported.add(one.packet, {one.offset, one.ip, one.packet.length()});
    }
    constexpr void hold(part_packet const& one) noexcept { packets[count++] = one; }
    /// The packets that show whose PSB+ it is were read, or no more can be held.
    [[nodiscard]] constexpr auto can_decide(bool needs_vmcs) const noexcept -> bool {
        using packet::kind;
        bool const has_all = reported.has(kind::pip) && (!needs_vmcs || reported.has(kind::vmcs));
        return has_all || count == max_count;
    }
};

}  // namespace ptspec::edit::detail
