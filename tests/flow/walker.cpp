// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/block_counts.hpp>
#include <ptspec/flow/coverage.hpp>
#include <ptspec/flow/walker.hpp>
#include <ptspec/flow/with_ctl.hpp>

#include <support/check_twice.hpp>
#include <support/how_many.hpp>
#include <support/machine_runs.hpp>
#include <support/walked.hpp>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <random>
#include <string>
#include <vector>

using namespace ptspec;
using engine::model_kind;
using flow::gap_reason;
using test::made_code;
using test::made_stream;
using test::walk;
namespace machine_code = test::machine_code;

namespace {

constexpr auto on(std::string_view text) -> made_stream { return {text, model_kind::manual}; }

/// The code of a random program, one page at a time.
struct program_code {
    machine_code::code const& of;
    std::vector<std::uint8_t>& page;
    bool is_absent = false;

    [[nodiscard]] auto code(std::uint64_t at, std::uint32_t) const -> byte_view {
        if (is_absent) { return {}; }
        page.resize(4096);
        auto const most = static_cast<std::size_t>(4096 - at % 4096);
        return {page.data(), of.read(at, page.data(), most)};
    }
};

/// The instructions between overflows, and the gaps that have another reason.
struct stretches {
    std::vector<std::vector<std::uint64_t>> ips = std::vector<std::vector<std::uint64_t>>(1);
    unsigned gaps = 0;

    void instruction(flow::executed const& one) { ips.back().push_back(one.ip); }
    void gap(flow::gap const& one) { gaps += one.why != gap_reason::overflow ? 1 : 0; }
    void event(trace::event const& one) {
        if (one.what == trace::event_type::overflow) { ips.emplace_back(); }
    }
    friend auto operator==(stretches const&, stretches const&) -> bool = default;
};

/// A random program, and its trace.
struct traced_program {
    test::dice from;
    machine_code::plan what;
    machine_code::code program;
    machine_code::machine machine;
    std::vector<std::uint8_t> recorded{};
    bool counts_blocks = false;  ///< in `counted`

    explicit traced_program(std::uint64_t seed, bool has_tnt = true)
        : from{seed},
          what{plan_of(from, seed, has_tnt)},
          program{from},
          machine{what, program, from} {
        machine.run(3000);
        recorded = machine.trace();
    }
    static auto plan_of(test::dice& from, std::uint64_t seed, bool has_tnt) -> machine_code::plan {
        auto made = machine_code::random_plan(from, test::programs::kind_of_run(seed));
        made.with.dis_tnt = !has_tnt;
        made.overflows = made.overflows && has_tnt;
        return made;
    }
    [[nodiscard]] auto options() const -> flow::walk_options {
        return {.on_ret_mismatch = what.how.on_ret_mismatch};
    }
    [[nodiscard]] auto trace() const -> borrowed_bytes {
        return borrowed_bytes{recorded.data(), recorded.size()};
    }
    /// The counts of edges, with a table for this many runs; with 0 none.
    [[nodiscard]] auto counted(std::size_t runs, std::size_t blocks, std::size_t bytes) const
        -> std::vector<std::uint8_t> {
        std::vector<flow::block> storage(blocks);
        flow::block_cache cache{storage.data(), storage.size()};
        std::vector<flow::run> run_storage(std::max<std::size_t>(runs, 1));
        flow::run_table known{run_storage.data(), run_storage.size()};
        std::vector<std::uint8_t> counts(bytes);
        flow::coverage to{
            counts.data(), counts.size(), runs == 0 ? nullptr : &known, {.blocks = counts_blocks}};
        std::vector<std::uint8_t> page;
        program_code code{program, page};
        for (int i = 0; i < 2; ++i) {  // cold and warm
            flow::walker walker{trace(), code, cache, options()};
            (void)walker.run(to);
        }
        flow::walker walker{code, cache, options()};
        byte_view left = trace().view();
        std::vector<std::uint8_t> chunk;  // of its own memory, which changes
        while (walker.run(to) == flow::walk_end::need_input) {
            if (left.empty()) {
                walker.finish();
                continue;
            }
            std::size_t const size = std::min(left.size(), 20 + left.size() % 100);
            std::vector<std::uint8_t> next(left.data(), left.data() + size);
            chunk.swap(next);
            left = left.from(size);
            (void)walker.feed(borrowed_bytes{chunk.data(), chunk.size()});
        }
        return counts;
    }
    /// The counts of blocks, in the order of their addresses, with a table for this many runs.
    [[nodiscard]] auto blocks_counted(std::size_t runs) const
        -> std::map<std::uint64_t, std::uint32_t> {
        std::vector<flow::block> storage(64);
        flow::block_cache cache{storage.data(), storage.size()};
        std::vector<flow::run> run_storage(std::max<std::size_t>(runs, 1));
        flow::run_table known{run_storage.data(), run_storage.size()};
        std::vector<flow::block_count> counts(4096);
        flow::block_counts to{counts.data(), counts.size(), runs == 0 ? nullptr : &known};
        std::vector<std::uint8_t> page;
        program_code code{program, page};
        for (int i = 0; i < 2; ++i) {
            flow::walker walker{trace(), code, cache, options()};
            (void)walker.run(to);
        }
        std::map<std::uint64_t, std::uint32_t> made;
        for (auto const& one : counts) {
            if (one.count != 0) { made[one.ip] = one.count; }
        }
        return made;
    }
    /// The same from the edges and starts of a walk.
    [[nodiscard]] auto blocks_reached() const -> std::map<std::uint64_t, std::uint32_t> {
        struct blocks {
            using ignores_gaps [[maybe_unused]] = blocks;

            std::map<std::uint64_t, std::uint32_t> made{};
            void edge(flow::edge const& one) { made[one.to] += 2; }
            void start(std::uint64_t ip, std::uint32_t) { made[ip] += 2; }
        };
        blocks to;
        std::vector<flow::block> storage(64);
        flow::block_cache cache{storage.data(), storage.size()};
        std::vector<std::uint8_t> page;
        program_code code{program, page};
        flow::walker walker{trace(), code, cache, options()};
        (void)walker.run(to);
        return to.made;
    }
    [[nodiscard]] auto walked(std::size_t cache_size) const -> stretches {
        std::vector<flow::block> storage(cache_size);
        flow::block_cache cache{storage.data(), storage.size()};
        std::vector<std::uint8_t> page;
        program_code code{program, page};
        flow::walker walker{trace(), code, cache, options()};
        stretches got;
        (void)walker.run(got);
        return got;
    }
};

/// What was executed is reported, in order; before an overflow at least what packets show.
auto agree(std::vector<machine_code::stretch> const& executed, stretches const& got) -> bool {
    if (executed.size() != got.ips.size() || got.gaps != 0) { return false; }
    for (std::size_t i = 0; i < executed.size(); ++i) {
        auto const& all = executed[i].ips;
        auto const& some = got.ips[i];
        if (some.size() < executed[i].certain || some.size() > all.size()) { return false; }
        if (!std::equal(some.begin(), some.end(), all.begin())) { return false; }
    }
    return true;
}

}  // namespace

TEST_CASE("conditional branches, taken and not (PKT-277)") {
    // 1000: NOP; JE 1005; NOP; NOP; 1005: JNE 1000; NOP
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"90 7402 90 90 75f9 90"});
        auto const got = walk(value(on("ON 16 01")),
                              code);  // not taken, taken, taken; then TIP.PGD
        return got.executed("000 001 003 004 005 000 001 005") && got.gap_count == 0 &&
               got.edge_count == 3 && !got.edges[0].is_taken && got.edges[0].from == 0x1001 &&
               got.edges[1].from == 0x1005 && got.edges[1].to == 0x1000 && got.edges[2].is_taken;
    });
}

TEST_CASE("direct jumps and calls have no packet; a compressed RET pops (PKT-276, GEN-132)") {
    // 1000: CALL 1008; JMP RAX; NOP; 1008: JMP 100B; NOP; 100B: RET
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"e803000000 ffe0 90 eb01 90 c3"});
        auto const got = walk(value(on("ON 06 2d0b10 01")), code);
        return got.executed("000 008 00b 005 00b") && got.gap_count == 0 &&
               got.edges[0].after == 0x1005 && got.edges[2].to == 0x1005 &&
               got.edges[3].from == 0x1005 && got.edges[3].to == 0x100B;
    });
}

TEST_CASE("a RET without an entry, and one whose bit is 0, are wrong turns (PKT-276)") {
    CHECK_TWICE([](auto value) {
        auto const ret = walk(value(on("ON 06")), value(made_code{"c3"}));
        auto const call = walk(value(on("ON 04")), value(made_code{"e800000000 c3"}));
        auto const zero = walk(value(on("ON 04")), value(made_code{"e801000000 90 c3"}));
        return ret.lost(gap_reason::wrong_turn) && call.lost(gap_reason::wrong_turn) &&
               zero.lost(gap_reason::wrong_turn) && zero.gaps[0].from == 0x1006;
    });
}

