// SPDX-License-Identifier: BSL-1.0

// Prints the hash of the conditional branches of a trace that libxdc's regression tests use.
//
//   edge_hash TRACE MEMORY ADDRESSES
//
// MEMORY and ADDRESSES are those of `pt_flow --pages`. The trace is walked three times: without a
// table of runs, with an empty one, and with a full one. Exit status: 0; 1 the hashes differ;
// 2 a file cannot be read.

#include <tools/common/traced/images.hpp>

#include <ptspec/flow.hpp>

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace ptspec;
using table = std::vector<std::uint8_t>;

/// The lower 64 bits of MurmurHash3_x64_128. The size must be a multiple of 16 bytes.
auto murmur3(table const& bytes, std::uint64_t seed) -> std::uint64_t {
    constexpr std::uint64_t c1 = 0x87C3'7B91'1142'53D5;
    constexpr std::uint64_t c2 = 0x4CF5'AD43'2745'937F;
    auto const mixed = [](std::uint64_t k) {
        k = (k ^ k >> 33) * 0xFF51'AFD7'ED55'8CCD;
        k = (k ^ k >> 33) * 0xC4CE'B9FE'1A85'EC53;
        return k ^ k >> 33;
    };
    std::uint64_t h1 = seed;
    std::uint64_t h2 = seed;
    for (std::size_t i = 0; i + 16 <= bytes.size(); i += 16) {
        h1 ^= std::rotl(load_le64(&bytes[i]) * c1, 31) * c2;
        h1 = (std::rotl(h1, 27) + h2) * 5 + 0x52DC'E729;
        h2 ^= std::rotl(load_le64(&bytes[i + 8]) * c2, 33) * c1;
        h2 = (std::rotl(h2, 31) + h1) * 5 + 0x3849'5AB5;
    }
    h1 ^= bytes.size();
    h2 ^= bytes.size();
    h1 += h2;
    h2 += h1;
    return mixed(h1) + mixed(h2);
}

/// Counts conditional branches, taken or not, in a bitmap of 64 KB.
struct conditional_counts {
    using ignores_gaps = conditional_counts;

    static constexpr std::uint32_t not_counted = 0xFFFF'FFFF;

    flow::run_table* known;
    table counts = table(65536);

    [[nodiscard]] auto runs() const -> flow::run_table* { return known; }
    [[nodiscard]] auto index_of(flow::edge const& one) const -> std::uint32_t {
        if (one.kind != x86::instruction_class::conditional) { return not_counted; }
        auto const spread = [](std::uint64_t ip) {
            return (ip ^ ip >> 31) * 0x7FB5'D329'728E'A185;
        };
        return static_cast<std::uint16_t>(spread(one.to) ^ spread(one.from) >> 1);
    }
    void count(std::uint32_t index, std::uint64_t times = 1) {
        counts[index] = static_cast<std::uint8_t>(counts[index] + times);
    }
    void edge(flow::edge const& one) {
        auto const index = index_of(one);
        if (index != not_counted) { count(index); }
    }
};

auto run_tool(tool::command_line& line) -> int {
    std::vector<std::string> files;
    while (line.next()) { files.push_back(line.argument()); }
    if (files.size() != 3) { throw tool::failure{"takes a trace, its memory and its addresses"}; }
    auto const trace = tool::read_all(files[0], traced::images::max_bytes);
    traced::images images;
    images.add_pages(files[1], files[2]);
    auto code = images.spans();
    std::vector<flow::block> block_storage(16384);
    std::vector<flow::run> run_storage(4096);
    flow::block_cache blocks{block_storage.data(), block_storage.size()};
    flow::run_table runs{run_storage.data(), run_storage.size()};
    flow::walker walker{borrowed_bytes{trace.data(), trace.size()}, code, blocks};
    std::uint64_t found[3] = {};
    for (int i = 0; i < 3; ++i) {
        conditional_counts to{i == 0 ? nullptr : &runs};
        (void)walker.run(to);
        walker.next_input(borrowed_bytes{trace.data(), trace.size()});
        found[i] = murmur3(to.counts, 0xAAAA'AAAA);
        std::printf("%016" PRIx64 "\n", found[i]);
    }
    return found[0] == found[1] && found[0] == found[2] ? 0 : 1;
}

}  // namespace

auto main(int argc, char** argv) -> int { return tool::run("edge_hash", argc, argv, run_tool); }
