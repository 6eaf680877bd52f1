// SPDX-License-Identifier: BSL-1.0
// A driver of three contexts over the modelled processor: each byte that the trace unit stores is
// read once and in order, or the driver reports why not.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/detect.hpp>
#include <ptspec/driver/drain.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/driver/pause.hpp>
#include <ptspec/driver/reset.hpp>
#include <ptspec/engine/model_kind.hpp>
#include <ptspec/base/host_memory.hpp>

#include <support/random_numbers.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace ptspec;
using driver::buffer_recipe;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_status;
namespace action = engine::action;

namespace {

constexpr uint64_t memory_base = 0x1000'0000;
constexpr size_t context_count = 3;

/// What happened in all runs.
struct totals {
    uint64_t events = 0;
    uint64_t bytes = 0;
    uint64_t pmis = 0;
    uint64_t nested_pmis = 0;
    uint64_t due = 0;  // wake-ups that were read out without a PMI
    uint64_t switches = 0;
    uint64_t xsaves = 0;
    uint64_t stops = 0;
    uint64_t lost_by_stop = 0;
    uint64_t resets = 0;
    uint64_t lost_by_reset = 0;
    uint64_t laps = 0;
};

/// A traced context: its ring, and what the test knows about its trace.
struct context {
    std::vector<topa::region> regions;
    std::vector<driver::table_page> pages;
    bool is_single_range = false;  // of one region, without a table
    driver::ring ring{};
    driver::ring_reader reader{};
    access::msr_state msrs{};  // while it is switched out

