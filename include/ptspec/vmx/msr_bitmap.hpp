// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/vmx/guest_pt.hpp>

/// The MSR bitmap of a guest: which accesses exit.
///
/// This may change with each function that handles an exit or an event of the guest, and with each
/// `enter`: call `update_msr_bitmap` after `enter`, before VM entry, each time.
namespace ptspec::vmx {

/// The MSR bitmap of a VMCS: which accesses exit.
///
/// Shape:  for MSR n, below 2000H: bit n % 8 of byte n / 8 for RDMSR, 2048 bytes later for WRMSR.
/// Source: SDM vol. 3, "MSR-Bitmap Address".
struct msr_bitmap {
    static constexpr size_t writes = 2048;

    uint8_t bytes[4096]{};
};

namespace detail {

/// Calls `each(byte, bit, exits)` for the bits of the MSRs of Intel PT in a bitmap.
constexpr void for_each_pt_bit(guest_pt const& guest, auto&& each) noexcept {
    for (uint32_t index = access::first_pt_msr; index <= access::last_pt_msr; ++index) {
        bool const exits = access_of_guest(guest, index) != guest_access::pass_through;
        for (size_t at = index / 8; at < sizeof msr_bitmap::bytes; at += msr_bitmap::writes) {
            each(at, 1U << index % 8, exits);
        }
    }
}

}  // namespace detail

/// Sets the bits of the MSRs of Intel PT, and no others. Call it after `enter`, before VM entry. If
/// an MSR that holds the host's value were passed through, the guest could read it, and let the
/// host trace to any address. While L2 runs, bits are only set, because `bitmap` may have those of
/// L1: see the function below.
///
/// Source: PRG-172, PRG-184.
constexpr void update_msr_bitmap(guest_pt const& guest, msr_bitmap& bitmap) noexcept {
    detail::for_each_pt_bit(guest, [&](size_t at, unsigned bit, bool exits) {
        bool const clears = !exits && guest.level != guest_level::l2;
        unsigned const others = bitmap.bytes[at] & ~(clears ? bit : 0);
        bitmap.bytes[at] = static_cast<uint8_t>(others | (exits ? bit : 0));
    });
}

/// The same for the bitmap with which L2 runs: an access exits if it is intercepted here or in
/// `of_l1`, the bitmap that L1 has for L2, whose exits L1 handles. If L1 uses no bitmap, every
/// access exits: all bits of `of_l1` are 1.
///
/// Source: SDM vol. 3, "MSR-Bitmap Address"; PRG-172.
constexpr void update_msr_bitmap(guest_pt const& guest, msr_bitmap const& of_l1,
                                 msr_bitmap& merged) noexcept {
    detail::for_each_pt_bit(guest, [&](size_t at, unsigned bit, bool exits) {
        unsigned const others = merged.bytes[at] & ~bit;
        unsigned const wanted = exits ? bit : of_l1.bytes[at] & bit;
        merged.bytes[at] = static_cast<uint8_t>(others | wanted);
    });
}

}  // namespace ptspec::vmx
