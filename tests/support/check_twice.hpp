// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>

namespace ptspec::test {

/// The values of a body in a constant expression, unchanged.
struct known {
    template <class Type>
    constexpr auto operator()(Type value) const noexcept -> Type {
        return value;
    }
};

/// The values of a body at run time. The compiler cannot see them.
struct unknown {
    template <class Type>
    auto operator()(Type value) const noexcept -> Type {
        unsigned char bytes[sizeof(Type)];
        std::memcpy(bytes, &value, sizeof(Type));
        for (std::size_t i = 0; i < sizeof(Type); ++i) {
            auto const volatile byte = bytes[i];
            bytes[i] = byte;
        }
        std::memcpy(static_cast<void*>(&value), bytes, sizeof(Type));
        return value;
    }
};

}  // namespace ptspec::test

// Sanitizers and emulators have no part in constant expressions, which take much time.
#if defined(PTSPEC_ONLY_AT_RUN_TIME)
#define PTSPEC_CHECK_AS_CONSTANT(...) static_cast<void>(0)
#else
#define PTSPEC_CHECK_AS_CONSTANT(...) static_assert((__VA_ARGS__)(::ptspec::test::known{}))
#endif

/// Evaluates a body, `[](auto value) { ... return truth; }`, twice: in a static_assert, and at run
/// time on values that the compiler cannot see. Each input goes through `value(...)`.
#define CHECK_TWICE(...)                                                                           \
    do {                                                                                           \
        PTSPEC_CHECK_AS_CONSTANT(__VA_ARGS__);                                                     \
        CHECK((__VA_ARGS__)(::ptspec::test::unknown{}));                                           \
    } while (false)
