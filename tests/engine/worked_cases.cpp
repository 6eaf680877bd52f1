// SPDX-License-Identifier: BSL-1.0
// The worked cases TC of the catalogue, generated from its table. Breaking one of these
// rules breaks a case: GEN-004, GEN-021, GEN-029, GEN-051, GEN-052, GEN-060, GEN-080,
// GEN-082, GEN-084..086, GEN-089..091, GEN-100..102, GEN-110, GEN-112..114, GEN-120..124,
// GEN-130..135, GEN-139, GEN-145, GEN-146, GEN-170, GEN-174, GEN-176, GEN-180, GEN-181, GEN-183,
// GEN-203, GEN-205, GEN-211, GEN-212, GEN-214..217, GEN-227, GEN-229, GEN-235, GEN-236, GEN-240,
// GEN-241, GEN-243, GEN-244, GEN-250..253, GEN-255, GEN-260..262, GEN-271, GEN-272, GEN-278,
// GEN-285, GEN-286, GEN-290, GEN-300..302, GEN-305, GEN-310, GEN-311, GEN-313, GEN-316..318,
// GEN-325, GEN-341.
#include "../../examples/tools/common/trace_script/machine.hpp"

#include <support/check_twice.hpp>
#include <support/csv.hpp>
#include <support/tc_match.hpp>

#include <tc_cases.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

using namespace ptspec;
using test::are_wanted;
using test::tc_case;
using test::tc_cases;
using test::tc_part;

namespace {

using machine = trace_script::machine<4096>;
using packets_text = print::fixed_text<1024>;

constexpr auto view(text of) -> std::string_view { return {of.data(), of.size()}; }

/// The result of one part of a case.
struct outcome {
    packets_text packets{};
    bool was_read = false;
    bool claims_hold = false;
};

constexpr auto outcome_of(tc_case const& row, tc_part const& part) -> outcome {
    outcome done;
    auto const read = trace_script::read_setup(view(row.setup), machine::table);
    if (read.wrong) { return done; }
    machine on;
    on.begin(read.made);
    auto events = view(part.events);
    while (!events.empty()) {
        auto const event = trace_script::take_item(events, ';');
        if (!on.run(event).empty()) { return done; }
    }
    done.was_read = on.print_packets(done.packets) && !on.wrapped_around();
    done.claims_hold = true;
    for (unsigned i = 0; i < part.claim_count; ++i) {
        print::fixed_text<64> value;
        done.claims_hold = done.claims_hold && on.print_value(view(part.claims[i].name), value) &&
                           value == part.claims[i].value;
    }
    return done;
}

constexpr auto holds(tc_case const& row) -> bool {
    for (unsigned i = 0; i < row.part_count; ++i) {
        auto const& part = row.parts[i];
        auto const done = outcome_of(row, part);
        if (!done.was_read || !done.claims_hold || done.packets.is_truncated ||
            !are_wanted(part.packets, part.packet_count, view(done.packets.written()))) {
            return false;
        }
    }
    return row.part_count != 0;
}

template <std::size_t Row>
struct case_holds {
    static constexpr bool value = holds(tc_cases[Row]);
    static_assert(value, "this case fails");  // the compiler names the case
};
template <std::size_t... Rows>
constexpr auto all_hold(std::index_sequence<Rows...>) -> bool {
    return (... & case_holds<Rows>::value);
}
static_assert(all_hold(std::make_index_sequence<test::tc_cases_count>{}));

}  // namespace

TEST_CASE("the worked cases are all those of the page") {
    CHECK(test::tc_cases_count == test::count_of_rows("tests/spec/tracing.md", "TC-"));
}

TEST_CASE("every worked case passes at run time, too") {
    for (auto const& row : tc_cases) {
        CAPTURE(std::string{view(row.id)});
        for (unsigned i = 0; i < row.part_count; ++i) {
            auto const done = outcome_of(row, row.parts[i]);
            CAPTURE(std::string{view(done.packets.written())});
            CHECK(done.was_read);
            CHECK(done.claims_hold);
        }
        CHECK(holds(row));
    }
}

TEST_CASE("a case with a changed, missing or extra packet fails") {
    for (auto row : tc_cases) {
        CAPTURE(std::string{view(row.id)});
        auto& part = row.parts[0];
        if (part.packet_count == 0) {
            part.packets[0] = "OVF";
            part.packet_count = 1;
            CHECK(!holds(row));
            continue;
        }
        auto const last = part.packets[part.packet_count - 1];
        part.packets[part.packet_count - 1] = last == text{"TIP(2001)"} ? text{"OVF"}
                                                                        : text{"TIP(2001)"};
        CHECK(!holds(row));
        part.packets[part.packet_count - 1] = last;
        --part.packet_count;
        CHECK(!holds(row));
    }
}

TEST_CASE("packets in a PSB+ match in any order but TSC, TMA; others in the given order") {
    text const wanted[] = {"TIP(1)", "PSB", "TSC", "TMA", "CBR", "PIP(1000,NR=0)", "PSBEND", "FUP"};
    auto const all = [&](std::string_view packets) { return are_wanted(wanted, 8, packets); };
    CHECK(all("TIP(1), PSB, TSC, TMA, CBR, PIP(1000,NR=0), PSBEND, FUP(5)"));
    CHECK(all("TIP(1), PSB, PIP(1000,NR=0), CBR, TSC, TMA, PSBEND, FUP(5)"));
    CHECK(!all("TIP(1), PSB, PIP(1000,NR=0), TMA, CBR, TSC, PSBEND, FUP(5)"));
    CHECK(!all("TIP(1), PSB, TSC, TMA, CBR, PIP(2000,NR=0), PSBEND, FUP(5)"));
    CHECK(!all("TIP(1), PSB, TSC, TMA, CBR, CBR, PSBEND, FUP(5)"));
    CHECK(!all("TIP(1), PSB, TSC, TMA, CBR, PSBEND, PIP(1000,NR=0), FUP(5)"));
    CHECK(!all("TIP(2), PSB, TSC, TMA, CBR, PIP(1000,NR=0), PSBEND, FUP(5)"));
    CHECK(!all("TIP(1), PSB, TSC, TMA, CBR, PIP(1000,NR=0), PSBEND"));
    CHECK(!all("TIP(1), PSB, TSC, TMA, CBR, PIP(1000,NR=0), PSBEND, FUP(5), FUP(5)"));
    CHECK(!all("none"));
}
