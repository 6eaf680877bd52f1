// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/shadow_page.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

namespace {

struct whole_memory {
    auto load(uint64_t) -> port_value;
    auto translate(uint64_t, uint64_t) -> vmx::translation;
};
struct loads_only {
    auto load(uint64_t) -> port_value;
};
struct translates_pages {  // without a number of bytes
    auto load(uint64_t) -> port_value;
    auto translate(uint64_t) -> vmx::translation;
};

}  // namespace

TEST_CASE("guest memory is loaded from and translated") {
    static_assert(vmx::guest_memory_port<whole_memory>);
    static_assert(!vmx::guest_memory_port<loads_only> && !vmx::guest_memory_port<translates_pages>);
    CHECK(vmx::guest_memory_port<whole_memory>);
}

TEST_CASE("a page of entries has 4096 bytes") { CHECK(vmx::shadow_page::entry_count == 512); }

TEST_CASE("only a complete shadow, and a position that was found, are true") {
    CHECK_TWICE([](auto value) {
        using vmx::shadow_progress;
        bool const complete = static_cast<bool>(
            vmx::shadow_result{value(shadow_progress::complete), 0, rule::none});
        bool others = false;
        constexpr shadow_progress incomplete[] = {
            shadow_progress::paused, shadow_progress::missing_page, shadow_progress::no_room,
            shadow_progress::bad_page, shadow_progress::not_begun};
        for (auto const one : incomplete) {
            others = others || vmx::shadow_result{value(one), 0, rule::none};
        }
        return complete && !others && !value(vmx::translated_position{}) &&
               vmx::translated_position{value(true), {}};
    });
}