    std::vector<uint8_t> stored;  // by the trace unit, in order
    std::vector<uint8_t> read;    // by the driver, in order
    uint64_t since_start = 0;     // bytes stored since the position was set to the start
};

class machine {
public:
    machine(cpu::capabilities const& caps, engine::model_kind_info const& of, uint64_t seed,
            totals& sum)
        : caps_{caps}, of_{of}, random_{seed}, sum_{sum} {
        allocate();
        region_ = {memory_base, bytes_.data(), bytes_.size()};
        memory_ = std::make_unique<host_memory>(&region_, 1);
        cpu_ = std::make_unique<processor>(
            caps, *memory_, tap_, engine::execution_context{.cr3 = 0x1000}, 0x40'0000, options());
        tap_.owner = this;
    }

    /// Returns the first thing that is wrong.
    auto run(uint64_t events) -> std::string {
        if (!start()) { return problem_; }
        for (uint64_t i = 0; i < events && problem_.empty(); ++i) { step(); }
        if (problem_.empty()) {
            as_kernel([&] { switch_to(context_count); });
        }
        for (auto const& one : contexts_) {
            check(one.ring.recipe == buffer_recipe::circular || one.read == one.stored,
                  "all bytes are read");
            sum_.bytes += one.stored.size();
        }
        sum_.events += executed_;
        return problem_;
    }

private:
    struct tap {
        machine* owner = nullptr;
        void operator()(uint64_t address, byte_view bytes) noexcept {
            owner->on_stored(address, bytes);
        }
    };
    using processor = simulate::fake_processor<host_memory, tap, 512>;

    /// The processor as the driver sees it: code runs between its accesses, and PMIs arrive there.
    struct port {
        machine& owner;

        auto read(uint32_t index) noexcept -> port_value {
            owner.between_accesses();
            auto const got = owner.cpu_->read(index);
            owner.check(got.has_value, "no RDMSR faults");
            return got;
        }
        auto write(uint32_t index, uint64_t value) noexcept -> bool {
            owner.between_accesses();
            bool const done = owner.cpu_->write(index, value);
            owner.check(done, "no WRMSR faults");
            return done;
        }
        void fence() noexcept { owner.cpu_->fence(); }
    };

    void check(bool holds, char const* what) {
        if (!holds && problem_.empty()) { problem_ = std::string{"does not hold: "} + what; }
    }

    // -------------------------------------------------------------------------------- set-up

    auto options() -> engine::model_options {
        auto how = of_.options;
        how.msrs_lag = true;
        if (of_.which == engine::model_kind::manual) {
            how.pads = random_.one_in(4) ? trace::pad_policy::within_words
                                         : trace::pad_policy::none;
            how.tnt_capacity = random_.one_in(2) ? 47 : 6;
            how.psb_after_pge = random_.one_in(4);
            how.psb_on_every_enable = random_.one_in(4);
        }
        if (random_.one_in(2)) { how.drained_at_once = 1 + random_.below(24); }
        how.overflow_ends_at = random_.below(64);
        how.output.pmi_lead_bytes = static_cast<uint32_t>(1 + random_.below(driver::pmi_margin));
        return how;
    }

    auto recipe() -> buffer_recipe {
        constexpr buffer_recipe all[] = {buffer_recipe::streaming, buffer_recipe::streaming,
                                         buffer_recipe::interrupt_and_stop,
                                         buffer_recipe::stop_on_full, buffer_recipe::circular};
        return all[random_.below(5)];
    }

    /// Regions of mixed sizes, at places in memory without an order, and tables of mixed sizes.
    void allocate() {
        using ecx = reg::cpuid_14h_0_ecx;
        bool const has_topa = caps_.leaf_14_0_ecx.get<ecx::TOPAOUT>();
        bool const has_range = caps_.leaf_14_0_ecx.get<ecx::SNGLRNGOUT>();
        struct wanted {
            size_t owner;
            topa::region_size size;
            uint64_t base = 0;
        };
        std::vector<wanted> all;
        recipes_.resize(context_count);
        for (size_t i = 0; i < context_count; ++i) {
            recipes_[i] = recipe();
            contexts_[i].is_single_range = !has_topa || (has_range && random_.one_in(8));
            if (contexts_[i].is_single_range) { recipes_[i] = buffer_recipe::circular; }
            bool const is_single = contexts_[i].is_single_range ||
                                   (!caps_.has_topa_of_many_entries() &&
                                    !driver::detail::is_read_while_filled(recipes_[i]));
            size_t count = 1 + random_.below(random_.one_in(4) ? 64 : 6);
            if (is_single) { count = 1; }
            if (count == 1 && driver::detail::interrupts(recipes_[i]) &&
                caps_.has_topa_of_many_entries()) {
                count = 2;
            }
            for (size_t k = 0; k < count; ++k) {
                auto const size = random_.below(random_.one_in(3) ? 3 : 1);
                all.push_back({i, static_cast<topa::region_size>(size)});
            }
        }
        std::vector<size_t> order(all.size());
        for (size_t i = 0; i < order.size(); ++i) { order[i] = i; }
        for (size_t i = order.size(); i > 1; --i) {
            std::swap(order[i - 1], order[random_.below(i)]);
        }
        uint64_t end = memory_base;
        for (size_t const i : order) {
            uint64_t const size = topa::bytes_in(all[i].size);
            all[i].base = (end + size - 1) / size * size;
            end = all[i].base + size;
        }
        for (auto const& one : all) {
            contexts_[one.owner].regions.push_back({one.base, one.size});
        }
        for (size_t i = 0; i < context_count; ++i) {
            table_entries_[i] = 2 + random_.below(random_.one_in(2) ? 4 : 80);
            page_counts_[i] = contexts_[i].regions.size();
        }
        end = (end + 4095) / 4096 * 4096;
        tables_at_ = end;
        for (size_t const count : page_counts_) { end += count * 4096; }
        bytes_.resize(end - memory_base);
    }

    /// The output MSRs from which a buffer is filled from its start.
    static auto start_of(context const& one) -> driver::output_registers {
        if (!one.is_single_range) { return driver::output_at_start(one.ring); }
        auto const made = single_range::build(
            {.base = one.regions[0].base, .bytes = topa::bytes_in(one.regions[0].size)});
        return {made.base, made.pointers};
    }

    auto plan_for(size_t i) -> driver::plan_request {
        driver::plan_request wanted;
        wanted.config.os = true;
        wanted.config.user = true;
        wanted.config.branches = true;
        wanted.config.output = contexts_[i].is_single_range ? config::output_scheme::single_range
                                                            : config::output_scheme::topa;
        wanted.config.tsc = random_.one_in(2);
        wanted.config.ptwrite = true;
        wanted.config.cyc = random_.one_in(2);
        wanted.config.inject_psb_pmi = random_.one_in(2);
        wanted.output = start_of(contexts_[i]);
        return wanted;
    }

    auto start() -> bool {
        auto const found = driver::detect(*cpu_, *cpu_);
        check(static_cast<bool>(found), "Intel PT is detected");
        uint64_t table = tables_at_;
        for (size_t i = 0; i < context_count; ++i) {
            auto& one = contexts_[i];
            for (size_t k = 0; k < page_counts_[i]; ++k, table += 4096) {
                // The entries are hardware words in the memory of the processor.
                one.pages.push_back(
                    {table, reinterpret_cast<topa::entry*>(bytes_.data() + (table - memory_base))});
            }
            if (one.is_single_range) {
                one.ring.bytes = topa::bytes_in(one.regions[0].size);
                one.msrs = driver::plan(found.caps, plan_for(i)).plan;
                continue;
            }
            auto const built = driver::build_ring(
                recipes_[i], one.regions.data(), one.regions.size(), one.pages.data(),
                one.pages.size(), topa::limits::of(found.caps), {}, table_entries_[i]);
            check(static_cast<bool>(built), "the ring is built");
            if (!built) { return false; }
            one.ring = built.ring;
            if (one.ring.recipe == buffer_recipe::streaming) {
                check(driver::set_marks(one.ring, {.wake_up_bytes = one.ring.bytes / 2}),
                      "marks are set");
            }
            auto const planned = driver::plan(found.caps, plan_for(i));
            check(planned.broken == rule::none, "the output MSRs are legal");
            one.msrs = planned.plan;
        }
        using lvt = reg::ia32_x2apic_lvt_pmi;
        (void)driver::write(*cpu_, lvt{}.with(lvt::Vector{0xEE}));
        as_kernel([&] { switch_to(0); });
        return problem_.empty();
    }

    // -------------------------------------------------------------------------------- events

    auto address() -> uint64_t {
        return 0x40'0000 + random_.below(random_.one_in(8) ? ~0U : 0x3000);
    }
    auto kernel_code() const -> engine::execution_context { return {.cr3 = 0x1000}; }

    void execute() {
        auto& cpu = *cpu_;
        ++executed_;
        uint64_t const here = cpu.unit().ip();
        switch (random_.below(12)) {
            case 0: (void)cpu.on(action::indirect_jump{address()}); break;
            case 1: (void)cpu.on(action::indirect_call{here + 3, address()}); break;
            case 2: (void)cpu.on(action::near_return{address()}); break;
            case 3:
            case 8:
            case 9:
                (void)cpu.on(action::ptwrite{here, here + 4, random_.below(~uint64_t{0}), true});
                break;
            case 4:
                now_ += random_.below(50);
                (void)cpu.on(action::elapsed{random_.below(100), now_, 3 * now_});
                break;
            case 5:
                if (random_.one_in(40)) { (void)cpu.on(action::psb_due{}); }
                break;
            case 6:
                if (random_.one_in(100)) {
                    (void)cpu.on(action::overflow{});
                    (void)cpu.on(action::overflow_end{here});
                }
                break;
            case 7: (void)cpu.on(action::mov_cr3{here, here + 3, 0x1000 * random_.below(3)}); break;
            default: (void)cpu.on(action::conditional{address(), random_.one_in(2)}); break;
        }
    }

    /// Runs a procedure of the driver at CPL 0, as an interrupt handler.
    template <class Procedure>
    void as_kernel(Procedure&& procedure) {
        auto const before = cpu_->unit().state().code;
        uint64_t const back = cpu_->unit().ip();
        (void)cpu_->on(
            action::interrupt{.next = back, .to = 0xFFFF'8000'0000'1000, .after = kernel_code()});
        procedure();
        auto after = before;
        after.cpl = static_cast<uint8_t>(random_.one_in(3) ? 0 : 3);
        (void)cpu_->on(action::far_transfer{cpu_->unit().ip(), back, after});
    }

    void between_accesses() {
        while (random_.one_in(3)) {
            execute();
            if (cpu_->unit().state().code.cpl != 0) { return; }
        }
        // The PMI as an NMI: it may arrive between any two accesses of a procedure.
        if (random_.one_in(4) && cpu_->deliver_pmi()) {
            ++sum_.nested_pmis;
            handle_pmi();
        }
    }

    void step() {
        for (int i = 0; i < 8; ++i) { execute(); }
        bool const is_user = cpu_->cpl() != 0;
        if (random_.one_in(3) && cpu_->deliver_pmi()) {
            if (is_user) {
                handle_pmi();
                (void)cpu_->return_from_pmi();
            } else {
                as_kernel([&] { handle_pmi(); });
            }
        }
        bool const has_stopped = cpu_->msrs().status.get<ia32_rtit_status::Stopped>();
        if (has_stopped && random_.one_in(50)) {
            as_kernel([&] { read_out_and_restart(); });
        }
        switch (random_.below(800)) {
            case 0:
            case 1:
            case 2: as_kernel([&] { switch_to(random_.below(context_count)); }); break;
            case 3:
            case 4: as_kernel([&] { switch_by_xsaves(random_.below(context_count)); }); break;
            case 5: as_kernel([&] { pause_and_resume(); }); break;
            case 6: as_kernel([&] { flush(); }); break;
            case 7: as_kernel([&] { read_out_and_restart(); }); break;
            case 8:
                if (random_.one_in(4)) { warm_reset(); }
                break;
            case 9: as_kernel([&] { system_management(); }); break;
            default: break;
        }
    }

    // -------------------------------------------------------------------------------- the driver

    auto current() -> context& { return contexts_[current_]; }

    /// Reads out a context whose trace has stopped at a position.
    auto drain(context& of, driver::stopped_trace const& now) -> driver::drained {
        auto const visit = [&](phys_addr base, uint64_t bytes) {
            auto const* const from = bytes_.data() + (base - memory_base);
            of.read.insert(of.read.end(), from, from + bytes);
        };
        size_t const before = of.read.size();
        bool const has_stopped = now.status.get<ia32_rtit_status::Stopped>();
        driver::drained result{};
        if (of.ring.recipe == buffer_recipe::circular) {
            check_snapshot(of, now);
            result.found = true;
            result.was_stopped = has_stopped;
        } else {
            result = driver::drain(of.ring, of.reader, now, visit);
            check(result.found, "the position is in the ring");
            check(result.overwritten == 0, "nothing unread is overwritten");
            check(result.was_stopped == has_stopped, "the end of the trace is reported");
            check(of.read.size() - before == result.new_bytes, "the new bytes are read");
            auto const again = driver::drain(of.ring, of.reader, now, visit);
            check(again.found && again.new_bytes == 0, "the same position has no new bytes");
            check(again.next.has_new_output == result.next.has_new_output &&
                      again.next.output == result.next.output,
                  "tracing continues at the same place");
            check(of.read.size() == of.stored.size() &&
                      std::equal(of.read.begin() + static_cast<std::ptrdiff_t>(before),
                                 of.read.end(),
                                 of.stored.begin() + static_cast<std::ptrdiff_t>(before)),
                  "the bytes that were stored are read in order");
        }
        uint64_t const lost = cpu_->unit().total().lost - lost_before_;
        lost_before_ += lost;
        check(lost == 0 || has_stopped, "bytes are lost after a full buffer only");
        sum_.lost_by_stop += lost;
        sum_.stops += has_stopped;
        return result;
    }

    /// A circular buffer is read without emptying it.
    void check_snapshot(context const& of, driver::stopped_trace const& now) {
        bool const wrapped = of.since_start > of.ring.bytes;
        std::vector<uint8_t> bytes;
        auto const append = [&](phys_addr base, uint64_t count) {
            auto const* const from = bytes_.data() + (base - memory_base);
            bytes.insert(bytes.end(), from, from + count);
        };
        if (of.is_single_range) {
            auto const part = driver::snapshot_of_single_range(now.output, wrapped);
            append(part.first_base, part.first_bytes);
            append(part.second_base, part.second_bytes);
        } else {
            auto const part = driver::snapshot(of.ring, now, wrapped);
            check(part.found, "the position is in the ring");
            driver::for_each_span(of.ring, part.part, append);
        }
        uint64_t const whole = std::min<uint64_t>(of.since_start, of.ring.bytes);
        bool const at_lap = of.since_start == of.ring.bytes;
        check(at_lap || bytes.size() == whole, "the snapshot has what was stored");
        check(bytes.size() <= of.stored.size() &&
                  std::equal(bytes.begin(), bytes.end(),
                             of.stored.end() - static_cast<std::ptrdiff_t>(bytes.size())),
              "the snapshot is the end of what was stored");
        sum_.laps += wrapped;
    }

    void handle_pmi() {
        ++sum_.pmis;
        auto const result = driver::on_topa_pmi(
            *cpu_, [&](driver::stopped_trace const& now) { return drain(current(), now).next; },
            [&] {
                using lvt = reg::ia32_x2apic_lvt_pmi;
                (void)driver::write(*cpu_, lvt{}.with(lvt::Vector{0xEE}));
            });
        check(!result.fault.happened, "the handler completes");
        check(result.outcome != driver::pmi_outcome::not_topa, "the PMI is recognized");
        check(result.outcome != driver::pmi_outcome::handled ||
                  result.trace == driver::trace_state::enabled,
              "tracing continues after the handler");
    }

    /// Restores a context, or none.
    void restore(size_t next) {
        current_ = next;
        if (next == context_count) { return; }
        port to{*this};
        auto const result = driver::restore(to, current().msrs);
        check(static_cast<bool>(result), "the context is restored");
    }

    void switch_to(size_t next) {
        port to{*this};
        if (current_ != context_count) {
            auto const saved = driver::save(to);
            check(static_cast<bool>(saved), "the context is saved");
            current().msrs = saved.state;
            driver::continue_after(drain(current(), driver::stopped_at(saved.state)),
                                   current().msrs);
        }
        restore(next);
        ++sum_.switches;
    }

    void switch_by_xsaves(size_t next) {
        if (!caps_.has_xsaves_state()) { return switch_to(next); }
        port to{*this};
        if (random_.one_in(4)) {  // a page of the area is missing, and is there when it is retried
            check(cpu_->xsaves_that_faults().took_effect(), "XSAVES faults");
        }
        auto const saved = cpu_->xsaves();
        check(saved.took_effect(), "XSAVES does not fault");
        auto& old = current();
        old.msrs = access::msr_state_of(saved.image);
        check(static_cast<bool>(driver::read_uncovered(to, old.msrs)), "ranges 2 and 3 are saved");
        driver::continue_after(drain(old, driver::stopped_at(old.msrs)), old.msrs);
        current_ = next;
        auto& made = current();
        check(static_cast<bool>(driver::write_uncovered(to, made.msrs)), "ranges are restored");
        auto const area = driver::make_xsaves_area(caps_, made.msrs);
        auto const parsed = driver::parse_xsaves_area({area.bytes.data(), area.bytes.size()});
        check(static_cast<bool>(parsed), "the XSAVE area is legal");
        check(cpu_->xrstors(parsed.state).took_effect(), "XRSTORS does not fault");
        ++sum_.xsaves;
    }

    void pause_and_resume() {
        port to{*this};
        ia32_rtit_ctl const ctl = current().msrs.ctl;
        check(static_cast<bool>(driver::pause(to, ctl)), "tracing is paused");
        uint64_t const before = current().stored.size();
        for (int i = 0; i < 10; ++i) { execute(); }
        check(current().stored.size() == before, "nothing is stored while tracing is paused");
        if (cpu_->unit().state().code.cpl == 0) { read_out_if_due(driver::resume(to, ctl)); }
    }

    /// A PMI may have come while TraceEn was 0.
    void read_out_if_due(driver::stopped_trace const& now) {
        check(!now.fault.happened, "the trace is flushed or resumed");
        auto& one = current();
        if (!driver::wake_up_is_due(one.ring, one.reader, now)) { return; }
        ++sum_.due;
        port to{*this};
        auto const result = driver::read_out(
            to, one.msrs.ctl,
            [&](driver::stopped_trace const& at) { return drain(current(), at).next; });
        check(result && result.trace == driver::trace_state::enabled, "the trace is read out");
    }

    void flush() {
        port to{*this};
        read_out_if_due(driver::flush(to, current().msrs.ctl));
    }

    void read_out_and_restart() {
        port to{*this};
        auto const stopped = driver::disable(to);
        check(static_cast<bool>(stopped), "tracing is disabled");
        auto& one = current();
        one.msrs.status = stopped.status;
        one.msrs.output = stopped.output;
        driver::continue_after(drain(one, stopped), one.msrs);
        check(static_cast<bool>(driver::enable(to, one.msrs)), "tracing is enabled again");
    }

    void system_management() {
        auto const code = kernel_code();
        uint64_t const here = cpu_->unit().ip();
        auto smm = code;
        (void)cpu_->on(action::smi{here, 0x8000, smm});
        for (int i = 0; i < 3; ++i) {
            (void)cpu_->on(action::conditional{0x8000 + random_.below(64), true});
        }
        (void)cpu_->on(action::rsm{here, code});
    }

    /// The processor is reset. The driver starts again, and reads what the MSRs still locate.
    void warm_reset() {
        ++sum_.resets;
        cpu_->warm_reset(kernel_code(), 0xFFF0);
        uint64_t const lost = cpu_->unit().total().lost - lost_before_;
        lost_before_ += lost;
        sum_.lost_by_reset += lost;
        using lvt = reg::ia32_x2apic_lvt_pmi;
        (void)driver::write(*cpu_, lvt{}.with(lvt::Vector{0xEE}));
        auto const found = driver::after_warm_reset(*cpu_, caps_);
        check(!found.fault.happened && found.trace == driver::trace_state::disabled,
              "tracing is disabled by the reset");
        check(found.is_preserved == caps_.has_ip_filtering(), "the MSRs are preserved");
        auto& one = current();
        auto const ctl = one.msrs.ctl;
        if (found.is_preserved) {
            one.msrs = cpu_->msrs();
            driver::continue_after(drain(one, found), one.msrs);
        } else {
            // The position is lost, and with it the trace since the last read-out.
            sum_.lost_by_reset += one.stored.size() - one.read.size();
            if (one.ring.recipe != buffer_recipe::circular) { one.stored = one.read; }
            one.since_start = 0;
            one.reader = {};
            one.msrs.output = start_of(one);
            one.msrs.status = {};
            if (one.ring.recipe == buffer_recipe::streaming) {
                check(driver::set_marks(one.ring, {.wake_up_bytes = one.ring.bytes / 2}),
                      "marks are set");
            }
        }
        one.msrs.ctl = ctl.with(ia32_rtit_ctl::TraceEn{true});
        restore(current_);
    }

    // -------------------------------------------------------------------------------- memory

    void on_stored(uint64_t address, byte_view bytes) {
        auto& one = current();
        bool inside = false;
        for (auto const& region : one.regions) {
            inside = inside ||
                     (address >= region.base &&
                      address + bytes.size() <= region.base + topa::bytes_in(region.size));
        }
        check(inside, "bytes are stored in the ring of the current context");
        one.stored.insert(one.stored.end(), bytes.data(), bytes.data() + bytes.size());
        one.since_start += bytes.size();
    }

    cpu::capabilities caps_;
    engine::model_kind_info const& of_;
    test::random_numbers random_;
    totals& sum_;
    std::string problem_;
    context contexts_[context_count + 1];
    std::vector<buffer_recipe> recipes_;
    size_t table_entries_[context_count] = {};
    size_t page_counts_[context_count] = {};
    uint64_t tables_at_ = 0;
    std::vector<uint8_t> bytes_;
    host_region region_{};
    std::unique_ptr<host_memory> memory_;
    tap tap_;
    std::unique_ptr<processor> cpu_;
    size_t current_ = context_count;
    uint64_t lost_before_ = 0;
    uint64_t now_ = 0;
    uint64_t executed_ = 0;
};

}  // namespace

TEST_CASE("closed loop: each byte that the trace unit stores is read once and in order "
          "(PRG-100..103,110..112,115,121..126,129)") {
    // Each processor runs as each kind, twice.
    uint64_t seed = 0;
    totals all_sums[std::size(engine::model_kinds)];
    for (auto const& preset : cpu::preset::all) {
        auto const& caps = preset.value;
        if (!caps.has_pt() || !caps.has_output_msrs()) { continue; }
        for (size_t i = 0; i < 2 * std::size(engine::model_kinds); ++i) {
            ++seed;
            auto const& of = engine::model_kinds[seed % std::size(engine::model_kinds)];
            auto const all = std::make_unique<machine>(caps, of, seed,
                                                       all_sums[underlying(of.which)]);
            std::string const problem = all->run(3000);
            INFO(std::string_view{preset.name.data(), preset.name.size()}, " as ",
                 std::string_view{of.name.data(), of.name.size()}, ", seed ", seed);
            CHECK(problem == "");
        }
    }
    for (auto const& of : engine::model_kinds) {
        auto const& sum = all_sums[underlying(of.which)];
        MESSAGE(std::string_view{of.name.data(), of.name.size()}, ": ", sum.events, " events, ",
                sum.bytes, " bytes, ", sum.pmis, " PMIs (", sum.nested_pmis,
                " inside a procedure), ", sum.due, " wake-ups without, ", sum.switches,
                " switches by MSRs, ", sum.xsaves, " by XSAVES, ", sum.stops, " stops (",
                sum.lost_by_stop, " bytes lost), ", sum.resets, " resets (", sum.lost_by_reset,
                " bytes lost), ", sum.laps, " laps");
        CHECK(sum.pmis > 100);
    }
}
