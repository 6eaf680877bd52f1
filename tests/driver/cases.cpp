// SPDX-License-Identifier: BSL-1.0
// The cases PC of programming.md, whose tables are read from the page.
#include <ptspec/driver/context.hpp>
#include <ptspec/driver/ring.hpp>
#include <ptspec/driver/ring_reader.hpp>
#include <ptspec/driver/topa_pmi.hpp>
#include <ptspec/driver/triage.hpp>

#include <support/check_twice.hpp>
#include <support/pc_rows.hpp>

using namespace ptspec;
using test::difference;
using test::pc_row_of;
using test::scripted_port;
using reg::ia32_rtit_ctl;

namespace {

constexpr uint64_t table = 0x1000'0000;

/// The plan of the base configuration, or of another CTL.
constexpr auto plan_at(uint64_t base, uint64_t mask_ptrs = 0x7F, uint64_t ctl = 0x250D)
    -> driver::msr_plan {
    return {.ctl = {ctl}, .output = {{base}, {mask_ptrs}}};
}

/// Runs a procedure for a row over a recording port, and returns the first difference.
template <class Procedure>
auto run(char const* id, Procedure&& procedure) -> std::string {
    auto const row = pc_row_of(id);
    scripted_port port{row};
    driver::recording_port log{port};
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
              driver::msr_plan plan{.ctl = {0x240D}, .output = {range.base, range.pointers}};
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
