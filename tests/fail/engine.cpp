// SPDX-License-Identifier: BSL-1.0
/// The engine

#include <ptspec/base/host_memory.hpp>
#include <ptspec/engine/action/register_write.hpp>
#include <ptspec/engine/clocks.hpp>
#include <ptspec/engine/generator.hpp>
#include <ptspec/engine/output/result.hpp>
#include <ptspec/engine/state.hpp>
#include <ptspec/engine/trace_unit.hpp>

#include <vector>

using namespace ptspec;

#if defined(_MSC_VER)
#pragma warning(error : 4834)
#else
#pragma GCC diagnostic error "-Wunused-result"
#endif

namespace unit_not_an_event {
/// A number is no action.
// expect: deleted
// expect: an action is a struct of engine::action
auto jump(engine::trace_unit<>& unit, host_memory& memory) {
#ifndef SHOULD_FAIL
    return unit.on(engine::action::indirect_jump{0x2000}, memory);
#else
    return unit.on(uint64_t{0x2000}, memory);
#endif
}
}  // namespace unit_not_an_event

namespace result_dropped_port_fault {
/// After a fault the unit has not processed the event: the caller must send it again.
// expect: value of type 'ptspec::port_fault' | declared with 'nodiscard' attribute
// expect: nodiscard
// a warning
auto jump(ptspec::engine::trace_unit<>& unit, ptspec::host_memory& memory) {
#ifndef SHOULD_FAIL
    return !unit.on(ptspec::engine::action::indirect_jump{0x2000}, memory).happened;
#else
    unit.on(ptspec::engine::action::indirect_jump{0x2000}, memory);
    return true;
#endif
}
}  // namespace result_dropped_port_fault

namespace memory_with_misspelt_raise {
/// The interrupts of the ToPA table would be lost.
// expect: a memory port has `void raise()`, which receives the ToPA PMIs
// also clang
struct memory {
    auto load(uint64_t) -> port_value { return {}; }
    auto store(uint64_t, byte_view bytes) -> size_t { return bytes.size(); }
#ifndef SHOULD_FAIL
    void raise() {}
#else
    void raise_pmi() {}
#endif
};

auto jump(engine::trace_unit<>& unit, memory& to) {
    return unit.on(engine::action::indirect_jump{0x2000}, to);
}
}  // namespace memory_with_misspelt_raise

namespace memory_with_wrong_raise {
/// The unit does not pass a vector: the interrupts would be lost.
// expect: a memory port has `void raise()`, which receives the ToPA PMIs
struct memory {
    auto load(uint64_t) -> port_value { return {}; }
    auto store(uint64_t, byte_view bytes) -> size_t { return bytes.size(); }
#ifndef SHOULD_FAIL
    void raise() {}
#else
    void raise(unsigned) {}
#endif
};

auto jump(engine::trace_unit<>& unit, memory& to) {
    return unit.on(engine::action::indirect_jump{0x2000}, to);
}
}  // namespace memory_with_wrong_raise

namespace memory_with_wrong_window {
/// The window of a memory port has an end.
// expect: the window of a memory port is `auto window(uint64_t) -> ptspec::byte_window`
struct memory {
    using ignores_pmis = memory;
    auto load(uint64_t) -> port_value { return {}; }
    auto store(uint64_t, byte_view bytes) -> size_t { return bytes.size(); }
#ifndef SHOULD_FAIL
    auto window(uint64_t) -> byte_window { return {}; }
#else
    auto window(uint64_t) -> uint8_t* { return nullptr; }
#endif
};

auto jump(engine::trace_unit<>& unit, memory& to) {
    return unit.on(engine::action::indirect_jump{0x2000}, to);
}
}  // namespace memory_with_wrong_window

namespace memory_with_wrong_send {
/// The fabric says how many bytes it accepted.
// expect: the send of a memory port is `auto send(ptspec::byte_view) -> size_t`
struct memory {
    using ignores_pmis = memory;
    auto load(uint64_t) -> port_value { return {}; }
    auto store(uint64_t, byte_view bytes) -> size_t { return bytes.size(); }
#ifndef SHOULD_FAIL
    auto send(byte_view bytes) -> size_t { return bytes.size(); }
#else
    void send(byte_view) {}
#endif
};

auto jump(engine::trace_unit<>& unit, memory& to) {
    return unit.on(engine::action::indirect_jump{0x2000}, to);
}
}  // namespace memory_with_wrong_send

