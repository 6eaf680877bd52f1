// SPDX-License-Identifier: BSL-1.0
// The cases PC of programming.md, whose tables are read from the page.
#include <ptspec/access/lbr.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/switch_context.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/driver/ring.hpp>
#include <ptspec/driver/ring_reader.hpp>
#include <ptspec/driver/topa_pmi.hpp>
#include <ptspec/driver/triage.hpp>
#include <ptspec/base/host_memory.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/vmx/controls.hpp>

#include <support/check_twice.hpp>
#include <support/driver_bench.hpp>
#include <support/pc_rows.hpp>

#include <functional>
#include <memory>
#include <set>

using namespace ptspec;
using test::bench;
using test::cap_a;
using test::difference;
using test::pc_row_of;
using test::scripted_port;
using reg::ia32_rtit_ctl;

namespace {

using test::table;

/// The plan of the base configuration, or of another CTL.
constexpr auto plan_at(uint64_t base, uint64_t mask_ptrs = 0x7F, uint64_t ctl = 0x250D)
    -> access::msr_state {
    return {.ctl = {ctl}, .output = {{base}, {mask_ptrs}}};
}

/// Runs a procedure for a row over a recording port, and returns the first difference.
template <class Procedure>
auto run(char const* id, Procedure&& procedure) -> std::string {
    auto const row = pc_row_of(id);
    scripted_port port{row};
    simulate::recording_port log{port};
    procedure(log, row);
    return difference(log, row);
}

constexpr topa::region three_regions[] = {{0x2000'0000, topa::region_size::size_64K},
                                          {0x2001'0000, topa::region_size::size_64K},
                                          {0x2002'0000, topa::region_size::size_64K}};

}  // namespace

TEST_CASE("PC-02: enabling ToPA writes CTL last (PRG-030)") {
    CHECK(run("PC-02", [](auto& log, auto const&) {
              CHECK(driver::enable(log, plan_at(table)).trace == driver::trace_state::enabled);
          }) == "");
}

TEST_CASE("PC-03: enabling a single range writes its base and its mask (PRG-030,081,128)") {
    CHECK(run("PC-03", [](auto& log, auto const&) {
              auto const range = single_range::build({.base = 0x2000'0000, .bytes = 0x1'0000});
              access::msr_state plan{.ctl = {0x240D}, .output = {range.base, range.pointers}};
              CHECK(driver::enable(log, plan));
          }) == "");
}

TEST_CASE("PC-12: disabling reads where the trace ends (PRG-040,129)") {
    CHECK(run("PC-12", [](auto& log, auto const& row) {
              auto const stopped = driver::disable(log);
              CHECK(stopped);
              topa::entry entries[4];
              driver::table_page const page{table, entries};
              auto const ring = driver::build_ring(driver::buffer_recipe::circular, three_regions,
                                                   3, &page, 1, {{39}, true});
              REQUIRE(ring);
              auto const at = driver::offset_of(ring.ring, stopped.output);
              CHECK(at);
              CHECK(at.offset == test::expected_result(row, "pos"));
          }) == "");
}

TEST_CASE("PC-15: restarting after ToPA STOP moves the output pointers (PRG-041,086,088)") {
    CHECK(run("PC-15", [](auto& log, auto const&) {
              CHECK(driver::restart(log, plan_at(table)).trace == driver::trace_state::enabled);
          }) == "");
}

TEST_CASE("PC-16: the handler of a ToPA PMI stops, drains, acknowledges, unmasks (PRG-122)") {
    CHECK(run("PC-16", [](auto& log, auto const&) {
              auto const result = driver::on_topa_pmi(
                  log,
                  [&](driver::stopped_trace const&) {
                      log.note("drain");
                      return driver::pmi_decision{};
                  },
                  [&] { log.note("unmask LVT"); });
              CHECK(result.outcome == driver::pmi_outcome::handled);
              CHECK(result.trace == driver::trace_state::enabled);
          }) == "");
}

TEST_CASE("PC-18: a context is saved after TraceEn is 0, and restored CTL last (PRG-100..102)") {
    CHECK(run("PC-18", [](auto& log, auto const&) {
              auto const saved = driver::save(log);
              CHECK(saved);
              log.note("switch");
              CHECK(driver::restore(log, saved.state).trace == driver::trace_state::enabled);
          }) == "");
}

TEST_CASE("PC-23: a TraceStop is recovered from with TraceEn 0 (PRG-041,061,020)") {
    CHECK(run("PC-23", [](auto& log, auto const&) {
              CHECK(!driver::write(log, reg::ia32_rtit_status{}));  // TraceEn is still 1
              auto const result = driver::recover(log, {0x250D});
              CHECK(result.status.template get<reg::ia32_rtit_status::Stopped>());
              CHECK(result.trace == driver::trace_state::enabled);
          }) == "");
}

TEST_CASE("PC-24: tables are edited while TraceEn is 0 (PRG-091,124)") {
    CHECK(run("PC-24", [](auto& log, auto const&) {
              CHECK(driver::while_disabled(log, {0x250D}, [&] { log.note("edit table"); }));
          }) == "");
}

// ------------------------------------------------------------------------------------ probes

namespace {

namespace action = engine::action;
using reg::ia32_rtit_status;

/// A processor in the state that the setup of a row says.
auto set_up(test::pc_row const& row) -> std::unique_ptr<bench> {
    auto const from = pc_notation::setups_of(row.setup).front();
    auto made = std::make_unique<bench>(from.caps);
    for (auto const& one : from.memory) {
        REQUIRE(one.address >= table);
        made->put(static_cast<size_t>(one.address - table) / 8, topa::entry{one.value});
    }
    if (from.msrs.in_vmx_operation) { (void)made->cpu.on(action::vmxon{0x1000, 0x1003}); }
    if (from.msrs.ctl.raw != 0) {
        CHECK(made->cpu.write(0x560, from.msrs.output.base.raw));
        CHECK(made->cpu.write(0x570, from.msrs.ctl.raw));
    }
    return made;
}

/// Runs the accesses of a probe, and returns the first whose result differs.
auto run_probe(char const* id) -> std::string {
    auto const row = pc_row_of(id);
    auto const now = set_up(row);
    if (row.operation.size() != row.expected.size()) { return "another number of results"; }
    for (size_t i = 0; i < row.operation.size(); ++i) {
        auto const& text = row.operation[i];
        bool done = false;
        auto const before = now->cpu.msrs();
        if (text == "XRSTORS RFBM[8]=1") {
            done = now->cpu.xrstors({}).took_effect();
        } else {
            auto const item = test::pc_item_of(text);
            if (item.what != test::pc_item::kind::write) { return "an unknown access: " + text; }
            done = now->cpu.write(item.index, item.value);
        }
        if (row.expected[i] != (done ? "ok" : "#GP")) { return text + " differs"; }
        if (!done && now->cpu.msrs() != before) { return text + " changes the state"; }
    }
    return "";
}

}  // namespace

TEST_CASE("PC-05..11: accesses that fault change nothing (PRG-002,020..022,026,136)") {
    for (char const* const id : {"PC-05", "PC-06", "PC-07", "PC-08", "PC-09", "PC-10", "PC-11"}) {
        INFO(id);
        CHECK(run_probe(id) == "");
    }
}

TEST_CASE("PC-20, 28, 29, 30: XRSTORS while tracing, output schemes, VMX operation "
          "(PRG-002,022,025,080,112,160)") {
    for (char const* const id : {"PC-20", "PC-28", "PC-29", "PC-30"}) {
        INFO(id);
        CHECK(run_probe(id) == "");
    }
}

// ------------------------------------------------------------------------------------ states

namespace {

/// The first claim `name=v` of some items that does not hold. `value_of(name)` returns the text of
/// the value now. Items `ok` are counted.
auto first_wrong_claim(std::vector<std::string> const& items,
                       std::function<std::string(std::string const&)> const& value_of)
    -> std::string {
    for (auto const& item : items) {
        if (item == "ok") { continue; }
        size_t const at = item.find('=');
        if (at == std::string::npos) { return "not a claim: " + item; }
        std::string const name = item.substr(0, at);
        std::string const now = value_of(name);
        std::string const wanted = item.substr(at + 1);
        bool const is_text = wanted.find('[') != std::string::npos;
        bool const same = is_text ? now == wanted : test::hex_of(now) == test::hex_of(wanted);
        if (now.empty() || !same) { return item + ", but " + now; }
    }
    return "";
}

auto hex(uint64_t value) -> std::string {
    char text[17];
    std::snprintf(text, sizeof text, "%llX", static_cast<unsigned long long>(value));
    return text;
}
auto interval(uint64_t from, uint64_t count) -> std::string {
    return "[" + hex(from) + "," + hex(from + count) + ")";
}

/// A register or a field by its name in a claim.
auto state_by_name(access::msr_state const& msrs, std::string const& name) -> std::string {
    using status = ia32_rtit_status;
    if (name == "560") { return hex(msrs.output.base.raw); }
    if (name == "561") { return hex(msrs.output.mask_ptrs.raw); }
    if (name == "570") { return hex(msrs.ctl.raw); }
    if (name == "571") { return hex(msrs.status.raw); }
    if (name == "Error") { return hex(msrs.status.get<status::Error>()); }
    if (name == "Stopped") { return hex(msrs.status.get<status::Stopped>()); }
    if (name == "TriggerEn") { return hex(msrs.status.get<status::TriggerEn>()); }
    if (name == "TraceEn") { return hex(msrs.ctl.get<ia32_rtit_ctl::TraceEn>()); }
    return "";
}

auto wrong_state(char const* id, bench const& now) -> std::string {
    return first_wrong_claim(pc_row_of(id).expected, [&](std::string const& name) {
        return state_by_name(now.cpu.msrs(), name);
    });
}

constexpr uint64_t STOP = 0x10;
constexpr uint64_t INT = 4;
constexpr uint64_t size_64K = 4 << 6;

/// The ring of the first `count` 64 KB regions, and memory for its table.
struct rings {
    topa::entry entries[4] = {};
    driver::table_page page{table, entries};

    auto of(size_t count, driver::buffer_recipe how = driver::buffer_recipe::circular)
        -> driver::ring {
        return driver::build_ring(how, three_regions, count, &page, 1, {{39}, true}).ring;
    }
};

/// The parts of a ring as `[a,b),[c,d)`.
auto intervals(driver::ring const& in, driver::ring_part part) -> std::string {
    if (part.from + part.count <= in.bytes) { return interval(part.from, part.count); }
    uint64_t const first = in.bytes - part.from;
    return interval(part.from, first) + "," + interval(0, part.count - first);
}

}  // namespace

TEST_CASE("PC-04: a misaligned single range is an error after enabling (PRG-023,033,082)") {
    bench now;
    access::msr_state const plan{.ctl = {0x240D}, .output = {{0x2000'8000}, {0xFFFF}}};
    CHECK(driver::enable(now.cpu, plan));
    CHECK(wrong_state("PC-04", now) == "");
    CHECK(!driver::check_enabled(now.cpu, plan));
    CHECK(now.stored() == 0);
}

TEST_CASE("PC-13: a wrapped ring is read from its position on (PRG-129,141)") {
    rings made;
    auto const ring = made.of(3);
    access::msr_state const saved{.output = {{table}, {0x1234'0000'017F}}};
    auto const part = driver::snapshot(ring, driver::stopped_at(saved), true);
    CHECK(part.found);
    CHECK(first_wrong_claim(pc_row_of("PC-13").expected, [&](std::string const& name) {
              return name == "data" ? intervals(ring, part.part) : "";
          }) == "");
}

TEST_CASE("PC-14: STOP holds the position at the end of its region (PRG-083..086)") {
    bench now;
    now.put(0, topa::entry{0x2000'0000 | size_64K});
    now.put(1, topa::entry{0x2001'0000 | size_64K | STOP});
    CHECK(driver::enable(now.cpu, {.ctl = {0x250D | 1U << 12}, .output = {{table}, {0x7F}}}));
    now.fill(0x2'0000);
    now.fill(0x2'0000);
    for (int i = 0; i < 10; ++i) { (void)now.cpu.on(action::indirect_jump{0x1234'5678}); }
    CHECK(now.stored() == 0x2'0000);
    rings made;
    auto const ring = made.of(2, driver::buffer_recipe::stop_on_full);
    CHECK(first_wrong_claim(pc_row_of("PC-14").expected, [&](std::string const& name) {
              auto const msrs = now.cpu.msrs();
              auto const part = driver::snapshot(ring, driver::stopped_at(msrs), false);
              return name == "data" ? intervals(ring, part.part)
                                    : state_by_name(now.cpu.msrs(), name);
          }) == "");
}

TEST_CASE("PC-17: INT and STOP together: Stopped first, then the PMI (PRG-087,126)") {
    bench now;
    now.put(0, topa::entry{0x2000'0000 | size_64K | STOP | INT});
    CHECK(now.cpu.write(reg::ia32_x2apic_lvt_pmi::address, 0xEE));
    CHECK(driver::enable(now.cpu, {.ctl = {0x250D | 1U << 12}, .output = {{table}, {0x7F}}}));
    now.fill(0x1'0000);
    CHECK(now.cpu.msrs().status.get<ia32_rtit_status::Stopped>());
    CHECK(now.cpu.deliver_pmi());
    simulate::recording_port log{now.cpu};
    auto const result = driver::on_topa_pmi(
        log,
        [&](driver::stopped_trace const&) {
            return driver::pmi_decision{true, true, driver::in_topa({.table = table})};
        },
        [] {});
    CHECK(result.trace == driver::trace_state::enabled);
    CHECK(result.status.get<ia32_rtit_status::Stopped>());
    // STATUS without Stopped, then the position, then CTL.
    std::vector<std::uint32_t> writes;
    for (auto const& one : log) {
        if (one.what != simulate::logged_access::kind::write) { continue; }
        writes.push_back(one.index.value);
        if (one.index == 0x571) { CHECK(one.value == (result.status.raw & ~0x20ULL)); }
    }
    std::vector<std::uint32_t> const wanted{0x570, 0x571, 0x560, 0x561, 0x390, 0x570};
    CHECK(writes == wanted);
    CHECK(now.cpu.msrs().status.get<ia32_rtit_status::TriggerEn>());
}

TEST_CASE("PC-19: XSAVES stores CTL as it was, and the rest after TraceEn is 0 (PRG-110,111)") {
    bench now;
    now.put(0, topa::entry{0x2000'0000 | size_64K});
    CHECK(driver::enable(now.cpu, {.ctl = {0x250D}, .output = {{table}, {0x7F}}}));
    (void)now.cpu.on(action::indirect_jump{0x1234'5678});
    auto const saved = now.cpu.xsaves();
    CHECK(saved.took_effect());
    CHECK(first_wrong_claim(pc_row_of("PC-19").expected, [&](std::string const& name) {
              if (name.rfind("image+", 0) != 0) { return state_by_name(now.cpu.msrs(), name); }
              uint64_t const at = test::hex_of(name.substr(6)) / 8;
              uint64_t all = saved.image.quadwords[at];
              for (uint64_t i = at; at > 8 && i < 16; ++i) { all |= saved.image.quadwords[i]; }
              return hex(all);
          }) == "");
    auto const msrs = now.cpu.msrs();
    CHECK(saved.image.quadwords[2] == msrs.output.mask_ptrs.raw);
    CHECK(saved.image.quadwords[3] == msrs.status.raw);
    CHECK((msrs.output.mask_ptrs.raw >> 32) == now.stored());
}

TEST_CASE("PC-22: a warm reset keeps all but TraceEn, or clears everything (PRG-070,072)") {
    // The two halves of the row are claims for a processor with EBX[2] = 1 and one without.
    std::string whole;
    for (auto const& item : pc_row_of("PC-22").expected) { whole += item; }
    auto const claims = [&](std::string const& condition) {
        size_t const at = whole.find(condition + ": ") + condition.size() + 2;
        std::string const half = whole.substr(at, whole.find(" / ", at) - at);
        std::vector<std::string> items;
        for (size_t from = 0; from <= half.size();) {
            size_t const to = half.find(", ", from);
            items.push_back(half.substr(from, to == std::string::npos ? to : to - from));
            if (to == std::string::npos) { break; }
            from = to + 2;
        }
        return items;
    };
    for (bool const keeps : {true, false}) {
        auto caps = cap_a();
        if (!keeps) { caps.leaf_14_0_ebx = {caps.leaf_14_0_ebx.raw & ~4U}; }
        bench now;
        now.put(2, topa::entry{0x2000'0000 | size_64K});
        access::msr_state raw;
        raw.ctl = {0x250D};
        raw.output.base = {table};
        raw.output.mask_ptrs = {0x1234'0000'017F};
        engine::trace_unit<> unit{
            caps, raw, {}, 0x1000, engine::options_of(engine::model_kind::manual)};
        unit.warm_reset({}, 0xFFF0);
        auto const items = claims(keeps ? "EBX[2]=1" : "EBX[2]=0");
        CHECK(items.size() >= 2);
        CHECK(first_wrong_claim(items, [&](std::string const& name) {
                  return state_by_name(unit.msrs(), name);
              }) == "");
    }
}

TEST_CASE("INIT keeps all MSRs, and tracing continues (PRG-072)") {
    bench now;
    now.put(0, topa::entry{0x2000'0000 | size_64K});
    CHECK(driver::enable(now.cpu, {.ctl = {0x250D}, .output = {{table}, {0x7F}}}));
    auto const before = now.cpu.msrs();
    (void)now.cpu.on(action::init{0x1000, 0xFFF0, {}, true});
    auto const after = now.cpu.msrs();
    CHECK(after.ctl == before.ctl);
    CHECK(after.output.base == before.output.base);
    CHECK(after.status.get<ia32_rtit_status::TriggerEn>());
    CHECK(after.output.mask_ptrs.raw > before.output.mask_ptrs.raw);
}

TEST_CASE("PC-25: a misaligned region is an error when it becomes current (PRG-088)") {
    bench now;
    now.put(0, topa::entry{0x2000'0000 | size_64K});
    now.put(1, topa::entry{0x1000'1000 | size_64K});
    CHECK(driver::enable(now.cpu, {.ctl = {0x250D | 1U << 12}, .output = {{table}, {0x7F}}}));
    now.fill(0x1'0000);
    CHECK(wrong_state("PC-25", now) == "");
    auto const why = driver::triage(driver::disable(now.cpu), now.caps, now.memory);
    CHECK(why.reason == driver::end_reason::operational_error);
    CHECK(why.explanation.ended_by == rule::OUT_062);
}

TEST_CASE("PC-26: END in entry 0 is an error; the WRMSRs do not fault (PRG-088)") {
    bench now;
    now.put(0, topa::link_to(table));
    CHECK(driver::enable(now.cpu, {.ctl = {0x250D}, .output = {{table}, {0x7F}}}));
    CHECK(wrong_state("PC-26", now) == "");
}

TEST_CASE("PC-36: the time of an MTC follows from TSC, TMA and CPUID.15H (PRG-137)") {
    // The crystal clock is at 3456H when the TSC is 100000000H - 28H.
    bench now;
    now.put(0, topa::entry{0x2000'0000 | size_64K});
    auto const& caps = now.caps;
    uint64_t const ratio = caps.leaf_15_ebx.raw / caps.leaf_15_eax.raw;
    CHECK(ratio == 0x58);
    uint64_t const tsc = 0x1'0000'0000;
    uint64_t const ctc = 0x3456;
    uint64_t const fc = 0x28;
    unsigned const mtc_freq = 3;
    unsigned const payload = 0x8B;
    unsigned const bits = mtc_freq + 8 < 16 ? mtc_freq + 8 : 16;
    uint64_t const d = ((uint64_t{payload} << mtc_freq) - ctc) & low_bits(bits);
    uint64_t const time = tsc - fc + d * ratio;
    CHECK(first_wrong_claim(pc_row_of("PC-36").expected, [&](std::string const& name) {
              return name == "d" ? hex(d) : name == "time" ? hex(time) : "";
          }) == "");
    // The trace unit sends this MTC at that tick of the crystal clock.
    auto const ctl = ia32_rtit_ctl{0x250D}.with(ia32_rtit_ctl::MTCEn{true},
                                                ia32_rtit_ctl::MTCFreq{3});
    (void)now.cpu.on(action::elapsed{0, ctc, tsc - fc});
    CHECK(driver::enable(now.cpu, {.ctl = ctl, .output = {{table}, {0x7F}}}));
    (void)now.cpu.on(action::elapsed{100, ctc + d - 1, tsc - fc + (d - 1) * ratio});
    (void)driver::flush(now.cpu, ctl);
    auto const mtcs = [&] {
        uint64_t count = 0;
        trace::reader reader{byte_view{now.trace.data(), now.stored()}};
        for (auto item = reader.next(); item; item = reader.next()) {
            count += item.what == trace::item_type::packet &&
                     item.packet.kind() == packet::kind::mtc &&
                     item.packet.raw().low >> 8 == payload;
        }
        return count;
    };
    CHECK(mtcs() == 0);
    (void)now.cpu.on(action::elapsed{100, ctc + d, tsc - fc + d * ratio});
    (void)driver::flush(now.cpu, ctl);
    CHECK(mtcs() == 1);
}

TEST_CASE("PC-37: a single range continues at its start (PRG-081,142)") {
    // The trace unit cannot be made to write 20H bytes exactly: the output engine is used alone.
    driver::output_registers const before{{0x2000'0000}, {0xFFF0'0000'FFFF}};
    bench plain;
    engine::output out;
    access::msr_state msrs;
    msrs.ctl = {0x240D};
    msrs.status = ia32_rtit_status{}.with(ia32_rtit_status::TriggerEn{true});
    msrs.output = before;
    bool const started = !out.start(plain.caps, msrs, plain.memory).happened;
    CHECK(started);
    byte_array<0x20> const trace{};
    CHECK(out.write(msrs, plain.memory, trace).stored == 0x20);
    out.write_back(msrs);
    auto const part = driver::snapshot_of_single_range(msrs.output, true);
    CHECK(driver::snapshot_of_single_range(msrs.output, false).first_bytes == 0);
    CHECK(first_wrong_claim(pc_row_of("PC-37").expected, [&](std::string const& name) {
              if (name == "561") { return hex(msrs.output.mask_ptrs.raw); }
              // The newest 20H bytes: the end of the older part, and the newer part.
              uint64_t const old = 0x20 - part.second_bytes;
              return interval((part.first_base + part.first_bytes).value - old, old) + "," +
                     interval(part.second_base.value, part.second_bytes);
          }) == "");
}

// ------------------------------------------------------------------------------------ prose

TEST_CASE("PC-31, 32: a VMM saves the host's trace, and restores it after the guest's (PRG-170)") {
    bench now;
    now.put(0, topa::entry{0x2000'0000 | size_64K});
    now.put(4, topa::entry{0x2001'0000 | size_64K});
    using ctl = ia32_rtit_ctl;
    auto const ranges = ctl{0x250D}.with(ctl::ADDR0_CFG{reg::addr_cfg::filter},
                                         ctl::ADDR1_CFG{reg::addr_cfg::filter},
                                         ctl::CR3Filter{true});
    access::msr_state const host{.ctl = ranges,
                                 .output = {{table}, {0x7F}},
                                 .cr3_match = {0},
                                 .addr = {{{0}, {0xFFFF'FFFF}}, {{0x1000}, {0x1FFF}}}};
    access::msr_state const guest{.ctl = ranges.with(ctl::MTCEn{true}, ctl::MTCFreq{3}),
                                  .output = {{table}, {0x27F}},
                                  .cr3_match = {0x5000},
                                  .addr = {{{0x2000}, {0x2FFF}}, {{0x3000}, {0x3FFF}}}};
    CHECK(driver::enable(now.cpu, host));
    simulate::recording_port log{now.cpu};
    auto const saved = driver::save(log);
    CHECK(saved);
    // Everything of the guest except CTL, which VM entry loads from the VMCS.
    auto without_ctl = guest;
    without_ctl.ctl = guest.ctl.with(ctl::TraceEn{false});
    CHECK(driver::restore(log, without_ctl));
    std::vector<std::uint32_t> indices;
    for (auto const& one : log) {
        if (one.what != simulate::logged_access::kind::fence) {
            indices.push_back(one.index.value);
        }
    }
    std::vector<std::uint32_t> const wanted{
        0x570, 0x570, 0x571, 0x560, 0x561, 0x572, 0x580, 0x581, 0x582, 0x583,  // saved
        0x571, 0x560, 0x561, 0x572, 0x580, 0x581, 0x582, 0x583, 0x570};        // restored
    CHECK(indices == wanted);
    CHECK(!now.cpu.is_tracing());
    (void)now.cpu.on(action::vm_entry{.at = 0x1000, .to = 0x5000, .loads = {true, guest.ctl}});
    CHECK(now.cpu.msrs().ctl == guest.ctl);
    // VM exit clears CTL. The guest's state is then exact, and the host's is restored.
    (void)now.cpu.on(action::vm_exit{.from = 0x5000, .to = 0x1000, .loads = {true, {}}});
    CHECK(now.cpu.msrs().ctl.raw == 0);
    auto of_guest = driver::save(now.cpu);
    CHECK(of_guest);
    CHECK(driver::restore(now.cpu, saved.state));
    CHECK(now.cpu.msrs().ctl == host.ctl);
    CHECK(now.cpu.msrs().addr[1] == host.addr[1]);
}

TEST_CASE("PC-33: VM entry fails while the host traces and the entry loads CTL (PRG-162,171)") {
    auto const caps = cpu::preset::ice_lake_u;
    vmx::controls const loads{.vm_entry = {1U << 18}};
    CHECK(vmx::broken_rule(caps, loads, {0x250D}) == rule::REG_130);
    CHECK(vmx::broken_rule(caps, loads, {0x250C}) == rule::none);
    CHECK(vmx::broken_rule(caps, {}, {0x250D}) == rule::none);
}

TEST_CASE("PC-35: while Intel PT traces, LBR reads are 0 and writes are dropped; clearing TraceEn "
          "resets them (PRG-044,150,151)") {
    reg::cpuid_01h_eax const skylake{0x000406E3};  // 06_4EH
    reg::cpuid_01h_eax const later{0x000806EA};
    for (std::uint32_t const index : {0x680U, 0x1C8U}) {
        CHECK(access::is_suspended(skylake, {0x250D}, index));
        CHECK(!access::is_suspended(skylake, {0x250C}, index));
        CHECK(!access::is_suspended(later, {0x250D}, index));
    }
    CHECK(!access::is_suspended(skylake, {0x250D}, 0x1D9));  // IA32_DEBUGCTL is not changed
    CHECK(access::resets_lbr(skylake, {0x250D}, {0x250C}));
    CHECK(!access::resets_lbr(later, {0x250D}, {0x250C}));
}

// ------------------------------------------------------------------------------------ rules

namespace {

/// True if WRMSR of CTL faults on CAP-A with another leaf 14H.0.
auto ctl_faults(std::uint32_t ebx, std::uint32_t ecx, std::uint64_t value) -> bool {
    auto caps = cap_a();
    caps.leaf_14_0_ebx = {ebx};
    caps.leaf_14_0_ecx = {ecx};
    bench now{caps};
    return !now.cpu.write(0x570, value);
}

}  // namespace

TEST_CASE("each capability bit permits its fields; without it they fault (PRG-002,022)") {
    struct row {
        std::uint32_t ebx;
        std::uint32_t ecx;
        std::uint64_t ctl;
    };
    row const rows[] = {
        {1U << 0, 0, 0x80},                    // CR3Filter
        {1U << 1, 0, 0x2},                     // CYCEn
        {1U << 1, 0, 1U << 24},                // PSBFreq
        {1U << 1, 0, 1U << 19},                // CycThresh
        {1U << 2, 0, std::uint64_t{1} << 32},  // ADDR0_CFG
        {1U << 3, 0, 0x200},                   // MTCEn
        {1U << 4, 0, 0x1000},                  // PTWEn
        {1U << 4, 0, 0x20},                    // FUPonPTW
        {1U << 5, 0, 0x10},                    // PwrEvtEn
        {1U << 6, 0, std::uint64_t{1} << 56},  // InjectPsbPmiOnEnable
        {1U << 7, 0, 0x8000'0000},             // EventEn
        {1U << 8, 0, std::uint64_t{1} << 55},  // DisTNT
        {0, 1U << 0, 0x100},                   // ToPA
        {0, 1U << 3, 0x40},                    // FabricEn
    };
    for (auto const& one : rows) {
        INFO(hex(one.ctl));
        CHECK(!ctl_faults(0x1FF, 0x8000'000F, one.ctl));
        CHECK(ctl_faults(0x1FF & ~one.ebx, 0x8000'000F & ~one.ecx, one.ctl));
    }
    // Without single-range output, TraceEn needs ToPA or FabricEn.
    CHECK(ctl_faults(0x1FF, 0x8000'0003, 0x2001));
    CHECK(!ctl_faults(0x1FF, 0x8000'0007, 0x2001));
    // Without MTC, TraceEn needs BranchEn (PRG-027).
    CHECK(ctl_faults(0x1FF & ~8U, 0x8000'0007, 0x1));
    CHECK(!ctl_faults(0x1FF & ~8U, 0x8000'0007, 0x2001));
}

TEST_CASE("read-only bits ignore writes; software sets Error and Stopped only to restore them "
          "(PRG-024)") {
    bench now;
    CHECK(now.cpu.write(0x571, 0x37));
    CHECK(now.cpu.read(0x571).value == 0x30);
    CHECK(now.cpu.write(0x561, 0));
    CHECK(now.cpu.read(0x561).value == 0x7F);
    now.put(0, topa::entry{0x2000'0000 | size_64K});
    CHECK(driver::restore(now.cpu, {.ctl = {0x250D}, .status = {0x20}, .output = {{table}, {}}}));
    CHECK(!now.cpu.msrs().status.get<ia32_rtit_status::TriggerEn>());
    CHECK(now.cpu.write(0x570, 0x250C));
    CHECK((now.cpu.read(0x571).value & 0x30) == 0x20);  // only software clears Stopped
}

TEST_CASE("XRSTORS and VM entry obey the rules of WRMSR (PRG-025)") {
    bench now;
    access::xsave_pt_state image{};
    image.quadwords[0] = std::uint64_t{1} << 63;  // a reserved bit of CTL
    CHECK(!now.cpu.xrstors(image).took_effect());
    image.quadwords[0] = 0x250C;
    image.quadwords[1] = 0x41;  // OUTPUT_BASE[6:0]
    CHECK(!now.cpu.xrstors(image).took_effect());
    image.quadwords[1] = table;
    CHECK(now.cpu.xrstors(image).took_effect());
    CHECK(now.cpu.msrs().ctl.raw == 0x250C);
}

TEST_CASE("encodings are checked with their enabling bit off, and 0 is always legal (PRG-026)") {
    CHECK(ctl_faults(0x1FF, 0x8000'0007, 0x4000));   // MTCFreq 1, MTCEn 0
    CHECK(!ctl_faults(0x1FF, 0x8000'0007, 0xC000));  // MTCFreq 3, in the bitmap
    auto caps = cap_a();
    caps.leaf_14_1_eax = {2};  // an empty bitmap
    bench now{caps};
    CHECK(now.cpu.write(0x570, 0x200));
}

TEST_CASE("enabling generates PSB+ first, with TSC and CBR, then TIP.PGE; disabling FUP and "
          "TIP.PGD (PRG-035, GEN-180..183)") {
    bench now;
    now.put(0, topa::entry{0x2000'0000 | size_64K});
    CHECK(driver::enable(now.cpu, {.ctl = {0x250D}, .output = {{table}, {0x7F}}}));
    CHECK(driver::disable(now.cpu));
    std::vector<packet::kind> kinds;
    trace::reader reader{byte_view{now.trace.data(), now.stored()}};
    for (auto item = reader.next(); item; item = reader.next()) {
        if (item.what == trace::item_type::packet) { kinds.push_back(item.packet.kind()); }
    }
    using enum packet::kind;
    std::vector<packet::kind> const wanted{psb,       tsc,     cbr, pip,    psbend,
                                           mode_exec, tip_pge, fup, tip_pgd};
    bool const same = kinds == wanted;
    CHECK(same);
}

TEST_CASE("after the flush the position is exact, and a full INT region has its PMI "
          "(PRG-060,062,063)") {
    auto late = engine::options_of(engine::model_kind::manual);
    late.drained_at_once = 0;
    late.msrs_lag = true;
    std::vector<uint8_t> entries(0x1000);
    std::vector<uint8_t> trace(0x2000);
    store_le64(entries.data(), 0x2000'0000 | INT);
    store_le64(entries.data() + 8, 0x2000'1000);
    store_le64(entries.data() + 16, table | 1);
    host_region const regions[] = {{table, entries.data(), entries.size()},
                                   {0x2000'0000, trace.data(), trace.size()}};
    host_memory memory{regions};
    simulate::no_tap tap;
    simulate::fake_processor<host_memory, simulate::no_tap, 8192> cpu{cap_a(), memory, tap,
                                                                      {},      0x1000, late};
    CHECK(driver::enable(cpu, {.ctl = {0x250D | 1U << 12}, .output = {{table}, {0x7F}}}));
    for (int i = 0; i < 500; ++i) { (void)cpu.on(action::ptwrite{0x1000, 0x1004, 1, true}); }
    CHECK(cpu.unit().total().stored == 0);  // without a flush nothing may be in memory
    CHECK(cpu.read(0x561).value == 0x7F);
    simulate::recording_port log{cpu};
    auto const stopped = driver::disable(log);
    CHECK(cpu.unit().total().stored > 0x1000);
    CHECK(stopped.output.mask_ptrs.raw ==
          ((cpu.unit().total().stored - 0x1000) << 32 | 1 << 7 | 0x7F));
    CHECK((cpu.read(0x38E).value >> 55) == 1);
    // The fence stands between clearing TraceEn and the reads.
    auto const* const one = log.begin();
    CHECK(one[1].what == simulate::logged_access::kind::write);
    CHECK(one[2].what == simulate::logged_access::kind::fence);
    CHECK(one[3].index == 0x571);
}

TEST_CASE("the initial configuration of component 8 is 0, and Intel PT works without XSAVES "
          "(PRG-113,114)") {
    bench now;
    CHECK(driver::restore(now.cpu, {.ctl = {0x250C}, .status = {0x20}, .output = {{table}, {}}}));
    access::msr_state const initial = [] {
        access::msr_state const none{};
        return none;
    }();
    auto const area = driver::make_xsaves_area(now.caps, initial);
    auto const parsed = driver::parse_xsaves_area({area.bytes.data(), area.bytes.size()});
    CHECK(parsed);
    CHECK(now.cpu.xrstors(parsed.state).took_effect());
    CHECK(now.cpu.msrs().ctl.raw == 0);
    CHECK(now.cpu.msrs().output.base.raw == 0);
    CHECK(now.cpu.msrs().output.mask_ptrs.raw == 0x7F);
    auto caps = cap_a();
    caps.leaf_0d_1_eax = {};
    caps.leaf_0d_1_ecx = {};
    bench without{caps};
    without.put(0, topa::entry{0x2000'0000 | size_64K});
    access::msr_state const plan{.ctl = {0x250D}, .output = {{table}, {0x7F}}};
    CHECK(driver::enable(without.cpu, plan));
    auto const saved = driver::save(without.cpu);
    CHECK(driver::restore(without.cpu, saved.state));
    CHECK(without.cpu.is_tracing());
}
