// SPDX-License-Identifier: BSL-1.0
// A PMI handler interrupts each procedure between each two of its accesses: no wake-up is lost, and
// each byte that the trace unit stores is read once.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/drain.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/driver/pause.hpp>
#include <ptspec/base/host_memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

using namespace ptspec;
using driver::pmi_outcome;
using driver::trace_state;
namespace action = engine::action;

namespace {

constexpr std::uint64_t table_at = 0x1000;
constexpr std::uint64_t regions_at = 0x10'0000;
constexpr std::size_t region_count = 8;
constexpr std::uint64_t region_bytes = 0x1000;

struct mode {
    bool preserves_pmi;
    std::size_t drained_at_once;
    bool has_many_entries;
};

/// A processor that traces into a streaming ring, the driver of the ring, and the bytes that both
/// have seen.
class driven_ring {
public:
    driven_ring(mode which, std::uint64_t seed) : caps_{caps_of(which)}, random_{seed} {
        tap_.to = &stored;
        auto options = engine::options_of(caps_);
        options.drained_at_once = which.drained_at_once;
        options.msrs_lag = true;
        cpu_storage_.push_back(processor{caps_, memory_, tap_, {}, 0x1000, options});
        for (std::size_t i = 0; i < region_count; ++i) {
            regions_[i] = {.base = regions_at + region_bytes * i};
            pages_[i] = {table_at + 0x1000 * i, entries_[i].words};
        }
        auto const built = driver::build_ring(driver::buffer_recipe::streaming, regions_,
                                              region_count, pages_, region_count,
                                              topa::limits::of(caps_));
        REQUIRE(built);
        ring = built.ring;
        REQUIRE(driver::set_marks(ring, {.wake_up_bytes = wake_up_bytes}));
        auto const planned = driver::plan(
            caps_, {.config = {.os = true, .inject_psb_pmi = which.preserves_pmi},
                    .output = driver::output_at_start(ring)});
        REQUIRE(planned);
        plan = planned.plan;
        unmask();
        REQUIRE(driver::enable(cpu(), plan));
    }
    driven_ring(driven_ring const&) = delete;
    auto operator=(driven_ring const&) -> driven_ring& = delete;

    struct tap {
        std::vector<std::uint8_t>* to = nullptr;
        void operator()(std::uint64_t, byte_view bytes) noexcept {
            to->insert(to->end(), bytes.data(), bytes.data() + bytes.size());
        }
    };
    using processor = simulate::fake_processor<host_memory, tap>;

    auto cpu() -> processor& { return cpu_storage_.front(); }
    auto drain(driver::stopped_trace const& now) -> driver::drained {
        auto const result = driver::drain(
            ring, reader, now,
            [&](phys_addr base, std::uint64_t count) {
                auto const* const from = trace_.data() + (base - regions_at);
                read.insert(read.end(), from, from + count);
            },
            wake_up_bytes);
        CHECK(result.found);
        gaps += result.was_stopped;
        return result;
    }
    auto drain_for_pmi() {
        return [this](driver::stopped_trace const& now) { return drain(now).next; };
    }
    /// The handler of the PMI, if one is deliverable now.
    void take_pmi() {
        if (!cpu().deliver_pmi()) { return; }
        auto const result = driver::on_topa_pmi(cpu(), drain_for_pmi(), [this] { unmask(); });
        CHECK(!result.fault.happened);
        handled += result.outcome == pmi_outcome::handled;
        deferred += result.outcome == pmi_outcome::deferred;
    }
    void execute(int events, bool takes_pmis) {
        for (int i = 0; i < events; ++i) {
            (void)cpu().on(action::indirect_jump{0x10000 * (1 + random_() % 100)});
            if (takes_pmis) { take_pmi(); }
        }
    }
    auto roll(std::uint64_t sides) -> std::uint64_t { return random_() % sides; }

