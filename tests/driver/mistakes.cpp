// SPDX-License-Identifier: BSL-1.0
// Mistakes of shipping drivers: what each does on the modelled processor, and that the procedures
// avoid it.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/switch_context.hpp>
#include <ptspec/driver/drain.hpp>
#include <ptspec/simulate/recording_port.hpp>
#include <ptspec/trace/reader.hpp>

#include <doctest/doctest.h>

#include <support/driver_bench.hpp>

using namespace ptspec;
using driver::buffer_recipe;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_status;
using test::bench;
using test::table;
namespace action = engine::action;
namespace preset = cpu::preset;

namespace {

constexpr uint64_t memory_base = test::regions;
constexpr uint64_t END = 1;
constexpr uint64_t INT = 4;
constexpr uint64_t STOP = 16;
constexpr ia32_rtit_ctl ctl{0x250D | 1U << 12};  // with PTWRITE
constexpr uint32_t lvt = reg::ia32_x2apic_lvt_pmi::address;

/// A ring of 4 KB regions in the memory of a bench, or of mixed sizes.
struct ring_of {
    std::vector<topa::region> list;
    driver::table_page page{};
    driver::ring ring{};

    ring_of(bench& in, std::vector<topa::region_size> const& sizes,
            buffer_recipe how = buffer_recipe::streaming) {
        uint64_t at = memory_base;
        for (auto const size : sizes) {
            uint64_t const bytes = topa::bytes_in(size);
            at = (at + bytes - 1) / bytes * bytes;
            list.push_back({at, size});
            at += bytes;
        }
        page = {table, reinterpret_cast<topa::entry*>(in.entries.data())};
        ring = driver::build_ring(how, list.data(), list.size(), &page, 1,
                                  topa::limits::of(in.caps))
                   .ring;
    }
    [[nodiscard]] auto plan() const -> access::msr_state {
        return {.ctl = ctl, .output = driver::output_at_start(ring)};
    }
    [[nodiscard]] auto entry(size_t i) const -> uint64_t { return page.entries[i].raw; }
};

constexpr auto four_pages = {topa::region_size::size_4K, topa::region_size::size_4K,
                             topa::region_size::size_4K, topa::region_size::size_4K};

/// Stores at least this many bytes of trace in all, and at most 9 more.
void trace_up_to(bench& now, uint64_t bytes) {
    while (now.stored() < bytes) { (void)now.cpu.on(action::ptwrite{0, 4, 1, true}); }
}

/// The first packet of the trace from an offset of the memory on.
auto first_packet(bench const& now, uint64_t offset) -> packet::kind {
    trace::reader reader{byte_view{now.trace.data() + offset, now.trace.size() - offset},
                         {.sync = false}};
    auto const item = reader.next();
    return item.what == trace::item_type::packet ? item.packet.kind() : packet::kind::pad;
}
auto offset_in_region(driver::output_registers const& now) -> uint64_t {
    return now.mask_ptrs.raw >> 32;
}

}  // namespace

TEST_CASE("STOP stands before the first unread byte for every position and fill level "
          "(OUT-094)") {
    bench now;
    ring_of const made{now,
                       {topa::region_size::size_4K, topa::region_size::size_8K,
                        topa::region_size::size_4K, topa::region_size::size_4K}};
    auto const& ring = made.ring;
    constexpr uint64_t step = 0x400;
    for (uint64_t head = 0; head < ring.bytes; head += step) {
        for (uint64_t unread = 0; unread <= ring.bytes; unread += step) {
            if (!driver::set_marks(ring,
                                   {.head = head, .unread = unread, .wake_up_bytes = 0x1000})) {
                continue;
            }
            // Tracing stores up to the end of the region with STOP.
            uint64_t room = 0;
            auto [region, offset] = driver::region_at(ring, head);
            for (bool stops = false; !stops; region = driver::region_after(ring, region)) {
                room += topa::bytes_in(ring.regions[region].size) - offset;
                offset = 0;
                stops = (made.entry(region) & STOP) != 0;
            }
            CHECK(room + unread <= ring.bytes);
        }
    }
}

