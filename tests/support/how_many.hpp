// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <cstdlib>

// Fewer inputs where code runs slowly: with sanitizers, without optimisation, or in an emulator.
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__) || defined(__powerpc__)
#define PTSPEC_TEST_IS_SLOW
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PTSPEC_TEST_IS_SLOW
#endif
#endif

/// How many random inputs a test uses.
namespace ptspec::test {

#ifdef PTSPEC_TEST_IS_SLOW
inline constexpr std::uint64_t usual_count = 100'000;
#else
inline constexpr std::uint64_t usual_count = 1'000'000;
#endif

/// The number in an environment variable, or `otherwise` when it is not set.
inline auto number_from(char const* variable, std::uint64_t otherwise) -> std::uint64_t {
    char const* const text = std::getenv(variable);
    return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

}  // namespace ptspec::test