TEST_CASE("a call with displacement 0 is not pushed (GEN-132)") {
    // 1000: CALL 1006; NOP; 1006: CALL 100B; 100B: RET
    CHECK_TWICE([](auto value) {
        auto const got = walk(value(on("ON 06")), value(made_code{"e801000000 90 e800000000 c3"}));
        return got.gap_count == 0 && got.executed("000 006 00b") && got.edges[2].to == 0x1005;
    });
}

TEST_CASE("a compressed RET in narrower code pops fewer bits (GEN-137)") {
    // At 1'0000'1000: CALL 1'0000'100A; then a far jump to 2000 in 32-bit code, whose RET leads to
    // the low 32 bits of the address after the CALL.
    CHECK_TWICE([](auto value) {
        constexpr uint8_t wide[] = {0xE8, 5, 0, 0, 0, 0x90, 0x90, 0x90, 0x90, 0x90, 0xFF, 0x28};
        constexpr uint8_t narrow[] = {0xC3};
        flow::code_span const spans[] = {{narrow, 0x2000}, {wide, 0x1'0000'1000}};
        flow::code_spans const code{spans, 2};
        auto const stream = value(on("PSB 9901 7d001000000100 0223 9902 6d002000000000 06"));
        flow::block blocks[8] = {};
        flow::block_cache cache{blocks};
        flow::walker walker{borrowed_bytes{stream.bytes, stream.size}, code, cache};
        test::walk_report got;
        (void)walker.run(got);
        return got.gap_count == 0 && got.edge_count == 3 && got.edges[0].after == 0x1'0000'1005 &&
               got.edges[2].from == 0x2000 && got.edges[2].to == 0x1005;
    });
}

TEST_CASE("an uncompressed RET pops the entry that differs, or keeps it (GEN-134)") {
    // 1000: CALL 1010; 1005: CALL 1010; 100A: NOPs; 1010: RET
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"e80b000000 e806000000 90 90 90 90 90 90 c3"});
        // CALL, CALL from 1005 after a TIP; the RET goes elsewhere, and a RET compressed follows.
        auto const stream = value(on("ON 2d0510 2d1010 06"));
        flow::walk_options how{.on_ret_mismatch = trace::ret_mismatch::keep};
        auto const pops = walk(stream, code);
        auto const keeps = walk(stream, code, how);
        return pops.lost(gap_reason::wrong_turn) && keeps.gap_count == 0 &&
               keeps.executed("000 010 005 010 010");
    });
}

TEST_CASE("a TIP may come after a TNT with later branches (PKT-275, GEN-145)") {
    // 1000: JE 1002; JMP RAX; 1004: JE 1006
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"7400 ffe0 7400 90"});
        auto const got = walk(value(on("ON 0c 2d0410")), code);
        return got.executed("000 002 004") && got.gap_count == 0;
    });
}

TEST_CASE("an event comes at the first occurrence of its IP, and may split a block") {
    // 1000: NOP; NOP; JMP 1000
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"90 90 ebfc 90 90"});
        auto const got = walk(value(on("ON 3d0110 2d0510")), code);
        return got.executed("000") && got.gap_count == 0 && got.edge_count == 1 &&
               got.edges[0].is_asynchronous && got.edges[0].from == 0x1001 &&
               got.edges[0].to == 0x1005;
    });
}

TEST_CASE("a loop without a packet ends, also where an event has another IP") {
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"90 90 ebfc 90 90"});
        auto const branch = walk(value(on("ON 06")), code);
        auto const event = walk(value(on("ON 3d0510 2d0510")), code);
        auto const own = walk(value(on("ON 06")), value(made_code{"ebfe"}));
        return branch.lost(gap_reason::endless_loop) && event.gap_count == 1 &&
               event.gaps[0].why == gap_reason::endless_loop && event.gaps[0].to == 0x1005 &&
               event.count == 0 && own.lost(gap_reason::endless_loop);
    });
}

namespace {

/// Direct jumps, each to the next one in an order that leads to all of them: no packet, no loop.
/// Counts how often it is asked for code.
struct maze_code {
    static constexpr std::uint32_t jumps = 209'715;
    static constexpr std::uint32_t length = 5;  // JMP rel32
    static constexpr std::uint32_t stride = 100'003;

    mutable std::uint64_t asked = 0;
    mutable std::uint8_t jump[length] = {};

    [[nodiscard]] static auto ip_of(std::uint64_t step) -> std::uint64_t {
        return made_code::address + step * stride % jumps * length;
    }
    [[nodiscard]] auto code(std::uint64_t at, std::uint32_t) const -> byte_view {
        std::uint64_t const here = at - made_code::address;
        if (here >= std::uint64_t{jumps} * length || here % length != 0) { return {}; }
        ++asked;
        std::uint64_t const next = (here / length + stride) % jumps * length;
        auto const distance = static_cast<std::uint32_t>(next - here - length);
        jump[0] = 0xE9;
        for (unsigned i = 0; i < 4; ++i) {
            jump[1 + i] = static_cast<std::uint8_t>(distance >> 8 * i);
        }
        return {jump, length};
    }
};

/// A PSB+ with this IP.
auto psb_plus_at(std::uint64_t ip) -> std::vector<std::uint8_t> {
    std::vector<std::uint8_t> bytes;
    for (unsigned i = 0; i < 8; ++i) { bytes.insert(bytes.end(), {0x02, 0x82}); }
    bytes.push_back(0x7D);
    for (unsigned i = 0; i < 6; ++i) { bytes.push_back(static_cast<std::uint8_t>(ip >> 8 * i)); }
    bytes.insert(bytes.end(), {0x02, 0x23});
    return bytes;
}

/// Walks through the maze, from the IP of each PSB+ to the next.
auto walk_maze(std::vector<std::uint64_t> const& ips) -> stretches {
    std::vector<std::uint8_t> trace;
    for (auto const ip : ips) {
        auto const one = psb_plus_at(ip);
        trace.insert(trace.end(), one.begin(), one.end());
    }
    flow::block blocks[64];
    flow::block_cache cache{blocks};
    maze_code maze;
    flow::walker<maze_code> walker{borrowed_bytes{trace.data(), trace.size()}, maze, cache};
    stretches got;
    CHECK(walker.run(got) == flow::walk_end::end);
    // Each PSB+ is looked for, and walked to.
    CHECK(maze.asked <= ips.size() * 2 * 4096);
    return got;
}

}  // namespace

TEST_CASE("straight code is followed for 4096 blocks: a packet of a maze of jumps costs no more") {
    auto const near = walk_maze({maze_code::ip_of(0), maze_code::ip_of(4096)});
    CHECK(near.gaps == 0);
    CHECK(near.ips.front().size() == 4096);
    auto const far = walk_maze({maze_code::ip_of(0), maze_code::ip_of(4097)});
    CHECK(far.gaps == 1);
    CHECK(far.ips.front().empty());
    std::vector<std::uint64_t> unreached;
    for (unsigned i = 0; i < 100; ++i) { unreached.push_back(maze_code::ip_of(i * 3001) + i % 2); }
    CHECK(walk_maze(unreached).gaps == 99);
}

TEST_CASE("where tracing ends (GEN-101, GEN-102, GEN-243)") {
    CHECK_TWICE([](auto value) {
        // A conditional branch, without its TNT bit; the second of two jumps; MOV CR3, RAX.
        auto const branch = walk(value(on("ON 01")), value(made_code{"90 7402 90"}));
        auto const jump = walk(value(on("ON 210020")), value(made_code{"eb00 e9f90f0000"}));
        auto const later = walk(value(on("ON 210020")), value(made_code{"0f22d8 e9f80f0000"}));
        auto const cr3 = walk(value(on("ON 01")), value(made_code{"90 0f22d8 90 ffe0"}));
        auto const pip = walk(value(on("ON 0243000000000000 01")),
                              value(made_code{"90 0f22d8 90 ffe0"}));
        return later.executed("000 003") && branch.executed("000 001") && branch.edge_count == 0 &&
               jump.executed("000 002") && jump.edges[1].to == 0x2000 && cr3.executed("000 001") &&
               pip.executed("000 001 004 005") && pip.gap_count == 0;
    });
}

TEST_CASE("absent code is a gap, or the walk waits for it") {
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"90 7402 90"});
        auto const got = walk(value(on("ON 06 2d0110 01")), code);
        return got.executed("000 001 001") && got.gap_count == 1 &&
               got.gaps[0].why == gap_reason::missing_code && got.gaps[0].missing == 0x1005 &&
               got.gaps[0].from == 0x1005 && got.gaps[0].to == 0x1001;
    });
}

