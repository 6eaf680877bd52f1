// SPDX-License-Identifier: BSL-1.0

// Runs the test cases of WRMSR that `regmap --cases` writes on the model, by the runner in C.
//
//   regmap_cases LIBRARY PROCESSOR [DEFECT]
//   regmap_cases --list
//
// LIBRARY is a shared library with `run_msr_cases`, which calls the functions below. PROCESSOR is
// the name of a preset, or `random:N`: capabilities of the seed N. Prints a line of TAP for each
// test. Exit status 1: a test failed. A DEFECT changes the model:
//
//   reserved    reserved bits are ignored
//   features    bits of features that the processor lacks are ignored
//   enables     TraceEn may be 1 with output, or without BranchEn, that the processor lacks
//   encodings   encodings that the processor does not list are accepted
//   unlocked    while TraceEn is 1, every MSR can be written
//   changes     while TraceEn is 1, IA32_RTIT_CTL can be changed
//   clears      a write that clears TraceEn faults if it changes another field
//   faulting    a WRMSR that faults has written the MSR
//   refuses     every WRMSR faults
//   accepts     no WRMSR faults
//   stays       TraceEn stays 1
//   canonical   every address is accepted
//   beyond      every output base below 2^52 is accepted
//   present     all MSRs exist
//   no-memory   target_pages is null
//   tracing     TraceEn is 1 before the tests
//
// and two that the rules allow (REG-011, REG-061):
//
//   stale       while TraceEn is 1, STATUS and the MSRs of output read another value each time
//   own         FilterEn and ContextEn read 1
//
// Output outside the two given pages, with the model or a defect, ends the program with status 3.

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/suite/safety.hpp>

#include <support/random_numbers.hpp>

#include "../../examples/msr_cases/run_msr_cases.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <dlfcn.h>

