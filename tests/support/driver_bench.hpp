// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/unit_memory.hpp>

#include <tools/common/pc_notation.hpp>

#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/base/host_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

/// A processor for tests of drivers, with memory for a table and for regions.
namespace ptspec::test {

using pc_notation::cap_a;

/// A processor with 4 KB of memory at `table`, and 4 MB at `regions`.
struct bench {
    explicit bench(
        cpu::capabilities const& of = cap_a(),
        engine::model_options const& options = engine::options_of(engine::model_kind::manual))
        : caps{of},
          ranges{{table, entries.data(), entries.size()}, {regions, trace.data(), trace.size()}},
          memory{ranges},
          cpu{of, memory, tap, {}, 0x1000, options} {}
    bench(bench const&) = delete;
    auto operator=(bench const&) -> bench& = delete;

    void put(std::size_t index, topa::entry what) {
        store_le64(entries.data() + 8 * index, what.raw);
    }
    /// Writes this many bytes of trace: they need not be packets.
    void fill(std::uint64_t count) {
        while (stored() < count) {
            std::uint64_t const left = count - stored();
            if (left >= 10) {
                (void)cpu.on(engine::action::ptwrite{0x1000, 0x1004, 0x0123'4567'89AB'CDEF, true});
            } else {
                (void)cpu.on(engine::action::psb_due{});
            }
        }
    }
    [[nodiscard]] auto stored() const -> std::uint64_t { return cpu.unit().total().stored; }

    cpu::capabilities caps;
    std::vector<std::uint8_t> entries = std::vector<std::uint8_t>(0x1000);
    std::vector<std::uint8_t> trace = std::vector<std::uint8_t>(0x40'0000);
    host_region ranges[2];
    host_memory memory;
    simulate::no_tap tap{};
    simulate::fake_processor<host_memory> cpu;
};

}  // namespace ptspec::test
