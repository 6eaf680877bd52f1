// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/topa/position.hpp>

/// Guest memory, the pages of a shadow table, and the results of building it.
namespace ptspec::vmx {

// ------------------------------------------------------------------------------------ memory

using access::output_registers;

/// What the VMM knows about a guest-physical address.
enum class backing : uint8_t {
    mapped,   ///< in host memory, where it stays until the shadow is no longer used
    missing,  ///< in guest memory, but not in host memory now
    none,     ///< there is no memory
};

/// Where guest memory is in host memory.
struct [[nodiscard]] translation {
    backing kind = backing::none;
    phys_addr host{};       ///< for `mapped`: the host-physical address, a multiple of 4096
    uint64_t bytes = 4096;  ///< for `mapped`: contiguous from there on; a multiple of 4096
};

/// The physical memory of a guest.
///
/// `load` reads the 8 bytes at a guest-physical address.
///
/// `translate` translates the page at a guest-physical address and as many of the pages after it as
/// are contiguous in the host, up to `bytes` bytes, a multiple of 4096. The processor may write
/// trace to what it returns as mapped: the VMM must pin these pages, and treat them as modified,
/// until the shadow is no longer used. It is also called for a page from which `load` failed, and
/// the result is then not used.
template <class Port>
concept guest_memory_port = requires(Port& port, uint64_t address, uint64_t bytes) {
    { port.load(address) } -> same_as<port_value>;
    { port.translate(address, bytes) } -> same_as<translation>;
};

/// A page of host memory for a shadow table, and where its entries come from. Borrowed.
struct shadow_page {
    static constexpr uint32_t entry_count = 4096 / sizeof(topa::entry);

    phys_addr address{};                ///< host-physical, a multiple of 4096
    topa::entry* entries = nullptr;     ///< the page itself: `entry_count` entries
    topa::position* origins = nullptr;  ///< `entry_count` positions of the guest, not in the page
};

// ------------------------------------------------------------------------------------ results

/// How far `shadow::build` came.
enum class shadow_progress : uint8_t {
    complete,      ///< the processor can use the tables
    paused,        ///< the limit of this call was reached: call `build` again
    missing_page,  ///< make the guest page present, then call `build` again
    no_room,       ///< all pages are used: `add_pages`, then `build` again; or `end_with_error`
    bad_page,      ///< the VMM gave a host page that breaks a rule; the next `build` tries again
    not_begun,     ///< call `begin` first
};

/// The result of `shadow::build`.
struct [[nodiscard]] shadow_result {
    shadow_progress what = shadow_progress::not_begun;
    phys_addr address{};  ///< `missing_page`: the guest page; `bad_page`: the host page
    rule broken = rule::none;

    constexpr explicit operator bool() const noexcept { return what == shadow_progress::complete; }
    friend constexpr auto operator==(shadow_result const&, shadow_result const&) -> bool = default;
};

/// What the processor must hold while the guest traces.
struct host_output {
    output_registers at{};
    bool topa = false;  ///< CTL.ToPA, independently of the guest's
};

/// A translated position. False: the position does not belong to the shadow.
struct [[nodiscard]] translated_position {
    bool found = false;
    output_registers at{};

    constexpr explicit operator bool() const noexcept { return found; }
};

}  // namespace ptspec::vmx