TEST_CASE("with STOP one entry before the current one a lap of unread bytes is lost") {
    bench now;
    ring_of const made{now, four_pages, buffer_recipe::circular};
    // Regions 2, 3 and 0 are unread, the position is in region 1: STOP belongs on region 1, which
    // ends before the unread ones.
    driver::output_registers const from = driver::output_at(made.ring, 0x1800);
    now.put(0, topa::entry{made.entry(0) | STOP});
    CHECK(driver::enable(now.cpu, {.ctl = ctl, .output = from}));
    now.fill(0x800 + 0x2000);
    CHECK(!now.cpu.msrs().status.get<ia32_rtit_status::Stopped>());  // the unread bytes are gone
    bench right;
    ring_of const again{right, four_pages};
    CHECK(
        driver::set_marks(again.ring, {.head = 0x1800, .unread = 0x3000, .wake_up_bytes = 0x1000}));
    CHECK((again.entry(1) & STOP) != 0);
    CHECK(driver::enable(right.cpu, {.ctl = ctl, .output = from}));
    right.fill(0x800);
    for (int i = 0; i < 100; ++i) { (void)right.cpu.on(action::ptwrite{0, 4, 1, true}); }
    CHECK(right.stored() == 0x800);
    CHECK(right.cpu.msrs().status.get<ia32_rtit_status::Stopped>());
}

TEST_CASE("an offset in a region is not the head modulo the size of the region") {
    bench now;
    ring_of const made{now, {topa::region_size::size_4K, topa::region_size::size_8K}};
    auto const place = driver::region_at(made.ring, 0x1800);
    CHECK(place.region == 1);
    CHECK(place.offset == 0x800);  // not 1800H, which the mask of 8 KB leaves
    CHECK(offset_in_region(driver::output_at(made.ring, 0x1800)) == 0x800);
}

TEST_CASE("two regions with prompt PMIs never stop") {
    bench now;
    ring_of const made{now, {topa::region_size::size_4K, topa::region_size::size_4K}};
    CHECK(driver::set_marks(made.ring, {.wake_up_bytes = made.ring.bytes / 2}));
    CHECK(now.cpu.write(lvt, 0xEE));
    CHECK(driver::enable(now.cpu, made.plan()));
    driver::ring_reader reader;
    unsigned pmis = 0;
    uint64_t read = 0;
    while (now.stored() < 20 * made.ring.bytes) {
        (void)now.cpu.on(action::ptwrite{0x1000, 0x1004, 1, true});
        if (!now.cpu.deliver_pmi()) { continue; }
        ++pmis;
        auto const result = driver::on_topa_pmi(
            now.cpu,
            [&](driver::stopped_trace const& at) {
                auto const got = driver::drain(made.ring, reader, at,
                                               [&](phys_addr, uint64_t bytes) { read += bytes; });
                CHECK(!got.was_stopped);
                return got.next;
            },
            [&] { (void)now.cpu.write(lvt, 0xEE); });
        CHECK(result.trace == driver::trace_state::enabled);
    }
    CHECK(pmis >= 20);
    CHECK(now.cpu.unit().total().lost == 0);
    CHECK(read + made.ring.bytes > now.stored());
}

