// SPDX-License-Identifier: BSL-1.0

// A tour of ptspec: a ToPA ring that is built and checked at compile time, the address arithmetic
// of its regions, why an invalid table is rejected, and a trace that is decoded packet by packet.
// `tour FILE` reads a raw trace from a file.

#include "standard_output.hpp"
#include "tools/common/listing.hpp"

#include <ptspec/ptspec.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using namespace ptspec;

// A table of two output regions with a link to itself. A misaligned region, an address that is too
// wide or a missing link stops the build here.
constexpr uint64_t table_address = 0x1'0000'0000;
constexpr auto ring = topa::ring(
    table_address, topa::region{.base = 0x1'0010'0000, .size = topa::region_size::size_1M},
    topa::region{.base = 0x1'0020'0000, .size = topa::region_size::size_64K, .interrupt = true});

static_assert(ring.entries[1].raw == (0x1'0020'0000 | 4 << 6 | 1 << 2));
static_assert(ring.entries[2] == topa::link_to(table_address));

// The page that the processor reads, initialised at compile time.
alignas(4096) constinit auto const placed = ring;

// The address of the next byte of trace, from the two output registers and the entry that they
// select: the second one, 16 bytes into its region.
constexpr reg::ia32_rtit_output_base base{0x1'0000'0000};
constexpr reg::ia32_rtit_output_mask_ptrs pointers{0x10'0000'00FF};
constexpr auto where = topa::position_in(base, pointers);
static_assert(where == topa::position{.table = 0x1'0000'0000, .index = 1, .offset = 16});
static_assert(topa::table_pointer(where) == 0x1'0000'0008);
static_assert(topa::trace_store_phys_addr(where, topa::entry{0x1'0020'0104}) == 0x1'0020'0010);

static_assert(topa::mask_ptrs_of(where) == pointers);
static_assert(topa::bytes_left(where, ring.entries[1]) == 0x1'0000 - 16);
static_assert(topa::next_entry(where) == topa::position{.table = table_address, .index = 2});
static_assert(topa::follow_end(ring.entries[2]) == topa::position{.table = table_address});

// A table from another source: its second region has 64 KB, but its base is not a multiple of 64
// KB. The model says why tracing stops there, before any hardware is programmed.
auto explain_an_error() -> engine::explanation {
    static uint8_t page[4096];
    static uint8_t output[4096];
    store_le64(page, 0x1'0010'0000);
    store_le64(page + 8, 0x1'0020'8000 | 4 << 6);
    host_region const regions[] = {{table_address, page, sizeof page},
                                   {0x1'0010'0000, output, sizeof output}};
    host_memory memory{regions};

    constexpr auto const& processor = cpu::preset::skylake_x;
    using ctl = reg::ia32_rtit_ctl;
    access::msr_state now;
    now.output.base = base;
    constexpr auto start = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::User{true},
                                      ctl::ToPA{true}, ctl::BranchEn{true});
    now = access::effect_of_write(processor, now, ctl::address, start.raw).state;

    engine::output out;
    (void)out.start(processor, now, memory);
    uint8_t const bytes[4096] = {};
    (void)out.write(now, memory, bytes);  // fills the first region and advances to the second
    return engine::explain(processor, now, memory);
}