    driver::ring ring{};
    driver::ring_reader reader{};
    access::msr_state plan{};
    std::vector<std::uint8_t> stored;  // by the trace unit
    std::vector<std::uint8_t> read;    // by the driver
    unsigned handled = 0;
    unsigned deferred = 0;
    unsigned gaps = 0;
    unsigned due = 0;  // wake-ups that results showed

private:
    static constexpr std::uint64_t wake_up_bytes = region_bytes;

    static auto caps_of(mode which) -> cpu::capabilities {
        auto caps = cpu::preset::skylake_x;
        if (which.preserves_pmi) { caps.leaf_14_0_ebx.raw |= 1U << 6; }
        if (!which.has_many_entries) { caps.leaf_14_0_ecx.raw &= ~2U; }
        return caps;
    }
    void unmask() {
        using lvt = reg::ia32_x2apic_lvt_pmi;
        (void)driver::write(cpu(), lvt{}.with(lvt::Vector{0xEC}));
    }

    struct alignas(4096) page {
        topa::entry words[512];
    };
    cpu::capabilities caps_;
    std::mt19937_64 random_;
    page entries_[region_count]{};
    std::vector<std::uint8_t> trace_ = std::vector<std::uint8_t>(region_count * region_bytes);
    topa::region regions_[region_count]{};
    driver::table_page pages_[region_count]{};
    host_region ranges_[2] = {
        {table_at, reinterpret_cast<std::uint8_t*>(entries_), sizeof entries_},
        {regions_at, trace_.data(), trace_.size()}};
    host_memory memory_{ranges_};
    tap tap_{};
    std::vector<processor> cpu_storage_;
};

/// A port that lets the handler run before the access with a number, and holds PMIs off otherwise.
class interrupted_port {
public:
    interrupted_port(driven_ring& of, unsigned number) : of_{of}, number_{number} {}

    auto read(std::uint32_t index) noexcept -> port_value {
        step();
        return of_.cpu().read(index);
    }
    auto write(std::uint32_t index, std::uint64_t value) noexcept -> bool {
        step();
        return of_.cpu().write(index, value);
    }
    void fence() noexcept { step(); }
    /// The code between two procedures.
    void step() noexcept {
        if (count_++ == number_) { of_.take_pmi(); }
    }
    [[nodiscard]] auto was_interrupted() const -> bool { return count_ > number_; }

private:
    driven_ring& of_;
    unsigned number_;
    unsigned count_ = 0;
};

/// What a driver does with the result of a procedure after which tracing continues.
void follow(driven_ring& now, interrupted_port& port, driver::stopped_trace const& result) {
    CHECK(!result.fault.happened);
    bool const due = driver::wake_up_is_due(now.ring, now.reader, result);
    now.due += due;
    if (due || result.trace != trace_state::enabled) {
        CHECK(driver::read_out(port, now.plan.ctl, now.drain_for_pmi()));
    }
}

using procedure = void (*)(driven_ring&, interrupted_port&);

void flush(driven_ring& now, interrupted_port& port) {
    follow(now, port, driver::flush(port, now.plan.ctl));
}
void while_disabled(driven_ring& now, interrupted_port& port) {
    follow(now, port, driver::while_disabled(port, now.plan.ctl, [&] { port.step(); }));
}
void pause_and_resume(driven_ring& now, interrupted_port& port) {
    CHECK(driver::pause(port, now.plan.ctl));
    now.execute(3, false);
    port.step();
    follow(now, port, driver::resume(port, now.plan.ctl));
}
void recover(driven_ring& now, interrupted_port& port) {
    follow(now, port, driver::recover(port, now.plan.ctl));
}
void read_out(driven_ring& now, interrupted_port& port) {
    CHECK(driver::read_out(port, now.plan.ctl, now.drain_for_pmi()));
}
/// A context switch that does not read the trace.
void save_and_restore(driven_ring& now, interrupted_port& port) {
    auto const saved = driver::save(port);
    CHECK(saved);
    now.execute(3, false);
    port.step();
    auto result = driver::stopped_at(saved.state);
    result.trace = driver::restore(port, saved.state).trace;
    follow(now, port, result);
}
/// One that reads it.
void save_drain_and_restore(driven_ring& now, interrupted_port& port) {
    auto saved = driver::save(port, now.plan.ctl);
    CHECK(saved);
    port.step();
    driver::continue_after(now.drain(driver::stopped_at(saved.state)), saved.state);
    port.step();
    CHECK(driver::restore(port, saved.state));
}
auto stop_and_drain(driven_ring& now, interrupted_port& port) -> access::msr_state {
    auto const stopped = driver::disable(port);
    CHECK(stopped);
    auto next = now.plan;
    next.status = stopped.status;
    next.output = stopped.output;
    port.step();
    driver::continue_after(now.drain(stopped), next);
    port.step();
    return next;
}
void disable_and_enable(driven_ring& now, interrupted_port& port) {
    auto const next = stop_and_drain(now, port);
    CHECK(driver::enable(port, next));
    CHECK(driver::check_enabled(port, next));
}
void disable_and_restart(driven_ring& now, interrupted_port& port) {
    CHECK(driver::restart(port, stop_and_drain(now, port)).trace == trace_state::enabled);
}

struct named {
    std::string name;
    procedure run;
    bool shows_wake_ups;  // and does not drain
};
named const procedures[] = {{"flush", flush, true},
                            {"while_disabled", while_disabled, true},
                            {"pause, resume", pause_and_resume, true},
                            {"recover", recover, true},
                            {"save, restore", save_and_restore, true},
                            {"read_out", read_out, false},
                            {"save, drain, restore", save_drain_and_restore, false},
                            {"disable, drain, enable", disable_and_enable, false},
                            {"disable, drain, restart", disable_and_restart, false}};

constexpr mode modes[] = {{false, 8, true}, {false, 0, true},  {true, 8, true},
                          {true, 0, true},  {false, 8, false}, {true, 8, false}};

}  // namespace

