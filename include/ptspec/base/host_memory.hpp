// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/ports.hpp>

/// The program's own memory, presented as physical memory.
namespace ptspec {

/// A region of the program's memory, and its physical address.
struct host_region {
    phys_addr base{};
    uint8_t* bytes = nullptr;
    uint64_t size = 0;
};

/// Maps regions of the program's memory to physical addresses, as a `mapped_memory_port`. An access
/// outside the regions faults; interrupts are ignored. The regions may be in any order, but must
/// not overlap and must not extend past the highest address. The list is borrowed and must outlive
/// this object.
///
/// The lookup is O(1) for the last used region and the one listed after it. Otherwise it is a
/// binary search if the list is sorted by address, and a linear search if it is not.
class host_memory {
public:
    using ignores_pmis = host_memory;

    constexpr host_memory(host_region const* regions, size_t count) noexcept
        : first_{count != 0 ? regions : &no_region},
          end_{count != 0 ? regions + count : &no_region + 1} {
        for (size_t i = 1; i < count; ++i) {
            auto const& before = regions[i - 1];
            is_sorted_ = is_sorted_ && regions[i].base >= before.base &&
                         regions[i].base - before.base >= before.size;
        }
    }
    template <size_t Count>
    constexpr host_memory(host_region const (&regions)[Count]) noexcept
        : host_memory{regions, Count} {}

    /// The bytes from an address to the end of its region.
    [[nodiscard]] constexpr auto window(uint64_t address) noexcept -> byte_window {
        return find(address, last_written_);
    }

    [[nodiscard]] constexpr auto load(uint64_t address) noexcept -> port_value {
        auto const mapped = find(address, last_read_);
        if (mapped.size >= 8) { return {true, load_le64(mapped.first)}; }
        return load_across_regions(address);
    }

    [[nodiscard]] constexpr auto store(uint64_t address, byte_view bytes) noexcept -> size_t {
        size_t stored = 0;
        while (stored < bytes.size()) {
            auto const mapped = window(address + stored);
            if (mapped.first == nullptr || address + stored < address) { break; }
            size_t const left = bytes.size() - stored;
            size_t const count = mapped.size < left ? static_cast<size_t>(mapped.size) : left;
            copy_bytes(mapped.first, bytes.data() + stored, count);
            stored += count;
        }
        return stored;
    }

private:
    /// Looks up an address. Reads and writes are sequential, and each has its own position, so the
    /// last used region and the next one are tried first.
    [[nodiscard]] constexpr auto find(uint64_t address, host_region const*& hint) const noexcept
        -> byte_window {
        host_region const* found = hint;
        uint64_t offset = address - found->base.value;
        if (offset >= found->size) {
            ++found;
            if (found == end_) { found = first_; }
            offset = address - found->base.value;
            if (offset >= found->size) {
                found = search(address);
                offset = address - found->base.value;
                if (offset >= found->size) { return {}; }
            }
            hint = found;
        }
        return {found->bytes + offset, found->size - offset};
    }
    /// Returns the only region that can contain an address.
    [[nodiscard]] constexpr auto search(uint64_t address) const noexcept -> host_region const* {
        if (!is_sorted_) {
            host_region const* one = first_;
            while (one + 1 != end_ && address - one->base.value >= one->size) { ++one; }
            return one;
        }
        host_region const* first = first_;
        for (size_t count = static_cast<size_t>(end_ - first_); count > 1;) {
            size_t const half = count / 2;
            first = first[half].base.value <= address ? first + half : first;
            count -= half;
        }
        return first;
    }
    /// Loads eight bytes that span regions.
    [[nodiscard]] constexpr auto load_across_regions(uint64_t address) noexcept -> port_value {
        uint64_t value = 0;
        for (unsigned i = 0; i < 8; ++i) {
            auto const mapped = find(address + i, last_read_);
            if (mapped.first == nullptr || address + i < address) { return {}; }
            value |= uint64_t{*mapped.first} << 8 * i;
        }
        return {true, value};
    }
    static constexpr host_region no_region{};  // means "no region", so find() needs no null check

    host_region const* first_;
    host_region const* end_;
    host_region const* last_read_ = first_;     ///< the region of the last read
    host_region const* last_written_ = first_;  ///< the region of the last write
    bool is_sorted_ = true;
};

}  // namespace ptspec
