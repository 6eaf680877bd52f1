// SPDX-License-Identifier: BSL-1.0
// Measures the speed of output into a ring of 4 KB regions: engine::output against memcpy of the
// same bytes to the same addresses in the same order. The two alternate, one pass over the ring or
// 2 MB at a time, and each turn is compared with the adjacent turn of the other. Times are CPU
// times of this process: other processes have an effect only through the caches.
//
//   output                 prints the table
//   output --gate RATIO    also fails when a median is below RATIO, except for regions listed by
//                          address, where host_memory has to search
//   output --small         prints only the time of small writes
//   output --writes N SIZE REGIONS   only makes N writes of SIZE bytes, to count instructions
//   output --copies N SIZE REGIONS   the same with memcpy
//
// Ratios are speeds: 1 is as fast as memcpy, 0.5 takes twice as long.
// Exit status: 0 all is well, 1 a difference or a slow row, 2 wrong usage.

#include <ptspec/cpu/presets.hpp>
#include <ptspec/base/host_memory.hpp>

#include <support/tracer.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

namespace {

using namespace ptspec;

constexpr size_t region_bytes = 4096;
constexpr uint64_t table_address = 0x1'0000'0000;
constexpr uint64_t first_region = 0x2'0000'0000;
constexpr size_t turn_bytes = size_t{2} << 20;

/// How the regions of a ring are placed in memory, and listed in `host_memory`.
enum class layout : uint8_t {
    together,    ///< contiguous, as one `host_region`
    scattered,   ///< shuffled, each a `host_region`, listed in the order of the table
    by_address,  ///< shuffled, each a `host_region`, listed by ascending address
};
constexpr char const* layout_names[] = {"together", "scattered", "by address"};

struct alignas(region_bytes) page {
    uint8_t bytes[region_bytes];
};

/// A ToPA table, its regions, and the memory of both.
struct ring {
    std::vector<page> pages;
    std::vector<size_t> order;  ///< of the pages in the table
    std::vector<uint8_t> table;
    std::vector<host_region> parts;

    ring(size_t count, layout how) : pages(count), order(count), table((count + 1) * 8) {
        for (size_t i = 0; i < count; ++i) { order[i] = i; }
        if (how != layout::together) { std::shuffle(order.begin(), order.end(), std::mt19937{1}); }
        for (size_t i = 0; i < count; ++i) {
            // Scattered regions are not adjacent.
            uint64_t const address = first_region +
                                     order[i] * region_bytes * (how == layout::together ? 1 : 2);
            store_le64(&table[8 * i], address);
            parts.push_back({address, pages[order[i]].bytes, region_bytes});
        }
        store_le64(&table[8 * count], topa::link_to(table_address).raw);
        if (how == layout::together) {
            parts = {{first_region, pages[0].bytes, count * region_bytes}};
        }
        parts.push_back({table_address, table.data(), table.size()});
        if (how == layout::by_address) {
            std::sort(parts.begin(), parts.end(),
                      [](auto const& a, auto const& b) { return a.base < b.base; });
        }
    }

    auto size() const -> size_t { return pages.size() * region_bytes; }
    void clear() { std::memset(pages.data(), 0, size()); }
    auto sum() const -> uint64_t {
        uint64_t found = 0;
        for (size_t i = 0; i < size(); ++i) {
            found = found * 31 + pages[i / region_bytes].bytes[i % region_bytes];
        }
        return found;
    }
};

/// Writes through engine::output.
struct through_output {
    host_memory memory;
    test::tracer<host_memory> cpu{.of = cpu::preset::P_SKL, .memory = memory};

    explicit through_output(ring const& in) : memory{in.parts.data(), in.parts.size()} {
        cpu.place(table_address, 0x7F);
        if (!cpu.enable_topa() || !cpu.is_running()) { std::abort(); }
    }
    [[gnu::always_inline]]  // no call in either loop that is not part of the measured code
    void
    write(byte_view bytes) {
        if (cpu.out.write(cpu.now, memory, bytes).stored != bytes.size()) { std::abort(); }
    }
};

/// Writes with memcpy. It knows the next region without a table.
struct by_memcpy {
    page* pages;
    size_t const* order;
    size_t count;
    size_t at = 0;
    size_t offset = 0;

