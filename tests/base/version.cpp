// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/version.hpp>

#include <support/check_twice.hpp>

using ptspec::version;
using ptspec::version_number;

TEST_CASE("the constant matches the macros") {
    static_assert(version.major_version == PTSPEC_VERSION_MAJOR);
    static_assert(version.minor_version == PTSPEC_VERSION_MINOR);
    static_assert(version.patch_version == PTSPEC_VERSION_PATCH);
    CHECK(version ==
          version_number{PTSPEC_VERSION_MAJOR, PTSPEC_VERSION_MINOR, PTSPEC_VERSION_PATCH});
}

TEST_CASE("this is version 0.1.0") {
    CHECK_TWICE([](auto value) { return value(version) == version_number{0, 1, 0}; });
}

TEST_CASE("versions are equal if all three numbers are equal") {
    CHECK_TWICE([](auto value) {
        auto const it = value(version_number{1, 2, 3});
        return it == version_number{1, 2, 3} && it != version_number{0, 2, 3} &&
               it != version_number{1, 0, 3} && it != version_number{1, 2, 0};
    });
}

TEST_CASE("the preprocessor can compare versions") {
#if PTSPEC_VERSION_MAJOR > 0 || PTSPEC_VERSION_MINOR >= 1
    constexpr bool at_least_0_1 = true;
#else
    constexpr bool at_least_0_1 = false;
#endif
    CHECK(at_least_0_1);
}
