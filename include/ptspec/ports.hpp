// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/bytes.hpp>

/// How memory, MSRs, CPUID and interrupts reach the library, and a constexpr model of each.
///
/// A port may fail. A failed access changes nothing, and whoever made it can make it again.
namespace ptspec {

/// What an access through a port gave.
struct [[nodiscard]] port_value {
    bool done = false;  ///< false: the access faulted, `value` says nothing
    uint64_t value = 0;

    constexpr explicit operator bool() const noexcept { return done; }
    friend constexpr auto operator==(port_value const&, port_value const&) -> bool = default;
};

/// An access that a port did not make. What was asked for can be asked again.
struct [[nodiscard]] port_fault {
    bool happened = false;
    uint64_t address = 0;  ///< of the first byte that was not accessed

    constexpr explicit operator bool() const noexcept { return happened; }
    friend constexpr auto operator==(port_fault, port_fault) -> bool = default;
};

/// Physical memory, or a guest's.
///
/// `load` reads the 8 bytes at an address as a little-endian number. `store` writes bytes from an
/// address on and returns how many were stored: fewer than given when the next one faulted.
template <class Port>
concept memory_port = requires(Port& port, uint64_t address, byte_view bytes) {
    { port.load(address) } -> same_as<port_value>;
    { port.store(address, bytes) } -> same_as<size_t>;
};

/// Bytes of memory that can be written where they stand.
struct byte_window {
    uint8_t* first = nullptr;  ///< null: there are none
    uint64_t size = 0;
};

/// Memory that the program has in its own address space, at least in part. `window` gives the bytes
/// from an address on that stand in a row, or none, where `store` has to be asked. They stay there
/// as long as output goes on, which looks a table up once for all that is read in it.
template <class Port>
concept mapped_memory_port = memory_port<Port> && requires(Port& port, uint64_t address) {
    { port.window(address) } -> same_as<byte_window>;
};

/// Where trace goes that does not go to memory. `send` takes bytes and returns how many it took:
/// fewer than given when there is no room at present.
template <class Port>
concept fabric_port = requires(Port& port, byte_view bytes) {
    { port.send(bytes) } -> same_as<size_t>;
};

/// A logical processor's model-specific registers. A fault is a #GP.
template <class Port>
concept msr_port = requires(Port& port, uint32_t index, uint64_t value) {
    { port.read(index) } -> same_as<port_value>;
    { port.write(index, value) } -> same_as<bool>;
};

/// The four registers that CPUID fills.
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

/// Where a performance-monitoring interrupt goes.
template <class Port>
concept pmi_port = requires(Port& port) { port.raise(); };

// ------------------------------------------------------------------------------------ models

/// `Size` bytes of memory from `base` on. Everything outside faults.
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

/// A file of `Count` registers, each with its index. Every other index is #GP.
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

/// `Count` leaves. Every other leaf is all zero, as a processor answers within its range.
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
