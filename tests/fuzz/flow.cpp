// SPDX-License-Identifier: BSL-1.0
// Fuzzes the walk of code: any trace, over any code.
//
//   byte 0    the size of the code, 4 bytes a unit
//   byte 1    bit 0: the last page of the code is absent; bits 2:1 the code size of MODE.Exec; bit
//             3: the processor has the errata of Skylake
//   byte 2    the size of the small caches, less 1
//   then the code, at 1000H, and the trace, after a PSB+ whose IP is 1000H

#include <ptspec/cpu/quirks.hpp>
#include <ptspec/flow.hpp>

#include <fuzz/check.hpp>

#include <vector>

namespace {

using fuzz::require;
using namespace ptspec;

/// Code in pages of 64 bytes, so that instructions cross them.
struct pages {
    byte_view bytes;
    bool lacks_last = false;
    mutable bool is_absent = false;

    [[nodiscard]] auto code(uint64_t at, uint32_t) const -> byte_view {
        uint64_t const offset = at - 0x1000;
        if (offset >= bytes.size() || is_absent) { return {}; }
        auto const from = static_cast<size_t>(offset);
        size_t const page = from / 64;
        if (lacks_last && page == (bytes.size() - 1) / 64) { return {}; }
        return bytes.from(from).first(64 - from % 64);
    }
};

constexpr auto mixed(uint64_t sum, uint64_t value) -> uint64_t {
    return (sum ^ value) * 0x9E37'79B9'7F4A'7C15 + 1;
}

/// Sums of what is reported, in order.
struct sums {
    using ignores_gaps = sums;

    uint64_t instructions = 0;
    uint64_t count = 0;
    uint64_t edges = 0;

    void instruction(flow::executed const& one) {
        instructions = mixed(mixed(instructions, one.ip), one.length);
        ++count;
    }
    void edge(flow::edge const& one) {
        edges = mixed(mixed(mixed(edges, one.from), one.to), one.is_taken);
    }
    friend auto operator==(sums const&, sums const&) -> bool = default;
};

struct depths {
    using ignores_gaps = depths;

    int64_t depth = 0;

    void call(flow::call const& one) {
        require(one.depth == depth + 1, "a call is one deeper");
        depth = one.depth;
    }
    void returned(flow::call_return const& one) {
        require(one.depth < depth, "a return is less deep");
        depth = one.depth;
    }
};

}  // namespace

auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::input from{data, size};
    size_t const wanted = size_t{4} * from.byte();
    uint8_t const options = from.byte();
    size_t const few = size_t{1} + from.byte();
    fuzz::copy const code_bytes{from.rest().first(wanted)};
    byte_view const rest = from.rest().from(wanted);
    // PSB, MODE.Exec, FUP 1000H, PSBEND.
    std::vector<uint8_t> made;
    for (int i = 0; i < 8; ++i) { made.insert(made.end(), {0x02, 0x82}); }
    made.insert(made.end(), {0x99, static_cast<uint8_t>(options >> 1 & 3), 0x7D, 0x00, 0x10, 0, 0,
                             0, 0, 0x02, 0x23});
    made.insert(made.end(), rest.begin(), rest.end());
    fuzz::copy const trace{byte_view{made}};
    borrowed_bytes const whole{trace.data(), trace.size()};
    pages code{byte_view{code_bytes.data(), code_bytes.size()}, (options & 1) != 0};
    flow::walk_options how{.quirks = {}};
    if ((options & 8) != 0) { how.quirks = cpu::quirks_of({6, 94, 3}); }

    static flow::block many_blocks[1024];
    std::vector<flow::block> few_blocks(few);
    flow::block_cache large{many_blocks};
    large.clear();
    flow::block_cache limited{few_blocks.data(), few_blocks.size()};

    sums one;
    flow::walker walk{whole, code, large, how};
    require(walk.run(one) == flow::walk_end::end, "a walk ends");
    // A TNT bit passes each block of the code at most some times.
    uint64_t const most = (uint64_t{trace.size()} * 8 + 8) * (code_bytes.size() + 64) * 4;
    require(one.count <= most, "the work is bounded");

    sums again;
    flow::walker small{whole, code, limited, how};
    (void)small.run(again);
    require(one == again, "the size of the cache changes nothing");

    // In chunks, and code that comes when it is asked for.
    sums pieces;
    how.missing = flow::on_missing_code::stop;
    flow::walker fed{code, limited, how};
    code.is_absent = true;
    limited.clear();
    byte_view left{trace.data(), trace.size()};
    std::vector<uint8_t> chunk;
    uint64_t missed = ~uint64_t{0};
    for (auto end = fed.run(pieces); end != flow::walk_end::end; end = fed.run(pieces)) {
        if (end == flow::walk_end::missing_code) {
            if (!code.is_absent) { break; }  // it is absent for ever: the other walks have a gap
            code.is_absent = false;
            missed = fed.missing();
        } else if (left.empty()) {
            fed.finish();
        } else {
            size_t const count = few < left.size() ? few : left.size();
            chunk.assign(left.data(), left.data() + count);
            left = left.from(count);
            require(fed.feed(borrowed_bytes{chunk.data(), chunk.size()}), "it asked for a chunk");
        }
    }
    require(pieces.count <= one.count, "the walk up to absent code is the same");
    (void)missed;

    how.missing = flow::on_missing_code::gap;
    // The counts of edges, with and without a table of runs.
    static uint8_t plain[64];
    static uint8_t with_runs[64];
    for (size_t i = 0; i < 64; ++i) { plain[i] = with_runs[i] = 0; }
    std::vector<flow::run> run_storage(few);
    flow::run_table runs{run_storage.data(), run_storage.size()};
    flow::coverage first{plain, 64};
    flow::coverage second{with_runs, 64, &runs};
    flow::walker counts{whole, code, large, how};
    flow::walker repeats{whole, code, large, how};
    for (int i = 0; i < 3; ++i) {
        (void)counts.run(first);
        (void)repeats.run(second);
        counts.next_input(whole);
        repeats.next_input(whole);
    }
    for (size_t i = 0; i < 64; ++i) { require(plain[i] == with_runs[i], "runs change no count"); }

    sums in_parts;
    for (auto const& part : flow::parts{whole, 3, how.quirks}) {
        flow::walker walker{borrowed_bytes{part.bytes.data(), part.bytes.size()}, code, large,
                            part.options(how)};
        (void)walker.run(in_parts);
    }
    require(in_parts.edges == one.edges && in_parts.instructions == one.instructions,
            "parts report the same");

    depths to;
    flow::frame frames[4];
    flow::call_stack calls{frames, to};
    flow::walker called{whole, code, large, how};
    (void)called.run(calls);
    require(calls.depth() == to.depth, "the depth is that of the reports");
    return 0;
}
