// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/address.hpp>
#include <ptspec/base/bytes.hpp>
#include <ptspec/base/named_member.hpp>

/// The interfaces through which the library accesses memory, MSRs, CPUID and interrupts.
///
/// A port may fail. A failed access changes nothing and may be retried.
namespace ptspec {

/// The result of a read through a port.
struct [[nodiscard]] port_value {
    bool has_value = false;  ///< false: the access faulted and `value` is meaningless
    uint64_t value = 0;

    constexpr explicit operator bool() const noexcept { return has_value; }
    friend constexpr auto operator==(port_value const&, port_value const&) -> bool = default;
};

/// A fault of a port. The operation may be retried.
struct [[nodiscard]] port_fault {
    bool happened = false;
    phys_addr address{};  ///< the first byte that was not accessed

    friend constexpr auto operator==(port_fault, port_fault) -> bool = default;
};

/// Physical memory, or guest-physical memory.
///
/// `load` reads the 8 bytes at an address as a little-endian number. `store` writes bytes starting
/// at an address and returns the number of bytes stored: fewer than given if the next byte faulted.
template <class Port>
concept memory_port = requires(Port& port, uint64_t address, byte_view bytes) {
    { port.load(address) } -> same_as<port_value>;
    { port.store(address, bytes) } -> same_as<size_t>;
};

/// Directly writable bytes of memory.
struct byte_window {
    uint8_t* first = nullptr;  ///< null: no bytes
    uint64_t size = 0;
};

/// Memory that is at least partly mapped into the program's address space. `window` returns the
/// contiguous bytes from an address on, or none if the caller must use `store`. The bytes must stay
/// mapped while output runs, because the output code caches the address of the ToPA table.
template <class Port>
concept mapped_memory_port = memory_port<Port> && requires(Port& port, uint64_t address) {
    { port.window(address) } -> same_as<byte_window>;
};

/// The trace transport subsystem, an output other than memory. `send` takes bytes and returns how
/// many it accepted: fewer than given if it has no more room at present.
template <class Port>
concept fabric_port = requires(Port& port, byte_view bytes) {
    { port.send(bytes) } -> same_as<size_t>;
};

/// The MSRs of a logical processor. A fault is a #GP.
template <class Port>
concept msr_port = requires(Port& port, uint32_t index, uint64_t value) {
    { port.read(index) } -> same_as<port_value>;
    { port.write(index, value) } -> same_as<bool>;
};

/// The four registers that CPUID writes.
struct cpuid_registers {
    uint32_t eax = 0;
    uint32_t ebx = 0;
    uint32_t ecx = 0;
    uint32_t edx = 0;

    friend constexpr auto operator==(cpuid_registers const&, cpuid_registers const&)
        -> bool = default;
};

template <class Port>
concept cpuid_port = requires(Port& port, uint32_t leaf, uint32_t subleaf) {
    { port.query(leaf, subleaf) } -> same_as<cpuid_registers>;
};

/// The receiver of performance-monitoring interrupts.
template <class Port>
concept pmi_port = requires(Port& port) { port.raise(); };

namespace detail {

struct window_name {
    int window;
    template <class Type>
    static auto find() -> decltype(&Type::window);
};
struct send_name {
    int send;
    template <class Type>
    static auto find() -> decltype(&Type::send);
    template <class Type>
    using ignored = typename Type::ignores_fabric;
};
struct raise_name {
    template <class Type>
    using ignored = typename Type::ignores_pmis;
};

}  // namespace detail

/// What a memory port has besides `load` and `store`: `window` of a `mapped_memory_port`, `send` of
/// a `fabric_port`, `raise` of a `pmi_port`. A member with another signature stops the build.
///
/// A memory without `raise` says that it needs no PMIs: `using ignores_pmis = my_memory;` in
/// `my_memory`, and again in a derived class. Bytes to a fabric that it does not have are lost.
template <class Port>
struct memory_port_members {
    static constexpr bool has_window = mapped_memory_port<Port>;
    static constexpr bool has_send = fabric_port<Port> && !ignores<Port, detail::send_name>;
    static constexpr bool has_raise = pmi_port<Port> && !ignores<Port, detail::raise_name>;

    static_assert(has_window || !has_member<Port, detail::window_name>,
                  "the window of a memory port is `auto window(uint64_t) -> ptspec::byte_window`");
    static_assert(has_send || ignores<Port, detail::send_name> ||
                      !has_member<Port, detail::send_name>,
                  "the send of a memory port is `auto send(ptspec::byte_view) -> size_t`");
    static_assert(has_raise || ignores<Port, detail::raise_name>,
                  "a memory port has `void raise()`, which receives the ToPA PMIs; if it needs "
                  "none: `using ignores_pmis = MEMORY;`, where MEMORY is the class itself");
};

}  // namespace ptspec
