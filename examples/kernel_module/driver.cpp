// SPDX-License-Identifier: BSL-1.0

// The C++ part of the module. It detects Intel PT on the real processor, and then runs the driver
// of skeleton_driver.hpp on a modelled processor, whose trace is stored in memory of the kernel:
// two tasks alternate, and each must have its own bytes, complete and in order.

#include <skeleton_driver.hpp>

#include "module.h"

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/base/host_memory.hpp>
#include <ptspec/ports/x86.hpp>
#include <ptspec/trace/reader.hpp>

namespace {

using namespace ptspec;
namespace action = engine::action;

// ------------------------------------------------------------------------------ the processor

/// RDMSR and WRMSR of the kernel, which survive a #GP.
struct kernel_access {
    static auto try_rdmsr(uint32_t index, uint64_t& value) noexcept -> bool {
        unsigned long long got = 0;
        bool const done = module_rdmsr(index, &got) == 0;
        value = got;
        return done;
    }
    static auto try_wrmsr(uint32_t index, uint64_t value) noexcept -> bool {
        return module_wrmsr(index, value) == 0;
    }
};

/// Reads an MSR that every processor has, and writes a value that none accepts: bit 32 of IA32_PKRS
/// is reserved where this MSR exists.
auto accesses_work(ports::x86_msrs<kernel_access>& msrs) noexcept -> bool {
    constexpr uint32_t ia32_apic_base = 0x1B;
    constexpr uint32_t ia32_pkrs = 0x6E1;
    auto const apic = msrs.read(ia32_apic_base);
    return apic && apic.value >> 12 != 0 && !msrs.write(ia32_pkrs, uint64_t{1} << 32);
}

// ------------------------------------------------------------------------------ the program

/// A sum of bytes that depends on their order.
struct byte_record {
    uint64_t count = 0;
    uint64_t hash = 0xCBF2'9CE4'8422'2325;

    void add(byte_view bytes) noexcept {
        count += bytes.size();
        for (size_t i = 0; i < bytes.size(); ++i) { hash = (hash ^ bytes[i]) * 0x100'0000'01B3; }
    }
    friend auto operator==(byte_record const&, byte_record const&) -> bool = default;
};

/// What a program executed, and what its trace shows.
struct program {
    uint64_t marks = 0;
    uint64_t branches = 0;
};

/// Decodes the marks and the conditional branches. The marks count up.
struct decoder {
    program seen{};
    bool in_order = true;

    auto operator()(packet::ptw const& one, trace::packet_place) noexcept -> bool {
        in_order = in_order && one.payload() == seen.marks++;
        return in_order;
    }
    void operator()(packet::tnt_short const& one, trace::packet_place) noexcept {
        seen.branches += one.taken().count;
    }
    void operator()(packet::tnt_long const& one, trace::packet_place) noexcept {
        seen.branches += one.taken().count;
    }
    auto operator()(packet::ovf const&, trace::packet_place) noexcept -> bool {
        return in_order = false;
    }
    void operator()(trace::item const& one) noexcept {
        if (one.what == trace::item_type::damage) { in_order = false; }
    }
};

/// A task, its program, and the two ends of its trace.
struct task : skeleton::context {
    topa::region regions[module_regions]{};
    driver::table_page tables[1]{};
    program executed{};
    byte_record stored{};  ///< by the processor
    byte_record read{};    ///< by the driver
    trace::reader<> reader{};
    decoder decoded{};

    void decode() noexcept {
        using namespace packet;
        (void)reader.for_each<ptw, tnt_short, tnt_long, ovf, trace::item>(decoded);
    }
};

/// The tasks. Receives each byte when the processor stores it.
struct task_list {
    task tasks[module_tasks]{};

