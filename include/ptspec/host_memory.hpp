// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports.hpp>

/// Memory of the program itself, presented as physical memory.
namespace ptspec {

/// Bytes of the program, and the physical address that the first of them has.
struct host_region {
    uint64_t base = 0;
    uint8_t* bytes = nullptr;
    uint64_t size = 0;
};

/// Regions of the program's memory as one `mapped_memory_port`. Everything outside them faults. The
/// regions may come in any order, but no two of them may hold the same address, and none may reach
/// beyond the highest there is. They are borrowed and have to outlive this.
///
/// A region is found at once when it was the last, or is listed behind the last; else in a number
/// of steps that is the logarithm of their number where they are listed by address, and their number
/// where they are not.
class host_memory {
public:
    constexpr host_memory(host_region const* regions, size_t count) noexcept
        : regions_{count != 0 ? regions : &none}, count_{count} {
        for (size_t i = 1; i < count; ++i) {
            auto const& before = regions[i - 1];
            by_address_ = by_address_ && regions[i].base >= before.base &&
                          regions[i].base - before.base >= before.size;
        }
    }
    template <size_t Count>
    constexpr host_memory(host_region const (&regions)[Count]) noexcept
        : host_memory{regions, Count} {}

    /// The bytes from an address to the end of its region.
    [[nodiscard]] constexpr auto window(uint64_t address) noexcept -> byte_window {
        return find(address, written_);
    }

    [[nodiscard]] constexpr auto load(uint64_t address) noexcept -> port_value {
        auto const at = find(address, read_);
        if (at.size >= 8) { return {true, load_le64(at.first)}; }
        return load_from_several(address);
    }

    [[nodiscard]] constexpr auto store(uint64_t address, byte_view from) noexcept -> size_t {
        size_t stored = 0;
        while (stored < from.size()) {
            auto const at = window(address + stored);
            if (at.first == nullptr || address + stored < address) { break; }
            size_t const left = from.size() - stored;
            size_t const count = at.size < left ? static_cast<size_t>(at.size) : left;
            copy_bytes(at.first, from.data() + stored, count);
            stored += count;
        }
        return stored;
    }

private:
    /// Looks an address up. Reading and writing go from region to region, each in its own places: the
    /// region of the last time and the one behind it are good guesses.
    [[gnu::always_inline]]  // so that a good guess costs no call
    [[nodiscard]] constexpr auto
    find(uint64_t address, size_t& guess) const noexcept -> byte_window {
        if (!holds(guess, address)) {
            size_t const next = guess + 1 < count_ ? guess + 1 : 0;
            size_t const found = holds(next, address) ? next : search(address);
            if (found == count_) { return {}; }
            guess = found;
        }
        auto const& one = regions_[guess];
        uint64_t const offset = address - one.base;
        return {one.bytes + offset, one.size - offset};
    }
    /// The region of an address, or `count_`.
    [[gnu::noinline]]  // so that it is not in the way of good guesses
    [[nodiscard]] constexpr auto
    search(uint64_t address) const noexcept -> size_t {
        if (!by_address_) {
            size_t i = 0;
            while (i < count_ && !holds(i, address)) { ++i; }
            return i;
        }
        size_t first = 0;
        for (size_t count = count_; count > 1;) {
            size_t const half = count / 2;
            first = regions_[first + half].base <= address ? first + half : first;
            count -= half;
        }
        return holds(first, address) ? first : count_;
    }
    /// Eight bytes that do not lie in one region.
    [[nodiscard]] constexpr auto load_from_several(uint64_t address) noexcept -> port_value {
        uint64_t value = 0;
        for (unsigned i = 0; i < 8; ++i) {
            auto const at = find(address + i, read_);
            if (at.first == nullptr || address + i < address) { return {}; }
            value |= uint64_t{*at.first} << 8 * i;
        }
        return {true, value};
    }
    [[nodiscard]] constexpr auto holds(size_t region, uint64_t address) const noexcept -> bool {
        return address - regions_[region].base < regions_[region].size;
    }

    static constexpr host_region none{};  // to be looked at where there is no region

    host_region const* regions_;
    size_t count_;
    bool by_address_ = true;
    size_t read_ = 0;     ///< the region that was read last
    size_t written_ = 0;  ///< the region that was written last
};

static_assert(mapped_memory_port<host_memory>);

}  // namespace ptspec
