// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/traced.hpp>

#include <ptspec/engine/trace_unit.hpp>
#include <ptspec/simulate/ports.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

// The memory of a processor with one trace unit, and units that write to it.
namespace ptspec::test {

inline constexpr std::uint64_t table = 0x1000'0000;
inline constexpr std::uint64_t regions = 0x2000'0000;

/// A table and its contiguous regions, whose bytes can be read. Stores can be made to fail, and
/// PMIs are counted.
struct machine_memory {
    simulate::memory_model<64> entries{table, {}};
    simulate::memory_model<0x3000> trace{regions, {}};
    std::uint64_t interrupts = 0;
    bool fails = false;

    constexpr auto load(std::uint64_t address) const noexcept -> port_value {
        return entries.load(address);
    }
    constexpr auto store(std::uint64_t address, byte_view from) noexcept -> std::size_t {
        return fails ? 0 : trace.store(address, from);
    }
    constexpr void raise() noexcept { ++interrupts; }

    constexpr void put(std::size_t index, topa::entry what) {
        byte_array<8> bytes;
        store_le64(bytes.data(), what.raw);
        (void)entries.store(table + 8 * index, bytes);
    }
    /// Two regions of 4 KB with the given flags, followed by a link to the table.
    constexpr explicit machine_memory(topa::entry first = {}, topa::entry second = {}) {
        put(0, topa::entry{first.raw | regions});
        put(1, topa::entry{second.raw | (regions + 0x1000)});
        put(2, topa::link_to(table));
    }
};
/// The same, with in-place access.
struct machine_memory_in_place : machine_memory {
    using machine_memory::machine_memory;

    constexpr auto window(std::uint64_t address) noexcept -> byte_window {
        std::uint64_t const at = address - regions;
        auto& bytes = trace.bytes;
        return at < bytes.size() ? byte_window{bytes.data() + at, bytes.size() - at}
                                 : byte_window{};
    }
};
static_assert(mapped_memory_port<machine_memory_in_place>);

inline constexpr auto INT = topa::entry{}.with(topa::entry::INT{true});
inline constexpr auto STOP = topa::entry{}.with(topa::entry::STOP{true});

/// True when the access took effect and no port failed.
constexpr auto is_done(engine::access_result const& access) -> bool {
    return access.what == engine::access_outcome::done;
}

/// A unit with TraceEn 0, whose output base is the table.
template <std::size_t Depth = 1024>
constexpr auto off(std::string_view setup, engine::model_options const& how =
                                               engine::options_of(engine::model_kind::manual))
    -> engine::trace_unit<Depth> {
    auto from = traced::started(setup);
    from.msrs.ctl = from.msrs.ctl.with(access::ia32_rtit_ctl::TraceEn{false});
    from.msrs.status = {from.msrs.status.raw & ~std::uint64_t{7}};
    from.msrs.output.base = {table};
    return engine::trace_unit<Depth>{from.of, from.msrs, from.code, from.ip, how};
}
template <std::size_t Depth, memory_port Memory>
constexpr auto enable(engine::trace_unit<Depth>& unit, Memory& memory) -> engine::access_result {
    auto const word = unit.msrs().ctl.with(access::ia32_rtit_ctl::TraceEn{true});
    return unit.wrmsr(
        {.index = access::ia32_rtit_ctl::address, .value = word.raw, .at = 0x1000, .next = 0x1002},
        memory);
}
template <std::size_t Depth, memory_port Memory>
constexpr auto disable(engine::trace_unit<Depth>& unit, Memory& memory) -> engine::access_result {
    auto const word = unit.msrs().ctl.with(access::ia32_rtit_ctl::TraceEn{false});
    return unit.wrmsr(
        {.index = access::ia32_rtit_ctl::address, .value = word.raw, .at = 0x1100, .next = 0x1102},
        memory);
}

}  // namespace ptspec::test
