// SPDX-License-Identifier: BSL-1.0

// A driver runs on a modelled processor: it detects Intel PT, traces two contexts into rings of
// 16 x 64 KB, reads them out in the handler of the PMI, and switches between them. The trace is
// decoded where it lies, without a copy: each conditional branch of a context must be in its trace,
// and each byte that the trace unit stored must have been read.

#include "skeleton_driver.hpp"
#include "standard_output.hpp"

#include <ptspec/ptspec.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using namespace ptspec;
namespace action = engine::action;
using lvt = reg::ia32_x2apic_lvt_pmi;

constexpr std::uint64_t memory_base = 0x1'0000'0000;
constexpr std::uint64_t region_bytes = 0x1'0000;
constexpr std::size_t region_count = 16;
constexpr std::uint64_t table_bytes = region_bytes;  // the regions after it are aligned
constexpr std::uint64_t context_bytes = region_count * region_bytes + table_bytes;

using bytes = std::vector<std::uint8_t>;

/// Counts the branches in TNTs: conditional ones, since this program executes no RET.
struct branch_counter {
    std::uint64_t branches = 0;
    std::uint64_t damaged = 0;

    void operator()(packet::tnt_short const& one, trace::packet_place) {
        branches += one.taken().count;
    }
    void operator()(packet::tnt_long const& one, trace::packet_place) {
        branches += one.taken().count;
    }
    void operator()(trace::item const& one) {
        damaged += one.what == trace::item_type::damage ? 1U : 0U;
    }
};

/// What a context of this program needs besides the driver's.
struct traced {
    topa::region regions[region_count]{};
    topa::entry entries[region_count + 1]{};
    driver::table_page pages[1]{};
    skeleton::context context{};
    trace::reader<> reader{};
    branch_counter decoded{};
    std::uint64_t executed = 0;  // conditional branches
    std::uint64_t stored = 0;    // bytes, by the trace unit
    std::uint64_t read = 0;      // bytes, by the driver
};

struct machine {
    bytes memory = bytes(2 * context_bytes);
    traced contexts[2];

    auto owner_of(std::uint64_t address) -> traced& {
        return contexts[(address - memory_base) / context_bytes];
    }
    /// The tap of the processor.
    void operator()(std::uint64_t address, byte_view stored) {
        owner_of(address).stored += stored.size();
    }
    /// The consumer of the driver.
    void operator()(skeleton::context&, phys_addr address, std::uint64_t count) {
        auto& one = owner_of(address.value);
        byte_view const span{memory.data() + (address - memory_base),
                             static_cast<std::size_t>(count)};
        (void)one.reader.feed(span);
        (void)one.reader.for_each<packet::tnt_short, packet::tnt_long, trace::item>(one.decoded);
        one.read += count;
    }
};

/// The memory of the processor. The program holds the tables, which are words in physical memory.
struct physical_memory {
    using ignores_pmis = physical_memory;

    machine& of;

    auto load(std::uint64_t address) -> port_value {
        auto const& one = of.owner_of(address);
        std::uint64_t const at = (address - one.pages[0].base) / sizeof(topa::entry);
        return at <= region_count ? port_value{true, one.entries[at].raw} : port_value{};
    }
    auto store(std::uint64_t address, byte_view from) -> std::size_t {
        copy_bytes(of.memory.data() + (address - memory_base), from.data(), from.size());
        return from.size();
    }
};

}  // namespace

auto main() -> int {
    machine now;
    physical_memory memory{now};
    simulate::fake_processor cpu{cpu::preset::skylake_x, memory, now, {}, 0x40'1000};

    auto const found = driver::detect(cpu, cpu);
    if (!found) {
        std::puts(found.is_in_use() ? "Intel PT is in use" : "no Intel PT");
        return 1;
    }
    skeleton::pt_driver driver{cpu, now};
    auto const unmask = [&] { (void)driver::write(cpu, lvt{}.with(lvt::Vector{0xEE})); };
    unmask();

    config::trace_config const wanted{.os = true, .user = true, .tsc = true};
    for (std::size_t i = 0; i < 2; ++i) {
        auto& one = now.contexts[i];
        std::uint64_t const base = memory_base + i * context_bytes;
        for (std::size_t k = 0; k < region_count; ++k) {
            one.regions[k] = {base + k * region_bytes, topa::region_size::size_64K};
        }
        one.pages[0] = {base + region_count * region_bytes, one.entries};
        if (!driver.add(one.context, found.caps, wanted, one.regions, one.pages)) {
            std::puts("the processor refuses the buffer or the configuration");
            return 1;
        }
    }

    // Each context in turn executes a program, and the PMI arrives a little late.
    std::uint64_t pmis = 0;
    for (std::uint64_t i = 0; i < 2'000'000; ++i) {
        if (i % 300'000 == 0 && !driver.switch_to(&now.contexts[i / 300'000 % 2].context)) {
            return 1;
        }
        (void)cpu.on(action::indirect_jump{0x40'1000 + (i * 0x9E37'79B9'7F4A'7C15 >> 34)});
        (void)cpu.on(action::conditional{0x40'1000 + i % 4096, i % 3 != 0});
        ++now.contexts[i / 300'000 % 2].executed;
        if (i % 8 == 0 && cpu.deliver_pmi()) {
            pmis += driver.on_pmi(unmask) == driver::pmi_outcome::handled;
        }
    }
    if (!driver.switch_to(nullptr)) { return 1; }

    for (auto const& one : now.contexts) {
        auto const number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
        std::printf("%llu bytes of trace, %llu read, %llu gaps; %llu branches, %llu decoded\n",
                    number(one.stored), number(one.read), number(one.context.gaps),
                    number(one.executed), number(one.decoded.branches));
        if (one.read != one.stored || one.decoded.branches != one.executed ||
            one.decoded.damaged != 0) {
            return 1;
        }
    }
    std::printf("%llu interrupts\n", static_cast<unsigned long long>(pmis));
    return 0;
}