TEST_CASE("code that is absent because the time is not known is a gap with its own reason") {
    struct timeless_code : made_code {
        [[nodiscard]] constexpr auto needs_time_at(std::uint64_t at, std::uint32_t) const -> bool {
            return at == 0x1005;
        }
    };
    CHECK_TWICE([](auto value) {
        auto const of = [](made_stream const& trace, timeless_code const& code) {
            test::walk_report made;
            flow::block blocks[8] = {};
            flow::block_cache cache{blocks};
            flow::walker walker{borrowed_bytes{trace.bytes, trace.size}, code, cache};
            return walker.run(made) == flow::walk_end::end ? made : test::walk_report{};
        };
        // 1000: NOP; JE 1005, which is absent: at an unknown time. 1003: NOP; 1004: absent.
        timeless_code const code{value(made_code{"90 7402 90"})};
        auto const timed = of(value(on("ON 06 2d0110 01")), code);
        auto const absent = of(value(on("ON 04 2d0110 01")), code);
        auto const wrong = of(value(on("ON 06")), timeless_code{value(made_code{"90 06"})});
        return timed.gap_count == 1 && timed.gaps[0].why == gap_reason::no_time &&
               timed.gaps[0].missing == 0x1005 && absent.gap_count == 1 &&
               absent.gaps[0].why == gap_reason::missing_code && absent.gaps[0].missing == 0x1004 &&
               wrong.lost(gap_reason::no_instruction);
    });
}

TEST_CASE("bytes that are no instruction, and an instruction that is cut (UD0 is one)") {
    CHECK_TWICE([](auto value) {
        auto const none = walk(value(on("ON 06")), value(made_code{"90 06"}));
        auto const cut = walk(value(on("ON 06")), value(made_code{"90 e9"}));
        return none.lost(gap_reason::no_instruction) && none.executed("000") &&
               cut.lost(gap_reason::missing_code) && cut.gaps[0].missing == 0x1002;
    });
}

TEST_CASE("a compressed RET whose CALL executed in a gap is no wrong turn, up to a PSB or OVF") {
    // 1000: JMP 1081, which is absent; 1002: RET; 1003: CALL 1009; NOP; 1009: RET.
    CHECK_TWICE([](auto value) {
        auto const absent = value(made_code{"eb7f c3 e801000000 90 c3"});
        auto const call = walk(value(on("ON 2d0210 06 2d0310 06")), absent);
        auto const psb = walk(value(on("ON 2d0210 PSB 99017d021000000000 0223 06")), absent);
        auto const ovf = walk(value(on("ON 2d0210 02f3 3d0210 06")), absent);
        auto const off = walk(value(on("ON 2d0210 01 310210 06")), absent);
        return call.gap_count == 2 && call.gaps[0].why == gap_reason::missing_code &&
               call.gaps[1].why == gap_reason::missing_call && call.gaps[1].from == 0x1002 &&
               call.executed("000 003 009") && psb.gap_count == 2 &&
               psb.gaps[1].why == gap_reason::wrong_turn && ovf.gap_count == 3 &&
               ovf.gaps[2].why == gap_reason::wrong_turn &&
               off.gaps[off.gap_count - 1].why == gap_reason::wrong_turn;
    });
}

namespace {

/// Walks a trace with a coverage map, which takes no gaps.
template <class Code>
constexpr auto gaps_of(made_stream const& trace, Code const& code) -> flow::gap_counts {
    std::uint8_t counts[64] = {};
    flow::run runs[4] = {};
    flow::run_table known{runs};
    flow::coverage to{counts, sizeof counts, &known};
    flow::block blocks[8] = {};
    flow::block_cache cache{blocks};
    flow::walker walker{borrowed_bytes{trace.bytes, trace.size}, code, cache};
    (void)walker.run(to);
    auto const made = walker.gaps();
    walker.next_input(borrowed_bytes{trace.bytes, 0});
    if (!walker.gaps().is_complete()) { return {}; }
    return made;
}

}  // namespace

#if defined(__cpp_exceptions)
namespace {

/// Throws at the report with this number, counted down.
struct throwing_sink {
    int left;

    void edge(flow::edge const&) { report(); }
    void block(flow::executed_block const&) { report(); }
    void gap(flow::gap const&) { report(); }
    void start(std::uint64_t, std::uint32_t) { report(); }
    void event(trace::event const&) { report(); }
    void time(trace::time const&) { report(); }
    void report() {
        if (--left == 0) { throw 7; }
    }
};
/// Counts by runs, and throws at the count with this number.
struct throwing_counts {
    static constexpr std::uint32_t not_counted = ~std::uint32_t{0};

    flow::run_table* table;
    int left;
    std::uint64_t sums[64] = {};

    void edge(flow::edge const& one) { count(index_of(one), 1); }
    void gap(flow::gap const&) {}
    auto runs() -> flow::run_table* { return table; }
    auto index_of(flow::edge const& one) -> std::uint32_t { return one.to % 64; }
    void count(std::uint32_t index, std::uint64_t times) {
        if (left > 0 && --left < 2) { throw 7; }  // and at the next one
        sums[index] += times;
    }
};
struct throwing_code {
    made_code of;
    int left;

    auto code(std::uint64_t at, std::uint32_t space) -> byte_view {
        if (--left == 0) { throw 7; }
        return of.code(at, space);
    }
};

}  // namespace

TEST_CASE("an exception of a sink or of a code source leaves run, and next_input begins again") {
    auto const stream = on("ON 06 02f3 3d0010 06 2d0010 3d0110 2d0010 01");
    borrowed_bytes const trace{stream.bytes, stream.size};
    made_code const code{"90 7400 ffe0"};
    auto const expected = walk(stream, code);
    int thrown = 0;
    for (int after = 1; after < 40; ++after) {
        flow::block storage[8];
        flow::block_cache cache{storage};
        throwing_code source{code, after % 2 == 0 ? after / 2 : 0};
        flow::walker walker{trace, source, cache};
        throwing_sink to{after % 2 != 0 ? after / 2 + 1 : 0};
        try {
            (void)walker.run(to);
        } catch (int value) { thrown += value == 7 ? 1 : 0; }
        source.left = 0;
        walker.next_input(trace);
        test::walk_report got;
        CHECK(walker.run(got) == flow::walk_end::end);
        CHECK(got.count == expected.count);
        CHECK(got.edge_count == expected.edge_count);
        CHECK(got.gap_count == expected.gap_count);
    }
    CHECK(thrown > 12);
}

TEST_CASE("an exception of count leaves run, and no count of it reaches the next input") {
    std::string text = "ON";
    for (unsigned i = 0; i < 12; ++i) { text += " 06 2d0010 04 2d0010 06 06 2d0010"; }
    auto const stream = on(text);
    borrowed_bytes const trace{stream.bytes, stream.size};
    made_code const code{"90 7400 7402 ffe0 ffe0"};
    flow::block storage[8];
    flow::block_cache cache{storage};
    throwing_counts expected{nullptr, 0};
    flow::walker walker{trace, code, cache};
    CHECK(walker.run(expected) == flow::walk_end::end);
    CHECK(expected.sums[0x1000 % 64] > 10);
    unsigned thrown = 0;
    for (unsigned size = 1; size <= 8; size *= 2) {
        flow::run runs[8];
        flow::run_table table{runs, size};
        for (int after = 2; after < 60; ++after) {
            throwing_counts broken{&table, after};
            walker.next_input(trace);
            try {
                (void)walker.run(broken);
            } catch (int value) { thrown += value == 7 ? 1 : 0; }
            throwing_counts whole{&table, 0};
            walker.next_input(trace);
            CHECK(walker.run(whole) == flow::walk_end::end);
            CHECK(std::equal(whole.sums, whole.sums + 64, expected.sums));
        }
    }
    CHECK(thrown > 100);
}
#endif

TEST_CASE("gaps, and bytes whose branches were not walked, are counted for each sink") {
    // 1000: JE 1002; JMP RAX
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"7400 ffe0"});
        auto const other = value(made_code{""});
        auto const begin = value(on("ON"));
        auto const good = gaps_of(value(on("ON 06 2d0010 06 2d0010")), code);
        auto const absent = gaps_of(value(on("ON 06 2d0010 06 2d0010")), other);
        auto const end = gaps_of(value(on("ON 06 06")), other);
        auto const event = gaps_of(value(on("ON 06 06 3d0010 2d0010")), other);
        made_stream none = begin;
        none.size = 12;
        auto const no_psb = gaps_of(none, code);
        made_stream late = begin;
        for (std::size_t i = late.size; i-- != 0;) { late.bytes[i + 3] = late.bytes[i]; }
        late.bytes[0] = late.bytes[1] = late.bytes[2] = 0;
        late.size += 3;
        auto const from_psb = gaps_of(late, code);
        return good.is_complete() && absent.gaps == 2 && absent.bytes == 8 &&
               absent.first.why == gap_reason::missing_code && absent.first.missing == 0x1000 &&
               absent.first.offset == begin.size && end.gaps == 1 && end.bytes == 2 &&
               event.gaps == 1 && event.bytes == 2 && no_psb.gaps == 0 && no_psb.bytes == 12 &&
               from_psb.gaps == 0 && from_psb.bytes == 3;
    });
}