namespace {

using namespace ptspec;

constexpr std::uint64_t physical = 0x1234'5000;
alignas(4096) std::uint64_t pages[1024];

[[noreturn]] void end(char const* why) {
    std::printf("Bail out! %s\n", why);
    std::exit(3);
}

/// The two pages. An access of other memory ends the program.
struct two_pages {
    static auto bytes(std::uint64_t address, std::size_t count) -> std::uint8_t* {
        std::uint64_t const offset = address - physical;
        if (offset > sizeof pages || count > sizeof pages - offset) {
            end("output outside the given pages");
        }
        return reinterpret_cast<std::uint8_t*>(pages) + offset;
    }
    auto load(std::uint64_t address) noexcept -> port_value {
        return {true, load_le64(bytes(address, 8))};
    }
    auto store(std::uint64_t address, byte_view from) noexcept -> std::size_t {
        auto* const to = bytes(address, from.size());
        for (std::size_t i = 0; i < from.size(); ++i) { to[i] = from[i]; }
        return from.size();
    }
    auto send(byte_view) noexcept -> std::size_t { end("output to the fabric"); }
    void raise() noexcept { end("a PMI"); }
};

two_pages memory;
std::optional<simulate::fake_processor<two_pages>> processor;
cpu::capabilities caps;
std::string defect;
unsigned tests = 0;

/// What a wrong processor has instead, as soon as it differs.
struct wrong_value {
    bool is_kept = false;
    std::uint64_t value = 0;
};
wrong_value kept[access::last_pt_msr - access::first_pt_msr + 1];

auto is(std::string_view name) -> bool { return defect == name; }

/// Lets the model take a value that it refuses, as far as TraceEn counts for it.
void force(std::uint32_t msr, std::uint64_t value) {
    using ctl = reg::ia32_rtit_ctl;
    kept[msr - access::first_pt_msr] = {true, value};
    bool const is_on = ctl{value}.get<ctl::TraceEn>();
    if (msr != ctl::address || is_on == processor->is_tracing()) { return; }
    bool const topa = !caps.supports(cpu::output_scheme::single_range);
    (void)processor->write(msr, is_on ? topa ? 0x2101 : 0x2001 : 0);
}

/// True if the processor with the defect accepts what breaks a rule.
auto forgives(rule broken, std::uint32_t msr, std::uint64_t value) -> bool {
    bool const low_bits = (value & 0x7F) != 0;
    switch (broken) {
        case rule::REG_044:
        case rule::REG_052:
        case rule::REG_074: return is("reserved");
        case rule::REG_070:
            return low_bits ? is("reserved") : is("beyond") && value < std::uint64_t{1} << 52;
        case rule::REG_028:
        case rule::REG_037: return is("encodings");
        case rule::REG_004: return is("unlocked");
        case rule::REG_021: return is("changes");
        case rule::REG_076: return is("canonical");
        case rule::REG_001:
        case rule::REG_012:
        case rule::REG_013:
        case rule::REG_014: return is("present") && msr != reg::ia32_rtit_ctl::address;
        case rule::REG_025:
        case rule::REG_040: return is("enables");
        default: return is("features");
    }
}

/// Ends the program if output could leave the pages when TraceEn is 1, even on a processor that
/// accepts the value, or makes something else of the MSRs or of the tables.
void require_safe_output(std::uint32_t msr, std::uint64_t value) {
    suite::given_memory const given{
        .base = {physical}, .bytes = reinterpret_cast<std::uint8_t*>(pages), .pages = 2};
    auto output = processor->msrs().output;
    if (msr == reg::ia32_rtit_output_base::address) { output.base = {value}; }
    if (msr == reg::ia32_rtit_output_mask_ptrs::address) { output.mask_ptrs = {value}; }
    if (!suite::output_stays_inside(given, output.base, output.mask_ptrs)) {
        end("TraceEn is set where output could leave the given pages");
    }
}

/// WRMSR. False if it faults.
auto write(std::uint32_t msr, std::uint64_t value) -> bool {
    using ctl = reg::ia32_rtit_ctl;
    bool const is_ctl = msr == ctl::address;
    auto& wrong = kept[msr - access::first_pt_msr];
    auto const& wrong_ctl = kept[ctl::address - access::first_pt_msr];
    auto now = processor->msrs();
    if (wrong_ctl.is_kept) { now.ctl = {wrong_ctl.value}; }
    bool const clears = is_ctl && now.ctl.get<ctl::TraceEn>() && (value & 1) == 0;
    if (is("refuses")) { return false; }
    if (is("stays") && clears) { return true; }
    if (is("clears") && clears && value != 0 && value != now.ctl.raw - 1) { return false; }
    if (now.ctl.get<ctl::TraceEn>() || (is_ctl && (value & 1) != 0)) {
        require_safe_output(msr, value);
    }
    auto const broken = access::check_write(caps, now, msr, value).broken;
    if (broken != rule::none) {
        bool const accepted = is("accepts") || forgives(broken, msr, value);
        if (accepted || is("faulting")) { force(msr, value); }
        return accepted;
    }
    wrong.is_kept = false;
    return processor->write(msr, value);
}

auto processor_named(std::string_view name) -> cpu::capabilities {
    if (auto const found = cpu::preset::find({name.data(), name.size()})) { return found->value; }
    if (!name.starts_with("random:")) { end("no such processor"); }
    test::random_numbers random{std::strtoull(name.data() + 7, nullptr, 10)};
    cpu::capabilities made;
    auto const word = [&] { return static_cast<std::uint32_t>(random()); };
    made.leaf_07_0_ebx = {random.one_in(8) ? 0 : 1U << 25};
    made.leaf_14_0_eax = {random.one_in(4) ? 0 : 1U};
    made.leaf_14_0_ebx = {word() & 0x3FF};
    made.leaf_14_0_ecx = {word() & 0x8000'000F};
    made.leaf_14_1_eax = {word()};
    made.leaf_14_1_ebx = {word()};
    auto const physical_bits = static_cast<std::uint32_t>(32 + random.below(21));
    made.leaf_80000008_eax = {
        random.one_in(4) ? 0 : physical_bits | (random.one_in(2) ? 48U : 57U) << 8};
    return made;
}

}  // namespace

extern "C" {

uint64_t* target_pages = pages;
uint64_t target_pages_address = physical;

auto target_rdmsr_safe(uint32_t msr, uint64_t* value) -> int {
    auto const& wrong = kept[msr - access::first_pt_msr];
    if (wrong.is_kept) {
        *value = wrong.value;
        return 0;
    }
    if (is("present") && !access::exists(caps, msr)) {
        *value = 0;
        return 0;
    }
    auto const got = processor->read(msr);
    if (got) { *value = got.value; }
    bool const is_status = msr == reg::ia32_rtit_status::address;
    if (is("own") && is_status) { *value |= 3; }
    if (is("stale") && processor->is_tracing() && (is_status || msr <= 0x561)) {
        static std::uint64_t reads = 0;
        *value ^= ++reads << 32;
    }
    return got ? 0 : 13;
}
auto target_wrmsr_safe(uint32_t msr, uint64_t value) -> int { return write(msr, value) ? 0 : 13; }

void target_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t registers[4]) {
    auto const got = processor->query(leaf, subleaf);
    registers[0] = got.eax;
    registers[1] = got.ebx;
    registers[2] = got.ecx;
    registers[3] = got.edx;
}
void target_report(int pass, char const* name) {
    std::printf("%sok %u - %s\n", pass != 0 ? "" : "not ", ++tests, name);
}

}  // extern "C"

auto main(int count, char** arguments) -> int {
    if (count == 2 && std::string_view{arguments[1]} == "--list") {
        for (auto const& one : cpu::preset::all) {
            std::printf("%.*s\n", static_cast<int>(one.name.size()), one.name.data());
        }
        return 0;
    }
    auto* const library = count == 3 || count == 4 ? ::dlopen(arguments[1], RTLD_NOW) : nullptr;
    auto* const run = library != nullptr ? ::dlsym(library, "run_msr_cases") : nullptr;
    if (run == nullptr) {
        char const* const why = ::dlerror();
        std::fprintf(stderr, "usage: regmap_cases LIBRARY PROCESSOR [DEFECT]%s%s\n",
                     why != nullptr ? ": " : "", why != nullptr ? why : "");
        return 2;
    }
    defect = count == 4 ? arguments[3] : "";
    caps = processor_named(arguments[2]);
    processor.emplace(caps, memory);
    if (is("no-memory")) { target_pages = nullptr; }
    if (is("tracing")) {
        (void)processor->write(reg::ia32_rtit_status::address, 0x20);
        (void)processor->write(reg::ia32_rtit_ctl::address, 0x2001);
    }
    auto const before = processor->msrs();
    using status = reg::ia32_rtit_status;
    unsigned const failures = reinterpret_cast<unsigned (*)()>(run)();
    auto after = processor->msrs();
    after.status.raw &= ~status::write_ignored_mask();
    if (defect.empty() && after != before) { end("the MSRs are not restored"); }
    std::printf("1..%u\n", tests);
    return failures == 0 ? 0 : 1;
}
