// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/bytes.hpp>

/// The interfaces through which the library accesses memory, MSRs, CPUID and interrupts, and a
/// constexpr model of each.
///
/// A port may fail. A failed access changes nothing and may be retried.
namespace ptspec {

/// The result of a read through a port.
struct [[nodiscard]] port_value {
    bool done = false;  ///< false: the access faulted and `value` is meaningless
    uint64_t value = 0;

    constexpr explicit operator bool() const noexcept { return done; }
    friend constexpr auto operator==(port_value const&, port_value const&) -> bool = default;
};

/// A fault of a port. The operation may be retried.
struct [[nodiscard]] port_fault {
    bool happened = false;
    uint64_t address = 0;  ///< the first byte that was not accessed

    constexpr explicit operator bool() const noexcept { return happened; }
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

// ------------------------------------------------------------------------------------ models

/// `Size` bytes of memory from `base` on. An access outside them faults.
template <size_t Size>
struct memory_model {
    uint64_t base = 0;
    byte_array<Size> bytes{};

    [[nodiscard]] constexpr auto load(uint64_t address) const noexcept -> port_value {
        uint64_t const at = address - base;
        if (at > Size || Size - at < 8) { return {}; }
        return {true, load_le64(bytes.data() + at)};
    }

    [[nodiscard]] constexpr auto store(uint64_t address, byte_view from) noexcept -> size_t {
        uint64_t const at = address - base;
        uint64_t const room = at < Size ? Size - at : 0;
        size_t const count = from.size() < room ? from.size() : static_cast<size_t>(room);
        for (size_t i = 0; i < count; ++i) { bytes.bytes[at + i] = from[i]; }
        return count;
    }
};

/// A set of `Count` registers, each with its index. Any other index raises #GP.
template <size_t Count>
struct msr_model {
    struct slot {
        uint32_t index = 0;
        uint64_t value = 0;
    };
    slot slots[Count] = {};

    [[nodiscard]] constexpr auto read(uint32_t index) const noexcept -> port_value {
        for (size_t i = 0; i < Count; ++i) {
            if (slots[i].index == index) { return {true, slots[i].value}; }
        }
        return {};
    }

    [[nodiscard]] constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        for (size_t i = 0; i < Count; ++i) {
            if (slots[i].index == index) {
                slots[i].value = value;
                return true;
            }
        }
        return false;
    }
};

/// `Count` leaves. Any other leaf returns all zeros, as a processor does for a leaf within its
/// range.
template <size_t Count>
struct cpuid_model {
    struct answer {
        uint32_t leaf = 0;
        uint32_t subleaf = 0;
        cpuid_registers registers{};
    };
    answer answers[Count] = {};

    [[nodiscard]] constexpr auto query(uint32_t leaf, uint32_t subleaf) const noexcept
        -> cpuid_registers {
        for (size_t i = 0; i < Count; ++i) {
            if (answers[i].leaf == leaf && answers[i].subleaf == subleaf) {
                return answers[i].registers;
            }
        }
        return {};
    }
};

/// Counts the interrupts that were raised.
struct pmi_model {
    uint64_t raised = 0;

    constexpr void raise() noexcept { ++raised; }
};

static_assert(memory_port<memory_model<8>> && msr_port<msr_model<1>>);
static_assert(cpuid_port<cpuid_model<1>> && pmi_port<pmi_model>);

}  // namespace ptspec