TEST_CASE("lost packets are a gap up to the next IP (PKT-150)") {
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"90 7402 90 7400 90"});
        auto const got = walk(value(on("ON 06 02f3 3d0310 06")), code);
        return got.executed("000 001 003 004") && got.lost(gap_reason::overflow) &&
               got.gaps[0].has_from && got.gaps[0].from == 0x1005 && got.gaps[0].to == 0x1003;
    });
}

TEST_CASE("branches at unknown IPs are not walked, up to the next IP (PKT-254)") {
    // 1000: JE 1002; JMP RAX. After an OVF, and after a TNT while tracing is off.
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"7400 ffe0"});
        auto const lost = walk(value(on("ON 02f3 0c 04 2d0010 06")), code);
        auto const off = walk(value(on("ON 01 06 04 2d0010 06")), code);
        return lost.executed("000") && lost.lost(gap_reason::overflow) &&
               lost.gaps[0].to == 0x1000 && off.executed("000 000");
    });
}

TEST_CASE("the return stack is empty after a PSB (GEN-135)") {
    // 1000: CALL 1006; NOP; 1006: RET
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"e801000000 90 c3 7402"});
        auto const psb = value(on("ON 3d0610 2d0610 PSB 99017d061000000000 0223 06"));
        return walk(psb, code).lost(gap_reason::wrong_turn);
    });
}

TEST_CASE("a direct branch that leaves a filter may have no IP (SKL014)") {
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"eb10 90 90 90 90 90 90 90 90 90 90 90 90 90 90 90 90"
                                          "90 7400"});
        flow::walk_options how{.quirks = {underlying(cpu::quirk::skl014)},
                               .filters = {{0x1000, 0x100F}},
                               .filter_count = 1};
        auto const known = walk(value(on("ON 01")), code, how);
        auto const unknown = walk(value(on("ON 01")), code);
        return known.executed("000") && unknown.executed("000 012 013");
    });
}

namespace {

constexpr flow::walk_options without_tnt{.has_tnt = false};

}  // namespace

TEST_CASE("without TNT, code is known up to a conditional branch, and from the next IP (GEN-325)") {
    // 1000: NOP; JE 1005; NOP; NOP; 1005: JMP 1008; NOP; 1008: JMP RAX
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"90 7402 90 90 eb01 90 ffe0"});
        auto const got = walk(value(on("ON 2d0510 2d0010 01")), code, without_tnt);
        return got.executed("000 001 005 008 000 001") && got.gap_count == 2 &&
               got.gaps[0].why == gap_reason::no_tnt && got.gaps[0].has_from &&
               got.gaps[0].from == 0x1001 && got.gaps[0].to == 0x1005 && got.gaps[0].to_is_target &&
               got.gaps[1].why == gap_reason::no_tnt && got.gaps[1].from == 0x1001 &&
               !got.gaps[1].has_to && !got.gaps[1].to_is_target && got.edge_count == 2 &&
               got.edges[0].to == 0x1008 && got.edges[1].to == 0x1000;
    });
}

TEST_CASE("without TNT, a RET is known if it cannot be compressed (GEN-130..132, GEN-325)") {
    // 1000: CALL 1008; JMP RAX; NOP; 1008: RET
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"e803000000 ffe0 90 c3"});
        auto const stream = value(on("ON 2d0510 2d0810 2d0510 01"));
        auto const maybe = walk(stream, code, without_tnt);
        auto const never = walk(stream, code, {.has_tnt = false, .has_compressed_rets = false});
        // After the gap the RET at 1008 may return to a CALL in it.
        auto const off = walk(value(on("ON 2d0510 01 310810 2d0510 01")), code, without_tnt);
        return maybe.executed("000 008 005 008 005") && maybe.gap_count == 2 &&
               maybe.gaps[0].from == 0x1008 && maybe.gaps[0].to == 0x1005 &&
               maybe.gaps[1].from == 0x1008 && maybe.gaps[1].why == gap_reason::no_tnt &&
               never.gap_count == 0 && never.executed("000 008 005 008 005") &&
               off.gap_count == 1 && off.executed("000 008 005 008 005");
    });
}

TEST_CASE("without TNT, an event is known if its IP cannot be reached again (GEN-325)") {
    // 1000: NOP; NOP; JE 1000; JMP RAX; 1006: NOP; JMP RAX
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"90 90 74fc ffe0 90 ffe0"});
        auto const loop = walk(value(on("ON 3d0110 2d0610 2d0010 01")), code, without_tnt);
        auto const once = walk(value(on("ON 3d0110 2d0610 3d0710 2d0610 01")), code, without_tnt);
        auto const later = walk(value(on("ON 3d0410 2d0610 2d0610 01")), code, without_tnt);
        return loop.executed("000 006 007 000 001 002") && loop.gap_count == 2 &&
               loop.gaps[0].from == 0x1001 && loop.gaps[0].to == 0x1001 &&
               !loop.gaps[0].to_is_target && loop.edges[0].is_asynchronous &&
               loop.edges[0].from == 0x1001 && once.executed("000 006 006 007") &&
               once.gap_count == 1 && later.executed("000 001 002 006 007 006 007") &&
               later.gap_count == 1 && later.gaps[0].from == 0x1002 && later.gaps[0].to == 0x1004;
    });
}

TEST_CASE("without TNT, a loop without branches and a false IP are as with TNT") {
    CHECK_TWICE([](auto value) {
        auto const loop = value(made_code{"90 90 ebfc 90 90"});
        auto const inside = walk(value(on("ON 3d0110 2d0510")), loop, without_tnt);
        auto const outside = walk(value(on("ON 3d0510 2d0510")), loop, without_tnt);
        auto const wrong = walk(value(on("ON 3d0510 2d0010")), value(made_code{"90 ffe0 90 90 90"}),
                                without_tnt);
        return inside.executed("000") && inside.gap_count == 0 &&
               outside.lost(gap_reason::endless_loop) && outside.count == 0 &&
               wrong.lost(gap_reason::wrong_turn) && wrong.count == 0;
    });
}

TEST_CASE("without branches, a trace is one gap (GEN-029)") {
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"ffe0"});
        // PTWs, one with a FUP; a PIP; an OVF. Control flow shows that there are branches.
        auto const stream = value(on("OFF 0232efbeadde 0292efbeadde 7d001000000000 "
                                     "0243006000000000 OFF 02f3 0232efbeadde"));
        auto const got = walk(stream, code, {.has_branches = false});
        auto const with = walk(value(on("OFF 71001000000000 01")), code, {.has_branches = false});
        flow::block blocks[1] = {};
        flow::block_cache cache{blocks};
        flow::walker walker{
            borrowed_bytes{stream.bytes, stream.size}, code, cache, {.has_branches = false}};
        test::walk_report again;
        (void)walker.run(again);
        return got.lost(gap_reason::no_branches) && got.count == 0 && !got.gaps[0].has_from &&
               !got.gaps[0].has_to && walker.gaps().gaps == 1 &&
               walker.gaps().bytes == stream.size && with.gap_count == 1 &&
               with.gaps[0].to == 0x1000;
    });
}

TEST_CASE("branches of a TNT that are left at an event are a wrong turn (PKT-277)") {
    // 1000: JE 1002; JMP RAX
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"7400 ffe0 90"});
        return walk(value(on("ON 0c 3d0210 2d0410")), code).lost(gap_reason::wrong_turn);
    });
}

TEST_CASE("a PTW without FUP shows that the next PTWRITE executed (GEN-300)") {
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"90 f30faee0 90 7400"});
        return walk(value(on("ON 021200000000")), code).executed("000 001");
    });
}

TEST_CASE("after an OVF a PIP shows that tracing is off (PKT-153)") {
    CHECK_TWICE([](auto value) {
        auto const got = walk(value(on("ON 02f3 0243000000000000 310010 06")),
                              value(made_code{"7402 90"}));
        return got.lost(gap_reason::overflow) && !got.gaps[0].has_to && got.executed("000");
    });
}

TEST_CASE("after an OVF the IP of a PSB+ may not be that where tracing resumes (GEN-343)") {
    CHECK_TWICE([](auto value) {
        auto const got = walk(value(on("ON 02f3 ON 3d0310 06")), value(made_code{"7402 90 7400"}));
        return got.lost(gap_reason::overflow) && got.gaps[0].to == 0x1003 && got.executed("003");
    });
}

TEST_CASE("the walk resumes at the IP of an event that is no branch") {
    // 1000: JE 1004, which is absent; 1002: PTWRITE EAX.
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"7408 f30faee0"});
        auto const got = walk(value(on("ON 06 06 029200000000 3d0210")), code);
        return got.lost(gap_reason::missing_code) && got.gaps[0].from == 0x100A &&
               got.gaps[0].to == 0x1002;
    });
}

