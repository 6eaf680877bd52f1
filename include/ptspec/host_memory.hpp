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

/// Regions of the program's memory as one `mapped_memory_port`. Everything outside them faults,
/// also what lies behind the highest address there is. The regions may come in any order, but no two
/// of them may hold the same address. They are borrowed and have to outlive this.
class host_memory {
public:
    constexpr host_memory(host_region const* regions, size_t count) noexcept
        : regions_{regions}, count_{count} {}
    template <size_t Count>
    constexpr host_memory(host_region const (&regions)[Count]) noexcept
        : regions_{regions}, count_{Count} {}

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
        if (auto const at = part_of(guess, address); at.first != nullptr) { return at; }
        size_t const next = guess + 1 < count_ ? guess + 1 : 0;
        if (auto const at = part_of(next, address); at.first != nullptr) {
            guess = next;
            return at;
        }
        return search(address, guess);
    }
    [[gnu::noinline]]  // so that it is not in the way of good guesses
    [[nodiscard]] constexpr auto
    search(uint64_t address, size_t& guess) const noexcept -> byte_window {
        for (size_t i = 0; i < count_; ++i) {
            if (auto const at = part_of(i, address); at.first != nullptr) {
                guess = i;
                return at;
            }
        }
        return {};
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
    [[nodiscard]] constexpr auto part_of(size_t region, uint64_t address) const noexcept
        -> byte_window {
        if (region >= count_) { return {}; }
        auto const& one = regions_[region];
        uint64_t const at = address - one.base;
        if (address < one.base || at >= one.size) { return {}; }
        uint64_t const left = one.size - at;
        uint64_t const above = ~address;  // how many addresses there are behind this one
        return {one.bytes + at, left - 1 < above ? left : above + 1};
    }

    host_region const* regions_;
    size_t count_;
    size_t read_ = 0;     ///< the region that was read last
    size_t written_ = 0;  ///< the region that was written last
};

static_assert(mapped_memory_port<host_memory>);

}  // namespace ptspec
