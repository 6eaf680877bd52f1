// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/call_stack.hpp>
#include <ptspec/flow/parts.hpp>
#include <ptspec/flow/walker.hpp>

#include <support/check_twice.hpp>
#include <support/how_many.hpp>
#include <support/machine_runs.hpp>
#include <support/walked.hpp>

#include <memory>
#include <vector>

using namespace ptspec;
namespace machine_code = test::machine_code;

namespace {

struct program_code {
    machine_code::code const& of;
    std::vector<std::uint8_t>& page;

    [[nodiscard]] auto code(std::uint64_t at, std::uint32_t) const -> byte_view {
        page.resize(4096);
        auto const most = static_cast<std::size_t>(4096 - at % 4096);
        return {page.data(), of.read(at, page.data(), most)};
    }
};

/// Calls and returns, as numbers.
struct call_report {
    using ignores_gaps = call_report;

    std::vector<std::uint64_t> all{};

    void call(flow::call const& one) {
        all.insert(all.end(),
                   {one.frame.from, one.frame.to, static_cast<std::uint64_t>(one.depth)});
    }
    void returned(flow::call_return const& one) {
        all.insert(all.end(), {one.from, one.to, static_cast<std::uint64_t>(one.depth)});
    }
};

/// Everything that is reported, as numbers.
struct report {
    std::vector<std::uint64_t> instructions{};
    std::vector<std::uint64_t> edges{};
    std::vector<std::uint64_t> gaps{};
    std::vector<std::uint64_t> events{};
    std::vector<std::uint64_t> starts{};
    call_report calls{};
    flow::frame frames[40] = {};
    flow::call_stack<call_report> stack{frames, calls};
    std::uint64_t offset = 0;  // of the part

    void instruction(flow::executed const& one) { instructions.push_back(one.ip); }
    void edge(flow::edge const& one) {
        for (std::uint64_t const value : {one.from, one.to, one.after}) { edges.push_back(value); }
        stack.edge(one);
    }
    void gap(flow::gap const& one) {
        for (std::uint64_t const value : {std::uint64_t{underlying(one.why)}, one.from, one.to}) {
            gaps.push_back(value);
        }
        stack.gap(one);
    }
    void start(std::uint64_t ip, std::uint32_t space) {
        starts.push_back(ip);
        stack.start(ip, space);
    }
    void event(trace::event const& one) {
        events.push_back(one.offset + offset);
        events.push_back(underlying(one.what));
    }
};

auto walked(borrowed_bytes trace, machine_code::code const& program, flow::walk_options const& how,
            std::size_t count, std::size_t& made) -> std::unique_ptr<report> {
    std::vector<flow::block> storage(512);
    flow::block_cache cache{storage.data(), storage.size()};
    std::vector<std::uint8_t> page;
    program_code code{program, page};
    auto to = std::make_unique<report>();
    auto& got = *to;
    made = 0;
    for (auto const& one : flow::parts{trace, count}) {
        got.offset = one.offset;
        flow::walker walker{borrowed_bytes{one.bytes.data(), one.bytes.size()}, code, cache,
                            one.options(how)};
        CHECK(walker.run(got) == flow::walk_end::end);
        ++made;
    }
    return to;
}

}  // namespace

TEST_CASE("random programs: any number of parts gives the same reports, also of damaged traces") {
    auto const count = test::usual_count / 5000;
    std::size_t cuts = 0;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
        test::dice from{seed};
        auto const what = machine_code::random_plan(from, test::programs::kind_of_run(seed));
        machine_code::code const program{from};
        machine_code::machine machine{what, program, from};
        machine.run(6000);
        auto bytes = machine.trace();
        if (seed % 2 != 0) {
            for (int i = 0; i < 8; ++i) {
                bytes[static_cast<std::size_t>(from.roll(bytes.size()))] ^=
                    static_cast<std::uint8_t>(1U << from.roll(8));
            }
        }
        flow::walk_options const how{.on_ret_mismatch = what.how.on_ret_mismatch};
        borrowed_bytes const trace{bytes.data(), bytes.size()};
        std::size_t made = 0;
        auto const whole_report = walked(trace, program, how, 1, made);
        auto const& whole = *whole_report;
        for (std::size_t const wanted : {2U, 3U, 7U, 1000U}) {
            auto const part_report = walked(trace, program, how, wanted, made);
            auto const& got = *part_report;
            CAPTURE(seed);
            CAPTURE(wanted);
            CHECK(made <= wanted);
            CHECK(got.instructions == whole.instructions);
            CHECK(got.edges == whole.edges);
            CHECK(got.gaps == whole.gaps);
            CHECK(got.events == whole.events);
            CHECK(got.starts == whole.starts);
            CHECK(got.calls.all == whole.calls.all);
            cuts += made - 1;
        }
    }
    CHECK(cuts > count);
}

TEST_CASE("no cut where an overflow is pending, and none without a packet of the control flow") {
    CHECK_TWICE([](auto value) {
        constexpr auto kind = engine::model_kind::manual;
        auto const parts_of = [](test::made_stream const& of, cpu::quirk_set quirks = {}) {
            unsigned made = 0;
            for (auto const& one : flow::parts{borrowed_bytes{of.bytes, of.size}, 9, quirks}) {
                made += one.bytes.empty() ? 0U : 1U;
            }
            return made;
        };
        return parts_of(value(test::made_stream{"ON 06 ON 06 ON 06", kind})) == 3 &&
               parts_of(value(test::made_stream{"ON 06 02f3 ON 06", kind})) == 1 &&
               parts_of(value(test::made_stream{"ON ON ON", kind})) == 1 &&
               // The first PSB+ has a PIP, the second has not: who begins there knows less.
               parts_of(value(test::made_stream{"PSB 0243000200000000 99017d001000000000 0223 06 "
                                                "PSB 99017d001000000000 0223 06",
                                                kind})) == 1 &&
               // With APL12 the FUP after the OVF may be spurious.
               parts_of(value(test::made_stream{"ON 06 02f3 3d1010 ON 06", kind})) == 2 &&
               parts_of(value(test::made_stream{"ON 06 02f3 3d1010 ON 06", kind}),
                        cpu::quirks(cpu::quirk::apl12)) == 1 &&
               // With SKD007 these CYCs have an OVF in them.
               parts_of(value(test::made_stream{"ON 06 9702f3 ON 06", kind})) == 2 &&
               parts_of(value(test::made_stream{"ON 06 9702f3 ON 06", kind}),
                        cpu::quirks(cpu::quirk::skd007)) == 1 &&
               // An OVF, and another PSB, in the PSB+ at which the trace would be cut.
               parts_of(value(test::made_stream{"ON 06 PSB 02f3 ON 06", kind})) == 1 &&
               parts_of(value(test::made_stream{"ON 06 PSB ON 06", kind})) == 1 &&
               parts_of(value(test::made_stream{"", kind})) == 0;
    });
}