    explicit by_memcpy(ring& in)
        : pages{in.pages.data()}, order{in.order.data()}, count{in.pages.size()} {}
    [[gnu::always_inline]]  // as above
    void
    write(byte_view bytes) {
        for (size_t done = 0; done < bytes.size();) {
            size_t const piece = std::min(bytes.size() - done, region_bytes - offset);
            std::memcpy(pages[order[at]].bytes + offset, bytes.data() + done, piece);
            done += piece;
            offset += piece;
            if (offset == region_bytes) {
                offset = 0;
                at = at + 1 == count ? 0 : at + 1;
            }
        }
    }
};

auto nanoseconds() -> double {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Nanoseconds for `count` writes.
template <class Writer>
auto time_of(Writer& to, byte_view bytes, size_t count) -> double {
    double const begin = nanoseconds();
    for (size_t i = 0; i < count; ++i) { to.write(bytes); }
    return nanoseconds() - begin;
}

auto median(std::vector<double> values) -> double {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// True when both leave the same bytes in the ring.
auto agree(ring& in, byte_view bytes, size_t count) -> bool {
    in.clear();
    through_output ours{in};
    time_of(ours, bytes, count);
    uint64_t const one = in.sum();
    in.clear();
    by_memcpy plain{in};
    time_of(plain, bytes, count);
    return one == in.sum();
}

/// Measures one row, prints it, and returns the median of the ratios.
auto compare(size_t regions, layout how, byte_view bytes) -> double {
    ring in{regions, how};
    size_t const count = (std::max(in.size(), turn_bytes) + bytes.size() - 1) / bytes.size();
    size_t const turns = 800 * turn_bytes / std::max(in.size(), 4 * turn_bytes);
    if (!agree(in, bytes, in.size() / bytes.size() + 3)) {
        std::printf("output and memcpy left different bytes\n");
        std::exit(1);
    }
    auto const ours = std::make_unique<through_output>(in);
    by_memcpy plain{in};
    std::vector<double> ratios;
    std::vector<double> our_time;
    std::vector<double> plain_time;
    for (size_t i = 0; i <= turns; ++i) {
        // The order alternates.
        double const before = i % 2 != 0 ? time_of(plain, bytes, count) : 0;
        double const one = time_of(*ours, bytes, count);
        double const two = i % 2 != 0 ? before : time_of(plain, bytes, count);
        if (i == 0) { continue; }
        ratios.push_back(two / one);
        our_time.push_back(one / static_cast<double>(count));
        plain_time.push_back(two / static_cast<double>(count));
    }
    auto const [low, high] = std::minmax_element(ratios.begin(), ratios.end());
    std::printf("%7zu  %-10s %6zu  %9.1f %9.1f   %5.3f  %5.3f  %5.3f\n", regions,
                layout_names[static_cast<size_t>(how)], bytes.size(), median(our_time),
                median(plain_time), *low, median(ratios), *high);
    std::fflush(stdout);
    return median(ratios);
}

/// Measures small writes, of which many fit into a region.
void measure_small(byte_view bytes) {
    ring in{16, layout::together};
    auto const ours = std::make_unique<through_output>(in);
    by_memcpy plain{in};
    std::vector<double> our_time;
    std::vector<double> plain_time;
    for (unsigned i = 0; i < 51; ++i) {
        our_time.push_back(time_of(*ours, bytes, 100'000) / 100'000);
        plain_time.push_back(time_of(plain, bytes, 100'000) / 100'000);
    }
    std::printf("a write of %zu bytes: %.2f ns, by memcpy %.2f ns\n", bytes.size(),
                median(our_time), median(plain_time));
}

auto measure_all_small() -> int {
    static auto const trace = test::numbered_bytes<8>();
    for (size_t const bytes : {size_t{2}, size_t{8}}) {
        measure_small(byte_view{trace}.first(bytes));
    }
    return 0;
}

auto compare_all(double least) -> int {
    static auto const trace = test::numbered_bytes<65536>();
    unsigned slow = 0;
    std::printf("regions  layout      write  ours (ns)    memcpy     min median    max\n");
    for (size_t regions : {size_t{16}, size_t{256}, size_t{4096}}) {
        for (layout how : {layout::together, layout::scattered, layout::by_address}) {
            for (size_t bytes : {size_t{4096}, size_t{65536}, size_t{4096 + 13}}) {
                double const ratio = compare(regions, how, byte_view{trace}.first(bytes));
                slow += ratio < least && how != layout::by_address ? 1U : 0U;
            }
        }
    }
    measure_all_small();
    if (least > 0) { std::printf("%u medians are below %.3f\n", slow, least); }
    return slow == 0 ? 0 : 1;
}

auto usage() -> int {
    std::fputs("usage: output [--gate RATIO | --small | --writes N SIZE REGIONS | --copies N SIZE "
               "REGIONS]\n",
               stderr);
    return 2;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    if (count == 1) { return compare_all(0); }
    std::string_view const option = arguments[1];
    if (option == "--gate" && count == 3) {
        double const least = std::atof(arguments[2]);
        return least > 0 ? compare_all(least) : usage();
    }
    if (option == "--small" && count == 2) { return measure_all_small(); }
    if ((option == "--writes" || option == "--copies") && count == 5) {
        auto const number = [&](int at) { return std::strtoull(arguments[at], nullptr, 10); };
        std::vector<uint8_t> const bytes(number(3), 1);
        ring in{number(4), layout::scattered};
        through_output ours{in};
        by_memcpy plain{in};
        option == "--writes" ? time_of(ours, bytes, number(2)) : time_of(plain, bytes, number(2));
        return 0;
    }
    return usage();
}