namespace memory_with_the_word_of_its_base {
/// `ignores_pmis` of a base class does not count: the derived class may have misspelt `raise`.
// expect: a memory port has `void raise()`, which receives the ToPA PMIs
struct memory : host_memory {
    using host_memory::host_memory;
#ifndef SHOULD_FAIL
    using ignores_pmis = memory;
#endif
};

auto jump(engine::trace_unit<>& unit, memory& to) {
    return unit.on(engine::action::indirect_jump{0x2000}, to);
}
}  // namespace memory_with_the_word_of_its_base

namespace generator_into_no_sink {
/// A vector is no sink; a `byte_buffer` is one.
// expect: deleted
// expect: a sink has append(byte_view) -> bool
// one error
void jump(engine::generator& from, std::vector<unsigned char>& to) {
#ifndef SHOULD_FAIL
    byte_buffer out{to.data(), to.size()};
    from.on(engine::action::indirect_jump{0x2000}, out);
#else
    from.on(engine::action::indirect_jump{0x2000}, to);
#endif
}
}  // namespace generator_into_no_sink

namespace packet_ip_as_cs_offset {
/// The IP of a packet is no offset in CS: of a linear one, the base of CS would be added twice.
// expect: packet_ip
// expect: cs_offset
auto fup_of(engine::generator_state const& unit, uint64_t rip) -> packet_ip {
    packet_ip const ip = unit.in_packets(rip);
#ifndef SHOULD_FAIL
    return ip;
#else
    return unit.in_packets(ip);
#endif
}
}  // namespace packet_ip_as_cs_offset

namespace count_cycles_in_a_row {
/// The cycles that pass and those of the counter, swapped: the counter is one argument.
// expect: count_cycles
// expect: cycle_counter
auto count(uint64_t before, uint64_t passed) -> uint64_t {
#ifndef SHOULD_FAIL
    return engine::count_cycles({.cycles = before, .bits = 12}, passed).cycles;
#else
    return engine::count_cycles(passed, before, 12, false).cycles;
#endif
}
}  // namespace count_cycles_in_a_row

namespace count_stored_in_a_row {
/// The number of bytes and the address of the last one, swapped: the addresses are one argument.
// expect: count_stored
// expect: phys_range
void count(engine::write_result& result, uint64_t first, uint64_t last) {
#ifndef SHOULD_FAIL
    result.count_stored({first, last}, 8);
#else
    result.count_stored(first, 8, last);
#endif
}
}  // namespace count_stored_in_a_row

namespace wrmsr_in_a_row {
/// The address of a WRMSR and its value, swapped: they have names.
// expect: wrmsr
// expect: msr_write
auto enable(engine::trace_unit<>& unit, host_memory& memory, uint64_t ctl, uint64_t rip) {
#ifndef SHOULD_FAIL
    return unit.wrmsr({.index = 0x570, .value = ctl, .at = rip, .next = rip + 2}, memory);
#else
    return unit.wrmsr(0x570, rip, rip + 2, ctl, memory);
#endif
}
}  // namespace wrmsr_in_a_row

namespace phys_addr_as_cs_offset {
/// A physical address is no RIP.
// expect: phys_addr
// expect: cs_offset
auto wrmsr_at(phys_addr table, uint64_t rip) -> engine::msr_write {
    engine::msr_write made{.index = 0x570, .at = rip};
#ifdef SHOULD_FAIL
    made.at = table;
#endif
    made.value = table.value;
    return made;
}
}  // namespace phys_addr_as_cs_offset

namespace wrmsr_names_swapped {
/// The value of a WRMSR as its index: an integer of 64 bits is no index.
// expect: deleted
// expect: msr_index
auto wrmsr_of(uint32_t index, uint64_t value) -> engine::msr_write {
#ifndef SHOULD_FAIL
    return {.index = index, .value = value};
#else
    return {.index = value, .value = index};
#endif
}
}  // namespace wrmsr_names_swapped