TEST_CASE("the code size is that of the last PSB+ or MODE.Exec since (GEN-236)") {
    // REX.W JE in 64-bit code; DEC EAX and JE in 32-bit code.
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"48 7400"});
        auto const narrow = walk(value(on("PSB 9902 7d001000000000 0223 06")), code);
        auto const forgets = walk(value(on("PSB 9902 7d001000000000 0223 01 PSB 0223 310010 06")),
                                  code);
        auto const is_cut = walk(value(on("PSB 9902 06 PSB 0223 310010 06")), code);
        return narrow.executed("000 001") && forgets.executed("000 001 000") &&
               is_cut.executed("000");
    });
}

namespace {

/// Code from an address on is absent until it was asked for.
struct late_code {
    made_code of;
    std::uint64_t from;
    bool& is_there;

    [[nodiscard]] constexpr auto code(std::uint64_t at, std::uint32_t space) const -> byte_view {
        auto const bytes = of.code(at, space);
        if (is_there || bytes.empty() || at + bytes.size() <= from) { return bytes; }
        return at >= from ? byte_view{} : bytes.first(static_cast<std::size_t>(from - at));
    }
};
/// Walks a trace, and supplies the code when the walk stops.
constexpr auto walk_late(made_stream const& trace, made_code const& of, std::uint64_t from,
                         cpu::quirk_set quirks) -> test::walk_report {
    bool is_there = false;
    late_code const code{of, from, is_there};
    test::walk_report made;
    flow::block blocks[8] = {};
    flow::block_cache cache{blocks};
    flow::walker walker{borrowed_bytes{trace.bytes, trace.size},
                        code,
                        cache,
                        {.missing = flow::on_missing_code::stop, .quirks = quirks}};
    while (walker.run(made) == flow::walk_end::missing_code) {
        if (is_there) { break; }
        is_there = true;
    }
    return made;
}

}  // namespace

TEST_CASE("a packet that waits for code is walked once") {
    // 1000: JE 1002; JMP RAX; 1004: JE 1006
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"7400 ffe0 7400 90"});
        auto const none = cpu::quirk_set{};
        auto const single = cpu::quirks(cpu::quirk::skd007);  // all packets become events
        auto const deferred = value(on("ON 0c 2d0410"));
        auto const branches = value(on("ON 06"));
        bool good = true;
        for (int i = 0; i < 2; ++i) {
            auto const quirks = i == 0 ? none : single;
            good = good && walk_late(deferred, code, 0x1004, quirks).executed("000 002 004") &&
                   walk_late(deferred, code, 0x1002, quirks).executed("000 002 004") &&
                   walk_late(branches, code, 0x1000, quirks).executed("000");
        }
        return good;
    });
}

namespace {

/// The same addresses have other code in another address space.
struct two_spaces {
    static constexpr auto changes = flow::space_changes::at_paging;

    made_code first;
    made_code second;

    [[nodiscard]] constexpr auto code(std::uint64_t at, std::uint32_t space) const -> byte_view {
        return (space == 0 ? first : second).code(at, space);
    }
    [[nodiscard]] constexpr auto space_of(flow::walk_state const& walked) const -> std::uint32_t {
        return walked.state.cr3 == 0x2000 ? 1 : 0;
    }
};

/// Code that changes at a packet, or within one.
template <flow::space_changes When>
struct changing_code {
    static constexpr auto changes = When;

    made_code first;
    made_code second;
    std::uint64_t offset;
    unsigned branches;

    [[nodiscard]] constexpr auto code(std::uint64_t at, std::uint32_t space) const -> byte_view {
        return (space == 0 ? first : second).code(at, space);
    }
    [[nodiscard]] constexpr auto space_of(flow::walk_state const& walked) const -> std::uint32_t {
        return walked.offset > offset || (walked.offset == offset && walked.branches >= branches)
                   ? 1
                   : 0;
    }
};

}  // namespace

TEST_CASE(
    "a PIP changes the address space at the next MOV CR3 or far transfer (PKT-274, GEN-240)") {
    // In the first space: NOP; MOV CR3, RAX; JE. In the second: NOPs, then JNE with other length.
    CHECK_TWICE([](auto value) {
        two_spaces const moves{made_code{"90 0f22d8 7400 7400"},
                               made_code{"cccccccc 480f8500000000"}};
        two_spaces const calls{made_code{"90 0f05 7400"}, made_code{"cc cc cc 90 7400"}};
        // CR3 is bits 51:5 of the payload's 46 upper bits: 2000H is 8000H in bytes 2 to 7 >> 2.
        auto const move = walk(value(on("ON 0243000200000000 06")), moves);
        auto const call = walk(value(on("ON 0243000200000000 2d0310 06")), calls);
        return move.executed("000 001 004") && move.edges[0].after == 0x100B &&
               call.executed("000 001 003 004");
    });
}

namespace {

/// The counts of edges are the same without and with a table of runs, which is empty, then full.
template <class Code>
auto counts_agree(borrowed_bytes trace, Code const& code, flow::walk_options const& how = {})
    -> bool {
    std::vector<std::uint8_t> plain(64);
    std::vector<std::uint8_t> repeated(64);
    flow::run storage[8] = {};
    flow::run_table runs{storage};
    flow::coverage first{plain.data(), plain.size()};
    flow::coverage second{repeated.data(), repeated.size(), &runs};
    for (int i = 0; i < 3; ++i) {
        flow::block blocks[16] = {};
        flow::block_cache cache{blocks};
        flow::walker one{trace, code, cache, how};
        flow::walker two{trace, code, cache, how};
        (void)one.run(first);
        (void)two.run(second);
    }
    return plain == repeated;
}

}  // namespace

TEST_CASE("the counts are the same where a RET that is not compressed pops an entry (GEN-134)") {
    // 1000: CALL 1010; RET. 1010: CALL 1020; RET. 1020: RET.
    made_code const code{
        "e80b000000 c3 90909090909090909090 e80b000000 c3 90909090909090909090 c3"};
    // The RET at 1020 leads to 1000: the entry 1005 stays. Then three RETs pop 1015, 1005, 1005.
    std::string text{"ON"};
    for (int i = 0; i < 8; ++i) { text += " 2d0010 1e 2d0010"; }
    auto const trace = on(text);
    using enum trace::ret_mismatch;
    for (auto const policy : {pop, keep, clear}) {
        CHECK(counts_agree(borrowed_bytes{trace.bytes, trace.size}, code,
                           {.on_ret_mismatch = policy}));
    }
    CHECK(walk(on("ON 2d0010 1e 2d0010"), code).executed("000 010 020 000 010 020 015 005 005"));
}

TEST_CASE("the counts are the same where branches are walked before the TIP of their run") {
    // 1000: JE 1000; JMP RAX. Taken 40 times, in 7 bytes: the first 32 are another run.
    made_code const code{"74fe ffe0"};
    std::string text{"ON"};
    for (int i = 0; i < 8; ++i) { text += " fe fe fe fe fe fe 5e 2d0010"; }
    for (int i = 0; i < 8; ++i) { text += " 04 2d0010"; }
    for (int i = 0; i < 8; ++i) { text += " fe fe fe fe fe fe fc 2d0010"; }
    auto const trace = on(text);
    CHECK(counts_agree(borrowed_bytes{trace.bytes, trace.size}, code));
}

TEST_CASE("the counts are the same where all of many branches are taken, or none") {
    // 1000: JE 1000; JMP RAX. Or 1000: JNE 1004; JMP 1000; 1004: JMP RAX.
    made_code const taken{"74fe ffe0"};
    made_code const not_taken{"7502 ebfc ffe0"};
    for (unsigned count = 1; count < 100; ++count) {
        for (bool const are_taken : {true, false}) {
            for (unsigned first = 0; first < 6; ++first) {
                // One to six branches; six each; then one that leads to JMP RAX.
                char const* const firsts[2][6] = {{" 04", " 08", " 10", " 20", " 40", " 80"},
                                                  {" 06", " 0e", " 1e", " 3e", " 7e", " fe"}};
                std::string text{"ON"};
                for (int round = 0; round < 3; ++round) {
                    text += firsts[are_taken][first];
                    for (unsigned i = 0; i < count; ++i) { text += firsts[are_taken][5]; }
                    if (round == 1) { text += are_taken ? " 04 2d0010" : " 06 2d0010"; }
                }
                auto const trace = on(text);
                CAPTURE(count);
                CAPTURE(first);
                CHECK(counts_agree(borrowed_bytes{trace.bytes, trace.size},
                                   are_taken ? taken : not_taken));
            }
        }
    }
}

