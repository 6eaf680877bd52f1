// SPDX-License-Identifier: BSL-1.0
#include <ptspec/simulate/recording_port.hpp>
#include <ptspec/simulate/ports.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using simulate::logged_access;
using kind = simulate::logged_access::kind;

namespace {

/// One MSR, with a fence.
struct fenced_model : simulate::msr_model<1> {
    unsigned fences = 0;

    constexpr void fence() { ++fences; }
};
template <class Port>
concept has_fence = requires(Port& port) { port.fence(); };

}  // namespace

TEST_CASE("a recording port has a fence if the port that it records has one, and passes it on") {
    CHECK(!has_fence<simulate::recording_port<simulate::msr_model<1>>>);
    CHECK_TWICE([](auto value) {
        fenced_model msrs{{{{0x570, value(uint64_t{9})}}}};
        simulate::recording_port log{msrs};
        log.fence();
        return msrs.fences == 1 && log.count() == 1;
    });
}

TEST_CASE("accesses, faults, fences and notes are recorded in order") {
    CHECK_TWICE([](auto value) {
        fenced_model msrs{{{{0x570, value(uint64_t{9})}}}};
        simulate::recording_port log{msrs};
        (void)log.read(0x570);
        (void)log.write(0x570, 8);
        log.fence();
        log.note("drain");
        (void)log.write(0x571, 3);
        (void)log.read(0x572);
        simulate::logged_access const expected[] = {{kind::read, false, 0x570, 9, {}},
                                                    {kind::write, false, 0x570, 8, {}},
                                                    {.what = kind::fence},
                                                    {.what = kind::note, .action = "drain"},
                                                    {kind::write, true, 0x571, 3, {}},
                                                    {kind::read, true, 0x572, 0, {}}};
        size_t at = 0;
        for (auto const& one : log) {
            if (one != expected[at++]) { return false; }
        }
        return at == 6 && log.count() == 6 && msrs.words[0].value == 8;
    });
}

TEST_CASE("a full log counts on, and keeps its first accesses") {
    CHECK_TWICE([](auto value) {
        simulate::msr_model<1> msrs{{{0x570, 0}}};
        simulate::recording_port<simulate::msr_model<1>, 2> log{msrs};
        for (uint64_t i = 0; i < value(uint64_t{5}); ++i) { (void)log.write(0x570, i); }
        bool const kept = log.count() == 5 && log.end() - log.begin() == 2 &&
                          log.begin()[1].value == 1 && msrs.words[0].value == 4;
        log.clear();
        return kept && log.count() == 0 && log.begin() == log.end();
    });
}

TEST_CASE("a fence and a note have no MSR and no value") {
    CHECK_TWICE([](auto value) {
        fenced_model msrs{{{{value(0x570U), 0}}}};
        simulate::recording_port log{msrs};
        log.fence();
        log.note("switch");
        auto const* const one = log.begin();
        return one[0].index == 0 && one[0].value == 0 && !one[0].faulted && one[1].index == 0 &&
               one[1].value == 0 && one[1].action == "switch";
    });
}

TEST_CASE("an access is printed in the notation of the catalogue") {
    CHECK_TWICE([](auto value) {
        auto const prints = [](simulate::logged_access const& one, text wanted) {
            char all[64] = {};
            size_t size = 0;
            simulate::print_access(one, [&](text piece) {
                for (char const letter : piece) { all[size++] = letter; }
            });
            return text{all, size} == wanted;
        };
        return prints({kind::write, false, 0x570, value(uint64_t{0x250D})}, "WRMSR(570,250D)") &&
               prints({kind::write, true, 0x560, 0}, "WRMSR(560,0)->#GP") &&
               prints({kind::read, false, 0x571, 0x300'0000'0000},
                      "RDMSR(571)->0000030000000000") &&
               prints({kind::read, false, 0x561, 0x7F}, "RDMSR(561)->7F") &&
               prints({kind::read, true, 0x572}, "RDMSR(572)->#GP") &&
               prints({.what = kind::fence}, "[SFENCE]") &&
               prints({.what = kind::note, .action = "drain"}, "[drain]");
    });
}
