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
        : first_{count != 0 ? regions : &none}, end_{count != 0 ? regions + count : &none + 1} {
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
    find(uint64_t address, host_region const*& guess) const noexcept -> byte_window {
        host_region const* found = guess;
        uint64_t offset = address - found->base;
        if (offset >= found->size) {
            ++found;
            if (found == end_) { found = first_; }
            offset = address - found->base;
            if (offset >= found->size) {
                found = search(address);
                offset = address - found->base;
                if (offset >= found->size) { return {}; }
            }
            guess = found;
        }
        return {found->bytes + offset, found->size - offset};
    }
    /// The only region that may hold an address.
    [[gnu::noinline]]  // so that it is not in the way of good guesses
    [[nodiscard]] constexpr auto
    search(uint64_t address) const noexcept -> host_region const* {
        if (!by_address_) {
            host_region const* one = first_;
            while (one + 1 != end_ && address - one->base >= one->size) { ++one; }
            return one;
        }
        host_region const* first = first_;
        for (size_t count = static_cast<size_t>(end_ - first_); count > 1;) {
            size_t const half = count / 2;
            first = first[half].base <= address ? first + half : first;
            count -= half;
        }
        return first;
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
    static constexpr host_region none{};  // to be looked at where there is no region

    host_region const* first_;
    host_region const* end_;
    host_region const* read_ = first_;     ///< the region that was read last
    host_region const* written_ = first_;  ///< the region that was written last
    bool by_address_ = true;
};

static_assert(mapped_memory_port<host_memory>);

}  // namespace ptspec