    void operator()(uint64_t address, byte_view bytes) noexcept {
        for (auto& one : tasks) {
            for (auto const& region : one.regions) {
                if (address - region.base < module_region_bytes) { one.stored.add(bytes); }
            }
        }
    }
};

/// Everything that is too large for the stack of a kernel.
class simulation {
public:
    explicit simulation(module_buffers const& from) noexcept
        : memory_{regions_}, cpu_{cpu::preset::alder_lake_p, memory_, list_, {}, program_ip} {
        size_t at = 0;
        for (unsigned n = 0; n < module_tasks; ++n) {
            auto& one = list_.tasks[n];
            auto const& table = from.tables[n];
            one.tables[0] = {table.physical, reinterpret_cast<topa::entry*>(table.bytes)};
            add(at++, table, module_table_bytes);
            for (unsigned i = 0; i < module_regions; ++i) {
                auto const& region = from.regions[n][i];
                one.regions[i] = {.base = region.physical, .size = topa::region_size::size_64K};
                add(at++, region, module_region_bytes);
            }
        }
        memory_ = host_memory{regions_};
    }

    /// The whole run. Null, or what failed.
    [[nodiscard]] auto run() noexcept -> char const* {
        auto const found = driver::detect(cpu_, cpu_);
        if (!found) { return "the modelled processor has no free Intel PT"; }
        config::trace_config const wanted{.os = true, .user = true, .ptwrite = true};
        for (auto& one : list_.tasks) {
            if (!driver_.add(one, found.caps, wanted, one.regions, one.tables)) {
                return "the processor refuses the buffer or the configuration";
            }
        }
        unmask();
        if (!try_out(list_.tasks[0])) { return "tracing cannot be enabled and disabled"; }
        for (unsigned slice = 0; slice < slices; ++slice) {
            auto& one = list_.tasks[slice % module_tasks];
            ++switches_;
            if (!driver_.switch_to(&one)) { return "a context switch failed"; }
            if (!execute(one, marks_per_slice)) { return "the handler of a PMI failed"; }
        }
        if (!driver_.switch_to(nullptr)) { return "the last context switch failed"; }
        if (interrupts_ < slices) { return "a PMI is missing"; }
        for (auto& one : list_.tasks) {
            if (auto const* const failure = check(one)) { return failure; }
        }
        return nullptr;
    }

    /// Reads bytes of a trace in place, and decodes them: the consumer of the driver.
    void operator()(skeleton::context& of, phys_addr base, uint64_t count) noexcept {
        auto& to = static_cast<task&>(of);
        while (count != 0) {
            auto const here = memory_.window(base.value);
            if (here.first == nullptr) { break; }  // the sums then differ
            uint64_t const now = here.size < count ? here.size : count;
            byte_view const bytes{here.first, static_cast<size_t>(now)};
            to.read.add(bytes);
            if (to.reader.feed({bytes.data(), bytes.size()})) { to.decode(); }
            base += now;
            count -= now;
        }
    }

    [[nodiscard]] auto bytes() const noexcept -> uint64_t {
        uint64_t sum = 0;
        for (auto const& one : list_.tasks) { sum += one.read.count; }
        return sum;
    }
    [[nodiscard]] auto interrupts() const noexcept -> unsigned { return interrupts_; }
    [[nodiscard]] auto switches() const noexcept -> unsigned { return switches_; }

private:
    static constexpr uint64_t program_ip = 0x40'1000;
    static constexpr unsigned slices = 3 * module_tasks;
    static constexpr unsigned marks_per_slice = 100'000;  // more than a ring
    static constexpr unsigned branches_per_mark = 16;
    static constexpr size_t region_count = size_t{module_tasks} * (1 + module_regions);

    /// Inserts a region in the order of addresses, so that the search is a binary one.
    void add(size_t count, module_memory const& one, uint64_t bytes) noexcept {
        size_t at = count;
        for (; at > 0 && regions_[at - 1].base > one.physical; --at) {
            regions_[at] = regions_[at - 1];
        }
        regions_[at] = {one.physical, one.bytes, bytes};
    }

