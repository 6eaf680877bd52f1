// SPDX-License-Identifier: BSL-1.0

// One small use of each folder of include/ptspec/ that no other example shows alone. The README.md
// of the folder quotes it. Most of it is evaluated while compiling.

#include <ptspec/access/effect.hpp>
#include <ptspec/base/host_memory.hpp>
#include <ptspec/base/word.hpp>
#include <ptspec/config/check_config.hpp>
#include <ptspec/cpu/compare.hpp>
#include <ptspec/cpu/enumerated_quirks.hpp>
#include <ptspec/cpu/periods.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver.hpp>
#include <ptspec/edit.hpp>
#include <ptspec/engine/generator.hpp>
#include <ptspec/engine/output/output.hpp>
#include <ptspec/flow.hpp>
#include <ptspec/packet/decode.hpp>
#include <ptspec/packet/encode.hpp>
#include <ptspec/print/word.hpp>
#include <ptspec/reg/list.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/simulate/ports.hpp>
#include <ptspec/simulate/recording_port.hpp>
#include <ptspec/topa/table.hpp>
#include <ptspec/trace/check/checker.hpp>
#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/events.hpp>
#include <ptspec/trace/write/writer.hpp>
#include <ptspec/x86/decode.hpp>

namespace {

using namespace ptspec;

// A word of a device. A gap between two rows, or an overlap, stops the build.
struct dma_ctl : bit_word<dma_ctl, uint32_t> {
    struct Enable : flag<0> {};
    struct Burst : field<4, 1> {};
    struct layout : bit_layout<32, Enable, Burst, reserved<31, 5>> {};
};
static_assert(dma_ctl{}.with(dma_ctl::Burst{9}, dma_ctl::Enable{true}).raw == 0x13);
static_assert(dma_ctl{0x40}.reserved_bits_set() == 0x40);

// The fields of a register, by name. `with` keeps all other bits.
using status = reg::ia32_rtit_status;
constexpr status stopped{0x0000'0123'0000'0020};
static_assert(stopped.get<status::Stopped>() && stopped.get<status::PacketByteCnt>() == 0x123);
static_assert(stopped.with(status::Stopped{false}).raw == 0x0000'0123'0000'0000);
static_assert(status::address == 0x571);

// A packet as bytes, and back. A proper prefix is truncated, and nothing of it is consumed.
using packet::cbr;
constexpr auto wire = packet::encode(cbr{}.with(cbr::CoreBusRatio{24}));
static_assert(wire == byte_array<4>{{0x02, 0x03, 0x18, 0x00}});
constexpr auto back = packet::decode_as<cbr>(wire.bytes);
static_assert(back && back.length == 4 && back.packet.get<cbr::CoreBusRatio>() == 24);
static_assert(packet::decode(byte_view{wire.bytes}.first(3)).error == packet::error::truncated);

// What Sapphire Rapids lacks of Skylake-X: some thresholds of CYC packets, and nothing else.
constexpr auto const& skylake = cpu::preset::skylake_x;
constexpr auto superset = cpu::is_superset(cpu::preset::sapphire_rapids, skylake);
static_assert(superset.lacking == flag_set<cpu::aspect>{}.with(cpu::aspect::cyc_thresholds));
static_assert(cpu::common(cpu::preset::sapphire_rapids, skylake).value.has_pt());
static_assert(cpu::quirks_of(cpu::preset::broadwell).has(cpu::quirk::lbr_exclusive));
static_assert(cpu::mtc_period::of_crystal_cycles(8).encoding() == 3);

// A ring for addresses known at run time. The base of its second region is not a multiple of 64 KB:
// the violation has the rule and the entry, and nothing is written.
static_assert([] {
    topa::region const regions[] = {{.base = 0x1'0010'0000, .size = topa::region_size::size_1M},
                                    {.base = 0x1'0020'8000, .size = topa::region_size::size_64K}};
    uint64_t const address = 0x1'0000'0000;
    topa::entry table[3];
    auto const found = topa::write_table({}, address, regions, 2, topa::link(address), table);
    return found.broken == rule::OUT_062 && found.at.index == 1 && table[0].raw == 0;
}());

// A WRMSR enables tracing. Until TraceEn is 0 again, no other bit of this register may change.
constexpr auto enabled = access::effect_of_write(cpu::preset::skylake_x, {}, 0x570, 0x2109);
static_assert(enabled && enabled.state.ctl.get<reg::ia32_rtit_ctl::TraceEn>());
constexpr auto changed = access::check_write(cpu::preset::skylake_x, enabled.state, 0x570, 0x210D);
static_assert(!changed && changed.broken == rule::REG_021);

// Three bytes go to the last two bytes of a single range of 128 bytes, and to its first byte.
static_assert([] {
    using ctl = reg::ia32_rtit_ctl;
    using pointers = reg::ia32_rtit_output_mask_ptrs;
    simulate::memory_model<128> memory{.base = 0x1000};
    access::msr_state now{.output = {{0x1000}, {uint64_t{126} << 32 | 0x7F}}};
    now = access::effect_of_write(cpu::preset::skylake_x, now, ctl::address,
                                  ctl{}.with(ctl::TraceEn{true}, ctl::BranchEn{true}).raw)
              .state;
    engine::output out;
    uint8_t const trace[] = {1, 2, 3};
    bool const done = !out.start(cpu::preset::skylake_x, now, memory).happened &&
                      out.write(now, memory, trace);
    out.write_back(now);
    return done && memory.bytes.bytes[127] == 2 && memory.bytes.bytes[0] == 3 &&
           now.output.mask_ptrs.get<pointers::OutputOffset>() == 1;
}());

// Skylake has no PTWRITE. The verdict names the rule, and has the nearest legal configuration.
constexpr config::trace_config wanted{.user = true, .tsc = true, .ptwrite = true};
constexpr auto verdict = config::check(cpu::preset::skylake_x, wanted);
static_assert(!verdict && verdict.broken_by(config::config_member::ptwrite) == rule::REG_032);
static_assert(verdict.nearest == config::trace_config{.user = true, .tsc = true});

// A register as text, without allocation.
static_assert(print::written<80>([](auto& sink) {
                  using ctl = reg::ia32_rtit_ctl;
                  print::word(ctl{}.with(ctl::TraceEn{true}, ctl::MTCFreq{3}), sink);
              }) == "TraceEn=1 MTCFreq=3 (8 crystal cycles)");

// PSB+ with TSC 1000H, TIP.PGE, and a TNT. Without the clock, `when.is_absent()`.
static_assert([] {
    uint8_t const bytes[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                             0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x19, 0x00, 0x10, 0x00,
                             0x00, 0x00, 0x00, 0x00, 0x02, 0x23, 0x11, 0x0C};
    trace::event_reader events{byte_view{bytes}, trace::clock{{.mtc_freq = 3}}};
    auto event = events.next();
    while (event.what != trace::event_type::branches) { event = events.next(); }
    return event.branches().count == 2 && event.when.tsc == 0x1000;
}());

// Two branches and two indirect jumps: a TNT, a TIP with 6 bytes of its IP, and one with 2 bytes.
static_assert([] {
    byte_array<16> bytes;
    byte_buffer out{bytes.bytes};
    trace::writer to{out, {}};
    bool const whole = to.branch(true) == rule::none && to.branch(false) == rule::none &&
                       to.indirect(0x40'2000) == rule::none && to.indirect(0x40'2042) == rule::none;
    uint8_t const expected[] = {0x0C, 0x6D, 0x00, 0x20, 0x40, 0x00, 0x00, 0x00, 0x2D, 0x42, 0x20};
    return whole && out.written() == byte_view{expected};
}());

// PSB+ with TSC 1000H and a PIP of CR3 75000H, which shadow paging uses for the guest's CR3 5000H.
// The guest's time began at TSC F00H of the host.
static_assert([] {
    uint8_t bytes[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                       0x02, 0x82, 0x02, 0x82, 0x19, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00,
                       0x02, 0x43, 0x00, 0x75, 0x00, 0x00, 0x00, 0x00, 0x02, 0x23};
    byte_window const trace[] = {{bytes, sizeof bytes}};
    auto const replaced = edit::replace_cr3(trace, [](uint64_t cr3) {
        return edit::guest_address{.is_known = cr3 == 0x7'5000, .value = 0x5000};
    });
    auto const rebased = edit::rebase_tsc(trace, {.offset = 0 - uint64_t{0xF00}});
    return replaced && replaced.count == 1 && bytes[27] == 0x05 && rebased && bytes[18] == 0x01;
}());

// What a processor executes, and what it writes for that: a TNT and a TIP with two bytes of IP.
static_assert([] {
    using ctl = reg::ia32_rtit_ctl;
    namespace action = engine::action;
    byte_array<64> bytes;
    byte_buffer trace{bytes.bytes};
    auto const& how = engine::options_of(engine::model_kind::manual);
    engine::generator unit{cpu::preset::skylake_x, {}, {.cpl = 3}, 0x40'1000, how};
    constexpr auto start = ctl{}.with(ctl::TraceEn{true}, ctl::User{true}, ctl::BranchEn{true});
    if (!unit.start(start, trace)) { return false; }
    size_t const begin = trace.size();
    unit.on(action::conditional{.to = 0x40'1020, .taken = true}, trace);
    unit.on(action::conditional{.to = 0x40'1022, .taken = false}, trace);
    unit.on(action::indirect_jump{.to = 0x40'2000}, trace);
    constexpr uint8_t expected[] = {0x0C, 0x2D, 0x00, 0x20};
    return trace.written().from(begin) == byte_view{expected};
}());

// JNZ back to its own address: two bytes, a conditional branch.
constexpr uint8_t code[] = {0x75, 0xFE};
constexpr auto decoded = x86::decode(code);
static_assert(decoded && decoded.instruction.length == 2);
static_assert(decoded.instruction.kind == x86::instruction_class::conditional);
static_assert(x86::target_of(decoded.instruction, 0x40'1000) == 0x40'1000);

/// Traces user code into a ring that is read while it fills: `take(base, count)` gets the
/// physical address and the number of new bytes.
template <driver::fenced_msr_port Msrs, class Take>
struct user_trace {
    Msrs& msrs;
    Take take;
    driver::ring ring;  // of build_ring(buffer_recipe::streaming, ..)
    driver::ring_reader reader{};

    constexpr auto start(cpu::capabilities const& caps) -> bool {
        auto const planned = driver::plan(
            caps, {.config = {.user = true}, .output = driver::output_at_start(ring)});
        return planned && driver::enable(msrs, planned.plan);
    }
    constexpr auto read(driver::stopped_trace const& now) -> driver::drained {
        msrs.fence();
        return driver::drain(ring, reader, now, take);
    }
    constexpr auto on_pmi(auto&& unmask_lvt) -> driver::pmi_result {
        return driver::on_topa_pmi(msrs, [&](auto& now) { return read(now).next; }, unmask_lvt);
    }
    constexpr auto stop() -> driver::drained { return read(driver::disable(msrs)); }
};

// A driver enables Intel PT on a modelled processor, which executes a jump: the trace has a PSB.
static_assert([] {
    simulate::memory_model<4096> memory{.base = 0x1000};
    simulate::fake_processor cpu{cpu::preset::skylake_x, memory};
    simulate::recording_port msrs{cpu};
    auto const planned = driver::plan(
        cpu::preset::skylake_x, {.config = {.os = true, .output = cpu::output_scheme::single_range},
                                 .output = {{0x1000}, {0xFFF}}});
    bool const is_on = planned && driver::enable(msrs, planned.plan);
    bool const is_stored = !cpu.on(engine::action::indirect_jump{0x40'2000}).happened;
    auto const end = driver::disable(msrs);
    return is_on && is_stored && end && memory.bytes.bytes[1] == 0x82 && msrs.count() > 4;
}());

/// The first rule that a trace breaks, or none.
auto first_broken_rule(byte_view bytes) -> rule {
    rule first = rule::none;
    trace::checker check{{}, [&](trace::violation const& found) {
                             if (first == rule::none) { first = found.broken; }
                         }};
    trace::reader reader{bytes};
    (void)reader.for_each(check);
    return first;
}

// What executed. A sink has a function for each kind of report that it wants.
static_assert([] {
    struct {
        uint64_t count = 0, gaps = 0;
        constexpr void instruction(flow::executed const&) { ++count; }
        constexpr void gap(flow::gap const&) { ++gaps; }
    } executed;
    // At 401000H: NOP; JNZ 401000H. The trace: PSB, FUP 401000H, PSBEND, and a TNT: taken twice.
    uint8_t const loop[] = {0x90, 0x75, 0xFD};
    uint8_t const bytes[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
                             0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x7D, 0x00,
                             0x10, 0x40, 0x00, 0x00, 0x00, 0x02, 0x23, 0x0E};
    flow::code_span image{loop, 0x40'1000};
    flow::block blocks[16];
    flow::block_cache cache{blocks};
    flow::walker walk{borrowed_bytes{bytes}, image, cache};
    return walk.run(executed) == flow::walk_end::end && executed.count == 4 && executed.gaps == 0;
}());

}  // namespace

auto main() -> int {
    // A ring of two regions, on a modelled processor that leaves the kernel and executes a jump.
    static uint8_t buffer[2 * 4096];
    topa::entry entries[3];
    topa::region const regions[] = {{0x1'0000}, {0x1'1000}};
    driver::table_page const page{0x2000, entries};
    host_region const mapped[] = {{0x1'0000, buffer, sizeof buffer},
                                  {0x2000, reinterpret_cast<uint8_t*>(entries), sizeof entries}};
    host_memory memory{mapped};
    constexpr auto const& caps = cpu::preset::skylake_x;
    simulate::fake_processor cpu{caps, memory, {}, 0x1000};
    auto const built = driver::build_ring(driver::buffer_recipe::streaming, regions, 2, &page, 1,
                                          topa::limits::of(caps));
    uint64_t taken = 0;
    user_trace trace{cpu, [&](phys_addr, uint64_t bytes) { taken += bytes; }, built.ring};
    bool right = built && trace.start(caps);
    right = right && !cpu.on(engine::action::far_transfer{
                                 .at = 0x1002, .to = 0x40'1000, .after = {.cpl = 3}})
                          .happened;
    right = right && trace.on_pmi([] {}).outcome == driver::pmi_outcome::not_topa;
    right = right && !cpu.on(engine::action::interrupt{.next = 0x40'1000, .to = 0x1000}).happened;
    right = right && trace.stop().found && taken != 0 && buffer[1] == 0x82;
    // PSB, CBR, PSBEND, TNT: without a FUP in the PSB+ tracing is off, so no TNT may follow.
    uint8_t const bytes[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                             0x02, 0x82, 0x02, 0x82, 0x02, 0x03, 0x18, 0x00, 0x02, 0x23, 0x06};
    return right && first_broken_rule(bytes) == rule::GEN_105 ? 0 : 1;
}