TEST_CASE("the counts are the same where a TIP has another IP after the same branches") {
    // 1000 and 2'1000: JMP 3000. 3000: JE 3000; JMP RAX. 5000 and 2'5000: JMP RAX.
    std::vector<std::uint8_t> bytes(0x24100);
    auto const put = [&](std::size_t ip, std::initializer_list<std::uint8_t> code) {
        std::copy(code.begin(), code.end(),
                  bytes.begin() + static_cast<std::ptrdiff_t>(ip - 0x1000));
    };
    put(0x1000, {0xE9, 0xFB, 0x1F, 0x00, 0x00});
    put(0x2'1000, {0xE9, 0xFB, 0x1F, 0xFE, 0xFF});
    put(0x3000, {0x74, 0xFE, 0xFF, 0xE0});
    for (std::size_t const ip : {0x5000U, 0x2'5000U}) { put(ip, {0xFF, 0xE0}); }
    flow::code_span const code{borrowed_bytes{bytes.data(), bytes.size()}, 0x1000};
    // The IP of the TIP after the loop has two bytes: the others are those of the TIP before it.
    for (unsigned loops = 1; loops < 60; ++loops) {
        auto const begin = on("ON");
        std::vector<std::uint8_t> trace(begin.bytes, begin.bytes + begin.size);
        for (unsigned round = 0; round < 6; ++round) {
            trace.insert(trace.end(), loops, 0xFE);
            std::uint8_t const upper = round % 2 == 0 ? 2 : 0;
            for (int const one : {0x04, 0x2D, 0x00, 0x50, 0x4D, 0x00, 0x10, int{upper}, 0x00}) {
                trace.push_back(static_cast<std::uint8_t>(one));
            }
        }
        CAPTURE(loops);
        CHECK(counts_agree(borrowed_bytes{trace.data(), trace.size()}, code));
    }
}

TEST_CASE("the counts are the same with any number of PADs between packets") {
    // JMP RAX at 1000H and at 1100H. The IPs of the TIPs differ in their last byte only.
    std::vector<std::uint8_t> bytes(0x102);
    bytes[0] = bytes[0x100] = 0xFF;
    bytes[1] = bytes[0x101] = 0xE0;
    flow::code_span const code{borrowed_bytes{bytes.data(), bytes.size()}, 0x1000};
    std::mt19937_64 numbers{1};
    for (unsigned pads = 0; pads < 24; ++pads) {
        std::vector<std::uint8_t> trace;
        auto const begin = on("ON");
        trace.insert(trace.end(), begin.bytes, begin.bytes + begin.size);
        for (int i = 0; i < 300; ++i) {
            trace.resize(trace.size() + pads);
            trace.insert(trace.end(),
                         {0x2D, 0x00, static_cast<std::uint8_t>(numbers() % 2 + 0x10)});
        }
        CAPTURE(pads);
        CHECK(counts_agree(borrowed_bytes{trace.data(), trace.size()}, code));
    }
}

namespace {

/// The first starts.
struct starts {
    using ignores_gaps = starts;

    std::uint64_t ips[4] = {};
    unsigned count = 0;

    constexpr void start(std::uint64_t ip, std::uint32_t) { ips[count++ % 4] = ip; }
};

}  // namespace

TEST_CASE("tracing starts once where a PSB+ and its TIP.PGE have the same IP (GEN-176)") {
    CHECK_TWICE([](auto value) {
        auto const started = [](made_stream const& trace) {
            made_code const loop{"90 75fd 90 75fd"};
            starts made;
            flow::block blocks[8] = {};
            flow::block_cache cache{blocks};
            flow::walker walker{borrowed_bytes{trace.bytes, trace.size}, loop, cache};
            (void)walker.run(made);
            return made;
        };
        auto const same = started(value(on("ON 01 ON 71001000000000 06")));
        auto const other = started(value(on("ON 01 ON 71031000000000 06")));
        return same.count == 2 && same.ips[1] == 0x1000 && other.count == 3 &&
               other.ips[2] == 0x1003;
    });
}

TEST_CASE("damage before a PSB+ does not end the walk that begins at its IP (GEN-176)") {
    CHECK_TWICE([](auto value) {
        made_code const loop{"90 75fd"};
        // A TIP.PGD, or a TraceStop, and no TIP.PGE before the branches after the PSB+.
        auto const disabled = walk(value(on("ON 01 ON 0e 0e")), loop);
        auto const stopped = walk(value(on("ON 0283 ON 0e 0e")), loop);
        constexpr auto four = "000 001 000 001 000 001 000 001";
        return disabled.executed("000 001 000 001 000 001 000 001 000 001") &&
               disabled.gap_count == 0 && stopped.executed(four) && stopped.gap_count == 1;
    });
}

TEST_CASE("code changes at a packet, and between the branches of a TNT, also where a TIP waits") {
    // JE 1000 with one NOP before it, and with two. Taken five times: TNTs of 3 and of 2 branches.
    CHECK_TWICE([](auto value) {
        using enum flow::space_changes;
        made_code before{"90 74fd"};
        made_code after{"90 90 74fc"};
        auto const loop = value(on("ON 1e 0e"));
        bool good = true;
        // At the packet at 1FH, 20H, and 21H, which is the end; within the first one.
        for (unsigned i = 0; i < 3; ++i) {
            changing_code<at_packets> const at{before, after, 0x1F + i, 0};
            good = good && walk(loop, at).executed(i == 0   ? "000 001 002 000 001 002 000 001 "
                                                              "002 000 001 002 000 001 002"
                                                   : i == 1 ? "000 001 000 001 000 001 000 001 "
                                                              "002 000 001 002"
                                                            : "000 001 000 001 000 001 000 001 "
                                                              "000 001");
        }
        changing_code<at_branches> const within{before, after, 0x1F, 2};
        good = good && walk(loop, within)
                           .executed("000 001 000 001 000 001 002 000 001 002 000 "
                                     "001 002");
        // NOP; JMP RAX, with the branch after it in the TNT before the TIP: PKT-275.
        made_code jump{"90 ffe0 7400"};
        made_code other{"90 ffe0 90 7400"};
        changing_code<at_branches> const late{jump, other, 0x1F, 1};
        changing_code<at_branches> const soon{jump, other, 0x1F, 0};
        auto const deferred = value(on("ON 06 2d0310"));
        good = good && walk(deferred, late).executed("000 001 003") &&
               walk(deferred, soon).executed("000 001 003 004");
        return good;
    });
}

TEST_CASE("the counts are the same where the return stack is full, and after code has changed") {
    // 1000: JE 100C; CALL 1020; CALL 1000; 100C: RET. 1020: CALL 1030; RET. 1030: RET. 72 times
    // into the recursion, and out of it as far as the stack has entries. Each call of 1020 needs
    // two, so that a full stack loses two.
    std::string text{"ON"};
    for (int i = 0; i < 36; ++i) { text += " b6"; }  // N T T N T T
    for (int i = 0; i < 11; ++i) { text += " fe"; }
    auto const trace = on(text);
    made_code code{"740a e819000000 e8f4ffffff c3 90909090909090909090909090909090909090"
                   "e80b000000 c3 90909090909090909090 c3"};
    flow::block blocks[32];
    flow::run runs[64];
    flow::block_cache cache{blocks};
    flow::run_table known{runs};
    auto const counted = [&](flow::run_table* with) {
        std::vector<std::uint8_t> counts(256);
        flow::coverage to{counts.data(), counts.size(), with};
        flow::walker walker{borrowed_bytes{trace.bytes, trace.size}, code, cache};
        (void)walker.run(to);
        return counts;
    };
    auto const plain = counted(nullptr);
    CHECK(counted(&known) == plain);
    CHECK(counted(&known) == plain);
    code.bytes[3] = 0x1E;  // CALL 1025 instead of 1020
    cache.invalidate(made_code::address, code.size);
    auto const changed = counted(nullptr);
    CHECK(changed != plain);
    CHECK(counted(&known) == changed);
}

namespace {

/// What a walker reported, in order.
struct reports {
    struct report {
        char what;
        std::uint64_t values[4];

        friend auto operator==(report const&, report const&) -> bool = default;
    };
    std::vector<report>& all;

    void block(flow::executed_block const& one) {
        all.push_back({'b', {one.ip, one.last, one.count, underlying(one.kind)}});
    }
    void edge(flow::edge const& one) {
        std::uint64_t const kind = underlying(one.kind) * 4U + one.is_taken * 2U +
                                   one.is_asynchronous;
        all.push_back({'e', {one.from, one.to, one.after, kind}});
    }
    void start(std::uint64_t ip, std::uint32_t space) { all.push_back({'+', {ip, space}}); }
    void stop(flow::stop const& one) { all.push_back({'-', {one.ip, underlying(one.why)}}); }
    void gap(flow::gap const& one) {
        all.push_back({'g', {underlying(one.why), one.from, one.to, one.missing}});
    }
    void event(trace::event const& one) {
        all.push_back({'v', {underlying(one.what), one.ip, one.offset}});
    }
};
/// The same. With a table, it repeats what was reported of known runs.
struct repeated_reports : reports {
    flow::run_table* table;
    unsigned refuses;  ///< each run with this number of calls of `keep_run`; 0: none
    unsigned kept_count = 0;
    unsigned repeated = 0;
    std::size_t begin = 0;
    std::map<std::uint32_t, std::vector<report>> kept{};

    auto runs() -> flow::run_table* { return table; }
    void begin_run() { begin = all.size(); }
    auto keep_run(std::uint32_t index) -> bool {
        if (refuses != 0 && ++kept_count % refuses == 0) { return false; }
        kept[index].assign(all.begin() + static_cast<std::ptrdiff_t>(begin), all.end());
        return true;
    }
    void repeat_run(std::uint32_t index) {
        auto const& known = kept.at(index);
        all.insert(all.end(), known.begin(), known.end());
        ++repeated;
    }
};

/// Walks a trace in chunks of a size; `to` and `other` take turns.
template <class Sink, class Other>
void walk_in_turns(traced_program const& one, borrowed_bytes trace, std::size_t size, Sink& to,
                   Other& other) {
    std::vector<flow::block> storage(64);
    flow::block_cache cache{storage.data(), storage.size()};
    std::vector<std::uint8_t> page;
    program_code code{one.program, page};
    flow::walker walker{code, cache, one.options()};
    byte_view left = trace.view();
    for (bool turn = false;; turn = !turn) {
        if ((turn ? walker.run(other) : walker.run(to)) == flow::walk_end::end) { return; }
        if (left.empty()) { walker.finish(); }
        auto const chunk = left.first(size);
        left = left.from(chunk.size());
        (void)walker.feed(borrowed_bytes{chunk.data(), chunk.size()});
    }
}

}  // namespace

TEST_CASE("random programs: a sink that repeats runs has the reports of one that does not") {
    auto const count = test::usual_count / 4000;
    unsigned repeated = 0;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
        traced_program one{seed};
        if (!one.machine.succeeded()) { continue; }
        if (seed % 3 == 2) {  // damaged
            for (int i = 0; i < 4; ++i) {
                auto const at = one.from.roll(one.recorded.size());
                one.recorded[at] = static_cast<std::uint8_t>(one.from.roll(256));
            }
        }
        auto const all = one.trace();
        auto const sizes = {all.view().size(), std::size_t{1} + seed % 100};
        for (auto const size : sizes) {
            std::vector<reports::report> expected;
            reports plain{expected};
            walk_in_turns(one, all, size, plain, plain);
            for (std::size_t const runs : {1U, 3U, 16U, 1000U}) {
                std::vector<flow::run> storage(runs);
                flow::run_table table{storage.data(), storage.size()};
                std::vector<reports::report> got;
                reports other{got};
                repeated_reports to{{got}, &table, seed % 4 == 1 ? 3U : 0U};
                CAPTURE(seed);
                CAPTURE(size);
                CAPTURE(runs);
                for (int i = 0; i < 2; ++i) {  // cold and warm
                    got.clear();
                    walk_in_turns(one, all, size, to, to);
                    REQUIRE(got == expected);
                }
                repeated += to.repeated;
                got.clear();
                walk_in_turns(one, all, size, to, other);
                CHECK(got == expected);
            }
        }
    }
    CHECK(repeated > 1000);
}

TEST_CASE("random programs: what was executed is reported, with any size of the cache") {
    auto const count = test::usual_count / 4000;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
        traced_program const one{seed};
        if (!one.machine.succeeded()) { continue; }
        auto const got = one.walked(4096);
        CAPTURE(seed);
        REQUIRE(agree(one.machine.executed(), got));
        CHECK(one.walked(1) == got);
        CHECK(one.walked(1 + seed % 64) == got);
    }
}

namespace {

/// The instructions between gaps.
struct known_parts {
    std::vector<std::vector<std::uint64_t>> ips = std::vector<std::vector<std::uint64_t>>(1);
    unsigned others = 0;  ///< gaps for another reason

    void instruction(flow::executed const& one) { ips.back().push_back(one.ip); }
    void gap(flow::gap const& one) {
        ips.emplace_back();
        others += one.why != gap_reason::no_tnt ? 1 : 0;
    }
};

/// True if the parts are in `all`, in this order.
auto are_in(std::vector<std::vector<std::uint64_t>> const& parts,
            std::vector<std::uint64_t> const& all) -> bool {
    auto from = all.begin();
    for (auto const& one : parts) {
        from = std::search(from, all.end(), one.begin(), one.end());
        if (from == all.end() && !one.empty()) { return false; }
        from += static_cast<std::ptrdiff_t>(one.size());
    }
    return true;
}

}  // namespace

TEST_CASE("random programs without TNT: what is reported was executed (GEN-325)") {
    std::size_t known = 0, executed = 0, gaps = 0, without_rets = 0;
    auto const count = test::usual_count / 4000;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
        traced_program const one{seed, false};
        if (!one.machine.succeeded() || one.machine.executed().size() != 1) { continue; }
        auto const options = flow::with_ctl(one.options(), {one.what.with.word()});
        std::vector<std::uint8_t> page;
        program_code code{one.program, page};
        flow::block storage[64];
        flow::block_cache cache{storage};
        flow::walker walker{one.trace(), code, cache, options};
        known_parts got;
        (void)walker.run(got);
        CAPTURE(seed);
        CHECK(!options.has_tnt);
        CHECK(got.others == 0);
        auto const& all = one.machine.executed()[0].ips;
        REQUIRE(are_in(got.ips, all));
        for (auto const& part : got.ips) { known += part.size(); }
        executed += all.size();
        gaps += got.ips.size() - 1;
        without_rets += options.has_compressed_rets ? 0 : 1;
    }
    CHECK(known > executed / 4);
    CHECK(gaps > count);
    CHECK(without_rets != 0);
}