    void unmask() noexcept {
        using lvt = reg::ia32_x2apic_lvt_pmi;
        (void)driver::write(cpu_, lvt{}.with(lvt::Vector{0xFE}));
    }

    /// Executes PTWRITEs, each with some branches, and takes the PMIs.
    [[nodiscard]] auto execute(task& by, unsigned marks) noexcept -> bool {
        auto& done = by.executed;
        for (unsigned n = 0; n < marks; ++n) {
            uint64_t const ip = cpu_.unit().ip();
            bool ok = !cpu_.on(action::ptwrite{ip, ip + 5, done.marks++, true}).happened;
            for (unsigned i = 0; i < branches_per_mark; ++i) {
                bool const taken = (done.branches++ * 0x9E37'79B9 >> 16 & 1) != 0;
                ok = !cpu_.on(action::conditional{program_ip + uint64_t{0x10} * i, taken})
                          .happened &&
                     ok;
            }
            if (cpu_.deliver_pmi()) {
                ++interrupts_;
                ok = driver_.on_pmi([this] { unmask(); }) == driver::pmi_outcome::handled && ok;
            }
            if (!ok || !cpu_.is_tracing()) { return false; }
        }
        return true;
    }

    /// Traces a task for a moment, with a flush in between. Its trace then continues.
    [[nodiscard]] auto try_out(task& one) noexcept -> bool {
        constexpr unsigned some = 100;
        if (!driver::enable(cpu_, one.msrs) || !execute(one, some)) { return false; }
        if (!driver::check_enabled(cpu_, one.msrs)) { return false; }
        auto const flushed = driver::flush(cpu_, one.msrs.ctl);
        if (!flushed || flushed.trace != driver::trace_state::enabled) { return false; }
        if (!execute(one, some)) { return false; }
        auto const stopped = driver::disable(cpu_);
        one.msrs.status = stopped.status;
        one.msrs.output = stopped.output;
        return stopped && stopped.trace == driver::trace_state::disabled &&
               driver::triage(stopped).reason == driver::end_reason::none;
    }

    [[nodiscard]] static auto check(task& one) noexcept -> char const* {
        one.reader.finish();
        one.decode();
        if (one.gaps != 0) { return "a ring was full"; }
        if (!(one.read == one.stored)) { return "the bytes read are not those stored"; }
        if (one.read.count <= one.ring.bytes) { return "a ring did not wrap"; }
        bool const all = one.decoded.in_order && one.decoded.seen.marks == one.executed.marks &&
                         one.decoded.seen.branches == one.executed.branches;
        return all ? nullptr : "the trace is not that of the program";
    }

    host_region regions_[region_count]{};
    host_memory memory_;
    task_list list_{};
    simulate::fake_processor<host_memory, task_list> cpu_;
    skeleton::pt_driver<decltype(cpu_), simulation> driver_{cpu_, *this};
    unsigned interrupts_ = 0;
    unsigned switches_ = 0;
};

/// Memory in which an object is constructed: there is no header <new>.
struct place {
    void* at;
};

}  // namespace

auto operator new(decltype(sizeof 0), place where) noexcept -> void* { return where.at; }

void module_detect(module_detection* found) {
    ports::x86_cpuid cpuid;
    ports::x86_msrs<kernel_access> msrs;
    auto const pt = driver::detect(cpuid, msrs);
    found->has_pt = pt.caps.has_pt();
    found->is_in_use = pt.is_in_use();
    found->access_is_broken = !accesses_work(msrs);
}

auto module_state_bytes() -> unsigned long { return sizeof(simulation); }

void module_trace(module_buffers const* buffers, module_result* result) {
    static_assert(alignof(simulation) <= 16);
    auto& run = *new (place{buffers->state}) simulation{*buffers};
    result->failure = run.run();
    result->bytes = run.bytes();
    result->interrupts = run.interrupts();
    result->switches = run.switches();
}
