// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/ports.hpp>

/// A constexpr model of each port.
namespace ptspec::simulate {

/// `Size` bytes of memory from `base` on. An access outside them faults.
template <size_t Size>
struct memory_model {
    using ignores_pmis = memory_model;

    phys_addr base{};
    byte_array<Size> bytes{};

    [[nodiscard]] constexpr auto load(uint64_t address) const noexcept -> port_value {
        uint64_t const at = address - base;
        if (at > Size || Size - at < 8) { return {}; }
        return {true, load_le64(bytes.data() + at)};
    }

    [[nodiscard]] constexpr auto store(uint64_t address, byte_view stored) noexcept -> size_t {
        uint64_t const at = address - base;
        uint64_t const room = at < Size ? Size - at : 0;
        size_t const count = stored.size() < room ? stored.size() : static_cast<size_t>(room);
        for (size_t i = 0; i < count; ++i) { bytes.bytes[at + i] = stored[i]; }
        return count;
    }
};

/// A set of `Count` registers, each with its index. Any other index raises #GP.
template <size_t Count>
struct msr_model {
    struct slot {
        msr_index index{};
        uint64_t value = 0;
    };
    slot words[Count] = {};

    [[nodiscard]] constexpr auto read(uint32_t index) const noexcept -> port_value {
        for (size_t i = 0; i < Count; ++i) {
            if (words[i].index == index) { return {true, words[i].value}; }
        }
        return {};
    }

    [[nodiscard]] constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        for (size_t i = 0; i < Count; ++i) {
            if (words[i].index == index) {
                words[i].value = value;
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

}  // namespace ptspec::simulate