namespace {

/// Changes a bit, loses a byte, or inserts a PSB+ of another place, perhaps without its end.
void damage(std::vector<std::uint8_t>& trace, std::mt19937_64& numbers) {
    auto const at = numbers() % trace.size();
    switch (numbers() % 3) {
        case 0: trace[at] ^= static_cast<std::uint8_t>(1U << numbers() % 8); break;
        case 1: trace.erase(trace.begin() + static_cast<std::ptrdiff_t>(at)); break;
        default: {
            auto const psb = trace::find_psb({trace.data(), trace.size()}, at);
            if (psb >= trace.size()) { break; }
            auto const size = std::min<std::size_t>(trace.size() - psb, numbers() % 80);
            std::vector<std::uint8_t> const copy(trace.data() + psb, trace.data() + psb + size);
            auto const to = static_cast<std::ptrdiff_t>(numbers() % trace.size());
            trace.insert(trace.begin() + to, copy.begin(), copy.end());
        }
    }
}

}  // namespace

TEST_CASE("random programs: the counts of edges are the same with any cache, cold and warm") {
    auto const count = test::usual_count / 4000;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
        traced_program const one{seed};
        std::size_t const bytes = seed % 2 == 0 ? 65536 : 16;
        auto const plain = one.counted(0, 4096, bytes);
        CAPTURE(seed);
        CHECK(one.counted(4096, 4096, bytes) == plain);
        CHECK(one.counted(1 + seed % 7, 1 + seed % 50, bytes) == plain);
        auto const blocks = one.blocks_reached();
        CHECK(one.blocks_counted(0) == blocks);
        CHECK(one.blocks_counted(1 + seed % 99) == blocks);
    }
}

TEST_CASE("random programs: the counts are the same with a table of runs in damaged traces") {
    auto const count = test::usual_count / 1000;
    std::mt19937_64 numbers{2};
    for (std::uint64_t seed = 0; seed < count; ++seed) {
        traced_program one{seed / 8};
        if (one.recorded.empty()) { continue; }
        for (auto left = 1 + seed % 20; left != 0; --left) { damage(one.recorded, numbers); }
        one.counts_blocks = seed % 3 == 0;
        auto const plain = one.counted(0, 4096, 4096);
        CAPTURE(seed);
        CHECK(one.counted(256, 4096, 4096) == plain);
        CHECK(one.counted(1 + seed % 9, 64, 4096) == plain);
    }
}

namespace {

/// All that a walker reports, as numbers.
struct reported {
    std::vector<std::uint64_t> all{};

    void instruction(flow::executed const& one) { add({1, one.ip, one.space}); }
    void edge(flow::edge const& one) { add({2, one.from, one.to, one.is_taken, one.space}); }
    void start(std::uint64_t ip, std::uint32_t space) { add({3, ip, space}); }
    void stop(flow::stop const& one) { add({4, one.ip, std::uint64_t{underlying(one.why)}}); }
    void gap(flow::gap const& one) {
        add({5, std::uint64_t{underlying(one.why)}, one.from, one.to, one.has_from, one.has_to,
             one.to_is_target, one.offset, std::uint64_t{underlying(one.broken)}});
    }
    void add(std::initializer_list<std::uint64_t> some) { all.insert(all.end(), some); }
};
/// The same for a sink that takes events: then each packet of a PSB+ is bound and makes an event.
struct reported_with_events : reported {
    std::uint64_t whole = 0;

