// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <ptspec/base/bytes.hpp>

/// The entry point of a fuzz target.
extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int;

namespace fuzz {

/// Aborts with a message when the condition is false.
inline void require(bool condition, char const* what) {
    if (!condition) {
        std::fprintf(stderr, "requirement failed: %s\n", what);
        std::abort();
    }
}

/// Reads the bytes of a fuzzer in order. After their end it returns zeros.
class input {
public:
    input(uint8_t const* data, size_t size) : rest_{data, size} {}

    auto byte() -> uint8_t {
        uint8_t const first = rest_.empty() ? uint8_t{0} : rest_[0];
        rest_ = rest_.from(1);
        return first;
    }
    /// The next eight bytes as a little-endian number.
    auto number() -> uint64_t {
        uint64_t const value = ptspec::load_le(rest_.first(8));
        rest_ = rest_.from(8);
        return value;
    }
    /// A number below `sides`, of as few bytes as have that many values.
    auto below(uint64_t sides) -> uint64_t {
        uint64_t value = byte();
        if (sides > 0x100) { value |= uint64_t{byte()} << 8; }
        if (sides > 0x1'0000) { value |= (number() & ptspec::low_bits(48)) << 16; }
        return value % sides;
    }
    [[nodiscard]] auto is_empty() const -> bool { return rest_.empty(); }
    [[nodiscard]] auto rest() const -> ptspec::byte_view { return rest_; }

private:
    ptspec::byte_view rest_;
};

/// A copy of bytes in an allocation of exactly their size, so that a sanitizer detects any access
/// out of bounds.
class copy {
public:
    explicit copy(ptspec::byte_view from)
        : bytes_{std::make_unique<uint8_t[]>(from.size())}, size_{from.size()} {
        for (size_t i = 0; i < size_; ++i) { bytes_[i] = from[i]; }
    }
    [[nodiscard]] auto data() const -> uint8_t const* { return bytes_.get(); }
    [[nodiscard]] auto size() const -> size_t { return size_; }

private:
    std::unique_ptr<uint8_t[]> bytes_;
    size_t size_;
};

}  // namespace fuzz
