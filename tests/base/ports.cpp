// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/ports.hpp>

#include <support/check_twice.hpp>

#include <ptspec/simulate/ports.hpp>

using namespace ptspec;

namespace {

struct no_store {
    auto load(uint64_t) -> port_value;
};
struct loads_a_number {
    auto load(uint64_t) -> uint64_t;
    auto store(uint64_t, byte_view) -> size_t;
};
struct maps_all {
    auto load(uint64_t) -> port_value;
    auto store(uint64_t, byte_view) -> size_t;
    auto window(uint64_t) -> byte_window;
};
struct maps_only {
    auto window(uint64_t) -> byte_window;
};
struct maps_a_pointer {
    auto load(uint64_t) -> port_value;
    auto store(uint64_t, byte_view) -> size_t;
    auto window(uint64_t) -> uint8_t*;
};
struct sends_bytes {
    auto send(byte_view) -> size_t;
};
struct sends_all_or_nothing {
    auto send(byte_view) -> bool;
};
struct writes_nothing {
    auto read(uint32_t) -> port_value;
    void write(uint32_t, uint64_t);
};

}  // namespace

TEST_CASE("the models satisfy the port concepts, and a type without a function does not") {
    static_assert(memory_port<simulate::memory_model<1>> && !memory_port<no_store>);
    static_assert(!memory_port<loads_a_number> && !memory_port<simulate::memory_model<8> const>);
    static_assert(msr_port<simulate::msr_model<3>> && !msr_port<writes_nothing>);
    static_assert(cpuid_port<simulate::cpuid_model<3>> &&
                  cpuid_port<simulate::cpuid_model<3> const>);
    static_assert(pmi_port<simulate::pmi_model> && !pmi_port<simulate::memory_model<8>>);
    static_assert(!msr_port<simulate::memory_model<8>> && !cpuid_port<simulate::msr_model<1>>);
    CHECK(memory_port<simulate::memory_model<1>>);
}

TEST_CASE("memory with windows is a mapped_memory_port, and a type with send() is a fabric_port") {
    static_assert(memory_port<maps_all> && mapped_memory_port<maps_all>);
    static_assert(!mapped_memory_port<simulate::memory_model<8>> && !mapped_memory_port<maps_only>);
    static_assert(memory_port<maps_a_pointer> && !mapped_memory_port<maps_a_pointer>);
    static_assert(!mapped_memory_port<maps_all const>);
    static_assert(fabric_port<sends_bytes> && !fabric_port<sends_all_or_nothing>);
    static_assert(!fabric_port<maps_all> && !memory_port<sends_bytes>);
    CHECK(mapped_memory_port<maps_all>);
}

TEST_CASE("a faulted access is false, and differs from a read of 0") {
    CHECK_TWICE([](auto value) {
        return !value(port_value{}) && value(port_value{true, 0}) &&
               port_value{true, 0} != port_value{} && port_value{true, 5} != port_value{true, 6} &&
               value(port_value{true, 5}) == port_value{true, 5};
    });
}

TEST_CASE("a port_fault is true if it happened, also at address 0") {
    CHECK_TWICE([](auto value) {
        auto const fault = value(port_fault{true, 0x4000});
        return !value(port_fault{}).happened && value(port_fault{}).address == 0 &&
               fault.happened && value(port_fault{true, 0}).happened &&
               !value(port_fault{false, 0x4000}).happened && fault == port_fault{true, 0x4000} &&
               fault != port_fault{true, 0x4001} && fault != port_fault{false, 0x4000};
    });
}

TEST_CASE("a default-constructed window has no bytes") {
    CHECK_TWICE([](auto value) {
        auto const window = value(byte_window{});
        return window.first == nullptr && window.size == 0;
    });
}