    void event(trace::event const& one) { whole += one.what == trace::event_type::psb ? 1 : 0; }
};

}  // namespace

TEST_CASE("random programs: a PSB+ that is taken whole reports the same, also in damaged traces") {
    auto const count = test::usual_count / 2000;
    std::uint64_t found = 0;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
        traced_program const one{seed / 4};
        if (!one.machine.succeeded()) { continue; }
        std::mt19937_64 numbers{seed};
        auto trace = one.machine.trace();
        for (auto left = seed % 4; left != 0; --left) { damage(trace, numbers); }
        auto const walk_with = [&](auto to, std::size_t chunk_size) {
            std::vector<flow::block> storage(64);
            flow::block_cache cache{storage.data(), storage.size()};
            std::vector<std::uint8_t> page;
            program_code code{one.program, page};
            flow::walker walker{code, cache, one.options()};
            byte_view left{trace.data(), trace.size()};
            std::vector<std::uint8_t> chunk;
            while (walker.run(to) == flow::walk_end::need_input) {
                if (left.empty()) {
                    walker.finish();
                    continue;
                }
                auto const size = std::min(left.size(), chunk_size);
                chunk.assign(left.data(), left.data() + size);
                left = left.from(size);
                REQUIRE(walker.feed(borrowed_bytes{chunk.data(), chunk.size()}));
            }
            return to;
        };
        CAPTURE(seed);
        auto const by_events = walk_with(reported_with_events{}, trace.size());
        found += by_events.whole;
        CHECK(walk_with(reported{}, trace.size()).all == by_events.all);
        CHECK(walk_with(reported{}, 1 + numbers() % 300).all == by_events.all);
    }
    CHECK(found > count);
}

TEST_CASE("the size of code is that of the last PSB+ (GEN-236)") {
    // 32-bit code: INC EAX; JNZ 1000. In 64-bit code it is one instruction.
    CHECK_TWICE([](auto value) {
        auto const code = value(made_code{"40 75fd 90"});
        auto const walk_over = [&](std::string_view trace) { return walk(value(on(trace)), code); };
        auto const got = walk_over(
            "PSB 9902 3d0010 0223 06 PSB 9902 3d0010 0223 06 0000000000000000 0000000000000000");
        auto const wide = walk_over(
            "PSB 9901 3d0010 0223 06 PSB 9901 3d0010 0223 06 0000000000000000 0000000000000000");
        return got.executed("000 001 000 001") && got.gap_count == 0 && wide.executed("000 000");
    });
}

TEST_CASE("random programs: a walk in chunks that stops where code is absent is the same") {
    auto const count = test::usual_count / 10'000;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
        traced_program const one{seed};
        if (!one.machine.succeeded()) { continue; }
        std::vector<flow::block> storage(16);
        flow::block_cache cache{storage.data(), storage.size()};
        std::vector<std::uint8_t> page;
        program_code code{one.program, page, true};
        auto how = one.options();
        how.missing = flow::on_missing_code::stop;
        flow::walker walker{code, cache, how};
        std::mt19937_64 numbers{seed};
        auto const whole = one.trace().view();
        std::size_t at = 0;
        std::vector<std::uint8_t> chunk;
        stretches got;
        for (bool is_done = false; !is_done;) {
            switch (walker.run(got)) {
                case flow::walk_end::need_input: {
                    auto const size = std::min<std::size_t>(whole.size() - at, numbers() % 50);
                    if (at == whole.size()) {
                        walker.finish();
                        break;
                    }
                    chunk.assign(whole.data() + at, whole.data() + at + size);
                    at += size;
                    REQUIRE(walker.feed(borrowed_bytes{chunk.data(), chunk.size()}));
                    break;
                }
                case flow::walk_end::missing_code: code.is_absent = false; break;
                case flow::walk_end::end: is_done = true; break;
            }
            if (numbers() % 8 == 0 && !is_done) {  // code is absent again
                code.is_absent = true;
                cache.clear();
            }
        }
        CAPTURE(seed);
        CHECK(got == one.walked(4096));
    }
}

TEST_CASE("where tracing ends, except by a filter, a sink is told the next instruction") {
    struct stops {
        using ignores_gaps = stops;

        std::uint64_t ip = 0;
        unsigned count = 0;
        constexpr void stop(flow::stop const& one) {
            ip = one.ip;
            ++count;
        }
    };
    constexpr auto stop_of = [](made_stream const& trace, made_code const& code) {
        stops to;
        flow::block blocks[8] = {};
        flow::block_cache cache{blocks};
        flow::walker walker{borrowed_bytes{trace.bytes, trace.size}, code, cache};
        (void)walker.run(to);
        return to;
    };
    CHECK_TWICE([=](auto value) {
        // 1000: NOP; SYSCALL; 1003: NOP. PGD without an IP: 1003. FUP 1000, PGD: a fault at 1000.
        auto const code = value(made_code{"90 0f05 90"});
        auto const call = stop_of(value(on("ON 01")), code);
        auto const fault = stop_of(value(on("ON 3d0010 01")), code);
        auto const filter = stop_of(value(on("ON 210020")), made_code{"ffe0"});  // JMP RAX
        return call.ip == 0x1003 && call.count == 1 && fault.ip == 0x1000 && fault.count == 1 &&
               filter.count == 0;
    });
}

TEST_CASE("random programs: skip_missing() goes on as on_missing_code::gap does") {
    /// Code of which some lines of 64 bytes are absent.
    struct torn_code {
        machine_code::code const& of;
        std::uint64_t seed;
        std::uint8_t bytes[64] = {};

        [[nodiscard]] auto code(std::uint64_t at, std::uint32_t) -> byte_view {
            if ((at / 64 * 0x9E37'79B9 + seed) % 5 == 0) { return {}; }
            auto const most = static_cast<std::size_t>(64 - at % 64);
            return {bytes, of.read(at, bytes, most)};
        }
    };
    unsigned skipped = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        traced_program const one{seed};
        if (!one.machine.succeeded()) { continue; }
        torn_code code{one.program, seed};
        flow::block blocks[64];
        flow::block_cache cache{blocks};
        auto how = one.options();
        stretches expected;
        flow::walker with_gaps{one.trace(), code, cache, how};
        REQUIRE(with_gaps.run(expected) == flow::walk_end::end);
        cache.clear();
        how.missing = flow::on_missing_code::stop;
        stretches got;
        flow::walker stops{one.trace(), code, cache, how};
        while (stops.run(got) == flow::walk_end::missing_code) {
            stops.skip_missing();
            ++skipped;
            REQUIRE(skipped < 1'000'000);
        }
        CAPTURE(seed);
        CHECK(got == expected);
    }
    CHECK(skipped > 100);
}

TEST_CASE("next_input() begins another trace: nothing of the last one is left") {
    CHECK_TWICE([](auto value) {
        // CALL 1006 with an overflow, and in 32-bit code; then a RET without an entry.
        auto const code = value(made_code{"e801000000 90 c3"});
        auto const first = value(on("ON 3d0610 2d0610 9902 02f3"));
        auto const second = value(on("ON 3d0610 2d0610 06"));
        flow::block blocks[8] = {};
        flow::block_cache cache{blocks};
        flow::walker walker{borrowed_bytes{first.bytes, first.size}, code, cache};
        test::walk_report one;
        (void)walker.run(one);
        walker.next_input(borrowed_bytes{second.bytes, second.size});
        test::walk_report again;
        (void)walker.run(again);
        auto const fresh = walk(second, code);
        return one.gap_count == 1 && again.gap_count == fresh.gap_count &&
               again.count == fresh.count && fresh.executed("000 006");
    });
}

TEST_CASE("random programs: next_input() is the same as a new walker") {
    std::vector<flow::block> storage(64);
    flow::block_cache cache{storage.data(), storage.size()};
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        traced_program const one{seed};
        if (!one.machine.succeeded()) { continue; }
        cache.clear();
        std::vector<std::uint8_t> page;
        program_code code{one.program, page};
        auto const cut = one.trace().view().first(one.machine.trace().size() / 3 * 2);
        flow::walker walker{borrowed_bytes{cut.data(), cut.size()}, code, cache, one.options()};
        stretches unused;
        (void)walker.run(unused);
        stretches got;
        walker.next_input(one.trace());
        (void)walker.run(got);
        CAPTURE(seed);
        CHECK(got == one.walked(4096));
    }
}

TEST_CASE("a walker has at most 4 KB, a block 64 bytes") {
    static_assert(sizeof(flow::walker<flow::code_pages>) <= 4096);
    static_assert(sizeof(flow::block) == 64);
    CHECK_TWICE([](auto value) { return value(sizeof(flow::walker<flow::code_spans>)) <= 4096; });
}
