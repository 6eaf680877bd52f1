// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/edit/part_options.hpp>
#include <ptspec/packet/pip.hpp>
#include <ptspec/packet/vmcs.hpp>

/// Whose code executes.
namespace ptspec::edit::detail {

enum class world : uint8_t {
    unknown,
    host,
    guest,
    other_guest,
};

/// Finds to which world the packets of a trace belong.
class attribution {
public:
    constexpr explicit attribution(part_options const& options) noexcept
        : keep_{options.keep},
          where_{options.where},
          wanted_vmcs_{options.vmcs},
          world_{needs_pip() ? world::unknown : world_of_enable()} {}

    [[nodiscard]] constexpr auto is_known() const noexcept -> bool {
        return world_ != world::unknown;
    }
    /// The side that is kept executes.
    [[nodiscard]] constexpr auto is_kept() const noexcept -> bool { return keeps(world_); }
    /// The side that is kept executes after this PIP.
    [[nodiscard]] constexpr auto is_kept_after(packet::pip pip) const noexcept -> bool {
        return keeps(world_of(pip));
    }
    /// VM transitions do not change TraceEn: PIPs show them.
    [[nodiscard]] constexpr auto needs_pip() const noexcept -> bool {
        return where_ == traced_in::both;
    }
    /// With several guests, VMCS packets show to which guest a packet belongs.
    [[nodiscard]] constexpr auto needs_vmcs() const noexcept -> bool {
        return wanted_vmcs_ != part_options::any_vmcs;
    }

    constexpr void take(packet::pip pip) noexcept { world_ = world_of(pip); }
    constexpr void take(packet::vmcs vmcs) noexcept {
        has_vmcs_ = true;
        vmcs_ = vmcs.get<packet::vmcs::base>();
    }
    /// TraceEn rose.
    constexpr void enable() noexcept { world_ = world_of_enable(); }
    /// A VM transition may have been missed.
    constexpr void lose() noexcept { world_ = world::unknown; }

private:
    [[nodiscard]] constexpr auto world_of_enable() const noexcept -> world {
        return where_ == traced_in::non_root ? world::guest : world::host;
    }
    [[nodiscard]] constexpr auto keeps(world executing) const noexcept -> bool {
        return executing == (keep_ == side::guest ? world::guest : world::host);
    }
    /// Source: PKT-081, PKT-163, PKT-274.
    [[nodiscard]] constexpr auto world_of(packet::pip pip) const noexcept -> world {
        if (!pip.get<packet::pip::NR>()) { return world::host; }
        if (!needs_vmcs()) { return world::guest; }
        return !has_vmcs_              ? world::unknown
               : vmcs_ == wanted_vmcs_ ? world::guest
                                       : world::other_guest;
    }

    side keep_;
    traced_in where_;
    uint64_t wanted_vmcs_;
    world world_;
    bool has_vmcs_ = false;
    uint64_t vmcs_ = 0;  ///< the current VMCS
};

}  // namespace ptspec::edit::detail