TEST_CASE("a PMI around VMXON accesses nothing that faults (PRG-160)") {
    for (bool const before_vmxon : {true, false}) {
        bench now{preset::broadwell};
        now.put(0, topa::entry{memory_base | STOP | INT});
        now.put(1, topa::entry{table | END});
        CHECK(now.cpu.write(lvt, 0xEE));
        CHECK(driver::enable(now.cpu, {.ctl = {0x250D}, .output = {{table}, {0x7F}}}));
        while (!now.cpu.pmi_is_deliverable()) {
            (void)now.cpu.on(action::indirect_jump{now.stored() * 77 & 0xFFFF'FFFF});
        }
        // The driver believes that VMX operation has begun already, or it has.
        if (!before_vmxon) {
            (void)now.cpu.on(action::vmxon{0x1000, 0x1004});
            CHECK(!now.cpu.is_tracing());  // VMXON clears TraceEn
        }
        CHECK(now.cpu.deliver_pmi());
        auto const result = driver::on_topa_pmi(
            now.cpu, [](driver::stopped_trace const&) { return driver::pmi_decision{false}; },
            [] {});
        CHECK(!result.fault.happened);
        CHECK(result.outcome ==
              (before_vmxon ? driver::pmi_outcome::handled : driver::pmi_outcome::deferred));
        CHECK(!now.cpu.is_tracing());
    }
    // The mistake: STATUS and the position are written while TraceEn is still 1.
    bench wrong{preset::broadwell};
    wrong.put(0, topa::entry{memory_base});
    wrong.put(1, topa::entry{table | END});
    CHECK(driver::enable(wrong.cpu, {.ctl = {0x250D}, .output = {{table}, {0x7F}}}));
    CHECK(!wrong.cpu.write(0x571, 0));
    CHECK(!wrong.cpu.write(0x560, table));
    CHECK(!wrong.cpu.write(0x561, 0x7F));
}

namespace {

/// Delivers a pending PMI before one access of a procedure.
struct interrupted_port {
    bench& now;
    unsigned when;
    unsigned count = 0;
    bool delivered = false;

    void interrupt() {
        if (count++ != when) { return; }
        delivered = now.cpu.deliver_pmi();
        if (!delivered) { return; }
        auto const result = driver::on_topa_pmi(
            now.cpu, [](driver::stopped_trace const&) { return driver::pmi_decision{}; }, [] {});
        CHECK(!result.fault.happened);
    }
    auto read(uint32_t index) -> port_value {
        interrupt();
        return now.cpu.read(index);
    }
    auto write(uint32_t index, uint64_t value) -> bool {
        interrupt();
        return now.cpu.write(index, value);
    }
};

}  // namespace

TEST_CASE("a PMI inside enabling changes nothing of it (PRG-115,122)") {
    for (unsigned when = 0; when < 4; ++when) {
        bench now;
        ring_of const made{now, four_pages};
        CHECK(driver::set_marks(made.ring, {.wake_up_bytes = 0x1000}));
        CHECK(now.cpu.write(lvt, 0xEE));
        CHECK(driver::enable(now.cpu, made.plan()));
        now.fill(0x1100);
        CHECK(now.cpu.pmi_is_deliverable());  // the PMI of region 0, which arrives late
        auto const saved = driver::save(now.cpu);
        driver::ring_reader reader;
        auto context = saved.state;
        driver::continue_after(driver::drain(made.ring, reader, driver::stopped_at(context),
                                             [](phys_addr, uint64_t) {}),
                               context);
        interrupted_port port{now, when};
        CHECK(driver::restore(port, context));
        CHECK(port.delivered);
        CHECK(now.cpu.is_tracing());
        CHECK(now.cpu.msrs().status.get<ia32_rtit_status::TriggerEn>());
        auto const at = driver::offset_of(made.ring, driver::disable(now.cpu).output);
        CHECK(at.offset >= reader.read_at);
        CHECK(at.offset < reader.read_at + 0x100);
    }
}

TEST_CASE("after a cold reset every MSR is programmed again (PRG-030,070)") {
    bench now;
    ring_of const made{now, four_pages, buffer_recipe::circular};
    auto plan = made.plan();
    plan.ctl = plan.ctl.with(ia32_rtit_ctl::ADDR0_CFG{reg::addr_cfg::filter});
    plan.addr[0] = {{0x1000}, {0x1FFF}};
    CHECK(driver::enable(now.cpu, plan));
    now.fill(0x100);
    auto const saved = driver::save(now.cpu);
    now.cpu.cold_reset({}, 0x1000);
    // The mistake is to write CTL only, since the others were written before: they are 0 now.
    CHECK(now.cpu.msrs().output.base.raw == 0);
    CHECK(now.cpu.msrs().addr[0].b.raw == 0);
    CHECK(driver::restore(now.cpu, saved.state));
    CHECK(now.cpu.msrs().addr[0] == plan.addr[0]);
    now.fill(now.stored() + 0x100);
    auto const at = driver::offset_of(made.ring, driver::disable(now.cpu).output);
    CHECK(at.found);
    CHECK(at.offset > 0x200);
}

TEST_CASE("each context continues with its own PacketByteCnt (PRG-102)") {
    bench now;
    ring_of const made{now, four_pages, buffer_recipe::circular};
    CHECK(driver::enable(now.cpu, made.plan()));
    trace_up_to(now, 0x123);
    auto const a = driver::save(now.cpu);
    using count = ia32_rtit_status::PacketByteCnt;
    CHECK(a.state.status.get<count>() > 0x100);
    auto b = made.plan();
    b.output = driver::output_at(made.ring, 0x2000);
    CHECK(driver::restore(now.cpu, b));  // STATUS of the new context is 0: it begins with a PSB
    auto const of_b = driver::save(now.cpu);
    CHECK(first_packet(now, 0x2000) == packet::kind::psb);
    CHECK(of_b.state.status.get<count>() < 0x100);
    CHECK(driver::restore(now.cpu, a.state));
    CHECK(now.cpu.write(0x570, ctl.raw & ~uint64_t{1}));
    CHECK(now.cpu.msrs().status.get<count>() > a.state.status.get<count>());
    // The mistake: STATUS is not restored, and A goes on with B's count.
    CHECK(now.cpu.write(0x571, of_b.state.status.raw));
    CHECK(now.cpu.write(0x570, ctl.raw));
    CHECK(now.cpu.write(0x570, ctl.raw & ~uint64_t{1}));
    CHECK(now.cpu.msrs().status.get<count>() < 0x123);
}

TEST_CASE("the position that is read before TraceEn is 0 is stale (PRG-034,103)") {
    engine::model_options how;
    how.msrs_lag = true;
    bench now{test::cap_a(), how};
    ring_of const made{now, four_pages, buffer_recipe::circular};
    CHECK(driver::enable(now.cpu, made.plan()));
    now.fill(0x500);
    CHECK(now.cpu.read(0x561).value == 0x7F);  // the mistake
    CHECK(offset_in_region(driver::save(now.cpu).state.output) >= 0x500);
}

TEST_CASE("PacketByteCnt is cleared at each start of a trace, so each begins with a PSB "
          "(PRG-031)") {
    bench now;
    ring_of const made{now, four_pages, buffer_recipe::circular};
    auto const plan = made.plan();
    CHECK(driver::enable(now.cpu, plan));
    CHECK(first_packet(now, 0) == packet::kind::psb);
    now.fill(0x100);
    CHECK(driver::disable(now.cpu));
    // The mistake: the second trace has only its position written.
    CHECK(now.cpu.write(0x560, plan.output.base.raw));
    CHECK(now.cpu.write(0x561, plan.output.mask_ptrs.raw));
    CHECK(now.cpu.write(0x570, plan.ctl.raw));
    CHECK(driver::disable(now.cpu));
    CHECK(first_packet(now, 0) != packet::kind::psb);
    CHECK(driver::enable(now.cpu, plan));
    CHECK(driver::disable(now.cpu));
    CHECK(first_packet(now, 0) == packet::kind::psb);
}

TEST_CASE("INT on the last region only comes too late: the first bytes are overwritten "
          "(PRG-121, OUT-093)") {
    bench now;
    ring_of const made{now, four_pages, buffer_recipe::circular};
    now.put(3, topa::entry{made.entry(3) | INT});
    CHECK(now.cpu.write(lvt, 0xEE));
    CHECK(driver::enable(now.cpu, made.plan()));
    while (!now.cpu.pmi_is_deliverable()) { (void)now.cpu.on(action::ptwrite{0, 4, 1, true}); }
    for (int i = 0; i < 3; ++i) { (void)now.cpu.on(action::ptwrite{0, 4, 1, true}); }
    CHECK(now.stored() > made.ring.bytes);  // the PMI is a little late
    // The recipes put it one region earlier, and refuse a ring of one region.
    bench right;
    ring_of const good{right, four_pages, buffer_recipe::interrupt_on_full};
    CHECK((good.entry(2) & INT) != 0);
    CHECK((good.entry(3) & INT) == 0);
    topa::region const one{memory_base};
    CHECK(driver::build_ring(buffer_recipe::interrupt_on_full, &one, 1, &good.page, 1,
                             topa::limits::of(right.caps))
              .broken == rule::OUT_093);
}

TEST_CASE("the PMI is acknowledged after TraceEn is 0 and the trace is read, so none is left "
          "(PRG-122,123)") {
    auto const filled = [](bench& now) {
        now.put(0, topa::entry{memory_base | INT});
        now.put(1, topa::entry{(memory_base + 0x1000) | INT});
        now.put(2, topa::entry{table | END});
        CHECK(now.cpu.write(lvt, 0xEE));
        CHECK(driver::enable(now.cpu, {.ctl = ctl, .output = {{table}, {0x7F}}}));
        while (!now.cpu.pmi_is_deliverable()) { (void)now.cpu.on(action::ptwrite{0, 4, 1, true}); }
        CHECK(now.cpu.deliver_pmi());
        // The handler is late: the second region is almost full.
        trace_up_to(now, 0x1FE0);
    };
    constexpr uint64_t bit = uint64_t{1} << 55;
    bench wrong;
    filled(wrong);
    CHECK(wrong.cpu.write(0x390, bit));  // the mistake: acknowledged first
    for (int i = 0; i < 4; ++i) { (void)wrong.cpu.on(action::ptwrite{0, 4, 1, true}); }
    CHECK(wrong.cpu.write(0x570, ctl.raw & ~uint64_t{1}));
    CHECK((wrong.cpu.read(0x38E).value & bit) != 0);
    bench right;
    filled(right);
    auto const result = driver::on_topa_pmi(
        right.cpu,
        [&](driver::stopped_trace const&) {
            CHECK(!right.cpu.is_tracing());
            CHECK((right.cpu.read(0x38E).value & bit) != 0);  // not acknowledged yet
            return driver::pmi_decision{.resume = false};
        },
        [&] { CHECK((right.cpu.read(0x38E).value & bit) == 0); });
    CHECK(result.outcome == driver::pmi_outcome::handled);
    CHECK((right.cpu.read(0x38E).value & bit) == 0);
}

TEST_CASE("restoring CTL first makes the other writes fault (PRG-020,101)") {
    bench now;
    ring_of const made{now, four_pages, buffer_recipe::circular};
    CHECK(driver::enable(now.cpu, made.plan()));
    auto const saved = driver::save(now.cpu);
    CHECK(now.cpu.write(0x570, saved.state.ctl.raw));  // the mistake
    CHECK(!now.cpu.write(0x571, saved.state.status.raw));
    CHECK(!now.cpu.write(0x560, saved.state.output.base.raw));
    CHECK(now.cpu.write(0x570, 0));
    simulate::recording_port log{now.cpu};
    CHECK(driver::restore(log, saved.state));
    CHECK((log.end() - 1)->index == 0x570);
}

TEST_CASE("VMXON ends a trace where Intel PT is not allowed in VMX operation (PRG-160)") {
    bench now{preset::broadwell};
    now.put(0, topa::entry{memory_base});
    now.put(1, topa::entry{table | END});
    access::msr_state const plan{.ctl = {0x250D}, .output = {{table}, {0x7F}}};
    CHECK(driver::enable(now.cpu, plan));
    (void)now.cpu.on(action::vmxon{0x1000, 0x1004});
    auto const state = driver::check_enabled(now.cpu, plan);
    CHECK(!state.is_ours);
    CHECK(state.trace == driver::trace_state::disabled);
    // Until VMXOFF each write of CTL faults, and the procedures say so.
    auto const again = driver::enable(now.cpu, plan);
    CHECK(again.fault.index == 0x570);
    CHECK(again.trace == driver::trace_state::disabled);
    (void)now.cpu.on(action::vmxoff{0x1008});
    CHECK(driver::enable(now.cpu, plan));
}

TEST_CASE("an edit of the current entry has no effect while TraceEn is 1 (PRG-091,124)") {
    constexpr uint64_t elsewhere = memory_base + 0x10'0000;
    auto const traced_to = [](bench& now) {
        uint64_t const before = now.stored();
        now.fill(before + 0x20);
        bool const moved = now.trace[0x10'0000 + (before & 0xFFF)] != 0;
        return moved;
    };
    bench wrong;
    ring_of const made{wrong, four_pages, buffer_recipe::circular};
    CHECK(driver::enable(wrong.cpu, made.plan()));
    wrong.fill(0x100);
    wrong.put(0, topa::entry{elsewhere});
    CHECK(!traced_to(wrong));
    bench right;
    ring_of const good{right, four_pages, buffer_recipe::circular};
    CHECK(driver::enable(right.cpu, good.plan()));
    right.fill(0x100);
    CHECK(driver::while_disabled(right.cpu, ctl, [&] { right.put(0, topa::entry{elsewhere}); }));
    CHECK(traced_to(right));
}