TEST_CASE("a PMI between any two accesses of a procedure loses no wake-up and no byte "
          "(PRG-062,063,115,121..123,125)") {
    std::uint64_t seed = 0;
    for (auto const& one : procedures) {
        unsigned all_deferred = 0;
        for (auto const& which : modes) {
            bool ended = false;
            for (unsigned number = 0; !ended; ++number) {
                INFO(one.name, ", access ", number, ", preservation ", which.preserves_pmi,
                     ", drained at once ", which.drained_at_once, ", many entries ",
                     which.has_many_entries);
                REQUIRE(number < 32);
                driven_ring now{which, ++seed};
                ended = true;
                for (int round = 0; round < 100; ++round) {
                    now.execute(static_cast<int>(20 + now.roll(40)), true);
                    // A PMI of these may still be pending when the procedure begins.
                    // Where a table has one region, the rest of it has room for few events.
                    now.execute(static_cast<int>(now.roll(which.has_many_entries ? 40 : 10)),
                                false);
                    unsigned const deferred = now.deferred;
                    unsigned const due = now.due;
                    interrupted_port port{now, number};
                    one.run(now, port);
                    ended = ended && !port.was_interrupted();
                    CHECK(now.cpu().is_tracing());
                    if (one.shows_wake_ups && now.deferred != deferred) { CHECK(now.due != due); }
                }
                all_deferred += now.deferred;
                (void)now.drain(driver::disable(now.cpu()));
                CHECK(now.gaps == 0);
                CHECK(now.cpu().unit().total().lost == 0);
                CHECK(now.stored.size() > region_count * region_bytes);
                CHECK(now.read == now.stored);
            }
        }
        MESSAGE(one.name, ": ", all_deferred, " PMIs while TraceEn was 0");
        CHECK(all_deferred > 20);
    }
}