// A small trace, encoded at compile time: PSB+, then some branches.
constexpr auto make_trace() {
    using namespace packet;
    struct {
        byte_array<64> bytes{};
        size_t size = 0;
    } trace;
    byte_buffer out{trace.bytes.bytes};
    bool whole = true;
    auto const done = [&](rule broken) { whole = whole && broken == rule::none; };
    trace::writer to{out, {.cyc = true}};
    done(to.put(trace::psb_status{.tsc = tsc{}.with(tsc::TSC{0x924C'2FED'C03F}),
                                  .cbr = cbr{}.with(cbr::CoreBusRatio{24}),
                                  .mode_exec = mode_exec{}.with(mode_exec::CS_L{true}),
                                  .fup = 0x40'1000}));
    bool const outcomes[] = {true, true, false, true};
    for (bool const taken : outcomes) { done(to.branch(taken)); }
    done(to.indirect(0x40'2042));  // a TNT, and a TIP with two bytes of IP
    to.advance(398);
    done(to.put(mtc{}.with(mtc::CTC{0x9A})));  // preceded by a CYC
    done(to.put(tip_pgd{}));
    trace.size = whole ? out.size() : 0;
    return trace;
}
constexpr auto own_trace = make_trace();

// Decoding works at compile time, too.
static_assert(trace::reader{byte_view{own_trace.bytes}.first(own_trace.size)}.scan().total() == 11);

/// Returns false if there is no PSB to begin at.
auto list(byte_view bytes) -> bool {
    trace::reader reader{bytes};
    listing::totals totals;
    for (auto item = reader.next();; item = reader.next()) {
        std::string line;
        totals.count(item);
        listing::append_line(line, item, totals);
        std::fputs(line.c_str(), stdout);
        if (!item) { return totals.packets != 0; }
    }
}

void summarise(byte_view bytes) {
    auto const sum = trace::reader{bytes}.scan();
    std::printf("\n%zu bytes, %llu packets, %llu errors\n", bytes.size(),
                static_cast<unsigned long long>(sum.total()),
                static_cast<unsigned long long>(sum.errors));
    for (unsigned i = 0; i < packet::kind_count; ++i) {
        if (sum.packets[i] == 0) { continue; }
        auto const name = packet::name_of(static_cast<packet::kind>(i));
        std::printf("%-10s %10llu packets %10llu bytes\n", name.data(),
                    static_cast<unsigned long long>(sum.packets[i]),
                    static_cast<unsigned long long>(sum.bytes[i]));
    }
}

}  // namespace

auto main(int count, char** arguments) -> int {
    bool const asks = count == 2 && std::string_view{arguments[1]} == "--help";
    if (asks || count > 2) {
        std::fprintf(asks ? stdout : stderr, "usage: tour [FILE]\n");
        return asks ? 0 : 2;
    }
    if (count == 2) {
        std::ifstream file;
        if (!std::filesystem::is_directory(arguments[1])) {
            file.open(arguments[1], std::ios::binary);
        }
        std::vector<char> const bytes{std::istreambuf_iterator<char>{file}, {}};
        if (!file || bytes.empty()) {
            std::fprintf(stderr, "tour: %s: cannot be read, or is empty\n", arguments[1]);
            return 2;
        }
        byte_view const trace{reinterpret_cast<uint8_t const*>(bytes.data()), bytes.size()};
        bool const has_psb = list(trace);
        summarise(trace);
        if (!has_psb) { std::fprintf(stderr, "tour: %s: no PSB to begin at\n", arguments[1]); }
        return has_psb ? 0 : 3;
    }

    std::printf("A ToPA ring of %zu entries, made while compiling:\n", ring.size());
    for (auto const& entry : placed.entries) {
        std::printf("  %016llx\n", static_cast<unsigned long long>(entry.raw));
    }
    std::printf("The next byte of trace goes to %llx.\n",
                static_cast<unsigned long long>(
                    topa::trace_store_phys_addr(where, placed.entries[where.index]).value));

    auto const found = explain_an_error();
    auto const string_of = [](text it) { return std::string{it.data(), it.size()}; };
    std::printf("\nWhy is STATUS.Error set? %s, table %llx, entry %u, %s:\n  %s\n",
                string_of(rule_id{found.ended_by}.view()).c_str(),
                static_cast<unsigned long long>(found.at.table.value), found.at.index,
                string_of(found.field).c_str(), string_of(describe(found.ended_by)).c_str());

    std::printf("\nA trace of %zu bytes:\n", own_trace.size);
    auto const bytes = byte_view{own_trace.bytes}.first(own_trace.size);
    (void)list(bytes);
    summarise(bytes);
    return 0;
}
